"""A Select as few questions as it takes, and recipes that read its aggregates off the answers.

All counts, sums, means and variances are one vector of sums, priced together, unless asking them
apart by what they need is cheaper; quantiles and ends of one expression share one distribution.
Nothing here reads data.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sulq.answers.statistics import RESOLUTION
from sulq.errors import InvalidQuery, Reason
from sulq.kernel.query import canonical
from sulq.kernel.query.expressions import Column, Expression, Literal, Operation, lit, operation
from sulq.kernel.query.sum_query import (
    MOST_TERMS,
    Statistic,
    SumQuery,
    about_table,
    as_statistic,
    clip_of,
    group,
    rows_where,
    text_of,
)
from sulq.kernel.schema.bind import MOST_CELLS
from sulq.kernel.schema.bind_rows import RowBinder
from sulq.kernel.schema.columns import Category, Schema
from sulq.kernel.schema.keys import MOST_COLUMNS
from sulq.kernel.schema.study import EventSchema
from sulq.sql.parse.grammar import located
from sulq.sql.parse.group_by import columns_of
from sulq.sql.parse.select import (
    Aggregate,
    GroupKey,
    Output,
    OverGroups,
    Released,
    Select,
    Stacked,
    Windowed,
    aggregates_of,
    asked_of,
    outputs_of,
    own_aggregates,
    parts_of,
    selects_of,
    sources_of,
)

# What a plan is made of: its questions, and how each aggregate is read off their answers.


@dataclass(frozen=True, slots=True)
class TotalNode:
    """A sum of terms of the vector: place and weight."""

    parts: tuple[tuple[int, float], ...]
    low: float = 0.0
    high: float = 1.0


@dataclass(frozen=True, slots=True)
class Mean:
    """A count, the total of (x - middle), and where x lies."""

    counted: int
    centred: int
    middle: float
    low: float
    high: float
    kind: str = "number"


@dataclass(frozen=True, slots=True)
class VarianceNode:
    """As `Mean`, with the total of (x - middle)^2 - square_middle."""

    mean: Mean
    squared: int
    square_middle: float
    sample: bool
    root: bool


@dataclass(frozen=True, slots=True)
class PairNode:
    """A count, totals of x and y from their middles, and totals of their products.

    `products` has the place of each and the middle that it is centred at: of x y, and of x^2 and
    y^2 for a correlation. The ranges are those of x and y from their middles.
    """

    counted: int
    totals: tuple[int, int]
    products: tuple[tuple[int, float], ...]
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    sample: bool

    @property
    def correlation(self) -> bool:
        return len(self.products) > 1


@dataclass(frozen=True, slots=True)
class Quantile:
    """A share of a distribution; without one, its lowest or highest end."""

    question: int
    share: float | None
    highest: bool = False
    kind: str = "number"


@dataclass(frozen=True, slots=True)
class PersonsNode:
    """How many persons have a row that counts: a question of its own, 0 or 1 per person."""

    question: int


@dataclass(frozen=True, slots=True)
class Public:
    """A number that everybody knows."""

    value: int


Recipe = TotalNode | Mean | VarianceNode | PairNode | Quantile | PersonsNode | Public


Question = SumQuery | Statistic


@dataclass(frozen=True, slots=True)
class Spread:
    """A coarser level that is read off a finer one: which of its cells are added up.

    Of each axis of the finer level, the axis here, or None and the cells over which it is added.
    """

    axes: tuple[tuple[int | None, tuple[int, ...]], ...]

    def cells(self, cell: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """The cells of the finer level that make up one of this."""
        return itertools.product(
            *(over if own is None else (cell[own],) for own, over in self.axes)
        )


@dataclass(frozen=True, slots=True)
class SelectReading:
    """How one SELECT of rows is read.

    `whole` is the term that counts the rows of a cell, where their number is public.
    """

    whole: int | None = None
    spread: Spread | None = None


@dataclass(frozen=True, slots=True, eq=False)
class StatementPlan:
    """The questions of a statement, and a recipe for each aggregate by its id.

    `places` says of each term which question holds it, and where. `leaves` are the SELECTs of rows
    by their id; a statement has several of them where it puts results together.
    """

    select: Select
    questions: tuple[Question, ...]
    recipes: dict[int, Recipe]
    places: tuple[tuple[int, int], ...] = ()
    notes: tuple[str, ...] = ()
    leaves: Mapping[int, SelectReading] = field(default_factory=dict)
    cells: Mapping[int, int] = field(default_factory=dict)
    """Of an aggregate that is added up from finer groups, by its id: from how many."""
    figures: tuple[Statistic, ...] = ()
    """Of a statement by open columns: the sums of a key, a term each after the count; P.4. Where
    persons are counted, that they are comes last."""

    @property
    def leaf(self) -> SelectReading:
        return self.leaves.get(id(self.select), SelectReading())

    @property
    def bottom(self) -> Select:
        """The first SELECT of rows: of a plain statement the statement itself."""
        return next(selects_of(self.select))

    @property
    def is_grouped(self) -> bool:
        """Whether any of its figures is one of a group."""
        return any(each.groups for each in selects_of(self.select))

    @property
    def undeclared(self) -> tuple[str, ...]:
        """The open columns that are grouped by, if any are: together they are one key."""
        grouped = [grouping.group.of for grouping in self.bottom.groups if grouping.undeclared]
        return tuple(of.name for of in grouped if isinstance(of, Column))

    def quantile(self, output: Output) -> Quantile | None:
        """How a quantile or an end that stands by itself is read; None of anything else."""
        while isinstance(output, Released):
            output = output.of
        recipe = self.recipes[id(output)] if isinstance(output, Aggregate) else None
        return recipe if isinstance(recipe, Quantile) else None


ONE = lit(1)
VARIANCES = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")


Price = Callable[[Question], Fraction]


def plan_of(select: Select, schema: Schema, size: int | None, price: Price) -> StatementPlan:
    """What to ask. `size` is the public number of rows, where it is public."""
    leaves = list(selects_of(select))
    for leaf in leaves:
        if any(grouping.undeclared for grouping in leaf.groups):
            return _keys_plan(select, leaf, leaves, schema)
    asked = _Asked(several=len(leaves) > 1)
    planned = {id(leaf): _planned(leaf, schema, size) for leaf in leaves}
    notes = dict.fromkeys(note for one in planned.values() for note in one.notes)
    notes.update(dict.fromkeys(select.notes))
    spreads: dict[int, int] = {}
    for levels in _levels(select):
        spreads |= _spread([planned[id(level)] for level in levels], price, notes)
    for leaf in leaves:
        if id(leaf) not in spreads:
            asked.add(planned[id(leaf)], price)
    for coarse, fine in spreads.items():
        asked.spread(planned[coarse], planned[fine])
    if not asked.recipes:  # SELECT city FROM people GROUP BY city: the keys are public
        return StatementPlan(select, (), {}, (), ("group keys are public; nothing was asked",))
    return _about(asked.plan(select, tuple(notes)), schema)


def _about(plan: StatementPlan, schema: Schema) -> StatementPlan:
    """The plan, its questions asked of the event table of a study whose columns they use."""
    if not isinstance(schema, EventSchema):
        return plan
    about = tuple(about_table(question, schema.table.name) for question in plan.questions)
    return replace(plan, questions=about)


def _keys_plan(select: Select, leaf: Select, leaves: list[Select], schema: Schema) -> StatementPlan:
    if len(leaves) > 1:
        raise located(
            InvalidQuery(
                "keys that nobody declared are asked for alone: without UNION, ROLLUP or a second"
                " SELECT",
                reason=Reason.OPEN_TEXT,
            ),
            leaf.groups[0].span,
        )
    bottom = replace(leaf, target=select.target, options=select.options, spans=select.spans)
    return replace(keys_plan(bottom, asked_of(leaf), schema), select=select)


def _planned(select: Select, schema: Schema, size: int | None) -> _Planner:
    public = size if schema.unit == "row" else None
    planner = _Planner(select, schema, public, everybody=size)
    wanted = [one for output in outputs_of(select) for one in own_aggregates(output)]
    for aggregate in wanted:
        planner.note_mean(aggregate)
    for aggregate in wanted:
        try:
            planner.add(aggregate)
        except InvalidQuery as error:
            raise located(error, aggregate.span) from None
    return planner


@dataclass(slots=True)
class _Asked:
    """The questions of all SELECTs of a statement; what two of them ask is asked once."""

    several: bool
    questions: list[Question] = field(default_factory=list)
    known: dict[tuple[str, str], int] = field(default_factory=dict)
    recipes: dict[int, Recipe] = field(default_factory=dict)
    places: list[tuple[int, int]] = field(default_factory=list)
    leaves: dict[int, SelectReading] = field(default_factory=dict)
    terms: dict[int, dict[tuple[str, str, str], int]] = field(default_factory=dict)
    cells: dict[int, int] = field(default_factory=dict)

    def add(self, planner: _Planner, price: Price) -> None:
        if not planner.recipes and not planner.quantiles and not planner.counted:
            return
        own = planner.plan(price)
        at = [self._question(question) for question in own.questions]
        first = len(self.places)
        self.places += [(at[question], place) for question, place in own.places]
        self.recipes |= {name: _moved(recipe, first, at) for name, recipe in own.recipes.items()}
        whole = own.leaf.whole
        self.leaves[id(own.select)] = SelectReading(None if whole is None else first + whole)
        self.terms[id(own.select)] = {key: first + n for n, key in enumerate(planner.terms)}

    def spread(self, coarse: _Planner, fine: _Planner) -> None:
        """A level whose terms are sums of those of a finer one."""
        known = self.terms[id(fine.select)]
        first = len(self.places)
        self.places += [self.places[known[key]] for key in coarse.terms]
        self.recipes |= {name: _moved(one, first, []) for name, one in coarse.recipes.items()}
        self.leaves[id(coarse.select)] = SelectReading(None, _spread_of(coarse.select, fine.select))
        self.cells |= dict.fromkeys(coarse.recipes, _cells(coarse, fine))

    def _question(self, question: Question) -> int:
        if not self.several:
            self.questions.append(question)
            return len(self.questions) - 1
        whole = as_statistic(question)
        key = (whole.kind, text_of(whole.query.canonical()))
        if key not in self.known:
            self.known[key] = len(self.questions)
            self.questions.append(question)
        return self.known[key]

    def plan(self, select: Select, notes: tuple[str, ...]) -> StatementPlan:
        questions, places = tuple(self.questions), tuple(self.places)
        return StatementPlan(
            select, questions, self.recipes, places, notes, self.leaves, self.cells
        )


def _moved(recipe: Recipe, first: int, questions: list[int]) -> Recipe:
    """A recipe of one SELECT among the terms and questions of all."""
    match recipe:
        case TotalNode(parts=parts):
            return replace(recipe, parts=tuple((first + place, w) for place, w in parts))
        case Mean(counted=counted, centred=centred):
            return replace(recipe, counted=first + counted, centred=first + centred)
        case VarianceNode(mean=mean, squared=squared):
            moved = replace(mean, counted=first + mean.counted, centred=first + mean.centred)
            return replace(recipe, mean=moved, squared=first + squared)
        case PairNode(counted=counted, totals=(x, y), products=products):
            return replace(
                recipe,
                counted=first + counted,
                totals=(first + x, first + y),
                products=tuple((first + place, middle) for place, middle in products),
            )
        case Quantile(question=question) | PersonsNode(question=question):
            return replace(recipe, question=questions[question])
        case Public():
            return recipe


# --- levels of ROLLUP, CUBE and GROUPING SETS -----------------------------------------------------


def _levels(select: Select) -> Iterator[tuple[Select, ...]]:
    """The levels of each ROLLUP, CUBE or GROUPING SETS in a statement."""
    for source in sources_of(select):
        if isinstance(source, Stacked) and source.levels:
            yield source.selects


def _spread(levels: list[_Planner], price: Price, notes: dict[str, None]) -> dict[int, int]:
    """The levels that are read off a finer one, by their id, with the id of the finer one.

    A level that is asked by itself has the noise of one cell, and costs its price. One that is
    added up from k finer cells is free and has the noise of k. Those are asked which make the
    widest bar smallest for the same credits.
    """
    prices = [sum((price(q) for q in one.plan(price).questions), Fraction(0)) for one in levels]
    finer = [
        {at: _cells(one, other) for at, other in enumerate(levels) if one.follows_from(other)}
        for one in levels
    ]
    optional = [at for at, found in enumerate(finer) if found and prices[at]]
    best: tuple[Fraction, int, frozenset[int]] | None = None
    for asked in _choices(frozenset(range(len(levels))), optional):
        widths = [
            1 if at in asked else min((k for f, k in found.items() if f in asked), default=None)
            for at, found in enumerate(finer)
        ]
        known = [width for width in widths if width is not None]
        if len(known) < len(widths):
            continue
        cost = sum((prices[at] for at in asked), Fraction(0))
        found = (max(known) * cost, len(asked), asked)
        best = found if best is None or found[:2] < best[:2] else best
    assert best is not None  # noqa: S101
    asked = best[2]
    added = [at for at in range(len(levels)) if at not in asked]
    if added:
        names = ", ".join(_level_name(levels[at].select) for at in added)
        notes[
            f"coarser groups are added up from finer ones, free, with the noise of all of them:"
            f" {names}"
        ] = None
    own = [at for at in optional if at in asked]
    if own:
        names = ", ".join(_level_name(levels[at].select) for at in own)
        notes[
            f"asked by themselves, for adding up finer groups would add up their noise: {names};"
            " so they differ from the sums of those by noise"
        ] = None
    return {
        id(levels[at].select): id(
            levels[min((f for f in finer[at] if f in asked), key=lambda f: finer[at][f])].select
        )
        for at in added
    }


MOST_CHOICES = 10
"""With more levels than this, all but the finest are either asked or added up."""


def _choices(every: frozenset[int], optional: list[int]) -> Iterator[frozenset[int]]:
    """Which levels may be asked."""
    if len(optional) > MOST_CHOICES:
        yield from (every, every - set(optional))
        return
    for size in range(len(optional) + 1):
        for left_out in itertools.combinations(optional, size):
            yield every - set(left_out)


def _cells(coarse: _Planner, fine: _Planner) -> int:
    """How many cells of the finer level make up one of the coarser."""
    return math.prod(
        len(over) for own, over in _spread_of(coarse.select, fine.select).axes if own is None
    )


def _spread_of(coarse: Select, fine: Select) -> Spread:
    axes = {id(grouping): at for at, grouping in enumerate(coarse.groups)}
    return Spread(tuple((axes.get(id(each)), each.shown) for each in fine.groups))


def _level_name(select: Select) -> str:
    names = [item.name for item in select.items if isinstance(item.of, GroupKey)]
    return f"({', '.join(names)})" if names else "the total"


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

    def follows_from(self, finer: _Planner) -> bool:
        """Whether this level is sums of a finer one's cells."""
        own = {id(grouping) for grouping in self.select.groups}
        whole = {id(grouping) for grouping in finer.select.groups}
        alone = not self.quantiles and not self.counted
        return own < whole and alone and self.terms.keys() <= finer.terms.keys()

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
            leaves={id(self.select): SelectReading(whole)},
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


