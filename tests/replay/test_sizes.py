"""Where the number of rows is secret, nothing that is free tells it: neither 3 rows nor 900.

The worlds are frozen as in the replay of neighbours; here the tables are no neighbours at all.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from tests.replay import paths
from tests.replay.served import PAGES, Visitors, serve
from tests.replay.tables import ADDED, PERSONS, Relation, arrow, rows_of
from tests.replay.world import frozen

from sulq.kernel.schema.columns import Schema
from sulq.server.pacing import Clock, Machine
from sulq.wire import question_json

MACHINE = Machine(0.001, 1e-8, 1e-6)
FREE = ("/v1/tables", "/v1/me", "/healthz", "/v1/question-schema")
OF_TABLE = ("", "/statement", "/ledger?after=0&limit=50", "/answers?limit=5", "/alerts")


def look_around(all_of: Visitors) -> None:
    """Every free route of an analyst and an auditor, and quotes of random questions."""
    rng = random.Random(4)
    for who in ("analyst", "auditor"):
        for path in FREE:
            all_of.send(who, "GET", path)
        for path in OF_TABLE:
            all_of.send(who, "GET", f"/v1/tables/t{path}")
        for page in PAGES:
            all_of.send(who, "GET", f"/console/t/{page}")
    for _ in range(8):
        question = question_json(paths.any_question(rng))
        all_of.send("analyst", "POST", "/v1/tables/t/quote", {"question": question})
        statement = {"sql": paths.statement(rng)}
        all_of.send("analyst", "POST", "/console/t/quote", statement)
        for refused in (statement | {"max_credits": 0}, {"sql": "SELECT age FROM t"}):
            all_of.send("analyst", "POST", "/v1/tables/t/sql", refused)
    db = all_of.asked.db
    clock = Clock.of(db, machine=MACHINE)
    asked = [db.bind(paths.whole(rng)), None]
    all_of.world.see(
        clock.ticks(asked[0]), clock.ticks(*asked), clock.load(db.bind(paths.whole(rng)))
    )


@pytest.mark.parametrize("relation", [ADDED, PERSONS])
def test_nothing_that_is_free_tells_how_many_rows_there_are(relation: Relation) -> None:
    declared = relation.schema
    bounded = Schema(
        *declared.columns, unit=declared.unit, max_rows=declared.max_rows, at_most=1_000, bits=31
    )
    seen = []
    for rows in (3, 900):
        with frozen() as world:
            table = arrow(rows_of(random.Random(rows), rows))
            serve(world, table, replace(relation, schema=bounded), "gaussian", look_around)
        seen.append(world.lines)
    assert len(seen[0]) == len(seen[1]) > 200
    assert [pair for pair in zip(*seen, strict=True) if pair[0] != pair[1]] == []
