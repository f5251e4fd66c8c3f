"""What the promise lets anyone believe, at the end and so far, at one chance of being passed."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sulq.accounting.confidence import (
    USUAL_PRIOR,
    Worst,
    belief_up,
    moved,
    usual,
    worst_so_far,
)
from sulq.schema.promise import Promise


@dataclass(frozen=True, slots=True)
class Beliefs:
    """Rises of confidence in nats; `chance` is how often they may be passed, at most. TB.2"""

    end: float
    so_far: float
    chance: float

    def after(self, prior: float = USUAL_PRIOR) -> str:
        return f"{belief_up(moved(prior, self.end))} %"

    def now(self, prior: float = USUAL_PRIOR) -> str:
        return f"{belief_up(moved(prior, self.so_far))} %"

    def epsilons(self) -> tuple[str, str]:
        """(so far, at the end), rounded up."""
        return _up(self.so_far), _up(self.end)


def beliefs(promise: Promise, spent: Fraction) -> Beliefs:
    """At epsilon and its tail (TB.2); where that is not rare, at delta, where it is wider."""
    found = usual(promise)
    end, chance = found.change, found.except_for
    if not spent:
        return Beliefs(end, 0.0, chance)
    so_far = worst_so_far(promise, spent, except_for=chance or None).change
    return Beliefs(end, min(so_far, end), chance)


def becomes(found: Worst) -> str:
    """ "40 % becomes at most 65 %, except with a chance below 1 in 4,500, and at most ..."."""
    return f"{100 * found.prior:.3g} % becomes at most {found.limits}"


def _up(rise: float) -> str:
    return f"{-(-round(rise * 1000, 6) // 10) / 100:g}"
