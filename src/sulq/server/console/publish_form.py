"""What an owner fills in on a step of the Publish wizard, written into the draft."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sulq.policy.identifiers import id_named
from sulq.server.console.pages import filled
from sulq.server.drafts import Draft, DraftColumn

TEXTS = ("name", "neighbours", "epsilon", "delta", "reason")
WHOLE = ("max_rows", "queries", "smallest")
TYPED = {"name", "reason", "low", "high", "values"}
"""A change of these redraws no field: only what is said of them."""
SAID = ("identifier_ok", "partial", "known")
"""What an owner says of a column on the last step, having read the advice."""
Fields = Mapping[str, str]


def taken(draft: Draft, fields: Fields) -> Draft:
    """The draft with a step's fields in it; fields of other steps stay as they are."""
    new = draft.model_dump()
    new |= {name: fields[name] for name in TEXTS if name in fields}
    new |= {name: _whole(fields[name]) for name in WHOLE if name in fields}
    kept = f"{draft.epsilon}|{draft.queries}"
    if (cell := fields.get("cell", kept)) != kept:  # picked in the grid: it goes before the fields
        epsilon, _, queries = cell.partition("|")
        new |= {"epsilon": epsilon, "queries": _whole(queries)}
    if "advised" in fields:
        new["apart"] = "apart" in fields
    if "unit" in fields:
        new["unit"] = _unit(draft, fields)
    new["columns"] = [_column(at, column, fields) for at, column in enumerate(draft.columns)]
    return filled(Draft, **new)


def redraws(before: Draft, after: Draft) -> bool:
    """Whether the step looks different, beyond what is being typed into it."""

    def choices(draft: Draft) -> dict[str, Any]:
        columns = [column.model_dump(exclude=TYPED) for column in draft.columns]
        return {**draft.model_dump(exclude=TYPED), "columns": columns}

    return choices(before) != choices(after)


def _column(at: int, column: DraftColumn, fields: Fields) -> dict[str, Any]:
    new = column.model_dump()
    for name in ("kind", "low", "high", "values"):
        new[name] = fields.get(f"{name}-{at}", new[name])
    if any(new[name] != getattr(column, name) for name in ("kind", "low", "high", "values")):
        new["known"] = new["partial"] = False  # said of other bounds or values
    if "advised" in fields and column.kind != "hidden":
        new |= {name: f"{name}-{at}" in fields for name in SAID}
    if f"public-{at}" in fields:
        new["public"] = fields[f"public-{at}"] == "yes"
        new["confirmed"] = column.public and new["public"] and f"confirmed-{at}" in fields
    return new


def _unit(draft: Draft, fields: Fields) -> str:
    """A row, or the column that tells people apart: at first the one that looks like it."""
    names = [column.name for column in draft.columns]
    if fields["unit"] == "row" or not names:
        return "row"
    keys = [name for name in names if id_named(name)]
    return fields.get("unit_column", (keys or names)[0])


def _whole(text: str) -> int:
    try:
        return max(1, round(float(text)))
    except (ValueError, OverflowError):
        return 1
