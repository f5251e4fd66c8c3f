"""Columns that live with several owners, joined by a public row id: one Oracle.

What one owner's columns can say is asked there; joint moments come from sign sketches. A person is
in every table, so what a person loses is the sum over the ledgers: co-locate columns if you can.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from sulq.accounting.calibration import calibrate, meaning
from sulq.accounting.gaussian import gaussian_epsilon
from sulq.accounting.losses import coupling_factor
from sulq.accounting.pricing import unit_cost
from sulq.bars import Forecast, z_of
from sulq.errors import BudgetSpent, InvalidQuery, SulqError
from sulq.federation.joining import OWN, Block, Joining
from sulq.federation.sketches import Array, bit_total, middles
from sulq.oracle import Answer, Oracle, Quote, credits_text, is_durable
from sulq.query.expressions import Column, Expression, Operation, hashed
from sulq.query.statistics import as_statistic
from sulq.query.sum_query import SumQuery, outer
from sulq.query.vector_values import Columns, Ones, Vector
from sulq.query.vectors import columns, ones
from sulq.schema.columns import Number, Schema
from sulq.schema.promise import Promise
from sulq.wire.answers import bind_public

CHECKS = 64
"""Hashed sums by which row ids are compared: a missing or doubled one passes with chance 2^-64."""


def split_columns(*owners: Oracle, row: str, sketches: int | None = None) -> ColumnSplit:
    """One Oracle over tables of the same rows, told apart by the public column `row`."""
    return ColumnSplit(owners, row, sketches)


class ColumnSplit:
    """An Oracle. `credits` are what each owner's ledger is charged, not their sum."""

    joint_rows = False
    """No engine sees whole rows: learners may ask for sums and products of columns, unclipped."""

    def __init__(self, owners: Sequence[Oracle], row: str, sketches: int | None = None) -> None:
        if len(owners) < 2:
            raise InvalidQuery(f"columns are split over 2 owners or more, got {len(owners)}")
        self.owners, self.row, self.sketches = tuple(owners), row, sketches
        self.promise: Promise = _one_promise(owners)
        self._home: dict[str, int] = {}
        self._begun: set[str] = set()  # keys of what failed on the way: its parts are paid
        for place, owner in enumerate(owners):
            for name in [column.name for column in owner.schema.columns]:
                if name != row and name in self._home:
                    raise InvalidQuery(f"{name} is declared by two owners; one of them may hold it")
                self._home[name] = place
        first = owners[0].schema
        rest = [c for o in owners for c in o.schema.columns if c.name != row]
        self.schema = Schema(first[row], *rest, bits=max(o.schema.bits for o in owners))
        self._check_aligned()

    @property
    def size(self) -> int | None:
        return self.owners[0].size

    @property
    def durable(self) -> bool:
        """Whether any owner's ledger keeps what is spent."""
        return any(is_durable(owner) for owner in self.owners)

    @property
    def remaining(self) -> Fraction:
        return min(owner.remaining for owner in self.owners)

    @property
    def joint_promise(self) -> str:
        """What all ledgers together promise to a person, who is in every table. V.1"""
        count = len(self.owners)
        epsilon, delta = joint_epsilon(self.promise, count), count * self.promise.delta
        said = f", delta {float(delta):.3g}" if delta else ""
        return f"epsilon {epsilon:.4g}{said} over {count} ledgers"

    def quote(self, query: object, *, credits: Any = None, **terms: Any) -> Quote:
        """Price with each owner, and the bar; free."""
        alone = self._owner_of(query)
        if alone is not None:
            return alone.quote(query, credits=credits, **terms)
        _check_terms(terms)
        left, right = self._sides(query)
        paid = self._credits(credits, left, right)
        after = min(owner.remaining for owner in self.owners) - paid
        errors = self._expected(left, right, paid)
        return Quote(paid, after, Forecast(errors, lambda c: z_of(c) * errors), False)

    def ask(self, query: object, *, credits: Any = None, key: str | None = None, **terms: Any) -> Answer:  # noqa: E501  # fmt: skip
        """Ask the owners and put their answers together; priced everywhere first."""
        alone = self._owner_of(query)
        if alone is not None:
            return alone.ask(query, credits=credits, key=key, **terms)
        _check_terms(terms)
        left, right = self._sides(query)
        paid = self._credits(credits, left, right)
        if key not in self._begun and paid > self.remaining:
            raise BudgetSpent(
                f"this costs {credits_text(paid)} with each owner, and one has"
                f" {credits_text(self.remaining)} left; nothing was asked"
            )
        key = key or secrets.token_hex(16)
        asking = Joining(self, key, paid)
        try:
            return asking.answer(left, right)
        except SulqError as error:
            if asking.receipts or error.credits_spent != 0:
                self._begun.add(key)
                error.credits_spent = None  # the owners' ledgers know
                error.add_note(
                    f"{len(asking.receipts)} parts were answered and charged; ask this again with"
                    f" key={key!r} and credits=Fraction({str(paid)!r}): what is paid stays paid"
                )
            raise

    def __repr__(self) -> str:
        return f"<ColumnSplit of {len(self.owners)} owners by {self.row!r}, {self.promise}>"

    # --- what can be asked ----------------------------------------------------------------------

    def _owner_of(self, query: object) -> Oracle | None:
        """The owner who can answer alone."""
        asked = as_statistic(query).query
        homes = {self._home_of(name) for name in _names(asked)} - {None}
        if len(homes) > 1:
            return None
        return self.owners[homes.pop() or 0] if homes else self.owners[0]

    def _home_of(self, name: str) -> int | None:
        if name == self.row:
            return None
        if name not in self._home:
            self.schema[name]  # raises, naming what there is
        return self._home[name]

    def _sides(self, query: object) -> tuple[Columns | None, Columns]:
        """`outer` of ones or plain columns with plain columns: what sketches can answer."""
        asked = as_statistic(query).query
        if asked.outer is not None and not _expression_names(asked.rows):
            left, right = asked.outer
            if _plain(right) and (isinstance(left, Ones) or _plain(left)):
                assert isinstance(right, Columns)  # noqa: S101
                return (left if isinstance(left, Columns) else None), right
        homes = sorted({(self._home_of(name) or 0) + 1 for name in _names(asked)})
        named = " and ".join(map(str, homes))
        raise InvalidQuery(
            f"this needs whole rows, and its columns live with owners {named}: across owners only"
            " sums and products of columns can be asked, over all rows and unclipped;"
            " ask for columns of one owner, or publish them together"
        )

    def blocks(self, side: Columns) -> list[Block]:
        """The side by owners, and the places of its coordinates."""
        place, found = 0, dict[int, tuple[list[str], list[int]]]()
        for name in side.names:
            home = self._home[name] if name != self.row else 0
            names, places = found.setdefault(home, ([], []))
            width = len(middles(self.schema, name))
            names.append(name)
            places += range(place, place + width)
            place += width
        return [Block(home, tuple(names), places) for home, (names, places) in found.items()]

    def _credits(self, credits: Any, left: Columns | None, right: Columns) -> Fraction:
        if credits is not None:
            return Fraction(credits)
        vector = columns(list(self.blocks(right)[0].names))
        owner = self.owners[self.blocks(right)[0].owner]
        plain = outer(ones() if left is None else vector, vector)
        bound = bind_public(plain, owner.schema, self.promise)  # whatever was asked before
        return unit_cost(bound, calibrate(self.promise)) / (1 if left is None else OWN)

    def _expected(self, left: Columns | None, right: Columns, paid: Fraction) -> Array:
        """Errors for rows spread evenly over their bounds."""
        asking = Joining(self, "", paid)
        width = sum(len(block.places) for block in self.blocks(right))
        if left is None:
            found = np.zeros((1, width))
            for block in self.blocks(right):
                vector = columns(list(block.names))
                quote = self.owners[block.owner].quote(outer(ones(), vector), credits=paid)
                found[:, block.places] = quote.standard_error
            return found
        blocks = self.blocks(right)
        count = asking.count(blocks)
        spread = np.zeros(width)
        for block in blocks:
            spread[block.places] = (self.size or 0) / 12 + count * asking.sketch_noise(block)
        across: Array = np.sqrt(np.outer(spread, spread) / count)
        return across

    def _check_aligned(self) -> None:
        """Row ids are public: their cells are compared exactly, for free."""
        sizes = {owner.size for owner in self.owners}
        if len(sizes) > 1 or None in sizes:
            raise InvalidQuery(
                f"the owners' tables have {sorted(str(s) for s in sizes)} rows: columns of the same"
                " rows have the same number, and neighbours='replace' makes it public"
            )
        last = (self.size or 0) - 1
        for place, owner in enumerate(self.owners, 1):
            ids = owner.schema[self.row]
            numbered = isinstance(ids, Number) and ids.public and ids.lattice == 1
            if (
                not numbered
                or not isinstance(ids, Number)
                or ids.range != (Fraction(0), Fraction(last))
            ):
                raise InvalidQuery(
                    f"owner {place}: {self.row} must number the rows, declared as"
                    f" Number({self.row!r}, 0, {last}, step=1, public=True)"
                )
        signs = SumQuery(tuple(hashed(self.row, seed) for seed in range(CHECKS)))
        expected = [bit_total(self.size or 0, seed) for seed in range(CHECKS)]
        for place, owner in enumerate(self.owners, 1):
            if np.any(owner.quote(signs).standard_error):
                raise InvalidQuery(f"owner {place} adds noise to {self.row}: it must be public")
            if not np.array_equal(np.ravel(owner.ask(signs).value), expected):
                raise InvalidQuery(
                    f"the rows of owner {place} are not aligned: every value of {self.row} from 0"
                    " on must be there once"
                )


