"""Derived sums in user units: as `readings`, for sums that may share their noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from sulq.answers.error_bars import Draw as Stored
from sulq.answers.error_bars import Interval, Mixture, Reading, Value, around
from sulq.answers.readings import (
    _axes,
    _below,
    _edges,
    _estimates,
    _nearest,
    _rising,
    most_counted,
    read,
)
from sulq.kernel.noise.intervals import (
    Draw,
    combined,
    draws_of,
    half_width,
    ratio_interval,
    variance_interval,
    z_of,
)
from sulq.kernel.noise.laws import Law
from sulq.kernel.reuse.estimate import SAME, LinearEstimate

Floats = NDArray[np.float64]
MOST_TOLD = 1_000
"""Independent sums that say what they rest on."""


def read_derived(found: LinearEstimate, values: Sequence[int], size: int | None) -> Reading:
    """What derived sums say; there are at most so many rows."""
    own = _read(found, values, most_counted(found.bound, size))
    return replace(own, mixture=Mixture(_draws(found), found.exact))


def read_apart(
    found: LinearEstimate, values: Sequence[int], laws: Sequence[Law], size: int | None
) -> Reading:
    """Derived sums that are independent, as fresh ones; few of them also say what they rest on,
    so that what is made of several answers knows what these share."""
    own = read(found.bound, values, laws, size)
    if found.alike or found.bound.statistic.kind != "sums" or len(values) > MOST_TOLD:
        return own
    return replace(own, mixture=Mixture(_draws(found), found.exact, apart=True))


def _draws(found: LinearEstimate) -> tuple[tuple[Stored, ...], ...]:
    return tuple(
        tuple((s.seq, s.place, s.weight, s.law) for s in sources) for sources in found.estimates
    )


def _read(found: LinearEstimate, values: Sequence[int], size: int | None) -> Reading:
    match found.bound.statistic.kind:
        case "count" | "total":
            return _single(found, values, size)
        case "mean":
            return _mean(found, values)
        case "variance":
            return _variance(found, values)
        case "cdf":
            return _cdf(found, values, size)
    return _many(found, values, size)


def _single(found: LinearEstimate, values: Sequence[int], size: int | None) -> Reading:
    term = found.bound.terms[0]
    counts = found.bound.statistic.kind == "count"
    exact = values[0] * term.fine_step
    estimate = float(exact)
    least, most = -math.inf, math.inf
    if counts:
        least, most = 0.0, math.inf if size is None else float(size)
    elif size is not None:
        least, most = size * min(0.0, float(term.low)), size * max(0.0, float(term.high))

    def interval(confidence: float) -> Interval:
        low, high = around(estimate, found.half_width(0, confidence), least, most)
        return (math.floor(low), math.ceil(high)) if counts else (float(low), float(high))

    value: Value = _nearest(exact) if counts else estimate
    return Reading(value, math.sqrt(found.covariance()[0, 0]), interval)


def _many(found: LinearEstimate, values: Sequence[int], size: int | None) -> Reading:
    bound = found.bound
    histogram = bound.statistic.kind == "histogram"
    shape = bound.shape if histogram else (*bound.shape, len(bound.terms))
    sums = _estimates(bound, values).reshape(shape)
    errors = np.sqrt(np.diag(found.covariance())).reshape(shape)
    least, most = -math.inf, math.inf
    if histogram:
        least, most = 0.0, math.inf if size is None else float(size)

    @cache  # asked of cell after cell
    def halves(confidence: float) -> Floats:
        each = [found.half_width(place, confidence) for place in range(len(values))]
        return np.array(each).reshape(shape)

    def interval(confidence: float) -> Interval:
        half, near = halves(confidence), np.clip(sums, least, most)
        return np.clip(near - half, least, most), np.clip(near + half, least, most)

    return Reading(sums, errors, interval, _axes(bound) if bound.groups else ())


def _mean(found: LinearEstimate, values: Sequence[int]) -> Reading:
    bound = found.bound
    counted, summed = _estimates(bound, values)[0].tolist()
    v = found.covariance()
    middle = float(bound.terms[1].middle)
    low, high = (float(end) + middle for end in (bound.terms[1].low, bound.terms[1].high))

    def cut(x: float) -> float:
        return min(max(x, low), high)

    def interval(confidence: float) -> Interval:
        """Fieller: (sum - t count)^2 <= z^2 (var sum - 2 t cov + t^2 var count)."""
        if counted > 0 and not found.gaussian:
            forms = found.form(0), found.form(1)
            ends = ratio_interval(
                summed, forms[1], counted, forms[0], confidence, low - middle, high - middle
            )
            return cut(middle + ends[0]), cut(middle + ends[1])
        z2 = z_of(confidence) ** 2
        a = counted**2 - z2 * v[0, 0]
        b = counted * summed - z2 * v[0, 1]
        c = summed**2 - z2 * v[1, 1]
        if counted <= 0 or a <= 0 or b * b < a * c:
            return low, high
        root = math.sqrt(b * b - a * c)
        return cut(middle + (b - root) / a), cut(middle + (b + root) / a)

    if counted <= 0:
        return Reading(cut(middle), high - low, interval)
    slope = np.array([-summed / counted, 1.0]) / counted
    error = math.sqrt(max(0.0, float(slope @ v @ slope)))
    return Reading(cut(middle + summed / counted), min(error, high - low), interval)


def _variance(found: LinearEstimate, values: Sequence[int]) -> Reading:
    bound = found.bound
    counted, summed, squared = _estimates(bound, values)[0].tolist()
    v = found.covariance()
    most = float((bound.terms[1].high - bound.terms[1].low) / 2) ** 2
    if counted <= 0:
        return Reading(most / 2, most, lambda confidence: (0.0, most))
    mean, square = summed / counted, squared / counted
    second = square + float(bound.terms[2].middle)
    bias = (v[1, 1] - 2 * mean * v[0, 1] + mean**2 * v[0, 0]) / counted**2  # S0.8
    value = second - mean**2 + float(bias)
    slope = np.array([2 * mean**2 - square, -2 * mean, 1.0]) / counted
    error = math.sqrt(max(0.0, float(slope @ v @ slope)))

    def interval(confidence: float) -> Interval:
        if not found.gaussian:
            shift = float(bound.terms[2].middle)
            forms = found.form(0), found.form(1), combined(found.form(2), shift, found.form(0))
            sums = (counted, summed, squared + shift * counted)
            ends = float(bound.terms[1].low), float(bound.terms[1].high)
            return variance_interval(sums, forms, confidence, *ends)
        z = z_of(confidence)
        if counted <= z * math.sqrt(v[0, 0]):
            return 0.0, most
        return min(max(value - z * error, 0.0), most), max(min(value + z * error, most), 0.0)

    return Reading(min(max(value, 0.0), most), min(error, most), interval)


def _errors_of(sums: Floats, covariance: Floats) -> Floats:
    """The standard error of each line's combination."""
    found: Floats = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", sums, covariance, sums), 0.0))
    return found


