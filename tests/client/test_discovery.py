"""Keys, the largest cells, alerts and declarations over HTTP: as the table says them here."""

from __future__ import annotations

import asyncio
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest
from tests.client.conftest import far
from tests.database.test_exact import ILL
from tests.database.test_exact import people as exact_people
from tests.database.test_exact import published as exact_table

from sulq import (
    BudgetSpent,
    Category,
    Database,
    InvalidQuery,
    Number,
    Promise,
    Refused,
    Schema,
    UnsafeExactly,
    col,
    count,
    histogram,
    mean,
    total,
)
from sulq.client import connect_async
from sulq.server.auth.tokens import Role

CANARY = "canary-5d20"
COUNTS = {"flu": 6_000, "cold": 3_000, f"{CANARY}-alone": 1}
SCHEMA = Schema(
    Number("age", 0, 120, step=1),
    Category("note"),
    Category("town", ["Oslo", "Paris", "Rome"]),
    Category("ward", whole=True),
)
OLD = count(where=col("age") >= 50)
TEXT = "SELECT note, COUNT(*) AS n FROM people GROUP BY note ORDER BY n DESC"
TERMS = {"where": col("age") >= 0, "credits": 100, "delta": Fraction("1e-11"), "most": 5}


def people() -> pd.DataFrame:
    notes = [note for note, times in COUNTS.items() for _ in range(times)]
    place = range(len(notes))
    towns = ["Oslo" if i % 2 else "Paris" if i % 3 else "Rome" for i in place]
    wards = [i % 2 for i in place]
    return pd.DataFrame(
        {"note": notes, "age": [i % 80 for i in place], "town": towns, "ward": wards}
    )


def published(directory: Path, name: str, promise: Promise, **more: object) -> Database:
    """Each table has rows of its own: the same data is published once."""
    rows = people().iloc[len(name) :]
    return Database.open(
        rows, SCHEMA, promise, directory / f"{name}.ledger", name=name, **more, publish=True
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory):
    directory = tmp_path_factory.mktemp("finding")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SULQ_STATE", str(directory / "state"))
        loud = published(directory, "loud", Promise(400, queries=100))
        gaussian = published(directory, "people", Promise(1, "1e-6", queries=1000))
        for table in (loud, gaussian):
            table.grant("ann", 60)
        with far(directory, people=gaussian, loud=loud) as found:
            found.tokens["ann"] = found.access.lend("ann", Role.ANALYST)
            yield found


