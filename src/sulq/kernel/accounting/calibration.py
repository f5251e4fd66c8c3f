"""From a promise to the noise that keeps it, and what the kept promise means.

Proofs: docs/proofs/accounting.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache

from sulq.kernel.accounting.gaussian import gaussian_mu, tail_delta
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.accounting.pld import FINENESS, Law, PrivacyLoss, loss_of
from sulq.kernel.noise.intervals import rounded_spread, z_of
from sulq.kernel.noise.laws import CentredBinomial, DiscreteHuber, DiscreteLaplace
from sulq.kernel.schema.promise import Promise

SET_ASIDE = Fraction(1, 1000)
"""The share of delta kept for the sampler's distance to a rounded Gaussian (TB.8)."""
VARIANCE_STEPS = 2**20
SPREAD_STEPS = 2**10
TOLERANCE_BITS = 14
KNEES = tuple(Fraction(quarters, 4) for quarters in (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20))
"""Where the stitched law may turn from Gaussian to Laplace, in spreads (S4.15)."""
MIDDLE_KNEE = KNEES.index(2)
NOTHING = Loss.zero()


@dataclass(frozen=True, slots=True)
class Calibration:
    """The noise of one unit question: sensitivity 1, one credit.

    `unit_variance` holds for every noise (Gaussian: the parameter R; others: an upper bound).
    `unit_scale` is Laplace's, else 0; `unit_law` is the coins' or the stitched law, on whole
    numbers. `slack_cap` is the delta that sampling may use up (TB.8). `timing` is what every
    question pays beside its noise, where replies are randomly delayed (S4.5).
    """

    promise: Promise
    credits: int
    unit_variance: Fraction
    unit_scale: Fraction
    unit_law: CentredBinomial | DiscreteHuber | None
    slack_cap: Fraction
    method: str
    timing: Loss = NOTHING

    @property
    def unit_standard_deviation(self) -> float:
        """Of a count that costs one credit, as it is told."""
        return self.count_error(Fraction(1))

    def count_error(self, credits: Fraction) -> float:
        """The standard deviation of a count that costs so many credits. S4.1, S4.13, S2.6"""
        if self.promise.lattice == "whole":
            return DiscreteLaplace(self.unit_scale / credits).standard_deviation()
        if self.promise.noise == "laplace":
            return rounded_spread(float(self.unit_scale / credits))
        return math.sqrt(self.unit_variance / credits)

    @property
    def unit_bar(self) -> float:
        """The half-width that 95 of 100 counts of one credit keep."""
        return self.count_bar(Fraction(1))

    def count_bar(self, credits: Fraction) -> float:
        """The same of a count that costs so many credits, by the law that is drawn. S2.6"""
        if self.unit_law is not None:  # of one size
            return float(self.unit_law.half_width(0.95))
        if self.promise.lattice == "whole":
            return float(DiscreteLaplace(self.unit_scale / credits).half_width(0.95))
        if self.promise.noise == "laplace":
            return float(self.unit_scale / credits) * math.log(20)  # P(|N| > h) = e^(-h/b)
        return z_of(0.95) * math.sqrt(self.unit_variance / credits)

    @property
    def mu_squared(self) -> Fraction | None:
        """Gaussian noise: the whole budget as credits / R."""
        return self.credits / self.unit_variance if self.promise.noise == "gaussian" else None


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the promise says once all of it is spent; never a figure "so far" (G.1).

    `tail` bounds Pr[confidence in one of two candidate values of a row rises by more than
    epsilon]; `tail_any_belief` the same for arbitrary beliefs (None where nothing is proved).
    It is another guarantee than delta (TB.2). `hard_cap` is a rise that never happens.
    """

    epsilon: Fraction
    delta: Fraction
    tail: float
    tail_any_belief: float | None
    mu_squared: Fraction | None
    rho: Fraction | None
    hard_cap: Fraction | None


@lru_cache(maxsize=64)
def calibrate(promise: Promise) -> Calibration:
    """The least noise that keeps `promise` for `promise.credits` unit questions."""
    credits, epsilon, delta = promise.credits, promise.epsilon, promise.delta
    zero = Fraction(0)
    match promise.noise:
        case "gaussian":
            mu = gaussian_mu(epsilon, delta * (1 - SET_ASIDE))
            variance = _up(credits / mu**2, VARIANCE_STEPS)
            return Calibration(
                promise,
                credits,
                variance,
                zero,
                None,
                delta * SET_ASIDE,
                "analytic Gaussian, with delta/1000 set aside for sampling (TB.1, TB.8)",
            )
        case "laplace":
            scale = credits / epsilon  # S4.13
            return Calibration(
                promise, credits, 2 * scale**2, scale, None, zero, "pure Laplace (S4.13)"
            )
        case "binomial":
            coins = CentredBinomial(binomial_coins(credits, epsilon, delta))
            return Calibration(
                promise,
                credits,
                Fraction(coins.coins, 4),
                zero,
                coins,
                zero,
                "fair coins, exact T-fold account of the discrete law (S0.5)",
            )
    law = huber_law(credits, epsilon, delta)
    variance = _up(Fraction(law.variance()) * (1 + Fraction(1, 10**9)), VARIANCE_STEPS)
    return Calibration(
        promise,
        credits,
        variance,
        zero,
        law,
        zero,
        "Gaussian stitched to Laplace, exact T-fold account of the discrete law (S4.14)",
    )


def meaning(calibration: Calibration) -> Meaning:
    """The promise as (epsilon, delta), as a tail statement, and as mu^2 and rho, at the cap."""
    promise, total = calibration.promise, calibration.mu_squared
    epsilon = promise.epsilon
    if total is not None:
        tail = tail_delta(_root_up(total), epsilon)
        rho = total / 2
        # absence is one step from every value, and values are two steps apart
        drift = 3 if promise.neighbours == "add-remove" else 1
        return Meaning(
            epsilon, promise.delta, tail, _any_belief(rho, epsilon, drift), total, rho, None
        )
    law = calibration.unit_law
    if law is None:
        return Meaning(epsilon, promise.delta, 0.0, 0.0, None, None, epsilon)
    loss = answer_loss(law, calibration.credits)
    cap = None
    if isinstance(law, DiscreteHuber):
        cap = calibration.credits * law.knee / law.spread**2  # S4.14: T c / s^2
    capped = cap is not None and cap <= epsilon
    tail = 0.0 if capped else _tail_of(loss, float(epsilon), calibration.credits)
    return Meaning(epsilon, promise.delta, tail, None, None, None, cap)


def answer_loss(law: Law, times: int, shift: int = 1) -> PrivacyLoss:
    """The loss of one answer on a grid fit for `times` of them: coarser for very many."""
    fineness = max(32, min(FINENESS, int(FINENESS * math.sqrt(100 / times))))
    return loss_of(law, shift, fineness=fineness)


@lru_cache(maxsize=64)
def binomial_coins(queries: int, epsilon: Fraction, delta: Fraction) -> int:
    """The smallest even number of coins that keeps (epsilon, delta) for `queries` counts. S0.5

    Beyond 32,768 coins: at most 2^-14 above the smallest.
    """
    loss, allowed = _down(epsilon), _down(delta)

    def excess(pairs: int) -> float:
        return _log_excess(CentredBinomial(2 * pairs), queries, loss, allowed)

    guess = max(1, int(2 * queries / gaussian_mu(epsilon, delta) ** 2))
    return 2 * _smallest(excess, guess, max(1, guess >> TOLERANCE_BITS))


@lru_cache(maxsize=64)
def huber_law(queries: int, epsilon: Fraction, delta: Fraction) -> DiscreteHuber:
    """The stitched law of least variance that keeps (epsilon, delta) for `queries` counts. S4.15

    The law returned has been verified; the walk over knees only makes it good.
    """

    @cache
    def best_at(knee: int) -> tuple[float, DiscreteHuber]:
        law = _huber_at(KNEES[knee], queries, epsilon, delta)
        return law.variance(), law

    here = MIDDLE_KNEE
    for direction in (-1, 1):
        while 0 <= here + direction < len(KNEES):
            if best_at(here + direction)[0] >= best_at(here)[0]:
                break
            here += direction
    return best_at(here)[1]


def _huber_at(knee: Fraction, queries: int, epsilon: Fraction, delta: Fraction) -> DiscreteHuber:
    """The least spread, a multiple of 1/1024, whose law with that knee (in spreads) is kept."""
    loss, allowed = _down(epsilon), _down(delta)

    def law(steps: int) -> DiscreteHuber:
        spread = Fraction(steps, SPREAD_STEPS)
        return DiscreteHuber(spread, knee * spread)

    def excess(steps: int) -> float:
        return _log_excess(law(steps), queries, loss, allowed)

    gaussian = math.sqrt(queries) / gaussian_mu(epsilon, delta)
    guess = max(1, int(SPREAD_STEPS * gaussian))
    return law(_smallest(excess, guess, max(1, guess >> TOLERANCE_BITS)))


def _smallest(excess: Callable[[int], float], guess: int, tolerance: int) -> int:
    """A whole number k >= 1 with excess(k) <= 0, at most `tolerance` above one without.

    `excess` falls smoothly: straight lines through the bracket find the root from both sides.
    """
    reach = max(tolerance, guess >> 7)
    low, high = guess, guess
    at_low = at_high = excess(guess)
    while at_high > 0:
        low, at_low = high, at_high
        high, reach = high + reach, 2 * reach
        at_high = excess(high)
    while at_low <= 0 and low > 0:
        high, at_high = low, at_low
        low, reach = max(0, low - reach), 2 * reach
        at_low = excess(low) if low else math.inf
    turn = 0
    while high - low > tolerance:
        turn += 1
        middle = (low + high) // 2
        if turn % 4 and math.isfinite(at_low) and at_high > -20:
            root = low + (high - low) * at_low / (at_low - at_high)
            nudge = tolerance if turn % 2 else -tolerance
            middle = min(high - 1, max(low + 1, round(root + nudge / 2)))
        at_middle = excess(middle)
        if at_middle <= 0:
            high, at_high = middle, at_middle
        else:
            low, at_low = middle, at_middle
    return high


def _log_excess(law: Law, queries: int, epsilon: float, delta: float) -> float:
    """log of (delta spent / delta allowed)."""
    spent = answer_loss(law, queries).delta(epsilon, queries)
    return math.log(spent / delta) if spent > 0 else -math.inf


def _any_belief(rho: Fraction, epsilon: Fraction, drift: int) -> float:
    """Pr[confidence gain > epsilon] <= e^{s(s+drift) rho - s eps}, s >= 1, any beliefs. S4.1"""
    order = max(Fraction(1), (epsilon / rho - drift) / 2)
    exponent = float(order * ((order + drift) * rho - epsilon))
    return min(1.0, math.exp(min(0.0, exponent)) * 1.001)


def _tail_of(loss: PrivacyLoss, epsilon: float, times: int) -> float:
    """Pr[loss > eps] <= delta(e) / (1 - e^{e - eps}) for every e < eps; the best of a few."""
    below = [epsilon * share / 16 for share in range(8, 16)]
    return min(1.0, *(loss.delta(e, times) / -math.expm1(e - epsilon) for e in below))


def _up(value: Fraction, steps: int) -> Fraction:
    return Fraction(math.ceil(value * steps), steps)


def _down(value: Fraction) -> float:
    """The largest float that is at most `value`."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, 0.0)


def _root_up(value: Fraction) -> Fraction:
    """At least sqrt(value), by less than 2^-64 of it."""
    bits = 2 * max(0, 70 + (value.denominator.bit_length() - value.numerator.bit_length()) // 2)
    return Fraction(math.isqrt(math.ceil(value * 2**bits)) + 1, 2 ** (bits // 2))
