"""Sums per person: what one person can do, tried on every pair of persons of a small table. M.5"""

from __future__ import annotations

import itertools
import json
from typing import Any

import pandas as pd
import pytest
from tests.kernel.engines import reference

from sulq import Category, Database, Flag, InvalidQuery, Number, Promise, Schema, SumQuery, col
from sulq.answers.statistics import (
    count,
    count_persons,
    distribution,
    histogram,
    mean,
    per_person,
    total,
)
from sulq.kernel.query.sql_text import question_text
from sulq.kernel.query.sum_query import Statistic, text_of
from sulq.kernel.schema.bind import NoiseGrid, bind
from sulq.kernel.schema.sensitivity import PersonSums

MOST = 2
COLUMNS = (Number("x", -1, 2, step=1), Flag("ill"), Category("city", ["a", "b", "c"]))
SCHEMA = Schema(*COLUMNS, unit="who", max_rows=MOST)
ROWS = [
    {"who": 0, "x": x, "ill": ill, "city": city}
    for x in (None, -1.0, 2.0)
    for ill in (True, False)
    for city in ("a", "b", "d")
]
PERSONS = [list(rows) for size in (1, 2) for rows in itertools.combinations(ROWS, size)]
QUESTIONS = [
    count_persons(),
    count_persons(col("ill")),
    count_persons(by="city"),
    count_persons(col("x") > 0, by="ill"),
    per_person(total("x"), (-1, 2)),
    per_person(total("x"), (0, 1)),
    per_person(total("x"), (1, 3)),
    per_person(total("x"), (-100, 100)),
    per_person(total("x"), (3, 100)),
    per_person(total("x", where=col("ill")), (-1, 1)),
    per_person(total(col("x") * 2 + 1, where=col("x").is_not_null()), (-3, 3)),
    per_person(count(where=col("ill") & (col("x") >= 0)), (0, 2)),
    per_person(count("x"), (1, 2)),
    per_person(histogram("city", other=True), (0, 2)),
    per_person(histogram("x", edges=[-1, 0, 1, 2]), (0, 1)),
    per_person(count(where=col("ill") & ~col("ill")), (0, 1)),
]


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("question", QUESTIONS, ids=range(len(QUESTIONS)))
def test_no_person_moves_the_sums_further_than_charged(
    question: Statistic, neighbours: str
) -> None:
    bound = bind(question, SCHEMA, neighbours, grid=NoiseGrid(0))
    assert isinstance(bound.sums, PersonSums)
    seen = {tuple(reference.person_sums(bound.sums, rows, "who")) for rows in PERSONS}
    if neighbours == "add-remove":
        nothing = (0,) * bound.cells
        changes = [(one, nothing) for one in seen]
    else:
        changes = list(itertools.combinations(seen, 2))
    moves = [[a - b for a, b in zip(*pair, strict=True)] for pair in changes]
    [(charged, accounts)] = bound.reach
    assert accounts == (0,)
    unit = bound.terms[0].unit
    most_one = max((sum(map(abs, move)) for move in moves), default=0)
    most_two = max((sum(x * x for x in move) for move in moves), default=0)
    most_cells = max((sum(x != 0 for x in move) for move in moves), default=0)
    if unit == 0:
        assert most_one == 0  # public: exact and free
        return
    assert most_one <= charged.l1 * unit
    assert most_two <= charged.l2_squared * unit**2
    assert most_cells <= charged.coordinates
    if not bound.groups and most_one:
        assert most_one == charged.l1 * unit  # tight
        assert charged.l2_squared == charged.l1 == 1


@pytest.mark.parametrize(
    ("question", "ends"),
    [
        (per_person(total("x"), (-100, 100)), (-2, 4)),  # two rows of -1 to 2
        (per_person(total("x"), (-1, 3)), (-1, 3)),
        (per_person(total(col("x") + 2), (-9, 100)), (0, 8)),  # a missing value adds 0
        (per_person(total(col("x") + 2, where=col("x").is_not_null()), (-9, 100)), (1, 8)),
        (per_person(count(), (0, 100)), (1, 2)),
        (per_person(total(col("x") - 3), (-100, 100)), (-8, 0)),
    ],
)
def test_a_clip_is_only_narrowed_to_what_persons_can_reach(
    question: Statistic, ends: tuple[int, int]
) -> None:
    sums = bind(question, SCHEMA).sums
    assert isinstance(sums, PersonSums)
    assert (sums.low, sums.high) == ends


