"""`sulq serve`: the tables of a policy over HTTP, with the console."""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sulq.cli.context import LocalSession, command, opened
from sulq.cli.output import POLICY, print_note, show_json

if TYPE_CHECKING:
    from sulq.cli.server_process import Started, Where
    from sulq.database import Database
    from sulq.policy import TablePolicy

Host = Annotated[str, typer.Option(help="Where to listen; the default is this machine only.")]


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Where to listen, when replies leave, and what is opened in a browser."""

    host: Host = "127.0.0.1"
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0: any that is free.")] = 8765
    tls_cert: Annotated[
        Path | None, typer.Option(help="Certificate chain (PEM).", show_default=False)
    ] = None
    tls_key: Annotated[Path | None, typer.Option(help="Its key (PEM).", show_default=False)] = None
    postgres: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=0,
            max=65_535,
            help="Also speak PostgreSQL's protocol, on this port: for psql, drivers and BI tools.",
            show_default=False,
        ),
    ] = None
    public_url: Annotated[
        str | None,
        typer.Option(
            help="Where others reach it, if through a proxy: for links and code.",
            show_default=False,
        ),
    ] = None
    pacing: Annotated[
        bool,
        typer.Option("--pacing/--no-pacing", help="Replies on a public clock; off only locally."),
    ] = True
    delay: Annotated[
        str | None,
        typer.Option(
            metavar="SECONDS",
            help="Instead of the clock: a random delay, one credit more a question; the seconds"
            " that one row may add to the running time.",
            show_default=False,
        ),
    ] = None
    open_browser: Annotated[
        bool | None,
        typer.Option("--open/--no-open", help="Open the console; the default: on a terminal."),
    ] = None


@command
def serve(
    session: LocalSession,
    options: ServeOptions,
    file: Annotated[
        Path | None,
        typer.Argument(help="A Parquet or CSV file with its policy beside it.", show_default=False),
    ] = None,
) -> None:
    """Serve every published table of the policy over HTTP, until Ctrl-C. Prints a one-time link.

    What is not published is listed; the console's Publish page publishes a new table.
    """
    from sulq.cli.server_process import Where

    where = Where(options.host, options.port, options.tls_cert, options.tls_key)
    where.check()
    check_pacing(where, options.pacing)
    tables = chosen_tables(file, session.policy)
    if not where.local and not where.encrypted:
        print_note(
            f"warning: {where.host} may be reached from other machines, and without TLS anybody on"
            " the way reads tokens and answers: give --tls-cert and --tls-key, or listen on"
            " 127.0.0.1 behind a proxy that has TLS"
        )
    run(tables, where, options, policy_file(file, session.policy), session.as_json)
    print_note("stopped; every answer that was charged is stored")


def run(
    policies: list[TablePolicy], where: Where, options: ServeOptions, policy: Path, as_json: bool
) -> None:
    """Listen, open the tables, serve, close the tables."""
    from sulq.cli.publish import published
    from sulq.cli.server_process import serve_tables
    from sulq.server.address import public_url as checked_url
    from sulq.server.limits import Settings
    from sulq.server.middleware import Log
    from sulq.server.pacing import charging_for_time
    from sulq.server.service.catalog import Tables

    settings = Settings(
        pacing=options.pacing, delay=options.delay, public_url=checked_url(options.public_url)
    )
    with where.listen() as listening, ExitStack() as stack:
        door = None if options.postgres is None else where.postgres_port(options.postgres)
        if door is not None:
            stack.enter_context(door.listening)

        def held(table: AbstractContextManager[Database]) -> Database:
            return charging_for_time(stack.enter_context(table), settings)

        found, waiting, sick = _opened_each(policies, lambda table: held(opened(table)))
        names = list(found)
        sharing = [table.name for table in policies if table.sharing]
        tables = Tables(found, lambda table: held(published(table)), policy, waiting, sharing)

        def told(now: Started) -> None:
            if as_json:
                served = {"tables": names, "not_published": waiting, "not_served": sick}
                wire = {} if now.postgres is None else {"postgres": now.postgres}
                show_json({"address": now.address, "link": now.link, **wire, **served})
            else:
                what = ", ".join(names) or "no table yet (the console publishes one)"
                print(f"serving {what} at {now.address}")
                if now.postgres is not None:
                    print(f"PostgreSQL's protocol at {now.postgres}; the password is a token")
                print(f"owner's console, once within 10 minutes: {now.link}")
                print("stop with Ctrl-C")
            sys.stdout.flush()
            wanted = options.open_browser
            if sys.stdout.isatty() if wanted is None else wanted:
                webbrowser.open(now.link)

        if options.pacing and options.delay is None:
            print_note(
                "measuring on made-up rows how fast this machine is: some seconds, or a minute"
            )
        serve_tables(
            tables,
            where,
            listening,
            settings=settings,
            log=Log(),
            started=told,
            postgres=door,
        )


def _opened_each(
    policies: list[TablePolicy], held: Callable[[TablePolicy], Database]
) -> tuple[dict[str, Database], list[str], dict[str, str]]:
    """The published tables that open, those that are not published, and why others do not open: a
    sick one never stops the others."""
    from sulq.errors import Refused, SulqError
    from sulq.kernel.ledger.inspect import is_lost, is_published

    found, waiting, sick = dict[str, Any](), list[str](), dict[str, str]()
    for table in policies:
        name = table.name
        try:
            if not is_lost(table.ledger_path) and not is_published(table.ledger_path, name):
                waiting.append(name)
                print_note(f"{name} is not published, so not served: `sulq publish {name}`")
                continue
            print_note(f"opening {name}")
            found[name] = held(table)
        except (SulqError, OSError) as problem:
            sick[name] = str(problem)
            if len(policies) > 1:
                print_note(f"warning: {name} is not served: {problem}")
    if sick and not found:
        told = "; ".join(f"{name}: {reason}" for name, reason in sick.items())
        raise Refused(f"no table can be served: {told}")
    return found, waiting, sick


def check_pacing(where: Where, pacing: bool) -> None:
    """Without the clock a reply's time tells of rows: only who has the rows may turn it off."""
    from sulq.errors import InvalidQuery

    if not pacing and not where.local:
        raise InvalidQuery(
            f"--no-pacing is for this machine only, and {where.host} is not: the time of a reply"
            " would tell of rows; leave it out, or listen on 127.0.0.1"
        )


