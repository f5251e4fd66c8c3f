"""The mechanisms: what is drawn, what is read, and what is stored of both. Each has its proof."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sulq.kernel.accounting.mechanisms import KeysPrice
from sulq.kernel.accounting.pricing import Price
from sulq.kernel.engines.engine import Engine
from sulq.kernel.ledger.events import PricedRequest
from sulq.kernel.noise.laws import DiscreteLaplace, Geometric, Law
from sulq.kernel.noise.sampler import add_fresh_noise, add_noise
from sulq.kernel.schema.bind import BoundQuery
from sulq.kernel.schema.keys import BoundKeys


@dataclass(frozen=True, slots=True, eq=False)
class NoisySums:
    """Exact integer sums, each plus a draw of its law. Blum et al. 2005, algorithm A(R)."""

    bound: BoundQuery
    cost: Price
    priced: PricedRequest

    @property
    def laws(self) -> Sequence[Law]:
        return self.cost.coordinates(self.bound.cells)

    def prepare(self, engine: Engine) -> Callable[[], list[int]]:
        return engine.prepare(self.bound.sums)

    def finish(self, sums: list[int], noise: Sequence[int]) -> list[int]:
        return add_noise(self.bound.lifted(sums), noise)


@dataclass(frozen=True, slots=True, eq=False)
class MaskedSums(NoisySums):
    """One owner's share of a joint sum: noisy sums under masks that cancel over all owners. V.4"""

    masks: Sequence[int]
    modulus: int

    def finish(self, sums: list[int], noise: Sequence[int]) -> list[int]:
        masked = add_noise(add_noise(self.bound.lifted(sums), noise), self.masks)
        return [value % self.modulus for value in masked]


@dataclass(frozen=True, slots=True, eq=False)
class TopK:
    """k times the cell with the largest noisy sum of those left: report noisy max. M.3"""

    bound: BoundQuery
    k: int
    law: Geometric
    priced: PricedRequest

    @property
    def laws(self) -> Sequence[Geometric]:
        """For every choice a draw for each cell that is left."""
        return [self.law] * sum(self.bound.cells - chosen for chosen in range(self.k))

    def prepare(self, engine: Engine) -> Callable[[], list[int]]:
        return engine.prepare(self.bound.sums)

    def finish(self, sums: list[int], noise: Sequence[int]) -> list[int]:
        return chosen(self.bound.lifted(sums), noise, self.k)


def chosen(sums: Sequence[int], noise: Sequence[int], k: int) -> list[int]:
    """Return the places of the k largest, with fresh noise for each; of equals the first."""
    left, draws, found = list(range(len(sums))), iter(noise), []
    for _ in range(k):
        noisy = [sums[cell] + next(draws) for cell in left]
        found.append(left.pop(noisy.index(max(noisy))))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class AboveThreshold:
    """Whether a sum, with fresh noise, reaches a noisy level: 1 or 0. M.2

    The level was drawn, and everything was paid for, when the alert was armed.
    """

    bound: BoundQuery
    step: Fraction  # of the level
    level: int
    law: DiscreteLaplace
    priced: PricedRequest

    @property
    def laws(self) -> Sequence[DiscreteLaplace]:
        return [self.law]

    def prepare(self, engine: Engine) -> Callable[[], list[int]]:
        return engine.prepare(self.bound.sums)

    def finish(self, sums: list[int], noise: Sequence[int]) -> list[int]:
        (fine,) = add_noise([sums[0] * int(self.bound.terms[0].step / self.step)], noise)
        return [int(fine >= self.level)]


@dataclass(frozen=True, slots=True, eq=False)
class UndeclaredKeys:
    """Noisy counts of the keys that occur, of those that reach a threshold. M.1

    The one exception to the order of draws: there is a draw for every key that occurs, and how many
    there are is known when they have been read. So it draws for a batch of counts at a time.
    """

    bound: BoundKeys
    cost: KeysPrice
    priced: PricedRequest

    @property
    def laws(self) -> Sequence[Law]:
        """None before rows are read."""
        return ()

    def prepare(self, engine: Engine) -> Callable[[], tuple[int, list[tuple[str, int]]]]:
        read = engine.prepare_keys(self.bound.program)
        return lambda: self._shown(read())

    def _shown(self, batches: Iterator[list[tuple[str, int]]]) -> tuple[int, list[tuple[str, int]]]:
        """The noisy total, and what is shown; a batch of exact counts is held at a time."""
        total = 0

        def reaching() -> Iterator[tuple[int, str]]:
            nonlocal total
            for batch in batches:
                counts = [count * self.bound.fine_unit for _, count in batch]
                total += sum(counts)
                noisy = add_fresh_noise(counts, [self.cost.law] * len(counts))
                for (text, _), value in zip(batch, noisy, strict=True):
                    if value >= self.cost.threshold:
                        yield -value, text

        # by count, then by key: the engine's order
        first = heapq.nsmallest(self.bound.most, reaching())
        (noisy,) = add_fresh_noise([total], [self.cost.law])
        return noisy, [(text, -value) for value, text in first]

    def finish(self, sums: tuple[int, list[tuple[str, int]]], noise: Sequence[int]) -> list[int]:
        """Integers, as the ledger stores them: a key is the number that its UTF-8 bytes spell."""
        total, shown = sums
        pairs = [(int.from_bytes(b"\x01" + text.encode()), noisy) for text, noisy in shown]
        return [total, *(number for pair in pairs for number in pair)]


def unpacked_keys(values: tuple[int, ...]) -> tuple[int, list[tuple[str, int]]]:
    """What `UndeclaredKeys` has stored: the noisy total, and the keys with their noisy counts."""
    texts = [
        number.to_bytes((number.bit_length() + 7) // 8)[1:].decode() for number in values[1::2]
    ]
    return values[0], list(zip(texts, values[2::2], strict=True))
