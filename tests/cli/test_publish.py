"""`sulq publish` is the only command that publishes; every other one says so and makes nothing."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import duckdb
import pandas as pd
import pytest
from tests.cli.conftest import POLICY

from sulq import Category, Database, Number, Promise, Refused, Schema
from sulq.cli.context import named
from sulq.errors import NotPublished
from sulq.kernel.engines.duckdb import quarantine
from sulq.kernel.ledger.inspect import is_published

ASK = ("ask", "people", "count", "--where", "smoker")


def made(state: Path) -> set[str]:
    """Ledgers in the directory, and what the state directory has beside notes of files read."""
    kept = {str(path.relative_to(state)) for path in state.rglob("*") if path.is_file()}
    ledgers = {path.name for path in Path().iterdir() if "ledger" in path.name}
    return ledgers | {name for name in kept if not name.startswith(("cache", "checks"))}


@pytest.mark.parametrize(
    "words",
    [
        ASK,
        ("ask", "SELECT COUNT(*) FROM people"),
        ("grant", "people", "ann", "5"),
        ("grant", "people", "eve", "--role", "auditor"),
        ("suggest", "people", "income"),
        ("plan", "count", "--yes"),
        ("keys", "city"),
        ("outside", "--credits", "1", "--reason", "yearbook", "--yes"),
        ("audit", "--replay"),
    ],
)
def test_no_other_command_publishes(unpublished, words, state_directory):
    said = unpublished(*words)
    assert said.code == 3
    assert "`sulq publish people`" in said.err and "publish=True" in said.err
    assert made(state_directory) == set()


def test_a_file_that_ends_its_reader_is_not_published(unpublished, state_directory, monkeypatch):
    """A child process reads it first: somebody else may have made it."""
    monkeypatch.setattr(quarantine, "CHILD", "import os; os.abort()")
    said = unpublished("publish", "people", "--yes")
    assert said.code == 2 and "cannot be read: the process that tried has ended" in said.err
    assert made(state_directory) == set()


@pytest.mark.parametrize(
    "words",
    [
        ("quote", "people", "count", "--where", "smoker"),
        ("quote", "SELECT COUNT(*) FROM people WHERE smoker"),
        ("ask", "EXPLAIN SELECT COUNT(*) FROM people WHERE smoker"),
        ("plan", "count where smoker"),
        ("suggest", "people", "income", "--quote"),
        ("check",),
        ("columns",),
        ("publish", "--dry-run"),
    ],
)
def test_looking_makes_nothing(unpublished, words, state_directory):
    said = unpublished(*words)
    assert said.code == 0, said.err
    assert made(state_directory) == set()
    if words[0] in ("quote", "ask"):
        assert "not published" in said.out + said.err
    if words[0] == "quote":
        assert "not published" in said.out
        assert unpublished(*words, "--json").json["published"] is False


def test_it_publishes_once_and_says_what_it_did(unpublished):
    first = unpublished("publish", "--yes")
    assert (first.code, "published people: epsilon 1" in first.err) == (0, True)
    assert "people: ready to publish, 20,000 rows" in first.out
    events = unpublished("verify", "--json").json["events"]
    again = unpublished("publish", "--yes", "--json")
    assert again.json == {"table": "people", "published": True, "new": False}
    assert unpublished("verify", "--json").json["events"] == events
    assert unpublished(*ASK).code == 0
    assert unpublished("quote", *ASK[1:], "--json").json["published"] is True


def test_without_a_terminal_it_wants_yes(unpublished, state_directory):
    said = unpublished("publish")
    assert (said.code, "--yes" in said.err) == (2, True)
    assert "nothing was published" in said.err
    assert made(state_directory) == set()


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("typed", "code"), [("people", 0), ("peple", 2), pytest.param("y", 2, marks=pytest.mark.slow)]
)
def test_on_a_terminal_it_asks_for_the_name(unpublished, typed, code):
    ours, theirs = pty.openpty()
    run = subprocess.Popen(
        [sys.executable, "-m", "sulq", "publish"],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(theirs)
    os.write(ours, f"{typed}\n".encode())
    out, err = run.communicate(timeout=120)
    os.close(ours)
    assert run.returncode == code, err
    assert "people: ready to publish" in out and "cannot be undone" in err
    assert Path("people.ledger").exists() == (code == 0)


def test_what_is_not_ready_is_not_published(unpublished, state_directory):
    text = Path("sulq.toml").read_text("utf-8").replace("[0, 1000]", '["?", "?"]')
    Path("sulq.toml").write_text(text, "utf-8")
    said = unpublished("publish", "--yes")
    assert (said.code, "  income has no bounds yet" in said.out) == (2, True)
    assert made(state_directory) == set()


def test_data_of_another_ledger_is_refused_before_anything_is_asked(unpublished):
    assert unpublished("publish", "--yes").code == 0
    text = Path("sulq.toml").read_text("utf-8").replace("people.ledger", "second.ledger")
    Path("sulq.toml").write_text(text, "utf-8")
    said = unpublished("publish", "--dry-run")
    assert (said.code, "registered with another ledger" in said.err) == (3, True)
    assert not Path("second.ledger").exists()


# -- in Python ---------------------------------------------------------------------------------

SCHEMA = Schema(Number("age", 0, 120, step=1), Category("city", ["Oslo", "Paris"]))
ROWS = pd.DataFrame({"age": [30, 40, 50], "city": ["Oslo", "Paris", "Oslo"]})
PROMISE = Promise(epsilon=1, delta="1e-6", queries=10)


def opened(ledger, **more):
    return Database.open(ROWS, SCHEMA, PROMISE, ledger, name="people", **more)


def test_an_old_script_is_told_the_new_line(tmp_path, state_directory):
    with pytest.raises(NotPublished, match=r"Database\.open\(\.\.\., publish=True\)") as refusal:
        opened(tmp_path / "people.ledger")
    assert "`sulq publish people`" in str(refusal.value)
    assert list(tmp_path.iterdir()) == []
    assert not list(state_directory.rglob("*"))


def test_publish_is_needed_once(tmp_path):
    path = tmp_path / "people.ledger"
    opened(path, publish=True).close()
    with opened(path) as database:
        before = database.statement().statement
    with opened(path, publish=True) as database:  # without effect
        assert database.statement().statement == before
    with pytest.raises(NotPublished):
        Database.open(ROWS.assign(age=7), SCHEMA, PROMISE, path, name="others")
    assert not is_published(path, "others")


def test_a_ledger_in_memory_needs_none():
    opened(":memory:").close()


def test_a_lost_ledger_is_not_called_unpublished(tmp_path):
    path = tmp_path / "people.ledger"
    opened(path, publish=True).close()
    path.unlink()
    for publish in (False, True):
        with pytest.raises(Refused, match=r"lost or empty|registered") as refusal:
            opened(path, publish=publish)
        assert not isinstance(refusal.value, NotPublished)


def test_a_policy_of_several_tables_publishes_one(unpublished):
    text = Path("sulq.toml").read_text("utf-8")
    second = text.replace("[people]", "[others]\napart = true")
    second = second.replace("people.ledger", "others.ledger")
    Path("sulq.toml").write_text(text + second, "utf-8")
    assert unpublished("publish", "--yes").code == 2
    assert unpublished("publish", "people", "--yes").code == 0
    assert not is_published(named(Path("sulq.toml"), "others").ledger_path, "others")


AWKWARD = POLICY.replace(
    "columns.age = {number = [0, 110], step = 1}",
    "columns.person_id = {number = [0, 100000], step = 1}\n"
    "columns.age = {number = [0, 99], step = 1}\n"
    'columns.home = {category = ["Rome"]}',
)
TWO = "[town]\nsource = 'town.parquet'\nledger = 'town.ledger'\npromise = {epsilon = 2}\n"
TWO += "columns.smoker = {flag = true}\n"


@pytest.fixture
def awkward(unpublished):
    """An identifier, bounds that are the data's ends, undeclared values, and a second table."""
    duckdb.sql(
        "COPY (SELECT *, city AS home FROM 'people.parquet') TO 'more.parquet' (FORMAT parquet)"
    )
    text = AWKWARD.replace("people.parquet", "more.parquet") + TWO
    Path("sulq.toml").write_text(text, "utf-8")
    return unpublished


