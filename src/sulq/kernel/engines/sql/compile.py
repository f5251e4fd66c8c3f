"""The whole statement: inner SELECTs, the sums, and how rows of the result become cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

from sulq.errors import InvalidQuery
from sulq.kernel.engines.proved import within
from sulq.kernel.engines.sql.dialect import Dialect
from sulq.kernel.engines.sql.emitter import Emitter, Value, places_of
from sulq.kernel.engines.sql.leaves import (
    EXACT_SUM,
    ColumnSql,
    as_leaf,
    at_least,
    below,
    column_leaf,
    stored,
)
from sulq.kernel.schema.keys import Key, KeyCounts
from sulq.kernel.schema.program import (
    Added,
    AllOf,
    Always,
    BinCells,
    BoundChoice,
    BoundScaled,
    CategoryCells,
    Cells,
    Condition,
    FirstOf,
    Fixed,
    FlagBit,
    FlagCells,
    FlagIs,
    Integer,
    Lesser,
    Missing,
    Multiplied,
    RowSums,
    Text,
    cell_count,
)
from sulq.kernel.schema.sensitivity import PersonSums
from sulq.kernel.schema.vector_program import (
    BlockSums,
    BoundColumns,
    BoundConcat,
    BoundConstant,
    Leaf,
    Node,
    UnitLeaf,
    leaves_of,
)


@dataclass(frozen=True, slots=True)
class Rows:
    """How many rows make the condition true."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class TotalSql:
    """The sum of a value over the rows where it is not NULL."""

    value: Integer


Aggregate: TypeAlias = Rows | TotalSql
Mixture: TypeAlias = tuple[tuple[int, Aggregate], ...]
"""Integer multiples of aggregates, to be added."""


@dataclass(frozen=True, slots=True)
class TotalsSql:
    """The rows to read and, for every term, its mixture."""

    rows: Condition
    terms: tuple[Mixture, ...]

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """Each aggregate once, in order of appearance."""
        return tuple(dict.fromkeys(part for term in self.terms for _, part in term))


def present(value: Integer) -> Missing:
    return Missing(value, negated=True)


def mixture(term: Integer) -> Mixture:
    match term:
        case Fixed(value=None):
            return ()
        case Fixed(value=int(constant)):
            return ((constant, Rows(Always())),) if constant else ()
        case BoundScaled(value=value, factor=factor):
            return _times(factor, mixture(value))
        case Added(parts=parts):
            constants = [p.value for p in parts if isinstance(p, Fixed)]
            others = [p for p in parts if not isinstance(p, Fixed)]
            known = [c for c in constants if c is not None]
            if len(others) == 1 and len(known) == len(constants):
                return (*mixture(others[0]), *_times(sum(known), _count(present(others[0]))))
        case FlagBit(column=column):
            return _count(FlagIs(column, True))
        case BoundChoice(condition=condition, then=Fixed(value=then), otherwise=Fixed(value=other)):
            extra = (then or 0) - (other or 0)
            return (*_times(extra, _count(condition)), *mixture(Fixed(other)))
        case FirstOf(value=value, instead=Fixed(value=instead)):
            missing = Missing(value, negated=False)
            return (*mixture(value), *_times(instead or 0, _count(missing)))
        case _:
            pass
    return ((1, TotalSql(term)),)


def _times(factor: int, parts: Mixture) -> Mixture:
    return tuple((factor * weight, part) for weight, part in parts) if factor else ()


def _count(condition: Condition) -> Mixture:
    return ((1, Rows(condition)),)


def totals(program: RowSums) -> TotalsSql:
    """The program's sums; rows that can add nothing are left out early where that is cheap."""
    terms = tuple(mixture(term) for term in program.terms)
    plain = TotalsSql(program.rows, terms)
    values = {part.value for part in plain.aggregates if isinstance(part, TotalSql)}
    leaf = as_leaf(next(iter(values))) if len(values) == 1 else None
    if leaf is None:
        return plain
    counts = {part for part in plain.aggregates if isinstance(part, Rows)}
    if counts - {Rows(present(value)) for value in values}:
        return plain
    held = Missing(Text(leaf.value.column), negated=True)
    return TotalsSql(AllOf((program.rows, held)), terms)


