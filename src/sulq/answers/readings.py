"""From noisy integers to user units: values, standard errors and intervals. Post-processing only.

Floats start here. An interval states the noise's own law where the value is one sum (exact
quantiles of the discrete law) and Fieller's where it is a ratio: right at any count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sulq.answers.distribution import Distribution, Fit, rank_half_width, rising
from sulq.answers.error_bars import (
    Forecast,
    Interval,
    Reading,
    around,
    count_spread,
    reach_of,
    running_half_widths,
    spread_of,
    term_half_width,
)
from sulq.kernel.noise.intervals import (
    Form,
    combined,
    is_fine,
    ratio_interval,
    variance_interval,
    z_of,
)
from sulq.kernel.noise.intervals import half_width as sum_half_width
from sulq.kernel.noise.laws import DiscreteGaussian, Law
from sulq.kernel.query.statistics import CDF_BINS
from sulq.kernel.schema.bind import BoundQuery
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.persons import PersonSums
from sulq.kernel.schema.program import BinCells
from sulq.kernel.schema.ranges import World, narrowed_by, range_of, truth_of
from sulq.kernel.schema.trees import TreeSums


def tree_cdf(
    bound: BoundQuery, values: Sequence[int], laws: Sequence[Law], size: int | None
) -> Reading:
    """Counts below at most 128 steps of the range."""
    return _tree_below(bound, _trees(bound, values, laws, size), _shown_edges(bound))


def tree_distribution(
    bound: BoundQuery, values: Sequence[int], laws: Sequence[Law], size: int | None
) -> Reading:
    return _tree_below(bound, _trees(bound, values, laws, size), slice(None))


def _tree_below(bound: BoundQuery, found: NDArray[Any], shown: slice) -> Reading:
    """The counts below the edges of every tree; bars are for each of them by itself."""

    def stacked(rows: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        return np.array([row[shown] for row in rows]).reshape(*found.shape, -1)

    def interval(confidence: float) -> Interval:
        ends = [one.cdf(confidence) for one in found.flat]
        return stacked([low for low, _ in ends]), stacked([high for _, high in ends])

    edges = _tree_edges(bound)[shown]
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
    numbers = np.array([_tree_position(edge) for edge in _tree_edges(bound)])
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
    edges = [_tree_position(edge) for edge in _tree_edges(bound)]
    first, last = cells.edges[0], cells.edges[-1]
    unit = (edges[-1] - edges[0]) / (last - first)
    low, high = (edges[0] + (step - first) * unit for step in (found.low, found.high))
    return max(low, edges[0]), min(high, edges[-1 - bound.steps])


def _level_variances(bound: BoundQuery, laws: Sequence[Law]) -> list[float]:
    return [spread_of(term, law) ** 2 for term, law in zip(bound.terms, laws, strict=True)]


def _tree_edges(bound: BoundQuery) -> tuple[object, ...]:
    bins = bound.groups[-1].keys
    return (bins[0][0], *(cell[1] for cell in bins))  # type: ignore[index]


def _tree_position(edge: object) -> float:
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


# A tree of counts read: counts below, quantiles, and their bars before and after asking.


_rising = rising


def _estimates(bound: BoundQuery, values: Sequence[int]) -> NDArray[np.float64]:
    """The sums in user units, shaped (cells, terms)."""
    steps = [term.fine_step for term in bound.terms]
    exact = [float(value * steps[place % len(steps)]) for place, value in enumerate(values)]
    return np.array(exact, dtype=np.float64).reshape(-1, len(steps))


def read(
    bound: BoundQuery, values: Sequence[int], laws: Sequence[Law], size: int | None
) -> Reading:
    """What a question's noisy sums say, in user units; there are at most `size` rows."""
    size = most_counted(bound, size)
    match bound.statistic.kind:
        case "count":
            return _count(bound, values[0], laws[0], size)
        case "total":
            return _total(bound, values[0], laws[0], size)
        case "mean":
            return _mean(bound, values, laws)
        case "variance":
            return _variance(bound, values, laws)
        case "histogram":
            return _histogram(bound, values, laws[0], size)
        case "cdf":
            return _cdf(bound, values, laws, size)
        case "quantiles":
            return tree_quantiles(bound, values, laws, size)
        case "distribution":
            return tree_distribution(bound, values, laws, size)
        case "outer":
            return _outer(bound, values, laws[0])
    return _sums(bound, values, laws)


