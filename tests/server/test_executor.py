"""Replies on the clock over HTTP, who is sent away, and a stop that loses nothing."""

from __future__ import annotations

import json
import socket
import threading
import time
from urllib.parse import urlsplit

import pytest
from tests.server.conftest import PROMISE, served
from tests.server.dial import Dial, Stage
from tests.waiting import LONGEST, come

from sulq import col, count
from sulq.server.limits import Settings
from sulq.server.pacing import Clock
from sulq.server.scheduling import Scheduler
from sulq.server.service import books
from sulq.wire import question_json

OLD = {"question": question_json(count(where=col("age") > 40))}


def test_answers_and_refusals_leave_on_whole_ticks(server):
    """By a dial, which only waits move."""
    client, dial, tick = server.client(), Dial(), 0.5
    clock = Clock(tick, lambda bound: 1.0, departures=dial)
    server.app.state.service._clocks["people"] = clock
    server.app.state.workers.scheduler = Scheduler(dial)
    bodies = [OLD, {**OLD, "credits": 1_000}, {"question": {"kind": "total", "query": {}}}]
    for number, body in enumerate(bodies):
        start = dial.now()
        client.post(
            "/v1/tables/people/ask", json=body, headers={"Idempotency-Key": f"a-key-no-{number}"}
        )
        assert dial.now() - start == pytest.approx(tick)


def test_whoever_would_wait_too_long_is_sent_away(tmp_path, state, monkeypatch):
    with served(tmp_path, Settings(pacing=False, threads=1, most_waiting=1), PROMISE) as server:
        gate, sound = threading.Event(), books.schema
        monkeypatch.setattr(books, "schema", lambda session: gate.wait(LONGEST) and sound(session))
        replies: list[int] = []
        waiting = [
            threading.Thread(target=lambda: replies.append(server.get("schema").status_code))
            for _ in range(2)
        ]
        for thread in waiting:
            thread.start()
        come(lambda: server.app.state.workers.pages.running == 2)
        reply = server.get("schema")
        assert (reply.status_code, reply.json()["code"]) == (429, "too_many")
        assert int(reply.headers["retry-after"]) >= 1
        gate.set()
        for thread in waiting:
            thread.join()
        assert replies == [200, 200]


def test_a_stop_finishes_what_has_begun(tmp_path, state):
    """Rows are read only when the stop has begun: when nobody is listening any more."""
    found = []
    with served(tmp_path, Settings(pacing=False), PROMISE) as server:
        begun, on = slowed(server.database.engine)
        thread = threading.Thread(target=lambda: found.append(server.post("ask", OLD)))
        thread.start()
        assert begun.wait(LONGEST)
        threading.Thread(target=lambda: (come(lambda: deaf(server.url)), on.set())).start()
    thread.join()
    assert found[0].status_code == 200


def deaf(url: str) -> bool:
    """Whether connections are turned away there."""
    where = urlsplit(url)
    try:
        socket.create_connection((where.hostname, where.port), timeout=LONGEST).close()
    except ConnectionError:
        return True
    return False


def slowed(engine) -> tuple[threading.Event, threading.Event]:
    """An engine that has begun, the first event tells, and waits for the second."""
    begun, on, sound = threading.Event(), threading.Event(), engine.prepare

    def slow(sums):
        read = sound(sums)

        def reading():
            begun.set()
            assert on.wait(LONGEST)
            return read()

        return reading

    engine.prepare = slow
    return begun, on


def test_a_price_does_not_wait_for_rows_to_be_read(tmp_path, state):
    """The rows are not read before the price has come: if it waited, neither would."""
    with served(tmp_path, Settings(pacing=False, threads=1), PROMISE) as server:
        begun, on = slowed(server.database.engine)
        asking = threading.Thread(target=server.post, args=("ask", OLD))
        asking.start()
        assert begun.wait(LONGEST)
        try:
            assert server.post("quote", OLD).status_code == 200
            assert server.get("statement").status_code == 200
            assert asking.is_alive()
        finally:
            on.set()
        asking.join()


def test_who_waits_for_a_question_begins_when_it_is_stored_not_when_its_rows_are_read(
    tmp_path, state
):
    """Else the order of the ledger would tell how long the rows took.

    The first has read its rows and waits for its moment, on a stage, when the second has come.
    """
    with served(tmp_path, Settings(pacing=False, threads=1), PROMISE) as server:
        before, stage, workers = server.database.ledger.head, Stage(), server.app.state.workers
        clock = Clock(0.5, lambda bound: 1.0, departures=stage)
        server.app.state.service._clocks["people"] = clock
        other = {"question": question_json(count(where=col("age") > 41))}
        replies: list[int] = []
        asking = [
            threading.Thread(
                target=lambda body=body: replies.append(server.post("ask", body).status_code)
            )
            for body in (OLD, other)
        ]
        asking[0].start()
        come(lambda: stage.waiting == 1)
        asking[1].start()
        come(lambda: workers.answers._threads._work_queue.qsize() == 1, "it did not wait")
        while any(thread.is_alive() for thread in asking):
            if stage.waiting:
                stage.step()
            time.sleep(0.005)
        assert replies == [200, 200]
        book = server.database.ledger._book
        rows = book.read(lambda: book.page(before, 100))
        assert [json.loads(row.body)["kind"] for row in rows] == ["charge", "answer"] * 2


@pytest.mark.parametrize(
    "path", ["/v1/tables/people/ask", "/console/people/ask", "/console/people/basket/ask"]
)
def test_a_request_enters_its_table_once(server, monkeypatch, path):
    """However many steps it has, reservations are swept and the ledger is looked after once."""
    recovery = server.app.state.service.recovery
    entered, restore = [], recovery.restore
    monkeypatch.setattr(recovery, "restore", lambda found: entered.append(1) or restore(found))
    body = OLD if path.startswith("/v1") else {"sql": "SELECT COUNT(*) FROM people WHERE smoker"}
    if path.endswith("basket/ask"):
        body = {"sql": [body["sql"]], "max_credits": "40"}
    headers = {"Idempotency-Key": f"enters-{len(path)}-times"}
    reply = server.client("analyst").post(path, json=body, headers=headers)
    assert reply.status_code == 200, reply.text
    assert len(entered) == 1
