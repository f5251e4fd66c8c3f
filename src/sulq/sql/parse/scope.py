"""FROM: the table, CTEs and subqueries that compute rows, and joins to public lookup tables.

Every name ends as an expression over the declared columns; there is no other table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, TypeAlias

from sqlglot import exp

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.query.expressions import Literal, as_expression
from sulq.kernel.schema.columns import Category, Flag, Schema
from sulq.sql.parse.grammar import Node, check_options, outside, refused, wrong

MOST_PARTS = 5_000
"""Of a statement once names are filled in."""
LIKE_THIS = "lookups={'regions': {'key': ['Oslo', 'Paris'], 'name': ['North', 'South']}}"


@dataclass(frozen=True, slots=True)
class Lookup:
    """Columns of equal length."""

    name: str
    columns: Mapping[str, tuple[object, ...]]

    def by(self, key: str) -> dict[object, int]:
        """The line of each value of a column; every value once, else a join would double rows."""
        listed = self.columns[key]
        found = {value: place for place, value in enumerate(listed) if value is not None}
        if len(found) != sum(value is not None for value in listed):
            raise InvalidQuery(
                f"{self.name}.{key} holds a value twice: rows would count twice", reason=Reason.JOIN
            )
        return found


def read_lookups(given: Mapping[str, Any] | None) -> dict[str, Lookup]:
    """Lookups as the caller passes them, by name."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidQuery(f"lookups must be tables by name: {LIKE_THIS}", reason=Reason.JOIN)
    return {str(name).casefold(): _lookup(str(name), table) for name, table in given.items()}


def _lookup(name: str, table: Any) -> Lookup:
    if not isinstance(table, Mapping) or not table:
        raise InvalidQuery(
            f"the lookup {name!r:.60} must be columns by name: {LIKE_THIS}", reason=Reason.JOIN
        )
    columns: dict[str, tuple[object, ...]] = {}
    for label, values in table.items():
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise InvalidQuery(
                f"{name}.{label} must be a list of values: {LIKE_THIS}", reason=Reason.JOIN
            )
        columns[str(label).casefold()] = tuple(_plain_value(value) for value in values)
    if len({len(values) for values in columns.values()}) != 1:
        raise InvalidQuery(
            f"the columns of the lookup {name!r:.60} differ in length", reason=Reason.JOIN
        )
    return Lookup(name, columns)


def _plain_value(value: object) -> object:
    read = as_expression(value)
    if not isinstance(read, Literal):
        raise InvalidQuery(
            f"a lookup holds texts, numbers and NULLs: {LIKE_THIS}", reason=Reason.JOIN
        )
    return read.value


def constant(value: object) -> Node:
    """A public value as a node."""
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, str):
        return exp.Literal(this=value, is_string=True)
    if isinstance(value, int | Fraction):
        number = Fraction(value)
        whole = exp.Literal(this=str(abs(number.numerator)), is_string=False)
        size: Node = whole
        if number.denominator != 1:
            under = exp.Literal(this=str(number.denominator), is_string=False)
            size = exp.Div(this=whole, expression=under)
        return exp.Neg(this=size) if number < 0 else size
    raise InvalidQuery(f"a lookup holds texts, numbers and NULLs: {LIKE_THIS}", reason=Reason.JOIN)


def keys_in(column: Node, keys: Sequence[object]) -> Node:
    """column IN (keys)."""
    if not keys:
        return exp.Boolean(this=False)
    return exp.In(this=column.copy(), expressions=[constant(key) for key in keys])


def label_tree(column: Node, pairs: Sequence[tuple[object, object]], total: bool) -> Node:
    """CASE that gives every key its label; halving keeps it shallow.

    All else is NULL, unless it is known that there is nothing else (`total`).
    """
    by_label: dict[tuple[type, object], list[object]] = {}
    for key, label in pairs:
        by_label.setdefault((type(label), label), []).append(key)
    return _halved(column, [(label, keys) for (_, label), keys in by_label.items()], total)


def _halved(column: Node, labelled: list[tuple[object, list[object]]], total: bool) -> Node:
    if not labelled:
        return exp.Null()
    if len(labelled) == 1:
        label, keys = labelled[0]
        if total:
            return constant(label)
        return _case(keys_in(column, keys), constant(label), exp.Null())
    middle = len(labelled) // 2
    left = [key for _, keys in labelled[:middle] for key in keys]
    return _case(
        keys_in(column, left),
        _halved(column, labelled[:middle], True),
        _halved(column, labelled[middle:], total),
    )


