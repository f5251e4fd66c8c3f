"""One spelling of each thing: what dialects write in many ways, written in the one we read.

Works on names and forms alone, before any column is known. What depends on the declared type of a
column (a day written as text, a cast, a function of texts) is `declared.py`'s.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from sulq.errors import Reason
from sulq.sql.parse.calendar import QUOTE
from sulq.sql.parse.grammar import (
    HOUSE,
    SUNDAY_IS_ONE,
    WEEKS_FROM_SUNDAY,
    DaysBetween,
    Node,
    wrong,
)

Rule = Callable[[Node, str], Node]


def normalised(tree: Node, dialect: str = HOUSE) -> Node:
    """The tree in the house spelling; changed in place, except at its root."""
    for step in PASSES:
        tree = step(tree, dialect)
    return tree


def _named_alone(tree: Node, dialect: str) -> Node:
    """`db.public.people.age` is `people.age`: there is one table, whatever it lives in."""
    for node in tree.find_all(exp.Table, exp.Column):
        for name in ("db", "catalog"):
            if isinstance(node.args.get(name), exp.Identifier):
                node.set(name, None)
        if isinstance(node, exp.Table) and node.args.get("hints"):
            node.set("hints", None)  # WITH (NOLOCK): how an engine reads, not what
    return tree


def _one_spelling(tree: Node, dialect: str) -> Node:
    found = [node for node in tree.walk() if type(node) in RULES]
    for node in reversed(found):  # what is inside first
        made = RULES[type(node)](node, dialect)
        if made is node:
            continue
        if node is tree:
            tree = made
        else:
            node.replace(made)
        _keep_place(node, made)
    return tree


PASSES: tuple[Rule, ...] = (_named_alone, _one_spelling)
"""In this order."""


def _keep_place(old: Node, new: Node) -> None:
    """What was rewritten still stands where it was typed."""
    if "start" in old.meta and "start" not in new.meta:
        new.meta.update({name: old.meta[name] for name in ("start", "end")})


# --- small parts --------------------------------------------------------------------------------


def number(value: int | Fraction) -> Node:
    """A whole number or a fraction as a constant."""
    exact = Fraction(value)
    if exact < 0:
        return exp.Neg(this=number(-exact))
    whole: Node = exp.Literal(this=str(exact.numerator), is_string=False)
    if exact.denominator == 1:
        return whole
    under = exp.Literal(this=str(exact.denominator), is_string=False)
    return exp.Paren(this=exp.Div(this=whole, expression=under))


def text(value: str) -> Node:
    return exp.Literal(this=value, is_string=True)


def chosen(condition: Node, then: Node, otherwise: Node | None) -> Node:
    """CASE WHEN condition THEN then ELSE otherwise END."""
    return exp.Case(ifs=[exp.If(this=condition, true=then)], default=otherwise)


def certain(condition: Node) -> Node:
    """`condition IS TRUE`: true or false, never NULL."""
    return exp.EQ(this=chosen(condition, number(1), number(0)), expression=number(1))


def missing(node: Node) -> Node:
    return exp.Is(this=node, expression=exp.Null())


def _moved(node: Node, name: str = "this") -> Node:
    """A part of a node, taken out of it."""
    inner = node.args[name]
    inner.pop() if inner.parent is not None else None
    return inner  # type: ignore[no-any-return]


# --- choices ------------------------------------------------------------------------------------


def _if(node: Node, dialect: str) -> Node:
    if isinstance(node.parent, exp.Case) and node.arg_key == "ifs":
        return node
    ratio = _ratio_or_zero(node)
    if ratio is not None:
        return ratio
    return chosen(node.this, node.args["true"], node.args.get("false"))


def _ratio_or_zero(node: Node) -> Node | None:
    """DIV0(a, b), as sqlglot writes it: IF b = 0 ... THEN 0 ELSE a / b."""
    ratio, then = node.args.get("false"), node.args["true"]
    zero = isinstance(then, exp.Literal) and str(then.this) == "0"
    if not isinstance(ratio, exp.Div) or not zero:
        return None
    tested = [test for test in node.this.find_all(exp.EQ) if test.this == ratio.expression]
    if not tested or str(tested[0].expression) != "0":
        return None
    return exp.SafeDivide(this=ratio.this, expression=ratio.expression)


def _case(node: Node, dialect: str) -> Node:
    """CASE x WHEN 1 THEN ... is CASE WHEN x = 1 THEN ..."""
    subject = node.args.get("this")
    if subject is None:
        return node
    branches = [
        exp.If(this=exp.EQ(this=subject.copy(), expression=b.this), true=b.args["true"])
        for b in node.args["ifs"]
    ]
    return exp.Case(ifs=branches, default=node.args.get("default"))


def _decode(node: Node, dialect: str) -> Node:
    """DECODE(x, a, 1, b, 2, otherwise); NULL matches NULL there."""
    subject, *rest = node.expressions
    branches = []
    for at in range(0, len(rest) - 1, 2):
        wanted = rest[at]
        same = (
            missing(subject.copy())
            if isinstance(wanted, exp.Null)
            else exp.EQ(this=subject.copy(), expression=wanted)
        )
        branches.append(exp.If(this=same, true=rest[at + 1]))
    return exp.Case(ifs=branches, default=rest[-1] if len(rest) % 2 else None)


def _is(node: Node, dialect: str) -> Node:
    """x IS TRUE, x IS FALSE: never NULL; where only truth counts, x and NOT x say the same."""
    wanted = node.args.get("expression")
    if node.args.get("negate"):
        plain = exp.Is(this=node.this, expression=wanted)
        return exp.Not(this=_is(plain, dialect) if isinstance(wanted, exp.Boolean) else plain)
    if not isinstance(wanted, exp.Boolean):
        return node
    inner = node.this
    meant = inner if wanted.this else exp.Not(this=exp.Paren(this=inner))
    return exp.Paren(this=meant if _only_truth_counts(node) else certain(meant))


def _only_truth_counts(node: Node) -> bool:
    """Whether NULL and false do the same here: under AND and OR up to WHERE, HAVING or WHEN."""
    at = node
    while isinstance(at.parent, exp.And | exp.Or | exp.Paren):
        at = at.parent
    above = at.parent
    return isinstance(above, exp.Where | exp.Having) or (
        isinstance(above, exp.If) and at.arg_key == "this"
    )


def _same(node: Node, dialect: str) -> Node:
    """a IS NOT DISTINCT FROM b; a <=> b."""
    left, right = node.this, node.expression
    if isinstance(right, exp.Null):
        same = missing(left)
    elif isinstance(right, exp.Literal | exp.Boolean):
        same = certain(exp.EQ(this=left, expression=right))
    else:
        both = exp.And(this=missing(left.copy()), expression=missing(right.copy()))
        same = certain(exp.Or(this=exp.EQ(this=left, expression=right), expression=both))
    other = isinstance(node, exp.NullSafeNEQ)
    return exp.Paren(this=exp.Not(this=exp.Paren(this=same)) if other else same)


def same_or_both_missing(left: Node, right: Node) -> Node:
    """left IS NOT DISTINCT FROM right."""
    return _same(exp.NullSafeEQ(this=left, expression=right), HOUSE)


def _nvl2(node: Node, dialect: str) -> Node:
    """NVL2(x, there, missing)."""
    there = exp.Not(this=exp.Paren(this=missing(node.this)))
    return chosen(there, node.args["true"], node.args.get("false"))


def _row_test(node: Node, dialect: str) -> Node:
    """(a, b) = (1, 2) and (a, b) IN ((1, 2), (3, 4)): by columns."""
    if not isinstance(node.this, exp.Tuple):
        return _listed_any(node, dialect)
    listed = node.expressions if isinstance(node, exp.In) else [node.expression]
    columns = node.this.expressions
    found: Node | None = None
    for row in listed:
        values = row.expressions if isinstance(row, exp.Tuple) else []
        if len(values) != len(columns):
            return node
        same: Node | None = None
        for column, value in zip(columns, values, strict=True):
            test = exp.EQ(this=column.copy(), expression=value.copy())
            same = test if same is None else exp.And(this=same, expression=test)
        one = exp.Paren(this=same)
        found = one if found is None else exp.Or(this=found, expression=one)
    if found is None:
        return node
    whole = exp.Paren(this=found)
    return exp.Not(this=whole) if isinstance(node, exp.NEQ) else whole


def _listed_any(node: Node, dialect: str) -> Node:
    """x = ANY(ARRAY[a, b]) is x IN (a, b); x <> ALL(...) is x NOT IN (...)."""
    every = node.args.get("expression")
    if isinstance(node, exp.EQ) and isinstance(every, exp.Any):
        values = _values_of(every.this)
        if values is not None:
            return exp.In(this=node.this, expressions=values)
    if isinstance(node, exp.NEQ) and _is_all(every):
        inner = every.expressions[0] if isinstance(every, exp.Anonymous) else every.this  # type: ignore[union-attr]
        values = _values_of(inner)
        if values is not None:
            return exp.Not(this=exp.Paren(this=exp.In(this=node.this, expressions=values)))
    return node


def _is_all(node: object) -> bool:
    return isinstance(node, exp.All) or (
        isinstance(node, exp.Anonymous) and str(node.this).upper() == "ALL"
    )


def _values_of(node: object) -> list[Node] | None:
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Array | exp.Tuple):
        return list(node.expressions)
    if _is_text(node) and isinstance(node, exp.Literal):
        spelled = str(node.this).strip()
        if spelled[:1] == "{" and spelled[-1:] == "}" and '"' not in spelled:
            return [text(each.strip()) for each in spelled[1:-1].split(",")]
    return None


def _any_pattern(node: Node, dialect: str) -> Node:
    """x LIKE ANY ('a%', 'b%'): one or the other; ALL: both. T-SQL's [abc] is a pattern."""
    listed = node.expression
    every = isinstance(listed, exp.All) or _is_all(listed)
    if isinstance(listed, exp.Any) or every:
        inner = listed.expressions[0] if isinstance(listed, exp.Anonymous) else listed.this
        values = _values_of(inner)
        if not values:
            return node
        found: Node | None = None
        for value in values:
            one = type(node)(this=node.this.copy(), expression=value.copy())
            kind = exp.And if every else exp.Or
            found = one if found is None else kind(this=found, expression=one)
        return exp.Paren(this=found)
    if dialect == "tsql" and _is_text(listed) and "[" in str(listed.this):
        return exp.RegexpLike(
            this=node.this, expression=text(_bracketed(str(listed.this))), full_match=True
        )
    return node


