"""A noisy choice: which cells have the largest sums. Names only. M.3

Proof: docs/proofs/choosing.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction

from sulq.answers.selections import Top
from sulq.answers.statistics import ranked
from sulq.database.table import Table
from sulq.errors import InvalidQuery
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.accounting.mechanisms import epsilon_for, noisy_choice, pure_losses
from sulq.kernel.accounting.pricing import positive
from sulq.kernel.ledger.budget import OWNER
from sulq.kernel.ledger.events import PricedRequest
from sulq.kernel.noise.laws import Geometric
from sulq.kernel.query.expressions import Expression
from sulq.kernel.query.sum_query import FORMAT, digest_of
from sulq.kernel.release.release import TopK
from sulq.kernel.schema.bind import BoundQuery
from sulq.kernel.schema.columns import accounts

MOST_DRAWS = 4_000_000
"""Of one choice: they are drawn before a row is read, so all are held at once."""
Credits = Fraction | int | float


def top_k(
    database: Table,
    of: Expression | str,
    *,
    by: object = None,
    k: int = 1,
    edges: Sequence[object] | None = None,
    credits: Credits | None = None,
    analyst: str = OWNER,
    key: str | None = None,
) -> Top:
    """The k cells of `of` with the largest `by` (a count or a total), the largest first.

    `credits` pay for all k choices, a k-th for each; 1 each if not given. Where replies are
    randomly delayed the reading of rows costs more (S4.5).
    """
    by_cell = ranked(of, by, edges)
    bound = database.bind(by_cell, fine=True)  # may refuse, free
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= bound.cells:
        raise InvalidQuery(f"k must be a whole number from 1 to {bound.cells} cells, got {k!r:.40}")
    spend = Fraction(k) if credits is None else positive(credits, "credits")
    rows_each = (bound.schema or database.schema).max_rows
    widths = [(_width(reach.l1, rows_each), numbers) for reach, numbers in bound.reach]
    if not any(width for width, _ in widths):
        raise InvalidQuery("these sums are public: ask for them, which is exact and free")
    losses = pure_losses(widths, spend, k, database.calibration)  # no data
    timing = database.calibration.timing  # S4.5
    law = noisy_choice(
        max(width for width, _ in widths) * bound.terms[0].fine_unit,
        epsilon_for(spend / k, database.calibration),
        one_way=_one_way(bound, database.promise.neighbours),
    )
    names = accounts(database.schema)
    form = {"sulq": FORMAT, "top": k, "of": json.loads(bound.text)}
    text = json.dumps(form, ensure_ascii=False, separators=(",", ":"))
    due = PricedRequest(
        text,
        digest_of(text),
        json.dumps([law.to_json()], sort_keys=True, separators=(",", ":")),
        {names[number]: loss + timing for loss, numbers in losses for number in numbers},
        Loss.of(spend) + timing,
    )
    told = database.ledger.paid(analyst, due.digest, due.noise)  # stored: nothing is drawn
    if k * bound.cells > MOST_DRAWS and not told:
        raise InvalidQuery(
            f"{k} choices among {bound.cells} cells are drawn at once, and at most {MOST_DRAWS:,}"
            " numbers are; choose fewer, or among fewer cells"
        )
    entry = database.release_one(TopK(bound, k, law, due), analyst, key)
    assert entry.values is not None  # noqa: S101
    axis = bound.groups[0]
    return Top(
        axis.name,
        tuple(axis.keys[index] for index in entry.values),
        _slack(law, bound, k),
        entry.share_charged.credits_fraction,
        entry.receipt,
        "; ".join(bound.notes),
        database.guarantee().get("terms", ""),
    )


def _width(l1: Fraction, rows_each: int) -> Fraction:
    """How far one person can move one cell, in units of the term: at most 1 a row."""
    return min(l1, Fraction(rows_each))


def _one_way(bound: BoundQuery, neighbours: str) -> bool:
    """Whether one person can only move all scores the same way: one of them, or only up. M.3"""
    if all(reach.coordinates <= 1 for reach, _ in bound.reach):
        return True
    term = bound.terms[0]
    return neighbours == "add-remove" and (term.low >= 0 or term.high <= 0)


def _slack(law: Geometric, bound: BoundQuery, k: int) -> float:
    """A t that no draw passes, but for 1 in 20: draws P(N >= t) <= 1/20."""
    scale = float(law.scale * bound.terms[0].fine_step)
    return scale * math.log(20 * bound.cells * k)
