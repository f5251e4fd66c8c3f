"""The owner's routes: shares and tokens given, changed and taken back, over real HTTP."""

from __future__ import annotations

import json
import time
from fractions import Fraction

import pytest
from tests.server.conftest import PROMISE, SCHEMA, new_key, write_people

from sulq import Database, Refused, col, count
from sulq.server.auth import grants
from sulq.server.auth.tokens import Role
from sulq.server.service.catalog import id_of
from sulq.wire import question_json

OLD = {"question": question_json(count(where=col("age") > 40))}
PATH = "/v1/tables/people/grants"


def give(server, **body):
    return server.client("owner").post(PATH, json=body)


def as_new(server, token, name="new"):
    server.tokens[name] = token
    return server.client(name)


def ask(client, key=None):
    return client.post(
        "/v1/tables/people/ask", json=OLD, headers={"Idempotency-Key": key or new_key()}
    )


def test_a_grant_is_a_share_and_a_token(server):
    reply = give(server, name="dora", credits="5/2", rate="100/min", days=2)
    assert reply.status_code == 201
    found = reply.json()
    assert (found["granted_exact"], found["left_exact"], found["role"]) == ("5/2", "5/2", "analyst")
    assert server.database.left_for("dora") == Fraction(5, 2)
    client = as_new(server, found["token"])
    assert client.get("/v1/me").json()["tables"] == ["people"]
    assert ask(client).json()["credits_exact"] == "1"
    listed = server.client("owner").get(PATH).json()["grants"]
    (mine,) = [line for line in listed if line["name"] == "dora"]
    assert (mine["spent_exact"], mine["left_exact"]) == ("1", "3/2")
    (token,) = mine["tokens"]
    assert token["rate"] == "100/min" and 0 < token["expires"] - time.time() <= 2 * 86_400
    assert found["token"] not in json.dumps(listed)


def test_the_link_lets_in_once(server):
    link = give(server, name="dora", credits=1).json()["link"]
    assert link.startswith(server.url + "/enter#")
    code = {"code": link.partition("#")[2]}
    entered = server.client(None).post("/v1/enter", json=code)
    assert entered.json()["name"] == "dora"
    assert as_new(server, entered.json()["token"]).get("/v1/me").json()["role"] == "analyst"
    assert server.client(None).post("/v1/enter", json=code).status_code == 401


def test_changes_reach_the_token_that_is_out(server, monkeypatch):
    token = give(server, name="dora", credits=1).json()["token"]
    client, owner, now = as_new(server, token), server.client("owner"), [0.0]
    monkeypatch.setattr(server.access._buckets, "_clock", lambda: now[0])
    found = owner.patch(f"{PATH}/dora", json={"credits": 2, "rate": "1/day"}).json()
    assert found["granted_exact"] == "3" and found["tokens"][0]["rate"] == "1/day"
    assert ask(client).status_code == 200
    limited = ask(client)
    assert (limited.status_code, limited.json()["code"]) == (429, "too_many")
    assert 1 <= int(limited.headers["retry-after"]) <= 86_400
    assert owner.patch(f"{PATH}/dora", json={"rate": "1000/s"}).status_code == 200
    assert ask(client).status_code == 429  # no time has passed
    now[0] += 0.002
    assert ask(client).status_code == 200
    past = owner.patch(f"{PATH}/dora", json={"expires": 5})
    assert (past.status_code, past.json()["code"]) == (422, "invalid_query")


def test_revoking_ends_tokens_and_returns_the_share(server):
    token = give(server, name="dora", credits=10).json()["token"]
    client, owner = as_new(server, token), server.client("owner")
    key = new_key()
    assert ask(client, key).status_code == 200
    left = server.database.remaining
    found = owner.delete(f"{PATH}/dora", params={"reason": "left us"}).json()
    assert (found["tokens_ended"], found["returned_exact"], found["revoked"]) == (1, "9", True)
    assert server.database.remaining == left + 9
    refused = ask(client, key)
    assert refused.status_code == 401
    assert refused.json() == server.client(None).get("/v1/me").json()  # one text for all
    assert owner.delete(f"{PATH}/dora").status_code == 403
    again = give(server, name="dora", credits=1)
    assert (
        again.status_code == 201 and ask(as_new(server, again.json()["token"])).status_code == 200
    )


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"name": "dora"}, 422, "has no share"),
        ({"name": "dora", "credits": 0}, 422, "above 0"),
        ({"name": "dora", "credits": 1_000}, 403, "grant less"),
        ({"name": "a/b", "credits": 1}, 422, "got the name"),
        ({"name": "owner", "credits": 1}, 403, "owner"),
        ({"name": "dora", "credits": 1, "rate": "often"}, 422, "60/min"),
        ({"name": "dora", "credits": 1, "days": 1, "expires": 2**35}, 422, "not both"),
        ({"name": "dora", "credits": 1, "role": "king"}, 422, "role"),
        ({"name": "dora", "credits": 1, "role": "auditor"}, 422, "credits of their own"),
        ({"name": "dora", "credits": 1, "admin": True}, 422, "admin"),
    ],
)
def test_what_cannot_be_granted_leaves_nothing_behind(server, body, status, said):
    before = len(server.access.list())
    reply = give(server, **body)
    assert (reply.status_code, said in reply.json()["detail"]) == (status, True), reply.text
    assert len(server.access.list()) == before
    assert "dora" not in {line.name for line in server.database.statement().statement.analysts}


