"""A first policy for a file: from its types alone, or, if the owner asks, from its values.

What comes from values is only ever proposed: `proposed = true` keeps a column closed until the
owner says that everybody may know it.
"""

from __future__ import annotations

import codecs
import datetime
import gzip
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import duckdb

from sulq.errors import InvalidQuery, SulqError
from sulq.kernel.engines.duckdb.csv_files import BLOCK, DELIMITERS, CsvFile, split_line
from sulq.kernel.engines.duckdb.physical import (
    FALSE,
    INTEGERS,
    PERSON_TYPES,
    TIMESTAMPS,
    TRUE,
    read_text,
)
from sulq.kernel.engines.duckdb.workbooks import XlsxFile, as_text, sheets
from sulq.kernel.engines.postgres.engine import UNREAD
from sulq.kernel.engines.postgres.session import (
    PostgresAddress,
    PostgresSessions,
    complaint,
    read_address,
)
from sulq.kernel.engines.postgres.source import look
from sulq.kernel.engines.sql.dialect import Dialect
from sulq.kernel.schema.columns import Flag
from sulq.kernel.schema.promise import Promise
from sulq.policy.columns import OPEN, ColumnPolicy
from sulq.policy.files import policy_line
from sulq.policy.identifiers import Kind, id_named, identifier, tells_people
from sulq.policy.studies import StudyPolicy, event_policy
from sulq.policy.tables import TablePolicy

LINES = 200
"""Lines that are looked at for the delimiter and the header."""
MARKS = ("?", "NA", "N/A", "n/a", "#N/A", "-", "--", "NULL", "null", "NaN", "nan", ".", "*")
"""Fields that stand for "missing" in text as in numbers; words such as None may be values."""
FORMS = (
    "%d.%m.%Y",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%d.%m.%y",
    "%m/%d/%y",
    "%d/%m/%y",
    "%d %b %Y",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%d %B %Y",
)
TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p")
CellKind = Literal["empty", "flag", "whole", "real", "date", "time", "text"]

_INTEGER = re.compile(r"[+-]?\d+")
_REAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|nan)", re.IGNORECASE)
_COMMA = re.compile(r"[+-]?\d+(,\d+)?")
_GROUPED = {
    ",": re.compile(r"[+-]?\d{1,3}(,\d{3})*(\.\d+)?"),
    ".": re.compile(r"[+-]?\d{1,3}(\.\d{3})*(,\d+)?"),
}
_DAY = re.compile(r"\d{4}[-/]\d{1,2}[-/]\d{1,2}")
_MOMENT = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}[ T]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?( ?Z|[+-]\d\d:?\d\d)?"
)
_DATED = re.compile(r"\d{1,2}[./ -](\d{1,2}|[A-Za-z]{3,9})[./ -](\d{4}|\d{2})\b")
_TRUE, _FALSE = (set(re.findall(r"'(\w+)'", words)) for words in (TRUE, FALSE))


@dataclass(frozen=True, slots=True)
class SurveyedColumn:
    """What a column holds, and how its numbers or dates are spelled."""

    kind: CellKind
    decimal: str = "."
    thousands: str = ""
    dates: str = ""
    doubtful: bool = False
    """Day and month can be told apart by no value."""


def sniff_lines(path: Path, names: Sequence[str] = ()) -> CsvFile:
    """Encoding, delimiter and header of a CSV file; `names` are given for one without a header."""
    encoding = _encoding(path)
    lines = _first_lines(path, encoding)
    if not lines:
        raise InvalidQuery(f"{path.name} is empty: a table needs a header line and rows")
    delimiter, trim = _delimiter(lines)
    said = [[field.strip() for field in split_line(line, delimiter)] for line in lines]
    first = said[0]
    header = not names and _is_header(said)
    usual = Counter(map(len, said[1:])).most_common(1)
    width = len(first) if header or not usual else usual[0][0]
    called = list(names) or (_repaired(first) if header else _numbered(width))
    plain = header and called == first
    own = max(DELIMITERS, key=lines[0].count)  # what a file without a declaration is read by
    ending = path.name.endswith((".csv", ".csv.gz"))
    return CsvFile(
        path,
        None if plain and ending and delimiter == own == "," else delimiter,
        trim=trim,
        encoding=encoding,
        header=header or bool(names and _is_header(said)),
        names=() if plain else tuple(called),
    )


