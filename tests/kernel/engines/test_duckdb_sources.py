"""What may be opened, as what, and how a bad source is refused."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.kernel.engines import reference

from sulq.errors import InvalidQuery, Refused
from sulq.kernel.engines import open_engine
from sulq.kernel.schema import program as b
from sulq.kernel.schema.columns import Category, Column, Flag, Number, Schema

VALUES = [0, 1, 3, 100, None]
NUMBER = Number("v", 0, 50)
LEAF = b.Quantised("v", 0.0, 50.0, 4.0)
PRESENT = b.BoundChoice(b.Missing(LEAF, True), b.Fixed(1), b.Fixed(0))
BOTH = b.RowSums(b.Always(), (LEAF, PRESENT))


def sums(source: Any, column: Column, program: b.RowSums) -> list[int]:
    engine = open_engine(source, Schema(column), threads=1)
    try:
        return engine.exact_sums(program)
    finally:
        engine.close()


def stored(folder: Path, values: list[Any], kind: pa.DataType) -> Path:
    path = folder / "v.parquet"
    pq.write_table(pa.table({"v": pa.array(values, kind), "secret": [1] * len(values)}), path)
    return path


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("kind", [*INTEGERS, "float16", "float32", "float64"])
def test_numbers_of_every_width(kind: str, tmp_path: Path) -> None:
    values = [None if v is None else (float(v) if "float" in kind else v) for v in VALUES]
    array = pa.array(values, getattr(pa, kind)())
    path = stored(tmp_path, array.to_pylist(), array.type)
    assert sums(path, NUMBER, BOTH) == [4 * (0 + 1 + 3 + 50), 4]


@pytest.mark.parametrize("digits, places", [(9, 3), (15, 3), (18, 15), (25, 20), (38, 30)])
def test_decimals_convert_with_one_rounding(digits: int, places: int, tmp_path: Path) -> None:
    rng = random.Random(digits)
    values = [Decimal(rng.randrange(10**digits)).scaleb(-places) for _ in range(2_000)]
    path = stored(tmp_path, values, pa.decimal128(digits, places))
    fine = b.Quantised("v", 0.0, 2.0**20, 2.0**42)  # the last bit of a value near 2^10 counts
    program = b.RowSums(b.Always(), (fine,))
    expected = reference.exact_sums(program, [{"v": value} for value in values])
    assert sums(path, Number("v", 0, 2**20), program) == expected


def test_unsigned_and_wide_integers_are_clamped_not_wrapped(tmp_path: Path) -> None:
    path = stored(tmp_path, [2**64 - 1, 2**63, 5], pa.uint64())
    assert sums(path, NUMBER, BOTH) == [4 * (50 + 50 + 5), 3]


DAYS = [dt.date(1969, 12, 31), dt.date(2020, 2, 29), None]
TIMES = [
    dt.datetime(1969, 12, 31, 23, 59, 59, 500_000),
    dt.datetime(2020, 2, 29, 12, 0, 0, 1),
    None,
]


@pytest.mark.parametrize("kind", ["date32", "timestamp-ms", "timestamp-us", "timestamp-ns", "utc"])
def test_dates_count_days_rounded_down(kind: str, tmp_path: Path) -> None:
    types = {
        "date32": pa.date32(),
        "timestamp-ms": pa.timestamp("ms"),
        "timestamp-us": pa.timestamp("us"),
        "timestamp-ns": pa.timestamp("ns"),
        "utc": pa.timestamp("us", tz="Europe/Oslo"),
    }
    values: list[Any] = DAYS if kind == "date32" else TIMES
    if kind == "timestamp-ms":
        values = [None if v is None else v.replace(microsecond=500_000) for v in TIMES]
    path = stored(tmp_path, values, types[kind])
    column = Number("v", dt.date(1900, 1, 1), dt.date(2100, 1, 1))
    leaf = b.Quantised("v", -25_567.0, 47_482.0, 1.0)
    program = b.RowSums(b.Always(), (leaf, b.FirstOf(leaf, b.Fixed(10**6))))
    day = (dt.date(2020, 2, 29) - dt.date(1970, 1, 1)).days
    assert sums(path, column, program) == [day - 1, day - 1 + 10**6]


@pytest.mark.parametrize("kind", ["us", "ns", "utc", "csv"])
def test_datetimes_count_seconds(kind: str, tmp_path: Path) -> None:
    if kind == "csv":
        path = tmp_path / "v.csv"
        path.write_text("v\n1969-12-31 23:59:59.5\n2020-02-29T14:00:00.000001+02:00\nsoon\n")
    else:
        zoned = pa.timestamp("us", tz="UTC") if kind == "utc" else pa.timestamp(kind)
        path = stored(tmp_path, TIMES, zoned)
    column = Number("v", dt.datetime(1960, 1, 1), dt.datetime(2030, 1, 1))
    leaf = b.Quantised("v", -315_619_200.0, 1_893_456_000.0, 1000.0)
    seconds = 1_582_977_600.000001
    expected = [math.floor(-0.5 * 1000 + 0.5) + math.floor(seconds * 1000 + 0.5)]
    assert sums(path, column, b.RowSums(b.Always(), (leaf,))) == expected


def test_infinite_times_are_clamped(tmp_path: Path) -> None:
    path = stored(tmp_path, [2**63 - 1, -(2**63) + 1, 0], pa.timestamp("us"))
    column = Number("v", dt.datetime(1960, 1, 1), dt.datetime(2030, 1, 1))
    leaf = b.Quantised("v", -10.0, 20.0, 1.0)
    assert sums(path, column, b.RowSums(b.Always(), (leaf,))) == [10]


@pytest.mark.sample(6)
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Oslo"])
@pytest.mark.parametrize("unit", ["s", "ms"])
@pytest.mark.parametrize("held", ["arrow", "pandas", "polars", "parquet"])
def test_one_absurd_time_keeps_no_table_from_being_published(
    held: str, unit: str, zone: str | None, tmp_path: Path
) -> None:
    """Times that microseconds cannot count are moved to the bound on their side, as all others."""
    if unit == "s" and held in ("parquet", "polars"):
        pytest.skip("neither has times in whole seconds")
    values = [5 * 10**18, -5 * 10**18, 9 * 10**18, 3 * (1 if unit == "s" else 1_000), None]
    table = pa.table({"v": pa.array(values, pa.timestamp(unit, tz=zone)), "n": range(5)})
    source: Any = table
    if held == "pandas":
        source = table.to_pandas()
    elif held == "polars":
        source = pl.from_arrow(table)
    elif held == "parquet":
        source = tmp_path / "v.parquet"
        pq.write_table(table, source)
    leaf = b.Quantised("v", -10.0, 20.0, 1.0)
    program = b.RowSums(b.Always(), (leaf, b.FirstOf(leaf, b.Fixed(1_000))))
    column = Number("v", dt.datetime(1960, 1, 1), dt.datetime(2030, 1, 1))
    expected = 20 - 10 + 20 + 3
    assert sums(source, column, program) == [expected, expected + 1_000]
    days = b.RowSums(b.Always(), (b.Quantised("v", -10.0, 20.0, 1.0),))
    assert sums(source, Number("v", dt.date(1960, 1, 1), dt.date(2030, 1, 1)), days) == [30]


def test_times_that_fit_leave_the_fingerprint_alone() -> None:
    """Ledgers know a frame by it: only a frame that could not be opened is read in another way."""
    table = pa.table({"v": pa.array([5, 1_590_000_000_123, None], pa.timestamp("ms"))})
    engine = open_engine(table, Schema(Number("v", dt.date(1960, 1, 1), dt.date(2030, 1, 1))))
    try:
        assert engine.fingerprint() == FRAME_OF_MILLISECONDS
    finally:
        engine.close()


FRAME_OF_MILLISECONDS = "85e4a1b2c43ae757baffb5d0c1fe743e8ec15d3eb5741605c0f901ae05493c63"


@pytest.mark.parametrize("kind", [pa.bool_(), pa.int8(), pa.int64(), pa.uint8()])
def test_flags(kind: pa.DataType, tmp_path: Path) -> None:
    values = [True, False, None, True] if kind == pa.bool_() else [1, 0, 2, 1]
    program = b.RowSums(b.Always(), (b.FlagBit("v"), b.Fixed(1)), (b.FlagCells("v", other=True),))
    path = stored(tmp_path, values, kind)
    assert sums(path, Flag("v"), program) == [0, 1, 2, 2, 0, 1]


@pytest.mark.parametrize("kind", INTEGERS)
def test_integer_categories(kind: str, tmp_path: Path) -> None:
    path = stored(tmp_path, [1, 2, 2, 9, None], getattr(pa, kind)())
    cells = (b.CategoryCells("v", (2, -5, 300, 2**62, 1), other=True),)
    column = Category("v", [2, -5, 300, 2**62, 1])
    program = b.RowSums(b.Always(), (b.Fixed(1),), cells)
    assert sums(path, column, program) == [2, 0, 0, 0, 1, 2]
    out = b.RowSums(b.Among("v", (2, -5), negated=True), (b.Fixed(1),))
    assert sums(path, column, out) == [2]


def frames() -> dict[str, Any]:
    content = {"v": [0.0, 7.25, None, 99.0], "w": ["a", "b", None, "a"], "secret": [1, 2, 3, 4]}
    return {
        "pandas": pd.DataFrame(content),
        "pandas category": pd.DataFrame(content).astype({"w": "category"}),
        "polars": pl.DataFrame(content),
        "arrow": pa.table(content),
        "arrow batches": pa.table(content).to_reader(),
    }


@pytest.mark.parametrize("kind", list(frames()))
def test_frames(kind: str) -> None:
    schema = Schema(NUMBER, Category("w", ["b", "a"]))
    engine = open_engine(frames()[kind], schema)
    program = b.RowSums(b.Always(), (LEAF,), (b.CategoryCells("w", ("b", "a"), True),))
    assert engine.exact_sums(program) == [29, 200, 0]
    assert (engine.size(), engine.unchanged()) == (4, True)
    engine.close()


def test_csv_cells_that_are_not_what_was_declared_are_null(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(
        "v,f,k,w\n1,TRUE,1,x\n2.5,no,2,\nSECRET,maybe,1.5,y\nnan,1,1e0,x\n,F, 2 ,x\ninf,t,0x1,x\n"
    )
    schema = Schema(NUMBER, Flag("f"), Category("k", [1, 2]), Category("w", ["x", "y"]))
    engine = open_engine(path, schema)

    def one(*terms: b.Integer, groups: tuple[b.Cells, ...] = ()) -> list[int]:
        return engine.exact_sums(b.RowSums(b.Always(), terms, groups))

    assert one(LEAF, PRESENT) == [4 + 10 + 200, 3]
    assert one(b.Fixed(1), groups=(b.FlagCells("f", True),)) == [2, 3, 1]
    assert one(b.Fixed(1), groups=(b.CategoryCells("k", (1, 2), True),)) == [1, 2, 3]
    assert one(b.Fixed(1), groups=(b.CategoryCells("w", ("x", "y"), True),)) == [4, 1, 1]
    engine.close()


def test_fingerprints_follow_the_content(tmp_path: Path) -> None:
    rows = pd.DataFrame({"v": [1.0, 2.0, 3.0], "secret": ["a", "b", "c"]})
    schema = Schema(NUMBER)

    def of(source: Any) -> str:
        engine = open_engine(source, schema)
        engine.close()
        return engine.fingerprint()

    assert of(rows) == of(rows.iloc[::-1].reset_index(drop=True))
    assert of(rows) != of(rows.assign(secret=["a", "b", "d"]))  # undeclared columns count too
    path = stored(tmp_path, [1, 2], pa.int64())
    first = of(path)
    assert first == of(path) and len(first) == 64
    assert first != of(stored(tmp_path, [1, 3], pa.int64()))


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    path = stored(tmp_path, [1, 2], pa.int64())
    engine = open_engine(path, Schema(NUMBER))
    assert engine.unchanged()
    path.write_bytes(path.read_bytes() + b" ")
    assert not engine.unchanged()
    path.unlink()
    assert not engine.unchanged()
    engine.close()


def refused(source: Any, schema: Schema, wanted: str) -> None:
    with pytest.raises(InvalidQuery, match=wanted) as caught:
        open_engine(source, schema)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert "SECRET" not in str(caught.value)


def test_bad_paths(tmp_path: Path) -> None:
    schema = Schema(NUMBER)
    refused(tmp_path / "none.parquet", schema, "no file 'none.parquet'")
    refused(str(tmp_path), schema, "is not a file")
    (tmp_path / "empty.csv").touch()
    refused(tmp_path / "empty.csv", schema, "no rows")
    (tmp_path / "header.csv").write_text("v,w\n")
    refused(tmp_path / "header.csv", schema, "no rows")
    (tmp_path / "junk.parquet").write_text("SECRET")
    refused(tmp_path / "junk.parquet", schema, "not a readable Parquet file")
    (tmp_path / "v.txt").write_text("v\n1\n")
    refused(tmp_path / "v.txt", schema, "should end in .parquet, .csv")
    refused(tmp_path / "*.parquet", schema, "may not contain")
    (tmp_path / "latin.csv").write_bytes(b"v,w\n1,SECRET\xff\xfe\n")
    refused(tmp_path / "latin.csv", Schema(Category("w")), "UTF-8")
    refused(stored(tmp_path, [], pa.int64()), schema, "no rows")
    refused(object(), schema, "cannot read a object")
    refused(pd.DataFrame({"v": []}, dtype="float64"), schema, "no rows")


@pytest.mark.parametrize("url", ["mysql://host/people", "ftp://x/y"])
def test_addresses_of_other_engines(url: str) -> None:
    with pytest.raises(Refused, match="give a file or a table"):
        open_engine(url, Schema(NUMBER))


def test_columns_that_are_not_there_or_of_another_kind(tmp_path: Path) -> None:
    path = stored(tmp_path, ["SECRET"], pa.string())
    refused(path, Schema(Number("age", 0, 9)), r"no column 'age'.*\['secret', 'v'\]")
    refused(path, Schema(NUMBER), "'v' is declared to hold numbers but the table has VARCHAR")
    refused(path, Schema(Flag("v")), "booleans or integers")
    refused(path, Schema(Category("v", [1])), "integers")
    path = stored(tmp_path, [1.5], pa.float64())
    refused(path, Schema(Category("v")), "text")
    refused(path, Schema(Category("v", [1])), "integers")
    refused(path, Schema(Number("v", dt.date(2000, 1, 1), dt.date(2001, 1, 1))), "dates")
    refused(stored(tmp_path, [b"SECRET"], pa.binary()), Schema(Category("v")), "text")


def test_text_that_is_not_unicode_is_found_at_open(tmp_path: Path) -> None:
    values = pa.array([b"fine", b"SECRET\xff"], pa.binary())
    broken = pa.StringArray.from_buffers(2, values.buffers()[1], values.buffers()[2])
    path = tmp_path / "broken.parquet"
    pq.write_table(pa.table({"v": broken}), path)
    refused(path, Schema(Category("v")), "UTF-8")
    refused(path, Schema(Category("v", ["fine"])), "UTF-8")
