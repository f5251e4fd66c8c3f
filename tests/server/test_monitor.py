"""A monitor's token: what it sees of the server, and that it reaches no table."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from tests.server.conftest import PROMISE, SCHEMA, served, write_people

from sulq import Database, Promise
from sulq.errors import InvalidQuery, Refused
from sulq.server import pacing
from sulq.server.auth.tokens import Role
from sulq.server.limits import Settings
from sulq.server.service.catalog import id_of


@pytest.fixture
def watched(server):
    server.tokens["watch"] = server.access.issue("watch", Role.MONITOR, {})
    return server


def test_credits_and_version_are_seen_and_nothing_else(watched):
    told = watched.client("watch").get("/v1/monitor").json()
    assert told.keys() == {"version", "facts_id", "sulq", "tables"}
    assert told["tables"] == [
        {
            "name": "people",
            "state": "open",
            "credits": 100.0,
            "left": 100.0,
            "left_exact": "100",
            "missed_ticks": {},
        }
    ]
    text = watched.client("watch").get("/metrics").text
    assert 'sulq_credits_left{table="people"} 100' in text
    assert "sulq_credits_left" not in watched.client("owner").get("/metrics").text
    for path in ("schema", "statement", "ledger", "answers"):
        reply = watched.client("watch").get(f"/v1/tables/people/{path}")
        assert (reply.status_code, reply.json()["code"]) == (403, "not_for_this_role")
    assert watched.client("watch").get("/v1/tables").status_code == 403


def test_missed_ticks_are_told_when_their_day_is_over(tmp_path, state, monkeypatch):
    """The count of the day that goes on could be polled: it would tell when rows are read."""
    day = date(2026, 3, 1)
    with served(tmp_path, Settings()) as server:
        server.tokens["watch"] = server.access.issue("watch", Role.MONITOR, {})
        monkeypatch.setattr(pacing, "today", lambda: day)
        monkeypatch.setattr("sulq.server.service.session.today", lambda: day)
        clock = server.app.state.service.clock("people")
        clock.missed[day - timedelta(days=1)] += 3
        clock.missed[day] += 2
        (line,) = server.client("watch").get("/v1/monitor").json()["tables"]
        assert line["missed_ticks"] == {"2026-02-28": 3}


def test_a_monitor_has_no_other_role(watched, tmp_path):
    access = watched.access
    caller = access.caller(watched.tokens["watch"])
    people = {id_of(watched.database): "people"}
    for role in Role:
        with pytest.raises(Refused):
            access.carry(caller.token_id, "watch", people, role)
    with pytest.raises(InvalidQuery):
        access.issue("watch", Role.MONITOR, people)
    with pytest.raises(InvalidQuery):
        access.issue("ann", Role.ANALYST, {})
    asked = {"name": "spy", "role": "monitor"}
    reply = watched.client("owner").post("/v1/tables/people/grants", json=asked)
    assert reply.status_code == 422 and "sulq grant NAME --role monitor" in reply.json()["detail"]


def test_a_sick_table_is_named_and_the_others_are_seen(tmp_path, state):
    source = write_people(tmp_path / "town.parquet", 3_000)
    ledger = tmp_path / "town.ledger"
    with (
        Database.open(
            source, SCHEMA, Promise(1, "1e-6", 10), ledger, name="town", publish=True
        ) as town,
        served(tmp_path, Settings(pacing=False), PROMISE, town=town) as server,
    ):
        server.tokens["watch"] = server.access.issue("watch", Role.MONITOR, {})
        town.ledger.close()
        told = server.client("watch").get("/v1/monitor").json()["tables"]
        assert {line["name"]: (line["state"], line["left"]) for line in told} == {
            "people": ("open", 100.0),
            "town": ("out of order", None),
        }