def policy_file(file: Path | None, policy: Path) -> Path:
    """The policy that is served: named, or the one beside a file of rows."""
    if file is None or policy != POLICY:
        return policy.absolute()
    return (file if file.suffix == ".toml" else file.parent / POLICY).absolute()


def chosen_tables(file: Path | None, policy: Path) -> list[TablePolicy]:
    """The tables of the policy; with a file, those of the policy beside it that read it."""
    from sulq.errors import InvalidQuery, Refused
    from sulq.policy import read_policy

    if file is not None and file.suffix == ".toml":
        return chosen_tables(None, file)
    if file is not None and policy == POLICY:
        policy = file.parent / POLICY
    if file is None and policy == POLICY and not policy.exists():
        print_note(
            f"there is no policy {policy} yet: publish a file of this directory in the console"
        )
        return []
    if not policy.is_file():
        what = "FILE" if file is None else str(file)
        raise InvalidQuery(
            f"there is no policy {policy}: it says what is public and what is promised. Write one"
            f" with `sulq init {what} --output {policy}`, review it with `sulq check`, then"
            " `sulq publish` and serve"
        )
    tables = list(read_policy(policy, empty=True).values())
    if file is not None:
        wanted = file.resolve()
        mine = [
            table
            for table in tables
            if any(Path(place).resolve() == wanted for place in table.source_paths)
        ]
        if not mine:
            raise InvalidQuery(
                f"{policy} declares no table of {file}; add one with `sulq init {file}"
                f" --output OTHER.toml`, or serve what it has with `sulq serve --policy {policy}`"
            )
        tables = mine
    for table in tables:
        if table.ledger == ":memory:":
            raise Refused(
                f"[{table.name}] has its ledger in memory: what was spent would be forgotten with"
                f" the server; give it a file, such as ledger = '{table.name}.ledger'"
            )
    return tables
