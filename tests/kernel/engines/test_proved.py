"""What comes back must be whole and within rows times the proved range, or the table is closed.

The emitter is broken on purpose here; this layer alone would have stopped both finds.
"""

from __future__ import annotations

import ast
from decimal import Decimal
from pathlib import Path
from traceback import walk_tb
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.kernel.engines.test_extremes import BREAK, F1, FRAME, HELD, S1
from tests.people import publish
from tests.postgres_server import PostgresServer
from tests.spark_session import spark_url
from tests.syntax import parsed

from sulq import EngineFailed, Refused, col
from sulq.answers.statistics import count, histogram, mean, total
from sulq.kernel.engines import open_engine, proved
from sulq.kernel.engines.blocks import OuterSums
from sulq.kernel.engines.duckdb.engine import DuckDBEngine
from sulq.kernel.engines.postgres.dialect import PostgresDialect
from sulq.kernel.engines.proved import CLOSED, Impossible, all_within, silenced, whole, within
from sulq.kernel.engines.rows import open_numbered
from sulq.kernel.engines.spark.dialect import SparkDialect
from sulq.kernel.engines.sql import leaves
from sulq.kernel.engines.sql.compile import key_statements, statement
from sulq.kernel.engines.sql.dialect import Dialect
from sulq.kernel.engines.sql.leaves import ColumnSql, Leaf
from sulq.kernel.query.sum_query import outer
from sulq.kernel.query.vectors import columns, ones
from sulq.kernel.schema.bind import bind
from sulq.kernel.schema.columns import Category, Schema
from sulq.kernel.schema.keys import KeyCounts
from sulq.kernel.schema.program import Always


def test_only_whole_numbers_within_their_range_pass() -> None:
    assert [whole(x) for x in (7, -(10**40), Decimal(5), Decimal("-3E+2"))] == [
        7,
        -(10**40),
        5,
        -300,
    ]
    for wrong in (5.0, float("nan"), True, None, "5", Decimal("0.5"), Decimal("NaN"), np.int64(5)):
        with pytest.raises(Impossible):
            whole(wrong)
    assert within(5, -1, 5) == 5 and all_within([], 0) == [] and all_within([3, -3], 3) == [3, -3]
    for value, least, most in ((6, 0, 5), (-1, 0, 5)):
        with pytest.raises(Impossible):
            within(value, least, most)
    with pytest.raises(Impossible):
        all_within([0, -4], 3)
    places = {"name": ColumnSql("name", "text")}
    asked = key_statements(KeyCounts(("name",), Always()), places, 10)
    assert asked.decode([("a", 10)]) == [(("a",), 10, [])]
    for times in (11, 0, None):
        with pytest.raises(Impossible):
            asked.decode([("a", times)])


def decoded(asked: Any, *found: tuple[object, ...]) -> list[int]:
    """What a statement over 60 rows makes of these rows of a result."""
    places = {c.name: ColumnSql(f"c{i}", "whole") for i, c in enumerate(BREAK.columns)}
    return statement(bind(asked, BREAK).sums, places, 60).decode(found)  # type: ignore[arg-type]


def test_a_cell_is_held_against_its_own_rows() -> None:
    asked = total("n")  # from -4 to 4
    assert decoded(asked, (240,)) == [240] and decoded(asked, (-240,)) == [-240]
    for wrong in (241, -241, 240.0, None):
        with pytest.raises(Impossible):
            decoded(asked, (wrong,))
    there = mean("n")  # how many rows there are is asked besides
    assert decoded(there, (2, 8)) == [2, 8]
    for wrong in ((2, 9), (61, 0), (2, 8.0)):
        with pytest.raises(Impossible):
            decoded(there, wrong)
    high = total(col("n") + 10)  # n, and 10 for each that is there
    assert decoded(high, (12, 3)) == [42] and decoded(high, (-12, 3)) == [18]
    for wrong in ((13, 3), (-13, 3), (1, 0)):
        with pytest.raises(Impossible):
            decoded(high, wrong)
    bins = histogram("n", edges=[-4, 0, 4])
    assert decoded(bins, (0, 5), (None, 3), (2, 1)) == [5, 1]  # on the last edge: the last bin
    for wrong in ((3, 1), (0.0, 1), (-1, 1), (0, 61)):
        with pytest.raises(Impossible):
            decoded(bins, wrong)


# --- the old emitter, and the two finds ---------------------------------------------------------


