"""Tokens: what is kept of them, who comes in with them, and for how long."""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import secrets
import stat
import threading
import time
from pathlib import Path

import apsw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.waiting import LONGEST

from sulq.errors import InvalidQuery, Refused
from sulq.server.auth import tokens as module
from sulq.server.auth.rate_limit import Buckets, Rate
from sulq.server.auth.tokens import Access, Role, check_name

HERE = {"id": "people"}


@pytest.fixture
def access(tmp_path):
    found = Access.open(tmp_path / "access.sqlite")
    yield found
    found.close()


def test_a_token_is_256_bits_and_only_its_hash_is_kept(access, tmp_path):
    token = access.issue("ann", Role.ANALYST, {"id": "people"})
    assert token.startswith("sulq_") and len(token) == 5 + 43
    assert token != access.issue("ann", Role.ANALYST, HERE)
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"ann" in kept and token.encode() not in kept and token[5:].encode() not in kept


def test_the_caller_has_what_was_given(access):
    token = access.issue(
        "ann", Role.ANALYST, {"a": "first", "b": "second"}, int(time.time()) + 3_600, Rate(5, "min")
    )
    caller = access.caller(token)
    assert (caller.name, caller.role, caller.tables) == ("ann", Role.ANALYST, {"a", "b"})
    assert caller.rate == Rate(5, "min") and caller.expires > time.time()
    assert token not in repr(caller)
    assert access.caller(access.lend("x", Role.OWNER)).tables is None


@pytest.mark.parametrize("change", [lambda t: t[:-1], lambda t: t + "A", str.upper, lambda _: ""])
def test_other_tokens_are_nobody(access, change):
    token = access.issue("ann", Role.ANALYST, HERE)
    assert access.caller(token) is not None
    assert access.caller(change(token)) is None
    assert access.caller("\ud800") is None


def test_a_token_ends(access, monkeypatch):
    token = access.issue("ann", Role.ANALYST, HERE, expires=int(time.time()) + 100)
    assert access.caller(token) is not None
    later = time.time() + 101
    monkeypatch.setattr(module.time, "time", lambda: later)
    assert access.caller(token) is None
    assert [line.state for line in access.list()] == ["ended"]
    with pytest.raises(InvalidQuery, match="future"):
        access.issue("ann", Role.ANALYST, HERE, expires=int(later) - 1)


def test_a_token_carries_several_tables_each_with_its_role(access):
    token = access.issue("ann", Role.ANALYST, {"a": "first"})
    (line,) = access.list()
    access.carry(line.token_id, "ann", {"b": "second"}, Role.AUDITOR)
    access.carry(line.token_id, "ann", {"b": "second"}, Role.AUDITOR)  # again: nothing new
    access.carry(line.token_id, "ann", {"c": "third"}, Role.ANALYST)
    caller = access.caller(token)
    assert caller.tables == {"a", "b", "c"} and caller.roles == {Role.ANALYST, Role.AUDITOR}
    assert [caller.at(table).role for table in "abc"] == ["analyst", "auditor", "analyst"]
    (line,) = access.list()
    assert line.to_json()["roles"] == {"first": "analyst", "second": "auditor", "third": "analyst"}
    told = line.to_json(only="b")  # nothing of tables that are not the reader's
    assert (told["role"], told["tables"]) == ("auditor", ["second"]) and "first" not in str(told)
    assert access.revoke("ann", "b") == 1
    caller = access.caller(token)
    assert caller.tables == {"a", "c"} and caller.roles == {Role.ANALYST} and not caller.others
    assert access.revoke("ann", "a") == access.revoke("ann", "c") == 1
    assert access.caller(token) is None


