"""The chain of a table as the pages read it: each event once, prices and public facts only."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from weakref import WeakKeyDictionary

from sulq.database import Database
from sulq.formatting import credits_word, ordinal
from sulq.kernel.ledger.accounts import from_json, loss_from_json
from sulq.kernel.ledger.signing import START, link
from sulq.kernel.ledger.stores.store import Row
from sulq.kernel.query.sql_text import kind_of, question_text
from sulq.server.console.labels import question_title, restated, statement_title

PAGE = 1_000
ASKED = ("charge", "repeat", "release")
CHANGES = (
    *("table", "grant", "revoke", "amend", "version", "outside", "close", "declare", "recover"),
    *("repair", "withdraw"),
)
LEARNING = "Learning step"
DAY = 86_400


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `credits` is what the dearest account paid, `share` what the asker's did."""

    seq: int
    at: int
    kind: str
    hash: str
    analyst: str = ""
    credits: Fraction = Fraction(0)
    share: Fraction = Fraction(0)
    question: str = ""
    reason: str = ""
    entry: int = 0
    noise: str = ""

    @property
    def asked(self) -> bool:
        return self.kind in ASKED

    @property
    def title(self) -> str:
        return asked_title(self.question) if self.question else ""


@dataclass
class Books:
    """What was read of a chain so far; every link was hashed again as it was read."""

    events: list[Event] = field(default_factory=list)
    answered: set[int] = field(default_factory=set)
    questions: dict[int, str] = field(default_factory=dict)
    hashes: dict[int, str] = field(default_factory=dict)
    head: bytes = START
    seq: int = 0
    broken: int = 0
    """The number of the first event that does not follow from the one before it; 0: none."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, row: Row, table: str) -> None:
        if row.hash != link(self.head, row.body) and not self.broken:
            self.broken = row.seq
        self.head, self.seq = row.hash, row.seq
        event = _event(row, table)
        if event.question:
            self.questions[event.seq] = event.question
        elif event.kind == "repeat":  # it names the entry whose answer it bought again
            event = replace(event, question=self.questions.get(event.entry, ""))
        elif event.kind == "answer":
            self.answered.add(event.entry)
        self.events.append(event)
        self.hashes[event.seq] = event.hash


_read: WeakKeyDictionary[Database, Books] = WeakKeyDictionary()
_starting = threading.Lock()


def books(database: Database) -> Books:
    """The chain as far as it has come; only what is new is read."""
    with _starting:
        found = _read.setdefault(database, Books())
    ledger, name = database.ledger, database.ledger.header.name
    with found.lock:
        while rows := ledger.rows(found.seq, PAGE):
            for row in rows:
                found.take(row, name)
    return found


def history(database: Database) -> tuple[list[Event], set[int]]:
    """Every event so far, and the entries whose answer is stored."""
    found = books(database)
    with found.lock:
        return list(found.events), set(found.answered)


def _event(row: Row, table: str) -> Event:
    body = json.loads(row.body)
    kind = str(body["kind"])
    if body.get("table", table) != table:
        return Event(row.seq, 0, "another table", row.hash.hex())
    paid = share = Fraction(0)
    if kind in ASKED:
        parts = from_json(body.get("charges", ()))
        paid = max((part.loss.credits_fraction for part in parts), default=Fraction(0))
        share = loss_from_json(body["share"]).credits_fraction
    elif kind == "grant":
        paid = loss_from_json(body["credits"]).credits_fraction
    elif kind in ("table", "amend", "repair"):
        paid = loss_from_json(body["cap"]).credits_fraction
    elif kind == "outside":
        paid = loss_from_json(body["loss"]).credits_fraction
    elif kind == "reserve":
        paid = loss_from_json(body["amount"]).credits_fraction
    return Event(
        row.seq,
        int(body.get("at") or 0),
        kind,
        row.hash.hex(),
        str(body.get("analyst", "")),
        paid,
        share,
        str(body.get("question", "")),
        str(body.get("reason", "")),
        int(body.get("entry", body.get("reservation", 0) if kind == "return" else 0)),
        str(body.get("noise", "")),
    )


@lru_cache(maxsize=50_000)
def asked_title(question: str) -> str:
    """A question as people say it; a learner's sums have no words of their own."""
    text = question_text(question)
    if text.startswith("{"):
        return LEARNING
    asked = restated(question, "t")
    return statement_title(asked, 64) if asked else question_title(text)


def bought(event: Event) -> str:
    """What sort of answer an event paid for, as the report counts it."""
    return kind_of(event.question, event.noise)


def change_text(event: Event, who: str) -> str:
    """A change in one line; `who` is the account as the reader may see it."""
    credits = credits_word(event.credits)
    match event.kind:
        case "table":
            return f"Table opened with {credits}"
        case "grant":
            return f"{credits} granted to {who}"
        case "revoke":
            return f"{who} revoked"
        case "amend":
            return f"Promise amended, {credits} in all"
        case "repair":
            return f"Changed before anything was asked, {credits} in all; all shares ended"
        case "withdraw":
            return "Withdrawn before anything was asked"
        case "version":
            return "New rows: another version of the data"
        case "outside":
            return f"{credits} for a release made elsewhere"
        case "close":
            return "Table closed for good"
        case "declare":
            return "Exact release declared"
        case "recover":
            return "Ledger recovered; what was lost counts as spent"
    return event.kind


def step_text(event: Event) -> str:
    """An event that neither charges nor changes anything for good, in one line."""
    match event.kind:
        case "ledger":
            return "Ledger made"
        case "retry":
            return f"Another attempt at {ordinal(event.entry)}"
        case "plan":
            return "Several questions asked as one; each follows"
        case "reserve":
            return f"{credits_word(event.credits)} set aside"
        case "return":
            return f"What was left of {ordinal(event.entry)} given back"
        case "another table":
            return "An entry of another table on this ledger"
        case "answer":
            return f"The answer to {ordinal(event.entry)}"
    return event.kind.capitalize()


def when_text(at: int, *, clock: bool = True) -> str:
    """ "15 Nov 09:41", by this server's clock."""
    if not at:
        return ""
    local = datetime.fromtimestamp(at, UTC).astimezone()
    return f"{local.day} {local:%b %H:%M}" if clock else f"{local.day} {local:%b}"


def day_text(at: float) -> str:
    """ "6 April", with the year where it is another one than now."""
    local = datetime.fromtimestamp(at, UTC).astimezone()
    said = f"{local.day} {local:%B}"
    return said if local.year == datetime.now(UTC).astimezone().year else f"{said} {local.year}"
