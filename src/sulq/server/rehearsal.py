"""A table to be, tried on made-up rows: same schema, same promise, nothing of the owner's file."""

from __future__ import annotations

from typing import Any

from sulq.database import Database
from sulq.dummies import dummy_rows
from sulq.errors import SulqError
from sulq.policy import TablePolicy
from sulq.schema.columns import Category, Column
from sulq.shown import bar_text, credits_word, show
from sulq.sql.estimates import Estimate

ROWS = 5_000
MOST = 10


def rehearsed(policy: TablePolicy) -> list[dict[str, Any]]:
    """Up to ten questions with price, bar and an answer that means nothing."""
    schema = policy.schema()
    rows = dummy_rows(schema, ROWS)
    lines = []
    with Database.open(rows, schema, policy.promise, ":memory:", name="rehearsal") as database:
        for title, sql in questions(schema.columns, schema.who)[:MOST]:
            try:
                lines.append(_asked(database, title, sql))
            except SulqError as error:
                lines.append({"title": title, "price": "", "bar": "", "said": str(error)})
    return lines


def questions(columns: tuple[Column, ...], who: str) -> list[tuple[str, str]]:
    """One of each column, after a count of all."""
    made = [(f"How many {who}", "SELECT COUNT(*) AS n FROM rehearsal")]
    for column in columns:
        named = '"' + column.name.replace('"', '""') + '"'
        if isinstance(column, Category):
            if column.values is None:
                continue
            grouped = f"SELECT {named}, COUNT(*) AS n FROM rehearsal GROUP BY {named}"  # noqa: S608
            made.append((f"Count by {column.name}", grouped))
        else:
            made.append((f"Average {column.name}", f"SELECT AVG({named}) AS n FROM rehearsal"))  # noqa: S608
    return made


def _asked(database: Database, title: str, sql: str) -> dict[str, Any]:
    quote = database.quote_sql(sql, table="rehearsal")
    result = database.sql(sql, table="rehearsal")
    cell = result.rows[0][-1]
    said = ""
    if isinstance(cell, Estimate):
        low, high = cell.interval(result.confidence)
        said = str(show(cell.value, max(high - cell.value, cell.value - low)))
    half = next((half for _, half in quote.half_widths), None)
    bar = "by its size" if half is None else f"± {bar_text(half)}" if half else "exact"
    return {
        "title": title,
        "price": credits_word(quote.credits) if quote.credits else "free",
        "bar": bar,
        "said": said,
    }
