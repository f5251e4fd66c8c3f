"""Sums per person: GROUP BY person inside, clip, then the sum.

Keys of the inner SELECT stand for one cell each, so nobody is clipped twice within a cell.
docs/proofs/engines.md, claim 7.
"""

from __future__ import annotations

from collections.abc import Mapping

from sulq.engines.cells import cell_of, key_sql
from sulq.engines.dialect import Dialect
from sulq.engines.emitter import Emitter
from sulq.engines.inner import from_rows
from sulq.engines.leaves import Place
from sulq.engines.statement import TABLE, Reach, Statement, aggregate_sql
from sulq.engines.totals import Total, Totals, mixture
from sulq.schema.bound import BinCells, CategoryCells
from sulq.schema.persons import PersonSums

PERSON = "person"
"""The column of the kept rows that says whose they are; no question can name it."""


def person_statement(program: PersonSums, places: Mapping[str, Place], most_rows: int) -> Statement:
    """The program as one SELECT over the kept rows."""
    plain = program.plain
    sums = Totals(program.rows, (mixture(program.term),))  # also rows that only add 0 count
    draft = Emitter(places)
    _parts(program, sums, draft, most_rows)
    shared = frozenset(node for node, uses in draft.uses.items() if uses > 1)
    keys, aggregates, source = _parts(program, sums, Emitter(places, shared), most_rows)
    held = dict(zip(sums.aggregates, aggregates, strict=True))
    speak = next(iter(places.values())).dialect
    wide = speak.wide
    parts = [
        f"{wide(Dialect.integer(weight))} * {wide(held[part])}" for weight, part in sums.terms[0]
    ]
    named = [
        _one_key(key, group) if isinstance(group, BinCells) else key
        for key, group in zip(keys, program.groups, strict=True)
    ]
    columns = [f"k{number}" for number in range(len(keys))]
    inner = ", ".join(
        [
            PERSON,
            *(f"{key} AS {name}" for key, name in zip(named, columns, strict=True)),
            f"{' + '.join(parts) or wide('0')} AS s",
        ]
    )
    clipped = Dialect.bigint(
        f"LEAST(GREATEST(s, {wide(Dialect.integer(program.low))}),"
        f" {wide(Dialect.integer(program.high))})"
    )
    largest = max(abs(program.low), abs(program.high))
    summed = speak.whole_sum(clipped, largest, most_rows)
    per_person = ", ".join(str(number + 1) for number in range(len(keys) + 1))
    per_cell = ", ".join(str(number + 1) for number in range(len(keys)))
    sql = (
        f"SELECT {', '.join([*columns, summed])}"
        f" FROM (SELECT {inner} {source} GROUP BY {per_person}) AS persons"
        f"{f' GROUP BY {per_cell}' if per_cell else ''}"
    )
    cells = tuple(
        cell_of(group, places[group.column] if isinstance(group, CategoryCells) else None, False)
        for group in program.groups
    )
    whole = Total(program.term)
    summed_once = Totals(program.rows, (((1, whole),),))
    return Statement(sql, plain, summed_once, cells, (_reach(program),), most_rows)


def _reach(program: PersonSums) -> Reach:
    """What a person adds to a cell."""
    return Reach(min(0, program.low), max(0, program.high))


def held_statement(
    program: PersonSums, places: Mapping[str, Place], most_rows: int, held: str
) -> Statement:
    """All rows of each person, clipped, then added up; `held` gives one `s` for each person. P.1"""
    speak = next(iter(places.values())).dialect
    wide = speak.wide
    clipped = Dialect.bigint(
        f"LEAST(GREATEST({wide('s')}, {wide(Dialect.integer(program.low))}),"
        f" {wide(Dialect.integer(program.high))})"
    )
    summed = speak.whole_sum(clipped, max(abs(program.low), abs(program.high)), most_rows)
    sums = Totals(program.rows, (((1, Total(program.term)),),))
    sql = f"SELECT {summed} FROM {held}"
    return Statement(sql, program.plain, sums, (), (_reach(program),), most_rows)


def held_sql(source: str) -> str:
    """How many rows each person has, before any is cut."""
    return f"SELECT count(*) AS s FROM {source} WHERE {PERSON} IS NOT NULL GROUP BY {PERSON}"


def _parts(
    program: PersonSums, sums: Totals, emitter: Emitter, most_rows: int
) -> tuple[list[str], list[str], str]:
    """Keys, aggregates, and FROM ... WHERE with the person still there."""
    emitter.columns.add(PERSON)
    keys = [key_sql(group, emitter, False)[0] for group in program.groups]
    aggregates = [aggregate_sql(part, emitter, most_rows) for part in sums.aggregates]
    return keys, aggregates, from_rows(sums.rows, emitter, TABLE)


def _one_key(key: str, cells: BinCells) -> str:
    """What lies on the last edge is in the last bin."""
    last = Dialect.integer(len(cells.edges) - 2)
    return Dialect.bigint(f"CASE WHEN {key} > {last} THEN {last} ELSE {key} END")
