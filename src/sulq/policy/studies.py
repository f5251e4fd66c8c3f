"""A study in a policy: several tables about the same people, one promise.

[clinic]
ledger = "clinic.ledger"
promise = {epsilon = 1, delta = 1e-6, credits = 500}
person = "patient_id"
[clinic.patients]              # the person table: the one without max_rows
source = "patients.parquet"
columns.sex = {category = ["F", "M"]}
[clinic.visits]
source = "visits.parquet"
max_rows = 8
columns.day = {number = [2015-01-01, 2026-12-31]}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sulq.errors import InvalidQuery
from sulq.kernel.schema.columns import DEFAULT_AT_MOST
from sulq.kernel.schema.study import DEFAULT_CEILING, EventTable, Keep, Study, not_for_a_study
from sulq.policy.tables import TablePolicy

KEYS = (
    *("ledger", "promise", "person", "person_word", "grants", "population", "apart", "receipts"),
)
TABLE_KEYS = ("source", "columns", "person", "at_most", "csv", "xlsx")
EVENT_KEYS = ("max_rows", "keep", "by", "ceiling")
REFUSED = {
    "individual": "individual accounting",
    "exact": "exact release",
    "version_budget": "growth",
    "partners": "a share of a joint sum",
    "vault": "a vault",
}
"""What a table may have and a study may not, and what that is called."""


@dataclass(frozen=True, slots=True)
class EventTablePolicy(TablePolicy):
    """A table of a study in which a person has any number of rows."""

    keep: Keep = "hash"
    by: str | None = None
    ceiling: int = DEFAULT_CEILING

    def event_table(self, person: str) -> EventTable:
        """What is public of it; `person` is the study's own name of the person column."""
        return EventTable(
            self.name,
            *(column.column() for column in self.columns),
            max_rows=self.max_rows,
            keep=self.keep,
            by=self.by,
            ceiling=self.ceiling,
            at_most=self.at_most,
            person=None if self.unit == person else self.unit,
        )


@dataclass(frozen=True, slots=True)
class StudyPolicy(TablePolicy):
    """As a table it is the person table, under the study's own name, ledger and promise."""

    person_table: str = ""
    events: tuple[EventTablePolicy, ...] = ()

    @classmethod
    def read(cls, name: str, facts: Any, home: Path) -> StudyPolicy:
        """A study as TOML has it; everything unknown is refused."""
        own, tables = _split(name, facts)
        missing = [key for key in ("ledger", "promise", "person") if key not in own]
        if missing:
            raise InvalidQuery(
                f"[{name}]: {missing} missing; a study needs ledger, promise and person, and a"
                f" [{name}.table] for each of its tables"
            )
        events = {table for table in tables if "max_rows" in tables[table]}
        people = [table for table in tables if table not in events]
        if len(people) != 1 or not events:
            raise InvalidQuery(
                f"[{name}]: a study has one person table, which is the one without max_rows, and at"
                f" least one table with max_rows; without it are {people}, with it {sorted(events)}"
            )
        read = {table: _table(name, table, tables[table], own, home) for table in tables}
        first = read[people[0]]
        shared = {key: getattr(first, key) for key in TablePolicy.__dataclass_fields__}
        return cls(
            **{**shared, "name": name},
            person_table=first.name,
            events=tuple(event_policy(read[one], tables[one]) for one in tables if one in events),
        )

    @property
    def alone(self) -> TablePolicy:
        """The person table as if it were all, still under the study's name."""
        return TablePolicy(**{key: getattr(self, key) for key in TablePolicy.__dataclass_fields__})

    @property
    def tables(self) -> tuple[TablePolicy, ...]:
        """Each of its tables, the person table first."""
        return (replace(self.alone, name=self.person_table, beside=()), *self.events)

    @property
    def source_paths(self) -> tuple[str, ...]:
        return tuple(table.source_path for table in self.tables)

    @property
    def rows(self) -> Any:
        """What an engine opens: the source of each table."""
        return {table.name: table.rows for table in self.tables}

    @property
    def unready(self) -> dict[str, str]:
        """The columns that are not askable yet, as table.column, and why."""
        return {
            f"{table.name}.{column}": lacks
            for table in self.tables
            for column, lacks in table.unready.items()
        }

    def schema(self) -> Study:
        """The public facts; `InvalidQuery` while a column still lacks something."""
        self.check_ready()
        return Study(
            self.person_table,
            *(column.column() for column in self.columns),
            person=self.unit,
            tables=[table.event_table(self.unit) for table in self.events],
            at_most=DEFAULT_AT_MOST if self.at_most is None else self.at_most,
            person_word=self.person_word,
        )


def is_study(facts: object) -> bool:
    """Whether a table of TOML declares a study: it names the person, or has tables of its own."""
    if not isinstance(facts, Mapping) or "source" in facts:
        return False
    inner = (value for key, value in facts.items() if key not in KEYS)
    return "person" in facts or any(isinstance(one, Mapping) and "source" in one for one in inner)


def _split(name: str, facts: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the study says of itself, and its tables."""
    for key, what in REFUSED.items():
        if key in facts:
            raise InvalidQuery(f"[{name}]: {key}: {not_for_a_study(what)}")
    own = {key: value for key, value in facts.items() if key in KEYS}
    tables = {key: value for key, value in facts.items() if key not in KEYS}
    unknown = [
        key
        for key, value in tables.items()
        if not isinstance(value, Mapping) or not {"source", "columns"} & set(value)
    ]
    if unknown:
        raise InvalidQuery(
            f"[{name}]: unknown {unknown}; a study knows {list(KEYS)}, and a [{name}.table] with"
            " source and columns for each of its tables"
        )
    for table, given in tables.items():
        _check_known(f"{name}.{table}", given, (*TABLE_KEYS, *EVENT_KEYS), "a table of a study")
    return own, tables


def _check_known(called: str, facts: Mapping[str, Any], known: tuple[str, ...], what: str) -> None:
    unknown = sorted(set(facts) - set(known))
    if unknown:
        raise InvalidQuery(f"[{called}]: unknown {unknown}; {what} knows {list(known)}")


def _table(
    study: str, table: str, facts: Mapping[str, Any], own: Mapping[str, Any], home: Path
) -> TablePolicy:
    """One table, read as a table of its own would be under the study's ledger and promise."""
    called = f"{study}.{table}"
    if "max_rows" not in facts:
        _check_known(called, facts, TABLE_KEYS, "the person table of a study")
    plain = {key: value for key, value in facts.items() if key in ("source", "columns", "at_most")}
    plain |= {key: facts[key] for key in ("csv", "xlsx") if key in facts}
    unit = {"column": facts.get("person", own["person"]), "max_rows": facts.get("max_rows", 1)}
    shared = {key: value for key, value in own.items() if key != "person"}
    read = TablePolicy.read(called, {**shared, **plain, "unit": unit}, home)
    return replace(read, name=table)


def event_policy(read: TablePolicy, facts: Mapping[str, Any] | None = None) -> EventTablePolicy:
    """A table as an event table, with what is said of it besides."""
    facts = facts or {}
    shared = {key: getattr(read, key) for key in TablePolicy.__dataclass_fields__}
    said = {key: facts[key] for key in ("keep", "by", "ceiling") if key in facts}
    return EventTablePolicy(**shared, **said)
