"""What scikit-learn reaches without privacy."""

from __future__ import annotations

from typing import Any

from sklearn import linear_model
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from benchmarks.learning.tasks import Problem


def model_of(kind: str, name: str, seed: int) -> Any:
    if kind == "regress":
        return linear_model.LinearRegression()
    if name == "LogisticRegression":
        return linear_model.LogisticRegression(C=10, max_iter=5_000)
    if name == "DecisionTree":
        return DecisionTreeClassifier(max_depth=8, random_state=seed)
    return RandomForestClassifier(100, min_samples_leaf=2, random_state=seed)


def learn(given: Problem, model: str, repeat: int) -> Any:
    """Predicted codes or numbers for the test rows."""
    chosen = model_of(given.task.kind, model, repeat)
    return chosen.fit(given.x, given.codes(given.train)).predict(given.encoded_test())
