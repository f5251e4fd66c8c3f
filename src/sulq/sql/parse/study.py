"""SQL over the tables of a study: joins to the person, and subqueries that are values of a person.

A statement is about the rows of one table: of persons, or of events with their person's columns.
EXISTS, IN (SELECT ...) and scalar subqueries over the same person's rows of another table become
columns (`sulq.kernel.query.person_values`); a JOIN of events to the person table becomes nothing,
for each row of events has those columns. Whatever else names two tables is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from sqlglot import exp

from sulq.errors import Reason
from sulq.kernel.query import canonical
from sulq.kernel.query.expressions import Column, Expression, Literal, operation
from sulq.kernel.query.person_values import PersonValue
from sulq.kernel.query.sum_query import clip_of
from sulq.kernel.schema.columns import Category, Flag, Schema
from sulq.kernel.schema.study import EventSchema, EventTable, Study
from sulq.sql.parse.declared import bare, plain_row
from sulq.sql.parse.grammar import Node, opened, wrong
from sulq.sql.parse.scope import KnownTables, resolved, scope_of
from sulq.sql.parse.study_ranges import ACROSS, ranged
from sulq.sql.parse.study_sources import (
    all_of,
    conjuncts,
    is_true,
    known_table,
    one_table,
    set_where,
    sources,
    unit_of,
    written_out,
)

VALUE = "value of the person "
"""How the columns that subqueries become are called while a statement is read."""
MOST_DIFFERENT = 12
"""Declared values of a column whose different values in a person's rows are counted."""
AGGREGATES: dict[type[Node], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "mean",
    exp.Min: "min",
    exp.Max: "max",
}


def table_of_rows(text: str, study: Study, dialect: str | None = None) -> str:
    """The table of a study whose rows a statement sums; empty: the person table."""
    tree = written_out(opened(text, dialect).tree.copy(), study)
    made = {cte.alias.casefold() for cte in tree.find_all(exp.CTE)}
    found: dict[str, None] = {}
    for select in tree.find_all(exp.Select):
        if _is_of_a_row(select):
            continue
        items = [source.this for source in sources(select)]
        known = [known_table(study, item) for item in items]
        events = [name for name in known if name not in (None, study.name)]
        if events and _counts_persons(select, study):
            found[""] = None
        elif events:
            found |= dict.fromkeys(str(name) for name in events)
        elif any(
            isinstance(item, exp.Table) and item.name.casefold() not in made for item in items
        ):
            found[""] = None
    if len(found) > 1:
        shown = ", ".join(name or study.name for name in found)
        raise wrong(
            tree,
            Reason.JOIN,
            f"rows of several tables in one statement, {shown}; a statement sums the rows of one:"
            f" ask about the others with {_like_this(study)}, with (SELECT COUNT(*) ...) in its"
            f" place, or in a statement of their own; COUNT(DISTINCT {study.unit}) counts persons"
            " over all",
        )
    return next(iter(found), "")


def _like_this(study: Study, table: str | None = None) -> str:
    """How somebody who has events is asked for: words that run where patients are called p."""
    table = table or study.tables[0].name
    return (
        f"EXISTS (SELECT 1 FROM {table} e WHERE e.{unit_of(study, table)} ="  # noqa: S608 - said
        f" p.{study.unit}) and FROM {study.name} p"
    )


def _is_of_a_row(select: Node) -> bool:
    """Whether a SELECT stands inside a row expression: EXISTS, IN or a scalar subquery."""
    around = select.parent
    if isinstance(around, exp.Exists | exp.In):
        return True
    outer = around.parent if isinstance(around, exp.Subquery) else None
    whole = exp.From | exp.Join | exp.CTE | exp.Subquery | exp.Union
    if outer is not None and not isinstance(outer, whole):
        return True
    inside = select.find_ancestor(exp.Select)
    return inside is not None and _is_of_a_row(inside)


def _counts_persons(select: Node, study: Study) -> bool:
    """Whether nothing is asked of the events but how many persons have one."""
    asked = [
        found
        for part in (*select.expressions, select.args.get("having"), select.args.get("order"))
        if part is not None
        for found in part.find_all(exp.AggFunc)
        if found.find_ancestor(exp.Select) is select
    ]
    units = _units(select, study)
    return bool(asked) and all(_is_persons(found, units) for found in asked)


def _units(select: Node, study: Study) -> set[str]:
    """What the person column is called in a SELECT."""
    tables = [known_table(study, source.this) for source in sources(select)]
    found = {unit_of(study, table).casefold() for table in tables if table is not None}
    own = {
        column.name.casefold()
        for event in study.tables
        if event.name in tables
        for column in event.columns
    }
    return found | ({study.unit.casefold()} - own)


