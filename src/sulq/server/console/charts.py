"""Charts as SVG, made on the server: no script, no inline style, colours by class.

Lengths along x are percentages of the plot and lengths along y are pixels, so a chart fits any
width and its letters keep their size. Charts are made of noisy answers only: no dot is a person.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from markupsafe import Markup

from sulq.formatting import spelled

STEP = 36
"""Pixels from one bar to the next."""
MOST_BARS = 30
"""More groups are drawn as points and whiskers without bars."""
NARROW, MIDDLE = 250, 420
"""Pixels of a plot on a phone, and beside a table."""
TOP, HEIGHT = 10, 220
"""Of an upright plot, in pixels."""
LONGEST = 18
"""Letters of a line of a name; a longer name is wrapped."""
MARKERS = (
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0Z",
    "M-4-4H4V4H-4Z",
    "M0-5.6 5.6 0 0 5.6-5.6 0Z",
    "M0-5.4 5 3.8H-5Z",
)
"""A disc, a square, a diamond, a triangle."""
WIDE = 760
FILE_STYLE = Markup(
    "text{font:12.5px Inter,system-ui,sans-serif;fill:#454B52}.foot{font-size:12px;fill:#61676E}"
    ".title{font-size:17px;font-weight:650;fill:#1A1D21}.key{font-weight:600;fill:#1A1D21}"
    ".end{text-anchor:end}.mid{text-anchor:middle}svg{overflow:visible}.ground{fill:#FFF}"
    ".gridline{stroke:#E8E5DF}.axis{stroke:#84807A}.whisker{stroke:#1A1D21;stroke-width:1.75}"
    ".body{fill:#BFDCDD}.s2 .body{fill:#E2C8D9}.s3 .body{fill:#E8D9B8}.s4 .body{fill:#DCD8D0}"
    ".point{fill:#17707A;stroke:#FFF;stroke-width:1.5}.s2 .point{fill:#8B2F6B}"
    ".s3 .point{fill:#8A5A00}.s4 .point{fill:#61676E}"
)
"""Of a chart that stands alone."""
LOW = Fraction(15, 100)
"""Below this share of its whole a gauge turns orange."""


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


@dataclass(frozen=True, slots=True)
class Bar:
    """One group: a name, a noisy value and its range."""

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Series:
    """One row of bars over the same groups; None where a group has no reading."""

    name: str
    bars: tuple[Bar | None, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawn chart: what stands left of the plot, and the plot; for a page, or as a file."""

    gutter: int
    names: tuple[Markup, ...]
    parts: tuple[Markup, ...]
    tall: int
    label: str
    title: str = ""
    """What its axis says."""
    legend: tuple[str, ...] = ()

    def __html__(self) -> str:
        keys = tag(
            "ul", *map(_legend_line, range(len(self.legend)), self.legend), class_="row legend"
        )
        drawn = tag(
            "div",
            tag("svg", *self.names, width=self.gutter, height=self.tall, aria_hidden="true"),
            tag("svg", *self.parts, class_="plot", height=self.tall, aria_hidden="true"),
            tag("p", self.title, class_="small soft axis-title"),
            class_="chart bars",
            role="img",
            aria_label=self.label,
        )
        return drawn + keys if self.legend else drawn

    def __str__(self) -> str:
        return self.__html__()

    def file(self, title: str, foot: Sequence[str]) -> str:
        """The same as a picture that stands alone: light colours, a title, and how it was made."""
        heads = [
            _text(line, 24, 32 + 22 * at, "title") for at, line in enumerate(_wrapped(title, 80))
        ]
        top = 24 + 22 * len(heads)
        keys: list[Markup] = []
        left = 24
        for at, name in enumerate(self.legend):
            keys.append(tag("svg", _marker(at, "9", "0"), x=left, y=top + 1, class_=f"s{at + 1}"))
            keys.append(_text(name, left + 20, top + 12))
            left += 44 + 7 * len(name)
        top += 28 if keys else 8
        lines = [line for said in foot for line in _wrapped(said, 100)]
        axis = (24 + self.gutter + WIDE - 40) / 2
        heads.append(_text(self.title, axis, top + self.tall + 14, "mid"))
        below = top + self.tall + 44
        feet = [_text(line, 24, below + 17 * at, "foot") for at, line in enumerate(lines)]
        high = below + 17 * len(lines) + 8
        made = tag(
            "svg",
            tag("style", FILE_STYLE),
            tag("rect", class_="ground", width=WIDE, height=high),
            *heads,
            *keys,
            tag("svg", *self.names, x=24, y=top, width=self.gutter, height=self.tall),
            tag(
                "svg",
                *self.parts,
                x=24 + self.gutter,
                y=top,
                width=WIDE - self.gutter - 64,
                height=self.tall,
            ),
            *feet,
            xmlns="http://www.w3.org/2000/svg",
            class_="chart bars",
            width=WIDE,
            height=high,
            viewBox=f"0 0 {WIDE} {high}",
            role="img",
            aria_label=self.label,
        )
        return str(made)


