"""The outermost layer: limits before anything is read, headers and a log line after all is said."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TextIO

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sulq.report.style import SHA256
from sulq.server.errors import HttpProblem, internal, reply_of
from sulq.server.limits import Settings, check_depth, check_keys, check_length
from sulq.wire import MonitorLine


class Log:
    """Lines to a stream; a stream that fails stops nothing."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream, self._lock = stream, threading.Lock()

    def write(self, event: str, **facts: Any) -> None:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = json.dumps({"time": now, "event": event, **facts})
        with self._lock, suppress(OSError, ValueError):
            print(line, file=self._stream or sys.stderr, flush=True)


def place_of(error: BaseException) -> str:
    """Where something unforeseen happened: its class and line. Its message may quote anything."""
    frames = traceback.extract_tb(error.__traceback__)
    last = next(
        (f for f in reversed(frames) if "sulq" in f.filename), frames[-1] if frames else None
    )
    where = "" if last is None else f" at {last.filename.rpartition('sulq/')[2]}:{last.lineno}"
    return type(error).__name__ + where


# Counts of requests, for operators: by route and class of status. No data, no engine time.


class Metrics:
    """Thread-safe counts since the start."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lock, self._start = threading.Lock(), time.monotonic()

    def count(self, route: str, status: int) -> None:
        with self._lock:
            self._counts[route, f"{status // 100}xx"] += 1

    def text(self, tables: Sequence[MonitorLine] = ()) -> str:
        """Return the counts in the Prometheus text format; of `tables` what a monitor may see."""
        with self._lock:
            counts = sorted(self._counts.items())
        uptime = int(time.monotonic() - self._start)
        return "\n".join(
            [
                "# TYPE sulq_requests_total counter",
                *(
                    f'sulq_requests_total{{route="{route}",status="{status}"}} {number}'
                    for (route, status), number in counts
                ),
                "# TYPE sulq_uptime_seconds gauge",
                f"sulq_uptime_seconds {uptime}",
                *(["# TYPE sulq_credits_left gauge"] if tables else []),
                *(
                    f'sulq_credits_left{{table="{_label(line.name)}"}} {line.left:.6g}'
                    for line in tables
                    if line.left is not None
                ),
                "",
            ]
        )


def _label(text: str) -> str:
    """Return the text as the value of a Prometheus label."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


# Structured logs: one JSON object a line. When, which route, how it ended, who; nothing else.
#
# No value, no question, no token, no path as it was typed: a log must not become a second answer.


HEADERS = {
    "content-security-policy": (
        f"default-src 'none'; script-src 'self'; style-src 'self' 'sha256-{SHA256}';"
        " img-src 'self' data:; font-src 'self';"
        " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
"""On every reply; a route may say otherwise of caching.

The style sheet of the audit report is let in by its hash: the console opens the report as a page of
its own making (a blob), which has the policy of the page that made it.
"""
UNROUTED = "none"


class RequestGuard:
    """Every request passes here, and whatever goes wrong inside ends here."""

    def __init__(self, app: ASGIApp, settings: Settings, log: Log, metrics: Metrics) -> None:
        self.app, self.settings, self.log, self.metrics = app, settings, log, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        number = secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = number
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": _headers(message["headers"], number)}
            await send(message)

        wrong: dict[str, Any] = {}
        try:
            body = await self._body(scope, receive)
            await self.app(scope, _replayed(body, receive), sending)
        except HttpProblem as problem:
            if not status:
                await reply_of(problem)(scope, receive, sending)
        except Gone:
            status = status or 499
        except Exception as error:  # noqa: BLE001 - one constant sentence for all that is unforeseen
            wrong = {"error": place_of(error)}
            if not status:
                await reply_of(internal())(scope, receive, sending)
        route = getattr(scope.get("route"), "path", UNROUTED)
        caller = getattr(scope["state"].get("caller"), "name", None)
        self.metrics.count(route, status)
        self.log.write(
            "request",
            request=number,
            method=scope["method"] if scope["method"] in METHODS else "other",
            route=route,
            status=status,
            caller=caller,
            **wrong,
        )

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """The whole body, if it is small, flat and not endless."""
        stated = dict(scope["headers"]).get(b"content-length", b"0")
        check_length(int(stated) if stated.isdigit() else 0, self.settings)
        parts, length = [], 0
        try:
            async with asyncio.timeout(self.settings.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Gone
                    parts.append(message.get("body", b""))
                    length += len(parts[-1])
                    check_length(length, self.settings)
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            raise HttpProblem(408, "too_slow", "the request did not arrive in time") from None
        body = b"".join(parts)
        check_depth(body, self.settings)
        check_keys(body)
        return body


METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}


class Gone(Exception):
    """The client left before its request was complete."""


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body in one piece; afterwards only the end of the connection is to come."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _headers(found: list[tuple[bytes, bytes]], number: str) -> list[tuple[bytes, bytes]]:
    said = {name.lower() for name, _ in found}
    more = {**HEADERS, "x-request-id": number}
    return [
        *found,
        *(
            (name.encode(), text.encode())
            for name, text in more.items()
            if name.encode() not in said
        ),
    ]
