"""Before anything was asked `sulq amend` changes anything, and `sulq withdraw` frees the file."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from tests.cli.conftest import POLICY

from sulq.kernel.ledger import failpoints

PERSONS = POLICY.replace(
    "columns.age", 'unit = {column = "person_id", max_rows = 2}\ncolumns.age', 1
)
ASK = ("ask", "people", "count", "--where", "smoker")


def rewrite(text: str) -> None:
    Path("sulq.toml").write_text(text, "utf-8")


@pytest.fixture
def out(unpublished):
    """The table, published and not yet asked anything."""
    assert unpublished("publish", "--yes").code == 0
    return unpublished


def test_anything_may_change_before_the_first_charge(out):
    token = out("grant", "people", "ann", "5", "--json").json["token"]
    assert token
    text = POLICY.replace("epsilon = 1", "epsilon = 1/2").replace("[0, 1000]", "[0, 90000]")
    rewrite(
        text.replace("epsilon = 1/2", "epsilon = 0.5").replace("columns.smoker", "columns.smoker")
    )
    assert "nothing was asked yet" in out("check").out
    looked = out("amend")
    assert looked.code == 2 and "90000" in looked.out and "nothing was changed" in looked.err
    done = out("amend", "--yes", "--reason", "decimal comma", "--json")
    assert done.code == 0, done.err
    assert done.json["unused"] and done.json["tokens_ended"] == 1
    assert [line["state"] for line in out("tokens", "--json").json] == ["revoked"]
    assert "was revoked" in out(*ASK, "--as", "ann").err
    books = out("ledger", "--json").json
    assert [line["reason"] for line in books["amended"]] == ["decimal comma"]
    assert out("verify").code == 0 and out("check").code == 0
    assert out("grant", "people", "ann", "5").code == 0
    assert out(*ASK, "--as", "ann").code == 0


def test_the_unit_may_change_while_nobody_has_looked(out):
    rewrite(PERSONS)
    done = out("amend", "--yes", "--json")
    assert done.code == 0, done.err
    assert {"what": "unit", "was": "row", "now": "person_id"} in done.json["changes"]
    rewrite(PERSONS.replace("epsilon = 1", "epsilon = 0.5"))
    now = out("amend", "--json").json["changes"][0]["now"]
    assert now.endswith("all rows of one person change")
    rewrite(PERSONS)
    assert out(*ASK).code == 0
    rewrite(POLICY)
    again = out("amend", "--yes")
    assert (again.code, "cannot be amended" in again.err) == (3, True)


@pytest.mark.parametrize("who", [("ann", "5"), ("eve", "--role", "auditor")])
def test_a_number_of_rows_that_was_read_does_not_become_private(out, who):
    """Under replace it is public: a token is enough to read it, free and without an event."""
    assert out("grant", "people", *who).code == 0
    rewrite(PERSONS)
    said = out("amend", "--yes")
    assert (said.code, "may have read it" in said.err) == (3, True)
    rewrite(POLICY)
    assert out("withdraw", "--yes").code == 0
    rewrite(POLICY.replace("queries = 20", 'queries = 20, neighbours = "add-remove"'))
    anew = out("publish", "--yes")
    assert (anew.code, "may have read it" in anew.err) == (3, True)
    rewrite(POLICY.replace("queries = 20", "queries = 40"))
    assert out("publish", "--yes").code == 0


@pytest.mark.parametrize("step", ["version noted", "admitted"])
def test_new_rows_and_a_repair_are_one_step(out, monkeypatch, step):
    """After a crash the same command does all of it: nothing is left between."""
    rewrite(POLICY.replace("[0, 1000]", "[0, 90000]"))
    pd.read_parquet("people.parquet").iloc[:-5].to_parquet("people.parquet")

    def dies(here):
        if here == step:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "on_step", dies)
        assert out("amend", "--yes").code != 0
    done = out("amend", "--yes", "--json")
    assert (done.code, done.json["amended"]) == (0, True)
    assert out(*ASK).code == 0 and out("verify").code == 0
    assert out("check").code == 0


def test_withdraw_frees_the_file(out):
    out("grant", "people", "ann", "5")
    looked = out("withdraw")
    assert (looked.code, "nothing was changed" in looked.err) == (2, True)
    done = out("withdraw", "--reason", "wrong file", "--yes", "--json").json
    assert (done["reason"], done["tokens_ended"]) == ("wrong file", 1)
    assert "`sulq publish people`" in out(*ASK).err
    assert "withdrawn unused" in out("ledger").out
    assert out("ledger", "--json").json["withdrawn"]["reason"] == "wrong file"
    assert out("verify").code == 0
    for words in (("amend", "--yes"), ("grow", "--yes"), ("close", "--yes"), ("revoke", "ann")):
        assert out(*words).code == 3
    assert out("withdraw", "--yes", "--json").json["tokens_ended"] == 0  # a second time
    rewrite(POLICY.replace("people.ledger", "second.ledger").replace("[people]", "[folk]"))
    assert out("publish", "--yes").code == 0
    assert out("ask", "folk", "count", "--where", "smoker").code == 0


@pytest.mark.parametrize(
    "use",
    [
        ASK,
        ("ask", "people", "count", "--where", "city = 'Oslo'"),  # public: exact and free
        ("outside", "--credits", "1", "--reason", "yearbook", "--yes"),
        ("plan", "count where smoker", "--yes"),
        ("suggest", "people", "income"),
    ],
)
def test_after_the_first_use_todays_rules_hold(out, use):
    assert out(*use).code == 0
    said = out("withdraw", "--yes")
    assert (said.code, "was used" in said.err) == (3, True)
    rewrite(PERSONS)
    said = out("amend", "--yes")
    assert (said.code, "cannot be amended" in said.err) == (3, True)
    rewrite(POLICY)
    assert out(*ASK).code == 0


def test_how_a_file_is_read_may_be_repaired(unpublished):
    """newuser F2: decimal commas declared as numbers were a lost table."""
    lines = "".join(f"{n % 90},5;{n % 2}\n" for n in range(2_000))
    Path("weights.csv").write_text("weight;smoker\n" + lines, "utf-8")
    text = """