def most_counted(bound: BoundQuery, size: int | None) -> int | None:
    """How many there are of what is counted: of so many rows, or of their persons."""
    if size is not None and isinstance(bound.sums, PersonSums):
        return size // bound.sums.rows_each
    return size


def _count(bound: BoundQuery, value: int, law: Law, size: int | None) -> Reading:
    term = bound.terms[0]
    estimate = value * term.fine_step
    least, most = 0.0, math.inf
    if size is not None:  # of persons each counts for as much as the clip leaves
        least, most = size * min(0.0, float(term.low)), size * max(0.0, float(term.high))

    def interval(confidence: float) -> Interval:
        half = law.half_width(confidence) * term.fine_step
        low, high = around(estimate, half, least, most)
        return math.floor(low), math.ceil(high)

    return Reading(_nearest(estimate), count_spread(term, law), interval)


def _nearest(number: Fraction) -> int:
    return math.floor(number + Fraction(1, 2))


def _total(bound: BoundQuery, value: int, law: Law, size: int | None) -> Reading:
    term = bound.terms[0]
    estimate = float(value * term.fine_step)
    least, most = -math.inf, math.inf
    if size is not None:
        least, most = size * min(0.0, float(term.low)), size * max(0.0, float(term.high))

    def interval(confidence: float) -> Interval:
        low, high = around(estimate, term_half_width(term, law, confidence), least, most)
        return float(low), float(high)

    return Reading(estimate, spread_of(term, law), interval)


def _mean(bound: BoundQuery, values: Sequence[int], laws: Sequence[Law]) -> Reading:
    counted, summed = _estimates(bound, values)[0].tolist()
    errors = [spread_of(term, law) for term, law in zip(bound.terms, laws, strict=True)]
    middle = float(bound.terms[1].middle)
    low = float(bound.terms[1].low) + middle
    high = float(bound.terms[1].high) + middle

    def cut(x: float) -> float:
        return min(max(x, low), high)

    forms = _forms(bound, laws)

    def interval(confidence: float) -> Interval:
        if counted <= 0:
            return low, high
        found = ratio_interval(
            summed, forms[1], counted, forms[0], confidence, low - middle, high - middle
        )
        return cut(middle + found[0]), cut(middle + found[1])

    if counted <= 0:
        return Reading(cut(middle), high - low, interval)
    ratio = summed / counted
    error = math.hypot(errors[1], ratio * errors[0]) / counted
    return Reading(cut(middle + ratio), min(error, high - low), interval)


def _variance(bound: BoundQuery, values: Sequence[int], laws: Sequence[Law]) -> Reading:
    counted, summed, squared = _estimates(bound, values)[0].tolist()
    e0, e1, e2 = (spread_of(term, law) for term, law in zip(bound.terms, laws, strict=True))
    most = float((bound.terms[1].high - bound.terms[1].low) / 2) ** 2
    if counted <= 0:
        return Reading(most / 2, most, lambda confidence: (0.0, most))
    mean, square = summed / counted, squared / counted
    second = square + float(bound.terms[2].middle)
    bias = (e1**2 + (mean * e0) ** 2) / counted**2  # S0.8
    value = second - mean**2 + bias
    slope = second - 2 * mean**2 - float(bound.terms[2].middle)
    error = math.hypot(e2, 2 * mean * e1, slope * e0) / counted

    forms = _forms(bound, laws)
    shift = float(bound.terms[2].middle)
    whole = combined(forms[2], shift, forms[0])
    ends = float(bound.terms[1].low), float(bound.terms[1].high)

    def interval(confidence: float) -> Interval:
        sums = (counted, summed, squared + shift * counted)
        return variance_interval(sums, (forms[0], forms[1], whole), confidence, *ends)

    return Reading(min(max(value, 0.0), most), min(error, most), interval)


def _forms(bound: BoundQuery, laws: Sequence[Law]) -> list[Form]:
    """Each noisy sum as a draw of its own."""
    return [
        {place: (float(term.fine_step), law)}
        for place, (term, law) in enumerate(zip(bound.terms, laws, strict=True))
    ]


