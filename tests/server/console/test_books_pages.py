"""Budget, Ledger and Risk: what is said, to whom, and that it follows from public facts."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Iterator
from fractions import Fraction
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.conftest import CANARY, Served, new_key, served
from tests.waiting import come

from sulq import Promise, col, count
from sulq.attacks.result import AttackResult
from sulq.beliefs.confidence import moved, tail
from sulq.cli.server_process import report_page
from sulq.kernel.ledger.export import read_chain
from sulq.kernel.ledger.signing import START, link
from sulq.kernel.ledger.stores.store import Row
from sulq.report import audit_report
from sulq.server.auth.tokens import Caller, Role
from sulq.server.console import risk
from sulq.server.console.ask.page import mine_view
from sulq.server.console.budget import budget_view, daily, forecast, outlook
from sulq.server.console.history import Books, history
from sulq.server.console.ledger import (
    chain_state,
    entries_view,
    exported,
    ledger_view,
    short,
)
from sulq.server.console.plots import Plot
from sulq.server.console.related_releases import beliefs
from sulq.server.console.risk import (
    DONE,
    Attacks,
    RiskLine,
    Run,
    attacks_view,
    rebuilding_limit,
    risk_view,
)
from sulq.server.limits import Settings

ANALYST = Caller("analyst", Role.ANALYST, None, "t1")
RIVAL = Caller("rival", Role.ANALYST, None, "t2")
OWNER = Caller("owner", Role.OWNER, None, "t3")
AUDITOR = Caller("auditor", Role.AUDITOR, None, "t4")
DAY = 86_400


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The analyst has asked two questions, the rival one of their own and one again."""
    place = tmp_path_factory.mktemp("books")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SULQ_STATE", str(place / "state"))
        with served(place, Settings(pacing=False)) as found:
            yield ask_some(found)


@pytest.fixture
def fresh(server: Served) -> Served:
    """The same for a test that changes the table."""
    return ask_some(server)


def ask_some(server: Served) -> Served:
    for who, sql in [
        ("analyst", "SELECT COUNT(*) FROM people WHERE smoker"),
        ("analyst", "SELECT AVG(age) FROM people WHERE income > 7000"),
        ("rival", "SELECT COUNT(*) FROM people WHERE age >= 77"),
        ("rival", "SELECT COUNT(*) FROM people WHERE smoker"),
    ]:
        assert server.post("sql", {"sql": sql}, who, new_key()).status_code == 200
    return server


# --- the forecast ---


def test_the_forecast_of_a_steady_pace_is_that_pace() -> None:
    found = forecast([2.0] * 30, 100)
    assert found is not None
    assert (found.early, found.middle, found.late, found.pace) == (50, 50, 50, 2)


@given(st.lists(st.integers(0, 9), min_size=7, max_size=30).filter(any), st.integers(1, 400))
def test_the_band_lies_around_the_middle_and_is_the_same_each_time(
    days: list[int], left: int
) -> None:
    spent = [float(day) for day in days]
    found = forecast(spent, left)
    assert found is not None and found == forecast(spent, left)
    ends = [math.inf if end is None else end for end in (found.early, found.middle, found.late)]
    assert ends == sorted(ends)
    assert min(ends) >= math.ceil(left / max(days))


def test_the_band_holds_four_of_five_futures() -> None:
    rng = np.random.default_rng(0)
    days = rng.integers(0, 12, 30).astype(float)
    found = forecast(list(days), 400)
    assert found is not None and found.early and found.late
    ends = [int(np.argmax(np.cumsum(rng.choice(days, 400)) >= 400)) + 1 for _ in range(4_000)]
    inside = np.mean([(found.early <= end <= found.late) for end in ends])
    # 4,000 futures: the share is 0.8 to +-0.03; days are whole
    assert 0.72 < inside < 0.93


