"""A fictional table on a real database, published anew in memory as often as needed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sulq.answers.oracle import Oracle
from sulq.attacks.target import ROW, SECRET, Bits, Target
from sulq.database import Database
from sulq.kernel.schema.columns import Flag, Number, Schema
from sulq.kernel.schema.promise import Promise


def database(secrets: Bits, promise: Promise) -> Database:
    rows = len(secrets)
    schema = Schema(Number(ROW, 0, rows - 1, step=1, public=True), Flag(SECRET))
    table = pa.table({ROW: np.arange(rows), SECRET: secrets})
    return Database.open(table, schema, promise, ":memory:")


def honest(promise: Promise, rows: int = 64) -> Target:
    """The product itself, as a target."""

    def publish(secrets: Bits) -> Oracle:
        return database(secrets, promise)

    def analysts(oracle: Oracle, number: int) -> Sequence[Oracle]:
        return [oracle] * number

    return Target(promise, rows, publish, analysts)
