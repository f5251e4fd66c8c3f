"""The answer store: stored noisy answers, and what follows from them for nothing.

Every noisy integer is a linear functional of the table plus independent noise of known variance.
A question that is a combination of stored ones, and of public sizes (G.2.1), gets the best linear
unbiased estimate. Reads questions, noise and stored values, never data: docs/proofs/derivation.md.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Generic, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from sulq.errors import SulqError
from sulq.kernel.noise.laws import DiscreteGaussian, Law, NoNoise
from sulq.kernel.reuse.estimate import LinearEstimate, StoredDraws, exact_variance
from sulq.kernel.reuse.solve import (
    able_rows,
    combination,
    constants_of,
    derivation_of,
    entries_of,
)
from sulq.kernel.reuse.symbolic import (
    ONE,
    Grid,
    Key,
    Marks,
    Refinement,
    Unfit,
    axis_of,
    marks_of,
    pieces_of,
)
from sulq.kernel.schema.bind import BoundQuery
from sulq.kernel.schema.program import (
    Added,
    Always,
    BoundChoice,
    BoundScaled,
    FirstOf,
    Fixed,
    FlagBit,
    Integer,
    Quantised,
    RowSums,
    cell_count,
)

Integers = NDArray[np.signedinteger]


# Many integers in few bytes: a vector that grows, and a map from numbers of events.


class IntVector:
    """A vector of integers that grows; it is read as an array."""

    def __init__(self, kind: type[np.signedinteger] = np.int64) -> None:
        self._held, self._count = np.zeros(16, dtype=kind), 0

    def __len__(self) -> int:
        return self._count

    @property
    def values(self) -> Integers:
        """The integers as an array, valid until the next change."""
        return self._held[: self._count]

    def append(self, value: int) -> None:
        self.insert(self._count, [value])

    def extend(self, values: Integers) -> None:
        self.insert(self._count, values)

    def insert(self, place: int, values: Collection[int] | Integers) -> None:
        after = self._count + len(values)
        if after > len(self._held):
            grown = np.zeros(after + after // 8, dtype=self._held.dtype)
            grown[: self._count] = self.values
            self._held = grown
        if place < self._count:
            self._held[place + len(values) : after] = self._held[place : self._count].copy()
        self._held[place : place + len(values)] = values
        self._count = after


class IntMap(Collection[int]):
    """A small integer for each of many numbers of events, which mostly come in order."""

    def __init__(self) -> None:
        self._keys, self._small = IntVector(), IntVector(np.int32)

    def put(self, key: int, small: int = 0) -> None:
        at = self._at(key)
        if at is None:
            place = int(np.searchsorted(self._keys.values, key))
            self._keys.insert(place, [key])
            self._small.insert(place, [small])
        else:
            self._small.values[at] = small

    def get(self, key: int) -> int | None:
        at = self._at(key)
        return None if at is None else int(self._small.values[at])

    def of(self, keys: Collection[int]) -> Integers:
        """The small integers of those that are here, each once."""
        asked = keys._keys.values if isinstance(keys, IntMap) else _array(keys)
        places = np.searchsorted(self._keys.values, asked)
        near = places < len(self)
        places, asked = places[near], asked[near]
        return np.unique(self._small.values[places[self._keys.values[places] == asked]])

    def _at(self, key: int) -> int | None:
        place = int(np.searchsorted(self._keys.values, key))
        return place if place < len(self) and self._keys.values[place] == key else None

    def __contains__(self, key: object) -> bool:
        return isinstance(key, int) and self._at(key) is not None

    def __iter__(self) -> Iterator[int]:
        return map(int, self._keys.values)

    def __len__(self) -> int:
        return len(self._keys)


def _array(numbers: Collection[int]) -> Integers:
    return np.fromiter(numbers, dtype=np.int64, count=len(numbers))


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class WeightedLRU(Generic[K, V]):
    """A least-recently-used cache with a limit on total weight. Its owner serialises."""

    def __init__(self, most: int) -> None:
        self._most, self._weight = most, 0
        self._held: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def __contains__(self, key: K) -> bool:
        return key in self._held

    def __len__(self) -> int:
        return len(self._held)

    def get(self, key: K) -> V | None:
        found = self._held.get(key)
        if found is None:
            return None
        self._held.move_to_end(key)
        return found[0]

    def put(self, key: K, value: V, weight: int = 1) -> V:
        """Keep the value, unless it is heavier than the whole cache; return it."""
        if key in self._held:
            self._weight -= self._held.pop(key)[1]
        if weight <= self._most:
            self._held[key] = value, weight
            self._weight += weight
        while self._weight > self._most:
            _, (_, lighter) = self._held.popitem(last=False)
            self._weight -= lighter
        return value

    def clear(self) -> None:
        self._held.clear()
        self._weight = 0


def features_of(marks: Marks, atoms: Iterable[Integer]) -> set[Hashable]:
    """What a question tells apart, and what it sums."""
    found: set[Hashable] = {("atom", atom) for atom in atoms}
    for key, own in marks.items():
        found.add(key)
        listed = (value for values in own for value in values) if key[0] == "text" else own
        found.update((key, mark) for mark in listed)
    return found


class Index:
    """Features by number, one line per question: runs of numbers, since what is told apart together
    was numbered together. A search is a few array operations."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}  # by hash: two that share one only mislead the search
        self._first, self._after = IntVector(np.int32), IntVector(np.int32)  # of each run
        self._begin = IntVector()  # of each line: its first run
        self._sums, self._size = IntVector(np.int32), IntVector(np.int32)  # by line

    def __len__(self) -> int:
        return len(self._sums)

    def add(self, features: Collection[Hashable], sums: int) -> int:
        """Take a question in; its line."""
        hashed = map(_hash, features)
        numbers = np.sort([self._numbers.setdefault(each, len(self._numbers)) for each in hashed])
        ends = np.flatnonzero(np.diff(numbers) != 1)
        self._begin.append(len(self._first))
        self._first.extend(numbers[np.concatenate([[0], ends + 1])])
        self._after.extend(numbers[np.concatenate([ends, [len(numbers) - 1]])] + 1)
        self._sums.append(sums)
        self._size.append(len(numbers))
        return len(self) - 1

    def has(self, feature: Hashable, lines: Integers | None) -> bool:
        """Whether any of these questions (None: of all) has it."""
        number = self._numbers.get(_hash(feature))
        if number is None or lines is None:
            return number is not None
        told = (self._first.values <= number) & (number < self._after.values)
        return bool(np.logical_or.reduceat(told, self._begin.values)[lines].any())

    def _known(self, features: Iterable[Hashable]) -> list[int]:
        hashed = map(_hash, features)
        return [self._numbers[each] for each in hashed if each in self._numbers]

    def _count(self, numbers: Collection[int]) -> Integers:
        """How many of these features each question has."""
        among = np.zeros(len(self._numbers) + 1, dtype=np.int32)
        among[np.fromiter(numbers, np.int64, len(numbers)) + 1] = 1
        before = np.cumsum(among, dtype=np.int32)
        runs = before[self._after.values] - before[self._first.values]
        return np.add.reduceat(runs, self._begin.values, dtype=np.int64)

    def nearest(
        self, features: Collection[Hashable], lines: Integers | None, near: int, most: int
    ) -> list[int]:
        """Lines (of those given) that share a summand, the fewest foreign features per sum first;
        among equals the latest. Of so many that are `near`, those that could cancel."""
        count = len(self)
        if not count:
            return []
        own = self._known(features)
        able = self._count(self._known(x for x in features if _is_atom(x))) > 0
        if lines is not None:
            given = np.zeros(count, dtype=np.bool_)
            given[lines] = True
            able &= given
        score = np.where(able, (self._size.values - self._count(own)) / self._sums.values, np.inf)
        score -= np.arange(count) * (1e-9 / count)  # the latest first
        at = np.argpartition(score, near)[:near] if count > near else np.arange(count)
        at = at[np.argsort(score[at])]
        at = at[able[at]]
        told = self._foreign(at, own)
        kept = _cancelling(*told, self._sums.values[at])[:most]
        kept = kept[_cancelling(*_of(told, kept), self._sums.values[at[kept]])]
        return [int(line) for line in at[kept]]

    def _foreign(self, lines: Integers, own: Collection[int]) -> tuple[Integers, Integers]:
        """What these questions tell apart that is not one's `own`: pairs of a question's place
        among them, and a feature."""
        begin = np.append(self._begin.values, len(self._first))
        runs, of_run = _ranges(begin[lines], begin[lines + 1])
        numbers, of_number = _ranges(self._first.values[runs], self._after.values[runs])
        mine = np.zeros(len(self._numbers) + 1, dtype=np.bool_)
        mine[np.fromiter(own, np.int64, len(own))] = True
        foreign = ~mine[numbers]
        return of_run[of_number[foreign]], numbers[foreign]


