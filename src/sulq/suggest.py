"""Tighter bounds, clips and max_rows, proposed from noisy answers: priced like any question.

Bounds come from one distribution over the declared, generous range. On a table of persons, rows
and sums per person come in doubling bands: clip(s, a, b) - a is what a person has between a and b,
so the bands above a clip add up to what that clip would cut off. Rows are counted before any is
cut (`rows_held`, P.1), up to a ceiling for each person: so a share of kept rows is one of the file.
Post-processing of answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise

import numpy as np

from sulq.answers.distribution import Distribution, Floats
from sulq.answers.oracle import Answer, Oracle
from sulq.answers.statistics import distribution, per_person, rows_held, total
from sulq.errors import InvalidQuery, Refused
from sulq.kernel.query.expressions import col
from sulq.kernel.query.sum_query import Statistic
from sulq.kernel.schema.columns import Number, Schema
from sulq.kernel.schema.sensitivity import MOST_HELD

KEEP = 0.998
"""The share of the rows that proposed bounds leave as they are."""
KEEP_ROWS = 0.95
"""The share of the rows that a proposed max_rows keeps."""
Credits = Fraction | int | float
BANDS = 10
LEAST_CEILING, CEILING_TIMES = 16, 4
"""Rows are looked at up to this many of each person, or this many times max_rows."""
Z = 1.96


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds for a column: few rows lie outside, and totals carry less noise."""

    column: str
    declared: tuple[float, float]
    proposed: tuple[float, float]
    outside: float
    outside_error: float
    error_now: float
    error_then: float
    """The standard error of a total at one credit."""


@dataclass(frozen=True, slots=True)
class Clip:
    """A clip for sums per person: what it cuts off and the noise it brings, together least."""

    column: str
    proposed: float
    total: float
    cut: float
    cut_error: float
    noise: float
    """The standard error of the clipped total at one credit."""