def _is_persons(node: Node, units: set[str]) -> bool:
    inner = node.this if isinstance(node, exp.Count) else None
    named = inner.expressions if isinstance(inner, exp.Distinct) else []
    if len(named) != 1 or not isinstance(named[0], exp.Column):
        return False
    return named[0].name.casefold() in units


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
        tree = written_out(tree, self.study)
        selects = [one for one in tree.find_all(exp.Select) if not _is_of_a_row(one)]
        for select in selects:
            if _from_a_table(select):
                self._select(select)
        return tree

    # --- SELECTs of rows ------------------------------------------------------------------------

    def _select(self, select: Node) -> None:
        units = _units(select, self.study)
        names = self._sources(select)
        if names is None:
            return
        scope = _Names(self.study, self.relation, names)
        if isinstance(self.schema, Study) and set(names.values()) != {self.study.name}:
            self._persons_with(select, scope)
            return
        self._parts(select, scope)
        for count in list(select.find_all(exp.Count)):
            if isinstance(self.schema, Study) and _is_persons(count, units):
                count.replace(exp.Count(this=exp.Star()))
            elif isinstance(count.this, exp.Distinct) and _is_persons(count, units):
                raise wrong(
                    count,
                    Reason.DISTINCT,
                    "persons beside other sums over events; ask for COUNT(DISTINCT"
                    f" {self.study.unit}) in a statement of its own, which costs one unit",
                )

    def _sources(self, select: Node) -> dict[str, str] | None:
        """The study's tables that a SELECT names, by alias; None where it names none."""
        found = self._named_tables(select)
        if found is None:
            return None
        if isinstance(self.schema, Study) and _several(found, self.study):
            one_table(select, self.study, found)
            found = self._named_tables(select) or {}
        start: Node = select.args["from_"]
        if _several(found, self.study):
            raise wrong(start, Reason.JOIN, _MANY.format(like=_like_this(self.study)))
        kept = [join for join in select.args.get("joins") or [] if self._known(join.this) is None]
        start.set("this", exp.Table(this=exp.Identifier(this=self.relation)))
        select.set("joins", kept)
        where = select.args.get("where")
        if where is not None:
            scope = _Names(self.study, self.relation, found)
            set_where(select, [one for one in conjuncts(where.this) if not scope.is_there(one)])
        return found

    def _named_tables(self, select: Node) -> dict[str, str] | None:
        found: dict[str, str] = {}
        for place, source in enumerate(sources(select)):
            table = self._known(source.this)
            if table is None:
                if place == 0:
                    return None
                continue
            alias = (source.this.alias or source.this.name).casefold()
            if alias in found or (table == self.study.name and table in found.values()):
                column = self.study.columns[0].name
                raise wrong(source.this, Reason.JOIN, _TWICE.format(table=table, column=column))
            if place:
                _check_join(source, self.study, {**found, alias: table})
            found[alias] = table
        return found

    def _known(self, table: object) -> str | None:
        return known_table(self.study, table)

    def _persons_with(self, select: Node, scope: _Names) -> None:
        """COUNT(DISTINCT person) over events: the persons who have such an event."""
        (table,) = (name for name in scope.tables.values() if name != self.study.name)
        where = select.args.get("where")
        inner = StudyRewriter(self.study.relation(table), self.values)
        names = _Names(self.study, table, scope.tables)
        parts = conjuncts(None if where is None else where.this)
        having = [self._having(parts, inner, names, table)]
        select.set("where", exp.Where(this=having[0]))
        for count in list(select.find_all(exp.Count)):
            if count.find_ancestor(exp.Select) is not select:
                continue
            count.set("this", exp.Star())
            if isinstance(count.parent, exp.Filter):
                tests = conjuncts(count.parent.expression.this)
                having.append(self._having([*parts, *tests], inner, names, table))
                count.parent.set("expression", exp.Where(this=having[-1]))
        own = {column.name.casefold() for column in self.study.table(table).columns}
        for column in select.find_all(exp.Column):
            if any(column is made for made in having):
                continue
            said, there = column.name.casefold(), scope.tables.get(column.table.casefold())
            if said in own and there != self.study.name:
                raise wrong(
                    column,
                    Reason.DISTINCT,
                    f"persons by {column.name:.60}, a column of {table}: a person may be in many"
                    " groups; count persons with COUNT(*) FILTER (WHERE EXISTS (...)), a condition"
                    f" on {column.name:.60} inside, of {self.study.name}",
                )
            scope.place(column)

    def _having(
        self, parts: Sequence[Node], inner: StudyRewriter, names: _Names, table: str
    ) -> Node:
        """The persons with an event where all conditions hold."""
        rows: Expression = canonical.TRUE
        whole = all_of([part.copy() for part in parts])
        if whole is not None:
            rows = inner.condition(whole, names)
        return self._named(PersonValue("exists", table, rows))

    def _parts(self, select: Node, scope: _Names) -> None:
        """Every subquery of a row becomes a column, every column the name it has in the table."""
        while own := [
            part
            for part in select.find_all(exp.Select)
            if part.find_ancestor(exp.Select) is select and _is_of_a_row(part)
        ]:
            self._subquery(own[0], scope)  # what it becomes may hold others
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
        whether = isinstance(around, exp.Exists | exp.In)
        _check_row_select(select, whether)
        if whether and self._of_persons(select, around, outer):
            return
        names = self._inner_names(select, outer, whether)
        table = self.study.table(names.relation)
        where = select.args.get("where")
        parts = [
            part
            for part in conjuncts(None if where is None else where.this)
            if not names.is_there(part)
        ]
        linked = [part for part in parts if names.is_link(part)]
        asked_in = isinstance(around, exp.In)
        if asked_in and not linked:
            listed = select.expressions
            if len(listed) != 1 or not names.is_person(listed[0]):
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
        rest = [part for part in parts if not any(part is one for one in linked)]
        across = [part for part in rest if names.outside(part)]
        own = [inner.condition(part, names) for part in rest if not any(part is x for x in across)]
        rows = own[0] if len(own) == 1 else operation("and", *own) if own else canonical.TRUE
        if across:
            self._near(select, across, rows, names, outer)
        elif whether:
            assert around is not None  # noqa: S101
            around.replace(self._named(PersonValue("exists", table.name, rows)))
        else:
            self._scalar(select, table, rows, inner, names)

    def _inner_names(self, select: Node, outer: _Names, whether: bool) -> _Names:
        """The tables of a SELECT about a person, once it is one of a single event table."""
        for source in sources(select):
            if self._known(source.this) is None:
                if isinstance(source.this, exp.Table):
                    self._no_table(source.this)
                raise wrong(select, Reason.JOIN, _ONE_TABLE)
        found = self._named_tables(select) or {}
        if _several(found, self.study):
            if not whether:
                raise wrong(select, Reason.JOIN, _ONE_TABLE)
            one_table(select, self.study, found)
        kept = self._named_tables(select) or {}
        events = [table for table in kept.values() if table != self.study.name]
        if not events:
            raise wrong(
                select,
                Reason.JOIN,
                f"a subquery over {self.study.name}, which has one row for each person; use its"
                " columns",
            )
        # the person column of a table that became EXISTS is that of the table that stays
        for column in select.find_all(exp.Column):
            said = column.table.casefold()
            if said in found and said not in kept and column.find_ancestor(exp.Select) is select:
                column.set("table", exp.to_identifier(next(iter(kept))))
                column.set("this", exp.to_identifier(unit_of(self.study, events[0])))
        return _Names(self.study, events[0], kept, outer)

    def _of_persons(self, select: Node, around: Node | None, outer: _Names) -> bool:
        """Write x IN (SELECT person FROM patients WHERE ...), about the same person, as its
        conditions. Return whether it is such a SELECT."""
        found = self._named_tables(select) or {}
        if len(sources(select)) != 1 or list(found.values()) != [self.study.name]:
            return False
        assert around is not None  # noqa: S101
        [alias] = found
        names = _Names(self.study, self.study.name, found, outer)
        where = select.args.get("where")
        parts = conjuncts(None if where is None else where.this)
        rest = [part for part in parts if not names.is_link(part)]
        same = len(rest) < len(parts)
        if isinstance(around, exp.In) and not same:
            listed = [item.unalias() for item in select.expressions]
            compared = bare(around.this)
            same = len(listed) == 1 and names.is_person(listed[0]) and outer.is_person(compared)
        if not same or outer.tables.get(alias, self.study.name) != self.study.name:
            return False
        for column in (one for part in rest for one in part.find_all(exp.Column)):
            if not column.table and column.find_ancestor(exp.Select) is select:
                column.set("table", exp.to_identifier(alias))
        outer.tables[alias] = self.study.name
        around.replace(is_true(all_of([part.copy() for part in rest]) or exp.true()))
        return True

    def _no_table(self, table: Node) -> NoReturn:
        there = ", ".join(self.study.names)
        said = f"no table {table.name!r:.60}; there are {there}"
        raise wrong(table, Reason.NO_TABLE, said, table=self.study.name)

    # --- rows of two tables of one person ---------------------------------------------------------

    def _near(
        self,
        select: Node,
        across: Sequence[Node],
        rows: Expression,
        names: _Names,
        outer: _Names,
    ) -> None:
        """Whether a row of the person is in a range that the row outside gives, or how near."""
        around = select.parent
        assert around is not None  # noqa: S101
        if isinstance(around, exp.Subquery) and isinstance(around.parent, exp.In | exp.Exists):
            around = around.parent
            assert around is not None  # noqa: S101
        column, ends = ranged(across, names)
        inner = StudyRewriter(self.study.relation(names.relation), self.values)
        x = inner.value(column, names)
        upper = [end for end in ends if end.upper]
        lower = [end for end in ends if not end.upper]
        if len(upper) > 1 or len(lower) > 1:
            raise wrong(select, Reason.JOIN, ACROSS)
        kind, end = ("latest", upper[0]) if upper else ("earliest", lower[0])
        limit = self.value(end.node, outer)
        made = PersonValue(kind, names.relation, rows, x, limit=limit, strict=end.strict)
        if isinstance(around, exp.Exists | exp.In):
            found = self._named(made)
            parts: list[Node] = [exp.Not(this=exp.Is(this=found, expression=exp.Null()))]
            if upper and lower:
                least, sign = lower[0].node, exp.GT if lower[0].strict else exp.GTE
                parts.append(exp.Not(this=exp.Is(this=exp.paren(least), expression=exp.Null())))
                parts.append(sign(this=found.copy(), expression=exp.paren(least)))
            around.replace(exp.paren(exp.and_(*parts)))
            return
        item = bare(select.expressions[0].unalias())
        wanted = exp.Max if kind == "latest" else exp.Min
        of = inner.value(item.this, names) if isinstance(item, wanted) else None
        same = isinstance(of, Column) and isinstance(x, Column) and of.name == x.name
        if not same or len(ends) > 1:
            raise wrong(select, Reason.JOIN, ACROSS)
        around.replace(self._named(made))

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
                around.replace(self._different(item, table, rows, inner, names))
                return
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

    def _different(
        self, item: Node, table: EventTable, rows: Expression, inner: StudyRewriter, names: _Names
    ) -> Node:
        """How many of its declared values a column has in the person's rows."""
        named = item.this.expressions
        column = inner.value(named[0], names) if len(named) == 1 else None
        held = {one.name: one for one in table.columns}
        declared = held.get(column.name) if isinstance(column, Column) else None
        values = declared.values if isinstance(declared, Category) else (True, False)
        if not isinstance(declared, Category | Flag) or not values or len(values) > MOST_DIFFERENT:
            raise wrong(
                item,
                Reason.DISTINCT,
                f"COUNT(DISTINCT ...) of a person's rows, of anything but a Flag or a Category of"
                f" up to {MOST_DIFFERENT} declared values of {table.name}",
            )
        made: Node | None = None
        for value in values:
            has = operation("eq", Column(declared.name), Literal(value))
            found = operation("and", rows, has) if rows is not canonical.TRUE else has
            there = exp.Case(
                ifs=[
                    exp.If(
                        this=self._named(PersonValue("exists", table.name, found)),
                        true=exp.Literal.number(1),
                    )
                ],
                default=exp.Literal.number(0),
            )
            made = there if made is None else exp.Add(this=made, expression=there)
        assert made is not None  # noqa: S101
        return exp.paren(made)

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
    "{table} twice: persons are not joined with each other; count them by what they share, as in"
    " SELECT {column}, COUNT(*) FROM {table} GROUP BY {column}, or compare values of one person"
)
_MANY = (
    "a join of two event tables: each row of one would meet many of the other; ask about one, and"
    " for the other write {like}, or (SELECT COUNT(*) ...) in its place"
)
_ONE_TABLE = "a subquery of a row reads one event table, with WHERE alone"
_OTHER_KEY = "a key that is not the person; tables of a study are joined by {person} alone"


