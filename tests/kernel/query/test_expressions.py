"""Building expressions: what is refused, and what the limits are."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from sulq.answers.statistics import cdf, count, histogram, mean, quantiles, total
from sulq.errors import InvalidQuery
from sulq.kernel.query.expressions import Literal, Operation, col, hashed, lit, when


def test_floats_are_read_as_they_are_spelled() -> None:
    assert lit(0.1).value == Fraction(1, 10)  # type: ignore[attr-defined]
    assert lit(Decimal("0.3")).value == Fraction(3, 10)  # type: ignore[attr-defined]
    assert lit(np.float64(2.5)).value == Fraction(5, 2)  # type: ignore[attr-defined]
    assert lit(np.int64(7)).value == 7  # type: ignore[attr-defined]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), Decimal("NaN"), 2**63])
def test_numbers_that_are_not_finite_or_too_wide_are_refused(bad: object) -> None:
    with pytest.raises(InvalidQuery):
        col("a") + bad  # type: ignore[operator]


@pytest.mark.parametrize("bad", [b"bytes", [1], {"a": 1}, object(), "nul\x00", "\ud800"])
def test_what_is_not_a_value_is_refused(bad: object) -> None:
    with pytest.raises(InvalidQuery):
        lit(bad)  # type: ignore[arg-type]


def test_a_condition_has_no_python_truth_value() -> None:
    with pytest.raises(InvalidQuery, match="&"):
        bool(col("a") > 1)
    with pytest.raises(InvalidQuery):
        1 < col("a") < 3  # noqa: B015


@pytest.mark.slow
def test_long_chains_are_flat_and_long_ones_are_refused() -> None:
    """S4.26: the work of a row is bounded before it begins."""
    chain = sum((col("a") for _ in range(1_500)), lit(0))
    assert isinstance(chain, Operation)
    assert chain.depth == 2
    with pytest.raises(InvalidQuery, match="parts"):
        for _ in range(10_000):
            chain = chain + col("a")


def test_deep_nesting_is_refused_before_it_can_overflow() -> None:
    nested = col("a") > 1
    with pytest.raises(InvalidQuery, match="deep"):
        for _ in range(1_000):
            nested = ~nested


def test_dates_are_literals() -> None:
    literal = (col("born") >= datetime.date(1990, 1, 1)).operands[0]  # type: ignore[attr-defined]
    assert isinstance(literal, Literal)


@pytest.mark.parametrize(
    "build",
    [
        lambda: col(""),
        lambda: col(3),  # type: ignore[arg-type]
        lambda: total(3),  # type: ignore[arg-type]
        lambda: mean(None),  # type: ignore[arg-type]
        lambda: histogram(),
        lambda: histogram("a", "b", edges=[1, 2]),
        lambda: histogram("a", edges=[1]),
        lambda: histogram("a", edges="12"),  # type: ignore[arg-type]
        lambda: histogram("a", edges=[col("a"), 2]),
        lambda: cdf("a", edges=5),  # type: ignore[arg-type]
        lambda: quantiles("a", [1.5]),
        lambda: quantiles("a", []),
        lambda: quantiles("a", ["x"]),  # type: ignore[list-item]
        lambda: quantiles("a", 0.5),  # type: ignore[arg-type]
        lambda: count(where=[1]),  # type: ignore[arg-type]
        lambda: when(True),  # type: ignore[arg-type]
        lambda: col("a").isin([]),
        lambda: col("a").isin("abc"),
        lambda: hashed("id", -1),
        lambda: hashed("id", 1.5),  # type: ignore[arg-type]
    ],
)
def test_builders_refuse_nonsense(build: object) -> None:
    with pytest.raises(InvalidQuery):
        build()  # type: ignore[operator]


@pytest.mark.parametrize(
    "bad", [Decimal("1e900000000"), Decimal("1e-900000000"), Fraction(10**500), pd.NaT]
)
def test_literals_of_unusual_size_are_refused_at_once(bad: object) -> None:
    with pytest.raises(InvalidQuery):
        col("x") > bad  # type: ignore[operator]  # noqa: B015
