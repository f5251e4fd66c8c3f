"""A check tells its verdict or refuses before a row is read: a key never makes a firing free."""

from __future__ import annotations

from contextlib import suppress

import pytest
from tests.people import publish

from sulq import col, count
from sulq.errors import EngineFailed, SulqError
from sulq.kernel.release.release import held

OLD = count(where=col("age") >= 65)
NOBODY = count(where=col("age") >= 119)


@pytest.mark.parametrize("key", ["used for a question", "x" * 5_000])
@pytest.mark.usefixtures("quiet")
def test_a_key_that_cannot_be_written_does_not_tell_a_verdict(tmp_path, key):
    db = publish(ledger=tmp_path / "ledger")
    db.grant("ann", 30)
    db.ask(count(where=col("smoker")), analyst="ann", key="used for a question")
    alert = db.alert(OLD, above=100, credits=3, firings=1, analyst="ann", keep=True)
    told = []
    for question in (OLD, NOBODY, OLD):
        left = alert.left
        try:
            told.append(alert.check(question, key=key))
        except SulqError:
            told.append(None)
        assert told[-1] is not True or alert.left == left - 1  # every firing counts
    assert set(told[:2]) == {None} or None not in told[:2], "the refusal itself is the verdict"


@pytest.mark.usefixtures("quiet")
def test_a_key_taken_while_a_check_waits_at_the_gate_does_not_hide_its_firing(tmp_path):
    db = publish(ledger=tmp_path / "ledger")
    db.grant("ann", 30)
    alert = db.alert(OLD, above=100, credits=3, firings=1, analyst="ann", keep=True)
    late = held(lambda: db.ask(count(where=col("smoker")), analyst="ann", key="late"))
    with late, suppress(SulqError):
        alert.check(key="late")
    assert db.kept_alert(alert.number, analyst="ann").left == 0


@pytest.mark.usefixtures("quiet")
def test_a_comparison_that_was_cut_off_counts_and_one_that_never_came_to_compare_does_not(
    tmp_path, monkeypatch
):
    db = publish(ledger=tmp_path / "ledger")
    alert = db.alert(OLD, above=100, credits=3, firings=3, keep=True)

    def down(program):
        raise EngineFailed

    with monkeypatch.context() as patch:
        patch.setattr(db.engine, "prepare", lambda program: lambda: down(program))
        with pytest.raises(EngineFailed):
            alert.check()
    assert alert.left == 3
    with held(lambda: 1 / 0), pytest.raises(ZeroDivisionError):
        alert.check()
    assert db.kept_alert(alert.number).left == 2  # in doubt: nobody can tell, so it counts
    assert alert.check(key="k1") is True and alert.left == 1
    assert db.kept_alert(alert.number).left == 1
