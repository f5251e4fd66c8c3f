"""SELECT around a grouped SELECT or CTE: post-processing of released groups, as one SELECT.

What the inner SELECT computes from rows is asked; everything around it sees noisy groups only and
is free. Its WHERE becomes a test of groups, its aggregates go over the groups that are left.
"""

from __future__ import annotations

from sqlglot import exp

from sulq.errors import Reason
from sulq.kernel.schema.columns import Category, Schema
from sulq.sql.errors import wrong
from sulq.sql.parse.tokens import Node

INNER, COLLAPSED = "inner", "collapsed"
"""Marks on a merged SELECT: the items of its inner one, and that its result is one row."""

OVER_GROUPS = (exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Count)
CUT = "LIMIT inside, and more around it; put LIMIT, ORDER BY and WHERE in one SELECT"


def merged(tree: Node) -> Node:
    """The statement with every SELECT around a grouped one taken into it."""
    while isinstance(tree, exp.Select):
        inner = _released_source(tree)
        if inner is None:
            return tree
        tree = _merged(tree, *inner)
    return tree


def _released_source(outer: Node) -> tuple[Node, str, list[Node]] | None:
    """The grouped SELECT that FROM names, what it is called, and the CTEs that it does not need."""
    start = outer.args.get("from_")
    source = start.this if isinstance(start, exp.From) else None
    with_ = outer.args.get("with_")
    ctes = [] if with_ is None else list(with_.expressions)
    if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Select):
        found = source.this if _is_released(source.this) else None
        return None if found is None else (found, source.alias, ctes)
    if not isinstance(source, exp.Table):
        return None
    for cte in ctes:
        if cte.alias.casefold() == source.name.casefold() and isinstance(cte.this, exp.Select):
            if not _is_released(cte.this) and not _around_released(cte.this, ctes):
                return None
            rest = [each for each in ctes if each is not cte]
            return cte.this, source.alias or source.name, rest
    return None


def _around_released(select: Node, ctes: list[Node]) -> bool:
    start = select.args.get("from_")
    name = start.this.name.casefold() if isinstance(start, exp.From) else ""
    return any(
        cte.alias.casefold() == name and isinstance(cte.this, exp.Select) and _is_released(cte.this)
        for cte in ctes
    )


def _is_released(select: Node) -> bool:
    """Whether a SELECT gives groups or aggregates, not rows."""
    if select.args.get("group") is not None:
        return True
    start = select.args.get("from_")
    if isinstance(start, exp.From) and isinstance(start.this, exp.Subquery):
        inner = start.this.this
        if isinstance(inner, exp.Select) and _is_released(inner):
            return True
    return any(_aggregates(item) for item in select.expressions)


def _aggregates(node: Node) -> list[Node]:
    """Aggregates of a SELECT's own rows: not those of a window."""
    return [
        each
        for each in node.find_all(exp.AggFunc)
        if not isinstance(each.parent, exp.Window)
        and not (isinstance(each.parent, exp.WithinGroup | exp.Filter))
    ] + list(node.find_all(exp.WithinGroup, exp.Filter))


def _merged(outer: Node, inner: Node, name: str, rest: list[Node]) -> Node:
    if outer.args.get("joins"):
        raise wrong(outer, Reason.JOIN, "a join of results; ask each SELECT by itself")
    inner = merged(_with(inner, rest))
    if outer.args.get("group") is not None:
        raise wrong(
            outer.args["group"],
            Reason.AGGREGATE,
            "GROUP BY of groups; group the rows by all that is wanted, in one SELECT",
        )
    items = _named_items(inner)
    known = {label.casefold(): node for label, node in items}
    collapsed = any(_aggregates(item) for item in outer.expressions)
    made = inner.copy()
    made.set("expressions", _outer_items(outer, items, known, name, collapsed))
    _filtered(made, outer, inner, known, name)
    _ordered(made, outer, inner, known, name)
    made.meta[INNER] = inner.meta.get(INNER) or [(label, node.copy()) for label, node in items]
    if collapsed:
        made.meta[COLLAPSED] = True
    return made


def _with(inner: Node, ctes: list[Node]) -> Node:
    """The inner SELECT with the CTEs that stand before it."""
    if ctes:
        own = inner.args.get("with_")
        listed = [*(each.copy() for each in ctes), *([] if own is None else own.expressions)]
        inner = inner.copy()
        needed = _needed(inner, listed)
        inner.set("with_", exp.With(expressions=needed) if needed else None)
    return inner


def _needed(select: Node, ctes: list[Node]) -> list[Node]:
    """The CTEs that a SELECT names, and those that they name, in their order."""
    wanted = {table.name.casefold() for table in select.find_all(exp.Table)}
    for cte in reversed(ctes):
        if cte.alias.casefold() in wanted:
            wanted |= {table.name.casefold() for table in cte.find_all(exp.Table)}
    return [cte for cte in ctes if cte.alias.casefold() in wanted]


