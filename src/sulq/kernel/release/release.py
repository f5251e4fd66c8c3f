"""The one flow: whatever is read from rows for an answer is charged, drawn, read and stored here.

A mechanism says what is charged, what is drawn, what is read, and what is stored of all three. It
does none of that itself. Proof: docs/proofs/flow.md.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, islice
from typing import Any, NamedTuple, Protocol

from sulq.errors import EngineFailed, Refused
from sulq.kernel.accounting.mechanisms import KeysPrice
from sulq.kernel.accounting.pricing import Price
from sulq.kernel.engines.engine import Engine
from sulq.kernel.engines.sql.compile import KeyRow
from sulq.kernel.ledger.events import Charge, PricedRequest
from sulq.kernel.noise.laws import DiscreteLaplace, Geometric, Law
from sulq.kernel.noise.sampler import add_fresh_noise, add_noise, draw_noise
from sulq.kernel.query.sum_query import MOST_TERMS
from sulq.kernel.schema.bind import MOST_CELLS, BoundQuery
from sulq.kernel.schema.keys import BoundKeys, Key, ShownKey, packed_keys
from sulq.kernel.schema.program import RowSums


def check_source(engine: Engine) -> None:
    """Raise `Refused`, before a charge, if the source is no longer what was opened."""
    if not engine.unchanged():
        raise Refused(
            "the data has changed since it was opened; restore it, or if it got new rows,"
            " `sulq grow` it and open it again. Nothing was charged"
        )


def check_read(engine: Engine) -> None:
    """Raise `EngineFailed`, after rows were read, if the source has changed meanwhile."""
    if not engine.unchanged():
        raise EngineFailed


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
    """Group noisy sums over the same rows and cells, as far as they could be one question."""
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
    """Return one program that sums the terms of all of them."""
    programs = [bound.sums for bound in bounds if isinstance(bound.sums, RowSums)]
    return replace(programs[0], terms=tuple(term for sums in programs for term in sums.terms))


def parted(sums: list[int], bounds: Sequence[BoundQuery]) -> list[list[int]]:
    """Split the sums of `merged` into those of each question."""
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


@dataclass(frozen=True, slots=True, eq=False)
class NoisySums:
    """Exact integer sums, each plus a draw of its law. Blum et al. 2005, algorithm A(R)."""

    bound: BoundQuery
    cost: Price
    priced: PricedRequest

    @property
    def laws(self) -> Sequence[Law]:
        return self.cost.coordinates(self.bound.cells)

    def prepare(self, engine: Engine) -> Callable[[], list[int]]:
        return engine.prepare(self.bound.sums)

    def finish(self, sums: list[int], noise: Sequence[int]) -> list[int]:
        return add_noise(self.bound.lifted(sums), noise)


@dataclass(frozen=True, slots=True, eq=False)
class MaskedSums(NoisySums):
    """One owner's share of a joint sum: noisy sums under masks that cancel over all owners. V.4"""

    masks: Sequence[int]
    modulus: int

    def finish(self, sums: list[int], noise: Sequence[int]) -> list[int]:
        masked = add_noise(add_noise(self.bound.lifted(sums), noise), self.masks)
        return [value % self.modulus for value in masked]


@dataclass(frozen=True, slots=True, eq=False)
class TopK:
    """k times the cell with the largest noisy sum of those left: report noisy max. M.3"""

    bound: BoundQuery
    k: int
    law: Geometric
    priced: PricedRequest

    @property
    def laws(self) -> Sequence[Geometric]:
        """Return a law for each cell that is left, at every choice."""
        return [self.law] * sum(self.bound.cells - chosen for chosen in range(self.k))

    def prepare(self, engine: Engine) -> Callable[[], list[int]]:
        return engine.prepare(self.bound.sums)

    def finish(self, sums: list[int], noise: Sequence[int]) -> list[int]:
        return chosen(self.bound.lifted(sums), noise, self.k)


def chosen(sums: Sequence[int], noise: Sequence[int], k: int) -> list[int]:
    """Return the places of the k largest, with fresh noise for each; of equals the first."""
    left, draws, found = list(range(len(sums))), iter(noise), []
    for _ in range(k):
        noisy = [sums[cell] + next(draws) for cell in left]
        found.append(left.pop(noisy.index(max(noisy))))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class AboveThreshold:
    """Whether a sum, with fresh noise, reaches a noisy level: 1 or 0. M.2

    The level was drawn, and everything was paid for, when the alert was armed.
    """

    bound: BoundQuery
    step: Fraction  # of the level
    level: int
    law: DiscreteLaplace
    priced: PricedRequest

    @property
    def laws(self) -> Sequence[DiscreteLaplace]:
        return [self.law]

    def prepare(self, engine: Engine) -> Callable[[], list[int]]:
        return engine.prepare(self.bound.sums)

    def finish(self, sums: list[int], noise: Sequence[int]) -> list[int]:
        (fine,) = add_noise([sums[0] * int(self.bound.terms[0].step / self.step)], noise)
        return [int(fine >= self.level)]


@dataclass(frozen=True, slots=True, eq=False)
class UndeclaredKeys:
    """Noisy counts of the keys that occur, of those that reach a threshold. M.1, P.4

    The one exception to the order of draws: there is a draw for every key that occurs, and how many
    there are is known when they have been read. So it draws for a batch of counts at a time. Only
    keys that are shown get noise for their sums: how many these are, everybody sees.
    """

    bound: BoundKeys
    cost: KeysPrice
    priced: PricedRequest

    @property
    def laws(self) -> Sequence[Law]:
        """None before rows are read."""
        return ()

    def prepare(self, engine: Engine) -> Callable[[], tuple[int, list[ShownKey]]]:
        read = engine.prepare_keys(self.bound.program)
        return lambda: self._shown(read())

    def _shown(self, batches: Iterator[list[KeyRow]]) -> tuple[int, list[ShownKey]]:
        """Return the noisy total and the keys shown; a batch of exact counts is held at a time,
        and the exact sums of what may be shown."""
        total = 0

        def reaching() -> Iterator[tuple[int, Key, Sequence[int]]]:
            nonlocal total
            for batch in batches:
                counts = [count * self.bound.fine_unit for _, count, _ in batch]
                total += sum(counts)
                noisy = add_fresh_noise(counts, [self.cost.law] * len(counts))
                for (key, _, sums), value in zip(batch, noisy, strict=True):
                    if value >= self.cost.threshold:
                        yield -value, key, sums

        # by count, then by key: the engine's order
        first = heapq.nsmallest(self.bound.most, reaching())
        lifts = [term.lift for term in self.bound.terms] * len(first)
        exact = chain.from_iterable(sums for _, _, sums in first)
        lifted = [value * lift for value, lift in zip(exact, lifts, strict=True)]
        laws = [self.cost.total, *self.cost.sums * len(first)]
        noisy, *told = add_fresh_noise([total, *lifted], laws)
        each = iter(told)
        return noisy, [
            ShownKey(key, -value, list(islice(each, len(sums)))) for value, key, sums in first
        ]

    def finish(self, sums: tuple[int, list[ShownKey]], noise: Sequence[int]) -> list[int]:
        """Return integers, as the ledger stores them."""
        total, shown = sums
        return packed_keys(total, shown)
