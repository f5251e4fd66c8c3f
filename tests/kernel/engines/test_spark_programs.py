"""Spark gives the integers of the reference and of DuckDB, bit for bit, on awkward tables."""

from __future__ import annotations

import datetime as dt
import math
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.kernel.engines import programs, reference, tables
from tests.kernel.engines import test_blocks as vectors
from tests.kernel.engines import test_person_sums as person_programs
from tests.kernel.engines import test_persons as persons
from tests.kernel.engines.agreement import agree, agree_on_vectors
from tests.spark_session import spark_url

import sulq.kernel.engines.spark.engine as engine_file
from sulq.answers.statistics import count, distribution, mean, variance
from sulq.kernel.engines import Engine, open_engine
from sulq.kernel.query.expressions import col
from sulq.kernel.schema import program as b
from sulq.kernel.schema.bind import NoiseGrid, bind
from sulq.kernel.schema.bind_rows import like
from sulq.kernel.schema.columns import Category, Flag, Number, Schema
from sulq.kernel.schema.keys import KeyCounts, bind_keys

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.slow]  # one subset: test_spark.py
X = b.Quantised("x", -100.0, 100.0, 8.0)
ONE = b.Fixed(1)


def parts(content: list[Any], folder: Path, count: int) -> Path:
    """The rows in so many files of unequal size."""
    folder.mkdir()
    cuts = sorted(random.Random(count).randrange(len(content) + 1) for _ in range(count - 1))
    for number, (start, end) in enumerate(zip([0, *cuts], [*cuts, len(content)], strict=True)):
        pq.write_table(tables.table(content[start:end]), folder / f"part-{number}.parquet")
    return folder


def awkward(folder: Path, seed: int, rows: int) -> tuple[Engine, list[Any]]:
    content = tables.rows(seed, rows)
    return open_engine(spark_url(parts(content, folder / "parts", 3)), tables.SCHEMA), content


