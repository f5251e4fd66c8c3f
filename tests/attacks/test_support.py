"""Floats that give the secret away, and a lattice that does not."""

from __future__ import annotations

import numpy as np
import pytest
from tests.attacks.broken import FloatNoise, Textbook, broken
from tests.attacks.sandbox import honest

from sulq.attacks.side_channels import by_logarithm, support
from sulq.kernel.schema.promise import Promise

TENTH = Promise("0.1", queries=1)
SURE = 5.0
"""Standard errors: an honest oracle at the bound passes this once in three million runs."""


@pytest.mark.slow
def test_numpy_s_floats_give_nine_bits_in_ten_away() -> None:
    """Reference: 0.91 from one answer at epsilon 0.1, where 0.525 is possible."""
    finding = support(broken(FloatNoise, TENTH), rows=40_000)
    assert finding.bound == pytest.approx(0.525, abs=1e-3)
    assert finding.reached >= 0.9
    assert finding.broken
    assert "log" in finding.note


def test_the_same_noise_on_a_lattice_gives_nothing_away() -> None:
    finding = support(broken(Textbook, TENTH), rows=20_000)
    assert finding.reached <= finding.bound + SURE * finding.error


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "promise",
    [
        TENTH,
        Promise(1, queries=1),
        Promise("0.5", "1e-6", queries=1),
        Promise(1, "1e-6", queries=1, noise="binomial"),
        Promise(1, "1e-6", queries=1, noise="huber"),
    ],
    ids=str,
)
def test_the_database_s_answers_lie_on_one_lattice(promise: Promise) -> None:
    finding = support(honest(promise), rows=4_000)
    assert finding.reached <= finding.bound + SURE * finding.error
    with_it, without = (part.split()[0] for part in finding.note.split("2^")[-2:])
    assert with_it == without


def test_every_answer_is_possible_with_its_own_bit() -> None:
    """The trace knows numpy's sampler to the last bit: the true value is never far off."""
    random = np.random.default_rng(2)
    bits = random.integers(0, 2, 4_000).astype(bool)
    cells = by_logarithm(bits + random.laplace(0, 10, 4_000), 10.0, "numpy's k").cells
    wrong = np.concatenate([cells[bits] == 0, cells[~bits] == 2])  # more ways from the other
    assert wrong.mean() < 0.005
    assert 0.75 < np.mean(cells != 1) < 0.85  # the other is, four times in five