def _text(said: str, x: float, y: float, kind: str = "") -> Markup:
    return tag("text", said, class_=kind, x=f"{x:g}", y=f"{y:g}")


def _legend_line(at: int, name: str) -> Markup:
    drawn = tag("svg", _marker(at, "7", "0"), width=14, height=14, class_=f"s{at + 1}")
    return tag("li", drawn, tag("span", name), class_="row")


def _wrapped(text: str, most: int, lines: int = 99) -> list[str]:
    """Lines of at most so many letters, broken at blanks where there are any."""
    found = textwrap.wrap(text, most) or [""]
    if len(found) > lines:
        found = [*found[: lines - 1], f"{found[lines - 1][: most - 1]}…"]
    return found


@dataclass(frozen=True, slots=True)
class Scale:
    """The axis of values: from 0, or the lowest low, to a round number above the highest high."""

    first: float
    last: float
    marks: tuple[float, ...]

    @classmethod
    def of(cls, bars: Iterable[Bar | None], *, fits: bool) -> Scale:
        known = [bar for bar in bars if bar is not None]
        ends = (
            min(0.0, *(min(bar.low, bar.value) for bar in known)),
            max(0.0, *(max(bar.high, bar.value) for bar in known)),
        )
        tried = (ticks(*ends, most) for most in (7, 6, 5, 4))
        marks = next((one for one in tried if not fits or _fits(one)), None)
        kept = [mark for mark in marks or ticks(*ends, 3) if mark >= ends[0]]
        return cls(ends[0], kept[-1], tuple(kept))

    def part(self, value: float) -> float:
        return (value - self.first) / (self.last - self.first)

    def percent(self, value: float) -> str:
        return f"{100 * self.part(value):.2f}%"

    def drawn(self, value: float, step: int, height: int) -> str:
        """Where a value lies in an upright plot, in pixels from the top."""
        return f"{step + (height - step) * (1 - self.part(value)):.1f}"


def error_bars(bars: Sequence[Bar], title: str, label: str) -> Chart:
    """Lying bars with whiskers, one below the other."""
    names = [bar.name for bar in bars]
    return lying_bars(names, [Series("", tuple(bars))], title, label)


def lying_bars(names: Sequence[str], series: Sequence[Series], title: str, label: str) -> Chart:
    """Lying bars with whiskers. Several series of a group stand together, under its name."""
    scale = Scale.of((bar for one in series for bar in one.bars), fits=True)
    grouped, shown = len(series) > 1, sum(len(one.bars) for one in series)
    filled, step = (shown <= MOST_BARS or grouped), STEP if shown <= MOST_BARS else 22
    step = 26 if grouped else step
    beside = [one.name for one in series] if grouped else names
    longest = max(len(line) for name in beside for line in _wrapped(name, LONGEST, 3))
    gutter = 64 if longest <= 7 else 96 if longest <= 12 else 144
    texts: list[Markup] = []
    drawn: list[Markup] = []
    high = 0.0
    for at, name in enumerate(names):
        if grouped:
            high += 6
            texts.append(
                tag("text", _wrapped(name, 2 * LONGEST, 1)[0], class_="key", x=0, y=high + 14)
            )
            high += 20
        for one in series:
            bar = one.bars[at]
            if bar is None:
                continue
            lines = _wrapped(one.name if grouped else name, LONGEST, 3)
            tall = max(step, 15 * len(lines) + 7)
            middle = high + tall / 2
            for place, line in enumerate(lines):
                down = middle + 4 + 15 * (place - (len(lines) - 1) / 2)
                kind = "end" if grouped else "key end"
                texts.append(tag("text", line, class_=kind, x=gutter - 10, y=f"{down:g}"))
            body = [_lying_body(bar, scale, middle, min(20, step - 8))] if filled else []
            drawn += [*body, *_lying_whisker(bar, scale, middle)]
            high += tall
    height = round(high)
    under: list[Markup] = []
    for mark in scale.marks:
        kind, x = ("gridline" if mark else "axis"), scale.percent(mark)
        under.append(tag("line", class_=kind, x1=x, x2=x, y1=0, y2=height))
        under.append(tag("text", tick_text(mark, scale.marks), class_="mid", x=x, y=height + 18))
    return Chart(gutter, tuple(texts), (*under, *drawn), height + 24, label, title)


