"""Engines that fail or dawdle, clocks that jump: charged once, one refusal, no reason given."""

from __future__ import annotations

import json
import time
from fractions import Fraction

import duckdb
import pytest
from tests.server.conftest import CANARY, new_key, served
from tests.server.dial import Dial

from sulq import col, count
from sulq.kernel.engines.duckdb import engine
from sulq.server.auth import tokens
from sulq.server.auth.tokens import Role
from sulq.server.limits import Settings
from sulq.server.pacing import Clock, Machine
from sulq.server.scheduling import Scheduler
from sulq.wire import question_json

YEARS = 10 * 365 * 86_400
TICK = 0.2


def asking(number):
    return {"question": question_json(count(where=col("income") > number))}


@pytest.fixture
def server(tmp_path, state):
    with served(tmp_path, Settings(pacing=False)) as found:
        yield found


def failing(monkeypatch, error):
    """The engine gives up when it has begun to read rows."""
    sound = engine.DuckDBEngine._execute

    def broken(self, session, sql):
        sound(self, session, sql)
        raise error

    monkeypatch.setattr(engine.DuckDBEngine, "_execute", broken)


ERRORS = [
    duckdb.OutOfMemoryException(f"could not allocate, at {CANARY}"),
    duckdb.ConversionException(f"could not convert {CANARY}"),
    MemoryError(CANARY),
    OSError(5, CANARY),
]


def test_an_engine_that_fails_in_the_middle_is_one_constant_503(server, monkeypatch):
    refused = []
    for number, error in enumerate(ERRORS):
        key = new_key()
        with monkeypatch.context() as patch:
            failing(patch, error)
            reply = server.post("ask", asking(number), key=key)
        refused.append(reply)
        left = server.database.left_for("analyst")
        again = server.post("ask", asking(number), key=key)
        assert again.status_code == 200
        assert server.database.left_for("analyst") == left == 40 - (number + 1)
        assert server.post("ask", asking(number), key=key).content == again.content
    assert {reply.status_code for reply in refused} == {503}
    assert len({reply.content for reply in refused}) == 1
    told = refused[0].json()
    assert (told["code"], told["credits_spent_exact"]) == ("engine_failed", "1")
    assert CANARY not in str([(r.text, r.headers) for r in refused]) + server.logged(len(ERRORS))


def slow(monkeypatch, dawdle):
    sound = engine.DuckDBEngine.prepare

    def prepare(self, program):
        read = sound(self, program)

        def dawdling():
            dawdle()
            return read()

        return dawdling

    monkeypatch.setattr(engine.DuckDBEngine, "prepare", prepare)


def test_a_late_answer_leaves_at_a_later_tick_and_only_the_owner_hears_of_it(
    tmp_path, state, monkeypatch
):
    """By a dial, which only waits and the engine move."""
    with served(tmp_path, Settings(pacing=False)) as server:
        dial, machine = Dial(), Machine(1e-3, 1e-10, 1e-6)
        clock = Clock.of(server.database, tick=TICK, machine=machine, departures=dial)
        server.app.state.service._clocks["people"] = clock
        server.app.state.workers.scheduler = Scheduler(dial)
        client = server.client()

        def seconds(number):
            headers = {"Idempotency-Key": new_key()}
            start = dial.now()
            reply = client.post("/v1/tables/people/ask", json=asking(number), headers=headers)
            assert reply.status_code == 200
            return dial.now() - start

        server.post("quote", asking(0))
        assert seconds(0) == pytest.approx(TICK) and clock.overruns == 0
        slow(monkeypatch, lambda: dial.take(2.2 * TICK))
        assert seconds(1) == pytest.approx(3 * TICK)
        late = clock.overruns
        assert late == 1
        told = {who: server.get("statement", who).json() for who in ("owner", "analyst", "auditor")}
        assert told["owner"]["overruns"] == late
        assert told["analyst"]["overruns"] is told["auditor"]["overruns"] is None
        assert "overrun" not in server.client("owner").get("/metrics").text + server.logged(3)


def test_a_clock_that_jumps_changes_no_charge(server, monkeypatch):
    true, told = time.time, {}
    for number, offset in enumerate([0, YEARS, -YEARS, 86_400, -86_400, 0]):
        monkeypatch.setattr(time, "time", lambda offset=offset: true() + offset)
        told[number] = server.post("ask", asking(number), key=f"key-{number:08d}")
        assert told[number].status_code == 200
        for old in range(number + 1):  # and every earlier one again, by this clock
            again = server.post("ask", asking(old), key=f"key-{old:08d}")
            assert again.content == told[old].content
    assert server.database.left_for("analyst") == 40 - len(told)

    monkeypatch.setattr(time, "time", lambda: true() + YEARS)
    server.app.state.service.replies._sweep()  # as if all were old: the ledger still knows
    for number, reply in told.items():
        again = server.post("ask", asking(number), key=f"key-{number:08d}").json()
        assert again["values"] == reply.json()["values"]
    assert server.database.left_for("analyst") == 40 - len(told)
    entries = list(server.database.ledger.entries("analyst"))
    assert sum(entry.share_charged.credits_fraction for entry in entries) == Fraction(len(told))


def test_no_step_of_the_clock_brings_a_token_back(server, monkeypatch):
    """An hour passes by the machine's own count, which a step back does not turn back."""
    true, hour = time.time, int(time.time()) + 3_600
    server.tokens["brief"] = server.access.issue("brief", Role.ANALYST, {"x": "x"}, hour)
    server.tokens["gone"] = server.access.issue("gone", Role.ANALYST, {"x": "x"})
    server.access.revoke("gone")

    def status(who):
        return server.client(who).get("/v1/me").status_code

    assert (status("brief"), status("gone")) == (200, 401)
    monkeypatch.setattr(time, "time", lambda: true() + YEARS)
    assert (status("brief"), status("gone"), status("analyst")) == (401, 401, 200)
    monkeypatch.setattr(time, "time", true)
    assert status("brief") == 200  # who was wrong about the year was, and has been set right
    started, counted = tokens.STARTED
    monkeypatch.setattr(tokens, "STARTED", (started, counted - 3_601))
    assert status("brief") == 401
    monkeypatch.setattr(time, "time", lambda: true() - YEARS)
    assert (status("brief"), status("gone"), status("analyst")) == (401, 401, 200)
    assert json.loads(server.client("analyst").get("/v1/me").text)["role"] == "analyst"
