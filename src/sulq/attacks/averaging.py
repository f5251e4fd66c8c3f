"""Averaging: the same thing asked again, in the same words, in others, and behind public signs.

Fresh noise on the same sum averages out; the ledger, not the cache, must see to it (TB.1, G.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np

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
from sulq.attacks.finding import Finding, best_guess, guessed
from sulq.attacks.target import ROW, SECRET, Bits, Target
from sulq.errors import Refused
from sulq.oracle import Oracle
from sulq.query.expressions import Expression, col
from sulq.query.sum_query import SumQuery

Asked = tuple[SumQuery, Floats | float]
"""A question, and the signs that its answer is read with."""


def repeats(target: Target, times: int = 400, seed: int = 0) -> Finding:
    """Everybody's bit, asked again and again in the same words."""
    secrets = target.secrets(seed)
    oracle = target.publish(secrets)
    question = everybody(oracle)
    return _averaged("averaging repeats", target, oracle, secrets, ((question, 1.0),) * times)


def rewordings(target: Target, times: int = 400, seed: int = 0) -> Finding:
    """The same question in other words; a store that knows questions by their text is passed by."""
    secrets = target.secrets(seed)
    oracle = target.publish(secrets)
    asked = ((worded(oracle, place), 1.0) for place in range(times))
    return _averaged("averaging rewordings", target, oracle, secrets, asked)


def disguises(target: Target, times: int = 20, seed: int = 0) -> Finding:
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
) -> Finding:
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
