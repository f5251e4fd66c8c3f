"""CSV as the owner declares it: what is declared is what is read, or a line number and a reason."""

from __future__ import annotations

import csv
import datetime
import gzip
import hashlib
import math
import re
import traceback
from pathlib import Path
from random import Random
from typing import Any

import pytest

from sulq.database import Database
from sulq.errors import InvalidQuery, Refused
from sulq.kernel.engines.duckdb.csv_files import CsvFile, split_line
from sulq.kernel.engines.engine import open_engine
from sulq.kernel.schema.columns import Category, Column, Number, Schema
from sulq.kernel.schema.program import Always, CategoryCells, Fixed, Quantised, RowSums
from sulq.kernel.schema.promise import Promise

X = Number("x", 0, 100)


def written(tmp_path: Path, content: str | bytes, name: str = "t.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def total(source: object, column: Column = X, low: float = 0.0, high: float = 100.0) -> list[int]:
    """How many rows, and the sum of the column in hundredths."""
    engine = open_engine(source, Schema(column))
    try:
        leaf = Quantised(column.name, low, high, 100.0)
        return engine.exact_sums(RowSums(Always(), (Fixed(1), leaf)))
    finally:
        engine.close()


def days(source: object) -> list[int]:
    """The days since 1970 of a column `d`, added up."""
    column = Number("d", datetime.date(1970, 1, 1), datetime.date(2099, 1, 1))
    engine = open_engine(source, Schema(column))
    try:
        return engine.exact_sums(RowSums(Always(), (Fixed(1), Quantised("d", 0, 50000.0, 1.0))))
    finally:
        engine.close()


def names(source: object, *values: str) -> list[int]:
    """How many rows of a column `c` hold each of the values."""
    engine = open_engine(source, Schema(Category("c", list(values))))
    try:
        cells = CategoryCells("c", values, other=False)
        return engine.exact_sums(RowSums(Always(), (Fixed(1),), (cells,)))
    finally:
        engine.close()


@pytest.mark.parametrize(
    ("content", "rules"),
    [
        ("x, y\n1, a\n2.5, b\n", {"delimiter": ", "}),
        ('x, y\n1, "a, b"\n2.5, b\n', {"delimiter": ", "}),
        ("x, y\n1,a\n2.5 , b\n", {"trim": True}),
        ("x\ty\n1\ta\n2.5\tb\n", {"delimiter": "\t"}),
        ("x;y\n1;a\n2,5;b\n", {"delimiter": ";", "decimal": ","}),
        ("x;y\n1;a\n2,5;b\n1.5;c\n", {"delimiter": ";", "decimal": ","}),  # a point is no number
        ('x,y\n"1",a\n"2,5",b\n', {"decimal": ","}),
        ("1|a\n2.5|b\n", {"delimiter": "|", "header": False, "names": ["x", "y"]}),
        ("u,v\n1,a\n2.5,b\n", {"names": ["x", "y"]}),
        ("x,y\r\n1,a\r\n2.5,b\r\n", {}),
        ("x,y\n1,a\n\n2.5,b\n\n", {}),
    ],
)
def test_declared_files_give_the_same_numbers(
    tmp_path: Path, content: str, rules: dict[str, Any]
) -> None:
    rows, found = total(CsvFile(written(tmp_path, content), **rules))
    assert found == 350
    assert rows == 2 + ("1.5;c" in content)


def test_thousands_are_read_where_they_are_declared(tmp_path: Path) -> None:
    path = written(tmp_path, 'x\n"1,234.5"\n"12,34"\n7\n')
    wide = Number("x", 0, 10_000)
    assert total(CsvFile(path, thousands=","), wide, high=10_000.0) == [3, 124_150]
    assert total(path, wide, high=10_000.0) == [3, 700]
    path = written(tmp_path, "x;y\n1.234,5;a\n7;a\n")
    rules = CsvFile(path, delimiter=";", decimal=",", thousands=".")
    assert total(rules, wide, high=10_000.0) == [2, 124_150]


def test_declared_missing_marks_are_null(tmp_path: Path) -> None:
    path = written(tmp_path, "c,n\n?,1\n ?,2\na,3\nNA,4\n")
    assert names(CsvFile(path, missing=["?"]), "?", "a", "NA") == [0, 1, 1]
    assert names(CsvFile(path, missing=["?", "NA"]), "?", "a", "NA") == [0, 1, 0]
    assert names(path, "?", "a", "NA") == [1, 1, 1]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("%d.%m.%Y", "31.05.2016"),
        ("%m/%d/%Y", "5/31/2016"),
        ("%d/%m/%Y", "31/05/2016"),
        ("%d.%m.%y", "31.05.16"),
        ("%d %b %Y", "31 May 2016"),
        ("%d.%m.%Y %H:%M", "31.05.2016 23:59"),
    ],
)
def test_declared_dates(tmp_path: Path, form: str, text: str) -> None:
    day = (datetime.date(2016, 5, 31) - datetime.date(1970, 1, 1)).days
    one = text.replace("31", "01")
    path = written(tmp_path, f"d,c\n{text},a\n{one},b\nxx,c\n2016-05-31,d\n")
    assert days(CsvFile(path, dates=form)) == [4, day + day - 30 + day]  # ISO is always read
    assert days(path) == [4, day]


