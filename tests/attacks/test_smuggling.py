"""Request smuggling: a proxy and the server must agree where a request ends, or a colleague pays.

An attacker sends bytes that one of them may read as one request and the other as two; what is left
over would begin the next request on the connection that all callers share.
"""

from __future__ import annotations

import random
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.server.conftest import Served, served
from tests.waiting import LONGEST, come

from sulq.server.limits import Settings

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
HIDDEN = (
    b"POST /v1/tables/people/ask HTTP/1.1\r\nHost: x\r\nIdempotency-Key: smuggled\r\n"
    b"Content-Type: application/json\r\nContent-Length: 90\r\nX: "
)
"""A question that lacks its caller: the headers of the next request would complete it."""


def request(*lines: bytes, body: bytes = b"", method: bytes = b"POST") -> bytes:
    head = method + b" /v1/tables/people/quote HTTP/1.1\r\nHost: x\r\n"
    return head + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body


def chunk(size: bytes, data: bytes, end: bytes = b"\r\n") -> bytes:
    return size + b"\r\n" + data + end


HEX = b"%x" % len(HIDDEN)
LAST = b"0\r\n\r\n"
TE, CL = b"Transfer-Encoding: chunked", b"Content-Length: %d"
KNOWN = {
    "CL and TE": request(CL % 6, TE, body=LAST + HIDDEN),
    "TE and CL": request(TE, CL % 4, body=chunk(HEX, HIDDEN) + LAST),
    "two lengths": request(CL % 0, CL % len(HIDDEN), body=HIDDEN),
    "a list of lengths": request(b"Content-Length: 0, %d" % len(HIDDEN), body=HIDDEN),
    "a signed length": request(b"Content-Length: +0", body=HIDDEN),
    "a negative length": request(b"Content-Length: -1", body=HIDDEN),
    "a length in hex": request(b"Content-Length: 0x0", body=HIDDEN),
    "a length with an underscore": request(b"Content-Length: 1_0", body=HIDDEN),
    "a length in other digits": request("Content-Length: \u0663".encode(), body=HIDDEN),
    "a space before the colon": request(b"Content-Length : %d" % len(HIDDEN), body=HIDDEN),
    "a folded header": request(b"X: y\r\n Transfer-Encoding: chunked", CL % 0, body=HIDDEN),
    "a folded length": request(b"Content-Length:\r\n 0", body=HIDDEN),
    "chunked, twice": request(TE, TE, body=LAST + HIDDEN),
    "chunked, identity": request(b"Transfer-Encoding: chunked, identity", body=LAST + HIDDEN),
    "xchunked": request(b"Transfer-Encoding: xchunked", body=LAST + HIDDEN),
    "chunked with a tab": request(b"Transfer-Encoding:\tchunked\x0b", body=LAST + HIDDEN),
    "chunked in quotes": request(b'Transfer-Encoding: "chunked"', body=LAST + HIDDEN),
    "a chunk without its end (CVE-2025-43859)": request(
        TE, body=chunk(b"2", b"{}", b"xx") + chunk(HEX, HIDDEN) + LAST
    ),
    "a chunk of LF lines": request(TE, body=b"0\n\n" + HIDDEN),
    "a chunk size with 0x": request(TE, body=chunk(b"0x2", b"{}") + LAST + HIDDEN),
    "a chunk size with an underscore": request(TE, body=chunk(b"0_2", b"{}") + LAST + HIDDEN),
    "a chunk size below 0": request(TE, body=chunk(b"-1", b"{}") + LAST + HIDDEN),
    "a chunk size past 64 bits": request(TE, body=chunk(b"1" + b"0" * 16, b"{}") + LAST + HIDDEN),
    "a chunk extension with a line": request(TE, body=b"2;x=\ny\r\n{}\r\n" + LAST + HIDDEN),
    "a chunk extension in quotes": request(TE, body=b'2;x="\r\n"\r\n{}\r\n' + LAST + HIDDEN),
    "trailers": request(TE, body=b"0\r\nContent-Length: 9\r\nAuthorization: x\r\n\r\n" + HIDDEN),
    "a bare CR": request(b"X: y\rContent-Length: 0", CL % len(HIDDEN), body=HIDDEN),
    "a NUL": request(b"X: y\x00", CL % 0, body=HIDDEN),
    "a name with a space": request(b"Content Length: 9", CL % 0, body=HIDDEN),
    "HTTP/1.0 in chunks": request(TE, body=LAST + HIDDEN).replace(b"HTTP/1.1", b"HTTP/1.0", 1),
    "a body on GET": request(CL % len(HIDDEN), body=HIDDEN, method=b"GET"),
    "a length hop by hop": request(b"Connection: Content-Length", CL % 0, body=HIDDEN),
    "an expectation": request(b"Expect: 100-continue", CL % 2, body=b"{}" + HIDDEN),
    "an upgrade": request(b"Connection: Upgrade", b"Upgrade: h2c", CL % 0, body=HIDDEN),
    "lines that end in LF": request(CL % 0, body=HIDDEN).replace(b"\r\n", b"\n"),
    "an absolute address": request(CL % 0, body=HIDDEN).replace(b" /v1", b" http://y/v1", 1),
}
"""Ways that have worked somewhere."""


