"""A study: several tables about the same persons, one promise. P.2, P.3, docs/proofs/studies.md

The person table has one row for each person. An event table has any number; of each person
`max_rows` count in sums over its rows, and all (up to `ceiling`) in a value of the person. Whatever
is asked becomes a question to one table whose rows are functions of one person's rows alone.
"""

from __future__ import annotations

import datetime
import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal

from sulq.errors import InvalidQuery, Reason, Refused
from sulq.kernel.query.expressions import Column, Expression, Operation
from sulq.kernel.query.person_values import (
    MARK,
    NEAREST,
    PersonValue,
    is_of_a_row,
    is_person_value,
    read_person_value,
)
from sulq.kernel.query.sum_query import SumQuery
from sulq.kernel.schema import columns as declared
from sulq.kernel.schema.bind_rows import RowBinder, one_kind
from sulq.kernel.schema.columns import (
    DEFAULT_AT_MOST,
    EPOCH,
    Category,
    Flag,
    Number,
    Schema,
    check_whole,
)
from sulq.kernel.schema.fixed_point import Steps, aligned
from sulq.kernel.schema.program import (
    Added,
    Always,
    Condition,
    Fixed,
    Integer,
    OfTable,
    Quantised,
    Text,
    height,
)
from sulq.kernel.schema.ranges import Fits

DEFAULT_CEILING = 1_000
MOST_CEILING = 2**20
MOST_TABLES = 32
DEEPEST = 3
"""Values of a person inside values of a person."""
TALLEST = 120
"""Nesting of one definition; a question may hold several of them, one inside the other."""
MOST_REMEMBERED = 1_000
MEAN_STEPS = 2**24
"""Steps over the range of a mean."""

Keep = Literal["hash", "first", "last"]


@dataclass(frozen=True, slots=True, init=False)
class EventTable:
    """A table of a study in which a person has any number of rows.

    `max_rows` of each person count in sums over rows: those that `keep` says, by the hash of their
    values or the first or last by the Number `by`. Values of a person are over all their rows up to
    `ceiling`. `at_most` bounds the rows of all persons together. `person` is the column that says
    whose a row is, where it has another name than in the study.
    """

    name: str
    columns: tuple[declared.Column, ...]
    max_rows: int
    keep: Keep
    by: str | None
    ceiling: int
    at_most: int | None
    person: str | None

    def __init__(
        self,
        name: str,
        *columns: declared.Column,
        max_rows: int,
        keep: Keep = "hash",
        by: str | None = None,
        ceiling: int = DEFAULT_CEILING,
        at_most: int | None = None,
        person: str | None = None,
    ) -> None:
        _check_table_name(name)
        _check_columns(name, columns)
        check_whole(max_rows, f"{name}: max_rows", 1, 2**20)
        check_whole(ceiling, f"{name}: ceiling", 1, MOST_CEILING)
        if max_rows > ceiling:
            raise InvalidQuery(
                f"{name}: max_rows = {max_rows} passes the ceiling of {ceiling} rows of a person;"
                " raise the ceiling or take fewer rows"
            )
        if at_most is not None:
            check_whole(at_most, f"{name}: at_most", 1, 2**40)
        if keep not in ("hash", "first", "last"):
            raise InvalidQuery(f'{name}: keep is "hash", "first" or "last", got {keep!r:.40}')
        kinds = {column.name: column for column in columns}
        if (keep == "hash") is not (by is None):
            raise InvalidQuery(
                f'{name}: keep = "first" and "last" go by a Number column, such as by = "day";'
                ' keep = "hash" goes by none'
            )
        if by is not None and not isinstance(kinds.get(by), Number):
            raise InvalidQuery(f"{name}: by must name a Number column of the table, got {by!r:.60}")
        if person is not None and (not isinstance(person, str) or person in kinds):
            raise InvalidQuery(
                f"{name}: the person column {person!r:.60} must not also be an askable column"
            )
        put = object.__setattr__
        for key, value in (
            ("name", name),
            ("columns", tuple(columns)),
            ("max_rows", max_rows),
            ("keep", keep),
            ("by", by),
            ("ceiling", ceiling),
            ("at_most", at_most),
            ("person", person),
        ):
            put(self, key, value)

    def rows_each(self, persons: int) -> int:
        """How many rows of one person are read at most, where there are at most so many persons.

        `at_most` is kept by cutting each person's rows in the hash order: what one person has never
        decides which rows of another are read. P.3
        """
        if self.at_most is None:
            return self.ceiling
        return min(self.ceiling, self.at_most // persons)

    def rows_bound(self, persons: int) -> int:
        """A public bound on the rows that are read, for so many persons."""
        return persons * self.ceiling if self.at_most is None else self.at_most

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "columns": [declared.column_json(column) for column in self.columns],
            "max_rows": self.max_rows,
            "keep": self.keep,
            "by": self.by,
            "ceiling": self.ceiling,
            "at_most": self.at_most,
            "person": self.person,
        }

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> EventTable:
        rest = {key: value for key, value in facts.items() if key not in ("name", "columns")}
        columns = (declared.column_from_json(column) for column in facts["columns"])
        return cls(facts["name"], *columns, **rest)


