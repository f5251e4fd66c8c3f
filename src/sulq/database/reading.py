"""Who reads the rows for a question: the engine, or the filters of a table that has them.

Everything that differs between the two for the rest of the flow is here. docs/proofs/individual.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sulq.database.individual import ONLY_SUMS, IndividualFilter
from sulq.errors import Refused, SulqError
from sulq.kernel.accounting.calibration import Calibration
from sulq.kernel.accounting.individual import check_individual
from sulq.kernel.engines.engine import Engine, open_engine
from sulq.kernel.ledger.events import Charge
from sulq.kernel.ledger.inspect import INDIVIDUAL
from sulq.kernel.ledger.ledger import Ledger
from sulq.kernel.ledger.state_dir import is_shared
from sulq.kernel.release.mechanisms import NoisySums
from sulq.kernel.release.reading import EngineReader
from sulq.kernel.release.release import Mechanism, Pass, RowReader
from sulq.kernel.schema.bind import BoundQuery
from sulq.kernel.schema.columns import Schema

if TYPE_CHECKING:
    from sulq.database.database import Database


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


@dataclass(frozen=True, slots=True)
class IndividualReader:
    """The filters read, each question on the balances that its own charge finds. V.2"""

    engine: IndividualFilter
    ledger: Ledger

    def passes(self, mechanisms: Sequence[Mechanism]) -> list[Pass]:
        return [Pass([one], self._prepared(one)) for one in mechanisms]

    def _prepared(self, one: Mechanism) -> Callable[[Mapping[str, Charge]], list[list[int]]]:
        if not isinstance(one, NoisySums):
            one.prepare(self.engine)  # which refuses
            raise Refused(ONLY_SUMS.format("this"))
        read = self.engine.reader(one.bound, self.ledger)
        return lambda paid: [read(paid[one.priced.digest])]


def reader_for(database: Database) -> RowReader:
    """The engine, or the filters of a table that has them."""
    if isinstance(database.engine, IndividualFilter):
        return IndividualReader(database.engine, database.ledger)
    return EngineReader(database.engine)


def check_readable(database: Database, bound: BoundQuery) -> None:
    """What `ask` would refuse, a quote refuses too.

    A quote leaves on no clock. How the keys of a wide category are written depends on what the
    column holds, and takes time: those are written only for an answer.
    """
    if any(len(group.keys) > NARROW for group in bound.groups):
        return
    if isinstance(database.engine, IndividualFilter):
        database.engine.reader(bound, database.ledger)
    else:
        database.engine.prepare(bound.sums)


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
