"""Claims that no other file tests: shifts and roundings, private strata, balls of integers.

Everything here is enumerated or in closed form; nothing is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from sulq import Category, Flag, Number, Promise, Schema, col, count, outer, total
from sulq.exact.hiding import hockey_stick
from sulq.kernel.accounting.calibration import calibrate
from sulq.kernel.accounting.gaussian import gaussian_delta
from sulq.kernel.accounting.loss import coupling_slack
from sulq.kernel.accounting.pld import loss_of
from sulq.kernel.accounting.pricing import noise_grid, price
from sulq.kernel.engines.blocks import _shrunk
from sulq.kernel.noise.laws import (
    CentredBinomial,
    DiscreteGaussian,
    DiscreteHuber,
    DiscreteLaplace,
    Law,
    NoNoise,
)
from sulq.kernel.query import vectors as q
from sulq.kernel.query.sum_query import SumQuery
from sulq.kernel.schema.bind import bind
from sulq.kernel.schema.columns import accounts

MILLIONTH = Fraction(1, 10**6)


def near(value: float, relative: float = 1e-6) -> object:
    return pytest.approx(value, rel=relative)


# --- laws and shifts ----------------------------------------------------------------------------


def gaussian_plane(variance: float, reach: int) -> np.ndarray:
    t = np.arange(-reach, reach + 1)
    weights = np.exp(-(t**2) / (2 * variance))
    return np.asarray(np.outer(weights, weights) / weights.sum() ** 2)


@pytest.mark.parametrize(
    ("shift", "epsilon", "delta"),
    [
        ((5, 0), 0.5, 0.23709012237389343),
        ((3, 4), 0.5, 0.23836851299213652),
        ((5, 0), 1.0, 0.1275233346646947),
        ((3, 4), 1.0, 0.1269602082549492),
    ],
)
def test_tb4_the_direction_of_a_shift_matters(
    shift: tuple[int, int], epsilon: float, delta: float
) -> None:
    """Equal length 5, sigma^2 = 25: neither direction dominates, and zCDP covers both."""
    plane = gaussian_plane(25, 80)
    moved = np.roll(plane, shift, axis=(0, 1))
    found = float(np.maximum(moved - math.exp(epsilon) * plane, 0).sum())
    assert found == near(delta)
    along = loss_of(DiscreteGaussian(Fraction(25)), 5, step=epsilon / 4096).delta(epsilon)
    assert (along >= found * (1 - 1e-9)) == (shift == (5, 0) or epsilon == 1.0)


LAWS = [
    DiscreteGaussian(Fraction(9)),
    DiscreteLaplace(Fraction(3)),
    DiscreteHuber(Fraction(3), Fraction(5)),
    CentredBinomial(60),
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.5, 1.0, 2.0])
def test_tb6_a_larger_shift_is_never_better_hidden(law: Law, epsilon: float) -> None:
    """The account of shift 4 covers every smaller one, summed term by term."""
    account = loss_of(law, 4, step=epsilon / 1024).delta(epsilon)
    span = range(-120, 121)
    pmf = {t: law.pmf(t) for t in range(-130, 131)}
    deltas = [
        sum(max(pmf[t - s] - math.exp(epsilon) * pmf[t], 0.0) for t in span) for s in range(5)
    ]
    assert deltas == sorted(deltas)
    assert deltas[4] * (1 - 1e-9) <= account <= deltas[4] * (1 + 1e-6) + 1e-12


@pytest.mark.parametrize(
    ("variance", "shift", "epsilon", "delta"),
    [
        (25, 1, 0.5, 0.0004935918717428717),
        (400, 4, 0.5, 0.0005111936070645631),
        (1, 1, 1.0, 0.12693673750664392),
    ],
)
def test_tb7_rounding_never_exceeds_the_continuous_profile(
    variance: int, shift: int, epsilon: float, delta: float
) -> None:
    """And the discrete law is within its coupling slack of the rounded one."""
    sigma = math.sqrt(variance)
    t = np.arange(-600, 601)

    def mass(centre: int) -> np.ndarray:  # by upper tails: exact on both sides
        low = np.abs(t - centre) - 0.5
        return np.asarray(norm.sf(low / sigma) - norm.sf((low + 1) / sigma))

    found = float(np.maximum(mass(shift) - math.exp(epsilon) * mass(0), 0).sum())
    assert found == near(delta)
    assert found <= gaussian_delta(shift / sigma, epsilon) * (1 + 1e-9)
    discrete = loss_of(DiscreteGaussian(Fraction(variance)), shift, step=epsilon / 4096)
    slack = (1 + math.exp(epsilon)) * float(coupling_slack(Fraction(variance)))
    assert discrete.delta(epsilon) <= found + slack


def test_s012_the_noise_does_not_depend_on_the_rows() -> None:
    """S0.12's T ln n ln T grows with n and faster than T; ours is proportional to T alone."""
    ours = calibrate(Promise(1, MILLIONTH, 100))
    assert float(ours.unit_variance) == near(1784.7911717923732, 1e-3)  # 1e-3 of delta set aside
    printed = 100 * math.log(10**6) * math.log(100)
    assert printed == near(6362.277732574078)
    assert ours.unit_variance < printed
    longer = calibrate(Promise(1, MILLIONTH, 10_000))
    assert float(longer.unit_variance / ours.unit_variance) == near(100)