def _bracketed(pattern: str) -> str:
    """T-SQL's LIKE pattern as a regular expression for the whole text."""
    found = []
    for part in re.findall(r"\[[^\]]+\]|.", pattern, flags=re.DOTALL):
        if len(part) > 1:
            found.append("[" + part[1:-1].replace("\\", "\\\\") + "]")
        else:
            found.append({"%": "(?s:.*)", "_": "(?s:.)"}.get(part, re.escape(part)))
    return "".join(found)


def _similar(node: Node, dialect: str) -> Node:
    """x SIMILAR TO 'a%|b_': a regular expression with LIKE's signs."""
    if not _is_text(node.expression):
        return node
    signs = {"%": "(?s:.*)", "_": "(?s:.)", ".": "\\.", "^": "\\^", "$": "\\$"}
    spelled = "".join(signs.get(sign, sign) for sign in str(node.expression.this))
    return exp.RegexpLike(this=node.this, expression=text(spelled), full_match=True)


def _between(node: Node, dialect: str) -> Node:
    if not node.args.get("symmetric"):
        return node
    one = exp.Between(this=node.this, low=node.args["low"], high=node.args["high"])
    other = exp.Between(
        this=node.this.copy(), low=node.args["high"].copy(), high=node.args["low"].copy()
    )
    return exp.Paren(this=exp.Or(this=one, expression=other))


def _coalesced(node: Node, dialect: str) -> Node:
    if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Boolean):
        if node.expressions[0].this:  # COALESCE(c, TRUE): not surely false
            return exp.Not(this=exp.Paren(this=certain(exp.Not(this=exp.Paren(this=node.this)))))
        return exp.Paren(this=certain(node.this))
    return exp.Coalesce(this=node.this, expressions=node.expressions)


def _national(node: Node, dialect: str) -> Node:
    return text(str(node.this))


def _method(node: Node, dialect: str) -> Node:
    """DuckDB's city.lower() is lower(city)."""
    call = node.expression
    if not isinstance(call, exp.Func) or node.this.find(exp.Star) is not None:
        return node
    if isinstance(call, exp.Anonymous):
        name = str(call.this)
        of = node.this
        if isinstance(of, exp.Identifier):
            of = exp.Column(this=of)
        made = exp.func(name, of, *call.expressions, dialect=dialect)
        rule = RULES.get(type(made))
        return made if rule is None else rule(made, dialect)
    return node


REAL_DIVISION = ("bigquery", "duckdb", "mysql", "snowflake", "spark")
"""Where 7 / 2 is 3.5: there x / 10 is written x / 10.0."""


def _divided(node: Node, dialect: str) -> Node:
    below = node.expression
    if dialect in REAL_DIVISION and _is_whole(below):
        node.set("expression", exp.Literal(this=f"{below.this}.0", is_string=False))
    return node


def _log(node: Node, dialect: str) -> Node:
    """LOG(10, x), as sqlglot writes LOG10(x)."""
    if isinstance(node.this, exp.Literal) and str(node.this.this) == "10":
        of = node.args.get("expression")
        return node if of is None else exp.Log(this=of)
    return node


def _distinct(node: Node, dialect: str) -> Node:
    """SELECT DISTINCT city, grade FROM t is GROUP BY 1, 2; of aggregates it says nothing new."""
    distinct = node.args.get("distinct")
    if distinct is None or distinct.args.get("on") is not None or node.parent is not None:
        return node
    if node.args.get("group") is not None or any(map(_is_aggregate, node.expressions)):
        node.set("distinct", None)
        return node
    plain = node.expressions and not any(item.find(exp.Star) for item in node.expressions)
    if plain and not _released(node):
        node.set("distinct", None)
        keys = [number(at + 1) for at in range(len(node.expressions))]
        node.set("group", exp.Group(expressions=keys))
    return node


