"""What a table has spent and has left, and what is promised to its people."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sulq.accounting.calibration import Meaning
from sulq.accounting.confidence import worst, worst_so_far
from sulq.exact.terms import MAYBE_RELEASED, UNTIL_RELEASED, Terms, promised
from sulq.ledger.statement import Statement
from sulq.oracle import decimal_text
from sulq.schema.promise import Promise

BURNT = "events were lost, so everything counts as spent; a larger promise may have been among them"


@dataclass(frozen=True, slots=True)
class Account:
    """What is spent and left, and what the promise means."""

    statement: Statement
    meaning: Meaning
    promise: Promise

    @property
    def spent(self) -> Fraction:
        """Credits of the account that lost most."""
        return self.statement.spent.credits_fraction

    @property
    def left(self) -> Fraction:
        if self.statement.closed is not None:
            return Fraction(0)
        return self.statement.cap.credits_fraction - self.spent

    @property
    def assumed(self) -> Terms | None:
        """On what terms sums were released without their usual noise; None if none were."""
        return released_terms(self.statement)

    @property
    def guarantee(self) -> str:
        """What holds for every row after everything this table has released and may release."""
        assumed = self.assumed
        if assumed is not None:
            return promised(self.promise, assumed)
        if self.statement.maybe_released:
            return MAYBE_RELEASED
        warned = f"\n{UNTIL_RELEASED}" if may_release(self.statement) else ""
        return f"promise: {self.promise}{warned}"

    def __str__(self) -> str:
        most = self.statement.accounts[0].name
        where = "" if len(self.statement.accounts) == 1 else f" (the most, by {most})"
        cap = decimal_text(self.statement.cap.credits_fraction)
        lines = [
            f"{decimal_text(self.spent)} of {cap} credits spent{where},"
            f" {decimal_text(self.left)} left",
            self.guarantee,
        ]
        if self.assumed is None and not self.statement.maybe_released:
            tail = self.meaning.tail_any_belief or self.meaning.tail
            unless = " (unless sums are released exactly)" if may_release(self.statement) else ""
            lines += [
                f"tail: Pr[an adversary's confidence moves by more than epsilon] <= {tail:.3g}",
                f"so: {worst(self.promise)}{unless}",
                f"so far: {worst_so_far(self.promise, self.spent)}",
            ]
        if self.statement.closed is not None:
            lines.append(f"closed for good, {self.statement.closed}")
        if self.statement.amended:
            lines.append(f"amended {len(self.statement.amended)} times; this is what holds now")
        if self.statement.burnt:
            lines.append(BURNT)
        for line in self.statement.reservations:
            amount, left = (decimal_text(x.credits_fraction) for x in (line.amount, line.left))
            lines.append(f"{amount} credits reserved, {left} left, by {line.analyst}")
        lines.append(
            f"{self.statement.entries} questions charged, {self.statement.answered} answered"
        )
        return "\n".join(lines)


def may_release(statement: Statement) -> bool:
    """True if the owner has turned exact release on."""
    return "assumptions" in statement.facts


def released_terms(statement: Statement) -> Terms | None:
    """On what terms a table released sums without their usual noise; None if it did not."""
    return Terms.from_text(statement.terms) if statement.terms else None
