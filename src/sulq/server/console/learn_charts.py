"""Pictures of what was learned: directions, centres, trees. Made of released numbers; no dot is a
person."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from sulq.server.console.charts import tag, tick_text, ticks

SIDE, RADIUS = 400, 150
NODE_W, NODE_H, LEVEL = 180, 56, 108
LETTERS = 23
"""Of a node's title."""


@dataclass(frozen=True, slots=True)
class Arrow:
    """A coordinate in the plane of two components; `turn` is how far noise may have turned it."""

    name: str
    x: float
    y: float
    turn: float


@dataclass(frozen=True, slots=True)
class Centre:
    """A group: its centre, the bars of that, and its spread, in user units."""

    letter: str
    x: float
    y: float
    bar_x: float
    bar_y: float
    spread_x: float
    spread_y: float


@dataclass(frozen=True, slots=True)
class Branch:
    """A node of a tree as it is drawn."""

    title: str
    rate: str
    bar: str
    share: float
    half: float
    way: str
    children: tuple[Branch, ...] = ()


def directions(arrows: Sequence[Arrow], ratio: float, titles: tuple[str, str]) -> Markup:
    """Arrows with wedges over ovals of one and two standard deviations."""
    middle = SIDE / 2
    longest = max((math.hypot(a.x, a.y) for a in arrows), default=1.0) or 1.0
    parts = [
        tag("line", class_="gridline", x1=20, x2=SIDE - 20, y1=middle, y2=middle),
        tag("line", class_="gridline", x1=middle, x2=middle, y1=20, y2=SIDE - 20),
        *(tag("ellipse", class_="oval", cx=middle, cy=middle, rx=f"{RADIUS * k / 2:g}",
              ry=f"{RADIUS * k / 2 * ratio:.1f}") for k in (2, 1)),
    ]  # fmt: skip
    tips: list[tuple[float, float, str]] = []
    for arrow in arrows:
        length = RADIUS * math.hypot(arrow.x, arrow.y) / longest
        angle = math.atan2(arrow.y, arrow.x)
        x, y = middle + length * math.cos(angle), middle - length * math.sin(angle)
        parts.append(_wedge(middle, length, angle, arrow.turn))
        parts.append(
            tag("line", class_="arrow", x1=middle, y1=middle, x2=f"{x:.1f}", y2=f"{y:.1f}")
        )
        parts.append(tag("circle", class_="tip", cx=f"{x:.1f}", cy=f"{y:.1f}", r=3.5))
        tips.append((x, y, arrow.name))
    parts += _names(tips, middle)
    parts.append(tag("text", titles[0], class_="mid", x=middle, y=SIDE - 4))
    turn = f"rotate(-90 12 {middle:g})"
    parts.append(tag("text", titles[1], class_="mid", x=12, y=middle, transform=turn))
    label = f"Arrows of {len(arrows)} columns; {titles[0]}; {titles[1]}"
    return _square(parts, label)


def _wedge(middle: float, length: float, angle: float, turn: float) -> Markup:
    half = min(turn, math.pi - 1e-3)
    ends = [
        (middle + length * math.cos(a), middle - length * math.sin(a))
        for a in (angle - half, angle + half)
    ]
    large = 1 if half > math.pi / 2 else 0
    (x1, y1), (x2, y2) = ends
    arc = f"A{length:.1f} {length:.1f} 0 {large} 0 {x2:.1f} {y2:.1f}"
    path = f"M{middle:g} {middle:g}L{x1:.1f} {y1:.1f}{arc}Z"
    return tag("path", class_="wedge", d=path)


def _names(tips: list[tuple[float, float, str]], middle: float) -> list[Markup]:
    """Names beside the tips; those that would overlap move apart."""
    found: list[Markup] = []
    for side in (False, True):
        last = -math.inf
        for x, y, name in sorted((t for t in tips if (t[0] >= middle) == side), key=lambda t: t[1]):
            place = max(y + 4, last + 15)
            last = place
            at = x + 10 if side else x - 10
            found.append(tag("text", name, class_="key" if side else "key end", x=f"{at:.1f}",
                             y=f"{place:.1f}"))  # fmt: skip
    return found


