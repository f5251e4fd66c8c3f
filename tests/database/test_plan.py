"""Plans: priced first, charged as a whole, answered in as few passes as may be."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.people import SCHEMA, frame, publish

import sulq.kernel.release.release
from sulq import (
    BudgetSpent,
    Database,
    EngineFailed,
    InvalidQuery,
    Promise,
    Refused,
    cdf,
    col,
    count,
    histogram,
    lit,
    mean,
    outer,
    total,
    variance,
)
from sulq.database.plan import _divided
from sulq.kernel.accounting.loss import CREDIT
from sulq.kernel.accounting.pricing import unit_cost
from sulq.kernel.engines.duckdb.engine import DuckDBEngine
from sulq.kernel.ledger.events import PricedRequest
from sulq.kernel.query.vectors import one_hot
from sulq.kernel.release.release import NoisySums, parted, together

SMOKERS = count(where=col("smoker"))
ALL_KINDS = [
    SMOKERS,
    mean("age"),
    total("income"),
    histogram("blood"),
    variance("age"),
    cdf("age", edges=[0, 18, 65, 120]),
    total("age", where=col("smoker")),
    histogram("blood", "smoker"),
    outer(one_hot("blood"), one_hot("smoker")),
]


@pytest.fixture(scope="module")
def data():
    return frame(500)


# --- prices -------------------------------------------------------------------------------------


def test_credits_are_shared_by_unit_price_so_that_all_have_the_same_noise(data):
    db = publish(data)
    plan = db.plan([SMOKERS, histogram("blood"), mean("age")], credits=40)
    units = [unit_cost(line.bound, db.calibration) for line in plan.lines]
    for line, unit in zip(plan.lines, units, strict=True):
        assert abs(line.credits - 40 * unit / sum(units)) < Fraction(1, 10**6)
    assert 40 - Fraction(1, 10**6) < plan.credits <= 40
    assert plan.lines[0].half_width() == pytest.approx(plan.lines[1].half_width()[0])
    assert db.remaining == 100  # making a plan is free
    assert plan.left_after == 100 - plan.credits
    assert plan.affordable


def test_each_line_is_what_a_quote_says(data):
    db = publish(data)
    for terms in ({"credits": 30}, {"within": 40}, {}):
        questions = [SMOKERS, total("age"), histogram("blood")]
        if "within" in terms:
            questions[1] = count(where=col("age") > 50)
        plan = db.plan(questions, **terms)
        for question, line in zip(questions, plan.lines, strict=True):
            own = {"credits": line.credits} if "credits" in terms else terms
            quote = db.quote(question, **own)
            assert line.credits == quote.credits
            assert np.all(line.half_width() == quote.interval()[1])


def test_weights_and_single_targets(data):
    db = publish(data)
    plan = db.plan([SMOKERS, count(where=col("age") > 50)], credits=40, weights=[1, 3])
    assert [line.credits for line in plan.lines] == [10, 30]
    targets = [20, None]
    plan = db.plan([SMOKERS, count(where=col("age") > 50)], within=targets)
    assert plan.lines[1].credits == 1
    assert plan.lines[0].half_width() <= 20


@given(
    st.fractions(Fraction(1, 10**6), 10**6),
    st.lists(st.fractions(Fraction(1, 10**6), 10**3), min_size=1, max_size=30),
)
def test_parts_never_exceed_the_whole_and_lose_next_to_nothing(credits, weights):
    parts = _divided(credits, {str(place): weight for place, weight in enumerate(weights)})
    whole = sum(parts.values())
    assert whole <= credits
    for place, weight in enumerate(weights):
        wanted = credits * weight / sum(weights)
        assert wanted * (1 - Fraction(1, 2**31)) - Fraction(1, CREDIT) <= parts[str(place)]
        assert (parts[str(place)] * CREDIT).denominator == 1  # a price is exactly that


def test_repeats_are_free_and_what_they_do_not_need_goes_to_the_others(data):
    db = publish(data)
    db.ask(SMOKERS, credits=30)
    plan = db.plan([SMOKERS, count(where=col("age") > 50)], credits=40)
    assert [(line.credits, line.repeat) for line in plan.lines] == [(0, True), (40, False)]
    answers = plan.ask()
    assert [answer.credits for answer in answers] == [0, 40]
    assert db.remaining == 30
    again = db.plan([SMOKERS, count(where=col("age") > 50)], credits=40)
    assert again.credits == 0
    assert [a.value for a in again.ask()] == [a.value for a in answers]


def test_a_colleagues_questions_are_not_seen(data):
    db = publish(data)
    for name in ("ann", "bob"):
        db.grant(name, 30)
    ann, bob = db.as_analyst("ann"), db.as_analyst("bob")
    told = ann.ask(SMOKERS, credits=10)
    plan = bob.plan([SMOKERS, count(where=col("age") > 50)], credits=10)
    assert [(line.credits, line.repeat) for line in plan.lines] == [(5, False), (5, False)]
    answers = plan.ask()
    assert answers[0].value == told.value  # the stored one, at the price agreed
    assert [answer.credits for answer in answers] == [5, 5]
    assert bob.remaining == 20
    assert db.remaining == 45  # shares are kept; what ann had paid for costs bob alone


def test_twice_in_one_plan_is_paid_once_at_the_finer_price(data):
    db = publish(data)
    plan = db.plan([SMOKERS, mean("age"), SMOKERS], within=[60, 5, 30])
    assert [line.repeat for line in plan.lines] == [False, False, True]
    assert plan.lines[0].half_width() <= 30
    first, _, last = plan.ask()
    assert first.value == last.value
    assert (first.credits, last.credits) == (plan.lines[0].credits, 0)
    assert 100 - db.remaining == plan.credits


def test_public_questions_are_exact_and_free_in_a_plan(data):
    db = publish(data)
    plan = db.plan([count(), SMOKERS], credits=10)
    assert [line.credits for line in plan.lines] == [0, 10]
    size, _ = plan.ask()
    assert (size.value, size.credits) == (500, 0)


def test_strata_that_do_not_meet_share_the_price(data):
    db = publish(data)
    cities = [count(where=col("smoker") & (col("city") == name)) for name in ("Oslo", "Paris")]
    plan = db.plan(cities, credits=20)
    assert plan.credits == 10
    plan.ask()
    assert db.remaining == 90


@pytest.mark.parametrize(
    ("questions", "terms", "said"),
    [
        ([], {}, "1 to 1000 questions"),
        (SMOKERS, {}, "1 to 1000 questions"),
        ([SMOKERS], {"credits": 1, "within": 1}, "not both"),
        ([SMOKERS], {"credits": 0}, "above 0"),
        ([SMOKERS], {"credits": "40"}, "number above 0"),
        ([SMOKERS], {"weights": [1]}, "give credits too"),
        ([SMOKERS], {"credits": 1, "weights": [1, 2]}, "one number for each of the 1"),
        ([SMOKERS], {"credits": 1, "weights": [-1]}, "above 0"),
        ([SMOKERS, SMOKERS], {"within": [1]}, "one number for each of the 2"),
        ([SMOKERS], {"confidence": 2}, "between 0 and 1"),
        ([SMOKERS, mean("nobody")], {"credits": 1}, "nobody"),
        ([SMOKERS], {"credits": Fraction(1, 2**70)}, "too few"),
    ],
)
def test_what_is_wrong_is_said_and_costs_nothing(data, questions, terms, said):
    db = publish(data)
    with pytest.raises(InvalidQuery, match=said):
        db.plan(questions, **terms)
    assert db.remaining == 100


def test_a_law_of_one_size_has_unit_prices(data):
    db = publish(data, promise=Promise(1, "1e-6", 20, noise="binomial"))
    plan = db.plan([SMOKERS, count(where=col("age") > 3)])
    assert plan.credits == 2
    assert [answer.credits for answer in plan.ask()] == [1, 1]
    with pytest.raises(InvalidQuery, match="one size"):
        db.plan([SMOKERS, total("age")], credits=4)


def test_a_plan_prints_prices_and_bars(data):
    db = publish(data)
    said = str(db.plan([SMOKERS, histogram("blood")], credits=30))
    assert "COUNT(*) WHERE smoker: 10 credits +-" in said
    assert said.endswith("together 30 credits; left after: 70 credits")
    assert "not affordable" in str(db.plan([SMOKERS], credits=101))


# --- asking -------------------------------------------------------------------------------------


def test_answers_come_in_order_and_near_the_truth():
    data = frame(20_000)
    db = publish(data, promise=Promise(8, "1e-6", 100))
    plan = db.plan(ALL_KINDS, credits=90)
    answers = plan.ask()
    assert [answer.kind for answer in answers] == [line.bound.statistic.kind for line in plan.lines]
    truths = [data.smoker.sum(), data.age.mean(), data.income.sum()]
    for answer, truth in zip(answers, truths, strict=False):
        assert abs(float(answer) - truth) <= 6 * answer.standard_error + 1e-3 * truth
    blood = [(data.blood == name).sum() for name in ("A", "B", "0")]
    assert np.all(np.abs(answers[3].value - blood) <= 6 * answers[3].standard_error)
    both = [[((data.blood == b) & (data.smoker == s)).sum() for s in (False, True)] for b in "AB0"]
    assert np.all(np.abs(answers[7].value - both) <= 6 * answers[7].standard_error)
    assert sum(answer.credits for answer in answers) == plan.credits == 100 - db.remaining
    for answer in answers:
        assert answer.receipt is not None
    again = db.plan(ALL_KINDS, credits=90)  # the whole follows from what is stored
    assert again.credits == 0
    repeated = again.ask()
    for one, other in zip(answers, repeated, strict=True):
        assert np.all(np.abs(one.value - other.value) <= 6 * one.standard_error + 1e-6)
        assert other.credits == 0


def test_one_transaction_or_none(data):
    db = publish(data)
    plan = db.plan([SMOKERS, count(where=col("age") > 50)], credits=40)
    db.ask(count(where=col("age") > 2), credits=70)
    assert not plan.affordable
    with pytest.raises(BudgetSpent, match="left"):
        plan.ask()
    assert db.remaining == 30
    assert db.statement().statement.entries == 1


def test_rows_are_read_once_for_the_same_rows_and_cells(data, monkeypatch):
    db = publish(data)
    read, prepare = [], DuckDBEngine.prepare

    def counted(self, program):
        work = prepare(self, program)
        return lambda: read.append(program) or work()

    monkeypatch.setattr(DuckDBEngine, "prepare", counted)
    asked = [count(where=col("age") > 3), total("income", where=col("age") > 3)]
    asked += [histogram("blood"), total("age"), total("income")]
    db.plan(asked, credits=50).ask()
    assert [len(program.terms) for program in read] == [2, 1, 2]
    db.plan(asked, credits=50).ask()
    assert len(read) == 3  # repeats read nothing


def noisy_sums(db, question):
    bound = db.bind(question)
    cost = db.price(bound, None, 0.95, None, None)
    named = (bound.text, bound.digest, cost.noise)
    return NoisySums(bound, cost, PricedRequest(*named, {}, cost.share))


def test_merged_sums_are_bit_equal_to_separate_ones(data):
    db = publish(data)
    questions = [*ALL_KINDS, total("income", where=col("age") > 3), count(where=col("age") > 3)]
    questions += [histogram("blood", where=col("age") > 3), histogram("smoker", other=True)]
    asked = [noisy_sums(db, question) for question in questions]
    passes = db.reader.passes(asked)
    assert len(passes) < len(asked)
    assert {id(one) for several, _ in passes for one in several} == {id(one) for one in asked}
    for several, read in passes:
        assert read({}) == [db.engine.exact_sums(one.bound.sums) for one in several]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.integers(1, 5))
def test_parting_undoes_the_joining(widths, cells):
    class Wide:
        def __init__(self, width):
            self.terms = [None] * width

    own = [[100 * place + i for i in range(cells * width)] for place, width in enumerate(widths)]
    joined = [
        value
        for cell in range(cells)
        for mine, width in zip(own, widths, strict=True)
        for value in mine[cell * width : (cell + 1) * width]
    ]
    assert parted(joined, [Wide(width) for width in widths]) == own


def test_passes_stay_within_what_one_question_may_be(data, monkeypatch):
    monkeypatch.setattr(sulq.kernel.release.release, "MOST_TERMS", 3)
    db = publish(data)
    asked = [noisy_sums(db, total(col("age") * lit(number))) for number in range(2, 9)]
    assert [len(several) for several in together(asked)] == [3, 3, 1]


def test_every_question_has_draws_of_its_own(data, monkeypatch):
    """Two questions with the same sums, merged into one program, must not share noise."""
    db = publish(data)
    drawn = []
    draw = sulq.kernel.release.release.draw_noise

    def noted(laws):
        drawn.append(draw(laws))
        return drawn[-1]

    monkeypatch.setattr(sulq.kernel.release.release, "draw_noise", noted)
    first, second = db.plan(
        [total("age", where=col("smoker")), total(col("age") * 2, where=col("smoker"))], credits=20
    ).ask()
    assert len(drawn) == 2
    assert 2 * first.value != second.value


def test_charged_before_a_row_is_read_and_the_charge_stands(data, monkeypatch):
    db = publish(data)
    plan = db.plan([SMOKERS, count(where=col("age") > 50)], credits=40)

    def failing(self, program):
        def read():
            assert db.remaining == 60
            raise EngineFailed

        return read

    with monkeypatch.context() as broken:
        broken.setattr(DuckDBEngine, "prepare", failing)
        with pytest.raises(EngineFailed):
            plan.ask(key="k")
    assert db.remaining == 60
    answers = db.plan([SMOKERS, count(where=col("age") > 50)], credits=40).ask(key="k")
    assert [answer.credits for answer in answers] == [0, 0]
    assert db.remaining == 60
    with pytest.raises(Refused, match="another plan"):
        db.plan([SMOKERS], credits=40).ask(key="k")
    with pytest.raises(Refused, match="another plan"):
        db.plan([SMOKERS, count(where=col("age") > 50)], credits=90).ask(key="k")
    with pytest.raises(Refused, match="used for another question or plan"):
        db.ask(SMOKERS, key="k")


def test_a_refusal_of_the_engine_costs_nothing(data, monkeypatch):
    db = publish(data)
    plan = db.plan([SMOKERS, total("age")], credits=40)

    def refusing(self, program):
        raise InvalidQuery("no")

    monkeypatch.setattr(DuckDBEngine, "prepare", refusing)
    with pytest.raises(InvalidQuery):
        plan.ask()
    assert db.remaining == 100


def test_a_changed_file_is_refused_before_the_charge(tmp_path):
    path = tmp_path / "people.parquet"
    frame(200).to_parquet(path)
    with Database.open(path, SCHEMA, Promise(1, "1e-6", 100), ":memory:") as db:
        plan = db.plan([SMOKERS], credits=4)
        frame(300).to_parquet(path)
        with pytest.raises(Refused, match="changed"):
            plan.ask()
        assert db.remaining == 100


def test_prices_and_refusals_are_the_same_on_neighbouring_tables(data):
    """Invariant 2: a plan depends on the question, schema, promise and ledger alone."""
    other = data.copy()
    other.loc[0, ["age", "income", "smoker", "blood"]] = [0, 0.0, True, "B"]
    said = []
    for table in (data, other):
        db = publish(table)
        plan = db.plan(ALL_KINDS, credits=60)
        plan.ask()
        with pytest.raises(BudgetSpent) as refused:
            db.plan([count(where=col("age") > 1)], credits=50).ask()
        said.append((str(plan), str(refused.value), db.remaining))
    assert said[0] == said[1]