# Where the rows come from: the inner SELECTs that name what is mentioned twice, and the WHERE.


def from_rows(rows: Condition, emitter: Emitter, table: str, *further: str) -> str:
    """FROM ... WHERE ...; what is wanted of the rows must have gone through the emitter before.

    Each condition goes to the innermost SELECT that can test it; `further` ones are tested last.
    """
    tests = [emitter.condition(part) for part in _conjuncts(rows)]
    source = emitter.dialect.table(table)
    for level, layer in enumerate(emitter.layers):
        kept = ["*"] if level else sorted(emitter.columns)
        inner = ", ".join(kept + [f"{sql} AS {name}" for name, sql in layer])
        here = [test.sql for test in tests if test.level == level]
        source = f"(SELECT {inner} FROM {source}{_where(here)}{emitter.dialect.fence}) AS t{level}"
    last = [test.sql for test in tests if test.level >= len(emitter.layers)]
    return f"FROM {source}{_where([*last, *further])}"


def _conjuncts(rows: Condition) -> list[Condition]:
    """The conditions that must all hold."""
    if isinstance(rows, AllOf):
        return [part for inner in rows.parts for part in _conjuncts(inner)]
    return [] if isinstance(rows, Always) else [rows]


def _where(tests: list[str]) -> str:
    return f" WHERE {' AND '.join(tests)}" if tests else ""


# Group keys in SQL, and from a key back to its cell.
#
# Keys come from the declared domain, or from a single column known to hold few values: how many
# groups there are never depends on what somebody wrote into a row beyond that.


FEW_EDGES = 16


def key_sql(cells: Cells, emitter: Emitter, alone: bool) -> tuple[str, int]:
    """The key's SQL and the inner SELECT it needs; raw keys only where there is one group."""
    match cells:
        case CategoryCells(column=column, values=values):
            place = emitter.place(column)
            raw = place.kind == "listed" or (place.few and alone)
            return (place.sql if raw else emitter.dialect.declared_only(place.sql, values)), 0
        case FlagCells(column=column):
            return emitter.place(column).sql, 0
        case BinCells():
            return _bin_sql(cells, emitter)


def cell_of(cells: Cells, place: ColumnSql | None, alone: bool) -> dict[Any, int]:
    """Key -> cell, for the keys that have one of their own."""
    match cells:
        case CategoryCells(values=values):
            if place is not None and place.kind == "listed":
                return {at: i for i, at in enumerate(places_of(values, place))}
            plain = place is not None and place.few and alone
            return {(value if plain else str(value)): i for i, value in enumerate(values)}
        case FlagCells():
            return {False: 0, True: 1}
        case BinCells(edges=edges):
            last = len(edges) - 2
            return {i: min(i, last) for i in range(last + 2)}  # the last edge is in the last bin


def _bin_sql(cells: BinCells, emitter: Emitter) -> tuple[str, int]:
    edges = cells.edges
    if len(edges) < 2 or any(a > b for a, b in pairwise(edges)):
        raise InvalidQuery("bins need at least two edges, none below the one before")
    leaf = as_leaf(cells.value)
    if leaf is not None and len(edges) <= FEW_EDGES:
        leaf, place = emitter.leaf(leaf)
        tests = [below(leaf, place, edge) for edge in edges[1:-1]]
        inside = f"{at_least(leaf, place, edges[0])} AND {below(leaf, place, edges[-1] + 1)}"
        return Dialect.bigint(f"CASE WHEN {inside} THEN {_tree(tests, 0)} END"), 0
    value = emitter.named(emitter.integer(cells.value))
    x, divided = value.sql, _divided(edges, value, emitter.dialect)
    if divided is not None and edges[0] <= value.low and value.high <= edges[-1]:
        return divided, value.level
    inner = divided or _tree([f"{x} < {Dialect.integer(edge)}" for edge in edges[1:-1]], 0)
    first, last = Dialect.integer(edges[0]), Dialect.integer(edges[-1])
    within = f"CASE WHEN {x} >= {first} AND {x} <= {last} THEN {inner} END"
    return Dialect.bigint(within), value.level


