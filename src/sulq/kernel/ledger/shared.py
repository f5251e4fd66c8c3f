"""A ledger that several replicas use at once, each with its own key file and high-water mark.

A batch takes its turn, reads what others wrote, decides, writes, and gives the turn back; then the
mark moves, then callers are answered. Proof: docs/proofs/shared-ledger.md.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from sulq.errors import Refused
from sulq.kernel.ledger import failpoints
from sulq.kernel.ledger.budget import Spending
from sulq.kernel.ledger.events import ReturnEvent, read_event
from sulq.kernel.ledger.file import (
    Files,
    LedgerFile,
    begun,
    behind,
    check_seal,
    closed,
    missing,
    path_home,
    registered,
    remember,
    verified_anchor,
)
from sulq.kernel.ledger.index import IndexUnavailable, no_room
from sulq.kernel.ledger.signing import (
    SLOT,
    START,
    Anchor,
    LedgerKey,
    latest_head,
    link,
    read_key,
    sign_head,
)
from sulq.kernel.ledger.state import ChainState, unverified
from sulq.kernel.ledger.state_dir import (
    Hold,
    LedgerLocation,
    location_name,
    named,
    private_directory,
    read_place,
    read_private,
    write_private,
)
from sulq.kernel.ledger.stores.postgres import NoLedger, PostgresStore
from sulq.kernel.ledger.stores.store import Interrupted, Row

PAUSE = 2.0  # seconds after which a replica without work looks what others did
KEPT = 8192  # rows kept in memory, if they are short
SHORT = 8192  # characters
T = TypeVar("T")


class Links:
    """The links of a chain by number, in an unnamed temporary file. Not thread-safe. Every failure
    is `IndexUnavailable`."""

    def __init__(self) -> None:
        try:
            self._file, path = tempfile.mkstemp(prefix="sulq-")
            weakref.finalize(self, os.close, self._file)
            Path(path).unlink()
        except OSError:
            raise IndexUnavailable from None
        self[0] = START

    def __setitem__(self, seq: int, link: bytes) -> None:
        try:
            written = os.pwrite(self._file, link, seq * len(START))
        except OSError:
            written = 0
        if written != len(link):
            raise IndexUnavailable

    def __getitem__(self, seq: int) -> bytes:
        """Return the link of event `seq`. An event that was never noted gives zero bytes, or no
        bytes after the end of the file: no real link equals either."""
        try:
            return os.pread(self._file, len(START), seq * len(START))
        except OSError:
            raise IndexUnavailable from None


class Traced(ChainState):
    """A chain state that keeps every link, so that a row read later can be checked."""

    def __init__(self) -> None:
        super().__init__()
        self._links = Links()
        self._recent: dict[int, Row] = {}

    def take(self, rows: Iterable[Row]) -> None:
        super().take(self._noted(rows))

    def add(
        self,
        body: Mapping[str, Any],
        noisy: str | None = None,
        seq: int | None = None,
        admitted: Spending | None = None,
    ) -> Row:
        row = super().add(body, noisy, seq, admitted)
        self._note(row)
        return row

    def _noted(self, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            yield row
            self._note(row)  # it verified

    def _note(self, row: Row) -> None:
        self._links[row.seq] = row.hash
        if len(row.body) + len(row.noisy or "") <= SHORT:
            self._recent[row.seq] = row
            if len(self._recent) > KEPT:
                del self._recent[next(iter(self._recent))]

    def recent(self, seq: int) -> Row | None:
        return self._recent.get(seq)

    def check(self, row: Row) -> Row:
        """The row, if it is what this chain has at that number; `Refused` otherwise."""
        before = row.seq - 1
        for gap in self.gaps:
            if before in gap:
                before = gap.start - 1
        try:
            known = row.hash == self._links[row.seq] == link(self._links[before], row.body)
            if known:
                self._check_answer(read_event(row.body), row.noisy)
        except ValueError:
            known = False
        if not known:
            raise unverified(row.seq)
        return row


class SharedLedgerFile(LedgerFile):
    """A ledger whose chain other replicas lengthen too. Only what was read back is believed."""

    history: Traced

    def __init__(
        self,
        store: PostgresStore,
        history: Traced,
        key: LedgerKey,
        anchor: Anchor | None,
        holds: list[Hold],
        file: str,
    ) -> None:
        self._server, self.replica = store, store.replica
        self._durable = history.mark  # the last one known to be in the chain, and in the anchor
        self._doubt = False  # what was added here may not be in the chain
        self._ruin: str | None = None  # why nothing more is believed
        self._swept = 0.0
        super().__init__(store, history, key, anchor, holds, file, PAUSE)
        self.left_open = []  # replicas that are gone are looked for below

    def stamp(self, table: str, fingerprint: str | None) -> str | None:
        if fingerprint is None:
            return None
        return self.key.stamp(json.dumps([self.history.ledger, table, fingerprint]).encode())

    def read(self, work: Callable[[], T]) -> T:
        """Do `work` between two commits, on all that was committed anywhere before."""
        self._check_process()
        with self._lock:
            if not self._writer.usable:
                raise closed()
            try:
                self._look(self._server.since)
                self._move(None)
                return work()
            except IndexUnavailable:
                raise no_room() from None

    def row(self, seq: int) -> Row:
        found = self.history.recent(seq)
        return found or self._trusted(lambda: self.history.check(self._server.row(seq)))

    def page(self, after: int, most: int) -> list[Row]:
        # What others wrote since the last look is not taken in yet, so nothing can check it.
        known = self.history.mark.seq
        found = [row for row in super().page(after, most) if row.seq <= known]
        return self._trusted(lambda: [self.history.check(row) for row in found])

    # -- one batch --------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Take the turn and read what others wrote; give back what replicas left that are gone."""
        self._look(self._server.begin)
        for name, seq in [*self.left_open, *self._left_by_others()]:
            if seq in self.history.tables[name].budgets.reservations:
                self.add(ReturnEvent(name, seq, void=True))

    def _commit(self) -> None:
        """Durable on the server, then in the anchor; only then may anybody be answered."""
        failpoints.reached("admitted")
        seal = None
        try:
            if self._pending:
                seal = sign_head(self.history.ledger, self.key, self.history.mark)
                *rows, head = self._pending.values()
                self._server.append((*rows, head._replace(seal=seal)))
            else:
                self._server.end()
        except Interrupted:
            self._doubt = True
            self._pending.clear()
            raise Interrupted(charged=True) from None
        failpoints.reached("committed")
        self._move(seal)
        failpoints.reached("anchored")
        self._pending.clear()
        self.left_open.clear()

    def _move(self, seal: bytes | None) -> None:
        """The anchor follows before anything that was read may be told. `seal` is of our batch,
        else the last row's."""
        if self.history.mark != self._durable and self._anchor is not None:
            self._trusted(lambda: self._anchor_to(seal or self.history.seal))

    def _anchor_to(self, seal: bytes | None) -> None:
        assert self._anchor is not None  # noqa: S101
        self._anchor.move(self.history.mark, seal)
        self._durable = self.history.mark

    def _look(self, read: Callable[[int], list[Row]]) -> None:
        """Verify and take in what is new; `Refused` for good if the chain is not what it was."""
        self._trusted(lambda: self._take(read))

    def _take(self, read: Callable[[int], list[Row]]) -> None:
        if self._doubt:
            self._read_anew()
        mark = self.history.mark
        rows = read(mark.seq)
        if not rows or (rows[0].seq, rows[0].hash) != mark:
            raise rolled_back()
        if len(rows) > 1:
            self.history.take(rows[1:])
            check_key(self.history, self.key)

    def _read_anew(self) -> None:
        """After a doubt only the chain says what is charged."""
        history = Traced()
        history.take(self._server.rows())
        if not history.ledger or behind(self._durable, self._server, history):
            raise rolled_back()
        check_key(history, self.key)
        self.history, self._doubt = history, False

    def _trusted(self, work: Callable[[], T]) -> T:
        """Let `Interrupted` pass; any other refusal closes this ledger for good."""
        if self._ruin is not None:
            raise Refused(self._ruin)
        try:
            return work()
        except Interrupted:
            raise
        except Refused as reason:
            self._ruin = str(reason)
            raise

    def _left_by_others(self) -> list[tuple[str, int]]:
        """Reservations of replicas that are not connected. Ending one too early takes nothing from
        the account: who spends from it is refused."""
        others = [
            (name, seq, held.replica)
            for name, table in self.history.tables.items()
            for seq, held in table.budgets.reservations.items()
            if held.replica != self.replica
        ]
        if not others or time.monotonic() < self._swept + PAUSE:
            return []
        present = self._server.present()
        self._swept = time.monotonic()
        return [(name, seq) for name, seq, replica in others if replica not in present]


