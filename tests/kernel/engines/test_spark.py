"""The part of Spark's suite that the gate runs, in one test, so that one driver is started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.kernel.engines import test_blocks as vectors
from tests.kernel.engines import (
    test_extremes,
    test_proved,
    test_spark_programs,
    test_typed,
    vector_reference,
)
from tests.kernel.engines import test_spark_changes as changes
from tests.kernel.engines import test_tally as owner
from tests.kernel.engines.agreement import agree
from tests.kernel.engines.tables import SCHEMA, rows
from tests.spark_session import spark_url

import sulq.kernel.engines.spark.engine as engine_file
from sulq.kernel.engines import open_engine
from sulq.kernel.engines.spark.dialect import SparkDialect


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_the_same_integers_and_a_change_that_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agree(*test_spark_programs.awkward(tmp_path, 0, 40), 0, 4)
    content: Any = rows(3, 40)
    folder = test_spark_programs.parts(content, tmp_path / "wide", 2)
    monkeypatch.setattr(engine_file.SparkEngine, "most_products", 0)  # by blocks, on a worker
    engine = open_engine(spark_url(folder), SCHEMA)
    for program in vectors.programs(3, 1):
        assert engine.exact_sums(program) == vector_reference.outer_sums(program, content)
    assert engine.unchanged()
    pq.write_table(changes.people(1), folder / "more.parquet")
    assert not engine.unchanged()
    engine.close()
    (tmp_path / "tallied").mkdir()
    pq.write_table(owner.arrow(), tmp_path / "tallied" / "t.parquet")
    owner.check(owner.counted(spark_url(tmp_path / "tallied")))
    test_extremes.spark_sample(tmp_path)
    test_proved.spark_sample(monkeypatch, tmp_path)
    test_typed.walk_spark(tmp_path, 1, 2)


def test_like_never_goes_back_over_a_text() -> None:
    """Spark's own LIKE takes time n^k for k %: test_spark_programs.py runs this one."""
    sql = SparkDialect.like("c0", "%a%b_%c")
    pattern = bytes.fromhex(sql.partition("X'")[2].partition("'")[0]).decode()
    assert pattern == r"(?s)\A(?>.*?\x{61})(?>.*?\x{62}.).*\x{63}\z"
    assert " LIKE " in SparkDialect.like("c0", "%a%")  # plain search
