"""Prices: what a statement's questions get, from credits, OPTIONS(epsilon=...) or WITHIN ...

Nothing here reads data: unit prices come from the promise and the schema, error bars from quotes,
sizes from what the asker states or has been answered before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sulq.accounting.calibration import SET_ASIDE, calibrate
from sulq.accounting.gaussian import gaussian_mu
from sulq.accounting.pricing import COARSE, fine_bits, finer, price, unit_cost
from sulq.errors import InvalidQuery
from sulq.oracle import Oracle, credits_text
from sulq.readings import Forecast, forecast, z_of
from sulq.schema.binding import BoundQuery, bind
from sulq.schema.promise import Promise
from sulq.sql.recipes import Mean, Plan, Public, Question, Total, Variance
from sulq.sql.select import Aggregate, Calculation, Constant, Output, aggregates_of


def bound_by(question: Question, oracle: Oracle) -> BoundQuery:
    """A question as the oracle will bind it."""
    fine = fine_bits(calibrate(oracle.promise))
    return bind(question, oracle.schema, oracle.promise.neighbours, fine=fine)


def unit_price(question: Question, oracle: Oracle) -> Fraction:
    """What a question costs at unit noise."""
    return unit_cost(bound_by(question, oracle), calibrate(oracle.promise))


def unit_prices(plan: Plan, oracle: Oracle) -> list[Fraction]:
    """What each question costs at unit noise."""
    return [unit_price(question, oracle) for question in plan.questions]


def shared_out(credits: Fraction, units: list[Fraction]) -> list[Fraction | None]:
    """Credits in proportion to unit prices: all noise is scaled alike. None: public and free."""
    total = sum(units, Fraction(0))
    return [credits * unit / total if unit else None for unit in units]


# --- OPTIONS(...) -------------------------------------------------------------------------------


def most_credits(
    options: Mapping[str, Fraction | str], promise: Promise, unit: str, max_rows: int
) -> Fraction | None:
    """What OPTIONS(...) allows a statement to spend; refuses what would loosen the promise."""
    _check_unit(options, unit, max_rows)
    delta = options.get("delta")
    if isinstance(delta, Fraction) and delta > promise.delta:
        raise InvalidQuery(
            f"delta={float(delta):g} would loosen the promise, whose delta is"
            f" {float(promise.delta):g}; leave it out or give less"
        )
    epsilon = options.get("epsilon")
    if not isinstance(epsilon, Fraction):
        return None
    if not 0 < epsilon <= promise.epsilon:
        raise InvalidQuery(
            f"epsilon={float(epsilon):g} must be above 0 and at most the promise's"
            f" {float(promise.epsilon):g}: options may only tighten"
        )
    calibration = calibrate(promise)
    if promise.noise in COARSE:
        raise InvalidQuery(f"{promise.noise} noise has one size; leave out epsilon")
    if promise.noise == "laplace":
        return epsilon * calibration.credits / promise.epsilon  # S4.13
    allowed = delta if isinstance(delta, Fraction) else promise.delta
    if allowed <= 0:
        raise InvalidQuery("delta must be above 0 under gaussian noise; leave it out")
    mu = gaussian_mu(epsilon, allowed * (1 - SET_ASIDE))  # TB.1
    return mu**2 * calibration.unit_variance


def _check_unit(options: Mapping[str, Fraction | str], unit: str, max_rows: int) -> None:
    column = options.get("privacy_unit_column")
    if isinstance(column, str) and column.casefold() != unit.casefold():
        protects = "rows" if unit == "row" else f"persons, by {unit!r:.60}"
        raise InvalidQuery(
            f"privacy_unit_column={column:.60}: this table protects {protects};"
            " its owner decides that; leave the option out"
        )
    most = options.get("max_groups_contributed")
    if isinstance(most, Fraction) and (most.denominator != 1 or most < 1):
        raise InvalidQuery("max_groups_contributed must be a whole number above 0")
    if isinstance(most, Fraction) and most < max_rows:
        raise InvalidQuery(
            f"max_groups_contributed={most}: up to {max_rows} rows of a person count here, as its"
            f" owner declared, each in a group of its own; leave it out or give {max_rows}"
        )


# --- WITHIN ... ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Forecasts:
    """Error bars of outputs before anything is asked, from those of a plan's questions."""

    plan: Plan
    bars: tuple[Forecast, ...]
    confidence: float
    matching: int | None  # rows expected to match

    def half_width(self, output: Output) -> float | None:
        """Of an output; None where it depends on the data."""
        if not aggregates_of(output):
            return 0.0
        if isinstance(output, Aggregate):
            recipe = self.plan.recipes[id(output)]
            if isinstance(recipe, Mean):
                return self._mean(recipe)
            if isinstance(recipe, Variance) and not recipe.root:
                return self._variance(recipe)
        weights = self.weights(output)
        return None if weights is None else self._linear(weights)

    def weights(self, output: Output) -> dict[int, float] | None:
        """An output as a linear form of the vector's terms; None if it is not one."""
        match output:
            case Aggregate():
                recipe = self.plan.recipes[id(output)]
                if isinstance(recipe, Public):
                    return {}
                return dict(recipe.parts) if isinstance(recipe, Total) else None
            case Calculation(operator="+" | "-" | "*" | "/" as sign, parts=(left, right)):
                return self._combined(sign, left, right)
            case Calculation(operator="negate" | "round", parts=(inner, *_)):
                found = self.weights(inner)
                side = -1.0 if output.operator == "negate" else 1.0
                return None if found is None else {k: side * w for k, w in found.items()}
            case Constant():
                return {}
        return None

    def _combined(self, sign: str, left: Output, right: Output) -> dict[int, float] | None:
        a, b = self.weights(left), self.weights(right)
        if a is None or b is None:
            return None
        if sign in "+-":
            side = 1.0 if sign == "+" else -1.0
            return {k: a.get(k, 0.0) + side * b.get(k, 0.0) for k in {*a, *b}}
        if isinstance(right, Constant):
            factor = _number(right)
            if sign == "/":
                factor = 1 / factor if factor else math.nan
            return {k: w * factor for k, w in a.items()}
        if isinstance(left, Constant) and sign == "*":
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

    def _variance(self, recipe: Variance) -> float | None:
        if not self.matching:
            return None
        errors, _ = self._terms()
        half = (recipe.mean.high - recipe.mean.low) / 2
        error = math.hypot(
            errors[recipe.squared],
            2 * half * errors[recipe.mean.centred],
            2.5 * half**2 * errors[recipe.mean.counted],
        )
        return z_of(self.confidence) * error / self.matching


