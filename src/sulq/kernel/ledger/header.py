"""What is fixed when a table is published."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sulq.errors import BudgetSpent, InvalidQuery, Refused
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.accounting.outside import Taken
from sulq.kernel.ledger.accounts import (
    NOTHING,
    TEXT,
    AccountCharge,
    check_loss,
    check_text,
    loss_from_json,
    loss_to_json,
    minus_clamped,
    rounded_up,
)

REASON = 1000
"""Characters of a reason."""


@dataclass(frozen=True, slots=True)
class Ended:
    """When and why somebody may ask no more, or a table was closed; `at` is for display only."""

    at: int  # seconds since 1970
    reason: str

    def __str__(self) -> str:
        said = f"{datetime.fromtimestamp(self.at, UTC):%Y-%m-%d %H:%M} UTC"
        return f"{said}: {self.reason}" if self.reason else said


@dataclass(frozen=True, slots=True)
class Amendment:
    """New facts and a new cap. What is spent stays spent: multiplied, and rounded up. G.1

    One old credit is `credits` new ones; a delta counts `delta` times. With `keeps` every stored
    answer means the same under the new facts; else none is found again.
    """

    facts: Mapping[str, str]
    cap: Loss
    credits: Fraction
    delta: Fraction
    keeps: bool
    reason: str = ""

    def __post_init__(self) -> None:
        check_loss("cap", self.cap)
        check_reason(self.reason)
        for fact in self.facts.values():
            check_text("fact", fact, TEXT)
        if self.credits <= 0 or self.delta < 1:
            raise InvalidQuery("an amendment never makes what is spent smaller")

    def to_body(self, table: str) -> dict[str, Any]:
        return {
            "kind": "amend",
            "table": table,
            "facts": dict(self.facts),
            "cap": loss_to_json(self.cap),
            "scale": [str(self.credits), str(self.delta)],
            "keeps": self.keeps,
            "reason": self.reason,
        }

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Amendment:
        credits, delta = (Fraction(factor) for factor in body["scale"])
        cap = loss_from_json(body["cap"])
        return cls(body["facts"], cap, credits, delta, bool(body["keeps"]), body["reason"])


@dataclass(frozen=True, slots=True)
class Amended:
    """What was true until one amendment."""

    seq: int  # of its event
    at: int
    reason: str
    facts: Mapping[str, str]
    cap: Loss


@dataclass(frozen=True, slots=True)
class Grown:
    """What was true until a table got new rows."""

    seq: int  # of the event
    at: int
    reason: str
    version: str
    facts: Mapping[str, str]
    spent: int = 0  # by the worst account, on this version alone, in steps of credits
    budget: int | None = None  # what it might have spent
    outside: int = 0  # booked meanwhile as released elsewhere

    def scaled(self, credits: Fraction) -> Grown:
        """In another currency: what was spent rounds up."""
        budget = None if self.budget is None else rounded_up(self.budget * credits)
        spent, outside = (rounded_up(steps * credits) for steps in (self.spent, self.outside))
        return replace(self, spent=spent, budget=budget, outside=outside)


@dataclass(frozen=True, slots=True)
class Outside:
    """A release made elsewhere about the same people, as it is booked here.

    `loss` is what every account pays; `stands` steps of its credits stand for what was `taken` out
    of the promise, the rest was lost as an answer loses it.
    """

    epsilon: Fraction | None  # as the owner stated it; None: in credits
    delta: Fraction
    loss: Loss
    stands: int
    taken: Taken
    reason: str
    seq: int = 0  # of its event
    at: int = 0

    def __post_init__(self) -> None:
        check_loss("outside loss", self.loss)
        check_reason(self.reason)
        if not 0 <= self.stands <= self.loss.credits or self.taken.delta < self.delta:
            raise InvalidQuery("an outside loss is less than what stands for it")

    def __str__(self) -> str:
        stated = "" if self.epsilon is None else f", epsilon {_shown(self.epsilon)}"
        taken = f", delta {_shown(self.delta)}" if self.delta else ""
        return f"{Ended(self.at, self.reason)}{stated}{taken}"

    def to_body(self, table: str) -> dict[str, Any]:
        return {
            "kind": "outside",
            "table": table,
            "epsilon": None if self.epsilon is None else str(self.epsilon),
            "delta": str(self.delta),
            "loss": loss_to_json(self.loss),
            "stands": str(self.stands),
            "taken": [str(self.taken.epsilon), str(self.taken.delta)],
            "reason": self.reason,
        }

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Outside:
        epsilon = None if body["epsilon"] is None else Fraction(body["epsilon"])
        return cls(
            epsilon,
            Fraction(body["delta"]),
            loss_from_json(body["loss"]),
            int(body["stands"]),
            Taken(*(Fraction(part) for part in body["taken"])),
            body["reason"],
            at=body.get("at", 0),
        )


def taken_by(outside: Iterable[Outside]) -> Taken:
    """What all of them took out of the promise."""
    found = [one.taken for one in outside]
    nothing = Fraction(0)
    return Taken(
        sum((one.epsilon for one in found), nothing), sum((one.delta for one in found), nothing)
    )


def check_reason(reason: object) -> None:
    check_text("reason", reason, REASON)


def no_more(ended: Ended) -> Refused:
    """Return the refusal for what is asked of a closed table."""
    return Refused(
        f"this table was closed for good ({ended}): nothing new is answered, granted or reserved;"
        " repeat a question you have paid for, which stays free"
    )


def gone(withdrawn: Ended) -> Refused:
    """Return the refusal for what is asked of a withdrawn table."""
    return Refused(
        f"this table was withdrawn by its owner before anything was asked ({withdrawn}); it answers"
        " nothing, unless it is published anew"
    )


def stale() -> Refused:
    return Refused(
        "this table was amended since it was opened here; open it again with the amended schema"
        " and promise"
    )


def outgrown() -> Refused:
    """Return the refusal for a ledger opened before the table got new rows."""
    return Refused(
        "this table has grown since it was opened here; open it again, with its new rows"
    )


def unfinished(why: Refused) -> Refused:
    """A refusal after the charge: nobody may say that it cost nothing."""
    refusal = Refused(f"{why}; what was charged stands, and its answer is not released")
    refusal.charged_unknown = True
    return refusal


def _shown(number: Fraction) -> str:
    """For people: the leading digits."""
    return f"{Decimal(number.numerator) / Decimal(number.denominator):.6g}"


# One account for the people of several tables: every charge of any of them pays it too.
#
# Decided in exact integers, in the population's own credits. Declared whole: each question counts
# by the account that pays most for it. Proof: docs/proofs/ledger.md, section 15.


@dataclass(frozen=True, slots=True)
class PopulationMembership:
    """What a table's header says of its population: one credit here is `credits` there, a delta
    counts `delta` times."""

    name: str
    promise: str
    cap: Loss
    credits: Fraction
    delta: Fraction
    persons: bool = False  # people have balances of their own, which are secret. V.2

    def __post_init__(self) -> None:
        check_text("population's name", self.name)
        check_text("population's promise", self.promise, TEXT)
        check_loss("population's cap", self.cap)
        if not self.name or self.credits <= 0 or self.delta < 1:
            raise InvalidQuery("a population has a name, and losses weigh something in it")

    def due(self, parts: Iterable[AccountCharge]) -> Loss:
        """What a question costs the population: by its worst account, rounded up."""
        losses = [part.loss for part in parts]
        credits = max((loss.credits for loss in losses), default=0)
        delta = max((loss.delta for loss in losses), default=0)
        return Loss(rounded_up(credits * self.credits), rounded_up(delta * self.delta))

    def worth(self, left: Loss) -> Loss:
        """The most that a question of the table may cost, if so much is left: rounded down."""
        return Loss(left.credits // self.credits, left.delta // self.delta)

    def to_body(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "promise": self.promise,
            "cap": loss_to_json(self.cap),
            "scale": [str(self.credits), str(self.delta)],
            **({"persons": True} if self.persons else {}),
        }

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> PopulationMembership:
        credits, delta = (Fraction(factor) for factor in body["scale"])
        named = (body["name"], body["promise"], loss_from_json(body["cap"]))
        return cls(*named, credits, delta, bool(body.get("persons", False)))


@dataclass(slots=True)
class PopulationAccount:
    """What a population has lost by all its tables."""

    name: str
    promise: str
    cap: Loss
    spent: Loss = NOTHING
    tables: list[str] = field(default_factory=list)
    outside: list[Outside] = field(default_factory=list)  # in this population's credits
    ceiling: Loss = NOTHING  # the cap, or what releases made elsewhere drove it to
    persons: bool = False

    @classmethod
    def of(cls, member: PopulationMembership) -> PopulationAccount:
        named = (member.name, member.promise, member.cap)
        return cls(*named, ceiling=member.cap, persons=member.persons)

    @property
    def left(self) -> Loss:
        return minus_clamped(self.cap, self.spent)

    @property
    def taken(self) -> Taken:
        """What releases made elsewhere took out of the promise."""
        return taken_by(self.outside)

    @property
    def vacant(self) -> bool:
        """True if all its tables were withdrawn unused: who names it next says what it is."""
        return not self.tables and self.spent == NOTHING and not self.outside

    def agrees(self, member: PopulationMembership) -> bool:
        wanted = (member.promise, member.cap, member.persons)
        return (self.promise, self.cap, self.persons) == wanted

    def admit(self, due: Loss) -> None:
        """Raise `BudgetSpent` unless it fits; what is free always does. G.1.2"""
        if due.credits and self.spent.credits + due.credits > self.cap.credits:
            costs = f"this costs population {self.name!r} {_text(due, up=True)} of its credits, and"
            if not self.left.credits:
                raise BudgetSpent(
                    f"{costs} none is left for all its tables together; repeats stay free"
                )
            raise BudgetSpent(
                f"{costs} {_text(self.left)} are left for all its tables together; ask a cheaper"
                " question"
            )
        if due.delta and self.spent.delta + due.delta > self.cap.delta:
            raise BudgetSpent(
                f"this costs more delta than population {self.name!r} has left for all its tables"
                " together; ask a cheaper question"
            )

    def spend(self, due: Loss) -> None:
        self.spent += due

    def spend_outside(self, booked: Outside) -> None:
        """Beyond the cap too: it has happened."""
        self.spent += booked.loss
        self.outside.append(booked)
        top = self.ceiling
        self.ceiling = Loss(max(top.credits, self.spent.credits), max(top.delta, self.spent.delta))

    def burn(self) -> None:
        """Count everything as spent."""
        spent, cap = self.spent, self.cap
        self.spent = Loss(max(spent.credits, cap.credits), max(spent.delta, cap.delta))

    def overdrawn(self) -> bool:
        """True for a chain that no honest writer makes."""
        return not self.spent.within(self.ceiling)


def _text(loss: Loss, *, up: bool = False) -> str:
    """Up for a price and down for what is left: it never looks affordable when it is not."""
    millionths = loss.credits_fraction * 10**6
    whole = rounded_up(millionths) if up else millionths // 1
    return f"{whole / 10**6:.6f}".rstrip("0").rstrip(".")


# What the owner changes after publication, as values: an end, and an amendment.


MOST_ACCOUNTS = 4096


@dataclass(frozen=True, slots=True)
class TableHeader:
    """The public facts of one table, pinned; `version` is a random id, never a hash of content."""

    name: str
    version: str
    facts: Mapping[str, str]
    accounts: tuple[str, ...]
    cap: Loss
    member: PopulationMembership | None = None  # of a population
    budget: int | None = None  # credits in steps that this version of the data may spend
    neighbours: str | None = field(init=False)  # where the facts state it

    def __post_init__(self) -> None:
        check_text("table's name", self.name)
        check_loss("cap", self.cap)
        for account in self.accounts:
            check_text("account's name", account)
        for fact in self.facts.values():
            check_text("fact", fact, TEXT)
        if not self.name:
            raise InvalidQuery("a table needs a name, got an empty one")
        if not 1 <= len(self.accounts) <= MOST_ACCOUNTS:
            raise InvalidQuery(
                f"a table has 1 to {MOST_ACCOUNTS} accounts, got "
                f"{len(self.accounts)}; name fewer public columns as strata"
            )
        if len(set(self.accounts)) != len(self.accounts):
            raise InvalidQuery("account names must differ")
        object.__setattr__(self, "neighbours", _neighbours(self.facts))

    def to_body(self) -> dict[str, Any]:
        return {
            "kind": "table",
            "table": self.name,
            "version": self.version,
            "facts": dict(self.facts),
            "accounts": list(self.accounts),
            "cap": loss_to_json(self.cap),
            **({} if self.member is None else {"population": self.member.to_body()}),
            **({} if self.budget is None else {"budget": str(self.budget)}),
        }

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> TableHeader:
        return cls(
            body["table"],
            body["version"],
            body["facts"],
            tuple(body["accounts"]),
            loss_from_json(body["cap"]),
            PopulationMembership.from_body(body["population"]) if "population" in body else None,
            budget_from(body),
        )

    def differences(self, other: TableHeader) -> list[str]:
        """Names of what `other` says differently; the version is not compared."""
        facts = as_published(other.facts, self.facts)
        names = sorted({*self.facts, *facts})
        found = [name for name in names if self.facts.get(name) != facts.get(name)]
        return (
            found
            + ["accounts"] * (self.accounts != other.accounts)
            + ["cap"] * (self.cap != other.cap)
        )


def as_published(facts: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, str]:
    """These facts, with the promise on the lattice of the table that the ledger has. S2.6

    A table that was published before counts were noised on whole numbers keeps the fine grid.
    """
    wanted, kept = (json.loads(one.get("promise", "null")) for one in (facts, stored))
    if not isinstance(wanted, dict) or not isinstance(kept, dict):
        return dict(facts)
    if wanted.get("noise") != kept.get("noise") or "lattice" in kept:
        return dict(facts)
    wanted.pop("lattice", None)
    text = json.dumps(wanted, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return {**facts, "promise": text}


def budget_from(body: Mapping[str, Any]) -> int | None:
    """What an event says that a version may spend."""
    found = int(body["budget"]) if "budget" in body else None
    if found is not None and found <= 0:
        raise InvalidQuery("a version's budget must be above 0")
    return found


def _neighbours(facts: Mapping[str, str]) -> str | None:
    """The neighbour relation, stated alone or inside the promise."""
    if (found := facts.get("neighbours")) is not None:
        return found
    promise = json.loads(facts.get("promise", "null"))
    return promise.get("neighbours") if isinstance(promise, dict) else None
