"""Values of one person over that person's rows of another table of a study.

`exists`, `count_of`, `sum_of` and the others are columns: wherever a column may stand, they may.
The name of such a column is its definition, in one spelling, so it is stored, priced and sent as
any other name. P.2, docs/proofs/studies.md
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, cast

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.query import canonical
from sulq.kernel.query.expressions import (
    Column,
    Expression,
    Literal,
    Operand,
    as_expression,
    column_or_expression,
)
from sulq.kernel.query.sum_query import clip_of, rows_where

COUNTED = ("exists", "count")
NUMBERS = ("sum", "mean", "min", "max")
ORDERED = ("first", "last")
NEAREST = ("latest", "earliest")
KINDS = (*COUNTED, *NUMBERS, *ORDERED, *NEAREST)
LONGEST_NAME = 20_000
MARK = '["'
"""How the name of every person value begins; no declared column of a study does."""


@dataclass(frozen=True, slots=True, eq=False)
class PersonValue:
    """One value for each person: `kind` of `value` over the person's rows of `table` in `rows`.

    `by` is the Number column that orders rows for first and last; `clip` bounds a sum. The latest
    value is up to `limit`, the earliest from it on: a value of the row where this stands, itself
    left out if `strict`.
    """

    kind: str
    table: str
    rows: Expression
    value: Expression | None = None
    by: str | None = None
    clip: tuple[Literal, Literal] | None = None
    limit: Expression | None = None
    strict: bool = False

    @property
    def name(self) -> str:
        """The definition in its one spelling."""
        form: list[Any] = [self.kind, self.table, canonical.to_json(canonical.truth(self.rows))]
        if self.value is not None:
            form.append(canonical.to_json(canonical.value(self.value)))
        if self.by is not None:
            form.append(self.by)
        if self.clip is not None:
            form += [canonical.to_json(end) for end in self.clip]
        if self.limit is not None:
            form += [canonical.to_json(canonical.value(self.limit)), self.strict]
        return json.dumps(form, ensure_ascii=False, separators=(",", ":"))


def is_person_value(name: str) -> bool:
    """Return whether a column's name is a definition."""
    return name.startswith(MARK)


def is_of_a_row(name: str) -> bool:
    """Return whether a definition also reads the row where it stands: it differs between tables."""
    return name.startswith(tuple(f'["{kind}",' for kind in NEAREST))


def read_person_value(name: str) -> PersonValue:
    """Read a definition; refuse every other spelling of it."""
    try:
        form = json.loads(name) if len(name) <= LONGEST_NAME else None
        found = _read(form)
    except (ValueError, RecursionError):
        found = None
    if found is None or found.name != name:
        raise InvalidQuery(
            f"{name:.60} is no value of a person: write exists(table, where), count_of(...),"
            " sum_of(...), mean_of(...), min_of(...), max_of(...), first_of(...) or last_of(...)",
            reason=Reason.NO_COLUMN,
        )
    return found


def _read(form: object) -> PersonValue | None:
    match form:
        case [str(kind), str(table), list(rows), *rest] if kind in KINDS:
            where = canonical.from_json(rows)
        case _:
            return None
    match kind, rest:
        case ("exists" | "count", []):
            return PersonValue(kind, table, where)
        case ("mean" | "min" | "max", [list(value)]):
            return PersonValue(kind, table, where, canonical.from_json(value))
        case ("sum", [list(value), list(low), list(high)]):
            clip = clip_of((canonical.from_json(low), canonical.from_json(high)))
            return PersonValue(kind, table, where, canonical.from_json(value), clip=clip)
        case ("first" | "last", [list(value), str(by)]):
            return PersonValue(kind, table, where, canonical.from_json(value), by)
        case ("latest" | "earliest", [list(value), list(limit), bool(strict)]):
            found = canonical.from_json(value)
            return PersonValue(
                kind, table, where, found, limit=canonical.from_json(limit), strict=strict
            )
    return None


def exists(table: str, where: Operand = None) -> Column:
    """True for a person with a row of `table` where `where` is true."""
    return _column("exists", table, where)


