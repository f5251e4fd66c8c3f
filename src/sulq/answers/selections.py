"""What is found that is no sum: undeclared keys, and which cells are largest. M.1, P.4, M.3"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from sulq.answers.error_bars import Reading
from sulq.answers.oracle import check_confidence
from sulq.answers.statistics import forecast, read
from sulq.errors import InvalidQuery
from sulq.formatting import credits_text
from sulq.kernel.accounting.mechanisms import KeysPrice
from sulq.kernel.noise.laws import DiscreteGaussian, DiscreteLaplace, Law
from sulq.kernel.schema.bind import BoundQuery
from sulq.kernel.schema.keys import BoundKeys, KeyFigure, ShownKey, packed_keys


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
    figures: tuple[float | None, ...] = field(default=(), repr=False)
    """The standard error of each figure of a key; None where it hangs on the key's rows."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyFigures:
    """One figure of every key that is shown, such as a total or a mean, each with its bar."""

    name: str
    kind: str
    readings: tuple[Reading, ...]
    bound: BoundQuery
    laws: tuple[Law, ...]

    @property
    def values(self) -> tuple[float, ...]:
        return tuple(float(np.ravel(reading.value)[0]) for reading in self.readings)

    def intervals(self, confidence: float = 0.95) -> list[tuple[float, float]]:
        """(low, high) for each key."""
        check_confidence(confidence)
        found = []
        for reading in self.readings:
            low, high = reading.interval(confidence)
            found.append((float(np.ravel(low)[0]), float(np.ravel(high)[0])))
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """Keys by falling noisy count, and what was held back: the noisy total less what is shown.

    `delta` is the extra delta that the threshold cost. Bars are those of the noise alone: a key is
    seen because its noisy count was large, so near the threshold counts tend to be too high.
    Of a pair of columns a key is a pair. With `figures`, persons are counted where they are
    protected, and `figures` has one for each that was asked.
    """

    column: str
    keys: tuple[Any, ...]
    counts: tuple[float, ...]
    total: float
    threshold: float
    credits: Fraction
    delta: Fraction
    receipt: Any
    law: DiscreteGaussian
    unit: int
    note: str = ""
    total_law: DiscreteGaussian | None = None
    """Of the total, where it is not that of the counts."""
    figures: tuple[KeyFigures, ...] = ()
    columns: tuple[str, ...] = ()
    """Of a pair; else empty."""
    counted: str = "rows"
    """What is counted: rows or persons."""
    sums: tuple[Law, ...] = ()
    """The noise of each sum of a key."""
    values: tuple[int, ...] = ()
    """The noisy integers that it was read from, as they are stored."""

    @property
    def standard_error(self) -> float:
        """Of each count."""
        return self.law.standard_deviation() / self.unit

    @property
    def held_back(self) -> float:
        """Rows whose key is not shown: the noisy total less the noisy counts, so also negative."""
        return self.total - sum(self.counts)

    @property
    def held_back_error(self) -> float:
        total = (self.total_law or self.law).standard_deviation() / self.unit
        return math.hypot(total, self.standard_error * math.sqrt(len(self.counts)))

    def rows(self, confidence: float = 0.95) -> list[dict[str, Any]]:
        """The keys as plain records."""
        check_confidence(confidence)
        half = self.law.half_width(confidence) / self.unit
        names = self.columns or (self.column,)
        found: list[dict[str, Any]] = []
        for key, count in zip(self.keys, self.counts, strict=True):
            parts = key if self.columns else (key,)
            ends = {"value": count, "low": max(0.0, count - half), "high": count + half}
            found.append(dict(zip(names, parts, strict=True)) | ends)
        for figure in self.figures:
            told = zip(found, figure.values, figure.intervals(confidence), strict=True)
            for row, value, (low, high) in told:
                name = figure.name
                row |= {name: value, f"{name}_low": low, f"{name}_high": high}
        return found

    def to_pandas(self) -> Any:
        """A data frame: the key, then value, low and high at 95 %, then those of each figure."""
        import pandas

        names = [*(self.columns or (self.column,)), "value", "low", "high"]
        names += [f"{each.name}{end}" for each in self.figures for end in ("", "_low", "_high")]
        return pandas.DataFrame(self.rows(), columns=names)

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[tuple[Any, float]]:
        return iter(zip(self.keys, self.counts, strict=True))

    def __repr__(self) -> str:
        return (
            f"<Keys {len(self.keys)} of {self.column} from {self.threshold:,.4g} {self.counted} on,"
            f" {self.held_back:,.6g} +-{1.96 * self.held_back_error:,.4g} held back,"
            f" {credits_text(self.credits)}>"
        )


def figure_errors(figure: KeyFigure, cost: KeysPrice) -> float | None:
    """The standard error of a figure, where it does not hang on the rows of a key."""
    laws = _laws(figure, cost)
    found = forecast(figure.bound, laws, None, None).standard_error
    return None if found is None else float(np.max(found))


def _laws(figure: KeyFigure, cost: KeysPrice) -> tuple[Law, ...]:
    return tuple(cost.law if place < 0 else cost.sums[place] for place in figure.places)


def keys_of(
    bound: BoundKeys,
    cost: KeysPrice,
    total: int,
    shown: Sequence[ShownKey],
    size: int | None,
    paid: tuple[Fraction, Fraction, Any],
) -> Keys:
    """Read what is stored: keys with noisy integers, of a table of at most `size` rows; `paid` are
    the credits, the extra delta, and the receipt."""
    unit, columns = bound.fine_unit, bound.program.columns
    credits, delta, receipt = paid
    figures = []
    names = _names([figure.bound.statistic.kind for figure in bound.figures])
    for name, figure in zip(names, bound.figures, strict=True):
        laws = _laws(figure, cost)
        readings = tuple(
            read(figure.bound, [_number(one, place) for place in figure.places], laws, size)
            for one in shown
        )
        figures.append(KeyFigures(name, figure.bound.statistic.kind, readings, figure.bound, laws))
    return Keys(
        ", ".join(columns),
        tuple(one.key if len(columns) > 1 else one.key[0] for one in shown),
        tuple(one.noisy / unit for one in shown),
        total / unit,
        cost.threshold / unit,
        credits,
        delta,
        receipt,
        cost.law,
        unit,
        "; ".join(bound.notes),
        cost.total,
        tuple(figures),
        columns if len(columns) > 1 else (),
        "persons" if bound.program.persons else "rows",
        cost.sums,
        tuple(packed_keys(total, shown)),
    )


def _number(one: ShownKey, place: int) -> int:
    return one.noisy if place < 0 else one.sums[place]


def _names(kinds: Sequence[str]) -> list[str]:
    """Each kind's name; from the second of a kind on with a number."""
    return [
        kind if not (before := kinds[:at].count(kind)) else f"{kind}_{before + 1}"
        for at, kind in enumerate(kinds)
    ]


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
