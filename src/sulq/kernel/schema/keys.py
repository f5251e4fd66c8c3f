"""Counts by the values of open columns, which nobody declared: what is asked, proved safe.

A row has one key, its texts cut to a fixed length and its whole numbers, or none where one of them
is missing. Plain keys count rows (M.1). Keys with figures count units, which are persons on a table
of persons, and have sums beside (P.4).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.query import canonical
from sulq.kernel.query.expressions import Column, Expression, lit, operation
from sulq.kernel.query.sum_query import (
    FORMAT,
    Statistic,
    SumQuery,
    as_statistic,
    counts_rows,
    digest_of,
    rows_where,
)
from sulq.kernel.schema.bind import BoundQuery, BoundTerm, NoiseGrid, bind
from sulq.kernel.schema.columns import Category, Schema
from sulq.kernel.schema.program import Condition, Integer, RowSums
from sulq.kernel.schema.sensitivity import check_person_unit, keys_reach
from sulq.kernel.schema.study import refuse_study

LONGEST = 200
"""Characters of a key: longer texts count as their beginning."""
MOST_SHOWN = 10_000
MOST_COLUMNS = 2
MOST_SUMS = 20

Key: TypeAlias = tuple[str | int, ...]
"""The value of each column."""


@dataclass(frozen=True, slots=True)
class KeyCounts:
    """What an engine is asked: of the rows in S how many hold each key of the columns; with
    `persons` how many persons do; and the sums of the terms over the rows of each key."""

    columns: tuple[str, ...]
    rows: Condition  # implies that the columns are there
    terms: tuple[Integer, ...] = ()
    persons: bool = False
    longest: int = LONGEST

    @property
    def plain(self) -> RowSums:
        """The same sums without keys."""
        return RowSums(self.rows, self.terms)


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """A statistic that is read for each key, and where its sums stand: among those of the key, or
    -1 for the count of units itself."""

    bound: BoundQuery
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BoundKeys:
    """A question for keys: its one spelling, its program, and what it moves of which accounts."""

    text: str
    digest: str
    program: KeyCounts
    reach: tuple[tuple[Fraction, tuple[int, ...]], ...]
    """Keys with figures: L2^2 by accounts. Plain keys: 1 where a row can be in S."""
    fine_unit: int  # fine steps of one row, or person
    most: int
    notes: tuple[str, ...]
    terms: tuple[BoundTerm, ...] = ()
    figures: tuple[KeyFigure, ...] = ()
    with_figures: bool = False
    """Whether units are counted, by P.4; else rows, by M.1. For rows alone both are the same."""
    texts: tuple[bool, ...] = (True,)
    """Of each column: whether it holds text, or whole numbers."""

    @property
    def accounts(self) -> tuple[int, ...]:
        return tuple(number for reach, numbers in self.reach if reach for number in numbers)


def bind_keys(
    columns: object,
    where: Expression | None,
    most: int,
    schema: Schema,
    neighbours: str,
    grid: NoiseGrid,
    figures: Sequence[object] = (),
    asked_before: bool = False,
) -> BoundKeys:
    """Prove a question for keys safe; `InvalidQuery` says what is wrong and the remedy.

    `asked_before` as for `bind`.
    """
    refuse_study(schema, "keys that nobody declared")
    found = _open_columns(columns, schema)
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= MOST_SHOWN:
        raise InvalidQuery(f"most must be a whole number from 1 to {MOST_SHOWN}, got {most!r:.40}")
    names = tuple(column.name for column in found)
    there = [Column(name).is_not_null() for name in names]
    wanted = [_figure(figure, schema) for figure in figures]
    sums = _spelled_once(wanted)
    if len(sums) > MOST_SUMS:
        raise InvalidQuery(
            f"the figures of a key are made of at most {MOST_SUMS} sums, got {len(sums)}",
            reason=Reason.TOO_LARGE,
        )
    asked = SumQuery((lit(1), *sums.values()), rows_where(where, *there))
    bound = bind(asked, schema, neighbours, grid=grid, asked_before=asked_before)
    assert isinstance(bound.sums, RowSums)  # noqa: S101
    persons = bool(wanted) and schema.unit != "row"
    with_figures = bool(sums) or persons or len(names) > 1 or any(one.whole for one in found)
    form: dict[str, Any] = {
        "sulq": FORMAT,
        "keys": list(names) if with_figures else names[0],
        "rows": canonical.to_json(bound.query.rows),
        "most": most,
        "longest": LONGEST,
    }
    if with_figures:
        form["sums"] = [canonical.to_json(term) for term in bound.query.terms[1:]]
        form |= {"of": "persons"} if schema.unit != "row" else {}
    text = json.dumps(form, ensure_ascii=False, separators=(",", ":"))
    program = KeyCounts(names, bound.sums.rows, bound.sums.terms[1:])
    terms, units = bound.terms[1:], [term.unit for term in bound.terms[1:]]

    def alone(statistic: Statistic) -> BoundQuery:
        return bind(statistic, schema, neighbours, grid=grid, asked_before=asked_before)

    if with_figures:
        program = replace(program, persons=schema.unit != "row")
        reach = tuple(keys_reach(program.plain, units, schema, neighbours))
    else:
        reach = tuple((Fraction(bool(moved.l1)), numbers) for moved, numbers in bound.reach)
    return BoundKeys(
        text,
        digest_of(text),
        program,
        reach,
        bound.terms[0].fine_unit,
        most,
        bound.notes,
        terms,
        tuple(_placed(one, sums, bound.terms, alone) for one in wanted),
        with_figures,
        tuple(not column.whole for column in found),
    )


def _open_columns(columns: object, schema: Schema) -> list[Category]:
    listed = list(columns) if isinstance(columns, tuple | list) else [columns]
    if not 1 <= len(listed) <= MOST_COLUMNS:
        raise InvalidQuery(f"keys are of 1 to {MOST_COLUMNS} open columns, got {len(listed)}")
    found = [_open_column(column, schema) for column in listed]
    if len({column.name for column in found}) < len(found):
        raise InvalidQuery(f"a key names a column once, got {found[0].name!r:.60} twice")
    return found


def _open_column(column: object, schema: Schema) -> Category:
    name = column.name if isinstance(column, Column) else column
    if not isinstance(name, str):
        raise InvalidQuery(f"keys wants the name of an open text column, got {column!r:.60}")
    found = schema[name]
    if not isinstance(found, Category):
        raise InvalidQuery(
            f"{name} is no text: ask histogram({name!r}), which needs no threshold",
            reason=Reason.WRONG_TYPE,
            about={"column": name},
        )
    if found.values is not None:
        raise InvalidQuery(
            f"the values of {name} are declared: ask histogram({name!r}), which shows them all",
            reason=Reason.WRONG_TYPE,
            about={"column": name},
        )
    return found


# --- figures --------------------------------------------------------------------------------------


def _figure(figure: object, schema: Schema) -> _Figure:
    """A statistic that is made of plain sums over the rows of a key."""
    asked = as_statistic(figure)
    query = asked.query
    ends = [] if query.clip is None else [canonical.number_of(end) for end in query.clip]
    everybody = counts_rows(query) and canonical.truth(query.rows) is canonical.TRUE
    if everybody and ends == [0, 1] and not query.uncut and not query.groups:
        check_person_unit(schema)
        return _Figure(Statistic("count", SumQuery((lit(1),))), (None,))
    if query.groups or query.outer is not None or query.clip is not None or query.table:
        raise InvalidQuery(
            "the figures of a key are count(), total(x), mean(x) and what else is read from plain"
            " sums, and count_persons() without where; ask for anything else by declared values",
            reason=Reason.WRONG_FORM,
        )
    rows = canonical.truth(query.rows)
    terms: list[Expression | None] = []
    for term in query.canonical().terms:
        one = canonical.number_of(term) == 1
        if rows is canonical.TRUE:
            terms.append(None if one and schema.unit == "row" else term)
        else:
            terms.append(operation("choose", rows, term, 0 if one else None))
    return _Figure(asked, tuple(terms))


@dataclass(frozen=True, slots=True, eq=False)
class _Figure:
    """A statistic and its sums over the rows of a key; None is the count of units."""

    asked: Statistic
    terms: tuple[Expression | None, ...]


def _spelled_once(figures: Sequence[_Figure]) -> dict[str, Expression]:
    """Each sum once, in the order of their spelling: so how figures stand is no new question."""
    found = {
        canonical.spelling(value): value
        for figure in figures
        for term in figure.terms
        if term is not None
        for value in [canonical.value(term)]
    }
    return dict(sorted(found.items()))


def _placed(
    figure: _Figure,
    sums: dict[str, Expression],
    terms: Sequence[BoundTerm],
    bind_alone: Callable[[Statistic], BoundQuery],
) -> KeyFigure:
    """A figure with the steps of the sums it is read from. `terms`: the units', then theirs."""
    listed = list(sums)
    places = tuple(
        -1 if term is None else listed.index(canonical.spelling(canonical.value(term)))
        for term in figure.terms
    )
    alone = bind_alone(figure.asked)
    own = tuple(
        replace(term, step=found.step, unit=found.unit, lift=found.lift)
        for term, found in zip(alone.terms, (terms[place + 1] for place in places), strict=True)
    )
    return KeyFigure(replace(alone, terms=own), places)


