"""A table in an open book: published now, or found as it is."""

from __future__ import annotations

from dataclasses import replace

from sulq.errors import NotPublished, Refused
from sulq.ledger.admission import Desk
from sulq.ledger.book import Book
from sulq.ledger.header import TableHeader
from sulq.ledger.register import (
    note_closed,
    note_pooled,
    release_data,
    was_closed,
    was_pooled,
    was_published,
)
from sulq.ledger.table import LOST, Table


def published(book: Book, wanted: TableHeader, publish: bool, stamp: str | None = None) -> int:
    """The table's generation, on the writer's thread; `Refused` if it has other facts.

    The only place where a table comes into a ledger, and only with `publish`. `stamp` is what
    replicas compare of its content.
    """
    _end_left_open(book)
    table = book.history.tables.get(wanted.name)
    if table is not None and table.withdrawn is None:
        _check(book, table, wanted)
        if table.stamp not in (stamp, LOST):
            raise Refused(
                f"the data of table {wanted.name!r} is not what was published: its content has"
                " changed, or this replica reads other data; every replica must read the same"
            )
        return table.generation
    if table is not None and table.recovered:
        raise Refused(
            f"table {wanted.name!r} was withdrawn, and events were lost since: it may have been"
            " published again; publish under another name"
        )
    if table is None and was_published(book.history.ledger, wanted.name):
        raise Refused(
            f"table {wanted.name!r} was published before, and the ledger has lost all its events; "
            "restore a newer backup: without it everything of this table counts as spent"
        )
    if not publish:
        raise not_published(wanted.name, book.file if isinstance(book.file, str) else book.place)
    check_population(book, wanted)
    book.add(wanted.to_body() | ({} if stamp is None else {"stamp": stamp}))
    return book.history.tables[wanted.name].generation


def not_published(table: str, where: str | None) -> NotPublished:
    """The refusal for a table that the ledger at `where` does not have; names the way out."""
    place = "" if where is None else f" (ledger {where})"
    return NotPublished(
        f"table {table!r} is not published{place}; its owner publishes it once, with"
        f" `sulq publish {table}`, or in Python with Database.open(..., publish=True)"
    )


def known_table(book: Book, name: str) -> Table:
    """A table that is there, whatever its facts; on the writer's thread."""
    _end_left_open(book)
    table = book.history.tables.get(name)
    if table is None:
        raise _no_table(book, name)
    _check_closed(book, table)
    return table


def free_data(book: Book, name: str, told: str | None = None, *, shown: bool = False) -> None:
    """After a withdrawal, on the writer's thread: let the data be published anew, anywhere.

    Not if the name was published again meanwhile, or events were lost since. `told`: what is public
    of the data for good if somebody was `shown` it, or had a share.
    """
    table = book.history.tables[name]
    if book.file is None or table.withdrawn is None or table.recovered:
        return
    kept = told if shown or table.shown else None
    versions = [table.data_version, *(before.version for before in table.grown)]
    for version in {None if table.earlier == 0 else table.header.version, *versions}:
        release_data(book.history.ledger, name, version, kept)


def _end_left_open(book: Book) -> None:
    for name, reservation in book.left_open:  # by a process that is gone
        Desk(book, name).give_back(reservation, void=True)
    book.left_open.clear()


def _no_table(book: Book, name: str) -> Refused:
    return Refused(f"the ledger has no table {name!r}; it has {sorted(book.history.tables)}")


def check_population(book: Book, wanted: TableHeader, besides: str = "") -> None:
    """The first table that names a population fixes what it is promised; `besides` an unused one
    that leaves it."""
    if (member := wanted.member) is None:
        return
    pool = book.history.populations.get(member.name)
    alone = pool is not None and (
        pool.vacant or (pool.tables == [besides] and replace(pool, tables=[]).vacant)
    )
    if pool is not None and not alone and not pool.agrees(member):
        raise Refused(
            f"population {member.name!r} was given another promise by table {pool.tables[0]!r};"
            " name the same one"
        )
    noted = book.file is not None and was_pooled(book.history.ledger, member.name)
    if pool is None and noted:
        raise Refused(
            f"population {member.name!r} is known, and the ledger has lost all its events; restore"
            " a newer backup: without it everything of this population counts as spent"
        )


def note_population(book: Book, wanted: TableHeader) -> None:
    """In the state directory too, before anything is charged to it."""
    if wanted.member is not None and book.file is not None:
        note_pooled(book.history.ledger, wanted.member.name)


def _check(book: Book, table: Table, wanted: TableHeader) -> None:
    if differences := table.header.differences(wanted):
        since = "amended: it has" if table.amended else "published with"
        how = "amended" if table.amended else "published"
        raise Refused(
            f"table {wanted.name!r} was {since} other {', '.join(differences)}; open it as it was"
            f" {how}, or `sulq amend` it"
        )
    _check_closed(book, table)


def _check_closed(book: Book, table: Table) -> None:
    note_if_closed(book, table)
    name = table.header.name
    noted = book.file is not None and was_closed(book.history.ledger, name)
    if noted and table.closed is None:
        raise Refused(
            f"table {name!r} was closed for good, and the ledger has lost that event; "
            "it stays closed: restore a newer backup to read what was paid for"
        )


def note_if_closed(book: Book, table: Table) -> None:
    """In the state directory too; again at each opening, should a crash have come between."""
    if table.closed is not None and book.file is not None:
        note_closed(book.history.ledger, table.header.name)
