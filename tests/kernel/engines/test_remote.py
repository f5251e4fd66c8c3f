"""A Parquet file over the network: only if the owner says so, whole, and as it was published."""

from __future__ import annotations

import gc
import hashlib
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.kernel.engines import programs, reference, tables

from sulq.answers.statistics import count
from sulq.database import Database
from sulq.errors import InvalidQuery, Refused
from sulq.kernel.engines import open_engine
from sulq.kernel.engines.duckdb.remote import NOTHING_SENT, Remote, authorization, s3_request
from sulq.kernel.schema.columns import Number, Schema
from sulq.kernel.schema.promise import Promise
from sulq.policy.files import policy_text, read_policy

PROMISE = Promise(1, "1e-6", queries=100)


@dataclass
class Store:
    """A small web server: files by path, what it was asked, and what it does wrong."""

    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    status: int = 200
    cut: int = 0
    needs: str | None = None
    encoding: str | None = None
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture
def store() -> Iterator[Store]:
    held = Store()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            held.asked.append((self.path, {k.lower(): v for k, v in self.headers.items()}))
            content = held.files.get(self.path)
            status = held.status if content is not None else 404
            if held.needs is not None and self.headers.get("authorization") != held.needs:
                status = 401
            self.send_response(status)
            if status == 302:
                self.send_header("location", f"{held.url}/elsewhere.parquet")
            body = content if status == 200 and content is not None else b"ROWS"
            if held.encoding is not None:
                self.send_header("content-encoding", held.encoding)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) - held.cut])

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        held.port = server.server_address[1]
        thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.02))
        thread.start()
        yield held
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("AWS_") or name == "NETRC":
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


def content(seed: int, tmp_path: Path) -> tuple[list[dict[str, object]], bytes]:
    rows = tables.rows(seed, 60)
    return rows, tables.parquet(rows, tmp_path / f"{seed}.parquet").read_bytes()


def unnamed() -> list[str]:
    """The files without a name that this process holds."""
    found = []
    for at in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(at.readlink()))
        except OSError:
            continue
    return [name for name in found if name.endswith("(deleted)")]


def test_the_same_integers_and_one_read(store: Store, tmp_path: Path) -> None:
    import random

    rows, store.files["/d/people.parquet"] = content(1, tmp_path)
    gc.collect()  # files that other tests have forgotten are not to vanish between the counts
    before = len(unnamed())
    engine = open_engine(Remote(f"{store.url}/d/people.parquet"), tables.SCHEMA)
    rng = random.Random(3)
    for _ in range(8):
        program = programs.program(rng, tables.FACTS)
        assert engine.exact_sums(program) == reference.exact_sums(program, rows)
    assert engine.unchanged()
    assert len(store.asked) == 1  # questions show the server nothing
    assert engine.fingerprint() == hashlib.sha256(store.files["/d/people.parquet"]).hexdigest()
    assert len(unnamed()) == before + 1
    engine.close()
    assert len(unnamed()) == before
    open_engine(Remote(f"{store.url}/d/people.parquet"), tables.SCHEMA)
    gc.collect()
    assert len(unnamed()) == before  # forgotten, not closed


def test_what_changed_there_is_closed(store: Store, tmp_path: Path) -> None:
    _, store.files["/people.parquet"] = content(1, tmp_path)
    remote, ledger = Remote(f"{store.url}/people.parquet"), tmp_path / "ledger"
    with Database.open(remote, tables.SCHEMA, PROMISE, ledger, publish=True) as db:
        assert db.ledger.header.name == "people"
        first = db.ask(count(), key="a").value
        _, store.files["/people.parquet"] = content(2, tmp_path)
        assert db.ask(count(), key="a").value == first
    with pytest.raises(Refused, match="not what was published"):
        Database.open(remote, tables.SCHEMA, PROMISE, ledger, publish=True)
    _, store.files["/people.parquet"] = content(1, tmp_path)
    with Database.open(remote, tables.SCHEMA, PROMISE, ledger, publish=True) as db:
        assert db.ask(count(), key="a").value == first
        assert store.url not in str(db.ledger.header.to_body())


