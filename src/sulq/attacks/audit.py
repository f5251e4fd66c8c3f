"""Black-box audit: a lower bound on the epsilon that answers really have, whatever made them.

One histogram over the public row numbers gives a noisy bit of every person: thousands of draws
of "the bit was 1" and "the bit was 0" for one price. Events that tell them apart are chosen on
one half of the draws and counted on the other (those fixed in advance: on all), and exact
binomial bounds, shared out over the events, turn the counts into a loss that is proved.

Half of what may go wrong is kept for one more count, of all draws at once: how many of the bits are
guessed (an audit in one run; Steinke, Nasr, Jagielski 2023, Mahloujifar et al. 2024). It is what
tells most about a Gaussian promise, where no single event does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from sulq.answers.oracle import Answer, Oracle
from sulq.attacks.result import AttackResult
from sulq.attacks.target import ROW, SECRET, Bits, Target
from sulq.kernel.accounting.calibration import answer_loss, calibrate
from sulq.kernel.accounting.gaussian import gaussian_epsilon
from sulq.kernel.query.expressions import col, lit
from sulq.kernel.query.sum_query import Statistic, SumQuery, group
from sulq.kernel.schema.promise import Promise

Values = NDArray[np.float64]
Event = Callable[[Values], NDArray[np.bool_]]
EPSILON = "epsilon proved"
DRAWS = 120_000
TESTED = 2
"""Events of each kind that are tested, the best on the training half."""
NORMAL = NormalDist()
TAILS = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2)
LEVELS = (*TAILS, *np.linspace(0.02, 0.98, 49).tolist(), *(1 - tail for tail in TAILS))


@dataclass(frozen=True, slots=True)
class Draws:
    """Noisy bits of many persons, and what they cost one person."""

    ones: Values
    zeros: Values
    credits: Fraction

    def halves(self) -> tuple[Draws, Draws]:
        """Every other draw, to choose events by; the rest, to test them."""
        return (
            Draws(self.ones[::2], self.zeros[::2], self.credits),
            Draws(self.ones[1::2], self.zeros[1::2], self.credits),
        )


def audit(
    target: Target,
    *,
    rows: int = DRAWS,
    repeats: int = 2,
    seed: int = 1,
    confidence: float = 0.95,
) -> AttackResult:
    """The epsilon proved of one vector question asked `repeats` times, beside the one paid for."""
    secrets = target.secrets(seed, rows)
    return judged("audit", target.promise, noisy_bits(target, secrets, repeats), confidence)


def audit_tables(
    target: Target, *, tables: int = 100, seed: int = 2, confidence: float = 0.95
) -> AttackResult:
    """The same by scalar questions: one for each of many tables that differ in one row."""
    secrets = target.secrets(seed, 2)
    question = SumQuery((lit(1),), (col(ROW) == 1) & col(SECRET))
    drawn: tuple[list[float], list[float]] = ([], [])
    paid = Fraction(0)
    for number in range(tables):
        secrets[1] = number % 2
        oracle = target.publish(secrets.copy())
        answer = oracle.ask(question, credits=all_credits(oracle))
        drawn[number % 2].append(float(values_of(answer)[0]))
        paid = max(paid, answer.credits)
    draws = Draws(np.array(drawn[1]), np.array(drawn[0]), paid)
    return judged("audit of scalars", target.promise, draws, confidence)


def noisy_bits(target: Target, secrets: Bits, repeats: int = 1) -> Draws:
    """Everybody's noisy bit: the mean of `repeats` answers to one question."""
    oracle = target.publish(secrets)
    question, credits = bits_question(len(secrets)), all_credits(oracle)
    answers = [oracle.ask(question, credits=credits) for _ in range(repeats)]
    values = np.mean([values_of(answer) for answer in answers], axis=0)
    paid = sum((answer.credits for answer in answers), Fraction(0))
    return Draws(values[secrets], values[~secrets], paid)


