"""What analysts and owners can do, path by path, in sequences drawn at random."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from tests.kernel.engines import extremes
from tests.replay.tables import ADDED, PERSONS, RELATIONS, Relation, Row, arrow, rows_of
from tests.replay.world import Divergence, Paid, Step, World, frozen, same

from sulq import Database, Promise, col, count, histogram, mean, total
from sulq.answers.statistics import distribution
from sulq.kernel.query.sum_query import outer

COARSE = 8
"""Spreads to which counts of undeclared keys are rounded, in place of a release that is forced."""
Play = Callable[[World, Any, random.Random], None]
PROMISES = {
    "gaussian": Promise(1, "1e-6", queries=60, neighbours="replace"),
    "laplace": Promise(1, queries=60, neighbours="replace"),
    "short": Promise(1, "1e-6", queries=4, neighbours="replace"),
    "huber": Promise(1, "1e-6", queries=10, noise="huber", neighbours="replace"),
    "binomial": Promise(1, "1e-6", queries=10, noise="binomial", neighbours="replace"),
}


def replay(
    name: str,
    tables: Sequence[Any],
    play: Callable[[World, Any], None],
    quiet: bool = False,
) -> int:
    """Live through the first table, then through its neighbours; the number of pairs compared."""
    with frozen() as first:
        first.tape.quiet = quiet
        play(first, tables[0])
    pairs = 0
    for place, table in enumerate(tables[1:], 1):
        with frozen(first) as second:
            second.tape.quiet = quiet
            play(second, table)
        try:
            pairs += same(first, second, f"{name}, neighbour {place}")
            continue
        except Divergence as problem:
            found = problem
        with frozen(first) as again:
            again.tape.quiet = quiet
            play(again, tables[0])
        if first.lines != again.lines:
            same(first, again, f"{name}: not frozen, it differs from itself")
        raise found
    return pairs


@dataclass(frozen=True)
class Asked:
    """A database whose every step is seen, with the credits it took."""

    world: World
    db: Database

    def step(self, act: Callable[[], Any], kind: str = "sums", times: int = 1) -> Any:
        """Do something; `kind` says how its shift is judged (keys: not, they are told coarsely)."""
        before = self.spent
        found = self.world.step(act, coarse=COARSE if kind == "keys" else 0)
        self.world.steps[-1].judge = Paid(self.spent - before, self.db.calibration, kind, times)
        self.world.see(f"remaining {self.db.remaining}, head {self.db.ledger.statement().head}")
        return found

    @property
    def spent(self) -> Fraction:
        """Of the account that has spent most."""
        lines = self.db.ledger.statement().accounts
        return max((line.spent.credits_fraction for line in lines), default=Fraction(0))

    def end(self) -> None:
        """What the books say."""
        self.world.see(self.db, self.db.statement(), self.db.size)
        for entry in self.db.ledger.entries():
            self.world.see(entry)


def promise_of(relation: Relation, noise: str) -> Promise:
    promise = PROMISES[noise]
    if relation.neighbours == promise.neighbours:
        return promise
    words = {"noise": promise.noise} if noise in ("huber", "binomial") else {}
    return Promise(
        promise.epsilon, promise.delta, promise.credits, neighbours="add-remove", **words
    )


def opened(table: Any, relation: Relation, noise: str, **more: Any) -> Database:
    promise, ledger = promise_of(relation, noise), more.pop("ledger", ":memory:")
    return Database.open(table, relation.schema, promise, ledger, publish=True, **more)


# --- questions ------------------------------------------------------------------------------------


def whole(rng: random.Random) -> Any:
    """A question that is a count for sure: what coins answer, and what others derive from."""
    edge = rng.choice([0, 1, Fraction(1, 10**31), 250_000])
    where = rng.choice([col("income") >= edge, col("n") < 1, col("ill"), col("code").isin([1])])
    return count(where=rng.choice([where, ~where, where & col("ill"), where | col("n").is_null()]))


def any_question(rng: random.Random) -> Any:
    match rng.randrange(8):
        case 0:
            return whole(rng)
        case 1:
            return histogram("code", "ill", other=rng.random() < 0.5)
        case 2:
            return distribution(rng.choice(["n", "income", "cents", "x"]), resolution=8)
        case 3:
            maker = extremes.ExtremeVectors(
                extremes.SCHEMA, rng, [*extremes.NUMBERS, "code", "ill"]
            )
            left = maker.vector(2)
            return outer(left, left if rng.random() < 0.3 else maker.vector(2), maker.condition())
    return extremes.question(rng)


def terms(rng: random.Random) -> dict[str, Any]:
    match rng.randrange(6):
        case 0:
            return {"credits": rng.choice([Fraction(1, 3), 2, 5, 0.25, Fraction(1, 10**6)])}
        case 1:
            return {"within": rng.choice([1, 50, 1e6, 1e-9])}
        case 2:
            return {"credits": rng.choice([10**6, 0, -1, 10**-15])}  # refused, mostly
    return {}


# --- paths ----------------------------------------------------------------------------------------


def ask(world: World, table: Any, rng: random.Random, relation: Relation, noise: str) -> None:
    with opened(table, relation, noise) as db:
        asked, past = Asked(world, db), []
        for _ in range(STEPS):
            question, more = any_question(rng), terms(rng)
            match rng.randrange(6):
                case 0:  # the bar of a mean needs the number of rows, which may be secret
                    question = rng.choice([question, mean("n"), mean("income", where=col("ill"))])
                    asked.step(partial(db.quote, question, **more))
                case 1 if past:
                    asked.step(partial(db.ask, rng.choice(past), **more))
                case _:
                    past.append(question)
                    asked.step(partial(db.ask, question, **more))
        asked.end()


def plan(world: World, table: Any, rng: random.Random, relation: Relation, noise: str) -> None:
    with opened(table, relation, noise) as db:
        asked = Asked(world, db)
        for _ in range(STEPS):
            questions = [any_question(rng) for _ in range(rng.randint(1, 4))]
            more = rng.choice([{}, {"credits": 2}, {"credits": 10**6}])
            planned = asked.step(lambda q=questions, m=more: db.plan(q, **m))
            if planned is not None:
                asked.step(planned.ask)
        asked.end()


def top(world: World, table: Any, rng: random.Random, relation: Relation, noise: str) -> None:
    with opened(table, relation, noise) as db:
        asked = Asked(world, db)
        for _ in range(STEPS):
            of = rng.choice(["code", "ill", "n", "city"])
            width = abs(extremes.number(rng))
            by = rng.choice(
                [None, count(where=col("ill")), total(col("income").clip(0, width)), total("n")]
            )
            k = rng.choice([1, 1, 2, 3])
            more: dict[str, Any] = {"k": k, "by": by}
            if of == "n":
                more["edges"] = [-4, 0, 1, 4]
            if rng.random() < 0.5:
                more["credits"] = rng.choice([1, 3, Fraction(1, 7), 10**6])
            asked.step(partial(db.top, of, **more), "pure", k)
        asked.end()


def keys(world: World, table: Any, rng: random.Random, relation: Relation, noise: str) -> None:
    with opened(table, relation, noise) as db:
        asked = Asked(world, db)
        for _ in range(STEPS):
            where = rng.choice([None, col("ill"), col("income") >= 1, extremes.condition(rng)])
            more: dict[str, Any] = {} if where is None else {"where": where}
            more["credits"] = rng.choice([1, 5, 20, 10**6, Fraction(1, 3)])
            act = db.quote_keys if rng.random() < 0.2 else db.keys
            of: Any = rng.choice(["note", "note", ("note", "ward"), "ward", "city", "n"])
            asked.step(partial(act, of, *key_figures(rng), **more), "keys")
        asked.end()


def key_figures(rng: random.Random) -> list[Any]:
    """Figures of keys, often none."""
    sums = [
        count(),
        count(where=col("ill")),
        total("n"),
        mean("income"),
        total("x"),
        total("cents"),
    ]
    return rng.sample(sums, rng.choice([0, 0, 1, 2]))


def alerts(world: World, table: Any, rng: random.Random, relation: Relation, noise: str) -> None:
    with opened(table, relation, noise) as db:
        asked = Asked(world, db)
        armed: list[Any] = []
        for _ in range(STEPS):
            question = whole(rng) if rng.random() < 0.8 else extremes.question(rng)
            going = [one for one in armed if one[0].left]
            if not going or rng.random() < 0.15:
                above = rng.choice([*range(1, 9)] * 2 + [0, -(10**4), 10**4, extremes.number(rng)])
                more = {"credits": rng.choice([1, 5]), "firings": rng.choice([1, 2, 6])}
                made = asked.step(partial(db.alert, question, above=above, **more), "pure")
                armed += [] if made is None else [(made, more["credits"])]
                continue
            alert, credits = rng.choice(armed if rng.random() < 0.1 else going)
            asked.step(rng.choice([alert.check, partial(alert.check, question)]))
            world.steps[-1].judge = Paid(Fraction(credits), db.calibration, "pure")
            world.see(alert, alert.left)
        asked.end()


def mixed(world: World, table: Any, rng: random.Random, relation: Relation, noise: str) -> None:
    """Asks, choices, alerts, reservations, grants, amendments on one ledger, in any order."""
    with opened(table, relation, noise) as db:
        asked = Asked(world, db)
        world.step(partial(db.grant, "ann", 20))
        ann, armed = db.as_analyst("ann"), []
        for _ in range(STEPS):
            who: Any = rng.choice([db, ann])
            match rng.randrange(8):
                case 0:
                    asked.step(partial(who.top, "code", k=1), "pure")
                case 1:
                    above = rng.choice([0, 100])
                    made = asked.step(partial(who.alert, whole(rng), above=above), "pure")
                    armed += [] if made is None else [made]
                case 2 if armed:
                    chosen = rng.choice(armed)
                    world.step(chosen.check)
                case 3:
                    world.step(partial(db.revoke, rng.choice(["ann", "bob"])))
                    world.step(partial(db.grant, "ann", rng.choice([1, 5, 10**9])))
                case 4:
                    world.step(partial(_reserved, who, any_question(rng)))
                case 5:
                    world.step(partial(db.charge_outside, Fraction(1, 100), reason="a survey"))
                case _:
                    asked.step(partial(who.ask, any_question(rng), **terms(rng)))
            world.see(ann.remaining)
        asked.end()
        world.step(partial(db.close_for_good, "done"))
        world.step(partial(db.ask, count()))


def _reserved(who: Any, question: Any) -> Any:
    with who.reserve(2) as reserved:
        return [reserved.ask(question), reserved.remaining]


def sql(world: World, table: Any, rng: random.Random, relation: Relation, noise: str) -> None:
    """Statements with whatever constants; the same question told again and explained."""
    with opened(table, relation, noise) as db:
        asked = Asked(world, db)
        for _ in range(STEPS):
            text, more = statement(rng), {}
            if rng.random() < 0.3:
                more["credits"] = rng.choice([1, 3, Fraction(1, 5)])
            act = db.quote_sql if rng.random() < 0.15 else db.sql
            asked.step(partial(act, text, **more))
        asked.end()


def statement(rng: random.Random) -> str:
    def edge() -> str:
        return f"{float(extremes.number(rng)):.17g}"

    column = rng.choice(["income", "n", "x", "tiny", "wide", "cents", "fine"])
    narrow = f"CLAMP({column}, {rng.choice(['0', '-1', '250000'])}, {abs(float(edge())):.17g})"
    value = rng.choice([column, narrow, f"{narrow} * {edge()}", f"COALESCE({column}, {edge()})"])
    heads = ["COUNT(*)", f"SUM({value})", f"AVG({value})", f"COUNT({column})"] * 3
    heads += [f"VARIANCE({value})", f"SUM(ABS({value}))", f"STDDEV({value})"] * 2
    heads += [f"MEDIAN({column})", f"MIN({column})", f"MAX({column})"]
    wheres = ["", " WHERE ill", f" WHERE {column} >= {edge()}", f" WHERE {column} IS NULL"]
    wheres += [f" WHERE NOT ({narrow} < {edge()}) OR city = 'Oslo'", " WHERE note LIKE '%x%'"]
    head, where = rng.choice(heads), rng.choice(wheres)
    match rng.randrange(9):
        case 5:
            sets = rng.choice(
                ["ROLLUP (city, ill)", "CUBE (city, ill)", "GROUPING SETS ((ill), ())"]
            )
            named = "city, ill" if "city" in sets else "ill"
            return f"SELECT {named}, {head} AS v FROM t{where} GROUP BY {sets}"
        case 6:
            one, two = rng.choice(heads), rng.choice(heads)
            return f"SELECT {one} AS v FROM t{where} UNION ALL SELECT {two} FROM t"
        case 7:
            inner = f"SELECT city, {head} AS v FROM t{where} GROUP BY city"
            return rng.choice(
                [
                    f"SELECT * FROM ({inner}) AS x WHERE v > (SELECT AVG(v) FROM ({inner}) AS y)",
                    f"WITH x AS ({inner}) SELECT MAX(v), COUNT(*) FROM x",
                    f"SELECT city, v, RANK() OVER (ORDER BY v) FROM ({inner}) AS x QUALIFY v > 0",
                    f"SELECT {head}, (SELECT COUNT(*) FROM t) FROM t{where}",
                ]
            )
        case 0:
            return f"SELECT city, {head} AS v FROM t{where} GROUP BY city ORDER BY v DESC LIMIT 1"
        case 1:
            return f"SELECT ill, code, {head} FROM t{where} GROUP BY ill, code HAVING COUNT(*) > 2"
        case 2:
            return f"SELECT {head}, {rng.choice(heads)} / COUNT(*) FROM t{where} WITHIN {edge()}"
        case 3:
            return f"SELECT {rng.choice(heads)} FILTER (WHERE {column} = {edge()}) FROM t{where}"
    return f"SELECT {head} FROM t{where}"


def individual(
    world: World, table: Any, rng: random.Random, relation: Relation, noise: str
) -> None:
    """Balances of their own: nobody sees whose is spent, and nobody loses more than the cap.

    Half of the questions are counts, so that balances come to their end.
    """
    with opened(table, relation, noise, individual=True) as db:
        asked = Asked(world, db)
        for _ in range(STEPS):
            question = whole(rng) if rng.random() < 0.5 else any_question(rng)
            more = {"credits": rng.choice([1, 2, 4])} if rng.random() < 0.5 else terms(rng)
            world.step(partial(db.ask, question, **more))
            world.see(f"remaining {db.remaining}, head {db.ledger.statement().head}")
        asked.end()
        cap = Paid(Fraction(db.calibration.credits), db.calibration)
        world.steps.append(Step(0, end=world.tape.begin(), judge=cap))


def growth(world: World, table: Any, rng: random.Random, relation: Relation, noise: str) -> None:
    """New rows come, and every version answers; what is asked of all of them is paid for."""
    arrives = table["arrives"].to_pylist()
    versions = [table.filter([at <= last for at in arrives]) for last in range(3)]
    db = opened(versions[0], relation, noise)
    for version in range(3):
        asked = Asked(world, db)
        for _ in range(STEPS // 3):
            asked.step(partial(db.ask, any_question(rng), **terms(rng)))
        asked.end()
        if version < 2:
            db = db.grow(versions[version + 1], reason="more", budget=rng.choice([None, 5]))
    db.close()


STEPS = 12
ONCE = {
    "ask": ask,
    "sql": sql,
    "plan": plan,
    "top": top,
    "alerts": alerts,
    "mixed": mixed,
    "individual": individual,
    "growth": growth,
}
"""Paths on which an analyst asks once at a time."""


def by_path(path: str, seed: int, near: int, relation: Relation | None = None) -> int:
    """One table, `near` neighbours, one random sequence; the pairs compared."""
    rng = random.Random(f"{path} {seed}")
    relation = relation or RELATIONS[seed % len(RELATIONS)]
    noise = "laplace" if seed % 2 else rng.choice(["gaussian", "gaussian", "short"])
    if path in ("ask", "plan") and relation is not PERSONS and seed % 10 == 9:
        noise = rng.choice(["huber", "binomial"])
    if path == "individual":
        relation, noise = (ADDED, PERSONS)[seed % 2], "gaussian" if seed % 8 > 5 else "short"
    rows = rows_of(rng, 14)
    tables = [rows, *(relation.near(rows, rng) for _ in range(near))]
    return replay(
        f"{path} {seed} {relation.name} {relation.neighbours} {noise}",
        [arrow(one) for one in tables],
        lambda world, table: ONCE[path](
            world, table, random.Random(f"{path} {seed} play"), relation, noise
        ),
        quiet=path == "alerts" and seed % 4 > 0,
    )


def by_keys(seed: int, near: int) -> int:
    """Keys that are common, and keys of one row alone: releases rounded coarsely."""
    rng = random.Random(f"keys {seed}")
    relation = RELATIONS[seed % len(RELATIONS)]
    common: list[Row] = rows_of(rng, 14)
    alike = {"row": 0, "note": "common", "ward": 7}
    many = [dict(rng.choice(common), who=1000 + at, **alike) for at in range(600)]
    rows = common + many
    tables = [rows, *(relation.near(common, rng) + many for _ in range(near))]
    return replay(
        f"keys {seed} {relation.name}",
        [arrow(one) for one in tables],
        lambda world, table: keys(
            world, table, random.Random(f"keys {seed} play"), relation, "gaussian"
        ),
    )
