"""How much one row, or one person, can move a vector of sums: for both neighbour relations.

Replace (claims V.3, M.8): the private columns of one row change. With d_j the width of term j's
range and m_j its largest magnitude, in units of the terms, the squared L2 change is the largest of

    sum d_j^2      the row stays in S and in its cell,
    sum m_j^2      it enters or leaves S (only if private columns decide that),
    2 sum m_j^2    it moves to another cell (only if private columns decide that).

Add-remove: the row comes or goes: sum m_j^2. L1 is the same without squares. A person of m rows
moves m times as much (M.5). Proof: docs/proofs/sensitivity.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.schema.columns import Known, Other, Schema, assignments
from sulq.kernel.schema.program import (
    Always,
    BinCells,
    CategoryCells,
    Cells,
    Condition,
    Fixed,
    FlagCells,
    Integer,
    RowSums,
    cell_count,
)
from sulq.kernel.schema.ranges import World, mentioned, narrowed_by, range_of, truth_of

MOST_WORK = 50_000
"""Column mentions times public profiles: pricing stays a matter of a second."""


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The largest change of the vector, each coordinate measured in its unit."""

    l1: Fraction
    l2_squared: Fraction
    coordinates: int  # how many coordinates can change at all


@dataclass(frozen=True, slots=True)
class _Reach:
    """What one row can do in one public profile, in steps."""

    widths: tuple[int, ...]
    largest: tuple[int, ...]
    stays: bool  # the row cannot enter or leave S, nor a cell
    moves: bool  # it can change its cell


def sensitivities(
    program: RowSums, schema: Schema, neighbours: str
) -> tuple[tuple[int, ...], list[tuple[Sensitivity, tuple[int, ...]]]]:
    """The unit of each term in steps, and the sensitivity of each group of accounts.

    A unit is the most a row can move that term by itself; 0 marks a public constant.
    """
    listed = list(mentioned(program.rows, *program.terms, *program.groups))
    by_account = [
        (_reach(program, schema, given), indexes) for given, indexes in profiles(schema, listed)
    ]
    units = [0] * len(program.terms)
    for reach, _ in by_account:
        for place in range(len(units)):
            units[place] = max(units[place], _alone(reach, place, neighbours))
    return tuple(units), [
        (_together(reach, units, neighbours, schema.max_rows), indexes)
        for reach, indexes in by_account
    ]


def profiles(
    schema: Schema, listed: Sequence[str]
) -> list[tuple[dict[str, Known], tuple[int, ...]]]:
    """The public profiles that a question which mentions these columns must be priced for."""
    found = assignments(schema, listed)
    if len(found) * len(listed) > MOST_WORK:
        raise InvalidQuery(
            f"too much to price: {len(listed)} mentions of columns times {len(found)} public"
            f" strata, at most {MOST_WORK}; ask in pieces",
            reason=Reason.TOO_LARGE,
        )
    return found


def _reach(program: RowSums, schema: Schema, given: dict[str, Known]) -> _Reach | None:
    """None if no row of this profile is ever in S."""
    if schema.unit == "row":
        public = frozenset(column.name for column in schema.columns if column.public)
    else:
        public = frozenset()  # which rows of a person count depends on all of them
    world = World(public, given)
    rows = truth_of(program.rows, world)
    if rows.verdict == "never":
        return None
    inside = narrowed_by(program.rows, world)
    cells = [_cells(group, inside) for group in program.groups]
    if any(cell == "outside" for cell in cells):
        return None
    widths, largest = [], []
    for term in program.terms:
        r = range_of(term, inside)
        if r.low > r.high:  # always NULL
            widths.append(0)
            largest.append(0)
            continue
        sure = r.needs is not None and r.needs <= rows.present
        low, high = (r.low, r.high) if sure else (min(r.low, 0), max(r.high, 0))
        hidden_gap = not sure and any(world.hides(name) for name in mentioned(term))
        widths.append(high - low if r.private or hidden_gap else 0)
        largest.append(max(abs(r.low), abs(r.high)))
    moves = any(cell == "moves" for cell in cells)
    stays = not rows.private and not moves and schema.one_each
    return _Reach(tuple(widths), tuple(largest), stays, moves)


