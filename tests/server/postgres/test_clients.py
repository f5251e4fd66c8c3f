"""Each client that people have connects, browses, draws 20 charts, and spends only when told so.

The clients are the real ones; where one is not installed its test says which package it is in.
"""

from __future__ import annotations

import asyncio
import datetime
import json
import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.server.postgres.conftest import BROWSED, CHARTS, Door

JDBC = Path("/usr/share/java/postgresql.jar")
ODBC = "/usr/lib/x86_64-linux-gnu/odbc/psqlodbcw.so"
COLUMNS = ["age", "income", "smoker", "city", "blood", "day", "seen"]


def needs(module: str) -> Any:
    return pytest.mark.skipif(find_spec(module) is None, reason=f"no {module} here: pip")


def run(command: list[str], door: Door, **more: str) -> str:
    """Run a program that reads where to connect from its environment."""
    ended = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ
        | {
            "PGHOST": "127.0.0.1",
            "PGPORT": str(door.port),
            "PGUSER": "analyst",
            "PGDATABASE": "people",
            "PGPASSWORD": door.tokens["analyst"],
            "PGSSLMODE": "disable",
            **more,
        },
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("psql") is None, reason="no psql here: postgresql-client")
def test_psql(door: Door) -> None:
    browse = ["\\d", "\\d people", "\\d+ people", "\\dt+", "\\l", "\\dn", "\\du", "\\df", "\\di"]
    commands = [part for each in (*browse, *BROWSED) for part in ("-c", each)]
    before = door.left
    said = run(["psql", "-X", "-v", "ON_ERROR_STOP=1", *commands], door)
    assert 'Table "public.people"' in said and "timestamp without time zone" in said
    assert "secret" not in said and door.left == before
    charts = [part for each in CHARTS for part in ("-c", each)]
    said = run(
        ["psql", "-X", "-v", "ON_ERROR_STOP=1", *charts], door, PGOPTIONS=door.options("psql")
    )
    assert "NOTICE:  at 95 %" in said and door.left < before
    between = door.left
    run(["psql", "-X", "-v", "ON_ERROR_STOP=1", *charts], door)
    assert door.left == between  # a refreshed dashboard is free, and needs no purpose
    refused = subprocess.run(
        ["psql", "-X", "-c", "SELECT COUNT(*) FROM people WHERE age > 17"],
        capture_output=True,
        text=True,
        env=os.environ
        | {"PGHOST": "127.0.0.1", "PGPORT": str(door.port), "PGUSER": "a", "PGDATABASE": "people"}
        | {"PGPASSWORD": door.tokens["analyst"]},
    )
    assert refused.returncode == 1 and "this connection spends none" in refused.stderr


@needs("psycopg")
def test_psycopg(door: Door) -> None:
    import psycopg

    before = door.left
    with psycopg.connect(**door.given()) as connection:
        for each in BROWSED:
            connection.execute(each)
        assert door.left == before
    with psycopg.connect(**door.given(options=door.options("psycopg"))) as connection:
        for binary in (False, True):
            for each in CHARTS:
                cursor = connection.cursor(binary=binary)
                assert cursor.execute(each).fetchall(), each
        text, packed = (
            connection.cursor(binary=binary)
            .execute("SELECT blood, COUNT(*) AS n, AVG(day) AS d FROM people GROUP BY blood")
            .fetchall()
            for binary in (False, True)
        )
        assert text == packed and isinstance(text[0][1], int)
        assert any(isinstance(row[2], datetime.date) for row in text)
        found = connection.execute(
            "SELECT COUNT(*) AS n FROM people WHERE age > %s AND blood = %s AND day > %s",
            (40, "A", datetime.date(2021, 1, 1)),
        ).fetchone()
        assert found is not None and isinstance(found[0], int)
        spent = door.left
        with connection.cursor("named") as named:
            named.itersize = 2
            named.execute("SELECT blood, COUNT(*) AS n FROM people GROUP BY blood")
            assert len(list(named)) == 4
        connection.rollback()
        assert door.left == spent  # told before


