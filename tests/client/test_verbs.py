"""Both clients have the same verbs, and take the same terms: what one learns, the other knows."""

from __future__ import annotations

import asyncio
import inspect

import pytest
from tests.client.conftest import far
from tests.database.test_exact import ILL
from tests.database.test_exact import people as exact_people
from tests.database.test_exact import published as exact_table

from sulq import InvalidQuery, Refused, col, count
from sulq.client import AsyncRemote, Remote, connect_async
from sulq.client.aio import AsyncReserved
from sulq.client.remote import RemoteReserved

FACTS = {"name", "table", "tables", "schema", "promise", "size", "sample_dummy", "durable"}
"""Known since the connection was made: nothing is sent."""
PAIRS = [(Remote, AsyncRemote), (RemoteReserved, AsyncReserved)]


def verbs(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def terms(kind, name):
    """Names, kinds and defaults of what a verb takes; a property takes nothing."""
    found = inspect.getattr_static(kind, name)
    if isinstance(found, property):
        return ["self"]
    return [
        (each.name, each.kind, each.default) if each.name != "self" else "self"
        for each in inspect.signature(found).parameters.values()
    ]


@pytest.mark.parametrize(("here", "loop"), PAIRS)
def test_the_verbs_are_the_same(here, loop):
    assert verbs(here) == verbs(loop) > FACTS
    for name in verbs(here):
        assert terms(here, name) == terms(loop, name), name
        found = inspect.getattr_static(loop, name)
        awaited = inspect.iscoroutinefunction(found) or inspect.isasyncgenfunction(found)
        assert awaited is (name not in FACTS), name


def test_every_verb_reaches_the_table(tmp_path):
    table = exact_table(exact_people(20_000), name="people", ledger=tmp_path / "ledger")
    with far(tmp_path, people=table) as server:
        here = server.databases["people"]

        async def scene():
            address = f"{server.url}/people"
            async with await connect_async(address, token=server.tokens["owner"]) as db:
                assert (db.name, await db.declaration()) == ("people", None)
                assert len(db.sample_dummy(3)[db.schema.columns[0].name]) == 3
                declared = await db.declare_exactly([ILL])
                assert declared.terms and await db.declaration() == here.declaration
                assert (await db.quote_exactly(ILL)).guarantee
                (exact,) = await db.ask_exactly(ILL)
                assert exact.value == here.ask_exactly(ILL)[0].value
                left = await db.remaining()
                async with await db.reserve(2) as mine:
                    assert await mine.remaining() == 2
                    assert await db.remaining() == left - 2
                    await mine.ask(count(where=col("smoker")), credits=1)
                    with pytest.raises(Refused):
                        await mine.ask(count(where=col("visits") > 2), credits=2)
                assert await db.remaining() == left - 1
                token = await db.grant("ann", 3, rate="60/min")
                async with await connect_async(address, token=token.token) as ann:
                    found = await ann.ask(count(where=col("visits") > 3))
                    paper = await ann.receipt(found.receipt.seq)
                    assert paper.to_json() == found.receipt.to_json()
                    events = [event async for event in ann.entries()]
                    assert [event["seq"] for event in events] == list(
                        range(1, here.ledger.head + 1)
                    )
                    await db.revoke("ann")
                    with pytest.raises(Refused):
                        await ann.remaining()
                with pytest.raises(InvalidQuery):
                    await db.grant("bob", 0)

        asyncio.run(scene())
