"""Curves as SVG: lines stretch with the width, letters and dots keep their size.

x runs from 0 to 100 per cent of the plot, y in pixels; what is curved lies in an inner picture
that may be stretched, for its strokes do not scale.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import log10

from markupsafe import Markup

from sulq.server.console.charts import tag

Point = tuple[float, float]
FOOT = 46
"""Pixels below a plot for its ticks and title."""


@dataclass
class Plot:
    """A plot under construction; x and y are in the units of its axes."""

    x0: float
    x1: float
    y0: float
    y1: float
    height: int
    gutter: int = 56
    log: bool = False
    top: int = 8
    _under: list[Markup] = field(default_factory=list)
    _curves: list[Markup] = field(default_factory=list)
    _over: list[Markup] = field(default_factory=list)
    _left: list[Markup] = field(default_factory=list)

    def x(self, value: float) -> float:
        """Per cent from the left."""
        if self.log:
            return 100 * log10(value / self.x0) / log10(self.x1 / self.x0)
        return 100 * (value - self.x0) / (self.x1 - self.x0)

    def y(self, value: float) -> float:
        """Pixels from the top."""
        share = (value - self.y0) / (self.y1 - self.y0)
        return self.top + (self.height - self.top) * (1 - share)

    def across(self, marks: Iterable[tuple[float, str]], *, grid: bool = True) -> None:
        """Ticks of the x axis."""
        for value, text in marks:
            at = f"{self.x(value):.2f}%"
            kind, start = ("gridline", self.top) if grid else ("axis", self.height)
            end = self.height if grid else self.height + 5
            self._under.append(tag("line", class_=kind, x1=at, x2=at, y1=start, y2=end))
            self._over.append(tag("text", text, class_="mid", x=at, y=self.height + 20))

    def up(self, marks: Iterable[tuple[float, str]]) -> None:
        """Ticks of the y axis."""
        for value, text in marks:
            at = f"{self.y(value):.1f}"
            self._under.append(tag("line", class_="gridline", x1="0%", x2="100%", y1=at, y2=at))
            below = f"{self.y(value) + 4:.1f}"
            self._left.append(tag("text", text, class_="end", x=self.gutter - 10, y=below))

    def titled(self, across: str, up: str = "") -> None:
        self._over.append(tag("text", across, class_="mid", x="50%", y=self.height + 40))
        if up:
            middle = (self.top + self.height) / 2
            turn = f"rotate(-90 12 {middle:g})"
            self._left.append(tag("text", up, class_="mid", x=12, y=f"{middle:g}", transform=turn))

    def line(self, points: Sequence[Point], kind: str = "line", **more: str) -> None:
        self._curves.append(tag("path", class_=kind, d=self._path(points), **more))

    def area(self, points: Sequence[Point], kind: str = "band") -> None:
        self._curves.append(tag("path", class_=kind, d=f"{self._path(points)}Z"))

    def shade(self, start: float, end: float, kind: str) -> None:
        """A zone from `start` to `end` along x."""
        first, last = self.x(start), self.x(end)
        wide, high = f"{last - first:.2f}%", self.height - self.top
        self._under.append(
            tag("rect", class_=kind, x=f"{first:.2f}%", y=self.top, width=wide, height=high)
        )

    def upright(self, value: float, low: float, high: float, **more: str) -> None:
        at = f"{self.x(value):.2f}%"
        self._over.append(
            tag(
                "line",
                class_="mark-line",
                x1=at,
                x2=at,
                y1=f"{self.y(low):.1f}",
                y2=f"{self.y(high):.1f}",
                **more,
            )
        )

    def dot(self, x: float, y: float, kind: str = "point", r: float = 5, **more: str) -> None:
        self._over.append(
            tag("circle", class_=kind, cx=f"{self.x(x):.2f}%", cy=f"{self.y(y):.1f}", r=r, **more)
        )

    def diamond(self, x: float, y: float) -> None:
        """Its place is that of a small inner picture."""
        shape = tag("path", class_="own", d="M0-6 6 0 0 6-6 0Z")
        self._over.append(
            tag("svg", shape, class_="spot", x=f"{self.x(x):.2f}%", y=f"{self.y(y):.1f}")
        )

    def text(
        self,
        said: str,
        x: float,
        y: float,
        kind: str = "",
        *,
        dx: int = 0,
        dy: int = 0,
        **more: str,
    ) -> None:
        self._over.append(
            tag(
                "text",
                said,
                class_=kind,
                x=f"{self.x(x):.2f}%",
                y=f"{self.y(y):.1f}",
                dx=dx,
                dy=dy,
                **more,
            )
        )

    def drawn(self, label: str, kind: str = "") -> Markup:
        tall = self.height + FOOT
        curves = tag(
            "svg",
            *self._curves,
            viewBox=f"0 0 100 {self.height}",
            preserveAspectRatio="none",
            class_="curves",
            width="100%",
            height=self.height,
        )
        inside = [*self._under, curves, *self._over]
        return tag(
            "div",
            tag("svg", *self._left, width=self.gutter, height=tall, aria_hidden="true"),
            tag("svg", *inside, class_="plot", height=tall, aria_hidden="true"),
            class_=f"chart bars {kind}".strip(),
            role="img",
            aria_label=label,
        )

    def _path(self, points: Sequence[Point]) -> str:
        return "M" + "L".join(f"{self.x(x):.2f} {self.y(y):.1f}" for x, y in points)
