"""Row expressions by the declared types of their columns, in the language that rows are read in.

A day written as text is a day where the other side is one; a function of declared texts is a table
of them; a part of a day, and a function of a number on a lattice, is a step function. All of that
follows from the schema and the statement alone.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from fractions import Fraction

from sqlglot import exp

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.query import canonical
from sulq.kernel.query.expressions import Expression, operation
from sulq.kernel.schema.bind_rows import RowBinder, like
from sulq.kernel.schema.columns import Category, Flag, Number, Schema
from sulq.sql.parse import texts
from sulq.sql.parse.calendar import PARTS, Calendar
from sulq.sql.parse.constants import interval_of
from sulq.sql.parse.elapsed import BETWEEN, SECONDS, MomentPair
from sulq.sql.parse.grammar import DaysBetween, Node, wrong
from sulq.sql.parse.maths import MATHS, lattice_function
from sulq.sql.parse.normalise import TIMES, chosen, number, truncation
from sulq.sql.parse.row_expr import read_node
from sulq.sql.parse.scope import constant
from sulq.sql.parse.step_functions import StepFunction, ready
from sulq.sql.parse.tabulation import CONDITIONS, evaluated
from sulq.sql.parse.tabulation import condition as tabulated_test
from sulq.sql.parse.tabulation import number as tabulated_number

MOMENTS = ("date", "datetime")
WHOLE = {exp.DType.INT, exp.DType.BIGINT, exp.DType.SMALLINT, exp.DType.TINYINT, exp.DType.BIT}
REAL = {exp.DType.DOUBLE, exp.DType.FLOAT, exp.DType.DECIMAL, exp.DType.BIGDECIMAL}
ORDERINGS: dict[type[Node], Callable[[object, object], bool]] = {
    exp.EQ: lambda a, b: a == b,
    exp.NEQ: lambda a, b: a != b,
    exp.LT: lambda a, b: a < b,  # type: ignore[operator]
    exp.LTE: lambda a, b: a <= b,  # type: ignore[operator]
    exp.GT: lambda a, b: a > b,  # type: ignore[operator]
    exp.GTE: lambda a, b: a >= b,  # type: ignore[operator]
}
FLIPPED: dict[type[Node], type[Node]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}
COMPARED = (*ORDERINGS, exp.Between, exp.In, exp.Like, *texts.ALWAYS_A_TEST)
_DAY = re.compile(r"(\d{4})-(\d\d?)-(\d\d?)", re.ASCII)
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|\+00(:?00)?| UTC)?", re.ASCII
)
_TRUTHS = {"true": True, "t": True, "yes": True, "false": False, "f": False, "no": False}


def core(node: Node, schema: Schema) -> Node:
    """The node in the language of rows; itself where it is that already."""
    if not any(_touched(part, schema) for part in node.walk()):
        return node
    return Core(schema).read(node.copy())


def _touched(part: Node, schema: Schema) -> bool:
    if type(part) in ORDERINGS:  # a day beside a time
        return isinstance(part.this, exp.Column) and isinstance(part.expression, exp.Column)
    return type(part) in HANDLED or (isinstance(part, exp.Literal) and bool(part.is_string))


def moment_kind(node: Node, schema: Schema) -> str:
    """date or datetime where a node is surely one; else nothing."""
    node = bare(node)
    match node:
        case exp.Column():
            column = _column(node, schema)
            if isinstance(column, Number) and column.kind in MOMENTS:
                return column.kind
        case exp.Cast():
            kind = node.args["to"].this
            if kind in TIMES:  # a column of days stays one
                return moment_kind(node.this, schema) or "datetime"
            return "date" if kind == exp.DType.DATE else ""
        case exp.DateTrunc():
            return "date"
        case exp.Add() | exp.Sub():
            sides = [moment_kind(side, schema) for side in (node.this, node.expression)]
            kinds = [side for side in sides if side]
            return kinds[0] if len(kinds) == 1 else ""
        case exp.Coalesce() | exp.Least() | exp.Greatest():
            return moment_kind(node.this, schema)
    return ""


class Core:
    """Rewrites one tree that is its own."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.binder = RowBinder(schema)

    def read(self, node: Node) -> Node:
        handler = self._handler(type(node))
        if handler is not None:
            made = handler(node)
            if made is not node:
                return made
        return self._inside(node)

    def _inside(self, node: Node) -> Node:
        for name, given in list(node.args.items()):
            if isinstance(given, list):
                node.set(name, [self.read(x) if isinstance(x, exp.Expr) else x for x in given])
            elif isinstance(given, exp.Expr):
                made = self.read(given)
                if made is not given:
                    node.set(name, made)
        return node

    def _handler(self, kind: type[Node]) -> Callable[[Node], Node] | None:
        if kind in COMPARED:
            return self._compared
        if kind in texts.FUNCTIONS:
            return self._text
        if kind in PARTS:
            return self._part
        if kind in MATHS:
            return self._maths
        if kind in BETWEEN:
            return self._between_moments
        return {
            exp.Cast: self._cast,
            exp.Nullif: self._nullif,
            exp.Add: self._shifted,
            exp.Sub: self._shifted,
            exp.Case: self._case,
            exp.Coalesce: self._coalesce,
        }.get(kind)  # type: ignore[arg-type]

    # --- comparisons ----------------------------------------------------------------------------

    def _compared(self, node: Node) -> Node:
        self._as_moments(node)
        self._as_lengths(node)
        self._on_one_clock(node)
        self._as_truths(node)
        found = self._by_texts(node)
        if found is None:
            found = self._by_steps(node)
        return node if found is None else found

    def _operands(self, node: Node) -> list[tuple[str, int | None, Node]]:
        found: list[tuple[str, int | None, Node]] = []
        for name in ("this", "expression", "low", "high"):
            inner = node.args.get(name)
            if isinstance(inner, exp.Expr):
                found.append((name, None, inner))
        found += [("expressions", at, each) for at, each in enumerate(node.expressions)]
        return found

    def _as_moments(self, node: Node) -> None:
        """Texts that are days or times, where another side is one."""
        operands = self._operands(node)
        kinds = [moment_kind(each, self.schema) for _, _, each in operands]
        kind = next((each for each in kinds if each), "")
        if not kind:
            return
        for name, at, each in operands:
            inner = bare(each)
            if not isinstance(inner, exp.Literal) or not inner.is_string:
                continue
            made = _moment(inner)
            if made is None:
                raise wrong(
                    inner,
                    Reason.WRONG_TYPE,
                    f"{inner.this!r:.40} is not a day or time that exists; write '2024-02-29' or"
                    " '2024-02-29 12:30:00'",
                )
            node.set(name, made, at) if at is not None else node.set(name, made)

    def _as_lengths(self, node: Node) -> None:
        """INTERVAL '30 days' beside a difference of days, in days; of times, in seconds."""
        operands = self._operands(node)
        if not any(isinstance(bare(each), exp.Interval) for _, _, each in operands):
            return
        kinds = {
            moment_kind(column, self.schema)
            for _, _, each in operands
            for column in each.find_all(exp.Column)
        }
        if not kinds or not kinds <= set(MOMENTS):
            return
        for name, at, each in operands:
            inner = bare(each)
            if not isinstance(inner, exp.Interval):
                continue
            count, unit = interval_of(inner)
            if unit not in SECONDS:
                raise wrong(inner, Reason.NOT_IN_LANGUAGE, "compare with an INTERVAL of days")
            size = 1 if "datetime" in kinds else 86_400
            made = number(Fraction(count * SECONDS[unit], size))
            node.set(name, made, at) if at is not None else node.set(name, made)

    def _on_one_clock(self, node: Node) -> None:
        """A day beside a time: both in seconds since 1970."""
        operands = self._operands(node)
        kinds = {moment_kind(each, self.schema) for _, _, each in operands}
        moved = any(self._is_day_of_time(bare(each)) for _, _, each in operands)
        if not {"date", "datetime"} <= kinds and not (moved and self._are_columns(operands)):
            return
        if not self._are_columns(operands):
            return  # a day written out beside a time is its midnight
        for name, at, each in operands:
            made = self._in_seconds(each)
            node.set(name, made, at) if at is not None else node.set(name, made)

    def _are_columns(self, operands: list[tuple[str, int | None, Node]]) -> bool:
        return sum(each.find(exp.Column) is not None for _, _, each in operands) > 1

    def _in_seconds(self, node: Node) -> Node:
        inner = bare(node)
        if isinstance(inner, exp.Null):
            return node
        if self._is_day_of_time(inner):
            at = read_node(self.read(bare(inner.this).copy()))
            days = MomentPair(self.binder, node, at, at).day_number()
            return ready(operation("multiply", days, 86_400))
        of = read_node(self.read(inner.copy()))
        return ready(MomentPair(self.binder, node, of, of).seconds(of))

    def _as_truths(self, node: Node) -> None:
        """'true', 1 and 0 beside a flag."""
        operands = self._operands(node)
        flags = [
            isinstance(bare(each), exp.Column)
            and bare(each).name in self.schema
            and isinstance(self.schema[bare(each).name], Flag)
            for _, _, each in operands
        ]
        if not any(flags):
            return
        for name, at, each in operands:
            inner = bare(each)
            if isinstance(inner, exp.Literal) and str(inner.this).casefold() in _TRUTHS:
                made = exp.Boolean(this=_TRUTHS[str(inner.this).casefold()])
                node.set(name, made, at) if at is not None else node.set(name, made)

    def _by_texts(self, node: Node) -> Node | None:
        """A test of declared texts, as a list of them."""
        column = texts.declared_texts(node, self.schema)
        if column is None:
            if type(node) in texts.ALWAYS_A_TEST or self._has_texts(node):
                raise self._open_text(node)
            return None
        plain = not any(texts.is_text_function(part) for part in node.walk())
        if plain and not isinstance(node, (*texts.ALWAYS_A_TEST, *texts.ORDERED)):
            return None
        if not self._only_texts(node):
            return None
        return texts.as_condition(node, column)

    def _has_texts(self, node: Node) -> bool:
        return any(texts.is_text_function(part) for _, _, part in self._operands(node)) and any(
            isinstance(self.schema[c.name], Category)
            for c in node.find_all(exp.Column)
            if c.name in self.schema
        )

    def _only_texts(self, node: Node) -> bool:
        known = (*texts.FUNCTIONS, *texts.TESTS, *texts.REGULAR)
        simple = (
            exp.Column,
            exp.Identifier,
            exp.Literal,
            exp.Null,
            exp.Paren,
            exp.RawString,
            exp.Neg,
        )
        return all(
            isinstance(part, (*known, *simple))
            or (isinstance(part, exp.Cast) and part.args["to"].this in texts.TEXT_TYPES)
            or isinstance(part.parent, exp.Cast | exp.DataType)
            for part in node.walk()
        )

    def _open_text(self, node: Node) -> InvalidQuery:
        return wrong(
            node,
            Reason.NOT_IN_LANGUAGE,
            "a function of texts works on a column with declared values; on open text there are"
            " =, IN, LIKE and IS NULL",
        )

    def _by_steps(self, node: Node) -> Node | None:
        """A test of a part of a day, or of a function of a lattice, against constants."""
        sides = [bare(each) for _, _, each in self._operands(node)]
        places = [at for at, side in enumerate(sides) if self.is_stepped(side)]
        if len(places) != 1:
            return None
        (at,) = places
        others = [_constant(side) for place, side in enumerate(sides) if place != at]
        if not all(known for known, _ in others):
            return None
        function = self.steps(sides[at])
        kind = type(node)
        if at == 1 and kind in FLIPPED:
            kind = FLIPPED[kind]
        values = [_alike(value, function, node) for _, value in others]
        return ready(function.condition(_test(kind, values, node)))

    # --- values ---------------------------------------------------------------------------------

    def is_stepped(self, node: Node) -> bool:
        return (
            (isinstance(node, PARTS) and not _is_epoch(node))
            or (type(node) in MATHS and not any(node.find_all(exp.AggFunc)))
            or self._is_day_of_time(node)
        )

    def _is_day_of_time(self, node: Node) -> bool:
        """CAST(time AS DATE): its day."""
        return (
            isinstance(node, exp.Cast)
            and node.args["to"].this == exp.DType.DATE
            and moment_kind(node.this, self.schema) == "datetime"
        )

    def steps(
        self,
        node: Node,
        within: Callable[[Expression], tuple[Fraction, Fraction, bool]] | None = None,
    ) -> StepFunction:
        """A part of a day, or a function of a number on a lattice; `within` narrows its range."""
        if type(node) in MATHS:
            part = inner_part(node)
            if part is not None:
                return self._composed(node, self.steps(part, within))
            return lattice_function(node, self.schema, within)
        if isinstance(node, exp.Cast):
            node = truncation(node.this, "day")
        inner = node.expression if isinstance(node, exp.Extract) else node.this
        of = read_node(self.read(inner.copy()))
        value = self.binder.number(canonical.value(of))
        if value.kind not in MOMENTS:
            raise wrong(node, Reason.WRONG_TYPE, "a day or time is wanted, got a number")
        if within is None:
            low, high, nullable = value.low * value.step, value.high * value.step, True
        else:
            low, high, nullable = within(of)
        return Calendar(of, value.kind, low, high, nullable).read(node)

    def _composed(self, node: Node, inner: StepFunction) -> StepFunction:
        """HOUR(x) // 6: a function of a step function, at each of its values."""
        whole = node.copy()
        for part in list(whole.find_all(*PARTS)):
            if part.find_ancestor(*PARTS) is None:
                part.replace(exp.Column(this=exp.Identifier(this=PLACE, quoted=True)))
        return inner.mapped(
            lambda label: None if label is None else evaluated(whole, {PLACE: label})
        )

    def _since_1970(self, node: Node) -> Node:
        """EXTRACT(EPOCH FROM x): seconds since 1970, or between two moments."""
        inner = bare(node.expression)
        kind = moment_kind(inner, self.schema)
        if kind:
            day = _cast_to("1970-01-01", exp.DType.DATE, node)
            whole: Node = exp.Paren(this=exp.Sub(this=self.read(inner.copy()), expression=day))
        else:
            sides = [
                moment_kind(side, self.schema)
                for side in (inner.this, inner.expression)
                if isinstance(inner, exp.Sub)
            ]
            if len(sides) != 2 or "" in sides:
                raise wrong(node, Reason.WRONG_TYPE, "EXTRACT(EPOCH FROM x) wants a day or a time")
            kind = "datetime" if "datetime" in sides else "date"
            whole = exp.Paren(this=self.read(inner.copy()))
        return whole if kind == "datetime" else exp.Mul(this=whole, expression=number(86_400))

    def _part(self, node: Node) -> Node:
        if _is_epoch(node):
            return self._since_1970(node)
        return ready(self.steps(node).number())

    def _between_moments(self, node: Node) -> Node:
        """DATEDIFF and its kind, of one or two columns."""
        if not all(isinstance(node.args.get(name), exp.Expr) for name in ("this", "expression")):
            raise wrong(node, Reason.WRONG_FORM, "DATEDIFF wants a unit and two days or times")
        sides = [bare(node.this), bare(node.expression)]
        for name, side in zip(("this", "expression"), sides, strict=True):
            if isinstance(side, exp.Literal) and (made := _moment(side)) is not None:
                node.set(name, made)
        later, earlier = (read_node(self.read(node.args[n].copy())) for n in ("this", "expression"))
        kinds = {self.binder.number(canonical.value(of)).kind for of in (later, earlier)}
        if isinstance(node, DaysBetween) and kinds == {"date"}:
            return exp.Paren(this=exp.Sub(this=ready(later), expression=ready(earlier)))
        return ready(MomentPair(self.binder, node, later, earlier).between())

    def _maths(self, node: Node) -> Node:
        return ready(self.steps(node).number())

    def _text(self, node: Node) -> Node:
        column = texts.declared_texts(node, self.schema)
        if column is None or not self._only_texts(node):
            raise self._open_text(node)
        return texts.as_labels(node, column)

    def _coalesce(self, node: Node) -> Node:
        kind = moment_kind(node.this, self.schema)
        if kind:
            for at, each in enumerate(node.expressions):
                made = _moment(each) if isinstance(each, exp.Literal) else None
                if made is not None:
                    node.set("expressions", made, at)
        return node

    def _nullif(self, node: Node) -> Node:
        """NULLIF(x, y): NULL where they are equal, else x."""
        same = exp.EQ(this=node.this.copy(), expression=node.expression.copy())
        return self.read(chosen(same, exp.Null(), node.this))

    def _case(self, node: Node) -> Node:
        return node

    def _cast(self, node: Node) -> Node:
        """A cast that changes nothing, or a flag as 1 and 0."""
        inner, to = bare(node.this), node.args["to"]
        if isinstance(inner, exp.Literal):
            made = _moment(inner) if to.this in TIMES or to.this == exp.DType.DATE else None
            if made is not None:
                return made if to.this != exp.DType.DATE else _as_day(made)
            if not inner.is_string and to.this in WHOLE | REAL and not to.expressions:
                return inner
            return node
        if to.this in WHOLE | REAL and _is_test(inner, self.schema):
            one = self.read(inner)
            return chosen(
                one, number(1), chosen(exp.Not(this=exp.Paren(this=one.copy())), number(0), None)
            )
        column = _column(inner, self.schema)
        if isinstance(column, Category) and to.this in texts.TEXT_TYPES:
            return inner
        kind = moment_kind(inner, self.schema)
        if kind == "date" and (to.this in TIMES or to.this == exp.DType.DATE):
            return self.read(inner)
        if kind == "datetime" and to.this in TIMES:
            return self.read(inner)
        if not kind and to.this in REAL and not isinstance(column, Category):
            digits = to.expressions[1:] if to.expressions else []
            if not digits or _has_digits(column, digits[0]):
                return self.read(inner)
        if (
            not kind
            and to.this in WHOLE
            and (isinstance(inner, (*MATHS, *PARTS)) or _has_digits(column, None))
        ):
            return self.read(inner)
        return node

    def _apart(self, node: Node) -> Node:
        """A time less a day, in seconds; the day of a time less a day, in days."""
        sides = [bare(node.this), bare(node.expression)]
        kinds = [moment_kind(side, self.schema) for side in sides]
        if not all(kinds):
            return node
        of_times = [self._is_day_of_time(side) for side in sides]
        if kinds == ["date", "date"] and any(of_times):
            return exp.Div(
                this=exp.Paren(this=exp.Sub(this=self._in_seconds(sides[0]),
                                            expression=self._in_seconds(sides[1]))),
                expression=number(86_400),
            )  # fmt: skip
        if set(kinds) == {"date", "datetime"}:
            first, second = map(self._in_seconds, sides)
            return exp.Sub(this=first, expression=second)
        return node

    def _shifted(self, node: Node) -> Node:
        """A day plus or minus an INTERVAL of days."""
        by = bare(node.expression)
        if not isinstance(by, exp.Interval):
            return self._apart(node) if isinstance(node, exp.Sub) else node
        kind = moment_kind(node.this, self.schema)
        count, unit = interval_of(by)
        seconds = {"day": 86_400, "week": 604_800, "hour": 3_600, "minute": 60, "second": 1}
        if not kind or unit not in seconds:
            raise wrong(
                node,
                Reason.NOT_IN_LANGUAGE,
                "an INTERVAL beside a column is one of days or weeks, of times also hours; put"
                " months on the side of the constant: DATE '2024-03-31' - INTERVAL '1 month'",
            )
        size = Fraction(count * seconds[unit], 86_400 if kind == "date" else 1)
        node.set("expression", number(size))
        return node


