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
    answered: bool = True
    """Whether it is answered today; what is not counts in the rate."""


def fixtures() -> list[Fixture]:
    """All statements of the files beside this one: `-- dialect [refused]`, text, `-- reads`, text.

    Without `-- reads` the text is DuckDB's own.
    """
    found = []
    for path in sorted(HERE.glob("*.sql")):
        for block in path.read_text("utf-8").strip().split("\n\n"):
            head, _, rest = block.partition("\n")
            text, mark, reads = rest.partition("\n-- reads\n")
            dialect, _, refused = head.removeprefix("-- ").partition(" ")
            meant = reads.strip() if mark else text
            found.append(Fixture(path.stem, dialect, text, meant, not refused))
    return found
