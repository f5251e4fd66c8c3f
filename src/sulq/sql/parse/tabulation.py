"""Functions of declared columns as tables: worked out for every value that a column can have.

What the language of rows has no word for (LAST_DAY, SPLIT_PART, DATEDIFF in months, a CASE that
gives a column, LN of a column without a step) is evaluated here, once per question, at each
declared value, each place of a lattice or each day of a declared range. What reaches the kernel are
comparisons with constants and choices between constants. No row is looked at, and no engine's own
function ever sees one.
"""

from __future__ import annotations

import datetime
import heapq
import itertools
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from sqlglot import exp

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.query.expressions import Expression, col
from sulq.kernel.schema.bind_rows import like
from sulq.kernel.schema.columns import EPOCH, Category, Flag, Number, Schema
from sulq.sql.parse import maths, texts
from sulq.sql.parse.calendar import (
    BY_BORDERS,
    DIRECTIVES,
    INSIDE,
    PARTS,
    directives,
    part_of,
    truncated,
)
from sulq.sql.parse.constants import after, interval_of
from sulq.sql.parse.enclosure import Enclosure, Span, enclosed
from sulq.sql.parse.grammar import DaysBetween, Node, spoken, wrong
from sulq.sql.parse.normalise import TIMES, unit_of
from sulq.sql.parse.scope import constant
from sulq.sql.parse.step_functions import (
    MOST_STEPS,
    TABULATIONS,
    StepFunction,
    Tabulations,
    ready,
)

Value: TypeAlias = Any
"""None, a truth value, a whole number, a fraction, a text, a day or a time."""
Within: TypeAlias = Callable[[Expression], tuple[Fraction, Fraction, bool]]

MOST_PLACES = 10_000
"""Values of a column at which a function is worked out."""
MOST_PAIRS = 800
"""Values of several declared columns together."""
MOST_CELLS = 1_024
"""Cells of a column without a step, over which a function is taken to be constant."""
FINEST = 40
"""A column without a step is halved so often at most."""
DAY = datetime.timedelta(days=1)

# --- which columns, and what they can be --------------------------------------------------------


def tabulated(
    node: Node, schema: Schema, within: Within | None = None, exactly: bool = False
) -> Node | StepFunction | None:
    """A function of declared columns as a CASE over them or as a step function; None of others.

    A CASE is of Categories and Flags, a step function of one number, day or time. With `exactly`
    nothing is rounded: a function that changes all the time makes no groups.
    """
    if node.find(exp.AggFunc, exp.Window, exp.Query, exp.Placeholder) is not None:
        return None
    named = list(dict.fromkeys(column.name for column in node.find_all(exp.Column)))
    known = {column.name: column for column in schema.columns}
    if not named or any(name not in known for name in named):
        return None
    columns = [known[name] for name in named]
    if all(_is_listed(column) for column in columns):
        return _listed(node, columns)
    (column,) = columns if len(columns) == 1 else (None,)
    if not isinstance(column, Number):
        return None
    of, low, high, nullable = col(column.name), *(Fraction(end) for end in column.range), True
    if within is not None:
        low, high, nullable = within(of)
    if low > high:
        return None
    match column.kind:
        case "date":
            return _by_days(node, column, low, high, nullable)
        case "datetime":
            return _by_hours(node, column, low, high, nullable)
    if column.lattice is None:
        return _by_halves(node, column, low, high, nullable, exactly)
    first, last = math.ceil(low / column.lattice), math.floor(high / column.lattice)
    if last - first >= MOST_PLACES:
        return _by_halves(node, column, low, high, nullable, exactly)
    _spend(node, last - first + 1)
    places = [column.lattice * at for at in range(first, last + 1)]
    labels = [evaluated(node, {column.name: place}) for place in places]
    edges = (*places, column.lattice * (last + 1))
    found = _stepped(node, of, edges, labels, nullable)
    if len(found.labels) <= MOST_STEPS or exactly:
        return found
    return _by_halves(node, column, low, high, nullable, exactly)


def _is_listed(column: object) -> bool:
    return isinstance(column, Flag) or (isinstance(column, Category) and column.values is not None)


def _values(column: Any) -> list[Value]:
    return [False, True] if isinstance(column, Flag) else list(column.values)


