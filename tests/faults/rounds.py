"""Rounds of work that end in kill -9, run by test_kill.py in a process of its own.

    python rounds.py <directory> <rounds> <first number> <honest|hasty|batches|piecemeal>

Each round is a forked child that opens the ledger and asks, in four threads, until it is killed, at
a named step or at a random moment. It notes every answer it releases in a file, by one unbuffered
write, as a client would see it. Then the ledger is opened and compared with the notes. `hasty`
releases before it settles: the control, which the comparison must catch. `batches` asks three
questions at a time, most of them from a reservation; `piecemeal`, its control, one after the other.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from sulq.errors import BudgetSpent, Refused
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.ledger import failpoints
from sulq.kernel.ledger.accounts import NOTHING
from sulq.kernel.ledger.events import PricedRequest
from sulq.kernel.ledger.inspect import inspect
from sulq.kernel.ledger.ledger import Ledger

BIRTH = ["anchor made", "ledger made"]
OPENING = ["published", "registered"]
WORK = ["admitted", "committed", "anchored"]
THREADS = 4
PRICE = Loss(3, 1)
ROUNDS_PER_LEDGER = 10


def cap_of(path: Path) -> Loss:
    """Every fifth ledger runs out; the others are killed at work."""
    questions = 40 if int(path.stem) % 5 == 0 else 10_000
    return Loss(3 * questions, questions)


def publish(path: Path) -> Ledger:
    cap = cap_of(path)
    return Ledger.open(
        path,
        name="t",
        facts={},
        accounts=("",),
        cap=cap,
        fingerprint=str(path),
        wait=5.0,
        publish=True,
    )


def write(notes: int, name: str, values: Sequence[int]) -> None:
    """Note what was released, on a line of its own: a kill can cut the line before it short."""
    os.write(notes, b"\n" + json.dumps([name, list(values)]).encode() + b"\n")


def batches(journal: Ledger, notes: int, piecemeal: bool, number: int, me: int) -> None:
    """Three questions at a time, two times of three from a reservation, sometimes left open."""
    for turn in range(40):
        names = [f"{number}-{me}-{turn}:{part}" for part in range(3)]
        priced = [PricedRequest(name, name, "n", {"": PRICE}, PRICE) for name in names]
        try:
            desk = journal.reserve("owner", Loss(12, 4)) if turn % 3 else journal
        except BudgetSpent:
            return
        try:
            key = names[0] if turn % 2 else None
            if piecemeal:
                entries = [desk.charge_all([one], analyst="owner")[0] for one in priced]
            else:
                entries = desk.charge_all(priced, analyst="owner", key=key)
            stored = desk.settle_all([(entry, [secrets.randbits(40)]) for entry in entries])
        except BudgetSpent:
            return
        finally:
            if desk is not journal and turn % 5:
                desk.close()
        for entry in stored:
            write(notes, entry.digest, entry.values or ())


def work(path: Path, notes: int, mode: str, number: int) -> None:
    """Ask new questions, and sometimes an old one, until the budget ends."""
    journal, hasty = publish(path), mode == "hasty"

    def client(me: int) -> None:
        if mode in ("batches", "piecemeal"):
            batches(journal, notes, mode == "piecemeal", number, me)
            return
        for turn in range(100):
            name = f"{number}-{me}-{turn}" if turn % 3 else f"old-{turn}"
            try:
                entry = journal.charge(
                    question=name,
                    digest=name,
                    noise="n",
                    charges={"": PRICE},
                    share=PRICE,
                    analyst="owner",
                    key=name if turn % 2 else None,
                )
                if not entry.answered:
                    drawn = [secrets.randbits(40)]
                    if hasty:
                        write(notes, name, drawn)
                    entry = journal.settle(entry, drawn)
            except BudgetSpent:
                return
            except Refused as refusal:
                if "attempts" not in str(refusal):
                    raise
                continue
            write(notes, name, entry.values or ())

    threads = [threading.Thread(target=client, args=(me,)) for me in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()


def run(path: Path, notes_path: Path, mode: str, number: int, dice: random.Random) -> str | None:
    """One round; the step at which the child was killed, if it was."""
    step = dice.choice([*OPENING, *WORK * 3, *["any moment"] * 5])
    if number % ROUNDS_PER_LEDGER == 0:
        step = BIRTH[int(path.stem) % 2]
    countdown = [dice.randint(1, 12) if step in WORK else 1]

    def die(reached: str) -> None:
        if reached == step:
            countdown[0] -= 1
            if countdown[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        code = 1
        try:
            failpoints.on_step = die
            notes = os.open(notes_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            work(path, notes, mode, number)
            code = 0
        finally:
            os._exit(code)
    if step == "any moment":
        time.sleep(dice.uniform(0, 0.06))
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status):
        raise SystemExit(f"round {number}: the child failed")
    return step if os.WIFSIGNALED(status) else None


def compare(path: Path, notes_path: Path) -> tuple[int, int, int]:
    """(charged, released, broken promises) after a restart."""
    lines = notes_path.read_bytes().splitlines() if notes_path.exists() else []
    whole = [line for line in lines if line.endswith(b"]]")]  # a kill can cut a note short
    released = [json.loads(line) for line in whole]
    left_open = _reserved(path)
    journal = publish(path)
    kept = {entry.digest: entry.values for entry in journal.entries()}
    statement, free = journal.statement(), journal.remaining("owner")
    journal.close()
    wrong = sum(kept.get(name) != tuple(values) for name, values in released)
    paid = Loss(3 * statement.entries, statement.entries)
    wrong += statement.spent != paid or not paid.within(cap_of(path))
    wrong += statement.reserved != NOTHING or paid + free != cap_of(path)  # none lost, none twice
    wrong += not (paid + left_open).within(cap_of(path))
    wrong += sum(parts != 3 for parts in _parts(kept).values())
    return statement.entries, len({name for name, _ in released}), wrong


def _reserved(path: Path) -> Loss:
    """What the killed process had set aside, before anybody opens the ledger."""
    try:
        return inspect(path).statements["t"].reserved
    except (Refused, KeyError):  # killed before there was a chain or a table
        return NOTHING


def _parts(kept: Iterable[str]) -> Counter[str]:
    """How many questions of each batch were charged."""
    return Counter(name.partition(":")[0] for name in kept if ":" in name)


def main(directory: str, rounds: str, first: str, mode: str) -> None:
    home, dice = Path(directory), random.Random(int(first))
    wrong = 0
    killed: dict[str, int] = {}
    charged: dict[int, int] = {}
    released: dict[int, int] = {}
    kills: dict[int, int] = {}
    slowest = 0.0
    for number in range(int(first), int(first) + int(rounds)):
        life = number // ROUNDS_PER_LEDGER
        path, notes = home / f"{life}.ledger", home / f"{life}.notes"
        step = run(path, notes, mode, number, dice)
        if step is not None:
            killed[step] = killed.get(step, 0) + 1
            kills[life] = kills.get(life, 0) + 1
        start = time.perf_counter()
        charged[life], released[life], bad = compare(path, notes)
        slowest = max(slowest, time.perf_counter() - start)
        wrong += bad
    each = THREADS * (3 if mode in ("batches", "piecemeal") else 1)
    idle = max(charged[life] - released[life] - each * kills.get(life, 0) for life in charged)
    print(
        json.dumps(
            {
                "killed": killed,
                "wrong": wrong,
                "charged": sum(charged.values()),
                "released": sum(released.values()),
                "idle": idle,
                "slowest restart": slowest,
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
