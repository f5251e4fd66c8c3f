"""The answer store: stored noisy answers, and what follows from them for nothing.

Every noisy integer is a linear functional of the table plus independent noise of known variance.
A question that is a combination of stored ones, and of public sizes (G.2.1), gets the best linear
unbiased estimate. Reads questions, noise and stored values, never data: docs/proofs/derivation.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from sulq.derivation.averages import Draw, averaged, precisions
from sulq.derivation.estimates import Derivation, Source, exact_variance
from sulq.derivation.index import Index, features_of
from sulq.derivation.pieces import Key, Marks, axis_of, joined, marks_of, size_of
from sulq.derivation.solving import solve
from sulq.derivation.tables import apart, derivation_of, stacked
from sulq.derivation.vectors import ONE, Grid, Unfit
from sulq.errors import SulqError
from sulq.noise.distributions import Law, NoNoise
from sulq.schema.binding import BoundQuery
from sulq.schema.bound import (
    Added,
    Always,
    Chosen,
    FirstOf,
    Fixed,
    FlagBit,
    Integer,
    Quantised,
    RowSums,
    Scaled,
    cell_count,
)

MOST_PIECES = 4096
"""Pieces that one search may tell apart."""
MOST_SUMS = 1024
"""Sums of stored answers that one search may combine."""
MOST_ASKED = 128
"""Sums of a question that are combined from others; of a larger one only its own draws count."""
MOST_QUESTIONS = 24
"""Stored questions that one search may combine: those nearest to the one asked, of"""
MOST_NEAR = 192
"""which are looked at."""
MOST_FOREIGN = 2
"""Columns of a stored question that the asked one does not mention."""

_COLUMN = re.compile(r'\["col","((?:[^"\\]|\\.)*)"\]')


@dataclass(slots=True, eq=False)
class Known:
    """A question that was answered, once or more often."""

    text: str
    draws: list[Draw] = field(default_factory=list)
    line: int | None = None  # in the index
    program: RowSums | None = None
    lifts: tuple[int, ...] = ()
    marks: Marks = field(default_factory=dict)


class AnswerStore:
    """Grows with every answer; one per table."""

    def __init__(
        self,
        bind: Callable[[str], BoundQuery],
        is_public: Callable[[str], bool] | None,
    ) -> None:
        """`bind` reads a question's text; `is_public` knows the public columns if sizes are."""
        self._bind = bind
        self._sizes_public = is_public is not None
        self._is_public = is_public or (lambda name: False)
        self._questions: dict[str, Known] = {}
        self._asleep: set[str] = set()  # not yet bound
        self._by_columns: dict[frozenset[str], list[str]] = {}  # some of these are asleep
        self._lines: list[str] = []
        self._index = Index()
        self._summed: dict[Key, set[Quantised]] = {}  # axis -> columns that were summed
        self._home: dict[int, str] = {}  # draw -> question
        self._found: dict[str, Derivation | None] = {}  # from all answers so far

    def add(
        self, seq: int, question: str, digest: str, laws: tuple[Law, ...], values: tuple[int, ...]
    ) -> None:
        """A stored answer; what follows from it is worked out when a question needs it."""
        known = self._questions.get(digest)
        if known is None:
            known = self._questions[digest] = Known(question)
            if '"outer":' not in question:
                columns = frozenset(_COLUMN.findall(question))
                self._by_columns.setdefault(columns, []).append(digest)
                self._asleep.add(digest)
        known.draws.append(Draw(seq, laws, values))
        self._home[seq] = digest
        self._found.clear()

    def draws(self, digest: str) -> int:
        """How often a question was answered."""
        known = self._questions.get(digest)
        return len(known.draws) if known is not None else 0

    def derive(
        self, bound: BoundQuery, among: Collection[int] | None = None, *, every: bool = False
    ) -> Derivation | None:
        """The best estimate of every sum asked, from these stored answers (None: all).

        `every`: they are few, and none may be left out.
        """
        if every and among is not None:
            for digest in sorted(self._homes(among) & self._asleep):
                self._take_in(digest)  # whatever else was asked since
            return self._derive(bound, among, len(among))
        if among is not None:
            return self._derive(bound, among, MOST_QUESTIONS)
        if bound.digest not in self._found:
            self._found[bound.digest] = self._derive(bound, None, MOST_QUESTIONS)
        found = self._found[bound.digest]
        return None if found is None else replace(found, bound=bound)

    def _derive(
        self, bound: BoundQuery, among: Collection[int] | None, most: int
    ) -> Derivation | None:
        found = None
        if type(bound.sums) is RowSums and _sums(bound.sums) <= MOST_ASKED:
            with suppress(Unfit), np.errstate(all="ignore"):  # floats propose, integers decide
                found = self._combined(bound, bound.sums, among, most)
        return found or averaged(bound, _allowed(self._questions.get(bound.digest), among))

    # --- combinations ---------------------------------------------------------------------------

    def _wake(self, columns: frozenset[str]) -> None:
        """Bind the stored questions on these columns."""
        for own in [own for own in self._by_columns if len(own - columns) <= MOST_FOREIGN]:
            for digest in filter(self._asleep.__contains__, self._by_columns.pop(own)):
                self._take_in(digest)

    def _take_in(self, digest: str) -> None:
        known = self._questions[digest]
        self._asleep.discard(digest)
        try:
            bound = self._bind(known.text)
        except SulqError:
            return
        if type(bound.sums) is not RowSums or _sums(bound.sums) > MOST_SUMS:
            return
        marks = told = marks_of(bound.sums)
        if '"choose"' in known.text and _pieces(marks) <= MOST_PIECES:
            grid = Grid(marks, self._is_public)
            with suppress(Unfit):  # labels of one kind may be listed apart
                told = grid.told(grid.vectors(bound.sums))
        atoms = _atoms(bound.sums)
        features = features_of(told, atoms)
        if any(
            len(draw.values) != _sums(bound.sums) or len(draw.laws) != len(bound.terms)
            for draw in known.draws
        ):
            return
        known.line = self._index.add(features, _sums(bound.sums))
        known.program, known.marks = bound.sums, marks
        known.lifts = tuple(term.lift for term in bound.terms)
        self._lines.append(digest)
        for atom in atoms:
            if isinstance(atom, Quantised):
                self._summed.setdefault(axis_of(atom), set()).add(atom)

    def _homes(self, among: Collection[int]) -> set[str]:
        """The questions of these answers."""
        return {self._home[seq] for seq in among if seq in self._home}

    def _lines_of(self, among: Collection[int]) -> list[int]:
        found = (self._questions[digest].line for digest in self._homes(among))
        return [line for line in found if line is not None]

    def _combined(
        self, bound: BoundQuery, program: RowSums, among: Collection[int] | None, most: int
    ) -> Derivation | None:
        marks = marks_of(program)
        if _pieces(marks) > MOST_PIECES or _sums(program) > MOST_SUMS:
            return None
        self._wake(frozenset(_COLUMN.findall(bound.text)))
        lines = None if among is None else self._lines_of(among)
        if self._tells_news(program, marks, lines):
            return None
        helpers, marks = self._helpers(program, marks, among, lines, most)
        grid = Grid(marks, self._is_public)
        asked = grid.vectors(program)
        table = [
            (grid.vectors(known.program), known, draws)
            for known, draws in helpers
            if known.program is not None
        ]
        atoms = list(dict.fromkeys([*asked, *(atom for rows, _, _ in table for atom in rows)]))
        if len(atoms) * grid.cells > 4 * MOST_PIECES:
            return None
        wanted = stacked(asked, atoms, _sums(program), grid)
        rows, sources, variances = [], [], []
        for vectors, known, draws in table:
            block = stacked(vectors, atoms, len(draws[0].values), grid)
            for place, row in enumerate(block):
                noisy = not isinstance(draws[0].laws[place % len(known.lifts)], NoNoise)
                if noisy and row.any():
                    rows.append(row)
                    merged = _merged(draws, place, known.lifts)
                    sources.append(merged)
                    variances.append(float(_variance(merged)))
        matrix = np.array(rows, dtype=np.int64).reshape(len(rows), len(atoms), grid.cells)
        open_ = [self._sizes_public and grid.is_public(atom) for atom in atoms]
        solved = solve(apart(matrix, open_, grid), apart(wanted, open_, grid), np.array(variances))
        if any(each is None for each in solved):
            return None
        weights = [each for each in solved if each is not None]
        return derivation_of(bound, weights, sources, matrix, wanted, atoms, open_, grid)

    def _tells_news(self, program: RowSums, marks: Marks, lines: list[int] | None) -> bool:
        """Whether it tells values apart at a threshold that none of these stored questions has.

        All of them are alike on both sides of it, and so is what they add up to: a sum of the
        column itself is not, where it is so many times one value.
        """
        summed = marks_of(replace(program, rows=Always(), groups=()))
        grid = None
        for key, own in marks.items():
            if key[0] != "number" or key in summed or self._is_public(key[1]):
                continue
            if any(self._index.has(("atom", each), lines) for each in self._summed.get(key, ())):
                continue
            new = [mark for mark in own if not self._index.has((key, mark), lines)]
            if new and grid is None:
                grid = Grid(marks, self._is_public)
                vectors = grid.vectors(program)
            if grid is not None and any(grid.differ(vectors, key, mark) for mark in new):
                return True
        return False

    def _helpers(
        self,
        program: RowSums,
        marks: Marks,
        among: Collection[int] | None,
        lines: Collection[int] | None,
        most: int,
    ) -> tuple[list[tuple[Known, list[Draw]]], Marks]:
        """Stored questions near the one asked, as many as can be told apart together."""
        features = features_of(marks, _atoms(program))
        near = [
            self._questions[self._lines[line]]
            for line in self._index.nearest(features, lines, max(MOST_NEAR, most), most)
        ]
        # what tells little apart first: one wide question must not crowd the narrow ones out
        own = marks
        near.sort(key=lambda it: (it.program != program, _pieces(joined([own, it.marks]))))
        chosen: list[tuple[Known, list[Draw]]] = []
        sums = -_sums(program)  # a draw of the question itself always has room
        for known in near:
            assert known.program is not None  # noqa: S101
            draws = _allowed(known, among)
            wider = joined([marks, known.marks])
            count = _sums(known.program)
            if draws and sums + count <= MOST_SUMS and _pieces(wider) <= MOST_PIECES:
                chosen.append((known, draws))
                marks, sums = wider, sums + count
        return chosen, marks


