"""Results: tables of estimates that sort, filter, cut, compare, convert and show themselves."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from fractions import Fraction

import pytest

from sulq.answers.display import bar, significant
from sulq.errors import InvalidQuery
from sulq.kernel.noise.laws import DiscreteGaussian
from sulq.sql.evaluate.linear_forms import Noisy, ratio
from sulq.sql.evaluate.result import Result, ResultColumn, compare

LAW = DiscreteGaussian(Fraction(20 << 20) ** 2)
STEP = Fraction(1, 1 << 20)


def draw(name: str, value: float) -> Noisy:
    return Noisy.draw(name, value, LAW, STEP)


ROME, OSLO, BERN = draw("rome", 1_234), draw("oslo", 812), draw("bern", 845)
UNKNOWN = ratio(draw("top", 5), Noisy.draw("n", -4, LAW, STEP, 0))
RESULT = Result(
    (ResultColumn("city", True), ResultColumn("n"), ResultColumn("share", unit="of all")),
    (
        ("Rome", ROME, ratio(ROME, ROME + OSLO + BERN, low=0, high=1)),
        ("Oslo", OSLO, ratio(OSLO, ROME + OSLO + BERN, low=0, high=1)),
        ("<b>Bern</b>", BERN, UNKNOWN),
    ),
    Fraction(5, 2),
    ("receipt",),
    ("a note",),
)


def test_post_processing_keeps_price_and_receipts() -> None:
    assert RESULT.sorted_by("n").column("city") == ("Oslo", "<b>Bern</b>", "Rome")
    down = RESULT.sorted_by("share", descending=True)
    assert down.column("city") == ("Rome", "Oslo", "<b>Bern</b>")  # unknown values come last
    assert RESULT.sorted_by("share").column("city")[-1] == "<b>Bern</b>"
    big = RESULT.filtered(lambda row: row["n"] > 830)
    assert big.column("city") == ("Rome", "<b>Bern</b>")
    assert RESULT.limited(1, skip=1).column("city") == ("Oslo",)
    for kept in (down, big, RESULT.limited(0)):
        assert (kept.credits, kept.receipts, kept.notes) == (
            Fraction(5, 2),
            ("receipt",),
            ("a note",),
        )
    assert RESULT.sorted_by("CITY").column("city")[0] == "<b>Bern</b>"


def test_records_and_frames() -> None:
    records = RESULT.records()
    assert list(records[0]) == ["city", "n", "n_low", "n_high", "share", "share_low", "share_high"]
    assert records[0]["n_low"] == pytest.approx(1_234 - 1.959964 * 20, abs=0.01)
    wider = RESULT.records(0.99)[0]
    assert wider["n_low"] < records[0]["n_low"]
    for frame in (RESULT.to_pandas(), RESULT.to_polars(), RESULT.to_arrow().to_pandas()):
        assert list(frame.columns) == list(records[0])
        assert frame["n_high"].to_list() == pytest.approx([row["n_high"] for row in records])
        assert frame["city"].to_list()[2] == "<b>Bern</b>"
    assert RESULT.limited(0).to_pandas().empty
    clash = Result((ResultColumn("n"), ResultColumn("n_low")), ((ROME, OSLO),))
    assert set(clash.records()[0]) == {"n", "n_low", "n_low_", "n_high", "n_low_low", "n_low_high"}


def test_it_shows_what_is_known() -> None:
    shown = repr(RESULT)
    lines = shown.splitlines()
    assert lines[0].split() == ["city", "n", "share", "(of", "all)"]
    assert "1,234 [1,194, 1,274]" in lines[2]
    assert "no reading [unbounded, unbounded]" in lines[4]
    assert "[low, high] holds the true value at 95 %; 2.5 credits" in lines
    assert lines[-2:] == ["a note", "too few rows match to tell"]
    page = RESULT._repr_html_()
    assert "&lt;b&gt;Bern" in page
    assert "<b>Bern" not in page
    many = Result((ResultColumn("n"),), tuple((ROME,) for _ in range(100)))
    assert "... 40 more rows" in repr(many)
    assert len(many.records()) == 100


def test_digits_are_significant() -> None:
    assert bar(12_345.678, 12_000, 12_700) == "12,350 [12,000, 12,700]"
    assert bar(0.123456, 0.1202, 0.1269) == "0.1235 [0.1202, 0.1269]"
    assert bar(0.123456, 0.11, 0.14) == "0.1235 [0.1100, 0.1400]"
    assert bar(7.0, 7.0, 7.0) == "7"
    assert bar(3.2, 1.04, 5.06) == "3.2 [1.0, 5.1]"
    assert bar(3_043, 3_026, 3_061) == "3,043 [3,026, 3,061]"
    assert bar(5, 0, 31) == "5 [0, 31]"
    assert bar(5, 3, 6) == "5 [3, 6]"
    assert significant(-0.0004, 0.1) == "0.00"
    assert significant(math.nan) == "unknown"
    assert significant(123_456_789) == "123,456,789"


def test_comparisons_in_words() -> None:
    near = RESULT.compare(1, 2, "n")
    assert not near.distinguishable
    assert near.larger is None
    assert str(near).startswith("not distinguishable at 95 %: the difference is -33 [-89, 23]")
    far = RESULT.compare(1, 0, "n")
    assert far.larger == "Rome"
    assert str(far).startswith(
        "Rome is larger, by 422 [366, 478] at 95 %; they differ even at 99.9999"
    )
    assert compare(ROME, ROME).interval == (0, 0)
    assert "same number" in str(compare(ROME, ROME))
    # 60 apart at a spread of 28.3 is 2.12 spreads: beyond 1.96, within 2.58
    sure = compare(draw("a", 160), draw("b", 100))
    assert sure.distinguishable
    assert sure.sure is None
    assert not compare(draw("a", 160), draw("b", 100), 0.99).distinguishable


def test_cells_are_found_or_refused() -> None:
    assert Result((ResultColumn("n"),), ((ROME,),)).cell().value == 1_234
    for call, words in (
        (lambda: RESULT.cell(), "say which column: n, share"),
        (lambda: RESULT.cell("city"), "key"),
        (lambda: RESULT.cell("n", 3), "3 rows"),
        (lambda: RESULT.column("m"), "no column 'm'"),
        (lambda: RESULT.sorted_by("n", descending=(True, False)), "2 entries for 1"),
        (lambda: Result((ResultColumn("n"),), ((1, 2),)), "2 cells"),
        (lambda: Result((), (), confidence=1.0), "confidence"),
    ):
        with pytest.raises(InvalidQuery, match=words):
            call()


def test_frames_are_loaded_only_when_asked_for() -> None:
    code = (
        "import sys, sulq.sql.evaluate.result;"
        "sys.exit(bool({'pandas', 'polars', 'pyarrow'} & set(sys.modules)))"
    )
    where = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], check=False, env=where).returncode == 0
