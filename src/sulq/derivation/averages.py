"""Draws of one question, averaged by precision: as good as one draw that cost what they did. M.7"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple, overload

from sulq.derivation.estimates import Derivation, Source, exact_variance
from sulq.noise.distributions import DiscreteGaussian, Law, NoNoise
from sulq.schema.binding import BoundQuery


class Draw(NamedTuple):
    """A stored noisy answer: its number in the ledger, its laws and its integers."""

    seq: int
    laws: tuple[Law, ...]
    values: tuple[int, ...]


def averaged(bound: BoundQuery, draws: Sequence[Draw]) -> Derivation | None:
    """Every sum of a question from its own draws; of a tree every node, level by level.

    Nodes of one level share a law, and least squares over the levels reads them as one answer's.
    Laplace draws average to no law that it knows: of a tree's the most exact one counts.
    """
    draws = [draw for draw in draws if len(draw.values) == bound.width]
    if not draws:
        return None
    if bound.tree is not None and not all(_adds(law) for draw in draws for law in draw.laws):
        draws = [min(draws, key=lambda draw: exact_variance(draw.laws[-1]))]
    return Derivation(bound, _Averages(bound, draws), [{}] * bound.width, None, True, alike=True)


def _adds(law: Law) -> bool:
    """Weighted sums of such draws have a law of the same kind."""
    return isinstance(law, DiscreteGaussian | NoNoise)


class _Averages(Sequence[list[Source]]):
    """What each sum is made of, told when it is looked at: there may be a million."""

    def __init__(self, bound: BoundQuery, draws: Sequence[Draw]) -> None:
        self._layout, self._count, self._draws = bound.layout, bound.width, draws
        self._shares = [precisions(draws, term) for term in range(len(bound.terms))]

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> list[Source]: ...

    @overload
    def __getitem__(self, place: slice) -> list[list[Source]]: ...

    def __getitem__(self, place: int | slice) -> list[Source] | list[list[Source]]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(self._count))]
        if place >= self._count:
            raise IndexError(place)
        term = self._layout[place % len(self._layout)]
        return [
            Source(draw.seq, place, share, draw.values[place], draw.laws[term])
            for draw, share in zip(self._draws, self._shares[term], strict=True)
            if share
        ]


def precisions(draws: Sequence[Draw], term: int) -> list[Fraction]:
    """The share of each draw of one sum: its precision, of all their precision."""
    laws = [draw.laws[term] for draw in draws]
    certain = [not exact_variance(law) for law in laws]  # none, or too little for a float
    if any(certain):
        first = certain.index(True)
        return [Fraction(int(place == first)) for place in range(len(laws))]
    if len(laws) == 1:
        return [Fraction(1)]
    each = [1 / exact_variance(law) for law in laws]
    return [precision / sum(each) for precision in each]
