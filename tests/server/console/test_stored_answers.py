"""Answers at their own address: for who was told them and for the owner; free, no row is read."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.server.conftest import Served, new_key

from sulq import col, correlation, count, histogram, mean, quantiles, total, variance
from sulq.server.auth.tokens import Role
from sulq.server.console.ask.build import filter_view, literal
from sulq.server.console.labels import statement_title
from sulq.server.errors import out_of_order
from sulq.server.saved_answers import AnswerShelf, SavedAnswers

ASK = "/console/people/ask"
PAGES = {"GET": "/console/people/a/{}", "POST": "/console/people/a/{}"}
BAD = "<script>alert(1)</script>"


def asked(server: Served, sql: str, who: str = "analyst") -> int:
    """Ask as the page does; return the entry's number."""
    wish = {"sql": sql, "max_credits": "40"}
    reply = server.client(who).post(ASK, json=wish, headers={"Idempotency-Key": new_key()})
    assert reply.status_code == 200, reply.text
    return int(reply.text.split('data-receipt="')[1].split('"')[0])


def test_an_answer_is_read_again_and_nothing_is_spent_or_written(server: Served) -> None:
    sql = "SELECT illness, AVG(age) AS years FROM people WHERE smoker GROUP BY illness"
    number = asked(server, sql)
    head, left = server.database.ledger.head, server.database.left_for("analyst")
    first = server.client("analyst").get(PAGES["GET"].format(number))
    again = server.client("analyst").get(PAGES["GET"].format(number))
    assert first.status_code == 200 and first.text == again.text
    assert "Average age, smoker, by illness" in first.text and "AS years" in first.text
    assert (server.database.ledger.head, server.database.left_for("analyst")) == (head, left)


def test_an_answer_is_shown_where_its_address_cannot_be_kept(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: object) -> None:
        raise out_of_order()

    monkeypatch.setattr(SavedAnswers, "asked", full)
    wish = {"sql": "SELECT COUNT(*) AS n FROM people WHERE age > 33", "max_credits": "40"}
    headers = {"Idempotency-Key": new_key()}
    reply = server.client("analyst").post(ASK, json=wish, headers=headers)
    assert reply.status_code == 200 and "data-receipt" in reply.text


def test_not_yours_is_not_there(server: Served) -> None:
    """The same bytes for a colleague's number, a change's number and one that is beyond the end."""
    number = asked(server, "SELECT COUNT(*) AS n FROM people WHERE smoker")
    rival = server.client("rival")
    for method in ("GET", "POST"):
        told = [
            rival.request(method, PAGES[method].format(n), json={"name": "x"})
            for n in (number, 1, number + 1, 10**9)
        ]
        assert {reply.status_code for reply in told} == {404}
        assert len({reply.content for reply in told}) == 1
    assert server.client("owner").get(PAGES["GET"].format(number)).status_code == 200


@pytest.mark.parametrize("who", [None, *map(str, Role)])
def test_who_may_open_and_write(server: Served, who: str | None) -> None:
    number = asked(server, "SELECT COUNT(*) AS n FROM people WHERE age > 50")
    client = server.client(who)
    codes = {
        client.get(PAGES["GET"].format(number)).status_code,
        client.post(PAGES["POST"].format(number), json={"name": "mine"}).status_code,
        client.get("/console/people/filter?column=age").status_code,
    }
    expected = {
        None: {401},
        "owner": {200, 404},
        "analyst": {200},
        "auditor": {403},
        "monitor": {403},
    }
    assert codes == expected.get(who, codes)
    if who == "auditor":
        assert f"/a/{number}" not in client.get("/console/people/ledger").text


def test_words_are_the_writers_own_and_are_escaped(server: Served) -> None:
    number = asked(server, "SELECT COUNT(*) AS n FROM people WHERE age > 60")
    analyst, owner = server.client("analyst"), server.client("owner")
    words = {"name": f"A {BAD}", "note": f"B {BAD}", "pinned": "yes"}
    reply = analyst.post(PAGES["POST"].format(number), json=words)
    assert reply.status_code == 200 and "&lt;script&gt;" in reply.text
    for page in (f"a/{number}", "ask", "table", "ledger"):
        text = analyst.get(f"/console/people/{page}").text
        assert BAD not in text, page
    assert "A &lt;script&gt;" in analyst.get("/console/people/ask").text
    seen = owner.get(PAGES["GET"].format(number)).text
    assert "B &lt;script&gt;" not in seen and "told to analyst" in seen
    long = {"name": "x" * 121}
    assert analyst.post(PAGES["POST"].format(number), json=long).status_code == 422


