"""Replies on the clock over HTTP, who is sent away, and a stop that loses nothing."""

from __future__ import annotations

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
        while server.app.state.workers._running < 2 and time.monotonic() < until:
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
