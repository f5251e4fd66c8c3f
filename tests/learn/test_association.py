"""AssociationRules: Apriori, exact without noise; with it, supports keep to their errors."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from tests.learn.exact_oracle import ExactOracle
from tests.people import publish

from sulq import Category, Flag, InvalidQuery, Number, Promise, Schema
from sulq.learn import TooNoisy
from sulq.learn.association import AssociationRules

COLUMNS = ["bread", "butter", "jam", "shop"]
SCHEMA = Schema(
    Flag("bread"), Flag("butter"), Flag("jam"), Category("shop", ["N", "S"]), Number("sum", 0, 9)
)


def baskets(rows=5_000, seed=2):
    random = np.random.default_rng(seed)
    bread = random.random(rows) < 0.6
    butter = np.where(bread, random.random(rows) < 0.8, random.random(rows) < 0.1)
    jam = np.where(bread & butter, random.random(rows) < 0.7, random.random(rows) < 0.05)
    shop = random.choice(["N", "S"], rows, p=[0.7, 0.3])
    return pd.DataFrame(
        {"bread": bread, "butter": butter, "jam": jam, "shop": shop, "sum": random.random(rows)}
    )


def plain_supports(data, least, longest):
    """Every frequent set, by looking at the rows."""
    items = {name: data[name].to_numpy() for name in ("bread", "butter", "jam")}
    items |= {f"shop={v}": (data["shop"] == v).to_numpy() for v in ("N", "S")}
    found = {}
    for size in range(1, longest + 1):
        for held in combinations(items, size):
            share = np.logical_and.reduce([items[name] for name in held]).mean()
            if share >= least:
                found[frozenset(held)] = share
    return found


def test_without_noise_it_is_apriori():
    data = baskets()
    found = AssociationRules(0.1, 0.5, 4).fit(ExactOracle(publish(data, SCHEMA)), COLUMNS)
    ours = {frozenset(held.items): held.support for held in found.itemsets_}
    assert ours == pytest.approx(plain_supports(data, 0.1, 4), abs=1e-9)
    best = {(rule.given, rule.then): rule for rule in found.rules_}
    rule = best[("bread", "butter"), ("jam",)]
    both = (data["bread"] & data["butter"]).mean()
    every = (data["bread"] & data["butter"] & data["jam"]).mean()
    assert rule.confidence == pytest.approx(every / both)
    assert rule.lift == pytest.approx(every / both / data["jam"].mean())
    assert all(rule.confidence >= 0.5 for rule in found.rules_)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("delta", ["1e-6", 0])
def test_noisy_supports_keep_to_their_errors(neighbours, delta):
    data = baskets()
    db = publish(data, SCHEMA, Promise(1, delta, neighbours=neighbours))
    found = AssociationRules(0.2, 0.6).fit(db, COLUMNS)
    true = plain_supports(data, 0.0, 3)
    for held in found.itemsets_:
        assert abs(held.support - true[frozenset(held.items)]) < 7 * held.error
    assert any(rule.given == ("bread",) and rule.then == ("butter",) for rule in found.rules_)
    assert {"given", "then", "lift"} <= set(found.to_pandas().columns)


def test_nothing_above_the_noise_is_said():
    with pytest.raises(TooNoisy, match="min_support"):
        AssociationRules(0.4).fit(publish(baskets(30), SCHEMA, Promise("0.1", "1e-6")), COLUMNS)


@pytest.mark.parametrize(
    ("learner", "columns", "words"),
    [
        (AssociationRules(0), COLUMNS, "min_support"),
        (AssociationRules(min_confidence=2), COLUMNS, "min_confidence"),
        (AssociationRules(max_length=1), COLUMNS, "max_length"),
        (AssociationRules(), ["bread", "sum"], "Numbers"),
        (AssociationRules(), ["bread"], "two columns"),
    ],
)
def test_wrong_settings_cost_nothing(learner, columns, words):
    db = publish(baskets(100), SCHEMA)
    with pytest.raises(InvalidQuery, match=words):
        learner.fit(db, columns)
    assert db.remaining == 100


def test_values_of_one_column_are_charged_jointly():
    """V.3: a column of thirty values costs what a column of two costs, at any length."""
    data = baskets().assign(flag=True)
    errors = []
    for values in (["N", "S"], ["N", "S", *(f"v{i}" for i in range(28))]):
        schema = Schema(*(Flag(name) for name in COLUMNS[:3]), Category("shop", values))
        found = AssociationRules(0.2, 0.5, 3).fit(publish(data, schema), COLUMNS)
        errors.append({len(held.items): held.error for held in found.itemsets_})
    assert errors[0] == pytest.approx(errors[1], rel=0.02)
    assert set(errors[0]) == {1, 2, 3}
