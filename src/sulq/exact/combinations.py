"""What one row can change, and which steps of other rows make up every such change. S1.8"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import add

import numpy as np
from numpy.typing import NDArray

from sulq.errors import UnsafeExactly
from sulq.exact.domain import PublicClass, Vector

Integers = NDArray[np.int64]
MOST_KINDS = 16
MOST_CELLS = 4_000
"""Different additions of one class whose pairs are compared."""
MOST_CHANGES = 200_000
MOST_PLACES = 2**23
"""Points of a box that is searched as a whole; in a larger one, as many as MOST_CHANGES."""
FARTHEST = 128
"""Coins that one change may stand for."""
LARGEST_CODE = 2**62


@dataclass(frozen=True, slots=True, eq=False)
class RowChanges:
    """Every change one row can make (v or -v), and the steps that all rows of a class offer."""

    vectors: Integers
    steps: tuple[Vector, ...]

    @property
    def widths(self) -> Integers:
        widths: Integers = np.abs(self.vectors).max(axis=0)
        return widths

    @property
    def longest_squared(self) -> int:
        """max |v|^2."""
        return max(sum(x * x for x in map(int, v)) for v in self.vectors)

    def longest(self, count: int) -> RowChanges:
        """The changes of largest sums of absolute entries."""
        order = np.argsort(np.abs(self.vectors).sum(axis=1), kind="stable")
        return RowChanges(self.vectors[order[-count:]], self.steps)


def changes_of(classes: Sequence[PublicClass]) -> RowChanges:
    """Differences within a class (it is public and stays); steps that its rows surely offer."""
    width = len(next(iter(classes[0].all))) if classes else 0
    spans = [0] * width
    for part in classes:
        for i in range(width):
            column = [cell[i] for cell in part.all]
            spans[i] = max(spans[i], max(column) - min(column))
    code = _Code(spans)
    seen: dict[bytes, Integers] = {}
    found = np.zeros(0, dtype=np.int64)
    able: set[int] = set()
    for part in classes:
        found = np.union1d(found, _differences(code, part.all, seen))
        offers: set[int] | None = None
        for cells in {frozenset(cells) for cells in part.contexts}:
            here = set(_differences(code, cells, seen).tolist())
            offers = here if offers is None else offers & here
        able |= offers or set()
        if len(found) > MOST_CHANGES:
            raise UnsafeExactly(
                f"one row can change the batch in more than {MOST_CHANGES} ways; ask for less"
            )
    steps = code.read(np.array(sorted(able), dtype=np.int64))
    return RowChanges(code.read(found), tuple(tuple(map(int, u)) for u in steps))


class _Code:
    """Vectors within +-spans as single integers: sums and differences carry over."""

    def __init__(self, spans: Sequence[int]) -> None:
        self.radices = [2 * span + 1 for span in spans]
        self.places = [math.prod(self.radices[:i]) for i in range(len(spans))]
        if math.prod(self.radices) > LARGEST_CODE:
            raise UnsafeExactly("the batch has too many sums of too wide a range; ask for less")

    def write(self, vectors: Integers) -> Integers:
        codes: Integers = vectors @ np.array(self.places, dtype=np.int64)
        return codes

    def read(self, codes: Integers) -> Integers:
        rest = codes + sum(p * (r // 2) for p, r in zip(self.places, self.radices, strict=True))
        columns = []
        for radix in self.radices:
            columns.append(rest % radix - radix // 2)
            rest = rest // radix
        vectors: Integers = np.stack(columns, axis=1)
        return vectors


def _differences(code: _Code, cells: frozenset[Vector], seen: dict[bytes, Integers]) -> Integers:
    """All b - a, one of each sign: the code of v is above 0 exactly where that of -v is below."""
    if len(cells) > MOST_CELLS:
        raise UnsafeExactly(
            f"one row can add to the batch in {len(cells)} ways, at most {MOST_CELLS}; ask for less"
        )
    origin = [min(column) for column in zip(*cells, strict=True)]
    table = np.array([[x - o for x, o in zip(cell, origin, strict=True)] for cell in cells])
    codes = np.sort(code.write(table.reshape(len(cells), len(origin))))
    codes -= codes[0]
    key = codes.tobytes()
    if key not in seen:
        found = np.zeros(0, dtype=np.int64)
        for part in np.array_split(np.arange(len(codes)), len(codes) // 500 + 1):
            apart = (codes[None, :] - codes[part, None]).ravel()
            found = np.union1d(found, apart[apart > 0])
        seen[key] = found
    return seen[key]


# --- which steps to count on --------------------------------------------------------------------


def designs(changes: RowChanges) -> Iterator[tuple[Vector, ...]]:
    """A few sets of steps worth trying: the shortest, and with them some long ones."""
    ranked = sorted(changes.steps, key=lambda u: (sum(map(abs, u)), u))
    lattice = _Lattice()
    basis = [u for u in ranked if lattice.grows(u)][:MOST_KINDS]
    if not basis:
        return
    tried = {tuple(basis)}
    yield tuple(basis)
    able = set(ranked)
    reach = {u: max(j for j in range(1, FARTHEST + 1) if _times(j, u) in able) for u in basis}
    for rule in _MULTIPLES:
        longer = [
            _times(j, u) for u in basis for j in rule(reach[u]) if _times(j, u) in able and j > 1
        ]
        for extra in (longer, longer[-1:]):
            design = (*basis, *extra)
            if len(design) <= MOST_KINDS and design not in tried:
                tried.add(design)
                yield design
    vectors = {tuple(map(int, v)) for v in changes.longest(64).vectors}
    for longest in sorted(vectors & able, key=lambda u: (-sum(map(abs, u)), u))[:3]:
        design = (*basis, longest)
        if longest not in basis and len(design) <= MOST_KINDS and design not in tried:
            tried.add(design)
            yield design
    if len(ranked) <= MOST_KINDS and tuple(ranked) not in tried:
        yield tuple(ranked)


_MULTIPLES = (
    # a change of up to L single steps as few coins of steps 1, s, ...: balanced digits
    lambda far: [math.isqrt(2 * far)] if far > 3 else [],
    lambda far: [math.isqrt(far // 2), far // 2] if far > 15 else [],
    lambda far: [round(far ** (1 / 3)), round(far ** (2 / 3))] if far > 15 else [],
    lambda far: [far] if far > 1 else [],
)


def _times(j: int, u: Vector) -> Vector:
    return tuple(j * x for x in u)


class _Lattice:
    """Whole combinations of the vectors so far, in echelon form."""

    def __init__(self, vectors: Sequence[Vector] = ()) -> None:
        self._rows: dict[int, Vector] = {}
        for vector in vectors:
            self.grows(vector)

    def grows(self, vector: Vector) -> bool:
        """Take the vector in; whether it was not a whole combination already."""
        grown = False
        while (pivot := _first(vector)) is not None:
            row = self._rows.get(pivot)
            if row is None:
                self._rows[pivot] = vector
                return True
            vector = _less(vector, vector[pivot] // row[pivot], row)
            if vector[pivot]:  # Euclid: the smaller head becomes the row
                self._rows[pivot], vector = vector, row
                grown = True
        return grown

    def holds(self, vector: Sequence[int]) -> bool:
        """Whether it is a whole combination."""
        left = tuple(vector)
        while (pivot := _first(left)) is not None:
            row = self._rows.get(pivot)
            if row is None or left[pivot] % row[pivot]:
                return False
            left = _less(left, left[pivot] // row[pivot], row)
        return True


def _first(vector: Vector) -> int | None:
    return next((i for i, x in enumerate(vector) if x), None)


def _less(vector: Vector, times: int, row: Vector) -> Vector:
    return tuple(x - times * y for x, y in zip(vector, row, strict=True))


# --- making up changes from steps ---------------------------------------------------------------


def shortest(changes: RowChanges, steps: Sequence[Vector]) -> tuple[Integers, NDArray[np.bool_]]:
    """For each change the whole combination of fewest steps, and whether one was found."""
    counts, found = _search(changes, steps, 1)
    if not found.all() and all(map(_Lattice(steps).holds, changes.vectors[~found].tolist())):
        return _search(changes, steps, 2)  # it may have to swing wider
    return counts, found


def _search(
    changes: RowChanges, steps: Sequence[Vector], slack: int
) -> tuple[Integers, NDArray[np.bool_]]:
    """Outward from 0, one step at a time, within `slack` times the widest change."""
    bounds = slack * np.maximum(changes.widths, 1)
    code = _Code([int(b) for b in bounds])
    size = math.prod(code.radices)
    if size > MOST_PLACES:
        return _search_sparsely(changes, steps)
    wanted = code.write(changes.vectors) + size // 2
    seen = np.full(size, -1, dtype=np.int32)
    seen[size // 2] = 0
    edge = np.zeros((1, len(bounds)), dtype=np.int64)
    edge_counts = np.zeros((1, len(steps)), dtype=np.int64)
    counts, visited = [edge_counts], 1
    for _ in range(FARTHEST):
        if not len(edge) or (seen[wanted] >= 0).all():
            break
        reached, reached_counts = [], []
        for k, u in enumerate(steps):
            for sign in (1, -1):
                there = edge + sign * np.array(u, dtype=np.int64)
                inside = (np.abs(there) <= bounds).all(axis=1)
                place = code.write(there) + size // 2
                inside[inside] = seen[place[inside]] < 0
                after = edge_counts[inside]
                after[:, k] += sign
                seen[place[inside]] = visited + np.arange(len(after))
                visited += len(after)
                reached.append(there[inside])
                reached_counts.append(after)
        edge, edge_counts = np.concatenate(reached), np.concatenate(reached_counts)
        counts.append(edge_counts)
    at = seen[wanted]
    return np.where(at[:, None] >= 0, np.concatenate(counts)[at], 0), at >= 0


def _search_sparsely(
    changes: RowChanges, steps: Sequence[Vector]
) -> tuple[Integers, NDArray[np.bool_]]:
    """The same for many sums of few values each: remember only places that were reached."""
    wanted = [tuple(map(int, v)) for v in changes.vectors]
    bounds = [int(x) for x in changes.widths]
    moves = [(k, sign, _times(sign, u)) for k, u in enumerate(steps) for sign in (1, -1)]
    nothing = (0,) * len(steps)
    seen = {(0,) * len(bounds): nothing}
    edge = list(seen)
    missing = set(wanted)
    while edge and missing and len(seen) <= MOST_CHANGES:
        following = []
        for place in edge:
            for k, sign, move in moves:
                there = tuple(map(add, place, move))
                if there in seen or any(abs(x) > b for x, b in zip(there, bounds, strict=True)):
                    continue
                c = seen[place]
                seen[there] = (*c[:k], c[k] + sign, *c[k + 1 :])
                following.append(there)
        missing.difference_update(following)
        edge = following
    counts = np.array([seen.get(v, nothing) for v in wanted], dtype=np.int64)
    return counts.reshape(len(wanted), len(steps)), np.array([v in seen for v in wanted])
