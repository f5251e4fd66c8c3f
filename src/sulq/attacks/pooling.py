"""Pooling: analysts who share what they were told, and databases that hold the same person.

Shares lie inside one lifetime budget, so analysts together can do no more than one (TB.1).
Databases do not know of each other: their losses add up, as mu^2 (TB.1), unless one population
account stands above them.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sulq.attacks.asking import (
    Floats,
    everybody,
    most_parts,
    part_of,
    right_bits,
    signed,
    signs,
    told,
)
from sulq.attacks.result import ALARM, AttackResult, best_guess, guessed
from sulq.attacks.target import Target
from sulq.errors import Refused
from sulq.kernel.accounting.pricing import COARSE


def analysts(
    target: Target, analysts: int = 64, different: bool = False, seed: int = 0
) -> AttackResult:
    """Everybody's bit by each of so many analysts, for all of their shares; then the mean.

    They ask the same, or each the same thing in a disguise of its own.
    """
    secrets = target.secrets(seed)
    oracle = target.publish(secrets)
    pool = target.analysts(oracle, most_parts(target.promise, analysts))
    coarse = target.promise.noise in COARSE
    heard: dict[bytes, Floats] = {}
    cost: dict[bytes, Fraction] = {}
    for place, analyst in enumerate(pool):
        question = everybody(oracle, signed(place)) if different else everybody(oracle)
        try:
            answer = analyst.ask(question, credits=None if coarse else analyst.remaining)
        except Refused:
            continue
        noisy = told(answer)
        sign = signs(oracle, [place], len(noisy))[0] if different else 1
        heard[noisy.tobytes()] = noisy * sign
        cost[noisy.tobytes()] = answer.credits
    paid = sum(cost.values(), Fraction(0))  # one answer told to many is one loss
    noisy = np.mean(list(heard.values()), axis=0) if heard else np.empty(0)
    name = "pooled analysts, disguised" if different else "pooled analysts"
    bound = best_guess(target.promise, paid)
    note = f"{len(pool)} analysts, {len(heard)} different answers"
    return guessed(name, right_bits(noisy, secrets), len(noisy), bound, paid, note)


def databases(target: Target, databases: int = 4, seed: int = 0) -> AttackResult:
    """The same people in several databases, each asked for all of its own promise.

    The bound is that of the losses added up; each database's own is passed, and no database can
    help it: only an account of the population could (Duan 4.2, 7.2).
    """
    secrets = target.secrets(seed)
    price = part_of(target.promise, 1)
    total: Floats | float = 0.0
    paid = Fraction(0)
    for _ in range(databases):
        oracle = target.publish(secrets)
        answer = oracle.ask(everybody(oracle), credits=price)
        total = total + told(answer)
        paid = max(paid, answer.credits)
    noisy = np.atleast_1d(total) / databases
    bound = best_guess(target.promise, paid, databases)
    own = best_guess(target.promise, paid)
    found = guessed(
        "several databases", right_bits(noisy, secrets), len(noisy), bound, databases * paid
    )
    passed = "passed" if found.reached > own + ALARM * found.error else "not visibly passed"
    note = (
        f"{databases} databases; the bound of one alone, {own:.3f}, is {passed}:"
        " where a person is in several, keep one population account over them"
    )
    return guessed(found.attack, right_bits(noisy, secrets), len(noisy), bound, found.credits, note)
