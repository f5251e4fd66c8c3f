"""Counts under a pure promise: geometric noise on the whole numbers, the least there is. S2.6"""

from __future__ import annotations

import itertools
import json
import math
import signal
from fractions import Fraction
from pathlib import Path

import pandas
import pytest

from sulq import Database, Flag, Number, Promise, Schema, col, count, histogram, mean, outer, total
from sulq.beliefs import Observation, posterior
from sulq.beliefs.sizing import sizing
from sulq.kernel.accounting.calibration import calibrate
from sulq.kernel.accounting.pricing import noise_grid, price, unit_cost
from sulq.kernel.noise.intervals import half_width
from sulq.kernel.noise.laws import DiscreteLaplace
from sulq.kernel.query.sum_query import SumQuery, group
from sulq.kernel.query.vectors import one_hot
from sulq.kernel.schema.bind import bind
from sulq.kernel.schema.columns import Category

SCHEMA = Schema(
    Flag("ill"),
    Number("visits", 0, 3, step=1),
    Number("income", 0, 100),
    Category("town", ["Oslo", "Paris"]),
)
FRAME = pandas.DataFrame(
    {
        "ill": [True, False, True, None],
        "visits": [0, 1, 2, 3],
        "income": [10.0, 20.5, 99.9, None],
        "town": ["Oslo", "Paris", "Rome", "Oslo"],
    }
)
WHOLE = {
    "count": count(where=col("ill")),
    "histogram": histogram("town", other=True),
    "total": total(col("visits")),
    "doubled": total(col("visits") * 2, where=col("ill")),
    "table": outer(one_hot("town"), one_hot("ill")),
}
FINE = {
    "income": total(col("income")),
    "half": total(col("visits") / 2),
}


AROUND = range(-99, 100)


def geometric_error(epsilon: float) -> float:
    return 1 / (math.sqrt(2) * math.sinh(epsilon / 2))


def opened(promise: Promise) -> Database:
    return Database.open(FRAME, SCHEMA, promise, ledger=":memory:")


@pytest.mark.parametrize("epsilon, golden", [(1, 1.356962486), (2, 0.601689979), (4, 0.194963881)])
def test_a_count_has_the_least_noise_there_is(epsilon: int, golden: float) -> None:
    with opened(Promise(epsilon, queries=1)) as db:
        quote = db.quote(WHOLE["count"])
        assert quote.standard_error == pytest.approx(geometric_error(epsilon), rel=1e-12)
        assert quote.standard_error == pytest.approx(golden, rel=1e-8)
        squares = (t * t * math.tanh(epsilon / 2) * math.exp(-epsilon * abs(t)) for t in AROUND)
        assert quote.standard_error == pytest.approx(math.sqrt(math.fsum(squares)), rel=1e-12)
        answer = db.ask(WHOLE["count"])
    assert answer.laws == (DiscreteLaplace(Fraction(1, epsilon)),)
    assert answer.values[0] == answer.value  # nothing is rounded
    assert answer.standard_error == quote.standard_error
    assert answer.credits == 1


@pytest.mark.parametrize("name", WHOLE)
def test_whole_number_sums_are_drawn_on_their_own_lattice(name: str) -> None:
    bound = bind(WHOLE[name], SCHEMA, grid=noise_grid(calibrate(Promise(1))))
    assert all(term.lift == 1 and term.step.denominator == 1 for term in bound.terms)


@pytest.mark.parametrize("name", FINE)
def test_sums_on_finer_lattices_keep_the_fine_grid(name: str) -> None:
    bound = bind(FINE[name], SCHEMA, grid=noise_grid(calibrate(Promise(1))))
    assert all(term.fine_unit >= 2**30 for term in bound.terms)


def test_steps_that_are_whole_by_rounding_alone_are_no_whole_numbers() -> None:
    """A wide range without `step` is rounded to steps of 2^16: that is no lattice of the column."""
    wide = Schema(Number("debt", 0, 2**40))
    (term,) = bind(total(col("debt")), wide, grid=noise_grid(calibrate(Promise(1)))).terms
    assert term.step.denominator == 1 and term.step > 1
    assert term.fine_unit >= 2**30


def test_a_mean_off_the_lattice_keeps_the_fine_grid_for_its_sum_alone() -> None:
    grid = noise_grid(calibrate(Promise(1)))
    counted, summed = bind(mean(col("visits")), SCHEMA, grid=grid).terms
    assert counted.lift == 1
    assert summed.lift == (1 if summed.step.denominator == 1 else summed.lift) >= 1


