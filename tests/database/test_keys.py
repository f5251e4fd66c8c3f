"""Keys that nobody declared, through the database: threshold, price, and what is never said."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from scipy.stats import binom

import sulq.kernel.engines.sql.compile
import sulq.kernel.release.release
from sulq import (
    BudgetSpent,
    Category,
    Database,
    EngineFailed,
    Flag,
    InvalidQuery,
    Number,
    Promise,
    Refused,
    Schema,
    col,
)
from sulq.exact import Assumptions
from sulq.kernel.accounting.calibration import calibrate
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.accounting.mechanisms import keys_price
from sulq.kernel.schema.bind import NoiseGrid

COLUMNS = (
    Number("age", 0, 120, step=1),
    Category("illness"),
    Category("city", ["Oslo", "Paris"], public=True),
)
PROMISE = Promise(epsilon=1, delta="1e-6", queries=100)
LONG = "\N{GREEK SMALL LETTER OMEGA}" * 300


def frame(extra: list[str | None] | None = None) -> pd.DataFrame:
    texts: list[str | None] = ["flu"] * 3000 + ["asthma"] * 2000 + [LONG] * 1000 + [None] * 500
    texts += [f"own {number}" for number in range(700)]
    texts += extra or []
    rows = len(texts)
    return pd.DataFrame(
        {
            "age": [number % 100 for number in range(rows)],
            "illness": texts,
            "city": ["Oslo" if number % 2 else "Paris" for number in range(rows)],
        }
    )


def publish(data: Any = None, promise: Promise = PROMISE, **more: Any) -> Database:
    schema = Schema(*COLUMNS, **more.pop("schema", {}))
    ledger = more.pop("ledger", ":memory:")
    return Database.open(
        frame() if data is None else data, schema, promise, ledger, **more, publish=True
    )


def without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sulq.kernel.release.release, "add_fresh_noise", lambda sums, laws: list(sums)
    )


def test_common_keys_are_shown_and_rare_ones_held_back() -> None:
    with publish() as db:
        found = db.keys("illness", credits=20)
        assert found.keys == ("flu", "asthma", LONG[:200])
        for count, truth in zip(found.counts, (3000, 2000, 1000), strict=True):
            assert abs(count - truth) < 6 * found.standard_error
        assert abs(found.total - 6700) < 6 * found.standard_error
        assert abs(found.held_back - 700) < 6 * found.held_back_error
        assert min(found.counts) >= found.threshold
        assert dict(iter(found))["flu"] == found.counts[0]
        first = found.rows()[0]
        assert first["illness"] == "flu" and first["low"] < first["value"] < first["high"]
        assert list(found.to_pandas()["illness"]) == list(found.keys)
        assert found.receipt is not None


def test_the_price_is_said_before_and_charged_once() -> None:
    with publish() as db:
        quoted = db.quote_keys("illness", delta=1e-10)
        assert (quoted.credits, quoted.delta) == (2, Fraction(1, 10**10))
        assert db.remaining == 100
        found = db.keys("illness", delta=1e-10)
        assert (found.credits, found.delta, found.threshold) == (2, quoted.delta, quoted.threshold)
        assert found.standard_error == quoted.standard_error
        spent = Fraction(100) - db.remaining
        assert spent == 2
        left = db.ledger.remaining("owner").delta_fraction
        assert left < calibrate(PROMISE).slack_cap - quoted.delta
        again = db.keys("illness", delta=1e-10)
        assert (again.credits, again.delta, again.counts) == (0, 0, found.counts)
        assert db.ledger.remaining("owner").delta_fraction == left
        assert db.keys("illness", delta=2e-10).credits == 2  # another threshold is another answer


def test_delta_is_charged_twice_under_replace_and_m_times_per_person() -> None:
    """The same extra delta buys a higher threshold where more of it is due. M.1"""
    unit, delta = 2**30, Fraction(1, 10**10)
    found = {}
    for neighbours in ("replace", "add-remove"):
        for rows_each in (1, 3):
            chosen = calibrate(Promise(1, "1e-6", 100, neighbours=neighbours))
            credits = Fraction(2 * rows_each**2)
            found[neighbours, rows_each] = keys_price(chosen, rows_each, unit, credits, delta)
    due = {
        ("add-remove", 1): delta,
        ("replace", 1): delta / 2,
        ("add-remove", 3): delta / 3,
        ("replace", 3): delta / 6,
    }
    for (neighbours, rows_each), cost in found.items():
        over = cost.threshold - rows_each * unit  # P(N >= this) is the chance to be seen alone
        assert cost.law.tail(over - 1) / 2 <= float(due[neighbours, rows_each]) * (1 + 1e-9)
        assert cost.law.tail(over - 1 - unit // 100) / 2 > float(due[neighbours, rows_each])
        assert cost.loss.delta_fraction > delta  # and TB.8 on top
        assert cost.loss.delta_fraction < delta * (1 + Fraction(1, 1000))
    dearer = keys_price(calibrate(PROMISE), 1, unit, None, None)
    assert dearer.loss.credits_fraction == 2
    assert dearer.delta == calibrate(PROMISE).slack_cap / 100


@pytest.mark.parametrize("credits", [1e-60, 1e60])
def test_credits_whose_noise_cannot_be_drawn_are_refused_free(credits: float) -> None:
    """A variance from 1 to 2^128 of fine steps, as of any Gaussian noise. TB.8"""
    with publish() as db:
        for ask in (db.quote_keys, db.keys):
            with pytest.raises(InvalidQuery, match="near 2, which is what a quote"):
                ask("illness", credits=credits)
        assert db.remaining == 100


def test_persons_pay_for_all_their_rows() -> None:
    data = frame()
    data["who"] = [number // 2 for number in range(len(data))]
    with publish(data, schema={"unit": "who", "max_rows": 2}) as db:
        assert db.quote_keys("illness").credits == 8
        found = db.keys("illness", credits=90)
        assert set(found.keys) <= {"flu", "asthma", LONG[:200]} and len(found) >= 2


def test_a_key_of_ones_own_is_seen_no_more_often_than_delta_allows() -> None:
    """delta_t = 4e-4 on 50,000 keys of one row: at most 20 expected; false alarm 1e-6."""
    promise = Promise(1, "0.9", 1)
    delta = Fraction(8, 10**4)
    assert delta < calibrate(promise).slack_cap
    data = pd.DataFrame({"illness": [f"key {number}" for number in range(50_000)]})
    with Database.open(data, Schema(Category("illness")), promise, ":memory:") as db:
        found = db.keys("illness", credits=1, delta=delta)
    assert len(found) <= binom.isf(1e-6, 50_000, 4e-4)
    assert len(found) > 0  # the threshold is not far above what delta allows: P(none) = e^-20


def test_conditions_and_strata(monkeypatch: pytest.MonkeyPatch) -> None:
    without_noise(monkeypatch)
    with publish() as db:
        found = db.keys("illness", where=(col("city") == "Oslo") & (col("age") < 50), credits=20)
        truth = frame().query("city == 'Oslo' and age < 50").illness.str[:200].value_counts()
        assert dict(iter(found)) == {key: n for key, n in truth.items() if n >= found.threshold}
        assert found.total == truth.sum()
        spent = {a.name: a.spent.credits_fraction for a in db.ledger.statement().accounts}
        assert spent["city=Oslo"] == 20 and spent["city=Paris"] == 0


def test_ties_are_ordered_by_key_and_most_limits_what_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without_noise(monkeypatch)
    data = frame(["b"] * 900 + ["a"] * 900 + ["é"] * 900)
    with publish(data) as db:
        assert db.keys("illness").keys == ("flu", "asthma", LONG[:200], "a", "b", "é")
        few = db.keys("illness", most=2)
        assert few.keys == ("flu", "asthma")
        assert few.held_back == few.total - 5000


def test_what_is_held_back_changes_only_the_total(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more rare key, or one row more on an old rare key: the same but for the noisy total."""
    without_noise(monkeypatch)
    promise = Promise(1, "1e-6", 100, neighbours="add-remove")
    seen = []
    for more in ([], ["a new key"], ["own 1"]):
        with publish(frame(more), promise) as db:
            found = db.keys("illness")
            seen.append((found.keys, found.counts, found.threshold, repr(found.law), found.total))
    assert seen[0][:4] == seen[1][:4] == seen[2][:4]
    assert seen[1][4] == seen[2][4] == seen[0][4] + 1


