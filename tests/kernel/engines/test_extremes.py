"""Clips, steps, bounds and constants from 10^-60 to 10^30, on every engine.

The first tests are the break that they are here for: an analyst's clip chose a factor past 2^63.
"""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.kernel.engines import extremes, reference, vector_reference
from tests.people import publish
from tests.postgres_server import PostgresServer
from tests.spark_session import spark_url

from sulq import Flag, InvalidQuery, Number, Schema, col
from sulq.answers.statistics import mean, per_person, total, variance
from sulq.kernel.engines import open_engine
from sulq.kernel.query.sum_query import Statistic, outer
from sulq.kernel.query.vectors import columns, ones
from sulq.kernel.schema import program as b
from sulq.kernel.schema.bind import bind
from sulq.kernel.schema.sensitivity import PersonSums

BREAK = Schema(Number("income", 0, 500_000), Number("n", -4, 4, step=1), Flag("ill"))
HELD: list[dict[str, Any]] = [
    {"income": 1_000 * i, "n": i % 9 - 4, "ill": i % 3 == 0} for i in range(60)
]
FRAME = pa.Table.from_pylist(HELD)
S1 = (
    col("n").clip(0, Fraction(39, 10**22))
    - col("income").clip(Fraction(11830237653, 35 * 10**24), Fraction(23660475579, 70 * 10**24)) * 3
)
F1 = col("income").clip(0, 12.01e-36)
S2 = col("income").clip(0, Fraction(1, 10**12))
ASKED = [
    mean(S1, where=col("ill")),
    *(form(x) for x in (F1, S2) for form in (total, variance)),
    *(total(x * x) for x in (F1, S2)),
    *(total(x + col("income")) for x in (F1, S2)),
]


def drawn(seed: int) -> int:
    """The gate's seed; in the place of a slow case's a new one, which is told if it fails."""
    if seed >= 100:
        seed = random.SystemRandom().randrange(100, 10**9)
        print(f"seed {seed}")
    return seed


def settled(engine: Any, asked_once: list[Statistic] = ASKED) -> None:
    """Those questions, as an old ledger may hold them, give the integers that were proved."""
    for asked in asked_once:
        program = bind(asked, BREAK, asked_before=True).sums
        assert isinstance(program, b.RowSums)
        assert engine.exact_sums(program) == reference.exact_sums(program, HELD)
    engine.close()


def test_the_clips_of_the_break_are_refused_for_nothing() -> None:
    db = publish(FRAME, BREAK)
    for asked in ASKED:
        for verb in (db.quote, db.ask):
            with pytest.raises(InvalidQuery, match="too narrow"):
                verb(asked)  # type: ignore[operator]
    with pytest.raises(InvalidQuery, match="too narrow"):
        db.sql("SELECT VARIANCE(CLAMP(income, 0, 1e-35)) FROM data")
    assert db.remaining == 100


def test_an_old_question_is_exact_on_duckdb() -> None:
    settled(open_engine(FRAME, BREAK))


def test_an_old_question_is_exact_on_postgresql(postgres: PostgresServer) -> None:
    from tests.kernel.engines.postgres_tables import fill

    types = {"income": "bigint", "n": "bigint", "ill": "boolean"}
    settled(open_engine(fill(postgres, "broken", types, HELD), BREAK))


def test_ranges_of_an_owner_that_only_0_fits_are_exact() -> None:
    """Whole numbers, declared from 0 to 10^-35: of rows, of persons, and as coordinates."""
    held = [{"who": i % 5, "p": i % 3 - 1, "q": 2**52 + i % 2} for i in range(30)]
    numbers = (Number("p", 0, Fraction(1, 10**35)), Number("q", 2**52, 2**52 + Fraction(1, 10**40)))
    for schema in (Schema(*numbers), Schema(*numbers, unit="who", max_rows=30)):
        engine = open_engine(pa.Table.from_pylist(held), schema)
        for asked in (total("p"), variance("p"), total("q"), mean(col("p") * col("q"))):
            program = bind(asked, schema).sums
            assert engine.exact_sums(program) == reference.exact_sums(program, held)  # type: ignore[arg-type]
        bound = bind(outer(ones(), columns(["p"])), schema)
        assert engine.exact_sums(bound.sums) == [10 * 2**18]
        engine.close()


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(100, 130))]
)
def test_extreme_questions_on_duckdb(seed: int) -> None:
    seed = drawn(seed)
    content = extremes.rows(seed)
    engine = open_engine(extremes.table(content), extremes.SCHEMA, threads=1)
    for bound in extremes.questions(seed, 100):
        extremes.check(engine, bound, content)
    engine.close()


