"""Counts by keys that nobody declared, and figures of those that are shown. M.1, P.4

Noise is drawn for the keys that occur, and a key is shown if its noisy count reaches a threshold;
how many were held back is never said. Proof: docs/proofs/keys.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction

from sulq.answers.selections import Keys, KeysQuote, figure_errors, keys_of
from sulq.database.table import Table
from sulq.errors import Refused
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.accounting.mechanisms import KeysPrice, figures_price, keys_price
from sulq.kernel.accounting.pricing import noise_grid, positive
from sulq.kernel.ledger.budget import OWNER
from sulq.kernel.ledger.events import PricedRequest
from sulq.kernel.query.expressions import Expression
from sulq.kernel.release.release import UndeclaredKeys
from sulq.kernel.schema.columns import accounts
from sulq.kernel.schema.keys import BoundKeys, bind_keys, unpacked_keys

USUAL_MOST = 1_000
DOWN = Context(prec=1, rounding=ROUND_DOWN)
Credits = Fraction | int | float


def quote_keys(
    database: Table,
    column: object,
    *figures: object,
    where: Expression | None = None,
    credits: Credits | None = None,
    delta: Credits | None = None,
    most: int = USUAL_MOST,
    analyst: str = OWNER,
) -> KeysQuote:
    """Price, threshold and standard error; free, and no row is read."""
    bound, cost = _priced(database, column, figures, where, credits, delta, most)
    database.engine.prepare_keys(bound.program)  # what `ask_keys` would refuse
    unit = bound.fine_unit
    error = cost.law.standard_deviation() / unit
    own = tuple(figure_errors(figure, cost) for figure in bound.figures)
    paid = database.ledger.paid(analyst, bound.digest, cost.noise)  # one's own answers only
    names = accounts(database.schema)
    left = database.ledger.remaining(analyst, [names[number] for number in bound.accounts])
    if paid:
        now = left.credits_fraction
        return KeysQuote(
            Fraction(0), Fraction(0), cost.threshold / unit, error, now, True, True, figures=own
        )
    due = cost.loss.credits_fraction
    return KeysQuote(
        due,
        cost.delta,
        cost.threshold / unit,
        error,
        left.credits_fraction - due,
        cost.loss.within(left),
        note=_lacking(cost, left),
        figures=own,
    )


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
        f"{said} less: `keys` with a `delta` of {less:.0e} can be paid, with a higher threshold;"
        " or ask the owner for a larger share"
    )


def ask_keys(
    database: Table,
    column: object,
    *figures: object,
    where: Expression | None = None,
    credits: Credits | None = None,
    delta: Credits | None = None,
    most: int = USUAL_MOST,
    analyst: str = OWNER,
    key: str | None = None,
) -> Keys:
    """The keys of an open column that many rows share, with noisy counts, and with `figures` of
    them, such as `total("cost")`: persons are counted then, where persons are protected.

    A pair of columns is one key. `delta` is taken from what the promise sets aside; without it, a
    hundredth of that. At most `most` keys are shown, those with the largest noisy counts.
    """
    bound, cost = _priced(database, column, figures, where, credits, delta, most)  # no data
    names = accounts(database.schema)
    due = PricedRequest(
        bound.text,
        bound.digest,
        cost.noise,
        {names[number]: loss for number, loss in cost.due(bound.accounts).items()},
        cost.loss if bound.accounts else Loss.zero(),
    )
    entry = database.release_one(UndeclaredKeys(bound, cost, due), analyst, key)
    assert entry.values is not None  # noqa: S101
    total, shown = unpacked_keys(entry.values, bound)
    paid = entry.share_charged.credits_fraction
    extra = cost.delta if entry.share_charged.credits else Fraction(0)
    size = database.size
    most_rows = None if size is None else size * database.schema.max_rows
    return keys_of(bound, cost, total, shown, most_rows, (paid, extra, entry.receipt))


def _priced(
    database: Table,
    column: object,
    figures: Sequence[object],
    where: Expression | None,
    credits: Credits | None,
    delta: Credits | None,
    most: int,
) -> tuple[BoundKeys, KeysPrice]:
    # M.9 divides the credits of a table with exact release, but not its extra delta
    if database.exact.assumptions is not None:
        raise Refused(
            "keys that nobody declared are not shown on a table with exact release: its extra delta"
            " would not cover them; declare the values"
        )
    calibration, schema = database.calibration, database.schema
    neighbours, grid = database.promise.neighbours, noise_grid(calibration)
    bound = bind_keys(column, where, most, schema, neighbours, grid, figures)
    spend = None if credits is None else positive(credits, "credits")
    extra = None if delta is None else positive(delta, "delta")
    if not bound.with_figures:
        return bound, keys_price(calibration, schema.max_rows, bound.fine_unit, spend, extra)
    units = [term.fine_unit for term in bound.terms]
    terms = (calibration, schema.max_rows, bound.fine_unit, units, bound.reach)
    return bound, figures_price(*terms, spend, extra)
