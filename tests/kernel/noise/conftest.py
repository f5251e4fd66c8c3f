"""One statistical yardstick for every sampler: draws against the exact pmf of their law."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from scipy.stats import binom, chi2

from sulq.kernel.noise.laws import Law

FALSE_ALARM = 1e-6
SMALLEST_EXPECTED = 50.0  # cells are pooled until the chi-square law is trustworthy


def _assert_follows(draws: Sequence[int], law: Law) -> None:
    """An exact binomial test per cell (5e-7 in all) and chi-square over pooled cells: 1e-6.

    Where the chi-square law says 2.5e-7, Pearson's statistic of cells as small as here exceeds it
    with 4.7e-7 at most (importance sampling; few small cells beside large ones are the worst).
    """
    n = len(draws)
    counts = Counter(draws)
    reach = max(abs(value) for value in draws) + 1
    cells: list[tuple[int, float]] = []
    beyond = 1 - math.fsum(law.pmf(t) for t in range(-reach, reach + 1))
    # `tail` may be an upper bound (S0.4, many coins): near, never below, wherever the draws end.
    assert beyond - 1e-11 <= law.tail(reach) <= 1.01 * beyond + 1e-11
    seen, chance = 0, beyond / 2
    for t in range(-reach, reach + 1):
        seen += counts[t]
        chance += law.pmf(t)
        if chance * n >= SMALLEST_EXPECTED:
            cells.append((seen, chance))
            seen, chance = 0, 0.0
    cells.append((seen, max(chance + beyond / 2, 1e-12)))
    assert sum(seen for seen, _ in cells) == n
    for seen, chance in cells:
        rare = min(binom.cdf(seen, n, chance), binom.sf(seen - 1, n, chance))
        assert rare > FALSE_ALARM / (4 * len(cells)), (law, seen, chance * n)
    pooled = [*cells[:-2], tuple(map(sum, zip(*cells[-2:], strict=True)))]
    statistic = sum((seen - n * chance) ** 2 / (n * chance) for seen, chance in pooled)
    assert statistic < chi2.isf(FALSE_ALARM / 4, len(pooled) - 1), (law, statistic, len(pooled))


@pytest.fixture
def assert_follows() -> Callable[[Sequence[int], Law], None]:
    return _assert_follows
