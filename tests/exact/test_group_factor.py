"""Noisy answers beside exact ones: one row moves r rows. Enumerated, and 1 is too few. S1.12, M.9

Each case has the full joint law of the exact sums and of a count H of other properties; given
the exact sums, an answer H + noise may differ by r neighbours between two values of the target.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from sulq import Flag, Schema, col, count
from sulq.exact.certificate import certify
from sulq.exact.domain import Assumptions, Domain
from sulq.exact.topup import top_up
from sulq.kernel.schema.bind import NoiseGrid, bind

RATE = 0.4
"""epsilon of one noisy count, as Laplace noise of scale 1 / RATE; a Gaussian has sigma^2 = 4."""
SIGMA_SQUARED = 4.0
ORDERS = (1.5, 2.0, 4.0)
SIDE = 45

rows_of = st.lists(
    st.tuples(
        st.integers(0, 1),  # which exact question its coin is in
        st.sampled_from([0.3, 0.5, 0.7]),  # its bias
        st.sampled_from([0.0, 0.5, 1.0]),  # Pr[it counts in H | tails]
        st.sampled_from([0.0, 0.5, 1.0]),  # Pr[it counts in H | heads]
    ),
    min_size=2,
    max_size=11,
)


def joint(rows, kinds=2):
    """Pr[heads of each kind, H] of independent rows."""
    sizes = [1 + sum(row[0] == k for row in rows) for k in range(kinds)]
    law = np.zeros((*sizes, len(rows) + 2))
    law[(0,) * (kinds + 1)] = 1.0
    for kind, p, at_tails, at_heads in rows:
        heads = np.roll(law, 1, axis=kind)
        law = sum(
            chance * (np.roll(part, 1, axis=-1) if counted else part)
            for part, side, q in ((law, 1 - p, at_tails), (heads, p, at_heads))
            for counted, chance in ((True, side * q), (False, side * (1 - q)))
        )
    return law


def answers(counts, noise):
    """The law of H + noise; counts from 0."""
    return np.convolve(counts / counts.sum(), noise)


T = np.arange(-SIDE, SIDE + 1)
LAPLACE = np.exp(-RATE * np.abs(T))
GAUSSIAN = np.exp(-T * T / (2 * SIGMA_SQUARED))
GAUSSIAN /= GAUSSIAN.sum()


def moves(one, other):
    """How many neighbours apart two laws of H look: by Laplace noise, and by Gaussian noise."""
    p, q = answers(one, LAPLACE), answers(other, LAPLACE)
    inside = slice(SIDE - 12, -(SIDE - 12))  # elsewhere the noise is cut off
    laplace = float(np.abs(np.log(p[inside] / q[inside])).max()) / RATE
    p, q = (np.log(answers(law, GAUSSIAN)[inside]) for law in (one, other))
    gaussian = max(
        math.log(float(np.exp(a * p + (1 - a) * q).sum())) / (a - 1) / (a / SIGMA_SQUARED)
        for a in ORDERS
    )  # rho = r^2 / (2 sigma^2): order a shows a rho
    return laplace, math.sqrt(max(0.0, 2 * gaussian))


def worst_moves(law, change, counted):
    """Over all exact sums: the target adds 0 and counts[0], or `change` and counts[1]."""
    seen = (0.0, 0.0)
    for sums in product(*(range(n + c) for n, c in zip(law.shape, change, strict=False))):
        before = tuple(s - c for s, c in zip(sums, change, strict=True))
        if min(before) < 0 or any(s >= n for s, n in zip(sums, law.shape, strict=False)):
            continue
        one, other = np.roll(law[sums], counted[0]), np.roll(law[before], counted[1])
        if one.sum() > 1e-12 and other.sum() > 1e-12:
            seen = tuple(map(max, seen, moves(one, other)))
    return seen


@settings(max_examples=20, deadline=None)
@given(rows=rows_of, change=st.sampled_from([(1, 0), (0, 1), (1, 1)]))
def test_r_bounds_what_noisy_answers_add(rows, change):
    """Up to 12 rows with merged biases, one or two exact questions."""
    r = 1 + sum(change)
    law = joint(rows)
    for counted in product((0, 1), repeat=2):
        laplace, gaussian = worst_moves(law, change, counted)
        assert laplace <= r + 1e-9
        assert gaussian <= r + 1e-9


@pytest.mark.parametrize(
    ("rows", "change"),
    [
        ([(0, 0.5, 1.0, 0.0)] * 8, (1, 0)),
        ([(0, 0.5, 1.0, 0.0)] * 6 + [(1, 0.5, 1.0, 0.0)] * 5, (1, 1)),
    ],
)
def test_r_is_attained_and_1_is_too_few(rows, change):
    """H counts tails: given the sum of heads it moves by one for every coin and for the target."""
    laplace, gaussian = worst_moves(joint(rows), change, (0, 1))
    r = 1 + sum(change)
    assert laplace == pytest.approx(r, abs=1e-9)
    assert gaussian == pytest.approx(r, rel=1e-3)


def test_the_naive_account_by_strata_is_false():
    """S1.12 (a): the target alone in A, 500 coins in B, exact over both, then noisy B only."""
    heads = binom.pmf(np.arange(-1, 502), 500, 0.5)
    noise = np.exp(-(np.arange(-40, 41) ** 2) / 2)
    noise /= noise.sum()
    true = 0.0
    for b in range(1, len(heads)):  # heads b - 1 and the target, or heads b without
        with_target = np.pad(heads[b - 1] * noise, (0, 1))
        without = np.pad(heads[b] * noise, (1, 0))
        true += float(np.maximum(with_target - math.e * without, 0).sum())
    assert true == pytest.approx(0.1413513396, rel=1e-6)


# --- the factor that is recorded ----------------------------------------------------------------

SCHEMA = Schema(Flag("ill"), Flag("smoker"))


def recorded(names, rows, decide, delta="1e-6"):
    programs = [bind(count(where=col(name)), SCHEMA, grid=NoiseGrid(0)).sums for name in names]
    least = {name: Fraction(1, 10) for name in names}
    return decide(Domain.of(programs, SCHEMA, least), [rows], Assumptions(1, delta, 0, least))


def test_certificates_record_one_and_the_coins_that_move():
    one, two = (recorded(names, 10_000, certify) for names in (["ill"], ["ill", "smoker"]))
    assert one.factor == 2
    assert two.factor in (2, 3)
    assert two.factor == 3 or (1, 1) in two.steps


@pytest.mark.sample(3)
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("change", [1, 2, 3])
def test_coins_below_noise_move_no_further(stride, change):
    """Topped up: given stride * heads + noise, the heads move by at most ceil(change / stride)."""
    assert recorded(["ill"], 600, top_up).factor == 2
    coins, spread = 7, 2.5
    law = joint([(0, p, 1.0, 0.0) for p in (0.3, 0.5, 0.7, 0.5, 0.5, 0.3, 0.5)], 1)
    r = 1 + -(-change // stride)
    worst = 0.0
    for t in range(-6, stride * coins + 7):
        given = [
            sum(
                law[heads] * math.exp(-((t - moved - stride * heads) ** 2) / (2 * spread))
                for heads in range(coins + 1)
            )
            for moved in (0, change)
        ]
        for counted in product((0, 1), repeat=2):
            one, other = (np.roll(x, c) for x, c in zip(given, counted, strict=True))
            laplace, gaussian = moves(one, other)
            assert max(laplace, gaussian) <= r + 1e-9
            worst = max(worst, laplace)
    assert worst > 1.05  # one row alone would not explain it