def test_a_table_that_is_not_ready_is_not_published(awkward, state_directory):
    before = made(state_directory)
    for words in (("publish", "people", "--yes"), ("publish", "people", "--dry-run")):
        reply = awkward(*words, "--json")
        assert (reply.code, reply.json["published"]) == (2, False)
        said = " ".join(reply.json["problems"])
        for why in (
            "person_id looks like an identifier, by its name",
            "age has bounds that are the data's own ends",
            "home has fewer than 90 % of its values declared",
            "people in people and in town lose epsilon 3 in all",
        ):
            assert why in said, why
    shown = awkward("publish", "people", "--yes")
    assert "people is not ready to publish" in shown.out
    assert "people was not published" in shown.err
    assert made(state_directory) == before


def test_what_overrules_the_adviser_reaches_no_ledger_and_no_analyst(awkward, state_directory):
    text = Path("sulq.toml").read_text("utf-8")
    for old, new in (
        ("[0, 100000], step = 1", "[0, 100000], step = 1, identifier_ok = true"),
        ("[0, 99], step = 1", "[0, 99], step = 1, proposed = false"),
        ('["Rome"]', '["Rome"], partial = true'),
        ('ledger = "people.ledger"', 'ledger = "people.ledger"\napart = true'),
    ):
        text = text.replace(old, new)
    Path("sulq.toml").write_text(text, "utf-8")
    assert awkward("publish", "people", "--yes").code == 0
    answered = awkward("ask", "people", "count", "--where", "smoker", "--json")
    exported = awkward("ledger", "people", "--export", "chain.jsonl")
    assert (answered.code, exported.code) == (0, 0)
    seen = answered.out + Path("chain.jsonl").read_text("utf-8")
    seen += awkward("columns", "people", "--json").out
    held = b"".join(path.read_bytes() for path in Path().glob("people.ledger*"))
    held += b"".join(p.read_bytes() for p in state_directory.rglob("*") if p.is_file())
    for word in ("identifier_ok", "partial", "proposed", "apart", "at least 99", "readable"):
        assert word not in seen, word
        assert word.encode() not in held, word
