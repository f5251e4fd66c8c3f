"""Columns cut into finitely many pieces, as far as some questions tell values apart.

A column that is compared with constants falls into NULL and the intervals between them, one that
is compared with texts into the texts that are told apart, everything else and NULL. A CASE of
constants is known on every piece, whatever its labels are called. A condition that is neither is
an axis of its own. So every condition is true or not on a whole piece: docs/proofs/derivation.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sulq.kernel.schema import program as b

Key: TypeAlias = tuple[Any, ...]
Marks: TypeAlias = dict[Key, dict[Any, b.Integer | None]]
"""Axis -> its marks (thresholds with the value they cut, or sets of listed values)."""
Cut: TypeAlias = tuple[b.Integer, int | None, int | None, bool]

FAR = 2**62


def marks_of(program: b.RowSums) -> Marks:
    """The pieces a question needs."""
    found: Marks = {}
    _condition(program.rows, found)
    for term in program.terms:
        _integer(term, found)
    for group in program.groups:
        match group:
            case b.CategoryCells(column, values):
                _mark(found, ("text", column), (frozenset([value]) for value in values))
            case b.FlagCells(column):
                _mark(found, ("flag", column))
            case b.BinCells(value, edges):
                _threshold(found, value, (*edges[:-1], edges[-1] + 1))
    return found


def size_of(key: Key, marks: Mapping[Any, Any]) -> int:
    """How many pieces an axis has."""
    match key[0]:
        case "number":
            return len(marks) + 2
        case "text":
            alone = all(len(listed) == 1 for listed in marks)
            return (len(marks) if alone else len(classes(marks))) + 2
        case "value":
            return len(marks) + 1
        case "flag" | "like":
            return 3
    return 2


def pieces_of(marks: Marks) -> int:
    """How many pieces all axes together have."""
    return math.prod(size_of(key, own) for key, own in marks.items())


class Refinement:
    """The common refinement of the pieces of some questions; it grows."""

    def __init__(self, marks: Marks) -> None:
        self.marks = {key: dict(own) for key, own in marks.items()}
        self._sizes = {key: size_of(key, own) for key, own in marks.items()}
        self._pieces = math.prod(self._sizes.values())

    def pieces_with(self, marks: Marks) -> int:
        """How many pieces there would be with those of another question."""
        count = self._pieces
        for key, own in marks.items():
            known = self.marks.get(key)
            if known is None:
                count *= size_of(key, own)
            elif not own.keys() <= known.keys():
                count = count // self._sizes[key] * size_of(key, known | own)
        return count

    def take(self, marks: Marks) -> None:
        """Tell apart what this question does too."""
        self._pieces = self.pieces_with(marks)
        for key, own in marks.items():
            known = self.marks.setdefault(key, {})
            if key not in self._sizes or not own.keys() <= known.keys():
                known.update(own)
                self._sizes[key] = size_of(key, known)


def classes(marks: Iterable[frozenset[Any]]) -> list[tuple[Any, ...]]:
    """Listed values, those together that are in the same sets: no question tells them apart."""
    among: dict[Any, list[int]] = {}
    for number, listed in enumerate(marks):
        for value in listed:
            among.setdefault(value, []).append(number)
    found: dict[tuple[int, ...], list[Any]] = {}
    for value, numbers in among.items():
        found.setdefault(tuple(numbers), []).append(value)
    return sorted(tuple(sorted(own)) for own in found.values())


def is_stepwise(node: b.Integer) -> bool:
    """A value that is a known constant on every piece: of constants, flags and choices alone."""
    match node:
        case b.Fixed() | b.FlagBit():
            return True
        case b.Added(parts):
            return all(map(is_stepwise, parts))
        case b.BoundScaled(value):
            return is_stepwise(value)
        case b.BoundChoice(_, one, two) | b.FirstOf(one, two):
            return is_stepwise(one) and is_stepwise(two)
    return False


def columns_of(key: Key) -> tuple[str, ...]:
    """The columns that decide in which piece a row lies."""
    return tuple(dict.fromkeys(_columns(key[1]))) if key[0] in ("value", "leaf") else (key[1],)


def _columns(node: object) -> Iterable[str]:
    if isinstance(node, tuple):
        for part in node:
            yield from _columns(part)
        return
    names = getattr(type(node), "__match_args__", ())
    for name in names:
        found = getattr(node, name)
        if name == "column":
            yield found
        else:
            yield from _columns(found)


@lru_cache(maxsize=1024)
def atom_columns(atom: b.Integer) -> tuple[str, ...]:
    """The columns a summand reads."""
    return tuple(dict.fromkeys(_columns(atom)))


def ends(node: b.Quantised) -> tuple[int, int]:
    """The least and the largest step of a column; rounding is monotone, so clamping commutes."""
    return (
        math.floor(node.low * node.per_unit + 0.5),
        math.floor(node.high * node.per_unit + 0.5),
    )


def axis_of(node: b.Integer) -> Key:
    """The axis on which thresholds of a value lie: clipped columns share their column's."""
    if isinstance(node, b.Quantised):
        return ("number", node.column, node.per_unit)
    return ("value", node)


