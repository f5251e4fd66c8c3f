"""Charts of models, drawn from their summaries: one function for each kind of summary."""

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
from sulq.learn.summaries import (
    ClassColumns,
    ClassShares,
    ClassTest,
    Clauses,
    Coefficients,
    Directions,
    Groups,
    ItemScores,
    NumberCoefficients,
    NumberTest,
    RuleList,
    Summary,
    Topics,
    WordVectors,
    rule_text,
)

CORNERS = 200
"""At most this many corners of a curve are drawn."""
MOST_CLASSES = 8


def classifier(summary: Summary, test: ClassTest | None = None) -> Picture:
    """Weights by coordinate; with public test rows and labels, the ROC curve beside them."""
    parts = [] if test is None else [roc_curve(test)]
    if isinstance(summary, Coefficients):
        parts.append(_weights(summary))
    elif isinstance(summary, ClassColumns):
        parts.append(_columns(summary))
    elif isinstance(summary, ClassShares) and not parts:
        parts.append(bars_with_errors(_share_bars(summary), across="noisy share of the rows"))
    drawn = altair().hconcat(*parts, spacing=36).resolve_scale(color="independent")
    return finished(drawn, summary.name, list(summary.notes))


def _share_bars(summary: ClassShares) -> Records:
    return [{"name": line["class"], "value": line["share"]} for line in summary.records()]


# --- the curve ----------------------------------------------------------------------------------


def roc_curve(test: ClassTest) -> Picture:
    """True against false positives as the threshold falls; one curve a class, or one for two."""
    alt = altair()
    truth = test.truth
    places = [1] if len(test.classes) == 2 else range(len(test.classes))[:MOST_CLASSES]
    records: Records = []
    names = []
    for place in places:
        positive = truth == place
        if positive.all() or not positive.any():
            continue  # no curve without both kinds
        false, true = roc(test.chances[:, place], positive)
        area = float(np.trapezoid(true, false))
        names.append(f"{test.classes[place]} (area {area:.2f})")
        kept = _thinned(len(false))
        records += [
            {"class": names[-1], "false": float(false[i]), "true": float(true[i]), "order": i}
            for i in kept
        ]
    if not names:
        raise InvalidQuery("the test labels are all of one class; a ROC curve needs two")
    unit, percent = alt.Scale(domain=[0, 1]), alt.Axis(format="%", tickCount=5)
    lines = (
        chart(records, width=260, height=260)
        .mark_line(strokeWidth=2, interpolate="linear", clip=True)
        .encode(
            alt.X("false:Q", title="false positives", scale=unit, axis=percent),
            alt.Y("true:Q", title="true positives", scale=unit, axis=percent),
            colours("class", names, orient="bottom", columns=2, labelLimit=240),
            order="order:Q",
        )
    )
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


def _weights(summary: Coefficients) -> Picture:
    """Bars of coefficients, each times the width of its column's bounds so that they compare.

    What no row can show is taken out: a constant in all values of a Category, or in all classes.
    """
    matrix = summary.matrix * summary.widths
    if len(matrix) > 1:
        shown = without_constants(summary.keys, matrix - matrix.mean(axis=0))
        return _many(shown, summary.keys, list(summary.classes))
    errors = None if summary.errors is None else np.ravel(summary.errors) * summary.widths
    return bars_with_errors(
        weighed(summary.keys, matrix[0], errors),
        across=f"weight for {summary.classes[0]}, over the whole bounds",
        colour=BLUE,
        width=260,
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
            alt.X(
                "class:N",
                sort=None,
                title=None,
                axis=alt.Axis(orient="top", labelAngle=angle, domain=False, ticks=False),
            ),
            alt.Y("name:N", sort=None, title=None, axis=alt.Axis(domain=False, ticks=False)),
            alt.Color(
                "value:Q",
                title="weight, over the whole bounds",
                scale=alt.Scale(domain=[-most, 0, most], range=["#D55E00", "#F7F7F7", "#0072B2"]),
                legend=alt.Legend(orient="bottom", gradientLength=180, format=".2g"),
            ),
        )
    )


def _columns(summary: ClassColumns) -> Picture:
    """Naive Bayes: how many bits each column tells of the class, by the learned tables."""
    records = [{"name": name, "value": bits} for name, bits in summary.bits.items()]
    return bars_with_errors(
        sorted(records, key=lambda record: -record["value"]),
        across="bits a column tells of the class",
        width=260,
    ).properties(title=panel("columns"))


# PCA, SVD and factors: what each direction is made of, and which stand out of the noise.


MOST_SHOWN = 3


