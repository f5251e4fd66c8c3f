"""No memory: the charge stands, the refusal is constant, a retry gets what it paid for."""

from __future__ import annotations

import re
import resource
import signal
import time
from pathlib import Path

import httpx
import pytest
from tests.faults.serving import Process, published, running, stopped

from sulq import histogram
from sulq.wire import question_json

HUNGRY = str(Path(__file__).with_name("hungry.py"))
ROWS = 300_000


def wide(server: Process, number: int) -> httpx.Response:
    """A histogram of many cells: reading for it takes memory."""
    question = histogram("income", edges=range(number, 100_001, 50))
    return server.post("ask", {"question": question_json(question)}, f"wide-question-{number}")


@pytest.mark.slow
def test_killed_for_its_memory_while_rows_are_read_it_comes_back_and_charges_once(tmp_path):
    home = published(tmp_path / "home")
    for _ in range(2):  # the second time on the charge that the first one left
        with running(home, program=(HUNGRY,)) as server:
            with pytest.raises(httpx.TransportError):
                server.ask(1)
            assert server.process.wait(30) == -signal.SIGKILL
    start = time.monotonic()
    with running(home) as server:
        assert time.monotonic() - start < 30  # also where several tests share a core
        assert server.spent() == 1  # it stands before anybody asks again
        reply = server.ask(1)
        assert (reply.status_code, reply.json()["credits"]) == (200, 1)
        assert server.ask(1).content == reply.content
        assert server.spent() == 1
        stopped(server)


def memory(server: Process, more: int | None) -> None:
    """So many bytes above what it has; None: no limit."""
    found = re.search(r"VmSize:\s+(\d+)", Path(f"/proc/{server.pid}/status").read_text())
    assert found is not None
    _, hard = resource.prlimit(server.pid, resource.RLIMIT_AS)
    most = hard if more is None else int(found[1]) * 1024 + more
    resource.prlimit(server.pid, resource.RLIMIT_AS, (most, hard))


@pytest.mark.slow
def test_where_no_memory_is_left_the_server_lives_and_charges_once(tmp_path):
    home = published(tmp_path / "home", ROWS)
    with running(home) as server:
        assert server.ask(0).status_code == 200
        refused = []
        for number, more in enumerate([0, 0, 1 << 20, 1 << 20]):
            memory(server, more)
            refused.append(wide(server, number))
        memory(server, None)
        told = {reply.status_code: reply.content for reply in refused}
        assert set(told) <= {500, 503}
        assert {reply.content for reply in refused} == set(told.values())  # one text for each
        answered = [wide(server, number) for number in range(4)]
        assert {reply.status_code for reply in answered} == {200}
        paid = sum(reply.json()["credits"] for reply in answered)
        assert server.spent() == 1 + paid
        assert [wide(server, number).content for number in range(4)] == [
            reply.content for reply in answered
        ]
        assert server.spent() == 1 + paid
        stopped(server)
