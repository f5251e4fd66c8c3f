"""sulq audit --replay: one word, said of everything that was answered, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from tests.people import SCHEMA, frame, publish

from sulq import (
    Category,
    Database,
    Number,
    Promise,
    Schema,
    cdf,
    col,
    count,
    histogram,
    mean,
    outer,
    quantiles,
    total,
)
from sulq.answers.statistics import count_persons
from sulq.database import audit
from sulq.database import audit as replaying
from sulq.database.audit import FEWEST, last_replay, noted_replay, replay
from sulq.errors import EngineFailed, Refused
from sulq.kernel.noise.laws import DiscreteGaussian, DiscreteLaplace
from sulq.kernel.noise.sampler import draw_noise
from sulq.kernel.query import vectors
from sulq.kernel.release import release as flow

LONG = Promise(epsilon=1, delta="1e-6", queries=5_000)


def ask_many(db, number=FEWEST, start=0):
    for i in range(start, start + number):
        db.ask(count(where=col("income") >= 100 + 97 * i))


@pytest.fixture
def few(monkeypatch):
    """For what has nothing to do with power: ten questions are enough."""
    monkeypatch.setattr(replaying, "FEWEST", 10)
    monkeypatch.setattr(replaying, "EVERY", 5)
    return 10


def word(db):
    return replay(db).word


def test_honest_answers_of_every_kind_pass():
    db = publish(promise=LONG)
    ask_many(db)
    db.ask(histogram("blood", where=col("age") > 30))
    db.ask(histogram("city", "blood"))
    db.ask(mean(col("income")))
    db.ask(total(col("income").clip(0, 50_000)))
    db.ask(quantiles("age", [0.25, 0.5]))
    db.ask(cdf("age", edges=[10, 20, 50, 80]))
    db.ask(count(where=col("city") == "Oslo"))  # public, no noise
    between = (col("income") >= 100) & (col("income") < 197)
    assert db.ask(count(where=between), credits=0.25).credits == 0  # derived
    db.ask(count(where=col("income") >= 100), credits=4)  # topped up
    db.ask(outer(vectors.columns(["age", "income"]), vectors.columns(["age"])))
    db.top("blood", k=2)
    alert = db.alert(count(where=col("age") > 50), above=100)
    alert.check()
    plan = db.plan([count(where=col("age") == age) for age in range(20)])
    plan.ask()
    db.grant("ann", 10)
    db.as_analyst("ann").ask(count(where=col("income") >= 100))  # a repeat
    assert word(db) == "pass"


@pytest.mark.sample(1)
@pytest.mark.parametrize("noise", ["laplace", "binomial", "huber"])
def test_other_laws_pass(noise):
    delta = 0 if noise == "laplace" else "1e-6"
    promise = Promise(epsilon=5, delta=delta, queries=500, noise=noise)
    db = publish(promise=promise)
    ask_many(db)
    assert word(db) == "pass"


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_persons_pass(neighbours, few):
    rows = frame(3_000).assign(person=[i % 1_000 for i in range(3_000)])
    schema = Schema(Number("income", 0, 500_000), unit="person", max_rows=2)
    db = publish(rows, schema, Promise(1, "1e-6", queries=5_000, neighbours=neighbours))
    ask_many(db, few)
    assert word(db) == "pass"


def test_keys_pass_and_a_made_up_key_fails(few, monkeypatch):
    rows = frame(2_000).assign(name=[f"n{i % 3}" for i in range(2_000)])
    schema = Schema(Number("income", 0, 500_000), Category("name"))
    db = publish(rows, schema, LONG)
    ask_many(db, few)
    for most in (1_000, 2):
        shown = db.keys("name", credits=400, most=most, where=col("income") >= 100)
        assert len(shown) == min(3, most)
    assert word(db) == "pass"
    unpacked = audit.unpacked_keys

    def renamed(values, bound):
        said, shown = unpacked(values, bound)
        return said, [one._replace(key=("nobody",)) for one in shown[:1]] + shown[1:]

    monkeypatch.setattr(audit, "unpacked_keys", renamed)
    assert word(db) == "fail"


def test_keys_with_figures_pass_and_a_wrong_sum_fails(few, monkeypatch):
    rows = frame(2_000).assign(person=[i % 900 for i in range(2_000)])
    rows = rows.assign(name=[f"n{i % 3}" for i in range(2_000)], code=[i % 2 for i in range(2_000)])
    columns = (Number("income", 0, 500_000), Category("name"), Category("code", whole=True))
    db = publish(rows, Schema(*columns, unit="person", max_rows=2), LONG)
    ask_many(db, few)
    income = col("income").clip(0, 200)
    assert len(db.keys("name", total(income), mean(income), credits=1500)) == 3
    assert len(db.keys(("name", "code"), credits=1500, most=4)) == 4
    assert len(db.keys("name", count_persons(), credits=1500)) == 3
    assert word(db) == "pass"
    unpacked = audit.unpacked_keys

    def raised(values, bound):
        said, shown = unpacked(values, bound)
        return said, [one._replace(sums=[x + 2**45 for x in one.sums]) for one in shown]

    monkeypatch.setattr(audit, "unpacked_keys", raised)
    assert word(db) == "fail"


def reused(noise, laws, memory):
    """Every draw serves two questions."""
    if "last" in memory:
        return memory.pop("last")
    memory["last"] = noise
    return noise


FAULTS = {
    "missing": lambda noise, laws, memory: [0] * len(noise),
    "half": lambda noise, laws, memory: [r // 2 for r in noise],
    "shifted": lambda noise, laws, memory: [
        r + round(law.standard_deviation()) for r, law in zip(noise, laws, strict=True)
    ],
    "reused": reused,
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("fault", FAULTS)
def test_bad_noise_fails(fault, monkeypatch):
    memory: dict[str, list[int]] = {}
    monkeypatch.setattr(
        flow, "draw_noise", lambda laws: FAULTS[fault](draw_noise(laws), laws, memory)
    )
    db = publish(promise=LONG)
    ask_many(db)
    assert word(db) == "fail"


@pytest.mark.slow
def test_a_fifth_short_fails_at_2000(monkeypatch):
    monkeypatch.setattr(flow, "draw_noise", lambda laws: [r * 4 // 5 for r in draw_noise(laws)])
    db = publish(promise=LONG)
    ask_many(db, 2_000)
    assert word(db) == "fail"


class Elsewhere:
    """An engine that answers from another table."""

    def __init__(self, engine, other):
        self._engine, self._other = engine, other

    def prepare(self, program):
        return self._other.prepare(program)

    def __getattr__(self, name):
        return getattr(self._engine, name)


def test_answers_of_another_table_fail(few):
    db = publish(frame(20_000), promise=LONG)
    other = publish(frame(20_000).assign(income=lambda rows: rows["income"] * 2), promise=LONG)
    honest, db.reader = db.reader, replace(db.reader, engine=Elsewhere(db.engine, other.engine))
    for least in range(30_000, 50_000, 1_000):
        db.ask(count(where=col("income") >= least))
    db.reader = honest
    assert word(db) == "fail"


@pytest.mark.parametrize(("kind", "off"), [("derived", 2**24), ("public", 1)])
def test_a_changed_derived_or_public_answer_fails(kind, off, few, monkeypatch):
    between = (col("income") >= 100) & (col("income") < 197)  # the difference of two
    asked = {"derived": between, "public": col("city") == "Oslo"}[kind]
    for said in ("pass", "fail"):
        db = publish(promise=LONG)
        ask_many(db, few)
        if said == "fail":
            changed = _off(db.ledger.settle, off)
            monkeypatch.setattr(db.ledger, "settle", changed)
            monkeypatch.setattr(db.ledger, "settle_all", partial(_each, changed))
        credits = 0.25 if kind == "derived" else None
        assert db.ask(count(where=asked), credits=credits).credits == 0
        assert word(db) == said


def _each(settle, noisy):
    return [settle(entry, values) for entry, values in noisy]


def _off(settle, by):
    return lambda entry, values: settle(entry, [value + by for value in values])


def test_few_questions_are_refused_before_a_row_is_read(monkeypatch):
    db = publish(promise=LONG)
    ask_many(db, FEWEST - 1)
    for city in ("Oslo", "Paris"):
        db.ask(count(where=col("city") == city))  # exact: not drawn
    monkeypatch.setattr(db, "reader", replace(db.reader, engine=Unread(db.engine)))
    with pytest.raises(Refused, match=f"wants {FEWEST} .* has {FEWEST - 1}"):
        replay(db)


class Unread:
    def __init__(self, engine):
        self._engine = engine

    def prepare(self, program):
        self._engine.prepare(program)

        def never():
            raise AssertionError("a row was read")

        return never

    def __getattr__(self, name):
        return getattr(self._engine, name)


def test_the_word_stands_until_enough_is_new(tmp_path, few):
    frame().to_parquet(tmp_path / "people.parquet")
    with publish(tmp_path / "people.parquet", promise=LONG, ledger=tmp_path / "l") as db:
        assert last_replay(db) is None
        ask_many(db, few)
        first = replay(db)
        assert (first.passed, first.questions) == (True, few)
        ledger = db.ledger.statement().ledger
        assert noted_replay(ledger, "people") == last_replay(db) == first
        ask_many(db, 4, start=few)
        honest, db.reader = db.reader, replace(db.reader, engine=Unread(db.engine))
        assert replay(db) == first
        db.reader = honest
        ask_many(db, 1, start=few + 5)
        assert replay(db).questions == few + 5


def test_a_changed_version_is_refused(monkeypatch, few):
    db = publish(promise=LONG)
    ask_many(db, few)
    object.__setattr__(db.ledger._table.header, "version", "0" * 32)
    entries = list(db.ledger.entries())
    object.__setattr__(db.ledger._table.header, "version", "1" * 32)
    monkeypatch.setattr(db.ledger, "entries", lambda: iter(entries), raising=False)
    with pytest.raises(Refused, match="another version"):
        replay(db)


def test_answers_from_before_an_amendment_are_read_as_they_were(tmp_path, few):
    rows = frame().assign(income=lambda found: found["income"] * 3)
    rows.to_parquet(tmp_path / "people.parquet")
    db = publish(tmp_path / "people.parquet", promise=LONG, ledger=tmp_path / "l")
    ask_many(db, 40)
    db.ask(total(col("income")), credits=100)
    between = (col("income") >= 100) & (col("income") < 197)
    assert db.ask(count(where=between), credits=0.25).credits == 0
    columns = [Number("income", 0, 50_000) if c.name == "income" else c for c in SCHEMA.columns]
    db = db.amend(Schema(*columns), reason="tighter")
    ask_many(db, 20, start=10)
    db.ask(total(col("income")), credits=100)
    assert word(db) == "pass"
    db.close()


def test_progress_tells_only_how_many(few):
    db = publish(promise=LONG)
    ask_many(db, few)
    seen: list[tuple[int, int]] = []
    replay(db, lambda *said: seen.append(said))
    assert seen == [(i, few) for i in range(1, few + 1)]


def test_data_that_changed_meanwhile_gives_no_word(tmp_path, few):
    path = tmp_path / "people.parquet"
    frame().to_parquet(path)
    with publish(path, promise=LONG, ledger=tmp_path / "l") as db:
        ask_many(db, few)

        def change(done, of):
            if done == 5:
                frame(seed=9).to_parquet(path)

        with pytest.raises((Refused, EngineFailed)):
            replay(db, change)
        assert last_replay(db) is None


def test_released_sums_are_exactly_themselves(monkeypatch, few):
    from tests.database.test_exact import published

    db = published(promise=Promise(epsilon=1, delta="1e-6", queries=5_000))
    db.ask_exactly([count(where=col("ill"))])
    for i in range(few):
        db.ask(count(where=col("pay") >= 100 * i))
    assert word(db) == "pass"
    released = audit._released
    monkeypatch.setattr(
        audit,
        "_released",
        lambda d, e, f: released(d, _replaced(e), f),
    )
    assert word(db) == "fail"


def _replaced(entry):
    from dataclasses import replace

    return replace(entry, values=tuple(value + 1 for value in entry.values))


def test_nothing_but_the_word_is_kept(tmp_path, state_directory, few):
    frame().to_parquet(tmp_path / "people.parquet")
    with Database.open(
        tmp_path / "people.parquet", SCHEMA, LONG, tmp_path / "l", publish=True
    ) as db:
        ask_many(db, few)
        replay(db)
    (kept,) = state_directory.glob("ledgers/*/replay-*")
    assert kept.read_text() == '{"passed": true, "questions": 10}'
    assert kept.stat().st_mode & 0o777 == 0o600


@pytest.mark.sample(2)
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("questions", [400, 2_000, 20_000])
def test_the_smallest_fault_that_a_replay_sees(noise, questions):
    """Said to be seen, it is seen; honest noise passes."""
    short = audit.smallest_shortfall(questions, noise)
    rng = np.random.default_rng(questions)
    law = DiscreteGaussian(Fraction(2**60)) if noise == "gaussian" else DiscreteLaplace(2**30)
    for left, failed in ((1 - short, True), (1, False)):
        found = audit.Conformity()
        drawn = rng.normal(0, 1, questions) if noise == "gaussian" else rng.laplace(0, 1, questions)
        for one in drawn:
            found.add([round(one * left * 2**30)], [law])
        assert found.failed is failed


def test_few_questions_see_little_and_many_see_more():
    seen = [audit.smallest_shortfall(n, "gaussian") for n in (10, 200, 1_200, 10_000, 10**6)]
    assert seen == [None, 0.41, 0.2, 0.07, 0.03]


@pytest.mark.parametrize("rate", [1e-3])
def test_a_replay_sees_one_exact_answer_in_a_thousand_among_ten_thousand(rate):
    """The curator's attack (arXiv 2411.16516): all is right, but now and then there is no noise."""
    rng, law = np.random.default_rng(2), DiscreteGaussian(Fraction(2**60))
    found = audit.Conformity()
    for drawn, exact in zip(rng.normal(0, 2**30, 10_000), rng.random(10_000) < rate, strict=True):
        found.add([0 if exact else round(drawn)], [law])
    assert found.failed


@pytest.mark.sample(1)
@pytest.mark.parametrize(("questions", "exact"), [(3_000, 2), (20_000, 3)])
def test_how_many_exact_answers_a_replay_sees(questions, exact):
    """On the finest noise that a count can have: a standard deviation of one unit of 2^30 steps."""
    law = DiscreteGaussian(Fraction(2**60))
    for zeros, failed in ((exact, True), (1, False)):
        found, rng = audit.Conformity(), np.random.default_rng(exact)
        drawn = np.rint(rng.normal(0, 2**30, questions))
        drawn[:zeros] = 0
        for one in drawn:
            found.add([int(one)], [law])
        assert found.failed is failed
