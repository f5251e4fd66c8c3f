"""One open ledger file: held alone, verified, written by one thread, shared by its tables."""

from __future__ import annotations

import atexit
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from sulq.errors import Refused, SulqError
from sulq.kernel.ledger import failpoints
from sulq.kernel.ledger.budget import Spending
from sulq.kernel.ledger.events import Event, LedgerEvent
from sulq.kernel.ledger.index import IndexUnavailable, no_room
from sulq.kernel.ledger.receipts_journal import ReceiptsJournal, file_identity, opened_journal
from sulq.kernel.ledger.signing import (
    Anchor,
    ChainHead,
    LedgerKey,
    latest_head,
    new_anchor,
    new_key,
    read_key,
    sign_head,
)
from sulq.kernel.ledger.state import ChainState
from sulq.kernel.ledger.state_dir import (
    Hold,
    identity,
    ledger_identity,
    location_name,
    named,
    private_directory,
    private_path,
    read_private,
    state_directory,
    write_private,
)
from sulq.kernel.ledger.stores.sqlite import SqliteStore
from sulq.kernel.ledger.stores.store import Interrupted, Row, Store

MEMORY = ":memory:"
BATCH = 256
"""Jobs that one commit makes durable, at most."""
T = TypeVar("T")


# Group commit: one thread does all the work in order and makes a whole batch durable at once.


@dataclass(frozen=True, slots=True)
class WriteJob:
    """Work for the writer's thread (None: a user leaves), and the future that tells its outcome."""

    work: Callable[[], Any] | None
    future: Future[Any] = field(default_factory=Future)

    def finish(self, outcome: Any) -> None:
        """Give the caller what the work returned, or raise there what it raised."""
        if isinstance(outcome, Exception):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)


class Writer:
    """Runs jobs one after the other; nobody is answered before `commit` has returned.

    A job's own refusal, or its error before it changed anything, goes to its caller alone. So does
    what `begin` refuses, which breaks the writer for good unless it is `Interrupted`. Any other
    failure leaves the outcome unknown: the batch is told so and the writer is broken for good. It
    ends when its last user leaves.
    """

    def __init__(
        self,
        begin: Callable[[], None],
        commit: Callable[[], None],
        finish: Callable[[bool], None],
        changes: Callable[[], int],
        lock: AbstractContextManager[object],
        pause: float | None = None,
    ) -> None:
        """`finish(tidy)` is called once, on the writer's thread, when it ends or breaks; `changes`
        counts what jobs have changed. After a `pause` without work there is an empty batch."""
        self._begin, self._commit, self._finish = begin, commit, finish
        self._changes, self._lock, self._pause = changes, lock, pause
        self._queue: SimpleQueue[WriteJob] = SimpleQueue()
        self._entrance = threading.Lock()
        self._users, self._ended, self._broken = 1, False, False
        threading.Thread(target=self._run, name="sulq-ledger", daemon=True).start()

    @property
    def usable(self) -> bool:
        return not (self._ended or self._broken)

    def submit(self, work: Callable[[], T]) -> T:
        """Do `work` in turn; return when what it did is durable."""
        job = WriteJob(work)
        with self._entrance:
            if self._ended:
                raise closed()
            self._queue.put(job)
        outcome: T = job.future.result()
        return outcome

    def later(self, work: Callable[[], None]) -> None:
        """Do `work` in turn, unless everybody has left by then. Takes no lock."""
        self._queue.put(WriteJob(work))

    def enter(self) -> bool:
        """One user more; False if it is too late."""
        with self._entrance:
            self._users += self.usable
            return self.usable

    def leave(self, *, wait: bool) -> None:
        """One user less. Without `wait` it takes no lock, so a finalizer may call it anywhere."""
        job = WriteJob(None)
        if not wait:
            self._queue.put(job)
            return
        with self._entrance:
            if self._ended:
                return  # nobody would answer
            self._queue.put(job)
        job.future.exception()  # wait; a broken writer is left all the same

    def stop(self) -> None:
        """Every user leaves."""
        with self._entrance:
            if self._ended:
                return
            self._users = 1
        self.leave(wait=True)

    def _run(self) -> None:
        while self._do(self._next_batch()):
            pass  # no job is held while waiting: it would keep its caller's objects alive

    def _next_batch(self) -> list[WriteJob]:
        try:
            return [self._queue.get(timeout=self._pause)]
        except Empty:
            return []

    def _waiting(self, most: int) -> list[WriteJob]:
        found: list[WriteJob] = []
        with suppress(Empty):
            while len(found) < most:
                found.append(self._queue.get_nowait())
        return found

    def _do(self, batch: list[WriteJob]) -> bool:
        """Run a batch and answer its callers; False if the last user left."""
        with self._lock:
            outcomes = self._outcomes(batch)
            going = self._let_go(sum(job.work is None for job in batch))
        for job, outcome in zip(batch, outcomes, strict=True):
            job.finish(outcome)
        return going

    def _outcomes(self, batch: list[WriteJob]) -> list[Any]:
        """Run a batch, and the jobs that came while it waited to begin, which are added to it.
        Return each job's result or error, once `commit` has returned."""
        told: Callable[[], Refused] = closed if self._broken else unknown
        try:
            if self._broken:
                raise closed()
            try:
                self._begin()
            except Refused as reason:
                told = partial(Refused, *reason.args)
                raise
            finally:
                batch += self._waiting(BATCH - len(batch))
            outcomes = [self._outcome(job) for job in batch]
            self._commit()
        except Interrupted as pause:
            return [Interrupted(charged=pause.charged_unknown) for _ in batch]
        except BaseException:  # noqa: BLE001 - whatever it was, the outcome is unknown
            if not self._broken:
                self._broken = True
                self._finish(False)
            return [told() for _ in batch]
        return outcomes

    def _outcome(self, job: WriteJob) -> Any:
        """Run one job. Raise only an error that came after the job had changed something."""
        before = self._changes()
        try:
            return job.work and job.work()
        except SulqError as refusal:
            return refusal
        except Exception as problem:
            if self._changes() != before:
                raise
            return problem

    def _let_go(self, leaving: int) -> bool:
        with self._entrance:
            self._users -= leaving
            self._ended = self._users <= 0
        if self._ended:
            while not self._queue.empty():
                self._queue.get().finish(closed())
            if not self._broken:
                self._finish(True)
        return not self._ended


