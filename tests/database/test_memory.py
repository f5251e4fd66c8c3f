"""What a long run leaves in memory: a few bytes for a question, nothing for a repeat."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import pandas as pd
import pytest

from sulq import Category, Database, Flag, Number, Promise, Schema, col, count
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.accounting.pricing import price
from sulq.kernel.ledger.events import PricedRequest

SCHEMA = Schema(
    Number("age", 0, 110, step=1),
    Number("income", 0, 500_000),
    Flag("smoker"),
    Category("region", ["North", "East"]),
)
ROWS = pd.DataFrame(
    {"age": [30, 50], "income": [1.0, 2.0], "smoker": [True, False], "region": ["North", "East"]}
)
PROMISE = Promise(1, "1e-6", 100_000)
WARM, ASKED, BATCH = 100, 300, 50


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("memory")
        patch.setenv("SULQ_STATE", str(home / "state"))
        patch.setattr("sulq.kernel.reuse.store.MOST_KEPT", 500)  # full after the warm-up
        with Database.open(
            ROWS, SCHEMA, PROMISE, home / "ledger", name="people", publish=True
        ) as found:
            found.grant("ann", 50_000)
            yield found


def asked(db: Database) -> list[PricedRequest]:
    """Questions with a threshold of their own each."""
    found = []
    for place in range(WARM + ASKED):
        rich = (col("income") >= 1_000 + 100 * place) & (col("age") >= place % 97)
        bound = db.bind(count(where=rich & col("smoker") if place % 3 else rich))
        noise = price(bound, db.calibration, Fraction(1)).noise
        found.append(PricedRequest(bound.text, bound.digest, noise, {}, Loss.zero()))
    return found


def bytes_each(
    questions: Sequence[PricedRequest], work: Callable[[Sequence[PricedRequest]], None]
) -> float:
    """What stays allocated for each, after a warm-up."""
    tracemalloc.start()
    try:
        for start in range(0, len(questions), BATCH):
            if start == WARM:
                gc.collect()
                before = tracemalloc.get_traced_memory()[0]
            work(questions[start : start + BATCH])
        gc.collect()
        return (tracemalloc.get_traced_memory()[0] - before) / (len(questions) - WARM)
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_a_question_leaves_few_bytes_and_a_repeat_none(db: Database) -> None:
    """Measured: 350 bytes (230 in a longer run), and 0. Before: 4,700, and 600."""
    questions = asked(db)
    wanted = db.bind(count(where=col("age") >= 5))
    cost = price(wanted, db.calibration, Fraction(1))

    def answer(batch: Sequence[PricedRequest]) -> None:
        entries = db.ledger.charge_all(batch, analyst="ann")
        db.ledger.settle_all([(entry, [place]) for place, entry in enumerate(entries)])
        db.reuse.find(wanted, cost, "ann", 0.95)  # which looks through all of them

    def repeat(batch: Sequence[PricedRequest]) -> None:
        for each in batch:
            db.ledger.charge(*each[:5], analyst="ann", key=f"again {each.digest}")
        db.reuse.quoted(wanted, cost, "ann", 0.95)

    assert bytes_each(questions, answer) < 700
    assert bytes_each(questions, repeat) < 40