def directions(summary: Directions, n_components: int | None = None) -> Picture:
    """Loadings of the first components (three, or as many as told) and the scree with its noise."""
    alt = altair()
    count = min(n_components or MOST_SHOWN, len(summary.components))
    keys, errors = summary.keys, summary.errors
    reach = _reach(summary.components[:count])
    panels = []
    for place in range(count):
        records = [
            {"name": key, **interval(value, None if errors is None else errors[place, i])}
            for i, (key, value) in enumerate(zip(keys, summary.components[place], strict=True))
        ]
        panels.append(
            bars_with_errors(
                records,
                across="loading",
                colour=PALETTE[place % len(PALETTE)],
                width=180,
                reach=reach,
                labels=place == 0,
            ).properties(title=panel(f"{summary.word} {place + 1}"))
        )
    panels.append(_scree(summary))
    said = ["loadings of coordinates scaled by their bounds"]
    if errors is not None:
        said[0] += "; bars: 95 % intervals of the noise, pale where they hold 0"
    drawn = alt.hconcat(*panels, spacing=28).resolve_scale(x="independent", y="independent")
    return finished(drawn, f"{summary.name} of {len(keys)} coordinates", said)


def _reach(loadings: Array) -> float:
    """One scale for all panels: 1 for unit directions, else what the longest loading needs."""
    longest = float(np.abs(loadings).max())
    if longest > 0.5:
        return max(1.0, float(np.ceil(longest)))
    return float(np.ceil(longest * 50) / 50) or 1.0


def _scree(summary: Directions) -> Picture:
    """What lies along each direction; below the dashed edge it may be noise alone."""
    alt = altair()
    values, errors, edge = summary.sizes, summary.sizes_error, summary.noise_edge
    records = [
        {
            "number": place + 1,
            "sure": bool(value > edge),
            **interval(max(float(value), 0.0), None if errors is None else errors[place]),
        }
        for place, value in enumerate(values)
    ]
    x = alt.X("number:O", title=summary.word, axis=alt.Axis(labelAngle=0, ticks=False))
    y = alt.Y("value:Q", title=summary.size_name, axis=alt.Axis(tickCount=5, format=".3~g"))
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


# Clusters and mixtures: where the centres are, how many rows each holds, how sure that is.


RING_POINTS = 48


def groups(summary: Groups, x: str | None = None, y: str | None = None) -> Picture:
    """Centres on two coordinates (those that part them most), and the whole of each centre."""
    alt = altair()
    drawn = scatter = _scatter(summary, *summary.axes(x, y))
    if len(summary.keys) > 2:
        drawn = alt.hconcat(scatter, _profile(summary), spacing=30)
    drawn = drawn.resolve_scale(color="independent", size="independent")
    said = "the area of a circle is the noisy share of the rows"
    if summary.deviations is not None:
        said += "; an ellipse holds two deviations of its rows"
    elif _ellipse(summary) is not None:
        said += "; an ellipse is where its centre lies with 95 %"
    return finished(drawn, f"{summary.name}: {len(summary.centres)} {summary.word}s", [said])


def _ellipse(summary: Groups) -> Array | None:
    """Half axes in user units: of the rows of a component, else of where the centre lies."""
    if summary.deviations is not None:
        return 2 * summary.deviations
    # 95 % of a normal cloud in the plane lie within 2.45 deviations
    return 2.45 * summary.centres_error if summary.centres_error.any() else None


def _scatter(summary: Groups, first: int, second: int) -> Picture:
    alt = altair()
    keys, centres, spread = summary.keys, summary.centres, _ellipse(summary)
    records: Records = [
        {
            "number": str(i),
            "x": float(c[first]),
            "y": float(c[second]),
            "share": float(max(s, 0)),
            "text": f"{i} · {max(s, 0):.0%}",
        }
        for i, (c, s) in enumerate(zip(centres, summary.shares, strict=True))
    ]
    across = alt.X("x:Q", title=keys[first], scale=alt.Scale(zero=False, nice=True, padding=24))
    down = alt.Y("y:Q", title=keys[second], scale=alt.Scale(zero=False, nice=True, padding=24))
    shade = _shade(len(centres))
    base = chart(records, width=300, height=300)
    size = alt.Size("share:Q", scale=alt.Scale(domain=[0, 1], range=[0, 6000]), legend=None)
    circles = base.mark_circle(opacity=0.4).encode(across, down, shade, size)
    layers = [circles, base.mark_circle(size=5, opacity=1).encode(across, down, shade)]
    if spread is not None and first != second:
        ring = np.linspace(0, 2 * np.pi, RING_POINTS)
        ellipses = [
            {
                "number": str(i),
                "x": float(c[first] + s[first] * np.cos(t)),
                "y": float(c[second] + s[second] * np.sin(t)),
                "order": n,
            }
            for i, (c, s) in enumerate(zip(centres, spread, strict=True))
            for n, t in enumerate(ring)
        ]
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