[weights]
source = "weights.csv"
ledger = "weights.ledger"
promise = {epsilon = 1, delta = 1e-6, queries = 20}
csv = {delimiter = ";", decimal = ","}
columns.smoker = {flag = true}
"""
    rewrite(text)
    assert unpublished("publish", "--yes").code == 0
    rewrite(
        text.replace('decimal = ","', 'decimal = ",", missing = ["?"]')
        .replace("columns.smoker", "columns.weight = {number = [0, 300]}\ncolumns.smoker")
        .replace("queries = 20", "queries = 10")
    )
    done = unpublished("amend", "--yes", "--reason", "weights are numbers")
    assert done.code == 0, done.err
    assert unpublished("ask", "mean", "weight").code == 0
    assert unpublished("check").code == 0 and unpublished("verify").code == 0


def test_a_quote_is_no_use(out):
    assert out("quote", *ASK[1:]).code == 0
    assert out("ask", "EXPLAIN SELECT COUNT(*) FROM people").code == 0
    assert out("withdraw", "--yes").code == 0


def test_in_python():
    from tests.people import SCHEMA, frame, publish

    from sulq import Number, Promise, Refused, Schema, col, count

    db = publish()
    wide = Schema(*(c for c in SCHEMA.columns if c.name != "age"), Number("age", 0, 200, step=1))
    db.grant("ann", 5)
    fixed = db.amend(wide, Promise("1/2", "1e-6", 50), source=frame(), reason="too tight")
    assert (fixed.promise.credits, fixed.left_for("ann")) == (50, 0)
    fixed.ask(count(where=col("city") == "Oslo"))
    with pytest.raises(Refused, match="was used"):
        fixed.withdraw("late")
    with pytest.raises(Refused, match="cannot be amended"):
        fixed.amend(Schema(Number("age", 0, 200, step=1)), source=frame())
    other = publish()
    other.withdraw("never mind")
