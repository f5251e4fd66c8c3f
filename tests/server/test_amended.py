"""A table is amended under its server and its clients: no number is read by the wrong bounds."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.server.conftest import new_key, serving, write_people
from tests.waiting import LONGEST

from sulq import Database, Flag, Number, Promise, Schema, connect, total
from sulq.client.requests import StaleSchema
from sulq.errors import Refused
from sulq.server.app import create_app
from sulq.server.auth.grants import GrantTerms, end_tokens, give, were_given
from sulq.server.auth.tokens import Access, Role
from sulq.server.limits import Settings
from sulq.server.middleware import Log
from sulq.server.service.catalog import Tables, id_of


def schema(most: int) -> Schema:
    return Schema(Number("age", 0, 110, step=1), Number("income", 0, most), Flag("smoker"))


@pytest.fixture
def before(tmp_path: Path, state: Path) -> Database:
    source = write_people(tmp_path / "people.parquet", 1_000)
    promise = Promise(1, "1e-6", 100)
    found = Database.open(
        source, schema(200_000), promise, tmp_path / "ledger", name="people", publish=True
    )
    found.grant("ann", 40)
    return found


@contextmanager
def served(database: Database) -> Iterator[tuple[Any, str]]:
    access = Access.open()
    token = access.lend("ann", Role.ANALYST)
    settings, log = Settings(pacing=False), Log(io.StringIO())
    app = create_app(Tables({"people": database}), access, settings=settings, log=log)
    try:
        with serving(app) as url, connect(f"{url}/people", token=token) as client:
            yield client, app.state.service.tables
    finally:
        access.close()


def test_a_kept_reply_is_not_given_after_an_amendment(before):
    """Its integers would be read by units that they do not have."""
    key = new_key()
    with served(before) as (client, _):
        client.ask(total("income"), credits=5, key=key)
    after = before.amend(schema=schema(50_000))
    with served(after) as (client, _), pytest.raises(Refused):  # as the ledger does
        client.ask(total("income"), credits=5, key=key)
    with served(after) as (client, _):
        assert client.ask(total("income"), credits=5).credits == 5
    after.close()


@pytest.mark.slow
def test_a_token_of_a_withdrawn_table_reaches_no_later_one_of_its_name(tmp_path, before):
    """Whoever withdraws it, and wherever the tokens are: another table is another table."""
    with closing(Access.open()) as access:
        first, _ = give(before, "people", access, "eve", GrantTerms(role=Role.AUDITOR))
        before.withdraw()
        source, promise = tmp_path / "people.parquet", Promise(1, "1e-6", 50)
        after = Database.open(
            source, schema(90_000), promise, tmp_path / "ledger", name="people", publish=True
        )
        second, _ = give(after, "people", access, "eve", GrantTerms(role=Role.AUDITOR))
        held = {access.caller(token).tables for token in (first, second)}
        assert [id_of(after) in tables for tables in held].count(True) == 1
        app = create_app(Tables({"people": after}), access, log=Log(io.StringIO()))
        with serving(app) as url:
            codes = [
                httpx.get(
                    f"{url}/v1/tables/people/schema",
                    headers={"Authorization": f"Bearer {token}"},
                    timeout=LONGEST,
                )
                for token in (first, second)
            ]
        assert [code.status_code for code in codes] == [404, 200]
        ledger = after.ledger.statement().ledger
        after.close()
        assert were_given(ledger, "people") and end_tokens(ledger, "people") == 2


def test_a_client_that_stays_connected_is_told(before):
    with served(before) as (client, tables):
        kept = client._calls.ask(total("income"), None, 0.95, 3, None, None, None)
        body = client._line.client.post(
            kept.path,
            content=kept.content,
            auth=client._line.bearer,
            headers={"Idempotency-Key": new_key(), "Content-Type": "application/json"},
        ).json()
        after = before.amend(schema=schema(50_000))
        tables._databases["people"] = after
        left = after.left_for("ann")
        for verb in (
            lambda: client.ask(total("income"), credits=3),
            lambda: client.quote(total("income")),
            lambda: client.plan([total("income")], credits=3),
            lambda: client.sql("SELECT sum(income) AS s FROM people", credits=3),
        ):
            with pytest.raises(Refused, match="amended") as told:
                verb()
            assert (told.value.code, told.value.credits_spent) == ("table_amended", 0)
        assert after.left_for("ann") == left
        with connect(client._address.base, token=client._line.bearer.token) as again:
            assert again.ask(total("income"), credits=3).credits == 3
            call = again._calls.ask(total("income"), None, 0.95, 3, None, None, None)
            with pytest.raises(StaleSchema):  # should a reply of the past come nevertheless
                call.read(json.dumps(body).encode())
        after.close()
