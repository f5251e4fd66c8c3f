"""Who may do what: bearer tokens, roles, and the one place that judges them.

A token is 256 bits of the operating system; only its SHA-256 is kept, in one SQLite file that
server and command line use at once. It reaches the tables that it was given for, known by the
random ids of their publishing: another table of the same name is another table. At each of them it
has a role. Only a token that a server lends in its own memory reaches all of its tables. Guide:
docs/guides/access.md.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import threading
import time
import unicodedata
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import apsw
from fastapi import Request

from sulq.errors import InvalidQuery, Refused
from sulq.kernel.ledger.state_dir import private_directory
from sulq.server.auth.rate_limit import Buckets, Rate, too_often
from sulq.server.errors import not_for_this_role, unknown_token

APPLICATION = 0x73756C61  # "sula"
FORMAT = 3
LINK_SECONDS = 600.0
MOST_LINKS = 1_000
BUSY = 5.0
"""Seconds to wait for other processes at the file."""
STARTED = time.time(), time.monotonic()
_NAME = re.compile(r"[\w.@+-](?:[\w .@+-]{0,62}[\w.@+-])?")
Write = Callable[..., apsw.Cursor]
_COLUMNS = "id, hash, name, role, tables, created, expires, rate, revoked, others"


class Role(StrEnum):
    """What a token may do: at a table, or (monitor) watch the server and reach no table."""

    OWNER = "owner"
    ANALYST = "analyst"
    AUDITOR = "auditor"
    MONITOR = "monitor"


AT_TABLES = (Role.OWNER, Role.ANALYST, Role.AUDITOR)
"""The roles that somebody has at a table."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. Never the token itself."""

    name: str
    role: Role
    tables: frozenset[str] | None  # ids of published tables; None: all of this server
    token_id: str
    expires: int | None = None
    rate: Rate | None = None
    others: Mapping[str, Role] = field(default_factory=dict)  # tables with another role

    @property
    def roles(self) -> frozenset[Role]:
        """Every role that the token has at some table."""
        if not self.tables:
            return frozenset({self.role})
        return frozenset(self.others.get(table, self.role) for table in self.tables)

    def at(self, table: str) -> Caller:
        """Return the caller with the role that the token has at the table of this id."""
        return replace(self, role=self.others.get(table, self.role))


@dataclass(frozen=True, slots=True)
class TokenLine:
    """What is told of a token; nobody can make one of it."""

    token_id: str
    name: str
    role: Role
    tables: Mapping[str, str]  # ids of published tables, and what they were called
    created: int
    expires: int | None
    rate: Rate | None
    state: str  # good, ended, revoked
    others: Mapping[str, Role] = field(default_factory=dict)  # tables with another role

    def role_at(self, table: str) -> Role:
        """Return the role that it has at the table of this id."""
        return self.others.get(table, self.role)

    def reaches(self, ledger: str, table: str | None = None) -> bool:
        """True if it was given for a table of this ledger, or for that one, withdrawn since too."""
        return bool(self.reached(ledger, table))

    def reached(self, ledger: str, table: str | None = None) -> set[str]:
        """Return the ids of the tables of this ledger, or of that table, that it was given for."""
        known = ((identity, *identity.partition("/")) for identity in self.tables)
        return {
            identity
            for identity, book, _, name in known
            if book.partition(".")[0] == ledger and table in (None, name)
        }

    def to_json(self, only: str | None = None) -> dict[str, Any]:
        """`only`: what the owner of the table of this id is told, nothing of other tables."""
        tables = {
            name: str(self.role_at(table))
            for table, name in self.tables.items()
            if only in (None, table)
        }
        return {
            "id": self.token_id,
            "name": self.name,
            "role": str(self.role if only is None else self.role_at(only)),
            "tables": sorted(tables),
            "roles": tables,
            "created": self.created,
            "expires": self.expires,
            "rate": None if self.rate is None else str(self.rate),
            "state": self.state,
        }


def check_name(name: object) -> str:
    """A name that people can read, type and put into an address."""
    if isinstance(name, str):
        spelled = unicodedata.normalize("NFC", name)
        if _NAME.fullmatch(spelled):
            return spelled
    raise InvalidQuery(
        f"got the name {name!r:.40}, wanted 1 to 64 letters, digits, blanks inside, or . _ @ + -"
    )