def _encoding(path: Path) -> str:
    """UTF-8 if all of it is that; else what Western programs write."""
    decoder, fits, defined, first = codecs.getincrementaldecoder("utf-8")(), True, True, True
    trouble = False
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            while block := file.read(BLOCK):
                if first and block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                    return "utf-16"
                first = False
                if fits:
                    try:
                        decoder.decode(block)
                    except UnicodeDecodeError:
                        fits = False
                defined = defined and not re.search(b"[\x81\x8d\x8f\x90\x9d]", block)
    except (OSError, EOFError):
        trouble = True
    if trouble:
        raise InvalidQuery(f"{path.name} cannot be read to its end; check the file")
    return "utf-8" if fits else "cp1252" if defined else "latin-1"


def _first_lines(path: Path, encoding: str) -> list[str]:
    codec = "utf-8-sig" if encoding == "utf-8" else encoding
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding=codec, errors="replace", newline=None) as file:
        found = (file.readline(BLOCK).rstrip("\n") for _ in range(LINES))
        return [line for line in islice(found, LINES) if line.strip()]


def _delimiter(lines: Sequence[str]) -> tuple[str, bool]:
    """The mark that cuts most lines into as many fields as the first, and whether to trim."""

    def score(mark: str) -> tuple[int, int]:
        width = len(split_line(lines[0], mark))
        alike = sum(len(split_line(line, mark)) == width for line in lines)
        return (alike if width > 1 else 0), width

    best = max(DELIMITERS, key=score)
    if score(best)[0] == 0:
        return ",", False
    spaced = f"{best} "
    fields = [field for line in lines for field in split_line(line, best)]
    if best != "\t" and score(spaced)[0] >= score(best)[0] and score(spaced)[1] == score(best)[1]:
        return spaced, False
    return best, any(field != field.strip() for field in fields)


def _is_header(lines: Sequence[Sequence[str]]) -> bool:
    """Return False if the first line reads as a row: numbers over numbers, or texts that recur."""
    first, rows = lines[0], [row for row in lines[1:] if len(row) == len(lines[0])]
    if not rows:
        return not any(map(_REAL.fullmatch, first))
    below = [[row[at] for row in rows if row[at] not in ("", *MARKS)] for at in range(len(first))]
    numeric = [bool(held) and sniff_column(held).kind not in ("text", "flag") for held in below]
    number = [_REAL.fullmatch(field) or _DAY.match(field) for field in first]
    if any(over and not its for over, its in zip(numeric, number, strict=True)):
        return True  # a word over numbers
    if any(number):
        return False
    return not all(field in held for field, held in zip(first, below, strict=True))


def _repaired(names: Sequence[str]) -> list[str]:
    """Names that are all different; an empty one is called by its place."""
    found: list[str] = []
    for at, name in enumerate(names, start=1):
        called, number = name or f"column_{at}", 1
        while called.casefold() in {other.casefold() for other in found}:
            number += 1
            called = f"{name or 'column'}_{number}"
        found.append(called)
    return found


def _numbered(count: int) -> list[str]:
    return [f"column_{at}" for at in range(1, count + 1)]


def sniff_column(values: Sequence[str], european: bool = False) -> SurveyedColumn:
    """What at least nine in ten of the values are; missing marks are not counted.

    `european`: day first, where no value tells.
    """
    held = [value for value in map(str.strip, values) if value and value not in MARKS]
    if not held:
        return SurveyedColumn("empty")

    def most(fits: Sequence[object]) -> bool:
        return 10 * sum(map(bool, fits)) >= 9 * len(held)

    words = {value.lower() for value in held}
    if words <= _TRUE | _FALSE and words & _TRUE and words & _FALSE:
        return SurveyedColumn("flag")
    if most([_INTEGER.fullmatch(value) for value in held]):
        return SurveyedColumn("whole")
    if most([_REAL.fullmatch(value) for value in held]):
        return SurveyedColumn("real")
    if most([_DAY.fullmatch(value) for value in held]):
        return SurveyedColumn("date")
    if most([_DAY.fullmatch(value) or _MOMENT.fullmatch(value) for value in held]):
        return SurveyedColumn("time")
    comma = most([_COMMA.fullmatch(value) for value in held])
    if comma and (european or any(re.match(r"[+-]?0\d*,", value) for value in held)):
        return SurveyedColumn("real", decimal=",")
    for mark, pattern in _GROUPED.items():
        decimal = "." if mark == "," else ","
        if most([pattern.fullmatch(value) for value in held]) and (
            mark == "," or any("," in value and "." in value for value in held)
        ):
            broken = any(decimal in value for value in held)
            return SurveyedColumn("real" if broken else "whole", decimal, mark)
    if comma:
        return SurveyedColumn("real", decimal=",")
    return _dated(held, european)


