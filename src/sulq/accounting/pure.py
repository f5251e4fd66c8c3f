"""Pure mechanisms in either currency: the alert (sparse vector) and the noisy choice.

An epsilon-private answer costs epsilon b_unit credits of a Laplace promise (S4.13), and mu^2 R_unit
credits of a Gaussian one, mu = 2 Phi^-1(e^eps / (1 + e^eps)) (M.4). Nothing here reads data.
Proofs: docs/proofs/alerts.md, docs/proofs/choosing.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from sulq.accounting.calibration import Calibration
from sulq.accounting.gaussian import pure_epsilon, pure_mu
from sulq.accounting.losses import Loss
from sulq.errors import InvalidQuery
from sulq.noise.distributions import DiscreteLaplace
from sulq.noise.one_sided import Geometric

MOST_FIRINGS = 1_000


def epsilon_for(credits: Fraction, calibration: Calibration) -> Fraction:
    """The largest epsilon that so many credits pay for, rounded down."""
    match calibration.promise.noise:
        case "laplace":
            epsilon = credits / calibration.unit_scale  # S4.13
        case "gaussian":
            epsilon = pure_epsilon(_root_down(credits / calibration.unit_variance))  # M.4
        case noise:
            raise InvalidQuery(
                f"{noise} noise answers a fixed number of counts and nothing else (G.1.5);"
                " for alerts and choices publish with gaussian or laplace noise"
            )
    if epsilon < Fraction(1, 2**60):
        raise InvalidQuery(f"{credits} credits are too few to say anything; give more")
    return epsilon


def credits_for(epsilon: Fraction, calibration: Calibration) -> Fraction:
    """What an epsilon-private answer costs, rounded up."""
    if calibration.promise.noise == "laplace":
        return epsilon * calibration.unit_scale  # S4.13
    return pure_mu(epsilon) ** 2 * calibration.unit_variance  # M.4


def pure_losses(
    widths: Iterable[tuple[Fraction, tuple[int, ...]]],
    credits: Fraction,
    times: int,
    calibration: Calibration,
) -> tuple[tuple[Loss, tuple[int, ...]], ...]:
    """The loss of each account, `times` answers for `credits` in all.

    An account whose rows move the answer by a part of the largest width loses that part of
    epsilon; accounts that cannot move it lose nothing.
    """
    listed = [(width, accounts) for width, accounts in widths if width]
    most = max(width for width, _ in listed)
    epsilon = epsilon_for(credits / times, calibration)
    losses = []
    for width, accounts in listed:
        due = credits
        if width < most:
            due = min(credits, times * credits_for(epsilon * width / most, calibration))
        losses.append((Loss.of(due), accounts))
    return tuple(losses)


def above_threshold(
    width: Fraction, epsilon: Fraction, firings: int
) -> tuple[DiscreteLaplace, DiscreteLaplace]:
    """The noise of the threshold and of each comparison: Lap(D/e1), Lap(2 c D/e2). M.2

    e1 + e2 = epsilon, e2/e1 near (2c)^(2/3), where the two together vary least.
    """
    ratio = Fraction(round((2 * firings) ** (2 / 3) * 64), 64)
    first = epsilon / (1 + ratio)
    second = epsilon - first
    return DiscreteLaplace(width / first), DiscreteLaplace(2 * firings * width / second)


def noisy_choice(width: Fraction, epsilon: Fraction, *, one_way: bool) -> Geometric:
    """One-sided noise of scale 2 D/eps; D/eps if a row moves all scores the same way. M.3"""
    return Geometric((1 if one_way else 2) * width / epsilon)


def _root_down(value: Fraction) -> Fraction:
    """At most sqrt(value), by less than 2^-60 of it."""
    bits = 2 * max(0, 70 + (value.denominator.bit_length() - value.numerator.bit_length()) // 2)
    return Fraction(math.isqrt(math.floor(value * 2**bits)), 2 ** (bits // 2))
