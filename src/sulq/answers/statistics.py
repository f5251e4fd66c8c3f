"""Every statistic: the sums it asks, and how their noisy values are read. Post-processing only.

A statistic is one class here (what is read) with one function (what is asked), and stands once in
`STATISTICS`. Floats start here. An interval states the noise's own law where the value is one sum
(exact quantiles of the discrete law) and Fieller's where it is a ratio: right at any count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sulq.answers.distribution import Distribution, Fit, rank_half_width, rising
from sulq.answers.error_bars import (
    Draw,
    Floats,
    Forecast,
    FreshNoise,
    Interval,
    MeasuredSums,
    Mixture,
    Noise,
    Reading,
    SharedNoise,
    around,
    reach_of,
    spread_of,
)
from sulq.errors import InvalidQuery
from sulq.kernel.noise.intervals import (
    Form,
    combined,
    correlation_interval,
    covariance_interval,
    draws_of,
    is_fine,
    ratio_interval,
    spread,
    variance_interval,
    z_of,
)
from sulq.kernel.noise.intervals import half_width as sum_half_width
from sulq.kernel.noise.laws import DiscreteGaussian, Law
from sulq.kernel.query import canonical
from sulq.kernel.query.expressions import (
    Column,
    Expression,
    Operation,
    as_expression,
    column_or_expression,
    lit,
    operation,
)
from sulq.kernel.query.sum_query import (
    Statistic,
    SumQuery,
    as_statistic,
    clip_of,
    counts_rows,
    group,
    is_tree,
    register_kind,
    rows_where,
)
from sulq.kernel.reuse.estimate import LinearEstimate
from sulq.kernel.schema.bind import BoundQuery, BoundTerm
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.program import BinCells
from sulq.kernel.schema.ranges import World, narrowed_by, range_of, truth_of
from sulq.kernel.schema.sensitivity import PersonSums
from sulq.kernel.schema.trees import TreeSums

CDF_BINS = 128
MOST_SHARES = 1_000
RESOLUTION = 1_024
"""Cells of a distribution unless told, or unless its lattice has fewer points: the noise of a
quantile grows with their logarithm only."""
FINEST = 65_536


class StatisticKind:
    """One kind of statistic: which sums it is read from, and how.

    A subclass says `kind`, its name on the wire, and implements `fits`, `read` and `forecast`.
    """

    kind: ClassVar[str]
    typed: ClassVar[str] = ""
    """How it is typed on the command line; empty where it is not."""
    values: ClassVar[int] = 1
    """How many values it takes there: `mean VALUE` has one."""
    counts: ClassVar[bool] = False
    """Whether its values count rows: whole numbers, and none truly negative."""
    axis: ClassVar[str] = ""
    """What its keys are called, where that is not the name of a column."""
    per_person: ClassVar[bool] = False
    """Whether it can be taken of each person first, clipped, and then be added up."""

    def fits(self, query: SumQuery) -> bool:
        """Return whether these sums can be read as this statistic."""
        raise NotImplementedError

    def check(self, statistic: Statistic) -> None:
        """Refuse a question whose sums cannot be read, before it is charged."""
        if not self.fits(statistic.query) or statistic.shares:
            raise _unreadable(self.kind)

    def read(self, sums: MeasuredSums) -> Reading:
        """Return the value that noisy sums give, with its error bars."""
        raise NotImplementedError

    def forecast(self, noise: FreshNoise, rows: int | None, size: int | None) -> Forecast:
        """Return the error bar before asking; `rows` match, of `size`, if that is known."""
        raise NotImplementedError

    def notes(
        self, bound: BoundQuery, reading: Reading, within: float | None, confidence: float
    ) -> list[str]:
        """Return what should be said where an answer tells less than was hoped for."""
        return []


def _unreadable(kind: str) -> InvalidQuery:
    made = [name for name in STATISTICS if name not in ("sums", "outer")]
    return InvalidQuery(
        f"the sums of this question are not those of a {kind}; make it with"
        f" {', '.join(made[:-1])} or {made[-1]}"
    )


def _axes(bound: BoundQuery) -> tuple[object, ...]:
    if len(bound.groups) == 1:
        return bound.groups[0].keys
    return tuple(group.keys for group in bound.groups)


# --- one sum ------------------------------------------------------------------------------------


class CountKind(StatisticKind):
    kind = "count"
    typed = "count, or count VALUE (rows where it is there)"
    counts = per_person = True

    def fits(self, query: SumQuery) -> bool:
        return counts_rows(query) and not query.groups

    def read(self, sums: MeasuredSums) -> Reading:
        estimate, noise = sums.exact(), sums.noise
        least, most = (0.0, math.inf) if sums.size is None else sums.limits()

        def interval(confidence: float) -> Interval:
            low, high = around(estimate, noise.half_width(0, confidence), least, most)
            return math.floor(low), math.ceil(high)

        return Reading(math.floor(estimate + Fraction(1, 2)), noise.count_spread(), interval)

    def forecast(self, noise: FreshNoise, rows: int | None, size: int | None) -> Forecast:
        return Forecast(noise.count_spread(), lambda c: float(noise.half_width(0, c)))


def count(x: Expression | str | None = None, where: Expression | None = None) -> Statistic:
    """Count rows; with `x`, count rows where `x` is not NULL."""
    value = None if x is None else column_or_expression(x)
    if isinstance(value, Operation) and value.name in canonical.CONDITIONS:
        raise InvalidQuery(
            "count(x) counts the rows where x is not NULL, and a condition is seldom NULL: to count"
            " the rows where it is true, write count(where=...)"
        )
    present = [] if value is None else [value.is_not_null()]
    return Statistic("count", SumQuery((lit(1),), rows_where(where, *present)))


class TotalKind(StatisticKind):
    kind = "total"
    typed = "total VALUE"
    per_person = True

    def fits(self, query: SumQuery) -> bool:
        return len(query.terms) == 1 and not query.groups

    def read(self, sums: MeasuredSums) -> Reading:
        estimate, noise, limits = float(sums.exact()), sums.noise, sums.limits()

        def interval(confidence: float) -> Interval:
            low, high = around(estimate, float(noise.half_width(0, confidence)), *limits)
            return float(low), float(high)

        return Reading(estimate, noise.spread(1.0), interval)

    def forecast(self, noise: FreshNoise, rows: int | None, size: int | None) -> Forecast:
        return Forecast(noise.spread(1.0), lambda c: float(noise.half_width(0, c)))


def total(x: Expression | str, where: Expression | None = None) -> Statistic:
    """Sum x; missing values add nothing."""
    return Statistic("total", SumQuery((column_or_expression(x),), rows_where(where)))


# --- ratios of sums -----------------------------------------------------------------------------


class MomentKind(StatisticKind):
    """A statistic of the mean of one or more functions of a row: sums divided by the count.

    Its first term counts the rows, and each of the others is centred at the middle of its range.
    """

    def error(self, noise: FreshNoise, half_range: float) -> float:
        """Return the standard error of the answer times the number of rows, at its largest.

        `half_range` is half the range of the first value.
        """
        raise NotImplementedError

    def forecast(self, noise: FreshNoise, rows: int | None, size: int | None) -> Forecast:
        matching = rows if rows is not None else size
        if not matching:
            return Forecast(None, lambda c: None, "state `rows` (how many match) for an error bar")
        note = "" if rows is not None else everybody(noise.bound.schema, matching)
        error = self.error(noise, _half_range(noise.bound.terms[1])) / matching
        return Forecast(error, lambda c: z_of(c) * error, note)

    def notes(
        self, bound: BoundQuery, reading: Reading, within: float | None, confidence: float
    ) -> list[str]:
        low, high = (float(np.max(end)) for end in reading.interval(confidence))
        if within is None or (high - low) / 2 <= 1.01 * within:
            return []
        return [
            f"asked for +-{within:g}, got +-{(high - low) / 2:.4g}: by chance, or fewer rows"
            " match than assumed; state how many with rows"
        ]


def _half_range(term: BoundTerm) -> float:
    return float((term.high - term.low) / 2)


def _ends(term: BoundTerm) -> tuple[float, float]:
    """The range of a term before it was centred."""
    return float(term.low) + float(term.middle), float(term.high) + float(term.middle)


def _is_asked(query: SumQuery, wanted: SumQuery) -> bool:
    """Return whether a query without groups or clip has these terms."""
    spelled = [[canonical.spelling(term) for term in each.terms] for each in (query, wanted)]
    return not query.groups and query.clip is None and spelled[0] == spelled[1]


def _centred(query: SumQuery, place: int) -> Expression | None:
    """Return what a term centres; None where it centres nothing."""
    term = query.terms[place] if place < len(query.terms) else None
    centred = isinstance(term, Operation) and term.name == "centred"
    return term.operands[0] if isinstance(term, Operation) and centred else None


class MeanKind(MomentKind):
    kind = "mean"
    typed = "mean VALUE"

    def fits(self, query: SumQuery) -> bool:
        x = _centred(query, 1)
        return x is not None and _is_asked(query, mean(x).query)

    def read(self, sums: MeasuredSums) -> Reading:
        (counted, summed), noise = sums.estimates()[0].tolist(), sums.noise
        term = sums.bound.terms[1]
        middle, (low, high) = float(term.middle), _ends(term)

        def cut(x: float) -> float:
            return min(max(x, low), high)

        def interval(confidence: float) -> Interval:
            if counted <= 0:
                return low, high
            forms = noise.form(0), noise.form(1)
            found = ratio_interval(
                summed, forms[1], counted, forms[0], confidence, low - middle, high - middle
            )
            return cut(middle + found[0]), cut(middle + found[1])

        if counted <= 0:
            return Reading(cut(middle), high - low, interval)
        ratio = summed / counted
        error = noise.spread(-ratio, 1.0) / counted
        return Reading(cut(middle + ratio), min(error, high - low), interval)

    def error(self, noise: FreshNoise, half_range: float) -> float:
        return noise.spread(half_range, 1.0)

    def notes(
        self, bound: BoundQuery, reading: Reading, within: float | None, confidence: float
    ) -> list[str]:
        if reading.interval(confidence) == _ends(bound.terms[1]):
            return ["too few rows match to tell"]
        return super().notes(bound, reading, within, confidence)


def mean(x: Expression | str, where: Expression | None = None) -> Statistic:
    """Average x over the rows where it is not NULL.

    Asked as one vector: the count, and the total of x minus the middle of its range.
    """
    value = column_or_expression(x)
    terms = (lit(1), operation("centred", value))
    return Statistic("mean", SumQuery(terms, rows_where(where, value.is_not_null())))


class VarianceKind(MomentKind):
    kind = "variance"
    typed = "variance VALUE"

    def fits(self, query: SumQuery) -> bool:
        x = _centred(query, 1)
        return x is not None and _is_asked(query, variance(x).query)

    def read(self, sums: MeasuredSums) -> Reading:
        (counted, summed, squared), noise = sums.estimates()[0].tolist(), sums.noise
        terms = sums.bound.terms
        most, shift = _half_range(terms[1]) ** 2, float(terms[2].middle)
        if counted <= 0:
            return Reading(most / 2, most, lambda confidence: (0.0, most))
        mean, square = summed / counted, squared / counted
        bias = (noise.spread(-mean, 1.0) / counted) ** 2  # S0.8
        value = square + shift - mean**2 + bias
        error = noise.spread(2 * mean**2 - square, -2 * mean, 1.0) / counted

        def interval(confidence: float) -> Interval:
            forms = noise.form(0), noise.form(1), combined(noise.form(2), shift, noise.form(0))
            whole = (counted, summed, squared + shift * counted)
            ends = float(terms[1].low), float(terms[1].high)
            return variance_interval(whole, forms, confidence, *ends)

        return Reading(min(max(value, 0.0), most), min(error, most), interval)

    def error(self, noise: FreshNoise, half_range: float) -> float:
        return noise.spread(2.5 * half_range**2, 2 * half_range, 1.0)


def variance(x: Expression | str, where: Expression | None = None) -> Statistic:
    """Return the variance of x where it is not NULL: count, centred total and centred square."""
    value = column_or_expression(x)
    from_middle = operation("centred", value)
    terms = (lit(1), from_middle, operation("centred", from_middle * from_middle))
    return Statistic("variance", SumQuery(terms, rows_where(where, value.is_not_null())))


@dataclass(frozen=True, slots=True, eq=False)
class PairSums:
    """The noisy count and totals of x, y, x y, and perhaps x^2 and y^2, with their draws.

    x and y are measured from the middles of their ranges; SQL reads its pairs from this, too.
    """

    numbers: tuple[float, ...]
    forms: tuple[Form, ...]
    x_range: tuple[float, float]
    y_range: tuple[float, float]

    @classmethod
    def of(cls, sums: MeasuredSums) -> PairSums:
        """Undo the centring of the products."""
        terms, noise = sums.bound.terms, sums.noise
        numbers, forms = sums.estimates()[0].tolist(), [noise.form(i) for i in range(len(terms))]
        for place, term in enumerate(terms[3:], 3):
            numbers[place] += float(term.middle) * numbers[0]
            forms[place] = combined(forms[place], float(term.middle), forms[0])
        x, y = ((float(term.low), float(term.high)) for term in terms[1:3])
        return cls(tuple(numbers), tuple(forms), x, y)

    @property
    def largest(self) -> float:
        """The largest covariance that there can be, by the ranges."""
        (low, high), (least, most) = self.x_range, self.y_range
        return (high - low) * (most - least) / 4

    def _form(self, weights: Mapping[int, float]) -> Form:
        found: Form = {}
        for place, weight in weights.items():
            found = combined(found, weight, self.forms[place])
        return found

    def _moment(self, x: int, y: int, xy: int) -> tuple[float, dict[int, float]]:
        """A covariance without the bias of its noise, and its slope in each sum."""
        n = self.numbers[0]
        a, b, product = (self.numbers[place] / n for place in (x, y, xy))
        draws = [draws_of(self._form(form)) for form in ({0: -a, x: 1.0}, {0: -b, y: 1.0})]
        both = combined(self._form({0: -a, x: 1.0}), 1.0, self._form({0: -b, y: 1.0}))
        apart = spread(draws[0]) ** 2 + spread(draws[1]) ** 2
        bias = (spread(draws_of(both)) ** 2 - apart) / 2 / n**2  # S0.8, of a product of two means
        slopes = {0: 2 * a * b - product, xy: 1.0}
        for place, other in ((x, b), (y, a)):
            slopes[place] = slopes.get(place, 0.0) - other
        return product - a * b + bias, {place: slope / n for place, slope in slopes.items()}

    def covariance(self) -> tuple[float, float]:
        """The covariance and its standard error; 0 and the largest where no row is seen."""
        if self.numbers[0] <= 0:
            return 0.0, self.largest
        value, slopes = self._moment(1, 2, 3)
        error = spread(draws_of(self._form(slopes)))
        return min(max(value, -self.largest), self.largest), min(error, self.largest)

    def correlation(self) -> tuple[float, float]:
        """The correlation and its standard error; 0 and 1 where noise hides a variance."""
        if self.numbers[0] <= 0:
            return 0.0, 1.0
        together, x, y = self._moment(1, 2, 3), self._moment(1, 1, 4), self._moment(2, 2, 5)
        if x[0] <= 0 or y[0] <= 0:
            return 0.0, 1.0
        root = math.sqrt(x[0]) * math.sqrt(y[0])
        value, weights = together[0] / root, dict[int, float]()
        parts = (1 / root, together), (-value / 2 / x[0], x), (-value / 2 / y[0], y)
        for factor, (_, slopes) in parts:
            for place, slope in slopes.items():
                weights[place] = weights.get(place, 0.0) + factor * slope
        error = spread(draws_of(self._form(weights)))
        return min(max(value, -1.0), 1.0), min(error, 1.0)

    def covariance_ends(self, confidence: float) -> tuple[float, float]:
        """The interval of the covariance."""
        if self.numbers[0] <= 0:
            return -self.largest, self.largest
        low, high = covariance_interval(
            self.numbers, self.forms, confidence, self.x_range, self.y_range
        )
        value, _ = self.covariance()
        return min(low, value), max(high, value)

    def correlation_ends(self, confidence: float) -> tuple[float, float]:
        """The interval of the correlation; all of [-1, 1] where noise hides a variance."""
        if self.numbers[0] <= 0:
            return -1.0, 1.0
        low, high = correlation_interval(
            self.numbers, self.forms, confidence, self.x_range, self.y_range
        )
        value, _ = self.correlation()
        return min(low, value), max(high, value)


class CovarianceKind(MomentKind):
    kind = "covariance"
    typed = "covariance VALUE VALUE"
    values = 2

    def fits(self, query: SumQuery) -> bool:
        x, y = _centred(query, 1), _centred(query, 2)
        return x is not None and y is not None and _is_asked(query, covariance(x, y).query)

    def read(self, sums: MeasuredSums) -> Reading:
        pair = PairSums.of(sums)
        return Reading(*pair.covariance(), pair.covariance_ends)

    def error(self, noise: FreshNoise, half_range: float) -> float:
        other = _half_range(noise.bound.terms[2])
        return noise.spread(3 * half_range * other, other, half_range, 1.0)


def covariance(
    x: Expression | str, y: Expression | str, where: Expression | None = None
) -> Statistic:
    """Return the covariance of x and y over the rows where neither is NULL.

    Asked as one vector: the count, and the totals of x, y and x y, each from its middle.
    """
    pair = column_or_expression(x), column_or_expression(y)
    return Statistic("covariance", SumQuery(_products(*pair), _both(where, *pair)))


class CorrelationKind(MomentKind):
    kind = "correlation"
    typed = "correlation VALUE VALUE"
    values = 2

    def fits(self, query: SumQuery) -> bool:
        x, y = _centred(query, 1), _centred(query, 2)
        return x is not None and y is not None and _is_asked(query, correlation(x, y).query)

    def read(self, sums: MeasuredSums) -> Reading:
        pair = PairSums.of(sums)
        return Reading(*pair.correlation(), pair.correlation_ends)

    def forecast(self, noise: FreshNoise, rows: int | None, size: int | None) -> Forecast:
        note = "the error bar depends on how widely both values vary; give `credits`"
        return Forecast(None, lambda c: None, note)

    def notes(
        self, bound: BoundQuery, reading: Reading, within: float | None, confidence: float
    ) -> list[str]:
        if reading.interval(confidence) == (-1.0, 1.0):
            return ["not known: the noise is as large as the variance of a value"]
        return super().notes(bound, reading, within, confidence)


def correlation(
    x: Expression | str, y: Expression | str, where: Expression | None = None
) -> Statistic:
    """Return Pearson's correlation of x and y over the rows where neither is NULL.

    Asked as the sums of `covariance`, and the totals of x^2 and y^2, as one vector.
    """
    pair = column_or_expression(x), column_or_expression(y)
    squares = [_products(value, value)[-1] for value in pair]
    terms = (*_products(*pair), *squares)
    return Statistic("correlation", SumQuery(terms, _both(where, *pair)))


def _products(x: Expression, y: Expression) -> tuple[Expression, ...]:
    """The terms of a covariance."""
    first, second = operation("centred", x), operation("centred", y)
    return lit(1), first, second, operation("centred", first * second)


def _both(where: Expression | None, x: Expression, y: Expression) -> Expression:
    return rows_where(where, x.is_not_null(), y.is_not_null())


# --- many sums ----------------------------------------------------------------------------------


class SumsKind(StatisticKind):
    """The sums of a `SumQuery` as they are, cell by cell and term by term."""

    kind = "sums"

    def fits(self, query: SumQuery) -> bool:
        return not any(group.tree for group in query.groups)

    def read(self, sums: MeasuredSums) -> Reading:
        bound, noise = sums.bound, sums.noise
        shape = (*bound.shape, len(bound.terms))
        values = sums.estimates().reshape(shape)

        def interval(confidence: float) -> Interval:
            half = noise.half_widths(confidence).reshape(shape)
            return values - half, values + half

        keys = _axes(bound) if bound.groups else ()
        return Reading(values, noise.spreads().reshape(shape), interval, keys)

    def forecast(self, noise: FreshNoise, rows: int | None, size: int | None) -> Forecast:
        shape = (*noise.bound.shape, len(noise.bound.terms))
        return Forecast(
            noise.spreads().reshape(shape), lambda c: noise.half_widths(c).reshape(shape)
        )


class OuterKind(StatisticKind):
    """A matrix; a symmetric one is the mean of itself and its transpose, where noise is fresh."""

    kind = "outer"

    def fits(self, query: SumQuery) -> bool:
        return query.outer is not None

    def read(self, sums: MeasuredSums) -> Reading:
        bound, noise = sums.bound, sums.noise
        matrix = sums.estimates().reshape(bound.shape)
        if _symmetric(noise):
            matrix = (matrix + matrix.T) / 2

        def interval(confidence: float) -> Interval:
            half = _entry_half_widths(noise, confidence)
            return matrix - half, matrix + half

        errors = noise.spreads().reshape(bound.shape) * _entry_shares(noise)
        return Reading(matrix, errors, interval, _axes(bound))

    def forecast(self, noise: FreshNoise, rows: int | None, size: int | None) -> Forecast:
        return Forecast(
            noise.spread(1.0) * _entry_shares(noise),
            lambda c: _entry_half_widths(noise, c),
            _rounding_note(noise, rows, size),
        )


def _symmetric(noise: Noise) -> bool:
    return noise.independent and noise.bound.outer is not None and noise.bound.outer.symmetric


def _entry_shares(noise: Noise) -> Floats:
    """The standard error of each entry, in standard errors of one sum."""
    share = np.ones(noise.bound.shape)
    if _symmetric(noise):  # the mean of two independent draws, but for the diagonal
        share += (math.sqrt(0.5) - 1) * (1 - np.eye(len(share)))
    return share


def _entry_half_widths(noise: Noise, confidence: float) -> Floats:
    """Gaussian draws average to a Gaussian. The mean of two fine draws is at least as close as one;
    not so on whole numbers, where it may lie between two of them: there by its own law. S2.6"""
    found = noise.half_widths(confidence).reshape(noise.bound.shape)
    if not _symmetric(noise):
        return found
    law, step = noise.laws[0], float(noise.bound.terms[0].fine_step)
    if isinstance(law, DiscreteGaussian):
        found = found * _entry_shares(noise)
    elif not is_fine(law):
        mean = sum_half_width(((step / 2, law),) * 2, confidence)
        found = np.where(np.eye(len(found), dtype=bool), found, mean)
    return found


def _rounding_note(noise: FreshNoise, rows: int | None, size: int | None) -> str:
    """Say so when rounding coordinates to 2^-18 could add more than 1 % of the noise."""
    outer, spread = noise.bound.outer, noise.spread(1.0)
    if outer is None or not spread:
        return ""
    matching = rows if rows is not None else size and size * outer.rows_each
    if not matching:
        return ""
    worst = matching * float(outer.rounding)
    if worst <= spread / 100:
        return ""
    return f"rounding may add up to {worst:.3g}, {worst / spread:.0%} of the standard error"


class HistogramKind(StatisticKind):
    kind = "histogram"
    typed = "histogram COLUMN[,COLUMN...] [--edges 0,18,65,120] [--other]"
    counts = per_person = True

    def fits(self, query: SumQuery) -> bool:
        trees = [group.tree for group in query.groups]
        return counts_rows(query) and bool(trees) and not any(trees)

    def read(self, sums: MeasuredSums) -> Reading:
        bound, noise = sums.bound, sums.noise
        counts = sums.estimates()[:, 0].reshape(bound.shape)
        highest = max(float(bound.terms[0].high), 1.0)
        most = math.inf if sums.size is None else sums.size * highest

        def interval(confidence: float) -> Interval:
            half, near = noise.half_widths(confidence), np.clip(counts, 0, most)
            half = half.reshape(bound.shape)
            return np.clip(near - half, 0, most), np.clip(near + half, 0, most)

        errors = noise.spreads().reshape(bound.shape)
        return Reading(counts, errors, interval, _axes(bound))

    def forecast(self, noise: FreshNoise, rows: int | None, size: int | None) -> Forecast:
        shape = noise.bound.shape
        return Forecast(
            noise.spreads().reshape(shape), lambda c: noise.half_widths(c).reshape(shape)
        )


def histogram(
    *columns: Expression | str,
    where: Expression | None = None,
    edges: Sequence[object] | Mapping[str, Sequence[object]] | None = None,
    other: bool = False,
) -> Statistic:
    """Count rows per declared value, or per [edge, next edge) of a Number (the last one closed).

    With several columns `edges` maps a Number's name to its edges. `other=True` adds a cell
    for NULL and undeclared values.
    """
    if not columns:
        raise InvalidQuery("histogram needs at least one column")
    read = [column_or_expression(column) for column in columns]
    groups = tuple(group(of, _edges_for(of, edges, len(read)), other=other) for of in read)
    return Statistic("histogram", SumQuery((lit(1),), rows_where(where), groups))


def _edges_for(
    of: Expression,
    edges: Sequence[object] | Mapping[str, Sequence[object]] | None,
    columns: int,
) -> Sequence[object] | None:
    if edges is None:
        return None
    if isinstance(edges, Mapping):
        return edges.get(of.name) if isinstance(of, Column) else None
    if columns > 1:
        raise InvalidQuery("with several columns give edges as {'column': [edges, ...]}")
    return edges


# --- counts below the edges of a number ---------------------------------------------------------


class CdfKind(StatisticKind):
    kind = "cdf"
    typed = "cdf VALUE [--edges ...]"
    counts = True

    def fits(self, query: SumQuery) -> bool:
        if len(query.groups) != 1 or not counts_rows(query) or query.clip is not None:
            return False
        only = query.groups[0]
        return only.tree or (only.edges is not None and not only.other)

    def read(self, sums: MeasuredSums) -> Reading:
        bound, noise = sums.bound, sums.noise
        if bound.tree is not None:
            return _counts_below(bound, _distributions(sums), _shown_edges(bound))
        raw = np.concatenate([[0.0], np.cumsum(sums.estimates()[:, 0])])
        most = math.inf if sums.size is None else sums.size
        value = np.clip(rising(raw), 0, most)

        def interval(confidence: float) -> Interval:
            half = noise.running_half_widths(confidence)
            low, high = np.minimum(rising(raw - half), value), np.maximum(rising(raw + half), value)
            return np.clip(low, 0, most), np.clip(high, 0, most)

        return Reading(value, noise.running_spreads(), interval, _edges(bound))

    def forecast(self, noise: FreshNoise, rows: int | None, size: int | None) -> Forecast:
        if noise.bound.tree is not None:
            return _tree_forecast(noise, _shown_edges(noise.bound))
        return Forecast(noise.running_spreads(), noise.running_half_widths)


def cdf(
    x: Expression | str,
    edges: Sequence[object] | None = None,
    where: Expression | None = None,
) -> Statistic:
    """Count the rows below each edge: non-decreasing counts, one histogram's price.

    Without edges: of `distribution(x)`, at up to 128 equal steps of the range.
    """
    if edges is None:
        return Statistic("cdf", distribution(x, where).query)
    return Statistic("cdf", SumQuery((lit(1),), rows_where(where), (group(x, edges),)))


class QuantilesKind(StatisticKind):
    kind = "quantiles"
    typed = "quantiles VALUE --shares 0.25,0.5,0.75 (in a plan: quantiles VALUE 0.25 0.5)"
    axis = "share"

    def fits(self, query: SumQuery) -> bool:
        return is_tree(query) and len(query.groups) == 1

    def check(self, statistic: Statistic) -> None:
        shares = statistic.shares
        if not self.fits(statistic.query) or not shares:
            raise _unreadable(self.kind)
        numbers = isinstance(shares, list | tuple) and all(
            isinstance(share, int | float) and not isinstance(share, bool) and 0 <= share <= 1
            for share in shares
        )
        if not numbers or len(shares) > MOST_SHARES:
            raise InvalidQuery(f"shares are at most {MOST_SHARES} numbers in [0, 1]")

    def read(self, sums: MeasuredSums) -> Reading:
        found = _distributions(sums)
        one, shares = found.item(), sums.bound.statistic.shares

        def interval(confidence: float) -> Interval:
            ends = [one.quantile_interval(share, confidence) for share in shares]
            return np.array([low for low, _ in ends]), np.array([high for _, high in ends])

        value = np.array([one.quantile(share) for share in shares])
        low, high = interval(0.6827)
        error = np.maximum(np.asarray(high) - np.asarray(low), np.diff(one.edges).min()) / 2
        return Reading(value, error, interval, shares, found)

    def forecast(self, noise: FreshNoise, rows: int | None, size: int | None) -> Forecast:
        """Ranks, since how far off a value is depends on the data."""
        rank = _tree_forecast(noise, slice(None)).rank
        assert rank is not None  # noqa: S101
        widest = max(rank(share, 0.95) for share in noise.bound.statistic.shares)
        known = rows if rows is not None else size
        part = "" if not known else f", {100 * widest / known:.2g} % of {known:,}"
        note = f"ranks are known to +-{widest:,.0f} rows at 95 %{part}"
        return Forecast(None, lambda c: None, note, rank=rank)

    def notes(
        self, bound: BoundQuery, reading: Reading, within: float | None, confidence: float
    ) -> list[str]:
        if within is None or reading.distributions is None:
            return []
        one = reading.distributions.item()
        ranks = [one.rank_error(share, confidence) for share in reading.keys]
        return [_rank_verdict(max(ranks), within)]


def _rank_verdict(reached: float, within: float) -> str:
    """Say whether quantiles are as exact in rank as was wished, by the noisy number of rows."""
    wish = f"ranks within {100 * within:.3g} % of the rows"
    if reached <= 1.01 * within:
        return f"{wish}: met"
    return (
        f"{wish}: not met, +-{100 * reached:.3g} %; fewer rows match than assumed; state how many"
        " with rows"
    )


def quantiles(
    x: Expression | str, shares: Iterable[float], where: Expression | None = None
) -> Statistic:
    """Return the values below which the given shares of the rows lie, from `distribution(x)`."""
    if isinstance(shares, str) or not isinstance(shares, Iterable):
        raise InvalidQuery(f"shares must be a list of numbers in [0, 1], got {shares!r:.60}")
    read: list[float] = []
    for share in shares:
        number = canonical.number_of(as_expression(share))
        if number is None or not 0 <= number <= 1:
            raise InvalidQuery(f"a share must be a number in [0, 1], got {share!r:.60}")
        read.append(float(number))
    if not 1 <= len(read) <= MOST_SHARES:
        raise InvalidQuery(f"want 1 to {MOST_SHARES} shares, got {len(read)}")
    return Statistic("quantiles", distribution(x, where).query, tuple(read))


class DistributionKind(StatisticKind):
    kind = "distribution"
    counts = True

    def fits(self, query: SumQuery) -> bool:
        return is_tree(query)

    def read(self, sums: MeasuredSums) -> Reading:
        return _counts_below(sums.bound, _distributions(sums), slice(None))

    def forecast(self, noise: FreshNoise, rows: int | None, size: int | None) -> Forecast:
        return _tree_forecast(noise, slice(None))


def distribution(
    x: Expression | str,
    where: Expression | None = None,
    by: Expression | str | Sequence[Expression | str] | None = None,
    resolution: int | None = None,
) -> Statistic:
    """The whole distribution of x, also per group: all quantiles for one histogram's price.

    Asked as a tree of counts over `resolution` equal cells of x's range. The value is how many
    rows lie below each edge; `Answer.distribution` has histogram, quantiles, median and ends.
    """
    cells = RESOLUTION if resolution is None else resolution
    if isinstance(cells, bool) or not isinstance(cells, int) or not 2 <= cells <= FINEST:
        raise InvalidQuery(f"resolution is a whole number from 2 to {FINEST}, got {cells!r:.60}")
    groups = () if by is None else (by,) if isinstance(by, str | Expression) else tuple(by)
    read = tuple(group(of) for of in groups)
    tree = group(x, bins=cells, tree=True)
    return Statistic("distribution", SumQuery((lit(1),), rows_where(where), (*read, tree)))


def _edges(bound: BoundQuery) -> tuple[object, ...]:
    bins = bound.groups[-1].keys
    return (bins[0][0], *(cell[1] for cell in bins))  # type: ignore[index]


def _positions(bound: BoundQuery) -> Floats:
    return np.array([float(edge) for edge in _edges(bound)])  # type: ignore[arg-type]


def _shown_edges(bound: BoundQuery) -> slice:
    """The edges that a CDF shows: equally spaced ones, so that it has at most 128 steps."""
    return slice(None, None, -(-len(bound.groups[-1].keys) // CDF_BINS))


def _counts_below(bound: BoundQuery, found: NDArray[Any], shown: slice) -> Reading:
    """The counts below the edges of every tree; bars are for each of them by itself."""

    def stacked(rows: list[Floats]) -> Floats:
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


def _distributions(sums: MeasuredSums) -> NDArray[Any]:
    """The distribution in every cell of the groups before the tree, by least squares."""
    bound, laws = sums.bound, sums.noise.laws
    tree = bound.tree
    assert tree is not None  # noqa: S101
    steps = tree.along([term.fine_step for term in bound.terms])
    nodes = np.array([float(v * steps[i % len(steps)]) for i, v in enumerate(sums.values)])
    variances = _level_variances(sums.noise)
    fit = Fit.of(tree.sizes, variances)
    variance, with_total = fit.spreads()
    numbers = _positions(bound)
    most = math.inf if sums.size is None else sums.size
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
    edges = _positions(bound).tolist()
    first, last = cells.edges[0], cells.edges[-1]
    unit = (edges[-1] - edges[0]) / (last - first)
    low, high = (edges[0] + (step - first) * unit for step in (found.low, found.high))
    return max(low, edges[0]), min(high, edges[-1 - bound.steps])


def _level_variances(noise: Noise) -> list[float]:
    pairs = zip(noise.bound.terms, noise.laws, strict=True)
    return [spread_of(term, law) ** 2 for term, law in pairs]


def _tree_forecast(noise: FreshNoise, shown: slice) -> Forecast:
    """The bars of the counts below the shown edges, and how far off a rank may be."""
    bound, laws = noise.bound, noise.laws
    assert bound.tree is not None  # noqa: S101
    variance, with_total = Fit.of(bound.tree.sizes, _level_variances(noise)).spreads()

    def rank(share: float | None, confidence: float) -> float:
        return rank_half_width(
            variance, with_total, lambda level: reach_of(laws, level), share, confidence
        )

    errors = np.sqrt(variance)[shown]
    errors = np.broadcast_to(errors, (*bound.shape[:-1], len(errors)))
    return Forecast(errors, lambda c: reach_of(laws, c) * errors, rank=rank)


# --- sums per person, and what `top` compares ---------------------------------------------------


def per_person(of: Statistic, clip: tuple[object, object]) -> Statistic:
    """A count, total or histogram per person: clipped to (low, high) for each, then added up.

    On a table of persons. One person moves the answer by the clip, however many rows they have.
    """
    if not isinstance(of, Statistic) or not kind_named(of.kind).per_person:
        raise InvalidQuery("per_person takes a count, a total or a histogram")
    return replace(of, query=replace(of.query, clip=clip_of(clip)))


def rows_held(clip: tuple[object, object]) -> Statistic:
    """Count the rows that persons have, cut to (low, high) for each: also rows beyond max_rows.

    `rows_held((4, 5))` less 4 of each person is how many persons have more than 4 rows.
    """
    return Statistic("count", SumQuery((lit(1),), clip=clip_of(clip), uncut=True))


def count_persons(where: Expression | None = None, by: Expression | str | None = None) -> Statistic:
    """Count the persons who have a row that makes `where` true; with `by`, in each of its cells."""
    rows = count(where=where) if by is None else histogram(by, where=where)
    return per_person(rows, (0, 1))


def ranked(of: Expression | str, by: object, edges: Sequence[object] | None) -> SumQuery:
    """What `top` compares: one count or total (rows, if `by` is None) in each cell of `of`. M.3"""
    asked = as_statistic(count() if by is None else by)
    query = asked.query
    if asked.kind not in ("count", "total", "sums") or query.groups or len(query.terms) != 1:
        raise InvalidQuery(f"top ranks by one count(...) or total(...), got {asked.kind}")
    if query.clip is not None:
        raise InvalidQuery(
            "top ranks by sums over rows, got a sum per person; ask for it in every cell"
            " (count_persons(by=...), or per_person of a histogram) and read off the largest"
        )
    return SumQuery(query.terms, query.rows, (group(of, edges),), table=query.table)


def everybody(schema: Schema | None, size: int) -> str:
    """What is assumed of the public size where nobody says how many rows match."""
    if schema is None or schema.unit == "row":
        return f"assumes that all {size:,} rows match; state `rows`"
    if schema.one_each:
        return f"assumes that all {size:,} persons match; state `rows`"
    return f"assumes {size:,} matching rows, one for each person; state `rows`"


# --- all of them --------------------------------------------------------------------------------


STATISTICS: dict[str, StatisticKind] = {
    statistic.kind: statistic
    for statistic in (
        SumsKind(),
        OuterKind(),
        CountKind(),
        TotalKind(),
        MeanKind(),
        VarianceKind(),
        CovarianceKind(),
        CorrelationKind(),
        HistogramKind(),
        CdfKind(),
        QuantilesKind(),
        DistributionKind(),
    )
}
for _kind, _statistic in STATISTICS.items():
    register_kind(_kind, _statistic.check)


def kind_named(kind: str) -> StatisticKind:
    """Return the statistic of this name; one that is not known here is read as plain sums."""
    return STATISTICS.get(kind, STATISTICS["sums"])


# From stored noisy integers to a reading: by the question's statistic, over its noise.

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
