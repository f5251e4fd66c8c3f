"""A study from an empty folder: init, check, publish, ask, and over a server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import duckdb
import pytest
from tests.client.conftest import far

from sulq import Database, col, count, histogram
from sulq.cli.context import database_of
from sulq.client import connect_async
from sulq.errors import InvalidQuery
from sulq.policy import read_policy
from sulq.studies import count_of, exists

PERSONS, VISITS = 1_000, 3_100


@pytest.fixture
def clinic(unpublished):
    """The command in a folder that has patients, visits and the policy of the guide."""
    duckdb.sql(
        "SELECT i AS patient_id, CASE WHEN i % 2 = 0 THEN 'F' ELSE 'M' END AS sex"
        f" FROM range({PERSONS}) AS t(i)"
    ).write_parquet("patients.parquet")
    duckdb.sql(
        f"SELECT CASE WHEN i >= {VISITS - 10} THEN NULL ELSE i % 1030 END AS patient_id,"
        " DATE '2020-01-01' + CAST(i % 900 AS INTEGER) AS day,"
        " CASE WHEN i % 3 = 0 THEN 'eyes' ELSE 'heart' END AS ward"
        f" FROM range({VISITS}) AS t(i)"
    ).write_parquet("visits.parquet")
    Path("sulq.toml").write_text(
        """
