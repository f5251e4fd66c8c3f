"""How a CSV file is read: as its owner declares, never guessed from its rows.

DuckDB's sniffer looks at the data, so one row's value could change how many rows there are. Here
the declaration and the header line alone decide; `sulq init` looks at the rows once and writes what
it found into the policy. A file that cannot be read so is refused with the number of the line and
the reason. The text of the line stays where it is.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any, ClassVar, Self

from sulq.errors import InvalidQuery
from sulq.kernel.engines.duckdb.physical import Spelling
from sulq.kernel.engines.sql.dialect import Dialect

LONGEST_HEADER = 1_000_000
DELIMITERS = ",;\t|"
ENCODINGS = {"utf-8": "utf-8-sig", "latin-1": "latin-1", "cp1252": "cp1252", "utf-16": "utf-16"}
"""By declared name, Python's codec; what is not UTF-8 is turned into it in memory."""
BLOCK = 1 << 20
DIRECTIVES = {
    "d": r"\d{1,2}",
    "m": r"\d{1,2}",
    "Y": r"\d{4}",
    "y": r"\d{2}",
    "b": "[A-Za-z]{3}",
    "B": "[A-Za-z]{3,9}",
    "H": r"\d{1,2}",
    "I": r"\d{1,2}",
    "M": r"\d{1,2}",
    "S": r"\d{1,2}",
    "f": r"\d{1,6}",
    "p": "[AaPp][Mm]",
}
"""What a form of a date may hold, and what text each of them takes."""


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file whose cells are text, and the rules by which a policy says they are read."""

    word: ClassVar[str]
    """What the rules are called in a policy."""
    path: str | os.PathLike[str]

    @classmethod
    def read(cls, path: str | os.PathLike[str], facts: Mapping[str, Any]) -> Self:
        """The file with rules as a policy has them; everything unknown is refused."""
        known = [field.name for field in fields(cls) if field.name != "path"]
        unknown = sorted(set(facts) - set(known))
        if unknown:
            raise InvalidQuery(f"{cls.word}: unknown {unknown}; {cls.word} knows {known}")
        return cls(path, **facts)

    @property
    def rules(self) -> dict[str, Any]:
        """What is declared, without what the defaults say already."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name != "path" and getattr(self, field.name) != field.default
        }

    @property
    def name(self) -> str:
        return Path(self.path).name


