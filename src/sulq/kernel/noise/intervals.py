"""How far off a sum of independent noisy draws may be.

A draw is (scale, law): `scale` user units per grid step, with its sign. Floats, for error bars
only. Proofs: docs/proofs/error-bars.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sulq.kernel.noise.laws import (
    CentredBinomial,
    DiscreteGaussian,
    DiscreteLaplace,
    DividedLaplace,
    Law,
    NoNoise,
)


@dataclass(frozen=True, slots=True)
class Rounding:
    """Rounding to the nearest step: at most half of one, whatever draws it depends on."""

    def variance(self) -> float:
        """As if any part of a step were as likely."""
        return 1 / 12


Draw = tuple[float, Law | Rounding]
Draws = tuple[Draw, ...]
Drawn = tuple[tuple[float, Law], ...]

POINTS, COARSE_POINTS = 1 << 10, 1 << 11
"""How many waves the inversion adds up; those of a coarse law come back at whole turns."""
FEWEST = 1e-4
"""Below this chance the inversion's own error counts; bounds are added up instead."""
HALVINGS = 30
FINE = 10_000
"""So many steps wide, a discrete Laplace law is the continuous one for every purpose of a bar."""


def spread(draws: Draws | Drawn) -> float:
    """The standard deviation of the sum of independent draws."""
    squares: dict[int, float] = {}  # by law: many draws share one
    for scale, law in draws:
        squares[id(law)] = squares.get(id(law), 0.0) + scale * scale
    laws = {id(law): law for _, law in draws}
    return math.sqrt(sum(square * laws[own].variance() for own, square in squares.items()))


def told_spread(draws: Draws | Drawn) -> float:
    """The standard deviation of a count, which is told as a whole number: with its rounding where
    it is one draw of Laplace noise on a fine grid. S2.6"""
    if len(draws) == 1:
        scale, law = draws[0]
        if isinstance(law, DiscreteLaplace) and is_fine(law):
            return rounded_spread(abs(scale) * float(law.scale))
    return spread(draws)


def rounded_spread(scale: float) -> float:
    """The standard deviation of round(X), X of a Laplace law. S2.6

    Its variance is the sum over k > 0 of (2k - 1) P(|X| > k - 1/2) = sqrt(q) (1 + q) / (1 - q)^2,
    q = exp(-1/scale).
    """
    q = math.exp(-1 / scale)
    return math.sqrt(math.exp(-1 / (2 * scale)) * (1 + q)) / -math.expm1(-1 / scale)


@lru_cache(maxsize=4096)
def half_width(draws: Draws, confidence: float) -> float:
    """An h with P(|sum of draws| <= h) >= confidence; the smallest for one draw."""
    drawn, rounding = _drawn(draws)
    return _half_width(drawn, confidence) + rounding


