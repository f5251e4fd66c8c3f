"""What counts as broken, and the best that any attacker could do under each noise."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from tests.attacks.fictional import TENTH, phi

from sulq.attacks.result import SHARE, AttackResult, best_guess, guessed
from sulq.kernel.accounting.calibration import calibrate
from sulq.kernel.noise.laws import CentredBinomial
from sulq.kernel.schema.promise import Promise


def test_gaussian_is_phi_of_half_mu() -> None:
    """TB.1; noise 10: 0.51994 for one answer, and the whole promise is the most there is."""
    assert best_guess(TENTH, 1) == pytest.approx(phi(1 / 20), abs=2e-6)
    assert best_guess(TENTH, 1) == pytest.approx(0.519939, abs=3e-6)
    assert best_guess(TENTH, 400) == best_guess(TENTH, 1)
    whole = Promise(1, "1e-6", 1000)
    mu = math.sqrt(float(calibrate(whole).mu_squared or 0))
    assert best_guess(whole, 1000) == pytest.approx(phi(mu / 2), abs=1e-8)
    assert best_guess(whole, 250) == pytest.approx(phi(mu / 4), abs=1e-8)
    assert best_guess(whole, 0) == pytest.approx(0.5, abs=1e-8)


def test_pure_is_the_logistic_of_epsilon() -> None:
    assert best_guess(Promise(1, 0, 10), 10) == pytest.approx(0.7310585786)
    assert best_guess(Promise(1, 0, 10), 5) == pytest.approx(1 / (1 + math.exp(-0.5)))


def exact_guess(law: CentredBinomial, answers: int) -> Fraction:
    """(1 + TV) / 2 of so many answers by listing all of them."""
    coins, every = law.coins, Fraction(1, 2**law.coins)
    here = {k: math.comb(coins, k) * every for k in range(coins + 1)}
    there = {k + 1: mass for k, mass in here.items()}
    zero = Fraction(0)
    cases = itertools.product(range(coins + 2), repeat=answers)
    varied = sum(
        abs(
            math.prod((here.get(k, zero) for k in case), start=Fraction(1))
            - math.prod((there.get(k, zero) for k in case), start=Fraction(1))
        )
        for case in cases
    )
    return (1 + varied / 2) / 2


@pytest.mark.parametrize("answers", [1, 2])
def test_coarse_noise_by_its_exact_law(answers: int) -> None:
    """S0.5: at few coins the Gaussian limit would be off; never below the truth."""
    promise = Promise(2, "0.05", answers, "binomial")
    law = calibrate(promise).unit_law
    assert isinstance(law, CentredBinomial)
    exact = float(exact_guess(law, answers))
    assert exact - 1e-12 <= best_guess(promise, answers) <= exact + 5e-3
    assert best_guess(promise, 0) == 0.5


def test_databases_add_up() -> None:
    """TB.1: k databases are k times mu^2, and k times epsilon for pure noise."""
    assert best_guess(TENTH, 1, 64) == pytest.approx(phi(8 / 20), abs=2e-5)
    assert best_guess(Promise(1, 0, 10), 10, 3) == pytest.approx(1 / (1 + math.exp(-3)))
    twice = Promise(2, "0.05", 2, "binomial")
    alone = best_guess(twice, 1)
    assert alone < best_guess(twice, 1, 2) == pytest.approx(best_guess(twice, 2))


def test_three_standard_errors_are_an_alarm() -> None:
    assert not guessed("a", 530, 1000, 0.5, Fraction(1)).broken
    found = guessed("a", 560, 1000, 0.5, Fraction(1), "why")
    assert found.broken and found.light == "red" and "BROKEN" in str(found)
    assert found.error == pytest.approx(math.sqrt(0.25 / 1000))
    assert found.to_json()["light"] == "red" and found.to_json()["note"] == "why"


def test_a_promise_that_gives_all_away_is_amber() -> None:
    assert guessed("a", 950, 1000, 0.97, Fraction(1)).light == "amber"
    assert AttackResult("a", "rho", 0.95, 0.97, 0.01, 10).light == "green"
    assert guessed("a", 500, 1000, 0.6, Fraction(1)).light == "green"


def test_nothing_asked_is_nothing_found() -> None:
    found = guessed("a", 0, 0, 0.5, Fraction(0))
    assert (found.reached, found.trials, found.broken, found.measure) == (0.5, 0, False, SHARE)
    assert "nothing" in found.note