def test_off_unless_the_owner_says_so(store: Store, tmp_path: Path) -> None:
    _, store.files["/people.parquet"] = content(1, tmp_path)
    with pytest.raises(Refused, match="remote = true"):
        open_engine(f"{store.url}/people.parquet", tables.SCHEMA)
    text = f"""
[people]
source = "{store.url}/people.parquet"
ledger = "people.ledger"
promise = {{epsilon = 1, delta = 1e-6}}
columns.v = {{number = [0, 1]}}
"""
    (tmp_path / "sulq.toml").write_text(text)
    with pytest.raises(InvalidQuery, match="remote = true says"):
        read_policy(tmp_path / "sulq.toml")
    (tmp_path / "sulq.toml").write_text(text + "remote = true\n")
    table = read_policy(tmp_path / "sulq.toml")["people"]
    assert table.rows == Remote(f"{store.url}/people.parquet")
    assert "remote = true\n" in policy_text(table, {})
    (tmp_path / "sulq.toml").write_text(text + "remote = true\nmost_bytes = 7\n")
    table = read_policy(tmp_path / "sulq.toml")["people"]
    assert table.rows == Remote(f"{store.url}/people.parquet", 7)
    assert "most_bytes = 7\n" in policy_text(table, {})
    (tmp_path / "sulq.toml").write_text(text.replace(store.url, "/data") + "remote = true\n")
    with pytest.raises(InvalidQuery, match="https:// or s3://"):
        read_policy(tmp_path / "sulq.toml")
    assert store.asked == []


@pytest.mark.parametrize(
    "url, words",
    [
        ("http://data.example/people.parquet", "in clear"),
        ("http://127.0.0.1.data.example/people.parquet", "in clear"),
        ("https://ann:SECRET@data.example/people.parquet", "no password"),
        ("https://data.example/people.parquet?X-Amz-Signature=SECRET", "no password"),
        ("https://data.example/people.parquet#SECRET", "no password"),
        ("https://data.example/people.csv", "end in .parquet"),
        ("s3://bucket/people/", "end in .parquet"),
        ("s3:///people.parquet", "https://host/people.parquet"),
        ("file:///people.parquet", "https://host/people.parquet"),
        ("ftp://h/people.parquet", "https://host/people.parquet"),
    ],
)
def test_addresses_that_are_refused(url: str, words: str) -> None:
    with pytest.raises(InvalidQuery, match=words) as caught:
        Remote(url)
    assert "SECRET" not in str(caught.value)


def test_a_server_that_does_wrong(store: Store, tmp_path: Path) -> None:
    _, whole = content(1, tmp_path)
    store.files |= {"/people.parquet": whole, "/elsewhere.parquet": whole, "/no.parquet": b"PAR1"}
    remote, before = Remote(f"{store.url}/people.parquet"), len(unnamed())

    def refused(words: str, address: Remote = remote) -> None:
        with pytest.raises((Refused, InvalidQuery), match=words) as caught:
            open_engine(address, tables.SCHEMA)
        assert "ROWS" not in str(caught.value)

    store.status = 302
    refused("sends elsewhere")
    assert len(store.asked) == 1
    store.status = 200
    store.cut = 10
    refused("broke off")
    store.cut = 0
    store.encoding = "gzip"
    refused("sends it encoded")
    store.encoding = None
    refused("more than 100 bytes", Remote(remote.url, 100))
    open_engine(Remote(remote.url, len(whole)), tables.SCHEMA).close()
    store.needs = "Basic nobody"
    refused("netrc")
    store.needs = None
    refused("answers 404", Remote(f"{store.url}/gone.parquet"))
    refused("no.parquet is not a readable Parquet", Remote(f"{store.url}/no.parquet"))
    refused("cannot be reached", Remote("http://127.0.0.1:9/people.parquet"))
    assert len(unnamed()) == before


