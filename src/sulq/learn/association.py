"""AssociationRules: what goes with what, from noisy counts of items held together (Apriori).

Counts of single items and of pairs are one question, a Gram matrix of the 0/1 items. Longer sets
are asked one length at a time, only those whose subsets all seem frequent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import Any, ClassVar

from sulq.errors import InvalidQuery
from sulq.kernel.query.expressions import Expression, col
from sulq.kernel.query.vectors import Vector, cells, concat, ones
from sulq.kernel.schema.columns import Flag, Number
from sulq.learn.budget import FitBudget, FitPlan, FitStep
from sulq.learn.dataset import FitData
from sulq.learn.estimator import Learner
from sulq.learn.parameters import Constraints, Interval, OneOf, Whole
from sulq.learn.summaries import RuleList, Summary

MOST_SETS = 500
"""Sets of one length that are asked about."""
SIGMAS = 2.0
"""A count below so many standard errors is not told from nothing."""


@dataclass(frozen=True)
class ItemSet:
    """Items held together: how often, as a share of the rows."""

    items: tuple[str, ...]
    support: float
    error: float


@dataclass(frozen=True)
class Rule:
    """Who holds `given` also holds `then`, with this confidence."""

    given: tuple[str, ...]
    then: tuple[str, ...]
    support: float
    confidence: float
    lift: float
    support_error: float
    confidence_error: float
    lift_error: float

    def __str__(self) -> str:
        return (
            f"{' & '.join(self.given)} -> {' & '.join(self.then)}: support {self.support:.3f}"
            f" +-{2 * self.support_error:.3f}, confidence {self.confidence:.2f}"
            f" +-{2 * self.confidence_error:.2f}, lift {self.lift:.2f}"
        )


class AssociationRules(Learner):
    """Association rules: frequent sets of items, and the rules they make.

    Parameters
    ----------
    min_support : float
        The least share of the rows that holds a set.
    min_confidence : float
        The least share of the rows with the left side that also holds the right side.
    max_length : int
        The most items in a set, from 2 to 6.
    credits, method, random_state, on_noise, progress
        As for every learner; see `Learner`.

    Attributes
    ----------
    itemsets_ : list of ItemSet
        Frequent sets with their noisy support, the most frequent first.
    rules_ : list of Rule
        Rules with support, confidence, lift and their errors, the surest first.
    below_noise_ : int
        How many candidates were too rare to tell from noise.

    Notes
    -----
    Apriori. Items are Flags that are true and values of Categories. Sets over the same columns
    exclude each other, so together they cost what one costs (V.3).

    Examples
    --------
    >>> from sulq.learn import AssociationRules
    >>> model = AssociationRules(0.01, 0.05, max_length=2, credits=50)
    >>> model.fit(db, ["smoker", "blood"]).rules_[0].support > 0
    True
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "min_support": [Interval(0, 1, "(]")],
        "min_confidence": [Interval(0, 1, "(]")],
        "max_length": [Whole(2, 6)],
        "method": [OneOf("auto")],
    }

    def __init__(
        self,
        min_support: float = 0.1,
        min_confidence: float = 0.5,
        max_length: int = 3,
        *,
        credits: Any = None,
        method: str = "auto",
        random_state: int | None = None,
        on_noise: str = "raise",
        progress: bool | None = None,
    ) -> None:
        self.min_support = min_support
        self.min_confidence = min_confidence
        self.max_length = max_length
        self.credits = credits
        self.method = method
        self.random_state = random_state
        self.on_noise = on_noise
        self.progress = progress

    def _plan(self, table: FitData) -> FitPlan:
        wrong = [n for n in table.features.names if isinstance(table.oracle.schema[n], Number)]
        if wrong or table.features.vector is not None:
            raise InvalidQuery(f"items are Flags and Categories; {wrong} are Numbers: bin them")
        if len(table.features.names) < 2:
            raise InvalidQuery("rules need at least two columns")
        longer = self.max_length - 2
        first = table.share * (1.0 if not longer else 0.6)
        steps = [FitStep("pairs", first)]
        if longer:
            steps.append(FitStep("longer", table.share - first, longer))
        return FitPlan("apriori", tuple(steps))

    def _learn(self, table: FitData, budget: FitBudget) -> None:
        items = _items(table)
        self.below_noise_ = 0
        supports = self._pairs(table, budget, items)
        if not any(len(held) == 2 for held in supports):
            self._too_noisy(
                f"no pair of items stands out at support {self.min_support:g}; rows or credits"
                " are too few, or lower min_support"
            )
        frequent: list[tuple[int, ...]] = sorted(held for held in supports if len(held) == 2)
        for length in range(3, self.max_length + 1):
            wanted = _candidates(frequent, supports, items, length)
            if not wanted:
                break
            if len(wanted) > MOST_SETS:
                self._note(
                    f"{len(wanted)} sets of {length} items: the first {MOST_SETS} were asked"
                )
                wanted = wanted[:MOST_SETS]
            frequent = self._longer(table, budget, items, wanted, supports)
        self.itemsets_ = [
            ItemSet(tuple(items[i].name for i in held), *value)
            for held, value in sorted(supports.items(), key=lambda pair: -pair[1][0])
        ]
        self.rules_ = _rules(supports, [item.name for item in items], self.min_confidence)
        if self.below_noise_:
            self._note(f"{self.below_noise_} candidate sets were too rare to tell from noise")

    def _pairs(self, table: FitData, budget: FitBudget, items: Sequence[_Item]) -> _Supports:
        """Level 1 and 2 in one question; the diagonal holds the single items."""
        held = concat(*_disjoint(items, [(place,) for place in range(len(items))]))
        counts, error = budget.sums("pairs", table.outer(held, held))
        found: _Supports = {}
        for i in range(len(items)):
            self._keep(found, (i,), float(counts[i, i]), error, table)
        for i, j in combinations(range(len(items)), 2):
            if items[i].column != items[j].column and (i,) in found and (j,) in found:
                self._keep(found, (i, j), float(counts[i, j]), error / math.sqrt(2), table)
        return found

    def _longer(
        self,
        table: FitData,
        budget: FitBudget,
        items: Sequence[_Item],
        wanted: Sequence[tuple[int, ...]],
        supports: _Supports,
    ) -> list[tuple[int, ...]]:
        wanted = sorted(wanted, key=lambda held: _columns(items, held))
        together = concat(*_disjoint(items, wanted))
        counts, error = budget.sums("longer", table.outer(ones(), together))
        for held, count in zip(wanted, counts[0], strict=True):
            self._keep(supports, held, float(count), error, table)
        return [held for held in wanted if held in supports]

    def _keep(
        self, found: _Supports, held: tuple[int, ...], count: float, error: float, table: FitData
    ) -> None:
        if count < SIGMAS * error:
            self.below_noise_ += 1
        elif count >= self.min_support * table.rows:
            support = min(count / table.rows, 1.0)  # where rows are private, their noise counts too
            found[held] = (support, math.hypot(error, support * table.rows_error) / table.rows)

    def _summary(self) -> Summary:
        return RuleList(name=type(self).__name__, rules=self.rules_)

    def to_pandas(self) -> Any:
        """The rules as a frame."""
        import pandas

        return pandas.DataFrame([vars(rule) for rule in self.rules_])


