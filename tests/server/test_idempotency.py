"""Idempotency keys: the same bytes, charged once, whatever comes in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import httpx
import pytest
from tests.server.conftest import PROMISE, SCHEMA, new_key, serving, write_people
from tests.waiting import LONGEST, come

from sulq import Database, col, count, mean
from sulq.errors import EngineFailed
from sulq.kernel.engines.duckdb import engine
from sulq.server.app import create_app
from sulq.server.auth.tokens import Role
from sulq.server.limits import Settings
from sulq.server.service.catalog import Tables
from sulq.wire import question_json

OLD = {"question": question_json(count(where=col("age") > 40))}
YOUNG = {"question": question_json(count(where=col("age") < 20))}
STATEMENT = {"sql": "SELECT AVG(income), AVG(age) FROM people WHERE smoker"}
PLAN = {"questions": [OLD["question"], question_json(mean("age"))], "credits": 3}


@pytest.mark.parametrize(("path", "body"), [("ask", OLD), ("sql", STATEMENT), ("plan/ask", PLAN)])
def test_a_retry_gets_the_same_bytes_and_is_charged_once(server, path, body):
    key = new_key()
    first = server.post(path, body, key=key)
    left = server.database.left_for("analyst")
    again = server.post(path, body, key=key)
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.content == first.content
    assert server.database.left_for("analyst") == left < 40
    assert left == 40 - Fraction(first.json()["credits_exact"])


def test_a_key_stands_for_one_request_of_one_caller(server):
    key = new_key()
    server.post("ask", OLD, key=key)
    reply = server.post("ask", YOUNG, key=key)
    assert (reply.status_code, reply.json()["code"]) == (409, "key_reused")
    assert reply.json()["credits_spent"] == 0
    assert server.post("sql", STATEMENT, key=key).json()["code"] == "key_reused"
    assert server.database.left_for("analyst") == 39
    assert server.post("ask", YOUNG, "rival", key=key).status_code == 200


def test_a_key_that_others_read_in_the_ledger_opens_nothing(server):
    key = new_key()
    server.post("ask", OLD, key=key)
    entries = server.get("ledger", "auditor").json()["entries"]
    assert any(key in entry.get("body", "") for entry in entries)  # as docs/limits.md says
    assert not any(key in str(entry) for entry in server.get("ledger", "rival").json()["entries"])
    assert server.post("ask", OLD, "auditor", key=key).status_code == 403
    reply = server.post("ask", OLD, "rival", key=key).json()  # a request of the rival's own
    assert reply["credits"] == 1 and server.database.left_for("rival") == 9
    assert server.database.left_for("analyst") == 39


def test_tables_of_one_name_in_two_ledgers_share_no_reply(server, tmp_path):
    """Two servers on one machine share the store of replies."""
    other = tmp_path / "other"
    other.mkdir()
    write_people(other / "people.parquet", 1_000)
    with Database.open(
        other / "people.parquet", SCHEMA, PROMISE, other / "x.ledger", name="people", publish=True
    ) as database:
        second = create_app(
            Tables({"people": database}), server.access, settings=Settings(pacing=False)
        )
        headers = {"Authorization": f"Bearer {server.tokens['owner']}"}
        headers["Idempotency-Key"] = "the-same-key"
        first = server.post("ask", OLD, "owner", key="the-same-key").json()
        with serving(second) as url:
            reply = httpx.post(
                f"{url}/v1/tables/people/ask", json=OLD, headers=headers, timeout=LONGEST
            ).json()
    assert reply["receipt"]["receipt"]["ledger"] != first["receipt"]["receipt"]["ledger"]


def test_a_refused_request_leaves_its_key_free(server):
    key = new_key()
    assert server.post("ask", {**OLD, "credits": 41}, key=key).status_code == 402
    assert server.post("ask", YOUNG, key=key).status_code == 200


def test_a_price_above_the_limit_is_refused_free(server):
    reply = server.post("ask", {**OLD, "max_credits": "1/2"})
    assert (reply.status_code, reply.json()["code"]) == (409, "price_changed")
    assert server.post("sql", {**STATEMENT, "max_credits": 0}).json()["code"] == "price_changed"
    body = {**PLAN, "max_credits": 1}
    assert server.post("plan/ask", body).json()["code"] == "price_changed"
    assert server.database.statement().spent == 0
    assert server.post("ask", {**OLD, "max_credits": 1}).status_code == 200


def test_requests_with_one_key_at_once_are_one(server):
    key, found = new_key(), []

    def ask() -> None:
        found.append(server.post("ask", OLD, key=key).content)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert json.loads(found[0])["credits"] == 1
    assert server.database.left_for("analyst") == 39


def test_owners_of_other_names_with_one_key_at_once_are_one(server, monkeypatch):
    """The books know one owner, whatever the token says: rows are read once for a key.

    They are read when both requests are there.
    """
    workers = server.app.state.workers
    key, found, reads, sound = new_key(), [], [], engine.DuckDBEngine.prepare

    def slow(self, sums):
        read = sound(self, sums)

        def work():
            reads.append(sums)
            come(lambda: sum(users for _, users in list(workers._keys.values())) == 2)
            return read()

        return work

    monkeypatch.setattr(engine.DuckDBEngine, "prepare", slow)
    server.tokens["other"] = server.access.lend("other", Role.OWNER)

    def ask(who: str) -> None:
        found.append(server.post("ask", OLD, who, key=key).content)

    threads = [threading.Thread(target=ask, args=(who,)) for who in ("owner", "other")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == len(reads) == 1


@pytest.mark.parametrize(("path", "body"), [("ask", OLD), ("sql", STATEMENT), ("plan/ask", PLAN)])
def test_an_engine_that_fails_says_what_was_spent_and_a_retry_is_free(
    server, monkeypatch, path, body
):
    key, sound = new_key(), engine.DuckDBEngine.prepare

    def broken(self, sums):
        sound(self, sums)

        def read():
            raise EngineFailed

        return read

    monkeypatch.setattr(engine.DuckDBEngine, "prepare", broken)
    reply = server.post(path, body, key=key)
    spent = Fraction(reply.json()["credits_spent_exact"])
    assert (reply.status_code, reply.json()["code"]) == (503, "engine_failed")
    assert server.database.left_for("analyst") == 40 - spent < 40
    monkeypatch.undo()
    again = server.post(path, body, key=key)
    assert again.status_code == 200
    assert Fraction(again.json()["credits_exact"]) == spent
    assert server.database.left_for("analyst") == 40 - spent
    assert server.post(path, body, key=key).content == again.content


KILLED = Path(__file__).with_name("killed.py")


@contextmanager
def running(directory: Path, *more: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The server as a process of its own, and its address."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(KILLED), str(directory), *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.terminate()


def crashes() -> Iterator[object]:
    """All moments for all requests; the quick run has one."""
    requests = [("ask", OLD), ("sql", STATEMENT), ("plan/ask", PLAN)]
    for number, step in enumerate(("charged", "answered", "kept")):
        for place, (path, body) in enumerate(requests):
            marks = () if number == place == 1 else (pytest.mark.slow,)
            yield pytest.param(step, path, body, marks=marks, id=f"{step}-{path}")


@pytest.mark.parametrize(("step", "path", "body"), list(crashes()))
def test_killed_between_charge_and_reply_a_retry_is_answered_and_charged_once(
    tmp_path, monkeypatch, step, path, body
):
    monkeypatch.setenv("SULQ_STATE", str(tmp_path / "state"))
    write_people(tmp_path / "people.parquet")
    key = new_key()

    def asked(url: str) -> httpx.Response:
        token = (tmp_path / "token").read_text()
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": key}
        return httpx.post(
            f"{url}/v1/tables/people/{path}", json=body, headers=headers, timeout=LONGEST
        )

    with running(tmp_path, step) as (process, url):
        with pytest.raises(httpx.TransportError):
            asked(url)
        assert process.wait(120) == -signal.SIGKILL
    with running(tmp_path) as (_, url):
        reply, again = asked(url), asked(url)
    assert reply.status_code == 200, reply.text
    assert again.content == reply.content
    paid = Fraction(reply.json()["credits_exact"])
    with Database.open(
        tmp_path / "people.parquet",
        SCHEMA,
        PROMISE,
        tmp_path / "people.ledger",
        name="people",
        publish=True,
    ) as database:
        assert database.left_for("analyst") == 40 - paid < 40
