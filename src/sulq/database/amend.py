"""The owner's changes to a published table: revoke, amend, close for good; withdraw an unused one.

Each is one event of the ledger: docs/guides/changing-a-table.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

from sulq.database.facts import (
    budget_of,
    check_told,
    facts_text,
    most_rows,
    note_size,
    table_facts,
)
from sulq.database.table import T, Table
from sulq.database.vault import forget_vault, why_none, with_vault
from sulq.errors import InvalidQuery, Refused
from sulq.exact.release import check_assumptions
from sulq.kernel.accounting.calibration import Calibration, calibrate
from sulq.kernel.accounting.loss import Loss, coupling_factor
from sulq.kernel.accounting.outside import NONE, Taken, check_currency, outside_price
from sulq.kernel.accounting.pricing import COARSE, check_askable, grid_bits, noise_grid
from sulq.kernel.engines.duckdb.quarantine import check_file
from sulq.kernel.engines.engine import Engine, open_engine
from sulq.kernel.ledger.header import (
    Amendment,
    Outside,
    PopulationMembership,
    TableHeader,
    as_published,
)
from sulq.kernel.ledger.inspect import INDIVIDUAL
from sulq.kernel.ledger.ledger import Ledger, Repair
from sulq.kernel.ledger.transactions import Price
from sulq.kernel.release.release import check_source
from sulq.kernel.schema.columns import Category, Column, Flag, Number, Schema, accounts
from sulq.kernel.schema.promise import Numeric, Population, Promise, exact_number
from sulq.kernel.schema.study import refuse_study, schema_from_json


@dataclass(frozen=True, slots=True)
class Change:
    """One fact of a table, before and after."""

    what: str
    was: str
    now: str


def changes(old: Schema, new: Schema, promised: Promise, promise: Promise) -> tuple[Change, ...]:
    """Return everything that differs; raise `Refused` where it may not."""
    return (*promise_changes(promised, promise), *schema_changes(old, new))


def differences(
    old: Schema, new: Schema, promised: Promise, promise: Promise
) -> tuple[Change, ...]:
    """Everything that differs, whatever may be changed: for a table that was never used."""
    found = [
        *([] if promised == promise else [_promised(promised, old, promise, new)]),
        *(
            Change(name, str(getattr(old, name)), str(getattr(new, name)))
            for name in ("unit", "max_rows", "at_most")
            if getattr(old, name) != getattr(new, name)
        ),
    ]
    names = [column.name for column in old.columns]
    for name in [*names, *(column.name for column in new.columns if column.name not in old)]:
        was, now = (_said(schema[name]) if name in schema else "hidden" for schema in (old, new))
        if was != now:
            found.append(Change(f"column {name}", was, now))
    if accounts(old) != accounts(new):
        found.append(Change("strata", ", ".join(old.strata), ", ".join(new.strata)))
    if not found and old.columns != new.columns:
        found.append(Change("columns", _listed(names), _listed([c.name for c in new.columns])))
    return tuple(found)


def _promised(was: Promise, old: Schema, now: Promise, new: Schema) -> Change:
    """Each in the words of its own unit: a row, or a person."""
    return Change("promise", str(was.about(old.unit)), str(now.about(new.unit)))


def _said(column: Column) -> str:
    public = "public, " if column.public else ""
    step = f", step {column.step}" if isinstance(column, Number) and column.step else ""
    return f"{public}{_domain(column)}{step}"


def promise_changes(old: Promise, new: Promise) -> list[Change]:
    """Return how the promise grows; it may not shrink, for people were told the old one."""
    if old == new:
        return []
    for name in ("noise", "neighbours"):
        if getattr(old, name) != getattr(new, name):
            _refuse(f"the {name} {getattr(old, name)!r}", "what was answered went by it")
    if old.noise in COARSE:
        _refuse(
            f"a promise with {old.noise} noise",
            "it is an account of a fixed number of counts, made at once (G.1.5)",
        )
    found = []
    for name, was, now in (
        ("epsilon", old.epsilon, new.epsilon),
        ("delta", old.delta, new.delta),
        ("credits", Fraction(old.credits), Fraction(new.credits)),
    ):
        if now < was:
            _refuse(
                f"{name} {_number(was)}", f"{_number(now)} is less; a promise can only be raised"
            )
        if now > was:
            found.append(Change(name, _number(was), _number(now)))
    return found or [Change("promise", str(old), str(new))]


def schema_changes(old: Schema, new: Schema) -> list[Change]:
    """Return the new columns, and the tighter bounds of old ones."""
    if old.unit != new.unit:
        _refuse(f"the unit {old.unit!r}", "it says who is protected")
    found = [
        _limit(name, getattr(old, name), getattr(new, name)) for name in ("max_rows", "at_most")
    ]
    for column in old.columns:
        if column.name not in new:
            _refuse(f"column {column.name!r}", "a declared column stays declared")
        found.append(_column(column, new[column.name]))
    for column in new.columns:
        if column.name not in old:
            public = "public, " if column.public else ""
            found.append(Change(f"column {column.name}", "hidden", public + _domain(column)))
    if accounts(old) != accounts(new):
        _refuse(
            "the strata",
            "each is an account with a past; a new public column needs strata ="
            f" {list(old.strata)} in the schema",
        )
    changed = [change for change in found if change is not None]
    if not changed and [c.name for c in old.columns] != [c.name for c in new.columns]:
        _refuse("the order of columns", "nothing else is changed by it")
    return changed


def _limit(name: str, was: int, now: int) -> Change | None:
    if now > was:
        _refuse(f"{name} = {was}", f"{now} is more; bounds can only be tightened")
    return Change(name, str(was), str(now)) if now < was else None


def _column(old: Column, new: Column) -> Change | None:
    """The same column, or one with tighter bounds."""
    what = f"column {old.name!r}"
    if old.complete != new.complete:
        _refuse(f"complete = {str(old.complete).lower()} of {what}", "SELECTs would change meaning")
    if old.public != new.public:
        why = (
            "what was promised to be protected would be given away"
            if new.public
            else "exact sums of it may be out, and strata would lose their past"
        )
        _refuse(f"the {'public' if old.public else 'private'} {what}", why)
    match old, new:
        case Flag(), Flag():
            return None
        case Number(), Number() if (old.kind, old.lattice) == (new.kind, new.lattice):
            (low, high), (least, most) = old.range, new.range
            tighter = low <= least and most <= high
            same = (low, high) == (least, most)
        case Category(), Category() if old.integers == new.integers:
            tighter = old.values is None or set(new.values or (None,)) <= set(old.values)
            same = old.values == new.values
        case _:
            _refuse(what, "its kind and step stay what they are")
    if not tighter:
        _refuse(f"{_domain(old)} of {what}", f"{_domain(new)} is no part of it")
    return None if same else Change(f"column {old.name}", _domain(old), _domain(new))


def _domain(column: Column) -> str:
    match column:
        case Number():
            return f"{column.low} to {column.high}"
        case Category(values=None):
            return "open whole numbers" if column.whole else "open text"
        case Category():
            return _listed([str(value) for value in column.values or ()])
    return "yes or no"


def _listed(values: Sequence[str]) -> str:
    shown = ", ".join(values[:8])
    return shown if len(values) <= 8 else f"{shown} and {len(values) - 8} more"


def _number(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"{float(value):.12g}"


def _refuse(what: str, why: str) -> NoReturn:
    raise Refused(f"{what} cannot be amended: {why}; nothing was changed")


def scale(old: Calibration, new: Calibration) -> tuple[Fraction, Fraction]:
    """What one old credit, and a delta of one, is under the new promise: exactly, never less.

    Gaussian: c credits are a loss of c / R in mu^2, so c R'/R new ones (G.1). Laplace: c / b in
    epsilon, so c b'/b (S4.13). A distance t of samplers costs (1 + e^eps) t of delta (TB.8).
    """
    if old.promise == new.promise:
        return Fraction(1), Fraction(1)
    if new.promise.noise == "laplace":
        return new.unit_scale / old.unit_scale, Fraction(1)
    wider = coupling_factor(new.promise.epsilon) / coupling_factor(old.promise.epsilon)
    return new.unit_variance / old.unit_variance, max(Fraction(1), wider)


def keeps(old: Schema, new: Schema, before: Calibration, after: Calibration) -> bool:
    """True if every stored answer means the same as before: the columns it was bound on are
    there unchanged, and so are both grids."""
    same = (old.bits, old.max_rows, old.at_most) == (new.bits, new.max_rows, new.at_most)
    kept = all(column.name in new and new[column.name] == column for column in old.columns)
    return same and kept and noise_grid(before) == noise_grid(after)


# How a table pays for its population: what its losses are in the population's currency.


FACT = "population"


def member_of(
    population: Population | None,
    calibration: Calibration,
    schema: Schema,
    *,
    individual: bool,
    exactly: bool,
) -> tuple[PopulationMembership | None, dict[str, str]]:
    """Return what the ledger is told of a table's population, or say why it can have none."""
    if population is None:
        return None, {}
    if not isinstance(population, Population):
        raise InvalidQuery("population wants a Population(name, promise)")
    if exactly:
        raise InvalidQuery(
            "exact release does not add up over tables: leave the population out, or it"
        )
    if individual and not population.persons:
        raise InvalidQuery(
            "balances of people do not add up with one account for everybody: declare the"
            " population with persons = true, leave it out, or individual accounting"
        )
    population.check_table(calibration.promise)
    if population.persons:
        promise = calibration.promise
        population.check_persons(promise, schema.unit, schema.max_rows, individual)
    terms = calibrate(population.promise)
    credits, delta = scale(calibration, terms)  # as an amendment from one promise to the other
    member = PopulationMembership(
        population.name,
        facts_text(population.promise.to_json()),
        Loss.cap(terms.credits, terms.slack_cap),
        credits,
        max(Fraction(1), delta),
        population.persons,
    )
    return member, {FACT: facts_text(population.to_json())}


