"""What the promise lets anyone believe, at the end and so far, at one chance of being passed."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sulq.accounting.confidence import USUAL_PRIOR, moved, percent_up, usual, worst, worst_so_far
from sulq.schema.promise import Promise
from sulq.shown import belief_up, one_in


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

    @property
    def rarely(self) -> str:
        """ "a chance below 1 in 49,000", or nothing where it holds always."""
        return one_in(self.chance) if self.chance else ""

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


def exception(promise: Promise) -> str:
    """How rarely the figure at the end is passed, and what holds more surely still."""
    found, last = usual(promise), worst(promise)
    if not found.except_for:
        return "Holds always."
    said = f"Holds except with a chance below {one_in(found.except_for)}"
    if last.except_for < found.except_for:
        said += (
            f"; except with a chance below {one_in(last.except_for)},"
            f" {round(100 * USUAL_PRIOR)} % becomes at most {percent_up(last.posterior)} %"
        )
    return f"{said}."


def _up(rise: float) -> str:
    return f"{-(-round(rise * 1000, 6) // 10) / 100:g}"
