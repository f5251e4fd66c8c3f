"""The Arrow C stream without pyarrow: what it reads, and what it refuses to misread."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from sulq.errors import EngineFailed
from sulq.kernel.engines.duckdb.arrow import blocks


def reader(table: pa.Table, rows: int = 1_000) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=rows))


def read(source: object) -> list[np.ndarray]:
    parts = [[column.copy() for column in block] for block in blocks(source)]
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def test_numbers_come_as_they_are() -> None:
    table = pa.table({"a": pa.array(range(2_500), pa.int64()), "b": [i / 7 for i in range(2_500)]})
    a, b = read(reader(table))
    assert a.dtype == np.int64 and a.tolist() == list(range(2_500))
    assert b.dtype == np.float64 and b.tolist() == table["b"].to_pylist()


@pytest.mark.parametrize("skipped", [0, 1, 3, 8, 13])
def test_null_is_nan_also_in_the_middle_of_a_buffer(skipped: int) -> None:
    values = [None if i % 3 == 0 else float(i) for i in range(50)]
    (found,) = read(reader(pa.table({"x": pa.array(values, pa.float64())}).slice(skipped)))
    expected = [np.nan if x is None else x for x in values[skipped:]]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2], pa.int32()),
        pa.array([1.0, 2.0], pa.float32()),
        pa.array(["a", "b"]),
        pa.array([1, None], pa.int64()),
    ],
    ids=["int32", "float32", "text", "null"],
)
def test_what_would_be_misread_is_refused(column: pa.Array) -> None:
    with pytest.raises(EngineFailed):
        read(reader(pa.table({"x": column})))


def test_an_engine_error_in_the_stream_keeps_its_words_to_itself() -> None:
    with duckdb.connect() as connection:
        relation = connection.sql(
            "SELECT CAST(CASE WHEN i = 500000 THEN 'SECRET' ELSE '1' END AS BIGINT) AS x"
            " FROM range(1000000) AS t(i)"
        )
        with pytest.raises(EngineFailed) as caught:
            read(relation)
        assert "SECRET" not in str(caught.value)
        assert connection.sql("SELECT 1").fetchall() == [(1,)]


def test_a_stream_may_be_left_midway() -> None:
    with duckdb.connect() as connection:
        stream = blocks(connection.sql("SELECT i FROM range(1000000) AS t(i)"))
        assert len(next(stream)[0]) > 0
        stream.close()
        assert connection.sql("SELECT 1").fetchall() == [(1,)]


def test_no_rows_are_no_blocks_or_empty_ones() -> None:
    with duckdb.connect() as connection:
        found = list(blocks(connection.sql("SELECT i FROM range(0) AS t(i)")))
    assert sum(len(block[0]) for block in found) == 0