def _dated(held: Sequence[str], european: bool) -> SurveyedColumn:
    """The form that reads nine in ten; of several the one that reads most."""
    some = held[:100]
    found: dict[str, int] = {}
    if sum(map(bool, map(_DATED.match, some))) * 10 < 9 * len(some):
        return SurveyedColumn("text")
    for form in (day + time for day in FORMS for time in TIMES):
        if sum(_reads(value, form) for value in some) * 10 >= 9 * len(some):
            found[form] = sum(_reads(value, form) for value in held)
    if not found:
        return SurveyedColumn("text")
    most = max(found.values())
    best = [form for form, count in found.items() if count == most]
    chosen = best[0]
    if european and any(form.startswith("%d") for form in best):
        chosen = next(form for form in best if form.startswith("%d"))
    kind: CellKind = "time" if "%M" in chosen else "date"
    doubtful = len({form[:2] for form in best}) > 1
    return SurveyedColumn(kind, dates=chosen, doubtful=doubtful)


def _reads(value: str, form: str) -> bool:
    try:
        datetime.datetime.strptime(value, form)
    except ValueError:
        return False
    return True


# Find out once, for its owner, how a CSV file is to be read.
#
# `sniff_lines` finds encoding, delimiter and header from the file's first lines; `sniff_column`
# tells from some of a column's values what it holds and how it is spelled. `sulq init` writes what
# they find into the policy, where the owner reviews it; nothing is sniffed when a table is opened.


SUGGESTED = Promise(1, "1e-6", 1000)
MOST_PROPOSED = 100
"""More distinct values than this are proposed as open text."""
REAL = {"FLOAT", "DOUBLE", "DECIMAL"}
WHEN = {"DATE", *TIMESTAMPS}
TEXT = {"VARCHAR", "ENUM"}
SERVERS = ("postgresql://", "postgres://")
KINDS = {
    **dict.fromkeys(("int2", "int4", "int8"), "BIGINT"),
    **dict.fromkeys(("float4", "float8", "numeric"), "DOUBLE"),
    **dict.fromkeys(("text", "varchar", "bpchar", "enum"), "VARCHAR"),
    **dict.fromkeys(("timestamp", "timestamptz"), "TIMESTAMP"),
    "date": "DATE",
    "bool": "BOOLEAN",
}
"""PostgreSQL's types by the names of a file's."""
LOOK_SECONDS = 60
ENDINGS = (".parquet", ".csv", ".csv.gz")
OTHER_ENDINGS = (".xlsx", ".tsv", ".tsv.gz", ".tab", ".txt", ".txt.gz", ".data", ".data.gz")
"""Files that are read if the policy declares how; `sulq init` does."""
NUMBERS = "coalesce(sum(n) FILTER (TRY_CAST(trim(value) AS DOUBLE) IS NOT NULL), 0)"
MOST_COUNTED = 1_000_000
"""Different values of a Parquet file's column that are all counted; of more, some are."""
SAMPLE = 500
"""Most frequent values of a column that tell what it holds; the others are counted."""
CODE_ROWS = 20
"""An id-named column whose values have more rows than this on average is a code."""
MAX_ROWS = 4
"""Rows of a person that count, unless the owner says otherwise: a constant, not from rows."""


