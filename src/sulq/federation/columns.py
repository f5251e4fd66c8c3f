"""Columns that live with several owners, joined by a public row id: one Oracle.

What one owner's columns can say is asked there; joint moments come from sign sketches. A person is
in every table, so what a person loses is the sum over the ledgers: co-locate columns if you can.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np

from sulq.answers.error_bars import Forecast, Interval, Reading
from sulq.answers.oracle import Answer, Oracle, Quote, is_durable
from sulq.errors import BudgetSpent, InvalidQuery, SulqError
from sulq.federation.rows import Receipts
from sulq.federation.sketches import (
    Array,
    best_count,
    bit_total,
    coordinates,
    middles,
    product_errors,
    products,
    sketch_questions,
)
from sulq.formatting import credits_left, credits_text
from sulq.kernel.accounting.calibration import calibrate, meaning
from sulq.kernel.accounting.gaussian import gaussian_epsilon
from sulq.kernel.accounting.loss import coupling_factor
from sulq.kernel.accounting.pricing import unit_cost
from sulq.kernel.noise.intervals import z_of
from sulq.kernel.query.expressions import Column, Expression, Operation, hashed
from sulq.kernel.query.sum_query import SumQuery, as_statistic, outer
from sulq.kernel.query.vectors import Columns, Ones, Vector, columns, ones
from sulq.kernel.schema.columns import Number, Schema
from sulq.kernel.schema.promise import Promise
from sulq.wire.convert import bind_public

MEANS, OWN, SKETCHES = Fraction(1, 10), Fraction(3, 10), Fraction(6, 10)
"""Shares of the credits: sums, products within one owner, products across."""


class ColumnBlock(NamedTuple):
    """The columns of a question that live with one owner, and where they stand in it."""

    owner: int
    names: tuple[str, ...]
    places: list[int]


class ColumnShare(Protocol):
    """What is joined: owners, their row id, and where columns live."""

    owners: tuple[Oracle, ...]
    row: str
    sketches: int | None
    schema: Schema
    promise: Promise

    @property
    def size(self) -> int | None: ...

    def blocks(self, side: Columns) -> list[ColumnBlock]: ...


class Joining:
    """One joint question under way: shares of its credits, keys for retries, receipts."""

    def __init__(self, split: ColumnShare, key: str, credits: Fraction) -> None:
        self.split, self.key, self.credits = split, key, credits
        self.spent = [Fraction(0)] * len(split.owners)
        self.receipts: list[Any] = []

    def answer(self, left: Columns | None, right: Columns) -> Answer:
        blocks = self.split.blocks(right)
        if left is None:
            value, error = self._sums(blocks, right, Fraction(1))
        else:
            value, error = self._products(left, right)

        def interval(confidence: float) -> Interval:
            half = z_of(confidence) * error
            return value - half, value + half

        reading = Reading(value, error, interval)
        return Answer(
            reading=reading,
            kind="outer",
            axes=(),
            credits=max(self.spent),
            receipt=Receipts(tuple(self.receipts)),
            note=f"put together from {len(self.split.owners)} owners",
            promise=self.split.promise,
        )

    def count(self, blocks: Sequence[ColumnBlock]) -> int:
        """Sign vectors: as wished, or the best."""
        if self.split.sketches is not None:
            return self.split.sketches
        noise = max(self.sketch_noise(block) for block in blocks)
        width = max(len(block.places) for block in blocks)
        return best_count(self.split.size or 0, noise, width)

    def sketch_noise(self, block: ColumnBlock) -> float:
        """c = R / t: the variance of one of an owner's sums, had one sign vector all credits."""
        owner = self.split.owners[block.owner]
        (question, _), *_ = self._questions(block, 1)
        quote = owner.quote(question, credits=SKETCHES * self.credits)
        return float(np.max(quote.standard_error)) ** 2

    def _questions(self, block: ColumnBlock, count: int) -> list[tuple[SumQuery, int]]:
        schema = self.split.owners[block.owner].schema
        parts = [part for name in block.names for part in coordinates(schema, name)]
        return sketch_questions(parts, self.split.row, range(count))

    def _ask(self, owner: int, query: SumQuery, credits: Fraction) -> Answer:
        """Each question has a key of its own, the same when the whole is tried again."""
        name = f"{self.key}-{len(self.receipts)}"
        answer = self.split.owners[owner].ask(query, credits=credits, key=name)
        self.spent[owner] += answer.credits
        self.receipts.append(answer.receipt)
        return answer

    def _sums(
        self, blocks: Sequence[ColumnBlock], side: Columns, share: Fraction
    ) -> tuple[Array, Array]:
        width = sum(len(block.places) for block in blocks)
        value, error = np.zeros((1, width)), np.zeros((1, width))
        for block in blocks:
            vector = columns(list(block.names), self._centre(side, block))
            found = self._ask(block.owner, outer(ones(), vector), share * self.credits)
            value[:, block.places] = found.value
            error[:, block.places] = found.standard_error
        return value, error

    def _centre(self, side: Columns, block: ColumnBlock) -> Any:
        if side.centre is None:
            return None
        return [side.centre[place] for place in block.places]

    def _products(self, left: Columns, right: Columns) -> tuple[Array, Array]:
        split = self.split
        if left.names != right.names or left.centre != right.centre:
            raise InvalidQuery("across owners a vector is multiplied with itself; ask outer(v, v)")
        blocks = split.blocks(right)
        width = sum(len(block.places) for block in blocks)
        value, error = np.zeros((width, width)), np.zeros((width, width))
        for block in blocks:
            vector = columns(list(block.names), self._centre(right, block))
            own = self._ask(block.owner, outer(vector, vector), OWN * self.credits)
            inside = np.ix_(block.places, block.places)
            value[inside], error[inside] = own.value, own.standard_error
        middle = np.array([float(m) for n in right.names for m in middles(split.schema, n)])
        centred = Columns(right.names, tuple(Fraction(float(m)) for m in middle), None)
        sums, sums_error = (found[0] for found in self._sums(blocks, centred, MEANS))
        wanted = (
            np.zeros(width) if right.centre is None else np.array([float(c) for c in right.centre])
        )
        shift = middle - wanted
        self._across(blocks, value, error, sums, sums_error, shift)
        return value, error

    def _across(
        self,
        blocks: Sequence[ColumnBlock],
        value: Array,
        error: Array,
        sums: Array,
        sums_error: Array,
        shift: Array,
    ) -> None:
        """sum (y + a)(z + b) = <y, z> + a sum z + b sum y + n a b, y and z about the middle."""
        rows = self.split.size or 0
        count = self.count(blocks)
        # |y|^2 from its owner's own products, one standard error up: what the sketches themselves
        # say of it is too small just when their product is
        squares = np.diag(value) - 2 * shift * sums - rows * shift**2
        squares += np.hypot(np.diag(error), 2 * shift * sums_error)
        sketches = [self._sketched(block, count) for block in blocks]
        for i, one in enumerate(blocks):
            for j, other in enumerate(blocks[:i]):
                (u, noise_u), (v, noise_v) = sketches[i], sketches[j]
                found = products(u, v)
                sizes = squares[one.places], squares[other.places]
                errors = product_errors(found, *sizes, (noise_u, noise_v), count)
                a, b = shift[one.places], shift[other.places]
                s, t = sums[one.places], sums[other.places]
                moved = found + np.outer(a, t) + np.outer(s, b) + rows * np.outer(a, b)
                beside = np.outer(a, sums_error[other.places]) ** 2
                beside += np.outer(sums_error[one.places], b) ** 2
                errors = np.sqrt(errors**2 + beside)
                across = np.ix_(one.places, other.places)
                value[across], error[across] = moved, errors
                back = np.ix_(other.places, one.places)
                value[back], error[back] = moved.T, errors.T

    def _sketched(self, block: ColumnBlock, count: int) -> tuple[Array, float]:
        """One line per sign vector, and the variance of its noise."""
        questions = self._questions(block, count)
        whole = sum(terms for _, terms in questions)
        found, noise = [], 0.0
        for question, terms in questions:
            answer = self._ask(block.owner, question, SKETCHES * self.credits * terms / whole)
            found.append(np.asarray(answer.value, dtype=np.float64).ravel())
            noise = max(noise, float(np.max(answer.standard_error)) ** 2)
        return np.concatenate(found).reshape(count, -1), noise


# One joint question over columns of several owners: their own products, and sketches across.


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

    def ask(
        self, query: object, *, credits: Any = None, key: str | None = None, **terms: Any
    ) -> Answer:
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
                f" {credits_left(self.remaining)} left; nothing was asked"
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

    def blocks(self, side: Columns) -> list[ColumnBlock]:
        """The side by owners, and the places of its coordinates."""
        place, found = 0, dict[int, tuple[list[str], list[int]]]()
        for name in side.names:
            home = self._home[name] if name != self.row else 0
            names, places = found.setdefault(home, ([], []))
            width = len(middles(self.schema, name))
            names.append(name)
            places += range(place, place + width)
            place += width
        return [ColumnBlock(home, tuple(names), places) for home, (names, places) in found.items()]

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
