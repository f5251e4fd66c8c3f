"""Opening a closed ledger again, at the most that ledger, anchor, journal or receipts prove spent.

`recover` works on the ledger in its place, `restore` (backup.py) on a copy that is put there.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sulq.errors import Refused
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.ledger.accounts import NOTHING, minus_clamped
from sulq.kernel.ledger.budget import OWNER
from sulq.kernel.ledger.events import LostCharge, RecoverEvent
from sulq.kernel.ledger.file import Files, behind, is_own, note_born, opened, path_home, remember
from sulq.kernel.ledger.inspect import Statement, copy_ledger, statement
from sulq.kernel.ledger.receipts_journal import (
    MARK,
    PAID,
    PLAIN,
    JournalAccount,
    ReceiptsJournal,
    claim_of,
    held_journal,
    noted,
    read_journal,
    remember_journal,
)
from sulq.kernel.ledger.register import note_published
from sulq.kernel.ledger.signing import (
    ChainHead,
    LedgerKey,
    Receipt,
    canonical,
    check_signature,
    key_at,
    latest_head,
    new_anchor,
    passing_signer,
    read_receipt,
    replace_key,
    sign_head,
)
from sulq.kernel.ledger.state import ChainState
from sulq.kernel.ledger.state_dir import (
    Hold,
    is_shared,
    location_name,
    named,
    private_directory,
    read_place,
    read_private,
)
from sulq.kernel.ledger.stores.postgres import PostgresStore
from sulq.kernel.ledger.stores.sqlite import SqliteStore
from sulq.kernel.ledger.stores.store import Row, Store

NO_WORD = (
    "nothing newer than this copy says how far the ledger had come: neither a receipts journal nor"
    " an anchor that this machine wrote itself"
)
UNPRICED = "the price of some lost event is unknown"
TWO_STORIES = "what is shown contradicts the ledger: there are two histories of it"
NOT_SEALED = "the ledger was not written with the key of this state directory"
NO_ANCHOR = "the anchor in the state directory cannot be read"
NO_JOURNAL = "no line of the receipts journal can be verified"
OTHER_KEY = "the receipts journal has later marks of a key that is not known here"
OTHERS = "other replicas may have seen more than this one"


@dataclass(frozen=True, slots=True)
class Recovery:
    """What a recovery found and did."""

    ledger: str
    lost: int  # events that are proved to have existed and are gone
    proved: int  # how many of them receipts, or the journal, account for by a price
    burnt: bool  # everything now counts as spent: some lost price is unknown
    new_key: bool
    anchor_missing: bool = False  # then a loss can neither be shown nor excluded
    reasons: tuple[str, ...] = ()  # why everything counts as spent
    lost_kinds: tuple[str, ...] = ()  # what the owner did since, to be done again: grant, revoke
    gone: tuple[str, ...] = ()  # tables that were published and asked since: never published anew


def recover(
    path: str | Path,
    receipts: Iterable[str] = (),
    *,
    wait: float = 5.0,
    shared: bool | None = None,
    journal: str | Path | None = None,
    strict: bool = False,
) -> Recovery:
    """Record a recovery. It only ever adds to what is spent.

    Lost events whose prices neither a receipt nor the receipts journal tells could have spent
    everything: then everything counts as spent. Questions without an answer are closed: theirs may
    have been released (G.3.5). `shared` is for a copy of a ledger that replicas share; `journal` is
    the receipts journal, where the state directory does not know it; `strict`: the chain is a copy,
    so what may be a copied anchor does not count.
    """
    if opened(path) is not None:
        raise Refused(f"the ledger {path} is open in this process; close it first")
    if not is_shared(path) and not Path(location_name(path)).is_file():
        raise Refused(f"there is no ledger at {path}; restore a backup of it first")
    replicas = is_shared(path) if shared is None else shared
    with _held(path, wait) as (home, store, history):
        files = Files(history.ledger)
        where = None if journal is None else Path(location_name(journal))
        with Evidence.held(history, files, receipts, where, wait, strict=strict) as evidence:
            step = assess(store, history, evidence, replicas=replicas)
            if step.event is None:
                return step.told
            key = evidence.present if step.keeps_key else replace_key(files.key)
            assert key is not None  # noqa: S101
            note_gone(history.ledger, step.gone)
            book_recovery(store, history, step, key)
            evidence.take_over(store, history, key, files)
            anchor_here(files, history, key)
            remember(home, history.ledger)
            return step.told


@dataclass(frozen=True, slots=True)
class Tried:
    """What a recovery or a restore did, or would do, to each table."""

    found: Recovery
    before: Mapping[str, Statement]
    after: Mapping[str, Statement]


def tried(
    path: str | Path, receipts: Iterable[str] = (), *, journal: str | Path | None = None
) -> Tried:
    """What `recover` would do; changes nothing, and works while another process has the ledger."""
    with tempfile.TemporaryDirectory(prefix="sulq-") as private:  # mode 0700
        copy = Path(private) / "ledger"
        if not is_shared(path) and not Path(location_name(path)).is_file():
            raise Refused(f"there is no ledger at {path}; restore a backup of it first")
        copy_ledger(path, copy)
        store = SqliteStore(copy)
        try:
            history = ChainState()
            history.take(store.rows())
            if not history.ledger:
                raise Refused(f"the ledger {location_name(path)} is empty; restore a backup of it")
            check_place(path_home(location_name(path)), history.ledger, location_name(path))
            where = None if journal is None else Path(location_name(journal))
            files, before = Files(history.ledger), statements(history)
            with Evidence.held(history, files, receipts, where, None) as evidence:
                step = assess(store, history, evidence, replicas=is_shared(path))
            if step.event is not None:
                key = evidence.present if step.keeps_key else None
                book_recovery(store, history, step, key or passing_signer())
            return Tried(step.told, before, statements(history))
        finally:
            store.close(tidy=False)


def statements(history: ChainState) -> dict[str, Statement]:
    """Each table as it is now."""
    return {name: statement(history, name) for name in history.tables}


@dataclass(slots=True)
class Evidence:
    """What is known of a ledger beside its chain: key, anchor, journal and receipts."""

    present: LedgerKey | None  # the key in the state directory, or of a backup
    anchor: bytes | None
    own: bool  # this machine wrote the anchor: it is no copy
    receipts: list[str]
    journal: JournalAccount | None
    file: ReceiptsJournal | None = None  # the journal, locked
    strict: bool = False  # the chain is a copy: only what this machine or the journal wrote counts

    @classmethod
    @contextmanager
    def held(
        cls,
        history: ChainState,
        files: Files,
        receipts: Iterable[str],
        journal: Path | None,
        wait: float | None,
        *,
        key: LedgerKey | None = None,
        strict: bool = False,
    ) -> Iterator[Evidence]:
        """As it is now; nobody writes the journal meanwhile, if there is a time to `wait`."""
        present = key_at(files.key) or key
        publics = [*([present.public] if present else []), *history.publics]
        shown = [line for line in receipts if not line.lstrip().startswith(MARK.decode())]
        where, file, account = _journal(journal, noted(files.journal)), None, None
        there = where is not None and where.exists()
        if where is not None and there and wait is not None:
            deadline = time.monotonic() + wait
            file = held_journal(where, history.ledger, present, deadline, create=False)
        try:
            if where is not None and there and where.stat().st_size:
                account = read_journal(where, history.ledger, publics)
            anchor = read_private(files.anchor)
            yield cls(present, anchor, is_own(files), shown, account, file, strict)
        finally:
            if file is not None:
                file.close()

    def take_over(self, store: Store, history: ChainState, key: LedgerKey, files: Files) -> None:
        """Write the recovery into the journal: whoever wrote it before is closed by that."""
        if self.file is None:
            return
        self.file.sign_with(key)
        if self.journal is None:
            self.file.begin(history.mark)
        elif self.journal.size and self.journal.unknown < history.mark.seq:
            self.file.take_over(self.journal.size, self.journal.last)
            self.file.catch_up(store, history)
        else:
            return  # nothing in it verifies, or its end is somebody else's: it stays as it is
        remember_journal(files.journal, self.file.path)


def _journal(given: Path | None, known: Path | None) -> Path | None:
    """Which journal tells: the one that the state directory knows, whatever the policy names now;
    else the one that is given. `Refused` where both are there and differ."""
    if given is None or known is None or not known.exists():
        return given or known
    if not given.exists() or given.stat().st_size == 0 or given.samefile(known):
        return known
    raise Refused(
        f"this ledger's receipts journal is {known}, and {given} is named: name the first one until"
        " the ledger is open again, or move away whichever is not its journal"
    )


@dataclass(frozen=True, slots=True)
class RecoveryStep:
    """What a recovery would write; `event` None: nothing is lost and nothing is to be done."""

    told: Recovery
    event: RecoverEvent | None
    seq: int
    keeps_key: bool
    gone: tuple[str, ...] = ()  # tables that were asked, and of which the chain has nothing


def assess(
    store: Store, history: ChainState, evidence: Evidence, *, replicas: bool
) -> RecoveryStep:
    """Decide what counts as spent; changes nothing."""
    ledger, present = history.ledger, evidence.present
    publics = [*([present.public] if present else []), *history.publics]
    shown = [_verified(text, ledger, publics) for text in evidence.receipts]
    mark = latest_head(evidence.anchor or b"", ledger, publics)
    genuine = history.sealed_by(_sealers(present, evidence.anchor, mark, history))
    found = _found(store, history, shown, mark, evidence)
    why = found.why
    if not genuine:
        why[NOT_SEALED] = True
    if evidence.anchor is not None and mark is None:  # it may have seen anything
        why[NO_ANCHOR] = True
    missing = found.last - history.mark.seq
    if replicas and missing:  # nobody knows where the ledger of several ended
        why[OTHERS] = True
    burn = bool(why)
    key = present if present and present.public == history.public else None
    # Only an anchor of today's key: one from before it leaves the ledger closed.
    current = latest_head(evidence.anchor or b"", ledger, [history.public])
    if evidence.strict and not evidence.own:
        current = None
    ahead = evidence.journal is not None and evidence.journal.last.seq > history.mark.seq
    at_rest = current is not None and not behind(current, store, history)
    if key and at_rest and not (burn or missing or ahead or _taken_over(history, evidence)):
        return RecoveryStep(
            Recovery(ledger, 0, 0, burnt=False, new_key=False), None, 0, keeps_key=True
        )
    lost, told = ((), {}) if burn else (tuple(found.lost), found.told)
    public = key.public if key is not None else ""
    event = RecoverEvent(public, burn, genuine, lost, told)
    said = Recovery(
        ledger,
        missing,
        len(lost),
        burn,
        key is None,
        evidence.anchor is None,
        tuple(why),
        tuple(found.kinds),
        found.gone,
    )
    return RecoveryStep(said, event, found.last + 1, keeps_key=key is not None, gone=found.gone)


def book_recovery(store: Store, history: ChainState, step: RecoveryStep, key: LedgerKey) -> None:
    """Add the event to the chain, durable when this returns."""
    assert step.event is not None  # noqa: S101
    event = replace(step.event, public_key=key.public)
    row = history.add(event.to_body() | {"at": int(time.time())}, seq=step.seq)
    store.append([row._replace(seal=sign_head(history.ledger, key, history.mark))])


def note_gone(ledger: str, tables: Iterable[str]) -> None:
    """Remember that these were published: their budgets are not to be had again by that name."""
    for name in tables:
        note_published(ledger, name)


def anchor_here(files: Files, history: ChainState, key: LedgerKey) -> None:
    """A new anchor at the end of the chain, written by this machine."""
    new_anchor(files.anchor, history.ledger, key, history.mark, replace=True)
    note_born(files)


def _taken_over(history: ChainState, evidence: Evidence) -> bool:
    """True if the journal's last mark lies where an earlier recovery found events missing: a crash
    came before the journal was told of that recovery."""
    last = None if evidence.journal is None else evidence.journal.last.seq
    return any(last in gap for gap in history.gaps)


def _sealers(
    present: LedgerKey | None, anchor: bytes | None, mark: ChainHead | None, history: ChainState
) -> list[str]:
    """Whose seal proves the chain: the key in the state directory, and the one that signed the
    anchor there. The chain's own word counts only where both are lost."""
    found = [present.public] if present else []
    if mark is not None:
        content = anchor or b""
        found += [
            public
            for public in history.publics
            if latest_head(content, history.ledger, [public]) == mark
        ]
    return found or ([history.public] if anchor is None else [])


