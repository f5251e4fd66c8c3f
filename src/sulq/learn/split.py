"""The spread of rows whose columns live with several owners: sums first, then products. V.1"""

from __future__ import annotations

import numpy as np

from sulq.learn.moments import find_centre
from sulq.learn.spending import Plan, Purse, Step
from sulq.learn.spread import Spread
from sulq.learn.table import Table

CENTRE = 0.1


def split_plan(table: Table) -> Plan:
    """Nobody sees whole rows: no lengths, no clip."""
    steps = (Step("centre", CENTRE * table.share), Step("gram", (1 - CENTRE) * table.share))
    return Plan("sketches", steps)


def split_spread(table: Table, purse: Purse) -> Spread:
    """The products about the noisy mean; what its error adds to them is taken off."""
    centre = find_centre(table, purse)
    vector = table.features.as_vector(centre.mean)
    answer = purse.ask("gram", table.outer(vector, vector))
    found = np.asarray(answer.value, dtype=np.float64)
    second = (found + found.T) / 2 / table.rows
    # entries err differently: noise alone reaches 2 sqrt(the largest row of variances)
    widest = np.sqrt((np.asarray(answer.standard_error) ** 2).sum(axis=1).max())
    free = table.features.free
    covariance = free @ free.T @ second @ free @ free.T
    return Spread(
        centre.mean,
        centre.error,
        covariance - centre.error**2 * (free @ free.T),
        free,
        float(np.sqrt(2 / len(found)) * widest / table.rows),
        table.rows,
        table.features.radius(table.features.middle),
        length_squared=max(float(np.trace(covariance)), 0.0),
    )
