"""A full disk, a stale backup, a second server: one refusal for everybody, nothing is lost."""

from __future__ import annotations

import resource
import shutil
import time

import pytest
from tests.faults.serving import CREDITS, Process, published, refused, running, stopped
from tests.waiting import LONGEST

ROOM = 1 << 40


def limit(server: Process, most: int) -> None:
    """No file of the server may grow beyond that: writes fail as on a full disk."""
    _, hard = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
    soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (soft, hard))


def largest(home, pattern):
    return max(path.stat().st_size for path in home.glob(pattern))


def outgrown(server: Process, home) -> int:
    """Events of the ledger alone until its file is the largest: then it is the first to be full."""
    while largest(home, "*.ledger*") < largest(home, "state/replies*") + 40_000:
        held = server.post("reservations", {"credits": 1}, "unused-key").json()["id"]
        server.delete(f"reservations/{held}")
    return largest(home, "*.ledger*")


def until_answered(server: Process, number: int):
    """As a client that sends again: the first reply that is not a refusal."""
    until = time.monotonic() + LONGEST
    while (reply := server.ask(number)).status_code == 503 and time.monotonic() < until:
        time.sleep(0.2)
    return reply


@pytest.mark.slow  # test_service_books.py has the quick ones
@pytest.mark.parametrize("full", ["ledger", "replies"])
def test_a_full_disk_is_one_constant_refusal_and_work_goes_on_after(tmp_path, full):
    home = published(tmp_path / "home")
    with running(home) as server:
        told = {number: server.ask(number) for number in range(3)}
        assert {reply.status_code for reply in told.values()} == {200}
        limit(server, outgrown(server, home) if full == "ledger" else 4096)
        replies = [server.ask(number) for number in range(3, 9)]
        assert {reply.status_code for reply in replies} == {503}
        assert {reply.json()["code"] for reply in replies} == {"out_of_order"}
        assert len({reply.content for reply in replies}) == 1
        limit(server, ROOM)
        answered = {number: until_answered(server, number) for number in range(3, 9)}
        assert {reply.status_code for reply in answered.values()} == {200}
        assert server.spent() == 9  # each once, whatever stood when the disk was full
        for number, reply in told.items():
            assert server.ask(number).content == reply.content
        stopped(server)
    with running(home) as server:  # the chain verifies
        assert server.spent() == 9
        for number, reply in answered.items():
            assert server.ask(number).content == reply.content
        assert server.spent() == 9
        stopped(server)


@pytest.mark.slow
def test_a_stale_backup_is_not_served(tmp_path):
    home = published(tmp_path / "home")
    with running(home) as server:
        server.ask(1)
        stopped(server)
    shutil.copytree(home, tmp_path / "backup", ignore=shutil.ignore_patterns("state", "log"))
    with running(home) as server:
        server.ask(2)
        stopped(server)
    newest = (home / "people.ledger").read_bytes()
    shutil.copy(tmp_path / "backup" / "people.ledger", home / "people.ledger")
    assert refused(home)
    assert "rolled back" in (home / "log").read_text()
    (home / "people.ledger").write_bytes(newest)
    with running(home) as server:
        assert server.spent() == 2
        stopped(server)


@pytest.mark.slow
@pytest.mark.parametrize("state", ["another", "the same"])
def test_a_second_server_on_the_ledger_refuses(tmp_path, state):
    """Also one that was started by somebody else, with a state directory of its own."""
    home = published(tmp_path / "home")
    more = {} if state == "the same" else {"SULQ_STATE": str(tmp_path / "elsewhere")}
    with running(home) as server:
        assert server.ask(1).status_code == 200
        assert refused(home, **more)
        said = (home / "log").read_text()
        assert "held by" in said or "another process" in said
        assert "Traceback" not in said
        assert server.ask(2).status_code == 200
        assert server.spent() == 2 <= CREDITS
        stopped(server)
