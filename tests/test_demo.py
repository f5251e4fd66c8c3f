"""The fictional register, and the tour end to end as a newcomer pipes it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pytest

from sulq.cli.demo import _reach_sulq as reach_sulq
from sulq.cli.demo import tour
from sulq.demo import MARK, PROMISE, SCHEMA, fictional_people, make_demo, own_state
from sulq.errors import InvalidQuery
from sulq.kernel.ledger.inspect import inspect
from sulq.policy import read_policy

PROMISED = [
    "a fictional register of 3,000 people",
    "20 of 20 credits left",
    "3,000, exactly",
    "sulq quote people count",
    "a quote is free",
    "sulq ask people mean blood_pressure",
    "sulq ask people histogram diagnosis",
    "heart disease",
    "cost: 0 credits",
    "refused: no column 'person_id'",
    "refused: division by something that can be 0",
    "0 of 20 credits left",
    "budget spent: this costs 1 credit, 0 are left",
    "chained events verify; the anchor matches",
    "sulq check town",
    "sulq.toml",
    "tutorial-owner",
]


def piped_tour(directory: Path) -> str:
    run = subprocess.run(
        [sys.executable, "-c", "from sulq.cli import main; main()", "demo", "--people", "3000"],
        cwd=directory,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[1] / "src"),
            "COLUMNS": "40",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    return run.stdout


def test_tour_is_plain_in_a_pipe(tmp_path):
    first = piped_tour(tmp_path)
    assert [promised for promised in PROMISED if promised not in first] == []
    assert "\x1b" not in first
    assert "\r" not in first
    assert [line for line in first.splitlines() if line != line.rstrip()] == []
    left = [float(left) for left in re.findall(r"([\d.]+) of 20 credits left", first)]
    assert left == sorted(left, reverse=True)


@pytest.mark.slow  # two tours; test_files_of_others_are_never_touched has what clears away
def test_tour_runs_again(tmp_path):
    first, second = piped_tour(tmp_path), piped_tour(tmp_path)
    assert second != first  # the noise is drawn anew
    assert [promised for promised in PROMISED if promised not in second] == []


def test_tour_says_how_to_reach_a_command_that_is_not_on_the_path(tmp_path, monkeypatch):
    scripts = tmp_path / ".venv" / "bin"
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(scripts))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(tmp_path)
    assert reach_sulq() == [f"alias sulq='{sys.executable} -m sulq'"]
    scripts.mkdir(parents=True)
    (scripts / "sulq").touch(mode=0o755)
    assert reach_sulq() == ['export PATH="$PWD/.venv/bin:$PATH"']
    monkeypatch.chdir("/")
    assert reach_sulq() == [f'export PATH="$PWD/{str(scripts)[1:]}:$PATH"']
    monkeypatch.setenv("PATH", str(scripts))
    assert reach_sulq() == []


def test_tour_leaves_the_real_state_alone(tmp_path, state_directory, capsys):
    steps = tour(tmp_path / "demo", 1_000, quiet=True)
    assert list(state_directory.iterdir()) == []
    assert os.environ["SULQ_STATE"] == str(state_directory)
    assert capsys.readouterr().out == ""
    assert [step["step"] for step in steps] == [
        *("register", "published", "ask", "ask", "quote", "ask", "ask", "ask", "ask"),
        *("refused", "refused", "ask", "budget spent", "verified", "next"),
    ]
    json.dumps([{**step, "directory": None} for step in steps])


def test_tour_spends_all_of_one_table_and_nothing_of_the_other(tmp_path):
    tour(tmp_path, 1_000, quiet=True)
    tables = read_policy(tmp_path / "sulq.toml")
    with own_state(tmp_path):
        found = inspect(tables["people"].ledger_path)
    assert found.anchored
    statement = found.statements["people"]
    assert statement.spent.credits == statement.cap.credits
    assert not tables["town"].ledger_path.exists()


def test_policy_of_the_demo_declares_its_schema(tmp_path):
    people = make_demo(tmp_path, 1_000).people
    assert people.schema() == SCHEMA
    assert people.promise == PROMISE
    assert [column.name for column in SCHEMA.columns if column.public] == ["sex", "region"]


def test_files_of_others_are_never_touched(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(InvalidQuery, match="not the demo's"):
        make_demo(tmp_path, 1_000)
    assert (tmp_path / "thesis.txt").read_text() == "precious"
    assert not (tmp_path / MARK).exists()


@pytest.mark.parametrize("people", [0, 999, 10**9])
def test_number_of_people_is_checked_before_anything_is_made(tmp_path, people):
    with pytest.raises(InvalidQuery, match="to 5,000,000 people"):
        make_demo(tmp_path / "demo", people)
    assert not (tmp_path / "demo").exists()


def test_register_is_the_same_everywhere_and_inside_its_bounds(tmp_path):
    one, two = fictional_people(2_000), fictional_people(2_000)
    for name, column in one.columns.items():
        assert np.array_equal(column, two.columns[name], equal_nan=column.dtype == np.float64)
    one.write(tmp_path / "people.parquet")
    found = duckdb.sql(
        "SELECT count(*), min(age), max(age), max(visits), min(bmi), max(bmi),"
        " min(blood_pressure), max(blood_pressure), count(DISTINCT region), count(DISTINCT sex),"
        " count(DISTINCT diagnosis), count(*) - count(income)"
        f" FROM '{tmp_path / 'people.parquet'}'"
    ).fetchall()[0]
    rows, youngest, oldest, visits, thin, fat, low, high, regions, sexes, diagnoses, missing = found
    assert rows == 2_000
    assert 0 <= youngest < 5 < 80 < oldest <= 110
    assert visits <= 60
    assert 10 <= thin < fat <= 60
    assert 70 <= low < high <= 230
    assert (regions, sexes, diagnoses) == (6, 2, 6)
    assert 0 < missing < 200


def test_register_is_correlated():
    columns = fictional_people(20_000).columns
    smoker = columns["smoker"].astype(bool)
    pressure = columns["blood_pressure"]
    assert pressure[smoker].mean() > pressure[~smoker].mean() + 2
    assert np.corrcoef(columns["age"], pressure)[0, 1] > 0.4
    heart = columns["diagnosis"] == 3
    assert columns["age"][heart].mean() > columns["age"].mean() + 15
    assert columns["visits"][columns["diagnosis"] > 0].mean() > 5