def test_a_question_that_was_not_asked_in_sql_opens_too(server: Served) -> None:
    sql = {"sql": "SELECT illness, COUNT(*) AS n FROM people WHERE smoker GROUP BY illness"}
    reply = server.post("sql", sql, "analyst", new_key())
    number = reply.json()["receipts"][0]
    text = server.client("analyst").get(PAGES["GET"].format(number)).text
    assert "Count, smoker, by illness" in text and "Edit this question" in text


def test_a_closed_table_is_a_library(server: Served) -> None:
    number = asked(server, "SELECT AVG(age) AS years FROM people WHERE smoker")
    before = server.client("analyst").get(PAGES["GET"].format(number)).text
    server.database.close_for_good("the study has ended")
    after = server.client("analyst").get(PAGES["GET"].format(number)).text
    assert "years is" in after and after == before
    assert f"/t/people/a/{number}" in server.client("analyst").get("/console/people/table").text


def test_statements_and_words_are_kept_apart_by_account(tmp_path: Path) -> None:
    kept = SavedAnswers.open(tmp_path / "answers.sqlite")
    ann, bob = AnswerShelf("t", "ann"), AnswerShelf("t", "bob")
    kept.asked(ann, [4, 6], "SELECT 1", None, 7)
    kept.describe(ann, 4, "four", "", pinned=True)
    kept.asked(ann, [4, 6], "SELECT 2", None, None)  # a repeat does not take its place
    kept.close()
    again = SavedAnswers.open(tmp_path / "answers.sqlite")
    assert [again.listed(ann)[n].first for n in (4, 6)] == [4, 4] and again.listed(bob) == {}
    found = again.find(ann, 4)
    assert found is not None and (found.sql, found.rows, found.name) == ("SELECT 1", 7, "four")
    assert found.pinned and again.find(bob, 4) is None
    again.close()
    assert (tmp_path / "answers.sqlite").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT COUNT(*) AS n FROM t WHERE age >= 65", "Count, age ≥ 65"),
        ("SELECT a, AVG(x) AS m FROM t WHERE b AND c GROUP BY a", "Average x, b, c, by a"),
        ("SELECT FLOOR(x / 5) * 5 AS x_from, COUNT(*) AS n FROM t GROUP BY 1", "Count, by x_from"),
        ("SELECT MEDIAN(x), SUM(y) FROM t ORDER BY 1", "Median x, Total y"),
    ],
)
def test_an_answer_is_named_by_what_was_asked(sql: str, said: str) -> None:
    assert statement_title(sql) == said


def test_values_are_spelled_as_sql_takes_them(server: Served) -> None:
    assert [literal(value) for value in ("O'Hara", 7)] == ["'O''Hara'", "7"]
    session = SimpleNamespace(oracle=lambda: server.database)
    found = filter_view(session, "age")  # type: ignore[arg-type]
    assert (found.kind, found.step) == ("number", "1")
    hidden = server.client("analyst").get("/console/people/filter?column=no_such")
    assert hidden.status_code == 404


ASKED = (
    (mean("age", where=col("smoker")), "Average age, smoker", "average is"),
    (variance("age"), "Spread of age", "spread is"),
    (quantiles("age", [0.5], where=col("smoker")), "Median age, smoker", "median is"),
    (count(where=(col("age") > 30) & (col("illness") == "asthma")), "Count, ", "n is"),
    (total("income"), "Total income", "total is"),
    (correlation("age", "income"), "Correlation of age, income", "correlation has no reading"),
)


def test_what_python_asked_opens_as_what_was_asked(server: Served) -> None:
    """Not as the sums that it is read from; nothing is charged or written."""
    for question, title, figure in ASKED:
        answer = server.database.as_analyst("analyst").ask(question)
        number, head = int(answer.receipt.body["seq"]), server.database.ledger.head
        text = server.client("analyst").get(PAGES["GET"].format(number)).text
        assert title in text and figure in text and "CENTRED" not in text, text
        assert server.database.ledger.head == head
        listed = server.client("analyst").get("/console/people/ask").text
        assert title in listed and "CENTRED" not in listed


def test_a_cheap_question_of_another_program_shows_its_own_answer(server: Served) -> None:
    """The statement stands for the entry only if it asks the very same sums."""
    ann = server.database.as_analyst("analyst")
    cheap = ann.ask(mean("age"), credits=Fraction(1, 2))
    dear = ann.ask(mean("age"), credits=8)
    texts = [
        server.client("analyst").get(PAGES["GET"].format(one.receipt.body["seq"])).text
        for one in (cheap, dear)
    ]
    said = {text.split('class="result"')[1].split("</p>")[0] for text in texts}
    assert len(said) == 2 and all("average is" in text for text in said)
    edges = ann.ask(histogram("age", edges=[0, 20, 65, 110]))  # no statement of ours asks it
    text = server.client("analyst").get(PAGES["GET"].format(edges.receipt.body["seq"])).text
    assert 'id="result"' in text and "Edit this question" not in text