def _running(found: LinearEstimate, confidence: float) -> Floats:
    """Half-widths of the sums of the first 0, 1, ... cells, by the law of all their draws.

    Sums of draws of their own, with five significant bits in their number; those between take the
    next larger, which has their draws and more.
    """
    forms = [found.form(place) for place in range(len(found.estimates))]
    apart = sum(map(len, forms)) == len(set().union(*forms))
    halves, below = np.zeros(len(forms) + 1), dict[object, Draw]()
    for number, form in enumerate(forms, 1):
        below = combined(below, 1.0, form)
        spare = max(0, number.bit_length() - 5) if apart else 0
        if number % (1 << spare) == 0 or number == len(forms):
            halves[number] = half_width(draws_of(below), confidence) * (1 + SAME)
    for number in range(len(forms) - 1, 0, -1):
        halves[number] = halves[number] or halves[number + 1]
    return halves


def _cdf(found: LinearEstimate, values: Sequence[int], size: int | None) -> Reading:
    raw = _below(_estimates(found.bound, values)[:, 0])
    below = np.tri(len(raw), len(raw) - 1, -1)
    errors = _errors_of(below, found.covariance())
    most = math.inf if size is None else size
    rising = np.clip(_rising(raw), 0, most)

    def interval(confidence: float) -> Interval:
        half = z_of(confidence) * errors if found.gaussian else _running(found, confidence)
        low, high = _rising(raw - half), _rising(raw + half)
        return np.clip(np.minimum(low, rising), 0, most), np.clip(np.maximum(high, rising), 0, most)

    return Reading(rising, errors, interval, _edges(found.bound))
