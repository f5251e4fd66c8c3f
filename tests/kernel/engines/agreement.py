"""The one suite for every engine: random programs, against the reference and against DuckDB."""

from __future__ import annotations

import random
from typing import Any

from tests.kernel.engines import programs, reference, tables, vector_reference
from tests.kernel.engines import test_blocks as vectors

from sulq.kernel.engines import Engine, open_engine


def agree(ours: Engine, content: list[Any], seed: int, count: int) -> None:
    """So many random programs give the same integers; most of them can fail."""
    rng = random.Random(seed)
    wanted = [programs.program(rng, tables.FACTS) for _ in range(count)]
    expected = [reference.exact_sums(program, content) for program in wanted]
    _compare(ours, content, wanted, expected)
    assert sum(map(any, expected)) > 0.4 * count


def agree_on_vectors(ours: Engine, content: list[Any], seed: int, count: int) -> None:
    """As `agree`, for outer products."""
    wanted = list(vectors.programs(seed, count))
    expected = [vector_reference.outer_sums(program, content) for program in wanted]
    _compare(ours, content, wanted, expected)
    assert sum(map(any, expected)) > 0.7 * count


def _compare(ours: Engine, content: list[Any], wanted: list[Any], expected: list[Any]) -> None:
    duck = open_engine(tables.table(content), tables.SCHEMA, threads=1)
    for program, sums in zip(wanted, expected, strict=True):
        assert ours.exact_sums(program) == sums == duck.exact_sums(program), program
    ours.close()
    duck.close()