@pytest.mark.parametrize(
    ("name", "table", "role"),
    [
        ("bob", "b", Role.ANALYST),  # not this one's token
        ("ann", "b", Role.OWNER),  # owner and analyst together
        ("ann", "a", Role.AUDITOR),  # two roles at one table
    ],
)
def test_what_a_token_cannot_carry_is_refused_in_one_text(access, name, table, role):
    token = access.issue("ann", Role.ANALYST, {"a": "first"})
    before = access.caller(token)
    said = []
    for token_id in (access.list()[0].token_id, "0" * 16):
        for attempt in (access.carry, access.check_carries):
            given = {table: "second"} if attempt == access.carry else table
            with pytest.raises(Refused, match="another token") as refusal:
                attempt(token_id, name, given, role)
            said.append(str(refusal.value).replace(token_id, "ID"))
    assert len(set(said)) == 1 and access.caller(token) == before
    owner = access.issue("eve", Role.OWNER, {"a": "first"})
    access.carry(access.caller(owner).token_id, "eve", {"b": "second"}, Role.AUDITOR)
    with pytest.raises(Refused):
        access.carry(access.caller(owner).token_id, "eve", {"c": "third"}, Role.ANALYST)


def test_a_ledger_that_ends_takes_its_tables_only(access):
    token = access.issue("ann", Role.ANALYST, {"book.1/people": "people"})
    token_id = access.caller(token).token_id
    access.carry(token_id, "ann", {"other.1/visits": "visits"}, Role.AUDITOR)
    assert access.end_ledger("other") == 1 and access.end_ledger("other") == 0
    assert access.caller(token).tables == {"book.1/people"}
    assert access.end_ledger("book") == 1 and access.caller(token) is None


def test_tokens_of_the_format_before_keep_their_role(tmp_path):
    path = tmp_path / "access.sqlite"
    access = Access.open(path)
    token = access.issue("eve", Role.AUDITOR, {"a": "first", "b": "second"})
    access.close()
    old = apsw.Connection(str(path))
    old.execute("ALTER TABLE tokens DROP COLUMN others")
    old.execute("PRAGMA user_version = 2")
    old.close()
    access = Access.open(path)
    caller = access.caller(token)
    assert caller.tables == {"a", "b"} and caller.roles == {Role.AUDITOR}
    access.carry(caller.token_id, "eve", {"c": "third"}, Role.ANALYST)
    assert access.caller(token).at("c").role == Role.ANALYST
    access.close()


def test_revoked_at_once_and_for_good(access, tmp_path):
    mine, other = access.issue("ann", Role.ANALYST, HERE), access.issue("bob", Role.ANALYST, HERE)
    assert access.revoke("ann") == 1
    assert access.caller(mine) is None and access.caller(other) is not None
    assert access.revoke("ann") == 0
    again = Access.open(tmp_path / "access.sqlite")  # another process sees the same
    assert again.caller(mine) is None and again.caller(other).name == "bob"
    again.close()


def test_one_table_is_taken_from_a_token_of_several(access):
    both = access.issue("ann", Role.ANALYST, {"a": "first", "b": "second"})
    elsewhere, everything = access.issue("ann", Role.AUDITOR, HERE), access.lend("ann", Role.OWNER)
    assert access.revoke("ann", "a") == 1
    assert access.caller(both).tables == {"b"}
    assert access.caller(elsewhere) is not None and access.caller(everything) is not None
    assert access.revoke("ann", "b") == 1 and access.caller(both) is None


def test_end_and_rate_change_under_a_good_token(access):
    token = access.issue("ann", Role.ANALYST, {"a": "first"})
    until = int(time.time()) + 500
    assert access.change("ann", "a", expires=until, rate=Rate(3, "s")) == 1
    assert access.change("ann", "b", rate=Rate(9, "s")) == 0
    caller = access.caller(token)
    assert (caller.expires, caller.rate) == (until, Rate(3, "s"))


def test_an_owner_of_one_table_rules_no_token_that_reaches_more(access):
    wide = access.issue("ann", Role.AUDITOR, {"a": "first", "b": "second"})
    assert access.change("ann", "a", expires=int(time.time()) + 500, rate=Rate(1, "day")) == 0
    assert (access.caller(wide).expires, access.caller(wide).rate) == (None, None)


