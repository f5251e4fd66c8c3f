"""Which stored questions may help with one that is asked: few, and soon found.

A question is the set of its features: axes, thresholds, listed values, summands. What it tells
apart that the asked one does not must cancel, so questions with few foreign features come first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from sulq.kernel.reuse.symbolic import Marks
from sulq.kernel.schema.program import Integer

Integers = NDArray[np.signedinteger]


# Many integers in few bytes: a vector that grows, and a map from numbers of events.


class IntVector:
    """A vector of integers that grows; it is read as an array."""

    def __init__(self, kind: type[np.signedinteger] = np.int64) -> None:
        self._held, self._count = np.zeros(16, dtype=kind), 0

    def __len__(self) -> int:
        return self._count

    @property
    def values(self) -> Integers:
        """The integers as an array, valid until the next change."""
        return self._held[: self._count]

    def append(self, value: int) -> None:
        self.insert(self._count, [value])

    def extend(self, values: Integers) -> None:
        self.insert(self._count, values)

    def insert(self, place: int, values: Collection[int] | Integers) -> None:
        after = self._count + len(values)
        if after > len(self._held):
            grown = np.zeros(after + after // 8, dtype=self._held.dtype)
            grown[: self._count] = self.values
            self._held = grown
        if place < self._count:
            self._held[place + len(values) : after] = self._held[place : self._count].copy()
        self._held[place : place + len(values)] = values
        self._count = after


class IntMap(Collection[int]):
    """A small integer for each of many numbers of events, which mostly come in order."""

    def __init__(self) -> None:
        self._keys, self._small = IntVector(), IntVector(np.int32)

    def put(self, key: int, small: int = 0) -> None:
        at = self._at(key)
        if at is None:
            place = int(np.searchsorted(self._keys.values, key))
            self._keys.insert(place, [key])
            self._small.insert(place, [small])
        else:
            self._small.values[at] = small

    def get(self, key: int) -> int | None:
        at = self._at(key)
        return None if at is None else int(self._small.values[at])

    def of(self, keys: Collection[int]) -> Integers:
        """The small integers of those that are here, each once."""
        asked = keys._keys.values if isinstance(keys, IntMap) else _array(keys)
        places = np.searchsorted(self._keys.values, asked)
        near = places < len(self)
        places, asked = places[near], asked[near]
        return np.unique(self._small.values[places[self._keys.values[places] == asked]])

    def _at(self, key: int) -> int | None:
        place = int(np.searchsorted(self._keys.values, key))
        return place if place < len(self) and self._keys.values[place] == key else None

    def __contains__(self, key: object) -> bool:
        return isinstance(key, int) and self._at(key) is not None

    def __iter__(self) -> Iterator[int]:
        return map(int, self._keys.values)

    def __len__(self) -> int:
        return len(self._keys)


def _array(numbers: Collection[int]) -> Integers:
    return np.fromiter(numbers, dtype=np.int64, count=len(numbers))


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class WeightedLRU(Generic[K, V]):
    """A least-recently-used cache with a limit on total weight. Its owner serialises."""

    def __init__(self, most: int) -> None:
        self._most, self._weight = most, 0
        self._held: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def __contains__(self, key: K) -> bool:
        return key in self._held

    def __len__(self) -> int:
        return len(self._held)

    def get(self, key: K) -> V | None:
        found = self._held.get(key)
        if found is None:
            return None
        self._held.move_to_end(key)
        return found[0]

    def put(self, key: K, value: V, weight: int = 1) -> V:
        """Keep the value, unless it is heavier than the whole cache; return it."""
        if key in self._held:
            self._weight -= self._held.pop(key)[1]
        if weight <= self._most:
            self._held[key] = value, weight
            self._weight += weight
        while self._weight > self._most:
            _, (_, lighter) = self._held.popitem(last=False)
            self._weight -= lighter
        return value

    def clear(self) -> None:
        self._held.clear()
        self._weight = 0


def features_of(marks: Marks, atoms: Iterable[Integer]) -> set[Hashable]:
    """What a question tells apart, and what it sums."""
    found: set[Hashable] = {("atom", atom) for atom in atoms}
    for key, own in marks.items():
        found.add(key)
        listed = (value for values in own for value in values) if key[0] == "text" else own
        found.update((key, mark) for mark in listed)
    return found


class Index:
    """Features by number, one line per question: runs of numbers, since what is told apart together
    was numbered together. A search is a few array operations."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}  # by hash: two that share one only mislead the search
        self._first, self._after = IntVector(np.int32), IntVector(np.int32)  # of each run
        self._begin = IntVector()  # of each line: its first run
        self._sums, self._size = IntVector(np.int32), IntVector(np.int32)  # by line

    def __len__(self) -> int:
        return len(self._sums)

    def add(self, features: Collection[Hashable], sums: int) -> int:
        """Take a question in; its line."""
        hashed = map(_hash, features)
        numbers = np.sort([self._numbers.setdefault(each, len(self._numbers)) for each in hashed])
        ends = np.flatnonzero(np.diff(numbers) != 1)
        self._begin.append(len(self._first))
        self._first.extend(numbers[np.concatenate([[0], ends + 1])])
        self._after.extend(numbers[np.concatenate([ends, [len(numbers) - 1]])] + 1)
        self._sums.append(sums)
        self._size.append(len(numbers))
        return len(self) - 1

    def has(self, feature: Hashable, lines: Integers | None) -> bool:
        """Whether any of these questions (None: of all) has it."""
        number = self._numbers.get(_hash(feature))
        if number is None or lines is None:
            return number is not None
        told = (self._first.values <= number) & (number < self._after.values)
        return bool(np.logical_or.reduceat(told, self._begin.values)[lines].any())

    def _known(self, features: Iterable[Hashable]) -> list[int]:
        hashed = map(_hash, features)
        return [self._numbers[each] for each in hashed if each in self._numbers]

    def _count(self, numbers: Collection[int]) -> Integers:
        """How many of these features each question has."""
        among = np.zeros(len(self._numbers) + 1, dtype=np.int32)
        among[np.fromiter(numbers, np.int64, len(numbers)) + 1] = 1
        before = np.cumsum(among, dtype=np.int32)
        runs = before[self._after.values] - before[self._first.values]
        return np.add.reduceat(runs, self._begin.values, dtype=np.int64)

    def nearest(
        self, features: Collection[Hashable], lines: Integers | None, near: int, most: int
    ) -> list[int]:
        """Lines (of those given) that share a summand, the fewest foreign features per sum first;
        among equals the latest. Of so many that are `near`, those that could cancel."""
        count = len(self)
        if not count:
            return []
        own = self._known(features)
        able = self._count(self._known(x for x in features if _is_atom(x))) > 0
        if lines is not None:
            given = np.zeros(count, dtype=np.bool_)
            given[lines] = True
            able &= given
        score = np.where(able, (self._size.values - self._count(own)) / self._sums.values, np.inf)
        score -= np.arange(count) * (1e-9 / count)  # the latest first
        at = np.argpartition(score, near)[:near] if count > near else np.arange(count)
        at = at[np.argsort(score[at])]
        at = at[able[at]]
        told = self._foreign(at, own)
        kept = _cancelling(*told, self._sums.values[at])[:most]
        kept = kept[_cancelling(*_of(told, kept), self._sums.values[at[kept]])]
        return [int(line) for line in at[kept]]

    def _foreign(self, lines: Integers, own: Collection[int]) -> tuple[Integers, Integers]:
        """What these questions tell apart that is not one's `own`: pairs of a question's place
        among them, and a feature."""
        begin = np.append(self._begin.values, len(self._first))
        runs, of_run = _ranges(begin[lines], begin[lines + 1])
        numbers, of_number = _ranges(self._first.values[runs], self._after.values[runs])
        mine = np.zeros(len(self._numbers) + 1, dtype=np.bool_)
        mine[np.fromiter(own, np.int64, len(own))] = True
        foreign = ~mine[numbers]
        return of_run[of_number[foreign]], numbers[foreign]


