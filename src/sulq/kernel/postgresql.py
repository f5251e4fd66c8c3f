"""Connections to PostgreSQL that give up on a network that has gone silent.

Limits on the server end what the server does; they say nothing to a client that no word reaches any
more. Three limits on this side do: `connect_timeout` while connecting; TCP's own, for what was sent
and is not acknowledged (`tcp_user_timeout`) and for idle connections (keepalives); and a limit on
silence while a statement is under way, for a proxy that acknowledges everything and passes nothing
on. What an address says of the first two is kept.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

from sulq.errors import Refused

OLDEST = 140_000
UNACKNOWLEDGED = 15
"""Seconds after which TCP gives up on a peer that acknowledges nothing."""
LIMITS = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": UNACKNOWLEDGED * 1000,
}


def driver(needed_by: str) -> Any:
    """psycopg, or `Refused` with how to install it."""
    try:
        import psycopg
    except ImportError:
        psycopg = None  # type: ignore[assignment]
    if psycopg is None:
        raise Refused(f"{needed_by} needs psycopg: pip install 'sulq[postgres]'")
    return psycopg


def connect(server: str, *, seconds: int, silence: float, name: str, needed_by: str) -> Any:
    """A connection in autocommit, made within `seconds`.

    A statement fails with `OperationalError` once the server has said nothing for its `silence`
    seconds, an attribute of the connection; such a connection is of no more use.
    """
    psycopg = driver(needed_by)
    said = psycopg.conninfo.conninfo_to_dict(server)
    wanted = {"connect_timeout": seconds, **LIMITS}
    limits = {key: value for key, value in wanted.items() if key not in said}
    connection = _class(psycopg).connect(
        server,
        autocommit=True,
        prepare_threshold=None,
        client_encoding="UTF8",
        application_name=name,
        **limits,
    )
    connection.silence = silence
    if connection.info.server_version < OLDEST:
        connection.close()
        raise Refused("PostgreSQL 14 or later is needed; upgrade the server")
    return connection


_made: list[Any] = []


def _class(psycopg: Any) -> Any:
    """psycopg's connection with a limit on silence; made when the driver is first there."""
    if not _made:

        class Impatient(psycopg.Connection):  # type: ignore[misc]
            silence: float = 60.0

            def wait(self, gen: Any, *given: Any, **more: Any) -> Any:
                return super().wait(self._heard(gen), *given, **more)

            def _heard(self, gen: Any) -> Generator[Any, Any, Any]:
                """The same exchange, ended when nothing has come for too long."""
                heard = time.monotonic()
                try:
                    wanted = next(gen)
                    while True:
                        ready = yield wanted
                        if ready:
                            heard = time.monotonic()
                        elif time.monotonic() - heard > self.silence:
                            gen.close()
                            raise psycopg.OperationalError("the server has gone silent")
                        wanted = gen.send(ready)
                except StopIteration as done:
                    return done.value

        _made.append(Impatient)
    return _made[0]
