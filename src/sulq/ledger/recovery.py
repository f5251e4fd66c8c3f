"""Opening a closed ledger again, at the most that ledger, anchor or any receipt proves spent."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sulq.errors import Refused
from sulq.ledger.anchor import Mark, furthest, new_anchor, sealed
from sulq.ledger.book import Files, behind, opened, remember
from sulq.ledger.chain import canonical
from sulq.ledger.events import recovered
from sulq.ledger.history import History
from sulq.ledger.keys import Key, key_at, replace_key
from sulq.ledger.places import is_shared, place_name, read_place
from sulq.ledger.postgres import PostgresStore
from sulq.ledger.receipts import Receipt, check_signature, read_receipt
from sulq.ledger.sqlite import SqliteStore
from sulq.ledger.state import Hold, named, private_directory, read_private
from sulq.ledger.store import Store

PRICED = ("table", "analyst", "charges", "share")
PAID = (*PRICED, "origin", "digest", "noise")


@dataclass(frozen=True, slots=True)
class Recovery:
    """What a recovery found and did."""

    ledger: str
    lost: int  # events that are proved to have existed and are gone
    proved: int  # how many of them receipts account for
    burnt: bool  # everything now counts as spent: some lost price is unknown
    new_key: bool
    anchor_missing: bool = False  # then a loss can neither be shown nor excluded


def recover(
    path: str | Path,
    receipts: Iterable[str] = (),
    *,
    wait: float = 5.0,
    shared: bool | None = None,
) -> Recovery:
    """Record a recovery. It only ever adds to what is spent.

    Lost events whose prices no receipt tells could have spent everything: then everything counts
    as spent. Questions without an answer are closed: theirs may have been released (G.3.5).
    `shared` is for a copy of a ledger that replicas share.
    """
    if opened(path) is not None:
        raise Refused(f"the ledger {path} is open in this process; close it first")
    if not is_shared(path) and not Path(place_name(path)).is_file():
        raise Refused(f"there is no ledger at {path}; restore a backup of it first")
    with _held(path, wait) as (home, store, history):
        files, ledger = Files(history.ledger), history.ledger
        present = key_at(files.key)
        publics = [*([present.public] if present else []), *history.publics]
        shown = [_verified(text, ledger, publics) for text in receipts]
        anchor = read_private(files.anchor)
        mark = furthest(anchor or b"", ledger, publics)
        genuine = history.sealed_by(_sealers(present, anchor, mark, history))
        found = _found(store, history, shown, mark)
        # An anchor that cannot be read may have seen anything.
        burn = found.burn or not genuine or (anchor is not None and mark is None)
        missing = found.last - history.mark.seq
        # Of a shared ledger another replica may have seen more: nobody knows where it ended.
        burn = burn or ((is_shared(path) if shared is None else shared) and missing > 0)
        key = present if present and present.public == history.public else None
        # Only an anchor of today's key: one from before it leaves the ledger closed.
        current = furthest(anchor or b"", ledger, [history.public])
        if key and current and not (burn or missing or behind(current, store, history)):
            return Recovery(ledger, 0, 0, burnt=False, new_key=False)
        fresh = key is None
        key = key or replace_key(files.key)
        lost, told = ([], {}) if burn else (found.lost, found.told)
        body = recovered(key.public, burn=burn, genuine=genuine, lost=lost, told=told)
        row = history.add(body | {"at": int(time.time())}, seq=found.last + 1)
        store.append([row._replace(seal=sealed(ledger, key, history.mark))])
        new_anchor(files.anchor, ledger, key, history.mark, replace=True)
        remember(home, ledger)
        return Recovery(ledger, missing, len(lost), burn, fresh, anchor is None)


def _sealers(
    present: Key | None, anchor: bytes | None, mark: Mark | None, history: History
) -> list[str]:
    """Whose seal proves the chain: the key in the state directory, and the one that signed the
    anchor there. The chain's own word counts only where both are lost."""
    found = [present.public] if present else []
    if mark is not None:
        content = anchor or b""
        found += [
            public
            for public in history.publics
            if furthest(content, history.ledger, [public]) == mark
        ]
    return found or ([history.public] if anchor is None else [])


