"""Rows that an adversary chooses by earlier answers, while a table grows.

Parallel composition over parts fails for approximate promises where an adversary moves people
between the parts by what was answered (arXiv 2411.03299). Here growth levels all accounts, so that
whatever path a person takes through the strata is charged as one sequence: docs/proofs/ledger.md.
"""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from typing import Any

import pandas as pd
import pytest

from sulq import BudgetSpent, Category, Database, Flag, Promise, Schema, col, count
from sulq.kernel.ledger.budget import Budgets

PLACES = ["a", "b", "c"]
SCHEMA = Schema(Category("place", PLACES, public=True), Flag("ill"), strata=["place"])
PROMISE = Promise(1, "1e-6", queries=12)


def rows(version: int, target: str) -> pd.DataFrame:
    """Everybody else, and last the person who is moved from place to place."""
    many = 20 + version
    others = pd.DataFrame({"place": PLACES * many, "ill": [True, False, False] * many})
    return pd.concat([others, pd.DataFrame({"place": [target], "ill": [True]})], ignore_index=True)


def lost(level: bool, monkeypatch: pytest.MonkeyPatch) -> Fraction:
    """What the person lost, of all that the adversary could get: each answer decides where the
    person's row is sent next, always to an account that has something left."""
    if not level:
        monkeypatch.setattr(Budgets, "level", lambda _: None)
    place, paid = "a", Fraction(0)
    db: Any = Database.open(rows(0, place), SCHEMA, PROMISE, ":memory:", publish=True)
    for version in range(1, 4):
        with suppress(BudgetSpent):
            paid += db.ask(count(where=(col("place") == place) & col("ill")), credits=11).credits
        answer = float(db.ask(count(where=col("place") == place)).value)  # public, exact
        place = PLACES[version % 3] if answer >= 0 else place
        if version < 3:
            db = db.grow(rows(version, place), reason="rows of the adversary's choice")
    db.close()
    return paid


def test_whatever_path_a_person_takes_is_one_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Fraction(10) < lost(True, monkeypatch) <= 12


def test_without_levelling_every_place_pays_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The counterexample: three places, three times what was promised."""
    assert lost(False, monkeypatch) > 24
