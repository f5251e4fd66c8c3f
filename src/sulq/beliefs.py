"""What an adversary may believe: confidence, posteriors, and how far the promise lets them move.

The adversary knows every other record, asks every question, and starts from any belief about one
record. Confidence is log(p / (1-p)), in nats; bits only for display (S4.4). Beliefs about one
record must not depend on other records: where records are copies of each other, what they say
together is not hidden (S2.4, S4.18).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from sulq.accounting.calibration import calibrate, meaning
from sulq.accounting.zcdp import simple_zcdp_epsilon
from sulq.errors import InvalidQuery
from sulq.noise.distributions import Law
from sulq.schema.promise import Promise

Value = TypeVar("Value", bound=Hashable)
BIT = math.log(2)


def conf(p: float) -> float:
    """log(p / (1-p)) in nats; infinite where it is certain. S0.1"""
    if not 0 <= p <= 1:
        raise InvalidQuery(f"a belief is a probability between 0 and 1, got {p!r:.40}")
    if p in (0, 1):
        return math.inf if p else -math.inf
    return math.log(p) - math.log1p(-p)


def conf_bits(p: float) -> float:
    """The same in bits, for display."""
    return conf(p) / BIT


def believed(confidence: float) -> float:
    """The probability with this confidence: the inverse of `conf`."""
    if confidence >= 0:
        return 1 / (1 + math.exp(-confidence))
    return math.exp(confidence) / (1 + math.exp(confidence))


def moved(prior: float, change: float) -> float:
    """A belief after its confidence rose by `change` nats."""
    return believed(conf(prior) + change)


def largest_move(change: float) -> float:
    """The most a probability moves when its confidence moves by `change`: tanh(c/4). S0.1"""
    return math.tanh(change / 4)


def most_moved_prior(change: float) -> float:
    """The prior that moves so far: 1 / (1 + e^{c/2}). S0.1"""
    return 1 / (1 + math.exp(change / 2))


def semantic_of_pure(epsilon: float) -> float:
    """The largest change of belief about a record that is independent of the others. S2.4"""
    return math.tanh(epsilon / 4)


def pure_of_semantic(change: float) -> float:
    """The epsilon that beliefs moving by at most `change` imply: 4 artanh(change). S2.3"""
    if not 0 <= change < 1:
        raise InvalidQuery(f"a change of belief lies in [0, 1), got {change!r:.40}")
    return 4 * math.atanh(change)


def move_of_copies(epsilon: float, copies: int) -> float:
    """The change of belief when `copies` records repeat one bit: tanh(n eps / 4). S2.4"""
    return math.tanh(copies * epsilon / 4)


def safe_for_unions(delta: float) -> float:
    """Every single value delta-safe makes every set of values 2 delta-safe. S0.2"""
    return 2 * delta


def is_safe(
    before: Mapping[Value, float], after: Mapping[Value, float], delta: float, of: set[Value]
) -> bool:
    """Whether confidence in "the value is in `of`" moved by at most delta, either way. S0.2"""
    then = math.fsum(p for value, p in before.items() if value in of)
    now = math.fsum(p for value, p in after.items() if value in of)
    return abs(conf(min(now, 1.0)) - conf(min(then, 1.0))) <= delta


@dataclass(frozen=True, slots=True)
class Observation:
    """One noisy answer, and what the true sum would be under each value of the hidden record."""

    answer: int
    law: Law
    sums: Mapping[Hashable, int]


def posterior(
    prior: Mapping[Value, float], transcript: Sequence[Observation]
) -> dict[Value, float]:
    """Bayes' rule, exactly as the noise is drawn, for one who knows all other records."""
    if abs(math.fsum(prior.values()) - 1) > 1e-9 or min(prior.values(), default=-1) < 0:
        raise InvalidQuery("a prior holds probabilities that add up to 1")
    weights = {value: math.log(p) if p else -math.inf for value, p in prior.items()}
    for seen in transcript:
        for value in weights:
            weights[value] += seen.law.log_pmf(seen.answer - seen.sums[value])
    top = max(weights.values())
    if top == -math.inf:
        raise InvalidQuery("no value in the prior could have given these answers")
    shares = {value: math.exp(weight - top) for value, weight in weights.items()}
    total = math.fsum(shares.values())
    return {value: share / total for value, share in shares.items()}


