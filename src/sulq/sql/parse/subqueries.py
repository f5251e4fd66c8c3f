"""SELECTs in the WHERE of rows: asked first, each put as a constant or as a list of constants.

A row is never compared with other rows. `age > (SELECT AVG(age) FROM people)` is two statements:
the inner one is asked, and what was released of it stands as a constant in the outer one. So is
`city IN (SELECT city ... LIMIT 3)`, and a join with such a SELECT that only picks groups.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from sqlglot import exp

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.schema.columns import EPOCH, Number, Schema
from sulq.sql.parse.constants import decimal, moment
from sulq.sql.parse.grammar import Node, wrong
from sulq.sql.parse.released import Ctes, is_released, own_ctes
from sulq.sql.parse.scope import Lookup, constant
from sulq.sql.parse.tabulation import evaluated

MOST_FIRST = 8
STANDS = ("middle", "low", "high", "open", "elsewhere")
"""What stands for a constant that is not known yet: places of the column's range, any value, or a
condition on a private column that the statement does not name: nothing decides that one."""
TESTS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)


def asked_first(tree: Node) -> list[Node]:
    """The SELECTs in conditions of rows, outermost ones, in the order in which they stand."""
    found: list[Node] = []
    for node in tree.find_all(exp.Subquery, bfs=False):
        if _is_inside(node, found) or not _judges_rows(node):
            continue
        if node.arg_key == "query" or _test_of(node) is not None:
            found.append(node)
    if len(found) > MOST_FIRST:
        raise InvalidQuery(
            f"at most {MOST_FIRST} SELECTs in conditions of rows", reason=Reason.TOO_LARGE
        )
    return found


def _is_inside(node: Node, found: list[Node]) -> bool:
    at = node.parent
    while at is not None:
        if any(at is each for each in found):
            return True
        at = at.parent
    return False


def _judges_rows(node: Node) -> bool:
    """Whether it stands in WHERE, FILTER or an aggregate of a SELECT of rows."""
    at, inside = node, False
    while at.parent is not None and not isinstance(at.parent, exp.Select):
        at = at.parent
        inside = inside or isinstance(at, exp.Where | exp.AggFunc | exp.CountIf)
    select = at.parent
    if not inside or not isinstance(select, exp.Select):
        return False
    start = select.args.get("from_")
    return isinstance(start, exp.From) and not is_released(start.this, _ctes_at(select))


def _ctes_at(node: Node | None) -> Ctes:
    """The CTEs that a SELECT may name."""
    found: Ctes = ()
    while node is not None:
        if isinstance(node, exp.Query) and node.args.get("with_") is not None:
            found = (*own_ctes(node), *found)
        node = node.parent
    return found


def _test_of(node: Node) -> Node | None:
    """The comparison that a scalar SELECT is a part of."""
    at = node.parent
    while isinstance(at, exp.Paren | exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Neg | exp.Cast):
        at = at.parent
    return at if isinstance(at, TESTS) else None


def inner_of(tree: Node, at: int) -> Node:
    """One of the SELECTs that are asked first, as a statement of its own."""
    node = asked_first(tree)[at]
    ctes = [cte.copy() for cte in _ctes_at(node.parent)]
    select = node.this.copy()
    if ctes and select.args.get("with_") is None:
        wanted = {table.name.casefold() for table in select.find_all(exp.Table)}
        kept: list[Node] = []
        for cte in reversed(ctes):
            if cte.alias.casefold() in wanted:
                kept.insert(0, cte)
                wanted |= {table.name.casefold() for table in cte.find_all(exp.Table)}
        if kept:
            select.set("with_", exp.With(expressions=kept))
    return select  # type: ignore[no-any-return]


def spelled(node: Node) -> str:
    """A SELECT as it is named in a reply."""
    return str(node.this.sql(dialect="postgres"))[:200]


def filled_in(tree: Node, values: Sequence[Any]) -> Node:
    """The tree with what was released in place of the SELECTs; a list is for IN."""
    for node, value in zip(asked_first(tree), values, strict=True):
        if node.arg_key == "query":
            around = node.parent
            assert around is not None  # noqa: S101
            listed = [as_node(each) for each in value]
            if listed:
                around.set("query", None)
                around.set("expressions", listed)
            else:
                around.replace(exp.Boolean(this=False))
        else:
            node.replace(as_node(value))
    return tree


def as_node(value: Any) -> Node:
    """A released value as a constant."""
    if isinstance(value, datetime.date):
        return moment(value)
    if isinstance(value, float):
        value = Fraction(repr(value))
    if isinstance(value, Fraction):
        return decimal(value)
    return constant(value)


def stood_in(tree: Node, schema: Schema, stand: str) -> Node:
    """The tree with something in place of every SELECT, to tell what it can cost at most.

    A condition that a constant makes narrower makes no question dearer; "open" narrows nothing.
    Where another condition decides an open one, it would cost nothing: "elsewhere" cannot be
    decided, each test by a column of its own as far as there are such.
    """
    others = _unnamed(tree, schema) if stand == "elsewhere" else []
    for place, node in enumerate(asked_first(tree)):
        test = node.parent if node.arg_key == "query" else _test_of(node)
        if others and test is not None and test.find_ancestor(exp.Select) is not None:
            test.replace(_there(exp.column(others[place % len(others)], quoted=True)))
            continue
        if node.arg_key == "query":
            listed = node.parent
            assert listed is not None  # noqa: S101
            listed.replace(_there(listed.this))
            continue
        test = _test_of(node)
        if test is None or test.find_ancestor(exp.Select) is None:
            continue
        sides = [side for side in test.args.values() if isinstance(side, exp.Expr)]
        free = [side for side in sides if side.find(exp.Subquery) is None]
        value = _place(free[0], schema, stand) if free else None
        if not free or value is None:
            test.replace(_there(free[0]) if free else exp.Boolean(this=True))
            continue
        for side in sides:
            if side.find(exp.Subquery) is not None:
                side.replace(as_node(value))
    return tree


def _unnamed(tree: Node, schema: Schema) -> list[str]:
    """The private columns of a table that a statement does not name."""
    named = {column.name.casefold() for column in tree.find_all(exp.Column)}
    return [
        column.name
        for column in schema.columns
        if not column.public and column.name.casefold() not in named
    ]


def _there(node: Node) -> Node:
    return exp.Not(this=exp.Paren(this=exp.Is(this=node.copy(), expression=exp.Null())))


def _place(node: Node, schema: Schema, stand: str) -> Any:
    """A place in the range of a column."""
    while isinstance(node, exp.Paren):
        node = node.this
    found = [
        column
        for column in schema.columns
        if isinstance(node, exp.Column) and column.name.casefold() == node.name.casefold()
    ]
    if stand == "open" or not found or not isinstance(found[0], Number):
        return None
    low, high = (Fraction(end) for end in found[0].range)
    value = {"low": low, "high": high, "middle": (low + high) / 2}[stand]
    if found[0].kind == "number":
        return value
    seconds = value * (86_400 if found[0].kind == "date" else 1)
    at = EPOCH + datetime.timedelta(seconds=int(seconds))
    return at if found[0].kind == "datetime" else at.date()


# --- lists from public tables --------------------------------------------------------------------


def from_lookups(tree: Node, lookups: Mapping[str, Lookup]) -> Node:
    """IN (SELECT key FROM regions WHERE half = 'N'), of a table that the caller passed."""
    for test in list(tree.find_all(exp.In)):
        query = test.args.get("query")
        select = query.this if isinstance(query, exp.Subquery) else None
        start = None if select is None else select.args.get("from_")
        if select is None or start is None or not isinstance(start.this, exp.Table):
            continue
        lookup = lookups.get(start.this.name.casefold())
        given = {name for name, value in select.args.items() if value}
        plain = given <= {"expressions", "from_", "where", "distinct"}
        if lookup is None or len(select.expressions) != 1 or not plain:
            continue
        found = _list_of(select, lookup)
        if not found:
            test.replace(exp.Boolean(this=False))
            continue
        test.set("query", None)
        test.set("expressions", [as_node(value) for value in found])
    return tree


def _list_of(select: Node, lookup: Lookup) -> list[Any]:
    """The values of the one column of a SELECT from a public table."""
    names = list(lookup.columns)
    for column in select.find_all(exp.Column):
        if column.name.casefold() not in names:
            said = f"no column {column.name!r:.60} in {lookup.name:.60}"
            raise wrong(column, Reason.NO_COLUMN, said)
        column.this.set("this", column.name.casefold())
    where, item = select.args.get("where"), select.expressions[0].unalias()
    rows = [
        dict(zip(names, row, strict=True)) for row in zip(*lookup.columns.values(), strict=True)
    ]
    kept = [row for row in rows if where is None or evaluated(where.this, row) is True]
    found = dict.fromkeys(evaluated(item, row) for row in kept)
    return [value for value in found if value is not None]


# --- joins that only pick ------------------------------------------------------------------------


def without_joins(tree: Node) -> Node:
    """Joins of rows with a released table, as conditions with the SELECT inside.

    JOIN (SELECT city ... LIMIT 3) t ON people.city = t.city picks groups; CROSS JOIN of one row of
    figures gives constants.
    """
    for select in list(tree.find_all(exp.Select)):
        start = select.args.get("from_")
        if not isinstance(start, exp.From) or is_released(start.this, _ctes_at(select)):
            continue
        for join in list(select.args.get("joins") or ()):
            if is_released(join.this, _ctes_at(select)):
                _without_join(select, join)
    return tree


def _without_join(select: Node, join: Node) -> None:
    name = (join.this.alias or join.this.name).casefold()
    side, on = str(join.args.get("side") or ""), join.args.get("on")
    if side or join.args.get("using"):
        return
    if on is None:
        _figures(select, join, name)
        return
    while isinstance(on, exp.Paren):
        on = on.this
    if not isinstance(on, exp.EQ):
        return
    own = _columns_of(join.this, _ctes_at(select))
    ends = [on.this, on.expression]
    keys = [each for each in ends if _is_of(each, name, own)]
    if len(keys) != 1:
        return
    (key,) = keys
    rows = next(each for each in ends if each is not key)
    used = [
        column
        for column in select.find_all(exp.Column)
        if column is not key
        and column.table.casefold() == name
        and column.find_ancestor(exp.Select) is select
    ]
    if used:
        raise wrong(
            join,
            Reason.JOIN,
            "a join of rows with a result picks groups only; its other columns are figures of"
            " groups: join two grouped SELECTs",
        )
    source = join.this.copy()
    inner = exp.Select(expressions=[key.copy()], from_=exp.From(this=source))
    picked = exp.In(this=rows.copy(), query=exp.Subquery(this=inner))
    select.set("joins", [each for each in select.args["joins"] if each is not join])
    _narrow(select, picked)


def _is_of(node: Node, name: str, own: set[str]) -> bool:
    if not isinstance(node, exp.Column):
        return False
    return node.table.casefold() == name or (not node.table and node.name.casefold() in own)


def _columns_of(source: Node, ctes: Ctes) -> set[str]:
    """The names of the columns of a released table."""
    query = source.this if isinstance(source, exp.Subquery) else None
    if query is None:
        query = next((c.this for c in ctes if c.alias.casefold() == source.name.casefold()), None)
    return {item.alias_or_name.casefold() for item in getattr(query, "selects", ())}


def _narrow(select: Node, test: Node) -> None:
    where = select.args.get("where")
    if where is None:
        select.set("where", exp.Where(this=test))
        return
    both = exp.And(this=exp.Paren(this=where.this), expression=test)
    select.set("where", exp.Where(this=both))


def _figures(select: Node, join: Node, name: str) -> None:
    """CROSS JOIN s: each s.m is (SELECT m FROM s)."""
    query = join.this.this if isinstance(join.this, exp.Subquery) else None
    named = {cte.alias.casefold(): cte.this for cte in _ctes_at(select)}
    query = named.get(name) if query is None else query
    if not isinstance(query, exp.Select) or query.args.get("group") is not None:
        return
    own = _columns_of(join.this, _ctes_at(select))
    select.set("joins", [each for each in select.args["joins"] if each is not join])
    for column in list(select.find_all(exp.Column)):
        plain = not column.table and column.name.casefold() in own
        if column.find_ancestor(exp.Select) is select and (
            column.table.casefold() == name or plain
        ):
            bare = exp.Column(this=column.this.copy())
            inner = exp.Select(expressions=[bare], from_=exp.From(this=join.this.copy()))
            column.replace(exp.Subquery(this=inner))
