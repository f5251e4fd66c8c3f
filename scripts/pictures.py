"""Draw the pictures of the guides anew: .venv/bin/python scripts/pictures.py [NAME ...]

Each is learned from the fictional register of `sulq demo`; the noise is fresh, so numbers differ.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import altair
import numpy as np
import pandas as pd

from sulq import Database, Flag, Promise, Schema, learn
from sulq.demo import SCHEMA, make_demo
from sulq.kernel.accounting.calibration import calibrate
from sulq.learn.plotting.registry import save
from sulq.learn.plotting.style import chart, colours, finished

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
PEOPLE = 40_000
BODY = ["age", "bmi", "blood_pressure", "income", "visits"]


def components(db: Database, town: pd.DataFrame) -> Any:
    return (
        learn.PCA(3, credits=2).fit(db, BODY).plot(title="PCA of a health register, for 2 credits")
    )


def clusters(db: Database, town: pd.DataFrame) -> Any:
    return (
        learn.KMeans(4, credits=10, random_state=1)
        .fit(db, ["age", "income", "bmi", "visits"])
        .plot(title="KMeans: four groups of people, for 10 credits")
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


def baskets(rows: int) -> pd.DataFrame:
    """What fictional people bought: breakfast, a party, both or neither."""
    draw = np.random.default_rng(5)
    breakfast, party = draw.random(rows) < 0.5, draw.random(rows) < 0.3
    chances = {
        "bread": 0.2 + 0.6 * breakfast,
        "butter": 0.05 + 0.6 * breakfast,
        "jam": 0.02 + 0.4 * breakfast,
        "milk": 0.25 + 0.3 * breakfast,
        "beer": 0.05 + 0.7 * party,
        "crisps": 0.1 + 0.5 * party,
        "soap": np.full(rows, 0.15),
    }
    return pd.DataFrame({name: draw.random(rows) < chance for name, chance in chances.items()})


def shop() -> Database:
    frame = baskets(20_000)
    schema = Schema(*(Flag(name) for name in frame.columns))
    return Database.open(frame, schema, Promise(1, "1e-6"), ledger=":memory:")


def links(db: Database, town: pd.DataFrame) -> Any:
    with shop() as sold:
        items = [column.name for column in sold.schema.columns]
        return (
            learn.LinkAnalysis(credits=5)
            .fit(sold, items)
            .plot(title="LinkAnalysis of 20,000 baskets, for 5 credits")
        )


def rules(db: Database, town: pd.DataFrame) -> Any:
    with shop() as sold:
        items = [column.name for column in sold.schema.columns]
        return (
            learn.AssociationRules(credits=20)
            .fit(sold, items)
            .plot(title="AssociationRules in 20,000 baskets, for 20 credits")
        )


def statistical(db: Database, town: pd.DataFrame) -> Any:
    """What a share within tau costs, of a promise of 1,000 unit questions."""
    promise = Promise(1, "1e-6", 1000)
    unit = calibrate(promise).unit_standard_deviation
    sure = math.log(2 / 0.01)
    taus = np.geomspace(0.001, 0.2, 60)
    sizes = (1_000, 10_000, 100_000, 1_000_000)
    records = [
        {"tau": tau, "credits": credits, "rows": f"{rows:,} rows"}
        for rows in sizes
        for tau in taus
        if 0.01 <= (credits := 2 * unit**2 * sure / (tau * rows) ** 2) <= 1000
    ]
    lines = (
        chart(records, width=420, height=260)
        .mark_line(strokeWidth=2)
        .encode(
            altair.X(
                "tau:Q",
                scale=altair.Scale(type="log", domain=[0.001, 0.2]),
                title="tolerance tau",
                axis=altair.Axis(values=[0.001, 0.01, 0.1]),
            ),
            altair.Y(
                "credits:Q",
                scale=altair.Scale(type="log", domain=[0.01, 1000]),
                title="credits, of 1,000",
                axis=altair.Axis(values=[0.01, 0.1, 1, 10, 100, 1000]),
            ),
            colours("rows", [f"{rows:,} rows" for rows in sizes], orient="right"),
        )
    )
    said = [
        "with 99 % confidence; epsilon 1, delta 1e-6: half the tolerance is four times the price"
    ]
    return finished(lines, "What one statistical query costs", said)


DRAWN: dict[str, Callable[[Database, pd.DataFrame], Any]] = {
    "components": components,
    "clusters": clusters,
    "mixture": mixture,
    "classifying-tree": classifying_tree,
    "classifying-roc": classifying_roc,
    "regression": regression,
    "links": links,
    "rules": rules,
    "statistical": statistical,
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
