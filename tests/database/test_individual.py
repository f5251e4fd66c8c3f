"""A table whose people have balances of their own: the flow, its promise, crashes and secrecy."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.people import frame, publish

import sulq.kernel.release.release as flow
from sulq import (
    BudgetSpent,
    Category,
    EngineFailed,
    Flag,
    InvalidQuery,
    Number,
    Promise,
    Refused,
    Schema,
    col,
    count,
    histogram,
    mean,
    outer,
    quantiles,
    total,
)
from sulq.database.individual import IndividualFilter
from sulq.exact import Assumptions
from sulq.kernel.accounting.calibration import calibrate
from sulq.kernel.accounting.individual import Balances
from sulq.kernel.accounting.pricing import Price, laws_of, sources_of
from sulq.kernel.noise.laws import DiscreteGaussian
from sulq.kernel.query.canonical import spelling
from sulq.kernel.query.expressions import Expression
from sulq.kernel.query.sum_query import Statistic, SumQuery
from sulq.kernel.query.vectors import columns, concat, one_hot, ones
from sulq.server import pacing
from sulq.server.pacing import Clock, Machine

PROMISE = Promise(1, "1e-6", 5, neighbours="add-remove")
OLD, YOUNG = count(where=col("age") >= 50), count(where=col("age") < 50)


def individual(data=None, promise=PROMISE, **more):
    return publish(frame(300) if data is None else data, promise=promise, individual=True, **more)


@pytest.fixture
def silent(monkeypatch):
    """Noise of 0: what is stored are the sums themselves."""
    monkeypatch.setattr(flow, "draw_noise", lambda laws: [0] * len(laws))


# --- the promise --------------------------------------------------------------------------------

SMALL = Schema(
    Number("x", -4, 3, step=1), Flag("f"), Category("c", ["a", "b"]), unit="who", max_rows=2
)
QUESTIONS = [
    count(),
    count(where=col("f")),
    total("x"),
    mean("x", where=col("x") >= -1),
    histogram("c", other=True),
    histogram("c", "f"),
    histogram("x", edges=[-4, 0, 3]),
    quantiles("x", [0.5]),
    total(col("x") * col("x"), where=col("c") == "a"),
    outer(columns(["x"]), columns(["x", "f"])),
    outer(one_hot("c"), columns(["x"], centre=[0]), rows=col("f")),
]
ROWS = st.tuples(
    st.sampled_from("pqr"),
    st.sampled_from([None, -4.0, -1.0, 0.0, 2.0, 3.0]),
    st.sampled_from([None, True, False]),
    st.sampled_from([None, "a", "b", "z"]),
)


def sums_of(rows, asked, schema, promise):
    """What each question stored, without noise, and the variances of its coordinates."""
    names = {"who": "string", "x": "float64", "f": "boolean", "c": "string"}
    data = pd.DataFrame(rows, columns=list(names)).astype(names)
    found = []
    with publish(data, schema, promise, individual=True) as db:
        for question, credits in asked:
            db.ask(question, credits=credits)
        for entry in db.ledger.entries():
            if sources_of(entry.noise) is None:
                bound = db.bind(question_of(entry))
                laws = Price(laws_of(entry.noise), (), tree=bound.tree)
                found.append((entry.seq, entry.values, laws.coordinates(bound.cells)))
    return found


def question_of(entry):
    return SumQuery.from_json(json.loads(entry.question))


def loss(one, other):
    """sum |difference|^2 / R over all questions: exactly what mu^2 bounds. V.2"""
    total_loss = Fraction(0)
    for (seq, values, laws), (same, others, _) in zip(one, other, strict=True):
        assert seq == same
        for a, b, law in zip(values, others, laws, strict=True):
            if isinstance(law, DiscreteGaussian):
                total_loss += Fraction(a - b) ** 2 / law.sigma_squared
            else:
                assert a == b
    return total_loss


@pytest.mark.slow
@settings(max_examples=8)
@given(
    st.lists(ROWS, min_size=2, max_size=4),
    st.lists(
        st.tuples(st.sampled_from(range(len(QUESTIONS))), st.sampled_from(["1", "0.7", "1.9"])),
        min_size=2,
        max_size=5,
    ),
    st.booleans(),
)
def test_nobody_moves_the_answers_by_more_than_the_promise(rows, asked, by_person):
    """D and D' differ by one person (or row): with Gaussian noise this sum is the whole loss."""
    schema = SMALL if by_person else Schema(*SMALL.columns)
    questions = [(QUESTIONS[at], Fraction(credits)) for at, credits in asked]
    patch = pytest.MonkeyPatch()
    with patch.context() as context:
        context.setattr(flow, "draw_noise", lambda laws: [0] * len(laws))
        everybody = sums_of(rows, questions, schema, PROMISE)
        cap = calibrate(PROMISE).mu_squared
        gone = sorted({row[0] for row in rows}) if by_person else range(len(rows))
        for out in gone:
            rest = [r for at, r in enumerate(rows) if (r[0] if by_person else at) != out]
            if rest:
                assert loss(everybody, sums_of(rest, questions, schema, PROMISE)) <= cap


