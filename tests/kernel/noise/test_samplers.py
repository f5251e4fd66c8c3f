"""Single draws, coin tossing and perturb. Statistical false alarms: 1e-6 per test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import pytest

from sulq.kernel.noise import sampler
from sulq.kernel.noise.laws import (
    CentredBinomial,
    DiscreteGaussian,
    DiscreteHuber,
    DiscreteLaplace,
    Law,
    NoNoise,
)
from sulq.kernel.noise.sampler import add_fresh_noise, draw

Follows = Callable[[Sequence[int], Law], None]

SINGLE: list[Law] = [
    DiscreteGaussian(Fraction(1, 3)),
    DiscreteGaussian(Fraction(81, 4)),
    DiscreteLaplace(Fraction(7, 3)),
    DiscreteHuber(Fraction(10), Fraction(20)),
    DiscreteHuber(Fraction(7, 2), Fraction(5, 3)),
]


@pytest.mark.parametrize("law", SINGLE, ids=str)
def test_single_draws_follow_the_law(law: Law, assert_follows: Follows) -> None:
    assert_follows([draw(law, 1)[0] for _ in range(20_000)], law)


@pytest.mark.parametrize("coins", [2, 64, 66, 400])
def test_tossed_coins_follow_the_law(coins: int, assert_follows: Follows) -> None:
    law = CentredBinomial(coins)
    assert_follows([draw(law, 1)[0] for _ in range(10_000)], law)
    assert_follows(draw(law, 100_000), law)


def test_coins_are_tossed_in_pieces(
    monkeypatch: pytest.MonkeyPatch, assert_follows: Follows
) -> None:
    monkeypatch.setattr(sampler, "TOSSED_AT_ONCE", 64)
    assert_follows(draw(CentredBinomial(100), 20_000), CentredBinomial(100))


@pytest.mark.parametrize("coins", [4, 40, 10_000])
def test_thinned_gaussian_follows_the_binomial_law(
    coins: int, monkeypatch: pytest.MonkeyPatch, assert_follows: Follows
) -> None:
    monkeypatch.setattr(sampler, "MOST_TOSSED_COINS", 0)
    law = CentredBinomial(coins)
    assert_follows(draw(law, 5_000), law)


def test_perturb_adds_one_draw_of_its_law_to_each_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Law, int]] = []

    def counted(law: Law, count: int) -> list[int]:
        asked.append((law, count))
        return [1000 * len(asked) + i for i in range(count)]

    monkeypatch.setattr(sampler, "draw", counted)
    a, b, a_again = DiscreteLaplace(Fraction(2)), NoNoise(), DiscreteLaplace(Fraction(2))
    assert add_fresh_noise([10, 20, 30, 40], [a, b, a_again, a]) == [1010, 2020, 1031, 1042]
    assert asked == [(a, 3), (b, 1)]


def test_perturb_wants_one_law_per_sum() -> None:
    with pytest.raises(ValueError, match="2 sums and 1 laws"):
        add_fresh_noise([1, 2], [NoNoise()])


def test_perturb_keeps_integers_of_any_size_and_its_input() -> None:
    sums = (2**200, -(2**90), 0)
    laws: list[Law] = [DiscreteGaussian(Fraction(4)), NoNoise(), NoNoise()]
    noisy = add_fresh_noise(sums, laws)
    assert abs(noisy[0] - 2**200) < 100
    assert noisy[1:] == [-(2**90), 0]
    assert all(type(value) is int for value in add_fresh_noise([0] * 50, [laws[0]] * 50))
    assert add_fresh_noise([], []) == []


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 1000])
def test_draw_returns_as_many_as_asked(count: int) -> None:
    for law in (*SINGLE, NoNoise(), CentredBinomial(10), CentredBinomial(2**40)):
        values = draw(law, count)
        assert len(values) == count
        assert all(type(value) is int for value in values)
