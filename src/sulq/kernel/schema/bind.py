"""bind(query, schema): proves a question's types, bounds, totality and sensitivity, or refuses.

Nothing here reads data. What comes out is a program of integers that cannot fail on any row.
Proof: docs/proofs/binding.md.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.query import canonical
from sulq.kernel.query.expressions import Column, Expression, Operation
from sulq.kernel.query.sum_query import (
    Group,
    Statistic,
    SumQuery,
    as_statistic,
    check_kind,
    digest_of,
    text_of,
)
from sulq.kernel.schema import columns as declared
from sulq.kernel.schema.bind_rows import RowBinder
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.fixed_point import Steps
from sulq.kernel.schema.program import (
    BinCells,
    CategoryCells,
    Cells,
    Fixed,
    FlagCells,
    Integer,
    OfTable,
    RowSums,
    cell_count,
    height,
    rows_of_table,
)
from sulq.kernel.schema.ranges import Fits
from sulq.kernel.schema.sensitivity import (
    PersonSums,
    Sensitivity,
    check_person_unit,
    counted_text,
    person_sensitivity,
    person_sums,
    sensitivities,
)
from sulq.kernel.schema.study import checked_values, relation_of
from sulq.kernel.schema.trees import CountTree, TreeSums

if TYPE_CHECKING:  # outer products load their part when first asked
    from sulq.kernel.schema.bind_vectors import BoundOuter
    from sulq.kernel.schema.vector_program import BlockSums

    Program: TypeAlias = RowSums | TreeSums | PersonSums | BlockSums
    """What engines add up."""

MOST_CELLS = 1_000_000
TALLEST = 250
"""Nesting that every engine's parser and planner can take."""
SMALLEST = Fraction(1, 2**400)
"""Steps stay where binary64 can report them."""


@dataclass(frozen=True, slots=True)
class NoiseGrid:
    """Where noise is drawn: at least `bits` bits per unit of sensitivity; 0: on the sums' own grid.

    `whole`: a sum of whole numbers stays on the whole numbers, whatever `bits` is. S2.6
    """

    bits: int = 30
    whole: bool = False

    def lift(self, value: Steps, unit: int) -> int:
        """What a sum is multiplied by before noise is added."""
        if not unit or (self.whole and value.exact and value.step.denominator == 1):
            return 1
        return 1 << max(0, self.bits + 1 - unit.bit_length())


FINE = NoiseGrid()


@dataclass(frozen=True, slots=True)
class BoundTerm:
    """One sum: whole steps of size `step`; `middle` was taken off each row's value.

    A unit question moves by `unit` steps; the sum is multiplied by `lift` before noise is added.
    """

    value: Integer
    step: Fraction
    unit: int
    lift: int
    middle: Fraction
    low: Fraction
    high: Fraction
    fine_step: Fraction = field(init=False)
    """User units per step of the noisy integer."""
    fine_unit: int = field(init=False)
    """What a unit question moves the noisy integer by."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "fine_step", self.step / self.lift)
        object.__setattr__(self, "fine_unit", self.unit * self.lift)


@dataclass(frozen=True, slots=True)
class BoundGroup:
    """One axis of the answer: its cells, and what to call them."""

    name: str
    keys: tuple[object, ...]
    cells: Cells | None


@dataclass(frozen=True, slots=True, eq=False)
class BoundQuery:
    """A question proved safe to price and to run."""

    statistic: Statistic
    query: SumQuery
    text: str
    digest: str
    sums: Program
    terms: tuple[BoundTerm, ...]
    groups: tuple[BoundGroup, ...]
    reach: tuple[tuple[Sensitivity, tuple[int, ...]], ...]
    outer: BoundOuter | None = None
    notes: tuple[str, ...] = ()
    steps: bool = False  # the last group's cells are the points of a declared lattice
    schema: Schema | None = None
    tree: CountTree | None = field(init=False)
    """The tree over the last group's cells; its terms are the levels, from the top."""
    cells: int = field(init=False)

    def __post_init__(self) -> None:
        tree = self.sums.tree if isinstance(self.sums, TreeSums) else None
        object.__setattr__(self, "tree", tree)
        object.__setattr__(self, "cells", math.prod(self.shape))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(group.keys) for group in self.groups)

    @property
    def layout(self) -> tuple[int, ...]:
        """The term of each noisy sum: the terms of a cell, or the levels of a tree's nodes; and so
        on, cell after cell, tree after tree."""
        numbers = range(len(self.terms))
        return tuple(numbers if self.tree is None else self.tree.along(numbers))

    @property
    def width(self) -> int:
        """How many noisy sums there are."""
        return self.cells // (1 if self.tree is None else self.tree.leaves) * len(self.layout)

    def lifted(self, sums: list[int]) -> list[int]:
        """The engine's sums on the fine grid where noise is added."""
        scale = 1 if self.tree is None else self.tree.scale
        lifts = [self.terms[number].lift * scale for number in self.layout]
        return [value * lifts[place % len(lifts)] for place, value in enumerate(sums)]


