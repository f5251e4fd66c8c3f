"""Learn: a quote that is free, a fit that is charged to the caller, paced, told and stopped."""

from __future__ import annotations

import json
import math
import threading
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest
from tests.server.conftest import CANARY, Served
from tests.server.dial import Dial
from tests.waiting import LONGEST, come

from sulq.server.auth.tokens import Caller, Role
from sulq.server.console.learn import page
from sulq.server.console.learn.page import (
    FitStopped,
    LearnBody,
    PacedOracle,
    learn_view,
    quote_view,
)
from sulq.server.console.learn.view import (
    Arrow,
    Branch,
    CentreRow,
    centres,
    directions,
    mostly,
    tree,
)
from sulq.server.pacing import Clock, Machine, Unpaced
from sulq.server.scheduling import Scheduler

pytest.importorskip("sklearn")
ANALYST = Caller("analyst", Role.ANALYST, None, "t1")
COLUMNS = ["age", "income", "smoker"]


def fitted(server: Served, body: dict[str, Any], who: str = "analyst") -> list[dict[str, Any]]:
    """Every event of a fit."""
    events = []
    client = server.client(who)
    with client.stream("POST", "/console/people/learn/fit", json=body, timeout=120) as reply:
        assert reply.status_code == 200, reply.read()
        assert reply.headers["content-type"].startswith("text/event-stream")
        for line in reply.iter_lines():
            if line.startswith("data: "):
                events.append(json.loads(line[6:]))
    come(lambda: not page._running, "it has not ended")  # a moment after its last word
    return events


def test_a_quote_is_free_and_says_what_is_left(server: Served) -> None:
    service = server.app.state.service
    view = quote_view(service.session(ANALYST, "people"), LearnBody(columns=COLUMNS, credits=3))
    assert (view.state, view.price, view.own, view.button) == (
        "ready",
        "3",
        "37",
        "Learn for 3 credits",
    )
    large = quote_view(service.session(ANALYST, "people"), LearnBody(columns=COLUMNS, credits=20))
    assert large.state == "large" and large.confirm == "Yes, spend up to 20 of my 40 credits."
    assert quote_view(service.session(ANALYST, "people"), LearnBody()).state == "empty"
    for wrong in (
        LearnBody(columns=["note"]),
        LearnBody(columns=COLUMNS, credits=99),
        LearnBody(columns=COLUMNS, method="tree"),
    ):
        assert quote_view(service.session(ANALYST, "people"), wrong).state == "refused"
    assert server.database.left_for("analyst") == 40


@pytest.mark.parametrize(
    ("body", "picture", "words"),
    [
        ({"method": "pca"}, "wedge", "Component 1 is mostly"),
        ({"method": "kmeans", "groups": 2, "columns": ["age", "income"]}, "cloud k2", "A: "),
        (
            {"method": "tree", "label": "smoker", "columns": ["age", "region"]},
            "node leaf",
            "Stopped at",
        ),
    ],
)
def test_a_fit_is_told_charged_and_drawn(
    server: Served, body: dict[str, Any], picture: str, words: str
) -> None:
    events = fitted(server, {"columns": COLUMNS, "credits": 30, **body})
    *told, last = events
    assert last["state"] == "done", last
    assert picture in last["html"] and words in last["html"] and CANARY not in last["html"]
    assert "style=" not in last["html"] and len(last["html"].encode()) < 40_000
    assert told and all("credits" in event["said"] and 0 < event["share"] <= 1 for event in told)
    spent = 40 - server.database.left_for("analyst")
    assert 0 < spent <= 30
    assert server.database.left_for("rival") == 10


@pytest.mark.usefixtures("settled")
def test_the_same_again_is_free(server: Served) -> None:
    body = {"method": "kmeans", "groups": 2, "columns": ["age", "income"], "credits": 20}
    fitted(server, body)
    before = server.database.left_for("analyst")
    assert "0 credits" in fitted(server, body)[-1]["html"]
    assert server.database.left_for("analyst") == before


@pytest.mark.usefixtures("settled")
def test_noise_that_hides_all_is_said_with_what_it_cost(server: Served) -> None:
    last = fitted(server, {"columns": COLUMNS, "credits": 0.001})[-1]
    assert last["state"] in ("noisy", "refused") and "spent" in last["html"]


