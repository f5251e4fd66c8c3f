"""Classifiers: which coordinates speak for a class, and the ROC curve on public test rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from sulq.errors import InvalidQuery
from sulq.learn.features import Array
from sulq.learn.plot_parts import (
    BLUE,
    GREY,
    Picture,
    Records,
    altair,
    bars_with_errors,
    chart,
    colours,
    finished,
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
