"""Sums per person, clipped, then added up: one person moves them by the clip alone. M.5

A person of up to m rows has the sum s of the term over their rows in S (NULL adds 0), one for each
cell they have such rows in. Clipped, it lies in [low, high]; a person without rows in S adds 0.
With d = high - low and M = max(|low|, |high|), in one cell: max(d, M) under replace, M under
add-remove; over cells, of which a person reaches k <= m: L2^2 = max(k d^2, 2 k M^2), or k M^2.
Proof: docs/proofs/sensitivity.md, section 7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.program import Always, Cells, Condition, Fixed, Integer, RowSums, cell_count
from sulq.kernel.schema.ranges import World, narrowed_by, range_of, truth_of
from sulq.kernel.schema.sensitivity import Sensitivity

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
    if schema.unit == "row":
        return ""
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
