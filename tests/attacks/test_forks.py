"""Workers made by fork must not draw the noise of their siblings."""

from __future__ import annotations

import os

import pytest
from tests.attacks.broken import SeededInForks, Textbook, broken
from tests.attacks.sandbox import honest

from sulq.attacks.concurrency import forks
from sulq.errors import Refused
from sulq.kernel.schema.promise import Promise

PROMISE = Promise(1, queries=100)
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


def test_a_seeded_generator_is_caught() -> None:
    finding = forks(broken(SeededInForks, PROMISE), workers=3)
    assert finding.reached == 1
    assert finding.broken


class Reseeded(Textbook):
    """Draws from the system after a fork."""

    def noise(self, scale, shape):  # type: ignore[no-untyped-def]
        self.random.bit_generator.state = type(self.random.bit_generator)().state
        return super().noise(scale, shape)


def test_fresh_noise_in_every_worker_passes() -> None:
    finding = forks(broken(Reseeded, PROMISE), workers=3)
    assert (finding.reached, finding.note) == (0, "")
    assert not finding.broken


def test_the_database_refuses_to_work_in_a_child() -> None:
    finding = forks(honest(PROMISE), workers=3)
    assert not finding.broken
    assert finding.trials == 3
    assert "3 of 3 workers refused" in finding.note


class Silent(Textbook):
    def answer(self, bound, due):  # type: ignore[no-untyped-def]
        raise Refused("not here")


def test_who_refuses_the_parent_too_has_defended_nothing() -> None:
    with pytest.raises(Refused, match="not here"):
        forks(broken(Silent, PROMISE), workers=2)
