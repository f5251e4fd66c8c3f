"""The ledger against a plain log that makes the same two syncs (entry, anchor) in the same batches.

Wall time of shared machines is noisy: each ratio is the median over rounds that alternate.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue

from sulq.kernel.accounting.loss import Loss
from sulq.kernel.ledger.ledger import Ledger

BATCH = 256
FILLERS = 128
ROUNDS = 3
SECONDS = 1.0
COST = Loss(3, 1)
ENDLESS = Loss(10**40, 10**40)
QUESTION = '{"count":{"where":["and",[">=","age",65],["=","smoker",true]]},"table":"people"}'
NOISE = '{"discrete_gaussian":{"variance":"27556000000000000"}}'


class PlainLog:
    """Append to one file, overwrite a mark in another, both synced; one writer, group commit."""

    def __init__(self, directory: Path) -> None:
        self._log = os.open(directory / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._mark = os.open(directory / "mark", os.O_RDWR | os.O_CREAT, 0o600)
        os.pwrite(self._mark, bytes(4096), 0)
        self._queue: SimpleQueue[tuple[bytes, Future[None]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def append(self, line: bytes) -> None:
        reply: Future[None] = Future()
        self._queue.put((line, reply))
        reply.result()

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            batch = [first]
            while len(batch) < BATCH:
                try:
                    job = self._queue.get_nowait()
                except Empty:
                    break
                if job is not None:
                    batch.append(job)
            os.write(self._log, b"".join(line for line, _ in batch))
            os.fdatasync(self._log)
            os.pwrite(self._mark, batch[-1][0][:104], 0)
            os.fdatasync(self._mark)
            for _, reply in batch:
                reply.set_result(None)

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()
        os.close(self._log)
        os.close(self._mark)


def per_second(callers: int, act: Callable[[str], object]) -> float:
    """How often `act` returns, summed over `callers` threads, each call with a name of its own."""
    done, go, end = [0] * callers, threading.Event(), [0.0]

    def work(caller: int) -> None:
        go.wait()
        while time.perf_counter() < end[0]:
            act(f"{callers}-{caller}-{time.perf_counter_ns()}")
            done[caller] += 1

    threads = [threading.Thread(target=work, args=(caller,)) for caller in range(callers)]
    for thread in threads:
        thread.start()
    start = time.perf_counter()
    end[0] = start + SECONDS
    go.set()
    for thread in threads:
        thread.join()
    return sum(done) / (time.perf_counter() - start)


@contextmanager
def journal(directory: Path) -> Iterator[Ledger]:
    opened = Ledger.open(
        directory / "ledger",
        name="people",
        facts={},
        accounts=("",),
        cap=ENDLESS,
        fingerprint=None,
        publish=True,
    )
    try:
        yield opened
    finally:
        opened.close()


def charge(ledger: Ledger, name: str) -> object:
    return ledger.charge(
        question=QUESTION,
        digest=name,
        noise=NOISE,
        charges={"": COST},
        share=COST,
        analyst="owner",
    )


def ask(ledger: Ledger, name: str) -> object:
    entry = ledger.charge(
        question=QUESTION,
        digest=name,
        noise=NOISE,
        charges={"": COST},
        share=COST,
        analyst="owner",
    )
    return ledger.settle(entry, [123_456_789_012])


def throughput(directory: Path) -> Iterator[tuple[str, float, str]]:
    line = (QUESTION + NOISE).encode().ljust(400, b" ") + b"\n"
    for callers in (1, 8, 64):
        ratios, rates, asks = [], [], []
        for number in range(ROUNDS):
            home = directory / f"{callers}-{number}"
            home.mkdir()
            log = PlainLog(home)
            plain = per_second(callers, lambda _, log=log: log.append(line))  # type: ignore[misc]
            log.close()
            with journal(home) as ledger:
                rates.append(per_second(callers, lambda name: charge(ledger, name)))
                asks.append(per_second(callers, lambda name: ask(ledger, name)))
            ratios.append(rates[-1] / plain)
        yield f"ledger charges, {callers} callers", statistics.median(rates), "/s"
        yield (
            f"ledger charges against a plain log, {callers} callers (goal at 64: >= 0.8)",
            statistics.median(ratios),
            "x",
        )
        yield f"ledger asks (charge and settle), {callers} callers", statistics.median(asks), "/s"


def flatness(directory: Path, entries: int = 100_000) -> Iterator[tuple[str, float, str]]:
    """One ask in a new and in a long ledger, in turns: both see the same machine."""

    def fill(ledger: Ledger, caller: int) -> None:
        for number in range((entries - 1000) // FILLERS):
            ask(ledger, f"{caller}-{number}")

    def hundred(ledger: Ledger, part: int) -> float:
        start = time.perf_counter()
        for number in range(100):
            ask(ledger, f"part {part}-{number}")
        return time.perf_counter() - start

    (directory / "new").mkdir()
    with journal(directory) as long, journal(directory / "new") as new:
        fillers = [threading.Thread(target=fill, args=(long, caller)) for caller in range(FILLERS)]
        for thread in fillers:
            thread.start()
        for thread in fillers:
            thread.join()
        ratios = [hundred(long, part) / hundred(new, part) for part in range(10)]
    yield "ledger ask, entries 99,000-100,000 against 1-1,000", statistics.median(ratios), "x"
    start = time.perf_counter()
    with journal(directory):
        yield "ledger open at 100,000 entries", time.perf_counter() - start, "s"


def figures() -> list[tuple[str, float, str]]:
    """(what, value, unit); goals: 0.8x the plain log with 64 callers, flat to 100,000 entries."""
    before = os.environ.get("SULQ_STATE")
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        os.environ["SULQ_STATE"] = str(home / "state")
        try:
            (home / "long").mkdir()
            return [*throughput(home), *flatness(home / "long")]
        finally:
            if before is None:
                del os.environ["SULQ_STATE"]
            else:
                os.environ["SULQ_STATE"] = before


if __name__ == "__main__":
    for what, value, unit in figures():
        print(f"{what:60s} {value:12,.2f} {unit}")
