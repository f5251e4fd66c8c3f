"""A study in a frozen world: one person's rows of all tables change, and one account pays.

Values of a person stand inside each other and inside questions with constants of every size; a
person has no row, more rows than count, more than are read, two rows in the person table, ids in
another spelling. Asked in Python and SQL, of persons and of events.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from tests.kernel.engines import extremes
from tests.replay import paths
from tests.replay.paths import Asked
from tests.replay.tables import PRIVATE, Row, a_row, arrow
from tests.replay.world import World

from sulq import Database, Number, SulqError, col, count, histogram, mean, total
from sulq.answers.statistics import distribution
from sulq.kernel.query.expressions import Expression
from sulq.kernel.query.sum_query import about_table, outer
from sulq.kernel.query.vectors import columns
from sulq.studies import (
    EventTable,
    Study,
    count_of,
    exists,
    first_of,
    last_of,
    max_of,
    mean_of,
    min_of,
    sum_of,
)

PERSONS = 9
DAY = Number("day", 0, 10, step=1)
EVENTS = ("visits", "drugs")
Held = dict[str, list[Row]]
"""The rows of each table of a study."""


def study(rng: random.Random) -> Study:
    """The same columns in every table, so that each name means several."""
    first, second = (
        EventTable(
            name,
            *PRIVATE,
            DAY,
            max_rows=rng.choice([1, 2, 4]),
            ceiling=rng.choice([4, 5]),
            keep=keep,
            by=None if keep == "hash" else "day",
            at_most=rng.choice([None, None, 4 * 40]),
            person=person,
        )
        for name, keep, person in zip(
            EVENTS, rng.sample(["hash", "first", "last"], 2), ["who", None], strict=True
        )
    )
    return Study("people", *PRIVATE, person="who", tables=[first, second], at_most=40, bits=31)


def of_person(rng: random.Random, who: int) -> Held:
    """All rows of one person: one or two in the person table, and events, also none or too many."""
    found: Held = {"people": _some(rng, who, rng.choice([1, 1, 2]))}
    for name in EVENTS:
        found[name] = _some(rng, who, rng.choice([0, 0, 1, 2, 5, 8]))
    return found


def _some(rng: random.Random, who: int, number: int) -> list[Row]:
    day = rng.choice([None, 0, 3, 10, 99])
    rows = [a_row(rng, 0) | {"who": who, "arrives": day} for _ in range(number)]
    if rng.random() < 0.5:  # each adds as much as the other
        return [dict(rows[0]) for _ in rows]
    return [row | {"arrives": rng.choice([None, 0, 3, 10, 99])} for row in rows]


def joined(several: list[Held]) -> Held:
    return {name: [row for one in several for row in one[name]] for name in ("people", *EVENTS)}


def frames(held: Held) -> dict[str, Any]:
    made = {name: arrow(rows) for name, rows in held.items()}
    return {
        name: frame.rename_columns(["day" if c == "arrives" else c for c in frame.column_names])
        for name, frame in made.items()
    }


# --- questions ------------------------------------------------------------------------------------


def person_value(rng: random.Random, of: Study, depth: int = 0) -> Expression:
    """A value of a person, now and then with another inside; at times one that is refused."""
    table = rng.choice(EVENTS)
    where = rng.choice([None, extremes.condition(rng), col("day") >= rng.choice([0, 3, 11])])
    if depth < 2 and rng.random() < 0.3:
        inner = person_value(rng, of, depth + 1)
        where = inner if isinstance(inner, Expression) and rng.random() < 0.3 else inner.is_null()
    value = rng.choice([col("n"), col("cents"), col("day"), extremes.expression(rng, 1)])
    match rng.randrange(8):
        case 0:
            return exists(table, where)
        case 1:
            return count_of(table, where)
        case 2:
            width = abs(extremes.number(rng)) if rng.random() < 0.3 else 2 ** rng.randint(0, 20)
            return sum_of(table, value, where, clip=(rng.choice([0, -width]), width))
        case 3:
            return mean_of(table, value, where)
        case 4:
            return min_of(table, value, where)
        case 5:
            return max_of(table, value, where)
        case 6:
            raw = rng.choice([col("ill"), col("code"), value])
            return first_of(table, raw, by="day", where=where)
    raw = rng.choice([col("ill"), col("code"), col("people.n"), value])
    return last_of(table, raw, by="day", where=where)


def question(rng: random.Random, of: Study) -> Any:
    value = person_value(rng, of)
    where = rng.choice([None, None, col("ill"), extremes.condition(rng)])
    edge = rng.choice([0, 1, 2, 5, extremes.number(rng)])
    match rng.randrange(10):
        case 0:
            asked: Any = count(where=value >= edge)
        case 1:
            asked = total(value, where=where)
        case 2:
            asked = mean(value, where=where)
        case 3:
            asked = count(where=exists(rng.choice(EVENTS), where))
        case 4:
            asked = histogram(value, edges=[-1, 0, 1, 2, 5, 1000], where=where)
        case 5:
            asked = distribution(rng.choice(["n", "day", "cents"]), resolution=8)
        case 6:
            asked = outer(columns("n", "cents"), columns("n", "cents"))
        case 7:
            asked = count(where=value.is_null())
        case _:
            return paths.any_question(rng)
    table = rng.choice(["", "people", *EVENTS])
    return about_table(asked, table) if table else asked


def statement(rng: random.Random) -> str:
    """SQL over the study, with names that several tables have."""
    edge = rng.choice(["0", "3", f"{float(extremes.number(rng)):.17g}"])
    table, alias = rng.choice([("visits", "v"), ("drugs", "d")])
    link = f"{alias}.who = p.who"
    inner = rng.choice(["", f" AND n > {edge}", f" AND {alias}.n > p.n", " AND p.ill", " AND ill"])
    value = rng.choice(["COUNT(*)", "MAX(day)", "AVG(n)", "COUNT(cents)", "MIN(p.n)"])
    sub = f"(SELECT {value} FROM {table} {alias} WHERE {link}{inner})"
    return rng.choice(
        [
            f"SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM {table} {alias} WHERE"
            f" {link}{inner})",
            f"SELECT ill, COUNT(*), SUM({sub}) FROM people p GROUP BY ill",
            f"SELECT AVG({sub}) FROM people p WHERE n < {edge}",
            f"SELECT COUNT(DISTINCT {alias}.who) FROM {table} {alias} WHERE n > {edge}",
            f"SELECT p.ill, COUNT(*), AVG({alias}.n) FROM {table} {alias} JOIN people p ON {link}"
            f" WHERE day >= 3 GROUP BY p.ill",
            f"SELECT COUNT(*) FROM {table} WHERE who IN (SELECT who FROM visits WHERE n > {edge})",
            f"SELECT COUNT(*) FROM people p WHERE (SELECT n FROM {table} {alias} WHERE {link}"
            f" ORDER BY day DESC LIMIT 1) > {edge}",
            f"SELECT COUNT(*) FROM people p WHERE CLAMP((SELECT SUM(n) FROM {table} {alias} WHERE"
            f" {link}), 0, 5) > 2 UNION ALL SELECT COUNT(*) FROM people",
        ]
    )


def play(world: World, sources: Any, rng: random.Random, of: Study, noise: str, how: str) -> None:
    promise = paths.PROMISES[noise]
    if how != promise.neighbours:
        promise = type(promise)(promise.epsilon, promise.delta, promise.credits, neighbours=how)
    with Database.open(sources, of, promise, ":memory:", name="s", publish=True) as db:
        asked, armed = Asked(world, db), []
        for _ in range(paths.STEPS):
            match rng.randrange(12):
                case 0 | 1 | 2:
                    asked.step(partial(db.sql, statement(rng)))
                case 3:
                    of_column = rng.choice(["code", "ill"])
                    by = about_table(count(where=col("ill")), rng.choice(["people", *EVENTS]))
                    asked.step(partial(db.top, of_column, by=rng.choice([None, by])), "pure")
                case 4:
                    planned = asked.step(partial(_planned, db, rng, of))
                    if planned is not None:
                        asked.step(planned.ask)
                case 5 if armed:
                    world.step(rng.choice(armed).check)
                case 5:
                    counted = about_table(count(where=col("ill")), rng.choice(EVENTS))
                    made = asked.step(partial(db.alert, counted, above=2), "pure")
                    armed += [] if made is None else [made]
                case 6:
                    world.step(partial(db.quote, _made(rng, of)))
                case _:
                    asked.step(partial(db.ask, _made(rng, of), **paths.terms(rng)))
        asked.end()


def _made(rng: random.Random, of: Study) -> Any:
    """A question; what cannot even be written down in Python is written anew."""
    for _ in range(100):
        try:
            return question(rng, of)
        except SulqError:
            continue
    return count()


def _planned(db: Database, rng: random.Random, of: Study) -> Any:
    return db.plan([_made(rng, of), _made(rng, of)], credits=3)


def studies(seed: int, near: int) -> int:
    """One study, `near` others in which one person is different or not there."""
    rng = random.Random(f"studies {seed}")
    of, how = study(rng), rng.choice(["replace", "add-remove"])
    noise = rng.choice(["gaussian", "laplace", "short"])
    persons = [of_person(rng, who) for who in range(PERSONS)]
    strangers = of_person(rng, 700) | {"people": []}  # of nobody in the person table
    tables = [joined([*persons, strangers])]
    for _ in range(near):
        at = rng.randrange(PERSONS)
        others = persons[:at] + persons[at + 1 :]
        if how == "replace":
            others = [*others, of_person(rng, at)]
        elif rng.random() < 0.5:
            others = [*persons, of_person(rng, 999)]
        rng.shuffle(others)
        tables.append(joined([*others, strangers]))
    return paths.replay(
        f"studies {seed} {how} {noise}",
        [frames(one) for one in tables],
        lambda world, sources: play(
            world, sources, random.Random(f"studies {seed} play"), of, noise, how
        ),
    )
