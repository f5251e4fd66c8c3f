"""What a row can be: integer ranges and the truth of conditions, proved on the bound program.

`sensitivity` asks this page, and it looks at the very integers that engines will sum (G.4), once
per public stratum, so a price never rests on the way a question was spelled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sulq.kernel.schema.columns import Known, Other
from sulq.kernel.schema.fixed_point import round_leaf
from sulq.kernel.schema.program import (
    Added,
    AllOf,
    Always,
    Among,
    AnyOf,
    BinCells,
    BoundChoice,
    BoundScaled,
    CategoryCells,
    Cells,
    Compared,
    Condition,
    Divided,
    FirstOf,
    Fixed,
    FlagBit,
    FlagCells,
    FlagIs,
    Greater,
    HashedBit,
    Integer,
    Lesser,
    Magnitude,
    Matches,
    Missing,
    Multiplied,
    Never,
    OfTable,
    Quantised,
    Shifted,
    Text,
)

NOWHERE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Range:
    """Where an integer lies when it is not NULL.

    `needs` are the columns whose presence makes it present; None if it can be NULL regardless.
    `private` says that it may depend on a private column. low > high: it is always NULL.
    """

    low: int
    high: int
    private: bool
    needs: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class Truth:
    """What is known of a condition: "always", "never" or "unknown"."""

    verdict: Literal["always", "never", "unknown"]
    private: bool = False
    present: frozenset[str] = NOWHERE  # columns that are not NULL wherever it is true


ALWAYS = Truth("always")
NEVER = Truth("never")


@dataclass(frozen=True, slots=True)
class World:
    """One public profile: the values of some public columns, and what else is public."""

    public: frozenset[str]
    given: Mapping[str, Known] = field(default_factory=dict)
    narrowed: Mapping[Quantised, tuple[int, int]] = field(default_factory=dict)

    def hides(self, column: str) -> bool:
        return column not in self.public


def mentioned(*nodes: Integer | Condition | Cells | Text) -> Iterator[str]:
    """The columns that occur in a program."""
    for node in nodes:
        match node:
            case Quantised(column=name) | FlagBit(column=name) | FlagIs(column=name):
                yield name
            case Among(column=name) | Matches(column=name) | Text(column=name):
                yield name
            case CategoryCells(column=name) | FlagCells(column=name):
                yield name
            case Added(parts=parts) | AllOf(parts=parts) | AnyOf(parts=parts):
                yield from mentioned(*parts)
            case BoundScaled(value=inner) | Shifted(value=inner) | Magnitude(value=inner):
                yield from mentioned(inner)
            case HashedBit(value=inner) | BinCells(value=inner):
                yield from mentioned(inner)
            case Missing(subject=subject):
                yield from mentioned(subject)
            case Multiplied(a, b) | Lesser(a, b) | Greater(a, b) | Divided(a, b) | FirstOf(a, b):
                yield from mentioned(a, b)
            case Compared(left=left, right=right):
                yield from mentioned(left, right)
            case BoundChoice(condition, then, otherwise):
                yield from mentioned(condition, then, otherwise)


def range_of(node: Integer, world: World) -> Range:
    """The range of an integer in one public profile."""
    match node:
        case Quantised(column=name):
            low, high = round_leaf(node, node.low), round_leaf(node, node.high)
            least, most = world.narrowed.get(node, (low, high))
            low, high = max(low, least), min(high, most)
            return Range(low, high, world.hides(name), frozenset([name]))
        case FlagBit(column=name):
            known = world.given.get(name)
            if isinstance(known, bool):
                return Range(int(known), int(known), False, NOWHERE)
            return Range(0, 1, world.hides(name), frozenset([name]))
        case Fixed(value=None):
            return Range(1, 0, False, None)
        case Fixed(value=int(number)):
            return Range(number, number, False, NOWHERE)
        case Added(parts=parts):
            ranges = [range_of(part, world) for part in parts]
            return _joint(ranges, sum(r.low for r in ranges), sum(r.high for r in ranges))
        case BoundScaled(value=inner, factor=factor):
            r = range_of(inner, world)
            ends = (r.low * factor, r.high * factor)
            return _joint([r], min(ends), max(ends))
        case Shifted(value=inner, bits=bits):
            r, half = range_of(inner, world), 1 << (bits - 1)
            return _joint([r], (r.low + half) >> bits, (r.high + half) >> bits)
        case Magnitude(value=inner):
            r = range_of(inner, world)
            low = 0 if r.low <= 0 <= r.high else min(abs(r.low), abs(r.high))
            return _joint([r], low, max(abs(r.low), abs(r.high)))
        case Multiplied(left=left, right=right):
            a, b = range_of(left, world), range_of(right, world)
            corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
            low = min(corners)
            if left == right:
                low = 0 if a.low <= 0 <= a.high else min(a.low**2, a.high**2)
            return _joint([a, b], low, max(corners))
        case Divided(over=over, under=under):
            a, b = range_of(over, world), range_of(under, world)
            if a.low > a.high or b.low > b.high:
                return Range(1, 0, False, None)
            corners = [(2 * x + y) // (2 * y) for x in (a.low, a.high) for y in (b.low, b.high)]
            return _joint([a, b], min(corners), max(corners))
        case Lesser(left=left, right=right):
            a, b = range_of(left, world), range_of(right, world)
            return _joint([a, b], min(a.low, b.low), min(a.high, b.high))
        case Greater(left=left, right=right):
            a, b = range_of(left, world), range_of(right, world)
            return _joint([a, b], max(a.low, b.low), max(a.high, b.high))
        case HashedBit(value=inner):
            r = range_of(inner, world)
            return _joint([r], 0, 1)
        case FirstOf(value=first, instead=instead):
            a, b = range_of(first, world), range_of(instead, world)
            if a.needs == NOWHERE:
                return a
            either = _either(a, b)
            return Range(either.low, either.high, a.private or b.private, b.needs)
        case BoundChoice(condition, then, otherwise):
            return _chosen(truth_of(condition, world), then, otherwise, world)
    raise TypeError(type(node).__name__)


def _joint(ranges: list[Range], low: int, high: int) -> Range:
    """An operation that is NULL as soon as one operand is."""
    if any(r.low > r.high for r in ranges):
        return Range(1, 0, False, None)
    needs: frozenset[str] | None = NOWHERE
    for r in ranges:
        needs = None if needs is None or r.needs is None else needs | r.needs
    return Range(low, high, any(r.private for r in ranges), needs)


def _either(a: Range, b: Range) -> Range:
    """One of two values, not known which."""
    needs = None if a.needs is None or b.needs is None else a.needs | b.needs
    if a.low > a.high:
        return Range(b.low, b.high, b.private, needs)
    if b.low > b.high:
        return Range(a.low, a.high, a.private, needs)
    return Range(min(a.low, b.low), max(a.high, b.high), a.private or b.private, needs)


def _chosen(truth: Truth, then: Integer, otherwise: Integer, world: World) -> Range:
    if truth.verdict == "always":
        return range_of(then, world)
    if truth.verdict == "never":
        return range_of(otherwise, world)
    either = _either(range_of(then, world), range_of(otherwise, world))
    return Range(either.low, either.high, either.private or truth.private, either.needs)


def truth_of(condition: Condition, world: World) -> Truth:
    """What is known of a condition in one public profile."""
    match condition:
        case Always():
            return ALWAYS
        case Never():
            return NEVER
        case AllOf(parts=parts):
            truths = [truth_of(part, world) for part in parts]
            if any(t.verdict == "never" for t in truths):
                return NEVER
            open_ = [t for t in truths if t.verdict == "unknown"]
            present = NOWHERE.union(*(t.present for t in truths))
            return Truth("unknown", any(t.private for t in open_), present) if open_ else ALWAYS
        case AnyOf(parts=parts):
            truths = [truth_of(part, world) for part in parts]
            if any(t.verdict == "always" for t in truths):
                return ALWAYS
            open_ = [t for t in truths if t.verdict == "unknown"]
            if not open_:
                return NEVER
            present = frozenset.intersection(*(t.present for t in open_))
            return Truth("unknown", any(t.private for t in open_), present)
        case FlagIs(column=name, value=value):
            known = world.given.get(name)
            if known is None:
                return Truth("unknown", world.hides(name), frozenset([name]))
            return ALWAYS if known is value else NEVER
        case Among(column=name, values=values, negated=negated):
            known = world.given.get(name)
            if isinstance(known, str | int):
                return ALWAYS if (known in values) is not negated else NEVER
            if isinstance(known, Other) and not negated:
                return NEVER  # only declared values are listed
            return Truth("unknown", world.hides(name), frozenset([name]))
        case Matches(column=name):
            return Truth("unknown", world.hides(name), frozenset([name]))
        case Missing(subject=subject, negated=negated):
            return _missing(subject, negated, world)
        case Compared():
            return _compared(condition, world)
        case OfTable(certain=certain):  # P.3: a person may have no row of an event table
            return ALWAYS if certain else Truth("unknown", True)


def _missing(subject: Integer | Text, negated: bool, world: World) -> Truth:
    if isinstance(subject, Text):
        name = subject.column
        if isinstance(world.given.get(name), str | int):
            return ALWAYS if negated else NEVER
        return Truth("unknown", world.hides(name), frozenset([name]) if negated else NOWHERE)
    r = range_of(subject, world)
    if r.low > r.high:
        return NEVER if negated else ALWAYS
    if r.needs == NOWHERE:
        return ALWAYS if negated else NEVER
    private = any(world.hides(name) for name in mentioned(subject))
    return Truth("unknown", private, _proves(subject) if negated else NOWHERE)


def _compared(condition: Compared, world: World) -> Truth:
    a, b = range_of(condition.left, world), range_of(condition.right, world)
    if a.low > a.high or b.low > b.high:
        return NEVER
    match condition.operator:
        case "<":
            sure, impossible = a.high < b.low, a.low >= b.high
        case "<=":
            sure, impossible = a.high <= b.low, a.low > b.high
        case "=":
            sure, impossible = a.low == a.high == b.low == b.high, a.high < b.low or b.high < a.low
        case "<>":
            sure, impossible = a.high < b.low or b.high < a.low, a.low == a.high == b.low == b.high
    if impossible:
        return NEVER
    if sure and a.needs == NOWHERE and b.needs == NOWHERE:
        return ALWAYS
    present = _proves(condition.left) | _proves(condition.right)
    columns = mentioned(condition.left, condition.right)
    return Truth("unknown", any(world.hides(name) for name in columns), present)


def _proves(node: Integer) -> frozenset[str]:
    """Columns that cannot be NULL where this value is not NULL."""
    match node:
        case Quantised(column=name) | FlagBit(column=name):
            return frozenset([name])
        case Added(parts=parts):
            return NOWHERE.union(*(_proves(part) for part in parts))
        case BoundScaled(value=inner) | Shifted(value=inner) | Magnitude(value=inner):
            return _proves(inner)
        case HashedBit(value=inner):
            return _proves(inner)
        case Multiplied(a, b) | Lesser(a, b) | Greater(a, b) | Divided(a, b):
            return _proves(a) | _proves(b)
    return NOWHERE


def narrowed_by(rows: Condition, world: World) -> World:
    """The world inside S: what S says of single columns holds for every row that adds anything."""
    parts = rows.parts if isinstance(rows, AllOf) else (rows,)
    found: dict[Quantised, tuple[int, int]] = {}
    for part in parts:
        match part:
            case Compared(operator, Quantised() as leaf, Fixed(value=int(edge))):
                low, high = {
                    "<": (None, edge - 1),
                    "<=": (None, edge),
                    "=": (edge, edge),
                    "<>": (None, None),
                }[operator]
            case Compared("<" | "<=" as operator, Fixed(value=int(edge)), Quantised() as leaf):
                low, high = (edge + 1 if operator == "<" else edge), None
            case _:
                continue
        bottom, top = round_leaf(leaf, leaf.low), round_leaf(leaf, leaf.high)
        bottom, top = found.get(leaf, (bottom, top))
        found[leaf] = (
            bottom if low is None else max(bottom, low),
            top if high is None else min(top, high),
        )
    return World(world.public, world.given, found)
