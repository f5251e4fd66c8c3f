"""Dwork's paper on sub-linear queries: confidence, safe targets, coins (S0.1 to S0.7).

Each test names its claim. Figures are computed by the package's own laws and accounts.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product
from statistics import NormalDist

import pytest

from sulq import InvalidQuery, Promise
from sulq.beliefs import (
    Observation,
    change_in,
    is_safe,
    largest_move,
    most_changed_set,
    most_moved_prior,
    posterior,
    safe_for_unions,
)
from sulq.beliefs.comparison import published
from sulq.beliefs.confidence import conf, moved, tail
from sulq.beliefs.sizing import sizing
from sulq.kernel.accounting.calibration import calibrate
from sulq.kernel.accounting.gaussian import gaussian_delta, gaussian_mu, tail_delta
from sulq.kernel.accounting.pld import loss_of
from sulq.kernel.noise.laws import CentredBinomial, DiscreteLaplace
from sulq.learn.statistical_query import repetitions

BIT = math.log(2)


def near(value: float, relative: float = 1e-6) -> object:
    return pytest.approx(value, rel=relative)


# --- S0.1: confidence ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "move"), [(1.0, 0.24491866240370913), (BIT, 0.1715728752538099)]
)
def test_s01_a_small_change_of_confidence_is_a_small_change_of_belief(
    change: float, move: float
) -> None:
    assert largest_move(change) == near(move)
    attained = most_moved_prior(change)
    assert moved(attained, change) - attained == near(move)
    priors = [i / 2000 for i in range(1, 2000)]
    assert max(moved(p, change) - p for p in priors) == near(move)
    assert max(p - moved(p, -change) for p in priors) == near(move)  # and downward
    assert move < change / 4


def test_s01_the_denominator_belongs_to_the_same_belief() -> None:
    """One extraction prints 1 - p_0 under p_T; then confidence is no function of belief."""
    before, after = 0.2, 0.6
    assert conf(after) - conf(before) == near(math.log(6))
    assert math.log(after / (1 - before)) - conf(before) == near(math.log(3))


# --- S0.2: every set of values at once ----------------------------------------------------------


def test_s02_twice_is_tight() -> None:
    """p(f) = 1 / (1 + e^delta); all of f up by e^delta, all others down by e^-delta."""
    delta, atoms = 0.3, 10**6
    share = 1 / (1 + math.exp(delta))
    atom, other = share / atoms, (1 - share) / atoms
    singles = (
        conf(atom * math.exp(delta)) - conf(atom),
        conf(other) - conf(other * math.exp(-delta)),
    )
    union = conf(share * math.exp(delta)) - conf(share)
    assert max(singles) == near(0.3000001488851076, 1e-9)
    assert union == near(0.6, 1e-12)
    assert union / max(singles) == near(1.9999990074331087, 1e-9)


def test_s02_the_same_found_among_all_sets() -> None:
    """2000 values have 2^2000 sets; the worst is found, and it is the union of the raised ones."""
    delta, atoms = 0.3, 1000
    share = 1 / (1 + math.exp(delta))
    before = {(up, i): (share if up else 1 - share) / atoms for up in (1, 0) for i in range(atoms)}
    after = {k: p * math.exp(delta if k[0] else -delta) for k, p in before.items()}
    chosen, change = most_changed_set(before, after)
    assert chosen == {(1, i) for i in range(atoms)}
    assert change == near(0.6, 1e-9)
    single = change_in(before, after, {(1, 0)})
    assert single == near(0.300149, 1e-5)
    assert all(is_safe(before, after, single, {k}) for k in [(1, 0), (0, 0), (1, 999)])
    assert not is_safe(before, after, 1.99 * single)
    assert is_safe(before, after, safe_for_unions(single))


@pytest.mark.parametrize("answers", list(product((-2, 1, 4), repeat=2)))
def test_s02_under_a_pure_promise_no_factor_two_is_needed(answers: tuple[int, int]) -> None:
    """Every set is epsilon-safe together: a ratio of averages is at most the largest ratio."""
    law = DiscreteLaplace(Fraction(5, 2))  # two questions of .4
    sums = ({0: 0, 1: 0, 2: 1, 3: 1}, {0: 0, 1: 1, 2: 0, 3: 1})
    before = {0: 0.1, 1: 0.2, 2: 0.3, 3: 0.4}
    seen = [Observation(y, law, s) for y, s in zip(answers, sums, strict=True)]
    after = posterior(before, seen)
    assert is_safe(before, after, 0.8 + 1e-12)


# --- S0.3, S0.4: the printed noise --------------------------------------------------------------


def test_s03_the_logarithmic_formula_is_far_more_than_needed() -> None:
    rows = {row.name: row for row in published(Fraction(1), Fraction(1, 10**6), 1000, 10**6)}
    coins = rows["Dwork's ln^6 n coins, n = 1000000"]
    assert 4 * coins.variance == near(6953470788.096774)
    assert coins.standard_deviation == near(41693.73690405063)
    sampling = math.sqrt(10**6) / 2
    assert sampling == 500
    assert coins.standard_deviation > 80 * sampling
    assert calibrate(Promise(1, "1e-6", 1000)).unit_standard_deviation < sampling / 3
    assert (math.log2(10**6) / math.log(10**6)) ** 6 == near(9.016691975273725)


def test_s03_where_it_would_begin_to_help() -> None:
    """T = sqrt n, delta = 1: R = sqrt(n) ln(n)^6 coins are fewer than n from ln n = 45.9 on."""

    def coins(log_rows: float) -> float:
        rows = round(math.exp(log_rows))
        (row,) = list(published(Fraction(1), Fraction(1, 10**6), math.isqrt(rows), rows))[2:]
        return 4 * row.variance / rows

    border = 45.92380272697372
    assert coins(border) == near(1)
    assert coins(border - 0.01) > 1 > coins(border + 0.01)
    assert math.exp(border) == near(8.799421318731325e19)


def test_s04_moments_of_the_coins() -> None:
    assert CentredBinomial(400).standard_deviation() == 10  # printed: 20
    exact = sum(t * t * CentredBinomial(400).pmf(t) for t in range(-200, 201))
    assert math.sqrt(exact) == near(10, 1e-12)
    with pytest.raises(InvalidQuery, match="half-integers"):
        CentredBinomial(401)


@pytest.mark.slow
def test_s04_large_noise_is_negligible() -> None:
    """Hoeffding: Pr[|E| > sqrt(R) ln^2 n] <= 2 exp(-2 ln^4 n)."""
    log = math.log(1000)
    assert (math.log(2) - 2 * log**4) / math.log(10) == near(-1977.4065617135946)
    coins = CentredBinomial(4096)
    for logs in (0.5, 1, 1.5, 2):  # of ln^2 n, where the exact tail can still be seen
        assert coins.tail(math.floor(64 * logs)) <= 2 * math.exp(-2 * logs**2)
    assert CentredBinomial(400).tail(math.floor(20 * log**2)) == 0  # beyond all coins


# --- S0.5: the exact guarantee of the coins -----------------------------------------------------


def exact_delta(coins: int, epsilon: float) -> float:
    """SF(k*-2) - e^eps SF(k*-1), k* = floor((R+1) e^eps / (1 + e^eps)) + 1. S0.5"""
    law = CentredBinomial(coins)
    odds = math.exp(epsilon)
    first = math.floor((coins + 1) * odds / (1 + odds)) + 1

    def above(k: int) -> float:
        return math.fsum(law.pmf(j - coins // 2) for j in range(k + 1, coins + 1))

    return above(first - 2) - odds * above(first - 1)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.1, 0.0016188882184066736), (0.2, 1.5329531451458052e-05)]
)
def test_s05_one_answer(epsilon: float, delta: float) -> None:
    assert exact_delta(1000, epsilon) == near(delta)
    assert loss_of(CentredBinomial(1000), step=epsilon / 4096).delta(epsilon) == near(delta)


def test_s05_coins_cost_more_than_a_gaussian_of_their_variance() -> None:
    assert gaussian_delta(math.sqrt(4 / 1000), 0.2) == near(1.4876946851305516e-05)
    assert exact_delta(1000, 0.2) > gaussian_delta(math.sqrt(4 / 1000), 0.2)
    assert gaussian_delta(math.sqrt(4 * 10 / 1000), 1) == near(1.7546333318961037e-08)
    many = loss_of(CentredBinomial(1000), fineness=4096).delta(1, 10)
    assert many == near(1.7839844803997985e-08)
    assert many > 1.7546333318961037e-08


def test_s05_two_answers_by_brute_force() -> None:
    law = CentredBinomial(60)
    here = {t: law.pmf(t) for t in range(-30, 31)}
    there = {t: law.pmf(t - 1) for t in here}
    brute = math.fsum(
        max(0.0, here[s] * here[t] - math.exp(0.8) * there[s] * there[t])
        for s, t in product(here, here)
    )
    assert brute == near(0.0028257604359459903, 1e-9)
    ours = loss_of(law, fineness=8192).delta(0.8, 2)
    assert brute <= ours == near(brute, 1e-4)


def test_s05_the_fewest_coins_for_a_usual_promise() -> None:
    law = calibrate(Promise(1, 1e-6, 100, "binomial")).unit_law
    assert law == CentredBinomial(7140)
    assert law.variance() == 1785
    assert loss_of(CentredBinomial(7140)).delta(1, 100) <= 1e-6
    assert loss_of(CentredBinomial(7138)).delta(1, 100) > 1e-6
    gaussian = float(100 / gaussian_mu(1, Fraction(1, 10**6)) ** 2)
    assert gaussian == near(1784.7911717923732)
    printed = 100 * math.log(10**6) ** 6
    assert printed == near(695347078.8096775)


def test_s05_coins_are_never_purely_private() -> None:
    """Their support ends: one outcome in 2^R cannot have come from the neighbour."""
    law = CentredBinomial(20)
    assert loss_of(law).delta(50) >= 2**-20
    after = posterior({0: 0.5, 1: 0.5}, [Observation(-10, law, {0: 0, 1: 1})])
    assert after == {0: 1.0, 1: 0.0}


# --- S0.6, S0.7: what the definition and the theorem say ----------------------------------------


def test_s06_one_side_for_all_is_both_sides_at_twice_the_chance() -> None:
    """conf(not f) = -conf(f): a fall of f is a rise of not f."""
    for p in (0.01, 0.3, 0.9):
        assert conf(1 - p) == near(-conf(p), 1e-12)
    mu, epsilon = 0.5, 1.0
    normal = NormalDist(mu * mu / 2, mu)  # the gain of the true candidate. TB.2
    both = 1 - normal.cdf(epsilon) + normal.cdf(-epsilon)
    assert tail_delta(mu, epsilon) == near(1 - normal.cdf(epsilon), 1e-9)
    assert tail_delta(mu, epsilon) < both <= 2 * tail_delta(mu, epsilon)


def test_s06_negligible_means_faster_than_every_inverse_polynomial() -> None:
    """e^{-ln^2 n} is; 1 / ln n "grows more slowly" as printed, and hides nothing."""
    n = 1e12
    assert all(math.exp(-(math.log(n) ** 2)) < n**-c for c in (1, 5, 20))
    assert 1 / math.log(n) > n**-1


@pytest.mark.parametrize(
    ("queries", "change", "useful"), [(0.9, 0.4, False), (0.5, 0.2, True), (0.9, 0.04, True)]
)
def test_s07_noise_below_the_sampling_error_needs_a_condition_of_its_own(
    queries: float, change: float, useful: bool
) -> None:
    """T = n^c, delta = n^-c' with c' < c/2: noise n^(c/2 + c'), useful below n^(1/2)."""
    assert change < queries / 2

    def noise(rows: int) -> float:
        asked, rise = round(rows**queries), Fraction(rows**-change)
        return next(published(rise, Fraction(1, 10**6), asked, rows)).standard_deviation

    grown = math.log(noise(10**40) / noise(10**20)) / math.log(10**20)
    assert grown == near(queries / 2 + change, 1e-6)
    assert (grown < 0.5) is useful
    if not useful:
        assert grown == near(0.85)


def test_s07_owners_are_told_which_side_of_the_condition_they_are_on() -> None:
    """n = 10^10: T = n^0.9 questions at n^-0.4 drown in noise, n^0.4 at 1 do not."""
    drowned = sizing(Promise("1e-4", "1e-6", 10**9), 10**10)
    assert drowned.standard_error > 10_000 * drowned.sampling_error
    assert not drowned.noise_is_smaller
    clear = sizing(Promise(1, "1e-6", 10**4), 10**10)
    assert clear.sampling_error == 50_000
    assert clear.standard_error < 500
    assert clear.noise_is_smaller


# --- S0.13 to S0.16: what the text says beside its theorem --------------------------------------


def test_s013_a_target_set_is_as_safe_as_its_size_allows() -> None:
    """Definition 1 bounds one target; for |F| targets of n rows the chances add, and no more."""
    promise, targets, rows = Promise(1, "1e-6", 100), 10**3, 10**4
    one, finer = (tail(promise, rise, two_candidates=True) for rise in (1.0, 1.5))
    assert one * targets * rows > 1  # Definition 1 alone says nothing of ten million targets
    assert finer * targets * rows < 0.02  # a chance below 1/poly does
    before = {"a": 0.2, "b": 0.3, "c": 0.5}
    after = {"a": 0.25, "b": 0.28, "c": 0.47}
    safe = [s for s in (["a"], ["b"], ["c"]) if is_safe(before, after, 0.2, s)]
    assert safe == [["b"], ["c"]]  # "a" moved by log 4/3 = 0.288
    assert not is_safe(before, after, 0.2)
    assert is_safe(before, after, 0.29)


def test_s014_confidence_is_the_stronger_measure() -> None:
    """Belief from 10^-6 to 10^-3 moves by a thousandth, confidence by ln 1000; no converse."""
    small, large = 1e-6, 1e-3
    assert conf(large) - conf(small) == near(6.908754779, 1e-8)
    assert large - small < 1e-3
    for change in (0.01, 0.1, 1.0, 6.9):
        assert largest_move(change) <= change / 4
    assert conf(1 - small) - conf(1 - large) == near(conf(large) - conf(small), 1e-9)
    assert conf(1e-12) == near(math.log(1e-12), 1e-9)  # logarithmic in p near 0 ...
    assert conf(1 - 2**-40) == near(40 * BIT, 1e-9)  # ... and in 1/(1-p) near 1


def test_s015_confidence_walks_and_its_steps_add_up() -> None:
    """step_l = conf_l - conf_(l-1): the whole change is their sum, whatever the order."""
    law = CentredBinomial(400)
    prior = {1: 0.3, 0: 0.7}
    answers = [3, -1, 8, 0, 5]
    beliefs = [
        posterior(prior, [Observation(a, law, {0: 0, 1: 1}) for a in answers[:seen]])
        for seen in range(len(answers) + 1)
    ]
    steps = [conf(late[1]) - conf(early[1]) for early, late in pairwise(beliefs)]
    assert math.fsum(steps) == near(conf(beliefs[-1][1]) - conf(0.3), 1e-9)
    for answer, step in zip(answers, steps, strict=True):  # k/(R - k + 1), k coins up
        assert step == near(math.log((200 + answer) / (201 - answer)), 1e-9)
    turned = posterior(prior, [Observation(a, law, {0: 0, 1: 1}) for a in reversed(answers)])
    assert turned[1] == near(beliefs[-1][1], 1e-12)


def test_s016_large_tables_need_no_repetition() -> None:
    """tau = 1/d, d = e^sqrt(ln n) = n^o(1), noise of T = n^0.9 questions: once from 10^9 on."""

    def times(rows: int) -> int:
        noise = next(published(Fraction(1), Fraction(1, 10**6), round(rows**0.9), rows)).variance
        return repetitions(noise, math.exp(-math.sqrt(math.log(rows))), rows, 50, 0.01)

    assert times(10**4) == 9
    assert [times(10**k) for k in (9, 12, 15)] == [1, 1, 1]
