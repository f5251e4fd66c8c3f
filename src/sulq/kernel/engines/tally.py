"""Counts of a table's cells for its owner, before the table is published.

A tally compares what a source holds with what was declared of it: how many cells of each column
are there, readable and within the declaration, and how they are spelled where they are not. All of
it is an exact function of the rows. It is for the owner's own screen: only `sulq.policy.advice`
may import this module (tests/house/test_imports.py), so no question, schema, ledger event or
reply can hold any of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from sulq.errors import InvalidQuery
from sulq.kernel.engines.duckdb.physical import Holds, RawIds, RawTable, Read, no_header_name
from sulq.kernel.engines.sql.dialect import Dialect
from sulq.kernel.engines.sql.leaves import ColumnSql, is_number
from sulq.kernel.schema.columns import Category, Column, Flag, Number

SMALL = 10
"""A public cell with fewer rows than this is shown to the owner as small."""
MAX_ROWS = (1, 2, 4, 8, 16, 32)
"""Limits of rows for a person whose share of kept rows is counted."""
MOST_DISTINCT = 5_000_000
"""Distinct values of more rows are estimated from a sample of the values, taken by hash."""
MISSING_MARKS = (
    "?",
    "na",
    "n/a",
    "nan",
    "#n/a",
    "null",
    "none",
    "nil",
    "-",
    "--",
    ".",
    "..",
    "*",
    "missing",
    "unknown",
    "unk",
    "nd",
    "k.a.",
    "",
)
Spelling: TypeAlias = Literal[
    "decimal comma", "day first", "missing mark", "blanks", "capitals", "initials", "beside"
]
"""How cells that do not fit are spelled; `beside`: digits with other signs beside them."""


@dataclass(frozen=True, slots=True)
class CellCounts:
    """The cells of one column."""

    holds: Holds
    there: int
    """Neither NULL nor NaN, in a CSV file not empty."""
    distinct: int | None = None
    """Different values among those there; None where nobody needs it."""
    readable: int | None = None
    """Read as what was declared; None for a column that is not declared."""
    fitting: int | None = None
    """Inside the bounds, or one of the declared values."""
    ends: tuple[bool, bool] = (False, False)
    """Whether the bounds are the least and the greatest value that occur."""
    spelled: Mapping[Spelling, int] = field(default_factory=dict)
    """Of the cells that do not fit, how many have which spelling."""
    small: tuple[int, int] | None = None
    """Of a public column: how many cells occur, and how many of them hold fewer than SMALL rows."""


@dataclass(frozen=True, slots=True)
class PersonCounts:
    """The rows of persons; `kept[m]` is how many count if each person keeps at most m."""

    persons: int
    rows: int
    nobody: int
    """Rows without a person: they never count."""
    kept: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class OwnerTally:
    """All counts of one table."""

    rows: int
    cells: Mapping[str, CellCounts]
    persons: PersonCounts | None = None
    names: tuple[str, ...] = ()
    """All columns of the source, in its order."""
    together: tuple[int, int] | None = None
    """Cells of all public columns crossed, and how many of them are small."""


@dataclass(frozen=True, slots=True)
class EventCounts:
    """The rows of an event table of a study; `kept[m]` is how many count with so many a person."""

    persons: int
    """Persons of the study who have a row here."""
    rows: int
    """Rows of persons of the study."""
    orphans: int
    """Rows of ids that the person table does not have: they never count."""
    nobody: int
    """Rows without an id: they never count."""
    most: int
    """Rows of the person who has most."""
    read: int
    """Rows that are read: each person's up to the ceiling."""
    kept: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class StudyTally:
    """Whose the rows of a study are."""

    persons: int
    repeated: int
    """Rows of the person table beyond the first of an id: they never count."""
    nobody: int
    events: Mapping[str, EventCounts]