def test_parts_hold_every_key_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with publish() as db:
        bound = sulq.database.keys.bind_keys("illness", None, 9, db.schema, "replace", NoiseGrid())
        program = bound.program
        whole = sorted(row for batch in db.engine.prepare_keys(program)() for row in batch)
        monkeypatch.setattr(sulq.kernel.engines.sql.compile, "ROWS_EACH", 1000)
        monkeypatch.setattr("sulq.kernel.engines.duckdb.engine.FETCHED", 7)
        batches = list(db.engine.prepare_keys(program)())
        assert max(map(len, batches)) <= 7
        assert sorted(row for batch in batches for row in batch) == whole
        assert sum(count for _, count, _ in whole) == 6700 and len(whole) == 703


@pytest.mark.parametrize("noise", ["laplace", "binomial", "huber"])
def test_only_a_promise_with_delta_to_spare(noise: str) -> None:
    delta = 0 if noise == "laplace" else "1e-6"
    with (
        publish(promise=Promise(1, delta, 10, noise)) as db,
        pytest.raises(Refused, match="gaussian"),
    ):
        db.keys("illness")


def test_refusals_are_free_and_say_why() -> None:
    with publish() as db:
        wrong: list[tuple[Any, dict[str, Any], str]] = [
            ("city", {}, "declared"),
            ("age", {}, "no text"),
            ("ilness", {}, "did you mean 'illness'"),
            (7, {}, "name of an open text column"),
            ("illness", {"most": 0}, "most must be"),
            ("illness", {"most": True}, "most must be"),
            ("illness", {"credits": 0}, "credits must be"),
            ("illness", {"delta": -1}, "delta must be"),
            ("illness", {"delta": 1}, "far below 1"),
        ]
        for column, terms, said in wrong:
            with pytest.raises(InvalidQuery, match=said):
                db.keys(column, **terms)
        with pytest.raises(BudgetSpent, match="extra delta"):
            db.keys("illness", delta=1e-6)
        with pytest.raises(BudgetSpent):
            db.keys("illness", credits=101)
        assert db.remaining == 100


