"""sulq outside and sulq grow: asked first, done once, and what the ledger says afterwards."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pytest
from tests.cli.conftest import POLICY


def test_outside_is_shown_first_and_booked_with_yes(sulq):
    sulq("ask", "count", "--where", "smoker")
    looked = sulq("outside", "--credits", "4", "--reason", "yearbook")
    assert (looked.code, "add --yes; nothing was changed" in looked.err) == (2, True)
    assert sulq("ledger", "--json").json["outside"] == []
    found = sulq("outside", "--credits", "4", "--reason", "yearbook", "--yes", "--json").json
    assert (found["credits"], found["left"], found["exceeded"], found["total"]) == (4, 15, 0, None)
    after = sulq("ledger", "--json").json
    assert [(line["credits"], line["reason"]) for line in after["outside"]] == [(4, "yearbook")]
    assert (after["spent"], after["left"]) == (5, 15)
    assert "yearbook" in sulq("ledger").out


def test_outside_beyond_the_cap_is_said_in_the_ledger(sulq):
    sulq("ask", "count", "--where", "smoker")
    said = sulq("outside", "--epsilon", "2", "--delta", "1e-7", "--reason", "census", "--yes")
    assert (said.code, "promise exceeded" in said.out) == (0, True)
    found = sulq("ledger", "--json").json
    assert found["left"] == 0
    assert found["epsilon"] == pytest.approx(2.2, abs=0.2)
    assert "belief" not in found
    assert "exceeded by releases made elsewhere" in sulq("ledger").out
    assert sulq("ask", "count", "--where", "age > 50").code == 4
    assert sulq("ask", "count", "--where", "smoker").code == 0


def test_outside_wants_a_reason_and_one_price(sulq):
    sulq("ask", "count")
    assert sulq("outside", "--credits", "4", "--yes").code == 2
    assert sulq("outside", "--reason", "r", "--yes").code == 2
    assert sulq("outside", "--credits", "1", "--epsilon", "1", "--reason", "r", "--yes").code == 2
    assert sulq("outside", "--credits", "many", "--reason", "r", "--yes").code == 2


def more_rows():
    duckdb.sql(
        "COPY (SELECT * FROM 'people.parquet' UNION ALL SELECT * FROM 'people.parquet')"
        " TO 'more.parquet'"
    )
    Path("more.parquet").replace("people.parquet")


def test_grow_records_new_rows_on_the_same_budget(sulq):
    assert sulq("ask", "count", "--where", "smoker").code == 0
    more_rows()
    refused = sulq("ask", "count", "--where", "smoker")
    assert (refused.code, "`sulq grow` it" in refused.err) == (3, True)
    looked = sulq("grow")
    assert (looked.code, "add --yes; nothing was changed" in looked.err) == (2, True)
    assert (
        "The 40,000 rows at people.parquet become a new version of people; there were 20,000"
        in (looked.err)
    )
    assert "WARNING" not in looked.err
    found = sulq("grow", "--yes", "--reason", "spring", "--json").json
    assert found["rows_before"] == 20_000
    assert (found["versions"], found["rows"], found["left"]) == (2, 40_000, 19)
    ledger = sulq("ledger", "--json").json
    assert ledger["version"] == found["version"]
    assert [line["reason"] for line in ledger["versions_before"]] == ["spring"]
    assert sulq("ask", "count", "--where", "smoker").code == 0
    assert sulq("ledger", "--json").json["spent"] == 2  # asked anew
    assert sulq("grow", "--yes", "--json").json["versions"] == 2  # nothing is new
    duckdb.sql("COPY (SELECT * FROM 'people.parquet' LIMIT 50) TO 'few.parquet'")
    Path("few.parquet").replace("people.parquet")
    assert "WARNING: there are fewer rows" in sulq("grow").err


def test_grow_takes_new_rows_and_a_new_column_at_once(sulq):
    """newuser F7: grow and amend sent the owner to each other."""
    assert sulq("ask", "count", "--where", "smoker").code == 0
    more_rows()
    Path("sulq.toml").write_text(POLICY + "columns.person_id = {number = [0, 100000], step = 1}\n")
    around = sulq("amend", "--yes")
    assert (around.code, "`sulq grow` it" in around.err) == (3, True)
    looked = sulq("grow")
    assert looked.code == 2 and "person_id" in looked.out and "hidden" in looked.out
    found = sulq("grow", "--yes", "--reason", "March", "--json").json
    assert (found["versions"], found["rows"], found["left"]) == (2, 40_000, 19)
    assert [one["what"] for one in found["changes"]] == ["column person_id"]
    assert sulq("ask", "mean", "person_id").code == 0
    books = sulq("ledger", "--json").json
    assert [line["reason"] for line in books["versions_before"]] == ["March"]
    assert sulq("verify").code == 0


@pytest.mark.slow
def test_grown_persons_are_called_persons(sulq):
    unit = 'unit = {column = "person_id", max_rows = 2}\ncolumns.age'
    Path("sulq.toml").write_text(POLICY.replace("columns.age", unit, 1), "utf-8")
    assert sulq("ask", "count", "--where", "smoker").code == 0
    more_rows()
    shown = sulq("grow", "--yes").out.splitlines()
    assert [line.split()[0] for line in shown if line.endswith(", public")] == ["persons"]


@pytest.mark.slow
def test_a_private_number_of_rows_is_not_kept(sulq):
    private = POLICY.replace("queries = 20", 'queries = 20, neighbours = "add-remove"')
    Path("sulq.toml").write_text(private, "utf-8")
    assert "is not published" in sulq("grow").err
    assert sulq("ask", "count", "--where", "smoker").code == 0
    more_rows()
    looked = sulq("grow")
    assert "The 40,000 rows" in looked.err and "there were" not in looked.err
    found = sulq("grow", "--yes", "--json").json
    assert found["rows"] is None and found["rows_before"] is None
    state = Path(os.environ["SULQ_STATE"])
    assert not list(state.rglob("rows-*"))


def test_the_ledger_shows_a_population(sulq):
    shared = 'population = {name = "town", epsilon = 1, delta = 1e-6}\ncolumns.age'
    Path("sulq.toml").write_text(POLICY.replace("columns.age", shared, 1), "utf-8")
    sulq("ask", "count", "--where", "smoker")
    found = sulq("ledger", "--json").json["population"]
    assert (found["name"], found["tables"]) == ("town", ["people"])
    assert found["spent"] == pytest.approx(5, rel=1e-6)
    assert "joint promise" in sulq("ledger").out


def test_a_second_table_of_a_ledger_is_published_by_its_own_name(sulq, unpublished):
    assert sulq("ask", "count", "--where", "smoker").code == 0
    duckdb.sql("COPY (SELECT * FROM 'people.parquet' LIMIT 3000) TO 'few.parquet'")
    second = POLICY.replace("[people]", "[few]\napart = true")
    second = second.replace('"people.parquet"', '"few.parquet"')
    with Path("sulq.toml").open("a") as policy:
        policy.write(second)
    events = sulq("verify", "people", "--json").json["events"]
    assert "ready to publish" in sulq("check", "few").out
    assert "not published" in unpublished("quote", "few", "count", "--where", "smoker").out
    for words in (
        ("audit", "few", "--replay"),
        ("grant", "few", "ann", "2"),
        ("ask", "few", "count"),
    ):
        said = unpublished(*words)
        assert (said.code, "`sulq publish few`" in said.err) == (3, True)
    assert sulq("verify", "people", "--json").json["events"] == events
    assert "published few" in sulq("publish", "few", "--yes").err
    assert "published (ledger" in sulq("check", "few").out
    assert sulq("check").out.count(": published (ledger") == 2  # all tables of the policy


def test_outside_wants_a_published_table(unpublished):
    said = unpublished("outside", "--credits", "4", "--reason", "yearbook", "--yes")
    assert (said.code, "`sulq publish people`" in said.err) == (3, True)
