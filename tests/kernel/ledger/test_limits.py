"""One caller's input harms nobody else, and what is written can always be read again."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing

import pytest
from tests.kernel.ledger.publishing import ONE, ask, credits, pay, publish, spent

from sulq.errors import InvalidQuery, Refused
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.ledger import failpoints
from sulq.kernel.ledger.accounts import AMOUNT, NAME
from sulq.kernel.ledger.events import GrantEvent

NOT_TEXT = [("a",), ["a"], b"x", float("nan"), 10**5000, {}, True, "\ud800", "x" * (NAME + 1)]
HUGE = Loss(10**4400, 0)


@pytest.mark.parametrize("bad", NOT_TEXT, ids=range(len(NOT_TEXT)))
@pytest.mark.parametrize("field", ["key", "analyst", "digest"])
def test_what_is_not_storable_text_is_refused_and_harms_nobody(place, field, bad):
    with closing(publish(place)) as journal:
        with pytest.raises(InvalidQuery):
            pay(journal, "q", **{field: bad})
        with pytest.raises(InvalidQuery):
            journal.grant(bad, ONE)
        assert ask(journal, "r").answered
    with closing(publish(place)) as journal:
        assert spent(journal) == ONE


@pytest.mark.parametrize("field", ["question", "noise"])
def test_questions_and_noises_are_text(journal, field):
    for bad in (None, 1, b"x", "\ud800"):
        with pytest.raises(InvalidQuery):
            pay(journal, "q", **{field: bad})


def test_names_of_tables_and_accounts_and_facts_are_text(path):
    for changes in ({"name": 1}, {"name": "\ud800"}, {"accounts": (1,)}, {"facts": {"a": 1}}):
        with pytest.raises(InvalidQuery):
            publish(path, **changes)
    assert not path.exists()


def test_amounts_are_bounded(place):
    with pytest.raises(InvalidQuery, match="larger than any budget"):
        publish(place, cap=HUGE)
    with closing(publish(place)) as journal:
        for use in (
            lambda: pay(journal, "q", price=HUGE),
            lambda: pay(journal, "q", price=Loss(0, AMOUNT)),
            lambda: pay(journal, "q", share=HUGE),
            lambda: journal.grant("ann", HUGE),
        ):
            with pytest.raises(InvalidQuery, match="larger than any budget"):
                use()
        with pytest.raises(InvalidQuery, match="must be a Loss"):
            journal.grant("ann", 3)
        with pytest.raises(Refused):  # the largest that may be asked for is simply too much
            pay(journal, "q", price=Loss(AMOUNT - 1, AMOUNT - 1))
        ask(journal, "r")
    with closing(publish(place)) as journal:
        assert spent(journal) == ONE


def test_an_error_before_any_change_is_its_callers_alone(journal):
    def fails():
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        journal._book.submit(fails)
    assert ask(journal, "q").answered


def test_an_error_after_a_change_closes_the_ledger(place, monkeypatch):
    journal = publish(place)

    class Malformed(GrantEvent):
        def to_body(self):
            return super().to_body() | {"credits": 1}

    def fails():
        journal._book.add(Malformed("people", "a", credits(1)))

    with pytest.raises(Refused, match="the charge may stand"):
        journal._book.submit(fails)
    with pytest.raises(Refused, match="closed"):
        pay(journal, "q")
    with closing(publish(place)) as journal:
        assert spent(journal) == credits(0)


def test_a_failure_after_the_commit_says_that_the_charge_may_stand(place, monkeypatch):
    journal = publish(place)

    def fails(step):
        if step == "committed":
            raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "on_step", fails)
        with pytest.raises(Refused, match="may stand; reopen and ask again") as refusal:
            pay(journal, "q", key="k")
    assert refusal.value.charged_unknown
    with pytest.raises(Refused) as refusal:
        pay(journal, "q", key="k")
    assert not refusal.value.charged_unknown
    journal.close()
    with closing(publish(place)) as journal:
        assert pay(journal, "q", key="k").charged == {}
        assert spent(journal) == ONE


def test_an_entry_of_another_ledger_is_not_settled(place, tmp_path):
    one, two = publish(place), publish(tmp_path / "two")
    foreign, own = pay(one, "q"), pay(two, "q")
    assert foreign.seq == own.seq
    with pytest.raises(Refused, match="not open in this ledger"):
        two.settle(foreign, (99,))
    assert two.settle(own, (1,)).values == (1,)


LATE = """
import atexit, sys

@atexit.register
def later():
    journal.close()
    print("closed")

from tests.kernel.ledger.publishing import ask, publish
journal = publish(sys.argv[1])
ask(journal, "q")
"""


def test_closing_after_the_end_does_not_hang(path, monkeypatch):
    """An exit hook of the caller's may run after the ledger's own."""
    monkeypatch.setenv("PYTHONPATH", ":".join(sys.path))
    command = [sys.executable, "-c", LATE, str(path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert run.stdout == "closed\n"
