"""One declared sheet of a workbook, read as CSV is."""

from __future__ import annotations

import datetime
import sys
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from sulq.errors import InvalidQuery
from sulq.kernel.engines.duckdb.workbooks import XlsxFile, sheets
from sulq.kernel.engines.engine import open_engine
from sulq.kernel.schema.columns import Category, Flag, Number, Schema
from sulq.kernel.schema.program import Always, CategoryCells, Fixed, FlagBit, Quantised, RowSums

SCHEMA = Schema(
    Number("x", 0, 100),
    Number("d", datetime.date(1970, 1, 1), datetime.date(2099, 1, 1)),
    Flag("f"),
    Category("c", ["a", "b, c"]),
)
NEEDS = "python_calamine"


def workbook(path: Path, **rows: list[list[object]]) -> Path:
    """A small .xlsx file: sheets by name; dates are text or days since 1899-12-30 (style 1)."""
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    links = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    packed = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"

    def cell(place: str, value: object) -> str:
        match value:
            case None:
                return ""
            case bool():
                return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
            case datetime.date():
                day = (value - datetime.date(1899, 12, 30)).days
                return f'<c r="{place}" s="1"><v>{day}</v></c>'
            case str() if value.startswith("#"):
                return f'<c r="{place}" t="e"><v>{value}</v></c>'
            case str():
                return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
        return f'<c r="{place}"><v>{value}</v></c>'

    def sheet(lines: list[list[object]]) -> str:
        body = "".join(
            f'<row r="{n}">{"".join(cell(f"{chr(65 + i)}{n}", v) for i, v in enumerate(row))}</row>'
            for n, row in enumerate(lines, start=1)
        )
        return f"<worksheet {main}><sheetData>{body}</sheetData></worksheet>"

    numbered = list(enumerate(rows, start=1))
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{packed}/content-types"><Default Extension="rels"'
        ' ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{packed}/relationships"><Relationship Id="r1"'
        f' Type="{links}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {main} xmlns:r="{links}"><sheets>'
        + "".join(f'<sheet name="{name}" sheetId="{n}" r:id="r{n}"/>' for n, name in numbered)
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{packed}/relationships">'
        + "".join(
            f'<Relationship Id="r{n}" Type="{links}/worksheet" Target="worksheets/s{n}.xml"/>'
            for n, _ in numbered
        )
        + f'<Relationship Id="st" Type="{links}/styles" Target="styles.xml"/></Relationships>',
        "xl/styles.xml": f'<styleSheet {main}><cellXfs count="2"><xf numFmtId="0"/>'
        '<xf numFmtId="14" applyNumberFormat="1"/></cellXfs></styleSheet>',
    }
    with zipfile.ZipFile(path, "w") as file:
        for name, text in parts.items():
            file.writestr(name, text)
        for n, name in numbered:
            file.writestr(f"xl/worksheets/s{n}.xml", sheet(rows[name]))
    return path


def read(source: object) -> list[int]:
    """Rows, hundredths of x, days, flags, and rows by category."""
    engine = open_engine(source, SCHEMA)
    try:
        terms = (
            Fixed(1),
            Quantised("x", 0.0, 100.0, 100.0),
            Quantised("d", 0.0, 50000.0, 1.0),
            FlagBit("f"),
        )
        cells = CategoryCells("c", ("a", "b, c"), other=False)
        return [
            *engine.exact_sums(RowSums(Always(), terms)),
            *engine.exact_sums(RowSums(Always(), (Fixed(1),), (cells,))),
        ]
    finally:
        engine.close()


HEAD: list[object] = ["x", "d", "f", "c"]
DAY = datetime.date(2016, 5, 31)
DAYS = (DAY - datetime.date(1970, 1, 1)).days


def test_a_sheet_is_read_as_declared(tmp_path: Path) -> None:
    pytest.importorskip(NEEDS)
    path = workbook(
        tmp_path / "t.xlsx",
        notes=[["nothing"]],
        people=[
            HEAD,
            [1.5, DAY, True, "a"],
            [],
            ["2,5", "31.05.2016", False, "b, c"],
            ["?", "#N/A", None, 'say "x"\nand y'],
            [None, None, None, "a"],
        ],
    )
    assert sheets(path) == ["notes", "people"]
    declared = XlsxFile(path, "people", missing="?", dates="%d.%m.%Y")
    assert read(declared) == [4, 150, 2 * DAYS, 1, 2, 1]
    assert declared.rules == {"sheet": "people", "missing": ("?",), "dates": ("%d.%m.%Y",)}


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    pytest.importorskip(NEEDS)
    path = workbook(tmp_path / "t.xlsx", people=[["a", "A"], ["secret-1", 2]], none=[])
    for sheet, said in (
        ("other", "has no sheet 'other'"),
        ("people", "a different name for every"),
        ("none", "a different name for every"),
    ):
        with pytest.raises(InvalidQuery, match=said) as caught:
            read(XlsxFile(path, sheet))
        assert "secret" not in str(caught.value)
    broken = tmp_path / "b.xlsx"
    broken.write_bytes(b"PK secret-1")
    with pytest.raises(InvalidQuery, match=r"not a readable \.xlsx") as caught:
        read(XlsxFile(broken, "people"))
    assert caught.value.__context__ is None
    with pytest.raises(InvalidQuery, match="name one sheet"):
        XlsxFile(path)


def test_without_the_extra_the_error_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, NEEDS, None)
    path = workbook(tmp_path / "t.xlsx", people=[HEAD])
    with pytest.raises(InvalidQuery, match=r"sulq\[xlsx\]"):
        read(XlsxFile(path, "people"))
