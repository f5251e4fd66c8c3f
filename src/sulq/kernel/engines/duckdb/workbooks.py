"""One sheet of an Excel workbook (.xlsx), read as text cells through the reader of CSV files.

The first row that holds anything names the columns. Numbers, dates and truth values are spelled as
CSV would have them, formulas by the value that was saved with them. Errors and empty cells are
NULL; rows without any value are left out. Needs the extra `xlsx` (python-calamine).
"""

from __future__ import annotations

import csv
import datetime
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from sulq.errors import InvalidQuery
from sulq.kernel.engines.duckdb.csv_files import CsvFile, TextFile, unnamed
from sulq.kernel.engines.duckdb.remote import place_of
from sulq.kernel.engines.proved import silenced


@dataclass(frozen=True, slots=True)
class XlsxFile(TextFile):
    """One sheet of a workbook and how its text cells are read; see `CsvFile`."""

    word = "xlsx"
    sheet: str = ""
    decimal: str = "."
    thousands: str = ""
    dates: str | tuple[str, ...] = ()
    missing: str | tuple[str, ...] = ()
    trim: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.sheet, str) or not self.sheet:
            raise InvalidQuery('xlsx: name one sheet, such as xlsx = {sheet = "2024"}')
        checked = self._as_csv(self.path, ("column",))  # refuses what CSV refuses
        for name in ("dates", "missing"):
            object.__setattr__(self, name, getattr(checked, name))

    def text(self) -> tuple[CsvFile, IO[bytes]]:
        """The sheet as CSV, held in memory, and how to read that."""
        rows = iter(sheet_rows(self.path, self.sheet))
        names = tuple(_spelled(cell).strip() for cell in next(rows, []))
        if not names or "" in names or len({name.casefold() for name in names}) != len(names):
            raise InvalidQuery(
                f"{self.name}: the first row of sheet {self.sheet!r} must hold a different name for"
                " every column, capitals apart"
            )
        copy = unnamed()
        wrapped = io.TextIOWrapper(copy, encoding="utf-8", newline="")
        writer = csv.writer(wrapped, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerows([_spelled(cell) for cell in row] for row in rows)
        wrapped.flush()
        wrapped.detach()  # the copy stays open
        return self._as_csv(place_of(copy), names), copy

    def _as_csv(self, path: str | os.PathLike[str], names: tuple[str, ...]) -> CsvFile:
        return CsvFile(
            path,
            ",",
            self.decimal,
            self.thousands,
            self.dates,
            self.missing,
            self.trim,
            header=False,
            names=names,
        )


@contextmanager
def as_text(file: CsvFile | XlsxFile) -> Iterator[tuple[CsvFile, Path]]:
    """How a file is read as CSV in UTF-8, and where that text lies while this is open."""
    copy: IO[bytes] | None
    rules, copy = file.text() if isinstance(file, XlsxFile) else (file, file.text())
    try:
        place = Path(file.path) if copy is None else place_of(copy)
        rules.check_bytes(place)
        yield rules, place
    finally:
        if copy is not None:
            copy.close()


def sheets(path: str | os.PathLike[str]) -> list[str]:
    """The names of a workbook's sheets."""
    return list(_opened(path).sheet_names)


def sheet_rows(path: str | os.PathLike[str], sheet: str) -> list[list[Any]]:
    """The rows of a sheet that hold anything, from its first column to its last."""
    book = _opened(path)
    if sheet not in book.sheet_names:
        raise InvalidQuery(
            f"{Path(path).name} has no sheet {sheet!r:.60}; it has {list(book.sheet_names)!r:.400}"
        )
    rows: list[list[Any]] = silenced(
        lambda: book.get_sheet_by_name(sheet).to_python(),
        lambda _: InvalidQuery(f"{Path(path).name}: sheet {sheet!r} cannot be read; save it anew"),
    )
    return [row for row in rows if any(cell != "" for cell in row)]


def _opened(path: str | os.PathLike[str]) -> Any:
    try:
        from python_calamine import CalamineWorkbook  # an extra
    except ImportError:
        raise InvalidQuery(
            "reading .xlsx needs the extra xlsx: pip install 'sulq[xlsx]'; or save the sheet as CSV"
        ) from None
    return silenced(
        lambda: CalamineWorkbook.from_path(os.fspath(path)),
        lambda _: InvalidQuery(f"{Path(path).name} is not a readable .xlsx workbook"),
    )


def _spelled(cell: object) -> str:
    """A cell as CSV has it."""
    match cell:
        case bool():
            return "true" if cell else "false"
        case float():
            return str(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
        case datetime.datetime() | datetime.date() | datetime.time():
            return cell.isoformat()
        case datetime.timedelta():
            return repr(cell.total_seconds())
    return str(cell)
