"""Files stay small and are named after what they hold."""

from __future__ import annotations

from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "sulq"
WALL = 400
NAMELESS = {"utils", "util", "helpers", "helper", "misc", "common", "base", "manager"}


def test_no_file_is_over_the_wall():
    sizes = {
        path.relative_to(SOURCE).as_posix(): len(path.read_text("utf-8").splitlines())
        for path in SOURCE.rglob("*.py")
    }
    assert sizes
    assert {name: size for name, size in sizes.items() if size > WALL} == {}


def test_no_file_or_folder_has_a_name_that_says_nothing():
    assert [path for path in SOURCE.rglob("*") if path.stem.strip("_") in NAMELESS] == []