def test_s10_an_exact_answer_has_no_coins() -> None:
    """Between two fixed tables it hides nothing; what protects is what is unknown of other rows."""
    for epsilon in (0.1, 1.0, 10.0):
        assert loss_of(NoNoise(), 1).delta(epsilon) == 1
    assert hockey_stick([(80, 1)], 1.0) <= 1e-6
    assert hockey_stick([(0, 1)], 1.0) == 1


# --- sensitivity --------------------------------------------------------------------------------


def ball(width: int, radius: int, *, signed: bool = True) -> Iterator[tuple[int, ...]]:
    """Every integer vector of this length or less."""
    numbers = range(-radius if signed else 0, radius + 1)
    for row in product(numbers, repeat=width):
        if sum(x * x for x in row) <= radius**2:
            yield row


def widest(rows: list[tuple[int, ...]], moments: bool, scale: int) -> int:
    """The largest squared change of the triangle of XX' (and of scale * X) over all pairs."""
    above = np.triu_indices(len(rows[0]))
    vectors = []
    for row in rows:
        x = np.array(row, dtype=np.int64)
        parts = [np.outer(x, x)[above], scale * x] if moments else [np.outer(x, x)[above]]
        vectors.append(np.concatenate(parts))
    v = np.array(vectors)
    squares = (v * v).sum(axis=1)
    return int((squares[:, None] + squares[None, :] - 2 * v @ v.T).max())


def test_g44_outer_products_of_integers() -> None:
    """Two rows of the integer ball: at most 2 q^4, reached on the axes."""
    assert widest(list(ball(2, 6)), moments=False, scale=0) == 2592 == 2 * 6**4
    assert widest(list(ball(3, 4)), moments=False, scale=0) == 512 == 2 * 4**4
    schema = Schema(Number("a", 0, 1), Number("b", 0, 1), Number("c", 0, 1))
    for names in (["a", "b"], ["a", "b", "c"]):
        row = q.columns(names, clip=1)
        assert float(charged(outer(row, row), schema)) == near(2, 1e-4)  # and that is the price


def charged(query: SumQuery, schema: Schema) -> Fraction:
    """The squared L2 sensitivity that is charged, in user units."""
    bound = bind(query, schema)
    (term,) = bound.terms
    squared = max(sensitivity.l2_squared for sensitivity, _ in bound.reach)
    return squared * (term.unit * term.step) ** 2


def test_v3_moments() -> None:
    """x and the triangle of xx': 4.5 for signed rows (at 120 degrees), 4 without signs."""
    directions = [
        (math.cos(a), math.sin(a)) for a in np.linspace(0, 2 * math.pi, 360, endpoint=False)
    ]
    x = np.array(directions)
    cosines = x @ x.T
    changes = (2 - 2 * cosines) + (2 - 2 * cosines**2)
    assert changes.max() == near(4.5)
    assert cosines.ravel()[changes.argmax()] == near(-0.5)
    assert changes[cosines >= -1e-12].max() == near(4)
    assert widest(list(ball(2, 6)), moments=True, scale=6) <= 4.5 * 6**4
    assert widest(list(ball(2, 6, signed=False)), moments=True, scale=6) == 4 * 6**4
    # the product's own moments hold x twice (row and column of the Gram matrix): 2 |x-y|^2 more
    schema = Schema(Number("a", 0, 1), Number("b", 0, 1))
    row = q.concat(q.ones(), q.columns(["a", "b"], clip=1))
    assert charged(outer(row, row), schema) >= Fraction(6)
    alone = q.columns(["a", "b"], clip=1)
    assert float(charged(outer(alone, alone), schema)) == near(2, 1e-4)


