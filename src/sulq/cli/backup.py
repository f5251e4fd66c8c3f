"""The copies of a ledger: `sulq backup`, `restore`, `recover`, and the replicas that share it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sulq.cli.context import LocalSession, TableName, command, named
from sulq.cli.output import key_values, many, number_text, print_note, show, show_json
from sulq.formatting import credits_text

if TYPE_CHECKING:
    from sulq.kernel.ledger.backup import BackedUp, Backup
    from sulq.kernel.ledger.recovery import Tried
    from sulq.policy import TablePolicy

MEMORY = ":memory:"
Receipts = Annotated[
    Path | None, typer.Option(help="Receipts that prove what was spent, one to a line.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would happen; change nothing.")]
Yes = Annotated[
    bool, typer.Option("--yes", help="Do not ask, even if the whole budget counts as spent.")
]
AGAIN = {"grant": "grants", "revoke": "revocations", "table": "tables that were published"}


# -- backup ---------------------------------------------------------------------------------------


@command
def backup(
    session: LocalSession,
    file: Annotated[
        Path,
        typer.Argument(help="A new file, or a directory for one named by the time.", exists=False),
    ],
) -> None:
    """Copy ledgers, keys and register to one file, also while a server uses them.

    The file holds the signing keys: keep it where only the owner reads. Mode 0600.
    """
    from sulq.errors import Refused
    from sulq.kernel.ledger.backup import back_up
    from sulq.policy import read_policy

    tables = {
        name: one for name, one in read_policy(session.policy).items() if one.ledger != MEMORY
    }
    places = {str(one.ledger_path): one.ledger_path for one in tables.values() if _there(one)}
    if not places:
        raise Refused(f"no table of {session.policy} is published; there is nothing to back up")
    if file.is_dir():
        file /= time.strftime("sulq-%Y%m%d-%H%M%S.backup", time.gmtime())
    listed, problems = back_up(list(places.values()), file)
    if session.as_json:
        sick = {_names(place, tables): str(problem) for place, problem in problems.items()}
        show_json({"file": file, "ledgers": [asdict(one) for one in listed], "left_out": sick})
    else:
        print(file)
    for one in listed:
        print_note(f"{', '.join(one.tables)}: {many(one.events, 'event')}")
        if one.on_server:
            print_note(_on_server(one, tables))
    if problems:
        said = [f"{_names(place, tables)}: {problem}" for place, problem in problems.items()]
        raise Refused(f"left out of the backup: {'; '.join(said)}")


def _there(one: TablePolicy) -> bool:
    """True if the table was published; of a ledger that cannot be read the backup tells why."""
    from sulq.errors import Refused
    from sulq.kernel.ledger.inspect import is_lost, is_published

    with suppress(Refused):
        if not is_lost(one.ledger_path) and not is_published(one.ledger_path, one.name):
            print_note(f"{one.name} is not published: there is nothing of it to back up")
            return False
    return True


def _names(place: Path | str, tables: dict[str, TablePolicy]) -> str:
    """The tables of a ledger, for messages."""
    return ", ".join(name for name, one in tables.items() if one.ledger_path == place)


def _on_server(line: BackedUp, tables: dict[str, TablePolicy]) -> str:
    from sulq.kernel.ledger.state_dir import is_shared, read_place

    places = (read_place(str(one.ledger_path)) for one in tables.values() if is_shared(one.ledger))
    name, shown = next((one.name, one.shown) for one in places if one.shown == line.place)
    server = shown.removesuffix(f"&ledger={name}")
    return (
        "  its ledger is on a PostgreSQL server: this file has its key and register. Copy the"
        f" ledger there, after this:\n  pg_dump --format=custom --table=sulq.{name}"
        f" --file={name}.dump '{server}'"
    )


# -- restore --------------------------------------------------------------------------------------


@command
def restore(
    session: LocalSession,
    file: Annotated[Path, typer.Argument(metavar="BACKUP", help="What `sulq backup` wrote.")],
    name: TableName = None,
    receipts: Receipts = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Put ledgers of a backup in their places, at the most that can be proved spent.

    What the receipts journal or the anchor of this machine cannot account for may cost the whole
    budget, so it asks first. Tokens and armed alerts are not restored.
    """
    from sulq.cli.verify import receipt_lines
    from sulq.errors import Refused
    from sulq.kernel.ledger.backup import Backup

    shown = [] if receipts is None else receipt_lines(receipts)
    with Backup(file) as source:
        chosen = _chosen(session.policy, name, source)
        problems: dict[str, Refused] = {}
        tries = _each(chosen, problems, lambda one: _put(source, one, shown, dry_run=True))
        done = tries
        if not dry_run and tries:
            if not yes and any(_matters(found) for _, found in tries):
                _confirm("restore", [_outcome(*pair) for pair in tries])
            sound = [one for one, _ in tries]
            done = _each(sound, problems, lambda one: _put(source, one, shown, dry_run=False))
    outcomes = [_outcome(one, found, len(shown)) for one, found in done]
    if dry_run:
        print_note("dry run: nothing was changed; this is what `sulq restore` would do")
    for outcome in outcomes:
        _say(outcome)
    if session.as_json:
        sick = {table: str(problem) for table, problem in problems.items()}
        tables = [outcome.to_json(dry_run) for outcome in outcomes]
        show_json({"dry_run": dry_run, "tables": tables, "not_restored": sick})
    else:
        for outcome in outcomes:
            show(key_values(outcome.lines()))
    if not dry_run and outcomes:
        _end_tokens({outcome.found.ledger for outcome in outcomes})
        print_note("tokens and armed alerts are not restored: `sulq grant` gives new tokens")
    if problems:
        said = [f"{table}: {problem}" for table, problem in problems.items()]
        raise Refused(f"not restored: {'; '.join(said)}")


