"""Statements that mean the same as a refused one, or are the nearest that would be answered.

Each is made from the tree of the refused statement, so it is a whole statement in the dialect in
which that was written. Who offers one tries it first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from sqlglot import exp

from sulq.errors import InvalidQuery
from sulq.kernel.schema.columns import Number, Schema
from sulq.sql.parse.grammar import Node, opened, reader

Change = Callable[[Node, Schema], bool]
"""Changes a SELECT in place; says whether it did."""


def rewritten(text: str, dialect: str | None, schema: Schema) -> Iterator[str]:
    """Statements without what was refused: all changes that fit together, then each alone."""
    try:
        envelope = opened(text, dialect)
    except InvalidQuery:
        return
    if envelope.options or envelope.target is not None or envelope.explain:
        return
    made = [_changed(envelope.tree, [change], schema) for change in CHANGES]
    fitting = [change for change, tree in zip(CHANGES, made, strict=True) if tree is not None]
    trees = [] if len(fitting) < 2 else [_changed(envelope.tree, fitting, schema)]
    for tree in (*trees, *made):
        if tree is not None:
            yield str(tree.sql(dialect=reader(dialect)))


def _changed(tree: Node, changes: list[Change], schema: Schema) -> Node | None:
    whole = exp.Subquery(this=tree.copy())  # so that the statement itself can be replaced
    found = False
    for change in changes:
        for select in list(whole.find_all(exp.Select)):
            found = change(select, schema) or found
    return whole.this if found else None


# --- whole numbers ------------------------------------------------------------------------------


def _cut(select: Node, schema: Schema) -> bool:
    """GROUP BY age / 10, as engines that divide whole numbers read it: FLOOR(age / 10)."""
    group = select.args.get("group")
    keys = [] if group is None else list(group.expressions)
    named = {item.alias.casefold(): item.this for item in select.expressions if item.alias}
    wanted: list[Node] = []
    for key in keys:
        meant = key
        if isinstance(key, exp.Literal) and key.name.isdigit():
            place = int(key.name) - 1
            meant = select.expressions[place] if 0 <= place < len(select.expressions) else key
        elif isinstance(key, exp.Column) and not key.table:
            meant = named.get(key.name.casefold(), key)
        wanted += [part for part in meant.find_all(exp.Div) if _is_cut(part)]
    changed = False
    for part in list(select.find_all(exp.Div)):
        if part.find_ancestor(exp.Floor) is None and any(part == each for each in wanted):
            part.replace(exp.Floor(this=part.copy()))
            changed = True
    return changed


def _is_cut(part: Node) -> bool:
    below = part.expression
    return isinstance(below, exp.Literal) and not below.is_string and below.name.isdigit()


# --- several quantiles --------------------------------------------------------------------------


def _each_share(select: Node, schema: Schema) -> bool:
    """QUANTILE(x, [0.25, 0.75]): a column for each share."""
    found: list[Node] = []
    for item in select.expressions:
        shares = _shares(item)
        if not shares:
            found.append(item)
            continue
        for share in shares:
            label = f"{item.alias or 'quantile'}_{round(float(share) * 100):02}"
            whole = item.unalias().copy()
            whole = _with_share(whole, share)
            found.append(exp.alias_(whole, label))
    changed = len(found) != len(select.expressions)
    if changed:
        select.set("expressions", found)
    return changed


def _listed(item: Node) -> Node | None:
    """The list of shares in a quantile."""
    for part in item.find_all(exp.Array, exp.Tuple, exp.Bracket):
        if part.find_ancestor(*QUANTILES) is not None and part.expressions:
            return part
    return None


QUANTILES = (
    exp.PercentileCont,
    exp.PercentileDisc,
    exp.Quantile,
    exp.ApproxQuantile,
    exp.WithinGroup,
    exp.Anonymous,
)


def _shares(item: Node) -> list[Fraction]:
    counted = item.find(exp.ApproxQuantiles)
    if counted is not None:
        count = counted.args.get("expression")
        plain = isinstance(count, exp.Literal) and count.name.isdigit()
        parts = int(count.name) if plain and count is not None else 0
        bracketed = isinstance(counted.parent, exp.Bracket)
        if 0 < parts <= 20 and not bracketed:
            return [Fraction(at, parts) for at in range(parts + 1)]
        return []
    part = _listed(item)
    try:
        return [] if part is None else [Fraction(each.name) for each in part.expressions]
    except ValueError:
        return []


def _with_share(whole: Node, share: Fraction) -> Node:
    spelled = f"{float(share):.6f}".rstrip("0").rstrip(".")
    number = exp.Literal(this=spelled, is_string=False)
    counted = whole.find(exp.ApproxQuantiles)
    if counted is not None:
        made: Node = exp.Anonymous(this="QUANTILE", expressions=[counted.this.copy(), number])
        if counted is whole:
            return made
        counted.replace(made)
        return whole
    part = _listed(whole)
    if part is not None:
        part.replace(number)
    return whole


# --- numbers as texts ---------------------------------------------------------------------------


def _plain_numbers(select: Node, schema: Schema) -> bool:
    """FORMAT(AVG(x), 1), CONCAT(ROUND(x), '%'): the number itself."""
    changed = False
    for item in select.expressions:
        value = item.unalias()
        of = _number_in(value)
        if of is not None:
            value.replace(of) if value is not item else item.replace(of)
            changed = True
    return changed


def _number_in(value: Node) -> Node | None:
    inner: Node
    if isinstance(value, exp.NumberToStr | exp.ToChar | exp.Format):
        inner = value.this if not isinstance(value, exp.Format) else value.expressions[0]
        return inner.copy() if inner.find(exp.AggFunc) is not None else None
    if isinstance(value, exp.Concat | exp.ConcatWs | exp.DPipe):
        parts = value.expressions or [value.this, value.expression]
        noisy = [part for part in parts if part.find(exp.AggFunc) is not None]
        if len(noisy) == 1:
            inner = noisy[0]
            while isinstance(inner, exp.Cast | exp.Paren | exp.Coalesce):
                inner = inner.this
            return inner.copy()
    texts = isinstance(value, exp.Cast) and value.args["to"].this in exp.DataType.TEXT_TYPES
    if texts and value.find(exp.AggFunc) is not None:
        inner = value.this
        return inner.copy()
    return None


# --- lists of groups ----------------------------------------------------------------------------


def _most_frequent(select: Node, schema: Schema) -> bool:
    """MODE(x): by groups, the value with the most rows."""
    modes = [item for item in select.expressions if item.find(exp.Mode) is not None]
    others = [item for item in select.expressions if item.find(exp.Mode) is None]
    if len(modes) != 1 or not others or any(item.find(exp.AggFunc) for item in others):
        return False
    mode = modes[0].find(exp.Mode)
    around = modes[0].find(exp.WithinGroup)
    of = mode.this if mode is not None else None
    if of is None and around is not None:
        of = around.expression.expressions[0].this
    if of is None:
        return False
    keys = [item.unalias().copy() for item in others]
    counted = exp.Count(this=exp.Star())
    order = exp.Order(expressions=[exp.Ordered(this=counted.copy(), desc=True)])
    ranked = exp.Window(
        this=exp.RowNumber(), partition_by=[key.copy() for key in keys], order=order, over="OVER"
    )
    group = [*(key.copy() for key in keys), of.copy()]
    select.set("expressions", [*others, of.copy(), exp.alias_(counted, "n")])
    select.set("group", exp.Group(expressions=group))
    there = exp.Not(this=exp.Is(this=of.copy(), expression=exp.Null()))
    where = select.args.get("where")
    test = there if where is None else exp.And(this=exp.Paren(this=where.this), expression=there)
    select.set("where", exp.Where(this=test))
    first = exp.LTE(this=ranked, expression=exp.Literal(this="1", is_string=False))
    select.set("qualify", exp.Qualify(this=first))
    return True


def _counts(select: Node, schema: Schema) -> bool:
    """HISTOGRAM(x): x and how many rows have it."""
    if len(select.expressions) != 1 or select.args.get("group") is not None:
        return False
    value = select.expressions[0].unalias()
    name = str(value.this).upper() if isinstance(value, exp.Anonymous) else ""
    if name not in ("HISTOGRAM", "APPROX_TOP_COUNT", "MAP_AGG") or not value.expressions:
        return False
    of = value.expressions[0]
    there = exp.Not(this=exp.Is(this=exp.Paren(this=of.copy()), expression=exp.Null()))
    where = select.args.get("where")
    test = there if where is None else exp.And(this=exp.Paren(this=where.this), expression=there)
    select.set("where", exp.Where(this=test))
    select.set("expressions", [of.copy(), exp.alias_(exp.Count(this=exp.Star()), "n")])
    select.set("group", exp.Group(expressions=[of.copy()]))
    return True


# --- around results -----------------------------------------------------------------------------


def _window_around(select: Node, schema: Schema) -> bool:
    """A window beside ROLLUP: the ROLLUP inside, the window around it."""
    group = select.args.get("group")
    leveled = group is not None and (
        any(group.args.get(name) for name in ("rollup", "cube", "grouping_sets"))
        or any(isinstance(k, exp.Rollup | exp.Cube | exp.GroupingSets) for k in group.expressions)
    )
    windows = [item for item in select.expressions if item.find(exp.Window) is not None]
    if not leveled or not windows:
        return False
    inner: list[Node] = []
    names: dict[str, str] = {}
    for item in select.expressions:
        if item in windows:
            continue
        name = item.alias_or_name or f"c{len(inner) + 1}"
        names[item.unalias().sql()] = name
        inner.append(item if item.alias or isinstance(item, exp.Column) else exp.alias_(item, name))
    outer: list[Node] = []
    for item in select.expressions:
        if item not in windows:
            outer.append(exp.column(item.alias_or_name or names[item.unalias().sql()]))
            continue
        whole = item.copy()
        for window in list(whole.find_all(exp.Window)):
            for part in _own_aggregates(window):
                if part.sql() not in names:
                    names[part.sql()] = f"c{len(inner) + 1}"
                    inner.append(exp.alias_(part.copy(), names[part.sql()]))
                part.replace(exp.column(names[part.sql()]))
        outer.append(whole)
    made = select.copy()
    made.set("expressions", [item.copy() for item in inner])
    for place in ("order", "limit", "offset", "qualify", "with_"):
        made.set(place, None)
    source = exp.Subquery(this=made, alias=exp.TableAlias(this=exp.Identifier(this="levels")))
    select.set("expressions", outer)
    for place in ("where", "group", "having", "joins"):
        select.set(place, None)
    select.set("from_", exp.From(this=source))
    return True


def _own_aggregates(window: Node) -> list[Node]:
    """The aggregates of rows inside a window: SUM(COUNT(*)) OVER () has COUNT(*)."""
    inside = window.this
    return [part for part in window.find_all(exp.AggFunc) if part is not inside]


def _kept_rows(select: Node, schema: Schema) -> bool:
    """FULL JOIN of results: LEFT JOIN, since groups without rows are among them."""
    changed = False
    for join in select.args.get("joins") or ():
        if str(join.args.get("side") or "").upper() in ("FULL", "RIGHT"):
            join.set("side", "LEFT")
            changed = True
    return changed


def _bucketed(select: Node, schema: Schema) -> bool:
    """GROUP BY income, which has no step: FLOOR(income / 1000) * 1000."""
    group = select.args.get("group")
    changed = False
    for key in [] if group is None else list(group.expressions):
        named = key.name if isinstance(key, exp.Column) else ""
        column = next((c for c in schema.columns if c.name.casefold() == named.casefold()), None)
        plain = isinstance(column, Number) and column.kind == "number" and column.lattice is None
        if not isinstance(column, Number) or not plain:
            continue
        low, high = column.range
        width = 1
        while (high - low) / width > 20:
            width *= 10
        for part in list(select.find_all(exp.Column)):
            if part == key or part is key:
                size = exp.Literal(this=str(width), is_string=False)
                cell = exp.Floor(this=exp.Div(this=part.copy(), expression=size))
                part.replace(exp.Mul(this=cell, expression=size.copy()))
        changed = True
    return changed


CHANGES: tuple[Change, ...] = (
    _cut,
    _each_share,
    _plain_numbers,
    _most_frequent,
    _counts,
    _window_around,
    _kept_rows,
    _bucketed,
)
"""In this order."""
