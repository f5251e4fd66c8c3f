"""Where a table is, and whether a token may be sent there."""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

import httpx

from sulq.errors import InvalidQuery, Refused

TOKEN = "SULQ_TOKEN"  # noqa: S105 - the name of a variable
_TABLE = re.compile(r"[^/?#%\s]{1,200}")
_LETTERS = re.compile(r"[\x21-\x7e]{1,500}")


@dataclass(frozen=True, slots=True)
class Address:
    """A server, and a table of it; without a table, the only one that the token may see."""

    base: str
    table: str | None
    loopback: bool
    encrypted: bool

    def path(self, table: str, rest: str) -> str:
        return f"/v1/tables/{quote(table, safe='')}/{rest}"


def address_of(url: str) -> Address:
    """`https://host:port/people`, with a prefix before it where a proxy adds one."""
    if not isinstance(url, str):
        raise InvalidQuery(f"want an address such as https://host/people, got {url!r:.60}")
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        raise InvalidQuery(f"not an address: {url!r:.80}; want https://host/people") from None
    if parts.scheme not in ("http", "https") or not host:
        raise InvalidQuery(f"want an address such as https://host/people, got {url!r:.80}")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidQuery(
            "an address has no user, password, query or fragment; give the token as token=..."
            f" or in {TOKEN}"
        )
    steps = [step for step in parts.path.split("/") if step]
    table = steps.pop() if steps else None
    if table is not None and not _TABLE.fullmatch(table):
        raise InvalidQuery(f"not the name of a table: {table!r:.60}")
    if steps[-2:] == ["v1", "tables"]:
        del steps[-2:]
    where = f"[{host}]" if ":" in host else host
    place = where if port is None else f"{where}:{port}"
    base = "/".join([f"{parts.scheme}://{place}", *steps])
    return Address(base, table, _is_loopback(host), parts.scheme == "https")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Bearer:
    """A token on its way into a header. It is not shown, nor compared."""

    token: str = field(repr=False)

    def __call__(self, request: httpx.Request) -> httpx.Request:
        request.headers["Authorization"] = f"Bearer {self.token}"
        return request


def bearer(address: Address, token: str | None, insecure: bool) -> Bearer:
    """The token given, else that of the environment; refused where others could read it."""
    found = token if token is not None else os.environ.get(TOKEN, "")
    if not isinstance(found, str) or not _LETTERS.fullmatch(found.strip() or " "):
        raise InvalidQuery(f"no token: give token=..., or set {TOKEN}; the owner hands them out")
    if not (address.encrypted or address.loopback or insecure):
        raise Refused(
            f"{address.base} is neither https nor this machine: who is on the way could read the"
            " token and ask in your name; use https, or say insecure=True if the way is protected"
            " otherwise"
        )
    return Bearer(found.strip())