def test_closing_the_connection_stops_and_keeps(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second question waits until the reader is known to have gone: no pause is long enough."""
    asked: list[object] = []
    sound = PacedOracle.ask

    def ask(self: PacedOracle, query: object, **terms: Any) -> Any:
        asked.append(query)
        if len(asked) == 2:
            self._run.stop.wait(LONGEST)
        return sound(self, query, **terms)

    monkeypatch.setattr(PacedOracle, "ask", ask)
    body = {"method": "kmeans", "groups": 3, "columns": ["age", "income"], "credits": 30}
    client = server.client("analyst")
    with client.stream("POST", "/console/people/learn/fit", json=body, timeout=120) as reply:
        next(line for line in reply.iter_lines() if line.startswith("data: "))
    come(lambda: not page._running, "it has not stopped")  # its thread has ended
    left = server.database.left_for("analyst")
    assert len(asked) == 2 and left > 10  # the second was not asked any more
    fitted(server, body)
    assert server.database.left_for("analyst") >= 10 - Fraction(1, 1000)  # nothing twice


def test_who_may_not_ask_may_not_learn(server: Served) -> None:
    for path in ("learn/quote", "learn/fit"):
        reply = server.client("auditor").post(f"/console/people/{path}", json={"columns": COLUMNS})
        assert reply.status_code == 403
    assert server.client("auditor").get("/console/people/learn").status_code == 403
    assert server.client("analyst").post("/console/none/learn/fit", json={}).status_code == 404


def test_answers_wait_for_the_clock(server: Served) -> None:
    """Each question is asked a whole number of ticks after the one before, on a test's dial."""
    app, dial = server.app, Dial()
    clock = Clock.of(server.database, tick=0.5, machine=Machine(1e-3, 1e-10, 1e-6), departures=dial)
    app.state.service._clocks["people"] = clock
    app.state.workers.scheduler = Scheduler(dial)
    events = fitted(server, {"columns": COLUMNS, "credits": 10})
    taken, asked = (dial.moment - 1_000) / clock.tick, len(events) - 1
    assert asked > 0 and taken == pytest.approx(round(taken)) and taken >= asked


def test_the_seam_between_learner_and_table() -> None:
    class Oracle:
        remaining = Fraction(3)

        def ask(self, query: object, **terms: Any) -> Any:
            return type("Answer", (), {"credits": Fraction(1)})()

    left, told, stop = [], [], threading.Event()
    run = SimpleNamespace(
        session=SimpleNamespace(clock=Unpaced(), bind=lambda query: SimpleNamespace(digest=query)),
        turn=lambda load: 0.0,
        wait=lambda leaving: (leaving.close(), left.append("one")),
        paid=told.append,
        stop=stop,
    )
    paced = PacedOracle(run, Oracle())  # type: ignore[arg-type]
    assert paced.remaining == 3
    paced.ask("one", credits=1)
    assert (left, told) == (["one"], [1])
    stop.set()
    with pytest.raises(FitStopped):
        paced.ask("two")
    assert left == ["one"]


def test_missing_learners_are_said(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(page.learners, "__getattr__", absent)
    view = learn_view(server.app.state.service.session(ANALYST, "people"))
    assert "pip install 'sulq[learn]'" in view.missing
    assert "note" not in [name for name, _ in view.columns]


def test_pictures() -> None:
    drawn = str(directions([Arrow("age", 1, 0, 0.1), Arrow("<b>", 0, 1, 2.0)], 0.5, ("x", "y")))
    assert drawn.count("wedge") == 2 and "&lt;b&gt;" in drawn and "<b>" not in drawn
    groups = [CentreRow("A", 3, 4, 0.1, 0.2, 1, 1), CentreRow("B", 8, 9, 0.1, 0.2, 1, 1)]
    assert str(centres(groups, (0, 10, "x"), (0, 10, "y"))).count("cloud") == 2
    leaf = Branch("Leaf 1", "8 %", "1", 0.08, 0.01, "no")
    root = Branch("All", "9 %", "1", 0.09, 0.01, "", (leaf, leaf, leaf))
    drawn = str(tree(root, "label"))
    assert drawn.count("node leaf") == 3 and drawn.count('class="edge"') == 3
    assert "nan" not in drawn


def test_words() -> None:
    assert mostly(["a", "b", "c"], np.array([0.9, 0.4, 0.1])) == ["a"]
    assert mostly(["a", "b", "c"], np.array([1, 1, 1]) / math.sqrt(3)) == ["a", "b", "c"]


def test_one_run_at_a_time(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "_running", {("people", "analyst")})
    reply = server.client("analyst").post("/console/people/learn/fit", json={"columns": COLUMNS})
    assert reply.status_code == 429 and isinstance(reply, httpx.Response)
