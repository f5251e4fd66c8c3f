"""What a caller of the ledger hands in and gets back, and the events of its chain.

Each event is one frozen class. `to_body` gives the JSON object that is stored, `from_body` reads it
back; large integers are decimal text, and `table` names the table. What a kind and its fields mean
must not change: older chains are read by the same classes. The ledger adds `at`, the time of
writing, which is for display only, and `salt`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Any, ClassVar, NamedTuple, Self

from sulq.errors import InvalidQuery, Refused
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.ledger.accounts import (
    AccountCharge,
    from_json,
    loss_from_json,
    loss_to_json,
    to_json,
)
from sulq.kernel.ledger.header import Amendment, Outside, TableHeader, budget_from
from sulq.kernel.ledger.signing import Receipt
from sulq.kernel.ledger.stores.store import FORMAT


class ChargeRequest(NamedTuple):
    """A priced question: canonical text, its hash, the noise, and who pays what."""

    question: str
    digest: str
    noise: str
    parts: tuple[AccountCharge, ...]
    share: Loss
    analyst: str
    key: str | None
    release: bool = False  # under assumptions: the accounts pay by their caps, once
    reservation: int | None = None  # which pays for it
    sources: tuple[int, ...] = ()  # earlier answers that a draw is to be added to

    @property
    def name(self) -> tuple[str, str]:
        return self.digest, self.noise


class PricedRequest(NamedTuple):
    """One question of a batch, and what it costs: as `Ledger.charge` takes it."""

    question: str
    digest: str
    noise: str
    charges: Mapping[str, Loss]
    share: Loss
    sources: tuple[int, ...] = ()  # earlier answers that its draw is to be added to


@dataclass(frozen=True, slots=True)
class Charge:
    """A question that is paid for, as one analyst has it; answered or still to be computed."""

    ledger: str
    seq: int
    table: str
    analyst: str
    key: str | None
    question: str
    digest: str
    noise: str
    charged: Mapping[str, Loss]  # what this call charged; empty for a repeat
    share_charged: Loss
    answered: bool = False
    values: tuple[int, ...] | None = None
    receipt: Receipt | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """An analyst's share after a grant."""

    seq: int
    analyst: str
    granted: Loss
    spent: Loss


# The events of a chain.

Body = dict[str, Any]
Codec = tuple[Callable[[Any], Any], Callable[[Any], Any]]

_PLAIN: Codec = (lambda value: value, lambda value: value)
_LOSS: Codec = (loss_to_json, loss_from_json)
_JSON: dict[str, Codec] = {
    "charges": (to_json, from_json),
    "share": _LOSS,
    "amount": _LOSS,
    "credits": _LOSS,
    "divisor": (str, int),
    "budget": (str, lambda steps: budget_from({"budget": steps})),
    "menu": (list, lambda menu: tuple(tuple(path) for path in menu)),
    "questions": (list, lambda found: tuple((d, n, tuple(added)) for d, n, added in found)),
    "facts": (dict, dict),
    "lost": (
        lambda lost: [one.to_body() for one in lost],
        lambda lost: tuple(LostCharge.from_body(one) for one in lost),
    ),
    "told": (
        lambda told: {str(number): claim for number, claim in told.items()},
        lambda told: {int(number): claim for number, claim in told.items()},
    ),
}
"""How a field is written as JSON, and read back; one that is not here is JSON already."""


class StoredFields:
    """A frozen dataclass that is stored field by field, each under its own name.

    A field with a default may be absent, and is left out where it is None. `at` is only read.
    """

    __slots__ = ()
    kind: ClassVar[str] = ""

    def to_body(self) -> Body:
        made: Any = type(self)
        body: Body = {"kind": self.kind} if self.kind else {}
        for name, (write, _), needed in _fields(made):
            value = getattr(self, name)
            if name != "at" and (needed or value is not None):
                body[name] = write(value)
        return body

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Self:
        make: Any = cls
        found: Self = make(
            **{
                name: read(body[name])
                for name, (_, read), needed in _fields(make)
                if needed or name in body
            }
        )
        return found


@cache
def _fields(made: Any) -> tuple[tuple[str, Codec, bool], ...]:
    return tuple(
        (found.name, _JSON.get(found.name, _PLAIN), found.default is MISSING)
        for found in fields(made)
    )


@dataclass(frozen=True, slots=True)
class LedgerEvent:
    """The first event: a new ledger."""

    kind: ClassVar[str] = "ledger"
    table: ClassVar[None] = None
    ledger: str
    public_key: str

    def to_body(self) -> Body:
        return {
            "kind": self.kind,
            "format": FORMAT,
            "ledger": self.ledger,
            "public_key": self.public_key,
        }

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Self:
        if body["format"] > FORMAT:
            raise Refused(
                f"the ledger has format {body['format']}, this sulq reads {FORMAT}; "
                "use a newer sulq"
            )
        return cls(body["ledger"], body["public_key"])


