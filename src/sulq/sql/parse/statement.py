"""SQL text to our own Select, through closed tables: what they do not name is refused."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.query import canonical
from sulq.kernel.query.expressions import Expression, operation
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.study import EventSchema, Study
from sulq.sql.parse.constants import Params, filled, folded, marked
from sulq.sql.parse.declared import bare, is_constant, plain_row, shape, value_of
from sulq.sql.parse.distinct import counted_values, values_apart
from sulq.sql.parse.grammar import (
    Node,
    check_options,
    located,
    named,
    opened,
    outside,
    span,
    too_deep,
    wrong,
)
from sulq.sql.parse.group_by import BucketRows, complete_rows, read_grouping
from sulq.sql.parse.locate import blamed_rows, closed
from sulq.sql.parse.normalise import normalised
from sulq.sql.parse.outputs import KINDS, Calculations, Reader
from sulq.sql.parse.pivot import without_pivots
from sulq.sql.parse.released import (
    AroundReleased,
    Ctes,
    Named,
    columns_of,
    expanded,
    grouped_by,
    is_released,
    needed_ctes,
    own_ctes,
    shares_of_totals,
    sources_of,
    stacked,
)
from sulq.sql.parse.scope import KnownTables, fill_aliases, find, resolved, scope_of
from sulq.sql.parse.select import (
    Grouping,
    Inner,
    Item,
    Ordering,
    Output,
    Select,
    Stacked,
    kind_of,
    own_aggregates,
)
from sulq.sql.parse.step_functions import TABULATIONS, Tabulations
from sulq.sql.parse.study import StudyRewriter
from sulq.sql.parse.subqueries import (
    asked_first,
    filled_in,
    from_lookups,
    inner_of,
    spelled,
    stood_in,
    without_joins,
)

MOST_ITEMS = 200


@dataclass(frozen=True, slots=True)
class SubqueryValues:
    """What is known of the SELECTs in conditions of rows.

    `part` names one of them, to be read by itself: its place, inside the one at the place before.
    `values` are what was released of them; without it `stand` says what stands for them.
    """

    part: tuple[int, ...] = ()
    values: tuple[Any, ...] | None = None
    stand: str = "middle"


def read_statement(
    text: str,
    schema: Schema,
    table: str | None = None,
    lookups: Mapping[str, Any] | None = None,
    dialect: str | None = None,
    params: Params | None = None,
    today: datetime.date | None = None,
    known: SubqueryValues = SubqueryValues(),
) -> Select:
    """The SELECT that `text` spells on this schema, or `InvalidQuery` with the reason.

    `known` is what is known of the SELECTs in conditions of rows, which are asked first.
    """
    tables = KnownTables.of(schema, table, lookups)
    try:
        return _read(text, tables, named(dialect), params, today or utc_day(), known)
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
    tables: KnownTables,
    dialect: str,
    params: Params | None,
    today: datetime.date,
    known: SubqueryValues,
) -> Select:
    envelope = opened(text, dialect, lambda tokens: marked(tokens, params))
    tree = filled(envelope.tree, params)
    if tree.find(exp.Pivot) is not None:
        tree = without_pivots(tree, tables.schema)
    tree = normalised(tree, dialect)
    tree, dated = folded(tree, today)
    if isinstance(tables.schema, Study | EventSchema):
        rewriter = StudyRewriter(tables.schema)
        tree = rewriter.statement(tree)
        tables = replace(tables, values=rewriter.values)
    first: tuple[Inner, ...] = ()
    if len(list(itertools.islice(tree.find_all(exp.Select), 2))) > 1:
        tree = without_joins(from_lookups(tree, tables.lookups))
        for at in known.part:
            tree = inner_of(tree, at)
        first = tuple(Inner(spelled(node), node.arg_key == "query") for node in asked_first(tree))
        if first and known.values is None:
            tree = stood_in(tree, tables.schema, known.stand)
        elif first:
            tree = filled_in(tree, known.values or ())
    made = Tabulations()
    tabulating = TABULATIONS.set(made)
    try:
        select = _Statement(tables, envelope.nulls).read(tree)
    finally:
        TABULATIONS.reset(tabulating)
    return replace(
        select,
        options=envelope.options,
        target=envelope.target,
        explain=envelope.explain,
        first=first,
        spans=envelope.spans,
        notes=(*((said_today(today),) if dated else ()), *made.notes),
    )


@dataclass(slots=True)
class _Statement:
    """Reads the SELECTs of one statement."""

    tables: KnownTables
    nulls: bool  # ORDER BY says where NULLs go
    reads: int = 0

    def read(self, tree: Node, ctes: Ctes = ()) -> Select:
        """A query: a SELECT of rows, one around released tables, or a UNION of such."""
        self.reads += 1
        if self.reads > MOST_SELECTS:
            raise InvalidQuery(
                f"a statement has at most {MOST_SELECTS} SELECTs once names are filled in",
                reason=Reason.TOO_LARGE,
            )
        if isinstance(tree, exp.Subquery):
            check_options(tree)
            return self.read(tree.this, ctes)
        if isinstance(tree, exp.Union):
            return self._union(tree, (*ctes, *own_ctes(tree)))
        if type(tree) is not exp.Select:
            raise outside(tree)
        tree = counted_values(
            values_apart(shares_of_totals(tree), self.tables.schema), self.tables.schema
        )
        check_options(tree)
        ctes = (*ctes, *own_ctes(tree))
        start = tree.args.get("from_")
        if isinstance(start, exp.From) and is_released(start.this, ctes):
            return self._around(tree, ctes)
        if start is None and any(item.find(exp.Subquery) for item in tree.expressions):
            return self._scalars(tree, ctes)
        return self._of_rows(tree, ctes)

    # --- rows -----------------------------------------------------------------------------------

    def _of_rows(self, tree: Node, ctes: Ctes) -> Select:
        schema = self.tables.schema
        needed = needed_ctes(tree, ctes)
        tree.set("with_", exp.With(expressions=needed) if needed else None)
        scope = scope_of(tree, self.tables)
        rows = _all_of([plain_row(node, schema) for node in scope.rows])
        raw = _raw_items(tree, tree.expressions)
        try:
            known = BucketRows.where(rows, schema)
        except InvalidQuery as error:
            raise blamed_rows(error, scope.rows, schema) from None
        reader = Reader(
            scope=scope, rows=known, keys={}, inner=lambda inner: self.read(inner, ctes)
        )
        nodes = [
            [resolved(_group_node(node, raw, reader), scope) for node in level]
            for level in _grouping_sets(tree, raw)
        ]
        levels = [list(dict.fromkeys(map(shape, level))) for level in nodes]
        found = _groupings(nodes, known)
        there = complete_rows(found.values(), schema)
        if there:
            rows = _all_of([*([] if rows is canonical.TRUE else [rows]), *there])
            reader = replace(reader, rows=BucketRows.where(rows, schema))
            found = _groupings(nodes, reader.rows)
        if len(levels) == 1 and not _is_leveled(tree):
            (keys,) = levels
            level = replace(
                reader,
                keys={key: at for at, key in enumerate(keys)},
                groups=[found[key] for key in keys],
            )
            return self._select(tree, raw, level, rows)
        return self._leveled(tree, raw, reader, levels, found, rows)

    def _select(
        self, tree: Node, raw: list[tuple[str, Node]], reader: Reader, rows: Expression
    ) -> Select:
        items = _items(raw, reader, not any(aliasing(node) for _, node in raw))
        named = replace(reader, aliases={item.name.casefold(): item.of for item in items})
        if len(items) < len(raw):  # DP_INTERVAL_LOW(alias) needs the aliases
            items = _items(raw, named, True)
        if not reader.groups and not any(own_aggregates(item.of) for item in items):
            said = "a SELECT of rows; rows are never shown: ask for COUNT(*), SUM, AVG, ... of them"
            raise wrong(tree.expressions[0], Reason.ROWS_SHOWN, said)
        return Select(
            items,
            rows,
            tuple(reader.groups),
            _test(tree, "having", named),
            _order(tree, named, items, self.nulls),
            _whole(tree, "limit"),
            _whole(tree, "offset") or 0,
            qualify=_test(tree, "qualify", named),
        )

    def _leveled(
        self,
        tree: Node,
        raw: list[tuple[str, Node]],
        reader: Reader,
        levels: list[list[object]],
        found: dict[object, Grouping],
        rows: Expression,
    ) -> Select:
        """ROLLUP, CUBE, GROUPING SETS: one SELECT by several sets of keys, one below the other.

        What ORDER BY sorts by are further columns of each level, which are not shown.
        """
        for node in (*tree.expressions, tree.args.get("order"), tree.args.get("qualify")):
            if isinstance(node, exp.Qualify) or (node and node.find(exp.Window)):
                raise wrong(
                    node,
                    Reason.AGGREGATE,
                    "a window beside ROLLUP, CUBE or GROUPING SETS; put those into an inner SELECT"
                    " and the window around it",
                )
        selects = []
        for keys in levels:
            level = replace(
                reader,
                keys={key: at for at, key in enumerate(keys)},
                groups=[found[key] for key in keys],
                every=tuple(found),
            )
            whole = self._select(tree, raw, level, rows)
            sorts = tuple(Item(f"sort {at}", part.of) for at, part in enumerate(whole.order))
            selects.append(
                replace(whole, items=(*whole.items, *sorts), order=(), limit=None, offset=0)
            )
        source = Stacked(tuple(selects), levels=True)
        columns = columns_of(source)
        shown = tuple(Item(name, of) for name, of in columns[: len(raw)])
        order = tuple(
            replace(part, of=of)
            for part, (_, of) in zip(whole.order, columns[len(raw) :], strict=True)
        )
        cut = (_whole(tree, "limit"), _whole(tree, "offset") or 0)
        return Select(shown, canonical.TRUE, (), None, order, *cut, source=source)

    # --- released tables ------------------------------------------------------------------------

    def _union(self, tree: Node, ctes: Ctes) -> Select:
        check_options(tree)
        parts: list[Node] = []
        waiting = [tree.expression, tree.this]
        while waiting:
            part = waiting.pop()
            same = type(part) is exp.Union and part.args.get("distinct") == tree.args["distinct"]
            plain = same and not any(part.args.get(name) for name in ("order", "limit", "with_"))
            if plain:
                waiting += [part.expression, part.this]
            else:
                parts.append(part)
        selects = [self.read(part, ctes) for part in parts]
        source = stacked(selects, tree, all_rows=not tree.args.get("distinct"))
        items = tuple(Item(name, of) for name, of in columns_of(source))
        columns = [Named("", item.name, item.of) for item in items]
        order = _order(tree, AroundReleased(columns=columns), items, self.nulls)
        cut = (_whole(tree, "limit"), _whole(tree, "offset") or 0)
        return Select(items, canonical.TRUE, (), None, order, *cut, source=source)

    def _scalars(self, tree: Node, ctes: Ctes) -> Select:
        """SELECT (SELECT ...), (SELECT ...): one row of single values."""
        for place in ("where", "group", "having", "qualify"):
            if tree.args.get(place) is not None:
                raise wrong(tree, Reason.WRONG_FORM, f"{place.upper()} wants a FROM before it")
        reader = AroundReleased(columns=(), inner=lambda inner: self.read(inner, ctes))
        items = _items(_raw_items(tree, tree.expressions), reader, True)
        cut = (_whole(tree, "limit"), _whole(tree, "offset") or 0)
        return Select(items, canonical.TRUE, (), None, (), *cut, source=Stacked(()), gathers=())

    def _around(self, tree: Node, ctes: Ctes) -> Select:
        source, columns = sources_of(tree, ctes, self.read)
        missing = any(join.args.get("side") for join in tree.args.get("joins") or ())
        around = AroundReleased(
            columns=columns, inner=lambda inner: self.read(inner, ctes), may_be_missing=missing
        )
        tree.set("expressions", expanded(tree, columns))
        fill_aliases(tree, lambda column: around.find(column) is not None)
        raw = _raw_items(tree, tree.expressions)
        keys = grouped_by(tree, around, raw)
        where = None if tree.args.get("where") is None else _test(tree, "where", around)
        reader = around if keys is None else replace(around, keys=keys)
        items = _items(raw, reader, not any(aliasing(node) for _, node in raw))
        named = replace(reader, aliases={item.name.casefold(): item.of for item in items})
        if len(items) < len(raw):
            items = _items(raw, named, True)
        return Select(
            items,
            canonical.TRUE,
            (),
            _test(tree, "having", named),
            _order(tree, named, items, self.nulls),
            _whole(tree, "limit"),
            _whole(tree, "offset") or 0,
            qualify=_test(tree, "qualify", named),
            source=source,
            where=where,
            gathers=None if keys is None else tuple(keys.values()),
        )


MOST_SELECTS = 100
MOST_SETS = 64
MANY_SETS = f"GROUP BY names more than {MOST_SETS} sets of keys"


def _is_leveled(tree: Node) -> bool:
    group = tree.args.get("group")
    listed = [] if group is None else group.expressions
    named = (
        any(group.args.get(name) for name in ("rollup", "cube", "grouping_sets")) if group else 0
    )
    return bool(named) or any(isinstance(node, _SETS) for node in listed)


_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)


def _grouping_sets(tree: Node, raw: list[tuple[str, Node]]) -> list[list[Node]]:
    """The sets of keys that GROUP BY names: one, or those of ROLLUP, CUBE and GROUPING SETS."""
    given = tree.args.get("group")
    if given is None:
        return [[]]
    check_options(given)
    if given.args.get("all"):
        return [
            [
                node
                for _, node in raw
                if next(node.find_all(exp.AggFunc, exp.Window, exp.Anonymous), None) is None
                and not is_constant(node)
            ]
        ]
    listed = list(given.expressions)
    for name, kind in (("rollup", exp.Rollup), ("cube", exp.Cube)):
        for part in given.args.get(name) or ():
            if part.expressions:
                listed.append(part)
            else:  # GROUP BY a, b WITH ROLLUP
                listed = [kind(expressions=listed)]
    listed = given.args.get("grouping_sets") or listed  # GROUP BY a, b GROUPING SETS (...)
    found: list[list[Node]] = [[]]
    for node in listed:
        sets = _sets_of(node)
        if len(found) * len(sets) > MOST_SETS:
            raise wrong(
                given, Reason.TOO_LARGE, f"GROUP BY names more than {MOST_SETS} sets of keys"
            )
        found = [[*before, *more] for before in found for more in sets]
    return found


def _sets_of(node: Node) -> list[list[Node]]:
    match node:
        case exp.Rollup():
            parts = [_keys_in(part) for part in node.expressions]
            cuts = [parts[:size] for size in range(len(parts), -1, -1)]
            return [[key for part in cut for key in part] for cut in cuts]
        case exp.Cube():
            parts = [_keys_in(part) for part in node.expressions]
            if 2 ** len(parts) > MOST_SETS:
                raise wrong(
                    node, Reason.TOO_LARGE, f"CUBE names more than {MOST_SETS} sets of keys"
                )
            choices = itertools.product((True, False), repeat=len(parts))
            return [
                [key for part, kept in zip(parts, choice, strict=True) if kept for key in part]
                for choice in choices
            ]
        case exp.GroupingSets():
            return [keys for part in node.expressions for keys in _sets_of(part)]
    return [_keys_in(node)]


def _keys_in(node: Node) -> list[Node]:
    """(a, b) is two keys, () none."""
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    return [node]


def _groupings(levels: list[list[Node]], known: BucketRows) -> dict[object, Grouping]:
    """Each GROUP BY expression once, by its shape."""
    found: dict[object, Grouping] = {}
    for node in (node for level in levels for node in level):
        if shape(node) not in found:
            found[shape(node)] = _grouping(node, known)
    return found


def _grouping(node: Node, known: BucketRows) -> Grouping:
    try:
        return read_grouping(node, known)
    except InvalidQuery as error:
        raise located(error, span(node)) from None


def _all_of(conditions: list[Expression]) -> Expression:
    if not conditions:
        return canonical.TRUE
    return conditions[0] if len(conditions) == 1 else operation("and", *conditions)


def _raw_items(tree: Node, listed: Sequence[Node]) -> list[tuple[str, Node]]:
    """Names and expressions of the SELECT list."""
    found: list[tuple[str, Node]] = []
    taken: set[str] = set()
    if not 1 <= len(listed) <= MOST_ITEMS:
        raise InvalidQuery(
            f"a SELECT has 1 to {MOST_ITEMS} columns, got {len(listed)}",
            reason=Reason.TOO_LARGE,
        )
    for node in listed:
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


def _items(raw: list[tuple[str, Node]], reader: Calculations, strict: bool) -> tuple[Item, ...]:
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


def _test(tree: Node, place: str, reader: Calculations) -> Output | None:
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
    tree: Node, reader: Calculations, items: tuple[Item, ...], nulls_stated: bool
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
