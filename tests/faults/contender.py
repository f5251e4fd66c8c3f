"""One of several processes that want the same ledger; run by test_races.py.

python contender.py <ledger> <log> <name>
"""

from __future__ import annotations

import os
import sys

from tests.kernel.ledger.publishing import ask, credits, publish

from sulq.errors import BudgetSpent


def main(ledger: str, log: str, name: str) -> None:
    notes = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for turn in range(3):
        journal = publish(ledger, cap=credits(40), wait=60.0)
        os.write(notes, f"in {name}\n".encode())
        try:
            for number in range(3):
                entry = ask(journal, f"{name}-{turn}-{number}")
                os.write(notes, f"released {entry.digest}\n".encode())
        except BudgetSpent:
            pass
        os.write(notes, f"out {name}\n".encode())
        journal.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
