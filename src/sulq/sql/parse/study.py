"""SQL over the tables of a study: joins to the person, and subqueries that are values of a person.

A statement is about the rows of one table: of persons, or of events with their person's columns.
EXISTS, IN (SELECT ...) and scalar subqueries over the same person's rows of another table become
columns (`sulq.kernel.query.person_values`); a JOIN of events to the person table becomes nothing,
for each row of events has those columns. Whatever else names two tables is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from sqlglot import exp

from sulq.errors import Reason
from sulq.kernel.query import canonical
from sulq.kernel.query.expressions import Column, Expression, Literal, operation
from sulq.kernel.query.person_values import PersonValue
from sulq.kernel.query.sum_query import clip_of
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.study import EventSchema, EventTable, Study
from sulq.sql.parse.declared import bare, plain_row
from sulq.sql.parse.grammar import Node, opened, wrong
from sulq.sql.parse.scope import KnownTables, resolved, scope_of

VALUE = "value of the person "
"""How the columns that subqueries become are called while a statement is read."""
AGGREGATES: dict[type[Node], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "mean",
    exp.Min: "min",
    exp.Max: "max",
}


def table_of_rows(text: str, study: Study, dialect: str | None = None) -> str:
    """The table of a study whose rows a statement sums; empty: the person table."""
    tree = opened(text, dialect).tree
    made = {cte.alias.casefold() for cte in tree.find_all(exp.CTE)}
    found: dict[str, str] = {}
    for select in tree.find_all(exp.Select):
        if _is_of_a_row(select):
            continue
        sources = [select.args.get("from_"), *(select.args.get("joins") or ())]
        names = [
            source.this.name.casefold()
            for source in sources
            if source is not None and isinstance(source.this, exp.Table)
        ]
        events = [name for name in names if name not in made and name != study.name.casefold()]
        known = {table.name.casefold(): table.name for table in study.tables}
        if any(name in known for name in events):
            found |= {known[name]: "" for name in events if name in known}
        elif names and any(name not in made for name in names):
            found[""] = ""
    if len(found) > 1:
        shown = ", ".join(name or study.name for name in found)
        raise wrong(
            tree,
            Reason.JOIN,
            f"rows of several tables in one statement, {shown}; a statement sums the rows of one:"
            " ask about the others with EXISTS (SELECT ...), with a subquery such as (SELECT"
            " COUNT(*) ...), or in a statement of their own",
        )
    table = next(iter(found), "")
    return "" if table and _counts_persons(tree, study, table) else table


def _is_of_a_row(select: Node) -> bool:
    """Whether a SELECT stands inside a row expression: EXISTS, IN or a scalar subquery."""
    around = select.parent
    if isinstance(around, exp.Exists | exp.In):
        return True
    outer = around.parent if isinstance(around, exp.Subquery) else None
    whole = exp.From | exp.Join | exp.CTE | exp.Subquery | exp.Union
    return outer is not None and not isinstance(outer, whole)


def _counts_persons(tree: Node, study: Study, table: str) -> bool:
    """Whether nothing is asked of the events but how many persons have one."""
    unit = study.table(table).person or study.unit
    asked = [
        found
        for select in tree.find_all(exp.Select)
        if not _is_of_a_row(select)
        for item in select.expressions
        for found in item.find_all(exp.AggFunc)
    ]
    return bool(asked) and all(_is_persons(found, {unit, study.unit}) for found in asked)


def _is_persons(node: Node, units: set[str]) -> bool:
    inner = node.this if isinstance(node, exp.Count) else None
    named = inner.expressions if isinstance(inner, exp.Distinct) else []
    return len(named) == 1 and isinstance(named[0], exp.Column) and named[0].name in units


@dataclass(slots=True)
class StudyRewriter:
    """Turns the SELECTs of one statement into SELECTs of one table."""

    schema: Schema
    values: dict[str, str] = field(default_factory=dict)
    """The columns that subqueries became: their definitions."""

    @property
    def study(self) -> Study:
        schema = self.schema
        assert isinstance(schema, Study | EventSchema)  # noqa: S101
        return schema.study if isinstance(schema, EventSchema) else schema

    @property
    def relation(self) -> str:
        schema = self.schema
        return schema.table.name if isinstance(schema, EventSchema) else self.study.name

    def statement(self, tree: Node) -> Node:
        """The statement about one table."""
        selects = [one for one in tree.find_all(exp.Select) if not _is_of_a_row(one)]
        for select in selects:
            if _from_a_table(select):
                self._select(select)
        return tree

    # --- SELECTs of rows ------------------------------------------------------------------------

    def _select(self, select: Node) -> None:
        names = self._sources(select)
        if names is None:
            return
        scope = _Names(self.study, self.relation, names)
        if isinstance(self.schema, Study) and set(names.values()) != {self.study.name}:
            self._persons_with(select, scope)
            return
        self._parts(select, scope)
        for count in list(select.find_all(exp.Count)):
            if isinstance(self.schema, Study) and _is_persons(count, {self.study.unit}):
                count.replace(exp.Count(this=exp.Star()))
            elif isinstance(count.this, exp.Distinct) and _is_persons(count, _units(self.study)):
                raise wrong(
                    count,
                    Reason.DISTINCT,
                    "persons beside other sums over events; ask for COUNT(DISTINCT"
                    f" {self.study.unit}) in a statement of its own, which costs one unit",
                )

    def _sources(self, select: Node) -> dict[str, str] | None:
        """The study's tables that a SELECT names, by alias; None where it names none."""
        start: Node = select.args["from_"]
        joins = select.args.get("joins") or []
        found: dict[str, str] = {}
        kept = []
        for place, source in enumerate([start, *joins]):
            table = self._known(source.this) if isinstance(source.this, exp.Table) else None
            if table is None:
                if place == 0:
                    return None
                kept.append(source)
                continue
            alias = (source.this.alias or source.this.name).casefold()
            if alias in found or table in found.values():
                raise wrong(source.this, Reason.JOIN, _TWICE.format(table=table))
            if place:
                _check_join(source, self.study, {**found, alias: table})
            found[alias] = table
        events = [table for table in found.values() if table != self.study.name]
        if len(events) > 1:
            raise wrong(start, Reason.JOIN, _MANY)
        start.set("this", exp.Table(this=exp.Identifier(this=self.relation)))
        select.set("joins", kept)
        return found

    def _known(self, table: Node) -> str | None:
        name = table.name.casefold()
        return next((one for one in self.study.names if one.casefold() == name), None)

    def _persons_with(self, select: Node, scope: _Names) -> None:
        """COUNT(DISTINCT person) over events: the persons who have such an event."""
        (table,) = (name for name in scope.tables.values() if name != self.study.name)
        where = select.args.get("where")
        inner = StudyRewriter(self.study.relation(table), self.values)
        rows: Expression = canonical.TRUE
        if where is not None:
            rows = inner.condition(where.this, _Names(self.study, table, scope.tables))
        name = self._named(PersonValue("exists", table, rows))
        select.set("where", exp.Where(this=name))
        for count in list(select.find_all(exp.Count)):
            count.replace(exp.Count(this=exp.Star()))
        own = {column.name.casefold() for column in self.study.table(table).columns}
        for column in select.find_all(exp.Column):
            said = column.name.casefold()
            there = scope.tables.get(column.table.casefold())
            if column is not name and said in own and there != self.study.name:
                raise wrong(
                    column,
                    Reason.DISTINCT,
                    f"persons by {column.name:.60}, a column of {table}: a person may be in many"
                    " groups; count persons with COUNT(*) FILTER (WHERE EXISTS (...)), a condition"
                    f" on {column.name:.60} inside, of {self.study.name}",
                )
            if column is not name:
                scope.place(column)

    def _parts(self, select: Node, scope: _Names) -> None:
        """Every subquery of a row becomes a column, every column the name it has in the table."""
        inner = [part for part in select.find_all(exp.Select) if part is not select]
        own = [part for part in inner if part.find_ancestor(exp.Select) is select]
        for part in own:
            if _is_of_a_row(part):
                self._subquery(part, scope)
        for column in list(select.find_all(exp.Column)):
            if not column.name.startswith(VALUE):
                scope.place(column)

    # --- subqueries of a row --------------------------------------------------------------------

    def condition(self, node: Node, scope: _Names) -> Expression:
        """A condition of a row of this table, with its subqueries."""
        select = exp.Select(expressions=[exp.Star()]).from_(self.relation)
        holder = exp.Where(this=node.copy())
        select.set("where", holder)
        self._parts(select, scope)
        known = KnownTables(self.schema, self.relation, {}, values=self.values)
        found = scope_of(select, known)
        return plain_row(found.rows[-1], self.schema)

    def value(self, node: Node, scope: _Names) -> Expression:
        """A value of a row of this table."""
        select = exp.Select(expressions=[exp.Paren(this=node.copy())]).from_(self.relation)
        self._parts(select, scope)
        known = KnownTables(self.schema, self.relation, {}, values=self.values)
        found = scope_of(select, known)
        return plain_row(resolved(select.expressions[0], found), self.schema)

    def _named(self, value: PersonValue) -> Node:
        name = f"{VALUE}{len(self.values)}"
        self.values[name] = value.name
        return exp.Column(this=exp.Identifier(this=name, quoted=True))

    def _subquery(self, select: Node, outer: _Names) -> None:
        """Replace a SELECT about the same person by the value it stands for."""
        around = select.parent
        if isinstance(around, exp.Subquery) and isinstance(around.parent, exp.In | exp.Exists):
            around = around.parent
        table, alias = self._inner_table(select)
        names = _Names(self.study, table.name, {alias: table.name}, outer)
        where = select.args.get("where")
        parts = [] if where is None else _conjuncts(where.this)
        linked = [part for part in parts if names.is_link(part)]
        asked_in = isinstance(around, exp.In)
        if asked_in and not linked:
            listed = select.expressions
            if len(listed) != 1 or not names.is_person(listed[0], table.name):
                raise wrong(select, Reason.JOIN, _OTHER_KEY.format(person=names.unit(table.name)))
            compared = None if around is None else around.this
            if not isinstance(compared, exp.Column) or not outer.is_person(compared):
                raise wrong(select, Reason.JOIN, _OTHER_KEY.format(person=self.study.unit))
        elif asked_in or not linked:
            raise wrong(
                select,
                Reason.JOIN,
                "a subquery that is not about the same person; write WHERE"
                f" {table.name}.{names.unit(table.name)} = {outer.spelled_person()} in it",
            )
        inner = StudyRewriter(self.study.relation(table.name), self.values)
        rest = [inner.condition(part, names) for part in parts if part not in linked]
        rows = rest[0] if len(rest) == 1 else operation("and", *rest) if rest else canonical.TRUE
        if isinstance(around, exp.Exists | exp.In):
            around.replace(self._named(PersonValue("exists", table.name, rows)))
            return
        self._scalar(select, table, rows, inner, names)

    def _inner_table(self, select: Node) -> tuple[EventTable, str]:
        start = select.args.get("from_")
        if start is None or not isinstance(start.this, exp.Table) or select.args.get("joins"):
            raise wrong(select, Reason.JOIN, _ONE_TABLE)
        for name in ("group", "having", "distinct", "offset", "with_", "qualify"):
            if select.args.get(name):
                raise wrong(select, Reason.JOIN, f"{name.upper().strip('_')} in it: {_ONE_TABLE}")
        known = self._known(start.this)
        if known is None:
            there = ", ".join(self.study.names)
            said = f"no table {start.this.name!r:.60}; there are {there}"
            raise wrong(start.this, Reason.NO_TABLE, said, table=self.study.name)
        if known == self.study.name:
            raise wrong(
                select,
                Reason.JOIN,
                f"a subquery over {known}, which has one row for each person; use its columns",
            )
        return self.study.table(known), (start.this.alias or start.this.name).casefold()

    def _scalar(
        self,
        select: Node,
        table: EventTable,
        rows: Expression,
        inner: StudyRewriter,
        names: _Names,
    ) -> None:
        around = select.parent
        assert around is not None  # noqa: S101
        listed = [bare(item) for item in select.expressions]
        item = listed[0].this if isinstance(listed[0], exp.Alias) else listed[0]
        if len(listed) != 1:
            raise wrong(select, Reason.WRONG_FORM, "a subquery of a row gives one value")
        kind = AGGREGATES.get(type(item))
        if kind is None:
            around.replace(self._named(self._ordered(select, item, table, rows, inner, names)))
            return
        if select.args.get("order") or select.args.get("limit"):
            raise wrong(select, Reason.WRONG_FORM, "ORDER BY or LIMIT beside an aggregate")
        if kind == "count":
            if isinstance(item.this, exp.Distinct):
                raise wrong(item, Reason.DISTINCT, "COUNT(DISTINCT ...) of a person's rows")
            if not isinstance(item.this, exp.Star):
                there = inner.value(item.this, names).is_not_null()
                rows = there if rows is canonical.TRUE else operation("and", rows, there)
            around.replace(self._named(PersonValue("count", table.name, rows)))
            return
        value = inner.value(item.this, names)
        if kind != "sum":
            around.replace(self._named(PersonValue(kind, table.name, rows, value)))
            return
        clamp = _clamp(around)
        if clamp is None:
            raise wrong(
                select,
                Reason.NEEDS_BOUNDS,
                "a person's SUM has no bounds; cut it: CLAMP((SELECT SUM(...) ...), 0, 1000)",
            )
        ends = [inner.value(end, names) for end in clamp.expressions[1:]]
        clip = clip_of([end for end in ends if isinstance(end, Literal)])
        clamp.replace(self._named(PersonValue("sum", table.name, rows, value, clip=clip)))

    def _ordered(
        self,
        select: Node,
        item: Node,
        table: EventTable,
        rows: Expression,
        inner: StudyRewriter,
        names: _Names,
    ) -> PersonValue:
        """The value in the first or last row: ORDER BY day LIMIT 1."""
        order, limit = select.args.get("order"), select.args.get("limit")
        listed = [] if order is None else order.expressions
        one = limit is not None and str(getattr(limit.expression, "this", "")) == "1"
        if item.find(exp.AggFunc) or len(listed) != 1 or not one:
            raise wrong(
                select,
                Reason.WRONG_FORM,
                "a subquery of a row is an aggregate, (SELECT COUNT(*) ...), or the value in the"
                " first or last row, (SELECT x ... ORDER BY day LIMIT 1)",
            )
        by = inner.value(listed[0].this, names)
        if not isinstance(by, Column):
            raise wrong(listed[0], Reason.WRONG_FORM, "ORDER BY one Number column of the table")
        kind = "last" if listed[0].args.get("desc") else "first"
        return PersonValue(kind, table.name, rows, inner.value(item, names), by.name)