def study_tally(
    sources: Mapping[str, tuple[Any, str]], limits: Callable[[int], Mapping[str, tuple[int, int]]]
) -> StudyTally:
    """Count whose rows the tables of a study hold, the person table first.

    `sources` has each table's source and person column; `limits(persons)` says for each event table
    how many rows of a person are read, and how many count.
    """
    with closing(_opened_ids(sources)) as raw:
        held = "count(id), COALESCE(sum(n), 0), COALESCE(sum(CASE WHEN id IS NULL THEN n END), 0)"
        persons, rows, nobody = _whole(raw, f"SELECT {held} FROM ids0")
        events = {}
        for number, (name, (ceiling, own)) in enumerate(limits(persons).items(), 1):
            shares = sorted({*(one for one in MAX_ROWS if one <= ceiling), own})
            asked = [f"LEAST(e.n, {limit})" for limit in (ceiling, *shares)]
            known = f"FROM ids{number} AS e JOIN ids0 AS p ON p.id = e.id"
            counted = ", ".join(["count(*)", "sum(e.n)", "max(e.n)", *(f"sum({x})" for x in asked)])
            here, theirs, most, read, *kept = _whole(raw, f"SELECT {counted} {known}")
            _, all_rows, lost = _whole(raw, f"SELECT {held} FROM ids{number}")
            events[name] = EventCounts(
                persons=here,
                rows=theirs,
                orphans=all_rows - lost - theirs,
                nobody=lost,
                most=most,
                read=read,
                kept=dict(zip(shares, kept, strict=True)),
            )
        return StudyTally(persons, rows - nobody - persons, nobody, events)


def _whole(raw: RawIds, sql: str) -> list[int]:
    return [int(number or 0) for number in raw.ask(f"{raw.with_ids}{sql}")]


def _opened_ids(sources: Mapping[str, tuple[Any, str]]) -> RawIds:
    first, _ = next(iter(sources.values()))
    if isinstance(first, str) and first.lower().startswith(("postgresql://", "postgres://")):
        from sulq.kernel.engines.postgres.engine import ids_postgres

        return ids_postgres(sources)
    from sulq.kernel.engines.duckdb.engine import ids_duckdb

    return ids_duckdb(sources)


def tally(
    source: Any,
    columns: Sequence[Column],
    unit: str = "row",
    max_rows: int = 1,
    watched: Callable[[str], bool] = lambda name: False,
) -> OwnerTally:
    """Count the declared columns of a source, and the undeclared ones whose name is `watched`."""
    with closing(_opened(source)) as raw:
        _check_names(raw, columns, unit)
        reads = {column.name: raw.read(column) for column in columns}
        rows = int(raw.ask(f"SELECT count(*) FROM {raw.table}")[0])
        if rows == 0:
            raise InvalidQuery("the table has no rows; publish one that has")
        found = _counted(raw, columns, reads, [n for n in raw.holds if watched(n)], rows)
        found = _spelled(raw, columns, reads, found)
        public = [column for column in columns if column.public]
        cells, together = _small(raw, public, reads)
        for name, small in cells.items():
            found[name] = replace(found[name], small=small)
        persons = None if unit == "row" else _persons(raw, unit, max_rows, rows)
        return OwnerTally(rows, found, persons, tuple(raw.holds), together)


def _opened(source: Any) -> RawTable:
    if isinstance(source, str) and "://" in source:
        scheme = source.split("://", 1)[0].lower()
        if scheme in ("postgresql", "postgres"):
            from sulq.kernel.engines.postgres.engine import raw_postgres

            return raw_postgres(source)
        if scheme.startswith(("spark", "sc")):
            from sulq.kernel.engines.spark.engine import raw_spark

            return raw_spark(source)
    from sulq.kernel.engines.duckdb.engine import raw_duckdb

    return raw_duckdb(source)


def _check_names(raw: RawTable, columns: Sequence[Column], unit: str) -> None:
    for name in (*(column.name for column in columns), *([unit] if unit != "row" else [])):
        if name not in raw.holds:
            if raw.texts:
                raise no_header_name(name, raw.holds)
            shown = sorted(raw.holds)
            more = " and more" if len(shown) > 50 else ""
            raise InvalidQuery(f"no column {name!r} in the table, which has {shown[:50]}{more}")


# --- one pass over all columns ------------------------------------------------------------------


def _inner(raw: RawTable, names: Sequence[str], reads: Mapping[str, Read]) -> str:
    """The rows with the raw cell of column i as r{i} and its declared reading as c{i}."""
    chosen = []
    for i, name in enumerate(names):
        chosen.append(f"{raw.dialect.name(name)} AS r{i}")
        if name in reads:
            chosen.append(f"{reads[name][0]} AS c{i}")
    return f"(SELECT {', '.join(chosen)} FROM {raw.table}) AS cells"


def _place(raw: RawTable, i: int, read: Read) -> ColumnSql:
    return ColumnSql(f"c{i}", read[1], dialect=raw.dialect)