def closed() -> Refused:
    return Refused(
        "the ledger is closed: it was closed, or a write failed before; reopen it and ask again "
        "with the same key"
    )


def unknown() -> Refused:
    """A write failed whose outcome only the next opening tells."""
    refusal = Refused(
        "a write failed and the ledger is closed: the charge may stand; reopen and ask again with "
        "the same key"
    )
    refusal.charged_unknown = True
    return refusal


def _go_on(step: str) -> None:
    """Do nothing: no test waits for a step."""


class LedgerFile:
    """The chain in use. Reads see only what is durable; work runs on the writer's thread."""

    replica: int | None = None  # where several share a ledger: which one this is

    def __init__(
        self,
        store: Store,
        history: ChainState,
        key: LedgerKey,
        anchor: Anchor | None,
        holds: list[Hold],
        file: tuple[int, int] | str | None,
        pause: float | None = None,
        receipts: ReceiptsJournal | None = None,
    ) -> None:
        """`file` is which one it is, or the server's; None in memory."""
        self.history, self.key, self.file = history, key, file
        self.state = state_directory() if file is not None else None
        self._store, self._anchor, self._holds = store, anchor, holds
        self._receipts = receipts
        self.left_open = [  # by whoever had the file before: ended with the first work
            (name, seq) for name, table in history.tables.items() for seq in table.open_reservations
        ]
        self.place: str | None = None  # where it was opened
        self._pending: dict[int, Row] = {}
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._writer = Writer(
            self._begin, self._commit, self._finish, lambda: self.history.begun, self._lock, pause
        )

    def submit(self, work: Callable[[], T]) -> T:
        """Do `work` in turn on the writer's thread; return when all it added is durable."""
        self._check_process()
        try:
            return self._writer.submit(work)
        except IndexUnavailable:
            raise no_room() from None

    def later(self, work: Callable[[], None]) -> None:
        """As `submit`, for a finalizer: it neither waits nor fails, here or in a forked child."""
        if not self.foreign:
            self._writer.later(work)

    def read(self, work: Callable[[], T]) -> T:
        """Do `work` between two commits."""
        self._check_process()
        with self._lock:
            if not self._writer.usable:
                raise closed()
            try:
                return work()
            except IndexUnavailable:
                raise no_room() from None

    def at_rest(self) -> AbstractContextManager[object]:
        """Return a context in which reads wait for no commit. Nothing may be submitted inside."""
        self._check_process()
        return self._lock

    def add(self, event: Event, noisy: str | None = None, admitted: Spending | None = None) -> Row:
        """Append an event, with what was admitted for it; only on the writer's thread."""
        at = int(time.time())  # for display only
        salt = secrets.token_hex(16)  # who sees the hash alone cannot try out bodies
        row = self.history.add(event.to_body() | {"at": at, "salt": salt}, noisy, None, admitted)
        self._pending[row.seq] = row
        return row

    def row(self, seq: int) -> Row:
        return self._pending.get(seq) or self._store.row(seq)

    def page(self, after: int, most: int) -> list[Row]:
        """At most `most` rows after that number."""
        return [row for row, _ in zip(self._store.rows(after), range(most), strict=False)]

    def rows(self) -> Iterator[Row]:
        return self._store.rows()

    @property
    def usable(self) -> bool:
        return not self.foreign and self._writer.usable

    @property
    def receipts(self) -> Path | None:
        """Where the receipts journal is, if there is one."""
        return None if self._receipts is None else self._receipts.path

    @property
    def foreign(self) -> bool:
        """True in a forked child, which has no writer and must not touch its parent's file."""
        return os.getpid() != self._process

    def _check_process(self) -> None:
        if self.foreign:
            raise Refused(
                "this ledger was opened by another process and cannot be used in a "
                "forked child; open it there anew, after the parent has closed it"
            )

    def stamp(self, table: str, fingerprint: str | None) -> str | None:
        """What the chain says of a table's content, for replicas to compare; here nothing."""
        return None

    def _begin(self) -> None:
        """Before each batch. Who holds a ledger alone knows all of it."""

    def _commit(self) -> None:
        """Durable in the ledger, in the receipts journal, then in the anchor; only then may anybody
        be answered."""
        if self._pending:
            reached = failpoints.on_step or _go_on
            reached("admitted")
            seal = sign_head(self.history.ledger, self.key, self.history.mark)
            *rows, head = self._pending.values()
            self._store.append((*rows, head._replace(seal=seal)))
            reached("committed")
            if self._receipts is not None:
                self._receipts.write(list(self._pending.values()), self.row, self.history)
                reached("journalled")
            if self._anchor is not None:
                self._anchor.move(self.history.mark, seal)
            reached("anchored")
            self._pending.clear()

    def _finish(self, tidy: bool) -> None:
        """After a failure nothing more is written: what is on disk decides at the next opening."""
        with suppress(Refused):
            if tidy and self._anchor is not None:
                self._anchor.move(self.history.mark)  # both slots now say the same
        self._store.close(tidy=tidy)
        if self._anchor is not None:
            self._anchor.close()
        if self._receipts is not None:
            self._receipts.close()
        for hold in self._holds:
            hold.release()

    def enter(self) -> bool:
        """Add a user; False if this ledger is closed, or was opened by another process."""
        return not self.foreign and self._writer.enter()

    def leave(self, *, wait: bool) -> None:
        """One user less; the last one closes the file. Without `wait` it never blocks."""
        if not self.foreign:
            self._writer.leave(wait=wait)

    def stop(self) -> None:
        if not self.foreign:
            self._writer.stop()

    def leave_to_parent(self) -> None:
        """In a forked child: drop the copies of the parent's locks."""
        if self._receipts is not None:
            self._receipts.close()
        for hold in self._holds:
            hold.release()


