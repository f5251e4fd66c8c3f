"""Two machines, one ledger on a server: published on one, joined by the other, used by both."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from tests.cli.conftest import POLICY
from tests.postgres_server import MISSING, NO_DRIVER, programs, running
from tests.waiting import LONGEST

from sulq import col, count
from sulq.kernel.ledger import file as book
from sulq.wire import question_json


@pytest.fixture
def ledger():
    pytest.importorskip("psycopg", reason=NO_DRIVER)
    if programs() is None:
        pytest.skip(MISSING)
    with running() as server:
        yield server.url(user="postgres") + "&ledger=people"


@pytest.mark.slow
def test_a_second_machine_joins_and_both_spend_one_budget(sulq, ledger, tmp_path, monkeypatch):
    Path("sulq.toml").write_text(POLICY.replace("people.ledger", ledger), "utf-8")

    def on(machine, *words, code=0):
        monkeypatch.setenv("SULQ_STATE", str(tmp_path / machine))
        reply = sulq(*words)
        book._books.clear()
        assert reply.code == code, reply.err
        return reply

    question = ("ask", "count", "--where", "age > 40", "--credits", "1", "--json")
    first = on("one", *question)
    assert "postgres@" not in first.err  # neither user nor password of the server are told
    refused = on("two", *question, code=3)
    assert "sulq share-key" in refused.err
    file = str(tmp_path / "key")
    on("one", "share-key", file)
    on("two", "join", file)
    again = on("two", *question)
    assert again.json["value"] == first.json["value"]
    on("two", "grant", "ann", "2")
    shown = json.dumps(on("one", "ledger", "--json").json)
    assert "ann" in shown
    assert "age" in shown
    on("one", "verify")
    assert not on("two", "recover", "--dry-run", "--json").json["burnt"]


SOURCE = Path(__file__).parents[2] / "src"


def served(state):
    """`sulq serve` as one replica, in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "sulq", "serve", "--port", "0", "--json", "--no-open"],
        env={**os.environ, "PYTHONPATH": str(SOURCE), "SULQ_STATE": str(state)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    line = process.stdout.readline()
    assert line, process.stderr.read()
    return process, json.loads(line)["address"]


@pytest.mark.slow
def test_any_of_several_servers_may_be_killed(sulq, ledger, tmp_path, monkeypatch):
    Path("sulq.toml").write_text(POLICY.replace("people.ledger", ledger), "utf-8")
    monkeypatch.setenv("SULQ_STATE", str(tmp_path / "one"))
    token = sulq("grant", "ann", "3").out.strip()
    sulq("share-key", "key")
    book._books.clear()
    monkeypatch.setenv("SULQ_STATE", str(tmp_path / "two"))
    sulq("join", "key")
    shutil.copy(tmp_path / "one" / "access.sqlite", tmp_path / "two" / "access.sqlite")
    headers = {"Authorization": f"Bearer {token}"}

    def ask(address, age, key):
        asked = {"question": question_json(count(where=col("age") > age)), "credits": "1"}
        sent = {**headers, "Idempotency-Key": f"key-number-{key}"}
        found = httpx.post(
            f"{address}/v1/tables/people/ask", json=asked, headers=sent, timeout=LONGEST
        )
        return found.status_code, found.json()

    servers = [served(tmp_path / name) for name in ("one", "two")]
    try:
        (first, at_one), (_, at_two) = servers
        code, told = ask(at_one, 40, 1)
        assert code == 200, told
        again = ask(at_two, 40, 1)[1]
        first.kill()
        first.wait(120)
        assert json.dumps(told["receipt"]) == json.dumps(again["receipt"])
        assert ask(at_two, 50, 2)[0] == 200
        servers.append(served(tmp_path / "one"))
        assert ask(servers[-1][1], 60, 3)[0] == 200
        assert ask(at_two, 70, 4)[0] == 402  # ann's three credits are spent
        assert ask(servers[-1][1], 50, 5)[0] == 200  # a repeat
    finally:
        for process, _ in servers:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=120)
