"""Error bars tell the truth: intervals hold as often as they say, under the exact noise law.

Each check draws the noise 4,000 times at known sums. By the binomial law a true interval holds less
often than it says by `slack` with probability 1e-6: that is the false-alarm rate.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from sulq.answers.distribution import rising
from sulq.answers.statistics import cdf, count, histogram, mean, quantiles, read, total, variance
from sulq.kernel.noise.intervals import z_of
from sulq.kernel.noise.laws import DiscreteGaussian, DiscreteLaplace, Law
from sulq.kernel.noise.sampler import add_fresh_noise
from sulq.kernel.query.expressions import col
from sulq.kernel.query.sum_query import Statistic
from sulq.kernel.schema.bind import bind
from sulq.kernel.schema.columns import Category, Flag, Number, Schema

SCHEMA = Schema(Number("x", 0, 100, step=1), Flag("f"), Category("c", ["a", "b", "c"]))
DRAWS = 4_000


def hits(
    question: Statistic, sums: list[int], truth: float, sd: float, confidence: float, noise: str
) -> float:
    """How often the interval covers the truth."""
    bound = bind(question, SCHEMA)
    laws: tuple[Law, ...] = tuple(
        DiscreteGaussian(sd**2 * term.fine_unit**2)  # type: ignore[arg-type]
        if noise == "gaussian"
        else DiscreteLaplace(sd * term.fine_unit)  # type: ignore[arg-type]
        for term in bound.terms
    )
    lifted = bound.lifted(sums)
    flat = [law for _ in range(DRAWS) for law in laws]
    drawn = add_fresh_noise(lifted * DRAWS, flat)
    width, covered = len(laws), 0
    for place in range(DRAWS):
        reading = read(bound, drawn[place * width : (place + 1) * width], laws, None)
        low, high = reading.interval(confidence)
        covered += bool(low <= truth <= high)
    return covered / DRAWS


def slack(confidence: float) -> float:
    """How far below its confidence the share of a true interval falls with a chance of 1e-6."""
    return float(confidence - (binom.ppf(1e-6, DRAWS, confidence) - 1) / DRAWS)


@pytest.mark.sample(5)
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("confidence", [0.5, 0.95])
@pytest.mark.parametrize(
    ("question", "sums", "truth"),
    [
        (count(where=col("f")), [1_000], 1_000),
        (total("x"), [40_000], 40_000),
        (mean("x", where=col("f")), [5_000, 5_000 * (30 - 50)], 30.0),
        (mean("x", where=col("f")), [5_000, 5_000 * (90 - 50)], 90.0),
    ],
)
def test_intervals_hold_as_often_as_they_say(
    question: Statistic, sums: list[int], truth: float, confidence: float, noise: str
) -> None:
    share = hits(question, sums, truth, 20, confidence, noise)
    assert share >= confidence - slack(confidence)
    if noise == "gaussian":
        assert share <= confidence + slack(confidence) + 0.02


def test_fieller_holds_when_the_count_is_near_its_noise() -> None:
    """60 rows at noise 20: the delta method would fail here."""
    share = hits(mean("x", where=col("f")), [60, 60 * 20], 70.0, 20, 0.95, "gaussian")
    assert share >= 0.95 - slack(0.95)


@pytest.mark.slow
def test_variance_interval_holds() -> None:
    # 4,000 rows, half at 20 and half at 60: mean 40, variance 400
    bound = bind(variance("x", where=col("f")), SCHEMA)
    middle = float(bound.terms[2].middle)
    centred, square = -10 * 4_000, (10**2 + 400) * 4_000
    sums = [4_000, centred, round((square - 4_000 * middle) / float(bound.terms[2].step))]
    share = hits(variance("x", where=col("f")), sums, 400.0, 20, 0.95, "gaussian")
    assert abs(share - 0.95) <= slack(0.95) + 0.02


def test_variance_is_not_biased_by_noise() -> None:
    """S0.8: the square of a noisy mean is too large by R/n^2; it is put back."""
    bound = bind(variance("x", where=col("f")), SCHEMA)
    laws = tuple(DiscreteGaussian(20**2 * term.fine_unit**2) for term in bound.terms)  # type: ignore[arg-type]
    sums = [
        400,
        -10 * 400,
        round((500 * 400 - 400 * float(bound.terms[2].middle)) / float(bound.terms[2].step)),
    ]
    lifted = bound.lifted(sums)
    values = []
    drawn = add_fresh_noise(lifted * DRAWS, list(laws) * DRAWS)
    for place in range(DRAWS):
        values.append(read(bound, drawn[3 * place : 3 * place + 3], laws, None).value)
    bias = (20 * 100 / 400) ** 2  # what leaving S0.8 out would add, 25
    spread = np.std(values) / math.sqrt(DRAWS)
    assert abs(np.mean(values) - 400) < 0.5 * bias + 5 * spread


def test_counts_are_raw_and_intervals_possible() -> None:
    bound = bind(count(where=col("f")), SCHEMA)
    law = DiscreteGaussian(100**2 * bound.terms[0].fine_unit ** 2)  # type: ignore[arg-type]
    reading = read(bound, bound.lifted([-50]), (law,), 1_000)
    assert reading.value == -50
    assert reading.interval(0.95)[0] == 0
    full = read(bound, bound.lifted([1_050]), (law,), 1_000)
    assert full.interval(0.95)[1] == 1_000
    far = read(bound, bound.lifted([-5_000]), (law,), 1_000)
    assert far.interval(0.95) == (0, 196)  # never one impossible point: as around 0


def test_a_mean_of_almost_nobody_is_the_whole_range() -> None:
    bound = bind(mean("x", where=col("f")), SCHEMA)
    laws = tuple(DiscreteGaussian(100**2 * term.fine_unit**2) for term in bound.terms)  # type: ignore[arg-type]
    for counted in (-30, 0, 5):
        reading = read(bound, bound.lifted([counted, 1_000]), laws, None)
        assert reading.interval(0.95) == (0.0, 100.0)
        assert 0 <= reading.value <= 100


def test_rising_is_the_nearest_rising_sequence() -> None:
    assert rising(np.array([3.0, 1.0, 2.0])).tolist() == [2.0, 2.0, 2.0]
    assert rising(np.array([1.0, 2.0, 3.0])).tolist() == [1.0, 2.0, 3.0]
    assert rising(np.array([1.0, 5.0, 3.0, 4.0])).tolist() == [1.0, 4.0, 4.0, 4.0]


def test_cdf_and_quantiles_without_noise_are_exact() -> None:
    bound = bind(cdf("x", edges=[0, 25, 50, 100]), SCHEMA)
    law = DiscreteGaussian(1)  # type: ignore[arg-type]
    reading = read(bound, bound.lifted([10, 20, 30]), (law,), 60)
    assert reading.value.tolist() == [0.0, 10.0, 30.0, 60.0]
    middle = bind(quantiles("x", [0.0, 0.5, 1.0]), SCHEMA)
    counts = [0] * middle.cells
    counts[40] = 100
    assert middle.tree is not None
    laws = (law,) * len(middle.terms)
    found = read(middle, middle.lifted(middle.tree.counts(counts)), laws, 100)
    assert found.value[1] == 40
    assert found.interval(0.95)[0][1] <= found.value[1] <= found.interval(0.95)[1][1]


def test_histograms_have_one_axis_per_column() -> None:
    bound = bind(histogram("c", "f"), SCHEMA)
    law = DiscreteGaussian(4)  # type: ignore[arg-type]
    reading = read(bound, bound.lifted([1, 2, 3, 4, 5, 6]), (law,), 100)
    assert reading.value.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert reading.keys == (("a", "b", "c"), (False, True))


def test_z_of_known_quantiles() -> None:
    assert z_of(0.95) == pytest.approx(1.959963985)
