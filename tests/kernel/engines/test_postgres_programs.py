"""PostgreSQL gives the integers of the reference and of DuckDB, bit for bit, on awkward tables."""

from __future__ import annotations

import datetime as dt
import math
import random
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pandas as pd
import pytest
from tests.kernel.engines import programs, reference, tables
from tests.kernel.engines import test_blocks as vectors
from tests.kernel.engines import test_person_sums as person_programs
from tests.kernel.engines import test_persons as persons
from tests.kernel.engines.agreement import agree, agree_on_vectors
from tests.kernel.engines.postgres_tables import AWKWARD, fill, run, storable
from tests.postgres_server import PostgresServer

import sulq.kernel.engines.postgres.engine as engine_file
from sulq.answers.statistics import count, distribution, mean, variance
from sulq.kernel.engines import Engine, open_engine
from sulq.kernel.engines.sql.compile import key_statements
from sulq.kernel.query.expressions import col
from sulq.kernel.schema import program as b
from sulq.kernel.schema.bind import NoiseGrid, bind
from sulq.kernel.schema.columns import Category, Flag, Number, Schema
from sulq.kernel.schema.keys import KeyCounts, bind_keys

X = b.Quantised("x", -100.0, 100.0, 8.0)
ONE = b.Fixed(1)


def awkward(server: PostgresServer, seed: int, rows: int) -> tuple[Engine, list[Any]]:
    content = storable(tables.rows(seed, rows))
    return open_engine(fill(server, "awkward", AWKWARD, content), tables.SCHEMA), content


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(4))
def test_random_programs_equal_the_reference(
    seed: int, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:  # the grouping for columns that hold too many values, and many SELECTs
        monkeypatch.setattr("sulq.kernel.engines.sql.engine.SPARE_KEYS", -(10**6))
        monkeypatch.setattr(engine_file.PostgresEngine, "terms_each", 1)
    agree(*awkward(postgres, seed, 40), seed, 60)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_a_thousand_random_programs_equal_the_reference(
    seed: int, postgres: PostgresServer
) -> None:
    agree(*awkward(postgres, seed, 80), seed, 250)


@pytest.mark.sample(1)
@pytest.mark.parametrize("products", [0, 10**6])  # all by blocks; by SQL whatever can be
def test_random_vectors_equal_the_reference(
    products: int, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_file.PostgresEngine, "most_products", products)
    agree_on_vectors(*awkward(postgres, 3, 40), 3, 40)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_many_random_vectors_equal_the_reference(seed: int, postgres: PostgresServer) -> None:
    agree_on_vectors(*awkward(postgres, seed, 60), seed, 100)


def test_a_stream_without_rows(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its header and its end come in one piece."""
    monkeypatch.setattr(engine_file.PostgresEngine, "most_products", 0)
    engine, _ = awkward(postgres, 3, 5)
    program = replace(next(iter(vectors.programs(3, 1))), rows=b.Never())
    assert set(engine.exact_sums(program)) == {0}
    engine.close()


# --- rows in another order, other plans ---------------------------------------------------------

PLANS = (
    {},
    {"work_mem": "64kB", "max_parallel_workers_per_gather": "0"},
    {
        "max_parallel_workers_per_gather": "2",
        "parallel_setup_cost": "0",
        "parallel_tuple_cost": "0",
        "min_parallel_table_scan_size": "0",
        "debug_parallel_query": "on",
    },
    {"enable_hashagg": "off", "enable_sort": "on"},
)


def with_plan(server: PostgresServer, url: str, plan: dict[str, str]) -> str:
    """The address with the settings as the session's own."""
    version = int(run(server, "SHOW server_version_num")[0][0])
    known = {
        ("force_parallel_mode" if name == "debug_parallel_query" and version < 160_000 else name): v
        for name, v in plan.items()
    }
    options = "%20".join(f"-c%20{name}%3D{value}" for name, value in known.items())
    return f"{url}&options={options}" if options else url


@pytest.mark.slow
def test_row_order_memory_and_workers_change_nothing(postgres: PostgresServer) -> None:
    content = storable(tables.rows(7, 3_000))
    shuffled = random.Random(1).sample(content, len(content))
    urls = [
        fill(postgres, name, AWKWARD, rows)
        for name, rows in (("in order", content), ("shuffled", shuffled))
    ]
    run(postgres, 'ANALYZE "in order"; ANALYZE shuffled')
    engines = [
        open_engine(with_plan(postgres, url.replace("in order", "in%20order"), plan), tables.SCHEMA)
        for url in urls
        for plan in PLANS
    ]
    duck = open_engine(tables.table(content), tables.SCHEMA)
    assert len({engine.fingerprint() for engine in engines}) == 1  # rows in any order
    rng = random.Random(3)
    wanted: list[Any] = [programs.program(rng, tables.FACTS) for _ in range(15)]
    for program in (*wanted, *vectors.programs(3, 8)):
        expected = duck.exact_sums(program)
        assert [engine.exact_sums(program) for engine in engines] == [expected] * len(engines)
    for engine in (*engines, duck):
        engine.close()


# --- persons, keys, distributions ---------------------------------------------------------------

PERSONS = {"who": "bigint", "x": "float8", "city": "text", "code": "bigint", "ill": "boolean"}


@pytest.mark.parametrize("most", [1, 3, 1000])
def test_persons_keep_the_rows_that_the_hash_says(most: int, postgres: PostgresServer) -> None:
    rows = persons.content(most + 20)
    chosen = persons.kept(rows, most)
    schema = Schema(*persons.COLUMNS, unit="who", max_rows=most)
    shuffled = random.Random(5).sample(rows, len(rows))
    ours = open_engine(fill(postgres, "people", PERSONS, shuffled), schema)
    frame = pd.DataFrame(rows).astype({"who": "Int64"})
    duck = open_engine(frame, schema)
    assert ours.size() == duck.size() == len({row["who"] for row in chosen})
    expected = reference.exact_sums(persons.PROGRAM, chosen)
    assert ours.exact_sums(persons.PROGRAM) == expected == duck.exact_sums(persons.PROGRAM)
    for program in person_programs.programs(most, 40):
        expected = reference.person_sums(program, chosen, "who")
        assert ours.exact_sums(program) == expected, program
    owned = [row for row in rows if row["who"] is not None]
    for program in person_programs.uncut_programs(most):
        expected = reference.person_sums(program, owned, "who")
        assert ours.exact_sums(program) == expected == duck.exact_sums(program), program
    ours.close()
    duck.close()


def test_equal_hashes_are_ordered_by_the_values(postgres: PostgresServer) -> None:
    """Text too: bytewise, as DuckDB orders it, whatever the column's collation."""
    base = persons.content(1)[0]
    near = [dict(base, who=1, x=1.5 + i * 1e-9) for i in range(6)]
    schema = Schema(*persons.COLUMNS, unit="who", max_rows=1)
    fine = b.RowSums(b.Always(), (b.Quantised("x", -10.0, 10.0, 2.0**40),))
    for seed in range(3):
        mixed = random.Random(seed).sample(near, 6)
        engine = open_engine(fill(postgres, "people", PERSONS, mixed), schema)
        assert engine.exact_sums(fine) == [math.floor(1.5 * 2.0**40 + 0.5)]
        engine.close()


def test_persons_named_by_uuid_and_sums_of_sixteen_digits(postgres: PostgresServer) -> None:
    """A cast of a float8 sum to numeric would keep fifteen."""
    types = PERSONS | {"who": "uuid"}
    rows = [
        {"who": f"{i % 3:032x}", "x": 9.999999, "city": "a", "code": 1, "ill": True}
        for i in range(600)
    ]
    engine = open_engine(
        fill(postgres, "people", types, rows), Schema(*persons.COLUMNS, unit="who", max_rows=1000)
    )
    fine = b.Quantised("x", -10.0, 10.0, float(10**12 + 1))
    program = person_programs.PersonSums(b.Always(), fine, (), -(2**62), 2**62, 1000)
    expected = reference.person_sums(program, rows, "who")
    assert expected[0] > 3 * 10**15
    assert engine.exact_sums(program) == expected
    engine.close()


def test_keys_nobody_declared(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sulq.kernel.engines.sql.compile.ROWS_EACH", 50)
    monkeypatch.setattr(engine_file, "FETCHED", 7)
    rows = [{"name": f"k{i % 40}é" if i % 9 else None, "x": float(i)} for i in range(400)]
    types = {"name": "text", "x": "float8"}
    schema = Schema(Category("name"), Number("x", 0, 1000))
    engine = open_engine(fill(postgres, "keyed", types, rows), schema)
    held = b.Missing(b.Text("name"), negated=True)
    program = KeyCounts(("name",), held, longest=2)
    places = engine.source.places  # type: ignore[attr-defined]
    assert len(key_statements(program, places, 400).parts) == 8
    found = [pair for batch in engine.prepare_keys(program)() for pair in batch]
    expected: dict[str, int] = {}
    for row in rows:
        if row["name"]:
            key = str(row["name"])[:2]
            expected[key] = expected.get(key, 0) + 1
    assert len(found) == len(expected)
    assert {key: count for (key,), count, _ in found} == expected
    engine.close()


def test_keys_with_figures_are_duckdbs(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = storable(tables.rows(5, 400))
    is_open = Category("code", whole=True)
    schema = Schema(*(is_open if c.name == "code" else c for c in tables.SCHEMA.columns))
    ours = open_engine(fill(postgres, "awkward", AWKWARD, content), schema)
    duck = open_engine(tables.table(content), schema)
    asked = [mean("y"), variance("x"), mean("x", where=col("bit")), count("y")]
    for columns, rows in (("name", 10**6), ("code", 100), (("name", "code"), 100)):
        monkeypatch.setattr("sulq.kernel.engines.sql.compile.ROWS_EACH", rows)
        bound = bind_keys(columns, None, 9, schema, "replace", NoiseGrid(), asked)
        found = [
            sorted(row for batch in engine.prepare_keys(bound.program)() for row in batch)
            for engine in (ours, duck)
        ]
        assert found[0] == found[1] != []
    ours.close()
    duck.close()


def test_a_distribution_is_duckdbs(postgres: PostgresServer) -> None:
    content = storable(tables.rows(5, 400))
    ours = open_engine(fill(postgres, "awkward", AWKWARD, content), tables.SCHEMA)
    duck = open_engine(tables.table(content), tables.SCHEMA)
    program = bind(distribution("y", by="city"), tables.SCHEMA).sums
    assert any(duck.exact_sums(program))
    assert ours.exact_sums(program) == duck.exact_sums(program)
    ours.close()
    duck.close()


# --- exactness at the edges ---------------------------------------------------------------------


def opened(server: PostgresServer, values: list[Any], kind: str, column: Any) -> Engine:
    url = fill(server, "one", {"v": kind}, [{"v": value} for value in values])
    return open_engine(url, Schema(column))


def total(engine: Engine, low: float, high: float, per_unit: float = 1.0) -> list[int]:
    leaf = b.Quantised("v", low, high, per_unit)
    here = b.BoundChoice(b.Missing(leaf, True), ONE, b.Fixed(0))
    found = engine.exact_sums(b.RowSums(b.Always(), (leaf, here)))
    engine.close()
    return found


def test_sums_past_sixty_four_bits_are_exact(postgres: PostgresServer) -> None:
    content = [dict(tables.rows(1, 1)[0], x=100.0) for _ in range(5_000)]
    engine = open_engine(fill(postgres, "awkward", AWKWARD, storable(content)), tables.SCHEMA)
    big = b.BoundScaled(b.Multiplied(X, X), 2**42)
    program = b.RowSums(
        b.Always(), (b.Added((big, b.BoundScaled(X, 3))), X, b.Multiplied(big, ONE))
    )
    expected = reference.exact_sums(program, content)
    assert expected[0] > 2**73
    assert engine.exact_sums(program) == expected
    engine.close()


def test_a_quotient_just_below_a_whole_number(postgres: PostgresServer) -> None:
    """Past 2^62 in numeric, whose own division rounds: 1 - 2^-63 is no 1."""
    engine = opened(postgres, [1.0], "float8", Number("v", 0, 1))
    one = b.Quantised("v", 0.0, 1.0, 1.0)
    over, under = b.Added((one, b.Fixed(2**61 - 2))), b.Added((one, b.Fixed(2**62 - 2)))
    program = b.RowSums(b.Always(), (b.Divided(over, under), b.Divided(under, over)))
    expected = reference.exact_sums(program, [{"v": 1.0}])
    assert expected == [0, 2]
    assert engine.exact_sums(program) == expected
    engine.close()


def test_a_sum_of_thousands_of_parts(postgres: PostgresServer) -> None:
    """A parser recurses along a sum; its depth must not grow with the parts."""
    engine = opened(postgres, [1.0, 2.0, None], "float8", Number("v", 0, 10))
    parts = tuple(b.Quantised("v", 0.0, 10.0, 1.0 + i / 9) for i in range(5_000))
    program = b.RowSums(b.Always(), (b.Added(parts),))
    expected = reference.exact_sums(program, [{"v": 1.0}, {"v": 2.0}, {"v": None}])
    assert engine.exact_sums(program) == expected
    engine.close()


@pytest.mark.parametrize("per_unit", [1.0, 0.1, 1e-3, 1 / 3, 1e-30, 1e-300, 5e-324])
def test_products_that_vanish_raise_nothing(per_unit: float, postgres: PostgresServer) -> None:
    values = [5e-324, -5e-324, 1e-310, 2.0**-500 / max(per_unit, 1e-300), -1e-200, 0.0, -0.0]
    values += [1e-5, 3.0, -3.0, math.nan, math.inf, -math.inf, None]  # type: ignore[list-item]
    rows = [{"v": value} for value in values]
    engine = opened(postgres, values, "double precision", Number("v", -4, 4))
    leaf = b.Quantised("v", -4.0, 4.0, per_unit)
    term = b.Multiplied(b.Added((leaf, b.Fixed(3))), leaf)  # no test of the bare column
    program = b.RowSums(b.Always(), (leaf, term))
    assert engine.exact_sums(program) == reference.exact_sums(program, rows)
    engine.close()


def test_numerics_of_any_size(postgres: PostgresServer) -> None:
    values = [Decimal(10) ** 400, -(Decimal(10) ** 400), Decimal(10) ** -400, Decimal("2.5"), None]
    values += [Decimal("NaN"), Decimal("Infinity"), Decimal("-Infinity"), Decimal("0")]
    engine = opened(postgres, values, "numeric", Number("v", -10, 10))
    assert total(engine, -10.0, 10.0) == [3, 7]  # 10 - 10 + 0 + 3 + 10 - 10 + 0
    engine = opened(postgres, [Decimal("NaN"), Decimal("7.1")], "numeric(30,2)", Number("v", 0, 10))
    assert total(engine, 0.0, 10.0, 10.0) == [71, 1]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [("real", 2.5, 3), ("smallint", 3, 3), ("bigint", 2**62, 10), ("decimal(5,1)", "2.5", 3)],
)
def test_numbers_of_every_width(
    kind: str, value: Any, expected: int, postgres: PostgresServer
) -> None:
    assert total(opened(postgres, [value, None], kind, Number("v", 0, 10)), 0.0, 10.0) == [
        expected,
        1,
    ]


TIMES = ["1969-12-31 23:59:59.5", "2000-01-01 00:00:00", "1999-12-31 23:59:59", "infinity", None]


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz"])
def test_dates_and_times(kind: str, postgres: PostgresServer) -> None:
    """timestamptz is read in UTC whatever the server's zone is."""
    values = [v and (v[:10] if kind == "date" and v != "infinity" else v) for v in TIMES]
    days = Number("v", dt.date(1900, 1, 1), dt.date(2100, 1, 1))
    late = (dt.date(2100, 1, 1) - dt.date(1970, 1, 1)).days
    y2k = (dt.date(2000, 1, 1) - dt.date(1970, 1, 1)).days
    low = float((dt.date(1900, 1, 1) - dt.date(1970, 1, 1)).days)
    utc = [v and (v + "+00" if kind == "timestamptz" and v != "infinity" else v) for v in values]
    early = "-infinity"
    engine = opened(postgres, [*utc, early], kind, days)
    assert total(engine, low, float(late)) == [-1 + 2 * y2k - 1 + late + int(low), 5]
    times = Number("v", dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1))
    engine = opened(postgres, utc, kind, times)
    second = -86400 if kind == "date" else -0.5
    before = -86400 if kind == "date" else -1
    expected = int(2 * (second + 2 * y2k * 86400 + before + late * 86400))
    assert total(engine, low * 86400, late * 86400.0, 2.0) == [expected, 4]


def test_seconds_are_duckdbs_to_the_last_bit(postgres: PostgresServer) -> None:
    rng = random.Random(8)
    start = dt.datetime(1, 1, 1)
    times = [
        start + dt.timedelta(microseconds=rng.randrange(9990 * 365 * 86400 * 10**6))
        for _ in range(300)
    ]
    schema = Schema(Number("v", dt.datetime(1, 1, 1), dt.datetime(9999, 1, 1)))
    ours = open_engine(fill(postgres, "one", {"v": "timestamp"}, [{"v": t} for t in times]), schema)
    duck = open_engine(pd.DataFrame({"v": pd.Series(times, dtype="datetime64[us]")}), schema)
    low, high = -62135596800.0, 253370764800.0
    for cut in rng.sample(times, 20):
        seconds = (cut - dt.datetime(1970, 1, 1)) / dt.timedelta(seconds=1)
        leaf = b.Quantised("v", low, high, 1e4)
        at = math.floor(seconds * 1e4 + 0.5)
        program = b.RowSums(b.Compared("<=", leaf, b.Fixed(at)), (ONE, leaf))
        assert ours.exact_sums(program) == duck.exact_sums(program)
    ours.close()
    duck.close()


def test_text_of_every_kind(postgres: PostgresServer) -> None:
    """Fixed width, an enum, a domain, a collation to which A equals a: bytes decide."""
    run(
        postgres,
        "DROP TABLE IF EXISTS one; DROP TYPE IF EXISTS mood CASCADE; DROP DOMAIN IF EXISTS word;"
        "CREATE TYPE mood AS ENUM ('a', 'A'); CREATE DOMAIN word AS varchar(9);",
    )
    collation = "CREATE COLLATION IF NOT EXISTS loose (provider = icu, locale = 'und-u-ks-level2',"
    has_icu = bool(run(postgres, "SELECT 1 FROM pg_collation WHERE collname = 'und-x-icu'"))
    kinds = ["text", "char(3)", "mood", "word"]
    if has_icu:
        run(postgres, f"{collation} deterministic = false)")
        kinds.append("text COLLATE public.loose")
    for kind in kinds:
        engine = opened(postgres, ["a", "A", "a", None], kind, Category("v", ["a", "b"]))
        cells = b.CategoryCells("v", ("a", "b"), other=True)
        grouped = engine.exact_sums(b.RowSums(b.Always(), (ONE,), (cells,)))
        assert grouped == [2, 0, 2], kind
        among = b.RowSums(b.Among("v", ("a",), False), (ONE,))
        like = b.RowSums(b.Matches("v", "_", False), (ONE,))
        assert engine.exact_sums(among) + engine.exact_sums(like) == [2, 3], kind
        engine.close()


def test_a_value_that_no_text_can_hold(postgres: PostgresServer) -> None:
    """A zero character would end the statement early."""
    engine = opened(postgres, ["a", "b", None], "text", Category("v", ["a", "b"]))
    tests: list[b.Condition] = [
        b.Among("v", ("a\0",), False),
        b.Among("v", ("a\0",), True),
        b.Among("v", ("a", "a\0"), True),
        b.Matches("v", "a\0%", False),
        b.Matches("v", "a\0%", True),
    ]
    count = [engine.exact_sums(b.RowSums(test, (ONE,)))[0] for test in tests]
    assert count == [0, 2, 1, 0, 2]
    engine.close()


def test_flags(postgres: PostgresServer) -> None:
    for kind, values in (("boolean", [True, False, None]), ("integer", [1, 0, 7])):
        engine = opened(postgres, values, kind, Flag("v"))
        cells = b.FlagCells("v", other=True)
        assert engine.exact_sums(b.RowSums(b.Always(), (ONE,), (cells,))) == [1, 1, 1]
        engine.close()


def test_more_terms_than_a_select_has_room_for(postgres: PostgresServer) -> None:
    engine = opened(postgres, [1.0, 2.0, None], "float8", Number("v", 0, 10))
    terms = tuple(
        b.Divided(b.Quantised("v", 0.0, 10.0, float(i)), b.Fixed(7)) for i in range(1, 1800)
    )
    program = b.RowSums(
        b.Always(), terms, (b.BinCells(b.Quantised("v", 0.0, 10.0, 1.0), (0, 2, 4), False),)
    )
    rows = [{"v": 1.0}, {"v": 2.0}, {"v": None}]
    assert engine.exact_sums(program) == reference.exact_sums(program, rows)
    engine.close()