def bind(
    question: object,
    schema: Schema,
    neighbours: str = "replace",
    *,
    grid: NoiseGrid = FINE,
    asked_before: bool = False,
) -> BoundQuery:
    """Prove a question safe on this schema; `InvalidQuery` says what is wrong and the remedy.

    `asked_before`: it stands in the ledger and is only worked out again, so what is refused since
    then is not; its integers are proved all the same.
    """
    statistic = as_statistic(question)
    try:
        query, of = statistic.query.canonical(), None
        if schema.of_study or query.table:
            query, schema, of = relation_of(query, schema)
        if query.outer is not None:
            found = _bind_outer(query, schema, of, neighbours, grid, asked_before)
        else:
            binder = RowBinder(schema, asked_before)
            found = _bind_sums(statistic, query, binder, of, neighbours, grid)
        if statistic is question:
            check_kind(statistic)
        counted = "" if query.uncut else counted_text(schema)
        said = filter(None, (counted, *found.notes))
        return replace(found, schema=schema, notes=tuple(said))
    except RecursionError:
        raise InvalidQuery(
            "the question is nested too deeply; flatten or shorten it", reason=Reason.TOO_LARGE
        ) from None


def _is_centred(term: Expression) -> bool:
    return isinstance(term, Operation) and term.name == "centred"


def _bind_sums(
    statistic: Statistic,
    query: SumQuery,
    binder: RowBinder,
    of: OfTable | None,
    neighbours: str,
    grid: NoiseGrid,
) -> BoundQuery:
    schema = binder.schema
    if query.clip is not None:
        check_person_unit(schema)
    rows = binder.condition(query.rows)
    if of is not None:
        rows = rows_of_table(of, rows)
    values = [binder.centred_number(term) for term in query.terms]
    groups = tuple(_group(group, binder, schema) for group in query.groups)
    if math.prod(len(group.keys) for group in groups) * len(values) > MOST_CELLS:
        raise InvalidQuery(
            f"at most {MOST_CELLS} cells in one question; group by fewer columns",
            reason=Reason.TOO_LARGE,
        )
    program = RowSums(
        rows,
        tuple(value.node for value, _ in values),
        tuple(group.cells for group in groups if group.cells is not None),
    )
    if height(program) > TALLEST:
        raise InvalidQuery(
            "the question is nested too deeply; flatten or shorten it", reason=Reason.TOO_LARGE
        )
    Fits().check(program.rows, program.terms, program.groups)
    if schema.of_study:
        averages = any(_is_centred(term) for term in query.terms)
        binder.notes += checked_values(schema, program, averages=averages)
    text = text_of(query)
    digest = digest_of(text)
    if query.clip is not None:
        return _bind_persons(
            statistic, query, text, program, groups, values[0], binder, neighbours, grid
        )
    units, reach = sensitivities(program, schema, neighbours)
    if any(group.tree for group in query.groups):
        return _bind_tree(statistic, query, text, program, groups, units[0], reach, binder, grid)
    terms = tuple(
        _term(value, middle, unit, grid)
        for (value, middle), unit in zip(values, units, strict=True)
    )
    return BoundQuery(
        statistic,
        query,
        text,
        digest,
        program,
        terms,
        groups,
        tuple(reach),
        notes=tuple(dict.fromkeys(binder.notes)),
    )


