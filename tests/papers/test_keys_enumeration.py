"""M.1 by enumeration: every pair of neighbouring tiny tables, every answer, the noise's exact law.

What is compared is the hockey-stick distance of all that is seen (which keys, their noisy counts,
the noisy total) with that of the plain noisy counts on keys both tables have, plus the extra delta.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import cache, reduce
from itertools import combinations_with_replacement

import numpy as np
import pytest

from sulq.kernel.accounting.mechanisms import beyond
from sulq.kernel.noise.laws import DiscreteGaussian

KEYS = "abc"
LAW = DiscreteGaussian(Fraction(4))
REACH = 15  # P(|N| > 15) < 1e-13
EACH = Fraction(1, 50)
EPSILONS = [0.0, 0.1, 0.5, 1.0, 2.0, 4.0]

Pair = tuple[np.ndarray, np.ndarray]


@cache
def noisy(count: int, low: int, high: int) -> np.ndarray:
    """The chance of each noisy count from low to high."""
    return np.array([LAW.pmf(value - count) for value in range(low, high + 1)])


@cache
def shown(count: int, threshold: int) -> np.ndarray:
    """Held back, then each noisy count from the threshold on; a key that does not occur: held."""
    end = threshold + 12  # above the largest count by 9 spreads
    if count == 0:
        return np.array([1.0] + [0.0] * (end - threshold + 1))
    seen = noisy(count, threshold, end)
    return np.array([1 - seen.sum(), *seen])


def hockey_sticks(pairs: list[Pair]) -> list[float]:
    """sup over events of P - e^eps Q at each epsilon, for independent coordinates."""
    p, q = (
        reduce(np.multiply.outer, [pair[side] for pair in pairs], np.array(1.0)) for side in (0, 1)
    )
    return [float(np.maximum(p - np.exp(epsilon) * q, 0).sum()) for epsilon in EPSILONS]


def distances(one: Counter[str], two: Counter[str], threshold: int) -> list[tuple[float, float]]:
    """Of what is seen, and of plain noisy counts on common keys; at each epsilon."""
    changed = [key for key in KEYS if one[key] != two[key]]
    sums = one.total(), two.total()
    ends = min(sums) - REACH, max(sums) + REACH
    total = (noisy(sums[0], *ends), noisy(sums[1], *ends))
    seen: list[Pair] = [(shown(one[k], threshold), shown(two[k], threshold)) for k in changed]
    plain: list[Pair] = []
    for key in changed:
        if one[key] and two[key]:
            low, high = min(one[key], two[key]) - REACH, max(one[key], two[key]) + REACH
            plain.append((noisy(one[key], low, high), noisy(two[key], low, high)))
    if sums[0] == sums[1]:  # the total tells nothing
        return list(zip(hockey_sticks(seen), hockey_sticks(plain), strict=True))
    return list(zip(hockey_sticks([*seen, total]), hockey_sticks([*plain, total]), strict=True))


def people(rows_each: int) -> list[str]:
    """All a person can have: up to so many keys, also none (no key, or outside S)."""
    return [
        "".join(rows)
        for size in range(rows_each + 1)
        for rows in combinations_with_replacement(KEYS, size)
    ]


@pytest.mark.parametrize("rows_each", [1, 2])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_m1_every_pair_of_neighbours_is_within_the_price(rows_each: int, neighbours: str) -> None:
    threshold = rows_each + beyond(LAW.sigma_squared, EACH)
    extra = float(EACH) * rows_each * (2 if neighbours == "replace" else 1)
    persons = people(rows_each)
    needed = 0.0
    for others in ("", "aab") if rows_each == 2 else ("", "a", "aab", "abc"):
        for before in persons:
            for after in persons if neighbours == "replace" else [""]:
                one, two = Counter(others + before), Counter(others + after)
                for pair in ((one, two), (two, one)):
                    for seen, plain in distances(*pair, threshold):
                        assert seen <= plain + extra + 1e-12
                        needed = max(needed, seen - plain)
    alone = LAW.tail(beyond(LAW.sigma_squared, EACH) - 1) / 2
    assert needed > 0.9 * alone  # the extra delta is not for nothing


def test_m1_a_threshold_for_one_row_is_too_low_for_two() -> None:
    """A person with two rows on a key of their own: tau must leave room for both."""
    alone = Counter("cc")
    low = 1 + beyond(LAW.sigma_squared, EACH)
    right = 2 + beyond(LAW.sigma_squared, EACH)
    chance = {tau: 1 - shown(alone["c"], tau)[0] for tau in (low, right)}
    assert chance[right] <= float(EACH) < 2 * chance[low]


@pytest.mark.parametrize(
    "variance", [Fraction(1), Fraction(50, 3), Fraction(10**4), Fraction(2**40)]
)
@pytest.mark.parametrize("delta", [Fraction(1, 10), Fraction(1, 10**6), Fraction(1, 10**11)])
def test_m1_the_threshold_keeps_its_delta_and_is_hardly_above(
    variance: Fraction, delta: Fraction
) -> None:
    law, at = DiscreteGaussian(variance), beyond(variance, delta)
    assert law.tail(at - 1) / 2 <= float(delta) * (1 + 1e-9)
    spare = 3 + int(law.standard_deviation() / 10_000)
    assert law.tail(at - 1 - spare) / 2 > float(delta)


def test_m1_joint_sensitivity_of_counts_and_total() -> None:
    """2 m^2, reached, for both kinds of neighbours."""
    for rows_each in (1, 2, 3):
        for neighbours in ("replace", "add-remove"):
            most = 0
            for before in people(rows_each):
                for after in people(rows_each) if neighbours == "replace" else [""]:
                    one, two = Counter(before), Counter(after)
                    moved = [(one[key] - two[key]) ** 2 for key in KEYS]
                    most = max(most, sum(moved) + (one.total() - two.total()) ** 2)
            assert most == 2 * rows_each**2
