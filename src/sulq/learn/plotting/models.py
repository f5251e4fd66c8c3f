"""Classifiers: which coordinates speak for a class, and the ROC curve on public test rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from sulq.errors import InvalidQuery
from sulq.learn.features import Array
from sulq.learn.plotting.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PALETTE,
    Picture,
    Records,
    altair,
    bars_with_errors,
    chart,
    colours,
    finished,
    interval,
    panel,
    weighed,
    without_constants,
)

CORNERS = 200
"""At most this many corners of a curve are drawn."""
MOST_CLASSES = 8


def classifier(learner: Any, rows: Any = None, labels: Any = None) -> Picture:
    """Weights by coordinate; with public test rows and labels, the ROC curve beside them."""
    if (rows is None) != (labels is None):
        raise InvalidQuery("a ROC curve needs both: plot(X_test, y_test), of public rows")
    alt = altair()
    said = list(learner.notes_) if learner.majority_ is not None else []
    parts = []
    if rows is not None:
        parts.append(curve(learner, rows, labels))
    weights = None if learner.majority_ is not None else _weights(learner)
    if weights is not None:
        parts.append(weights)
    if not parts:
        parts.append(_shares(learner))
    drawn = alt.hconcat(*parts, spacing=36).resolve_scale(color="independent")
    return finished(drawn, type(learner).__name__, said)


# --- the curve ----------------------------------------------------------------------------------


def curve(learner: Any, rows: Any, labels: Any) -> Picture:
    """True against false positives as the threshold falls; one curve a class, or one for two."""
    alt = altair()
    truth = learner._codes(labels)
    scores = learner.predict_proba(rows)
    if len(truth) != len(scores):
        raise InvalidQuery(f"got {len(scores)} rows and {len(truth)} labels; want as many of both")
    places = [1] if len(learner.classes_) == 2 else range(len(learner.classes_))[:MOST_CLASSES]
    records: Records = []
    names = []
    for place in places:
        positive = truth == place
        if positive.all() or not positive.any():
            continue  # no curve without both kinds
        false, true = roc(scores[:, place], positive)
        area = float(np.trapezoid(true, false))
        names.append(f"{learner.classes_[place]} (area {area:.2f})")
        kept = _thinned(len(false))
        records += [
            {"class": names[-1], "false": float(false[i]), "true": float(true[i]), "order": i}
            for i in kept
        ]
    if not names:
        raise InvalidQuery("the test labels are all of one class; a ROC curve needs two")
    lines = (
        chart(records, width=260, height=260)
        .mark_line(strokeWidth=2, interpolate="linear", clip=True)
        .encode(
            alt.X("false:Q", title="false positives",
                  scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%", tickCount=5)),
            alt.Y("true:Q", title="true positives",
                  scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%", tickCount=5)),
            colours("class", names, orient="bottom", columns=2, labelLimit=240),
            order="order:Q",
        )
    )  # fmt: skip
    chance = (
        chart([{"false": 0, "true": 0}, {"false": 1, "true": 1}])
        .mark_line(color=GREY, strokeDash=[4, 4], strokeWidth=1)
        .encode(x="false:Q", y="true:Q")
    )
    return alt.layer(chance, lines).properties(title=panel(f"ROC on {len(truth):,} public rows"))


def roc(scores: Array, positive: Any) -> tuple[Array, Array]:
    """(false, true) positive rates at each threshold, ties together, from (0, 0) to (1, 1)."""
    order = np.argsort(-scores, kind="stable")
    hits = np.asarray(positive, dtype=np.float64)[order]
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(hits) - 1)
    true = np.cumsum(hits)[last]
    false = 1 + last - true
    return (
        np.append(0.0, false / max(false[-1], 1)),
        np.append(0.0, true / max(true[-1], 1)),
    )


def _thinned(count: int) -> list[int]:
    return sorted({round(place) for place in np.linspace(0, count - 1, min(count, CORNERS))})


# --- the weights --------------------------------------------------------------------------------


def _weights(learner: Any) -> Picture | None:
    """Bars of coef_, each times the width of its column's bounds so that they compare.

    What no row can show is taken out: a constant in all values of a Category, or in all classes.
    """
    found = getattr(learner, "coef_", None)
    if found is None:
        return _telling(learner) if hasattr(learner, "feature_log_prob_") else None
    _, widths = learner._features.units
    matrix = np.atleast_2d(found) * widths
    errors = getattr(learner, "coef_error_", None)
    keys = learner._features.keys
    classes = [learner.classes_[1]] if len(matrix) == 1 else list(learner.classes_)
    if len(matrix) > 1:
        return _many(without_constants(keys, matrix - matrix.mean(axis=0)), keys, classes)
    records = weighed(keys, matrix[0], None if errors is None else np.ravel(errors) * widths)
    return bars_with_errors(
        records, across=f"weight for {classes[0]}, over the whole bounds", colour=BLUE, width=260
    ).properties(title=panel("weights"))


def _many(matrix: Array, keys: tuple[str, ...], classes: list[Any]) -> Picture:
    """A field of coloured cells: coordinates down, classes across."""
    alt = altair()
    kept = np.sort(np.argsort(-np.abs(matrix).max(axis=0))[:24])
    most = float(np.abs(matrix).max()) or 1.0
    angle = -35 if max(len(str(name)) for name in classes) > 7 else 0
    records = [
        {"name": keys[i], "class": str(name), "value": float(matrix[row, i])}
        for row, name in enumerate(classes)
        for i in kept
    ]
    return (
        chart(records, width=alt.Step(46), height=alt.Step(20))
        .mark_rect(cornerRadius=2)
        .encode(
            alt.X("class:N", sort=None, title=None,
                  axis=alt.Axis(orient="top", labelAngle=angle, domain=False, ticks=False)),
            alt.Y("name:N", sort=None, title=None, axis=alt.Axis(domain=False, ticks=False)),
            alt.Color("value:Q", title="weight, over the whole bounds",
                      scale=alt.Scale(domain=[-most, 0, most],
                                      range=["#D55E00", "#F7F7F7", "#0072B2"]),
                      legend=alt.Legend(orient="bottom", gradientLength=180, format=".2g")),
        )
    )  # fmt: skip


def _telling(learner: Any) -> Picture:
    """Naive Bayes: how many bits each column tells of the class, by the learned tables."""
    prior = np.exp(learner.class_log_prior_)
    told = {
        attribute.name: information(prior, np.exp(table))
        for attribute, table in zip(learner.attributes_, learner.feature_log_prob_, strict=True)
    }
    means = getattr(learner, "theta_", None)
    if learner._gaussian is not None and means is not None:
        spread = np.sqrt(np.broadcast_to(learner.var_, np.shape(means)))
        for place, name in enumerate(learner._gaussian.keys):
            told[name] = information(prior, _bells(means[:, place], spread[:, place]))
    records = [{"name": name, "value": bits} for name, bits in told.items()]
    return bars_with_errors(
        sorted(records, key=lambda record: -record["value"]),
        across="bits a column tells of the class",
        width=260,
    ).properties(title=panel("columns"))


def information(prior: Array, table: Array) -> float:
    """Mutual information in bits of a class and a cell; `table` is classes x cells."""
    held = table / np.maximum(table.sum(axis=1, keepdims=True), 1e-300)
    overall = prior @ held
    ratio = np.where(held > 0, held, 1.0) / np.where(overall > 0, overall, 1.0)
    return float(max(0.0, (prior[:, None] * held * np.log2(np.where(held > 0, ratio, 1.0))).sum()))


def _bells(means: Array, spread: Array) -> Array:
    """Normal densities of each class on one fine grid."""
    least = np.maximum(spread, 1e-12)
    grid = np.linspace((means - 5 * least).min(), (means + 5 * least).max(), 400)
    return np.asarray(
        np.exp(-(((grid - means[:, None]) / least[:, None]) ** 2) / 2) / least[:, None]
    )


def _shares(learner: Any) -> Picture:
    """What is left when no column can be drawn: the noisy share of each class."""
    records = [
        {"name": str(name), "value": float(share)}
        for name, share in zip(learner.classes_, class_shares(learner), strict=True)
    ]
    return bars_with_errors(records, across="noisy share of the rows")


def class_shares(learner: Any) -> Array:
    """The noisy share of each class, from what the learner holds."""
    if hasattr(learner, "class_log_prior_"):
        held = np.exp(learner.class_log_prior_)
    else:
        held = np.maximum(np.atleast_2d(learner.counts_).sum(axis=0), 0.0)
    return np.asarray(held / max(float(held.sum()), 1e-300))


# PCA, SVD and factors: what each direction is made of, and which stand out of the noise.


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


# Clusters and mixtures: where the centres are, how many rows each holds, how sure that is.


RING_POINTS = 48


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
        ring = np.linspace(0, 2 * np.pi, RING_POINTS)
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


# Regression: what each coordinate adds, and predicted against true numbers of public rows.


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


# Rules by support and confidence; items by their score.


NAMED = 12
"""So many rules are named in the picture, the surest first."""
MOST_RULES = 400


def rules(learner: Any) -> Picture:
    """Each rule by the noisy share of rows that hold it all, and how often it is right."""
    alt = altair()
    records = [
        {
            "number": str(place + 1) if place < NAMED else "",
            "rule": f"{place + 1}  {arrow(rule)}",
            "support": float(rule.support),
            "confidence": float(rule.confidence),
            **_span(rule),
        }
        for place, rule in enumerate(learner.rules_[:MOST_RULES])
    ]
    base = chart(records, width=330, height=300)
    x = alt.X("support:Q", title="support: share of the rows", axis=alt.Axis(format="%"))
    scale = alt.Scale(zero=False, nice=True, padding=12)
    y = alt.Y("confidence:Q", title="confidence", axis=alt.Axis(format="%"), scale=scale)
    bars = base.mark_rule(color=GREY, strokeWidth=1).encode(
        x, alt.Y("low:Q", scale=scale), alt.Y2("high:Q")
    )
    dots = base.mark_circle(size=60, color=BLUE, opacity=0.85).encode(x, y)
    numbers = base.mark_text(align="left", dx=6, dy=-5, fontSize=10.5, color=INK).encode(
        x, y, text="number:N"
    )
    listed = (
        chart(records[:NAMED], width=10, height=alt.Step(18))
        .mark_text(align="left", fontSize=11, color=INK, limit=320)
        .encode(alt.Y("rule:N", sort=None, axis=None), x=alt.value(0), text="rule:N")
    )
    drawn = alt.hconcat(alt.layer(bars, dots, numbers), listed, spacing=20)
    said = [f"{len(learner.rules_)} rules; bars: 95 % intervals of the noise"]
    return finished(drawn, "AssociationRules", said)


def arrow(rule: Any) -> str:
    """bread & butter → jam"""
    return f"{' & '.join(rule.given)} → {' & '.join(rule.then)}"


def _span(rule: Any) -> dict[str, float]:
    half = 1.96 * float(rule.confidence_error)
    return {"low": max(rule.confidence - half, 0.0), "high": min(rule.confidence + half, 1.0)}


def links(learner: Any) -> Picture:
    """The items' scores, the highest first."""
    records: Records = [
        {"name": str(item), **interval(score, error)}
        for item, score, error in zip(
            learner.items_, learner.scores_, learner.scores_error_, strict=True
        )
    ]
    ordered = sorted(records, key=lambda record: -record["value"])
    said = ["scores add up to 1; bars: 95 % intervals of the noise"]
    return finished(bars_with_errors(ordered, across="score"), "LinkAnalysis", said)


