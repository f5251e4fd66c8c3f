"""PIVOT as conditional aggregates: one column for each value that it names or that is declared."""

from __future__ import annotations

from sqlglot import exp

from sulq.errors import Reason
from sulq.kernel.schema.columns import Category, Flag, Schema
from sulq.sql.parse.grammar import Node, wrong
from sulq.sql.parse.scope import constant

LIKE_THIS = (
    "write SUM(x) FILTER (WHERE city = 'Oslo') for each value, with GROUP BY the other columns"
)


def without_pivots(tree: Node, schema: Schema) -> Node:
    """The statement with grouped SELECTs in place of PIVOT."""
    if isinstance(tree, exp.Pivot):
        return _statement(tree, schema)
    for node in list(tree.find_all(exp.Subquery, exp.Table)):
        pivots = node.args.get("pivots")
        if pivots:
            node.set("pivots", None)
            node.replace(_source(node, pivots, schema))
    return tree


def _statement(pivot: Node, schema: Schema) -> Node:
    """DuckDB's PIVOT people ON sex USING COUNT(*) GROUP BY city."""
    group = pivot.args.get("group")
    keys = [] if group is None else list(group.expressions)
    aggregates = pivot.args.get("using") or [exp.Count(this=exp.Star())]
    if len(pivot.expressions) != 1 or pivot.args.get("unpivot"):
        raise wrong(pivot, Reason.WRONG_FORM, f"PIVOT goes ON one column; {LIKE_THIS}")
    column, values = _values(pivot.expressions[0], schema)
    listed = _columns(column, values, list(aggregates), [])
    return _grouped(exp.From(this=pivot.this), keys, listed)


def _source(source: Node, pivots: list[Node], schema: Schema) -> Node:
    """FROM (SELECT region, sex FROM people) PIVOT (COUNT(sex) FOR sex IN ('F', 'M')) AS p."""
    pivot = pivots[0]
    fields = pivot.args.get("fields") or []
    inner = source.this if isinstance(source, exp.Subquery) else None
    if len(pivots) != 1 or pivot.args.get("unpivot") or len(fields) != 1:
        raise wrong(source, Reason.WRONG_FORM, f"a PIVOT goes FOR one column; {LIKE_THIS}")
    if not isinstance(inner, exp.Select) or any(i.find(exp.Star) for i in inner.expressions):
        raise wrong(
            source,
            Reason.WRONG_FORM,
            f"PIVOT wants a SELECT that names its columns before it; {LIKE_THIS}",
        )
    column, values = _values(fields[0], schema)
    aggregates = list(pivot.expressions)
    used = {column.name.casefold()}
    used |= {c.name.casefold() for each in aggregates for c in each.find_all(exp.Column)}
    names = [item.alias_or_name for item in inner.expressions]
    keys: list[Node] = [
        exp.Column(this=exp.Identifier(this=name, quoted=True))
        for name in names
        if name.casefold() not in used
    ]
    listed = _columns(column, values, aggregates, pivot.args.get("columns") or [])
    alias = pivot.args.get("alias") or source.args.get("alias")
    start = exp.From(this=source.copy())
    return exp.Subquery(this=_grouped(start, keys, listed), alias=alias and alias.copy())


def _grouped(start: Node, keys: list[Node], listed: list[Node]) -> Node:
    group = exp.Group(expressions=[key.copy() for key in keys]) if keys else None
    return exp.Select(expressions=[*keys, *listed], from_=start, group=group)


def _values(field: Node, schema: Schema) -> tuple[Node, list[tuple[Node, str]]]:
    """The column that is spread out, and its values with the names that they give."""
    if isinstance(field, exp.In) and isinstance(field.this, exp.Column):
        return field.this, [_value(each) for each in field.expressions]
    if isinstance(field, exp.Column):
        found = next(
            (c for c in schema.columns if c.name.casefold() == field.name.casefold()), None
        )
        if isinstance(found, Flag):
            return field, [(constant(value), str(value).lower()) for value in (False, True)]
        if isinstance(found, Category) and found.values is not None:
            return field, [(constant(value), str(value)) for value in found.values]
    raise wrong(field, Reason.WRONG_FORM, f"PIVOT wants a column with declared values; {LIKE_THIS}")


def _value(node: Node) -> tuple[Node, str]:
    if isinstance(node, exp.PivotAlias):
        return node.this, node.args["alias"].name
    if isinstance(node, exp.Alias):
        return node.this, node.alias
    if isinstance(node, exp.Column):  # T-SQL's [F], a value in the brackets of a name
        number = node.name.isdigit()
        return exp.Literal(this=node.name, is_string=not number), node.name
    return node, node.name


def _columns(
    column: Node, values: list[tuple[Node, str]], aggregates: list[Node], named: list[Node]
) -> list[Node]:
    found: list[Node] = []
    names = [each.name for each in named]
    known = len(names) == len(values) * len(aggregates)
    for value, name in values:
        for aggregate in aggregates:
            plain = aggregate.unalias()
            test = exp.EQ(this=column.copy(), expression=value.copy())
            made = exp.Filter(this=plain.copy(), expression=exp.Where(this=test))
            label = names[len(found)] if known else name
            if not known and len(aggregates) > 1:
                label = f"{name}_{aggregate.alias or plain.key}"
            found.append(exp.alias_(made, label, quoted=True))
    return found