def _ranges(first: Integers, after: Integers) -> tuple[Integers, Integers]:
    """The integers of all these ranges, and for each the number of its range."""
    lengths = (after - first).astype(np.int64)
    of = np.repeat(np.arange(len(lengths)), lengths)
    before = np.cumsum(lengths) - lengths
    return np.arange(len(of)) - before[of] + first[of], of


def _hash(feature: Hashable) -> int:
    return hash((feature, isinstance(feature, tuple) and feature[-1] == -1))  # as -2 without


def _is_atom(feature: Hashable) -> bool:
    return isinstance(feature, tuple) and feature[0] == "atom"


def _of(told: tuple[Integers, Integers], kept: Integers) -> tuple[Integers, Integers]:
    """The pairs of some questions, numbered anew."""
    questions, features = told
    place = np.full(int(questions.max(initial=-1)) + 1, -1)
    place[kept[kept < len(place)]] = np.flatnonzero(kept < len(place))
    here = place[questions] >= 0
    return place[questions[here]], features[here]


def _cancelling(questions: Integers, features: Integers, sums: Integers) -> Integers:
    """Without single sums that tell apart what no other question does: nothing cancels that."""
    left = np.ones(len(sums), dtype=np.bool_)
    single = sums == 1
    weights = np.minimum(sums, 2)
    while True:
        times = np.bincount(features, weights=weights[questions])
        alone = (times[features] == 1) & single[questions]
        if not alone.any():
            return np.flatnonzero(left)
        left[questions[alone]] = False
        here = left[questions]
        questions, features = questions[here], features[here]
