"""Every integer of a bound program fits 64 bits, those that are only met on the way too.

`bind` asks this page before anything is charged; whatever engine will run the program, whatever a
file holds, the verdict is the same. The emitter checks each expression that it writes once more.
Proof: docs/proofs/binding.md, section 7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.schema.fixed_point import LARGEST, round_leaf
from sulq.kernel.schema.program import (
    Added,
    AllOf,
    AnyOf,
    BinCells,
    BoundChoice,
    BoundScaled,
    Cells,
    Compared,
    Condition,
    Divided,
    FirstOf,
    Fixed,
    FlagBit,
    Greater,
    HashedBit,
    Integer,
    Lesser,
    Magnitude,
    Missing,
    Multiplied,
    Quantised,
    Shifted,
    Text,
)

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
                return self._either(then, otherwise)
            case FirstOf(value=first, instead=instead):
                return self._either(first, instead)
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

    def _either(self, one: Integer, two: Integer) -> Ends:
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