def _divided(edges: Sequence[int], x: Value, speak: type[Dialect]) -> str | None:
    """The bin of x by one division, where the edges allow it: floor((factor x + plus) / under)."""
    bins, width, span = len(edges) - 1, edges[1] - edges[0], edges[-1] - edges[0]
    odd = ""
    if width and all(b - a == width for a, b in pairwise(edges)):
        factor, plus, under = 1, -edges[0], width
    elif _rounded(edges):
        # o = x - first is at or above edge i if i <= (bins (2 o + 1) - [o is odd]) / (2 span).
        factor, plus, under = 2 * bins, bins - 2 * bins * edges[0], 2 * span
        if bins & -bins >= under & -under:  # else bins (2 o + 1) / under is never whole
            odd = f" - ({x.sql} - {speak.integer(edges[0])}) % {speak.integer(2)}"
    else:
        return None
    largest = factor * x.largest + abs(plus) + under
    if x.real is not None and not odd and largest <= EXACT_SUM:
        over = f"({x.real} * {speak.real(float(factor))} + {speak.real(float(plus))})"
        return speak.bigint(f"FLOOR({over} / {speak.real(float(under))})")
    if largest >= 2**62:
        return None
    over = f"({speak.integer(factor)} * {x.sql} + {speak.integer(plus)}{odd})"
    return speak.truncated_division(over, speak.integer(under))


def _rounded(edges: Sequence[int]) -> bool:
    """Whether edge i is the first one plus i / bins of the span, rounded half to even."""
    first, bins, span = edges[0], len(edges) - 1, edges[-1] - edges[0]
    for i, edge in enumerate(edges):
        whole, rest = divmod(span * i, bins)
        if edge - first != whole + (2 * rest + whole % 2 > bins):
            return False
    return bins <= span


def _tree(tests: Sequence[str], first: int) -> str:
    """Which of len(tests) + 1 bins, by halving; each test is made once in the text."""
    if not tests:
        return Dialect.integer(first)
    half = len(tests) // 2
    left, right = _tree(tests[:half], first), _tree(tests[half + 1 :], first + half + 1)
    return f"CASE WHEN {tests[half]} THEN {left} ELSE {right} END"


def flag_cell(flag: str) -> str:
    """The number of a flag's cell, -1 where it is neither."""
    yes, no, none = (Dialect.integer(cell) for cell in (1, 0, -1))
    return Dialect.bigint(f"CASE WHEN {flag} THEN {yes} WHEN NOT {flag} THEN {no} ELSE {none} END")


def flat_cells(groups: Sequence[Cells]) -> int:
    cells = 1
    for group in groups:
        cells *= cell_count(group)
    return cells


# What has to be added up: terms as sums of counts and of values, the rest in Python integers.
#
# sum(2 x - 7) = 2 sum(x) - 7 count(x): scales and constants leave the engine's work.


TABLE = "people"


@dataclass(frozen=True, slots=True)
class Reach:
    """The least and the most that one row, or one person, can add to an aggregate.

    `counted`: the aggregate that says how many add to it; None: no more than there are rows.
    """

    least: int
    most: int
    counted: int | None = None


