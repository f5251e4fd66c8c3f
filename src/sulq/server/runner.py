"""Connections that ask nothing are closed: uvicorn waits for a first request for ever."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

FIRST = 20.0
"""Seconds from the connection to the end of the first request's header."""

if TYPE_CHECKING:
    Protocol = Any
else:
    Protocol = AutoHTTPProtocol


class IdleTimeoutProtocol(Protocol):  # type: ignore[misc]
    """As uvicorn's, with a deadline for the first request."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.first = self.loop.call_later(FIRST, self.give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        self.first.cancel()
        super().connection_lost(exc)

    def give_up(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()
