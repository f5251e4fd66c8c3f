"""Drafts of tables that are not published yet: what an owner typed, and what it still lacks.

A draft lies in the state directory, for owners only. Its source is a file in the directory of the
served policy, read for its types (docs/guides/console.md); no value of it is kept or shown.
"""

from __future__ import annotations

import datetime
import json
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sulq.database import Database
from sulq.errors import InvalidQuery, Refused, SulqError
from sulq.formatting import bar_text, credits_word, value_with_bar
from sulq.kernel.engines.duckdb.csv_files import CsvFile
from sulq.kernel.engines.duckdb.physical import INTEGERS
from sulq.kernel.engines.duckdb.quarantine import read_in_child
from sulq.kernel.engines.duckdb.workbooks import XlsxFile
from sulq.kernel.ledger.inspect import is_published
from sulq.kernel.ledger.state_dir import private_directory, read_private, write_private
from sulq.kernel.schema.columns import Category, Column
from sulq.kernel.schema.promise import Promise
from sulq.policy import ColumnPolicy, TablePolicy
from sulq.policy.advice import Advice, advise
from sulq.policy.columns import OPEN
from sulq.policy.files import policy_text, read_policy
from sulq.policy.survey import ENDINGS, OTHER_ENDINGS, WHEN, Survey
from sulq.server.errors import HttpProblem, not_found
from sulq.sql.evaluate.linear_forms import Estimate
from sulq.synthetic import dummy_rows

MOST_DRAFTS = 100
WEAK = 2
"""Above this epsilon a promise is weak, and wants a written reason."""
Text = Annotated[str, Field(max_length=200)]
Kind = Literal["number", "category", "flag", "text", "whole", "hidden"]
Rules = dict[
    Annotated[str, Field(max_length=20)],
    bool | Text | Annotated[list[Text], Field(max_length=1_000)],
]
"""How a file is read, as `csv` or `xlsx` of a policy has it."""
_ID = re.compile(r"[0-9a-f]{16}")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")


class DraftColumn(BaseModel):
    """What the owner says of one column; `type` is what the file says."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(min_length=1, max_length=200)]
    type: Text = ""
    kind: Kind = "hidden"
    low: Text = ""
    high: Text = ""
    values: Annotated[str, Field(max_length=20_000)] = ""
    public: bool = False
    confirmed: bool = False
    identifier_ok: bool = False
    partial: bool = False
    known: bool = False
    """Everybody may know the bounds or values, although they look as if read off the data."""


class Draft(BaseModel):
    """A table to be."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(max_length=63)] = ""
    source: Text = ""
    csv: Rules | None = None
    xlsx: Rules | None = None
    unit: Text = "row"
    max_rows: Annotated[int, Field(ge=1, le=1_000)] = 1
    columns: Annotated[list[DraftColumn], Field(max_length=1_000)] = []
    epsilon: Text = "1"
    delta: Text = "1e-6"
    queries: Annotated[int, Field(ge=1, le=10**9)] = 1_000
    neighbours: Literal["replace", "add-remove"] = "replace"
    smallest: Annotated[int, Field(ge=1, le=10**12)] = 10_000
    reason: Annotated[str, Field(max_length=500)] = ""
    rehearsed: bool = False
    apart: bool = False

    @property
    def promise(self) -> Promise:
        return Promise(self.epsilon, self.delta, self.queries, neighbours=self.neighbours)


@dataclass(frozen=True, slots=True)
class State:
    """How a column stands: ready, confirm, fix, todo or hidden; and what to do."""

    word: str
    said: str = ""


def new_draft(home: Path, source: str) -> Draft:
    """The draft that a file proposes: identifiers start hidden, one that repeats is the unit."""
    survey = _surveyed(source_in(home, source))
    try:
        name = re.sub(r"\W+", "_", source.split(".")[0]).strip("_") or "table"
        proposed, _ = survey.policy(name, source, f"{name}.ledger", from_data=False)
        kinds = {column.name: column.kind for column in proposed.columns}
        columns = [
            DraftColumn(name=column, type=held.split("(")[0].lower(), kind=_kind(kinds, column))
            for column, held in survey.types.items()
        ]
    finally:
        survey.close()
    found = proposed.reading
    rules = {} if found is None else json.loads(json.dumps(found.rules))
    return Draft(
        name=name[:63],
        source=source,
        csv=rules if isinstance(found, CsvFile) else None,
        xlsx=rules if isinstance(found, XlsxFile) else None,
        unit=proposed.unit,
        max_rows=proposed.max_rows,
        columns=columns,
    )


