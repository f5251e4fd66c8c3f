"""Groups that are empty for all to see: sums are exactly 0, all else is unknown, as NULL."""

from __future__ import annotations

import math

import pyarrow
import pytest

from sulq import Category, Database, Flag, Number, Promise, Schema

LOUD = Promise(epsilon=30, delta=1e-6, queries=300)
X = [1, 1, 7, 7, None] * 20
"""So that no sum of a group is near an end of what is possible, where an interval may vanish."""


def test_sums_of_a_group_that_is_empty_for_all_to_see_are_0():
    schema = Schema(Category("region", ["a", "b", "c"], public=True), Number("x", 0, 10, step=1))
    table = pyarrow.table({"region": ["a", "b"] * 50, "x": X})
    with Database.open(table, schema, LOUD, ":memory:") as database:
        found = database.sql(
            "SELECT region, COUNT(*) AS n, SUM(x) AS s, COUNT_IF(x > 3) AS m FROM t GROUP BY region"
        )
    ends = {row["region"]: (row["s"].interval(), row["m"].interval()) for row in found}
    assert ends["c"] == ends[None] == ((0, 0), (0, 0))
    assert all(low < high for key in "ab" for low, high in ends[key])


@pytest.fixture(scope="module")
def regions():
    """c is declared and has no rows; nobody is in no region."""
    schema = Schema(
        Category("region", ["a", "b", "c"], public=True), Number("x", 0, 10, step=1), Flag("f")
    )
    table = pyarrow.table({"region": ["a", "b"] * 50, "x": X, "f": [True, True, False, False] * 25})
    with Database.open(table, schema, LOUD, ":memory:") as database:
        yield database


@pytest.mark.parametrize(
    "of", ["SUM(x)", "COUNT(x)", "COUNT_IF(f)", "SUM(x) FILTER (WHERE f)", "SUM(x) - COUNT(f)"]
)
def test_sums_need_no_count_beside_them(regions, of):
    found = regions.sql(f"SELECT region, {of} AS s FROM t GROUP BY region")
    ends = {row["region"]: row["s"].interval() for row in found}
    assert ends["c"] == ends[None] == (0, 0)
    assert all(low < high for low, high in (ends["a"], ends["b"]))


@pytest.mark.parametrize(
    ("of", "possible"),
    [
        ("AVG(x)", (0, 10)),
        ("MEDIAN(x)", (0, 10)),
        ("MAX(x)", (0, 10)),
        ("VAR_POP(x)", (0, 25)),
        ("STDDEV(x)", (0, 5)),
    ],
)
def test_what_is_made_of_no_rows_is_unknown(regions, of, possible):
    found = regions.sql(f"SELECT region, {of} AS m FROM t GROUP BY region ORDER BY m")
    cells = {row["region"]: row["m"] for row in found}
    for key in ("c", None):
        assert math.isnan(cells[key].value) and cells[key].interval() == possible
        assert cells[key].note == "no row matches"
    assert all(math.isfinite(cells[key].value) for key in "ab")
    assert [row["region"] for row in found][2:] == ["c", None]  # as NULL, they come last


def test_a_quotient_by_a_public_0_is_unknown(regions):
    found = regions.sql("SELECT region, SUM(x) / COUNT(*) AS q FROM t GROUP BY region")
    cells = {row["region"]: row["q"].value for row in found}
    assert math.isnan(cells["c"]) and not math.isnan(cells["a"])


def test_the_count_beside_them_is_free():
    """Prices are those of the sums alone; under add-remove no group is empty for all to see."""
    schema = Schema(Category("region", ["a", "b"], public=True), Number("x", 0, 10), Flag("f"))
    table = pyarrow.table({"region": ["a"] * 9, "x": [1.0] * 9, "f": [True] * 9})
    for neighbours, paid in (("replace", [1, 2, 1]), ("add-remove", [1, 1, 1])):
        promise = Promise(epsilon=1, delta=1e-6, queries=1000, neighbours=neighbours)
        with Database.open(table, schema, promise, ":memory:") as database:
            prices = [
                database.quote_sql(f"SELECT region, {of} FROM t GROUP BY region").credits
                for of in ("SUM(x)", "MEDIAN(x)", "COUNT_IF(f)")
            ]
            assert prices == paid
            found = database.sql("SELECT region, SUM(x - 5) AS s FROM t GROUP BY region")
            empty = {row["region"]: row["s"].interval() for row in found}["b"]
            assert (empty == (0, 0)) == (neighbours == "replace")
