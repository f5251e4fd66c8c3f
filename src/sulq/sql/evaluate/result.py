"""Result: the table a SELECT gives, each aggregate with its interval, with price and receipts.

Sorting, filtering and cutting work on the noisy values and are free: post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sulq.answers.display import (
    MOST_ROWS,
    Comparison,
    bar_parts,
    cell_text,
    compared,
    html_table,
    percent,
    text_table,
)
from sulq.answers.statistics import PairSums
from sulq.errors import InvalidQuery
from sulq.formatting import OUTWARDS, credits_text, moment_of
from sulq.kernel.noise.intervals import Ends, combined, draws_of, inside, spread, variance_interval
from sulq.sql.evaluate.linear_forms import (
    ANYTHING,
    UNKNOWN,
    Estimate,
    Made,
    Mix,
    Noisy,
    Ratio,
    Term,
    as_estimate,
    check,
    nearest,
    outwards,
    product_ends,
    quotient_ends,
    ratio,
)


def terms_of(x: Estimate) -> tuple[float, tuple[Term, ...]]:
    """x as constant + weighted atoms."""
    if isinstance(x, Mix):
        return x.number, x.terms
    if isinstance(x, Noisy) and not x.draws:
        return x.number, ()
    return 0.0, ((1.0, x),)


def mixed(number: float, terms: tuple[Term, ...]) -> Estimate:
    """constant + weighted atoms as the simplest estimate: what is alike is put together."""
    linear = Noisy.exact(number)
    ratios: dict[object, list[tuple[float, Ratio]]] = {}
    others: dict[int, Term] = {}
    for weight, atom in terms:
        if not weight:
            continue
        if isinstance(atom, Noisy):
            linear = linear.plus(atom, weight)
        elif isinstance(atom, Ratio):
            alike = (atom.bottom.number, tuple(atom.bottom.draws.items()))
            ratios.setdefault(alike, []).append((weight, atom))
        else:
            others[id(atom)] = (others.get(id(atom), (0.0, atom))[0] + weight, atom)
    kept = [_one_bottom(alike) for alike in ratios.values()]
    kept += others.values()
    known = [(weight, atom) for weight, atom in kept if weight and _is_known(atom)]
    linear = linear.plus(Noisy.exact(sum(weight * atom.value for weight, atom in known)))
    kept = [(weight, atom) for weight, atom in kept if weight and not _is_known(atom)]
    if not kept:
        return linear
    if linear.draws:
        return Mix(0.0, ((1.0, linear), *kept))
    if len(kept) == 1 and linear.number == 0 and kept[0][0] == 1:
        return kept[0][1]
    return Mix(linear.number, tuple(kept))


def _is_known(atom: Estimate) -> bool:
    """Whether it is one public number; what is said of no rows is public, and no number."""
    if atom.rests_on or not math.isfinite(atom.value):
        return False
    low, high = atom.interval()
    return low == high


def _one_bottom(alike: list[tuple[float, Ratio]]) -> Term:
    """Ratios with one bottom are one ratio."""
    if len({id(atom) for _, atom in alike}) == 1:
        return sum(weight for weight, _ in alike), alike[0][1]
    top, limits = Noisy.exact(0.0), (0.0, 0.0)
    for weight, atom in alike:
        top = top.plus(atom.top, weight)
        low, high = sorted(weight * end for end in atom.limits)
        limits = (limits[0] + low, limits[1] + high)
    return (1.0, Ratio(top, alike[0][1].bottom, limits)) if top.draws else (0.0, top)


def as_ratio(x: Estimate) -> tuple[Noisy, Noisy] | None:
    """(top, bottom) where x is a ratio of linear forms: a scaled or shifted one is one too."""
    if isinstance(x, Noisy):
        return x, Noisy.exact(1.0)
    number, terms = terms_of(x)
    if len(terms) != 1:
        return None
    weight, atom = terms[0]
    if not isinstance(atom, Ratio):
        return None
    return atom.bottom.times(number).plus(atom.top, weight), atom.bottom


def combine(sign: str, left: Estimate, right: Estimate) -> Estimate:
    """left sign right: linear where it can be, one ratio where it can be, else from intervals."""
    if sign in "+-":
        number, terms = terms_of(left)
        more, others = terms_of(right)
        turn = 1.0 if sign == "+" else -1.0
        weighted = tuple((turn * weight, atom) for weight, atom in others)
        return mixed(number + turn * more, terms + weighted)
    plain = right if isinstance(right, Noisy) and not right.draws else None
    if sign == "*" and plain is None and isinstance(left, Noisy) and not left.draws:
        plain, left = left, right
    if plain is not None and (sign == "*" or plain.number):
        factor = plain.number if sign == "*" else 1 / plain.number
        number, terms = terms_of(left)
        return mixed(number * factor, tuple((weight * factor, atom) for weight, atom in terms))
    if sign == "/" and (one := _one_ratio(left, right)) is not None:
        return one
    return Made((left, right), _VALUES[sign], _BOUNDS[sign])


def _one_ratio(left: Estimate, right: Estimate) -> Estimate | None:
    """(a / n) / (b / n) is a / b; a / (b / n) is one only if a is a number."""
    over, under = as_ratio(left), as_ratio(right)
    if over is None or under is None:
        return None
    if _alike(over[1], under[1]):
        return ratio(over[0], under[0])
    if isinstance(left, Noisy) and not left.draws:
        return ratio(under[1].times(left.number), under[0])
    return None


def _alike(first: Noisy, second: Noisy) -> bool:
    return first.number == second.number and dict(first.draws) == dict(second.draws)


_VALUES: dict[str, Callable[..., float]] = {
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y if y else math.nan,
}
_BOUNDS: dict[str, Callable[..., Ends]] = {"*": product_ends, "/": quotient_ends}

Estimate.combine = combine

# + - * / of estimates: linear where it can be, one ratio where it can be, else from intervals.


__all__ = [
    "Estimate",
    "Made",
    "Mix",
    "Noisy",
    "Ratio",
    "Stated",
    "Variance",
    "as_estimate",
    "as_ratio",
    "mean",
    "power",
    "product",
    "ratio",
    "root",
    "variance",
]


@dataclass(frozen=True, slots=True, eq=False)
class Stated(Estimate):
    """An estimate whose interval is known elsewhere, such as a quantile's."""

    number: float
    stating: Callable[[float], Ends]
    limits: Ends = ANYTHING
    names: frozenset[Hashable] = frozenset()
    said: str = ""
    rank: Callable[[float], float] | None = None
    """Of a quantile: how far off its rank may be, as a share of the rows, at a confidence."""
    whole: bool = False
    """A count: shown as a whole number."""
    exact: bool = False
    """Made of sums without noise."""

    @property
    def public(self) -> bool:
        return self.exact or not self.names

    @property
    def value(self) -> float:
        return nearest(self.number) if self.whole else self.number

    @property
    def unrounded(self) -> Estimate:
        return replace(self, whole=False) if self.whole else self

    @property
    def note(self) -> str:
        return self.said

    @property
    def rests_on(self) -> frozenset[Hashable]:
        return self.names

    @property
    def possible(self) -> Ends:
        return self.limits

    def interval(self, confidence: float = 0.95) -> Ends:
        check(confidence)
        low, high = self.stating(confidence)
        ends = inside(self.number, (float(low), float(high)), self.limits)
        return outwards(ends) if self.whole else ends


