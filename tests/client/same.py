"""Two answers are one: every field that a user can see."""

from __future__ import annotations

from typing import Any

import numpy as np

from sulq import Answer

LEVELS = (0.5, 0.8, 0.95, 0.999)
EXACT = ("kind", "axes", "credits", "note", "question", "laws", "promise", "guarantee", "terms")


def equal(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(np.array_equal(a, b))


def assert_same(here: Answer, there: Answer) -> None:
    for name in (*EXACT, "sources", "clipped", "values", "keys"):
        assert getattr(here, name) == getattr(there, name), name
    assert equal(here.value, there.value)
    assert np.array_equal(here.standard_error, there.standard_error)
    for level in LEVELS:
        for one, other in zip(here.interval(level), there.interval(level), strict=True):
            assert equal(one, other), level
    assert here.explain() == there.explain()
    assert (str(here), repr(here)) == (str(there), repr(there))
    assert here.rows() == there.rows()
    assert equal(here.nonnegative().value, there.nonnegative().value)
    if here.kind in ("distribution", "quantiles"):
        for one, other in zip(
            np.ravel(here.reading.distributions), np.ravel(there.reading.distributions), strict=True
        ):
            assert np.array_equal(one.below, other.below)
            assert np.array_equal(one.variance, other.variance)
    if here.receipt is not None:
        assert here.receipt.to_json() == there.receipt.to_json()
