"""An answer as a file: every row, each value with its range, price, confidence and receipt.

Values and ranges have the digits of the page. What has no reading there is empty here, so that
no sheet draws it as a finding; the last column says so.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Sequence

from markupsafe import escape

from sulq.answers.display import percent
from sulq.formatting import ordinal, sheet_text
from sulq.kernel.schema.columns import Category
from sulq.server.console.ask.cells import estimate_cell
from sulq.server.console.labels import key_text
from sulq.sql.evaluate.linear_forms import Estimate
from sulq.sql.evaluate.result import Result
from sulq.wire import SqlReply

Labels = Sequence[Category | None]
"""Of each key the column whose values have labels."""


def csv_of(rows: Sequence[Sequence[str]]) -> str:
    """Rows of a sheet as CSV."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def sheet_of(
    result: Result, reply: SqlReply, counted: str = "", labels: Labels = ()
) -> list[list[str]]:
    """Keys, with labels where values have them; value, low and high of each figure; price,
    confidence and receipts of the answer; and what is to be known of the row. `counted` says which
    rows count, on a table of persons."""
    keys = [column.name for column in result.columns if column.is_key]
    labelled = dict(zip(keys, labels, strict=True)) if len(keys) == len(labels) else {}
    heads: list[str] = []
    for column in result.columns:
        more = [] if column.is_key else ["_low", "_high"]
        more += ["_label"] if labelled.get(column.name) is not None else []
        heads += [column.name, *(f"{column.name}{ending}" for ending in more)]
    told = [
        f"{float(reply.credits):.6g}",
        percent(float(result.confidence)),
        " ".join(ordinal(number) for number in reply.receipts),
    ]
    lines = [[*map(sheet_text, heads), "credits", "confidence", "receipt", "note"]]
    for row in result.rows:
        line: list[str] = []
        notes = [counted] if counted else []
        for column, cell in zip(result.columns, row, strict=True):
            if isinstance(cell, Estimate):
                shown = estimate_cell(cell, result.confidence, kind=column.kind)
                line += [shown.raw, shown.low, shown.high]
                notes += [] if shown.text is None else [f"{column.name}: {shown.text}"]
                continue
            line.append(sheet_text(key_text(cell)))
            words = labelled.get(column.name)
            if words is not None:
                line.append(sheet_text(words.labels.get(cell, "")))
            line += [] if column.is_key else ["", ""]
        lines.append([*line, *told, sheet_text("; ".join(notes))])
    return lines


# A workbook is a few XML files in a ZIP file. Its cells are numbers or texts, never formulas.


PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml"
XLSX = f"{KIND}.sheet"
NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d{1,15})?", re.ASCII)
UNWRITABLE = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML cannot hold."""
HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'


def workbook(sheets: Sequence[tuple[str, Sequence[Sequence[str]]]]) -> bytes:
    """Return an Excel file of these sheets; the same sheets give the same bytes."""
    numbered = list(enumerate(sheets, 1))
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels"'
        ' ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{KIND}.sheet.main+xml"/>'
        + "".join(
            f'<Override PartName="/xl/s{n}.xml" ContentType="{KIND}.worksheet+xml"/>'
            for n, _ in numbered
        )
        + "</Types>",
        "_rels/.rels": _relations([("r1", "officeDocument", "xl/workbook.xml")]),
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>'
        + "".join(
            f'<sheet name="{escape(name)}" sheetId="{n}" r:id="r{n}"/>' for n, (name, _) in numbered
        )
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": _relations(
            [(f"r{n}", "worksheet", f"s{n}.xml") for n, _ in numbered]
        ),
        **{f"xl/s{n}.xml": _sheet(rows) for n, (_, rows) in numbered},
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in parts.items():
            file.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), f"{HEAD}{text}")
    return out.getvalue()


def _relations(found: Sequence[tuple[str, str, str]]) -> str:
    lines = (
        f'<Relationship Id="{name}" Type="{OFFICE}/{kind}" Target="{target}"/>'
        for name, kind, target in found
    )
    return f'<Relationships xmlns="{PACKAGE}/relationships">{"".join(lines)}</Relationships>'


def _sheet(rows: Sequence[Sequence[str]]) -> str:
    lines = (f"<row>{''.join(map(_cell, row))}</row>" for row in rows)
    return f'<worksheet xmlns="{MAIN}"><sheetData>{"".join(lines)}</sheetData></worksheet>'


def _cell(text: str) -> str:
    if NUMBER.fullmatch(text):
        return f"<c><v>{text}</v></c>"
    said = escape(UNWRITABLE.sub("�", text))
    return f'<c t="inlineStr"><is><t xml:space="preserve">{said}</t></is></c>'