def test_too_early_none_spent_and_spent_up() -> None:
    now = 1_000 * DAY
    assert forecast([1.0] * 6, 10) is None
    assert "Too early to tell." in outlook(None, now, Fraction(3))
    quiet = forecast([0.0] * 10, 10)
    assert quiet is not None and "longer than ten years" in outlook(quiet, now, Fraction(10))
    assert "All is spent" in outlook(None, now, Fraction(0))


def test_days_are_counted_back_from_now() -> None:
    now = 100.0 * DAY
    times = [int(now - 1), int(now - DAY - 1), int(now - 40 * DAY)]
    assert daily(times, [1.0, 2.0, 4.0], int(now - 50 * DAY), now)[:3] == [1.0, 2.0, 0.0]
    assert len(daily(times, [1.0, 2.0, 4.0], int(now - 50 * DAY), now)) == 30
    assert daily([int(now - 1)], [1.0], int(now - 3.5 * DAY), now) == [1.0, 0.0, 0.0]


# --- budget ---


def test_the_owner_sees_accounts_and_an_analyst_only_their_own(asked: Served) -> None:
    service = asked.app.state.service
    owner = budget_view(service.session(OWNER, "people"))
    assert {line.name for line in owner.accounts} == {"analyst", "rival"}
    assert owner.left == "96.7" and owner.whole == "100"  # a repeat costs the table nothing
    assert "granted shares" in owner.outlook and owner.report
    mine = budget_view(service.session(ANALYST, "people"))
    assert (mine.left, mine.whole, mine.accounts) == ("37.7", "40", ())
    assert mine.table_line == "The table has 96.7 of 100 credits left."
    assert "rival" not in repr(mine) and "≥ 77" not in repr(mine)
    assert [line[0] for line in mine.changes] == [
        "40 credits granted to you",
        "Table opened with 100 credits",
    ]


def test_what_a_repeat_bought_is_named(asked: Served) -> None:
    view = budget_view(asked.app.state.service.session(RIVAL, "people"))
    assert [(kind, paid) for kind, paid, _ in view.bought] == [("Counts", "2")]


def test_changes_are_listed_with_their_reasons(fresh: Served) -> None:
    asked = fresh
    asked.database.grant("analyst", 10)
    asked.database.revoke("rival", "project ended")
    view = budget_view(asked.app.state.service.session(OWNER, "people"))
    assert view.changes[0][:2] == ("rival revoked", "project ended")
    assert next(line for line in view.accounts if line.name == "rival").chip == "revoked"
    asked.database.close_for_good("the study is over")
    assert (
        budget_view(asked.app.state.service.session(ANALYST, "people")).closed
        == "the study is over"
    )


class Later:
    """The ledger's clock, so many days ahead."""

    def __init__(self, days: float) -> None:
        self.days = days

    def time(self) -> float:
        return time.time() + self.days * DAY


