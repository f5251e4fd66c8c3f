"""How a CSV file is read: from its header line alone, never guessed from its rows.

DuckDB's sniffer looks at the data, so one row's value could change how many rows there are.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
from pathlib import Path

from sulq.engines.dialect import Dialect
from sulq.errors import InvalidQuery

LONGEST_HEADER = 1_000_000
DELIMITERS = ",;\t|"


def csv_reader(path: Path) -> str:
    """A `read_csv(...)` call with everything said: delimiter and names from the header line."""
    delimiter, names = csv_header(path)
    columns = ", ".join(f"{Dialect.text(name)}: 'VARCHAR'" for name in names)
    return (
        f"read_csv({Dialect.text(str(path))}, auto_detect = false, header = true,"
        f" columns = {{{columns}}}, delim = {Dialect.text(delimiter)}, quote = '\"',"
        " escape = '\"', comment = '', nullstr = '', strict_mode = true, null_padding = false,"
        " ignore_errors = false, hive_partitioning = false)"
    )


def csv_header(path: Path) -> tuple[str, list[str]]:
    """Delimiter and names, as the first line has them."""
    header = _header_line(path)
    delimiter = max(DELIMITERS, key=header.count)  # the first of the most frequent
    names = next(csv.reader([header], delimiter=delimiter, strict=True), [])
    if not names or len({name.casefold() for name in names}) != len(names) or "" in names:
        raise InvalidQuery(
            f"{path.name} needs a header line with a different name for every column"
        )
    return delimiter, names


def _header_line(path: Path) -> str:
    opener = gzip.open if path.suffix == ".gz" else open
    header = ""
    with contextlib.suppress(OSError, UnicodeDecodeError, EOFError):  # they may quote bytes
        with opener(path, "rb") as file:
            raw = file.readline(LONGEST_HEADER)
        header = raw.decode("utf-8-sig").rstrip("\r\n")
    if not header.strip() or len(header) >= LONGEST_HEADER - 1:
        raise InvalidQuery(f"{path.name} is not a readable CSV file with a header line, in UTF-8")
    return header