def _case(condition: Node, then: Node, otherwise: Node) -> Node:
    return exp.Case(ifs=[exp.If(this=condition, true=then)], default=otherwise)


Definition: TypeAlias = Callable[[], Node]
ROWS_ONLY = "a subquery or CTE may only filter and compute rows"


@dataclass(frozen=True, slots=True)
class FromItem:
    """Something with columns that FROM names; a definition builds the column's expression."""

    name: str
    columns: Mapping[str, Definition]
    hidden: frozenset[str] = frozenset()  # joined USING: found only with the name in front


@dataclass(frozen=True, slots=True)
class Scope:
    """The sources of one SELECT and the conditions that its rows have met so far."""

    sources: tuple[FromItem, ...]
    rows: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class KnownTables:
    """What FROM may name: the one table, lookups, and CTEs defined so far."""

    schema: Schema
    table: str | None
    lookups: Mapping[str, Lookup]
    ctes: Mapping[str, Scope] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    """Columns that subqueries of a study became, and their definitions."""

    @classmethod
    def of(
        cls, schema: Schema, table: str | None, lookups: Mapping[str, Any] | None
    ) -> KnownTables:
        return cls(schema, table, read_lookups(lookups))


def scope_of(select: Node, tables: KnownTables) -> Scope:
    """What the names in a SELECT stand for."""
    tables = _with_ctes(select, tables)
    start = select.args.get("from_")
    if start is None:
        said = "a SELECT without FROM asks nothing; write SELECT ... FROM the table"
        raise wrong(select, Reason.WRONG_FORM, said)
    check_options(start)
    scope = _source(start.this, tables)
    for join in select.args.get("joins") or ():
        scope = _joined(scope, join, tables)
    fill_aliases(select, lambda column: find(column, scope) is not None)
    where = select.args.get("where")
    if where is not None:
        check_options(where)
        scope = replace(scope, rows=(*scope.rows, resolved(where.this, scope)))
    return scope


def fill_aliases(select: Node, known: Callable[[exp.Column], bool]) -> None:
    """Columns of the SELECT list that are named further right, or in WHERE, filled in there.

    A column of the table goes before an alias of the same name.
    """
    made: dict[str, Node] = {}
    size = 0
    where = select.args.get("where")
    for item in [*select.expressions, *([] if where is None else [where])]:
        for column in list(item.find_all(exp.Column)) if made else ():
            meaning = None if column.table else made.get(column.name.casefold())
            if meaning is None or column.find_ancestor(exp.Select) is not select or known(column):
                continue
            if item is where and _is_of_groups(meaning):
                continue
            size += sum(1 for _ in meaning.walk())
            if size > MOST_PARTS:
                raise _too_many_parts()
            column.replace(exp.Paren(this=meaning.copy()))
        if isinstance(item, exp.Alias):
            made.setdefault(item.alias.casefold(), item.this)


def _is_of_groups(node: Node) -> bool:
    return node.find(exp.AggFunc, exp.Window, exp.Query) is not None


def _too_many_parts() -> InvalidQuery:
    return InvalidQuery(
        f"a statement may have {MOST_PARTS} parts once names are filled in",
        reason=Reason.TOO_LARGE,
    )


def _with_ctes(select: Node, tables: KnownTables) -> KnownTables:
    given = select.args.get("with_")
    if given is None:
        return tables
    check_options(given)
    for cte in given.expressions:
        check_options(cte)
        inner = _inner(cte.this, _alias(cte), tables)
        tables = replace(tables, ctes={**tables.ctes, _alias(cte): inner})
    return tables


def _alias(node: Node) -> str:
    alias = node.args.get("alias")
    if alias is None:
        return ""
    check_options(alias)
    return str(alias.this.this).casefold() if alias.this is not None else ""


def _source(node: Node, tables: KnownTables) -> Scope:
    if isinstance(node, exp.Subquery):
        check_options(node)
        return _inner(node.this, _alias(node), tables)
    if not isinstance(node, exp.Table):
        raise outside(node)
    check_options(node)
    name = _table_name(node)
    alias = _alias(node) or name
    if name in tables.ctes:
        made = tables.ctes[name]
        return replace(made, sources=tuple(replace(s, name=alias) for s in made.sources))
    if name in tables.lookups:
        raise wrong(node, Reason.JOIN, f"{name} is a public lookup; JOIN it to the table")
    if tables.table is not None and name != tables.table.casefold():
        said = f"no table {name!r:.60}; there is {tables.table!r:.60}"
        raise wrong(node, Reason.NO_TABLE, said, table=tables.table)
    columns = {c.name.casefold(): _base(c.name) for c in tables.schema.columns}
    if tables.schema.unit != "row":  # known by name only: COUNT(DISTINCT person)
        columns[tables.schema.unit.casefold()] = _base(tables.schema.unit)
    columns |= {name: _base(definition) for name, definition in tables.values.items()}
    return Scope((FromItem(alias, columns),))


