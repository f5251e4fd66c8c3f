"""What an attacker faces: fictional tables, published anew as often as needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sulq.answers.oracle import Oracle
from sulq.kernel.schema.promise import Promise

Bits = NDArray[np.bool_]
ROW = "row"
"""The public number of a row, 0 to n-1."""
SECRET = "secret"  # noqa: S105 - a column, not a password
"""One private flag a row: what is to be found out."""


@dataclass(frozen=True, slots=True)
class Target:
    """How to publish a table of rows (ROW, SECRET) under the promise that is attacked.

    `publish(secrets)` gives an Oracle on a new table with a new ledger; `analysts(oracle, k)`
    gives k Oracles on that same table, in the names of k analysts with equal shares of all of it.
    """

    promise: Promise
    rows: int
    publish: Callable[[Bits], Oracle]
    analysts: Callable[[Oracle, int], Sequence[Oracle]]

    def secrets(self, seed: int, rows: int | None = None) -> Bits:
        """Fair bits, one for each row."""
        fair = np.random.default_rng(seed).integers(0, 2, rows or self.rows)
        return fair.astype(np.bool_)