def _cells(group: Cells, world: World) -> str:
    """Whether a row can "move" between cells, has a "fixed" public one, or is "outside" all."""
    if any(world.hides(name) for name in mentioned(group)):
        return "moves"
    if isinstance(group, BinCells):
        return "fixed"
    known = world.given.get(group.column)
    if isinstance(known, Other) and not group.other:
        return "outside"
    if isinstance(group, CategoryCells | FlagCells):
        return "fixed"
    raise TypeError(type(group).__name__)


def _alone(reach: _Reach | None, place: int, neighbours: str) -> int:
    """The sensitivity of one term asked by itself without groups, in steps."""
    if reach is None:
        return 0
    if neighbours == "add-remove":
        return reach.largest[place]
    if reach.stays:
        return reach.widths[place]
    return max(reach.widths[place], reach.largest[place])


def _together(
    reach: _Reach | None, units: Sequence[int], neighbours: str, rows: int
) -> Sensitivity:
    if reach is None:
        return Sensitivity(Fraction(0), Fraction(0), 0)
    widths = _in_units(reach.widths, units)
    largest = _in_units(reach.largest, units)
    if neighbours == "add-remove":
        changes = [(largest, 1)]
    else:
        changes = [(widths, 1)]
        if not reach.stays:
            changes.append((largest, 1))
        if reach.moves:
            changes.append((largest, 2))
    return Sensitivity(
        rows * max(times * sum(change, Fraction(0)) for change, times in changes),
        rows**2
        * max(times * sum((x * x for x in change), Fraction(0)) for change, times in changes),
        rows * max(times * sum(x > 0 for x in change) for change, times in changes),
    )


def _in_units(steps: Sequence[int], units: Sequence[int]) -> list[Fraction]:
    # A unit of 0 marks a term that no single row can move: it is public and carries no noise.
    return [
        Fraction(s, unit) if unit else Fraction(0) for s, unit in zip(steps, units, strict=True)
    ]


# Keys with figures: for every key how many units have it, its sums, and over all keys the units.
#
# A person of m rows has at most m keys, and counts once for each. With Q the sum of M_j^2 and W the
# sum of M_j max(M_j, w_j) over the sums, in their units, b keys before and a after (0 for nobody):
#
#     b + a + (b - a)^2 / m + q (rows(b) + rows(a)) / m,   rows(n) = (m - n + 1)^2 + n - 1
#
# bounds the squared change, with q = Q where no key is the same, and with q = W and 2 less where
# one is. It is convex in b and in a, so the ends decide. The divisor m is that of the noise: sums
# and total have m times the variance of the counts. Proof: docs/proofs/keys.md, section 7. P.4


def keys_reach(
    program: RowSums, units: Sequence[int], schema: Schema, neighbours: str
) -> list[tuple[Fraction, tuple[int, ...]]]:
    """L2^2 of the counts by key, the sums of `program` by key and the total of the counts, for each
    group of accounts; a sum in its `units`."""
    listed = list(mentioned(program.rows, *program.terms))
    found = []
    for given, numbers in profiles(schema, listed):
        reach = _reach(program, schema, given)
        if reach is None:
            found.append((Fraction(0), numbers))
            continue
        widths, largest = _in_units(reach.widths, units), _in_units(reach.largest, units)
        plain = sum((m * m for m in largest), Fraction(0))
        crossed = sum((m * max(m, w) for m, w in zip(largest, widths, strict=True)), Fraction(0))
        found.append((keys_squared(schema.max_rows, plain, crossed, neighbours), numbers))
    return found


def keys_squared(rows: int, plain: Fraction, crossed: Fraction, neighbours: str) -> Fraction:
    """The bound above: Q is `plain`, W is `crossed`, a person has so many `rows`. P.4"""

    def change(before: int, after: int, q: Fraction) -> Fraction:
        held = sum((rows - n + 1) ** 2 + n - 1 for n in (before, after) if n)
        return before + after + Fraction((before - after) ** 2, rows) + q * held / rows

    if neighbours == "add-remove":
        return max(change(n, 0, plain) for n in (1, rows))
    ends = [(1, 1), (1, rows), (rows, rows)]
    apart = max(change(*end, plain) for end in ends)
    return max(apart, max(change(*end, crossed) for end in ends) - 2)