@contextmanager
def _held(path: str | Path, wait: float) -> Iterator[tuple[Path, Store, ChainState]]:
    deadline, where = time.monotonic() + wait, location_name(path)
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
            history = ChainState()
            history.take(store.rows())
            if isinstance(store, PostgresStore):  # nobody writes until we have
                rows = store.begin(history.mark.seq)
                history.take(rows[bool(history.ledger) :])
            if not history.ledger:
                raise Refused(f"the ledger {where} is empty; restore a backup of it first")
            check_place(home, history.ledger, where)
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


def check_place(home: Path, ledger: str, where: str) -> None:
    """`Refused` if another ledger is known to live at this place."""
    known = (read_private(home / "ledger") or b"").decode("ascii", "replace")
    if known not in ("", ledger):
        raise Refused(
            f"{where} is not the ledger that was there before; restore a backup of that one"
        )


def _verified(text: str, ledger: str, publics: list[str]) -> Receipt:
    receipt = read_receipt(text)
    check_signature(receipt, publics)
    if receipt.body["ledger"] != ledger:
        raise Refused(f"receipt {receipt.seq} is of another ledger")
    return receipt


@dataclass(slots=True)
class RecoveredState:
    """What is told beyond the chain."""

    lost: list[LostCharge]  # prices of events that are gone
    told: dict[int, str]  # and what is said of their numbers
    last: int  # the last number ever used
    why: dict[str, bool] = field(default_factory=dict)  # an event may be gone whose price is not
    kinds: list[str] = field(default_factory=list)  # of them, those that an owner repeats
    gone: tuple[str, ...] = ()  # tables that somebody paid for, and that the chain does not have


