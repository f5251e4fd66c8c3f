"""Where a ledger lies: in a file, in memory, or on a PostgreSQL server that replicas share.

    postgresql://user@host:5432/database?ledger=people
    postgresql://user@/database?host=/var/run/postgresql&ledger=people

All but `ledger` is PostgreSQL's own address and goes to the driver as it is. An address may hold a
password: it is never shown.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from sulq.errors import Refused
from sulq.ledger.state import identity

FORM = "postgresql://user@host/database?ledger=name"
SCHEMES = ("postgresql", "postgres")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")


@dataclass(frozen=True, slots=True)
class Place:
    """A ledger on a server."""

    server: str = field(repr=False)
    name: str
    shown: str  # without user and password; an address too

    @property
    def table(self) -> str:
        return f'"sulq"."{self.name}"'

    @property
    def lock(self) -> int:
        """The number that whoever writes to this ledger locks."""
        digest = hashlib.sha256(b"sulq ledger " + self.name.encode()).digest()
        return int.from_bytes(digest[:8], "big", signed=True)


def is_shared(path: str | Path) -> bool:
    """True for the address of a ledger on a server."""
    return isinstance(path, str) and path.startswith(tuple(f"{name}://" for name in SCHEMES))


def read_place(url: str) -> Place:
    try:
        parts = urlsplit(url)
        given = parse_qsl(parts.query, keep_blank_values=True)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise Refused(f"the address of a shared ledger has the form {FORM}") from None
    names = [value for key, value in given if key == "ledger"]
    database = parts.path.removeprefix("/")
    if len(names) != 1 or not database or "/" in database or "\0" in unquote(url):
        raise Refused(f"the address of a shared ledger has the form {FORM}")
    if not _NAME.fullmatch(names[0]):
        raise Refused(
            f"a shared ledger is named by 1 to 48 of a-z, 0-9 and _, a letter first; got"
            f" {names[0]!r:.60}"
        )
    rest = [(key, value) for key, value in given if key != "ledger"]
    server = urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(rest), ""))
    said = dict(rest)
    asked = {"host": said.get("host", host), "port": str(said.get("port", port or 5432))}
    shown = f"postgresql:///{database}?{urlencode(asked, safe='/')}&ledger={names[0]}"
    return Place(server, names[0], shown)


def place_name(path: str | Path) -> str:
    """One name for a place, however it is spelled; for the state directory and for messages."""
    if is_shared(path):
        return read_place(str(path)).shown
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        raise Refused(f"no ledger can be at {str(path)!r}; give another path") from None


def what_lies_at(path: str | Path) -> tuple[int, int] | str | None:
    """Which ledger a path names: the file, or the server's; None if there is no file."""
    return read_place(str(path)).shown if is_shared(path) else identity(path)
