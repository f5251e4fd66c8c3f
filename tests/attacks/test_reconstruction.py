"""Reconstruction: all bits below sqrt(n), and no more than the promise allows above."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from tests.attacks.fictional import broken, phi, within

from sulq.attacks.reconstruction import (
    LINEAR,
    MEAN,
    SQUARES,
    covariances,
    fitted,
    optimum,
    reconstruction,
    sweep,
)
from sulq.errors import InvalidQuery
from sulq.kernel.schema.promise import Promise
from sulq.sandbox import sandbox

WHOLE = Promise(1, "1e-6", 1000)
OPEN = Promise(8, "1e-6", 1000)

# n = T = 1000, box least squares, mean of 3 tables; the optimum; sigma = 1, 2, ...
REFERENCE = {
    1: (1.000, 1.000),
    2: (0.996, 1.000),
    4: (0.917, 0.997),
    8: (0.772, 0.919),
    16: (0.682, 0.758),
    32: (0.570, 0.637),
    64: (0.545, 0.569),
    166: (0.522, 0.527),
}
# n = T = 300, linear program, one table
LINEAR_REFERENCE = {1: 0.997, 4: 0.807, 8: 0.677, 17: 0.603, 60: 0.543}


def close(got: float, reference: float, trials: int, also: int) -> bool:
    """Two measured shares agree but for chance (1e-6); the printed one has three digits."""
    share = min(max((got + reference) / 2, 0.002), 0.998)
    return abs(got - reference) <= 5 * math.sqrt(share * (1 - share) * (1 / trials + 1 / also))


@pytest.mark.slow
def test_the_table_of_box_least_squares() -> None:
    with sandbox(WHOLE, 1000) as target:
        chart = sweep(target, sigmas=[float(sigma) for sigma in REFERENCE])
    for point, (recovered, best) in zip(chart.points, REFERENCE.values(), strict=True):
        assert close(point.recovered, recovered, 3000, 3000), point
        assert point.optimum == pytest.approx(best, abs=6e-4)
        assert point.recovered <= point.optimum + 5 * point.error
    assert (chart.rows, chart.questions) == (1000, 1000)
    assert chart.threshold == pytest.approx(31.6228, abs=1e-4)
    assert chart.stands == pytest.approx(133.603, abs=1e-3)
    said = chart.to_json()
    assert said["sqrt_n"] == chart.threshold and len(said["points"]) == 8


@pytest.mark.slow
def test_the_row_of_the_linear_program() -> None:
    with sandbox(Promise(1, "1e-6", 300), 300) as target:
        sigmas = [float(sigma) for sigma in LINEAR_REFERENCE]
        chart = sweep(target, sigmas=sigmas, method=LINEAR, tables=2)
    for point, recovered in zip(chart.points, LINEAR_REFERENCE.values(), strict=True):
        assert close(point.recovered, recovered, 600, 300), point


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [1, 4])
def test_little_noise_gives_the_table_away(sigma: int) -> None:
    """Through the seam, with subsets by `hashed`: as in the reference."""
    with sandbox(WHOLE, 1000) as target:
        found = reconstruction(broken(target, sigma))
        assert close(found.reached, REFERENCE[sigma][0], 1000, 3000), found
        assert found.broken and found.credits == 1000


@pytest.mark.slow
def test_signs_tell_twice_as_much() -> None:
    """Sums of + and -: mu = sqrt(T) / sigma, at the price of the subsets."""
    with sandbox(Promise(1, "1e-6", 500), 500) as target:
        half = reconstruction(broken(target, 12), MEAN)
        both = reconstruction(broken(target, 12), MEAN, both_halves=True)
        assert both.reached > half.reached + 0.03
        assert half.reached <= optimum(12, 500) + 5 * half.error
        assert both.reached <= phi(math.sqrt(500) / 24) + 5 * both.error


@pytest.mark.parametrize(
    "method",
    [LINEAR, *(pytest.param(method, marks=pytest.mark.slow) for method in (SQUARES, MEAN))],
)
def test_the_product_holds(method: str) -> None:
    small = 150 if method == LINEAR else 500
    with sandbox(OPEN, small) as target:
        for both_halves in (False, True):
            found = reconstruction(target, method, small, both_halves=both_halves)
            assert within(found), found
            assert found.trials == small
            assert found.credits == pytest.approx(1000)


@pytest.mark.slow
@pytest.mark.parametrize(
    "promise",
    [Promise(4, 0, 200), Promise(4, "1e-6", 200, "huber")],
    ids=lambda promise: promise.noise,
)
def test_other_noises_hold_too(promise: Promise) -> None:
    with sandbox(promise, 300) as target:
        found = reconstruction(target, questions=300, both_halves=True)
        assert within(found), found
        assert found.credits == pytest.approx(200)


def test_part_of_a_large_table_is_enough() -> None:
    """Few unknowns, the whole promise: the posterior mean comes to the bound."""
    with sandbox(OPEN, 5000) as target:
        found = reconstruction(target, MEAN, questions=400, people=40, both_halves=True)
        assert found.trials == 40
        assert within(found)
        assert found.bound > 0.75


def test_a_few_wild_answers_do_not_mislead_the_linear_program() -> None:
    """Dwork-McSherry-Talwar: a share of the answers may be arbitrary; least squares is lost."""
    random = np.random.default_rng(5)
    matrix = random.integers(0, 2, (400, 80)).astype(float)
    secrets = random.integers(0, 2, 80).astype(bool)
    sums = matrix @ secrets
    sums[random.permutation(400)[:60]] += random.normal(0, 1000, 60)
    assert np.all((fitted(matrix, sums, LINEAR) > 0.5) == secrets)
    assert np.mean((fitted(matrix, sums, SQUARES) > 0.5) == secrets) < 0.9


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    ones = np.ones((2, 2))
    with pytest.raises(InvalidQuery, match="linear program"):
        fitted(ones, np.ones(2), "magic")
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(ImportError, match=r"sulq\[learn\]"):
        fitted(ones, np.ones(2), SQUARES)


@pytest.mark.slow
def test_covariances_without_noise_give_the_column_away_and_the_promise_does_not() -> None:
    """Huth et al. 2023: as many known columns as rows, robust to noise that is drawn each time."""
    with sandbox(OPEN, 120) as target:
        exact = covariances(broken(target, 0.01), people=120)
        assert exact.reached > 0.99 and exact.broken
        found = [covariances(target, people=120, seed=seed) for seed in range(3)]
    assert all(map(within, found)), found
    assert found[0].credits == pytest.approx(1000) and found[0].trials == 120
    assert found[0].bound > 0.75


@pytest.mark.slow
def test_the_product_holds_at_length() -> None:
    """50 tables of 1000 rows: 50,000 bits."""
    right = trials = 0
    with sandbox(OPEN, 1000) as target:
        for seed in range(50):
            found = reconstruction(target, MEAN, both_halves=True, seed=seed)
            right += round(found.reached * found.trials)
            trials += found.trials
    spread = math.sqrt(found.bound * (1 - found.bound) / trials)
    assert trials == 50_000
    assert right / trials <= found.bound + 5 * spread
    assert right / trials > 0.6  # and it is an attack
