"""In SQL: a CASE of labels, a joined lookup and a list are one set of values, paid for once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from sulq import Category, Database, Flag, Number, Promise, Schema

CITIES = ["Bergen", "Oslo", "Paris", "Roma"]
SCHEMA = Schema(Category("city", CITIES), Number("age", 0, 120, step=1), Flag("ill"))
LOOKUPS = {"regions": {"key": CITIES, "region": ["north", "north", "south", "south"]}}
LABELS = "CASE WHEN city IN ('Oslo', 'Bergen') THEN 'n' WHEN city IN ('Paris', 'Roma') THEN 's' END"
OTHERS = (
    "CASE WHEN city = 'Paris' OR city = 'Roma' THEN 2 WHEN city <> 'Paris' AND"
    " (city = 'Bergen' OR city = 'Oslo') THEN 1 END"
)
SPELLINGS = {
    "labels": f"SELECT {LABELS} AS side, COUNT(*) FROM t WHERE city IS NOT NULL GROUP BY side",
    "others": f"SELECT {OTHERS} AS side, COUNT(*) FROM t WHERE city IS NOT NULL GROUP BY side",
    "lookup": (
        "SELECT region, COUNT(*) FROM t LEFT JOIN regions ON t.city = regions.key"
        " WHERE city IS NOT NULL GROUP BY region"
    ),
    "lists": (
        "SELECT COUNT_IF(city IN ('Oslo', 'Bergen')), COUNT_IF(city IN ('Roma', 'Paris')),"
        " COUNT(city) FROM t"
    ),
}
CONDITIONS = {
    "list": "city IN ('Oslo', 'Bergen')",
    "label": f"{LABELS} = 'n'",
    "not the other": f"COALESCE({LABELS}, 's') <> 's'",
    "like": f"{OTHERS} < 2",
    "pattern": f"{LABELS} LIKE 'n%'",
    "two labels": f"{OTHERS} = CASE WHEN city IS NULL THEN 7 ELSE 1 END",
}


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    random = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "city": random.choice([*CITIES, None], 400),
            "age": random.integers(0, 100, 400),
            "ill": random.random(400) < 0.5,
        }
    )


def opened(rows: pd.DataFrame) -> Database:
    return Database.open(rows, SCHEMA, Promise(1, "1e-6", queries=100), ":memory:")


def asked(db: Database, text: str, **terms: Any) -> Any:
    return db.sql(text, lookups=LOOKUPS, **terms)


@pytest.mark.parametrize("first", SPELLINGS)
def test_groups_in_other_words_are_free(rows: pd.DataFrame, first: str) -> None:
    db = opened(rows)
    assert asked(db, SPELLINGS[first], credits=12).credits == 12
    for text in SPELLINGS.values():
        assert asked(db, text).credits == 0, text


@pytest.mark.parametrize("first", CONDITIONS)
def test_conditions_in_other_words_are_free(rows: pd.DataFrame, first: str) -> None:
    db = opened(rows)
    text = "SELECT SUM(age) FROM t WHERE "
    before = asked(db, text + CONDITIONS[first])
    for condition in CONDITIONS.values():
        again = asked(db, text + condition)
        assert again.credits == 0 and again.rows[0][0].value == before.rows[0][0].value, condition
    assert asked(db, text + "city IN ('Oslo', 'Roma')").credits > 0


def test_a_finer_table_tells_the_coarser_one(rows: pd.DataFrame) -> None:
    """Cities and illness are paid for: regions by illness, a region's ill, those of no region."""
    db = opened(rows)
    asked(db, "SELECT city, ill, COUNT(*) FROM t GROUP BY city, ill", credits=16)
    joined = "FROM t JOIN regions ON t.city = regions.key"
    for text in (
        f"SELECT region, ill, COUNT(*) {joined} GROUP BY region, ill",
        f"SELECT COUNT(*) {joined} WHERE region = 'south' AND ill",
        f"SELECT {LABELS} AS side, COUNT(*) FROM t WHERE ill GROUP BY side",
    ):
        assert asked(db, text).credits == 0, text
