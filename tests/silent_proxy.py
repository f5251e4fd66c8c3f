"""A proxy in front of a PostgreSQL server that can go silent: it takes everything, passes nothing.

with silent_proxy(server) as proxy:
    proxy.mute_at(b"COMMIT")        # the next connection that says so hears nothing more
    proxy.url("postgres")
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.postgres_server import PostgresServer


class SilentProxy:
    def __init__(self, target: Path) -> None:
        self._target = str(target)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self._sockets: list[socket.socket] = [self._listening]
        self._mark: bytes | None = None
        self._always = False
        self._lost: list[socket.socket] = []
        self.muted = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def mute_at(self, mark: bytes, *, always: bool = False) -> None:
        self._mark, self._always = mark, always

    def heal(self) -> None:
        """Pass everything on again; what was muted is broken off at the server's end."""
        self._mark = None
        for server in self._lost:
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
        self._lost.clear()

    def url(self, database: str = "postgres", table: str | None = None) -> str:
        path = database if table is None else f"{database}/{table}"
        return f"postgresql://postgres@127.0.0.1:{self.port}/{path}?sslmode=disable"

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._target)
                self._sockets += [client, server]
                silent = threading.Event()
                for ends in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._pass, args=(*ends, silent), daemon=True).start()

    def _pass(
        self, source: socket.socket, sink: socket.socket, asks: bool, silent: threading.Event
    ) -> None:
        with suppress(OSError):
            while said := source.recv(65_536):
                if asks and self._mark is not None and self._mark in said:
                    silent.set()
                    self._lost.append(sink)
                    self.muted += 1
                    if not self._always:
                        self._mark = None
                if not silent.is_set():
                    sink.sendall(said)
        with suppress(OSError):
            if not silent.is_set():
                sink.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        for one in self._sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


@contextmanager
def silent_proxy(server: PostgresServer) -> Iterator[SilentProxy]:
    proxy = SilentProxy(server.folder / ".s.PGSQL.5432")
    try:
        yield proxy
    finally:
        proxy.close()
