"""What the clock of a remote client tells of one planted row: nothing, when replies are paced.

The engine is made 20 ms slower where a planted row is in the table. On a dial, which only
waits and that engine move, replies with and without the row leave at the same moment. On the real
clock guesses are judged on replies that the threshold was not chosen on.
"""

from __future__ import annotations

import http.client
import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from tests.server.dial import Dial
from tests.server.serving import serving
from tests.waiting import LONGEST

from sulq import Database, Flag, Number, Promise, Schema, col, count
from sulq.attacks.side_channels import rank_correlation
from sulq.database.table import PlainReader
from sulq.server.app import create_app
from sulq.server.auth.tokens import Access, Role
from sulq.server.limits import Settings
from sulq.server.pacing import Clock, Machine, Unpaced
from sulq.server.postgres.listener import PostgresPort
from sulq.server.scheduling import Scheduler
from sulq.server.service.catalog import Tables
from sulq.wire.convert import question_json

SLOWER = 0.02
TICK = 0.25
"""Seconds. Longer than a table of this size would need: the machine that tests is shared."""
LINES = 12
"""Connections of paced clients: each waits most of the time."""
ROWS = 1_000
SCHEMA = Schema(Number("number", 0, 10**9, step=1), Flag("planted"))
MACHINE = Machine(0.001, 1e-9, 1e-6)


class Slower:
    """An engine that dawdles over a planted row: what no engine should do, but might."""

    def __init__(self, engine: Any, planted: bool, dawdle: Callable[[float], object]) -> None:
        self._engine, self._planted, self._dawdle = engine, planted, dawdle

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def prepare(self, program: Any) -> Callable[[], list[int]]:
        read = self._engine.prepare(program)

        def slower() -> list[int]:
            if self._planted:
                self._dawdle(SLOWER)
            return read()

        return slower


def table(planted: bool, dawdle: Callable[[float], object]) -> Database:
    """Two tables of one size that differ in their last row."""
    rows = {"number": np.arange(ROWS), "planted": np.arange(ROWS) == (ROWS - 1 if planted else -1)}
    promise = Promise(1, "1e-6", 10**6)
    found = Database.open(rows, SCHEMA, promise, ":memory:", name=f"table{planted:d}")
    slower: Any = Slower(found.engine, planted, dawdle)
    found.reader = PlainReader(slower)
    return found


@contextmanager
def served(
    paced: bool,
    dial: Dial | None = None,
    settings: Settings | None = None,
    postgres: PostgresPort | None = None,
) -> Iterator[tuple[int, str, FastAPI]]:
    """Two tables on one server, on a dial or on the real clock: port, token, application."""
    dawdle = time.sleep if dial is None else dial.take
    databases = {f"table{planted:d}": table(planted, dawdle) for planted in (False, True)}
    tables, access = Tables(databases), Access.open()
    token = access.lend("owner", Role.OWNER)
    app = create_app(tables, access, settings=settings or Settings(), postgres=postgres)
    app.state.workers.scheduler = Scheduler(dial)
    app.state.service._clocks = {
        name: Clock.of(database, tick=TICK, machine=MACHINE, departures=dial)
        if paced
        else Unpaced()
        for name, database in databases.items()
    }
    with serving(app) as port:
        yield port, token, app
    tables.close()
    access.close()


def ask(line: http.client.HTTPConnection, token: str, place: int, number: int) -> tuple[float, Any]:
    """Seconds of one fresh question's reply, and the reply."""
    question = question_json(count(where=col("number") == number))
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Idempotency-Key": f"key-{place}-{number}-{id(line)}",
    }
    body = json.dumps({"question": question, "credits": 1})
    start = time.perf_counter()
    line.request("POST", f"/v1/tables/table{place}/ask", body, headers)
    reply = line.getresponse()
    content = reply.read()
    taken = time.perf_counter() - start
    assert reply.status == 200, content[:300]
    return taken, json.loads(content)


def replies(port: int, token: str, each: int, lines: int) -> tuple[Any, Any, Any]:
    """Times of fresh replies, which table they came from, and how large their noise was."""
    found: list[tuple[float, int, float]] = []

    def one(number: int) -> None:
        coins = np.random.default_rng([each, number])
        time.sleep(TICK * number / lines)
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as line:
            for turn in range(each + 1):
                place, asked = int(coins.integers(2)), 10**6 + number * 100_000 + turn
                taken, reply = ask(line, token, place, asked)  # so high is nobody: all noise
                if turn:
                    found.append((taken, place, abs(reply["value"])))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(lines)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    coins = np.random.default_rng(0).permutation(len(found))
    times, places, sizes = map(np.array, zip(*(found[place] for place in coins), strict=True))
    return times, places, sizes


