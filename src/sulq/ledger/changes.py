"""What the owner changes after publication, as values: an end, and an amendment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sulq.accounting.losses import Loss
from sulq.accounting.outside import Taken
from sulq.errors import InvalidQuery, Refused
from sulq.ledger.charges import loss_from_json, loss_to_json
from sulq.ledger.limits import TEXT, check_loss, check_text
from sulq.ledger.tally import rounded_up

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

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Ended:
        return cls(body.get("at", 0), body["reason"])


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


def version_body(
    table: str,
    version: str,
    facts: Mapping[str, str],
    stamp: str | None,
    reason: str,
    budget: int | None = None,
) -> dict[str, Any]:
    """New rows under a new random id; `stamp` is what replicas compare of them."""
    body = {"kind": "version", "table": table, "version": version, "facts": dict(facts)}
    more = {} if budget is None else {"budget": str(budget)}
    return body | {"reason": reason} | more | ({} if stamp is None else {"stamp": stamp})


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
    def from_body(cls, seq: int, body: Mapping[str, Any]) -> Outside:
        epsilon = None if body["epsilon"] is None else Fraction(body["epsilon"])
        return cls(
            epsilon,
            Fraction(body["delta"]),
            loss_from_json(body["loss"]),
            int(body["stands"]),
            Taken(*(Fraction(part) for part in body["taken"])),
            body["reason"],
            seq,
            body.get("at", 0),
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
    """Of a closed table."""
    return Refused(
        f"this table was closed for good ({ended}): nothing new is answered, granted or reserved;"
        " repeat a question you have paid for, which stays free"
    )


def gone(withdrawn: Ended) -> Refused:
    """Of a withdrawn table."""
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
    """As `stale`, where the table got new rows."""
    return Refused(
        "this table has grown since it was opened here; open it again, with its new rows"
    )


def unfinished(why: Refused) -> Refused:
    """A refusal after the charge: nobody may say that it cost nothing."""
    refusal = Refused(f"{why}; what was charged stands, and its answer is not released")
    vars(refusal)["charged_unknown"] = True
    return refusal


def _shown(number: Fraction) -> str:
    """For people: the leading digits."""
    return f"{Decimal(number.numerator) / Decimal(number.denominator):.6g}"