def joint_epsilon(promise: Promise, count: int) -> float:
    """What so many ledgers of one promise keep together, at `count` times its delta.

    Gaussian losses add: mu^2 is `count` times as large, and so is the samplers' distance, which
    costs 1 + e^epsilon of the epsilon that is stated. TB.1, TB.8
    """
    terms, plain = calibrate(promise), math.nextafter(float(count * promise.epsilon), math.inf)
    each = meaning(terms).mu_squared
    if each is None:
        return plain
    mu = Fraction((float(each) * count) ** 0.5 * (1 + 2**-40))
    distance = count * terms.slack_cap / coupling_factor(promise.epsilon)
    found = float(promise.epsilon)
    while found < plain:
        left = count * promise.delta - distance * coupling_factor(Fraction(found))
        if left <= 0:
            break
        wanted = gaussian_epsilon(mu, left)
        if wanted <= found:
            return found
        found = wanted * (1 + 1e-6)
    return plain


def _check_terms(terms: Mapping[str, Any]) -> None:
    """`rows` and `confidence` say nothing about sums over all rows at given credits."""
    if unknown := sorted(terms.keys() - {"within", "confidence", "rows"}):
        raise TypeError(f"unexpected {', '.join(unknown)}")
    if terms.get("within") is not None:
        raise InvalidQuery(
            "how exact products across owners are is not known before they are asked: give credits,"
            " the quote tells the bar"
        )


