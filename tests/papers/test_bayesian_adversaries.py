"""Adversaries who know all other rows and apply Bayes' rule, against the closed forms.

They hold two-point and mixture beliefs, ask T questions, choose each by what they have seen, stop
when they are ahead, and spend more where it pays. Noise is drawn from the package's own laws on
whole grid steps, by inversion of their log_pmf. Every test that draws lots rejects a correct
program with probability below 1e-6 (exact binomial tails), and shows that its bound is reached
within a stated factor. Claims: S4.1, S0.5, S2.4, S4.14, TB.2, G.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import pyarrow
import pytest
from numpy.typing import NDArray
from scipy.stats import binom
from tests.people import publish

from sulq import Number, Promise, Schema, col, count
from sulq.beliefs import Observation, most_changed_set, posterior
from sulq.beliefs.confidence import conf, tail, worst
from sulq.kernel.accounting.calibration import calibrate
from sulq.kernel.noise.laws import DiscreteGaussian, DiscreteLaplace, Law

ALARM = 1e-6
GRID = 4
"""Grid steps in a unit: a mixture's values are quarters."""

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Strategy = Callable[[Floats, Floats], Whole]
"""(beliefs as logs, gain so far) -> what the true sum would be under each candidate."""


@dataclass(frozen=True)
class Table:
    """A law as a table of logs, to look up and to draw from."""

    law: Law
    reach: int

    @cached_property
    def logs(self) -> Floats:
        return np.array([self.law.log_pmf(t) for t in range(-self.reach, self.reach + 1)])

    def draw(self, random: np.random.Generator, size: int) -> Whole:
        steps = np.cumsum(np.exp(self.logs))
        assert steps[-1] == pytest.approx(1, abs=1e-9)
        found = np.searchsorted(steps, random.random(size) * steps[-1], side="right")
        return found.astype(np.int64) - self.reach

    def look_up(self, t: Whole) -> Floats:
        inside = np.abs(t) <= self.reach
        return np.where(
            inside, self.logs[np.clip(t, -self.reach, self.reach) + self.reach], -np.inf
        )


def unit_table(promise: Promise, grid: int, credits: int = 1) -> Table:
    """The noise of a question that costs so many credits."""
    calibration = calibrate(promise)
    if promise.noise == "gaussian":
        squared = calibration.unit_variance * grid**2 / credits
        return Table(DiscreteGaussian(squared), math.ceil(12 * math.sqrt(squared)) + grid)
    if promise.noise == "laplace":
        scale = calibration.unit_scale * grid / credits
        return Table(DiscreteLaplace(scale), math.ceil(40 * scale))
    law = calibration.unit_law
    assert law is not None
    return Table(law, math.ceil(40 * law.standard_deviation()))


@dataclass(frozen=True)
class Belief:
    """Candidates for the hidden value in grid steps, their chances, and which are the target."""

    values: tuple[int, ...]
    chances: tuple[float, ...]
    target: tuple[bool, ...]

    @property
    def prior(self) -> float:
        return math.fsum(p for p, hit in zip(self.chances, self.target, strict=True) if hit)

    def gain(self, logs: Floats) -> Floats:
        """Rise of the target's confidence, given unnormalised beliefs as logs."""
        hit = np.array(self.target)
        odds = np.logaddexp.reduce(logs[:, hit], axis=1) - np.logaddexp.reduce(
            logs[:, ~hit], axis=1
        )
        return np.asarray(odds - conf(self.prior))


TWO_POINTS = Belief((0, GRID), (0.6, 0.4), (False, True))
MIXTURE = Belief(
    tuple(range(GRID + 1)), (0.3, 0.1, 0.1, 0.1, 0.4), (False, False, False, False, True)
)
SPREAD = Belief(
    tuple(range(GRID + 1)), (0.2, 0.25, 0.15, 0.3, 0.1), (True, False, False, True, True)
)


# --- strategies ---------------------------------------------------------------------------------


def values_of(belief: Belief) -> Whole:
    return np.array(belief.values, dtype=np.int64)


def fixed(belief: Belief) -> Strategy:
    """Always the value itself."""
    return lambda logs, _: np.tile(values_of(belief), (len(logs), 1))


def mirrored(belief: Belief) -> Strategy:
    """The value, or one minus it, whichever the last answers did not favour."""
    values = values_of(belief)
    return lambda logs, gain: np.where(gain[:, None] > 0, GRID - values, values)


