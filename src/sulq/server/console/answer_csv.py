"""An answer as a file: every row, each value with its range and the receipt."""

from __future__ import annotations

import csv
import io
import re

from sulq.server.console.words import key_text
from sulq.shown import ordinal
from sulq.sql.estimates import Estimate
from sulq.sql.result import Result
from sulq.wire import SqlReply

RUN_BY_SHEETS = re.compile(r"[-=+@\t\r]")
"""A text that begins so would be run by a spreadsheet: it gets a quote before it."""


def csv_text(result: Result, reply: SqlReply) -> str:
    """Keys, then value, low and high of each figure, then the receipts."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    heads: list[str] = []
    for column in result.columns:
        more = ("",) if column.is_key else ("", "_low", "_high")
        heads += [f"{column.name}{ending}" for ending in more]
    receipts = " ".join(ordinal(number) for number in reply.receipts)
    writer.writerow([*map(_guarded, heads), "receipt"])
    for row in result.rows:
        line: list[str] = []
        for column, cell in zip(result.columns, row, strict=True):
            if isinstance(cell, Estimate):
                bounds = (cell.value, *cell.interval(result.confidence))
                line += [f"{number:.10g}" for number in bounds]
            else:
                line.append(_guarded("" if cell is None else key_text(cell)))
                line += [] if column.is_key else ["", ""]
        writer.writerow([*line, receipts])
    return out.getvalue()


def _guarded(text: str) -> str:
    return f"'{text}" if RUN_BY_SHEETS.match(text) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", text, re.IGNORECASE) is not None