@dataclass(frozen=True, slots=True)
class PublishEvent:
    """A table is published. `stamp`: what replicas compare of its content."""

    kind: ClassVar[str] = "table"
    header: TableHeader
    stamp: str | None = None

    @property
    def table(self) -> str:
        return self.header.name

    def to_body(self) -> Body:
        return self.header.to_body() | _unless_none(stamp=self.stamp)

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Self:
        return cls(TableHeader.from_body(body), body.get("stamp"))


@dataclass(frozen=True, slots=True)
class RepairEvent:
    """A table that was never used gets another header, on the same rows."""

    kind: ClassVar[str] = "repair"
    header: TableHeader
    reason: str
    at: int = 0

    @property
    def table(self) -> str:
        return self.header.name

    def to_body(self) -> Body:
        return self.header.to_body() | {"kind": self.kind, "reason": self.reason}

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Self:
        return cls(TableHeader.from_body(body), body["reason"], body.get("at", 0))


@dataclass(frozen=True, slots=True)
class WithdrawEvent(StoredFields):
    """The last event of a table that was never used; its name and data are free again."""

    kind: ClassVar[str] = "withdraw"
    table: str
    reason: str
    at: int = 0


@dataclass(frozen=True, slots=True)
class ChargeEvent(StoredFields):
    """A question is paid for, and executing from here on."""

    kind: ClassVar[str] = "charge"
    table: str
    analyst: str
    key: str | None
    question: str
    digest: str
    noise: str
    charges: tuple[AccountCharge, ...]
    share: Loss
    reservation: int | None = None

    @classmethod
    def of(cls, table: str, ask: ChargeRequest) -> Self:
        named = (ask.question, ask.digest, ask.noise, ask.parts, ask.share)
        return cls(table, ask.analyst, ask.key, *named, ask.reservation)


@dataclass(frozen=True, slots=True)
class ReleaseEvent(ChargeEvent):
    """A charge for a release under assumptions, which pays by what later answers may cost. M.9"""

    kind: ClassVar[str] = "release"


@dataclass(frozen=True, slots=True)
class DeclareEvent(StoredFields):
    """What may be released under assumptions, fixed before anything was answered. S1.14"""

    kind: ClassVar[str] = "declare"
    table: str
    menu: tuple[tuple[str, ...], ...]
    divisor: int
    terms: str


@dataclass(frozen=True, slots=True)
class AnswerEvent(StoredFields):
    """The answer of a charge; `values` is the hash of the noisy integers, stored beside."""

    kind: ClassVar[str] = "answer"
    table: str
    entry: int
    values: str


@dataclass(frozen=True, slots=True)
class RepeatEvent(StoredFields):
    """An analyst got what was charged before; only the analyst's own share pays."""

    kind: ClassVar[str] = "repeat"
    table: str
    entry: int
    analyst: str
    key: str | None
    share: Loss
    reservation: int | None = None


@dataclass(frozen=True, slots=True)
class RetryEvent(StoredFields):
    """Another attempt, under a known key, at a charge that was never answered."""

    kind: ClassVar[str] = "retry"
    table: str
    entry: int
    analyst: str
    key: str


@dataclass(frozen=True, slots=True)
class PlanEvent(StoredFields):
    """An attempt at a whole batch under one key; its charges follow, or stand already."""

    kind: ClassVar[str] = "plan"
    table: str
    analyst: str
    key: str
    questions: tuple[tuple[str, str, tuple[int, ...]], ...]  # digest, noise, what it is added to

    @property
    def names(self) -> tuple[tuple[str, str], ...]:
        return tuple((digest, noise) for digest, noise, _ in self.questions)


@dataclass(frozen=True, slots=True)
class ReserveEvent(StoredFields):
    """Credits are set aside until a `return` names this event; `replica`: by which of several."""

    kind: ClassVar[str] = "reserve"
    table: str
    analyst: str
    amount: Loss
    replica: int | None = None
    at: int = 0


@dataclass(frozen=True, slots=True)
class ReturnEvent(StoredFields):
    """A reservation has ended; `void`: it was found open when the ledger was opened."""

    kind: ClassVar[str] = "return"
    table: str
    reservation: int
    void: bool


@dataclass(frozen=True, slots=True)
class GrantEvent(StoredFields):
    """An analyst's share grows."""

    kind: ClassVar[str] = "grant"
    table: str
    analyst: str
    credits: Loss


