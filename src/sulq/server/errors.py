"""Errors as application/problem+json: what was got, what is wanted, what was spent. RFC 9457."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from sulq.errors import EngineFailed, InvalidQuery, Reason, SulqError, codes_of

MEDIA = "application/problem+json"
TITLES = {
    400: "Bad request",
    401: "Not signed in",
    402: "Budget spent",
    403: "Refused",
    404: "Not found",
    405: "Method not allowed",
    406: "Not acceptable",
    408: "Too slow",
    409: "Conflict",
    413: "Too large",
    422: "Not understood",
    429: "Too many requests",
    500: "Internal error",
    503: "Out of order",
}
CODES = {
    400: "bad_request",
    401: "unknown_token",
    403: "refused",
    404: "not_found",
    405: "method_not_allowed",
    408: "too_slow",
    413: "too_large",
    422: "invalid_query",
    429: "too_many",
}
AGAIN = "it may have been charged: send it again with the same key, and it is charged once"
INTERNAL = "something went wrong here; the owner's log has the request's number"


@dataclass(eq=False)  # not frozen: raising sets its traceback
class HttpProblem(Exception):
    """A reply that is an error."""

    status: int
    code: str
    detail: str
    hint: str = ""
    credits_spent: Fraction | None = Fraction(0)  # None: not known
    more: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    reason: Reason | None = None

    def to_json(self) -> dict[str, Any]:
        spent = self.credits_spent
        why = {} if self.reason is None else {"reason": self.reason.value}
        return {
            "type": "about:blank",
            "title": TITLES.get(self.status, "Error"),
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            "hint": self.hint,
            "credits_spent": None if spent is None else float(spent),
            "credits_spent_exact": None if spent is None else str(spent),
            **why,
            **self.more,
        }


def problem_of(error: SulqError, credits_spent: Fraction = Fraction(0)) -> HttpProblem:
    """What a refusal is called over HTTP."""
    found = codes_of(error)
    hint = found.hint
    if credits_spent and not isinstance(error, EngineFailed):
        hint = "what was charged stands; `sulq ledger` and GET ledger list it"
    more: dict[str, Any] = {"about": error.about} if error.about else {}
    text = str(error)
    if isinstance(error, InvalidQuery):
        text = error.text  # the place goes beside it
        places = {"start": error.start, "end": error.end}
        more |= {name: place for name, place in places.items() if place is not None}
        if error.alternatives:
            more["alternatives"] = list(error.alternatives)
    return HttpProblem(
        found.status, found.code, text, hint, credits_spent, more, reason=error.reason
    )


def out_of_order() -> HttpProblem:
    """The books cannot be written; one text, whatever the reason."""
    return HttpProblem(
        503,
        "out_of_order",
        "the books cannot be written just now, and nothing is answered without them",
        AGAIN,
        None,
        headers={"Retry-After": "1"},
    )


def internal() -> HttpProblem:
    """Something unforeseen: one sentence for all of it, before or after a charge."""
    return HttpProblem(500, "internal", INTERNAL, AGAIN, None)


def not_found(what: str) -> HttpProblem:
    return HttpProblem(404, "not_found", what, "GET /v1/tables lists what there is for you")


def unknown_token() -> HttpProblem:
    """One text for unknown, ended and revoked tokens alike."""
    return HttpProblem(
        401,
        "unknown_token",
        "no token that is good here was given; ask the owner for a new one (`sulq grant`)",
        "send Authorization: Bearer TOKEN; the owner gives tokens out with `sulq grant`",
        headers={"WWW-Authenticate": "Bearer"},
    )


def not_for_this_role(role: str) -> HttpProblem:
    return HttpProblem(
        403,
        "not_for_this_role",
        f"this is not for the role {role}",
        "use a token of another role",
    )


def reply_of(problem: HttpProblem) -> Response:
    return JSONResponse(
        problem.to_json(), problem.status, headers=dict(problem.headers), media_type=MEDIA
    )


def handle_problems(app: FastAPI) -> None:
    """Every error leaves as problem+json; what was not foreseen is left to the edge."""

    async def known(_: Request, error: Exception) -> Response:
        assert isinstance(error, HttpProblem)  # noqa: S101
        return reply_of(error)

    async def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, SulqError)  # noqa: S101
        return reply_of(problem_of(error))

    async def malformed(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101
        problem = HttpProblem(422, "invalid_query", _said(error), "see /docs for the fields")
        problem.reason = Reason.INVALID_VALUE
        return reply_of(problem)

    async def routing(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101
        status = error.status_code
        code = CODES.get(status, "refused")
        return reply_of(
            HttpProblem(status, code, str(error.detail), "see /docs", headers=error.headers or {})
        )

    app.add_exception_handler(HttpProblem, known)
    app.add_exception_handler(SulqError, refused)
    app.add_exception_handler(RequestValidationError, malformed)
    app.add_exception_handler(HTTPException, routing)


def _place(loc: Sequence[object]) -> str:
    """The field as its sender wrote it; that it was in the body goes without saying."""
    inside = loc[1:] if len(loc) > 1 and loc[0] == "body" else loc
    return ".".join(map(str, inside))


def _said(error: RequestValidationError) -> str:
    """Where and what, never the input itself."""
    found = [
        f"{_place(fault['loc'])}: {fault.get('ctx', {}).get('error', fault['msg'])}"
        for fault in error.errors()[:5]
    ]
    return "; ".join(found)[:1_000] or "the request is malformed"