@dataclass(frozen=True, slots=True)
class MaxRows:
    """How many rows of a person to keep.

    `kept` is the share of the file's rows that each max_rows keeps, of each person `ceiling` rows
    being looked at; `beyond` is how many persons have more.
    """

    declared: int
    proposed: int
    kept: dict[int, float]
    price_now: int
    price_then: int
    """Credits for a count of rows."""
    kept_error: dict[int, float]
    ceiling: int
    beyond: float
    beyond_error: float


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What was proposed, and what finding it cost."""

    bounds: tuple[Bounds, ...]
    clips: tuple[Clip, ...]
    max_rows: MaxRows | None
    credits: Fraction


@dataclass(frozen=True, slots=True)
class BoundsPlan:
    """The questions a suggestion rests on: known before anything is asked."""

    columns: tuple[str, ...]
    rows: tuple[tuple[int, int], ...]
    sums: tuple[tuple[str, float, float], ...]

    @property
    def questions(self) -> list[Statistic]:
        bounds = [distribution(name) for name in self.columns]
        rows = [rows_held(band) for band in self.rows]
        return bounds + rows + [per_person(total(x), (a, b)) for x, a, b in self.sums]


def plan_of(schema: Schema, size: int | None, columns: Sequence[str] = ()) -> BoundsPlan:
    """Which questions to ask: from the schema alone."""
    numbers = [c for c in schema.columns if isinstance(c, Number) and c.kind == "number"]
    known = [column.name for column in numbers]
    for name in columns:
        if name not in known:
            raise InvalidQuery(f"bounds are proposed for plain numbers {known}, got {name!r:.60}")
    wanted = [column for column in numbers if not columns or column.name in columns]
    if not wanted:
        raise InvalidQuery("no plain Number is declared, so there are no bounds to propose")
    names = tuple(column.name for column in wanted)
    if schema.unit == "row" or size is None:
        return BoundsPlan(names, (), ())
    m = schema.max_rows
    sums = tuple(
        (column.name, *band)
        for column in wanted
        if column.range[0] >= 0 and m > 1
        for band in _bands(m * float(column.range[1]))
    )
    return BoundsPlan(names, _row_bands(m), sums)


def _row_bands(m: int) -> tuple[tuple[int, int], ...]:
    """1 to the ceiling in doubling steps, with max_rows among them; then who has more."""
    most = min(max(LEAST_CEILING, CEILING_TIMES * m), MOST_HELD - 1)
    edges = {1 << i for i in range(most.bit_length())} | {m, most}
    return (*pairwise(sorted(edges)), (most, most + 1))


def _bands(top: float) -> list[tuple[float, float]]:
    """0 to top, in doubling steps."""
    ends = [0.0, *(top / 2**i for i in range(BANDS - 1, -1, -1))]
    return list(pairwise(ends))


def stakes(oracle: Oracle, plan: BoundsPlan, credits: Credits | None) -> list[Fraction]:
    """What to spend on each: 2 credits on a distribution, 1 on a band, or in proportion."""
    if oracle.promise.noise in ("binomial", "huber"):
        raise InvalidQuery(
            f"{oracle.promise.noise} noise answers counts, for which bounds do not matter; they do"
            " with gaussian or laplace noise"
        )
    weights = [Fraction(2)] * len(plan.columns) + [Fraction(1)] * len(plan.rows + plan.sums)
    if credits is None:
        return weights
    if isinstance(credits, bool) or not credits > 0:
        raise InvalidQuery(f"credits must be above 0, got {credits!r:.40}")
    return [Fraction(str(credits)) * weight / sum(weights) for weight in weights]


def price_of(oracle: Oracle, plan: BoundsPlan, credits: Credits | None = None) -> Fraction:
    """What the plan costs, less what was asked before; free to know."""
    pairs = zip(plan.questions, stakes(oracle, plan, credits), strict=True)
    return sum((oracle.quote(asked, credits=own).credits for asked, own in pairs), Fraction(0))


def suggest(
    oracle: Oracle,
    columns: Sequence[str] = (),
    *,
    keep: float = KEEP,
    credits: Credits | None = None,
) -> Suggestion:
    """Ask the plan's questions, `credits` in all, and propose; nothing is asked if it is short."""
    if not isinstance(keep, int | float) or not 0.5 < keep < 1:
        raise InvalidQuery(f"keep is a share between 0.5 and 1, got {keep!r:.40}")
    plan = plan_of(oracle.schema, oracle.size, columns)
    due = price_of(oracle, plan, credits)
    if due > oracle.remaining:
        raise Refused(
            f"this costs {float(due):g} credits in {len(plan.questions)} questions,"
            f" {float(oracle.remaining):g} are left; name fewer columns or give fewer credits"
        )
    found = [
        oracle.ask(asked, credits=own)
        for asked, own in zip(plan.questions, stakes(oracle, plan, credits), strict=True)
    ]
    spent = sum((answer.credits for answer in found), Fraction(0))
    bounds = [_bounds(oracle, n, a, keep) for n, a in zip(plan.columns, found, strict=False)]
    rest = found[len(plan.columns) :]
    rows = _max_rows(oracle, plan, rest[: len(plan.rows)]) if plan.rows else None
    clips = _clips(oracle, plan, rest[len(plan.rows) :])
    return Suggestion(tuple(bounds), tuple(clips), rows, spent)


def _bounds(oracle: Oracle, name: str, answer: Answer, keep: float) -> Bounds:
    found = answer.distribution
    column = oracle.schema[name]
    assert isinstance(column, Number)  # noqa: S101
    declared = (float(column.range[0]), float(column.range[1]))
    low, high = _where_rows_are(found, (1 - keep) / 2)
    low, high = _outward(low, high, float(column.step or 0))
    low, high = max(low, declared[0]), min(high, declared[1])
    if found.total <= Z * math.sqrt(found.variance[-1]) or low >= high:
        low, high = declared  # too little is known
    at = found.edges.searchsorted([low, high])
    outside = max(0.0, float(found.raw[at[0]] + found.raw[-1] - found.raw[at[1]]))
    spread = math.sqrt(found.variance[at[0]]) + math.sqrt(_above_variance(found)[at[1]])
    now = _total_error(oracle, total(name))
    then = _total_error(oracle, total(col(name).clip(low, high)))
    return Bounds(name, declared, (low, high), outside, spread, now, then)


