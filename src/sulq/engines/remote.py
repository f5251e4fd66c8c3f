"""A Parquet file at an address, read over the network because its owner says so.

It is fetched once, whole, when the table is opened, into a file without a name that ends with the
process; DuckDB scans that copy and never reaches the network. So no server sees which parts of
the table a question reads, and what changes there cannot change an answer: docs/proofs/engines.md,
claim 8. Credentials come from the environment, never from the address.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from ipaddress import ip_address
from netrc import NetrcParseError, netrc
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

from sulq.engines.s3 import s3_request
from sulq.errors import InvalidQuery, Refused

SCHEMES = ("https", "http", "s3")
WAIT = 60.0
"""Seconds without a byte after which a server counts as gone."""


@dataclass(frozen=True, slots=True)
class Remote:
    """One Parquet file: https://host/people.parquet or s3://bucket/people.parquet."""

    url: str

    def __post_init__(self) -> None:
        if not isinstance(self.url, str):
            raise InvalidQuery("Remote takes the address of one Parquet file")
        parts = urlsplit(self.url)
        if parts.scheme.lower() not in SCHEMES or not parts.hostname:
            raise InvalidQuery(
                "a file over the network is https://host/people.parquet or"
                " s3://bucket/people.parquet"
            )
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise InvalidQuery(
                "an address may hold no password, token or parameter: it is kept in policies;"
                " give credentials in the environment (docs/guides/remote.md)"
            )
        if not unquote(parts.path).endswith(".parquet"):
            raise InvalidQuery(f"{self.name!r} should end in .parquet: one file, no folder")
        _check_private(self.url)

    @property
    def name(self) -> str:
        return unquote(urlsplit(self.url).path).rpartition("/")[2]


def is_remote(source: object) -> bool:
    """True for an address that is read over the network, if its owner says so."""
    return isinstance(source, str) and source.partition("://")[0].lower() in SCHEMES


def fetch(remote: Remote) -> IO[bytes]:
    """The whole file, in one without a name; refused with the remedy, and never half."""
    import httpx

    url, headers = remote.url, dict[str, str]()
    login: tuple[str, str] | None = None
    if urlsplit(url).scheme.lower() == "s3":
        url, headers = s3_request(url, os.environ)
        _check_private(url)
    else:
        login = _login(url)
    private = url.lower().startswith("https:")  # a proxy sees nothing of it
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed with the engine
    complaint = f"{remote.name!r} cannot be fetched: "
    try:
        with (
            httpx.Client(trust_env=private, timeout=WAIT, follow_redirects=False) as client,
            client.stream(
                "GET", url, headers=headers | {"accept-encoding": "identity"}, auth=login
            ) as reply,
        ):
            if reply.status_code != httpx.codes.OK:
                raise Refused(complaint + _meaning(reply.status_code))
            for block in reply.iter_bytes():
                copy.write(block)
        copy.flush()
    except httpx.HTTPError:
        copy.close()
        raise Refused(
            f"{complaint}the server cannot be reached or broke off; try again when it can"
        ) from None
    except OSError:
        copy.close()
        raise Refused(
            f"{complaint}there is no room for its copy; set TMPDIR to a disk that has"
        ) from None
    except BaseException:
        copy.close()
        raise
    return copy


def place_of(copy: IO[bytes]) -> Path:
    """Where this process finds a file without a name."""
    own = Path("/proc/self/fd")
    return (own if own.is_dir() else Path("/dev/fd")) / str(copy.fileno())


def _check_private(url: str) -> None:
    """Rows never cross a network in clear."""
    parts = urlsplit(url)
    if parts.scheme.lower() != "http" or parts.hostname == "localhost":
        return
    try:
        here = ip_address(parts.hostname or "").is_loopback
    except ValueError:
        here = False
    if not here:
        raise InvalidQuery("http:// would carry the rows in clear over the network; use https://")


def _login(url: str) -> tuple[str, str] | None:
    """Name and password of this very host, if the owner's netrc file has them."""
    try:
        found = netrc(os.environ.get("NETRC")).authenticators(urlsplit(url).hostname or "")
    except FileNotFoundError:
        return None
    except (NetrcParseError, OSError):
        raise Refused("the netrc file cannot be read; it must be yours alone (mode 0600)") from None
    return None if found is None else (found[0], found[2] or "")


def _meaning(status: int) -> str:
    if status in (401, 403):
        return (
            f"the server refuses it ({status}); for https:// put the host into your netrc file,"
            " for s3:// set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    if 300 <= status < 400:
        return f"the server sends elsewhere ({status}); name the address where it is"
    return f"the server answers {status}; check the address"