_TWICE = (
    "{table} twice: persons are not joined with each other, nor rows of one table with its rows"
)
_MANY = (
    "a join of two event tables: each row of one would meet many of the other; ask about one and"
    " write EXISTS (SELECT ...) or (SELECT COUNT(*) ...) for the other"
)
_ONE_TABLE = "a subquery of a row reads one event table, with WHERE alone"
_OTHER_KEY = "a key that is not the person; tables of a study are joined by {person} alone"


def _units(study: Study) -> set[str]:
    return {study.unit, *(table.person for table in study.tables if table.person)}


def _from_a_table(select: Node) -> bool:
    start = select.args.get("from_")
    return start is not None and isinstance(start.this, exp.Table)


def _conjuncts(node: Node) -> list[Node]:
    node = bare(node)
    if isinstance(node, exp.And):
        return [*_conjuncts(node.this), *_conjuncts(node.expression)]
    return [node]


def _clamp(around: Node) -> Node | None:
    """CLAMP(x, low, high) around the brackets of a subquery."""
    outer = around.parent
    while isinstance(outer, exp.Paren):
        outer = outer.parent
    is_clamp = isinstance(outer, exp.Anonymous) and str(outer.this).upper() == "CLAMP"
    return outer if is_clamp and outer is not None and len(outer.expressions) == 3 else None