def population_of(facts: Mapping[str, str]) -> Population | None:
    """Return the population that a ledger's facts name."""
    return Population.from_json(json.loads(facts[FACT])) if FACT in facts else None


# What an owner may change on a published table, and what it does to what is spent.
#
# Nothing here reads data. Proof: docs/proofs/ledger.md, section 12.


def revoke(database: Table, analyst: str, reason: str = "") -> None:
    """Take back what an analyst has not spent: it can be granted again. What was spent stays.

    The name gets nothing more, not even repeats, until a new grant.
    """
    database.ledger.revoke(analyst, reason)


def close_for_good(database: Table, reason: str = "") -> None:
    """Turn the table off, for ever: nothing new is answered, granted, reserved or compared.

    What was paid for stays readable by whoever paid, as a free repeat.
    """
    database.ledger.close_for_good(reason)


def amend(
    database: T,
    schema: Schema | None = None,
    promise: Promise | None = None,
    *,
    source: Any = None,
    reason: str = "",
) -> T:
    """The same table with a larger promise, new columns or tighter bounds; this one is closed.

    What is spent stays spent. `source` is needed where the table was opened from a frame. Before
    anything was asked schema and promise may change in any way; then every share ends.
    """
    refuse_study(database.schema, "an amendment")
    new_schema, new_promise = schema or database.schema, promise or database.promise
    if not isinstance(new_schema, Schema) or not isinstance(new_promise, Promise):
        raise InvalidQuery("amend takes a Schema and a Promise, or one of them")
    new_promise = new_promise.after(database.promise)
    declared = (database.schema, new_schema, database.promise, new_promise)
    free = False
    try:
        database.reader.check_covered("an amendment")
        found = changes(*declared)
    except Refused:
        if not database.ledger.unused:
            raise
        free, found = True, differences(*declared)
    if not found:
        raise Refused("nothing to amend: schema and promise are what the ledger has")
    exactly = database.exact.assumptions
    if exactly is not None:
        check_assumptions(exactly, new_schema, new_promise)
    calibration = calibrate(new_promise)
    check_askable(calibration)
    rows = source if source is not None else database.source
    if rows is None:
        raise InvalidQuery("this table was opened from a frame: give it again, amend(source=...)")
    check_source(database.engine)
    engine = open_engine(rows, new_schema)
    try:
        if engine.fingerprint() != database.engine.fingerprint():
            raise Refused("this source has other rows than the table was published with")
        gridded = new_schema.on_grid(
            grid_bits(most_rows(new_schema, new_promise, engine), calibration)
        )
        header, cap = database.ledger.header, Loss.cap(calibration.credits, calibration.slack_cap)
        facts = {**header.facts, **table_facts(gridded, new_promise)}
        if free:
            wanted = replace(header, facts=facts, accounts=tuple(accounts(gridded)), cap=cap)
            ledger = _repaired(database, wanted, calibration, gridded, new_promise, reason)
        else:
            credits, delta = scale(database.calibration, calibration)
            kept = keeps(database.schema, gridded, database.calibration, calibration)
            ledger = database.ledger.amend(Amendment(facts, cap, credits, delta, kept, reason))
    except BaseException:
        engine.close()
        raise
    engine = _vaulted(database, engine, rows, gridded, new_promise, ledger)
    found_again = database.with_(
        schema=gridded,
        promise=new_promise,
        engine=engine,
        ledger=ledger,
        calibration=calibration,
        source=rows,
    )
    database.close()
    return found_again


