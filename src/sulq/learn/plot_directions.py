"""PCA, SVD and factors: what each direction is made of, and which stand out of the noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from sulq.learn.features import Array
from sulq.learn.plot_parts import (
    BLUE,
    ORANGE,
    PALETTE,
    Picture,
    altair,
    bars_with_errors,
    chart,
    finished,
    interval,
    panel,
)

MOST_SHOWN = 3


def directions(learner: Any, n_components: int | None = None) -> Picture:
    """Loadings of the first components (three, or as many as told) and the scree with its noise."""
    alt = altair()
    count = min(n_components or MOST_SHOWN, len(learner.components_))
    keys = learner._features.keys
    errors = getattr(learner, "components_error_", None)
    reach = _reach(learner.components_[:count])
    panels = []
    for place in range(count):
        records = [
            {"name": key, **interval(value, None if errors is None else _at(errors, place, i))}
            for i, (key, value) in enumerate(zip(keys, learner.components_[place], strict=True))
        ]
        panels.append(
            bars_with_errors(
                records,
                across="loading",
                colour=PALETTE[place % len(PALETTE)],
                width=180,
                reach=reach,
                labels=place == 0,
            ).properties(title=panel(f"{_word(learner)} {place + 1}"))
        )
    panels.append(_scree(learner))
    said = ["loadings of coordinates scaled by their bounds"]
    if errors is not None:
        said[0] += "; bars: 95 % intervals of the noise, pale where they hold 0"
    drawn = alt.hconcat(*panels, spacing=28).resolve_scale(x="independent", y="independent")
    return finished(drawn, f"{type(learner).__name__} of {len(keys)} coordinates", said)


def _reach(loadings: Array) -> float:
    """One scale for all panels: 1 for unit directions, else what the longest loading needs."""
    return max(1.0, float(np.ceil(np.abs(loadings).max() * 10) / 10))


def _at(errors: Any, row: int, column: int) -> float:
    """A standard error: one of each loading, or one of each component."""
    found = np.asarray(errors)
    if found.ndim == 2:
        return float(found[row, column])
    return float(found[row]) if found.ndim == 1 else float(found)


def _word(learner: Any) -> str:
    return "factor" if type(learner).__name__ == "FactorAnalysis" else "component"


def _scree(learner: Any) -> Picture:
    """The variance along each direction; below the dashed edge it may be noise alone."""
    alt = altair()
    values: Array = _variances(learner)
    edge = float(getattr(learner, "noise_edge_", 0.0) or 0.0)
    records = [
        {"number": place + 1, "value": max(float(value), 0.0), "sure": bool(value > edge)}
        for place, value in enumerate(values)
    ]
    x = alt.X("number:O", title=_word(learner), axis=alt.Axis(labelAngle=0, ticks=False))
    y = alt.Y("value:Q", title="variance", axis=alt.Axis(tickCount=5, format=".2g"))
    bars = (
        chart(records, width=max(26 * len(values), 110), height=170)
        .mark_bar(size=16, color=BLUE, cornerRadius=1.5)
        .encode(x, y, opacity=alt.condition("datum.sure", alt.value(1.0), alt.value(0.35)))
    )
    layers = [bars]
    if edge > 0:
        rule = chart([{"edge": edge}]).encode(alt.Y("edge:Q"))
        layers += [
            rule.mark_rule(color=ORANGE, strokeDash=[4, 3], strokeWidth=1.3),
            rule.mark_text(text="noise", color=ORANGE, align="left", dx=4, fontSize=10.5).encode(
                x=alt.value("width")
            ),
        ]
    return alt.layer(*layers).properties(title=panel("how much each explains"))


def _variances(learner: Any) -> Array:
    for name in ("explained_variance_", "singular_values_"):
        if hasattr(learner, name):
            found = np.asarray(getattr(learner, name), dtype=np.float64)
            return found if name == "explained_variance_" else found**2
    return np.asarray((np.asarray(learner.components_) ** 2).sum(axis=1))