def check_key(history: ChainState, key: LedgerKey) -> None:
    """`Refused` unless the chain is sealed by this replica's key, and goes by it."""
    if history.public != key.public:
        raise Refused(
            "the ledger has another signing key than this replica: it was recovered elsewhere; get"
            " the new key with `sulq share-key` there and `sulq join` here"
        )
    check_seal(history, key, "that replicas share")


def rolled_back() -> Refused:
    return Refused(
        "the ledger was rolled back: this replica has seen later events; restore the newest "
        "ledger, or run `sulq recover`: it counts everything as spent"
    )


def open_shared(
    url: str | Path, wait: float, create: bool, receipts: str | Path | None = None
) -> LedgerFile:
    """Open a ledger on a server, as one replica of it; shared within this process."""
    if receipts is not None:
        raise Refused(
            "a ledger on PostgreSQL has no receipts journal: no replica sees all that others tell."
            " Leave receipts out, and let the server archive its own log (archive_mode), or keep a"
            " synchronous standby"
        )
    place = read_place(str(url))
    return registered(place.shown, lambda: _open(place, wait, create))


def _open(place: LedgerLocation, wait: float, create: bool) -> LedgerFile:
    deadline = time.monotonic() + wait
    home = private_directory("paths", named(place.shown))
    holds = [_hold(home / "holder", place, deadline)]
    try:
        known = (read_private(home / "ledger") or b"").decode("ascii", "replace")
        try:
            store = PostgresStore(place, create=create and not known)
        except NoLedger:
            raise missing(place.shown, known) from None
        try:
            return _opened(place, store, home, holds, known, create, deadline)
        except BaseException:
            store.close(tidy=False)
            raise
    except BaseException:
        for hold in holds:
            hold.release()
        raise


