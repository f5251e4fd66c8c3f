"""What was used last, up to a weight: everything else is made again when it is needed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
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
