"""GROUP BY: a column of declared values, or a bucketing of a number, as public cells."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

from sqlglot import exp

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.query import canonical
from sulq.kernel.query.expressions import Column, Expression, Operation, col, operation
from sulq.kernel.query.sum_query import group
from sulq.kernel.schema.bind_rows import RowBinder
from sulq.kernel.schema.columns import EPOCH, Category, Number, Schema
from sulq.kernel.schema.columns import Column as DeclaredColumn
from sulq.kernel.schema.fixed_point import Steps
from sulq.kernel.schema.program import Condition, Quantised
from sulq.kernel.schema.ranges import Truth, World, mentioned, narrowed_by, range_of, truth_of
from sulq.sql.parse.calendar import MONTHS, WEEKDAYS
from sulq.sql.parse.declared import (
    Core,
    bare,
    coded,
    core,
    is_chosen,
    is_constant,
    plain_row,
    value_of,
)
from sulq.sql.parse.grammar import BUCKETS, TESTS, Node, check_options, span, wrong
from sulq.sql.parse.maths import MATHS, lattice_function
from sulq.sql.parse.scope import constant, label_tree
from sulq.sql.parse.select import Grouping
from sulq.sql.parse.step_functions import StepFunction
from sulq.sql.parse.tabulation import tabulated
from sulq.sql.parse.texts import ALWAYS_A_TEST, TEXT_TYPES, is_text_function

MOST_BUCKETS = 10_000
TEST_NODES = (*TESTS, *ALWAYS_A_TEST)
WAYS = (
    "group by a Category or Flag, by a Number with a declared step, or by FLOOR(x / 10) * 10,"
    " WIDTH_BUCKET(x, low, high, n), CASE WHEN ... THEN 'label' END or DATE_TRUNC('month', day)"
)


@dataclass(frozen=True, slots=True, eq=False)
class BucketRows:
    """What WHERE says about the rows, without looking at one."""

    schema: Schema
    binder: RowBinder
    truth: Truth
    condition: Condition
    inside: World
    columns: frozenset[str]

    @classmethod
    def where(cls, rows: Expression, schema: Schema) -> BucketRows:
        binder = RowBinder(schema)
        condition = binder.condition(canonical.truth(rows))
        world = World(frozenset())
        inside, columns = narrowed_by(condition, world), frozenset(mentioned(condition))
        return cls(schema, binder, truth_of(condition, world), condition, inside, columns)

    def range(self, value: Steps) -> tuple[Fraction, Fraction, bool]:
        """The least and the most a value can be, and whether it can be NULL."""
        found = range_of(value.node, self.inside)
        nullable = found.needs is None or not found.needs <= self.truth.present
        low, high = (found.low, found.high) if found.low <= found.high else (value.low, value.high)
        return low * value.step, high * value.step, nullable

    def reach(self, of: Expression) -> tuple[Fraction, Fraction, bool]:
        """`range` of an expression."""
        return self.range(self.binder.number(canonical.value(of)))

    def read(self, node: Node) -> Expression:
        return plain_row(node, self.schema)

    def kind(self, of: Expression) -> str:
        """date, datetime or number; only what mentions a moment needs a look."""
        if not any(
            name in self.schema and _is_moment(self.schema[name]) for name in columns_of(of)
        ):
            return "number"
        return self.binder.number(canonical.value(of)).kind

    def permits(self, leaf: Quantised, low: int, high: int) -> bool:
        """Whether a row may have this value from low to high, in steps."""
        least, most = self.inside.narrowed.get(leaf, (low, high))
        world = World(frozenset(), {}, {leaf: (max(low, least), min(high, most))})
        return truth_of(self.condition, world).verdict != "never"

    def allows(self, column: str, value: object) -> bool:
        if column not in self.columns:
            return True
        world = World(frozenset([column]), {column: value})  # type: ignore[dict-item]
        return truth_of(self.condition, world).verdict != "never"


def _is_moment(column: object) -> bool:
    return isinstance(column, Number) and column.kind != "number"


def columns_of(expression: Expression) -> set[str]:
    """The columns that an expression mentions."""
    match expression:
        case Column(name=name):
            return {name}
        case Operation(operands=operands):
            return set().union(*map(columns_of, operands))
    return set()


def complete_rows(groupings: Iterable[Grouping], schema: Schema) -> list[Expression]:
    """What a row must hold so that no group is of NULL, for columns declared complete: as if WHERE
    said so. Nothing else follows from that declaration, which nobody has checked."""
    names = {
        name
        for grouping in groupings
        if None in grouping.labels
        for name in columns_of(grouping.group.of)
        if schema[name].complete
    }
    return [_is_there(schema[name]) for name in sorted(names)]


def _is_there(column: DeclaredColumn) -> Expression:
    """The column has one of its values."""
    held = col(column.name)
    if isinstance(column, Category):
        return held.isin(list(column.values or ()))
    return held.is_not_null()


def read_grouping(node: Node, rows: BucketRows) -> Grouping:
    """The cells of one GROUP BY expression; columns in it are declared ones."""
    try:
        return _grouping(node, rows)
    except InvalidQuery:
        found = _tabulated(bare(node), rows)
        if found is None:
            raise
        return found


def _tabulated(node: Node, rows: BucketRows) -> Grouping | None:
    """Groups of any function of declared columns that can be worked out."""
    if isinstance(node, exp.Column) or is_constant(node) or _is_division(node):
        return None
    try:
        found = tabulated(node, rows.schema, rows.reach, exactly=True)
        if isinstance(found, StepFunction):
            return _stepped(found, rows)
        labelled = None if found is None else coded(found)
        return None if labelled is None else _labelled(*labelled, rows)
    except InvalidQuery:
        return None


def _is_numbered(node: Node, rows: BucketRows) -> bool:
    """CAST(grade AS TEXT) of a category of numbers: its groups are texts."""
    if not isinstance(node, exp.Cast) or node.args["to"].this not in TEXT_TYPES:
        return False
    inner = bare(node.this)
    column = rows.schema[inner.name] if isinstance(inner, exp.Column) else None
    return isinstance(column, Category) and any(
        not isinstance(value, str) for value in column.values or ()
    )


def _is_division(node: Node) -> bool:
    """age / 10, which some engines cut to whole numbers and others do not: it has to be said."""
    plain = (exp.Column, exp.Identifier, exp.Literal, exp.Paren, exp.Neg, *ARITHMETIC)
    return _cuts(node) and all(isinstance(part, plain) for part in node.walk())


def _cuts(node: Node) -> bool:
    """Whether something is divided by what is not written with a point, as in x / 10.0."""
    below = [
        bare(part.expression)
        for part in node.find_all(exp.Div)
        if not (isinstance(part.this, exp.Extract) and part.this.name == "epoch")
    ]
    return not all(isinstance(part, exp.Literal) and "." in part.name for part in below)


ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div)


def _is_spelled(node: Node) -> bool:
    """CAST(DATE_TRUNC('year', seen) AS TEXT): its groups are texts."""
    return (
        isinstance(node, exp.Cast)
        and node.args["to"].this in TEXT_TYPES
        and isinstance(bare(node.this), exp.DateTrunc | exp.Extract)
    )


def _grouping(node: Node, rows: BucketRows) -> Grouping:
    spelled = _is_numbered(bare(node), rows) or _is_spelled(bare(node))
    if spelled and (found := _tabulated(bare(node), rows)) is not None:
        return found
    node = _plainly(bare(node), rows)
    if isinstance(node, exp.Column):
        return _column(node, rows)
    if isinstance(node, exp.Coalesce) and (found := _relabelled(node, rows)) is not None:
        return found
    if is_chosen(node):
        labelled = coded(core(node, rows.schema))
        if labelled is None:
            raise wrong(node, Reason.NO_GROUPS, f"a CASE to group by gives constants; {WAYS}")
        return _labelled(*labelled, rows)
    if isinstance(node, exp.WidthBucket):
        return _width_bucket(node, rows)
    floors = list(node.find_all(exp.Floor))
    if len(floors) == 1 and not any(node.find_all(exp.Mod, exp.Round, exp.Cast)):
        return _floored(node, floors[0], rows)
    if (steps := _step_function(node, rows)) is not None:
        return _stepped(steps, rows)
    if isinstance(node, exp.Add | exp.Sub | exp.Neg | exp.Abs):
        return _whole_steps(rows.read(node), node, rows)
    if isinstance(node, (*TEST_NODES, exp.Like)):
        return _condition(rows.read(node), rows)
    if not _cuts(node) and node.find(exp.Column) is not None:
        return _whole_steps(rows.read(node), node, rows)
    raise wrong(node, Reason.NO_GROUPS, f"no groups can be told from this; {WAYS}")


def _plainly(node: Node, rows: BucketRows) -> Node:
    """Without a cast that changes nothing; a function of declared texts as a table of them."""
    rewriter = Core(rows.schema)
    if isinstance(node, exp.Cast) and isinstance(bare(node.this), exp.DateTrunc | exp.Extract):
        if node.args["to"].this not in TEXT_TYPES:
            return bare(node.this)
        return node
    if isinstance(node, exp.Cast) and not rewriter.is_stepped(node):
        return bare(rewriter.read(node.copy()))
    return rewriter.read(node.copy()) if is_text_function(node) else node


def _step_function(node: Node, rows: BucketRows) -> StepFunction | None:
    rewriter = Core(rows.schema)
    if rewriter.is_stepped(node):
        return rewriter.steps(node, rows.reach)
    if any(node.find_all(*MATHS)):
        return lattice_function(node, rows.schema, rows.reach)
    return None


def _whole_steps(of: Expression, node: Node, rows: BucketRows) -> Grouping:
    """A sum or difference of columns that have steps: a cell for each value there can be."""
    value = rows.binder.number(canonical.value(of))
    if not value.exact or value.kind == "datetime":
        raise wrong(node, Reason.NO_GROUPS, f"no groups can be told from this; {WAYS}")
    low, high, _ = rows.range(value)
    first, last = math.ceil(low / value.step), math.floor(high / value.step)
    numbers = [value.step * at for at in _within(first, last + 2)]
    return _binned(of, numbers, [_moment(each, value.kind) for each in numbers[:-1]], rows)


def _relabelled(node: Node, rows: BucketRows) -> Grouping | None:
    """COALESCE(city, 'none'): the group of missing and undeclared values has a name."""
    inner, instead = bare(node.this), node.expressions
    if not isinstance(inner, exp.Column) or len(instead) != 1 or not is_constant(instead[0]):
        return None
    found, label = _column(inner, rows), value_of(instead[0])
    if found.undeclared or None not in found.labels:
        return None if found.undeclared else found
    if label in found.labels:
        column = rows.schema[inner.name]
        if not isinstance(column, Category):
            return None
        listed = exp.In(this=inner, expressions=[constant(v) for v in column.values or ()])
        pairs = [(value, value) for value in column.values or ()]
        other = exp.Case(
            ifs=[exp.If(this=listed, true=label_tree(inner, pairs, total=True))],
            default=constant(label),
        )
        return read_grouping(other, rows)
    labels = tuple(label if each is None else each for each in found.labels)
    return replace(found, labels=labels)


def _stepped(function: StepFunction, rows: BucketRows) -> Grouping:
    """A step function: cells between its edges, or one cell for each of its labels."""
    labels = list(function.labels)
    if len(set(labels)) == len(labels) and None not in labels:
        found = _binned(
            function.base,
            list(function.edges),
            list(map(_shown, labels)),
            rows,
            function.nullable,
        )
        known = [at for at in found.shown if found.labels[at] is not None]
        rest = [at for at in found.shown if found.labels[at] is None]
        known.sort(key=lambda at: _rank(found.labels[at]))
        return replace(found, shown=(*known, *rest))
    distinct = sorted({label for label in labels if label is not None}, key=_rank)
    codes = {label: place for place, label in enumerate(distinct)}
    nullable = None in labels or function.nullable
    coded_ = function.mapped(lambda label: None if label is None else codes[label])
    value = coded_.number(nullable=function.nullable)
    cells = group(value, range(len(distinct) + 1), other=nullable)
    low, high, _ = rows.reach(value)
    shown = [at for at in range(len(distinct)) if low <= at <= high]
    named = tuple(map(_shown, distinct))
    return Grouping(
        cells,
        (*named, None) if nullable else named,
        (*shown, *([len(distinct)] if nullable else [])),
    )


def _shown(label: object) -> object:
    return _moment(label, "") if isinstance(label, Fraction) else label


def _rank(label: object) -> tuple[int, object]:
    """Names of months and weekdays in the order of the calendar, all else by value."""
    for names in (MONTHS, WEEKDAYS):
        for spelled in (names, tuple(name[:3] for name in names)):
            if label in spelled:
                return spelled.index(str(label)), ""
    return 0, label


def _column(node: Node, rows: BucketRows) -> Grouping:
    name = node.name
    column = rows.schema[name]
    if isinstance(column, Number):
        return _lattice(column, rows)
    values: tuple[object, ...] = (False, True)
    if isinstance(column, Category):
        if column.values is None:
            kind = "number" if column.whole else "text"
            return Grouping(group(col(name)), (), (), True, kind, span(node))
        values = tuple(column.values)
    other = name not in rows.truth.present
    shown = [at for at, value in enumerate(values) if rows.allows(name, value)]
    labels = (*values, None) if other else values
    return Grouping(
        group(col(name), other=other), labels, (*shown, *([len(values)] if other else []))
    )


def _lattice(column: Number, rows: BucketRows) -> Grouping:
    step = column.lattice
    if step is None or column.kind == "datetime":
        raise InvalidQuery(
            f"{column.name} is a Number without a step; {WAYS}",
            reason=Reason.NO_STEP,
            about={"column": column.name},
        )
    low, high, _ = rows.range(rows.binder.number(col(column.name)))
    first, last = math.ceil(low / step), math.floor(high / step)
    numbers = [step * at for at in _within(first, last + 2)]
    labels = [_moment(number, column.kind) for number in numbers[:-1]]
    return _binned(col(column.name), numbers, labels, rows)


def _within(first: int, stop: int) -> range:
    if stop - first > MOST_BUCKETS:
        raise InvalidQuery(
            f"{stop - first:,} groups, at most {MOST_BUCKETS:,}; use wider buckets, or narrow"
            " the range with WHERE or CLAMP",
            reason=Reason.TOO_LARGE,
        )
    return range(first, stop)


def _moment(number: Fraction, kind: str) -> object:
    if kind == "date":
        return EPOCH.date() + datetime.timedelta(days=int(number))
    return number.numerator if number.denominator == 1 else float(number)


def _binned(
    of: Expression,
    edges: list[Fraction] | list[object],
    labels: list[object],
    rows: BucketRows,
    nullable: bool = True,
) -> Grouping:
    """One cell per [edge, next edge), and one for NULL unless WHERE rules it out."""
    value = rows.binder.number(canonical.value(of))
    nullable = nullable and rows.range(value)[2]
    if value.kind == "date":
        edges = [_moment(e, "date") if isinstance(e, Fraction) else e for e in edges]
    found = group(of, edges, other=nullable)
    named = (*labels, None) if nullable else tuple(labels)
    shown = [at for at in range(len(named)) if at >= len(labels)]
    if isinstance(value.node, Quantised) and value.node.column in rows.columns:
        ends = [rows.binder.literal(edge, value.kind) / value.step for edge in found.edges or ()]
        cells = pairwise(map(math.ceil, ends))
        left = [at for at, (a, b) in enumerate(cells) if rows.permits(value.node, a, b - 1)]
    else:
        left = list(range(len(labels)))
    return Grouping(found, named, (*left, *shown))


def _labelled(
    codes: Node, labels: tuple[object, ...], nullable: bool, rows: BucketRows
) -> Grouping:
    found = rows.read(codes)
    nullable = nullable and rows.reach(found)[2]
    if not labels:
        raise InvalidQuery(
            "GROUP BY a CASE that is always NULL; give it labels", reason=Reason.NO_GROUPS
        )
    tidy = tuple(float(x) if isinstance(x, Fraction) else x for x in labels)
    cells = group(found, range(len(labels) + 1), other=nullable)
    named = (*tidy, None) if nullable else tidy
    low, high, _ = rows.range(rows.binder.number(canonical.value(found)))
    shown = [at for at in range(len(labels)) if low <= at <= high]
    return Grouping(cells, named, (*shown, *([len(labels)] if nullable else [])))


def _condition(found: Expression, rows: BucketRows) -> Grouping:
    """GROUP BY age >= 65: false, true, or NULL."""
    codes = operation("choose", found, 1, operation("choose", ~found, 0, None))
    cells = group(codes, [0, 1, 2], other=True)
    sides = [rows.binder.condition(canonical.truth(side)) for side in (~found, found)]
    shown = [at for at, side in enumerate(sides) if not _ruled_out(side, rows)]
    return Grouping(cells, (False, True, None), (*shown, 2))


def _ruled_out(side: Condition, rows: BucketRows) -> bool:
    return truth_of(side, rows.inside).verdict == "never"


def _floored(node: Node, floor: Node, rows: BucketRows) -> Grouping:
    """a * FLOOR(x) + b: cells between whole numbers of x, called by the whole value."""
    check_options(floor, BUCKETS)
    of = rows.read(floor.this)
    low, high, _ = rows.range(rows.binder.number(canonical.value(of)))
    whole = _within(math.floor(low), math.floor(high) + 2)
    labels = [_evaluated(node, floor, Fraction(at)) for at in whole[:-1]]
    if len(set(labels)) != len(labels):
        raise wrong(node, Reason.NO_GROUPS, f"FLOOR times 0 makes no groups; {WAYS}")
    return _binned(of, [Fraction(at) for at in whole], [_moment(x, "") for x in labels], rows)


def _evaluated(node: Node, floor: Node, whole: Fraction) -> Fraction:
    node = bare(node)
    if node is floor:
        return whole
    if isinstance(node, exp.Neg):
        return -_evaluated(node.this, floor, whole)
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
        left, right = (_evaluated(part, floor, whole) for part in (node.this, node.expression))
        match node:
            case exp.Add():
                return left + right
            case exp.Sub():
                return left - right
            case exp.Mul():
                return left * right
        if right and next(node.expression.find_all(exp.Floor), None) is None:
            return left / right
    elif isinstance(node, exp.Literal) and not node.is_string:
        value = value_of(node)
        if isinstance(value, int | Fraction):
            return Fraction(value)
    raise wrong(node, Reason.NO_GROUPS, f"around FLOOR only constants and + - * /; {WAYS}")


def _number(node: object, what: str) -> Fraction:
    value = value_of(node) if isinstance(node, exp.Expr) else None
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        raise InvalidQuery(
            f"WIDTH_BUCKET wants a constant {what}: WIDTH_BUCKET(x, 0, 100, 10)",
            reason=Reason.WRONG_FORM,
        )
    return Fraction(value)


def _width_bucket(node: Node, rows: BucketRows) -> Grouping:
    """0 below `low`, 1 to n, n + 1 from `high` on."""
    check_options(node, BUCKETS)
    of = rows.read(node.this)
    start, stop, parts = (
        _number(node.args.get(name), what)
        for name, what in (("min_value", "low"), ("max_value", "high"), ("num_buckets", "number"))
    )
    if not start < stop or parts < 1 or parts.denominator != 1:
        raise wrong(node, Reason.WRONG_FORM, "WIDTH_BUCKET wants low < high and a whole number")
    width = (stop - start) / parts
    inner = [start + width * at for at in _within(0, int(parts) + 1)]
    low, high, _ = rows.range(rows.binder.number(canonical.value(of)))
    edges = [min(low, start) - 1, *inner, max(high, stop) + 1]
    numbered = [
        (edge, after, at)
        for at, (edge, after) in enumerate(pairwise(edges))
        if edge <= high and after > low
    ]
    cut = [*(edge for edge, _, _ in numbered), numbered[-1][1]]
    return _binned(of, cut, [at for _, _, at in numbered], rows)