def _fits(column: Column, place: ColumnSql) -> str:
    match column:
        case Number():
            low, high = (place.dialect.real(float(bound)) for bound in column.range)
            return f"{place.dialect.double(place.sql)} BETWEEN {low} AND {high}"
        case Category(values=values) if values is not None:
            return f"{place.dialect.declared_only(place.sql, values)} IS NOT NULL"
    return f"{place.sql} IS NOT NULL"


def _where(test: str) -> str:
    return f"count(CASE WHEN {test} THEN 1 END)"


def _counted(
    raw: RawTable,
    columns: Sequence[Column],
    reads: Mapping[str, Read],
    watched: Sequence[str],
    rows: int,
) -> dict[str, CellCounts]:
    declared = {column.name: column for column in columns}
    names = list(dict.fromkeys([*declared, *watched]))
    if not names:
        return {}
    asked: list[str] = []
    for i, name in enumerate(names):
        asked.append(_distinct(raw, i, raw.holds[name], rows))
        column = declared.get(name)
        if column is None:
            asked += [f"count(r{i})", *["0"] * 5]
            continue
        place = _place(raw, i, reads[name])
        readable = is_number(place) if isinstance(column, Number) else f"{place.sql} IS NOT NULL"
        there = f"r{i} IS NOT NULL" if raw.texts or place.kind != "real" else readable
        asked += [_where(there), _where(readable), _where(_fits(column, place))]
        asked += _ends(column, place, readable)
    found = iter(raw.ask(f"SELECT {', '.join(asked)} FROM {_inner(raw, names, reads)}"))
    return {name: _cells(raw, declared.get(name), name, found) for name in names}


