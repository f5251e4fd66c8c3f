"""From stored noisy integers to a reading: by the question's statistic, over its noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sulq.answers.error_bars import (
    Draw,
    Forecast,
    FreshNoise,
    MeasuredSums,
    Mixture,
    Reading,
    SharedNoise,
)
from sulq.answers.statistics import STATISTICS
from sulq.kernel.noise.laws import Law
from sulq.kernel.reuse.estimate import LinearEstimate
from sulq.kernel.schema.bind import BoundQuery
from sulq.kernel.schema.persons import PersonSums

MOST_TOLD = 1_000
"""Independent sums that say what they rest on."""


def read(
    bound: BoundQuery, values: Sequence[int], laws: Sequence[Law], size: int | None
) -> Reading:
    """Read a question's noisy sums, in user units; there are at most `size` rows."""
    noise = FreshNoise(bound, tuple(laws))
    return STATISTICS[bound.statistic.kind].read(MeasuredSums(noise, values, _counted(bound, size)))


def read_derived(found: LinearEstimate, values: Sequence[int], size: int | None) -> Reading:
    """Read sums that follow from stored answers, and may share their noise."""
    sums = MeasuredSums(SharedNoise(found), values, _counted(found.bound, size))
    reading = STATISTICS[found.bound.statistic.kind].read(sums)
    return replace(reading, mixture=Mixture(_draws(found), found.exact))


def read_apart(
    found: LinearEstimate, values: Sequence[int], laws: Sequence[Law], size: int | None
) -> Reading:
    """Read derived sums that share no noise, as fresh ones.

    Few of them also say what they rest on, so that what is made of several answers knows it.
    """
    own = read(found.bound, values, laws, size)
    if found.alike or found.bound.statistic.kind != "sums" or len(values) > MOST_TOLD:
        return own
    return replace(own, mixture=Mixture(_draws(found), found.exact, apart=True))


def forecast(
    bound: BoundQuery, laws: Sequence[Law], rows: int | None, size: int | None
) -> Forecast:
    """The error bar a question will have, from public facts and what the asker states."""
    noise = FreshNoise(bound, tuple(laws))
    found = STATISTICS[bound.statistic.kind].forecast(noise, rows, size)
    return replace(found, laws=noise.laws)


def _counted(bound: BoundQuery, size: int | None) -> int | None:
    """How many there are of what is counted: of so many rows, or of their persons."""
    if size is not None and isinstance(bound.sums, PersonSums):
        return size // bound.sums.rows_each
    return size


def _draws(found: LinearEstimate) -> tuple[tuple[Draw, ...], ...]:
    return tuple(
        tuple((s.seq, s.place, s.weight, s.law) for s in sources) for sources in found.estimates
    )
