"""What is too large, too deep, too wide or malformed is refused by public rules, and free."""

from __future__ import annotations

import json
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.conftest import new_key

from sulq import col, count, histogram
from sulq.server.errors import HttpProblem
from sulq.server.limits import Settings, check_depth
from sulq.wire import question_json

OLD = {"question": question_json(count(where=col("age") > 40))}


def send(server, content: bytes, path: str = "quote", **headers: str):
    more = {"content-type": "application/json", "idempotency-key": new_key(), **headers}
    return server.client().post(f"/v1/tables/people/{path}", content=content, headers=more)


def test_a_request_of_too_many_bytes(server):
    reply = send(server, b'{"sql": "' + b"x" * 1_000_001 + b'"}')
    assert (reply.status_code, reply.json()["code"]) == (413, "too_large")


def test_a_stream_of_too_many_bytes_is_cut_off(server):
    def endless():
        for _ in range(10_000):
            yield b"x" * 1_000

    reply = server.client().post("/v1/tables/people/quote", content=endless())
    assert (reply.status_code, reply.json()["code"]) == (413, "too_large")


@pytest.mark.parametrize("bomb", [b"[" * 100_000, b'{"a":' * 50_000, b"[" * 300 + b"]" * 300])
def test_depth_bombs(server, bomb):
    reply = send(server, bomb)
    assert (reply.status_code, reply.json()["code"]) == (413, "too_large")


def test_nesting_below_the_limit_is_refused_by_the_language(server):
    deep = ["num", "1"]
    for _ in range(120):
        deep = ["not", deep]
    query = {**OLD["question"]["query"], "rows": deep}
    reply = server.post("ask", {"question": {**OLD["question"], "query": query}})
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_query")


@pytest.mark.parametrize("path", ["quote", "ask", "sql"])
@pytest.mark.parametrize(
    "body",
    [
        b'{"sql": "SELECT COUNT(*) FROM people", "max_credits": 0.5, "max_credits": 500}',
        b'{"sql": "SELECT COUNT(*) FROM people", "max_credits": 0.5, "max_\\u0063redits": 500}',
        b'{"question": {"kind": "count", "kind": "total", "query": {}, "shares": []}}',
        b'[{"a": {"b": 1, "c": 2, "b": 1}}]',
    ],
)
def test_a_field_given_twice_is_refused(server, path, body):
    """The last one counted: a proxy that checks the first was passed by."""
    reply = send(server, body, path)
    said = reply.json()
    assert (reply.status_code, said["code"]) == (400, "bad_request")
    assert "given twice" in said["detail"] and said["credits_spent"] == 0


def test_one_name_in_two_objects_is_no_repetition(server):
    assert send(server, json.dumps(OLD).encode()).status_code == 200
    twice = {"questions": [OLD["question"], OLD["question"]]}
    assert "given twice" not in send(server, json.dumps(twice).encode(), "plan").text


JSON = st.recursive(
    st.text(max_size=5) | st.integers(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=30,
)


@given(JSON)
def test_depth_is_counted_outside_of_texts(value):
    def depth(node: object) -> int:
        inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        return isinstance(node, dict | list) + max(map(depth, inner), default=0)

    text = json.dumps({"brackets": '[[[[{{{{"\\', "value": value}).encode()
    most = depth(value) + 1
    check_depth(text, Settings(most_depth=most))
    if most > 1:
        with pytest.raises(HttpProblem):
            check_depth(text, Settings(most_depth=most - 1))


MALFORMED = [
    b"",
    b"{",
    b"null",
    b"[]",
    b'"text"',
    b"\xff\xfe\x00",
    b'{"sql": 1}',
    b'{"sql": "SELECT 1", "unknown": 2}',
    b'{"question": {"kind": "count", "query": {}}}',
    b'{"question": {"kind": "nothing", "query": {}}}',
    b'{"sql": "SELECT COUNT(*) FROM people", "confidence": NaN}',
    b'{"sql": "SELECT COUNT(*) FROM people", "confidence": 1e999}',
    b'{"sql": "SELECT COUNT(*) FROM people", "credits": "1/0"}',
    b'{"sql": "SELECT COUNT(*) FROM people", "rows": -1}',
    b'{"sql": "SELECT COUNT(*) FROM people", "rows": ' + b"9" * 5_000 + b"}",
    b'{"sql": "SELECT \\ud800 FROM people"}',
    b'{"sql": "\\u0000"}',
]


def test_malformed_bodies(server):
    for content in MALFORMED:
        for path in ("quote", "ask", "sql", "plan"):
            reply = send(server, content, path)
            assert reply.status_code in (400, 422), (content[:60], reply.text)
            assert reply.headers["content-type"] == "application/problem+json"
            assert reply.json()["credits_spent"] == 0
    assert server.database.statement().spent == 0


def test_an_answer_too_wide_to_send(server):
    wide = histogram("age", "income", "illness", edges={"age": range(100), "income": range(1_000)})
    reply = server.post("ask", {"question": question_json(wide)})
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_query")
    assert "over HTTP" in reply.json()["detail"]


@pytest.mark.parametrize("key", ["short", "x" * 129, "with space", "ümläute-x", "a/bcdefghi"])
def test_keys_of_another_form(server, key):
    reply = server.client().post(
        "/v1/tables/people/ask", json=OLD, headers={"Idempotency-Key": key.encode()}
    )
    assert reply.status_code == 422


def test_an_error_in_a_statement_is_pointed_at(server):
    text = "SELECT AVG(wealth) FROM people"
    told = server.post("sql", {"sql": text}).json()
    assert text[told["start"] : told["end"]] == "wealth"
    assert told["credits_spent"] == 0


def test_another_table_another_route_another_verb(server):
    client = server.client()
    assert client.get("/v1/tables/nothing/schema").json()["code"] == "not_found"
    assert client.get("/v1/nowhere").json()["code"] == "not_found"
    assert client.put("/v1/tables").json()["code"] == "method_not_allowed"


def test_half_a_request_is_not_waited_for_without_end(server):
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as line:
        line.sendall(
            b"POST /v1/tables/people/quote HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{"
        )
    assert server.client(None).get("/healthz").status_code == 200
