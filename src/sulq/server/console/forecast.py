"""When credits run out at the pace of late: past days drawn again, with a band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

WINDOW = 30
LEAST_DAYS = 7
PATHS = 400
HORIZON = 3_650
"""Days that are looked ahead; what lasts longer has no date."""
BAND = (10, 50, 90)


@dataclass(frozen=True, slots=True)
class Forecast:
    """Days from now until nothing is left: early, middle, late; None: beyond the horizon."""

    early: float | None
    middle: float | None
    late: float | None
    pace: float


def daily(times: Sequence[int], amounts: Sequence[float], opened: int, now: float) -> list[float]:
    """What each of the last days cost, the latest first; as many as there were, at most 30."""
    days = min(WINDOW, int((now - opened) // 86_400))
    spent = [0.0] * days
    for at, amount in zip(times, amounts, strict=True):
        place = int((now - at) // 86_400)
        if 0 <= place < days:
            spent[place] += amount
    return spent


def forecast(spent: Sequence[float], left: float, seed: int = 0) -> Forecast | None:
    """Resampled days until `left` is gone, 80 % of them between early and late; None: too early."""
    if len(spent) < LEAST_DAYS or left <= 0:
        return None
    pace = float(np.mean(spent))
    if pace <= 0:
        return Forecast(None, None, None, 0.0)
    days = int(min(HORIZON, 20 + 6 * left / pace))
    drawn = np.random.default_rng(seed).choice(np.asarray(spent, dtype=np.float64), (PATHS, days))
    gone = np.cumsum(drawn, axis=1) >= left
    ends = np.where(gone.any(axis=1), gone.argmax(axis=1) + 1.0, np.inf)
    found = [float(np.percentile(ends, at, method="nearest")) for at in BAND]
    early, middle, late = (None if np.isinf(end) else end for end in found)
    return Forecast(early, middle, late, pace)
