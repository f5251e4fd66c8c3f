"""Clones of a machine: what copies of ledger and state can do that one of them cannot."""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.papers.test_pure_enumeration import worst
from tests.people import frame, publish

from sulq import Promise, Refused, col, count, histogram
from sulq.database import alerts
from sulq.kernel.accounting.mechanisms import above_threshold
from sulq.kernel.ledger.recovery import recover
from sulq.kernel.noise import sampler

LOUD = Promise(50, queries=100)
DATA = frame(400)
OLD = count(where=col("age") >= 50)


@pytest.fixture
def cloned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ledger and state directory of a process that serves, with an alert armed; and a copy."""
    first = tmp_path / "first"
    first.mkdir()
    monkeypatch.setenv("SULQ_STATE", str(first / "state"))
    with publish(DATA, promise=LOUD, ledger=first / "ledger") as db:
        db.alert(OLD, above=5, credits=30, keep=True, key="k")
        shutil.copytree(first, tmp_path / "second", copy_function=shutil.copy2)
        assert db.alerts()[0].left == 1  # the copy does not disturb who was copied
    return tmp_path


def test_a_copy_of_an_armed_alert_compares_nothing(
    cloned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SULQ_STATE", str(cloned / "second" / "state"))
    with publish(DATA, promise=LOUD, ledger=cloned / "second" / "ledger") as db:
        assert db.alerts() == []
        with pytest.raises(Refused, match="arm a new one"):
            db.kept_alert(next(db.ledger.entries()).seq)
        known = db.alert(OLD, above=5, credits=30, keep=True, key="k")
        with pytest.raises(Refused, match="arm it again"):
            known.check()
        assert db.alert(OLD, above=5, credits=30, keep=True).check()  # a level of its own
    monkeypatch.setenv("SULQ_STATE", str(cloned / "first" / "state"))
    with publish(DATA, promise=LOUD, ledger=cloned / "first" / "ledger") as db:
        (alert,) = db.alerts()
        assert alert.check()


def test_an_alert_of_a_machine_that_was_started_anew_is_over(
    cloned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image of the whole disk has the same files: it is known by the start of its machine."""
    (cloned / "boot").write_text("another start\n")
    with publish(DATA, promise=LOUD, ledger=cloned / "first" / "ledger") as db:
        (alert,) = db.alerts()
        monkeypatch.setattr(alerts, "BOOT", cloned / "boot")
        assert db.alerts() == []
        with pytest.raises(Refused, match="as often as was paid for"):
            alert.check()


def test_a_state_directory_that_was_put_back_ends_its_alerts(cloned: Path) -> None:
    shutil.rmtree(cloned / "first" / "state" / "alerts")
    shutil.copytree(cloned / "second" / "state" / "alerts", cloned / "first" / "state" / "alerts")
    with publish(DATA, promise=LOUD, ledger=cloned / "first" / "ledger") as db:
        assert db.alerts() == []


def test_clones_that_meet_are_noticed(cloned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both spend; a receipt of one closes the other, and what either proves spent is counted."""
    receipts = {}
    for place in ("first", "second"):
        monkeypatch.setenv("SULQ_STATE", str(cloned / place / "state"))
        with publish(DATA, promise=LOUD, ledger=cloned / place / "ledger") as db:
            for credits in (20, 10) if place == "second" else (20,):
                answer = db.ask(count(where=col("age") >= credits), credits=credits)
            receipts[place] = answer.receipt.to_json()
    monkeypatch.setenv("SULQ_STATE", str(cloned / "first" / "state"))
    recover(cloned / "first" / "ledger", [receipts["second"]])
    with publish(DATA, promise=LOUD, ledger=cloned / "first" / "ledger") as db:
        assert db.remaining <= 100 - 30 - 30


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_clones_of_running_memory_tell_no_more_than_both_paid(epsilon: Fraction) -> None:
    """The exact law of one level with twice the firings: above what one paid, never above two."""
    laws = above_threshold(Fraction(1), epsilon, 1)
    found = worst(laws, 2, 4)
    assert float(epsilon) * 1.03 < found <= 2 * float(epsilon) + 1e-9


def test_a_snapshot_between_a_draw_and_its_storing_gives_no_noise_to_another_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noise is drawn for a question that is charged on disk by then, and is kept nowhere else: who
    resumes the copy with another question pays for both, and draws anew."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    monkeypatch.setenv("SULQ_STATE", str(first / "state"))
    draw, drawn = sampler.draw, list[list[int]]()

    def copied(law: Any, number: int) -> list[int]:
        drawn.append(draw(law, number))
        if not second.exists():
            shutil.copytree(first, second, copy_function=shutil.copy2)
        return drawn[-1]

    edges = list(range(0, 121, 2))
    asked, other = histogram("age", edges=edges), histogram("age", where=col("smoker"), edges=edges)
    with publish(DATA, promise=Promise(1, "1e-6", 100), ledger=first / "ledger") as db:
        with monkeypatch.context() as patch:
            patch.setattr(sampler, "draw", copied)
            db.ask(asked)
        spent = 100 - db.remaining
    monkeypatch.setenv("SULQ_STATE", str(second / "state"))
    with publish(DATA, promise=Promise(1, "1e-6", 100), ledger=second / "ledger") as db:
        (open_,) = db.ledger.entries()
        assert not open_.answered and 100 - db.remaining == spent
        with monkeypatch.context() as patch:
            patch.setattr(sampler, "draw", copied)
            db.ask(other)
        assert 100 - db.remaining == 2 * spent
    pending, resumed = drawn
    assert len(pending) == len(resumed) >= 60
    assert sum(a == b for a, b in zip(pending, resumed, strict=True)) < 20
    # by chance 20 of 60 of that spread are equal less than once in 1e20 runs
