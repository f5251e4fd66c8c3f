"""The tables of a study as SQL: which rows are read, and values of a person over them.

Rows whose person is not in the person table are left out when a table is opened, so is whatever a
person has beyond the ceiling, in the hash order; each row then has its place among its person's
rows. A value of a person is one GROUP BY person over those rows. docs/proofs/studies.md, section 3
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

from sulq.errors import InvalidQuery
from sulq.kernel.engines.sql.compile import PERSON, from_rows
from sulq.kernel.engines.sql.dialect import Dialect
from sulq.kernel.engines.sql.emitter import Emitter
from sulq.kernel.engines.sql.leaves import ColumnSql, Kind
from sulq.kernel.engines.sql.persons import PLACE, placed_rows_sql, told_sql
from sulq.kernel.query.person_values import is_person_value
from sulq.kernel.schema.columns import Category, Flag, Schema
from sulq.kernel.schema.program import AllOf, Always, Condition, OfTable, RowSums
from sulq.kernel.schema.study import BoundValue, EventTable, Study, column_names
from sulq.kernel.schema.vector_program import BlockSums, leaves_of

KEPT = "kept"
"""Where a row stands among its person's rows in the order of `keep`, from 1."""


class TableScope(NamedTuple):
    """Where a program finds its columns: in a table, or a SELECT in its place, of so many rows."""

    places: Mapping[str, ColumnSql]
    rows: int
    table: str


@dataclass(frozen=True, slots=True)
class HeldTable:
    """A table as an engine holds it: its name, its declared columns, and how many rows it has.

    `kept`: how many of its rows count in sums over rows.
    """

    sql: str
    places: Mapping[str, ColumnSql]
    rows: int
    kept: int


def event_rows_sql(
    table: EventTable, places: Mapping[str, ColumnSql], source: str, ceiling: int
) -> str:
    """SELECT of the rows of an event table that are read, each with its places in line. P.3

    `source` has the rows of known persons. Up to `ceiling` of each person, in the hash order;
    `keep` then orders those, NULLs last, ties by the hash: a function of that person's rows alone.
    """
    names = ", ".join(places[column.name].sql for column in table.columns)
    placed = placed_rows_sql(table.columns, places, PERSON, source)
    kept = PLACE
    if table.by is not None:
        by = next(column for column in table.columns if column.name == table.by)
        way = "ASC" if table.keep == "first" else "DESC"
        order = f"{told_sql(by, places[table.by])} {way} NULLS LAST, {PLACE} ASC"
        kept = f"row_number() OVER (PARTITION BY {PERSON} ORDER BY {order})"
    return (
        f"SELECT {names}, {PERSON}, {PLACE}, {kept} AS {KEPT}"
        f" FROM ({placed}) AS placed WHERE {PLACE} <= {ceiling}"
    )