def _ranges(first: Integers, after: Integers) -> tuple[Integers, Integers]:
    """The integers of all these ranges, and for each the number of its range."""
    lengths = (after - first).astype(np.int64)
    of = np.repeat(np.arange(len(lengths)), lengths)
    before = np.cumsum(lengths) - lengths
    return np.arange(len(of)) - before[of] + first[of], of


def _hash(feature: Hashable) -> int:
    return hash((feature, isinstance(feature, tuple) and feature[-1] == -1))  # as -2 without


def _is_atom(feature: Hashable) -> bool:
    return isinstance(feature, tuple) and feature[0] == "atom"


def _of(told: tuple[Integers, Integers], kept: Integers) -> tuple[Integers, Integers]:
    """The pairs of some questions, numbered anew."""
    questions, features = told
    place = np.full(int(questions.max(initial=-1)) + 1, -1)
    place[kept[kept < len(place)]] = np.flatnonzero(kept < len(place))
    here = place[questions] >= 0
    return place[questions[here]], features[here]


def _cancelling(questions: Integers, features: Integers, sums: Integers) -> Integers:
    """Without single sums that tell apart what no other question does: nothing cancels that."""
    left = np.ones(len(sums), dtype=np.bool_)
    single = sums == 1
    weights = np.minimum(sums, 2)
    while True:
        times = np.bincount(features, weights=weights[questions])
        alone = (times[features] == 1) & single[questions]
        if not alone.any():
            return np.flatnonzero(left)
        left[questions[alone]] = False
        here = left[questions]
        questions, features = questions[here], features[here]


