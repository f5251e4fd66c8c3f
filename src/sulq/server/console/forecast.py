"""When credits run out at the pace of late: past days come again, with a band."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

WINDOW = 30
LEAST_DAYS = 7
HORIZON = 3_650
"""Days that are looked ahead; what lasts longer has no date."""
Z_BAND = 1.2816
"""Four of five lie within so many deviations."""
NEAR = 1e-9


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


def forecast(spent: Sequence[float], left: float) -> Forecast | None:
    """Days until `left` is gone if past days come again at random, 80 % of them between early and
    late; None: too early. The sum of n such days is near normal: n m + z s sqrt(n) = left."""
    if len(spent) < LEAST_DAYS or left <= 0:
        return None
    mean, spread = fmean(spent), pstdev(spent)
    if mean <= 0:
        return Forecast(None, None, None, 0.0)
    least = math.ceil(left / max(spent) - NEAR)
    found: list[float | None] = []
    for z in (Z_BAND, 0.0, -Z_BAND):
        root = (math.hypot(z * spread, 2 * math.sqrt(mean * left)) - z * spread) / (2 * mean)
        days = max(least, math.ceil(root**2 - NEAR))
        found.append(None if days > HORIZON else float(days))
    return Forecast(found[0], found[1], found[2], mean)
