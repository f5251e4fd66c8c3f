"""Who may do what: bearer tokens, roles, and the one place that judges them."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import apsw
from fastapi import Request

from sulq.ledger.state import private_directory
from sulq.server.problems import not_for_this_role, unknown_token


class Role(StrEnum):
    OWNER = "owner"
    ANALYST = "analyst"
    AUDITOR = "auditor"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. Never the token itself."""

    name: str
    role: Role
    tables: frozenset[str] | None  # None: all
    token_id: str
    expires: int | None = None
    rate: Any = None


class Access:
    """Tokens by their hashes; CLI and server may use the file at once."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection, self._lock = connection, threading.Lock()
        self._codes: dict[str, tuple[str, float]] = {}

    @classmethod
    def open(cls, path: Path | None = None) -> Access:
        where = path or private_directory() / "access.sqlite"
        where.touch(0o600)
        connection = apsw.Connection(str(where))
        connection.set_busy_timeout(5_000)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS tokens (id TEXT PRIMARY KEY, hash BLOB, name TEXT,"
            " role TEXT, tables TEXT, expires INTEGER, revoked INTEGER DEFAULT 0)"
        )
        return cls(connection)

    def close(self) -> None:
        self._connection.close()

    def issue(
        self,
        name: str,
        role: Role,
        tables: frozenset[str] | None = None,
        expires: int | None = None,
        rate: Any = None,
    ) -> str:
        """A new token; only its hash is kept."""
        token = "sulq_" + secrets.token_urlsafe(32)
        held = None if tables is None else "\n".join(sorted(tables))
        with self._lock:
            self._connection.execute(
                "INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, 0)",
                (secrets.token_hex(8), _hash(token), name, str(role), held, expires),
            )
        return token

    def caller(self, token: str) -> Caller | None:
        """Who holds this token; None for unknown, ended and revoked alike."""
        wanted, found = _hash(token), None
        with self._lock:
            rows: list[Any] = self._connection.execute(
                "SELECT hash, name, role, tables, id, expires, revoked FROM tokens"
            ).fetchall()
        for held, name, role, tables, number, expires, revoked in rows:
            good = not revoked and (expires is None or expires > time.time())
            if hmac.compare_digest(held, wanted) and good:
                scope = None if tables is None else frozenset(tables.split("\n"))
                found = Caller(name, Role(role), scope, number, expires)
        return found

    def link_code(self, caller_token: str) -> str:
        """A one-time code for /enter#code: ten minutes, once; kept in memory only."""
        code = secrets.token_urlsafe(16)
        with self._lock:
            self._codes[code] = (caller_token, time.monotonic() + 600)
        return code

    def redeem(self, code: str) -> str | None:
        with self._lock:
            token, until = self._codes.pop(code, ("", 0.0))
        return token if token and time.monotonic() < until else None

    def allow(self, caller: Caller) -> float:
        """0, or seconds to wait."""
        return 0.0


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


def require(*roles: Role) -> Callable[[Request], Awaitable[Caller]]:
    """A route's dependency: the caller, if the token is good and has one of these roles."""

    async def judge(request: Request) -> Caller:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise unknown_token()
        caller: Caller | None = request.app.state.access.caller(token.strip())
        if caller is None:
            raise unknown_token()
        request.state.caller = caller
        if caller.role not in roles:
            raise not_for_this_role(str(caller.role))
        return caller

    judge.roles = frozenset(roles)  # type: ignore[attr-defined]
    return judge
