"""The same sequences where rows lie in a vault, in PostgreSQL and on Spark, and on two replicas."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from tests.kernel.engines import extremes
from tests.replay import acts, paths
from tests.replay.tables import RELATIONS, Relation, Row, arrow, rows_of
from tests.replay.world import World

from sulq import Database
from sulq.kernel.engines.duckdb.vault import VaultEngine
from sulq.kernel.ledger.signing import LedgerKey

POSTGRES_TYPES = {name: kind for name, (_, kind) in extremes.TYPES.items()} | {
    "who": "bigint",
    "note": "text",
    "city": "text",
    "arrives": "bigint",
    "ward": "bigint",
}
OPENED = paths.opened
MIXTURE = ("ask", "sql", "plan", "top", "alerts", "mixed")


def postgres(server: Any, seed: int, near: int) -> int:
    """One path of `MIXTURE` on a PostgreSQL server."""
    from tests.kernel.engines.postgres_tables import fill

    def source(rows: list[Row]) -> str:
        return fill(server, "replayed", POSTGRES_TYPES, rows)

    return _elsewhere("postgres", source, seed, near)


def replicas(server: Any, seed: int, near: int) -> int:
    """Two servers of one table, each with a state directory of its own, in any order."""
    import psycopg
    from tests.kernel.ledger.replicas import Replica

    rng = random.Random(f"replicas {seed}")
    relation, noise = RELATIONS[seed % 3], rng.choice(["gaussian", "laplace", "short"])
    rows = rows_of(rng, 14)
    tables = [rows, *(relation.near(rows, rng) for _ in range(near))]

    def play(world: World, held: list[Row]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            # the ledger has a hash of the rows under the signing key, by which replicas know that
            # they hold the same ones; to whoever has not that key it is a number drawn at random
            patch.setattr(LedgerKey, "stamp", lambda key, message: "0" * 64)
            lived(world, held)

    def lived(world: World, held: list[Row]) -> None:
        draw = random.Random(f"replicas {seed} play")
        with psycopg.connect(server.url(), autocommit=True) as line:
            line.execute("DROP SCHEMA IF EXISTS sulq CASCADE")
        address, home = f"{server.url()}&ledger=replayed", acts.folder()

        def opened(one: Replica) -> Any:
            with one.here():
                more = {"ledger": address, "name": "t"}
                return paths.opened(arrow(held), relation, noise, **more)

        first, second = (Replica(address, home / name) for name in ("first", "second"))
        one = opened(first)
        several = [one, opened(second.join(first))]
        for _ in range(paths.STEPS):
            db = draw.choice(several)
            asked = paths.Asked(world, db)
            if draw.random() < 0.2:
                asked.step(partial(db.top, "code", k=1, credits=1), "pure")
            else:
                asked.step(partial(db.ask, paths.any_question(draw), **paths.terms(draw)))
        for db in several:
            paths.Asked(world, db).end()
            db.close()

    return paths.replay(f"replicas {seed} {relation.name} {noise}", tables, play)


def spark(folder: Path, seed: int, near: int) -> int:
    """One path of `MIXTURE` on Spark; a session runs in this process."""
    from tests.spark_session import spark_url

    def source(rows: list[Row]) -> str:
        target = folder / f"{seed}.parquet"
        pyarrow.parquet.write_table(arrow(rows), target)
        return spark_url(target)

    return _elsewhere("spark", source, seed, near)


def vault(seed: int, near: int) -> int:
    """One path of `MIXTURE` on a vault, which each world makes of its own rows."""

    def source(rows: list[Row]) -> Path:
        target = acts.folder() / "replayed.parquet"
        pyarrow.parquet.write_table(arrow(rows), target)
        return target

    def opened(table: Path, relation: Relation, noise: str) -> Database:
        ledger = acts.folder() / "vault.ledger"
        db = OPENED(table, relation, noise, ledger=ledger, vault=True)
        assert isinstance(db.engine, VaultEngine)
        return db

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "opened", opened)
        rows_alone = [one for one in RELATIONS if one.schema.unit == "row"]
        return _elsewhere("vault", source, seed, near, rows_alone)


def _elsewhere(
    where: str, source: Any, seed: int, near: int, relations: Sequence[Relation] = RELATIONS[:3]
) -> int:
    rng = random.Random(f"{where} {seed}")
    path = MIXTURE[seed % len(MIXTURE)]
    relation = relations[seed // 2 % len(relations)]
    noise = rng.choice(["gaussian", "laplace", "short"])
    rows = rows_of(rng, 14)
    tables = [rows, *(relation.near(rows, rng) for _ in range(near))]

    def play(world: World, held: list[Row]) -> None:
        paths.ONCE[path](world, source(held), random.Random(f"{where} {seed}"), relation, noise)

    return paths.replay(f"{where} {path} {seed} {relation.name} {noise}", tables, play)
