"""The adviser on the wizard's last step: what `sulq check` says, with a tick for each verdict that
the owner may overrule. It reads rows, for the owner of all tables and files not yet published."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sulq.errors import SulqError
from sulq.policy.advice import Advice, ColumnAdvice
from sulq.server.drafts import Draft, DraftColumn, advised
from sulq.shown import bar_text, spelled

OVERRULED = {
    "identifier": ("identifier_ok", "Everybody may ask about single values of it."),
    "proposed": ("known", "Everybody may know these bounds or values."),
    "unreadable": ("partial", "The others may count as missing."),
    "undeclared": ("partial", "The others may count as missing."),
    "outside": ("partial", "The others may be moved to the bounds."),
}
"""By mark: the field that overrules it, and what its owner says by a tick."""
Tick = tuple[str, str, bool]
"""Name of the field, label, whether it is ticked."""


@dataclass(frozen=True, slots=True)
class AdviceRow:
    name: str
    declared: str
    readable: str
    bands: tuple[tuple[str, str], ...]
    """(kind of chip, band) of what is readable, and of what is inside or declared."""
    faults: tuple[str, ...]
    ticks: tuple[Tick, ...]


@dataclass(frozen=True, slots=True)
class AdviceView:
    refused: str
    """Why the rows cannot be read as declared; empty if they can."""
    ready: bool = False
    sentence: str = ""
    lines: tuple[tuple[str, tuple[str, ...]], ...] = ()
    rows: tuple[AdviceRow, ...] = ()
    said: tuple[AdviceRow, ...] = ()
    """Rows with something to mend, or to overrule."""
    warnings: tuple[str, ...] = ()
    shared: str = ""
    apart: Tick | None = None


def advice_view(draft: Draft, file: Path) -> AdviceView:
    try:
        found = advised(draft, file)
    except SulqError as error:
        return AdviceView(str(error))
    places = {column.name: (at, column) for at, column in enumerate(draft.columns)}
    rows = tuple(_row(column, *places[column.name]) for column in found.columns)
    return AdviceView(
        "",
        found.ready,
        found.sentence,
        _lines(found),
        rows,
        tuple(row for row in rows if row.faults or row.ticks),
        tuple(_sentence(warning) for warning in found.warnings),
        "" if found.shared is None else _sentence(found.shared.why),
        ("apart", "Nobody is in two of them.", draft.apart)
        if draft.apart or found.shared is not None
        else None,
    )


def _lines(found: Advice) -> tuple[tuple[str, tuple[str, ...]], ...]:
    count = f"off by up to ± {bar_text(found.bar)} in 95 of 100 cases"
    price = "" if found.price == 1 else f", for {spelled(found.price, 0)} credits each"
    lines = [
        ("Who is protected", (found.protected, *(_proposal(name) for name in found.repeats))),
        ("Public, exact and free for everybody", found.public or ("nothing",)),
        ("Hidden", (", ".join(found.hidden) or "nothing",)),
        ("A count", (f"{count}; the budget buys {spelled(found.counts, 0)}{price}",)),
    ]
    kept = found.kept
    if kept is not None:
        own = found.policy.max_rows
        shares = ", ".join(
            f"{most}{' (yours)' if most == own else ''}: {100 * share:.1f} %"
            for most, share in kept.shares.items()
        )
        people = f"{spelled(kept.persons, 0)}, with {kept.rows_per_person:.3g} rows each on average"
        lines.append(("Persons", (people, f"rows that count, by most rows for a person: {shares}")))
    return tuple(lines)


def _proposal(name: str) -> str:
    return f"{name} repeats: if it tells people apart, choose it under Who is protected"


def _row(column: ColumnAdvice, at: int, typed: DraftColumn) -> AdviceRow:
    ticks: dict[str, Tick] = {}
    for mark, (name, label) in OVERRULED.items():
        if mark in column.marks or (getattr(typed, name) and name not in ticks):
            ticks[name] = (f"{name}-{at}", label, getattr(typed, name))
    readable = ""
    if column.readable is not None and column.there is not None:
        readable = f"{spelled(column.readable, 0)} of {spelled(column.there, 0)}"
    return AdviceRow(
        column.name,
        column.declared,
        readable,
        tuple(
            (KINDS.get(band, ""), band)
            for band in (column.readable_band, column.within_band)
            if band is not None
        ),
        tuple(f"{fault.why}." for fault in column.faults),
        tuple(ticks.values()),
    )


KINDS = {"at least 99 %": "ok", "90 to 99 %": "warn", "below 90 %": "bad"}


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
