"""The tables of a study: DuckDB and PostgreSQL give the same integers, those of plain SQL."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import duckdb
import pandas as pd
import pytest
from tests.kernel.engines.postgres_tables import fill, run
from tests.postgres_server import PostgresServer

from sulq import (
    Category,
    EngineFailed,
    Flag,
    InvalidQuery,
    Number,
    Refused,
    Schema,
    col,
    count,
    histogram,
    mean,
    total,
)
from sulq.kernel.engines import open_engine
from sulq.kernel.engines.engine import Engine, open_study_engine
from sulq.kernel.engines.postgres import engine as postgres_engine
from sulq.kernel.query.expressions import Expression
from sulq.kernel.query.sum_query import about_table, outer
from sulq.kernel.query.vectors import columns
from sulq.kernel.schema.bind import bind
from sulq.kernel.schema.study import EventTable, Study
from sulq.studies import (
    count_of,
    days_between,
    earliest_of,
    exists,
    first_of,
    last_of,
    latest_of,
    max_of,
    mean_of,
    min_of,
    sum_of,
)

START, END = dt.date(2020, 1, 1), dt.date(2026, 12, 31)


def study(max_rows: int = 50, ceiling: int = 50, keep: Any = "hash") -> Study:
    return Study(
        "patients",
        Category("sex", ["F", "M"]),
        Number("age", 0, 120, step=1),
        Category("region", [1, 2, 3]),
        person="patient_id",
        tables=[
            EventTable(
                "visits",
                Number("day", START, dt.date(2026, 12, 31)),
                Number("cost", 0, 1000, step=0.5),
                Category("ward", ["a", "b", "c"]),
                Flag("urgent"),
                Category("region", [1, 2, 3]),
                max_rows=max_rows,
                ceiling=ceiling,
                keep=keep,
                by=None if keep == "hash" else "day",
                person="pid",
            ),
            EventTable("drugs", Number("dose", -1, 8), Number("given", START, END),
                       max_rows=max_rows, ceiling=ceiling),
        ],
    )  # fmt: skip


def frames(seed: int, persons: int = 300) -> dict[str, pd.DataFrame]:
    rng = random.Random(seed)
    owners = [rng.randrange(persons + 20) for _ in range(4 * persons)]
    takers = [rng.randrange(persons) for _ in range(2 * persons)]
    day = [START + dt.timedelta(rng.randrange(900)) for _ in owners]
    return {
        "patients": pd.DataFrame(
            {
                "patient_id": range(persons),
                "sex": [rng.choice(["F", "M", None]) for _ in range(persons)],
                "age": [rng.randrange(100) for _ in range(persons)],
                "region": [rng.choice([1, 2, 3, 9]) for _ in range(persons)],
            }
        ),
        "visits": pd.DataFrame(
            {
                "pid": [str(owner) for owner in owners],
                "day": day,
                "cost": [rng.randrange(2000) / 2 for _ in owners],
                "ward": [rng.choice(["a", "b", "c", "?"]) for _ in owners],
                "urgent": [rng.random() < 0.3 for _ in owners],
                "region": [rng.choice([1, 2, 3]) for _ in owners],
            }
        ),
        "drugs": pd.DataFrame(
            {
                "patient_id": takers,
                "dose": [rng.choice([-1.0, 0.1, 0.7, 3.0, 8.0]) for _ in takers],
                "given": [START + dt.timedelta(rng.randrange(900)) for _ in takers],
            }
        ),
    }


TYPES = {
    "patients": "patient_id bigint, sex text, age int, region int",
    "visits": "pid text, day date, cost float8, ward text, urgent boolean, region smallint",
    "drugs": "patient_id bigint, dose float8, given date",
}


def on_postgres(server: PostgresServer, held: dict[str, pd.DataFrame], schema: Study) -> Engine:
    places = {}
    for name, frame in held.items():
        types = dict(part.strip().split(" ") for part in TYPES[name].split(","))
        rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
        places[name] = fill(server, name, types, rows)
    return open_study_engine(places, schema, size_is_public=True)


FIRST, GIVEN = first_of("visits", "day", by="day"), min_of("drugs", "given")
QUESTIONS: list[tuple[str, Any, str]] = [
    ("", count(), "SELECT count(*) FROM patients"),
    (
        "",
        count(where=exists("visits", col("urgent")) & (col("sex") == "F")),
        "SELECT count(*) FROM patients p WHERE sex = 'F' AND EXISTS (SELECT 1 FROM visits v WHERE"
        " v.pid = CAST(p.patient_id AS VARCHAR) AND urgent)",
    ),
    (
        "",
        count(where=~exists("drugs", col("dose") >= 3)),
        "SELECT count(*) FROM patients WHERE patient_id NOT IN (SELECT patient_id FROM drugs WHERE"
        " dose >= 3)",
    ),
    (
        "",
        total(count_of("visits", col("ward") == "a"), where=col("age") >= 65),
        "SELECT count(*) FROM patients p JOIN visits v ON v.pid = CAST(p.patient_id AS VARCHAR)"
        " WHERE ward = 'a' AND age >= 65",
    ),
    (
        "",
        total(sum_of("visits", "cost", clip=(0, 1500))),
        "SELECT sum(2 * least(s, 1500)) FROM (SELECT sum(cost) s FROM visits"
        " WHERE CAST(pid AS INT) < 300 GROUP BY pid)",
    ),
    (
        "",
        total(days_between(FIRST, last_of("visits", "day", by="day"))),
        "SELECT sum(b - a) FROM (SELECT max(day) b, min(day) a FROM visits"
        " WHERE CAST(pid AS INT) < 300 GROUP BY pid)",
    ),
    (
        "",
        total(max_of("visits", col("cost") * 2) - min_of("visits", "cost")),
        "SELECT sum(2 * (2 * hi - lo)) FROM (SELECT max(cost) hi, min(cost) lo FROM visits WHERE"
        " CAST(pid AS INT) < 300 GROUP BY pid)",
    ),
    (
        "",
        histogram(count_of("visits"), edges=[0, 1, 2, 4, 51]),
        "",
    ),
    (
        "visits",
        histogram("ward", "sex"),
        "",
    ),
    (
        "visits",
        total("cost", where=(col("sex") == "M") & exists("drugs")),
        "SELECT sum(2 * cost) FROM visits v JOIN patients p"
        " ON v.pid = CAST(p.patient_id AS VARCHAR)"
        " WHERE sex = 'M' AND patient_id IN (SELECT patient_id FROM drugs)",
    ),
    (
        "visits",
        count(where=col("patients.region") == 1),
        "SELECT count(*) FROM visits v JOIN patients p ON v.pid = CAST(p.patient_id AS VARCHAR)"
        " WHERE p.region = 1",
    ),
    (
        "",
        count(
            where=exists(
                "visits",
                (col("day") >= GIVEN) & (col("day") <= GIVEN + 30),
            )
        ),
        "SELECT count(DISTINCT v.pid) FROM visits v JOIN (SELECT patient_id, min(given) g"
        " FROM drugs GROUP BY 1) d ON v.pid = CAST(d.patient_id AS VARCHAR)"
        " WHERE v.day BETWEEN g AND g + 30",
    ),
    ("", mean(mean_of("drugs", "dose")), ""),
    ("", histogram(last_of("visits", "ward", by="day"), "sex", other=True), ""),
    ("drugs", mean("dose", where=exists("visits", col("urgent"))), ""),
    ("", outer(columns(["age", count_of("visits")]), columns(["age", exists("drugs")])), ""),
    (
        "",
        count(where=exists("visits", col("day") - latest_of("drugs", "given", upto="day") <= 30)),
        "SELECT count(DISTINCT v.pid) FROM visits v JOIN drugs d"
        " ON v.pid = CAST(d.patient_id AS VARCHAR) WHERE v.day BETWEEN d.given AND d.given + 30",
    ),
    ("visits", total(earliest_of("visits", "day", after="day") - col("day")), ""),
]  # fmt: skip


def sums(engine: Engine, schema: Study, table: str, question: Any) -> list[int]:
    return engine.exact_sums(bind(about_table(question, table), schema).sums)


def test_where_nothing_is_cut_the_sums_are_those_of_plain_sql() -> None:
    held, schema = frames(1), study()
    engine = open_study_engine(held, schema, size_is_public=True)
    plain = duckdb.connect()
    for name, frame in held.items():
        plain.register(name, frame)
    compared = 0
    for table, question, sql in QUESTIONS:
        if sql:
            [found] = sums(engine, schema, table, question)
            assert found == plain.execute(sql).fetchall()[0][0], sql
            compared += 1
    assert compared >= 9
    engine.close()


@pytest.mark.parametrize(("max_rows", "ceiling", "keep"), [(50, 50, "hash"), (2, 3, "last")])
def test_postgresql_gives_the_same_integers(
    postgres: PostgresServer, max_rows: int, ceiling: int, keep: str
) -> None:
    held, schema = frames(2, 120), study(max_rows, ceiling, keep)
    here = open_study_engine(held, schema, size_is_public=True)
    there = on_postgres(postgres, held, schema)
    assert here.size() == there.size()
    for table, question, _ in QUESTIONS:
        assert sums(here, schema, table, question) == sums(there, schema, table, question)
    here.close()
    there.close()


def test_how_long_a_statement_may_take_goes_by_the_bounds_of_all_tables(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tight bound on persons must not end what reads their many events: it was charged."""
    held, schema = frames(8, 20), study()
    engine = on_postgres(postgres, held, schema)
    said: list[int] = []
    monkeypatch.setattr(
        postgres_engine, "allowed_seconds", lambda letters, rows: said.append(rows) or 60
    )
    engine.exact_sums(bind(count(where=exists("visits")), schema).sums)
    assert said == [schema.rows_bound()] and said[0] == 101 * schema.at_most
    engine.close()


