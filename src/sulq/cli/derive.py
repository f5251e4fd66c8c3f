"""`sulq derive`: bounded numbers from rows of any kind, computed once, before publication."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import duckdb
import typer

from sulq.cli.context import command
from sulq.cli.output import Json, print_note, show_json
from sulq.errors import InvalidQuery

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
    named = [_column(text) for text in columns]
    rows = derive_columns(file, named, output)
    if as_json:
        show_json({"file": output, "columns": [name for name, _ in named], "rows": rows})
        return
    print_note(f"wrote {output}: {', '.join(name for name, _ in named)} added to {rows:,} rows")
    print_note(f"next: sulq init {output}, and declare what everybody may know of the new columns")
    print(output)


def _column(text: str) -> tuple[str, str]:
    found = _NAMED.fullmatch(text)
    if found is None:
        raise InvalidQuery(f"want NAME=EXPRESSION, got {text!r:.80}")
    return found[1], found[2]


# The file that is written.


def derive_columns(source: Path, columns: Sequence[tuple[str, str]], output: Path) -> int:
    """Copy a file with computed columns added; how many rows it has.

    A row where an expression fails gets NULL: which rows those are must not decide whether a
    table can be published.
    """
    if not columns:
        raise InvalidQuery("name at least one column to derive: words = len(note)")
    if output.exists():
        raise InvalidQuery(f"{output} exists and is not overwritten; name another with -o")
    if output.suffix != ".parquet":
        raise InvalidQuery(f"{output} must end in .parquet")
    if not output.parent.is_dir():
        raise InvalidQuery(f"there is no directory {output.parent} to write into")
    if not source.is_file():
        raise InvalidQuery(f"there is no file {source}")
    names = [name for name, _ in columns]
    if len(set(names)) != len(names):
        raise InvalidQuery(f"each column once, got {names}")
    reader = "read_parquet" if source.suffix == ".parquet" else "read_csv"
    with duckdb.connect(":memory:") as connection:
        made = f"CREATE VIEW source AS SELECT * FROM {reader}({_text(source)})"  # noqa: S608
        _run(connection, made, "file")
        held = [str(row[0]) for row in _run(connection, "DESCRIBE source", "file")]
        if taken := [name for name in names if name in held]:
            raise InvalidQuery(f"{source.name} has {taken} already; choose other names")
        added = []
        for name, expression in columns:
            piece = f"TRY(({expression})) AS {_name(name)}"
            _run(connection, f"EXPLAIN SELECT {piece} FROM source", f"expression of {name}")  # noqa: S608
            added.append(piece)
        wanted = f"SELECT *, {', '.join(added)} FROM source"  # noqa: S608
        _run(connection, f"COPY ({wanted}) TO {_text(output)} (FORMAT parquet)", "file")
        return int(str(_run(connection, "SELECT count(*) FROM source", "file")[0][0]))


def _run(connection: duckdb.DuckDBPyConnection, sql: str, what: str) -> list[tuple[object, ...]]:
    """The engine's own words may quote rows: only those about the expression's text are kept."""
    said = ""
    try:
        return connection.execute(sql).fetchall()
    except (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException) as error:
        said = f": {str(error).splitlines()[0]:.200}"
    except duckdb.Error:
        said = ""
    raise InvalidQuery(f"the {what} cannot be read{said}")


def _text(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
