"""What the ledger keeps of a table: schema, promise, budget and number of rows."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from sulq.errors import Refused
from sulq.kernel.engines.duckdb.csv_files import CsvFile
from sulq.kernel.engines.duckdb.remote import Remote
from sulq.kernel.engines.duckdb.workbooks import XlsxFile
from sulq.kernel.engines.engine import SPARK_SCHEMES, Engine
from sulq.kernel.ledger.accounts import steps_of
from sulq.kernel.ledger.ledger import Ledger
from sulq.kernel.ledger.register import note_rows, noted_rows
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.promise import Numeric, Promise, exact_number
from sulq.kernel.schema.study import Study

NAMELESS = "table"
"""What the ledger calls a table that nobody named."""


def readable_again(source: object) -> str | Path | Remote | CsvFile | XlsxFile | None:
    """A source that can be opened a second time; a frame is not kept."""
    return source if isinstance(source, str | Path | Remote | CsvFile | XlsxFile) else None


def most_rows(schema: Schema, promise: Promise, engine: Engine) -> int:
    """A public bound on the rows: n under replace (each person's most), else what is declared."""
    tables = schema.tables if isinstance(schema, Study) else ()
    if promise.neighbours == "add-remove":
        bounds = [table.rows_bound(schema.at_most) for table in tables]
        return max(schema.at_most, *bounds) if bounds else schema.at_most
    return engine.size() * max([schema.max_rows, *(table.max_rows for table in tables)])


def facts_text(facts: object) -> str:
    return json.dumps(facts, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def table_facts(schema: Schema, promise: Promise) -> dict[str, str]:
    return {"schema": facts_text(schema.to_json()), "promise": facts_text(promise.to_json())}


def name_of(source: object) -> str:
    """What a ledger calls the table; of an address only the table's own name."""
    if isinstance(source, Remote | CsvFile | XlsxFile):
        return source.name.split(".")[0] or NAMELESS
    if isinstance(source, str) and "://" in source:
        parts = urlsplit(source)
        if parts.scheme.lower() not in SPARK_SCHEMES:
            return unquote(parts.path.rpartition("/")[2].rpartition(".")[2]) or NAMELESS
        asked = dict(parse_qsl(parts.query))
        if "table" in asked:
            return asked["table"].rpartition(".")[2] or NAMELESS
        # the path of sc:// may hold a token
        local = unquote(parts.path) if parts.scheme.lower() == "spark+local" else ""
        return Path(asked.get("path", local)).name.split(".")[0] or NAMELESS
    if isinstance(source, str | Path):
        return Path(source).name.split(".")[0] or NAMELESS
    return NAMELESS


def check_told(told: str | None, schema: Schema, promise: Promise) -> None:
    """`Refused` if a number that somebody may have read would be private: nothing takes it back."""
    if told is not None and (promise.neighbours, schema.unit) != ("replace", told):
        what = "rows" if told == "row" else f"different values of {told!r}"
        raise Refused(
            f"the number of {what} was public, and shares or tokens were given out, so somebody may"
            f" have read it; keep neighbours = 'replace' and the unit {told!r}"
        )


def budget_of(credits: Numeric | None) -> int | None:
    """A version's budget as the ledger keeps it."""
    return steps_of(None if credits is None else exact_number("budget", credits))


def note_size(journal: Ledger, promise: Promise, engine: Engine) -> None:
    """The number of rows where it is public, in the state directory, for the next `sulq grow`."""
    if promise.neighbours != "replace" or not journal.durable:
        return
    named = (journal.ledger_id, journal.header.name, journal.data_version)
    with suppress(OSError):  # nobody needs it to ask
        if noted_rows(*named) is None:
            note_rows(*named, engine.size())
