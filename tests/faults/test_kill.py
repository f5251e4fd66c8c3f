"""kill -9 at every named step and at random: released <= charged <= cap, and restart works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

STEPS = {"anchor made", "ledger made", "published", "registered"}
STEPS |= {"admitted", "committed", "anchored", "any moment"}
SCRIPT = Path(__file__).with_name("rounds.py")


def rounds(directory, number, first, mode="honest"):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(SCRIPT), str(directory), str(number), str(first), mode]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize("first", [0, pytest.param(1000, marks=pytest.mark.slow)])
def test_nothing_is_released_that_is_not_charged(tmp_path, first):
    found = rounds(tmp_path, 100, first)
    assert found["wrong"] == 0
    assert sum(found["killed"].values()) > 70
    assert set(found["killed"]) == STEPS
    assert found["charged"] > found["released"] > 50
    assert found["idle"] <= 0  # charged and not released: at most one per thread and kill


@pytest.mark.slow
def test_the_comparison_catches_a_release_before_the_store(tmp_path):
    assert rounds(tmp_path, 25, 2000, "hasty")["wrong"] > 0


@pytest.mark.slow
def test_batches_are_whole_and_reservations_neither_lost_nor_counted_twice(tmp_path):
    found = rounds(tmp_path, 100, 3000, "batches")
    assert found["wrong"] == 0
    assert sum(found["killed"].values()) > 70
    assert set(found["killed"]) == STEPS
    assert found["charged"] > found["released"] > 50
    assert found["idle"] <= 0


@pytest.mark.slow
def test_the_comparison_catches_a_batch_charged_in_part(tmp_path):
    assert rounds(tmp_path, 25, 4000, "piecemeal")["wrong"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["honest", "batches"])
def test_a_thousand_rounds(tmp_path, mode):
    assert rounds(tmp_path, 1000, 10_000, mode)["wrong"] == 0
