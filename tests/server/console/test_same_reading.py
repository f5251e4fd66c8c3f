"""Page, chart, file, wire and Python read one answer alike. Draws are the test's own."""

from __future__ import annotations

import csv
import io
from fractions import Fraction
from typing import Any

import pytest

from sulq.kernel.noise.laws import DiscreteGaussian, NoNoise
from sulq.server.console.ask.answer import _row, bars_text, result_sentence
from sulq.server.console.ask.answer_charts import figure_views
from sulq.server.console.ask.answer_files import csv_of, sheet_of
from sulq.server.console.ask.cells import answer_cell, estimate_cell
from sulq.server.console.labels import Figure, Shape
from sulq.sql.evaluate.linear_forms import Estimate, Noisy
from sulq.sql.evaluate.result import Result, ResultColumn, Stated, mean
from sulq.wire import sql_reply

LAW = DiscreteGaussian(Fraction(42) ** 2)


def hours(name: str, rows: float, total: float) -> Estimate:
    """A mean of hours in [0, 100], from so many rows and their total less 50 each."""
    counted = Noisy.draw((name, "n"), rows, LAW, 1, 0.0, 30_000)
    summed = Noisy.draw((name, "s"), total, LAW, 50)
    return mean(counted, summed, 50.0, 0.0, 100.0)


ROWS: list[tuple[Any, Estimate]] = [
    ("Masters", hours("a", 5_000, -45_000)),  # 41
    ("5th-6th", hours("b", 190, -5_320)),  # 22, and noise enough to pass 0
    ("Preschool", hours("c", -30, 700)),
    (None, hours("d", 12, 900)),
]
FIGURE = Figure("hours", "average", "hours", False, False, "hours", None, "avg")
SHAPE = Shape((FIGURE,), ("education",), 4, True)


@pytest.fixture
def result() -> Result:
    columns = (ResultColumn("education", is_key=True), ResultColumn("hours"))
    return Result(columns, tuple(ROWS), Fraction(5, 2), (), ("a note",))


def lines_of(result: Result, counted: str = "") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(csv_of(sheet_of(result, sql_reply(result), counted)))))


def test_what_has_no_reading_has_none_anywhere(result: Result) -> None:
    page = [_row(result, row, [0], [1], SHAPE) for row in result.rows]
    assert [row.cells[0].text for row in page] == [None, None, "no reading", "no reading"]
    assert page[3].keys == ("other or missing",)
    lines = lines_of(result)
    assert [line["hours"] != "" for line in lines] == [True, True, False, False]
    assert [line["note"] for line in lines[1:3]] == ["", "hours: no reading"]
    assert lines[3]["education"] == "other or missing"
    assert lines[2]["hours_low"] == lines[2]["hours_high"] == ""
    assert [record["hours"] is None for record in result.records()] == [False, False, True, True]
    assert repr(result).count("no reading [0, 100]") == 2
    sent = [row[1] for row in sql_reply(result).rows]
    assert [cell.value is None for cell in sent] == [False, False, True, True]


def test_ranges_agree_and_stay_within_the_bounds(result: Result) -> None:
    for row, line, record in zip(result.rows[:2], lines_of(result), result.records(), strict=False):
        cell = estimate_cell(row[1], 0.95)
        assert cell.range == f"{line['hours_low']} to {line['hours_high']}"
        assert cell.raw == line["hours"]
        assert 0 <= float(line["hours_low"]) <= record["hours_low"]
        assert record["hours_high"] <= float(line["hours_high"]) <= 100
        places = len(line["hours"].partition(".")[2])
        assert line["hours"] == f"{record['hours']:.{places}f}"  # digits end where noise begins
        assert places <= 2
    assert lines_of(result)[1]["hours_low"] == "0"
    chart = str(figure_views(result, SHAPE)[0].chart)
    assert "−" not in chart and 'x1="-' not in chart  # no whisker below 0


def test_price_and_confidence_are_in_the_file(result: Result) -> None:
    said = "of each person at most 2 rows count"
    for line in lines_of(result, said):
        assert (line["credits"], line["confidence"]) == ("2.5", "95 %")
        assert line["note"].startswith(said)


def test_public_comes_from_the_plan_not_from_a_width_of_0() -> None:
    """A private median whose interval collapsed to one year was called public, error none."""
    median = Stated(37.0, lambda c: (37.0, 37.0), (0.0, 120.0), frozenset(["draws"]))
    figure = Figure("m", "median", "age", False, False, "age", None, "quantile", "the whole number")
    shape = Shape((figure,), (), 1, False)
    found = Result((ResultColumn("m"),), ((median,),))
    cell = _row(found, (median,), [], [0], shape).cells[0]
    assert (cell.value, cell.chip) == ("37", "exact to the whole number in 95 of 100")
    assert result_sentence(found, shape).bold == "m is 37, exact to the whole number in 95 of 100."
    assert bars_text(found, [0], shape) == "below one step of"
    assert "37 [37, 37]" in repr(found)
    assert not median.public and sql_reply(found).rows[0][0].public is False
    known = Noisy.exact(37)
    told = Result((ResultColumn("m"),), ((known,),))
    assert _row(told, (known,), [], [0], shape).cells[0].chip == "public"
    assert bars_text(told, [0], shape) == "none" and sql_reply(told).rows[0][0].public
    assert result_sentence(told, shape).bold == "m is 37."
    assert Noisy.draw("x", 3, NoNoise(), 1).interval() == (3, 3)


def test_a_negative_count_keeps_its_bar() -> None:
    count = Noisy.draw("n", -225.2, LAW, 1, 0.0, 30_000)
    cell = estimate_cell(count, 0.95, count=True)
    assert (cell.value, cell.bar, cell.range) == ("−225", "82", "0 to 82")
    assert cell.tip.endswith("Read it as 0 to 82.") and cell.weak
    assert (cell.raw, cell.low, cell.high) == ("-225", "0", "82")
    assert answer_cell(float("nan"), 0, 1).text == "no reading"


def test_days_are_days_everywhere() -> None:
    day = Stated(19_000.4, lambda c: (18_999.6, 19_003.2), (18_000, 20_000), frozenset(["draws"]))
    found = Result((ResultColumn("seen", kind="date"),), ((day,),))
    (line,) = lines_of(found)
    (record,) = found.records()
    assert line["seen"] == str(record["seen"]) == "2022-01-08"
    assert (line["seen_low"], line["seen_high"]) == ("2022-01-07", "2022-01-12")
    assert (record["seen_low"], record["seen_high"]) == tuple(
        type(record["seen"]).fromisoformat(line[name]) for name in ("seen_low", "seen_high")
    )