@pytest.mark.parametrize("seed", range(2))
def test_random_programs_equal_the_reference(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:  # the grouping for columns that hold too many values, and many SELECTs
        monkeypatch.setattr("sulq.kernel.engines.sql.engine.SPARE_KEYS", -(10**6))
        monkeypatch.setattr(engine_file.SparkEngine, "terms_each", 1)
    agree(*awkward(tmp_path, seed, 40), seed, 12)


@pytest.mark.parametrize("seed", range(100, 110))
def test_a_thousand_random_programs_equal_the_reference(seed: int, tmp_path: Path) -> None:
    agree(*awkward(tmp_path, seed, 60), seed, 100)


@pytest.mark.parametrize("products", [0, 10**6])  # all by blocks; by SQL whatever can be
def test_random_vectors_equal_the_reference(
    products: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_file.SparkEngine, "most_products", products)
    agree_on_vectors(*awkward(tmp_path, 3, 40), 3, 8)


@pytest.mark.parametrize("seed", range(100, 103))
def test_many_random_vectors_equal_the_reference(seed: int, tmp_path: Path) -> None:
    agree_on_vectors(*awkward(tmp_path, seed, 60), seed, 60)


# --- rows in another order, other files, other plans --------------------------------------------


def test_row_order_files_and_plans_change_nothing(spark: Any, tmp_path: Path) -> None:
    content = tables.rows(7, 3_000)
    shuffled = random.Random(1).sample(content, len(content))
    duck = open_engine(tables.table(content), tables.SCHEMA)
    engines: list[Any] = [
        open_engine(spark_url(parts(rows, tmp_path / f"{number}", count)), tables.SCHEMA)
        for number, (rows, count) in enumerate(((content, 1), (shuffled, 7), (content, 40)))
    ]
    engines[1]._session().conf.set("spark.sql.codegen.wholeStage", "false")
    engines[2]._session().conf.set("spark.sql.adaptive.enabled", "false")
    engines[2]._session().conf.set("spark.sql.shuffle.partitions", "13")
    engines[2]._session().conf.set("spark.sql.parquet.enableVectorizedReader", "false")
    assert len({engine.fingerprint() for engine in engines}) == 1  # rows in any order
    rng = random.Random(3)
    wanted: list[Any] = [programs.program(rng, tables.FACTS) for _ in range(15)]
    for program in (*wanted, *vectors.programs(3, 8)):
        expected = duck.exact_sums(program)
        assert [engine.exact_sums(program) for engine in engines] == [expected] * len(engines)
    for engine in (*engines, duck):
        engine.close()


# --- persons, keys, distributions ---------------------------------------------------------------

PERSONS = pa.schema(
    [
        ("who", pa.int64()),
        ("x", pa.float64()),
        ("city", pa.string()),
        ("code", pa.int64()),
        ("ill", pa.bool_()),
    ]
)


def stored(rows: list[Any], types: pa.Schema, path: Path) -> str:
    table = pa.table({name: [row[name] for row in rows] for name in types.names}, schema=types)
    pq.write_table(table, path)
    return spark_url(path)


@pytest.mark.parametrize("most", [1, 3])
def test_persons_keep_the_rows_that_the_hash_says(most: int, tmp_path: Path) -> None:
    rows = persons.content(most + 20)
    chosen = persons.kept(rows, most)
    schema = Schema(*persons.COLUMNS, unit="who", max_rows=most)
    shuffled = random.Random(5).sample(rows, len(rows))
    ours = open_engine(stored(shuffled, PERSONS, tmp_path / "p.parquet"), schema)
    duck = open_engine(tmp_path / "p.parquet", schema)
    assert ours.size() == duck.size() == len({row["who"] for row in chosen})
    expected = reference.exact_sums(persons.PROGRAM, chosen)
    assert ours.exact_sums(persons.PROGRAM) == expected == duck.exact_sums(persons.PROGRAM)
    for program in person_programs.programs(most, 8):
        expected = reference.person_sums(program, chosen, "who")
        assert ours.exact_sums(program) == expected, program
    owned = [row for row in rows if row["who"] is not None]
    for program in person_programs.uncut_programs(most):
        expected = reference.person_sums(program, owned, "who")
        assert ours.exact_sums(program) == expected == duck.exact_sums(program), program
    ours.close()
    duck.close()


def test_equal_hashes_are_ordered_by_the_values(tmp_path: Path) -> None:
    base = persons.content(1)[0]
    near = [dict(base, who=1, x=1.5 + i * 1e-9) for i in range(6)]
    schema = Schema(*persons.COLUMNS, unit="who", max_rows=1)
    fine = b.RowSums(b.Always(), (b.Quantised("x", -10.0, 10.0, 2.0**40),))
    mixed = near[::-1]
    engine = open_engine(stored(mixed, PERSONS, tmp_path / "p.parquet"), schema)
    assert engine.exact_sums(fine) == [math.floor(1.5 * 2.0**40 + 0.5)]
    engine.close()


def test_keys_nobody_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sulq.kernel.engines.sql.compile.ROWS_EACH", 200)
    monkeypatch.setattr(engine_file, "FETCHED", 7)
    rows = [{"name": f"k{i % 40}é" if i % 9 else None, "x": float(i)} for i in range(400)]
    types = pa.schema([("name", pa.string()), ("x", pa.float64())])
    schema = Schema(Category("name"), Number("x", 0, 1000))
    engine = open_engine(stored(rows, types, tmp_path / "k.parquet"), schema)
    program = KeyCounts(("name",), b.Missing(b.Text("name"), negated=True), longest=2)
    found = [pair for batch in engine.prepare_keys(program)() for pair in batch]
    expected: dict[str, int] = {}
    for row in rows:
        if row["name"]:
            key = str(row["name"])[:2]
            expected[key] = expected.get(key, 0) + 1
    assert len(found) == len(expected)
    assert {key: count for (key,), count, _ in found} == expected
    engine.close()


def test_keys_with_figures_are_duckdbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = tables.rows(5, 400)
    is_open = Category("code", whole=True)
    schema = Schema(*(is_open if c.name == "code" else c for c in tables.SCHEMA.columns))
    path = tables.parquet(content, tmp_path / "k.parquet")
    ours, duck = (open_engine(at, schema) for at in (spark_url(path), path))
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


def test_a_distribution_is_duckdbs(tmp_path: Path) -> None:
    content = tables.rows(5, 400)
    path = tables.parquet(content, tmp_path / "d.parquet")
    ours, duck = (open_engine(at, tables.SCHEMA) for at in (spark_url(path), path))
    program = bind(distribution("y", by="city"), tables.SCHEMA).sums
    assert any(duck.exact_sums(program))
    assert ours.exact_sums(program) == duck.exact_sums(program)
    ours.close()
    duck.close()


# --- exactness at the edges ---------------------------------------------------------------------


def opened(path: Path, values: list[Any], kind: pa.DataType, column: Any) -> Engine:
    pq.write_table(pa.table({"v": pa.array(values, kind)}), path)
    return open_engine(spark_url(path), Schema(column))


def total(engine: Engine, low: float, high: float, per_unit: float = 1.0) -> list[int]:
    leaf = b.Quantised("v", low, high, per_unit)
    here = b.BoundChoice(b.Missing(leaf, True), ONE, b.Fixed(0))
    found = engine.exact_sums(b.RowSums(b.Always(), (leaf, here)))
    engine.close()
    return found


def test_sums_past_sixty_four_bits_are_exact(tmp_path: Path) -> None:
    content = [dict(tables.rows(1, 1)[0], x=100.0) for _ in range(5_000)]
    engine = open_engine(spark_url(parts(content, tmp_path / "parts", 2)), tables.SCHEMA)
    big = b.BoundScaled(b.Multiplied(X, X), 2**42)
    program = b.RowSums(
        b.Always(), (b.Added((big, b.BoundScaled(X, 3))), X, b.Multiplied(big, ONE))
    )
    expected = reference.exact_sums(program, content)
    assert expected[0] > 2**73
    assert engine.exact_sums(program) == expected
    engine.close()


def test_nan_that_statistics_leave_out_is_no_number(tmp_path: Path) -> None:
    """Parquet says the largest is 5; a NaN is there too, and greater than all in Spark's order."""
    values = [1.0, 5.0, math.nan, None]
    engine = opened(tmp_path / "v.parquet", values, pa.float64(), Number("v", 0, 10))
    leaf = b.Quantised("v", 0.0, 10.0, 1.0)
    counts = [
        engine.exact_sums(b.RowSums(test, (ONE,)))
        for test in (
            b.Missing(leaf, False),
            b.Compared("<", leaf, b.Fixed(9)),
            b.Compared("<=", b.Fixed(6), leaf),
            b.Compared("<>", leaf, b.Fixed(5)),
        )
    ]
    assert counts == [[2], [2], [0], [1]]
    engine.close()


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (pa.float32(), 2.5, 3),
        (pa.int16(), 3, 3),
        (pa.uint64(), 2**64 - 1, 10),
        (pa.decimal128(5, 1), 2.5, 3),
    ],
)
def test_numbers_of_every_width(kind: Any, value: Any, expected: int, tmp_path: Path) -> None:
    if pa.types.is_decimal(kind):
        value = pa.scalar("2.5").cast(kind).as_py()
    engine = opened(tmp_path / "v.parquet", [value, None], kind, Number("v", 0, 10))
    assert total(engine, 0.0, 10.0) == [expected, 1]


