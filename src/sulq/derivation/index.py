"""Which stored questions may help with one that is asked: few, and soon found.

A question is the set of its features: axes, thresholds, listed values, summands. What it tells
apart that the asked one does not must cancel, so questions with few foreign features come first.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable

import numpy as np
from numpy.typing import NDArray

from sulq.derivation.pieces import Marks
from sulq.schema.bound import Integer

Words = NDArray[np.uint64]


def features_of(marks: Marks, atoms: Iterable[Integer]) -> set[Hashable]:
    """What a question tells apart, and what it sums."""
    found: set[Hashable] = {("atom", atom) for atom in atoms}
    for key, own in marks.items():
        found.add(key)
        listed = (value for values in own for value in values) if key[0] == "text" else own
        found.update((key, mark) for mark in listed)
    return found


class Index:
    """Features as bits, one line per question; a search is a few array operations."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._bits: Words = np.zeros((64, 4), dtype=np.uint64, order="F")  # read by word
        self._sums = np.ones(64)
        self._count = 0

    def add(self, features: Collection[Hashable], sums: int) -> int:
        """Take a question in; its line."""
        numbers = [self._numbers.setdefault(each, len(self._numbers)) for each in features]
        lines, words = self._bits.shape
        if self._count == lines or len(self._numbers) > 64 * words:
            lines = 2 * lines if self._count == lines else lines
            words = max(words, 2 * (len(self._numbers) // 64 + 1))
            grown = np.zeros((lines, words), dtype=np.uint64, order="F")
            grown[: self._bits.shape[0], : self._bits.shape[1]] = self._bits
            more = np.ones(lines)
            more[: len(self._sums)] = self._sums
            self._bits, self._sums = grown, more
        self._bits[self._count] = self._line(numbers)
        self._sums[self._count] = sums
        self._count += 1
        return self._count - 1

    def has(self, feature: Hashable, lines: list[int] | None) -> bool:
        """Whether any of these questions (None: of all) has it."""
        number = self._numbers.get(feature)
        if number is None or lines is None:
            return number is not None
        told = self._bits[lines, number // 64] >> np.uint64(number % 64)
        return bool((told & np.uint64(1)).any())

    def _line(self, numbers: Iterable[int]) -> Words:
        line = np.zeros(self._bits.shape[1], dtype=np.uint64)
        for number in numbers:
            line[number // 64] |= np.uint64(1 << (number % 64))
        return line

    def nearest(
        self,
        features: Collection[Hashable],
        lines: Collection[int] | None,
        near: int,
        most: int,
    ) -> list[int]:
        """Lines (of those given) that share a summand, the fewest foreign features per sum first;
        among equals the latest. Of so many that are `near`, those that could cancel."""
        if not self._count:
            return []
        known = [self._numbers[each] for each in features if each in self._numbers]
        atoms = [
            self._numbers[each]
            for each in features
            if each in self._numbers and isinstance(each, tuple) and each[0] == "atom"
        ]
        own, summed = self._line(known), self._line(atoms)
        bits = self._bits[: self._count]
        able = np.zeros(self._count, dtype=np.bool_)
        for word in np.flatnonzero(summed):
            able |= (bits[:, word] & summed[word]) != 0
        if lines is not None:
            given = np.zeros(self._count, dtype=np.bool_)
            given[np.fromiter(lines, dtype=np.int64, count=len(lines))] = True
            able &= given
        score = np.zeros(self._count)
        for place, mine in enumerate(~own):
            score += np.bitwise_count(bits[:, place] & mine)
        score = np.where(able, score / self._sums[: self._count], np.inf)
        score -= np.arange(self._count) * (1e-9 / self._count)  # the latest first
        at = np.argpartition(score, near)[:near] if self._count > near else np.arange(self._count)
        at = at[np.argsort(score[at])]
        at = at[able[at]]
        foreign = bits[at] & ~own
        kept = self._cancelling(foreign, self._sums[at])[:most]
        kept = kept[self._cancelling(foreign[kept], self._sums[at[kept]])]
        return [int(line) for line in at[kept]]

    def _cancelling(self, foreign: Words, sums: NDArray[np.float64]) -> NDArray[np.int64]:
        """Without single sums that tell apart what no other question does: nothing cancels that."""
        told = np.unpackbits(np.ascontiguousarray(foreign).view(np.uint8), axis=1)
        told = told[:, told.any(axis=0)].astype(np.float32)
        left = np.arange(len(told))
        while len(left):
            times = np.minimum(sums[left], 2).astype(np.float32) @ told[left]
            alone = (told[left] @ (times == 1).astype(np.float32)) > 0
            if not (alone & (sums[left] == 1)).any():
                break
            left = left[~(alone & (sums[left] == 1))]
        return left
