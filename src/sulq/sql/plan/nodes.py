"""A plan: the questions of a statement, and how each aggregate is read off their answers."""

from __future__ import annotations

from dataclasses import dataclass

from sulq.kernel.query.expressions import Column
from sulq.kernel.query.sum_query import Statistic, SumQuery
from sulq.sql.parse.select import Aggregate, Output, Select


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


@dataclass(frozen=True, slots=True, eq=False)
class StatementPlan:
    """The questions of a statement, vectors first, and a recipe for each aggregate by its id.

    `places` says of each term which question holds it, and where; `whole` is the term that counts
    the rows of a cell, where their number is public.
    """

    select: Select
    questions: tuple[Question, ...]
    recipes: dict[int, Recipe]
    places: tuple[tuple[int, int], ...] = ()
    notes: tuple[str, ...] = ()
    whole: int | None = None

    @property
    def undeclared(self) -> str | None:
        """The open text column that is grouped by, if one is."""
        grouped = [grouping.group.of for grouping in self.select.groups if grouping.undeclared]
        return grouped[0].name if grouped and isinstance(grouped[0], Column) else None

    def quantile(self, output: Output) -> Quantile | None:
        """How a quantile or an end that stands by itself is read; None of anything else."""
        recipe = self.recipes[id(output)] if isinstance(output, Aggregate) else None
        return recipe if isinstance(recipe, Quantile) else None