def _listed(node: Node, columns: list[Any]) -> Node | None:
    """A CASE over the declared values of one or several columns."""
    pairs = math.prod(len(_values(column)) + 1 for column in columns)
    if pairs > MOST_PAIRS:
        return None
    _spend(node, pairs)
    names = {column.name: column for column in node.find_all(exp.Column)}

    def chosen(at: int, values: dict[str, Value]) -> Node:
        if at == len(columns):
            return _as_constant(evaluated(node, values), node)
        column = columns[at]
        cases = [
            (value, chosen(at + 1, {**values, column.name: value})) for value in _values(column)
        ]
        rest = chosen(at + 1, {**values, column.name: None})
        return _choice(names[column.name], cases, rest)

    return chosen(0, {})


def _choice(column: Node, cases: list[tuple[Value, Node]], rest: Node) -> Node:
    """CASE WHEN column IN (...) THEN ... ELSE rest END, with equal results together."""
    groups: dict[str, tuple[list[Value], Node]] = {}
    for value, made in cases:
        groups.setdefault(made.sql(), ([], made))[0].append(value)
    groups.pop(rest.sql(), None)
    if not groups:
        return rest
    branches = [
        exp.If(
            this=exp.In(this=column.copy(), expressions=[constant(value) for value in values])
            if not isinstance(values[0], bool)
            else exp.EQ(this=column.copy(), expression=constant(values[0])),
            true=made,
        )
        for values, made in groups.values()
        if not isinstance(values[0], bool) or len(values) == 1
    ]
    both = [made for values, made in groups.values() if len(values) == 2 and values[0] is False]
    if both:
        there = exp.Not(this=exp.Is(this=column.copy(), expression=exp.Null()))
        branches.append(exp.If(this=there, true=both[0]))
    return exp.Case(ifs=branches, default=rest)


def _as_constant(value: Value, node: Node) -> Node:
    if isinstance(value, datetime.date):
        raise wrong(node, Reason.WRONG_TYPE, f"{spoken(node)} makes a day of texts; group by a day")
    if isinstance(value, bool):
        return constant(value)
    return constant(value)


def _stepped(
    node: Node, of: Expression, edges: tuple[Value, ...], labels: list[Value], nullable: bool
) -> StepFunction:
    if nullable:
        missing = evaluated(node, {column.name: None for column in node.find_all(exp.Column)})
        if missing is not None:
            raise wrong(
                node,
                Reason.NO_GROUPS,
                f"{spoken(node)} has a value where the column is NULL; take COALESCE out of it, or"
                " add WHERE ... IS NOT NULL",
            )
    made = maths.rounded(labels) if _are_numbers(labels) else labels
    return StepFunction(of, tuple(map(_tidy, edges)), tuple(made), nullable).merged()


def _are_numbers(labels: list[Value]) -> bool:
    return all(
        label is None or (isinstance(label, int | Fraction) and not isinstance(label, bool))
        for label in labels
    )


def _tidy(value: Value) -> Value:
    return value.numerator if isinstance(value, Fraction) and value.denominator == 1 else value


def _by_days(
    node: Node, column: Number, low: Fraction, high: Fraction, nullable: bool
) -> StepFunction | None:
    first, last = math.ceil(low), math.floor(high)
    if last - first >= MOST_PLACES:
        return None
    _spend(node, last - first + 1)
    days = [EPOCH.date() + DAY * at for at in range(first, last + 2)]
    labels = [evaluated(node, {column.name: day}) for day in days[:-1]]
    return _stepped(node, col(column.name), tuple(days), labels, nullable)


def _by_hours(
    node: Node, column: Number, low: Fraction, high: Fraction, nullable: bool
) -> StepFunction | None:
    """Of a time: only what holds still within an hour or a day."""
    lengths = {_holds_still(each, node) for each in node.find_all(exp.Column)}
    if None in lengths:
        return None
    unit = "hour" if "hour" in lengths else "day"
    start = truncated(EPOCH + datetime.timedelta(seconds=math.floor(low)), unit)
    end = EPOCH + datetime.timedelta(seconds=math.floor(high))
    step = datetime.timedelta(hours=1) if unit == "hour" else DAY
    count = (end - start) // step + 1
    if count > MOST_PLACES:
        return None
    _spend(node, count)
    times = [start + step * at for at in range(count + 1)]
    labels = [evaluated(node, {column.name: at}) for at in times[:-1]]
    return _stepped(node, col(column.name), tuple(times), labels, nullable)


