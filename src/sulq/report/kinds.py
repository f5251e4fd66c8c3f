"""What was asked, by kind: read off the canonical texts that the ledger keeps."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

from sulq.accounting.losses import Loss

DERIVED = '{"derived":'


class Asked(NamedTuple):
    """One charge: what kind of question, and what the account that paid most paid."""

    kind: str
    credits: Fraction


def asked(question: str, noise: str, losses: Iterable[Loss]) -> Asked:
    """A charge of the ledger, as the report counts it."""
    most = max((loss.credits_fraction for loss in losses), default=Fraction(0))
    return Asked(kind_of(question, noise), most)


def kind_of(question: str, noise: str) -> str:
    form = json.loads(question)
    if noise.startswith(DERIVED):
        return "Free: followed from earlier answers"
    if '"guarantee"' in noise:
        return "Released under assumptions"
    for key, kind in (
        ("keys", "Keys that nobody declared"),
        ("top", "Largest cells, names only"),
        ("alert", "Alerts"),
        ("outer", "Learning: matrices of sums"),
    ):
        if key in form:
            return kind
    groups = form.get("groups") or []
    if any(isinstance(group, Mapping) and group.get("tree") for group in groups):
        return "Distributions and quantiles"
    if groups:
        return "Histograms"
    terms = form.get("terms") or []
    if len(terms) > 1:
        return "Averages and spreads"
    return "Counts" if terms and terms[0][0] == "num" else "Totals"


def by_kind(charges: Iterable[Asked]) -> list[tuple[str, int, Fraction]]:
    """Kind, how many, and credits of the accounts that paid most; the dearest first."""
    found: dict[str, tuple[int, Fraction]] = {}
    for charge in charges:
        count, credits = found.get(charge.kind, (0, Fraction(0)))
        found[charge.kind] = count + 1, credits + charge.credits
    lines = [(kind, count, credits) for kind, (count, credits) in found.items()]
    return sorted(lines, key=lambda line: (-line[2], -line[1], line[0]))
