"""The client against a real server: an Oracle as the local one, the same numbers and errors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from tests.client.conftest import Far, far
from tests.database.test_exact import people as people_of_exactly
from tests.database.test_exact import published
from tests.people import publish

from sulq import (
    BudgetSpent,
    InvalidQuery,
    Refused,
    UnsafeExactly,
    col,
    count,
    histogram,
    mean,
    total,
)
from sulq.client import AsyncRemote, Remote, connect, connect_async
from sulq.kernel.ledger.signing import verify_receipt

SMOKERS = count(where=col("smoker"))


@pytest.fixture
def people(state_directory: Path) -> Iterator[Far]:
    database = publish(name="people")
    database.grant("analyst", 30)
    with far(state_directory, people=database) as found:
        yield found


def test_the_public_facts_are_the_tables(people: Far) -> None:
    local, remote = people.databases["people"], people.remote()
    assert remote.schema.to_json() == local.schema.to_json()
    assert remote.promise == local.promise
    assert remote.size == local.size == 2_000
    assert remote.remaining == local.remaining == 70
    assert people.remote(who="analyst").remaining == 30
    dummy, here = remote.sample_dummy(5), local.sample_dummy(5)
    assert {name: list(v) for name, v in dummy.items()} == {n: list(v) for n, v in here.items()}


def test_quote_says_what_the_table_says(people: Far) -> None:
    local, remote = people.databases["people"], people.remote()
    for question in (SMOKERS, mean("age"), histogram("blood"), total("income")):
        here, there = local.quote(question, rows=500), remote.quote(question, rows=500)
        assert there.credits == here.credits and there.left_after == here.left_after
        assert (there.repeat, there.notes, there.note) == (here.repeat, here.notes, here.note)
        for level in (0.5, 0.95, 0.999):
            assert np.array_equal(there.interval(level)[1], here.interval(level)[1])


def test_within_credits_and_rows_reach_the_price(people: Far) -> None:
    local, remote = people.databases["people"], people.remote()
    for terms in ({"within": 40.0}, {"credits": 0.1}, {"credits": Fraction(1, 3)}):
        assert remote.quote(SMOKERS, **terms).credits == local.quote(SMOKERS, **terms).credits


def test_asking_charges_once_and_gives_a_receipt(people: Far) -> None:
    local, remote = people.databases["people"], people.remote()
    answer = remote.ask(SMOKERS)
    assert answer.credits == 1 and remote.remaining == local.remaining == 69
    verify_receipt(answer.receipt.to_json(), local.ledger.statement().public_key)
    assert answer.receipt.to_json() == local.receipt(answer.receipt.seq).to_json()
    assert remote.receipt(answer.receipt.seq).to_json() == answer.receipt.to_json()


def test_a_key_is_answered_once(people: Far) -> None:
    remote = people.remote(who="analyst")
    first, again = (remote.ask(SMOKERS, key="mine / any text") for _ in range(2))
    assert first.values == again.values and first.credits == again.credits == 1
    assert remote.remaining == 29
    with pytest.raises(Refused, match="Key"):
        remote.ask(mean("age"), key="mine / any text")


def test_a_share_is_spent_by_its_analyst(people: Far) -> None:
    remote = people.remote(who="analyst")
    with pytest.raises(BudgetSpent) as refusal:
        remote.ask(SMOKERS, credits=31)
    assert refusal.value.credits_spent == 0 and remote.remaining == 30
    assert people.databases["people"].remaining == 70


def test_a_price_above_the_most_is_refused_free(people: Far) -> None:
    remote = people.remote()
    with pytest.raises(Refused) as refusal:
        remote.ask(SMOKERS, credits=2, max_credits=1)
    assert refusal.value.code == "price_changed" and remote.remaining == 70
    assert remote.ask(SMOKERS, credits=2, max_credits=2).credits == 2


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        (count(where=col("nobody")), {}),
        ("how many?", {}),
        (SMOKERS, {"confidence": 2}),
        (SMOKERS, {"credits": -1}),
        (SMOKERS, {"credits": float("nan")}),
        (SMOKERS, {"rows": 0}),
        (SMOKERS, {"within": 10, "credits": 1}),
        (SMOKERS, {"within": float("inf")}),
    ],
)
def test_what_is_wrong_here_is_wrong_there(people: Far, question: object, terms: dict) -> None:
    for oracle in (people.databases["people"], people.remote()):
        for verb in (oracle.ask, oracle.quote):
            with pytest.raises(InvalidQuery):
                verb(question, **terms)
    assert people.databases["people"].remaining == 70


def test_a_plan_is_priced_and_asked_as_one(people: Far) -> None:
    local, remote = people.databases["people"], people.remote()
    questions = [SMOKERS, mean("age"), histogram("blood"), SMOKERS]
    here, there = (oracle.plan(questions, credits=3) for oracle in (local, remote))
    assert there.credits == here.credits and there.left_after == here.left_after
    assert str(there) == str(here) and repr(there) == repr(here)
    for mine, yours in zip(there.rows(), here.rows(), strict=True):
        halves = mine.pop("half_width"), yours.pop("half_width")
        assert mine == yours and np.array_equal(*halves)
    answers = there.ask(key="all together now")
    assert sum(a.credits for a in answers) == there.credits
    assert answers[0].values == answers[3].values
    assert [a.values for a in there.ask(key="all together now")] == [a.values for a in answers]
    assert remote.remaining == 70 - there.credits


def test_a_plan_that_became_dearer_is_refused(people: Far) -> None:
    remote = people.remote()
    body, bounds, _ = remote._calls.plan([SMOKERS], None, None, None, 0.95, None)
    with pytest.raises(Refused) as refusal:
        remote._line.send(remote._calls.ask_plan(body, bounds, Fraction(1, 2), None))
    assert refusal.value.code == "price_changed" and remote.remaining == 70


def test_sql_gives_the_same_table(people: Far) -> None:
    local, remote = people.databases["people"], people.remote()
    text = "SELECT blood, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY blood"
    there = remote.sql(text, table="people")
    here = local.sql(text, table="people")  # stored already
    assert [there.records(c) for c in (0.5, 0.95)] == [here.records(c) for c in (0.5, 0.95)]
    assert there.credits > 0 and here.credits == 0
    quoted = remote.quote_sql("SELECT SUM(income) FROM people", table="people")
    assert quoted.credits == local.quote_sql("SELECT SUM(income) FROM people").credits
    with pytest.raises(InvalidQuery):
        remote.sql("SELECT secret FROM people")
    for ask in (remote.sql, remote.quote_sql):
        with pytest.raises(InvalidQuery, match=r"no table 'patients'.*there is 'people'"):
            ask("SELECT COUNT(*) FROM patients WHERE age > 3")


def test_a_reservation_is_kept_and_given_back(people: Far) -> None:
    remote = people.remote(who="analyst")
    with remote.reserve(10) as reserved:
        assert reserved.remaining == 10 and remote.remaining == 20
        assert reserved.ask(SMOKERS, credits=4).credits == 4
        assert reserved.remaining == 6
        assert reserved.plan([mean("age")]).left_after == 6 - reserved.plan([mean("age")]).credits
        with pytest.raises(BudgetSpent):
            reserved.ask(mean("age"), credits=7)
    assert remote.remaining == 26
    with pytest.raises(Refused):
        reserved.ask(mean("age"))


def test_the_books(people: Far) -> None:
    remote = people.remote(who="analyst")
    answer = remote.ask(SMOKERS)
    said = remote.statement()
    assert (said.spent, said.left, said.mine) == (1, 99, 29)
    assert said.head == people.databases["people"].ledger.statement().head
    entries = list(remote.entries())
    assert [entry["seq"] for entry in entries] == list(range(1, said.seq + 1))
    assert json.dumps(entries)
    assert answer.receipt.seq in {entry["seq"] for entry in entries}
    assert list(remote.entries(after=said.seq)) == []


def test_an_owner_grants_and_revokes(people: Far) -> None:
    owner = people.remote()
    given = owner.grant("bea", 5, rate="600/min")
    assert (given.name, given.role) == ("bea", "analyst") and given.token not in repr(given)
    with connect(f"{people.url}/people", token=given.token) as bea:
        assert bea.remaining == 5 and bea.ask(SMOKERS).credits == 1
        owner.revoke("bea")
        with pytest.raises(Refused) as refusal:
            bea.ask(mean("age"))
    assert refusal.value.code == "unknown_token"
    with pytest.raises(Refused):
        people.remote(who="analyst").grant("carl", 1)


def test_exact_batches(state_directory: Path) -> None:
    database, ill = published(people_of_exactly(20_000), name="exact"), count(where=col("ill"))
    with far(state_directory, exact=database) as found:
        remote, analyst = found.remote("exact"), found.remote("exact", "analyst")
        here, there = database.quote_exactly(ill), remote.quote_exactly(ill)
        assert (there.guarantee, there.divisor) == (here.guarantee, here.divisor)
        assert (there.left, there.left_after) == (here.left, here.left_after)
        with pytest.raises(UnsafeExactly):
            analyst.ask_exactly(ill)
        (answer,) = remote.ask_exactly(ill)
        (again,) = database.ask_exactly(ill)
        assert answer.value == again.value and answer.explain() == again.explain()
        assert (answer.guarantee, answer.terms) == (again.guarantee, again.terms)
        later = remote.ask(count(where=col("smoker")))
        assert later.guarantee != "differentially private" and later.promise is None


def test_strangers_learn_nothing(people: Far) -> None:
    with pytest.raises(Refused) as refusal:
        connect(f"{people.url}/people", token="sulq_" + "a" * 43)
    assert refusal.value.code == "unknown_token"
    with pytest.raises(Refused) as refusal:
        people.remote("nobody")
    assert refusal.value.code == "not_found"
    with pytest.raises(Refused) as refusal:
        people.remote(who="auditor").ask(SMOKERS)
    assert refusal.value.code == "not_for_this_role"


def test_the_only_table_needs_no_name(people: Far, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SULQ_TOKEN", people.tokens["analyst"])
    with connect(people.url) as remote:
        assert remote.name == "people"
    with connect(f"{people.url}/v1/tables/people") as remote:
        assert remote.size == 2_000


def test_no_token_no_question(people: Far) -> None:
    with pytest.raises(InvalidQuery, match="SULQ_TOKEN"):
        connect(f"{people.url}/people")


def test_async(people: Far) -> None:
    local = people.databases["people"]

    async def work() -> None:
        url, token = f"{people.url}/people", people.tokens["analyst"]
        async with await connect_async(url, token=token) as remote:
            assert isinstance(remote, AsyncRemote)
            quotes = await asyncio.gather(*(remote.quote(mean("age")) for _ in range(8)))
            assert {quote.credits for quote in quotes} == {local.quote(mean("age")).credits}
            answer = await remote.ask(mean("age"), key="once and again")
            same = await remote.ask(mean("age"), key="once and again")
            assert answer.values == same.values and answer.credits == same.credits
            plan = await remote.plan([SMOKERS, mean("age")])
            assert [a.kind for a in await plan.ask()] == ["count", "mean"]
            found = await remote.sql("SELECT blood, COUNT(*) n FROM people GROUP BY blood")
            for ask in (remote.sql, remote.quote_sql):
                with pytest.raises(InvalidQuery, match="no table 'patients'"):
                    await ask("SELECT COUNT(*) FROM patients WHERE age > 3")
            assert len(found) == 4 and found.credits > 0
            assert await remote.remaining() == (await remote.statement()).mine
            with pytest.raises(BudgetSpent):
                await remote.ask(SMOKERS, credits=31)

    asyncio.run(work())


def test_the_token_is_nowhere_to_be_seen(people: Far, caplog: pytest.LogCaptureFixture) -> None:
    token = people.tokens["analyst"]
    with caplog.at_level("DEBUG"):
        remote = people.remote(who="analyst")
        remote.ask(SMOKERS)
        with pytest.raises(BudgetSpent) as refusal:
            remote.ask(SMOKERS, credits=31)
    said = [repr(remote), repr(remote._line), repr(refusal.value), str(vars(refusal.value))]
    assert all(token not in text for text in [*said, caplog.text])
    assert isinstance(remote, Remote) and "people" in repr(remote)


def test_a_fit_without_credits_takes_a_tenth_of_a_far_ledger_that_is_kept(
    people: Far, state_directory: Path, tmp_path: Path
) -> None:
    """The server says whether what is spent is spent for good; reservations and threads too."""
    from sulq.client.aio import Bridge
    from sulq.learn.budget import budget_of

    assert people.remote().durable is False
    assert budget_of(people.remote(who="analyst"), None) > 29
    kept = publish(name="kept", ledger=tmp_path / "ledger")
    with far(state_directory, kept=kept) as found:
        assert found.remote("kept").durable is True
        assert 9 < budget_of(found.remote("kept"), None) <= 10
        with found.remote("kept").reserve(20) as reserved:
            assert 1 < budget_of(reserved, None) <= 2

        async def over_a_loop() -> tuple[bool, bool]:
            url, token = f"{found.url}/kept", found.tokens["owner"]
            async with await connect_async(url, token=token) as remote:
                return remote.durable, Bridge(remote, asyncio.get_running_loop()).durable

        assert asyncio.run(over_a_loop()) == (True, True)
