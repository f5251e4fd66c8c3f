"""The file of an answer: every row, and nothing that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from sulq.server.console.ask.answer_files import csv_of, sheet_of

MORE = ["credits", "confidence", "receipt", "note"]
TOLD = ["2.5", "95 %", "#0007 #0008", ""]


def text_of(rows: list[tuple[Any, ...]], *names: str) -> list[list[str]]:
    columns = [SimpleNamespace(name=name, is_key=True) for name in names]
    result: Any = SimpleNamespace(columns=columns, rows=rows, confidence=Fraction(95, 100))
    reply: Any = SimpleNamespace(receipts=[7, 8], credits=2.5)
    return list(csv.reader(io.StringIO(csv_of(sheet_of(result, reply)))))


def test_every_row_is_in_the_file() -> None:
    lines = text_of([(f"ward {place}",) for place in range(1_200)], "ward")
    assert lines[0] == ["ward", *MORE] and len(lines) == 1_201
    assert lines[-1] == ["ward 1199", *TOLD]


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "@SUM(A1)", "-x", "\tx", "=1,2\n3"])
def test_what_a_spreadsheet_would_run_is_quoted(text: str) -> None:
    assert text_of([(text,)], text) == [[f"'{text}", *MORE], [f"'{text}", *TOLD]]


@pytest.mark.parametrize("text", ["-5", "-2.5e-3", "North", 'a "b", c', ""])
def test_numbers_and_plain_texts_stay_as_they_are(text: str) -> None:
    assert text_of([(text,)], "key")[1][0] == text
