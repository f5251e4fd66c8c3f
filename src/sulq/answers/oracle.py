"""The seam: Quote, Answer, and the Oracle that learners, attackers and clients see.

An Oracle is all there is to ask. Who holds one can reach no row, no noise and no ledger.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol, TypedDict, Unpack

import numpy as np

from sulq.answers.display import (
    Comparison,
    bar_parts,
    bar_text,
    cells_of,
    compared,
    held_text,
    html_table,
    negative_text,
    protected_text,
    text_table,
)
from sulq.answers.error_bars import Forecast, Interval, Reading, Value
from sulq.answers.sizes import GroupSizes
from sulq.answers.statistics import kind_named, read
from sulq.beliefs.confidence import worst
from sulq.errors import InvalidQuery
from sulq.formatting import credits_text, decimal_left
from sulq.kernel.noise.intervals import half_width
from sulq.kernel.noise.laws import (
    CentredBinomial,
    DiscreteGaussian,
    DiscreteHuber,
    DiscreteLaplace,
    DividedLaplace,
    Law,
)
from sulq.kernel.query.expressions import Column, Expression, Operation
from sulq.kernel.query.sql_text import question_text
from sulq.kernel.schema.bind import BoundQuery
from sulq.kernel.schema.columns import Number, Schema
from sulq.kernel.schema.promise import Promise

LONGEST = 300
"""A question is cut to so many letters where it is explained."""


MOST_NAMED = 8
"""Receipts that a note names."""
MOST_CLIPPED = 6
"""Columns whose bounds are spelled out."""


def check_confidence(confidence: object) -> None:
    """A share of 1, exclusive."""
    if not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise InvalidQuery(f"confidence must lie between 0 and 1, got {confidence!r}")


PRIVATE = "differentially private"
"""What is said of an answer unless it rests on assumptions."""


@dataclass(frozen=True, slots=True, eq=False)
class Quote:
    """What a question would cost and how exact it would be. Free, and reads no data."""

    credits: Fraction
    left_after: Fraction
    forecast: Forecast
    repeat: bool
    notes: tuple[str, ...] = ()
    sizes: GroupSizes | None = None
    """How many rows match, where the bar hangs on it and nobody stated `rows`."""
    widest: Forecast | None = None
    """The bar if few rows match, where nobody was told how many do."""

    @property
    def standard_error(self) -> Any:
        """In the answer's units; None where it depends on the data."""
        return self.forecast.standard_error

    @property
    def note(self) -> str:
        """What the error bar assumes, and what in the question may be a slip."""
        return "; ".join(filter(None, (*self.notes, self.forecast.note)))

    @property
    def affordable(self) -> bool:
        return self.left_after >= 0

    def interval(self, confidence: float = 0.95) -> tuple[Any, Any]:
        """How far off the answer may be at this confidence: (-h, +h); None where unknown."""
        check_confidence(confidence)
        half = self.forecast.half_width(confidence)
        return (None, None) if half is None else (-half, half)

    def __repr__(self) -> str:
        bar = self.interval()[1]
        around = "" if bar is None else f", +-{float(np.max(bar)):,.6g} (95%)"
        if bar is not None and self.widest is not None:
            wide = float(np.max(self.span()[1]))
            around = f", +-{float(np.max(bar)):,.4g} to {wide:,.4g} (95%), by how many match"
        return f"<Quote {credits_text(self.credits)}{around}>"

    def span(self, confidence: float = 0.95) -> tuple[Any, Any]:
        """The half-width if all rows match and if one in five does; twice the same one where the
        bar does not hang on it, or where you were told how many match."""
        check_confidence(confidence)
        narrow = self.forecast.half_width(confidence)
        return narrow, narrow if self.widest is None else self.widest.half_width(confidence)


