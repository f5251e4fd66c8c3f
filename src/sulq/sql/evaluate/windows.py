"""Functions of released groups: ranks, running sums, neighbours, totals. Post-processing only."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sulq.kernel.noise.intervals import Ends
from sulq.sql.evaluate.estimates import Stated
from sulq.sql.evaluate.linear_forms import Estimate, Made, Noisy, as_estimate
from sulq.sql.parse.select import Ordering, Output, Windowed

Value = Any
"""An Estimate, or a public value: text, number, truth value, date or None."""

Cell = tuple[int, ...]


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
            found[cell] = self.of(window.function, window.of, cells[start:end])
        return found

    def _tie(self, window: Windowed, cell: Cell) -> tuple[Value, ...]:
        return tuple(plain(self.value(part.of, cell)) for part in window.order)

    def _neighbour(self, window: Windowed, cells: list[Cell], at: int) -> Value:
        if window.of is None or not 0 <= at < len(cells):
            return None
        return self.value(window.of, cells[at])

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
