"""How much a wished error bar takes: from the question, the promise and public sizes; no data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from sulq.accounting.pricing import (
    Price,
    finer,
    least_intensity,
    noise_grid,
    positive,
    price,
    unit_cost,
)
from sulq.errors import InvalidQuery
from sulq.noise.distributions import Law
from sulq.readings import Forecast, forecast
from sulq.schema.binding import BoundQuery

if TYPE_CHECKING:
    from sulq.database.database import Database
    from sulq.database.deriving import Asker


def intensity_within(
    database: Database,
    bound: BoundQuery,
    within: float,
    confidence: float,
    rows: int | None,
    told: Callable[[Price], Sequence[Law]] | None = None,
) -> Fraction:
    """How many unit prices bring the half-width down to `within`; of quantiles, the rank's.

    `told`: the noise that is in the number told, where that is not what the price is of. V.4
    """
    target = positive(within, "within")
    if bound.statistic.kind == "quantiles" and target >= 1:
        raise InvalidQuery(
            f"within of quantiles is a share of the rows, such as 0.02, got {within!r:.40}: how far"
            " off the value itself is depends on how dense the rows lie there"
        )

    def widest(intensity: Fraction) -> Fraction:
        cost = price(bound, database.calibration, intensity)
        laws = cost.laws if told is None else told(cost)
        bar = forecast(bound, laws, rows, database.size)
        found = _widest(bound, bar, confidence, rows or database.size)
        if found is None:
            raise InvalidQuery("no error bar can be promised here; state rows=..., or use credits=")
        return found

    if noise_grid(database.calibration).whole:
        return least_intensity(lambda intensity: widest(intensity) <= target)
    power = 2 if database.promise.noise == "gaussian" else 1
    intensity = Fraction(1)
    for _ in range(4):  # the law scales; one step is enough but for rounding
        found = widest(intensity)
        if found <= target and intensity != 1:
            break
        intensity = finer(intensity * (found / target) ** power)
    return intensity


def bar_left(database: Database, bound: BoundQuery, asker: Asker) -> str | None:
    """Return the error bar that the credits left would buy, None if it depends on rows."""
    touched = list(database._charges(price(bound, database.calibration, Fraction(1))))
    left = database.ledger.remaining(asker.analyst, touched or None).credits_fraction
    try:
        spend = price(bound, database.calibration, left / unit_cost(bound, database.calibration))
        bar = forecast(bound, spend.laws, None, database.size)
    except InvalidQuery:
        return None
    widest = _widest(bound, bar, asker.confidence, database.size)
    if widest is None or bound.statistic.kind == "quantiles":
        return None
    return f"+-{float(widest):,.4g} at {100 * asker.confidence:g} %"


def _widest(
    bound: BoundQuery, bar: Forecast, confidence: float, matching: int | None
) -> Fraction | None:
    if bound.statistic.kind == "quantiles" and bar.rank is not None:
        ranks = [bar.rank(share, confidence) for share in bound.statistic.shares]
        return Fraction(max(ranks)) / matching if matching else None
    half = bar.half_width(confidence)
    return None if half is None else Fraction(float(np.max(half)))
