"""What an adversary may believe: closed forms, exact posteriors, sets of values, and the sentence.

Simulated adversaries are in tests/papers/test_bayesian_adversaries.py.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.people import publish

from sulq import InvalidQuery, Promise, col, count, histogram
from sulq.beliefs import (
    Observation,
    change_in,
    conf_bits,
    curve,
    is_safe,
    largest_move,
    most_changed_set,
    most_moved_prior,
    move_of_copies,
    posterior,
    pure_of_semantic,
    safe_for_unions,
    semantic_of_pure,
)
from sulq.beliefs.confidence import believed, conf, moved, percent_up, tail, worst, worst_so_far
from sulq.kernel.accounting.calibration import calibrate, meaning
from sulq.kernel.noise.laws import CentredBinomial, DiscreteLaplace

SHARES = st.floats(1e-6, 1 - 1e-6)


@given(p=SHARES, change=st.floats(-8, 8))
def test_confidence_and_back(p, change):
    assert believed(conf(p)) == pytest.approx(p, rel=1e-9)
    assert abs(moved(p, change) - p) <= largest_move(abs(change)) + 1e-12  # S0.1
    assert conf_bits(p) == pytest.approx(conf(p) / math.log(2))


def test_s01_s04_goldens():
    assert largest_move(1) == pytest.approx(0.2449186624, rel=1e-9)
    assert largest_move(math.log(2)) == pytest.approx(0.1715728753, rel=1e-9)
    prior = most_moved_prior(1)
    assert moved(prior, 1) - prior == pytest.approx(largest_move(1), rel=1e-12)
    assert moved(0.9, math.log(2)) == pytest.approx(18 / 19)  # S4.4, printed .945
    slope = (conf_bits(0.5 + 1e-6) - conf_bits(0.5 - 1e-6)) / 2e-6
    assert slope == pytest.approx(5.770780164, rel=1e-6)


def test_s02_unions_cost_twice_and_no_less():
    """The tight example: all atoms of f rise by e^delta, all others fall."""
    delta, atoms = 0.3, 10**4
    share = 1 / (1 + math.exp(delta))
    inside = {("in", i): share / atoms for i in range(atoms)}
    outside = {("out", i): (1 - share) / atoms for i in range(atoms)}
    before = {**inside, **outside}
    after = {k: p * math.exp(delta if k[0] == "in" else -delta) for k, p in before.items()}
    assert math.fsum(after.values()) == pytest.approx(1)
    one = ("in", 0)
    assert is_safe(before, after, 0.3001, {one})
    union = {k for k in before if k[0] == "in"}
    assert is_safe(before, after, safe_for_unions(0.3001), union)
    assert not is_safe(before, after, 0.599, union)


def test_s23_s24_semantic_both_ways():
    assert semantic_of_pure(1) == pytest.approx(0.2449186624, rel=1e-9)
    assert pure_of_semantic(0.1) == pytest.approx(0.4013413909, rel=1e-9)
    assert pure_of_semantic(semantic_of_pure(0.7)) == pytest.approx(0.7)
    assert move_of_copies(0.1, 100) == pytest.approx(0.9866142982, rel=1e-9)


def test_s24_copies_are_not_hidden():
    """A count over 100 copies of one bit moves a belief far beyond what one record could."""
    law = DiscreteLaplace(Fraction(10))
    seen = Observation(100, law, {0: 0, 1: 100})
    after = posterior({0: 0.5, 1: 0.5}, [seen])
    assert after[1] - 0.5 > semantic_of_pure(0.1)
    assert after[1] - 0.5 <= move_of_copies(0.1, 100)


def test_posterior_is_bayes_in_exact_numbers():
    """Geometric noise with ratio 3/5: two candidates one apart, the likelier one 5/3 as likely."""
    scale = Fraction(1) / Fraction(math.log(5 / 3))
    law = DiscreteLaplace(scale)
    after = posterior({"a": 0.5, "b": 0.5}, [Observation(4, law, {"a": 4, "b": 3})])
    assert after["a"] == pytest.approx(5 / 8, rel=1e-9)
    with pytest.raises(InvalidQuery, match="add up"):
        posterior({"a": 0.5}, [])


@given(prior=SHARES, epsilon=st.sampled_from([0.1, 1, 3]))
def test_pure_promise_bounds_every_posterior(prior, epsilon):
    """One question with the whole promise: no answer takes a belief past the bound."""
    bound = worst(Promise(epsilon), prior)
    law = DiscreteLaplace(Fraction(1) / Fraction(str(epsilon)))
    assert bound.except_for == 0
    for answer in range(-40, 41):
        after = posterior({0: 1 - prior, 1: prior}, [Observation(answer, law, {0: 0, 1: 1})])
        assert after[1] <= bound.posterior + 1e-12
    assert after[1] == pytest.approx(bound.posterior, rel=1e-6)  # and it is reached


def test_goldens_of_a_usual_promise():
    promise = Promise(1, "1e-6", queries=100)
    said = worst(promise, 0.4)
    rho = float(meaning(calibrate(promise)).rho)
    assert said.change == pytest.approx(rho + 2 * math.sqrt(rho * math.log(1e6)), rel=1e-9)
    assert 0.4 < said.posterior < 0.75
    assert "believed 40 %" in str(said)
    assert "everything this database will ever say" in str(said)


def test_what_is_spent_so_far_grows_to_the_promise_and_is_marked():
    promise = Promise(1, "1e-6")
    moves = [worst_so_far(promise, Fraction(c), 0.4).posterior for c in (0, 25, 50, 100)]
    assert moves[0] == 0.4
    assert moves == sorted(moves)
    assert moves[-1] == pytest.approx(worst(promise, 0.4).posterior)
    assert "indicative" in str(worst_so_far(promise, Fraction(25), 0.4))


def test_a_value_under_add_remove_is_two_steps_away():
    promise = Promise(1, neighbours="add-remove")
    assert worst(promise, 0.4).change == 1
    assert worst(promise, 0.4, about="value").change == 2
    gaussian = Promise(1, "1e-6", neighbours="add-remove")
    once, twice = worst(gaussian, 0.4), worst(gaussian, 0.4, about="value")
    assert twice.change > 1.9 * once.change
    with pytest.raises(InvalidQuery, match="presence"):
        worst(Promise(1), 0.4, about="presence")


@pytest.mark.parametrize("noise", [pytest.param("binomial", marks=pytest.mark.slow), "huber"])
def test_coarse_laws_keep_the_chance_that_is_asked_for(noise):
    promise = Promise(1, "1e-6", queries=10, noise=noise)
    rare, common = worst(promise), worst(promise, except_for=1e-3)
    assert rare.except_for == 1e-6
    assert common.except_for == 1e-3
    assert common.change < 1 < rare.change < 1.25
    assert tail(promise, rare.change) <= 1e-6 * 1.05  # the same bound, searched from the other end
    assert tail(promise, common.change) <= 1e-3 * 1.05
    so_far = [worst_so_far(promise, Fraction(c)).change for c in (0, 2, 5, 10)]
    assert so_far == sorted(so_far)
    assert so_far[-1] == rare.change
    assert so_far[1] < 0.7 * rare.change
    with pytest.raises(InvalidQuery, match="two steps"):
        worst(Promise(1, "1e-6", 10, noise, "add-remove"), about="value")


def test_a_stitched_law_has_a_rise_that_is_never_passed():
    promise = Promise(1, "1e-6", queries=1, noise="huber")
    cap = meaning(calibrate(promise)).hard_cap
    said = worst(promise)
    assert cap is not None
    assert (said.change, said.except_for) == (float(cap), 0)
    assert tail(promise, float(cap)) == 0


@given(chance=st.floats(1e-12, 0.5), epsilon=st.floats(0.1, 20))
def test_the_tail_at_the_worst_rise_is_the_chance(chance, epsilon):
    promise = Promise(round(epsilon, 3), "1e-6")
    said = worst(promise, except_for=chance)
    assert tail(promise, said.change) == pytest.approx(chance, rel=1e-6)
    assert tail(promise, said.change, two_candidates=True) < chance + 1e-9  # TB.2, TB.8's slack


def test_tb2_the_tail_of_the_usual_promise():
    """20 times delta at epsilon itself; its slack of delta/1000 is counted."""
    promise = Promise(1, "1e-6")
    assert tail(promise, 1, two_candidates=True) == pytest.approx(2.010004047e-05, rel=2e-3)
    assert tail(promise, 1) == pytest.approx(meaning(calibrate(promise)).tail_any_belief, rel=2e-3)
    assert tail(Promise(1), 1) == 0
    assert tail(Promise(1), 0.999) == 1


def test_presence_drifts_further_than_a_value():
    """Sure of one wrong value or absence, of one whose value is opposite: the mean loss is 3 rho.

    Worlds at -1 (true), +1 and 0: absence gains (3 + 2 N) / 2R on +1, more than one step would.
    """
    promise = Promise(1, "1e-2", neighbours="add-remove")
    chance, R = 0.01, float(calibrate(promise).unit_variance) / 100  # all credits on one answer
    said = worst(promise, except_for=chance)
    rho = 1 / (2 * R)
    reached = 3 * rho + NormalDist().inv_cdf(1 - chance) * math.sqrt(2 * rho)
    assert reached <= said.change
    assert said.change == pytest.approx(3 * rho + 2 * math.sqrt(rho * math.log(100)), rel=1e-9)
    assert reached > 0.8 * said.change  # and not by much


BELIEFS = st.lists(st.floats(1e-3, 1), min_size=2, max_size=7)


@given(weights=BELIEFS, data=st.data())
def test_the_most_changed_set_is_the_most_changed_of_all_sets(weights, data):
    ratios = data.draw(st.lists(st.floats(0.2, 5), min_size=len(weights), max_size=len(weights)))
    total = sum(weights)
    before = {i: w / total for i, w in enumerate(weights)}
    mass = sum(before[i] * r for i, r in enumerate(ratios))
    after = {i: before[i] * r / mass for i, r in enumerate(ratios)}
    chosen, change = most_changed_set(before, after)
    sets = [set(some) for size in range(1, len(weights)) for some in combinations(before, size)]
    assert change == pytest.approx(max(change_in(before, after, some) for some in sets), abs=1e-9)
    assert change_in(before, after, chosen) == pytest.approx(change, abs=1e-9)
    single = max(abs(change_in(before, after, {i})) for i in before)
    assert change <= safe_for_unions(single) + 1e-9  # S0.2
    assert is_safe(before, after, change + 1e-9)
    assert change < 1e-6 or not is_safe(before, after, change * 0.999)


def test_what_cannot_be_asked_of_sets_is_refused():
    certain = {"a": 1.0, "b": 0.0}
    with pytest.raises(InvalidQuery, match="at least two"):
        most_changed_set(certain, certain)
    with pytest.raises(InvalidQuery, match="certain or impossible"):
        change_in(certain, certain, {"a"})


def test_what_an_answer_rules_out_is_an_infinite_change():
    """Coins end: their last outcome cannot have come from the lower count (S0.5)."""
    before = {"low": 0.5, "high": 0.3, "higher": 0.2}
    seen = Observation(11, CentredBinomial(20), {"low": 0, "high": 1, "higher": 2})
    after = posterior(before, [seen])
    assert most_changed_set(before, after) == ({"high", "higher"}, math.inf)
    assert change_in(before, after, {"low"}) == -math.inf
    assert not is_safe(before, after, 1e9)


def test_the_sentence_rounds_its_bound_up():
    said = worst(Promise(1), 0.4)
    assert said.posterior == pytest.approx(0.64440, abs=1e-5)
    assert "believe at most 64.5 %" in str(said)
    assert str(worst(Promise(1), 1e-5)).endswith("believe at most 0.00272 %")
    assert str(worst_so_far(Promise(1), Fraction(0))).endswith("believe at most 40.0 %")


def test_an_answer_explains_itself():
    promise = Promise(1, "1e-6", queries=10)
    with publish(promise=promise) as db:
        answer = db.ask(count(where=col("age") > 30))
        said = answer.explain(promise).splitlines()
        assert said[0] == "asked: COUNT(*) WHERE age > 30"
        low, _ = answer.interval()
        assert said[1].startswith(f"answer: {answer.value:,.6g}; the true one is in [{low:,.6g},")
        assert said[2] == "cost: 1 credit"
        assert said[3].startswith("noise: Gaussian on whole grid steps, added to the sum;")
        assert f"standard error of the answer {answer.standard_error:,.4g}" in said[3]
        assert said[-2] == f"promise: {promise}"
        assert said[-1] == f"so: {worst(promise, 0.4)}"
        many = db.ask(histogram("smoker")).explain(promise)
        assert "2 values of kind" in many
        public = db.ask(count()).explain(promise)
        assert "noise: none: the answer is public" in public


@pytest.mark.parametrize(
    ("promise", "words"),
    [
        (Promise(1), "Laplace (two-sided geometric)"),
        (Promise(1, 1e-6, 10, "huber"), "Gaussian in the middle and Laplace beyond"),
        (Promise(1, 1e-6, 10, "binomial"), "716 fair coins"),
    ],
)
def test_an_answer_names_its_law(promise, words):
    with publish(promise=promise) as db:
        assert words in db.ask(count(where=col("smoker"))).explain(promise)


def test_curve_rises_and_stays_above_the_prior():
    points = curve(Promise(1, "1e-6"), 9)
    assert all(point.posterior > point.prior for point in points)
    assert [point.posterior for point in points] == sorted(point.posterior for point in points)


@pytest.mark.parametrize("prior", [-0.1, 1.1])
def test_wrong_beliefs_are_refused(prior):
    with pytest.raises(InvalidQuery, match="probability"):
        worst(Promise(1), prior)


def test_derived_answers_are_not_counted_again() -> None:
    """A re-reading of what is known moves no belief; counted as fresh it would."""
    law = DiscreteLaplace(Fraction(1))
    seen = Observation(3, law, {"no": 2, "yes": 3})
    again = Observation(3, law, {"no": 2, "yes": 3}, sources=(1,))
    prior = {"no": 0.5, "yes": 0.5}
    once = posterior(prior, [seen])
    assert posterior(prior, [seen, again, again]) == once
    assert posterior(prior, [seen, seen])["yes"] > once["yes"] > 0.5


@given(st.floats(1e-4, 0.9999), st.sampled_from(["0.5", "1", "2"]))
def test_the_first_of_two_figures_is_never_said_above_the_second(prior, epsilon):
    found = worst(Promise(epsilon, "1e-6"), prior)
    assert found.near is not None and found.near[1] > found.except_for
    first, second = float(found.near_percent), float(percent_up(found.posterior))
    assert 100 * found.near[0] * (1 - 1e-9) <= first <= second
    assert found.limits.count("except with a chance below") == 2
    assert found.told(1e-3).except_for == pytest.approx(1.001e-3)
