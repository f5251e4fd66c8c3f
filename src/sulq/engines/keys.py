"""Counts by undeclared key as SQL: in parts by a hash of the key, so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sulq.engines.dialect import Dialect
from sulq.engines.emitter import Emitter
from sulq.engines.inner import from_rows
from sulq.engines.leaves import Place
from sulq.engines.proved import within
from sulq.engines.statement import TABLE
from sulq.schema.keys import KeyCounts

ROWS_EACH = 1 << 20
"""Rows per part: at most about so many keys are held at once."""
FETCHED = 1 << 14


def key_statements(program: KeyCounts, places: Mapping[str, Place], rows: int) -> list[str]:
    """One SELECT of (key, count) per part of a table of so many rows; a key is in one part."""
    draft = Emitter(places)
    _keys(program, draft)
    shared = frozenset(node for node, uses in draft.uses.items() if uses > 1)
    keys = _keys(program, Emitter(places, shared))
    parts = -(-rows // ROWS_EACH)
    if parts <= 1:
        return [f"SELECT v0, count(*) FROM ({keys}) AS keyed GROUP BY v0"]
    part_of = next(iter(places.values())).dialect.part_of("v0", parts)
    return [
        f"SELECT v0, count(*) FROM ({keys}) AS keyed"
        f" WHERE {part_of} = {Dialect.integer(part)} GROUP BY v0"
        for part in range(parts)
    ]


def counted(batch: Sequence[Sequence[Any]], rows: int) -> list[tuple[str, int]]:
    """Keys with their counts; `Impossible` for a count that a table of so many rows cannot have."""
    return [(key, within(number, 1, rows)) for key, number in batch]


def _keys(program: KeyCounts, emitter: Emitter) -> str:
    key = f"left({emitter.place(program.column).sql}, CAST({program.longest} AS INTEGER))"
    return f"SELECT {key} AS v0 {from_rows(program.rows, emitter, TABLE)}"