HANDLED = {
    exp.Sub,
    *COMPARED,
    *BETWEEN,
    *texts.FUNCTIONS,
    *PARTS,
    *MATHS,
    exp.Cast,
    exp.Nullif,
    exp.Interval,
}
HANDLED -= {exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Like}
"""What makes a tree need a look; comparisons alone do not, unless with texts."""


PLACE = "place"
"""What a part of a moment is called in a function of it."""


def inner_part(node: Node) -> Node | None:
    """The one part of a moment that a function is of; None where there are several or others."""
    parts = [part for part in node.find_all(*PARTS) if part.find_ancestor(*PARTS) is None]
    if not parts or _is_epoch(parts[0]) or any(shape(p) != shape(parts[0]) for p in parts[1:]):
        return None
    columns = {id(column) for column in node.find_all(exp.Column)}
    own = {id(column) for part in parts for column in part.find_all(exp.Column)}
    return parts[0] if columns == own else None


def _is_epoch(node: Node) -> bool:
    return isinstance(node, exp.Extract) and node.this.name == "epoch"


def _column(node: Node, schema: Schema) -> object:
    """The declaration of a column; None of anything else."""
    if not isinstance(node, exp.Column):
        return None
    return next((column for column in schema.columns if column.name == node.name), None)


def _is_test(node: Node, schema: Schema) -> bool:
    if isinstance(node, exp.Column):
        return node.name in schema and isinstance(schema[node.name], Flag)
    return isinstance(node, (*COMPARED, exp.And, exp.Or, exp.Not, exp.Is))