REMEDY = "COUNT, SUM and AVG by one or two open columns are shown, of keys that many rows share"


def keys_plan(select: Select, wanted: list[Aggregate], schema: Schema) -> StatementPlan:
    """A plan without questions: its terms are the count of a key, then its sums."""
    closed = [grouping for grouping in select.groups if not grouping.undeclared]
    if closed or len(select.groups) > MOST_COLUMNS:
        text = next(grouping for grouping in select.groups if grouping.undeclared)
        alone = InvalidQuery(
            f"open columns are grouped by alone, at most {MOST_COLUMNS} of them; {REMEDY}",
            reason=Reason.OPEN_TEXT,
        )
        raise located(alone, text.span)
    columns = [grouping.group.of for grouping in select.groups]
    names = [of.name for of in columns if isinstance(of, Column)]
    outputs = [item.of for item in select.items] + [part.of for part in select.order]
    outputs += [] if select.having is None else [select.having]
    for output in filter(_over_groups, outputs):
        raise located(
            InvalidQuery(
                f"SUM(...) OVER () misses the keys that are held back; {REMEDY}",
                reason=Reason.OPEN_TEXT,
            ),
            aggregates_of(output)[0].span,
        )
    if select.target is not None:
        raise located(
            InvalidQuery(
                f"WITHIN is not for keys that nobody declared; {REMEDY}; use credits=",
                reason=Reason.OPEN_TEXT,
            ),
            select.spans.get("target"),
        )
    if {"epsilon", "delta"} & set(select.options):
        raise located(
            InvalidQuery(
                f"keys that nobody declared take no epsilon or delta; {REMEDY}; use credits=",
                reason=Reason.OPEN_TEXT,
            ),
            select.spans.get("options"),
        )
    recipes, figures = _figures(select, wanted, names, schema)
    places = tuple((0, term) for term in range(1 + sum(not is_persons(one) for one in figures)))
    return StatementPlan(select, (), recipes, places, figures=figures)


