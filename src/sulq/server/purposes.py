"""What a caller's tools may spend: credits kept under a name, which no restart fills up again.

A tool such as a dashboard asks by itself. It spends nothing, unless its request names a purpose and
the most that this purpose may ever spend. The amounts are written to disk before a question is
asked, so that requests of one purpose that come at once, also to several processes that share
the state directory, do not pass the limit together.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import apsw

from sulq.kernel.ledger.state_dir import private_directory
from sulq.server.errors import HttpProblem, out_of_order
from sulq.wire import fraction_text


class Purpose(NamedTuple):
    """A name that an account has given to what it spends at one published table."""

    table: str
    account: str
    name: str


class Purposes:
    """What each purpose has spent, by idempotency key. SQLite in the state directory; thread-safe.

    An amount is an upper bound while its question is being answered, and what was paid afterwards.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection, self._lock = connection, threading.Lock()

    @classmethod
    def open(cls, path: Path | None = None) -> Purposes:
        """`path` None: purposes.sqlite in the state directory."""
        where = path or private_directory() / "purposes.sqlite"
        where.touch(0o600)
        connection = apsw.Connection(str(where))
        connection.set_busy_timeout(5_000)
        connection.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS purposes (place TEXT, account TEXT, name TEXT, key TEXT,"
            " credits TEXT, PRIMARY KEY (place, account, name, key)) WITHOUT ROWID"
        )
        return cls(connection)

    def spent(self, purpose: Purpose) -> Fraction:
        """Return what the purpose has spent, and what its open questions may still spend."""
        with self._transaction():
            return sum(self._amounts(purpose).values(), Fraction(0))

    def admit(self, purpose: Purpose, key: str, price: Fraction, most: Fraction) -> bool:
        """Count a price, or refuse it, free, where the purpose would spend more than `most`.

        True if an earlier attempt under this key did not end: what it may have paid stays counted.
        """
        with self._transaction():
            amounts = self._amounts(purpose)
            before = amounts.pop(key, None)
            spent = sum(amounts.values(), Fraction(0))
            due = max(price, before or Fraction(0))
            if price and spent + due > most:
                raise passed(purpose.name, price, spent + (before or 0), most)
            self._write(purpose, key, due)
        return before is not None

    def settle(self, purpose: Purpose, key: str, paid: Fraction) -> None:
        """Put what was paid in place of the price that was admitted."""
        with self._transaction():
            self._write(purpose, key, paid)

    def _amounts(self, purpose: Purpose) -> dict[str, Fraction]:
        rows = self._connection.execute(
            "SELECT key, credits FROM purposes WHERE place = ? AND account = ? AND name = ?",
            purpose,
        )
        return {str(key): Fraction(str(credits)) for key, credits in rows}

    def _write(self, purpose: Purpose, key: str, credits: Fraction) -> None:
        if credits:
            self._connection.execute(
                "INSERT OR REPLACE INTO purposes VALUES (?, ?, ?, ?, ?)",
                (*purpose, key, fraction_text(credits)),
            )
        else:
            self._connection.execute(
                "DELETE FROM purposes WHERE place = ? AND account = ? AND name = ? AND key = ?",
                (*purpose, key),
            )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """One at a time, in all processes; what cannot be read or written is the same to all."""
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield
                self._connection.execute("COMMIT")
            except apsw.Error:
                raise out_of_order() from None
            finally:  # SQLite ends some transactions that fail by itself, and others not
                with suppress(apsw.Error):
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")

    def close(self) -> None:
        with self._lock:
            self._connection.close()


def passed(name: str, price: Fraction, spent: Fraction, most: Fraction) -> HttpProblem:
    """Return the refusal of a question that a purpose cannot pay."""
    return HttpProblem(
        402,
        "budget_spent",
        f"this costs {float(price):g} credits, and the purpose {name!r} has spent {float(spent):g}"
        f" of its {float(most):g}",
        "give the purpose more credits (purpose_credits), or ask for less; nothing was charged",
        more={"about": {"credits": fraction_text(price), "left": fraction_text(most - spent)}},
    )
