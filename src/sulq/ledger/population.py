"""One account for the people of several tables: every charge of any of them pays it too.

Decided in exact integers, in the population's own credits. Declared whole: each question counts by
the account that pays most for it. Proof: docs/proofs/ledger.md, section 15.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sulq.accounting.losses import Loss
from sulq.accounting.outside import Taken
from sulq.errors import BudgetSpent, InvalidQuery
from sulq.ledger.changes import Outside, taken_by
from sulq.ledger.charges import Part, loss_from_json, loss_to_json
from sulq.ledger.limits import TEXT, check_loss, check_text
from sulq.ledger.reservations import NOTHING, less
from sulq.ledger.tally import rounded_up


@dataclass(frozen=True, slots=True)
class Member:
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

    def due(self, parts: Iterable[Part]) -> Loss:
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
    def from_body(cls, body: Mapping[str, Any]) -> Member:
        credits, delta = (Fraction(factor) for factor in body["scale"])
        named = (body["name"], body["promise"], loss_from_json(body["cap"]))
        return cls(*named, credits, delta, bool(body.get("persons", False)))


@dataclass(slots=True)
class Pool:
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
    def of(cls, member: Member) -> Pool:
        named = (member.name, member.promise, member.cap)
        return cls(*named, ceiling=member.cap, persons=member.persons)

    @property
    def left(self) -> Loss:
        return less(self.cap, self.spent)

    @property
    def taken(self) -> Taken:
        """What releases made elsewhere took out of the promise."""
        return taken_by(self.outside)

    @property
    def vacant(self) -> bool:
        """True if all its tables were withdrawn unused: who names it next says what it is."""
        return not self.tables and self.spent == NOTHING and not self.outside

    def agrees(self, member: Member) -> bool:
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