def _released(node: Node) -> bool:
    start = node.args.get("from_")
    return start is None or start.find(exp.Subquery) is not None or bool(node.args.get("with_"))


def _is_aggregate(item: Node) -> bool:
    return item.find(exp.AggFunc, exp.Window, exp.PercentileCont) is not None


def _windows(node: Node, dialect: str) -> Node:
    """OVER w, WINDOW w AS (...): the window where it is used."""
    named = {each.name.casefold(): each for each in node.args.get("windows") or ()}
    if not named:
        return node
    for window in list(node.find_all(exp.Window)):
        name = window.alias if window.alias else ""
        meant = named.get(name.casefold())
        if meant is None or window is meant:
            continue
        window.set("alias", None)
        for part in ("partition_by", "order", "spec"):
            given = meant.args.get(part)
            if given and not window.args.get(part):
                copied = [x.copy() for x in given] if isinstance(given, list) else given.copy()
                window.set(part, copied)
    node.set("windows", None)
    return node


def _each_column(node: Node) -> None:
    """DuckDB's AVG(COLUMNS(['a', 'b'])): AVG(a), AVG(b)."""
    found: list[Node] = []
    for item in node.expressions:
        part = item.find(exp.Columns)
        names = None if part is None else _values_of(part.this)
        if names is None or not all(map(_is_text, names)):
            found.append(item)
            continue
        for name in names:
            whole = item.unalias().copy()
            column = exp.Column(this=exp.Identifier(this=name.name, quoted=True))
            inner = whole.find(exp.Columns)
            if inner is whole:
                whole = column
            elif inner is not None:
                inner.replace(column)
            found.append(whole)
    if len(found) != len(node.expressions):
        node.set("expressions", found)


def _all_in_order(node: Node) -> None:
    """ORDER BY ALL: by every column, from the left."""
    order = node.args.get("order")
    if order is None or len(order.expressions) != 1:
        return
    (part,) = order.expressions
    if str(part.this.name).upper() != "ALL" or part.this.args.get("table"):
        return
    down, places = part.args.get("desc"), range(1, len(node.expressions) + 1)
    order.set("expressions", [exp.Ordered(this=number(at), desc=down) for at in places])


def _aliases_first(node: Node, dialect: str) -> None:
    """BigQuery's GROUP BY and ORDER BY look for aliases before columns."""
    group = node.args.get("group")
    if group is None or dialect != "bigquery":
        return
    places = {item.alias.casefold(): at for at, item in enumerate(node.expressions) if item.alias}
    for key in list(group.expressions):
        named = isinstance(key, exp.Column) and not key.table and key.name.casefold() in places
        if named:
            key.replace(number(places[key.name.casefold()] + 1))


def _select(node: Node, dialect: str) -> Node:
    _each_column(node)
    _all_in_order(node)
    _aliases_first(node, dialect)
    for how in ("options", "hint"):  # OPTION (MAXDOP 1): how an engine works, not what is asked
        node.set(how, None)
    sort = node.args.get("sort")  # Spark's SORT BY: the order of what is shown
    if isinstance(sort, exp.Sort) and node.args.get("order") is None:
        node.set("order", exp.Order(expressions=sort.expressions))
        node.set("sort", None)
    _ties(node)
    _windows(node, dialect)
    limit = node.args.get("limit")
    if isinstance(limit, exp.Limit):
        _limit(limit, dialect)
    return _distinct(node, dialect)


def _ties(node: Node) -> None:
    """TOP 10 WITH TIES ... ORDER BY n: QUALIFY RANK() OVER (ORDER BY n) <= 10."""
    limit, order = node.args.get("limit"), node.args.get("order")
    options = None if limit is None else limit.args.get("limit_options")
    if options is None or not options.args.get("with_ties") or node.args.get("qualify"):
        return
    if order is None or options.args.get("percent"):
        return
    assert limit is not None  # noqa: S101
    count = limit.args.get("expression") or limit.args.get("count")
    named = {item.alias.casefold(): item.this for item in node.expressions if item.alias}
    sorts = order.copy()
    for column in list(sorts.find_all(exp.Column)):
        meant = None if column.table else named.get(column.name.casefold())
        if meant is not None:
            column.replace(meant.copy())
    for each in sorts.expressions:
        at = each.this
        if isinstance(at, exp.Literal) and at.name.isdigit():
            if not 1 <= int(at.name) <= len(node.expressions):
                return
            each.set("this", node.expressions[int(at.name) - 1].unalias().copy())
    ranked = exp.Window(this=exp.Rank(), order=sorts, over="OVER")
    node.set("limit", None)
    node.set("qualify", exp.Qualify(this=exp.LTE(this=ranked, expression=count.copy())))


def _within_over(node: Node, dialect: str) -> Node:
    """PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x) OVER (): of all rows, as without OVER."""
    inner = node.this
    over_all = not any(node.args.get(name) for name in ("partition_by", "order", "spec", "alias"))
    select = node.find_ancestor(exp.Select)
    grouped = select is not None and select.args.get("group") is not None
    if isinstance(inner, exp.WithinGroup | exp.PercentileCont) and over_all and not grouped:
        return inner
    return node


def _regression(node: Node, dialect: str) -> Node:
    """REGR_SLOPE(y, x) and its kind, by covariance and variance of the rows that have both."""
    y, x = node.this, node.expression
    kind = type(node)

    def where(of: Node) -> Node:
        there = exp.Not(this=exp.Paren(this=exp.Is(this=x.copy(), expression=exp.Null())))
        other = exp.Not(this=exp.Paren(this=exp.Is(this=y.copy(), expression=exp.Null())))
        both = exp.And(this=there, expression=other)
        return exp.Filter(this=of, expression=exp.Where(this=both))

    if kind is exp.RegrCount:
        return where(exp.Count(this=exp.Star()))
    if kind in (exp.RegrAvgx, exp.RegrAvgy):
        return where(exp.Avg(this=(x if kind is exp.RegrAvgx else y).copy()))
    if kind is exp.RegrR2:
        return exp.Paren(this=exp.Pow(this=exp.Corr(this=y, expression=x), expression=number(2)))
    slope = exp.Paren(
        this=exp.Div(
            this=exp.CovarPop(this=y.copy(), expression=x.copy()),
            expression=where(exp.VariancePop(this=x.copy())),
        )
    )
    if kind is exp.RegrSlope:
        return slope
    line = exp.Mul(this=slope, expression=where(exp.Avg(this=x.copy())))
    return exp.Paren(this=exp.Sub(this=where(exp.Avg(this=y.copy())), expression=line))