def topics(learner: Any, count: int = 5) -> Picture:
    """The words that say most of each topic, with their chances."""
    records: Records = []
    for place, chances in enumerate(learner.word_given_topic_):
        errors = learner.word_given_topic_error_[place]
        for word in learner.top_words(count)[place]:
            at = int(np.flatnonzero(learner.words_ == word)[0])
            name = f"{place + 1}: {word}"
            records.append({"name": name, **interval(chances[at], errors[at])})
    shares = ", ".join(f"{share:.0%}" for share in learner.topic_shares_)
    said = [f"topics have shares {shares}; bars: 95 % intervals of the noise"]
    return finished(bars_with_errors(records, across="chance of the word"), "PLSI", said)


def words(learner: Any, count: int = 20) -> Picture:
    """The words that lie furthest along the first direction."""
    first = learner.word_vectors_[0]
    spread = learner.counts_error_ / max(float(learner.singular_values_[0]), 1e-300)
    records: Records = [
        {"name": str(learner.words_[at]), **interval(first[at], spread)}
        for at in np.argsort(-np.abs(first), kind="stable")[:count]
    ]
    said = ["first direction of the counts; bars: 95 % intervals of the noise"]
    return finished(bars_with_errors(records, across="coordinate"), "LSI", said)


def clauses(learner: Any) -> Picture:
    """A learner from statistical queries: its clauses in the order they are tried."""
    alt = altair()
    lines = learner.export_text().splitlines()
    said = [f"each share of rows is known within {learner.tau_:.3g}"]
    listed = (
        chart([{"line": f"{place + 1}  {line}"} for place, line in enumerate(lines)], width=420)
        .properties(height=alt.Step(22))
        .mark_text(align="left", fontSize=12, color=INK, limit=420)
        .encode(alt.Y("line:N", sort=None, axis=None), x=alt.value(0), text="line:N")
    )
    return finished(listed, type(learner).__name__, said)