def _named_items(inner: Node) -> list[tuple[str, Node]]:
    found = []
    for item in inner.expressions:
        value = item.this if isinstance(item, exp.Alias) else item
        label = item.alias_or_name or (
            value.sql_name().lower() if isinstance(value, exp.Func) else ""
        )
        found.append((str(label), value))
    return found


def _filled(node: Node, known: dict[str, Node], name: str) -> Node:
    """A part of the outer SELECT with the inner one's columns as what they are."""
    node = node.copy()
    for column in list(node.find_all(exp.Column)):
        if column.table and column.table.casefold() != name.casefold():
            continue
        meant = known.get(column.name.casefold())
        if meant is None:
            said = ", ".join(sorted(known)) or "none"
            raise wrong(
                column,
                Reason.NO_COLUMN,
                f"no column {column.name!r:.60} in the inner SELECT; it has {said}",
            )
        instead = meant.copy() if isinstance(meant, exp.Column) else exp.Paren(this=meant.copy())
        if column is node:
            node = instead
        else:
            column.replace(instead)
    return node


def _outer_items(
    outer: Node, items: list[tuple[str, Node]], known: dict[str, Node], name: str, collapsed: bool
) -> list[Node]:
    found: list[Node] = []
    for item in outer.expressions:
        star = isinstance(item, exp.Star) or (
            isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
        )
        if star:
            found += [_aliased(node.copy(), label) for label, node in items]
            continue
        label = item.alias_or_name
        value = item.this if isinstance(item, exp.Alias) else item
        if collapsed:
            value = _over_groups(value, known, name)
        else:
            value = _filled(value, known, name)
        found.append(_aliased(value, label) if label else value)
    return found


def _aliased(node: Node, label: str) -> Node:
    return exp.Alias(this=node, alias=exp.Identifier(this=label, quoted=True)) if label else node


def _over_groups(value: Node, known: dict[str, Node], name: str) -> Node:
    """AVG(n) around groups: over all of them that are left."""
    value = value.copy()
    own = _aggregates(value)
    for part in own:
        if type(part) not in OVER_GROUPS or isinstance(part.this, exp.Distinct):
            raise wrong(
                part,
                Reason.AGGREGATE,
                "of groups there are SUM, AVG, MIN, MAX and COUNT(*); ask others of the rows",
            )
    inside = {id(column) for part in own for column in part.find_all(exp.Column)}
    for column in value.find_all(exp.Column):
        if id(column) not in inside:
            raise wrong(
                column,
                Reason.UNGROUPED,
                f"{column.name!r:.60} is not inside an aggregate of groups",
            )
    for part in own:
        instead = exp.Window(this=_filled(part, known, name), over="OVER")
        if part is value:
            return instead
        part.replace(instead)
    return value


def _filtered(made: Node, outer: Node, inner: Node, known: dict[str, Node], name: str) -> None:
    tests: dict[str, list[Node]] = {"having": [], "qualify": []}
    windows = any(node.find(exp.Window) is not None for node in known.values())
    for place in tests:
        if (given := inner.args.get(place)) is not None:
            tests[place].append(given.this.copy())
    where = outer.args.get("where")
    if where is not None:
        _check_uncut(inner, where)
        after = windows or bool(tests["qualify"])
        tests["qualify" if after else "having"].append(_filled(where.this, known, name))
        if after and any(item.find(exp.Window) for item in outer.expressions):
            raise wrong(
                where, Reason.AGGREGATE, "a window around a window that WHERE cuts; ask in two"
            )
    if outer.args.get("qualify") is not None:
        tests["qualify"].append(_filled(outer.args["qualify"].this, known, name))
    kinds = {"having": exp.Having, "qualify": exp.Qualify}
    for place, listed in tests.items():
        if listed:
            whole = listed[0]
            for more in listed[1:]:
                whole = exp.And(this=exp.Paren(this=whole), expression=exp.Paren(this=more))
            made.set(place, kinds[place](this=whole))


def _ordered(made: Node, outer: Node, inner: Node, known: dict[str, Node], name: str) -> None:
    order = outer.args.get("order")
    cut = inner.args.get("limit") is not None or inner.args.get("offset") is not None
    if order is not None or outer.args.get("limit") is not None:
        _check_uncut(inner, outer)
    if order is not None:
        aliases = {item.alias.casefold() for item in outer.expressions if item.alias}
        parts = []
        for part in order.expressions:
            inside = part.this
            named = isinstance(inside, exp.Column) and inside.name.casefold() in aliases
            part = part.copy()
            if not named and not isinstance(inside, exp.Literal):
                part.set("this", _filled(inside, known, name))
            parts.append(part)
        made.set("order", exp.Order(expressions=parts))
    elif not cut:
        made.set("order", None)
    for place in ("limit", "offset"):
        given = outer.args.get(place)
        if given is not None:
            made.set(place, given.copy())


def _check_uncut(inner: Node, place: Node) -> None:
    if inner.args.get("limit") is not None or inner.args.get("offset") is not None:
        raise wrong(place, Reason.AGGREGATE, CUT)