def _any_true(node: Node, dialect: str) -> Node:
    """BOOL_OR(c) is COUNT_IF(c) > 0; BOOL_AND(c) that no row is false."""
    if isinstance(node, exp.LogicalOr):
        found: Node = exp.GT(this=exp.CountIf(this=node.this), expression=number(0))
    else:
        none = exp.CountIf(this=exp.Not(this=exp.Paren(this=node.this)))
        found = exp.EQ(this=none, expression=number(0))
    return exp.Paren(this=found)


def _any_value(node: Node, dialect: str) -> Node:
    """ANY_VALUE of a constant is the constant; of a group's key, the key."""
    inner = node.this
    if isinstance(inner, exp.Literal):
        return inner
    select = node.find_ancestor(exp.Select)
    group = None if select is None else select.args.get("group")
    if group is not None and any(inner == key for key in group.expressions):
        return inner  # type: ignore[no-any-return]
    return node


# --- LIMIT, COUNT, quantiles --------------------------------------------------------------------


def _fetch(node: Node, dialect: str) -> Node:
    options = node.args.get("limit_options")
    if options is not None and options.args.get("with_ties") and not options.args.get("percent"):
        return node
    if options is not None and options.args.get("percent"):
        raise wrong(
            node, Reason.WRONG_FORM, "FETCH takes a number of rows: FETCH FIRST 10 ROWS ONLY"
        )
    return exp.Limit(expression=node.args.get("count") or number(1))


def _limit(node: Node, dialect: str) -> Node:
    inner = node.args.get("expression")
    if isinstance(inner, exp.Paren):
        node.set("expression", inner.this)
    options = node.args.get("limit_options")
    if options is not None and not any(options.args.get(n) for n in ("percent", "with_ties")):
        node.set("limit_options", None)
    return node


def _count(node: Node, dialect: str) -> Node:
    if node.this is None:
        node.set("this", exp.Star())
    named = node.this.expressions if isinstance(node.this, exp.Distinct) else []
    chosen_ = named[0] if len(named) == 1 else None
    while isinstance(chosen_, exp.Paren):
        chosen_ = chosen_.this
    if isinstance(chosen_, exp.Case) and chosen_.args.get("this") is None:
        branches, default = chosen_.args["ifs"], chosen_.args.get("default")
        if len(branches) == 1 and (default is None or isinstance(default, exp.Null)):
            distinct = exp.Distinct(expressions=[branches[0].args["true"]])
            return exp.Filter(
                this=exp.Count(this=distinct), expression=exp.Where(this=branches[0].this)
            )
    return node


def _count_if(node: Node, dialect: str) -> Node:
    return exp.CountIf(this=node.this)


def _quantile(node: Node, dialect: str) -> Node:
    return exp.Quantile(this=node.this, quantile=node.args.get("quantile"))


def _percentile(node: Node, dialect: str) -> Node:
    """PERCENTILE_DISC is read as PERCENTILE_CONT is: off a noisy distribution."""
    return exp.PercentileCont(this=node.this, expression=node.args.get("expression"))


def _bracket(node: Node, dialect: str) -> Node:
    """APPROX_QUANTILES(x, 100)[OFFSET(50)] is the quantile at 50 / 100."""
    parts, inner = node.this, node.expressions[0] if len(node.expressions) == 1 else None
    if isinstance(inner, exp.Slice) and isinstance(parts, exp.Column):
        return _sliced(parts, inner) or node
    letter = dialect == "duckdb" and isinstance(parts, exp.Column) and _is_whole(inner)
    if letter and inner is not None:
        start = number(int(str(inner.this)) + 1)
        return exp.Substring(this=parts, start=start, length=number(1))
    if not isinstance(parts, exp.ApproxQuantiles) or inner is None:
        return node
    if isinstance(inner, exp.Anonymous | exp.Func) and inner.args.get("expressions"):
        inner = inner.expressions[0]
    counts = [part for part in (inner, parts.args.get("expression")) if _is_whole(part)]
    if len(counts) != 2:
        return node
    at, of = (int(part.name) for part in counts if part is not None)
    at += int(node.args.get("offset") or 0) * -1
    if not 0 <= at <= of or of == 0:
        return node
    share = f"{at / of:.12f}".rstrip("0").rstrip(".") or "0"
    return exp.Quantile(this=parts.this, quantile=exp.Literal(this=share, is_string=False))


def _sliced(of: Node, between: Node) -> Node | None:
    """DuckDB's city[1:3]: its first three letters."""
    ends = [between.this, between.args.get("expression")]
    if between.args.get("step") or not all(end is None or _is_whole(end) for end in ends):
        return None
    start, stop = (None if end is None else int(end.name) for end in ends)
    first = max(start or 1, 1)
    length = None if stop is None else number(max(stop - first + 1, 0))
    return exp.Substring(this=of, start=number(first), length=length)


def _is_whole(part: object) -> bool:
    return isinstance(part, exp.Literal) and not part.is_string and str(part.this).isdigit()


def _approx_distinct(node: Node, dialect: str) -> Node:
    return exp.Count(this=exp.Distinct(expressions=[node.this]))


# --- days and times -----------------------------------------------------------------------------

UNITS: dict[str, str] = {
    "y": "year",
    "yy": "year",
    "yyy": "year",
    "yyyy": "year",
    "year": "year",
    "years": "year",
    "q": "quarter",
    "qq": "quarter",
    "quarter": "quarter",
    "quarters": "quarter",
    "m": "month",
    "mm": "month",
    "mon": "month",
    "month": "month",
    "months": "month",
    "w": "week",
    "wk": "week",
    "ww": "week",
    "week": "week",
    "weeks": "week",
    "isoweek": "week",
    "iso_week": "week",
    "week_iso": "week",
    "weekiso": "week",
    "isowk": "week",
    "isoww": "week",
    "d": "day",
    "dd": "day",
    "day": "day",
    "days": "day",
    "dayofmonth": "day",
    "h": "hour",
    "hh": "hour",
    "hour": "hour",
    "hours": "hour",
    "mi": "minute",
    "n": "minute",
    "minute": "minute",
    "minutes": "minute",
    "s": "second",
    "ss": "second",
    "second": "second",
    "seconds": "second",
    "doy": "dayofyear",
    "dy": "dayofyear",
    "dayofyear": "dayofyear",
    "dow": "dow",
    "dw": "dayofweek",
    "weekday": "dayofweek",
    "dayofweek": "dayofweek",
    "isodow": "isodow",
    "dayofweekiso": "isodow",
    "dayofweek_iso": "isodow",
    "year_month": "year_month",
    "isoyear": "isoyear",
    "yearofweek": "isoyear",
}
"""What units of time are called."""


def unit_of(node: object, dialect: str) -> str:
    """The unit that a word names; as it stands where it names none."""
    if isinstance(node, exp.WeekStart):
        return "week" if node.name.upper() == "MONDAY" else f"week({node.name.lower()})"
    said = (node.name if isinstance(node, exp.Expr) else str(node)).casefold()
    unit = UNITS.get(said, said)
    if unit == "dayofweek":
        return "dow1" if dialect in SUNDAY_IS_ONE else "dow"
    return unit


WEEKS = {"bigquery": "week0", "mysql": "week0", "tsql": "week1"}
"""Where the number of a week is not that of ISO."""


