"""`sulq derive`: bounded numbers from rows of any kind, computed once, before publication."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from sulq.cli.context import command
from sulq.cli.output import Json, print_note, show_json

_NAMED = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.+)", re.DOTALL)


@command
def derive(
    file: Annotated[Path, typer.Argument(help="A Parquet or CSV file.", show_default=False)],
    columns: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=EXPRESSION...",
            help="In DuckDB's SQL: \"words = len(string_split(note, ' '))\".",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The Parquet file to write.", show_default=False)
    ],
    as_json: Json = False,
) -> None:
    """Add computed columns to a file, for an owner to publish: texts, events, pictures as numbers.

    A row where an expression fails gets NULL. Declare bounds for the new columns afterwards; the
    columns they come from can stay hidden.
    """
    from sulq.policy.derived import derive_columns

    named = [_column(text) for text in columns]
    rows = derive_columns(file, named, output)
    if as_json:
        show_json({"file": output, "columns": [name for name, _ in named], "rows": rows})
        return
    print_note(f"wrote {output}: {', '.join(name for name, _ in named)} added to {rows:,} rows")
    print_note(f"next: sulq init {output}, and declare what everybody may know of the new columns")
    print(output)


def _column(text: str) -> tuple[str, str]:
    from sulq.errors import InvalidQuery

    found = _NAMED.fullmatch(text)
    if found is None:
        raise InvalidQuery(f"want NAME=EXPRESSION, got {text!r:.80}")
    return found[1], found[2]
