"""Bugs that others had: rows kept by a column that was relabelled, a clip on one of two sides."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from sulq import Category, Database, Number, Promise, Schema, col, count, outer, total, when
from sulq.kernel.query.vectors import columns

LOUD = Promise(1, "1e-6", queries=10**4)


def moved(one: Database, two: Database, question: object) -> Fraction:
    """By how much the exact sums of two tables differ, as a part of what was proved, squared."""
    bound = one.bind(question)
    sums = [db.engine.exact_sums(db.bind(question).sums) for db in (one, two)]
    units = [term.unit for term in bound.terms] * (len(sums[0]) // len(bound.terms))
    square = sum(
        Fraction(a - b, unit) ** 2 for a, b, unit in zip(*sums, units, strict=True) if unit
    )
    return square / max(reach.l2_squared for reach, _ in bound.reach)


@pytest.mark.parametrize("relabelled", [False, True], ids=["as it is", "by CASE"])
def test_rows_of_a_person_are_cut_whatever_a_question_calls_them(relabelled: bool) -> None:
    """opendp#2949: a cut by rows per group that a new group column outlived. Here rows are cut
    once, when the table is opened, before any question names a column."""
    schema = Schema(
        Category("city", ["a", "b", "c", "d"]),
        Number("x", 0, 10, step=1),
        unit="who",
        max_rows=2,
    )
    rest = pd.DataFrame({"who": range(50), "city": ["a", "b"] * 25, "x": [5] * 50})
    many = pd.DataFrame({"who": [99] * 8, "city": ["a", "b", "c", "d"] * 2, "x": [10] * 8})
    promise = Promise(1, "1e-6", queries=10**4, neighbours="add-remove")
    tables = [
        Database.open(rows, schema, promise, ":memory:", publish=True)
        for rows in (rest, pd.concat([rest, many], ignore_index=True))
    ]
    label = when(col("city").isin(["a", "b", "c", "d"])).then(1).otherwise(0)
    value = label if relabelled else col("x")
    for question in (count(where=label == 1), total(value)):
        share = moved(*tables, question)
        assert Fraction(1, 10) < share <= 1
    for db in tables:
        db.close()


def test_both_sides_of_a_product_are_cut() -> None:
    """smartnoise-sdk#622: covariances clipped one copy of a column and multiplied by the other."""
    schema = Schema(Number("x", 0, 1), Number("y", -1, 1))
    rows = pd.DataFrame({"x": np.full(40, 0.5), "y": np.full(40, 0.5)})
    wild = rows.copy()
    wild.loc[7] = [1e300, -np.inf]
    one, two = (
        Database.open(each, schema, LOUD, ":memory:", publish=True) for each in (rows, wild)
    )
    for left, right in (("x", "y"), ("y", "x"), ("x", "x"), ("y", "y")):
        assert moved(one, two, outer(columns([left]), columns([right]))) <= 1
    one.close()
    two.close()