class StoredDraw(NamedTuple):
    """A stored noisy answer: its number in the ledger, its laws and its integers."""

    seq: int
    laws: tuple[Law, ...]
    values: tuple[int, ...]


def averaged(bound: BoundQuery, draws: Sequence[StoredDraw]) -> LinearEstimate | None:
    """Every sum of a question from its own draws; of a tree every node, level by level.

    Nodes of one level share a law, and least squares over the levels reads them as one answer's.
    Laplace draws average to no law that it knows: of a tree's the most exact one counts.
    """
    draws = [draw for draw in draws if len(draw.values) == bound.width]
    if not draws:
        return None
    if bound.tree is not None and not all(_adds(law) for draw in draws for law in draw.laws):
        draws = [min(draws, key=lambda draw: exact_variance(draw.laws[-1]))]
    return LinearEstimate(
        bound, _Averages(bound, draws), [{}] * bound.width, None, True, alike=True
    )


def _adds(law: Law) -> bool:
    """Weighted sums of such draws have a law of the same kind."""
    return isinstance(law, DiscreteGaussian | NoNoise)


class _Averages(Sequence[list[StoredDraws]]):
    """What each sum is made of, told when it is looked at: there may be a million."""

    def __init__(self, bound: BoundQuery, draws: Sequence[StoredDraw]) -> None:
        self._layout, self._count, self._draws = bound.layout, bound.width, draws
        self._shares = [precisions(draws, term) for term in range(len(bound.terms))]

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> list[StoredDraws]: ...

    @overload
    def __getitem__(self, place: slice) -> list[list[StoredDraws]]: ...

    def __getitem__(self, place: int | slice) -> list[StoredDraws] | list[list[StoredDraws]]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(self._count))]
        if place >= self._count:
            raise IndexError(place)
        term = self._layout[place % len(self._layout)]
        return [
            StoredDraws(draw.seq, place, share, draw.values[place], draw.laws[term])
            for draw, share in zip(self._draws, self._shares[term], strict=True)
            if share
        ]