def _base(name: str) -> Definition:
    return lambda: exp.Column(this=exp.Identifier(this=name, quoted=True))


def _table_name(node: Node) -> str:
    if not isinstance(node.this, exp.Identifier):
        raise outside(node, "a table function", "name the table")
    return str(node.this.this).casefold()


def _inner(select: Node, alias: str, tables: KnownTables) -> Scope:
    """A SELECT that computes rows, as a source of its own."""
    if not isinstance(select, exp.Select):
        raise outside(select)
    for name in ("group", "having", "order", "limit", "offset", "distinct"):
        if select.args.get(name):
            reason = Reason.DISTINCT if name == "distinct" else Reason.AGGREGATE
            raise wrong(select, reason, f"{name.upper()} inside: {ROWS_ONLY}")
    check_options(select)
    scope = scope_of(select, tables)
    columns: dict[str, Definition] = {}
    for item in select.expressions:
        for name, found in _item(item, scope):
            if name in columns and not isinstance(item, exp.Star):
                raise wrong(item, Reason.AMBIGUOUS, f"two columns called {name!r:.60}; rename one")
            columns.setdefault(name, found)
    return Scope((FromItem(alias, columns),), scope.rows)


def _item(item: Node, scope: Scope) -> list[tuple[str, Definition]]:
    star = item.this if isinstance(item, exp.Column) else item
    if isinstance(star, exp.Star):
        check_options(star)
        wanted = item.table.casefold() if isinstance(item, exp.Column) else ""
        without = {each.name.casefold() for each in star.args.get("except_") or ()}
        return [
            pair
            for source in scope.sources
            if wanted in ("", source.name)
            for pair in source.columns.items()
            if pair[0] not in without
        ]
    if next(item.find_all(exp.AggFunc, exp.Window), None) is not None:
        raise wrong(item, Reason.AGGREGATE, f"an aggregate inside: {ROWS_ONLY}; aggregate outside")
    name, value = item.alias_or_name, item
    if isinstance(item, exp.Alias):
        check_options(item)
        value = item.this
    if not name:
        raise wrong(item, Reason.WRONG_FORM, "a computed column needs a name: write ... AS name")
    found = resolved(value, scope)
    return [(name.casefold(), lambda: found)]


def _joined(scope: Scope, join: Node, tables: KnownTables) -> Scope:
    check_options(join)
    table = join.this
    name = _table_name(table) if isinstance(table, exp.Table) else ""
    if name not in tables.lookups:
        raise wrong(
            join,
            Reason.JOIN,
            "a join; joins go to public lookup tables only:"
            " pass lookups={'regions': {'key': [...], 'name': [...]}}",
        )
    check_options(table)
    side, kind = str(join.args.get("side") or ""), str(join.args.get("kind") or "")
    if side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER"):
        raise wrong(join, Reason.JOIN, f"{side} {kind}".strip() + " JOIN; use JOIN or LEFT JOIN")
    lookup, alias = tables.lookups[name], _alias(table) or name
    key, column, hidden = _join_key(scope, join, lookup, alias)
    declared = _declared(column, tables.schema, join)
    pairs = lookup.by(key)
    kept = {value: at for value, at in pairs.items() if value in declared}
    columns = {
        label: _looked_up(
            column, [(k, lookup.columns[label][at]) for k, at in kept.items()], not side
        )
        for label in lookup.columns
    }
    rows = scope.rows if side else (*scope.rows, keys_in(column, list(kept)))
    return Scope((*scope.sources, FromItem(alias, columns, hidden)), rows)


def _looked_up(column: Node, pairs: Sequence[tuple[object, object]], total: bool) -> Definition:
    return lambda: label_tree(column, pairs, total)