@pytest.mark.parametrize("name", [*WHOLE, *FINE])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_prices_do_not_depend_on_the_lattice(name: str, neighbours: str) -> None:
    question = (WHOLE | FINE)[name]
    costs = set()
    for lattice in ("whole", "fine"):
        terms = calibrate(Promise(1, queries=7, neighbours=neighbours, lattice=lattice))
        bound = bind(question, SCHEMA, neighbours, grid=noise_grid(terms))
        paid = price(bound, terms, Fraction(3))
        assert not any(loss.delta for loss, _ in paid.losses)  # pure
        costs.add((unit_cost(bound, terms), paid.losses))
    assert len(costs) == 1


VALUES = [
    {"ill": ill, "visits": visits, "town": town}
    for ill in (True, False, None)
    for visits in (0, 3, None)
    for town in ("Oslo", "Paris", "Rome")
]


def steps_of(question: object, row: dict[str, object]) -> list[int]:
    """What one row adds to each whole-number sum, computed by hand."""
    ill, visits, town = row["ill"], row["visits"], row["town"]
    match question:
        case "count":
            return [int(ill is True)]
        case "histogram":
            return [int(town == "Oslo"), int(town == "Paris"), int(town == "Rome")]
        case "total":
            return [visits or 0]  # type: ignore[list-item]
        case "doubled":
            return [(visits or 0) if ill else 0]  # type: ignore[list-item]
    return [int(town == one and ill is two) for one in ("Oslo", "Paris") for two in (False, True)]


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_every_pair_of_neighbours_loses_at_most_what_is_charged(name: str, neighbours: str) -> None:
    """sum |shift| / scale <= epsilon x credits charged / credits, in fractions, and is reached.

    The law of an answer on table x at y is prod tanh(1/2b) exp(-|y - q(x)| / b), so the largest
    log-ratio over all y is sum |q(x) - q(x')| / b.
    """
    promise = Promise(Fraction(3, 2), queries=5, neighbours=neighbours)
    terms = calibrate(promise)
    bound = bind(WHOLE[name], SCHEMA, neighbours, grid=noise_grid(terms))
    for intensity in (Fraction(1), Fraction(7, 3)):
        paid = price(bound, terms, intensity)
        (law,) = set(paid.laws)
        assert isinstance(law, DiscreteLaplace)
        allowed = promise.epsilon * paid.worst.credits_fraction / promise.credits
        worst = Fraction(0)
        absent = [0] * len(steps_of(name, VALUES[0]))
        others = [absent] if neighbours == "add-remove" else None
        for row in VALUES:
            here = steps_of(name, row)
            for there in others or [steps_of(name, other) for other in VALUES]:
                shift = sum(abs(a - b) for a, b in zip(here, there, strict=True))
                worst = max(worst, Fraction(shift) / law.scale)
        assert worst <= allowed
        assert allowed - worst < Fraction(1, 2**60)  # prices are rounded up to 2^-64 credit


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), 1, 4, 20])
def test_an_interval_is_the_laws_own(epsilon: Fraction | int) -> None:
    """The smallest whole number of rows that covers, by the exact law; nothing is added."""
    with opened(Promise(epsilon, queries=1)) as db:
        answer = db.ask(count(where=col("visits") >= 1))
    law = DiscreteLaplace(1 / Fraction(epsilon))
    for confidence in (0.5, 0.9, 0.95, 0.999):
        half = law.half_width(confidence)
        inside = math.fsum(law.pmf(t) for t in range(-half, half + 1))
        assert inside >= confidence * (1 - 1e-9)
        assert half == 0 or inside - 2 * law.pmf(half) < confidence
        near = min(max(answer.value, 0), 4)  # four rows
        assert answer.interval(confidence) == (max(near - half, 0), min(near + half, 4))


@pytest.mark.parametrize(
    "promise",
    [
        Promise(1, queries=1),
        Promise(1, queries=10),
        Promise(4, queries=3),
        Promise(1, queries=10, lattice="fine"),
        Promise(1, "1e-6", queries=10),
        Promise(1, "1e-6", queries=10, noise="binomial"),
        Promise(1, "1e-6", queries=10, noise="huber"),
    ],
    ids=str,
)
def test_the_bar_an_owner_is_told_is_that_of_a_count(promise: Promise) -> None:
    """1.96 standard deviations of Laplace noise hold 94 % of the time, on whole numbers 93 %."""
    calibration = calibrate(promise)
    with opened(promise) as db:
        quoted = db.quote(WHOLE["count"]).interval(0.95)[1]
        error = db.quote(WHOLE["count"]).standard_error
        assert calibration.unit_standard_deviation == pytest.approx(error, rel=1e-6)
        if calibration.unit_law is None:
            finer = db.quote(WHOLE["count"], credits=3).interval(0.95)[1]
            assert calibration.count_bar(Fraction(3)) == pytest.approx(finer, rel=1e-6)
    assert calibration.unit_bar == pytest.approx(quoted, rel=1e-6)
    assert sizing(promise, 1000).bar == calibration.unit_bar


