"""Charts of answers: upright where there is an order, a cross table for two keys, and as files."""

from __future__ import annotations

import datetime
import xml.etree.ElementTree as ET
import zipfile
from io import BytesIO
from typing import Any

from sulq.kernel.noise.laws import DiscreteGaussian
from sulq.kernel.schema.columns import Category, Number, Schema, plural
from sulq.server.console.ask.answer import _folded, labelled, names_of
from sulq.server.console.ask.answer_charts import figure_views
from sulq.server.console.ask.answer_files import sheet_of, workbook
from sulq.server.console.charts import Bar, Series, error_bars, lying_bars, upright_bars
from sulq.server.console.labels import Figure, Shape
from sulq.sql.evaluate.linear_forms import Estimate, Noisy
from sulq.sql.evaluate.result import Result, ResultColumn
from sulq.wire import sql_reply

LAW = DiscreteGaussian(10**2)
BAD = "<script>alert(1)</script>"


def count(name: object, value: float) -> Estimate:
    return Noisy.draw(name, value, LAW, 1, 0.0, 30_000)


def result_of(keys: list[Any], *names: str, values: list[float] | None = None) -> Result:
    """One count for every key."""
    columns = (*(ResultColumn(name, is_key=True) for name in names), ResultColumn("n"))
    told = values or [500.0 + 10 * at for at in range(len(keys))]
    rows = [
        (*(key if isinstance(key, tuple) else (key,)), count(at, value))
        for at, (key, value) in enumerate(zip(keys, told, strict=True))
    ]
    return Result(columns, tuple(rows))


def shape_of(*groups: str, **more: Any) -> Shape:
    figure = Figure("n", "count", "rows", True, True, "", None, "count", said="number of patients")
    return Shape((figure,), groups, 4, True, **more)


def drawn(result: Result, *groups: str) -> str:
    (one,) = figure_views(result, shape_of(*groups))
    return str(one.chart)


def test_what_has_an_order_stands_upright_and_days_are_points() -> None:
    bands = drawn(result_of([0, 10, 20, None], "age_from"), "age_from")
    assert bands.count('class="body"') == 3 and 'height="246"' in bands
    days = [datetime.date(2026, month, 1) for month in (1, 2, 3)]
    points = drawn(result_of(days, "month"), "month")
    assert points.count('class="point"') == 3 and 'class="body"' not in points
    assert "<path" in points and "polyline" not in points  # no line joins them
    words = drawn(result_of(["Oslo", "Paris"], "city"), "city")
    assert words.count("<circle") == 2 and words.count('class="body"') == 2  # lying


def test_two_keys_are_a_cross_table_and_grouped_bars() -> None:
    keys = [(age, sex) for age in (0, 20, 40) for sex in ("F", "M")]
    (one,) = figure_views(result_of(keys, "age", "sex"), shape_of("age", "sex"))
    assert one.cross is not None and one.cross.across == ("F", "M")
    assert [name for name, _ in one.cross.rows] == ["0", "20", "40"]
    assert one.cross.rows[1][1][0].value == "520"
    chart = str(one.chart)
    assert chart.count('class="body"') == 6 and 'class="s2"' in chart
    assert "row legend" in chart  # each series has a sign of its own beside its colour
    turned = [(sex, age) for age in (0, 20, 40) for sex in ("F", "M")]
    (other,) = figure_views(result_of(turned, "sex", "age"), shape_of("sex", "age"))
    assert other.cross is not None and other.cross.across == ("F", "M")  # bands go down
    many = [(a, b) for a in "xyz" for b in ("p", "q", "r", "s", "t")]
    (lying,) = figure_views(result_of(many, "a", "b"), shape_of("a", "b"))
    assert "legend" not in str(lying.chart) and str(lying.chart).count("<circle") == 15


def test_what_says_nothing_is_folded() -> None:
    keys = [("a", "F"), ("a", None), ("b", "F"), (None, "F"), (None, None)]
    result = result_of(keys, "key", "sex", values=[500, 0, 600, 1, -1])
    told, nothing = _folded(result, [0, 1], [2], shape_of("key", "sex"))
    assert [row.keys[0] for row in told] == ["a", "b"] and len(nothing) == 3
    lone = result_of(["a", "b", None], "key", values=[500, 600, 0])
    assert _folded(lone, [0], [1], shape_of("key"))[1] == ()  # one row is no crowd


def test_long_names_are_wrapped_and_everything_is_escaped() -> None:
    name = "Married, spouse in the armed forces"
    chart = error_bars([Bar(name, 5, 4, 6), Bar(BAD, 3, 2, 4)], BAD, BAD)
    text = str(chart)
    assert "armed forces" in text and "…" not in text and BAD not in text
    assert "style=" not in text


def test_a_chart_as_a_file_stands_alone() -> None:
    series = [Series(BAD, (Bar("0", 5, 4, 6), None)), Series("M", (Bar("0", 3, 2, 4), None))]
    for chart in (
        upright_bars(["0", "1"], series, BAD, BAD),
        lying_bars(["0", "1"], series, BAD, BAD),
    ):
        text = chart.file(f"Stay {BAD}", [f"Receipt #0007 {BAD}"])
        root = ET.fromstring(text)
        assert root.tag == "{http://www.w3.org/2000/svg}svg" and BAD not in text
        assert not [one for one in root.iter() if one.tag.endswith("script")]
        assert "url(" not in text and "href" not in text
        assert "Receipt #0007" in "".join(root.itertext())


def test_values_have_their_labels_and_a_row_its_name() -> None:
    codes = Category("dx", ["I21", "C50"], labels={"I21": "infarction", "C50": BAD})
    result = result_of([("I21", "F"), ("C50", "M"), (None, "F")], "dx", "sex")
    shape = shape_of("dx", "sex", labels=(codes, None))
    assert names_of(labelled(result, shape)) == [
        "I21: infarction (F)",
        f"C50: {BAD} (M)",
        "other or missing (F)",
    ]
    lines = sheet_of(result, sql_reply(result), "", shape.labels)
    assert lines[0][:3] == ["dx", "dx_label", "sex"] and lines[1][:3] == ["I21", "infarction", "F"]


def test_a_workbook_holds_numbers_and_texts_and_no_formula() -> None:
    made = workbook([("A", [["=1+1", "5.5", "-3", "007", "a\x00<b>"]]), ("B", [["x"]])])
    assert made == workbook([("A", [["=1+1", "5.5", "-3", "007", "a\x00<b>"]]), ("B", [["x"]])])
    with zipfile.ZipFile(BytesIO(made)) as file:
        assert file.testzip() is None
        for name in file.namelist():
            ET.fromstring(file.read(name))
        sheet = file.read("xl/s1.xml").decode()
    assert "<f>" not in sheet and "<v>5.5</v>" in sheet and "<v>-3</v>" in sheet
    assert ">007<" in sheet and "&lt;b&gt;" in sheet and "\x00" not in sheet
    calamine = __import__("pytest").importorskip("python_calamine")
    read = calamine.CalamineWorkbook.from_filelike(BytesIO(made))
    assert read.sheet_names == ["A", "B"]
    assert read.get_sheet_by_name("A").to_python()[0][:4] == ["=1+1", 5.5, -3.0, "007"]


def test_words_of_the_schema_are_used() -> None:
    schema = Schema(
        Number("stay", 0, 60, about="length of stay", measured_in="days"), person_word="patient"
    )
    assert (schema.each, schema.who) == ("patient", "patients")
    assert [plural(word) for word in ("diagnosis", "city", "box")] == [
        "diagnoses",
        "cities",
        "boxes",
    ]