def count_of(table: str, where: Operand = None, *, x: Expression | str | None = None) -> Column:
    """How many rows of `table` a person has where `where` is true (and `x` is not NULL)."""
    if x is not None:
        where = rows_where(where, column_or_expression(x).is_not_null())
    return _column("count", table, where)


def sum_of(
    table: str, x: Expression | str, where: Operand = None, *, clip: tuple[object, object]
) -> Column:
    """The sum of `x` over a person's rows of `table`, cut to `clip`; NULL without such a row."""
    return _column("sum", table, where, column_or_expression(x), clip=clip_of(clip))


def mean_of(table: str, x: Expression | str, where: Operand = None) -> Column:
    """The mean of `x` over a person's rows of `table`; NULL without such a row."""
    return _column("mean", table, where, column_or_expression(x))


def min_of(table: str, x: Expression | str, where: Operand = None) -> Column:
    """The least `x` of a person's rows of `table`; NULL without such a row."""
    return _column("min", table, where, column_or_expression(x))


def max_of(table: str, x: Expression | str, where: Operand = None) -> Column:
    """The largest `x` of a person's rows of `table`; NULL without such a row."""
    return _column("max", table, where, column_or_expression(x))


def first_of(table: str, x: Expression | str, *, by: str, where: Operand = None) -> Column:
    """`x` in the first of a person's rows of `table`, by the Number `by`; rows without it come
    last."""
    return _column("first", table, where, column_or_expression(x), by)


def last_of(table: str, x: Expression | str, *, by: str, where: Operand = None) -> Column:
    """`x` in the last of a person's rows of `table`, by the Number `by`; rows without it come last
    of all and are not taken while there is another."""
    return _column("last", table, where, column_or_expression(x), by)


def latest_of(
    table: str,
    x: Expression | str,
    *,
    upto: Expression | str | None = None,
    before: Expression | str | None = None,
    where: Operand = None,
) -> Column:
    """The largest `x` of a person's rows of `table` up to a value of the row where this stands, or
    `before` it: of a visit, the day of the last prescription before it. NULL where there is none.
    """
    return _nearest("latest", table, x, where, upto, before)


def earliest_of(
    table: str,
    x: Expression | str,
    *,
    since: Expression | str | None = None,
    after: Expression | str | None = None,
    where: Operand = None,
) -> Column:
    """The least `x` of a person's rows of `table` from a value of the row where this stands on, or
    `after` it: of a prescription, the day of the next visit. NULL where there is none."""
    return _nearest("earliest", table, x, where, since, after)


def _nearest(
    kind: str,
    table: str,
    x: Expression | str,
    where: Operand,
    here: Expression | str | None,
    beyond: Expression | str | None,
) -> Column:
    if (here is None) is (beyond is None):
        one, other = ("upto", "before") if kind == "latest" else ("since", "after")
        raise InvalidQuery(
            f'{kind}_of wants {one} or {other}, a value of the row where it stands: {one}="day"'
        )
    limit = column_or_expression(here if here is not None else beyond)
    return _column(
        kind, table, where, column_or_expression(x), limit=limit, strict=beyond is not None
    )


def days_between(earlier: Expression | str, later: Expression | str) -> Expression:
    """Days from one date to another; negative if `later` is earlier."""
    return column_or_expression(later) - column_or_expression(earlier)


def _column(
    kind: str,
    table: str,
    where: Operand,
    value: Expression | None = None,
    by: str | None = None,
    clip: tuple[Literal, Literal] | None = None,
    limit: Expression | None = None,
    strict: bool = False,
) -> Column:
    if not isinstance(table, str) or not table:
        raise InvalidQuery(f"{kind} wants the name of a table of the study, got {table!r:.60}")
    if by is not None and not isinstance(by, str):
        by = cast(Any, by).name if isinstance(by, Column) else None
    if kind in ORDERED and not by:
        raise InvalidQuery(f'{kind}_of wants the column that orders rows: by="day"')
    rows = rows_where(None if where is None else as_expression(where))
    name = PersonValue(kind, table, rows, value, by, clip, limit, strict).name
    if len(name) > LONGEST_NAME:
        raise InvalidQuery(
            f"a value of a person is described in at most {LONGEST_NAME} characters; shorten it",
            reason=Reason.TOO_LARGE,
        )
    return Column(name)
