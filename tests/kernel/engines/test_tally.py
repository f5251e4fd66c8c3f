"""The owner's counts: the same on every engine (Spark's are checked in test_spark.py)."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.kernel.engines.postgres_tables import fill, run
from tests.postgres_server import PostgresServer

from sulq.errors import InvalidQuery
from sulq.kernel.engines.tally import OwnerTally, PersonCounts, tally
from sulq.kernel.schema.columns import Category, Flag, Number

N = 400
ROWS: list[dict[str, Any]] = [
    {
        "PatientId": 7_000 + i // 3,
        "visit": f"v{i}",
        "age": None if i % 50 == 0 else 200 if i % 8 == 0 else 18 + i % 60,
        "pay": float("nan") if i % 10 == 0 else i / 4,
        "sex": ("F", "M", " f", "?")[i % 4],
        "ward": "rare" if i < 5 else "A",
        "ill": i % 3 == 0,
        "born": datetime.date(1950, 1, 1) + datetime.timedelta(days=i),
    }
    for i in range(N)
]
TYPES = {
    "PatientId": "bigint",
    "visit": "text",
    "age": "integer",
    "pay": "double precision",
    "sex": "text",
    "ward": "text",
    "ill": "boolean",
    "born": "date",
}
COLUMNS = [
    Category("visit"),
    Number("age", 18, 77, step=1),
    Number("pay", 0, 99),
    Category("sex", ["F", "M"]),
    Category("ward", ["A", "rare"], public=True),
    Flag("ill", public=True),
    Number("born", datetime.date(1950, 1, 1), datetime.date(1951, 2, 4)),
]


def counted(source: Any, columns: list[Any] = COLUMNS) -> OwnerTally:
    return tally(source, columns, "PatientId", 3, lambda name: name == "PatientId")


def check(found: OwnerTally) -> None:
    cells = found.cells
    assert found.rows == N
    assert found.persons == PersonCounts(
        134, N, 0, {1: 134, 2: 267, 3: 400, 4: 400, 8: 400, 16: 400, 32: 400}
    )
    assert (cells["PatientId"].distinct, cells["PatientId"].readable) == (134, None)
    assert (cells["visit"].holds, cells["visit"].distinct) == ("text", N)
    gone, high = 8, sum(i % 8 == 0 and i % 50 != 0 for i in range(N))
    age = cells["age"]
    assert (age.there, age.readable, age.fitting) == (N - gone, N - gone, N - gone - high)
    assert age.ends == (True, False)  # 18 is the least, 200 the greatest
    pay = cells["pay"]
    assert (pay.there, pay.readable) == (360, 360)  # NaN is missing, as NULL is
    assert pay.fitting == sum(i % 10 != 0 and i / 4 <= 99 for i in range(N))
    sex = cells["sex"]
    assert (sex.readable, sex.fitting) == (N, N // 2)
    assert sex.spelled == {"missing mark": 100, "blanks": 0, "capitals": 100, "initials": 100}
    assert (cells["ward"].small, cells["ill"].small) == ((2, 1), (2, 0))
    assert found.together == (4, 2)
    assert cells["born"].ends == (True, True)


def arrow() -> pa.Table:
    return pa.Table.from_pylist(ROWS)


@pytest.mark.parametrize("source", ["frame", "parquet", "csv"])
def test_duckdb_counts_files_and_frames(tmp_path: Path, source: str) -> None:
    table = arrow()
    given: Any = table
    if source == "parquet":
        given = tmp_path / "t.parquet"
        pq.write_table(table, given)
    elif source == "csv":
        given = tmp_path / "t.csv"
        kept = table.set_column(
            3, "pay", pa.array([None if row["pay"] != row["pay"] else row["pay"] for row in ROWS])
        )
        duckdb.from_arrow(kept).write_csv(str(given))
    check(counted(given))


def test_postgresql_counts_the_same(postgres: PostgresServer) -> None:
    check(counted(fill(postgres, "tallied", TYPES, ROWS)))


def test_an_enum_of_postgresql_is_text_too(postgres: PostgresServer) -> None:
    run(
        postgres,
        "DROP TABLE IF EXISTS moods; DROP TYPE IF EXISTS mood;"
        " CREATE TYPE mood AS ENUM ('Sad', 'ok'); CREATE TABLE moods (m mood);"
        " INSERT INTO moods SELECT 'Sad' FROM generate_series(1, 40)",
    )
    cells = tally(postgres.url(table="moods"), [Category("m", ["sad", "ok"])]).cells["m"]
    assert (cells.fitting, cells.spelled["capitals"]) == (0, 40)


@pytest.mark.parametrize(
    ("cell", "column", "spelling"),
    [
        ("62,5", Number("x", 0, 100), "decimal comma"),
        ("1.062,5", Number("x", 0, 10_000), "decimal comma"),
        (
            "31.05.2016",
            Number("x", datetime.date(2000, 1, 1), datetime.date(2030, 1, 1)),
            "day first",
        ),
        ("?", Number("x", 0, 100), "missing mark"),
        ("N/A", Flag("x"), "missing mark"),
        ("[70-80)", Number("x", 0, 100), "beside"),
        (" female", Category("x", ["female", "male"]), "blanks"),
        ("Female", Category("x", ["female", "male"]), "capitals"),
        ("F", Category("x", ["female", "male"]), "initials"),
        ("female", Category("x", ["F", "M"]), "initials"),
    ],
)
def test_text_that_does_not_fit_is_told_by_its_spelling(
    tmp_path: Path, cell: str, column: Any, spelling: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x;y\n" + f"{cell};1\n" * 40)
    cells = tally(path, [column]).cells["x"]
    assert (cells.there, cells.fitting) == (40, 0)
    assert cells.spelled[spelling] == 40  # type: ignore[index]


def test_distinct_values_of_very_many_rows_are_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sulq.kernel.engines.tally.MOST_DISTINCT", 5_000)
    table = pa.table({"a": range(20_000), "b": [i % 7 for i in range(20_000)]})
    cells = tally(table, [Number("a", 0, 1, step=1), Number("b", 0, 1, step=1)]).cells
    assert 16_000 < (cells["a"].distinct or 0) < 24_000
    assert (cells["b"].distinct or 0) <= 28


@pytest.mark.parametrize(
    ("column", "said"),
    [(Number("no", 0, 1), "no column 'no'"), (Number("visit", 0, 1), "'visit' is declared")],
)
def test_complaints_quote_no_row(column: Any, said: str) -> None:
    with pytest.raises(InvalidQuery, match=said) as caught:
        counted(arrow(), [column])
    assert "v1" not in str(caught.value).replace("visit", "")
    assert caught.value.__cause__ is None
    with pytest.raises(InvalidQuery, match="has no rows"):
        counted(arrow().slice(0, 0))


def test_a_header_with_blanks_after_its_commas_says_how_to_declare_it(tmp_path: Path) -> None:
    """The adviser says it as the engine does, and names no other field of that line."""
    file = tmp_path / "census.csv"
    file.write_text("secret, age\n1, 2\n")
    with pytest.raises(InvalidQuery, match=r'blanks around.*delimiter = ", "') as caught:
        tally(str(file), [Number("age", 0, 120)], "row", 1, lambda name: False)
    assert "secret" not in str(caught.value)
