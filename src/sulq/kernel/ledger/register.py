"""The register of data: which ledger answers for which content.

It never leaves the state directory: outside it a content hash would let someone who knows
all rows but one test guesses.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from sulq.errors import Refused
from sulq.kernel.ledger.state_dir import (
    named,
    private_directory,
    private_path,
    read_private,
    write_private,
)

_READ_BY_RULES = re.compile(r"[0-9a-f]{64}/[0-9a-f]{64}")


def check_data(fingerprint: str | None, ledger: str | None, table: str) -> None:
    """`Refused` if this data answers to another ledger or table. `ledger` None: a new one."""
    if fingerprint is None:
        return
    found = read_private(_claim(fingerprint))
    if found is not None and _read(found) != [ledger, table]:
        raise Refused(
            "this data is registered with another ledger, or as another table of it; "
            "open it with the ledger it was first published with"
        )


def register_data(
    fingerprint: str | None, ledger: str, table: str, version: str | None = None
) -> None:
    """Bind data and table to each other for good; `Refused` if either is bound elsewhere. A table
    has data for each of its versions; None is the one that was published."""
    check_data(fingerprint, ledger, table)
    bound = _bound(ledger, table, version)
    found = read_private(bound)
    if found is not None and _read(found) != fingerprint:
        raise Refused(
            f"the data of table {table!r} is not what was published: its content has "
            "changed; restore it, or if it got new rows, `sulq grow` it; or publish the new data "
            "with a ledger of its own"
        )
    if fingerprint is not None:
        claim = json.dumps([ledger, table]).encode()
        private_directory("data")
        write_private(_claim(fingerprint), claim, replace=False)
        check_data(fingerprint, ledger, table)  # another process may have been first
    if found is None and not write_private(bound, json.dumps(fingerprint).encode(), replace=False):
        register_data(fingerprint, ledger, table, version)  # somebody was quicker: the same data?


def release_data(ledger: str, table: str, version: str | None, told: str | None) -> None:
    """Free the data of a version of a withdrawn table: its claim goes, what was `told` of it stays.

    The note of what the version's data was stays too: nobody takes other data for it.
    """
    found = read_private(_bound(ledger, table, version))
    fingerprint = None if found is None else _read(found)
    if not isinstance(fingerprint, str):
        return
    if told is not None:
        private_directory("told")
        write_private(_told(fingerprint), told.encode(), replace=True)
    claim = _claim(fingerprint)
    content = read_private(claim)
    if content is not None and _read(content) == [ledger, table]:
        claim.unlink(missing_ok=True)


def told_of(fingerprint: str | None) -> str | None:
    """What is public of this data for good, from a table that was withdrawn."""
    if fingerprint is None:
        return None
    found = read_private(_told(fingerprint))
    return None if found is None else found.decode()


def is_registered(fingerprint: str | None, ledger: str, table: str, version: str | None) -> bool:
    """True if this is the data of that version."""
    found = read_private(_bound(ledger, table, version))
    return found is not None and _read(found) == fingerprint


def note_rows(ledger: str, table: str, version: str | None, rows: int) -> None:
    """Remember how many rows a version has, where everybody may know it, for who lets it grow."""
    write_private(_rows(ledger, table, version), str(rows).encode(), replace=False)


def noted_rows(ledger: str, table: str, version: str | None) -> int | None:
    found = read_private(_rows(ledger, table, version)) or b""
    return int(found) if found.isdigit() else None


def was_published(ledger: str, table: str) -> bool:
    """True if a table of this name was ever registered: a ledger without it has lost events."""
    return read_private(_bound(ledger, table)) is not None


def note_published(ledger: str, table: str) -> None:
    """Remember a table that was published, and that neither ledger nor backup have."""
    if not was_published(ledger, table):
        write_private(_bound(ledger, table), json.dumps(None).encode(), replace=False)


def note_closed(ledger: str, table: str) -> None:
    """Remember beside the anchor that a table was closed for good: no rollback opens it again."""
    write_private(_closed(ledger, table), b"closed", replace=False)


def was_closed(ledger: str, table: str) -> bool:
    return read_private(_closed(ledger, table)) is not None


def note_pooled(ledger: str, population: str) -> None:
    """Remember that this ledger has an account for a population: no rollback starts it anew."""
    if not was_pooled(ledger, population):
        write_private(_pooled(ledger, population), b"known", replace=False)


def was_pooled(ledger: str, population: str) -> bool:
    return read_private(_pooled(ledger, population)) is not None


def fingerprint_cache(path: str | Path, size: int, mtime_ns: int) -> str | None:
    """The fingerprint computed earlier for this file, if size and time are the same."""
    try:
        known = json.loads(read_private(_cache_file(path)) or b"null")
    except ValueError:
        return None  # a damaged cache costs time, nothing else
    if isinstance(known, list) and len(known) == 3 and known[:2] == [size, mtime_ns]:
        return str(known[2])
    return None


def store_fingerprint(path: str | Path, size: int, mtime_ns: int, fingerprint: str) -> None:
    content = json.dumps([size, mtime_ns, fingerprint]).encode()
    private_directory("cache")
    write_private(_cache_file(path), content, replace=True)


def _cache_file(path: str | Path) -> Path:
    return private_path("cache", named(str(Path(path).resolve())))


def _content(fingerprint: str) -> str:
    """What data is known by, however it is read: of `content/rules of reading` the first hash."""
    return fingerprint[:64] if _READ_BY_RULES.fullmatch(fingerprint) else fingerprint


def _claim(fingerprint: str) -> Path:
    """Where it is noted which ledger and table answer for this data."""
    return private_path("data", named(_content(fingerprint)))


def _told(fingerprint: str) -> Path:
    return private_path("told", named(_content(fingerprint)))


def _bound(ledger: str, table: str, version: str | None = None) -> Path:
    of = "" if version is None else f"-{version}"
    return private_path("ledgers", ledger, f"data-{named(table)}{of}")


def _rows(ledger: str, table: str, version: str | None) -> Path:
    of = "" if version is None else f"-{version}"
    return private_path("ledgers", ledger, f"rows-{named(table)}{of}")


def _closed(ledger: str, table: str) -> Path:
    return private_path("ledgers", ledger, f"closed-{named(table)}")


def _pooled(ledger: str, population: str) -> Path:
    return private_path("ledgers", ledger, f"population-{named(population)}")


def _read(content: bytes) -> object:
    try:
        found: object = json.loads(content)
    except ValueError:
        raise Refused("the register of data is damaged; restore the state directory") from None
    return found