@dataclass(frozen=True, slots=True)
class SqlStatement:
    """One SELECT, and what its rows mean."""

    sql: str
    program: RowSums
    sums: TotalsSql
    cells: tuple[dict[Any, int], ...]
    reach: tuple[Reach, ...]
    """Of each aggregate."""
    most_rows: int

    def decode(self, rows: Iterable[tuple[Any, ...]]) -> list[int]:
        """The cells; `Impossible` for what the statement's proof rules out."""
        groups, terms = self.program.groups, len(self.program.terms)
        answer = [0] * (flat_cells(groups) * terms)
        place = {part: number for number, part in enumerate(self.sums.aggregates)}
        wanted = [
            (number, weight, place[part])
            for number, mixture in enumerate(self.sums.terms)
            for weight, part in mixture
        ]
        steps = [
            (
                known,
                cell_count(group),
                cell_count(group) - 1 if group.other else None,
                isinstance(group, BinCells),
            )
            for group, known in zip(groups, self.cells, strict=True)
        ]
        for row in rows:
            cell = 0
            for (known, size, other, binned), key in zip(steps, row, strict=False):
                if binned and key is not None:
                    within(key, 0, len(known) - 1)
                index = known.get(key, other)
                if index is None:
                    break  # an undeclared key that no cell takes
                cell = cell * size + index
            else:
                sums = self._checked(row[len(groups) : len(groups) + len(self.reach)])
                for number, weight, at in wanted:
                    answer[cell * terms + number] += weight * sums[at]
        return answer

    def added(self, found: Sequence[Any]) -> list[int]:
        """The terms of one cell from its aggregates."""
        place = {part: number for number, part in enumerate(self.sums.aggregates)}
        sums = self._checked(found)
        return [
            sum(weight * sums[place[part]] for weight, part in mixture)
            for mixture in self.sums.terms
        ]

    def _checked(self, found: Sequence[Any]) -> list[int]:
        """The aggregates of one cell, each within what its rows can add."""
        sums = []
        for value, reach in zip(found, self.reach, strict=True):
            rows = self.most_rows
            if reach.counted is not None:
                rows = within(found[reach.counted], 0, rows)
            sums.append(within(value, reach.least * rows, reach.most * rows))
        return sums


def statement(
    program: RowSums, places: Mapping[str, ColumnSql], most_rows: int, table: str = TABLE
) -> SqlStatement:
    """The program as one SELECT over `table`, of which there are at most `most_rows`."""
    sums = totals(program)
    emitter = Emitter(places)
    sql = _select(program, sums, emitter, most_rows, table)
    shared = frozenset(node for node, uses in emitter.uses.items() if uses > 1)
    if shared:
        emitter = Emitter(places, shared)
        sql = _select(program, sums, emitter, most_rows, table)
    place = {part: number for number, part in enumerate(sums.aggregates)}
    reach = tuple(_reach(part, emitter, place) for part in sums.aggregates)
    cells = tuple(
        cell_of(
            group,
            places[group.column] if isinstance(group, CategoryCells) else None,
            len(program.groups) == 1,
        )
        for group in program.groups
    )
    return SqlStatement(sql, program, sums, cells, reach, most_rows)


def _reach(part: Aggregate, emitter: Emitter, place: Mapping[Aggregate, int]) -> Reach:
    """Where the rows on which a value is there are counted, each adds at least the least of it."""
    every = place.get(Rows(Always()))
    if isinstance(part, Rows):
        return Reach(0, 1, None if part == Rows(Always()) else every)
    value = emitter.integer(part.value)
    counted = place.get(Rows(present(part.value))) if value.nullable else every
    if counted is not None:
        return Reach(value.low, value.high, counted)
    return Reach(min(0, value.low), max(0, value.high), every)


def _select(program: RowSums, sums: TotalsSql, emitter: Emitter, most_rows: int, table: str) -> str:
    keys = [key_sql(group, emitter, len(program.groups) == 1) for group in program.groups]
    wanted = [sql for sql, _ in keys]
    wanted += [aggregate_sql(part, emitter, most_rows) for part in sums.aggregates]
    grouped = ", ".join(str(i + 1) for i in range(len(keys)))
    return (
        f"SELECT {', '.join(wanted) or 'count(*)'} {from_rows(sums.rows, emitter, table)}"
        f"{f' GROUP BY {grouped}' if grouped else ''}"
    )


def aggregate_sql(part: Aggregate, emitter: Emitter, most_rows: int) -> str:
    match part:
        case Rows(condition=Always()):
            return "count(*)"
        case Rows(condition=Missing(subject=subject, negated=True)) if (
            not isinstance(subject, Text) and not emitter.dialect.counts_by_test
        ):
            value = emitter.integer(subject)
            return f"count({value.real or value.sql})"
        case Rows(condition=condition):
            return f"count(*) FILTER (WHERE {emitter.condition(condition).sql})"
        case TotalSql(value=node):
            value = emitter.integer(node)
            if value.real is not None and value.largest * most_rows <= EXACT_SUM:
                return emitter.dialect.real_sum(value.real)
            return emitter.dialect.whole_sum(value.sql, value.largest, most_rows)