CHILD = """
import sys
from sulq.kernel.engines.duckdb.quarantine import in_child
from sulq.policy.survey import Survey
sys.exit(in_child(lambda source, told: Survey(source).read_through()))
"""


def _surveyed(source: Path | CsvFile | XlsxFile) -> Survey:
    """Look at a file that somebody else may have made: not first in a server, which holds ledgers,
    tokens and other tables."""
    read_in_child(source, CHILD)
    return Survey(source)


def _reading(draft: Draft) -> CsvFile | XlsxFile | None:
    if draft.xlsx is not None:
        return XlsxFile.read(draft.source, draft.xlsx)
    return None if draft.csv is None else CsvFile.read(draft.source, draft.csv)


def _file_of(path: Path, draft: Draft) -> Path | CsvFile | XlsxFile:
    declared = _reading(draft)
    return path if declared is None else replace(declared, path=path)


def _kind(kinds: Mapping[str, str], column: str) -> Kind:
    hidden = re.search(r"e-?mail|notes?$|comment|address|phone|(^|_)name$", column, re.IGNORECASE)
    found = "hidden" if hidden else kinds.get(column, "hidden")
    return found if found in ("number", "category", "flag", "text", "whole") else "hidden"  # type: ignore[return-value]


def sources(home: Path | None) -> list[str]:
    """Files that may be published: those of the policy's own directory."""
    if home is None or not home.is_dir():
        return []
    return sorted(
        entry.name
        for entry in home.iterdir()
        if entry.name.endswith((*ENDINGS, *OTHER_ENDINGS)) and entry.is_file()
    )


def source_in(home: Path, source: str) -> Path:
    """The file of that name; `InvalidQuery` for every way out of the directory."""
    path = home / source
    if Path(source).name != source or source not in sources(home):
        raise InvalidQuery(
            "the source must be a Parquet, CSV or .xlsx file in the directory of the served policy"
        )
    if path.resolve().parent != home.resolve():
        raise InvalidQuery("the source must lie in the directory of the policy, not behind a link")
    return path


def rows_of(home: Path, draft: Draft) -> int | None:
    """How many rows: public where one row is replaced, else nobody's business."""
    if draft.neighbours != "replace" or draft.unit != "row":
        return None
    survey = _surveyed(_file_of(source_in(home, draft.source), draft))
    try:
        return survey.rows()
    finally:
        survey.close()


# --- from what was typed to a policy ---


def state_of(column: DraftColumn) -> State:
    if column.kind == "hidden":
        return State("hidden")
    try:
        facts = facts_of(column)
        ready = ColumnPolicy(column.name, facts)
        if ready.lacks:
            what = "both bounds" if column.kind == "number" else "the possible values"
            return State("todo", f"Write {what}.")
        ready.column()
    except SulqError as error:
        said = str(error)
        return State("fix", f"{said[:1].upper()}{said[1:]}.")
    if column.public and not column.confirmed:
        return State("confirm")
    return State("ready")


def facts_of(column: DraftColumn) -> dict[str, Any]:
    """As the policy file has it; `?` where something is still to be written."""
    said = {"public": True} if column.public and column.kind not in ("text", "whole") else {}
    said |= {name: True for name in ("identifier_ok", "partial") if getattr(column, name)}
    said |= {"proposed": False} if column.known else {}
    if column.kind == "number":
        low, high = (_bound(end, column.type) for end in (column.low, column.high))
        if OPEN not in (low, high) and low >= high:
            raise InvalidQuery("the lower bound is above the upper one")
        step = {"step": 1} if column.type.upper() in INTEGERS else {}
        return {"number": [low, high], **step, **said}
    if column.kind == "category":
        values = [value.strip() for value in column.values.split(",") if value.strip()]
        if len(set(values)) != len(values):
            raise InvalidQuery("a value is listed twice")
        return {"category": values or [OPEN], **said}
    return {column.kind: True, **said}


