"""Row by row the engine gives the reference's integers, and together the sums it gives itself."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tests.kernel.engines import programs, reference, tables

from sulq.errors import EngineFailed, Refused
from sulq.kernel.accounting.individual import summed
from sulq.kernel.engines.rows import NumberedRows, RowValues, open_numbered
from sulq.kernel.schema import program as b
from sulq.kernel.schema.columns import Number, Schema


def together(values: RowValues) -> list[int]:
    sums = [summed(term, values.cells, values.count) for term in values.terms]
    return [one for cell in zip(*sums, strict=True) for one in cell]


def row_by_row(rows, content, seed, count=50):
    """Random programs, of each row and of all together; rows in the order of the source."""
    draw, telling = random.Random(seed), 0
    for _ in range(count):
        program = programs.program(draw, tables.FACTS)
        values = rows.prepare(program)()
        assert together(values) == rows.engine.exact_sums(program), program
        terms = range(len(program.terms))
        for row, cell, *found in zip(
            values.rows.tolist(), values.cells.tolist(), *values.terms, strict=True
        ):
            alone = reference.exact_sums(program, [content[row]])
            assert [alone[cell * len(terms) + term] for term in terms] == [int(v) for v in found]
            assert all(abs(int(v)) <= most for v, most in zip(found, values.largest, strict=True))
        telling += bool(len(values.rows))
    assert telling > 0.4 * count
    rows.engine.close()


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("how", ["arrow", "parquet"])
def test_random_programs_row_by_row(seed, how, tmp_path):
    content = tables.rows(seed, 40)
    source = (
        tables.table(content) if how == "arrow" else tables.parquet(content, tmp_path / "a.parquet")
    )
    row_by_row(open_numbered(source, tables.SCHEMA, threads=1), content, seed)


def test_every_row_has_its_number_once():
    content = tables.rows(3, 200)
    rows = open_numbered(tables.table(content), tables.SCHEMA)
    values = rows.prepare(b.RowSums(b.Always(), (b.Fixed(1),)))()
    assert sorted(values.rows.tolist()) == list(range(200)) and rows.persons == 200
    assert rows.owners(values.rows) is None


def test_rows_of_a_person_share_their_number_and_the_order_shows():
    import pandas as pd

    schema = Schema(Number("x", 0, 9), unit="who", max_rows=2)
    frame = pd.DataFrame({"x": [1.0, 2, 3, 4, 5], "who": ["b", "a", "b", "c", "b"]})
    rows = open_numbered(frame, schema)
    values = rows.prepare(b.RowSums(b.Always(), (b.Fixed(1),)))()
    assert rows.persons == 3
    assert sorted(np.bincount(rows.owners(values.rows)).tolist()) == [1, 1, 2]
    plain = Schema(Number("x", 0, 9))
    orders = [open_numbered(f, plain).order() for f in (frame, frame, frame[::-1])]
    assert orders[0] == orders[1] != orders[2]


def test_addresses_are_refused_and_failures_are_mute():
    with pytest.raises(Refused, match="no other address"):
        open_numbered("spark://host/db.people", tables.SCHEMA)
    rows = open_numbered(tables.table(tables.rows(1, 5)), tables.SCHEMA)
    read = rows.prepare(b.RowSums(b.Always(), (b.Fixed(1),)))
    rows.engine.close()
    with pytest.raises(EngineFailed) as failed:
        read()
    assert failed.value.__cause__ is None and failed.value.__context__ is None
    assert isinstance(rows, NumberedRows)