def splitting(belief: Belief) -> Strategy:
    """Is it one of the likelier half of the values? Another question after every answer."""

    def ask(logs: Floats, _: Floats) -> Whole:
        order = np.argsort(np.argsort(-logs, axis=1), axis=1)
        return np.where(order < (len(belief.values) + 1) // 2, GRID, 0)

    return ask


def stopping(belief: Belief, enough: float) -> Strategy:
    """Ahead by `enough`, it asks what tells nothing: what is won is kept."""
    values = values_of(belief)
    return lambda logs, gain: np.where(gain[:, None] > enough, 0, values)


def play(
    belief: Belief,
    strategy: Strategy,
    table: Table,
    questions: int,
    trials: int,
    truth: int | None,
    seed: int = 5,
) -> Floats:
    """The gains of many adversaries; truth is a candidate's place, or drawn given the target."""
    random = np.random.default_rng(seed)
    if truth is None:
        hit = np.where(belief.target, belief.chances, 0.0)
        places = random.choice(len(hit), size=trials, p=hit / hit.sum())
    else:
        places = np.full(trials, truth)
    logs = np.tile(np.log(belief.chances), (trials, 1))
    for _ in range(questions):
        sums = strategy(logs, belief.gain(logs))
        answers = sums[np.arange(trials), places] + table.draw(random, trials)
        logs = logs + table.look_up(answers[:, None] - sums)
    return belief.gain(logs)


def assert_rare(passed: int, trials: int, chance: float) -> None:
    """So many are to be expected at this chance, or fewer."""
    assert binom.sf(passed - 1, trials, chance) > ALARM, f"{passed} of {trials} at {chance}"


def assert_as_often(passed: int, trials: int, chance: float) -> None:
    """Neither more nor fewer than at this chance."""
    ends = binom.sf(passed - 1, trials, chance), binom.cdf(passed, trials, chance)
    assert min(ends) > ALARM / 2, f"{passed} of {trials} at {chance}"


# --- Gaussian: any beliefs, any world, any strategy ---------------------------------------------

PROMISE = Promise(1, Fraction(1, 100), queries=20)
CHANCE = 0.01
TRIALS = 30_000

STRATEGIES: dict[str, Callable[[Belief], Strategy]] = {
    "fixed": fixed,
    "mirrored": mirrored,
    "splitting": splitting,
    "stopping": lambda belief: stopping(belief, worst(PROMISE, except_for=CHANCE).change),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("belief", [TWO_POINTS, MIXTURE, SPREAD], ids=["two", "mixture", "spread"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_gaussian_promise_holds_in_every_world(belief: Belief, strategy: str) -> None:
    """Whatever the true value is, target or not: confidence in the target passes it rarely."""
    bound = worst(PROMISE, except_for=CHANCE).change
    table = unit_table(PROMISE, GRID)
    for truth in range(len(belief.values)):
        gains = play(belief, STRATEGIES[strategy](belief), table, 20, TRIALS, truth, seed=truth)
        assert_rare(int((gains > bound).sum()), TRIALS, CHANCE)


@pytest.mark.parametrize("questions", [1, 5, 20])
@pytest.mark.parametrize("chance", [0.1, 0.01])
def test_gaussian_bound_is_within_reach(questions: int, chance: float) -> None:
    """Two candidates, the exact law of the T-fold sum: passed a tenth as often as allowed.

    And what is reached at that chance is at least .6 of the bound, for every T.
    """
    promise = Promise(1, Fraction(1, 100), queries=questions)
    bound = worst(promise, except_for=chance).change
    table = unit_table(promise, GRID)
    assert isinstance(table.law, DiscreteGaussian)
    squared = float(table.law.sigma_squared)
    one = np.exp(table.logs)
    sums = one
    for _ in range(questions - 1):
        sums = np.convolve(sums, one)
    reach = len(sums) // 2
    gains = (GRID * np.arange(-reach, reach + 1) + questions * GRID**2 / 2) / squared
    exact = float(sums[gains > bound].sum())
    assert chance / 10 < exact < chance
    beyond = np.cumsum(sums[::-1])[::-1]
    reached = float(gains[beyond >= chance][-1])
    assert 0.6 * bound < reached < bound
    played = play(TWO_POINTS, fixed(TWO_POINTS), table, questions, TRIALS, truth=1)
    assert_as_often(int((played > bound).sum()), TRIALS, exact)


@pytest.mark.parametrize("chance", [0.1, 1e-2, 1e-4, 1e-6])
def test_tb2_the_tail_for_two_candidates_is_exact_on_a_fine_grid(chance: float) -> None:
    """One answer for all credits, in steps of 2^-20: the law drawn meets the closed form."""
    promise, grid = Promise(1, Fraction(1, 10**6), queries=1), 2**20
    bound = worst(promise, except_for=chance).change
    squared = calibrate(promise).unit_variance * grid**2
    last = math.floor((Fraction(bound) * squared - Fraction(grid**2, 2)) / grid)  # gain <= bound
    exact = DiscreteGaussian(squared).tail(last) / 2
    slack = float(calibrate(promise).slack_cap)
    assert exact <= tail(promise, bound, two_candidates=True) <= exact * (1 + 1e-4) + slack
    assert chance / 15 < exact < chance  # the bound for any beliefs is that near


def test_stopping_pays_but_not_too_much() -> None:
    """Who stops when ahead is ahead more often than who asks on, and still within the bound."""
    bound = worst(PROMISE, except_for=CHANCE).change
    table = unit_table(PROMISE, GRID)
    patient, stopped = (
        int((play(TWO_POINTS, strategy, table, 20, 100_000, truth=1) > bound).sum())
        for strategy in (fixed(TWO_POINTS), stopping(TWO_POINTS, bound))
    )
    assert stopped > 1.2 * patient
    assert_rare(stopped, 100_000, CHANCE)


def test_spending_where_it_pays_stays_within_the_bound() -> None:
    """Behind: one credit at a time; ahead: all that is left at once. The filter holds (G.1)."""
    bound, credits = worst(PROMISE, except_for=CHANCE).change, 20
    random = np.random.default_rng(11)
    gains, left = np.zeros(TRIALS), np.full(TRIALS, credits)
    tables = {k: unit_table(PROMISE, GRID, k) for k in range(1, credits + 1)}
    while (left > 0).any():
        price = np.where(gains > bound / 2, left, np.minimum(left, 1))
        for k in np.unique(price[left > 0]):
            who = np.flatnonzero((price == k) & (left > 0))
            noise = tables[int(k)].draw(random, len(who))
            gains[who] += tables[int(k)].look_up(noise) - tables[int(k)].look_up(noise + GRID)
        left = left - price
    assert_rare(int((gains > bound).sum()), TRIALS, CHANCE)
    assert (gains > bound).mean() > CHANCE / 20


def test_a_broken_promise_would_be_noticed() -> None:
    """Half the variance, or twice the questions: the same test fails."""
    bound = worst(PROMISE, except_for=CHANCE).change
    table = unit_table(PROMISE, GRID, 2)
    gains = play(TWO_POINTS, fixed(TWO_POINTS), table, 20, TRIALS, truth=1)
    with pytest.raises(AssertionError, match="of 30000"):
        assert_rare(int((gains > bound).sum()), TRIALS, CHANCE)


def test_presence_needs_its_own_drift() -> None:
    """Absent, or present with a value; the truth is the opposite value, thought next to impossible.

    Confidence in absence passes rho + 2 sqrt(rho l) too often, and keeps 3 rho + 2 sqrt(rho l).
    """
    promise = Promise(6, Fraction(1, 100), queries=4, neighbours="add-remove")
    belief = Belief((0, GRID, -GRID), (0.4, 0.6 - 1e-12, 1e-12), (True, False, False))
    bound = worst(promise, except_for=CHANCE).change
    rho = float(calibrate(promise).mu_squared or 0) / 2
    gains = play(belief, fixed(belief), unit_table(promise, GRID), 4, TRIALS, truth=2)
    naive = rho + 2 * math.sqrt(rho * math.log(1 / CHANCE))
    with pytest.raises(AssertionError, match="of 30000"):
        assert_rare(int((gains > naive).sum()), TRIALS, CHANCE)
    assert_rare(int((gains > bound).sum()), TRIALS, CHANCE)
    assert (gains > bound).mean() > CHANCE / 20


# --- pure: no transcript at all passes it -------------------------------------------------------


@pytest.mark.parametrize("belief", [TWO_POINTS, MIXTURE, SPREAD], ids=["two", "mixture", "spread"])
@pytest.mark.parametrize("strategy", [fixed, mirrored, splitting])
def test_pure_promise_is_never_passed(
    belief: Belief, strategy: Callable[[Belief], Strategy]
) -> None:
    promise = Promise(1, queries=5)
    said = worst(promise)
    assert (said.change, said.except_for) == (1, 0)
    gains = play(belief, strategy(belief), unit_table(promise, GRID), 5, 20_000, truth=None)
    assert float(np.abs(gains).max()) <= 1 + 1e-9


def test_pure_promise_is_reached() -> None:
    """All five answers at or above the true count: with chance (1 + a)^-5 exactly."""
    promise = Promise(1, queries=5)
    belief = Belief((0, 1), (0.6, 0.4), (False, True))
    gains = play(belief, fixed(belief), unit_table(promise, 1), 5, TRIALS, truth=1)
    reached = int((gains >= 1 - 1e-9).sum())
    assert_as_often(reached, TRIALS, (1 + math.exp(-0.2)) ** -5)


# --- coarse laws: fixed T, the world as the adversary's own belief has it -----------------------

BITS = Belief((0, 1, 2, 3), (0.3, 0.2, 0.1, 0.4), (False, False, True, True))
PAIR = Belief((0, 1), (0.6, 0.4), (False, True))


def threshold(belief: Belief) -> Strategy:
    """Is it at least c? with c moved on after every answer; counts only."""
    values = values_of(belief)

    def ask(logs: Floats, gain: Floats) -> Whole:
        cut = np.where(gain > 0, max(1, len(values) // 2), len(values) - 1)
        return (values[None, :] >= cut[:, None]).astype(np.int64)

    return ask


@pytest.mark.sample(2)
@pytest.mark.parametrize("noise", ["binomial", "huber"])
@pytest.mark.parametrize("belief", [PAIR, BITS], ids=["two", "mixture"])
def test_coarse_laws_keep_their_tail(noise: str, belief: Belief) -> None:
    """10 questions at (1, 1e-2): passed rarely; by two candidates at least a tenth as often."""
    promise = Promise(1, Fraction(1, 100), queries=10, noise=noise)
    said = worst(promise, except_for=CHANCE)
    table = unit_table(promise, 1)
    strategy = fixed(belief) if belief is PAIR else threshold(belief)
    gains = play(belief, strategy, table, 10, TRIALS, truth=None)
    passed = int((gains > said.change).sum())
    assert_rare(passed, TRIALS, CHANCE)
    if belief is PAIR:
        assert passed > TRIALS * CHANCE / 10


# --- the same by the package's own Bayes' rule, and through a real table ------------------------


def test_the_players_use_the_packages_bayes_rule() -> None:
    table = unit_table(PROMISE, GRID)
    answers = (3, -7, 20, 1)
    logs = np.log(MIXTURE.chances)[None, :]
    seen = []
    for answer in answers:
        sums = splitting(MIXTURE)(logs, MIXTURE.gain(logs))[0]
        logs = logs + table.look_up(answer - sums)[None, :]
        seen.append(Observation(answer, table.law, dict(enumerate(sums.tolist()))))
    ours = posterior(dict(enumerate(MIXTURE.chances)), seen)
    theirs = np.exp(logs[0] - np.logaddexp.reduce(logs[0]))
    assert list(ours.values()) == pytest.approx(theirs.tolist(), rel=1e-9)


def above(law: Law, h: int) -> float:
    """P(N > h)."""
    return law.tail(h) / 2 if h >= 0 else 1 - law.tail(-h - 1) / 2


def rounded_chance(law: Law, step: Fraction, value: int, true: int) -> float:
    """The chance of a released count, which is the noisy sum rounded to a whole number."""
    first = math.ceil((value - Fraction(1, 2) - true) / step)
    last = math.ceil((value + Fraction(1, 2) - true) / step) - 1
    return above(law, first - 1) - above(law, last)


def test_a_real_table_never_passes_its_pure_promise() -> None:
    """49 ages are known; the fiftieth is one of four. Eight adaptive counts, ten tables."""
    ages, promise = (20, 40, 60, 80), Promise(1, queries=8)
    known = [20 + i for i in range(49)]
    changes = []
    for run in range(10):
        people = pyarrow.table({"age": [*known, ages[run % 4]]})
        prior = dict(zip(ages, (0.1, 0.2, 0.3, 0.4), strict=True))
        belief = dict(prior)
        with publish(people, Schema(Number("age", 0, 100, step=1)), promise, name="ages") as db:
            for turn in range(8):
                cut = max(belief, key=belief.__getitem__) - turn  # never twice the same
                question = count(where=col("age") <= cut)
                answer = db.ask(question)
                step = db.bind(question).terms[0].fine_step
                for age in ages:
                    true = sum(other <= cut for other in (*known, age))
                    belief[age] *= rounded_chance(answer.laws[0], step, int(answer.value), true)
            total = math.fsum(belief.values())
        after = {age: weight / total for age, weight in belief.items()}
        changes.append(most_changed_set(prior, after)[1])
    assert max(changes) <= float(promise.epsilon) + 1e-9
    assert max(changes) > 0
