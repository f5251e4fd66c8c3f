"""sulq learn: a table, a picture, a price; nothing is charged for a slip."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from sulq.cli.learn import ALGORITHMS

COLUMNS = ("--columns", "age,income")


@pytest.fixture
def crowd(sulq):
    """A table with structure: two groups by age, and an income that follows it."""
    duckdb.sql(
        "SELECT i AS person_id, CASE WHEN i % 2 = 0 THEN 20 + i % 11 ELSE 70 + i % 11 END AS age,"
        " CASE WHEN i % 2 = 0 THEN 200 + i % 101 ELSE 700 + i % 101 END AS income,"
        " i % 2 = 0 AS smoker, CASE WHEN i % 3 = 0 THEN 'Oslo' ELSE 'Paris' END AS city,"
        " DATE '2020-01-01' + CAST(i % 3000 AS INTEGER) AS seen FROM range(20000) AS t(i)"
    ).write_parquet("people.parquet")
    return sulq


@pytest.mark.slow
def test_a_tree_is_printed_and_drawn_and_paid_for(crowd):
    told = crowd(
        "learn", "tree", "people", *COLUMNS, "--label", "smoker", "--depth", "1", "--credits", "10"
    )
    assert told.code == 0, told.err
    assert "all rows" in told.out
    assert "10 credits" in told.out
    assert Path("tree.svg").read_text("utf-8").startswith("<svg")
    ledger = crowd("ledger", "--json").json
    assert float(ledger["spent"]) == pytest.approx(10, abs=1e-6)


def test_json_has_what_was_found_and_what_it_cost(crowd):
    found = crowd(
        "learn",
        "tree",
        *COLUMNS,
        "--label",
        "smoker",
        "--depth",
        "1",
        "--credits",
        "5",
        "--no-plot",
        "--json",
    ).json
    assert found["found"][0]["node"] == "all rows"
    left, right = found["found"][1:]
    assert min(left["True"], right["True"]) < 0.1 < 0.9 < max(left["True"], right["True"])
    assert found["credits"] == pytest.approx(5, abs=1e-6)
    assert found["left"] == pytest.approx(15, abs=1e-6)
    assert found["plot"] is None
    assert found["receipts"] == [1, 2] or len(found["receipts"]) >= 2
    assert not Path("tree.svg").exists()


def test_quote_is_free_and_publishes_nothing(crowd):
    found = crowd("learn", "tree", *COLUMNS, "--label", "smoker", "--quote", "--json").json
    assert sum(step["credits"] for step in found["steps"]) == pytest.approx(2, abs=1e-4)
    assert not Path("people.ledger").exists()
    assert not Path("tree.svg").exists()
    told = crowd("learn", "tree", *COLUMNS, "--label", "smoker", "--quote")
    assert "at most 2 credits" in told.out
    assert (
        "no `credits` were given: this fit takes at most a tenth of the 20 credits left" in told.out
    )


def test_a_label_may_be_a_condition(crowd):
    found = crowd(
        "learn",
        "tree",
        "--columns",
        "income",
        "--label",
        "age >= 50",
        "--depth",
        "1",
        "--no-plot",
        "--json",
        "--credits",
        "20",
    ).json
    assert "True" in found["found"][0]


def test_a_tenth_is_spent_unless_more_is_said_and_only_after_a_yes(crowd):
    words = ("learn", "tree", *COLUMNS, "--label", "smoker", "--depth", "1", "--no-plot")
    told = crowd(*words)
    assert (told.code, "at most 2 credits" in told.out) == (2, True)
    assert "up to 2 credits; --credits sets another amount. Look, then add --yes" in told.err
    assert crowd("ledger", "--json").json["spent"] == 0
    assert crowd(*words, "--yes", "--json").json["left"] == pytest.approx(18, abs=1e-4)


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("kmean", *COLUMNS), "did you mean 'kmeans'"),
        (("tree", "--label", "smoker"), "needs --columns"),
        (("tree", *COLUMNS), "needs --label"),
        (("pca", *COLUMNS, "--label", "smoker"), "takes no --label"),
        (("pca", *COLUMNS, "--depth", "3"), "takes no --depth; it takes --components"),
        (("tree", "--columns", "age,wealth", "--label", "smoker"), "wealth"),
        (("tree", *COLUMNS, "--label", "smoker", "--plot", "tree.pdf"), ".svg, .png, .html"),
        (("tree", *COLUMNS, "--label", "smoker", "--where", "age >"), ""),
        (("tree", *COLUMNS, "--label", "smoker", "--credits", "-1"), "above 0"),
        (("tree", *COLUMNS, "--label", "smoker", "--method", "magic"), "method must be"),
    ],
)
def test_a_slip_is_said_and_costs_nothing(crowd, words, said):
    told = crowd("learn", *words)
    assert told.code == 2, told.out + told.err
    assert said in told.err
    assert "Traceback" not in told.err
    ledger = Path("people.ledger")
    assert not ledger.exists() or float(crowd("ledger", "--json").json["spent"]) == 0
    assert not Path("tree.svg").exists()


def test_more_than_is_left_is_refused_with_4(crowd):
    told = crowd("learn", "tree", *COLUMNS, "--label", "smoker", "--credits", "21")
    assert told.code == 4
    assert "20 are left" in told.err


def test_an_analyst_learns_from_their_share(crowd):
    assert crowd("grant", "people", "ann", "3").code == 0
    words = (
        "learn",
        "tree",
        *COLUMNS,
        "--label",
        "smoker",
        "--depth",
        "1",
        "--as",
        "ann",
        "--credits",
        "3",
    )
    found = crowd(*words, "--no-plot", "--json", "--receipts", "r.jsonl").json
    assert found["credits"] == pytest.approx(3, abs=1e-6)
    assert found["left"] == pytest.approx(0, abs=1e-6)
    lines = Path("r.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["receipt"]["seq"] for line in lines] == found["receipts"]
    assert crowd("verify", "--receipts", "r.jsonl").code == 0


def test_below_the_noise_exits_3_and_says_what_was_spent(sulq):
    words = (
        "learn",
        "kmeans",
        "--columns",
        "age,income",
        "--clusters",
        "200",
        "--credits",
        "0.001",
    )
    told = sulq(*words, "--json")
    assert told.code == 3, told.out + told.err
    assert told.json["kind"] == "TooNoisy"
    assert 0 <= told.json["credits_spent"] <= 0.001
    assert "spent)" in told.err
    assert not Path("kmeans.svg").exists()


def test_without_the_extras_it_says_what_to_install(crowd, monkeypatch):
    import builtins

    real = builtins.__import__

    def missing(name, *rest):
        if name.partition(".")[0] in ("altair", "vl_convert"):
            raise ImportError(f"No module named {name!r}")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    words = ("learn", "tree", *COLUMNS, "--label", "smoker", "--depth", "1", "--credits", "1")
    wanted = crowd(*words, "--plot", "a.svg")
    assert wanted.code == 2
    assert "sulq[report]" in wanted.err
    assert crowd("ledger", "--json").json["spent"] == 0
    unasked = crowd(*words)  # the table is shown all the same
    assert unasked.code == 0
    assert "no picture" in unasked.err
    assert "all rows" in unasked.out


def test_every_algorithm_names_an_estimator():
    from sulq import learn

    assert [a.estimator for a in ALGORITHMS.values() if a.estimator not in learn.__all__] == []
