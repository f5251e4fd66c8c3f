"""Clocks are tested on a clock that only the oracle moves; the database is measured, not judged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from tests.attacks.broken import WATCH, CountingSampler, Spinning, Textbook, broken
from tests.attacks.sandbox import honest

from sulq.attacks.side_channels import rank_correlation, sampling, spinning, timing
from sulq.kernel.schema.promise import Promise

PROMISE = Promise(1, queries=100)


@pytest.mark.slow
def test_a_spinning_predicate_is_caught() -> None:
    finding = spinning(broken(Spinning, PROMISE), pairs=3, asks=10, clock=WATCH)
    assert finding.reached > 0.9
    assert finding.broken


@pytest.mark.slow
def test_a_steady_oracle_is_not() -> None:
    finding = spinning(broken(Textbook, PROMISE), pairs=3, asks=10, clock=WATCH)
    assert finding.reached == 0.5
    assert not finding.broken


class SlowerLater(Textbook):
    """The later a table is published, the slower it is: no secret's doing."""

    published = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        SlowerLater.published += 1
        self.delay = 0.001 * SlowerLater.published

    def noise(self, scale: float, shape: tuple[int, ...]) -> Any:
        WATCH.seconds += self.delay
        return super().noise(scale, shape)


def test_the_order_of_publishing_is_not_mistaken_for_a_secret() -> None:
    finding = spinning(broken(SlowerLater, PROMISE), pairs=4, asks=4, clock=WATCH)
    assert finding.reached == 0.5
    assert finding.error > 0.25  # two pairs say yes and two say no
    assert not finding.broken


def test_a_sampler_that_counts_is_caught() -> None:
    finding = sampling(broken(CountingSampler, PROMISE), asks=50, clock=WATCH)
    assert finding.reached > 0.95
    assert finding.broken
    assert not sampling(broken(Textbook, PROMISE), asks=50, clock=WATCH).broken


def test_the_database_is_measured_and_its_findings_say_what_is_missing() -> None:
    for finding in timing(honest(PROMISE), pairs=2, asks=3):
        assert 0 <= finding.reached <= 1
        assert finding.error > 0
        assert "clock" in finding.note
        assert finding.trials == 6


def test_coarse_laws_run_out_of_questions_and_the_clock_still_runs() -> None:
    few = Promise(1, "1e-6", queries=3, noise="binomial")
    reply, noise = timing(honest(few), pairs=2, asks=4)
    assert reply.trials == 8
    assert noise.trials == 3


@pytest.mark.parametrize("ties", [False, True])
def test_rank_correlation_is_spearman_s(ties: bool) -> None:
    random = np.random.default_rng(3)
    left = random.integers(0, 5 if ties else 10**9, 200).astype(float)
    right = left + random.normal(0, 3 if ties else 10**9, 200).round(0 if ties else 9)
    assert rank_correlation(left, right) == pytest.approx(spearmanr(left, right).statistic)
    assert rank_correlation(left, np.ones(200)) == 0
