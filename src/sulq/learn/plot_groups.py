"""Clusters and mixtures: where the centres are, how many rows each holds, how sure that is."""

from __future__ import annotations

from typing import Any

import numpy as np

from sulq.errors import InvalidQuery
from sulq.learn.features import Array
from sulq.learn.plot_parts import (
    INK,
    PALETTE,
    Picture,
    Records,
    altair,
    chart,
    finished,
)

CORNERS = 48


def groups(learner: Any, x: str | None = None, y: str | None = None) -> Picture:
    """Centres on two coordinates (those that part them most), and the whole of each centre."""
    alt = altair()
    centres, shares, spread = _learned(learner)
    keys = list(learner._features.keys)
    first, second = _axes(learner, centres, shares, keys, x, y)
    scatter = _scatter(learner, centres, shares, spread, keys, first, second)
    drawn = scatter
    if len(keys) > 2:
        drawn = alt.hconcat(scatter, _profile(learner, centres, keys), spacing=30)
    drawn = drawn.resolve_scale(color="independent", size="independent")
    said = ["the area of a circle is the noisy share of the rows"]
    if spread is not None:
        said = [f"{said[0]}; an ellipse {_of_what(learner)}"]
    name = "clusters" if type(learner).__name__ == "KMeans" else "components"
    return finished(drawn, f"{type(learner).__name__}: {len(centres)} {name}", said)


def _of_what(learner: Any) -> str:
    if hasattr(learner, "covariances_"):
        return "holds two deviations of its rows"
    return "is where its centre lies with 95 %"


def _learned(learner: Any) -> tuple[Array, Array, Array | None]:
    """(centres in user units, shares, half axes of an ellipse in user units)."""
    if hasattr(learner, "covariances_"):
        return learner.means_, learner.weights_, _spreads(learner)
    errors = np.asarray(learner.centers_error_)
    if errors.ndim == 1:
        errors = errors[:, None] * np.ones_like(learner.cluster_centers_)
    # 95 % of a normal cloud in the plane lie within 2.45 deviations
    return learner.cluster_centers_, learner.shares_, 2.45 * errors if errors.any() else None


def _spreads(learner: Any) -> Array:
    found = np.asarray(learner.covariances_)
    variances = np.diagonal(found, axis1=1, axis2=2) if found.ndim == 3 else found
    return np.asarray(2 * np.sqrt(np.maximum(variances, 0)))


def _axes(
    learner: Any, centres: Array, shares: Array, keys: list[str], x: str | None, y: str | None
) -> tuple[int, int]:
    for name in (x, y):
        if name is not None and name not in keys:
            raise InvalidQuery(f"no coordinate {name!r:.40}; there are {keys[:20]}")
    _, widths = learner._features.units
    weights = np.maximum(shares, 0) / max(float(np.maximum(shares, 0).sum()), 1e-9)
    scaled = centres / widths
    between = (weights[:, None] * (scaled - weights @ scaled) ** 2).sum(axis=0)
    order = [int(place) for place in np.argsort(-between)]
    first = (
        keys.index(x)
        if x is not None
        else next(place for place in order if y is None or keys[place] != y or len(keys) == 1)
    )
    if y is not None:
        return first, keys.index(y)
    return first, next((place for place in order if place != first), first)


def _scatter(
    learner: Any, centres: Array, shares: Array, spread: Array | None, keys: list[str],
    first: int, second: int,
) -> Picture:  # fmt: skip
    alt = altair()
    records: Records = [
        {"number": str(i), "x": float(c[first]), "y": float(c[second]), "share": float(max(s, 0)),
         "text": f"{i} · {max(s, 0):.0%}"}
        for i, (c, s) in enumerate(zip(centres, shares, strict=True))
    ]  # fmt: skip
    across = alt.X("x:Q", title=keys[first], scale=alt.Scale(zero=False, nice=True, padding=24))
    down = alt.Y("y:Q", title=keys[second], scale=alt.Scale(zero=False, nice=True, padding=24))
    shade = _shade(len(centres))
    base = chart(records, width=300, height=300)
    circles = base.mark_circle(opacity=0.4).encode(
        across, down, shade,
        alt.Size("share:Q", scale=alt.Scale(domain=[0, 1], range=[0, 6000]), legend=None),
    )  # fmt: skip
    layers = [circles, base.mark_circle(size=5, opacity=1).encode(across, down, shade)]
    if spread is not None and first != second:
        ring = np.linspace(0, 2 * np.pi, CORNERS)
        ellipses = [
            {"number": str(i), "x": float(c[first] + s[first] * np.cos(t)),
             "y": float(c[second] + s[second] * np.sin(t)), "order": n}
            for i, (c, s) in enumerate(zip(centres, spread, strict=True))
            for n, t in enumerate(ring)
        ]  # fmt: skip
        layers.append(
            chart(ellipses).mark_line(strokeWidth=1.5).encode(across, down, shade, order="order:Q")
        )
    texts = base.mark_text(fontSize=11, color=INK, dy=-4, align="left", dx=9, baseline="bottom")
    return alt.layer(*layers, texts.encode(across, down, text="text:N"))


def _shade(count: int) -> Any:
    alt = altair()
    names = [str(place) for place in range(count)]
    shades = [PALETTE[place % len(PALETTE)] for place in range(count)]
    return alt.Color("number:N", scale=alt.Scale(domain=names, range=shades), legend=None)


def _profile(learner: Any, centres: Array, keys: list[str]) -> Picture:
    """Every centre in user units; the shade says where it lies among the centres."""
    alt = altair()
    low, high = centres.min(axis=0), centres.max(axis=0)
    reach = np.where(high > low, high - low, 1.0)
    kept = range(len(keys))[:20]
    records = [
        {"coordinate": keys[j], "number": str(i), "place": float((c[j] - low[j]) / reach[j]),
         "text": f"{c[j]:,.0f}" if abs(c[j]) >= 100 else f"{c[j]:.2g}"}
        for i, c in enumerate(centres)
        for j in kept
    ]  # fmt: skip
    base = chart(records, width=alt.Step(52), height=alt.Step(22)).encode(
        alt.X("number:N", sort=None, title="cluster" if len(centres) else None,
              axis=alt.Axis(orient="top", labelAngle=0, domain=False, ticks=False)),
        alt.Y("coordinate:N", sort=None, title=None, axis=alt.Axis(domain=False, ticks=False)),
    )  # fmt: skip
    cells = base.mark_rect(cornerRadius=2, stroke="white").encode(
        alt.Color(
            "place:Q", scale=alt.Scale(domain=[0, 1], range=["#F4F8FB", "#6BAED6"]), legend=None
        )
    )
    return alt.layer(cells, base.mark_text(fontSize=10.5, color=INK).encode(text="text:N"))