@dataclass(frozen=True, slots=True)
class StudySql:
    """A study in one engine: whatever a question reads becomes one SELECT over its tables."""

    study: Study
    tables: Mapping[str, HeldTable]

    def scope(self, program: RowSums | BlockSums) -> tuple[Condition, TableScope]:
        """The program's rows without the table they are of, and where its columns are."""
        of, rows = _of_table(program.rows)
        leaves: object = (
            (program.terms, program.groups)
            if isinstance(program, RowSums)
            else tuple(leaves_of(program.left, program.right))
        )
        held = self.tables[of.table]
        places, source = self.source(of.table, column_names((rows, leaves)), cut=True)
        return rows, TableScope(places, held.kept, source)

    def source(
        self, table: str, names: Iterable[str], *, cut: bool, more: Sequence[str] = ()
    ) -> tuple[dict[str, ColumnSql], str]:
        """A FROM item with these columns (and `more` of the table itself), and where each is.

        `cut`: only the rows that count in sums over rows.
        """
        held, person = self.tables[table], self.tables[self.study.name]
        wanted = list(dict.fromkeys(names))
        schema = self.study.relation(table)
        of_person: Mapping[str, str] = getattr(schema, "of_person", {})
        places: dict[str, ColumnSql] = {}
        chosen, joins = [f"e.{name} AS {name}" for name in more], []
        for number, name in enumerate(wanted):
            if name in held.places:
                place = held.places[name]
                sql, called = f"e.{place.sql}", place.sql
            elif name in of_person:
                place = person.places[of_person[name]]
                sql, called = f"p.{place.sql}", f"p{number}"
            elif is_person_value(name):
                value = self.study.value(name, table)
                inner = self.value_sql(value, table)
                same = f"s{number}.{PERSON} = e.{PERSON}"
                if value.limit is not None and table != self.study.name:  # of this very row
                    same += f" AND s{number}.{PLACE} = e.{PLACE}"
                joins.append(f"LEFT JOIN ({inner}) AS s{number} ON {same}")
                place = self._seen(value)
                sql, called = self._told(value, f"s{number}.v", place), f"d{number}"
            else:
                raise InvalidQuery(f"no column {name!r:.60} in {table}")
            places[name] = replace(place, sql=called)
            chosen.append(f"{sql} AS {called}")
        if any(name in of_person for name in wanted):
            joins.insert(0, f"JOIN {person.sql} AS p ON p.{PERSON} = e.{PERSON}")
        limit = ""
        if cut and table != self.study.name:
            event = self.study.table(table)
            if event.max_rows < event.ceiling:  # else all that are read count
                limit = f" WHERE e.{KEPT} <= {event.max_rows}"
        some = ", ".join(dict.fromkeys(chosen)) or f"e.{PERSON} AS {PERSON}"
        joined = "".join(f" {join}" for join in joins)
        places = places or dict(held.places)  # no column is read: the dialect is known by them
        return places, f"(SELECT {some} FROM {held.sql} AS e{joined}{limit}) AS joined"

    def _seen(self, value: BoundValue) -> ColumnSql:
        """What the engine holds of a value of a person; its name is given elsewhere."""
        if value.raw is not None:
            return self._held(value.table, value.raw)
        speak = next(iter(self.tables[value.table].places.values())).dialect
        return ColumnSql("", self._kind(value), dialect=speak)

    def _held(self, table: str, name: str) -> ColumnSql:
        """What the engine holds of a column of a table, or of the person."""
        of_person: Mapping[str, str] = getattr(self.study.relation(table), "of_person", {})
        if name in self.tables[table].places:
            return self.tables[table].places[name]
        if name in of_person:
            return self.tables[self.study.name].places[of_person[name]]
        return self._seen(self.study.value(name, table))

    def _kind(self, value: BoundValue) -> Kind:
        match value.column:
            case Flag():
                return "flag"
            case Category(integers=whole):
                return "code" if whole else "text"
        return "whole" if value.step.denominator == 1 else "real"

    def _told(self, value: BoundValue, v: str, place: ColumnSql) -> str:
        """A value of a person in user units, also of those without a row. P.2"""
        speak = place.dialect
        if value.kind == "exists":
            return f"({v} IS NOT NULL)"
        if value.kind == "count":
            return f"COALESCE({speak.bigint(v)}, {speak.integer(0)})"
        if value.raw is not None:
            return v
        return in_units(value.step, v, speak)

    def value_sql(self, value: BoundValue, table: str) -> str:
        """SELECT of person and v, for every person who has such a row; of the latest or earliest
        value, of each row of `table`."""
        if value.limit is not None:
            return self._nearest(value, table)
        names = list(column_names(value.reads))
        more = [PERSON, PLACE] if value.by is not None else [PERSON]
        places, source = self.source(value.table, names, cut=False, more=more)

        def emitted(emitter: Emitter) -> str:
            emitter.columns.update(more)
            return _value_select(value, emitter, source)

        return twice(emitted, places)

    def _nearest(self, value: BoundValue, table: str) -> str:
        """SELECT of person, place and v: the rows of both tables in one line, and of what came
        before each row of `table` the largest. No row meets another: the work is that of a sort."""
        assert value.value is not None and value.place is not None  # noqa: S101
        assert value.limit is not None  # noqa: S101
        wanted, at, limit = value.value, value.place, value.limit
        event = table != self.study.name
        there, near = self.source(value.table, column_names(value.reads), cut=False, more=[PERSON])
        more = [PERSON, PLACE] if event else [PERSON]
        here, rows = self.source(table, column_names(limit), cut=False, more=more)
        speak = next(iter(there.values())).dialect
        nothing = speak.bigint("NULL")

        def of_table(emitter: Emitter) -> str:
            emitter.columns.add(PERSON)
            x, t = (speak.bigint(emitter.integer(node).sql) for node in (wanted, at))
            found = from_rows(value.rows, emitter, near)
            return f"SELECT {PERSON}, {nothing} AS {PLACE}, {t} AS t, {x} AS x {found}"

        def of_rows(emitter: Emitter) -> str:
            emitter.columns.update(more)
            t = speak.bigint(emitter.integer(limit).sql)
            place = speak.bigint(PLACE if event else "1")
            found = from_rows(Always(), emitter, rows)
            return f"SELECT {PERSON}, {place} AS {PLACE}, {t} AS t, {nothing} AS x {found}"

        line = f"{twice(of_table, there)} UNION ALL {twice(of_rows, here)}"
        which, way = ("max", "ASC") if value.kind == "latest" else ("min", "DESC")
        seen = (
            f"SELECT {PERSON}, {PLACE}, {which}(x) OVER"
            f" (PARTITION BY {PERSON} ORDER BY t {way}) AS v"
            f" FROM ({line}) AS line WHERE t IS NOT NULL"
        )
        return f"SELECT {PERSON}, {PLACE}, v FROM ({seen}) AS seen WHERE {PLACE} IS NOT NULL"


