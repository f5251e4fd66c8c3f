"""`suggest`: proposals come from priced answers alone, and are sensible on data we know.

Checks on noisy answers leave eight standard errors: a false alarm is far below 1e-6.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from sulq import Category, Database, Flag, InvalidQuery, Number, Promise, Refused, Schema
from sulq.suggest import plan_of, price_of, suggest


def incomes(neighbours: str = "replace", queries: int = 20) -> Database:
    random = np.random.default_rng(2)
    frame = pd.DataFrame(
        {"income": random.lognormal(10.3, 0.5, 50_000), "age": random.integers(20, 66, 50_000)}
    )
    schema = Schema(Number("income", 0, 10_000_000), Number("age", 0, 200, step=1))
    promise = Promise(1, 1e-6, queries=queries, neighbours=neighbours)
    return Database.open(frame, schema, promise, ledger=":memory:")


@pytest.mark.usefixtures("settled")
def test_bounds_close_in_on_the_rows_and_say_what_they_cut() -> None:
    with incomes() as db:
        price = price_of(db, plan_of(db.schema, db.size))
        found = suggest(db)
        assert price == found.credits == 4 == 20 - db.remaining
        income, age = found.bounds
        assert income.proposed[0] == 0
        # 99.9 % lie below 139,000; cells are 9,766 wide, and noise hides some hundred rows
        assert 60_000 <= income.proposed[1] <= 1_000_000
        assert income.error_then == pytest.approx(
            income.error_now * income.proposed[1] / 10_000_000, rel=1e-6
        )
        frame_outside = 50 + 8 * income.outside_error
        assert 0 <= income.outside <= 2 * frame_outside
        assert 10 <= age.proposed[0] <= 20 and 65 <= age.proposed[1] <= 80
        assert suggest(db).credits == 0  # the same questions
        assert db.remaining == 16


def test_a_purse_is_shared_and_nothing_is_asked_if_it_is_short() -> None:
    with incomes(queries=3) as db:
        with pytest.raises(Refused, match="name fewer columns"):
            suggest(db)
        assert db.remaining == 3
        assert suggest(db, ["age"], credits=1).credits == 1
        with pytest.raises(InvalidQuery, match="plain numbers"):
            suggest(db, ["nothing"])
        for wrong in (0.4, 1):
            with pytest.raises(InvalidQuery, match="keep is a share"):
                suggest(db, keep=wrong)
        with pytest.raises(InvalidQuery, match="above 0"):
            suggest(db, credits=-1)


def test_too_few_rows_leave_the_declared_bounds() -> None:
    frame = pd.DataFrame({"x": [3.0, 4.0, 5.0]})
    schema, promise = Schema(Number("x", 0, 1000)), Promise(0.1, 1e-6, queries=100)
    with Database.open(frame, schema, promise, ledger=":memory:") as db:
        assert suggest(db).bounds[0].proposed == (0, 1000)


def visits(promise: Promise, m: int = 2) -> Database:
    """20,000 persons of 1 to 3 visits, one in 100 has 16; each visit costs 100."""
    rows = [
        (who, 100.0, who % 2 == 0)
        for who in range(20_000)
        for _ in range(16 if who % 100 == 0 else who % 3 + 1)
    ]
    frame = pd.DataFrame(rows, columns=["who", "cost", "ill"])
    schema = Schema(Number("cost", 0, 1_000), Flag("ill"), unit="who", max_rows=m)
    return Database.open(frame, schema, promise, ledger=":memory:")


def test_persons_get_max_rows_and_a_clip() -> None:
    """Two rows of each count; what is told is about all rows, also those that were cut."""
    with visits(Promise(20, 1e-6, queries=40)) as db:
        found = suggest(db)
        rows = found.max_rows
        assert rows is not None and rows.declared == 2
        per_person = np.where(np.arange(20_000) % 100 == 0, 16, np.arange(20_000) % 3 + 1)
        truth = {m: np.minimum(per_person, m).sum() / per_person.sum() for m in (1, 2, 4, 8, 16)}
        assert truth[2] < 0.79  # of the rows that are kept it would be all
        assert rows.kept.keys() == truth.keys() == rows.kept_error.keys()
        for m, share in truth.items():
            assert abs(rows.kept[m] - share) <= 8 * rows.kept_error[m]
            assert rows.kept_error[m] < 0.002
        # at 2 credits the noise of a band is 1.9 times its width: 95 % is told from 94.4 and 96.3
        assert rows.proposed == 8 and (rows.price_now, rows.price_then) == (4, 64)
        assert rows.ceiling == 16 and abs(rows.beyond) <= 8 * rows.beyond_error < 20
        [clip] = found.clips
        assert clip.column == "cost" and clip.proposed <= 2 * 1_000
        assert found.credits == 2 + 5 + 10


def test_rows_are_told_where_one_row_of_each_counts() -> None:
    with visits(Promise(20, 1e-6, queries=40), m=1) as db:
        plan = plan_of(db.schema, db.size)
        assert plan.rows == ((1, 2), (2, 4), (4, 8), (8, 16), (16, 17)) and not plan.sums
        found = suggest(db).max_rows
        assert found is not None and found.declared == 1 and found.kept[1] < 0.6
    wide = plan_of(Schema(Number("x", 0, 1), unit="who", max_rows=6), 10).rows
    assert wide == ((1, 2), (2, 4), (4, 6), (6, 8), (8, 16), (16, 24), (24, 25))


def test_coarse_noise_and_hidden_sizes() -> None:
    with incomes("add-remove") as db:
        assert db.size is None
        found = suggest(db)
        assert found.max_rows is None and not found.clips
    frame = pd.DataFrame({"x": [3.0, 4.0, 5.0] * 100})
    coarse = Promise(2, 1e-6, queries=200, noise="binomial")
    lattice = Schema(Number("x", 0, 7, step=1))
    with (
        Database.open(frame, lattice, coarse, ledger=":memory:") as db,
        pytest.raises(InvalidQuery, match="bounds do not matter"),
    ):
        suggest(db)


def test_no_numbers_no_proposal() -> None:
    with pytest.raises(InvalidQuery, match="no plain Number"):
        plan_of(Schema(Category("city", ["a"])), 10)


def test_prices_know_only_the_schema() -> None:
    """Two tables of the same schema and size: the same plan and price."""
    found = []
    for value in (1.0, 900.0):
        frame = pd.DataFrame({"x": [value] * 100})
        schema, promise = Schema(Number("x", 0, 1000)), Promise(1, 1e-6, queries=10)
        with Database.open(frame, schema, promise, ledger=":memory:") as db:
            found.append((plan_of(db.schema, db.size), price_of(db, plan_of(db.schema, db.size))))
    assert found[0] == found[1]
    assert found[0][1] == Fraction(2)
