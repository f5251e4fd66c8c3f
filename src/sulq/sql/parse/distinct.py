"""COUNT(DISTINCT column) of declared values: the groups of the column that surely hold a row."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sulq.kernel.schema.columns import Category, Schema
from sulq.sql.parse.declared import bare
from sulq.sql.parse.grammar import Node
from sulq.sql.parse.normalise import number, same_or_both_missing
from sulq.sql.parse.released import has_aggregate


def values_apart(tree: Node, schema: Schema) -> Node:
    """COUNT(DISTINCT city) beside other aggregates: a SELECT of its own."""
    if tree.args.get("group") is not None:
        return _by_groups(tree, schema)
    if len(tree.expressions) == 1 and isinstance(
        _counted(tree.expressions[0].unalias()), exp.Count
    ):
        return tree
    apart = False
    for item in tree.expressions:
        for value in list(item.find_all(exp.Count)):
            named = value.this.expressions if isinstance(value.this, exp.Distinct) else []
            own = value.find_ancestor(exp.Select) is tree
            filtered = value.parent if isinstance(value.parent, exp.Filter) else None
            plain = len(named) == 1 and isinstance(named[0], exp.Column)
            if not own or not plain or not _is_countable(named[0].name, schema):
                continue
            inner = exp.Select(expressions=[value.copy()])
            for place in ("from_", "joins", "where"):
                given = tree.args.get(place)
                if given:
                    same = [x.copy() for x in given] if isinstance(given, list) else given.copy()
                    inner.set(place, same)
            if filtered is not None:
                _narrowed(inner, filtered.expression.this)
            (filtered or value).replace(exp.Subquery(this=inner))
            apart = True
    if apart and not any(map(has_aggregate, tree.expressions)):
        for place in ("from_", "joins", "where"):
            tree.set(place, None)
    return tree


def _narrowed(select: Node, test: Node) -> None:
    where = select.args.get("where")
    if where is not None:
        test = exp.And(
            this=exp.Paren(this=where.this.copy()), expression=exp.Paren(this=test.copy())
        )
    select.set("where", exp.Where(this=test.copy()))


# --- by groups ----------------------------------------------------------------------------------


def _by_groups(tree: Node, schema: Schema) -> Node:
    """COUNT(DISTINCT city) by groups: a SELECT of its own, joined by the keys to the others."""
    group = tree.args["group"]
    plain = not any(group.args.get(n) for n in ("all", "rollup", "cube", "grouping_sets"))
    if not plain or not any(_values_of(part, schema) for part in tree.find_all(exp.Count)):
        return tree
    keys = [_key(node, tree) for node in group.expressions]
    if any(isinstance(key, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple) for key in keys):
        return tree
    _name_items(tree)
    places = [tree.args.get(place) for place in ("having", "order", "qualify")]
    for place in places:
        _fill_in(place, tree)
    every = [*tree.expressions, *(place for place in places if place is not None)]
    found = [part for node in every for part in _aggregates(node)]
    sources: list[tuple[str, Node]] = []
    main = [part for part in found if not _values_of(_counted(part), schema)]
    if main:
        sources.append(("a", _figures(tree, keys, [part.copy() for part in main])))
    for at, part in enumerate(each for each in found if _values_of(_counted(each), schema)):
        sources.append((f"b{at}", _distinct(tree, keys, part)))
        part.replace(_column(f"b{at}", COUNTED))
    for at, part in enumerate(main):
        part.replace(_column("a", f"c{at}"))
    first = sources[0][0]
    for node in every:
        _keys_named(node, keys, first)
    tree.set("group", None)
    tree.set("where", None)
    tree.set("joins", [_join(name, source, first, len(keys)) for name, source in sources[1:]])
    tree.set("from_", exp.From(this=_named(*sources[0])))
    having = tree.args.get("having")
    if having is not None:
        tree.set("having", None)
        tree.set("where", exp.Where(this=having.this))
    return tree


def _counted(part: Node) -> Node:
    return part.this if isinstance(part, exp.Filter) else part


def _values_of(part: Node, schema: Schema) -> Node | None:
    """The column of declared values that COUNT(DISTINCT column) counts."""
    named = part.this.expressions if isinstance(part.this, exp.Distinct) else []
    plain = isinstance(part, exp.Count) and len(named) == 1 and isinstance(named[0], exp.Column)
    return named[0] if plain and _is_countable(named[0].name, schema) else None


def _key(node: Node, tree: Node) -> Node:
    """A key by its place or alias, as the expression that it is."""
    inner = bare(node)
    if isinstance(inner, exp.Literal) and not inner.is_string and inner.name.isdigit():
        place = int(inner.name)
        if 1 <= place <= len(tree.expressions):
            return bare(tree.expressions[place - 1].unalias()).copy()
    if isinstance(inner, exp.Column) and not inner.table:
        for item in tree.expressions:
            aliased_ = (
                isinstance(item, exp.Alias) and item.alias.casefold() == inner.name.casefold()
            )
            if aliased_ and not has_aggregate(item):
                return bare(item.this).copy()
    return inner.copy()


def _name_items(tree: Node) -> None:
    """Every column of the result under the name that it has anyway."""
    for at, item in enumerate(list(tree.expressions), 1):
        if not isinstance(item, exp.Alias):
            label = item.name if isinstance(item, exp.Column) else f"column_{at}"
            if isinstance(_counted(item), exp.Count):
                label = "count"
            item.replace(aliased(item.copy(), label))


def _fill_in(place: Node | None, tree: Node) -> None:
    """Aliases in HAVING, ORDER BY and QUALIFY, as what they name."""
    made = {item.alias.casefold(): item.this for item in tree.expressions}
    for column in [] if place is None else list(place.find_all(exp.Column)):
        meaning = None if column.table else made.get(column.name.casefold())
        if meaning is not None and bare(meaning) != column:
            column.replace(exp.Paren(this=meaning.copy()))


def _aggregates(node: Node) -> Iterator[Node]:
    """The aggregates of rows in a node, outermost ones."""
    if isinstance(node, exp.Query):
        return
    if isinstance(node, exp.Window):
        inner = [node.this.this, *(node.args.get("partition_by") or ()), node.args.get("order")]
        for part in inner:
            if isinstance(part, exp.Expr):
                yield from _aggregates(part)
        return
    if isinstance(node, exp.AggFunc | exp.WithinGroup | exp.Filter | exp.PercentileCont):
        yield node
        return
    for part in list(node.iter_expressions()):
        yield from _aggregates(part)


def _rows_of(tree: Node, listed: list[Node], keys: int) -> Node:
    """A SELECT of the same rows by the first of its columns."""
    made = exp.Select(expressions=listed)
    for place in ("from_", "joins", "where"):
        given = tree.args.get(place)
        if given:
            made.set(place, [x.copy() for x in given] if isinstance(given, list) else given.copy())
    made.set("group", exp.Group(expressions=[number(at + 1) for at in range(keys)]))
    return made


def _figures(tree: Node, keys: list[Node], aggregates: list[Node]) -> Node:
    listed = [aliased(key.copy(), f"k{at}") for at, key in enumerate(keys)]
    listed += [aliased(part, f"c{at}") for at, part in enumerate(aggregates)]
    return _rows_of(tree, listed, len(keys))


def _distinct(tree: Node, keys: list[Node], part: Node) -> Node:
    """How many values of a column surely hold a row, by the keys."""
    column = _counted(part).this.expressions[0]
    listed = [aliased(key.copy(), f"k{at}") for at, key in enumerate(keys)]
    counted = aliased(exp.Count(this=exp.Star()), COUNTED)
    inner = _rows_of(tree, [*listed, aliased(column.copy(), "of"), counted], len(keys) + 1)
    if isinstance(part, exp.Filter):
        _narrowed(inner, part.expression.this)
    there = exp.Not(this=exp.Is(this=column.copy(), expression=exp.Null()))
    inner.set("having", exp.Having(this=there))
    found = exp.ApproxDistinct(this=exp.Column(this=exp.Identifier(this=COUNTED, quoted=True)))
    own: list[Node] = [
        exp.Column(this=exp.Identifier(this=f"k{at}", quoted=True)) for at in range(len(keys))
    ]
    made = exp.Select(expressions=[*own, aliased(found, COUNTED)])
    made.set("from_", exp.From(this=_named("rows", inner)))
    made.set("group", exp.Group(expressions=[each.copy() for each in own]))
    return made


def _named(name: str, select: Node) -> Node:
    return exp.Subquery(this=select, alias=exp.TableAlias(this=exp.Identifier(this=name)))


def _column(table: str, name: str) -> Node:
    named = exp.Identifier(this=name, quoted=True)
    return exp.Column(this=named, table=exp.Identifier(this=table, quoted=True))


def _join(name: str, source: Node, first: str, keys: int) -> Node:
    test: Node | None = None
    for at in range(keys):
        same = same_or_both_missing(_column(first, f"k{at}"), _column(name, f"k{at}"))
        test = same if test is None else exp.And(this=test, expression=same)
    return exp.Join(this=_named(name, source), side="LEFT", on=test)


def _keys_named(node: Node, keys: list[Node], table: str) -> None:
    """Keys in a node, by the names that they have inside."""
    for part in list(node.walk()):
        for at, key in enumerate(keys):
            if part.parent is not None and part == key and not isinstance(part, exp.Identifier):
                part.replace(_column(table, f"k{at}"))
                break


# --- alone --------------------------------------------------------------------------------------


def counted_values(tree: Node, schema: Schema) -> Node:
    """COUNT(DISTINCT city), alone: the groups of city that surely hold a row."""
    item = tree.expressions[0] if len(tree.expressions) == 1 else None
    value = item.this if isinstance(item, exp.Alias) else item
    grouped = tree.args.get("group") is not None
    if isinstance(value, exp.Filter) and not grouped and _values_of(value.this, schema):
        _narrowed(tree, value.expression.this)
        value = value.this
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
    column, inner = named[0], tree.copy()
    for place in ("order", "limit", "offset"):
        inner.set(place, None)
    inner.set("expressions", [aliased(exp.Count(this=exp.Star()), COUNTED)])
    inner.set("group", exp.Group(expressions=[column.copy()]))
    there = exp.Not(this=exp.Is(this=column.copy(), expression=exp.Null()))
    inner.set("having", exp.Having(this=there))
    counted = exp.ApproxDistinct(this=exp.Column(this=exp.Identifier(this=COUNTED, quoted=True)))
    source = exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.Identifier(this=COUNTED)))
    label = item.alias if isinstance(item, exp.Alias) else "count"
    made = exp.Select(expressions=[aliased(counted, label)], from_=exp.From(this=source))
    for place in ("limit", "offset"):
        made.set(place, tree.args.get(place))
    return made


COUNTED = "counted"


def aliased(node: Node, label: str) -> Node:
    return exp.Alias(this=node, alias=exp.Identifier(this=label, quoted=True))


def _is_countable(name: str, schema: Schema) -> bool:
    """Whether all values of a column are public: not persons, and not open text."""
    found = next((c for c in schema.columns if c.name.casefold() == name.casefold()), None)
    is_open = isinstance(found, Category) and found.values is None
    return found is not None and not is_open and name.casefold() != schema.unit.casefold()
