"""Error bars of outputs before anything is asked: from laws, stated rows and declared bounds.

Nothing here reads data. Proofs: docs/proofs/error-bars.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from sulq.answers.error_bars import Forecast
from sulq.kernel.noise.intervals import z_of
from sulq.kernel.query.expressions import lit
from sulq.kernel.query.sum_query import Statistic, SumQuery
from sulq.sql.parse.select import (
    Aggregate,
    Calculation,
    ConstantOutput,
    Either,
    Output,
    OverGroups,
    Released,
    Scalar,
    Select,
    aggregates_of,
)
from sulq.sql.plan.plan import (
    Mean,
    PairNode,
    PersonsNode,
    Public,
    Quantile,
    Question,
    StatementPlan,
    TotalNode,
    VarianceNode,
)


@dataclass(frozen=True, slots=True)
class Forecasts:
    """Error bars of outputs before anything is asked, from those of a plan's questions."""

    plan: StatementPlan
    bars: tuple[Forecast, ...]
    confidence: float
    matching: int | None  # rows expected to match

    def half_width(self, output: Output) -> float | None:
        """Of an output; None where it depends on the data."""
        if not aggregates_of(output):
            return 0.0
        if isinstance(output, Released | Scalar):
            return self.half_width(output.of)
        if isinstance(output, Either):
            return self._widest(output)
        if isinstance(output, Aggregate):
            recipe = self.plan.recipes[id(output)]
            if isinstance(recipe, Mean):
                return self._mean(recipe)
            if isinstance(recipe, VarianceNode):
                return self._variance(recipe)
            if isinstance(recipe, PairNode):
                return self._pair(recipe)
            if isinstance(recipe, PersonsNode):
                half = self.bars[recipe.question].half_width(self.confidence)
                return float(np.asarray(half, dtype=np.float64).max())
        weights = self.weights(output)
        if weights is not None:
            return self._linear(weights) + _unit(output)
        return self._made(output) if isinstance(output, Calculation) else None

    def _widest(self, output: Either) -> float | None:
        """Of a column of a UNION: the widest bar in it. Sums of k cells have the noise of k."""
        widest = 0.0
        for option in output.options:
            half = self.half_width(option)
            if half is None:
                return None
            cells = [self.plan.cells.get(id(each), 1) for each in aggregates_of(option)]
            widest = max(widest, half * math.sqrt(max(cells, default=1)))
        return widest

    def rank(self, output: Output) -> float | None:
        """How far off the rank of a quantile by itself may be, in rows; None of anything else."""
        recipe = self.plan.quantile(output)
        rank = None if recipe is None else self.bars[recipe.question].rank
        return None if recipe is None or rank is None else rank(recipe.share, self.confidence)

    def _made(self, output: Calculation) -> float | None:
        """Of what is no linear form: ratios to a count of rows, and sums of what has a bar."""
        first, *rest = output.parts
        match output.operator:
            case "negate" | "abs" | "round":
                half = self.half_width(first)
                return None if half is None else half + _unit(output)
            case "+" | "-":
                each = replace(self, confidence=(1 + self.confidence) / 2)  # both hold together
                halves = [each.half_width(part) for part in output.parts]
                known = [half for half in halves if half is not None]
                return sum(known) if len(known) == len(halves) else None
            case "*" | "/":
                for one, other in ((first, rest[0]), (rest[0], first)):
                    factor = self._public(other)
                    if factor is not None and (output.operator == "*" or one is first):
                        half = self.half_width(one)
                        scale = factor if output.operator == "*" else 1 / factor if factor else None
                        return None if half is None or scale is None else abs(scale) * half
                return self._ratio(first, rest[0]) if output.operator == "/" else None
        return None

    def _public(self, output: Output) -> float | None:
        """A number that everybody knows, if it is one."""
        if isinstance(output, ConstantOutput):
            return _number(output)
        if isinstance(output, Aggregate):
            recipe = self.plan.recipes[id(output)]
            return float(recipe.value) if isinstance(recipe, Public) else None
        return None

    def _ratio(self, top: Output, bottom: Output) -> float | None:
        """A sum over the number of the rows: the true ratio r lies within declared bounds, and
        top - r bottom is noise alone. Its half-width is convex in r, so the ends decide. Fieller
        widens it by the share that the bottom's own noise may take."""
        inner = bottom.of if isinstance(bottom, OverGroups | Released) else bottom
        above, below, bounds = self.weights(top), self.weights(inner), self._bounds(top)
        if above is None or not below or bounds is None or not self.matching:
            return None
        if not isinstance(inner, Aggregate) or inner.kind != "count" or inner.where is not None:
            return None
        spare = 1 - self._linear(below) / self.matching
        if spare <= 0:
            return None
        halves = [
            self._linear({k: above.get(k, 0.0) - r * below.get(k, 0.0) for k in {*above, *below}})
            for r in bounds
        ]
        return max(halves) / self.matching / spare

    def _bounds(self, top: Output) -> tuple[float, float] | None:
        """Where a sum over the number of its rows lies: what one row can add."""
        match top:
            case Released(of=inner):
                return self._bounds(inner)
            case Aggregate():
                recipe = self.plan.recipes[id(top)]
                if isinstance(recipe, TotalNode):
                    return min(recipe.low, 0.0), max(recipe.high, 0.0)
            case Calculation(operator="*" | "/" as sign, parts=(left, right)):
                if sign == "*" and self._public(right) is None:
                    left, right = right, left
                bounds, factor = self._bounds(left), self._public(right)
                if bounds is not None and factor:
                    low, high = sorted(x * factor if sign == "*" else x / factor for x in bounds)
                    return low, high
            case Calculation(operator="+" | "-" as sign, parts=(left, right)):
                first, second = self._bounds(left), self._bounds(right)
                if first is not None and second is not None:
                    low, high = second if sign == "+" else (-second[1], -second[0])
                    return first[0] + low, first[1] + high
        return None

    def weights(self, output: Output) -> dict[int, float] | None:
        """An output as a linear form of the vector's terms; None if it is not one."""
        match output:
            case Released(of=inner):
                return self.weights(inner)
            case Aggregate():
                recipe = self.plan.recipes[id(output)]
                if isinstance(recipe, Public):
                    return {}
                return dict(recipe.parts) if isinstance(recipe, TotalNode) else None
            case Calculation(operator="+" | "-" | "*" | "/" as sign, parts=(left, right)):
                return self._combined(sign, left, right)
            case Calculation(operator="negate" | "round", parts=(inner, *_)):
                found = self.weights(inner)
                side = -1.0 if output.operator == "negate" else 1.0
                return None if found is None else {k: side * w for k, w in found.items()}
            case ConstantOutput():
                return {}
        return None

    def _combined(self, sign: str, left: Output, right: Output) -> dict[int, float] | None:
        a, b = self.weights(left), self.weights(right)
        if a is None or b is None:
            return None
        if sign in "+-":
            side = 1.0 if sign == "+" else -1.0
            return {k: a.get(k, 0.0) + side * b.get(k, 0.0) for k in {*a, *b}}
        if isinstance(right, ConstantOutput):
            factor = _number(right)
            if sign == "/":
                factor = 1 / factor if factor else math.nan
            return {k: w * factor for k, w in a.items()}
        if isinstance(left, ConstantOutput) and sign == "*":
            return {k: w * _number(left) for k, w in b.items()}
        return None

    def _terms(self) -> tuple[list[float], list[float]]:
        """Standard error and half-width of every term, the same in every cell."""
        known: dict[int, tuple[list[float], list[float]]] = {}
        for question in {question for question, _ in self.plan.places}:
            bar = self.bars[question]
            halves = np.asarray(bar.half_width(self.confidence), dtype=np.float64)
            errors = np.asarray(bar.standard_error, dtype=np.float64)
            terms = halves.shape[-1]
            known[question] = (
                errors.reshape(-1, terms).max(axis=0).tolist(),
                halves.reshape(-1, terms).max(axis=0).tolist(),
            )
        return (
            [known[question][0][at] for question, at in self.plan.places],
            [known[question][1][at] for question, at in self.plan.places],
        )

    def _linear(self, weights: dict[int, float]) -> float:
        used = {place: weight for place, weight in weights.items() if weight}
        if not used:
            return 0.0
        errors, halves = self._terms()
        if len(used) == 1:
            ((place, weight),) = used.items()
            return abs(weight) * halves[place]
        return z_of(self.confidence) * math.hypot(*(w * errors[p] for p, w in used.items()))

    def _mean(self, recipe: Mean) -> float | None:
        if not self.matching:
            return None
        errors, _ = self._terms()
        half_range = (recipe.high - recipe.low) / 2
        error = math.hypot(errors[recipe.centred], half_range * errors[recipe.counted])
        return z_of(self.confidence) * error / self.matching

    def _variance(self, recipe: VarianceNode) -> float | None:
        if not self.matching:
            return None
        errors, _ = self._terms()
        half = (recipe.mean.high - recipe.mean.low) / 2
        error = math.hypot(
            errors[recipe.squared],
            2 * half * errors[recipe.mean.centred],
            2.5 * half**2 * errors[recipe.mean.counted],
        )
        half = z_of(self.confidence) * error / self.matching
        return math.sqrt(half) if recipe.root else half  # |sqrt(v + h) - sqrt(v)| <= sqrt(h)

    def _pair(self, recipe: PairNode) -> float | None:
        if not self.matching or recipe.correlation:
            return None
        errors, _ = self._terms()
        x, y = ((high - low) / 2 for low, high in (recipe.x_range, recipe.y_range))
        error = math.hypot(
            errors[recipe.products[0][0]],
            y * errors[recipe.totals[0]],
            x * errors[recipe.totals[1]],
            3 * x * y * errors[recipe.counted],
        )
        return z_of(self.confidence) * error / self.matching


