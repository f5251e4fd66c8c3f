"""`sulq ask "SELECT ..."`: a statement asked, quoted or explained, and its table on the screen."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from sulq.cli.far import FarTable, Source, asker, is_out, not_out
from sulq.cli.questions import hinted
from sulq.cli.screen import (
    charging,
    credits_text,
    facts,
    many,
    number_text,
    percent,
    show,
    show_json,
    stored,
    table,
    talk,
)
from sulq.cli.spelling import typed
from sulq.errors import InvalidQuery
from sulq.policy import read_policy
from sulq.sql.envelope import explains
from sulq.sql.estimates import Estimate
from sulq.sql.result import Result
from sulq.sql.run import SqlQuote, ask_sql, quote_sql
from sulq.sql.statements import table_of

_STATEMENT = re.compile(r"\s*(SELECT|WITH|EXPLAIN)\b", re.IGNORECASE)


def _source(policy: Path | FarTable, words: Sequence[str]) -> tuple[Source, str]:
    """The table that FROM names, and the text; behind a server the address names it."""
    first = 0 if _STATEMENT.match(words[0]) else 1
    text = " ".join(words[first:])
    if isinstance(policy, FarTable):
        return policy, text
    tables = read_policy(policy)
    name = words[0] if first else table_of(text)
    found = [known for known in tables if name is not None and known.casefold() == name.casefold()]
    if not found:
        raise InvalidQuery(f"no table {name!r:.60}; the policy has {sorted(tables)}")
    return tables[found[0]], text


def quote_statement(
    policy: Path | FarTable,
    words: Sequence[str],
    analyst: str | None,
    as_json: bool,
    lookups: Sequence[str],
    unused: dict[str, object],
    **terms: Any,
) -> None:
    """Show what a statement would cost."""
    _check_unused(unused)
    source, text = _source(policy, words)
    read = _lookups(lookups)
    with asker(source, analyst, prices=True) as oracle, hinted(text):
        found = quote_sql(oracle, text, table=source.name, lookups=read, **terms)
    if as_json:
        show_json(_quote_json(source.name, found) | {"published": is_out(source)})
        return
    for line in found.explain().split("\n"):
        if line.startswith("question"):
            talk(line)
    ranks = {name: f"; its rank ± {number_text(rank)} rows" for name, rank in found.ranks}
    bars = [
        (name, f"depends on the rows{ranks.get(name, '')}" if half is None
         else f"± {number_text(half)}")
        for name, half in found.half_widths
    ]  # fmt: skip
    left = credits_text(found.left_after) if found.affordable else "not affordable"
    notes = [("note", typed(note)) for note in found.notes]
    level = (f"{percent(found.confidence)} bars", "")
    cost = ("cost", credits_text(found.credits))
    last = [("left after", left), *not_out(source)]
    show(facts([cost, *([level] if bars else []), *bars, *notes, *last]))


def _quote_json(name: str, found: SqlQuote) -> dict[str, Any]:
    return {
        "table": name,
        "credits": found.credits,
        "left_after": found.left_after,
        "affordable": found.affordable,
        "questions": len(found.quotes) + (found.keys is not None),
        "half_width": dict(found.half_widths),
        "rank": dict(found.ranks),
        "confidence": found.confidence,
        "note": found.note,
    }


def ask_statement(
    policy: Path | FarTable,
    words: Sequence[str],
    analyst: str | None,
    as_json: bool,
    lookups: Sequence[str],
    unused: dict[str, object],
    receipts: Path | None,
    **terms: Any,
) -> None:
    """Ask a statement and show its table."""
    _check_unused(unused)
    source, text = _source(policy, words)
    read = _lookups(lookups)
    if receipts is not None:
        receipts.open("a").close()  # found out before the charge
    with ExitStack() as told:
        with asker(source, analyst, prices=explains(text)) as oracle:
            with charging(), hinted(text):
                found = ask_sql(oracle, text, table=source.name, lookups=read, **terms)
            told.enter_context(stored(found.credits))
            left = oracle.remaining
        if receipts is not None:
            with receipts.open("a", encoding="utf-8") as file:
                file.writelines(f"{receipt.to_json()}\n" for receipt in found.receipts)
            talk(f"{many(len(found.receipts), 'receipt')} appended to {receipts}")
        if as_json:
            numbers = [receipt.seq for receipt in found.receipts]
            show_json(
                {
                    "table": source.name,
                    "rows": found.records(),
                    "confidence": found.confidence,
                    "credits": found.credits,
                    "receipt_numbers": numbers,
                    "left": left,
                    "notes": found.notes,
                }
            )
            return
        for note in _notes(found):
            talk(f"note: {note}")
        show(_drawn(found))
        if any(not column.is_key for column in found.columns):
            numbers_text = ", ".join(str(receipt.seq) for receipt in found.receipts) or "none"
            show(
                facts(
                    [
                        ("cost", credits_text(found.credits)),
                        ("left", credits_text(left)),
                        ("receipts" if len(found.receipts) > 1 else "receipt", numbers_text),
                    ]
                )
            )


def _notes(found: Result) -> list[str]:
    cells = (cell for row in found.rows for cell in row if isinstance(cell, Estimate))
    return list(dict.fromkeys([*found.notes, *(cell.note for cell in cells if cell.note)]))


def _drawn(found: Result) -> Any:
    """Keys, and for each aggregate its value and interval."""
    heads, rows, right = found._texts()
    drawn = table(heads, rows)
    for column, is_number in zip(drawn.columns, right, strict=True):
        column.justify = "right" if is_number else "left"
    return drawn


def _check_unused(unused: dict[str, object]) -> None:
    given = [name for name, value in unused.items() if value not in (None, False, [])]
    if given:
        raise InvalidQuery(
            f"a SELECT takes no {', '.join(given)}: write WHERE, GROUP BY, QUANTILE(x, 0.5) or"
            " WITHIN 50 CONFIDENCE 95 in the statement"
        )


def _lookups(given: Sequence[str]) -> dict[str, dict[str, list[Any]]]:
    """`regions=regions.csv`: public tables to join."""
    found: dict[str, dict[str, list[Any]]] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or not name:
            raise InvalidQuery(f"--lookup wants NAME=FILE.csv, got {text!r:.60}")
        try:
            with Path(path).open(encoding="utf-8", newline="") as file:
                lines = list(csv.reader(file))
        except FileNotFoundError:
            raise InvalidQuery(
                f"--lookup {name:.60}: there is no file {path!r:.80}; name a CSV file with a head"
            ) from None
        except (OSError, UnicodeDecodeError, csv.Error):
            raise InvalidQuery(f"the lookup {path!r:.80} cannot be read as CSV") from None
        if not lines or any(len(line) != len(lines[0]) for line in lines):
            raise InvalidQuery(f"the lookup {path!r:.80} has no head, or lines of unequal length")
        columns = list(zip(*lines[1:], strict=True)) or [()] * len(lines[0])
        found[name] = {head: _typed(values) for head, values in zip(lines[0], columns, strict=True)}
    return found


def _typed(values: Sequence[str]) -> list[Any]:
    """Whole numbers or decimals if all are; else texts. Empty is NULL."""
    for kind in (int, float):
        try:
            return [kind(value) if value else None for value in values]
        except ValueError:
            continue
    return [value or None for value in values]
