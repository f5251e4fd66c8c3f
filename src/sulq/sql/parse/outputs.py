"""SELECT, HAVING and ORDER BY expressions: aggregates, and public arithmetic on noisy answers."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

from sqlglot import exp

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.query.expressions import Expression, operation
from sulq.kernel.schema.columns import Category
from sulq.sql.parse.calendar import PARTS, part_of
from sulq.sql.parse.declared import (
    REAL,
    WHOLE,
    bare,
    core,
    is_chosen,
    is_constant,
    is_there,
    mapped,
    moment_constant,
    plain_row,
    shape,
    value_of,
)
from sulq.sql.parse.grammar import (
    AGGREGATES,
    CALCULATIONS,
    DIFFERENCES,
    STRUCTURE,
    TESTS,
    DaysBetween,
    Node,
    check_options,
    located,
    refused,
    span,
    spoken,
    wrong,
)
from sulq.sql.parse.group_by import BucketRows
from sulq.sql.parse.row_expr import is_condition, read_node
from sulq.sql.parse.scope import Scope, find, resolved
from sulq.sql.parse.select import (
    COMPARISONS,
    MOMENTS,
    Aggregate,
    Calculation,
    ConstantOutput,
    Grouping,
    GroupKey,
    IntervalEnd,
    Mapped,
    Ordering,
    Output,
    OverGroups,
    Scalar,
    Select,
    Windowed,
    aggregates_of,
    branches,
    checked,
    kind_of,
    kind_of_value,
)
from sulq.sql.parse.tabulation import WORK, evaluated
from sulq.sql.parse.texts import ALWAYS_A_TEST, TEXT_TYPES, computed
from sulq.sql.parse.texts import FUNCTIONS as TEXT_FUNCTIONS

MEANT = (
    "the outer SELECT holds aggregates, group columns and arithmetic on them"
    " (docs: reference/sql.md)"
)
KINDS: dict[type[Node], str] = {
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.Corr: "corr",
    exp.CovarSamp: "covar_samp",
    exp.CovarPop: "covar_pop",
    exp.Min: "min",
    exp.Max: "max",
}
SIGNS: dict[type[Node], str] = {
    DaysBetween: "-", exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/",
    exp.SafeDivide: "/", exp.EQ: "=",
    exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.And: "and",
    exp.Or: "or",
}  # fmt: skip
FUNCTIONS: dict[type[Node], str] = {
    exp.Neg: "negate", exp.Abs: "abs", exp.Sqrt: "sqrt", exp.Ln: "ln", exp.Exp: "exp",
    exp.Log: "log10", exp.Floor: "floor", exp.Ceil: "ceil",
}  # fmt: skip
NUMERIC_CASTS = WHOLE | REAL
WINDOWS: dict[type[Node], str] = {
    exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max", exp.Count: "count",
    exp.Rank: "rank", exp.DenseRank: "dense_rank", exp.RowNumber: "row_number", exp.Lag: "lag",
    exp.Lead: "lead", exp.Ntile: "ntile", exp.PercentRank: "percent_rank",
    exp.CumeDist: "cume_dist", exp.FirstValue: "first_value", exp.LastValue: "last_value",
}  # fmt: skip
RANKS = ("rank", "dense_rank", "row_number", "ntile", "percent_rank", "cume_dist")
OF_KEYS = {*TEXT_FUNCTIONS, *ALWAYS_A_TEST, exp.Like, *PARTS}
SAMPLES: dict[str, object] = {
    "text": "a", "": "a", "number": 1, "date": datetime.date(2024, 1, 1),
    "datetime": datetime.datetime(2024, 1, 1),
}  # fmt: skip


def _where_it_can(made: Callable[[Any], object], value: object) -> object:
    """NULL of NULL, and of what the function has no value for. It is worked out when all is paid,
    and no text that somebody wrote into a row may make that fail."""
    try:
        return None if value is None else made(value)
    except (ValueError, TypeError, OverflowError, InvalidQuery):
        return None


KEY = "key"
"""The name that a grouped expression goes by in a function of it."""


def _plain_value(value: object) -> object:
    return float(value) if isinstance(value, Fraction) else value


def function_of(node: Node, kind: str) -> Callable[[Node, Any], object]:
    """How a function of a key is worked out at one value."""
    if isinstance(node, PARTS):
        if kind not in MOMENTS:
            raise wrong(node, Reason.WRONG_TYPE, f"{spoken(node)} wants a day or a time")
        return part_of
    return computed


@dataclass(frozen=True, slots=True, kw_only=True)
class Calculations:
    """Reads expressions on noisy answers; who inherits it knows columns and aggregates."""

    groups: Sequence[Grouping] = ()
    aliases: Mapping[str, Output] = field(default_factory=dict)
    inner: Callable[[Node], Select] | None = None
    """Reads a SELECT inside brackets."""
    may_be_missing: bool = False
    """Whether a noisy value may be NULL: on the far side of a LEFT JOIN."""

    def leaf(self, node: Node, aliases_first: bool) -> Output | None:
        """A column, a key or an aggregate; None of what is made of such."""
        raise NotImplementedError

    def of_key(self, node: Node) -> Output | None:
        """A function of one key: of a text, of a day or of a time."""
        if type(node) not in OF_KEYS and not (isinstance(node, exp.Cast) and _is_text(node)):
            return None
        columns = list(node.find_all(exp.Column))
        if not columns or any(column.sql() != columns[0].sql() for column in columns):
            return None
        if node.find(exp.AggFunc, exp.Window, exp.Query) is not None:
            return None
        of = self.output(columns[0])
        kind = kind_of(of, self.groups)
        if aggregates_of(of) or kind == "truth":
            return None
        made = partial(function_of(node, kind), node)
        try:  # what it cannot do is found out before anything is asked
            found = made(SAMPLES[kind])
        except (ValueError, TypeError, OverflowError):
            raise wrong(node, Reason.WRONG_FORM, f"{spoken(node)} is not understood here") from None
        return Mapped(of, partial(_where_it_can, made), kind_of_value(found))

    def grouping(self, node: Node) -> Output:
        """GROUPING(key, ...): a bit for each key that is left out."""
        raise refused(node, remedy="GROUPING goes with GROUP BY ROLLUP, CUBE or GROUPING SETS")

    # --- outputs --------------------------------------------------------------------------------

    def output(self, node: Node, aliases_first: bool = False) -> Output:
        """An output, or a refusal that says where."""
        try:
            node = bare(node)
            found = self.leaf(node, aliases_first)
            return self._calculation(node, aliases_first) if found is None else found
        except InvalidQuery as error:
            raise located(error, span(node)) from None

    def alias(self, node: Node) -> Output | None:
        if not isinstance(node, exp.Column) or node.table:
            return None
        check_options(node, STRUCTURE)
        return self.aliases.get(node.name.casefold())

    def _calculation(self, node: Node, aliases_first: bool) -> Output:
        kind = type(node)
        if kind in TESTS:
            check_options(node, TESTS)
            return self._test(node, aliases_first)
        made = self.of_key(node)
        if made is not None:
            return made
        if kind not in CALCULATIONS:
            raise refused(node) if kind in DIFFERENCES else refused(node, remedy=MEANT)
        check_options(node, CALCULATIONS)

        def part(name: str = "this") -> Output:
            inner = node.args.get(name)
            if not isinstance(inner, exp.Expr):
                raise refused(node)
            return self.output(inner, aliases_first)

        if is_constant(node):
            return ConstantOutput(value_of(node))  # type: ignore[arg-type]
        if kind is DaysBetween:
            return self._days_between(node, part(), part("expression"))
        if kind in SIGNS:
            return self._made(SIGNS[kind], (part(), part("expression")), node)
        if kind in FUNCTIONS:
            return self._made(FUNCTIONS[kind], (part(),), node)
        match node:
            case exp.Round() | exp.Trunc():
                name = "round" if isinstance(node, exp.Round) else "trunc"
                return self._made(name, (part(), self._digits(node)), node)
            case exp.Pow():
                return self._power(node, part)
            case exp.Case():
                return self._case(node, aliases_first)
            case exp.Nullif():
                return self._nullif(node, part)
            case exp.Coalesce() if isinstance(node.this, exp.Expr):
                if all(is_constant(instead) for instead in node.expressions):
                    return self._noted_coalesce(node, part)
            case exp.Cast() if node.args["to"].this in NUMERIC_CASTS:
                return self._cast(node, part())
            case exp.Cast() if not is_constant(node.this) and not aggregates_of(part()):
                return part()  # a key in another format
            case exp.Cast() if is_constant(node.this):
                found = read_node(node)
                return ConstantOutput(getattr(found, "value", None))
            case exp.Window():
                return self._over(node)
            case exp.Anonymous():
                return self._interval_end(node)
            case exp.Subquery():
                return self._scalar(node)
            case exp.Grouping() | exp.GroupingId():
                return self.grouping(node)
        raise refused(node, remedy=MEANT)

    def _made(self, operator: str, parts: tuple[Output, ...], node: Node) -> Calculation:
        if operator in COMPARISONS and {"date", "datetime"} & {
            kind_of(part, self.groups) for part in parts
        }:
            parts = tuple(_as_moment(part, node) for part in parts)
        return checked(operator, parts, self.groups, node)

    def _days_between(self, node: Node, *parts: Output) -> Output:
        """Days between two noisy days or times; times are in seconds."""
        between = self._made("-", parts, node)
        if all(kind_of(part, self.groups) != "datetime" for part in parts):
            return between
        return self._made("/", (between, ConstantOutput(86_400)), node)

    def _digits(self, node: Node) -> ConstantOutput:
        given = node.args.get("decimals")
        value = 0 if given is None else value_of(given) if is_constant(given) else None
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 15:
            raise wrong(
                node, Reason.WRONG_FORM, "ROUND wants a whole number of digits: ROUND(x, 2)"
            )
        return ConstantOutput(value)

    def _case(self, node: Node, aliases_first: bool) -> Output:
        """CASE over noisy values and keys, chosen by what is shown."""
        parts: list[Output] = []
        for branch in node.args["ifs"]:
            test = self.output(branch.this, aliases_first)
            if kind_of(test, self.groups) not in ("truth", ""):
                raise wrong(branch, Reason.WRONG_FORM, "WHEN wants a test; write COUNT(*) > 100")
            parts += [test, self.output(branch.args["true"], aliases_first)]
        default = node.args.get("default")
        parts.append(
            ConstantOutput(None) if default is None else self.output(default, aliases_first)
        )
        kinds = {kind_of(part, self.groups) for part in branches(tuple(parts))} - {""}
        if len(kinds) > 1:
            raise wrong(
                node,
                Reason.WRONG_TYPE,
                "a CASE gives values of one kind: all numbers, or all texts",
            )
        return Calculation("case", tuple(parts))

    def _power(self, node: Node, part: Callable[..., Output]) -> Output:
        exponent = part("expression")
        if not isinstance(exponent, ConstantOutput) or exponent.value not in (1, 2, 3, 4):
            raise wrong(node, Reason.WRONG_FORM, "POWER wants a constant from 1 to 4: POWER(x, 2)")
        return self._made("power", (part(), exponent), node)

    def _cast(self, node: Node, found: Output) -> Output:
        """NUMERIC(10, 2) rounds; other numbers are floating point already."""
        given = node.args["to"].expressions
        digits = value_of(given[1].this) if len(given) == 2 else None
        if not isinstance(digits, int):
            return found
        return self._made("round", (found, ConstantOutput(digits)), node)

    def _nullif(self, node: Node, part: Callable[..., Output]) -> Output:
        """NULLIF(x, 0) under a division: a ratio says by itself when nothing is known."""
        if is_constant(node.expression) and value_of(node.expression) == 0:
            return part()
        same = self._made("=", (part(), part("expression")), node)
        return Calculation("case", (same, ConstantOutput(None), part()))

    def _noted_coalesce(self, node: Node, part: Callable[[], Output]) -> Output:
        """Noisy answers are never NULL; a group column may be."""
        found = part()
        if aggregates_of(found) and not self.may_be_missing:
            return found
        rest = tuple(ConstantOutput(value_of(each)) for each in node.expressions)  # type: ignore[arg-type]
        kinds = {kind_of(each, self.groups) for each in rest} - {"", "text"}
        if kinds and kind_of(found, self.groups) == "text":
            raise wrong(
                node,
                Reason.WRONG_TYPE,
                "COALESCE gives values of one kind; texts take quotes: COALESCE(city, 'none')",
            )
        return Calculation("coalesce", (found, *rest))

    def _over(self, node: Node) -> Output:
        """A window function: over released groups, so it is free."""
        inner = node.this
        name = WINDOWS.get(type(inner))
        if isinstance(inner, exp.Anonymous) and str(inner.this).upper() == "RATIO_TO_REPORT":
            whole = exp.Window(this=exp.Sum(this=inner.expressions[0].copy()), over="OVER")
            whole.set("partition_by", [x.copy() for x in node.args.get("partition_by") or ()])
            return self._made("/", (self.output(inner.expressions[0]), self._over(whole)), node)
        if name is None or node.args.get("over") != "OVER":
            raise wrong(
                node,
                Reason.NOT_IN_LANGUAGE,
                "this window is not known; over groups there are SUM, AVG, MIN, MAX, COUNT, RANK,"
                " DENSE_RANK, ROW_NUMBER, LAG, LEAD, FIRST_VALUE and LAST_VALUE ... OVER (...)",
            )
        of = None
        if name not in RANKS and not isinstance(inner.this, exp.Star):
            if not isinstance(inner.this, exp.Expr):
                raise refused(node)
            of = self.output(inner.this)
        partition = tuple(self.output(each) for each in node.args.get("partition_by") or ())
        order = self._window_order(node.args.get("order"))
        if name == "sum" and not partition and not order:
            assert of is not None  # noqa: S101
            if aggregates_of(of):
                return OverGroups(of)
        if name in RANKS and not order:
            raise wrong(node, Reason.WRONG_FORM, f"{name.upper()}() wants OVER (ORDER BY ...)")
        running, frame, after = self._frame(node, bool(order))
        offset = inner.this if name == "ntile" else inner.args.get("offset")
        instead = inner.args.get("default")
        default = None if instead is None else self.output(instead)
        step = 1 if offset is None else value_of(offset) if is_constant(offset) else None
        if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step <= 10_000:
            raise wrong(node, Reason.WRONG_FORM, "LAG, LEAD and NTILE want a whole number")
        return Windowed(name, of, partition, order, running, frame, step, default, after)

    def _window_order(self, order: Node | None) -> tuple[Ordering, ...]:
        if order is None:
            return ()
        check_options(order)
        found = []
        for part in order.expressions:
            check_options(part)
            found.append(Ordering(self.output(part.this), bool(part.args.get("desc")), False))
        return tuple(found)

    def _frame(self, node: Node, ordered: bool) -> tuple[bool, int | None, int]:
        """Whether it runs, over how many groups before the current one and how many after it."""
        spec = node.args.get("spec")
        if spec is None:
            return ordered, None, 0
        rows = str(spec.args.get("kind") or "").upper() == "ROWS"
        before = _reach(spec, "start", "PRECEDING")
        after = 0 if spec.args.get("end") is None else _reach(spec, "end", "FOLLOWING")
        if before == after == EVERY:
            return False, None, 0
        if rows and before is not None and after is not None:
            return True, before, after
        if before == EVERY and after == 0:
            return True, None, 0
        raise wrong(
            node,
            Reason.WRONG_FORM,
            "a frame is ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING, CURRENT ROW or UNBOUNDED",
        )

    def _interval_end(self, node: Node) -> Output:
        name = str(node.this).upper()
        if name not in ("DP_INTERVAL_LOW", "DP_INTERVAL_HIGH"):
            raise refused(node, remedy=MEANT)
        if len(node.expressions) != 1:
            raise wrong(node, Reason.WRONG_FORM, f"{name} wants one alias: {name}(n)")
        inner = node.expressions[0]
        found = self.alias(inner)
        if found is None:
            found = self.output(inner)
        if not aggregates_of(found):
            raise wrong(node, Reason.WRONG_FORM, f"{name} wants the alias of an aggregate")
        return IntervalEnd(found, name.endswith("HIGH"))

    # --- tests on noisy values ------------------------------------------------------------------

    def _test(self, node: Node, aliases_first: bool) -> Output:
        def read(inner: object) -> Output:
            if not isinstance(inner, exp.Expr):
                raise refused(node)
            return self.output(inner, aliases_first)

        match node:
            case exp.Not():
                return self._made("not", (read(node.this),), node)
            case exp.Between():
                x, low, high = (read(node.args.get(name)) for name in ("this", "low", "high"))
                above, below = (self._made("<=", pair, node) for pair in ((low, x), (x, high)))
                return self._made("and", (above, below), node)
            case exp.In():
                if not node.expressions:
                    raise wrong(node, Reason.WRONG_FORM, "IN wants a list of constants")
                return self._made("in", (read(node.this), *map(read, node.expressions)), node)
            case exp.Is():
                if not isinstance(node.expression, exp.Null):
                    raise wrong(node, Reason.WRONG_FORM, "IS knows only NULL; write x IS NULL")
                return Calculation("null", (read(node.this),))
        parts = (read(node.this), read(node.args.get("expression")))
        return self._made(SIGNS[type(node)], parts, node)

    def _scalar(self, node: Node) -> Output:
        """(SELECT ...): one value, asked together with what stands around it."""
        if self.inner is None or not isinstance(node.this, exp.Query):
            raise refused(node)
        found = self.inner(node.this)
        if len(found.items) != 1 or not _is_one_row(found):
            raise wrong(
                node,
                Reason.WRONG_FORM,
                "a SELECT in brackets gives one value: one aggregate without GROUP BY, or LIMIT 1",
            )
        of = found.items[0].of
        return Scalar(found, of, kind_of(of, found.groups))


EVERY = 10**9
"""As many groups as there are."""


def _reach(spec: Node, end: str, way: str) -> int | None:
    """How far a frame goes before or after the current group; None where it goes elsewhere."""
    said, side = spec.args.get(end), str(spec.args.get(f"{end}_side") or "").upper()
    if isinstance(said, str):
        if said.upper() == "CURRENT ROW":
            return 0
        return EVERY if said.upper() == "UNBOUNDED" and side == way else None
    count = value_of(said) if isinstance(said, exp.Expr) and is_constant(said) else None
    known = isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= EVERY
    return count if known and side == way else None  # type: ignore[return-value]


def _is_text(node: Node) -> bool:
    return node.args["to"].this in TEXT_TYPES


def _is_one_row(select: Select) -> bool:
    if select.limit == 1:
        return True
    return not select.groups if select.source is None else select.gathers == ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader(Calculations):
    """Reads expressions of one SELECT of rows."""

    scope: Scope
    rows: BucketRows
    keys: Mapping[object, int]  # shape of a group column -> place
    every: Sequence[object] | None = None  # of ROLLUP: shapes of all keys, also those left out

    # --- rows -----------------------------------------------------------------------------------

    def row(self, node: Node) -> Expression:
        """A row expression over declared columns."""
        return plain_row(resolved(node, self.scope), self.rows.schema)

    def _value(self, node: Node) -> Expression:
        """As a number; a condition is 1, 0 or NULL."""
        found = self.row(node)
        if is_condition(found):
            found = operation("choose", found, 1, operation("choose", ~found, 0, None))
        return found

    def _counted(self, node: Node) -> Expression:
        """COUNT(x) only asks whether x is there, so labels will do."""
        schema = self.rows.schema
        try:
            meant = core(resolved(node, self.scope), schema)
        except InvalidQuery:
            return self._value(node)
        return plain_row(mapped(meant, is_there), schema) if is_chosen(meant) else self._value(node)

    # --- outputs ----------------------------------------------------------------------------------

    def leaf(self, node: Node, aliases_first: bool) -> Output | None:
        if aliases_first and (named := self.alias(node)) is not None:
            return named
        key = self._key(node)
        if key is not None:
            return key
        if type(node) in AGGREGATES:
            return self._told(self.aggregate(node), node)
        if isinstance(node, exp.Column):
            named = self.alias(node)
            if named is not None:
                return named
            meant = resolved(node, self.scope)  # an unknown name is refused as one
            if isinstance(meant, exp.Column) and meant.name == self.rows.schema.unit:
                raise wrong(
                    node,
                    Reason.PERSON_COLUMN,
                    f"{node.name!r:.60} is the person column; rows are never shown:"
                    f" count persons with COUNT(DISTINCT {node.name:.60})",
                    column=node.name,
                )
            column = self.rows.schema[meant.name] if isinstance(meant, exp.Column) else None
            name = "COUNT" if isinstance(column, Category) else "AVG"
            raise wrong(
                node,
                Reason.UNGROUPED,
                f"{node.name!r:.60} is neither grouped by nor inside an aggregate;"
                f" write GROUP BY {node.name:.60} or, for instance, {name}({node.name:.60})",
                column=node.name,
            )
        return None

    def _key(self, node: Node) -> Output | None:
        if not (self.keys or self.every) or is_constant(node):
            return None
        for part in node.walk():
            if isinstance(part, exp.AggFunc | exp.Window | exp.Query):
                return None
            if isinstance(part, exp.Column) and find(part, self.scope) is None:
                return None
        meant = shape(resolved(node, self.scope))
        if meant in self.keys:
            return GroupKey(self.keys[meant])
        return ConstantOutput(None) if meant in (self.every or ()) else None

    def of_key(self, node: Node) -> Output | None:
        found = self._of_grouped(node)
        return Calculations.of_key(self, node) if found is None else found

    def _of_grouped(self, node: Node) -> Output | None:
        """A function of one grouped expression: TO_CHAR(DATE_TRUNC('month', seen), 'YYYY-MM')."""
        if type(node) not in WORK or (type(node) in CALCULATIONS and node.find(*PARTS) is None):
            return None
        whole, keys = node.copy(), set()
        for part in list(whole.walk()):
            if part is whole or part.parent is None or is_constant(part):
                continue
            if isinstance(part, exp.Column) and part.name == KEY:
                continue
            key = self._key(part)
            if isinstance(key, GroupKey):
                keys.add(key.place)
                part.replace(exp.Column(this=exp.Identifier(this=KEY, quoted=True)))
        left = {column.name for column in whole.find_all(exp.Column)}
        if len(keys) != 1 or left != {KEY} or whole.find(exp.AggFunc, exp.Window) is not None:
            return None
        (place,) = keys
        if self.groups[place].undeclared:
            return None  # its values are not known yet
        values = {label: _plain_value(evaluated(whole, {KEY: label}))
                  for label in self.groups[place].labels}  # fmt: skip
        kinds = {kind_of_value(value) for value in values.values()} - {""}
        if len(kinds) > 1:
            raise wrong(node, Reason.WRONG_TYPE, f"{spoken(node)} gives values of several kinds")
        return Mapped(GroupKey(place), values.get, kinds.pop() if kinds else "text")

    def grouping(self, node: Node) -> Output:
        if self.every is None:
            return Calculations.grouping(self, node)
        named = [shape(resolved(each, self.scope)) for each in node.expressions]
        if not named and isinstance(node, exp.GroupingId):
            named = list(self.every)
        bits = 0
        for meant in named:
            if meant not in self.every:
                raise wrong(node, Reason.UNGROUPED, "GROUPING wants keys of GROUP BY")
            bits = 2 * bits + (meant not in self.keys)
        return ConstantOutput(bits)

    # --- aggregates -----------------------------------------------------------------------------

    def _told(self, found: Aggregate, node: Node) -> Aggregate:
        """With its place, and whether it is a day or a time."""
        kind = "number" if found.of is None else self.rows.kind(found.of)
        if kind == "number" or found.kind not in ("sum", "avg", "quantile", "min", "max"):
            return replace(found, span=span(node))
        if found.kind == "sum":
            raise wrong(
                node, Reason.WRONG_TYPE, "a sum of days or times; take AVG, MIN, MAX or MEDIAN"
            )
        return replace(found, span=span(node), moment=kind)

    def aggregate(self, node: Node) -> Aggregate:
        """An aggregate over rows."""
        check_options(node, AGGREGATES)
        match node:
            case exp.Filter():
                return self._filtered(node)
            case exp.Count():
                return self._count(node)
            case exp.CountIf():
                return Aggregate("count", where=self._condition(node.this, node))
            case exp.WithinGroup():
                return self._within_group(node)
            case exp.Median():
                return Aggregate("quantile", self._inner(node), share=Fraction(1, 2))
            case exp.Quantile():
                share = self._share(node.args.get("quantile"), node)
                return Aggregate("quantile", self._inner(node), share=share)
            case exp.PercentileCont() if node.args.get("expression") is not None:
                share = self._share(node.expression, node)
                return Aggregate("quantile", self._inner(node), share=share)
            case exp.PercentileCont():
                raise wrong(
                    node,
                    Reason.WRONG_FORM,
                    "PERCENTILE_CONT of what? write PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)",
                )
            case exp.Distinct():
                raise refused(node)
            case exp.Corr() | exp.CovarSamp() | exp.CovarPop():
                first, second = (self._inner(node, name) for name in ("this", "expression"))
                return Aggregate(KINDS[type(node)], first, other=second)
        return Aggregate(KINDS[type(node)], self._inner(node))

    def _inner(self, node: Node, argument: str = "this") -> Expression:
        inner = node.args.get(argument)
        if isinstance(inner, exp.Distinct):
            raise wrong(
                node,
                Reason.DISTINCT,
                "DISTINCT in an aggregate; there is only COUNT(DISTINCT person)",
            )
        if not isinstance(inner, exp.Expr):
            raise refused(node)
        for part in inner.find_all(exp.AggFunc, exp.Window):
            raise wrong(part, Reason.AGGREGATE, f"an aggregate inside an aggregate; {MEANT}")
        return self._value(inner)

    def _condition(self, node: object, whole: Node) -> Expression:
        if not isinstance(node, exp.Expr):
            raise refused(whole)
        for part in node.find_all(exp.AggFunc, exp.Window):
            raise wrong(
                part, Reason.AGGREGATE, "an aggregate inside a condition on rows; use HAVING"
            )
        return self.row(node)

    def _count(self, node: Node) -> Aggregate:
        inner = node.this
        if isinstance(inner, exp.Star):
            check_options(inner)
            return Aggregate("count")
        if isinstance(inner, exp.Distinct):
            return self._persons(node, inner)
        if inner is None:
            raise wrong(node, Reason.WRONG_FORM, "COUNT of what? write COUNT(*), which counts rows")
        if isinstance(inner, exp.Expr) and is_constant(inner):
            none = value_of(inner) is None
            return Aggregate("count", where=read_node(exp.Boolean(this=False)) if none else None)
        if not isinstance(inner, exp.Expr):
            raise refused(node)
        for part in inner.find_all(exp.AggFunc, exp.Window):
            raise wrong(part, Reason.AGGREGATE, f"an aggregate inside an aggregate; {MEANT}")
        tested = is_condition(self.row(inner)) if not is_chosen(inner) else False
        return Aggregate("count", self._counted(inner), tested=tested)

    def _persons(self, node: Node, distinct: Node) -> Aggregate:
        check_options(distinct, AGGREGATES)
        named = [bare(x) for x in distinct.expressions]
        one = named[0] if len(named) == 1 else None
        if self.rows.schema.unit == "row" or not isinstance(one, exp.Column):
            raise wrong(
                node,
                Reason.DISTINCT,
                "COUNT(DISTINCT ...) counts declared values, without GROUP BY, and persons, on a"
                " table that protects persons (its owner declares unit = the person column); count"
                " groups from the rows of GROUP BY instead",
            )
        meant = resolved(one, self.scope)
        if not isinstance(meant, exp.Column) or meant.name != self.rows.schema.unit:
            raise wrong(
                node,
                Reason.DISTINCT,
                f"COUNT(DISTINCT {one.name:.60}); only the person column"
                f" {self.rows.schema.unit!r:.60} can be counted so",
            )
        return Aggregate("persons")

    def _filtered(self, node: Node) -> Aggregate:
        where = node.expression
        check_options(where)
        if type(node.this) not in AGGREGATES:
            raise refused(node)
        inner = self.aggregate(node.this)
        condition = self._condition(where.this, node)
        if inner.where is not None:
            condition = operation("and", inner.where, condition)
        return replace(inner, where=condition)

    def _within_group(self, node: Node) -> Aggregate:
        share_of, order = node.this, node.args.get("expression")
        if not isinstance(order, exp.Order):
            raise refused(node)
        listed = order.expressions
        if type(share_of) is not exp.PercentileCont or len(listed) != 1:
            raise refused(node)
        check_options(order)
        check_options(listed[0])
        check_options(share_of, AGGREGATES)
        share = self._share(share_of.this, node)
        if listed[0].args.get("desc"):
            share = 1 - share
        return Aggregate("quantile", self._inner(listed[0]), share=share)

    def _share(self, node: object, whole: Node) -> Fraction:
        value = value_of(node) if isinstance(node, exp.Expr) and is_constant(node) else None
        if isinstance(value, bool) or not isinstance(value, int | Fraction) or not 0 <= value <= 1:
            raise wrong(whole, Reason.WRONG_FORM, "a quantile wants a constant share from 0 to 1")
        return Fraction(value)


def _as_moment(part: Output, node: Node) -> Output:
    """A text beside a day, as the day it spells."""
    if not isinstance(part, ConstantOutput) or not isinstance(part.value, str):
        return part
    found = moment_constant(part.value)
    if found is None:
        raise wrong(
            node,
            Reason.WRONG_TYPE,
            f"{part.value!r:.40} is not a day; a day is written '2024-02-29'",
        )
    return ConstantOutput(found)
