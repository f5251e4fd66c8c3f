"""An answer that was told stays the answer: later answers change no repeat, and none costs."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from tests.kernel.reuse.test_retries import SCHEMA, people, random_question

from sulq import Database, Promise, Refused, col, count, histogram, mean, quantiles

Told = tuple[Any, object, float, Any]  # who asked, what, how exactly, and the answer
OTHERS = [
    mean("age"),
    quantiles("age", [0.25, 0.5]),
    histogram("age", "city", edges={"age": [0, 60, 120]}),
]


def same(one: Any, other: Any) -> bool:
    return all(
        np.array_equal(mine, yours)
        for mine, yours in zip(
            (one.value, *one.interval(), one.laws, one.sources),
            (other.value, *other.interval(), other.laws, other.sources),
            strict=True,
        )
    )


def check_repeats(db: Database, told: list[Told], patch: pytest.MonkeyPatch) -> None:
    """Everything that was told is told again: as it was, for nothing, without rows or events."""

    def reads(*_: object) -> NoReturn:
        raise AssertionError("rows are read for a repeat")

    with patch.context() as closed:
        for name in ("prepare", "prepare_keys"):
            closed.setattr(db.engine, name, reads)
        for asker, question, credits, answer in told:
            before, left = db.ledger.head, asker.remaining
            again = asker.ask(question, credits=credits)
            assert same(again, answer)
            assert (again.credits, db.ledger.head, asker.remaining) == (0, before, left)


@pytest.mark.sample(3)
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("seed", range(3))
def test_what_was_told_is_told_again_whatever_was_asked_since(
    noise: str, seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Sequences of questions that say much of each other, at changing prices, by three askers."""
    rng, rows = random.Random(seed), people()
    promise = Promise(1, 1e-6 if noise == "gaussian" else 0, 1_000, noise=noise)
    place = tmp_path / "people.ledger"
    with Database.open(rows, SCHEMA, promise, place, name="t", publish=True) as db:
        askers: list[Any] = [db]
        for name in ("ann", "bob"):
            db.grant(name, 200)
            askers.append(db.as_analyst(name))
        told: list[Told] = []
        for _ in range(24):
            asker, credits = rng.choice(askers), rng.choice([0.05, 0.1, 0.3])
            question = rng.choice(OTHERS) if rng.random() < 0.3 else random_question(rng)
            if told and rng.random() < 0.3:  # the same again, more or less exactly
                asker, question = rng.choice(told)[:2]
            told.append((asker, question, credits, asker.ask(question, credits=credits)))
            check_repeats(db, rng.sample(told, min(3, len(told))), monkeypatch)
        check_repeats(db, told, monkeypatch)
    with Database.open(rows, SCHEMA, promise, place, name="t") as db:
        names = {None: db, "ann": db.as_analyst("ann"), "bob": db.as_analyst("bob")}
        opened = [(names[getattr(it[0], "name", None)], *it[1:]) for it in told]
        check_repeats(db, opened, monkeypatch)


def test_a_sharper_combination_is_a_reading_of_its_own() -> None:
    """Who asks for more than was told gets what all answers say; the first answer stays."""
    db, ill = Database.open(people(), SCHEMA, Promise(1, 1e-6), ":memory:"), col("ill")
    first = db.ask(count(where=ill))
    db.ask(count(where=~ill))  # under replace the one says the other
    assert db.quote(count(where=ill), credits=0.5).repeat
    assert same(db.ask(count(where=ill)), first)
    db.ask(histogram("city", where=ill, other=True), credits=2)
    sharper = db.ask(count(where=ill), credits=1.3)
    assert sharper.credits == 0 and len(sharper.sources) > 1
    assert sharper.standard_error < first.standard_error
    assert same(db.ask(count(where=ill)), first)
    assert same(db.ask(count(where=ill), credits=1.3), sharper)


def test_a_new_key_stands_for_what_was_told() -> None:
    db = Database.open(people(), SCHEMA, Promise(1, 1e-6), ":memory:")
    first = db.ask(count(where=col("ill")))
    head = db.ledger.head
    again = db.ask(count(where=col("ill")), key="k")
    assert same(again, first) and again.credits == 0
    assert db.ledger.head == head + 1  # the key is noted
    assert same(db.ask(count(where=col("ill")), key="k"), first) and db.ledger.head == head + 1
    with pytest.raises(Refused):
        db.ask(count(where=~col("ill")), key="k")


def test_a_repeat_charges_nobody_by_construction() -> None:
    """`repeat` tells what this analyst was told, and makes no charge of anything else."""
    db = Database.open(people(), SCHEMA, Promise(1, 1e-6), ":memory:")
    for name in ("ann", "bob"):
        db.grant(name, 10)
    ann = db.as_analyst("ann")
    answer = ann.ask(count(where=col("ill")))
    (entry,) = db.ledger.entries()
    named = (entry.question, entry.digest, entry.noise)
    assert db.ledger.repeat(*named, analyst="ann").values == entry.values
    head = db.ledger.head
    for asker, noise in (("bob", entry.noise), ("ann", entry.noise.replace("1", "2"))):
        with pytest.raises(Refused, match="no longer stored"):
            db.ledger.repeat(entry.question, entry.digest, noise, analyst=asker)
    db.revoke("ann")
    with pytest.raises(Refused):  # who was revoked is told nothing again
        ann.ask(count(where=col("ill")))
    with pytest.raises(Refused):
        db.ledger.repeat(*named, analyst="ann")
    assert db.ledger.head == head + 1 and answer.credits > 0
