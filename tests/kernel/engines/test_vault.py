"""A vault gives the integers of the table it was made of, and shows nothing of its rows besides."""

from __future__ import annotations

import json
import random
import time
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.kernel.engines import programs, reference, tables
from tests.kernel.engines.test_blocks import programs as vector_programs
from tests.kernel.engines.typed import bad_on_duckdb

from sulq.errors import EngineFailed, InvalidQuery
from sulq.kernel.engines import Engine, open_engine
from sulq.kernel.engines.duckdb.vault import open_vault, write_vault
from sulq.kernel.engines.sql.compile import statement
from sulq.kernel.schema import program as b
from sulq.kernel.schema.columns import Category, Flag, Number, Schema
from sulq.kernel.schema.fixed_point import leaf
from sulq.kernel.schema.keys import KeyCounts

KEY = 2**63 + 12345
GRIDS = {
    column.name: leaf(column, tables.SCHEMA.bits).node.per_unit  # type: ignore[union-attr]
    for column in tables.SCHEMA.columns
    if isinstance(column, Number)
}
FACTS = programs.Facts(
    tables.FACTS.numbers,
    {"name": tables.FACTS.texts["name"]},
    {"code": tables.CODES, "city": tables.CITIES},  # type: ignore[dict-item]
    tables.FACTS.flags,
    tables.FACTS.edges,
    GRIDS,
)
"""Programs as `bind` makes them: of a declared column, declared values alone are asked for."""


def vaulted(content: list[reference.Row], folder: Path) -> tuple[Engine, Engine]:
    """The direct path and the vault of one file."""
    path = tables.parquet(content, folder / "awkward.parquet")
    direct = open_engine(path, tables.SCHEMA, threads=1)
    return direct, opened(path, tables.SCHEMA, folder)


def opened(path: Path, schema: Schema, folder: Path) -> Engine:
    place = folder / "vault"
    contents = write_vault(path, schema, place, KEY)
    return open_vault(place, schema, contents, "of the source", [])


@pytest.mark.parametrize(
    "seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 25))]
)
def test_random_programs_give_the_same_integers_on_both_paths(seed: int, tmp_path: Path) -> None:
    content = tables.rows(seed, 40)
    direct, vault = vaulted(content, tmp_path)
    rng = random.Random(seed)
    telling = 0
    for _ in range(200):
        program = programs.program(rng, FACTS)
        expected = reference.exact_sums(program, content)
        assert direct.exact_sums(program) == expected, program
        assert vault.exact_sums(program) == expected, program
        telling += any(expected)
    assert telling > 80
    direct.close()
    vault.close()


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))]
)
def test_random_vectors_give_the_same_integers_on_both_paths(seed: int, tmp_path: Path) -> None:
    direct, vault = vaulted(tables.rows(seed, 40), tmp_path)
    telling = 0
    for program in vector_programs(seed, 60):
        expected = direct.exact_sums(program)
        assert vault.exact_sums(program) == expected, program
        telling += any(expected)
    assert telling > 45
    direct.close()
    vault.close()


def test_keys_that_nobody_declared_are_the_same_on_both_paths(tmp_path: Path) -> None:
    direct, vault = vaulted(tables.rows(5, 200), tmp_path)
    program = KeyCounts(
        ("name",), b.AllOf((b.Missing(b.Text("name"), True), b.FlagIs("bit", True)))
    )
    found = [
        sorted(pair for batch in engine.prepare_keys(program)() for pair in batch)
        for engine in (direct, vault)
    ]
    assert found[0] == found[1] != []
    direct.close()
    vault.close()


def test_texts_are_read_alike(tmp_path: Path) -> None:
    """A CSV file, where every cell is text and some are not what was declared."""
    path = tmp_path / "texts.csv"
    path.write_text("x,n,city,smoker\n1.5,7,Oslo,yes\nNaN,?,Rome,no\n-1e9,8.6,,maybe\n,1,Paris,1\n")
    schema = Schema(
        Number("x", -100, 100),
        Number("n", 0, 120, step=1),
        Category("city", tables.CITIES),
        Flag("smoker"),
    )
    direct = open_engine(path, schema)
    vault = opened(path, schema, tmp_path)
    for column in ("x", "n"):
        node = leaf(schema[column], schema.bits).node  # type: ignore[arg-type]
        program = b.RowSums(b.Always(), (node,), (b.CategoryCells("city", tables.CITIES, True),))
        assert direct.exact_sums(program) == vault.exact_sums(program)
    direct.close()
    vault.close()