def test_a_password_of_this_host(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, store.files["/people.parquet"] = content(1, tmp_path)
    store.needs = "Basic YW5uOnB3"  # ann:pw
    (tmp_path / "logins").write_text("machine 127.0.0.1 login ann password pw\n")
    (tmp_path / "logins").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "logins"))
    open_engine(Remote(f"{store.url}/people.parquet"), tables.SCHEMA).close()
    store.cut = 10
    with pytest.raises(Refused, match="broke off") as caught:
        open_engine(Remote(f"{store.url}/people.parquet"), tables.SCHEMA)
    assert caught.value.__context__ is None  # whose request has the password
    store.cut = 0
    for other in ("machine other.example", "default"):
        (tmp_path / "logins").write_text(f"{other} login ann password pw\n")
        with pytest.raises(Refused, match="401"):
            open_engine(Remote(f"{store.url}/people.parquet"), tables.SCHEMA)
        assert "authorization" not in store.asked[-1][1]
    (tmp_path / "logins").chmod(0o644)
    asked = len(store.asked)
    with pytest.raises(Refused, match="mode 0600"):
        open_engine(Remote(f"{store.url}/people.parquet"), tables.SCHEMA)
    assert len(store.asked) == asked


# --- S3 -----------------------------------------------------------------------------------------

KEYS = {
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
}
THEN = datetime(2013, 5, 24, tzinfo=UTC)


def test_the_signature_of_amazons_own_example() -> None:
    """'GET Object' of the Signature Version 4 documents for S3."""
    headers = {
        "host": "examplebucket.s3.amazonaws.com",
        "range": "bytes=0-9",
        "x-amz-content-sha256": NOTHING_SENT,
        "x-amz-date": "20130524T000000Z",
    }
    found = authorization("/test.txt", headers, "us-east-1", *KEYS.values())
    wanted = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    assert found.endswith(f"Signature={wanted}")
    assert "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date," in found


def test_where_a_bucket_is() -> None:
    def where(url: str, **more: str) -> str:
        return s3_request(url, more, THEN)[0]

    assert where("s3://b/d/p.parquet") == "https://b.s3.us-east-1.amazonaws.com/d/p.parquet"
    assert where("s3://b/a%20b+.parquet", AWS_REGION="eu-north-1") == (
        "https://b.s3.eu-north-1.amazonaws.com/a%20b%2B.parquet"
    )
    assert where("s3://a.b/p.parquet") == "https://s3.us-east-1.amazonaws.com/a.b/p.parquet"
    assert where("s3://b/p.parquet", AWS_ENDPOINT_URL="https://store.example:9000/") == (
        "https://store.example:9000/b/p.parquet"
    )
    assert s3_request("s3://b/p.parquet", {}, THEN)[1] == {}
    signed = s3_request("s3://b/p.parquet", KEYS | {"AWS_SESSION_TOKEN": "t"}, THEN)[1]
    assert signed["x-amz-security-token"] == "t"
    assert "host;x-amz-content-sha256;x-amz-date;x-amz-security-token" in signed["authorization"]
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in str(signed)


def test_a_bucket_of_another_store(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, store.files["/lake/people.parquet"] = content(1, tmp_path)
    for name, value in (KEYS | {"AWS_ENDPOINT_URL_S3": store.url}).items():
        monkeypatch.setenv(name, value)
    engine = open_engine(Remote("s3://lake/people.parquet"), tables.SCHEMA)
    assert engine.size() == len(rows)
    engine.close()
    path, asked = store.asked[0]
    signed = {name: asked[name] for name in ("host", "x-amz-content-sha256", "x-amz-date")}
    assert asked["authorization"] == authorization(path, signed, "us-east-1", *KEYS.values())
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://store.example")
    with pytest.raises(InvalidQuery, match="in clear"):
        open_engine(Remote("s3://lake/people.parquet"), tables.SCHEMA)


def test_of_a_person_unit_and_with_balances(store: Store, tmp_path: Path) -> None:
    """Held in memory there, as any file is."""
    _, store.files["/people.parquet"] = content(1, tmp_path)
    remote = Remote(f"{store.url}/people.parquet")
    name = next(c.name for c in tables.SCHEMA.columns if isinstance(c, Number))
    schema, promise = Schema(Number(name, 0, 1)), Promise(1, "1e-6", neighbours="add-remove")
    with Database.open(remote, schema, promise, ":memory:", individual=True) as db:
        db.ask(count())
