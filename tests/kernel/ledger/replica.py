"""One replica of a shared ledger, in a process of its own.

    python -m tests.kernel.ledger.replica <address> <state> <notes> <name> <rounds> <threads> [cap]

It asks its own questions and ones that all replicas ask, until nothing is left, and notes each
answer it gets by one unbuffered write, as a client would see it. What a broken connection leaves
open it asks again under the same key.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import threading
import time

from tests.waiting import LONGEST

from sulq.errors import BudgetSpent, Refused
from sulq.kernel.ledger.ledger import Ledger


def ask_until_told(journal: Ledger, name: str, client: str) -> tuple[int, ...]:
    """As a client does: again under the same key while the server cannot be reached."""
    from tests.kernel.ledger.publishing import pay

    until, attempt = time.monotonic() + LONGEST, 0
    while True:
        try:
            # An attempt that did not end stays open: a new key after the third.
            entry = pay(journal, name, key=f"{client}-{name}-{attempt // 3}")
            if not entry.answered:
                entry = journal.settle(entry, [secrets.randbits(40)])
            return entry.values or ()
        except BudgetSpent:
            raise
        except Refused as refusal:
            if "cannot be reached" not in str(refusal) or time.monotonic() > until:
                raise
            attempt += 1


def main(address: str, state: str, notes: str, name: str, rounds: int, threads: int) -> None:
    from tests.kernel.ledger.publishing import credits, publish

    os.environ["SULQ_STATE"] = state
    cap = credits(int(sys.argv[7]) if len(sys.argv) > 7 else 10**6)
    journal = publish(address, cap=cap, wait=LONGEST)
    out = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    print("ready", flush=True)
    sys.stdin.readline()

    failed: list[str] = []

    def client(me: int) -> None:
        for turn in range(rounds):
            asked = f"all-{turn}" if turn % 3 == 0 else f"{name}-{me}-{turn}"
            try:
                values = ask_until_told(journal, asked, f"{name}-{me}")
            except BudgetSpent:
                continue
            except Refused as refusal:
                failed.append(str(refusal))
                return
            os.write(out, json.dumps([asked, list(values)]).encode() + b"\n")

    workers = [threading.Thread(target=client, args=(me,)) for me in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    journal.close()
    sys.exit("; ".join(failed) or None)


if __name__ == "__main__":
    main(*sys.argv[1:5], *map(int, sys.argv[5:7]))  # type: ignore[arg-type]