def test_the_comparison_catches_a_balance_that_leaves_out_the_question(silent, monkeypatch):
    rows = [("p", 3.0, True, "a"), ("q", 1.0, True, "b")]
    asked = [(count(where=col("x") >= k), Fraction(19, 10)) for k in (-3, -2, -1, 0)]
    schema = Schema(*SMALL.columns)

    def lost():
        return loss(
            sums_of(rows, asked, schema, PROMISE), sums_of(rows[1:], asked, schema, PROMISE)
        )

    cap = calibrate(PROMISE).mu_squared
    assert cap / 2 < lost() <= cap
    # the same of matrices, where both sides' norms count
    pair = columns(["x", "f"], centre=0)
    asked = [
        (outer(pair, concat(ones(), pair), rows=col("x") >= k), Fraction(19, 10))
        for k in (-3, -2, -1, 0)
    ]
    assert cap / 2 < lost() <= cap
    late = lambda self, who, prices: self.spent[who] <= self.cap  # noqa: E731
    monkeypatch.setattr(Balances, "admitted", late)
    assert lost() > cap


# --- the flow -----------------------------------------------------------------------------------


def test_products_of_vectors_are_paid_by_their_norms(silent):
    """Whoever is at the middle adds nothing; a row pays |left|^2 |right|^2 of the largest."""
    data = pd.DataFrame({"x": [-4.0, 3.0, -0.5, None] * 5, "f": [True, False] * 10})
    schema = Schema(Number("x", -4, 3, step=0.5), Flag("f"))
    square = outer(columns(["x"]), columns(["x"]))
    with (
        publish(data, schema, PROMISE, individual=True) as db,
        publish(data, schema, PROMISE) as plain,
    ):
        first, exact = db.ask(square, credits=4), plain.engine.exact_sums(plain.bind(square).sums)
        (entry,) = db.ledger.entries()
        assert list(entry.values) == list(exact)
        spent = db.engine.filters.past.balances.spent / db.engine.cap
        low, high, middle, missing = spent[:4]
        assert low == 0 and high == pytest.approx(4 / 5) and middle == pytest.approx(4 / 5 / 16)
        assert missing == pytest.approx(4 / 5 / 16)  # it takes the middle of the range
        again = outer(columns(["x"]), columns(["x"]), rows=col("f") | ~col("f"))
        db.ask(again, credits=4)
        values = list(db.ledger.entries())[-1].values
        unit = plain.bind(square).terms[0].unit
        assert values[0] < exact[0] - 5 * 0.9 * unit  # those at the end are left out, silently
        assert first is not None


def test_questions_that_do_not_touch_somebody_do_not_spend_theirs(silent):
    data = frame(300)
    old, young = int((data.age >= 50).sum()), int((data.age < 50).sum())
    with individual(data) as db:
        for least in range(50, 55):
            asked = db.ask(count(where=col("age") >= least))
            assert (asked.value, asked.credits) == (int((data.age >= least).sum()), 1)
        left = db.ask(count(where=col("age") >= 45))  # the sixth that some are in
        assert left.value == old + int(data.age.between(45, 49).sum()) - int((data.age >= 54).sum())
        assert db.ask(YOUNG).value == young
        assert db.remaining == 5  # nothing is refused for what people have spent
        assert "balance" in left.note and "balance" in db.quote(OLD).note


