"""Every path of choices through the single-draw sampler, with its chance: no luck involved.

Three storeys, each on top of the one before: Bernoulli(exp(-gamma)), Laplace, and the rejection.
Where the tree has no end, what is not followed has a known mass that encloses the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import pytest

from sulq.kernel.noise import sampler
from sulq.kernel.noise.entropy import OsBits
from sulq.kernel.noise.laws import (
    DiscreteGaussian,
    DiscreteHuber,
    DiscreteLaplace,
    proposal_for,
)


class Unfinished(Exception):
    """The scripted path ended before the draw did; carries the chances of the next choice."""

    def __init__(self, chances: list[float]) -> None:
        super().__init__()
        self.chances = chances


class Restarted(Exception):
    """A rejected attempt begins anew; all attempts are alike, so one is enough to know the law."""


class Scripted(OsBits):
    """Plays one path of choices."""

    __slots__ = ("attempts", "path", "taken")

    def __init__(self, path: tuple[int, ...]) -> None:
        super().__init__()
        self.path = path
        self.taken = 0
        self.attempts = 0

    def choose(self, chances: list[float]) -> int:
        if len(chances) == 1:
            return 0
        if self.taken == len(self.path):
            raise Unfinished(chances)
        self.taken += 1
        return self.path[self.taken - 1]

    def attempt(self) -> None:
        self.attempts += 1
        if self.attempts > 1:
            raise Restarted

    def below(self, bound: int) -> int:
        return self.choose([1 / bound] * bound)

    def bits(self, count: int) -> int:
        return self.choose([1 / 2**count] * 2**count)


def one_choice(source: Scripted, top: int, bottom: int) -> bool:
    """Bernoulli(exp(-top/bottom)) as a single choice; its own test vouches for it."""
    chance = math.exp(-top / bottom)
    return bool(source.choose([1 - chance, chance])) if top else True


class OneAttempt(Scripted):
    """For _laplace: `below` is what an attempt begins with."""

    __slots__ = ()

    def below(self, bound: int) -> int:
        self.attempt()
        return super().below(bound)

    bernoulli_exp = one_choice


def outcomes(
    draw: Callable[[Scripted], int], script: type[Scripted] = Scripted, smallest: float = 1e-13
) -> Iterator[tuple[int, float]]:
    """What `draw` returns on each path likelier than `smallest`, with the path's chance."""
    open_paths: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    while open_paths:
        path, chance = open_paths.pop()
        try:
            yield draw(script(path)), chance
        except Restarted:
            continue
        except Unfinished as unfinished:
            open_paths += [
                ((*path, i), chance * part)
                for i, part in enumerate(unfinished.chances)
                if chance * part >= smallest
            ]


def collect(paths: Iterator[tuple[int, float]]) -> dict[int, float]:
    found: dict[int, float] = {}
    for value, chance in paths:
        found[value] = found.get(value, 0.0) + chance
    return found


@pytest.mark.parametrize(
    ("top", "bottom"), [(0, 1), (1, 1), (1, 2), (3, 4), (2, 3), (5, 3), (3, 1), (1, 9)]
)
def test_bernoulli_exp_has_exactly_its_chance(top: int, bottom: int) -> None:
    def toss(source: Scripted) -> int:
        return source.bernoulli_exp(top, bottom)

    found = collect(outcomes(toss, smallest=1e-6))
    unfollowed = 1 - sum(found.values())
    assert unfollowed < 0.01
    truth = math.exp(-top / bottom)
    assert found[1] - 1e-12 <= truth <= found[1] + unfollowed + 1e-12


@pytest.mark.parametrize("scale", ["1", "3/2", "2/5", "7", "22/7"])
def test_every_attempt_of_laplace_is_the_law_exactly(scale: str) -> None:
    ratio = Fraction(scale)
    law = DiscreteLaplace(ratio)
    top, bottom = ratio.numerator, ratio.denominator
    found = collect(outcomes(lambda source: sampler._laplace(top, bottom, source), OneAttempt))
    for t in range(-4, 5):
        assert found[t] / found[0] == pytest.approx(law.pmf(t) / law.pmf(0), rel=1e-6)


@pytest.mark.parametrize(
    "law",
    [
        DiscreteGaussian(Fraction(1, 2)),
        DiscreteGaussian(Fraction(2)),
        DiscreteGaussian(Fraction(77, 3)),
        DiscreteHuber(Fraction(1), Fraction(1, 2)),
        DiscreteHuber(Fraction(3, 2), Fraction(2)),
        DiscreteHuber(Fraction(5), Fraction(4)),
    ],
    ids=str,
)
def test_every_attempt_is_the_law_exactly(
    law: DiscreteGaussian | DiscreteHuber, monkeypatch: pytest.MonkeyPatch
) -> None:
    span = range(-7, 8)

    def laplace(top: int, bottom: int, source: Scripted) -> int:
        source.attempt()
        hat = DiscreteLaplace(Fraction(top, bottom))
        return span[source.choose([hat.pmf(t) for t in span])]

    monkeypatch.setattr(Scripted, "bernoulli_exp", one_choice)
    monkeypatch.setattr(sampler, "_laplace", laplace)
    proposal = proposal_for(law)
    found = collect(outcomes(lambda source: sampler._draw_one(proposal, source)))
    for t in range(-3, 4):
        assert found[t] / found[0] == pytest.approx(law.pmf(t) / law.pmf(0), rel=1e-12)