@lru_cache(maxsize=8)
def bits_question(rows: int) -> Statistic:
    """How many in row i have the secret, for each i. Equal bins bind at once; edges do not."""
    each = (group(col(ROW).coalesce(rows), bins=rows),)  # the last bin holds its upper end too
    return Statistic("histogram", SumQuery((lit(1),), col(SECRET), each))


def all_credits(oracle: Oracle, share: Fraction = Fraction(1)) -> Fraction | None:
    """A share of what is left: the most exact answer. The coarse laws come in one size only."""
    return oracle.remaining * share if oracle.promise.noise in ("gaussian", "laplace") else None


def values_of(answer: Answer) -> Values:
    return np.asarray(answer.value, dtype=np.float64).ravel()


def judged(attack: str, promise: Promise, draws: Draws, confidence: float) -> AttackResult:
    """The finding of an audit; `reached` is a lower bound at this confidence."""
    reached, event = lower_bound(promise, draws, confidence)
    return AttackResult(
        attack,
        EPSILON,
        reached,
        claimed_epsilon(promise, draws.credits),
        0.0,
        len(draws.ones) + len(draws.zeros),
        draws.credits,
        f"at delta {delta_of(promise, draws.credits):.3g}, proved with confidence"
        f" {confidence:.6g} by the event: {event}{_seen(promise, draws, confidence)}",
    )


def _seen(promise: Promise, draws: Draws, confidence: float) -> str:
    """What an audit of so many draws would have shown, in words."""
    number = len(draws.ones) + len(draws.zeros)
    short = smallest_shortfall(promise, draws.credits, number, confidence)
    exact = smallest_share(claimed_epsilon(promise, draws.credits), number, confidence)
    told = [f"noise short by {short:.0%}"] if short is not None else []
    told += [f"one exact answer in {math.floor(1 / exact):,}"] if exact is not None else []
    return f"; the smallest faults it sees: {', '.join(told)}" if told else ""


def delta_of(promise: Promise, credits: Fraction) -> float:
    """The delta at which epsilons are compared: the promise's, or for a coarse law half of its
    delta at epsilon 0, a point of the same curve where few draws already tell."""
    law = calibrate(promise).unit_law
    if law is None:
        return float(promise.delta)
    questions = max(1, math.ceil(credits))
    return answer_loss(law, questions).delta(0.0, questions) / 2  # S0.5


def claimed_epsilon(promise: Promise, credits: Fraction) -> float:
    """The epsilon that so many credits stand for, at `delta_of` them."""
    calibration = calibrate(promise)
    share = min(1.0, float(credits) / calibration.credits)
    if calibration.mu_squared is not None:
        mu = math.sqrt(float(calibration.mu_squared) * share)
        return gaussian_epsilon(mu, promise.delta)  # TB.1
    if calibration.unit_law is None:
        return float(promise.epsilon) * share  # S4.13
    questions = max(1, math.ceil(credits))
    loss = answer_loss(calibration.unit_law, questions)
    return loss.epsilon(delta_of(promise, credits), questions)


def proved_epsilon(promise: Promise, delta: float, likely: float, rare: float) -> float:
    """The epsilon below which no law has an event of chance >= likely here and <= rare there.

    e^eps >= (likely - delta) / rare; for a Gaussian promise, stronger, by its whole curve:
    mu >= z(likely) - z(rare), read at the promise's delta (TB.1, with the slack of TB.8).
    """
    calibration = calibrate(promise)
    if calibration.mu_squared is None:
        gain = likely - delta
        return max(0.0, math.log(gain / rare)) if gain > 0 else 0.0
    slack = float(calibration.slack_cap)
    likely, rare = likely - slack, rare + slack
    if not 0 < likely < 1 or not 0 < rare < 1 or likely <= rare:
        return 0.0
    mu = NORMAL.inv_cdf(likely) - NORMAL.inv_cdf(rare)
    return gaussian_epsilon(mu, promise.delta)