class Survey:
    """A file, opened by its owner to write its policy; nothing of it is kept.

    A CSV file or a workbook is read as declared, if it comes as `CsvFile` or `XlsxFile`; else the
    survey finds out how to read it. `source` is then what to open, and what to write into a policy.
    """

    def __init__(
        self,
        source: str | Path | CsvFile | XlsxFile,
        *,
        names: Sequence[str] = (),
        sheet: str | None = None,
    ) -> None:
        declared = isinstance(source, CsvFile | XlsxFile)
        self.path = Path(source.path if isinstance(source, CsvFile | XlsxFile) else source)
        if not self.path.is_file():
            raise InvalidQuery(f"there is no file {self.path}")
        if not declared and not self.path.name.lower().endswith((*ENDINGS, *OTHER_ENDINGS)):
            raise InvalidQuery(
                f"{self.path.name!r} should end in .parquet, .xlsx or a name of CSV:"
                f" {', '.join((*ENDINGS[1:], *OTHER_ENDINGS[1:]))}"
            )
        self._connection = duckdb.connect(":memory:")
        self._notes = dict[str, str]()
        self.source: CsvFile | XlsxFile | None = None
        self._counted = dict[str, Counts]()
        try:
            self._ask("SET temp_directory = ''")
            if self.path.suffix == ".parquet" and not declared:
                quoted = Dialect.text(str(self.path))
                scan = f"read_parquet({quoted}, hive_partitioning = false)"
                self._ask(f"CREATE VIEW source AS SELECT * FROM {scan}")
                self.types = {str(row[0]): str(row[1]) for row in self._ask("DESCRIBE source")}
            else:
                self._read_text(source, names, sheet)
        except BaseException:
            self._connection.close()
            raise

    def _read_text(
        self, source: str | Path | CsvFile | XlsxFile, names: Sequence[str], sheet: str | None
    ) -> None:
        """Hold every field as text; find out what the columns hold, and how they are spelled."""
        found = source
        if not isinstance(found, CsvFile | XlsxFile):
            if self.path.suffix.lower() == ".xlsx":
                found = XlsxFile(self.path, _one_sheet(self.path, sheet))
            else:
                found = sniff_lines(self.path, names)
        with as_text(found) as (rules, place):
            reader = rules.reader(place)
            if self._try(f"CREATE TABLE fields AS {reader}") is None:
                raise InvalidQuery(rules.complaint(place))
        self._columns = [str(row[0]) for row in self._ask("DESCRIBE fields")]
        european = rules.delimiter == ";"
        sniffed, marks = dict[str, SurveyedColumn](), set[str]()
        for name in self._columns:
            sniffed[name], seen = self._sniffed(name, european)
            marks |= seen
        if not isinstance(source, CsvFile | XlsxFile):
            found = self._spelled(found, sniffed, marks)
        self.source = found
        with_rules = CsvFile(
            path="",
            delimiter=",",
            decimal=found.decimal,
            thousands=found.thousands,
            dates=found.dates,
            missing=found.missing,
            trim=found.trim,
        )
        self.types = {}
        typed = []
        for name, column in sniffed.items():
            self.types[name], sql = self._typed(name, column, with_rules)
            typed.append(f"{sql} AS {Dialect.name(name)}")
        self._ask(f"CREATE VIEW source AS SELECT {', '.join(typed)} FROM fields")
        if isinstance(found, CsvFile) and found == CsvFile(found.path):
            self.source = None  # read as every CSV file is

    def _sniffed(self, name: str, european: bool) -> tuple[SurveyedColumn, set[str]]:
        """What a column holds, and the missing marks in it."""
        x = Dialect.name(name)
        self._ask(
            "CREATE OR REPLACE TEMP TABLE found AS SELECT trim(value) AS value, sum(n) AS n FROM"
            f" (SELECT {x} AS value, count(*) AS n FROM fields GROUP BY 1) WHERE value IS NOT NULL"
            " GROUP BY 1"
        )
        listed = ", ".join(map(Dialect.text, MARKS))
        sample = self._ask(f"SELECT value FROM found ORDER BY n DESC, value LIMIT {SAMPLE}")
        values = [str(row[0]) for row in sample]
        column = sniff_column(values, european)
        marks = {str(row[0]) for row in self._ask(f"FROM found WHERE value IN ({listed})")}
        if column.kind == "text" and 2 * sum(_is_code(value) for value in values) > len(values):
            marks.discard("NA")  # Namibia
        missing = f"value NOT IN ({listed})"
        counts = self._ask(
            f"SELECT count(*), coalesce(sum(n), 0), {NUMBERS} FROM found WHERE {missing}"
        )[0]
        self._counted[name] = Counts(int(counts[0]), int(counts[1]), int(counts[2]))
        if column.kind in ("whole", "real", "date", "time"):
            rules = CsvFile(
                path="",
                delimiter=",",
                decimal=column.decimal,
                thousands=column.thousands,
                dates=column.dates or (),
            )
            kind, sql = self._typed("value", column, rules)
            read = f"sum(n) FILTER (({sql}) IS NOT NULL)"
            good = int(self._ask(f"SELECT {read} FROM found WHERE {missing}")[0][0] or 0)
            if 10 * good < 9 * int(counts[1]):
                column = SurveyedColumn("text")
            elif kind == "BIGINT" and self._ask(
                f"SELECT count(*) FROM found WHERE {missing} AND ({sql}) IS NULL"
                f" AND ({rules.spelling.number('value')}) IS NOT NULL"
            )[0] != (0,):
                column = replace(column, kind="real")
        return column, marks

    def _spelled(
        self, found: CsvFile | XlsxFile, sniffed: dict[str, SurveyedColumn], marks: set[str]
    ) -> CsvFile | XlsxFile:
        """The rules that read most columns; columns spelled otherwise become text, with a note."""
        numbers = [c for c in sniffed.values() if c.kind in ("whole", "real")]
        votes = Counter(
            (c.decimal, c.thousands) for c in numbers if c.kind == "real" or c.thousands
        )
        decimal, thousands = votes.most_common(1)[0][0] if votes else (".", "")
        if not thousands:
            thousands = next((t for d, t in votes if d == decimal and t), "")
        for name, column in sniffed.items():
            other = column.decimal != decimal or column.thousands not in ("", thousands)
            if (
                column.kind in ("whole", "real")
                and other
                and (column.kind == "real" or column.thousands)
            ):
                self._notes[name] = (
                    f"{name} holds numbers with another decimal mark than the other columns, and"
                    " is read as text"
                )
                sniffed[name] = SurveyedColumn("text")
            if column.doubtful:
                self._notes[name] = (
                    f"{name}: no date tells whether the day or the month comes first. It is read as"
                    f" {column.dates}; change `dates` if that is wrong"
                )
        dates = tuple(dict.fromkeys(c.dates for c in sniffed.values() if c.dates))
        missing = tuple(mark for mark in MARKS if mark in marks)
        return replace(found, decimal=decimal, thousands=thousands, dates=dates, missing=missing)

    def _typed(self, name: str, column: SurveyedColumn, rules: CsvFile) -> tuple[str, str]:
        """The DuckDB type of a column, and the expression that reads it."""
        x, spelling = Dialect.name(name), rules.spelling
        marks = ", ".join(map(Dialect.text, ("", *rules.missing)))
        known = f"CASE WHEN trim({x}) NOT IN ({marks}) THEN {x} END"
        match column.kind:
            case "flag":
                return "BOOLEAN", read_text(Flag(name), x)[0]
            case "whole":
                if not rules.thousands and rules.decimal == ".":
                    return "BIGINT", f"TRY_CAST(trim({x}) AS BIGINT)"
                return "BIGINT", f"TRY_CAST({spelling.number(x)} AS BIGINT)"
            case "real":
                return "DOUBLE", spelling.number(x)
            case "date":
                return "DATE", spelling.moment(x, f"TRY_CAST(trim({x}) AS DATE)", "DATE")
            case "time":
                zoned = f"CAST(TRY_CAST(trim({x}) AS TIMESTAMP WITH TIME ZONE) AS TIMESTAMP)"
                return "TIMESTAMP", spelling.moment(x, zoned, "TIMESTAMP")
        return "VARCHAR", known

    def rows(self) -> int:
        """How many rows the file has: the public n under replace."""
        return int(self._ask("SELECT count(*) FROM source")[0][0])

    def read_through(self) -> None:
        """Read every value of every column; `InvalidQuery` where that cannot be done."""
        self._ask("SELECT bit_xor(hash(COLUMNS(*))) FROM source")

    def policy(
        self, name: str, source: str, ledger: str, *, from_data: bool
    ) -> tuple[TablePolicy, dict[str, str]]:
        """The table to review, and the comments that go with its columns."""
        columns = []
        kinds = {column: held.split("(")[0] for column, held in self.types.items()}
        counts = {column: self._counts(column, kind) for column, kind in kinds.items()}
        drafted, notes = _drafted(kinds, counts)
        for column, facts in drafted.items():
            kind = kinds[column]
            if kind in TEXT and 2 * counts[column].numbers > counts[column].values:
                notes[column] = (
                    f"{column} is text, though much of it reads as numbers. Declare a number,"
                    f' "{column}" = {{number = [low, high]}}, and whatever does not read as one'
                    " (NA, n/a, an empty field) is NULL"
                )
            if counts[column].flag:
                facts = {"flag": True}
            if from_data and facts != {"flag": True}:
                facts = {**self._proposed(column, kind), "proposed": True}
            columns.append(ColumnPolicy(column, facts))
        unit = _unit({c: found for c, found in counts.items() if _can_be_unit(kinds[c])})
        drawn = TablePolicy(
            name=name,
            source=source,
            ledger=ledger,
            promise=SUGGESTED,
            columns=tuple(columns),
            unit=unit or "row",
            max_rows=MAX_ROWS if unit else 1,
            reading=self.source,
        )
        return drawn, {**notes, **self._notes}

    def tells(self, column: str) -> Counts | None:
        """What a column that may say whose a row is holds; None if there is no such column."""
        kind = self.types.get(column, "").split("(")[0]
        return self._counts(column, kind) if _can_be_unit(kind) else None

    def _counts(self, column: str, kind: str) -> Counts:
        """The counts of a column; of a Parquet file only where values may tell rows apart."""
        if column in self._counted:
            return self._counted[column]
        if kind not in INTEGERS | TEXT | {"UUID"}:
            return Counts(0, 0, 0)
        x = Dialect.name(column)
        # of very many values some are counted, taken by their hash, so that memory is enough
        about = int(self._ask(f"SELECT approx_count_distinct({x}) FROM source")[0][0])
        parts = max(1, about // MOST_COUNTED)
        some = f" WHERE hash({x}) % {parts} = 0" if parts > 1 else ""
        found = f"SELECT CAST({x} AS VARCHAR) AS value, count(*) AS n FROM source{some} GROUP BY 1"
        flag = "coalesce(bool_and(value IN ('0', '1')) AND count(*) = 2, FALSE)"
        distinct, values, numbers, is_flag = self._ask(
            f"SELECT count(*), coalesce(sum(n), 0), {NUMBERS}, {flag} FROM ({found})"
            " WHERE value IS NOT NULL"
        )[0]
        flagged = kind in INTEGERS and is_flag
        return Counts(parts * int(distinct), parts * int(values), parts * int(numbers), flagged)

    def _proposed(self, column: str, kind: str) -> dict[str, Any]:
        x = Dialect.name(column)
        if kind in TEXT:
            found = self._ask(
                f"SELECT DISTINCT {x} FROM source WHERE {x} IS NOT NULL ORDER BY 1"
                f" LIMIT {MOST_PROPOSED + 1}"
            )
            values = [str(row[0]) for row in found]
            return {"category": values} if 0 < len(values) <= MOST_PROPOSED else {"text": True}
        where = f" WHERE isfinite({x})" if kind in WHEN | {"FLOAT", "DOUBLE"} else ""
        low, high = self._ask(f"SELECT min({x}), max({x}) FROM source{where}")[0]
        if low is None:
            return {"number": [OPEN, OPEN]}
        if kind in WHEN:
            return {"number": _whole_years(low, high, kind)}
        if kind in INTEGERS:
            return {"number": _outward(low, high), "step": 1}
        return {"number": _outward(low, high)}

    def _try(self, sql: str) -> list[Any] | None:
        """The engine's own words may quote rows: they are dropped."""
        found: list[Any] | None = None
        try:
            found = self._connection.execute(sql).fetchall()
        except duckdb.Error:
            found = None
        return found

    def _ask(self, sql: str) -> list[Any]:
        found = self._try(sql)
        if found is None:
            raise InvalidQuery(f"{self.path.name} cannot be read; give a Parquet file or CSV")
        return found

    def close(self) -> None:
        self._connection.close()


@dataclass(frozen=True, slots=True)
class Counts:
    """Of one column, for the owner's eyes: different values, values that are not missing, those of
    them that read as numbers, and whether a whole number is 0 or 1 throughout."""

    distinct: int
    values: int
    numbers: int
    flag: bool = False


def study_policy(
    name: str, surveys: Mapping[str, tuple[Survey, str]], *, from_data: bool
) -> tuple[StudyPolicy, dict[str, str]]:
    """A study of several files to review, and comments by table.column.

    `surveys` has the survey of each table and its source as the policy writes it.
    """
    persons = _person_columns({table: survey for table, (survey, _) in surveys.items()})
    ledger, drafts, notes, once = f"{name}.ledger", {}, dict[str, str](), {}
    for table, (survey, source) in surveys.items():
        person = persons[table]
        draft, said = survey.policy(table, source, ledger, from_data=from_data)
        columns = tuple(column for column in draft.columns if column.name != person)
        drafts[table] = replace(draft, columns=columns, unit=person, max_rows=MAX_ROWS)
        notes |= {f"{table}.{key}": note for key, note in said.items() if key != person}
        counts = survey.tells(person)
        if counts is not None and counts.distinct == counts.values:
            once[table] = counts.values
    if not once:
        raise InvalidQuery(
            f"in every file some {' or '.join(dict.fromkeys(persons.values()))} has several rows,"
            " and a study needs one table with a row for each person: make such a file, also if it"
            " has few columns"
        )
    first = max(once, key=lambda table: once[table])
    shared = {key: getattr(drafts[first], key) for key in TablePolicy.__dataclass_fields__}
    events = tuple(event_policy(drafts[table]) for table in drafts if table != first)
    made = StudyPolicy(**{**shared, "name": name, "max_rows": 1}, person_table=first, events=events)
    return made, notes


def _person_columns(surveys: Mapping[str, Survey]) -> dict[str, str]:
    """The column that says whose a row is, of each file: one name for all, or each its own."""
    found = {
        table: [column for column in survey.types if survey.tells(column) and tells_people(column)]
        for table, survey in surveys.items()
    }
    first, *rest = found.values()
    shared = [column for column in first if all(column in others for others in rest)]
    if shared:
        return dict.fromkeys(surveys, max(shared, key=tells_people))
    lacking = sorted(table for table, columns in found.items() if not columns)
    if lacking:
        raise InvalidQuery(
            f"no column says in {lacking} whose a row is, such as patient_id, in whole numbers or"
            " text; give it a name that says so, or init each file alone"
        )
    return {table: max(columns, key=tells_people) for table, columns in found.items()}


def _one_sheet(path: Path, sheet: str | None) -> str:
    there = sheets(path)
    if sheet is None and len(there) != 1:
        raise InvalidQuery(f"{path.name} has the sheets {there!r:.400}; say which with --sheet")
    return sheet or there[0]


def _is_code(value: str) -> bool:
    return len(value) == 2 and value.isalpha() and value.isupper()


def _can_be_unit(kind: str) -> bool:
    return kind in PERSON_TYPES


def server_policy(address: str, name: str | None = None) -> tuple[TablePolicy, dict[str, str]]:
    """The same for a table in PostgreSQL, from the catalogue's types: no row is read."""
    if not address.lower().startswith(SERVERS):
        raise InvalidQuery(
            "a policy is drafted from a file here, or from a table in PostgreSQL; for another"
            " address draft it from a copy of the file, and write the address as its source"
        )
    place = read_address(address)
    called = name or re.sub(r"\W+", "_", place.table)
    drafted, notes = _drafted(
        {column: KINDS.get(kind, kind) for column, kind in _types(place).items()}
    )
    columns = tuple(ColumnPolicy(column, facts) for column, facts in drafted.items())
    return TablePolicy(
        name=called, source=address, ledger=f"{called}.ledger", promise=SUGGESTED, columns=columns
    ), notes


def _types(place: PostgresAddress) -> dict[str, str]:
    sessions = PostgresSessions(place, None)
    unread = ""
    try:
        with sessions.reading(LOOK_SECONDS) as cursor:
            catalogue, _ = look(cursor, place)
    except SulqError:
        raise
    except Exception as error:  # noqa: BLE001 - the server's own words may quote the address
        unread = complaint(error) or UNREAD
    finally:
        sessions.close()
    if unread:
        raise InvalidQuery(unread)
    return {column.name: column.kind for column in catalogue.columns}


def _drafted(
    kinds: Mapping[str, str], counts: Mapping[str, Counts] | None = None
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """What the types say of each column, and notes on those that stay hidden."""
    drafted, notes = dict[str, dict[str, Any]](), dict[str, str]()
    for column, kind in kinds.items():
        facts = _by_type(kind)
        told = _identifying(column, kind, None if counts is None else counts[column])
        if told == "by name":
            notes[column] = f"{column} looks like an identifier and stays hidden."
            if counts is None:
                notes[column] += (
                    f' If one person may have several rows:\nunit = {{column = "{column}",'
                    f" max_rows = {MAX_ROWS}}}"
                )
        elif told == "by values" and facts is not None:
            line = policy_line(column, {**facts, "identifier_ok": True})
            notes[column] = (
                f"{column} stays hidden: nearly every row has a value of its own, and that tells"
                f" rows apart. If it is a measure, such as an income:\n{line}"
            )
        elif facts is None:
            notes[column] = f"{column} has type {kind}, which cannot be asked about: hidden"
        else:
            drafted[column] = facts
    if not drafted:
        raise InvalidQuery("there is no column that can be asked about")
    return drafted, notes


def _identifying(column: str, kind: str, counts: Counts | None) -> str | None:
    """How a column tells people or rows apart; of a small file an id's name is enough."""
    if kind == "BOOLEAN":
        return None
    if counts is None or not counts.values:  # types alone, or no value to judge by
        return "by name" if id_named(column) else None
    held: Kind = "whole" if kind in INTEGERS else "text" if kind in TEXT else "other"
    if id_named(column) and counts.distinct * CODE_ROWS > counts.values:
        return "by name"
    return identifier(column, held, counts.distinct, counts.values)


def _unit(counts: Mapping[str, Counts]) -> str | None:
    """The column whose values stand for people with several rows, if there is one."""
    repeated = [
        column
        for column, found in counts.items()
        if found.distinct < found.values and _identifying(column, "VARCHAR", found) == "by name"
    ]
    best = max(repeated, key=tells_people, default="")  # the first of the best
    return best if best and tells_people(best) else None


def _by_type(kind: str) -> dict[str, Any] | None:
    if kind == "BOOLEAN":
        return {"flag": True}
    if kind in INTEGERS:
        return {"number": [OPEN, OPEN], "step": 1}
    if kind in REAL or kind in WHEN:
        return {"number": [OPEN, OPEN]}
    return {"category": [OPEN]} if kind in TEXT else None


def _outward(low: float | int | Decimal, high: float | int | Decimal) -> list[int | Decimal]:
    """Round bounds, a little wider: two significant digits of the range."""
    width = float(high) - float(low) or max(abs(float(high)), 1.0)
    place = math.floor(math.log10(width)) - 1
    unit = Decimal(1).scaleb(place)
    bottom = math.floor(Decimal(str(low)) / unit) * unit
    top = math.ceil(Decimal(str(high)) / unit) * unit
    if bottom == top:
        top += unit
    if place >= 0:
        return [int(bottom), int(top)]
    return [bottom, top]


def _whole_years(low: Any, high: Any, kind: str) -> list[datetime.date]:
    first, last = int(low.year), min(int(high.year) + 1, 9999)
    if kind == "DATE":
        return [datetime.date(first, 1, 1), datetime.date(last, 1, 1)]
    return [datetime.datetime(first, 1, 1), datetime.datetime(last, 1, 1)]
