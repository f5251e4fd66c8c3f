"""A SELECT as our own tree: what is asked of rows, and what is made of the noisy answers."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from sulq.errors import Reason
from sulq.kernel.query.expressions import Expression, Plain
from sulq.kernel.query.sum_query import Group
from sulq.sql.parse.grammar import Node, PrecisionTarget, wrong


@dataclass(frozen=True, slots=True)
class ConstantOutput:
    """A public value."""

    value: Plain


@dataclass(frozen=True, slots=True)
class GroupKey:
    """The public label of a cell along one group column; with `labels`, what is made of it."""

    place: int
    labels: tuple[object, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate:
    """A statistic of `of` over the rows of a cell where `where` is true.

    count (rows; with `of`, where it is there), sum, avg, var_pop, var_samp, stddev_pop,
    stddev_samp, quantile (at `share`), min, max, persons; corr, covar_pop, covar_samp (with
    `other`).
    """

    kind: str
    of: Expression | None = None
    where: Expression | None = None
    share: Fraction | None = None
    tested: bool = False  # COUNT of a condition, which counts where it is true or false
    moment: str = ""  # date or datetime, where it is a day or a time
    span: tuple[int, int] | None = None  # where it stands in the text
    other: Expression | None = None  # the second value of a pair


@dataclass(frozen=True, slots=True, eq=False)
class Calculation:
    """+ - * / negate abs round sqrt ln exp log10 floor ceil power of outputs; = <> < <= and or
    not in null of them; case (test, value, test, value, ..., otherwise) and coalesce.

    date and datetime make a number of a public day or time.
    """

    operator: str
    parts: tuple[Output, ...]


@dataclass(frozen=True, slots=True, eq=False)
class OverGroups:
    """SUM(output) OVER (): added up over all cells."""

    of: Output


@dataclass(frozen=True, slots=True, eq=False)
class Windowed:
    """A window function over the cells that HAVING leaves.

    sum, avg, min, max, count, first_value, last_value, lag, lead of an output; rank, dense_rank
    and row_number. `frame` is how many cells before the current one count, None for all; without
    `running` the whole partition does.
    """

    function: str
    of: Output | None
    partition: tuple[Output, ...] = ()
    order: tuple[Ordering, ...] = ()
    running: bool = False
    frame: int | None = None
    offset: int = 1
    default: Output | None = None
    """Of LAG and LEAD, where there is no such group."""
    after: int = 0
    """Of a frame: how many cells after the current one count."""


@dataclass(frozen=True, slots=True, eq=False)
class IntervalEnd:
    """DP_INTERVAL_LOW/HIGH(alias): an end of the interval of an output."""

    of: Output
    high: bool


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """A column of the released table that FROM names: its place there, and what it is there."""

    place: int
    of: Output
    kind: str


@dataclass(frozen=True, slots=True, eq=False)
class Either:
    """A column of a UNION: what it is in each of its parts."""

    options: tuple[Output, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """An aggregate over the released rows of a group, where `test` is true.

    sum, avg, min, max, count; distinct, how many of the counts are surely of at least one row.
    """

    function: str
    of: Output | None
    test: Output | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Mapped:
    """A public function of a key."""

    of: Output
    function: Callable[[object], object]
    kind: str


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """(SELECT ...) of one value, asked together with what stands around it."""

    select: Select
    of: Output
    kind: str


Output: TypeAlias = (
    "ConstantOutput | GroupKey | Aggregate | Calculation | OverGroups | Windowed | IntervalEnd"
    " | Released | Either | Gathered | Mapped | Scalar"
)


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """A group column: the cells asked, a label for each, and which of them WHERE leaves."""

    group: Group
    labels: tuple[object, ...]
    shown: tuple[int, ...]
    undeclared: bool = False  # an open column: its keys are found by asking
    kind: str = "text"  # of keys that are found by asking: text or number
    span: tuple[int, int] | None = None  # where that stands in the text


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """A column of the result."""

    name: str
    of: Output
    unit: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Ordering:
    of: Output
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True, eq=False)
class Stacked:
    """Tables one below the other: UNION ALL; without `all`, equal rows once.

    `levels` says that they are one SELECT by several sets of keys: ROLLUP, CUBE, GROUPING SETS.
    """

    selects: tuple[Select, ...]
    all: bool = True
    levels: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Two released tables beside each other where `on` holds; `left` keeps rows without a match."""

    first: Source
    second: Source
    on: Output | None
    left: bool
    width: int  # columns of the second