def guessed_epsilon(promise: Promise, delta: float, draws: Draws, alpha: float) -> float:
    """The epsilon below which nobody guesses so many of the bits, with noise of their own each.

    A fair bit is guessed with chance at most Phi(mu/2) (TB.1; Dong, Roth, Su 2022, by Blackwell),
    or (e^eps + delta) / (1 + e^eps); so the right guesses are no more than so many coins show.
    """
    right = int((draws.ones >= 0.5).sum()) + int((draws.zeros < 0.5).sum())
    chance = binomial_low(right, len(draws.ones) + len(draws.zeros), alpha)
    calibration = calibrate(promise)
    if calibration.mu_squared is None:
        return max(0.0, math.log((chance - delta) / (1 - chance))) if chance > 0.5 + delta else 0.0
    chance -= float(calibration.slack_cap)  # TB.8
    if not 0.5 < chance < 1:
        return 0.0
    return gaussian_epsilon(2 * NORMAL.inv_cdf(chance), promise.delta)


# --- what an audit can see ------------------------------------------------------------------------

SPREAD = 2.33
"""Standard errors to the bad side: what is said to be seen is seen in 99 of 100 audits."""
EVENTS = 4 * TESTED + 3


def smallest_shortfall(
    promise: Promise, credits: Fraction, draws: int, confidence: float
) -> float | None:
    """The least part by which noise may be too small and still be found; None: none is.

    Gaussian: by the bits guessed. Laplace: by the event "at least 1", on the half of the draws that
    events are tested on.
    """
    calibration = calibrate(promise)
    if calibration.unit_law is not None:
        return None
    for hundredths in range(1, 100):
        left = 1 - hundredths / 100  # of the spread
        if calibration.mu_squared is not None:
            share = min(1.0, float(credits) / calibration.credits)
            mu = math.sqrt(float(calibration.mu_squared) * share)
            right = _at_worst(NORMAL.cdf(mu / (2 * left)), draws, -1)
            found = binomial_low(right, draws, (1 - confidence) / 2)
            seen = found - float(calibration.slack_cap) > NORMAL.cdf(mu / 2)
        else:
            epsilon, side = claimed_epsilon(promise, credits), draws // 4
            alpha = (1 - confidence) / (8 * EVENTS)
            rare = _at_worst(math.exp(-epsilon / left) / 2, side, 1)
            low = binomial_low(_at_worst(0.5, side, -1), side, alpha)
            high = 1 - binomial_low(side - rare, side, alpha)
            seen = low > 0 and math.log(low / high) > epsilon
        if seen:
            return hundredths / 100
    return None


def smallest_share(epsilon: float, draws: int, confidence: float) -> float | None:
    """The least share of answers that may be exact and still be found: by the event "equal to 1",
    which noise alone never is."""
    side, alpha = draws // 2, (1 - confidence) / (8 * EVENTS)
    high = 1 - binomial_low(side, side, alpha)
    for hits in range(1, side + 1):
        if binomial_low(hits, side, alpha) > math.exp(epsilon) * high:
            return min(1.0, (hits + SPREAD * math.sqrt(hits) + SPREAD**2) / side)
    return None


def _at_worst(chance: float, trials: int, side: int) -> int:
    """A count of so many, `SPREAD` standard errors to one side."""
    far = side * SPREAD * math.sqrt(chance * (1 - chance) * trials)
    return min(trials, max(0, round(chance * trials + far)))


# --- events ---------------------------------------------------------------------------------------


def lower_bound(promise: Promise, draws: Draws, confidence: float) -> tuple[float, str]:
    """The largest epsilon proved by any event, family-wise, and that event."""
    training, testing = draws.halves()
    events = [(name, event, testing) for name, event in chosen(training)]
    events += [(f"exactly {bit}", _equal(float(bit)), draws) for bit in (0, 1)]
    events.append(("at least 1/2", _above(0.5), draws))
    alpha = (1 - confidence) / (8 * len(events))  # half of it: two directions, two bounds each
    delta = delta_of(promise, draws.credits)
    best = (guessed_epsilon(promise, delta, draws, (1 - confidence) / 2), "bits guessed")
    for name, event, counted in events:
        hits = [(int(event(side).sum()), len(side)) for side in (counted.ones, counted.zeros)]
        for here, there in (hits, hits[::-1]):
            low = binomial_low(*here, alpha)
            high = 1 - binomial_low(there[1] - there[0], there[1], alpha)
            best = max(best, (proved_epsilon(promise, delta, low, high), name))
    return best if best[0] > 0 else (0.0, "none")


