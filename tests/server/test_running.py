"""Replies on the clock over HTTP, who is sent away, and a stop that loses nothing."""

from __future__ import annotations

import json
import threading
import time

from tests.server.conftest import PROMISE, served

from sulq import col, count
from sulq.server.app import Settings
from sulq.wire import question_json

OLD = {"question": question_json(count(where=col("age") > 40))}


def test_answers_and_refusals_leave_on_whole_ticks(paced_server):
    server, client = paced_server, paced_server.client()
    tick = server.app.state.service.clock("people").tick
    client.get("/healthz")  # the connection is there
    bodies = [OLD, {**OLD, "credits": 1_000}, {"question": {"kind": "total", "query": {}}}]
    for number, body in enumerate(bodies):
        start = time.monotonic()
        client.post(
            "/v1/tables/people/ask", json=body, headers={"Idempotency-Key": f"a-key-no-{number}"}
        )
        taken = time.monotonic() - start
        assert taken >= tick - 0.001


def test_whoever_would_wait_too_long_is_sent_away(tmp_path, state):
    with served(tmp_path, Settings(pacing=False, threads=1, most_waiting=1), PROMISE) as server:
        gate, sound = threading.Event(), server.app.state.service.schema
        server.app.state.service.schema = lambda *given: gate.wait(20) and sound(*given)
        replies: list[int] = []
        waiting = [
            threading.Thread(target=lambda: replies.append(server.get("schema").status_code))
            for _ in range(2)
        ]
        for thread in waiting:
            thread.start()
        until = time.monotonic() + 10
        while server.app.state.workers.pages.running < 2 and time.monotonic() < until:
            time.sleep(0.01)
        reply = server.get("schema")
        assert (reply.status_code, reply.json()["code"]) == (429, "too_many")
        assert int(reply.headers["retry-after"]) >= 1
        gate.set()
        for thread in waiting:
            thread.join()
        assert replies == [200, 200]


def test_a_stop_finishes_what_has_begun(tmp_path, state):
    found = []
    with served(tmp_path, Settings(pacing=False), PROMISE) as server:
        engine, begun = server.database.engine, threading.Event()
        sound = engine.prepare

        def slow(sums):
            read = sound(sums)

            def reading():
                begun.set()
                time.sleep(0.5)
                return read()

            return reading

        engine.prepare = slow
        thread = threading.Thread(target=lambda: found.append(server.post("ask", OLD)))
        thread.start()
        assert begun.wait(10)
    thread.join()
    assert found[0].status_code == 200


def slowed(engine, seconds: float) -> threading.Event:
    """An engine that takes its time; the event tells that it has begun."""
    begun, sound = threading.Event(), engine.prepare

    def slow(sums):
        read = sound(sums)

        def reading():
            begun.set()
            time.sleep(seconds)
            return read()

        return reading

    engine.prepare = slow
    return begun


def test_a_price_does_not_wait_for_rows_to_be_read(tmp_path, state):
    with served(tmp_path, Settings(pacing=False, threads=1), PROMISE) as server:
        begun = slowed(server.database.engine, 1.5)
        asking = threading.Thread(target=server.post, args=("ask", OLD))
        asking.start()
        assert begun.wait(10)
        start = time.monotonic()
        assert server.post("quote", OLD).status_code == 200
        assert server.get("statement").status_code == 200
        assert asking.is_alive() and time.monotonic() - start < 1.4
        asking.join()


def test_who_waits_for_a_question_begins_when_it_is_stored_not_when_its_rows_are_read(
    tmp_path, state
):
    """Else the order of the ledger would tell how long the rows took."""
    with served(tmp_path, Settings(threads=1), PROMISE) as server:
        before = server.database.ledger.head
        begun = slowed(server.database.engine, 0.01)
        other = {"question": question_json(count(where=col("age") > 41))}
        first = threading.Thread(target=server.post, args=("ask", OLD))
        first.start()
        assert begun.wait(10)
        second = server.post("ask", other)
        first.join()
        assert second.status_code == 200
        book = server.database.ledger._book
        rows = book.read(lambda: book.page(before, 100))
        assert [json.loads(row.body)["kind"] for row in rows] == ["charge", "answer"] * 2
