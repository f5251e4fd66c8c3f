"""The clock: departures follow from public facts, and whoever is late takes the next tick."""

from __future__ import annotations

import asyncio
import math
import time
from functools import reduce
from operator import or_

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.people import SCHEMA, frame, publish
from tests.server.dial import Dial
from tests.waiting import LONGEST

from sulq import (
    Database,
    Number,
    Promise,
    Schema,
    col,
    count,
    distribution,
    histogram,
    outer,
    total,
)
from sulq.kernel.query.vectors import columns
from sulq.server import pacing
from sulq.server.pacing import GUARD, Clock, Machine, Unpaced, public_rows, rounded
from sulq.server.scheduling import PreciseTimer
from sulq.studies import EventTable, Study, exists

MACHINE = Machine(question=0.002, step=1e-9, coordinate=1e-5)


def clock(tick: float = 0.05, dial: Dial | None = None) -> Clock:
    return Clock(tick, lambda bound: 1.0, departures=dial)


@given(
    st.floats(0, 1e6),
    st.integers(1, 50),
    st.floats(0, 20),
    st.sampled_from([0.05, 0.2, 1.0]),
)
def test_departures_are_whole_ticks_after_the_arrival(arrived, ticks, taken, tick):
    """No sooner than the public time, no sooner than the work is done, at most one tick later."""
    now = arrived + taken
    moment = clock(tick).departure(arrived, ticks, now)
    whole = (moment - arrived) / tick
    assert abs(whole - round(whole)) < 1e-6
    assert round(whole) >= ticks
    assert moment >= now + GUARD - 1e-6
    assert round(whole) == ticks or moment < now + GUARD + tick + 1e-6


def test_what_is_done_in_time_leaves_at_the_same_moment_whenever_it_was_done():
    assert {clock().departure(10.0, 1, 10.0 + taken) for taken in (0, 1e-4, 0.03, 0.0479)} == {
        10.05
    }
    assert clock().departure(10.0, 1, 10.0485) == 10.1  # too near: it could be seen to hurry


def test_an_overrun_leaves_at_the_next_tick_and_is_counted():
    """On a dial: it says when, whatever the machine does meanwhile."""
    dial = Dial()
    paced = clock(0.05, dial)

    def taken(work: float) -> float:
        arrived = dial.now()
        dial.take(work)
        asyncio.run(paced.leave(arrived, 1))
        return dial.now() - arrived

    assert taken(0.0) == pytest.approx(0.05) and paced.overruns == 0
    assert taken(0.06) == pytest.approx(0.1) and paced.overruns == 1
    assert dict(paced.missed) == {pacing.today(): 1}


def test_many_replies_wait_side_by_side():
    """All 500 are waiting before the first may leave: one after the other they could not be."""
    departures, left = PreciseTimer(), list[int]()
    start = departures.now()
    departures.now = lambda: start  # type: ignore[method-assign]

    async def one(number: int) -> None:
        await departures.until(start + 1 + number % 3)
        left.append(1 + number % 3)

    async def many() -> None:
        waiting = [asyncio.create_task(one(number)) for number in range(500)]
        while len(departures._waiting) < 500:
            await asyncio.sleep(0)
        assert not left
        departures.now = lambda: start + 9  # type: ignore[method-assign]
        with departures._changed:
            departures._changed.notify()
        await asyncio.gather(*waiting)

    asyncio.run(asyncio.wait_for(many(), LONGEST))
    assert left == sorted(left) and len(left) == 500


def test_a_waiter_that_goes_away_disturbs_nobody():
    """Its moment comes all the same, before that of the one who stays, when the hand is moved."""

    async def scene() -> None:
        departures, wrong = PreciseTimer(), list[object]()
        start = departures.now()
        departures.now = lambda: start  # type: ignore[method-assign]
        asyncio.get_running_loop().set_exception_handler(lambda _, error: wrong.append(error))
        gone, stays = (asyncio.create_task(departures.until(start + after)) for after in (2, 4))
        while len(departures._waiting) < 2:
            await asyncio.sleep(0)
        gone.cancel()
        departures.now = lambda: start + 9  # type: ignore[method-assign]
        with departures._changed:
            departures._changed.notify()
        await stays
        assert gone.cancelled() and not wrong

    asyncio.run(asyncio.wait_for(scene(), LONGEST))


def test_who_comes_later_and_waits_for_less_is_woken_first():
    """The real thread and clock: a late wake is no failure, one that never comes is."""

    async def scene() -> None:
        departures = PreciseTimer()
        later = asyncio.create_task(departures.until(departures.now() + 10 * LONGEST))
        while not departures._waiting:
            await asyncio.sleep(0)
        await departures.until(departures.now() + 0.01)
        assert not later.done()
        later.cancel()

    asyncio.run(asyncio.wait_for(scene(), LONGEST))


def test_the_clock_knows_no_row():
    """Two tables of one size, wholly different: one clock. Under add-remove not even the size."""
    questions = [count(), total("income", where=col("age") > 40), histogram("blood", "city")]
    with publish(frame(500, seed=1)) as one, publish(frame(500, seed=2)) as other:
        clocks = [Clock.of(table, machine=MACHINE) for table in (one, other)]
        assert clocks[0].tick == clocks[1].tick
        for question in questions:
            assert clocks[0].ticks(one.bind(question)) == clocks[1].ticks(other.bind(question))
    promise = Promise(1, "1e-6", 100, neighbours="add-remove")
    known = Schema(*SCHEMA.columns, at_most=10**7)
    with publish(frame(50), known, promise) as few, publish(frame(5_000), known, promise) as many:
        assert public_rows(few) == public_rows(many) == 10**7
        assert Clock.of(few, machine=MACHINE).tick == Clock.of(many, machine=MACHINE).tick


