"""Recovered share against noise: where sqrt(n) lies, and where a table stands.

n rows, n questions about random halves of them. T credits spent so are n questions of T/n credits,
so a table of any T has its place on the same axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from sulq.accounting.calibration import calibrate
from sulq.attacks.finding import Finding
from sulq.attacks.reconstruction import Sweep, optimum
from sulq.learn.plot_parts import BLUE, GREY, INK, ORANGE, Picture, altair, chart, finished
from sulq.schema.promise import Promise

ROWS = 256
SIGMAS = tuple(math.sqrt(ROWS) * step for step in (1 / 8, 1 / 4, 1 / 2, 1, 2, 4))
NEAREST, FARTHEST = 1 / 12, 64.0
"""The ends of the axis in sqrt(n): beyond them nothing is to be seen."""
QUIET = "#57606A"


def standing(promise: Promise, rows: int = ROWS) -> float:
    """The noise of each answer when all credits are spent as n equal questions. S4.1, S4.13"""
    return calibrate(promise).count_error(Fraction(promise.credits, rows))


def picture(swept: Sweep, promise: Promise, here: Sequence[Finding]) -> Picture:
    """The curve of the optimum, the dots measured, sqrt(n), and the table that is attacked."""
    alt = altair()
    root, rows = swept.threshold, swept.rows
    left = root * NEAREST
    mine = min(max(standing(promise, rows), left), root * FARTHEST)
    right = max(root * 16, mine * 5)
    ticks = [2.0**power for power in range(1, math.ceil(math.log2(right)) + 1, 2)]
    x = alt.X(
        "noise:Q",
        title=f"noise of one answer (standard deviation), for {rows} rows and {rows} questions",
        scale=alt.Scale(type="log", domain=[left, right], nice=False),
        axis=alt.Axis(values=ticks, format="~g", grid=False),
    )
    y = alt.Y(
        "share:Q",
        title="share of secret bits recovered",
        scale=alt.Scale(domain=[0.4, 1.0]),
        axis=alt.Axis(format="%", values=[0.5, 0.6, 0.7, 0.8, 0.9, 1.0]),
    )
    reach = [left * (right / left) ** (place / 120) for place in range(121)]
    curve = (
        chart([{"noise": s, "share": optimum(s, rows)} for s in reach], width=520, height=300)
        .mark_line(color=BLUE, strokeWidth=2.2)
        .encode(x, y)
    )
    coin = chart([{"share": 0.5}]).mark_rule(color=GREY, strokeDash=[2, 3]).encode(y=y)
    dots = [_dot(point.sigma, point.recovered, point.error) for point in swept.points]
    tables = [one for one in here if one.trials]
    layers = [coin, _upright(root, QUIET, [5, 4]), _upright(mine, ORANGE, [1, 0]), curve]
    layers += _marked(dots, "circle", INK, x, y)
    if tables:
        share = sum(one.reached for one in tables) / len(tables)
        error = math.sqrt(sum(one.error**2 for one in tables)) / len(tables)
        layers += _marked([_dot(mine, share, error)], "diamond", ORANGE, x, y)
    layers += [
        _label(root, 0.985, f"√n = {root:g}", QUIET),
        _label(mine, 0.935, "this table", ORANGE, align="left" if mine >= root else "right"),
        _label(left * 1.1, 0.513, "a coin", QUIET),
        _label(right, optimum(right, rows) + 0.035, "best possible", BLUE, align="right"),
    ]
    said = [
        "line: the most that anyone can recover; dots: least squares on fictional rows, with 95 %"
        " intervals",
        f"this table: {promise.credits:,} credits spent as {rows} questions about random halves"
        " of the rows",
    ]
    return finished(alt.layer(*layers), "How much noise hides everybody", said)


def _dot(noise: float, share: float, error: float) -> dict[str, float]:
    high = min(1.0, share + 1.96 * error)
    return {"noise": noise, "share": share, "low": share - 1.96 * error, "high": high}


def _marked(dots: Sequence[dict[str, float]], shape: str, colour: str, x: Any, y: Any) -> list[Any]:
    """Dots with their intervals."""
    alt, base = altair(), chart(dots)
    bars = base.mark_rule(color=colour, strokeWidth=1.6)
    size = 60 if shape == "circle" else 130
    points = base.mark_point(shape=shape, size=size, filled=True, color=colour, opacity=1)
    return [bars.encode(x, alt.Y("low:Q"), alt.Y2("high:Q")), points.encode(x, y)]


def _upright(noise: float, colour: str, dash: Sequence[int]) -> Picture:
    ruled = chart([{"noise": noise}]).mark_rule(
        color=colour, strokeDash=list(dash), strokeWidth=1.6
    )
    return ruled.encode(altair().X("noise:Q"))


def _label(noise: float, share: float, text: str, colour: str, align: str = "left") -> Picture:
    alt = altair()
    word = chart([{"noise": noise, "share": share, "text": text}])
    return word.mark_text(
        align=align,
        dx=6 if align == "left" else -6,
        baseline="middle",
        color=colour,
        fontSize=12,
        fontWeight=600,
    ).encode(alt.X("noise:Q"), alt.Y("share:Q"), text="text:N")
