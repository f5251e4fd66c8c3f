"""What is to be learned, one repeat of it as a problem, and how a result is scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans

from benchmarks.learning.data import Table, encoded, scaled, split, table
from sulq import Category, Number

KINDS = {
    "classify": "accuracy",
    "kmeans": "inertia / non-private inertia, low is good",
    "pca": "captured variance / the most possible",
    "svd": "captured square length / the most possible",
    "regress": "R²",
}


@dataclass(frozen=True, slots=True)
class Task:
    """One kind of learning on one table."""

    kind: str
    table: str
    size: int = 0  # clusters or components
    numbers_only: bool = False
    label: str | None = None

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.table}"

    @property
    def low_is_good(self) -> bool:
        return self.kind == "kmeans"

    def features(self, data: Table) -> list[str]:
        return [
            c.name
            for c in data.columns
            if c.name != self.label and not (self.numbers_only and isinstance(c, Category))
        ]


TASKS = (
    Task("classify", "census", label="income"),
    Task("classify", "breast_cancer", label="label"),
    Task("classify", "digits", label="label"),
    Task("classify", "wine", label="label"),
    Task("kmeans", "census", 8, numbers_only=True),
    Task("kmeans", "digits", 10),
    Task("kmeans", "breast_cancer", 2),
    Task("kmeans", "wine", 3),
    Task("pca", "census", 10),
    Task("pca", "digits", 10),
    Task("pca", "breast_cancer", 3),
    Task("pca", "wine", 2),
    Task("regress", "diabetes", label="label"),
    Task("regress", "census", label="age"),
)
EXTRA = (Task("svd", "digits", 10), Task("svd", "wine", 2))
ADULT = (
    Task("classify", "adult", label="classification"),
    Task("kmeans", "adult", 8, numbers_only=True),
    Task("pca", "adult", 10),
    Task("regress", "adult", label="age"),
)
BY_NAME = {task.name: task for task in (*TASKS, *EXTRA, *ADULT)}


def chosen(words: Sequence[str], among: Sequence[Task]) -> list[Task]:
    """Tasks whose name, kind or table is one of the words; all of them without words."""
    found = [t for t in among if not words or {t.name, t.kind, t.table} & set(words)]
    known = {w for t in BY_NAME.values() for w in (t.name, t.kind, t.table)}
    unknown = sorted(set(words) - known)
    if unknown:
        raise SystemExit(f"no task, kind or table {unknown}; there are {sorted(known)}")
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """One repeat: what may be learned from, what it is judged on, and its two ends."""

    task: Task
    table: Table
    features: list[str]
    train: pd.DataFrame
    test: pd.DataFrame
    x: Any  # encoded rows to learn from
    best: float  # non-private inertia, or the most a subspace can capture; else 1
    floor: float

    @property
    def label(self) -> Number | Category:
        assert self.task.label is not None
        return self.table.column(self.task.label)

    def encoded_test(self) -> Any:
        return encoded(self.table, self.features, self.test)

    def codes(self, frame: pd.DataFrame) -> Any:
        """Labels as 0, 1, ..., or as the number they are."""
        label = self.label
        values = frame[label.name].to_numpy()
        if isinstance(label, Number):
            return values.astype(float)
        return (values[:, None] == np.array(label.values)).argmax(axis=1)


def inertia(x: Any, centres: Any) -> float:
    """Squared distances to the nearest centre, added."""
    squares = np.square(centres).sum(axis=1)
    near = (squares - 2 * x @ centres.T).min(axis=1)
    return float((np.square(x).sum(axis=1) + near).sum())


def scatter(x: Any, centred: bool) -> Any:
    moved = x - x.mean(axis=0) if centred else x
    return moved.T @ moved / len(x)


def captured(components: Any, moments: Any) -> float:
    """Of the moments, what lies in the span of the components."""
    basis = np.linalg.qr(np.asarray(components, float).T)[0]
    return float(np.trace(basis.T @ moments @ basis))


def ends(task: Task, x: Any, repeat: int) -> tuple[float, float]:
    """(best, floor) of learning without labels: the non-private best, and knowing nothing.

    Knowing nothing is one centre at the exact mean, or a random subspace (its expectation).
    """
    if task.kind == "kmeans":
        fitted = KMeans(task.size, n_init=10, random_state=repeat).fit(x)
        best = float(fitted.inertia_)
        return best, inertia(x, x.mean(axis=0)[None]) / best
    spectrum = np.linalg.eigvalsh(scatter(x, task.kind == "pca"))
    most = float(spectrum[-task.size :].sum())
    return most, float(spectrum.sum()) * task.size / len(spectrum) / most


@lru_cache(maxsize=2)
def problem(name: str, repeat: int, folder: Path | None = None) -> Problem:
    task = BY_NAME[name]
    data = table(task.table, folder)
    features = task.features(data)
    strata = data.frame[task.label] if task.kind == "classify" else np.zeros(len(data.frame))
    train, test = (
        data.frame.iloc[rows].reset_index(drop=True)
        for rows in split(np.asarray(strata), data.held_out, repeat)
    )
    x = encoded(data, features, train)
    best, floor = (1.0, 0.0) if task.label else ends(task, x, repeat)
    if task.kind == "classify":
        most = train[task.label].mode()[0]
        floor = float((test[task.label] == most).mean())
    return Problem(task, data, features, train, test, x, best, floor)


def score(given: Problem, result: Any) -> float:
    """The result is predicted codes or numbers, centres in scaled units, or components."""
    task, found = given.task, np.asarray(result)
    if task.kind == "kmeans":
        return inertia(given.x, found) / given.best
    if task.kind in ("pca", "svd"):
        return captured(found, scatter(given.x, task.kind == "pca")) / given.best
    actual = given.codes(given.test)
    if task.kind == "classify":
        return float((found == actual).mean())
    assert isinstance(given.label, Number)
    low, high = (float(end) for end in given.label.range)
    errors, spread = actual - np.clip(found, low, high), actual - actual.mean()
    return float(1 - np.square(errors).sum() / np.square(spread).sum())


def scaled_centres(given: Problem, centres: Any) -> Any:
    """Centres from user units to bounds-scaled ones."""
    found = [
        scaled(column, np.asarray(centres)[:, place])
        for place, name in enumerate(given.features)
        if isinstance(column := given.table.column(name), Number)
    ]
    return np.stack(found, axis=1)