def bearer(server, who: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {server.tokens[who]}"}


def test_keys_with_figures_are_those_of_the_table(server):
    """A pair, its figures, and the very bars: what is sent are integers and laws."""
    remote, here = server.remote("people"), server.tables["people"]
    key, figures = ("note", "ward"), (total("age"), mean("age", where=OLD.query.rows), count())
    terms = {"where": col("age") >= 1, "credits": 60}
    assert remote.quote_keys(key, *figures, **terms) == here.quote_keys(key, *figures, **terms)
    found = remote.keys(key, *figures, key="figures once", **terms)
    near = here.keys(key, *figures, **terms)
    assert (found.credits, near.credits) == (60, 0)
    assert found.rows(0.9) == near.rows(0.9) and len(found) == 4
    assert [one.name for one in found.figures] == ["total", "mean", "count"]
    assert (found.held_back, found.held_back_error) == (near.held_back, near.held_back_error)
    assert found.keys == near.keys and repr(found) == repr(near).replace("0 credits", "60 credits")
    with pytest.raises(InvalidQuery, match="figures of a key"):
        remote.keys("note", histogram("town"))


def test_keys_are_those_of_the_table(server):
    remote, here = server.remote(), server.databases["people"]
    assert remote.quote_keys("note", **TERMS) == here.quote_keys("note", **TERMS)
    before = here.remaining
    found = remote.keys(col("note"), key="keys once", **TERMS)
    assert before - here.remaining == found.credits == 100
    near = here.keys("note", **TERMS)
    assert found.rows() == near.rows()
    assert (found.held_back, found.held_back_error) == (near.held_back, near.held_back_error)
    assert found.receipt.to_json() == near.receipt.to_json()
    assert remote.keys("note", key="keys once", **TERMS).credits == 100  # the same bytes
    assert here.remaining == before - 100
    assert remote.quote_keys("note", **TERMS).repeat


def test_sql_by_open_text_works_unchanged(server):
    remote, here = server.remote(), server.databases["people"]
    assert remote.quote_sql(TEXT, credits=50).credits == 50
    found = remote.sql(TEXT, credits=50)
    assert found.records() == here.sql(TEXT, credits=50).records()
    assert [row["note"] for row in found.records()] == ["flu", "cold"]
    send = remote._line.client.post
    headers = {"Idempotency-Key": "sql-by-keys", **bearer(server, "owner")}
    reply = send("/v1/tables/people/sql", json={"sql": TEXT, "credits": 50}, headers=headers)
    assert reply.status_code == 200, reply.text
    assert CANARY not in reply.text
    assert any("held back" in note for note in reply.json()["notes"])
    spelled = {"column": "note", "where": "age >= 0", "credits": 100}
    quoted = send("/v1/tables/people/keys/quote", json=spelled, headers=bearer(server, "owner"))
    assert quoted.json()["threshold"] > 100


def test_the_largest_cells(server):
    remote, here = server.remote("loud"), server.databases["loud"]
    found = remote.top("town", k=2, credits=4, key="top once")
    assert found.keys == ("Oslo", "Paris")
    assert (found.credits, found.slack > 0) == (4, True)
    assert here.top("town", k=2, credits=4).receipt.to_json() == found.receipt.to_json()
    bands = remote.top("age", by=total("age"), edges=[0, 40, 60, 120], credits=3)
    assert bands.keys == here.top("age", by=total("age"), edges=[0, 40, 60, 120], credits=3).keys
    for wrong in ({"k": 4}, {"k": 0}, {"edges": [1]}):
        with pytest.raises(InvalidQuery):
            remote.top("town", **wrong)


def test_alerts_fire_as_often_as_paid_and_survive_another_connection(server):
    remote, here = server.remote("loud", "ann"), server.databases["loud"]
    before = remote.remaining
    terms = {"above": 100, "firings": 2, "credits": 10, "key": "armed once"}
    alert, again = remote.alert(OLD, **terms), remote.alert(OLD, **terms)
    assert (before - remote.remaining, again.number) == (10, alert.number)
    local = here.as_analyst("ann").kept_alert(alert.number)
    assert alert.margin(0.9, checks=3) == local.margin(0.9, checks=3)
    assert not alert.check(count(where=col("age") > 119), key="below once")
    assert alert.check(key="fired once")
    assert alert.left == 1
    assert alert.check(key="fired once")  # the same reply
    assert local.check() is True  # here and over HTTP firings count together
    (listed,) = server.remote("loud", "ann").alerts()
    assert (listed.number, listed.left, listed.question) == (alert.number, 0, alert.question)
    with pytest.raises(Refused, match="arm it again"):
        server.remote("loud", "ann").kept_alert(alert.number).check()
    assert remote.remaining == before - 10


def test_an_alert_is_its_askers_alone(server):
    alert = server.remote("loud", "ann").alert(OLD, above=1_000_000, credits=1)
    owner = server.remote("loud")
    assert owner.alerts() == []
    with pytest.raises(Refused, match="no alert"):
        owner.kept_alert(alert.number)
    headers = {"Idempotency-Key": "not-mine-1", **bearer(server, "owner")}
    path = f"/v1/tables/loud/alerts/{alert.number}/check"
    reply = owner._line.client.post(path, json={}, headers=headers)
    assert (reply.status_code, reply.json()["code"]) == (403, "refused")
    assert reply.json()["credits_spent"] == 0


def test_refusals_are_free_and_sound_as_here(server):
    remote, here = server.remote("people", "ann"), server.databases["people"]
    before = remote.remaining
    for wrong in (
        lambda db: db.keys("age"),
        lambda db: db.keys("town"),
        lambda db: db.alert(OLD, above=3, credits=1, firings=0),
        lambda db: db.top("note"),
    ):
        for oracle in (remote, here):
            with pytest.raises(InvalidQuery):
                wrong(oracle)
    with pytest.raises(BudgetSpent):
        remote.keys("note", credits=61)
    with pytest.raises(InvalidQuery, match=r"at least 0\.001"):
        remote.alert(OLD, above=3, credits=Fraction(1, 10_000))
    with pytest.raises(Refused, match="declare the values"):
        server.remote("loud").keys("note")
    assert remote.remaining == before


def test_from_credits_set_aside(server):
    with server.remote("loud", "ann").reserve(5) as reserved:
        reserved.alert(OLD, above=9_999_999, credits=2)
        reserved.top("town", credits=1)
        assert reserved.remaining == 2


def test_async_has_the_same_verbs(server):
    async def asked() -> None:
        token = server.tokens["owner"]
        async with await connect_async(f"{server.url}/loud", token=token) as loud:
            found = await loud.top("town", credits=2)
            assert found.keys == ("Oslo",)
            alert = await loud.alert(OLD, above=5, credits=2)
            assert await alert.check()
            assert (alert.left, len(await loud.alerts())) == (0, 1)
            assert (await loud.kept_alert(alert.number)).number == alert.number
        async with await connect_async(f"{server.url}/people", token=token) as people:
            assert (await people.quote_keys("note", credits=60)).credits == 60
            assert len(await people.keys("note", credits=60)) == 2
            result = await people.sql(TEXT, credits=60)
            assert (result.credits, result.column("note")) == (0, ("flu", "cold"))

    asyncio.run(asked())


def test_what_may_be_asked_exactly_is_declared_over_http(tmp_path):
    table = exact_table(exact_people(20_000), name="exact", ledger=tmp_path / "exact.ledger")
    with far(tmp_path, exact=table) as found:
        remote = found.remote("exact")
        assert remote.declaration is None
        declared = remote.declare_exactly([ILL, total("visits")], [ILL])
        assert remote.declaration == table.declaration == declared.menu
        assert str(declared) == table.ledger.declaration.terms
        with pytest.raises(UnsafeExactly):
            remote.declare_exactly([ILL])
        assert remote.ask_exactly([ILL])[0].value == table.ask_exactly([ILL])[0].value
