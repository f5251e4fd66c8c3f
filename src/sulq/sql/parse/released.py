"""SELECT around released tables: post-processing of noisy groups, so it is free.

A released table is a grouped SELECT, a CTE of one, a UNION of them or a join of such by their
keys. What they compute from rows is asked; everything around them sees noisy groups only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from sqlglot import exp

from sulq.errors import Reason
from sulq.sql.parse.declared import bare, shape
from sulq.sql.parse.grammar import AGGREGATES, Node, check_options, refused, wrong
from sulq.sql.parse.outputs import Calculations
from sulq.sql.parse.select import (
    Either,
    Gathered,
    Joined,
    Output,
    Released,
    Select,
    Source,
    Stacked,
    aggregates_of,
    kind_of,
)

Ctes: TypeAlias = tuple[Node, ...]
"""The CTEs that a SELECT may name, in their order."""

OVER_GROUPS: dict[type[Node], str] = {
    exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max", exp.Count: "count",
    exp.ApproxDistinct: "distinct",
}  # fmt: skip


# --- which SELECTs are around released tables ---------------------------------------------------


def is_released(node: Node, ctes: Ctes) -> bool:
    """Whether what FROM names gives groups or aggregates, not rows."""
    if isinstance(node, exp.Table):
        found = defined(node, ctes)
        return found is not None and _gives_groups(*found)
    return isinstance(node, exp.Subquery) and _gives_groups(node.this, ctes)


def defined(table: Node, ctes: Ctes) -> tuple[Node, Ctes] | None:
    """The CTE that a table is, and the CTEs that it may name itself."""
    for at in reversed(range(len(ctes))):
        if ctes[at].alias.casefold() == table.name.casefold() and not table.args.get("db"):
            return ctes[at].this, ctes[:at]
    return None


def _gives_groups(query: Node, ctes: Ctes) -> bool:
    if isinstance(query, exp.Subquery):
        return _gives_groups(query.this, ctes)
    if isinstance(query, exp.SetOperation):
        return True
    if not isinstance(query, exp.Select):
        return False
    if query.args.get("group") is not None or any(map(has_aggregate, query.expressions)):
        return True
    start = query.args.get("from_")
    return isinstance(start, exp.From) and is_released(start.this, (*ctes, *own_ctes(query)))


def own_ctes(query: Node) -> Ctes:
    """The CTEs before a SELECT."""
    given = query.args.get("with_")
    if given is None:
        return ()
    check_options(given)
    return tuple(given.expressions)


def needed_ctes(select: Node, ctes: Ctes) -> list[Node]:
    """The CTEs that a SELECT of rows names, and those that they name, in their order."""
    wanted = {table.name.casefold() for table in select.find_all(exp.Table)}
    found: list[Node] = []
    for cte in reversed(ctes):
        if cte.alias.casefold() in wanted:
            found.insert(0, cte)
            wanted |= {table.name.casefold() for table in cte.find_all(exp.Table)}
    return found


def has_aggregate(node: Node) -> bool:
    """Whether a node has an aggregate of the rows of its own SELECT: not one of a window."""
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):
        inside = [node.this.this, *node.this.args.get("expressions", ())]
        parts = [*inside, *(node.args.get("partition_by") or ()), node.args.get("order")]
        return any(has_aggregate(part) for part in parts if isinstance(part, exp.Expr))
    if isinstance(node, exp.AggFunc | exp.WithinGroup | exp.Filter):
        return True
    return any(has_aggregate(part) for part in node.iter_expressions())


# --- reading them -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Named:
    """A column of what FROM names."""

    table: str
    name: str
    of: Output


def columns_of(source: Source) -> list[tuple[str, Output]]:
    """The columns of a released table: their names, and what they are."""
    match source:
        case Select(items=items, groups=groups):
            return [
                (i.name, Released(at, i.of, kind_of(i.of, groups))) for at, i in enumerate(items)
            ]
        case Stacked(selects=selects):
            every = [columns_of(each) for each in selects]
            return [_stacked(at, [each[at] for each in every]) for at in range(len(every[0]))]
        case Joined(first=first, second=second):
            left = columns_of(first)
            right = [(name, _shifted(of, len(left))) for name, of in columns_of(second)]
            return left + right


def _shifted(of: Output, by: int) -> Output:
    assert isinstance(of, Released)  # noqa: S101
    return replace(of, place=of.place + by)


def _stacked(at: int, columns: list[tuple[str, Output]]) -> tuple[str, Output]:
    """One column of a UNION."""
    outputs = [of for _, of in columns if isinstance(of, Released)]
    kinds = {of.kind for of in outputs} - {""}
    either = Either(tuple(of.of for of in outputs))
    return columns[0][0], Released(at, either, kinds.pop() if kinds else "")


def stacked(selects: Sequence[Select], node: Node, all_rows: bool) -> Stacked:
    """UNION [ALL] of tables that have the same columns."""
    first = selects[0]
    for other in selects[1:]:
        if len(other.items) != len(first.items):
            raise wrong(
                node,
                Reason.WRONG_FORM,
                f"UNION of {len(first.items)} columns and {len(other.items)}; each SELECT wants"
                " the same columns",
            )
        for one, two in zip(first.items, other.items, strict=True):
            kinds = {kind_of(one.of, first.groups), kind_of(two.of, other.groups)} - {""}
            if len(kinds) > 1:
                raise wrong(
                    node,
                    Reason.WRONG_TYPE,
                    f"{one.name:.60} is a {' in one SELECT and a '.join(sorted(kinds))} in another;"
                    " UNION wants the same kind in each",
                )
    return Stacked(tuple(selects), all_rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class AroundReleased(Calculations):
    """Reads expressions of a SELECT around released tables."""

    columns: Sequence[Named]
    keys: Mapping[object, Output] | None = None
    """With GROUP BY or aggregates: what is grouped by, by its shape."""
    inside: bool = False  # an aggregate

    def leaf(self, node: Node, aliases_first: bool) -> Output | None:
        if aliases_first and (named := self.alias(node)) is not None:
            return named
        if self.keys and not self.inside and shape(node) in self.keys:
            return self.keys[shape(node)]
        if type(node) in AGGREGATES or isinstance(node, exp.ApproxDistinct):
            return self._gathered(node)
        if not isinstance(node, exp.Column):
            return None
        found = self.find(node)
        if found is None and (named := self.alias(node)) is not None:
            return named
        if found is None:
            said = ", ".join(dict.fromkeys(column.name for column in self.columns)) or "none"
            raise wrong(
                node,
                Reason.NO_COLUMN,
                f"no column {node.name!r:.60} in the inner SELECT; it has {said:.300}",
            )
        if self.keys is None or self.inside:
            return found
        by_column = next((key for key in self.keys.values() if key is found), None)
        if by_column is None:
            raise wrong(
                node,
                Reason.UNGROUPED,
                f"{node.name!r:.60} is neither grouped by nor inside an aggregate of groups",
            )
        return by_column

    def find(self, column: exp.Column) -> Output | None:
        check_options(column)
        name, table = column.name.casefold(), column.table.casefold()
        found = [
            each
            for each in self.columns
            if each.name.casefold() == name and table in ("", each.table)
        ]
        if len(found) > 1:
            raise wrong(
                column, Reason.AMBIGUOUS, f"{name!r:.60} is in two tables; write table.{name:.60}"
            )
        return found[0].of if found else None

    def _gathered(self, node: Node) -> Output:
        test = None
        if isinstance(node, exp.Filter):
            check_options(node, AGGREGATES)
            test = replace(self, inside=True).output(node.expression.this)
            node = node.this
        if isinstance(node, exp.CountIf):
            return Gathered("count", None, replace(self, inside=True).output(node.this))
        function = OVER_GROUPS.get(type(node))
        if self.inside or function is None or isinstance(node.this, exp.Distinct):
            raise wrong(
                node,
                Reason.AGGREGATE,
                "of groups there are SUM, AVG, MIN, MAX and COUNT(*); ask others of the rows",
            )
        if isinstance(node.this, exp.Star) or (function == "count" and _is_literal(node.this)):
            return Gathered(function, None, test)
        if not isinstance(node.this, exp.Expr):
            raise refused(node)
        of = replace(self, inside=True).output(node.this)
        if kind_of(of, ()) in ("text", "truth") and function in ("sum", "avg"):
            raise wrong(
                node, Reason.WRONG_TYPE, f"{function.upper()} of a text; only numbers are added up"
            )
        return Gathered(function, of, test)


def _is_literal(node: object) -> bool:
    return isinstance(node, exp.Literal)


def grouped_by(
    tree: Node, reader: AroundReleased, raw: list[tuple[str, Node]]
) -> dict[object, Output] | None:
    """The keys of GROUP BY, by their shape; None where nothing is gathered."""
    group = tree.args.get("group")
    tests = [tree.args[place] for place in ("having", "order") if tree.args.get(place)]
    if group is None:
        gathers = any(has_aggregate(node) for _, node in raw) or any(map(has_aggregate, tests))
        return {} if gathers else None
    check_options(group)
    listed = [node for _, node in raw if not has_aggregate(node)]
    nodes = listed if group.args.get("all") else [_meant(n, raw, reader) for n in group.expressions]
    keys = {shape(node): reader.output(node) for node in nodes}
    for node, key in zip(nodes, keys.values(), strict=False):
        if aggregates_of(key) and kind_of(key, ()) not in ("text", "truth"):
            raise wrong(
                node,
                Reason.AGGREGATE,
                "GROUP BY a noisy figure, which hardly two groups share; group by a CASE of it:"
                " CASE WHEN n > 100 THEN 'large' ELSE 'small' END",
            )
    return keys


def _meant(node: Node, raw: list[tuple[str, Node]], reader: AroundReleased) -> Node:
    """A key by its place or by its alias."""
    inner = bare(node)
    if isinstance(inner, exp.Literal) and not inner.is_string:
        place = int(inner.name) if inner.name.isdigit() else 0
        if not 1 <= place <= len(raw):
            raise wrong(node, Reason.WRONG_FORM, f"there is no column number {inner.name:.20}")
        inner = raw[place - 1][1]
    elif isinstance(inner, exp.Column) and not inner.table and reader.find(inner) is None:
        inner = {name.casefold(): of for name, of in raw}.get(inner.name.casefold(), inner)
    if has_aggregate(inner) or inner.find(exp.Window) is not None:
        raise wrong(node, Reason.AGGREGATE, "GROUP BY an aggregate; group by columns")
    return inner


Read: TypeAlias = Callable[[Node, Ctes], Select]


def sources_of(tree: Node, ctes: Ctes, read: Read) -> tuple[Source, list[Named]]:
    """The released tables that FROM and JOIN name, and their columns."""
    source, columns = _one_source(tree.args["from_"].this, ctes, read)
    for join in tree.args.get("joins") or ():
        source, columns = _joined(source, columns, join, ctes, read)
    return source, columns


def _one_source(node: Node, ctes: Ctes, read: Read) -> tuple[Source, list[Named]]:
    check_options(node)
    name = node.alias or (node.name if isinstance(node, exp.Table) else "")
    if isinstance(node, exp.Table):
        found = defined(node, ctes)
        assert found is not None  # noqa: S101
        inner = read(found[0].copy(), found[1])  # a CTE may be named more than once
    else:
        inner = read(node.this, ctes)
    return inner, [Named(name.casefold(), label, of) for label, of in columns_of(inner)]


def _joined(
    source: Source, columns: list[Named], join: Node, ctes: Ctes, read: Read
) -> tuple[Source, list[Named]]:
    check_options(join)
    side, kind = (str(join.args.get(name) or "").upper() for name in ("side", "kind"))
    if side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER", "CROSS"):
        raise wrong(join, Reason.JOIN, f"{side} {kind}".strip() + " JOIN; use JOIN or LEFT JOIN")
    if not is_released(join.this, ctes):
        raise wrong(
            join, Reason.JOIN, "a join of a result with rows; join results, or ask each by itself"
        )
    other, more = _one_source(join.this, ctes, read)
    if most_rows(source) * most_rows(other) > MOST_JOINED:
        raise wrong(join, Reason.TOO_LARGE, f"a join of more than {MOST_JOINED:,} pairs of groups")
    width = len(columns)
    both = columns + [replace(each, of=_shifted(each.of, width)) for each in more]
    using = [str(each.name).casefold() for each in join.args.get("using") or ()]
    reader = AroundReleased(columns=both)
    tests = [_same(name, columns, both[width:], join) for name in using]
    if join.args.get("on") is not None:
        tests.append(bare(join.args["on"]))
    on = None
    for at, test in enumerate(tests):
        on = test if not at else exp.And(this=on, expression=test)
    held = None if on is None else reader.output(on)
    if held is not None and aggregates_of(held):
        raise wrong(join, Reason.JOIN, "a join on a noisy figure; join results by their keys")
    shown = [
        each for at, each in enumerate(both) if at < width or each.name.casefold() not in using
    ]
    return Joined(source, other, held, side == "LEFT", len(more)), shown


MOST_JOINED = 250_000


def most_rows(source: Source) -> int:
    """How many rows a released table has at most, as the schema tells."""
    match source:
        case Select(source=None, groups=groups):
            return math.prod(max(1, len(grouping.shown)) for grouping in groups)
        case Select(gathers=()):
            return 1
        case Select(source=inner) if inner is not None:
            return most_rows(inner)
        case Stacked(selects=selects):
            return sum(map(most_rows, selects))
        case Joined(first=first, second=second):
            return most_rows(first) * most_rows(second)
    return 1


def _same(name: str, left: list[Named], right: list[Named], join: Node) -> Node:
    """USING (city): the column of both."""
    tables = [
        next((each.table for each in side if each.name.casefold() == name), None)
        for side in (left, right)
    ]
    if None in tables:
        raise wrong(join, Reason.NO_COLUMN, f"no column {name!r:.60} in both tables of USING")
    first, second = (
        exp.Column(this=exp.Identifier(this=name), table=exp.Identifier(this=table))
        for table in tables
    )
    return exp.EQ(this=first, expression=second)


def expanded(tree: Node, columns: Sequence[Named]) -> list[Node]:
    """The items of a SELECT with every * as the columns it stands for."""
    found: list[Node] = []
    for item in tree.expressions:
        table = item.table.casefold() if isinstance(item, exp.Column) else ""
        star = item.this if isinstance(item, exp.Column) else item
        if not isinstance(star, exp.Star):
            found.append(item)
            continue
        check_options(star)
        without = {each.name.casefold() for each in star.args.get("except_") or ()}
        found += [
            exp.Column(
                this=exp.Identifier(this=each.name, quoted=True),
                table=exp.Identifier(this=each.table) if each.table else None,
            )
            for each in columns
            if table in ("", each.table) and each.name.casefold() not in without
        ]
    return found


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
