"""Asked again more finely, distributions and sums per person pay only what is missing. M.7"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2

from sulq import Category, Database, Flag, Number, Promise, Refused, Schema, cdf, col, quantiles
from sulq.answers.statistics import count_persons, distribution, histogram, per_person, total
from sulq.database.reuse import APART
from sulq.kernel.noise.laws import DiscreteGaussian

TINY = Fraction(1, 10**9)
FALSE_ALARM = 1e-6
SCHEMA = Schema(
    Number("age", 0, 60, step=1),
    Flag("ill"),
    Category("city", ["a", "b", "c"]),
    unit="person",
    max_rows=2,
)
ILL = col("ill")
QUESTIONS = {
    "quantiles": quantiles("age", [0.25, 0.5]),
    "cdf": cdf("age", where=ILL),
    "distribution": distribution("age", resolution=16),
    "distributions": distribution("age", by="city", where=ILL),
    "persons": count_persons(ILL),
    "persons by city": count_persons(by="city"),
    "clipped sums": per_person(total("age"), (0, 80)),
    "clipped histogram": per_person(histogram("city"), (0, 2)),
}


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    random = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "person": np.arange(600) // 2,
            "age": random.integers(0, 60, 600),
            "ill": random.random(600) < 0.4,
            "city": random.choice(["a", "b", "c"], 600),
        }
    )


def opened(rows: pd.DataFrame, ledger: str | Path = ":memory:", **noise: Any) -> Database:
    promise = Promise(1, noise.pop("delta", "1e-6"), queries=100, **noise)
    return Database.open(rows, SCHEMA, promise, ledger, publish=True)


def paid(db: Database) -> Fraction:
    return Fraction(db.promise.queries or 0) - db.remaining


def sizes(laws: Any) -> list[float]:
    assert all(isinstance(law, DiscreteGaussian) for law in laws)
    return [float(law.sigma_squared) for law in laws]


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", QUESTIONS)
def test_only_the_missing_precision_is_paid(rows: pd.DataFrame, name: str) -> None:
    """2 and then 6 credits are 6 in all: law, bar and receipts of one answer of 6."""
    question, db, fresh = QUESTIONS[name], opened(rows), opened(rows)
    first = db.ask(question, credits=2)
    assert abs(db.quote(question, credits=6).credits - 4) < TINY
    finer = db.ask(question, credits=6)
    alone = fresh.ask(question, credits=6)
    assert abs(finer.credits - 4) < TINY and abs(paid(db) - 6) < TINY
    assert finer.sources == (first.receipt.seq, finer.receipt.seq)
    assert sizes(finer.laws) == pytest.approx(sizes(alone.laws), rel=1e-9)
    if name != "quantiles":  # whose bars lie where the rows do
        assert finer.standard_error == pytest.approx(alone.standard_error, rel=1e-9)
    again = db.ask(question, credits=6)
    assert again.credits == 0 and np.array_equal(again.value, finer.value)
    assert db.quote(question, credits=6).repeat and not db.quote(question, credits=7).repeat


@pytest.mark.parametrize("name", ["distributions", "persons by city"])
def test_the_noise_of_the_average_has_the_law_it_states(rows: pd.DataFrame, name: str) -> None:
    """Squared residuals over the stated variances, node by node: chi-square."""
    question, db = QUESTIONS[name], opened(rows)
    for credits in (1, 3, Fraction(7, 2)):
        answer = db.ask(question, credits=credits)
    bound = db.bind(question)
    exact = bound.lifted(db.engine.exact_sums(bound.sums))
    laws = sizes(answer.laws)
    each = [laws[term] for term in bound.layout] * (bound.width // len(bound.layout))
    squares = [
        (value - sure) ** 2 / size
        for value, sure, size in zip(answer.values, exact, each, strict=True)
    ]
    assert len(answer.sources) == 3
    low, high = chi2.ppf(FALSE_ALARM / 4, len(squares)), chi2.isf(FALSE_ALARM / 4, len(squares))
    assert low < sum(squares) < high


@given(
    name=st.sampled_from(["quantiles", "distributions", "persons", "clipped histogram"]),
    asked=st.lists(st.integers(1, 96).map(lambda k: Fraction(k, 16)), min_size=1, max_size=4),
)
@settings(max_examples=10, deadline=None)
def test_what_was_paid_is_the_precision_of_the_answer(
    rows: pd.DataFrame, name: str, asked: list[Fraction]
) -> None:
    """In any order of prices: none above the full one, and what is bought is as exact as all that
    was paid for it. What was bought before is told again, whatever was bought since."""
    question, db = QUESTIONS[name], opened(rows)
    bound = db.bind(question)
    unit, told = db.quote(question).credits, list[Fraction]()
    for credits in asked:
        quoted = db.quote(question, credits=credits).credits
        before = paid(db)
        answer = db.ask(question, credits=credits)
        assert quoted <= answer.credits <= quoted * APART  # two draws of one size have two names
        assert answer.credits == paid(db) - before
        assert answer.credits <= credits * APART
        best = max(told, default=Fraction(0))
        if credits > best:  # the draw that is added is an answer too
            told += [credits - best, credits] if best else [credits]
        assert abs(paid(db) - max(told)) < TINY
        exact = next(size for size in told if size >= credits)
        for term, law in zip(bound.terms, answer.laws, strict=True):
            at_one = db.calibration.unit_variance * term.fine_unit**2
            assert isinstance(law, DiscreteGaussian)
            assert abs(at_one / law.sigma_squared * unit - exact) < TINY * max(told)


def chances(sigma_squared: Fraction, reach: int) -> NDArray[np.float64]:
    places = np.arange(-reach, reach + 1)
    found: NDArray[np.float64] = np.exp(-(places**2) / (2 * float(sigma_squared)))
    found /= found.sum()
    return found


def test_the_average_of_two_draws_is_one_draw_but_for_the_grid() -> None:
    """The exact law of round((X + 2 Y) / 3), X ~ N(3 s), Y ~ N(3 s / 2), against that of N(s).

    Total variation falls as the grid gets finer: by 4 for every bit, to 2^-60 on a grid of 2^30.
    """
    apart = []
    for bits in (2, 3, 4):
        size = Fraction(4**bits)
        reach = 30 << bits
        one, two = chances(3 * size, reach), chances(3 * size / 2, reach)
        doubled = np.zeros(4 * reach + 1)
        doubled[::2] = two
        law = np.convolve(one, doubled)  # of X + 2 Y, from -3 reach
        values = np.arange(len(law)) - 3 * reach
        rounded = np.floor(values / 3 + 0.5).astype(int)
        found = np.bincount(rounded + reach, weights=law, minlength=2 * reach + 1)
        apart.append(float(np.abs(found - chances(size, reach)).sum()) / 2)
    assert apart[0] < 0.01
    assert apart[0] / apart[1] == pytest.approx(4, rel=0.1)
    assert apart[1] / apart[2] == pytest.approx(4, rel=0.1)


def test_shares_pay_what_their_analysts_lack(rows: pd.DataFrame) -> None:
    db, question = opened(rows), QUESTIONS["distributions"]
    for name in ("ann", "bob"):
        db.grant(name, 30)
    ann, bob = db.as_analyst("ann"), db.as_analyst("bob")
    ann.ask(question, credits=2)
    assert bob.quote(question, credits=3).credits == 3  # nothing shows of ann's
    assert bob.ask(question, credits=3).credits == 3
    assert abs(db.statement().spent - 3) < TINY
    assert abs(ann.ask(question, credits=3).credits - 1) < TINY
    assert abs(db.statement().spent - 3) < TINY
    assert abs(ann.remaining - 27) < TINY and bob.remaining == 27


@pytest.mark.parametrize("name", ["distributions", "persons"])
def test_a_share_pays_what_it_was_quoted_whatever_colleagues_have(
    rows: pd.DataFrame, name: str
) -> None:
    """For what is asked, not got: else the charge would tell of a colleague's question."""
    question, charged, sizes_got = QUESTIONS[name], [], []
    for asked_before in (False, True):
        db = opened(rows)
        for who in ("ann", "bob"):
            db.grant(who, 30)
        if asked_before:
            db.as_analyst("ann").ask(question, credits=8)
        bob = db.as_analyst("bob")
        quotes, paid_each = [], []
        for credits in (1, 2):
            quotes.append(bob.quote(question, credits=credits).credits)
            answer = bob.ask(question, credits=credits)
            paid_each.append(answer.credits)
        assert paid_each[0] == quotes[0] == 1 and paid_each[1] == quotes[1]
        charged.append(paid_each)
        sizes_got.append(sizes(answer.laws)[0])
    assert charged[0] == [1, 1] and charged[1] == [1, 0]  # the second time it is his already
    assert sizes_got[0] == pytest.approx(4 * sizes_got[1], rel=1e-9)