def _check_join(join: Node, study: Study, tables: Mapping[str, str]) -> None:
    """Events meet their person, by the person: JOIN ... USING (patient_id), or ON a = b."""
    side, kind = str(join.args.get("side") or ""), str(join.args.get("kind") or "")
    if side or kind not in ("", "INNER"):
        raise wrong(
            join,
            Reason.JOIN,
            f"{f'{side} {kind}'.strip()} JOIN in a study; JOIN keeps events with their person, and"
            " persons without events are asked with EXISTS or (SELECT COUNT(*) ...)",
        )
    names = _Names(study, study.name, tables)
    using, on = join.args.get("using"), join.args.get("on")
    units = [names.unit(table) for table in tables.values()]
    if using and len(using) == 1:
        if all(unit.casefold() == using[0].name.casefold() for unit in units):
            return
    elif on is not None and names.is_link(bare(on)):
        return
    raise wrong(
        join,
        Reason.JOIN,
        f"a join that is not by the person; write JOIN ... USING ({study.unit}), or ON the person"
        f" columns {' = '.join(units)}",
    )


@dataclass(frozen=True, slots=True)
class _Names:
    """What the names of a SELECT stand for: its tables by alias, and those around it."""

    study: Study
    relation: str
    tables: Mapping[str, str]
    outer: _Names | None = None

    def unit(self, table: str) -> str:
        """The person column of a table."""
        if table == self.study.name:
            return self.study.unit
        return self.study.table(table).person or self.study.unit

    def spelled_person(self) -> str:
        alias, table = next(iter(self.tables.items()))
        return f"{alias}.{self.unit(table)}"

    def table_of(self, column: exp.Column) -> tuple[str, _Names] | None:
        """The table that a column is of, and the SELECT that names it."""
        alias, name = column.table.casefold(), column.name.casefold()
        if alias:
            if alias in self.tables:
                return self.tables[alias], self
        else:
            for table in self.tables.values():
                listed = self.study if table == self.study.name else self.study.table(table)
                held = {one.name.casefold() for one in listed.columns}
                if name in held | {self.unit(table).casefold()}:
                    return table, self
        return None if self.outer is None else self.outer.table_of(column)

    def is_person(self, column: Node, table: str | None = None) -> bool:
        if not isinstance(column, exp.Column):
            return False
        found = self.table_of(column)
        if found is None or (table is not None and found[0] != table):
            return False
        return column.name.casefold() == self.unit(found[0]).casefold()

    def is_link(self, node: Node) -> bool:
        """Whether a condition says that two rows are of one person."""
        if not isinstance(node, exp.EQ):
            return False
        sides = [bare(node.this), bare(node.expression)]
        if not all(isinstance(side, exp.Column) and self.is_person(side) for side in sides):
            return False
        found = [self.table_of(side) for side in sides if isinstance(side, exp.Column)]
        return found[0] != found[1] and any(one is not None and one[1] is self for one in found)

    def place(self, column: exp.Column) -> None:
        """Give a column the name that it has among the columns of the table's rows."""
        found = self.table_of(column)
        if found is None:
            if column.table:
                self._unknown(column)
            return  # an alias of the SELECT, or an unknown name: told as one
        table, where = found
        name = column.name
        if where is not self and table != self.study.name:
            raise wrong(
                column,
                Reason.JOIN,
                f"{column.name:.60} is of a row of {table} outside: a subquery is about the person,"
                " not about that row; compare with a value of the person, such as (SELECT MIN(...)"
                " ...)",
            )
        if table == self.study.name and self.relation != self.study.name:
            schema = self.study.relation(self.relation)
            assert isinstance(schema, EventSchema)  # noqa: S101
            name = next(
                (
                    own
                    for own, held in schema.of_person.items()
                    if held.casefold() == name.casefold()
                ),
                name,
            )
        column.set("this", exp.Identifier(this=name, quoted=True))
        column.set("table", None)

    def _unknown(self, column: exp.Column) -> NoReturn:
        raise wrong(
            column,
            Reason.NO_TABLE,
            f"no table {column.table!r:.60} in FROM; there are {', '.join(self.tables)}",
            table=next(iter(self.tables.values())),
        )