def _vaulted(
    database: Table, engine: Engine, source: Any, schema: Schema, promise: Promise, ledger: Ledger
) -> Engine:
    """The engine over a vault of these rows where the table has one; else the engine."""
    place, said = ledger.place, database.vault
    if place is None or said is False or why_none(source, schema, place) is not None:
        return engine
    with suppress(Refused):  # what was amended stands in the ledger: the rows are read as they are
        return with_vault(engine, source, schema, promise, ledger, said)
    return engine


def _repaired(
    database: Table,
    wanted: TableHeader,
    calibration: Calibration,
    schema: Schema,
    promise: Promise,
    reason: str,
) -> Ledger:
    """The ledger of an unused table, which begins again with this header."""
    facts = database.ledger.header.facts
    if INDIVIDUAL in facts:
        raise Refused(
            "a table with individual accounting is repaired by `sulq amend`, or withdrawn"
            " and published anew"
        )
    exact = database.exact.assumptions is not None
    member, _ = member_of(
        population_of(facts), calibration, schema, individual=False, exactly=exact
    )
    told = public_number(facts)

    def check(shown: bool) -> None:
        check_told(told if shown else None, schema, promise)

    return database.ledger.repair(replace(wanted, member=member), reason, check)


def withdraw(database: Table, reason: str = "") -> None:
    """Take the table back before anything was asked: its rows may be published anew.

    `Refused` once a question was charged, reserved or answered, publicly too. This object is
    closed.
    """
    database.ledger.withdraw(reason, public_number(database.ledger.header.facts))
    forget_vault(database.ledger)
    database.close()


