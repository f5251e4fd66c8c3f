"""What a table has spent and has left, and what is promised to its people."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sulq.accounting.calibration import Meaning
from sulq.exact.terms import Terms
from sulq.ledger.statement import Statement
from sulq.oracle import decimal_text
from sulq.schema.promise import Promise


@dataclass(frozen=True, slots=True)
class Account:
    """What is spent and left, and what the promise means.

    `assumed` says on what terms sums were released without their usual noise; None if none were.
    """

    statement: Statement
    meaning: Meaning
    promise: Promise
    assumed: Terms | None = None

    @property
    def spent(self) -> Fraction:
        """Credits of the account that lost most."""
        return self.statement.spent.credits_fraction

    @property
    def left(self) -> Fraction:
        return self.statement.cap.credits_fraction - self.spent

    @property
    def guarantee(self) -> str:
        """What holds for every row after everything this table has released and may release."""
        if self.assumed is None:
            return f"promise: {self.promise}"
        given = self.assumed.assumptions
        epsilon = float(self.promise.epsilon + given.epsilon)
        delta = float(self.promise.delta + given.delta)
        return (
            "sums were released under assumptions, so no worst-case promise is left.\n"
            f"{self.assumed}.\n"
            f"with all noisy answers, on the same assumptions: e^{epsilon:g} and {delta:.3g}"
        )

    def __str__(self) -> str:
        worst = self.statement.accounts[0].name
        where = "" if len(self.statement.accounts) == 1 else f" (the most, by {worst})"
        cap = decimal_text(self.statement.cap.credits_fraction)
        lines = [
            f"{decimal_text(self.spent)} of {cap} credits spent{where},"
            f" {decimal_text(self.left)} left",
            self.guarantee,
        ]
        if self.assumed is None:
            tail = self.meaning.tail_any_belief or self.meaning.tail
            lines.append(
                f"tail: Pr[an adversary's confidence moves by more than epsilon] <= {tail:.3g}"
            )
        lines.append(
            f"{self.statement.entries} questions charged, {self.statement.answered} answered"
        )
        return "\n".join(lines)
