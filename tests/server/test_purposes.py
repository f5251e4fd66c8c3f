"""What tools may spend: nothing by themselves, and never more than the purpose they name."""

from __future__ import annotations

import signal
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import apsw
import httpx
import pytest
from tests.faults.disk import Disk
from tests.server.conftest import new_key, served, write_people
from tests.server.test_idempotency import running
from tests.waiting import LONGEST

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


def test_a_reservation_and_a_purpose_both_bound_what_is_spent(server):
    before = left(server)
    held = server.post("reservations", {"credits": 2}).json()["id"]
    terms = {"reservation": held, **dashboard(1, "within")}
    assert server.post("sql", older(81, **terms)).json()["credits"] == 1
    assert "purpose" in server.post("sql", older(82, **terms)).json()["detail"]  # 1 of its 1
    terms |= dashboard(9, "within")
    assert server.post("sql", older(82, **terms)).json()["credits"] == 1
    refused = server.post("sql", older(83, **terms)).json()  # 2 of the reservation's 2
    assert (refused["code"], refused["credits_spent"]) == ("budget_spent", 0)
    purpose = Purpose(id_of(server.database), "analyst", "within")
    assert server.app.state.service.purposes.spent(purpose) == 2
    server.client().delete(f"/v1/tables/people/reservations/{held}")
    assert left(server) == before - 2


@pytest.mark.parametrize("at", [1, 2])
def test_a_disk_that_fills_up_after_the_charge_hides_no_answer(server, at):
    """The first write of settling fails, or a later one: the price stays counted, and no more."""
    service, place = server.app.state.service, server.app.state.service.purposes
    disk = Disk("full", at, sticky=True)
    path = Path(place._connection.filename)
    place.close()
    connection = apsw.Connection(str(path), vfs=disk.name)
    connection.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL")
    service.purposes = Purposes(connection)
    sound, before = service.purposes.admit, left(server)

    def fill(*given: Any) -> bool:
        found = sound(*given)
        disk.armed = True
        return found

    service.purposes.admit = fill
    told = server.post("sql", {**older(84, **dashboard(5, "full")), "credits": 1})
    assert told.status_code == 200 and disk.fired and left(server) == before - 1
    service.purposes.admit = sound
    refused = server.post("sql", older(85, **dashboard(5, "full"))).json()  # it cannot be counted
    assert (refused["code"], left(server)) == ("out_of_order", before - 1)
    disk.armed = False
    purpose = Purpose(id_of(server.database), "analyst", "full")
    assert service.purposes.spent(purpose) == 1
    assert server.post("sql", older(85, **dashboard(2, "full"))).status_code == 200
    assert server.post("sql", older(86, **dashboard(2, "full"))).json()["code"] == "budget_spent"


@pytest.mark.slow
@pytest.mark.parametrize("step", ["admitted", "charged"])
def test_killed_between_admission_and_settling_a_purpose_has_spent_its_price(
    tmp_path, monkeypatch, step
):
    monkeypatch.setenv("SULQ_STATE", str(tmp_path / "state"))
    write_people(tmp_path / "people.parquet")

    def asked(url: str, age: int, key: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {(tmp_path / 'token').read_text()}"}
        return httpx.post(
            f"{url}/v1/tables/people/sql",
            json=older(age, **dashboard(2)),
            headers=headers | {"Idempotency-Key": key},
            timeout=LONGEST,
        )

    with running(tmp_path, step) as (process, url):
        with pytest.raises(httpx.TransportError):
            asked(url, 30, "killed-here")
        assert process.wait(120) == -signal.SIGKILL
    with running(tmp_path) as (_, url):
        assert asked(url, 31, "another-1").json()["credits"] == 1
        assert asked(url, 32, "another-2").json()["code"] == "budget_spent"  # 1 may be paid
        assert asked(url, 30, "killed-here").json()["credits"] == 1  # by the retry, once
        assert asked(url, 32, "another-3").json()["code"] == "budget_spent"


def test_each_state_directory_counts_for_itself(tmp_path):
    """As docs/reference/http.md and the guide on shared ledgers say; the share bounds all."""
    purpose = Purpose("t", "a", "dashboard")
    here, there = (Purposes.open(tmp_path / f"{place}.sqlite") for place in ("here", "there"))
    together = Purposes.open(tmp_path / "here.sqlite")  # a second process of one directory
    here.admit(purpose, "one", Fraction(2), Fraction(2))
    with pytest.raises(HttpProblem):
        together.admit(purpose, "two", Fraction(1), Fraction(2))
    there.admit(purpose, "two", Fraction(2), Fraction(2))
    assert here.spent(purpose) == together.spent(purpose) == there.spent(purpose) == 2
    for each in (here, there, together):
        each.close()
