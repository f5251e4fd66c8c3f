"""Public strata: the cells of the public Category and Flag columns, each an account (G.2)."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sulq.kernel.schema.columns import Category, Schema


@dataclass(frozen=True, slots=True)
class Other:
    """A public value that is NULL or was not declared."""


OTHER = Other()
Known: TypeAlias = str | int | bool | Other
Assignment: TypeAlias = Mapping[str, Known]

EVERYONE = "everyone"
"""The one account of a table without public strata."""


def values_of(schema: Schema, name: str) -> tuple[Known, ...]:
    column = schema[name]
    if isinstance(column, Category):
        return (*(column.values or ()), OTHER)
    return (False, True, OTHER)


def strata_columns(schema: Schema) -> tuple[str, ...]:
    """The columns whose cells are accounts; a person's rows may lie in many cells, so none."""
    return schema.strata if schema.unit == "row" else ()


def accounts(schema: Schema) -> tuple[str, ...]:
    """The names of all accounts, in the order of the cells."""
    columns = strata_columns(schema)
    if not columns:
        return (EVERYONE,)
    cells = itertools.product(*(values_of(schema, name) for name in columns))
    return tuple(_account(columns, cell) for cell in cells)


def _account(columns: tuple[str, ...], cell: tuple[Known, ...]) -> str:
    named = zip(columns, cell, strict=True)
    return ", ".join(f"{_spelled(name)}={_spelled(value)}" for name, value in named)


def _spelled(value: Known) -> str:
    """Plain where that is unambiguous, quoted otherwise: two cells never share a name."""
    if isinstance(value, Other):
        return "*"
    if isinstance(value, str) and not re.fullmatch(r"[\w .+/-]+", value):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def assignments(
    schema: Schema, mentioned: Iterable[str]
) -> list[tuple[dict[str, Known], tuple[int, ...]]]:
    """Every combination of the mentioned strata columns, with the accounts that share it."""
    columns = strata_columns(schema)
    wanted = [name for name in columns if name in set(mentioned)]
    if not columns:
        return [({}, (0,))]
    at = [columns.index(name) for name in wanted]
    found: dict[tuple[Known, ...], list[int]] = {}
    cells = itertools.product(*(values_of(schema, name) for name in columns))
    for index, cell in enumerate(cells):
        found.setdefault(tuple(cell[place] for place in at), []).append(index)
    return [
        (dict(zip(wanted, values, strict=True)), tuple(indexes))
        for values, indexes in found.items()
    ]
