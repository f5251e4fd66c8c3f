"""`sulq columns`: what may be asked about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sulq.cli.options import Ca, TokenFile, Url
from sulq.cli.screen import POLICY, Json, Policy, guarded, number_text, show, show_json, table

if TYPE_CHECKING:
    from sulq.schema.columns import Column


@guarded
def columns(
    name: Annotated[str | None, typer.Argument(metavar="[TABLE]", show_default=False)] = None,
    url: Url = None,
    token_file: TokenFile = None,
    ca: Ca = None,
    policy: Policy = POLICY,
    as_json: Json = False,
) -> None:
    """What may be asked about: the columns, their bounds or values, and what is public."""
    from sulq.cli.far import source_named

    source = source_named(policy, name, url, token_file, ca)
    found = [_column_facts(column, source.unit) for column in source.schema().columns]
    if as_json:
        show_json({"table": source.name, "unit": source.unit, "columns": found})
        return
    drawn = table(
        ("column", "kind", "bounds or values", "public", "otherwise"),
        [
            (
                line["name"],
                line["kind"],
                _known(line),
                "yes" if line["public"] else "no",
                line["otherwise"],
            )
            for line in found
        ],
    )
    for column in drawn.columns:
        column.justify = "left"
    show(drawn)


def _known(line: dict[str, Any]) -> str:
    if "low" in line:
        step = "" if line["step"] is None else f", step {number_text(line['step'])}"
        return f"{number_text(line['low'])} to {number_text(line['high'])}{step}"
    return ", ".join(map(str, line["values"] or ()))


def _column_facts(column: Column, unit: str) -> dict[str, Any]:
    """The public facts of a column. Where persons are protected, no column is public."""
    from sulq.schema.columns import Category, Number

    common = {"name": column.name, "public": column.public and unit == "row"}
    if isinstance(column, Number):
        bounds = {"low": column.low, "high": column.high, "step": column.step}
        rule = "outside: moved to the bound; missing or NaN: NULL"
        return {**common, "kind": column.kind, **bounds, "otherwise": rule}
    if isinstance(column, Category):
        kind = "text" if column.values is None else "category"
        rule = "missing: NULL" if kind == "text" else "undeclared: in --other only; missing: NULL"
        return {**common, "kind": kind, "values": column.values, "otherwise": rule}
    rule = "neither true nor false: NULL"
    return {**common, "kind": "flag", "values": [False, True], "otherwise": rule}