def week_of(node: object, unit: str, dialect: str) -> str:
    """The week that EXTRACT names, as the dialect counts weeks."""
    said = (node.name if isinstance(node, exp.Expr) else str(node)).casefold()
    if unit.startswith("week(") and dialect == "bigquery":
        return "week0" if unit == "week(sunday)" else unit
    plain = unit == "week" and "iso" not in said and not isinstance(node, exp.WeekStart)
    return WEEKS.get(dialect, unit) if plain else unit


def part(unit: str, of: Node) -> Node:
    """EXTRACT(unit FROM of), the one spelling of a part of a day or time."""
    return exp.Extract(this=exp.Var(this=unit), expression=_plain_moment(of))


def _plain_moment(of: Node) -> Node:
    """A day without the cast that dialects put around it for texts; a text is a day here."""
    if _is_text(of):
        kind = exp.DType.TIMESTAMP if ":" in str(of.this) else exp.DType.DATE
        return exp.Cast(this=of, to=exp.DataType(this=kind))
    while isinstance(of, WRAPPED) or (
        isinstance(of, exp.Cast) and of.args["to"].this in TIMES and not _is_text(of.this)
    ):
        of = of.this
    return of


TIMES = {
    exp.DType.TIMESTAMP,
    exp.DType.DATETIME,
    exp.DType.DATETIME2,
    exp.DType.TIMESTAMPTZ,
    exp.DType.TIMESTAMPNTZ,
    exp.DType.TIMESTAMPLTZ,
}
WRAPPED = (exp.TsOrDsToDate, exp.TsOrDsToTimestamp, exp.TimeStrToTime)


def _is_text(node: object) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


def _extract(node: Node, dialect: str) -> Node:
    ages = node.expression
    if isinstance(ages, exp.Anonymous) and str(ages.this).upper() == "AGE":
        later, earlier = ages.expressions
        if unit_of(node.this, dialect) != "year":
            raise wrong(node, Reason.WRONG_FORM, "of AGE(later, earlier) there are whole years")
        return exp.TimestampDiff(
            this=_plain_moment(later), expression=_plain_moment(earlier), unit=exp.Var(this="year")
        )
    if isinstance(node.parent, exp.Extract) and node.arg_key == "this":
        return node
    return part(week_of(node.this, unit_of(node.this, dialect), dialect), node.expression)


def _week(node: Node, dialect: str) -> Node:
    """WEEK(day): of the ISO year, but in MySQL, which counts Sundays unless a mode says else."""
    mode = node.args.get("mode")
    if mode is None or mode.name not in ("0", "3"):
        if mode is not None:
            raise wrong(node, Reason.WRONG_FORM, "WEEK goes with the modes 0 and 3 (ISO weeks)")
        return part(week_of("week", "week", dialect), node.this)
    return part("week" if mode.name == "3" else "week0", node.this)


def _part(unit: str) -> Rule:
    return lambda node, dialect: part(unit_of(unit, dialect), node.this)


def truncation(of: Node, unit: str) -> Node:
    """DATE_TRUNC(unit, of)."""
    return exp.DateTrunc(this=of, unit=text(unit))  # type: ignore[no-untyped-call]


def _truncated(node: Node, dialect: str) -> Node:
    """DATE_TRUNC in either order of its arguments."""
    of, unit = node.this, node.args.get("unit")
    said = unit_of(unit, dialect)
    if said not in UNITS.values() and isinstance(of, exp.Column) and not of.table:
        named = UNITS.get(of.name.casefold())
        if named is not None and isinstance(unit, exp.Expr):
            said, of = named, exp.Column(this=exp.Identifier(this=unit.name, quoted=False))
    if said == "week" and dialect in WEEKS_FROM_SUNDAY:
        said = "week(sunday)"
    return truncation(_plain_moment(of), said)


def _time_bucket(node: Node, dialect: str) -> Node:
    """TIME_BUCKET(INTERVAL '1 month', day), of one unit, is DATE_TRUNC."""
    width, of = node.this, node.args.get("expression")
    if isinstance(width, exp.Interval) and isinstance(of, exp.Expr):
        count = width.this
        if isinstance(count, exp.Literal) and str(count.this) == "1":
            return truncation(of, unit_of(width.args.get("unit"), dialect))
    return node


def _formatted(node: Node, dialect: str) -> Node:
    of, form = node.this, node.args.get("format")
    if _is_text(of) and isinstance(form, exp.Column):  # STRFTIME('%Y', day)
        of, form = form, of
    if not isinstance(form, exp.Literal):
        return node
    spelled = str(form.this).replace("strict", "")
    if '"' in spelled:  # "Q" stands for itself; sqlglot took it for a quarter
        pieces = spelled.split('"')
        pieces[1::2] = [
            QUOTE + _UNMAPPED.sub(lambda sign: _LETTERS.get(sign[0], sign[0]), each) + QUOTE
            for each in pieces[1::2]
        ]
        spelled = "".join(pieces)
    return exp.TimeToStr(this=_plain_moment(of), format=text(spelled))


_UNMAPPED = re.compile("%-?[A-Za-z]")
_LETTERS = {"%q": "Q", "%w": "D", "%-d": "FMDD", "%d": "DD", "%m": "MM", "%Y": "YYYY", "%W": "WW"}


def _day_name(form: str, short: str) -> Rule:
    def rule(node: Node, dialect: str) -> Node:
        spelled = short if node.args.get("abbreviated") else form
        return exp.TimeToStr(this=_plain_moment(node.this), format=text(spelled))

    return rule


def _read_moment(node: Node) -> datetime.datetime | None:
    """Return the moment of a text beside its form: TO_DATE('1.2.2024', 'DD.MM.YYYY')."""
    form = node.args.get("format")
    if not isinstance(form, exp.Literal) or not _is_text(node.this):
        return None
    try:
        return datetime.datetime.strptime(str(node.this.this), str(form.this))
    except (ValueError, re.error):
        return None


def _as_date(node: Node, dialect: str) -> Node:
    """DATE(x), TO_DATE('2024-01-01'): a cast."""
    if (moment := _read_moment(node)) is not None:
        day = text(moment.date().isoformat())
        return exp.Cast(this=day, to=exp.DataType(this=exp.DType.DATE))
    if node.args.get("format") is not None or node.this is None:
        return node
    if isinstance(node.parent, exp.Extract | exp.DateTrunc | exp.TimeToStr):
        return node
    return exp.Cast(this=node.this, to=exp.DataType(this=exp.DType.DATE))


_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d)( .*)?", re.ASCII)


def _as_time(node: Node, dialect: str) -> Node:
    if (moment := _read_moment(node)) is not None:
        spelled = text(moment.isoformat(" "))
        return exp.Cast(this=spelled, to=exp.DataType(this=exp.DType.TIMESTAMP))
    if isinstance(node.this, exp.Literal):
        return exp.Cast(this=node.this, to=exp.DataType(this=exp.DType.TIMESTAMP))
    return node.this  # type: ignore[no-any-return]


