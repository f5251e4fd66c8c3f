"""Alerts through the database: paid when armed, free until fired, nothing but verdicts."""

from __future__ import annotations

import copy
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.people import SCHEMA, frame, publish

import sulq.kernel.release.release
from sulq import (
    BudgetSpent,
    Category,
    Database,
    EngineFailed,
    InvalidQuery,
    Promise,
    Refused,
    Schema,
    SumQuery,
    col,
    count,
    histogram,
    lit,
    mean,
    total,
)
from sulq.kernel.ledger.recovery import recover
from sulq.kernel.noise import sampler

LOUD = Promise(epsilon=400, queries=100)
"""Laplace noise far below one row: verdicts are as good as certain."""
OLD = count(where=col("age") >= 50)
ROWS = 2_000
TRUTH = int((frame(ROWS).age >= 50).sum())


@pytest.fixture
def db() -> Iterator[Database]:
    with publish(promise=LOUD) as found:
        yield found


def scripted(monkeypatch: pytest.MonkeyPatch, *noise: int) -> list[Any]:
    """The next draws, in order, in fine steps; and the laws they were asked of."""
    asked: list[Any] = []
    left = iter(noise)

    def draw(laws: list[Any]) -> list[int]:
        asked.extend(laws)
        return [next(left) for _ in laws]

    monkeypatch.setattr(sampler, "draw_noise", draw)  # the level, when it is armed
    monkeypatch.setattr(sulq.kernel.release.release, "draw_noise", draw)  # each check
    return asked


def test_it_fires_above_and_not_below(db: Database) -> None:
    below = db.alert(OLD, above=TRUTH + 200, credits=20)
    assert below.margin(0.999999) < 200
    assert not below.check() and not below.check() and below.left == 1
    above = db.alert(OLD, above=TRUTH - 200, credits=20)
    assert above.check() and above.left == 0
    with pytest.raises(Refused, match="arm it again"):
        above.check()


def test_growing_questions(db: Database) -> None:
    alert = db.alert(count(where=col("age") >= 99), above=1000, credits=20)
    truth = frame(ROWS).age
    fired = next(age for age in range(99, 0, -1) if alert.check(count(where=col("age") >= age)))
    margin = alert.margin(0.999999, checks=99)
    assert (truth >= fired).sum() > 1000 - margin
    assert (truth >= fired + 1).sum() < 1000 + margin


def test_charged_when_armed_and_checks_are_free(db: Database) -> None:
    alert = db.alert(OLD, above=5000, credits=7)
    assert (db.remaining, alert.credits) == (93, 7)
    for age in range(50, 90):
        alert.check(count(where=col("age") >= age))
    assert db.remaining == 93
    assert db.ledger.statement().accounts[0].spent.credits_fraction == 7
    assert alert.receipt is not None


def test_every_arming_pays_and_draws_anew(db: Database) -> None:
    one, two = (db.alert(OLD, above=5000, credits=5) for _ in range(2))
    assert db.remaining == 90
    assert one.receipt.seq != two.receipt.seq


def test_more_than_is_left_is_refused(db: Database) -> None:
    with pytest.raises(BudgetSpent):
        db.alert(OLD, above=5000, credits=101)
    assert db.remaining == 100


@pytest.mark.parametrize("firings", [1, 3])
def test_noise_level_and_comparison(
    db: Database, monkeypatch: pytest.MonkeyPatch, firings: int
) -> None:
    """Fires iff sum + fresh noise >= level + the level's noise, which is drawn once. M.2"""
    step = 2**30
    asked = scripted(monkeypatch, 3 * step, 2 * step, 3 * step, 3 * step - 1, 4 * step, 9 * step)
    alert = db.alert(OLD, above=TRUTH, firings=firings, credits=10)
    epsilon = Fraction(400, 100) * 10
    assert alert.check(count(where=col("age") > 49.5)) is False  # another spelling of OLD
    scales = [law.scale / step for law in asked]
    assert 1 / scales[0] + 2 * firings / scales[1] == epsilon
    other = count(where=(col("age") >= 50) & (col("income") >= 0))
    assert alert.check(other) is True
    if firings == 1:
        return
    assert alert.check(other) is False
    assert alert.check(count(where=(col("age") >= 50) & (col("income") <= 500_000))) is True
    assert alert.left == 1
    assert len(set(asked[1:])) == 1 and asked[0] != asked[1]