@needs("psycopg2")
def test_psycopg2(door: Door) -> None:
    import psycopg2

    connection = psycopg2.connect(**door.given(options=door.options("psycopg2")))
    cursor = connection.cursor()
    for each in (*BROWSED, *CHARTS):
        cursor.execute(each)
    cursor.execute("SELECT COUNT(*) AS n FROM people WHERE age > %s AND city = %s", (41, "Oslo"))
    assert isinstance(cursor.fetchone()[0], int)
    connection.rollback()
    assert "charges stand" in connection.notices[-1]
    connection.close()


@needs("asyncpg")
def test_asyncpg(door: Door) -> None:
    import asyncpg

    async def charts() -> None:
        settings = {"sulq.credits": "100", "sulq.purpose": "asyncpg"}
        given = door.given()
        given["database"] = given.pop("dbname")
        connection = await asyncpg.connect(**given, server_settings=settings)
        for each in (*BROWSED, *CHARTS):
            await connection.fetch(each)
        rows = await connection.fetch(
            "SELECT blood, COUNT(*) AS n FROM people WHERE age > $1 AND day > $2 GROUP BY blood",
            40,
            datetime.date(2021, 1, 1),
        )
        assert [type(row["n"]) for row in rows] == [int] * 4
        listed = await connection.fetch(
            "SELECT column_name FROM information_schema.columns WHERE table_name = $1", "people"
        )
        assert [row["column_name"] for row in listed] == COLUMNS
        found = await connection.fetch(
            "SELECT relname FROM pg_class WHERE oid = $1 AND relnatts >= $2", 16384, 1
        )
        assert [row["relname"] for row in found] == ["people"]
        older = await connection.fetch("SELECT COUNT(*) AS n FROM people WHERE age + $1 > 60", 20)
        same = await connection.fetch("SELECT COUNT(*) AS n FROM people WHERE age > $1", 40)
        assert len(older) == len(same) == 1
        await connection.reset()
        await connection.close()

    asyncio.run(charts())


@pytest.mark.slow
@needs("pg8000")
def test_pg8000(door: Door) -> None:
    import pg8000.dbapi

    given = door.given()
    given["database"] = given.pop("dbname")
    connection = pg8000.dbapi.connect(**given)
    cursor = connection.cursor()
    cursor.execute("SET sulq.credits = 100")
    cursor.execute("SET sulq.purpose = 'pg8000'")
    for each in (*BROWSED, *CHARTS):
        cursor.execute(each)
    cursor.execute("SELECT COUNT(*) AS n FROM people WHERE age > %s", (43,))
    assert isinstance(cursor.fetchone()[0], int)
    connection.rollback()
    connection.close()


@pytest.mark.slow
@needs("sqlalchemy")
@pytest.mark.parametrize("driver", ["psycopg", pytest.param("psycopg2", marks=pytest.mark.slow)])
def test_sqlalchemy_reflects(door: Door, driver: str) -> None:
    """The dialect of PostgreSQL, as Superset uses it."""
    import sqlalchemy

    if find_spec(driver) is None:
        pytest.skip(f"no {driver} here")
    where = f"postgresql+{driver}://a:{door.tokens['analyst']}@127.0.0.1:{door.port}/people"
    engine = sqlalchemy.create_engine(where, connect_args={"options": door.options("sqlalchemy")})
    looked = sqlalchemy.inspect(engine)
    before = door.left
    assert looked.get_table_names() == ["people"] and looked.get_view_names() == []
    assert looked.get_pk_constraint("people")["constrained_columns"] == []
    for what in ("foreign_keys", "indexes", "unique_constraints", "check_constraints"):
        assert getattr(looked, f"get_{what}")("people") == []
    people = sqlalchemy.Table("people", sqlalchemy.MetaData(), autoload_with=engine)
    assert [column.name for column in people.columns] == COLUMNS and door.left == before
    counted = sqlalchemy.select(people.c.blood, sqlalchemy.func.count()).group_by(people.c.blood)
    with engine.connect() as connection:
        assert len(connection.execute(counted).all()) == 4
        for each in CHARTS:
            connection.execute(sqlalchemy.text(each)).all()
    engine.dispose()