def test_tokens_are_revoked_all_or_none(access, monkeypatch):
    """The second of two changes fails: neither stands."""
    tokens = [access.issue("ann", Role.ANALYST, HERE) for _ in range(2)]
    real, done = module._line, []

    def full(row):
        done.append(row)
        if len(done) == 2:
            raise apsw.FullError("disk full")
        return real(row)

    monkeypatch.setattr(module, "_line", full)
    with pytest.raises(Refused, match="could not be written"):
        access.revoke("ann")
    monkeypatch.undo()
    assert all(access.caller(token) for token in tokens)
    assert access.revoke("ann") == 2


def test_tokens_by_a_name_alone_are_ended(tmp_path):
    """As the format before this one kept them: a token for every table called people."""
    path = tmp_path / "access.sqlite"
    found = Access.open(path)
    token = found.issue("ann", Role.OWNER, HERE)
    found.close()
    with contextlib.closing(apsw.Connection(str(path))) as raw:
        raw.execute("UPDATE tokens SET tables = '[\"people\"]'; PRAGMA user_version = 1")
        raw.execute("ALTER TABLE tokens DROP COLUMN others")
    again = Access.open(path)
    assert again.caller(token) is None
    assert [line.state for line in again.list()] == ["revoked"]
    assert again.caller(again.issue("ann", Role.OWNER, HERE)) is not None
    again.close()


def test_all_tokens_of_a_ledger_end_with_its_recovery(access):
    mine = access.issue("ann", Role.OWNER, {"one/people": "people"})
    other = access.issue("ann", Role.OWNER, {"oneself/people": "people"})
    assert access.end_ledger("one") == 1
    assert access.caller(mine) is None and access.caller(other) is not None


def test_the_list_has_no_secrets(access):
    token = access.issue("ann", Role.ANALYST, {"a": "first"}, rate=Rate(3, "s"))
    (line,) = access.list()
    assert token not in repr(line) and token[5:] not in str(line.to_json())
    assert line.to_json()["rate"] == "3/s" and line.to_json()["state"] == "good"


@pytest.mark.parametrize("name", ["ann", "Åse Lie", "a.b+c@example.org", "x" * 64, "分析"])
def test_names_of_people(name, access):
    assert access.caller(access.issue(name, Role.ANALYST, HERE)).name == name


@pytest.mark.parametrize(
    "name", ["", " ann", "a/b", "a\nb", "x" * 65, "<b>", "a\x00", None, 7, '"']
)
def test_names_that_are_none(name, access):
    with pytest.raises(InvalidQuery, match="got the name"):
        access.issue(name, Role.ANALYST, HERE)


def test_an_analyst_is_not_the_owner(access):
    with pytest.raises(InvalidQuery, match="other than 'owner'"):
        access.issue("owner", Role.ANALYST, HERE)
    assert check_name("A\u030ase") == "Åse"  # one spelling for one name


