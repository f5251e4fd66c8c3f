"""The one flow: whatever is read from rows for an answer is charged, drawn, read and stored here.

A mechanism says what is charged, what is drawn, what is read, and what is stored of all three. It
does none of that itself. Proof: docs/proofs/flow.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol

from sulq.kernel.engines.engine import Engine, check_read, check_source
from sulq.kernel.ledger.events import Charge, PricedRequest
from sulq.kernel.noise.laws import Geometric, Law
from sulq.kernel.noise.sampler import draw_noise
from sulq.kernel.release.gate import hold


class Draw(Enum):
    """When noise is drawn."""

    FIRST = "before a row is read"
    READ = "when rows have been read"
    HELD = "after the gate"


class Mechanism(Protocol):
    """A randomised function of the rows, with its price. The field also says: a measurement."""

    @property
    def priced(self) -> PricedRequest:
        """What is charged: the question, the name of its noise, and who pays."""

    @property
    def when(self) -> Draw:
        """When its noise is drawn."""

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


class Reader(Protocol):
    """Who reads the rows: the engine, or the filters of a table whose people have balances."""

    @property
    def engine(self) -> Engine: ...

    def passes(self, mechanisms: Sequence[Mechanism]) -> list[Pass]:
        """Prepare them all in few passes. This step may refuse, and reads no row."""


def release(
    mechanisms: Sequence[Mechanism],
    reader: Reader,
    charge: Callable[[Sequence[PricedRequest]], Sequence[Charge]],
    settle: Callable[[Sequence[tuple[Charge, Sequence[int]]]], Sequence[Charge]],
) -> dict[str, Charge]:
    """Release all of these or none. Return the charges, with what was stored, by digest."""
    check_source(reader.engine)
    passes = reader.passes(mechanisms)  # prepare: may refuse, free; no row is read
    entries = charge([one.priced for one in mechanisms])  # charge: durable, or refused
    paid = {entry.digest: entry for entry in entries}
    ready: list[tuple[Charge, Mechanism, Any, list[int] | None]] = []
    for several, read in passes:
        due = [one for one in several if not paid[one.priced.digest].answered]
        if not due:
            continue
        noise = {  # draw: before a row is read, but for mechanisms that wait
            one.priced.digest: draw_noise(one.laws) for one in due if one.when is Draw.FIRST
        }
        sums = read(paid)  # read: the only line that reads rows
        check_read(reader.engine)  # check: of rows that have changed meanwhile nothing leaves
        noise |= {one.priced.digest: draw_noise(one.laws) for one in due if one.when is Draw.READ}
        ready += [
            (paid[one.priced.digest], one, own, noise.get(one.priced.digest))
            for one, own in zip(several, sums, strict=True)
            if one in due
        ]
    noisy = [  # finish: what is stored, from sums and noise
        (entry, one.finish(own, drawn)) for entry, one, own, drawn in ready if drawn is not None
    ]
    if ready:
        hold()  # gate: the moment of the next line is public
        noisy += [
            (entry, one.finish(own, draw_noise(one.laws)))
            for entry, one, own, drawn in ready
            if drawn is None
        ]
        paid |= {entry.digest: entry for entry in settle(noisy)}  # settle: stored, write-once
    return paid