def _has_digits(column: object, digits: Node | None) -> bool:
    """Whether rounding to so many digits changes nothing of a column."""
    if not isinstance(column, Number) or column.kind != "number" or column.lattice is None:
        return False
    places = 0 if digits is None else int(digits.name)
    ends = (column.lattice, column.range[0])
    return all((Fraction(end) * 10**places).denominator == 1 for end in ends)


def _moment(node: Node) -> Node | None:
    """A text as a day or a time; None if it is neither."""
    spelled = re.sub(r"^(\d{4})(\d\d)(\d\d)$", r"\1-\2-\3", str(node.this).strip())
    try:
        if found := _DAY.fullmatch(spelled):
            day = datetime.date(*map(int, found.groups()))
            return _cast_to(day.isoformat(), exp.DType.DATE, node)
        if _TIME.fullmatch(spelled):
            plain = re.sub(r"(Z|\+00(:?00)?| UTC)$", "", spelled).replace("T", " ")
            at = datetime.datetime.fromisoformat(plain)
            if at.time() == datetime.time():
                return _cast_to(at.date().isoformat(), exp.DType.DATE, node)
            return _cast_to(plain, exp.DType.TIMESTAMP, node)
    except ValueError:
        return None
    return None


def moment_constant(spelled: str) -> datetime.date | None:
    """The day or time that a text spells; None of any other text."""
    made = _moment(exp.Literal(this=spelled, is_string=True))
    value = None if made is None else getattr(read_node(made), "value", None)
    return value if isinstance(value, datetime.date) else None


