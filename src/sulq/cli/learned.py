"""What each learner found, as records for a table and as a few facts below it."""

from __future__ import annotations

from typing import Any

MOST_LINES = 40

Records = list[dict[str, Any]]


def records_of(learner: Any) -> Records:
    """One record a line: components, clusters, coefficients, nodes, rules or items."""
    kind = type(learner).__name__
    match kind:
        case "PCA" | "SVD" | "FactorAnalysis":
            return _directions(learner)
        case "KMeans" | "GaussianMixture":
            return _groups(learner)
        case "DecisionTree":
            return _nodes(learner)
        case "AssociationRules":
            return _rules(learner)
        case "LinkAnalysis":
            return _links(learner)
    if hasattr(learner, "coef_"):
        return _coefficients(learner)
    return _classes(learner)


def facts_of(learner: Any) -> dict[str, Any]:
    """What does not fit in lines."""
    return {}


def _directions(learner: Any) -> Records:
    """One line a coordinate, one column a component."""
    names = [f"component {place + 1}" for place in range(len(learner.components_))]
    lines = [
        {"coordinate": key, **dict(zip(names, map(float, learner.components_[:, i]), strict=True))}
        for i, key in enumerate(learner._features.keys)
    ]
    return lines


def _groups(learner: Any) -> Records:
    return []


def _nodes(learner: Any) -> Records:
    return []


def _rules(learner: Any) -> Records:
    return []


def _links(learner: Any) -> Records:
    return []


def _coefficients(learner: Any) -> Records:
    return []


def _classes(learner: Any) -> Records:
    return []