def _opened(
    place: LedgerLocation,
    store: PostgresStore,
    home: Path,
    holds: list[Hold],
    known: str,
    create: bool,
    deadline: float,
) -> LedgerFile:
    history = Traced()
    history.take(store.rows())
    if not history.ledger:
        if known or not create:
            raise missing(place.shown, known)
        rows = store.begin(0)
        if not rows:
            return begun(store, home, holds, place.shown, history, SharedLedgerFile)
        history.take(rows)  # somebody was quicker
        store.end()
    files = Files(history.ledger)
    private_directory("ledgers", history.ledger)
    holds.append(_hold(files.holder, place, deadline))
    if known not in ("", history.ledger):
        raise Refused(
            f"{place.shown} is not the ledger that was there before; give each ledger a name of "
            "its own"
        )
    if read_private(files.key) is None and read_private(files.anchor) is None:
        raise Refused(
            f"this is a new replica of the ledger {place.shown}, or its state directory is lost:"
            " run `sulq share-key` where the ledger is in use and `sulq join` here, to get its key"
            " and mark; where no replica has them left `sulq recover`"
        )
    key = read_key(files.key, history.public)
    check_seal(history, key, place.shown)
    anchor = verified_anchor(files, store, history, key)
    anchor.settle(history.mark)
    remember(home, history.ledger)
    return SharedLedgerFile(store, history, key, anchor, holds, place.shown)


def _hold(path: Path, place: LedgerLocation, deadline: float) -> Hold:
    try:
        return Hold(path, place.shown, deadline)
    except Refused as held:
        raise Refused(
            f"{held}; for a second replica on this machine set SULQ_STATE to another directory"
        ) from None


# How another replica comes to the owner's signing key, and to a mark to begin with.
#
# The key alone would not do: a replica that starts without a mark believes whatever it finds.


_LEDGER = re.compile(r"[0-9a-f]{32}")
_NOT = "{} does not hold what `sulq share-key` writes; make it anew"


def share_key(path: str | Path, file: Path) -> str:
    """Write key and mark of the ledger at `path` to a new file that only its owner may read; the
    ledger's id. Whoever has the file can sign in the owner's name."""
    known = (read_private(path_home(location_name(path)) / "ledger") or b"").decode(
        "ascii", "replace"
    )
    files = Files(known)
    secret, anchor = read_private(files.key), read_private(files.anchor)
    if not known or secret is None or anchor is None:
        raise Refused(
            f"the state directory has no key and mark of {location_name(path)}; do this where the"
            " ledger is in use"
        )
    said = {"ledger": known, "key": secret.hex(), "anchor": anchor.hex()}
    if not write_private(file, json.dumps(said).encode(), replace=False):
        raise Refused(f"there is a file at {file} already; give a new name")
    return known


def join(path: str | Path, file: Path) -> str:
    """Take key and mark of the ledger at `path` into this state directory; the ledger's id."""
    try:
        said = json.loads(file.read_bytes())
        ledger, secret = str(said["ledger"]), bytes.fromhex(said["key"])
        anchor, key = bytes.fromhex(said["anchor"]), LedgerKey(secret)
    except (OSError, ValueError, KeyError, TypeError):
        raise Refused(_NOT.format(file)) from None
    if not _LEDGER.fullmatch(ledger) or latest_head(anchor, ledger, [key.public]) is None:
        raise Refused(_NOT.format(file))
    home = private_directory("paths", named(location_name(path)))
    known = (read_private(home / "ledger") or b"").decode("ascii", "replace")
    if known not in ("", ledger):
        raise Refused(f"{location_name(path)} is another ledger here; give each a name of its own")
    private_directory("ledgers", ledger)
    files = Files(ledger)
    if read_private(files.anchor) is None:  # its own mark is never taken back
        write_private(files.anchor, anchor.ljust(2 * SLOT, b"\0"), replace=False)
    write_private(files.key, secret, replace=True)
    remember(home, ledger)
    return ledger