def _bind_tree(
    statistic: Statistic,
    query: SumQuery,
    text: str,
    program: RowSums,
    groups: tuple[BoundGroup, ...],
    unit: int,
    reach: list[tuple[Sensitivity, tuple[int, ...]]],
    binder: RowBinder,
    grid: NoiseGrid,
) -> BoundQuery:
    """A distribution: one term per level, of its own noise."""
    last = query.groups[-1]
    if not last.tree or any(group.tree for group in query.groups[:-1]):
        raise InvalidQuery("a tree of counts is the last group of a question, and the only one")
    if program.terms != (Fixed(1),):
        raise InvalidQuery("a tree adds up rows: its only term is 1")
    tree = CountTree(len(groups[-1].keys), even=grid.bits == 0)
    cells = math.prod(len(group.keys) for group in groups)
    if 2 * cells > MOST_CELLS:
        raise InvalidQuery(
            f"at most {MOST_CELLS // 2} cells in one distribution; take fewer",
            reason=Reason.TOO_LARGE,
        )
    # levels are weighted, so nodes keep the fine grid
    value = Steps(Fixed(1), 0, tree.scale, Fraction(1, tree.scale), exact=False)
    terms = tuple(_term(value, Fraction(0), own if unit else 0, grid) for own in tree.units)
    return BoundQuery(
        statistic,
        query,
        text,
        digest_of(text),
        TreeSums(program, tree),
        terms,
        groups,
        tuple((tree.sensitivity(moved), accounts) for moved, accounts in reach),
        notes=tuple(dict.fromkeys(binder.notes)),
        steps=_on_points(last, binder.number(last.of)),
    )


def _bind_persons(
    statistic: Statistic,
    query: SumQuery,
    text: str,
    program: RowSums,
    groups: tuple[BoundGroup, ...],
    term: tuple[Steps, Fraction],
    binder: RowBinder,
    neighbours: str,
    grid: NoiseGrid,
) -> BoundQuery:
    """A sum per person, clipped, then added up."""
    value, middle = term
    if middle or any(group.tree for group in query.groups):
        raise InvalidQuery("per person there are counts, totals and histograms of plain sums")
    assert query.clip is not None  # noqa: S101
    low, high = (binder.literal(end, value.kind) / value.step for end in query.clip)
    clipped = person_sums(program, (low, high), binder.schema, query.uncut)
    unit, reach = person_sensitivity(clipped, neighbours)
    whole = Steps(value.node, clipped.low, clipped.high, value.step, value.exact)
    return BoundQuery(
        statistic,
        query,
        text,
        digest_of(text),
        clipped,
        (_term(whole, Fraction(0), unit, grid),),
        groups,
        ((reach, (0,)),),
        notes=tuple(dict.fromkeys(binder.notes)),
    )


def _bind_outer(
    query: SumQuery,
    schema: Schema,
    of: OfTable | None,
    neighbours: str,
    grid: NoiseGrid,
    asked_before: bool,
) -> BoundQuery:
    """A matrix of sums: one term, and an axis for each side's coordinates."""
    from sulq.kernel.schema.bind_vectors import bind_outer
    from sulq.kernel.schema.vector_program import UnitLeaf, leaves_of

    assert query.outer is not None  # noqa: S101
    bound = bind_outer(*query.outer, query.rows, schema, neighbours, asked_before, of)
    leaves = tuple(leaves_of(bound.program.left, bound.program.right))
    if height((bound.program.rows, leaves)) > TALLEST:
        raise InvalidQuery(
            "the question is nested too deeply; flatten or shorten it", reason=Reason.TOO_LARGE
        )
    said = checked_values(schema, bound.program.rows, leaves) if schema.of_study else []
    whole = [leaf.value if isinstance(leaf, UnitLeaf) else leaf for leaf in leaves]
    cells = (CategoryCells, FlagCells)
    Fits().check(bound.program.rows, (leaf for leaf in whole if not isinstance(leaf, cells)))
    largest = bound.program.largest
    term = _term(Steps(Fixed(1), -largest, largest, bound.step), Fraction(0), bound.unit, grid)
    groups = tuple(
        BoundGroup(name, side.keys, None)
        for name, side in (("left", bound.left), ("right", bound.right))
    )
    text = text_of(query)
    return BoundQuery(
        Statistic("outer", query),
        query,
        text,
        digest_of(text),
        bound.program,
        (term,),
        groups,
        bound.reach,
        bound,
        tuple(said),
    )


def _term(value: Steps, middle: Fraction, unit: int, grid: NoiseGrid) -> BoundTerm:
    if not SMALLEST < value.step < 1 / SMALLEST:
        raise InvalidQuery(
            "the factors of a sum are too large or too small; rescale it",
            reason=Reason.NEEDS_BOUNDS,
        )
    low, high = value.low * value.step, value.high * value.step
    return BoundTerm(value.node, value.step, unit, grid.lift(value, unit), middle, low, high)