def _chosen(policy: Path, name: str | None, source: Backup) -> list[TablePolicy]:
    """One table for each ledger of the policy that the backup has."""
    from sulq.errors import Refused
    from sulq.policy import read_policy

    if name is not None:
        return [named(policy, name)]
    held = {table for one in source.ledgers for table in one.tables}
    found: dict[str, TablePolicy] = {}
    for one in read_policy(policy).values():
        if one.name in held:
            found.setdefault(str(one.ledger_path), one)
        else:
            print_note(f"{one.name} is not in the backup: it stays as it is")
    if not found:
        raise Refused(f"the backup has {sorted(held)}, and {policy} names none of them")
    return list(found.values())


def _put(source: Backup, one: TablePolicy, shown: list[str], *, dry_run: bool) -> Tried:
    from sulq.kernel.ledger.backup import restore as put_back

    found = put_back(
        source, one.name, one.ledger_path, shown, journal=one.receipts_path, dry_run=dry_run
    )
    if found.aside is not None:
        print_note(f"{one.name}: the file that was in the place is now {found.aside}")
    return found


def _each(
    tables: list[TablePolicy], problems: dict[str, Any], work: Callable[[TablePolicy], Tried]
) -> list[tuple[TablePolicy, Tried]]:
    """A table that cannot be restored never stops the others."""
    from sulq.errors import Refused

    found = []
    for one in tables:
        try:
            found.append((one, work(one)))
        except Refused as problem:
            problems[one.name] = problem
    return found


# -- recover --------------------------------------------------------------------------------------