def test_a_question_that_everybody_could_not_pay_is_refused_free():
    with individual() as db:
        with pytest.raises(BudgetSpent, match="nobody has more than 5"):
            db.ask(OLD, credits=6)
        with pytest.raises(BudgetSpent):
            db.quote(OLD, credits=6)
        assert db.statement().statement.entries == 0


def test_kinds_of_question_equal_the_plain_table_while_balances_last(silent):
    data = frame(300)
    asked = [
        mean("income", where=col("smoker")),
        histogram("blood", "city", other=True),
        histogram("age", edges=[0, 30, 60, 120]),
        quantiles("age", [0.25, 0.75]),
    ]
    with individual(data, Promise(1, "1e-6", 100, neighbours="add-remove")) as db:
        for question in asked:
            plain = publish(data, promise=Promise(1, "1e-6", 100, neighbours="add-remove"))
            np.testing.assert_array_equal(db.ask(question).value, plain.ask(question).value)
        together = db.plan([OLD, count(where=col("smoker"))]).ask()
        assert [a.value for a in together] == [int((data.age >= 50).sum()), data.smoker.sum()]
        found = db.sql("SELECT blood, COUNT(*), AVG(age) FROM people GROUP BY blood")
        assert [row[0] for row in found.rows][:3] == ["A", "B", "0"]


def test_shares_still_bound_analysts_and_can_be_renewed():
    with individual() as db:
        db.grant("ann", 2)
        ann = db.as_analyst("ann")
        ann.ask(OLD)
        ann.ask(YOUNG)
        assert ann.remaining == 0
        with pytest.raises(BudgetSpent, match="ann"):
            ann.ask(count(where=col("smoker")))
        for again in range(3):
            db.grant("ann", 4)  # nothing of the table's is used up by that
            for least in range(4):
                ann.ask(count(where=col("age") > 4 * again + least))
        with db.reserve(1) as reserved:
            reserved.ask(count(where=col("age") > 60))


def test_slack_is_charged_to_the_table(silent):
    with individual() as db:
        db.ask(OLD)
        (line, *_) = db.statement().statement.accounts
        assert line.spent.credits == 0 and line.spent.delta > 0  # TB.8


def test_the_statement_counts_the_worst_as_spent():
    with individual() as db:
        db.ask(OLD)
        found = db.statement()
        assert found.spent == 5  # who lost how much is secret: everything
        assert "balance of their own" in str(found)


