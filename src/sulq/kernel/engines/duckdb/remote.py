"""A Parquet file at an address, read over the network because its owner says so.

It is fetched once, whole, when the table is opened, into a file without a name that ends with the
process; DuckDB scans that copy and never reaches the network. So no server sees which parts of
the table a question reads, and what changes there cannot change an answer: docs/proofs/engines.md,
claim 8. Credentials come from the environment, never from the address.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from netrc import NetrcParseError, netrc
from pathlib import Path
from typing import IO
from urllib.parse import quote, unquote, urlsplit

from sulq.errors import InvalidQuery, Refused

NOTHING_SENT = hashlib.sha256(b"").hexdigest()


def s3_request(
    url: str, environment: Mapping[str, str], now: datetime | None = None
) -> tuple[str, dict[str, str]]:
    """The address of s3://bucket/key, and the headers to ask with."""
    given = urlsplit(url)
    bucket, key = given.netloc, unquote(given.path)
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    path = quote(key, safe="/-_.~")
    if endpoint or "." in bucket:  # a dot in the name fits no certificate
        server = (endpoint or f"https://s3.{region}.amazonaws.com").rstrip("/")
        address = f"{server}/{bucket}{path}"
    else:
        address = f"https://{bucket}.s3.{region}.amazonaws.com{path}"
    secret = environment.get("AWS_SECRET_ACCESS_KEY")
    identity = environment.get("AWS_ACCESS_KEY_ID")
    if not secret or not identity:
        return address, {}
    stamp = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    headers = {"x-amz-content-sha256": NOTHING_SENT, "x-amz-date": stamp}
    if token := environment.get("AWS_SESSION_TOKEN"):
        headers["x-amz-security-token"] = token
    signed = {"host": urlsplit(address).netloc, **headers}
    return address, headers | {
        "authorization": authorization(urlsplit(address).path, signed, region, identity, secret)
    }


def authorization(
    path: str, headers: Mapping[str, str], region: str, identity: str, secret: str
) -> str:
    """The header that proves who asks; `headers` are in lower case and hold x-amz-date."""
    stamp = headers["x-amz-date"]
    names = sorted(headers)
    lines = "".join(f"{name}:{headers[name].strip()}\n" for name in names)
    listed = ";".join(names)
    asked = f"GET\n{path}\n\n{lines}\n{listed}\n{NOTHING_SENT}"
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    told = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(asked.encode()).hexdigest()}"
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    proof = hmac.digest(key, told.encode(), "sha256").hex()
    return (
        f"AWS4-HMAC-SHA256 Credential={identity}/{scope},SignedHeaders={listed},Signature={proof}"
    )


# A GET from S3, signed with the keys of the environment (AWS Signature Version 4).
#
# AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN without them: unsigned AWS_REGION or
# AWS_DEFAULT_REGION us-east-1 if unset AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL of other stores
# than Amazon's


SCHEMES = ("https", "http", "s3")
MOST_BYTES = 32 * 2**30
"""Of a file, unless its owner allows more: no server may fill the disk."""
WAIT = 60.0
"""Seconds without a byte after which a server counts as gone."""


@dataclass(frozen=True, slots=True)
class Remote:
    """One Parquet file: https://host/people.parquet or s3://bucket/people.parquet."""

    url: str
    most_bytes: int = MOST_BYTES  # of the file: a longer one is refused

    def __post_init__(self) -> None:
        if not isinstance(self.url, str):
            raise InvalidQuery("Remote takes the address of one Parquet file")
        if type(self.most_bytes) is not int or self.most_bytes < 1:
            raise InvalidQuery(f"most_bytes must be a whole number, got {self.most_bytes!r:.40}")
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
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed with the engine
    try:
        trouble = _fill(copy, remote)
        # Raised here: what the network raised holds the request, with name and password.
        if trouble:
            raise Refused(f"{remote.name!r} cannot be fetched: {trouble}")
    except BaseException:
        copy.close()
        raise
    return copy


def _fill(copy: IO[bytes], remote: Remote) -> str:
    """Write all of it; what was in the way, with the remedy, or nothing."""
    import httpx

    url, headers = remote.url, dict[str, str]()
    login: tuple[str, str] | None = None
    if urlsplit(url).scheme.lower() == "s3":
        url, headers = s3_request(url, os.environ)
        _check_private(url)
    else:
        login = _login(url)
    private = url.lower().startswith("https:")  # a proxy sees nothing of it
    try:
        with (
            httpx.Client(trust_env=private, timeout=WAIT, follow_redirects=False) as client,
            client.stream(
                "GET", url, headers=headers | {"accept-encoding": "identity"}, auth=login
            ) as reply,
        ):
            if reply.status_code != httpx.codes.OK:
                return _meaning(reply.status_code)
            if reply.headers.get("content-encoding", "identity").lower() != "identity":
                return "the server sends it encoded; make it send the file as it is"
            got = 0
            for block in reply.iter_raw():
                got += len(block)
                if got > remote.most_bytes:
                    return (
                        f"it has more than {remote.most_bytes} bytes; raise most_bytes, if that is"
                        " right"
                    )
                copy.write(block)
        copy.flush()
    except httpx.HTTPError:
        return "the server cannot be reached or broke off; try again when it can"
    except OSError:
        return "there is no room for its copy; set TMPDIR to a disk that has"
    return ""


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
    place = Path(os.environ.get("NETRC") or Path.home() / ".netrc")
    try:
        others = place.stat().st_mode & 0o077
        hosts = netrc(place).hosts
        hosts.pop("default", None)  # would send a password to a host that it does not name
        found = hosts.get(urlsplit(url).hostname or "")
    except FileNotFoundError:
        return None
    except (NetrcParseError, OSError, UnicodeError):
        found, others = None, 1
    if others:
        raise Refused("the netrc file cannot be read; it must be yours alone (mode 0600)")
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