@dataclass(frozen=True, slots=True, eq=False)
class Variance(Estimate):
    """The variance of x in [low, high] from count, total of x and total of x^2."""

    sums: tuple[Noisy, Noisy, Noisy]
    low: float
    high: float

    @property
    def value(self) -> float:
        n, total, square = (form.number for form in self.sums)
        if n <= 0:
            return self.possible[1] / 2
        at = total / n
        error = spread(draws_of(combined(self.sums[1].draws, -at, self.sums[0].draws))) / n
        found = square / n - at**2 + error**2  # S0.8: the square of a noisy mean is too large
        return min(max(found, 0.0), self.possible[1])

    @property
    def note(self) -> str:
        return UNKNOWN if self.interval() == self.possible else ""

    @property
    def rests_on(self) -> frozenset[Hashable]:
        return frozenset().union(*(form.rests_on for form in self.sums))

    @property
    def possible(self) -> Ends:
        return 0.0, ((self.high - self.low) / 2) ** 2

    def interval(self, confidence: float = 0.95) -> Ends:
        check(confidence)
        if self.sums[0].number <= 0:
            return self.possible
        numbers, forms = zip(*((form.number, form.draws) for form in self.sums), strict=True)
        return variance_interval(numbers, forms, confidence, self.low, self.high)