[clinic]
ledger = "clinic.ledger"
promise = {epsilon = 1, delta = 1e-6, credits = 500}
person = "patient_id"
[clinic.patients]
source = "patients.parquet"
columns.sex = {category = ["F", "M"]}
[clinic.visits]
source = "visits.parquet"
max_rows = 2
columns.day = {number = [2015-01-01, 2026-12-31]}
columns.ward = {category = ["eyes", "heart"]}
""",
        "utf-8",
    )
    return unpublished


def test_init_over_several_files_proposes_a_study(clinic) -> None:
    made = clinic("init", "visits.parquet", "patients.parquet", "--name", "c", "-o", "new.toml")
    assert made.code == 0, made.err
    policy = read_policy("new.toml")["c"]
    assert (policy.unit, policy.person_table) == ("patient_id", "patients")
    assert [table.name for table in policy.events] == ["visits"]
    assert set(policy.unready) == {"patients.sex", "visits.day", "visits.ward"}
    found = clinic("check", "--policy", "new.toml")
    assert (found.code, "visits.day has no bounds yet" in found.out) == (2, True)


def test_init_takes_a_person_column_of_another_name_in_each_file(clinic) -> None:
    duckdb.sql("SELECT patient_id AS patient, day FROM 'visits.parquet'").write_parquet(
        "drugs.parquet"
    )
    files = ("patients.parquet", "visits.parquet", "drugs.parquet")
    assert clinic("init", *files, "--name", "c", "-o", "new.toml").code == 0
    policy = read_policy("new.toml")["c"]
    assert [table.unit for table in policy.tables] == ["patient_id", "patient_id", "patient"]
    assert 'person = "patient"' in Path("new.toml").read_text("utf-8")


def test_init_wants_a_person_column_and_a_person_table(clinic) -> None:
    duckdb.sql("SELECT 1 AS other").write_parquet("alone.parquet")
    refused = clinic("init", "alone.parquet", "visits.parquet", "-o", "new.toml")
    assert (refused.code, "whose a row is, such as patient_id" in refused.err) == (2, True)
    duckdb.sql("SELECT * FROM 'visits.parquet'").write_parquet("drugs.parquet")
    refused = clinic("init", "drugs.parquet", "visits.parquet", "-o", "new.toml")
    assert (refused.code, "needs one table with a row" in refused.err) == (2, True)


def test_check_tells_the_owner_whose_rows_there_are(clinic) -> None:
    found = clinic("check", "--json")
    assert found.code == 0, found.err
    assert found.json["persons"] == {"persons": 1000, "rows_repeated": 0, "rows_of_nobody": 0}
    visits = found.json["events"]["visits"]
    # 3,090 rows of ids 0 to 1,029, three times each: 30 ids are of nobody in patients
    assert (visits["persons"], visits["rows"], visits["orphans"]) == (1000, 3000, 90)
    assert (visits["nobody"], visits["most"], visits["read"]) == (10, 3, 3000)
    assert visits["share_of_rows_kept"]["2"] == pytest.approx(2 / 3)
    shown = clinic("check").out
    assert "90 are of ids that the person table does not have" in shown
    assert "2 (yours): 66.7 %" in shown and "for your eyes only" in shown
    assert "one PERSON, with all their rows in patients, visits together" in shown


def test_check_warns_of_ids_that_do_not_match_and_of_rows_beyond_the_ceiling(clinic) -> None:
    policy = Path("sulq.toml")
    policy.write_text(
        policy.read_text("utf-8").replace("max_rows = 2", "max_rows = 2\nceiling = 2")
    )
    assert any(
        "1,000 rows lie beyond" in said for said in clinic("check", "--json").json["warnings"]
    )
    duckdb.sql("SELECT 'p' || i AS patient_id, 'F' AS sex FROM range(50) AS t(i)").write_parquet(
        "patients.parquet"
    )
    said = clinic("check", "--json").json["warnings"]
    assert any("no row is of a person of the study" in one for one in said)


def test_a_study_is_published_asked_and_audited(clinic, quiet) -> None:
    assert clinic("publish", "clinic", "--dry-run").code == 0
    assert clinic("ask", "clinic", "count").code != 0  # not published
    found = clinic("publish", "clinic", "--yes", "--json").json
    assert (found["published"], found["table"]) == (True, "clinic")
    by_ward = clinic("ask", "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "--json").json
    assert by_ward["rows"][0]["ward"] == "eyes", by_ward
    who = (
        "SELECT COUNT(*) FROM patients p WHERE EXISTS"
        " (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND v.ward = 'eyes')"
    )
    assert clinic("ask", "clinic", who).code == 0
    listed = clinic("ledger").out
    assert "FROM visits GROUP BY ward" in listed
    assert "EXISTS (SELECT 1 FROM visits WHERE ward = 'eyes')" in " ".join(listed.split())
    assert clinic("verify").code == 0
    assert clinic("check").code == 0
    assert "visits: any number of rows for each person" in clinic("columns").out
    assert clinic("report", "--output", "report.html").code == 0
    assert "with all rows in patients, visits" in Path("report.html").read_text("utf-8")


def test_a_sandbox_of_a_study_has_all_its_tables(clinic) -> None:
    made = clinic("sandbox", "--json", "--rows", "200")
    assert made.code == 0, made.err
    there = ("--policy", made.json["policy"])
    assert clinic("publish", "clinic", "--yes", *there).code == 0
    assert clinic("ask", "SELECT COUNT(*) FROM visits", *there).code == 0


def test_a_study_is_asked_over_the_network_as_it_is_here(clinic, tmp_path, quiet) -> None:
    policy = read_policy("sulq.toml")["clinic"]
    with database_of(policy, tmp_path / "clinic.ledger", publish=True) as here:
        assert isinstance(here, Database)
        with far(tmp_path, clinic=here) as server:
            study = server.remote("clinic")
            assert (study.name, study.tables) == ("clinic", ("patients", "visits"))
            assert study.schema == here.schema
            visits = study.table("visits")
            wanted = here.table("visits").quote(histogram("ward", "sex")).credits
            assert visits.quote(histogram("ward", "sex")).credits == wanted == 8
            assert visits.ask(count(where=col("sex") == "F")).value == 1000
            assert visits.size is None
            eyes = exists("visits", col("ward") == "eyes") & (col("sex") == "F")
            assert study.ask(count(where=eyes)).value == here.ask(count(where=eyes)).value
            assert study.plan([count(where=count_of("visits") > 2)]).ask()[0].value == 1000
            found = study.sql("SELECT COUNT(*) AS n FROM visits JOIN patients USING (patient_id)")
            assert found.rows[0][0].value == 2000
            assert set(study.sample_dummy(5)) == {"patients", "visits"}
            with pytest.raises(InvalidQuery, match="no table 'visit'; did you mean 'visits'"):
                study.table("visit")
            url, token = f"{server.url}/clinic", server.tokens["owner"]

            async def later() -> float:
                async with await connect_async(url, token=token) as there:
                    assert there.tables == study.tables
                    return float((await there.table("visits").ask(count())).value)

            assert asyncio.run(later()) == 2000
