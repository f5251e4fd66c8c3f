"""Policies on disk: read with tomllib, written by a writer small enough to trust."""

from __future__ import annotations

import datetime
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from sulq.errors import InvalidQuery
from sulq.kernel.engines.duckdb.csv_files import CsvFile
from sulq.kernel.engines.duckdb.remote import MOST_BYTES
from sulq.kernel.schema.promise import Promise
from sulq.kernel.schema.study import DEFAULT_CEILING
from sulq.policy.studies import EventTablePolicy, StudyPolicy, is_study
from sulq.policy.tables import TablePolicy

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def read_policy(path: str | Path, *, empty: bool = False) -> dict[str, TablePolicy]:
    """The tables that a policy file declares; none is `InvalidQuery` unless it may be `empty`."""
    path = Path(path)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InvalidQuery(
            f"there is no policy file {path}; `sulq init FILE` writes one, --policy names another"
        ) from None
    except OSError:
        why = (
            "is a directory; name the file in it"
            if path.is_dir()
            else "cannot be read; check its rights"
        )
        raise InvalidQuery(f"the policy file {path} {why}") from None
    return _read(content, path, empty)


def _read(content: bytes, path: Path, empty: bool) -> dict[str, TablePolicy]:
    try:
        facts = tomllib.loads(content.decode(), parse_float=Decimal)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        where = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "not UTF-8 text"
        raise InvalidQuery(f"the policy file {path} is not valid TOML: {where}") from None
    if not facts and not empty:
        raise InvalidQuery(f"the policy file {path} declares no table; `sulq init FILE` writes one")
    found: dict[str, TablePolicy] = {
        name: (StudyPolicy if is_study(table) else TablePolicy).read(name, table, path.parent)
        for name, table in facts.items()
    }
    _check_receipts(found)
    return {
        name: replace(
            table,
            companions=tuple(filter(table.shares_people, found.values())),
            beside=tuple(other for other in found.values() if other is not table),
        )
        for name, table in found.items()
    }


def _check_receipts(tables: Mapping[str, TablePolicy]) -> None:
    """A ledger has one receipts journal, and a journal one ledger."""
    journals: dict[str, tuple[str, Path | None]] = {}
    ledgers: dict[Path, tuple[str, str]] = {}
    for name, table in tables.items():
        ledger, journal = str(table.ledger_path), table.receipts_path
        first, known = journals.setdefault(ledger, (name, journal))
        if known != journal:
            raise InvalidQuery(
                f"[{first}] and [{name}] have one ledger and not the same receipts: a ledger has"
                " one journal; name the same file in both"
            )
        if journal is not None:
            other, of = ledgers.setdefault(journal, (name, ledger))
            if of != ledger:
                raise InvalidQuery(
                    f"[{other}] and [{name}] have one receipts journal and two ledgers; name a file"
                    " for each"
                )


def write_policy(
    path: str | Path, tables: Iterable[TablePolicy], notes: Mapping[str, str] | None = None
) -> None:
    """Write a new policy file, never over an old one; `notes` are comments by column name."""
    path = Path(path)
    text = "\n".join(policy_text(table, notes or {}) for table in tables)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InvalidQuery(
            f"{path} exists and is not overwritten; move it away, or name another with -o"
        ) from None
    except OSError:
        raise InvalidQuery(f"{path} cannot be written; check the directory") from None


def check_room(path: Path, name: str) -> None:
    """Refuse a table that a policy file cannot take: `name` is there, or it is no policy."""
    if not path.parent.is_dir() or path.is_dir():
        raise InvalidQuery(f"{path} cannot be written; check the directory")
    if path.exists() and name in read_policy(path, empty=True):
        raise InvalidQuery(
            f"{path} has a table {name!r} already, and it is not overwritten; call the new one by"
            " --name, or name another file with -o"
        )


def with_table(path: Path, text: str, name: str) -> bytes:
    """The policy file with one table more at its end, checked by reading it; writes nothing."""
    before = path.read_bytes() if path.exists() else b""
    gap = b"" if not before.strip() else b"\n" if before.endswith(b"\n") else b"\n\n"
    after = before + gap + text.encode()
    if name not in _read(after, path, False):
        raise InvalidQuery(f"{path} did not take the new table; add it by hand")
    return after


def add_table(path: Path, table: TablePolicy, notes: Mapping[str, str]) -> None:
    """Write a table, with comments for its reviewer, at the end of a policy file, new or old."""
    check_room(path, table.name)
    text = policy_text(table, notes, commented=True)
    try:
        before = len(path.read_bytes()) if path.exists() else 0
        after = with_table(path, text, table.name)
        with path.open("ab") as file:  # what is there is not touched
            file.write(after[before:])
    except OSError:
        raise InvalidQuery(f"{path} cannot be written; check its rights and the disk") from None


