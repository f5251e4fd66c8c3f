"""SQL that asks for sums: `parse_sql`, `db.sql`, and conditions and values in SQL spelling.

Names are loaded when they are first used, so that who writes no SQL needs no parser.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sulq.errors import InvalidQuery
from sulq.kernel.query.sum_query import Statistic, as_statistic
from sulq.kernel.schema.columns import Schema

if TYPE_CHECKING:
    from sulq.sql.parse.row_expr import parse_condition, parse_value

__all__ = ["parse_condition", "parse_value"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'sulq.sql' has no attribute {name!r}")
    return getattr(import_module("sulq.sql.parse.row_expr"), name)


# parse_sql: the questions behind a SELECT, without a table to ask them of.


def parse_sql(
    text: str,
    schema: Schema,
    *,
    table: str | None = None,
    size: int | None = None,
    lookups: Mapping[str, Any] | None = None,
) -> list[Statistic]:
    """The sums that a statement asks, in order; `InvalidQuery` with the reason if it asks others.

    `size` is the public number of rows, where there is one. `db.sql(text)` asks them and puts the
    table together.
    """
    from sulq.sql.parse.statement import read_statement
    from sulq.sql.plan.plan import plan_of  # the parser is loaded when it is needed

    if not isinstance(schema, Schema):
        raise InvalidQuery(f"parse_sql takes a statement and a Schema, got {type(schema).__name__}")
    select = read_statement(text, schema, table, lookups)
    plan = plan_of(select, schema, size, lambda question: Fraction(1))
    return [as_statistic(question) for question in plan.questions]
