"""Opening a closed ledger again, at the most that ledger, anchor or any receipt proves spent."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sulq.errors import Refused
from sulq.ledger.anchor import Mark, furthest, is_sealed, new_anchor, sealed
from sulq.ledger.book import Files, behind, opened, remember
from sulq.ledger.events import recovered
from sulq.ledger.history import History
from sulq.ledger.keys import Key, new_key
from sulq.ledger.receipts import Receipt, check_signature, read_receipt
from sulq.ledger.sqlite import SqliteStore
from sulq.ledger.state import Hold, named, private_directory, read_private
from sulq.ledger.store import Store


@dataclass(frozen=True, slots=True)
class Recovery:
    """What a recovery found and did."""

    ledger: str
    lost: int  # events that are proved to have existed and are gone
    proved: int  # how many of them receipts account for
    burnt: bool  # everything now counts as spent: some lost price is unknown
    new_key: bool
    anchor_missing: bool = False  # then a loss can neither be shown nor excluded


def recover(path: str | Path, receipts: Iterable[str] = (), *, wait: float = 5.0) -> Recovery:
    """Record a recovery. It only ever adds to what is spent.

    Lost events whose prices no receipt tells could have spent everything: then everything counts
    as spent. Questions without an answer are closed: theirs may have been released (G.3.5).
    """
    if opened(path) is not None:
        raise Refused(f"the ledger {path} is open in this process; close it first")
    where = os.path.realpath(path)
    if not Path(where).is_file():
        raise Refused(f"there is no ledger at {path}; restore a backup of it first")
    with _held(where, wait) as (home, store, history):
        files = Files(history.ledger)
        present = _key_at(files)
        publics = [*([present.public] if present else []), *history.publics]
        shown = [_verified(text, history, publics) for text in receipts]
        anchor = read_private(files.anchor)
        mark = furthest(anchor or b"", history.ledger, publics)
        lost, burn, last = _lost(store, history, shown, mark)
        # Who kept the key also sealed the head; what else there is was put there by somebody else,
        # or comes from before the key. An anchor that cannot be read may have seen anything.
        sealers = [present.public] if present else history.publics
        genuine = is_sealed(history.seal, history.ledger, history.mark, sealers)
        burn = burn or not genuine or (anchor is not None and mark is None)
        lost = [] if burn else lost
        key = present if present and present.public == history.public else None
        missing = last - history.mark.seq
        whole = mark is not None and not behind(mark, store, history) and not burn and not missing
        if key and whole and furthest(anchor or b"", history.ledger, [key.public]) is not None:
            return Recovery(history.ledger, 0, 0, burnt=False, new_key=False)
        fresh = key is None
        key = key or _another_key(files)
        body = recovered(key.public, burn, lost) | {"at": int(time.time())}
        row = history.add(body, seq=last + 1)
        store.append([row._replace(seal=sealed(history.ledger, key, history.mark))])
        new_anchor(files.anchor, history.ledger, key, history.mark, replace=True)
        remember(home, history.ledger)
        return Recovery(history.ledger, missing, len(lost), burn, fresh, anchor is None)


@contextmanager
def _held(where: str, wait: float) -> Iterator[tuple[Path, Store, History]]:
    deadline = time.monotonic() + wait
    home = private_directory("paths", named(where))
    holds = [Hold(home / "holder", where, deadline)]
    try:
        store = SqliteStore(where, wait)
        try:
            history = History()
            history.take(store.rows())
            if not history.ledger:
                raise Refused(f"the ledger {where} is empty; restore a backup of it first")
            private_directory("ledgers", history.ledger)
            holds.append(Hold(Files(history.ledger).holder, where, deadline))
            yield home, store, history
        except BaseException:
            store.close(tidy=False)
            raise
        store.close(tidy=True)
    finally:
        for hold in holds:
            hold.release()


def _key_at(files: Files) -> Key | None:
    """The key in the state directory, if there is a whole one."""
    secret = read_private(files.key)
    try:
        return None if secret is None else Key(secret)
    except ValueError:
        return None


def _another_key(files: Files) -> Key:
    files.key.unlink(missing_ok=True)
    return new_key(files.key)


def _verified(text: str, history: History, publics: list[str]) -> Receipt:
    receipt = read_receipt(text)
    check_signature(receipt, publics)
    if receipt.body["ledger"] != history.ledger:
        raise Refused(f"receipt {receipt.seq} is of another ledger")
    return receipt


def _lost(
    store: Store, history: History, receipts: list[Receipt], mark: Mark | None
) -> tuple[list[dict[str, Any]], bool, int]:
    """Proved lost events, whether an unproved one may exist, and the last number ever used."""
    known = history.mark.seq
    counted = {seq for gap in history.gaps for seq in gap}  # at an earlier recovery
    burn = (
        mark is not None
        and mark.seq <= known
        and mark.seq not in counted
        and behind(mark, store, history)
    )
    last, told = max(known, mark.seq if mark is not None else 0), set()
    lost: dict[int, dict[str, Any]] = {}
    for receipt in receipts:
        body = receipt.body
        burn = burn or (mark is not None and body["answer"] > mark.seq)  # the anchor was put back
        if body["answer"] in counted:
            continue
        if body["answer"] <= known:
            burn = burn or store.row(body["answer"]).hash.hex() != body["answer_link"]
            continue
        last = max(last, body["answer"])
        told.add(body["answer"])
        if body["seq"] > known:
            told.add(body["seq"])
            table = history.tables.get(body["table"])
            burn = burn or table is None or body["analyst"] not in table.budgets.shares
            told_of = {name: body[name] for name in ("table", "analyst", "charges", "share")}
            burn = burn or lost.setdefault(body["seq"], told_of) != told_of  # two histories
    burn = burn or told != set(range(known + 1, last + 1))
    return ([] if burn else list(lost.values())), burn, last