@dataclass(frozen=True, slots=True, eq=False)
class PairEstimate(Estimate):
    """The covariance or the correlation of two values, from sums with noise."""

    sums: PairSums
    correlation: bool

    @property
    def value(self) -> float:
        return (self.sums.correlation() if self.correlation else self.sums.covariance())[0]

    @property
    def note(self) -> str:
        return UNKNOWN if self.interval() == self.possible else ""

    @property
    def rests_on(self) -> frozenset[Hashable]:
        return frozenset().union(*(form.keys() for form in self.sums.forms))

    @property
    def possible(self) -> Ends:
        most = 1.0 if self.correlation else self.sums.largest
        return -most, most

    def interval(self, confidence: float = 0.95) -> Ends:
        check(confidence)
        if self.correlation:
            return self.sums.correlation_ends(confidence)
        return self.sums.covariance_ends(confidence)


def product(left: Estimate, right: Estimate) -> Estimate:
    """left * right."""
    return left * right


def power(x: Estimate, exponent: int) -> Estimate:
    """x^exponent, a whole number from 1."""
    if exponent < 1:
        raise InvalidQuery(f"a power got the exponent {exponent!r}; want a whole number from 1")

    def bounds(ends: Ends) -> Ends:
        low, high = sorted(_power(end, exponent) for end in ends)
        return (0.0 if exponent % 2 == 0 and ends[0] < 0 < ends[1] else low), high

    return Made((x,), lambda value: _power(value, exponent), bounds)


def root(x: Estimate) -> Estimate:
    """The square root; of a negative value 0, for what is estimated is not negative."""
    return Made(
        (x,),
        lambda value: math.sqrt(max(value, 0.0)) if value == value else value,
        lambda ends: (math.sqrt(max(ends[0], 0.0)), math.sqrt(max(ends[1], 0.0))),
    )


def mean(count: Noisy, centred: Noisy, middle: float, low: float, high: float) -> Estimate:
    """The mean from a count and the total of (x - middle), x in [low, high]."""
    return ratio(centred, count, low=low - middle, high=high - middle) + middle


def variance(
    count: Noisy, centred: Noisy, square: Noisy, low: float, high: float, middle: float = 0.0
) -> Estimate:
    """The variance of x in [low, high] from a count, totals of x - middle and of its square."""
    return Variance((count, centred, square), low - middle, high - middle)


def _power(x: float, exponent: int) -> float:
    try:
        return float(x**exponent)
    except OverflowError:
        return math.inf if x > 0 or exponent % 2 == 0 else -math.inf


