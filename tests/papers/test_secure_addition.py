"""Secure addition by enumeration: what each party can see, for every sum, mask and noise. V.4"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

import sulq.database.sharing as sharing
from sulq.kernel.accounting.loss import coupling_factor, parts_slack
from sulq.kernel.noise.laws import DiscreteGaussian, DiscreteLaplace, Law
from sulq.shares import Joint, share_law, totals

NAMES = ("a", "b", "c")


def messages(
    patch: pytest.MonkeyPatch, inputs: Sequence[int], pairs: dict[str, int], modulus: int
) -> tuple[int, ...]:
    """What the owners send, with the product's own signs and these masks of each pair."""
    patch.setattr(
        sharing, "_stream", lambda _, one, two, *more: [pairs["".join(sorted(one + two))]]
    )
    owners, sent = NAMES[: len(inputs)], []
    for name, value in zip(owners, inputs, strict=True):
        joint = Joint(name, owners, 1, (), ())
        secret: Any = None
        (mask,) = sharing._masks(secret, joint, "", 1)
        sent.append((value + mask) % modulus)
    return tuple(sent)


def all_masks(owners: int, modulus: int) -> list[dict[str, int]]:
    pairs = ["".join(pair) for pair in itertools.combinations(NAMES[:owners], 2)]
    every = itertools.product(range(modulus), repeat=len(pairs))
    return [dict(zip(pairs, drawn, strict=True)) for drawn in every]


@pytest.mark.parametrize(("owners", "modulus"), [(2, 7), (3, 5)])
def test_messages_tell_the_total_and_nothing_else(
    owners: int, modulus: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For every split of every total: the same law of all messages, uniform on those that fit."""
    seen: dict[int, Counter[tuple[int, ...]]] = {}
    for inputs in itertools.product(range(modulus), repeat=owners):
        law = Counter(
            messages(monkeypatch, inputs, masks, modulus) for masks in all_masks(owners, modulus)
        )
        assert len(law) == modulus ** (owners - 1) and len(set(law.values())) == 1
        total = sum(inputs) % modulus
        assert all(sum(sent) % modulus == total for sent in law)
        assert seen.setdefault(total, law) == law
        for few in range(1, owners):  # of fewer messages nothing depends on the inputs
            part = Counter(sent[:few] for sent in law.elements())
            assert len(part) == modulus**few and len(set(part.values())) == 1


def test_two_owners_hide_from_the_third_who_knows_its_masks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    modulus = 5
    seen: dict[tuple[int, int, int], Counter[tuple[int, ...]]] = {}
    for one, two in itertools.product(range(modulus), repeat=2):
        for own in itertools.product(range(modulus), repeat=2):
            masks = [{"ab": k, "ac": own[0], "bc": own[1]} for k in range(modulus)]
            law = Counter(messages(monkeypatch, (one, two, 0), each, modulus) for each in masks)
            known = ((one + two) % modulus, *own)
            assert seen.setdefault(known, law) == law


@cache
def wrapped(law: Law, modulus: int) -> np.ndarray:
    """The law of a draw, modulo."""
    found = np.zeros(modulus)
    for t in range(-100, 101):
        found[t % modulus] += law.pmf(t)
    return found


def view(sums: Sequence[int], noises: Sequence[Law], modulus: int) -> np.ndarray:
    """The law of what honest owners' messages say in the end: their total with their noises."""
    found = np.zeros(modulus)
    found[sum(sums) % modulus] = 1.0
    for noise in noises:
        chances = wrapped(noise, modulus)
        found = sum(found[t] * np.roll(chances, t) for t in range(modulus))
    return found


@pytest.mark.sample(3)
@pytest.mark.parametrize("modulus", [5, 41])
@pytest.mark.parametrize(("owners", "colluding"), [(2, 0), (3, 0), (3, 1), (5, 2)])
def test_v4_pure_epsilon_for_the_analyst_and_those_who_collude(
    owners: int, colluding: int, modulus: int
) -> None:
    """One person moves one honest owner's sum by 1: every view is within exp(1/scale), whoever of
    the honest owners holds the person, and one owner more who colludes breaks it."""
    scale = Fraction(3, 2)
    part = share_law(DiscreteLaplace(scale), owners - colluding)
    bound = math.exp(float(1 / scale)) * (1 + 1e-9)

    def worst(honest: int) -> float:
        found = 0.0
        for sums in itertools.product((0, 1), repeat=honest):
            for person in range(honest):
                other = list(sums)
                other[person] += 1
                one, two = (view(each, [part] * honest, modulus) for each in (sums, other))
                found = max(found, float(np.max(one / two)), float(np.max(two / one)))
        return found

    assert worst(owners - colluding) <= bound
    assert worst(owners) <= bound  # nobody colludes: all noises stay in
    if modulus > 5 and owners - colluding > 1:
        assert worst(owners - colluding) > 0.98 * bound  # the noise is not larger than it must be
        assert worst(owners - colluding - 1) > 1.3 * bound


def test_v4_gaussian_parts_lose_what_is_charged() -> None:
    """The hockey-stick of two parts, beside that of one draw and the slack of V.4."""
    for variance, epsilon in ((Fraction(2), 0.5), (Fraction(3), 1.0)):
        whole = DiscreteGaussian(variance)
        part = share_law(whole, 2)
        reach = range(-60, 61)
        one = np.convolve([part.pmf(t) for t in reach], [part.pmf(t) for t in reach])
        plain = np.array([whole.pmf(t) for t in range(-120, 121)])

        def lost(chances: np.ndarray, epsilon: float = epsilon) -> float:
            return float(np.maximum(chances[1:] - math.exp(epsilon) * chances[:-1], 0).sum())

        slack = parts_slack(variance / 2, 2) * coupling_factor(Fraction(epsilon))
        assert lost(one) != lost(plain)
        assert lost(one) <= lost(plain) + float(slack)


def test_wrapping_around_does_not_hurt_and_is_seen() -> None:
    assert totals([[2**256 - 5], [3]]) == [-2]
    assert totals([[2**255 - 1, 1], [0, 1]]) is None  # no table has such a total
    assert totals([[2**216 - 1], [0]]) == [2**216 - 1]
    assert totals([[2**256 - 2**216], [0]]) is None
