"""A quote's bar is for the sizes that its asker was told, else it is a span; nothing is charged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sulq import BudgetSpent, Category, Database, Flag, Number, Promise, Schema, col, count, mean
from sulq.answers.sizes import FEWER, all_match

SCHEMA = Schema(
    Number("age", 0, 100, step=1), Category("region", ["North", "Coast"]), Flag("smoker")
)
N = 40_000
OLD = "SELECT AVG(age) AS a FROM people WHERE age >= 75"
BY_REGION = "SELECT region, AVG(age) AS a FROM people WHERE smoker GROUP BY region"


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Database]:
    at = np.arange(N)
    region = np.where(at % 4 == 0, "North", "Coast")
    rows = pd.DataFrame({"age": at % 100, "region": region, "smoker": at % 2 == 0})
    promise = Promise(epsilon=1, delta="1e-6", credits=200)
    with Database.open(rows, SCHEMA, promise, ":memory:", name="people") as found:
        found.grant("ann", 40)
        found.grant("bob", 40)
        yield found


def test_without_a_size_the_bar_is_a_span(table: Database) -> None:
    found = table.as_analyst("ann").quote_sql(OLD)
    ((name, narrow, wide),) = found.spans
    assert name == "a" and wide == pytest.approx(FEWER * narrow) and not found.sizes.known
    assert f"+-{wide:,.4g} if one in 5 does" in found.assumes and "count them first" in found.note
    assert f"a: +-{narrow:,.4g} to {wide:,.4g}" in found.explain()
    quoted = table.quote(mean("age", where=col("age") >= 75))
    assert quoted.span()[1] == pytest.approx(FEWER * quoted.span()[0])
    assert " to " in repr(quoted) and "if one in 5 does" in quoted.note


def test_where_everybody_matches_there_is_one_bar(table: Database) -> None:
    found = table.quote_sql("SELECT AVG(age) AS a FROM people")
    assert found.spans[0][1] == found.spans[0][2] and "all 40,000 rows match" in found.note
    assert table.quote(mean("age")).span()[0] == table.quote(mean("age")).span()[1]
    assert table.quote_sql("SELECT COUNT(*) FROM people WHERE smoker").spans == ()


def test_a_size_is_taken_from_what_the_asker_was_told(table: Database, quiet: None) -> None:
    ann, bob = table.as_analyst("ann"), table.as_analyst("bob")
    before = ann.quote_sql(OLD).spans
    told = ann.ask(count(where=col("age") >= 75))
    head, left = table.ledger.head, ann.remaining
    found = ann.quote_sql(OLD)
    assert found.sizes.least == told.value == N // 4
    assert found.sizes.receipts == (told.receipt.body["seq"],)
    assert found.half_widths[0][1] == pytest.approx(4 * before[0][1])
    assert f"by stored answer #{told.receipt.body['seq']:04d}" in found.note
    assert ann.quote(mean("age", where=col("age") >= 75)).sizes == found.sizes
    assert (table.ledger.head, ann.remaining) == (head, left)  # nothing written, nothing spent
    assert bob.quote_sql(OLD).spans == before  # a colleague's answer is not bob's


def test_groups_have_the_smallest_and_the_largest_size(table: Database, quiet: None) -> None:
    ann = table.as_analyst("ann")
    ann.sql("SELECT region, COUNT(*) FROM people WHERE smoker GROUP BY region")
    found = ann.quote_sql(BY_REGION)
    assert (found.sizes.least, found.sizes.most) == (N // 4, N // 4)
    ((_, narrow, wide),) = found.spans
    answered = ann.sql(BY_REGION)
    for row in answered.rows[:2]:
        low, high = row[1].interval(0.95)
        assert (high - low) / 2 == pytest.approx(wide, rel=0.3)
    assert narrow == wide == found.half_widths[0][1]


def test_a_group_that_is_too_small_to_tell_is_no_size(table: Database, quiet: None) -> None:
    ann = table.as_analyst("ann")
    ann.ask(count(where=(col("age") == 97) & col("smoker")))
    assert not ann.quote_sql(
        "SELECT AVG(age) AS a FROM people WHERE age = 97 AND smoker"
    ).sizes.known


def test_what_is_known_is_however_exact(table: Database, quiet: None) -> None:
    ann = table.as_analyst("ann")
    assert ann.known(count(where=col("smoker"))) is None
    ann.ask(count(where=col("smoker")), credits=0.25)
    known = ann.known(count(where=col("smoker")))
    assert known is not None and known.value == N // 2 and known.credits == 0
    assert ann.quote(count(where=col("smoker"))).credits > 0  # a sharper one still costs


def test_too_little_left_says_what_it_would_buy(table: Database) -> None:
    table.grant("eve", 2)
    eve = table.as_analyst("eve")
    with pytest.raises(BudgetSpent, match=r"What is left would buy \+-\d"):
        eve.ask(count(where=col("smoker")), credits=5)
    with pytest.raises(BudgetSpent, match=r"would buy n \+-[\d.]+, a \+-[\d.]+ to [\d.]+ at 95 %"):
        eve.sql(
            "SELECT COUNT(*) AS n, AVG(age) AS a, MEDIAN(age) FROM people WHERE smoker", credits=9
        )
    assert eve.remaining == 2


def test_missing_values_do_not_make_a_selection() -> None:
    assert all_match(mean("age").query.rows)
    assert not all_match(mean("age", where=col("smoker")).query.rows)
