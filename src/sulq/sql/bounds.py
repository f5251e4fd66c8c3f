"""What follows when numbers lie in intervals: products, quotients, sums of weighted ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sulq.noise.distributions import Law
from sulq.noise.ratios import Ends, Form, draws_of
from sulq.noise.tails import half_width

ANYTHING: Ends = (-math.inf, math.inf)


def cut(ends: Ends, limits: Ends) -> Ends:
    """An interval within what is possible."""
    low, high = limits
    return min(max(ends[0], low), high), max(min(ends[1], high), low)


def product_ends(left: Ends, right: Ends) -> Ends:
    """Every product of two numbers in these intervals."""
    corners = [0.0 if 0.0 in (x, y) else x * y for x in left for y in right]
    return min(corners), max(corners)


def quotient_ends(left: Ends, right: Ends) -> Ends:
    """Every quotient; anything where the divisor may be 0."""
    low, high = right
    if low <= 0 <= high:
        return ANYTHING
    return product_ends(left, (1 / high, 1 / low))


@dataclass(frozen=True, slots=True)
class Quotient:
    """weight * top / bottom, with intervals that hold the true ratio and the true bottom."""

    weight: float
    top: float
    top_form: Form
    bottom: float
    bottom_form: Form
    ratio_ends: Ends
    bottom_ends: Ends


def straight_ends(
    number: float, linear: Form, ratios: Sequence[Quotient], confidence: float
) -> Ends | None:
    """number + linear + sum of w top / bottom, while each ratio and bottom is where it is said.

    The sum of w (top - r bottom) / B, r the true ratio and B the true bottom, is noise alone and
    linear in the draws. It differs from the error of the sum of ratios by the sum of
    w (bottom / B - 1)(top / bottom - r), which is of second order and bounded.
    """
    reach: dict[object, Ends] = {}
    laws: dict[object, Law] = {}

    def add(form: Form, weight: Ends) -> None:
        for name, (scale, law) in form.items():
            low, high = sorted(scale * end for end in weight)
            before = reach.get(name, (0.0, 0.0))
            reach[name], laws[name] = (before[0] + low, before[1] + high), law

    add(linear, (1.0, 1.0))
    rest = 0.0
    for part in ratios:
        (low, high), (least, most) = part.ratio_ends, part.bottom_ends
        if least <= 0 <= most or not math.isfinite(high - low):
            return None
        at = part.top / part.bottom
        number += part.weight * at
        bent = max(abs(part.bottom / least - 1), abs(part.bottom / most - 1))
        rest += abs(part.weight) * bent * max(abs(at - low), abs(high - at))
        per = product_ends((part.weight, part.weight), (1 / most, 1 / least))
        add(part.top_form, per)
        add(part.bottom_form, product_ends(per, (-high, -low)))
    # by peakedness the widest weights give the widest law
    widest = {name: (max(abs(low), abs(high)), laws[name]) for name, (low, high) in reach.items()}
    half = half_width(draws_of(widest), confidence) + rest
    return number - half, number + half
