"""Errors as problem+json (RFC 9457) and back: a client raises what local code raises."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from sulq.errors import (
    BudgetSpent,
    EngineFailed,
    InvalidQuery,
    Refused,
    SulqError,
    TooNoisy,
    UnsafeExactly,
)
from sulq.wire.bodies import Exact

INTERNAL = "something went wrong in the server; nothing more is said here"

STATUS = {
    "invalid_query": 422,
    "refused": 403,
    "budget_spent": 402,
    "unsafe_exactly": 403,
    "engine_failed": 503,
    "price_changed": 409,
    "key_reused": 409,
    "unknown_token": 401,
    "not_for_this_role": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "too_large": 413,
    "too_many": 429,
    "internal": 500,
}
TITLES = {
    "invalid_query": "The question cannot be answered as it stands",
    "refused": "Refused",
    "budget_spent": "Not enough budget is left",
    "unsafe_exactly": "No exact answer",
    "engine_failed": "The engine failed after the charge",
    "price_changed": "The price has changed",
    "key_reused": "The key was used for another request",
    "unknown_token": "The token is not known",
    "not_for_this_role": "Not for this role",
    "not_found": "Not found",
    "method_not_allowed": "Not allowed here",
    "too_large": "The request is too large",
    "too_many": "Too many requests",
    "internal": "Internal error",
}
# the most special first
CODES: tuple[tuple[type[SulqError], str], ...] = (
    (BudgetSpent, "budget_spent"),
    (UnsafeExactly, "unsafe_exactly"),
    (Refused, "refused"),
    (InvalidQuery, "invalid_query"),
    (EngineFailed, "engine_failed"),
    (TooNoisy, "refused"),
)


class Problem(BaseModel):
    """`credits_spent` is what the request charged before it failed; 0 of every refusal."""

    model_config = ConfigDict(frozen=True)
    type: str = "about:blank"
    title: str
    status: int
    detail: str
    code: str
    hint: str = ""
    credits_spent: float = 0.0
    credits_spent_exact: Exact = Fraction(0)
    start: Annotated[int | None, Field(description="first letter meant, of a statement")] = None
    end: int | None = None
    alternatives: list[str] | None = None


class Unreachable(SulqError):
    """No reply came. `key` is what the request was sent under: with it, asking again is safe."""

    def __init__(self, said: str, key: str | None = None) -> None:
        super().__init__(said)
        self.key = key


def problem(code: str, detail: str, hint: str = "") -> Problem:
    return Problem(title=TITLES[code], status=STATUS[code], detail=detail, code=code, hint=hint)


def problem_of(error: BaseException, credits_spent: Fraction | None = None) -> Problem:
    """What is told of an error; of anything but ours only that it happened."""
    code = next((name for kind, name in CODES if isinstance(error, kind)), "internal")
    if code == "internal":
        return problem("internal", INTERNAL)
    given = credits_spent if credits_spent is not None else getattr(error, "credits_spent", None)
    spent = Fraction(0) if given is None else Fraction(given)
    start, end = getattr(error, "start", None), getattr(error, "end", None)
    alternatives = getattr(error, "alternatives", ())
    return Problem(
        title=TITLES[code],
        status=STATUS[code],
        detail=str(error),
        code=code,
        hint=str(getattr(error, "hint", "")),
        credits_spent=float(spent),
        credits_spent_exact=spent,
        start=start,
        end=end,
        alternatives=list(alternatives) or None,
    )


def error_of(told: Problem) -> SulqError:
    """The exception that local code would have raised; `credits_spent`, `code` and `hint` on it."""
    error = _raised(told)
    for name, value in (
        ("credits_spent", told.credits_spent_exact),
        ("code", told.code),
        ("hint", told.hint),
    ):
        setattr(error, name, value)
    return error


def _raised(told: Problem) -> SulqError:
    match told.code:
        case "invalid_query" | "too_large":
            return InvalidQuery(
                told.detail,
                start=told.start,
                end=told.end,
                alternatives=tuple(told.alternatives or ()),
            )
        case "budget_spent":
            return BudgetSpent(told.detail)
        case "unsafe_exactly":
            return UnsafeExactly(told.detail)
        case "engine_failed":
            return EngineFailed()
        case "internal":
            return Unreachable(told.detail)
    return Refused(told.detail)