MANY = 1_000_000_000
"""Rows of which a bar is taken to see whether it hangs on their number."""


def is_sized(plan: StatementPlan, bars: tuple[Forecast, ...], output: Output) -> bool:
    """Return True if an output's bar is narrower the more rows match."""
    half, less = (Forecasts(plan, bars, 0.95, n).half_width(output) for n in (MANY, 2 * MANY))
    return half is not None and half != less


def size_question(plan: StatementPlan, outputs: Sequence[Output]) -> SumQuery | None:
    """Return the count, by the statement's groups, of the rows behind the first figure whose error
    hangs on their number; None where there is no such figure."""
    counts: SumQuery | None = None
    for aggregate in (each for output in outputs for each in aggregates_of(output)):
        recipe = plan.recipes[id(aggregate)]
        if isinstance(recipe, Quantile):
            query = query_of(plan.questions[recipe.question])
            return SumQuery(query.terms[:1], query.rows, query.groups[:-1])
        if isinstance(recipe, Mean | VarianceNode | PairNode):
            base = recipe.mean if isinstance(recipe, VarianceNode) else recipe
            question, term = plan.places[base.counted]
            query = query_of(plan.questions[question])
            return SumQuery((query.terms[term],), query.rows, query.groups, clip=query.clip)
        if isinstance(recipe, TotalNode) and recipe.parts and counts is None:
            question, _ = plan.places[recipe.parts[0][0]]
            query = query_of(plan.questions[question])
            counts = SumQuery((lit(1),), query.rows, query.groups)
    return counts


def query_of(question: Question) -> SumQuery:
    return question.query if isinstance(question, Statistic) else question


def cells_of(select: Select) -> int:
    """How many groups a SELECT of rows shows, without those of other or missing values."""
    cells = 1
    for grouping in select.groups:
        cells *= max(1, sum(grouping.labels[at] is not None for at in grouping.shown))
    return cells


def _unit(output: Output) -> float:
    """What rounding may add: the interval's ends move to the last digit."""
    if isinstance(output, Calculation) and output.operator == "round":
        digits = output.parts[1]
        return math.pow(10.0, -_number(digits)) if isinstance(digits, ConstantOutput) else 0.0
    return 0.0


def _number(constant: ConstantOutput) -> float:
    value = constant.value
    return float(value) if isinstance(value, int | Fraction) else math.nan
