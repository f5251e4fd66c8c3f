"""All that a catalogue says, for comparison."""

from __future__ import annotations

from typing import Any

from sulq.kernel.ledger.index import ChargeIndex


def contents(catalogue: ChargeIndex) -> dict[str, list[Any]]:
    run = catalogue._connection.execute
    names = [name for (name,) in run("select name from sqlite_schema where type = 'table'")]
    return {name: sorted(run(f"select * from {name}"), key=repr) for name in names}
