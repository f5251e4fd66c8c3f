"""P.4 by enumeration: keys with figures, every pair of neighbours, the exact law of what is shown.

A table is a list of persons, a person a few rows, a row a key and a value from -1 to 1 (None: the
value is missing). What is told: which keys reach the threshold by the noisy number of persons, that
number and the noisy sum of each of them, and the noisy total of these numbers.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from sulq.kernel.accounting.calibration import calibrate
from sulq.kernel.accounting.mechanisms import beyond, figures_price
from sulq.kernel.noise.laws import DiscreteGaussian
from sulq.kernel.schema.promise import Promise
from sulq.kernel.schema.sensitivity import keys_squared

Row = tuple[str, int | None]
Person = tuple[Row, ...]
KINDS: dict[str, tuple[int | None, ...]] = {"up": (None, 0, 1), "both": (-1, None, 1)}
REPLACE, ADDED = "replace", "add-remove"


def persons(keys: str, values: tuple[int | None, ...], most: int) -> list[Person]:
    """All that a person can have, also nothing."""
    rows = list(product(keys, values))
    return [
        person for size in range(most + 1) for person in combinations_with_replacement(rows, size)
    ]


def told(person: Person) -> tuple[dict[str, int], dict[str, int]]:
    """For which keys a person counts, and what they add to each sum."""
    sums: dict[str, int] = dict.fromkeys({key for key, _ in person}, 0)
    for key, value in person:
        sums[key] += value or 0
    return dict.fromkeys(sums, 1), sums


def squared(one: Person, two: Person, most: int, figures: int) -> Fraction:
    """How far these two move counts, sums and total, each by the spread of its noise: a sum and the
    total have `most` times the variance of a count."""
    (a, x), (b, y) = told(one), told(two)
    keys = a.keys() | b.keys()
    counts = sum((a.get(k, 0) - b.get(k, 0)) ** 2 for k in keys)
    sums = sum((x.get(k, 0) - y.get(k, 0)) ** 2 for k in keys)
    total = (sum(a.values()) - sum(b.values())) ** 2
    return counts + Fraction(figures * sums + total, most)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("figures", [0, 1, 2])
def test_p4_no_person_moves_further_than_is_charged(kind: str, most: int, figures: int) -> None:
    """Over as many keys as two persons can have; `figures` sums of the same values."""
    every = persons("abcdef"[: most + 1 + (most < 3)], KINDS[kind], most)
    width = 2 if kind == "both" else 1
    plain, crossed = Fraction(figures), Fraction(figures * width)
    none: Person = ()
    added = max(squared(one, none, most, figures) for one in every)
    assert added == keys_squared(most, plain, crossed, ADDED)
    shapes = every if most < 3 else [one for one in every if len(one) in (0, most)]
    firsts = {shape(one): one for one in shapes}.values()  # keys may be renamed
    moved = max(squared(one, two, most, figures) for one in firsts for two in shapes)
    bound = keys_squared(most, plain, crossed, REPLACE)
    assert moved <= bound
    if (kind == "up" and most < 3) or most == 1:
        assert moved == bound
    assert bound < 2 * moved  # where values have both signs and persons several rows: not far above


def shape(person: Person) -> tuple[tuple[int, tuple[str, ...]], ...]:
    """The person without the names of the keys."""
    found: dict[str, list[str]] = {}
    for key, value in person:
        found.setdefault(key, []).append(str(value))
    return tuple(sorted((len(values), tuple(sorted(values))) for values in found.values()))


def test_p4_golden_numbers() -> None:
    """Worked out by hand from the sums of squares. The first are M.1's: 2 of a row."""
    one, none = Fraction(1), Fraction(0)
    golden = {
        (1, none, none, REPLACE): Fraction(2),
        (1, none, none, ADDED): Fraction(2),
        (1, one, one, REPLACE): Fraction(4),  # count and sum of two keys: 2 (1 + 1)
        (1, one, one, ADDED): Fraction(3),
        (1, one, 2 * one, REPLACE): Fraction(4),
        (1, 2 * one, 4 * one, REPLACE): Fraction(8),  # two sums from -1 to 1: 2 * 2^2
        (4, none, none, REPLACE): Fraction(8),  # 4 keys against 4 others
        (4, one, one, REPLACE): Fraction(49, 4),  # 4 keys against 1: 5 + 9/4 + (4 + 16)/4
        (4, one, one, ADDED): Fraction(9),  # 4 + 16/4 + 4/4
        (2, one, one, REPLACE): Fraction(13, 2),  # 2 keys against 1: 3 + 1/2 + (2 + 4)/2
        (10, 3 * one, 3 * one, ADDED): Fraction(311, 10),  # one key: 1 + 1/10 + 3 * 100/10
    }
    for given, squares in golden.items():
        assert keys_squared(*given) == squares


