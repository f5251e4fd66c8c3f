"""Topping up: the deficit only, and delta by enumeration with the noise's exact law. S1.15 (5)"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from tests.exact.small_tables import CELLS, MISSING, conditional, moved, sums_of

from sulq import Category, Flag, Number, Schema, UnsafeExactly, col, count, total
from sulq.exact.certificate import certify
from sulq.exact.domain import Assumptions, Domain, adds
from sulq.exact.hiding import Hidden, hidden_delta
from sulq.exact.topup import top_up
from sulq.kernel.accounting.gaussian import gaussian_mu
from sulq.kernel.noise.laws import DiscreteGaussian
from sulq.kernel.schema.bind import NoiseGrid, bind

SCHEMA = Schema(
    Flag("ill"),
    Flag("smoker"),
    Number("visits", 0, 100, step=1),
    Category("name", ["Joe", "other"], public=True),
)


def case(questions, least, rows, *, epsilon=1, delta="1e-6", known=0):
    programs = [bind(question, SCHEMA, grid=NoiseGrid(0)).sums for question in questions]
    domain = Domain.of(programs, SCHEMA, {k: Fraction(str(v)) for k, v in least.items()})
    sizes = [rows(given) if callable(rows) else rows for given in domain.classes()]
    return programs, domain, sizes, Assumptions(epsilon, delta, known, least)


def plain(longest_squared, assumptions):
    return longest_squared / gaussian_mu(assumptions.epsilon, assumptions.delta) ** 2


# --- only the deficit ---------------------------------------------------------------------------


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("questions", "least", "rows", "longest_squared", "share"),
    [
        ([count(where=col("ill"))], {"ill": 0.05}, 1_300, 1, 0.05),
        ([count(where=col("ill"))], {"ill": 0.05}, 1_000, 1, 0.4),
        (
            [count(where=col("ill")), count(where=col("smoker"))],
            {"ill": 0.05, "smoker": 0.05},
            4_000,
            2,
            0.25,
        ),
        ([total(col("visits"))], {"visits": 0.005}, 12_000, 100**2, 0.05),
        ([total(col("visits"))], {"visits": 0.005}, 3_000, 100**2, 0.1),
    ],
)
def test_a_batch_that_just_fails_needs_little_noise(questions, least, rows, longest_squared, share):
    _, domain, sizes, assumptions = case(questions, least, rows)
    with pytest.raises(UnsafeExactly):
        certify(domain, sizes, assumptions)
    found = top_up(domain, sizes, assumptions)
    assert found.sigma_squared < share * plain(longest_squared, assumptions)
    assert found.reached <= assumptions.delta
    assert found.guarantee == "a little noise, under assumptions"
    assert found.unconditional_mu**2 == pytest.approx(longest_squared / found.sigma_squared)


def test_what_no_coin_can_hide_is_left_to_the_noise():
    """With and without Joe: the coins hide (1, 1), the noise hides (1, 0) alone."""

    def rows(given):
        return {"Joe": 1, "other": 100_000}.get(given["name"], 0)

    questions = [count(where=col("ill")), count(where=col("ill") & (col("name") != "Joe"))]
    _, domain, sizes, assumptions = case(questions, {"ill": 0.05}, rows)
    found = top_up(domain, sizes, assumptions)
    assert plain(1, assumptions) <= found.sigma_squared < 0.55 * plain(2, assumptions)
    assert found.factor == 2


def test_where_plain_noise_does_as_well_the_batch_is_refused():
    _, domain, sizes, assumptions = case([count(where=col("ill"))], {"ill": 0.05}, 1_000)
    found = top_up(domain, sizes, assumptions)
    again = top_up(domain, sizes, assumptions, at_most=2 * found.sigma_squared)
    assert float(again.sigma_squared) == pytest.approx(float(found.sigma_squared), rel=0.05)
    for refused in (found.sigma_squared / 2, Fraction(1, 64)):
        with pytest.raises(UnsafeExactly, match="plain noise is as good"):
            top_up(domain, sizes, assumptions, at_most=refused)
    _, domain, sizes, assumptions = case([count(where=col("ill"))], {"ill": 0.05}, 60)
    with pytest.raises(UnsafeExactly, match="plain noise is as good"):
        top_up(domain, sizes, assumptions)  # next to no coins


# --- the law of coins and noise -----------------------------------------------------------------


def gaussian(sigma_squared, reach):
    t = np.arange(-reach, reach + 1)
    weights = np.exp(-t * t / (2 * float(sigma_squared)))
    return weights / weights.sum()


@pytest.mark.parametrize("stride", [1, 2, 5])
@pytest.mark.parametrize(("coins", "shift"), [(0, 1), (7, 2), (40, 3), (40, 5)])
@pytest.mark.parametrize("sigma_squared", [Fraction(1, 2), Fraction(9)])
def test_coins_and_noise_are_one_law_exact_from_above(coins, shift, stride, sigma_squared):
    noise = gaussian(sigma_squared, 60)
    heads = np.array([1.0])
    for _ in range(coins):
        heads = np.convolve(heads, [0.5] + [0.0] * (stride - 1) + [0.5])
    law = np.convolve(heads, noise)
    here, there = np.pad(law, (shift, 0)), np.pad(law, (0, shift))
    for epsilon in (0.3, 1.0):
        true = np.maximum(here - np.exp(epsilon) * there, 0).sum()
        ours = hidden_delta(
            [Hidden(coins, shift, DiscreteGaussian(sigma_squared), stride)], epsilon
        )
        assert true * (1 - 1e-9) <= ours <= true * (1 + 1e-6) + 1e-20


def test_directions_of_a_vector_are_told_apart():
    """TB.4: sigma^2 = 25, shifts (5, 0) and (3, 4); per coordinate the account is exact."""
    noise = DiscreteGaussian(Fraction(25))
    for shift, golden in (((5, 0), 0.1275233347), ((3, 4), 0.1269602083)):
        ours = hidden_delta([Hidden(0, s, noise) for s in shift], 1.0)
        assert golden <= ours * (1 + 1e-9)
        assert ours == pytest.approx(golden, rel=1e-5)


# --- enumeration --------------------------------------------------------------------------------

BATCHES = [
    [count(where=col("ill"))],
    [count(where=col("ill") & col("smoker"))],
    [count(where=col("ill")), count(where=col("smoker"))],
    [count(where=col("ill")), count(where=col("ill") & col("smoker"))],
    [count(where=col("ill")), count(where=~col("ill"))],
    [count(where=col("ill")), count(where=col("ill"))],
]


def with_noise(law, sigma_squared, reach):
    """The exact joint law of sums and noise, as an array about (0, ..., 0)."""
    wide = len(next(iter(law)))
    size = 2 * reach + 1
    array = np.zeros((size,) * wide)
    for place, p in law.items():
        array[tuple(x + reach for x in place)] += p
    kernel = gaussian(sigma_squared, reach)
    toeplitz = np.array(
        [
            [kernel[i - j + reach] if abs(i - j) <= reach else 0.0 for j in range(size)]
            for i in range(size)
        ]
    )
    for axis in range(wide):
        array = np.moveaxis(np.tensordot(toeplitz, array, (1, axis)), 0, axis)
    return array


@settings(max_examples=16, deadline=None)
@given(data=st.data())
def test_enumeration_never_exceeds_the_top_up(data):
    """Up to 9 heterogeneous rows besides the target: the true delta is within what was reached."""
    n = data.draw(st.integers(7, 10))
    least = data.draw(st.sampled_from([0.4, 0.48]))
    weights = st.lists(st.floats(0.01, 1), min_size=4, max_size=4)
    laws = [conditional(data.draw(weights), least) for _ in range(n - 1)]
    questions = data.draw(st.sampled_from(BATCHES))
    epsilon = data.draw(st.sampled_from([0.5, 1.0]))
    delta = data.draw(st.sampled_from(["0.1", "0.2", "0.3"]))
    programs, domain, sizes, assumptions = case(
        questions,
        {"ill": least, "smoker": least} if "smoker" in repr(questions) else {"ill": least},
        n,
        epsilon=epsilon,
        delta=delta,
    )
    try:
        found = top_up(domain, sizes, assumptions)
    except UnsafeExactly:
        return
    law = sums_of(programs, laws)
    reach = n + 2 + int(8 * float(found.sigma_squared) ** 0.5)
    added = {adds(programs, cell) for cell in [*CELLS, MISSING]}
    arrays = {g: with_noise(moved(law, g), found.sigma_squared, reach) for g in added}
    worst = max(
        float(np.maximum(arrays[x] - np.exp(epsilon) * arrays[y], 0).sum())
        for x, y in product(added, repeat=2)
    )
    assert worst <= found.reached + 1e-9
    assert worst <= float(delta)


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
@pytest.mark.parametrize("delta", ["0.2", "0.3"])
def test_coins_and_noise_share_the_work(epsilon, delta):
    """With and without Joe: (1, 1) is hidden by nine rows' coins, (1, 0) by the noise."""

    def rows(given):
        return {"Joe": 1, "other": 9}.get(given["name"], 0)

    questions = [count(where=col("ill")), count(where=col("ill") & (col("name") != "Joe"))]
    _, domain, sizes, assumptions = case(
        questions, {"ill": 0.48}, rows, epsilon=epsilon, delta=delta
    )
    found = top_up(domain, sizes, assumptions)
    assert found.factor == 2
    reach = 14 + int(8 * float(found.sigma_squared) ** 0.5)
    for p in (0.48, 0.52):
        others = {(h, h): float(binom.pmf(h, 8, p)) for h in range(9)}
        eight = {
            x: with_noise(moved(others, x), found.sigma_squared, reach) for x in [(0, 0), (1, 1)]
        }
        nine = {(h, h): float(binom.pmf(h, 9, p)) for h in range(10)}
        joe = {x: with_noise(moved(nine, x), found.sigma_squared, reach) for x in [(0, 0), (1, 0)]}
        for arrays in (eight, joe):
            for x, y in product(arrays.values(), repeat=2):
                true = float(np.maximum(x - np.exp(epsilon) * y, 0).sum())
                assert true <= found.reached + 1e-9


def test_too_few_coins_do_not_hide_their_own_step():
    """One question twice: (1, 1) is all coins or all noise, and neither beats plain noise."""
    questions = [count(where=col("ill"))] * 2
    _, domain, sizes, assumptions = case(questions, {"ill": 0.05}, 1_300)
    with pytest.raises(UnsafeExactly, match="plain noise is as good"):
        top_up(domain, sizes, assumptions)
