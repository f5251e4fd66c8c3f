"""What was asked, by kind: read off the canonical texts that the ledger keeps."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from sulq.kernel.accounting.loss import Loss
from sulq.kernel.query.sql_text import kind_of


class AskedKind(NamedTuple):
    """One charge: what kind of question, and what the account that paid most paid."""

    kind: str
    credits: Fraction


def asked(question: str, noise: str, losses: Iterable[Loss]) -> AskedKind:
    """A charge of the ledger, as the report counts it."""
    most = max((loss.credits_fraction for loss in losses), default=Fraction(0))
    return AskedKind(kind_of(question, noise), most)


def by_kind(charges: Iterable[AskedKind]) -> list[tuple[str, int, Fraction]]:
    """Kind, how many, and credits of the accounts that paid most; the dearest first."""
    found: dict[str, tuple[int, Fraction]] = {}
    for charge in charges:
        count, credits = found.get(charge.kind, (0, Fraction(0)))
        found[charge.kind] = count + 1, credits + charge.credits
    lines = [(kind, count, credits) for kind, (count, credits) in found.items()]
    return sorted(lines, key=lambda line: (-line[2], -line[1], line[0]))
