"""When questions begin: by public costs and who came before, so no queue is a stopwatch."""

from __future__ import annotations

import asyncio
import http.client
import itertools
import threading
import time
from contextlib import closing
from statistics import median

from tests.people import publish
from tests.server import test_pacing_http as planted

from sulq import count
from sulq.server.app import Settings, create_app
from sulq.server.pacing import LATE, LEAD, MARGIN, Clock, Machine
from sulq.server.timetable import LANES, Timetable


def overlapping(taken: list[tuple[float, float]]) -> int:
    """How many of these intervals hold one moment, at most."""
    return max(sum(a <= begun < b for a, b in taken) for begun, _ in taken)


def test_every_short_timetable_keeps_its_lanes_and_lets_nobody_wait_for_nothing():
    """All sequences of four arrivals and loads: at most so many at once, begun as soon as one can
    be without being overtaken by who came later."""
    cases = itertools.product([0, 1, 2], [1, 3], repeat=4)
    for case in cases:
        arrivals, loads = sorted(case[::2]), case[1::2]
        table, taken = Timetable(), list[tuple[float, float]]()
        for arrived, load in zip(arrivals, loads, strict=True):
            begun = table.take(arrived, load)
            assert begun >= arrived
            if begun > arrived:  # every lane was taken until then
                assert sum(a <= arrived < b for a, b in taken) == LANES
                assert begun in {b for _, b in taken}
            taken.append((begun, begun + load))
        assert overlapping(taken) <= LANES


def test_callers_wait_for_their_own_first():
    """One who sends much has one lane at a time; the other lane is somebody else's at once."""

    async def scene() -> tuple[list[float], float]:
        table, start = Timetable(), time.monotonic()
        greedy = [asyncio.create_task(table.turn("greedy", start, 0.2)) for _ in range(3)]
        await asyncio.sleep(0.05)
        modest = await table.turn("modest", start + 0.05, 0.01)
        return [await task - start for task in greedy], modest - start

    greedy, modest = asyncio.run(scene())
    assert [round(moment, 6) for moment in greedy] == [0, 0.2, 0.4]  # exactly: by plan, not by wake
    assert round(modest, 6) == 0.05


def test_so_many_lanes_make_their_ticks_even_if_they_share_the_machine():
    """With all lanes taken each question is that much slower, and still ready to be stored."""
    assert LANES <= (1 - LEAD - LATE) * MARGIN
    with publish() as table:
        paced, bound = Clock.of(table, machine=Machine(0.002, 5e-6, 1e-3)), table.bind(count())
        alone = paced._work(bound) * paced.tick / MARGIN
        assert LANES * alone < paced.load(bound) < 4 * LANES * alone


def test_what_begins_late_is_counted_from_a_later_tick():
    clock, now = Clock(10.0, lambda bound: 1.0), time.monotonic()
    assert clock.start(now) == now  # waking up takes a moment
    assert clock.start(now - 5) == now + 5
    assert clock.start(now - 12) == now + 8


AIMED = 0.06
"""Seconds that a planted row takes here; the attacker aims at the middle."""


def replies_behind(port: int, token: str, place: int, rounds: int) -> list[float]:
    """The attacker fills the own places, and sends the next question at a chosen moment after."""
    found = []
    for turn in range(rounds):
        number = 10**6 + 1_000 * turn + 100_000 * place
        with (
            closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as first,
            closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as second,
        ):
            first.connect()
            second.connect()
            filler = threading.Thread(target=planted.ask, args=(first, token, 0, number))
            filler.start()
            time.sleep(0.042)
            found.append(planted.ask(second, token, place, number + 1)[0])
            filler.join()
    return found


def test_who_waits_for_own_questions_learns_nothing_of_a_row(monkeypatch):
    """Counted from the arrival, a wait chosen well would put one row's time across a tick."""
    monkeypatch.setattr(planted, "SLOWER", AIMED)
    one = Settings(each=1)
    monkeypatch.setattr(planted, "create_app", lambda *given: create_app(*given, settings=one))
    with planted.served(True) as (port, token, _):
        for place in (0, 1):
            replies_behind(port, token, place, 1)  # everything is loaded
        without, with_it = (replies_behind(port, token, place, 3) for place in (0, 1))
    assert abs(median(without) - median(with_it)) < planted.TICK / 2
