"""What tools may spend: nothing by themselves, and never more than the purpose they name."""

from __future__ import annotations

import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import new_key, served

from sulq import Promise, col, count
from sulq.errors import EngineFailed
from sulq.kernel.engines.duckdb import engine
from sulq.server.errors import HttpProblem
from sulq.server.limits import Settings
from sulq.server.purposes import Purpose, Purposes
from sulq.server.service.catalog import id_of
from sulq.wire import question_json


def older(than: int, **terms: Any) -> dict[str, Any]:
    return {"sql": f"SELECT COUNT(*) AS n FROM people WHERE age > {than}", **terms}


def dashboard(credits: int | str, name: str = "dashboard") -> dict[str, Any]:
    return {"purpose": name, "purpose_credits": credits}


def left(server: Any, who: str = "analyst") -> Fraction:
    return server.database.left_for(who)


def test_at_zero_only_what_the_caller_was_told_comes_back_and_a_refresh_is_free(server):
    asked = older(31)
    refused = server.post("sql", {**asked, "max_credits": 0}).json()
    assert (refused["status"], refused["code"]) == (409, "price_changed")
    assert refused["credits_spent"] == 0 and refused["about"] == {"credits": "1"}
    told = server.post("sql", asked).json()
    before = left(server)
    for _ in range(3):
        again = server.post("sql", {**asked, "max_credits": 0}).json()
        assert again["rows"] == told["rows"] and again["credits"] == 0
    rival = server.post("sql", {**asked, "max_credits": 0}, "rival").json()
    assert rival["code"] == "price_changed"  # not what somebody else was told
    public = {"sql": "SELECT region, COUNT(*) FROM people GROUP BY region", "max_credits": 0}
    assert server.post("sql", public, "rival").json()["credits"] == 0
    explain = server.post("sql", {"sql": f"EXPLAIN {older(32)['sql']}", "max_credits": 0})
    assert explain.status_code == 200 and left(server) == before


def test_a_purpose_spends_its_credits_and_no_more(server):
    before, terms = left(server), dashboard(2, "two")
    assert server.post("sql", older(41, **terms)).json()["credits"] == 1
    question = question_json(count(where=col("age") > 42))
    assert server.post("ask", {"question": question, **terms}).json()["credits"] == 1
    third = server.post("sql", older(43, **terms)).json()
    assert (third["status"], third["code"], third["credits_spent"]) == (402, "budget_spent", 0)
    assert third["about"] == {"credits": "1", "left": "0"}
    assert server.post("ask", {"question": question, **terms}).json()["credits"] == 0  # told before
    assert left(server) == before - 2
    other = server.post("sql", older(43, **dashboard(1, "other"))).json()
    assert other["credits"] == 1
    assert server.post("sql", older(44, **dashboard(3, "two"))).json()["credits"] == 1
    assert server.post("sql", older(45, **dashboard(3, "two"))).json()["code"] == "budget_spent"


def test_a_statement_of_several_questions_is_counted_whole(server):
    terms = dashboard("21/2", "several")
    asked = "SELECT AVG(income), AVG(age) FROM people WHERE smoker AND age > 7"
    paid = server.post("sql", {"sql": asked, **terms}).json()
    purpose = Purpose(id_of(server.database), "analyst", "several")
    assert server.app.state.service.purposes.spent(purpose) == Fraction(paid["credits_exact"]) > 0


def test_requests_that_come_together_do_not_pass_the_limit(server):
    before, replies = left(server), []

    def ask(age: int) -> None:
        replies.append(server.post("sql", older(age, **dashboard(3, "crowd"))).json())

    threads = [threading.Thread(target=ask, args=(age,)) for age in range(60, 68)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(reply.get("code", "") for reply in replies) == [""] * 3 + ["budget_spent"] * 5
    assert left(server) == before - 3


def test_a_plan_is_counted_whole(server):
    questions = [question_json(count(where=col("age") > age)) for age in (71, 72)]
    before, plan = left(server), {"questions": questions}
    refused = server.post("plan/ask", {**plan, **dashboard(1, "plan")}).json()
    assert refused["code"] == "budget_spent" and refused["about"] == {"credits": "2", "left": "1"}
    free = server.post("plan/ask", {**plan, "max_credits": 0}).json()
    assert free["code"] == "price_changed" and left(server) == before
    assert server.post("plan/ask", {**plan, **dashboard(2, "plan")}).json()["credits"] == 2
    assert server.post("plan/ask", {**plan, "max_credits": 0}).json()["credits"] == 0
    assert server.post("sql", older(73, **dashboard(2, "plan"))).json()["code"] == "budget_spent"
    assert left(server) == before - 2


def test_neither_a_restart_nor_a_lost_reply_fills_a_purpose_up(tmp_path, state, monkeypatch):
    settings, promise = Settings(pacing=False), Promise(epsilon=1, delta="1e-6", queries=100)
    key, terms = new_key(), dashboard(1)
    with served(tmp_path, settings, promise) as server:
        with monkeypatch.context() as broken:
            broken.setattr(engine.DuckDBEngine, "prepare", lambda *_: _fail)
            lost = server.post("sql", older(50, **terms), key=key).json()
        assert lost["code"] == "engine_failed" and left(server) == 39
    with served(tmp_path, settings, promise) as server:
        assert server.post("sql", older(51, **terms)).json()["code"] == "budget_spent"
        assert server.post("sql", older(50, **terms), key=key).status_code == 200  # paid before
        assert server.post("sql", older(51, **terms)).json()["code"] == "budget_spent"
        assert left(server) == 79  # `served` grants 40 each time


def _fail(*_: object) -> None:
    raise EngineFailed


def test_a_purpose_has_a_name_and_credits(server):
    for terms in (
        {"purpose": "alone"},
        {"purpose_credits": 3},
        dashboard(3, ""),
        dashboard(3, "/"),
    ):
        reply = server.post("sql", older(52, **terms))
        assert (reply.status_code, reply.json()["credits_spent"]) == (422, 0)
    assert (
        "purpose and purpose_credits" in server.post("sql", older(52, purpose="a")).json()["detail"]
    )


def test_what_an_attempt_may_have_paid_stays_counted(tmp_path: Path):
    purposes, purpose = Purposes.open(tmp_path / "p.sqlite"), Purpose("t", "a", "dashboard")
    assert not purposes.admit(purpose, "one", Fraction(2), Fraction(3))  # and then: killed
    with pytest.raises(HttpProblem):
        purposes.admit(purpose, "two", Fraction(2), Fraction(3))
    purposes.close()
    purposes = Purposes.open(tmp_path / "p.sqlite")
    assert purposes.admit(purpose, "one", Fraction(0), Fraction(3))
    assert purposes.spent(purpose) == 2
    assert purposes.spent(purpose._replace(account="b")) == 0
    assert not purposes.admit(purpose, "two", Fraction(1), Fraction(3))
    purposes.settle(purpose, "two", Fraction(0))
    assert purposes.spent(purpose) == 2
    purposes.close()
