"""Files are named after what they hold."""

from __future__ import annotations

from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "sulq"
NAMELESS = {"utils", "util", "helpers", "helper", "misc", "common", "manager"}


def test_no_file_or_folder_has_a_name_that_says_nothing():
    assert [path for path in SOURCE.rglob("*") if path.stem.strip("_") in NAMELESS] == []
