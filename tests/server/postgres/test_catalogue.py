"""The catalogue: what tools look up, and what nobody finds there."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator

import psycopg
import pytest
import sqlglot
from tests.people import SCHEMA
from tests.server.postgres.conftest import Door
from tests.server.postgres.probes import METABASE_RIGHTS, NPGSQL_4, NPGSQL_8, PROBES

from sulq.server.postgres import catalogue as catalogues
from sulq.server.postgres import statements
from sulq.server.postgres.catalogue import Catalogue, CatalogueProcess, Rewriting
from sulq.server.postgres.protocol import WireError

PEOPLE = Catalogue({"people": SCHEMA}, "people", "ann")
HIDDEN = "secret"
"""A column of the rows that the schema does not declare."""


@pytest.fixture(scope="module")
def process() -> Iterator[CatalogueProcess]:
    found = CatalogueProcess()
    yield found
    found.close()


def looked_up(process: CatalogueProcess, text: str) -> list[list[object]]:
    tree = sqlglot.parse_one(text, read="postgres")
    return process.run(PEOPLE, Rewriting(PEOPLE, {}).sql(tree))[1]


@pytest.mark.parametrize("program", PROBES)
def test_probes_of_bi_programs_are_answered_and_cost_nothing(door: Door, program: str) -> None:
    before = door.left
    with psycopg.connect(**door.given(), autocommit=True) as connection:
        for text in PROBES[program]:
            cursor = connection.execute(text)
            while cursor.nextset():
                pass
            assert HIDDEN not in str(cursor.fetchall() if cursor.description else ""), text
    assert door.left == before and '"error"' not in door.log.getvalue()


def test_what_programs_learn_is_what_they_need(process: CatalogueProcess) -> None:
    """Not only no error: Npgsql fails without types, Metabase leaves out what it may not read."""
    known = {
        name: (oid, kind, of) for _, name, oid, _, _, kind, of, _ in looked_up(process, NPGSQL_4)
    }
    assert known["int8"] == (20, "b", 0) and known["_int8"] == (1016, "a", 20)
    assert known["float8"][0] == 701 and known["timestamp"][0] == 1114
    newer = {row[3]: row[4] for row in looked_up(process, NPGSQL_8)}
    assert newer["text"] == "b" and newer["_text"] == "a"
    rights = 'SELECT schema, "table", update, "select", delete FROM table_privileges t'
    text = METABASE_RIGHTS.replace("SELECT t.* FROM table_privileges t", rights)
    read = statements.read(text, {"people": SCHEMA})
    assert isinstance(read, statements.CatalogueQuery)
    made = Rewriting(PEOPLE, {}).sql(read.tree)
    assert process.run(PEOPLE, made)[1] == [["public", "people", False, True, False]]
    by_oid = {row[0]: row[2] for row in looked_up(process, PROBES["ADBC"][1])}
    assert (by_oid[20], by_oid[25]) == ("int8recv", "textrecv") and 1016 not in by_oid
    tables, columns = (looked_up(process, text) for text in PROBES["Grafana"])
    assert tables == [["people"]] and [name for name, _ in columns] == [
        column.name for column in SCHEMA.columns
    ]
    labelled = statements.read("SELECT 1 AS table, 2 AS select, 3 AS from FROM pg_class", {})
    assert isinstance(labelled, statements.CatalogueQuery)
    fields, _ = process.run(PEOPLE, Rewriting(PEOPLE, {}).sql(labelled.tree))
    assert [field.name for field in fields] == ["table", "select", "from"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        'SELECT * FROM "people.csv"',
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT pg_get_expr(read_text('/etc/passwd'), 1)",
        "SELECT f_pg_get_expr(1, 2)",
        "SELECT getenv('HOME')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM duckdb_secrets()",
        "SELECT current_setting(getenv('HOME'))",
        "SELECT * FROM pg_shadow",
        "SELECT * FROM pg_authid",
        "SELECT * FROM main.sqlite_master",
        "SELECT * FROM pg.pg_class",
        "SELECT elsewhere.lower('A')",
        "SELECT * FROM elsewhere.generate_series(1, 2)",
        "SELECT 1 INTO x",
        "WITH t AS (DELETE FROM pg_class RETURNING 1) SELECT * FROM t",
        "SELECT * FROM people",
        "SELECT (SELECT COUNT(*) FROM people)",
        "SELECT $1",
        "SELECT query('SELECT 1')",
        "SELECT * FROM query_table('pg_class')",
        "SELECT COLUMNS(*) FROM pg_class",
        "SELECT lower(pg_sleep(3))",
    ],
)
def test_what_is_not_on_the_lists_never_reaches_the_process(text: str) -> None:
    with pytest.raises(WireError):
        Rewriting(PEOPLE, {}).sql(sqlglot.parse_one(text, read="postgres"))


def test_the_process_itself_has_no_way_out(process: CatalogueProcess) -> None:
    """Were a statement to slip through, there is nothing to read, nor a place to write."""
    for text in (
        "SELECT * FROM read_text('/etc/passwd')",
        "COPY (SELECT 1) TO '/tmp/out.csv'",
        "ATTACH '/tmp/other.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET memory_limit = '8GB'",
        "SELECT * FROM 'https://example.org/x.parquet'",
    ):
        with pytest.raises(WireError):
            process.run(PEOPLE, text)
    held = "SELECT current_setting('memory_limit'), current_setting('threads')"
    rows = process.run(PEOPLE, held)[1]
    assert rows[0][1] == 1 and rows[0][0].startswith("61.0")
    assert process.run(PEOPLE, "SELECT COUNT(*) FROM public.people")[1] == [[0]]


@pytest.mark.parametrize(
    "text",
    [
        "WITH RECURSIVE t AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM t) SELECT COUNT(*) FROM t",
        "SELECT COUNT(*) FROM generate_series(1, 1000000000) a, generate_series(1, 1000000000) b",
        "WITH RECURSIVE t AS (SELECT 'x' AS a UNION ALL SELECT concat(a, a) FROM t) SELECT"
        " max(length(a)) FROM t",
        "SELECT COUNT(*) FROM " + ", ".join(f"pg_attribute a{number}" for number in range(25)),
    ],
)
def test_a_statement_is_bounded_in_time_and_memory(process: CatalogueProcess, text: str) -> None:
    with pytest.raises(WireError) as refused:
        looked_up(process, text)
    assert refused.value.state in ("57014", "53200", "0A000")
    assert looked_up(process, "SELECT 1") == [[1]]


def test_a_process_that_does_not_answer_is_started_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    process = CatalogueProcess()
    try:
        assert looked_up(process, "SELECT 1") == [[1]]
        process._process.kill()  # type: ignore[union-attr]
        process._process.wait()  # type: ignore[union-attr]
        assert looked_up(process, "SELECT relname FROM pg_class") == [["people"]]
        process._process.send_signal(signal.SIGSTOP)  # type: ignore[union-attr]
        monkeypatch.setattr(catalogues, "WALL", 0.05)  # a stopped process says nothing in any time
        with pytest.raises(WireError):
            looked_up(process, "SELECT 2")
        monkeypatch.undo()
        assert looked_up(process, "SELECT 3") == [[3]]
    finally:
        process.close()


def test_each_token_sees_its_own_tables(process: CatalogueProcess) -> None:
    other = Catalogue({"visits": SCHEMA}, "people", "bob")
    text = Rewriting(other, {}).sql(sqlglot.parse_one("SELECT relname FROM pg_class"))
    assert process.run(other, text)[1] == [["visits"]]
    assert looked_up(process, "SELECT relname FROM pg_class") == [["people"]]


WORDS = """
    SELECT FROM WHERE pg_class pg_catalog . , ( ) * = 'x' 1 :: oid regclass AND OR NOT NULL c
    relname people JOIN ON IN ANY ARRAY [ ] CASE WHEN THEN END AS lower ( read_csv
    information_schema tables UNION LIMIT ORDER BY $1 ~ COLLATE OPERATOR " ; -- WITH RECURSIVE
    VALUES LATERAL
"""


@pytest.mark.parametrize("seed", range(2))
def test_fuzzed_statements_are_answered_or_refused(door: Door, seed: int) -> None:
    dice, before = random.Random(seed), door.left
    with psycopg.connect(**door.given(), autocommit=True) as connection:
        for _ in range(150):
            text = "SELECT " + " ".join(dice.choices(WORDS.split(), k=dice.randrange(1, 25)))
            try:
                connection.cursor().execute(text.encode())
            except psycopg.OperationalError:
                raise
            except psycopg.Error as error:
                assert error.sqlstate != "58000", text  # nothing unforeseen
    assert door.left == before and '"error"' not in door.log.getvalue()