def _bound(text: str, kind: str) -> Any:
    typed = text.strip().replace("\u2212", "-")
    if not typed:
        return OPEN
    try:
        if kind.upper() in WHEN:
            day = datetime.date.fromisoformat(typed)
            return (
                day if kind.upper() == "DATE" else datetime.datetime(day.year, day.month, day.day)
            )
        number = Decimal(typed.replace(",", "").replace(" ", ""))
        if not number.is_finite() or abs(number.adjusted()) > 300:
            raise InvalidQuery("a bound must be a finite number")
        return int(number) if number == number.to_integral_value() else number
    except (InvalidOperation, ValueError):
        want = "a date such as 2020-01-01" if kind.upper() in WHEN else "a number such as 110"
        raise InvalidQuery(f"a bound must be {want}") from None


def policy_of(draft: Draft, home: Path) -> TablePolicy:
    """The table as it would be published; columns that are wrong have `?` again."""
    columns = []
    for column in draft.columns:
        if column.kind == "hidden":
            continue
        try:
            facts = facts_of(column)
        except InvalidQuery:
            facts = facts_of(column.model_copy(update={"low": "", "high": "", "values": ""}))
        columns.append(ColumnPolicy(column.name, facts))
    unit = draft.unit or "row"
    return TablePolicy(
        name=draft.name,
        source=draft.source,
        ledger=f"{draft.name}.ledger",
        promise=draft.promise,
        columns=tuple(columns),
        unit=unit,
        max_rows=1 if unit == "row" else draft.max_rows,
        home=home,
        reading=_reading(draft),
        apart=draft.apart,
    )


def draft_text(draft: Draft, home: Path) -> str:
    """The policy as TOML: what is shown is what is published."""
    try:
        text = policy_text(policy_of(draft, home), {})
    except SulqError as error:
        return f"# {error}\n"
    why = " ".join(draft.reason.split())
    return f"# why so weak a promise: {why}\n{text}" if why else text


def faults(draft: Draft, home: Path, taken: list[str]) -> list[str]:
    """Everything that stands between a draft and its publication."""
    found = []
    if not _NAME.fullmatch(draft.name) or draft.name == "new":
        found.append("the name: letters, digits, - and _, beginning with a letter")
    elif draft.name in taken or (home / f"{draft.name}.ledger").exists():
        found.append("the name: there is a table, or a ledger, of this name already")
    if draft.unit != "row" and draft.unit not in {column.name for column in draft.columns}:
        found.append("who is protected: the column that tells people apart")
    by_state: dict[str, list[str]] = {}
    for column in draft.columns:
        by_state.setdefault(state_of(column).word, []).append(column.name)
    for word, said in (
        ("fix", "the entries of"),
        ("todo", "what is possible for"),
        ("confirm", "whether everybody may know"),
    ):
        if word in by_state:
            found.append(f"{said} {', '.join(by_state[word])}")
    if set(by_state) <= {"hidden"}:
        found.append("no column can be asked about")
    try:
        if draft.promise.epsilon > WEAK and not draft.reason.strip():
            found.append("the reason for so weak a promise")
        if not found:
            policy_of(draft, home).schema()
    except SulqError as error:
        found.append(str(error))
    return found


def published_policy(draft: Draft, home: Path, taken: list[str]) -> TablePolicy:
    """The policy to publish; `InvalidQuery` names what is missing."""
    source_in(home, draft.source)
    if found := faults(draft, home, taken):
        raise InvalidQuery(f"not ready to publish: {'; '.join(found)}")
    return policy_of(draft, home)


def advised(draft: Draft, file: Path) -> Advice:
    """What the owner should know before a draft is published; reads the rows of its file.

    For the owner of all tables, and for files that are not published: of published ones nobody
    learns anything here.
    """
    home = file.parent
    source = source_in(home, draft.source)
    others = tuple(read_policy(file, empty=True).values()) if file.exists() else ()
    if source.resolve() in published_files(others):
        raise Refused(f"{draft.source} is published already; `sulq check` advises on it")
    read_in_child(_file_of(source, draft), CHILD)
    return advise(replace(policy_of(draft, home), beside=others))