def test_files_are_the_owners_alone(state_directory):
    state_directory.rmdir()
    found = Access.open()
    found.issue("ann", Role.ANALYST, HERE)
    assert stat.S_IMODE(state_directory.stat().st_mode) == 0o700
    files = list(state_directory.iterdir())
    assert {path.name for path in files} >= {"access.sqlite", "access.sqlite-wal"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    found.close()


def test_another_file_is_not_taken_for_tokens(tmp_path):
    other = tmp_path / "other"
    other.write_text("no database at all, but long enough to be looked at" * 40)
    with pytest.raises(Refused, match="cannot be opened"):
        Access.open(other)


def test_a_link_is_good_once_and_not_for_long(access, tmp_path, monkeypatch):
    token = access.issue("ann", Role.ANALYST, HERE)
    code = access.link_code(token)
    assert access.redeem("x" * len(code)) is None
    assert access.redeem(code) == token
    assert access.redeem(code) is None
    late = access.link_code(token)
    now = time.monotonic()
    monkeypatch.setattr(module.time, "monotonic", lambda: now + 601)
    assert access.redeem(late) is None
    assert late.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_links_do_not_pile_up(access, monkeypatch):
    monkeypatch.setattr(module, "MOST_LINKS", 3)
    for _ in range(3):
        access.link_code("t")
    with pytest.raises(Refused, match="too many links"):
        access.link_code("t")


def test_a_lent_token_is_written_nowhere(access, tmp_path):
    token = access.lend("this machine", Role.OWNER)
    assert access.caller(token).role == Role.OWNER
    assert access.list() == []
    other = Access.open(tmp_path / "access.sqlite")
    assert other.caller(token) is None
    other.close()


# --- rates --------------------------------------------------------------------------------------


@given(
    st.integers(1, 50),
    st.sampled_from(["s", "min", "h"]),
    st.lists(st.floats(0, 30), max_size=60),
)
def test_no_more_than_the_rate_passes(requests, period, pauses):
    """In any time t: at most the burst and t times the rate."""
    now = [0.0]
    buckets, rate = Buckets(lambda: now[0]), Rate(requests, period)
    passed = 0
    for pause in pauses:
        now[0] += pause
        wait = buckets.take("a", rate)
        passed += wait == 0
        assert passed <= requests + now[0] * rate.per_second + 1e-6
        if wait:
            now[0] += wait + 1e-6
            assert buckets.take("a", rate) == 0  # what it said was true
            passed += 1


def test_tokens_do_not_share_a_bucket():
    buckets, rate = Buckets(lambda: 0.0), Rate(1, "h")
    assert buckets.take("a", rate) == 0 < buckets.take("a", rate)
    assert buckets.take("b", rate) == 0
    assert buckets.take("a", Rate(100, "h")) > 0  # a new rate is no new bucket


@pytest.mark.parametrize("text", ["60/min", " 5 / s", "500/h", "9/day"])
def test_rates_are_read_as_spelled(text):
    assert str(Rate.of(text)) == text.replace(" ", "")


@pytest.mark.parametrize("text", ["60", "0/min", "60/month", "-1/s", "1e3/s", "", "9999999/s"])
def test_other_rates_are_refused(text):
    with pytest.raises(InvalidQuery, match="rate"):
        Rate.of(text)


# --- many at once, and how long it takes --------------------------------------------------------


def _issue(path: Path, name: str, count: int) -> None:
    module.BUSY = LONGEST
    found = Access.open(path)
    for _ in range(count):
        found.issue(name, Role.ANALYST, HERE)
    found.close()


@pytest.mark.slow
def test_processes_and_threads_use_one_file(tmp_path, monkeypatch):
    """Made, written and read at once: no token is lost, nobody is turned away.

    With all the patience in the world: how long a busy machine takes is not the question.
    """
    monkeypatch.setattr(module, "BUSY", LONGEST)
    path = tmp_path / "access.sqlite"
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_issue, args=(path, f"p{n}", 20)) for n in range(3)]
    for process in processes:
        process.start()
    found = Access.open(path)
    token = found.issue("reader", Role.ANALYST, HERE)
    misses: list[int] = []

    def read() -> None:
        misses.extend(1 for _ in range(300) if found.caller(token) is None)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in [*threads, *processes]:
        thread.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert not misses and len(found.list()) == 61
    found.close()


def test_a_guess_that_begins_right_takes_no_longer(access):
    """Guesses that share half of a good token or of none, each made just before it is timed.

    Welch's t, without the slowest tenth. False alarm 1e-6: |t| < 4.9. Which guess is timed when is
    drawn, so that a busy machine slows both kinds alike: it widens the error, and not the odds.
    """
    token, none = access.issue("ann", Role.ANALYST, HERE), "sulq_" + secrets.token_urlsafe(32)
    for number in range(50):
        access.issue(f"other {number}", Role.ANALYST, HERE)
    near = np.random.default_rng(1).integers(2, size=8_000).astype(bool)
    taken = np.empty(len(near))
    for place, right in enumerate(near):
        guess = (token if right else none)[:24] + secrets.token_urlsafe(18)
        start = time.perf_counter_ns()
        access.caller(guess)
        taken[place] = time.perf_counter_ns() - start
    kept = taken <= np.quantile(taken, 0.9)
    left, right = taken[kept & near], taken[kept & ~near]
    error = math.sqrt(left.var(ddof=1) / len(left) + right.var(ddof=1) / len(right))
    assert abs(left.mean() - right.mean()) < 4.9 * error