class Access:
    """Tokens by their hashes. Thread-safe; CLI and server may use the file at once."""

    def __init__(self, path: Path) -> None:
        # two: who asks must not wait for a writer
        self._reader, self._writer = _connected(path), _connected(path)
        self._reading, self._writing = threading.Lock(), threading.Lock()
        self._links: dict[bytes, tuple[str, float]] = {}
        self._lent: dict[bytes, Caller] = {}
        self._buckets = Buckets()

    @classmethod
    def open(cls, path: Path | None = None) -> Access:
        """The file of this machine's state directory, or another; made if missing, 0600."""
        where = path or private_directory() / "access.sqlite"
        try:
            where.touch(0o600)
            where.chmod(0o600)
            return cls(where)
        except (OSError, apsw.Error):
            raise Refused(f"{where} cannot be opened; check path and rights") from None

    def close(self) -> None:
        with self._reading, self._writing:
            self._reader.close()
            self._writer.close()
            self._links.clear()
            self._lent.clear()

    # --- giving and taking ----------------------------------------------------------------------

    def issue(
        self,
        name: str,
        role: Role,
        tables: Mapping[str, str],
        expires: int | None = None,
        rate: Rate | None = None,
    ) -> str:
        """A new token; only its hash is kept. `expires`: seconds since 1970.

        `tables`: the ids that their ledgers know them by, and their names for people.
        """
        spelled = check_name(name)
        if role == Role.ANALYST and spelled == Role.OWNER:
            raise InvalidQuery("an analyst has a name other than 'owner'")
        if (role == Role.MONITOR) != (not tables):
            raise InvalidQuery("a monitor's token reaches no table, every other at least one")
        if expires is not None and expires <= time.time():
            raise InvalidQuery("a token must end in the future")
        token = _new_token()
        held = json.dumps(dict(tables), sort_keys=True)
        kept = (str(role), held, int(time.time()), expires, None if rate is None else str(rate))
        with self._changing() as write:
            write(
                f"INSERT INTO tokens ({_COLUMNS})"  # noqa: S608
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, '{}')",
                (secrets.token_hex(8), _hash(token), spelled, *kept),
            )
        return token

    def check_carries(self, token_id: str, name: str, table: str, role: Role) -> None:
        """Refuse a table, known by its id, that cannot be added to this token.

        One text, whether the token is not there, not of this name or has other roles elsewhere.
        """
        with self._changing() as write:
            self._carrying(write, token_id, check_name(name), table, role)

    def carry(self, token_id: str, name: str, table: Mapping[str, str], role: Role) -> None:
        """Let a token that was given out reach one table more, with a role of its own there.

        `table`: its id, and its name for people.
        """
        ((identity, called),) = table.items()
        with self._changing() as write:
            line = self._carrying(write, token_id, check_name(name), identity, role)
            others = dict(line.others) if role == line.role else {**line.others, identity: role}
            write(
                "UPDATE tokens SET tables = ?1, others = ?2 WHERE id = ?3",
                (
                    json.dumps({**line.tables, identity: called}, sort_keys=True),
                    json.dumps(others, sort_keys=True),
                    token_id,
                ),
            )

    @staticmethod
    def _carrying(write: Write, token_id: str, name: str, table: str, role: Role) -> TokenLine:
        row = write(f"SELECT {_COLUMNS} FROM tokens WHERE id = ?", (token_id,)).fetchone()  # noqa: S608
        line = None if row is None else _line(row)
        known = line is not None and line.state == "good" and line.name == name
        if line is not None and known and line.role != Role.MONITOR:
            roles = {line.role_at(held) for held in line.tables if held != table} | {role}
            same = table not in line.tables or line.role_at(table) == role
            if same and not roles >= {Role.OWNER, Role.ANALYST}:
                return line
        raise Refused(
            f"no good token {token_id!r:.40} of {name!r} can carry this table as {role}: a token"
            " has one role at a table, is never owner of one and analyst of another, and that of a"
            " monitor reaches none; give another token"
        )

    def lend(self, name: str, role: Role) -> str:
        """A token for all tables of this server, good in this process only and written nowhere."""
        token = _new_token()
        with self._reading:
            self._lent[_hash(token)] = Caller(name, role, None, secrets.token_hex(8))
        return token

    def revoke(self, name: str, table: str | None = None) -> int:
        """End the tokens of a name at once, or their reach into one table; how many it met."""
        spelled, met = check_name(name), 0
        with self._changing() as write:
            for line in self._good(write, spelled, table):
                lost = line.tables.keys() if table is None else {table}
                _take_away(write, line, lost)
                met += 1
        return met

    def end(self, token_id: str) -> str | None:
        """End one token at once; whose it was, None if there is no such good one."""
        with self._changing() as write:
            row = write(f"SELECT {_COLUMNS} FROM tokens WHERE id = ?", (token_id,)).fetchone()  # noqa: S608
            line = None if row is None else _line(row)
            if line is None or line.state != "good":
                return None
            write("UPDATE tokens SET revoked = ? WHERE id = ?", (int(time.time()), token_id))
        return line.name

    def end_ledger(self, ledger: str, table: str | None = None) -> int:
        """End the reach of every token into the tables of this ledger, or into that one; how many
        there were. A token that reaches others too stays good for those."""
        met = 0
        with self._changing() as write:
            rows = write(f"SELECT {_COLUMNS} FROM tokens").fetchall()  # noqa: S608
            for line in map(_line, rows):
                lost = line.reached(ledger, table)
                if lost and line.state == "good":
                    _take_away(write, line, lost)
                    met += 1
        return met

    def change(
        self,
        name: str,
        table: str | None = None,
        *,
        expires: int | None = None,
        rate: Rate | None = None,
    ) -> int:
        """Another end or rate for the good tokens of a name; how many it met.

        Of one table: those that reach no other, which is somebody else's to rule.
        """
        spelled = check_name(name)
        if expires is not None and expires <= time.time():
            raise InvalidQuery("a token must end in the future; to end it now, revoke it")
        with self._changing() as write:
            met = [
                line.token_id
                for line in self._good(write, spelled, table)
                if table is None or len(line.tables) == 1
            ]
            for token_id in met:
                if expires is not None:
                    write("UPDATE tokens SET expires = ? WHERE id = ?", (expires, token_id))
                if rate is not None:
                    write("UPDATE tokens SET rate = ? WHERE id = ?", (str(rate), token_id))
        return len(met)

    @staticmethod
    def _good(write: Write, name: str, table: str | None) -> list[TokenLine]:
        """As the file is now: nobody else writes while this is looked at."""
        found = write(f"SELECT {_COLUMNS} FROM tokens WHERE name = ?", (name,))  # noqa: S608
        lines = [_line(row) for row in found.fetchall()]
        return [
            line
            for line in lines
            if line.state == "good" and (table is None or table in line.tables)
        ]

    def list(self) -> list[TokenLine]:
        """Every token that was given out, the latest last; no secrets."""
        with self._reading:
            rows = self._reader.execute(
                f"SELECT {_COLUMNS} FROM tokens ORDER BY created, rowid"  # noqa: S608
            ).fetchall()
        return [_line(row) for row in rows]

    # --- asking ---------------------------------------------------------------------------------

    def caller(self, token: str) -> Caller | None:
        """Who holds this token; None for unknown, ended and revoked alike.

        What is looked up and compared is a hash: how far it agrees tells nobody how to go on.
        """
        wanted = _hash(token)
        with self._reading:
            if (lent := self._lent.get(wanted)) is not None:
                return lent
            query = f"SELECT {_COLUMNS} FROM tokens WHERE hash = ?"  # noqa: S608
            row = self._reader.execute(query, (wanted,)).fetchone()
        if not hmac.compare_digest(row[1] if row else bytes(32), wanted) or row is None:
            return None
        line = _line(row)
        if line.state != "good":
            return None
        scope = frozenset(line.tables)
        held = (line.name, line.role, scope, line.token_id, line.expires, line.rate)
        return Caller(*held, line.others)

    def allow(self, caller: Caller) -> float:
        """0, or seconds to wait: the token's own rate, whatever it asks."""
        return 0.0 if caller.rate is None else self._buckets.take(caller.token_id, caller.rate)

    def link_code(self, caller_token: str) -> str:
        """A one-time code for /enter#code: ten minutes, once; kept in memory only."""
        code, now = secrets.token_urlsafe(24), time.monotonic()
        with self._reading:
            self._links = {k: held for k, held in self._links.items() if held[1] > now}
            if len(self._links) >= MOST_LINKS:
                raise Refused("too many links are open; wait ten minutes")
            self._links[_hash(code)] = (caller_token, now + LINK_SECONDS)
        return code

    def redeem(self, code: str) -> str | None:
        """The token behind a code, once."""
        with self._reading:
            token, until = self._links.pop(_hash(code), ("", 0.0))
        return token if token and time.monotonic() < until else None

    @contextmanager
    def _changing(self) -> Iterator[Write]:
        """One transaction, whole or not at all."""
        try:
            with self._writing:
                self._writer.execute("BEGIN IMMEDIATE")
                try:
                    yield self._writer.execute
                except BaseException:
                    self._writer.execute("ROLLBACK")
                    raise
                self._writer.execute("COMMIT")
        except apsw.Error:
            raise Refused("the file of tokens could not be written; look at the disk") from None


