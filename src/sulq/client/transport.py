"""Sending requests again until a reply comes: the same key, so that nothing is charged twice."""

from __future__ import annotations

import asyncio
import email.utils
import ipaddress
import os
import re
import secrets
import ssl
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, urlsplit

import httpx
from pydantic import ValidationError

from sulq.client.requests import Call, InvalidResponse, StaleSchema
from sulq.errors import InvalidQuery, Refused, SulqError
from sulq.wire import Problem, Unreachable, error_of

TOKEN = "SULQ_TOKEN"  # noqa: S105 - the name of a variable
_TABLE = re.compile(r"[^/?#%\s]{1,200}")
_LETTERS = re.compile(r"[\x21-\x7e]{1,500}")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A server, and a table of it; without a table, the only one that the token may see."""

    base: str
    table: str | None
    loopback: bool
    encrypted: bool

    def path(self, table: str, rest: str) -> str:
        return f"/v1/tables/{quote(table, safe='')}/{rest}"


def address_of(url: str) -> ServerAddress:
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
            "an address has no user, password, query or fragment; give the token by itself,"
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
    return ServerAddress(base, table, _is_loopback(host), parts.scheme == "https")


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


def bearer(address: ServerAddress, token: str | None, insecure: bool) -> Bearer:
    """The token given, else that of the environment; refused where others could read it."""
    found = token if token is not None else os.environ.get(TOKEN, "")
    if not isinstance(found, str) or not _LETTERS.fullmatch(found.strip() or " "):
        raise InvalidQuery(
            f"no token: give one (--token-file on the command line), or set {TOKEN}; the owner"
            " hands them out"
        )
    if not (address.encrypted or address.loopback or insecure):
        raise Refused(
            f"{address.base} is neither https nor this machine: who is on the way could read the"
            " token and ask in your name; use https (in Python, insecure=True says that the"
            " way is protected otherwise)"
        )
    return Bearer(found.strip())


# Where a table is, and whether a token may be sent there.


T = TypeVar("T")

AWAY = (502, 503, 504)
TOO_MANY = 429
FIRST, LONGEST = 0.2, 8.0
"""Seconds to wait before the second try, and at most before any."""
PATIENCE = 60.0
"""Seconds: who is told to wait longer is told so instead."""
MOST_RETRIES = 20


@dataclass(frozen=True, slots=True)
class Retry:
    """Try again after so many seconds; if that was the last try, this is what to raise."""

    wait: float
    otherwise: SulqError


@dataclass(frozen=True, slots=True)
class Response:
    content: bytes


@dataclass(frozen=True, slots=True)
class Sender:
    """How often to try, and what the outcome of each try means."""

    address: ServerAddress
    retries: int

    def __post_init__(self) -> None:
        whole = isinstance(self.retries, int) and not isinstance(self.retries, bool)
        if not whole or not 0 <= self.retries <= MOST_RETRIES:
            raise InvalidQuery(f"retries: want 0 to {MOST_RETRIES}, got {self.retries!r:.40}")

    def failed(self, error: httpx.TransportError, call: Call[T], attempt: int) -> Retry:
        """No reply came. What cannot be helped by waiting is raised at once."""
        said = f"no reply from {self.address.base} ({type(error).__name__})"
        if _caused_by(error, ssl.SSLCertVerificationError):
            raise Unreachable(
                f"{self.address.base} has no certificate that is trusted here; give verify="
                " (--ca or SULQ_CA on the command line) the file of its own authority; the token"
                " was not sent"
            ) from None
        unsent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
        hint = self._hint(error, unsent)
        lost = Unreachable(f"{said}; {hint}{self._remedy(call)}", call.key)
        if not call.again and not unsent:
            raise lost from None
        return Retry(pause(attempt), lost)

    def _hint(self, error: httpx.TransportError, unsent: bool) -> str:
        """What is mostly wrong where nothing came back at all."""
        if self.address.encrypted and _caused_by(error, ssl.SSLError):
            return "what answers there does not speak https: is it http? "
        if unsent:
            return "is the server running, and are host and port right? "
        if not self.address.encrypted and isinstance(
            error, httpx.RemoteProtocolError | httpx.ReadError
        ):
            return "is it https? "
        return ""

    def _remedy(self, call: Call[T]) -> str:
        if call.key is not None and call.again:
            return f"it may have been charged: ask again with key={call.key!r}, which costs no more"
        return "try again" if call.again else "look whether it was done before doing it again"

    def judged(self, response: httpx.Response, call: Call[T], attempt: int) -> Response | Retry:
        """A reply, a reason to wait, or the exception that local code would have raised."""
        status = response.status_code
        if 200 <= status < 300:
            return Response(response.content)
        if call.method == "DELETE" and status == 404 and attempt > 0:
            return Response(b"")  # an earlier try has done it
        if 300 <= status < 400:
            raise Unreachable(
                f"{self.address.base} sends elsewhere (status {status}); say that address yourself:"
                " a token is sent to nobody but who was named"
            )
        error, code = self._told(response, call)
        if status == TOO_MANY:
            wait = _retry_after(response)
            if wait is not None and wait > PATIENCE:
                raise error
            return Retry(pause(attempt) if wait is None else wait + pause(0), error)
        if status in AWAY and code != "engine_failed" and call.again:
            return Retry(pause(attempt), error)
        raise error

    def _told(self, response: httpx.Response, call: Call[T]) -> tuple[SulqError, str]:
        try:
            told = Problem.model_validate_json(response.content)
        except ValidationError:
            said = f"{self.address.base} replied with status {response.status_code}, not as sulq:"
            said += " are scheme (http or https), port and path right?"
            return Unreachable(f"{said}; {self._remedy(call)}", call.key), ""
        error = error_of(told)
        if isinstance(error, Unreachable):
            error.key = call.key
        return error, told.code

    def read(self, content: bytes, call: Call[T]) -> T:
        try:
            return call.read(content)
        except StaleSchema as error:
            raise Unreachable(str(error), call.key) from None
        except (
            InvalidResponse,
            SulqError,
            LookupError,
            TypeError,
            ValueError,
        ):  # what was sent was bound
            raise Unreachable(
                f"{self.address.base} replied with something that this version cannot read;"
                " client and server differ, or something between them answers",
                call.key,
            ) from None


def pause(attempt: int) -> float:
    """Twice as long each time, less up to a half at random: clients do not come back together."""
    share = 0.5 + secrets.randbelow(1 << 20) / (1 << 21)
    return float(min(LONGEST, FIRST * 2**attempt) * share)


def _retry_after(response: httpx.Response) -> float | None:
    text = response.headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit() and len(text) < 10:
        return float(text)
    try:
        until = email.utils.parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return max(0.0, until.timestamp() - time.time())


def _caused_by(error: BaseException | None, kind: type[Exception]) -> bool:
    """True if the error, or one that it was raised from, is of this class."""
    seen = 0
    while error is not None and seen < 10:
        if isinstance(error, kind):
            return True
        error, seen = error.__cause__ or error.__context__, seen + 1
    return False


def options(
    address: ServerAddress,
    timeout: float,
    verify: ssl.SSLContext | str | Path | bool,
    insecure: bool,
) -> dict[str, object]:
    """Of an HTTP client. Redirects are never followed; in the clear no proxy is asked."""
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < 1e6:
        raise InvalidQuery(f"timeout: want seconds above 0, got {timeout!r:.40}")
    if verify is False and not insecure:
        raise InvalidQuery(
            "verify=False would send the token to whoever answers: give verify= the file of the"
            " server's own authority, or say insecure=True as well"
        )
    if isinstance(verify, str | Path):
        try:
            verify = ssl.create_default_context(cafile=str(verify))
        except OSError:
            raise InvalidQuery(f"verify: no certificates in {str(verify)!r:.200}") from None
    return {
        "base_url": address.base,
        "timeout": timeout,
        "verify": verify,
        "follow_redirects": False,
        "trust_env": address.encrypted,
        "headers": {"Accept": "application/json", "User-Agent": "sulq"},
    }


def _headers(call: Call[T]) -> dict[str, str]:
    found = {}
    if call.body is not None:
        found["Content-Type"] = "application/json"
    if call.key is not None:
        found["Idempotency-Key"] = call.key
    return found


@dataclass(frozen=True, slots=True)
class Transport:
    """A way to a server that waits by sleeping."""

    client: httpx.Client
    bearer: Bearer
    sender: Sender

    def send(self, call: Call[T]) -> T:
        attempt, content = 0, call.content
        while True:
            outcome: Response | Retry
            try:
                response = self.client.request(
                    call.method,
                    call.path,
                    content=content,
                    params=call.params,
                    headers=_headers(call),
                    auth=self.bearer,
                )
            except httpx.TransportError as error:
                outcome = self.sender.failed(error, call, attempt)
            else:
                outcome = self.sender.judged(response, call, attempt)
            if isinstance(outcome, Response):
                return self.sender.read(outcome.content, call)
            if attempt >= self.sender.retries:
                raise outcome.otherwise
            time.sleep(outcome.wait)
            attempt += 1


@dataclass(frozen=True, slots=True)
class AsyncLine:
    """The same for an event loop."""

    client: httpx.AsyncClient
    bearer: Bearer
    sender: Sender

    async def send(self, call: Call[T]) -> T:
        attempt, content = 0, call.content
        while True:
            outcome: Response | Retry
            try:
                response = await self.client.request(
                    call.method,
                    call.path,
                    content=content,
                    params=call.params,
                    headers=_headers(call),
                    auth=self.bearer,
                )
            except httpx.TransportError as error:
                outcome = self.sender.failed(error, call, attempt)
            else:
                outcome = self.sender.judged(response, call, attempt)
            if isinstance(outcome, Response):
                return self.sender.read(outcome.content, call)
            if attempt >= self.sender.retries:
                raise outcome.otherwise
            await asyncio.sleep(outcome.wait)
            attempt += 1