def _axes(bound: BoundQuery) -> tuple[object, ...]:
    if len(bound.groups) == 1:
        return bound.groups[0].keys
    return tuple(group.keys for group in bound.groups)


def _histogram(bound: BoundQuery, values: Sequence[int], law: Law, size: int | None) -> Reading:
    term = bound.terms[0]
    counts = _estimates(bound, values)[:, 0].reshape(bound.shape)
    most = math.inf if size is None else size * max(float(term.high), 1.0)

    def interval(confidence: float) -> Interval:
        half, near = term_half_width(term, law, confidence), np.clip(counts, 0, most)
        return np.clip(near - half, 0, most), np.clip(near + half, 0, most)

    return Reading(counts, np.full(bound.shape, spread_of(term, law)), interval, _axes(bound))


def _below(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate([[0.0], np.cumsum(counts)])


def _cdf(
    bound: BoundQuery, values: Sequence[int], laws: Sequence[Law], size: int | None
) -> Reading:
    if bound.tree is not None:
        return tree_cdf(bound, values, laws, size)
    raw = _below(_estimates(bound, values)[:, 0])
    errors = spread_of(bound.terms[0], laws[0]) * np.sqrt(np.arange(len(raw)))
    most = math.inf if size is None else size
    value = np.clip(rising(raw), 0, most)

    def interval(confidence: float) -> Interval:
        half = running_half_widths(bound.terms[0], laws[0], len(raw), confidence)
        low, high = rising(raw - half), rising(raw + half)
        return np.clip(np.minimum(low, value), 0, most), np.clip(np.maximum(high, value), 0, most)

    return Reading(value, errors, interval, _edges(bound))


def _edges(bound: BoundQuery) -> tuple[object, ...]:
    bins = bound.groups[-1].keys
    return (bins[0][0], *(cell[1] for cell in bins))  # type: ignore[index]


def _position(edge: object) -> float:
    return float(edge)  # type: ignore[arg-type]


def _inverse(
    rising: NDArray[np.float64], numbers: NDArray[np.float64], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Where the rising counts reach each share, by linear interpolation."""
    targets = shares * rising[-1]
    places = np.searchsorted(rising, targets, side="left").clip(1, len(rising) - 1)
    before, after = rising[places - 1], rising[places]
    gap = np.where(after > before, after - before, 1.0)
    part = np.clip((targets - before) / gap, 0.0, 1.0)
    found: NDArray[np.float64] = numbers[places - 1] + part * (
        numbers[places] - numbers[places - 1]
    )
    return found


def _sums(bound: BoundQuery, values: Sequence[int], laws: Sequence[Law]) -> Reading:
    shape = (*bound.shape, len(bound.terms))
    sums = _estimates(bound, values).reshape(shape)
    pairs = list(zip(bound.terms, laws, strict=True))
    errors = np.broadcast_to([spread_of(term, law) for term, law in pairs], shape)

    def interval(confidence: float) -> Interval:
        half = np.array([term_half_width(term, law, confidence) for term, law in pairs])
        return sums - half, sums + half

    return Reading(sums, errors, interval, _axes(bound) if bound.groups else ())


def _outer(bound: BoundQuery, values: Sequence[int], law: Law) -> Reading:
    """A matrix; a symmetric one is the mean of itself and its transpose."""
    term = bound.terms[0]
    sums = _estimates(bound, values).reshape(bound.shape)
    share = _outer_shares(bound)
    if _symmetric(bound):
        sums = (sums + sums.T) / 2

    def interval(confidence: float) -> Interval:
        half = _outer_half_width(bound, law, confidence)
        return sums - half, sums + half

    return Reading(sums, spread_of(term, law) * share, interval, _axes(bound))


def _symmetric(bound: BoundQuery) -> bool:
    return bound.outer is not None and bound.outer.symmetric


def _outer_shares(bound: BoundQuery) -> NDArray[np.float64]:
    """The standard error of each entry, in standard errors of one sum."""
    share = np.ones(bound.shape)
    if _symmetric(bound):  # the mean of two independent draws, but for the diagonal
        share += (math.sqrt(0.5) - 1) * (1 - np.eye(len(share)))
    return share


def _outer_half_width(bound: BoundQuery, law: Law, confidence: float) -> NDArray[np.float64]:
    """Gaussian draws average to a Gaussian. The mean of two fine draws is at least as close as one;
    not so on whole numbers, where it may lie between two of them: there by its own law. S2.6"""
    half = term_half_width(bound.terms[0], law, confidence)
    if isinstance(law, DiscreteGaussian):
        return half * _outer_shares(bound)
    found = np.full(bound.shape, half)
    if _symmetric(bound) and not is_fine(law):
        step = float(bound.terms[0].fine_step)
        mean = sum_half_width(((step / 2, law),) * 2, confidence)
        found = np.where(np.eye(len(found), dtype=bool), half, mean)
    return found


# --- before asking ------------------------------------------------------------------------------


def forecast(
    bound: BoundQuery, laws: Sequence[Law], rows: int | None, size: int | None
) -> Forecast:
    """The error bar a question will have, from public facts and what the asker states."""
    return replace(_forecast(bound, laws, rows, size), laws=tuple(laws))


def _forecast(
    bound: BoundQuery, laws: Sequence[Law], rows: int | None, size: int | None
) -> Forecast:
    pairs = list(zip(bound.terms, laws, strict=True))
    spreads = [spread_of(term, law) for term, law in pairs]
    match bound.statistic.kind:
        case "count" | "total" as kind:
            term, law = pairs[0]
            error = count_spread(term, law) if kind == "count" else spreads[0]
            return Forecast(error, lambda c: term_half_width(term, law, c))
        case "mean" | "variance":
            return _ratio_forecast(bound, spreads, rows, size)
        case "histogram":
            term, law = pairs[0]
            return Forecast(
                np.full(bound.shape, spreads[0]),
                lambda c: np.full(bound.shape, term_half_width(term, law, c)),
            )
        case "cdf" | "distribution" | "quantiles" if bound.tree is not None:
            return tree_forecast(bound, laws, rows, size)
        case "cdf":
            errors = spreads[0] * np.sqrt(np.arange(bound.cells + 1))
            return Forecast(
                errors, lambda c: running_half_widths(bound.terms[0], laws[0], bound.cells + 1, c)
            )
        case "outer":
            return Forecast(
                spreads[0] * _outer_shares(bound),
                lambda c: _outer_half_width(bound, laws[0], c),
                _rounding_note(bound, spreads[0], rows, size),
            )
    shape = (*bound.shape, len(bound.terms))
    return Forecast(
        np.broadcast_to(spreads, shape),
        lambda c: np.broadcast_to([term_half_width(t, law, c) for t, law in pairs], shape),
    )


def _rounding_note(bound: BoundQuery, spread: float, rows: int | None, size: int | None) -> str:
    """Says so when rounding coordinates to 2^-18 could add more than 1 % of the noise."""
    if bound.outer is None or not spread:
        return ""
    matching = rows if rows is not None else size and size * bound.outer.rows_each
    if not matching:
        return ""
    worst = matching * float(bound.outer.rounding)
    if worst <= spread / 100:
        return ""
    return f"rounding may add up to {worst:.3g}, {worst / spread:.0%} of the standard error"


def everybody(schema: Schema | None, size: int) -> str:
    """What is assumed of the public size where nobody says how many rows match."""
    if schema is None or schema.unit == "row":
        return f"assumes that all {size:,} rows match; state `rows`"
    return f"assumes {size:,} matching rows, one for each person; state `rows`"


def _ratio_forecast(
    bound: BoundQuery, spreads: list[float], rows: int | None, size: int | None
) -> Forecast:
    matching = rows if rows is not None else size
    if not matching:
        return Forecast(None, lambda c: None, "state `rows` (how many match) for an error bar")
    note = "" if rows is not None else everybody(bound.schema, matching)
    half_range = float((bound.terms[1].high - bound.terms[1].low) / 2)
    if bound.statistic.kind == "mean":
        error = math.hypot(spreads[1], half_range * spreads[0]) / matching
    else:
        slope = 2.5 * half_range**2
        error = math.hypot(spreads[2], 2 * half_range * spreads[1], slope * spreads[0]) / matching
    return Forecast(error, lambda c: z_of(c) * error, note)
