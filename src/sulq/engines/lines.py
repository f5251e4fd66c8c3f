"""A comparison of one column with a constant, as a test of the bare column.

2 (x + 3) < 40 says leaf(x) < 17, and that says x < T: vectorised, and pruned by zone maps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sulq.engines.leaves import Leaf, Place, as_leaf, at_least, below
from sulq.schema.bound import Added, Compared, Fixed, Integer, Scaled, Shifted


@dataclass(frozen=True, slots=True)
class Lines:
    column: str
    sql: str


def half_lines(node: Compared, places: Mapping[str, Place]) -> Lines | None:
    """The test, or None where the comparison is not of one leaf with a constant."""
    if isinstance(node.right, Fixed) and node.right.value is not None:
        subject, constant, turned = node.left, node.right.value, False
    elif isinstance(node.left, Fixed) and node.left.value is not None:
        subject, constant, turned = node.right, node.left.value, True
    else:
        return None
    leaf = _bottom(subject)
    place = places.get(leaf.value.column) if leaf else None
    if leaf is None or place is None:
        return None

    def reaches(bound: int) -> str:
        return _reaches(subject, bound, leaf, place, True)

    def stays_below(bound: int) -> str:
        return _reaches(subject, bound, leaf, place, False)

    match node.operator, turned:
        case ("<", False):
            sql = stays_below(constant)
        case ("<=", False):
            sql = stays_below(constant + 1)
        case ("<", True):
            sql = reaches(constant + 1)
        case ("<=", True):
            sql = reaches(constant)
        case ("=", _):
            sql = f"({reaches(constant)} AND {stays_below(constant + 1)})"
        case _:
            sql = f"({stays_below(constant)} OR {reaches(constant + 1)})"
    return Lines(leaf.value.column, sql)


def _bottom(node: Integer) -> Leaf | None:
    """The leaf under shifts, non-zero scales and added constants."""
    leaf = as_leaf(node)
    if leaf is not None:
        return leaf
    match node:
        case Scaled(value=inner, factor=factor) if factor:
            return _bottom(inner)
        case Shifted(value=inner, bits=bits) if bits >= 0:
            return _bottom(inner)
        case Added(parts=(inner, Fixed(value=int()))) | Added(parts=(Fixed(value=int()), inner)):
            return _bottom(inner)
    return None


def _reaches(node: Integer, bound: int, leaf: Leaf, place: Place, up: bool) -> str:
    """node >= bound (up) or node < bound, carried down to the leaf."""
    if as_leaf(node) is not None:
        return at_least(leaf, place, bound) if up else below(leaf, place, bound)
    match node:
        case Scaled(value=inner, factor=factor) if factor > 0:
            return _reaches(inner, -(-bound // factor), leaf, place, up)
        case Scaled(value=inner, factor=factor):
            # factor * v >= bound  <=>  v <= floor(bound / factor)
            return _reaches(inner, bound // factor + 1, leaf, place, not up)
        case Shifted(value=inner, bits=bits):
            half = 1 << (bits - 1) if bits else 0
            return _reaches(inner, (bound << bits) - half, leaf, place, up)
        case Added(parts=(inner, Fixed(value=int(c)))) | Added(parts=(Fixed(value=int(c)), inner)):
            return _reaches(inner, bound - c, leaf, place, up)
    raise AssertionError("not a chain over a leaf")  # pragma: no cover