def test_a_row_that_comes_to_any_table_is_noticed(postgres: PostgresServer) -> None:
    held, schema = frames(3, 20), study()
    engine = on_postgres(postgres, held, schema)
    assert engine.unchanged()
    run(postgres, "INSERT INTO drugs VALUES (1, 1.0, NULL)")
    with pytest.raises(EngineFailed):
        engine.exact_sums(bind(count(), schema).sums)
    assert not engine.unchanged()
    engine.close()


def test_a_file_that_changes_is_noticed(tmp_path: Any) -> None:
    held, schema = frames(4, 20), study()
    paths = {name: tmp_path / f"{name}.parquet" for name in held}
    for name, frame in held.items():
        frame.to_parquet(paths[name])
    engine = open_study_engine(paths, schema, size_is_public=True)
    assert engine.unchanged()
    held["drugs"].iloc[1:].to_parquet(paths["drugs"])
    assert not engine.unchanged()
    engine.close()


def test_csv_files_and_frames_hold_the_same_study(tmp_path: Any) -> None:
    held, schema = frames(5, 60), study(2, 3)
    paths = {name: tmp_path / f"{name}.csv" for name in held}
    for name, frame in held.items():
        frame.to_csv(paths[name], index=False)
    one = open_study_engine(paths, schema, size_is_public=True)
    two = open_study_engine(held, schema, size_is_public=True)
    for table, question, _ in QUESTIONS:
        assert sums(one, schema, table, question) == sums(two, schema, table, question)


