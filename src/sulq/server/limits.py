"""What a request may be, by public rules alone: its bytes, its nesting, and how wide its answer."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.schema.bind import BoundQuery
from sulq.server.errors import HttpProblem

_TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BRACKETS = re.compile(rb"[\[\]{}]")


@dataclass(frozen=True, slots=True)
class Settings:
    """What an operator may choose."""

    threads: int = 16  # answers under way: each keeps its thread until it may be stored
    each: int = 4  # of them, of one caller
    most_bytes: int = 1_000_000
    most_depth: int = 256
    most_sums: int = 200_000
    most_planned: int = 500  # questions of one plan
    most_waiting: int = 1_000
    body_seconds: float = 30.0
    reservation_idle: float = 3_600.0
    most_seconds: float = 60.0  # that a reply to an open-ended question is held
    reply_days: int = 30
    pacing: bool = True
    public_url: str | None = None  # where others reach it, if through a proxy
    delay: str | None = None  # instead of the clock: seconds that one row may add, S4.5


def check_length(length: int, settings: Settings) -> None:
    if length > settings.most_bytes:
        raise HttpProblem(
            413,
            "too_large",
            f"the request has more than {settings.most_bytes:,} bytes",
            "ask in several requests",
        )


def check_depth(body: bytes, settings: Settings) -> None:
    """Refuse what is nested too deeply, before anything tries to read it."""
    most = settings.most_depth
    if body.count(b"[") + body.count(b"{") <= most:
        return
    depth = 0
    for bracket in _BRACKETS.finditer(_TEXTS.sub(b"", body)):
        depth += 1 if bracket.group() in b"[{" else -1
        if depth > most:
            raise HttpProblem(
                413,
                "too_large",
                f"the request is nested deeper than {most}",
                "flatten the question",
            )


def check_keys(body: bytes) -> None:
    """Refuse a JSON object that names a field twice: readers differ in which of the two counts."""
    with suppress(ValueError):  # what is no JSON is said where it is read
        json.loads(body, object_pairs_hook=_once, parse_int=str, parse_float=str)


def _once(pairs: list[tuple[str, object]]) -> None:
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise HttpProblem(
                400,
                "bad_request",
                f"the field {name!r:.60} is given twice in one object of the request",
                "send each field once",
            )
        seen.add(name)


def check_together(bounds: Sequence[BoundQuery], settings: Settings) -> None:
    """Refuse a plan that takes long to price, which is free; the questions and the schema decide.

    Each question is priced next to all others that share its sums.
    """
    sums = sum(_sums(bound) for bound in bounds)
    if sums > settings.most_sums or len(bounds) > settings.most_planned:
        raise InvalidQuery(
            f"this plan has {len(bounds):,} questions with {sums:,} sums, more than the"
            f" {settings.most_planned:,} and {settings.most_sums:,} that are priced over HTTP;"
            " make several plans",
            reason=Reason.TOO_LARGE,
        )


def _sums(bound: BoundQuery) -> int:
    return bound.cells * max(1, len(bound.terms))


def check_width(bound: BoundQuery, settings: Settings) -> None:
    """Refuse an answer too wide to send; the question and the schema decide."""
    sums = _sums(bound)
    if sums > settings.most_sums:
        raise InvalidQuery(
            f"this answer has {sums:,} sums, more than the {settings.most_sums:,} that are sent"
            " over HTTP; group by fewer columns, or by coarser bins",
            reason=Reason.TOO_LARGE,
        )
