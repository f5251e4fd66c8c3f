"""The last questions of a ledger, read from a private copy: the ledger may be in use."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import deque
from fractions import Fraction
from pathlib import Path
from typing import Any

from sulq.accounting.losses import CREDIT
from sulq.cli.screen import credits_text
from sulq.errors import Refused
from sulq.ledger.charges import from_json, loss_from_json
from sulq.ledger.inspection import verified_rows
from sulq.ledger.places import is_shared
from sulq.ledger.sqlite import SqliteStore
from sulq.ledger.store import Row
from sulq.query.spelling import question_text

LONGEST = 120


def recent_questions(
    path: Path | str, table: str, most: int, individual: bool = False
) -> list[dict[str, Any]]:
    """The newest charges, oldest first: who asked what, in canonical spelling, for how much.

    With individual accounting people pay by what they add; told is the most that one can."""
    rows = verified_rows(path) if is_shared(path) else _copied_rows(path)
    bodies = ((row.seq, json.loads(row.body)) for row in rows)
    charges = (
        _line(number, body, individual)
        for number, body in bodies
        if body["kind"] in ("charge", "release") and body["table"] == table
    )
    return list(deque(charges, maxlen=max(0, most)))


def _copied_rows(path: Path | str) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="sulq-") as private:  # mode 0700
        copy = Path(private) / "ledger"
        for end in ("", "-wal"):
            source = Path(f"{path}{end}")
            if source.exists():
                shutil.copyfile(source, f"{copy}{end}")
        try:
            store = SqliteStore(copy)
        except Refused:  # torn by the holder's writing; `inspect` has verified a whole one
            return []
        try:
            return list(store.rows())
        finally:
            store.close(tidy=False)


def _line(number: int, body: dict[str, Any], individual: bool) -> dict[str, Any]:
    most = max((part.loss.credits for part in from_json(body["charges"])), default=0)
    if individual:
        most = loss_from_json(body["share"]).credits
    credits = Fraction(most, CREDIT)
    return {
        "number": number,
        "analyst": body["analyst"],
        "credits": credits,
        "credits_text": credits_text(credits).split()[0],
        "question": body["question"],
        "sql": _short(question_text(body["question"])),
    }


def _short(text: str) -> str:
    """Matrices of a learner are long; the question is in the JSON and in the receipt whole."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
