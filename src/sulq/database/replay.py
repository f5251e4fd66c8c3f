"""Every answer computed again: does (reply - exact) follow the claimed law? One word leaves.

A test statistic is an exact function of the rows, so nothing but pass or fail is ever said, and
whatever is refused is refused before a row is read. Proof: docs/proofs/replay.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sulq.database.past import as_it_was
from sulq.database.recomputing import Check, check_of
from sulq.engines.engine import check_read, check_source
from sulq.errors import Refused
from sulq.ledger.entries import Entry
from sulq.ledger.state import named, private_path, read_private, write_private
from sulq.noise.conformity import Conformity

if TYPE_CHECKING:
    from sulq.database.database import Database

FEWEST = 200
"""Drawn questions; with fewer the word would say more of each of them."""
EVERY = 100
"""New drawn questions before the rows are looked at again; until then the last word stands."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Replay:
    """The word, and how many drawn questions it speaks of. For the owner's eyes."""

    passed: bool
    questions: int

    @property
    def word(self) -> str:
        return "pass" if self.passed else "fail"


def replay(database: Database, progress: Progress | None = None) -> Replay:
    """Test every stored answer; `Refused`, before a row is read, if that cannot be done fairly.

    `progress` is told how many questions are done, and of how many.
    """
    with ExitStack() as engines:
        return _replayed(database, list(_checks(database, engines)), progress)


def _replayed(database: Database, checks: list[Check], progress: Progress | None) -> Replay:
    drawn = sum(check.drawn for check in checks)
    if drawn < FEWEST:
        raise Refused(
            f"a replay wants {FEWEST} questions answered with noise, and this table has {drawn};"
            " with fewer, the word would tell too much of each: come back later"
        )
    known = last_replay(database)
    if known is not None and drawn < known.questions + EVERY:
        return known
    found = Replay(_passed(database, checks, progress), drawn)
    if (place := _place(database)) is not None:
        form = {"passed": found.passed, "questions": found.questions}
        write_private(place, json.dumps(form).encode(), replace=True)
    return found


def last_replay(database: Database) -> Replay | None:
    """The word that was found last; None if there was no replay yet."""
    place = _place(database)
    return None if place is None else _read(place)


def noted_replay(ledger: str, table: str) -> Replay | None:
    """As `last_replay`, where the table is not open: by its ledger's id."""
    return _read(_noted(ledger, table))


def _read(place: Path) -> Replay | None:
    content = read_private(place)
    if content is None:
        return None
    try:
        form: Any = json.loads(content)
        return Replay(bool(form["passed"]), int(form["questions"]))
    except (LookupError, TypeError, ValueError):
        raise Refused(f"the state file {place} is damaged; remove it, then replay anew") from None


def _place(database: Database) -> Path | None:
    """In the state directory, never beside the ledger; a ledger in memory has none."""
    book = database.ledger._book
    if book.file is None:
        return None
    return _noted(book.history.ledger, database.ledger.header.name)


def _noted(ledger: str, table: str) -> Path:
    return private_path("ledgers", ledger, f"replay-{named(table)}")


def _checks(database: Database, engines: ExitStack) -> Iterator[Check]:
    """One for each answer that is stored, in the order of the charges; reads no row."""
    version, table = database.ledger.header.version, database.ledger._table
    past: dict[int, Database] = {}
    outgrown = {before.version for before in table.grown}
    for entry in _origins(database):
        assert entry.receipt is not None  # noqa: S101
        if entry.receipt.body["version"] in outgrown:
            continue  # the rows it was given on are not at hand
        if entry.receipt.body["version"] != version:
            raise Refused(
                f"the answer of entry {entry.seq} was given on another version of the data than"
                " the one at hand; open the table as it was then, and replay that"
            )
        record = table.at(entry.seq)
        if record.lost:
            raise Refused(
                "answers of this ledger were given up at a recovery, and what cannot be vouched"
                " for cannot be tested; a replay needs a ledger that was never forged"
            )
        asked = database
        if record.old:  # the question means something else today
            before = next(change for change in table.amended if change.seq > entry.seq)
            if before.seq not in past:
                past[before.seq] = as_it_was(database, before, engines)
            asked = past[before.seq]
        yield check_of(asked, entry)


def _origins(database: Database) -> Iterator[Entry]:
    """Every answer once: as it was first charged."""
    for entry in database.ledger.entries():
        if entry.receipt is not None and entry.receipt.body["origin"] == entry.seq:
            yield entry


def _passed(database: Database, checks: list[Check], progress: Progress | None) -> bool:
    found = Conformity()
    check_source(database.engine)
    for done, check in enumerate(checks, start=1):  # to the end, whatever was found
        check.run(found)
        if progress is not None:
            progress(done, len(checks))
    check_read(database.engine)
    return not found.failed