def _check_row_select(select: Node, whether: bool) -> None:
    """Refuse what a SELECT about a person cannot have; `whether`: only that it has rows counts."""
    if not isinstance(select.args.get("from_"), exp.From):
        raise wrong(select, Reason.JOIN, _ONE_TABLE)
    for name in ("group", "having", "offset", "with_", "qualify"):
        if select.args.get(name):
            raise wrong(select, Reason.JOIN, f"{name.upper().strip('_')} in it: {_ONE_TABLE}")
    distinct, limit = select.args.get("distinct"), select.args.get("limit")
    if distinct is not None and not whether:
        raise wrong(select, Reason.JOIN, f"DISTINCT in it: {_ONE_TABLE}")
    if whether and limit is not None and _whole(limit) < 1:
        raise wrong(limit, Reason.WRONG_FORM, "LIMIT 0 in a subquery, which is never true")
    if whether and any(item.find(exp.AggFunc) for item in select.expressions):
        raise wrong(
            select,
            Reason.WRONG_FORM,
            "an aggregate without GROUP BY has a row for everybody, so this is always true; write"
            " SELECT 1 in it, or compare (SELECT COUNT(*) ...)",
        )


def _several(tables: Mapping[str, str], study: Study) -> bool:
    return sum(table != study.name for table in tables.values()) > 1