def _cast(node: Node, dialect: str) -> Node:
    """Times of all kinds are times; what says that it is in UTC says nothing new."""
    to = node.args["to"]
    if _is_text(node.this) and to.this in TIMES:
        plain = re.sub(r"(Z|\+00(:?00)?| UTC)$", "", str(node.this.this).strip())
        plain = _COMPACT.sub(r"\1-\2-\3\4", plain)
        return exp.Cast(this=text(plain), to=exp.DataType(this=exp.DType.TIMESTAMP))
    size = length_of(to)
    if size is None and to.this in SINGLE and dialect in ONE_LETTER and not to.expressions:
        size = 1
    if size is not None:
        all_of = exp.Cast(this=node.this, to=exp.DataType(this=exp.DType.TEXT))
        return exp.Left(this=all_of, expression=number(size))
    return node if type(node) is exp.Cast else exp.Cast(this=node.this, to=to)


SINGLE = (exp.DType.CHAR, exp.DType.NCHAR)
ONE_LETTER = (HOUSE, "snowflake")
"""Where CHAR without a length keeps one letter."""


def _to_number(node: Node, dialect: str) -> Node:
    """TO_DECIMAL(x, 12, 2), TRY_TO_NUMBER(x): a cast; without digits of whole numbers."""
    if node.args.get("format") is not None:
        return node
    digits = node.args.get("scale")
    if digits is None or str(digits) == "0":
        return exp.Cast(this=node.this, to=exp.DataType(this=exp.DType.BIGINT))
    kept = [exp.DataTypeParam(this=number(38)), exp.DataTypeParam(this=digits)]
    return exp.Cast(this=node.this, to=exp.DataType(this=exp.DType.DECIMAL, expressions=kept))


def _to_text(node: Node, dialect: str) -> Node:
    """STRING(x)."""
    return exp.Cast(this=node.this, to=exp.DataType(this=exp.DType.TEXT))


def _to_char(node: Node, dialect: str) -> Node:
    """TO_VARCHAR(day, 'YYYY-MM')."""
    form = node.args.get("format")
    if not isinstance(form, exp.Literal):
        return exp.Cast(this=node.this, to=exp.DataType(this=exp.DType.TEXT))
    spelled = str(form.this)
    for word, sign in CHAR_FORMATS:
        spelled = re.sub(word, sign, spelled, flags=re.IGNORECASE)
    return exp.TimeToStr(this=_plain_moment(node.this), format=text(spelled))


CHAR_FORMATS = (
    ("YYYY", "%Y"),
    ("MMMM", "%B"),
    ("MON", "%b"),
    ("(?<!%)MM", "%m"),
    ("DD", "%d"),
    ("DY", "%a"),
    ("HH24", "%H"),
)


STYLES = {
    "23": "%Y-%m-%d", "120": "%Y-%m-%d", "121": "%Y-%m-%d", "126": "%Y-%m-%d",
    "101": "%m/%d/%Y", "102": "%Y.%m.%d", "103": "%d/%m/%Y", "104": "%d.%m.%Y",
    "105": "%d-%m-%Y", "110": "%m-%d-%Y", "111": "%Y/%m/%d", "112": "%Y%m%d",
}  # fmt: skip
"""How T-SQL's CONVERT writes a day."""
LETTERS = (exp.DType.VARCHAR, exp.DType.CHAR, exp.DType.NVARCHAR, exp.DType.NCHAR)


def _converted(node: Node, dialect: str) -> Node:
    """CONVERT(date, x); CONVERT(char(7), x, 120) is the first letters of a day written so."""
    style, to = node.args.get("style"), node.this
    if style is None or to.this not in LETTERS:
        return _cast(exp.Cast(this=node.expression, to=to), dialect)
    form = STYLES.get(style.name)
    if form is None:
        known = ", ".join(sorted(STYLES))
        raise wrong(node, Reason.WRONG_FORM, f"the style of CONVERT is one of {known}")
    spelled = exp.TimeToStr(this=_plain_moment(node.expression), format=text(form))
    size = length_of(to)
    if size is None or size >= 10:
        return spelled
    return exp.Left(this=spelled, expression=number(size))


def length_of(to: Node) -> int | None:
    """How many letters CAST(x AS varchar(4)) keeps; None of all."""
    given = to.expressions[0].this if to.expressions else None
    known = to.this in LETTERS and isinstance(given, exp.Literal) and given.name.isdigit()
    return int(given.name) if known and given is not None else None


def _date_of_parts(node: Node, dialect: str) -> Node:
    found = [node.args.get(name) for name in ("year", "month", "day")]
    if not all(_is_whole(each) for each in found):
        return node
    year, month, day = (int(str(each.this)) for each in found if isinstance(each, exp.Expr))
    spelled = text(f"{year:04}-{month:02}-{day:02}")
    return exp.Cast(this=spelled, to=exp.DataType(this=exp.DType.DATE))


def _shifted(sign: int) -> Rule:
    """DATE_ADD, DATE_SUB, DATEADD: a sum with an INTERVAL."""

    def rule(node: Node, dialect: str) -> Node:
        amount, unit = node.args.get("expression"), node.args.get("unit")
        start = _start_of_unit(node, dialect) if sign > 0 else None
        if start is not None:
            return start
        by = amount
        if not isinstance(amount, exp.Interval):
            said = exp.Var(this=unit_of(unit if unit is not None else "day", dialect))
            by = exp.Interval(this=amount, unit=said)
        kind = exp.Add if sign > 0 else exp.Sub
        return exp.Paren(this=kind(this=_plain_moment(node.this), expression=by))

    return rule


def _start_of_unit(node: Node, dialect: str) -> Node | None:
    """DATEADD(month, DATEDIFF(month, 0, day), 0): T-SQL's way to the start of a month."""
    since, unit = node.args.get("expression"), unit_of(node.args.get("unit") or "day", dialect)
    origin = node.this
    zero = isinstance(origin, exp.Literal) and str(origin.this) in ("0", "1900-01-01", "19000101")
    if isinstance(origin, exp.Cast) and isinstance(origin.this, exp.Literal):
        zero = str(origin.this.this).startswith("1900-01-01")
    while isinstance(since, exp.Paren):
        since = since.this
    if not zero or not isinstance(since, exp.DateDiff) or unit not in BORDERS:
        return None
    first = since.expression
    while isinstance(first, exp.Cast | exp.Paren):
        first = first.this
    same = unit_of(since.args.get("unit") or "day", dialect) == unit
    if not same or str(first.this) not in ("0", "1900-01-01", "1900-01-01 00:00:00"):
        return None
    return truncation(_plain_moment(since.this), unit)


BORDERS = ("year", "quarter", "month", "day")


def _add_months(node: Node, dialect: str) -> Node:
    by = exp.Interval(this=node.expression, unit=exp.Var(this="month"))
    return exp.Paren(this=exp.Add(this=node.this, expression=by))


