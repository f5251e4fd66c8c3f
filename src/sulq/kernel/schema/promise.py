"""The promise an owner makes once, for the life of a table. A value: no mathematics here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational
from typing import Any

from sulq.errors import InvalidQuery

Numeric = int | float | str | Decimal | Fraction

NOISES = ("gaussian", "laplace", "binomial", "huber")
NEIGHBOURS = {
    "replace": "the values of one row change",
    "add-remove": "one row is there or not",
}
PERSONS = {
    "replace": "all rows of one person change",
    "add-remove": "one person is there or not",
}
LATTICES = {"whole": "whole numbers", "fine": "a fine grid"}
LARGEST_EPSILON = 1000
LARGEST_QUERIES = 10**9
CREDITS_WITHOUT_QUERIES = 100

_DECIMAL = re.compile(r"[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?\d{1,3})?")
_RATIO = re.compile(r"\d{1,400}/\d{1,400}")


@dataclass(frozen=True, slots=True, init=False)
class Promise:
    """(epsilon, delta)-privacy for everything that is ever answered from a table.

    `credits=T` fixes the noise so that T unit questions, at one credit each, keep the promise;
    without it the budget is 100 credits. `queries` is an older name of `credits`. Numbers are read
    from their decimal spelling: 1e-6 is exactly 1/1000000.

    `lattice` is where the noise of whole-number sums (counts, histograms, totals of whole numbers)
    is drawn: "whole" for laplace noise, the least there is for counts (S2.6). Tables that were
    published before this was so keep "fine", as all other noise does.
    """

    epsilon: Fraction
    delta: Fraction
    queries: int | None
    """The credits that were asked for; None: 100, a share of one per cent each."""
    noise: str
    neighbours: str
    lattice: str
    of_persons: bool = field(compare=False, repr=False)
    """For words alone: whether a table's schema protects persons; `about` says so."""

    def __init__(
        self,
        epsilon: Numeric,
        delta: Numeric = 0,
        credits: int | None = None,
        noise: str | None = None,
        neighbours: str = "replace",
        *,
        queries: int | None = None,
        lattice: str | None = None,
    ) -> None:
        exact_epsilon = exact_number("epsilon", epsilon)
        exact_delta = exact_number("delta", delta)
        if not 0 < exact_epsilon <= LARGEST_EPSILON:
            raise InvalidQuery(
                f"got epsilon={epsilon!r}, wanted 0 < epsilon <= {LARGEST_EPSILON}; "
                "1 is a usual choice, smaller is more private"
            )
        if not 0 <= exact_delta < 1:
            raise InvalidQuery(
                f"got delta={delta!r}, wanted 0 <= delta < 1; "
                "take far less than 1/(number of rows), for instance 1e-6, or 0"
            )
        if noise is None:
            noise = "gaussian" if exact_delta > 0 else "laplace"
        if noise not in NOISES:
            raise InvalidQuery(f"got noise={noise!r}, wanted one of {list(NOISES)}")
        if neighbours not in NEIGHBOURS:
            raise InvalidQuery(f"got neighbours={neighbours!r}, wanted one of {list(NEIGHBOURS)}")
        if noise == "laplace" and exact_delta > 0:
            raise InvalidQuery(
                f"got noise='laplace' with delta={delta!r}, which it would not use; "
                "leave delta out, or take noise='gaussian'"
            )
        if noise != "laplace" and exact_delta == 0:
            raise InvalidQuery(
                f"got noise={noise!r} with delta=0, wanted delta > 0; "
                "add delta (for instance 1e-6), or take noise='laplace'"
            )
        if lattice is None:
            lattice = "whole" if noise == "laplace" else "fine"
        if lattice not in LATTICES or (lattice == "whole" and noise != "laplace"):
            raise InvalidQuery(
                f"got lattice={lattice!r} with {noise} noise; leave it out: laplace noise has"
                " 'whole', or 'fine' on older tables, other noise has 'fine'"
            )
        if credits is not None and queries is not None and credits != queries:
            raise InvalidQuery(
                f"got credits={credits!r} and queries={queries!r}, wanted one of them: queries is"
                " an older name of credits; leave it out"
            )
        given = queries if credits is None else credits
        exact_queries = None if given is None else _whole(given)
        if noise in ("binomial", "huber") and exact_queries is None:
            raise InvalidQuery(
                f"got noise={noise!r} without credits, wanted how many questions it lasts; "
                "add credits=..., or take noise='gaussian'"
            )
        object.__setattr__(self, "epsilon", exact_epsilon)
        object.__setattr__(self, "delta", exact_delta)
        object.__setattr__(self, "queries", exact_queries)
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "neighbours", neighbours)
        object.__setattr__(self, "lattice", lattice)
        object.__setattr__(self, "of_persons", False)

    def about(self, unit: str) -> Promise:
        """The same promise, in the words of a table whose schema has this unit."""
        told = self.on_lattice(self.lattice)
        object.__setattr__(told, "of_persons", unit != "row")
        return told

    def after(self, before: Promise) -> Promise:
        """This promise for a table that had another: a table keeps its lattice. S2.6"""
        return self.on_lattice(before.lattice) if self.noise == before.noise else self

    def on_lattice(self, lattice: str) -> Promise:
        """The same promise, with the noise of whole-number sums drawn elsewhere."""
        terms = (self.epsilon, self.delta, self.queries, self.noise, self.neighbours)
        return Promise(*terms, lattice=lattice)

    @property
    def credits(self) -> int:
        """The whole budget: one credit per unit question, or 100 shares of one per cent."""
        return self.queries or CREDITS_WITHOUT_QUERIES

    def to_json(self) -> dict[str, str | int | None]:
        """Plain JSON values; `from_json` gives back an equal promise."""
        return {
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "queries": self.queries,
            "noise": self.noise,
            "neighbours": self.neighbours,
            **({"lattice": self.lattice} if self.lattice == "whole" else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> Promise:
        """Read what `to_json` wrote; without a lattice it is older than "whole"."""
        return cls.from_policy({"lattice": "fine", **data})

    @classmethod
    def from_policy(cls, data: Mapping[str, object]) -> Promise:
        """Read a policy's table of the same names, where `queries` is called `credits`."""
        known = ["epsilon", "delta", "credits", "noise", "neighbours"]
        unknown = sorted(set(data) - {*known, "queries", "lattice"})
        if unknown or "epsilon" not in data:
            raise InvalidQuery(f"got a promise with {sorted(data)}, wanted epsilon and {known[1:]}")
        return cls(**data)  # type: ignore[arg-type]  # every value is checked by __init__

    def __repr__(self) -> str:
        numbers = [_spelled(self.epsilon), _spelled(self.delta)]
        epsilon, delta = (repr(text) if "/" in text else text for text in numbers)
        older = self.noise == "laplace" and self.lattice == "fine"
        return (
            f"Promise(epsilon={epsilon}, delta={delta}, credits={self.queries},"
            f" noise={self.noise!r}, neighbours={self.neighbours!r}"
            f"{', lattice=' + repr(self.lattice) if older else ''})"
        )

    def __str__(self) -> str:
        near = PERSONS if self.of_persons else NEIGHBOURS
        return (
            f"epsilon {_spelled(self.epsilon)}, delta {_spelled(self.delta)} for"
            f" {self.credits} credits, "
            f"{self.noise} noise; neighbours: {near[self.neighbours]}"
        )


def exact_number(name: str, value: object) -> Fraction:
    """The number as it is spelled: a float's shortest decimal, never its binary tail."""
    if isinstance(value, Rational) and not isinstance(value, bool):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, (str, float, Decimal)):
        text = str(value).strip()
        if _DECIMAL.fullmatch(text) or (_RATIO.fullmatch(text) and int(text.split("/")[1])):
            return Fraction(text)
    raise InvalidQuery(f"got {name}={value!r}, wanted a finite number such as 1, 0.5 or '1e-6'")


def _whole(credits: object) -> int:
    if isinstance(credits, Integral) and not isinstance(credits, bool):
        count = int(credits)
        if 1 <= count <= LARGEST_QUERIES:
            return count
    raise InvalidQuery(
        f"got credits={credits!r}, wanted a whole number from 1 to {LARGEST_QUERIES}; "
        "leave it out for a budget of 100 credits"
    )


def _spelled(value: Fraction) -> str:
    """Short for people: 1/1000000 reads 1e-06; a number with no short decimal stays a ratio."""
    short = f"{float(value):.12g}"
    return short if Fraction(short) == value else str(value)


# The people of several tables, and what is promised to them for all of these tables together.


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
