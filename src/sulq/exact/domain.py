"""Every row there could be, as far as a batch can tell: public classes, contexts, free values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from sulq.errors import InvalidQuery, UnsafeExactly
from sulq.kernel.schema import program as b
from sulq.kernel.schema.bind_rows import like
from sulq.kernel.schema.columns import Category, Column, Flag, Number, Schema
from sulq.kernel.schema.program import Matches, RowSums
from sulq.kernel.schema.ranges import mentioned

Row = Mapping[str, object]
"""Column -> a declared value, a number on its lattice, True, False, or None for missing."""


def adds(programs: Sequence[b.RowSums], row: Row) -> tuple[int, ...]:
    """The row's contribution to every sum of every question, in order."""
    found: list[int] = []
    for program in programs:
        values = [_integer(term, row) or 0 for term in program.terms]
        sizes = [b.cell_count(group) for group in program.groups]
        sums = [0] * (math.prod(sizes) * len(values))
        places = [_cell(group, row) for group in program.groups]
        if _holds(program.rows, row) and None not in places:
            at = 0
            for size, place in zip(sizes, places, strict=True):
                at = at * size + (place or 0)
            sums[at * len(values) : (at + 1) * len(values)] = values
        found += sums
    return tuple(found)


def _cell(group: b.Cells, row: Row) -> int | None:
    """The row's cell, or None where it has none."""
    last = b.cell_count(group) - 1 if group.other else None
    match group:
        case b.CategoryCells(column, values):
            return values.index(row[column]) if row[column] in values else last
        case b.FlagCells(column):
            return last if row[column] is None else int(bool(row[column]))
        case b.BinCells(value, edges):
            v = _integer(value, row)
            if v is None or not edges[0] <= v <= edges[-1]:
                return last
            return min(sum(edge <= v for edge in edges), len(edges) - 1) - 1


def _integer(node: b.Integer, row: Row) -> int | None:
    match node:
        case b.Quantised(column, low, high, per_unit):
            raw = row[column]
            if raw is None:
                return None
            return math.floor(min(max(float(raw), low), high) * per_unit + 0.5)  # type: ignore[arg-type]
        case b.FlagBit(column):
            return None if row[column] is None else int(bool(row[column]))
        case b.Fixed(value):
            return value
        case b.Added(parts):
            values = [_integer(part, row) for part in parts]
            return None if None in values else sum(v for v in values if v is not None)
        case b.Divided() | b.Multiplied() | b.Lesser() | b.Greater():
            return _of_two(node, row)
        case _:
            return _of_one(node, row)


def _of_one(node: b.Integer, row: Row) -> int | None:
    match node:
        case b.BoundChoice(condition, then, otherwise):
            return _integer(then if _holds(condition, row) else otherwise, row)
        case b.FirstOf(value, instead):
            first = _integer(value, row)
            return _integer(instead, row) if first is None else first
        case b.BoundScaled(value, factor):
            return _mapped(_integer(value, row), lambda v: v * factor)
        case b.Magnitude(value):
            return _mapped(_integer(value, row), abs)
        case b.Shifted(value, bits):
            half = 1 << bits >> 1
            return _mapped(_integer(value, row), lambda v: (v + half) >> bits)
        case b.HashedBit(value, (p, q, r, s)):
            return _mapped(
                _integer(value, row), lambda v: ((p * v**3 + q * v**2 + r * v + s) % b.PRIME) % 2
            )
    raise AssertionError(node)


def _of_two(node: b.Divided | b.Multiplied | b.Lesser | b.Greater, row: Row) -> int | None:
    match node:
        case b.Divided(over, under):
            return _paired(_integer(over, row), _integer(under, row), _nearest)
        case b.Multiplied(left, right):
            return _paired(_integer(left, row), _integer(right, row), lambda v, w: v * w)
        case b.Lesser(left, right):
            return _paired(_integer(left, row), _integer(right, row), min)
        case b.Greater(left, right):
            return _paired(_integer(left, row), _integer(right, row), max)


def _nearest(over: int, under: int) -> int:
    return (2 * over + under) // (2 * under)


def _mapped(value: int | None, change: object) -> int | None:
    return None if value is None else change(value)  # type: ignore[operator]


def _paired(left: int | None, right: int | None, join: object) -> int | None:
    return None if left is None or right is None else join(left, right)  # type: ignore[operator]