@pytest.mark.parametrize(
    "text", ["infinity", "epoch", "31.05.16", "00.05.2016", "32.05.2016", "31.05.20161", "\u0661"]
)
def test_what_is_no_date_of_the_declared_form_is_null(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, f"d,c\n{text},a\n01.01.1970,b\n")
    rows, found = days(CsvFile(path, dates="%d.%m.%Y"))
    assert rows == 2
    assert found == (50_000 if text == "infinity" else 0)  # beyond the bound, as everywhere


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-8"])
@pytest.mark.parametrize("zipped", [False, True])
def test_encodings(tmp_path: Path, encoding: str, zipped: bool) -> None:
    raw = "c;d\nMünchen;a\nOrléans;b\n".encode(encoding)
    path = written(tmp_path, gzip.compress(raw) if zipped else raw, "t.csv.gz" if zipped else "t")
    source = CsvFile(path, delimiter=";", encoding=encoding)
    assert names(source, "München", "Orléans") == [1, 1]


# --- what cannot be read is refused to the owner ---

SECRET = "hidden-4711"


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        (f"x,y\n1,a\n{SECRET}\n2,b\n", 3, "has 1 field between ',', line 1 has 2 fields"),
        (f"x,y\n1,a\n2,b\n3,{SECRET},c\n", 4, "has more than the 2 fields of line 1"),
        (f'x,y\n1,a\n2,"{SECRET}\n', 3, "quotation mark"),
        (f'x,y\n1,a\n2,"{SECRET}"z\n', 3, "quotation mark"),
        (f'x,y\n1,"a\nb"\n{SECRET}\n', 4, "has 1 field"),  # lines as an editor counts them
        (f"y,x\n1,{SECRET}".encode() + b"\xff\xfe\n", 2, "is not UTF-8"),
        (f"x,y\n1,{SECRET}".encode() + b"\x00\n", 2, "NUL byte"),
        (b"\xef\xbb\xbfx,y\n1,2\n\n\n" + SECRET.encode(), 5, "has 1 field"),  # a byte order mark
        (f"x,y\r\n1,a\r\n2,{SECRET}\n3,b\r\n", 3, "line break"),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_a_fault_is_told_with_its_line_and_never_its_text(
    tmp_path: Path, content: str | bytes, line: int, reason: str, zipped: bool
) -> None:
    raw = content.encode() if isinstance(content, str) else content
    name = "t.csv.gz" if zipped else "t.csv"
    path = written(tmp_path, gzip.compress(raw) if zipped else raw, name)
    with pytest.raises(InvalidQuery) as caught:
        total(path)
    told = "".join(traceback.format_exception(caught.value))
    assert f"{name}: line {line} " in str(caught.value)
    assert reason in str(caught.value)
    assert SECRET not in told
    assert caught.value.__context__ is None


def test_the_line_is_found_far_down(tmp_path: Path) -> None:
    lines = [f"{i},abcdefghijklmnop" for i in range(200_000)]
    lines[150_000] += ",more"
    path = written(tmp_path, "x,y\n" + "\n".join(lines) + "\n")
    with pytest.raises(InvalidQuery, match="line 150002 has more than the 2 fields"):
        total(path)


