"""What the pages say, as pure functions of public facts and noisy answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sulq import Category, Database, Flag, InvalidQuery, Number, Promise, Schema
from sulq.beliefs.confidence import one_in, worst
from sulq.database import Analyst
from sulq.server.app import create_app
from sulq.server.auth.tokens import Access, Caller, Role
from sulq.server.console.ask.answer import _pairs, result_sentence
from sulq.server.console.ask.cells import answer_cell
from sulq.server.console.ask.page import (
    AnsweredView,
    Asking,
    AskWishBody,
    answered_view,
    quoted_view,
)
from sulq.server.console.ask.quote import QuoteView
from sulq.server.console.ask.refusal import refusal_view
from sulq.server.console.ask.request import AskRequest, price_statement
from sulq.server.console.budget import enough
from sulq.server.console.charts import Bar, error_bars, gauge, tag, ticks
from sulq.server.console.examples import priced_starters, starters
from sulq.server.console.framework import balance_of, head_view, rendered, static_file, templates
from sulq.server.console.labels import Shape, plural, question_title, shape_of
from sulq.server.console.related_releases import becomes
from sulq.server.console.table import _price, table_view
from sulq.server.errors import HttpProblem, problem_of
from sulq.server.limits import Settings
from sulq.server.service.catalog import Tables
from sulq.server.service.session import Service, TableSession

SCHEMA = Schema(
    Number("age", 0, 110, step=1),
    Number("stay_days", 0, 60, step=1),
    Category("region", ["North", "Coast"], public=True),
    Category("<script>", ["a", "b"]),
    Flag("smoker"),
)
PROMISE = Promise(1, "1e-6", queries=200)
ANALYST = Caller("epi", Role.ANALYST, None, "t1")
OWNER = Caller("office", Role.OWNER, None, "t2")
AUDITOR = Caller("board", Role.AUDITOR, None, "t3")
BY_REGION = "SELECT region, AVG(stay_days) AS stay FROM admissions GROUP BY region"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    place = tmp_path_factory.mktemp("console")
    n = 60_000
    at = np.arange(n)
    rows = pd.DataFrame(
        {
            "age": at * 7 % 100,
            "stay_days": np.where(at % 2 == 0, 20, 5) + at % 3,
            "region": np.where(at % 2 == 0, "North", "Coast"),
            "<script>": "a",
            "smoker": at % 4 == 0,
        }
    )
    monkey = pytest.MonkeyPatch()
    monkey.setenv("SULQ_STATE", str(place / "state"))
    access = Access.open(place / "access.sqlite")
    with Database.open(
        rows, SCHEMA, PROMISE, place / "ledger", name="admissions", publish=True
    ) as database:
        database.grant("epi", 40)
        app = create_app(Tables({"admissions": database}), access, settings=Settings(pacing=False))
        yield app.state.service
        app.state.service.close()
    access.close()
    monkey.undo()


def quoted(session: TableSession, wish: AskRequest) -> QuoteView:
    return quoted_view(session, wish)[0]


def ask(service: Service, sql: str, key: str, **terms: object) -> AnsweredView:
    body = AskWishBody(sql=sql, **terms)  # type: ignore[arg-type]
    asking = Asking(service.session(ANALYST, "admissions"), body, key)
    raw = asking.prepare().work().model_dump_json().encode()
    return answered_view(asking, raw, "http://here")


def test_the_button_names_the_price_and_what_is_left_rounds_down(service: Service) -> None:
    view = quoted(service.session(ANALYST, "admissions"), AskRequest(BY_REGION))
    assert view.state == "ready"
    assert view.price.button == "Ask for 1.25 credits"
    assert (view.balance.own, view.balance.own_whole) == ("38.7", "40")
    assert view.price.most == "5/4"
    assert [stop.price for stop in view.error.stops] == [
        "0.313 credit",
        "1.25 credits",
        "5 credits",
    ]
    bars = [span(stop.bar) for stop in view.error.stops]
    for end in (0, 1):
        assert bars[0][end] == pytest.approx(2 * bars[1][end], rel=0.1)
        assert bars[2][end] == pytest.approx(bars[1][end] / 2, rel=0.1)
    assert view.error.bar == f"± {bars[1][0]:g} to {bars[1][1]:g}"  # never the best case alone
    assert view.advice.see.startswith(
        "Two averages, each with its range, and one more row for what is other or missing."
        " Regions whose averages lie"
    )
    assert view.error.assumes == "everybody matches … one in five"
    assert "all 60,000 rows matching, spread evenly" in view.advice.see_small
    assert view.advice.count is not None and view.advice.count.button == "Count first, free"
    assert "plus or minus" in view.say and "38.7 of your 40 left after asking" in view.say


def span(bar: str) -> tuple[float, float]:
    narrow, wide = bar.removeprefix("± ").split(" to ")
    return float(narrow), float(wide)


def test_the_hint_halves_the_error_and_can_be_asked(service: Service) -> None:
    view = quoted(service.session(ANALYST, "admissions"), AskRequest(BY_REGION))
    assert view.advice.hint is not None
    assert view.advice.hint.first == "Half the error, for another question."
    assert "AVG(LEAST(stay_days, 30)) AS stay" in view.advice.hint.sql
    after = quoted(service.session(ANALYST, "admissions"), AskRequest(view.advice.hint.sql))
    assert span(after.error.bar)[1] == pytest.approx(span(view.error.bar)[1] / 2, rel=0.12)
    assert after.price.amount == view.price.amount


@pytest.mark.parametrize(
    ("call", "what", "cap"),
    [
        ("AVG(stay_days)", "average of stay_days", "30"),
        ("SUM(stay_days)", "total of stay_days", "30"),
    ],
)
def test_a_capped_column_is_offered_as_another_question(
    service: Service, call: str, what: str, cap: str
) -> None:
    """Never as something free: it costs the same credits and measures something else."""
    view = quoted(
        service.session(ANALYST, "admissions"), AskRequest(f"SELECT {call} FROM admissions")
    )
    shown = rendered("quote.html#quote", (view, None))
    note = re.search(r'<div class="note hint">.*?</button>\s*</div>', shown, re.DOTALL)
    assert note is not None and view.advice.hint is not None
    said = " ".join(re.sub(r"<svg.*?</svg>|<[^>]+>", " ", note[0], flags=re.DOTALL).split())
    column = what.split()[-1]
    assert re.fullmatch(
        rf"Half the error, for another question\. Count {column} over {cap} as {cap}: ± \S+ for the"
        rf" same {re.escape(view.price.amount)} credits?\. You would then measure the {what}"
        rf" capped at {cap}\. Cap at {cap}",
        said,
    ), said
    assert "free" not in said.lower()


@pytest.mark.parametrize(
    ("promise", "plain", "sharper"),
    [
        (Promise(1, queries=10), "30", "7.0"),  # whole numbers: by the exact law, not 28 and 7
        (Promise(4, queries=4), "3.0", "0"),
        (Promise(1, "1e-6", queries=10), "27", "6.6"),
        (Promise(1, "1e-6", queries=10, noise="huber"), "25", None),
    ],
    ids=str,
)
def test_what_is_left_is_told_with_the_bar_of_a_count(
    promise: Promise, plain: str, sharper: str | None
) -> None:
    rows = pd.DataFrame({"smoker": [True, False] * 20})
    with Database.open(rows, Schema(Flag("smoker")), promise, ":memory:", name="p") as database:
        told = [what for _, what in enough(database, "p", Fraction(10_000))]
        price = _price(database, "p")
    wanted = [f"counts at ±\u00a0{plain}", "histograms"]
    assert told == wanted + ([f"counts at ±\u00a0{sharper}"] if sharper else [])
    assert re.search(rf"comes back ±\W{plain}\.", price), price


def test_large_dear_and_pointless(service: Service) -> None:
    large = quoted(
        service.session(ANALYST, "admissions"),
        AskRequest("SELECT COUNT(*) FROM admissions WHERE smoker", within=40),
    )
    assert large.state == "large" and large.price.confirm is not None
    assert large.price.confirm[2] == "credits. They do not come back."
    dear = AskRequest("SELECT COUNT(*) FROM admissions WHERE smoker WITHIN 5")
    view, card = quoted_view(service.session(ANALYST, "admissions"), dear)
    assert view.state == "dear" and card is not None
    assert view.balance.own == "40"  # nothing goes
    assert card.title == "Not answered: this costs more than you have left"
    assert card.spent == "0 credits spent" and len(card.cheaper) == 2
    for each in card.cheaper:
        again = quoted(
            service.session(ANALYST, "admissions"), AskRequest(dear.sql, within=float(each.within))
        )
        assert again.state in ("ready", "large")
    few = quoted(
        service.session(ANALYST, "admissions"),
        AskRequest("SELECT COUNT(*) FROM admissions WHERE age > 98", rows=100),
    )
    assert few.advice.warning is not None and few.advice.warning[0] == "This will tell you little."


def test_the_statement_that_is_asked_is_the_one_that_was_priced(service: Service) -> None:
    wish = AskRequest("SELECT COUNT(*) FROM admissions WHERE smoker WITHIN 5 ;", within=50)
    assert wish.text == "SELECT COUNT(*) FROM admissions WHERE smoker\nWITHIN 50"
    body = AskWishBody(sql=BY_REGION, stop="fine")
    sent = Asking(service.session(ANALYST, "admissions"), body, "a-key-of-a-test").sent
    assert sent.credits == 5 and sent.rows is None
    assert (
        price_statement(
            service.session(ANALYST, "admissions").oracle(), "admissions", body.wish
        ).quote.credits
        == 5
    )


def test_an_answer_is_shown_with_its_bars_and_reading_it_costs_nothing(service: Service) -> None:
    before = balance_of(service.session(ANALYST, "admissions")).own_left
    found = ask(service, BY_REGION, "key-one-12345678")
    after = balance_of(service.session(ANALYST, "admissions")).own_left
    assert before - after == Fraction(5, 4)
    answer = found.answer
    assert answer.sentence.bold == "North is higher than Coast."
    assert [row.keys[0] for row in answer.rows][:2] == ["North", "Coast"]
    assert answer.paid == "1.25 credits"
    assert all(re.fullmatch(r"[\d.]+ to [\d.]+", row.cells[0].range) for row in answer.rows[:2])
    assert answer.rows[2].keys == ("other or missing",)
    assert answer.rows[2].cells[0].text == "no reading"
    assert found.quote is not None and found.quote.price.amount == "0"
    assert found.quote.price.button == "Show again, free"
    assert "sulq.connect('http://here/admissions'" in answer.python
    page = rendered("answer.html#answered", found)
    assert page.count('class="point"') == 2 and "style=" not in page


def test_one_number_and_a_negative_one() -> None:
    cell = answer_cell(-41.2, -303.0, 220.6, count=True)
    assert (cell.value, cell.bar, cell.weak) == ("−41", "262", True)
    assert cell.tip == "Noise can push a small count below zero. Read it as 0 to 221."
    assert answer_cell(80_000, 80_000, 80_000, public=True).chip == "public"
    assert answer_cell(float("nan"), 0, 1).text == "no reading"


@pytest.mark.parametrize("stop", ["plain", "coarse", "fine"])
@pytest.mark.parametrize(
    "select",
    [
        "SELECT COUNT(*) AS n FROM admissions WHERE age > {}",
        "SELECT region, AVG(stay_days) AS stay FROM admissions WHERE age > {} GROUP BY region",
    ],
)
def test_a_click_on_ask_prices_its_statement_at_most_four_times(
    service: Service, monkeypatch: pytest.MonkeyPatch, select: str, stop: str
) -> None:
    """And it asks once: the page shows the result that was charged, and reads nothing again."""
    priced, asked = [], []
    quote_sql, sql = Analyst.quote_sql, Analyst.sql
    monkeypatch.setattr(
        Analyst, "quote_sql", lambda *given, **terms: priced.append(1) or quote_sql(*given, **terms)
    )
    monkeypatch.setattr(
        Analyst, "sql", lambda *given, **terms: asked.append(1) or sql(*given, **terms)
    )
    age = 30 + 7 * ["plain", "coarse", "fine"].index(stop)
    found = ask(service, select.format(age), f"few-quotes-{stop}-{len(select)}", stop=stop)
    assert found.quote is not None and found.quote.state == "asked"
    assert len(priced) <= 4 and len(asked) == 1
    again = ask(service, select.format(age), f"few-quotes-{stop}-{len(select)}", stop=stop)
    assert again.answer.rows == found.answer.rows


def test_a_click_that_was_answered_before_reads_the_stored_answer(service: Service) -> None:
    """As after a lost reply: the bytes are found under the key, and nothing is asked anew."""
    body = AskWishBody(sql="SELECT COUNT(*) AS n FROM admissions WHERE age > 61")
    session, key = service.session(ANALYST, "admissions"), "lost-reply-1234"
    first = Asking(session, body, key)
    raw = first.prepare().work().model_dump_json().encode()
    shown = answered_view(first, raw, "http://here")
    left = session.left
    again = answered_view(Asking(session, body, key), raw, "http://here")
    assert again.answer.rows == shown.answer.rows and session.left == left
    never = Asking(session, AskWishBody(sql=f"{body.sql} AND smoker"), key)
    with pytest.raises(HttpProblem, match="cannot be read just now"):  # it would cost something
        answered_view(never, raw, "http://here")
    assert session.left == left


def test_not_distinguishable_is_said(service: Service) -> None:
    """Equal regions are told apart once in twenty questions: of five, all are in 3e-7 of runs."""
    oracle, said = service.session(ANALYST, "admissions").oracle(), []
    for least in range(5):
        sql = f"SELECT region, AVG(age) AS age FROM admissions WHERE age > {least} GROUP BY region"
        shape = shape_of(oracle.quote_sql(sql, table="admissions").plan.select, oracle.schema)
        result = oracle.sql(sql, table="admissions", credits=Fraction(1, 20))
        said.append(result_sentence(result, shape).bold)
    assert any(bold.startswith("North and Coast cannot be told apart") for bold in said)


def test_a_pair_that_differs_alone_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ranges that do not touch it is said why they are not called different."""

    def judged(one: Any, two: Any, level: float) -> Any:
        gap, half = one.value - two.value, 2.7 if level <= 0.95 else 3.9
        ends = (gap - half, gap + half)
        return SimpleNamespace(difference=gap, interval=ends, distinguishable=abs(gap) > half)

    monkeypatch.setattr("sulq.server.console.ask.answer.compare", judged)
    known: Any = [
        (name, SimpleNamespace(value=value))
        for name, value in (("White", 41.0), ("Black", 37.9), ("Other", 39.5))
    ]
    found = _pairs(known, Shape((), ("race",), 3, ordered=False), 0.05)
    assert found.bold == "No two races can be told apart with this much noise."
    assert found.rest == (
        "White and Black differ if that was your only question (3.1 ± 2.7); with all three pairs"
        " compared it is not certain (± 3.9)."
    )


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT * FROM admissions", "rows are never shown"),
        ("SELECT AVG(weight) FROM admissions", "a name is hidden or unknown"),
        ("SELECT AVG(age) FROM elsewhere", "a name is hidden or unknown"),
        ("SELECT COUNT(*) FROM admissions WHERE (", "it is not in the language"),
    ],
)
def test_refusals(service: Service, sql: str, reason: str) -> None:
    oracle = service.session(ANALYST, "admissions").oracle()
    with pytest.raises(InvalidQuery) as caught:
        oracle.quote_sql(sql, table="admissions")
    card = refusal_view(oracle, "admissions", sql, problem_of(caught.value))
    assert card.title == f"Not answered: {reason}"
    assert card.spent == "0 credits spent"
    assert "near character" not in card.why
    assert 1 <= len(card.alternatives) <= 3
    for each in card.alternatives:
        assert oracle.quote_sql(each.sql, table="admissions").credits >= 0
    other = refusal_view(oracle, "admissions", sql, problem_of(InvalidQuery("no")))
    assert other.title == "Not answered: it cannot be asked as it stands"