def twice(emitted: Callable[[Emitter], str], places: Mapping[str, ColumnSql]) -> str:
    """Emit once to see what is mentioned twice, and again with names for that."""
    draft = Emitter(places)
    emitted(draft)
    shared = frozenset(node for node, uses in draft.uses.items() if uses > 1)
    return emitted(Emitter(places, shared))


def _value_select(value: BoundValue, emitter: Emitter, source: str) -> str:
    speak = emitter.dialect
    match value.kind:
        case "exists" | "count":
            rows = from_rows(value.rows, emitter, source)
            return f"SELECT {PERSON}, count(*) AS v {rows} GROUP BY {PERSON}"
        case "first" | "last":
            return _at_the_end(value, emitter, source)
    assert value.value is not None  # noqa: S101
    x = speak.bigint(emitter.integer(value.value).sql)
    rows = from_rows(value.rows, emitter, source)
    if value.kind in ("min", "max"):
        return f"SELECT {PERSON}, {value.kind}({x}) AS v {rows} GROUP BY {PERSON}"
    low, high = (speak.wide(speak.integer(end)) for end in (value.low, value.high))
    inner = (
        f"SELECT {PERSON}, {speak.wide(f'sum({x})')} AS s, {speak.wide(f'count({x})')} AS n"
        f" {rows} GROUP BY {PERSON}"
    )
    if value.kind == "sum":  # NULL where there is nothing to add
        v = f"CASE WHEN s < {low} THEN {low} WHEN s > {high} THEN {high} ELSE s END"
    else:  # nearest, ties upwards: no part of the division is negative
        whole, two = value.low // value.finer, speak.wide(speak.integer(2))
        fine = speak.wide(speak.integer(2 * value.finer))
        over = f"({fine} * (s - n * {speak.wide(speak.integer(whole))}) + n)"
        under = f"({two} * CASE WHEN n > {speak.wide('0')} THEN n END)"
        v = f"{low} + {speak.wide_division(over, under)}"
    return f"SELECT {PERSON}, {speak.bigint(v)} AS v FROM ({inner}) AS added"