def made_up(number: int) -> bytes:
    """A known way with a few bytes changed where requests end."""
    rng = random.Random(number)
    found = bytearray(rng.choice(list(KNOWN.values())))
    marks = [b"\r", b"\n", b" ", b"\t", b":", b";", b",", b"0", b"\x00", b"\x0b", b"_", b"+", b""]
    for _ in range(rng.choice([1, 1, 2, 3])):
        at = rng.randrange(50, len(found))
        found[at : at + rng.choice([0, 1, 1, 2])] = rng.choice(marks)
    return bytes(found)


def sent(port: int, content: bytes) -> bytes:
    """All that comes back for these bytes on a connection of their own."""
    told = b""
    with closing(socket.create_connection(("127.0.0.1", port), LONGEST)) as line, suppress(OSError):
        line.sendall(content)
        line.shutdown(socket.SHUT_WR)
        while part := line.recv(1 << 16):
            told += part
    return told


class Colleague:
    """Somebody else, whose replies must be theirs and who must not pay."""

    def __init__(self, server: Served, url: str) -> None:
        self.server = server
        token = {"Authorization": f"Bearer {server.tokens['rival']}"}
        self.client = httpx.Client(base_url=url, headers=token, timeout=LONGEST)

    def check(self, about: object) -> None:
        reply = self.client.get("/v1/me")
        assert (reply.status_code, reply.json().get("name")) == (200, "rival"), about
        assert self.server.database.left_for("rival") == 10, about

    def close(self) -> None:
        self.client.close()


def requests(server: Served) -> int:
    return server.log.getvalue().count('"event": "request"')


@contextmanager
def proxy(folder: Path, url: str) -> Iterator[tuple[int, Path]]:
    """nginx as in deploy/nginx.conf, without TLS, and with connections that callers share."""
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    log, errors = folder / "access.log", folder / "error.log"
    log.touch()
    places = "".join(
        f"{name}_temp_path {folder}/{name};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(f"""
        daemon off; master_process off; pid {folder}/pid; error_log {errors};
        events {{ worker_connections 64; }}
        http {{
            {places}
            log_format told '$upstream_status';
            access_log {log} told;
            upstream behind {{ server {url.removeprefix("http://")}; keepalive 1; }}
            server {{
                listen 127.0.0.1:{port};
                client_max_body_size 1m;
                lingering_close off;
                location / {{
                    proxy_pass http://behind;
                    proxy_http_version 1.1;
                    proxy_set_header Host $host;
                    proxy_set_header Connection "";
                    proxy_buffering off;
                    proxy_request_buffering on;
                    proxy_next_upstream off;
                    proxy_ignore_client_abort on;
                }}
            }}
        }}
    """)
    assert NGINX is not None
    running = subprocess.Popen([NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf")])
    try:

        def listens() -> bool:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return True
            return False

        come(listens)
        yield port, log
    finally:
        running.terminate()
        running.wait(LONGEST)


@pytest.fixture(scope="module")
def server(tmp_path_factory: Any) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("smuggling")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SULQ_STATE", str(folder / "state"))
        with served(folder, Settings(pacing=False)) as found:
            yield found


def test_no_bytes_of_an_attacker_become_a_second_request_of_the_server(server: Served) -> None:
    """Without a proxy: of each message at most the one request that it is, however it is cut."""
    port = int(server.url.rpartition(":")[2])
    with closing(Colleague(server, server.url)) as colleague:
        for name, content in [*KNOWN.items(), *((n, made_up(n)) for n in range(300))]:
            reply = sent(port, content)
            assert b"smuggled" not in reply, name
            assert b'"credits_spent": 1' not in reply, name
        colleague.check("after all")
    assert server.database.statement().spent == 0


@pytest.mark.skipif(NGINX is None, reason="no nginx here: scripts/ci_tools installs it")
@pytest.mark.parametrize(
    "many", [200, pytest.param(20_000, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_nginx_and_the_server_count_the_same_requests(
    server: Served, many: int, tmp_path: Path
) -> None:
    """0 desyncs: the server never reads more requests than nginx has sent."""
    with (
        proxy(tmp_path, server.url) as (port, log),
        closing(Colleague(server, f"http://127.0.0.1:{port}")) as colleague,
    ):
        before = requests(server)
        for name, content in [*KNOWN.items(), *((n, made_up(1000 + n)) for n in range(many))]:
            sent(port, content)
            if not isinstance(name, int) or name % 10 == 0:
                colleague.check(name)
        colleague.check("after all")
        forwarded = [line for line in log.read_text().splitlines() if line != "-"]
        assert 0 < requests(server) - before <= len(forwarded)
    assert server.database.left_for("rival") == 10


def test_a_range_is_ignored(server: Served) -> None:
    """No route sends files, and no reply comes in parts (CVE-2025-62727)."""
    many = ",".join(f"{at}-{at + 1}" for at in range(0, 4000, 2))
    for path in ("/console/static/console.css", "/v1/tables/people", "/healthz", "/console"):
        whole = server.client("analyst").get(path, follow_redirects=True)
        part = server.client("analyst").get(
            path, headers={"Range": f"bytes={many}"}, follow_redirects=True
        )
        assert (part.status_code, "content-range" in part.headers) == (whole.status_code, False)
        assert len(part.content) == len(whole.content)


def test_h11_is_what_reads_requests() -> None:
    """The floor of pyproject.toml is the version that refuses malformed chunks."""
    import h11

    assert tuple(map(int, h11.__version__.split(".")[:2])) >= (0, 16)
    assert "httptools" not in sys.modules