def repair_at(
    ledger: str | Path, wanted: TableHeader, fingerprint: str | None, reason: str
) -> None:
    """Give a table that was never used another header, and in the same step other rows if they
    have changed, or how they are read."""
    journal = Ledger.attach(ledger, wanted.name)
    try:
        header = journal.header
        schema, promise = declared_in(wanted.facts)
        told = public_number(header.facts)

        def check(shown: bool) -> None:
            check_told(told if shown else None, schema, promise)

        fixed = replace(wanted, version=header.version)
        if journal.reads(fingerprint):
            journal.repair(fixed, reason, check).close()
        else:
            repair, named = Repair(fixed, reason, check), (wanted.facts, fingerprint, reason)
            journal.grow(*named, wanted.budget, repair=repair).close()
    finally:
        journal.close()


def declared_in(facts: Mapping[str, str]) -> tuple[Schema, Promise]:
    """Return schema and promise as a ledger's facts have them."""
    schema, promise = (json.loads(facts[name]) for name in ("schema", "promise"))
    return schema_from_json(schema), Promise.from_json(promise)


def public_number(facts: Mapping[str, str]) -> str | None:
    """What whoever has a share may read of an unused table, free: how many units it has.

    Under replace that number is public; the unit is what was counted.
    """
    schema, promise = declared_in(facts)
    return schema.unit if promise.neighbours == "replace" else None


# New rows for a published table, on the account it has: docs/guides/growth.md.


def grow_table(
    database: T,
    source: Any,
    *,
    schema: Schema | None = None,
    promise: Promise | None = None,
    reason: str = "",
    budget: Numeric | None = None,
) -> T:
    """The same table with new rows, as a new version of its data; this object is closed.

    A new `schema` or `promise` is recorded in the same step, if `amend` would take it.

    What is spent stays spent. Stored answers stay with the rows they were given on: none is
    repeated for the new ones, or combined with theirs. `budget`: the credits that this version may
    spend of what is left, so that something is left for the next; unsaid, as the one before.
    """
    steps = budget_of(budget)
    refuse_study(database.schema, "growth")
    database.reader.check_covered("growth")
    new_schema, new_promise = schema or database.schema, promise or database.promise
    if not isinstance(new_schema, Schema) or not isinstance(new_promise, Promise):
        raise InvalidQuery("grow takes a source, and a Schema or a Promise if these change too")
    new_promise = new_promise.after(database.promise)
    terms = calibrate(new_promise)
    check_askable(terms)
    check_file(source, new_schema)  # new rows may be somebody else's: not in this process
    engine = open_engine(source, new_schema)
    try:
        if engine.fingerprint() == database.engine.fingerprint():
            raise Refused("nothing has grown: these are the rows that the table has")
        rows = most_rows(new_schema, new_promise, engine)
        gridded = new_schema.on_grid(grid_bits(rows, terms))
        header = database.ledger.header
        facts = {**header.facts, **table_facts(gridded, new_promise)}
        change = amendment(header, facts, reason)
        ledger = database.ledger.grow(facts, engine.fingerprint(), reason, steps, change)
    except BaseException:
        engine.close()
        raise
    engine = _vaulted(database, engine, source, gridded, new_promise, ledger)
    found = database.with_(
        schema=gridded,
        promise=new_promise,
        engine=engine,
        ledger=ledger,
        calibration=terms,
        source=source,
    )
    note_size(ledger, new_promise, engine)
    database.close()
    return found


