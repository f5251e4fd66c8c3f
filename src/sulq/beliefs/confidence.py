"""The promise as what anyone may come to believe: confidence, and how far it can rise.

The adversary knows every other record, asks every question, and starts from any belief about one
record that does not depend on the others. Reporting only: floats. Proofs: docs/proofs/beliefs.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache

from sulq.errors import InvalidQuery
from sulq.kernel.accounting.calibration import Calibration, answer_loss, calibrate, meaning
from sulq.kernel.accounting.gaussian import tail_delta
from sulq.kernel.noise.laws import CentredBinomial, DiscreteHuber
from sulq.kernel.schema.promise import Promise

EVERYTHING = "everything this database will ever say"
SO_FAR = "what was said so far (indicative)"
USUAL_PRIOR = 0.4
"""The belief that sentences for people start from."""
NEAR = 1e-9
"""How far a quotient of floats may lie below the whole number it stands for."""
RARE = 1e-3
"""A tail above it is not said: then the wider bound at delta is."""
SCAN = 16
"""How many points a coarse law's rise is the best of, at 1/40 of its epsilon each."""


def conf(p: float) -> float:
    """log(p / (1-p)) in nats; infinite where it is certain. S0.1"""
    if not 0 <= p <= 1:
        raise InvalidQuery(f"a belief is a probability between 0 and 1, got {p!r:.40}")
    if p in (0, 1):
        return math.inf if p else -math.inf
    return math.log(p) - math.log1p(-p)


def believed(confidence: float) -> float:
    """The probability with this confidence: the inverse of `conf`."""
    if confidence >= 0:
        return 1 / (1 + math.exp(-confidence))
    return math.exp(confidence) / (1 + math.exp(confidence))


def moved(prior: float, change: float) -> float:
    """A belief after its confidence rose by `change` nats."""
    return believed(conf(prior) + change)


@dataclass(frozen=True, slots=True)
class Worst:
    """The most an adversary may believe, and how often that may be passed."""

    prior: float
    posterior: float
    change: float
    except_for: float
    subject: str
    spent: str
    near: tuple[float, float] | None = None
    """A smaller belief of the same promise, and the larger chance that it is passed. TB.2"""

    @property
    def limits(self) -> str:
        """The figures of a promise, each with its own chance, in the words used everywhere:
        "65 %, except with a chance below 1 in 4,500, and at most 70.5 %, except ..."."""
        said = f"{percent_up(self.posterior)} %{_rarely(self.except_for)}"
        if self.near is None:
            return said
        return f"{self.near_percent} %{_rarely(self.near[1])}, and at most {said}"

    @property
    def near_percent(self) -> str:
        """Of `near`: whole percent, or three digits where that would pass the larger belief."""
        belief = self.posterior if self.near is None else self.near[0]
        whole = belief_up(belief)
        return str(whole) if whole < 100 * self.posterior else percent_up(belief)

    def told(self, chance: float) -> Worst:
        """The same where everything may have been told elsewhere, with this chance."""
        near = None if self.near is None else (self.near[0], self.near[1] + chance)
        return replace(self, except_for=self.except_for + chance, near=near)

    def __str__(self) -> str:
        return (
            f"someone who knew everyone else's record and believed {100 * self.prior:.3g} % about"
            f" {self.subject} could, after {self.spent}, believe at most {self.limits}"
        )


def _rarely(chance: float) -> str:
    return f", except with a chance below {one_in(chance)}" if chance else ""


def one_in(chance: float) -> str:
    """ "1 in 4,500": 1 / chance to two digits, rounded down: said against ourselves."""
    times = int(1 / chance * (1 + NEAR))
    place = 10 ** max(0, len(str(times)) - 2)
    return f"1 in {times // place * place:,}"


def belief_up(p: float) -> int:
    """Whole percent, rounded up: a bound stays one."""
    return min(100, math.ceil(100 * p * (1 - 1e-12)))


def percent_up(p: float) -> str:
    """Three digits, rounded up: a bound stays one when it is printed."""
    return f"{Context(prec=3, rounding=ROUND_CEILING).plus(Decimal(100 * p * (1 - 1e-12))):f}"


def worst(
    promise: Promise,
    prior: float = USUAL_PRIOR,
    *,
    about: str | None = None,
    except_for: float | None = None,
) -> Worst:
    """The most that may be believed after everything the promise will ever allow.

    `about`: "value" (what a record says) or "presence" (whether it is there, under add-remove,
    where a value costs twice). `except_for` is the chance that it is passed; default: delta.
    """
    change, chance = _rise(promise, _worlds(promise, about), except_for, Fraction(1))
    subject, found = _subject(promise, about), _tail_at_epsilon(promise, about)
    near = None
    if except_for is None and chance < found[1] <= RARE:
        near = (moved(prior, found[0]), found[1])
    return Worst(prior, moved(prior, change), change, chance, subject, EVERYTHING, near)


@lru_cache(maxsize=256)
def _tail_at_epsilon(promise: Promise, about: str | None) -> tuple[float, float]:
    """(rise, chance that it is passed) at epsilon for each step between the worlds. TB.2"""
    rise = float(promise.epsilon) * _worlds(promise, about).steps
    return rise, tail(promise, rise, about=about)


def usual(promise: Promise, prior: float = USUAL_PRIOR) -> Worst:
    """The most that is believed but for the tail of a rise by epsilon; where that is not rare,
    `worst`, at delta. Both hold, each with its own chance. TB.2"""
    rise, chance = _tail_at_epsilon(promise, None)
    if chance > RARE:
        return worst(promise, prior)
    return Worst(prior, moved(prior, rise), rise, chance, _subject(promise, None), EVERYTHING)


