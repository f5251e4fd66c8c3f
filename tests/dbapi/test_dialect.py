"""The SQLAlchemy dialect against a real server: engines, reflection, parameters, pandas."""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from urllib.parse import quote

import pandas as pd
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import registry
from tests.client.conftest import Far, far

from sulq import Category, Database, Flag, Number, Promise, Schema
from sulq.dbapi.dialect import type_of

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))[
    "project"
]
for name, place in PROJECT["entry-points"]["sqlalchemy.dialects"].items():
    registry.register(name, *place.split(":"))
BY_CITY = "SELECT city, COUNT(*) AS n FROM people WHERE age > 52 GROUP BY city"


@contextmanager
def engine(there: Far, more: str = "", table: str = "people") -> Iterator[sa.Engine]:
    token, host = there.tokens["analyst"], there.url.removeprefix("http://")
    made = sa.create_engine(f"sulq+http://:{quote(token)}@{host}/{table}{more}")
    yield made
    made.dispose()


def left(there: Far) -> Fraction:
    return there.databases["people"].left_for("analyst")


def test_pandas_reads_through_an_engine_and_a_refresh_is_free(there):
    before = left(there)
    with (
        engine(there) as made,
        pytest.raises(pd.errors.DatabaseError, match="this connection spends none"),
    ):
        pd.read_sql(BY_CITY, made)
    with engine(there, "?credits=2&purpose=board&intervals=true") as made:
        frame = pd.read_sql(BY_CITY, made)
    assert list(frame.columns) == ["city", "n", "n_low", "n_high"] and len(frame) >= 2
    assert left(there) == before - 1
    with engine(there) as made:
        assert pd.read_sql(BY_CITY, made).n.equals(frame.n) and left(there) == before - 1


def test_the_public_schema_is_reflected(there):
    with engine(there) as made:
        found = sa.inspect(made)
        assert found.get_table_names() == ["people"] and found.has_table("people")
        assert not found.has_table("other") and found.get_foreign_keys("people") == []
        people = sa.Table("people", sa.MetaData(), autoload_with=made)
        kinds = {column.name: type(column.type) for column in people.columns}
        assert kinds == {
            "age": sa.Integer,
            "income": sa.Float,
            "smoker": sa.Boolean,
            "city": sa.String,
            "blood": sa.String,
        }  # and no column that was not declared
        with pytest.raises(sa.exc.NoSuchTableError):
            sa.Table("other", sa.MetaData(), autoload_with=made)


def test_statements_are_built_with_parameters(there):
    with engine(there, "?credits=9&purpose=built") as made:
        people = sa.Table("people", sa.MetaData(), autoload_with=made)
        asked = (
            sa.select(people.c.city, sa.func.count().label("n"))
            .where(people.c.age > 44, people.c.smoker.is_(True))
            .group_by(people.c.city)
            .order_by(people.c.city)
            .limit(1)
        )
        with made.connect() as connection:
            (row,) = connection.execute(asked).all()
            assert row.city == "Oslo" and row.n >= 0
            text = "SELECT COUNT(*) AS n FROM people WHERE age > :age AND city = :city"
            told = connection.execute(sa.text(text), {"age": 30, "city": "Oslo"}).scalar_one()
            again = connection.execute(sa.text(text), {"age": 30, "city": "Oslo"}).scalar_one()
            assert told == again
            with pytest.raises(sa.exc.ProgrammingError):
                connection.execute(sa.text("INSERT INTO people VALUES (1)"))
            connection.rollback()  # and warns of nothing: pools do it all the time


def test_days_and_times_come_as_such(tmp_path, monkeypatch):
    monkeypatch.setenv("SULQ_STATE", str(tmp_path / "state"))
    schema = Schema(
        Number("born", datetime.date(2024, 1, 1), datetime.date(2024, 1, 3)),
        Category("level", [1, 2], public=True),
    )
    rows = {"born": [datetime.date(2024, 1, 2)] * 50, "level": [1, 2] * 25}
    database = Database.open(
        pd.DataFrame(rows), schema, Promise(1, "1e-6", 50), ":memory:", name="visits"
    )
    database.grant("analyst", 20)
    with (
        far(tmp_path, visits=database) as found,
        engine(found, "?credits=5&purpose=days", "visits") as made,
    ):
        visits = sa.Table("visits", sa.MetaData(), autoload_with=made)
        assert isinstance(visits.c.born.type, sa.Date)
        assert isinstance(visits.c.level.type, sa.Integer)
        asked = sa.select(visits.c.born, sa.func.count()).group_by(visits.c.born)
        with made.connect() as connection:
            days = [day for day, _ in connection.execute(asked)]
            text = "SELECT born, COUNT(*) AS n FROM visits GROUP BY born"
            plain = connection.execute(sa.text(text))
            kinds = [code for _, code, *_ in plain.cursor.description]
            assert kinds == ["date", "int"] and plain.all()[0].born == datetime.date(2024, 1, 1)
        assert days[:3] == [datetime.date(2024, 1, day) for day in (1, 2, 3)]
    moment = Number("seen", datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 2))
    assert isinstance(type_of(moment), sa.DateTime) and isinstance(type_of(Flag("f")), sa.Boolean)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("sulq://", "want sulq://host/table"),
        ("sulq://host", "want sulq://host/table"),
        ("sulq://host/people?credits=many", "want a number"),
        ("sulq://host/people?intervals=perhaps", "want true or false"),
        ("sulq://host/people?colour=red", "there are credits, purpose"),
    ],
)
def test_a_wrong_address_is_explained(address, said):
    with pytest.raises(sa.exc.ArgumentError, match=said):
        sa.create_engine(address).connect()