def test_the_frame_shows_each_role_its_own(service: Service) -> None:
    mine = head_view(service, ANALYST, "admissions", "ask")
    shown = ["Table", "Ask", "Boards", "Learn", "Budget", "Risk", "Ledger"]
    assert [tab.name for tab in mine.tabs] == shown
    assert mine.rest == "of 40 credits left" and not mine.prefix
    owner = head_view(service, OWNER, "admissions", "table")
    assert [tab.name for tab in owner.tabs][-2:] == ["Publish", "Access"]
    assert owner.prefix == "Table: "
    assert "Ask" not in [
        tab.name for tab in head_view(service, AUDITOR, "admissions", "table").tabs
    ]
    assert head_view(service, OWNER, "", "").table == ""


def test_the_table_page(service: Service) -> None:
    view = table_view(service.session(ANALYST, "admissions"))
    assert view.promised.replace("\N{NO-BREAK SPACE}", " ") == "40 % can become at most 65 %"
    assert [line.bar for line in view.columns[0].lines if line.public] == ["exact, free"]
    assert {line.name for line in view.columns[0].lines} == {c.name for c in SCHEMA.columns}
    assert 3 <= len(view.starters) <= 4
    page = rendered("table.html", view)
    assert "<script>" not in page and "&lt;script&gt;" in page
    assert len(page.encode()) < 40_000
    auditor = table_view(service.session(AUDITOR, "admissions"))
    assert not auditor.asks and not auditor.starters