def _claims(body: Mapping[str, Any]) -> dict[int, str]:
    """What a receipt says of its two events: who paid what for what; the link of the answer."""
    paid = canonical({name: body[name] for name in PAID})
    return {body["seq"]: paid, body["answer"]: str(body["answer_link"])}


def _found(
    store: Store,
    history: ChainState,
    receipts: list[Receipt],
    mark: ChainHead | None,
    evidence: Evidence,
) -> RecoveredState:
    known, journal = history.mark.seq, evidence.journal
    shown = [*receipts, *(journal.receipts if journal is not None else ())]
    told, contradicted = _told(store, history, shown, journal)
    lost, gone, unpriced = _payments(history, told)
    unpriced |= any(_is_unknown(history, receipt) for receipt in shown)
    found = RecoveredState(_payers(history, lost) if not unpriced else [], told, known, gone=gone)
    # How far the chain had come: by the anchor, unless it may be an old one; by the journal itself.
    seen = 0 if mark is None or (evidence.strict and not evidence.own) else mark.seq
    if journal is not None:
        contradicted |= _hear(journal, found, store, history, mark)
        seen = max(seen, journal.last.seq) if journal.live else seen
    if evidence.strict and seen < known:
        found.why[NO_WORD] = True
    if mark is not None:
        found.last = max(found.last, mark.seq)
        contradicted |= _is_behind(mark, store, history)
        claim = told.get(mark.seq, "{")
        contradicted |= not claim.startswith("{") and claim != mark.hash.hex()
    found.last = max(found.last, *told) if told else found.last
    unpriced |= any(number > seen for number in told)  # the anchor is lost or was put back
    unpriced |= told.keys() != set(range(known + 1, found.last + 1))
    if unpriced:
        found.why[UNPRICED] = True
    if contradicted:
        found.why[TWO_STORIES] = True
    return found


