"""The chain of a table as the pages read it: each event once, prices and public facts only."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any
from weakref import WeakKeyDictionary

from sulq.database import Database
from sulq.ledger.charges import loss_from_json
from sulq.server.books import event_lines
from sulq.server.console.words import question_title

PAGE = 1_000
ASKED = ("charge", "repeat", "release")
CHANGES = ("table", "grant", "revoke", "amend", "outside", "close", "declare", "recover")
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
    title: str = ""
    reason: str = ""
    entry: int = 0

    @property
    def asked(self) -> bool:
        return self.kind in ASKED


@dataclass
class _Read:
    events: list[Event] = field(default_factory=list)
    answered: set[int] = field(default_factory=set)
    titles: dict[int, str] = field(default_factory=dict)
    seq: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


_read: WeakKeyDictionary[Database, _Read] = WeakKeyDictionary()
_starting = threading.Lock()


def history(database: Database) -> tuple[list[Event], set[int]]:
    """Every event so far, and the entries whose answer is stored. Only new ones are read."""
    with _starting:
        found = _read.setdefault(database, _Read())
    with found.lock:
        while lines := event_lines(database, None, found.seq, PAGE):
            for line in lines:
                event = _event(line)
                if event.title:
                    found.titles[event.seq] = event.title
                elif event.kind == "repeat":  # it names the entry whose answer it bought again
                    event = replace(event, title=found.titles.get(event.entry, ""))
                found.events.append(event)
                if event.kind == "answer":
                    found.answered.add(event.entry)
            found.seq = int(lines[-1]["seq"])
        return list(found.events), set(found.answered)


def _event(line: dict[str, Any]) -> Event:
    body = json.loads(line.get("body", "{}"))
    kind = str(line["kind"])
    amount = Fraction(line.get("credits_exact", 0))
    if kind == "grant":
        amount = loss_from_json(body["credits"]).credits_fraction
    elif kind in ("table", "amend"):
        amount = loss_from_json(body["cap"]).credits_fraction
    elif kind == "outside":
        amount = loss_from_json(body["loss"]).credits_fraction
    return Event(
        int(line["seq"]),
        int(line.get("at") or 0),
        kind,
        str(line["hash"]),
        str(line.get("analyst", "")),
        amount,
        Fraction(line.get("share_exact", 0)),
        asked_title(str(line["question"])) if "question" in line else "",
        str(body.get("reason", "")),
        int(body.get("entry", 0)),
    )


def asked_title(question: str) -> str:
    """A question as people say it; a learner's sums have no words of their own."""
    return LEARNING if question.startswith("{") else question_title(question)


def bought(title: str) -> str:
    """What sort of answer a question buys."""
    if title.startswith("Average"):
        return "Averages"
    if title == LEARNING:
        return "Learning (PCA, k-means, trees)"
    if "bands" in title or "BINS" in title:
        return "Histograms and percentiles"
    if title.startswith("Count"):
        return "Counts"
    return "Totals and other sums"


def change_text(event: Event, who: str) -> str:
    """A change in one line; `who` is the account as the reader may see it."""
    credits = f"{float(event.credits):,g}"
    match event.kind:
        case "table":
            return f"Table opened with {credits} credits"
        case "grant":
            return f"{credits} credits granted to {who}"
        case "revoke":
            return f"{who} revoked"
        case "amend":
            return f"Promise amended, {credits} credits in all"
        case "outside":
            return f"{credits} credits for a release made elsewhere"
        case "close":
            return "Table closed for good"
        case "declare":
            return "Exact release declared"
        case "recover":
            return "Ledger recovered; what was lost counts as spent"
    return event.kind


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
