"""The steps of an answer by keys that nobody declared, in order, in one place. M.1

Noise is drawn for the keys that occur, and a key is shown if its noisy count reaches a threshold;
how many were held back is never said. Proof: docs/proofs/keys.md.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from sulq.answers.selections import Keys, KeysQuote
from sulq.errors import Refused
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.accounting.mechanisms import KeysPrice, keys_price
from sulq.kernel.accounting.pricing import noise_grid, positive
from sulq.kernel.engines.engine import check_read, check_source
from sulq.kernel.ledger.budget import OWNER
from sulq.kernel.noise.sampler import add_fresh_noise
from sulq.kernel.query.expressions import Expression
from sulq.kernel.release.gate import hold
from sulq.kernel.schema.keys import BoundKeys, bind_keys
from sulq.kernel.schema.strata import accounts

if TYPE_CHECKING:
    from sulq.database.database import Database

USUAL_MOST = 1_000
DOWN = Context(prec=1, rounding=ROUND_DOWN)
Credits = Fraction | int | float


def quote_keys(
    database: Database,
    column: object,
    *,
    where: Expression | None = None,
    credits: Credits | None = None,
    delta: Credits | None = None,
    most: int = USUAL_MOST,
    analyst: str = OWNER,
) -> KeysQuote:
    """Price, threshold and standard error; free, and no row is read."""
    bound, cost = _priced(database, column, where, credits, delta, most)
    database.engine.prepare_keys(bound.program)  # what `ask_keys` would refuse
    unit = bound.fine_unit
    error = cost.law.standard_deviation() / unit
    paid = database.ledger.paid(analyst, bound.digest, cost.noise)  # one's own answers only
    names = accounts(database.schema)
    left = database.ledger.remaining(analyst, [names[number] for number in bound.accounts])
    if paid:
        now = left.credits_fraction
        return KeysQuote(Fraction(0), Fraction(0), cost.threshold / unit, error, now, True, True)
    due = cost.loss.credits_fraction
    return KeysQuote(
        due, cost.delta, cost.threshold / unit, error, left.credits_fraction - due,
        cost.loss.within(left), note=_lacking(cost, left),
    )  # fmt: skip


def _lacking(cost: KeysPrice, left: Loss) -> str:
    """What to do where a share holds the credits but not the delta of the threshold."""
    if cost.loss.delta <= left.delta:
        return ""
    said = f"the threshold costs an extra delta of {float(cost.delta):.2g}, and you have"
    noise = cost.loss.delta_fraction - cost.delta  # TB.8: due whatever the threshold
    room = left.delta_fraction - noise
    if room <= 0:
        return f"{said} none left for it; ask the owner for a larger share"
    less = DOWN.divide(Decimal(room.numerator), Decimal(room.denominator))
    return (
        f"{said} less: `keys` with delta={less:.0e} can be paid, with a higher threshold; or ask"
        " the owner for a larger share"
    )


def ask_keys(
    database: Database,
    column: object,
    *,
    where: Expression | None = None,
    credits: Credits | None = None,
    delta: Credits | None = None,
    most: int = USUAL_MOST,
    analyst: str = OWNER,
    key: str | None = None,
) -> Keys:
    """The keys of an open text column that many rows share, with noisy counts.

    `delta` is taken from what the promise sets aside; without it, a hundredth of that. At most
    `most` keys are shown, those with the largest noisy counts.
    """
    bound, cost = _priced(database, column, where, credits, delta, most)  # no data
    check_source(database.engine)
    read = database.engine.prepare_keys(bound.program)  # may refuse, free
    names = accounts(database.schema)
    entry = database.ledger.charge(  # durable before any row is touched
        question=bound.text,
        digest=bound.digest,
        noise=cost.noise,
        charges={names[number]: cost.loss for number in bound.accounts},
        share=cost.loss if bound.accounts else Loss.zero(),
        analyst=analyst,
        key=key,
    )
    if not entry.answered:
        total, shown = _drawn(read(), bound, cost)  # reads rows and draws
        check_read(database.engine)
        hold()
        entry = database.ledger.settle(entry, _packed(total, shown))  # stored, write-once
    assert entry.values is not None  # noqa: S101
    total, shown = _unpacked(entry.values)
    unit = bound.fine_unit
    return Keys(
        bound.program.column,
        tuple(text for text, _ in shown),
        tuple(noisy / unit for _, noisy in shown),
        total / unit,
        cost.threshold / unit,
        entry.share_charged.credits_fraction,
        cost.delta if entry.share_charged.credits else Fraction(0),
        entry.receipt,
        cost.law,
        unit,
        "; ".join(bound.notes),
    )


def _priced(
    database: Database,
    column: object,
    where: Expression | None,
    credits: Credits | None,
    delta: Credits | None,
    most: int,
) -> tuple[BoundKeys, KeysPrice]:
    # M.9 divides the credits of a table with exact release, but not its extra delta
    if database._exactly.assumptions is not None:
        raise Refused(
            "keys that nobody declared are not shown on a table with exact release: its extra delta"
            " would not cover them; declare the values"
        )
    calibration, schema = database.calibration, database.schema
    neighbours, grid = database.promise.neighbours, noise_grid(calibration)
    bound = bind_keys(column, where, most, schema, neighbours, grid)
    spend = None if credits is None else positive(credits, "credits")
    extra = None if delta is None else positive(delta, "delta")
    return bound, keys_price(calibration, schema.max_rows, bound.fine_unit, spend, extra)


def _drawn(
    batches: Iterator[list[tuple[str, int]]], bound: BoundKeys, cost: KeysPrice
) -> tuple[int, list[tuple[str, int]]]:
    """The noisy total, and what is shown; a batch of exact counts is held at a time."""
    total = 0

    def reaching() -> Iterator[tuple[int, str]]:
        nonlocal total
        for batch in batches:
            counts = [count * bound.fine_unit for _, count in batch]
            total += sum(counts)
            noisy = add_fresh_noise(counts, [cost.law] * len(counts))
            for (text, _), value in zip(batch, noisy, strict=True):
                if value >= cost.threshold:
                    yield -value, text

    first = heapq.nsmallest(bound.most, reaching())  # by count, then by key: the engine's order
    return add_fresh_noise([total], [cost.law])[0], [(text, -value) for value, text in first]


def _packed(total: int, shown: list[tuple[str, int]]) -> list[int]:
    """As the ledger stores it: integers. A key is the number that its UTF-8 bytes spell."""
    pairs = [(int.from_bytes(b"\x01" + text.encode()), noisy) for text, noisy in shown]
    return [total, *(number for pair in pairs for number in pair)]


def _unpacked(values: tuple[int, ...]) -> tuple[int, list[tuple[str, int]]]:
    texts = [
        number.to_bytes((number.bit_length() + 7) // 8)[1:].decode() for number in values[1::2]
    ]
    return values[0], list(zip(texts, values[2::2], strict=True))