# --- the exact law ------------------------------------------------------------------------------


COUNT = DiscreteGaussian(Fraction(1))
FAR = 8  # P(|N| > 8) < 1e-14
EACH = Fraction(1, 20)
EPSILONS = np.array([0.0, 0.1, 0.5, 1.0, 2.0, 4.0])
Pair = tuple[np.ndarray, np.ndarray]


Told = tuple[tuple[str, int, int], ...]
"""For each key that occurs the number of persons and the sum."""


@cache
def noisy(law: DiscreteGaussian, exact: int, low: int, high: int) -> np.ndarray:
    return np.array([law.pmf(value - exact) for value in range(low, high + 1)])


def wide(most: int) -> DiscreteGaussian:
    """The law of a sum and of the total."""
    return DiscreteGaussian(COUNT.sigma_squared * most)


def shown(count: int, exact: int, most: int, low: int, high: int) -> np.ndarray:
    """Held back; then each noisy count from the threshold on with each noisy sum."""
    threshold = 1 + beyond(COUNT.sigma_squared, EACH)
    end = threshold + 8
    if count == 0:
        return np.array([1.0] + [0.0] * ((end - threshold + 1) * (high - low + 1)))
    counts = noisy(COUNT, count, threshold, end)
    both = np.multiply.outer(counts, noisy(wide(most), exact, low, high))
    return np.array([1 - counts.sum(), *both.ravel()])


def hockey_sticks(pairs: list[Pair]) -> np.ndarray:
    """sup over events of P - e^eps Q at each epsilon, for independent coordinates."""
    p = q = np.array([1.0])
    for one, two in pairs:
        there = one + two > 1e-15
        p = np.multiply.outer(p, one[there]).ravel()
        q = np.multiply.outer(q, two[there]).ravel()
    return np.array([np.maximum(p - np.exp(epsilon) * q, 0).sum() for epsilon in EPSILONS])


def table(people: list[Person]) -> Told:
    counts, sums = Counter[str](), Counter[str]()
    for person in people:
        own, added = told(person)
        counts.update(own)
        sums.update(added)
    return tuple((key, counts[key], sums[key]) for key in sorted(counts))