def _half_width(draws: Drawn, confidence: float) -> float:
    if not draws:
        return 0.0
    if len(draws) == 1:
        scale, law = draws[0]
        return abs(scale) * law.half_width(confidence)
    if gaussian(draws):
        return z_of(confidence) * _smeared_spread(draws) + grain_of(draws) / 2
    if 1 - confidence < FEWEST or not spread(draws):  # too little noise for a float to say
        share = 1 - (1 - confidence) / len(draws)
        return sum(abs(scale) * law.half_width(share) for scale, law in draws)
    low, high = 0.0, spread(draws)
    while _chance_beyond(draws, high) > 1 - confidence:
        low, high = high, 2 * high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _chance_beyond(draws, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def chance_beyond(draws: Draws, distance: float) -> float:
    """P(|sum of draws| >= distance), or a little more."""
    drawn, rounding = _drawn(draws)
    return _chance_beyond(drawn, distance - rounding)


def _chance_beyond(draws: Drawn, distance: float) -> float:
    if distance <= 0:
        return 1.0
    if not draws:
        return 0.0
    if len(draws) == 1:
        scale, law = draws[0]
        return law.tail(math.ceil(distance / abs(scale) * (1 - 1e-12)) - 1)
    grain = grain_of(draws)
    if distance <= grain / 2:
        return 1.0
    distance -= grain / 2  # P(|S| > x + r/2) <= P(|S + rU| > x), U uniform on [-1/2, 1/2]
    if gaussian(draws):
        return math.erfc(distance / _smeared_spread(draws) / math.sqrt(2))
    if (two := _two_laplaces(draws, distance, grain)) is not None:
        return two
    return _inverted(draws, distance, grain)


@lru_cache(maxsize=256)
def z_of(confidence: float) -> float:
    """The two-sided normal quantile: erfc(z / sqrt 2) = 1 - confidence, by halving."""
    low, high = 0.0, 40.0
    while low < (middle := (low + high) / 2) < high:
        outside = math.erfc(middle / math.sqrt(2))
        low, high = (middle, high) if outside > 1 - confidence else (low, middle)
    return high


def noisy(draws: Draws) -> Draws:
    """The draws that have noise."""
    return tuple((scale, law) for scale, law in draws if scale and not isinstance(law, NoNoise))


def _drawn(draws: Draws) -> tuple[Drawn, float]:
    """The noisy draws, and how far their rounding may reach: P(|S + r| > x) <= P(|S| > x - |r|)."""
    drawn = [(scale, law) for scale, law in noisy(draws) if not isinstance(law, Rounding)]
    reach = sum(abs(scale) for scale, law in draws if isinstance(law, Rounding)) / 2
    return tuple(drawn), reach


def gaussian(draws: Draws | Drawn) -> bool:
    """Whether every draw is Gaussian and not coarser than its grid."""
    return all(isinstance(law, DiscreteGaussian) and law.sigma_squared >= 1 for _, law in draws)


def is_fine(law: Law, weight: Fraction = Fraction(1)) -> bool:
    """Whether a draw is too wide to tell its steps, and those of a grid in which it has this
    weight, from a continuous law's."""
    if not isinstance(law, DiscreteLaplace | DividedLaplace):
        return True
    return law.scale * min(abs(weight), Fraction(1)) >= FINE


def is_rounded(parts: Iterable[tuple[Fraction, Law]]) -> bool:
    """Whether rounding a weighted sum of draws to a step of the grid counts.

    It does where a weight is not whole and the grid is about as coarse as the noise. S2.6
    """
    known = [(weight, law) for weight, law in parts if not isinstance(law, NoNoise)]
    return any(weight.denominator != 1 for weight, _ in known) and not any(
        is_fine(law, weight) or abs(weight) >= FINE for weight, law in known
    )


def grain_of(draws: Draws | Drawn) -> float:
    """The coarsest step."""
    return max(abs(scale) for scale, _ in draws)


def _smeared_spread(draws: Drawn) -> float:
    return math.hypot(spread(draws), grain_of(draws) / math.sqrt(12))


def _two_laplaces(draws: Drawn, distance: float, grain: float) -> float | None:
    """(p^2 e^(-x/p) - q^2 e^(-x/q)) / (p^2 - q^2) for scales p >= q; None if not two fine ones."""
    scales = [abs(s) * float(law.scale) for s, law in draws if isinstance(law, DiscreteLaplace)]
    if len(draws) != 2 or len(scales) != 2 or min(scales) < FINE * grain:
        return None
    q, p = sorted(scales)
    if p - q < 1e-9 * p:
        return math.exp(-distance / p) * (1 + distance / (p + q))
    late = -math.expm1(-distance * (p - q) / (p * q))
    return min(1.0, math.exp(-distance / p) * (1 + q * q * late / ((p - q) * (p + q))))


def _inverted(draws: Drawn, distance: float, grain: float) -> float:
    """1 - (2/pi) sum of phi(u) sin(u x) / u at the middles of equal steps of u.

    The sum is smeared by a uniform law as wide as `grain`, whose waves are 0 where those of draws
    on one coarse grid come back.
    """
    deviation = spread(draws)
    points = POINTS if 64 * grain < deviation else COARSE_POINTS
    places: NDArray[np.float64] = np.arange(points, dtype=np.float64) + 0.5
    turns = places * (2 * math.pi / (2 * distance + 20 * deviation + grain))
    phi = np.sinc(turns * (grain / 2 / math.pi))
    alike = Counter((abs(scale), id(law)) for scale, law in draws)
    laws = {id(law): law for _, law in draws}
    for (scale, own), times in alike.items():
        phi *= _wave(laws[own], turns * scale) ** times
    inside = 2 / math.pi * float(np.sum(phi * np.sin(turns * distance) / places))
    return min(max(1 - inside, 0.0), 1.0)


def _wave(law: Law, angles: NDArray[np.float64]) -> NDArray[np.float64]:
    """The characteristic function E cos(angle N)."""
    match law:
        case NoNoise():
            return np.ones_like(angles)
        case DiscreteGaussian(sigma_squared=v) if v >= 1:
            around = np.remainder(angles + math.pi, 2 * math.pi) - math.pi
            wave: NDArray[np.float64] = np.exp(-float(v) / 2 * around**2)
            return wave
        case DiscreteLaplace(scale=scale):
            steep = math.sinh(min(float(1 / (2 * scale)), 300.0))
            return 1 / (1 + (np.sin(angles / 2) / steep) ** 2)
        case DividedLaplace(scale=scale, shape=shape):
            wave = _wave(DiscreteLaplace(scale), angles) ** float(shape)
            return wave
        case CentredBinomial(coins=coins):
            wave = np.exp(coins * np.log(np.maximum(np.abs(np.cos(angles / 2)), 1e-300)))
            return wave
    parts, waves = _wave_table(law)
    read: NDArray[np.float64] = np.interp(np.remainder(angles, 2 * math.pi), parts, waves)
    return read


@lru_cache(maxsize=16)
def _wave_table(law: Law) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The characteristic function at equal angles around the circle, from the law's chances."""
    reach = law.half_width(1 - 1e-9)
    size = 1 << max(16, (32 * reach).bit_length())
    chances = np.zeros(size)
    for t in range(-reach, reach + 1):
        chances[t % size] += law.pmf(t)
    waves = np.fft.fft(chances).real
    return np.linspace(0.0, 2 * math.pi, size + 1), np.append(waves, waves[0])


# Intervals for ratios and variances of noisy sums, right at any count. docs/proofs/error-bars.md.
#
# A form is draws by name; the same name is the same draw, so what two sums share cancels.


Form = Mapping[object, Draw]
Ends = tuple[float, float]

STEPS = 60
CLOSE = 1e-7
"""The ends are found to this share of the width, and rounded outwards."""
MEANS = 9
SIDE_SHARE = 1 / 10
"""The part of the allowed misses that a variance spends on where the mean lies."""


def combined(first: Form, weight: float, second: Form) -> dict[object, Draw]:
    """The form first + weight * second; shared draws are added before they are squared."""
    found = dict(first)
    for name, (scale, law) in second.items():
        before = found[name][0] if name in found else 0.0
        found[name] = (before + weight * scale, law)
    return found


def draws_of(form: Form) -> Draws:
    """What is noisy in it."""
    return noisy(tuple(form.values()))


def inside(middle: float, ends: Ends, limits: Ends) -> Ends:
    """The interval `ends` around `middle` within what is possible.

    A middle beyond the limits is first moved to the nearer one, with its interval. That holds all
    that a plain cut leaves, and does not shrink to one point where noise went too far.
    """
    low, high = limits
    if low <= middle <= high or middle != middle:
        return min(max(ends[0], low), high), max(min(ends[1], high), low)
    near = min(max(middle, low), high)
    below, above = max(middle - ends[0], 0.0), max(ends[1] - middle, 0.0)
    return max(near - below, low), min(near + above, high)


def ratio_interval(
    top: float,
    top_form: Form,
    bottom: float,
    bottom_form: Form,
    confidence: float,
    low: float = -math.inf,
    high: float = math.inf,
) -> Ends:
    """Fieller: every t for which top - t * bottom is no further from 0 than its noise goes.

    At the true ratio top - t * bottom is noise alone, so the set covers it as often as it says,
    at any count. [low, high] where noise alone could have made the bottom.
    """
    allowed = 1 - confidence
    if bottom == 0 or chance_beyond(draws_of(bottom_form), abs(bottom)) > allowed:
        return low, high
    ends = _gaussian_ends(top, top_form, bottom, bottom_form, confidence)
    if ends is None:
        ends = _searched_ends(top, top_form, bottom, bottom_form, allowed, (low, high))
    return inside(top / bottom, ends, (low, high))


def _gaussian_ends(
    top: float, top_form: Form, bottom: float, bottom_form: Form, confidence: float
) -> Ends | None:
    """The roots of (top - t bottom)^2 = z^2 Var; None where a law is not Gaussian and fine."""
    draws = (*draws_of(top_form), *draws_of(bottom_form))
    if not draws:
        return top / bottom, top / bottom
    if not gaussian(draws) or 1e6 * grain_of(draws) > spread(draws):
        return None
    z2 = z_of(confidence) ** 2
    shared = [name for name in top_form if name in bottom_form]
    joint = sum(
        top_form[name][0] * bottom_form[name][0] * top_form[name][1].variance() for name in shared
    )
    a = bottom**2 - z2 * spread(draws_of(bottom_form)) ** 2
    b = top * bottom - z2 * joint
    c = top**2 - z2 * spread(draws_of(top_form)) ** 2
    if a <= 0:  # at the very edge of the test above
        return -math.inf, math.inf
    root = math.sqrt(max(0.0, b * b - a * c))
    return (b - root) / a, (b + root) / a


def _searched_ends(
    top: float, top_form: Form, bottom: float, bottom_form: Form, allowed: float, limits: Ends
) -> Ends:
    """The same by search, for any law: outwards from the ratio to where the chance is too small."""
    middle = top / bottom

    def excess(t: float) -> float:
        """Above 0 inside; in logarithms, where chances are nearly straight."""
        draws = draws_of(combined(top_form, -t, bottom_form))
        return math.log(max(chance_beyond(draws, abs(top - t * bottom)), 1e-12) / allowed)

    first = spread(draws_of(combined(top_form, -middle, bottom_form))) / abs(bottom)
    first = max(first, abs(middle) * 1e-12, 1e-300)
    return (
        _end(excess, middle, first, limits[0], -1.0),
        _end(excess, middle, first, limits[1], 1.0),
    )


def _end(
    excess: Callable[[float], float], middle: float, step: float, limit: float, sign: float
) -> float:
    if (limit - middle) * sign <= 0 or (math.isfinite(limit) and excess(limit) > 0):
        return limit
    near, far, inside = middle, middle + sign * 2 * step, -math.log(1e-12)
    while (outside := excess(far)) > 0:
        near, inside, step = far, outside, 2 * step
        if step > 1e300:
            return limit
        far = middle + sign * 2 * step
    for turn in range(STEPS):
        if abs(far - near) <= CLOSE * abs(far - middle):
            break
        part = 0.5 if turn % 3 == 2 else inside / (inside - outside)  # false position, kept honest
        between = near + min(max(part, 0.01), 0.99) * (far - near)
        found = excess(between)
        if found > 0:
            near, inside = between, found
        else:
            far, outside = between, found
    return far


def variance_interval(
    sums: tuple[float, float, float],
    forms: tuple[Form, Form, Form],
    confidence: float,
    low: float,
    high: float,
) -> Ends:
    """The variance of x in [low, high] from count, total of x and total of x^2.

    At the true mean m the variance is the ratio (T2 - 2 m T1 + m^2 T0) / T0, with Fieller's
    interval. The union over every m in an interval of the mean covers it; the ratio is flat in m
    around the noisy mean, so that costs little. No variance exceeds (high - m)(m - low).
    """
    side = (1 - confidence) * SIDE_SHARE
    main = confidence + side
    n, total, square = sums
    most = ((high - low) / 2) ** 2
    first, last = ratio_interval(total, forms[1], n, forms[0], 1 - side, low, high)
    lower, upper = math.inf, -math.inf
    for place in range(MEANS):
        m = first + (last - first) * place / (MEANS - 1)
        top = square - 2 * m * total + m * m * n
        form = combined(combined(forms[2], -2 * m, forms[1]), m * m, forms[0])
        found = ratio_interval(top, form, n, forms[0], main, 0.0, max(0.0, (high - m) * (m - low)))
        lower, upper = min(lower, found[0]), max(upper, found[1])
    between = ((last - first) / (MEANS - 1) / 2) ** 2  # what lies between the places looked at
    return max(lower - between, 0.0), min(upper + between, most)


def covariance_interval(
    sums: tuple[float, ...],
    forms: tuple[Form, ...],
    confidence: float,
    x_range: Ends,
    y_range: Ends,
) -> Ends:
    """The covariance of x and y in their ranges from count, totals of x, of y and of x y.

    At the true means a and b it is the ratio (T_xy - a T_y - b T_x + a b T_0) / T_0, with
    Fieller's interval. The union over an interval of either mean covers it, and has its ends at
    the corners. docs/proofs/error-bars.md, section 8.
    """
    side = (1 - confidence) * SIDE_SHARE
    most = (x_range[1] - x_range[0]) * (y_range[1] - y_range[0]) / 4
    found = [
        ratio_interval(top, form, sums[0], forms[0], confidence + side, -most, most)
        for a, b in _means(sums, forms, side / 2, x_range, y_range)
        for top, form in [_product(sums, forms, (0, 1, 2, 3), a, b)]
    ]
    return min(low for low, _ in found), max(high for _, high in found)


def correlation_interval(
    sums: tuple[float, ...],
    forms: tuple[Form, ...],
    confidence: float,
    x_range: Ends,
    y_range: Ends,
) -> Ends:
    """The correlation of x and y from count and totals of x, y, x y, x^2 and y^2.

    With the true means and k, the standard deviation of x over that of y, it is the ratio
    2 k S_xy / (S_xx + k^2 S_yy), with Fieller's interval; S_xy is the sum of (x - a)(y - b).
    The union over intervals of the means and of k covers it, and is flat in k.
    """
    side = (1 - confidence) * SIDE_SHARE
    ends: list[Ends] = []
    places = _means(sums, forms, side / 3, x_range, y_range)
    squares = [
        (_product(sums, forms, (0, 1, 1, 4), a, a), _product(sums, forms, (0, 2, 2, 5), b, b))
        for a, b in places
    ]
    ratios = [ratio_interval(xx[0], xx[1], yy[0], yy[1], 1 - side / 3, 0.0) for xx, yy in squares]
    least, last = min(low for low, _ in ratios), max(high for _, high in ratios)
    if least <= 0 or math.isinf(last):  # noise alone could have made one of the variances
        return -1.0, 1.0
    for (a, b), (xx, yy) in zip(places, squares, strict=True):
        top, form = _product(sums, forms, (0, 1, 2, 3), a, b)
        near = min(max(xx[0] / yy[0], least), last) if yy[0] > 0 else last
        for square in {least, near, last}:
            k = math.sqrt(square)
            bottom = combined(xx[1], square, yy[1])
            over = combined({}, 2 * k, form)
            ends.append(
                ratio_interval(
                    2 * k * top, over, xx[0] + square * yy[0], bottom, confidence + side, -1.0, 1.0
                )
            )
    return min(low for low, _ in ends), max(high for _, high in ends)


def _means(
    sums: tuple[float, ...], forms: tuple[Form, ...], missed: float, x_range: Ends, y_range: Ends
) -> list[Ends]:
    """The corners and the middle of intervals of both means, each missed so seldom."""
    xs, ys = (
        ratio_interval(sums[at], forms[at], sums[0], forms[0], 1 - missed, *ends)
        for at, ends in ((1, x_range), (2, y_range))
    )
    corners = [(a, b) for a in xs for b in ys]
    return [*corners, (sum(xs) / 2, sum(ys) / 2)]


def _product(
    sums: tuple[float, ...],
    forms: tuple[Form, ...],
    at: tuple[int, int, int, int],
    a: float,
    b: float,
) -> tuple[float, Form]:
    """The sum of (x - a)(y - b), given the places of the count, of x, of y and of x y."""
    n, x, y, xy = at
    value = sums[xy] - a * sums[y] - b * sums[x] + a * b * sums[n]
    form = combined(combined(forms[xy], -a, forms[y]), -b, forms[x])
    return value, combined(form, a * b, forms[n])
