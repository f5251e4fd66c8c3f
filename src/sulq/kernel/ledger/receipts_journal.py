"""The receipts journal: on a second disk, what every event cost and the receipt of every answer.

It is written and synced after the commit and before anybody is answered, so whatever was released
is in it. One JSON object to a line: receipts as analysts hold them, and after those of a batch a
signed mark, which says how far the chain had come and what each of its new events was. No answer,
no question that is not in a receipt, nothing of a row. Proof: docs/proofs/ledger.md, section 17.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sulq.errors import Refused
from sulq.kernel.ledger.signing import (
    ChainHead,
    LedgerKey,
    Proof,
    Receipt,
    canonical,
    check_signature,
    is_signed,
    read_receipt,
    receipt_body,
    sign_receipt,
)
from sulq.kernel.ledger.state import ChainState
from sulq.kernel.ledger.state_dir import Hold, identity, sync_directory, write_private
from sulq.kernel.ledger.stores.store import Row, Store

FORMAT = "sulq receipts journal 1"
MARK = b'{"mark":'
CHUNK = 1 << 16
PAGE = 256  # rows written at a time when a journal catches up
PRICED = ("table", "analyst", "charges", "share")
PAID = (*PRICED, "origin", "digest", "noise")

PLAIN = {"charge", "repeat", "answer", "retry", "plan", "reserve", "return", "grant", "revoke"}
PLAIN |= {"declare", "table", "recover"}
"""Kinds of events after which nothing but what the journal says of them needs to be known: what
they cost, if anything. Every other kind changes what was promised, or spends without a price here.
"""
BURN = "burn"
"""How a journal calls a recovery that counted everything as spent."""

NEVER = ChainHead(0, bytes(32))
RowAt = Callable[[int], Row]


def file_identity(path: Path) -> str:
    """Which file this is: its number and the moment it was made. A copy is another file, on
    whatever machine; the same disk in another machine has the same one."""
    found = ctypes.create_string_buffer(256)
    born = b""
    with suppress(AttributeError, OSError):  # a libc without statx: the number alone
        done = ctypes.CDLL(None).statx(-100, os.fsencode(path), 0, 0x900, found)
        born = found.raw[80:92] if done == 0 and struct.unpack_from("I", found)[0] & 0x800 else b""
    try:
        return f"{path.stat().st_ino}.{born.hex()}"
    except OSError:
        return ""


def paid_for(row: Row, at: RowAt) -> dict[str, Any] | None:
    """Who paid what for what, of a charge, release or repeat; None for any other event."""
    body = json.loads(row.body)
    if body["kind"] in ("charge", "release"):
        body |= {"origin": row.seq}
    elif body["kind"] == "repeat":
        origin = json.loads(at(body["entry"]).body)
        body |= {"origin": body["entry"], "charges": []}
        body |= {name: origin[name] for name in ("digest", "noise")}
    else:
        return None
    return {name: body[name] for name in PAID}


def claim_of(row: Row, at: RowAt) -> str:
    """What can be said of an event by receipts and journals: the payment, else its link."""
    paid = paid_for(row, at)
    return row.hash.hex() if paid is None else canonical(paid)


class ReceiptsJournal:
    """A journal that this process alone writes. Not thread-safe: the writer calls it."""

    def __init__(self, path: Path, hold: Hold, ledger: str, key: LedgerKey | None) -> None:
        """Use `opened_journal`."""
        self.path, self._hold, self._ledger, self._key = path, hold, ledger, key
        self._file = file_identity(path)
        self._size = 0
        self.last = NEVER

    @property
    def handle(self) -> int:
        return self._hold.handle

    @property
    def empty(self) -> bool:
        return os.fstat(self._hold.handle).st_size == 0

    def begin(self, head: ChainHead) -> None:
        """The first line of a new journal: what is not in it lies at or before `head`."""
        self.last = head
        self._append([self._mark([], head)])
        sync_directory(self.path.parent)

    def resume(self, store: Store, history: ChainState) -> None:
        """Go on after the last mark, which must be on the chain; write what the chain has since."""
        at = _end(self._hold.handle, history, self.path)
        if at is None:
            raise _unreadable(self.path)
        self.last, batch = at
        lost = any(self.last.seq in gap for gap in history.gaps)
        if self.last.seq > history.mark.seq or lost or _hash(store, self.last) != self.last.hash:
            raise _ahead(self.path)
        self._cut(batch)
        self.catch_up(store, history)

    def sign_with(self, key: LedgerKey) -> None:
        """Write with this key from now on."""
        self._key = key

    def take_over(self, size: int, last: ChainHead) -> None:
        """Go on where a recovery found the end, whatever the chain has there."""
        self.last = last
        self._cut(range(size, size))

    def catch_up(self, store: Store, history: ChainState) -> None:
        """Write what a crash, or a recovery, left out."""
        rows: list[Row] = []
        for row in store.rows(self.last.seq):
            rows.append(row)
            if row.seal is not None and len(rows) >= PAGE:
                self.write(rows, store.row, history)
                rows = []
        if rows:
            self.write(rows, store.row, history)

    def write(self, rows: Sequence[Row], at: RowAt, history: ChainState) -> None:
        """A batch, durable when it returns; after an error nothing may be released."""
        lines = [receipt.to_json() for receipt in self._receipts(rows, at, history)]
        events = [[row.seq, _kind(row), paid_for(row, at) or row.hash.hex()] for row in rows]
        head = ChainHead(rows[-1].seq, rows[-1].hash)
        self._append([*lines, self._mark(events, head)])
        self.last = head

    def finish(self) -> None:
        """The last line of a journal that another one follows: it proves no end any more."""
        self._append([self._mark([], self.last, ended=True)])

    def close(self) -> None:
        self._hold.release()

    def _receipts(self, rows: Sequence[Row], at: RowAt, history: ChainState) -> Iterator[Receipt]:
        """Those that the batch makes: of new answers for everybody who has paid, and of repeats."""
        done: set[int] = set()
        for row in rows:
            body = json.loads(row.body)
            if body["kind"] not in ("answer", "repeat"):
                continue
            table = history.tables[body["table"]]
            record = table.catalogue.at(body["entry"])
            if record is None or record.answer is None or record.answer > rows[-1].seq:
                continue
            everybody = table.catalogue.everybody(record)
            new = everybody if body["kind"] == "answer" else {row.seq} & {*everybody}
            for seq in sorted({seq for seq in new if seq <= rows[-1].seq} - done):
                done.add(seq)
                proof = Proof(at(seq), at(record.seq), at(record.answer))
                found = receipt_body(self._ledger, table.header_at(seq), proof)
                assert self._key is not None  # noqa: S101
                yield sign_receipt(found, self._key)

    def _mark(self, events: list[list[Any]], head: ChainHead, *, ended: bool = False) -> str:
        body = {
            "format": FORMAT,
            "ledger": self._ledger,
            "file": self._file,
            "since": [self.last.seq, self.last.hash.hex()],
            "seq": head.seq,
            "hash": head.hash.hex(),
            "events": events,
            **({"ended": True} if ended else {}),
        }
        assert self._key is not None  # noqa: S101
        signature = self._key.sign(canonical(body).encode("ascii")).hex()
        return canonical({"mark": body, "signature": signature})

    def _append(self, lines: Sequence[str]) -> None:
        content = "".join(f"{line}\n" for line in lines).encode("ascii")
        handle = self._hold.handle
        try:
            if identity(self.path) != self._hold.identity:
                raise Refused(f"the receipts journal {self.path} was moved or deleted")
            if os.fstat(handle).st_size != self._size:
                raise Refused(
                    f"somebody else wrote to the receipts journal {self.path}: the ledger was"
                    " restored elsewhere"
                )
            if os.pwrite(handle, content, self._size) != len(content):
                raise OSError("short write")
            os.fdatasync(handle)
        except OSError:
            raise Refused(f"the receipts journal {self.path} could not be written") from None
        self._size += len(content)

    def _cut(self, batch: range) -> None:
        """Drop what a crash left after the last batch, and make that one durable: its sync may have
        failed, and only what is written anew is synced after that."""
        handle = self._hold.handle
        try:
            content = os.pread(handle, len(batch), batch.start)
            if os.pwrite(handle, content, batch.start) != len(batch):
                raise OSError("short write")
            os.ftruncate(handle, batch.stop)
            os.fdatasync(handle)
        except OSError:
            raise Refused(f"the receipts journal {self.path} could not be written") from None
        self._size = batch.stop


def opened_journal(
    path: Path | None,
    note: Path,
    store: Store,
    history: ChainState,
    key: LedgerKey,
    deadline: float,
) -> ReceiptsJournal | None:
    """The journal of a ledger: at `path`, else where `note` in the state directory says.

    Once a ledger has one, whoever opens the ledger writes it. A new one is begun only where
    none was noted: a disk that is not mounted must not look like a new journal.
    """
    known = noted(note)
    where = path or known
    if where is None:
        return None
    other = known is not None and where != known and identity(where) != identity(known)
    with ExitStack() as held:
        old = _old(known, store, history, key, deadline) if known is not None and other else None
        if old is not None:
            held.callback(old.close)
        journal = held_journal(where, history.ledger, key, deadline, create=where != known)
        try:
            if where != known and journal.empty:
                journal.begin(history.mark)
            else:
                journal.resume(store, history)
            if old is not None:
                old.finish()
            if where != known:
                remember_journal(note, where)
        except BaseException:
            journal.close()
            raise
    return journal


def held_journal(
    where: Path, ledger: str, key: LedgerKey | None, deadline: float, *, create: bool
) -> ReceiptsJournal:
    """The journal's file, locked; nothing is read or written yet."""
    if not create and not where.exists():
        raise Refused(
            f"the receipts journal {where} is missing: is its disk mounted? If it is destroyed,"
            " and no other machine was restored with it, name a new file in the policy (receipts ="
            " ...)"
        )
    try:
        hold = Hold(where, str(where), deadline, create=create, note=False)
    except Refused as reason:
        raise Refused(f"the receipts journal cannot be used: {reason}") from None
    return ReceiptsJournal(where, hold, ledger, key)