def test_what_bind_never_asks_is_refused_by_a_vault(tmp_path: Path) -> None:
    direct, vault = vaulted(tables.rows(1, 20), tmp_path)
    for condition in (
        b.Among("city", ("Atlantis",), False),
        b.Matches("city", "A%", False),
        b.Compared("<", b.Quantised("x", -200.0, 100.0, 8.0), b.Fixed(3)),
    ):
        direct.prepare(b.RowSums(condition, (b.Fixed(1),)))
        with pytest.raises(InvalidQuery):
            vault.prepare(b.RowSums(condition, (b.Fixed(1),)))
    direct.close()
    vault.close()


# --- what is stored ------------------------------------------------------------------------------


def test_the_file_holds_declared_columns_in_the_narrowest_types(tmp_path: Path) -> None:
    content = tables.rows(3, 20)
    path = tables.parquet(content, tmp_path / "awkward.parquet")
    schema = Schema(*(tables.SCHEMA[name] for name in ("n", "x", "d", "small", "code", "smoker")))
    place = tmp_path / "vault"
    write_vault(path, schema, place, KEY)
    with duckdb.connect(str(place), read_only=True) as inside:
        held = {row[0]: row[1] for row in inside.execute("DESCRIBE people").fetchall()}
        texts = inside.execute("SELECT CAST(people AS VARCHAR) FROM people").fetchall()
    assert held == {
        "c0": "UTINYINT",
        "c1": "DOUBLE",
        "q1": "INTEGER",
        "c2": "DOUBLE",
        "q2": "INTEGER",
        "c3": "SMALLINT",
        "c4": "UTINYINT",
        "c5": "BOOLEAN",
    }
    assert not any("Oslo" in text or "ann" in text for (text,) in texts)


def test_size_and_order_say_nothing_of_values_or_of_the_source(tmp_path: Path) -> None:
    """As many rows are as many bytes, whether a column has two values or many."""
    schema = Schema(Number("a", 0, 1_000, step=1), Number("x", 0, 1), Flag("f"))
    sizes, orders = [], []
    for number, rows in enumerate(
        (
            "i % 2 AS a, (i % 2)::DOUBLE AS x, i % 9 = 0 AS f",
            "i % 997 AS a, random() AS x, i % 3 = 0 AS f",
        )
    ):
        path = tmp_path / f"{number}.parquet"
        duckdb.execute(f"COPY (SELECT {rows} FROM range(300000) t(i)) TO '{path}'")
        place = tmp_path / f"{number}.vault"
        write_vault(path, schema, place, KEY)
        sizes.append(place.stat().st_size)
        with duckdb.connect(str(place), read_only=True) as inside:
            orders.append([row[0] for row in inside.execute("SELECT c0 FROM people").fetchall()])
    assert sizes[0] == sizes[1]
    mixed = orders[1]
    assert mixed[:2_000] != [i % 997 for i in range(2_000)]
    assert abs(sum(mixed[:10_000]) / 10_000 - 498) < 30  # six standard errors: 1e-6


def test_a_table_that_takes_several_passes_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sulq.kernel.engines.duckdb.vault.SORTED_SHARE", 2**40)
    direct, vault = vaulted(tables.rows(2, 60), tmp_path)
    every = b.RowSums(b.Always(), (b.Fixed(1), b.Quantised("x", -100.0, 100.0, GRIDS["x"])))
    assert direct.exact_sums(every) == vault.exact_sums(every)
    direct.close()
    vault.close()


# --- what a scan shows ---------------------------------------------------------------------------


def plan_of(engine: Engine, program: Any) -> Any:
    sql = statement(program, engine.places, engine.rows).sql  # type: ignore[attr-defined]
    return engine.read(  # type: ignore[attr-defined]
        lambda session: json.loads(session.execute(f"EXPLAIN (FORMAT json) {sql}").fetchall()[0][1])
    )


def scans(node: Any) -> list[Any]:
    if isinstance(node, list):
        return [found for part in node for found in scans(part)]
    own = [node] if "SCAN" in node["name"].upper() else []
    return own + scans(node.get("children", []))