def _one_promise(owners: Sequence[Oracle]) -> Promise:
    first = owners[0].promise
    if any(owner.promise != first for owner in owners):
        raise InvalidQuery("the owners promise differently: a credit must mean the same everywhere")
    if first.neighbours != "replace":
        raise InvalidQuery(
            "columns are joined by a public row id, which neighbours='replace' makes public;"
            f" got {first.neighbours!r}"
        )
    return first


def _plain(vector: Vector) -> bool:
    return isinstance(vector, Columns) and vector.clip is None


def _names(query: SumQuery) -> set[str]:
    """Every column that a question mentions."""
    found = _expression_names(query.rows)
    for part in (*query.terms, *(group.of for group in query.groups)):
        found |= _expression_names(part)
    for side in query.outer or ():
        found |= _vector_names(side)
    return found


def _expression_names(expression: Expression) -> set[str]:
    match expression:
        case Column(name):
            return {name}
        case Operation(_, operands):
            return set().union(*(_expression_names(operand) for operand in operands))
    return set()


def _vector_names(value: object) -> set[str]:
    """Vectors hold columns by name, expressions, and vectors."""
    match value:
        case Expression():
            return _expression_names(value)
        case Columns(names, _, _):
            return set(names)
        case Vector():
            parts = [getattr(value, name) for name in type(value).__dataclass_fields__]
            own = {value.column} if hasattr(value, "column") else set()
            return own.union(*(_vector_names(part) for part in parts if not isinstance(part, str)))
        case tuple():
            return set().union(*(_vector_names(part) for part in value))
    return set()
