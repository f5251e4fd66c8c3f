"""An Oracle that spends from credits set aside for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sulq.accounting.losses import Loss
from sulq.accounting.pricing import positive
from sulq.database.analyst import Analyst
from sulq.oracle import credits_text

if TYPE_CHECKING:
    from sulq.database.database import Credits, Database


@dataclass(frozen=True, slots=True)
class Reserved(Analyst):
    """`database` here is the same table on a ledger view that charges the reservation.

    Nobody else can take what is left of it. At the end of `with`, or with `close`, the rest goes
    back; after a crash it does so when the ledger is next opened.
    """

    def close(self) -> None:
        """Give back what is left; asking through this is refused from now on."""
        self.database.ledger.close()

    def __enter__(self) -> Reserved:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Reserved {credits_text(self.remaining)} for {self.name}>"


def reserve(database: Database, credits: Credits, analyst: str) -> Reserved:
    """Set credits aside: out of an analyst's share, or for the owner out of what is not granted.

    Half of the slack goes along in proportion, as with a grant.
    """
    amount = positive(credits, "credits")
    slack = database.calibration.slack_cap * amount / (2 * database.calibration.credits)
    ledger = database.ledger.reserve(analyst, Loss.cap(amount, slack))
    view = type(database)(
        database.schema,
        database.promise,
        database.engine,
        ledger,
        database.calibration,
        database._exactly.assumptions,
    )
    view._recall = database._recall  # one answer store: what is asked here is known there
    return Reserved(view, analyst)