def centres(
    groups: Sequence[Centre],
    x: tuple[float, float, str],
    y: tuple[float, float, str],
) -> Markup:
    """Centres with crosses and ovals on two columns between their public bounds."""
    left, top, right, bottom = 54, 12, SIDE - 8, SIDE - 44
    across, up = ticks(x[0], x[1], 7), ticks(y[0], y[1], 7)

    def at(value: float, other: float) -> tuple[float, float]:
        return (left + (right - left) * (value - across[0]) / (across[-1] - across[0]),
                bottom - (bottom - top) * (other - up[0]) / (up[-1] - up[0]))  # fmt: skip

    inside = tag("rect", x=left, y=top, width=right - left, height=bottom - top)
    parts: list[Markup] = [tag("clipPath", inside, id="bounds")]  # nobody is beyond them
    for mark in across:
        px, _ = at(mark, up[0])
        parts.append(
            tag("line", class_="gridline", x1=f"{px:.1f}", x2=f"{px:.1f}", y1=top, y2=bottom)
        )
        parts.append(
            tag("text", tick_text(mark, across), class_="mid", x=f"{px:.1f}", y=bottom + 18)
        )
    for mark in up:
        _, py = at(across[0], mark)
        parts.append(
            tag("line", class_="gridline", x1=left, x2=right, y1=f"{py:.1f}", y2=f"{py:.1f}")
        )
        parts.append(tag("text", tick_text(mark, up), class_="end", x=left - 8, y=f"{py + 4:.1f}"))
    scale_x = (right - left) / (across[-1] - across[0])
    scale_y = (bottom - top) / (up[-1] - up[0])
    for place, group in enumerate(groups):
        kind = f"k{place % 3 + 1}"
        cx, cy = at(group.x, group.y)
        rx, ry = f"{group.spread_x * scale_x:.1f}", f"{group.spread_y * scale_y:.1f}"
        parts.append(
            tag(
                "ellipse",
                class_=f"cloud {kind}",
                cx=f"{cx:.1f}",
                cy=f"{cy:.1f}",
                rx=rx,
                ry=ry,
                clip_path="url(#bounds)",
            )
        )
        bx, by = group.bar_x * scale_x, group.bar_y * scale_y
        for dx, dy in ((bx, 0.0), (0.0, by)):
            ends = {"x1": cx - dx, "x2": cx + dx, "y1": cy - dy, "y2": cy + dy}
            spelled = {name: f"{end:.1f}" for name, end in ends.items()}
            parts.append(tag("line", class_=f"cross {kind}", **spelled))
        parts.append(tag("circle", class_=kind, cx=f"{cx:.1f}", cy=f"{cy:.1f}", r=3.5))
        parts.append(tag("text", group.letter, class_="key", x=f"{cx + 9:.1f}", y=f"{cy - 8:.1f}"))
    parts.append(tag("text", x[2], class_="mid", x=(left + right) / 2, y=SIDE - 6))
    turn = f"rotate(-90 12 {(top + bottom) / 2:g})"
    parts.append(tag("text", y[2], class_="mid", x=12, y=(top + bottom) / 2, transform=turn))
    said = "; ".join(f"{g.letter} at {x[2]} {g.x:.3g}, {y[2]} {g.y:.3g}" for g in groups)
    return _square(parts, f"Centres of {len(groups)} groups: {said}")


def _square(parts: Sequence[Markup], label: str) -> Markup:
    drawn = tag("svg", *parts, viewBox=f"0 0 {SIDE} {SIDE}", aria_hidden="true")
    return tag("div", drawn, class_="chart square", role="img", aria_label=label)


def tree(root: Branch, label: str) -> Markup:
    """Root above, leaves below; in each node a rate, its bar, and how it is split."""
    leaves = _leaves(root)
    step = NODE_W + 22
    width = max(leaves * step, 640)
    depth = _depth(root)
    parts: list[Markup] = []

    def place(node: Branch, first: float, level: int) -> float:
        """Draw what is below; return the middle."""
        y = 10 + level * LEVEL
        if node.children:
            start, middles = first, []
            for child in node.children:
                middles.append(place(child, start, level + 1))
                start += _leaves(child) * step * width / max(leaves * step, 1)
            middle = (middles[0] + middles[-1]) / 2
            for child, x in zip(node.children, middles, strict=True):
                parts.insert(0, _edge(middle, y + NODE_H, x, y + LEVEL))
                way = child.way if len(child.way) <= 24 else child.way[:23] + "…"
                parts.append(tag("text", way, class_="mid", x=f"{0.25 * middle + 0.75 * x:.1f}",
                                 y=f"{y + NODE_H + 20:g}"))  # fmt: skip
        else:
            middle = first + step * width / max(leaves * step, 1) / 2
        parts.extend(_node(node, middle, y))
        return middle

    place(root, 0.0, 0)
    height = 10 + depth * LEVEL + NODE_H + 6
    size = {"width": f"{width:g}", "height": f"{height:g}"}  # letters keep theirs; wider: scrolled
    drawn = tag("svg", *parts, **size, aria_hidden="true")
    return tag("div", drawn, class_="chart tree", role="img", aria_label=label, tabindex="0")


def _leaves(node: Branch) -> int:
    return sum(map(_leaves, node.children)) if node.children else 1


def _depth(node: Branch) -> int:
    return 1 + max(map(_depth, node.children)) if node.children else 0


def _edge(x1: float, y1: float, x2: float, y2: float) -> Markup:
    mid = (y1 + y2) / 2
    path = f"M{x1:.1f} {y1:g}C{x1:.1f} {mid:g} {x2:.1f} {mid:g} {x2:.1f} {y2:g}"
    return tag("path", class_="edge", d=path)


def _node(node: Branch, middle: float, y: float) -> list[Markup]:
    left, inner = middle - NODE_W / 2, NODE_W - 18
    kind = "node" if node.children else "node leaf"
    x = left + 9
    low, high = (min(1.0, max(0.0, node.share + k * node.half)) for k in (-1, 1))
    title = node.title if len(node.title) <= LETTERS else node.title[: LETTERS - 1] + "…"
    return [
        tag("rect", class_=kind, x=f"{left:.1f}", y=y, width=NODE_W, height=NODE_H, rx=6),
        tag("text", title, class_="key", x=f"{x:.1f}", y=y + 16),
        tag("text", f"{node.rate} ± {node.bar}", x=f"{x:.1f}", y=y + 32),
        tag("rect", class_="track", x=f"{x:.1f}", y=y + 40, width=inner, height=6),
        tag("rect", class_="part", x=f"{x:.1f}", y=y + 40, height=6,
            width=f"{inner * min(1.0, max(0.0, node.share)):.1f}"),
        *(tag("line", class_="whisker", x1=f"{x + inner * end:.1f}", x2=f"{x + inner * end:.1f}",
              y1=y + 38, y2=y + 48) for end in (low, high)),
        tag("line", class_="whisker", x1=f"{x + inner * low:.1f}", x2=f"{x + inner * high:.1f}",
            y1=y + 43, y2=y + 43),
    ]  # fmt: skip