def _whole(limit: Node) -> int:
    """How many rows LIMIT or FETCH lets through; 1 where it says no number."""
    said = limit.args.get("expression") or limit.args.get("count")
    text = "" if said is None else said.name
    return int(text) if text.isdigit() else 1


def _from_a_table(select: Node) -> bool:
    start = select.args.get("from_")
    return start is not None and isinstance(start.this, exp.Table)


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
    event = next((table for table in tables.values() if table != study.name), None)
    if side or kind not in ("", "INNER"):
        raise wrong(
            join,
            Reason.JOIN,
            f"{f'{side} {kind}'.strip()} JOIN in a study: a row for each person and event,"
            " NULLs where there is none; JOIN keeps events with their person, and of persons ask"
            f" {_like_this(study, event)}, or (SELECT COUNT(*) ...) in its place",
        )
    names = _Names(study, study.name, dict(tables))
    using, on = join.args.get("using"), join.args.get("on")
    units = [f"{alias}.{names.unit(table)}" for alias, table in tables.items()]
    if using and len(using) == 1:
        said = {names.unit(table).casefold() for table in tables.values()}
        if said == {using[0].name.casefold()}:
            return
    elif on is not None and names.is_link(bare(on)):
        return
    raise wrong(
        join,
        Reason.JOIN,
        "a join that is not by the person; tables of a study are joined ON"
        f" {' = '.join(units[-2:])}",
    )


