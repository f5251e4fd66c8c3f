"""Rules by support and confidence; items by their score."""

from __future__ import annotations

from typing import Any

import numpy as np

from sulq.learn.plot_parts import (
    BLUE,
    GREY,
    INK,
    Picture,
    Records,
    altair,
    bars_with_errors,
    chart,
    finished,
    interval,
)

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
