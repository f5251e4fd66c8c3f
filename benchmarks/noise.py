"""What a draw of noise costs, in CPU time of user and system: `python benchmarks/noise.py`."""

from __future__ import annotations

import time
from fractions import Fraction

from sulq.kernel.noise.laws import (
    CentredBinomial,
    DiscreteGaussian,
    DiscreteHuber,
    DiscreteLaplace,
    Law,
)
from sulq.kernel.noise.sampler import draw

LAWS: dict[str, Law] = {
    "laplace scale 10": DiscreteLaplace(Fraction(10)),
    "laplace scale 2^40/7": DiscreteLaplace(Fraction(2**40, 7)),
    "gaussian sigma 10^3": DiscreteGaussian(Fraction(10**6)),
    "gaussian sigma 42.2 * 2^24": DiscreteGaussian(Fraction(178479, 100) * 2**48),
    "gaussian sigma 2^40": DiscreteGaussian(Fraction(2**80)),
    "gaussian sigma 2^50": DiscreteGaussian(Fraction(2**100)),
    "huber s 10 c 20": DiscreteHuber(Fraction(10), Fraction(20)),
    "huber s 2^40 c 3 * 2^40": DiscreteHuber(Fraction(2**40), Fraction(3 * 2**40)),
    "binomial 7140 coins": CentredBinomial(7140),
    "binomial 7140 * 2^48 coins": CentredBinomial(7140 * 2**48),
}


def figures() -> list[tuple[str, float, str]]:
    """(name, value, unit): one draw alone, one draw among a thousand."""
    rows = []
    for name, law in LAWS.items():
        rows.append((f"{name}, alone", _microseconds(law, 1, 3000), "us"))
        rows.append((f"{name}, of 1000", _microseconds(law, 1000, 30), "us"))
    return rows


def _microseconds(law: Law, count: int, repeats: int) -> float:
    draw(law, count)
    start = time.process_time()
    for _ in range(repeats):
        draw(law, count)
    return (time.process_time() - start) / (repeats * count) * 1e6


if __name__ == "__main__":
    for name, value, unit in figures():
        print(f"{name:45} {value:10.2f} {unit}")
