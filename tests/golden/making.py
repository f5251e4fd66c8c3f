"""The parts of the golden records, each made from nothing in a directory and a state of its own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.golden import asking, changing, commands, inside, refusals, requests
from tests.golden.records import Records

PARTS: dict[str, Callable[[Path], dict[str, Records]]] = {
    "questions": lambda _: dict(zip(("questions", "events"), asking.questions(), strict=True)),
    "specials": lambda _: {"specials": asking.specials()},
    "statements": lambda _: {"statements": asking.statements()},
    "refusals": lambda _: {"refusals": refusals.refusals()},
    "changes": lambda place: {"changes": changing.changes(place)},
    "replies": lambda place: {"replies": requests.replies(place)},
    "commands": lambda place: {"commands": commands.outputs(place)},
}
"""By what is run: the files it fills."""


def made(part: str) -> dict[str, Records]:
    """The records of a part, as the code makes them now: all draws are 0."""
    with tempfile.TemporaryDirectory() as directory, _settled(Path(directory)), inside.quiet():
        place = Path(directory).resolve() / "work"
        place.mkdir()
        return PARTS[part](place)


@contextmanager
def _settled(directory: Path) -> Iterator[None]:
    wanted = {"SULQ_STATE": str(directory / "state"), "NO_COLOR": "1", "COLUMNS": "100"}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