@contextmanager
def _held(path: str | Path, wait: float) -> Iterator[tuple[Path, Store, History]]:
    deadline, where = time.monotonic() + wait, place_name(path)
    home = private_directory("paths", named(where))
    holds = [Hold(home / "holder", where, deadline)]
    try:
        store: Store
        if is_shared(path):
            store = PostgresStore(read_place(str(path)))
        else:
            holds.append(Hold(Path(where), where, deadline, create=False, note=False))
            store = SqliteStore(where, wait)
        try:
            history = History()
            history.take(store.rows())
            if isinstance(store, PostgresStore):  # nobody writes until we have
                rows = store.begin(history.mark.seq)
                history.take(rows[bool(history.ledger) :])
            if not history.ledger:
                raise Refused(f"the ledger {where} is empty; restore a backup of it first")
            known = (read_private(home / "ledger") or b"").decode("ascii", "replace")
            if known not in ("", history.ledger):
                raise Refused(
                    f"{where} is not the ledger that was there before; restore a backup of that one"
                )
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


def _verified(text: str, ledger: str, publics: list[str]) -> Receipt:
    receipt = read_receipt(text)
    check_signature(receipt, publics)
    if receipt.body["ledger"] != ledger:
        raise Refused(f"receipt {receipt.seq} is of another ledger")
    return receipt


@dataclass(frozen=True, slots=True)
class Found:
    """What receipts tell beyond the chain."""

    lost: list[dict[str, Any]]  # prices of events that are gone
    told: dict[int, str]  # and what is said of their numbers
    burn: bool  # an event may be gone whose price nobody tells
    last: int  # the last number ever used


def _claims(body: Mapping[str, Any]) -> dict[int, str]:
    """What a receipt says of its two events: who paid what for what; the link of the answer."""
    paid = canonical({name: body[name] for name in PAID})
    return {body["seq"]: paid, body["answer"]: str(body["answer_link"])}


def _found(store: Store, history: History, receipts: list[Receipt], mark: Mark | None) -> Found:
    known, burn = history.mark.seq, False
    claims: dict[int, str] = {}
    lost: dict[int, dict[str, Any]] = {}
    for receipt in receipts:
        body = receipt.body
        for number, claim in _claims(body).items():
            burn |= claims.setdefault(number, claim) != claim  # two histories
        if body["seq"] > known:
            table = history.tables.get(body["table"])
            burn |= table is None or table.header.version != body["version"]
            burn |= table is None or body["analyst"] not in table.budgets.shares
            burn |= "under assumptions" in body["noise"]  # it divided every cap
            lost[body["seq"]] = {name: body[name] for name in PRICED}
    burn |= not all(_agrees(store, history, *said) for said in claims.items() if said[0] <= known)
    told = {number: claim for number, claim in claims.items() if number > known}
    seen = mark.seq if mark is not None else 0
    if mark is not None and mark.seq <= known and not any(mark.seq in gap for gap in history.gaps):
        burn |= behind(mark, store, history)
    burn |= any(number > seen for number in told)  # the anchor is lost or was put back
    if mark is not None and (claim := told.get(seen, "{")) and not claim.startswith("{"):
        burn |= claim != mark.hash.hex()
    last = max(known, seen, *told) if told else max(known, seen)
    burn |= told.keys() != set(range(known + 1, last + 1))
    return Found(list(lost.values()), told, burn, last)


def _agrees(store: Store, history: History, number: int, claim: str) -> bool:
    """True if the chain, or an earlier recovery, says the same of that number."""
    if any(number in gap for gap in history.gaps):
        burnt = any(number in gap for gap in history.burnt)
        return burnt or history.told.get(number) == claim
    row = store.row(number)
    if not claim.startswith("{"):
        return row.hash.hex() == claim
    said, body = json.loads(claim), json.loads(row.body)
    if body["kind"] in ("charge", "release"):
        body |= {"origin": number}
    elif body["kind"] == "repeat":
        origin = json.loads(store.row(body["entry"]).body)
        body |= {"origin": body["entry"], "charges": []}
        body |= {name: origin[name] for name in ("digest", "noise")}
    return all(body.get(name) == said[name] for name in PAID)
