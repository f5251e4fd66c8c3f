"""How many rows a figure has, as far as its asker was told: what an average's error bar hangs on.

From stored noisy answers of the asker and from public facts; nothing is charged, no row is read.
Where nobody was told, a bar is a span: as if all rows matched, and as if one in five did.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sulq.answers.error_bars import Forecast
from sulq.answers.statistics import STATISTICS, MomentKind, forecast
from sulq.formatting import ordinal, spelled
from sulq.kernel.noise.laws import Law
from sulq.kernel.query import canonical
from sulq.kernel.query.expressions import Expression, Operation, lit
from sulq.kernel.query.sum_query import SumQuery, rows_where
from sulq.kernel.schema.bind import BoundQuery

FEWER = 5
"""Of a private selection of unknown size, the wide end supposes that one row in so many matches."""
MOST_NAMED = 3
"""Receipts that a sentence names."""


@dataclass(frozen=True, slots=True)
class GroupSizes:
    """Rows per figure: of the largest group and of the smallest one that is clearly there.

    `receipts` are the answers that say so. Without them nobody was told: `most` is the public
    number of rows, spread evenly over the groups, and `least` one in five of them.
    """

    most: int
    least: int
    receipts: tuple[int, ...] = ()
    unclear: int = 0
    """Groups that cannot be told from empty ones."""

    @property
    def known(self) -> bool:
        return bool(self.receipts)

    @property
    def rows(self) -> int:
        """The size to count on: of the smallest group where sizes are known, else of all rows."""
        return self.least if self.known else self.most

    def text(self, who: str = "rows", per: str = "") -> str:
        """How many, and who says so; `per` follows the number: " per region"."""
        if not self.known:
            return f"nobody has told you how many {who} match{per}"
        named = ", ".join(ordinal(number) for number in self.receipts[:MOST_NAMED])
        more = " and others" if len(self.receipts) > MOST_NAMED else ""
        least, most = spelled(self.least, 0), spelled(self.most, 0)
        many = most if least == most else f"{least} to {most}"
        return f"about {many} {who}{per}, by stored answer {named}{more}"


def hangs_on(who: str, all_rows: int, narrow: float, wide: float, *, grouped: bool = False) -> str:
    """What is said of a bar where nobody was told how many rows match."""
    per, even = (" per group", ", spread evenly") if grouped else ("", "")
    return (
        f"the bar hangs on how many {who} match{per}: +-{narrow:,.4g} if all {all_rows:,} do{even},"
        f" +-{wide:,.4g} if one in {FEWER} does; count them first, or state `rows`"
    )


def moment_count(bound: BoundQuery) -> SumQuery | None:
    """Return the count of the rows that a mean, a variance or a correlation is of; None of a
    statistic whose bar does not hang on it."""
    if not isinstance(STATISTICS[bound.statistic.kind], MomentKind):
        return None
    query = bound.statistic.query
    return SumQuery(query.terms[:1], query.rows)


def sized_forecast(
    bound: BoundQuery, laws: Sequence[Law], size: int | None, sizes: GroupSizes | None
) -> tuple[Forecast, Forecast | None]:
    """Return the bar of a question, and what it would be if few rows match; None where that does
    not matter, or is known."""
    plain = forecast(bound, laws, None, size)
    unsized = sizes is None or (sizes.least == sizes.most and not sizes.known)
    if sizes is None or unsized or plain.half_width(0.95) is None:
        return plain, None
    who = "rows" if bound.schema is None else bound.schema.who
    if sizes.known:
        bar = forecast(bound, laws, sizes.least, size)
        return replace(bar, note=f"the bar is for {sizes.text(who)}"), None
    near, far = (forecast(bound, laws, rows, size) for rows in (sizes.most, sizes.least))
    halves = (float(np.max(np.asarray(end.half_width(0.95)))) for end in (near, far))
    return replace(near, note=hangs_on(who, sizes.most, *halves)), far


def all_match(rows: Expression) -> bool:
    """Return True if a condition leaves out missing values at most."""
    return all(_is_presence(part) for part in _conjuncts(canonical.truth(rows)))


def _conjuncts(condition: Expression) -> Iterator[Expression]:
    if isinstance(condition, Operation) and condition.name == "and":
        for part in condition.operands:
            yield from _conjuncts(part)
    else:
        yield condition


def _is_presence(condition: Expression) -> bool:
    if condition is canonical.TRUE:
        return True
    return isinstance(condition, Operation) and condition.name == "not_null"


def sizes_of(
    oracle: Any, counted: SumQuery, *, cells: int = 1, confidence: float = 0.95
) -> GroupSizes | None:
    """Return how many rows each cell of a count has; None where there is nothing to go by.

    `counted` is the count, by groups if there are any. Where the asker was told the number of all
    rows of the selection, missing values included, that stands in for it.
    """
    if found := _told(oracle, counted, confidence):
        return found
    if oracle.size is None:
        return None
    even = max(1, oracle.size // max(1, cells))
    if all_match(counted.rows) and not counted.groups:
        return GroupSizes(even, even)
    return GroupSizes(even, max(1, even // FEWER))


def _told(oracle: Any, counted: SumQuery, confidence: float) -> GroupSizes | None:
    """Return what the asker's own answers say; an oracle that keeps none knows nothing."""
    known = getattr(oracle, "known", None)
    if known is None:
        return None
    parts = list(_conjuncts(canonical.truth(counted.rows)))
    kept = [part for part in parts if not _is_presence(part)]
    tries = [counted]
    if len(kept) < len(parts) and (kept or counted.groups):
        tries.append(SumQuery((lit(1),), rows_where(None, *kept), counted.groups))
    for question in tries:
        answer = known(question)
        if answer is None:
            continue
        values = np.asarray(answer.value, dtype=np.float64).reshape(-1)
        lows = np.asarray(answer.interval(confidence)[0], dtype=np.float64).reshape(-1)
        clear = values[lows > 0]
        if len(clear):
            unclear = len(values) - len(clear)
            return GroupSizes(round(clear.max()), round(clear.min()), answer.sources, unclear)
    return None
