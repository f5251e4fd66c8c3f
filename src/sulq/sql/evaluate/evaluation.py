"""From noisy answers to the rows of a result. Post-processing only."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sulq.answers.oracle import Answer
from sulq.answers.statistics import PairSums
from sulq.errors import InvalidQuery
from sulq.kernel.accounting.pricing import noise_text
from sulq.kernel.noise.intervals import Draw, Ends, Rounding, is_rounded
from sulq.kernel.noise.laws import NoNoise
from sulq.kernel.schema.columns import EPOCH
from sulq.sql.evaluate.linear_forms import UNKNOWN, Estimate, Made, Noisy, as_estimate
from sulq.sql.evaluate.result import PairEstimate, Stated, mean, power, root, variance
from sulq.sql.parse.select import (
    MOMENTS,
    Aggregate,
    Calculation,
    ConstantOutput,
    Gathered,
    GroupKey,
    IntervalEnd,
    Joined,
    Mapped,
    Ordering,
    Output,
    OverGroups,
    Released,
    Scalar,
    Select,
    Source,
    Stacked,
    Windowed,
    aggregates_of,
    kind_of,
)
from sulq.sql.plan.plan import (
    Mean,
    PairNode,
    PersonsNode,
    Public,
    Quantile,
    Recipe,
    StatementPlan,
    TotalNode,
    VarianceNode,
)

Value = Any
"""An Estimate, or a public value: text, number, truth value, date or None."""


def calculated(operator: str, parts: list[Value]) -> Value:
    """An operation on estimates and public values; NULL in, NULL out."""
    if operator in ("and", "or", "not", "null", "in"):
        return _logic(operator, parts)
    if operator == "coalesce":
        return next((part for part in parts if part is not None), None)
    if any(part is None for part in parts):
        return None
    if operator in ("=", "<>", "<", "<=", ">", ">="):
        return _compared(operator, *map(plain, parts))
    if operator in ("date", "datetime"):
        return moment_number(parts[0], operator)
    parts = [part.unrounded if isinstance(part, Estimate) else part for part in parts]
    if not any(isinstance(part, Estimate) for part in parts):
        return _public(operator, [float(part) for part in parts])
    match operator, parts:
        case "+", [a, b]:
            return a + b
        case "-", [a, b]:
            return a - b
        case "*", [a, b]:
            return a * b
        case "/", [a, b]:
            return as_estimate(a) / as_estimate(b)
        case "negate", [a]:
            return -a
        case "abs", [a]:
            return Made((a,), abs, _abs_ends)
        case "sqrt", [a]:
            return root(a)
        case "round", [a, digits]:
            return Made((a,), lambda x: _rounded(x, digits), lambda e: _outwards(e, digits))
        case "trunc", [a, digits]:
            cut = partial(_truncated, digits=int(digits))
            return Made((a,), cut, lambda e: (cut(e[0]), cut(e[1])))
        case "power", [a, exponent]:
            return power(as_estimate(a), int(exponent))
        case "ln" | "exp" | "log10" | "floor" | "ceil", [a]:
            rising = partial(_rising, operator)
            return Made((a,), rising, lambda e: (rising(e[0]), rising(e[1])))
    raise AssertionError(operator)


def _chosen(parts: list[Value], noisy: bool) -> Value:
    """CASE: what the noisy tests choose; its interval holds what any other branch may be, too."""
    tests, values = parts[:-1:2], [*parts[1:-1:2], parts[-1]]
    place = next((at for at, test in enumerate(tests) if test is True), len(values) - 1)
    found = values[place]
    others = [
        x for x in values if isinstance(x, Estimate | int | float) and not isinstance(x, bool)
    ]
    if not noisy or found is None:
        return found
    if not isinstance(found, Estimate | int | float) or isinstance(found, bool):
        return found
    at = next(place for place, x in enumerate(others) if x is found)
    return Made(
        tuple(as_estimate(x) for x in others),
        lambda *xs: xs[at],
        lambda *ends: (min(low for low, _ in ends), max(high for _, high in ends)),
    )


def _rising(operator: str, x: float) -> float:
    """A function that never falls; below where it is defined, its lowest."""
    if not math.isfinite(x):
        return x if operator != "exp" or x > 0 else 0.0
    match operator:
        case "ln" | "log10":
            if x <= 0:
                return -math.inf
            return math.log(x) if operator == "ln" else math.log10(x)
        case "exp":
            return math.exp(min(x, 700.0))
        case "floor":
            return float(math.floor(x))
    return float(math.ceil(x))


def moment_number(moment: datetime.date, kind: str) -> float:
    """Days, or seconds, since 1970: how noisy days and times are computed with."""
    if not isinstance(moment, datetime.datetime):
        moment = datetime.datetime.combine(moment, datetime.time())
    seconds = (moment - EPOCH).total_seconds()
    return seconds / 86_400 if kind == "date" else seconds


def _rounded(x: float, digits: int) -> float:
    """Half away from 0, as SQL rounds: judged by the digits that the number is shown with."""
    if not math.isfinite(x) or abs(x) >= 1e15:
        return x
    unit = Decimal(1).scaleb(-digits)
    return float(Decimal(repr(x)).quantize(unit, ROUND_HALF_UP, Context(prec=60)))


def _truncated(x: float, digits: int) -> float:
    """Digits cut off, towards 0."""
    if not math.isfinite(x) or abs(x) >= 1e15:
        return x
    unit = Decimal(1).scaleb(-digits)
    return float(Decimal(repr(x)).quantize(unit, ROUND_DOWN, Context(prec=60)))


def _outwards(ends: tuple[float, float], digits: int) -> tuple[float, float]:
    """To the last digit, away from each other: it holds the value, and the value rounded.

    A half unit at most lies between the two. What has these digits already stays.
    """
    low, high = (_rounded(end, digits) for end in ends)
    unit = 10.0**-digits
    near = 1e-9 * unit
    low = _rounded(low - unit, digits) if low > ends[0] + near else low
    high = _rounded(high + unit, digits) if high < ends[1] - near else high
    return low, high


def _abs_ends(ends: tuple[float, float]) -> tuple[float, float]:
    low, high = ends
    return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


def _public(operator: str, parts: list[float]) -> float | None:
    match operator, parts:
        case "+", [a, b]:
            return a + b
        case "-", [a, b]:
            return a - b
        case "*", [a, b]:
            return a * b
        case "/", [a, b]:
            return a / b if b else None
        case "negate", [a]:
            return -a
        case "abs", [a]:
            return abs(a)
        case "sqrt", [a]:
            return math.sqrt(a) if a >= 0 else None
        case "round", [a, digits]:
            return _rounded(a, int(digits))
        case "trunc", [a, digits]:
            return _truncated(a, int(digits))
        case "power", [a, exponent]:
            return _raised(a, int(exponent))
        case "ln" | "exp" | "log10" | "floor" | "ceil", [a]:
            found = _rising(operator, a)
            return found if math.isfinite(found) else None
    raise AssertionError(operator)


def _raised(a: float, exponent: int) -> float | None:
    try:
        return a**exponent
    except OverflowError:
        return None


def _compared(operator: str, a: Value, b: Value) -> bool | None:
    if a != a or b != b:  # not a number: a ratio of nothing
        return None
    if operator in ("=", "<>"):
        return bool(a == b) is (operator == "=")
    left, right = order_of(a), order_of(b)
    if left[0] != right[0]:
        return None
    return bool(
        {
            "<": left[1] < right[1],
            "<=": left[1] <= right[1],
            ">": left[1] > right[1],
            ">=": left[1] >= right[1],
        }[operator]
    )


def _logic(operator: str, parts: list[Value]) -> bool | None:
    """SQL's three values."""
    if operator == "null":
        return parts[0] is None
    if operator == "in":
        found = [calculated("=", [parts[0], other]) for other in parts[1:]]
        return _logic("or", found)
    truths = [None if part is None else bool(plain(part)) for part in parts]
    if operator == "not":
        return None if truths[0] is None else not truths[0]
    decisive = operator == "or"
    if decisive in truths:
        return decisive
    return None if None in truths else not decisive


