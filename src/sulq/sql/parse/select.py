"""A SELECT as our own tree: what is asked of rows, and what is made of the noisy answers."""

from __future__ import annotations

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

    sum, avg, min, max, count, first_value, last_value, lag, lead of an output; distinct, how many
    cells surely hold a row; rank, dense_rank and row_number. `frame` is how many cells before the
    current one count, None for all; without `running` the whole partition does.
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


Output: TypeAlias = (
    "ConstantOutput | GroupKey | Aggregate | Calculation | OverGroups | Windowed | IntervalEnd"
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
class Select:
    """One statement. HAVING, ORDER BY and LIMIT see noisy values only."""

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
    collapsed: bool = False  # aggregates over the groups: one row


def parts_of(output: Output) -> tuple[Output, ...]:
    """The outputs that an output is made of."""
    match output:
        case Calculation(parts=parts):
            return parts
        case OverGroups(of=inner) | IntervalEnd(of=inner):
            return (inner,)
        case Windowed(of=of, partition=partition, order=order):
            return (*([] if of is None else [of]), *partition, *(part.of for part in order))
    return ()


def aggregates_of(output: Output) -> list[Aggregate]:
    """The aggregates in an output."""
    found: list[Aggregate] = []
    waiting = [output]
    while waiting:
        here = waiting.pop()
        if isinstance(here, Aggregate):
            found.append(here)
        waiting.extend(parts_of(here))
    return found
