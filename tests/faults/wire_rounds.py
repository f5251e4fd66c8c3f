"""A server that is killed under load from its PostgreSQL port; run by test_service_kill.py.

    python wire_rounds.py <directory> <rounds> <first number>

As service_rounds.py, whose servers these are. A client of PostgreSQL has no key: who was cut off
asks the same again, and may pay a second time for what was charged and not yet stored.
"""

from __future__ import annotations

import json
import random
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import apsw
import psycopg
from tests.faults.service_rounds import CLIENTS, WORK, Life, credits_of, opened, run
from tests.waiting import LONGEST

STEPS = [*WORK, "counted", "settled", *["any moment"] * 5]
ROUNDS_PER_LEDGER = 4
PURPOSE = "load"


class WireLife(Life):
    """Clients that know a statement and what it was answered, and nothing else."""

    wire = ""
    cut = 0
    """Statements whose connection was lost: each may have been charged."""

    def next(self) -> tuple[str, bytes] | None:
        found = super().next()
        return None if found is None else (found[0], statement(found[0]).encode())

    def client(self, host: str) -> None:
        cap = credits_of(self.number)
        spend = f"-c sulq.purpose={PURPOSE} -c sulq.credits={cap}" if self.last is None else ""
        address, port = self.wire.rsplit(":", 1)
        asked: tuple[str, bytes] | None = None
        try:
            with psycopg.connect(
                host=address,
                port=port,
                user="o",
                password=self.token,
                options=spend,
                sslmode="disable",
                connect_timeout=int(LONGEST),
                autocommit=True,
            ) as line:
                while (asked := self.next()) is not None:
                    self.one(line, *asked)
        except psycopg.OperationalError:
            with self.lock:
                if asked is not None:
                    self.cut += 1
                    if self.last is None:
                        self.open.append(asked)

    def one(self, line: Any, key: str, text: bytes) -> None:
        try:
            found = line.execute(text).fetchall()
        except psycopg.Error as error:
            if line.broken:
                raise
            with self.lock:
                self.heard += 1
                self.refused.add(key)
                if error.sqlstate != "53400" or key in self.told:
                    self.wrong.append(f"{key}: {error}")
            return
        told = json.dumps(found).encode()
        with self.lock:
            self.heard += 1
            self.same += self.told.get(key) == told
            if self.told.setdefault(key, told) != told:
                self.wrong.append(f"{key}: {told!r} after {self.told[key]!r}")

    def compare(self, facts: dict[str, Any]) -> None:
        """Told is charged, nothing is charged that was not asked, and the purpose knows of all."""
        self.wire = facts.get("wire", "")
        cap = credits_of(self.number)
        self.charged = spent = Fraction(facts["spent"])
        if not len(self.told) <= spent <= min(cap, len(self.told) + self.cut):
            self.wrong.append(f"{len(self.told)} told, {self.cut} cut off, {spent} spent")
        if spent + Fraction(facts["left"]) != cap:
            self.wrong.append(f"{spent} spent, {facts['left']} left")
        counted = self.counted()
        if not spent <= counted <= cap:
            self.wrong.append(f"{spent} spent, {counted} counted by the purpose")

    def counted(self) -> Fraction:
        path = self.home / "state" / "purposes.sqlite"
        if not path.exists():
            return Fraction(0)
        rows = apsw.Connection(str(path)).execute("SELECT credits FROM purposes")
        return sum((Fraction(str(credits)) for (credits,) in rows), Fraction(0))


def statement(key: str) -> str:
    number = int(key.rpartition("-")[2])
    where = f"age > {number % 89} AND income > {number}"
    return f"SELECT COUNT(*) AS n FROM people WHERE {where}"


def main(directory: str, rounds: str, first: str) -> None:
    home, dice = Path(directory), random.Random(int(first))
    lives: list[WireLife] = []
    killed: dict[str, int] = {}
    for number in range(int(rounds)):
        if number % ROUNDS_PER_LEDGER == 0:
            lives.append(WireLife(home / str(len(lives)), len(lives)))
        step = dice.choice(STEPS)
        run(lives[-1], "honest", step, dice)
        killed[step] = killed.get(step, 0) + 1
        if number + 1 == int(rounds) or (number + 1) % ROUNDS_PER_LEDGER == 0:
            lives[-1].open.clear()
            lives[-1].last = list(lives[-1].told)  # asked again, by who may spend nothing
            run(lives[-1], "honest", "any moment", dice)
            with opened(lives[-1].home, lives[-1].number) as database:
                account = database.statement()
                lives[-1].compare({"spent": str(account.spent), "left": str(account.left)})
    print(
        json.dumps(
            {
                "killed": killed,
                "clients": CLIENTS,
                "wrong": [text for life in lives for text in life.wrong][:20],
                "told": sum(len(life.told) for life in lives),
                "cut": sum(life.cut for life in lives),
                "charged": float(sum(life.charged for life in lives)),
                "refused": sum(len(life.refused) for life in lives),
                "same": sum(life.same for life in lives),
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
