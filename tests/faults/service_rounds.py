"""A server that is killed under load, round after round; run by test_service_kill.py.

    python service_rounds.py <directory> <rounds> <first number> <honest|hasty>

Each round is a forked child that opens the table and serves it; clients ask from here until it is
killed, at a named step or after a random number of replies. What they were told is kept here. Who
got no reply asks again in a later round, with the same key. When the next child has opened the
ledger it tells what is in it. The last round of a ledger asks everything once more that was told.
`hasty` replies with what it has drawn before that is stored: the control, which the comparison must
catch.
"""

from __future__ import annotations

import gc
import http.client
import io
import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.server.conftest import SCHEMA, write_people
from tests.waiting import LONGEST

from sulq import Database, Promise, col, count
from sulq.cli.server_process import Where, serve_tables
from sulq.kernel.ledger import failpoints
from sulq.kernel.ledger.ledger import Ledger
from sulq.server.auth.tokens import Access, Role
from sulq.server.idempotency import Replies
from sulq.server.limits import Settings
from sulq.server.middleware import Log
from sulq.server.purposes import Purposes
from sulq.server.service.catalog import Tables, id_of
from sulq.wire import question_json

CLIENTS = 8
MOST_HEARD = 150
"""Replies in a round after which a step that has not come is not waited for any more."""
ROUNDS_PER_LEDGER = 5
LONG, SHORT = 400, 30
"""Credits of a table; every second one runs out under load."""
WORK = ["admitted", "committed", "anchored", "noted", "kept"]


def credits_of(life: int) -> int:
    return SHORT if life % 2 else LONG


def opened(home: Path, life: int) -> Database:
    promise = Promise(1, "1e-6", credits_of(life))
    return Database.open(
        home / "people.parquet",
        SCHEMA,
        promise,
        home / "people.ledger",
        name="people",
        publish=True,
    )


def facts_of(database: Database) -> dict[str, Any]:
    """What the ledger holds."""
    account = database.statement()
    held = {
        entry.key: [list(map(str, entry.values)) if entry.values else None, entry.digest]
        for entry in database.ledger.entries()
    }
    return {"held": held, "spent": str(account.spent), "left": str(account.left)}


# --- the child: a server that dies ---------------------------------------------------------------


def serve(home: Path, life: int, mode: str, tell: int, die: Any) -> None:
    _hook(Replies, "begin", lambda: die("noted"))
    _hook(Purposes, "admit", lambda: die("counted"))
    _hook(Purposes, "settle", lambda: die("settled"))
    _hook(Replies, "finish", lambda: die("kept"))
    if mode == "hasty":
        Ledger.settle_all = _unstored  # type: ignore[method-assign]
    failpoints.on_step = die
    where = Where(port=0)
    with where.listen() as listening, opened(home, life) as database:
        facts = facts_of(database)

        def told(now: Any) -> None:
            where_asked = {"url": now.address, "wire": now.postgres}
            os.write(tell, json.dumps({**where_asked, **facts}).encode() + b"\n")

        serve_tables(
            Tables({"people": database}),
            where,
            listening,
            settings=Settings(pacing=False),
            log=Log(io.StringIO()),
            started=told,
            postgres=where.postgres_port(0),
        )


def _hook(owner: Any, name: str, then: Any) -> None:
    sound = getattr(owner, name)

    def hooked(*given: Any, **named: Any) -> Any:
        found = sound(*given, **named)
        then()
        return found

    setattr(owner, name, hooked)


def _unstored(journal: Ledger, answered: Any) -> list[Any]:
    """Released before it is stored; the store comes later, if at all."""
    return [_unstored_one(journal, entry, values) for entry, values in answered]


def _unstored_one(journal: Ledger, entry: Any, values: Any) -> Any:
    sound = journal.settle(entry, [0] * len(values)) if entry.seq % 2 else None
    return replace(sound or entry, answered=True, values=tuple(values), receipt=_any(journal))


def _any(journal: Ledger) -> Any:
    """Some receipt: a client that looks only at the answer does not mind."""
    return next((one.receipt for one in journal.entries() if one.receipt), None)


# --- the parent: clients that remember ------------------------------------------------------------