def test_more_work_takes_more_ticks():
    """Public costs count: parts of the program, cells, questions together."""
    with publish() as table:
        paced = Clock.of(table, machine=Machine(0.002, 5e-6, 1e-3))
        light, wide = count(), histogram("age", "blood", edges={"age": range(101)})
        heavy = count(where=reduce(or_, (col("age") * n < col("income") for n in range(2, 30))))
        bound = [table.bind(question) for question in (light, heavy, wide)]
        ticks = [paced.ticks(one) for one in bound]
        assert ticks[0] == 1 and min(ticks[1:]) > 1
        assert paced.ticks(*bound) > max(ticks)
        assert paced.ticks(None) == paced.ticks() == 1
        chosen = Clock.of(table, tick=9, machine=Machine(0.002, 5e-6, 1e-3))
        assert chosen.tick == 9 and [chosen.ticks(one) for one in bound] == ticks  # in proportion


def test_outer_products_count_their_width():
    with publish() as table:
        paced = Clock.of(table, machine=Machine(0.002, 5e-6, 1e-3))
        small = table.bind(outer(columns(["age"]), columns(["age"])))
        large = table.bind(outer(columns(["age", "income"]), columns(["age", "income"])))
        assert pacing.coordinates(small) == 1 and pacing.coordinates(large) == 4
        assert paced.ticks(large) >= paced.ticks(small)
        assert pacing.weight(large, SCHEMA) > pacing.weight(small, SCHEMA)


def test_a_tree_counts_the_numbers_that_are_drawn_stored_and_sent():
    """Not its cells times its levels: six times as long a hold, for nothing."""
    with publish() as table:
        tree = table.bind(distribution("income", by=["blood", "city"]))
        assert pacing.coordinates(tree) == tree.width == 6 * 2_046 < tree.cells * len(tree.terms)
        listed = table.bind(histogram("blood", "city"))
        assert pacing.coordinates(listed) == listed.width == 6


def test_a_machine_that_is_busy_for_a_while_is_not_taken_for_a_slow_one():
    """The best turn counts, and there are more of them than a busy moment has."""
    now, turns = [0.0], []

    def work(turn: int) -> None:
        turns.append(turn)
        now[0] += 0.05 if turn < 8 else 0.005

    assert pacing._seconds(work, lambda: now[0]) == pytest.approx(0.005)
    turns.clear()
    assert pacing._seconds(lambda turn: work(0), lambda: now[0]) == pytest.approx(0.05)
    assert pacing.FEWEST_TURNS <= len(turns) <= 1 + pacing.LONGEST_MEASURING / 0.05


@pytest.mark.slow
def test_the_machine_is_measured_on_made_up_rows(monkeypatch):
    """No table is at hand when it is measured, and what was measured is kept."""
    opened = []
    original = pacing.Database.open

    def watched(source, *given, **more):
        opened.append(source)
        return original(source, *given, **more)

    monkeypatch.setattr(pacing.Database, "open", watched)
    Machine.measured.cache_clear()
    found = Machine.measured()
    assert found.question > 0 and found.step > 0 and found.coordinate > 0
    assert len(opened) == 2 and all(set(source) == {"a", "b"} for source in opened)
    assert Machine.measured() is found and len(opened) == 2


@pytest.mark.parametrize(
    ("seconds", "tick"), [(0.05, 0.05), (0.051, 0.1), (0.12, 0.2), (0.3, 0.5), (1, 1), (3.2, 5)]
)
def test_ticks_are_round(seconds, tick):
    assert rounded(seconds) == tick


def test_unpaced_replies_leave_at_once():
    """Without a wait: the coroutine ends at its first step, and there is nothing to resume."""
    with pytest.raises(StopIteration):
        Unpaced().leave(time.monotonic(), 40).send(None)
    assert Unpaced().ticks(None) == 1


@pytest.mark.slow
def test_when_the_work_was_done_leaves_no_phase():
    """Work that ends at two phases of a millisecond leaves alike. False alarm 1e-6.

    Slow: a measurement of real wakes, by nature; it takes half a minute of waiting.
    """

    async def taken(work: float) -> float:
        arrived = time.monotonic()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, time.sleep, work)
        await paced.leave(arrived, 1)
        return time.monotonic() - arrived

    async def measured() -> float:
        found = np.array([[await taken(0.0101), await taken(0.0106)] for _ in range(600)])
        return float(np.mean(found[:, 0] < found[:, 1]))

    paced = clock(0.02)
    share = asyncio.run(measured())
    assert abs(share - 0.5) < 4.9 * math.sqrt(0.25 / 600)


def test_the_clock_of_a_study_goes_by_what_is_declared_of_every_table() -> None:
    """Not by how many events there are; each value of a person is more work."""
    study = Study(
        "patients",
        Number("age", 0, 120, step=1),
        person="id",
        tables=[EventTable("visits", Number("cost", 0, 9), max_rows=2, ceiling=50, at_most=90)],
    )
    people = pd.DataFrame({"id": [1, 2, 3], "age": [20, 30, 40]})
    found = []
    for events in ([], [1, 1, 1, 2, 2, 3] * 9):
        visits = pd.DataFrame({"id": events, "cost": [1.0] * len(events)}).astype({"id": "int64"})
        with Database.open(
            {"patients": people, "visits": visits}, study, Promise(1, 1e-6), ":memory:"
        ) as database:
            plain = database.bind(count(where=col("age") > 30))
            value = database.bind(count(where=exists("visits", col("cost") > 3)))
            found.append((public_rows(database), pacing.weight(plain, study)))
            assert pacing.weight(value, study) > pacing.weight(plain, study)
    assert found[0] == found[1] and found[0][0] == 3 + 90