NODE = """
const {Client} = require('pg');
const statements = JSON.parse(process.argv[2]);
(async () => {
  const client = new Client({options: process.env.SPEND});
  await client.connect();
  for (const text of statements) await client.query(text);
  const found = await client.query('SELECT COUNT(*) AS n FROM people WHERE age > $1', [44]);
  console.log(found.rows.length, found.fields.map((field) => field.dataTypeID).join());
  await client.end();
})().catch((error) => { console.log(error); process.exit(1); });
"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package pg; NODE_PATH may have it, else npm fetches it."""
    if shutil.which("node") is None:
        pytest.skip("no node here: nodejs")
    path = tmp_path_factory.mktemp("node")
    (path / "charts.js").write_text(NODE)
    there = subprocess.run(["node", "-e", "require('pg')"], cwd=path, capture_output=True)
    if there.returncode:
        if shutil.which("npm") is None:
            pytest.skip("no package pg for node here: npm install pg")
        got = subprocess.run(["npm", "install", "pg"], cwd=path, capture_output=True, timeout=120)
        if got.returncode:
            pytest.skip("npm could not fetch the package pg")
    return path


@pytest.mark.slow
def test_node_pg(door: Door, node: Path) -> None:
    said = run(
        ["node", str(node / "charts.js"), json.dumps([*BROWSED, *CHARTS])],
        door,
        SPEND=door.options("node"),
    )
    assert said.split() == ["1", "20"]


JAVA = """
import java.sql.*;
import java.util.Properties;

public class Charts {
  static int all(ResultSet found) throws SQLException {
    int rows = 0;
    while (found.next()) rows++;
    return rows;
  }

  public static void main(String[] statements) throws Exception {
    Properties given = new Properties();
    given.setProperty("user", "a");
    given.setProperty("password", System.getenv("PGPASSWORD"));
    given.setProperty("options", System.getenv("SPEND"));
    String where = "jdbc:postgresql://127.0.0.1:" + System.getenv("PGPORT") + "/people";
    try (Connection connection = DriverManager.getConnection(where, given)) {
      DatabaseMetaData facts = connection.getMetaData();
      System.out.println(all(facts.getTables(null, "public", "%", new String[] {"TABLE"}))
          + " " + all(facts.getColumns(null, "public", "people", "%"))
          + " " + all(facts.getPrimaryKeys(null, "public", "people"))
          + " " + all(facts.getImportedKeys(null, "public", "people"))
          + " " + all(facts.getIndexInfo(null, "public", "people", false, true))
          + " " + all(facts.getFunctions(null, null, "%")));
      all(facts.getSchemas());
      all(facts.getCatalogs());
      all(facts.getTypeInfo());
      all(facts.getTablePrivileges(null, "public", "%"));
      for (String text : statements) {
        try (Statement statement = connection.createStatement()) {
          all(statement.executeQuery(text));
        }
      }
      for (int again = 0; again < 7; again++) {  // after five, the driver asks for binary
        try (PreparedStatement counted = connection.prepareStatement(
            "SELECT blood, COUNT(*) AS n, AVG(age) AS old FROM people WHERE age > ? GROUP BY 1")) {
          counted.setInt(1, 45);
          ResultSet found = counted.executeQuery();
          while (found.next()) { found.getLong("n"); found.getDouble("old"); }
        }
      }
      connection.setAutoCommit(false);
      try (Statement statement = connection.createStatement()) {
        statement.setFetchSize(2);
        System.out.println(all(statement.executeQuery(
            "SELECT blood, COUNT(*) FROM people GROUP BY blood")));
      }
      try (PreparedStatement since =
          connection.prepareStatement("SELECT COUNT(*) FROM people WHERE day > ?")) {
        since.setDate(1, Date.valueOf("2021-01-01"));
        ResultSet found = since.executeQuery();
        found.next();
        System.out.println(found.getObject(1).getClass().getSimpleName());
      }
      connection.rollback();
    }
  }
}
"""