def test_starters_fit_any_schema(service: Service) -> None:
    assert starters(Schema(Flag("x")), "t")[0].sql == "SELECT AVG(x) AS share\nFROM t"
    assert starters(Schema(Category("free")), "t") == []
    odd = starters(Schema(Number("My Age", -1, 1)), "My Table")
    assert all('"My Table"' in each.sql for each in odd)
    made = priced_starters(service.session(ANALYST, "admissions").oracle(), "admissions")
    assert len(made) == 4 and all(each.price for each in made)


def test_beliefs_are_rounded_against_ourselves() -> None:
    assert becomes(worst(Promise(1, "1e-6", queries=1000))) == (
        "40 % becomes at most 65 %, except with a chance below 1 in 4,500, and at most 70.5 %,"
        " except with a chance below 1 in 1,000,000"
    )
    assert becomes(worst(Promise(1))) == "40 % becomes at most 64.5 %"  # Laplace: no exception
    assert one_in(2.01e-5) == "1 in 49,000"
    assert one_in(1e-6) == "1 in 1,000,000"


def test_questions_of_the_ledger_in_words() -> None:
    asked = (
        "COUNT(*), SUM(CENTRED(stay_days)) WHERE age >= 65 AND stay_days IS NOT NULL"
        " GROUP BY region WITH OTHER"
    )
    assert question_title(asked) == "Average stay_days, age ≥ 65, by region"
    assert question_title("COUNT(*) WHERE smoker") == "Count, smoker"
    assert question_title("ALERT ABOVE 5: COUNT(*) WHERE smoker") == "Alert above 5: Count, smoker"
    assert question_title("TOP 2: COUNT(*) GROUP BY city") == "Top 2: Count, by city"
    assert question_title("KEYS: note") == "Keys: note"
    bands = "COUNT(*) GROUP BY 0.1 * age CUT AT (0, 1, 2) WITH OTHER"
    assert question_title(bands) == "Count, by age in 3 bands"
    assert len(question_title("x" * 200)) == 64
    assert [plural(word) for word in ("region", "sex", "city", "rows")] == [
        "regions",
        "sexes",
        "cities",
        "rows",
    ]


