"""Find out once, for its owner, how a CSV file is to be read.

`sniff_lines` finds encoding, delimiter and header from the file's first lines; `sniff_column` tells
from some of a column's values what it holds and how it is spelled. `sulq init` writes what they
find into the policy, where the owner reviews it; nothing is sniffed when a table is opened.
"""

from __future__ import annotations

import codecs
import datetime
import gzip
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from sulq.engines.csv_files import BLOCK, DELIMITERS, CsvFile, split_line
from sulq.engines.physical import FALSE, TRUE
from sulq.errors import InvalidQuery

LINES = 200
"""Lines that are looked at for the delimiter and the header."""
MARKS = ("?", "NA", "N/A", "n/a", "#N/A", "-", "--", "NULL", "null", "NaN", "nan", ".", "*")
"""Fields that stand for "missing" in text as in numbers; words such as None may be values."""
FORMS = (
    "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d.%m.%y", "%m/%d/%y", "%d/%m/%y",
    "%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d %B %Y",
)  # fmt: skip
TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p")
Kind = Literal["empty", "flag", "whole", "real", "date", "time", "text"]

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
class Column:
    """What a column holds, and how its numbers or dates are spelled."""

    kind: Kind
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


def sniff_column(values: Sequence[str], european: bool = False) -> Column:
    """What at least nine in ten of the values are; missing marks are not counted.

    `european`: day first, where no value tells.
    """
    held = [value for value in map(str.strip, values) if value and value not in MARKS]
    if not held:
        return Column("empty")

    def most(fits: Sequence[object]) -> bool:
        return 10 * sum(map(bool, fits)) >= 9 * len(held)

    words = {value.lower() for value in held}
    if words <= _TRUE | _FALSE and words & _TRUE and words & _FALSE:
        return Column("flag")
    if most([_INTEGER.fullmatch(value) for value in held]):
        return Column("whole")
    if most([_REAL.fullmatch(value) for value in held]):
        return Column("real")
    if most([_DAY.fullmatch(value) for value in held]):
        return Column("date")
    if most([_DAY.fullmatch(value) or _MOMENT.fullmatch(value) for value in held]):
        return Column("time")
    comma = most([_COMMA.fullmatch(value) for value in held])
    if comma and (european or any(re.match(r"[+-]?0\d*,", value) for value in held)):
        return Column("real", decimal=",")
    for mark, pattern in _GROUPED.items():
        decimal = "." if mark == "," else ","
        if most([pattern.fullmatch(value) for value in held]) and (
            mark == "," or any("," in value and "." in value for value in held)
        ):
            broken = any(decimal in value for value in held)
            return Column("real" if broken else "whole", decimal, mark)
    if comma:
        return Column("real", decimal=",")
    return _dated(held, european)


def _dated(held: Sequence[str], european: bool) -> Column:
    """The form that reads nine in ten; of several the one that reads most."""
    some = held[:100]
    found: dict[str, int] = {}
    if sum(map(bool, map(_DATED.match, some))) * 10 < 9 * len(some):
        return Column("text")
    for form in (day + time for day in FORMS for time in TIMES):
        if sum(_reads(value, form) for value in some) * 10 >= 9 * len(some):
            found[form] = sum(_reads(value, form) for value in held)
    if not found:
        return Column("text")
    most = max(found.values())
    best = [form for form, count in found.items() if count == most]
    chosen = best[0]
    if european and any(form.startswith("%d") for form in best):
        chosen = next(form for form in best if form.startswith("%d"))
    kind: Kind = "time" if "%M" in chosen else "date"
    doubtful = len({form[:2] for form in best}) > 1
    return Column(kind, dates=chosen, doubtful=doubtful)


def _reads(value: str, form: str) -> bool:
    try:
        datetime.datetime.strptime(value, form)
    except ValueError:
        return False
    return True
