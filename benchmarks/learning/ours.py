"""The product's own estimators, by their public names and with their defaults."""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.learning.jobs import DELTA, Job
from benchmarks.learning.tasks import Problem, scaled_centres
from sulq import Category, Database, Promise

LEARN = Path(__file__).parents[2] / "src" / "sulq" / "learn"


class Missing(Exception):
    """There is no such estimator (yet)."""


def promise_of(job: Job) -> Promise:
    """`pure` is the stronger guarantee at the same epsilon: delta 0, Laplace noise, add-remove."""
    if job.promise == "pure":
        return Promise(epsilon=job.eps, noise="laplace", neighbours="add-remove")
    return Promise(epsilon=job.eps, delta=DELTA, neighbours=job.promise)


def class_of(name: str) -> Any:
    try:
        return getattr(importlib.import_module("sulq.learn"), name)
    except (ImportError, AttributeError) as error:
        raise Missing(f"sulq.learn has no {name}") from error


def estimator(given: Problem, job: Job) -> Any:
    kind = class_of(job.model)
    known = inspect.signature(kind).parameters
    wanted: dict[str, Any] = {
        "n_clusters": given.task.size,
        "n_components": given.task.size,
        "random_state": job.repeat,
    }
    settings = {name: value for name, value in wanted.items() if name in known}
    if job.side == "paper":
        settings["method"] = "paper"
    return kind(**settings, **dict(job.setting))


def codes_of(label: Category, predicted: Any) -> Any:
    """Predicted values as their place among the declared ones; -1 for anything else."""
    assert label.values is not None
    hit = np.asarray(predicted).astype(str)[:, None] == np.array(label.values).astype(str)
    return np.where(hit.any(axis=1), hit.argmax(axis=1), -1)


def learn(given: Problem, job: Job) -> Any:
    """Codes, numbers, scaled centres or components."""
    model = estimator(given, job)
    task = given.task
    used = [*given.features, task.label] if task.label else given.features
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schema = type(given.table.schema)(*(given.table.column(name) for name in used))
        with Database.open(given.train[used], schema, promise_of(job), ":memory:") as database:
            if task.label:
                model.fit(database, given.features, label=task.label)
            else:
                model.fit(database, given.features)
    if task.kind == "kmeans":
        return scaled_centres(given, model.cluster_centers_)
    if task.kind in ("pca", "svd"):
        return model.components_
    predicted = model.predict(given.test[given.features])
    label = given.label
    return codes_of(label, predicted) if isinstance(label, Category) else predicted


# --- which code was measured ----------------------------------------------------------------------


def meaning(path: Path) -> str:
    """The code without comments, layout and docstrings: rewording must not void a long run."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        match getattr(node, "body", None):
            case [ast.Expr(value=ast.Constant() as said), *_]:
                said.value = ""
    return ast.dump(tree)


def imported(path: Path, home: Path) -> set[Path]:
    """The files of the package that a file imports by name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sulq.learn"):
            inside = (node.module or "").split(".")[2:]
            near = [home.joinpath(*inside).with_suffix(".py")] if inside else []
            near += [home.joinpath(*inside, f"{alias.name}.py") for alias in node.names]
            near.append(home.joinpath(*inside, "__init__.py"))
            found |= {file for file in near if file.exists() and file != home / "__init__.py"}
    return found


@cache
def version(model: str) -> str:
    """A hash of the code of sulq.learn that the estimator can reach."""
    module = inspect.getmodule(class_of(model))
    assert module is not None and module.__file__ is not None
    pending, seen = [Path(module.__file__)], set[Path]()
    while pending:
        path = pending.pop()
        if path not in seen:
            seen.add(path)
            pending += imported(path, LEARN)
    text = "".join(f"{path.relative_to(LEARN)} {meaning(path)}" for path in sorted(seen))
    return hashlib.sha256(text.encode()).hexdigest()[:12]
