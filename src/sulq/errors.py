"""Everything sulq raises. No message carries row data, nor a hash or a count of it.

                                                                        HTTP  exit code
SulqError
  + InvalidQuery      the question cannot be understood or proved safe   422          2
  + Refused           understood, but not allowed                        403          3
  |   + BudgetSpent   the lifetime budget or the analyst's share is small 402         4
  |   + UnsafeExactly no certificate for exact release                   403          3
  |   + NotPublished  the table's owner has not published it             403          3
  + EngineFailed      the engine failed after the charge, which stands   503          1
  + TooNoisy          what was to be learned is below the noise          422          3
  + Unreachable       no reply came from the server                        -          1

InvalidQuery and Refused are free. Programs read the class, `reason` and `about`; people read the
text. `ERROR_CODES` is the one table of what a class or a reason is called elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, auto
from fractions import Fraction


class Reason(StrEnum):
    """Why a question is invalid. `about` holds what is in brackets."""

    INVALID_VALUE = auto()
    """An argument has the wrong type, or lies outside of what it may be."""
    EMPTY = auto()
    """There is no statement in the text."""
    UNREADABLE = auto()
    """Not SQL, or not yet: a word or bracket is missing or not expected (line, column)."""
    SEMICOLON = auto()
    """A semicolon stands inside the text, which holds one statement."""
    """The text holds a comment."""
    NOT_IN_LANGUAGE = auto()
    """SQL that this language leaves out."""
    WRONG_FORM = auto()
    """A word of the language has other arguments than it takes."""
    NO_TABLE = auto()
    """FROM names a table that is not there (table: the one that is)."""
    NO_COLUMN = auto()
    """No column has this name (column)."""
    ALIAS = auto()
    """A name of the result stands where only columns of rows are seen (column)."""
    AMBIGUOUS = auto()
    """A name stands for two things (column)."""
    PERSON_COLUMN = auto()
    """The column that names persons can only be counted (column)."""
    ROWS_SHOWN = auto()
    """The statement would show rows."""
    UNGROUPED = auto()
    """A column is neither grouped by nor inside an aggregate (column)."""
    DISTINCT = auto()
    """DISTINCT of something other than persons."""
    AGGREGATE = auto()
    """An aggregate stands where only one row at a time is seen, or in another one."""
    JOIN = auto()
    """A join to something other than a public lookup table, or not by one equality."""
    NO_GROUPS = auto()
    """No list of groups follows from what is grouped by."""
    NO_STEP = auto()
    """A Number without a step is grouped by, without edges or buckets (column)."""
    OPEN_TEXT = auto()
    """A text column without declared values is used as if it had some (column)."""
    WRONG_TYPE = auto()
    """A text, a day, a number or a condition stands where another of them is wanted."""
    NEEDS_BOUNDS = auto()
    """A value has no usable bounds: it may divide by 0, pass 64 bits, or has too narrow a range."""
    TOO_LARGE = auto()
    """More groups, cells, parts, letters or levels than are read and priced."""
    LOOSER_PROMISE = auto()
    """OPTIONS(...) asks for less privacy than the table promises, or for another unit."""
    WITHIN_RANK = auto()
    """WITHIN in units of a quantile's value: only its rank can be promised."""
    WITHIN_SIZE = auto()
    """WITHIN a percentage of what nobody knows yet."""
    WITHIN_UNKNOWN = auto()
    """WITHIN on an answer whose error bar is not known before it is asked."""


class SulqError(Exception):
    """The root of the tree. `credits_spent`: what was charged before it; None: not known."""

    credits_spent: Fraction | None = None
    charged_unknown: bool = False  # True: the charge may stand, so nobody may say it cost nothing

    def __init__(
        self,
        *text: object,
        reason: Reason | None = None,
        about: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(*text)
        self.reason, self.about = reason, dict(about or {})


class InvalidQuery(SulqError, ValueError):
    """The question, schema, promise or policy is wrong; says what was got and the remedy.

    Of a statement in SQL: characters `start` to `end` of the text are meant, None where that is not
    known, and `alternatives` are statements near it that would be answered.
    """

    credits_spent: Fraction | None = Fraction(0)
    reason: Reason

    def __init__(
        self,
        *text: object,
        reason: Reason = Reason.INVALID_VALUE,
        start: int | None = None,
        end: int | None = None,
        alternatives: tuple[str, ...] = (),
        about: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(*text, reason=reason, about=about)
        self.start, self.end, self.alternatives = start, end, alternatives

    @property
    def text(self) -> str:
        """What is wrong and the remedy, without the place."""
        return super().__str__()

    def __str__(self) -> str:
        if "line" in self.about:
            return f"{self.text} (line {self.about['line']}, column {self.about['column']})"
        return self.text if self.start is None else f"{self.text} (near character {self.start + 1})"


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


class Unreachable(SulqError):
    """No reply came. `key` is what the request was sent under: with it, asking again is safe."""

    def __init__(self, text: str, key: str | None = None) -> None:
        super().__init__(text)
        self.key = key


@dataclass(frozen=True, slots=True)
class ErrorCodes:
    """What an error is called over HTTP (status and problem code) and to a shell (exit code)."""

    status: int
    code: str
    exit_code: int
    hint: str


ERROR_CODES: dict[type[SulqError] | Reason, ErrorCodes] = {
    InvalidQuery: ErrorCodes(422, "invalid_query", 2, "change the question; nothing was charged"),
    Refused: ErrorCodes(403, "refused", 3, "nothing was charged"),
    BudgetSpent: ErrorCodes(
        402, "budget_spent", 4, "ask for less, or ask the owner for a larger share"
    ),
    UnsafeExactly: ErrorCodes(
        403, "unsafe_exactly", 3, "ask with noise instead; nothing was charged"
    ),
    EngineFailed: ErrorCodes(
        503, "engine_failed", 1, "ask again with the same key; it is charged once"
    ),
    TooNoisy: ErrorCodes(422, "too_noisy", 3, "spend more credits, or learn less"),
    SulqError: ErrorCodes(403, "refused", 1, "nothing was charged"),
    Reason.NO_COLUMN: ErrorCodes(
        422, "invalid_query", 2, "GET schema and `sulq columns` list the columns"
    ),
    Reason.TOO_LARGE: ErrorCodes(422, "invalid_query", 2, "ask in pieces; nothing was charged"),
}
"""A reason's row comes before its class's, and a class's before its base's."""


def codes_of(error: SulqError) -> ErrorCodes:
    """The row of an error."""
    keys = (error.reason, *type(error).__mro__)
    return next(ERROR_CODES[key] for key in keys if key in ERROR_CODES)
