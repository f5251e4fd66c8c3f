"""The outermost layer: limits before anything is read, headers and a log line after all is said."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sulq.report.style import SHA256
from sulq.server.limits import Settings, check_depth, check_keys, check_length
from sulq.server.logs import Log, place_of
from sulq.server.metrics import Metrics
from sulq.server.problems import Problem, internal, reply_of

HEADERS = {
    "content-security-policy": (
        f"default-src 'none'; script-src 'self'; style-src 'self' 'sha256-{SHA256}';"
        " img-src 'self' data:;"
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


class Edge:
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
        except Problem as problem:
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
            raise Problem(408, "too_slow", "the request did not arrive in time") from None
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