def cut_of(condition: b.Compared) -> Cut | None:
    """value, low, high, outside: true where low <= value < high, or just not there.

    None if it compares two values, or constants.
    """
    left, right, sign = condition.left, condition.right, condition.operator
    if isinstance(left, b.Fixed) and not isinstance(right, b.Fixed):
        k, value, mirrored = left.value, right, True
    elif isinstance(right, b.Fixed) and not isinstance(left, b.Fixed):
        k, value, mirrored = right.value, left, False
    else:
        return None
    if k is None:
        return value, 0, 0, False
    if sign in ("=", "<>"):
        return value, k, k + 1, sign == "<>"
    if mirrored:
        return value, k + (sign == "<"), None, False
    return value, None, k + (sign == "<="), False


def _mark(found: Marks, key: Key, listed: Iterable[object] = ()) -> None:
    found.setdefault(key, {}).update(dict.fromkeys(listed))


def _threshold(found: Marks, value: b.Integer, steps: Iterable[int]) -> None:
    match value:
        case b.Quantised():
            low, high = ends(value)
            own = {step: value for step in steps if low < step <= high}
            found.setdefault(axis_of(value), {}).update(own)
        case _ if is_stepwise(value):
            _integer(value, found)
        case _:
            found.setdefault(axis_of(value), {}).update(dict.fromkeys(steps, value))
            _integer(value, found)


def _integer(node: b.Integer, found: Marks) -> None:
    """Axes that decide whether a value is NULL, and which branch it takes."""
    match node:
        case b.Quantised():
            _mark(found, axis_of(node))
        case b.FlagBit(column):
            _mark(found, ("flag", column))
        case b.Fixed():
            pass
        case b.Added(parts):
            for part in parts:
                _integer(part, found)
        case b.BoundChoice(condition, then, otherwise):
            _condition(condition, found)
            _integer(then, found)
            _integer(otherwise, found)
        case b.FirstOf(first, second) | b.Divided(first, second) | b.Multiplied(first, second):
            _integer(first, found)
            _integer(second, found)
        case b.Lesser(first, second) | b.Greater(first, second):
            _integer(first, found)
            _integer(second, found)
        case b.BoundScaled(value) | b.Magnitude(value) | b.Shifted(value) | b.HashedBit(value):
            _integer(value, found)


