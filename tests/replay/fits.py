"""Learners, split tables and exact release in a frozen world: what takes many answers at once."""

from __future__ import annotations

import pickle
import random
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from tests import people
from tests.database import test_exact
from tests.federation import test_rows, test_secure
from tests.learn.test_every_learner import LEARNERS
from tests.replay.paths import Asked, replay
from tests.replay.world import World, shown

from sulq import Database, Promise, SulqError, col, count, total
from sulq.federation import split_rows

LOUD = Promise(8, "1e-6", queries=400)


def changed(frame: pd.DataFrame, rng: random.Random, values: dict[str, list[Any]]) -> pd.DataFrame:
    """One row replaced by the worst there is, in its private columns."""
    other, at = frame.copy(), rng.randrange(len(frame))
    for name, worst in values.items():
        other[name] = other[name].astype(object)
        other.loc[other.index[at], name] = rng.choice(worst)
    return other


def same_types(frame: pd.DataFrame, like: pd.DataFrame) -> pd.DataFrame:
    """Nullable columns of the first table's types: a file's types are public."""
    nullable = {"int64": "Int64", "bool": "boolean", "float64": "float64"}
    return frame.astype({name: nullable.get(str(kind), kind) for name, kind in like.dtypes.items()})


WORST = {
    "age": [None, 0, 120, -7, 10**6],
    "income": [np.nan, np.inf, -np.inf, 0.0, 500_000.0, 1e300],
    "smoker": [None, True, False],
    "blood": [None, "A", "?", "0"],
}


def learners(seed: int, near: int) -> int:
    """One learner on a table and its neighbours: with equal releases, equal models."""
    rng, base = random.Random(f"learner {seed}"), people.frame(120, seed)
    name = sorted(LEARNERS)[seed % len(LEARNERS)]
    learner, features, label = LEARNERS[name]
    tables = [base, *(changed(base, rng, WORST) for _ in range(near))]

    def play(world: World, table: pd.DataFrame) -> None:
        with people.publish(table, promise=LOUD) as db:
            asked, made = Asked(world, db), clone(learner).set_params(on_noise="warn")

            def fit() -> None:
                np.random.seed(1)
                with warnings.catch_warnings(record=True) as said:
                    warnings.simplefilter("always")
                    try:
                        made.fit(db, features, label)
                    finally:
                        world.see(*(f"warned {one.message}" for one in said))

            asked.step(fit)
            world.see(*fitted(made))
            asked.end()

    return replay(f"{name} {seed}", [same_types(one, base) for one in tables], play)


def fitted(model: Any) -> list[str]:
    """Whatever a fit has left behind."""
    found = []
    for name, value in sorted(vars(model).items()):
        if isinstance(value, np.ndarray):
            found.append(f"{name} {value.shape} {value.tobytes().hex()}")
            continue
        try:
            found.append(f"{name} {pickle.dumps(value).hex()}")
        except (TypeError, AttributeError, pickle.PicklingError):
            found.append(f"{name} {value!r}")
    return found


def in_turn(_: object, work: Any, *given: Any, **named: Any) -> Future[Any]:
    done: Future[Any] = Future()
    try:
        done.set_result(work(*given, **named))
    except SulqError as error:
        done.set_exception(error)
    return done


def federation(seed: int, near: int) -> int:
    """Three owners, one of whom has a neighbouring table; added in the open or under masks."""
    rng = random.Random(f"federation {seed}")
    secure = seed % 3 > 0
    promise = test_secure.PURE if seed % 2 else test_secure.GAUSSIAN
    frames = [test_rows.frame(30, seed + place) for place in range(3)]
    worst = {"age": [0, 119, -5], "income": [np.nan, np.inf, 5500.0], "ill": [None, True, False]}
    worst["city"] = [None, "a", "?"]
    place = rng.randrange(3)
    tables = [frames]
    for _ in range(near):
        other = same_types(changed(frames[place], rng, worst), frames[place])
        tables.append([*frames[:place], other, *frames[place + 1 :]])
    tables[0] = [same_types(one, one) if at == place else one for at, one in enumerate(frames)]

    def play(world: World, several: list[pd.DataFrame]) -> None:
        draw = random.Random(f"federation {seed} play")
        owners = (
            test_secure.opened(promise, several) if secure else test_rows.opened(promise, several)
        )
        split = split_rows(*owners, secure=secure)
        for _ in range(6):
            question = draw.choice(test_rows.QUESTIONS)
            with pytest.MonkeyPatch.context() as patch:  # in turn: which thread is first is chance
                patch.setattr(ThreadPoolExecutor, "submit", in_turn)
                world.step(partial(split.ask, question, **draw.choice([{}, {"credits": 2}])))
            world.see([owner.remaining for owner in owners])
        for owner in owners:
            Asked(world, owner).end()
            owner.close()

    return replay(f"federation {seed} {'secure' if secure else 'open'}", tables, play)


EXACT_ROWS = 20_000


def exact(seed: int, near: int) -> int:
    """Sums without noise: all but the sums is equal, and all of it where the sums are."""
    rng = random.Random(f"exact {seed}")
    base = test_exact.people(EXACT_ROWS, seed)
    private = rng.choice([["pay"], ["pay", "ill", "smoker", "visits"]])
    worst = {"pay": [None, 0.0, 1e9], "ill": [True, False], "smoker": [True, False, None]}
    worst["visits"] = [0, 5, 9]
    chosen = {name: worst[name] for name in private}
    tables = [base, *(changed(base, rng, chosen) for _ in range(near))]
    hidden = len(private) > 1

    def play(world: World, table: pd.DataFrame) -> None:
        draw = random.Random(f"exact {seed} play")
        with test_exact.published(table) as db:
            batches = [
                [test_exact.ILL],
                [test_exact.ILL, test_exact.ILL_SMOKERS],
                [total("visits")],
                [count(where=col("visits") >= 3), test_exact.ILL],
                [count(where=col("pay") > 5)],
            ]
            for _ in range(5):
                batch = draw.choice(batches)
                world.step(partial(db.quote_exactly, batch))
                world.step(partial(_released, db, batch, hidden))
                if not hidden:
                    world.step(
                        partial(
                            db.ask,
                            count(
                                where=draw.choice(
                                    [col("smoker"), col("pay") > 5, col("visits") < 2]
                                )
                            ),
                        )
                    )
                world.see(f"remaining {db.remaining}", db.declaration)

    return replay(f"exact {seed}", [same_types(one, base) for one in tables], play)


def _released(db: Database, batch: list[Any], hidden: bool) -> list[Any]:
    found: list[Any] = []
    for answer in db.ask_exactly(batch):
        if hidden:
            found += [answer.credits, answer.guarantee, answer.terms, answer.note, answer.kind]
        else:
            found += list(shown(answer))
    return found


SEVERAL = {"learners": learners, "federation": federation, "exact": exact}
"""Paths on which one act takes many answers."""
