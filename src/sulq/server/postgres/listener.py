"""The port of the PostgreSQL door: who is let in, for how long, and how it is closed."""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sulq.server.auth.tokens import Caller
from sulq.server.executor import Workers
from sulq.server.middleware import Log, Metrics, place_of
from sulq.server.postgres import protocol
from sulq.server.postgres.catalogue import CatalogueProcess
from sulq.server.postgres.protocol import (
    ConnectionEnded,
    MessageBody,
    MessageReader,
    ProtocolViolation,
    WireError,
)
from sulq.server.postgres.session import FatalError, WireSession
from sulq.server.service.session import Service

FIRST = 20.0
"""Seconds from the connection to the end of its password."""
MOST = 256
"""Connections at once; of one token at most half of them, of who has shown none a quarter."""
GRACE = 30.0
"""Seconds that statements which have begun get when the server is stopped."""


@dataclass(frozen=True, slots=True)
class PostgresPort:
    """A socket that listens, and the certificate for it."""

    listening: socket.socket
    tls: ssl.SSLContext | None = None


class Listener:
    """Takes connections until it is closed. On one event loop."""

    def __init__(
        self, port: PostgresPort, service: Service, workers: Workers, log: Log, metrics: Metrics
    ) -> None:
        self._port, self._service, self._workers = port, service, workers
        self._log, self._metrics = log, metrics
        self._catalogue = CatalogueProcess()
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[Any], WireSession | None] = {}

    async def start(self) -> None:
        # Taken over by each connection. Else a reply waits 40 ms for the client's delayed ACK:
        # asyncio asks for this only where the socket names TCP as its protocol.
        self._port.listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._server = await asyncio.start_server(
            self._connected, sock=self._port.listening, limit=protocol.CHUNK
        )

    async def close(self) -> None:
        """Take no more connections, let what has begun end, and close the others."""
        if self._server is not None:
            self._server.close()
        busy = [task for task, session in self._connections.items() if session and session.busy]
        for task in list(self._connections):
            if task not in busy:
                task.cancel()
        if busy:
            await asyncio.wait(busy, timeout=GRACE)
        for task in list(self._connections):
            task.cancel()
        if self._connections:
            await asyncio.wait(list(self._connections), timeout=1)
        self._catalogue.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101
        how, wrong = "closed", {}
        session: WireSession | None = None
        try:
            self._connections[task] = None
            full = self._make_room()
            session = await self._let_in(reader, writer, full)
            if session is not None:
                self._connections[task] = session
                await session.flush()
                await session.run()
        except (ProtocolViolation, WireError) as error:
            how = error.state
            self._farewell(writer, error)
        except FatalError as error:
            how = error.error.state
            self._farewell(writer, error.error)
        except (ConnectionEnded, OSError, TimeoutError, asyncio.CancelledError):
            how = "left"
        except Exception as error:  # noqa: BLE001 - one constant sentence for all that is unforeseen
            how, wrong = "XX000", {"error": place_of(error)}
            self._farewell(writer, WireError("XX000", "something went wrong; connect again"))
        finally:
            self._connections.pop(task, None)
            caller = None if session is None or session.caller is None else session.caller.name
            self._metrics.count("postgres", 500 if wrong else 200)
            self._log.write(
                "postgres", connection=secrets.token_hex(8), ended=how, caller=caller, **wrong
            )
            await _closed(writer)

    def _unforeseen(self, error: Exception) -> None:
        self._metrics.count("postgres", 500)
        self._log.write("postgres", error=place_of(error))

    def _make_room(self) -> bool:
        """Close who has waited longest without a token, so that idle strangers keep nobody out;
        True if those who have shown one fill their places."""
        strangers = [task for task, session in self._connections.items() if session is None]
        places = max(1, MOST // 4)
        for task in strangers[: max(0, len(strangers) - places)]:
            task.cancel()
        return len(self._connections) - len(strangers) >= MOST - places

    def _check_share(self, caller: Caller) -> None:
        """Refuse a token that has half of all places: others want to connect too."""
        held = [each.caller for each in self._connections.values() if each is not None]
        mine = sum(each is not None and each.token_id == caller.token_id for each in held)
        if mine >= MOST // 2:
            raise WireError("53300", "too many connections of this token; close some")

    async def _let_in(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, full: bool
    ) -> WireSession | None:
        """Return the session of who has shown a token; None of who only wanted to cancel."""
        settings = self._service.settings
        messages = MessageReader(reader, settings.most_bytes, settings.body_seconds)
        encrypted = False
        async with asyncio.timeout(FIRST):
            while True:
                code, body = await messages.startup()
                if code == protocol.CANCEL_REQUEST:
                    return None  # what has begun is charged, answered and stored
                if code not in (protocol.SSL_REQUEST, protocol.GSS_REQUEST):
                    break
                if encrypted or not messages.is_empty:
                    raise ProtocolViolation("bytes came before TLS had begun")
                if code == protocol.GSS_REQUEST or self._port.tls is None:
                    writer.write(b"N")
                    await writer.drain()
                    continue
                writer.transport.pause_reading()  # type: ignore[attr-defined]
                writer.write(b"S")
                await writer.start_tls(self._port.tls)
                encrypted = True
            if code >> 16 != 3:
                raise ProtocolViolation("this server speaks version 3 of the protocol")
            options = protocol.startup_options(body)
            if not encrypted and not _is_loopback(writer):
                raise WireError(
                    "28000",
                    "TLS is required from other machines: the password is a token",
                    "connect with sslmode=require; the server needs --tls-cert and --tls-key",
                )
            if full:
                raise WireError("53300", "too many connections; wait, and connect again")
            writer.write(protocol.PASSWORD_WANTED)
            await writer.drain()
            letter, answer = await messages.message(FIRST)
            if letter != "p":
                raise ProtocolViolation("a password was expected")
            token = MessageBody(answer).text()
            parts = self._service, self._workers, self._catalogue
            session = WireSession(*parts, messages, writer, self._unforeseen)
            self._check_share(session.authenticate(token))
            session.welcome(options)
        return session

    def _farewell(self, writer: asyncio.StreamWriter, error: WireError) -> None:
        with suppress(OSError, RuntimeError):
            writer.write(protocol.error_response(error, "FATAL"))


async def _closed(writer: asyncio.StreamWriter) -> None:
    with suppress(OSError, TimeoutError, ssl.SSLError, asyncio.CancelledError):
        async with asyncio.timeout(2):
            await writer.drain()
            writer.close()
            await writer.wait_closed()
    writer.transport.abort()


def _is_loopback(writer: asyncio.StreamWriter) -> bool:
    peer = writer.get_extra_info("peername")
    try:
        return ipaddress.ip_address(peer[0]).is_loopback
    except (ValueError, TypeError, IndexError):
        return False
