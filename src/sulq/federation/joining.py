"""One joint question over columns of several owners: their own products, and sketches across."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np

from sulq.bars import Interval, Reading, z_of
from sulq.errors import InvalidQuery
from sulq.federation.rows import Receipts
from sulq.federation.sketches import (
    Array,
    best_count,
    coordinates,
    middles,
    product_errors,
    products,
    sketch_questions,
)
from sulq.oracle import Answer, Oracle
from sulq.query.sum_query import SumQuery, outer
from sulq.query.vector_values import Columns
from sulq.query.vectors import columns, ones
from sulq.schema.columns import Schema
from sulq.schema.promise import Promise

MEANS, OWN, SKETCHES = Fraction(1, 10), Fraction(3, 10), Fraction(6, 10)
"""Shares of the credits: sums, products within one owner, products across."""


class Block(NamedTuple):
    """The columns of a question that live with one owner, and where they stand in it."""

    owner: int
    names: tuple[str, ...]
    places: list[int]


class Split(Protocol):
    """What is joined: owners, their row id, and where columns live."""

    owners: tuple[Oracle, ...]
    row: str
    sketches: int | None
    schema: Schema
    promise: Promise

    @property
    def size(self) -> int | None: ...

    def blocks(self, side: Columns) -> list[Block]: ...


class Joining:
    """One joint question under way: shares of its credits, keys for retries, receipts."""

    def __init__(self, split: Split, key: str, credits: Fraction) -> None:
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
            reading, "outer", (), max(self.spent), Receipts(tuple(self.receipts)),
            f"put together from {len(self.split.owners)} owners", promise=self.split.promise,
        )  # fmt: skip

    def count(self, blocks: Sequence[Block]) -> int:
        """Sign vectors: as wished, or the best."""
        if self.split.sketches is not None:
            return self.split.sketches
        noise = max(self.sketch_noise(block) for block in blocks)
        width = max(len(block.places) for block in blocks)
        return best_count(self.split.size or 0, noise, width)

    def sketch_noise(self, block: Block) -> float:
        """c = R / t: the variance of one of an owner's sums, had one sign vector all credits."""
        owner = self.split.owners[block.owner]
        (question, _), *_ = self._questions(block, 1)
        quote = owner.quote(question, credits=SKETCHES * self.credits)
        return float(np.max(quote.standard_error)) ** 2

    def _questions(self, block: Block, count: int) -> list[tuple[SumQuery, int]]:
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

    def _sums(self, blocks: Sequence[Block], side: Columns, share: Fraction) -> tuple[Array, Array]:
        width = sum(len(block.places) for block in blocks)
        value, error = np.zeros((1, width)), np.zeros((1, width))
        for block in blocks:
            vector = columns(list(block.names), self._centre(side, block))
            found = self._ask(block.owner, outer(ones(), vector), share * self.credits)
            value[:, block.places] = found.value
            error[:, block.places] = found.standard_error
        return value, error

    def _centre(self, side: Columns, block: Block) -> Any:
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
        wanted = np.zeros(width) if right.centre is None else np.array(
            [float(c) for c in right.centre]
        )  # fmt: skip
        shift = middle - wanted
        self._across(blocks, value, error, sums, sums_error, shift)
        return value, error

    def _across(
        self,
        blocks: Sequence[Block],
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

    def _sketched(self, block: Block, count: int) -> tuple[Array, float]:
        """One line per sign vector, and the variance of its noise."""
        questions = self._questions(block, count)
        whole = sum(terms for _, terms in questions)
        found, noise = [], 0.0
        for question, terms in questions:
            answer = self._ask(block.owner, question, SKETCHES * self.credits * terms / whole)
            found.append(np.asarray(answer.value, dtype=np.float64).ravel())
            noise = max(noise, float(np.max(answer.standard_error)) ** 2)
        return np.concatenate(found).reshape(count, -1), noise
