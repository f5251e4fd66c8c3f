"""What a row can be: integer ranges and the truth of conditions, proved on the bound program.

`sensitivity` asks this page, and it looks at the very integers that engines will sum (G.4), once
per public stratum, so a price never rests on the way a question was spelled. `bind` asks it whether
every integer fits 64 bits, those that are only met on the way too: whatever engine will run the
program, whatever a file holds, the verdict is the same. Proof: docs/proofs/binding.md, section 7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.schema.columns import Known, Other
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
LARGEST = 2**62
"""Every integer on the way is at most this large. G.4"""


def round_leaf(node: Quantised, x: float) -> int:
    """The leaf formula on one number, as every engine computes it."""
    clamped = min(max(x, node.low), node.high)
    return math.floor(clamped * node.per_unit + 0.5)


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


# Whether 64 bits hold every integer of a program. The emitter checks what it writes once more.


WORD = 2**63
LARGEST_LEAF = 2**53
"""A leaf, or a constant it is clipped to: whole numbers that binary64 holds."""
MOST_BITS = 62
Ends = tuple[int, int]


@dataclass(slots=True)
class Fits:
    """Proves programs, node by node; equal nodes once."""

    known: dict[Integer, Ends] = field(default_factory=dict)

    def check(
        self, rows: Condition, values: Iterable[Integer], groups: Iterable[Cells] = ()
    ) -> None:
        """`InvalidQuery` for a program that 64 bits might not hold."""
        self.condition(rows)
        for value in values:
            self.ends(value)
        for group in groups:
            if isinstance(group, BinCells):
                low, high = self.ends(group.value)
                _within(min(low, *group.edges), max(high, *group.edges))

    def ends(self, node: Integer) -> Ends:
        """The least and the largest that the node can be where it is not NULL."""
        found = self.known.get(node)
        if found is None:
            found = self.known[node] = _within(*self._ends(node))
        return found

    def condition(self, node: Condition) -> None:
        match node:
            case AllOf(parts=parts) | AnyOf(parts=parts):
                for part in parts:
                    self.condition(part)
            case Compared(left=left, right=right):
                self.ends(left)
                self.ends(right)
            case Missing(subject=subject) if not isinstance(subject, Text):
                self.ends(subject)

    def _ends(self, node: Integer) -> Ends:
        match node:
            case Quantised():
                low, high = (round_leaf(node, x) for x in (node.low, node.high))
                return _within(low, high, LARGEST_LEAF)
            case Fixed(value=None):
                return 0, 0
            case Fixed(value=int(constant)):
                return constant, constant
            case FlagBit():
                return 0, 1
            case HashedBit(value=inner):
                self.ends(inner)
                return 0, 1
            case Added(parts=parts):
                return self._added(parts)
            case BoundScaled(value=inner, factor=factor):
                return self._corners(self.ends(inner), _within(factor, factor), _product)
            case Multiplied(left=left, right=right):
                low, high = self._corners(self.ends(left), self.ends(right), _product)
                return (max(low, 0), high) if left == right else (low, high)
            case Shifted(value=inner, bits=bits):
                return self._shifted(self.ends(inner), bits)
            case Divided(over=over, under=under):
                dividend, divisor = self.ends(over), self.ends(under)
                if divisor[0] < 1:
                    raise InvalidQuery(
                        "a divisor could be zero or negative", reason=Reason.NEEDS_BOUNDS
                    )
                return self._corners(dividend, divisor, lambda a, b: (2 * a + b) // (2 * b))
            case Magnitude(value=inner):
                low, high = self.ends(inner)
                return (0 if low <= 0 <= high else min(abs(low), abs(high))), max(-low, high)
            case Lesser(left=left, right=right):
                a, b = self.ends(left), self.ends(right)
                return min(a[0], b[0]), min(a[1], b[1])
            case Greater(left=left, right=right):
                a, b = self.ends(left), self.ends(right)
                return max(a[0], b[0]), max(a[1], b[1])
            case BoundChoice(condition=condition, then=then, otherwise=otherwise):
                self.condition(condition)
                return self._one_of(then, otherwise)
            case FirstOf(value=first, instead=instead):
                return self._one_of(first, instead)
        raise TypeError(type(node).__name__)

    def _added(self, parts: tuple[Integer, ...]) -> Ends:
        """Every sum on the way, from the left."""
        low = high = 0
        for a, b in map(self.ends, parts):
            low, high = _within(low + a, high + b, WORD - 1)
        return low, high

    def _shifted(self, ends: Ends, bits: int) -> Ends:
        if not 0 <= bits <= MOST_BITS:
            raise InvalidQuery(f"a shift is by 0 to {MOST_BITS} bits, got {bits}")
        half = (1 << bits) >> 1
        low, high = _within(ends[0] + half, ends[1] + half, WORD - 1)
        return low >> bits, high >> bits

    def _corners(self, one: Ends, two: Ends, rule: Callable[[int, int], int]) -> Ends:
        found = [rule(a, b) for a in one for b in two]
        return min(found), max(found)

    def _one_of(self, one: Integer, two: Integer) -> Ends:
        ends = [self.ends(node) for node in (one, two)]
        held = [own for own, node in zip(ends, (one, two), strict=True) if node != Fixed(None)]
        held = held or ends
        return min(low for low, _ in held), max(high for _, high in held)


def _product(a: int, b: int) -> int:
    return a * b


def _within(low: int, high: int, largest: int = LARGEST) -> Ends:
    if max(-low, high) > largest:
        raise InvalidQuery(
            "a value could pass 2^62 on the way, which 64 bits might not hold; use fewer factors"
            " or smaller ones",
            reason=Reason.NEEDS_BOUNDS,
        )
    return low, high
