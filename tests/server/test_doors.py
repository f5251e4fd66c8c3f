"""What holds at every door: HTTP in each format, DB-API, SQLAlchemy, PostgreSQL's protocol.

A door is a way to send a statement and to get rows back or an error. Roles, prices, purposes and
answers are the server's, so each test here runs at every door.
"""

from __future__ import annotations

import csv
import io
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import psycopg
import pyarrow as pa
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import registry
from tests.server.conftest import new_key
from tests.server.postgres.conftest import Door, opened
from tests.waiting import LONGEST

from sulq import dbapi
from sulq.server.auth.rate_limit import Rate
from sulq.server.auth.tokens import Role
from sulq.server.routes.questions import ARROW, CSV, JSON
from sulq.server.service.catalog import id_of

Rows = list[tuple[Any, ...]]
registry.register("sulq.http", "sulq.dbapi.dialect", "SulqHttpDialect")


class Turned(Exception):
    """A statement that a door did not answer; the text says why."""


def http(media: str, read: Callable[[bytes], Rows]) -> Callable[..., Rows]:
    def ask(door: Door, token: str, text: str, purpose: str = "", credits: int = 0) -> Rows:
        terms: dict[str, Any] = {"purpose": purpose, "purpose_credits": credits}
        reply = httpx.post(
            f"{door.url}/v1/tables/people/sql",
            headers={
                "Authorization": f"Bearer {token}",
                "Idempotency-Key": new_key(),
                "Accept": media,
            },
            json={"sql": text} | (terms if purpose else {"max_credits": 0}),
            timeout=LONGEST,
        )
        if reply.status_code != 200:
            raise Turned(reply.text)
        return read(reply.content)

    return ask


def from_json(content: bytes) -> Rows:
    rows = httpx.Response(200, content=content).json()["rows"]
    return [tuple(c["value"] if isinstance(c, dict) else c for c in row) for row in rows]


def from_csv(content: bytes) -> Rows:
    rows = list(csv.DictReader(io.StringIO(content.decode(), newline="")))
    return [(row["blood"] or None, float(row["n"])) for row in rows]


def from_arrow(content: bytes) -> Rows:
    table = pa.ipc.open_stream(content).read_all()
    return list(zip(table["blood"].to_pylist(), table["n"].to_pylist(), strict=True))


def through_dbapi(door: Door, token: str, text: str, purpose: str = "", credits: int = 0) -> Rows:
    terms: dict[str, Any] = {"purpose": purpose, "credits": credits} if purpose else {}
    try:
        with dbapi.connect(f"{door.url}/people", token=token, **terms) as connection:
            return connection.cursor().execute(text).fetchall()
    except dbapi.Error as error:
        raise Turned(str(error)) from error


def through_sqlalchemy(
    door: Door, token: str, text: str, purpose: str = "", credits: int = 0
) -> Rows:
    where = door.url.replace("http://", f"sulq+http://:{token}@") + "/people"
    engine = sa.create_engine(f"{where}?purpose={purpose}&credits={credits}" if purpose else where)
    try:
        with engine.connect() as connection:
            return [tuple(row) for row in connection.execute(sa.text(text))]
    except (sa.exc.SQLAlchemyError, dbapi.Error) as error:
        raise Turned(str(error)) from error
    finally:
        engine.dispose()


def through_wire(door: Door, token: str, text: str, purpose: str = "", credits: int = 0) -> Rows:
    options = f"-c sulq.purpose={purpose} -c sulq.credits={credits}" if purpose else ""
    try:
        with psycopg.connect(**door.given() | {"password": token, "options": options}) as line:
            return line.execute(text.encode()).fetchall()
    except psycopg.Error as error:
        raise Turned(str(error)) from error


DOORS: dict[str, Callable[..., Rows]] = {
    "json": http(JSON, from_json),
    "csv": http(CSV, from_csv),
    "arrow": http(ARROW, from_arrow),
    "dbapi": through_dbapi,
    "sqlalchemy": through_sqlalchemy,
    "wire": through_wire,
}
each_door = pytest.mark.parametrize("name", DOORS)


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with pytest.MonkeyPatch.context() as patch:
        path = tmp_path_factory.mktemp("doors")
        patch.setenv("SULQ_STATE", str(path / "state"))
        patch.delenv("SULQ_TOKEN", raising=False)
        with opened(path) as found:
            found.database.grant("rival", 20)
            found.tokens["rival"] = found.access.lend("rival", Role.ANALYST)
            yield found


def older(age: int) -> str:
    return f"SELECT blood, COUNT(*) AS n FROM people WHERE age > {age} GROUP BY blood"