def _as_day(node: Node) -> Node:
    spelled = str(node.this.this)[:10]
    return _cast_to(spelled, exp.DType.DATE, node)


def _cast_to(spelled: str, kind: object, place: Node) -> Node:
    made = exp.Cast(this=exp.Literal(this=spelled, is_string=True), to=exp.DataType(this=kind))
    if "start" in place.meta:
        made.meta.update({name: place.meta[name] for name in ("start", "end")})
    return made


def _constant(node: Node) -> tuple[bool, object]:
    node = bare(node)
    sign = 1
    while isinstance(node, exp.Neg):
        sign, node = -sign, bare(node.this)
    if isinstance(node, exp.Null):
        return True, None
    if isinstance(node, exp.Literal | exp.Boolean) or (
        isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal)
    ):
        value = getattr(read_node(node), "value", None)
        if isinstance(value, int | Fraction) and not isinstance(value, bool):
            return True, sign * value
        return True, value
    return False, None


def _alike(value: object, function: StepFunction, node: Node) -> object:
    """A constant as the labels are: days with days, texts with texts, numbers with numbers."""
    sample = next((label for label in function.labels if label is not None), None)
    if value is None or sample is None:
        return value
    if isinstance(sample, datetime.datetime) and type(value) is datetime.date:
        return datetime.datetime.combine(value, datetime.time())
    whole_day = isinstance(value, datetime.datetime) and value.time() == datetime.time()
    if isinstance(value, datetime.datetime) and type(sample) is datetime.date and whole_day:
        return value.date()
    if isinstance(value, str) and isinstance(sample, int) and value.strip().lstrip("-").isdigit():
        return int(value)
    same = isinstance(value, str) is isinstance(sample, str) and isinstance(
        value, datetime.date
    ) is isinstance(sample, datetime.date)
    if not same:
        raise wrong(
            node,
            Reason.WRONG_TYPE,
            f"{value!s:.40} is compared with {sample!s:.40}; compare like with like",
        )
    return value