def _join_key(
    scope: Scope, join: Node, lookup: Lookup, alias: str
) -> tuple[str, Node, frozenset[str]]:
    """The lookup's column, ours, and what USING hides."""
    using, on = join.args.get("using"), join.args.get("on")
    if using and len(using) == 1 and isinstance(using[0], exp.Identifier):
        name = str(using[0].this).casefold()
        if name in lookup.columns:
            return name, resolved(exp.Column(this=using[0]), scope), frozenset([name])
    while isinstance(on, exp.Paren):
        on = on.this
    if isinstance(on, exp.EQ):
        for theirs, ours in ((on.this, on.expression), (on.expression, on.this)):
            if not isinstance(theirs, exp.Column) or theirs.name.casefold() not in lookup.columns:
                continue
            if theirs.table.casefold() == alias or (not theirs.table and not _known(theirs, scope)):
                return theirs.name.casefold(), resolved(ours, scope), frozenset()
    raise wrong(
        join,
        Reason.JOIN,
        "a join on anything but one equality; write JOIN regions ON city = regions.key",
    )


def _declared(column: Node, schema: Schema, join: Node) -> frozenset[object]:
    while isinstance(column, exp.Paren):
        column = column.this
    found = schema[column.name] if isinstance(column, exp.Column) else None
    if isinstance(found, Category) and found.values is not None:
        return frozenset(found.values)
    if isinstance(found, Flag):
        return frozenset([False, True])
    raise wrong(
        join, Reason.JOIN, "a lookup is joined on a Category with declared values, or a Flag"
    )


def _known(column: Node, scope: Scope) -> bool:
    return any(column.name.casefold() in source.columns for source in scope.sources)


def names_of(scope: Scope) -> list[str]:
    """The columns there are, as they are declared."""
    made = {n: found() for source in scope.sources for n, found in source.columns.items()}
    return sorted(node.name if type(node) is exp.Column else name for name, node in made.items())


def find(column: exp.Column, scope: Scope) -> Definition | None:
    """What a column's name stands for; None if nothing is called so."""
    check_options(column)
    name, table = column.name.casefold(), column.table.casefold()
    if not isinstance(column.this, exp.Identifier):
        raise refused(column)
    found = [
        source.columns[name]
        for source in scope.sources
        if name in source.columns and (source.name == table if table else name not in source.hidden)
    ]
    if len(found) > 1:
        raise wrong(
            column, Reason.AMBIGUOUS, f"{name!r:.60} is in two tables; write table.{name:.60}"
        )
    return found[0] if found else None


def _plain(column: exp.Column, scope: Scope) -> bool:
    """Whether a column is spelled as it is declared."""
    found = find(column, scope)
    meaning = None if found is None or column.table else found()
    return type(meaning) is exp.Column and meaning.name == column.name


def _unquoted(column: Node, names: Sequence[str]) -> str | None:
    """The declared name with signs, hours-per-week, that was written as a difference of columns."""
    around = column
    while around.parent is not None and isinstance(around.parent, exp.Sub | exp.Div | exp.Add):
        around = around.parent
    written = "".join(around.sql().casefold().split())
    return next(
        (name for name in names if name.casefold() in written and not name.isidentifier()), None
    )


def resolved(node: Node, scope: Scope) -> Node:
    """The node with every column an expression over declared columns; a copy, unless it is that
    already and nothing will be changed in it."""
    parts = list(node.walk())
    for inner in parts:
        if isinstance(inner, exp.Query):
            raise refused(inner)
    if not any(isinstance(part, exp.Case) for part in parts) and all(
        _plain(part, scope) for part in parts if isinstance(part, exp.Column)
    ):
        return node
    node = node.copy()
    size = 0
    for column in list(node.find_all(exp.Column)):
        found = find(column, scope)
        if found is None:
            shown = f"{column.table}.{column.name}" if column.table else column.name
            names = names_of(scope)
            near = get_close_matches(column.name.casefold(), [n.casefold() for n in names], 1)
            meant = next((n for n in names if n.casefold() in near), None)
            hint = "" if meant is None else f"did you mean {meant!r:.80}? "
            if whole := _unquoted(column, names):
                hint = f'a name with such signs is written in double quotes, "{whole}"; '
            raise wrong(
                column,
                Reason.NO_COLUMN,
                f"no column {shown!r:.80}; {hint}there are {', '.join(names)}",
                column=shown,
            )
        meaning = found()
        if type(meaning) is exp.Column:
            column.this.set("this", meaning.name)
            column.set("table", None)
            continue
        meaning = meaning.copy()
        size += sum(1 for _ in meaning.walk())
        if size > MOST_PARTS:
            raise _too_many_parts()
        if column is node:
            return meaning
        column.replace(exp.Paren(this=meaning))
    return node
