"""Busy servers and missed ticks tell nothing of one row; and the measurement has power."""

from __future__ import annotations

import numpy as np
import pytest
from tests.attacks.channels import SURE, judged, missed, polled

from sulq.database.table import PlainReader


def test_coins_are_no_finding_and_a_shift_is() -> None:
    rng = np.random.default_rng(2)
    places, noise = rng.integers(0, 2, 3_000), rng.normal(size=(2, 3_000))
    assert judged(noise, places, 0.0, 0.0).chance > SURE
    told = judged(noise + 0.5 * places, places, 0.0, 0.0)
    assert told.judged == 2_000 and told.chance < SURE and 0.55 < told.share < 0.65


@pytest.mark.slow
def test_polling_a_free_route_tells_nothing_of_one_row() -> None:
    assert polled(3_000).chance > SURE


class Computing:
    """An engine that computes for 40 ms at a row: what no engine does."""

    def __init__(self, engine) -> None:  # type: ignore[no-untyped-def]
        self._engine = engine

    def __getattr__(self, name):  # type: ignore[no-untyped-def]
        return getattr(self._engine, name)

    def prepare(self, program):  # type: ignore[no-untyped-def]
        read = self._engine.prepare(program)

        def slower() -> list[int]:
            for number in range(1_000_000):
                hash(number)
            return read()  # type: ignore[no-any-return]

        return slower


@pytest.mark.slow
def test_a_poller_would_see_an_engine_that_computes_at_a_row() -> None:
    def slower(database) -> None:  # type: ignore[no-untyped-def]
        database.reader = PlainReader(Computing(database.engine))

    assert polled(600, slower).chance < SURE


@pytest.mark.slow
def test_missed_ticks_tell_nothing_of_a_slow_row() -> None:
    assert missed(3_000).chance > SURE
