"""Iceberg and Delta by name: what Spark is asked for, without their packages.

A stand-in for a session writes down every call. That Spark's reader then does as its documents say
is not shown here.
"""

from __future__ import annotations

from typing import Any

import pytest

from sulq.errors import InvalidQuery
from sulq.kernel.engines.spark.session import read_address
from sulq.kernel.engines.spark.source import _rows, look, source_of
from sulq.kernel.schema.columns import Number, Schema


class Frame:
    """What a call gives back: one row of facts, or a table with one column."""

    def __init__(self, facts: list[Any]) -> None:
        self._facts = facts

    def where(self, _: str) -> Frame:
        return self

    def collect(self) -> list[Any]:
        return self._facts

    @property
    def schema(self) -> Any:
        kind = type("Kind", (), {"simpleString": lambda self: "double"})()
        column = type("Column", (), {"name": "age", "dataType": kind})()
        return type("Schema", (), {"fields": [column]})()


class Reader:
    def __init__(self, asked: list[str], facts: list[Any], words: str = "") -> None:
        self.asked, self.facts, self.words = asked, facts, words

    def format(self, name: str) -> Reader:
        return Reader(self.asked, self.facts, f"format {name}")

    def option(self, name: str, value: str) -> Reader:
        return Reader(self.asked, self.facts, f"{self.words}, {name} = {value}")

    def load(self, path: str) -> Frame:
        self.asked.append(f"{self.words}: {path}")
        return Frame(self.facts)


class Session:
    def __init__(self, provider: str = "", **facts: int) -> None:
        self.asked: list[str] = []
        self._described = [("Provider", provider), ("Type", "MANAGED")]
        self._facts = [facts]

    @property
    def read(self) -> Reader:
        return Reader(self.asked, self._facts)

    def sql(self, text: str) -> Frame:
        self.asked.append(text)
        return Frame(self._described if text.startswith("DESCRIBE TABLE") else self._facts)


SCHEMA = Schema(Number("age", 0, 120))


def asked(address: str, **facts: Any) -> list[str]:
    session: Any = Session(**facts)
    source = source_of(session, read_address(address), SCHEMA)
    assert source.still(session)
    return list(dict.fromkeys(session.asked))


def test_a_path_is_read_at_the_snapshot_of_the_opening() -> None:
    lake = "spark://h:7077?path=s3a://lake/people&format="
    assert asked(f"{lake}delta", version=7) == [
        "DESCRIBE HISTORY delta.`s3a://lake/people` LIMIT 1",
        "format delta, versionAsOf = 7: s3a://lake/people",
    ]
    assert asked(f"{lake}iceberg", snapshot_id=99) == [
        "format iceberg: s3a://lake/people#refs",
        "format iceberg, snapshot-id = 99: s3a://lake/people",
    ]


def test_so_is_a_table_of_the_catalogue() -> None:
    named = "sc://h:15002?table=lake.db.people"
    assert asked(named, provider="delta", version=7) == [
        "DESCRIBE TABLE EXTENDED `lake`.`db`.`people`",
        "DESCRIBE HISTORY `lake`.`db`.`people` LIMIT 1",
        "SELECT * FROM `lake`.`db`.`people` VERSION AS OF 7",
    ]
    assert asked(named, provider="iceberg", snapshot_id=99) == [
        "DESCRIBE TABLE EXTENDED `lake`.`db`.`people`",
        "SELECT * FROM `lake`.`db`.`people`.refs",
        "SELECT * FROM `lake`.`db`.`people` VERSION AS OF 99",
    ]
    with pytest.raises(InvalidQuery, match="cannot be told unchanged"):
        asked(named, provider="hudi")


def test_a_later_snapshot_is_another_table_and_is_not_read() -> None:
    address = read_address("spark://h:7077?path=/lake/people&format=delta")
    session: Any = Session(version=7)
    source = source_of(session, address, SCHEMA)
    later: Any = Session(version=8)
    assert not source.still(later)
    assert look(later, address, "delta") == (8,)
    _rows(later, address, "delta", source.stamp)
    assert later.asked[-1] == "format delta, versionAsOf = 7: /lake/people"
