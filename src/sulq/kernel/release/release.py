"""The one flow: whatever is read from rows for an answer is charged, drawn, read and stored here.

A mechanism says what is charged, what is drawn, what is read, and what is stored of all three. It
does none of that itself. Proof: docs/proofs/flow.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from sulq.kernel.engines.engine import Engine, check_read, check_source
from sulq.kernel.ledger.events import Charge, PricedRequest
from sulq.kernel.noise.laws import Geometric, Law
from sulq.kernel.noise.sampler import draw_noise
from sulq.kernel.release.gate import hold


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
