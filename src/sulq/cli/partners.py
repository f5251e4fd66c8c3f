"""The owner's part in secure addition: the table's own key, and the partners in the policy."""

from __future__ import annotations

from sulq.cli.context import LocalSession, TableName, command, companions, database_of, named
from sulq.cli.output import key_values, print_note, show, show_json


@command
def partners(session: LocalSession, name: TableName = None) -> None:
    """The key that other owners need to add securely with a table, and those you have named."""
    from sulq.errors import Refused
    from sulq.server.local_control import serving

    source = named(session.policy, name)
    if (server := serving(source.ledger_path)) is not None:
        raise Refused(f"the server at {server.url} has the ledger of {source.name}: stop it first")
    with companions(source), database_of(source, source.ledger_path) as database:
        own = database.share_key
    known = source.partners
    keys = [] if known is None else list(known.keys)
    colluding = None if known is None else known.colluding
    if session.as_json:
        told = {"table": source.name, "key": own, "partners": keys, "colluding": colluding}
        show_json(told)
        return
    lines = [("table", source.name), ("key", own)]
    lines += [("partner", key) for key in keys]
    show(key_values([*lines, ("colluding", "" if colluding is None else str(colluding))]))
    if known is None:
        print_note(
            "give this key to the other owners yourself, not through an analyst; then write theirs"
            ' into the policy: partners = {keys = ["...", "..."], colluding = 1}'
        )