def _test(kind: type[Node], values: list[object], node: Node) -> Callable[[object], bool | None]:
    if kind in ORDERINGS:
        order = ORDERINGS[kind]
        return lambda label: None if None in (label, values[0]) else order(label, values[0])
    if kind is exp.Between:
        return lambda label: (
            None if None in (label, *values) else values[0] <= label <= values[1]  # type: ignore[operator]
        )
    if kind is exp.In:

        def among(label: object) -> bool | None:
            if label is None:
                return None
            return True if label in values else None if None in values else False

        return among
    if kind is exp.Like and isinstance(values[0], str):
        pattern = values[0]
        return lambda label: like(pattern, str(label)) is not bool(node.args.get("negate"))
    raise wrong(node, Reason.NOT_IN_LANGUAGE, "this test is not one of days and numbers")


COMPARISONS = (exp.EQ, exp.NEQ, exp.In, exp.Like, exp.Is)


def bare(node: Node) -> Node:
    """The node without brackets around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def is_chosen(node: Node) -> bool:
    """CASE, or COALESCE of one."""
    node = bare(node)
    if isinstance(node, exp.Coalesce):
        return isinstance(node.this, exp.Expr) and is_chosen(node.this)
    return isinstance(node, exp.Case) and node.args.get("this") is None


def leaves(node: Node) -> list[Node]:
    """What a CASE can give."""
    node = bare(node)
    if isinstance(node, exp.Coalesce) and is_chosen(node):
        there = [leaf for leaf in leaves(node.this) if not isinstance(leaf, exp.Null)]
        return there + [bare(instead) for instead in node.expressions]
    if not is_chosen(node):
        return [node]
    found = [leaf for branch in node.args["ifs"] for leaf in leaves(branch.args["true"])]
    default = node.args.get("default")
    return found + ([exp.Null()] if default is None else leaves(default))


def mapped(node: Node, change: Callable[[Node], Node]) -> Node:
    """The same CASE with every leaf changed."""
    node = bare(node)
    if isinstance(node, exp.Coalesce) and is_chosen(node):
        instead = bare(node.expressions[0]) if len(node.expressions) == 1 else None
        if instead is None or not is_constant(instead):
            raise wrong(node, Reason.WRONG_FORM, "COALESCE of a CASE wants one constant")
        return mapped(node.this, lambda leaf: change(instead if _is_null(leaf) else leaf))
    if not is_chosen(node):
        return change(node)
    branches = [
        exp.If(this=branch.this.copy(), true=mapped(branch.args["true"], change))
        for branch in node.args["ifs"]
    ]
    default = node.args.get("default")
    last = change(exp.Null()) if default is None else mapped(default, change)
    return exp.Case(ifs=branches, default=last)


def _is_null(node: Node) -> bool:
    return isinstance(node, exp.Null)


def is_constant(node: Node) -> bool:
    node = bare(node)
    if isinstance(node, exp.Neg):
        node = bare(node.this)
    return isinstance(node, exp.Literal | exp.Null | exp.Boolean)


def value_of(node: Node) -> object:
    """The value of a constant: a text, a number, a truth value or None."""
    node = bare(node)
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    read = read_node(node)
    return getattr(read, "value", None)


def coded(node: Node) -> tuple[Node, tuple[object, ...], bool] | None:
    """A CASE of constants as numbers 0, 1, ..., their labels, and whether NULL can come out.

    None where a leaf is not a constant.
    """
    found = leaves(node)
    if not all(is_constant(leaf) for leaf in found):
        return None
    labels = list(dict.fromkeys((type(v), v) for v in map(value_of, found) if v is not None))
    if all(isinstance(value, int | Fraction) for _, value in labels):
        labels.sort(key=lambda pair: Fraction(pair[1]))  # type: ignore[call-overload]
    codes = {pair: place for place, pair in enumerate(labels)}

    def code(leaf: Node) -> Node:
        value = value_of(leaf)
        return exp.Null() if value is None else constant(codes[type(value), value])

    nullable = any(value_of(leaf) is None for leaf in found)
    return mapped(node, code), tuple(value for _, value in labels), nullable


def without_texts(node: Node) -> Node:
    """Comparisons of a CASE of texts with constants, as comparisons of a CASE of 0 and 1."""
    if next(node.find_all(exp.Case), None) is None:
        return node
    for found in reversed(list(node.find_all(*COMPARISONS))):
        changed = _without_texts(found)
        if changed is found:
            continue
        if found is node:
            node = changed
        else:
            found.replace(changed)
    return node


def _without_texts(node: Node) -> Node:
    subject, other = bare(node.this), node.args.get("expression")
    if isinstance(node, exp.EQ | exp.NEQ) and isinstance(other, exp.Expr) and is_chosen(other):
        subject, other = bare(other), node.this
    if not is_chosen(subject) or not any(_is_text(leaf) for leaf in leaves(subject)):
        return node

    def compared(leaf: Node) -> Node:
        if not is_constant(leaf):
            same = _rebuilt(node, leaf, other)
            no = exp.If(this=exp.Not(this=exp.Paren(this=same.copy())), true=constant(0))
            return exp.Case(ifs=[exp.If(this=same, true=constant(1)), no])
        truth = _truth(node, value_of(leaf), other)
        return exp.Null() if truth is None else constant(int(truth))

    return exp.Paren(this=exp.EQ(this=mapped(subject, compared), expression=constant(1)))


def _is_text(leaf: Node) -> bool:
    return isinstance(leaf, exp.Literal) and bool(leaf.is_string)


def _rebuilt(node: Node, leaf: Node, other: object) -> Node:
    same = node.copy()
    same.set("this", exp.Paren(this=leaf.copy()))
    if isinstance(other, exp.Expr):
        same.set("expression", other.copy())
    return same


def _truth(node: Node, value: object, other: object) -> bool | None:
    """`value = other` and the like, with SQL's three values."""
    if isinstance(node, exp.Is):
        if not isinstance(other, exp.Null):
            raise wrong(node, Reason.WRONG_FORM, "IS knows only NULL; write x IS NULL")
        return value is None
    listed = [value_of(item) for item in _constants(node, other)]
    if value is None:
        return None
    if isinstance(node, exp.Like):
        if not isinstance(listed[0], str):
            raise wrong(node, Reason.WRONG_FORM, "LIKE wants a text: name LIKE 'A%'")
        return like(listed[0], str(value)) is not bool(node.args.get("negate"))
    for one in listed:
        if one is not None and isinstance(one, str) is not isinstance(value, str):
            raise wrong(
                node, Reason.WRONG_TYPE, "a text is compared with a number; quote texts: 'a'"
            )
    if value in [one for one in listed if one is not None]:
        return not isinstance(node, exp.NEQ)
    if None in listed:
        return None
    return isinstance(node, exp.NEQ)


