"""Groups that are empty for all to see are exactly 0."""

from __future__ import annotations

import pyarrow

from sulq import Category, Database, Number, Promise, Schema

GAUSSIAN = Promise(epsilon=1, delta=1e-6, queries=1000)


def test_sums_of_a_group_that_is_empty_for_all_to_see_are_0():
    schema = Schema(Category("region", ["a", "b", "c"], public=True), Number("x", 0, 10, step=1))
    table = pyarrow.table({"region": ["a", "b"] * 50, "x": [1] * 100})
    with Database.open(table, schema, GAUSSIAN, ":memory:") as database:
        found = database.sql(
            "SELECT region, COUNT(*) AS n, SUM(x) AS s, COUNT_IF(x > 3) AS m FROM t GROUP BY region"
        )
    ends = {row["region"]: (row["s"].interval(), row["m"].interval()) for row in found}
    assert ends["c"] == ends[None] == ((0, 0), (0, 0))
    assert all(low < high for key in "ab" for low, high in ends[key])
