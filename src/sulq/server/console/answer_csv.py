"""An answer as a file: every row, each value with its range, price, confidence and receipt.

Values and ranges have the digits of the page. What has no reading there is empty here, so that no
sheet draws it as a finding; the last column says so.
"""

from __future__ import annotations

import csv
import io
import re

from sulq.display import percent
from sulq.server.console.show import estimate_cell
from sulq.server.console.words import key_text
from sulq.shown import ordinal
from sulq.sql.estimates import Estimate
from sulq.sql.result import Result
from sulq.wire import SqlReply

RUN_BY_SHEETS = re.compile(r"[-=+@\t\r]")
"""A text that begins so would be run by a spreadsheet: it gets a quote before it."""


def csv_text(result: Result, reply: SqlReply, counted: str = "") -> str:
    """Keys; value, low and high of each figure; price, confidence and receipts of the answer; and
    what is to be known of the row. `counted` says which rows count, on a table of persons."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    heads: list[str] = []
    for column in result.columns:
        more = ("",) if column.is_key else ("", "_low", "_high")
        heads += [f"{column.name}{ending}" for ending in more]
    told = [
        f"{float(reply.credits):.6g}",
        percent(float(result.confidence)),
        " ".join(ordinal(number) for number in reply.receipts),
    ]
    writer.writerow([*map(_guarded, heads), "credits", "confidence", "receipt", "note"])
    for row in result.rows:
        line: list[str] = []
        notes = [counted] if counted else []
        for column, cell in zip(result.columns, row, strict=True):
            if isinstance(cell, Estimate):
                shown = estimate_cell(cell, result.confidence, kind=column.kind)
                line += [shown.raw, shown.low, shown.high]
                notes += [] if shown.text is None else [f"{column.name}: {shown.text}"]
            else:
                line.append(_guarded(key_text(cell)))
                line += [] if column.is_key else ["", ""]
        writer.writerow([*line, *told, _guarded("; ".join(notes))])
    return out.getvalue()


def _guarded(text: str) -> str:
    return f"'{text}" if RUN_BY_SHEETS.match(text) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", text, re.IGNORECASE) is not None
