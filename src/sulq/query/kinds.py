"""What sort of answer a charge bought: read off the canonical text that the ledger keeps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

DERIVED = '{"derived":'
KEYED = (
    ("keys", "Keys that nobody declared"),
    ("top", "Largest cells, names only"),
    ("alert", "Alerts"),
    ("share", "Shares of sums over several owners"),
    ("outer", "Learning: matrices of sums"),
)
LEARNING = KEYED[-1][1]


def kind_of(question: str, noise: str = "") -> str:
    """The kind of a stored question; the report and the pages count by it."""
    if noise.startswith(DERIVED):
        return "Free: followed from earlier answers"
    if '"guarantee"' in noise:
        return "Released under assumptions"
    form = json.loads(question)
    for key, kind in KEYED:
        if key in form:
            return kind
    terms, groups = form.get("terms") or [], form.get("groups") or []
    if any(isinstance(group, Mapping) and group.get("tree") for group in groups):
        return "Distributions and quantiles"
    if not all(map(_counts, terms)):
        return "Averages and spreads" if len(terms) > 1 else "Totals"
    return "Histograms" if groups else "Counts" if terms else "Totals"


def _counts(term: Any) -> bool:
    """True for 1, and for 1 or 0 by a condition."""
    if term[0] == "choose":
        return all(map(_counts, term[2:]))
    return bool(term[0] == "num")
