"""One person in several tables: what they can move, by exhaustion and at random. P.2, P.3"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from sulq import Category, Flag, InvalidQuery, Number, SumQuery, col, count, histogram, mean, total
from sulq.answers.statistics import count_persons, per_person
from sulq.kernel.engines.engine import open_study_engine
from sulq.kernel.query.expressions import when
from sulq.kernel.query.person_values import (
    count_of,
    days_between,
    earliest_of,
    exists,
    first_of,
    last_of,
    latest_of,
    max_of,
    mean_of,
    min_of,
    read_person_value,
    sum_of,
)
from sulq.kernel.query.sum_query import about_table, as_statistic, group, outer
from sulq.kernel.query.vectors import columns, concat, one_hot, ones
from sulq.kernel.schema.bind import BoundQuery, NoiseGrid, bind
from sulq.kernel.schema.columns import column_json
from sulq.kernel.schema.program import RowSums
from sulq.kernel.schema.study import EventTable, Study, schema_from_json

Rows = Sequence[Any]
NEIGHBOURS = ["replace", "add-remove"]


def study(keep: str = "hash", max_rows: int = 1, ceiling: int = 2, drugs: bool = False) -> Study:
    by = None if keep == "hash" else "day"
    visits = EventTable(
        "visits",
        Number("day", 0, 2, step=1),
        Flag("urgent"),
        max_rows=max_rows,
        keep=keep,  # type: ignore[arg-type]
        by=by,
        ceiling=ceiling,
    )
    more = [EventTable("drugs", Number("dose", -1, 1, step=1), max_rows=2, ceiling=2, person="p")]
    return Study(
        "patients", Flag("ill"), person="id", tables=[visits, *(more if drugs else [])], bits=20
    )


def sources(people: Rows, visits: Rows, drugs: Rows | None = None) -> dict[str, pa.Table]:
    found = {
        "patients": pa.table(
            {"id": [p[0] for p in people], "ill": [p[1] for p in people]},
            pa.schema([("id", pa.int64()), ("ill", pa.bool_())]),
        ),
        "visits": pa.table(
            {
                "id": [v[0] for v in visits],
                "day": [v[1] for v in visits],
                "urgent": [v[2] for v in visits],
            },
            pa.schema([("id", pa.string()), ("day", pa.int64()), ("urgent", pa.bool_())]),
        ),
    }
    if drugs is not None:
        found["drugs"] = pa.table(
            {"p": [d[0] for d in drugs], "dose": [d[1] for d in drugs]},
            pa.schema([("p", pa.int64()), ("dose", pa.int64())]),
        )
    return found


ONE_TABLE: list[tuple[str, Any]] = [
    ("", count()),
    ("", count(where=col("ill"))),
    ("", count(where=exists("visits", col("urgent")))),
    ("", count(where=~exists("visits"))),
    ("", total(count_of("visits"))),
    ("", total(count_of("visits", x="day"), where=col("ill"))),
    ("", total(sum_of("visits", "day", clip=(1, 3)))),
    ("", total(sum_of("visits", col("day") - 1, where=col("urgent"), clip=(-2, 1)))),
    ("", mean(mean_of("visits", "day"))),
    ("", total(min_of("visits", "day") + max_of("visits", "day"))),
    ("", total(first_of("visits", "day", by="day") * last_of("visits", "urgent", by="day"))),
    ("", histogram(last_of("visits", "urgent", by="day"), "ill", other=True)),
    ("", histogram(count_of("visits"), edges=[0, 1, 2])),
    ("", outer(one_hot(col("ill")), concat(ones(), columns([count_of("visits").name])))),
    ("visits", count()),
    ("visits", count(where=col("ill") & col("urgent"))),
    ("visits", total("day")),
    ("visits", mean("day", where=col("ill"))),
    ("visits", histogram("urgent", "ill", other=True)),
    ("visits", total(when(count_of("visits") > 1).then(col("day")).otherwise(-1))),
    ("visits", outer(columns(["day", "ill"]), columns(["day", "ill"]))),
    ("", count(where=exists("visits", col("day") > min_of("visits", "day")))),
    ("", count(where=exists("visits", earliest_of("visits", "day", after="day") <= 2))),
    ("visits", total(latest_of("visits", "day", upto="day", where=col("urgent")))),
]
THREE_TABLES: list[tuple[str, Any]] = [
    ("", count(where=exists("visits") & ~exists("drugs", col("dose") > 0))),
    ("", total(sum_of("drugs", "dose", clip=(-1, 2)) + count_of("visits"))),
    ("", count(where=exists("visits", col("day") >= max_of("drugs", "dose")))),
    ("drugs", total("dose", where=exists("visits", col("urgent")))),
    ("drugs", histogram(count_of("visits"), edges=[0, 1, 2])),
    ("visits", total(col("day") * sum_of("drugs", "dose", clip=(-2, 2)))),
    ("drugs", mean("dose", where=col("ill"))),
    ("", count(where=exists("visits", latest_of("drugs", "dose", upto="day").is_not_null()))),
    ("drugs", total(earliest_of("visits", "day", after=col("dose") * 2, where=col("urgent")))),
]


def bound(schema: Study, table: str, question: Any, neighbours: str) -> BoundQuery:
    return bind(about_table(question, table), schema, neighbours, grid=NoiseGrid(0))


def in_units(asked: BoundQuery, sums: Sequence[int]) -> list[Fraction]:
    units = [asked.terms[number].unit for number in asked.layout]
    each = [units[place % len(units)] for place in range(len(sums))]
    return [Fraction(x, unit) if unit else Fraction(x) for x, unit in zip(sums, each, strict=True)]


def check_pairs(
    asked: BoundQuery, answers: Sequence[list[Fraction]], neighbours: str, around: list[Fraction]
) -> bool:
    """No pair of worlds of one person is further apart than charged; whether the charge is
    reached."""
    [(charged, accounts)] = asked.reach
    assert accounts == (0,)
    pairs = (
        itertools.combinations(answers, 2)
        if neighbours == "replace"
        else ((answer, around) for answer in answers)
    )
    reached = Fraction(0)
    for one, other in pairs:
        change = [abs(a - b) for a, b in zip(one, other, strict=True)]
        assert sum(change) <= charged.l1
        squared = sum((x * x for x in change), Fraction(0))
        assert squared <= charged.l2_squared
        reached = max(reached, squared)
    return reached == charged.l2_squared


def some(rows: Sequence[Any], most: int) -> Iterator[tuple[Any, ...]]:
    for many in range(most + 1):
        yield from itertools.combinations_with_replacement(rows, many)


OTHERS = [("1", 0, True), ("1", 2, False), ("1", None, None), ("1", 1, True)]
ORPHANS = [("9", 2, True), (None, 1, True), ("9", None, False)]


def sums_of(
    schema: Study, world: dict[str, pa.Table], asked: Sequence[BoundQuery]
) -> list[list[int]]:
    engine = open_study_engine(world, schema, size_is_public=True)
    try:
        return [engine.exact_sums(one.sums) for one in asked]
    finally:
        engine.close()


def check_worlds(
    schema: Study,
    worlds: Sequence[dict[str, pa.Table]],
    alone: dict[str, pa.Table],
    questions: Sequence[tuple[str, Any]],
) -> int:
    """How many charges are reached, of all questions under both relations."""
    programs = [bound(schema, *one, "replace") for one in questions]
    answers = [sums_of(schema, world, programs) for world in worlds]
    around = sums_of(schema, alone, programs)
    tight = 0
    for neighbours in NEIGHBOURS:
        for place, question in enumerate(questions):
            asked = bound(schema, *question, neighbours)
            assert asked.sums == programs[place].sums
            mine = [in_units(asked, answer[place]) for answer in answers]
            tight += check_pairs(asked, mine, neighbours, in_units(asked, around[place]))
    return tight


@pytest.mark.parametrize(
    "keep", ["hash", *(pytest.param(keep, marks=pytest.mark.slow) for keep in ("first", "last"))]
)
def test_every_world_of_one_person_in_two_tables(keep: str) -> None:
    """Every row of the person, twice or once, with every set of events, beyond the ceiling;
    another person, rows of nobody and of unknown persons stand by."""
    schema = study(keep, max_rows=1 if keep == "hash" else 2, ceiling=2)
    events = [(0, True), (2, False), (None, True)]
    own = [[True], [False, True]] if keep == "hash" else [[True], [False], [None]]
    most = 3 if keep == "hash" else 4
    worlds = [
        sources(
            [(1, True), (None, True), *((2, ill) for ill in ills)],
            [*OTHERS, *ORPHANS, *(("2", *event) for event in mine)],
        )
        for ills in own
        for mine in some(events, most)
    ]
    alone = sources([(1, True), (None, True)], [*OTHERS, *ORPHANS])
    tight = check_worlds(schema, worlds, alone, ONE_TABLE)
    assert tight >= len(ONE_TABLE)  # the charges are not just large


@pytest.mark.slow
def test_every_world_of_one_person_in_three_tables() -> None:
    schema = study("last", max_rows=1, ceiling=2, drugs=True)
    worlds = [
        sources(
            [(1, True), (2, ill)],
            [*OTHERS, *ORPHANS, *(("2", *event) for event in mine)],
            [(1, 1), (1, -1), (7, 1), *((2, dose) for dose in doses)],
        )
        for ill in (True, False)
        for mine in some([(0, True), (2, False)], 2)
        for doses in some([-1, 1, None], 2)
    ]
    alone = sources([(1, True)], [*OTHERS, *ORPHANS], [(1, 1), (1, -1), (7, 1)])
    assert check_worlds(schema, worlds, alone, THREE_TABLES + ONE_TABLE)


# --- at random: every person of one large study is a world ----------------------------------------


WIDE = Study(
    "patients",
    Flag("ill"),
    Number("age", -3, 7, step=1),
    Category("sex", ["F", "M"]),
    Number("who", 0, 400, step=1),
    person="id",
    tables=[
        EventTable(
            "visits",
            Number("day", 0, 9, step=1),
            Number("cost", -2.5, 4),
            Category("ward", ["a", "b"]),
            Flag("urgent"),
            max_rows=3,
            keep="last",
            by="day",
            ceiling=5,
        )
    ],
    bits=20,
)


def random_world(rng: random.Random, persons: int) -> dict[str, pa.Table]:
    people = {
        "id": list(range(persons)),
        "who": list(range(persons)),
        "ill": [rng.choice([True, False, None]) for _ in range(persons)],
        "age": [rng.choice([-9, -3, 0, 2, 7, 99, None]) for _ in range(persons)],
        "sex": [rng.choice(["F", "M", "?", None]) for _ in range(persons)],
    }
    owners = [who for who in range(persons) for _ in range(rng.choice([0, 0, 1, 2, 3, 5, 9]))]
    visits = {
        "id": owners,
        "day": [rng.choice([0, 1, 4, 9, 99, None]) for _ in owners],
        "cost": [rng.choice([-2.5, 0.1, 4.0, float("inf"), float("nan")]) for _ in owners],
        "ward": [rng.choice(["a", "b", "x"]) for _ in owners],
        "urgent": [rng.choice([True, False, None]) for _ in owners],
    }
    return {"patients": pa.table(people), "visits": pa.table(visits)}


def random_condition(rng: random.Random, event: bool) -> Any:
    person = [col("ill"), col("age") > rng.randint(-3, 7), col("sex") == "F", exists("visits")]
    person += [count_of("visits", col("urgent")) >= rng.randint(0, 5)]
    own = [col("urgent"), col("day") <= rng.randint(0, 9), col("ward") == "a", col("cost") > 0]
    listed = person + (own if event else [])
    one, other = rng.choice(listed), rng.choice(listed)
    return rng.choice([one, ~one, one & other, one | ~other, None])


def random_value(rng: random.Random, event: bool) -> Any:
    where = random_condition(rng, True)
    low = rng.randint(-9, 3)
    person = [
        col("age"),
        count_of("visits", where),
        sum_of("visits", "cost", where, clip=(low, low + rng.randint(1, 9))),
        mean_of("visits", "day", where),
        min_of("visits", col("cost") * 2, where),
        max_of("visits", "day"),
        first_of("visits", "cost", by="day", where=where),
        days_between(first_of("visits", "day", by="day"), last_of("visits", "day", by="day")),
        latest_of("visits", "day", upto="age", where=where),
    ]
    near = earliest_of("visits", "cost", after=col("cost") - 1, where=where)
    own = [col("day"), col("cost"), col("day") - col("age"), near] if event else []
    return rng.choice(person + own)


def random_question(rng: random.Random, event: bool) -> Any:
    where = random_condition(rng, event)
    value = random_value(rng, event)
    match rng.randrange(4):
        case 0:
            return count(where=where)
        case 1:
            return mean(value, where=where)
        case 2:
            rows = col("ill") if where is None else where
            return SumQuery((value, random_value(rng, event)), rows)
    return histogram(last_of("visits", "ward", by="day"), where=where, other=True)


def check_random(seed: int, questions: int, persons: int) -> int:
    """The pairs of persons whose contributions were compared with the charge."""
    rng = random.Random(seed)
    engine = open_study_engine(random_world(rng, persons), WIDE, size_is_public=True)
    pairs = 0
    for _ in range(questions):
        table = rng.choice(["", "visits"])
        question = about_table(random_question(rng, table == "visits"), table)
        query = as_statistic(question).query
        each = replace(query, groups=(group("who", range(persons + 1)), *query.groups))
        apart = bind(each, WIDE, grid=NoiseGrid(0))
        assert isinstance(apart.sums, RowSums)
        sums = engine.exact_sums(apart.sums)
        for neighbours in NEIGHBOURS:
            asked = bind(question, WIDE, neighbours, grid=NoiseGrid(0))
            wide = len(sums) // persons
            mine = {
                tuple(in_units(asked, sums[at * wide : (at + 1) * wide])) for at in range(persons)
            }
            pairs += persons * (persons - 1) // 2 if neighbours == "replace" else persons
            check_pairs(asked, [list(one) for one in mine], neighbours, [Fraction(0)] * wide)
    engine.close()
    return pairs


def test_random_persons_move_no_more_than_charged() -> None:
    assert check_random(1, 25, 60) > 10_000


@pytest.mark.slow
def test_many_random_persons_move_no_more_than_charged() -> None:
    assert sum(check_random(seed, 30, 80) for seed in range(2, 8)) > 10**5


# --- what is declared, named and refused ----------------------------------------------------------


def test_prices_of_persons_do_not_hang_on_max_rows() -> None:
    for max_rows, ceiling in ((1, 2), (7, 900)):
        schema = study(max_rows=max_rows, ceiling=ceiling)
        for question in (
            count(where=exists("visits")),
            total(sum_of("visits", "day", clip=(0, 9))),
        ):
            [(reach, _)] = bound(schema, "", question, "replace").reach
            assert reach.l2_squared == 1
        [(reach, _)] = bound(schema, "visits", count(), "replace").reach
        assert reach.l2_squared == max_rows**2


def test_only_the_number_of_persons_is_public_and_only_under_replace() -> None:
    schema = study()
    free = bound(schema, "", count(), "replace")
    assert free.terms[0].unit == 0
    for table, question, neighbours in (
        ("", count(), "add-remove"),
        ("", count(where=~exists("visits") | exists("visits")), "replace"),
        ("visits", count(), "replace"),
        ("visits", count(), "add-remove"),
    ):
        asked = bound(schema, table, question, neighbours)
        assert asked.terms[0].unit == 1 and asked.reach[0][0].l2_squared >= 1


def test_a_study_reads_back_and_tables_have_names_of_their_own() -> None:
    schema = study("first", 1, 2, drugs=True)
    assert schema_from_json(schema.to_json()) == schema
    assert schema_from_json(schema.to_json()).to_json() == schema.to_json()
    assert column_json(schema.columns[0])["flag"] is True
    here, there = bound(schema, "", count(), "replace"), bound(schema, "visits", count(), "replace")
    assert here.digest != there.digest
    assert bound(schema, "patients", count(), "replace").digest == here.digest
    name = exists("visits", ~(col("day") < 1) & col("urgent")).name
    assert exists("visits", col("urgent") & (col("day") >= 1)).name == name
    assert read_person_value(name).name == name


@pytest.mark.parametrize(
    ("question", "table", "said"),
    [
        (count(where=exists("patients")), "", "person table"),
        (count(where=exists("vists")), "", "did you mean 'visits'"),
        (count(where=col("urgent")), "", "no column 'urgent'"),
        (count(where=col("id") == 3), "", "person column"),
        (count(where=exists("visits", col("id") == 3)), "", "person column"),
        (total(first_of("visits", "day", by="urgent")), "", "ordered by a Number"),
        (total(sum_of("visits", "day", clip=(9, 9))), "", "one value only"),
        (count_persons(col("urgent")), "visits", "values of a person"),
        (per_person(total("day"), clip=(0, 3)), "visits", "values of a person"),
        (count(), "nothing", "no table 'nothing'"),
        (count(where=col('["exists","visits",["bool",true],[]]')), "", "no value of a person"),
        (count(where=col('["exists", "visits", ["bool",true]]')), "", "no value of a person"),
        (total(sum_of("visits", "urgent", clip=(0, 1)) * col("nope")), "", "no column"),
    ],
)
def test_refusals_say_what_to_do(question: Any, table: str, said: str) -> None:
    with pytest.raises(InvalidQuery, match=said):
        bound(study(), table, question, "replace")


def test_values_of_a_person_have_limits() -> None:
    deep = exists("visits")
    for _ in range(3):
        deep = exists("visits", deep)
    with pytest.raises(InvalidQuery, match="3 deep"):
        bound(study(), "", count(where=deep), "replace")
    many = [count_of("visits", col("day") > at / 100) for at in range(70)]
    with pytest.raises(InvalidQuery, match="at most 64"):
        bound(study(), "", SumQuery(tuple(many)), "replace")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: EventTable("v", Flag("x", public=True), max_rows=1), "no column of a study is"),
        (lambda: EventTable("v", Flag("x"), max_rows=9, ceiling=3), "passes the ceiling"),
        (lambda: EventTable("v", Flag("x"), max_rows=1, keep="first"), "by a Number column"),
        (lambda: EventTable("v", Flag("x"), max_rows=1, keep="last", by="x"), "by must name"),
        (lambda: EventTable("v w", Flag("x"), max_rows=1), "letters, digits"),
        (lambda: EventTable("v", Flag('["x'), max_rows=1), "cannot name a column"),
        (lambda: Study("p", Flag("x"), person="id", tables=[]), "at least one EventTable"),
        (
            lambda: Study(
                "p", Flag("x"), person="id", tables=[EventTable("P", Flag("y"), max_rows=1)]
            ),
            "names differ",
        ),
    ],
)
def test_declarations_are_checked(made: Any, said: str) -> None:
    with pytest.raises(InvalidQuery, match=said):
        made()


def test_at_most_cuts_each_person_and_never_one_for_another() -> None:
    """With 3 rows for 2 persons each keeps one, however many the other has."""
    for crowd in (0, 1, 50):
        schema = Study(
            "patients",
            Flag("ill"),
            person="id",
            tables=[
                EventTable("visits", Number("day", 0, 2, step=1), max_rows=1, at_most=3, ceiling=9)
            ],
        )
        world = sources([(1, True), (2, True)], [("1", 2, None)] * 4 + [("2", 1, None)] * crowd)
        engine = open_study_engine(world, schema, size_is_public=True)
        question = total(sum_of("visits", "day", clip=(0, 9)), where=col("ill"))
        asked = bound(schema, "", question, "replace")
        assert engine.exact_sums(asked.sums) == [2 + (crowd > 0)]
        engine.close()
    with pytest.raises(InvalidQuery, match="fewer than max_rows"):
        open_study_engine(sources([(n, True) for n in range(5)], []), schema, size_is_public=True)