@pytest.mark.parametrize(
    "seed", [2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(200, 220))]
)
def test_extreme_questions_on_postgresql(seed: int, postgres: PostgresServer) -> None:
    from tests.kernel.engines.postgres_tables import fill

    seed = drawn(seed)
    content = extremes.rows(seed)
    types = {name: kind for name, (_, kind) in extremes.TYPES.items()}
    engine = open_engine(fill(postgres, "extreme", types, content), extremes.SCHEMA)
    for bound in extremes.questions(seed, 80):
        extremes.check(engine, bound, content)
    engine.close()


def spark_sample(folder: Path) -> None:
    """The break, and a few more: what the gate runs, in test_spark.py."""
    pq.write_table(FRAME, folder / "broken.parquet")
    settled(open_engine(spark_url(folder / "broken.parquet"), BREAK), ASKED[:2])
    on_spark(3, 3, folder)


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_an_old_question_is_exact_on_spark(tmp_path: Path) -> None:
    pq.write_table(FRAME, tmp_path / "broken.parquet")
    settled(open_engine(spark_url(tmp_path / "broken.parquet"), BREAK))


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("seed", range(300, 310))
def test_more_extreme_questions_on_spark(seed: int, tmp_path: Path) -> None:
    on_spark(drawn(seed), 60, tmp_path)


def on_spark(seed: int, count: int, folder: Path) -> None:
    content = extremes.rows(seed)
    pq.write_table(extremes.table(content), folder / "extreme.parquet")
    engine = open_engine(spark_url(folder / "extreme.parquet"), extremes.SCHEMA)
    for bound in extremes.questions(seed, count):
        extremes.check(engine, bound, content)
    engine.close()


@pytest.mark.parametrize(
    "seed", [4, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(400, 410))]
)
def test_extreme_vectors(seed: int, postgres: PostgresServer) -> None:
    """Matrices, centres, weights and factors: on blocks of NumPy, and as SQL where small."""
    from tests.kernel.engines.postgres_tables import fill

    seed = drawn(seed)
    content = extremes.rows(seed)
    types = {name: kind for name, (_, kind) in extremes.TYPES.items()}
    engines = [
        open_engine(extremes.table(content), extremes.SCHEMA, threads=1),
        open_engine(fill(postgres, "extreme", types, content), extremes.SCHEMA),
    ]
    for program in extremes.outer_products(seed, 60):
        expected = vector_reference.outer_sums(program, content)
        assert [engine.exact_sums(program) for engine in engines] == [expected] * 2
    for engine in engines:
        engine.close()


@pytest.mark.parametrize(
    "seed", [5, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(500, 510))]
)
def test_extreme_sums_per_person(seed: int) -> None:
    """A clip of any size per person: the reference's integers, and nobody adds more than it."""
    seed = drawn(seed)
    rng = random.Random(seed)
    schema = Schema(*extremes.SCHEMA.columns, unit="who", max_rows=extremes.ROWS, bits=31)
    content = [dict(row, who=row["row"] % 4) for row in extremes.rows(seed)]
    whose = pa.array([row["who"] for row in content], pa.int64())
    engine = open_engine(extremes.table(content).append_column("who", whose), schema)
    answered = 0
    for _ in range(120):
        clip = sorted((extremes.number(rng), rng.choice([0, 10**6, extremes.number(rng)])))
        value = extremes.expression(rng, rng.choice([0, 1, 2]))
        asked = per_person(total(value, where=extremes.condition(rng)), (clip[0], clip[1]))
        try:
            program = bind(asked, schema).sums
        except InvalidQuery:
            continue
        answered += 1
        assert isinstance(program, PersonSums)
        assert engine.exact_sums(program) == reference.person_sums(program, content, "who")
        for who in range(4):
            own = [row for row in content if row["who"] == who]
            (one,) = reference.person_sums(program, own, "who")
            assert min(program.low, 0) <= one <= max(program.high, 0)
    assert answered > 40
    engine.close()
