"""A server whose parts fail with rows in their mouths; run by test_service_canaries.py.

    python canaries.py serve ...

What goes wrong is chosen by the number that a question compares the income with.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import duckdb

from sulq.cli import main
from sulq.database import database
from sulq.kernel.engines.duckdb.engine import DuckDBEngine
from sulq.kernel.release import release

ENGINE, MEMORY, BUG, SLOW = 101, 102, 103, 104


def rows_of(engine: DuckDBEngine) -> str:
    """Rows as an engine's complaint might quote them."""
    return repr(engine._connection.execute("SELECT * FROM source LIMIT 50").fetchall())


def _execute(self: DuckDBEngine, session: Any, sql: str) -> list[Any]:
    if asked.fault == ENGINE:
        raise duckdb.ConversionException(f"cannot convert {rows_of(self)}")
    if asked.fault == MEMORY:
        raise MemoryError(rows_of(self))
    if asked.fault == SLOW:
        held = rows_of(self)
        time.sleep(600)
        assert not held
    return sound(self, session, sql)


def _check_read(engine: DuckDBEngine) -> None:
    """A bug of our own, after the rows were read."""
    if asked.fault == BUG:
        raise RuntimeError(rows_of(engine))


def _bind(self: Any, query: Any) -> Any:
    found = [fault for fault in (ENGINE, MEMORY, BUG, SLOW) if f"{fault}" in repr(query)]
    asked.fault = found[0] if found else 0
    return bind(self, query)


class Asked(threading.local):
    """A question is bound and answered by one thread."""

    fault = 0


asked = Asked()
sound, bind = DuckDBEngine._execute, database.Database.bind

if __name__ == "__main__":  # a test only reads the numbers above
    DuckDBEngine._execute = _execute  # type: ignore[method-assign]
    release.check_read = _check_read  # type: ignore[assignment]
    database.Database.bind = _bind  # type: ignore[method-assign]
    main()