_books: dict[str, LedgerFile] = {}
_registry = threading.Lock()  # no finalizer takes it


def open_ledger_file(
    path: str | Path, wait: float, create: bool, receipts: str | Path | None = None
) -> LedgerFile:
    """Open the ledger at `path`, shared within this process; `Refused` if anything does not match.
    `receipts` is where the ledger's receipts journal is to be, if it has none elsewhere."""
    if str(path) == MEMORY:
        if receipts is not None:
            raise Refused("a ledger in memory ends with its process: leave receipts out")
        return begun(SqliteStore(MEMORY, create=True), None, [])
    where = location_name(path)
    wanted = None if receipts is None else Path(location_name(receipts))
    if wanted is not None and not wanted.parent.is_dir():
        raise Refused(f"there is no directory {wanted.parent} for the receipts journal; make it")
    book = registered(where, lambda: _open(where, wait, create, wanted))
    if wanted not in (None, book.receipts):
        book.leave(wait=True)
        raise Refused(
            f"the ledger {where} is open here with "
            + ("no receipts journal" if book.receipts is None else f"the journal {book.receipts}")
            + f", and {wanted} is asked for: tables of one ledger have one journal"
        )
    book.place = where
    return book


def registered(where: str, make: Callable[[], LedgerFile]) -> LedgerFile:
    """Return the open ledger of this place with one user more, or open it with `make`."""
    with _registry:
        for closed_path in [found for found, book in _books.items() if not book.usable]:
            del _books[closed_path]
        book = _shared(where)
        if book is None or not book.enter():
            book = _books[where] = make()
        return book


