"""`sulq ask --url ...`: the commands on a table behind a server, as on one here."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.server.conftest import serving

from sulq.cli.context import named, opened
from sulq.server.app import create_app
from sulq.server.auth.tokens import Access, Role
from sulq.server.limits import Settings
from sulq.server.middleware import Log
from sulq.server.service.catalog import Tables


@contextmanager
def served(policy: Path = Path("sulq.toml")) -> Iterator[tuple[str, str, str]]:
    """The address of people, an analyst's token and an auditor's."""
    with opened(named(policy, None), publish=True) as database:
        database.grant("ann", 10)
        access = Access.open()
        token = access.lend("ann", Role.ANALYST)
        auditor = access.lend("eve", Role.AUDITOR)
        settings = Settings(pacing=False)
        app = create_app(
            Tables({"people": database}), access, settings=settings, log=Log(io.StringIO())
        )
        try:
            with serving(app) as url:
                yield f"{url}/people", token, auditor
        finally:
            access.close()


@pytest.fixture
def far(sulq, monkeypatch):
    """Run `sulq ...` with address and token in the environment, far from the policy."""
    with served() as (url, token, auditor):
        monkeypatch.setenv("SULQ_URL", url)
        monkeypatch.setenv("SULQ_TOKEN", token)
        monkeypatch.setenv("AUDITOR", auditor)
        Path("sulq.toml").rename("elsewhere.toml")
        yield sulq


def test_quote_and_ask(far):
    quoted = far("quote", "count", "--where", "smoker", "--json").json
    assert (quoted["table"], quoted["credits"], quoted["left_after"]) == ("people", 1, 9)
    asked = far("ask", "people", "count", "--where", "smoker", "--json").json
    assert (asked["credits"], asked["left"], asked["receipt"]["receipt"]["analyst"]) == (
        1,
        9,
        "ann",
    )
    again = far("ask", "count", "--where", "smoker", "--json").json
    assert again["value"] == asked["value"] and again["left"] == 9
    assert "left" in far("ask", "histogram", "city").out


def test_a_key_is_charged_once(far):
    for _ in range(2):
        assert far("ask", "mean", "age", "--key", "mine", "--json").json["credits"] == 1.25
    assert far("ledger", "--json").json["mine"] == 8.75


def test_sql_and_receipts(far):
    text = "SELECT city, AVG(age) AS age FROM people GROUP BY city"
    assert far("quote", text, "--json").json["credits"] > 0
    asked = far("ask", text, "--receipts", "receipts.jsonl", "--json").json
    assert [row["city"] for row in asked["rows"]][:2] == ["Oslo", "Paris"]
    lines = Path("receipts.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == len(asked["receipt_numbers"])


def test_plan(far):
    priced = far("plan", "count where smoker", "mean age", "--json").json
    asked = far("plan", "people", "count where smoker", "mean age", "--yes", "--json").json
    assert asked["credits"] == priced["credits"] and asked["left"] == 10 - priced["credits"]


def test_learn(far):
    words = ("learn", "pca", "--columns", "age,income", "--credits", "5", "--no-plot", "--json")
    assert far(*words, "--quote").json["credits"] <= 5
    assert far(*words, "--anyway").code == 0
    assert far("ledger", "--json").json["mine"] >= 5


def test_ledger_and_columns(far):
    far("ask", "count", "--where", "smoker")
    found = far("ledger", "--json").json
    assert (found["spent"], found["mine"]) == (1, 9) and found["last"]
    assert "1 of 20 credits spent" in far("ledger").out
    names = [line["name"] for line in far("columns", "--json").json["columns"]]
    assert names == ["age", "income", "smoker", "city", "seen"]


def test_refusals_have_the_same_codes(far, monkeypatch):
    assert far("ask", "count", "--where", "nobody").code == 2
    spent = far("ask", "count", "--credits", "11", "--where", "smoker", "--json")
    assert (spent.code, spent.json["credits_spent"]) == (4, 0)
    assert far("ask", "count", "--as", "bob").code == 2
    assert far("learn", "pca", "rivals", "--columns", "age").code == 2
    assert far("ask", "count", "--exact", "--where", "smoker").code == 3
    monkeypatch.setenv("SULQ_TOKEN", "sulq_unknown")
    stranger = far("ask", "count")
    assert stranger.code == 3 and "sulq_unknown" not in stranger.err + stranger.out
    assert "ask the owner for a new one (`sulq grant`)" in stranger.err


def test_the_token_may_come_from_a_file(sulq, tmp_path, monkeypatch):
    monkeypatch.delenv("SULQ_TOKEN", raising=False)
    with served() as (url, token, _auditor):
        file = tmp_path / "token"
        file.write_text(token + "\n", "utf-8")
        words = ("quote", "mean", "age", "--json", "--url", url)
        assert sulq(*words, "--token-file", str(file)).json["table"] == "people"
        lacking = sulq(*words)
        assert (lacking.code, "--token-file" in lacking.err) == (2, True)
        assert sulq(*words, "--token-file", "nowhere").code == 2


def test_keys_top_and_alerts(sulq, monkeypatch):
    policy = Path("sulq.toml")
    declared = 'columns.city = {category = ["Oslo", "Paris"], public = true}'
    text = policy.read_text("utf-8")
    assert declared in text
    policy.write_text(text.replace(declared, "columns.city = {text = true}"), "utf-8")
    with served() as (url, token, auditor):
        policy.unlink()
        monkeypatch.setenv("SULQ_URL", url)
        monkeypatch.setenv("SULQ_TOKEN", token)
        assert sulq("keys", "city", "--quote", "--json").json["credits"] == 2
        for _ in range(2):  # the same key: the same reply, charged once
            found = sulq("keys", "people", "city", "--key", "my keys", "--json").json
            assert {row["city"] for row in found["keys"]} == {"Oslo", "Paris"}
            assert (found["credits"], found["left"]) == (2, 8)
        top = sulq("top", "smoker", "--credits", "3", "--json").json
        assert (top["credits"], top["left"]) == (3, 5)
        terms = ("--above", "-90000", "--credits", "4", "--firings", "2", "--key", "mine", "--json")
        for _ in range(2):
            armed = sulq("alert", "arm", "count", "--where", "age >= 18", *terms).json
            assert (armed["credits"], armed["credits_left"], armed["left"]) == (4, 1, 2)
        assert (armed["table"], armed["margin"] > 0) == ("people", True)
        number = str(armed["alert"])
        for _ in range(2):
            checked = sulq("alert", "check", number, "--key", "first check", "--json").json
            assert (checked["fired"], checked["left"]) == (True, 1)
        other = sulq("alert", "check", "people", number, "count", "--where", "age >= 65")
        assert "fires" in other.out and "0 of 2 firings left" in other.out
        spent = sulq("alert", "check", number)
        assert spent.code == 3 and "arm it again" in spent.err
        (line,) = sulq("alert", "list", "people", "--json").json["alerts"]
        assert (line["alert"], line["left"], line["above"]) == (int(number), 0, -90000)
        for words, code in (
            (("check", "9999"), 3),
            (("check", "first"), 2),
            (("list", "rivals"), 2),
            (("list", "--as", "bob"), 2),
            (("arm", "mean", "age", "--above", "5"), 2),
            (("arm", "count", "--where", "smoker", "--above", "5", "--credits", "2"), 4),
        ):
            assert sulq("alert", *words).code == code, words
        monkeypatch.setenv("SULQ_TOKEN", auditor)  # an auditor reads the books, and asks nothing
        assert sulq("alert", "check", number).code == 3


def test_nobody_there(sulq, monkeypatch):
    monkeypatch.setattr("sulq.client.transport.FIRST", 0.001)
    found = sulq("ask", "count", "--url", "http://127.0.0.1:1/people", "--json")
    assert found.code in (1, 2)
    monkeypatch.setenv("SULQ_TOKEN", "sulq_" + "t" * 43)
    found = sulq("ask", "count", "--url", "http://127.0.0.1:1/people", "--json")
    assert found.code == 1 and found.json["kind"] == "Unreachable"


def test_the_authority_of_a_server_and_hints_at_what_is_wrong(far, monkeypatch):
    lost = far("ledger", "--ca", "nowhere.pem")
    assert lost.code == 2 and "SULQ_CA" in lost.err and "nowhere.pem" in lost.err
    monkeypatch.setattr("sulq.client.transport.FIRST", 0.001)
    address = os.environ["SULQ_URL"]
    secure = far("ledger", "--url", address.replace("http:", "https:"))
    assert "does not speak https: is it http?" in secure.err
    closed = far("ledger", "--url", "http://127.0.0.1:1/people")
    assert "are host and port right?" in closed.err


def test_whose_credits_are_told(far, monkeypatch):
    assert "left for you" in far("ledger").out
    monkeypatch.setenv("SULQ_TOKEN", os.environ["AUDITOR"])
    read = far("ledger").out
    assert "left for you" not in read and "not granted" in read
