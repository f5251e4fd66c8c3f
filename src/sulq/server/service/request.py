"""A request that is understood: what it asks, and how to answer it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sulq.server.idempotency import Charged
from sulq.server.pacing import Paced


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request that is understood: what it asks, and how to answer it."""

    bounds: Sequence[Paced]
    work: Callable[[], Charged]
    kept: bool = True  # made-up answers are not: they are free, and nobody pays for the disk

    @property
    def digests(self) -> frozenset[str]:
        return frozenset(bound.digest for bound in self.bounds)
