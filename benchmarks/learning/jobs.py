"""The plan: every fit there is to make, as a value that names it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from benchmarks.learning.tasks import Task

EPSILONS = ("0.1", "0.5", "1", "3")
DELTA = "1e-6"

CLASSIFIERS = (
    "Classifier",
    "LogisticRegression",
    "LinearDiscriminant",
    "LinearSVC",
    "Perceptron",
    "DecisionTree",
    "NaiveBayes",
)
OURS = {
    "classify": CLASSIFIERS,
    "kmeans": ("KMeans",),
    "pca": ("PCA",),
    "svd": ("SVD",),
    "regress": ("LinearRegression",),
}
WITHOUT_PAPER = ("Classifier", "LogisticRegression", "LinearSVC")
"""The papers have no algorithm of theirs."""
PROMISES = ("add-remove", "replace", "pure")
CEILINGS = {
    "classify": ("LogisticRegression", "DecisionTree", "RandomForest"),
    "kmeans": (),
    "pca": (),
    "svd": (),
    "regress": ("LinearRegression",),
}
# The best mean over these is taken for the peer: tuned on the test rows, in its favour.
PEER_GRID: dict[str, dict[str, list[dict[str, Any]]]] = {
    "classify": {
        "GaussianNB": [{}],
        "LogisticRegression": [
            *({"C": c, "reach": 1} for c in (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3)),
            *({"C": c, "reach": 0.5} for c in (0.003, 0.01, 0.03, 0.1, 0.3, 1)),
        ],
        "DecisionTreeClassifier": [{"max_depth": depth} for depth in range(1, 7)],
        "RandomForestClassifier": [
            {"n_estimators": trees, "max_depth": depth}
            for trees, depth in product((3, 10, 30), (2, 4, 6))
        ],
    },
    "kmeans": {"KMeans": [{}]},
    "pca": {"PCA": [{"reach": reach} for reach in (8, 4, 2, 1)]},
    "svd": {},
    "regress": {"LinearRegression": [{}]},
}


@dataclass(frozen=True, slots=True)
class Job:
    """One fit: side is floor, ceiling, peer, paper or ours."""

    task: str
    side: str
    model: str
    repeat: int
    eps: str = ""
    promise: str = ""
    setting: tuple[tuple[str, Any], ...] = ()

    @property
    def method(self) -> tuple[Any, ...]:
        """What is averaged over repeats."""
        return (self.task, self.side, self.model, self.eps, self.promise, self.setting)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "setting": dict(self.setting)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Job:
        names = ("task", "side", "model", "repeat", "eps", "promise")
        known = {name: data[name] for name in names}
        return cls(**known, setting=tuple(sorted(data["setting"].items())))


@dataclass(frozen=True, slots=True)
class Plan:
    """What was asked for on the command line."""

    tasks: Sequence[Task]
    eps: Sequence[str] = EPSILONS
    repeats: int = 20
    sides: Sequence[str] = ("floor", "ceiling", "peer", "paper", "ours")
    models: Sequence[str] = ()
    promises: Sequence[str] = PROMISES
    setting: tuple[tuple[str, Any], ...] = ()

    def models_of(self, task: Task) -> list[str]:
        return [name for name in OURS[task.kind] if not self.models or name in self.models]

    def jobs(self) -> Iterator[Job]:
        """In an order that keeps one split in memory for long."""
        for task, repeat in product(self.tasks, range(self.repeats)):
            if self.models_of(task):
                yield from self.once(task, repeat)

    def once(self, task: Task, repeat: int) -> Iterator[Job]:
        if "floor" in self.sides:
            yield Job(task.name, "floor", "", repeat)
        if "ceiling" in self.sides:
            for model in CEILINGS[task.kind]:
                yield Job(task.name, "ceiling", model, repeat)
        for eps in self.eps:
            if "peer" in self.sides:
                for model, settings in PEER_GRID[task.kind].items():
                    for setting in settings:
                        known = tuple(sorted(setting.items()))
                        yield Job(task.name, "peer", model, repeat, eps, "", known)
            for model in self.models_of(task):
                if "paper" in self.sides and model not in WITHOUT_PAPER:
                    yield Job(task.name, "paper", model, repeat, eps, "replace")
                if "ours" in self.sides:
                    for promise in self.promises:
                        yield Job(task.name, "ours", model, repeat, eps, promise, self.setting)