REFUSED = {
    "keys": lambda db: db.keys("job"),
    "top": lambda db: db.top(histogram("blood").query),
    "alert": lambda db: db.alert(OLD, above=10),
    "amend": lambda db: db.amend(promise=Promise(2, "1e-6", 10, neighbours="add-remove")),
    "outside": lambda db: db.charge_outside(1, reason="elsewhere"),
    "sums": lambda db: db.engine.exact_sums(db.bind(OLD).sums),
    "prepare": lambda db: db.engine.prepare(db.bind(OLD).sums),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_the_proof_does_not_cover_is_refused_free(what):
    schema = Schema(Number("age", 0, 120), Category("job"), Category("blood", ["A", "B", "0"]))
    data = frame(50).assign(job="x")
    with publish(data, schema, PROMISE, individual=True) as db:
        with pytest.raises((Refused, InvalidQuery)):
            REFUSED[what](db)
        assert db.statement().statement.entries == 0
        assert db.ask(OLD).credits == 1


def test_promises_and_places_that_are_not_covered_are_refused(tmp_path):
    with pytest.raises(Refused, match="add-remove"):
        individual(promise=Promise(1, "1e-6", 5))
    with pytest.raises(Refused, match="gaussian"):
        individual(promise=Promise(1, neighbours="add-remove"))
    with pytest.raises(InvalidQuery, match="exactly or individual"):
        individual(exactly=Assumptions(1, 1e-3, 0, {"smoker": 0.05}))
    with pytest.raises(Refused, match="a file"):
        individual(ledger="postgresql://nowhere/ledger")
    with individual(ledger=tmp_path / "l"):
        pass
    with pytest.raises(Refused):  # what was published with filters never opens without
        publish(frame(300), promise=PROMISE, ledger=tmp_path / "l")


# --- crashes ------------------------------------------------------------------------------------

SCRIPT = """
import os, sys
from tests.people import frame
from sulq import Database, Promise, col, count
import sulq.kernel.release.release as flow
from tests.people import SCHEMA

where, moment = sys.argv[1:]
db = Database.open(frame(300), SCHEMA, Promise(1, "1e-6", 5, neighbours="add-remove"), where,
                   individual=True, publish=True)
for least in range(50, 54):
    db.ask(count(where=col("age") >= least))
charge, settle, read = db.ledger.charge, db.ledger.settle_all, db.engine._rows.prepare
def after_charge(*named, **terms):
    charge(*named, **terms)
    os._exit(9)
def before_settle(*_):
    os._exit(9)
def reading(program):
    ready = read(program)
    def now():
        os._exit(9)
    return now
if moment == "charged":
    db.ledger.charge = after_charge
elif moment == "reading":
    db.engine._rows.prepare = reading
else:
    db.ledger.settle_all = before_settle
db.ask(count(where=col("age") >= 40), key="k")
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize("moment", ["charged", "reading", "unsettled"])
def test_a_kill_between_charge_and_answer_leaves_everyone_as_charged(moment, tmp_path, silent):
    where = tmp_path / "l"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, str(Path.cwd())])}
    command = [sys.executable, "-c", SCRIPT, str(where), moment]
    assert subprocess.run(command, env=environment, check=False, timeout=120).returncode == 9
    data, asked = frame(300), count(where=col("age") >= 40)
    with individual(data, ledger=where) as db:
        other = db.ask(count(where=col("age") >= 30))  # comes first: finds the charge in its place
        assert other.value == int((data.age >= 30).sum() - (data.age >= 53).sum())
        again = db.ask(asked, key="k")
        assert again.value == int((data.age >= 40).sum())  # all of them, as when it was charged
        assert again.credits == 0
        assert db.ask(asked, key="k").value == again.value
        spent = db.engine.filters.past.balances.spent.copy()
    with individual(data.astype({"age": float})) as calm:  # other data to the register
        for least in (50, 51, 52, 53, 40, 30):
            calm.ask(count(where=col("age") >= least))
        assert (calm.engine.filters.past.balances.spent == spent).all()


def test_a_failed_read_keeps_the_charge_and_a_retry_does_not_charge_twice(silent, monkeypatch):
    data = frame(300)
    with individual(data) as db:
        ready = db.engine._rows.prepare
        broken = lambda program: lambda: 1 / 0  # noqa: E731
        monkeypatch.setattr(db.engine._rows, "prepare", broken)
        with pytest.raises(EngineFailed) as failed:
            db.ask(OLD, key="k")
        assert failed.value.__cause__ is None and failed.value.__context__ is None
        monkeypatch.setattr(db.engine._rows, "prepare", ready)
        assert db.ask(OLD, key="k").value == int((data.age >= 50).sum())
        one = db.engine._calibration.credits and 10**12
        assert sorted(set(db.engine.filters.past.balances.spent.tolist())) == [0, one]


@pytest.mark.parametrize("reverse", [False, True])
def test_reopened_balances_come_from_the_copy_or_from_the_ledger(
    reverse, tmp_path, silent, monkeypatch, state_directory
):
    data, where = frame(300), tmp_path / "l"
    with individual(data, ledger=where) as db:
        for least in range(50, 56):
            db.ask(count(where=col("age") >= least))
        spent = np.sort(db.engine.filters.past.balances.spent)
    (copy,) = state_directory.rglob("balances-*")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    data = data[::-1] if reverse else data  # the same rows, in another order
    steps, step = [], IndividualFilter.step
    monkeypatch.setattr(IndividualFilter, "step", lambda *a: steps.append(a[2].seq) or step(*a))
    with individual(data, ledger=where) as db:
        assert len(steps) == (6 if reverse else 0)  # the copy is of rows in their order
        assert db.ask(count(where=col("age") >= 56)).value == 0
        assert (np.sort(db.engine.filters.past.balances.spent) == spent).all()


@pytest.mark.parametrize("harm", ["cut", "zeroed", "head", "empty", "gone"])
def test_a_copy_that_is_not_whole_is_not_believed(harm, tmp_path, silent, state_directory):
    where = tmp_path / "l"
    with individual(ledger=where) as db:
        for least in range(50, 55):
            db.ask(count(where=col("age") >= least))
    (copy,) = state_directory.rglob("balances-*")
    content = copy.read_bytes()
    head, _, rest = content.partition(b"\n")
    if harm == "gone":
        copy.unlink()
    else:
        copy.write_bytes(
            {
                "cut": content[:-8],
                "zeroed": head + b"\n" + bytes(len(rest)),
                "head": b"[1]\n" + rest,
                "empty": b"",
            }[harm]
        )
    with individual(ledger=where) as db:
        assert db.ask(count(where=col("age") >= 55)).value == 0


def test_many_askers_at_once_each_find_the_balances_of_their_charge(silent):
    data = frame(300)
    with individual(data) as db, ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda k: db.ask(count(where=col("age") >= k)), range(40, 64)))
        values = {e.seq: (e.question, e.values) for e in db.ledger.entries()}
        calm = individual(data)
        for _, (question, stored) in sorted(values.items()):
            calm.ask(SumQuery.from_json(json.loads(question)))
            *_, last = calm.ledger.entries()
            assert last.values == stored


# --- secrecy ------------------------------------------------------------------------------------


def test_the_owner_sees_a_histogram_and_nobody_else_anything(silent):
    data = frame(300)
    with individual(data) as db:
        assert db.engine.histogram(db.ledger) == [300, *[0] * 9]
        for least in range(50, 55):
            db.ask(count(where=col("age") >= least))
        found = db.engine.histogram(db.ledger)
        assert sum(found) == 300 and found[0] == int((data.age < 50).sum())
        assert found[-1] == int((data.age >= 54).sum())
        db.grant("ann", 1)
        assert not hasattr(db.as_analyst("ann"), "engine")
        said = str(db.statement()) + repr(db) + repr(db.engine) + str(db.quote(YOUNG))
        assert str(found[-1]) not in said


def test_a_recovered_ledger_stays_closed(silent, monkeypatch):
    with individual() as db:
        db.ask(OLD)
        db.ledger._table.recovered = True
        with pytest.raises(Refused, match="stays closed"):
            db.ask(YOUNG)


@pytest.mark.slow
def test_the_clock_of_a_server_is_measured_on_such_a_table(monkeypatch: pytest.MonkeyPatch):
    matching = []

    def counted(where: Expression) -> Statistic:
        matching.append(spelling(where))
        return count(where=where)

    monkeypatch.setattr(pacing, "count", counted)
    Machine.measured.cache_clear()
    with individual() as db:
        machine = Machine.measured(True)
        assert Clock.of(db).tick == Clock.of(db, machine=machine).tick
    Machine.measured(False)
    everybody, some = matching  # a row that takes part takes longer: all of them do
    assert everybody == spelling(col("a") < pacing.CELLS)
    assert some == spelling(col("a") < 7)


def test_a_constant_beyond_64_bits_is_read_back_and_closes_nothing():
    """A charge whose question cannot be read again would fail, and every later one with it."""
    db = individual()
    wide = total(col("income").clip(0, Fraction(10**29)))
    assert SumQuery.from_json(json.loads(db.bind(wide).text)) is not None
    first = db.ask(wide, credits=1)
    assert first.receipt is not None
    assert db.ask(count(where=col("income") < 1e29), credits=1).receipt.seq > first.receipt.seq