def _old(
    where: Path, store: Store, history: ChainState, key: LedgerKey, deadline: float
) -> ReceiptsJournal | None:
    """The journal that was used before, to be ended; None if it is gone, or none of it verifies.

    `Refused` if somebody holds it or has gone on in it: a new journal would be a second history.
    """
    if not where.exists():
        return None
    journal = held_journal(where, history.ledger, key, deadline, create=False)
    try:
        if _end(journal.handle, history, where) is None:
            journal.close()
            return None
        journal.resume(store, history)
    except BaseException:
        journal.close()
        raise
    return journal


def noted(note: Path) -> Path | None:
    """Where a ledger's journal is, by the state directory."""
    try:
        return Path(os.fsdecode(note.read_bytes()))
    except FileNotFoundError:
        return None
    except OSError:
        raise Refused(f"the state file {note} cannot be read") from None


def remember_journal(note: Path, where: Path) -> None:
    write_private(note, os.fsencode(where), replace=True)


# -- reading --------------------------------------------------------------------------------------


@dataclass(slots=True)
class JournalAccount:
    """What a journal says, as far as its lines verify."""

    last: ChainHead = NEVER
    ends: dict[int, bytes] = field(default_factory=dict)  # of batches: number and hash
    kinds: dict[int, str] = field(default_factory=dict)
    claims: dict[int, str] = field(default_factory=dict)
    receipts: list[Receipt] = field(default_factory=list)
    size: int = 0  # up to the end of the last mark
    whole: bool = True  # no line is missing or changed between the first and the last
    live: bool = False  # it is the file that was written, not a copy, and no other followed it
    unknown: int = 0  # the last number of a mark that none of the known keys signed


