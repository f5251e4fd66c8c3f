"""The same question is read once at a time, and stored a fixed time before its reply leaves."""

from __future__ import annotations

import threading

import pytest
from tests.server.dial import Dial
from tests.waiting import LONGEST

from sulq.server.pacing import LEAD, Clock
from sulq.server.scheduling import PreciseTimer, SingleFlight


def test_the_same_question_is_read_once_at_a_time(monkeypatch):
    """The first ends only when the other has been read, and the second is known to wait."""
    executions, log = SingleFlight(), list[str]()
    begun, read, waits = threading.Event(), threading.Event(), threading.Event()
    sound = executions._free.wait_for

    def watched(free):
        if not free():
            waits.set()
        return sound(free)

    monkeypatch.setattr(executions._free, "wait_for", watched)

    def first() -> None:
        with executions.alone(frozenset("ab")):
            begun.set()
            assert read.wait(LONGEST) and waits.wait(LONGEST)
            log.append("first")

    def second() -> None:
        begun.wait(LONGEST)
        with executions.alone(frozenset("b")):
            log.append("second")

    def other() -> None:
        begun.wait(LONGEST)
        with executions.alone(frozenset("c")):
            log.append("other")
        read.set()

    threads = [threading.Thread(target=run) for run in (first, second, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONGEST)
    assert log == ["other", "first", "second"]


def test_answers_are_stored_a_fixed_time_before_they_leave():
    """On a dial; the last is too late for its tick."""
    dial = Dial()
    clock = Clock(0.2, lambda bound: 1.0, departures=dial)
    for work, tick in ((0.0, 0.2), (0.03, 0.2), (0.07, 0.2), (0.15, 0.4)):
        arrived = dial.now()
        dial.take(work)
        clock.hold(arrived, 1)
        assert dial.now() - arrived == pytest.approx(tick - LEAD * 0.2)


def test_who_blocks_is_not_let_go_early():
    """The real clock: a machine in use wakes late, never early, and a passed moment is no wait."""
    departures = PreciseTimer()
    moment = departures.now() + 0.03
    departures.block(moment)
    assert departures.now() >= moment
    departures.block(moment)
