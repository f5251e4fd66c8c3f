"""Linear forms remember their draws; ratios and functions say no more than they know."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.errors import InvalidQuery
from sulq.kernel.noise.laws import DiscreteGaussian, DiscreteLaplace, NoNoise
from sulq.sql.evaluate.linear_forms import Estimate, Mix, Noisy, Ratio, ratio
from sulq.sql.evaluate.result import Stated, mean, power, product, root, variance

STEP = Fraction(1, 1 << 20)
GAUSS = DiscreteGaussian(Fraction(20 << 20) ** 2)
WEIGHTS = st.integers(-20, 20).map(float)


def draw(name: str, value: float, **limits: float) -> Noisy:
    return Noisy.draw(name, value, GAUSS, STEP, **limits)


@given(WEIGHTS, WEIGHTS, WEIGHTS, st.floats(-1e6, 1e6))
def test_linear_forms_know_what_they_share(a: float, b: float, c: float, value: float) -> None:
    x, y = draw("x", value), draw("y", 7.0)
    form = a * x + b * y - c * x + 3
    assert isinstance(form, Noisy)
    assert form.value == pytest.approx((a - c) * value + 7 * b + 3, abs=1e-6)
    assert form.standard_error == pytest.approx(20 * math.hypot(a - c, b), rel=1e-9)
    low, high = form.interval(0.95)
    assert high - low == pytest.approx(2 * 1.959964 * form.standard_error, rel=1e-5, abs=1e-5)


def test_a_number_less_itself_is_nothing() -> None:
    x = draw("x", 100)
    for zero in (x - x, (x + 5) - (x + 5), 2 * x - x - x, x / 2 - 0.5 * x):
        assert (zero.value, zero.standard_error, zero.interval(0.99)) == (0, 0, (0, 0))
        assert not zero.rests_on
    apart = draw("x", 100) - draw("another x", 100)
    assert apart.standard_error == pytest.approx(20 * math.sqrt(2))


def test_one_draw_has_its_own_law() -> None:
    coarse = Noisy.draw("n", 40, DiscreteLaplace(Fraction(3)), 1)
    half = DiscreteLaplace(Fraction(3)).half_width(0.95)
    assert coarse.interval(0.95) == (40 - half, 40 + half)
    assert Noisy.draw("n", 40, NoNoise(), 1).interval(0.95) == (40, 40)


def test_what_is_possible_cuts_the_interval_not_the_value() -> None:
    count = draw("n", -30, low=0, high=1_000)
    assert count.value == -30
    assert count.interval(0.95)[0] == 0
    low, high = draw("n", -3_000, low=0).interval(0.95)  # as wide as around 0: no point
    assert low == 0 and high == draw("n", 0, low=0).interval(0.95)[1] > 30
    both = count + draw("m", 990, low=0, high=1_000)
    assert both.possible == (0, 2_000)
    assert (-1 * count).possible == (-1_000, 0)


def test_ratios_without_a_clear_denominator_are_the_possible_range() -> None:
    top, n = draw("s", 15), draw("n", 30, low=0)
    unclear = ratio(top, n, low=0, high=1)
    assert unclear.interval(0.95) == (0, 1)
    assert unclear.note == "too few rows match to tell"
    assert unclear.interval(0.5) != (0, 1)
    gone = ratio(top, draw("n", -30, low=0), low=0, high=1)
    assert (gone.value, gone.interval(0.5), gone.standard_error) == (0.5, (0, 1), None)
    boundless = ratio(top, draw("n", -30, low=0))
    assert math.isnan(boundless.value)
    assert boundless.interval() == (-math.inf, math.inf)
    clear = ratio(draw("s", 500), draw("n", 1_000), low=0, high=1)
    assert clear.note == ""
    assert clear.standard_error == pytest.approx(20 * math.hypot(1, 0.5) / 1_000)


def test_a_part_of_a_whole_is_between_nothing_and_all() -> None:
    a, b = draw("a", 30, low=0), draw("b", 40, low=0)
    assert (a / (a + b)).possible == (0, 1)
    assert (a / (a + b + 5)).possible == (0, 1)
    assert (a / b).possible == (0, math.inf)
    assert (a / (a + b - 5)).possible == (-math.inf, math.inf)
    assert (2 * a / (a + b)).possible == (0, math.inf)
    assert (a / (a + draw("c", 9))).possible == (-math.inf, math.inf)
    cut = Noisy((a + b - 5).number, (a + b - 5).draws, (0, math.inf))  # its constant is not known
    assert (a / cut).possible == (0, math.inf)


def test_fieller_by_hand() -> None:
    """(100 - t 200)^2 = z^2 20^2 (1 + t^2)."""
    low, high = ratio(draw("s", 100), draw("n", 200)).interval(0.95)
    for t in (low, high):
        assert abs(100 - 200 * t) == pytest.approx(1.959964 * 20 * math.hypot(1, t), rel=1e-5)
    assert low < 0.5 < high


def test_search_and_roots_agree() -> None:
    """A speck of Laplace noise beside Gaussians sends the same ratio through the search."""
    speck = Noisy.draw("speck", 0, DiscreteLaplace(Fraction(1)), Fraction(1, 1 << 40))
    top, n = draw("s", 300), draw("n", 200)
    exact, searched = (ratio(x, n).interval(0.95) for x in (top, top + speck))
    assert searched == pytest.approx(exact, rel=1e-3)


def test_ratios_stay_one_ratio_where_they_can() -> None:
    n, a, b = draw("n", 900), draw("a", 300), draw("b", 500)
    shifted = mean(n, a, 50, 0, 100)
    assert shifted.value == pytest.approx(50 + 1 / 3)
    assert isinstance(a / n - b / n, Ratio)
    assert (a / n - b / n).interval() == pytest.approx(ratio(a - b, n).interval())
    assert ((a / n) / (b / n)).interval() == pytest.approx(ratio(a, b).interval())
    assert (1 / (a / n)).interval() == pytest.approx(ratio(n, a).interval())
    assert (a / n - a / n).interval() == (0, 0)
    doubled = 100 * (a / n) + 1
    assert doubled.interval() == pytest.approx([100 * end + 1 for end in (a / n).interval()])
    assert (0 * (a / n) + b / n).interval() == pytest.approx((b / n).interval())
    assert (a / 0.5).interval() == pytest.approx((2 * a).interval())


def test_sums_of_ratios_are_tighter_than_their_parts() -> None:
    sums = [draw(name, value) for name, value in zip("abcd", (900, 2_000, 700, 2_000), strict=True)]
    first, second = ratio(sums[0], sums[1]), ratio(sums[2], sums[3])
    apart = first - second
    assert isinstance(apart, Mix)
    low, high = apart.interval(0.95)
    widths = [end - start for start, end in (part.interval(0.975) for part in (first, second))]
    assert math.hypot(*widths) * 0.8 < high - low < 0.75 * sum(widths)
    assert low < apart.value < high


def test_functions_stay_possible() -> None:
    n, a, b = draw("n", 50, low=0), draw("a", 10), draw("b", 400_000)
    spread = variance(n, a, b, 0, 100, middle=50)
    low, high = spread.interval(0.95)
    assert 0 <= low <= spread.value <= high <= 2_500
    assert variance(draw("n", -5, low=0), a, b, 0, 100).interval() == (0, 2_500)
    assert root(spread).interval(0.95) == (math.sqrt(low), math.sqrt(high))
    assert root(draw("z", -9)).value == 0
    assert power(draw("z", 10), 2).interval(0.95)[0] == 0
    assert power(draw("z", -100), 3).interval(0.95)[1] < 0
    inside = product(draw("y", 100), draw("z", 200)).interval(0.95)
    assert inside[0] < 20_000 < inside[1]
    assert ((draw("a", 9) * draw("b", 9)) / draw("z", 1)).interval() == (-math.inf, math.inf)


def test_stated_estimates_join_by_their_intervals() -> None:
    asked: list[float] = []

    def stating(confidence: float) -> tuple[float, float]:
        asked.append(confidence)
        return 30.0, 50.0

    median = Stated(40.0, stating, (0, 100), frozenset(["tree"]), "from a tree")
    shifted = median - draw("n", 20)
    assert shifted.note == "from a tree"
    low, high = shifted.interval(0.95)
    assert asked == [0.975]  # half of the allowed misses each
    assert low == pytest.approx(30 - 20 - 2.2414 * 20, rel=1e-4)
    assert high == pytest.approx(50 - 20 + 2.2414 * 20, rel=1e-4)


@pytest.mark.parametrize("confidence", [0, 1, -1, 2, math.nan])
def test_confidences_are_checked(confidence: float) -> None:
    n = draw("n", 50)
    made: list[Estimate] = [n, n / (n + 1), n * n, variance(n, n, n, 0, 1), n / draw("m", 1) + n]
    for estimate in made:
        with pytest.raises(InvalidQuery, match="confidence"):
            estimate.interval(confidence)