def require(*roles: Role, every_table: bool = False) -> Callable[[Request], Awaitable[Caller]]:
    """A route's dependency: the caller, if the token is good, has one of these roles and rate.

    A token of several tables has it at one of them; `session_for` looks at which.
    """

    async def judge(request: Request) -> Caller:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise unknown_token()
        access: Access = request.app.state.access
        caller = access.caller(token.strip())
        if caller is None:
            raise unknown_token()
        request.state.caller = caller
        if (wait := access.allow(caller)) and caller.rate is not None:
            raise too_often(wait, caller.rate)
        if not caller.roles & set(roles):
            raise not_for_this_role(str(caller.role))
        if every_table and caller.tables is not None:
            raise not_for_this_role(f"{caller.role} of some tables")
        return caller

    judge.roles = frozenset(roles)  # type: ignore[attr-defined]
    return judge


def _connected(path: Path) -> apsw.Connection:
    """A connection; several processes may make the file, or take it up again, at once."""
    until = time.monotonic() + BUSY
    while True:
        try:
            return _connect(path)
        except apsw.BusyError:  # turning to WAL does not wait for others by itself
            if time.monotonic() > until:
                raise
            time.sleep(0.01)


def _connect(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(int(1_000 * BUSY))
    one = connection.execute
    one("PRAGMA journal_mode = WAL").fetchall()
    one("PRAGMA synchronous = FULL").fetchall()  # a token that was revoked stays revoked
    one("BEGIN IMMEDIATE")  # another process may be at it too
    if one("PRAGMA user_version").get == 0:
        one(
            "CREATE TABLE tokens (id TEXT PRIMARY KEY, hash BLOB NOT NULL UNIQUE,"
            " name TEXT NOT NULL, role TEXT NOT NULL, tables TEXT NOT NULL,"
            " created INTEGER NOT NULL, expires INTEGER, rate TEXT, revoked INTEGER,"
            " others TEXT NOT NULL DEFAULT '{}') STRICT"
        )
        one(f"PRAGMA application_id = {APPLICATION}")
        one(f"PRAGMA user_version = {FORMAT}")
    elif one("PRAGMA user_version").get == 1:
        # tokens that are good by a table's name alone: ended, to be given out anew
        one("UPDATE tokens SET tables = '{}', revoked = coalesce(revoked, created)")
        one("PRAGMA user_version = 2")
    if one("PRAGMA user_version").get == 2:  # of which each had one role everywhere
        one("ALTER TABLE tokens ADD COLUMN others TEXT NOT NULL DEFAULT '{}'")
        one(f"PRAGMA user_version = {FORMAT}")
    one("COMMIT")
    if (one("PRAGMA application_id").get, one("PRAGMA user_version").get) != (APPLICATION, FORMAT):
        connection.close()
        raise Refused(f"{path} holds no tokens that this sulq can read; use the one that wrote it")
    for beside in (f"{path}-wal", f"{path}-shm"):
        with suppress(OSError):
            Path(beside).chmod(0o600)
    return connection


def now() -> float:
    """Seconds since 1970, and never less than have passed here: a step back revives no token."""
    return max(time.time(), STARTED[0] + time.monotonic() - STARTED[1])


def _new_token() -> str:
    return "sulq_" + secrets.token_urlsafe(32)


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def _line(row: tuple[Any, ...]) -> TokenLine:
    token_id, _, name, role, tables, created, expires, rate, revoked, others = row
    ended = expires is not None and expires <= now()
    state = "revoked" if revoked is not None else "ended" if ended else "good"
    held = None if rate is None else Rate.of(rate)
    scope = json.loads(tables)
    elsewhere = {table: Role(said) for table, said in json.loads(others).items()}
    return TokenLine(token_id, name, Role(role), scope, created, expires, held, state, elsewhere)


def _take_away(write: Write, line: TokenLine, lost: Collection[str]) -> None:
    """End the reach of a token into these tables; with none left the token ends."""
    left = {table: name for table, name in line.tables.items() if table not in lost}
    others = {table: str(role) for table, role in line.others.items() if table in left}
    if left:
        kept = (json.dumps(left, sort_keys=True), json.dumps(others, sort_keys=True))
        write(
            "UPDATE tokens SET tables = ?1, others = ?2 WHERE id = ?3",
            (*kept, line.token_id),
        )
    else:
        write("UPDATE tokens SET revoked = ? WHERE id = ?", (int(time.time()), line.token_id))
