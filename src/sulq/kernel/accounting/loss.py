"""What questions cost, as integers that add exactly, and what the pure ones add up to.

Proofs: docs/proofs/accounting.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

from sulq.errors import InvalidQuery
from sulq.kernel.accounting.gaussian import CONTEXT, Exact, decimal, ratio_up, rounded_up

CREDIT = 2**64
"""Steps in one credit."""
DELTA = 2**128
"""Steps in a delta of one."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A price or a total: multiples of 2^-64 credit and of 2^-128 delta."""

    credits: int
    delta: int

    def __post_init__(self) -> None:
        for amount in (self.credits, self.delta):
            if type(amount) is not int or amount < 0:
                raise InvalidQuery(f"got a loss of {amount!r} steps, wanted a whole number >= 0")

    @classmethod
    def zero(cls) -> Loss:
        return cls(0, 0)

    @classmethod
    def of(cls, credits: Fraction | int, delta: Fraction | int = 0) -> Loss:
        """The smallest loss that is at least (credits, delta): prices round up."""
        return cls(_ceiling(credits, CREDIT), _ceiling(delta, DELTA))

    @classmethod
    def cap(cls, credits: Fraction | int, delta: Fraction | int = 0) -> Loss:
        """The largest loss that is at most (credits, delta): caps round down."""
        return cls(Fraction(credits) * CREDIT // 1, Fraction(delta) * DELTA // 1)

    @property
    def credits_fraction(self) -> Fraction:
        return Fraction(self.credits, CREDIT)

    @property
    def delta_fraction(self) -> Fraction:
        return Fraction(self.delta, DELTA)

    def __add__(self, other: Loss) -> Loss:
        return Loss(self.credits + other.credits, self.delta + other.delta)

    def within(self, cap: Loss) -> bool:
        """Both parts fit."""
        return self.credits <= cap.credits and self.delta <= cap.delta


def _ceiling(amount: Fraction | int, steps: int) -> int:
    return -(-Fraction(amount) * steps // 1)


def coupling_slack(variance: Fraction) -> Fraction:
    """TV between discrete and rounded Gaussian of this variance, in grid steps^2: at most
    0.021 / variance for variance >= 1."""
    if variance < 1:
        raise InvalidQuery("so much precision needs less noise than can be drawn; ask for less")
    return Fraction(21, 1000) / variance  # TB.8


def parts_slack(variance: Fraction, parts: int) -> Fraction:
    """TV between a sum of discrete Gaussians of this variance and one of the summed variance.

    At most 5 (parts - 1) exp(-pi^2 variance) for variance >= 1, and exp(-pi^2) < 2^-14. V.4
    """
    if variance < 1:
        raise InvalidQuery(
            "so much precision leaves each owner less noise than can be drawn; ask for less"
        )
    return Fraction(5 * (parts - 1), 1 << (14 * min(variance.__floor__(), 64)))


def coupling_factor(epsilon: Fraction) -> Fraction:
    """1 + e^epsilon, rounded up: what a total-variation slack costs in delta (TB.8)."""
    with localcontext(CONTEXT):
        return ratio_up(1 + decimal(epsilon).exp())


def composed_delta(mechanisms: int, epsilon: Exact, total: Exact) -> float:
    """Exact delta(total) of `mechanisms` arbitrary epsilon-DP answers, upper bound (S2.5)."""
    with localcontext(CONTEXT):
        return rounded_up(_composed(mechanisms, decimal(epsilon), decimal(total)))


def composed_epsilon(mechanisms: int, epsilon: Exact, delta: Exact) -> float:
    """The smallest total epsilon of `mechanisms` epsilon-DP answers at delta, rounded up."""
    with localcontext(CONTEXT):
        each, wanted = decimal(epsilon), decimal(delta)
        low, high = 0.0, float(each) * mechanisms * (1 + 2**-50)
        while low < (middle := (low + high) / 2) < high:
            if _composed(mechanisms, each, decimal(middle)) <= wanted:
                high = middle
            else:
                low = middle
        return high


def _composed(mechanisms: int, epsilon: Decimal, total: Decimal) -> Decimal:
    """Kairouz-Oh-Viswanath: sum_i C(t,i) (e^{i eps} - e^{g + (t-i) eps})_+ / (1+e^eps)^t."""
    odds = epsilon.exp()
    low_side = total.exp()
    term = (odds / (1 + odds)) ** mechanisms  # i = t: C(t,t) e^{t eps} / (1+e^eps)^t
    ratio = 1 / (odds * odds)
    other = low_side * ratio**mechanisms * odds**mechanisms  # e^{g + (t-i) eps} / e^{i eps}
    answer = Decimal(0)
    for agreeing in range(mechanisms, -1, -1):
        if other >= 1:
            break
        answer += term * (1 - other)
        term = term * agreeing / (mechanisms - agreeing + 1) / odds
        other /= ratio
    return answer
