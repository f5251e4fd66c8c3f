"""Connections that drop, at every phase of a request: charged once, and told the same again."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.conftest import Served, new_key, served
from tests.waiting import LONGEST, come

from sulq import col, count
from sulq.server.limits import Settings
from sulq.wire import question_json

BODY = json.dumps({"question": question_json(count(where=col("age") > 40))}).encode()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("connections")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SULQ_STATE", str(home / "state"))
        with served(home, Settings(pacing=False, body_seconds=LONGEST)) as found:
            yield found


@pytest.fixture(autouse=True)
def state(server: Served) -> Path | None:
    """The module's own; not a new one for each test."""
    return None


def connected(server: Served) -> socket.socket:
    host, _, port = server.url.removeprefix("http://").rpartition(":")
    return socket.create_connection((host, int(port)), timeout=LONGEST)


def head_of(server: Served, key: str, length: int = len(BODY)) -> bytes:
    return (
        f"POST /v1/tables/people/ask HTTP/1.1\r\nHost: here\r\nContent-Length: {length}\r\n"
        f"Authorization: Bearer {server.tokens['analyst']}\r\nIdempotency-Key: {key}\r\n"
        "Content-Type: application/json\r\n\r\n"
    ).encode()


def dropped(line: socket.socket, *, politely: bool) -> None:
    """By FIN, or by a reset."""
    if not politely:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    line.close()


def idle(server: Served) -> bool:
    """Whether nobody is worked for, or waits to be."""
    workers = server.app.state.workers
    return (workers.answers.running, workers.pages.running, workers._keys) == (0, 0, {})


def body_for(server: Served, number: int) -> bytes:
    """A question of its own, of the same length: nothing is derived from another test's."""
    return BODY.replace(b"40", str(number).encode())


CASES = ["in the head", "before the body", "in the body", "after the body", "in the reply"]


@pytest.mark.parametrize("politely", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_a_dropped_connection_is_charged_once(server, case, politely):
    key, body = new_key(), body_for(server, 20 + 2 * CASES.index(case) + politely)
    before, seen = server.database.left_for("analyst"), b""
    head = head_of(server, key)
    line = connected(server)
    line.sendall(
        {
            "in the head": head[:60],
            "before the body": head,
            "in the body": head + body[: len(body) // 2],
        }.get(case, head + body)
    )
    if case == "in the reply":
        seen = line.recv(40)
        assert seen.startswith(b"HTTP/1.1 200")
    dropped(line, politely=politely)
    complete = case in ("after the body", "in the reply")
    if not complete:
        assert server.client(None).get("/healthz").status_code == 200  # it has heard of the end
        come(lambda: idle(server))
        assert server.database.left_for("analyst") == before  # nothing was asked

    first = server.client().post(
        "/v1/tables/people/ask",
        content=body,
        headers={"Idempotency-Key": key, "Content-Type": "application/json"},
    )
    again = server.client().post(
        "/v1/tables/people/ask",
        content=body,
        headers={"Idempotency-Key": key, "Content-Type": "application/json"},
    )
    assert first.status_code == again.status_code == 200
    assert first.content == again.content
    assert first.json()["credits"] == 1
    assert before - server.database.left_for("analyst") == 1
    assert server.database.ledger.keyed("analyst", key) is not None


def test_the_rest_of_a_cut_reply_is_the_same(server):
    """What had been read before the cut, and the whole reply later: the same bytes."""
    key, body = new_key(), body_for(server, 55)
    line = connected(server)
    line.sendall(head_of(server, key) + body)
    seen = b""
    while len(seen.partition(b"\r\n\r\n")[2]) < 100:
        seen += line.recv(16)
    dropped(line, politely=False)
    whole = server.client().post(
        "/v1/tables/people/ask",
        content=body,
        headers={"Idempotency-Key": key, "Content-Type": "application/json"},
    )
    assert whole.content.startswith(seen.partition(b"\r\n\r\n")[2])


def test_a_body_that_never_ends_is_sent_away_and_costs_nothing(tmp_path):
    """Sooner or later: a server of its own, so that its haste is nobody else's."""
    with served(tmp_path, Settings(pacing=False, body_seconds=0.2)) as hasty:
        line = connected(hasty)
        line.sendall(head_of(hasty, new_key()) + BODY[:10])
        assert line.recv(100).startswith(b"HTTP/1.1 408")
        line.close()
        assert hasty.database.left_for("analyst") == 40


def test_many_that_hang_up_leave_nothing_behind(server):
    """No thread, no lock and no waiter of theirs stays."""
    keys = [new_key() for _ in range(20)]
    for number, key in enumerate(keys):
        line = connected(server)
        line.sendall(head_of(server, key) + body_for(server, 60 + number % 10))
        dropped(line, politely=False)
    come(lambda: idle(server))
    assert server.client(None).get("/healthz").status_code == 200
