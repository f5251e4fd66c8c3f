"""Who reads the rows for a question: the engine, or the filters of a table that has them.

Everything that differs between the two for the rest of the flow is here. docs/proofs/individual.md
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sulq.accounting.calibration import Calibration
from sulq.accounting.individual import check_individual
from sulq.database.individual import Individual
from sulq.database.passes import passes, prepared
from sulq.engines.engine import Engine, open_engine
from sulq.errors import Refused, SulqError
from sulq.ledger.entries import Entry
from sulq.ledger.journal import Journal
from sulq.ledger.places import is_shared
from sulq.ledger.statement import INDIVIDUAL
from sulq.schema.binding import BoundQuery
from sulq.schema.columns import Schema

if TYPE_CHECKING:
    from sulq.database.database import Database

NARROW = 64
"""Cells of a group whose text is written in no time that could be told."""
BIAS = (
    "individual accounting: whoever has spent their own balance adds nothing, so a sum may be too"
    " small by more than its bar"
)


def opened(
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
    from sulq.engines.numbered import open_numbered  # loaded when it is needed

    rows = open_numbered(source, schema)
    return Individual(rows, schema, terms, shares_people), {INDIVIDUAL: "true"}


def pinned(engine: Engine, ledger: Journal, schema: Schema) -> None:
    """Whoever opens the table, in whatever way: never without the filters it was published with."""
    if (INDIVIDUAL in ledger.header.facts) != isinstance(engine, Individual):
        raise Refused("this table has individual accounting, or has none: open it as published")
    if isinstance(engine, Individual):
        engine.schema = schema
        filters = engine.join(ledger)
        with suppress(SulqError):  # a question will say what is wrong; the ledger can be read
            filters.warm(ledger)


def noted(engine: Engine, bound: BoundQuery) -> BoundQuery:
    """The question, with what the asker should know of how it is read."""
    individual = isinstance(engine, Individual)
    return replace(bound, notes=(*bound.notes, BIAS)) if individual else bound


def reader(database: Database, bound: BoundQuery) -> Callable[[Entry], list[int]]:
    """What will read the rows for a charged entry; may refuse, and reads none yet."""
    if isinstance(database.engine, Individual):
        return database.engine.reader(bound, database.ledger)  # V.2
    read = database.engine.prepare(bound.sums)
    return lambda entry: read()


def check_readable(database: Database, bound: BoundQuery) -> None:
    """What `ask` would refuse, a quote refuses too.

    A quote leaves on no clock. How the keys of a wide category are written depends on what the
    column holds, and takes time: those are written only for an answer.
    """
    if all(len(group.keys) <= NARROW for group in bound.groups):
        reader(database, bound)


Read = Callable[[dict[str, Entry]], list[list[int]]]
"""From the charged entries, by digest, to each question's own sums."""


def readers(
    database: Database, bounds: Iterable[BoundQuery]
) -> list[tuple[list[BoundQuery], Read]]:
    """As `reader`, for several: in few passes, or each on the balances its own charge finds."""

    def alone(bound: BoundQuery) -> Read:
        read = reader(database, bound)
        return lambda paid: [read(paid[bound.digest])]

    def together(several: list[BoundQuery]) -> Read:
        read = prepared(database.engine, several)
        return lambda paid: read()

    if isinstance(database.engine, Individual):
        return [([bound], alone(bound)) for bound in bounds]
    return [(several, together(several)) for several in passes(bounds)]


def has_balances(database: Database) -> bool:
    """True if the table's people have balances of their own. A public fact."""
    return isinstance(database.engine, Individual)


def refuse_individual(database: Database, what: str) -> None:
    """`Refused` for what the filters' proof does not cover."""
    if isinstance(database.engine, Individual):
        raise Refused(f"{what} is not covered by individual accounting; publish a table without it")


def spent_by_people(database: Database) -> list[int]:
    """How many have spent up to a tenth of their balance, two tenths, ...: the owner's alone."""
    if not isinstance(database.engine, Individual):
        raise Refused("this table has one account for all, and no balances of its people")
    return database.engine.histogram(database.ledger)


def share_of_slack(database: Database, analyst: str, credits: Fraction) -> Fraction:
    """The delta that goes with a grant: half in proportion; the other half covers uneven use.

    Where people pay and shares are renewed, only what the analyst does not have yet.
    """
    each = database.calibration.slack_cap / (2 * database.calibration.credits)
    if not isinstance(database.engine, Individual):
        return each * credits
    left = database.ledger.remaining(analyst)
    return max(Fraction(0), each * (left.credits_fraction + credits) - left.delta_fraction)
