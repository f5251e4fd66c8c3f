"""The loss of one bound question under given noise, in credits, for every account it touches.

A unit question at unit noise costs one credit. Gaussian: L2^2 R_unit / R credits (G.1, V.3).
Laplace: L1 b_unit / b. Nothing here reads data (invariant 2). Proof: docs/proofs/pricing.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from sulq.errors import InvalidQuery
from sulq.kernel.accounting.calibration import Calibration
from sulq.kernel.accounting.loss import Loss, coupling_factor, coupling_slack, parts_slack
from sulq.kernel.noise.laws import (
    LARGEST,
    DiscreteGaussian,
    DiscreteLaplace,
    Law,
    NoNoise,
    law_from_json,
)
from sulq.kernel.schema.bind import BoundQuery, BoundTerm, NoiseGrid
from sulq.kernel.schema.sensitivity import Sensitivity
from sulq.kernel.schema.trees import CountTree

_factor = lru_cache(maxsize=16)(coupling_factor)

COARSE = ("binomial", "huber")
"""Laws calibrated on the integer grid: whole credits, a row moves a coordinate by 0 or 1."""


FINEST = 60
LEAST = Fraction(1, 2**40)
"""Of the unit price: nothing is asked with less."""
COORDINATES = 10**9
"""A lifetime of answers whose TB.8 slack must fit what is set aside for it."""


def noise_grid(calibration: Calibration) -> NoiseGrid:
    """Where noise is drawn: 30 bits per unit, more where a tiny delta or a large epsilon needs it.

    (1 + e^eps) 0.021 COORDINATES / (R 4^bits) <= slack cap. Only economy: slack is charged.
    Laplace noise of whole-number sums stays on the whole numbers (S2.6).
    """
    if calibration.promise.noise in COARSE:
        return NoiseGrid(0)
    if calibration.promise.noise == "laplace":
        return NoiseGrid(30, whole=calibration.promise.lattice == "whole")
    room = calibration.slack_cap * calibration.unit_variance / COORDINATES
    needed = (_factor(calibration.promise.epsilon) / room).__ceil__().bit_length() // 2
    return NoiseGrid(min(max(30, needed), FINEST))


def check_askable(calibration: Calibration) -> None:
    """Refuse a promise whose own slack eats it: (1 + e^eps) grows past any grid. TB.8"""
    if calibration.promise.noise != "gaussian":
        return
    each = coupling_slack(calibration.unit_variance * 4 ** noise_grid(calibration).bits)
    lost = _factor(calibration.promise.epsilon) * each * calibration.credits
    if lost > calibration.slack_cap:
        raise InvalidQuery(
            f"epsilon = {calibration.promise.epsilon} is more than gaussian noise can"
            " keep account of, and hides nobody; take a smaller one, or laplace noise"
        )


def smallest_noise(calibration: Calibration) -> float:
    """The standard deviation if the whole budget went into one unit question."""
    match calibration.promise.noise:
        case "gaussian":
            return math.sqrt(calibration.unit_variance / calibration.credits)
        case "laplace":
            return math.sqrt(2 * (calibration.unit_scale / calibration.credits) ** 2)
    assert calibration.unit_law is not None  # noqa: S101
    return calibration.unit_law.standard_deviation()


@dataclass(frozen=True, slots=True)
class Price:
    """The noise of each term, and what it costs the accounts (by their number) it touches."""

    laws: tuple[Law, ...]
    losses: tuple[tuple[Loss, tuple[int, ...]], ...]
    agreed: Loss | None = None
    tree: CountTree | None = None
    worst: Loss = field(init=False)
    """The loss of the account that pays most."""
    share: Loss = field(init=False)
    """What an analyst's share pays: what was asked for, else the worst account's loss."""

    def __post_init__(self) -> None:
        credits = max((loss.credits for loss, _ in self.losses), default=0)
        delta = max((loss.delta for loss, _ in self.losses), default=0)
        object.__setattr__(self, "worst", Loss(credits, delta))
        object.__setattr__(self, "share", self.agreed or self.worst)

    @property
    def noise(self) -> str:
        """The laws as text: equal texts, equal noise."""
        return noise_text(self.laws)

    def coordinates(self, cells: int) -> list[Law]:
        """One law per coordinate of the answer: cells in order, terms within a cell.

        Of a distribution: the nodes of each tree, level by level.
        """
        if self.tree is not None:
            return self.tree.along(self.laws) * (cells // self.tree.leaves)
        return list(self.laws) * cells


def noise_text(laws: tuple[Law, ...]) -> str:
    return json.dumps([law.to_json() for law in laws], sort_keys=True, separators=(",", ":"))


@lru_cache(maxsize=1024)
def laws_of(noise: str) -> tuple[Law, ...]:
    """Read `noise_text` back."""
    return tuple(law_from_json(form) for form in json.loads(noise))


def derived_text(sources: Sequence[int]) -> str:
    """What stands in the ledger in place of a law of noise."""
    return json.dumps({"derived": list(sources)}, separators=(",", ":"))


def sources_of(noise: str) -> tuple[int, ...] | None:
    """Read `derived_text` back; None if it is a law of noise."""
    if not noise.startswith('{"derived":'):
        return None
    return tuple(json.loads(noise)["derived"])


def unit_cost(bound: BoundQuery, calibration: Calibration) -> Fraction:
    """What the question costs at unit noise: L2^2, L1, or the coordinates a row can change."""
    reach = [sensitivity for sensitivity, _ in bound.reach]
    return max((_cost(sensitivity, calibration) for sensitivity in reach), default=Fraction(0))


def _cost(sensitivity: Sensitivity, calibration: Calibration) -> Fraction:
    match calibration.promise.noise:
        case "gaussian":
            return sensitivity.l2_squared
        case "laplace":
            return sensitivity.l1
    return Fraction(sensitivity.coordinates)


def price(bound: BoundQuery, calibration: Calibration, intensity: Fraction) -> Price:
    """The price at `intensity` times the unit price: 4 halves Gaussian noise."""
    if intensity <= 0:
        raise InvalidQuery("a question needs more than 0 credits")
    noise = calibration.promise.noise
    if noise in COARSE:
        _check_coarse(bound, noise, intensity)
    else:
        _check_drawable(bound, calibration, intensity)
    laws = tuple(_law(term, calibration, intensity) for term in bound.terms)
    slack = _slack(laws, bound, calibration) if noise == "gaussian" else Fraction(0)
    losses = []
    for sensitivity, accounts in bound.reach:
        cost = _cost(sensitivity, calibration)
        if cost:
            paid = Loss.of(cost * intensity, slack) + calibration.timing
            losses.append((paid, accounts))
    return Price(laws, tuple(losses), tree=bound.tree)


def stored_price(
    bound: BoundQuery, calibration: Calibration, wanted: Price, noise: str
) -> Price | None:
    """An earlier answer with this noise in place of a new one, if it is at least as exact.

    It carries its own full price, which is due should the earlier charge not be found.
    """
    laws = laws_of(noise)
    ratio = Fraction(1)
    for term, old, new in zip(bound.terms, laws, wanted.laws, strict=True):
        match old, new:
            case DiscreteGaussian(sigma_squared=size), DiscreteGaussian(sigma_squared=most):
                unit = calibration.unit_variance * term.fine_unit**2
            case DiscreteLaplace(scale=size), DiscreteLaplace(scale=most):
                unit = calibration.unit_scale * term.fine_unit
            case _:
                if old != new:
                    return None
                continue
        if size > most:
            return None
        ratio = unit / size
    return replace(price(bound, calibration, ratio), laws=laws, agreed=wanted.worst)


def _law(term: BoundTerm, calibration: Calibration, intensity: Fraction) -> Law:
    if term.unit == 0:
        return NoNoise()  # a public constant, G.2.1
    match calibration.promise.noise:
        case "gaussian":
            return DiscreteGaussian(calibration.unit_variance / intensity * term.fine_unit**2)
        case "laplace":
            return DiscreteLaplace(calibration.unit_scale / intensity * term.fine_unit)
    assert calibration.unit_law is not None  # noqa: S101
    return calibration.unit_law


def _check_drawable(bound: BoundQuery, calibration: Calibration, intensity: Fraction) -> None:
    """Refuse a precision whose noise cannot be drawn, and say which credits can be asked for."""
    if calibration.promise.noise == "gaussian":
        least = Fraction(1)  # TB.8 is proved from a variance of 1 on
        sizes = [calibration.unit_variance * term.fine_unit**2 for term in bound.terms]
    else:
        least = Fraction(1, LARGEST)
        sizes = [calibration.unit_scale * term.fine_unit for term in bound.terms]
    sizes = [size for size in sizes if size]
    if all(least <= size / intensity <= LARGEST for size in sizes):
        return
    cost = unit_cost(bound, calibration)
    low, high = max(sizes) / LARGEST * cost, min(sizes) / least * cost
    if low > high:
        raise InvalidQuery("the sums of this question differ too much in size; ask them singly")
    raise InvalidQuery(
        f"this precision takes {_short(cost * intensity)} credits, and noise can be drawn for"
        f" {_short(low * 101 / 100)} to {_short(high * 99 / 100)} credits; ask for those"
    )


def _short(number: Fraction) -> str:
    """Three digits of a number that a float may be too small for."""
    with localcontext(Context(prec=3)):
        return f"{Decimal(number.numerator) / Decimal(number.denominator):.3g}"


def _slack(laws: tuple[Law, ...], bound: BoundQuery, calibration: Calibration) -> Fraction:
    """(1 + e^eps) times the total variation to rounded Gaussians, all coordinates. TB.8."""
    factor = _factor(calibration.promise.epsilon)
    sizes = bound.tree.sizes if bound.tree else (1,) * len(laws)
    cells = bound.cells // bound.tree.leaves if bound.tree else bound.cells
    return (cells * factor) * sum(
        size * coupling_slack(law.sigma_squared)
        for law, size in zip(laws, sizes, strict=True)
        if isinstance(law, DiscreteGaussian)
    )


def divided(
    bound: BoundQuery, calibration: Calibration, whole: Price, laws: tuple[Law, ...]
) -> Price:
    """The price of noise that several owners draw in parts: `laws` is what each of them draws.

    Laplace parts add up exactly. Parts of a Gaussian draw do but for a distance that is charged.
    V.4
    """
    factor = _factor(calibration.promise.epsilon)
    sizes = bound.tree.sizes if bound.tree else (1,) * len(laws)
    cells = bound.cells // bound.tree.leaves if bound.tree else bound.cells
    apart = Fraction(0)
    for size, law, part in zip(sizes, whole.laws, laws, strict=True):
        if isinstance(law, DiscreteGaussian) and isinstance(part, DiscreteGaussian):
            parts = law.sigma_squared / part.sigma_squared
            apart += size * parts_slack(part.sigma_squared, int(parts))
    more = Loss.of(0, cells * factor * apart)
    paid = tuple((loss + more, numbers) for loss, numbers in whole.losses)
    return replace(whole, laws=laws, losses=paid)


def _check_coarse(bound: BoundQuery, noise: str, intensity: Fraction) -> None:
    if intensity != 1:
        raise InvalidQuery(f"{noise} noise has one size; leave out within and credits")
    for term in bound.terms:
        if term.unit > 1 or term.lift != 1:
            raise InvalidQuery(
                f"{noise} noise answers counts and histograms, where a row adds 0 or 1;"
                " for other sums publish with gaussian or laplace noise"
            )
    several = bound.outer is not None and bound.outer.rows_each > 1
    if several or any(s.l2_squared > s.coordinates for s, _ in bound.reach):
        raise InvalidQuery(  # a shift of m in one coordinate is not m shifts of 1
            f"{noise} noise protects rows; for persons with several rows publish with"
            " gaussian or laplace noise"
        )


def positive(number: object, name: str) -> Fraction:
    """A number above 0, as it is spelled."""
    if hasattr(number, "item") and not hasattr(number, "__len__"):
        number = number.item()  # a NumPy scalar
    if isinstance(number, bool) or not isinstance(number, int | float | Fraction):
        raise InvalidQuery(f"{name} must be a number above 0, got {number!r:.60}")
    if isinstance(number, float):
        if not math.isfinite(number):
            raise InvalidQuery(f"{name} must be finite, got {number!r}")
        number = Fraction(repr(number))
    if number <= 0:
        raise InvalidQuery(f"{name} must be above 0, got {number}")
    return Fraction(number)


def finer(intensity: Fraction) -> Fraction:
    """Rounded up to 32 significant bits: short prices, never less exact than asked."""
    scale = Fraction(2) ** (
        32 - intensity.numerator.bit_length() + intensity.denominator.bit_length()
    )
    return Fraction(math.ceil(intensity * scale * (1 + Fraction(1, 2**30)))) / scale


def least_intensity(enough: Callable[[Fraction], bool]) -> Fraction:
    """The least intensity that is enough, to 2^-20 of it: bars on whole numbers jump. S2.6"""
    high = Fraction(1)
    while not enough(high):
        high *= 2
    low = high / 2
    while low > LEAST and enough(low):
        low, high = low / 2, low
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def grid_bits(rows: int, calibration: Calibration) -> int:
    """The leaf resolution: rounding at most 1 % of the noise of the most exact question there is.

    n rows are off by at most n/2 steps of 2^-k units; 2^k >= 50 n / (smallest noise). G.4.1
    """
    needed = 50 * rows / smallest_noise(calibration)
    return min(31, max(24, math.ceil(math.log2(max(needed, 1)))))
