"""What follows when numbers lie in intervals: products, quotients, sums of weighted ratios."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from sulq.noise.distributions import Law
from sulq.noise.ratios import Ends, Form, draws_of
from sulq.noise.tails import Rounding, half_width

ANYTHING: Ends = (-math.inf, math.inf)
MOST_CORNERS = 5
"""Sums of more ratios than this have 2^n corners too many, and take the plain bound."""

MOST_HALVES = 4_096
_HALVES: dict[tuple[int, float, float], tuple[Law | Rounding, float]] = {}
"""Half-widths by law, step and confidence: what a law is said to hold, known to all."""


def looked_up(form: Form, confidence: float) -> float:
    """The half-width of a linear form. Cells of one question share law and step: found by them."""
    if len(form) != 1:
        return half_width(draws_of(form), confidence)
    ((scale, law),) = form.values()
    key = (id(law), scale, confidence)
    held = _HALVES.get(key)
    if held is None or held[0] is not law:
        if len(_HALVES) >= MOST_HALVES:
            _HALVES.clear()
        held = _HALVES[key] = (law, half_width(((scale, law),), confidence))
    return held[1]


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

    @property
    def slack(self) -> Ends:
        """How far the true term may be from the noisy one."""
        at = self.top / self.bottom if self.bottom else 0.0
        low, high = sorted(self.weight * (end - at) for end in self.ratio_ends)
        return low, high

    @property
    def shrinks(self) -> Ends | None:
        """What noisy bottom / true bottom may be; None where the true one may be 0."""
        least, most = self.bottom_ends
        if least <= 0 <= most:
            return None
        low, high = sorted((self.bottom / least, self.bottom / most))
        return low, high


def straight_ends(parts: Sequence[Quotient], confidence: float) -> Ends:
    """How far the true sum of w top / bottom may be from the noisy one: (below, above).

    With r the true ratio, B the true bottom and g = bottom / B, the sum of w (top - r bottom) / B
    is noise alone, linear in the draws: in size at most h(g). It is the sum of -g y, where y is
    how far the true term is from the noisy one. So the sum of y is at most the largest with
    sum of g y <= h(g) and each y within its slack, over all possible g. For a fixed g that is a
    knapsack; over g the worst is at a corner or at g = 1 (docs/proofs/error-bars.md).
    """
    slacks = [part.slack for part in parts]
    most = sum(high for _, high in slacks)
    least = sum(low for low, _ in slacks)
    ranges = [part.shrinks for part in parts]
    if len(parts) > MOST_CORNERS or not math.isfinite(most - least) or None in ranges:
        return least, most
    corners = {tuple(1.0 for _ in parts), *itertools.product(*(r for r in ranges if r))}
    below = above = 0.0
    for corner in corners:
        half = _linear_half(parts, corner, confidence)
        above = max(above, _knapsack(corner, slacks, half))
        below = max(below, _knapsack(corner, [(-high, -low) for low, high in slacks], half))
    return max(-below, least), min(above, most)


def _linear_half(parts: Sequence[Quotient], shrinks: Sequence[float], confidence: float) -> float:
    """The half-width of the sum of w (top - r bottom) / B, at the widest r allows (peakedness)."""
    reach: dict[object, Ends] = {}
    laws: dict[object, Law | Rounding] = {}
    for part, shrink in zip(parts, shrinks, strict=True):
        per = part.weight * shrink / part.bottom
        low, high = part.ratio_ends
        for form, ends in (
            (part.top_form, (per, per)),
            (part.bottom_form, (-low * per, -high * per)),
        ):
            for name, (scale, law) in form.items():
                first, last = sorted(scale * end for end in ends)
                before = reach.get(name, (0.0, 0.0))
                reach[name], laws[name] = (before[0] + first, before[1] + last), law
    widest = {name: (max(abs(low), abs(high)), laws[name]) for name, (low, high) in reach.items()}
    return half_width(draws_of(widest), confidence)


def _knapsack(costs: Sequence[float], slacks: Sequence[Ends], most: float) -> float:
    """The largest sum of y in slacks with sum of cost * y <= most; costs are positive."""
    total = sum(high for _, high in slacks)
    excess = sum(cost * high for cost, (_, high) in zip(costs, slacks, strict=True)) - most
    for cost, (low, high) in sorted(zip(costs, slacks, strict=True), reverse=True):
        if excess <= 0:
            break
        less = min(high - low, excess / cost)
        total, excess = total - less, excess - cost * less
    return total
