"""The pages about SQL say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scripts.sql_reference import PAGE, page
from tests.sql.small_table import LOOKUPS, SCHEMA, rows

from sulq import Database, InvalidQuery, Promise

REFUSED = Path(__file__).parents[2] / "docs" / "guides" / "refused.md"
EXAMPLES = re.findall(
    r"^\| `(.+?)` \| .+? \| `(.+?)` \|$", REFUSED.read_text("utf-8"), re.MULTILINE
)


def test_reference_is_written_from_the_tables():
    assert PAGE.read_text("utf-8") == page(), "run scripts/sql_reference.py"


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SULQ_STATE", str(tmp_path_factory.mktemp("reference")))
        promise = Promise(epsilon=1, delta=1e-6, queries=1000)
        with Database.open(rows(), SCHEMA, promise, ":memory:") as database:
            yield database


def test_there_are_examples():
    assert len(EXAMPLES) >= 20


@pytest.mark.parametrize(("refused", "answered"), EXAMPLES)
def test_examples_of_refusals(refused, answered, database):
    with pytest.raises(InvalidQuery):
        database.quote_sql(refused, lookups=LOOKUPS)
    assert database.quote_sql(answered, lookups=LOOKUPS).affordable
