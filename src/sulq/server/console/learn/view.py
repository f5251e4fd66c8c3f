"""What was learned, as pictures and captions: from templates and released numbers only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from markupsafe import Markup

from sulq.errors import InvalidQuery
from sulq.formatting import about, bar_text, credits_word, spelled, value_with_bar
from sulq.kernel.schema.columns import Number, Schema
from sulq.learn.summaries import Directions, Groups, TreeNodes
from sulq.server.console.charts import tag, tick_text, ticks
from sulq.server.console.labels import capital, listed

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
class CentreRow:
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
        *(
            tag(
                "ellipse",
                class_="oval",
                cx=middle,
                cy=middle,
                rx=f"{RADIUS * k / 2:g}",
                ry=f"{RADIUS * k / 2 * ratio:.1f}",
            )
            for k in (2, 1)
        ),
    ]
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
            found.append(
                tag(
                    "text",
                    name,
                    class_="key" if side else "key end",
                    x=f"{at:.1f}",
                    y=f"{place:.1f}",
                )
            )
    return found


def centres(
    groups: Sequence[CentreRow],
    x: tuple[float, float, str],
    y: tuple[float, float, str],
) -> Markup:
    """Centres with crosses and ovals on two columns between their public bounds."""
    left, top, right, bottom = 54, 12, SIDE - 8, SIDE - 44
    across, up = ticks(x[0], x[1], 7), ticks(y[0], y[1], 7)

    def at(value: float, other: float) -> tuple[float, float]:
        return (
            left + (right - left) * (value - across[0]) / (across[-1] - across[0]),
            bottom - (bottom - top) * (other - up[0]) / (up[-1] - up[0]),
        )

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
                parts.append(
                    tag(
                        "text",
                        way,
                        class_="mid",
                        x=f"{0.25 * middle + 0.75 * x:.1f}",
                        y=f"{y + NODE_H + 20:g}",
                    )
                )
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
        tag(
            "rect",
            class_="part",
            x=f"{x:.1f}",
            y=y + 40,
            height=6,
            width=f"{inner * min(1.0, max(0.0, node.share)):.1f}",
        ),
        *(
            tag(
                "line",
                class_="whisker",
                x1=f"{x + inner * end:.1f}",
                x2=f"{x + inner * end:.1f}",
                y1=y + 38,
                y2=y + 48,
            )
            for end in (low, high)
        ),
        tag(
            "line",
            class_="whisker",
            x1=f"{x + inner * low:.1f}",
            x2=f"{x + inner * high:.1f}",
            y1=y + 43,
            y2=y + 43,
        ),
    ]


# Pictures of what was learned: directions, centres, trees. Made of released numbers; no dot is a
# person.


MOST_ARROWS = 10
MOST_LEAVES = 6
NORMAL = 1.96
NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
WRITTEN = ((">=", "≥"), ("<=", "≤"), (" in {", ": "), ("}", ""))


@dataclass(frozen=True, slots=True)
class LearnedView:
    title: str
    chip: str
    picture: Markup | None
    bold: str
    caption: str
    notes: tuple[str, ...]
    python: str
    wide: bool


def learned_view(learner: Any, schema: Schema, label: str, python: str) -> LearnedView:
    """By the kind of learner."""
    asked = len(learner.receipts_) + len(learner.reused_)
    paid = credits_word(learner.credits_) if learner.credits_ else "0 credits"
    chip = f"{paid}, {asked} {'question' if asked == 1 else 'questions'}"
    found = learner.summary()
    match found:
        case Directions():
            title, picture, bold, caption = _directions(found)
        case Groups():
            title, picture, bold, caption = _groups(found, schema)
        case TreeNodes():
            title, picture, bold, caption = _tree(found, label)
        case _:
            raise InvalidQuery(f"{found.name} has no picture here")
    notes = tuple(dict.fromkeys(learner.notes_))
    wide = isinstance(found, TreeNodes)
    return LearnedView(
        title=title,
        chip=chip,
        picture=picture,
        bold=bold,
        caption=caption,
        notes=notes,
        python=python,
        wide=wide,
    )


def _directions(found: Directions) -> tuple[str, Markup | None, str, str]:
    assert found.errors is not None  # noqa: S101
    assert found.ratios is not None  # noqa: S101
    assert found.sizes_error is not None  # noqa: S101
    keys, loads, ratios, values = list(found.keys), found.components, found.ratios, found.sizes
    total = float(values[0] / ratios[0]) if ratios[0] > 0 else 1.0
    halves = NORMAL * found.sizes_error / total
    said = [
        f"component {k + 1}: {_part(float(ratios[k]), float(halves[k]))}"
        for k in range(len(ratios))
    ]
    second = loads[1] if len(loads) > 1 else np.zeros(len(keys))
    noise = float(found.errors[:2].max())
    arrows = []
    for place, key in enumerate(keys):
        x, y = float(loads[0][place]), float(second[place])
        length = math.hypot(x, y)
        arrows.append(Arrow(key, x, y, math.atan2(NORMAL * noise, max(length, 1e-9))))
    arrows = sorted(arrows, key=lambda arrow: -math.hypot(arrow.x, arrow.y))[:MOST_ARROWS]
    ratio = math.sqrt(values[1] / values[0]) if len(values) > 1 and values[0] > 0 else 0.1
    titles = (said[0], said[1] if len(said) > 1 else "")
    bold = "; ".join(
        f"{'Component' if k == 0 else 'component'} {k + 1} is mostly {listed(mostly(keys, load))}"
        for k, load in enumerate(loads[:2])
    )
    caption = (
        "Arrows are columns; the wedge is how far the noise may have turned them, 95 %. Ovals: one"
        " and two standard deviations. There are no dots: rows are never shown."
    )
    return "PCA: what varies together", directions(arrows, ratio, titles), f"{bold}.", caption


def mostly(keys: list[str], load: Any) -> list[str]:
    """The fewest columns that make up three quarters of a direction, at most three."""
    squares = np.asarray(load, dtype=np.float64) ** 2
    found: list[str] = []
    reached = 0.0
    for place in np.argsort(-squares)[:3]:
        found.append(keys[int(place)])
        reached += float(squares[place]) / max(float(squares.sum()), 1e-300)
        if reached > 0.75:
            break
    return found


def _part(share: float, half: float) -> str:
    shown = value_with_bar(100 * share, 100 * half) if half > 0 else None
    return f"{shown} % of the variation" if shown else f"{100 * share:.0f} % of the variation"


def _groups(summary: Groups, schema: Schema) -> tuple[str, Markup | None, str, str]:
    assert summary.sizes is not None  # noqa: S101
    assert summary.sizes_error is not None  # noqa: S101
    keys, found, errors, sizes = (
        summary.keys,
        summary.centres,
        summary.centres_error,
        summary.sizes,
    )
    widths, inside = summary.widths, summary.within
    first, second = summary.axes()
    order = sorted(range(len(found)), key=lambda k: float(found[k][first]))
    groups = [
        CentreRow(
            letter=NAMES[n % 26],
            x=float(found[k][first]),
            y=float(found[k][second]),
            bar_x=NORMAL * float(errors[k][first]),
            bar_y=NORMAL * float(errors[k][second]),
            spread_x=inside * float(widths[first]),
            spread_y=inside * float(widths[second]),
        )
        for n, k in enumerate(order)
    ]

    def coordinate(k: int, j: int) -> str:
        bar = max(NORMAL * float(errors[k][j]), 1e-9)
        return f"{keys[j]} {value_with_bar(float(found[k][j]), bar)}"

    said = []
    for n, k in enumerate(order):
        numbers = ", ".join(coordinate(k, j) for j in dict.fromkeys((first, second)))
        size = about(max(float(sizes[k]), 0.0), NORMAL * float(summary.sizes_error[k]))
        said.append(f"{NAMES[n % 26]}: {numbers}, about {size} {schema.who}")
    picture = None
    if first != second:
        x, y = (
            (*_bounds(schema, keys[place], found[:, place]), keys[place])
            for place in (first, second)
        )
        picture = centres(groups, x, y)
    caption = (
        "Cross: 95 % bar of the centre, often smaller than the dot. Oval: the average spread within"
        " groups. There are no dots for people."
    )
    count = {2: "two", 3: "three", 4: "four", 5: "five"}.get(len(found), str(len(found)))
    return f"k-means: {count} groups", picture, f"{'. '.join(said)}.", caption


def _bounds(schema: Schema, key: str, values: Any) -> tuple[float, float]:
    """The public range of a column; of other coordinates 0 to 1."""
    if key in schema and isinstance(schema[key], Number):
        low, high = (float(end) for end in schema[key].range)  # type: ignore[union-attr]
        return low, high
    return min(0.0, float(values.min())), max(1.0, float(values.max()))


def _tree(found: TreeNodes, label: str) -> tuple[str, Markup | None, str, str]:
    depth = max(node.depth for node in found.nodes)
    while depth > 1 and found.leaves(0, depth) > MOST_LEAVES:
        depth -= 1
    counter = [0]
    told = len(found.classes) - 1
    word = label if str(found.classes[told]) == "True" else f"{label} {found.classes[told]}"
    root = _branch(found, 0, depth, told, counter)
    leaves = found.leaves()
    title = f"Decision tree for {label}"
    shown = "" if found.leaves(0, depth) == leaves else f" The picture shows {depth} levels."
    bold = f"Stopped at {leaves} {'leaf' if leaves == 1 else 'leaves'}."
    caption = (
        f"A further split would gain less than the noise can tell apart.{shown} Each node: the"
        f" share of {word} with its 95 % bar."
    )
    return title, tree(root, f"{title}: {bold} {root.rate} ± {root.bar} {word}"), bold, caption


def _branch(found: TreeNodes, place: int, depth: int, told: int, counter: list[int]) -> Branch:
    node = found.nodes[place]
    counts = np.maximum(np.asarray(node.counts, dtype=np.float64), 0.0)
    rows = max(float(counts.sum()), 1.0)
    share = float(node.shares[told])
    noise = found.leaf_error * math.sqrt(found.leaves(place))
    half = NORMAL * noise * math.sqrt(share**2 * (len(counts) - 1) + (1 - share) ** 2) / rows
    half = min(half, 1.0)
    way = node.condition or ""
    for written, shown_as in WRITTEN:
        way = way.replace(written, shown_as)
    children: tuple[Branch, ...] = ()
    if node.children and node.depth < depth:
        children = tuple(_branch(found, child, depth, told, counter) for child in node.children)
        split = node.column
        title = f"{'All' if place == 0 else capital(way)} · split by {split}"
        title = title if len(title) <= LETTERS else f"split by {split}"
    else:
        counter[0] += 1
        bar = NORMAL * noise * math.sqrt(len(counts))
        more = " +" if node.children else ""
        title = f"Leaf {counter[0]} · about {about(rows, bar)}{more}"
    shown = value_with_bar(100 * share, 100 * half) if half > 0 else None
    rate = f"{shown.value} %" if shown else f"{spelled(100 * share, 1)} %"
    return Branch(
        title=title,
        rate=rate,
        bar=shown.bar if shown else bar_text(0),
        share=share,
        half=half,
        way=way,
        children=children,
    )


def python_text(
    base: str, table: str, kind: str, given: str, columns: list[str], label: str
) -> str:
    """The same from Python."""
    target = f", {label!r}" if label else ""
    return (
        "import sulq\nfrom sulq import learn\n\n"
        f'db = sulq.connect("{base}/{table}", token=...)\n'
        f"found = learn.{kind}({given}).fit(db, {columns!r}{target})\nfound.plot()\n"
    )


def spent_text(spent: Fraction) -> str:
    return credits_word(spent) if spent else "0 credits"
