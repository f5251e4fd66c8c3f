"""problem+json (RFC 9457) read back: a client raises what local code raises."""

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


class Problem(BaseModel):
    """`credits_spent` is what the request charged before it failed; 0 of every refusal, null where
    only the same request, sent again with its key, can tell."""

    model_config = ConfigDict(frozen=True)
    type: str = "about:blank"
    title: str = ""
    status: int
    detail: str
    code: str
    hint: str = ""
    credits_spent: float | None = 0.0
    credits_spent_exact: Exact | None = Fraction(0)
    start: Annotated[int | None, Field(description="first letter meant, of a statement")] = None
    end: int | None = None
    alternatives: list[str] | None = None


class Unreachable(SulqError):
    """No reply came. `key` is what the request was sent under: with it, asking again is safe."""

    credits_spent: Fraction | None = None  # not known

    def __init__(self, said: str, key: str | None = None) -> None:
        super().__init__(said)
        self.key = key


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
        case "invalid_query" | "too_large" | "bad_request":
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
        case "too_noisy":
            return TooNoisy(told.detail)
        case "internal" | "out_of_order" | "too_slow":
            return Unreachable(told.detail)
    return Refused(told.detail)
