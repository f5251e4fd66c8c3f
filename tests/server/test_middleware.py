"""Headers on every reply, logs and errors without values."""

from __future__ import annotations

import json
from itertools import product

from tests.server.conftest import CANARY, new_key

from sulq import col, count
from sulq.server.middleware import HEADERS
from sulq.server.service import books
from sulq.wire import question_json

OLD = {"question": question_json(count(where=col("age") > 40))}
SECRET = "zebra-4711"
"""A word of a question, of a path or of a token: it must not be logged."""


def test_security_headers_are_on_every_reply(server):
    paths = ("/healthz", "/docs", "/openapi.json", "/v1/me", "/nowhere", "/enter", "/metrics")
    for who, path in product((None, "analyst"), paths):
        reply = server.client(who).get(path)
        for name, text in HEADERS.items():
            if name != "cache-control":
                assert reply.headers[name] == text, (path, name)
        assert len(reply.headers["x-request-id"]) == 16
        assert "server" not in reply.headers
        assert "set-cookie" not in reply.headers
    assert "unsafe" not in HEADERS["content-security-policy"]


def test_logs_are_json_lines_that_say_who_and_which_route_and_nothing_else(server):
    server.post("ask", OLD)
    server.client().get(f"/v1/tables/{SECRET}/schema?{SECRET}={SECRET}")
    server.post("sql", {"sql": f"SELECT COUNT(*) FROM people WHERE illness = '{SECRET}'"})
    server.client(None).get("/v1/me", headers={"Authorization": f"Bearer {SECRET}"})
    server.client(None).request(SECRET.upper().replace("-", ""), "/v1/me")
    lines = [json.loads(line) for line in server.logged(5).splitlines()]
    assert [line["route"] for line in lines[:2]] == [
        "/v1/tables/{table}/ask",
        "/v1/tables/{table}/schema",
    ]
    assert [line["status"] for line in lines] == [200, 404, 200, 401, 405]
    assert [line["caller"] for line in lines] == ["analyst"] * 3 + [None] * 2
    fields = {"time", "event", "request", "method", "route", "status", "caller"}
    assert all(line.keys() == fields for line in lines)
    logged = server.log.getvalue()
    assert SECRET not in logged and SECRET.upper() not in logged
    assert "age" not in logged
    assert not any(token in logged for token in server.tokens.values())


def test_what_was_not_foreseen_says_one_sentence_and_logs_no_message(server, monkeypatch):
    def broken(*_: object) -> None:
        raise RuntimeError(f"a message with {CANARY}")

    monkeypatch.setattr(books, "schema", broken)
    reply = server.get("schema")
    assert (reply.status_code, reply.json()["code"]) == (500, "internal")
    assert CANARY not in reply.text
    assert "Traceback" not in reply.text
    logged = server.logged(1)
    assert CANARY not in logged
    assert "RuntimeError at" in json.loads(logged.splitlines()[-1])["error"]


def test_a_failure_inside_an_answer_is_constant_too(server, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise ValueError(CANARY)

    monkeypatch.setattr(server.database.engine, "prepare", broken, raising=False)
    reply = server.post("ask", OLD)
    assert reply.status_code == 500
    assert CANARY not in reply.text + server.logged(1)


def test_canaries_of_hidden_columns_appear_nowhere(server, capfd):
    texts = []
    for body in (
        {"sql": "SELECT note, COUNT(*) FROM people GROUP BY note"},
        {"sql": f"SELECT COUNT(*) FROM people WHERE note = '{CANARY}-1'"},
        {"sql": "SELECT illness, COUNT(*) FROM people GROUP BY illness"},
        {"sql": "SELECT CAST(note AS INT) FROM people"},
    ):
        for path in ("quote", "sql"):
            reply = server.post(path, body)
            texts.append(reply.text.replace(f"{CANARY}-1'", "") + str(reply.headers))
    for path in ("schema", "statement", "ledger", "answers", "dummy"):
        for who in ("owner", "analyst", "auditor"):
            texts.append(server.get(path, who).text)
    server.post("ask", OLD, key=new_key())
    told = "".join(texts) + server.log.getvalue() + "".join(capfd.readouterr())
    assert CANARY not in told
    state = server.database.ledger._shared.state
    assert state is not None
    kept = [path for path in state.rglob("*") if path.is_file()]
    assert kept and not any(CANARY.encode() in path.read_bytes() for path in kept)
