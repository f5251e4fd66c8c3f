"""What undeclared keys cost: the threshold, and the delta it is paid with. M.1

Noise on a key that only one person has must not carry it over the threshold, but with chance
delta_t. Nothing here reads data. Proof: docs/proofs/keys.md.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from sulq.accounting.calibration import Calibration
from sulq.accounting.gaussian import tail_quantile
from sulq.accounting.losses import Loss, coupling_factor, coupling_slack
from sulq.errors import InvalidQuery, Refused
from sulq.noise.distributions import DiscreteGaussian

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

    @property
    def noise(self) -> str:
        """Equal texts, equal noise and threshold."""
        form = [self.law.to_json(), {"threshold": str(self.threshold)}]
        return json.dumps(form, sort_keys=True, separators=(",", ":"))


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
    check_keys(calibration)
    replace = calibration.promise.neighbours == "replace"
    reach = 2 * rows_each**2  # L2^2 of the counts and their total, for both kinds of neighbours
    paid = Fraction(reach) if credits is None else credits
    variance = calibration.unit_variance * reach / paid * fine_unit**2
    extra = calibration.slack_cap * USUAL_SHARE if delta is None else delta
    each = extra / (rows_each * (2 if replace else 1))  # M.1: twice under replace, m times
    if each >= Fraction(1, 2):
        raise InvalidQuery(f"delta must be far below 1, got {delta}")
    moved = (2 if replace else 1) * rows_each + 1  # coordinates that one person can move
    slack = moved * _factor(calibration.promise.epsilon) * coupling_slack(variance)  # TB.8
    threshold = rows_each * fine_unit + beyond(variance, each)
    return KeysPrice(DiscreteGaussian(variance), threshold, extra, Loss.of(paid, extra + slack))


def beyond(variance: Fraction, delta: Fraction) -> int:
    """A whole x with P(N >= x) <= delta for the discrete Gaussian N of this variance. M.1

    P(N >= x) <= Q((x - 1) / sigma): terms below the integral, and a normaliser of at least
    sqrt(2 pi variance) by Poisson summation.
    """
    square = tail_quantile(delta) ** 2 * variance
    return math.isqrt(math.ceil(square)) + 2