def _where_rows_are(found: Distribution, tail: float) -> tuple[float, float]:
    """Edges beyond which no more than a tail's rows are seen, or than noise alone may show."""
    below, last = found.below, len(found.edges) - 1
    above = below[-1] - below
    few = np.maximum(tail * below[-1], Z * np.sqrt(found.variance))
    few_above = np.maximum(tail * below[-1], Z * np.sqrt(_above_variance(found)))
    begun = np.nonzero(below > few)[0]
    going_on = np.nonzero(above > few_above)[0]
    low = int(begun[0]) - 1 if len(begun) else 0
    high = int(going_on[-1]) + 1 if len(going_on) else last
    return float(found.edges[max(low, 0)]), float(found.edges[min(high, last)])


def _above_variance(found: Distribution) -> Floats:
    """Of the rows at or above each edge."""
    spread: Floats = found.variance[-1] - 2 * found.with_total + found.variance
    return np.maximum(spread, 0.0)


def _total_error(oracle: Oracle, asked: Statistic) -> float:
    """Of one credit's worth; a public sum has none."""
    free = oracle.quote(asked)
    return float((oracle.quote(asked, credits=1) if free.credits else free).standard_error)


def _outward(low: float, high: float, step: float) -> tuple[float, float]:
    """To two digits of their distance, away from each other."""
    width = max(high - low, step)
    if width <= 0:
        return low, high
    unit = max(10.0 ** (math.floor(math.log10(width)) - 1), step)
    return _whole(math.floor(low / unit) * unit), _whole(math.ceil(high / unit) * unit)


def _whole(number: float) -> float:
    return float(f"{number:.12g}")


def _max_rows(oracle: Oracle, plan: BoundsPlan, answers: Sequence[Answer]) -> MaxRows:
    persons = oracle.size or 0
    found = [
        max(0.0, float(a) - low * persons) for (low, _), a in zip(plan.rows, answers, strict=True)
    ]
    *bands, beyond = found
    *errors, beyond_error = (float(answer.standard_error) for answer in answers)
    edges = [1, *(high for _, high in plan.rows[:-1])]
    kept = list(accumulate(bands, initial=float(persons)))
    whole = max(kept[-1], 1.0)
    shares = {rows: value / whole for rows, value in zip(edges, kept, strict=True)}
    off = {
        rows: math.hypot(*(((at < place) - share) * e for at, e in enumerate(errors))) / whole
        for place, (rows, share) in enumerate(shares.items())
    }
    proposed = min(rows for rows, share in shares.items() if share >= KEEP_ROWS)
    m, square = oracle.schema.max_rows, oracle.promise.noise == "gaussian"
    now, then = (rows**2 if square else rows for rows in (m, proposed))
    return MaxRows(m, proposed, shares, now, then, off, edges[-1], beyond, beyond_error)


def _clips(oracle: Oracle, plan: BoundsPlan, answers: Sequence[Answer]) -> list[Clip]:
    """For each column the clip whose cut and noise (95 % of it) are least together."""
    persons = oracle.size or 0
    found: list[Clip] = []
    for name in dict.fromkeys(x for x, _, _ in plan.sums):
        mine = [
            (a, b, answer)
            for (x, a, b), answer in zip(plan.sums, answers, strict=True)
            if x == name
        ]
        bands = [float(answer) - a * persons for a, _, answer in mine]
        errors = [float(answer.standard_error) for _, _, answer in mine]
        options = []
        for place, (_, high, _) in enumerate(mine):
            cut = max(0.0, sum(bands[place + 1 :]))
            spread = math.hypot(*errors[place + 1 :])
            noise = _total_error(oracle, per_person(total(name), (0, high)))
            options.append(Clip(name, high, sum(bands), cut, spread, noise))
        found.append(min(options, key=lambda clip: clip.cut + Z * clip.cut_error + Z * clip.noise))
    return found