def _allowed(known: Known | None, among: Collection[int] | None) -> list[Draw]:
    if known is None:
        return []
    return known.draws if among is None else [draw for draw in known.draws if draw.seq in among]


def _sums(program: RowSums) -> int:
    count = len(program.terms)
    for group in program.groups:
        count *= cell_count(group)
    return count


def _pieces(marks: Marks) -> int:
    count = 1
    for key, own in marks.items():
        count *= size_of(key, own)
    return count


def _atoms(program: RowSums) -> set[Integer]:
    """The summands a question may have, before it is cut into pieces."""
    found: set[Integer] = set()
    listed: list[Integer] = list(program.terms)
    while listed:
        node = listed.pop()
        match node:
            case Added(parts):
                listed += parts
            case Chosen(_, one, two) | FirstOf(one, two):
                listed += (one, two)
            case Scaled(value):
                listed.append(value)
            case Fixed() | FlagBit():
                found.add(ONE)
            case Quantised():
                found |= {ONE, node}
            case _:
                found.add(node)
    return found


def _merged(draws: Sequence[Draw], place: int, lifts: tuple[int, ...]) -> list[Source]:
    """One sum, from all draws of it, in steps before lifting."""
    term = place % len(lifts)
    return [
        Source(draw.seq, place, share / lifts[term], draw.values[place], draw.laws[term])
        for draw, share in zip(draws, precisions(draws, term), strict=True)
        if share
    ]


def _variance(sources: Sequence[Source]) -> Fraction:
    return sum((s.weight**2 * exact_variance(s.law) for s in sources), Fraction(0))
