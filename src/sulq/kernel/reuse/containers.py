"""Many integers in few bytes: a row that grows, and a map from numbers of events."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterator
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.signedinteger]


class IntVector:
    """Integers in a row; read as an array."""

    def __init__(self, kind: type[np.signedinteger] = np.int64) -> None:
        self._held, self._count = np.zeros(16, dtype=kind), 0

    def __len__(self) -> int:
        return self._count

    @property
    def values(self) -> Integers:
        """Until the next change."""
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


# What was used last, up to a weight: everything else is made again when it is needed.


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class WeightedLRU(Generic[K, V]):
    """A map that forgets what was not used for longest. Its owner serialises."""

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
        """Keep it, unless it is too heavy; it comes back."""
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