def _holds_still(column: Node, top: Node) -> str | None:
    """hour or day where a part around the column changes at such borders only."""
    at = column
    while at is not top:
        at = at.parent  # type: ignore[assignment]
        match at:
            case exp.Extract() if at.this.name in BY_BORDERS or at.this.name in INSIDE:
                return "hour" if at.this.name == "hour" else "day"
            case exp.DateTrunc():
                return "hour" if at.args["unit"].name.casefold() == "hour" else "day"
            case exp.TimeToStr():
                found = directives(str(at.args["format"].name))
                return "hour" if "H" in found else "day"
            case exp.LastDay():
                return "day"
            case exp.Cast() if at.args["to"].this == exp.DType.DATE:
                return "day"
            case exp.DateDiff() | exp.TimestampDiff() | DaysBetween():
                if isinstance(at, exp.TimestampDiff) or at.args.get("whole"):
                    return None  # whole units since a time change within an hour
                unit = unit_of(at.args.get("unit") or "day", "")
                return "hour" if unit == "hour" else None if unit in ("minute", "second") else "day"
    return None


# --- columns without a step ---------------------------------------------------------------------


def _by_halves(
    node: Node,
    column: Number,
    low: Fraction,
    high: Fraction,
    nullable: bool,
    exactly: bool,
) -> StepFunction | None:
    """A function of a column without a step, constant on cells.

    The cell over which the function may differ most is halved, until there are as many as a table
    may have. The value of a cell is the middle of what the function surely lies between there.
    """
    if low >= high:
        return None
    _spend(node, 4 * MOST_CELLS)
    name = column.name
    least = (high - low) / 2**FINEST
    cells = _halved(lambda a, b: enclosed(node, a, b), low, high, least)
    values, widest, jumps = [], Fraction(0), False
    for a, b, inside in cells:
        if isinstance(inside, Span) and (b - a > least or inside.low == inside.high):
            values.append((inside.low + inside.high) / 2)
            widest = max(widest, (inside.high - inside.low) / 2)
        elif isinstance(inside, frozenset) and len(inside) == 1:
            values.append(*inside)
        elif b - a > least:
            return None  # what it is there is not known
        else:
            jumps = True
            values.append(evaluated(node, {name: a}))
    if widest and exactly:
        return None
    if widest:
        off = widest + maths.coarseness([each for each in values if isinstance(each, Fraction)])
        where = f", {float(least):.1g} around its jumps apart" if jumps else ""
        _say(
            f"{spoken(node)} of {name} is read off a table of {len(cells)} steps: each value is"
            f" off by at most {_rounded_up(off)}{where}"
        )
    edges = (*(a for a, _, _ in cells), high + least)
    return _stepped(node, col(name), edges, values, nullable)


def _rounded_up(size: Fraction) -> str:
    """Three digits, not below."""
    spelled = f"{float(size):.3g}"
    return spelled if Fraction(spelled) >= size else f"{float(size) * 1.005:.3g}"


def _gap(inside: Enclosure) -> Fraction:
    """How far apart the values over a cell may be; other things than numbers, any way."""
    if isinstance(inside, Span):
        return inside.high - inside.low
    return Fraction(0) if inside is not None and len(inside) == 1 else Fraction(2) ** 600


Cell: TypeAlias = tuple[Fraction, Fraction, Enclosure]


def _halved(
    inside: Callable[[Fraction, Fraction], Enclosure],
    low: Fraction,
    high: Fraction,
    least: Fraction,
) -> list[Cell]:
    """[low, high] in cells, the most where the function changes most; none below `least`."""
    cuts = [low + (high - low) * part / FIRST_PARTS for part in range(FIRST_PARTS + 1)]
    waiting: list[tuple[Fraction, Fraction, Fraction, int]] = []
    made: list[Enclosure] = []

    def add(a: Fraction, b: Fraction) -> None:
        made.append(inside(a, b))
        heapq.heappush(waiting, (-_gap(made[-1]), a, b, len(made) - 1))

    for a, b in itertools.pairwise(cuts):
        add(a, b)
    done: list[Cell] = []
    while waiting and len(waiting) + len(done) < MOST_CELLS - 1:
        size, a, b, at = heapq.heappop(waiting)
        if not size or b - a <= least:
            done.append((a, b, made[at]))
            continue
        middle = (a + b) / 2
        add(a, middle)
        add(middle, b)
    return sorted(done + [(a, b, made[at]) for _, a, b, at in waiting], key=lambda cell: cell[0])


