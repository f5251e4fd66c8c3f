"""Is the noise small beside what sampling would cost anyway? Used before a table is published.

Proofs: docs/proofs/accounting.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sulq.errors import InvalidQuery
from sulq.kernel.accounting.calibration import calibrate
from sulq.kernel.schema.promise import Promise

RARE = 0.01
NORMAL_95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Sizing:
    """One count of a table with `rows` rows, beside the error of the rows being a sample.

    `subset` is the size of the random subset whose exact answer, scaled up, is as uncertain as
    the noisy answer of the whole table.
    """

    rows: int
    standard_error: float
    bar: float
    sampling_error: float
    sampling_error_rare: float
    subset: int

    @property
    def noise_is_smaller(self) -> bool:
        """R < n p (1 - p) at p = 1/2; `noise_is_smaller_when_rare` at p = 0.01. S0.11"""
        return self.standard_error < self.sampling_error

    @property
    def noise_is_smaller_when_rare(self) -> bool:
        return self.standard_error < self.sampling_error_rare


def sizing(promise: Promise, rows: int) -> Sizing:
    """What a plain count will look like under `promise` on a table of `rows` rows."""
    if rows < 2:
        raise InvalidQuery(f"got {rows} rows, wanted at least 2")
    calibration = calibrate(promise)
    variance = calibration.unit_standard_deviation**2
    error = math.sqrt(variance)
    return Sizing(
        rows,
        error,
        calibration.unit_bar,
        math.sqrt(sampling_variance(rows, 0.5)),
        math.sqrt(sampling_variance(rows, RARE)),
        equal_subset(rows, variance),
    )


def sampling_variance(rows: int, share: float) -> float:
    """n p (1 - p): the variance of a count when the rows are themselves a sample. S0.11"""
    return rows * share * (1 - share)


def subset_error(rows: int, subset: int, share: float = 0.5) -> float:
    """Standard error of a count estimated from `subset` of `rows` rows, drawn at random. S4.3

    n sqrt(p (1-p) / m * (n-m) / (n-1)): without replacement, so 0 when the subset is all.
    """
    return rows * math.sqrt(share * (1 - share) / subset * (rows - subset) / (rows - 1))


def equal_subset(rows: int, variance: float, share: float = 0.5) -> int:
    """The subset size m at which subset_error(rows, m, share)^2 falls to `variance`. S4.3"""
    whole = rows**2 * share * (1 - share)
    return math.ceil(rows * whole / (variance * (rows - 1) + whole))