def test_g42_nearest_rounding_leaves_the_ball() -> None:
    """Inside the unit ball before, outside q after rounding; so the clip is done on integers."""
    eight, q8 = [0.3125] * 8, 8
    assert math.sqrt(sum(x * x for x in eight)) < 1
    rounded = [math.floor(q8 * x + 0.5) for x in eight]
    assert math.sqrt(sum(x * x for x in rounded)) == near(8.48528137423857)
    kept = _shrunk(np.array(rounded, float)[:, None], float(q8))[:, 0]
    assert kept @ kept <= q8**2
    halves = [math.floor(7 * 0.5 + 0.5)] * 4
    assert math.sqrt(sum(x * x for x in halves)) == 8 > 7


def test_g43_two_rows_in_the_ball() -> None:
    """4 B^2 with signs, 2 B^2 without; bound vectors claim no less than is reached."""
    for signed, most in ((True, 144), (False, 72)):
        v = np.array(list(ball(2, 6, signed=signed)))
        gaps = ((v[:, None, :] - v[None, :, :]) ** 2).sum(axis=2)
        assert gaps.max() == most
    schema = Schema(Number("a", -1, 1), Number("b", -1, 1))
    around = q.columns(["a", "b"], centre=0.5, clip=0.5)  # a disc around the middle
    corner = q.columns(["a", "b"], clip=0.5)  # its quarter at the lowest corner
    whole = charged(outer(q.ones(), around), schema)
    assert float(whole) == near(4 * 0.5**2, 1e-4)
    assert float(charged(outer(q.ones(), corner), schema)) == near(2 * 0.5**2, 1e-4)


@pytest.mark.parametrize(
    ("neighbours", "width"), [("replace", Fraction(2)), ("add-remove", Fraction(1))]
)
def test_m8_the_hull_of_nothing_and_the_range(neighbours: str, width: Fraction) -> None:
    """g in [-1, 1] over a private S: 0 is inside, so the width is 2; in [5, 7] it is 7."""
    schema = Schema(Number("b", -1, 1, step=1), Number("far", 5, 7, step=1), Flag("f"))
    (term,) = bind(total("b", where=col("f")), schema, neighbours).terms
    assert term.unit * term.step == width
    (term,) = bind(total("far", where=col("f")), schema, neighbours).terms
    assert term.unit * term.step == 7


# --- prices -------------------------------------------------------------------------------------

GAUSSIAN = calibrate(Promise(1, "1e-6", queries=100))
RHO = Fraction(1, 200)  # of a unit question at R = 100


def spent(schema: Schema) -> list[Fraction]:
    """G.2's questions: 3 on N at R = 100, 2 on S at R = 50, 1 on both at R = 25."""
    north, south = (count(where=(col("side") == side) & col("f")) for side in "NS")
    asked = [(north, 1)] * 3 + [(south, 2)] * 2 + [(count(where=col("f")), 4)]
    found = [Fraction(0)] * len(accounts(schema))
    for question, intensity in asked:
        bound = bind(question, schema, grid=noise_grid(GAUSSIAN))
        for loss, numbers in price(bound, GAUSSIAN, Fraction(intensity)).losses:
            for number in numbers:
                found[number] += loss.credits_fraction * RHO
    return found


def test_g22_a_private_stratum_is_one_account() -> None:
    """Declared private the side has one account, .055; wrongly public it is at most .075."""
    private = spent(Schema(Flag("f"), Category("side", ["N", "S"])))
    assert private == [Fraction("0.055")]
    public = spent(Schema(Flag("f"), Category("side", ["N", "S"], public=True)))
    assert sum(sorted(public)[-2:]) == Fraction("0.075")


def test_m7_a_top_up_is_one_finer_answer() -> None:
    """R and a draw at 1/(1/R' - 1/R), weighted by precision: variance and price of R'."""
    R, finer = Fraction(100), Fraction(36)
    added = 1 / (1 / finer - 1 / R)
    weights = (1 / R * finer, 1 / added * finer)
    assert sum(weights) == 1
    assert weights[0] ** 2 * R + weights[1] ** 2 * added == finer
    schema = Schema(Flag("f"))
    bound = bind(count(where=col("f")), schema, grid=noise_grid(GAUSSIAN))
    once, more, both = (
        price(bound, GAUSSIAN, GAUSSIAN.unit_variance / variance).worst.credits_fraction
        for variance in (R, added, finer)
    )
    assert float(once + more) == near(float(both), 1e-12)
