"""The mechanisms: what is drawn, what is read, and what is stored of both. Each has its proof."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sulq.kernel.accounting.pricing import Price
from sulq.kernel.engines.engine import Engine
from sulq.kernel.ledger.events import PricedRequest
from sulq.kernel.noise.laws import Law
from sulq.kernel.noise.sampler import add_noise
from sulq.kernel.schema.bind import BoundQuery


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
