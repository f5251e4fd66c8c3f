"""Which chart draws which summary, and how a chart is saved to a file.

kmeans.plot()                       clusters; classifier.plot(X_test, y_test): a ROC curve
save(kmeans.plot(), "groups.svg")   .svg, .png or .html, without a network
"""

from __future__ import annotations

from functools import singledispatch
from pathlib import Path
from typing import Any

from sulq.errors import InvalidQuery
from sulq.learn.plotting.models import (
    classifier,
    clauses,
    directions,
    groups,
    links,
    regression,
    rules,
    topics,
    words,
)
from sulq.learn.plotting.style import Picture, altair
from sulq.learn.plotting.trees import tree
from sulq.learn.summaries import (
    ClassShares,
    ClassTest,
    Clauses,
    Coefficients,
    Directions,
    Groups,
    ItemScores,
    NumberCoefficients,
    RuleList,
    Summary,
    Topics,
    TreeNodes,
    WordVectors,
)

KINDS = (".svg", ".png", ".html")


@singledispatch
def draw(summary: Summary, *public: Any, **options: Any) -> Picture:
    """Return the chart of a summary, by its class."""
    raise InvalidQuery(f"{summary.name} has no picture")


draw.register(Directions, directions)
draw.register(Groups, groups)
draw.register(ClassShares, classifier)
draw.register(Coefficients, classifier)
draw.register(NumberCoefficients, regression)
draw.register(TreeNodes, tree)
draw.register(RuleList, rules)
draw.register(ItemScores, links)
draw.register(WordVectors, words)
draw.register(Topics, topics)
draw.register(Clauses, clauses)


def plot(summary: Summary, *public: Any, title: str | None = None, **options: Any) -> Picture:
    """Return the chart of a summary; with public test rows of a classifier, their ROC curve."""
    tested = bool(public) and isinstance(public[0], ClassTest)
    picture = (classifier if tested else draw)(summary, *public, **options)
    if title is not None:
        picture.title.text = title
    return picture


def ready() -> None:
    """Fail now rather than after a charge: what drawing and saving need is installed."""
    altair()
    _converter()


def _converter() -> Any:
    try:
        import vl_convert
    except ImportError as missing:
        raise ImportError(
            "saving pictures needs vl-convert: pip install 'sulq[report]'"
        ) from missing
    return vl_convert


def save(picture: Picture, path: str | Path) -> Path:
    """Write a picture as .svg, .png or .html; the page carries all it needs."""
    file = Path(path)
    kind = file.suffix.lower()
    if kind not in KINDS:
        raise InvalidQuery(f"a picture is one of {', '.join(KINDS)}, got {file.name!r:.60}")
    convert = _converter()
    told = picture.to_dict()
    if kind == ".png":
        file.write_bytes(convert.vegalite_to_png(told, scale=2))
    elif kind == ".svg":
        file.write_text(convert.vegalite_to_svg(told), "utf-8")
    else:
        file.write_text(convert.vegalite_to_html(told, bundle=True), "utf-8")
    return file
