"""The people of several tables, and what is promised to them for all of these tables together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sulq.errors import InvalidQuery
from sulq.schema.promise import Promise


@dataclass(frozen=True, slots=True)
class Population:
    """Tables of one ledger that name it are tables of the same people. Declared whole: everybody
    counts as being in all of them."""

    name: str
    promise: Promise

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
        return {"name": self.name, "promise": self.promise.to_json()}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Population:
        return cls(facts["name"], Promise.from_json(facts["promise"]))