@pytest.mark.parametrize(("encoding", "bad"), [("cp1252", b"\x81"), ("utf-16", b"\xd8")])
def test_bytes_that_an_encoding_does_not_have(tmp_path: Path, encoding: str, bad: bytes) -> None:
    raw = f"x\n1\n2\n{SECRET}".encode(encoding) + bad
    with pytest.raises(InvalidQuery, match=r"t\.csv: line 4 holds bytes") as caught:
        total(CsvFile(written(tmp_path, raw), encoding=encoding))
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_names_with_blanks_say_what_to_declare(tmp_path: Path) -> None:
    path = written(tmp_path, "y, x\na, 1\n")
    with pytest.raises(InvalidQuery, match=r'declare csv = \{delimiter = ", "\}'):
        total(path)


@pytest.mark.parametrize(
    "rules",
    [
        {"delimiter": ""},
        {"delimiter": '"'},
        {"delimiter": "abc"},
        {"delimiter": "\n"},
        {"decimal": ";"},
        {"thousands": "."},
        {"thousands": "x"},
        {"dates": "%Q"},
        {"dates": "%d.%m"},
        {"dates": "%d.%m.%Y.%d"},
        {"dates": 4},
        {"encoding": "ebcdic"},
        {"header": False},
        {"header": 1},
        {"names": ["a", "A"]},
        {"names": ["a", ""]},
        {"missing": [1]},
        {"decimal": ",", "thousands": ","},
    ],
)
def test_rules_that_mean_nothing_are_refused(rules: dict[str, Any]) -> None:
    with pytest.raises(InvalidQuery):
        CsvFile("t.csv", **rules)


def test_unknown_rules_are_refused() -> None:
    with pytest.raises(InvalidQuery, match=r"unknown \['sep'\]"):
        CsvFile.read("t.csv", {"sep": ";"})


def test_rules_are_part_of_the_fingerprint_and_defaults_are_not(tmp_path: Path) -> None:
    path = written(tmp_path, "x,c\n1,a\n")

    def print_of(source: object) -> str:
        engine = open_engine(source, Schema(X))
        engine.close()
        return engine.fingerprint()

    plain = print_of(path)
    assert print_of(CsvFile(path)) == plain  # files published before rules could be declared
    found = {
        print_of(CsvFile(path, **rules))
        for rules in (
            {"missing": "?"},
            {"missing": "NA"},
            {"delimiter": ","},
            {"trim": True},
            {"decimal": ","},
        )
    }
    assert len(found | {plain}) == 6


def test_split_line_knows_long_delimiters() -> None:
    assert split_line('a, "b, ""c""", d', ", ") == ["a", 'b, "c"', "d"]
    assert split_line("a,b, c, ", ", ") == ["a,b", "c", ""]
    assert split_line('a, "b"c', ", ") == []
    assert split_line('a,"b', ",") == []


# --- whatever the fields hold ---

RULES: list[dict[str, Any]] = [
    {},
    {"decimal": ",", "dates": ["%d.%m.%Y", "%m/%d/%Y %H:%M"], "missing": ["?"]},
    {"thousands": ",", "trim": True, "dates": "%d %b %y"},
    {"decimal": ",", "thousands": ".", "missing": ["NA", "-"]},
]
WORDS = (
    "infinity",
    "-inf",
    "nan",
    "epoch",
    "?",
    "NA",
    "-",
    "1e999",
    "\u0663",
    "0x10",
    "1_0",
    "",
    '"',
    "1970-01-01 (BC)",
    "5000000-01-01",
    "294247-01-10 04:00:54.775807",
    "a\nb",
    ", ",
    "\u00a07",
)
ALPHABETS = (
    "0123456789.,+-eE ' ",
    "0123456789./- :",
    "0123456789 JanFeb-.T:Z+",
    "aé€\U0001f600\t\r; ",
)


def field(random: Random) -> str:
    if random.random() < 0.1:
        return random.choice(WORDS)
    letters = random.choice(ALPHABETS)
    return "".join(random.choice(letters) for _ in range(random.randrange(14)))


