"""What a hostile review tried: requests that lie, hog, or ask for more than they may have."""

from __future__ import annotations

import ast
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx
import pytest
import uvicorn
from tests.server.conftest import new_key, served
from tests.waiting import LONGEST, come

from sulq import col, count
from sulq.cli import server_process
from sulq.errors import InvalidQuery
from sulq.server import idempotency
from sulq.server.address import public_url
from sulq.server.console.ask.page import python_text
from sulq.server.limits import Settings
from sulq.server.service import books, questions
from sulq.wire import SqlBody, question_json

SMOKERS = {"question": question_json(count(where=col("smoker")))}


def test_revoked_between_charge_and_answer_says_what_was_spent(server):
    database, prepare = server.database, server.database.engine.prepare

    def slow(*given, **named):
        read = prepare(*given, **named)

        def reading(*given, **named):
            database.revoke("analyst", "left")
            return read(*given, **named)

        return reading

    database.engine.prepare = slow
    before = database.statement().spent
    told = server.post("ask", {**SMOKERS, "credits": 3}).json()
    assert told["credits_spent_exact"] == "3" == str(database.statement().spent - before)
    assert "nothing" not in told["hint"] and "stands" in told["hint"]


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", ["credits", "max_credits"])
@pytest.mark.parametrize("digits", [310, 400, 4_000])
@pytest.mark.parametrize("text", [True, False])
def test_huge_numbers_are_refused_not_failed_on(server, name, digits, text):
    number = f'"{"9" * digits}"' if text else "9" * digits
    body = json.dumps({**SMOKERS, name: 0}).replace(f'"{name}": 0', f'"{name}": {number}')
    reply = server.client().post(
        "/v1/tables/people/ask",
        content=body,
        headers={"Idempotency-Key": new_key(), "Content-Type": "application/json"},
    )
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_query")


@pytest.mark.parametrize(
    "sql",
    [
        'SELECT count(*) AS n FROM people WHERE illness = \'"""); print(6*7); ("""\'',
        "SELECT 'it''s' \\\n'); import os; ('",
        "SELECT count(*)\nFROM people\u2028WHERE \\'x",
    ],
)
@pytest.mark.parametrize("table", ["people", 'a"); print(1); ("', "a/b"])
def test_a_copied_question_is_one_text_in_python(sql, table):
    """Three statements and a call of `sql` with the very text, whatever it holds."""
    tree = ast.parse(python_text("http://h", table, SqlBody(sql=sql, credits="3/2")))
    kinds = [type(line).__name__ for line in tree.body]
    assert kinds == ["Import", "Assign", "Assign", "Expr"]
    call = tree.body[2].value
    assert ast.literal_eval(call.args[0]) == sql
    assert ast.literal_eval(call.keywords[0].value) == "3/2"
    assert tree.body[1].value.args[0].value.count("/") == 3


def test_an_auditor_reads_no_noisy_answers(server):
    server.post("ask", SMOKERS)
    assert server.get("answers", "auditor").status_code == 403
    page = server.client("auditor").get("/console/people/table").text
    assert page and server.get("answers", "owner").json()["entries"]
    values = server.get("answers").json()["entries"][0]["values"]
    assert values[0] not in page


def test_a_request_for_answers_looks_through_few_events(server, monkeypatch):
    monkeypatch.setattr(books, "MOST_SCANNED", 3)
    for _ in range(3):
        server.post("ask", SMOKERS)
    reply = server.get("answers", "rival").json()
    assert reply["entries"] == [] and reply["next"] is not None
    upto, found = 0, []
    while upto is not None:
        page = server.get("answers", params={"after": upto}).json()
        found += page["entries"]
        upto = page["next"]
    assert len(found) == 3


def test_one_callers_requests_stop_nobody_else(server, monkeypatch):
    """Forty free plans that end when a colleague's statement has come: if it waited, none would."""
    stop, working = threading.Event(), []
    real = questions.quote_plan

    def endless(session, body):
        working.append(session.caller.name)
        stop.wait(LONGEST)
        return real(session, body)

    monkeypatch.setattr(questions, "quote_plan", endless)
    body = {"questions": [SMOKERS["question"]], "credits": 1}
    with ThreadPoolExecutor(40) as pool:
        replies = [pool.submit(server.post, "plan", body) for _ in range(40)]
        try:
            come(lambda: server.app.state.workers.pages.running == 40 and len(working) == 2)
            assert server.get("statement", "rival").status_code == 200
            assert working == ["analyst"] * 2
        finally:
            stop.set()
        assert {reply.result().status_code for reply in replies} == {200}


