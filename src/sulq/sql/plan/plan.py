"""A Select as few questions as it takes, and recipes that read its aggregates off the answers.

All counts, sums, means and variances are one vector of sums, priced together, unless asking them
apart by what they need is cheaper; quantiles and ends of one expression share one distribution.
Nothing here reads data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from sulq.answers.statistics import RESOLUTION
from sulq.errors import InvalidQuery, Reason
from sulq.kernel.query import canonical
from sulq.kernel.query.expressions import Column, Expression, Literal, Operation, lit, operation
from sulq.kernel.query.sum_query import MOST_TERMS, Statistic, SumQuery, clip_of, group, rows_where
from sulq.kernel.schema.bind import MOST_CELLS
from sulq.kernel.schema.bind_rows import RowBinder
from sulq.kernel.schema.columns import Schema
from sulq.sql.errors import located
from sulq.sql.evaluate.open_keys import keys_plan
from sulq.sql.parse.group_by import columns_of
from sulq.sql.parse.locate import outputs_of
from sulq.sql.parse.select import Aggregate, Select
from sulq.sql.plan.nodes import (
    Mean,
    PairNode,
    PersonsNode,
    Public,
    Quantile,
    Question,
    Recipe,
    StatementPlan,
    TotalNode,
    VarianceNode,
)

ONE = lit(1)
VARIANCES = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")


def plan_of(
    select: Select, schema: Schema, size: int | None, price: Callable[[Question], Fraction]
) -> StatementPlan:
    """What to ask. `size` is the public number of rows, where it is public."""
    wanted = outputs_of(select)
    if any(grouping.undeclared for grouping in select.groups):
        return keys_plan(select, wanted)
    public = size if schema.unit == "row" else None
    planner = _Planner(select, schema, public, everybody=size)
    for aggregate in wanted:
        planner.note_mean(aggregate)
    for aggregate in wanted:
        try:
            planner.add(aggregate)
        except InvalidQuery as error:
            raise located(error, aggregate.span) from None
    planner.notes.update(dict.fromkeys(select.notes))
    if not wanted:  # SELECT city FROM people GROUP BY city: the keys are public
        return StatementPlan(select, (), {}, (), ("group keys are public; nothing was asked",))
    return planner.plan(price)


@dataclass(frozen=True, slots=True, eq=False)
class _Term:
    """A summand where `where` holds; `needs` is an expression that must be there."""

    value: Expression
    where: Expression | None
    needs: Expression | None
    implied: bool = False  # where `needs` is missing the value is, too


@dataclass(slots=True)
class _Planner:
    select: Select
    schema: Schema
    size: int | None
    terms: dict[tuple[str, str, str], _Term] = field(default_factory=dict)
    means: set[tuple[str, str]] = field(default_factory=set)
    everybody: int | None = None
    distributions: dict[tuple[str, str], Statistic] = field(default_factory=dict)
    persons: dict[str, SumQuery] = field(default_factory=dict)
    counted: list[tuple[Aggregate, str]] = field(default_factory=list)
    recipes: dict[int, Recipe] = field(default_factory=dict)
    quantiles: list[tuple[Aggregate, tuple[str, str]]] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)
    ranges: dict[str, tuple[float, float, str]] = field(default_factory=dict)
    binder: RowBinder = field(init=False)
    all_rows: bool = field(init=False)

    def __post_init__(self) -> None:
        self.binder = RowBinder(self.schema)
        rows = self.select.rows
        self.all_rows = not self.select.groups and canonical.truth(rows) is canonical.TRUE

    def note_mean(self, aggregate: Aggregate) -> None:
        """Where a mean is asked, a sum of the same is read off its parts."""
        if aggregate.kind == "avg" or aggregate.kind in VARIANCES:
            self.means.add(_spelled(aggregate))

    def add(self, aggregate: Aggregate) -> None:
        if id(aggregate) in self.recipes:
            return
        if aggregate.kind == "persons":
            self._person_count(aggregate)
        elif aggregate.kind in ("quantile", "min", "max"):
            self._distribution(aggregate)
        elif aggregate.kind == "count":
            self.recipes[id(aggregate)] = self._count(aggregate)
        elif aggregate.kind == "sum":
            self.recipes[id(aggregate)] = self._sum(aggregate)
        elif aggregate.kind == "avg":
            self.recipes[id(aggregate)] = self._mean(aggregate)
        elif aggregate.other is not None:
            self.recipes[id(aggregate)] = self._pair(aggregate, aggregate.other)
        else:
            self.recipes[id(aggregate)] = self._variance(aggregate)

    # --- the vector -----------------------------------------------------------------------------

    def _place(
        self,
        value: Expression,
        where: Expression | None,
        needs: Expression | None = None,
        implied: bool = False,
    ) -> int:
        key = (_text(value), _text(where), _text(needs))
        if key not in self.terms:
            self.terms[key] = _Term(value, where, needs, implied)
        return list(self.terms).index(key)

    def _count(self, aggregate: Aggregate) -> Recipe:
        if aggregate.tested:
            self.notes[
                "COUNT(condition) counts the rows where it is true or false, as SQL does;"
                " COUNT_IF(condition) counts those where it is true"
            ] = None
        of = aggregate.of if aggregate.of is not None and nullable(aggregate.of) else None
        everything = of is None and aggregate.where is None and self.all_rows
        if everything and self.size is not None:
            self.notes["the number of rows is public"] = None
            return Public(self.size)
        return TotalNode(((self._place(ONE, aggregate.where, of), 1.0),))

    def _sum(self, aggregate: Aggregate) -> Recipe:
        of = _argument(aggregate)
        low, high, _ = self._range(of)
        if _spelled(aggregate) in self.means:
            mean = self._mean(aggregate)
            parts = ((mean.centred, 1.0), (mean.counted, mean.middle))
            return TotalNode(parts if mean.middle else parts[:1], low, high)
        return TotalNode(((self._place(of, aggregate.where), 1.0),), low, high)

    def _mean(self, aggregate: Aggregate) -> Mean:
        of = _argument(aggregate)
        needs = of if nullable(of) else None
        low, high, kind = self._range(of)
        centred = operation("centred", of)
        middle = self._middle(centred)
        counted = self._place(ONE, aggregate.where, needs)
        summed = self._place(centred, aggregate.where, needs, implied=True)
        return Mean(counted, summed, middle, low, high, kind)

    def _variance(self, aggregate: Aggregate) -> VarianceNode:
        of = _argument(aggregate)
        mean = self._mean(aggregate)
        from_middle = operation("centred", of)
        square = operation("centred", from_middle * from_middle)
        needs = of if nullable(of) else None
        squared = self._place(square, aggregate.where, needs, implied=True)
        kind = aggregate.kind
        return VarianceNode(
            mean, squared, self._middle(square), kind.endswith("samp"), kind.startswith("stddev")
        )

    def _pair(self, aggregate: Aggregate, y: Expression) -> PairNode:
        x = _argument(aggregate)
        where = rows_where(aggregate.where, x.is_not_null(), y.is_not_null())
        first, second = operation("centred", x), operation("centred", y)
        pairs = [(first, second)]
        if aggregate.kind == "corr":
            pairs += [(first, first), (second, second)]
        products = [operation("centred", left * right) for left, right in pairs]
        terms = [ONE, first, second, *products]
        counted, left, right, *rest = (
            self._place(term, where, implied=place > 0) for place, term in enumerate(terms)
        )
        ranges = []
        for value, centred in ((x, first), (y, second)):
            low, high, _ = self._range(value)
            ranges.append((low - self._middle(centred), high - self._middle(centred)))
        middles = [self._middle(product) for product in products]
        return PairNode(
            counted,
            (left, right),
            tuple(zip(rest, middles, strict=True)),
            ranges[0],
            ranges[1],
            aggregate.kind == "covar_samp",
        )

    def _range(self, of: Expression) -> tuple[float, float, str]:
        key = canonical.spelling(of)
        if key not in self.ranges:
            value = self.binder.number(canonical.value(of))
            low, high = float(value.low * value.step), float(value.high * value.step)
            self.ranges[key] = (low, high, value.kind)
        return self.ranges[key]

    def _middle(self, centred: Expression) -> float:
        return float(self.binder.centred_number(canonical.value(centred))[1])

    def _vectors(self, price: Callable[[Question], Fraction]) -> list[tuple[SumQuery, list[int]]]:
        """The terms by their conditions, together wherever that does not cost more."""
        classes: dict[tuple[str, str], list[int]] = {}
        for at, (_, where, needs) in enumerate(self.terms):
            classes.setdefault((where, needs), []).append(at)
        if len(classes) < 2 or self._never_dearer():
            places = list(range(len(self.terms)))
            return [(self._vector(places), places)] if places else []
        found: list[tuple[SumQuery, list[int]]] = []
        costs: list[Fraction] = []
        for part in classes.values():
            alone = self._vector(part)
            cost = price(alone)
            for at, (_, others) in enumerate(found):
                joint = self._vector([*others, *part])
                whole = price(joint)
                if whole <= costs[at] + cost:
                    found[at], costs[at] = (joint, [*others, *part]), whole
                    break
            else:
                found.append((alone, part))
                costs.append(cost)
        return found

    def _never_dearer(self) -> bool:
        """Without means, or where a row can change its cell, one vector costs no more than parts.

        A mean's count and total move together only where both are in the rows of the question;
        a change of cell costs twice the largest, which is more than that.
        """
        if not any(term.implied for term in self.terms.values()):
            return True
        public = {column.name for column in self.schema.columns if column.public}
        grouped = {
            name for grouping in self.select.groups for name in columns_of(grouping.group.of)
        }
        return self.schema.unit == "row" and not grouped <= public

    def _vector(self, places: list[int]) -> SumQuery:
        """One question: what all its terms need goes into its rows, the rest into CASE."""
        listed = list(self.terms.values())
        terms = [listed[place] for place in places]
        groups = tuple(grouping.group for grouping in self.select.groups)
        same_where = len({_text(term.where) for term in terms}) == 1
        same_needs = len({_text(term.needs) for term in terms}) == 1
        hoisted: list[Expression] = []
        if same_where and terms[0].where is not None:
            hoisted.append(terms[0].where)
        together = same_where and same_needs
        if together and terms[0].needs is not None:
            hoisted.append(terms[0].needs.is_not_null())
        summands = [_summand(term, not same_where, not together) for term in terms]
        return SumQuery(tuple(summands), self._rows(hoisted), groups)

    def _rows(self, further: list[Expression]) -> Expression:
        parts = [p for p in (self.select.rows, *further) if p is not canonical.TRUE]
        if not parts:
            return canonical.TRUE
        return parts[0] if len(parts) == 1 else operation("and", *parts)

    # --- persons --------------------------------------------------------------------------------

    def _person_count(self, aggregate: Aggregate) -> None:
        if self.all_rows and aggregate.where is None and self.everybody is not None:
            self.notes["the number of persons is public"] = None
            self.recipes[id(aggregate)] = Public(self.everybody)
            return
        key = _text(aggregate.where)
        if key not in self.persons:
            further = [] if aggregate.where is None else [aggregate.where]
            groups = tuple(grouping.group for grouping in self.select.groups)
            once = clip_of((0, 1))
            self.persons[key] = SumQuery((ONE,), self._rows(further), groups, clip=once)
        self.counted.append((aggregate, key))

    # --- distributions --------------------------------------------------------------------------

    def _distribution(self, aggregate: Aggregate) -> None:
        of = _argument(aggregate)
        key = _spelled(aggregate)
        if key not in self.distributions:
            further = [] if aggregate.where is None else [aggregate.where]
            tree = group(of, bins=RESOLUTION, tree=True)
            groups = (*(grouping.group for grouping in self.select.groups), tree)
            query = SumQuery((ONE,), self._rows(further), groups)
            self.distributions[key] = Statistic("distribution", query)
        self.quantiles.append((aggregate, key))
        if aggregate.kind != "quantile":
            self.notes[
                "MIN and MAX are the ends of a noisy distribution: where clearly anybody is,"
                " not the one most extreme row"
            ] = None

    def _quantile(self, aggregate: Aggregate, question: int) -> Quantile:
        _, _, kind = self._range(_argument(aggregate))
        if aggregate.kind == "quantile":
            return Quantile(question, float(aggregate.share or 0), kind=kind)
        return Quantile(question, None, aggregate.kind == "max", kind)

    def _public_count(self) -> int | None:
        """The term that counts a cell's rows, where all can see them: free, and it tells which
        cells are empty. G.2.1"""
        groups = [grouping.group.of for grouping in self.select.groups]
        named = columns_of(self.select.rows).union(*map(columns_of, groups))
        if self.size is None or self.all_rows or not all(self.schema[n].public for n in named):
            return None
        cells = math.prod(len(grouping.labels) for grouping in self.select.groups)
        more = len(self.terms) + 1
        return self._place(ONE, None) if more <= MOST_TERMS and more * cells <= MOST_CELLS else None

    def plan(self, price: Callable[[Question], Fraction]) -> StatementPlan:
        whole = self._public_count()
        vectors = self._vectors(price)
        where = {
            term: (question, at)
            for question, (_, part) in enumerate(vectors)
            for at, term in enumerate(part)
        }
        questions: list[Question] = [query for query, _ in vectors]
        places = {key: len(questions) + at for at, key in enumerate(self.distributions)}
        for aggregate, key in self.quantiles:
            self.recipes[id(aggregate)] = self._quantile(aggregate, places[key])
        questions += self.distributions.values()
        for aggregate, counted in self.counted:
            asked = len(questions) + list(self.persons).index(counted)
            self.recipes[id(aggregate)] = PersonsNode(asked)
        questions += self.persons.values()
        return StatementPlan(
            self.select,
            tuple(questions),
            self.recipes,
            tuple(where[term] for term in range(len(self.terms))),
            tuple(self.notes),
            whole,
        )


def _summand(term: _Term, with_where: bool, with_needs: bool) -> Expression:
    conditions: list[Expression] = []
    if with_where and term.where is not None:
        conditions.append(term.where)
    if with_needs and term.needs is not None and not term.implied:
        conditions.append(term.needs.is_not_null())
    if not conditions:
        return term.value
    joined = conditions[0] if len(conditions) == 1 else operation("and", *conditions)
    return operation("choose", joined, term.value, 0 if term.value is ONE else None)


def _argument(aggregate: Aggregate) -> Expression:
    if aggregate.of is None:
        raise InvalidQuery(
            f"{aggregate.kind.upper()} of what? write {aggregate.kind.upper()}(x)",
            reason=Reason.WRONG_FORM,
        )
    return aggregate.of


def _text(expression: Expression | None) -> str:
    return "" if expression is None else canonical.spelling(expression)


def _spelled(aggregate: Aggregate) -> tuple[str, str]:
    return _text(aggregate.of), _text(aggregate.where)


def nullable(expression: Expression) -> bool:
    """Whether a value can be NULL in a row where nothing is known."""
    match expression:
        case Column():
            return True
        case Literal(value=value):
            return value is None
        case Operation(name="choose", operands=(_, then, otherwise)):
            return nullable(then) or nullable(otherwise)
        case Operation(name="coalesce", operands=(first, instead)):
            return nullable(first) and nullable(instead)
        case Operation(name="is_null" | "not_null"):
            return False
        case Operation(operands=operands):
            return any(map(nullable, operands))
    return True
