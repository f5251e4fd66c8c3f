"""The same sequences where rows lie in PostgreSQL and on Spark."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow.parquet
from tests.kernel.engines import extremes
from tests.replay import paths
from tests.replay.tables import RELATIONS, Row, arrow, rows_of
from tests.replay.world import World

POSTGRES_TYPES = {name: kind for name, (_, kind) in extremes.TYPES.items()} | {
    "who": "bigint",
    "note": "text",
    "city": "text",
    "arrives": "bigint",
}
MIXTURE = ("ask", "sql", "plan", "top", "alerts", "mixed")


def postgres(server: Any, seed: int, near: int) -> int:
    """One path of `MIXTURE` on a PostgreSQL server."""
    from tests.kernel.engines.postgres_tables import fill

    def source(rows: list[Row]) -> str:
        return fill(server, "replayed", POSTGRES_TYPES, rows)

    return _elsewhere("postgres", source, seed, near)


def spark(folder: Path, seed: int, near: int) -> int:
    """One path of `MIXTURE` on Spark; a session runs in this process."""
    from tests.spark_session import spark_url

    def source(rows: list[Row]) -> str:
        target = folder / f"{seed}.parquet"
        pyarrow.parquet.write_table(arrow(rows), target)
        return spark_url(target)

    return _elsewhere("spark", source, seed, near)


def _elsewhere(where: str, source: Any, seed: int, near: int) -> int:
    rng = random.Random(f"{where} {seed}")
    path = MIXTURE[seed % len(MIXTURE)]
    relation = RELATIONS[seed // 2 % 3]
    noise = rng.choice(["gaussian", "laplace", "short"])
    rows = rows_of(rng, 14)
    tables = [rows, *(relation.near(rows, rng) for _ in range(near))]

    def play(world: World, held: list[Row]) -> None:
        paths.ONCE[path](world, source(held), random.Random(f"{where} {seed}"), relation, noise)

    return paths.replay(f"{where} {path} {seed} {relation.name} {noise}", tables, play)
