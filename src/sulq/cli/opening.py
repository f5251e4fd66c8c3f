"""From a policy file to an open table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from difflib import get_close_matches
from pathlib import Path

from sulq.cli.questions import FORMS, SYNONYMS, spelled
from sulq.cli.screen import talk
from sulq.database import Database
from sulq.database.opening import Options, open_table
from sulq.errors import InvalidQuery, Refused, UnsafeExactly
from sulq.exact import Assumptions
from sulq.ledger.book import MEMORY, missing
from sulq.ledger.inspection import inspect, is_lost, is_published, is_there
from sulq.ledger.places import place_name
from sulq.ledger.publishing import not_published
from sulq.policy import TablePolicy, read_policy
from sulq.query.statistics import Statistic
from sulq.schema.columns import Schema
from sulq.schema.promise import Promise


def chosen(policy: Path, words: Sequence[str]) -> tuple[TablePolicy, list[str]]:
    """The table that the words begin with, or the only one there is; and the words after it."""
    tables = read_policy(policy)
    if words and words[0] in tables:
        return tables[words[0]], list(words[1:])
    if len(tables) == 1:
        return next(iter(tables.values())), list(words)
    got = f", and {words[0]!r:.40} is none of them" if words else ""
    raise InvalidQuery(f"say which table first: {policy} declares {', '.join(sorted(tables))}{got}")


def asked_of(policy: Path, words: Sequence[str]) -> tuple[TablePolicy, list[str]]:
    """As `chosen`, for a question: a first word that is no statistic was meant as a table."""
    tables = read_policy(policy)
    statistics = FORMS.keys() | SYNONYMS.keys()
    if words and words[0] not in tables and words[0].casefold() not in statistics:
        near = get_close_matches(words[0], tables, 1)
        if near or len(tables) > 1 or (len(words) > 1 and words[1] in statistics):
            meant = f"did you mean {near[0]!r}? " if near else ""
            raise InvalidQuery(f"no table {words[0]!r:.40}; {meant}the policy has {sorted(tables)}")
    return chosen(policy, words)


def named(policy: Path, name: str | None) -> TablePolicy:
    """The table called `name`; without a name, the only one."""
    table, rest = chosen(policy, [] if name is None else [name])
    if rest:
        raise InvalidQuery(f"no table {rest[0]!r} in {policy}; it declares {table.name!r}")
    return table


def several(policy: Path, name: str | None) -> list[TablePolicy]:
    """The table called `name`; without a name, all tables of the policy."""
    return list(read_policy(policy).values()) if name is None else [named(policy, name)]


@contextmanager
def opened(table: TablePolicy, *, publish: bool = False) -> Iterator[Database]:
    """The table on its ledger; `NotPublished` if the ledger does not have it, unless told to
    publish it. Grants of the policy are given once."""
    path = table.ledger_path
    if is_lost(path):
        raise missing(place_name(path), table.name)
    if not publish and str(path) != MEMORY and not is_published(path, table.name):
        raise not_published(table.name, place_name(path))  # before the rows are opened
    menu = _menu(table)
    with database_of(table, path, publish=publish) as database:
        if menu and database.declaration is None and database.ledger.closed is None:
            _declare(database, menu)
        now = database.statement().statement
        known = {line.name for line in now.analysts}  # who was revoked stays so
        for analyst, credits in table.grants.items():
            if analyst not in known and now.closed is None:
                database.grant(analyst, credits)
        yield database


def try_out(table: TablePolicy) -> None:
    """Raise what publishing the table would be refused for; publishes nothing."""
    table.check_grants()
    with database_of(table, MEMORY) as trial:
        if menu := _menu(table):
            trial.declare_exactly(*menu)


@contextmanager
def companions(table: TablePolicy) -> Iterator[None]:
    """The tables whose people pay from the same balances, open meanwhile: those with charges."""
    with ExitStack() as stack:
        if table.companions and is_there(table.ledger_path):
            known = inspect(table.ledger_path).statements
            for other in table.companions:
                if other.name in known and known[other.name].entries:
                    stack.enter_context(database_of(other, other.ledger_path))
        yield


def database_of(
    table: TablePolicy,
    ledger: Path | str,
    schema: Schema | None = None,
    promise: Promise | None = None,
    *,
    grown_from: bool | str = False,
    publish: bool = False,
) -> Database:
    """The table on that ledger, by the policy unless told otherwise; nothing is granted."""
    found = Database.open(
        table.rows,
        schema or table.schema(),
        promise or table.promise,
        ledger,
        name=table.name,
        exactly=_assumptions(table),
        population=table.population,
        individual=table.individual,
        grown_from=grown_from,
        version_budget=table.version_budget,
        publish=publish,
        receipts=None if ledger == ":memory:" else table.receipts_path,
    )
    try:
        found.set_partners(table.partners)
    except BaseException:
        found.close()
        raise
    return found


def repair(table: TablePolicy, reason: str) -> None:
    """Let a table that was never used go by the policy as it is; `Refused` if it was used."""
    found = open_table(
        table.rows,
        table.schema(),
        table.promise,
        table.ledger_path,
        table.name,
        Options(
            _assumptions(table),
            table.individual,
            table.population,
            version_budget=table.version_budget,
            receipts=table.receipts_path,
            repaired=reason,
        ),
    )
    found.ledger.close()
    found.engine.close()


def _assumptions(table: TablePolicy) -> Assumptions | None:
    facts = table.exact
    if facts is None:
        return None
    return Assumptions(facts.epsilon, facts.delta, facts.known_rows, facts.least)


def exact_outlook(table: TablePolicy) -> dict[str, object]:
    """What the policy's assumptions and menu for exact release amount to; publishes nothing."""
    if table.exact is None:
        return {"on": False}
    menu = _menu(table)
    try:
        if is_published(table.ledger_path, table.name):
            with opened(table) as database:
                said = _exactly_said(database, menu)
        else:
            with database_of(table, MEMORY) as trial:
                if menu:
                    trial.declare_exactly(*menu)
                said = _exactly_said(trial, menu)
    except UnsafeExactly as refusal:
        return {"on": True, "certified": False, "text": f"not certified: {refusal}"}
    return {"on": True, "certified": bool(menu) or None, "text": said}


