"""Replies after a random delay: the table that charges for it, and the draw. S4.5"""

from __future__ import annotations

from sulq.database.table import T
from sulq.errors import Refused
from sulq.kernel.accounting.mechanisms import Delay, timed
from sulq.kernel.noise.laws import DiscreteGaussian
from sulq.kernel.noise.sampler import draw_noise


def delayed(database: T, delay: Delay) -> T:
    """The same table on the same ledger; what reads rows pays for the time of its reply too.

    Every row is read for every question, so the time of a reply is everybody's: with strata it
    would have to be charged to accounts that the question does not touch.
    """
    database.reader.check_covered("a random delay")
    if len(database.ledger.header.accounts) > 1:
        raise Refused("a random delay is charged to everybody: not with public strata; use a clock")
    if database.exact.assumptions is not None:
        raise Refused("exact answers pay nothing, so nothing pays for their delay; use a clock")
    return database.with_(calibration=timed(database.calibration, delay))


def draw_delay(delay: Delay) -> float:
    """Seconds: the mean and a fresh draw, and never less than 0."""
    (steps,) = draw_noise([DiscreteGaussian(delay.grid_variance)])
    return float(max(0, delay.mean_steps + steps) * delay.step)