def _interval(node: Node, dialect: str) -> Node:
    """MySQL's INTERVAL(x, 40, 60): how many of the numbers are not above x."""
    listed = node.this.expressions if isinstance(node.this, exp.Tuple) else []
    if node.args.get("unit") is not None or len(listed) < 2:
        return node
    of, *edges = listed
    tests = [
        exp.If(this=exp.LT(this=of.copy(), expression=edge), true=number(at))
        for at, edge in enumerate(edges)
    ]
    none = exp.If(this=missing(of.copy()), true=number(-1))
    return exp.Case(ifs=[none, *tests], default=number(len(edges)))


def _between_days(node: Node, dialect: str) -> Node:
    """DATEDIFF(day, a, b) is b - a; other units count borders, or whole units that have passed."""
    later, earlier, unit = node.this, node.args.get("expression"), node.args.get("unit")
    first = UNITS.get(later.name.casefold()) if isinstance(later, exp.Column | exp.Literal) else ""
    if first and isinstance(unit, exp.Expr) and isinstance(earlier, exp.Expr):
        # DATEDIFF(day, a, b) where the words came in another order
        later = unit
        if isinstance(unit, exp.Var | exp.Identifier):
            later = exp.Column(this=exp.Identifier(this=unit.name, quoted=False))
        unit = exp.Var(this=first)
    if not isinstance(earlier, exp.Expr):
        return node
    whole = isinstance(node, exp.TimestampDiff) and dialect != "snowflake"
    named = "day" if unit is None else unit_of(unit, dialect)
    if named == "day":
        days = DaysBetween(
            this=_plain_moment(later), expression=_plain_moment(earlier), whole=whole
        )
        return exp.Paren(this=days)
    if named == "week" and dialect in WEEKS_FROM_SUNDAY and not whole:
        unit = exp.Var(this="week(sunday)")
    whole = whole or (named == "week" and dialect == "duckdb")  # which counts seven days each
    kind = exp.TimestampDiff if whole else exp.DateDiff
    return kind(
        this=_plain_moment(later),
        expression=_plain_moment(earlier),
        unit=exp.Var(this=named)
        if unit is None or not isinstance(unit, exp.Var) or "(" not in unit.name
        else unit,
    )


# --- functions that sqlglot does not know by name -----------------------------------------------


def _function(node: Node, dialect: str) -> Node:
    rule = FUNCTIONS.get((str(node.this).upper(), len(node.expressions)))
    return node if rule is None else rule(list(node.expressions), dialect)


def _plus_one(of: Node) -> Node:
    return exp.Paren(this=exp.Add(this=of, expression=number(1)))


def _place_among(of: Node, listed: list[Node]) -> Node:
    """FIELD(x, 'a', 'b'): the place of x among them, 0 where it is none of them."""
    tests = [
        exp.If(this=exp.EQ(this=of.copy(), expression=each), true=number(at))
        for at, each in enumerate(listed, 1)
    ]
    return exp.Case(ifs=tests, default=number(0))


def _year_week(given: list[Node], dialect: str) -> Node:
    """YEARWEEK(day, 3): the ISO year and week, 202401."""
    if given[1].name not in ("1", "3"):
        raise wrong(given[0], Reason.WRONG_FORM, "YEARWEEK goes with the mode 3, of ISO weeks")
    year, week = (part(unit, given[0].copy()) for unit in ("isoyear", "week"))
    return exp.Paren(this=exp.Add(this=exp.Mul(this=year, expression=number(100)), expression=week))


def _quantile_of(given: list[Node], dialect: str) -> Node:
    return exp.Quantile(this=given[0], quantile=given[1])


def _named_part(given: list[Node], dialect: str) -> Node:
    unit = exp.Var(this=unit_of(given[0], dialect))
    return _extract(exp.Extract(this=unit, expression=given[1]), dialect)


def _formatted_by(given: list[Node], dialect: str) -> Node:
    form, of = (given[0], given[1]) if _is_text(given[0]) else (given[1], given[0])
    return _formatted(exp.TimeToStr(this=of, format=form), dialect)


def _added(given: list[Node], dialect: str) -> Node:
    unit = exp.Var(this=unit_of(given[0], dialect))
    by = exp.Interval(this=given[1], unit=unit)
    return exp.Paren(this=exp.Add(this=_plain_moment(given[2]), expression=by))


