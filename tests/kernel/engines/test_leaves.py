"""The leaf's thresholds and inner range, against the leaf itself."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from sulq.kernel.engines.sql.leaves import Leaf, beyond, inner_range, quantise, threshold
from sulq.kernel.schema.program import Quantised

bounds = st.floats(-(2.0**53), 2.0**53)
scales = st.one_of(st.sampled_from([1.0, 0.1, 1 / 3, 2.0**24, 1e-9]), st.floats(1e-12, 1e12))


@given(bounds, bounds, scales, st.floats(0, 1), st.floats(allow_nan=False))
def test_a_threshold_splits_the_doubles_as_the_leaf_does(
    a: float, c: float, per_unit: float, share: float, x: float
) -> None:
    value = Quantised("x", min(a, c), max(a, c), per_unit)
    low, high = quantise(value, value.low), quantise(value, value.high)
    reached = low + 1 + int(share * (high - low - 1)) if high > low else None
    if reached is None:
        return
    cut = threshold(value, reached)
    for y in (x, cut, math.nextafter(cut, -math.inf), math.nextafter(cut, math.inf)):
        assert (quantise(value, y) >= reached) == (y >= cut)


@given(bounds, bounds, scales, st.integers(-(2**40), 2**40), st.integers(0, 2**40))
def test_clipping_changes_nothing_in_the_inner_range(
    a: float, c: float, per_unit: float, least: int, width: int
) -> None:
    value = Quantised("x", min(a, c), max(a, c), per_unit)
    low, high = quantise(value, value.low), quantise(value, value.high)
    least = max(low, min(least, high))
    most = min(high, least + width)
    if least == most:
        return
    first, last = inner_range(Leaf(value, least, most))
    for y in (first, last, (first + last) / 2):
        assert least <= math.floor(y * per_unit + 0.5) <= most
    outside = [(math.nextafter(first, -math.inf), least), (math.nextafter(last, math.inf), most)]
    for y, edge in outside:
        assert max(least, min(most, quantise(value, y))) == edge


@given(bounds, bounds, scales, st.integers(-(2**40), 2**40), st.integers(0, 2**40), st.floats(0, 1))
def test_a_little_beyond_an_end_the_formula_still_gives_the_end(
    a: float, c: float, per_unit: float, least: int, width: int, share: float
) -> None:
    value = Quantised("x", min(a, c), max(a, c), per_unit)
    low, high = quantise(value, value.low), quantise(value, value.high)
    least = max(low, min(least, high))
    leaf = Leaf(value, least, min(high, least + width))
    first, last = inner_range(leaf)
    for end, steps, part in ((first, leaf.least, -0.25), (last, leaf.most, 0.25)):
        far = beyond(leaf, end, steps, part)
        for y in (far, end + share * (far - end)):
            clipped = max(leaf.least, min(leaf.most, quantise(value, y)))
            if end != far:
                assert clipped == math.floor(y * per_unit + 0.5)


def test_the_bounds_are_in_the_quick_branch() -> None:
    leaf = Leaf(Quantised("x", 0.0, 500_000.0, 32.0), 0, 16_000_000)
    assert beyond(leaf, 0.0, 0, -0.25) < 0.0
    assert beyond(leaf, 500_000.0, 16_000_000, 0.25) > 500_000.0
