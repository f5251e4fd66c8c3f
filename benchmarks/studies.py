"""Studies against the same statements in plain DuckDB: user CPU, peak memory, and the clock.

python -m benchmarks studies

One million persons with eight million visits and two million prescriptions, all held in memory on
both sides. `steps`: what a row of a question takes, in steps of a row that is only counted; the
clock reckons with `pacing.GROUPED` of them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.timing import least, repeated
from sulq import Category, Flag, Number, col, count, histogram, total
from sulq.kernel.engines.engine import open_study_engine
from sulq.kernel.query.sum_query import about_table
from sulq.kernel.schema.bind import bind
from sulq.server.pacing import GROUPED, weight
from sulq.studies import EventTable, Study, count_of, exists, latest_of

PERSONS = 1_000_000
VISITS_EACH, DRUGS_EACH = 8, 2
SECONDS = 20.0
Line = dict[str, Any]
DAYS = (date(2015, 1, 1), date(2026, 12, 31))
NEAR = col("day") - latest_of("drugs", "given", upto="day") <= 30
QUESTIONS: dict[str, tuple[str, Any, str]] = {
    "many to one: sum by a column of the person": (
        "visits",
        total("cost", where=(col("sex") == "F") & (col("age") >= 40)),
        "SELECT sum(cost) FROM visits v JOIN patients p USING (patient_id)"
        " WHERE sex = 'F' AND age >= 40",
    ),
    "many to one: count by groups of both": (
        "visits",
        histogram("ward", "sex"),
        "SELECT ward, sex, count(*) FROM visits v JOIN patients p USING (patient_id)"
        " GROUP BY ward, sex",
    ),
    "EXISTS": (
        "",
        count(where=exists("visits", col("urgent")) & (col("age") >= 40)),
        "SELECT count(*) FROM patients p WHERE age >= 40 AND EXISTS (SELECT 1 FROM visits v WHERE"
        " v.patient_id = p.patient_id AND urgent)",
    ),
    "a person's COUNT": (
        "",
        count(where=count_of("visits", col("urgent")) >= 3),
        "SELECT count(*) FROM patients p WHERE (SELECT count(*) FROM visits v WHERE"
        " v.patient_id = p.patient_id AND urgent) >= 3",
    ),
    "EXISTS of a visit within 30 days after a prescription": (
        "",
        count(where=exists("visits", NEAR)),
        "SELECT count(DISTINCT v.patient_id) FROM visits v JOIN drugs d USING (patient_id)"
        " WHERE v.day BETWEEN d.given AND d.given + 30",
    ),
}


def study(max_rows: int, ceiling: int) -> Study:
    return Study(
        "patients",
        Category("sex", ["F", "M"]),
        Number("age", 0, 120, step=1),
        person="patient_id",
        tables=[
            EventTable(
                "visits",
                Number("day", *DAYS),
                Number("cost", 0, 1000, step=1),
                Category("ward", ["surgery", "heart", "eyes"]),
                Flag("urgent"),
                max_rows=max_rows,
                ceiling=ceiling,
            ),
            EventTable("drugs", Number("given", *DAYS), max_rows=ceiling, ceiling=ceiling),
        ],
    )


def written(folder: Path, persons: int) -> dict[str, Path]:
    """The tables as Parquet files; persons have as many visits as chance gives them."""
    found = {name: folder / f"study-{persons}-{name}.parquet" for name in ("patients", "visits")}
    found["drugs"] = folder / f"study-{persons}-drugs.parquet"
    day = "DATE '2018-01-01' + CAST(hash(i, 2) % 2000 AS INTEGER)"
    whose = f"CAST(hash(i, 1) % {persons} AS BIGINT) AS patient_id"
    made = {
        "patients": (
            "i AS patient_id, ['F', 'M'][CAST(hash(i, 3) % 2 + 1 AS INTEGER)] AS sex,"
            " CAST(hash(i, 4) % 95 AS INTEGER) AS age",
            persons,
        ),
        "visits": (
            f"{whose}, {day} AS day, CAST(hash(i, 5) % 1000 AS INTEGER) AS cost,"
            " ['surgery', 'heart', 'eyes'][CAST(hash(i, 6) % 3 + 1 AS INTEGER)] AS ward,"
            " hash(i, 7) % 10 < 3 AS urgent",
            VISITS_EACH * persons,
        ),
        "drugs": (f"{whose}, {day} AS given", DRUGS_EACH * persons),
    }
    with duckdb.connect() as connection:
        for name, (columns, rows) in made.items():
            if not found[name].exists():
                connection.sql(f"SELECT {columns} FROM range({rows}) AS t(i)").write_parquet(
                    str(found[name])
                )
    return found


def measure(folder: Path, full: bool, persons: int = PERSONS) -> list[Line]:
    """Seconds of ours and raw by question, where nothing is cut and where `max_rows` cuts."""
    paths = written(folder, persons)
    lines = [line for cut in (False, True) for line in compared(paths, persons, cut)]
    for what in ("ours", "raw"):
        lines.append(
            {"kind": "peak memory", "what": what, "persons": persons, "mb": peak(what, paths)}
        )
    return lines


def compared(paths: dict[str, Path], persons: int, cut: bool) -> Iterator[Line]:
    schema = study(4 if cut else 50, 50)
    with duckdb.connect() as raw:
        held_raw(raw, paths)
        engine = open_study_engine(paths, schema, size_is_public=True)
        rows = (1 + VISITS_EACH + DRUGS_EACH) * persons
        plain_row = bind(count(where=col("age") >= 40), schema)
        [whole] = least([(repeated(20), lambda: engine.exact_sums(plain_row.sums))], 3, SECONDS)
        step = GROUPED * whole / (persons * weight(plain_row, schema))
        for kind, (table, question, statement) in QUESTIONS.items():
            if cut and table != "visits":
                continue
            bound = bind(about_table(question, table), schema)
            ours, plain = least(
                [
                    (repeated(1), lambda b=bound: engine.exact_sums(b.sums)),  # type: ignore[misc]
                    (repeated(1), lambda q=statement: raw.execute(q).fetchall()),  # type: ignore[misc]
                ],
                rounds=4,
                seconds=SECONDS,
            )
            yield {
                "kind": kind,
                "persons": persons,
                "cut": cut,
                "ours": ours,
                "raw": plain,
                "steps": GROUPED * ours / (rows * weight(bound, schema) * step),
            }
        engine.close()


def held_raw(raw: duckdb.DuckDBPyConnection, paths: dict[str, Path]) -> None:
    for name, path in paths.items():
        raw.execute(f"CREATE TABLE {name} AS FROM read_parquet('{path}')")


def peak(what: str, paths: dict[str, Path]) -> float:
    """Megabytes of a process that opens the tables and asks each question once."""
    words = [sys.executable, "-m", "benchmarks.studies", what, *map(str, paths.values())]
    told = subprocess.run(words, capture_output=True, text=True, check=True)
    return float(told.stdout.split()[-1])


def alone(what: str, names: list[str]) -> float:
    paths = dict(zip(("patients", "visits", "drugs"), map(Path, names), strict=True))
    if what == "raw":
        with duckdb.connect() as raw:
            held_raw(raw, paths)
            for _, _, statement in QUESTIONS.values():
                raw.execute(statement).fetchall()
    else:
        schema = study(4, 50)
        engine = open_study_engine(paths, schema, size_is_public=True)
        for table, question, _ in QUESTIONS.values():
            engine.exact_sums(bind(about_table(question, table), schema).sums)
    said = Path("/proc/self/status").read_text()  # getrusage would say the parent's
    return int(said.split("VmHWM:")[1].split()[0]) / 1024


if __name__ == "__main__":
    print(alone(sys.argv[1], sys.argv[2:]))
