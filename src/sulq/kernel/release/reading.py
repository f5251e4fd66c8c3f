"""Rows read by the engine: questions over the same rows and cells become one program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sulq.kernel.engines.engine import Engine
from sulq.kernel.ledger.events import Charge
from sulq.kernel.query.sum_query import MOST_TERMS
from sulq.kernel.release.mechanisms import NoisySums
from sulq.kernel.release.release import Mechanism, Pass
from sulq.kernel.schema.bind import MOST_CELLS, BoundQuery
from sulq.kernel.schema.program import RowSums


@dataclass(frozen=True, slots=True)
class EngineReader:
    """The engine reads every row for every question."""

    engine: Engine

    def passes(self, mechanisms: Sequence[Mechanism]) -> list[Pass]:
        return [self._prepared(several) for several in together(mechanisms)]

    def _prepared(self, several: Sequence[Mechanism]) -> Pass:
        if len(several) == 1:
            alone = several[0].prepare(self.engine)
            return Pass(several, lambda paid: [alone()])
        bounds = [one.bound for one in several if isinstance(one, NoisySums)]
        read = self.engine.prepare(merged(bounds))

        def parts(paid: Mapping[str, Charge]) -> list[list[int]]:
            return parted(read(), bounds)

        return Pass(several, parts)


def together(mechanisms: Iterable[Mechanism]) -> list[list[Mechanism]]:
    """Noisy sums over the same rows and cells, as far as they could be one question."""
    alike: dict[object, list[list[Mechanism]]] = {}
    terms: dict[object, int] = {}  # of the last of them
    for one in mechanisms:
        same: object = one.priced.digest  # alone
        wide = cells = 1
        if isinstance(one, NoisySums) and isinstance(one.bound.sums, RowSums):
            same = (one.bound.sums.rows, one.bound.sums.groups)
            wide, cells = len(one.bound.terms), one.bound.cells
        parts = alike.setdefault(same, [[]])
        terms[same] = terms.get(same, 0) + wide
        if terms[same] > MOST_TERMS or terms[same] * cells > MOST_CELLS:
            parts.append([])
            terms[same] = wide
        parts[-1].append(one)
    return [part for parts in alike.values() for part in parts if part]


def merged(bounds: Sequence[BoundQuery]) -> RowSums:
    """One program that sums the terms of all of them."""
    programs = [bound.sums for bound in bounds if isinstance(bound.sums, RowSums)]
    return replace(programs[0], terms=tuple(term for sums in programs for term in sums.terms))


def parted(sums: list[int], bounds: Sequence[BoundQuery]) -> list[list[int]]:
    """The sums of `merged`, each question's own."""
    widths = [len(bound.terms) for bound in bounds]
    whole, found, start = sum(widths), [], 0
    for width in widths:
        cells = range(start, len(sums), whole)
        found.append([value for cell in cells for value in sums[cell : cell + width]])
        start += width
    return found