CONDITIONS = [
    b.Compared("<=", b.Fixed(int(99 * GRIDS["x"])), b.Quantised("x", -100.0, 100.0, GRIDS["x"])),
    b.Compared("=", b.Quantised("n", 0.0, 120.0, 1.0), b.Fixed(7)),
    b.Among("city", ("Oslo",), False),
    b.Missing(b.Text("city"), False),
    b.Missing(b.Quantised("y", 0.0, 1e6, 1.0), False),
    b.Matches("name", "an%", False),
    b.FlagIs("smoker", True),
    b.AnyOf((b.FlagIs("smoker", True), b.Among("code", (7,), True))),
]


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda one: type(one).__name__)
def test_no_condition_reaches_the_scan(condition: b.Condition, tmp_path: Path) -> None:
    """There it would be held against the least and greatest value of each block of rows."""
    direct, vault = vaulted(tables.rows(4, 40), tmp_path)
    own = b.Quantised("y", 0.0, 1e6, GRIDS["y"])
    for program in (
        b.RowSums(condition, (b.Fixed(1),)),
        b.RowSums(condition, (own, b.Fixed(1))),
        b.RowSums(condition, (own,), (b.CategoryCells("city", tables.CITIES, True),)),
    ):
        found = scans(plan_of(vault, program))
        assert len(found) == 1
        assert "filter" not in json.dumps(found[0]).lower(), found
    direct.close()
    vault.close()


def test_the_walk_sees_a_condition_in_a_scan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sulq.kernel.engines.duckdb.vault.OFF", "statistics_propagation")
    direct, vault = vaulted(tables.rows(4, 40), tmp_path)
    found = scans(plan_of(vault, b.RowSums(CONDITIONS[1], (b.Fixed(1),))))
    assert "filter" in json.dumps(found[0]).lower()
    direct.close()
    vault.close()


def test_every_node_of_a_statement_has_the_type_that_is_proved(tmp_path: Path) -> None:
    direct, vault = vaulted(tables.rows(6, 20), tmp_path)
    rng = random.Random(6)
    for _ in range(60):
        program = programs.program(rng, FACTS)
        sql = statement(program, vault.places, vault.rows).sql  # type: ignore[attr-defined]
        assert vault.read(partial(bad_on_duckdb, sql=sql)) == [], program  # type: ignore[attr-defined]
    direct.close()
    vault.close()


def test_nothing_can_be_written_through_a_vault(tmp_path: Path) -> None:
    direct, vault = vaulted(tables.rows(6, 20), tmp_path)
    for sql in (
        "DELETE FROM vault.main.people",
        "CREATE TABLE vault.main.more AS SELECT 1",
        f"ATTACH '{tmp_path / 'other'}' AS other",
        f"COPY people TO '{tmp_path / 'out.csv'}'",
        f"SELECT * FROM read_parquet('{tmp_path / 'awkward.parquet'}')",
    ):
        with pytest.raises(EngineFailed):
            vault.read(lambda session, sql=sql: session.execute(sql).fetchall())  # type: ignore[attr-defined]
    direct.close()
    vault.close()


@pytest.mark.slow
def test_whether_a_rare_value_is_there_does_not_show_in_time(tmp_path: Path) -> None:
    """Of two values one is in one row, the other in none; each is asked for 2,000 times, in turns.

    Kolmogorov and Smirnov's distance of two samples of 2,000 passes 0.085 once in 10^6 if nothing
    tells them apart. Both are read from the same memory: two files lie differently in it, and that
    alone would tell two tables apart.
    """
    schema, rounds = Schema(Number("age", 0, 120, step=1), Flag("ill")), 2_000
    age = "CASE WHEN i = 777 THEN 118 ELSE hash(i) % 90 END AS age"
    rows = f"SELECT {age}, hash(i, 3) % 7 = 0 AS ill FROM range(500000) t(i)"
    duckdb.execute(f"COPY ({rows}) TO '{tmp_path / 'rows.parquet'}'")
    vault = opened(tmp_path / "rows.parquet", schema, tmp_path)
    column = b.Quantised("age", 0.0, 120.0, 1.0)
    works = [
        vault.prepare(b.RowSums(b.Compared("<=", b.Fixed(least), column), (b.Fixed(1),)))
        for least in (118, 119)
    ]
    assert [work() for work in works] == [[1], [0]]
    times: list[tuple[int, int]] = []
    for _ in range(rounds):
        for which in random.sample((0, 1), 2):
            begun = time.process_time_ns()
            works[which]()
            times.append((time.process_time_ns() - begun, which))
    apart = most = 0
    for _, which in sorted(times):
        apart += 1 if which else -1
        most = max(most, abs(apart))
    vault.close()
    assert most / rounds < 0.085, most / rounds