def _told(
    store: Store, history: ChainState, shown: list[Receipt], journal: JournalAccount | None
) -> tuple[dict[int, str], bool]:
    """What receipts and the journal say of numbers beyond the chain, and True if they contradict
    each other or the chain."""
    contradicted = False
    claims: dict[int, str] = {} if journal is None else dict(journal.claims)
    for receipt in shown:
        for number, claim in _claims(receipt.body).items():
            contradicted |= claims.setdefault(number, claim) != claim
    known = history.mark.seq
    within = [said for said in claims.items() if said[0] <= known]
    contradicted |= not all(_agrees(store, history, *said) for said in within)
    return {number: claim for number, claim in claims.items() if number > known}, contradicted


def _payments(
    history: ChainState, told: Mapping[int, str]
) -> tuple[list[LostCharge], tuple[str, ...], bool]:
    """The lost payments, the tables of them that are gone, and True if one has no known price."""
    lost, gone, unpriced = [], set[str](), False
    for _, claim in sorted(told.items()):
        if claim.startswith("{"):
            paid = json.loads(claim)
            table = history.tables.get(paid["table"])
            if table is None:
                gone.add(paid["table"])
            unpriced |= table is None or table.withdrawn is not None  # another of that name paid
            unpriced |= "under assumptions" in paid["noise"]  # it divided every cap
            lost.append(LostCharge.from_body(paid))
    return lost, tuple(sorted(gone)), unpriced