def _holds(condition: b.Condition, row: Row) -> bool:
    match condition:
        case b.Always() | b.OfTable():
            return True
        case b.Never():
            return False
        case b.AllOf(parts):
            return all(_holds(part, row) for part in parts)
        case b.AnyOf(parts):
            return any(_holds(part, row) for part in parts)
        case b.Compared(operator, left, right):
            v, w = _integer(left, row), _integer(right, row)
            if v is None or w is None:
                return False
            return {"<": v < w, "<=": v <= w, "=": v == w, "<>": v != w}[operator]
        case b.FlagIs(column, value):
            return row[column] is value
        case b.Among(column, values, negated):
            raw = row[column]
            return raw is not None and (raw in values) is not negated
        case b.Matches(column, pattern, negated):
            raw = row[column]
            return isinstance(raw, str) and like(pattern, raw) is not negated
        case b.Missing(b.Text(column), negated):
            return (row[column] is None) is not negated
        case b.Missing(subject, negated):
            assert not isinstance(subject, b.Text)  # noqa: S101
            return (_integer(subject, row) is None) is not negated


# What one row adds to a batch, computed from the bound program alone: no engine, no data.


MOST_ROWS = 20_000
"""Possible rows of one class that are looked at."""
UNDECLARED = "\x00undeclared"
"""Stands for any text or number that was not declared: no condition can single one out."""

