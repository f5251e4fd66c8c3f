"""What one version of a table's data may spend, inside the lifetime cap.

It plans, and promises nothing of its own: a person's loss adds over the versions they are in, and
the cap bounds the sum. Nothing of it comes back with a new version. docs/proofs/ledger.md, 16.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from sulq.errors import BudgetSpent, InvalidQuery
from sulq.ledger.tally import in_credits, rounded_up


@dataclass(frozen=True, slots=True)
class VersionBudget:
    """In steps of credits, as accounts are kept. `allowed` is None where only the cap limits."""

    start: int = 0  # what the worst account had lost before this version
    allowed: int | None = None
    outside: int = 0  # booked meanwhile as released elsewhere, on every account

    @property
    def top(self) -> int | None:
        """What an account may have lost by the end of this version."""
        return None if self.allowed is None else self.start + self.allowed

    def left(self, spent: int, aside: int) -> int | None:
        """What is left for a question on an account that has lost so much."""
        return None if self.top is None else max(0, self.top - spent - aside)

    def admit(self, spent: int, due: int, aside: int) -> None:
        if self.top is None or not due or spent + due + aside <= self.top:
            return
        raise BudgetSpent(
            "this is more than the present version of the data may still spend"
            f" ({in_credits(max(0, self.top - spent - aside))} of {in_credits(self.allowed or 0)}"
            " credits are left of it); ask a cheaper question: the rest of the lifetime budget is"
            " kept for versions to come"
        )

    def moved(self, loss: int) -> VersionBudget:
        """Something else was booked on every account: it is not this version's."""
        return replace(self, start=self.start + loss, outside=self.outside + loss)

    def scaled(self, credits: Fraction) -> VersionBudget:
        """In another currency: what was spent rounds up and what may be down, so that a version
        that is used up stays so."""
        allowed = None if self.allowed is None else max(1, int(self.allowed * credits))
        start, outside = (rounded_up(steps * credits) for steps in (self.start, self.outside))
        return VersionBudget(start, allowed, outside)


WHOLE = VersionBudget()


def steps_of(credits: Fraction | None) -> int | None:
    """Credits as steps, rounded down."""
    if credits is None:
        return None
    if credits <= 0:
        raise InvalidQuery(f"a version's budget must be above 0 credits, got {credits}")
    return int(credits * 2**64 // 1)