Source: TypeAlias = "Select | Stacked | Joined"
"""A released table: what a SELECT around it, which is free, is made from."""


@dataclass(frozen=True, slots=True)
class Inner:
    """A SELECT in a condition of rows, as it is named; `listed` where it is a list for IN."""

    name: str
    listed: bool


@dataclass(frozen=True, slots=True, eq=False)
class Select:
    """One statement. HAVING, ORDER BY and LIMIT see noisy values only.

    With a `source` it is around released tables: `where` is a test of their rows, and it has the
    rows of each group of `gathers` together, all in one where that is empty.
    """

    items: tuple[Item, ...]
    rows: Expression
    groups: tuple[Grouping, ...] = ()
    having: Output | None = None
    order: tuple[Ordering, ...] = ()
    limit: int | None = None
    offset: int = 0
    options: dict[str, Fraction | str] = field(default_factory=dict)
    target: PrecisionTarget | None = None
    explain: bool = False
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    qualify: Output | None = None
    source: Source | None = None
    where: Output | None = None
    gathers: tuple[Output, ...] | None = None
    first: tuple[Inner, ...] = ()
    """The SELECTs in conditions of rows that are asked before this one, as they are named."""


def parts_of(output: Output) -> tuple[Output, ...]:
    """The outputs that an output is made of."""
    match output:
        case Calculation(parts=parts):
            return parts
        case OverGroups(of=inner) | IntervalEnd(of=inner) | Mapped(of=inner):
            return (inner,)
        case Released(of=inner) | Scalar(of=inner):
            return (inner,)
        case Either(options=options):
            return options
        case Gathered(of=of, test=test):
            return tuple(part for part in (of, test) if part is not None)
        case Windowed(of=of, partition=partition, order=order, default=default):
            given = [part for part in (of, default) if part is not None]
            return (*given, *partition, *(part.of for part in order))
    return ()


def aggregates_of(output: Output) -> list[Aggregate]:
    """The aggregates in an output, those of released tables too: without any it is public."""
    return [each for each in _walked(output) if isinstance(each, Aggregate)]


def own_aggregates(output: Output) -> list[Aggregate]:
    """The aggregates in an output over the rows of its own SELECT."""
    found = _walked(output, within=(Released, Scalar))
    return [each for each in found if isinstance(each, Aggregate)]


def _walked(output: Output, within: tuple[type, ...] = ()) -> Iterator[Output]:
    waiting = [output]
    while waiting:
        here = waiting.pop()
        yield here
        if not isinstance(here, within):
            waiting.extend(parts_of(here))


def outputs_of(select: Select) -> list[Output]:
    """Every output of one SELECT."""
    outputs = [item.of for item in select.items] + [part.of for part in select.order]
    outputs += [test for test in (select.where, select.having, select.qualify) if test is not None]
    return [*outputs, *(select.gathers or ())]


def sources_of(select: Select) -> Iterator[Source]:
    """What a statement is made of: what FROM names, then scalar SELECTs, then itself."""
    if select.source is not None:
        yield from _sourced(select.source)
    for output in outputs_of(select):
        for part in _walked(output, within=(Released, Scalar)):
            if isinstance(part, Scalar):
                yield from sources_of(part.select)
    yield select


def _sourced(source: Source) -> Iterator[Source]:
    match source:
        case Select():
            yield from sources_of(source)
            return
        case Stacked(selects=selects):
            for each in selects:
                yield from sources_of(each)
        case Joined(first=first, second=second):
            yield from _sourced(first)
            yield from _sourced(second)
    yield source


def selects_of(select: Select) -> Iterator[Select]:
    """The SELECTs of rows in a statement."""
    for each in sources_of(select):
        if isinstance(each, Select) and each.source is None:
            yield each