def _constants(node: Node, other: object) -> list[Node]:
    listed = node.expressions if isinstance(node, exp.In) else [other]
    if not listed or not all(isinstance(x, exp.Expr) and is_constant(x) for x in listed):
        raise wrong(node, Reason.WRONG_TYPE, "a CASE of texts compares with constants only")
    return list(listed)


def shape(node: Node) -> object:
    """The tree as nested tuples, without brackets and positions: equal shapes, equal meaning."""
    node = bare(node)
    parts: list[object] = [type(node).__name__]
    for name, given in sorted(node.args.items()):
        if given in (None, False, [], "") or name in ("quoted", "typed", "safe"):
            continue
        listed = given if isinstance(given, list) else [given]
        parts.append((name, *(shape(x) if isinstance(x, exp.Expr) else x for x in listed)))
    return tuple(parts)


def is_there(leaf: Node) -> Node:
    """1 where a value is there, else NULL."""
    if is_constant(leaf):
        return exp.Null() if value_of(leaf) is None else constant(1)
    there = exp.Not(this=exp.Paren(this=exp.Is(this=leaf.copy(), expression=exp.Null())))
    return exp.Case(ifs=[exp.If(this=there, true=constant(1))])


def plain_row(node: Node, schema: Schema) -> Expression:
    """A node over declared columns as our expression.

    What the language of rows has no word for is worked out as a table, where that can be done.
    """
    try:
        return _plain_row(node, schema)
    except InvalidQuery:
        found = _worked_out(node, schema)
        if found is None:
            raise
        return found


