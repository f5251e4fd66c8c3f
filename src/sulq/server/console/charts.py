"""Charts as SVG, made on the server: no script, no inline style, colours by class.

Lengths along x are percentages of the plot and lengths along y are pixels, so a chart fits any
width and its letters keep their size. Charts are made of noisy answers only: no dot is a person.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from markupsafe import Markup

from sulq.formatting import spelled

Place = Callable[[float], str]
STEP = 36
"""Pixels from one bar to the next."""
MOST_BARS = 30
"""More groups are drawn as points and whiskers without bars."""
NARROW = 250
"""Pixels of a plot on a phone."""
LOW = Fraction(15, 100)
"""Below this share of its whole a gauge turns orange."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One group: a name, a noisy value and its range."""

    name: str
    value: float
    low: float
    high: float


def tag(name: str, *inside: str, **attributes: object) -> Markup:
    """An element with everything escaped; `class_` is class, `aria_label` is aria-label."""
    listed = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), value)
        for key, value in attributes.items()
    )
    return Markup("<{0}{1}>{2}</{0}>").format(name, listed, Markup("").join(inside))


def gauge(
    left: Fraction,
    whole: Fraction,
    label: str,
    *,
    going: Fraction = Fraction(0),
    tall: bool = False,
    plain: bool = False,
) -> Markup:
    """What is left of a whole; `going` of it is about to be spent, or reserved. `plain`: a share
    of something else, which is never running low."""
    total = max(whole, Fraction(1, 10**9))
    stays = max(left - going, Fraction(0)) / total
    goes = min(going, max(left, Fraction(0))) / total
    kinds = [
        "gauge",
        *(["tall"] if tall else []),
        *(["low"] if left < LOW * whole and not plain else []),
    ]
    parts = [tag("rect", class_="fill", width=_share(stays), height="100%")]
    if goes:
        width = _share(max(goes, Fraction(8, 1000)))  # thin slices are seen too
        parts.append(tag("rect", class_="hatch", x=_share(stays), width=width, height="100%"))
    return tag("svg", *parts, class_=" ".join(kinds), role="img", aria_label=label)


def _share(part: Fraction) -> str:
    return f"{float(min(part, Fraction(1)) * 100):.2f}%"


def ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Round numbers from at or below `low` to at or above `high`."""
    span = max(high - low, 1e-12)
    raw = span / max(most - 1, 1)
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * k for k in (1, 2, 2.5, 5, 10) if unit * k >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(step * place, 12) + 0.0 for place in range(first, max(last, first + 1) + 1)]


def tick_text(value: float, marks: Sequence[float]) -> str:
    """A tick's number, in the decimals that its step needs."""
    step = f"{marks[1] - marks[0]:.10f}".rstrip("0") if len(marks) > 1 else "1."
    return spelled(value, len(step.partition(".")[2]))


def error_bars(bars: Sequence[Bar], title: str, label: str) -> Markup:
    """Lying bars with whiskers; the domain reaches from 0 (or the lowest low) to a round number."""
    lows, highs = (
        (min(bar.low, bar.value) for bar in bars),
        (max(bar.high, bar.value) for bar in bars),
    )
    ends = min(0.0, *lows), max(0.0, *highs)
    marks = next((m for m in (ticks(*ends, most) for most in (7, 6, 5, 4)) if _fits(m)), None)
    marks = [mark for mark in marks or ticks(*ends, 3) if mark >= ends[0]]
    first, last = ends[0], marks[-1]

    def at(value: float) -> str:
        return f"{100 * (value - first) / (last - first):.2f}%"

    longest = max(len(bar.name) for bar in bars)
    gutter = 64 if longest <= 7 else 96 if longest <= 12 else 136
    filled = len(bars) <= MOST_BARS
    step = STEP if filled else 22
    height = step * len(bars)
    parts: list[Markup] = []
    for mark in marks:
        kind = "gridline" if mark else "axis"
        parts.append(tag("line", class_=kind, x1=at(mark), x2=at(mark), y1=0, y2=height))
        text = tick_text(mark, marks)
        parts.append(tag("text", text, class_="mid", x=at(mark), y=height + 18))
    names = []
    for place, bar in enumerate(bars):
        middle = step * place + step / 2
        names.append(
            tag("text", _cut(bar.name), class_="key end", x=gutter - 10, y=f"{middle + 4:g}")
        )
        parts += [*([_body(bar, at, middle)] if filled else []), *_whisker(bar, at, middle)]
    parts.append(tag("text", title, class_="mid", x="50%", y=height + 38))
    tall = height + 46
    return tag(
        "div",
        tag("svg", *names, width=gutter, height=tall, aria_hidden="true"),
        tag("svg", *parts, class_="plot", height=tall, aria_hidden="true"),
        class_="chart bars",
        role="img",
        aria_label=label,
    )


def _fits(marks: Sequence[float]) -> bool:
    """Whether the numbers of an axis stand apart on a narrow screen."""
    longest = max(len(tick_text(mark, marks)) for mark in marks)
    return len(marks) * (7 * longest + 10) <= NARROW


def _body(bar: Bar, at: Place, middle: float) -> Markup:
    start, end = sorted((0.0, bar.value))
    width = float(at(end)[:-1]) - float(at(start)[:-1])
    return tag(
        "rect",
        class_="body",
        x=at(start),
        y=f"{middle - 10:g}",
        width=f"{width:.2f}%",
        height=20,
        rx=2,
    )


def _whisker(bar: Bar, at: Place, middle: float) -> list[Markup]:
    def line(x1: float, x2: float, half: int) -> Markup:
        return tag(
            "line",
            class_="whisker",
            x1=at(x1),
            x2=at(x2),
            y1=f"{middle - half:g}",
            y2=f"{middle + half:g}",
        )

    point = tag("circle", class_="point", cx=at(bar.value), cy=f"{middle:g}", r=4.5)
    return [
        line(bar.low, bar.high, 0),
        line(bar.low, bar.low, 6),
        line(bar.high, bar.high, 6),
        point,
    ]


def _cut(name: str, most: int = 18) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