def read_journal(path: Path, ledger: str, publics: Sequence[str]) -> JournalAccount:
    """Everything in a journal that one of `publics` signed; `Refused` if it is another ledger's.

    What stands after the last mark was being written when it ended: nobody was answered for it. A
    whole mark of another key is no such end: somebody went on who has a key that is not known here.
    """
    found, waiting, place = JournalAccount(), list[Receipt](), 0
    bad, file = False, None
    try:
        with path.open("rb") as lines:
            for line in lines:
                place += len(line)
                read = read_mark(line, ledger, path)
                mark = None if read is None else read.by(publics)
                if mark is None:
                    if read is not None:
                        found.unknown = max(found.unknown, read.seq)
                    receipt = _receipt(line, ledger, publics)
                    bad |= receipt is None
                    waiting += [] if receipt is None else [receipt]
                    continue
                since = ChainHead(mark["since"][0], bytes.fromhex(mark["since"][1]))
                found.whole &= not bad and (since == found.last or not found.ends)
                found.receipts += waiting
                waiting, bad = [], False
                found.last, found.size = ChainHead(mark["seq"], bytes.fromhex(mark["hash"])), place
                found.ends |= {since.seq: since.hash, found.last.seq: found.last.hash}
                for seq, kind, said in mark["events"]:
                    found.kinds[seq] = kind
                    found.claims[seq] = said if isinstance(said, str) else canonical(said)
                file = None if mark.get("ended") else mark["file"]
    except OSError:
        raise Refused(f"the receipts journal {path} cannot be read; check its rights") from None
    found.live = found.whole and file is not None and file == file_identity(path)
    return found


