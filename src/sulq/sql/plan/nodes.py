"""A plan: the questions of a statement, and how each aggregate is read off their answers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sulq.kernel.query.expressions import Column
from sulq.kernel.query.sum_query import Statistic, SumQuery
from sulq.sql.parse.select import Aggregate, Output, Released, Select, selects_of


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
    def undeclared(self) -> str | None:
        """The open text column that is grouped by, if one is."""
        grouped = [grouping.group.of for grouping in self.bottom.groups if grouping.undeclared]
        return grouped[0].name if grouped and isinstance(grouped[0], Column) else None

    def quantile(self, output: Output) -> Quantile | None:
        """How a quantile or an end that stands by itself is read; None of anything else."""
        while isinstance(output, Released):
            output = output.of
        recipe = self.recipes[id(output)] if isinstance(output, Aggregate) else None
        return recipe if isinstance(recipe, Quantile) else None