def opened(path: str | Path) -> LedgerFile | None:
    """Return the open ledger at `path`, by whatever name this process has opened it."""
    here = ledger_identity(path)
    found = (book for book in list(_books.values()) if book.usable and book.file == here)
    return next(found, None) if here is not None else None


def _shared(where: str) -> LedgerFile | None:
    """Return the open ledger of `where`; `Refused` if path or state directory changed meanwhile."""
    book = opened(where)
    named_so = _books.get(where)
    if named_so is not None and named_so.usable and named_so is not book:
        raise Refused(f"the ledger {where} was replaced while it is open here; close it first")
    if book is not None and book.state != state_directory():
        raise Refused(
            f"the ledger {where} is open here with the state directory {book.state}; "
            "close it before SULQ_STATE is changed"
        )
    return book


@atexit.register
def _close_all() -> None:
    """Leave tidy files behind; a crash here loses nothing."""
    for book in list(_books.values()):
        book.stop()


def _after_fork() -> None:
    global _registry
    _registry = threading.Lock()
    for book in _books.values():
        book.leave_to_parent()


os.register_at_fork(after_in_child=_after_fork)


class Files:
    """Where a ledger's own files lie in the state directory."""

    def __init__(self, ledger: str) -> None:
        home = private_path("ledgers", ledger)
        self.key, self.anchor, self.holder = home / "key", home / "anchor", home / "holder"
        self.journal = home / "journal"  # where the receipts journal is
        self.born = home / "born"  # which file the anchor is: a copy of it is another


def path_home(where: str) -> Path:
    """What the state directory knows of a path: who holds it, and which ledger lives there."""
    return private_path("paths", named(where))


def is_known(path: str | Path) -> bool:
    """True if the state directory remembers a ledger at this place, there or lost."""
    return read_private(path_home(location_name(path)) / "ledger") is not None


def _open(where: str, wait: float, create: bool, receipts: Path | None) -> LedgerFile:
    deadline = time.monotonic() + wait
    home = private_directory("paths", named(where))
    holds = [Hold(home / "holder", where, deadline)]
    try:
        known = (read_private(home / "ledger") or b"").decode("ascii", "replace")
        if identity(where) is None and (known or not create):
            raise missing(where, known)
        if known and not Path(where).stat().st_size:
            raise missing(where, known)
        fresh = create and not known
        file = Hold(Path(where), where, deadline, create=fresh, note=False)
        holds.append(file)
        left = max(0.0, deadline - time.monotonic())
        store = SqliteStore(where, left, create=fresh)
        try:
            history = ChainState()
            history.take(store.rows())
            if not history.ledger:
                if known or not create:
                    raise missing(where, known)
                return begun(store, home, holds, file.identity, receipts=receipts)
            files = Files(history.ledger)
            private_directory("ledgers", history.ledger)
            holds.append(Hold(files.holder, where, deadline))
            if known not in ("", history.ledger):
                raise Refused(
                    f"{where} is not the ledger that was there before; give each ledger "
                    "a path of its own"
                )
            key = read_key(files.key, history.public)
            check_seal(history, key, where)
            anchor = verified_anchor(files, store, history, key)
            journal = None
            try:
                journal = opened_journal(receipts, files.journal, store, history, key, deadline)
                anchor.settle(history.mark)
            except BaseException:
                anchor.close()
                if journal is not None:
                    journal.close()
                raise
            remember(home, history.ledger)
            return LedgerFile(store, history, key, anchor, holds, file.identity, receipts=journal)
        except BaseException:
            store.close(tidy=False)
            raise
    except BaseException:
        for hold in holds:
            hold.release()
        raise


