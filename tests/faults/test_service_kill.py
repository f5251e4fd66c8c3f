"""kill -9 of a server under load: what clients were told is charged, and they are told it again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("service_rounds.py")
WIRE = Path(__file__).with_name("wire_rounds.py")


def rounds(directory, number, first, *mode, script=SCRIPT):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    words = mode or ("honest",) * (script == SCRIPT)
    command = [sys.executable, str(script), str(directory), str(number), str(first), *words]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.slow
def test_released_is_charged_and_a_retry_gets_the_same(tmp_path):
    found = rounds(tmp_path, 8, 0)
    assert found["wrong"] == []
    assert len(found["killed"]) > 2
    assert found["told"] > 40
    assert found["retried"] > 8  # who was cut off got the answer of the same key
    assert found["refused"] > 0  # and where the budget ended it ended


@pytest.mark.slow
def test_the_comparison_catches_a_reply_before_the_store(tmp_path):
    assert rounds(tmp_path, 2, 100, "hasty")["wrong"]


@pytest.mark.slow
def test_two_hundred_rounds(tmp_path):
    found = rounds(tmp_path, 200, 1_000)
    assert found["wrong"] == []
    assert set(found["killed"]) == {
        "admitted",
        "committed",
        "anchored",
        "noted",
        "kept",
        "any moment",
    }
    assert found["slowest"] < 5  # seconds until it listened again: a measurement
    assert 1_000 < found["told"] <= found["charged"] <= found["budget"]
    assert found["same"] > found["told"] / 2  # each that a last round asked again, and more
    assert found["slowest"] < 10


@pytest.mark.slow
@pytest.mark.parametrize("number", [3, 60])
def test_killed_while_postgresql_clients_ask_what_was_told_is_charged(tmp_path, number):
    """And their purpose has spent all that was charged; at 0 credits they are told it again."""
    found = rounds(tmp_path, number, number, script=WIRE)
    assert found["wrong"] == []
    assert found["told"] > 5 * number and found["same"] > found["told"] / 2
    assert found["told"] <= found["charged"] <= found["told"] + found["cut"]