NO_READING = "no reading"
Cell = object
"""A key as the schema spells it, or an Estimate."""


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a result; an aggregate unless it is a key."""

    name: str
    is_key: bool = False
    unit: str = ""
    kind: str = "number"  # or date, datetime: its numbers are shown as days or times
    type: str = "number"
    """What its cells are: integer, number, text, truth, date or datetime; known before asking."""


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """Rows of keys and estimates. `confidence` is what its intervals are stated at."""

    columns: tuple[ResultColumn, ...]
    rows: tuple[tuple[Cell, ...], ...]
    credits: Fraction = Fraction(0)
    receipts: tuple[Any, ...] = ()
    notes: tuple[str, ...] = ()
    confidence: float = 0.95
    held: str = "the true value"
    """What [low, high] holds: of persons, the value over the rows that count."""

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise InvalidQuery(f"confidence got {self.confidence!r}; want a number between 0 and 1")
        wrong = [row for row in self.rows if len(row) != len(self.columns)]
        if wrong:
            raise InvalidQuery(
                f"a row of a result got {len(wrong[0])} cells; want {len(self.columns)}"
            )

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Cell]]:
        """Each row as {column: key or Estimate}."""
        names = [column.name for column in self.columns]
        return (dict(zip(names, row, strict=True)) for row in self.rows)

    def place(self, name: str) -> int:
        """Where the column of this name stands; case is ignored where that is unambiguous."""
        names = [column.name for column in self.columns]
        if name in names:
            return names.index(name)
        alike = [place for place, held in enumerate(names) if held.lower() == name.lower()]
        if len(alike) == 1:
            return alike[0]
        raise InvalidQuery(f"the result has no column {name!r}; it has {', '.join(names)}")

    def column(self, name: str) -> tuple[Cell, ...]:
        """The cells of one column."""
        place = self.place(name)
        return tuple(row[place] for row in self.rows)

    def cell(self, name: str | None = None, row: int = 0) -> Estimate:
        """One estimate; the only one where no name is given."""
        if name is None:
            names = [column.name for column in self.columns if not column.is_key]
            if len(names) != 1:
                raise InvalidQuery(f"say which column: {', '.join(names) or 'there is none'}")
            name = names[0]
        if not -len(self.rows) <= row < len(self.rows):
            raise InvalidQuery(f"the result has {len(self.rows)} rows; got row {row}")
        found = self.rows[row][self.place(name)]
        if not isinstance(found, Estimate):
            raise InvalidQuery(f"{name} is a key, not an aggregate")
        return found

    # --- post-processing: free, on noisy values ---

    def sorted_by(self, *names: str, descending: bool | tuple[bool, ...] = False) -> Result:
        """Rows by these columns, the first counting most; unknown values come last."""
        down = (descending,) * len(names) if isinstance(descending, bool) else descending
        if len(down) != len(names):
            raise InvalidQuery(f"descending got {len(down)} entries for {len(names)} columns")
        rows = list(self.rows)
        for name, falling in reversed(list(zip(names, down, strict=True))):
            place = self.place(name)
            known = [row for row in rows if not _unknown(row[place])]
            blank = [row for row in rows if _unknown(row[place])]
            known.sort(key=lambda row, place=place: _order(row[place]), reverse=falling)  # type: ignore[misc]
            rows = known + blank
        return replace(self, rows=tuple(rows))

    def filtered(self, keep: Callable[[dict[str, Any]], bool]) -> Result:
        """The rows for which `keep` says yes; it sees {column: key or noisy value}."""
        held = [
            row
            for row, record in zip(self.rows, self, strict=True)
            if keep({name: _plain(cell) for name, cell in record.items()})
        ]
        return replace(self, rows=tuple(held))

    def limited(self, most: int | None, skip: int = 0) -> Result:
        """At most so many rows, after the first `skip`."""
        end = None if most is None else skip + most
        return replace(self, rows=self.rows[skip:end])

    def compare(self, first: int, second: int, column: str | None = None) -> Comparison:
        """Whether two rows of a column differ at this result's confidence."""
        left, right = self.cell(column, first), self.cell(column, second)
        names = (self._row_name(first), self._row_name(second))
        return compare(left, right, self.confidence, *names)

    def _row_name(self, row: int) -> str:
        keys = [
            str(cell)
            for cell, column in zip(self.rows[row], self.columns, strict=True)
            if column.is_key
        ]
        return ", ".join(keys) or f"row {row}"

    # --- giving it on ---

    def records(self, confidence: float | None = None) -> list[dict[str, Any]]:
        """Plain records: keys as they are; an aggregate `n` as n, n_low and n_high.

        Where the interval is all that is possible there is no reading: n is None.
        """
        columns = self._flat(confidence)
        names = list(columns)
        if not names:
            return [{} for _ in self.rows]
        cells = zip(*columns.values(), strict=True)
        return [dict(zip(names, row, strict=True)) for row in cells]

    def to_pandas(self) -> Any:
        """A pandas data frame, as `records`."""
        import pandas

        return pandas.DataFrame(self._flat())

    def to_polars(self) -> Any:
        """A polars data frame, as `records`."""
        import polars

        return polars.DataFrame(self._flat(), strict=False)

    def to_arrow(self) -> Any:
        """An Arrow table, as `records`."""
        import pyarrow

        return pyarrow.table(self._flat())

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """The Arrow stream of `to_arrow`: `pyarrow.table(result)`, `polars.DataFrame(result)`."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _flat(self, confidence: float | None = None) -> dict[str, list[Any]]:
        level = self.confidence if confidence is None else confidence
        taken = {column.name for column in self.columns}
        flat: dict[str, list[Any]] = {}
        for place, column in enumerate(self.columns):
            cells = [row[place] for row in self.rows]
            if column.is_key:
                flat[column.name] = [
                    str(cell) if isinstance(cell, tuple) else cell for cell in cells
                ]
                continue
            estimates = [as_estimate(cell) for cell in cells]  # type: ignore[arg-type]
            ends = [estimate.interval(level) for estimate in estimates]
            flat[column.name] = [
                None if estimate.unread(level) else moment_of(estimate.value, column.kind)
                for estimate in estimates
            ]
            for suffix, side in (("_low", 0), ("_high", 1)):
                name = column.name + suffix
                while name in taken:
                    name += "_"
                flat[name] = [moment_of(end[side], column.kind, OUTWARDS[side]) for end in ends]
        return flat

    # --- showing it ---

    def texts(self) -> tuple[list[str], list[list[str]], list[bool]]:
        """Return heads, rows as text, and which columns are set to the right."""
        heads = [f"{c.name} ({c.unit})" if c.unit else c.name for c in self.columns]
        rows = [
            [
                _text(cell, self.confidence, column.kind)
                for cell, column in zip(row, self.columns, strict=True)
            ]
            for row in self.rows[:MOST_ROWS]
        ]
        rows += [[""] * len(heads)] * (len(self.rows) - len(rows))  # counted, not shown
        return heads, rows, [not column.is_key for column in self.columns]

    def _foot(self) -> list[str]:
        said = [f"[low, high] holds {self.held} at {percent(self.confidence)}"]
        said.append(credits_text(self.credits))
        shown = self.rows[:MOST_ROWS]
        cells = [cell for row in shown for cell in row if isinstance(cell, Estimate)]
        told = dict.fromkeys(cell.note for cell in cells if cell.note)
        return ["; ".join(said), *dict.fromkeys([*self.notes, *told])]

    def __repr__(self) -> str:
        return "\n".join([text_table(*self.texts()), *self._foot()])

    def _repr_html_(self) -> str:
        return html_table(*self.texts(), self._foot())


def compare(
    a: Estimate | float,
    b: Estimate | float,
    confidence: float = 0.95,
    first: str = "the first",
    second: str = "the second",
) -> Comparison:
    """Which is larger and how sure, or "not distinguishable"; shared draws cancel."""
    difference = combine("-", as_estimate(a), as_estimate(b))
    return compared(difference.value, difference.interval, confidence, first, second)


def _plain(cell: Cell) -> Any:
    return cell.value if isinstance(cell, Estimate) else cell


def _unknown(cell: Cell) -> bool:
    value = _plain(cell)
    return value is None or (isinstance(value, float) and math.isnan(value))


def _order(cell: Cell) -> Any:
    value = _plain(cell)
    if isinstance(value, bool | int | float):
        return (0, value, "")
    if isinstance(value, tuple):
        return (1, tuple(_order(part) for part in value), "")
    return (2, 0, str(value))


def _text(cell: Cell, confidence: float, kind: str) -> str:
    if not isinstance(cell, Estimate):
        return cell_text(cell)
    low, high = cell.interval(confidence)
    unread = cell.unread(confidence)
    if kind == "number":
        number, interval = bar_parts(cell.value, low, high)
        if unread:
            number = NO_READING
        return number if low == high == cell.value and cell.public else f"{number} {interval}"
    value = NO_READING if unread else _moment_text(moment_of(cell.value, kind), "unknown")
    ends = (_moment_text(moment_of(e, kind, r), "unbounded") for e, r in zip((low, high), OUTWARDS))  # noqa: B905
    return f"{value} [{', '.join(ends)}]"


def _moment_text(moment: Any, otherwise: str) -> str:
    return otherwise if moment is None else str(moment)
