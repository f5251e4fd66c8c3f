"""What an adversary may believe: posteriors, safe targets, and how far a promise lets them move.

The adversary knows every other record. Confidence is log(p / (1-p)), in nats; bits only for
display (S4.4). Beliefs about one record must not depend on other records: where records are
copies of each other, what they say together is not hidden (S2.4, S4.18).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import TypeVar

from sulq.beliefs.confidence import Worst, believed, conf, moved, tail, worst, worst_so_far
from sulq.errors import InvalidQuery
from sulq.kernel.noise.laws import Law
from sulq.kernel.schema.promise import Promise

__all__ = [
    "Observation",
    "Worst",
    "believed",
    "change_in",
    "conf",
    "conf_bits",
    "curve",
    "is_safe",
    "largest_move",
    "most_changed_set",
    "most_moved_prior",
    "move_of_copies",
    "moved",
    "posterior",
    "pure_of_semantic",
    "safe_for_unions",
    "semantic_of_pure",
    "tail",
    "worst",
    "worst_so_far",
]

Value = TypeVar("Value", bound=Hashable)
BIT = math.log(2)


def conf_bits(p: float) -> float:
    """Confidence in bits, for display. S4.4"""
    return conf(p) / BIT


def largest_move(change: float) -> float:
    """The most a probability moves when its confidence moves by `change`: tanh(c/4). S0.1"""
    return math.tanh(change / 4)


def most_moved_prior(change: float) -> float:
    """The prior that moves so far: 1 / (1 + e^{c/2}). S0.1"""
    return believed(-change / 2)


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


def change_in(
    before: Mapping[Value, float], after: Mapping[Value, float], of: Collection[Value]
) -> float:
    """How much confidence in "the value is in `of`" rose, in nats."""
    chosen = frozenset(of)
    start = _odds(before, chosen)
    if math.isinf(start):
        raise InvalidQuery("what was certain or impossible has no change of confidence")
    return _odds(after, chosen) - start


def _odds(beliefs: Mapping[Value, float], chosen: frozenset[Value]) -> float:
    """log(P / (1 - P)), without the cancellation of 1 - P."""
    inside = math.fsum(p for value, p in beliefs.items() if value in chosen)
    outside = math.fsum(p for value, p in beliefs.items() if value not in chosen)
    if inside == 0 or outside == 0:
        return math.inf if inside else -math.inf
    return math.log(inside) - math.log(outside)


def most_changed_set(
    before: Mapping[Value, float], after: Mapping[Value, float]
) -> tuple[frozenset[Value], float]:
    """Of all sets of values the one whose confidence rose most, and by how much. S0.2

    Its complement fell as much, so this is the largest change either way. The change is
    quasi-convex in (before, after): the values that gained most, down to some rank, form the set.
    """
    values = [value for value, p in before.items() if p > 0]
    if len(values) < 2:
        raise InvalidQuery("give beliefs with at least two possible values")
    left = frozenset(value for value in values if after[value] > 0)
    if len(left) < len(values):  # the others are out: what is left became certain
        return left, math.inf
    values.sort(key=lambda value: after[value] / before[value], reverse=True)
    then, now = (_cuts([beliefs[value] for value in values]) for beliefs in (before, after))
    changes = [late - early for early, late in zip(then, now, strict=True)]
    rank = max(range(len(changes)), key=changes.__getitem__)
    return frozenset(values[: rank + 1]), changes[rank]


def _cuts(chances: Sequence[float]) -> list[float]:
    """Confidence in "among the first k", for every k that leaves one out."""
    heads = list(accumulate(chances))[:-1]
    rests = list(accumulate(reversed(chances)))[-2::-1]
    return [math.log(head) - math.log(rest) for head, rest in zip(heads, rests, strict=True)]


def is_safe(
    before: Mapping[Value, float],
    after: Mapping[Value, float],
    delta: float,
    of: Collection[Value] | None = None,
) -> bool:
    """Whether confidence in "the value is in `of`" moved by at most delta, either way. S0.2

    Without `of`: in every set of values there is.
    """
    if of is None:
        return most_changed_set(before, after)[1] <= delta
    return abs(change_in(before, after, of)) <= delta


@dataclass(frozen=True, slots=True)
class Observation:
    """One noisy answer, and what the true sum would be under each value of the hidden record.

    `sources` are the receipts it was derived from (`Answer.sources`), if it was.
    """

    answer: int
    law: Law
    sums: Mapping[Hashable, int]
    sources: tuple[int, ...] = ()


def posterior(
    prior: Mapping[Value, float], transcript: Sequence[Observation]
) -> dict[Value, float]:
    """Bayes' rule, exactly as the noise is drawn, for one who knows all other records.

    What was derived from earlier answers repeats their noise: it tells nothing that they, which
    belong into the transcript, do not, and is left out.
    """
    if abs(math.fsum(prior.values()) - 1) > 1e-9 or min(prior.values(), default=-1) < 0:
        raise InvalidQuery("a prior holds probabilities that add up to 1")
    weights = {value: math.log(p) if p else -math.inf for value, p in prior.items()}
    for seen in transcript:
        if seen.sources:
            continue
        for value in weights:
            weights[value] += seen.law.log_pmf(seen.answer - seen.sums[value])
    top = max(weights.values())
    if top == -math.inf:
        raise InvalidQuery("no value in the prior could have given these answers")
    shares = {value: math.exp(weight - top) for value, weight in weights.items()}
    total = math.fsum(shares.values())
    return {value: share / total for value, share in shares.items()}


def curve(
    promise: Promise,
    points: int = 99,
    *,
    about: str | None = None,
    spent: Fraction | None = None,
) -> list[Worst]:
    """Prior against worst posterior, for a chart; with `spent` credits: so far, indicative."""
    priors = [(i + 1) / (points + 1) for i in range(points)]
    if spent is None:
        return [worst(promise, prior, about=about) for prior in priors]
    return [worst_so_far(promise, spent, prior, about=about) for prior in priors]