def _group(group: Group, binder: RowBinder, schema: Schema) -> BoundGroup:
    name = canonical.spelling(group.of)
    if isinstance(group.of, Column):
        name = group.of.name
        column = schema[name]
        if isinstance(column, declared.Flag):
            _no_edges(group, name)
            keys: tuple[object, ...] = (False, True)
            return BoundGroup(name, _with_other(keys, group), FlagCells(name, group.other))
        if isinstance(column, declared.Category):
            _no_edges(group, name)
            if column.values is None:
                raise InvalidQuery(
                    f"{name} is {column.opened}: it can be compared but not grouped by;"
                    " declare its values",
                    reason=Reason.OPEN_TEXT,
                    about={"column": name},
                )
            declared_cells = CategoryCells(name, column.values, group.other)  # type: ignore[arg-type]
            return BoundGroup(name, _with_other(tuple(column.values), group), declared_cells)
    value = binder.number(group.of)
    if group.edges is None and group.bins is None:
        raise InvalidQuery(
            f"{name} is a Number: give `edges`, such as 0, 18 and 65, to group by it",
            reason=Reason.NO_STEP,
            about={"column": name},
        )
    edges = _edges(group, value, binder) if group.edges is not None else _equal_bins(group, value)
    spelled = [number for number, _ in edges]
    steps = tuple(step for _, step in edges)
    keys = tuple(itertools.pairwise(spelled))
    cells = BinCells(value.node, steps, group.other)
    assert len(keys) + group.other == cell_count(cells)  # noqa: S101
    return BoundGroup(name, _with_other(keys, group), cells)


def _no_edges(group: Group, name: str) -> None:
    if group.edges is not None or group.bins is not None:
        raise InvalidQuery(f"{name} is not a Number: leave edges out, it has declared values")


def _with_other(keys: tuple[object, ...], group: Group) -> tuple[object, ...]:
    return (*keys, None) if group.other else keys


def _edges(group: Group, value: Steps, binder: RowBinder) -> list[tuple[object, int]]:
    """Edges in user units with the step each stands for, rounded as the column is."""
    listed = group.edges or ()
    if len(listed) > MOST_CELLS:
        raise InvalidQuery(
            f"at most {MOST_CELLS} bins, got {len(listed) - 1}", reason=Reason.TOO_LARGE
        )
    numbers = [binder.literal(edge, value.kind) for edge in listed]
    if any(low >= high for low, high in itertools.pairwise(numbers)):
        raise InvalidQuery("edges must increase")
    steps = []
    for place, number in enumerate(numbers):
        ratio = number / value.step
        if not value.exact:
            step = math.floor(ratio + Fraction(1, 2))
        elif place == len(numbers) - 1:
            step = math.floor(ratio)  # the last bin is closed
        else:
            step = math.ceil(ratio)
        steps.append(min(max(step, value.low - 1), value.high + 1))
    if len(steps) > 1 and steps[-1] < steps[-2]:
        raise InvalidQuery(
            f"the last bin, from {_plain(listed[-2].value)} to {_plain(listed[-1].value)}, lies"
            " between two values that there are; leave it out"
        )
    return [(_plain(edge.value), step) for edge, step in zip(listed, steps, strict=True)]


def _equal_bins(group: Group, value: Steps) -> list[tuple[object, int]]:
    """So many equal bins of the range, fewer where the lattice has fewer points."""
    if _on_points(group, value):
        points = range(value.low, value.high + 2)
        return [(_plain(step * value.step), step) for step in points]
    width = max(1, value.high - value.low)
    wanted = min(group.bins or 1, width, MOST_CELLS)
    steps = sorted({value.low + round(Fraction(width * i, wanted)) for i in range(wanted + 1)})
    return [(_plain(step * value.step), step) for step in steps]


def _on_points(group: Group, value: Steps) -> bool:
    """A tree with room for every point of a declared lattice has one cell for each."""
    points = value.high - value.low + 1
    return group.tree and value.exact and points <= (group.bins or 1)


def _plain(value: object) -> object:
    """Keys as people write them: whole numbers as int, others as float."""
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else value.numerator / value.denominator
    return value
