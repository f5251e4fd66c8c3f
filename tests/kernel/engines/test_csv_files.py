"""CSV: nothing about how the file is read depends on a row."""

from __future__ import annotations

import datetime
import gzip
from pathlib import Path
from typing import Any

import pytest

from sulq.errors import InvalidQuery
from sulq.kernel.engines.engine import open_engine
from sulq.kernel.schema.columns import Category, Flag, Number, Schema
from sulq.kernel.schema.program import Always, Fixed, Quantised, RowSums

SCHEMA = Schema(Number("age", 0, 120), Flag("f"), Category("note"))
ROWS = [f"{20 + i},true,n{i}" for i in range(10)]
AGES = RowSums(Always(), (Fixed(1), Quantised("age", 0.0, 120.0, 1.0)))


def opened(path: Path) -> tuple[int, list[int]]:
    engine = open_engine(path, SCHEMA)
    try:
        return engine.size(), engine.exact_sums(AGES)
    finally:
        engine.close()


def written(tmp_path: Path, lines: list[str], name: str = "t.csv") -> Path:
    path = tmp_path / name
    path.write_text("\n".join(["age,f,note", *lines]) + "\n")
    return path


@pytest.mark.parametrize(
    "line",
    [
        "#NA,true,x",
        "#,#,#",
        "// a comment,true,x",
        ",,",
        "old,maybe,x",
        '"25","true","a, b"',
        '25,true,"two\nlines"',
        "25,true,'x",
        "25,true,x;y|z\tw",
        "1e999,true,x",
        "NULL,NULL,NULL",
        "2024-01-01,true,x",
    ],
)
def test_no_value_changes_the_number_of_rows(tmp_path: Path, line: str) -> None:
    size, sums = opened(written(tmp_path, [*ROWS[:4], line, *ROWS[5:]]))
    assert size == 10
    assert sums[0] == 10


def test_other_delimiters_and_compression_come_from_the_header(tmp_path: Path) -> None:
    wanted = opened(written(tmp_path, ROWS))
    for number, delimiter in enumerate(";\t|"):
        path = tmp_path / f"d{number}.csv"
        path.write_text("\n".join(["age,f,note", *ROWS]).replace(",", delimiter))
        assert opened(path) == wanted
    zipped = tmp_path / "t.csv.gz"
    zipped.write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    assert opened(zipped) == wanted
    marked = tmp_path / "bom.csv"
    marked.write_bytes(b"\xef\xbb\xbf" + (tmp_path / "t.csv").read_bytes())
    assert opened(marked) == wanted


@pytest.mark.parametrize("line", ["25;true;x", "25,true", "25,true,x,y", '25,true,"x'])
def test_a_malformed_line_is_refused_without_quoting_it(tmp_path: Path, line: str) -> None:
    with pytest.raises(InvalidQuery) as caught:
        opened(written(tmp_path, [*ROWS, line]))
    assert "25" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_file_without_a_header_does_not_show_its_first_row(tmp_path: Path) -> None:
    path = tmp_path / "bare.csv"
    path.write_text("secret-4711,true,x\n25,true,y\n")
    with pytest.raises(InvalidQuery) as caught:
        opened(path)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("content", ["", "\n", "a,a,b\n1,2,3\n", "a,,b\n1,2,3\n"])
def test_headers_must_name_every_column_once(tmp_path: Path, content: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(content)
    with pytest.raises(InvalidQuery):
        opened(path)


@pytest.mark.parametrize("missing", ["NA", "", "n/a", "unknown"])
@pytest.mark.parametrize("high", [100, datetime.date(2030, 1, 1), datetime.datetime(2030, 1, 1)])
def test_what_is_no_number_is_null_whatever_else_is_read(
    tmp_path: Path, missing: str, high: Any
) -> None:
    low = high.replace(year=2000) if hasattr(high, "year") else 0
    value = str(high) if hasattr(high, "year") else "7"
    path = tmp_path / "t.csv"
    path.write_text("x,c\n" + "\n".join(f"{missing if i % 5 else value},a" for i in range(50)))
    engine = open_engine(path, Schema(Number("x", low, high), Category("c", ["a"])))
    assert engine.size() == 50
    engine.close()
