"""A balance for every person of a PostgreSQL table: what the same rows in memory give, exactly."""

from __future__ import annotations

import datetime as dt
import random
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from tests.database import test_individual as own
from tests.database.test_individual import silent  # noqa: F401 - a fixture
from tests.kernel.engines import tables
from tests.kernel.engines.postgres_tables import AWKWARD, fill, run, storable
from tests.kernel.engines.test_row_values import row_by_row, together
from tests.people import publish

from sulq import Category, Flag, Number, Refused, Schema, col, count
from sulq.kernel.engines.rows import open_numbered
from sulq.kernel.schema import program as b

TYPES = {"who": "text", "x": "float8", "f": "boolean", "c": "text"}


@pytest.mark.parametrize("seed", range(2))
def test_random_programs_row_by_row(seed, postgres):
    content = storable(tables.rows(seed, 40))
    url = fill(postgres, "numbered", AWKWARD, content)
    row_by_row(open_numbered(url, tables.SCHEMA, threads=1), content, seed, 30)


def drawn_rows(draw, number):
    return [
        {
            "who": draw.choice("pqr"),
            "x": draw.choice([None, -4.0, -1.0, 0.0, 2.0, 3.0]),
            "f": draw.choice([None, True, False]),
            "c": draw.choice([None, "a", "b", "z", ""]),
        }
        for _ in range(number)
    ]


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("by_person", [False, True])
def test_sums_and_balances_are_those_of_the_rows_in_memory(by_person, postgres):
    """Past the end of balances: who takes part shows in the sums."""
    draw = random.Random(by_person)
    rows = drawn_rows(draw, 9)
    kinds = {"who": "string", "x": "float64", "f": "boolean", "c": "string"}
    here = pd.DataFrame(rows).astype(kinds)
    schema = own.SMALL if by_person else Schema(*own.SMALL.columns)
    there = fill(postgres, "people", TYPES, rows)
    asked = [(q, Fraction(draw.choice(["1", "1.9"]))) for q in own.QUESTIONS]
    found = []
    for source in (here, there):
        with publish(source, schema, own.PROMISE, individual=True) as db:
            for question, credits in asked:
                db.ask(question, credits=credits)
            spent, cap = db.engine.join(db.ledger).spent(db.ledger)
            found.append(([entry.values for entry in db.ledger.entries()], spent.tolist(), cap))
    assert found[0] == found[1]
    assert max(found[0][1]) > 0.5 * found[0][2]  # near the end, of half of what was asked


def test_dates_times_and_uuids(postgres):
    days = Number("day", dt.date(1900, 1, 1), dt.date(2100, 1, 1))
    times = Number("at", dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1))
    schema = Schema(days, times, Flag("f"), unit="who", max_rows=2)
    moments = ["1969-12-31 23:59:59.5", "2000-01-01", "infinity", "-infinity", None, "2024-02-29"]
    rows = [
        {"day": at and at[:10], "at": at, "f": i % 3, "who": f"{i % 4:032x}"}
        for i, at in enumerate(moments * 3)
    ]
    rows = [dict(row, day=row["at"] if "inf" in str(row["at"]) else row["day"]) for row in rows]
    types = {"day": "date", "at": "timestamptz", "f": "smallint", "who": "uuid"}
    numbered = open_numbered(fill(postgres, "dated", types, rows), schema)
    assert numbered.persons == 4
    low, high = (float(end) for end in days.range)
    first, last = (float(end) for end in times.range)
    terms = (b.Quantised("day", low, high, 1.0), b.Quantised("at", first, last, 4.0), b.Fixed(1))
    program = b.RowSums(b.Always(), terms, (b.FlagCells("f", other=True),))
    values = numbered.prepare(program)()
    assert together(values) == numbered.engine.exact_sums(program)
    assert any(together(values))
    assert len(np.unique(numbered.identities("key"))) == 4
    numbered.engine.close()


def test_one_column_of_nulls_and_empty_texts(postgres):
    """A row of one NULL is an empty line."""
    rows = [{"c": value} for value in (None, "", "a", None, 'say "a",\r\n', "\\.")]
    schema = Schema(Category("c", ["a", "", 'say "a",\r\n', "\\."]))
    numbered = open_numbered(fill(postgres, "one", {"c": "text"}, rows), schema)
    cells = b.CategoryCells("c", schema.columns[0].values, other=True)
    values = numbered.prepare(b.RowSums(b.Always(), (b.Fixed(1),), (cells,)))()
    assert together(values) == [1, 1, 1, 1, 2]
    numbered.engine.close()


@pytest.mark.usefixtures("silent")
def test_a_changed_table_is_refused_free_and_balances_come_back(postgres, tmp_path, monkeypatch):
    monkeypatch.setattr("sulq.kernel.engines.postgres.engine.FRESH", -1.0)
    rows = drawn_rows(random.Random(5), 12)
    url = fill(postgres, "people", TYPES, rows)
    schema = Schema(*own.SMALL.columns)

    def opened():
        return publish(url, schema, own.PROMISE, tmp_path / "ledger", individual=True)

    def spent(db):
        return db.engine.join(db.ledger).spent(db.ledger)[0].tolist()

    with opened() as db:
        db.ask(count(where=col("x") >= 0))
        before = spent(db)
        assert any(before)
    with opened() as db:
        assert spent(db) == before
        run(postgres, "CREATE TABLE IF NOT EXISTS other (v integer); INSERT INTO other VALUES (1)")
        db.ask(count(where=col("x") >= 2))
        before = spent(db)
        run(postgres, "UPDATE people SET x = 3 WHERE x = 2")
        with pytest.raises(Refused, match="changed"):
            db.ask(count(where=col("x") >= 1))
        assert spent(db) == before and len(list(db.ledger.entries())) == 2


def test_without_arrow_the_remedy_is_named(postgres, monkeypatch):
    url = fill(postgres, "people", TYPES, drawn_rows(random.Random(1), 3))
    monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    with pytest.raises(Refused, match="pip install pyarrow"):
        open_numbered(url, Schema(*own.SMALL.columns))
