"""What is found that is no sum: keys that nobody declared, and which cells are largest. M.1, M.3"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sulq.answers.oracle import check_confidence
from sulq.errors import InvalidQuery
from sulq.formatting import credits_text
from sulq.kernel.noise.laws import DiscreteGaussian, DiscreteLaplace


@dataclass(frozen=True, slots=True)
class KeysQuote:
    """What a question for keys would cost, and which keys it could show. Free, and reads no data.

    A key is shown if its noisy count reaches `threshold` rows. It is `affordable` if who asks can
    pay both, credits and delta; `note` says what to do where it is the delta that lacks.
    """

    credits: Fraction
    delta: Fraction
    threshold: float
    standard_error: float
    left_after: Fraction = field(repr=False)
    affordable: bool = field(repr=False)
    repeat: bool = field(default=False, repr=False)
    note: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """Keys by falling noisy count, and what was held back: the noisy total less what is shown.

    `delta` is the extra delta that the threshold cost. Bars are those of the noise alone: a key is
    seen because its noisy count was large, so near the threshold counts tend to be too high.
    """

    column: str
    keys: tuple[str, ...]
    counts: tuple[float, ...]
    total: float
    threshold: float
    credits: Fraction
    delta: Fraction
    receipt: Any
    law: DiscreteGaussian
    unit: int
    note: str = ""

    @property
    def standard_error(self) -> float:
        """Of each count, and of the total."""
        return self.law.standard_deviation() / self.unit

    @property
    def held_back(self) -> float:
        """Rows whose key is not shown: the noisy total less the noisy counts, so also negative."""
        return self.total - sum(self.counts)

    @property
    def held_back_error(self) -> float:
        return self.standard_error * math.sqrt(1 + len(self.counts))

    def rows(self, confidence: float = 0.95) -> list[dict[str, Any]]:
        """The keys as plain records."""
        check_confidence(confidence)
        half = self.law.half_width(confidence) / self.unit
        return [
            {self.column: key, "value": count, "low": max(0.0, count - half), "high": count + half}
            for key, count in zip(self.keys, self.counts, strict=True)
        ]

    def to_pandas(self) -> Any:
        """A data frame: the key, then value, low and high at 95 %."""
        import pandas

        return pandas.DataFrame(self.rows(), columns=[self.column, "value", "low", "high"])

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[tuple[str, float]]:
        return iter(zip(self.keys, self.counts, strict=True))

    def __repr__(self) -> str:
        return (
            f"<Keys {len(self.keys)} of {self.column} from {self.threshold:,.4g} rows on,"
            f" {self.held_back:,.6g} +-{1.96 * self.held_back_error:,.4g} held back,"
            f" {credits_text(self.credits)}>"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Top:
    """Cells in falling order of their sums, as far as noise lets one tell; no sums.

    `slack`: with 95 % no cell that was passed over beats a chosen one by more than this.
    """

    column: str
    keys: tuple[Any, ...]
    slack: float
    credits: Fraction
    receipt: Any
    note: str = ""
    terms: str = ""

    def __repr__(self) -> str:
        return f"<Top {list(self.keys)} of {self.column}, {credits_text(self.credits)}>"


def alert_margin(
    laws: tuple[DiscreteLaplace, DiscreteLaplace],
    step: Fraction,
    confidence: float,
    checks: int,
) -> float:
    """With this confidence so many checks are right about sums this far from an alert's level."""
    check_confidence(confidence)
    if isinstance(checks, bool) or not isinstance(checks, int) or checks < 1:
        raise InvalidQuery(f"checks must be a whole number above 0, got {checks!r:.40}")
    wrong = (1 - confidence) / 2
    level, each = laws
    far = level.half_width(1 - wrong) + each.half_width(1 - wrong / checks)
    return far * float(step)