def test_charts_escape_and_fit() -> None:
    drawn = str(error_bars([Bar("<b>", 8.9, 7.7, 10.1), Bar("x", -1, -2, 0)], "t", 'say "so"'))
    assert "&lt;b&gt;" in drawn and "<b>" not in drawn and "style=" not in drawn
    assert "say &#34;so&#34;" in drawn
    shares = [float(x) for x in re.findall(r'(?:x|x1|x2|cx|width)="(-?[\d.]+)%"', drawn)]
    assert min(shares) >= 0 and max(shares) <= 100
    cut = str(error_bars([Bar("a", 9_000, 8_700, 9_300), Bar("b", -30, -290, 230)], "t", "l"))
    assert ">0</text>" in cut and "−2,000" not in cut  # the domain begins at the lowest low
    assert ticks(0, 10.1)[0] == 0 and ticks(0, 10.1)[-1] >= 10.1
    assert ticks(-0.5, 0.2)[0] <= -0.5
    low = str(gauge(Fraction(12), Fraction(100), "12 of 100 left"))
    assert 'class="gauge low"' in low and 'width="12.00%"' in low
    spent = str(gauge(Fraction(0), Fraction(100), "used up", going=Fraction(5)))
    assert "hatch" not in spent
    assert tag("a", "<", href='"') == '<a href="&#34;">&lt;</a>'


def test_no_template_carries_style_or_script() -> None:
    for name in templates.list_templates():
        text = templates.loader.get_source(templates, name)[0]  # type: ignore[union-attr]
        assert "style=" not in text and "onclick" not in text and "|safe" not in text, name
        inline = re.findall(r"<script(?![^>]*\bsrc=)", text)
        assert inline == [], name


def test_only_static_files_are_served_as_such() -> None:
    assert static_file("app.js") is not None
    assert static_file("../pages.py") is None