def published_files(tables: Iterable[TablePolicy]) -> set[Path]:
    """The files of tables that are published."""
    return {
        Path(place).resolve()
        for table in tables
        if is_published(table.ledger_path, table.name)
        for place in table.source_paths
        if "://" not in place
    }


class Drafts:
    """Drafts by number, in the state directory."""

    def __init__(self, place: Path | None = None) -> None:
        self._place = place

    def add(self, draft: Draft) -> str:
        if len(self.listed()) >= MOST_DRAFTS:
            raise Refused(f"there are {MOST_DRAFTS} drafts already; publish or remove some")
        number = secrets.token_hex(8)
        self.save(number, draft)
        return number

    def save(self, number: str, draft: Draft) -> None:
        write_private(self._path(number), draft.model_dump_json().encode(), replace=True)

    def load(self, number: str) -> Draft:
        content = read_private(self._path(number))
        try:
            if content is not None:
                return Draft.model_validate(json.loads(content))
        except (ValueError, ValidationError):
            pass
        raise _no_draft()

    def holds(self, number: str) -> bool:
        """Whether there is one of this number."""
        return bool(_ID.fullmatch(number)) and self._path(number).is_file()

    def remove(self, number: str) -> None:
        self._path(number).unlink(missing_ok=True)

    def listed(self) -> list[tuple[str, Draft]]:
        found = []
        for path in sorted(self._home().glob("*.json"), key=lambda one: one.stat().st_mtime):
            try:
                found.append((path.stem, self.load(path.stem)))
            except HttpProblem:
                continue
        return found[::-1]

    def _home(self) -> Path:
        return self._place or private_directory("drafts")

    def _path(self, number: str) -> Path:
        if not _ID.fullmatch(number):
            raise _no_draft()
        return self._home() / f"{number}.json"


def _no_draft() -> HttpProblem:
    return not_found("there is no such draft")


# A table to be, tried on made-up rows: same schema, same promise, nothing of the owner's file.


ROWS = 5_000
MOST = 10


def rehearsed(policy: TablePolicy) -> list[dict[str, Any]]:
    """Up to ten questions with price, bar and an answer that means nothing."""
    schema = policy.schema()
    rows = dummy_rows(schema, ROWS)
    lines = []
    with Database.open(rows, schema, policy.promise, ":memory:", name="rehearsal") as database:
        for title, sql in questions(schema.columns, schema.who)[:MOST]:
            try:
                lines.append(_asked(database, title, sql))
            except SulqError as error:
                lines.append({"title": title, "price": "", "bar": "", "said": str(error)})
    return lines


def questions(columns: tuple[Column, ...], who: str) -> list[tuple[str, str]]:
    """One of each column, after a count of all."""
    made = [(f"How many {who}", "SELECT COUNT(*) AS n FROM rehearsal")]
    for column in columns:
        named = '"' + column.name.replace('"', '""') + '"'
        if isinstance(column, Category):
            if column.values is None:
                continue
            grouped = f"SELECT {named}, COUNT(*) AS n FROM rehearsal GROUP BY {named}"  # noqa: S608
            made.append((f"Count by {column.name}", grouped))
        else:
            made.append((f"Average {column.name}", f"SELECT AVG({named}) AS n FROM rehearsal"))  # noqa: S608
    return made


def _asked(database: Database, title: str, sql: str) -> dict[str, Any]:
    quote = database.quote_sql(sql, table="rehearsal")
    result = database.sql(sql, table="rehearsal")
    cell = result.rows[0][-1]
    said = ""
    if isinstance(cell, Estimate):
        low, high = cell.interval(result.confidence)
        said = str(value_with_bar(cell.value, max(high - cell.value, cell.value - low)))
    half = next((half for _, half in quote.half_widths), None)
    bar = "by its size" if half is None else f"± {bar_text(half)}" if half else "exact"
    return {
        "title": title,
        "price": credits_word(quote.credits) if quote.credits else "free",
        "bar": bar,
        "said": said,
    }