def check_seal(history: ChainState, key: LedgerKey, where: str) -> None:
    """`Refused` unless the last event, and with it the chain, was written with this key."""
    if not history.sealed_by([key.public]):
        raise Refused(
            f"the ledger {where} does not verify: its last events were not written with "
            "its key; restore it from a backup, then run `sulq recover`"
        )


def missing(where: str, known: str) -> Refused:
    if known:
        return Refused(
            f"the ledger {where} is lost or empty; put a backup in its place with `sulq restore`,"
            " or give a new ledger another path"
        )
    return Refused(f"there is no ledger at {where}")


def begun(
    store: Store,
    home: Path | None,
    holds: list[Hold],
    file: tuple[int, int] | str | None = None,
    history: ChainState | None = None,
    make: Callable[..., LedgerFile] | None = None,
    receipts: Path | None = None,
) -> LedgerFile:
    """A new ledger. Key and anchor come first: a crash in between leaves an empty file, not a
    ledger without its anchor."""
    history, ledger = history or ChainState(), secrets.token_hex(16)
    files = Files(ledger) if home is not None else None
    if files is not None:
        private_directory("ledgers", ledger)
    key = new_key(files.key if files is not None else None)
    if files is not None:
        holds.append(Hold(files.holder, "", time.monotonic()))
        new_anchor(files.anchor, ledger, key, history.mark, replace=False)
    failpoints.reached("anchor made")
    first = history.add(LedgerEvent(ledger, key.public).to_body())
    store.append([first._replace(seal=sign_head(ledger, key, history.mark))])
    failpoints.reached("ledger made")
    anchor, more = None, dict[str, Any]()
    if files is not None and home is not None:
        anchor = Anchor(files.anchor, ledger, key)
        anchor.settle(history.mark)
        note_born(files)
        remember(home, ledger)
        if receipts is not None:
            now = time.monotonic()
            journal = opened_journal(receipts, files.journal, store, history, key, now)
            more = {"receipts": journal}
    return (make or LedgerFile)(store, history, key, anchor, holds, file, **more)


def remember(home: Path, ledger: str) -> None:
    """Note which ledger lives at this path: no new one takes its place unnoticed."""
    if read_private(home / "ledger") != ledger.encode():
        write_private(home / "ledger", ledger.encode(), replace=True)


def behind(mark: ChainHead, store: Store, history: ChainState) -> bool:
    """True if the chain has not come as far as `mark`, or came there another way."""
    if mark.seq > history.mark.seq or any(mark.seq in gap for gap in history.gaps):
        return True
    return mark.seq > 0 and store.row(mark.seq).hash != mark.hash


def verified_anchor(files: Files, store: Store, history: ChainState, key: LedgerKey) -> Anchor:
    anchor = Anchor(files.anchor, history.ledger, key)
    try:
        mark = latest_head(read_private(files.anchor) or b"", history.ledger, [history.public])
        if mark is None:
            raise Refused(
                f"the anchor {files.anchor} does not verify; `sulq recover` opens the "
                "ledger at the most that can be proved spent"
            )
        if behind(mark, store, history):
            raise Refused(
                "the ledger was rolled back: its anchor has seen later events; restore "
                "the newest ledger, or run `sulq recover`: it counts the lost as spent"
            )
        note_born(files)
    except BaseException:
        anchor.close()
        raise
    return anchor


def note_born(files: Files) -> None:
    """Note which file the anchor is: then a copy of the state directory is known as one."""
    born = file_identity(files.anchor).encode("ascii")
    if read_private(files.born) != born:
        write_private(files.born, born, replace=True)


def is_own(files: Files) -> bool:
    """True if the anchor is the file that this ledger wrote, and not a copy of it."""
    return read_private(files.born) == file_identity(files.anchor).encode("ascii")
