"""Lost replies, busy servers, wrong addresses: what is sent again, what never is, and to whom."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import which
from types import SimpleNamespace
from typing import Any

import pytest
from tests.people import publish
from tests.waiting import come

from sulq import (
    BudgetSpent,
    Database,
    EngineFailed,
    InvalidQuery,
    Refused,
    SulqError,
    UnsafeExactly,
    col,
    connect,
    count,
)
from sulq.client import Unreachable, transport
from sulq.client.transport import address_of
from sulq.wire import SchemaReply, answer_reply

SMOKERS = count(where=col("smoker"))
TOKEN = "sulq_" + "t" * 43
PROBLEM = {"type": "about:blank", "title": "x", "status": 0, "detail": "said so", "code": "refused"}


@dataclass
class Script:
    """A server that answers /schema truly and everything else as it is told, in turn."""

    facts: bytes
    turns: list[Callable[[BaseHTTPRequestHandler], None]] = field(default_factory=list)
    heard: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    url: str = ""

    @property
    def keys(self) -> list[str | None]:
        return [headers.get("idempotency-key") for path, headers, _ in self.heard]


def reply(status: int, body: Any, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def turn(handler: BaseHTTPRequestHandler) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    return turn


def problem(status: int, code: str, **more: Any) -> Callable[[BaseHTTPRequestHandler], None]:
    retry = more.pop("retry", None)
    headers = {} if retry is None else {"Retry_After": retry}
    return reply(status, {**PROBLEM, "status": status, "code": code, **more}, **headers)


def drop(handler: BaseHTTPRequestHandler) -> None:
    """The connection ends before a reply."""
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def half(handler: BaseHTTPRequestHandler) -> None:
    """The connection ends within the reply."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"version": 1')
    handler.wfile.flush()
    drop(handler)


@contextmanager
def scripted(script: Script, context: ssl.SSLContext | None = None) -> Iterator[Script]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None: ...

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.path.endswith("/schema"):
                reply(200, script.facts)(self)
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            script.heard.append((self.path, headers, body))
            script.turns.pop(0)(self)

        do_GET = do_POST = do_DELETE = answer  # noqa: N815 - the library's names

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None: ...

    with Quiet(("127.0.0.1", 0), Handler) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "http" if context is None else "https"
        script.url = f"{scheme}://127.0.0.1:{server.server_port}/people"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield script
        server.shutdown()


def facts_of(database: Database) -> bytes:
    return (
        SchemaReply(
            table="people",
            facts=database.schema.to_json(),
            promise=database.promise.to_json(),
            size=database.size,
            remaining_exact=database.remaining,
        )
        .model_dump_json(by_alias=True)
        .encode()
    )


@pytest.fixture
def database() -> Iterator[Database]:
    with publish(name="people") as found:
        yield found


