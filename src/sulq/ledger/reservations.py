"""Credits set aside: out of an analyst's share, or by the owner out of what nobody was granted.

A reservation pays as a share does, question by question. What it has left when it ends goes back
where it came from. It lives no longer than the process that made it: the next opening of the
ledger ends it, or another replica. Proof: docs/proofs/ledger.md, section 8.
"""

from __future__ import annotations

from dataclasses import dataclass

from sulq.accounting.losses import Loss

NOTHING = Loss(0, 0)


@dataclass(slots=True)
class Reservation:
    """Set aside by one event, for whoever asks through it."""

    seq: int
    analyst: str
    amount: Loss
    at: int  # for display only
    spent: Loss = NOTHING
    replica: int | None = None  # whose it is, where several share the ledger

    @property
    def left(self) -> Loss:
        return less(self.amount, self.spent)

    def pay(self, analyst: str, share: Loss) -> None:
        """Book what was admitted; `ValueError` for what no honest writer books."""
        if analyst != self.analyst or not share.within(self.left):
            raise ValueError("spent from a reservation that does not have it")
        self.spent += share


def less(loss: Loss, other: Loss) -> Loss:
    """What is left of `loss`, never below nothing."""
    return Loss(max(0, loss.credits - other.credits), max(0, loss.delta - other.delta))