@dataclass(frozen=True, slots=True)
class RevokeEvent(StoredFields):
    """What is unspent of an analyst's grants goes back; the next grant ends this."""

    kind: ClassVar[str] = "revoke"
    table: str
    analyst: str
    reason: str
    at: int = 0


@dataclass(frozen=True, slots=True)
class AmendEvent:
    """The table's facts and cap change."""

    kind: ClassVar[str] = "amend"
    table: str
    amendment: Amendment
    at: int = 0

    def to_body(self) -> Body:
        return self.amendment.to_body(self.table)

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Self:
        return cls(body["table"], Amendment.from_body(body), body.get("at", 0))


@dataclass(frozen=True, slots=True)
class VersionEvent(StoredFields):
    """New rows under a new random id; `stamp`: what replicas compare of them."""

    kind: ClassVar[str] = "version"
    table: str
    version: str
    facts: Mapping[str, str]
    reason: str
    budget: int | None = None  # credits in steps that this version may spend
    stamp: str | None = None
    at: int = 0


@dataclass(frozen=True, slots=True)
class OutsideEvent:
    """A release made elsewhere is booked; `joint` says what it cost the table's population."""

    kind: ClassVar[str] = "outside"
    table: str
    outside: Outside
    joint: Outside | None = None

    def to_body(self) -> Body:
        joint = None if self.joint is None else self.joint.to_body(self.table)
        return self.outside.to_body(self.table) | _unless_none(joint=joint)

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Self:
        joint = Outside.from_body(body["joint"]) if "joint" in body else None
        return cls(body["table"], Outside.from_body(body), joint)


@dataclass(frozen=True, slots=True)
class CloseEvent(StoredFields):
    """The last event of a table."""

    kind: ClassVar[str] = "close"
    table: str
    reason: str
    at: int = 0


@dataclass(frozen=True, slots=True)
class LostCharge(StoredFields):
    """The proved price of a charge or repeat whose event is gone."""

    table: str
    analyst: str
    charges: tuple[AccountCharge, ...]
    share: Loss


@dataclass(frozen=True, slots=True)
class RecoverEvent(StoredFields):
    """The ledger was recovered after a loss of events.

    `lost` are proved prices of events that are gone, `told` what receipts say of their numbers.
    `burn` counts everything as spent. Not `genuine`: its key did not seal the chain before.
    """

    kind: ClassVar[str] = "recover"
    table: ClassVar[None] = None
    public_key: str
    burn: bool
    genuine: bool
    lost: tuple[LostCharge, ...]
    told: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class UnknownEvent:
    """An event of a kind that only a newer version writes."""

    kind: str
    table: str

    def to_body(self) -> Body:
        raise TypeError("an event of an unknown kind is never written")


Event = (
    LedgerEvent
    | PublishEvent
    | RepairEvent
    | WithdrawEvent
    | ChargeEvent
    | DeclareEvent
    | AnswerEvent
    | RepeatEvent
    | RetryEvent
    | PlanEvent
    | ReserveEvent
    | ReturnEvent
    | GrantEvent
    | RevokeEvent
    | AmendEvent
    | VersionEvent
    | OutsideEvent
    | CloseEvent
    | RecoverEvent
    | UnknownEvent
)
_KINDS = {
    event.kind: event
    for event in (
        *(LedgerEvent, PublishEvent, RepairEvent, WithdrawEvent, ChargeEvent, ReleaseEvent),
        *(DeclareEvent, AnswerEvent, RepeatEvent, RetryEvent, PlanEvent, ReserveEvent),
        *(ReturnEvent, GrantEvent, RevokeEvent, AmendEvent, VersionEvent, OutsideEvent),
        *(CloseEvent, RecoverEvent),
    )
}
MALFORMED = (
    ArithmeticError,
    AttributeError,
    InvalidQuery,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What `event_from`, or the state that an event is applied to, raises for a malformed body."""


def event_from(body: Mapping[str, Any]) -> Event:
    """Return the event of a stored body; raise one of `MALFORMED` where there is none."""
    made = _KINDS.get(body["kind"])
    if made is None:
        return UnknownEvent(body["kind"], body.get("table", ""))
    return made.from_body(body)


def read_event(text: str) -> Event:
    """Return the event of a stored body, as the text that is hashed."""
    return event_from(json.loads(text))


def read_charge(text: str) -> ChargeEvent:
    """Return the charge that a stored body is; `TypeError` for another event."""
    event = read_event(text)
    if not isinstance(event, ChargeEvent):
        raise TypeError(f"a charge is wanted, not {event.kind!r}")
    return event


def _unless_none(**fields: Any) -> Body:
    """Fields that are named only where they say something: older bodies stay as they are."""
    return {name: value for name, value in fields.items() if value is not None}