def _profile(summary: Groups) -> Picture:
    """Every centre in user units; the shade says where it lies among the centres."""
    alt = altair()
    centres, keys = summary.centres, summary.keys
    low, high = centres.min(axis=0), centres.max(axis=0)
    reach = np.where(high > low, high - low, 1.0)
    kept = range(len(keys))[:20]
    records = [
        {
            "coordinate": keys[j],
            "number": str(i),
            "place": float((c[j] - low[j]) / reach[j]),
            "text": f"{c[j]:,.0f}" if abs(c[j]) >= 100 else f"{c[j]:.2g}",
        }
        for i, c in enumerate(centres)
        for j in kept
    ]
    base = chart(records, width=alt.Step(52), height=alt.Step(22)).encode(
        alt.X(
            "number:N",
            sort=None,
            title="cluster",
            axis=alt.Axis(orient="top", labelAngle=0, domain=False, ticks=False),
        ),
        alt.Y("coordinate:N", sort=None, title=None, axis=alt.Axis(domain=False, ticks=False)),
    )
    cells = base.mark_rect(cornerRadius=2, stroke="white").encode(
        alt.Color(
            "place:Q", scale=alt.Scale(domain=[0, 1], range=["#F4F8FB", "#6BAED6"]), legend=None
        )
    )
    return alt.layer(cells, base.mark_text(fontSize=10.5, color=INK).encode(text="text:N"))


# Regression: what each coordinate adds, and predicted against true numbers of public rows.


MOST_DOTS = 300


def regression(summary: NumberCoefficients, test: NumberTest | None = None) -> Picture:
    """Coefficients over the whole bounds; with public test rows, predictions beside them."""
    alt = altair()
    errors, widths = summary.errors, summary.widths
    values = np.ravel(summary.matrix) * widths
    spread = None if errors is None else np.ravel(errors) * widths
    keys = summary.keys
    records = weighed(keys, values, spread)
    across = "change over the whole bounds of a column"
    bars = bars_with_errors(records, across=across, colour=BLUE).properties(title=panel("columns"))
    drawn = bars
    if test is not None:
        drawn = alt.hconcat(_predicted(test), bars, spacing=36)
    said = (
        ["bars: 95 % intervals of the noise; pale where they hold 0"] if errors is not None else []
    )
    return finished(drawn, summary.name, said)


def _predicted(test: NumberTest) -> Picture:
    alt = altair()
    found, true = test.predicted, test.truth
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


def rules(summary: RuleList) -> Picture:
    """Each rule by the noisy share of rows that hold it all, and how often it is right."""
    alt = altair()
    records = [
        {
            "number": str(place + 1) if place < NAMED else "",
            "rule": f"{place + 1}  {rule_text(rule)}",
            "support": float(rule.support),
            "confidence": float(rule.confidence),
            **_span(rule),
        }
        for place, rule in enumerate(summary.rules[:MOST_RULES])
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
    said = [f"{len(summary.rules)} rules; bars: 95 % intervals of the noise"]
    return finished(drawn, summary.name, said)


def _span(rule: Any) -> dict[str, float]:
    half = 1.96 * float(rule.confidence_error)
    return {"low": max(rule.confidence - half, 0.0), "high": min(rule.confidence + half, 1.0)}


def links(summary: ItemScores) -> Picture:
    """The items' scores, the highest first."""
    records = [
        {"name": line["item"], **interval(line["score"], line["noise"])}
        for line in summary.records()
    ]
    said = ["scores add up to 1; bars: 95 % intervals of the noise"]
    return finished(bars_with_errors(records, across="score"), summary.name, said)


def topics(summary: Topics, count: int = 5) -> Picture:
    """The words that say most of each topic, with their chances."""
    records: Records = [
        {
            "name": f"{place + 1}: {summary.words[at]}",
            **interval(chances[at], summary.chances_error[place][at]),
        }
        for place, chances in enumerate(summary.chances)
        for at in summary.top_words(place, count)
    ]
    shares = ", ".join(f"{share:.0%}" for share in summary.shares)
    said = [f"topics have shares {shares}; bars: 95 % intervals of the noise"]
    return finished(bars_with_errors(records, across="chance of the word"), summary.name, said)


def words(summary: WordVectors, count: int = 20) -> Picture:
    """The words that lie furthest along the first direction."""
    first = summary.vectors[0]
    records: Records = [
        {"name": str(summary.words[at]), **interval(first[at], summary.error)}
        for at in np.argsort(-np.abs(first), kind="stable")[:count]
    ]
    said = ["first direction of the counts; bars: 95 % intervals of the noise"]
    return finished(bars_with_errors(records, across="coordinate"), summary.name, said)


def clauses(summary: Clauses) -> Picture:
    """A learner from statistical queries: its clauses in the order they are tried."""
    alt = altair()
    lines = summary.lines
    said = [f"each share of rows is known within {summary.tau:.3g}"]
    listed = (
        chart([{"line": f"{place + 1}  {line}"} for place, line in enumerate(lines)], width=420)
        .properties(height=alt.Step(22))
        .mark_text(align="left", fontSize=12, color=INK, limit=420)
        .encode(alt.Y("line:N", sort=None, axis=None), x=alt.value(0), text="line:N")
    )
    return finished(listed, summary.name, said)
