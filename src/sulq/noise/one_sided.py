"""The one-sided law of a noisy choice: geometric on 0, 1, 2, ..., as a frozen value.

Apart from the laws of `distributions`, which are symmetric and carry error bars: nothing drawn
from this one is ever released. No randomness here. Proofs: docs/proofs/choosing.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from sulq.errors import InvalidQuery
from sulq.noise.distributions import check_size


@dataclass(frozen=True, slots=True)
class Geometric:
    """P(t) = (1 - a) a^t for t >= 0, a = exp(-1/scale): exponential noise on a grid. M.3"""

    scale: Fraction

    def __post_init__(self) -> None:
        value = self.scale
        if not isinstance(value, Fraction) or value <= 0:
            raise InvalidQuery(f"the scale of Geometric got {value!r}; want a Fraction above 0")
        check_size(value)

    def pmf(self, t: int) -> float:
        rate = float(1 / self.scale)
        return -math.expm1(-rate) * math.exp(-t * rate) if t >= 0 else 0.0

    def at_least(self, t: int) -> float:
        """P(N >= t)."""
        return math.exp(-float(t / self.scale)) if t > 0 else 1.0

    def to_json(self) -> dict[str, str | int]:
        return {"law": "geometric", "scale": f"{self.scale.numerator}/{self.scale.denominator}"}
