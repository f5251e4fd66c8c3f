"""The dialects a statement may be written in, and what the same word means in each.

sqlglot reads the words. The house dialect is PostgreSQL that also takes spellings of other engines
which mean nothing else in PostgreSQL: names in backticks or brackets, TOP n, x // y, x == y.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot import TokenType
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.postgres import Postgres

from sulq.errors import InvalidQuery, Reason

HOUSE = "postgres"
NAMES: dict[str, str] = {
    "postgres": HOUSE,
    "postgresql": HOUSE,
    "snowflake": "snowflake",
    "bigquery": "bigquery",
    "duckdb": "duckdb",
    "mysql": "mysql",
    "tsql": "tsql",
    "t-sql": "tsql",
    "sqlserver": "tsql",
    "spark": "spark",
    "databricks": "spark",
}
"""What `dialect=` may say, and the dialect meant."""

DIALECTS = tuple(dict.fromkeys(NAMES.values()))


class House(Postgres):
    """PostgreSQL, with spellings of other engines that it gives no meaning of its own."""

    class Tokenizer(Postgres.Tokenizer):
        IDENTIFIERS: ClassVar = ['"', "`", ("[", "]")]
        KEYWORDS: ClassVar = {
            **Postgres.Tokenizer.KEYWORDS,
            "TOP": TokenType.TOP,
            "//": TokenType.DIV,
            "==": TokenType.EQ,
        }


_READERS: dict[str, Dialect] = {}


def named(dialect: str | None) -> str:
    """The dialect that a caller's word means; PostgreSQL where none is said."""
    if dialect is None:
        return HOUSE
    found = NAMES.get(dialect.casefold()) if isinstance(dialect, str) else None
    if found is None:
        raise InvalidQuery(
            f"no dialect {dialect!r:.40}; there are {', '.join(DIALECTS)}",
            reason=Reason.WRONG_FORM,
        )
    return found


def reader(dialect: str | None) -> Dialect:
    """sqlglot's reader of a dialect."""
    name = named(dialect)
    if name not in _READERS:
        _READERS[name] = House() if name == HOUSE else Dialect.get_or_raise(name)
    return _READERS[name]


SUNDAY_IS_ONE = ("bigquery", "mysql", "tsql", "spark")
"""Where DAYOFWEEK and DATEPART(weekday) count from 1 on Sunday; elsewhere from 0."""

WEEKS_FROM_SUNDAY = ("tsql",)
"""Where DATETRUNC(week) starts on Sunday; BigQuery says so itself."""
