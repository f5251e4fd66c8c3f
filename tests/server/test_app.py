"""Every endpoint over real HTTP: what it gives, to whom, and what it costs."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from tests.server.conftest import SCHEMA, new_key, served, write_people

from sulq import Database, Promise, col, count, mean
from sulq.kernel.ledger.signing import verify_receipt
from sulq.server.limits import Settings
from sulq.server.service.catalog import id_of
from sulq.wire import question_json

OLD = {"question": question_json(count(where=col("age") > 40))}
SMOKERS = {"question": question_json(mean("income", where=col("smoker")))}


def test_health_needs_no_token_and_says_nothing_else(server):
    assert server.client(None).get("/healthz").json() == {"status": "ok"}


def test_tables_and_me(server):
    found = server.client().get("/v1/tables").json()["tables"]
    people = {"name": "people", "state": "open", "size": 5000, "credits": 100.0, "left": 40.0}
    assert found == [people | {"role": "analyst"}]
    me = server.client("auditor").get("/v1/me").json()
    assert (me["name"], me["role"], me["tables"]) == ("auditor", "auditor", ["people"])


def test_schema_is_the_published_one(server):
    found = server.get("schema").json()
    assert found["schema"] == server.database.schema.to_json()
    assert found["promise"] == server.database.promise.to_json()
    assert (found["size"], found["remaining_exact"]) == (5000, "40")


def test_quote_is_free_and_ask_costs_what_it_said(server):
    quote = server.post("quote", OLD).json()
    assert (quote["credits_exact"], quote["left_after_exact"]) == ("1", "39")
    assert server.database.left_for("analyst") == 40
    answer = server.post("ask", OLD).json()
    assert answer["credits_exact"] == "1"
    assert answer["low"] <= answer["value"] <= answer["high"]
    assert server.database.left_for("analyst") == 39
    assert abs(answer["value"] - 2728) < 8 * answer["standard_error"]
    receipt = json.dumps(answer["receipt"], sort_keys=True, separators=(",", ":"))
    verify_receipt(receipt, server.get("statement").json()["public_key"])


def test_sql_gives_a_table_with_bars(server):
    text = "SELECT region, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY region"
    quote = server.post("quote", {"sql": text}).json()
    found = server.post("sql", {"sql": text}).json()
    assert [column["name"] for column in found["columns"]] == ["region", "n", "a"]
    assert found["credits_exact"] == quote["credits_exact"] != "0"
    assert found["rows"][0][0] == "North"
    exact = {"value": 2500.0, "low": 2500.0, "high": 2500.0, "public": True}
    assert found["rows"][0][1] == exact
    assert found["rows"][0][2]["public"] is False
    assert found["receipts"]


def test_sql_of_made_up_rows_is_free(server):
    text = "SELECT AVG(income) FROM people"
    found = server.post("sql", {"sql": text, "dummy": True}).json()
    assert found["credits"] == 0
    assert "made-up" in found["notes"][0]
    assert server.database.statement().spent == 0


def test_a_plan_is_charged_together(server):
    body = {"questions": [OLD["question"], SMOKERS["question"]], "credits": 5}
    plan = server.post("plan", body).json()
    assert Fraction(plan["credits_exact"]) <= 5
    found = server.post("plan/ask", body).json()
    assert found["credits_exact"] == plan["credits_exact"]
    assert [answer["kind"] for answer in found["answers"]] == ["count", "mean"]


def test_a_plan_beyond_the_share_charges_nothing(server):
    body = {"questions": [OLD["question"], SMOKERS["question"]], "credits": 41}
    reply = server.post("plan/ask", body)
    assert (reply.status_code, reply.json()["code"]) == (402, "budget_spent")
    assert server.database.left_for("analyst") == 40


def test_a_reservation_pays_and_gives_back(server):
    made = server.post("reservations", {"credits": 5})
    assert made.status_code == 201
    name = made.json()["id"]
    assert server.database.left_for("analyst") == 35
    server.post("ask", {**OLD, "reservation": name})
    assert server.post("ask", {**OLD, "reservation": name}, "rival").status_code == 404
    client = server.client()
    assert client.delete(f"/v1/tables/people/reservations/{name}").status_code == 204
    assert server.database.left_for("analyst") == 39
    assert client.delete(f"/v1/tables/people/reservations/{name}").status_code == 404


def test_statement_shows_colleagues_to_the_owner_only(server):
    server.post("ask", OLD, "rival")
    assert server.get("statement").json()["analysts"] is None
    assert "rival" not in server.get("statement").text
    for role in ("owner", "auditor"):
        names = [line["name"] for line in server.get("statement", role).json()["analysts"]]
        assert {"analyst", "rival"} <= set(names)


def test_ledger_hides_colleagues_questions(server):
    server.post("ask", OLD, "rival")
    server.post("ask", SMOKERS)
    told = server.get("ledger")
    assert "age" not in "".join(
        json.dumps(line)
        for line in told.json()["entries"]
        if line["kind"] == "charge" and line.get("analyst") != "analyst"
    )
    assert "rival" not in told.text
    charges = [line for line in told.json()["entries"] if line["kind"] == "charge"]
    assert [line["analyst"] for line in charges] == ["another account", "analyst"]
    assert charges[0].keys() == {
        *("seq", "kind", "hash", "at", "analyst"),
        *("credits", "credits_exact", "share", "share_exact"),
    }
    assert charges[1]["body"] and "smoker" in charges[1]["question"]
    whole = server.get("ledger", "auditor").json()["entries"]
    assert (
        "age"
        in next(line for line in whole if line.get("analyst") == "rival" and "question" in line)[
            "question"
        ]
    )
    page = server.get("ledger?limit=2").json()
    assert (len(page["entries"]), page["next"]) == (2, 2)


def test_receipts_and_answers_are_for_who_paid(server):
    number = server.post("ask", OLD).json()["receipt"]["receipt"]["seq"]
    assert server.get(f"receipts/{number}").json()["receipt"]["seq"] == number
    assert server.get(f"receipts/{number}", "auditor").status_code == 200
    assert server.get(f"receipts/{number}", "rival").json()["code"] == "not_found"
    assert server.get("receipts/99999").status_code in (403, 404)
    assert [line["seq"] for line in server.get("answers").json()["entries"]] == [number]
    assert server.get("answers", "rival").json()["entries"] == []


def test_dummy_rows_belong_to_nobody(server):
    rows = server.get("dummy?rows=7").json()
    assert {len(values) for values in rows.values()} == {7}
    assert rows["sulq_dummy"] == [True] * 7


def test_exact_release_is_off_unless_declared(server):
    body = {"questions": [OLD["question"]]}
    for path in ("exact/quote", "exact"):
        reply = server.post(path, body, "owner")
        assert (reply.status_code, reply.json()["code"]) == (403, "unsafe_exactly")


def test_enter_with_a_code_once(server):
    code = server.access.link_code(server.tokens["owner"])
    client = server.client(None)
    found = client.post("/v1/enter", json={"code": code}).json()
    assert (found["token"], found["role"]) == (server.tokens["owner"], "owner")
    assert client.post("/v1/enter", json={"code": code}).status_code == 401


def test_metrics_count_routes_for_the_owner(server):
    server.post("ask", OLD)
    told = server.client("owner").get("/metrics").text
    assert 'sulq_requests_total{route="/v1/tables/{table}/ask",status="2xx"} 1' in told
    assert "people" not in told
    assert server.client().get("/metrics").json()["code"] == "not_for_this_role"


def test_the_page_of_the_api_lists_every_route_and_loads_nothing(server):
    client = server.client(None)
    text = client.get("/docs").text
    for path in client.get("/openapi.json").json()["paths"]:
        assert path in text
    assert "<script" not in text and "<link" not in text and "http" not in text.replace("HTTP", "")


def test_openapi_says_bearer_and_problem(server):
    found = server.client(None).get("/openapi.json").json()
    assert found["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    ask = found["paths"]["/v1/tables/{table}/ask"]["post"]
    assert ask["security"] == [{"bearer": []}]
    assert "application/problem+json" in ask["responses"]["default"]["content"]
    assert "Idempotency-Key" in {one["name"] for one in ask["parameters"]}
    plan = found["paths"]["/v1/tables/{table}/plan/ask"]["post"]
    assert "Idempotency-Key" in {one["name"] for one in plan["parameters"] if one["required"]}


def test_two_tables_of_one_ledger_and_of_another(tmp_path, state):
    other = write_people(tmp_path / "town.parquet", 3_000)
    far = write_people(tmp_path / "far.parquet", 2_000)
    promise = Promise(1, "1e-6", 10)
    with (
        Database.open(
            other, SCHEMA, promise, tmp_path / "people.ledger", name="town", publish=True
        ) as town,
        Database.open(
            far, SCHEMA, promise, tmp_path / "far.ledger", name="far", publish=True
        ) as away,
        served(tmp_path, Settings(pacing=False), town=town, far=away) as server,
    ):
        owner = server.client("owner")
        for name, size in (("people", 5000), ("town", 3000), ("far", 2000)):
            reply = owner.post(
                f"/v1/tables/{name}/ask", json=OLD, headers={"Idempotency-Key": "the-same-key"}
            )
            assert reply.json()["receipt"]["receipt"]["table"] == name
            assert owner.get(f"/v1/tables/{name}/schema").json()["size"] == size
        scoped = server.access.issue("eve", "analyst", {id_of(away): "far"})
        server.tokens["eve"] = scoped
        assert server.client("eve").get("/v1/tables/town/schema").status_code == 404
        told = server.client("eve").get("/v1/tables/far/ledger").text
        assert "town" not in told


@pytest.mark.parametrize("path", ["ask", "sql", "plan/ask", "exact"])
def test_what_costs_wants_a_key(server, path):
    reply = server.client().post(f"/v1/tables/people/{path}", json=OLD)
    assert reply.status_code == 422
    assert "Idempotency-Key" in reply.json()["detail"]
    assert new_key() != new_key()


def test_with_a_clock_ask_and_sql_make_a_key_of_their_own(tmp_path, state):
    with served(tmp_path, Settings()) as server:
        client = server.client()
        first = client.post("/v1/tables/people/ask", json=OLD)
        assert first.json()["credits_exact"] == "1"
        key = first.headers["Idempotency-Key"]
        again = client.post("/v1/tables/people/ask", json=OLD, headers={"Idempotency-Key": key})
        assert again.content == first.content
        repeat = client.post("/v1/tables/people/ask", json=OLD)
        assert repeat.headers["Idempotency-Key"] != key
        assert (repeat.json()["credits_exact"], repeat.json()["value"]) == (
            "0",
            first.json()["value"],
        )
        asked = {"sql": "SELECT COUNT(*) FROM people WHERE age > 40"}  # the same question
        found = client.post("/v1/tables/people/sql", json=asked, headers={"Accept": "text/csv"})
        assert found.headers["Sulq-Credits"] == "0" and found.headers["Idempotency-Key"]
        short = client.post("/v1/tables/people/ask", json=OLD, headers={"Idempotency-Key": "short"})
        assert short.status_code == 422
        assert client.post("/v1/tables/people/plan/ask", json={"questions": []}).status_code == 422
        assert server.database.left_for("analyst") == 39


def test_a_select_in_a_condition_is_asked_first_over_http(server):
    asked = {"sql": "SELECT COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) FROM people)"}
    quote = server.post("quote", asked).json()
    assert quote["credits_exact"] == "9/4"
    assert any("asked first" in note for note in [*quote.get("notes", []), quote.get("note", "")])
    key = new_key()
    reply = server.post("sql", asked, key=key).json()
    assert reply["credits_exact"] == "9/4" and len(reply["receipts"]) == 2
    assert any("stands as the constant" in note for note in reply["notes"])
    assert server.post("sql", asked, key=key).json() == reply
    assert server.post("sql", asked).json()["credits_exact"] == "0"