@dataclass(frozen=True, slots=True)
class CsvFile(TextFile):
    """A CSV file and how it is read; the rules are part of the table's fingerprint.

    `delimiter` is that of the header line unless it is given. `names` replaces the header line's
    names; `header=False` says that the first line is a row. Fields equal to one of `missing` are
    NULL, and so are empty ones. `dates` are forms such as "%d.%m.%Y", read besides ISO dates.
    """

    word = "csv"
    delimiter: str | None = None
    decimal: str = "."
    thousands: str = ""
    dates: str | tuple[str, ...] = ()
    missing: str | tuple[str, ...] = ()
    trim: bool = False
    encoding: str = "utf-8"
    header: bool = True
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("dates", "missing", "names"):
            given = getattr(self, name)
            several = (given,) if isinstance(given, str) else given
            if not isinstance(several, list | tuple) or not all(
                isinstance(one, str) and "\x00" not in one for one in several
            ):
                raise InvalidQuery(f"csv: {name} must be a list of texts, got {given!r:.40}")
            object.__setattr__(self, name, tuple(several))
        if not isinstance(self.path, str | os.PathLike):
            raise InvalidQuery(f"CsvFile takes a path, got a {type(self.path).__name__}")
        for name in ("trim", "header"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidQuery(f"csv: {name} must be true or false")
        self._check_delimiter()
        if not isinstance(self.encoding, str) or self.encoding not in ENCODINGS:
            raise InvalidQuery(
                f"csv: encoding must be one of {', '.join(ENCODINGS)}, got {self.encoding!r:.40}"
            )
        self.spelling  # noqa: B018 - checks decimal, thousands and dates
        if self.names and not _different(self.names):
            raise InvalidQuery("csv: names must be a different name for every column")
        if not self.header and (not self.names or self.delimiter is None):
            raise InvalidQuery(
                "csv: a file without a header line needs names = [...] and delimiter = ..."
            )

    def _check_delimiter(self) -> None:
        mark = self.delimiter
        if mark is None:
            return
        fits = isinstance(mark, str) and 1 <= len(mark.encode("utf-8", "replace")) <= 4
        if not fits or re.search(r"[\"\r\n\x00A-Za-z0-9]", mark):
            raise InvalidQuery(
                'csv: delimiter must be one to four bytes such as ";", "\\t" or ", ", without'
                f" letters, digits or quotation marks, got {mark!r:.40}"
            )

    @property
    def spelling(self) -> Spelling:
        """How text of this file spells numbers and dates."""
        return Spelling(self.decimal, self.thousands, _forms(self.dates))

    @property
    def zipped(self) -> bool:
        return Path(self.path).suffix == ".gz"

    def text(self) -> IO[bytes] | None:
        """A copy in UTF-8, held in memory, of a file in another encoding; None for UTF-8."""
        if self.encoding == "utf-8":
            return None
        copy = unnamed()
        try:
            self._decode(copy)
        except BaseException:
            copy.close()
            raise
        return copy

    def _decode(self, copy: IO[bytes]) -> None:
        """Write the file into `copy`, in UTF-8."""
        decoder = codecs.getincrementaldecoder(ENCODINGS[self.encoding])()
        broken, line = False, 1
        for block, last in _marked(self._blocks(Path(self.path))):
            try:
                part = decoder.decode(block, last)
            except UnicodeDecodeError as error:
                line += error.object.count(b"\n", 0, error.start)
                broken = True
            if broken:
                break
            line += part.count("\n")
            copy.write(part.encode())
        if broken:
            raise InvalidQuery(
                f"{self.name}: line {line} holds bytes that {self.encoding} does not have; declare"
                f" another encoding: {', '.join(ENCODINGS)}"
            )
        copy.flush()

    def columns(self, place: Path) -> tuple[str, list[str]]:
        """The delimiter and the names of the columns; `place` is where its UTF-8 text lies."""
        if not self.header:
            return self.delimiter or ",", list(self.names)
        line = self._first_line(place)
        delimiter = self.delimiter or max(DELIMITERS, key=line.count)  # first of the most frequent
        names = list(self.names) or split_line(line, delimiter)
        names = [name.strip() for name in names] if self.trim else names
        if not _different(names):
            twins = len(set(names)) == len(names) and "" not in names and bool(names)
            raise InvalidQuery(
                f"{self.name}: two names in the header line differ only in capitals; rename one, or"
                " give csv = {names = [...]}"
                if twins
                else f"{self.name} needs a header line with a different name for every column; or"
                " give csv = {names = [...]}"
            )
        return delimiter, names

    def reader(self, place: Path) -> str:
        """A query that gives every field as text: NULL where it is empty or a missing mark."""
        delimiter, names = self.columns(place)
        listed = ", ".join(f"{Dialect.text(name)}: 'VARCHAR'" for name in names)
        scan = (
            f"read_csv({Dialect.text(str(place))}, auto_detect = false,"
            f" header = {str(self.header).lower()}, compression = {Dialect.text(self._packing)},"
            f" columns = {{{listed}}}, delim = {Dialect.text(delimiter)}, quote = '\"',"
            " escape = '\"', comment = '', nullstr = '', strict_mode = true, null_padding = false,"
            " hive_partitioning = false, ignore_errors = false)"
        )
        if not self.trim and not self.missing:
            return f"SELECT * FROM {scan}"
        chosen = ", ".join(self._field(Dialect.name(name)) for name in names)
        return f"SELECT {chosen} FROM {scan}"

    def _field(self, x: str) -> str:
        bare = f"trim({x}, {Dialect.text(BLANKS)})"
        kept = bare if self.trim else x
        marks = ", ".join(Dialect.text(mark) for mark in ("", *self.missing))
        return f"CASE WHEN {bare} NOT IN ({marks}) THEN {kept} END AS {x}"

    @property
    def _packing(self) -> str:
        return "gzip" if self.zipped and self.encoding == "utf-8" else "none"

    def check_bytes(self, place: Path) -> None:
        """Refuse NUL bytes: no text holds them, and programs disagree on what they mean."""
        line = 1
        for block in self._blocks(place):
            at = block.find(b"\x00")
            if at >= 0:
                line += block.count(b"\n", 0, at)
                raise InvalidQuery(
                    f"{self.name}: line {line} holds a NUL byte, which is no text; write the file"
                    ' again without it (or declare encoding = "utf-16", if it is that)'
                )
            line += block.count(b"\n")

    def complaint(self, place: Path) -> str:
        """Why DuckDB cannot read the file: the first line at fault and the reason."""
        import duckdb  # loaded when it is needed: policies are read without it

        delimiter, names = self.columns(place)
        found: tuple[int, int, str] | None = None
        scan = self.reader(place).replace(
            "ignore_errors = false", "store_rejects = true, rejects_limit = 100"
        )
        with (
            duckdb.connect(":memory:", config={"threads": 1}) as connection,
            contextlib.suppress(duckdb.Error),  # its text may quote rows
        ):
            connection.execute("SET temp_directory = ''")
            connection.execute(f"SELECT count(COLUMNS(*)) FROM ({scan})").fetchall()
            found = connection.execute(
                "SELECT line_byte_position, column_idx, error_type FROM reject_errors"
                " ORDER BY line_byte_position LIMIT 1"
            ).fetchone()
        if found is None:
            return self._line_break(place)
        at, fields_there, fault = found
        line = self._line_at(place, at - 1)
        wanted = f"{len(names)} field{'s'[: len(names) != 1]}"
        first = "line 1 has" if self.header and not self.names else "names has"
        shown = {"\t": "a tab"}.get(delimiter, repr(delimiter))
        remedy = "mend the line, or declare another delimiter"
        said = {
            "MISSING COLUMNS": f"has {fields_there} field{'s'[: fields_there != 1]} between"
            f" {shown}, {first} {wanted}; {remedy}",
            "TOO MANY COLUMNS": f"has more than the {wanted} of"
            f" {'line 1' if first[0] == 'l' else 'names'} between {shown}; {remedy}",
            "UNQUOTED VALUE": "has a quotation mark that is not closed, or text after a closing"
            ' one; close it, and write a mark inside quotes twice ("")',
            "INVALID ENCODING": f"is not {self.encoding.upper()}; declare the encoding, such as"
            ' encoding = "cp1252"',
            "LINE SIZE OVER MAXIMUM": "is longer than 2,000,000 bytes; look for a quotation mark"
            " that is not closed",
        }.get(str(fault), "cannot be read")
        return f"{self.name}: line {line} {said}"

    def _line_break(self, place: Path) -> str:
        """The complaint about a file whose lines end in different ways, or a general one."""
        line, first, held = 1, b"", b""
        for block in self._blocks(place):
            for ending in re.findall(rb"\r\n|\n|\r(?!\n|$)", held + block):
                first = first or ending
                if ending != first:
                    return (
                        f"{self.name}: line {line} ends in another kind of line break than line 1;"
                        " end all lines alike"
                    )
                line += 1
            held = b"\r" if block.endswith(b"\r") else b""
        return (
            f"{self.name} cannot be read, though no line of it is at fault; check that there is"
            " memory enough, or publish Parquet"
        )

    def _line_at(self, place: Path, offset: int) -> int:
        """The number of the line that holds the byte at `offset`, a byte order mark not counted."""
        line, first = 1, True
        for block in self._blocks(place):
            if first and block.startswith(codecs.BOM_UTF8):
                offset += len(codecs.BOM_UTF8)
            first = False
            line += block.count(b"\n", 0, max(offset, 0))
            offset -= len(block)
            if offset <= 0:
                break
        return line

    def _blocks(self, place: Path) -> Iterator[bytes]:
        """The bytes at `place`, unpacked; `InvalidQuery` if they cannot be had."""
        packed = self.zipped and place == Path(self.path)
        trouble = False
        try:
            with gzip.open(place, "rb") if packed else place.open("rb") as file:
                while block := file.read(BLOCK):
                    yield block
        except (OSError, EOFError):
            trouble = True
        if trouble:
            raise InvalidQuery(f"{self.name} cannot be read to its end; check the file")

    def _first_line(self, place: Path) -> str:
        raw = next(self._blocks(place), b"")[:LONGEST_HEADER]
        line, ending, _ = raw.partition(b"\n")
        header = ""
        with contextlib.suppress(UnicodeDecodeError):  # it quotes bytes
            header = line.decode("utf-8-sig").rstrip("\r")
        if "\r" in header:
            raise InvalidQuery(
                f"{self.name}: line 1 ends in a carriage return alone; end lines in LF or CR LF"
            )
        if not header.strip() or (not ending and len(raw) >= LONGEST_HEADER):
            raise InvalidQuery(
                f"{self.name} is not a readable CSV file with a header line, in UTF-8"
            )
        return header


BLANKS = " \t\u00a0"


def unnamed() -> IO[bytes]:
    """A file without a name, in memory where the system can: rows are not written to a disk."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("sulq"), "w+b")
    return tempfile.TemporaryFile()


def split_line(line: str, delimiter: str) -> list[str]:
    """The fields of one line; an empty list if its quotation marks do not match."""
    if len(delimiter) == 1:
        try:
            return next(csv.reader([line], delimiter=delimiter, strict=True), [])
        except csv.Error:
            return []
    found, rest = list[str](), line
    while True:
        if match := re.match(r'"((?:[^"]|"")*)"', rest):
            field, rest = match[1].replace('""', '"'), rest[match.end() :]
            if rest and not rest.startswith(delimiter):
                return []
        else:
            field, mark, after = rest.partition(delimiter)
            rest = mark + after
        found.append(field)
        if not rest:
            return found
        rest = rest[len(delimiter) :]


def _different(names: list[str] | tuple[str, ...]) -> bool:
    return bool(names) and "" not in names and len({n.casefold() for n in names}) == len(names)


def _forms(dates: str | tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Each form of a date with the pattern of the text that it reads."""
    found = []
    for form in dates:
        parts = re.split("%(.)", form)
        letters, rest = parts[1::2], parts[::2]
        day = {"d", "m", "Y"}, {"d", "m", "y"}, {"d", "b", "Y"}, {"d", "b", "y"}, {"d", "B", "Y"}
        fits = any(need <= set(letters) for need in day) and set(letters) <= set(DIRECTIVES)
        if not fits or len(set(letters)) != len(letters) or any("%" in part for part in rest):
            raise InvalidQuery(
                'csv: dates must be forms of day, month and year such as "%d.%m.%Y" or'
                f' "%m/%d/%Y %H:%M", of {", ".join("%" + one for one in DIRECTIVES)},'
                f" got {form!r:.40}"
            )
        pattern = "".join(
            re.escape(part) if at % 2 == 0 else DIRECTIVES[part] for at, part in enumerate(parts)
        )
        found.append((form, pattern))
    return tuple(found)


def _marked(blocks: Iterator[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Each block, and whether it is the last."""
    held = None
    for block in blocks:
        if held is not None:
            yield held, False
        held = block
    yield held or b"", True