def upright_bars(
    names: Sequence[str], series: Sequence[Series], title: str, label: str, *, points: bool = False
) -> Chart:
    """Bars that stand side by side in the order of their groups; with `points`, or where they are
    many, points and whiskers alone, with no line that joins them."""
    scale = Scale.of((bar for one in series for bar in one.bars), fits=False)
    filled = not points and sum(len(one.bars) for one in series) <= MOST_BARS
    gutter = 16 + 8 * max(len(tick_text(mark, scale.marks)) for mark in scale.marks)
    texts: list[Markup] = []
    under: list[Markup] = []
    for mark in scale.marks:
        y = scale.drawn(mark, TOP, HEIGHT)
        kind = "gridline" if mark else "axis"
        under.append(tag("line", class_=kind, x1="0%", x2="100%", y1=y, y2=y))
        down = f"{float(y) + 4:g}"
        texts.append(tag("text", tick_text(mark, scale.marks), class_="end", x=gutter - 10, y=down))
    slot = 100 / len(names)
    wide = 0.76 * slot / len(series)
    longest = max(map(len, names))
    every, seldom = (_every(len(names), longest, width) for width in (MIDDLE, NARROW))
    drawn: list[Markup] = []
    for at, name in enumerate(names):
        if at % every == 0:
            kind = "mid" if at % max(every, seldom) == 0 else "mid wide-only"
            x = f"{slot * (at + 0.5):.2f}%"
            under.append(tag("text", name, class_=kind, x=x, y=HEIGHT + 20))
        for place, one in enumerate(series):
            bar = one.bars[at]
            if bar is None:
                continue
            left = slot * (at + 0.12) + wide * place
            inside = [_upright_body(bar, scale, left, wide)] if filled else []
            inside += _upright_whisker(bar, scale, left + wide / 2, place)
            drawn.append(tag("g", *inside, class_=f"s{place + 1}" if len(series) > 1 else ""))
    legend = tuple(one.name for one in series) if len(series) > 1 else ()
    return Chart(gutter, tuple(texts), (*under, *drawn), HEIGHT + 26, label, title, legend)


def _every(many: int, longest: int, width: int) -> int:
    """Which names fit side by side: each, every second, every third ..."""
    return max(1, math.ceil(many * (7 * longest + 10) / width))


def _fits(marks: Sequence[float]) -> bool:
    """Whether the numbers of an axis stand apart on a narrow screen."""
    longest = max(len(tick_text(mark, marks)) for mark in marks)
    return len(marks) * (7 * longest + 10) <= NARROW


def _lying_body(bar: Bar, scale: Scale, middle: float, thick: int) -> Markup:
    start, end = sorted((0.0, bar.value))
    width = f"{100 * (scale.part(end) - scale.part(start)):.2f}%"
    top = f"{middle - thick / 2:g}"
    return tag(
        "rect", class_="body", x=scale.percent(start), y=top, width=width, height=thick, rx=2
    )


def _lying_whisker(bar: Bar, scale: Scale, middle: float) -> list[Markup]:
    def line(x1: float, x2: float, half: int) -> Markup:
        ends = {"y1": f"{middle - half:g}", "y2": f"{middle + half:g}"}
        return tag("line", class_="whisker", x1=scale.percent(x1), x2=scale.percent(x2), **ends)

    point = tag("circle", class_="point", cx=scale.percent(bar.value), cy=f"{middle:g}", r=4.5)
    return [
        line(bar.low, bar.high, 0),
        line(bar.low, bar.low, 6),
        line(bar.high, bar.high, 6),
        point,
    ]


def _upright_body(bar: Bar, scale: Scale, left: float, wide: float) -> Markup:
    low, high = sorted((0.0, bar.value))
    top = scale.drawn(high, TOP, HEIGHT)
    tall = f"{float(scale.drawn(low, TOP, HEIGHT)) - float(top):.1f}"
    x, width = f"{left:.2f}%", f"{0.94 * wide:.2f}%"
    return tag("rect", class_="body", x=x, y=top, width=width, height=tall, rx=2)


def _upright_whisker(bar: Bar, scale: Scale, at: float, place: int) -> list[Markup]:
    """Its caps keep their size: they stand in a picture of their own at the end of the line."""
    x = f"{at:.2f}%"
    low, high = (scale.drawn(end, TOP, HEIGHT) for end in (bar.low, bar.high))
    cap = tag("line", class_="whisker", x1=-4, x2=4, y1=0, y2=0)
    return [
        tag("line", class_="whisker", x1=x, x2=x, y1=high, y2=low),
        *(tag("svg", cap, class_="spot", x=x, y=end) for end in (low, high)),
        tag(
            "svg",
            _marker(place, "0", "0"),
            class_="spot",
            x=x,
            y=scale.drawn(bar.value, TOP, HEIGHT),
        ),
    ]


def _marker(place: int, x: str, y: str) -> Markup:
    """The sign of a series, which tells it from others without its colour."""
    drawn = MARKERS[place % len(MARKERS)]
    down = "7" if x != "0" else y
    return tag("path", class_="point", d=drawn, transform=f"translate({x} {down})")
