"""The same question is read once at a time, and stored a fixed time before its reply leaves."""

from __future__ import annotations

import threading
import time

from sulq.server.executions import Executions
from sulq.server.pacing import LEAD, Clock


def test_the_same_question_is_read_once_at_a_time():
    executions, log = Executions(), []
    begun = threading.Event()

    def first() -> None:
        with executions.alone(frozenset("ab")):
            begun.set()
            time.sleep(0.05)
            log.append("first")

    def second() -> None:
        begun.wait(5)
        with executions.alone(frozenset("b")):
            log.append("second")

    def other() -> None:
        begun.wait(5)
        with executions.alone(frozenset("c")):
            log.append("other")

    threads = [threading.Thread(target=run) for run in (first, second, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert log == ["other", "first", "second"]


def test_answers_are_stored_a_fixed_time_before_they_leave():
    clock = Clock(0.2, lambda bound: 1.0)
    stored = []
    for work in (0.0, 0.03, 0.07):
        arrived = time.monotonic()
        time.sleep(work)
        clock.hold(arrived, 1)
        stored.append(time.monotonic() - arrived)
    for moment in stored:  # a machine in use wakes late, never early
        assert 0.2 * (1 - LEAD) <= moment < 0.2 * (1 - LEAD) + 0.05
    arrived = time.monotonic()
    time.sleep(0.15)
    clock.hold(arrived, 1)  # too late for this tick
    assert time.monotonic() - arrived >= 0.4 - LEAD * 0.2
