"""The one flow: whatever is read from rows for an answer is charged, drawn, read and stored here.

A mechanism says what is charged, what is drawn, what is read, and what is stored of all three. It
does none of that itself. Proof: docs/proofs/flow.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from sulq.kernel.engines.engine import Engine, check_read, check_source
from sulq.kernel.ledger.events import Charge, PricedRequest
from sulq.kernel.noise.laws import Geometric, Law
from sulq.kernel.noise.sampler import draw_noise
from sulq.kernel.query.sum_query import MOST_TERMS
from sulq.kernel.release.mechanisms import NoisySums
from sulq.kernel.schema.bind import MOST_CELLS, BoundQuery
from sulq.kernel.schema.program import RowSums


class Mechanism(Protocol):
    """A randomised function of the rows, with its price. The field also says: a measurement."""

    @property
    def priced(self) -> PricedRequest:
        """What is charged: the question, the name of its noise, and who pays."""

    @property
    def laws(self) -> Sequence[Law | Geometric]:
        """The law of each draw. They follow from the question and its price, not from rows."""

    def prepare(self, engine: Engine) -> Callable[[], Any]:
        """Return what will read the rows. This step may refuse, and reads none."""

    def finish(self, sums: Any, noise: Sequence[int]) -> Sequence[int]:
        """Return what is stored, from what was read and what was drawn. It fails for no row."""


class Pass(NamedTuple):
    """Mechanisms that one pass over the rows serves."""

    mechanisms: Sequence[Mechanism]
    read: Callable[[Mapping[str, Charge]], Sequence[Any]]  # from the charges, by digest


class RowReader(Protocol):
    """Who reads the rows: the engine, or the filters of a table whose people have balances."""

    @property
    def engine(self) -> Engine: ...

    def passes(self, mechanisms: Sequence[Mechanism]) -> list[Pass]:
        """Prepare them all in few passes. This step may refuse, and reads no row."""


def release(
    mechanisms: Sequence[Mechanism],
    reader: RowReader,
    charge: Callable[[Sequence[PricedRequest]], Sequence[Charge]],
    settle: Callable[[Sequence[tuple[Charge, Sequence[int]]]], Sequence[Charge]],
) -> dict[str, Charge]:
    """Release all of these or none. Return the charges, with what was stored, by digest."""
    check_source(reader.engine)
    passes = reader.passes(mechanisms)  # prepare: may refuse, free; no row is read
    entries = charge([one.priced for one in mechanisms])  # charge: durable, or refused
    paid = {entry.digest: entry for entry in entries}
    due = [one for one in mechanisms if not paid[one.priced.digest].answered]
    if not due:
        return paid
    noise = {one.priced.digest: draw_noise(one.laws) for one in due}  # draw: before a row is read
    noisy: list[tuple[Charge, Sequence[int]]] = []
    for several, read in passes:
        if noise.keys().isdisjoint(one.priced.digest for one in several):
            continue
        sums = read(paid)  # read: the only line that reads rows
        check_read(reader.engine)  # check: of rows that have changed meanwhile nothing leaves
        noisy += [  # finish: what is stored, from sums and noise
            (paid[one.priced.digest], one.finish(own, noise[one.priced.digest]))
            for one, own in zip(several, sums, strict=True)
            if one.priced.digest in noise
        ]
    hold()  # gate: the moment of the next line is public
    return paid | {entry.digest: entry for entry in settle(noisy)}  # settle: stored, write-once


# Rows read by the engine: questions over the same rows and cells become one program.


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


# When an answer may be stored: at once, or when who serves it says so. The ledger is read by
# others, and its order is a clock: an answer that is stored as soon as it is computed tells how
# long the rows took. A server holds it until a public moment.


_until: ContextVar[Callable[[], None] | None] = ContextVar("until", default=None)


@contextmanager
def held(until: Callable[[], None]) -> Iterator[None]:
    """Store what this thread asks in here only when `until` has returned."""
    token = _until.set(until)
    try:
        yield
    finally:
        _until.reset(token)


def hold() -> None:
    """Wait, between the reading of rows and the storing of the answer, as `held` says."""
    until = _until.get()
    if until is not None:
        until()
