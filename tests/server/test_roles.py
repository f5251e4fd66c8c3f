"""Role x endpoint: every route of the application, every role, what happens."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.routing import APIRoute
from tests.server.conftest import PROMISE, SCHEMA, new_key, write_people

from sulq import Database, col, count, histogram
from sulq.server.auth.tokens import AT_TABLES, Role
from sulq.server.service.catalog import id_of
from sulq.wire import question_json

OLD = {"question": question_json(count(where=col("age") > 40))}
EVERYBODY = frozenset(AT_TABLES)
ASKERS = frozenset({Role.OWNER, Role.ANALYST})
OWNER = frozenset({Role.OWNER})
READERS = frozenset({Role.OWNER, Role.AUDITOR})
OPEN = None

PLAN = {"questions": [OLD["question"]]}
TABLE = "/v1/tables/{table}"
MATRIX: dict[tuple[str, str], tuple[frozenset[Role] | None, object]] = {
    ("GET", "/healthz"): (OPEN, None),
    ("GET", "/docs"): (OPEN, None),
    ("POST", "/v1/enter"): (OPEN, {"code": "none"}),
    ("GET", "/v1/question-schema"): (OPEN, None),
    ("GET", "/v1/monitor"): (frozenset({Role.MONITOR}), None),
    ("GET", "/metrics"): (frozenset({Role.OWNER, Role.MONITOR}), None),
    ("GET", "/v1/me"): (EVERYBODY, None),
    ("GET", "/v1/tables"): (EVERYBODY, None),
    ("GET", f"{TABLE}/schema"): (EVERYBODY, None),
    ("GET", f"{TABLE}/statement"): (EVERYBODY, None),
    ("GET", f"{TABLE}/ledger"): (EVERYBODY, None),
    ("GET", f"{TABLE}/answers"): (ASKERS, None),
    ("GET", f"{TABLE}/dummy"): (EVERYBODY, None),
    ("GET", f"{TABLE}/receipts/{{number}}"): (EVERYBODY, None),
    ("POST", f"{TABLE}/quote"): (ASKERS, OLD),
    ("POST", f"{TABLE}/ask"): (ASKERS, OLD),
    ("POST", f"{TABLE}/share/quote"): (ASKERS, OLD),
    ("POST", f"{TABLE}/share"): (ASKERS, OLD),
    ("POST", f"{TABLE}/sql"): (ASKERS, {"sql": "SELECT COUNT(*) FROM people"}),
    ("POST", f"{TABLE}/plan"): (ASKERS, PLAN),
    ("POST", f"{TABLE}/plan/ask"): (ASKERS, PLAN),
    ("POST", f"{TABLE}/exact/quote"): (ASKERS, PLAN),
    ("POST", f"{TABLE}/exact"): (ASKERS, PLAN),
    ("GET", f"{TABLE}/exact/declaration"): (EVERYBODY, None),
    ("POST", f"{TABLE}/exact/declaration"): (OWNER, {"menu": [[OLD["question"]]]}),
    ("POST", f"{TABLE}/keys/quote"): (ASKERS, {"column": "illness"}),
    ("POST", f"{TABLE}/keys"): (ASKERS, {"column": "illness"}),
    ("POST", f"{TABLE}/top"): (ASKERS, {"question": question_json(histogram("illness"))}),
    ("GET", f"{TABLE}/alerts"): (ASKERS, None),
    ("POST", f"{TABLE}/alerts"): (ASKERS, {**OLD, "above": 10}),
    ("POST", f"{TABLE}/alerts/{{number}}/check"): (ASKERS, {}),
    ("POST", f"{TABLE}/reservations"): (ASKERS, {"credits": 1}),
    ("DELETE", f"{TABLE}/reservations/{{reservation}}"): (ASKERS, None),
    ("GET", f"{TABLE}/report"): (READERS, None),
    ("GET", f"{TABLE}/grants"): (OWNER, None),
    ("POST", f"{TABLE}/grants"): (OWNER, {"name": "zoe", "credits": 1}),
    ("PATCH", f"{TABLE}/grants/{{name}}"): (OWNER, {"credits": 1}),
    ("DELETE", f"{TABLE}/grants/{{name}}"): (OWNER, None),
    ("POST", f"{TABLE}/close"): (OWNER, {"reason": "the study has ended"}),
    ("GET", "/v1/drafts"): (OWNER, None),
    ("POST", "/v1/drafts"): (OWNER, {"source": "people.parquet"}),
    ("GET", "/v1/drafts/{number}"): (OWNER, None),
    ("PUT", "/v1/drafts/{number}"): (OWNER, {}),
    ("DELETE", "/v1/drafts/{number}"): (OWNER, None),
    ("GET", "/v1/drafts/{number}/advice"): (OWNER, None),
    ("GET", "/v1/drafts/{number}/check"): (OWNER, None),
    ("GET", "/v1/drafts/{number}/sizing"): (OWNER, None),
    ("POST", "/v1/drafts/{number}/rehearse"): (OWNER, None),
    ("POST", "/v1/drafts/{number}/publish"): (OWNER, {}),
}
"""Who may, and a body that is understood. A refusal by role comes before anything else."""


def routes_of(app) -> dict[tuple[str, str], APIRoute]:
    """Every route, also of routers that were included."""
    routes = [
        inner
        for route in app.routes
        for inner in getattr(getattr(route, "original_router", None), "routes", [route])
    ]
    return {
        (method, route.path): route
        for route in routes
        if isinstance(route, APIRoute)
        for method in route.methods
    }


def declared(route: APIRoute) -> frozenset[Role] | None:
    """The roles that a route requires, as its dependency says."""
    found = [
        dependency.call.roles
        for dependency in route.dependant.dependencies
        if hasattr(dependency.call, "roles")
    ]
    assert len(found) <= 1
    return found[0] if found else None


def ours(path: str) -> bool:
    """The console's own routes have their own matrix."""
    return path.startswith(("/v1/", "/healthz", "/metrics", "/docs"))