@dataclass(frozen=True, slots=True)
class SignedMark:
    """A mark as it was read, whoever signed it."""

    body: dict[str, Any]
    seq: int
    signature: bytes

    def by(self, publics: Sequence[str]) -> dict[str, Any] | None:
        """What it says, if one of `publics` signed it."""
        message = canonical(self.body).encode("ascii")
        signed = any(is_signed(message, self.signature, public) for public in publics)
        return self.body if signed else None


def read_mark(line: bytes, ledger: str, path: Path) -> SignedMark | None:
    """The mark in a line, if there is a whole one of this ledger; its signature is not judged."""
    if not line.startswith(MARK) or not line.endswith(b"\n"):
        return None
    try:
        read = json.loads(line)
        body: dict[str, Any] = read["mark"]
        if body["format"] != FORMAT:
            return None
        found = SignedMark(body, int(body["seq"]), bytes.fromhex(read["signature"]))
        other = body["ledger"] != ledger
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError):
        return None
    if other:
        raise Refused(
            f"the receipts journal {path} belongs to another ledger; give each ledger its own"
        )
    return found


def _receipt(line: bytes, ledger: str, publics: Sequence[str]) -> Receipt | None:
    """The receipt in a line, if one of `publics` signed it for this ledger: marks do not cover it,
    so who can write the file could put in one of their own."""
    with suppress(Refused, UnicodeDecodeError):
        receipt = read_receipt(line.decode("ascii"))
        check_signature(receipt, publics)
        return receipt if receipt.body["ledger"] == ledger else None
    return None


def _end(handle: int, history: ChainState, path: Path) -> tuple[ChainHead, range] | None:
    """The last mark of a journal, and where its batch lies in the file; read from the back.

    `Refused` if a mark of a key that the chain does not know stands after it and tells of more than
    the chain has: it was written by whoever restored the ledger elsewhere.
    """
    start = os.fstat(handle).st_size
    last: tuple[ChainHead, int] | None = None
    tail = b""
    while start:
        end, start = start, max(0, start - CHUNK)
        tail = os.pread(handle, end - start, start) + tail
        first = 0 if start == 0 else tail.find(b"\n") + 1  # the line before is not whole yet
        if start and not first:
            continue
        place = start + len(tail)
        for line in reversed(tail[first:].splitlines(keepends=True)):
            if (read := read_mark(line, history.ledger, path)) is not None:
                body = read.by(history.publics)
                if last is None and body is None and read.seq > history.mark.seq:
                    raise _ahead(path)
                if body is not None and last is not None:
                    return last[0], range(place, last[1])
                if body is not None:
                    last = ChainHead(body["seq"], bytes.fromhex(body["hash"])), place
            place -= len(line)
        tail = tail[:first]
    return None if last is None else (last[0], range(last[1]))


def _hash(store: Store, mark: ChainHead) -> bytes:
    return store.row(mark.seq).hash if mark.seq else bytes(32)


def _kind(row: Row) -> str:
    body = json.loads(row.body)
    return BURN if body["kind"] == "recover" and body["burn"] else str(body["kind"])


def _ahead(path: Path) -> Refused:
    return Refused(
        f"the receipts journal {path} has seen events that the ledger does not have: the ledger was"
        " rolled back, or restored elsewhere; use the newest one, or run `sulq recover`"
    )


def _unreadable(path: Path) -> Refused:
    return Refused(
        f"the receipts journal {path} does not verify: no line of it was signed by this ledger;"
        " restore it, or name a new file in the policy (receipts = ...)"
    )
