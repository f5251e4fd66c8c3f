"""A tree of counts read: counts below, quantiles, and their bars before and after asking."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sulq.bars import Forecast, Interval, Reading, reach_of, spread_of
from sulq.cumulative import Distribution, Fit, rank_half_width, rising
from sulq.noise.distributions import Law
from sulq.query.statistics import CDF_BINS
from sulq.schema.binding import BoundQuery
from sulq.schema.bound import BinCells
from sulq.schema.ranges import World, narrowed_by, range_of, truth_of
from sulq.schema.trees import TreeSums


def tree_cdf(
    bound: BoundQuery, values: Sequence[int], laws: Sequence[Law], size: int | None
) -> Reading:
    """Counts below at most 128 steps of the range."""
    return _below(bound, _trees(bound, values, laws, size), _shown_edges(bound))


def tree_distribution(
    bound: BoundQuery, values: Sequence[int], laws: Sequence[Law], size: int | None
) -> Reading:
    return _below(bound, _trees(bound, values, laws, size), slice(None))


def _below(bound: BoundQuery, found: NDArray[Any], shown: slice) -> Reading:
    """The counts below the edges of every tree; bars are for each of them by itself."""

    def stacked(rows: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        return np.array([row[shown] for row in rows]).reshape(*found.shape, -1)

    def interval(confidence: float) -> Interval:
        ends = [one.cdf(confidence) for one in found.flat]
        return stacked([low for low, _ in ends]), stacked([high for _, high in ends])

    edges = _edges(bound)[shown]
    keys = (*(group.keys for group in bound.groups[:-1]), edges) if found.shape else edges
    return Reading(
        stacked([one.below for one in found.flat]),
        stacked([np.sqrt(one.variance) for one in found.flat]),
        interval,
        keys,
        found,
    )


def _shown_edges(bound: BoundQuery) -> slice:
    """Every so manieth edge, for a CDF of at most 128 steps."""
    return slice(None, None, -(-len(bound.groups[-1].keys) // CDF_BINS))


def tree_quantiles(
    bound: BoundQuery, values: Sequence[int], laws: Sequence[Law], size: int | None
) -> Reading:
    found = _trees(bound, values, laws, size)
    one, shares = found.item(), bound.statistic.shares

    def interval(confidence: float) -> Interval:
        ends = [one.quantile_interval(share, confidence) for share in shares]
        return np.array([low for low, _ in ends]), np.array([high for _, high in ends])

    value = np.array([one.quantile(share) for share in shares])
    low, high = interval(0.6827)
    error = np.maximum(np.asarray(high) - np.asarray(low), np.diff(one.edges).min()) / 2
    return Reading(value, error, interval, shares, found)


def _trees(
    bound: BoundQuery, values: Sequence[int], laws: Sequence[Law], size: int | None
) -> NDArray[Any]:
    """The distribution in every cell of the groups before the tree, by least squares."""
    tree = bound.tree
    assert tree is not None  # noqa: S101
    steps = tree.along([term.fine_step for term in bound.terms])
    nodes = np.array([float(v * steps[i % len(steps)]) for i, v in enumerate(values)])
    variances = _level_variances(bound, laws)
    fit = Fit.of(tree.sizes, variances)
    variance, with_total = fit.spreads()
    numbers = np.array([_position(edge) for edge in _edges(bound)])
    most = math.inf if size is None else size
    within = _within(bound)
    found = np.empty(bound.shape[:-1], dtype=object)
    for place, own in zip(np.ndindex(found.shape), nodes.reshape(-1, len(steps)), strict=True):
        raw = np.concatenate([[0.0], np.cumsum(fit.cells(own, variances))])
        found[place] = Distribution(
            numbers,
            raw,
            np.clip(rising(raw), 0, most),
            variance,
            with_total,
            lambda confidence: reach_of(laws, confidence),
            most,
            bound.steps,
            within,
        )
    return found


def _within(bound: BoundQuery) -> tuple[float, float] | None:
    """What the value can be in the rows asked about, by the question alone; None: nobody is."""
    assert isinstance(bound.sums, TreeSums)  # noqa: S101
    program = bound.sums.cells
    cells = program.groups[-1]
    assert isinstance(cells, BinCells)  # noqa: S101
    world = narrowed_by(program.rows, World(frozenset()))
    found = range_of(cells.value, world)
    if found.low > found.high or truth_of(program.rows, world).verdict == "never":
        return None
    edges = [_position(edge) for edge in _edges(bound)]
    first, last = cells.edges[0], cells.edges[-1]
    unit = (edges[-1] - edges[0]) / (last - first)
    low, high = (edges[0] + (step - first) * unit for step in (found.low, found.high))
    return max(low, edges[0]), min(high, edges[-1 - bound.steps])


def _level_variances(bound: BoundQuery, laws: Sequence[Law]) -> list[float]:
    return [spread_of(term, law) ** 2 for term, law in zip(bound.terms, laws, strict=True)]


def _edges(bound: BoundQuery) -> tuple[object, ...]:
    bins = bound.groups[-1].keys
    return (bins[0][0], *(cell[1] for cell in bins))  # type: ignore[index]


def _position(edge: object) -> float:
    return float(edge)  # type: ignore[arg-type]


def tree_forecast(
    bound: BoundQuery, laws: Sequence[Law], rows: int | None = None, size: int | None = None
) -> Forecast:
    """Of counts below: their bars. Of quantiles: ranks, since values depend on the data."""
    assert bound.tree is not None  # noqa: S101
    variance, with_total = Fit.of(bound.tree.sizes, _level_variances(bound, laws)).spreads()

    def rank(share: float | None, confidence: float) -> float:
        return rank_half_width(
            variance, with_total, lambda level: reach_of(laws, level), share, confidence
        )

    if bound.statistic.kind == "quantiles":
        widest = max(rank(share, 0.95) for share in bound.statistic.shares)
        known = rows if rows is not None else size
        part = "" if not known else f", {100 * widest / known:.2g} % of {known:,}"
        note = f"ranks are known to +-{widest:,.0f} rows at 95 %{part}"
        return Forecast(None, lambda c: None, note, rank=rank)
    errors = np.sqrt(variance)
    if bound.statistic.kind == "cdf":
        errors = errors[_shown_edges(bound)]
    errors = np.broadcast_to(errors, (*bound.shape[:-1], len(errors)))
    return Forecast(errors, lambda c: reach_of(laws, c) * errors, rank=rank)