# Counts by undeclared key as SQL: in parts by a hash of the key, so that memory stays bounded.


ROWS_EACH = 1 << 20
"""Rows per part: at most about so many keys are held at once."""
FETCHED = 1 << 14
KeyRow: TypeAlias = tuple[Key, int, list[int]]
"""A key, how many rows or persons have it, and its sums."""


@dataclass(frozen=True, slots=True)
class KeyStatements:
    """One SELECT of key, count and aggregates per part of a table; a key is in one part."""

    parts: tuple[str, ...]
    sums: SqlStatement
    width: int
    """Columns of a key."""

    def decode(self, batch: Sequence[Sequence[Any]]) -> list[KeyRow]:
        """`Impossible` for a number that a table of so many rows cannot have."""
        most, width = self.sums.most_rows, self.width
        return [
            (tuple(row[:width]), within(row[width], 1, most), self.sums.added(row[width + 1 :]))
            for row in batch
        ]


def key_statements(program: KeyCounts, places: Mapping[str, ColumnSql], rows: int) -> KeyStatements:
    """The program over a table of so many rows."""
    sums = TotalsSql(program.rows, tuple(mixture(term) for term in program.terms))
    draft = Emitter(places)
    _key_parts(program, sums, draft, rows)
    shared = frozenset(node for node, uses in draft.uses.items() if uses > 1)
    emitter = Emitter(places, shared)
    parts = _key_parts(program, sums, emitter, rows)
    place = {part: number for number, part in enumerate(sums.aggregates)}
    reach = tuple(_reach(part, emitter, place) for part in sums.aggregates)
    whole = SqlStatement(parts[0], program.plain, sums, (), reach, rows)
    return KeyStatements(tuple(parts), whole, len(program.columns))


