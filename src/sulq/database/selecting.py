"""`db.sql(...)`: a SELECT asked of a database. The parser is loaded when first needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sulq.database.facts import NAMELESS
from sulq.oracle import Oracle

if TYPE_CHECKING:
    from sulq.sql.result import Result
    from sulq.sql.run import SqlQuote


def ask_select(oracle: Oracle, text: str, **terms: Any) -> Result:
    """Answer a SELECT with noise: `db.sql("SELECT AVG(age) FROM people")`.

    Terms: `credits`, `confidence`, `rows`, `key`, `lookups`, `table`; docs/reference/sql.md.
    """
    from sulq.sql.run import ask_sql

    return ask_sql(oracle, text, **_named(oracle, terms))


def quote_select(oracle: Oracle, text: str, **terms: Any) -> SqlQuote:
    """Price and error bars of a SELECT; free, and no row is read."""
    from sulq.sql.run import quote_sql

    return quote_sql(oracle, text, **_named(oracle, terms))


def _named(oracle: Any, terms: dict[str, Any]) -> dict[str, Any]:
    """With the name that FROM has to say; a table that nobody named takes any."""
    name = getattr(oracle, "database", oracle).ledger.header.name
    return terms if name == NAMELESS else {"table": name, **terms}