@pytest.fixture
def script(database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    monkeypatch.setattr(transport, "FIRST", 0.002)
    with scripted(Script(facts_of(database))) as found:
        yield found


@pytest.fixture
def answered(database: Database) -> Callable[[BaseHTTPRequestHandler], None]:
    return reply(200, answer_reply(database.ask(SMOKERS)).model_dump_json().encode())


@pytest.mark.parametrize(
    "fault",
    [
        drop,
        half,
        reply(502, b"<html>"),
        reply(503, b""),
        reply(504, b"later"),
        problem(503, "busy"),
        problem(429, "too_many"),
        problem(429, "too_many", retry="0"),
    ],
    ids=["dropped", "half", "502", "503", "504", "busy", "429", "retry-after"],
)
def test_a_lost_reply_is_asked_for_again_under_the_same_key(
    script: Script, answered: Any, fault: Any
) -> None:
    script.turns = [fault, fault, answered]
    with connect(script.url, token=TOKEN) as remote:
        assert remote.ask(SMOKERS).credits == 1
    assert len(script.heard) == 3 and len(set(script.keys)) == 1 and script.keys[0]
    assert len({body for _, _, body in script.heard}) == 1


def test_a_slow_reply_is_asked_for_again(script: Script, answered: Any) -> None:
    """The first is answered by silence until the second is there.

    To fail by chance, a busy machine would have to hold up each of ten replies for half a second.
    """
    cut: list[bool] = []

    def hang(handler: BaseHTTPRequestHandler) -> None:
        come(lambda: len(script.heard) > 1)
        cut.append(True)
        drop(handler)

    script.turns = [hang] + [answered] * 10
    with connect(script.url, token=TOKEN, timeout=0.5, retries=10) as remote:
        assert remote.ask(SMOKERS).credits == 1
    assert len(set(script.keys)) == 1 and len(script.heard) >= 2
    come(lambda: cut, "the first was never given up")


def test_every_ask_has_a_key_of_its_own(script: Script, answered: Any) -> None:
    script.turns = [answered] * 4
    with connect(script.url, token=TOKEN) as remote:
        for key in (None, None, "my own key-1", "my own key-1"):
            remote.ask(SMOKERS, key=key)
    first, second, third, fourth = script.keys
    assert first != second and third == fourth and third not in (first, second)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (422, "invalid_query", InvalidQuery),
        (403, "refused", Refused),
        (402, "budget_spent", BudgetSpent),
        (403, "unsafe_exactly", UnsafeExactly),
        (409, "price_changed", Refused),
        (409, "key_reused", Refused),
        (401, "unknown_token", Refused),
        (404, "not_found", Refused),
        (413, "too_large", InvalidQuery),
        (500, "internal", Unreachable),
        (503, "engine_failed", EngineFailed),
    ],
)
def test_a_problem_is_raised_and_not_repeated(
    script: Script, status: int, code: str, kind: type[SulqError]
) -> None:
    script.turns = [problem(status, code, credits_spent_exact="3/2", start=3, end=5, hint="so")]
    with connect(script.url, token=TOKEN) as remote, pytest.raises(kind) as raised:
        remote.ask(SMOKERS)
    assert type(raised.value) is kind and len(script.heard) == 1
    assert raised.value.credits_spent == Fraction(3, 2) and raised.value.code == code
    if code == "invalid_query":
        assert (raised.value.start, raised.value.end) == (3, 5)


def test_tries_are_bounded_and_the_key_is_told(script: Script, answered: Any) -> None:
    script.turns = [drop] * 3
    with connect(script.url, token=TOKEN, retries=2) as remote:
        with pytest.raises(Unreachable) as raised:
            remote.ask(SMOKERS)
        assert len(script.heard) == 3 and {raised.value.key} == set(script.keys)
        assert raised.value.key in str(raised.value) and TOKEN not in str(raised.value)
        script.turns = [answered]
        remote.ask(SMOKERS, key=raised.value.key)
    assert len(set(script.keys)) == 1


def test_who_is_told_to_wait_long_is_told_so(script: Script) -> None:
    script.turns = [problem(429, "too_many", retry="3600")]
    with connect(script.url, token=TOKEN) as remote, pytest.raises(Refused, match="said so"):
        remote.ask(SMOKERS)
    assert len(script.heard) == 1