def _condition(node: b.Condition, found: Marks) -> None:
    match node:
        case b.Always() | b.Never():
            pass
        case b.AllOf(parts) | b.AnyOf(parts):
            for part in parts:
                _condition(part, found)
        case b.Compared(left=left, right=right):
            cut = cut_of(node)
            if cut is not None:
                value, low, high, _ = cut
                _threshold(found, value, [step for step in (low, high) if step is not None])
            elif is_stepwise(left) and is_stepwise(right):
                _integer(left, found)
                _integer(right, found)
            else:
                _mark(found, ("leaf", node))
        case b.OfTable() | b.FlagIs():
            _mark(found, ("flag", node.column) if isinstance(node, b.FlagIs) else ("leaf", node))
        case b.Among(column, values):
            _mark(found, ("text", column), [frozenset(values)])
        case b.Matches(column, pattern):
            _mark(found, ("like", column, pattern))
        case b.Missing(b.Text(column)):
            _mark(found, ("text", column))
        case b.Missing(subject):
            assert not isinstance(subject, b.Text)  # noqa: S101
            _integer(subject, found)


# A question's sums as integer vectors over pieces: what each kind of row adds, symbolically.


Truths = NDArray[np.bool_]
Integers = NDArray[np.int64]
ONE = b.Fixed(1)
"""The summand of a count."""
COMPARED = {"<": np.less, "<=": np.less_equal, "=": np.equal, "<>": np.not_equal}
LARGEST = 2**50
"""PieceSums stay where products with weights are exact."""


class Unfit(ValueError):
    """A question that is not told apart by pieces: only its own repeats match."""


@dataclass(frozen=True, slots=True)
class _Value:
    """A value of the row on each piece: NULL, or a sum of integers times summands."""

    null: Truths
    parts: dict[b.Integer, Integers]


class PieceSums(NamedTuple):
    """A question on the pieces of a grid: the cell that a row of each piece is counted in, -1 for
    none, and for each term what the row adds: integers times summands."""

    cells: int
    cell: Integers
    terms: tuple[dict[b.Integer, Integers], ...]