def test_the_price_is_the_clip_not_the_rows() -> None:
    """Golden, M.5: a person of m rows costs m^2 by rows, and 1 when clipped first."""
    wide = Schema(*COLUMNS, unit="who", max_rows=10)
    [(by_rows, _)] = bind(count(where=col("ill")), wide).reach
    [(by_person, _)] = bind(count_persons(col("ill")), wide).reach
    assert (by_rows.l2_squared, by_person.l2_squared) == (100, 1)
    [(cells, _)] = bind(count_persons(by="city"), wide).reach
    assert cells.l2_squared == 2 * 3  # three cells, so three before and three after
    [(cells, _)] = bind(count_persons(by="city"), wide, "add-remove").reach
    assert cells.l2_squared == 3


def frame(persons: int = 300) -> pd.DataFrame:
    rows = [
        {"who": who, "x": float(visit % 3), "ill": who % 3 == 0, "city": "abc"[visit % 3]}
        for who in range(persons)
        for visit in range(who % 5 + 1)
    ]
    return pd.DataFrame(rows)


def test_answers_come_through_the_database() -> None:
    with Database.open(frame(), SCHEMA, Promise(1, 1e-6, queries=100), ledger=":memory:") as db:
        everyone = db.ask(count_persons())
        assert (everyone.value, everyone.credits) == (300, 0)  # public under replace
        ill = db.ask(count_persons(col("ill")), credits=50)
        assert ill.credits == 50
        low, high = ill.interval(0.999999)
        assert low <= 100 <= high <= 300
        vague = db.ask(count_persons(~col("ill")), credits=0.001)
        assert vague.interval()[1] <= 300  # persons, not their 600 rows
        costs = db.ask(per_person(total("x"), (0, 2)), credits=40)
        low, high = costs.interval(0.999999)
        assert low <= high <= 600
        assert db.quote(count_persons(by="city")).credits == 4  # two rows: two cells, and two
        assert db.quote(count(where=col("ill"))).credits == 4


def test_coarse_noise_counts_persons_though_not_their_rows() -> None:
    promise = Promise(2, 1e-6, queries=20, noise="binomial")
    with Database.open(frame(), SCHEMA, promise, ledger=":memory:") as db:
        assert db.ask(count_persons(col("ill"))).credits == 1
        with pytest.raises(InvalidQuery, match="protects rows"):
            db.ask(count(where=col("ill")))


def test_rows_have_no_persons() -> None:
    with pytest.raises(InvalidQuery, match="protects rows and knows no persons"):
        bind(count_persons(), Schema(*COLUMNS))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: per_person(mean("x"), (0, 1)),
        lambda: per_person(total("x"), (2, 1)),
        lambda: per_person(total("x"), (0, float("nan"))),
        lambda: per_person(total("x"), 3),  # type: ignore[arg-type]
        lambda: per_person(total("x"), ("a", "b")),
        lambda: per_person(distribution("x"), (0, 1)),
        lambda: bind(
            SumQuery(
                distribution("x").query.terms,
                groups=distribution("x").query.groups,
                clip=count_persons().query.clip,
            ),
            SCHEMA,
        ),
        lambda: SumQuery.from_json({**total("x").query.to_json(), "clip": 3}),
        lambda: SumQuery.from_json({**total("x").query.to_json(), "clip": None}),
        lambda: SumQuery((*mean("x").query.terms,), clip=count_persons().query.clip),
    ],
)
def test_what_makes_no_question_per_person_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidQuery):
        wrong()


def test_json_and_words() -> None:
    query = per_person(total("x", where=col("ill")), (-0.5, 1.5)).query.canonical()
    text = text_of(query)
    assert text_of(SumQuery.from_json(json.loads(text)).canonical()) == text
    assert text != text_of(total("x", where=col("ill")).query.canonical())
    assert question_text(text) == "SUM(CLAMP(SUM(x) PER PERSON, -0.5, 1.5)) WHERE ill"
