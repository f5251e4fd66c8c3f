"""Two channels beside the answers: how busy a server is, and which of its replies miss their tick.

An attacker tries to tell whether one row is there. The best cut is chosen on the first third of the
cases and judged on the others; if nothing shows, right guesses are fair coins, and a finding is
what they would do once in 10^6 runs (exact binomial).
"""

from __future__ import annotations

import http.client
import io
import json
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binom
from tests.server import test_pacing_http as paced
from tests.server.serving import serving
from tests.waiting import LONGEST

from sulq import Category, Database, Flag, Number, Promise, Schema, col, count, histogram, total
from sulq.server.app import create_app
from sulq.server.auth.tokens import Access, Role
from sulq.server.limits import Settings
from sulq.server.middleware import Log
from sulq.server.pacing import Clock
from sulq.server.service.catalog import Tables
from sulq.wire import question_json

SURE = 1e-6
ROWS = 50_000
TICK = 0.1
POLLERS = 2
PAUSE = 0.002
"""Seconds between the requests of one poller."""
SCHEMA = Schema(
    Number("number", 0, 10**9, step=1),
    Number("value", 0, 10**6),
    Flag("ill"),
    Category("group", [str(n) for n in range(500)]),
)


class Told(NamedTuple):
    """Guesses about whether a row is there: how many were judged, and how many were right."""

    judged: int
    right: int
    seconds: float
    missed: float
    """Of the replies, those that left after their tick."""

    @property
    def share(self) -> float:
        return self.right / self.judged

    @property
    def chance(self) -> float:
        """How often fair coins do as well."""
        return float(binom.sf(self.right - 1, self.judged, 0.5))


def judged(features: Any, places: Any, seconds: float, missed: float) -> Told:
    """Guess by the one feature, and the cut, that did best on a third of the cases."""
    train = len(places) // 3
    cuts = [paced.best_threshold(each[:train], places[:train]) for each in features]
    guesses = [(each > cut) == above for each, (cut, above) in zip(features, cuts, strict=True)]
    right = [each == (places == 1) for each in guesses]
    best = max(right, key=lambda each: int(each[:train].sum()))
    return Told(len(places) - train, int(best[train:].sum()), seconds, missed)


# --- polling --------------------------------------------------------------------------------------


def table(there: bool) -> Database:
    """Many rows of 400 groups; one more that alone is selected, alone in its group, and the only
    one that is ill; or a row like all others in its place."""
    rng = np.random.default_rng(5)
    rows: dict[str, Any] = {
        "number": rng.integers(0, 10**6, ROWS),
        "value": rng.integers(0, 10**6, ROWS).astype(float),
        "ill": np.zeros(ROWS, bool),
        "group": rng.integers(0, 400, ROWS).astype(str),
    }
    if there:
        rows["number"][-1], rows["ill"][-1], rows["group"][-1] = 10**9, True, "499"
    promise = Promise(1, "1e-6", 10**6)
    return Database.open(rows, SCHEMA, promise, ":memory:", name=f"table{there:d}", publish=True)


def questions(turn: int) -> Any:
    """A fresh question in which the row matters, three kinds in turn."""
    least = 10**8 + turn
    match turn % 3:
        case 0:
            return count(where=col("number") >= least)
        case 1:
            return histogram("group", where=(col("number") >= least) | (col("value") < turn))
    return total(col("value").clip(0, 1000 + turn), where=col("ill"))


def polled(cases: int, slower: Callable[[Database], None] | None = None) -> Told:
    """What pollers of a free route see while one question at a time is answered on its tick."""
    tables, access = (
        Tables({f"table{there:d}": table(there) for there in (False, True)}),
        Access.open(),
    )
    if slower is not None:
        slower(tables["table1"])
    token = access.lend("owner", Role.OWNER)
    app = create_app(tables, access, settings=Settings(), log=Log(io.StringIO()))
    clocks = {n: Clock.of(tables[n], tick=TICK, machine=paced.MACHINE) for n in tables.names()}
    app.state.service._clocks = clocks
    seen: list[tuple[float, float]] = []
    done = threading.Event()

    def poll(port: int) -> None:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST)) as line:
            while not done.is_set():
                start = time.perf_counter()
                line.request("GET", "/healthz")
                line.getresponse().read()
                seen.append((start, time.perf_counter() - start))
                time.sleep(PAUSE)

    coins, asked = np.random.default_rng(cases), list[tuple[float, float, int]]()
    begun = time.monotonic()
    with serving(app) as port:
        pollers = [threading.Thread(target=poll, args=(port,)) for _ in range(POLLERS)]
        for each in pollers:
            each.start()
        try:
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST)) as line:
                for turn in range(cases + 5):
                    place = int(coins.integers(2))
                    start = time.perf_counter()
                    send(line, token, f"table{place}", questions(turn), turn)
                    asked.append((start, time.perf_counter(), place))
        finally:
            done.set()
            for each in pollers:
                each.join()
    tables.close()
    access.close()
    found, places = [], []
    starts, waits = (np.array(each) for each in zip(*sorted(seen), strict=True))
    for start, end, place in asked[5:]:
        first, last = np.searchsorted(starts, [start, end])
        one = waits[first:last]
        if len(one):
            found.append((one.max(), one.mean(), np.sort(one)[-3:].mean(), len(one), end - start))
            places.append(place)
    missed = sum(clock.overruns for clock in clocks.values()) / len(asked)
    return judged(np.array(found).T, np.array(places), time.monotonic() - begun, missed)


def send(line: http.client.HTTPConnection, token: str, name: str, asked: Any, turn: int) -> None:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    headers["Idempotency-Key"] = f"key-{name}-{turn}"
    body = json.dumps({"question": question_json(asked), "credits": 1})
    line.request("POST", f"/v1/tables/{name}/ask", body, headers)
    reply = line.getresponse()
    content = reply.read()
    assert reply.status == 200, (turn, reply.status, content[:300])


# --- missed ticks -------------------------------------------------------------------------------


def missed(cases: int, lines: int = 24) -> Told:
    """Which replies miss their tick where an engine takes 20 ms longer over a planted row, asked by
    so many clients at once as fast as they can: guessed by how many ticks a reply took."""
    begun = time.monotonic()
    with paced.served(True) as (port, token, app):
        times, places, _ = paced.replies(port, token, -(-cases // lines), lines)
        clocks = app.state.service._clocks.values()
        share = sum(clock.overruns for clock in clocks) / len(times)
    ticks = np.round(times / paced.TICK)
    return judged(np.array([ticks, times]), places, time.monotonic() - begun, share)


CASES = 3_000
CHANNELS = {
    "polling a free route while a question is answered": polled,
    "which replies miss their tick, 24 clients, 20 ms planted": missed,
}
"""In `make attacks`."""
