"""A study in a policy file: as the guide writes it, read, written and refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from sulq.errors import InvalidQuery
from sulq.kernel.schema.study import Study
from sulq.policy import StudyPolicy, read_policy, write_policy

CLINIC = """
[clinic]
ledger = "clinic.ledger"
promise = {epsilon = 1, delta = 1e-6, credits = 500}
person = "patient_id"          # may be named per table
[clinic.patients]              # the person table: the one without max_rows
source = "patients.parquet"
columns.sex = {category = ["F", "M"]}
[clinic.visits]
source = "visits.parquet"
max_rows = 8
at_most = 3_000_000
columns.day = {number = [2015-01-01, 2026-12-31]}
[clinic.drugs]
source = "drugs.parquet"
person = "pid"
max_rows = 2
keep = "last"
by = "given"
ceiling = 50
columns.given = {number = [2015-01-01, 2026-12-31]}
"""


def read(text: str, path: Path) -> StudyPolicy:
    (path / "sulq.toml").write_text(text, "utf-8")
    found = read_policy(path / "sulq.toml")["clinic"]
    assert isinstance(found, StudyPolicy)
    return found


def test_a_study_is_read_as_it_is_written(tmp_path: Path) -> None:
    policy = read(CLINIC, tmp_path)
    study = policy.schema()
    assert isinstance(study, Study)
    assert (study.name, study.unit) == ("patients", "patient_id")
    visits, drugs = study.tables
    assert (visits.max_rows, visits.keep, visits.at_most) == (8, "hash", 3_000_000)
    assert (drugs.keep, drugs.by, drugs.ceiling, drugs.person) == ("last", "given", 50, "pid")
    assert set(policy.rows) == {"patients", "visits", "drugs"}
    assert policy.source_paths == tuple(
        str(tmp_path / f"{name}.parquet") for name in ("patients", "visits", "drugs")
    )


def test_a_study_is_written_as_it_is_read(tmp_path: Path) -> None:
    policy = read(CLINIC, tmp_path)
    write_policy(tmp_path / "again.toml", [policy])
    again = read_policy(tmp_path / "again.toml")["clinic"]
    assert again == policy
    assert again.schema() == policy.schema()


@pytest.mark.parametrize(
    ("was", "now", "says"),
    [
        ('person = "patient_id"', "", "['person'] missing"),
        ("max_rows = 8", "", "a study has one person table"),
        ("max_rows = 8", "max_row = 8", "unknown ['max_row']; a table of a study knows"),
        ("at_most = 3_000_000", "rows = 3", "unknown ['rows']; a table of a study knows"),
        ('sex = {category = ["F", "M"]}', 'sex = {category = ["F"], public = true}', "public"),
        ("[clinic.patients]", "individual = true\n[clinic.patients]", "individual accounting"),
        ("[clinic.patients]", "exact.epsilon = 1\n[clinic.patients]", "exact release"),
        ("[clinic.patients]", "version_budget = 5\n[clinic.patients]", "growth"),
        ("[clinic.patients]", "colour = 1\n[clinic.patients]", "unknown ['colour']"),
        ('keep = "last"\nby = "given"', 'keep = "last"', "go by a Number column"),
        ("max_rows = 2", "max_rows = 51", "passes the ceiling"),
        ('source = "visits.parquet"', "", "source"),
    ],
)
def test_what_a_study_cannot_be_is_refused_with_its_remedy(
    was: str, now: str, says: str, tmp_path: Path
) -> None:
    assert was in CLINIC
    with pytest.raises(InvalidQuery) as refused:
        read(CLINIC.replace(was, now), tmp_path).schema()
    assert says in str(refused.value)


def test_a_column_that_lacks_something_is_told_with_its_table(tmp_path: Path) -> None:
    policy = read(CLINIC.replace("[2015-01-01, 2026-12-31]", '["?", "?"]', 1), tmp_path)
    assert list(policy.unready) == ["visits.day"]
    with pytest.raises(InvalidQuery, match=r"visits\.day"):
        policy.schema()
