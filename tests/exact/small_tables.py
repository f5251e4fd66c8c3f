"""Every transcript of a small table with its exact chance, and rows that keep the assumptions."""

from __future__ import annotations

from itertools import product

import numpy as np

from sulq.exact.domain import adds

COLUMNS = ("ill", "smoker")
CELLS = [dict(zip(COLUMNS, cell, strict=True)) for cell in product((False, True), repeat=2)]
MISSING = dict.fromkeys(COLUMNS)


def conditional(weights, least):
    """A law of the four cells near `weights` in which each column has `least` given the other."""
    wanted = np.array(weights).reshape(2, 2) / np.sum(weights)
    for share in np.linspace(0, 1, 41):
        law = (1 - share) * wanted + share / 4
        if min((law / law.sum(0)).min(), (law / law.sum(1, keepdims=True)).min()) >= least:
            return law.ravel()
    raise AssertionError("the uniform law keeps any least chance up to 1/2")


def sums_of(programs, laws):
    """The law of the rows' joint sums: {sums: chance}."""
    added = [adds(programs, cell) for cell in CELLS]
    law = {(0,) * len(added[0]): 1.0}
    for row in laws:
        following: dict[tuple[int, ...], float] = {}
        for place, p in law.items():
            for g, q in zip(added, row, strict=True):
                key = tuple(map(sum, zip(place, g, strict=True)))
                following[key] = following.get(key, 0.0) + p * q
        law = following
    return law


def moved(law, by):
    return {tuple(map(sum, zip(place, by, strict=True))): p for place, p in law.items()}


def apart(law, other, epsilon):
    """The hockey stick of two laws."""
    rise = np.exp(epsilon)
    return sum(max(p - rise * other.get(place, 0.0), 0.0) for place, p in law.items())
