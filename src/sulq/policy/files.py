"""Policies on disk: read with tomllib, written by a writer small enough to trust."""

from __future__ import annotations

import datetime
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from sulq.engines.csv_files import CsvFile
from sulq.engines.remote import MOST_BYTES
from sulq.errors import InvalidQuery
from sulq.policy.tables import TablePolicy
from sulq.schema.promise import Promise

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def read_policy(path: str | Path, *, empty: bool = False) -> dict[str, TablePolicy]:
    """The tables that a policy file declares; none is `InvalidQuery` unless it may be `empty`."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            facts = tomllib.load(file, parse_float=Decimal)
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
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        where = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "not UTF-8 text"
        raise InvalidQuery(f"the policy file {path} is not valid TOML: {where}") from None
    if not facts and not empty:
        raise InvalidQuery(f"the policy file {path} declares no table; `sulq init FILE` writes one")
    found = {name: TablePolicy.read(name, table, path.parent) for name, table in facts.items()}
    return {
        name: replace(
            table,
            companions=tuple(filter(table.shares_people, found.values())),
            beside=tuple(other for other in found.values() if other is not table),
        )
        for name, table in found.items()
    }


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


def policy_text(table: TablePolicy, notes: Mapping[str, str]) -> str:
    """One table as TOML."""
    lines = [
        f"[{_key(table.name)}]",
        f"source = {_value(table.source)}",
        f"ledger = {_value(table.ledger)}",
        f"promise = {_inline(_promise(table.promise))}",
    ]
    if table.reading is not None:
        kind = "csv" if isinstance(table.reading, CsvFile) else "xlsx"
        lines.append(f"{kind} = {_inline(table.reading.rules)}")
    if table.remote:
        lines.append("remote = true")
        if table.most_bytes != MOST_BYTES:
            lines.append(f"most_bytes = {table.most_bytes}")
    if table.unit != "row":
        lines.append(f"unit = {_inline({'column': table.unit, 'max_rows': table.max_rows})}")
    if table.at_most is not None:
        lines.append(f"at_most = {table.at_most}")
    if table.strata is not None:
        lines.append(f"strata = {_value(list(table.strata))}")
    for analyst, credits in table.grants.items():
        lines.append(f"grants.{_key(analyst)} = {_value(credits)}")
    if table.version_budget is not None:
        lines.append(f"version_budget = {_value(table.version_budget)}")
    if table.individual:
        lines.append("individual = true")
    if table.apart:
        lines.append("apart = true")
    if table.population is not None:
        said = {"name": table.population.name, **_promise(table.population.promise)}
        if table.population.persons:
            said["persons"] = True
        lines.append(f"population = {_inline(said)}")
    if table.exact is not None:
        for name, value in table.exact.facts.items():
            lines.append(f"exact.{name} = {_value(value)}")
    lines.append("")
    declared = {column.name: column for column in table.columns}
    for name in [*notes, *(name for name in declared if name not in notes)]:
        if name in notes:
            lines.extend(f"# {line}" for line in notes[name].splitlines())
        if name in declared:
            lines.append(policy_line(name, declared[name].facts))
    return "\n".join(lines) + "\n"


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
