"""Rules by support and confidence; items by their score."""

from __future__ import annotations

from typing import Any

from sulq.learn.plot_parts import (
    BLUE,
    INK,
    Picture,
    altair,
    bars_with_errors,
    chart,
    finished,
    interval,
)

NAMED = 10
"""So many rules are named in the picture, the surest first."""


def rules(learner: Any) -> Picture:
    """Each rule by the noisy share of rows it holds in, and how often it holds."""
    alt = altair()
    records = [
        {
            "rule": str(rule),
            "support": float(rule.support),
            "confidence": float(rule.confidence),
            "name": str(rule) if place < NAMED else "",
        }
        for place, rule in enumerate(learner.rules_)
    ]
    base = chart(records, width=420, height=300).encode(
        alt.X("support:Q", title="support: noisy share of the rows", axis=alt.Axis(format="%")),
        alt.Y("confidence:Q", title="confidence", axis=alt.Axis(format="%"),
              scale=alt.Scale(zero=False, nice=True)),
        tooltip=["rule:N", "support:Q", "confidence:Q"],
    )  # fmt: skip
    dots = base.mark_circle(size=70, color=BLUE, opacity=0.8)
    names = base.mark_text(align="left", dx=7, fontSize=10.5, color=INK).encode(text="name:N")
    return finished(alt.layer(dots, names), f"AssociationRules: {len(records)} rules")


def links(learner: Any) -> Picture:
    """The items' scores, the highest first."""
    errors = getattr(learner, "scores_error_", None)
    keys = learner._features.keys
    records = [
        {"name": key, **interval(score, None if errors is None else errors[place])}
        for place, (key, score) in enumerate(zip(keys, learner.scores_, strict=True))
    ]
    ordered = sorted(records, key=lambda record: -record["value"])
    return finished(bars_with_errors(ordered, across="score"), "LinkAnalysis")