FIRST_PARTS = 16


def _say(note: str) -> None:
    made = TABULATIONS.get()
    if made is not None and note not in made.notes:
        made.notes.append(note)


def _spend(node: Node, places: int) -> None:
    """Refuse what would take too long to be worked out; the work of a statement is added up."""
    made = TABULATIONS.get() or Tabulations()
    made.left -= places * sum(1 for _ in node.walk())
    if made.left < 0:
        raise wrong(
            node,
            Reason.TOO_LARGE,
            f"{spoken(node)} is too long to be worked out for every value of its columns; narrow"
            " the range with WHERE, or shorten it",
        )


# --- one value ----------------------------------------------------------------------------------


def evaluated(node: Node, values: Mapping[str, Value]) -> Value:
    """An expression at one value of each of its columns, with SQL's NULL."""
    match node:
        case exp.Paren():
            return evaluated(node.this, values)
        case exp.Column():
            return values[node.name]
        case exp.Literal():
            return str(node.this) if node.is_string else _tidy(maths.constant_of(node))
        case exp.RawString() | exp.National():
            return str(node.this)
        case exp.Null():
            return None
        case exp.Boolean():
            return bool(node.this)
    work = WORK.get(type(node))
    if work is None:
        raise wrong(
            node, Reason.NOT_IN_LANGUAGE, f"{spoken(node)} is not a function that is known here"
        )
    try:
        return work(node, lambda part: evaluated(part, values))
    except InvalidQuery:
        raise
    except (ArithmeticError, ValueError, TypeError, AttributeError, OverflowError):
        raise wrong(
            node, Reason.WRONG_TYPE, f"{spoken(node)} does not go with these values"
        ) from None


Part: TypeAlias = Callable[[Node], Value]
Work: TypeAlias = Callable[[Node, Part], Value]


def _sides(node: Node, part: Part) -> tuple[Value, Value]:
    return part(node.this), part(node.expression)


def _moment(value: Value) -> datetime.datetime:
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value.strip())
    if isinstance(value, datetime.datetime):
        return value
    if isinstance(value, datetime.date):
        return datetime.datetime.combine(value, datetime.time())
    raise ValueError(value)


def _plain(at: datetime.datetime) -> datetime.date:
    return at if at.time() != datetime.time() else at.date()


def _added(sign: int) -> Work:
    def work(node: Node, part: Part) -> Value:
        by = node.expression
        while isinstance(by, exp.Paren):
            by = by.this
        left = part(node.this)
        if isinstance(by, exp.Interval):
            if left is None:
                return None
            count, unit = _interval(by, part)
            return None if count is None else _plain(after(_moment(left), sign * count, unit, node))
        right = part(by)
        if left is None or right is None:
            return None
        if isinstance(left, str) and isinstance(right, str) and sign > 0:
            return left + right  # as T-SQL puts texts together
        if isinstance(left, datetime.date):
            if isinstance(right, datetime.date):
                seconds = (_moment(left) - _moment(right)) // datetime.timedelta(seconds=1)
                return _tidy(Fraction(seconds, 86_400))
            return _plain(_moment(left) + sign * DAY * int(right))
        if isinstance(right, datetime.date) and sign > 0:
            return _plain(_moment(right) + DAY * int(left))
        return _tidy(Fraction(left) + sign * Fraction(right))

    return work


def _interval(node: Node, part: Part) -> tuple[int | None, str]:
    amount = node.this
    if isinstance(amount, exp.Literal) or amount.find(exp.Column) is None:
        return interval_of(node)
    found = part(amount)
    return None if found is None else int(found), unit_of(node.args.get("unit") or "day", "")


def _times(node: Node, part: Part) -> Value:
    left, right = _sides(node, part)
    if left is None or right is None:
        return None
    if isinstance(node, exp.Mul):
        return _tidy(Fraction(left) * Fraction(right))
    return None if right == 0 else _tidy(Fraction(left) / Fraction(right))


