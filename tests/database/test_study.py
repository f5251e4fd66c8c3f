"""A study as a database: one account, tables as oracles, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from sulq import Category, Database, Flag, Number, Promise, Refused, Schema, SulqError, col, count
from sulq.exact.domain import Assumptions
from sulq.studies import EventTable, Study, count_of, exists

PEOPLE = pd.DataFrame({"id": range(40), "age": [20 + i for i in range(40)]})
VISITS = pd.DataFrame(
    {"id": [i % 30 for i in range(90)], "ward": ["a", "b", "b"] * 30, "urgent": [True, False] * 45}
)


def study(max_rows: int = 3) -> Study:
    visits = EventTable(
        "visits", Category("ward", ["a", "b"]), Flag("urgent"), max_rows=max_rows, ceiling=9
    )
    return Study("patients", Number("age", 0, 120, step=1), person="id", tables=[visits])


def opened(max_rows: int = 3, **more: Any) -> Database:
    sources = {"patients": PEOPLE, "visits": VISITS}
    promise = Promise(1, 1e-6, credits=500)
    return Database.open(sources, study(max_rows), promise, ":memory:", **more)


def test_all_tables_pay_from_one_account() -> None:
    with opened() as database:
        database.grant("ann", 50)
        ann = database.as_analyst("ann")
        assert ann.tables == database.tables == ("patients", "visits")
        ann.ask(count(where=exists("visits", col("urgent"))))
        ann.table("visits").ask(count())
        assert ann.remaining == 50 - 1 - 9
        assert database.remaining == 500 - 50
        again = ann.table("visits").ask(count())
        assert again.credits == 0
        plan = database.plan([count(where=count_of("visits") > 2), count(where=col("age") > 30)])
        assert len(plan.ask()) == 2


def test_a_choice_among_events_is_as_noisy_as_their_rows_of_a_person() -> None:
    """The law of `top` goes by the table's own max_rows, not by the study's."""
    slack = {}
    for max_rows in (1, 3):
        with opened(max_rows) as database:
            found = database.table("visits").top("ward", credits=1)
            slack[max_rows] = found.slack
    assert slack[3] == pytest.approx(3 * slack[1], rel=0.01)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda db: db.grow({"patients": PEOPLE, "visits": VISITS}),
        lambda db: db.amend(study(4)),
        lambda db: db.keys("age"),
        lambda db: db.table("nothing"),
        lambda db: db.ask(count(where=col("ward") == "a")),
    ],
)
def test_what_is_not_for_a_study_is_refused_free(wrong: Callable[[Database], Any]) -> None:
    with opened() as database:
        with pytest.raises(SulqError):
            wrong(database)
        assert database.remaining == 500


def test_neither_individual_nor_exact() -> None:
    with pytest.raises(Refused, match="not for a study"):
        opened(individual=True)
    with pytest.raises(Refused, match="not for a study"):
        opened(exactly=Assumptions(1, 1e-6, 3, {"age": 0.01}))


def test_one_table_has_no_tables() -> None:
    schema = Schema(Number("age", 0, 120, step=1))
    with Database.open(PEOPLE, schema, Promise(1, 1e-6), ":memory:") as database:
        assert database.tables == ()
        with pytest.raises(SulqError, match="not a study"):
            database.table("visits")
