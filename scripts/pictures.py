"""Draw the pictures of the guides anew: .venv/bin/python scripts/pictures.py [NAME ...]

Each is learned from the fictional register of `sulq demo`; the noise is fresh, so numbers differ.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from sulq import Database, Promise, learn
from sulq.demo import SCHEMA, make_demo
from sulq.learn.plots import save

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
PEOPLE = 40_000
BODY = ["age", "bmi", "blood_pressure", "income", "visits"]


def components(db: Database, town: pd.DataFrame) -> Any:
    return (
        learn.PCA(3, credits=2).fit(db, BODY).plot(title="PCA of a health register, for 2 credits")
    )


def clusters(db: Database, town: pd.DataFrame) -> Any:
    return (
        learn.KMeans(4, random_state=1)
        .fit(db, ["age", "income", "bmi", "visits"])
        .plot(title="KMeans: four groups of people")
    )


def mixture(db: Database, town: pd.DataFrame) -> Any:
    return (
        learn.GaussianMixture(3, random_state=1)
        .fit(db, ["age", "income"])
        .plot(title="GaussianMixture: three components")
    )


def classifying_tree(db: Database, town: pd.DataFrame) -> Any:
    tree = learn.DecisionTree(max_depth=3).fit(db, ["age", "smoker", "visits", "bmi"], "diagnosis")
    return tree.plot(title="DecisionTree: diagnosis")


def classifying_roc(db: Database, town: pd.DataFrame) -> Any:
    columns = ["age", "bmi", "blood_pressure", "income", "visits"]
    return (
        learn.LogisticRegression()
        .fit(db, columns, "smoker")
        .plot(town, town.smoker, title="LogisticRegression: who smokes?")
    )


def regression(db: Database, town: pd.DataFrame) -> Any:
    columns = ["age", "bmi", "smoker", "income", "visits"]
    return (
        learn.LinearRegression()
        .fit(db, columns, "blood_pressure")
        .plot(town, town.blood_pressure, title="LinearRegression: blood pressure")
    )


DRAWN: dict[str, Callable[[Database, pd.DataFrame], Any]] = {
    "components": components,
    "clusters": clusters,
    "mixture": mixture,
    "classifying-tree": classifying_tree,
    "classifying-roc": classifying_roc,
    "regression": regression,
}


def main(names: list[str]) -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SULQ_STATE"] = str(Path(folder) / "state")
        register = Path(folder) / "register"
        make_demo(register, PEOPLE)
        town = pd.read_parquet(register / "town.parquet")
        for name in names or DRAWN:
            with Database.open(
                register / "people.parquet", SCHEMA, Promise(1, "1e-6"), ledger=":memory:"
            ) as db:
                print(save(DRAWN[name](db, town), PICTURES / f"{name}.svg"))


if __name__ == "__main__":
    main(sys.argv[1:])
