"""Pure mechanisms in either currency: the alert (sparse vector) and the noisy choice.

An epsilon-private answer costs epsilon b_unit credits of a Laplace promise (S4.13), and mu^2 R_unit
credits of a Gaussian one, mu = 2 Phi^-1(e^eps / (1 + e^eps)) (M.4). Nothing here reads data.
Proofs: docs/proofs/alerts.md, docs/proofs/choosing.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

from sulq.errors import InvalidQuery, Refused
from sulq.kernel.accounting.calibration import Calibration
from sulq.kernel.accounting.gaussian import Exact, pure_epsilon, pure_mu, tail_quantile
from sulq.kernel.accounting.loss import Loss, coupling_factor, coupling_slack
from sulq.kernel.noise.laws import (
    LARGEST,
    DiscreteGaussian,
    DiscreteLaplace,
    Geometric,
    Law,
    NoNoise,
)

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


# What undeclared keys cost: the threshold, and the delta it is paid with. M.1
#
# Noise on a key that only one person has must not carry it over the threshold, but with chance
# delta_t. Nothing here reads data. Proof: docs/proofs/keys.md.


USUAL_SHARE = Fraction(1, 100)
"""Of the delta that the promise sets aside, unless something else is asked for."""

_factor = lru_cache(maxsize=16)(coupling_factor)


@dataclass(frozen=True, slots=True)
class KeysPrice:
    """The noise of each count, in fine steps; what is shown; and what that costs."""

    law: DiscreteGaussian
    threshold: int  # in fine steps: a key is shown from here on
    delta: Fraction  # the extra delta of the threshold alone
    loss: Loss
    total: DiscreteGaussian
    """The noise of the total of all counts."""
    sums: tuple[Law, ...] = ()
    """The noise of each sum of a key."""
    losses: tuple[tuple[Loss, tuple[int, ...]], ...] | None = None
    """By accounts, where they do not all pay the same."""

    @property
    def noise(self) -> str:
        """Equal texts, equal noise and threshold."""
        form: list[object] = [self.law.to_json(), {"threshold": str(self.threshold)}]
        if self.losses is not None:
            form += [self.total.to_json(), *(law.to_json() for law in self.sums)]
        return json.dumps(form, sort_keys=True, separators=(",", ":"))

    def due(self, accounts: Iterable[int]) -> dict[int, Loss]:
        """What each account pays."""
        if self.losses is None:
            return dict.fromkeys(accounts, self.loss)
        return {number: loss for loss, numbers in self.losses for number in numbers}


def check_keys(calibration: Calibration) -> None:
    """Only a promise with a delta can hide a key that one person has."""
    noise = calibration.promise.noise
    if noise != "gaussian":
        raise Refused(
            f"keys that nobody declared need a delta to hide behind, and {noise} noise has none to"
            " spare; declare the values, or publish with gaussian noise"
        )


def keys_price(
    calibration: Calibration,
    rows_each: int,
    fine_unit: int,
    credits: Fraction | None,
    delta: Fraction | None,
) -> KeysPrice:
    """The price of counts by key with their total, at most `rows_each` rows per person."""
    reach = Fraction(2 * rows_each**2)  # L2^2 of the counts and their total, for both neighbours
    paid = reach if credits is None else credits
    law, extra, each = _keys_law(calibration, reach, paid, rows_each, fine_unit, delta)
    moved = _sides(calibration) * rows_each + 1  # coordinates that one person can move
    apart = moved * coupling_slack(law.sigma_squared)
    slack = apart * _factor(calibration.promise.epsilon)  # TB.8
    threshold = rows_each * fine_unit + beyond(law.sigma_squared, each)
    due = Loss.of(paid, extra + slack) + calibration.timing  # S4.5
    return KeysPrice(law, threshold, extra, due, law)


def figures_price(
    calibration: Calibration,
    rows_each: int,
    fine_unit: int,
    sums: Sequence[int],
    reach: Sequence[tuple[Fraction, tuple[int, ...]]],
    credits: Fraction | None,
    delta: Fraction | None,
) -> KeysPrice:
    """The price of keys with figures: `sums` are the fine units of the sums, `reach` is
    `keys_reach`. A unit counts once for a key, so the threshold leaves room for one. P.4
    """
    most = max((squared for squared, _ in reach), default=Fraction(0))
    whole = most or Fraction(1)  # no row is ever in S: nothing is due
    paid = whole if credits is None else credits
    law, extra, each = _keys_law(calibration, whole, paid, rows_each, fine_unit, delta)
    wide = rows_each * calibration.unit_variance * whole / paid  # P.4: m times that of the counts
    laws: list[Law] = []
    for unit in sums:
        if unit and wide * unit**2 > LARGEST:
            raise InvalidQuery(
                f"the noise of a sum for {_short(paid)} credits cannot be drawn; ask with more"
                " credits, or for figures of a narrower range"
            )
        laws.append(DiscreteGaussian(wide * unit**2) if unit else NoNoise())
    total = DiscreteGaussian(wide * fine_unit**2)
    apart = sum(
        (coupling_slack(one.sigma_squared) for one in laws if isinstance(one, DiscreteGaussian)),
        coupling_slack(law.sigma_squared),
    )
    keys = _sides(calibration) * rows_each  # that one person can have
    slack = keys * apart + coupling_slack(total.sigma_squared)
    pure = extra + slack * _factor(calibration.promise.epsilon)  # TB.8
    losses = tuple(
        (Loss.of(paid * squared / whole, pure) + calibration.timing, numbers)  # S4.5
        for squared, numbers in reach
        if squared
    )
    threshold = fine_unit + beyond(law.sigma_squared, each)
    due = max((loss for loss, _ in losses), key=lambda one: one.credits, default=Loss.zero())
    return KeysPrice(law, threshold, extra, due, total, tuple(laws), losses)


def _sides(calibration: Calibration) -> int:
    """In how many of two neighbouring tables a person is who is in one of them."""
    return 2 if calibration.promise.neighbours == "replace" else 1


def _keys_law(
    calibration: Calibration,
    reach: Fraction,
    paid: Fraction,
    rows_each: int,
    fine_unit: int,
    delta: Fraction | None,
) -> tuple[DiscreteGaussian, Fraction, Fraction]:
    """The noise of a count, the extra delta, and the chance that one key of one's own is shown."""
    check_keys(calibration)
    variance = calibration.unit_variance * reach / paid * fine_unit**2
    if not 1 <= variance <= LARGEST:  # TB.8 is proved from a variance of 1 on
        raise InvalidQuery(
            f"noise for {_short(paid)} credits cannot be drawn; ask with credits near"
            f" {_short(reach)}, which is what a quote without `credits` says"
        )
    extra = calibration.slack_cap * USUAL_SHARE if delta is None else delta
    each = extra / (rows_each * _sides(calibration))  # M.1: twice under replace, m times
    if each >= Fraction(1, 2):
        raise InvalidQuery(f"delta must be far below 1, got {delta}")
    return DiscreteGaussian(variance), extra, each


