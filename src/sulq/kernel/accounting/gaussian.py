"""What a total mu of Gaussian answers means: (epsilon, delta) and the papers' tail statement.

All in 60-digit decimals, so that nothing cancels and tails of 1e-300 and less are exact to at
least 30 digits; results are then rounded to the safe side. Proofs: docs/proofs/accounting.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

Exact = int | float | Fraction
"""A number taken at its exact value (a float at its binary value)."""

CONTEXT = Context(prec=60, Emin=MIN_EMIN, Emax=MAX_EMAX)
SAFETY = Decimal("1e-30")
"""Relative error granted to every decimal result; the true one is below 1e-40 (proof page)."""

_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")
_SERIES_BELOW = 5  # the series loses 6 digits at 5; the fraction needs 170 levels there
_BITS = 40  # significant bits of an inverted mu, rounded down: 1e-12 of the noise


def decimal(value: Exact) -> Decimal:
    """`value` to 60 digits."""
    ratio = Fraction(value)
    return Decimal(ratio.numerator) / Decimal(ratio.denominator)


def rounded_up(value: Decimal) -> float:
    """A float that is at least the true value; never 0, for an underflow is not a zero."""
    safe = value * (1 + SAFETY)
    nearest = float(safe)
    return nearest if Decimal(nearest) >= safe else math.nextafter(nearest, math.inf)


def ratio_up(value: Decimal) -> Fraction:
    """A fraction with a short denominator that is at least the true value."""
    return Fraction(math.ceil(Fraction(value * (1 + SAFETY)) * 2**64), 2**64)


def _mills(x: Decimal) -> Decimal:
    """Q(x) / phi(x), the Mills ratio."""
    if x < 0:
        return (2 * _PI).sqrt() * (x * x / 2).exp() - _mills(-x)
    if x < _SERIES_BELOW:  # (1/2) / phi(x) - sum of x^(2k+1) / (2k+1)!!
        term = total = x
        odd = 1
        while term > total * Decimal("1e-60"):
            odd += 2
            term = term * x * x / odd
            total += term
        return (_PI / 2).sqrt() * (x * x / 2).exp() - total
    tail = Decimal(0)  # 1/(x + 1/(x + 2/(x + 3/(x + ...)))), 50 digits
    for level in range(10 + math.ceil(4000 / (x * x)), 0, -1):
        tail = level / (x + tail)
    return 1 / (x + tail)


def _density(x: Decimal) -> Decimal:
    return (-x * x / 2).exp() / (2 * _PI).sqrt()


def _hockey_stick(mu: Decimal, epsilon: Decimal) -> Decimal:
    """Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu), as phi(x) (M(x) - M(x + mu)). TB.1"""
    x = epsilon / mu - mu / 2
    return _density(x) * (_mills(x) - _mills(x + mu))


def _tail(mu: Decimal, epsilon: Decimal) -> Decimal:
    """Q((eps - mu^2/2) / mu). TB.2"""
    x = epsilon / mu - mu / 2
    return _density(x) * _mills(x)


Profile = Callable[[Decimal, Decimal], Decimal]


def _largest_mu(profile: Profile, epsilon: Exact, delta: Exact) -> Fraction:
    """The largest mu of 40 bits whose profile at epsilon is at most delta; both rise with mu."""
    with localcontext(CONTEXT):
        loss = decimal(epsilon)
        allowed = decimal(delta) * (1 - SAFETY)

        def kept(mu: Fraction) -> bool:
            return profile(decimal(mu), loss) * (1 + SAFETY) <= allowed

        power = Fraction(1)
        while kept(2 * power):
            power *= 2
        while not kept(power):
            power /= 2
        step = power / (1 << _BITS)
        low, high = 1 << _BITS, 2 << _BITS
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if kept(middle * step) else (low, middle)
        return low * step


def gaussian_delta(mu: Exact, epsilon: Exact) -> float:
    """The delta of a total mu at epsilon: upper bound. delta = Phi(..) - e^eps Phi(..), TB.1"""
    if mu == 0:
        return 0.0
    with localcontext(CONTEXT):
        return min(1.0, rounded_up(_hockey_stick(decimal(mu), decimal(epsilon))))


@lru_cache(maxsize=256)
def gaussian_mu(epsilon: Exact, delta: Exact) -> Fraction:
    """The largest mu that keeps (epsilon, delta), 0 < delta < 1: lower bound. TB.1"""
    return _largest_mu(_hockey_stick, epsilon, delta)


def gaussian_epsilon(mu: Exact, delta: Exact) -> float:
    """The smallest epsilon that a total mu keeps at delta: upper bound. TB.1"""
    low, high = 0.0, 1.0
    if mu == 0 or gaussian_delta(mu, 0) <= delta:
        return 0.0
    while gaussian_delta(mu, high) > delta:
        low, high = high, 2 * high
    while high - low > 1e-12 * high and low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if gaussian_delta(mu, middle) <= delta else (middle, high)
    return high


def tail_delta(mu: Exact, epsilon: Exact) -> float:
    """Pr[the confidence in anything about one row rises by more than epsilon]: upper bound.

    Two-point beliefs; larger than `gaussian_delta` and another guarantee. TB.2
    """
    if mu == 0:
        return 0.0
    with localcontext(CONTEXT):
        return min(1.0, rounded_up(_tail(decimal(mu), decimal(epsilon))))


@lru_cache(maxsize=256)
def tail_mu(epsilon: Exact, delta: Exact) -> Fraction:
    """The largest mu with tail_delta(mu, epsilon) <= delta: lower bound on
    -z + sqrt(z^2 + 2 epsilon), z = Q^-1(delta). TB.2"""
    return _largest_mu(_tail, epsilon, delta)


def pure_mu(epsilon: Exact) -> Fraction:
    """mu = 2 Phi^-1(e^eps / (1 + e^eps)), rounded up: an epsilon-DP answer is mu-GDP. M.4"""
    with localcontext(CONTEXT):
        wrong = 1 / (1 + decimal(epsilon).exp())  # Q(mu/2) must not exceed this

        def enough(mu: Fraction) -> bool:
            half = decimal(mu) / 2
            return _density(half) * _mills(half) * (1 + SAFETY) <= wrong * (1 - SAFETY)

        high = Fraction(1, 2**20)
        while not enough(high):
            high *= 2
        low = Fraction(0)
        while high - low > high / 2**_BITS:
            middle = (low + high) / 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high


@lru_cache(maxsize=256)
def pure_epsilon(mu: Exact) -> Fraction:
    """The largest epsilon with 2 Phi^-1(e^eps / (1 + e^eps)) <= mu, rounded down. M.4

    eps = log((1 - w) / w) with w = Q(mu/2).
    """
    with localcontext(CONTEXT):
        half = decimal(mu) / 2
        wrong = _density(half) * _mills(half) * (1 + SAFETY)
        if wrong >= Decimal("0.5"):
            return Fraction(0)
        exact = Fraction(((1 - wrong) / wrong).ln() * (1 - SAFETY))
    bits = _BITS + exact.denominator.bit_length() - exact.numerator.bit_length()
    step = Fraction(1, 2) ** bits
    return exact // step * step


@lru_cache(maxsize=256)
def tail_quantile(delta: Exact) -> Fraction:
    """A z with Q(z) <= delta, 0 < delta < 1/2: the smallest of 40 bits, rounded up."""
    with localcontext(CONTEXT):
        allowed = decimal(delta) * (1 - SAFETY)

        def enough(z: Fraction) -> bool:
            x = decimal(z)
            return _density(x) * _mills(x) * (1 + SAFETY) <= allowed

        low, high = Fraction(0), Fraction(1)
        while not enough(high):
            low, high = high, 2 * high
        while high - low > high / 2**_BITS:
            middle = (low + high) / 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high
