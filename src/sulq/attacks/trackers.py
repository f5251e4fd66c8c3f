"""Averaging, differencing and membership: one person's value from many sums that hold it.

Fresh noise on the same sum averages out; the ledger, not the cache, must see to it (TB.1, G.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np

from sulq.answers.oracle import Oracle
from sulq.answers.statistics import count
from sulq.attacks.asking import (
    ALONE,
    Floats,
    cells,
    everybody,
    most_parts,
    part_of,
    right_bits,
    signed,
    signs,
    told,
)
from sulq.attacks.result import AttackResult, best_guess, guessed
from sulq.attacks.target import ROW, SECRET, Bits, Target
from sulq.errors import Refused
from sulq.kernel.query.expressions import Expression, col
from sulq.kernel.query.sum_query import MOST_TERMS, SumQuery

Asked = tuple[SumQuery, Floats | float]
"""A question, and the signs that its answer is read with."""


def repeats(target: Target, times: int = 400, seed: int = 0) -> AttackResult:
    """Everybody's bit, asked again and again in the same words."""
    secrets = target.secrets(seed)
    oracle = target.publish(secrets)
    question = everybody(oracle)
    return _averaged("averaging repeats", target, oracle, secrets, ((question, 1.0),) * times)


def rewordings(target: Target, times: int = 400, seed: int = 0) -> AttackResult:
    """The same question in other words; a store that knows questions by their text is passed by."""
    secrets = target.secrets(seed)
    oracle = target.publish(secrets)
    asked = ((worded(oracle, place), 1.0) for place in range(times))
    return _averaged("averaging rewordings", target, oracle, secrets, asked)


def disguises(target: Target, times: int = 20, seed: int = 0) -> AttackResult:
    """Different questions with the same content: each bit behind a public sign; whole promise.

    No store can see through it, for the questions do differ. This reaches the bound.
    """
    secrets = target.secrets(seed)
    oracle = target.publish(secrets)
    times = most_parts(target.promise, times)
    people = target.rows - 2

    def asked() -> Iterator[Asked]:
        for place in range(times):
            sign = signs(oracle, [place], people)[0].astype(np.float64)
            yield everybody(oracle, signed(place)), sign

    price = part_of(target.promise, times)
    return _averaged("averaging disguises", target, oracle, secrets, asked(), price)


def worded(oracle: Oracle, place: int) -> SumQuery:
    """A spelling of `everybody`: first by plain logic, then with conditions that always hold."""
    more, form = divmod(place, 6)
    flag = col(SECRET)
    spellings: tuple[Expression, ...] = (
        flag,
        ~~flag,
        flag & flag,
        ~(~flag | ~flag),
        flag | (flag & (col(ROW) < 0)),
        flag & ((col(ROW) < 7) | (col(ROW) >= 7)),
    )
    where = spellings[form]
    return SumQuery((ALONE,), where & (col(ROW) > -more) if more else where, (cells(oracle),))


def _averaged(
    attack: str,
    target: Target,
    oracle: Oracle,
    secrets: Bits,
    asked: Iterable[Asked],
    price: Fraction | None = None,
) -> AttackResult:
    """Ask until refused; a stored answer that comes back is no news."""
    total: Floats | float = 0.0
    seen: set[bytes] = set()
    paid = Fraction(0)
    for question, sign in asked:
        try:
            answer = oracle.ask(question, credits=price)
        except Refused:
            break
        paid += answer.credits
        noisy = told(answer)
        if noisy.tobytes() not in seen:
            seen.add(noisy.tobytes())
            total = total + noisy * sign
    noisy = np.atleast_1d(total) / max(1, len(seen)) if seen else np.empty(0)
    bound = best_guess(target.promise, paid)
    note = f"{len(seen)} different answers"
    return guessed(attack, right_bits(noisy, secrets), len(noisy), bound, paid, note)


# Differencing and trackers: one person's bit from questions that differ by that person (TB.1).


PEOPLE = 20


