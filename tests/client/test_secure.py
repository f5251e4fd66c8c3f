"""Secure addition over HTTP: shares from servers are the shares of their tables. V.4"""

from __future__ import annotations

import json

import httpx
import pytest
from tests.client.conftest import far
from tests.federation.test_rows import SCHEMA, frame
from tests.federation.test_secure import ASKED, PURE, met
from tests.waiting import LONGEST

from sulq import Database, InvalidQuery, Refused, col, count, histogram
from sulq.federation import Partners, split_rows
from sulq.server.auth.tokens import Role
from sulq.wire import question_json


@pytest.fixture
def owners(tmp_path):
    """Three tables; in the field each would have a server of its own."""
    tables = {
        name: Database.open(frame(rows, rows), SCHEMA, PURE, ":memory:", name=name)
        for name, rows in (("oslo", 400), ("paris", 700), ("rome", 900))
    }
    met(list(tables.values()))
    with far(tmp_path, **tables) as server:
        yield server


def test_servers_add_up(owners):
    tables = list(owners.databases.values())
    secure = split_rows(*(owners.remote(name) for name in owners.databases), secure=True)
    here = split_rows(*tables, secure=True)
    assert secure.quote(ASKED).standard_error == here.quote(ASKED).standard_error
    answer = secure.ask(ASKED, key="one-joint-sum")
    assert [table.remaining for table in tables] == [99] * 3
    assert here.ask(ASKED, key="one-joint-sum").values == answer.values  # the same shares
    assert secure.ask(ASKED, key="one-joint-sum").values == answer.values
    assert answer.laws == here.ask(ASKED, key="one-joint-sum").laws
    assert [table.remaining for table in tables] == [99] * 3
    cells = secure.ask(histogram("city"))
    assert cells.credits == 2 and secure.quote(histogram("city")).repeat
    with pytest.raises(Refused, match="another"):
        secure.ask(count(where=col("age") >= 70), key="one-joint-sum")


def test_a_server_takes_no_keys_from_who_asks(owners):
    """Nor any other word about who takes part."""
    asked = {"question": question_json(ASKED)}
    sent = {"Authorization": f"Bearer {owners.tokens['owner']}", "Idempotency-Key": "one-joint-sum"}
    before = owners.databases["oslo"].remaining
    for more in ({"owners": []}, {"keys": ["00" * 32]}, {"colluding": 0}, {"partners": {}}):
        reply = httpx.post(
            f"{owners.url}/v1/tables/oslo/share",
            json={**asked, **more},
            headers=sent,
            timeout=LONGEST,
        )
        assert reply.status_code == 422, reply.text
    told = httpx.post(
        f"{owners.url}/v1/tables/oslo/share/quote", json=asked, headers=sent, timeout=LONGEST
    ).json()
    assert told["joint"]["owner"] == owners.databases["oslo"].share_key
    assert len(told["joint"]["owners"]) == 3 and told["credits"] == 1
    assert owners.databases["oslo"].remaining == before
    reply = httpx.post(
        f"{owners.url}/v1/tables/oslo/share", json=asked, headers=sent, timeout=LONGEST
    )
    again = httpx.post(
        f"{owners.url}/v1/tables/oslo/share", json=asked, headers=sent, timeout=LONGEST
    )
    assert reply.content == again.content and reply.json()["credits"] == 1
    assert all(0 <= int(value) < 2**256 for value in reply.json()["values"])
    assert set(json.loads(reply.content)) >= {"values", "joint", "receipt", "credits_exact"}


def test_who_may_collude_is_kept_over_http(owners):
    """With 0 a total is for analysts; and a table without partners says so."""
    met(list(owners.databases.values()), 0)
    mine = split_rows(*(owners.remote(name) for name in owners.databases), secure=True)
    with pytest.raises(Refused, match="no owner may learn a total"):
        mine.ask(ASKED)
    for database in owners.databases.values():
        database.grant("ann", 5)
    owners.tokens["ann"] = owners.access.lend("ann", Role.ANALYST)
    theirs = split_rows(*(owners.remote(name, "ann") for name in owners.databases), secure=True)
    assert theirs.ask(ASKED).credits == 1
    owners.databases["rome"].set_partners(None)
    with pytest.raises(Refused, match="named no partners"):
        theirs.ask(count(where=col("age") >= 20))
    reserved = owners.remote("oslo", "ann").reserve(1)
    with pytest.raises(InvalidQuery, match="not paid from credits set aside"):
        reserved.share(ASKED, joint="one-joint-sum")
    assert Partners([owners.databases["oslo"].share_key], 0).owners == 2
