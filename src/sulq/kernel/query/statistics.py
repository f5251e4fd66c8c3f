"""count, total, mean, variance, histogram, distribution: sums, and what is made of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sulq.errors import InvalidQuery
from sulq.kernel.query import canonical
from sulq.kernel.query.expressions import (
    Column,
    Expression,
    Operation,
    as_expression,
    column_or_expression,
    lit,
    operation,
)
from sulq.kernel.query.sum_query import SumQuery, clip_of, group

CDF_BINS = 128
MOST_SHARES = 1_000
RESOLUTION = 1_024
"""Cells of a distribution unless told, or unless its lattice has fewer points: the noise of a
quantile grows with their logarithm only."""
FINEST = 65_536


@dataclass(frozen=True, slots=True, eq=False)
class Statistic:
    """A named statistic: the sums it asks, and how to read them (`oracle` does the reading)."""

    kind: str
    query: SumQuery
    shares: tuple[float, ...] = ()


def _rows(where: object, *conditions: Expression) -> Expression:
    parts = list(conditions)
    if where is not None:
        read = as_expression(where)
        parts.insert(0, read)
    if not parts:
        return canonical.TRUE
    return parts[0] if len(parts) == 1 else operation("and", *parts)


def count(x: Expression | str | None = None, where: Expression | None = None) -> Statistic:
    """Count rows; with `x`, count rows where `x` is not NULL."""
    value = None if x is None else column_or_expression(x)
    if isinstance(value, Operation) and value.name in canonical.CONDITIONS:
        raise InvalidQuery(
            "count(x) counts the rows where x is not NULL, and a condition is seldom NULL: to count"
            " the rows where it is true, write count(where=...)"
        )
    present = [] if value is None else [value.is_not_null()]
    return Statistic("count", SumQuery((lit(1),), _rows(where, *present)))


def total(x: Expression | str, where: Expression | None = None) -> Statistic:
    """The sum of x; missing values add nothing."""
    return Statistic("total", SumQuery((column_or_expression(x),), _rows(where)))


def mean(x: Expression | str, where: Expression | None = None) -> Statistic:
    """The mean of x where it is there.

    Asked as one vector: the count, and the total of x minus the middle of its range.
    """
    value = column_or_expression(x)
    terms = (lit(1), operation("centred", value))
    return Statistic("mean", SumQuery(terms, _rows(where, value.is_not_null())))


def variance(x: Expression | str, where: Expression | None = None) -> Statistic:
    """The variance of x where it is there, from count, centred total and centred square."""
    value = column_or_expression(x)
    from_middle = operation("centred", value)
    terms = (lit(1), from_middle, operation("centred", from_middle * from_middle))
    return Statistic("variance", SumQuery(terms, _rows(where, value.is_not_null())))


def per_person(of: Statistic, clip: tuple[object, object]) -> Statistic:
    """A count, total or histogram per person: clipped to (low, high) for each, then added up.

    On a table of persons. One person moves the answer by the clip, however many rows they have.
    """
    if not isinstance(of, Statistic) or of.kind not in ("count", "total", "histogram"):
        raise InvalidQuery("per_person takes a count, a total or a histogram")
    return replace(of, query=replace(of.query, clip=clip_of(clip)))


def rows_held(clip: tuple[object, object]) -> Statistic:
    """How many rows the persons have, cut to (low, high) for each: also rows beyond max_rows.

    `rows_held((4, 5))` less 4 of each person is how many persons have more than 4 rows.
    """
    return Statistic("count", SumQuery((lit(1),), clip=clip_of(clip), uncut=True))


def count_persons(where: Expression | None = None, by: Expression | str | None = None) -> Statistic:
    """How many persons have a row that makes `where` true; with `by`, in each of its cells."""
    rows = count(where=where) if by is None else histogram(by, where=where)
    return per_person(rows, (0, 1))


def histogram(
    *columns: Expression | str,
    where: Expression | None = None,
    edges: Sequence[object] | Mapping[str, Sequence[object]] | None = None,
    other: bool = False,
) -> Statistic:
    """Counts per declared value, or per [edge, next edge) of a Number (the last one closed).

    With several columns `edges` maps a Number's name to its edges. `other=True` adds a cell
    for NULL and undeclared values.
    """
    if not columns:
        raise InvalidQuery("histogram needs at least one column")
    read = [column_or_expression(column) for column in columns]
    groups = tuple(group(of, _edges_for(of, edges, len(read)), other=other) for of in read)
    return Statistic("histogram", SumQuery((lit(1),), _rows(where), groups))


def _edges_for(
    of: Expression,
    edges: Sequence[object] | Mapping[str, Sequence[object]] | None,
    columns: int,
) -> Sequence[object] | None:
    if edges is None:
        return None
    if isinstance(edges, Mapping):
        return edges.get(of.name) if isinstance(of, Column) else None
    if columns > 1:
        raise InvalidQuery("with several columns give edges as {'column': [edges, ...]}")
    return edges


def distribution(
    x: Expression | str,
    where: Expression | None = None,
    by: Expression | str | Sequence[Expression | str] | None = None,
    resolution: int | None = None,
) -> Statistic:
    """The whole distribution of x, also per group: all quantiles for one histogram's price.

    Asked as a tree of counts over `resolution` equal cells of x's range. The value is how many
    rows lie below each edge; `Answer.distribution` has histogram, quantiles, median and ends.
    """
    cells = RESOLUTION if resolution is None else resolution
    if isinstance(cells, bool) or not isinstance(cells, int) or not 2 <= cells <= FINEST:
        raise InvalidQuery(f"resolution is a whole number from 2 to {FINEST}, got {cells!r:.60}")
    groups = () if by is None else (by,) if isinstance(by, str | Expression) else tuple(by)
    read = tuple(group(of) for of in groups)
    tree = group(x, bins=cells, tree=True)
    return Statistic("distribution", SumQuery((lit(1),), _rows(where), (*read, tree)))


def cdf(
    x: Expression | str,
    edges: Sequence[object] | None = None,
    where: Expression | None = None,
) -> Statistic:
    """How many rows lie below each edge: non-decreasing counts, one histogram's price.

    Without edges: of `distribution(x)`, at up to 128 equal steps of the range.
    """
    if edges is None:
        return Statistic("cdf", distribution(x, where).query)
    return Statistic("cdf", SumQuery((lit(1),), _rows(where), (group(x, edges),)))


def quantiles(
    x: Expression | str, shares: Iterable[float], where: Expression | None = None
) -> Statistic:
    """The values below which the given shares of the rows lie: read from `distribution(x)`."""
    if isinstance(shares, str) or not isinstance(shares, Iterable):
        raise InvalidQuery(f"shares must be a list of numbers in [0, 1], got {shares!r:.60}")
    read: list[float] = []
    for share in shares:
        number = canonical._number(as_expression(share))
        if number is None or not 0 <= number <= 1:
            raise InvalidQuery(f"a share must be a number in [0, 1], got {share!r:.60}")
        read.append(float(number))
    if not 1 <= len(read) <= MOST_SHARES:
        raise InvalidQuery(f"want 1 to {MOST_SHARES} shares, got {len(read)}")
    return Statistic("quantiles", distribution(x, where).query, tuple(read))


def as_statistic(question: object) -> Statistic:
    """A statistic, or a `SumQuery` asked as it is: one with a tree is read as a distribution."""
    if isinstance(question, Statistic):
        return question
    if isinstance(question, SumQuery):
        tree = any(group.tree for group in question.groups)
        return Statistic("distribution" if tree else "sums", question)
    raise InvalidQuery(
        f"want a question such as count(...), mean(...) or a SumQuery,"
        f" got {type(question).__name__}"
    )


KINDS = (
    *("sums", "outer", "count", "total", "mean", "variance"),
    *("histogram", "cdf", "quantiles", "distribution"),
)


def check_kind(statistic: Statistic) -> None:
    """Refuse a statistic whose sums cannot be read as its kind.

    Answers are read after the charge, so whatever reading relies on is checked here, before it.
    """
    kind, shares = statistic.kind, statistic.shares
    if kind not in KINDS:
        raise InvalidQuery(f"no question of kind {kind!r:.40}; there are {', '.join(KINDS)}")
    if not _fits(kind, statistic.query) or bool(shares) != (kind == "quantiles"):
        raise InvalidQuery(
            f"the sums of this question are not those of a {kind}; make it with"
            " count, total, mean, variance, histogram, cdf, quantiles or distribution"
        )
    numbers = isinstance(shares, list | tuple) and all(
        isinstance(share, int | float) and not isinstance(share, bool) and 0 <= share <= 1
        for share in shares
    )
    if not numbers or len(shares) > MOST_SHARES:
        raise InvalidQuery(f"shares are at most {MOST_SHARES} numbers in [0, 1]")


def _fits(kind: str, query: SumQuery) -> bool:
    """Whether the reading of this kind can read these sums."""
    if kind == "outer" or query.outer is not None:
        return kind in ("outer", "sums") and query.outer is not None
    terms, trees = query.terms, [group.tree for group in query.groups]
    one = len(terms) == 1 and canonical.spelling(terms[0]) == canonical.spelling(lit(1))
    match kind:
        case "sums":
            return not any(trees)
        case "count":
            return one and not trees
        case "total":
            return len(terms) == 1 and not trees
        case "mean" | "variance":
            return not trees and query.clip is None and _is_ratio(kind, terms)
        case "histogram":
            return one and bool(trees) and not any(trees)
    if not one or not trees or query.clip is not None:
        return False
    if kind == "distribution":
        return trees[-1] and not any(trees[:-1])
    first = query.groups[0]
    listed = kind == "cdf" and first.edges is not None and not first.other
    return len(trees) == 1 and (first.tree or listed)


def _is_ratio(kind: str, terms: tuple[Expression, ...]) -> bool:
    """Whether the terms are those that `mean` or `variance` asks of some x."""
    if len(terms) < 2 or not isinstance(terms[1], Operation) or terms[1].name != "centred":
        return False
    asked = mean if kind == "mean" else variance
    wanted = asked(terms[1].operands[0]).query.terms
    return [canonical.spelling(term) for term in terms] == [canonical.spelling(t) for t in wanted]


def ranked(of: Expression | str, by: object, edges: Sequence[object] | None) -> SumQuery:
    """What `top` compares: one count or total (rows, if `by` is None) in each cell of `of`. M.3"""
    asked = as_statistic(count() if by is None else by)
    query = asked.query
    if asked.kind not in ("count", "total", "sums") or query.groups or len(query.terms) != 1:
        raise InvalidQuery(f"top ranks by one count(...) or total(...), got {asked.kind}")
    if query.clip is not None:
        raise InvalidQuery(
            "top ranks by sums over rows, got a sum per person; ask for it in every cell"
            " (count_persons(by=...), or per_person of a histogram) and read off the largest"
        )
    return SumQuery(query.terms, query.rows, (group(of, edges),))


# What sort of answer a charge bought: read off the canonical text that the ledger keeps.


DERIVED = '{"derived":'
KEYED = (
    ("keys", "Keys that nobody declared"),
    ("top", "Largest cells, names only"),
    ("alert", "Alerts"),
    ("share", "Shares of sums over several owners"),
    ("outer", "Learning: matrices of sums"),
)
LEARNING = KEYED[-1][1]


def kind_of(question: str, noise: str = "") -> str:
    """The kind of a stored question; the report and the pages count by it."""
    if noise.startswith(DERIVED):
        return "Free: followed from earlier answers"
    if '"guarantee"' in noise:
        return "Released under assumptions"
    form = json.loads(question)
    for key, kind in KEYED:
        if key in form:
            return kind
    terms, groups = form.get("terms") or [], form.get("groups") or []
    if any(isinstance(group, Mapping) and group.get("tree") for group in groups):
        return "Distributions and quantiles"
    if not all(map(_counts, terms)):
        return "Averages and spreads" if len(terms) > 1 else "Totals"
    return "Histograms" if groups else "Counts" if terms else "Totals"


def _counts(term: Any) -> bool:
    """True for 1, and for 1 or 0 by a condition."""
    if term[0] == "choose":
        return all(map(_counts, term[2:]))
    return bool(term[0] == "num")