# + - * / of noisy and public values, comparisons of them, and SQL's three truth values.


Cell = tuple[int, ...]


@dataclass(slots=True)
class AnswersRead:
    """What has been read off the answers of a plan; all its SELECTs share it."""

    read: dict[tuple[int, Cell], Estimate] = field(default_factory=dict)
    steps: dict[int, list[float]] = field(default_factory=dict)
    values: dict[int, NDArray[Any]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    tracing: dict[int, bool] = field(default_factory=dict)


@dataclass(slots=True)
class Evaluation:
    """The answers of a plan, read cell by cell; a cell of a SELECT around others is one row."""

    plan: StatementPlan
    answers: Sequence[Answer]
    confidence: float
    most: float = math.inf  # rows there can be
    persons: float = math.inf
    cells: list[Cell] = field(default_factory=list)
    weak: set[Cell] = field(default_factory=set)
    """Cells that ORDER BY put last: what they are sorted by cannot be told from 0."""
    known: AnswersRead = field(default_factory=AnswersRead)
    released: list[tuple[Value, ...]] = field(default_factory=list)
    """The rows of the released tables that FROM names."""
    members: dict[Cell, list[Cell]] = field(default_factory=dict)
    """The released rows of each group, by the first of them."""
    _totals: dict[int, Estimate] = field(default_factory=dict)
    _windows: dict[int, dict[Cell, Value]] = field(default_factory=dict)
    _scalars: dict[int, Value] = field(default_factory=dict)

    def rows(self) -> list[tuple[Value, ...]]:
        """The result."""
        items = self.plan.select.items
        return [tuple(self._told(item.of, cell) for item in items) for cell in self._shown()]

    def values(self) -> list[tuple[Value, ...]]:
        """The result for a SELECT around it: NULL is None."""
        items = self.plan.select.items
        return [tuple(self.value(item.of, cell) for item in items) for cell in self._shown()]

    def _shown(self) -> list[Cell]:
        """HAVING, then totals over what it left, QUALIFY, ORDER BY, OFFSET and LIMIT."""
        select = self.plan.select
        self.cells = self._groups()
        if select.having is not None:
            self.cells = [c for c in self.cells if self.value(select.having, c) is True]
        ordered = self.cells
        if select.qualify is not None:
            ordered = [c for c in self.cells if self.value(select.qualify, c) is True]
        for part in reversed(select.order):
            ordered = self._sorted(ordered, part)
        end = None if select.limit is None else select.offset + select.limit
        return ordered[select.offset : end]

    def _groups(self) -> list[Cell]:
        select = self.plan.select
        if select.source is None and any(grouping.undeclared for grouping in select.groups):
            return [(at,) for at in select.groups[0].shown]  # several columns are one key
        if select.source is None:
            return list(itertools.product(*(grouping.shown for grouping in select.groups)))
        self.released = self._rows_of(select.source)
        listed: list[Cell] = [(at,) for at in range(len(self.released))]
        if select.where is not None:
            listed = [cell for cell in listed if self.value(select.where, cell) is True]
        if select.gathers is None:
            return listed
        if not select.gathers:
            self.members = {(): listed}
            return [()]
        found: dict[tuple[Value, ...], list[Cell]] = {}
        for cell in listed:
            key = tuple(plain(self.value(each, cell)) for each in select.gathers)
            found.setdefault(key, []).append(cell)
        self.members = {cells[0]: cells for cells in found.values()}
        return list(self.members)

    # --- released tables ------------------------------------------------------------------------

    def _rows_of(self, source: Source) -> list[tuple[Value, ...]]:
        match source:
            case Select():
                return self._inside(source).values()
            case Stacked(selects=selects):
                rows = [row for each in selects for row in self._inside(each).values()]
                once = {tuple(map(plain, row)): row for row in reversed(rows)}
                return rows if source.all else list(reversed(once.values()))
            case Joined(first=first, second=second):
                return self._joined(source, self._rows_of(first), self._rows_of(second))

    def _inside(self, select: Select) -> Evaluation:
        """One of the plan's other SELECTs."""
        plan = replace(self.plan, select=select)
        bounds = (self.confidence, self.most, self.persons)
        return Evaluation(plan, self.answers, *bounds, known=self.known)

    def _joined(
        self, joined: Joined, first: list[tuple[Value, ...]], second: list[tuple[Value, ...]]
    ) -> list[tuple[Value, ...]]:
        width = len(second[0]) if second else joined.width
        found: list[tuple[Value, ...]] = []
        for row in first:
            self.released = [(*row, *other) for other in second]
            held = [
                both
                for at, both in enumerate(self.released)
                if joined.on is None or self.value(joined.on, (at,)) is True
            ]
            found += held or ([(*row, *(None,) * width)] if joined.left else [])
        return found

    def _sorted(self, cells: list[Cell], part: Ordering) -> list[Cell]:
        """By value; what noise alone may have made comes after what can be told."""
        known: list[tuple[Value, Cell]] = []
        weak: list[tuple[Value, Cell]] = []
        unknown: list[Cell] = []
        for cell in cells:
            found = self.value(part.of, cell)
            if not is_there(found):
                unknown.append(cell)
            elif isinstance(found, Estimate) and self._is_weak(found, part):
                weak.append((plain(found), cell))
            else:
                known.append((plain(found), cell))
        listed: list[Cell] = []
        for group in (known, weak):
            group.sort(key=lambda pair: order_of(pair[0]), reverse=part.descending)
            listed += [cell for _, cell in group]
        self.weak.update(cell for _, cell in weak)
        return unknown + listed if part.nulls_first else listed + unknown

    def _is_weak(self, found: Estimate, part: Ordering) -> bool:
        """Whether it cannot be told from 0, or at all; of days and times only the latter."""
        if found.public:
            return False
        low, high = found.interval(self.confidence)
        moment = kind_of(part.of, self.plan.select.groups) in MOMENTS
        return found.unread(self.confidence) or (low <= 0 <= high and not moment)

    # --- outputs --------------------------------------------------------------------------------

    def _told(self, output: Output, cell: Cell) -> Value:
        """A value of the result; NULL among noisy numbers is an estimate without a reading."""
        found = self.value(output, cell)
        if isinstance(found, Estimate) and not aggregates_of(output):
            return found.value  # a number of groups, known to all
        kind = kind_of(output, self.plan.select.groups) if found is None else "text"
        if aggregates_of(output) and kind not in ("text", "truth"):
            return _anything(-math.inf, math.inf)
        if isinstance(found, float | int) and not isinstance(found, bool) and aggregates_of(output):
            return as_estimate(found)  # of a UNION where another part is noisy
        return found

    def value(self, output: Output, cell: Cell) -> Value:
        match output:
            case ConstantOutput(value=value):
                return float(value) if isinstance(value, Fraction) else value
            case GroupKey(place=place, labels=made):
                grouping = self.plan.select.groups[place]
                known = grouping.labels if made is None else made
                return known[cell[0 if grouping.undeclared else place]]
            case Aggregate():
                return self._aggregate(output, cell)
            case OverGroups(of=inner):
                return self._over_groups(inner)
            case Windowed():
                return self._windowed(output, cell)
            case Released() | Gathered() | Mapped() | Scalar():
                return self._of_tables(output, cell)
            case IntervalEnd(of=inner, high=high):
                found = as_estimate(self.value(inner, cell))
                return Noisy.exact(found.interval(self.confidence)[high])
            case Calculation(operator="case", parts=parts):
                values = [self.value(part, cell) for part in parts]
                return _chosen(values, noisy=bool(aggregates_of(output)))
            case Calculation(operator=operator, parts=parts):
                return calculated(operator, [self.value(part, cell) for part in parts])

    def _over_groups(self, inner: Output) -> Estimate:
        if id(inner) not in self._totals:
            found = [as_estimate(self.value(inner, cell)).unrounded for cell in self.cells]
            self._totals[id(inner)] = added_up(found)
        return self._totals[id(inner)]

    def _of_tables(self, output: Output, cell: Cell) -> Value:
        """What is made of released tables."""
        match output:
            case Released(place=place):
                return self.released[cell[0]][place]
            case Gathered(function=function, of=of, test=test):
                held = self.members[cell]
                if test is not None:
                    held = [each for each in held if self.value(test, each) is True]
                return Windows(self.value, held, self.confidence).of(function, of, held)
            case Mapped(of=inner, function=made):
                return made(self.value(inner, cell))
            case Scalar(select=select):
                return self._scalar(select)
        raise AssertionError(output)

    def _scalar(self, select: Select) -> Value:
        """The one value of a SELECT; NULL where it has no row."""
        if id(select) not in self._scalars:
            rows = self._inside(select).values()
            self._scalars[id(select)] = rows[0][0] if rows else None
        return self._scalars[id(select)]

    def _windowed(self, output: Windowed, cell: Cell) -> Value:
        """A window function, worked out once for all cells."""
        if id(output) not in self._windows:
            self._windows[id(output)] = Windows(self.value, self.cells, self.confidence).read(
                output
            )
        return self._windows[id(output)][cell]

    # --- aggregates -----------------------------------------------------------------------------

    def _aggregate(self, aggregate: Aggregate, cell: Cell) -> Estimate:
        key = (id(aggregate), cell)
        if key not in self.known.read:
            found = self._estimate(self.plan.recipes[id(aggregate)], cell)
            if aggregate.kind in ("count", "persons") and isinstance(found, Noisy | Stated):
                found = replace(found, whole=True)
            self.known.read[key] = found
        return self.known.read[key]

    def _estimate(self, recipe: Recipe, cell: Cell) -> Estimate:
        match recipe:
            case Public(value=value):
                return Noisy.exact(value)
            case TotalNode() | PersonsNode() if self._empty(cell):
                return Noisy.exact(0.0)  # for all to see
            case TotalNode(parts=parts, low=low, high=high):
                limits = self._limits(low, high)
                if len(parts) == 1:
                    ((place, weight),) = parts
                    found: Estimate = self._draw(place, cell, *limits)
                    return found if weight == 1 else found * weight
                found = Noisy.exact(0.0)
                for place, weight in parts:
                    found = found + self._draw(place, cell) * weight
                return _cut(found, limits)
            case PersonsNode(question=question):
                return self._sum(question, 0, cell, 0.0, self.persons)
            case Mean():
                return self._mean(recipe, cell)
            case VarianceNode():
                return self._variance(recipe, cell)
            case PairNode():
                return self._pair(recipe, cell)
            case Quantile():
                return self._quantile(recipe, cell)

    def _empty(self, cell: Cell) -> bool:
        """Whether everybody knows that the cell has no rows: a count without noise is 0."""
        whole = self.plan.leaf.whole
        if whole is None:
            return False
        question, position = self.plan.places[whole]
        exact = isinstance(self.answers[question].laws[position], NoNoise)
        return exact and self._draw(whole, cell).value == 0

    def _limits(self, low: float, high: float) -> tuple[float, float]:
        if math.isinf(self.most):
            return (0.0 if low >= 0 else -math.inf), (0.0 if high <= 0 else math.inf)
        return self.most * min(low, 0.0), self.most * max(high, 0.0)

    def _mean(self, recipe: Mean, cell: Cell) -> Estimate:
        counted = self._draw(recipe.counted, cell, 0.0, self.most)
        summed = self._draw(recipe.centred, cell)
        if _is_nothing(counted) or self._empty(cell):
            return _anything(recipe.low, recipe.high)
        if isinstance(counted, Noisy) and isinstance(summed, Noisy):
            return mean(counted, summed, recipe.middle, recipe.low, recipe.high)
        return _cut(summed / counted + recipe.middle, (recipe.low, recipe.high))

    def _variance(self, recipe: VarianceNode, cell: Cell) -> Estimate:
        of = recipe.mean
        counted = self._draw(of.counted, cell, 0.0, self.most)
        summed = self._draw(of.centred, cell)
        squares = self._draw(recipe.squared, cell) + counted * recipe.square_middle
        nothing = _is_nothing(counted) or self._empty(cell)
        if nothing:
            found = _anything(0.0, ((of.high - of.low) / 2) ** 2)
        elif (
            isinstance(counted, Noisy) and isinstance(summed, Noisy) and isinstance(squares, Noisy)
        ):
            found = variance(counted, summed, squares, of.low, of.high, of.middle)
        else:
            widest = ((of.high - of.low) / 2) ** 2
            found = _cut(squares / counted - power(summed / counted, 2), (0.0, widest))
        if (
            recipe.sample and counted.value > 2 and not nothing
        ):  # n / (n - 1): next to nothing where n is known
            factor = counted.value / (counted.value - 1)
            found = Made((found,), lambda x: x * factor, lambda e: (e[0] * factor, e[1] * factor))
        return root(found) if recipe.root else found

    def _pair(self, recipe: PairNode, cell: Cell) -> Estimate:
        counted = self._draw(recipe.counted, cell, 0.0, self.most)
        totals = [self._draw(place, cell) for place in recipe.totals]
        products = [self._draw(at, cell) + counted * middle for at, middle in recipe.products]
        sums = [counted, *totals, *products]
        noisy = [each for each in sums if isinstance(each, Noisy)]
        most = PairSums((), (), recipe.x_range, recipe.y_range).largest
        if _is_nothing(counted) or self._empty(cell):
            return _anything(*((-1.0, 1.0) if recipe.correlation else (-most, most)))
        if len(noisy) == len(sums):
            numbers, forms = [each.number for each in noisy], [each.draws for each in noisy]
            read = PairSums(tuple(numbers), tuple(forms), recipe.x_range, recipe.y_range)
            found: Estimate = PairEstimate(read, recipe.correlation)
        else:
            x, y = (each / counted for each in totals)
            found = products[0] / counted - x * y
            if recipe.correlation:
                squares = [
                    sq / counted - power(m, 2) for sq, m in zip(products[1:], (x, y), strict=True)
                ]
                found = _cut(found / (root(squares[0]) * root(squares[1])), (-1.0, 1.0))
            else:
                found = _cut(found, (-most, most))
        if recipe.sample and counted.value > 2:
            factor = counted.value / (counted.value - 1)
            found = Made((found,), lambda x: x * factor, lambda e: (e[0] * factor, e[1] * factor))
        return found

    def _draw(
        self, place: int, cell: Cell, low: float = -math.inf, high: float = math.inf
    ) -> Estimate:
        """A term of the vector in a cell."""
        spread = self.plan.leaf.spread
        question, position = self.plan.places[place]
        if spread is None:
            return self._sum(question, position, cell, low, high)
        finer = [self._sum(question, position, c, low, high) for c in spread.cells(cell)]
        return _cut(added_up(finer), (low, high))

    def _sum(self, question: int, position: int, cell: Cell, low: float, high: float) -> Estimate:
        """One noisy sum of a question.

        A sum that follows from stored answers is the linear form of their draws. Where another
        answer of the statement rests on the same ones and does not say how, it only states its own
        interval, and what is made of several is bounded from theirs.
        """
        if question not in self.known.steps:
            self._open(question, len(cell))
        answer, at = self.answers[question], (*cell, position)
        value = float(self.known.values[question][at])
        if answer.sources and not self._traced(question):
            name = frozenset([(self._name(question), *at)])
            return Stated(value, lambda c: _ends_at(answer, c, at), (low, high), name)
        if answer.reading.mixture is not None and answer.bound is not None:
            flat = int(np.ravel_multi_index(at, self.known.values[question].shape))
            unit = float(answer.bound.terms[position].fine_step)
            draws: dict[object, Draw] = {
                ("stored", seq, place): (float(weight) * unit, law)
                for seq, place, weight, law in answer.reading.mixture.sums[flat]
            }
            if is_rounded((w, law) for _, _, w, law in answer.reading.mixture.sums[flat]):
                draws["rounded", self._name(question), *at] = (unit, Rounding())
            if not draws:
                return Noisy.exact(value)
            return Noisy(value, draws, (low, high))
        step = self.known.steps[question][position]
        if not step:
            return Noisy.exact(value)
        return Noisy.draw(
            (self._name(question), *at), value, answer.laws[position], step, low, high
        )

    def _traced(self, question: int) -> bool:
        """Whether it is known which draws a derived answer shares with others of the statement:
        none, or both name them."""
        if question not in self.known.tracing:
            answer = self.answers[question]
            own = _origins(answer)
            sharing = [
                other
                for at, other in enumerate(self.answers)
                if at != question and own & _origins(other)
            ]
            told = [one.reading.mixture is not None for one in (answer, *sharing)]
            self.known.tracing[question] = all(told) or not sharing
        return self.known.tracing[question]

    def _open(self, question: int, axes: int) -> None:
        """The sums of an answer, and the step of each term; 0 where it has no noise."""
        answer = self.answers[question]
        errors = np.asarray(answer.standard_error)[(0,) * axes]
        deviations = [law.standard_deviation() for law in answer.laws]
        self.known.values[question] = np.asarray(answer.value)
        self.known.steps[question] = [
            float(error) / deviation if deviation else 0.0
            for error, deviation in zip(errors, deviations, strict=True)
        ]

    def _name(self, question: int) -> str:
        """Equal names, equal draws: the question and its noise."""
        if question not in self.known.names:
            answer = self.answers[question]
            self.known.names[question] = answer.question + noise_text(answer.laws)
        return self.known.names[question]

    def _quantile(self, recipe: Quantile, cell: Cell) -> Estimate:
        found = self.answers[recipe.question].distribution
        if found is None:
            raise InvalidQuery(
                "this distribution follows from stored answers, which do not tell its quantiles;"
                " ask it by itself: MEDIAN(x) without other columns, or with `credits`"
            )
        of = found[cell] if cell else found
        laws = self.answers[recipe.question].laws
        noisy = any(not isinstance(law, NoNoise) for law in laws)
        name = frozenset([(self._name(recipe.question), *cell)])
        limits = of.possible
        if of.empty or self._empty(cell):
            return _anything(*limits)
        share = recipe.share
        rank = partial(of.rank_error, share)
        said = "" if of.cdf()[0][-1] > 0 else UNKNOWN  # perhaps there are no rows at all
        if share is not None:
            ends = partial(of.quantile_interval, share)
            return Stated(of.quantile(share), ends, limits, name, said, rank, exact=not noisy)
        end = of.maximum if recipe.highest else of.minimum
        return Stated(end()[0], lambda c: end(c)[1:], limits, name, said, rank, exact=not noisy)


def _is_nothing(counted: Estimate) -> bool:
    """A count that is 0 for all to see."""
    return not counted.rests_on and counted.value == 0


def _anything(low: float, high: float) -> Estimate:
    """What is said of no rows, as NULL: no value, and all that is possible."""
    return Stated(math.nan, lambda c: (low, high), (low, high), frozenset(), "no row matches")


def _origins(answer: Answer) -> frozenset[int]:
    """The stored answers whose draws it rests on."""
    if answer.sources or answer.receipt is None:
        return frozenset(answer.sources)
    return frozenset([int(answer.receipt.body.get("origin", answer.receipt.seq))])


def _ends_at(answer: Answer, confidence: float, at: Cell) -> tuple[float, float]:
    low, high = answer.interval(confidence)
    return float(np.asarray(low)[at]), float(np.asarray(high)[at])


def _cut(found: Estimate, limits: tuple[float, float]) -> Estimate:
    """The same within what is possible."""
    if isinstance(found, Noisy):
        return replace(found, limits=limits)
    value = min(max(found.value, limits[0]), limits[1]) if found.value == found.value else math.nan
    return Stated(value, found.interval, limits, found.rests_on, found.note)


def plain(value: Value) -> Value:
    """What HAVING and ORDER BY see: the noisy value."""
    return value.value if isinstance(value, Estimate) else value


def is_there(value: Value) -> bool:
    """Whether a value is known: not NULL, and not a statistic of no rows."""
    known = plain(value)
    return known is not None and known == known


def order_of(value: Value) -> tuple[int, Value]:
    if isinstance(value, bool | int | float | Fraction):
        return 0, float(value)
    if isinstance(value, datetime.date):
        return 1, value.isoformat()
    return 2, str(value)


def added_up(parts: Sequence[Estimate]) -> Estimate:
    """The sum, in pairs: a long sum of long forms stays quick."""
    waiting = list(parts) or [Noisy.exact(0.0)]
    while len(waiting) > 1:
        pairs = itertools.zip_longest(waiting[::2], waiting[1::2])
        waiting = [a if b is None else a + b for a, b in pairs]
    return waiting[0]


@dataclass(frozen=True, slots=True)
class Windows:
    """Reads window functions over the cells that HAVING left, and aggregates of groups of them."""

    value: Callable[[Output, Cell], Value]
    cells: Sequence[Cell]
    confidence: float

    def read(self, window: Windowed) -> dict[Cell, Value]:
        """The value of a window function in every cell."""
        parts: dict[tuple[Value, ...], list[Cell]] = {}
        for cell in self.cells:
            key = tuple(plain(self.value(each, cell)) for each in window.partition)
            parts.setdefault(key, []).append(cell)
        found: dict[Cell, Value] = {}
        for listed in parts.values():
            found |= self._partition(window, self._sorted(listed, window.order))
        return found

    def _sorted(self, cells: list[Cell], order: tuple[Ordering, ...]) -> list[Cell]:
        for part in reversed(order):
            keys = {cell: plain(self.value(part.of, cell)) for cell in cells}
            blank = [c for c in cells if not is_there(keys[c])]
            known = [c for c in cells if is_there(keys[c])]
            known.sort(key=lambda cell, keys=keys: order_of(keys[cell]), reverse=part.descending)  # type: ignore[misc]
            cells = known + blank
        return cells

    def _partition(self, window: Windowed, cells: list[Cell]) -> dict[Cell, Value]:
        match window.function:
            case "rank" | "dense_rank" | "row_number":
                return self._ranks(window, cells)
            case "ntile" | "percent_rank" | "cume_dist":
                return self._shares(window, cells)
            case "lag" | "lead":
                step = -window.offset if window.function == "lag" else window.offset
                return {
                    cell: self._neighbour(window, cells, at + step) for at, cell in enumerate(cells)
                }
        if not window.running:
            whole = self.of(window.function, window.of, cells)
            return dict.fromkeys(cells, whole)
        ties = [self._tie(window, cell) for cell in cells]
        found: dict[Cell, Value] = {}
        for at, cell in enumerate(cells):
            end = at + 1
            while window.frame is None and end < len(cells) and ties[end] == ties[at]:
                end += 1  # equal in order: they count together
            start = 0 if window.frame is None else max(0, at - window.frame)
            end = min(end + window.after, len(cells))
            found[cell] = self.of(window.function, window.of, cells[start:end])
        return found

    def _tie(self, window: Windowed, cell: Cell) -> tuple[Value, ...]:
        return tuple(plain(self.value(part.of, cell)) for part in window.order)

    def _neighbour(self, window: Windowed, cells: list[Cell], at: int) -> Value:
        if window.of is not None and 0 <= at < len(cells):
            return self.value(window.of, cells[at])
        if window.default is None or not cells:
            return None
        return self.value(window.default, cells[0])

    def of(self, function: str, of: Output | None, cells: list[Cell]) -> Value:
        """An aggregate of these cells: those of a frame, or of a group."""
        if of is None:
            return Noisy.exact(float(len(cells)))
        values = [found for found in (self.value(of, c) for c in cells) if is_there(found)]
        match function:
            case "count":
                return Noisy.exact(float(len(values)))
            case "first_value" | "last_value":
                return values[0 if function == "first_value" else -1] if values else None
            case "distinct":
                return self._surely(values)
        if not values:
            return Noisy.exact(0.0) if function == "sum" else None
        if function in ("min", "max") and not any(isinstance(x, Estimate) for x in values):
            pick = min if function == "min" else max
            return pick(values, key=order_of)
        known = [as_estimate(x).unrounded for x in values]
        match function:
            case "sum":
                return added_up(known)
            case "avg":
                return added_up(known) / Noisy.exact(float(len(known)))
        pick = min if function == "min" else max

        def ends(*parts: Ends) -> Ends:
            return pick(low for low, _ in parts), pick(high for _, high in parts)

        return Made(tuple(known), lambda *xs: pick(xs), ends)

    def _surely(self, values: list[Value]) -> Estimate:
        """How many cells surely hold a row; one row cannot be told from none, so perhaps all do."""
        counts = [as_estimate(value) for value in values]
        every = float(len(counts))

        def at_least(confidence: float) -> float:
            each = 1 - (1 - confidence) / max(1, len(counts))
            return float(sum(count.interval(each)[0] > 0 for count in counts))

        exact = all(count.public for count in counts)
        number = float(sum(count.value > 0 for count in counts)) if exact else None
        if number is not None:
            return Noisy.exact(number)
        rests = frozenset().union(*(count.rests_on for count in counts))
        return Stated(
            at_least(self.confidence), lambda c: (at_least(c), every), (0.0, every), rests
        )

    # --- ranks ----------------------------------------------------------------------------------

    def _ranks(self, window: Windowed, cells: list[Cell]) -> dict[Cell, Value]:
        ties = [self._tie(window, cell) for cell in cells]
        found: dict[Cell, Value] = {}
        rank = dense = 0
        for at, cell in enumerate(cells):
            if not at or ties[at] != ties[at - 1]:
                rank, dense = at + 1, dense + 1
            number = {"rank": rank, "dense_rank": dense}.get(window.function, at + 1)
            found[cell] = self._ranked(window, cells, cell, float(number))
        return found

    def _shares(self, window: Windowed, cells: list[Cell]) -> dict[Cell, Value]:
        """NTILE, PERCENT_RANK and CUME_DIST, by the places that a cell may have."""
        count, parts = len(cells), max(1, window.offset)
        ties = [self._tie(window, cell) for cell in cells]
        last = {tie: at + 1 for at, tie in enumerate(ties)}
        long, rest = count % parts, count // parts

        def share(place: float) -> float:
            if window.function == "percent_rank":
                return (place - 1) / (count - 1) if count > 1 else 0.0
            if window.function == "cume_dist":
                return place / count
            at = int(place) - 1
            edge = long * (rest + 1)
            return float(at // (rest + 1) + 1 if at < edge else long + (at - edge) // rest + 1)

        kind = "rank" if window.function == "percent_rank" else "row_number"
        ranks = self._ranks(replace(window, function=kind), cells)
        found: dict[Cell, Value] = {}
        for cell, tie in zip(cells, ties, strict=True):
            rank = as_estimate(ranks[cell])
            end = last[tie]
            found[cell] = Made(
                (rank,),
                (lambda _, end=end: share(end)) if window.function == "cume_dist" else share,
                lambda ends, end=end: (share(ends[0]), max(share(ends[1]), share(end))),
            )
        return found

    def _ranked(self, window: Windowed, cells: list[Cell], cell: Cell, number: float) -> Value:
        """A rank; by noisy values its interval says which places the cell may truly have."""
        first = window.order[0]
        own = self.value(first.of, cell)
        if not isinstance(own, Estimate) or own.public:
            return Noisy.exact(number)
        others = [self.value(first.of, each) for each in cells if each != cell]
        rivals = [as_estimate(each) for each in others if each is not None]

        def places(confidence: float) -> Ends:
            each = 1 - (1 - confidence) / (len(rivals) + 1)
            low, high = own.interval(each)
            ends = [rival.interval(each) for rival in rivals]
            if first.descending:
                before = sum(bottom > high for bottom, _ in ends)
                perhaps = sum(top >= low for _, top in ends)
            else:
                before = sum(top < low for _, top in ends)
                perhaps = sum(bottom <= high for bottom, _ in ends)
            return float(min(1 + before, number)), float(max(1 + perhaps, number))

        rests = own.rests_on.union(*(rival.rests_on for rival in rivals))
        return Stated(number, places, (1.0, float(len(cells))), rests)
