"""When questions begin: by public costs and who came before, so no queue is a stopwatch."""

from __future__ import annotations

import asyncio
import http.client
import itertools
import threading
import time
from contextlib import closing
from statistics import median

import pytest
from tests.people import publish
from tests.server import test_pacing_http as planted
from tests.server.dial import Dial, Stage
from tests.waiting import LONGEST, come

from sulq import count
from sulq.server.limits import Settings
from sulq.server.pacing import LATE, LEAD, MARGIN, Clock, Machine
from sulq.server.scheduling import LANES, Scheduler


def overlapping(taken: list[tuple[float, float]]) -> int:
    """How many of these intervals hold one moment, at most."""
    return max(sum(a <= begun < b for a, b in taken) for begun, _ in taken)


def test_every_short_timetable_keeps_its_lanes_and_lets_nobody_wait_for_nothing():
    """All sequences of four arrivals and loads: at most so many at once, begun as soon as one can
    be without being overtaken by who came later."""
    cases = itertools.product([0, 1, 2], [1, 3], repeat=4)
    for case in cases:
        arrivals, loads = sorted(case[::2]), case[1::2]
        table, taken = Scheduler(), list[tuple[float, float]]()
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

    stage = Stage()

    async def scene() -> tuple[list[float], float]:
        table, start = Scheduler(stage), stage.now()
        greedy = [asyncio.create_task(table.turn("greedy", start, 0.2)) for _ in range(3)]
        while not stage.waiting:  # the second, for its first
            await asyncio.sleep(0.001)
        stage.move(start + 0.05)
        modest = await table.turn("modest", stage.now(), 0.01)
        while not all(task.done() for task in greedy):
            if stage.waiting:
                stage.step()
            await asyncio.sleep(0.001)
        return [await task - start for task in greedy], modest - start

    greedy, modest = asyncio.run(asyncio.wait_for(scene(), LONGEST))
    assert greedy == pytest.approx([0, 0.2, 0.4])
    assert modest == pytest.approx(0.05)


def test_so_many_lanes_make_their_ticks_even_if_they_share_the_machine():
    """With all lanes taken each question is that much slower, and still ready to be stored."""
    assert LANES <= (1 - LEAD - LATE) * MARGIN
    with publish() as table:
        paced, bound = Clock.of(table, machine=Machine(0.002, 5e-6, 1e-3)), table.bind(count())
        alone = paced._work(bound) * paced.tick / MARGIN
        assert LANES * alone < paced.load(bound) < 4 * LANES * alone


def test_what_begins_late_is_counted_from_a_later_tick():
    dial = Dial()
    clock, now = Clock(10.0, lambda bound: 1.0, departures=dial), dial.now()
    assert clock.start(now - 0.9) == now - 0.9  # waking up takes a moment
    assert clock.start(now - 5) == now + 5
    assert clock.start(now - 12) == now + 8


AIMED = 0.06
"""Seconds that a planted row takes here; the attacker aims at the middle."""
AFTER = 0.042
"""Seconds after the own question before, at which the attacker sends the next."""


def test_who_waits_for_own_questions_leaves_at_the_same_moment_with_and_without_the_row(
    monkeypatch,
):
    """Counted from the arrival, a wait chosen well would put one row's time across a tick.

    On a stage, moved only when every request that is under way waits for it.
    """
    monkeypatch.setattr(planted, "SLOWER", AIMED)
    found = []
    for place in (0, 1):
        stage = Stage()
        with planted.served(True, stage, Settings(each=1)) as (port, token, app):
            lines = [
                http.client.HTTPConnection("127.0.0.1", port, timeout=LONGEST) for _ in range(2)
            ]
            filler, next_one = (
                threading.Thread(target=planted.ask, args=(line, token, which, 10**6 + number))
                for number, (line, which) in enumerate(zip(lines, (0, place), strict=True))
            )
            filler.start()
            come(lambda stage=stage: stage.waiting == 1)  # to store its answer
            stage.move(stage.now() + AFTER)
            sent = stage.now()
            next_one.start()
            pool = app.state.workers.answers
            come(lambda pool=pool: pool.running == 2)  # it has arrived, and waits for its place
            stage.step()
            while next_one.is_alive():
                if stage.waiting >= filler.is_alive() + next_one.is_alive():
                    stage.step()
                time.sleep(0.005)
            for line in lines:
                line.close()
        found.append(stage.now() - sent)
    assert found[0] == found[1] == pytest.approx(2 * planted.TICK)


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
            time.sleep(AFTER)
            found.append(planted.ask(second, token, place, number + 1)[0])
            filler.join()
    return found


@pytest.mark.slow
def test_who_waits_for_own_questions_learns_nothing_of_a_row(monkeypatch):
    """The same on the real clock. Slow: a measurement by nature, which a busy machine can fail."""
    monkeypatch.setattr(planted, "SLOWER", AIMED)
    with planted.served(True, settings=Settings(each=1)) as (port, token, _):
        for place in (0, 1):
            replies_behind(port, token, place, 1)  # everything is loaded
        without, with_it = (replies_behind(port, token, place, 3) for place in (0, 1))
    assert abs(median(without) - median(with_it)) < planted.TICK / 2
