"""PCA, SVD and factors: what each direction is made of, and which stand out of the noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from sulq.learn.features import Array
from sulq.learn.plot_parts import (
    BLUE,
    INK,
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
    errors = None if _word(learner) == "factor" else getattr(learner, "components_error_", None)
    reach = _reach(learner.components_[:count])
    panels = []
    for place in range(count):
        records = [
            {
                "name": key,
                **interval(value, None if errors is None else _at(errors, place, i, len(keys))),
            }
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
    longest = float(np.abs(loadings).max())
    if longest > 0.5:
        return max(1.0, float(np.ceil(longest)))
    return float(np.ceil(longest * 50) / 50) or 1.0


def _at(errors: Any, row: int, column: int, width: int) -> float:
    """A loading's standard error: its own, or its part of how far the direction is turned."""
    found = np.asarray(errors)
    if found.ndim == 2:
        return float(found[row, column])
    return float(found[row] / np.sqrt(max(width - 1, 1)))


def _word(learner: Any) -> str:
    return "factor" if type(learner).__name__ == "FactorAnalysis" else "component"


def _scree(learner: Any) -> Picture:
    """What lies along each direction; below the dashed edge it may be noise alone."""
    alt = altair()
    values, errors, title = _sizes(learner)
    edge = float(getattr(learner, "noise_edge_", 0.0) or 0.0) if title == "variance" else 0.0
    records = [
        {"number": place + 1, "sure": bool(value > edge),
         **interval(max(float(value), 0.0), None if errors is None else errors[place])}
        for place, value in enumerate(values)
    ]  # fmt: skip
    x = alt.X("number:O", title=_word(learner), axis=alt.Axis(labelAngle=0, ticks=False))
    y = alt.Y("value:Q", title=title, axis=alt.Axis(tickCount=5, format=".3~g"))
    base = chart(records, width=max(26 * len(values), 110), height=170)
    layers = [
        base.mark_bar(size=16, color=BLUE, cornerRadius=1.5).encode(
            x, y, opacity=alt.condition("datum.sure", alt.value(1.0), alt.value(0.35))
        )
    ]
    if errors is not None:
        layers.append(
            base.transform_filter("isValid(datum.low)")
            .mark_rule(color=INK, strokeWidth=1.3)
            .encode(x, alt.Y("low:Q"), alt.Y2("high:Q"))
        )
    if edge > 0:
        rule = chart([{"edge": edge}]).encode(alt.Y("edge:Q"))
        layers += [
            rule.mark_rule(color=ORANGE, strokeDash=[4, 3], strokeWidth=1.3),
            rule.mark_text(text="noise", color=ORANGE, align="left", dx=4, fontSize=10.5).encode(
                x=alt.value("width")
            ),
        ]
    return alt.layer(*layers).properties(title=panel("how much each explains"))


def _sizes(learner: Any) -> tuple[Array, Any, str]:
    """(how large each direction is, its standard error, what that is called)."""
    for name, title in (
        ("explained_variance_", "variance"),
        ("singular_values_", "singular value"),
    ):
        if hasattr(learner, name):
            return getattr(learner, name), getattr(learner, f"{name}error_", None), title
    return np.asarray((np.asarray(learner.components_) ** 2).sum(axis=1)), None, "variance"
