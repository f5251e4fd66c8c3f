"""A decision tree as a drawing: root on the left, one line a leaf, noisy class shares as bars."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sulq.errors import InvalidQuery
from sulq.learn.plotting.style import INK, Picture, Records, altair, chart, colours, finished
from sulq.learn.summaries import TreeNode, TreeNodes

LEVEL, LINE, BAR, THICK = 190, 38, 78, 11
"""In pixels: between levels, between leaves, and a bar's length and thickness."""
LONGEST = 26
"""Letters of a condition."""


def tree(summary: TreeNodes, depth: int = 4) -> Picture:
    """The nodes down to `depth`: what leads there, the classes' noisy shares, the noisy rows."""
    if depth < 1:
        raise InvalidQuery(f"depth must be a whole number above 0, got {depth!r:.40}")
    alt = altair()
    nodes = summary.nodes
    places, leaves = _places(nodes, depth)
    bars: Records = []
    ways: Records = []
    sizes: Records = []
    edges: Records = []
    for place, (level, line) in places.items():
        node = nodes[place]
        x, y = level * LEVEL, line * LINE
        start = 0.0
        for name, share in zip(summary.classes, node.shares, strict=True):
            ends = {"x": x + start * BAR, "x2": x + (start + share) * BAR}
            sides = {"y": y - THICK / 2, "y2": y + THICK / 2}
            bars.append({"class": str(name), **ends, **sides})
            start += share
        more = " +" if node.children and node.children[0] not in places else ""
        sizes.append({"x": x + BAR + 5, "y": y, "text": f"{node.rows:,.0f}{more}"})
        ways.append({"x": x, "y": y - 13, "text": _short(node.condition or "all rows")})
        for child in node.children:
            if child in places:
                to = places[child]
                edges.append(
                    {"x": x + BAR + 48, "y": y, "x2": to[0] * LEVEL - 6, "y2": to[1] * LINE}
                )
    levels = max(level for level, _ in places.values())
    width, height = levels * LEVEL + BAR + 52, max(leaves, 1) * LINE
    across = {"scale": alt.Scale(domain=[-6, width], nice=False), "axis": None}
    down = {"scale": alt.Scale(domain=[height - LINE / 2, -LINE * 0.75], nice=False), "axis": None}
    lines = (
        chart(edges or [{}], width=width + 6, height=height + LINE / 4)
        .mark_rule(color="#B8BEC6", strokeWidth=1.2)
        .encode(alt.X("x:Q", **across), alt.Y("y:Q", **down), x2="x2:Q", y2="y2:Q")
    )
    shares = (
        chart(bars)
        .mark_rect(stroke="white", strokeWidth=0.5)
        .encode(
            alt.X("x:Q", **across),
            alt.Y("y:Q", **down),
            colours("class", summary.classes, orient="top", direction="horizontal"),
            x2="x2:Q",
            y2="y2:Q",
        )
    )
    texts = [
        chart(said)
        .mark_text(align="left", fontSize=10.5, color=colour)
        .encode(alt.X("x:Q", **across), alt.Y("y:Q", **down), text="text:N")
        for said, colour in ((sizes, "#57606A"), (ways, INK))
    ]
    half = 1.96 * summary.leaf_error * math.sqrt(len(summary.classes))
    said = [
        f"{summary.leaves()} leaves; beside each bar its noisy number of rows, ± {half:,.0f} in a"
        " leaf"
    ]
    if any(node.depth > depth for node in nodes):
        said.append(f"+ : goes on below depth {depth}")
    drawn = alt.layer(lines, shares, *texts)
    return finished(drawn, summary.name, said)


def _places(nodes: Sequence[TreeNode], depth: int) -> tuple[dict[int, tuple[int, float]], int]:
    """(level, line) of each drawn node, and how many lines there are."""
    found: dict[int, tuple[int, float]] = {}
    lines = 0

    def visit(place: int) -> float:
        nonlocal lines
        node = nodes[place]
        if node.children and node.depth < depth:
            ends = [visit(child) for child in node.children]
            line = (ends[0] + ends[-1]) / 2
        else:
            line = float(lines)
            lines += 1
        found[place] = (node.depth, line)
        return line

    visit(0)
    return found, lines


def _short(condition: str) -> str:
    return condition if len(condition) <= LONGEST else condition[: LONGEST - 1] + "…"