def inner_items(tree: Node) -> list[tuple[str, Node]]:
    """The items of the inner SELECT that was taken in; none of a plain one."""
    return list(tree.meta.get(INNER) or ())


# --- one SELECT beside another ------------------------------------------------------------------


def shares_of_totals(tree: Node) -> Node:
    """(SELECT COUNT(*) FROM people) beside aggregates: the total, from the same rows."""
    found = [
        part
        for item in tree.expressions
        for part in item.find_all(exp.Subquery)
        if isinstance(part.this, exp.Select)
    ]
    if not found or tree.args.get("joins") or tree.args.get("with_") is not None:
        return tree
    if not all(_is_total(part.this, tree) for part in found):
        return tree
    if tree.args.get("group") is not None:
        return _over_all_groups(tree, found)
    where = tree.args.get("where")
    own = [
        each
        for item in tree.expressions
        for each in item.find_all(exp.AggFunc)
        if each.find_ancestor(exp.Subquery) is None
    ]
    if not own:
        return tree  # a SELECT of rows
    if isinstance(where, exp.Where):
        for aggregate in own:
            _filter(aggregate, where.this)
    for part in found:
        made, kept = _total(part).copy(), part.this.args.get("where")
        if kept is not None:
            made = exp.Filter(this=made, expression=kept.copy())
        part.replace(exp.Paren(this=made))
    tree.set("where", None)
    return tree


def _total(part: Node) -> Node:
    item = part.this.expressions[0]
    return item.this if isinstance(item, exp.Alias) else item  # type: ignore[no-any-return]


def _over_all_groups(tree: Node, found: list[Node]) -> Node:
    """Beside groups: their total, where the same rows are counted or added, and all are shown."""
    where = tree.args.get("where")
    plain = tree.args.get("having") is None and tree.args.get("qualify") is None
    for part in found:
        if not plain or part.this.args.get("where") != where:
            return tree
        if type(_total(part)) not in (exp.Count, exp.Sum):
            return tree
    for part in found:
        part.replace(
            exp.Paren(this=exp.Window(this=exp.Sum(this=_total(part).copy()), over="OVER"))
        )
    return tree


def _filter(aggregate: Node, where: Node) -> None:
    around = aggregate.parent
    if isinstance(around, exp.Filter) and aggregate.arg_key == "this":
        old = around.expression.this
        both = exp.And(this=exp.Paren(this=old.copy()), expression=exp.Paren(this=where.copy()))
        around.set("expression", exp.Where(this=both))
        return
    aggregate.replace(exp.Filter(this=aggregate.copy(), expression=exp.Where(this=where.copy())))


def _is_total(inner: Node, outer: Node) -> bool:
    """Whether a SELECT is one aggregate of the same table, and nothing else."""
    start, own = inner.args.get("from_"), outer.args.get("from_")
    if not isinstance(start, exp.From) or not isinstance(own, exp.From):
        return False
    same = isinstance(start.this, exp.Table) and isinstance(own.this, exp.Table)
    extra = [name for name, given in inner.args.items() if given and name not in (
        "expressions", "from_", "where")]  # fmt: skip
    if not same or extra or len(inner.expressions) != 1:
        return False
    item = inner.expressions[0]
    value = item.this if isinstance(item, exp.Alias) else item
    return start.this.name.casefold() == own.this.name.casefold() and isinstance(
        value, exp.Count | exp.Sum | exp.Avg | exp.Min | exp.Max
    )


def counted_values(tree: Node, schema: Schema) -> Node:
    """COUNT(DISTINCT city), alone: the groups of city that surely hold a row."""
    item = tree.expressions[0] if len(tree.expressions) == 1 else None
    value = item.this if isinstance(item, exp.Alias) else item
    if not isinstance(value, exp.Count) or not isinstance(value.this, exp.Distinct):
        return tree
    named = value.this.expressions
    if (
        len(named) != 1
        or not isinstance(named[0], exp.Column)
        or tree.args.get("group") is not None
    ):
        return tree
    if not _is_countable(named[0].name, schema) or tree.args.get("having") is not None:
        return tree
    column = named[0]
    counted = exp.Window(this=exp.ApproxDistinct(this=exp.Count(this=exp.Star())), over="OVER")
    made = tree.copy()
    label = item.alias if isinstance(item, exp.Alias) else "count"
    made.set("expressions", [_aliased(counted, label)])
    made.set("group", exp.Group(expressions=[column.copy()]))
    there = exp.Not(this=exp.Is(this=column.copy(), expression=exp.Null()))
    made.set("having", exp.Having(this=there))
    made.meta[COLLAPSED] = True
    return made


def _is_countable(name: str, schema: Schema) -> bool:
    """Whether all values of a column are public: not persons, and not open text."""
    found = next((c for c in schema.columns if c.name.casefold() == name.casefold()), None)
    is_open = isinstance(found, Category) and found.values is None
    return found is not None and not is_open and name.casefold() != schema.unit.casefold()