def test_retry_after_is_waited_for(
    script: Script, answered: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as was said, in seconds or as a date, and a moment longer: by a clock of the test."""
    waited: list[float] = []
    now = float(int(time.time()))
    clock = SimpleNamespace(sleep=waited.append, time=lambda: now)
    monkeypatch.setattr(transport, "time", clock)
    for wait, seconds in (("1", 1), (formatdate(now + 3, usegmt=True), 3)):
        script.turns = [problem(429, "too_many", retry=wait), answered]
        with connect(script.url, token=TOKEN) as remote:
            remote.ask(SMOKERS)
        assert seconds < waited.pop() <= seconds + transport.FIRST and not waited


def test_a_redirect_is_not_followed(script: Script) -> None:
    with scripted(Script(script.facts)) as elsewhere:
        script.turns = [reply(307, b"", Location=elsewhere.url + "/ask")]
        with connect(script.url, token=TOKEN) as remote, pytest.raises(Unreachable, match="307"):
            remote.ask(SMOKERS)
        assert elsewhere.heard == []


@pytest.mark.parametrize("body", [b"", b"hello", b"{}", b'{"version": 2}', b"[1, 2", b"\xff\xfe"])
def test_garbage_is_no_answer(script: Script, body: bytes) -> None:
    script.turns = [reply(200, body)]
    with connect(script.url, token=TOKEN) as remote, pytest.raises(Unreachable):
        remote.ask(SMOKERS)


def test_an_answer_that_does_not_fit_its_question_is_none(
    script: Script, database: Database
) -> None:
    told = answer_reply(database.ask(SMOKERS))
    for wrong in (
        {"values": []},
        {"values": ["x"]},
        {"noise": [{"law": "telepathy"}]},
        {"noise": []},
        {"kind": 7},
    ):
        script.turns = [reply(200, {**json.loads(told.model_dump_json()), **wrong})]
        with connect(script.url, token=TOKEN) as remote, pytest.raises(Unreachable):
            remote.ask(SMOKERS)


def test_what_has_no_key_is_not_done_twice(script: Script) -> None:
    script.turns = [drop]
    with connect(script.url, token=TOKEN) as remote, pytest.raises(Unreachable, match="look"):
        remote.reserve(5)
    assert len(script.heard) == 1


def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/people"
        with pytest.raises(Unreachable, match="no reply") as raised:
            connect(url, token=TOKEN, retries=0)
    assert TOKEN not in str(raised.value)


# --- where a token may go -----------------------------------------------------------------------


@pytest.mark.parametrize("url", ["http://example.org/people", "http://10.0.0.1:8000/people"])
def test_a_token_does_not_travel_in_the_clear(url: str) -> None:
    with pytest.raises(Refused, match="https") as raised:
        connect(url, token=TOKEN)
    assert TOKEN not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "base", "table", "loopback"),
    [
        ("http://127.0.0.1:8000/people", "http://127.0.0.1:8000", "people", True),
        ("http://[::1]:8000/people", "http://[::1]:8000", "people", True),
        ("http://localhost/people/", "http://localhost", "people", True),
        ("https://host/sulq/v1/tables/people", "https://host/sulq", "people", False),
        ("https://host/sulq/people", "https://host/sulq", "people", False),
        ("https://localhost.evil.org/people", "https://localhost.evil.org", "people", False),
        ("https://host", "https://host", None, False),
    ],
)
def test_addresses(url: str, base: str, table: str | None, loopback: bool) -> None:
    found = address_of(url)
    assert (found.base, found.table, found.loopback) == (base, table, loopback)


@pytest.mark.parametrize(
    "url",
    [
        "people",
        "ftp://host/people",
        "https://",
        "https://me:secret@host/people",
        7,
        "https://host/people?x=1",
        "https://host/people#x",
        "https://host:99999/people",
        "https://host/a%2fb",
    ],
)
def test_wrong_addresses(url: Any) -> None:
    with pytest.raises(InvalidQuery) as raised:
        address_of(url)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "terms",
    [
        {"timeout": 0},
        {"retries": -1},
        {"retries": 99},
        {"verify": "/no/such/file"},
        {"verify": False},
        {"token": "two words"},
        {"token": ""},
        {"token": "a\nb"},
    ],
)
def test_wrong_terms(terms: dict[str, Any]) -> None:
    with pytest.raises(InvalidQuery):
        connect("https://127.0.0.1:1/people", **{"token": TOKEN, **terms})


@pytest.mark.skipif(which("openssl") is None, reason="makes its certificate with openssl")
def test_a_certificate_must_be_trusted(database: Database, tmp_path: Path) -> None:
    key, trusted = tmp_path / "key.pem", tmp_path / "server.pem"
    made = f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=sulq -keyout {key}"
    named = f"-out {trusted} -addext subjectAltName=IP:127.0.0.1"
    subprocess.run(f"{made} {named}".split(), check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(trusted, key)
    with scripted(Script(facts_of(database)), context) as found:
        with pytest.raises(Unreachable, match="certificate"):
            connect(found.url, token=TOKEN)
        with connect(found.url, token=TOKEN, verify=trusted) as remote:
            assert remote.size == 2_000