@dataclass(frozen=True, slots=True)
class Worst:
    """The most an adversary may believe, and how often that may be passed."""

    prior: float
    posterior: float
    change: float
    except_for: float
    subject: str
    spent: str

    def __str__(self) -> str:
        but = "" if not self.except_for else f" (but for a chance of {self.except_for:.2g})"
        return (
            f"someone who knew everyone else's record and believed {_percent(self.prior)} about"
            f" {self.subject} could, after {self.spent}, believe at most"
            f" {_percent(self.posterior)}{but}"
        )


def _percent(p: float) -> str:
    return f"{100 * p:.3g} %"


def worst(
    promise: Promise, prior: float, *, about: str | None = None, except_for: float | None = None
) -> Worst:
    """The most that may be believed after everything the promise will ever allow.

    `about`: "value" (what a record says) or "presence" (whether it is there, under add-remove,
    where a value costs twice). `except_for` is the chance that it is passed; default: delta.
    """
    steps, subject = _steps(promise, about)
    change, chance = _change(promise, steps, except_for, Fraction(1))
    spent = "everything this database will ever say"
    return Worst(prior, moved(prior, change), change, chance, subject, spent)


def worst_so_far(
    promise: Promise, spent: Fraction, prior: float, *, about: str | None = None
) -> Worst:
    """The same for the credits spent so far. Indicative: only the whole promise is one. G.1.4"""
    steps, subject = _steps(promise, about)
    share = min(Fraction(1), Fraction(spent) / promise.credits)
    change, chance = _change(promise, steps, None, share)
    return Worst(
        prior, moved(prior, change), change, chance, subject, "what was said so far (indicative)"
    )


def curve(promise: Promise, points: int = 99, *, about: str | None = None) -> list[Worst]:
    """Prior against worst posterior, for a chart."""
    return [worst(promise, (i + 1) / (points + 1), about=about) for i in range(points)]


def _steps(promise: Promise, about: str | None) -> tuple[int, str]:
    """How many neighbours apart the two worlds are, and how to call what is guessed."""
    added = promise.neighbours == "add-remove"
    chosen = about or ("presence" if added else "value")
    if chosen not in ("value", "presence") or (chosen == "presence" and not added):
        raise InvalidQuery(
            f'about must be "value", or "presence" under add-remove; got {about!r:.40}'
        )
    if chosen == "presence":
        return 1, "whether a record is there"
    return (2 if added else 1), "what a record says"  # to change a value: remove, then add


def _change(
    promise: Promise, steps: int, except_for: float | None, share: Fraction
) -> tuple[float, float]:
    """(rise of confidence, chance that it is passed), for any beliefs where that is proved."""
    said = meaning(calibrate(promise))
    if promise.noise == "laplace":
        return float(promise.epsilon * share * steps), 0.0
    chance = float(promise.delta) if except_for is None else except_for
    if not 0 < chance < 1:
        raise InvalidQuery(f"except_for must lie between 0 and 1, got {except_for!r:.40}")
    if said.rho is not None:
        return _gain(said.rho * share * steps**2, chance), chance if share else 0.0
    if steps > 1:
        raise InvalidQuery(f"{promise.noise} noise has no proved bound for two steps; ask presence")
    if share == 0:
        return 0.0, 0.0
    cap = None if said.hard_cap is None else float(said.hard_cap * share)
    if cap is not None and cap <= promise.epsilon:
        return cap, 0.0
    return float(promise.epsilon), said.tail


def _gain(rho: Fraction, chance: float) -> float:
    """The rise passed with at most this chance, for any beliefs and the discrete law itself.

    Pr[gain > e] <= e^{s (s+1) rho - s e} for s >= 1 (S4.1, TB.4): at s = sqrt(l / rho) that is
    rho + 2 sqrt(rho l), and 2 rho + l where s would fall below 1.
    """
    if rho == 0:
        return 0.0
    if rho > -math.log(chance):
        return float(2 * rho) - math.log(chance)
    return simple_zcdp_epsilon(rho, chance)
