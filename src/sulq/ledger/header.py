"""What is fixed when a table is published."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sulq.accounting.losses import Loss
from sulq.errors import InvalidQuery
from sulq.ledger.charges import loss_from_json, loss_to_json
from sulq.ledger.limits import TEXT, check_loss, check_text
from sulq.ledger.population import Member

MOST_ACCOUNTS = 4096


@dataclass(frozen=True, slots=True)
class TableHeader:
    """The public facts of one table, pinned; `version` is a random id, never a hash of content."""

    name: str
    version: str
    facts: Mapping[str, str]
    accounts: tuple[str, ...]
    cap: Loss
    member: Member | None = None  # of a population
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
            Member.from_body(body["population"]) if "population" in body else None,
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