def test_sources_must_fit_the_study() -> None:
    held, schema = frames(6, 20), study()
    with pytest.raises(InvalidQuery, match="a source for each of"):
        open_study_engine({"patients": held["patients"]}, schema, size_is_public=True)
    with pytest.raises(InvalidQuery, match="visits: no column 'day'"):
        open_study_engine({**held, "visits": held["drugs"]}, schema, size_is_public=True)
    with pytest.raises(Refused, match="not from Spark yet"):
        open_study_engine({**held, "visits": "spark+local:///x"}, schema, size_is_public=True)
    with pytest.raises(Refused, match="in one place"):
        open_study_engine({**held, "drugs": "postgresql://h/d/t"}, schema, size_is_public=True)
    nobody = held["patients"].assign(patient_id=None)
    with pytest.raises(InvalidQuery, match="no rows with an id"):
        open_study_engine({**held, "patients": nobody.astype({"patient_id": "Int64"})}, schema,
                          size_is_public=True)  # fmt: skip


def test_a_program_is_read_on_the_table_it_was_priced_for() -> None:
    """A plain program is refused by a study, and a study's program by a plain table."""
    held, schema = frames(7, 20), study()
    engine = open_study_engine(held, schema, size_is_public=True)
    plain = Schema(Number("age", 0, 120, step=1))
    with pytest.raises(InvalidQuery, match="which table's rows"):
        engine.exact_sums(bind(count(where=col("age") > 3), plain).sums)
    other = open_engine(held["patients"], plain)
    with pytest.raises(InvalidQuery, match="no such condition"):
        other.exact_sums(bind(count(where=col("age") > 3), schema).sums)


def test_a_value_stands_where_a_column_stands() -> None:
    assert isinstance(exists("visits") & (count_of("visits") > 2), Expression)