def asked_of(select: Select) -> list[Aggregate]:
    """The aggregates over rows in a statement, of all its SELECTs."""
    return [
        aggregate
        for each in selects_of(select)
        for output in outputs_of(each)
        for aggregate in own_aggregates(output)
    ]


# What kind of thing an output is, and what makes no sense of it: found out free, before asking.

FUNCTIONS = ("ln", "exp", "log10", "floor", "ceil", "power")
ARITHMETIC = ("+", "-", "*", "/", "negate", "abs", "round", "trunc", "sqrt", *FUNCTIONS)
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "in")
MOMENTS = ("date", "datetime")
NAMES = {"text": "a text", "date": "a day", "datetime": "a time", "number": "a number"}
Range = tuple[float, float]


def kind_of(output: Output, groups: Sequence[Grouping]) -> str:
    """number, text, truth, date, datetime; "" of NULL, and of keys of several kinds."""
    if isinstance(output, Released | Mapped | Scalar):
        return output.kind
    match output:
        case ConstantOutput(value=value):
            return kind_of_value(value)
        case GroupKey(place=at) if groups[at].undeclared:
            return groups[at].kind  # before its keys are known, and also where none is shown
        case GroupKey(place=at, labels=made):
            known = groups[at].labels if made is None else made
            return _common(kind_of_value(label) for label in known)
        case Calculation(operator="case", parts=parts):
            return _common(kind_of(part, groups) for part in branches(parts))
        case Calculation(operator="coalesce", parts=parts) | Either(options=parts):
            return _common(kind_of(part, groups) for part in parts)
        case Aggregate(moment=moment):
            return moment or "number"
        case OverGroups(of=inner) | IntervalEnd(of=inner):
            return kind_of(inner, groups)
        case Windowed(function=function, of=of) | Gathered(function=function, of=of):
            same = function in ("min", "max", "lag", "lead", "first_value", "last_value")
            return kind_of(of, groups) if same and of is not None else "number"
        case Calculation():
            return _calculated(output, groups)


def _calculated(output: Calculation, groups: Sequence[Grouping]) -> str:
    match output:
        case Calculation(operator="-", parts=(_, Calculation(operator="date" | "datetime"))):
            return "number"
        case Calculation(operator="-", parts=(Calculation(operator="date" | "datetime"), _)):
            return "number"
        case Calculation(operator="+" | "-" | "round" as sign, parts=parts):
            moments = [k for k in (kind_of(part, groups) for part in parts) if k in MOMENTS]
            return moments[0] if moments and not (sign == "-" and len(moments) == 2) else "number"
        case Calculation(operator=operator):
            return "number" if operator in (*ARITHMETIC, *MOMENTS) else "truth"


def _common(kinds: Iterable[str]) -> str:
    """The one kind of several values; NULL has none."""
    found = set(kinds) - {""}
    return found.pop() if len(found) == 1 else ""


def branches(parts: tuple[Output, ...]) -> tuple[Output, ...]:
    """The values that a CASE chooses from."""
    return (*parts[1:-1:2], parts[-1])


def kind_of_value(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, str):
        return "text"
    if isinstance(value, datetime.datetime):
        return "datetime"
    return "date" if isinstance(value, datetime.date) else "number"


def checked(
    operator: str, parts: tuple[Output, ...], groups: Sequence[Grouping], node: Node
) -> Calculation:
    """The calculation, or a refusal of what can never have a meaning."""
    kinds = [kind_of(part, groups) for part in parts]
    if operator in ARITHMETIC:
        _check_arithmetic(operator, parts, kinds, groups, node)
    elif operator in COMPARISONS:
        for kind in kinds[1:]:
            _check_compared(kinds[0], kind, node)
    elif operator in ("and", "or", "not") and set(kinds) - {"truth", ""}:
        raise wrong(
            node, Reason.WRONG_FORM, "AND, OR and NOT take tests; write for instance n > 100"
        )
    if operator in COMPARISONS or operator == "-":
        parts = _as_numbers(parts, kinds)
    return Calculation(operator, parts)


