"""What was learned, as pictures and captions: from templates and released numbers only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from markupsafe import Markup

from sulq.schema.columns import Number, Schema
from sulq.server.console.learn_charts import (
    LETTERS,
    Arrow,
    Branch,
    Centre,
    centres,
    directions,
    tree,
)
from sulq.server.console.words import capital, listed, plural
from sulq.shown import about, bar_text, credits_word, show, spelled

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
    made = {"PCA": _directions, "KMeans": _groups, "DecisionTree": _tree}
    title, picture, bold, caption = made[type(learner).__name__](learner, schema, label)
    notes = tuple(dict.fromkeys(learner.notes_))
    wide = type(learner).__name__ == "DecisionTree"
    return LearnedView(title, chip, picture, bold, caption, notes, python, wide)


def _directions(learner: Any, schema: Schema, label: str) -> tuple[str, Markup | None, str, str]:
    keys = list(learner._features.keys)
    loads, errors = np.asarray(learner.components_), np.asarray(learner.components_error_)
    ratios = np.asarray(learner.explained_variance_ratio_)
    values = np.asarray(learner.explained_variance_)
    total = float(values[0] / ratios[0]) if ratios[0] > 0 else 1.0
    halves = NORMAL * np.asarray(learner.explained_variance_error_) / total
    said = [
        f"component {k + 1}: {_part(float(ratios[k]), float(halves[k]))}"
        for k in range(len(ratios))
    ]
    second = loads[1] if len(loads) > 1 else np.zeros(len(keys))
    noise = float(errors[: min(2, len(errors))].max()) / math.sqrt(max(len(keys) - 1, 1))
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
    shown = show(100 * share, 100 * half) if half > 0 else None
    return f"{shown} % of the variation" if shown else f"{100 * share:.0f} % of the variation"


def _groups(learner: Any, schema: Schema, label: str) -> tuple[str, Markup | None, str, str]:
    keys = list(learner._features.keys)
    found = np.asarray(learner.cluster_centers_)
    errors = np.asarray(learner.centers_error_)
    errors = errors if errors.ndim == 2 else errors[:, None] * np.ones_like(found)
    sizes = np.asarray(learner.sizes_)
    widths = np.asarray(learner._features.units[1])
    rows = max(float(np.maximum(sizes, 0).sum()), 1.0)
    inside = math.sqrt(max(float(learner.inertia_), 0.0) / rows / max(len(keys), 1))
    first, second = axes(found / widths, sizes)
    order = sorted(range(len(found)), key=lambda k: float(found[k][first]))
    groups = [
        Centre(NAMES[n % 26], float(found[k][first]), float(found[k][second]),
               NORMAL * float(errors[k][first]), NORMAL * float(errors[k][second]),
               inside * float(widths[first]), inside * float(widths[second]))
        for n, k in enumerate(order)
    ]  # fmt: skip
    said = []
    for n, k in enumerate(order):
        numbers = ", ".join(
            f"{keys[j]} {show(float(found[k][j]), max(NORMAL * float(errors[k][j]), 1e-9))}"
            for j in dict.fromkeys((first, second))
        )
        size = about(max(float(sizes[k]), 0.0), NORMAL * float(np.ravel(learner.sizes_error_)[k]))
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


def axes(scaled: Any, sizes: Any) -> tuple[int, int]:
    """The two coordinates that part the centres most."""
    weights = np.maximum(sizes, 0) / max(float(np.maximum(sizes, 0).sum()), 1e-9)
    between = (weights[:, None] * (scaled - weights @ scaled) ** 2).sum(axis=0)
    order = [int(place) for place in np.argsort(-between)]
    return order[0], order[1] if len(order) > 1 else order[0]


def _bounds(schema: Schema, key: str, values: Any) -> tuple[float, float]:
    """The public range of a column; of other coordinates 0 to 1."""
    if key in schema and isinstance(schema[key], Number):
        low, high = (float(end) for end in schema[key].range)  # type: ignore[union-attr]
        return low, high
    return min(0.0, float(values.min())), max(1.0, float(values.max()))


def _tree(learner: Any, schema: Schema, label: str) -> tuple[str, Markup | None, str, str]:
    nodes = learner.tree_
    depth = max(node.depth for node in nodes)
    while depth > 1 and _ends(nodes, 0, depth) > MOST_LEAVES:
        depth -= 1
    counter = [0]
    told = len(learner.classes_) - 1
    word = label if str(learner.classes_[told]) == "True" else f"{label} {learner.classes_[told]}"
    root = _branch(learner, schema, 0, depth, told, counter)
    leaves = sum(1 for node in nodes if not node.children)
    title = f"Decision tree for {label}"
    shown = "" if _ends(nodes, 0, depth) == leaves else f" The picture shows {depth} levels."
    bold = f"Stopped at {leaves} {plural('leaf', leaves) if leaves == 1 else 'leaves'}."
    caption = (
        f"A further split would gain less than the noise can tell apart.{shown} Each node: the"
        f" share of {word} with its 95 % bar."
    )
    return title, tree(root, f"{title}: {bold} {root.rate} ± {root.bar} {word}"), bold, caption


def _ends(nodes: Any, place: int, depth: int) -> int:
    node = nodes[place]
    if not node.children or node.depth >= depth:
        return 1
    return sum(_ends(nodes, child, depth) for child in node.children)


def _under(nodes: Any, place: int) -> int:
    node = nodes[place]
    return sum(_under(nodes, child) for child in node.children) if node.children else 1


def _branch(
    learner: Any, schema: Schema, place: int, depth: int, told: int, counter: list[int]
) -> Branch:
    nodes = learner.tree_
    node = nodes[place]
    counts = np.maximum(np.asarray(node.counts, dtype=np.float64), 0.0)
    rows = max(float(counts.sum()), 1.0)
    share = float(node.shares[told])
    noise = float(learner.leaf_error_) * math.sqrt(_under(nodes, place))
    half = NORMAL * noise * math.sqrt(share**2 * (len(counts) - 1) + (1 - share) ** 2) / rows
    half = min(half, 1.0)
    way = _way(learner, place)
    children: tuple[Branch, ...] = ()
    if node.children and node.depth < depth:
        children = tuple(
            _branch(learner, schema, child, depth, told, counter) for child in node.children
        )
        split = learner.attributes_[node.split.attribute].name
        title = f"{'All' if place == 0 else capital(way)} · split by {split}"
        title = title if len(title) <= LETTERS else f"split by {split}"
    else:
        counter[0] += 1
        bar = NORMAL * noise * math.sqrt(len(counts))
        more = " +" if node.children else ""
        title = f"Leaf {counter[0]} · about {about(rows, bar)}{more}"
    shown = show(100 * share, 100 * half) if half > 0 else None
    rate = f"{shown.value} %" if shown else f"{spelled(100 * share, 1)} %"
    return Branch(title, rate, shown.bar if shown else bar_text(0), share, half, way, children)


def _way(learner: Any, place: int) -> str:
    node = learner.tree_[place]
    if node.parent is None:
        return ""
    split = learner.tree_[node.parent].split
    said = str(learner.attributes_[split.attribute].text(split.groups[node.child]))
    for written, shown in WRITTEN:
        said = said.replace(written, shown)
    return said


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
