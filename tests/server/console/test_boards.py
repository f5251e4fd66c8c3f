"""Sharing and boards: off unless the policy says so, recorded, free, no value for auditors."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from tests.server.conftest import Served, new_key

from sulq.policy import read_policy

BAD = "<script>alert(1)</script>"
ASK = "/console/people/ask"
SQL = "SELECT illness, AVG(age) AS years FROM people WHERE smoker GROUP BY illness"


@pytest.fixture
def sharing(server: Served) -> Iterator[Served]:
    server.app.state.service.tables.sharing = frozenset({"people"})
    yield server


def asked(server: Served, sql: str = SQL, who: str = "analyst") -> int:
    wish = {"sql": sql, "max_credits": "40"}
    reply = server.client(who).post(ASK, json=wish, headers={"Idempotency-Key": new_key()})
    assert reply.status_code == 200, reply.text
    return int(reply.text.split('data-receipt="')[1].split('"')[0])


def said(text: str) -> str:
    """The sentence of an answer."""
    return text.split('class="result"')[1].split("</p>")[0]


def made(server: Served, who: str = "analyst", title: str = "Smokers") -> str:
    reply = server.client(who).post("/console/people/boards", json={"title": title})
    return re.search(r"/board/([0-9a-f]{12})", reply.text)[1]  # type: ignore[index]


def do(server: Served, board: str, deed: str, who: str = "analyst", **form: object) -> int:
    client = server.client(who)
    return client.post(f"/console/people/board/{board}/{deed}", json=form).status_code


def test_nothing_is_shared_unless_the_policy_says_so(server: Served) -> None:
    number = asked(server)
    analyst, rival = server.client("analyst"), server.client("rival")
    reply = analyst.post(f"/console/people/a/{number}/share", json={"reader": "rival"})
    assert reply.status_code == 403 and "sharing = true" in reply.text
    server.app.state.service.tables.sharing = frozenset({"people"})
    reply = analyst.post(f"/console/people/a/{number}/share", json={"reader": "rival"})
    assert reply.status_code == 200
    assert rival.get(f"/console/people/a/{number}").status_code == 200
    server.app.state.service.tables.sharing = frozenset()  # turned off again: closed again
    assert rival.get(f"/console/people/a/{number}").status_code == 404


def test_a_shared_answer_costs_its_reader_nothing_and_is_taken_back(sharing: Served) -> None:
    number = asked(sharing)
    analyst, rival = sharing.client("analyst"), sharing.client("rival")
    page = f"/console/people/a/{number}"
    absent = rival.get(f"/console/people/a/{10**9}").content
    assert rival.get(page).content == absent  # not yours is not there
    assert rival.post(f"{page}/share", json={"reader": "rival"}).content == absent
    before = sharing.database.ledger.head, sharing.database.left_for("rival")
    assert analyst.post(f"{page}/share", json={"reader": "rival"}).status_code == 200
    shown = rival.get(page).text
    assert said(shown) == said(analyst.get(page).text) and "analyst, who shared it" in shown
    assert "/console/people/a/" in shown and "/share" not in shown  # readers do not pass it on
    assert rival.post(f"{page}/share", json={"reader": "owner"}).status_code == 404
    assert (sharing.database.ledger.head, sharing.database.left_for("rival")) == before
    assert f"/t/people/a/{number}" in rival.get("/console/people/boards").text
    assert analyst.post(f"{page}/unshare", json={"reader": "rival"}).status_code == 200
    assert rival.get(page).content == absent


def test_names_and_notes_stay_their_writers(sharing: Served) -> None:
    """Neither the owner nor a reader sees them, on the answer, in the list or on a board."""
    number, board = asked(sharing), made(sharing)
    page = f"/console/people/a/{number}"
    sharing.client("analyst").post(page, json={"name": "my secret", "note": "my secret note"})
    sharing.client("analyst").post(f"{page}/share", json={"reader": "rival"})
    do(sharing, board, "add", number=number)
    do(sharing, board, "share", reader="rival")
    pages = (page, "/console/people/boards", f"/console/people/board/{board}")
    shown = [sharing.client("rival").get(address) for address in pages]
    shown.append(sharing.client("owner").get(page))
    assert {reply.status_code for reply in shown} == {200}
    assert "my secret" in sharing.client("analyst").get(page).text
    assert all("my secret" not in reply.text for reply in shown)


def test_a_share_is_of_one_entry_and_not_of_its_number(sharing: Served) -> None:
    """A restored ledger may use a number again: nothing that was shared before opens it."""
    number, board = asked(sharing), made(sharing)
    do(sharing, board, "add", number=number)
    do(sharing, board, "share", reader="rival")
    page, rival = f"/console/people/a/{number}", sharing.client("rival")
    sharing.client("analyst").post(f"{page}/share", json={"reader": "rival"})
    absent = rival.get(f"/console/people/a/{10**9}").content
    with sharing.app.state.service.saved.transaction() as store:
        store.execute("UPDATE shares SET hash = 'of another entry'")
        store.execute("UPDATE parts SET hash = 'of another entry'")
    assert rival.get(page).content == absent
    assert rival.get("/console/people/boards").status_code == 200
    for who in ("rival", "analyst"):
        text = sharing.client(who).get(f"/console/people/board/{board}").text
        assert "is not shared with you" in text and 'class="result"' not in text


def test_an_auditor_sees_the_act_and_never_the_value(sharing: Served) -> None:
    number = asked(sharing)
    analyst, auditor = sharing.client("analyst"), sharing.client("auditor")
    analyst.post(f"/console/people/a/{number}", json={"name": "secret name"})
    analyst.post(f"/console/people/a/{number}/share", json={"reader": "rival"})
    board = made(sharing, title="secret title")
    do(sharing, board, "add", number=number)
    do(sharing, board, "share", reader="rival")
    text = auditor.get("/console/people/ledger").text
    assert f"shared #{number:04} with rival" in text and f"shared board {board}" in text
    assert "secret" not in text and "years is" not in text
    assert auditor.get(f"/console/people/a/{number}").status_code == 403
    assert auditor.get(f"/console/people/board/{board}").status_code == 403
    assert "Shared answers" not in sharing.client("rival").get("/console/people/ledger").text


def test_a_board_is_its_writers_until_it_is_shared(sharing: Served) -> None:
    number, board = asked(sharing), made(sharing)
    rival, page = sharing.client("rival"), f"/console/people/board/{board}"
    assert do(sharing, board, "add", number=number) == 200
    assert do(sharing, board, "add", text=f"Read this. {BAD}") == 200
    absent = rival.get("/console/people/board/0123456789ab").content
    assert rival.get(page).content == absent == rival.get(f"{page}/file").content
    tries = [
        rival.post(f"{page}/{deed}", json={"text": "x", "reader": "rival"}).content
        for deed in ("add", "drop", "up", "share", "unshare", "front", "title", "delete", "none")
    ]
    assert {*tries} == {absent}
    head = sharing.database.ledger.head
    assert do(sharing, board, "share", reader="rival") == 200
    text = rival.get(page).text
    assert said(text) == said(sharing.client("analyst").get(page).text)
    assert BAD not in text and "&lt;script&gt;" in text and "Delete this board" not in text
    assert rival.get(f"/console/people/a/{number}").status_code == 200  # by way of the board
    assert sharing.database.ledger.head == head
    assert do(sharing, board, "drop", at=1) == 200
    assert rival.get(f"/console/people/a/{number}").status_code == 404
    assert do(sharing, board, "delete") == 200
    assert rival.get(page).content == absent


def test_a_board_cannot_show_what_its_writer_was_not_told(sharing: Served) -> None:
    """Neither by a guessed number, nor by putting a shared answer on a board for others."""
    number = asked(sharing)
    stolen = made(sharing, "rival")
    assert do(sharing, stolen, "add", "rival", number=number) == 404
    sharing.client("analyst").post(f"/console/people/a/{number}/share", json={"reader": "rival"})
    assert do(sharing, stolen, "add", "rival", number=number) == 200
    sharing.database.grant("third", 1)
    sharing.tokens["third"] = sharing.access.lend("third", "analyst")
    assert do(sharing, stolen, "share", "rival", reader="third") == 200
    third = sharing.client("third")
    shown = third.get(f"/console/people/board/{stolen}").text
    assert "is not shared with you" in shown and 'class="result"' not in shown
    assert third.get(f"/console/people/a/{number}").status_code == 404


def test_the_owners_front_page_is_for_everybody_at_the_table(sharing: Served) -> None:
    number, board = asked(sharing, who="owner"), made(sharing, "owner", f"Start here {BAD}")
    do(sharing, board, "add", "owner", number=number)
    assert "Start here" not in sharing.client("rival").get("/console/people/table").text
    assert do(sharing, board, "front", "owner") == 200
    text = sharing.client("rival").get("/console/people/table").text
    assert "Start here" in text and BAD not in text
    assert sharing.client("rival").get(f"/console/people/board/{board}").status_code == 200
    assert "Start here" not in sharing.client("auditor").get("/console/people/table").text
    other = made(sharing)
    assert do(sharing, other, "front") == 404  # an analyst publishes nothing


def test_the_file_of_a_board_needs_no_script(sharing: Served) -> None:
    number, board = asked(sharing), made(sharing, title=BAD)
    do(sharing, board, "add", number=number)
    do(sharing, board, "add", text=f"</style>{BAD}")
    text = sharing.client("analyst").get(f"/console/people/board/{board}/file").text
    assert "<script" not in text and text.count("<style>") == 1 and text.count("</style>") == 1
    assert "<svg" in text and "sulq receipt #" in text and "http" not in text.split("</style>")[1]


@pytest.mark.parametrize("who", [None, "owner", "analyst", "auditor", "monitor"])
def test_who_may_have_boards(sharing: Served, who: str | None) -> None:
    client = sharing.client(who)
    codes = {
        client.get("/console/people/boards").status_code,
        client.post("/console/people/boards", json={"title": "x"}).status_code,
    }
    assert codes == {None: {401}, "owner": {200}, "analyst": {200}}.get(who, {403})


def test_a_policy_turns_sharing_on(tmp_path) -> None:
    facts = (
        '[t]\nsource = "t.parquet"\nledger = "t.ledger"\npromise = {epsilon = 1}\n'
        "columns.age = {number = [0, 120]}\n"
    )
    path = tmp_path / "sulq.toml"
    path.write_text(facts)
    assert not read_policy(path)["t"].sharing
    path.write_text(facts.replace("columns.age", "sharing = true\ncolumns.age"))
    assert read_policy(path)["t"].sharing
