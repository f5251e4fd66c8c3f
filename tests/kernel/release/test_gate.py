"""Answers are stored when who serves them says so: the order of the ledger is no stopwatch."""

from __future__ import annotations

import threading

import pytest
from tests.people import publish

from sulq import col, count, total
from sulq.kernel.release.release import held, hold

ELDERLY = count(where=col("age") >= 65)


@pytest.fixture
def database(tmp_path):
    with publish(ledger=tmp_path / "people.ledger") as found:
        yield found


def test_between_reading_and_storing_the_books_show_the_charge_alone(database):
    seen = []
    before = database.ledger.head

    def until() -> None:
        found = database.ledger.statement()
        seen.append((database.ledger.head - before, found.answered))

    with held(until):
        database.ask(ELDERLY)
    assert seen == [(1, 0)]
    assert database.ledger.head - before == 2


def test_a_plan_waits_once_and_stores_all_together(database):
    waited = []
    plan = database.plan([ELDERLY, total("income"), count(where=col("smoker"))])
    with held(lambda: waited.append(database.ledger.statement().answered)):
        answers = plan.ask()
    assert waited == [0]
    assert len(answers) == 3 and database.ledger.statement().answered == 3


def test_repeats_do_not_wait(database):
    database.ask(ELDERLY)
    with held(lambda: pytest.fail("nothing was read")):
        database.ask(ELDERLY)


def test_another_thread_is_not_held(database):
    with held(lambda: pytest.fail("another thread's moment")):
        other = threading.Thread(target=hold)
        other.start()
        other.join()
    hold()