def test_a_question_found_below_is_not_drawn_again(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = scripted(monkeypatch, 0, 0)
    alert = db.alert(OLD, above=5000)
    assert [alert.check(), alert.check(), alert.check(OLD)] == [False] * 3
    assert len(asked) == 2


def test_questions_that_reach_further_are_refused(db: Database) -> None:
    alert = db.alert(count(where=(col("city") == "Oslo") & col("smoker")), above=5000)
    assert not alert.check(count(where=(col("city") == "Oslo") & (col("age") > 20)))
    with pytest.raises(InvalidQuery, match="further"):
        alert.check(count(where=col("smoker")))  # Paris was not charged
    with pytest.raises(InvalidQuery, match="further"):
        alert.check(total(col("age"), where=col("city") == "Oslo"))
    spent = {a.name: a.spent.credits_fraction for a in db.ledger.statement().accounts}
    assert (spent["city=Oslo"], spent["city=Paris"]) == (1, 0)


def test_totals_and_their_units(db: Database) -> None:
    income = frame(ROWS).income.sum()
    alert = db.alert(total("income"), above=1.2 * income, credits=20)
    assert alert.margin(0.999999) < 0.2 * income
    assert not alert.check()
    assert not alert.check(total("income", where=col("smoker")))
    with pytest.raises(InvalidQuery, match="other units"):
        alert.check(total(col("income") * lit(Fraction(1, 3))))
    assert db.alert(total("income"), above=0.8 * income, credits=20).check()


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (histogram("blood"), "one count or total"),
        (mean("age"), "one count or total"),
        (SumQuery((lit(1), col("age"))), "one plain sum"),
        (count(where=col("city") == "Oslo"), "public"),
        (count(), "public"),
    ],
)
def test_what_cannot_be_armed(db: Database, question: object, said: str) -> None:
    with pytest.raises(InvalidQuery, match=said):
        db.alert(question, above=10)
    assert db.remaining == 100


@pytest.mark.parametrize(
    "terms",
    [
        {"above": "many"},
        {"above": float("nan")},
        {"above": True},
        {"above": 1, "firings": 0},
        {"above": 1, "firings": 1.5},
        {"above": 1, "firings": True},
        {"above": 1, "firings": 1001},
        {"above": 1, "credits": 0},
    ],
    ids=str,
)
def test_wrong_terms_are_free(db: Database, terms: dict[str, Any]) -> None:
    with pytest.raises(InvalidQuery):
        db.alert(OLD, **terms)
    assert db.remaining == 100


def test_gaussian_promises_pay_the_pure_price() -> None:
    with publish() as db:
        alert = db.alert(OLD, above=TRUTH, credits=100)
        first, fresh = alert._first.scale / 2**30, alert._fresh.scale / 2**30
        assert float(1 / first + 2 / fresh) == pytest.approx(0.189, abs=5e-4)  # M.4
        assert db.remaining == 0


@pytest.mark.parametrize("noise", ["binomial", "huber"])
def test_laws_of_fixed_blocks_have_no_alerts(noise: str) -> None:
    with (
        publish(promise=Promise(1, "1e-6", 10, noise)) as db,
        pytest.raises(InvalidQuery, match="gaussian or laplace"),
    ):
        db.alert(OLD, above=10)


def test_a_restart_voids_an_alert_and_refunds_nothing(tmp_path: Path) -> None:
    data = frame(ROWS)
    with publish(data, promise=LOUD, ledger=tmp_path / "ledger") as db:
        db.alert(OLD, above=5000, credits=30).check()
    with publish(data, promise=LOUD, ledger=tmp_path / "ledger") as db:
        assert db.remaining == 70
        db.alert(OLD, above=5000, credits=30)
        assert db.remaining == 40
        stored = [entry.values for entry in db.ledger.entries()]
        assert stored == [(), ()]  # neither the level nor a verdict


def test_an_alert_cannot_be_copied(db: Database) -> None:
    alert = db.alert(OLD, above=5000)
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="copied"):
            way(alert)


def test_a_forked_process_cannot_check(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    alert = db.alert(OLD, above=0)
    here = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: here + 1)
    with pytest.raises(Refused, match="process that armed it"):
        alert.check()
    assert alert.left == 1


