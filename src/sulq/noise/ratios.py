"""Intervals for ratios and variances of noisy sums, right at any count. docs/proofs/error-bars.md.

A form is draws by name; the same name is the same draw, so what two sums share cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from sulq.noise.tails import Draw, Draws, chance_beyond, gaussian, grain_of, noisy, spread, z_of

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
