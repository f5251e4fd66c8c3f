"""What each learner found, as records for a table and as a few facts below it."""

from __future__ import annotations

from typing import Any

import numpy as np

from sulq.learn.plot_classes import class_shares
from sulq.learn.plot_patterns import arrow

Records = list[dict[str, Any]]


def records_of(learner: Any) -> Records:
    """One record a line: coordinates, clusters, classes, nodes, rules or items."""
    if getattr(learner, "majority_", None) is not None:
        return _shares(learner)
    match type(learner).__name__:
        case "PCA" | "SVD" | "FactorAnalysis":
            return _directions(learner)
        case "KMeans":
            return _groups(learner, "cluster", learner.cluster_centers_, learner.shares_)
        case "GaussianMixture":
            return _groups(learner, "component", learner.means_, learner.weights_)
        case "DecisionTree":
            return _nodes(learner, 0)
        case "NaiveBayes":
            return _shares(learner)
        case "AssociationRules":
            return _rules(learner)
        case "LinkAnalysis":
            return _links(learner)
        case "LSI":
            return _word_vectors(learner)
        case "PLSI":
            return _topics(learner)
        case "Classifier":
            return records_of(learner.estimator_)
    return _coefficients(learner) if hasattr(learner, "coef_") else _shares(learner)


def facts_of(learner: Any) -> dict[str, Any]:
    """What belongs to no single line."""
    if getattr(learner, "majority_", None) is not None:
        return {"predicts": learner.classes_[learner.majority_]}
    match type(learner).__name__:
        case "PCA":
            shares = [float(value) for value in learner.explained_variance_ratio_]
            return {"explained_variance_ratio": shares, "noise_edge": float(learner.noise_edge_)}
        case "SVD" | "LSI":
            return {"singular_values": [float(value) for value in learner.singular_values_]}
        case "LinearRegression":
            return {"intercept": float(learner.intercept_)}
        case "Classifier":
            return {"chosen": type(learner.estimator_).__name__, **facts_of(learner.estimator_)}
    return {}


def _word_vectors(learner: Any) -> Records:
    return [
        {"word": word, **{f"component {i + 1}": float(x) for i, x in enumerate(coordinates)}}
        for word, coordinates in zip(learner.words_, learner.word_vectors_.T, strict=True)
    ]


def _topics(learner: Any) -> Records:
    return [
        {
            "topic": place + 1,
            "share": float(learner.topic_shares_[place]),
            "share error": float(learner.topic_shares_error_[place]),
            "words": ", ".join(map(str, words)),
        }
        for place, words in enumerate(learner.top_words())
    ]


def _directions(learner: Any) -> Records:
    word = "factor" if type(learner).__name__ == "FactorAnalysis" else "component"
    names = [f"{word} {place + 1}" for place in range(len(learner.components_))]
    return [
        {"coordinate": key, **dict(zip(names, map(float, learner.components_[:, i]), strict=True))}
        for i, key in enumerate(learner._features.keys)
    ]


def _groups(learner: Any, word: str, centres: Any, shares: Any) -> Records:
    keys = learner._features.keys
    return [
        {word: place, "share": float(share), **dict(zip(keys, map(float, centre), strict=True))}
        for place, (centre, share) in enumerate(zip(centres, shares, strict=True))
    ]


def _nodes(learner: Any, place: int) -> Records:
    """A node and all below it, indented."""
    node = learner.tree_[place]
    said = "all rows"
    if node.parent is not None:
        split = learner.tree_[node.parent].split
        said = learner.attributes_[split.attribute].text(split.groups[node.child])
    shares = {str(name): share for name, share in zip(learner.classes_, node.shares, strict=True)}
    line = {"node": "  " * node.depth + said, "rows": round(sum(node.counts)), **shares}
    return [line, *(line for child in node.children for line in _nodes(learner, child))]


def _coefficients(learner: Any) -> Records:
    """One line a coordinate: its weight and the noise of that, or its weight for each class."""
    matrix = np.atleast_2d(learner.coef_)
    keys = learner._features.keys
    if len(matrix) > 1:
        return [
            {"coordinate": key,
             **{str(c): float(w) for c, w in zip(learner.classes_, matrix[:, i], strict=True)}}
            for i, key in enumerate(keys)
        ]  # fmt: skip
    errors = getattr(learner, "coef_error_", None)
    if errors is None:
        return [{"coordinate": k, "weight": float(w)} for k, w in zip(keys, matrix[0], strict=True)]
    return [
        {"coordinate": key, "weight": float(weight), "noise": float(error)}
        for key, weight, error in zip(keys, matrix[0], np.ravel(errors), strict=True)
    ]


def _shares(learner: Any) -> Records:
    """The classes and their noisy shares; where class means were learned, those too."""
    means = getattr(learner, "theta_", None)
    numbers = getattr(learner, "_gaussian", None)
    lines: Records = []
    for place, (name, share) in enumerate(
        zip(learner.classes_, class_shares(learner), strict=True)
    ):
        line: dict[str, Any] = {"class": str(name), "share": float(share)}
        if means is not None and numbers is not None:
            line |= {f"mean {k}": float(m) for k, m in zip(numbers.keys, means[place], strict=True)}
        lines.append(line)
    return lines


def _rules(learner: Any) -> Records:
    return [
        {"rule": arrow(rule), "support": rule.support, "confidence": rule.confidence,
         "lift": rule.lift, "noise": rule.confidence_error}
        for rule in learner.rules_
    ]  # fmt: skip


def _links(learner: Any) -> Records:
    order = np.argsort(-learner.scores_, kind="stable")
    return [
        {
            "item": str(learner.items_[place]),
            "score": float(learner.scores_[place]),
            "noise": float(learner.scores_error_[place]),
        }
        for place in order
    ]