TIMES = ["1969-12-31 23:59:59.5", "2000-01-01 00:00:00", "1999-12-31 23:59:59", None]


@pytest.mark.parametrize(
    "kind", [pa.date32(), pa.timestamp("us"), pa.timestamp("us", "Asia/Tokyo")], ids=str
)
def test_dates_and_times(kind: Any, tmp_path: Path) -> None:
    """Without a zone as UTC, with one in UTC, whatever Spark's session was set to."""
    when = [t and dt.datetime.fromisoformat(t).replace(tzinfo=dt.UTC) for t in TIMES]
    values = [t and (t.date() if kind == pa.date32() else t) for t in when]
    if getattr(kind, "tz", None) is None and kind != pa.date32():
        values = [t and t.replace(tzinfo=None) for t in when]  # type: ignore[union-attr]
    early, late = dt.date(1900, 1, 1), dt.date(2100, 1, 1)
    low, high = ((day - dt.date(1970, 1, 1)).days for day in (early, late))
    days = opened(tmp_path / "v.parquet", values, kind, Number("v", early, late))
    y2k = (dt.date(2000, 1, 1) - dt.date(1970, 1, 1)).days
    assert total(days, float(low), float(high)) == [-1 + y2k + y2k - 1, 3]
    bounds = (dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1))
    times = opened(tmp_path / "w.parquet", values, kind, Number("v", *bounds))
    if kind == pa.date32():
        expected = 2 * 86400 * (-1 + y2k + y2k - 1)
    else:
        expected = int(2 * (-0.5 + 2 * y2k * 86400 - 1))
    assert total(times, low * 86400.0, high * 86400.0, 2.0) == [expected, 3]


