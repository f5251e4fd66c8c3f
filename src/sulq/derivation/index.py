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
        found.update((key, mark) for mark in own)
    return found


class Index:
    """Features as bits, one line per question; a search is a few array operations."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._bits: Words = np.zeros((64, 4), dtype=np.uint64)
        self._sums = np.ones(64)
        self._count = 0

    def add(self, features: Collection[Hashable], sums: int) -> int:
        """Take a question in; its line."""
        numbers = [self._numbers.setdefault(each, len(self._numbers)) for each in features]
        lines, words = self._bits.shape
        if self._count == lines or len(self._numbers) > 64 * words:
            lines = 2 * lines if self._count == lines else lines
            words = max(words, 2 * (len(self._numbers) // 64 + 1))
            grown = np.zeros((lines, words), dtype=np.uint64)
            grown[: self._bits.shape[0], : self._bits.shape[1]] = self._bits
            more = np.ones(lines)
            more[: len(self._sums)] = self._sums
            self._bits, self._sums = grown, more
        self._bits[self._count] = self._line(numbers)
        self._sums[self._count] = sums
        self._count += 1
        return self._count - 1

    def _line(self, numbers: Iterable[int]) -> Words:
        line = np.zeros(self._bits.shape[1], dtype=np.uint64)
        for number in numbers:
            line[number // 64] |= np.uint64(1 << (number % 64))
        return line

    def nearest(
        self, features: Collection[Hashable], lines: Collection[int] | None, most: int
    ) -> list[int]:
        """Lines (of those given) that share a summand, the fewest foreign features per sum first;
        among equals the latest."""
        if not self._count:
            return []
        known = [self._numbers[each] for each in features if each in self._numbers]
        atoms = [
            self._numbers[each]
            for each in features
            if each in self._numbers and isinstance(each, tuple) and each[0] == "atom"
        ]
        own, summed = self._line(known), self._line(atoms)
        at = (
            np.arange(self._count)
            if lines is None
            else np.fromiter(lines, dtype=np.int64, count=len(lines))
        )
        at = np.sort(at)[::-1]
        words = np.flatnonzero(summed)
        share = (self._bits[np.ix_(at, words)] & summed[words]).any(axis=1)
        at = at[share]
        foreign = np.bitwise_count(self._bits[at] & ~own).sum(axis=1) / self._sums[at]
        order = np.argsort(foreign, kind="stable")[:most]
        return [int(line) for line in at[order]]
