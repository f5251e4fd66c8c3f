"""What a vector program means, in plain Python integers: no arrays, no floats."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tests.kernel.engines.reference import Row, cell, holds, integer, leaf

from sulq.kernel.schema import vector_program as v


def whole(node: object, row: Row) -> int:
    if isinstance(node, v.UnitLeaf):
        steps = leaf(node.value, row)
        return node.instead if steps is None else node.scale * min(steps, node.most)
    found = integer(node, row)  # type: ignore[arg-type]
    assert found is not None, "a leaf of a vector is never NULL"
    return found


def shift(x: int, bits: int) -> int:
    return (2 * x + 2**bits) // (2 * 2**bits) if bits else x


def hot(place: int | None, size: int) -> list[int]:
    return [int(i == place) for i in range(size)]


def dot(a: Sequence[int], b: Sequence[int]) -> int:
    return sum(x * y for x, y in zip(a, b, strict=True))


def line(table: Sequence[int], score: int, bits: int) -> int:
    """The table at score / 2^bits, entries 2^-8 apart, positions between them to 10 bits."""
    place = score * 2**18 // 2**bits
    entry, part = divmod(place, 1024)
    here = table[entry]
    step = table[entry + 1] - here if entry + 1 < len(table) else 0
    return here + (step * part + 512) // 1024


def vector(node: v.Node, row: Row) -> list[int]:
    match node:
        case v.BoundConstant(values):
            return list(values)
        case v.BoundColumns(leaves, offsets):
            return [whole(a, row) - b for a, b in zip(leaves, offsets, strict=True)]
        case v.BoundOneHot(cells, count):
            return hot(cell(cells, row), count)
        case v.Binned(of, edges, other):
            x = vector(of, row)[0] if isinstance(of, v.NODES) else whole(of, row)
            size = len(edges) - 1
            inside = edges[0] <= x < edges[-1]
            place = sum(edge <= x for edge in edges) - 1 if inside else None
            return hot(size if place is None and other else place, size + other)
        case v.First(leaves, chunk, count):
            found = [whole(part, row) for part in leaves]
            places = [i * chunk + x for i, x in enumerate(found) if x < chunk]
            return hot(places[0] if places else None, count)
        case v.Looked(of, table):
            at = vector(of, row)
            return list(table[at.index(1)] if 1 in at else table[-1])
        case v.Projected(of, matrix, bits):
            x = vector(of, row)
            return [shift(dot(m, x), bits) for m in matrix]
        case v.Rescaled(of, factor, bits):
            return [shift(x * factor, bits) for x in vector(of, row)]
        case v.BoundClipped(of, bound):
            return shrunk(vector(of, row), bound)
        case v.BoundNearest():
            return hot(closest(node, row), len(node.centres))
        case v.BoundFromNearest(of, inner):
            centre = inner.centres[closest(inner, row)]
            return [x - c for x, c in zip(vector(of, row), centre, strict=True)]
        case v.BoundNorm(of):
            return [math.isqrt(sum(x * x for x in vector(of, row)))]
        case v.Squared(of, bits):
            return [shift(x * x, bits) for x in vector(of, row)]
        case v.BoundCrossed(left, right, bits):
            one, two = vector(left, row), vector(right, row)
            return [shift(a * b, bits) for a in one for b in two]
        case v.BoundConcat(parts):
            return [x for part in parts for x in vector(part, row)]
    return labelled(node, row)


def labelled(node: v.Node, row: Row) -> list[int]:
    match node:
        case v.BoundSigned(of, sign):
            return [whole(sign, row) * x for x in vector(of, row)]
        case v.BoundMargin(score, sign, at_most):
            y = whole(sign, row)
            return [int(y != 0 and y * vector(score, row)[0] <= at_most)]
        case v.LinearSlope(score, label, missing, bound):
            y = whole(label, row)
            slope = vector(score, row)[0] - y
            return [0 if y == missing else max(-bound, min(bound, slope))]
        case v.LogisticSlope(score, sign, bits):
            y, reach = whole(sign, row), 16 * 2**bits
            t = max(-reach, min(reach, vector(score, row)[0]))
            return [0 if y == 0 else line(v.logistic_table(), t + reach, bits) - v.FULL * (y == 1)]
        case v.HingeSlope(score, sign, bits):
            y = whole(sign, row)
            return [-y if y * vector(score, row)[0] < 2**bits else 0]
        case v.BoundSoftmax(of, bits):
            scores = vector(of, row)
            below = [min(max(scores) - s, 16 * 2**bits) for s in scores]
            weights = [line(v.decay_table(), u, bits) for u in below]
            return [w * v.FULL // sum(weights) for w in weights]
        case v.SharesSlope(of, label):
            place = cell(label, row)
            shares = vector(of, row)
            return [0 if place is None else s - v.FULL * (i == place) for i, s in enumerate(shares)]
    raise AssertionError(node)


def closest(node: v.BoundNearest, row: Row) -> int:
    x = vector(node.of, row)
    distances = [sum((a - b) ** 2 for a, b in zip(x, c, strict=True)) for c in node.centres]
    return distances.index(min(distances))


def shrunk(x: list[int], bound: int) -> list[int]:
    squares = sum(a * a for a in x)
    if squares <= bound * bound:
        return x
    root = math.isqrt(squares - 1) + 1
    return [(1 if a > 0 else -1) * (abs(a) * bound // root) for a in x]


def outer_sums(program: v.BlockSums, rows: Sequence[Row]) -> list[int]:
    answer = [0] * (program.shape[0] * program.shape[1])
    for row in rows:
        if holds(program.rows, row):
            one, two = vector(program.left, row), vector(program.right, row)
            for place, product in enumerate(a * b for a in one for b in two):
                answer[place] += product
    return answer
