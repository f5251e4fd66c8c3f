"""Random well-formed row programs: bounds stay within 2^62, divisors are positive."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from sulq.kernel.schema import program as b

LARGEST = 2**62


@dataclass(frozen=True)
class Facts:
    """What a generator may use of a table."""

    numbers: Mapping[str, tuple[float, float]]
    texts: Mapping[str, tuple[str, ...]]
    codes: Mapping[str, tuple[int, ...]]
    flags: tuple[str, ...]
    edges: tuple[float, ...]
    """Values of the table near which leaves are worth cutting."""
    grids: Mapping[str, float] = field(default_factory=dict)
    """Steps to a unit on the grids that a vault keeps."""


Bounded = tuple[b.Integer, int, int]


def quantised(rng: random.Random, facts: Facts) -> Bounded:
    column = rng.choice(list(facts.numbers))
    low, high = facts.numbers[column]
    if column in facts.grids and rng.random() < 0.5:
        if rng.random() < 0.5:
            low, high = sorted(rng.uniform(low, high) for _ in range(2))
        per_unit = facts.grids[column]
        kept = b.Quantised(column, low, high, per_unit)
        return kept, math.floor(low * per_unit + 0.5), math.floor(high * per_unit + 0.5)
    if rng.random() < 0.25:
        return _extreme(rng, column, low, high)
    if rng.random() < 0.3:
        low, high = sorted(rng.uniform(low, high) for _ in range(2))
    per_unit = rng.choice(
        [1.0, 1.0, 2.0, 8.0, 0.1, 1 / 3, 100.0, 2.0**18 / max(high - low, 1e-9), rng.uniform(0, 9)]
    )
    per_unit = per_unit or 1.0
    if max(abs(low), abs(high)) * per_unit > 2**40:
        per_unit = 1.0
    node = b.Quantised(column, low, high, per_unit)
    return node, math.floor(low * per_unit + 0.5), math.floor(high * per_unit + 0.5)


def _extreme(rng: random.Random, column: str, low: float, high: float) -> Bounded:
    """Of any width from 10^-60 on, about 0 or about a whole number, on a grid that suits it."""
    width = 10 ** rng.uniform(-60, 16)
    middle = rng.choice([0.0, 0.0, float(rng.randint(-100, 100))])
    first, last = (min(max(middle + width * part, low), high) for part in (-rng.random(), 1.0))
    first = rng.choice([first, min(max(middle, low), high)])
    steps = rng.choice([2.0**24, 2.0**31, 2.0**18 / 3])
    per_unit = min(steps / width, 2.0**40 / max(abs(first), abs(last), 2.0**-200))
    per_unit = rng.choice([per_unit, 2.0 ** math.floor(math.log2(per_unit))])
    node = b.Quantised(column, first, last, per_unit)
    return node, math.floor(first * per_unit + 0.5), math.floor(last * per_unit + 0.5)


LARGE = (2**62, -(2**62), 2**62 - 1, 2**53 + 1, -(2**53), 10**18, 2**31)


def integer(rng: random.Random, facts: Facts, depth: int) -> Bounded:
    while True:
        node, low, high = _integer(rng, facts, depth)
        if max(abs(low), abs(high)) <= LARGEST:
            return node, low, high


def _integer(rng: random.Random, facts: Facts, depth: int) -> Bounded:
    if depth <= 0 or rng.random() < 0.15:
        pick = rng.random()
        if pick < 0.6:
            return quantised(rng, facts)
        if pick < 0.75:
            return b.FlagBit(rng.choice(facts.flags)), 0, 1
        if pick < 0.8:
            return b.Fixed(None), 0, 0
        constant = rng.choice([0, 1, -1, 7, -12, 10**6, rng.randrange(-(2**40), 2**40), *LARGE[:2]])
        return b.Fixed(constant), constant, constant

    def sub() -> Bounded:
        return integer(rng, facts, depth - 1)

    match rng.randrange(12):
        case 0:
            parts = [sub() for _ in range(rng.randrange(1, 4))]
            return (
                b.Added(tuple(p[0] for p in parts)),
                sum(p[1] for p in parts),
                sum(p[2] for p in parts),
            )
        case 1:
            node, low, high = sub()
            factor = rng.choice([0, 1, -1, 3, -5, 1000, rng.randrange(-(2**20), 2**20)])
            ends = (low * factor, high * factor)
            return b.BoundScaled(node, factor), min(ends), max(ends)
        case 2:
            (v, a, c), (w, d, e) = sub(), sub()
            ends = (a * d, a * e, c * d, c * e)
            return b.Multiplied(v, w), min(ends), max(ends)
        case 3:
            node, low, high = sub()
            bits = rng.choice([0, 1, 2, 5, 17, 31, 62])
            half = 2**bits // 2
            return b.Shifted(node, bits), (low + half) >> bits, (high + half) >> bits
        case 4:
            v, a, c = sub()
            w, d, e = sub()
            lift = 1 - d if rng.random() < 0.7 else 1
            w, d, e = (b.Added((w, b.Fixed(lift))), d + lift, e + lift)
            if d < 1:
                w, d, e = b.Greater(w, b.Fixed(1)), 1, max(e, 1)
            if e > LARGEST or lift > LARGEST:
                return v, a, c
            ends = tuple((2 * x + y) // (2 * y) for x in (a, c) for y in (d, e))
            return b.Divided(v, w), min(ends), max(ends)
        case 5 | 6:
            (v, a, c), (w, d, e) = sub(), sub()
            if rng.random() < 0.5:
                return b.Lesser(v, w), min(a, d), min(c, e)
            return b.Greater(v, w), max(a, d), max(c, e)
        case 7:
            node, low, high = sub()
            return b.Magnitude(node), 0, max(abs(low), abs(high))
        case 8:
            (v, a, c), (w, d, e) = sub(), sub()
            return b.BoundChoice(condition(rng, facts, depth - 1), v, w), min(a, d), max(c, e)
        case 9:
            (v, a, c), (w, d, e) = sub(), sub()
            return b.FirstOf(v, w), min(a, d), max(c, e)
        case 10:
            node, _, _ = sub()
            draws = [rng.choice([0, 1, rng.randrange(b.PRIME)]) for _ in range(4)]
            return b.HashedBit(node, (draws[0], draws[1], draws[2], draws[3])), 0, 1
        case _:  # the same value twice, as in a variance
            v, a, c = sub()
            ends = (a * a, a * c, c * c)
            return b.Multiplied(v, v), min(ends), max(ends)


def _constant(rng: random.Random, facts: Facts, low: int, high: int) -> int:
    pick = rng.random()
    if pick < 0.3:
        near = rng.choice([low, high, low - 1, high + 1, low + 1])
        return min(max(near, -LARGEST), LARGEST)
    if pick < 0.5:
        return math.floor(rng.choice(facts.edges))
    if pick < 0.6:
        return rng.choice(LARGE)
    return rng.randint(low, high)


def condition(rng: random.Random, facts: Facts, depth: int) -> b.Condition:
    operators = ("<", "<=", "=", "<>")
    if depth > 0 and rng.random() < 0.3:
        parts = tuple(condition(rng, facts, depth - 1) for _ in range(rng.randrange(0, 4)))
        return b.AllOf(parts) if rng.random() < 0.5 else b.AnyOf(parts)
    match rng.randrange(9):
        case 0 | 1 | 2:
            node, low, high = integer(rng, facts, min(depth, 1))
            fixed = b.Fixed(_constant(rng, facts, low, high))
            sides = (node, fixed) if rng.random() < 0.6 else (fixed, node)
            return b.Compared(rng.choice(operators), *sides)
        case 3:
            left, right = integer(rng, facts, depth - 1)[0], integer(rng, facts, depth - 1)[0]
            return b.Compared(rng.choice(operators), left, right)
        case 4:
            return b.FlagIs(rng.choice(facts.flags), rng.random() < 0.5)
        case 5:
            column = rng.choice([*facts.texts, *facts.codes])
            known = (facts.texts.get(column) or facts.codes[column])[:]
            values = tuple(rng.sample(known, rng.randrange(0, len(known))))
            return b.Among(column, values, rng.random() < 0.5)  # type: ignore[arg-type]
        case 6:
            column = rng.choice(list(facts.texts))
            base = rng.choice(facts.texts[column])
            at = rng.randrange(len(base) + 1)
            pattern = rng.choice(
                [base[:at] + "%", "%" + base[at:], base[:at] + "_" + base[at + 1 :]]
            )
            return b.Matches(column, pattern, rng.random() < 0.5)
        case 7:
            subject: b.Integer | b.Text = integer(rng, facts, depth - 1)[0]
            if rng.random() < 0.3:
                subject = b.Text(rng.choice(list(facts.texts)))
            return b.Missing(subject, rng.random() < 0.5)
        case _:
            return rng.choice([b.Always(), b.Never(), b.Always()])


def cells(rng: random.Random, facts: Facts) -> b.Cells:
    other = rng.random() < 0.5
    match rng.randrange(4):
        case 0:
            column = rng.choice(list(facts.texts))
            values = rng.sample(facts.texts[column], rng.randrange(1, len(facts.texts[column])))
            return b.CategoryCells(column, tuple(values), other)
        case 1:
            code = rng.choice(list(facts.codes))
            codes = rng.sample(facts.codes[code], rng.randrange(1, len(facts.codes[code])))
            return b.CategoryCells(code, tuple(codes), other)
        case 2:
            return b.FlagCells(rng.choice(facts.flags), other)
        case _:
            node, low, high = integer(rng, facts, rng.choice([0, 0, 2]))
            if rng.random() < 0.5:
                width, count = rng.choice([1, 3, 10]), rng.choice([1, 4, 40])
                edges = [low - 2 + width * i for i in range(count + 1)]
            else:
                wide = high - low + 10
                edges = sorted({low - 5 + rng.randrange(wide) for _ in range(rng.choice([3, 30]))})
                edges = edges if len(edges) > 1 else [low, low + 1]
            return b.BinCells(node, tuple(edges), other)


def program(rng: random.Random, facts: Facts) -> b.RowSums:
    rows = b.Always() if rng.random() < 0.3 else condition(rng, facts, 2)
    depth = rng.choice([0, 1, 2, 3, 4])
    terms = [integer(rng, facts, depth)[0] for _ in range(rng.choice([1, 1, 2, 3]))]
    if rng.random() < 0.3:  # a mean: a value and how often it is there
        there = b.BoundChoice(b.Missing(terms[0], True), b.Fixed(1), b.Fixed(0))
        terms.append(there)
    if rng.random() < 0.2:
        terms.append(b.Fixed(1))
    groups = tuple(cells(rng, facts) for _ in range(rng.choice([0, 0, 0, 1, 1, 2])))
    return b.RowSums(rows, tuple(terms), groups)