Vector = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What the owner vouches for, given everything an adversary knows.

    `least[column]`: every declared value of that private column has at least this probability,
    whatever all other columns say; rows are independent. At most `known_rows` rows become known.
    """

    epsilon: Fraction
    delta: Fraction
    known_rows: int
    least: Mapping[str, Fraction]

    def __init__(
        self, epsilon: object, delta: object, known_rows: int = 0, least: object = None
    ) -> None:
        put = object.__setattr__
        put(self, "epsilon", _positive(epsilon, "epsilon"))
        put(self, "delta", _positive(delta, "delta"))
        if not 0 < self.delta < 1:
            raise InvalidQuery(f"delta must lie between 0 and 1, got {delta!r:.40}")
        if isinstance(known_rows, bool) or not isinstance(known_rows, int) or known_rows < 0:
            raise InvalidQuery(
                f"known_rows must be a whole number, 0 or more; got {known_rows!r:.40}"
            )
        put(self, "known_rows", known_rows)
        if not isinstance(least, Mapping) or not least:
            raise InvalidQuery("least must say which columns are uncertain: {'ill': 0.05}")
        read = {str(name): _positive(share, f"least[{name!r}]") for name, share in least.items()}
        put(self, "least", read)


def _positive(value: object, name: str) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Fraction):
        raise InvalidQuery(f"{name} must be a number above 0, got {value!r:.40}")
    try:
        number = Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
    except (ValueError, ZeroDivisionError):
        raise InvalidQuery(f"{name} must be a number above 0, got {value!r:.40}") from None
    if number <= 0:
        raise InvalidQuery(f"{name} must be a number above 0, got {value!r:.40}")
    return number


@dataclass(frozen=True, slots=True)
class PublicClass:
    """The rows that share their public columns: what each possible one adds to the batch.

    `contexts[z][y]` is what a row adds that has the uncertain values y and the other private
    values z; `chances[y]` bounds the probability of y from below; `all` lists every addition,
    missing and undeclared values included.
    """

    rows: int
    contexts: tuple[tuple[Vector, ...], ...]
    chances: tuple[Fraction, ...]
    all: frozenset[Vector]


@dataclass(frozen=True, slots=True)
class Domain:
    """The columns a batch reads, sorted by what is known of them."""

    schema: Schema
    programs: tuple[RowSums, ...]
    public: tuple[str, ...]
    uncertain: tuple[str, ...]
    context: tuple[str, ...]
    least: Mapping[str, Fraction]

    @classmethod
    def of(
        cls, programs: Sequence[RowSums], schema: Schema, least: Mapping[str, Fraction]
    ) -> Domain:
        """Refuse what has no natural lattice or could be singled out by text."""
        for name, share in least.items():
            _check_on_lattice(schema[name])
            count = len(values_of(schema[name]))
            if schema[name].public:
                raise InvalidQuery(f"{name} is public: nothing of it is uncertain")
            if share * count > 1:
                raise InvalidQuery(
                    f"least[{name!r}] = {float(share):g} cannot hold for each of {count} values"
                )
        read: dict[str, None] = {}
        for program in programs:
            read.update(dict.fromkeys(columns_of(program)))
            if _texts(program):
                raise UnsafeExactly("LIKE can single out a text; an exact batch compares with =")
        public = tuple(name for name in read if schema[name].public)
        private = tuple(name for name in read if not schema[name].public)
        for name in public:
            if not isinstance(schema[name], Category | Flag):
                raise UnsafeExactly(
                    f"{name} is a public Number: its classes have no public sizes; leave it out"
                )
        uncertain = tuple(name for name in private if name in least)
        context = tuple(name for name in private if name not in least)
        return cls(schema, tuple(programs), public, uncertain, context, least)

    def classes(self) -> Iterator[dict[str, object]]:
        """Every public profile the batch can tell apart."""
        for cell in product(*(everything_in(self.schema[name]) for name in self.public)):
            yield dict(zip(self.public, cell, strict=True))

    def table(
        self, given: Mapping[str, object], rows: int, free: Sequence[str] | None = None
    ) -> PublicClass:
        """What the rows of one class can add, when the columns `free` alone are left open."""
        free = self.uncertain if free is None else free
        around = [name for name in (*self.context, *self.uncertain) if name not in free]
        open_to = [values_of(self.schema[name]) for name in free]
        full = [everything_in(self.schema[name]) for name in free]
        fixed = [everything_in(self.schema[name]) for name in around]
        if math.prod(map(len, full)) * math.prod(map(len, fixed)) > MOST_ROWS:
            raise UnsafeExactly(
                f"the batch reads columns with more than {MOST_ROWS} joint values; ask for less"
            )
        added = Additions(self.programs)
        contexts = []
        everything: set[Vector] = set()
        for z in product(*fixed):
            row = {**given, **dict(zip(around, z, strict=True))}
            here = []
            for y in product(*open_to):
                row.update(zip(free, y, strict=True))
                here.append(added(row))
            contexts.append(tuple(here))
            for y in product(*full):
                row.update(zip(free, y, strict=True))
                everything.add(added(row))
        chance = math.prod((self.least[name] for name in free), start=Fraction(1))
        cells = math.prod(map(len, open_to))
        return PublicClass(rows, tuple(contexts), (chance,) * cells, frozenset(everything))


class Additions:
    """`adds`, where a question is worked out once for the values of the columns it reads."""

    def __init__(self, programs: Sequence[RowSums]) -> None:
        self._parts = [(program, columns_of(program)) for program in programs]
        self._known: list[dict[tuple[object, ...], Vector]] = [{} for _ in programs]

    def __call__(self, row: Row) -> Vector:
        found: Vector = ()
        for (program, names), known in zip(self._parts, self._known, strict=True):
            key = tuple([row[name] for name in names])
            if key not in known:
                known[key] = adds([program], row)
            found += known[key]
        return found


def columns_of(program: RowSums) -> tuple[str, ...]:
    """The columns a question reads, each once."""
    return tuple(dict.fromkeys(mentioned(program.rows, *program.terms, *program.groups)))


def _check_on_lattice(column: Column) -> None:
    """What is rounded to multiples of a step has its values there."""
    if not isinstance(column, Number) or column.lattice is None:
        return
    if column.range[0] % column.lattice:
        raise InvalidQuery(
            f"{column.name}: its values are multiples of {column.lattice}, and low ="
            f" {column.low} is none; declare a low that is, or leave it out of least"
        )


def values_of(column: Column) -> list[object]:
    """The declared values of a column; lattice points for a Number."""
    if isinstance(column, Flag):
        return [False, True]
    if isinstance(column, Category):
        if column.values is None:
            raise UnsafeExactly(f"{column.name} is {column.opened}; declare its values")
        return list(column.values)
    if column.lattice is None:
        raise UnsafeExactly(
            f"{column.name} has no natural lattice: an exact sum would spell out its low digits;"
            " declare step="
        )
    low, high = column.range
    count = math.floor((high - low) / column.lattice) + 1
    if count > MOST_ROWS:
        raise UnsafeExactly(f"{column.name} has {count} lattice points, at most {MOST_ROWS}")
    return [low + i * column.lattice for i in range(count)]


def everything_in(column: Column) -> list[object]:
    """Declared values, then what else a row may hold, as far as any question can tell.

    A Number off its lattice is rounded to a multiple of the step; its bounds may be no multiples.
    """
    held = values_of(column)
    if isinstance(column, Category):
        return [*held, UNDECLARED, None]
    if isinstance(column, Flag):
        return [*held, None]
    assert column.lattice is not None  # noqa: S101
    low, high = column.range
    first, last = math.ceil(low / column.lattice), math.floor(high / column.lattice)
    multiples = [i * column.lattice for i in range(first, last + 1)]
    return [*dict.fromkeys([*held, *multiples, high]), None]


def _texts(node: object) -> bool:
    if isinstance(node, Matches):
        return True
    if isinstance(node, tuple):
        return any(map(_texts, node))
    names = getattr(type(node), "__match_args__", ())
    return any(_texts(getattr(node, name)) for name in names)
