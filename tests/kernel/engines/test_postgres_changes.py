"""A table that changes is noticed, a server that fails says one thing, a role reads and no more."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kernel.engines.postgres_tables import fill, psycopg, run
from tests.postgres_server import PostgresServer, running
from tests.waiting import come

import sulq.kernel.engines.postgres.engine as engine_file
from sulq.answers.statistics import count, total
from sulq.database import Database
from sulq.errors import EngineFailed, InvalidQuery, Refused
from sulq.kernel.engines import Engine, open_engine
from sulq.kernel.engines.postgres.engine import allowed_seconds
from sulq.kernel.engines.postgres.session import read_address
from sulq.kernel.engines.sql.engine import Work
from sulq.kernel.query.expressions import col
from sulq.kernel.query.sum_query import Statistic
from sulq.kernel.schema import program as b
from sulq.kernel.schema.columns import Category, Number, Schema
from sulq.kernel.schema.promise import Promise
from sulq.policy.survey import server_policy

SCHEMA = Schema(Number("age", 0, 120), Category("city", ["a", "b"]))
TYPES = {"age": "float8", "city": "text", "secret": "text"}
ROWS = [{"age": float(i % 90), "city": "ab"[i % 2], "secret": "SECRET"} for i in range(300)]
COUNT = b.RowSums(b.Always(), (b.Fixed(1),))
CONSTANT = str(EngineFailed())


@pytest.fixture
def engine(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(engine_file, "FRESH", -1.0)  # every look is a real one
    opened = open_engine(fill(postgres, "live", TYPES, ROWS), SCHEMA)
    yield opened
    opened.close()


def fails(engine: Engine) -> bool:
    try:
        engine.exact_sums(COUNT)
    except EngineFailed:
        return True
    return False


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO live VALUES (1, 'a')",
        "UPDATE live SET age = age + 1 WHERE age = 5",
        "DELETE FROM live WHERE age = 5",
        "TRUNCATE live",
        "ALTER TABLE live DROP COLUMN age; ALTER TABLE live ADD COLUMN age float8 DEFAULT 5",
        "ALTER TABLE live ALTER COLUMN age TYPE float8 USING age + 1",
        "ALTER TABLE live RENAME TO gone",
        "UPDATE live SET age = CASE age WHEN 5 THEN 6 WHEN 6 THEN 5 ELSE age END WHERE city = 'a'",
    ],
)
def test_every_change_is_noticed(change: str, engine: Engine, postgres: PostgresServer) -> None:
    assert engine.unchanged()
    assert not fails(engine)
    run(postgres, "DROP TABLE IF EXISTS gone")
    run(postgres, change)
    assert fails(engine)
    if "RENAME" in change:  # gone, so it cannot be looked at
        with pytest.raises(Refused, match="there is no such table"):
            engine.unchanged()
    else:
        assert not engine.unchanged()


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TABLE IF NOT EXISTS other (v integer); INSERT INTO other VALUES (1)",
        "VACUUM FULL live",
        "VACUUM FREEZE live",
        "UPDATE live SET age = age",
        "UPDATE live SET secret = 'other'",  # not declared
        "ALTER TABLE live SET (fillfactor = 50)",
        "ALTER TABLE live ADD COLUMN z integer",
        "ALTER TABLE live ADD COLUMN z float8 DEFAULT random()",  # writes every row anew
        "ALTER TABLE live DROP COLUMN secret",
        "ALTER TABLE live RENAME COLUMN secret TO known",
    ],
)
def test_what_changes_no_declared_value_is_no_change(
    change: str, engine: Engine, postgres: PostgresServer
) -> None:
    run(postgres, change)
    assert engine.unchanged()
    assert not fails(engine)


def test_a_renamed_label_is_a_change(postgres: PostgresServer) -> None:
    run(
        postgres,
        "DROP TABLE IF EXISTS live; DROP TYPE IF EXISTS town CASCADE;"
        "CREATE TYPE town AS ENUM ('a', 'b')",
    )
    opened = open_engine(fill(postgres, "live", TYPES | {"city": "town"}, ROWS), SCHEMA)
    run(postgres, "ALTER TYPE town RENAME VALUE 'a' TO 'c'")
    assert fails(opened)
    opened.close()


def test_only_what_moved_is_looked_at(engine: Any, postgres: PostgresServer) -> None:
    """Nothing written: no pass over the rows. Something written elsewhere: no content hash."""
    asked: list[str] = []
    real = engine_file._run

    def noted(cursor: Any, sql: str) -> list[Any]:
        asked.append(sql)
        return real(cursor, sql)

    engine_file._run = noted
    try:
        assert engine.unchanged()
        assert asked == []
        run(postgres, "CREATE TABLE IF NOT EXISTS other (v integer); INSERT INTO other VALUES (1)")
        assert engine.unchanged()
        assert ["hashtidextended" in sql for sql in asked] == [True]
        asked.clear()
        assert engine.unchanged()
        assert asked == []
        run(postgres, "UPDATE live SET age = age")
        assert engine.unchanged()
        assert ["hashtextextended" in sql for sql in asked] == [False, True, False]
    finally:
        engine_file._run = real


def test_a_writer_under_way_at_opening_is_noticed(postgres: PostgresServer) -> None:
    """Its number is lower than that of the opening, and the rows are as many as before."""
    url = fill(postgres, "live", TYPES, ROWS)
    with psycopg.connect(postgres.url()) as writer:
        writer.execute("UPDATE live SET age = age + 1 WHERE age = 5")
        run(postgres, "CREATE TABLE IF NOT EXISTS other (v integer); INSERT INTO other VALUES (1)")
        opened: Any = open_engine(url, SCHEMA)
        run(postgres, "INSERT INTO other VALUES (1)")
        assert not fails(opened)
        writer.commit()
    assert fails(opened)
    opened.close()


def test_a_state_before_the_last_proof_is_no_proved_one(
    engine: Any, postgres: PostgresServer
) -> None:
    """Changed, seen by one question, changed back, proved by another: as many rows, none late."""
    run(postgres, "UPDATE live SET age = age + 1")
    with engine._sessions.reading(60) as early:
        early.execute("SELECT 1")  # this is what it sees from now on
        run(postgres, "UPDATE live SET age = age - 1")
        assert engine.unchanged()
        assert not engine.is_what_was_opened(early)


def test_rows_of_a_child_made_later_do_not_count(engine: Any, postgres: PostgresServer) -> None:
    run(postgres, "CREATE TABLE child () INHERITS (live); INSERT INTO child VALUES (1, 'a')")
    assert engine.exact_sums(COUNT) == [len(ROWS)]
    run(postgres, "DROP TABLE child")


def test_after_very_many_transactions_the_content_is_looked_at(
    engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_file, "MOST_LATER", 0)
    monkeypatch.setattr(engine, "_content", (0, 0, 0))
    assert fails(engine)


def test_one_question_sees_one_state(engine: Any, postgres: PostgresServer) -> None:
    """Rows that come between its statements do not reach it; the next question fails."""
    with engine._sessions.reading(60) as cursor:
        assert engine.is_what_was_opened(cursor)
        run(postgres, "DELETE FROM live WHERE age > 50")
        assert cursor.execute("SELECT count(*) FROM public.live").fetchone() == (len(ROWS),)
    assert fails(engine)


def test_the_fingerprint_is_of_names_and_rows(postgres: PostgresServer) -> None:
    prints = []
    for rows in (ROWS, ROWS[::-1], ROWS[:-1], [*ROWS[:-1], dict(ROWS[-1], age=89.00001)]):
        opened = open_engine(fill(postgres, "live", TYPES, rows), SCHEMA)
        prints.append(opened.fingerprint())
        opened.close()
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3


# --- failures -----------------------------------------------------------------------------------


def said(error: BaseException) -> str:
    parts = []
    seen: BaseException | None = error
    while seen is not None:
        parts.append(f"{seen!r} {seen}")
        seen = seen.__cause__ or seen.__context__
    return " ".join(parts)


def test_a_statement_that_takes_too_long_is_a_constant(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The role's own limit is kept, being the shorter.

    To fail by chance, a statement that reads a few rows would have to take two seconds.
    """
    monkeypatch.setattr(engine_file, "FRESH", 10.0**9)
    url = fill(postgres, "live", TYPES, ROWS)
    opened: Any = open_engine(f"{url}&options=-c%20statement_timeout%3D2000", SCHEMA)
    kept: list[str] = []

    def work(cursor: Any) -> list[int]:
        kept.extend(cursor.execute("SHOW statement_timeout").fetchone())
        return list(cursor.execute("SELECT count(*), pg_sleep(600)").fetchone())

    monkeypatch.setattr(opened, "_work", lambda _: Work(1, work))
    with pytest.raises(EngineFailed) as caught:
        opened.exact_sums(COUNT)
    assert kept == ["2s"]
    assert said(caught.value) == f"{caught.value!r} {CONSTANT}"
    opened.close()


