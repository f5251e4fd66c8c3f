"""The people of several tables, and what is promised to them for all of these tables together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sulq.errors import InvalidQuery
from sulq.schema.promise import Promise

MOST_ROWS = 1_000
"""Of a person, in a table whose people have balances in a population: all keep the same steps."""


@dataclass(frozen=True, slots=True)
class Population:
    """Tables of one ledger that name it are tables of the same people.

    Declared whole, everybody counts as being in all of them. With `persons` each person has one
    secret balance for all of them, known by the person's id: docs/guides/same-people.md.
    """

    name: str
    promise: Promise
    persons: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InvalidQuery(f"a population has a name, got {self.name!r:.40}")
        if not isinstance(self.promise, Promise):
            raise InvalidQuery("a population has a Promise: Population(name, Promise(...))")
        if self.promise.noise not in ("gaussian", "laplace"):
            raise InvalidQuery(
                f"{self.promise.noise} noise adds up with nothing else (G.1.5); a population's"
                " promise is gaussian (with a delta) or laplace (without)"
            )
        object.__setattr__(self, "promise", self.promise.on_lattice("fine"))  # a budget: no lattice
        if not isinstance(self.persons, bool):
            raise InvalidQuery(f"persons is true or false, got {self.persons!r:.40}")

    def check_persons(self, promise: Promise, unit: str, max_rows: int, individual: bool) -> None:
        """`InvalidQuery` unless a table's people can pay from balances of this population."""
        if not individual:
            raise InvalidQuery(
                f"the people of population {self.name!r} have balances of their own: publish every"
                " table of it with individual accounting (individual = true)"
            )
        if unit == "row" or max_rows > MOST_ROWS:
            raise InvalidQuery(
                f"people are known by their id over the tables of population {self.name!r}: give"
                f" the table a person unit with max_rows up to {MOST_ROWS}"
            )
        if promise.on_lattice("fine") != self.promise:
            raise InvalidQuery(
                f"population {self.name!r} has one balance for each person, so its tables have its"
                f" promise and no other: {self.promise}, got {promise}"
            )

    def check_table(self, promise: Promise) -> None:
        """`InvalidQuery` unless losses under `promise` add up in this population's currency."""
        for what in ("noise", "neighbours"):
            here, there = getattr(promise, what), getattr(self.promise, what)
            if here != there:
                raise InvalidQuery(
                    f"the table has {what} {here!r} and population {self.name!r} has {there!r}:"
                    " their losses do not add up; give both the same"
                )

    def to_json(self) -> dict[str, Any]:
        facts = {"name": self.name, "promise": self.promise.to_json()}
        return facts | ({"persons": True} if self.persons else {})

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Population:
        promise = Promise.from_json(facts["promise"])
        return cls(facts["name"], promise, facts.get("persons", False))
