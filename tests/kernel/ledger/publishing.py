"""How the ledger's tests publish a table and spend on it."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from sulq.kernel.accounting.loss import CREDIT, Loss
from sulq.kernel.ledger.events import Charge
from sulq.kernel.ledger.header import Amendment
from sulq.kernel.ledger.ledger import Ledger

ONE = Loss(CREDIT, 0)
PROMISE = '{"epsilon":"1","neighbours":"replace"}'
LARGER = {"schema": "{}", "promise": '{"epsilon":"2","neighbours":"replace"}'}


def credits(number: int, delta: int = 0) -> Loss:
    return Loss(number * CREDIT, delta)


def publish(path: str | Path, *, cap: Loss | None = None, **changes: Any) -> Ledger:
    """The table `people` with one account and a cap of ten credits, unless told otherwise."""
    header: dict[str, Any] = {
        "name": "people",
        "facts": {"schema": "{}", "promise": PROMISE},
        "accounts": ("",),
        "cap": cap if cap is not None else credits(10),
        "fingerprint": None,
        "wait": 0.0,
        "publish": True,
    }
    return Ledger.open(path, **(header | changes))


def pay(journal: Ledger, question: str, /, *, price: Loss = ONE, **changes: Any) -> Charge:
    """Charge `question` at `price` to every account and to the analyst."""
    asked: dict[str, Any] = {
        "question": f'{{"ask":"{question}"}}',
        "digest": question,
        "noise": "n",
        "charges": dict.fromkeys(journal.header.accounts, price),
        "share": price,
        "analyst": "owner",
    }
    return journal.charge(**(asked | changes))


def ask(
    journal: Ledger, question: str, /, *, values: tuple[int, ...] = (7,), **changes: Any
) -> Charge:
    """Charge and, where there is no answer yet, settle."""
    entry = pay(journal, question, **changes)
    return entry if entry.answered else journal.settle(entry, values)


def spent(journal: Ledger) -> Loss:
    return journal.statement().spent


def raised(
    cap: int | Loss = 20,
    scale: str = "2",
    delta: str = "1",
    *,
    keeps: bool = True,
    facts: dict[str, str] = LARGER,
    reason: str = "",
) -> Amendment:
    """Ten credits become twenty smaller ones, unless told otherwise."""
    found = cap if isinstance(cap, Loss) else credits(cap)
    return Amendment(facts, found, Fraction(scale), Fraction(delta), keeps, reason)


def line(journal: Ledger, analyst: str) -> Any:
    return next(line for line in journal.statement().analysts if line.name == analyst)