def test_text_is_compared_by_its_letters(tmp_path: Path) -> None:
    """Quotes, escapes, variables and wildcards of Spark's own mean nothing; _ is one letter."""
    words = ["it's", "a\\", "\\_", "${env:HOME}", "😀", "é", "e\u0301", "a\nb", "", "A", "a", None]
    held = [word for word in words if word is not None]
    path = tmp_path / "t.parquet"
    engine = opened(path, words, pa.string(), Category("v", held))
    rows = [{"v": word} for word in words]
    patterns = [*(word.replace("_", "%") for word in held), "_", "__", "a_b", "\\%", "%\\", "%_%"]
    for pattern in patterns:
        program = b.RowSums(b.Matches("v", pattern, False), (ONE,))
        assert engine.exact_sums(program) == reference.exact_sums(program, rows), pattern
    cells = b.RowSums(b.Always(), (ONE,), (b.CategoryCells("v", tuple(held), True),))
    assert engine.exact_sums(cells) == [1] * len(words)
    listed = b.RowSums(b.Among("v", ("it's", "${env:HOME}", "\ud800"), False), (ONE,))
    assert engine.exact_sums(listed) == [2]
    engine.close()


def test_like_takes_time_pattern_times_text(tmp_path: Path) -> None:
    """One long text must not hold up an answer: a regular expression goes back over every %."""
    letters = ["a", "b", "\u00e9", "\U0001f600", "\n", "\\", "."]
    mixed = random.Random(7)
    texts = ["".join(mixed.choices(letters, k=mixed.randint(0, 7))) for _ in range(200)]
    texts += ["a" * 20_000, "a" * 20_000 + "b"]
    schema = Schema(Category("note"))
    pq.write_table(pa.table({"note": texts}), tmp_path / "p.parquet")
    engine = open_engine(spark_url(tmp_path / "p.parquet"), schema)
    patterns = ["%a%a%a%a%a%a%c", "%a_%a_%a_%a_%b", "%_%", "", "a", "_%_"]
    patterns += ["".join(mixed.choices([*letters, "%", "%", "_"], k=6)) for _ in range(20)]
    for pattern in patterns:
        asked = b.RowSums(b.Matches("note", pattern, False), (ONE,))
        assert engine.exact_sums(asked) == [sum(like(pattern, text) for text in texts)], pattern
    engine.close()


def test_single_precision_is_widened_before_it_is_compared(tmp_path: Path) -> None:
    """An optimiser may compare in single precision instead: thresholds lie between its numbers."""
    reals = [0.1, 0.2, 0.3, 2.5, -7.7, math.nan, math.inf, -math.inf, 0.0, -0.0, 3e38, None]
    engine = opened(tmp_path / "v.parquet", reals, pa.float32(), Number("v", -10, 10))
    rows = [{"v": value} for value in pa.array(reals, pa.float32()).to_pylist()]
    leaf = b.Quantised("v", -10.0, 10.0, 2.0**40)
    for cut in (0.1, 0.2, 2.5, -7.7):
        at = math.floor(cut * 2.0**40 + 0.5)
        for operator in ("<", "<=", "=", "<>"):
            program = b.RowSums(b.Compared(operator, leaf, b.Fixed(at)), (ONE, leaf))
            assert engine.exact_sums(program) == reference.exact_sums(program, rows)
    engine.close()


def test_regrouped_products_do_not_overflow(tmp_path: Path) -> None:
    """Spark moves the 0 of (x * 0) * (m * m) outside; x * m * m passes 2^63."""
    content = [dict(tables.rows(1, 1)[0], x=100.0, z=2.0**31, m=2**31) for _ in range(3)]
    engine = open_engine(spark_url(parts(content, tmp_path / "parts", 1)), tables.SCHEMA)
    z = b.Quantised("z", -(2.0**31), 2.0**31, 1.0)
    m = b.Quantised("m", -(2.0**31), 2.0**31, 1.0)
    square = b.Multiplied(m, z)
    terms = (
        b.Multiplied(b.BoundScaled(X, 0), square),
        b.Multiplied(b.Multiplied(X, b.Fixed(0)), square),
    )
    program = b.RowSums(b.Always(), (*terms, b.Multiplied(b.Magnitude(terms[0]), ONE)))
    assert engine.exact_sums(program) == reference.exact_sums(program, content)
    engine.close()


def test_a_condition_is_not_taken_for_a_name(tmp_path: Path) -> None:
    """`FROM people WHERE (c0)` is, to Spark, the table under the name `where`, its column `c0`."""
    engine = opened(tmp_path / "v.parquet", [True, False, None], pa.bool_(), Flag("v"))
    for test, expected in ((b.AnyOf((b.FlagIs("v", True),)), 1), (b.AnyOf((b.Never(),)), 0)):
        assert engine.exact_sums(b.RowSums(test, (ONE,))) == [expected]
    engine.close()