def worst_so_far(
    promise: Promise,
    spent: Fraction,
    prior: float = USUAL_PRIOR,
    *,
    about: str | None = None,
    except_for: float | None = None,
) -> Worst:
    """The same for the credits spent so far. Indicative: only the whole promise is one. G.1.4"""
    share = min(Fraction(1), Fraction(spent) / promise.credits)
    change, chance = _rise(promise, _worlds(promise, about), except_for, share)
    return Worst(prior, moved(prior, change), change, chance, _subject(promise, about), SO_FAR)


def tail(
    promise: Promise, rise: float, *, about: str | None = None, two_candidates: bool = False
) -> float:
    """Pr[confidence in anything about one record ever rises by more than `rise`], at most. TB.2

    With `two_candidates` for one who is sure it is one of two values: less, where it is Gaussian.
    """
    worlds, calibration = _worlds(promise, about), calibrate(promise)
    said = meaning(calibration)
    never = promise.epsilon if promise.noise == "laplace" else said.hard_cap
    if never is not None and rise >= never * worlds.steps:
        return 0.0
    if promise.noise == "laplace":
        return 1.0
    if said.rho is not None:
        rho = float(said.rho) * worlds.steps**2
        if two_candidates:  # the grid is fine: the slack covers the law that is drawn, TB.8
            return min(1.0, tail_delta(math.sqrt(2 * rho), rise) + float(calibration.slack_cap))
        order = max(1.0, (rise / rho - worlds.drift) / 2)
        return min(1.0, math.exp(min(0.0, order * ((order + worlds.drift) * rho - rise))))  # S4.1
    _check_one_step(promise, worlds)
    loss = answer_loss(_law(calibration), calibration.credits)
    below = [rise * share / 32 for share in range(16, 32)]
    spent = (loss.delta(e, calibration.credits) / -math.expm1(e - rise) for e in below if e < rise)
    return min(1.0, *spent, 1.0)


@dataclass(frozen=True, slots=True)
class _Worlds:
    """How far apart the worlds are that are told apart, in neighbours.

    `drift` is the largest mean of the loss, in rho: 1 where all worlds are equally near. The
    absence of a record is one step from every value, and values are two steps apart: 3.
    """

    steps: int
    drift: int


def _worlds(promise: Promise, about: str | None) -> _Worlds:
    if not isinstance(promise, Promise):
        raise InvalidQuery(f"want a Promise, got {type(promise).__name__}")
    added = promise.neighbours == "add-remove"
    if about not in (None, "value", "presence") or (about == "presence" and not added):
        raise InvalidQuery(
            f'about must be "value", or "presence" under add-remove; got {about!r:.40}'
        )
    if not added:
        return _Worlds(1, 1)
    return _Worlds(2, 1) if about == "value" else _Worlds(1, 3)  # a value goes, another comes


def _subject(promise: Promise, about: str | None) -> str:
    if promise.neighbours == "add-remove" and about != "value":
        return "whether a record is there"
    return "what a record says"


@lru_cache(maxsize=256)
def _rise(
    promise: Promise, worlds: _Worlds, except_for: float | None, share: Fraction
) -> tuple[float, float]:
    """(rise of confidence, chance that it is passed) after this share of the promise."""
    chance = float(promise.delta) if except_for is None else except_for
    if promise.noise == "laplace":
        return float(promise.epsilon * share * worlds.steps), 0.0
    if not 0 < chance < 1:
        raise InvalidQuery(f"except_for must lie between 0 and 1, got {except_for!r:.40}")
    if share == 0:
        return 0.0, 0.0
    calibration = calibrate(promise)
    said = meaning(calibration)
    if said.rho is not None:
        return _gain(float(said.rho * share * worlds.steps**2), worlds.drift, chance), chance
    _check_one_step(promise, worlds)
    rise = _coarse_gain(calibration, math.ceil(calibration.credits * share), chance)
    cap = math.inf if said.hard_cap is None else float(said.hard_cap * share)
    return (cap, 0.0) if cap <= rise else (rise, chance)


def _gain(rho: float, drift: int, chance: float) -> float:
    """The rise passed with at most this chance, for any beliefs and the discrete law itself.

    Pr[gain > e] <= e^{s (s + drift) rho - s e} for s >= 1 (S4.1, TB.4): at s = sqrt(l / rho) that
    is drift rho + 2 sqrt(rho l).
    """
    log = -math.log(chance)
    order = max(1.0, math.sqrt(log / rho))
    return ((order + drift) * rho + log / order) * (1 + 1e-12)


def _coarse_gain(calibration: Calibration, times: int, chance: float) -> float:
    """The same by the exact account of a coarse law: Pr[gain > e] <= delta(e') / (1 - e^{e' - e}),
    so e = e' - log(1 - delta(e') / chance) for every e' with delta(e') < chance. S0.5, S4.14"""
    loss = answer_loss(_law(calibration), times)
    start = loss.epsilon(chance, times)
    spent = [(e, loss.delta(e, times)) for e in (start * (1 + k / 40) for k in range(1, SCAN + 1))]
    return min((e - math.log1p(-d / chance) for e, d in spent if d < chance), default=math.inf)


def _law(calibration: Calibration) -> CentredBinomial | DiscreteHuber:
    assert calibration.unit_law is not None  # noqa: S101
    return calibration.unit_law


def _check_one_step(promise: Promise, worlds: _Worlds) -> None:
    if worlds.steps > 1:
        raise InvalidQuery(f"{promise.noise} noise has no proved bound for two steps; ask presence")
