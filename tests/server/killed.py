"""A server that kills itself at a named moment; run by test_once.py.

python killed.py <directory> [admitted | charged | answered | kept]
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from tests.server.conftest import PROMISE, SCHEMA

from sulq import Database
from sulq.cli.server_process import Where, serve_tables
from sulq.kernel.ledger.ledger import Ledger
from sulq.server.auth.tokens import Access, Role
from sulq.server.idempotency import Replies
from sulq.server.limits import Settings
from sulq.server.middleware import Log
from sulq.server.purposes import Purposes
from sulq.server.service.catalog import Tables, id_of

MOMENTS = {
    "admitted": (Purposes, ("admit",)),
    "charged": (Ledger, ("charge", "charge_all")),
    "answered": (Ledger, ("settle", "settle_all")),
    "kept": (Replies, ("finish",)),
}


def die_after(moment: str) -> None:
    """SIGKILL when the first call of that moment has returned: it is durable, no reply has left."""
    owner, names = MOMENTS[moment]
    for name in names:
        sound = getattr(owner, name)

        def deadly(*given, sound=sound, **named):
            sound(*given, **named)
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(owner, name, deadly)


def main(directory: Path, *moments: str) -> None:
    where, source = Where(port=0), directory / "people.parquet"
    with (
        where.listen() as listening,
        Database.open(
            source, SCHEMA, PROMISE, directory / "people.ledger", name="people", publish=True
        ) as database,
    ):
        if not (directory / "token").exists():
            database.grant("analyst", 40)
            access = Access.open()
            (directory / "token").write_text(
                access.issue("analyst", Role.ANALYST, {id_of(database): "people"})
            )
            access.close()
        for moment in moments:
            die_after(moment)
        serve_tables(
            Tables({"people": database}),
            where,
            listening,
            settings=Settings(pacing=False),
            log=Log(sys.stderr),
            started=lambda now: print(now.address, flush=True),
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