class Grid:
    """The product of some axes; public axes come first."""

    def __init__(self, marks: Marks, is_public: Callable[[str], bool]) -> None:
        self._is_public = is_public
        public = {
            key: key[0] in ("number", "text", "flag") and all(map(is_public, columns_of(key)))
            for key in marks
        }
        self.keys = sorted(marks, key=lambda key: not public[key])
        self.marks = {key: _ordered(key, marks[key]) for key in self.keys}
        self.nodes = marks
        self.shape = tuple(size_of(key, marks[key]) for key in self.keys)
        self.outer = sum(public.values())
        self._at = {key: place for place, key in enumerate(self.keys)}
        self._places: dict[Key, dict[Any, int]] = {}
        self._leaves: dict[b.Condition, Truths] = {}
        self._columns: dict[b.Quantised, _Value] = {}
        self._ends: dict[Key, tuple[Integers, Integers]] = {}

    @property
    def cells(self) -> int:
        return math.prod(self.shape)

    @property
    def public_cells(self) -> int:
        return math.prod(self.shape[: self.outer])

    def is_public(self, atom: b.Integer) -> bool:
        """A summand that everybody knows of every row."""
        return all(map(self._is_public, atom_columns(atom)))

    # --- arrays ---------------------------------------------------------------------------------

    def _along(self, key: Key, values: NDArray[Any]) -> NDArray[Any]:
        shape = [1] * len(self.keys)
        shape[self._at[key]] = len(values)
        return values.reshape(shape)

    def _flat(self, array: NDArray[Any]) -> NDArray[Any]:
        return np.broadcast_to(array, self.shape or (1,)).ravel()

    def _piece(self, key: Key, number: int) -> Truths:
        here = np.zeros(self.shape[self._at[key]], dtype=np.bool_)
        here[number] = True
        return self._along(key, here)

    def _spans(self, key: Key) -> tuple[Integers, Integers]:
        """The least and largest value of every piece of a number, NULL's place left out."""
        if key not in self._ends:  # a step function asks once for each of its steps
            steps = self.marks[key]
            lows = np.array([-FAR, *steps], dtype=np.int64)
            highs = np.array([*(step - 1 for step in steps), FAR], dtype=np.int64)
            self._ends[key] = lows, highs
        return self._ends[key]

    def _listed(self, key: Key, values: tuple[Any, ...]) -> Truths:
        if key not in self._places:
            self._places[key] = {
                value: i + 1 for i, own in enumerate(self.marks[key]) for value in own
            }
        here = np.zeros(self.shape[self._at[key]], dtype=np.bool_)
        here[[self._places[key][value] for value in values]] = True
        return self._along(key, here)

    # --- the program ----------------------------------------------------------------------------

    def coefficients(self, program: b.RowSums) -> PieceSums:
        """What a row of each piece adds to the question's sums."""
        inside = self._flat(self._holds(program.rows))
        count, cell = 1, np.zeros(1, dtype=np.int64)
        for group in program.groups:
            inner = b.cell_count(group)
            own = self._cell(group, inner)
            cell = np.where((cell < 0) | (own < 0), -1, cell * inner + own)
            count *= inner
        flat = np.where(inside, self._flat(cell), -1)
        here = flat >= 0
        terms = []
        for term in program.terms:
            value = self._integer(term)
            there = here & self._flat(~value.null) if value.null.any() else here
            terms.append(
                {atom: np.where(there, self._flat(part), 0) for atom, part in value.parts.items()}
            )
        return PieceSums(count, flat, tuple(terms))

    def differ(self, found: PieceSums, key: Key, mark: int) -> bool:
        """Whether some sum is not the same on both sides of a threshold."""
        below = self.marks[key].index(mark) + 1  # after NULL's place
        return self._apart(found, key, below, below + 1)

    def _apart(self, found: PieceSums, key: Key, one: int, two: int) -> bool:
        axis = self._at[key]
        cell = found.cell.reshape(self.shape)
        other = cell.take(one, axis) != cell.take(two, axis)
        for parts in found.terms:
            for listed in parts.values():
                value = listed.reshape(self.shape)
                first = value.take(one, axis)
                if ((first != value.take(two, axis)) | (other & (first != 0))).any():
                    return True
        return False

    def told(self, found: PieceSums) -> Marks:
        """The marks, without thresholds and listed values that make no difference."""
        marks = dict(self.nodes)
        for key in self.keys:
            if key[0] == "number":
                kept = self.nodes[key].items()
                marks[key] = {mark: of for mark, of in kept if self.differ(found, key, mark)}
            elif key[0] == "text":
                listed, rest = self.marks[key], self.shape[self._at[key]] - 1
                marks[key] = {
                    frozenset(own): None
                    for place, own in enumerate(listed, start=1)
                    if self._apart(found, key, place, rest)
                }
        return marks

    def _cell(self, group: b.Cells, inner: int) -> Integers:
        """Each piece's cell; -1 for none."""
        last = inner - 1 if group.other else -1
        match group:
            case b.CategoryCells(column, values):
                key: Key = ("text", column)
                at = {value: i for i, value in enumerate(values)}
                own = [last, *(at.get(listed[0], last) for listed in self.marks[key]), last]
                return self._along(key, np.array(own, dtype=np.int64))
            case b.FlagCells(column):
                return self._along(("flag", column), np.array([last, 0, 1], dtype=np.int64))
            case b.BinCells(value, edges):
                found = np.full((1,) * len(self.keys), last, dtype=np.int64)
                for i in range(len(edges) - 1):
                    high = edges[i + 1] + (i == len(edges) - 2)
                    found = np.where(self._between(value, edges[i], high), i, found)
                return found

    def _between(self, value: b.Integer, low: int | None, high: int | None) -> Truths:
        """low <= value < high, and not NULL."""
        least, most = -FAR if low is None else low, FAR + 1 if high is None else high
        match value:
            case _ if is_stepwise(value):
                steps, null = self._steps(value)
                return (steps >= least) & (steps < most) & ~null
            case b.Quantised():
                key = axis_of(value)
                lows, highs = (np.clip(end, *ends(value)) for end in self._spans(key))
                return self._along(key, np.array([False, *((lows >= least) & (highs < most))]))
        lows, highs = self._spans(axis_of(value))
        inside = self._along(axis_of(value), (lows >= least) & (highs < most))
        return inside & ~self._integer(value).null

    def _holds(self, node: b.Condition) -> Truths:
        match node:
            case b.Always():
                return np.ones(1, dtype=np.bool_)
            case b.Never():
                return np.zeros(1, dtype=np.bool_)
            case b.AllOf(parts):
                found = np.ones(1, dtype=np.bool_)
                for part in parts:
                    found = found & self._holds(part)
                return found
            case b.AnyOf(parts):
                found = np.zeros(1, dtype=np.bool_)
                for part in parts:
                    found = found | self._holds(part)
                return found
        if node not in self._leaves:  # many questions share a condition
            self._leaves[node] = self._leaf(node)
        return self._leaves[node]

    def _leaf(self, node: b.Condition) -> Truths:
        match node:
            case b.Compared():
                return self._compared(node)
            case b.OfTable():
                return self._piece(("leaf", node), 1)
            case b.FlagIs(column, value):
                return self._piece(("flag", column), 2 if value else 1)
            case b.Among(column, values, negated):
                key: Key = ("text", column)
                among = self._listed(key, values)
                return ~among & ~self._piece(key, 0) if negated else among
            case b.Matches(column, pattern, negated):
                return self._piece(("like", column, pattern), 1 if negated else 2)
            case b.Missing(b.Text(column), negated):
                null = self._piece(("text", column), 0)
                return ~null if negated else null
            case b.Missing(subject, negated):
                assert not isinstance(subject, b.Text)  # noqa: S101
                null = self._integer(subject).null
                return ~null if negated else null
        raise TypeError(type(node).__name__)

    def _compared(self, node: b.Compared) -> Truths:
        cut = cut_of(node)
        if cut is not None:
            value, low, high, outside = cut
            inside = self._between(value, low, high)
            return ~inside & ~self._integer(value).null if outside else inside
        if is_stepwise(node.left) and is_stepwise(node.right):
            (v, here), (w, there) = self._steps(node.left), self._steps(node.right)
            true: Truths = COMPARED[node.operator](v, w) & ~here & ~there
            return true
        return self._piece(("leaf", node), 1)

    def _steps(self, node: b.Integer) -> tuple[Integers, Truths]:
        """A value that is known on every piece, and where it is NULL."""
        found = self._integer(node)
        return found.parts.get(ONE, np.zeros(1, dtype=np.int64)), found.null

    def _integer(self, node: b.Integer) -> _Value:
        never = np.zeros(1, dtype=np.bool_)
        match node:
            case b.Fixed(None):
                return _Value(~never, {})
            case b.Fixed(int(k)):
                return _Value(never, {ONE: np.array([_small(k)], dtype=np.int64)})
            case b.FlagBit(column):
                key: Key = ("flag", column)
                return _Value(self._piece(key, 0), {ONE: self._piece(key, 2).astype(np.int64)})
            case b.Quantised():
                if node not in self._columns:
                    self._columns[node] = self._column(node)
                return self._columns[node]
            case b.Added(parts):
                values = [self._integer(part) for part in parts]
                null = never
                for value in values:
                    null = null | value.null
                return _Value(null, _summed([value.parts for value in values]))
            case b.BoundScaled(value, factor):
                inner = self._integer(value)
                scaled = {atom: _times(part, factor) for atom, part in inner.parts.items()}
                return _Value(inner.null, scaled)
            case b.BoundChoice(condition, then, otherwise):
                return _either(self._holds(condition), *map(self._integer, (then, otherwise)))
            case b.FirstOf(first, instead):
                value = self._integer(first)
                return _either(~value.null, value, self._integer(instead))
            case b.Multiplied(left, right) | b.Lesser(left, right) | b.Greater(left, right):
                null = self._integer(left).null | self._integer(right).null
            case b.Divided(left, right):
                null = self._integer(left).null | self._integer(right).null
            case b.Magnitude(value) | b.Shifted(value) | b.HashedBit(value):
                null = self._integer(value).null
        return _Value(null, {node: np.ones(1, dtype=np.int64)})

    def _column(self, node: b.Quantised) -> _Value:
        """A constant on pieces of one step, a summand of its own on the others."""
        key = axis_of(node)
        lows, highs = (np.clip(end, *ends(node)) for end in self._spans(key))
        known = lows == highs
        constant = self._along(key, np.array([0, *np.where(known, lows, 0)], dtype=np.int64))
        free = self._along(key, np.array([0, *np.where(known, 0, 1)], dtype=np.int64))
        return _Value(self._piece(key, 0), {ONE: constant, node: free})

    # --- pieces as conditions -------------------------------------------------------------------

    def public_condition(self, number: int) -> b.Condition:
        """One public piece, for the engine: its size is public. G.2.1"""
        places = np.unravel_index(number, self.shape[: self.outer])
        parts = [
            self._condition(key, int(place)) for key, place in zip(self.keys, places, strict=False)
        ]
        return b.AllOf(tuple(parts)) if len(parts) != 1 else parts[0]

    def _condition(self, key: Key, place: int) -> b.Condition:
        match key:
            case ("flag", str(column)):
                return (
                    b.Missing(b.FlagBit(column), False)
                    if not place
                    else b.FlagIs(column, place == 2)
                )
            case ("text", str(column)):
                listed = self.marks[key]
                if not place:
                    return b.Missing(b.Text(column), False)
                if place <= len(listed):
                    return b.Among(column, listed[place - 1], False)
                rest = b.Among(column, tuple(value for own in listed for value in own), True)
                return rest if listed else b.Missing(b.Text(column), True)
            case ("number", *_):
                return self._interval(key, place - 1)
        raise Unfit("no condition for this axis")

    def _interval(self, key: Key, place: int) -> b.Condition:
        column = b.Quantised(key[1], 0.0, 1.0, 1.0)  # NULL just where the column is
        if place < 0:
            return b.Missing(column, False)
        steps = self.marks[key]
        parts: list[b.Condition] = [b.Missing(column, True)]
        if place:
            parts.append(_from(self.nodes[key][steps[place - 1]], steps[place - 1]))
        if place < len(steps):
            node = self.nodes[key][steps[place]]
            assert node is not None  # noqa: S101
            parts.append(b.Compared("<", node, b.Fixed(steps[place])))
        return b.AllOf(tuple(parts))