@pytest.mark.parametrize("rules", RULES)
def test_no_field_makes_a_table_fail_or_lose_a_row(tmp_path: Path, rules: dict[str, Any]) -> None:
    random, path = Random(4711), tmp_path / "t.csv"
    rows = [tuple(field(random) for _ in range(4)) for _ in range(5_000)]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerows([("x", "d", "t", "c"), *rows])
    when = datetime.datetime(2000, 1, 1), datetime.datetime(2030, 1, 1)
    day = when[0].date(), when[1].date()
    schema = Schema(X, Number("d", *day), Number("t", *when), Category("c", ["a"]))
    engine = open_engine(CsvFile(path, **rules), schema)
    try:
        others = Quantised("d", 0.0, 5e4, 1.0), Quantised("t", 0.0, 2e9, 1.0)
        terms = (Fixed(1), Quantised("x", 0.0, 100.0, 1.0), *others)
        found = engine.exact_sums(RowSums(Always(), terms))
        assert found[0] == engine.size() == len(rows)
        if rules:
            assert found[1] == sum(expected(row[0], rules) for row in rows) > 0
    finally:
        engine.close()


def expected(field: str, rules: dict[str, Any]) -> int:
    """The leaf of a number as plain Python reads it; 0 for NULL."""
    if field.strip(" \t\u00a0") in ("", *rules.get("missing", ())):
        return 0
    text = field.strip(" \t\u00a0" if rules.get("trim") else " \u00a0")
    decimal, thousands = rules.get("decimal", "."), rules.get("thousands", "")
    mark, point = re.escape(thousands), re.escape(decimal)
    whole = rf"(\d{{1,3}}({mark}\d{{3}})+|\d+)" if thousands else r"\d+"
    pattern = rf"[+-]?({whole}({point}\d*)?|{point}\d+)([eE][+-]?\d+)?"
    if not re.fullmatch(pattern, text, re.ASCII):
        return 0
    plain = text.replace(thousands, "") if thousands else text
    return math.floor(min(max(float(plain.replace(decimal, ".")), 0.0), 100.0) + 0.5)


# --- a published table ---


def test_a_table_opens_again_under_its_own_rules_only(tmp_path: Path) -> None:
    path = written(tmp_path, "x;y\n1,5;a\n2,5;b\n")
    promise, ledger = Promise(1, "1e-6", credits=100), tmp_path / "t.ledger"

    def opened(**rules: Any) -> Database:
        source = CsvFile(path, delimiter=";", decimal=",", **rules)
        return Database.open(source, Schema(X), promise, ledger, publish=True)

    opened().close()
    with opened() as database:
        bad = written(tmp_path, f"x;y\n1,5;a\n{SECRET}\n", "more.csv")
        with pytest.raises(InvalidQuery, match=r"more\.csv: line 3 has 1 field") as caught:
            database.grow(CsvFile(bad, delimiter=";", decimal=","))
        assert SECRET not in "".join(traceback.format_exception(caught.value))
        assert database.size == 2
    with pytest.raises(Refused):
        opened(missing="?")


def test_a_table_published_by_its_path_opens_as_before(tmp_path: Path) -> None:
    path = written(tmp_path, "x;y\n1;a\n2;b\n")
    promise, ledger = Promise(1, "1e-6", credits=100), tmp_path / "t.ledger"
    for source in (path, str(path), CsvFile(path)):
        with Database.open(source, Schema(X), promise, ledger, publish=True) as database:
            assert database.size == 2
    assert (
        hashlib.sha256(path.read_bytes()).hexdigest() == open_engine(path, Schema(X)).fingerprint()
    )


def test_no_rule_of_reading_makes_other_data_of_the_same_bytes(tmp_path: Path) -> None:
    """A second budget for the same people: refused, whatever the rules say."""
    people = tmp_path / "people.csv"
    people.write_text("age,ill\n" + "40,true\n" * 50, "utf-8")
    schema = Schema(Number("age", 0, 120, step=1), Category("ill", ["true"]))
    promise = Promise(1, "1e-6")
    first = Database.open(people, schema, promise, tmp_path / "one.ledger", publish=True)
    first.close()
    for other in (CsvFile(people, missing=("zzz",)), CsvFile(people, delimiter=",")):
        with pytest.raises(Refused, match="registered with another ledger"):
            Database.open(other, schema, promise, tmp_path / "two.ledger", publish=True)
        with pytest.raises(Refused, match="not what was published"):
            Database.open(other, schema, promise, tmp_path / "one.ledger", name="people")
    assert not (tmp_path / "two.ledger").exists()