def _number(constant: Constant) -> float:
    value = constant.value
    return float(value) if isinstance(value, int | Fraction) else math.nan


def intensity_for(
    plan: Plan,
    oracle: Oracle,
    wanted: Mapping[str, float],
    confidence: float,
    rows: int | None,
) -> list[Fraction | None]:
    """Credits that bring every named output down to its half-width."""
    calibration = calibrate(oracle.promise)
    bound = [bound_by(question, oracle) for question in plan.questions]
    units = [unit_cost(each, calibration) for each in bound]
    matching = rows if rows is not None else (None if plan.select.groups else oracle.size)
    power = 1 if oracle.promise.noise == "laplace" else 2
    intensity = Fraction(1)
    for _ in range(4):  # the law scales; one step is enough but for rounding
        bars = tuple(
            forecast(each, price(each, calibration, intensity).laws, rows, oracle.size)
            for each in bound
        )
        forecasts = Forecasts(plan, bars, confidence, matching)
        ratio = 0.0
        for item in plan.select.items:
            if item.name not in wanted:
                continue
            half = forecasts.half_width(item.of)
            if half is None or not math.isfinite(half):
                raise InvalidQuery(
                    f"no error bar can be promised for {item.name:.60}; state rows=..., put WITHIN"
                    " on counts, sums or averages alone, or use credits="
                )
            ratio = max(ratio, half / wanted[item.name])
        if ratio == 0 or (ratio <= 1 and intensity != 1):
            break
        intensity = finer(intensity * Fraction(ratio) ** power)
    return [unit * intensity if unit else None for unit in units]


def over(cap: Fraction, due: Fraction) -> InvalidQuery:
    return InvalidQuery(
        f"OPTIONS(epsilon=...) allows {credits_text(cap)}, this costs {credits_text(due)};"
        " raise epsilon up to the promise's, or ask for less"
    )
