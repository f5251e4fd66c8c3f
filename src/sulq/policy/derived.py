"""Columns computed before publication, by the owner, on the owner's own file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb

from sulq.errors import InvalidQuery


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