def _key_parts(program: KeyCounts, sums: TotalsSql, emitter: Emitter, rows: int) -> list[str]:
    keys = [_key(emitter.place(column), program.longest) for column in program.columns]
    wanted = [aggregate_sql(part, emitter, rows) for part in sums.aggregates]
    if program.persons:
        emitter.columns.add(PERSON)
    units = f"count(DISTINCT {PERSON})" if program.persons else "count(*)"
    grouped = ", ".join(str(number + 1) for number in range(len(keys)))
    selected = f"SELECT {', '.join([*keys, units, *wanted])}"
    parts = -(-rows // ROWS_EACH)
    if parts <= 1:
        return [f"{selected} {from_rows(program.rows, emitter, TABLE)} GROUP BY {grouped}"]
    part_of = emitter.dialect.part_of(_one_text(program, keys, emitter), parts)
    return [
        f"{selected} {from_rows(program.rows, emitter, TABLE, test)} GROUP BY {grouped}"
        for part in range(parts)
        for test in [f"{part_of} = {Dialect.integer(part)}"]
    ]


def _one_text(program: KeyCounts, keys: Sequence[str], emitter: Emitter) -> str:
    """A text by which a key is put into a part; other keys may have the same one."""
    codes = [emitter.place(column).kind == "code" for column in program.columns]
    text_type = emitter.dialect.text_type
    texts = [
        f"CAST({key} AS {text_type})" if code else key
        for key, code in zip(keys, codes, strict=True)
    ]
    return texts[0] if len(texts) == 1 else f"({' || '.join(texts)})"


def _key(place: ColumnSql, longest: int) -> str:
    if place.kind == "code":
        return place.sql
    if place.kind != "text":
        raise InvalidQuery("keys are told of open columns, whose values are not declared")
    return f"left({place.sql}, CAST({longest} AS INTEGER))"


# Sums per person: GROUP BY person inside, clip, then the sum.
#
# Keys of the inner SELECT stand for one cell each, so nobody is clipped twice within a cell.
# docs/proofs/engines.md, claim 7.


PERSON = "person"
"""The column of the kept rows that says whose they are; no question can name it."""


def person_statement(
    program: PersonSums, places: Mapping[str, ColumnSql], most_rows: int
) -> SqlStatement:
    """The program as one SELECT over the kept rows."""
    plain = program.plain
    sums = TotalsSql(program.rows, (mixture(program.term),))  # also rows that only add 0 count
    draft = Emitter(places)
    _parts(program, sums, draft, most_rows)
    shared = frozenset(node for node, uses in draft.uses.items() if uses > 1)
    keys, aggregates, source = _parts(program, sums, Emitter(places, shared), most_rows)
    held = dict(zip(sums.aggregates, aggregates, strict=True))
    speak = next(iter(places.values())).dialect
    wide = speak.wide
    parts = [
        f"{wide(Dialect.integer(weight))} * {wide(held[part])}" for weight, part in sums.terms[0]
    ]
    named = [
        _one_key(key, group) if isinstance(group, BinCells) else key
        for key, group in zip(keys, program.groups, strict=True)
    ]
    columns = [f"k{number}" for number in range(len(keys))]
    inner = ", ".join(
        [
            PERSON,
            *(f"{key} AS {name}" for key, name in zip(named, columns, strict=True)),
            f"{' + '.join(parts) or wide('0')} AS s",
        ]
    )
    clipped = Dialect.bigint(
        f"LEAST(GREATEST(s, {wide(Dialect.integer(program.low))}),"
        f" {wide(Dialect.integer(program.high))})"
    )
    largest = max(abs(program.low), abs(program.high))
    summed = speak.whole_sum(clipped, largest, most_rows)
    per_person = ", ".join(str(number + 1) for number in range(len(keys) + 1))
    per_cell = ", ".join(str(number + 1) for number in range(len(keys)))
    sql = (
        f"SELECT {', '.join([*columns, summed])}"
        f" FROM (SELECT {inner} {source} GROUP BY {per_person}) AS persons"
        f"{f' GROUP BY {per_cell}' if per_cell else ''}"
    )
    cells = tuple(
        cell_of(group, places[group.column] if isinstance(group, CategoryCells) else None, False)
        for group in program.groups
    )
    whole = TotalSql(program.term)
    summed_once = TotalsSql(program.rows, (((1, whole),),))
    return SqlStatement(sql, plain, summed_once, cells, (_person_reach(program),), most_rows)


def _person_reach(program: PersonSums) -> Reach:
    """What a person adds to a cell."""
    return Reach(min(0, program.low), max(0, program.high))


def held_statement(
    program: PersonSums, places: Mapping[str, ColumnSql], most_rows: int, held: str
) -> SqlStatement:
    """All rows of each person, clipped, then added up; `held` gives one `s` for each person. P.1"""
    speak = next(iter(places.values())).dialect
    wide = speak.wide
    clipped = Dialect.bigint(
        f"LEAST(GREATEST({wide('s')}, {wide(Dialect.integer(program.low))}),"
        f" {wide(Dialect.integer(program.high))})"
    )
    summed = speak.whole_sum(clipped, max(abs(program.low), abs(program.high)), most_rows)
    sums = TotalsSql(program.rows, (((1, TotalSql(program.term)),),))
    sql = f"SELECT {summed} FROM {held}"
    return SqlStatement(sql, program.plain, sums, (), (_person_reach(program),), most_rows)


def held_sql(source: str) -> str:
    """How many rows each person has, before any is cut."""
    return f"SELECT count(*) AS s FROM {source} WHERE {PERSON} IS NOT NULL GROUP BY {PERSON}"


def _parts(
    program: PersonSums, sums: TotalsSql, emitter: Emitter, most_rows: int
) -> tuple[list[str], list[str], str]:
    """Keys, aggregates, and FROM ... WHERE with the person still there."""
    emitter.columns.add(PERSON)
    keys = [key_sql(group, emitter, False)[0] for group in program.groups]
    aggregates = [aggregate_sql(part, emitter, most_rows) for part in sums.aggregates]
    return keys, aggregates, from_rows(sums.rows, emitter, TABLE)


def _one_key(key: str, cells: BinCells) -> str:
    """What lies on the last edge is in the last bin."""
    last = Dialect.integer(len(cells.edges) - 2)
    return Dialect.bigint(f"CASE WHEN {key} > {last} THEN {last} ELSE {key} END")


# The rows of a vector program as one SELECT: what its leaves are made of.
#
# A Number comes as it is, a DOUBLE that may be NULL; other leaves as BIGINT, never NULL; a cell's
# number is -1 for no cell.


def row_select(
    program: BlockSums, places: Mapping[str, ColumnSql], table: str, number: str | None = None
) -> tuple[str, dict[Leaf, int]]:
    """The statement, and the column of each leaf; without leaves, a column of ones. First comes
    `number`, a column of the table that tells its rows apart, if it is wanted."""
    leaves = tuple(dict.fromkeys(leaves_of(program.left, program.right)))
    draft = Emitter(places)
    _row_select(program.rows, leaves, draft, table, number)
    shared = frozenset(node for node, uses in draft.uses.items() if uses > 1)
    return _row_select(program.rows, leaves, Emitter(places, shared), table, number)


def _row_select(
    rows: Condition, leaves: tuple[Leaf, ...], emitter: Emitter, table: str, number: str | None
) -> tuple[str, dict[Leaf, int]]:
    texts = {leaf: _leaf_sql(leaf, emitter) for leaf in leaves}
    wanted = list(dict.fromkeys(texts.values())) or [Dialect.integer(1)]
    if number is not None:
        emitter.columns.add(number)
        wanted.insert(0, Dialect.bigint(number))
    named = ", ".join(f"{sql} AS v{number}" for number, sql in enumerate(wanted))
    sql = f"SELECT {named} {from_rows(rows, emitter, table)}"
    return sql, {leaf: wanted.index(text) for leaf, text in texts.items()}


def _leaf_sql(leaf: Leaf, emitter: Emitter) -> str:
    match leaf:
        case FlagCells(column=column):
            flag = emitter.place(column).sql
            return flag_cell(flag)
        case CategoryCells(column=column, values=values):
            place = emitter.place(column)
            if place.kind == "listed":
                return _listed_cell(place, values)
            return emitter.dialect.place_among(place.sql, values)
        case UnitLeaf(value=value):
            place = emitter.place(value.column)
            stored(column_leaf(value), place)  # which checks its bounds
            return emitter.dialect.streamed(place.sql)
    return Dialect.bigint(emitter.integer(leaf).sql)


def _listed_cell(place: ColumnSql, values: Sequence[str] | Sequence[int]) -> str:
    """The place as a BIGINT, -1 where it is no value's."""
    if places_of(values, place) != list(range(len(place.values))):
        raise InvalidQuery("the cells of a column are its declared values, in their order")
    x, end, none = place.sql, Dialect.integer(len(values)), Dialect.integer(-1)
    return Dialect.bigint(f"CASE WHEN {x} < {end} THEN {Dialect.bigint(x)} ELSE {none} END")


# A small outer product as plain sums of products, for engines where streaming rows costs more.


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
        case BoundConstant(values=values):
            return [Fixed(value) for value in values]
        case BoundColumns(leaves=leaves, offsets=offsets):
            return [
                Added((_whole(leaf), Fixed(-offset))) if offset else _whole(leaf)
                for leaf, offset in zip(leaves, offsets, strict=True)
            ]
        case BoundConcat(parts=parts):
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
        value = clipped if leaf.scale == 1 else BoundScaled(clipped, leaf.scale)
        return FirstOf(value, Fixed(leaf.instead))
    return leaf


def _product(one: Integer, two: Integer) -> Integer:
    if isinstance(one, Fixed) and isinstance(two, Fixed):
        if one.value is not None and two.value is not None:
            return Fixed(one.value * two.value)
    elif isinstance(one, Fixed):
        return Multiplied(two, one)  # not Scaled: the coordinate is to be worked out once, as it is
    return Multiplied(one, two)