def test_a_key_and_a_plan_keep_the_average(rows: pd.DataFrame, tmp_path: Path) -> None:
    tree, persons = QUESTIONS["distributions"], QUESTIONS["persons"]
    db = opened(rows, tmp_path / "ledger")
    db.ask(tree, credits=1)
    db.ask(persons, credits=1)
    keyed = db.ask(tree, credits=2, key="k")
    plan = db.plan([tree, persons, tree], credits=18)
    assert abs(plan.credits - (18 - 3)) < TINY
    before = paid(db)
    planned = plan.ask("p")
    assert abs(paid(db) - before - plan.credits) < TINY
    assert [len(answer.sources) for answer in planned] == [3, 2, 3]
    assert [float(answer.credits > 0) for answer in planned] == [1, 1, 0]
    db.ask(tree, credits=20)
    db.close()
    again = opened(rows, tmp_path / "ledger")
    spent = paid(again)
    assert np.array_equal(again.ask(tree, credits=2, key="k").value, keyed.value)
    with pytest.raises(Refused, match="another question"):
        again.ask(persons, key="k")
    retried = again.plan([tree, persons, tree], credits=18).ask("p")
    for old, new in zip(planned, retried, strict=True):
        assert np.array_equal(old.value, new.value) and new.credits == 0
        assert old.receipt.to_json() == new.receipt.to_json()
    assert paid(again) == spent
    assert all(again.ledger.receipt(seq) for seq in planned[0].sources)


