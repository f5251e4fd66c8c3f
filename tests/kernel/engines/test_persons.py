"""A person unit: at most max_rows of each person's rows count, whatever the row order."""

from __future__ import annotations

import hashlib
import math
import random
from typing import Any

import pandas as pd
import pytest
from tests.kernel.engines import reference

from sulq.errors import InvalidQuery
from sulq.kernel.engines import open_engine
from sulq.kernel.schema import program as b
from sulq.kernel.schema.columns import Category, Flag, Number, Schema

P = b.PRIME
COLUMNS = (
    Number("x", -10, 10),
    Category("city", ["a", "b"]),
    Category("code", [1, -2]),
    Flag("ill"),
)
X = b.Quantised("x", -10.0, 10.0, 1000.0)


def content(seed: int, persons: int = 40, rows: int = 400) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [
        {
            "who": rng.choice([None, *range(persons)]),
            "x": rng.choice([math.nan, 50.0, -50.0, 1.5, rng.uniform(-10, 10)]),
            "city": rng.choice([None, "a", "b", "c"]),
            "code": rng.choice([1, -2, 2**40]),
            "ill": rng.random() < 0.5,
        }
        for _ in range(rows)
    ]


def code(row: dict[str, Any]) -> list[int]:
    x = row["x"]
    steps = 2**20 / 20
    low = math.floor(-10 * steps + 0.5)
    number = 0 if math.isnan(x) else math.floor(min(max(x, -10), 10) * steps + 0.5) - low + 1
    text = row["city"]
    digest = 0 if text is None else int(hashlib.md5(text.encode()).hexdigest()[:7], 16) + 1
    return [number, digest, row["code"] % P + 1, int(row["ill"]) + 1]


def order(row: dict[str, Any]) -> tuple[Any, ...]:
    h = sum(pow(1_103_515_245, i + 1, P) * c for i, c in enumerate(code(row))) % P
    x = row["x"]
    clamped = -math.inf if math.isnan(x) else min(max(x, -10), 10)
    return (h * (h * (h + 7) + 5) % P, clamped, row["city"] or "", row["code"], row["ill"])


def kept(rows: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    by_person: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        if row["who"] is not None:
            by_person.setdefault(row["who"], []).append(row)
    return [row for mine in by_person.values() for row in sorted(mine, key=order)[:most]]


def sums(rows: list[dict[str, Any]], most: int, program: b.RowSums) -> tuple[list[int], int]:
    frame = pd.DataFrame(rows).astype({"who": "Int64"})
    engine = open_engine(frame, Schema(*COLUMNS, unit="who", max_rows=most))
    found = engine.exact_sums(program), engine.size()
    engine.close()
    return found


PROGRAM = b.RowSums(
    b.Always(),
    (X, b.Fixed(1), b.FlagBit("ill")),
    (b.CategoryCells("city", ("a", "b"), other=True),),
)


@pytest.mark.parametrize("most", [1, 2, 7, 1000])
def test_the_first_rows_by_the_published_hash_count(most: int) -> None:
    rows = content(most)
    chosen = kept(rows, most)
    expected = reference.exact_sums(PROGRAM, chosen), len({row["who"] for row in chosen})
    assert sums(rows, most, PROGRAM) == expected
    shuffled = random.Random(9).sample(rows, len(rows))
    assert sums(shuffled, most, PROGRAM) == expected


def test_no_person_adds_more_than_max_rows() -> None:
    crowd = [dict(row, who=1) for row in content(3)]
    program = b.RowSums(b.Always(), (b.Fixed(1),))
    assert sums(crowd, 5, program) == ([5], 1)


def test_rows_with_equal_hashes_are_ordered_by_their_values() -> None:
    """Closer than the hash's grid, yet different to a question: row order must not decide."""
    near = [dict(content(1)[0], who=1, x=1.5 + i * 1e-9) for i in range(6)]
    fine = b.RowSums(b.Always(), (b.Quantised("x", -10.0, 10.0, 2.0**40),))
    expected = ([math.floor(1.5 * 2.0**40 + 0.5)], 1)
    for seed in range(4):
        assert sums(random.Random(seed).sample(near, 6), 1, fine) == expected


def test_the_person_column_is_not_askable_and_must_name_persons() -> None:
    rows = pd.DataFrame(content(1))
    with pytest.raises(InvalidQuery, match="no column 'nobody'"):
        open_engine(rows, Schema(*COLUMNS, unit="nobody", max_rows=2))
    with pytest.raises(InvalidQuery, match="integers or text"):
        open_engine(rows, Schema(*COLUMNS[1:], unit="x", max_rows=2))
    with pytest.raises(InvalidQuery, match="no rows"):
        nobody = rows.astype({"who": "Int64"}).assign(who=pd.array([None] * 400, "Int64"))
        open_engine(nobody, Schema(*COLUMNS, unit="who", max_rows=2))
