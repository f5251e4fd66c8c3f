"""Bars of derived answers on whole numbers: each holds as often as it says. S2.6"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas
import pytest
from numpy.typing import NDArray

from sulq import (
    Answer,
    Database,
    Number,
    Promise,
    Schema,
    cdf,
    col,
    mean,
    outer,
    total,
    variance,
)
from sulq.answers.statistics import read_derived
from sulq.kernel.noise.intervals import (
    Rounding,
    chance_beyond,
    combined,
    half_width,
    variance_interval,
)
from sulq.kernel.noise.laws import DiscreteGaussian, DiscreteLaplace, Law
from sulq.kernel.query.sum_query import SumQuery, group
from sulq.kernel.query.vectors import one_hot
from sulq.kernel.reuse.estimate import LinearEstimate, StoredDraws
from sulq.kernel.schema.columns import Category

SCHEMA = Schema(
    Number("visits", 0, 3, step=1),
    Number("kids", 0, 4, step=1),
    Category("town", ["Oslo", "Paris"]),
)
FRAME = pandas.DataFrame(
    {"visits": [0, 1, 2, 3] * 5, "kids": [0, 1, 2, 3, 4] * 4, "town": ["Oslo", "Paris"] * 10}
)
OSLO, PARIS = col("town") == "Oslo", col("town") == "Paris"
CONFIDENCES = (0.5, 0.8, 0.9, 0.95, 0.99)


def derived(epsilon: Fraction, sources: Iterable[object], wanted: object) -> Answer:
    """`wanted` from the sources alone, each asked for one of 100 credits at this epsilon."""
    promise = Promise(100 * epsilon, credits=100)
    with Database.open(FRAME, SCHEMA, promise, ledger=":memory:") as db:
        for source in sources:
            db.ask(source, credits=1)
        answer = db.ask(wanted, credits=Fraction(1, 1000))
    assert answer.credits == 0 and answer.sources
    return answer


def derivation(answer: Answer) -> LinearEstimate:
    """As a client rebuilds it."""
    assert answer.bound is not None and answer.reading.mixture is not None
    sums = [
        [StoredDraws(s, p, w, 0, law) for s, p, w, law in each]
        for each in answer.reading.mixture.sums
    ]
    return LinearEstimate(answer.bound, sums, [{} for _ in sums], None, True)


def chances(laws: Iterable[Law]) -> dict[int, float]:
    """The exact law of a sum of independent draws."""
    found = {0: 1.0}
    for law in laws:
        steps = [(t, law.pmf(t)) for t in range(-40, 41) if law.pmf(t) > 1e-14]
        wider: dict[int, float] = {}
        for (at, chance), (t, own) in itertools.product(found.items(), steps):
            wider[at + t] = wider.get(at + t, 0.0) + chance * own
        found = wider
    return found


@pytest.mark.parametrize("epsilon", [1, 2, 3, 5, 10])
def test_a_total_on_whole_numbers_from_one_on_a_fine_grid(epsilon: int) -> None:
    """Twice the total of halves, rounded: off by round(X), X of a Laplace law of scale 3/epsilon.

    Read as a geometric law of that scale it held 82 % of the time at 90 %.
    """
    answer = derived(Fraction(epsilon), [total(col("visits") / 2)], total("visits"))
    found, scale = derivation(answer), 3 / epsilon
    for confidence in CONFIDENCES:
        half = found.half_width(0, confidence)
        inside = 1 - math.exp(-(math.floor(half) + 0.5) / scale)  # P(|round X| <= half)
        assert inside >= confidence
        assert half <= scale * -math.log1p(-confidence) + 0.5 + 1e-6  # and no wider than needed


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), 2, 4, 10])
def test_a_cumulative_count_from_two_others(epsilon: Fraction) -> None:
    """1, 2 and 3 cells of two draws each; normal bars held 30 % of the time at 50 %."""
    parts = [cdf("visits", edges=[0, 1, 2, 3], where=where) for where in (OSLO, PARIS)]
    answer = derived(
        Fraction(epsilon), parts, cdf("visits", edges=[0, 1, 2, 3], where=OSLO | PARIS)
    )
    found = derivation(answer)
    cells = [100, 100, 100]
    law = DiscreteLaplace(2 / Fraction(epsilon))  # a histogram's L1 is 2
    for confidence in CONFIDENCES:
        low, high = read_derived(found, cells, None).interval(confidence)
        for number in (1, 2, 3):
            half = min(high[number] - 100 * number, 100 * number - low[number])
            exact = chances([law] * (2 * number))
            inside = math.fsum(p for t, p in exact.items() if abs(t) <= half)
            assert inside >= confidence - 1e-9, (confidence, number)


def _inside(found: LinearEstimate, truths: list[int], truth: float, confidence: float) -> float:
    """P(the interval holds the truth), over every outcome of the draws of whole sums."""
    laws = [[s.law for s in sources] for sources in found.estimates]
    each = [[(t, p) for t, p in chances(own).items() if p > 1e-4] for own in laws]
    held = 0.0
    for drawn in itertools.product(*each):
        values = [value + t for value, (t, _) in zip(truths, drawn, strict=True)]
        low, high = read_derived(found, values, None).interval(confidence)
        chance = math.prod(p for _, p in drawn)
        held += chance if low - 1e-9 <= truth <= high + 1e-9 else 0.0
    return held


def test_a_mean_from_two_others() -> None:
    """Count and sum of two geometric draws each; what is left out is less than 1 %."""
    answer = derived(
        Fraction(5),
        [mean("kids", where=OSLO), mean("kids", where=PARIS)],
        mean("kids", where=OSLO | PARIS),
    )
    assert all(term.lift == 1 for term in answer.bound.terms)  # type: ignore[union-attr]
    assert _inside(derivation(answer), [20, 10], 2.5, 0.6) >= 0.6


def test_a_variance_from_two_others() -> None:
    """The union over means of Fieller's interval, over the draws' own law: Claims 2 and 3."""
    answer = derived(
        Fraction(10),
        [variance("kids", where=OSLO), variance("kids", where=PARIS)],
        variance("kids", where=OSLO | PARIS),
    )
    found = derivation(answer)
    counted, summed, squared = (found.form(place) for place in range(3))
    forms = (counted, summed, combined(squared, 2.0, counted))  # of (x - 2)^2 - 2
    wanted = variance_interval((20.0, 0.0, 40.0), forms, 0.9, -2.0, 2.0)
    assert read_derived(found, [20, 0, 0], None).interval(0.9) == wanted


@pytest.mark.sample(5)
@pytest.mark.parametrize("hundredths", range(5, 300, 21))
def test_a_symmetric_table_of_counts(hundredths: int) -> None:
    """The mean of two draws may lie between whole numbers: at 0.26 one draw's bar of 0 held it
    91.9 % of the time at 95 %."""
    law = DiscreteLaplace(Fraction(hundredths, 100))
    with Database.open(FRAME, SCHEMA, Promise(2 / law.scale, credits=1), ledger=":memory:") as db:
        answer = db.ask(outer(one_hot("town"), one_hot("town")), credits=1)
    (drawn,) = answer.laws
    assert drawn == law  # its L1 is 2
    exact = chances([drawn, drawn])
    for confidence in CONFIDENCES:
        low, high = answer.interval(confidence)
        half = (np.asarray(high) - np.asarray(low))[0, 1] / 2
        inside = math.fsum(p for t, p in exact.items() if abs(t) <= 2 * half + 1e-9)
        assert inside >= min(confidence, sum(exact.values()) - 1e-9) - 1e-9


def test_rounding_reaches_half_a_step_and_no_further() -> None:
    law = DiscreteLaplace(Fraction(1, 2))
    assert half_width(((1.0, law), (2.0, Rounding())), 0.95) == law.half_width(0.95) + 1
    assert half_width(((1.0, Rounding()),), 0.95) == 0.5
    assert chance_beyond(((1.0, law), (1.0, Rounding())), 2.5) == law.tail(1)
    assert chance_beyond(((1.0, Rounding()),), 0.6) == 0.0


# --- in SQL -------------------------------------------------------------------------------------


def told(epsilon: int, stored: object, statement: str) -> list[tuple[Any, ...]]:
    """What a statement says that follows from one stored answer at this epsilon."""
    promise = Promise(100 * epsilon, credits=100)
    with Database.open(FRAME, SCHEMA, promise, ledger=":memory:") as db:
        db.ask(stored, credits=1)
        found = db.sql(statement, credits=Fraction(1, 1000))
        assert found.credits == 0
        return list(found.rows)


def round_of_laplace(scale: float, most: int = 60) -> NDArray[np.float64]:
    """P(round(X) = -most ... most), X of a Laplace law of this scale."""
    beyond = np.exp(-(np.arange(most + 1) + 0.5) / scale)  # P(|round X| > t)
    sides = (beyond[:-1] - beyond[1:]) / 2
    return np.concatenate([sides[::-1], [1 - beyond[0]], sides])


def inside_of(law: NDArray[np.float64], half: float) -> float:
    steps = np.abs(np.arange(len(law)) - len(law) // 2)
    return float(law[steps <= half + 1e-9].sum())


@pytest.mark.parametrize("epsilon", [5, 10])
def test_a_sum_in_sql_is_off_by_its_draw_and_by_rounding(epsilon: int) -> None:
    """Without rounding the bar of 95 % at epsilon 5 held 91.8 % of the time."""
    ((one, two, none),) = told(
        epsilon,
        total(col("visits") / 2),
        "SELECT SUM(visits), SUM(visits) * 2, SUM(visits) - SUM(visits) FROM t",
    )
    law, scale = round_of_laplace(3 / epsilon), 3 / epsilon
    for confidence in CONFIDENCES:
        half = one.interval(confidence)[1] - one.value
        assert inside_of(law, half) >= confidence
        assert half == pytest.approx(scale * -math.log1p(-confidence) + 0.5, rel=1e-6)
        assert two.interval(confidence)[1] - two.value == pytest.approx(2 * half, rel=1e-9)
        assert none.interval(confidence) == (0, 0)  # one draw, rounded once


@pytest.mark.parametrize("epsilon", [6, 10])
def test_every_cell_in_sql_is_rounded_by_itself(epsilon: int) -> None:
    """Three cells, each rounded: their sum is off by three draws and up to three halves."""
    cells = SumQuery((col("visits") / 2,), groups=(group("town", other=True),))
    rows = told(
        epsilon,
        cells,
        "SELECT town, SUM(visits), SUM(SUM(visits)) OVER (),"
        " 3 * SUM(visits) - SUM(SUM(visits)) OVER () FROM t GROUP BY town",
    )
    law = round_of_laplace(6 / epsilon)  # who moves from one town to another moves both
    three = np.convolve(np.convolve(law, law), law)
    assert len(rows) == 3
    for confidence in (0.5, 0.8, 0.9, 0.95):
        for _, one, whole, apart in rows[:2]:
            half, wide = (cell.interval(confidence)[1] - cell.value for cell in (one, whole))
            assert inside_of(law, half) >= confidence
            assert inside_of(three, wide) >= confidence
            assert wide == pytest.approx(_drawn(whole, confidence) + 1.5, abs=1e-6)
            gap = apart.interval(confidence)[1] - apart.value  # 2 of its own, 1 of each other
            assert gap == pytest.approx(_drawn(apart, confidence) + 2, abs=1e-6)


def _drawn(cell: Any, confidence: float) -> float:
    """The bar of its draws alone."""
    own = [draw for draw in cell.draws.values() if not isinstance(draw[1], Rounding)]
    return half_width(tuple(own), confidence)


def test_gaussian_draws_stay_as_they_were() -> None:
    law = DiscreteGaussian(Fraction(2**60))
    promise = Promise(1, "1e-6")
    with Database.open(FRAME, SCHEMA, promise, ledger=":memory:") as db:
        bound = db.bind(total("visits"))
    found = LinearEstimate(bound, [[StoredDraws(1, 0, Fraction(1, 3), 0, law)]], [{}], None, True)
    assert found.gaussian and list(found.form(0)) == [(1, 0)]
    assert found.variance(0) == law.sigma_squared / 9