def test_a_burn_down_is_drawn_after_a_week(fresh: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    service = fresh.app.state.service
    early = budget_view(service.session(OWNER, "people"))
    assert "Too early" in early.outlook and "dashed" not in str(early.chart)
    monkeypatch.setattr("sulq.kernel.ledger.file.time", Later(9))
    fresh.database.sql("SELECT COUNT(*) FROM people WHERE age < 9", table="people")
    later = budget_view(service.session(OWNER, "people"), time.time() + 10 * DAY)
    assert "dashed" in str(later.chart) and "ends about" in later.outlook
    assert later.pace == "last 30 days: 0.10 credits a day"


def test_the_history_reads_each_event_once(asked: Served) -> None:
    events, answered = history(asked.database)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert len(answered) == 3
    again, _ = history(asked.database)
    assert again[0] is events[0]


# --- ledger ---


def rows_of(server: Served) -> list[Row]:
    book = server.database.ledger._book
    return list(book.read(lambda: list(book.rows())))


def taken(rows: list[Row]) -> Books:
    found = Books()
    for row in rows:
        found.take(row, "people")
    return found


def test_the_chain_is_checked_by_the_server(fresh: Served) -> None:
    asked = fresh  # its own state directory, where the anchor is
    view = ledger_view(asked.app.state.service.session(AUDITOR, "people"))
    assert (view.state, view.first) == ("ok", "The chain is whole.")
    assert view.chain[0][0] == "#0001 opened" and view.chain[-1][0].endswith("head")
    head = asked.database.statement().statement.head
    assert view.chain[-1][2] == "headmost" and view.chain[-1][1] == short(head)


def test_a_changed_entry_is_named(asked: Served) -> None:
    rows = rows_of(asked)
    rows[4] = rows[4]._replace(body=rows[4].body.replace('"at":1', '"at":2'))
    kind, first, _ = chain_state(asked.database, None, taken(rows))
    assert kind == "bad" and first.startswith("Entry #0005 was changed")


def test_a_chain_shorter_than_its_anchor_is_told(fresh: Served) -> None:
    asked = fresh  # its own state directory, where the anchor is
    rows, anchor = rows_of(asked), asked.database.ledger.anchor()
    assert chain_state(asked.database, anchor, taken(rows))[0] == "ok"
    kind, first, _ = chain_state(asked.database, anchor, taken(rows[:-2]))
    assert (kind, first) == ("bad", "The ledger is older than its anchor.")


def test_an_analyst_reads_the_own_entries_and_prices_of_others(asked: Served) -> None:
    view = entries_view(asked.app.state.service.session(ANALYST, "people"))
    said = repr(view)
    assert "Average age, income > 7000" in said and "another account" in said
    assert "≥ 77" not in said and "rival" not in said
    full = repr(entries_view(asked.app.state.service.session(AUDITOR, "people")))
    assert "rival" in full and "age ≥ 77" in full
    assert entries_view(asked.app.state.service.session(ANALYST, "people"), text="≥ 77").lines == ()


def before(path: str) -> int:
    """Of the address that a button of the list leads to."""
    return int(parse_qs(urlsplit(path).query)["before"][0])


def test_every_number_of_the_chain_is_on_the_page_once(fresh: Served) -> None:
    """Also of plans, reservations and attempts; an answer stands on the line of its question."""
    owner, service = fresh.database, fresh.app.state.service
    owner.plan([count(where=col("age") >= n) for n in (11, 12)], credits=2).ask()
    with fresh.database.reserve(3):
        pass
    for caller in (OWNER, AUDITOR, ANALYST):
        path, found = 0, []
        while True:
            view = entries_view(service.session(caller, "people"), path)
            found += [number for line in view.lines for number in (line.number, line.then)]
            if not view.older:
                break
            path = before(view.older)
        shown = sorted(number for number in found if number)
        last = fresh.database.statement().statement.seq
        assert shown == [f"#{number:04d}" for number in range(1, last + 1)]
    lines = {line.number: line for line in entries_view(service.session(OWNER, "people")).lines}
    reserved = next(line for line in lines.values() if line.question == "3 credits set aside")
    given_back = next(line for line in lines.values() if "given back" in line.question)
    assert given_back.question == f"What was left of {reserved.number} given back"
    folded = next(line for line in lines.values() if line.then)
    assert (
        entries_view(service.session(OWNER, "people"), text=folded.then).lines[0].number
        == folded.number
    )
    assert "set aside" not in repr(entries_view(service.session(ANALYST, "people")))


def test_entries_come_in_pages_and_by_kind(asked: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sulq.server.console.ledger.PAGE", 3)
    service = asked.app.state.service
    first = entries_view(service.session(OWNER, "people"))
    assert first.said == "1 to 3 of 8 lines, 11 entries" and not first.newer and not first.paged
    second = entries_view(service.session(OWNER, "people"), before(first.older))
    assert (
        second.said == "4 to 6 of 8 lines, 11 entries"
        and before(second.newer) == 0
        and second.paged
    )
    third = entries_view(service.session(OWNER, "people"), before(second.older))
    assert not third.older
    assert entries_view(service.session(OWNER, "people"), before(third.newer)).lines == second.lines
    found = entries_view(service.session(OWNER, "people"), text="a&b", kind="asked")
    assert found.lines == () and found.said == "Nothing fits."
    changes = entries_view(service.session(OWNER, "people"), kind="change")
    assert {line.state for line in changes.lines} == {"change"}


def test_what_the_browser_is_given_is_enough_and_not_more(asked: Served) -> None:
    """The owner's links all follow from what /v1 sends; an analyst gets no body of another."""
    lines = asked.get("ledger", "owner").json()["entries"]
    before = START
    for line in lines:
        before = hashlib.sha256(before + line["body"].encode()).digest()
        assert before.hex() == line["hash"]
    for line in asked.get("ledger", "analyst").json()["entries"]:
        assert "rival" not in line.get("body", "")


def test_the_file_to_download_verifies_and_is_redacted(asked: Served) -> None:
    service = asked.app.state.service
    for who, shows in ((OWNER, True), (AUDITOR, False), (ANALYST, False)):
        text = exported(service.session(who, "people"))
        lines = [json.loads(line) for line in text.splitlines()]
        assert lines[0]["format"] == "sulq chain 1"
        assert any("noisy" in line for line in lines) == shows
    assert "rival" not in exported(service.session(ANALYST, "people"))
    audited = exported(service.session(AUDITOR, "people"))
    assert "rival" in audited and "77" in audited  # who asked what, and no value
    chain = read_chain(audited.splitlines())
    assert chain.last == asked.database.statement().statement.seq and not chain.closed
    reply = asked.client("analyst").get("/console/people/chain.jsonl")
    assert reply.status_code == 200 and reply.headers["cache-control"] == "no-store"


def test_own_questions_stay_however_much_others_ask(fresh: Served) -> None:
    service = fresh.app.state.service
    before = mine_view(service.session(ANALYST, "people"))
    assert (before.count, before.whole) == (2, "/t/people/ledger#mine")
    for age in range(30, 50):
        fresh.database.ask(count(where=col("age") > age), credits=0.01)
    after = mine_view(service.session(ANALYST, "people"))
    assert after == before and len(after.lines) == 2
    own = entries_view(service.session(ANALYST, "people"), kind="mine")
    assert [line.account for line in own.lines] == ["analyst", "analyst"]


def test_the_report_for_an_auditor_has_names_and_no_word(asked: Served) -> None:
    made = report_page(asked.database, True)
    assert "rival" in made and "auditor’s version, with names" in made
    account = asked.database.statement()
    for auditor in (True, False):
        page = audit_report(account, [], public=False, auditor=auditor, noise_test="pass")
        assert (">pass<" in page) is not auditor


def test_receipts_by_the_server(asked: Served) -> None:
    number = next(event.seq for event in history(asked.database)[0] if event.kind == "charge")
    text = asked.database.receipt(number).to_json()
    client = asked.client("analyst")

    def said(text: str) -> str:
        return str(client.post("/console/people/receipt", json={"text": text}).json()["verdict"])

    assert said(text) == "genuine"
    assert said(text.replace('"seq":', '"seq":1')) == "forged"
    assert said("hello") == "none"


def test_the_noise_test_says_one_word(asked: Served) -> None:
    view = ledger_view(asked.app.state.service.session(OWNER, "people"))
    assert view.noise[1] == "Not run yet."
    assert (
        ledger_view(asked.app.state.service.session(ANALYST, "people")).noise[1] == "For the owner."
    )


# --- risk ---


def test_beliefs_agree_with_the_tail() -> None:
    promise = Promise(epsilon=1, delta="1e-6", queries=1000)
    found = beliefs(promise, Fraction(390))
    assert found.chance == pytest.approx(tail(promise, 1.0)) and found.end == 1.0
    assert found.after() == "65 %" and 0.5 < found.so_far < 0.7
    assert beliefs(promise, Fraction(1000)).so_far == pytest.approx(1.0, rel=1e-6)
    assert beliefs(promise, Fraction(0)).so_far == 0
    pure = beliefs(Promise(epsilon=2, delta=0, queries=100), Fraction(50))
    assert (pure.end, pure.so_far, pure.chance) == (2.0, 1.0, 0.0)
    assert moved(0.4, 2.0) == pytest.approx(0.8313, abs=1e-3)


def test_the_rebuilding_limit() -> None:
    promise = Promise(epsilon=1, delta="1e-6", queries=1000)
    assert rebuilding_limit(promise, 133.596) == pytest.approx(0.5333, abs=1e-3)  # Phi(0.0837)
    assert rebuilding_limit(Promise(epsilon=3, delta=0, queries=10), 1.0) > 0.9


def test_the_risk_page_says_what_the_promise_says(asked: Served) -> None:
    view = risk_view(asked.app.state.service.session(AUDITOR, "people"))
    assert (view.after, view.end, view.spent) == ("65 %", 1.0, "3.25")
    assert "1 in " in view.rarely and not view.attacks.running
    assert view.attacks.said == "Not tried yet. Takes about a minute, free."


def test_attacks_within_and_beyond() -> None:
    def run(reached: float) -> Run:
        finding = AttackResult("x", "share of bits guessed", reached, 0.53, 0.01, 100)
        return Run(DONE, (RiskLine("Difference", "words", finding),), (), 1e9, 1)

    good, bad = attacks_view(run(0.559), "t"), attacks_view(run(0.561), "t")
    assert good.chip == "1 of 1 within the limit" and good.lines[0].within
    assert bad.chip_kind == "bad" and not bad.lines[0].within
    assert (good.lines[0].reached, good.lines[0].bar, good.lines[0].limit) == (
        "55.9 %",
        "2.0",
        "53.0 %",
    )


def test_attacks_run_on_made_up_rows(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(risk, "ROWS", 40)
    monkeypatch.setattr(risk, "SIGMAS", (1.0, 64.0))
    monkeypatch.setattr(risk, "WORDS", {"differencing": ("Difference", "subtract")})
    monkeypatch.setattr(risk, "ATTACKS", Attacks())
    before, seq = server.database.remaining, server.database.statement().statement.seq
    client = server.client("analyst")
    assert "Running" in client.post("/console/people/attack").text
    come(lambda: "data-again" not in client.get("/console/people/attacks").text)
    text = client.get("/console/people/attacks").text
    assert "1 of 1 within the limit" in text and 'class="own"' in text
    assert 'class="own"' in client.get("/console/people/risk").text
    assert (server.database.remaining, server.database.statement().statement.seq) == (before, seq)
    assert client.post("/console/elsewhere/attack").status_code == 404


@given(st.floats(1, 1000), st.floats(0.5, 1))
def test_points_lie_inside_the_plot(x: float, y: float) -> None:
    plot = Plot(1, 1000, 0.5, 1, 200, log=True)
    assert -1e-6 <= plot.x(x) <= 100 + 1e-6 and 8 - 1e-6 <= plot.y(y) <= 200 + 1e-6


@pytest.mark.parametrize("page", ["budget", "ledger", "risk"])
@pytest.mark.parametrize("who", ["owner", "analyst", "auditor"])
def test_pages_are_small_and_carry_no_canary(asked: Served, page: str, who: str) -> None:
    text = asked.client(who).get(f"/console/people/{page}").text
    assert len(text.encode()) <= 40_000
    assert CANARY not in text and "style=" not in text and "<script" not in text
    if who == "analyst":
        assert "rival" not in text


def test_links_follow_row_by_row() -> None:
    body = '{"kind":"ledger"}'
    row = Row(1, link(START, body), body, None, None)
    assert row.hash == hashlib.sha256(bytes(32) + body.encode()).digest()