@pytest.mark.parametrize("within", [0.4, 1, 2.5, 30])
def test_a_wished_bar_takes_the_least_credits(within: float) -> None:
    with opened(Promise(1, queries=10)) as db:
        quote = db.quote(WHOLE["count"], within=within)
        assert quote.interval(0.95)[1] <= within
        less = db.quote(WHOLE["count"], credits=quote.credits * Fraction(999, 1000))
        assert less.interval(0.95)[1] > within


def test_a_wished_bar_in_sql_is_met() -> None:
    with opened(Promise(1, queries=10)) as db:
        quote = db.quote_sql("SELECT COUNT(*) AS n FROM people WHERE ill WITHIN 2 CONFIDENCE 95")
        law = DiscreteLaplace(10 / quote.credits)
        assert law.half_width(0.95) == 2
        assert DiscreteLaplace(10 / (quote.credits * Fraction(99, 100))).half_width(0.95) == 3


def test_beliefs_use_the_law_that_is_drawn() -> None:
    with opened(Promise(1, queries=1)) as db:
        answer = db.ask(count(where=col("ill")))
    seen = Observation(answer.values[0], answer.laws[0], {True: 2, False: 1})
    after = posterior({True: 0.5, False: 0.5}, [seen])
    odds = math.exp(abs(answer.value - 1) - abs(answer.value - 2))
    assert after[True] == pytest.approx(odds / (1 + odds), rel=1e-12)


def test_a_union_of_counts_is_read_by_the_exact_law_of_its_noise() -> None:
    """Two draws at epsilon 2 each: P(|N + M| <= h) by convolution."""
    with opened(Promise(8, queries=4)) as db:
        for town in ("Oslo", "Paris"):
            db.ask(count(where=col("town") == town))
        both = db.ask(count(where=col("town").isin(["Oslo", "Paris"])), credits=Fraction(1, 4))
    assert both.credits == 0
    law = DiscreteLaplace(Fraction(1, 2))
    spread = range(-60, 61)
    chances: dict[int, float] = {}
    for one, two in itertools.product(spread, spread):
        chances[one + two] = chances.get(one + two, 0.0) + law.pmf(one) * law.pmf(two)
    low, high = both.interval(0.95)
    half = next(h for h in range(100) if sum(p for t, p in chances.items() if abs(t) <= h) >= 0.95)
    assert high - both.value >= half or high == 4
    assert both.standard_error == pytest.approx(math.sqrt(2) * law.standard_deviation())
    assert high - low <= 2 * (half + 1)


def test_a_table_keeps_the_lattice_it_was_published_with(tmp_path: Path) -> None:
    """A ledger from before: its promise says nothing of a lattice, and its answers are found."""
    FRAME.to_parquet(tmp_path / "people.parquet")
    where = (tmp_path / "people.parquet", SCHEMA)
    book = tmp_path / "people.ledger"
    question = count(where=col("ill"))
    before = Promise(1, queries=10, lattice="fine")
    assert "lattice" not in before.to_json()
    with Database.open(*where, before, ledger=book, publish=True) as db:
        first = db.ask(question)
        assert first.laws == (DiscreteLaplace(Fraction(10) * 2**30),)
    with Database.open(*where, Promise(1, queries=10), ledger=book) as db:
        assert db.promise.lattice == "fine"
        again = db.ask(question)
        assert (again.value, again.credits) == (first.value, 0)
        assert db.ask(count(where=col("visits") >= 2)).laws == first.laws
        assert "lattice" not in json.loads(db.ledger.header.facts["promise"])


