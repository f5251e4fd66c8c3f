"""Regression: what each coordinate adds, and predicted against true numbers of public rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from sulq.errors import InvalidQuery
from sulq.learn.plot_parts import (
    BLUE,
    GREEN,
    GREY,
    Picture,
    altair,
    bars_with_errors,
    chart,
    finished,
    panel,
    weighed,
)

MOST_DOTS = 300


def regression(learner: Any, rows: Any = None, truth: Any = None) -> Picture:
    """Coefficients over the whole bounds; with public test rows, predictions beside them."""
    if (rows is None) != (truth is None):
        raise InvalidQuery("predicted against true needs both: plot(X_test, y_test)")
    alt = altair()
    keys = learner._features.keys
    _, widths = learner._features.units
    errors = getattr(learner, "coef_error_", None)
    values = np.ravel(learner.coef_) * widths
    spread = None if errors is None else np.ravel(errors) * widths
    records = weighed(keys, values, spread)
    across = "change over the whole bounds of a column"
    bars = bars_with_errors(records, across=across, colour=BLUE).properties(title=panel("columns"))
    drawn = bars
    if rows is not None:
        drawn = alt.hconcat(_predicted(learner, rows, truth), bars, spacing=36)
    said = (
        ["bars: 95 % intervals of the noise; pale where they hold 0"] if errors is not None else []
    )
    return finished(drawn, "LinearRegression", said)


def _predicted(learner: Any, rows: Any, truth: Any) -> Picture:
    alt = altair()
    found = np.asarray(learner.predict(rows), dtype=np.float64)
    true = np.asarray(truth, dtype=np.float64)
    if len(found) != len(true):
        raise InvalidQuery(f"got {len(found)} rows and {len(true)} labels; want as many of both")
    known = np.isfinite(true)
    found, true = found[known], true[known]
    kept = np.unique(np.linspace(0, len(true) - 1, min(len(true), MOST_DOTS)).astype(int))
    low, high = float(min(found.min(), true.min())), float(max(found.max(), true.max()))
    scale = alt.Scale(domain=[low, high], zero=False, nice=True)
    dots = (
        chart(
            [{"true": float(true[i]), "found": float(found[i])} for i in kept],
            width=260,
            height=260,
        )
        .mark_circle(size=18, opacity=0.45, color=GREEN)
        .encode(
            alt.X("true:Q", title="true", scale=scale, axis=alt.Axis(tickCount=5)),
            alt.Y("found:Q", title="predicted", scale=scale, axis=alt.Axis(tickCount=5)),
        )
    )
    same = (
        chart([{"true": low, "found": low}, {"true": high, "found": high}])
        .mark_line(color=GREY, strokeDash=[4, 4], strokeWidth=1)
        .encode(x="true:Q", y="found:Q")
    )
    square = float(((true - true.mean()) ** 2).sum())
    fit = 1 - float(((true - found) ** 2).sum()) / square if square else 0.0
    title = panel(f"on {len(true):,} public rows: R² {fit:.2f}")
    return alt.layer(dots, same).properties(title=title)
