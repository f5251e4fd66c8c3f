"""parse_sql: the questions behind a SELECT, without a table to ask them of."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from sulq.errors import InvalidQuery
from sulq.query.statistics import Statistic, as_statistic
from sulq.schema.columns import Schema


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
    from sulq.sql.planning import plan_of  # the parser is loaded when it is needed
    from sulq.sql.statements import read_statement

    if not isinstance(schema, Schema):
        raise InvalidQuery(f"parse_sql takes a statement and a Schema, got {type(schema).__name__}")
    select = read_statement(text, schema, table, lookups)
    plan = plan_of(select, schema, size, lambda question: Fraction(1))
    return [as_statistic(question) for question in plan.questions]
