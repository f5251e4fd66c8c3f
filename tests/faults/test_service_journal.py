"""A server whose receipts journal goes away, is backed up while it runs, or has a sick table."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.faults.serving import POLICY, environment, published, running, stopped
from tests.server.conftest import write_people
from tests.waiting import LONGEST

TOWN = """
[town]
source = "town.parquet"
ledger = "town.ledger"
apart = true
promise = {epsilon = 1, delta = 1e-6, queries = 50}
columns.age = {number = [0, 110], step = 1}
"""


def sulq(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sulq", *words]
    return subprocess.run(
        command, cwd=home, env=environment(home), capture_output=True, text=True, check=False
    )


def with_journal(home: Path) -> Path:
    published(home)
    (home / "second").mkdir()
    line = '[people]\nreceipts = "second/people.receipts"\n'
    (home / "sulq.toml").write_text(POLICY.replace("[people]\n", line) + TOWN)
    write_people(home / "town.parquet", 1_000)
    assert sulq(home, "publish", "town", "--yes").returncode == 0
    return home / "second" / "people.receipts"


def answered(ask):
    """As a client that sends again under its key."""
    until = time.monotonic() + LONGEST
    while (reply := ask()).status_code == 503 and time.monotonic() < until:
        time.sleep(0.2)
    return reply


@pytest.mark.slow
def test_a_journal_that_is_gone_closes_its_table_and_no_other(tmp_path):
    home = tmp_path / "home"
    journal = with_journal(home)
    with running(home) as server:
        first = server.ask(1)
        assert first.json()["receipt"]["signature"] in journal.read_text()
        journal.rename(journal.with_name("away"))
        replies = [server.ask(2), server.ask(3), server.ask(2)]
        assert {reply.status_code for reply in replies} == {503}
        assert len({reply.content for reply in replies}) == 1
        town = f"{server.url}/v1/tables/town/statement"
        assert server.get(town.removeprefix(server.url)).status_code == 200
        made = sulq(home, "backup", "b.backup")  # from another process, of both
        assert made.returncode == 0, made.stderr
        journal.with_name("away").rename(journal)
        again = answered(lambda: server.ask(2))
        assert again.status_code == 200
        assert server.ask(2).content == again.content
        assert server.ask(1).content == first.content
        assert server.spent() == 2
        assert again.json()["receipt"]["signature"] in journal.read_text()
        stopped(server)


@pytest.mark.slow  # tests/cli/test_backup.py has a sick ledger among others in the quick run
def test_a_sick_table_never_stops_the_others_and_is_named(tmp_path):
    home = tmp_path / "home"
    with_journal(home)
    (home / "town.ledger").write_bytes(b"ruined" * 100)
    with running(home) as server:
        assert server.ask(1).status_code == 200
        assert server.get("/v1/tables/town/statement").status_code == 404
        stopped(server)
    assert "warning: town is not served: the ledger" in (home / "log").read_text()
    (home / "people.ledger").unlink()
    failed = sulq(home, "serve", "--port", "0", "--json")
    assert failed.returncode == 3
    said = json.loads(failed.stdout)["error"]
    assert "people: the ledger" in said
    assert "lost or empty" in said
    assert "town: the ledger" in said