@pytest.mark.parametrize("who", ["analyst", "auditor", "rival", None])
def test_only_an_owner_token_gives_changes_or_takes(server, who):
    client = server.client(who)
    replies = [
        client.get(PATH),
        client.post(PATH, json={"name": "x", "credits": 1}),
        client.patch(f"{PATH}/rival", json={"credits": 1}),
        client.delete(f"{PATH}/rival"),
        client.post("/v1/tables/people/close", json={}),
    ]
    assert {reply.status_code for reply in replies} == {401 if who is None else 403}
    assert server.database.left_for("rival") == 10


def test_an_owner_of_one_table_reaches_no_other(server):
    token = give(server, name="deputy", role="owner").json()["token"]
    client = as_new(server, token)
    assert client.get(PATH).status_code == 200
    server.access.revoke("deputy", id_of(server.database))
    assert client.get(PATH).status_code == 401


def test_auditors_read_and_do_not_ask(server):
    client = as_new(server, give(server, name="eve", role="auditor").json()["token"])
    assert client.get("/v1/tables/people/ledger").status_code == 200
    assert ask(client).status_code == 403


def test_closed_for_good(server):
    owner = server.client("owner")
    assert (
        owner.post("/v1/tables/people/close", json={"reason": "done"}).json()["state"] == "closed"
    )
    assert ask(server.client("analyst")).status_code == 403
    assert give(server, name="dora", credits=1).status_code == 403


def test_no_token_is_ever_logged(server):
    found = give(server, name="dora", credits=1).json()
    client = as_new(server, found["token"])
    ask(client)
    client.get("/v1/me", params={"token": found["token"]})
    client.get(f"/v1/tables/{found['token']}/schema")
    server.client("owner").delete(f"{PATH}/{found['token']}")
    said = server.log.getvalue()
    assert '"caller": "dora"' in said
    for token in (*server.tokens.values(), found["link"].partition("#")[2]):
        assert token not in said and token[5:] not in said


def test_a_token_is_for_one_published_table_not_for_its_name(server, tmp_path):
    """Two servers of one machine share the file of tokens; both serve a table called people."""
    other = tmp_path / "other"
    other.mkdir()
    source = write_people(other / "people.parquet", 500)
    with Database.open(
        source, SCHEMA, PROMISE, other / "x.ledger", name="people", publish=True
    ) as database:
        token, _ = grants.give(
            database, "people", server.access, "dora", grants.GrantTerms(role=Role.OWNER)
        )
        client = as_new(server, token)
        assert client.get("/v1/tables").json()["tables"] == []
        closing = client.post("/v1/tables/people/close", json={"reason": "oops"})
        assert (closing.status_code, closing.json()["code"]) == (404, "not_found")
        assert client.get("/v1/tables/people/answers").status_code == 404
        assert give(server, name="dora", role="owner").json()["tokens"][0]["role"] == "owner"
        assert grants.take(database.ledger, "people", server.access, "dora")["tokens_ended"] == 1


def test_the_owner_of_one_table_does_not_rule_the_owner_of_the_server(server):
    dora = as_new(server, give(server, name="dora", role="owner").json()["token"])
    assert dora.patch(f"{PATH}/owner", json={"rate": "1/day"}).status_code == 403
    assert dora.delete(f"{PATH}/owner").status_code == 403
    assert dora.delete(f"{PATH}/auditor").status_code == 403
    for who in ("owner", "auditor"):
        assert server.client(who).get("/v1/me").status_code == 200