def _exactly_said(database: Database, menu: list[list[Statistic]]) -> str:
    found = database.statement()
    if found.statement.released:
        return found.guarantee.replace("\n", " ")
    if not menu:
        return "on, and nothing is declared: the owner's first exact batch declares itself"
    quote = database.quote_exactly(menu[0])
    return f"{quote}. Any analyst with a grant may ask for it. {quote.terms}"


def _declare(database: Database, menu: list[list[Statistic]]) -> None:
    try:
        talk(f"declared for exact release: {database.declare_exactly(*menu)}")
    except Refused as error:  # the table itself stays open
        talk(f"note: the menu of exact questions was not declared: {error}")


def _menu(table: TablePolicy) -> list[list[Statistic]]:
    """The batches that the policy declares for exact release."""
    if table.exact is None:
        return []
    return [[spelled(text, table.schema()) for text in batch] for batch in table.exact.menu]


@contextmanager
def quoting(table: TablePolicy) -> Iterator[Database]:
    """The table for questions about prices; one that is not published is tried in memory."""
    if is_published(table.ledger_path, table.name):
        with opened(table) as database:
            yield database
        return
    try:
        found = database_of(table, MEMORY)
    except Refused as error:
        raise Refused(
            f"{error}; this data was published with another ledger than"
            f" {place_name(table.ledger_path)}"
        ) from None
    with found as database:
        database.durable = True  # prices as on the ledger that it will have
        talk(
            f"{table.name} is not published: this is what its policy would cost; nothing can be"
            f" asked before `sulq publish {table.name}`"
        )
        if menu := _menu(table):
            database.declare_exactly(*menu)
        yield database
