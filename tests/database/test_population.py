"""Several tables of the same people: one joint promise, whatever each table promises itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.people import SCHEMA, frame

from sulq import BudgetSpent, Database, InvalidQuery, Promise, col, count, mean
from sulq.errors import SulqError
from sulq.exact import Assumptions
from sulq.kernel.schema.promise import Population
from sulq.policy import read_policy, write_policy

SMOKERS = count(where=col("smoker"))
TOWN = Population("town", Promise(1, "1e-6"))


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("SULQ_STATE", str(tmp_path / "state"))


def opened(tmp_path, name, promise=TOWN.promise, *, population=TOWN, **more):
    rows = frame(300, seed=len(name))
    place = tmp_path / "town.ledger"
    return Database.open(
        rows, SCHEMA, promise, place, name=name, population=population, **more, publish=True
    )


def test_a_spent_population_does_not_ask_for_a_cheaper_question(tmp_path):
    with opened(tmp_path, "a") as one, opened(tmp_path, "bb") as two:
        one.ask(SMOKERS, credits=100)
        with pytest.raises(BudgetSpent, match="none is left for all its tables together; repeats"):
            two.ask(SMOKERS)
        assert one.ask(SMOKERS, credits=100).credits == 0


def test_two_tables_share_one_promise(tmp_path):
    with opened(tmp_path, "a") as one, opened(tmp_path, "bb", Promise(2, "1e-6")) as two:
        one.ask(SMOKERS, credits=60)
        # 40 credits of the population are 40 R2/R1 of the table with the larger promise
        worth = two.calibration.unit_variance / one.calibration.unit_variance
        assert two.remaining == pytest.approx(40 * worth, rel=1e-9)
        with pytest.raises(BudgetSpent, match="population 'town'"):
            two.ask(SMOKERS, credits=20)
        with pytest.raises(BudgetSpent):
            two.plan([SMOKERS, mean("age")], credits=12).ask()
        two.ask(SMOKERS, credits=10)
        first = one.ask(SMOKERS, credits=60)
        said = str(one.statement())
        assert first.credits == 0
        assert "population town (a, bb): 95.875" in said
        assert "joint promise: epsilon 1, delta 1e-06" in said
        assert "neighbours: all rows of one person change" in said.partition("joint promise")[2]
        # what both answered, as mu^2, is what the population's account has
        lost = 60 / one.calibration.unit_variance + 10 / two.calibration.unit_variance
        line = one.statement().statement.population
        assert line.spent.credits_fraction >= lost * one.calibration.unit_variance
    with opened(tmp_path, "a") as one:
        assert one.statement().statement.population == line


def test_pure_tables_add_epsilon(tmp_path):
    town = Population("town", Promise(1))
    with (
        opened(tmp_path, "a", Promise(1), population=town) as one,
        opened(tmp_path, "bb", Promise(3), population=town) as two,
    ):
        one.ask(SMOKERS, credits=40)  # 0.4 of epsilon
        assert two.remaining == 20  # 0.6 of 3 in 100 credits
        two.charge_outside(epsilon="0.3", reason="census")
        assert two.remaining == 10
        assert one.remaining == pytest.approx(30, abs=1e-9)


def test_an_amended_table_stays_in_its_population(tmp_path):
    rows = frame(300, seed=1)
    with opened(tmp_path, "a") as one:
        one.ask(SMOKERS, credits=50)
        larger = one.amend(promise=Promise(2, "1e-6"), source=rows)
        half = larger.remaining
        assert float(half) == pytest.approx(50 * 0.2787, rel=1e-3)  # R2 / R1
        larger.close()
    with opened(tmp_path, "a", Promise(2, "1e-6")) as again:
        assert again.remaining == half


@pytest.mark.parametrize(
    ("promise", "population"),
    [
        (Promise(1), TOWN),  # laplace beside gaussian
        (Promise(1, "1e-6", neighbours="add-remove"), TOWN),
        (Promise(1, "1e-6", 4, "binomial"), TOWN),
        (Promise(1, "1e-6"), "town"),
    ],
)
def test_what_does_not_add_up_is_refused(tmp_path, promise, population):
    with pytest.raises(InvalidQuery):
        opened(tmp_path, "a", promise, population=population)


def test_exact_release_and_another_promise_are_refused(tmp_path):
    facts = Assumptions("0.5", "1e-6", 0, {"smoker": "0.2"})
    with pytest.raises(SulqError, match="not add up over tables"):
        opened(tmp_path, "a", exactly=facts)
    for wrong in (("", Promise(1)), ("t", 1), ("t", Promise(1, "1e-6", 4, "binomial"))):
        with pytest.raises(InvalidQuery):
            Population(*wrong)
    opened(tmp_path, "a").close()
    with pytest.raises(SulqError, match="another promise by table 'a'"):
        opened(tmp_path, "bb", population=Population("town", Promise(2, "1e-6")))
    with pytest.raises(SulqError, match="published with other population"):
        opened(tmp_path, "a", population=None)


def test_a_policy_names_a_population(tmp_path):
    text = """
[people]
source = "people.csv"
ledger = "people.ledger"
promise = {epsilon = 1, delta = 1e-6, neighbours = "add-remove"}
population = {name = "town", epsilon = 2, delta = 1e-6}
columns.smoker = {flag = true}
"""
    file = tmp_path / "sulq.toml"
    file.write_text(text, "utf-8")
    found = read_policy(file)["people"]
    promised = Promise(2, "1e-6", neighbours="add-remove")
    assert found.population == Population("town", promised)
    again = tmp_path / "again.toml"
    write_policy(again, [found])
    assert read_policy(again)["people"].population == found.population
    for wrong in ('"town"', '{name = "town"}', "{epsilon = 1, delta = 1e-6}"):
        Path(file).write_text(
            text.replace('{name = "town", epsilon = 2, delta = 1e-6}', wrong), "utf-8"
        )
        with pytest.raises(InvalidQuery, match="population must be"):
            read_policy(file)
