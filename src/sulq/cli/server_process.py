"""A server in this process, from an open socket to a clean stop."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from sulq.database import Database
from sulq.database.audit import noted_replay
from sulq.errors import InvalidQuery, Refused
from sulq.report import asked, audit_report
from sulq.server.app import create_app
from sulq.server.auth.tokens import Access, Role
from sulq.server.limits import Settings
from sulq.server.local_control import announced
from sulq.server.middleware import Log
from sulq.server.postgres.listener import PostgresPort
from sulq.server.service.catalog import Tables

PORT = 8765
GRACE = 30
"""Seconds that replies which have begun get when the server is stopped."""
FIRST = 20.0
"""Seconds from the connection to the end of the first request's header."""

if TYPE_CHECKING:
    Protocol = Any
else:
    Protocol = AutoHTTPProtocol


@dataclass(frozen=True, slots=True)
class Where:
    """What to listen on."""

    host: str = "127.0.0.1"
    port: int = PORT
    certificate: Path | None = None
    key: Path | None = None

    @property
    def local(self) -> bool:
        """True if nobody on another machine can connect."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def encrypted(self) -> bool:
        return self.certificate is not None

    def check(self) -> None:
        """TLS needs both files, readable and of one pair."""
        if (self.certificate is None) != (self.key is None):
            raise InvalidQuery("TLS wants --tls-cert and --tls-key, both or none")
        if self.certificate is None or self.key is None:
            return
        for file in (self.certificate, self.key):
            if not file.is_file():
                raise InvalidQuery(f"there is no file {file}; TLS wants PEM files")
        try:
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
                self.certificate, self.key
            )
        except (ssl.SSLError, OSError):
            raise InvalidQuery(
                f"{self.certificate} and {self.key} are not a certificate and its key, in PEM"
            ) from None

    def postgres_port(self, port: int) -> PostgresPort:
        """The port of PostgreSQL's protocol, at the same address and with the same certificate."""
        context = None
        if self.certificate is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(self.certificate, self.key)
        return PostgresPort(replace(self, port=port).listen(), context)

    def listen(self) -> socket.socket:
        """The socket, taken before any table is opened."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            listening = socket.create_server((self.host, self.port), family=family, backlog=512)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise Refused(
                f"cannot listen on {self.host}, port {self.port}: {why}; stop what listens there,"
                " or choose another with --port (0: any that is free)"
            ) from None
        # Taken over by each connection: a reply does not wait 40 ms for the client's delayed ACK.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening

    def host_and_port(self, listening: socket.socket) -> str:
        """Return where a socket of this address is reached, as host:port."""
        return self.address(listening.getsockname()[1]).partition("//")[2]

    def address(self, port: int) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        shown = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host)  # noqa: S104
        return f"http{'s' if self.encrypted else ''}://{shown}:{port}"


class IdleTimeoutProtocol(Protocol):  # type: ignore[misc]
    """The protocol of uvicorn with a deadline for the first request.

    uvicorn waits for ever for the first request of a connection; this closes connections that
    ask nothing.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.first = self.loop.call_later(FIRST, self.give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        self.first.cancel()
        super().connection_lost(exc)

    def give_up(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()


class _Server(uvicorn.Server):
    """As uvicorn's, but Ctrl-C and SIGTERM end it and nothing else: tables are closed after it."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_start = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and not self.should_exit:
            self._on_start()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: signal.signal(number, self.handle_exit)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@dataclass(frozen=True, slots=True)
class Started:
    """What is told when the server answers."""

    address: str
    link: str  # for the owner, once
    postgres: str | None  # where PostgreSQL's protocol is spoken
    stop: Callable[[], None]


def serve_tables(
    tables: Tables,
    where: Where,
    listening: socket.socket,
    *,
    settings: Settings,
    log: Log,
    started: Callable[[Started], None],
    extra: Callable[[Any], None] | None = None,
    postgres: PostgresPort | None = None,
) -> None:
    """Serve until somebody stops it; then everything that has begun is finished and stored."""
    no_core_files()
    with open_access() as access, ExitStack() as stack:
        token = access.lend("owner", Role.OWNER)  # good while this server runs
        app = create_app(
            tables, access, settings=settings, log=log, report=report_page, postgres=postgres
        )
        if extra is not None:
            extra(app)
        address = where.address(listening.getsockname()[1])
        server: list[_Server] = []

        def told() -> None:
            stack.enter_context(announced(tables, access, address, where.certificate))
            link = f"{settings.public_url or address}/enter#{access.link_code(token)}"
            wire = None if postgres is None else where.host_and_port(postgres.listening)
            stop = lambda: setattr(server[0], "should_exit", True)  # noqa: E731
            started(Started(address, link, wire, stop))

        config = uvicorn.Config(
            app,
            http=IdleTimeoutProtocol,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE,
            timeout_keep_alive=15,
            ssl_certfile=where.certificate,
            ssl_keyfile=where.key,
        )
        server.append(_Server(config, told))
        server[0].run(sockets=[listening])
        if not server[0].started:
            raise Refused("the server did not start; its log says why")


def report_page(database: Database, auditor: bool) -> str:
    """The audit report of a table that is open here: its chain was verified when it was opened.

    An auditor reads names too; the word of the noise test is the owner's."""
    account = database.statement()
    found = account.statement
    noted = noted_replay(found.ledger, found.table)
    return audit_report(
        account,
        [
            asked(entry.question, entry.noise, entry.charged.values())
            for entry in database.ledger.entries()
            if entry.charged
        ],
        public=False,
        auditor=auditor,
        noise_test=None if noted is None else noted.word,
        at=f"{datetime.now(UTC):%d %b %Y, %H:%M} UTC",
    )


@contextmanager
def open_access() -> Iterator[Access]:
    access = Access.open()
    try:
        yield access
    finally:
        access.close()


def no_core_files() -> None:
    """A crash must leave no copy of the memory behind: rows pass through it."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