def test_tables_with_exact_release_show_no_undeclared_keys() -> None:
    schema = Schema(Category("illness"), Flag("smoker"))
    data = pd.DataFrame({"illness": ["a"] * 50, "smoker": [True, False] * 25})
    given = Assumptions(1, 1e-6, known_rows=0, least={"smoker": 0.2})
    with (
        Database.open(data, schema, PROMISE, ":memory:", exactly=given) as db,
        pytest.raises(Refused, match="exact release"),
    ):
        db.keys("illness")


def test_an_analyst_pays_credits_and_delta_out_of_the_own_share() -> None:
    with publish() as db:
        db.grant("Ann", 10)
        ann = db.as_analyst("Ann")
        slack = calibrate(PROMISE).slack_cap
        share = db.ledger.remaining("Ann").delta_fraction
        assert share < slack / 10
        with pytest.raises(BudgetSpent, match="Ann's share"):
            ann.keys("illness", delta=share * 2)
        found = ann.keys("illness")
        assert found.credits == 2 and ann.remaining == 8
        assert db.ledger.remaining("Ann").delta_fraction < share - slack / 100
        assert ann.quote_keys("illness").threshold == found.threshold
        assert db.keys("illness").counts == found.counts  # stored: the owner pays nothing
        assert db.remaining == 90


@pytest.mark.parametrize("credits", [Fraction(1, 8), 1, Fraction(15, 8), 3])
def test_a_quote_is_affordable_if_its_delta_can_be_paid_too(credits: Any) -> None:
    """Below 2 % a share does not hold the usual delta; the note names one that it does hold."""
    with publish() as db:
        db.grant("Ann", credits)
        ann = db.as_analyst("Ann")
        terms = {"credits": Fraction(credits) / 2}
        statement = "SELECT illness, COUNT(*) AS n FROM people GROUP BY illness"
        quoted = ann.quote_keys("illness", **terms)
        told = ann.quote_sql(statement, table="people", **terms)
        assert quoted.left_after == told.left_after == credits / 2
        assert quoted.affordable == told.affordable == (credits >= 2)
        assert quoted.note in told.note and db.quote_keys("illness", **terms).affordable
        if quoted.affordable:
            assert not quoted.note and ann.keys("illness", **terms).credits == credits / 2
            assert ann.quote_keys("illness", **terms).affordable  # a repeat is free
            return
        with pytest.raises(BudgetSpent):
            ann.keys("illness", **terms)
        delta = Fraction(quoted.note.split("`delta` of ")[1].split()[0])
        assert delta < quoted.delta
        less = ann.quote_keys("illness", delta=delta, **terms)
        assert less.affordable and less.threshold > quoted.threshold
        assert ann.keys("illness", delta=delta, **terms).credits == credits / 2
        spent = ann.quote_keys("illness", where=col("age") > 5, **terms)
        assert not spent.affordable and "a larger share" in spent.note


def test_charged_before_reading_and_stored_before_release(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with publish(ledger=tmp_path / "ledger") as db:
        prepare = db.engine.prepare_keys

        def broken(program: Any) -> Any:
            def read() -> Any:
                assert db.remaining == 98  # durable before the first row
                yield from ()
                raise EngineFailed

            return read

        monkeypatch.setattr(db.engine, "prepare_keys", broken)
        with pytest.raises(EngineFailed):
            db.keys("illness")
        assert db.remaining == 98
        monkeypatch.setattr(db.engine, "prepare_keys", prepare)
        found = db.keys("illness")  # another draw at the same charge: nothing of the first was seen
        assert db.remaining == 98
    data = frame()
    with publish(data, ledger=tmp_path / "ledger") as db:
        assert db.keys("illness").counts == found.counts
        assert db.keys("illness").keys == found.keys


def test_loss_is_whole_steps() -> None:
    cost = keys_price(calibrate(PROMISE), 1, 2**30, Fraction(1, 3), Fraction(1, 10**10))
    assert cost.loss.within(Loss.of(Fraction(1, 3), Fraction(11, 10**11)))