def _is_unknown(history: ChainState, receipt: Receipt) -> bool:
    """True for a receipt beyond the chain, of a table or version that the chain does not have."""
    body = receipt.body
    table = history.tables.get(body["table"])
    here = table is not None and table.header.version == body["version"]
    return body["seq"] > history.mark.seq and not here


def _is_behind(head: ChainHead, store: Store, history: ChainState) -> bool:
    """True if the chain reaches that far, and is another one there."""
    lost = any(head.seq in gap for gap in history.gaps)
    return head.seq <= history.mark.seq and not lost and behind(head, store, history)


def _hear(
    journal: JournalAccount,
    found: RecoveredState,
    store: Store,
    history: ChainState,
    mark: ChainHead | None,
) -> bool:
    """Add what the journal says; True if it contradicts the chain or the anchor."""
    known, end = history.mark.seq, journal.last
    if not journal.size:  # it may have seen anything
        found.why[NO_JOURNAL] = True
    if journal.unknown > known:  # so many events, and none can be read
        found.why[OTHER_KEY] = True
    kinds = {kind for number, kind in journal.kinds.items() if number > known}
    for kind in sorted(kinds - PLAIN):
        found.why[f"an event of kind {kind!r} is newer than this ledger"] = True
    found.kinds += sorted(kinds & {"grant", "revoke", "table"})
    found.last = max(found.last, end.seq)
    contradicted = _is_behind(end, store, history)
    if mark is not None and journal.ends:
        within = min(journal.ends) <= mark.seq <= end.seq
        contradicted |= within and journal.ends.get(mark.seq) != mark.hash
    return contradicted


def _payers(history: ChainState, lost: list[LostCharge]) -> list[LostCharge]:
    """Lost payments by somebody whose grant was lost as well are booked as the owner's: every
    account pays all the same."""
    left: dict[tuple[str, str], Loss] = {}
    booked = []
    for paid in lost:
        who = (paid.table, paid.analyst)
        share = history.tables[paid.table].budgets.shares.get(paid.analyst)
        known = share is not None and share.revoked is None
        if paid.analyst != OWNER:
            free = left.setdefault(who, share.left if share is not None and known else NOTHING)
            known = known and paid.share.within(free)
            left[who] = minus_clamped(free, paid.share) if known else free
        booked.append(paid if known else replace(paid, analyst=OWNER))
    return booked


def _agrees(store: Store, history: ChainState, number: int, claim: str) -> bool:
    """True if the chain, or an earlier recovery, says the same of that number."""
    if any(number in gap for gap in history.gaps):
        burnt = any(number in gap for gap in history.burnt)
        return burnt or history.told.get(number) == claim
    row: Row = store.row(number)
    return claim_of(row, store.row) == claim if claim.startswith("{") else row.hash.hex() == claim