class Life:
    """One ledger, over several rounds: what was asked and what was told."""

    def __init__(self, home: Path, number: int) -> None:
        home.mkdir()
        self.home, self.number = home, number
        os.environ["SULQ_STATE"] = str(home / "state")
        write_people(home / "people.parquet", 1_000)
        with opened(home, number) as database:
            tables = {id_of(database): "people"}
        access = Access.open()
        self.token = access.issue("owner", Role.OWNER, tables)
        access.close()
        self.lock, self.asked = threading.Lock(), 0
        self.open: list[tuple[str, bytes]] = []  # no reply came
        self.told: dict[str, bytes] = {}  # key -> body of the reply
        self.refused: set[str] = set()
        self.wrong: list[str] = []
        self.retried = self.same = self.heard = 0
        self.charged = Fraction(0)
        self.last: list[str] | None = None  # told before the last round: each is asked once more

    def next(self) -> tuple[str, bytes] | None:
        """What to ask now; None: nothing is left of the last round."""
        with self.lock:
            if self.open:
                self.retried += 1
                return self.open.pop()
            if self.last is not None:
                return again(self.last.pop()) if self.last else None
            if self.told and self.asked % 7 == 3:  # an old one again
                self.asked += 1
                return again(random.choice(list(self.told)))
            self.asked += 1
            return again(f"question-{self.asked}")

    def client(self, host: str) -> None:
        line = http.client.HTTPConnection(host, timeout=LONGEST)
        while (asked := self.next()) is not None:
            key, body = asked
            headers = {"Authorization": f"Bearer {self.token}", "Idempotency-Key": key}
            headers["Content-Type"] = "application/json"
            try:
                line.request("POST", "/v1/tables/people/ask", body, headers)
                response = line.getresponse()
                status, reply = response.status, response.read()
            except (OSError, http.client.HTTPException):
                with self.lock:
                    self.open.append((key, body))
                return
            with self.lock:
                self.heard += 1
                if status == 200:
                    self.same += self.told.get(key) == reply
                    if self.told.setdefault(key, reply) != reply:
                        self.wrong.append(f"{key}: another reply")
                elif status == 402:
                    self.refused.add(key)
                else:
                    self.wrong.append(f"{key}: {status} {reply[:200].decode()}")

    def compare(self, facts: dict[str, Any]) -> None:
        """What a new server finds in the ledger, with what clients were told."""
        held, cap = facts["held"], credits_of(self.number)
        for key, reply in self.told.items():
            if json.loads(reply)["values"] != held.get(key, [None])[0]:
                self.wrong.append(f"{key}: told what is not in the ledger")
        self.charged = spent = Fraction(facts["spent"])
        left = Fraction(facts["left"])
        if not len(self.told) <= len(held) == spent <= cap or spent + left != cap:
            self.wrong.append(f"{len(self.told)} told, {len(held)} held, {spent} spent, {left}")
        idle = set(held) - set(self.told)
        if not idle <= {key for key, _ in self.open}:
            self.wrong.append("charged, and nobody waits for it")


def again(key: str) -> tuple[str, bytes]:
    """A key and the request that it stands for."""
    number = int(key.rpartition("-")[2])
    where = (col("age") > number % 89) & (col("income") > number)
    return key, json.dumps({"question": question_json(count(where=where))}).encode()


def run(life: Life, mode: str, step: str, dice: random.Random) -> float:
    """One round, to be killed at that step; how long it took until the server listened."""
    countdown = [dice.randint(1, 40)]
    mine, its = os.pipe()
    gc.freeze()
    start = time.perf_counter()
    child = os.fork()
    if child == 0:
        try:
            os.close(mine)

            def die(reached: str) -> None:
                if reached == step:
                    countdown[0] -= 1
                    if countdown[0] == 0:
                        os.kill(os.getpid(), signal.SIGKILL)

            serve(life.home, life.number, mode, its, die)
        finally:
            os._exit(1)
    os.close(its)
    with os.fdopen(mine) as said:
        line = said.readline()
    if not line:  # killed while it opened
        os.waitpid(child, 0)
        return 0.0
    restart = time.perf_counter() - start
    facts = json.loads(line)
    life.compare(facts)
    host = facts["url"].removeprefix("http://")
    clients = [threading.Thread(target=life.client, args=(host,)) for _ in range(CLIENTS)]
    for thread in clients:
        thread.start()
    if life.last is not None:
        for thread in clients:
            thread.join()
    more = dice.randint(5, 80) if step == "any moment" else MOST_HEARD
    enough = life.heard + (more if life.last is None else 0)
    if not _died(child, lambda: life.heard >= enough):
        time.sleep(dice.uniform(0, 0.01))  # between two replies, or within one
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    for thread in clients:
        thread.join()
    return restart


def _died(child: int, enough: Callable[[], bool]) -> bool:
    """True if it ended by itself before so many replies; a slow machine only takes longer."""
    until = time.monotonic() + LONGEST
    while not enough() and time.monotonic() < until:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(0.002)
    return False


def main(directory: str, rounds: str, first: str, mode: str) -> None:
    home, dice = Path(directory), random.Random(int(first))
    lives: list[Life] = []
    killed: dict[str, int] = {}
    slowest = 0.0
    for number in range(int(rounds)):
        if number % ROUNDS_PER_LEDGER == 0:
            lives.append(Life(home / str(len(lives)), len(lives)))
        step = dice.choice([*WORK * 2, *["any moment"] * 6])
        slowest = max(slowest, run(lives[-1], mode, step, dice))
        killed[step] = killed.get(step, 0) + 1
        if number + 1 == int(rounds) or (number + 1) % ROUNDS_PER_LEDGER == 0:
            lives[-1].last = list(lives[-1].told)  # who was told something, or nothing, asks again
            run(lives[-1], mode, "any moment", dice)
            with opened(lives[-1].home, lives[-1].number) as database:
                lives[-1].compare(facts_of(database))

    print(
        json.dumps(
            {
                "killed": killed,
                "wrong": [text for life in lives for text in life.wrong][:20],
                "told": sum(len(life.told) for life in lives),
                "charged": float(sum(life.charged for life in lives)),
                "budget": sum(credits_of(life.number) for life in lives),
                "refused": sum(len(life.refused) for life in lives),
                "retried": sum(life.retried for life in lives),
                "same": sum(life.same for life in lives),
                "slowest": slowest,
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