@pytest.mark.slow
@pytest.mark.skipif(not JDBC.exists(), reason="no driver here: libpostgresql-jdbc-java")
@pytest.mark.skipif(shutil.which("javac") is None, reason="no javac here: default-jdk-headless")
def test_jdbc(door: Door, tmp_path: Path) -> None:
    program = tmp_path / "Charts.java"
    program.write_text(JAVA)
    said = run(
        ["java", "-cp", str(JDBC), str(program), *(each for each in BROWSED), *CHARTS],
        door,
        SPEND=door.options("jdbc"),
    )
    assert said.splitlines() == ["1 7 0 0 0 0", "4", "Long"]


@needs("pyodbc")
@pytest.mark.skipif(not Path(ODBC).exists(), reason="no driver here: odbc-postgresql")
def test_odbc(door: Door) -> None:
    import pyodbc

    spend = f"pqopt={{options='{door.options('odbc')}'}}"
    where = f"Server=127.0.0.1;Port={door.port};Database=people;Uid=a"
    given = f"Driver={ODBC};{where};Pwd={door.tokens['analyst']};{spend}"
    connection = pyodbc.connect(given, autocommit=True)
    cursor = connection.cursor()
    assert [row.table_name for row in cursor.tables()] == ["people"]
    assert [row.column_name for row in cursor.columns(table="people")] == COLUMNS
    assert not list(cursor.primaryKeys("people")) and not list(cursor.statistics("people"))
    for each in (*BROWSED, *CHARTS):
        cursor.execute(each).fetchall()
    cursor.execute("SELECT COUNT(*) AS n FROM people WHERE age > ?", 46)
    assert isinstance(cursor.fetchone()[0], int)
    connection.close()


R = """
suppressWarnings(suppressMessages({library(RPostgreSQL); library(dplyr)}))
people <- dbConnect(PostgreSQL(), host = "127.0.0.1", port = as.integer(Sys.getenv("PGPORT")),
                    user = "a", password = Sys.getenv("PGPASSWORD"), dbname = "people",
                    options = Sys.getenv("SPEND"))
cat(dbListTables(people), dbListFields(people, "people"), dbExistsTable(people, "people"), "\\n")
for (text in jsonlite::fromJSON(commandArgs(TRUE)[[1]])) dbGetQuery(people, text)
found <- tbl(people, "people") %>% filter(age > 40L) %>% group_by(blood) %>%
  summarise(n = n(), pay = mean(income, na.rm = TRUE)) %>% collect()
cat(names(found), nrow(found), "\\n")
invisible(dbDisconnect(people))
"""


@pytest.mark.slow
def test_r_and_dbplyr(door: Door, tmp_path: Path) -> None:
    if shutil.which("Rscript") is None:
        pytest.skip("no R here: r-base-core")
    wanted = "c('RPostgreSQL', 'dbplyr', 'dplyr', 'jsonlite')"
    code = f"cat(setdiff({wanted}, rownames(installed.packages())))"
    lacks = subprocess.run(["Rscript", "-e", code], capture_output=True, text=True)
    if lacks.stdout or lacks.returncode:
        pytest.skip(f"R lacks {lacks.stdout}: r-cran-rpostgresql, r-cran-dbplyr")
    program = tmp_path / "charts.R"
    program.write_text(R)
    said = run(
        ["Rscript", str(program), json.dumps([*BROWSED, *CHARTS])], door, SPEND=door.options("r")
    )
    assert f"people {' '.join(COLUMNS)} TRUE" in said and "blood n pay 4" in said
