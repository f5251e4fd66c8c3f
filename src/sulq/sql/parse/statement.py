"""SQL text to our own Select, through closed tables: what they do not name is refused."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlglot import exp

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.query import canonical
from sulq.kernel.query.expressions import Expression, operation
from sulq.kernel.schema.columns import Schema
from sulq.sql.errors import located, span, wrong
from sulq.sql.parse.case_labels import bare, is_constant, plain_row, shape, value_of
from sulq.sql.parse.constants import Params, filled, folded, marked
from sulq.sql.parse.dialects import named
from sulq.sql.parse.grammar import check_options, outside
from sulq.sql.parse.group_by import BucketRows, read_grouping
from sulq.sql.parse.locate import blamed_rows, closed
from sulq.sql.parse.normalise import normalised
from sulq.sql.parse.outputs import KINDS, Reader
from sulq.sql.parse.released import (
    COLLAPSED,
    counted_values,
    inner_items,
    merged,
    shares_of_totals,
)
from sulq.sql.parse.scope import KnownTables, find, resolved, scope_of
from sulq.sql.parse.select import Grouping, Item, Ordering, Output, Select, aggregates_of
from sulq.sql.parse.tokens import Node, opened, too_deep
from sulq.sql.parse.types import kind_of

MOST_ITEMS = 200


def read_statement(
    text: str,
    schema: Schema,
    table: str | None = None,
    lookups: Mapping[str, Any] | None = None,
    dialect: str | None = None,
    params: Params | None = None,
    today: datetime.date | None = None,
) -> Select:
    """The SELECT that `text` spells on this schema, or `InvalidQuery` with the reason."""
    try:
        return _read(text, schema, table, lookups, named(dialect), params, today or utc_day())
    except RecursionError:
        raise too_deep() from None
    except InvalidQuery as error:
        raise closed(_hinted(error, text, dialect), text) from None


def _hinted(error: InvalidQuery, text: str, dialect: str | None) -> InvalidQuery:
    """Add a hint to "no such column" where the name is an alias of the SELECT list."""
    name = error.about.get("column", "")
    if error.reason is not Reason.NO_COLUMN or not name:
        return error
    if name.casefold() not in {
        item.alias.casefold() for item in opened(text, dialect).tree.expressions
    }:
        return error
    return InvalidQuery(
        f"no column {name!r:.80} in the rows: it names a column of the result, which only HAVING,"
        f" ORDER BY and GROUP BY see; write HAVING {name:.60} ..., or repeat its expression",
        reason=Reason.ALIAS,
        start=error.start,
        end=error.end,
        about=error.about,
    )


def utc_day() -> datetime.date:
    return datetime.datetime.now(datetime.UTC).date()


def said_today(today: datetime.date) -> str:
    return (
        f"CURRENT_DATE is {today}, the day (UTC) on which this was asked; tomorrow it is a new"
        " question"
    )


def table_of(text: str, dialect: str | None = None) -> str | None:
    """The table that a statement is about: the one name in FROM that no CTE defines."""
    tree = opened(text, dialect).tree
    made = {cte.alias.casefold() for cte in tree.find_all(exp.CTE)}
    for start in tree.find_all(exp.From):
        if isinstance(start.this, exp.Table) and start.this.name.casefold() not in made:
            return str(start.this.name)
    return None


def _read(
    text: str,
    schema: Schema,
    table: str | None,
    lookups: Mapping[str, Any] | None,
    dialect: str,
    params: Params | None,
    today: datetime.date,
) -> Select:
    envelope = opened(text, dialect, lambda tokens: marked(tokens, params))
    tree = normalised(filled(envelope.tree, params), dialect)
    tree, dated = folded(tree, today)
    tree = merged(tree)
    if isinstance(tree, exp.Select):
        tree = counted_values(shares_of_totals(tree), schema)
    inside = inner_items(tree)
    if type(tree) is not exp.Select:
        raise outside(tree)
    check_options(tree)
    tables = KnownTables.of(schema, table, lookups)
    scope = scope_of(tree, tables)
    rows = _all_of([plain_row(node, schema) for node in scope.rows])
    raw = _raw_items(tree)
    try:
        known = BucketRows.where(rows, schema)
    except InvalidQuery as error:
        raise blamed_rows(error, scope.rows, schema) from None
    keys: dict[object, int] = {}
    groups: list[Grouping] = []
    reader = Reader(scope, known, keys, groups)
    for node in _group_nodes(tree, inside or raw, reader):
        meant = resolved(node, scope)
        if shape(meant) not in keys:
            keys[shape(meant)] = len(groups)
            groups.append(_grouping(meant, known))
    items = _items(raw, reader, not any(aliasing(node) for _, node in raw))
    named = replace(reader, aliases={item.name.casefold(): item.of for item in items})
    within = _items(inside, reader, False) if inside else items
    around = replace(reader, aliases={item.name.casefold(): item.of for item in within})
    if len(items) < len(raw):  # DP_INTERVAL_LOW(alias) needs the aliases
        items = _items(raw, named, True)
    select = Select(
        items,
        rows,
        tuple(groups),
        _test(tree, "having", around if inside else named),
        _order(tree, named, items, envelope.nulls),
        _whole(tree, "limit"),
        _whole(tree, "offset") or 0,
        envelope.options,
        envelope.target,
        envelope.explain,
        envelope.spans,
        (said_today(today),) if dated else (),
        _test(tree, "qualify", named),
        bool(tree.meta.get(COLLAPSED)),
    )
    if not groups and not any(aggregates_of(item.of) for item in items):
        said = "a SELECT of rows; rows are never shown: ask for COUNT(*), SUM, AVG, ... of them"
        raise wrong(tree.expressions[0], Reason.ROWS_SHOWN, said)
    return select


def _grouping(node: Node, known: BucketRows) -> Grouping:
    try:
        return read_grouping(node, known)
    except InvalidQuery as error:
        raise located(error, span(node)) from None


def _all_of(conditions: list[Expression]) -> Expression:
    if not conditions:
        return canonical.TRUE
    return conditions[0] if len(conditions) == 1 else operation("and", *conditions)


def _raw_items(tree: Node) -> list[tuple[str, Node]]:
    """Names and expressions of the SELECT list."""
    found: list[tuple[str, Node]] = []
    taken: set[str] = set()
    if not 1 <= len(tree.expressions) <= MOST_ITEMS:
        raise InvalidQuery(
            f"a SELECT has 1 to {MOST_ITEMS} columns, got {len(tree.expressions)}",
            reason=Reason.TOO_LARGE,
        )
    for node in tree.expressions:
        if isinstance(node, exp.Star) or (
            isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
        ):
            raise wrong(
                node,
                Reason.ROWS_SHOWN,
                "* would show rows; rows are never shown: ask for COUNT(*), SUM, AVG, ... of them",
            )
        name = node.name if isinstance(node, exp.Column) else ""
        if isinstance(node, exp.Alias):
            check_options(node)
            name, node = node.alias, node.this
        name = name or _spelled(node)
        unique, number = name, 2
        while unique.casefold() in taken:
            unique, number = f"{name}_{number}", number + 1
        taken.add(unique.casefold())
        found.append((unique, node))
    return found


def _spelled(node: Node) -> str:
    """What a column without a name is called."""
    node = bare(node)
    inner = node.this if isinstance(node, exp.Filter | exp.WithinGroup) else node
    if isinstance(inner, exp.Func):
        kind = KINDS.get(type(inner)) or inner.sql_name().lower()
        if isinstance(inner, exp.Anonymous):
            kind = inner.name.lower()
        of = inner.this if isinstance(inner.this, exp.Column) else None
        return f"{kind}_{of.name}" if of is not None else kind
    return "value"


def _items(raw: list[tuple[str, Node]], reader: Reader, strict: bool) -> tuple[Item, ...]:
    """The columns of the result; unless strict, without those that need another's alias."""
    items = []
    for name, node in raw:
        try:
            items.append(Item(name, reader.output(node)))
        except InvalidQuery:
            if strict:
                raise
    return tuple(items)