def test_an_error_of_the_server_is_a_constant(
    engine: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    bad = "SELECT CAST(secret AS integer) FROM public.live"
    monkeypatch.setattr(engine, "_work", lambda _: Work(1, lambda c: c.execute(bad).fetchall()))
    with pytest.raises(EngineFailed) as caught:
        engine.exact_sums(COUNT)
    assert said(caught.value) == f"{caught.value!r} {CONSTANT}"
    assert "SECRET" not in "".join(capfd.readouterr())
    monkeypatch.undo()
    assert engine.exact_sums(COUNT) == [len(ROWS)]


def test_limits_follow_from_public_facts() -> None:
    assert allowed_seconds(10, 1) == 60
    assert allowed_seconds(2_000, 2**27) == 865
    assert allowed_seconds(10**6, 2**40) == 3_600
    assert allowed_seconds(4_000, 10**7) == 180


PROMISE = Promise(1, "1e-6", queries=100)


SLEEPS = "SELECT pg_sleep(600)"
BUSY = f"SELECT count(*) FROM pg_stat_activity WHERE query = '{SLEEPS}' AND state = 'active'"


def attempted(db: Database, question: Statistic, key: str, failed: list[BaseException]) -> None:
    try:
        db.ask(question, key=key)
    except Exception as error:  # noqa: BLE001
        failed.append(error)


@pytest.mark.usefixtures("postgres")  # skips where there is none
@pytest.mark.slow
def test_a_server_restarted_mid_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The charge stands, the error is the constant, the same question then works.

    The question sleeps until the server is known to be at it, and then stops.
    """
    with running(max_parallel_workers_per_gather="0") as own:
        url = fill(own, "live", TYPES, ROWS)
        with Database.open(url, SCHEMA, PROMISE, tmp_path / "ledger", publish=True) as db:
            assert db.ledger.header.name == "live"
            failed: list[BaseException] = []
            slow = total((col("age") * col("age")).clip(0, 900), where=col("city") == "a")
            before = db.statement().spent
            asking = threading.Thread(target=attempted, args=(db, slow, "the-key", failed))
            with monkeypatch.context() as sleepy:
                sleepy.setattr(db.engine, "_work", lambda _: Work(1, lambda c: c.execute(SLEEPS)))
                with psycopg.connect(own.url(), autocommit=True) as watch:
                    asking.start()
                    come(lambda: failed or watch.execute(BUSY).fetchone() == (1,))
                own.restart()
                asking.join()
            assert [str(error) for error in failed] == [CONSTANT]
            assert said(failed[0]).count(CONSTANT) >= 1
            assert "server closed" not in said(failed[0])
            charged = db.statement().spent
            assert charged > before
            answer = db.ask(slow, key="the-key")
            assert db.statement().spent == charged  # the same key, the same charge
            assert answer is not None
            own.halt()
            monkeypatch.setattr(engine_file, "FRESH", -1.0)
            with pytest.raises(Refused, match="cannot be reached"):
                db.ask(count(where=col("age") > 20))
            assert db.statement().spent == charged
            own.resume()
            db.ask(count(where=col("age") > 20))


def test_a_ledger_knows_its_table_again(tmp_path: Path, postgres: PostgresServer) -> None:
    url = fill(postgres, "live", TYPES, ROWS)
    with Database.open(url, SCHEMA, PROMISE, tmp_path / "ledger", publish=True) as db:
        db.ask(count())
    with Database.open(url, SCHEMA, PROMISE, tmp_path / "ledger", publish=True) as db:
        db.ask(count(where=col("age") > 3))
    run(postgres, "UPDATE live SET age = 3 WHERE age = 4")
    with pytest.raises(Refused):
        Database.open(url, SCHEMA, PROMISE, tmp_path / "ledger", publish=True)


# --- roles, addresses, complaints ---------------------------------------------------------------


def test_a_role_that_may_only_select_is_enough(postgres: PostgresServer) -> None:
    url = fill(postgres, "live", TYPES, ROWS)
    run(
        postgres,
        "DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN; REVOKE ALL ON live FROM reader",
    )
    reader = url.replace("postgres@", "reader@")
    try:
        with pytest.raises(InvalidQuery, match="GRANT SELECT"):
            open_engine(reader, SCHEMA)
        run(postgres, "GRANT SELECT ON live TO reader")
        opened: Any = open_engine(reader, SCHEMA)
        assert opened.exact_sums(COUNT) == [len(ROWS)]
        for statement in ("DELETE FROM public.live", "CREATE TEMP TABLE t (v integer)"):
            only = pytest.raises(psycopg.errors.ReadOnlySqlTransaction)
            with only, opened._sessions.reading(60) as cursor:
                cursor.execute(statement)
        opened.close()
        run(postgres, "ALTER TABLE live ENABLE ROW LEVEL SECURITY")
        with pytest.raises(InvalidQuery, match="BYPASSRLS"):
            open_engine(reader, SCHEMA)  # of which it would see no row
    finally:
        run(postgres, "DROP OWNED BY reader; DROP ROLE reader")


def test_what_a_role_may_no_longer_read_is_said(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SELECT withdrawn, or row security switched on: not that the server cannot be reached."""
    monkeypatch.setattr(engine_file, "FRESH", -1.0)
    url = fill(postgres, "live", TYPES, ROWS)
    run(postgres, "DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN")
    try:
        for given, taken in (
            ("GRANT SELECT ON live TO reader", "REVOKE SELECT ON live FROM reader"),
            ("GRANT SELECT ON live TO reader", "ALTER TABLE live ENABLE ROW LEVEL SECURITY"),
        ):
            run(postgres, given)
            opened = open_engine(url.replace("postgres@", "reader@"), SCHEMA)
            run(postgres, taken)
            with pytest.raises(Refused, match=r"GRANT SELECT.*Nothing was charged") as caught:
                opened.unchanged()
            assert "reached" not in said(caught.value)
            opened.close()
    finally:
        run(postgres, "DROP OWNED BY reader; DROP ROLE reader")


def test_what_others_made_in_the_database_is_not_called(postgres: PostgresServer) -> None:
    url = fill(postgres, "live", TYPES, ROWS)
    run(
        postgres,
        "CREATE OR REPLACE FUNCTION public.abs(float8) RETURNS float8 LANGUAGE sql AS 'SELECT 0.0';"
        "CREATE OR REPLACE FUNCTION public.md5(text) RETURNS text LANGUAGE sql AS 'SELECT 1/0';"
        "CREATE TABLE IF NOT EXISTS public.people (c0 float8);"
        "ALTER ROLE postgres SET search_path = public, pg_catalog",
    )
    try:
        opened = open_engine(url, SCHEMA)
        assert opened.exact_sums(COUNT) == [len(ROWS)]
        leaf = b.Quantised("age", 0.0, 50.0, 1.0)
        expected = sum(min(50, int(row["age"])) for row in ROWS)  # type: ignore[call-overload]
        assert opened.exact_sums(b.RowSums(b.Always(), (leaf,))) == [expected]
        opened.close()
    finally:
        run(
            postgres,
            "ALTER ROLE postgres RESET search_path; DROP FUNCTION public.abs(float8);"
            "DROP FUNCTION public.md5(text); DROP TABLE public.people",
        )


def test_addresses() -> None:
    found = read_address("postgresql://ann:pw@h:5433/db/my%2Etable?sslmode=require")
    assert (found.schema, found.table) == ("public", "my.table")
    assert found.server == "postgresql://ann:pw@h:5433/db?sslmode=require"
    assert "pw" not in repr(found)
    assert read_address("postgres:///db/s.t?host=/tmp").sql == '"s"."t"'
    for wrong in (
        "postgresql://h/table",
        "postgresql://h/db/",
        "postgresql://h//t",
        "postgresql://h/db/a.b.c",
        "postgresql://h/db/t/x",
        "postgresql://h/db/t#f",
        "postgresql://h/db/.t",
        "postgresql://h/db/a%00b",
    ):
        with pytest.raises(InvalidQuery, match="database/table"):
            read_address(wrong)


def test_complaints_name_the_remedy_and_no_row(postgres: PostgresServer) -> None:
    def refused(url: str, schema: Schema, words: str) -> None:
        with pytest.raises((InvalidQuery, Refused), match=words) as caught:
            open_engine(url, schema)
        assert "SECRET" not in said(caught.value)

    url = fill(postgres, "live", TYPES, ROWS)
    refused(url, Schema(Number("nobody", 0, 1)), r"no column 'nobody'.*\['age', 'city', 'secret'\]")
    refused(url, Schema(Number("secret", 0, 1)), "declared to hold numbers but the table has text")
    refused(url, Schema(Number("age", 0, 1), unit="city2", max_rows=2), "no column 'city2'")
    refused(url, Schema(Category("city"), unit="age", max_rows=2), "integers or text")
    refused(postgres.url(table="nothing"), SCHEMA, "no such table")
    refused(postgres.url(table="nowhere.t"), SCHEMA, "no such schema")
    refused("postgresql://nobody:SECRET@127.0.0.1:1/db/t", SCHEMA, "cannot be reached")
    run(postgres, "CREATE OR REPLACE VIEW seen AS SELECT * FROM live")
    refused(postgres.url(table="seen"), SCHEMA, "view")
    run(postgres, "DROP VIEW seen")
    refused(fill(postgres, "live", TYPES, []), SCHEMA, "no rows")
    run(postgres, "DROP DATABASE IF EXISTS latin")
    run(postgres, "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    refused(postgres.url("latin", "t"), SCHEMA, "UTF8")


def test_a_policy_is_drafted_from_the_types(postgres: PostgresServer) -> None:
    types = {
        "person_id": "bigint",
        "age": "integer",
        "pay": "numeric(9, 2)",
        "city": "text",
        "seen": "timestamptz",
        "ok": "boolean",
        "spot": "point",
    }
    url = fill(postgres, "drafted", types, [])
    policy, notes = server_policy(url)
    assert (policy.name, policy.source, policy.ledger) == ("drafted", url, "drafted.ledger")
    unknown = {"number": ["?", "?"]}
    assert {column.name: column.facts for column in policy.columns} == {
        "age": {**unknown, "step": 1},
        "pay": unknown,
        "city": {"category": ["?"]},
        "seen": unknown,
        "ok": {"flag": True},
    }
    assert list(notes) == ["person_id", "spot"]
    for wrong, words in (
        (postgres.url(table="nothing"), "no such table"),
        ("https://host/people.parquet", "copy of the file"),
    ):
        with pytest.raises(InvalidQuery, match=words):
            server_policy(wrong)


def test_a_partitioned_table(postgres: PostgresServer) -> None:
    run(
        postgres,
        "DROP TABLE IF EXISTS parts; CREATE TABLE parts (age float8, city text)"
        " PARTITION BY LIST (city); CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN ('a');"
        "CREATE TABLE parts_b PARTITION OF parts DEFAULT;"
        "INSERT INTO parts SELECT i, chr(97 + i % 2) FROM generate_series(1, 50) AS i",
    )
    opened = open_engine(postgres.url(table="parts"), SCHEMA)
    assert opened.exact_sums(COUNT) == [50]
    run(postgres, "ALTER TABLE parts DETACH PARTITION parts_b")
    assert fails(opened)
    opened.close()
    run(postgres, "DROP TABLE parts, parts_b")


def test_a_partition_on_another_server_is_refused(postgres: PostgresServer) -> None:
    """Who writes there moves no mark here: at the opening, and when one is attached later."""
    run(
        postgres,
        "CREATE FOREIGN DATA WRAPPER no_rows; CREATE SERVER away FOREIGN DATA WRAPPER no_rows;"
        "CREATE TABLE parts (age float8, city text) PARTITION BY LIST (city);"
        "CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN ('a');"
        "INSERT INTO parts VALUES (1, 'a')",
    )
    opened: Any = open_engine(postgres.url(table="parts"), SCHEMA)
    run(postgres, "CREATE FOREIGN TABLE parts_b PARTITION OF parts DEFAULT SERVER away")
    with pytest.raises(InvalidQuery, match="among its"), opened._sessions.reading(60) as cursor:
        opened.is_what_was_opened(cursor)
    opened.close()
    with pytest.raises(InvalidQuery, match="among its"):
        open_engine(postgres.url(table="parts"), SCHEMA)
    run(postgres, "DROP TABLE parts; DROP SERVER away; DROP FOREIGN DATA WRAPPER no_rows")


def test_many_threads_ask_at_once(engine: Engine) -> None:
    found: list[list[int]] = []
    threads = [
        threading.Thread(target=lambda: found.extend(engine.exact_sums(COUNT) for _ in range(5)))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[len(ROWS)]] * 30


def test_without_the_driver_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(Refused, match=r"pip install 'sulq\[postgres\]'"):
        open_engine("postgresql://h/db/t", SCHEMA)