def test_a_plan_too_large_to_price_for_nothing_is_refused(server):
    body = {"questions": [SMOKERS["question"]] * 501, "credits": 1}
    assert "several plans" in server.post("plan", body).json()["detail"]


def test_made_up_answers_are_not_kept(server):
    sql, key = "SELECT age, count(*) AS n FROM people GROUP BY age", new_key()
    for _ in range(2):
        assert server.post("sql", {"sql": sql, "dummy": True}, key=key).status_code == 200
    connection = server.app.state.service.replies._connection
    assert connection.execute("SELECT count(*) FROM replies").get == 0


def test_kept_replies_of_a_caller_have_a_size(tmp_path, monkeypatch):
    monkeypatch.setattr(idempotency, "BYTES_PER_CALLER", 1_000)
    store = idempotency.Replies.open(tmp_path / "replies.sqlite")
    for number in range(20):
        for caller in ("ann", "bob") if number == 0 else ("ann",):
            name = idempotency.ReplyKey("table", caller, f"key-{number:06d}")
            store.begin(name, b"digest", 0)
            store.finish(name, b"x" * 100)
    held = store._connection.execute("SELECT caller, sum(length(body)) FROM replies GROUP BY 1")
    sizes = dict(held.fetchall())
    store.close()
    assert sizes["bob"] == 100 and 500 <= sizes["ann"] <= 1_300


def test_a_reservation_has_a_least_size_and_ends_idle_whoever_comes(tmp_path, state):
    with served(tmp_path, Settings(pacing=False, reservation_idle=60)) as server:
        client, now = server.client(), [0.0]
        server.app.state.service.reservations._clock = lambda: now[0]
        small = client.post("/v1/tables/people/reservations", json={"credits": "1/1001"})
        assert small.status_code == 422
        client.post("/v1/tables/people/reservations", json={"credits": 30})
        assert server.get("statement").json()["mine_exact"] == "10"
        for moment, left in ((60, "10"), (61, "40")):
            now[0] = moment
            server.get("statement", "rival")
            assert server.get("statement").json()["mine_exact"] == left


def test_links_and_code_name_the_public_address(tmp_path, state):
    settings = Settings(pacing=False, public_url="https://sulq.example")
    with served(tmp_path, settings) as server:
        body = {"name": "zoe", "credits": 1}
        link = server.client("owner").post("/v1/tables/people/grants", json=body).json()["link"]
        assert link.startswith("https://sulq.example/enter#")
        asking = {"sql": "SELECT count(*) AS n FROM people", "dummy": True}
        page = server.client().post(
            "/console/people/ask", json=asking, headers={"Idempotency-Key": new_key()}
        )
        assert "https://sulq.example/people" in page.text


@pytest.mark.parametrize("given", ["sulq.example", "ftp://x", "https://", "https://x/?a=1"])
def test_a_public_address_is_one(given):
    with pytest.raises(InvalidQuery, match=r"https://sulq\.example"):
        public_url(given)
    assert public_url("https://x/y/") == "https://x/y"


@pytest.mark.parametrize("said", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: "])
def test_a_silent_connection_is_closed(server, monkeypatch, said):
    """Sooner or later, and one that has asked is not: its time runs out by the test's hand."""
    made = []

    class Noted(server_process.IdleTimeoutProtocol):
        def connection_made(self, transport):
            super().connection_made(transport)
            made.append(self)

    config = uvicorn.Config(server.app, port=0, log_config=None, http=Noted, lifespan="off")
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    come(lambda: running.started)
    where = running.servers[0].sockets[0].getsockname()
    try:
        monkeypatch.setattr(server_process, "FIRST", 0.05)
        with socket.create_connection(where, timeout=LONGEST) as silent:
            with suppress(ConnectionError):  # it may be closed already
                silent.sendall(said)
            assert silent.recv(1) == b""
        monkeypatch.setattr(server_process, "FIRST", 10 * LONGEST)
        url, fired = f"http://127.0.0.1:{where[1]}", threading.Event()
        with httpx.Client(base_url=url, timeout=LONGEST) as client:
            assert client.get("/healthz").status_code == 200
            made[-1].loop.call_soon_threadsafe(lambda: (made[-1].give_up(), fired.set()))
            assert fired.wait(LONGEST)
            assert client.get("/healthz").status_code == 200
        assert len(made) == 2  # the same connection as before
    finally:
        running.should_exit = True
        thread.join(LONGEST)
