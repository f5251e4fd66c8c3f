"""problem+json (RFC 9457) read back: a client raises what local code raises."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from sulq.errors import (
    ERROR_CODES,
    EngineFailed,
    InvalidQuery,
    Reason,
    Refused,
    SulqError,
    Unreachable,
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
    reason: Annotated[str | None, Field(description="why, of a closed list: errors.Reason")] = None
    about: Annotated[dict[str, str] | None, Field(description="what the reason names")] = None


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


KINDS = {codes.code: kind for kind, codes in ERROR_CODES.items() if isinstance(kind, type)} | {
    "refused": Refused,
    **dict.fromkeys(("too_large", "bad_request"), InvalidQuery),
    **dict.fromkeys(("internal", "out_of_order", "too_slow"), Unreachable),
}
"""The class of each problem code."""


def _raised(told: Problem) -> SulqError:
    kind = KINDS.get(told.code, Refused)
    if kind is EngineFailed:
        return EngineFailed()
    error = kind(told.detail)
    if isinstance(error, InvalidQuery):
        error.start, error.end = told.start, told.end
        error.alternatives = tuple(told.alternatives or ())
    if told.reason in set(Reason):  # a newer server may know more
        error.reason = Reason(told.reason)
    error.about = told.about or {}
    return error