def old_leaf(leaf: Leaf, place: ColumnSql, first: int, last: int) -> tuple[str, bool]:
    """As it was in 0.1.0: the analyst's factor, bare."""
    x, least, most = place.sql, Dialect.integer(leaf.least), Dialect.integer(leaf.most)
    inner = f"CAST({x} AS BIGINT) * {int(leaf.value.per_unit)}"
    cases = f"WHEN {x} > {last} THEN {most} WHEN {x} < {first} THEN {least}"
    return f"CASE {cases} ELSE {inner} END", False


def plant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaves, "_whole_leaf", old_leaf)
    monkeypatch.setattr(SparkDialect, "floor_shift", lambda v, bits: f"shiftright({v}, {bits})")
    monkeypatch.setattr(Dialect, "bigint", staticmethod(lambda sql: sql))
    for dialect in (Dialect, PostgresDialect, SparkDialect):
        old_sum = staticmethod(lambda value, largest, rows: f"COALESCE(sum({value}), 0)")
        monkeypatch.setattr(dialect, "whole_sum", old_sum)


def closes(engine: Any, asked: Any) -> None:
    """The question fails and releases nothing; then the table is closed, before any charge."""
    read = engine.prepare(bind(asked, BREAK, asked_before=True).sums)
    with pytest.raises(EngineFailed) as failed:
        read()
    assert str(failed.value) == str(EngineFailed())
    assert failed.value.__cause__ is failed.value.__context__ is None
    for program in (bind(count(), BREAK).sums, bind(outer(ones(), columns(["n"])), BREAK).sums):
        with pytest.raises(Refused) as refused:
            engine.prepare(program)
        assert str(refused.value) == CLOSED
    engine.close()


def test_it_stops_the_float_sum_on_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    """F1: sum(DOUBLE) came back, and was taken for an integer."""
    plant(monkeypatch)
    closes(open_engine(FRAME, BREAK), total(F1))


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_it_stops_the_break_on_spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """S1: each row added 2^30 steps where 12 were proved."""
    spark_sample(monkeypatch, tmp_path)