FUNCTIONS: dict[tuple[str, int], Callable[[list[Node], str], Node]] = {
    ("IFF", 3): lambda given, _: chosen(given[0], given[1], given[2]),
    ("IIF", 3): lambda given, _: chosen(given[0], given[1], given[2]),
    ("ISNOTNULL", 1): lambda given, _: exp.Not(this=exp.Paren(this=missing(given[0]))),
    ("COUNT_STAR", 0): lambda given, _: exp.Count(this=exp.Star()),
    ("MEAN", 1): lambda given, _: exp.Avg(this=given[0]),
    ("FAVG", 1): lambda given, _: exp.Avg(this=given[0]),
    ("FSUM", 1): lambda given, _: exp.Sum(this=given[0]),
    ("KAHAN_SUM", 1): lambda given, _: exp.Sum(this=given[0]),
    ("SUMKAHAN", 1): lambda given, _: exp.Sum(this=given[0]),
    ("VARIANCE_POP", 1): lambda given, _: exp.VariancePop(this=given[0]),
    ("VARIANCE_SAMP", 1): lambda given, _: exp.Variance(this=given[0]),
    ("SEM", 1): lambda given, _: exp.Paren(
        this=exp.Div(
            this=exp.StddevPop(this=given[0]),
            expression=exp.Sqrt(this=exp.Count(this=given[0].copy())),
        )
    ),
    ("LOG1P", 1): lambda given, _: exp.Ln(this=_plus_one(given[0])),
    ("LOG2", 1): lambda given, _: exp.Log(this=number(2), expression=given[0]),
    ("LOG10", 1): lambda given, _: exp.Log(this=given[0]),
    ("SQUARE", 1): lambda given, _: exp.Pow(this=given[0], expression=number(2)),
    ("CBRT", 1): lambda given, _: exp.Cbrt(this=given[0]),
    ("BROUND", 1): lambda given, _: exp.Round(this=given[0]),
    ("BROUND", 2): lambda given, _: exp.Round(this=given[0], decimals=given[1]),
    ("PREFIX", 2): lambda given, _: exp.StartsWith(this=given[0], expression=given[1]),
    ("SUFFIX", 2): lambda given, _: exp.EndsWith(this=given[0], expression=given[1]),
    ("CHARINDEX", 2): lambda given, _: exp.StrPosition(this=given[1], substr=given[0]),
    ("DATE", 1): lambda given, _: exp.Cast(this=given[0], to=exp.DataType(this=exp.DType.DATE)),
    **{
        ("CHOOSE", count): lambda given, _: exp.Elt(this=given[0], expressions=given[1:])
        for count in range(2, 40)
    },
    ("ISNULL", 2): lambda given, _: exp.Coalesce(this=given[0], expressions=given[1:]),
    ("ISNULL", 1): lambda given, _: missing(given[0]),
    ("ZEROIFNULL", 1): lambda given, _: exp.Coalesce(this=given[0], expressions=[number(0)]),
    ("NULLIFZERO", 1): lambda given, _: exp.Nullif(this=given[0], expression=number(0)),
    ("DIV0", 2): lambda given, _: exp.SafeDivide(this=given[0], expression=given[1]),
    ("DIV0NULL", 2): lambda given, _: exp.SafeDivide(this=given[0], expression=given[1]),
    ("VAR", 1): lambda given, _: exp.Variance(this=given[0]),
    ("VARP", 1): lambda given, _: exp.VariancePop(this=given[0]),
    ("STD", 1): lambda given, _: exp.Stddev(this=given[0]),
    ("STDEV", 1): lambda given, _: exp.Stddev(this=given[0]),
    ("STDEVP", 1): lambda given, _: exp.StddevPop(this=given[0]),
    ("STDDEVP", 1): lambda given, _: exp.StddevPop(this=given[0]),
    **dict.fromkeys(
        (
            (name, 2)
            for name in (
                "QUANTILE_CONT",
                "QUANTILE_DISC",
                "PERCENTILE",
                "APPROX_PERCENTILE",
                "APPROX_QUANTILE",
                "PERCENTILE_APPROX",
                "PERCENTILE_DISC",
            )
        ),
        _quantile_of,
    ),
    **dict.fromkeys([("DATEPART", 2), ("DATE_PART", 2), ("DATE_EXTRACT", 2)], _named_part),
    ("EVERY", 1): lambda given, dialect: _any_true(exp.LogicalAnd(this=given[0]), dialect),
    **{
        ("FIELD", count): lambda given, _: _place_among(given[0], given[1:])
        for count in range(2, 40)
    },
    ("YEARWEEK", 2): lambda given, dialect: _year_week(given, dialect),
    ("AGE", 1): lambda given, _: exp.Anonymous(
        this="AGE", expressions=[exp.CurrentDate(), given[0]]
    ),
    **dict.fromkeys(
        [("DATESUB", 3), ("DATE_SUB", 3)],
        lambda given, dialect: exp.TimestampDiff(
            this=given[2], expression=given[1], unit=exp.Var(this=unit_of(given[0], dialect))
        ),
    ),
    ("WEEKDAY", 1): lambda given, dialect: part(
        "dow" if dialect == "duckdb" else "monday0", given[0]
    ),
    ("MONTHNAME", 1): lambda given, _: exp.TimeToStr(this=given[0], format=text("%B")),
    ("DAYNAME", 1): lambda given, _: exp.TimeToStr(this=given[0], format=text("%A")),
    **dict.fromkeys(
        [("FORMAT_DATE", 2), ("DATE_FORMAT", 2), ("STRFTIME", 2), ("FORMAT_TIMESTAMP", 2)],
        _formatted_by,
    ),
    ("DATEADD", 3): _added,
    ("NOW", 0): lambda given, _: exp.CurrentTimestamp(),
    ("GETDATE", 0): lambda given, _: exp.CurrentTimestamp(),
    ("SYSDATE", 0): lambda given, _: exp.CurrentTimestamp(),
    ("TODAY", 0): lambda given, _: exp.CurrentDate(),
    ("PMOD", 2): lambda given, _: exp.Mod(this=given[0], expression=given[1]),
    ("REGEXP_CONTAINS", 2): lambda given, _: exp.RegexpLike(this=given[0], expression=given[1]),
    ("REGEXP_MATCHES", 2): lambda given, _: exp.RegexpLike(this=given[0], expression=given[1]),
}
"""By name and number of arguments."""

RULES: dict[type[Node], Rule] = {
    exp.If: _if,
    exp.Case: _case,
    exp.DecodeCase: _decode,
    exp.Is: _is,
    exp.NullSafeEQ: _same,
    exp.NullSafeNEQ: _same,
    exp.EqualNull: _same,
    exp.Fetch: _fetch,
    exp.Limit: _limit,
    exp.Count: _count,
    exp.CountIf: _count_if,
    exp.ApproxQuantile: _quantile,
    exp.PercentileDisc: _percentile,
    exp.Bracket: _bracket,
    exp.ApproxDistinct: _approx_distinct,
    exp.Extract: _extract,
    exp.Year: _part("year"),
    exp.Quarter: _part("quarter"),
    exp.Month: _part("month"),
    exp.Week: _week,
    exp.WeekOfYear: _part("week"),
    exp.Day: _part("day"),
    exp.DayOfMonth: _part("day"),
    exp.DayOfYear: _part("dayofyear"),
    exp.DayOfWeek: _part("dayofweek"),
    exp.DayOfWeekIso: _part("isodow"),
    exp.Hour: _part("hour"),
    exp.Minute: _part("minute"),
    exp.Second: _part("second"),
    exp.DateTrunc: _truncated,
    exp.TimestampTrunc: _truncated,
    exp.DatetimeTrunc: _truncated,
    exp.DateBin: _time_bucket,
    exp.TimeToStr: _formatted,
    exp.Dayname: _day_name("%A", "%a"),
    exp.Monthname: _day_name("%B", "%b"),
    exp.TsOrDsToDate: _as_date,
    exp.Date: _as_date,
    exp.StrToDate: _as_date,
    exp.TsOrDsToTimestamp: _as_time,
    exp.TimeStrToTime: _as_time,
    exp.TryCast: _cast,
    exp.Cast: _cast,
    exp.ToChar: _to_char,
    exp.ToNumber: _to_number,
    exp.String: _to_text,
    exp.Interval: _interval,
    exp.Hll: _approx_distinct,
    exp.Convert: _converted,
    exp.DateFromParts: _date_of_parts,
    exp.DateAdd: _shifted(1),
    exp.DatetimeAdd: _shifted(1),
    exp.TimestampAdd: _shifted(1),
    exp.TsOrDsAdd: _shifted(1),
    exp.DateSub: _shifted(-1),
    exp.DatetimeSub: _shifted(-1),
    exp.TimestampSub: _shifted(-1),
    exp.AddMonths: _add_months,
    exp.DateDiff: _between_days,
    exp.DatetimeDiff: _between_days,
    exp.TimestampDiff: _between_days,
    exp.Anonymous: _function,
    exp.Nvl2: _nvl2,
    exp.EQ: _row_test,
    exp.NEQ: _row_test,
    exp.In: _row_test,
    exp.Like: _any_pattern,
    exp.ILike: _any_pattern,
    exp.SimilarTo: _similar,
    exp.Between: _between,
    exp.Coalesce: _coalesced,
    exp.National: _national,
    exp.Dot: _method,
    exp.Log: _log,
    exp.Div: _divided,
    exp.Select: _select,
    exp.Window: _within_over,
    exp.LogicalOr: _any_true,
    exp.LogicalAnd: _any_true,
    exp.AnyValue: _any_value,
    exp.StrToTime: _as_time,
    exp.Timestamp: _as_time,
    **dict.fromkeys(
        (
            exp.RegrSlope,
            exp.RegrIntercept,
            exp.RegrR2,
            exp.RegrCount,
            exp.RegrAvgx,
            exp.RegrAvgy,
        ),
        _regression,
    ),
}
"""What is written in the house spelling, and how."""
