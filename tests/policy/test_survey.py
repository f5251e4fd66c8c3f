"""What `sulq init` finds out about a file: spelling, flags, dates, marks, identifiers, units."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.kernel.engines.test_workbooks import NEEDS, workbook

from sulq.errors import InvalidQuery
from sulq.kernel.engines.engine import open_engine
from sulq.policy import TablePolicy, read_policy
from sulq.policy.files import add_table
from sulq.policy.survey import Survey, sniff_column


def surveyed(path: Path, **given: Any) -> tuple[TablePolicy, dict[str, str], dict[str, str]]:
    survey = Survey(path, **given)
    try:
        table, notes = survey.policy("t", path.name, "t.ledger", from_data=False)
        return table, notes, survey.types
    finally:
        survey.close()


def rules(path: Path) -> dict[str, Any]:
    reading = surveyed(path)[0].reading
    return {} if reading is None else reading.rules


def written(tmp_path: Path, content: str | bytes, name: str = "t.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.sample(12)
@pytest.mark.parametrize(
    ("content", "found", "types"),
    [
        ("a,b\n1,x\n2,y\n", {}, "BIGINT VARCHAR"),
        ("a, b\n1, x\n2, y\n", {"delimiter": ", "}, "BIGINT VARCHAR"),
        ('a, b\n1, "x, z"\n2, y\n', {"delimiter": ", "}, "BIGINT VARCHAR"),
        ("a ,b\n1 ,x\n2,y\n", {"trim": True}, "BIGINT VARCHAR"),
        ("a\tb\n1\tx\n2\ty\n", {"delimiter": "\t"}, "BIGINT VARCHAR"),
        ("a;b\n1,5;x\n2;y\n", {"delimiter": ";", "decimal": ","}, "DOUBLE VARCHAR"),
        ('a,b\n"0,125",x\n"2,250",y\n', {"decimal": ","}, "DOUBLE VARCHAR"),
        ('a,b\n"1,250",x\n"12,250",y\n', {"thousands": ","}, "BIGINT VARCHAR"),
        (
            "a;b\n1.250,5;x\n1,5;y\n",
            {"delimiter": ";", "decimal": ",", "thousands": "."},
            "DOUBLE VARCHAR",
        ),
        ("a,b\n31.05.2016,1\n01.02.2017,2.5\n", {"dates": ("%d.%m.%Y",)}, "DATE DOUBLE"),
        ("a,b\n05/31/2016,1\n1/2/2017,2\n", {"dates": ("%m/%d/%Y",)}, "DATE BIGINT"),
        ("a,b\n31/05/2016,1\n1/2/2017,2\n", {"dates": ("%d/%m/%Y",)}, "DATE BIGINT"),
        ("a,b\n31.05.2016 10:00,1\n", {"dates": ("%d.%m.%Y %H:%M",)}, "TIMESTAMP BIGINT"),
        ("a,b\n2016-05-31,2016-05-31T10:00:00Z\n", {}, "DATE TIMESTAMP"),
        ("a,b\n1,NA\n?,x\n-,y\n", {"missing": ("?", "NA", "-")}, "BIGINT VARCHAR"),
        ("a,b\n1,NA\n2,DE\n3,FR\n", {}, "BIGINT VARCHAR"),  # Namibia
        ("a,b\n0,yes\n1,no\n,yes\n", {}, "BOOLEAN BOOLEAN"),
        ("a,b\nF,1\nM,2\n", {}, "VARCHAR BIGINT"),
        (",b\n5,x\n6,y\n", {"delimiter": ",", "names": ("column_1", "b")}, "BIGINT VARCHAR"),
        ("b,B\n5,x\n6,y\n", {"delimiter": ",", "names": ("b", "B_2")}, "BIGINT VARCHAR"),
        (
            "7,x\n8,y\n",
            {"delimiter": ",", "header": False, "names": ("column_1", "column_2")},
            "BIGINT VARCHAR",
        ),
        (
            "x,y\nx,y\nx,y\n",
            {"delimiter": ",", "header": False, "names": ("column_1", "column_2")},
            "VARCHAR VARCHAR",
        ),
        ("year,2019\n1,5\n2,7\n", {}, "BIGINT BIGINT"),
    ],
)
def test_how_a_file_is_read_is_found_out(
    tmp_path: Path, content: str, found: dict[str, Any], types: str
) -> None:
    path = written(tmp_path, content)
    assert rules(path) == found
    assert list(surveyed(path)[2].values()) == types.split()


@pytest.mark.parametrize(
    ("encoding", "text"), [("cp1252", "Köln €"), ("utf-16", "Köln"), ("utf-8", "Köln")]
)
def test_encodings_are_found_out(tmp_path: Path, encoding: str, text: str) -> None:
    path = written(tmp_path, f"a,b\n1,{text}\n2,y\n".encode(encoding))
    assert rules(path).get("encoding", "utf-8") == encoding
    path = written(tmp_path, b"a,b\n1,\x81\xff\n2,y\n")
    assert rules(path)["encoding"] == "latin-1"


def test_what_was_found_out_opens_as_written(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "Geburt;Gewicht;raucht;Ort\n31.05.1970;62,5;1;Köln\n01.02.1980;71,0;0;?\n".encode("cp1252"),
        "de.txt",
    )
    table, notes, _ = surveyed(path)
    add_table(tmp_path / "sulq.toml", table, notes)
    text = (tmp_path / "sulq.toml").read_text("utf-8")
    for value in ("1970", "62", "71", "Köln", "Bonn"):
        assert value not in text
    for column, open_, said in (
        ("Geburt", 'number = ["?", "?"]', "number = [1900-01-01, 2030-01-01]"),
        ("Gewicht", 'number = ["?", "?"]', "number = [0, 200]"),
        ("Ort", 'category = ["?"]', 'category = ["Köln"]'),
    ):
        text = text.replace(f"columns.{column} = {{{open_}", f"columns.{column} = {{{said}")
    (tmp_path / "sulq.toml").write_text(text, "utf-8")
    ready = read_policy(tmp_path / "sulq.toml")["t"]
    engine = open_engine(ready.rows, ready.schema())
    assert engine.size() == 2
    engine.close()


def test_dates_that_tell_neither_day_nor_month_are_said(tmp_path: Path) -> None:
    _, notes, _ = surveyed(written(tmp_path, "a,b\n01/02/2016,1\n03/04/2017,2\n"))
    assert "whether the day or the month comes first" in notes["a"]
    assert sniff_column(["01/02/2016"], european=True).dates == "%d/%m/%Y"
    assert not sniff_column(["01.02.2016"]).doubtful


VISITS = "AppointmentID,PatientId,admission_type_id,age\n" + "".join(
    f"{5000 + i},{900_000 + 7 * (i % 150)},{i % 8},{20 + i % 50}\n" for i in range(400)
)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_id_that_repeats_is_proposed_as_the_unit(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, VISITS)
    if kind == "parquet":
        duckdb.read_csv(str(path)).write_parquet(str(tmp_path / "t.parquet"))
        path = tmp_path / "t.parquet"
    table, notes, _ = surveyed(path)
    assert (table.unit, table.max_rows) == ("PatientId", 4)
    assert [column.name for column in table.columns] == ["admission_type_id", "age"]
    assert set(notes) == {"AppointmentID", "PatientId"}


def test_one_row_per_id_keeps_the_unit_at_row(tmp_path: Path) -> None:
    rows = "".join(f"{i},{i % 3},n{i % 9}\n" for i in range(200))
    table, notes, _ = surveyed(written(tmp_path, "patient_nbr,x,surname\n" + rows))
    assert table.unit == "row"
    assert "patient_nbr" in notes
    table, _, _ = surveyed(
        written(tmp_path, "x,full_name\n" + "".join(f"{i % 3},Ann {i // 2}\n" for i in range(300)))
    )
    assert table.unit == "row"  # two people may have one name


def test_nearly_unique_columns_are_hidden_and_say_how_to_show_them(tmp_path: Path) -> None:
    rows = "".join(f"{i * 37},{i % 3},{i / 7}\n" for i in range(200))
    table, notes, _ = surveyed(written(tmp_path, "income,x,weight\n" + rows))
    assert [column.name for column in table.columns] == ["x", "weight"]
    assert (
        'columns.income = {number = ["?", "?"], step = 1, identifier_ok = true}' in notes["income"]
    )


def test_the_file_is_read_once(tmp_path: Path) -> None:
    """A survey that went back to the file for every column took 15 s of CPU for 19 MB."""
    path = written(tmp_path, VISITS)
    survey = Survey(path)
    path.unlink()
    assert survey.rows() == 400
    table, _ = survey.policy("t", "t.csv", "t.ledger", from_data=True)
    assert next(c for c in table.columns if c.name == "age").facts["number"] == [20, 69]
    survey.close()


def test_a_workbook_with_one_sheet_needs_no_name(tmp_path: Path) -> None:
    pytest.importorskip(NEEDS)
    rows: list[list[object]] = [["x", "when"], [1.5, "31.05.2016"], ["?", "01.06.2016"]]
    path = workbook(tmp_path / "t.xlsx", people=rows)
    table, _, types = surveyed(path)
    assert table.reading is not None
    assert table.reading.rules == {
        "sheet": "people",
        "missing": ("?",),
        "dates": ("%d.%m.%Y",),
    }
    assert types == {"x": "DOUBLE", "when": "DATE"}
    path = workbook(tmp_path / "t.xlsx", people=rows, more=rows)
    with pytest.raises(InvalidQuery, match=r"\['people', 'more'\]; say which with --sheet"):
        Survey(path)
    assert surveyed(path, sheet="more")[2] == types


def test_long_files_are_counted_by_some_of_their_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, VISITS)
    duckdb.read_csv(str(path)).write_parquet(str(tmp_path / "t.parquet"))
    monkeypatch.setattr("sulq.policy.survey.MOST_COUNTED", 50)
    table, notes, _ = surveyed(tmp_path / "t.parquet")
    assert table.unit == "PatientId"
    assert set(notes) == {"AppointmentID", "PatientId"}


def test_a_flag_about_an_address_is_no_address(tmp_path: Path) -> None:
    table, notes, _ = surveyed(written(tmp_path, "email,x\n0,5\n1,6\n1,7\n"))
    assert [column.name for column in table.columns] == ["email", "x"]
    assert not notes
