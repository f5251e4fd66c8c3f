"""Keys, choices and alerts on the clock: how long a reply is held follows from public facts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from tests.server.test_pacing import MACHINE

from sulq import (
    Category,
    Database,
    InvalidQuery,
    Number,
    Promise,
    Schema,
    col,
    count,
    histogram,
    total,
)
from sulq.database.delay import delayed
from sulq.kernel.accounting.mechanisms import delay_for
from sulq.kernel.release import release as flow
from sulq.server.auth.tokens import Access, Caller, Role
from sulq.server.errors import HttpProblem
from sulq.server.idempotency import Replies
from sulq.server.limits import Settings
from sulq.server.pacing import Clock, Delayed, Unpaced, Wide, check_lasting, weight
from sulq.server.service.catalog import Tables
from sulq.server.service.questions import (
    prepare_alert,
    prepare_check,
    prepare_keys,
    prepare_sql,
    prepare_top,
)
from sulq.server.service.session import Service
from sulq.wire import SqlBody, question_json
from sulq.wire.bodies import QuestionBody
from sulq.wire.discovery import AlertBody, CheckBody, KeysBody, TopBody

ROWS = 3_000
SCHEMA = Schema(Number("age", 0, 120, step=1), Category("note"), Category("town", ["a", "b"]))
PROMISE = Promise(1, "1e-6", queries=1000)
OWNER = Caller("owner", Role.OWNER, None, "id")
OLD = QuestionBody(**question_json(count(where=col("age") >= 50)))


def table(notes, promise=PROMISE, schema=SCHEMA, ledger=":memory:"):
    place = np.arange(ROWS)
    towns = np.where(place % 3 == 0, "a", "b")
    rows = pd.DataFrame({"age": place % 80, "note": notes, "town": towns})
    return Database.open(rows, schema, promise, ledger, name="people", publish=True)


@pytest.fixture
def service(tmp_path):
    """Two tables with the same public facts: one key, and a key for each row."""
    tables = {
        "one": table(["same"] * ROWS, ledger=tmp_path / "one"),
        "many": table([f"key {i}" for i in range(ROWS)], ledger=tmp_path / "many"),
    }
    made = Service(Tables(tables), Access.open(), Replies.open(), Settings(pacing=False))
    yield made
    made.close()
    made.access.close()
    for each in tables.values():
        each.close()


def test_how_long_keys_are_held_does_not_tell_how_many_there_are(service):
    found = {}
    for name in ("one", "many"):
        paced = Clock.of(service.tables[name], machine=MACHINE)
        asked = prepare_keys(service.session(OWNER, name), KeysBody(column="note"), "k" * 8)
        (wide,) = asked.bounds
        assert isinstance(wide, Wide)
        found[name] = paced.ticks(wide)
        plain = paced.ticks(wide.bound)
        # every row may have a key of its own, and each takes its time
        assert found[name] * paced.tick >= 4 * ROWS * MACHINE.coordinate > plain * paced.tick / 2
    assert found["one"] == found["many"] > 1


def test_a_statement_by_open_text_is_paced_as_keys_are(service):
    body = SqlBody(sql="SELECT note, COUNT(*) FROM one WHERE age > 3 GROUP BY note")
    (wide,) = prepare_sql(service.session(OWNER, "one"), body, "k" * 8).bounds
    assert isinstance(wide, Wide) and wide.numbers == ROWS


def test_the_conditions_of_figures_are_work_for_the_clock(service):
    """A figure may have a long condition of its own, which is read for every row."""
    heavy = col("note") == "x"
    for age in range(40):
        heavy = heavy | ((col("age") > age) & (col("town") == "a") & (col("note") == str(age)))
    session = service.session(OWNER, "one")
    schema = service.tables["one"].schema
    weights = []
    for asked in (total("age"), total("age", where=heavy)):
        figure = QuestionBody(**question_json(asked))
        body = KeysBody(column="note", figures=[figure])
        (wide,) = prepare_keys(session, body, "k" * 8).bounds
        assert wide.numbers == 2 * ROWS
        weights.append(weight(wide, schema))
    alone = service.tables["one"].bind(count(where=heavy))
    assert weights[1] >= weights[0] + weight(alone, schema) - 10


def test_what_would_be_held_too_long_is_refused_free(service):
    schema = Schema(Number("age", 0, 120, step=1), Category("note"), Category("town", ["a", "b"]))
    hidden = Promise(1, "1e-6", queries=1000, neighbours="add-remove")
    with table(["x", "y", "z"] * (ROWS // 3), hidden, schema) as far:
        wide = Wide(far.bind(count("note")), far.schema.at_most)
        with pytest.raises(InvalidQuery, match="held for more than 60 seconds"):
            check_lasting(Clock.of(far, machine=MACHINE), wide, Settings())
        check_lasting(Unpaced(), wide, Settings())


def test_a_random_delay_is_paid_for_choices_and_refused_where_nothing_pays(service):
    plain = service.tables["one"]
    delay = delay_for(plain.calibration, Fraction(1, 1000))
    service.tables._databases["one"] = delayed(plain, delay)
    service._clocks["one"] = Delayed(delay)
    top = {"question": QuestionBody(**question_json(histogram("town"))), "k": 2}
    dear = prepare_top(service.session(OWNER, "one"), TopBody(**top, max_credits=2), "k" * 8)
    with pytest.raises(HttpProblem, match="3 credits now"):
        dear.work()
    paid = prepare_top(service.session(OWNER, "one"), TopBody(**top, max_credits=3), "k" * 8).work()
    assert paid.credits_exact == 3 and plain.remaining == 997
    by_text = SqlBody(sql="SELECT note, COUNT(*) FROM one GROUP BY note")
    for asked, remedy in (
        (
            lambda: prepare_keys(service.session(OWNER, "one"), KeysBody(column="note"), "k" * 8),
            "histogram",
        ),
        (lambda: prepare_sql(service.session(OWNER, "one"), by_text, "k" * 8), "histogram"),
        (
            lambda: prepare_alert(
                service.session(OWNER, "one"), AlertBody(question=OLD, above=5), "k" * 8
            ),
            "ask for the count",
        ),
        (
            lambda: prepare_check(service.session(OWNER, "one"), 1, CheckBody(), "k" * 8),
            "ask for the count",
        ),
    ):
        with pytest.raises(InvalidQuery, match=remedy):
            asked()
    assert plain.remaining == 997


def test_a_choice_is_drawn_before_its_reply_is_held(service, monkeypatch):
    """How long draws take tells of them: what comes after the hold is seen in the books."""
    order, draw = [], flow.draw_noise
    monkeypatch.setattr(flow, "hold", lambda: order.append("hold"))
    monkeypatch.setattr(flow, "draw_noise", lambda laws: (order.append("draw"), draw(laws))[1])
    service.tables["one"].top("town", k=2)
    assert order == ["draw", "hold"]


def test_checks_hold_before_the_ledger_shows_that_one_fired(service, monkeypatch):
    """The moment of the event is public: `hold` comes before it, fired or not."""
    order = []
    monkeypatch.setattr(flow, "hold", lambda: order.append("hold"))
    database = service.tables["one"]
    armed = prepare_alert(
        service.session(OWNER, "one"), AlertBody(question=OLD, above=-(9**9), credits=3), "k" * 8
    ).work()
    head = database.ledger.head
    settle = database.ledger.settle
    monkeypatch.setattr(
        database.ledger, "settle", lambda *given: (order.append("told"), settle(*given))[1]
    )
    asked = prepare_check(service.session(OWNER, "one"), armed.number, CheckBody(), "c" * 8)
    assert asked.bounds[0].digest == database.bind(count(where=col("age") >= 50)).digest
    assert asked.work().fired
    assert order == ["hold", "told"]
    assert database.ledger.head > head
