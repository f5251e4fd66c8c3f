"""The one-sided law of a noisy choice. Statistical false alarms: 1e-6 per test."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import pytest
from scipy.stats import binom

from sulq.errors import InvalidQuery
from sulq.kernel.noise.laws import Geometric
from sulq.kernel.noise.sampler import draw_one_sided

FALSE_ALARM = 1e-6
SCALES = [Fraction(1, 3), Fraction(1), Fraction(7, 3), Fraction(40)]


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_draws_follow_the_law(scale: Fraction) -> None:
    """Each cell and each tail by an exact binomial test, 1e-6 in all (M.3)."""
    law, n = Geometric(scale), 50_000
    draws = draw_one_sided(law, n)
    seen = Counter(draws)
    assert min(draws) >= 0
    tests: list[tuple[int, float]] = []
    t, left = 0, n
    while n * law.at_least(t) >= 5:
        tests += [(seen[t], law.pmf(t)), (left, law.at_least(t))]
        left -= seen[t]
        t += 1
    tests.append((left, law.at_least(t)))
    for hits, chance in tests:
        rare = min(binom.cdf(hits, n, chance), binom.sf(hits - 1, n, chance))
        assert rare > FALSE_ALARM / (2 * len(tests)), (hits, n * chance)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_the_law_falls_by_the_same_share_each_step(scale: Fraction) -> None:
    law = Geometric(scale)
    for t in range(20):
        assert math.isclose(law.pmf(t + 1) / law.pmf(t), math.exp(-1 / scale), rel_tol=1e-12)
        assert math.isclose(law.at_least(t) - law.at_least(t + 1), law.pmf(t), rel_tol=1e-9)
    assert law.pmf(-1) == 0 and law.at_least(-5) == 1


@pytest.mark.parametrize("scale", [0.5, Fraction(0), Fraction(-1), Fraction(2**129)])
def test_scales_are_exact_and_positive(scale: Fraction) -> None:
    with pytest.raises(InvalidQuery, match=r"scale|more noise than can be drawn"):
        Geometric(scale)


def test_the_law_is_spelled_exactly() -> None:
    assert Geometric(Fraction(7, 3)).to_json() == {"law": "geometric", "scale": "7/3"}