_ages = iter(range(1, 120))


def fresh() -> str:
    """A statement that nobody has asked."""
    return older(next(_ages))


@each_door
def test_only_who_may_ask_a_table_is_let_in(door: Door, name: str) -> None:
    ask, text, before = DOORS[name], fresh(), door.left
    tables = {id_of(door.database): "people"}
    spent = {
        "nobody": "nobody",
        "made up": "sulq_" + "x" * 43,
        "revoked": door.access.issue("gone", Role.ANALYST, tables),
        "another table": door.access.issue("narrow", Role.ANALYST, {"elsewhere": "people"}),
        "auditor": door.tokens["auditor"],
        "monitor": door.tokens["monitor"],
    }
    door.access.revoke("gone")
    for who, token in spent.items():
        with pytest.raises(Turned) as refusal:
            ask(door, token, text, "mine", 9)
        assert "credits were charged" not in str(refusal.value), who
        assert token not in str(refusal.value) or token == "nobody", who
    assert door.left == before
    asked = DOORS[name](door, door.tokens["analyst"], text, "mine", 900)
    assert len(asked) == 4 and door.left == before - 2


@each_door
def test_nothing_is_spent_unless_a_purpose_is_named(door: Door, name: str) -> None:
    ask, text, before = DOORS[name], fresh(), door.left
    analyst, rival = door.tokens["analyst"], door.tokens["rival"]
    with pytest.raises(Turned, match="2 credits"):
        ask(door, analyst, text)
    assert door.left == before
    told = ask(door, analyst, text, "board", 900)
    assert door.left == before - 2
    assert [ask(door, analyst, text) for _ in range(2)] == [told, told]  # a refresh
    with pytest.raises(Turned, match="2 credits"):
        ask(door, rival, text)  # told to somebody else
    assert door.left == before - 2 and door.database.left_for("rival") == 20


@each_door
def test_an_answer_is_the_same_at_every_door(door: Door, name: str) -> None:
    text, before = fresh(), door.left
    told = DOORS[name](door, door.tokens["analyst"], text, "same", 900)
    for other, ask in DOORS.items():
        assert ask(door, door.tokens["analyst"], text) == told, other
    assert door.left == before - 2


def test_a_purpose_is_one_at_all_doors(door: Door) -> None:
    before, token = door.left, door.tokens["analyst"]
    for spent, ask in enumerate(DOORS.values(), 1):
        ask(door, token, fresh(), "one", 2 * spent)
        assert door.left == before - 2 * spent
        for other in DOORS.values():
            with pytest.raises(Turned, match=f"has spent {2 * spent} of its {2 * spent}"):
                other(door, token, fresh(), "one", 2 * spent)
    assert door.left == before - 2 * len(DOORS)


@each_door
def test_what_is_asked_at_once_is_charged_once(door: Door, name: str) -> None:
    ask, text, before = DOORS[name], fresh(), door.left
    together = threading.Barrier(6)

    def one(_: int) -> Rows:
        together.wait(LONGEST)
        return ask(door, door.tokens["analyst"], text, "crowd", 900)

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(one, range(6)))
    assert all(rows == found[0] for rows in found) and door.left == before - 2


@each_door
def test_what_is_refused_costs_nothing_and_tells_no_row(door: Door, name: str) -> None:
    before, token = door.left, door.tokens["analyst"]
    for text in (
        "SELECT nope, COUNT(*) AS n FROM people GROUP BY nope",
        "SELECT secret AS blood, COUNT(*) AS n FROM people GROUP BY secret",  # a hidden column
        "SELECT COUNT(*) AS n FROM elsewhere",
        "DROP TABLE people",
        "SELECT blood FROM people WHERE",
        "SELECT 1 / 0 AS n FROM people, people p",
        "SELECT EXISTS (SELECT 1 FROM people WHERE age = 33)",
    ):
        with pytest.raises(Turned) as refusal:
            DOORS[name](door, token, text, "refused", 900)
        assert "were charged" not in str(refusal.value).replace("nothing was charged", ""), text
    assert door.left == before


@each_door
def test_a_token_asks_only_as_often_as_it_may(door: Door, name: str) -> None:
    tables = {id_of(door.database): "people"}
    token = door.access.issue(f"slow-{name}", Role.ANALYST, tables, rate=Rate(4, "day"))
    said: list[str] = []
    for _ in range(5):
        with pytest.raises(Turned) as refusal:
            DOORS[name](door, token, older(0))
        said.append(str(refusal.value))
    assert "4 requests per day" not in said[0] and "4 requests per day" in said[-1]
