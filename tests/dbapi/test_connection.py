"""DB-API 2.0 against a real server: what tools read, what they may spend, what they are told."""

from __future__ import annotations

import datetime
from fractions import Fraction
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.client.conftest import Far

from sulq import dbapi
from sulq.dbapi import OperationalError, ProgrammingError

BY_CITY = "SELECT city, COUNT(*) AS n FROM people WHERE age > 60 GROUP BY city"


def connect(there: Far, **terms: Any) -> dbapi.Connection:
    return dbapi.connect(f"{there.url}/people", token=there.tokens["analyst"], **terms)


def left(there: Far) -> Fraction:
    return there.databases["people"].left_for("analyst")


def test_pandas_and_polars_read_and_a_refresh_is_free(there):
    before = left(there)
    with connect(there, credits=1, purpose="first look") as connection:
        with pytest.warns(UserWarning, match="pandas only supports"):
            frame = pd.read_sql(BY_CITY, connection)
        assert list(frame.columns) == ["city", "n"] and list(frame.city[:2]) == ["Oslo", "Paris"]
        assert left(there) == before - 1
    with connect(there) as connection:  # spends nothing
        with pytest.warns(UserWarning, match="pandas only supports"):
            assert pd.read_sql(BY_CITY, connection).equals(frame)
        again = pl.read_database(BY_CITY, connection)
        assert again["n"].to_list() == frame.n.to_list()
        assert again.columns == ["city", "n"] and again["n"].dtype.is_numeric()
    assert left(there) == before - 1


def test_a_connection_spends_nothing_unless_it_is_told_so(there):
    asked = "SELECT COUNT(*) FROM people WHERE smoker AND age > 33"
    before = left(there)
    with connect(there) as connection:
        cursor = connection.cursor()
        with pytest.raises(OperationalError, match=r"costs 1 credits.*spends none") as refusal:
            cursor.execute(asked)
        assert refusal.value.credits_spent == 0 and left(there) == before
        assert cursor.execute("SELECT city, COUNT(*) FROM people GROUP BY city").credits == 0
        assert len(cursor.execute(f"EXPLAIN {asked}").fetchall()) > 1
    for terms in ({"credits": 3}, {"purpose": "dashboard"}):
        with pytest.raises(dbapi.InterfaceError, match="both or neither"):
            connect(there, **terms)
    assert left(there) == before


def test_reconnecting_does_not_fill_a_purpose_up(there):
    answered = 0
    for age in range(70, 75):
        with connect(there, credits=2, purpose="pool") as connection:
            asked = f"SELECT COUNT(*) FROM people WHERE age > {age}"
            try:
                answered += connection.cursor().execute(asked).rowcount
            except OperationalError as error:
                assert "'pool' has spent 2 of its 2" in str(error)
    assert answered == 2


def test_a_cursor_hands_out_rows_with_names_types_and_intervals(there):
    with connect(there, credits=9, purpose="rows", intervals=True) as connection:
        cursor = connection.cursor()
        with pytest.raises(dbapi.InterfaceError, match="execute a SELECT first"):
            cursor.fetchall()
        cursor.execute("SELECT blood, AVG(income) AS m FROM people GROUP BY blood")
        names, codes, *_ = zip(*cursor.description, strict=True)
        assert names == ("blood", "m", "m_low", "m_high") and cursor.rowcount == 4
        assert codes[0] == dbapi.STRING and codes[1] == dbapi.NUMBER != codes[0]
        first = cursor.fetchone()
        assert first[0] == "A" and first[2] <= first[1] <= first[3]
        assert len(cursor.fetchmany()) == 1 and len(list(cursor)) == 2
        assert cursor.fetchone() is None and cursor.fetchall() == []
        assert cursor.credits > 0 and isinstance(cursor.notes, tuple)
        with pytest.warns(dbapi.Warning, match="credits were charged.* stand"):
            connection.rollback()
        connection.commit()
        connection.rollback()  # nothing was charged since
        with pytest.raises(dbapi.NotSupportedError, match="GROUP BY"):
            cursor.executemany("SELECT COUNT(*) FROM people WHERE age > ?", [(1,), (2,)])
    with pytest.raises(dbapi.InterfaceError, match="closed"):
        cursor.execute(BY_CITY)


def test_refusals_have_the_names_of_pep_249_and_cost_nothing(there):
    before = left(there)
    with connect(there, credits=5, purpose="faults") as connection:
        cursor = connection.cursor()
        for text in ("SELECT wealth FROM people", "SELECT * FROM people", "DROP TABLE people", ""):
            with pytest.raises(ProgrammingError) as refusal:
                cursor.execute(text)
            assert refusal.value.credits_spent == 0 and refusal.value.__cause__ is not None
        with pytest.raises(dbapi.DataError, match="type set"):
            cursor.execute("SELECT COUNT(*) FROM people WHERE age > ?", [{1}])
        with pytest.raises(ProgrammingError, match="got int"):
            cursor.execute("SELECT COUNT(*) FROM people WHERE age > ?", 7)
    with pytest.raises(OperationalError, match="token"):
        dbapi.connect(f"{there.url}/people", token="s" * 40)
    assert left(there) == before
    tree = (dbapi.DataError, OperationalError, dbapi.IntegrityError, ProgrammingError)
    assert all(issubclass(kind, dbapi.DatabaseError) for kind in tree)
    assert issubclass(dbapi.DatabaseError, dbapi.Error) and connection.Error is dbapi.Error
    assert (dbapi.apilevel, dbapi.paramstyle) == ("2.0", "qmark")
    assert dbapi.TimeFromTicks(0) == datetime.datetime.fromtimestamp(0).time()


def test_parameters_are_values_and_never_text_of_the_statement(there):
    with connect(there, credits=5, purpose="parameters") as connection:
        cursor = connection.cursor()
        told = cursor.execute(BY_CITY.replace("60", "61")).fetchall()
        asked = BY_CITY.replace("60", "?")
        assert cursor.execute(asked, (61,)).fetchall() == told and cursor.credits == 0
        with pytest.raises(ProgrammingError):
            cursor.execute(asked, ("61 OR 1 = 1",))


def test_a_result_is_an_arrow_stream(there):
    with there.remote(who="analyst") as remote:
        result = remote.sql("SELECT city, COUNT(*) AS n FROM people GROUP BY city")
        assert pa.table(result).equals(result.to_arrow())
        assert pl.DataFrame(result).columns == ["city", "n", "n_low", "n_high"]