def _alike(left: Value, right: Value) -> tuple[Value, Value]:
    """Two values that can be compared: a day written as text is a day, a flag 1 or 0."""
    if isinstance(left, datetime.date) or isinstance(right, datetime.date):
        return _moment(left), _moment(right)
    if isinstance(left, str) is not isinstance(right, str):
        sides = (left, right)
        left, right = (Fraction(x.strip()) if isinstance(x, str) else x for x in sides)
    return left, right


def _compared(test: Callable[[Value, Value], bool]) -> Work:
    def work(node: Node, part: Part) -> Value:
        left, right = _sides(node, part)
        return None if left is None or right is None else test(*_alike(left, right))

    return work


def _both(node: Node, part: Part) -> Value:
    left, right = _sides(node, part)
    decisive = isinstance(node, exp.Or)
    if decisive in (left, right):
        return decisive
    return None if None in (left, right) else not decisive


def _among(node: Node, part: Part) -> Value:
    of = part(node.this)
    if of is None:
        return None
    listed = [part(each) for each in node.expressions]
    if any(each is not None and _same(of, each) for each in listed):
        return True
    return None if None in listed else False


def _same(left: Value, right: Value) -> bool:
    first, second = _alike(left, right)
    return bool(first == second)


def _between(node: Node, part: Part) -> Value:
    of, low, high = (part(node.args[name]) for name in ("this", "low", "high"))
    if None in (of, low, high):
        return None
    first, second = _alike(of, low), _alike(of, high)
    return bool(first[1] <= first[0] and second[0] <= second[1])


def _case(node: Node, part: Part) -> Value:
    for branch in node.args["ifs"]:
        if part(branch.this) is True:
            return part(branch.args["true"])
    default = node.args.get("default")
    return None if default is None else part(default)


def _coalesce(node: Node, part: Part) -> Value:
    for each in (node.this, *node.expressions):
        found = part(each)
        if found is not None:
            return found
    return None


def _nullif(node: Node, part: Part) -> Value:
    left, right = _sides(node, part)
    return None if left is not None and right is not None and _same(left, right) else left


def _extreme(pick: Callable[[list[Value]], Value]) -> Work:
    def work(node: Node, part: Part) -> Value:
        found = [part(each) for each in (node.this, *node.expressions)]
        return None if None in found else pick(found)

    return work


def _cast(node: Node, part: Part) -> Value:
    value, to = part(node.this), node.args["to"]
    if value is None:
        return None
    kind = to.this
    if kind in texts.TEXT_TYPES:
        return _spelled(value)
    if kind == exp.DType.DATE:
        return _moment(value).date()
    if kind in TIMES:
        return _plain(_moment(value))
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, str):
        value = Fraction(Decimal(value.strip()))
    if kind in WHOLE:
        return int(maths.half_away(Fraction(value)))
    if to.expressions[1:]:
        return _tidy(maths.half_away(Fraction(value), Fraction(int(to.expressions[1].name))))
    return value


WHOLE = {
    exp.DType.INT,
    exp.DType.BIGINT,
    exp.DType.SMALLINT,
    exp.DType.TINYINT,
    exp.DType.BIT,
    exp.DType.UINT,
    exp.DType.UBIGINT,
}


def _spelled(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Fraction):
        return str(float(value))
    return value.isoformat(sep=" ") if isinstance(value, datetime.datetime) else str(value)


def _text(node: Node, part: Part) -> Value:
    names, work = texts.FUNCTIONS.get(type(node)) or texts.TESTS[type(node)]
    given: list[Any] = []
    for name in names:
        inner = node.args.get(name)
        if isinstance(inner, list):
            given.append([_as_text(part(each)) for each in inner])
        else:
            given.append(_as_text(part(inner)) if isinstance(inner, exp.Expr) else None)
    return texts.bearable(node, work(node, *given))


def _as_text(value: Value) -> Value:
    if isinstance(value, bool | Fraction | datetime.date):
        return _spelled(value)
    return value


def _like(node: Node, part: Part) -> Value:
    of, pattern = _sides(node, part)
    if of is None or pattern is None:
        return None
    found = like(texts.pattern_of(node, pattern), str(of))
    return found is not bool(node.args.get("negate"))


def _pattern(node: Node, part: Part) -> Value:
    of, pattern = _sides(node, part)
    either_case, whole = isinstance(node, exp.RegexpILike), bool(node.args.get("full_match"))
    return texts.matches(texts.pattern_of(node, pattern), of, either_case, whole)