def grow_at(
    ledger: str | Path,
    name: str,
    facts: dict[str, str],
    fingerprint: str | None,
    reason: str,
    budget: int | None,
) -> None:
    """Give the table a new version, unless this is the data of its last one; what else is new in
    `facts` is amended in the same step."""
    journal = Ledger.attach(ledger, name)
    try:
        if not journal.reads(fingerprint):
            facts = as_published(facts, journal.header.facts)
            change = amendment(journal.header, facts, reason)
            journal.grow(facts, fingerprint, reason, budget, change).close()
        elif budget not in (None, journal.version_budget):
            raise Refused(
                f"nothing has grown, and the present version of {name!r} has another budget; a new"
                " one goes with new rows"
            )
    finally:
        journal.close()


def amendment(header: TableHeader, facts: dict[str, str], reason: str) -> Amendment | None:
    """What a version with these facts amends beside its rows; None if only the grid follows them.

    `Refused` where an amendment would be. Answers are put away with the rows they were given on,
    so none is kept.
    """
    if INDIVIDUAL in header.facts:
        raise Refused("this table has individual accounting, whose balances belong to its rows")
    names = {*header.facts, *facts} - {"schema", "promise"}
    if found := sorted(name for name in names if header.facts.get(name) != facts.get(name)):
        raise Refused(
            f"table {header.name!r} has other {', '.join(found)}: beside its rows a table that"
            " grows may get new columns, tighter bounds and a larger promise, nothing else"
        )
    (old, before), (new, after) = declared_in(header.facts), declared_in(facts)
    if not changes(old, new, before, after):
        return None
    terms = calibrate(after)
    cap = Loss.cap(terms.credits, terms.slack_cap)
    return Amendment(facts, cap, *scale(calibrate(before), terms), keeps=False, reason=reason)


# Releases made elsewhere about the same people, booked here: docs/guides/same-people.md.


def charge_outside(
    database: Table,
    credits: Numeric | None = None,
    *,
    epsilon: Numeric | None = None,
    delta: Numeric = 0,
    reason: str,
) -> Outside:
    """Book a release about the same people that was made elsewhere, beyond the cap too.

    Give its (epsilon, delta), for the neighbours and the unit of this table; or credits, where it
    was answered with noise of this table's kind.
    """
    if (credits is None) == (epsilon is None):
        raise InvalidQuery("an outside release costs `credits` or `epsilon`, one of them")
    if not isinstance(reason, str) or not reason.strip():
        raise InvalidQuery("say which release it was, `reason`: it is kept in the ledger")
    calibration = database.calibration
    check_currency(calibration)
    taken = exact_number("delta", delta)
    stated = None if epsilon is None else exact_number("epsilon", epsilon)
    given = Fraction(0) if credits is None else exact_number("credits", credits)
    if given < 0:
        raise InvalidQuery(f"got credits={credits!r}, wanted a number of at least 0")
    if not (given or stated or taken):
        raise InvalidQuery("a release that costs nothing needs no entry")
    outside_price(stated or Fraction(0), taken, NONE, calibration)  # refused before anything else

    def priced(terms: Calibration, worth: Fraction) -> Price:
        """In the currency of `terms`, in which a credit of this table is `worth`."""

        def price(before: Taken) -> Outside:
            found = outside_price(stated or Fraction(0), taken, before, terms)
            stands = Loss.of(found.stands)
            lost = Loss.of(given * worth + found.credits)
            return Outside(stated, taken, lost + stands, stands.credits, found.taken, reason)

        return price

    joint = None
    if (population := population_of(database.ledger.header.facts)) is not None:
        terms = calibrate(population.promise)
        joint = priced(terms, scale(calibration, terms)[0])
    return database.ledger.outside(priced(calibration, Fraction(1)), joint)