# --- what is stored -------------------------------------------------------------------------------


class ShownKey(NamedTuple):
    """A key that reached the threshold, with its noisy count, and its sums."""

    key: Key
    noisy: int
    sums: Sequence[int]


def packed_keys(total: int, shown: Sequence[ShownKey]) -> list[int]:
    """Integers, as the ledger stores them: a text is the number that its UTF-8 bytes spell."""
    listed = [(*map(_packed, one.key), one.noisy, *one.sums) for one in shown]
    return [total, *chain(*listed)]


def _packed(value: str | int) -> int:
    return value if isinstance(value, int) else int.from_bytes(b"\x01" + value.encode())


def unpacked_keys(values: Sequence[int], bound: BoundKeys) -> tuple[int, list[ShownKey]]:
    """Read `packed_keys` back: the noisy total, and the keys with their noisy numbers."""
    texts, first = bound.texts, len(bound.texts)
    width = first + 1 + len(bound.terms)
    rows = [values[at : at + width] for at in range(1, len(values), width)]
    return values[0], [
        ShownKey(
            tuple(_text(n) if is_text else n for n, is_text in zip(row, texts, strict=False)),
            row[first],
            row[first + 1 :],
        )
        for row in rows
    ]


def _text(number: int) -> str:
    return number.to_bytes((number.bit_length() + 7) // 8)[1:].decode()