def chosen(draws: Draws) -> list[tuple[str, Event]]:
    """The events of each kind that tell most on these draws."""
    pooled = np.concatenate([draws.ones, draws.zeros])
    levels = np.unique(np.quantile(pooled, LEVELS))
    # past all that was seen with the other bit: where clipped or porous noise ends
    beyond = np.array([draws.zeros.max(), draws.ones.max()])
    short = np.array([draws.zeros.min(), draws.ones.min()])
    values, counts = np.unique(pooled, return_counts=True)
    often = values[np.argsort(-counts, kind="stable")[:16]]
    kinds: list[list[tuple[str, Event]]] = [
        [(f"at least {t:.6g}", _above(t)) for t in levels]
        + [(f"above {t:.6g}", _above(np.nextafter(t, np.inf))) for t in beyond],
        [(f"at most {t:.6g}", _below(t)) for t in levels]
        + [(f"below {t:.6g}", _below(np.nextafter(t, -np.inf))) for t in short],
        [(f"equal to {t!r}", _equal(t)) for t in often.tolist()],
        [(f"lowest bit from 2^{bit}", _coarser(bit)) for bit in range(-60, 8, 2)],
    ]
    best: list[tuple[str, Event]] = []
    for kind in kinds:
        told = [_told(event(draws.ones), event(draws.zeros)) for _, event in kind]
        best += [kind[place] for place in np.argsort(told)[::-1][:TESTED]]
    return best


def _told(ones: NDArray[np.bool_], zeros: NDArray[np.bool_]) -> float:
    """log(p/q) with both moved three standard errors together (Wilson), the better direction."""
    bounds = []
    for side in (ones, zeros):
        n, z = len(side), 3.0
        middle = (side.mean() + z * z / (2 * n)) / (1 + z * z / n)
        half = z * math.sqrt(side.mean() * (1 - side.mean()) / n + z * z / (4 * n * n))
        half /= 1 + z * z / n
        bounds.append((max(middle - half, 1e-12), min(middle + half, 1.0)))
    (low1, high1), (low0, high0) = bounds
    return max(math.log(low1 / high0), math.log(low0 / high1))


def _above(t: float) -> Event:
    return lambda values: values >= t


def _below(t: float) -> Event:
    return lambda values: values <= t


def _equal(t: float) -> Event:
    return lambda values: values == t


def _coarser(bit: int) -> Event:
    return lambda values: lowest_bits(values) >= bit


def lowest_bits(values: Values) -> NDArray[np.int64]:
    """The exponent of the lowest binary digit of each value; 1024 for 0."""
    mantissas, exponents = np.frexp(values)
    whole = np.abs(np.ldexp(mantissas, 53)).astype(np.int64)
    lowest = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.where(whole == 0, 1024, exponents - 53 + lowest).astype(np.int64)


# --- exact binomial bounds ------------------------------------------------------------------------


def binomial_low(hits: int, trials: int, alpha: float) -> float:
    """Clopper-Pearson: the p with P(at least `hits` of `trials`) = alpha, from below."""
    if hits == 0:
        return 0.0
    low, high = 0.0, hits / trials
    for _ in range(60):
        middle = (low + high) / 2
        rare = middle <= 0 or beta_share(middle, hits, trials - hits + 1) <= alpha
        low, high = (middle, high) if rare else (low, middle)
    return low


def beta_share(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by its continued fraction."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_share(1 - x, b, a)
    log_front = a * math.log(x) + b * math.log1p(-x) - math.log(a)
    log_front += math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    tiny = 1e-300
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, 100_000):  # about sqrt(a + b) steps; Lentz
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / (1 + term * d or tiny)
            c = 1 + term / c or tiny
            fraction *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return math.exp(log_front) * fraction