def aliasing(node: Node) -> bool:
    return next(node.find_all(exp.Anonymous), None) is not None


def _group_nodes(tree: Node, raw: list[tuple[str, Node]], reader: Reader) -> list[Node]:
    """GROUP BY's expressions: by column, by alias, by position, or ALL."""
    given = tree.args.get("group")
    if given is None:
        return []
    check_options(given)
    if given.args.get("all"):
        return [
            node
            for _, node in raw
            if next(node.find_all(exp.AggFunc, exp.Window, exp.Anonymous), None) is None
            and not is_constant(node)
        ]
    return [_group_node(node, raw, reader) for node in given.expressions]


def _group_node(node: Node, raw: list[tuple[str, Node]], reader: Reader) -> Node:
    inner = bare(node)
    if isinstance(inner, exp.Literal) and not inner.is_string:
        inner = raw[_position(inner, raw)][1]
    elif isinstance(inner, exp.Column) and find(inner, reader.scope) is None and not inner.table:
        by_name = {name.casefold(): item for name, item in raw}
        inner = by_name.get(inner.name.casefold(), inner)
    for part in inner.find_all(exp.AggFunc, exp.Window):
        raise wrong(part, Reason.AGGREGATE, "GROUP BY an aggregate; group by columns")
    return inner


def _position(node: Node, raw: list[tuple[str, Node]]) -> int:
    at = value_of(node)
    if not isinstance(at, int) or not 1 <= at <= len(raw):
        raise wrong(node, Reason.WRONG_FORM, f"there is no column number {node.name:.20}")
    return at - 1


def _test(tree: Node, place: str, reader: Reader) -> Output | None:
    """HAVING or QUALIFY: which groups are shown."""
    given = tree.args.get(place)
    if given is None:
        return None
    check_options(given)
    found = reader.output(given.this, aliases_first=True)
    if kind_of(found, reader.groups) not in ("truth", ""):
        raise wrong(
            given,
            Reason.WRONG_FORM,
            f"{place.upper()} wants a test; write for instance COUNT(*) > 100",
        )
    return found


def _order(
    tree: Node, reader: Reader, items: tuple[Item, ...], nulls_stated: bool
) -> tuple[Ordering, ...]:
    given = tree.args.get("order")
    if given is None:
        return ()
    check_options(given)
    found = []
    raw: list[tuple[str, Node]] = [(item.name, given) for item in items]
    for part in given.expressions:
        check_options(part)
        inner = bare(part.this)
        if isinstance(inner, exp.Literal) and not inner.is_string:
            of = items[_position(inner, raw)].of
        else:
            of = reader.output(inner, aliases_first=True)
        down = bool(part.args.get("desc"))
        nulls = nulls_stated and bool(part.args.get("nulls_first"))
        found.append(Ordering(of, down, nulls))
    return tuple(found)


def _whole(tree: Node, name: str) -> int | None:
    given = tree.args.get(name)
    if given is None:
        return None
    check_options(given)
    inner = given.expression
    value = value_of(inner) if is_constant(inner) else None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise wrong(given, Reason.WRONG_FORM, f"{name.upper()} wants a whole number")
    return value