def test_threads_never_fire_more_often_than_paid(db: Database) -> None:
    alert = db.alert(OLD, above=0, firings=3, credits=50)
    verdicts: list[bool] = []

    def watch() -> None:
        try:
            for _ in range(5):
                verdicts.append(alert.check())
        except Refused:
            pass

    threads = [threading.Thread(target=watch) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(verdicts) == 3 and alert.left == 0


def test_a_failed_reading_says_nothing_and_spends_no_firing(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    alert = db.alert(OLD, above=0, credits=50)
    prepare = db.engine.prepare

    def broken(program: Any) -> Callable[[], list[int]]:
        def read() -> list[int]:
            raise EngineFailed

        return read

    monkeypatch.setattr(db.engine, "prepare", broken)
    with pytest.raises(EngineFailed):
        alert.check()
    monkeypatch.setattr(db.engine, "prepare", prepare)
    assert alert.left == 1 and alert.check()


def test_so_many_questions_at_most(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sulq.database.alerts, "MOST_CHECKS", 2)
    alert = db.alert(OLD, above=50_000, credits=10)
    for age in (50, 51):
        assert not alert.check(count(where=col("age") >= age))
    with pytest.raises(Refused, match="2 questions"):
        alert.check(count(where=col("age") >= 52))
    assert not alert.check()  # remembered


def test_an_analyst_arms_out_of_the_own_share(db: Database) -> None:
    db.grant("Ann", 10)
    ann = db.as_analyst("Ann")
    alert = ann.alert(OLD, above=5000, credits=4)
    assert (ann.remaining, alert.credits) == (6, 4)
    with pytest.raises(BudgetSpent):
        ann.alert(OLD, above=5000, credits=7)


def test_what_an_alert_shows_of_itself(db: Database) -> None:
    alert = db.alert(OLD, above=5000, credits=2)
    assert repr(alert) == "<Alert above 5,000, 1 of 1 firings left, 2 credits>"
    assert not hasattr(alert, "level") and not hasattr(alert, "__dict__")
    assert 0 < alert.margin(0.5) < alert.margin(0.95) < alert.margin(0.95, checks=100)
    for wrong in ({"confidence": 1}, {"checks": 0}, {"checks": True}):
        with pytest.raises(InvalidQuery):
            alert.margin(**wrong)  # type: ignore[arg-type]


def test_other_questions_go_on_beside_alerts_choices_and_keys() -> None:
    """What an alert, a choice or keys left in the ledger is no answer to any other question."""
    data = frame(ROWS).assign(note="x")
    schema = Schema(*SCHEMA.columns, Category("note"))
    with publish(data, schema=schema) as db:
        db.alert(OLD, above=5000)
        db.top("blood")
        db.keys("note")
        for question in (OLD, histogram("blood"), count("note"), OLD):
            assert db.ask(question).receipt is not None
        assert db.remaining == 100 - 1 - 1 - 2 - 1 - 2 - 1


# --- kept alerts: the level in the state directory, firings in the ledger ---

FEW = count(where=col("age") >= 119)


def kept_files() -> list[Path]:
    found = Path(os.environ["SULQ_STATE"]).glob("alerts/*/*")
    return [path for path in found if "." not in path.name]


def test_a_kept_alert_outlives_its_process(tmp_path: Path) -> None:
    data = frame(ROWS)
    with publish(data, promise=LOUD, ledger=tmp_path / "ledger") as db:
        alert = db.alert(OLD, above=TRUTH - 5, firings=2, credits=30, keep=True)
        assert not alert.check(FEW)
        assert alert.check()
        number, level = alert.number, alert._level
        assert [path.stat().st_mode & 0o777 for path in kept_files()] == [0o600]
    with publish(data, promise=LOUD, ledger=tmp_path / "ledger") as db:
        (alert,) = db.alerts()
        assert (alert.number, alert._level, alert.left, alert.firings) == (number, level, 1, 2)
        assert alert.question == "COUNT(*) WHERE age >= 50"
        assert not alert.check(FEW)  # remembered
        assert db.kept_alert(number).check()
        with pytest.raises(Refused, match="as often as was paid"):
            alert.check()  # another object of the same alert has used its firing
        assert db.remaining == 70
        assert [entry.values for entry in db.ledger.entries()] == [(), (), ()]


def test_one_alert_is_found_without_counting_what_all_may_fire(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who arms many alerts of many firings makes no check dearer for the machine."""
    with publish(frame(ROWS), promise=LOUD, ledger=tmp_path / "ledger") as db:
        for above in (5, 6, -(10**9)):
            alert = db.alert(OLD, above=above, firings=900, credits=30, keep=True)
        assert alert.check()
        looked, paid = list[str](), db.ledger.paid
        monkeypatch.setattr(
            db.ledger, "paid", lambda *given: (looked.append(given[1]), paid(*given))[1]
        )
        assert db.kept_alert(alert.number).left == 899
        assert len(looked) == 2  # the first firing, and that there is no second
        assert [each.left for each in db.alerts()] == [900, 900, 899]
        assert len(looked) == 2 + 4


def test_an_old_copy_of_the_state_brings_no_firing_back(tmp_path: Path) -> None:
    with publish(frame(ROWS), promise=LOUD, ledger=tmp_path / "ledger") as db:
        alert = db.alert(OLD, above=TRUTH - 5, credits=30, keep=True)
        (path,) = kept_files()
        old = path.read_bytes()
        assert alert.check()
        path.write_bytes(old)
        (again,) = db.alerts()
        assert again.left == 0
        with pytest.raises(Refused, match="arm it again"):
            again.check()


def test_a_recovery_ends_an_alert_whose_firings_may_be_lost(tmp_path: Path) -> None:
    data, path = frame(ROWS), tmp_path / "ledger"
    with publish(data, promise=LOUD, ledger=path) as db:
        db.alert(OLD, above=TRUTH - 5, credits=30, keep=True, key="k")
    copy = path.read_bytes()
    with publish(data, promise=LOUD, ledger=path) as db:
        (alert,) = db.alerts()
        assert alert.check()
        receipts = [entry.receipt.to_json() for entry in db.ledger.entries() if entry.receipt]
    path.write_bytes(copy)
    assert not recover(path, receipts).burnt
    with publish(data, promise=LOUD, ledger=path) as db:
        assert db.alerts() == []
        again = db.alert(OLD, above=TRUTH - 5, credits=30, keep=True, key="k")
        with pytest.raises(Refused, match="arm it again"):
            again.check()


def test_a_firing_is_in_the_ledger_before_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash after the event: the verdict is lost, and found again under its key only."""
    with publish(frame(ROWS), promise=LOUD, ledger=tmp_path / "ledger") as db:
        alert = db.alert(OLD, above=TRUTH - 5, credits=30, keep=True)
        settle = db.ledger.settle

        def killed(*given: Any) -> None:
            settle(*given)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(db.ledger, "settle", killed)
            alert.check(key="this check")
        with pytest.raises(Refused, match="as often as was paid"):
            alert.check()
        assert alert.check(key="this check")
        assert db.remaining == 70


def test_arming_again_under_a_key_is_the_same_alert(tmp_path: Path) -> None:
    with publish(frame(ROWS), promise=LOUD, ledger=tmp_path / "ledger") as db:
        terms = {"above": 9_000, "credits": 30, "keep": True, "key": "armed once"}
        first, again = db.alert(OLD, **terms), db.alert(OLD, **terms)
        assert (first.number, first._level) == (again.number, again._level)
        assert (first.credits, again.credits, db.remaining, len(db.alerts())) == (30, 0, 70, 1)
        for other in ({"above": 1}, {"credits": 31}, {"firings": 2}):
            with pytest.raises(Refused, match="another alert"):
                db.alert(OLD, **{**terms, **other})
        assert db.remaining == 70


def test_a_crash_before_the_charge_leaves_nothing_that_compares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with publish(frame(ROWS), promise=LOUD, ledger=tmp_path / "ledger") as db:
        with pytest.raises(BudgetSpent):
            db.alert(OLD, above=5, credits=101, keep=True)
        assert (db.alerts(), db.remaining, kept_files()) == ([], 100, [])
        with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
            patch.setattr(db.ledger, "charge", lambda **_: 1 / 0)
            db.alert(OLD, above=5, credits=9, keep=True, key="lost")
        assert (db.alerts(), len(kept_files())) == ([], 1)
        assert db.alert(OLD, above=5, credits=9, keep=True, key="lost").check()
        assert (db.remaining, len(kept_files())) == (91, 1)


def test_kept_alerts_are_of_one_analyst_and_of_rows_as_they_are(tmp_path: Path) -> None:
    with publish(frame(ROWS), promise=LOUD, ledger=tmp_path / "ledger") as db:
        db.grant("ann", 40)
        alert = db.as_analyst("ann").alert(OLD, above=5, credits=30, keep=True)
        assert db.alerts() == []
        with pytest.raises(Refused, match="no alert"):
            db.kept_alert(alert.number)
        assert db.as_analyst("ann").kept_alert(alert.number).check()
        with db.grow(frame(ROWS + 1)) as grown:
            assert grown.as_analyst("ann").alerts() == []


def test_a_ledger_in_memory_keeps_no_alert(db: Database) -> None:
    for terms, said in (({"keep": True}, "leave keep out"), ({"key": "x"}, "keep=True too")):
        with pytest.raises(InvalidQuery, match=said):
            db.alert(OLD, above=5, **terms)
    assert db.remaining == 100


@pytest.mark.parametrize("content", ["", '{"analyst": "owner"', "{}", "[]"])
def test_a_damaged_file_is_told_and_harms_no_other_alert(tmp_path: Path, content: str) -> None:
    with publish(frame(ROWS), promise=LOUD, ledger=tmp_path / "ledger") as db:
        alert = db.alert(OLD, above=TRUTH - 5, credits=30, keep=True)
        other = db.alert(FEW, above=5, credits=30, keep=True)
        (file,) = (path for path in kept_files() if f'"seq": {alert.number}}}' in path.read_text())
        file.write_text(content)
        with pytest.raises(Refused, match="damaged; arm a new one"):
            alert.check()
        assert [one.number for one in db.alerts()] == [other.number]
