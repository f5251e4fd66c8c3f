"""Two machines, one ledger on a server: published on one, joined by the other, used by both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import POLICY
from tests.postgres_server import MISSING, NO_DRIVER, programs, running

from sulq.ledger import book


@pytest.fixture
def ledger():
    pytest.importorskip("psycopg", reason=NO_DRIVER)
    if programs() is None:
        pytest.skip(MISSING)
    with running() as server:
        yield server.url(user="postgres") + "&ledger=people"


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
