"""Everything sulq raises. No message carries row data, nor a hash or a count of it.

SulqError
  + InvalidQuery      the question cannot be understood or proved safe; nothing was charged
  + Refused           understood, but not allowed; nothing was charged
  |   + BudgetSpent   the lifetime budget or the analyst's share is too small
  |   + UnsafeExactly no certificate for exact release
  |   + NotPublished  the table's owner has not published it
  + EngineFailed      the engine failed after the charge; the charge stands
  + TooNoisy          what was to be learned is below the noise; answers so far were charged
"""

from __future__ import annotations

from fractions import Fraction


class SulqError(Exception):
    """The root of the tree. `credits_spent`: what was charged before it; None: not known."""

    credits_spent: Fraction | None = None
    charged_unknown: bool = False  # True: the charge may stand, so nobody may say it cost nothing


class InvalidQuery(SulqError, ValueError):
    """The question, schema, promise or policy is wrong; says what was got and the remedy.

    Of a statement in SQL: characters `start` to `end` of the text are meant, None where that is not
    known, and `alternatives` are statements near it that would be answered.
    """

    credits_spent: Fraction | None = Fraction(0)

    def __init__(
        self,
        *said: object,
        start: int | None = None,
        end: int | None = None,
        alternatives: tuple[str, ...] = (),
    ) -> None:
        super().__init__(*said)
        self.start, self.end, self.alternatives = start, end, alternatives


class Refused(SulqError):
    """A well-formed question that the rules do not allow; it costs nothing."""

    credits_spent: Fraction | None = Fraction(0)


class BudgetSpent(Refused):
    """Not enough budget is left for this question."""


class UnsafeExactly(Refused):
    """An exact answer could not be certified."""


class NotPublished(Refused):
    """The ledger does not have this table; only its owner publishes it, in one explicit act."""


class EngineFailed(SulqError):
    """One constant message: an engine's own words may quote rows."""

    def __init__(self) -> None:
        super().__init__("the engine could not finish this question; the charge stands, ask again")


class TooNoisy(SulqError):
    """A learner stopped: the answers are below their noise; says what would be needed."""