def _worked_out(node: Node, schema: Schema) -> Expression | None:
    """The node by tables of its parts; None where the refusal of the node itself says more."""
    node = bare(node)
    whole_power = isinstance(node, exp.Pow) and str(node.expression) in ("2", "3", "4")
    if whole_power and not any(node.this.find_all(*MATHS)):
        factors = [plain_row(node.this.copy(), schema)] * int(str(node.expression))
        return operation("multiply", *factors)
    try:
        made = (tabulated_test if isinstance(node, CONDITIONS) else tabulated_number)(node, schema)
        if made is not None:
            return _plain_row(made, schema)
    except InvalidQuery:
        pass
    if not isinstance(node, CONNECTED):
        return None
    whole = node.copy()
    for part in list(_parts(whole)):
        if not is_constant(part):
            part.replace(ready(plain_row(part.copy(), schema)))
    try:
        return read_node(whole)
    except InvalidQuery:
        return None


CONNECTED = (
    exp.And,
    exp.Or,
    exp.Not,
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Div,
    exp.Neg,
    exp.Case,
    exp.Abs,
    exp.Least,
    exp.Greatest,
)


def _parts(node: Node) -> Iterator[Node]:
    """The expressions that a node is made of."""
    for given in node.args.values():
        for part in given if isinstance(given, list) else [given]:
            if isinstance(part, exp.If):
                yield from _parts(part)
            elif isinstance(part, exp.Expr):
                yield part


def _plain_row(node: Node, schema: Schema) -> Expression:
    found = without_texts(core(node, schema))
    if is_chosen(found) and any(
        isinstance(leaf, exp.Literal) and leaf.is_string for leaf in leaves(found)
    ):
        raise wrong(
            node,
            Reason.WRONG_TYPE,
            "a CASE of texts stands where a number or condition is wanted;"
            " group by it or compare it",
        )
    return read_node(found)