def _at_the_end(value: BoundValue, emitter: Emitter, source: str) -> str:
    """The value in the first or last row: rows without `by` come last, ties go by the hash."""
    assert value.by is not None  # noqa: S101
    if value.raw is not None:
        x = emitter.place(value.raw).sql
    else:
        assert value.value is not None  # noqa: S101
        x = emitter.dialect.bigint(emitter.integer(value.value).sql)
    by, way = emitter.integer(value.by).sql, "ASC" if value.kind == "first" else "DESC"
    rows = from_rows(value.rows, emitter, source)
    order = f"{by} {way} NULLS LAST, {PLACE} ASC"
    numbered = (
        f"SELECT {PERSON}, {x} AS v, row_number() OVER"
        f" (PARTITION BY {PERSON} ORDER BY {order}) AS r {rows}"
    )
    return f"SELECT {PERSON}, v FROM ({numbered}) AS ends WHERE r = 1"


def in_units(step: Fraction, v: str, speak: type[Dialect]) -> str:
    """Whole steps as user units: a whole number where it is one, else one binary64 number."""
    if step.denominator == 1:
        return speak.bigint(f"{v} * {speak.integer(step.numerator)}")
    real = speak.double(v)
    if step.numerator == 1:
        return f"({real} / {speak.real(float(step.denominator))})"
    if Fraction(float(step)) == step:
        return f"({real} * {speak.real(float(step))})"
    over, under = float(step.numerator), float(step.denominator)
    return f"({real} * {speak.real(over)} / {speak.real(under)})"


def _of_table(rows: Condition) -> tuple[OfTable, Condition]:
    """The table whose rows a program sums, and the rest of the condition."""
    match rows:
        case AllOf(parts=(OfTable() as of, *rest)):
            return of, AllOf(tuple(rest)) if rest else Always()
    raise InvalidQuery("a question to a study says which table's rows it sums")


def own_schema(study: Study, table: str) -> Schema:
    """The columns that a table of the study holds itself, and whose its rows are."""
    if table == study.name:
        return Schema(*study.columns, unit=study.unit, max_rows=1)
    found = study.table(table)
    return Schema(*found.columns, unit=found.person or study.unit, max_rows=found.max_rows)


def check_sources(sources: object, study: Study) -> Mapping[str, Any]:
    """The source of each table by its name; `InvalidQuery` for one too few or too many."""
    names = list(study.names)
    if not isinstance(sources, Mapping) or set(sources) != set(names):
        got = sorted(map(str, sources)) if isinstance(sources, Mapping) else type(sources).__name__
        raise InvalidQuery(f"a study is opened from a source for each of {names}, got {got}")
    return {name: sources[name] for name in names}


def ceilings(study: Study, persons: int, size_is_public: bool) -> dict[str, int]:
    """How many rows of one person are read of each event table: by public facts alone. P.3"""
    if persons == 0:
        raise InvalidQuery("the person table has no rows with an id; publish one that has")
    if persons > study.at_most:
        raise InvalidQuery(
            f"{study.name} has more persons than its at_most of {study.at_most:,}; declare more"
        )
    bound = persons if size_is_public else study.at_most
    found = {table.name: table.rows_each(bound) for table in study.tables}
    for table in study.tables:
        if found[table.name] < table.max_rows:
            raise InvalidQuery(
                f"{table.name}: at_most = {table.at_most:,} rows leave {found[table.name]} for each"
                f" of {bound:,} persons, fewer than max_rows = {table.max_rows}; declare a larger"
                f" at_most, or a smaller max_rows"
                + ("" if size_is_public else f", or a tighter at_most of {study.name}")
            )
    return found
