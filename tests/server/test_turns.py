"""Turns and executions: who waits for a public moment keeps nobody else from working."""

from __future__ import annotations

import threading
import time

from sulq.server.pacing import LEAD, Clock
from sulq.server.turns import Executions, give_up_turn, in_turn


def test_so_many_work_at_once_and_who_waits_does_not_count():
    turns, inside, most = threading.BoundedSemaphore(2), [0], [0]
    lock = threading.Lock()
    waiting = threading.Barrier(6)

    def work() -> None:
        with in_turn(turns):
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
            time.sleep(0.01)
            with lock:
                inside[0] -= 1
            give_up_turn()
            give_up_turn()  # twice is once
            waiting.wait(10)  # all six wait at the same time

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert most[0] <= 2
    assert turns.acquire(blocking=False) and turns.acquire(blocking=False)
    assert not turns.acquire(blocking=False)


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