def _number(node: Node, part: Part) -> Value:
    names, function = maths.WORK[type(node)]
    given = [part(node.args[name]) for name in names if node.args.get(name) is not None]
    if any(value is None for value in given):
        return None
    return _tidy(maths.applied(node, function, [Fraction(value) for value in given]))


def _part(node: Node, part: Part) -> Value:
    inner = node.expression if isinstance(node, exp.Extract) else node.this
    of = part(inner)
    if of is None:
        return None
    if isinstance(node, exp.Extract) and node.this.name == "epoch":
        if isinstance(of, int | Fraction):
            return _tidy(Fraction(of) * 86_400)  # of days between two days
        return int((_moment(of) - EPOCH).total_seconds())
    return part_of(node, _moment(of))


def _last_day(node: Node, part: Part) -> Value:
    of = part(node.this)
    if of is None:
        return None
    unit = unit_of(node.args.get("unit") or "month", "")
    start = truncated(_moment(of), unit)
    return (after(start, 1, unit, node) - DAY).date()


def _from_parts(node: Node, part: Part) -> Value:
    found = [part(node.args[name]) for name in ("year", "month", "day")]
    return None if None in found else datetime.date(*map(int, found))


def _to_date(node: Node, part: Part) -> Value:
    of, form = part(node.this), node.args.get("format")
    if of is None:
        return None
    if form is None:
        return _moment(of).date()
    spelled = str(of)
    if set(directives(str(form.name))) - set(DIRECTIVES):
        raise ValueError(form)
    return _plain(datetime.datetime.strptime(spelled, str(form.name)))