@command
def recover(
    session: LocalSession,
    name: TableName = None,
    receipts: Receipts = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Open a closed ledger again, at the most that can be proved spent.

    By the ledger, its anchor, the receipts journal and receipts. What none of them accounts for
    may cost the whole budget, so it asks first.
    """
    from sulq.cli.verify import receipt_lines
    from sulq.kernel.ledger import recovery
    from sulq.kernel.ledger.inspect import inspect

    source = named(session.policy, name)
    path, journal = source.ledger_path, source.receipts_path
    shown = [] if receipts is None else receipt_lines(receipts)
    expected = recovery.tried(path, shown, journal=journal)
    outcome = _outcome(source, expected, len(shown))
    if not dry_run:
        if not yes and _matters(expected):
            _confirm("recovery", [outcome])
        found = recovery.recover(path, shown, journal=journal)
        after = inspect(path).statements
        done = recovery.Tried(found, expected.before, after)
        outcome = _outcome(source, done, len(shown))
    else:
        print_note("dry run: nothing was changed; this is what `sulq recover` would do")
    _say(outcome)
    if session.as_json:
        show_json(outcome.to_json(dry_run))
    else:
        show(key_values(outcome.lines()))
    if not dry_run:
        _end_tokens({outcome.found.ledger})


# -- both -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done to the ledger of a table, or would be: to all tables that live in it."""

    table: str
    tried: Tried
    receipts: int = 0

    @property
    def found(self) -> Any:
        return self.tried.found

    def to_json(self, dry_run: bool) -> dict[str, Any]:
        return {
            **asdict(self.found),
            "table": self.table,
            "dry_run": dry_run,
            "spent_before": self.tried.before[self.table].spent.credits_fraction,
            "spent_after": self.tried.after[self.table].spent.credits_fraction,
            "tables": {name: self.spent(name) for name in self.tried.after},
        }

    def spent(self, name: str) -> dict[str, Any]:
        before, after = (one.get(name) for one in (self.tried.before, self.tried.after))
        return {
            "before": before and before.spent.credits_fraction,
            "after": after and after.spent.credits_fraction,
            "of": after and after.cap.credits_fraction,
        }

    def _spent_text(self, name: str) -> str:
        before, after, cap = (x or Fraction(0) for x in self.spent(name).values())
        return f"{credits_text(before)} before, {credits_text(after)} after, of {credits_text(cap)}"

    def sayings(self) -> list[str]:
        """What happened, in plain words; true of a dry run too."""
        found = self.found
        said = [f"{why}: the whole budget is spent" for why in found.reasons]
        if found.burnt and self.receipts:
            said.append(
                "the receipts do not account for every lost event, so none is booked singly"
            )
        if found.anchor_missing and not found.burnt:
            said.append(
                "the anchor was missing: a loss can neither be shown nor excluded; collect receipts"
            )
        for name in found.gone:
            said.append(
                f"table {name!r} was published and asked after this copy was made: its whole budget"
                " is spent; publish its data nowhere else, which would give it a second one"
            )
        again = [AGAIN[kind] for kind in found.lost_kinds if kind != "table" or not found.gone]
        if again:
            said.append(f"{' and '.join(again)} newer than this ledger are lost: make them anew")
        if not said and not _matters(self.tried):
            said.append("the ledger was whole; nothing was lost")
        return said

    def lines(self) -> list[tuple[str, str]]:
        found, name = self.found, self.table
        booked = "none: everything is" if found.burnt else number_text(found.proved)
        others = [other for other in self.tried.after if other != name]
        return [
            ("table", name),
            ("ledger", found.ledger),
            ("lost events", number_text(found.lost)),
            ("charges booked", booked),
            ("spent", self._spent_text(name)),
            *((f"spent of {other}", self._spent_text(other)) for other in others),
            ("everything spent", "yes" if found.burnt else "no"),
            ("new signing key", "yes" if found.new_key else "no"),
        ]


def _outcome(table: TablePolicy, found: Tried, receipts: int = 0) -> Outcome:
    from sulq.errors import Refused

    if table.name not in found.after:
        raise Refused(f"the ledger has no table {table.name!r}; it has {list(found.after)}")
    return Outcome(table.name, found, receipts)


def _matters(tried: Tried) -> bool:
    """True if it changes what is spent or trusted, so that somebody is asked first."""
    found = tried.found
    return bool(found.lost or found.burnt or found.new_key or found.anchor_missing)


def _say(outcome: Outcome) -> None:
    for line in outcome.sayings():
        print_note(f"{', '.join(outcome.tried.after)}: {line}")


def _confirm(what: str, outcomes: list[Outcome]) -> None:
    parts = []
    for one in outcomes:
        for name, after in one.tried.after.items():
            spent, cap = after.spent.credits_fraction, after.cap.credits_fraction
            parts.append(f"{credits_text(spent)} of {credits_text(cap)} of {name}")
    told = f"{', '.join(parts)} will count as spent"
    if not sys.stdin.isatty():
        from sulq.errors import InvalidQuery

        raise InvalidQuery(
            f"a {what} cannot be undone, and {told}: look with --dry-run, then add --yes;"
            " nothing was changed"
        )
    for one in outcomes:
        _say(one)
    typer.confirm(f"A {what} cannot be undone, and {told}. Go on?", abort=True, err=True)


def _end_tokens(ledgers: set[str]) -> None:
    from sulq.server.auth.grants import end_tokens

    if ended := sum(end_tokens(ledger) for ledger in ledgers):
        what = "1 token" if ended == 1 else f"{ended} tokens"
        print_note(f"ended: {what} for this ledger's tables; `sulq grant` gives new ones")


# Another replica: the owner's key and the mark of a ledger that is on a server.


Table = Annotated[str | None, typer.Option("--table", "-t", help="Which table of the policy.")]


@command
def share(
    session: LocalSession,
    file: Annotated[Path, typer.Argument(help="A new file, for the owner's eyes alone.")],
    table: Table = None,
) -> None:
    """Write the ledger's signing key and mark to a file, for another replica.

    Whoever has the file can sign in the owner's name: carry it over a safe way, then delete it.
    """
    from sulq.kernel.ledger.shared import share_key

    ledger = share_key(named(session.policy, table).ledger_path, file)
    if session.as_json:
        show_json({"ledger": ledger, "file": str(file)})
    print_note(
        f"key and mark of ledger {ledger} are in {file}: take it to the replica, run `sulq join`"
    )
    print_note("there, and delete it in both places")


@command
def join(
    session: LocalSession,
    file: Annotated[Path, typer.Argument(help="What `sulq share-key` wrote.")],
    table: Table = None,
) -> None:
    """Make this machine a replica: take key and mark of the ledger into the state directory."""
    from sulq.kernel.ledger.shared import join as take

    ledger = take(named(session.policy, table).ledger_path, file)
    if session.as_json:
        show_json({"ledger": ledger})
    print_note(f"this is now a replica of ledger {ledger}; delete {file}")