def precisions(draws: Sequence[StoredDraw], term: int) -> list[Fraction]:
    """The share of each draw of one sum: its precision, of all their precision."""
    laws = [draw.laws[term] for draw in draws]
    certain = [not exact_variance(law) for law in laws]  # none, or too little for a float
    if any(certain):
        first = certain.index(True)
        return [Fraction(int(place == first)) for place in range(len(laws))]
    if len(laws) == 1:
        return [Fraction(1)]
    each = [1 / exact_variance(law) for law in laws]
    return [precision / sum(each) for precision in each]


# Draws of one question, averaged by precision: as good as one draw that cost what they did. M.7


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

MOST_FOUND = 256
"""Derivations that are remembered until the next answer."""
MOST_READ = 256
"""Stored answers that are read at once."""
MOST_ASKED_LATELY = 64
"""Questions kept as they were bound: one that is paid for is stored the next moment."""
MOST_KEPT = 65_536
"""Stored integers that are kept in memory; others are read again."""
MOST_MARKS = 4 * MOST_KEPT
"""Marks of bound questions that are kept, 200 bytes each; others are bound again."""

_COLUMN = re.compile(r'\["col","((?:[^"\\]|\\.)*)"\]')
ASLEEP, UNFIT = -2, -1
"""In place of a line in the index: not bound yet, and never to be combined with others."""


