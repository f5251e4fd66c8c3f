"""Reading a ledger without holding it: also while another process has it open."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sulq.errors import Refused
from sulq.ledger.anchor import Mark, furthest
from sulq.ledger.book import Files, is_known, opened, path_home
from sulq.ledger.history import History, unverified
from sulq.ledger.keys import key_at
from sulq.ledger.places import is_shared, place_name, read_place
from sulq.ledger.postgres import NoLedger, PostgresStore
from sulq.ledger.receipts import check_signature, read_receipt
from sulq.ledger.sqlite import LOG, SqliteStore, unfolded
from sulq.ledger.state import read_private
from sulq.ledger.statement import Statement, statement
from sulq.ledger.store import Row, Store

TRIES = 10
PAUSE = 0.05  # seconds between two tries


@dataclass(frozen=True, slots=True)
class Inspection:
    """A ledger whose chain verified, as it was at one moment."""

    ledger: str
    public_keys: tuple[str, ...]  # the last one signs today
    statements: Mapping[str, Statement]
    hashes: Mapping[int, bytes]
    lost: tuple[range, ...]  # numbers counted as spent at a recovery
    anchor: Mark | None  # None: lost, or it does not verify

    @property
    def anchored(self) -> bool:
        """True if the chain has come at least as far as the anchor, by the same way."""
        return self.anchor is not None and (
            self.anchor.seq == 0 or self.hashes.get(self.anchor.seq) == self.anchor.hash
        )

    def confirm(self, receipt_json: str) -> None:
        """Return if the receipt is signed and its answer is in this chain, else `Refused`."""
        receipt = read_receipt(receipt_json)
        check_signature(receipt, self.public_keys)
        seq = receipt.body["answer"]
        if any(seq in gap for gap in self.lost):
            raise Refused(f"event {seq} of this receipt was lost; a recovery counted it as spent")
        if self.hashes.get(seq, b"").hex() != receipt.body["answer_link"]:
            raise Refused(
                "this ledger does not have what the receipt proves: it was rolled back or changed; "
                "`sulq recover` counts it as spent"
            )


def inspect(path: str | Path) -> Inspection:
    """Verify chain and anchor of a ledger, held or not; `Refused` if it does not verify."""
    book = opened(path)
    if book is not None:  # closing a second handle on the file would drop this process's lock on it
        return book.read(lambda: _inspected(book.rows(), None))
    if not is_shared(path) and not Path(place_name(path)).is_file():
        raise Refused(f"there is no ledger at {path}")
    for _ in range(TRIES - 1):
        with suppress(Refused):  # the holder may have written while we copied
            found = _inspect_copy(path)
            if found.anchored or found.anchor is None:
                return found
        time.sleep(PAUSE)
    return _inspect_copy(path)


def is_there(path: str | Path) -> bool:
    """True if a ledger was made at this place."""
    if not is_shared(path):
        return Path(path).exists()
    try:
        with _looked_at(path) as store:
            return next(iter(store.rows()), None) is not None
    except NoLedger:
        return False


def is_lost(path: str | Path) -> bool:
    """True if the state directory knows of a ledger at this place, and there is none."""
    return is_known(path) and not is_there(path)


def is_published(path: str | Path, table: str) -> bool:
    """True if a ledger at this place has the table; others may be all it has. Verifies nothing."""
    book = opened(path)
    if book is not None:
        return book.read(lambda: _has(book.rows(), table))
    if not is_there(path):
        return False
    with suppress(Refused), _looked_at(path) as store:  # as in `inspect`
        return _has(store.rows(), table)
    return table in inspect(path).statements


def _has(rows: Iterable[Row], table: str) -> bool:
    kinds = ('"kind":"table"', '"kind":"withdraw"')
    bodies = (json.loads(row.body) for row in rows if any(kind in row.body for kind in kinds))
    found = [body["kind"] for body in bodies if body.get("table") == table]
    said = [kind for kind in found if kind in ("table", "withdraw")]
    return bool(said) and said[-1] == "table"


def _inspect_copy(path: str | Path) -> Inspection:
    """The anchor is read before the ledger: one in use only runs ahead of it."""
    known = (read_private(path_home(place_name(path)) / "ledger") or b"").decode("ascii", "replace")
    anchor = read_private(Files(known).anchor) if known else None
    with _looked_at(path) as store:
        return _inspected(store.rows(), anchor)


def verified_rows(path: str | Path) -> list[Row]:
    """Every event of a ledger, held or not, once they verify."""
    inspect(path)
    book = opened(path)
    if book is not None:
        return book.read(lambda: list(book.rows()))
    for _ in range(TRIES - 1):
        with suppress(Refused):  # as in `inspect`
            return _verified_copy(path)
        time.sleep(PAUSE)
    return _verified_copy(path)


def _verified_copy(path: str | Path) -> list[Row]:
    with _looked_at(path) as store:
        rows = list(store.rows())
    _inspected(rows, None)
    return rows


def copy_ledger(path: str | Path, copy: Path) -> None:
    """The ledger as it is now, as a file of its own."""
    if is_shared(path):
        store = SqliteStore(copy, create=True)
        for row in verified_rows(path):
            store.append([row])
        store.close(tidy=True)
        return
    with unfolded(place_name(path)):
        for end in ("", LOG):
            source = Path(f"{place_name(path)}{end}")
            if source.exists():
                shutil.copyfile(source, f"{copy}{end}")


@contextmanager
def _looked_at(path: str | Path) -> Iterator[Store]:
    """The ledger as it is now."""
    if not is_shared(path):
        with _copied(Path(place_name(path))) as copy:
            yield copy
        return
    store = PostgresStore(read_place(str(path)), joins=False)
    try:
        yield store
    finally:
        store.close(tidy=False)


@contextmanager
def _copied(path: Path) -> Iterator[SqliteStore]:
    """A file's content, in a place of its own."""
    with tempfile.TemporaryDirectory(prefix="sulq-") as private:  # mode 0700
        copy = Path(private) / "ledger"
        try:
            copy_ledger(path, copy)
        except FileNotFoundError:
            raise Refused(f"the ledger {path} changed while it was read; try again") from None
        except OSError:
            raise Refused(f"the ledger {path} cannot be read; check its rights") from None
        store = SqliteStore(copy)
        try:
            yield store
        finally:
            store.close(tidy=False)


def _inspected(rows: Iterable[Row], anchor: bytes | None) -> Inspection:
    history, hashes = History(), {}

    def noted() -> Iterator[Row]:
        for row in rows:
            hashes[row.seq] = row.hash
            yield row

    history.take(noted())
    if not history.ledger:
        raise Refused("the ledger is empty")
    files = Files(history.ledger)
    own = key_at(files.key)  # who has it trusts no other
    if not history.sealed_by([own.public if own else history.public]):
        raise unverified(history.mark.seq)
    if anchor is None:
        anchor = read_private(files.anchor)
    return Inspection(
        history.ledger,
        tuple(history.publics),
        {name: statement(history, name) for name in history.tables},
        hashes,
        tuple(history.gaps),
        furthest(anchor or b"", history.ledger, [history.public]),
    )
