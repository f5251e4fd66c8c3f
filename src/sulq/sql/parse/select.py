"""A SELECT as our own tree: what is asked of rows, and what is made of the noisy answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from sulq.kernel.query.expressions import Expression, Plain
from sulq.kernel.query.sum_query import Group


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
    undeclared: bool = False  # open text: its keys are found by asking
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


@dataclass(frozen=True, slots=True)
class PrecisionTarget:
    """WITHIN amount [PERCENT] CONFIDENCE confidence."""

    amount: Fraction
    percent: bool
    confidence: float | None


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
        case Windowed(of=of, partition=partition, order=order):
            return (*([] if of is None else [of]), *partition, *(part.of for part in order))
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
