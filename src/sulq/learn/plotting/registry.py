"""Pictures of what was learned: which picture is whose, and how it becomes a file.

kmeans.plot()                       clusters; classifier.plot(X_test, y_test): a ROC curve
save(kmeans.plot(), "groups.svg")   .svg, .png or .html, without a network
"""

from __future__ import annotations

from collections.abc import Callable
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

KINDS = (".svg", ".png", ".html")

DRAWN_BY: dict[str, Callable[..., Picture]] = {
    "PCA": directions,
    "SVD": directions,
    "FactorAnalysis": directions,
    "KMeans": groups,
    "GaussianMixture": groups,
    "LinearRegression": regression,
    "AssociationRules": rules,
    "LinkAnalysis": links,
    "LSI": words,
    "PLSI": topics,
    "DecisionTree": tree,
    "SQLearner": clauses,
}


def plot(learner: Any, *public: Any, title: str | None = None, **options: Any) -> Picture:
    """The picture of a fitted learner; a subclass is drawn as its nearest known ancestor."""
    if hasattr(learner, "estimator_"):  # of a learner that chose another
        return plot(learner.estimator_, *public, title=title, **options)
    kinds = [kind.__name__ for kind in type(learner).__mro__]
    draw = next((DRAWN_BY[name] for name in kinds if name in DRAWN_BY), None)
    if "ClassLearner" in kinds and (draw is None or public or learner.majority_ is not None):
        draw = classifier
    if draw is None:
        raise InvalidQuery(f"{kinds[0]} has no picture")
    picture = draw(learner, *public, **options)
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