def test_an_analysts_token_has_a_rate_from_the_start(server):
    assert give(server, name="dora", credits=1).json()["tokens"][0]["rate"] == "600/min"
    assert give(server, name="eve", role="auditor").json()["tokens"][0]["rate"] is None


def test_a_grant_sent_again_with_its_key_is_given_once(server):
    owner, key = server.client("owner"), {"Idempotency-Key": new_key()}
    body = {"name": "dora", "credits": 2}
    first, again = (owner.post(PATH, json=body, headers=key).json() for _ in range(2))
    assert (first["granted_exact"], again["granted_exact"]) == ("2", "2")
    assert server.access.caller(first["token"]) is None
    assert server.access.caller(again["token"]).name == "dora"
    other = owner.post(PATH, json={**body, "credits": 3}, headers=key)
    assert (other.status_code, other.json()["code"]) == (409, "key_reused")
    replies = server.app.state.service.replies._connection
    kept = str(replies.execute("SELECT body FROM replies").fetchall())
    assert again["token"] not in kept and again["token"][5:] not in kept


def full(*_):
    raise Refused("the file of tokens could not be written; look at the disk")


@pytest.mark.parametrize(("issue", "status"), [(lambda *_: 1 / 0, 500), (full, 403)])
def test_a_grant_cut_short_after_the_books_is_given_once(server, monkeypatch, issue, status):
    owner, key = server.client("owner"), {"Idempotency-Key": new_key()}
    body = {"name": "dora", "credits": 2}
    with monkeypatch.context() as patch:
        patch.setattr(server.access, "issue", issue)
        assert owner.post(PATH, json=body, headers=key).status_code == status
    assert owner.post(PATH, json=body, headers=key).json()["granted_exact"] == "2"


@pytest.mark.parametrize("far", [1, 999, 1_000, 1_001, 2_500])
def test_a_grant_in_the_books_is_found_however_much_came_after_the_note(monkeypatch, far):
    def pages(_database, _analyst, after, most):
        events = range(after + 1, min(after + most, 3_000) + 1)
        return [
            {"seq": n, "kind": "grant" if n == far else "charge", "analyst": "dora"} for n in events
        ]

    monkeypatch.setattr(grants, "event_lines", pages)
    assert grants._granted_since(None, "dora", 0)
    assert not grants._granted_since(None, "dora", far)
    assert not grants._granted_since(None, "eve", 0)


def test_a_token_that_was_given_out_carries_one_table_more(server, tmp_path):
    source, ledger = write_people(tmp_path / "visits.parquet", 4_000), tmp_path / "visits.ledger"
    with Database.open(source, SCHEMA, PROMISE, ledger, name="visits", publish=True) as visits:
        server.app.state.service.tables.add("visits", visits)
        owner = server.client("owner")
        first = owner.post("/v1/tables/people/grants", json={"name": "ann", "credits": 3}).json()
        token_id = first["tokens"][0]["id"]
        more = {"name": "ann", "credits": 5, "token_id": token_id}
        given = [
            owner.post("/v1/tables/visits/grants", json=more, headers={"Idempotency-Key": "k" * 8})
            for _ in range(2)
        ]
        for reply in given:  # sent again: the share is given once, and the token stays good
            found = reply.json()
            assert (reply.status_code, found["token"], found["link"]) == (201, None, None)
            assert found["granted_exact"] == "5" and found["tokens"][0]["tables"] == ["visits"]
        server.tokens["ann"] = first["token"]
        ann = server.client("ann")
        left = {line["name"]: line["left"] for line in ann.get("/v1/tables").json()["tables"]}
        assert left == {"people": 3.0, "visits": 5.0}
        for wrong in (
            {"name": "bob", "credits": 1, "token_id": token_id},
            {"name": "ann", "credits": 1, "token_id": "0" * 16},
            {"name": "ann", "role": "owner", "token_id": token_id},
        ):
            refused = owner.post("/v1/tables/visits/grants", json=wrong).json()
            assert refused["code"] == "refused" and "another token" in refused["detail"]
        kept = owner.post("/v1/tables/visits/grants", json={**more, "days": 3}).json()
        assert "keeps its end and its rate" in kept["detail"]
        assert visits.left_for("ann") == 5 and visits.left_for("bob") == 0
        ended = owner.delete("/v1/tables/visits/grants/ann").json()
        assert ended["tokens_ended"] == 1
        assert [line["name"] for line in ann.get("/v1/tables").json()["tables"]] == ["people"]
