"""Bits from the operating system, exact coins made of them, and a uniform real number whose bits
come as needed.

There is no seed, and no buffer outlives the call that made it: neither threads nor forked
processes can share a bit, and none is left in memory to read afterwards.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

POOL_BYTES = 64
EXTENSION_BITS = 64


class OsBits:
    """A private stream of fair bits for one call; each bit of os.urandom is used at most once."""

    __slots__ = ("_left", "_pool")

    def __init__(self) -> None:
        self._pool = 0
        self._left = 0

    def bits(self, count: int) -> int:
        """A uniform integer of `count` bits."""
        if count > self._left:
            size = max(POOL_BYTES, (count + 7) >> 3)
            self._pool = int.from_bytes(os.urandom(size), "little")
            self._left = 8 * size
        pool = self._pool
        self._pool = pool >> count
        self._left -= count
        return pool & ((1 << count) - 1)

    def below(self, bound: int) -> int:
        """A uniform integer in [0, bound), by rejection."""
        count = (bound - 1).bit_length()
        while True:
            value = self.bits(count)
            if value < bound:
                return value

    def bernoulli_exp(self, top: int, bottom: int) -> bool:
        """True with probability exp(-top/bottom). Canonne, Kamath, Steinke 2020, algorithm 1."""
        while top > bottom:
            if not self.bernoulli_exp(1, 1):
                return False
            top -= bottom
        k = 1
        while self.below(bottom * k) < top:
            k += 1
        return k % 2 == 1


def words(count: int) -> NDArray[np.uint64]:
    """Independent uniform 64-bit words."""
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


class LazyUniform:
    """U uniform on [0, 1): its first `known` bits are `prefix`, the rest is drawn on demand."""

    __slots__ = ("_source", "known", "prefix")

    def __init__(self, source: OsBits, prefix: int, known: int) -> None:
        self._source = source
        self.prefix = prefix
        self.known = known

    def below(self, bounds: Callable[[int], tuple[int, int]]) -> bool:
        """Whether U < p, where bounds(b) encloses 2^b p; exact, and ends with probability 1."""
        while True:
            low, high = bounds(self.known)
            if self.prefix + 1 <= low:
                return True
            if self.prefix >= high:
                return False
            extra = self._source.bits(EXTENSION_BITS)
            self.prefix = self.prefix << EXTENSION_BITS | extra
            self.known += EXTENSION_BITS