class Promised(TypedDict, total=False):
    """What holds for the people behind an answer, where it is not the table's own promise."""

    promise: Promise | None
    guarantee: str
    terms: str


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A noisy answer in user units, with what it cost and the receipt that proves it.

    `guarantee` is what holds for the people behind it; `terms` says on what assumptions, if any.
    """

    reading: Reading
    kind: str
    axes: tuple[str, ...]
    credits: Fraction
    receipt: Any
    note: str = ""
    question: str = ""
    laws: tuple[Law, ...] = ()
    promise: Promise | None = None
    guarantee: str = PRIVATE
    terms: str = ""
    sources: tuple[int, ...] = ()  # numbers of the receipts that it was derived from, if it was
    clipped: str = ""  # the bounds of the columns it reads
    schema: Schema | None = None
    bound: BoundQuery | None = None
    values: tuple[int, ...] = ()  # the noisy integers that it was read from

    @classmethod
    def of(
        cls,
        bound: BoundQuery,
        values: Sequence[int],
        laws: Sequence[Law],
        *,
        most: int | None,
        credits: Fraction,
        receipt: Any,
        reading: Reading | None = None,
        sources: tuple[int, ...] = (),
        **promised: Unpack[Promised],
    ) -> Answer:
        """Read stored noisy integers as an answer about a table of at most `most` rows.

        `reading` is given for derived answers, whose sums share their noise.
        """
        axes = tuple(group.name for group in bound.groups)
        found = reading or read(bound, values, laws, most)
        note = "; ".join([*bound.notes, *([derived_note(sources)] if sources else [])])
        return cls(
            reading=found,
            kind=bound.statistic.kind,
            axes=axes,
            credits=credits,
            receipt=receipt,
            note=note,
            question=bound.text,
            laws=tuple(laws),
            sources=sources,
            clipped=clipped_text(bound),
            schema=bound.schema,
            bound=bound,
            values=tuple(values),
            **promised,
        )

    def judged(self, bound: BoundQuery, within: float | None, confidence: float) -> Answer:
        """The answer with a note where it says less than was hoped for."""
        told = kind_named(self.kind).notes(bound, self.reading, within, confidence)
        return replace(self, note="; ".join(filter(None, (self.note, *told)))) if told else self

    @property
    def value(self) -> Value:
        return self.reading.value

    @property
    def standard_error(self) -> Any:
        return self.reading.standard_error

    @property
    def keys(self) -> tuple[Any, ...]:
        """What the cells are called: values, (low, high) bins, edges or shares."""
        return self.reading.keys

    @property
    def distribution(self) -> Any:
        """The whole `Distribution`; per group, an array of them. None of other questions."""
        found = self.reading.distributions
        return found if found is None or found.shape else found.item()

    def interval(self, confidence: float = 0.95) -> Interval:
        """(low, high) at this confidence, cut to what is possible."""
        check_confidence(confidence)
        return self.reading.interval(confidence)

    def explain(self, promise: Promise | None = None) -> str:
        """In words: what was asked, the answer, its price and noise, and what it lets one believe.

        `promise` is the table's, for an answer that does not carry it.
        """
        asked = question_text(self.question) if self.question else ""
        promised = promise or self.promise
        said = {
            "asked": asked if len(asked) < LONGEST else asked[:LONGEST] + " ...",
            "answer": self._value_text(),
            "cost": credits_text(self.credits),
            "noise": self._noise_text() if self.laws else "",
            "the bar": bar_text(self.schema) if np.any(self.standard_error) else "",
            "clipped": self.clipped,
            "negative": negative_text(kind_named(self.kind).counts, self.value),
            "note": self.note,
        }
        if self.terms:
            said["guarantee"] = self.terms
        elif promised is not None:
            said["protected"] = protected_text(self.schema, promised.neighbours)
            said |= {"promise": str(promised), "so": str(worst(promised))}
        return "\n".join(f"{name}: {text}" for name, text in said.items() if text)

    def compare(self, other: Answer, confidence: float = 0.95) -> Comparison:
        """Which of two single values is larger and how sure that is, or "not distinguishable".

        Counts and totals asked afresh have noise of their own: the law of the difference. Of other
        answers each interval is taken at half the allowed misses, whatever they share.
        """
        check_confidence(confidence)
        if not isinstance(other, Answer):
            raise InvalidQuery(f"compare takes another answer, got {type(other).__name__}")
        difference = float(self) - float(other)
        if self.question and self.question == other.question and not difference:
            return compared(0.0, lambda level: (0.0, 0.0), confidence)
        if self._own_noise and other._own_noise and self.question != other.question:
            draws = (self._draw, other._draw)

            def interval(level: float) -> tuple[float, float]:
                half = half_width(draws, level)
                return difference - half, difference + half
        else:

            def interval(level: float) -> tuple[float, float]:
                (low, high), (least, most) = (a.interval((1 + level) / 2) for a in (self, other))
                return float(low) - float(most), float(high) - float(least)

        return compared(difference, interval, confidence)

    @property
    def _own_noise(self) -> bool:
        return self.kind in ("count", "total") and len(self.laws) == 1 and not self.sources

    @property
    def _draw(self) -> tuple[float, Law]:
        if self.bound is not None:
            return float(self.bound.terms[0].fine_step), self.laws[0]
        spread = self.laws[0].standard_deviation()
        return (float(self.standard_error) / spread if spread else 0.0), self.laws[0]

    def _value_text(self) -> str:
        if isinstance(self.value, np.ndarray):
            return f"{self.value.size} values of kind {self.kind}; rows() gives their intervals"
        number, ends = self._bar()
        return f"{number}; {held_text(self.schema).replace('value', 'one')} is in {ends}, at 95 %"

    def _bar(self) -> tuple[str, str]:
        """The value and its interval, with the digits that mean something."""
        low, high = (float(end) for end in self.interval())
        return bar_parts(float(self), low, high)

    def __str__(self) -> str:
        if not isinstance(self.value, np.ndarray):
            return repr(self)
        return "\n".join([text_table(*cells_of(self.rows(), self.kind)), *self._foot()])

    def _foot(self) -> list[str]:
        held = held_text(self.schema)
        said = f"[low, high] holds {held} at 95 %; {credits_text(self.credits)}"
        return [part for part in (said, self.note) if part]

    def _repr_html_(self) -> str:
        return html_table(*cells_of(self.rows(), self.kind), self._foot())

    def _noise_text(self) -> str:
        law, error = law_text(self.laws[0]), float(np.max(self.standard_error))
        sums = "the sum" if len(self.laws) == 1 else f"each of {len(self.laws)} sums"
        if error == 0:
            return "none" if self.terms else "none: the answer is public"
        return f"{law}, added to {sums}; standard error of the answer {error:,.4g}"

    def nonnegative(self) -> Answer:
        """The same answer with negative values set to 0; no longer unbiased."""
        value = self.value
        cut: Value = np.maximum(value, 0.0) if isinstance(value, np.ndarray) else max(value, 0)
        return replace(self, reading=replace(self.reading, value=cut))

    def to_pandas(self) -> Any:
        """A data frame: the keys, then value, low and high at 95 %."""
        import pandas

        return pandas.DataFrame(self.rows())

    def rows(self, confidence: float = 0.95) -> list[dict[str, Any]]:
        """The answer as plain records, one per cell."""
        low, high = self.interval(confidence)
        if not isinstance(self.value, np.ndarray):
            return [{"value": self.value, "low": low, "high": high}]
        names = list(self.axes)
        records = []
        for place in np.ndindex(self.value.shape):
            record: dict[str, Any] = {}
            axes = self.keys if len(names) != 1 else (self.keys,)
            for axis, index in enumerate(place[: len(axes)]):
                record[kind_named(self.kind).axis or names[axis]] = axes[axis][index]
            if len(place) > len(axes):
                record["term"] = place[-1]  # of several sums, by their order
            record["value"] = float(self.value[place])
            record["low"] = float(np.asarray(low)[place])
            record["high"] = float(np.asarray(high)[place])
            records.append(record)
        return records

    def __float__(self) -> float:
        if isinstance(self.value, np.ndarray):
            raise TypeError("this answer has many values; use .value or .to_pandas()")
        return float(self.value)

    def __repr__(self) -> str:
        said = "" if self.guarantee == PRIVATE else f"{self.guarantee}, "
        told = () if self.bound is None else self.bound.notes  # what the question itself tells
        cost = "; ".join([said + credits_text(self.credits), *told])
        if isinstance(self.value, np.ndarray):
            return f"<Answer {self.kind} of shape {self.value.shape}, {cost}>"
        number, ends = self._bar()
        return f"<Answer {number}, 95% in {ends}, {cost}>"


def derived_note(sources: tuple[int, ...]) -> str:
    """Which receipts a derived answer comes from, the first few by number."""
    listed = ", ".join(map(str, sources[:MOST_NAMED]))
    more = f" and {len(sources) - MOST_NAMED} more" if len(sources) > MOST_NAMED else ""
    return f"derived from receipt{'s' if len(sources) > 1 else ''} {listed}{more}"


def law_text(law: Law) -> str:
    """A law of noise in words."""
    match law:
        case DiscreteGaussian():
            return "Gaussian on whole grid steps"
        case DiscreteLaplace():
            return "Laplace (two-sided geometric) on whole grid steps"
        case DividedLaplace():
            return "Laplace, drawn in shares by several owners, on whole grid steps"
        case DiscreteHuber():
            return "Gaussian in the middle and Laplace beyond, on whole numbers"
        case CentredBinomial(coins=coins):
            return f"{coins:,} fair coins, less half their number"
    return "none"


class Credits(Fraction):
    """An exact number of credits that is shown as people read it, 962.5; counts as a `Fraction`."""

    def __repr__(self) -> str:
        return decimal_left(self).replace(",", "")

    __str__ = __repr__

    def __reduce__(self) -> tuple[type[Fraction], tuple[int, int]]:
        return Fraction, (self.numerator, self.denominator)


class Oracle(Protocol):
    """Everything a learner, an attacker or a client may do.

    An oracle may also say `durable = False`: what it spends is forgotten with its process, as of a
    ledger in memory. One that does not say is taken for durable (`is_durable`).
    """

    @property
    def schema(self) -> Schema:
        """The public facts."""

    @property
    def promise(self) -> Promise:
        """The lifetime guarantee."""

    @property
    def size(self) -> int | None:
        """The public number of rows (persons); None under add-remove."""

    @property
    def remaining(self) -> Fraction:
        """Credits left for a question that touches everybody."""

    def quote(
        self,
        query: object,
        *,
        within: float | None = None,
        confidence: float = 0.95,
        credits: Fraction | int | float | None = None,
        rows: int | None = None,
    ) -> Quote:
        """Price and error bar, free."""

    def ask(
        self,
        query: object,
        *,
        within: float | None = None,
        confidence: float = 0.95,
        credits: Fraction | int | float | None = None,
        rows: int | None = None,
        key: str | None = None,
    ) -> Answer:
        """A noisy answer, charged."""


def is_durable(oracle: Oracle) -> bool:
    """Whether what is spent here is spent for good; so it is unless the oracle says otherwise."""
    return getattr(oracle, "durable", True) is not False


def clipped_text(bound: BoundQuery) -> str:
    """The bounds of the number columns a question reads; empty where it reads none."""
    if bound.schema is None:
        return ""
    names = dict.fromkeys(_columns(bound))
    declared = [column for column in bound.schema.columns if column.name in names]
    numbers = [column for column in declared if isinstance(column, Number)]
    if not numbers:
        return ""
    listed = ", ".join(f"{c.name} to {c.low} .. {c.high}" for c in numbers[:MOST_CLIPPED])
    more = f" and {len(numbers) - MOST_CLIPPED} more" if len(numbers) > MOST_CLIPPED else ""
    return f"{listed}{more}; a value beyond counts as the end it passed"


def _columns(bound: BoundQuery) -> Iterator[str]:
    query = bound.query
    waiting: list[Expression] = [query.rows, *query.terms, *(group.of for group in query.groups)]
    while waiting:
        found = waiting.pop()
        if isinstance(found, Column):
            yield found.name
        elif isinstance(found, Operation):
            waiting += found.operands