FOUR = Context(prec=4)


def _short(number: Fraction) -> str:
    """Four digits, of numbers beyond binary64 too; whole numbers as they are."""
    if number.denominator == 1 and number < 10**9:
        return str(number)
    return f"{FOUR.divide(Decimal(number.numerator), Decimal(number.denominator)).normalize():g}"


def beyond(variance: Fraction, delta: Fraction) -> int:
    """A whole x with P(N >= x) <= delta for the discrete Gaussian N of this variance. M.1

    P(N >= x) <= Q((x - 1) / sigma): terms below the integral, and a normaliser of at least
    sqrt(2 pi variance) by Poisson summation.
    """
    square = tail_quantile(delta) ** 2 * variance
    return math.isqrt(math.ceil(square)) + 2


# The papers' random delay of a reply, with its units mended, and what it costs. S4.5
#
# One row may change the running time by at most t_max. A delay of variance t_max^2 R makes the
# time of a reply a Gaussian answer of sensitivity 1 at variance R: it costs R_unit / R credits, as
# the answer itself would. (Blum et al. print the variance as t_max R, which is no time squared.) A
# delay cannot be negative: its mean is z standard deviations, and (1 + e^eps) Q(z) of delta pays
# for the rest. Proof: docs/proofs/timing.md.


GRID_BITS = 20
"""Times are whole multiples of t_max / 2^20."""
CLAMP_SHARE = Fraction(1, 4)
"""Of the delta that sampling may use up in a table's life: for delays that would be negative."""
LONGEST = 60


@dataclass(frozen=True, slots=True)
class Delay:
    """In grid steps: the noise's variance and the mean that is added; and what each reply costs."""

    longest: Fraction  # t_max, in seconds
    variance: Fraction  # R, in units of t_max^2
    quantile: Fraction  # z
    loss: Loss

    @property
    def step(self) -> Fraction:
        """Seconds."""
        return self.longest / (1 << GRID_BITS)

    @property
    def grid_variance(self) -> Fraction:
        """t_max^2 R, in steps^2."""  # S4.5
        return self.variance * (1 << 2 * GRID_BITS)

    @property
    def mean_steps(self) -> int:
        """z t_max sqrt(R), rounded up."""  # S4.5
        return math.isqrt(math.ceil(self.quantile**2 * self.grid_variance)) + 1

    @property
    def mean(self) -> float:
        """Seconds."""
        return float(self.mean_steps * self.step)

    @property
    def standard_deviation(self) -> float:
        """Seconds."""
        return float(self.longest) * math.sqrt(self.variance)


def delay_for(calibration: Calibration, longest: Exact, credits: Exact = 1) -> Delay:
    """The delay under which each timed reply costs `credits`; `longest` is t_max in seconds."""
    if calibration.promise.noise != "gaussian":
        raise InvalidQuery(
            "a random delay is Gaussian and needs a promise with gaussian noise; use the clock"
        )
    t_max, paid = Fraction(longest), Fraction(credits)
    if not 0 < t_max <= LONGEST or not 0 < paid <= calibration.credits:
        raise InvalidQuery(
            f"got {float(t_max):g} s that a row may add and {float(paid):g} credits for each"
            f" reply, wanted more than 0, at most {LONGEST} s and all credits"
        )
    variance = calibration.unit_variance / paid
    factor = coupling_factor(calibration.promise.epsilon)
    replies = calibration.credits / paid
    clamp = calibration.slack_cap * CLAMP_SHARE / replies  # S4.5: T (1 + e^eps) Q(z) in all
    slack = factor * coupling_slack(variance * (1 << 2 * GRID_BITS))  # TB.8
    return Delay(t_max, variance, tail_quantile(clamp / factor), Loss.of(paid, clamp + slack))


def timed(calibration: Calibration, delay: Delay) -> Calibration:
    """The same noise; every question that reads rows also pays for the time of its reply."""
    return replace(calibration, timing=delay.loss)