@pytest.mark.parametrize("crash_at", [1, 2])
def test_a_crash_costs_nothing_twice(
    rows: pd.DataFrame, crash_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between charge and store of the draw, or of the average: asked again, nothing is charged."""
    db, question = opened(rows), QUESTIONS["distributions"]
    db.ask(question, credits=1)
    calls = []

    def crashing(settle: Any) -> Any:
        def crash(*given: Any) -> Any:
            calls.append(1)
            if len(calls) == crash_at:
                raise KeyboardInterrupt
            return settle(*given)

        return crash

    for name in ("settle_all", "settle"):
        monkeypatch.setattr(type(db.ledger), name, crashing(getattr(type(db.ledger), name)))
    with pytest.raises(KeyboardInterrupt):
        db.ask(question, credits=4, key="k")
    spent = paid(db)
    assert abs(spent - 4) < TINY
    answer = db.ask(question, credits=4, key="k")
    assert paid(db) == spent and len(answer.sources) == 2
    fresh = opened(rows).ask(question, credits=4)
    assert answer.standard_error == pytest.approx(fresh.standard_error, rel=1e-9)


def test_laplace_distributions_are_paid_in_full_and_the_finest_stays(rows: pd.DataFrame) -> None:
    """L1 prices add, precisions do not: the finer draw alone is the answer, to all who ask less."""
    db, question = opened(rows, delta=0, noise="laplace"), QUESTIONS["distributions"]
    db.ask(question, credits=1)
    finer = db.ask(question, credits=3)
    assert finer.credits == 3 and paid(db) == 4 and not finer.sources
    coarse = db.ask(question, credits=2)
    assert coarse.credits == 0 and np.array_equal(coarse.value, finer.value)
    assert math.isfinite(float(np.max(coarse.standard_error)))


def test_derived_counts_of_persons_are_cut_to_persons(rows: pd.DataFrame) -> None:
    """Two Laplace draws share no one law: their average is still at most all persons, not rows."""
    db, question = opened(rows, delta=0, noise="laplace"), QUESTIONS["persons"]
    db.ask(question, credits=1)
    db.ask(question, credits=2)
    both = db.ask(question, credits=2.1)  # more than either, and what they say together
    assert len(both.sources) == 2 and both.credits == 0
    assert both.interval(0.999999)[1] == rows.person.nunique()


@pytest.mark.parametrize("kind", ["quantiles", "persons"])
def test_whoever_dies_before_the_sum_is_stored_has_paid_once(
    kind: str, rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The draw is stored, what it was to be added to is not: a retry goes on from there."""
    asked, database = QUESTIONS[kind], opened(rows)
    for name in ("ann", "bob"):
        database.grant(name, 40)
    database.ask(asked, credits=4, analyst="bob")

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Database, "topped_up", dies)
        database.ask(asked, credits=10, analyst="ann", key="one key")
    first = database.ask(asked, credits=10, analyst="ann", key="one key")
    again = database.ask(asked, credits=10, analyst="ann", key="one key")
    assert database.left_for("ann") == 30
    assert np.array_equal(first.value, again.value) and len(first.sources) == 2