@dataclass(frozen=True)
class _Item:
    name: str
    column: str
    held: Expression


_Supports = dict[tuple[int, ...], tuple[float, float]]


def _items(table: FitData) -> list[_Item]:
    found = []
    for name in table.features.names:
        column = table.oracle.schema[name]
        if isinstance(column, Flag):
            found.append(_Item(name, name, col(name)))
        else:
            values = getattr(column, "values", None) or ()
            found += [_Item(f"{name}={value}", name, col(name) == value) for value in values]
    return found


def _columns(items: Sequence[_Item], held: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(items[i].column for i in held)


def _disjoint(items: Sequence[_Item], sets: Sequence[tuple[int, ...]]) -> list[Vector]:
    """Sets over the same columns exclude each other: together they cost what one costs. V.3"""
    return [
        cells(*(_all(items[i].held for i in held) for held in alike))
        for _, alike in groupby(sets, key=lambda held: _columns(items, held))
    ]


def _all(conditions: Any) -> Expression:
    listed = list(conditions)
    joined: Expression = listed[0]
    for condition in listed[1:]:
        joined = joined & condition
    return joined


def _candidates(
    frequent: Sequence[tuple[int, ...]], supports: _Supports, items: Sequence[_Item], length: int
) -> list[tuple[int, ...]]:
    """Sets all of whose subsets are frequent; the likeliest first."""
    known = set(frequent)
    singles = sorted({i for held in frequent for i in held})
    found = []
    for held in frequent:
        for i in singles:
            if i <= held[-1] or items[i].column in {items[j].column for j in held}:
                continue
            longer = (*held, i)
            if all(part in known for part in combinations(longer, length - 1)):
                found.append(longer)
    least = {s: min(supports[part][0] for part in combinations(s, length - 1)) for s in found}
    return sorted(found, key=lambda s: (-least[s], s))


def _rules(supports: _Supports, names: Sequence[str], least: float) -> list[Rule]:
    found = []
    for held, (support, error) in supports.items():
        for size in range(1, len(held)):
            for given in combinations(held, size):
                then = tuple(i for i in held if i not in given)
                if given not in supports or then not in supports:
                    continue
                base, base_error = supports[given]
                confidence = min(support / base, 1.0)
                if confidence < least:
                    continue
                spread = math.hypot(error, confidence * base_error) / base
                alone, alone_error = supports[then]
                lift = confidence / alone
                found.append(
                    Rule(
                        tuple(names[i] for i in given),
                        tuple(names[i] for i in then),
                        support,
                        confidence,
                        lift,
                        error,
                        spread,
                        math.hypot(spread, lift * alone_error) / alone,
                    )
                )
    return sorted(found, key=lambda rule: (-rule.confidence, -rule.support, rule.given))