def _between_moments(node: Node, part: Part) -> Value:
    """DATEDIFF: how many borders of a unit lie between two moments."""
    later, earlier = part(node.this), part(node.expression)
    if later is None or earlier is None:
        return None
    unit = unit_of(node.args.get("unit") or "day", "")
    if isinstance(node, DaysBetween) and node.args.get("whole"):
        return math.trunc((_moment(later) - _moment(earlier)) / DAY)
    first, last = (_moment(each) for each in (earlier, later))
    months = {"year": 12, "quarter": 3, "month": 1}.get(unit)
    if isinstance(node, exp.TimestampDiff) and months:  # MySQL counts whole units that passed
        whole = (last.year - first.year) * 12 + last.month - first.month
        whole -= (last.day, last.time()) < (first.day, first.time())
        return math.trunc(Fraction(whole, months))
    if months:
        count = [(at.year * 12 + at.month - 1) // months for at in (first, last)]
        return count[1] - count[0]
    seconds = {"week": 604_800, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
    if unit.startswith("week("):
        return (truncated(last, unit) - truncated(first, unit)) // (7 * DAY)
    if isinstance(node, exp.TimestampDiff):
        return math.trunc((last - first) / datetime.timedelta(seconds=seconds[unit]))
    start, end = (truncated(at, unit) for at in (first, last))
    return (end - start) // datetime.timedelta(seconds=seconds[unit])


def _months_between(node: Node, part: Part) -> Value:
    later, earlier = _sides(node, part)
    if later is None or earlier is None:
        return None
    last, first = _moment(later), _moment(earlier)
    whole = (last.year - first.year) * 12 + last.month - first.month
    ends = [(at + DAY).month != at.month for at in (last, first)]
    if last.day == first.day or all(ends):
        return whole
    return _tidy(maths.half_away(Fraction(whole) + Fraction(last.day - first.day, 31), Fraction(8)))


def _bin(node: Node, part: Part) -> Value:
    """TIME_BUCKET(INTERVAL '7 days', day): from Monday, 3 January 2000."""
    of = part(node.expression)
    if of is None:
        return None
    count, unit = interval_of(node.this)
    size = {"week": 7, "day": 1}.get(unit)
    at, origin = _moment(of), datetime.datetime(2000, 1, 3)
    if size is None:
        months = {"year": 12, "quarter": 3, "month": 1}[unit] * count
        whole = (at.year - 2000) * 12 + at.month - 1
        start = whole - whole % months
        return datetime.date(2000 + start // 12, start % 12 + 1, 1)
    return (at - (at - origin) % (size * count * DAY)).date()


def _nth(node: Node, part: Part) -> Value:
    """ELT(n, a, b), CHOOSE(n, a, b)."""
    at = part(node.this)
    listed = node.expressions
    return part(listed[int(at) - 1]) if at is not None and 1 <= at <= len(listed) else None


def _bucket(node: Node, part: Part) -> Value:
    of = part(node.this)
    edges = [part(each) for each in node.expression.expressions]
    return None if of is None else sum(edge <= of for edge in edges)


def _position(node: Node, part: Part) -> Value:
    """FIND_IN_SET(x, 'a,b,c')."""
    of, listed = part(node.expressions[0]), part(node.expressions[1])
    if of is None or listed is None:
        return None
    found = str(listed).split(",")
    return found.index(str(of)) + 1 if str(of) in found else 0


def _named(node: Node, part: Part) -> Value:
    if str(node.this).upper() == "FIND_IN_SET" and len(node.expressions) == 2:
        return _position(node, part)
    if str(node.this).upper() == "CLAMP" and len(node.expressions) == 3:
        of, low, high = map(part, node.expressions)
        return None if None in (of, low, high) else min(max(of, low), high)
    raise wrong(node, Reason.NOT_IN_LANGUAGE, f"{spoken(node)} is not a function known here")


WORK: dict[type[Node], Work] = {
    **dict.fromkeys(texts.FUNCTIONS, _text),
    **dict.fromkeys((exp.ILike, exp.StartsWith, exp.EndsWith, exp.Contains), _text),
    **dict.fromkeys(texts.REGULAR, _pattern),
    **dict.fromkeys(maths.WORK, _number),
    **dict.fromkeys(PARTS, _part),
    exp.Like: _like,
    exp.Add: _added(1),
    exp.Sub: _added(-1),
    exp.Mul: _times,
    exp.Div: _times,
    exp.SafeDivide: _times,
    exp.EQ: _compared(lambda a, b: bool(a == b)),
    exp.NEQ: _compared(lambda a, b: bool(a != b)),
    exp.LT: _compared(lambda a, b: bool(a < b)),
    exp.LTE: _compared(lambda a, b: bool(a <= b)),
    exp.GT: _compared(lambda a, b: bool(a > b)),
    exp.GTE: _compared(lambda a, b: bool(a >= b)),
    exp.And: _both,
    exp.Or: _both,
    exp.Not: lambda node, part: None if (found := part(node.this)) is None else not found,
    exp.Is: lambda node, part: part(node.this) is None,
    exp.In: _among,
    exp.Between: _between,
    exp.Case: _case,
    exp.Coalesce: _coalesce,
    exp.Nullif: _nullif,
    exp.Least: _extreme(min),
    exp.Greatest: _extreme(max),
    exp.Cast: _cast,
    exp.LastDay: _last_day,
    exp.DateFromParts: _from_parts,
    exp.StrToDate: _to_date,
    exp.DateDiff: _between_moments,
    exp.TimestampDiff: _between_moments,
    DaysBetween: _between_moments,
    exp.MonthsBetween: _months_between,
    exp.DateBin: _bin,
    exp.Elt: _nth,
    exp.RangeBucket: _bucket,
    exp.Anonymous: _named,
}
"""Every function that can be worked out at one value."""


# --- conditions and numbers of rows -------------------------------------------------------------

CONDITIONS = (
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.In,
    exp.Between,
    exp.Is,
    exp.Like,
    exp.And,
    exp.Or,
    exp.Not,
    *texts.ALWAYS_A_TEST,
)


def condition(node: Node, schema: Schema) -> Node | None:
    """A test as comparisons with constants; None where it cannot be worked out."""
    found = tabulated(node, schema)
    if isinstance(found, StepFunction):
        return ready(found.condition(lambda label: label))  # type: ignore[arg-type,return-value]
    if found is None:
        return None
    return exp.EQ(this=_as_codes(found), expression=constant(1))


def _as_codes(node: Node) -> Node:
    for leaf in list(node.find_all(exp.Boolean)):
        if not isinstance(leaf.parent, exp.EQ):
            if leaf is node:
                return constant(int(leaf.this))
            leaf.replace(constant(int(leaf.this)))
    return node


def number(node: Node, schema: Schema) -> Node | None:
    """A number as choices between constants; None where it cannot be worked out."""
    found = tabulated(node, schema)
    if isinstance(found, StepFunction):
        return ready(found.number())
    return found