def differencing(target: Target, people: int = PEOPLE, seed: int = 0) -> AttackResult:
    """How many have it, minus how many but for row k: a pair of counts for each of some people."""
    secrets = target.secrets(seed)
    oracle = target.publish(secrets)
    number, flag = col(ROW), col(SECRET)
    right = asked = 0
    paid = Fraction(0)
    try:
        whole = oracle.ask(count(where=flag))
        for k in _some(target, people, seed):
            others = oracle.ask(count(where=flag & (number != k)))
            right += (float(whole) - float(others) > 0.5) == bool(secrets[k])
            paid = max(paid, whole.credits + others.credits)
            asked += 1
    except Refused:
        pass
    bound = best_guess(target.promise, paid)
    return guessed("differencing", right, asked, bound, paid)


def tracker(target: Target, people: int = PEOPLE, seed: int = 0) -> AttackResult:
    """The general tracker: no question is about few rows, yet three of them single one out.

    With T half of the rows: |k and has it, or T| + |k and has it, or not T| - n.
    """
    secrets = target.secrets(seed)
    oracle = target.publish(secrets)
    number, flag = col(ROW), col(SECRET)
    half = number < target.rows // 2
    right = asked = 0
    paid = Fraction(0)
    for k in _some(target, people, seed):
        alone = flag & (number == k)
        try:
            first, second = (oracle.ask(count(where=alone | part)) for part in (half, ~half))
        except Refused:
            break
        # One of the two never depends on row k: the other half's rows are all in it.
        right += (float(first) + float(second) - target.rows > 0.5) == bool(secrets[k])
        paid = max(paid, first.credits + second.credits)
        asked += 1
    return guessed("general tracker", right, asked, best_guess(target.promise, paid), paid)


def everybody_differenced(target: Target, seed: int = 0) -> AttackResult:
    """Differencing on every second person at once: pairs of rows, minus one row of each.

    Two histograms over the public number of the row, with the whole promise.
    """
    secrets = target.secrets(seed)
    oracle = target.publish(secrets)
    price = part_of(target.promise, 2)
    pairs = oracle.ask(everybody(oracle, width=2), credits=price)
    singles = oracle.ask(everybody(oracle), credits=price)
    twos = told(pairs)
    noisy = twos - told(singles)[1::2][: len(twos)]
    right = right_bits(noisy, secrets[::2])
    paid = pairs.credits + singles.credits
    bound = best_guess(target.promise, paid)
    return guessed("differencing everybody", right, len(noisy), bound, paid)


def _some(target: Target, people: int, seed: int) -> list[int]:
    chosen = np.random.default_rng(seed + 1).permutation(target.rows)[:people]
    return [int(k) for k in chosen]


# Membership (Homer et al. 2008): is a known person in a group of which only means are told?
#
# Everybody has many public attributes, here the bits of `hashed`; the group is who has the secret.
# The group's noisy sums lean a little towards each of its members. At most Phi(mu/2) of all
# guesses can be right (TB.1): with or without one member are neighbours.


def membership(target: Target, attributes: int | None = None, seed: int = 0) -> AttackResult:
    """Guess for every person whether it is in the group, from the sums of its attributes.

    The likelihood ratio of "in" against "out" grows with <own signs, sums>; "in" adds one to it
    for each attribute, so half of that is where the guess turns.
    """
    secrets = target.secrets(seed)
    oracle = target.publish(secrets)
    wanted = most_parts(target.promise, min(attributes or target.promise.credits, MOST_TERMS))
    each = part_of(target.promise, wanted)
    question = SumQuery(tuple(signed(s) for s in range(wanted)), col(SECRET))
    try:
        answer = oracle.ask(question, credits=None if each is None else each * wanted)
    except Refused:
        return guessed("membership", 0, 0, 0.5, Fraction(0))
    sums: Floats = np.ravel(np.asarray(answer.value, dtype=np.float64))
    own = signs(oracle, range(wanted), target.rows)
    leaning = sums @ own / wanted
    right = int(np.sum((leaning > 0.5) == secrets))
    bound = best_guess(target.promise, answer.credits)
    note = f"{wanted} attributes"
    return guessed("membership", right, target.rows, bound, answer.credits, note)
