"""The end of the tour: the fictional register, served with its console."""

from __future__ import annotations

import os
import sys
import threading
import urllib.request
import webbrowser
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from sulq.cli.serving import PORT, Started, Where, serve_tables
from sulq.database import Database
from sulq.demo import own_state
from sulq.errors import Refused
from sulq.policy import read_policy
from sulq.server.app import Settings
from sulq.server.logs import Log
from sulq.server.tables import Tables


def serve_demo(directory: Path, host: str, port: int | None, *, quiet: bool) -> dict[str, Any]:
    """On a terminal until Ctrl-C; else until it has answered once. What happened, as a step."""
    lively = sys.stdout.isatty() and not quiet
    found: dict[str, Any] = {"step": "served", "healthy": False}

    def told(now: Started) -> None:
        found["address"] = now.address
        if lively:
            print("\nThe console, for you alone (the link works once, within 10 minutes):")
            print(f"  {now.link}\nStop with Ctrl-C.")
            webbrowser.open(now.link)
        else:
            threading.Thread(target=answered, args=(now,)).start()

    def answered(now: Started) -> None:
        try:
            with urllib.request.urlopen(f"{now.address}/healthz", timeout=30) as reply:  # noqa: S310
                found["healthy"] = reply.status == 200
        finally:
            now.stop()

    where = Where(host, PORT if port is None else port)
    try:
        listening = where.listen()
    except Refused:
        if port is not None:
            raise
        where = Where(host, 0)
        listening = where.listen()
    with own_state(directory), listening, ExitStack() as stack:
        nowhere = stack.enter_context(Path(os.devnull).open("w"))  # a tour is for people
        databases = {
            name: stack.enter_context(
                Database.open(
                    table.source_path,
                    table.schema(),
                    table.promise,
                    table.ledger_path,
                    name=name,
                    publish=True,
                )
            )
            for name, table in read_policy(directory / "sulq.toml").items()
        }
        serve_tables(
            Tables(databases),
            where,
            listening,
            settings=Settings(),
            log=Log(nowhere),
            started=told,
        )
    if not lively and not quiet:
        print(f"The console answered at {found['address']}. On a terminal it stays until Ctrl-C;")
        print("here it was stopped. Again:")
        print(f"  cd {directory} && SULQ_STATE=$PWD/state sulq serve")
    if not lively and not found["healthy"]:
        raise Refused(f"the console at {found.get('address')} did not answer /healthz")
    return found
