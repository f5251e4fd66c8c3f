"""What one row adds: the same as the engines' reference evaluator says, for any program."""

from __future__ import annotations

import random

from tests.kernel.engines import reference
from tests.kernel.engines.programs import Facts, program

from sulq.exact.domain import adds

FACTS = Facts(
    {"x": (-3.0, 7.5), "y": (0.0, 1.0)},
    {"t": ("a", "b", "c")},
    {"k": (1, 2, 9)},
    ("f", "g"),
    (0.0, 1.0, 2.5),
)
ROWS = {
    "x": (-9.0, -3.0, -0.5, 0.0, 0.1, 2.5, 7.5, 100.0, None),
    "y": (0.0, 0.3, 0.5, 1.0, None),
    "t": ("a", "b", "c", "elsewhere", None),
    "k": (1, 2, 9, 5, None),
    "f": (True, False, None),
    "g": (True, False, None),
}


def test_a_row_adds_what_the_reference_says():
    rng = random.Random(20261116)
    told_apart = 0
    for _ in range(1500):
        asked = program(rng, FACTS)
        seen = set()
        for _ in range(8):
            row = {name: rng.choice(values) for name, values in ROWS.items()}
            found = adds([asked], row)
            assert list(found) == reference.exact_sums(asked, [row]), (asked, row)
            seen.add(found)
        told_apart += len(seen) > 1
    assert told_apart > 500  # the programs do tell rows apart