@dataclass(frozen=True, slots=True)
class _Names:
    """What the names of a SELECT stand for: its tables by alias, and those around it."""

    study: Study
    relation: str
    tables: dict[str, str]
    outer: _Names | None = None

    def unit(self, table: str) -> str:
        """The person column of a table."""
        return unit_of(self.study, table)

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
            found = []
            for table in self.tables.values():
                listed = self.study if table == self.study.name else self.study.table(table)
                held = {one.name.casefold() for one in listed.columns}
                if name in held:
                    found.append(table)
                elif name == self.unit(table).casefold():
                    return table, self
            if len(found) > 1:
                first = next(iter(self.tables))
                raise wrong(
                    column,
                    Reason.AMBIGUOUS,
                    f"{column.name!r:.60} is in {' and '.join(found)}; write"
                    f" {first}.{column.name:.60}",
                )
            if found:
                return found[0], self
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
        one, other = bare(node.this), bare(node.expression)
        if not isinstance(one, exp.Column) or not isinstance(other, exp.Column):
            return False
        if not self.is_person(one) or not self.is_person(other):
            return False
        found = [self.table_of(one), self.table_of(other)]
        apart = found[0] != found[1] or one.table.casefold() != other.table.casefold()
        return apart and any(place is not None and place[1] is self for place in found)

    def is_there(self, node: Node) -> bool:
        """Whether a condition says that a row has a person, as every row that is read has."""
        inner = bare(node.this) if isinstance(node, exp.Not) else None
        if not isinstance(inner, exp.Is) or not isinstance(inner.expression, exp.Null):
            return False
        return self.is_person(bare(inner.this))

    def outside(self, node: Node) -> bool:
        """Whether a condition reads a row of an event table outside."""
        if node.find(exp.Select) is not None:
            return False
        for column in node.find_all(exp.Column):
            found = self.table_of(column)
            if found is not None and found[1] is not self and found[0] != self.study.name:
                return True
        return False

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
                f"{column.name:.60} is of a row of {table} outside, {ACROSS}",
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
