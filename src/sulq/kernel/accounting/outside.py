"""What a release made elsewhere about the same people costs here, and what all of it adds up to.

Its (e, d) is taken out of the promise: credits may do no more than keep (epsilon - e, delta - d).
Or, where that is less, its e is paid in credits as a pure answer is (M.4, S4.13): an (e, d)-private
release is an e-private one that tells everything with probability d (S2.5). Proof:
docs/proofs/ledger.md, section 14.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from sulq.errors import InvalidQuery, Refused
from sulq.kernel.accounting.calibration import SET_ASIDE, Calibration
from sulq.kernel.accounting.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu
from sulq.kernel.accounting.loss import coupling_factor
from sulq.kernel.accounting.mechanisms import credits_for
from sulq.kernel.schema.promise import LARGEST_EPSILON

LEAST_LEFT = Fraction(1, 10**9)
"""The share of the promise's delta below which nothing is left for answers."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What releases made elsewhere took out of a promise."""

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)


NONE = Taken()


@dataclass(frozen=True, slots=True)
class OutsidePrice:
    """`credits` are lost as an answer loses them; `stands` are credits nobody may use any more,
    for what is `taken` out of the promise."""

    credits: Fraction
    stands: Fraction
    taken: Taken


def outside_price(
    epsilon: Fraction, delta: Fraction, before: Taken, calibration: Calibration
) -> OutsidePrice:
    """The cheapest proved way to book an (epsilon, delta)-private release, rounded up."""
    check_currency(calibration)
    if not 0 <= epsilon <= LARGEST_EPSILON:
        raise InvalidQuery(
            f"got epsilon={float(epsilon):g}, wanted 0 to {LARGEST_EPSILON}: that of the release"
        )
    if not 0 <= delta < 1:
        raise InvalidQuery(f"got delta={float(delta):g}, wanted 0 <= delta < 1")
    here = _room(before, calibration)
    paid = Taken(before.epsilon, before.delta + delta)
    pure = credits_for(epsilon, calibration) if epsilon else Fraction(0)  # M.4, S4.13
    ways = [OutsidePrice(pure, here - _room(paid, calibration), Taken(Fraction(0), delta))]
    if calibration.promise.noise == "gaussian":
        split = Taken(before.epsilon + epsilon, paid.delta)
        if (
            split.epsilon < calibration.promise.epsilon
        ):  # else nothing is left, and that is no price
            stands = here - _room(split, calibration)
            ways.append(OutsidePrice(Fraction(0), stands, Taken(epsilon, delta)))
    return min(ways, key=lambda way: way.credits + way.stands)


def _room(taken: Taken, calibration: Calibration) -> Fraction:
    """The credits that keep what is left of the promise: R mu(eps - e, .999 delta - d)^2, TB.1."""
    promise, cap = calibration.promise, Fraction(calibration.credits)
    if taken == NONE:
        return cap
    epsilon, delta = promise.epsilon - taken.epsilon, promise.delta * (1 - SET_ASIDE) - taken.delta
    if promise.noise == "laplace" or epsilon <= 0 or delta < promise.delta * LEAST_LEFT:
        return Fraction(0)  # Laplace: it promised no delta at all, and epsilon is paid in credits
    return min(cap, calibration.unit_variance * gaussian_mu(epsilon, delta) ** 2)


def check_currency(calibration: Calibration) -> None:
    """`Refused` where losses of different kinds do not add up to the promise."""
    if calibration.promise.noise not in ("gaussian", "laplace"):
        raise Refused(
            f"{calibration.promise.noise} noise is an account of a fixed number of counts and adds"
            " up with nothing else (G.1.5); publish with gaussian or laplace noise"
        )


@dataclass(frozen=True, slots=True)
class OutsideTotal:
    """What holds where more was lost than promised. Both are upper bounds.

    `epsilon` at the promised delta, None if no epsilon keeps that; `delta` at the promised epsilon,
    or for a promise without delta, at `epsilon`.
    """

    epsilon: float | None
    delta: float

    def __str__(self) -> str:
        if self.epsilon is None:
            return f"delta {self.delta:.3g} at the promised epsilon"
        return f"epsilon {self.epsilon:.4g} at the promised delta"


def total(
    calibration: Calibration,
    credits: Fraction,
    taken: Taken = NONE,
    pure: tuple[Fraction, Fraction] = (Fraction(0), Fraction(0)),
) -> OutsideTotal:
    """The guarantee of so many credits, with what was taken out of the promise.

    `pure` is (epsilon, credits) of those of the credits that were pure: their epsilon may be added
    to that of the rest, where that says more.
    """
    check_currency(calibration)
    if calibration.promise.noise == "laplace":
        return OutsideTotal(_up(credits / calibration.unit_scale), _up(taken.delta))  # S4.13
    ways = [_Way(calibration, credits, taken.epsilon, taken.delta)]
    if pure[0]:
        rest, on_top = credits - pure[1], taken.epsilon + pure[0]
        ways.append(_Way(calibration, rest, on_top, taken.delta))
    found = [epsilon for way in ways if (epsilon := way.epsilon()) is not None]
    return OutsideTotal(min(found, default=None), min(way.delta() for way in ways))


@dataclass(frozen=True, slots=True)
class _Way:
    """Gaussian credits, and an epsilon on top of what they come to."""

    calibration: Calibration
    credits: Fraction
    on_top: Fraction
    outside: Fraction

    @property
    def mu(self) -> Fraction:
        share = max(Fraction(0), self.credits) / self.calibration.unit_variance
        return Fraction(math.sqrt(share) * (1 + 1e-12))

    def delta(self) -> float:
        """At the promised epsilon."""
        rest = self.calibration.promise.epsilon - self.on_top
        if rest <= 0:
            return 1.0
        extra = self.outside + self.calibration.slack_cap
        return min(1.0, _up(Fraction(gaussian_delta(self.mu, rest)) + extra))  # TB.1

    def epsilon(self) -> float | None:
        """At the promised delta. The sampler's distance costs 1 + e^epsilon of what is stated."""
        promise = self.calibration.promise
        found = float(promise.epsilon)
        distance = self.calibration.slack_cap / coupling_factor(promise.epsilon)  # TB.8
        while found <= LARGEST_EPSILON:
            left = promise.delta - self.outside - distance * coupling_factor(Fraction(found))
            if left <= 0:
                break
            wanted = _up(self.on_top + Fraction(gaussian_epsilon(self.mu, left)))
            if wanted <= found:
                return found
            found = wanted * (1 + 1e-6)
        return None


def _up(value: Fraction) -> float:
    return math.nextafter(float(value), math.inf) if value else 0.0