# Sums per person, clipped, then added up: one person moves them by the clip alone. M.5
#
# A person of up to m rows has the sum s of the term over their rows in S (NULL adds 0), one for
# each cell they have such rows in. Clipped, it lies in [low, high]; a person without rows in S
# adds 0.
# With d = high - low and M = max(|low|, |high|), in one cell: max(d, M) under replace, M under
# add-remove; over cells, of which a person reaches k <= m: L2^2 = max(k d^2, 2 k M^2), or k M^2.
# Proof: docs/proofs/sensitivity.md, section 7.

LARGEST = 2**62
MOST_HELD = 2**20
"""A person's rows are told up to so many, however many there are."""


@dataclass(frozen=True, slots=True)
class PersonSums:
    """What an engine is asked: per person and cell, clip(sum of the term over S); then the sum.

    `low <= high`, both in steps; a person without rows in S adds nothing.
    """

    rows: Condition
    term: Integer
    groups: tuple[Cells, ...]
    low: int
    high: int
    rows_each: int
    uncut: bool = False
    """Count all rows of each person, also those beyond max_rows. P.1"""

    @property
    def plain(self) -> RowSums:
        """The same sums without persons and clip."""
        return RowSums(self.rows, (self.term,), self.groups)


def counted_text(schema: Schema) -> str:
    """What a person's rows count for, on a table of persons: a fact of the policy. M.5"""
    if schema.unit == "row" or schema.of_study:
        return ""  # of a study it is said with the table, in `checked_values`
    most = "1 row counts" if schema.max_rows == 1 else f"{schema.max_rows:,} rows count"
    return f"of each person at most {most}"


def check_person_unit(schema: Schema) -> None:
    """Only where persons are the unit is there something to group by."""
    if schema.unit == "row":
        raise InvalidQuery(
            "this table protects rows and knows no persons; a question per person needs a table"
            " published with unit=<the person column> and max_rows"
        )


def person_sums(
    program: RowSums, clip: tuple[Fraction, Fraction], schema: Schema, uncut: bool = False
) -> PersonSums:
    """The program with its clip in steps, no wider than a person's rows can reach.

    Of rows that are not cut a person has from 1 to any number: only the clip bounds them. P.1
    """
    low, high = (math.floor(end + Fraction(1, 2)) for end in clip)
    if clip[0] > clip[1]:
        raise InvalidQuery(f"a clip is (low, high) with low <= high, got {clip[0]} and {clip[1]}")
    world = World(frozenset(), {})
    one = range_of(program.terms[0], narrowed_by(program.rows, world))
    least, most = (one.low, one.high) if one.low <= one.high else (0, 0)
    rows = truth_of(program.rows, world)
    if one.needs is None or not one.needs <= rows.present:  # NULL adds 0
        least, most = min(least, 0), max(most, 0)
    if uncut and program != RowSums(Always(), (Fixed(1),)):
        raise InvalidQuery(
            "of rows beyond max_rows only their number is told: rows_held(clip), without where"
        )
    m = MOST_HELD if uncut else schema.max_rows
    ends = [min(max(end, low), high) for end in (min(least, m * least), max(most, m * most))]
    if max(map(abs, ends)) > LARGEST:
        raise InvalidQuery(
            "a person's sum could pass 2^62 steps; take a tighter clip", reason=Reason.NEEDS_BOUNDS
        )
    low, high = ends
    where, term = program.rows, program.terms[0]
    return PersonSums(where, term, program.groups, low, high, schema.max_rows, uncut)


def person_sensitivity(program: PersonSums, neighbours: str) -> tuple[int, Sensitivity]:
    """The unit in steps, and how far one person can move the sums."""
    rows = truth_of(program.rows, World(frozenset(), {}))
    width, largest = program.high - program.low, max(abs(program.low), abs(program.high))
    if rows.verdict == "never":
        width = largest = 0
    if not program.groups and rows.verdict == "always":
        absent = 0  # every person has a row, so all they can do is change it
    else:
        absent = largest
    unit = largest if neighbours == "add-remove" else max(width, absent)
    if unit == 0:
        return 0, Sensitivity(Fraction(0), Fraction(0), 0)
    cells = math.prod(cell_count(group) for group in program.groups)
    reached = min(program.rows_each, cells)
    changes = [(reached, largest)]  # (coordinates, change of each)
    if neighbours == "replace":
        changes = [(reached, width), (2 * reached if program.groups else 1, absent)]
    return unit, Sensitivity(
        max(Fraction(count * size, unit) for count, size in changes),
        max(Fraction(count * size**2, unit**2) for count, size in changes),
        max(count for count, size in changes if size),
    )
