"""Small tables enumerated: certificate, group factor (S1.12), adaptivity (S1.14), Duan 6.3."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.exact.small_tables import conditional

from sulq.answers.statistics import count
from sulq.errors import UnsafeExactly
from sulq.exact.certificate import Certificate, certify
from sulq.exact.domain import Assumptions, Domain, adds
from sulq.exact.printed.auditor import offline, online
from sulq.exact.printed.laws import binomial_delta
from sulq.exact.printed.moments import Moments
from sulq.kernel.noise.laws import DiscreteGaussian, DiscreteLaplace
from sulq.kernel.query.expressions import col
from sulq.kernel.query.sum_query import Statistic
from sulq.kernel.schema.bind import NoiseGrid, bind
from sulq.kernel.schema.columns import Category, Flag, Number, Schema

Law = Mapping[tuple[int, ...], float]
ILL, SMOKER = col("ill"), col("smoker")
FLAGS = Schema(Flag("ill"), Flag("smoker"))
CELLS = [{"ill": i, "smoker": s} for i, s in product((False, True), repeat=2)]
MISSING = {"ill": None, "smoker": None}


def near(value: float) -> object:
    return pytest.approx(value, rel=1e-6)


def certificate(
    questions: Sequence[Statistic],
    least: Mapping[str, object],
    rows: int | Callable[[Mapping[str, object]], int],
    *,
    epsilon: float = 1,
    delta: str = "1e-6",
    known: int = 0,
    schema: Schema = FLAGS,
) -> Certificate:
    shares = {name: Fraction(str(share)) for name, share in least.items()}
    programs = [bind(question, schema, grid=NoiseGrid(0)).sums for question in questions]
    domain = Domain.of(programs, schema, shares)  # type: ignore[arg-type]
    sizes = [rows(given) if callable(rows) else rows for given in domain.classes()]
    return certify(domain, sizes, Assumptions(epsilon, delta, known, shares))


def plus(one: Sequence[int], two: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(one, two, strict=True))


def summed(added: Sequence[tuple[int, ...]], laws: Sequence[Sequence[float]]) -> Law:
    """The law of the sums over independent rows."""
    law: dict[tuple[int, ...], float] = {(0,) * len(added[0]): 1.0}
    for row in laws:
        following: dict[tuple[int, ...], float] = {}
        for place, p in law.items():
            for g, q in zip(added, row, strict=True):
                there = plus(place, g)
                following[there] = following.get(there, 0.0) + p * q
        law = following
    return law


def moved(law: Law, by: Sequence[int]) -> dict[tuple[int, ...], float]:
    return {plus(place, by): p for place, p in law.items()}


def excess(here: Law, there: Law, epsilon: float) -> float:
    return sum(max(p - math.exp(epsilon) * there.get(x, 0.0), 0.0) for x, p in here.items())


def row_law(draw: np.random.Generator, eta: float) -> list[float]:
    """Cells with ill and smoker both uncertain: each value at least eta given the other."""
    return list(conditional(draw.dirichlet([0.3] * 4), eta))


# --- the certificate ----------------------------------------------------------------------------

BATCHES = [
    [count(where=ILL)],
    [count(where=ILL & SMOKER)],
    [count(where=ILL), count(where=SMOKER)],
    [count(where=ILL), count(where=~ILL | ILL.is_null())],  # a complement
    [count(where=ILL), count(where=ILL)],  # a duplicate
    [count(where=ILL | SMOKER), count(where=SMOKER)],
]


def test_enumeration_stays_within_the_certificate() -> None:
    """Up to 12 rows of unlike laws, some known beforehand; 300 designs, not all trivial."""
    draw = np.random.default_rng(1)
    closest, tried = 0.0, 0
    for _ in range(300):
        n, known = int(draw.integers(6, 13)), int(draw.integers(0, 2))
        eta, epsilon = float(draw.choice([0.3, 0.4, 0.48])), float(draw.choice([0.5, 1.0, 2.0]))
        batch = BATCHES[draw.integers(len(BATCHES))]
        least = {"ill": eta, "smoker": eta}
        try:
            found = certificate(batch, least, n, epsilon=epsilon, delta="0.99", known=known)
        except UnsafeExactly:
            continue
        tried += 1
        programs = [bind(question, FLAGS, grid=NoiseGrid(0)).sums for question in batch]
        added = [adds(programs, cell) for cell in CELLS]  # type: ignore[arg-type]
        nothing = adds(programs, MISSING)  # type: ignore[arg-type]
        others = summed(added, [row_law(draw, eta) for _ in range(n - 1 - known)])
        worst = max(
            excess(moved(others, x), moved(others, y), epsilon)
            for x, y in product([*added, nothing], repeat=2)
        )
        assert worst <= found.reached + 1e-12
        closest = max(closest, worst / found.reached)
    assert tried > 100
    assert closest > 0.3


def test_rank_deficient_batches_are_as_good_as_one() -> None:
    """S1.8c: complements and duplicates change nothing."""
    one = certificate([count(where=ILL)], {"ill": "0.05"}, 50_000)
    for twin in (count(where=ILL), count(where=~ILL | ILL.is_null())):
        both = certificate([count(where=ILL), twin], {"ill": "0.05"}, 50_000)
        assert (both.reached, both.factor) == (one.reached, one.factor)


def test_what_is_missing_stands_out() -> None:
    """ "ill" and "not ill" together count missing values, which nothing makes uncertain."""
    with pytest.raises(UnsafeExactly, match="no other row's"):
        certificate([count(where=ILL), count(where=~ILL)], {"ill": "0.05"}, 50_000)


# --- Duan 6.3 -----------------------------------------------------------------------------------

STAFF = Schema(
    Number("salary", 0, 4, step=1), Flag("ill"), Category("name", ["Y", "other"], public=True)
)


def staff(given: Mapping[str, object]) -> int:
    return {"Y": 1, "other": 100_000}.get(str(given.get("name", "other")), 0)


def test_a_question_with_and_without_one_person_is_refused() -> None:
    rich = col("salary") >= 3
    pair = [count(where=rich), count(where=rich & (col("name") != "Y"))]
    with pytest.raises(UnsafeExactly):
        certificate(pair, {"salary": "0.05"}, staff, schema=STAFF)
    with pytest.raises(UnsafeExactly):  # and on its own where Y has a class of one row
        certificate(pair[1:], {"salary": "0.05"}, lambda given: 1, schema=STAFF)
    alone = certificate(pair[:1], {"salary": "0.05"}, 100_000, schema=STAFF)
    assert alone.reached <= 1e-6


def test_the_printed_checks_deny_it_too_but_only_by_reading_rows() -> None:
    rich = [Fraction(i % 3 == 0) for i in range(3000)]
    pair = Moments.of_values([rich, [0, *rich[1:]]])
    audit = online(pair, 1, 1e-6)
    assert [step.answered for step in audit.corrected] == [True, False]
    assert not offline(pair, 1, 1e-6).passes


def test_a_question_that_hardly_varies_is_refused() -> None:
    with pytest.raises(UnsafeExactly):
        certificate([count(where=ILL)], {"ill": "0.00001"}, 100_000)


def test_a_duplicate_is_denied_as_printed_and_costs_us_nothing() -> None:
    ill = [Fraction(i % 2) for i in range(2000)]
    old = [Fraction(i % 3 == 0) for i in range(2000)]
    audit = online(Moments.of_values([ill, ill, old]), 1, 1e-6)
    assert not any(step.answered for step in audit.printed)  # locked out for ever
    assert [step.answered for step in audit.corrected] == [True, False, True]
    once = certificate([count(where=ILL)], {"ill": "0.05"}, 50_000)
    twice = certificate([count(where=ILL), count(where=ILL)], {"ill": "0.05"}, 50_000)
    assert (once.reached, once.factor) == (twice.reached, twice.factor)


# --- S1.12: exact and noisy answers on the same rows --------------------------------------------


def noised(law: Law, noise: DiscreteLaplace | DiscreteGaussian, reach: int) -> Law:
    """The last sum with noise; what lies beyond `reach` is left out."""
    found: dict[tuple[int, ...], float] = {}
    chances = [(z, float(noise.pmf(z))) for z in range(-reach, reach + 1)]
    for place, p in law.items():
        for z, q in chances:
            there = (*place[:-1], place[-1] + z)
            found[there] = found.get(there, 0.0) + p * q
    return found


def test_s112_the_noisy_count_moves_by_two() -> None:
    """Exact S = x + sum z, then a count of (1-x) + sum z at epsilon 0.1: the loss is 0.2 more."""
    coins = summed([(0, 0), (1, 1)], [[0.5, 0.5]] * 6)
    noise = DiscreteLaplace(Fraction(10))
    one, zero = moved(coins, (1, 0)), moved(coins, (0, 1))
    given_one, given_zero = ({p for p in law if p[0] == 3} for law in (one, zero))
    assert {y for _, y in given_one} == {2}
    assert {y for _, y in given_zero} == {4}  # S + 1 - 2x: shift 2
    here, there = noised(one, noise, 40), noised(zero, noise, 40)
    for s in (1, 3, 6):
        exact = math.log(
            sum(p for (a, _), p in one.items() if a == s)
            / sum(p for (a, _), p in zero.items() if a == s)
        )
        joint = max(math.log(here[at] / there[at]) for at in here if at[0] == s and at in there)
        assert joint - exact == near(0.2)


def test_s112_strata_do_not_shield_the_target() -> None:
    """Target alone in A, 500 coins in B, exact A + B, then B with sigma^2 = 1, charged to B."""
    coins = summed([(0, 0), (1, 1)], [[0.5, 0.5]] * 500)
    noise = DiscreteGaussian(Fraction(1))
    here, there = (noised(moved(coins, (x, 0)), noise, 12) for x in (1, 0))
    assert excess(here, there, 1.0) == near(0.14135133960328383)
    assert binomial_delta(500, 0.5, 1.0) == near(4.209844004722413e-28)  # the exact part alone


def coin_law(draw: np.random.Generator, eta: float) -> list[float]:
    """ill is uncertain whatever smoker is; smoker is nearly known, and tends to be true."""
    smokes = 1 - float(draw.choice([0.0, 0.05, 0.5]))
    ill = eta + (1 - 2 * eta) * draw.random(2)
    shares = (1 - smokes, smokes)
    return [shares[s] * float(ill[s] if i else 1 - ill[s]) for i, s in product((0, 1), repeat=2)]


NOISY = [(1, 0, 0, 1), (0, 1, 1, 0), (0, 0, 1, 1), (0, 1, 0, 1), (1, 0, 0, 0)]
"""What each cell adds to a noisy count; the first two turn "ill" round for smokers."""


@pytest.mark.slow
def test_s112_the_group_factor_is_enough_and_one_is_not() -> None:
    """Up to 12 rows, an exact batch, then any noisy count at epsilon2: epsilon + r epsilon2."""
    draw = np.random.default_rng(2)
    failures, factors, closest = 0, set(), 0.0
    for turn in range(90):
        alone = turn % 3 > 0
        batch = [count(where=ILL)] if alone else [count(where=ILL), count(where=SMOKER)]
        eta, n = 0.48, int(draw.integers(10, 13))
        least = {"ill": eta} if alone else {"ill": eta, "smoker": eta}
        epsilon, second = float(draw.choice([0.5, 1.0])), Fraction(1, int(draw.choice([1, 2])))
        try:
            found = certificate(batch, least, n, epsilon=epsilon, delta="0.99")
        except UnsafeExactly:
            continue
        factors.add(found.factor)
        programs = [bind(question, FLAGS, grid=NoiseGrid(0)).sums for question in batch]
        bits = NOISY[draw.integers(len(NOISY))]
        added = [
            (*adds(programs, cell), bit)  # type: ignore[arg-type]
            for cell, bit in zip(CELLS, bits, strict=True)
        ]
        law = coin_law if alone else row_law
        others = summed(added, [law(draw, eta) for _ in range(n - 1)])
        noise, reach = DiscreteLaplace(1 / second), math.ceil(20 / second)  # beyond: e^-20
        # a target that does not smoke, among rows that mostly do, is turned round
        x, y = draw.permutation([0, 2]) if alone else draw.choice(4, 2, replace=False)
        true, instead = moved(others, added[x]), moved(others, added[y])
        here, there = noised(true, noise, reach), noised(instead, noise, reach + 2 * n)
        with_factor = excess(here, there, epsilon + found.factor * float(second))
        assert with_factor <= found.reached + 1e-12
        closest = max(closest, with_factor / found.reached)
        exact = excess(summed_first(true), summed_first(instead), epsilon)
        failures += excess(here, there, epsilon + float(second)) > exact * (1 + 1e-6)
    assert factors == {2, 3}
    assert failures >= 5  # adding the budgets would have promised too much
    assert closest > 0.03


@pytest.mark.parametrize("second", [Fraction(1, 2), Fraction(1), Fraction(2)])
@pytest.mark.parametrize("n", [8, 12])
def test_s112_fair_coins_need_the_whole_factor(n: int, second: Fraction) -> None:
    """Smokers with a fair coin each, a target that does not smoke, "ill" turned round."""
    found = certificate([count(where=ILL)], {"ill": "0.5"}, n, delta="0.5")
    added = [(int(bool(cell["ill"])), bit) for cell, bit in zip(CELLS, NOISY[0], strict=True)]
    others = summed(added, [[0, 0.5, 0, 0.5]] * (n - 1))
    noise, reach = DiscreteLaplace(1 / second), math.ceil(20 / second)
    true, instead = moved(others, added[2]), moved(others, added[0])
    here, there = noised(true, noise, reach), noised(instead, noise, reach + 2 * n)
    exact = excess(summed_first(true), summed_first(instead), 1.0)
    assert exact == near(binomial_delta(n - 1, 0.5, 1.0))
    assert exact <= found.reached
    assert excess(here, there, 1 + found.factor * float(second)) <= exact
    assert excess(here, there, 1 + (found.factor - 1) * float(second)) > 1.4 * exact


def summed_first(law: Law) -> Law:
    """Without the last sum."""
    found: dict[tuple[int, ...], float] = {}
    for place, p in law.items():
        found[place[:-1]] = found.get(place[:-1], 0.0) + p
    return found


# --- S1.14: questions chosen on the way ---------------------------------------------------------


def test_s114_a_choice_on_the_way_costs_more_than_either_path() -> None:
    """First the second and fourth cell, then all but the fourth, or the first."""
    shares, cell = [0.29, 0.30, 0.26, 0.15], col("cell")
    schema = Schema(Category("cell", ["p", "q", "r", "s"]))
    asked = [cell.isin(["q", "s"]), cell.isin(["p", "q", "r"]), cell == "p"]
    programs = [bind(count(where=where), schema, grid=NoiseGrid(0)).sums for where in asked]
    added = [adds(programs, {"cell": name}) for name in "pqrs"]  # type: ignore[arg-type]
    assert added == [(0, 1, 1), (1, 1, 0), (0, 1, 0), (1, 0, 0)]
    others = summed(added, [shares] * 5)

    def delta(told: Callable[[tuple[int, ...]], tuple[int, ...]]) -> float:
        seen = []
        for target in (2, 1):  # the third and second cell
            law: dict[tuple[int, ...], float] = {}
            for place, p in moved(others, added[target]).items():
                law[told(place)] = law.get(told(place), 0.0) + p
            seen.append(law)
        return excess(seen[0], seen[1], 1.0)

    assert delta(lambda s: (s[0], s[1])) == near(0.16852249788901322)
    assert delta(lambda s: (s[0], s[2])) == near(0.14170810188970848)
    assert delta(lambda s: (s[0], s[2] if s[0] == 1 else s[1])) == near(0.18317784191865127)
    assert delta(lambda s: s) == near(0.21605831143838458)