def _figures(
    select: Select, wanted: list[Aggregate], names: list[str], schema: Schema
) -> tuple[dict[int, Recipe], tuple[Statistic, ...]]:
    """How each aggregate is read, and the sums that are asked for each key."""
    rows = {id(one) for one in wanted if _counts_rows(one, names)}
    persons = {id(one) for one in wanted if one.kind == "persons" and one.where is None}
    of_persons = schema.unit != "row"
    only_rows = len(rows) == len(wanted) and len(names) == 1 and not is_whole(schema, names[0])
    counted = persons if of_persons and not only_rows else rows  # M.1 counts rows, P.4 persons
    planner = _Planner(replace(select, groups=()), schema, None)
    listed = [one for one in wanted if id(one) not in counted]
    for aggregate in listed:
        planner.note_mean(aggregate)
    for aggregate in listed:
        if aggregate.kind in ("quantile", "min", "max", "persons"):
            what = "persons under a condition" if aggregate.kind == "persons" else aggregate.kind
            raise located(
                InvalidQuery(
                    f"{what} by values that nobody declared is not told; {REMEDY}; for anything"
                    " else ask the owner to declare them",
                    reason=Reason.OPEN_TEXT,
                ),
                aggregate.span,
            )
        try:
            planner.add(aggregate)
        except InvalidQuery as error:
            raise located(error, aggregate.span) from None
    recipes = {name: _moved(recipe, 1, []) for name, recipe in planner.recipes.items()}
    recipes |= dict.fromkeys(counted, TotalNode(((0, 1.0),)))
    figures = [Statistic("sums", _own_sum(term)) for term in planner.terms.values()]
    if of_persons and not only_rows:
        figures.append(Statistic("count", SumQuery((ONE,), clip=clip_of((0, 1)))))
    return recipes, tuple(figures)


def is_persons(figure: Statistic) -> bool:
    """Whether a figure says that persons are counted."""
    return figure.query.clip is not None


def is_whole(schema: Schema, name: str) -> bool:
    column = schema[name]
    return isinstance(column, Category) and column.whole


def _counts_rows(aggregate: Aggregate, names: list[str]) -> bool:
    """COUNT(*), or COUNT of a key's own column, which is there."""
    named = aggregate.of.name if isinstance(aggregate.of, Column) else None
    everything = aggregate.of is None or named in names
    return aggregate.kind == "count" and everything and aggregate.where is None


def _own_sum(term: _Term) -> SumQuery:
    """A term as a question of its own."""
    needs = term.needs if not term.implied else None
    there = [] if needs is None else [needs.is_not_null()]
    return SumQuery((term.value,), rows_where(term.where, *there))


def _over_groups(output: Output) -> bool:
    return isinstance(output, OverGroups | Windowed) or any(map(_over_groups, parts_of(output)))