ABOUT = {
    "reading": """How the file is read. Nothing is guessed later: other fields are NULL, and a line
that does not fit is refused with its number.""",
    "ledger": "What was asked and what it cost. It is made when the table is published: keep it.",
    "promise": """For the whole life of the table: a small epsilon protects more. One credit buys a
count with the noise that `sulq check` shows; a better answer costs more.""",
    "row": """Who is protected: one row. If a person may have several rows, name the column that
tells people apart:
unit = {column = "person_id", max_rows = 4}""",
    "unit": """Who is protected: all rows with the same value here, which repeats. Of each at most
max_rows rows count, the others are left out: choose it from what you know of the people, not from
the file. Write unit = "row" only if the rows of one value are of different people.""",
    "person": """Who is protected: everybody with an id in this column, with all their rows in all
tables below together. A table may name its own: person = "pid". Rows of ids that the person table
does not have count nowhere.""",
    "max_rows": """How many rows of a person count in sums over rows: choose it from what you know
of the people, not from the file. Values of a person, such as their number of rows, are over all.
Which rows: keep = "first" or "last" with by = "day", else by a hash of their values.""",
    "columns": """What analysts may ask about. A column without a line is hidden.
  number = [0, 120]         the least and the greatest value possible; others count as the nearer
                            one. Dates are written [2000-01-01, 2030-12-31]. Take both from what
                            everybody knows, not from the file: a bound tells of the row it is from
  step = 1                  whole numbers
  category = ["a", "b"]     all values that are possible; others count as "something else"
  flag = true               yes or no: true, t, yes, y, 1 and false, f, no, n, 0
  text = true               text of any kind, asked about by its value
  whole = true              whole numbers that nobody can list, such as codes: asked about by value
  complete = true           nobody's value is missing: SQL shows no group of NULL. A row whose value
                            is missing all the same, or not listed, adds nothing to such a SELECT
  public = true             everybody may know this of EVERY row, exactly and free of charge
  about = "length of stay"  what it is, in people's words; measured_in = "days" says its unit, and
                            labels = {I21 = "infarction"} what values mean. These change no price
Write bounds or values in place of "?", then run: sulq check, sulq publish""",
}
"""What `sulq init` says in the file it writes."""


def policy_text(table: TablePolicy, notes: Mapping[str, str], *, commented: bool = False) -> str:
    """Return the policy of one table as TOML.

    `notes` are comments by column name. `commented` adds comments that say what each line means.
    """

    def about(part: str) -> list[str]:
        return [f"# {line}" for line in ABOUT[part].splitlines()] if commented else []

    if isinstance(table, StudyPolicy):
        return _study_text(table, notes, about)
    lines = [f"[{_key(table.name)}]", *_source_lines(table, about)]
    lines += [*about("ledger"), f"ledger = {_value(table.ledger)}"]
    lines += [*about("promise"), f"promise = {_inline(_promise(table.promise))}"]
    lines += _storage_lines(table)
    lines += [*about("row" if table.unit == "row" else "unit"), *_unit_lines(table)]
    lines += _option_lines(table)
    lines += ["", *about("columns"), *_column_lines(table, notes)]
    return "\n".join(lines) + "\n"


def _source_lines(table: TablePolicy, about: Callable[[str], list[str]]) -> list[str]:
    """Where the rows lie and how they are read."""
    lines = [f"source = {_value(table.source)}"]
    if table.reading is not None:
        kind = "csv" if isinstance(table.reading, CsvFile) else "xlsx"
        lines += [*about("reading"), f"{kind} = {_inline(table.reading.rules)}"]
    return lines


def _study_text(
    study: StudyPolicy, notes: Mapping[str, str], about: Callable[[str], list[str]]
) -> str:
    """A study: what its tables share, then each of them; notes are by table.column."""
    lines = [f"[{_key(study.name)}]", *about("ledger"), f"ledger = {_value(study.ledger)}"]
    lines += [*about("promise"), f"promise = {_inline(_promise(study.promise))}"]
    lines += [*about("person"), f"person = {_value(study.unit)}"]
    lines += [*_storage_lines(study), *_option_lines(study), "", *about("columns")]
    for table in study.tables:
        name = f"{_key(study.name)}.{_key(table.name)}"
        lines += ["", f"[{name}]", *_source_lines(table, about)]
        if table.unit != study.unit:
            lines.append(f"person = {_value(table.unit)}")
        if isinstance(table, EventTablePolicy):
            lines += [*about("max_rows"), *_event_lines(table)]
        if table.at_most is not None:
            lines.append(f"at_most = {table.at_most}")
        start = f"{table.name}."
        mine = {
            key.removeprefix(start): note for key, note in notes.items() if key.startswith(start)
        }
        lines += _column_lines(table, mine)
    return "\n".join(lines) + "\n"


