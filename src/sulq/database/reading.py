"""Who reads the rows for a question: the engine, or the filters of a table that has them.

Everything that differs between the two for the rest of the flow is here. docs/proofs/individual.md
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sulq.database.individual import IndividualFilter
from sulq.errors import Refused, SulqError
from sulq.kernel.accounting.calibration import Calibration
from sulq.kernel.accounting.individual import check_individual
from sulq.kernel.engines.engine import Engine, open_engine
from sulq.kernel.ledger.events import Charge
from sulq.kernel.ledger.inspect import INDIVIDUAL
from sulq.kernel.ledger.ledger import Ledger
from sulq.kernel.ledger.state_dir import is_shared
from sulq.kernel.query.sum_query import MOST_TERMS
from sulq.kernel.schema.bind import MOST_CELLS, BoundQuery
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.program import RowSums

if TYPE_CHECKING:
    from sulq.database.database import Database


def passes(bounds: Iterable[BoundQuery]) -> list[list[BoundQuery]]:
    """Questions over the same rows and cells go together, as far as one question could be."""
    together: dict[object, list[list[BoundQuery]]] = {}
    for bound in bounds:
        same: object = bound.digest
        if isinstance(bound.sums, RowSums):
            same = (bound.sums.rows, bound.sums.groups)
        parts = together.setdefault(same, [[]])
        terms = len(bound.terms) + sum(len(one.terms) for one in parts[-1])
        if terms > MOST_TERMS or terms * bound.cells > MOST_CELLS:
            parts.append([])
        parts[-1].append(bound)
    return [part for parts in together.values() for part in parts if part]


def prepared(engine: Engine, bounds: Sequence[BoundQuery]) -> Callable[[], list[list[int]]]:
    """What will read the rows once and give each question its own sums; may refuse."""
    read = engine.prepare(bounds[0].sums if len(bounds) == 1 else merged(bounds))
    return lambda: parted(read(), bounds)


def merged(bounds: Sequence[BoundQuery]) -> RowSums:
    """One program that sums the terms of all of them."""
    programs = [bound.sums for bound in bounds if isinstance(bound.sums, RowSums)]
    return replace(programs[0], terms=tuple(term for sums in programs for term in sums.terms))


def parted(sums: list[int], bounds: Sequence[BoundQuery]) -> list[list[int]]:
    """The sums of `merged`, each question's own."""
    if len(bounds) == 1:
        return [sums]
    widths = [len(bound.terms) for bound in bounds]
    whole, found, start = sum(widths), [], 0
    for width in widths:
        cells = range(start, len(sums), whole)
        found.append([value for cell in cells for value in sums[cell : cell + width]])
        start += width
    return found


# Fewer passes over the rows: questions over the same rows and cells become one program.


NARROW = 64
"""Cells of a group whose text is written in no time that could be told."""
BIAS = (
    "individual accounting: whoever has spent their own balance adds nothing, so a sum may be too"
    " small by more than its bar"
)


def open_engine_for(
    source: Any,
    schema: Schema,
    terms: Calibration,
    ledger: str | Path,
    individual: bool,
    shares_people: bool,
) -> tuple[Engine, dict[str, str]]:
    """The engine, and what the ledger pins of it; or why there cannot be one."""
    if not individual:
        return open_engine(source, schema), {}
    check_individual(terms)
    if is_shared(ledger):
        raise Refused("individual accounting needs a ledger of its own: give a file")
    from sulq.kernel.engines.rows import open_numbered  # loaded when it is needed

    rows = open_numbered(source, schema)
    return IndividualFilter(rows, schema, terms, shares_people), {INDIVIDUAL: "true"}


def check_engine_mode(engine: Engine, ledger: Ledger, schema: Schema) -> None:
    """Whoever opens the table, in whatever way: never without the filters it was published with."""
    if (INDIVIDUAL in ledger.header.facts) != isinstance(engine, IndividualFilter):
        raise Refused("this table has individual accounting, or has none: open it as published")
    if isinstance(engine, IndividualFilter):
        engine.schema = schema
        filters = engine.join(ledger)
        with suppress(SulqError):  # a question will say what is wrong; the ledger can be read
            filters.warm(ledger)


def with_notes(engine: Engine, bound: BoundQuery) -> BoundQuery:
    """The question, with what the asker should know of how it is read."""
    individual = isinstance(engine, IndividualFilter)
    return replace(bound, notes=(*bound.notes, BIAS)) if individual else bound


def prepare_read(database: Database, bound: BoundQuery) -> Callable[[Charge], list[int]]:
    """What will read the rows for a charged entry; may refuse, and reads none yet."""
    if isinstance(database.engine, IndividualFilter):
        return database.engine.reader(bound, database.ledger)  # V.2
    read = database.engine.prepare(bound.sums)
    return lambda entry: read()


def check_readable(database: Database, bound: BoundQuery) -> None:
    """What `ask` would refuse, a quote refuses too.

    A quote leaves on no clock. How the keys of a wide category are written depends on what the
    column holds, and takes time: those are written only for an answer.
    """
    if all(len(group.keys) <= NARROW for group in bound.groups):
        prepare_read(database, bound)


Read = Callable[[dict[str, Charge]], list[list[int]]]
"""From the charged entries, by digest, to each question's own sums."""


def readers(
    database: Database, bounds: Iterable[BoundQuery]
) -> list[tuple[list[BoundQuery], Read]]:
    """As `reader`, for several: in few passes, or each on the balances its own charge finds."""

    def alone(bound: BoundQuery) -> Read:
        read = prepare_read(database, bound)
        return lambda paid: [read(paid[bound.digest])]

    def together(several: list[BoundQuery]) -> Read:
        read = prepared(database.engine, several)
        return lambda paid: read()

    if isinstance(database.engine, IndividualFilter):
        return [([bound], alone(bound)) for bound in bounds]
    return [(several, together(several)) for several in passes(bounds)]


def has_balances(database: Database) -> bool:
    """True if the table's people have balances of their own. A public fact."""
    return isinstance(database.engine, IndividualFilter)


def refuse_individual(database: Database, what: str) -> None:
    """`Refused` for what the filters' proof does not cover."""
    if isinstance(database.engine, IndividualFilter):
        raise Refused(f"{what} is not covered by individual accounting; publish a table without it")


def spent_by_people(database: Database) -> list[int]:
    """How many have spent up to a tenth of their balance, two tenths, ...: the owner's alone."""
    if not isinstance(database.engine, IndividualFilter):
        raise Refused("this table has one account for all, and no balances of its people")
    return database.engine.histogram(database.ledger)


def share_of_slack(database: Database, analyst: str, credits: Fraction) -> Fraction:
    """The delta that goes with a grant: half in proportion; the other half covers uneven use.

    Where people pay and shares are renewed, only what the analyst does not have yet.
    """
    each = database.calibration.slack_cap / (2 * database.calibration.credits)
    if not isinstance(database.engine, IndividualFilter):
        return each * credits
    left = database.ledger.remaining(analyst)
    return max(Fraction(0), each * (left.credits_fraction + credits) - left.delta_fraction)