def _check_table_name(name: object) -> None:
    plain = isinstance(name, str) and name.isidentifier() and name.isascii() and len(name) <= 60
    if not plain:
        raise InvalidQuery(
            f"a table of a study has a name of letters, digits and _, got {name!r:.60}"
        )


def _check_columns(table: str, columns: Sequence[declared.Column]) -> None:
    if not columns:
        raise InvalidQuery(f"{table}: declare at least one column, the rest stay hidden")
    for column in columns:
        if not isinstance(column, Number | Category | Flag):
            raise InvalidQuery(
                f"{table}: a table holds Number, Category and Flag, got {type(column).__name__}"
            )
        if column.public:
            raise InvalidQuery(
                f"{table}: no column of a study is public, since a person's rows in all its tables"
                f" are protected together; leave public out of {column.name!r}"
            )
        if column.name.startswith(MARK) or "." in column.name:
            raise InvalidQuery(
                f"{table}: {column.name!r:.60} cannot name a column of a study: no name has a dot"
                " or begins like a definition; rename it"
            )


@dataclass(frozen=True, slots=True, init=False)
class Study(Schema):
    """The public facts of a study; as a schema, those of its person table.

    `Study("patients", Category("sex", ["F", "M"]), person="patient_id", tables=[EventTable(...)])`.
    """

    of_study: ClassVar[bool] = True
    name: str
    tables: tuple[EventTable, ...]
    _values: dict[tuple[str, str], BoundValue] = field(compare=False, repr=False)

    def __init__(
        self,
        name: str,
        *columns: declared.Column,
        person: str,
        tables: Sequence[EventTable],
        at_most: int = DEFAULT_AT_MOST,
        bits: int = 24,
        person_word: str | Sequence[str] = "",
    ) -> None:
        _check_table_name(name)
        _check_columns(name, columns)
        if not isinstance(person, str) or not person or person == "row":
            raise InvalidQuery(f"person must name the column of the person, got {person!r:.60}")
        tables = tuple(tables)
        if not tables or not all(isinstance(table, EventTable) for table in tables):
            raise InvalidQuery(
                "a study has a person table and at least one EventTable; one table is a Schema"
            )
        names = [name, *(table.name for table in tables)]
        if len({one.casefold() for one in names}) != len(names) or len(names) > MOST_TABLES:
            raise InvalidQuery(
                f"a study has up to {MOST_TABLES} tables, whose names differ, got {names}"
            )
        terms: dict[str, Any] = {"at_most": at_most, "bits": bits, "person_word": person_word}
        Schema.__init__(self, *columns, unit=person, max_rows=1, **terms)
        put = object.__setattr__
        put(self, "name", name)
        put(self, "tables", tables)
        put(self, "_values", {})
        for table in tables:
            self.relation(table.name)  # its names must not clash

    def __getitem__(self, name: str) -> declared.Column:
        if is_person_value(name):
            return self.value(name).column
        return Schema.__getitem__(self, name)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name or _defined(self, name)

    @property
    def one_each(self) -> bool:
        return True

    @property
    def names(self) -> tuple[str, ...]:
        """Its tables, the person table first."""
        return (self.name, *(table.name for table in self.tables))

    def rows_bound(self, persons: int | None = None) -> int:
        """A public bound on the rows of all its tables, for so many persons, or as declared."""
        most = self.at_most if persons is None else persons
        return most + sum(table.rows_bound(most) for table in self.tables)

    def value(self, name: str, of: str = "") -> BoundValue:
        """A value of a person, as a row of the table `of` sees it, proved; remembered while there
        is room."""
        key = (name, of if is_of_a_row(name) and of != self.name else "")
        found = self._values.get(key)
        if found is None:
            found = _bound_value(self, read_person_value(name), key[1])
            if len(self._values) >= MOST_REMEMBERED:
                self._values.clear()
            self._values[key] = found
        return found

    def table(self, name: str) -> EventTable:
        """The event table of this name."""
        for table in self.tables:
            if table.name == name:
                return table
        names = list(self.names)
        near = difflib.get_close_matches(name, names, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        if name == self.name:
            raise InvalidQuery(
                f"{name} is the person table, with one row for each person: use its columns"
            )
        raise InvalidQuery(f"no table {name!r:.60}; {hint}the study has {names}")

    def relation(self, name: str) -> Schema:
        """The columns that a question about this table may use; empty: the person table."""
        return self if name in ("", self.name) else EventSchema(self, self.table(name))

    def on_grid(self, bits: int) -> Study:
        return Study(
            self.name,
            *self.columns,
            person=self.unit,
            tables=self.tables,
            at_most=self.at_most,
            bits=bits,
            person_word=self._words,
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "columns": [declared.column_json(column) for column in self.columns],
            "person": self.unit,
            "tables": [table.to_json() for table in self.tables],
            "at_most": self.at_most,
            "bits": self.bits,
        }

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Study:
        return cls(
            facts["name"],
            *(declared.column_from_json(column) for column in facts["columns"]),
            person=facts["person"],
            tables=[EventTable.from_json(table) for table in facts["tables"]],
            at_most=facts["at_most"],
            bits=facts["bits"],
        )


def schema_from_json(facts: Mapping[str, Any]) -> Schema:
    """The public facts of a table or of a study."""
    return Study.from_json(facts) if "tables" in facts else Schema.from_json(facts)


@dataclass(frozen=True, slots=True, init=False)
class EventSchema(Schema):
    """The rows of an event table, each with the columns of its person's row."""

    of_study: ClassVar[bool] = True
    study: Study
    table: EventTable
    of_person: Mapping[str, str] = field(compare=False, repr=False)
    """By name: the column of the person table. One that the event table has too is called
    `patients.region`."""

    def __init__(self, study: Study, table: EventTable) -> None:
        own = {column.name.casefold() for column in table.columns}
        person = {}
        for column in study.columns:
            clash = column.name.casefold() in own
            person[f"{study.name}.{column.name}" if clash else column.name] = column
        joined = [declared.renamed(column, name) for name, column in person.items()]
        unit = table.person or study.unit
        if unit in {column.name for column in joined}:
            raise InvalidQuery(
                f"{table.name}: the person column {unit!r:.60} has the name of a column of"
                f" {study.name}; rename one"
            )
        Schema.__init__(
            self,
            *table.columns,
            *joined,
            unit=unit,
            max_rows=table.max_rows,
            at_most=table.rows_bound(study.at_most),
            bits=study.bits,
        )
        put = object.__setattr__
        put(self, "study", study)
        put(self, "table", table)
        put(self, "of_person", {name: column.name for name, column in person.items()})

    def __getitem__(self, name: str) -> declared.Column:
        if is_person_value(name):
            return self.study.value(name, self.table.name).column
        return Schema.__getitem__(self, name)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name or _defined(self.study, name, self.table.name)


def _defined(study: Study, name: str, of: str = "") -> bool:
    if not is_person_value(name):
        return False
    try:
        return study.value(name, of) is not None
    except InvalidQuery:
        return False


MOST_VALUES = 64
"""Values of a person in one question, those inside others counted too."""


def relation_of(query: SumQuery, schema: Schema) -> tuple[SumQuery, Schema, OfTable | None]:
    """The question with its table in one spelling, the columns it may use, and whose rows it sums.

    Under the columns of an event table it is a question to the study about that table. Whatever has
    a person's clip is asked as a value of the person instead.
    """
    if isinstance(schema, EventSchema):
        query, schema = replace(query, table=query.table or schema.table.name), schema.study
    if not isinstance(schema, Study):
        if query.table:
            raise InvalidQuery(
                f"this is one table, not a study: there is no table {query.table!r:.60} in it"
            )
        return query, schema, None
    if query.clip is not None:
        raise InvalidQuery(
            "a study is asked about persons with values of a person, one unit whatever max_rows is:"
            ' count(where=exists("visits", ...)), total(sum_of("visits", "cost", clip=(0, 500))),'
            ' mean(count_of("visits"))',
            reason=Reason.PERSON_COLUMN,
        )
    query = replace(query, table="") if query.table == schema.name else query
    return query, schema.relation(query.table), OfTable(query.table or schema.name, not query.table)


NOT_FOR_A_STUDY = {
    "growth": "new rows of one table would change who is kept in another",
    "an amendment": "max_rows, keep and columns decide which rows of a person are read, in all its"
    " tables",
    "individual accounting": "a balance goes by the rows of one table",
    "exact release": "its assumptions are about rows, not about persons with many",
    "a share of a joint sum": "the owners of a joint sum each hold one table",
    "keys that nobody declared": "a person may bring as many new keys as rows",
}


def not_for_a_study(what: str) -> str:
    """Say why something is not proved for several tables about the same persons."""
    return (
        f"{what} is not for a study: {NOT_FOR_A_STUDY[what]}. Publish a new study, or one table"
        " alone"
    )


def refuse_study(schema: Schema, what: str) -> None:
    """Refuse what is not proved for several tables about the same persons."""
    if isinstance(schema, Study | EventSchema):
        raise Refused(not_for_a_study(what))


def values_in(schema: Study | EventSchema, *nodes: object) -> list[BoundValue]:
    """The values of a person that a program over these rows reads, with those that they read."""
    study, of = (
        (schema.study, schema.table.name) if isinstance(schema, EventSchema) else (schema, "")
    )
    found: dict[tuple[str, str], BoundValue] = {}
    waiting: list[tuple[str, object]] = [(of, node) for node in nodes]
    while waiting:
        table, node = waiting.pop()
        for name in column_names(node):
            if is_person_value(name) and (name, table) not in found:
                value = found[name, table] = study.value(name, table)
                waiting += [(value.table, value.reads), (table, value.limit)]
    return list({id(value): value for value in found.values()}.values())


def rows_of(study: Study, program: object) -> Study | EventSchema:
    """The table whose rows a program sums: it says so in its condition."""
    if isinstance(program, OfTable):
        found = study.relation(program.table)
        assert isinstance(found, Study | EventSchema)  # noqa: S101
        return found
    parts = program if isinstance(program, tuple) else _inside(program)
    for part in parts:
        found = rows_of(study, part)
        if found is not study:
            return found
    return study


def _inside(node: object) -> Iterator[object]:
    return (getattr(node, name) for name in getattr(type(node), "__match_args__", ()))


def column_names(node: object) -> Iterator[str]:
    """The columns that a program mentions."""
    if isinstance(node, tuple):
        for part in node:
            yield from column_names(part)
        return
    for name in getattr(type(node), "__match_args__", ()):
        inner = getattr(node, name)
        if name == "column" and isinstance(inner, str):
            yield inner
        else:
            yield from column_names(inner)


def checked_values(schema: Schema, *nodes: object, averages: bool = False) -> list[str]:
    """What one person can move, in words; `InvalidQuery` if a program reads too many values of a
    person. Of one table alone there is nothing to say. `averages`: it is asked for an average."""
    study = schema.study if isinstance(schema, EventSchema) else schema
    if not isinstance(study, Study):
        return []
    assert isinstance(schema, Study | EventSchema)  # noqa: S101
    found = values_in(schema, *nodes)
    if len(found) > MOST_VALUES:
        raise InvalidQuery(
            f"one question has at most {MOST_VALUES} values of a person; ask in pieces",
            reason=Reason.TOO_LARGE,
        )
    said = []
    if isinstance(schema, EventSchema):
        table = schema.table
        which = (
            "by the hash of their values" if table.by is None else f"the {table.keep} by {table.by}"
        )
        rows = "1 row" if table.max_rows == 1 else f"{table.max_rows:,} rows"
        said.append(
            f"one person moves this by up to {rows} of {table.name} ({which}); a value of the"
            f" person, such as count_of({table.name!r}), is over all their rows and costs one unit"
        )
        if averages and table.max_rows < table.ceiling:
            said.append(
                "rows beyond those are left out, so an average over rows leans to persons with few:"
                f" the mean of mean_of({table.name!r}, ...) over {study.name}, in SQL"
                " AVG((SELECT AVG(...) ...)), cuts none, weighs persons alike and costs less"
            )
    read = {value.table: study.table(value.table).ceiling for value in found}
    if read:
        most = ", ".join(f"{ceiling:,} rows of {name}" for name, ceiling in sorted(read.items()))
        said.append(f"values of a person are over all rows of the person, up to {most}")
    return said


# --- values of a person --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BoundValue:
    """A value of a person as an integer program over that person's rows of one table.

    `value` in whole steps of `step`; a sum is cut to [low, high], a mean has `finer` steps in one.
    `raw` is a Category or Flag that is taken as it is. `column` says what a question sees.
    """

    kind: str
    table: str
    rows: Condition
    column: declared.Column
    value: Integer | None = None
    raw: str | None = None
    by: Integer | None = None
    low: int = 0
    high: int = 0
    step: Fraction = Fraction(1)
    finer: int = 1
    limit: Integer | None = None
    """Of the latest value: what `place` is at most, in the row where it stands."""
    place: Integer | None = None
    """Of the latest value: the value on the grid of `limit`."""

    @property
    def reads(self) -> tuple[object, ...]:
        """What it reads of the person's rows of its table."""
        raw = None if self.raw is None else Text(self.raw)
        return (self.rows, self.value, self.by, raw, self.place)


def _columns(expression: Expression) -> Iterator[str]:
    match expression:
        case Column(name):
            yield name
        case Operation(operands=parts):
            for part in parts:
                yield from _columns(part)


def _depth(asked: PersonValue, level: int = 1) -> int:
    if level > DEEPEST:
        raise InvalidQuery(
            f"values of a person may stand {DEEPEST} deep inside each other; use fewer",
            reason=Reason.TOO_LARGE,
        )
    parts = [part for part in (asked.rows, asked.value, asked.limit) if part is not None]
    inner = [name for part in parts for name in _columns(part) if is_person_value(name)]
    return max((_depth(read_person_value(name), level + 1) for name in inner), default=level)


def _bound_value(study: Study, asked: PersonValue, of: str) -> BoundValue:
    """Prove a definition: its types, its bounds, and that no row can make it fail. P.2"""
    _depth(asked)
    table = study.table(asked.table)
    binder = RowBinder(EventSchema(study, table))
    rows = binder.condition(asked.rows)
    name, kind = asked.name, asked.kind
    if asked.value is None:
        Fits().check(rows, ())
        _check_height(rows)
        if kind == "exists":
            return BoundValue(kind, table.name, rows, Flag(name))
        return BoundValue(kind, table.name, rows, Number(name, 0, table.ceiling, step=1))
    by = None if asked.by is None else _order(asked.by, binder)
    if kind in ("first", "last") and isinstance(asked.value, Column):
        found = binder.schema[asked.value.name]
        if not isinstance(found, Number):
            Fits().check(rows, () if by is None else (by,))
            _check_height(rows)
            column = declared.renamed(found, name)
            return BoundValue(kind, table.name, rows, column, raw=found.name, by=by)
    value = binder.number(asked.value)
    Fits().check(rows, [value.node, *([] if by is None else [by])])
    _check_height((rows, value.node))
    low, high, step, finer = value.low, value.high, value.step, 1
    limit, place = _limit(asked, value, RowBinder(study.relation(of)))
    if kind == "sum" and value.kind != "number":
        raise InvalidQuery("dates are not added up; take first_of, last_of, min_of or max_of")
    if kind == "sum":
        low, high = _cut(value, asked, binder, table.ceiling)
    if kind == "mean":
        finer = _finer(value)
        step = step / finer
        low, high = low * finer, high * finer
    column = _number(name, value, low * step, high * step, step if finer == 1 else None)
    return BoundValue(
        kind, table.name, rows, column, value.node, None, by, low, high, step, finer, limit, place
    )


def _limit(
    asked: PersonValue, value: Steps, row: RowBinder
) -> tuple[Integer, Integer] | tuple[None, None]:
    """What the latest or earliest value is compared with in the row where it stands, and the value,
    on one grid. What is strictly before k is at most k - 1. P.2"""
    if asked.kind not in NEAREST:
        return None, None
    assert asked.limit is not None  # noqa: S101
    there, here = aligned(*one_kind([value, row.number(asked.limit)], asked.limit))
    node = here.node
    if asked.strict:
        node = Added((node, Fixed(-1 if asked.kind == "latest" else 1)))
    Fits().check(Always(), [node, there.node])
    _check_height((node, there.node))
    return node, there.node


def _check_height(node: object) -> None:
    if height(node) > TALLEST:
        raise InvalidQuery(
            "a value of a person is nested too deeply; flatten or shorten it",
            reason=Reason.TOO_LARGE,
        )


def _order(by: str, binder: RowBinder) -> Integer:
    if not isinstance(binder.schema[by], Number):
        raise InvalidQuery(f"rows are ordered by a Number column, got {by!r:.60}")
    node = binder.number(Column(by)).node
    assert isinstance(node, Quantised)  # noqa: S101
    return node


def _cut(value: Steps, asked: PersonValue, binder: RowBinder, ceiling: int) -> tuple[int, int]:
    """The clip in steps, no wider than the rows of one person can reach. P.2"""
    assert asked.clip is not None  # noqa: S101
    ends = [binder.literal(end, "number") / value.step for end in asked.clip]
    low, high = (math.floor(end + Fraction(1, 2)) for end in ends)
    reach = (min(value.low, ceiling * value.low), max(value.high, ceiling * value.high))
    low, high = (min(max(end, low), high) for end in reach)
    if low >= high:
        raise InvalidQuery(
            f"the clip of sum_of leaves one value only, got {float(ends[0] * value.step):g} to"
            f" {float(ends[1] * value.step):g}; take a wider one",
            reason=Reason.NEEDS_BOUNDS,
        )
    return low, high


def _finer(value: Steps) -> int:
    """How many steps of a mean are one step of the value: a power of two."""
    finer, width = 1, max(value.high - value.low, 1)
    while 2 * finer * width <= MEAN_STEPS and 2 * finer * value.largest <= 2**30:
        finer *= 2
    return finer


def _number(
    name: str, value: Steps, low: Fraction, high: Fraction, step: Fraction | None
) -> Number:
    """What a question sees: a Number with proved bounds."""
    if low >= high:
        raise InvalidQuery(
            "a value of a person must be able to differ between persons; here it cannot",
            reason=Reason.NEEDS_BOUNDS,
        )
    lattice = step if value.exact else None
    if value.kind == "number":
        return Number(name, low, high, lattice)
    try:
        if value.kind == "date":
            first, last = math.floor(low), math.ceil(high)
            ends = (
                EPOCH.date() + datetime.timedelta(first),
                EPOCH.date() + datetime.timedelta(last),
            )
            return Number(name, *ends, None if lattice == 1 else lattice)
        start = EPOCH + datetime.timedelta(seconds=math.floor(low))
        return Number(name, start, EPOCH + datetime.timedelta(seconds=math.ceil(high)), lattice)
    except OverflowError:
        raise InvalidQuery(
            "a date of a person could leave the calendar; clip it", reason=Reason.NEEDS_BOUNDS
        ) from None