def _event_lines(table: EventTablePolicy) -> list[str]:
    """Which rows of a person count."""
    lines = [f"max_rows = {table.max_rows}"]
    if table.by is not None:
        lines += [f"keep = {_value(table.keep)}", f"by = {_value(table.by)}"]
    if table.ceiling != DEFAULT_CEILING:
        lines.append(f"ceiling = {table.ceiling}")
    return lines


def _storage_lines(table: TablePolicy) -> list[str]:
    """Where receipts are written, and how much is read of rows that lie elsewhere."""
    lines = []
    if table.receipts is not None:
        lines.append(f"receipts = {_value(table.receipts)}")
    if table.remote:
        lines.append("remote = true")
        if table.most_bytes != MOST_BYTES:
            lines.append(f"most_bytes = {table.most_bytes}")
    return lines


def _unit_lines(table: TablePolicy) -> list[str]:
    """Who is protected, and what is public about their number."""
    lines = []
    if table.unit != "row":
        lines.append(f"unit = {_inline({'column': table.unit, 'max_rows': table.max_rows})}")
    if table.at_most is not None:
        lines.append(f"at_most = {table.at_most}")
    if table.strata is not None:
        lines.append(f"strata = {_value(list(table.strata))}")
    return lines


def _option_lines(table: TablePolicy) -> list[str]:
    """Shares of analysts, and the ways of accounting and of release that are turned on."""
    lines = [f"person_word = {_value(table.person_word)}"] if table.person_word else []
    lines += [f"grants.{_key(who)} = {_value(credits)}" for who, credits in table.grants.items()]
    if table.version_budget is not None:
        lines.append(f"version_budget = {_value(table.version_budget)}")
    lines += [
        f"{option} = true"
        for option in ("individual", "apart", "sharing")
        if getattr(table, option)
    ]
    if table.vault is not None:
        lines.append(f"vault = {_value(table.vault)}")
    if table.partners is not None:
        named = {"keys": table.partners.keys, "colluding": table.partners.colluding}
        lines.append(f"partners = {_inline(named)}")
    if table.population is not None:
        said = {"name": table.population.name, **_promise(table.population.promise)}
        if table.population.persons:
            said["persons"] = True
        lines.append(f"population = {_inline(said)}")
    if table.exact is not None:
        lines += [f"exact.{name} = {_value(value)}" for name, value in table.exact.facts.items()]
    return lines


def _column_lines(table: TablePolicy, notes: Mapping[str, str]) -> Iterator[str]:
    """The columns, each after its notes; a column that has notes alone is hidden."""
    declared = {column.name: column for column in table.columns}
    for name in [*notes, *(name for name in declared if name not in notes)]:
        yield from (f"# {line}" for line in notes.get(name, "").splitlines())
        if name in declared:
            yield policy_line(name, declared[name].facts)


def policy_line(column: str, facts: Mapping[str, Any]) -> str:
    """The line that declares a column."""
    return f"columns.{_key(column)} = {_inline(facts)}"


def _promise(promise: Promise) -> dict[str, Any]:
    """The promise without what its defaults say already."""
    facts: dict[str, Any] = {"epsilon": promise.epsilon}
    if promise.delta:
        facts["delta"] = promise.delta
    if promise.queries is not None:
        facts["credits"] = promise.queries
    if promise.noise != ("gaussian" if promise.delta else "laplace"):
        facts["noise"] = promise.noise
    if promise.neighbours != "replace":
        facts["neighbours"] = promise.neighbours
    return facts


def _inline(facts: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{_key(name)} = {_value(value)}" for name, value in facts.items()) + "}"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)


def _value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case int():
            return str(value)
        case float() | Fraction() | Decimal():
            return _number(Fraction(repr(value)) if isinstance(value, float) else Fraction(value))
        case datetime.date():
            return value.isoformat()
        case Mapping():
            return _inline(value)
        case list() | tuple():
            return "[" + ", ".join(_value(item) for item in value) + "]"
    raise InvalidQuery(f"a policy cannot hold a {type(value).__name__}")


def _number(number: Fraction) -> str:
    """Exact: a decimal where there is one, else the ratio as text."""
    if number.denominator == 1:
        return str(number.numerator)
    rest, twos, fives = number.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    places = max(twos, fives)
    if rest != 1:
        return f'"{number}"'
    digits = abs(number.numerator) * 10**places // number.denominator
    sign = "-" if number < 0 else ""
    if digits < 1000 and places > 4:  # 1e-6 reads better than 0.000001
        return f"{sign}{digits}e-{places}"
    whole, part = divmod(digits, 10**places)
    return f"{sign}{whole}.{part:0{places}d}"