def _check_arithmetic(
    operator: str,
    parts: tuple[Output, ...],
    kinds: list[str],
    groups: Sequence[Grouping],
    node: Node,
) -> None:
    moments = [kind in MOMENTS for kind in kinds]
    fits = (  # a noisy day and a number of days, or how many days lie between
        (operator == "-" and moments[0])
        or (operator == "+" and moments.count(True) == 1)
        or operator == "round"
    ) and any(aggregates_of(part) for part in parts)
    if "text" in kinds or (any(moments) and not fits):
        said = "arithmetic on a text or a day; only numbers can be computed"
        raise wrong(node, Reason.WRONG_TYPE, said)
    if operator == "/" and _range(parts[1], groups) == (0, 0):
        raise wrong(node, Reason.NEEDS_BOUNDS, "a division by zero: it has no value in any group")
    if operator == "sqrt":
        low, high = _range(parts[0], groups)
        if high < 0 or (high == 0 and low < 0):
            raise wrong(
                node, Reason.NEEDS_BOUNDS, "the root of what is never above 0: it has no value"
            )


def _check_compared(left: str, right: str, node: Node) -> None:
    if "" in (left, right) or left == right or {left, right} <= set(MOMENTS):
        return
    if {left, right} == {"truth", "number"}:  # TRUE = 1
        return
    pair = (
        f"{NAMES.get(left, 'a truth value')} is compared with {NAMES.get(right, 'a truth value')}"
    )
    remedy = "compare like with like"
    if {left, right} & set(MOMENTS):
        remedy = "a day is written DATE '2024-02-29'"
    elif "text" in (left, right):
        remedy = "texts take quotes, numbers none; COUNT(*) > 5 judges the size of a group"
    raise wrong(node, Reason.WRONG_TYPE, f"{pair}; {remedy}")


def _as_numbers(parts: tuple[Output, ...], kinds: list[str]) -> tuple[Output, ...]:
    """Noisy days are numbers: public days beside them become numbers of the same kind."""
    noisy = [
        kind
        for part, kind in zip(parts, kinds, strict=True)
        if kind in MOMENTS and aggregates_of(part)
    ]
    if not noisy:
        return parts
    return tuple(
        Calculation(noisy[0], (part,)) if kind in MOMENTS and not aggregates_of(part) else part
        for part, kind in zip(parts, kinds, strict=True)
    )


def _range(output: Output, groups: Sequence[Grouping]) -> Range:
    """Where the true value surely lies."""
    match output:
        case ConstantOutput(value=int() | Fraction() as value):
            return float(value), float(value)
        case GroupKey(place=at, labels=made):
            listed = groups[at].labels if made is None else made
            known = [listed[cell] for cell in groups[at].shown]
            numbers = [float(x) for x in known if isinstance(x, int | float | Fraction)]
            return (min(numbers), max(numbers)) if numbers else (-math.inf, math.inf)
        case Aggregate(kind=kind) if kind in ("count", "persons") or kind[:3] in ("var", "std"):
            return 0.0, math.inf
        case Released(of=inner):
            return _range(inner, ()) if isinstance(inner, Aggregate) else (-math.inf, math.inf)
        case OverGroups(of=inner):
            low, high = _range(inner, groups)
            return (0.0 if low >= 0 else -math.inf), (0.0 if high <= 0 else math.inf)
        case Calculation(operator=operator, parts=parts) if operator in ARITHMETIC:
            return _combined(operator, [_range(part, groups) for part in parts])
    return -math.inf, math.inf


def _combined(operator: str, parts: list[Range]) -> Range:
    (low, high), *rest = parts
    match operator:
        case "+":
            return low + rest[0][0], high + rest[0][1]
        case "-":
            return low - rest[0][1], high - rest[0][0]
        case "negate":
            return -high, -low
        case "*":
            ends = [0.0 if 0.0 in (x, y) else x * y for x in (low, high) for y in rest[0]]
            return min(ends), max(ends)
        case "abs" | "sqrt":
            return 0.0, math.inf
        case "/" if rest[0][0] == rest[0][1] != 0:
            return tuple(sorted((low / rest[0][0], high / rest[0][0])))  # type: ignore[return-value]
    return -math.inf, math.inf