def best_threshold(times: Any, places: Any) -> tuple[float, bool]:
    """Where to cut, and which side is called slow: the best on these."""
    order = np.argsort(times)
    right = np.cumsum(np.where(places[order] == 0, 1, -1))
    cut = int(np.argmax(np.abs(right)))
    return float(times[order][cut]), bool(right[cut] > 0)


def accuracy(times: Any, places: Any, train: int) -> tuple[float, float]:
    """The share of right guesses on replies that the threshold has not seen; standard error."""
    cut, above = best_threshold(times[:train], places[:train])
    guessed = (times[train:] > cut) == above
    tested = len(times) - train
    return float(np.mean(guessed == (places[train:] == 1))), math.sqrt(0.25 / tested)


def told_apart(paced: bool, tested: int, train: int) -> tuple[float, float, float]:
    lines = LINES if paced else 1
    with served(paced) as (port, token, _):
        times, places, sizes = replies(port, token, -(-(tested + train) // lines), lines)
    share, error = accuracy(times, places, train)
    return share, error, rank_correlation(times, sizes)


@pytest.mark.parametrize("slower", [0.02, 0.147])
def test_a_paced_reply_leaves_at_the_same_moment_with_and_without_the_row(monkeypatch, slower):
    """Stored and sent alike by the dial, which no load of the machine moves; unpaced, it tells."""
    monkeypatch.setattr(f"{__name__}.SLOWER", slower)
    found = {}
    for paced in (False, True):
        dial = Dial()
        with (
            served(paced, dial) as (port, token, app),
            closing(http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST)) as line,
        ):
            for place in (0, 1):
                before = dial.now()
                ask(line, token, place, 10**6)
                found[paced, place] = dial.now() - before
            assert not any(clock.overruns for clock in app.state.service.clocks.values())
    assert (found[False, 0], found[False, 1]) == (0, pytest.approx(slower))
    assert found[True, 0] == found[True, 1] == pytest.approx(TICK)


@pytest.mark.slow
def test_an_unpaced_reply_tells_of_the_row():
    """The test has power: 20 ms are seen at once. Slow: a measurement by nature, of real time."""
    share, error, _ = told_apart(False, 200, 100)
    assert share > 0.5 + 3 * error


@pytest.mark.slow
def test_a_paced_reply_does_not():
    """150 replies. By chance alone 1 in 700 fails once, so one in 500,000 fails twice.

    Slow: a measurement by nature. A machine so busy that replies miss their ticks fails it.
    """
    for _ in range(2):
        share, error, _ = told_apart(True, 150, 75)
        if share <= 0.5 + 3 * error:
            return
    pytest.fail(f"{share:.3f} of the guesses were right, standard error {error:.3f}")


@pytest.mark.slow
def test_neither_row_nor_noise_shows_in_two_thousand_paced_replies():
    for _ in range(2):
        share, error, correlation = told_apart(True, 2_400, 800)
        if share <= 0.5 + 3 * error and abs(correlation) < 4 / math.sqrt(3_200):
            return
    pytest.fail(f"{share:.4f} right (error {error:.4f}), correlation {correlation:.4f}")


def test_refusals_and_retries_leave_on_the_clock_too():
    """By the dial: a whole number of ticks after the request, whatever became of it."""
    dial = Dial()
    with (
        served(True, dial) as (port, token, app),
        closing(http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST)) as line,
    ):
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

        def sent(body: object, key: str) -> tuple[int, float, bytes]:
            start = dial.now()
            named = {**headers, "Idempotency-Key": key}
            line.request("POST", "/v1/tables/table1/sql", json.dumps(body), named)
            reply = line.getresponse()
            content = reply.read()
            return reply.status, dial.now() - start, content

        for body, key, status in (
            ({"sql": "SELECT count(*) FROM table1"}, "retried-key", 200),
            ({"sql": "SELECT count(*) FROM table1"}, "retried-key", 200),
            ({"sql": "SELECT count(*) FROM table1"}, "another-key", 200),  # a repeat: nothing read
            ({"sql": "SELECT nobody FROM table1"}, "refused-key", 422),
            (
                {"sql": "SELECT count(*) FROM table1 WHERE number > 3", "max_credits": 1e-9},
                "d" * 9,
                409,
            ),
        ):
            found, taken, content = sent(body, key)
            assert found == status, content[:300]
            assert taken == pytest.approx(TICK)
        assert app.state.service.clock("table1").overruns == 0
