"""A small outer product as plain sums of products, for engines where streaming rows costs more."""

from __future__ import annotations

from dataclasses import dataclass

from sulq.schema.bound import Added, FirstOf, Fixed, Integer, Lesser, Multiplied, RowSums, Scaled
from sulq.schema.vectors import BlockSums, Constant, Coordinates, Joined, Node, UnitLeaf


@dataclass(frozen=True, slots=True)
class SmallOuter:
    """Every different product once, and which of them each entry of the matrix is."""

    sums: RowSums
    entries: tuple[int, ...]

    def matrix(self, sums: list[int]) -> list[int]:
        return [sums[place] for place in self.entries]


def small_outer(program: BlockSums, most: int) -> SmallOuter | None:
    """None where it takes more than `most` products or a side is no list of plain coordinates."""
    left, right = _coordinates(program.left), _coordinates(program.right)
    if left is None or right is None:
        return None
    places: dict[Integer, int] = {}
    entries = []
    for one in left:
        for two in right:
            product = _product(one, two)
            turned = _product(two, one)
            key = turned if turned in places else product
            entries.append(places.setdefault(key, len(places)))
            if len(places) > most:
                return None
    return SmallOuter(RowSums(program.rows, tuple(places)), tuple(entries))


def _coordinates(node: Node) -> list[Integer] | None:
    match node:
        case Constant(values=values):
            return [Fixed(value) for value in values]
        case Coordinates(leaves=leaves, offsets=offsets):
            return [
                Added((_whole(leaf), Fixed(-offset))) if offset else _whole(leaf)
                for leaf, offset in zip(leaves, offsets, strict=True)
            ]
        case Joined(parts=parts):
            found: list[Integer] = []
            for part in parts:
                inner = _coordinates(part)
                if inner is None:
                    return None
                found += inner
            return found
    return None


def _whole(leaf: Integer | UnitLeaf) -> Integer:
    if isinstance(leaf, UnitLeaf):
        clipped = Lesser(leaf.value, Fixed(leaf.most))
        value = clipped if leaf.scale == 1 else Scaled(clipped, leaf.scale)
        return FirstOf(value, Fixed(leaf.instead))
    return leaf


def _product(one: Integer, two: Integer) -> Integer:
    if isinstance(one, Fixed) and isinstance(two, Fixed):
        if one.value is not None and two.value is not None:
            return Fixed(one.value * two.value)
    elif isinstance(one, Fixed):
        return Multiplied(two, one)  # not Scaled: the coordinate is to be worked out once, as it is
    return Multiplied(one, two)
