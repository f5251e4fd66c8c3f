"""Draw the pictures of the guides anew: .venv/bin/python scripts/pictures.py [NAME ...]

Each is learned from the fictional register of `sulq demo`; the noise is fresh, so numbers differ.
`scripts/pictures.py console [WIDTH ...]` takes the pages of the console, at four widths and in both
themes, with Playwright and Chromium.
"""

from __future__ import annotations

import io
import itertools
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

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


WIDTHS = (1440, 1024, 768, 390)
COLOURS = 48
"""Of a picture of the console: few, so that its file stays small."""
CROSSED = "SELECT diagnosis, sex, AVG(bmi) AS b, COUNT(*) AS n FROM people GROUP BY diagnosis, sex"
STAY = "SELECT region, AVG(visits) AS visits FROM people WHERE age >= 65 GROUP BY region"


def save_small(picture: bytes, path: Path) -> None:
    """Save a PNG with few colours; as it is where Pillow is not installed."""
    try:
        from PIL import Image
    except ImportError:
        path.write_bytes(picture)
        return
    few = Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLOURS)
    few.save(path, optimize=True)


def console(widths: list[int]) -> None:
    """Pages of the console as an analyst and an owner see them."""
    from playwright.sync_api import sync_playwright
    from tests.server.serving import serving

    from sulq.server.app import create_app
    from sulq.server.auth.tokens import Access, Role
    from sulq.server.service.catalog import Tables

    folder = PICTURES / "console"
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as running:
        os.environ["SULQ_STATE"] = str(Path(place) / "state")
        make_demo(Path(place), PEOPLE)
        promise = Promise(1, "1e-6", credits=200)
        source, ledger = Path(place) / "people.parquet", Path(place) / "pictures.ledger"
        with Database.open(source, SCHEMA, promise, ledger, name="people", publish=True) as db:
            db.grant("ann", 60)
            told = db.as_analyst("ann").sql(STAY)
            crossed = db.as_analyst("ann").sql(CROSSED)
            access = Access.open()
            tokens = {
                "ann": access.lend("ann", Role.ANALYST),
                "eva": access.lend("eva", Role.OWNER),
            }
            pages = {
                "table": ("ann", "table"),
                "ask": ("ann", f"ask#q={quote(STAY)}"),
                "answer": ("ann", f"a/{told.receipts[0].body['seq']}"),
                "crossed": ("ann", f"a/{crossed.receipts[0].body['seq']}"),
                "boards": ("ann", "boards"),
                "budget": ("eva", "budget"),
                "ledger": ("eva", "ledger"),
                "risk": ("ann", "risk"),
                "access": ("eva", "access"),
            }
            found = shutil.which("chromium") or shutil.which("google-chrome")
            browser = running.chromium.launch(executable_path=found)
            with serving(create_app(Tables({"people": db}), access)) as port:
                for width, theme in itertools.product(widths, ("light", "dark")):
                    view: Any = {"viewport": {"width": width, "height": 900}, "color_scheme": theme}
                    page = browser.new_page(**view, reduced_motion="reduce")
                    for name, (who, address) in pages.items():
                        page.goto(f"http://127.0.0.1:{port}/healthz")
                        page.evaluate("(t) => sessionStorage.setItem('sulq.token', t)", tokens[who])
                        page.goto(f"http://127.0.0.1:{port}/t/people/{address}")
                        page.wait_for_selector("html[data-ready]")
                        page.wait_for_load_state("networkidle")
                        save_small(
                            page.screenshot(full_page=True), folder / f"{name}-{width}-{theme}.png"
                        )
                    page.close()
            browser.close()
            access.close()
    print(folder)


def main(names: list[str]) -> None:
    PICTURES.mkdir(exist_ok=True)
    if "console" in names:
        return console([int(name) for name in names if name.isdigit()] or list(WIDTHS))
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
