"""M.2 and M.3 by enumeration: every transcript of small alerts, every choice among few scores."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest

from sulq.kernel.accounting.mechanisms import above_threshold, noisy_choice
from sulq.kernel.noise.laws import DiscreteLaplace, Geometric

REACH = 400
ROUNDING = 1e-9


Laws = tuple[DiscreteLaplace, DiscreteLaplace]
LEVELS = np.arange(-REACH, REACH + 1)
ENDS = np.arange(-REACH - 8, REACH + 9)


@cache
def masses(law: DiscreteLaplace) -> np.ndarray:
    return np.array([law.pmf(int(t)) for t in ENDS])


@cache
def transcripts(sums: tuple[int, ...], laws: Laws, firings: int) -> dict[tuple[bool, ...], float]:
    """The chance of every sequence of verdicts until the last firing; the level is 0."""
    first, fresh = laws
    at_least = np.append(np.cumsum(masses(fresh)[::-1])[::-1], 0.0)
    found: dict[tuple[bool, ...], np.ndarray] = {(): masses(first)[8:-8]}
    for asked in sums:
        fires = np.clip(at_least[LEVELS - asked - ENDS[0]], 0, 1)
        grown = {}
        for verdicts, weight in found.items():
            if sum(verdicts) == firings:
                grown[verdicts] = weight
                continue
            grown[*verdicts, True] = weight * fires
            grown[*verdicts, False] = weight * (1 - fires)
        found = grown
    return {verdicts: float(weight.sum()) for verdicts, weight in found.items()}


def worst(laws: Laws, firings: int, asked: int, width: int = 1) -> float:
    """The largest log ratio over all transcripts and all ways one row moves the sums."""
    most = 0.0
    for sums in product((0, width), repeat=asked):
        here = transcripts(sums, laws, firings)
        for moves in product((-width, 0, width), repeat=asked):
            there = transcripts(
                tuple(a + b for a, b in zip(sums, moves, strict=True)), laws, firings
            )
            most = max(most, *(math.log(here[v] / there[v]) for v in here))
    return most


@pytest.mark.parametrize(("firings", "asked"), [(1, 4), (2, 4), (3, 4)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_m2_every_transcript_of_an_alert(firings: int, asked: int, epsilon: Fraction) -> None:
    laws = above_threshold(Fraction(1), epsilon, firings)
    found = worst(laws, firings, asked)
    assert float(epsilon) / 4 < found <= float(epsilon) + ROUNDING


def test_m2_a_finer_grid_changes_nothing() -> None:
    laws = above_threshold(Fraction(3), Fraction(1), 1)
    assert worst(laws, 1, 3, width=3) <= 1 + ROUNDING


def test_m2_published_variants_that_are_not_private_are_caught() -> None:
    """Noise that does not grow with the firings; and no noise on the comparisons."""
    first, fresh = above_threshold(Fraction(1), Fraction(1), 4)
    assert worst((first, DiscreteLaplace(fresh.scale / 4)), 4, 4) > 1.2
    sharp = DiscreteLaplace(Fraction(1, 8))
    assert worst((first, sharp), 4, 4) > 5


def test_m2_an_alert_is_a_coin_and_a_process_that_knows_nothing() -> None:
    """P0 = (e^eps Q0 + Q1) / (1 + e^eps): both Q are laws of verdicts, at every prefix."""
    epsilon = Fraction(1)
    laws = above_threshold(Fraction(1), epsilon, 2)
    odds = math.exp(epsilon)
    for asked in (1, 2, 3):
        for sums in product((0, 1), repeat=asked):
            for moves in product((-1, 1), repeat=asked):
                moved = tuple(a + b for a, b in zip(sums, moves, strict=True))
                one, two = transcripts(sums, laws, 2), transcripts(moved, laws, 2)
                for p, q in ((one, two), (two, one)):
                    process = {v: (odds * p[v] - q[v]) / (odds - 1) for v in p}
                    assert min(process.values()) > -ROUNDING
                    assert math.isclose(sum(process.values()), 1, rel_tol=1e-9)


# --- M.3 ----------------------------------------------------------------------------------------


@cache
def winners(scores: tuple[int, ...], law: Geometric) -> list[float]:
    """The chance of each index to have the largest noisy score, the first one of equals."""
    values = np.arange(REACH)
    mine = np.array([law.pmf(int(t)) for t in values])
    at_least = np.array([law.at_least(int(t)) for t in range(-9, REACH + 10)])
    chances = []
    for i, score in enumerate(scores):
        others = np.ones(REACH)
        for j, other in enumerate(scores):
            if j != i:  # j loses to score + t; a later one already by being equal
                others *= 1 - at_least[values + score - other + (j > i) + 9]
        chances.append(float(mine @ others))
    return chances


def test_m3_winners_are_a_law() -> None:
    law = Geometric(Fraction(3))
    assert math.isclose(sum(winners((2, 0, 1), law)), 1, rel_tol=1e-9)
    first, second = winners((0, 0), law)
    step = math.exp(-1 / 3)
    assert math.isclose(second, step / (1 + step), rel_tol=1e-9) and first > second


@pytest.mark.sample(3)
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(1), Fraction(3)])
@pytest.mark.parametrize("one_way", [False, True])
def test_m3_every_choice(epsilon: Fraction, one_way: bool) -> None:
    law = noisy_choice(Fraction(1), epsilon, one_way=one_way)
    moves = list(product((0, 1) if one_way else (-1, 0, 1), repeat=3))
    most = 0.0
    for scores in product((0, 1, 3), repeat=3):
        here = winners(scores, law)
        for move in moves:
            there = winners(tuple(a + b for a, b in zip(scores, move, strict=True)), law)
            ratios = [abs(math.log(a / b)) for a, b in zip(here, there, strict=True)]
            most = max(most, *ratios)
    assert float(epsilon) / 2 < most <= float(epsilon) + ROUNDING


def test_m3_half_the_noise_is_not_enough_when_scores_move_both_ways() -> None:
    law = noisy_choice(Fraction(1), Fraction(1), one_way=True)
    here, there = winners((0, 3, 3), law), winners((1, 2, 2), law)
    assert math.log(there[0] / here[0]) > 1.2


def test_m3_two_choices_cost_two() -> None:
    law = noisy_choice(Fraction(1), Fraction(1, 2), one_way=False)
    for scores in product((0, 2), repeat=3):
        for move in product((-1, 1), repeat=3):
            moved = tuple(a + b for a, b in zip(scores, move, strict=True))
            for first, second in ((0, 1), (1, 0), (2, 0)):
                ratio = 0.0
                for place, left in ((first, (0, 1, 2)), (second, _without(first))):
                    at = left.index(place)
                    here = winners(tuple(scores[i] for i in left), law)[at]
                    there = winners(tuple(moved[i] for i in left), law)[at]
                    ratio += math.log(here / there)
                assert abs(ratio) <= 1 + ROUNDING


def _without(first: int) -> tuple[int, ...]:
    return tuple(i for i in range(3) if i != first)
