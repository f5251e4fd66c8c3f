"""Releases made elsewhere about the same people, booked here: docs/guides/same-people.md."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from sulq.accounting.calibration import Calibration, calibrate
from sulq.accounting.losses import Loss
from sulq.accounting.outside import NONE, Taken, check_currency, outside_price
from sulq.database.amendments import scale
from sulq.database.populations import population_of
from sulq.errors import InvalidQuery
from sulq.ledger.changes import Outside
from sulq.ledger.changing import Price
from sulq.schema.promise import Numeric, exact_number

if TYPE_CHECKING:
    from sulq.database.database import Database


def charge_outside(
    database: Database,
    credits: Numeric | None = None,
    *,
    epsilon: Numeric | None = None,
    delta: Numeric = 0,
    reason: str,
) -> Outside:
    """Book a release about the same people that was made elsewhere, beyond the cap too.

    Give its (epsilon, delta), for the neighbours and the unit of this table; or credits, where it
    was answered with noise of this table's kind.
    """
    if (credits is None) == (epsilon is None):
        raise InvalidQuery("an outside release costs credits=... or epsilon=..., one of them")
    if not isinstance(reason, str) or not reason.strip():
        raise InvalidQuery("say which release it was, reason=...: it is kept in the ledger")
    calibration = database.calibration
    check_currency(calibration)
    taken = exact_number("delta", delta)
    stated = None if epsilon is None else exact_number("epsilon", epsilon)
    given = Fraction(0) if credits is None else exact_number("credits", credits)
    if given < 0:
        raise InvalidQuery(f"got credits={credits!r}, wanted a number of at least 0")
    if not (given or stated or taken):
        raise InvalidQuery("a release that costs nothing needs no entry")
    outside_price(stated or Fraction(0), taken, NONE, calibration)  # refused before anything else

    def priced(terms: Calibration, worth: Fraction) -> Price:
        """In the currency of `terms`, in which a credit of this table is `worth`."""

        def price(before: Taken) -> Outside:
            found = outside_price(stated or Fraction(0), taken, before, terms)
            stands = Loss.of(found.stands)
            lost = Loss.of(given * worth + found.credits)
            return Outside(stated, taken, lost + stands, stands.credits, found.taken, reason)

        return price

    joint = None
    if (population := population_of(database.ledger.header.facts)) is not None:
        terms = calibrate(population.promise)
        joint = priced(terms, scale(calibration, terms)[0])
    return database.ledger.outside(priced(calibration, Fraction(1)), joint)
