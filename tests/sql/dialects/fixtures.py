"""Statements as people write them, by subject and dialect, each with DuckDB's spelling."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Fixture:
    """One statement in one dialect, and what it means in DuckDB's words."""

    subject: str
    dialect: str
    text: str
    reads: str


def fixtures() -> list[Fixture]:
    """All statements of the files beside this one: `-- dialect`, text, `-- reads`, text."""
    found = []
    for path in sorted(HERE.glob("*.sql")):
        for block in path.read_text("utf-8").strip().split("\n\n"):
            head, _, rest = block.partition("\n")
            text, mark, reads = rest.partition("\n-- reads\n")
            if not mark:
                raise ValueError(f"{path.name}: a block has no reading: {block[:60]}")
            found.append(Fixture(path.stem, head.removeprefix("-- "), text, reads.strip()))
    return found