def _from(node: b.Integer | None, step: int) -> b.Condition:
    assert node is not None  # noqa: S101
    return b.Compared("<=", b.Fixed(step), node)


def _ordered(key: Key, marks: Mapping[Any, object]) -> list[Any]:
    return classes(marks) if key[0] == "text" else sorted(marks)


def _small(k: int) -> int:
    if abs(k) > LARGEST:
        raise Unfit("coefficients too large")
    return k


def _times(part: Integers, factor: int) -> Integers:
    if part.size and int(np.abs(part).max()) * abs(factor) > LARGEST:
        raise Unfit("coefficients too large")
    return part * np.int64(factor)


def _summed(listed: list[dict[b.Integer, Integers]]) -> dict[b.Integer, Integers]:
    found: dict[b.Integer, Integers] = {}
    for parts in listed:
        for atom, part in parts.items():
            found[atom] = found[atom] + part if atom in found else part
    return found


def _either(first: Truths, one: _Value, two: _Value) -> _Value:
    zero = np.zeros(1, dtype=np.int64)
    parts = {
        atom: np.where(first, one.parts.get(atom, zero), two.parts.get(atom, zero))
        for atom in (*one.parts, *(atom for atom in two.parts if atom not in one.parts))
    }
    return _Value(np.where(first, one.null, two.null), parts)
