"""Differencing and trackers: one person's bit from questions that differ by that person (TB.1)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sulq.attacks.asking import everybody, part_of, right_bits, told
from sulq.attacks.finding import Finding, best_guess, guessed
from sulq.attacks.target import ROW, SECRET, Target
from sulq.errors import Refused
from sulq.query.expressions import col
from sulq.query.statistics import count

PEOPLE = 20


def differencing(target: Target, people: int = PEOPLE, seed: int = 0) -> Finding:
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


def tracker(target: Target, people: int = PEOPLE, seed: int = 0) -> Finding:
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


def everybody_differenced(target: Target, seed: int = 0) -> Finding:
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