def test_every_route_is_in_the_matrix_with_its_roles(server):
    found = {
        name: declared(route) for name, route in routes_of(server.app).items() if ours(name[1])
    }
    assert found == {name: roles for name, (roles, _) in MATRIX.items()}


def test_the_reference_tells_of_every_route():
    """What is below `/v1/drafts` is told together."""
    told = (Path(__file__).parents[2] / "docs" / "reference" / "http.md").read_text("utf-8")
    paths = {path.removeprefix(TABLE).partition("/{")[0] for _, path in MATRIX}
    assert [path for path in sorted(paths) if path not in told] == []


@pytest.mark.parametrize("who", [None, "bad", *map(str, Role)])
def test_each_role_gets_in_exactly_where_it_may(server, who):
    server.tokens["bad"] = "sulq_" + "x" * 43
    client = server.client(who)
    for (method, path), (roles, body) in MATRIX.items():
        url = path.format(table="people", number=1, reservation="none", name="zoe")
        reply = client.request(method, url, json=body, headers={"Idempotency-Key": new_key()})
        code = reply.json().get("code") if "json" in reply.headers["content-type"] else None
        if roles is OPEN:
            assert code in (None, "unknown_token"), path  # the code of /v1/enter
        elif who in (None, "bad"):
            assert (reply.status_code, code) == (401, "unknown_token"), path
            assert reply.headers["www-authenticate"] == "Bearer"
        elif Role(who) not in roles:
            assert (reply.status_code, code) == (403, "not_for_this_role"), path
        else:
            assert code not in ("unknown_token", "not_for_this_role"), path
            assert reply.status_code < 500


def test_a_token_of_several_tables_has_each_ones_role(server, tmp_path):
    """Analyst of people, auditor of visits: the matrix holds at each, and a third table is as if
    it were not there."""
    access, mine = server.access, id_of(server.database)
    source, ledger = write_people(tmp_path / "visits.parquet", 4_000), tmp_path / "visits.ledger"
    with Database.open(source, SCHEMA, PROMISE, ledger, name="visits", publish=True) as visits:
        server.app.state.service.tables.add("visits", visits)
        token = access.issue("analyst", Role.ANALYST, {mine: "people"})
        access.carry(
            access.caller(token).token_id, "analyst", {id_of(visits): "visits"}, Role.AUDITOR
        )
        server.tokens["both"] = token
        client = server.client("both")
        listed = client.get("/v1/tables").json()["tables"]
        assert {line["name"]: line["role"] for line in listed}["visits"] == "auditor"
        assert client.get("/v1/me").json()["roles"]["people"] == "analyst"
        for table, role in (("people", Role.ANALYST), ("visits", Role.AUDITOR)):
            for (method, path), (roles, body) in MATRIX.items():
                if "{table}" not in path or path.endswith("/close"):
                    continue
                url = path.format(table=table, number=1, reservation="none", name="zoe")
                headers = {"Idempotency-Key": new_key()}
                reply = client.request(method, url, json=body, headers=headers)
                kind = reply.headers["content-type"]
                code = reply.json().get("code") if "json" in kind else None
                assert (code == "not_for_this_role") == (role not in roles), (table, path)
                assert reply.status_code < 500
        server.tokens["some"] = access.issue("some", Role.ANALYST, {id_of(visits): "visits"})
        token_id = access.caller(server.tokens["some"]).token_id
        access.carry(token_id, "some", {"elsewhere": "secret"}, Role.AUDITOR)
        client = server.client("some")
        for (method, path), (_, body) in MATRIX.items():
            if "{table}" in path:
                told = []
                for table in ("people", "nowhere"):  # not theirs, and not there
                    url = path.format(table=table, number=1, reservation="none", name="zoe")
                    headers = {"Idempotency-Key": new_key()}
                    reply = client.request(method, url, json=body, headers=headers)
                    told.append((reply.status_code, reply.json()))
                assert told[0] == told[1] and told[0][0] in (403, 404), path


def test_a_token_reaches_its_tables_only(server):
    server.tokens["narrow"] = server.access.issue("narrow", Role.OWNER, {"elsewhere": "people"})
    client = server.client("narrow")
    assert client.get("/v1/tables").json()["tables"] == []
    for method, path in MATRIX:
        if path.startswith("/v1/drafts"):  # tables to be are nobody's but who owns them all
            body = {"/v1/drafts": {"source": "people.parquet"}}.get(path, MATRIX[method, path][1])
            reply = client.request(method, path.format(number="1"), json=body)
            assert (reply.status_code, reply.json()["code"]) == (403, "not_for_this_role"), path
        if "{table}" in path:
            url = path.format(table="people", number=1, reservation="none", name="zoe")
            body = MATRIX[method, path][1]
            reply = client.request(method, url, json=body, headers={"Idempotency-Key": new_key()})
            assert (reply.status_code, reply.json()["code"]) == (404, "not_found"), path