def spark_sample(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """What the gate runs, in test_spark.py."""
    pq.write_table(FRAME, folder / "planted.parquet")
    with monkeypatch.context() as planted:
        plant(planted)
        closes(
            open_engine(spark_url(folder / "planted.parquet"), BREAK), mean(S1, where=col("ill"))
        )


# --- other faults, on every engine --------------------------------------------------------------


def faulty(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    wrong = {
        "float": lambda value, largest, rows: f"sum(CAST({value} AS DOUBLE PRECISION))",
        "far": lambda value, largest, rows: f"sum({value}) + CAST({largest * rows} AS BIGINT)",
        "null": lambda value, largest, rows: f"nullif(sum({value}), sum({value}))",
    }[fault]
    for dialect in (Dialect, PostgresDialect, SparkDialect):
        monkeypatch.setattr(dialect, "whole_sum", staticmethod(wrong))
        monkeypatch.setattr(
            dialect, "real_sum", staticmethod(lambda value: wrong(value, 2**40, 60))
        )


FAULTS = ["float", "far", "null"]


@pytest.mark.parametrize("fault", FAULTS)
def test_every_wrong_sum_closes_a_table_of_duckdb(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty(monkeypatch, fault)
    closes(open_engine(FRAME, BREAK), total("income"))


@pytest.mark.parametrize("fault", FAULTS)
def test_every_wrong_sum_closes_a_table_of_postgresql(
    fault: str, monkeypatch: pytest.MonkeyPatch, postgres: PostgresServer
) -> None:
    from tests.kernel.engines.postgres_tables import fill

    types = {"income": "bigint", "n": "bigint", "ill": "boolean"}
    faulty(monkeypatch, fault)
    closes(open_engine(fill(postgres, "planted", types, HELD), BREAK), total("income"))


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("fault", FAULTS[1:])
def test_every_wrong_sum_closes_a_table_of_spark(
    fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pq.write_table(FRAME, tmp_path / "planted.parquet")
    faulty(monkeypatch, fault)
    closes(open_engine(spark_url(tmp_path / "planted.parquet"), BREAK), total("income"))


def test_a_matrix_is_held_against_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_engine(FRAME, BREAK)
    program = bind(outer(ones(), columns(["n"])), BREAK).sums
    read = engine.prepare(program)
    assert len(read()) == 1
    added = OuterSums._add

    def twice(self: Any, columns: Any) -> None:
        for _ in range(4):
            added(self, columns)

    monkeypatch.setattr(OuterSums, "_add", twice)
    with pytest.raises(EngineFailed):
        read()
    with pytest.raises(Refused, match="closed"):
        engine.prepare(program)
    engine.close()


def test_rows_by_themselves_are_held_against_their_range(monkeypatch: pytest.MonkeyPatch) -> None:
    numbered = open_numbered(FRAME, BREAK)
    program = bind(total(F1), BREAK, asked_before=True).sums
    assert numbered.prepare(program)().terms  # type: ignore[arg-type]
    plant(monkeypatch)
    monkeypatch.setattr(
        leaves, "_whole_leaf", lambda *of: (f"{old_leaf(*of)[0]} + 2000000000", False)
    )
    with pytest.raises(EngineFailed):
        numbered.prepare(program)()  # type: ignore[arg-type]
    with pytest.raises(Refused, match="closed"):
        numbered.prepare(program)  # type: ignore[arg-type]
    numbered.engine.close()


def test_the_charge_stands_and_the_next_question_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    db = publish(FRAME, BREAK)
    db.ask(count(where=col("ill")))
    with monkeypatch.context() as planted:
        faulty(planted, "far")
        with pytest.raises(EngineFailed):
            db.ask(total("income"))
    assert db.remaining == 98
    for asked in (total("income"), total("n")):
        with pytest.raises(Refused, match="this table is closed"):
            db.ask(asked)
    assert db.remaining == 98
    assert not any(letter.isdigit() for letter in CLOSED)


# --- no word of a driver ------------------------------------------------------------------------


def reachable(error: BaseException) -> str:
    """What a reader of the error can get at: its chain, and what every frame but ours holds."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    held = [repr(frame.f_locals) for frame in frames if frame.f_code.co_filename != __file__]
    return "".join([*held, repr(error.__context__), repr(error.__cause__)])


def test_what_a_driver_raised_is_let_go() -> None:
    def work() -> int:
        raise ValueError("CANARY")

    assert silenced(lambda: 7, lambda _: 0) == 7 and silenced(work, lambda _: 0) == 0
    with pytest.raises(EngineFailed) as failed:
        silenced(work, lambda error: EngineFailed())
    assert failed.value.__context__ is failed.value.__cause__ is None
    assert "CANARY" not in reachable(failed.value)


def test_an_interruption_is_not_silenced() -> None:
    def work() -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        silenced(work, lambda _: 0)


def names_in(node: ast.AST | None) -> set[str]:
    return set() if node is None else {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def broad(tree: ast.AST) -> int:
    """How many places take whatever is raised and do not raise it again."""
    found, wide = 0, {"Exception", "BaseException"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            again = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
            found += not again and (node.type is None or bool(wide & names_in(node.type)))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
            found += any(wide & names_in(one) for one in node.args)
    return found


def test_one_place_takes_what_drivers_raise() -> None:
    folder = Path(proved.__file__).parent
    found = {
        path.relative_to(folder).as_posix(): number
        for path in folder.rglob("*.py")
        if (number := broad(parsed(path)))
    }
    assert found == {"proved.py": 1}


def test_a_broad_except_is_found() -> None:
    for text in (
        "try: f()\nexcept Exception: pass",
        "try: f()\nexcept: pass",
        "with contextlib.suppress(Exception): f()",
    ):
        assert broad(ast.parse(text)) == 1
    assert broad(ast.parse("try: f()\nexcept BaseException:\n    g()\n    raise")) == 0


@pytest.mark.parametrize("stops_early", [False, True])
def test_keys_that_fail_on_the_way_say_nothing(
    stops_early: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While they are read; and when their reader stops early and letting go of them fails."""
    engine = open_engine(pa.table({"name": ["a"]}), Schema(Category("name")))

    def broken(self: Any, session: Any, sql: str) -> Any:
        try:
            yield [("a", 1)]
        finally:
            raise ValueError("CANARY")

    monkeypatch.setattr(DuckDBEngine, "_batches", broken)
    batches = engine.prepare_keys(KeyCounts(("name",), Always()))()
    assert next(batches) == [(("a",), 1, [])]
    with pytest.raises(EngineFailed) as failed:
        batches.close() if stops_early else next(batches)  # type: ignore[attr-defined]
    assert "CANARY" not in reachable(failed.value)
    engine.close()
