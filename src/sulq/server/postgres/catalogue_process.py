"""The process that holds a catalogue: an empty DuckDB of public names and types.

It is started by `sulq.server.postgres.catalogue` as a program of its own and imports nothing of
sulq: there are no rows, keys, tokens or ledgers here, nor any way to a file or an address. It reads
one JSON object a line, {"make": [...]} or {"run": statement}, and writes one a line.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
import threading
import time
from collections import OrderedDict
from typing import Any

import duckdb

PROCESSOR = 0.2
"""Seconds of the processor that one statement may take."""
LAST = 2.0
"""Seconds of the processor after which the process ends, if a statement cannot be interrupted."""
MOST_ROWS = 20_000
MOST_HELD = 8
"""Catalogues kept: one for each set of tables that some token sees."""
SETTINGS: dict[str, Any] = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "memory_limit": "64MB",
    "threads": 1,
    "temp_directory": "",
    "default_null_order": "nulls_last",
    "python_enable_replacements": False,
}


class Interrupter:
    """Stops a statement that takes more of the processor than it may."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection, self._ended = connection, threading.Event()
        self._until = time.process_time() + PROCESSOR

    def __enter__(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, LAST)
        threading.Thread(target=self._watch, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        self._ended.set()

    def _watch(self) -> None:
        while not self._ended.wait(0.02):
            if time.process_time() > self._until:
                self._connection.interrupt()


def made(statements: list[str]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:", config=SETTINGS)
    for statement in statements:
        connection.execute(statement)
    connection.execute("SET lock_configuration = true")
    return connection


def run(connection: duckdb.DuckDBPyConnection, statement: str) -> dict[str, Any]:
    """Return the columns with their types, and the rows as JSON has them."""
    try:
        with Interrupter(connection):
            found = connection.execute(statement)
            columns = [[each[0], str(each[1])] for each in found.description or []]
            rows = found.fetchmany(MOST_ROWS)
    except duckdb.InterruptException:
        return {"error": "slow"}
    except (duckdb.OutOfMemoryException, MemoryError):
        return {"error": "large"}
    except duckdb.Error:
        return {"error": "refused"}
    return {"columns": columns, "rows": rows}


def bounded() -> None:
    """Let the process write no file and make no core file."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    bounded()
    held: OrderedDict[str, duckdb.DuckDBPyConnection] = OrderedDict()
    for line in sys.stdin:
        asked = json.loads(line)
        name = asked["name"]
        if "make" in asked:
            held[name] = made(asked["make"])
            if len(held) > MOST_HELD:
                held.popitem(last=False)[1].close()
        if name not in held:
            reply: dict[str, Any] = {"error": "unknown"}
        else:
            held.move_to_end(name)
            reply = run(held[name], asked["run"])
        sys.stdout.write(json.dumps(reply, default=str) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