def _distinct(raw: RawTable, i: int, holds: Holds, rows: int) -> str:
    text = f"CAST(r{i} AS {raw.text_type})"
    parts = -(-rows // MOST_DISTINCT)
    if parts > 1:
        test = f"{raw.dialect.part_of(text, parts)} = 0"
        return f"{parts} * count(DISTINCT CASE WHEN {test} THEN {text} END)"
    if raw.told_apart is not None:
        return f"count(DISTINCT {raw.told_apart(text)})"
    return f"count(DISTINCT {text if holds == 'other' else f'r{i}'})"


def _ends(column: Column, place: ColumnSql, readable: str) -> list[str]:
    """Whether the bounds are the ends of what occurs, and how many values are not whole."""
    if not isinstance(column, Number):
        return ["0", "0", "0"]
    x = place.dialect.double(place.sql)
    inside = f"CASE WHEN {readable} THEN {x} END"
    low, high = (place.dialect.real(float(bound)) for bound in column.range)
    broken = _where(f"{inside} <> floor({inside})") if place.kind == "real" else "0"
    return [
        f"CASE WHEN min({inside}) = {low} THEN 1 ELSE 0 END",
        f"CASE WHEN max({inside}) = {high} THEN 1 ELSE 0 END",
        broken,
    ]


def _cells(raw: RawTable, column: Column | None, name: str, found: Iterator[Any]) -> CellCounts:
    distinct, there, readable, fitting, low, high, broken = (
        int(next(found) or 0) for _ in range(7)
    )
    holds = raw.holds[name]
    if column is None:
        return CellCounts(holds, there, distinct)
    if raw.texts and isinstance(column, Number):
        whole = column.kind == "number" and readable and not broken
        holds = "whole" if whole else "other"
    return CellCounts(holds, there, distinct, readable, fitting, (bool(low), bool(high)))


# --- how cells that do not fit are spelled ------------------------------------------------------


def _spelled(
    raw: RawTable,
    columns: Sequence[Column],
    reads: Mapping[str, Read],
    found: dict[str, CellCounts],
) -> dict[str, CellCounts]:
    """Look again at text of which more than one cell in ten is unreadable or not declared."""
    asked: list[tuple[str, Spelling, str]] = []
    poor = [c for c in columns if raw.holds[c.name] == "text" and _is_poor(c, found[c.name])]
    for i, column in enumerate(poor):
        place = _place(raw, i, reads[column.name])
        told = is_number(place) if isinstance(column, Number) else _fits(column, place)
        unfit = f"NOT COALESCE({told}, FALSE)"
        tests = _spellings(raw, column, f"r{i}")
        asked += [(column.name, what, _where(f"{unfit} AND ({t})")) for what, t in tests]
    if not asked:
        return found
    inner = _inner(raw, [column.name for column in poor], reads)
    numbers = raw.ask(f"SELECT {', '.join(sql for _, _, sql in asked)} FROM {inner}")
    seen: dict[str, dict[Spelling, int]] = {}
    for (name, what, _), number in zip(asked, numbers, strict=True):
        seen.setdefault(name, {})[what] = int(number)
    return {name: replace(cells, spelled=seen.get(name, {})) for name, cells in found.items()}


def _is_poor(column: Column, cells: CellCounts) -> bool:
    good = cells.readable if isinstance(column, Number) else cells.fitting
    return 10 * (good or 0) < 9 * cells.there


def _spellings(raw: RawTable, column: Column, x: str) -> Iterator[tuple[Spelling, str]]:
    plain = f"trim(CAST({x} AS {raw.text_type}))"
    yield "missing mark", f"lower({plain}) IN ({_listed(raw, MISSING_MARKS)})"
    if isinstance(column, Category) and column.values and isinstance(column.values[0], str):
        values = [str(value) for value in column.values]
        yield "blanks", f"{plain} IN ({_listed(raw, [v.strip() for v in values])})"
        yield "capitals", f"lower({plain}) IN ({_listed(raw, [v.strip().lower() for v in values])})"
        initials = sorted({v.strip()[:1].lower() for v in values} - {""})
        initial = f"lower(substr({plain}, 1, 1)) IN ({_listed(raw, initials)})"
        short = all(len(v.strip()) == 1 for v in values)
        yield "initials", initial if short else f"length({plain}) = 1 AND {initial}"
    elif raw.texts and not isinstance(column, Category | Flag):
        yield "day first", _match(plain, r"[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{2,4}([ T].*)?")
        yield "decimal comma", _match(plain, r"[+-]?[0-9. ']*[0-9],[0-9]+")
        yield "beside", _match(plain, r".*[0-9].*")


def _match(x: str, pattern: str) -> str:
    """Only DuckDB reads numbers and dates from text."""
    return f"regexp_full_match({x}, {Dialect.text(pattern)})"


def _listed(raw: RawTable, values: Sequence[str]) -> str:
    known = [raw.dialect.text(value) for value in values if raw.dialect.can_hold(value)]
    return ", ".join(known) or raw.dialect.text("")


# --- public columns and persons -----------------------------------------------------------------


def _small(
    raw: RawTable, public: Sequence[Column], reads: Mapping[str, Read]
) -> tuple[dict[str, tuple[int, int]], tuple[int, int] | None]:
    """Cells that everybody sees exactly: of each public column, and of all of them crossed."""
    if not public:
        return {}, None
    names = [column.name for column in public]
    inner = _inner(raw, names, reads)
    keys = [_key(column, _place(raw, i, reads[column.name])) for i, column in enumerate(public)]
    asked = []
    for group in (*keys, ", ".join(keys)):
        counted = f"SELECT count(*) AS n FROM {inner} GROUP BY {group}"
        for test in ("", f" WHERE n < {SMALL}"):
            asked.append(f"(SELECT count(*) FROM ({counted}) AS sizes{test})")
    found = [int(number) for number in raw.ask(f"SELECT {', '.join(asked)}")]
    pairs = list(zip(found[::2], found[1::2], strict=True))
    return dict(zip(names, pairs, strict=False)), pairs[-1]


def _key(column: Column, place: ColumnSql) -> str:
    """What everybody sees of a public cell: undeclared values are one."""
    if isinstance(column, Category) and column.values is not None:
        return place.dialect.declared_only(place.sql, column.values)
    return place.sql


def _persons(raw: RawTable, unit: str, max_rows: int, rows: int) -> PersonCounts:
    limits = sorted({*MAX_ROWS, max_rows})
    each = raw.dialect.name(unit)
    counted = f"SELECT count(*) AS n FROM {raw.table} WHERE {each} IS NOT NULL GROUP BY {each}"
    kept = ", ".join(f"sum(LEAST(n, {limit}))" for limit in limits)
    persons, held, *shares = (
        int(number or 0)
        for number in raw.ask(f"SELECT count(*), sum(n), {kept} FROM ({counted}) AS people")
    )
    return PersonCounts(persons, held, rows - held, dict(zip(limits, shares, strict=True)))