@pytest.mark.parametrize("epsilon, golden", [(1, 1.440954857), (2, 0.747424086), (4, 0.378159358)])
def test_on_an_old_lattice_the_error_is_that_of_the_number_told(
    epsilon: int, golden: float
) -> None:
    """A count is Laplace on a fine grid there, told rounded: P(|round X| > k) = e^-eps(k + 1/2)."""
    beyond = [math.exp(-epsilon * (k + 0.5)) for k in range(200)]
    squares = (k * k * (beyond[k - 1] - beyond[k]) for k in range(1, 200))
    exact = math.sqrt(math.fsum(squares))
    assert exact == pytest.approx(golden, rel=1e-8)
    with opened(Promise(2 * epsilon, queries=2, lattice="fine")) as db:
        assert db.quote(WHOLE["count"]).standard_error == pytest.approx(exact, rel=1e-9)
        answer = db.ask(WHOLE["count"])
        assert isinstance(answer.value, int)
        assert answer.standard_error == pytest.approx(exact, rel=1e-9)
        found = db.sql("SELECT COUNT(*) AS n, 2 * COUNT(*) AS twice FROM people WHERE ill")
        (told,), (twice,) = found.column("n"), found.column("twice")
        assert told.standard_error == pytest.approx(exact, rel=1e-9)
        # what is made of a count is not rounded, and neither is a total
        assert twice.standard_error == pytest.approx(2 * math.sqrt(2) / epsilon, rel=1e-9)
        assert db.quote(WHOLE["total"]).standard_error == pytest.approx(
            3 * math.sqrt(2) / epsilon, rel=1e-9
        )


def test_counts_on_an_old_lattice_are_compared_by_what_was_drawn() -> None:
    with opened(Promise(2, queries=2, lattice="fine")) as db:
        one, two = db.ask(WHOLE["count"]), db.ask(count(where=col("visits") >= 2))
    found = one.compare(two, 0.9)
    half = half_width(tuple((1 / 2**30, law) for law in (*one.laws, *two.laws)), 0.9)
    assert found.interval == pytest.approx((found.difference - half, found.difference + half))


def test_a_new_table_says_which_lattice_it_has(tmp_path: Path) -> None:
    book = tmp_path / "people.ledger"
    FRAME.to_parquet(tmp_path / "people.parquet")
    with Database.open(
        tmp_path / "people.parquet", SCHEMA, Promise(1), ledger=book, publish=True
    ) as db:
        assert json.loads(db.ledger.header.facts["promise"])["lattice"] == "whole"
        assert Promise.from_json(db.promise.to_json()) == db.promise


def test_other_noise_has_no_whole_lattice() -> None:
    assert Promise(1, "1e-6").lattice == "fine"
    with pytest.raises(Exception, match="leave it out"):
        Promise(1, "1e-6", lattice="whole")


def test_a_cumulative_count_is_covered_by_the_exact_law() -> None:
    """Sums of k geometric draws, k = 1 to 40: P(|sum| <= half-width) >= 95 % by convolution."""
    from sulq.answers.error_bars import running_half_widths

    law = DiscreteLaplace(Fraction(1, 3))  # coarse: most draws are 0
    term = bind(count(), SCHEMA, "add-remove").terms[0]
    term = type(term)(term.value, Fraction(1), 1, 1, term.middle, term.low, term.high)
    halves = running_half_widths(term, law, 41, 0.95)
    chances = {0: 1.0}
    for number in range(1, 41):
        wider: dict[int, float] = {}
        for (at, p), t in itertools.product(chances.items(), range(-12, 13)):
            wider[at + t] = wider.get(at + t, 0.0) + p * law.pmf(t)
        chances = {at: p for at, p in wider.items() if p > 1e-15}
        inside = math.fsum(p for at, p in chances.items() if abs(at) <= halves[number])
        assert inside >= 0.95, number


def test_a_question_of_several_whole_sums_is_one_vector() -> None:
    grid = noise_grid(calibrate(Promise(1)))
    asked = SumQuery((col("visits"), col("visits") * 3), groups=(group("town"),))
    steps = [term.step * term.lift for term in bind(asked, SCHEMA, grid=grid).terms]
    assert all(step.denominator == 1 for step in steps)


def test_noise_too_small_for_a_float_is_averaged_like_none() -> None:
    """At epsilon 900 the variance of a count underflows: nothing divides by it."""
    rest = count(where=col("ill") | (col("town") == "Oslo"))
    with opened(Promise(1000, credits=1000)) as db:
        for credits in (5, 900):
            db.ask(count(where=col("ill")), credits=credits)
        assert db.ask(rest, credits=1).credits <= 1
        assert db.ask(count(where=col("ill")), credits=2).credits == 0


@pytest.mark.parametrize("credits", [1, 60, 10**4, 10**6, 10**9])
def test_a_quote_of_a_matrix_ends_however_little_noise_is_asked_for(credits: int) -> None:
    """The mean of two draws that a float takes for 0 has a bar, and the search for it an end."""

    def too_long(*_: object) -> None:
        raise TimeoutError("a free quote does not end")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(60)
    try:
        quote = opened(Promise(1, queries=60)).quote(
            outer(one_hot("town"), one_hot("town")), credits=credits
        )
        assert float(quote.interval()[1].max()) >= 0
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