class Stored(NamedTuple):
    """A stored answer as the ledger has it."""

    seq: int
    question: str
    digest: str
    laws: tuple[Law, ...]
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A stored question, bound."""

    digest: str
    program: RowSums
    lifts: tuple[int, ...]
    marks: Marks


class AnswerStore:
    """Grows by a few bytes with every answer; one per table."""

    def __init__(
        self,
        bind: Callable[[str], BoundQuery],
        is_public: Callable[[str], bool] | None,
        read: Callable[[Sequence[int]], list[Stored]],
        draws: Callable[[str], list[int]],
    ) -> None:
        """`bind` reads a question's text; `is_public` knows the public columns if sizes are.

        `read` returns the answers of these numbers, in this order; `draws` the numbers of the
        answers to a question by its digest, oldest first, some that were never added among them.
        """
        self._bind, self._read, self._numbers = bind, read, draws
        self._sizes_public = is_public is not None
        self._is_public = is_public or (lambda name: False)
        self._lines = IntMap()  # of answers
        self._by_columns: dict[frozenset[str], IntVector] = {}  # some of these are asleep
        self._index = Index()
        self._first = IntVector()  # by line: its question's first answer
        self._summed: dict[Key, set[Quantised]] = {}  # axis -> columns that were summed
        self._found: WeightedLRU[str, LinearEstimate | None] = WeightedLRU(
            MOST_FOUND
        )  # from all answers so far
        self._known: WeightedLRU[int, Known] = WeightedLRU(MOST_MARKS)  # by line
        self._draws: WeightedLRU[int, StoredDraw] = WeightedLRU(MOST_KEPT)  # by number
        self._lately: WeightedLRU[str, BoundQuery] = WeightedLRU(MOST_ASKED_LATELY)  # by text

    def __contains__(self, seq: int) -> bool:
        return seq in self._lines

    def add(self, seq: int, question: str, digest: str) -> None:
        """A stored answer; what follows from it is worked out when a question needs it."""
        earlier = self._answers(digest)
        line = self._lines.get(earlier[0]) if earlier else None
        if line is None:
            line = UNFIT if '"outer":' in question else ASLEEP
            if line == ASLEEP:
                columns = frozenset(_COLUMN.findall(question))
                self._by_columns.setdefault(columns, IntVector()).append(seq)
        self._lines.put(seq, line)
        self._found.clear()

    def _answers(self, digest: str, among: Collection[int] | None = None) -> list[int]:
        """The numbers of a question's answers, of these (None: all)."""
        found = [seq for seq in self._numbers(digest) if seq in self._lines]
        return found if among is None else [seq for seq in found if seq in among]

    def _allowed(self, digest: str, among: Collection[int] | None) -> list[StoredDraw]:
        """The draws of a question, of these (None: all)."""
        found = {seq: self._draws.get(seq) for seq in self._answers(digest, among)}
        lacking = [seq for seq, draw in found.items() if draw is None]
        for stored in self._read(lacking) if lacking else ():
            seq, values = stored.seq, stored.values
            found[seq] = self._draws.put(seq, StoredDraw(seq, stored.laws, values), 8 + len(values))
        return [draw for draw in found.values() if draw is not None]

    def derive(
        self, bound: BoundQuery, among: Collection[int] | None = None, *, every: bool = False
    ) -> LinearEstimate | None:
        """The best estimate of every sum asked, from these stored answers (None: all).

        `every`: they are few, and none may be left out.
        """
        self._lately.put(bound.text, bound)
        if every and among is not None:
            self._take_in(sorted(among))  # whatever else was asked since
            return self._derive(bound, among, len(among))
        if among is not None:
            return self._derive(bound, among, MOST_QUESTIONS)
        if bound.digest not in self._found:
            self._found.put(bound.digest, self._derive(bound, None, MOST_QUESTIONS))
        found = self._found.get(bound.digest)
        return None if found is None else replace(found, bound=bound)

    def _derive(
        self, bound: BoundQuery, among: Collection[int] | None, most: int
    ) -> LinearEstimate | None:
        found = None
        if type(bound.sums) is RowSums and _sums(bound.sums) <= MOST_ASKED:
            with suppress(Unfit), np.errstate(all="ignore"):  # floats propose, integers decide
                found = self._combined(bound, bound.sums, among, most)
        return found or averaged(bound, self._allowed(bound.digest, among))

    # --- combinations ---------------------------------------------------------------------------

    def _wake(self, columns: frozenset[str]) -> None:
        """Bind the stored questions on these columns."""
        for own in [own for own in self._by_columns if len(own - columns) <= MOST_FOREIGN]:
            self._take_in(self._by_columns.pop(own).values.tolist())

    def _take_in(self, numbers: Sequence[int]) -> None:
        asleep = [seq for seq in numbers if self._lines.get(seq) == ASLEEP]
        for start in range(0, len(asleep), MOST_READ):
            for stored in self._read(asleep[start : start + MOST_READ]):
                if self._lines.get(stored.seq) == ASLEEP:  # not woken with an earlier answer
                    line = self._line_of(stored)
                    for seq in self._answers(stored.digest):
                        self._lines.put(seq, line)

    def _line_of(self, stored: Stored) -> int:
        """A new line of the index, if the question may be combined with others."""
        try:
            bound = self._lately.get(stored.question) or self._bind(stored.question)
        except SulqError:
            return UNFIT
        if type(bound.sums) is not RowSums or _sums(bound.sums) > MOST_SUMS:
            return UNFIT
        if (len(stored.values), len(stored.laws)) != (_sums(bound.sums), len(bound.terms)):
            return UNFIT
        marks = told = marks_of(bound.sums)
        if '"choose"' in stored.question and pieces_of(marks) <= MOST_PIECES:
            grid = Grid(marks, self._is_public)
            with suppress(Unfit):  # labels of one kind may be listed apart
                told = grid.told(grid.coefficients(bound.sums))
        atoms = _atoms(bound.sums)
        for atom in atoms:
            if isinstance(atom, Quantised):
                self._summed.setdefault(axis_of(atom), set()).add(atom)
        self._first.append(stored.seq)
        return self._index.add(features_of(told, atoms), _sums(bound.sums))

    def _questions(self, lines: Sequence[int]) -> list[Known]:
        """The questions of these lines, bound again where that was long ago."""
        found = {line: self._known.get(line) for line in lines}
        lacking = [line for line, known in found.items() if known is None]
        stored = self._read([int(self._first.values[line]) for line in lacking]) if lacking else []
        for line, each in zip(lacking, stored, strict=True):
            bound = self._lately.get(each.question) or self._bind(each.question)
            assert type(bound.sums) is RowSums  # noqa: S101
            lifts = tuple(term.lift for term in bound.terms)
            known = Known(each.digest, bound.sums, lifts, marks_of(bound.sums))
            weight = 16 + sum(map(len, known.marks.values()))
            found[line] = self._known.put(line, known, weight)
        return [known for known in found.values() if known is not None]

    def _lines_of(self, among: Collection[int]) -> Integers:
        found = self._lines.of(among)
        return found[found >= 0]

    def _combined(
        self, bound: BoundQuery, program: RowSums, among: Collection[int] | None, most: int
    ) -> LinearEstimate | None:
        marks = marks_of(program)
        if pieces_of(marks) > MOST_PIECES or _sums(program) > MOST_SUMS:
            return None
        self._wake(frozenset(_COLUMN.findall(bound.text)))
        lines = None if among is None else self._lines_of(among)
        if self._tells_news(program, marks, lines):
            return None
        helpers, marks = self._helpers(program, marks, lines, most)
        grid = Grid(marks, self._is_public)
        asked = grid.coefficients(program)
        table = [grid.coefficients(known.program) for known in helpers]
        atoms = list(
            dict.fromkeys(a for each in (asked, *table) for parts in each.terms for a in parts)
        )
        if len(atoms) * grid.cells > 4 * MOST_PIECES:
            return None
        open_ = [self._sizes_public and grid.is_public(atom) for atom in atoms]
        wanted, rows = (entries_of(each, atoms, open_, grid) for each in ([asked], table))
        chosen = able_rows(rows, wanted, len(atoms) * grid.cells)
        if chosen is None:
            return None
        sources = self._sources(helpers, among, chosen)
        variances = np.array([float(_variance(merged)) for merged in sources.values()])
        noisy = np.array(list(sources), dtype=np.int64)
        weights = combination(rows, wanted, _sums(program), noisy, variances)
        if weights is None:
            return None
        known, left = (
            entries_of(each, atoms, open_, grid, first_pieces=True) for each in (table, [asked])
        )
        constants = [
            constants_of(own, known, left.of(left.rows == number), grid)
            for number, own in enumerate(weights)
        ]
        return derivation_of(bound, weights, sources, constants, atoms, grid)

    def _sources(
        self, helpers: Sequence[Known], among: Collection[int] | None, chosen: Integers
    ) -> dict[int, list[StoredDraws]]:
        """The stored integers of these rows: those that are noisy."""
        found: dict[int, list[StoredDraws]] = {}
        first = 0
        for known in helpers:
            count = _sums(known.program)
            places = chosen[(chosen >= first) & (chosen < first + count)] - first
            draws = self._allowed(known.digest, among) if len(places) else []
            for place in places.tolist():
                if not isinstance(draws[0].laws[place % len(known.lifts)], NoNoise):
                    found[first + place] = _merged(draws, place, known.lifts)
            first += count
        return found

    def _tells_news(self, program: RowSums, marks: Marks, lines: Integers | None) -> bool:
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
                told = grid.coefficients(program)
            if grid is not None and any(grid.differ(told, key, mark) for mark in new):
                return True
        return False

    def _helpers(
        self, program: RowSums, marks: Marks, lines: Integers | None, most: int
    ) -> tuple[list[Known], Marks]:
        """Stored questions near the one asked, as many as can be told apart together."""
        features = features_of(marks, _atoms(program))
        near = self._questions(self._index.nearest(features, lines, max(MOST_NEAR, most), most))
        own = Refinement(marks)
        # what tells little apart first: one wide question must not crowd the narrow ones out
        near.sort(key=lambda it: (it.program != program, own.pieces_with(it.marks)))
        chosen: list[Known] = []
        sums = -_sums(program)  # a draw of the question itself always has room
        for known in near:
            count = _sums(known.program)
            if sums + count <= MOST_SUMS and own.pieces_with(known.marks) <= MOST_PIECES:
                chosen.append(known)
                own.take(known.marks)
                sums += count
        return chosen, own.marks


def _sums(program: RowSums) -> int:
    count = len(program.terms)
    for group in program.groups:
        count *= cell_count(group)
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
            case BoundChoice(_, one, two) | FirstOf(one, two):
                listed += (one, two)
            case BoundScaled(value):
                listed.append(value)
            case Fixed() | FlagBit():
                found.add(ONE)
            case Quantised():
                found |= {ONE, node}
            case _:
                found.add(node)
    return found


def _merged(draws: Sequence[StoredDraw], place: int, lifts: tuple[int, ...]) -> list[StoredDraws]:
    """One sum, from all draws of it, in steps before lifting."""
    term = place % len(lifts)
    return [
        StoredDraws(draw.seq, place, share / lifts[term], draw.values[place], draw.laws[term])
        for draw, share in zip(draws, precisions(draws, term), strict=True)
        if share
    ]


def _variance(sources: Sequence[StoredDraws]) -> Fraction:
    return sum((s.weight**2 * exact_variance(s.law) for s in sources), Fraction(0))