@cache
def distances(one: Told, two: Told, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Of what is told, and of plain noisy counts and sums of common keys with the total."""
    a = {key: numbers for key, *numbers in one}
    b = {key: numbers for key, *numbers in two}
    seen: list[Pair] = []
    plain: list[Pair] = []
    for key in sorted(a.keys() | b.keys()):
        (c, x), (d, y) = a.get(key, (0, 0)), b.get(key, (0, 0))
        if (c, x) == (d, y):
            continue
        ends = min(x, y) - FAR - most, max(x, y) + FAR + most
        seen.append((shown(c, x, most, *ends), shown(d, y, most, *ends)))
        if c and d:
            ends_of_counts = min(c, d) - FAR, max(c, d) + FAR
            plain.append((noisy(COUNT, c, *ends_of_counts), noisy(COUNT, d, *ends_of_counts)))
            plain.append((noisy(wide(most), x, *ends), noisy(wide(most), y, *ends)))
    totals = [sum(count for _, count, _ in each) for each in (one, two)]
    if totals[0] != totals[1]:
        ends = min(totals) - FAR - most, max(totals) + FAR + most
        total = tuple(noisy(wide(most), each, *ends) for each in totals)
        seen.append(total)
        plain.append(total)
    return hockey_sticks(seen), hockey_sticks(plain)


@pytest.mark.parametrize(("most", "values"), [(1, (0, 1)), (1, (-1, 1)), (2, (0, 1))])
@pytest.mark.parametrize("neighbours", [REPLACE, ADDED])
def test_p4_every_pair_of_neighbours_is_within_the_price(
    most: int, values: tuple[int, ...], neighbours: str
) -> None:
    """What is told is never further apart than plain noisy numbers plus the extra delta."""
    extra = float(EACH) * most * (2 if neighbours == REPLACE else 1)
    every = list({table([one]): one for one in persons("ab", values, most)}.values())
    needed = 0.0
    for others in ([], [(("a", 1),)]):
        for before in every:
            for after in every if neighbours == REPLACE else [()]:
                one, two = table([*others, before]), table([*others, after])
                for pair in ((one, two), (two, one)):
                    seen, plain = distances(*pair, most)
                    assert (seen <= plain + extra + 1e-12).all()
                    needed = max(needed, float((seen - plain).max()))
    alone = COUNT.tail(beyond(COUNT.sigma_squared, EACH) - 1) / 2
    assert needed > 0.9 * alone  # the extra delta is not for nothing


def test_p4_a_person_with_many_keys_needs_many_times_the_delta() -> None:
    """Three keys of one's own, each seen with delta_t: any of them with nearly three times that.

    And rows are not counted: with three rows on one key it is seen no more often than with one.
    """
    at = 1 + beyond(COUNT.sigma_squared, EACH)
    each = COUNT.tail(at - 1 - 1) / 2
    assert each <= float(EACH)
    assert 2.5 * each < 1 - (1 - each) ** 3 <= 3 * float(EACH)
    assert table([(("a", 1), ("a", 1), ("a", 0))]) == (("a", 1, 2),)
    by_rows = COUNT.tail(at - 3 - 1) / 2  # had each row counted
    assert by_rows > 4 * float(EACH)


def test_p4_the_price_is_the_reach_and_the_delta_that_of_the_threshold() -> None:
    """Credits: L2^2 R_unit / R. Delta: m delta_t, twice under replace, with TB.8 of all numbers."""
    unit, delta, sums = 2**30, Fraction(1, 10**10), [2**30, 3 * 2**29]
    for neighbours, sides in ((REPLACE, 2), (ADDED, 1)):
        chosen = calibrate(Promise(1, "1e-6", 100, neighbours=neighbours))
        for most in (1, 4):
            squares = keys_squared(most, Fraction(2), Fraction(3), neighbours)
            reach = [(squares, (0,)), (squares / 2, (1,)), (Fraction(0), (2,))]
            cost = figures_price(chosen, most, unit, sums, reach, Fraction(7), delta)
            fine = chosen.unit_variance * squares / 7
            assert cost.law == DiscreteGaussian(fine * unit**2)
            assert cost.total == DiscreteGaussian(fine * most * unit**2)
            assert cost.sums == tuple(DiscreteGaussian(fine * most * s**2) for s in sums)
            due = {n: loss.credits_fraction for n, loss in cost.due(()).items()}
            assert due[0] == 7 and 0 <= due[1] - Fraction(7, 2) < Fraction(1, 2**63)
            assert due.keys() == {0, 1}
            over = cost.threshold - unit
            assert cost.law.tail(over - 1) / 2 <= float(delta / (most * sides)) * (1 + 1e-9)
            assert cost.law.tail(over - 1 - unit // 100) / 2 > float(delta / (most * sides))
            slack = sides * most * sum(1 / x.sigma_squared for x in (cost.law, *cost.sums))
            slack += 1 / cost.total.sigma_squared
            loss = cost.loss.delta_fraction - delta
            assert loss >= Fraction(21, 1000) * slack * Fraction(371, 100)  # 1 + e
            assert loss <= Fraction(21, 1000) * slack * Fraction(373, 100) + Fraction(1, 2**127)
