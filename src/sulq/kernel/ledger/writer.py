"""Group commit: one thread does all the work in order and makes a whole batch durable at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from sulq.errors import Refused, SulqError
from sulq.kernel.ledger.stores.store import Interrupted

BATCH = 256
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WriteJob:
    """Work for the writer's thread (None: a user leaves), and the future that tells its outcome."""

    work: Callable[[], Any] | None
    future: Future[Any] = field(default_factory=Future)

    def finish(self, outcome: Any) -> None:
        """Give the caller what the work returned, or raise there what it raised."""
        if isinstance(outcome, Exception):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)


class Writer:
    """Runs jobs one after the other; nobody is answered before `commit` has returned.

    A job's own refusal, or its error before it changed anything, goes to its caller alone. So does
    what `begin` refuses, which breaks the writer for good unless it is `Interrupted`. Any other
    failure leaves the outcome unknown: the batch is told so and the writer is broken for good. It
    ends when its last user leaves.
    """

    def __init__(
        self,
        begin: Callable[[], None],
        commit: Callable[[], None],
        finish: Callable[[bool], None],
        changes: Callable[[], int],
        lock: AbstractContextManager[object],
        pause: float | None = None,
    ) -> None:
        """`finish(tidy)` is called once, on the writer's thread, when it ends or breaks; `changes`
        counts what jobs have changed. After a `pause` without work there is an empty batch."""
        self._begin, self._commit, self._finish = begin, commit, finish
        self._changes, self._lock, self._pause = changes, lock, pause
        self._queue: SimpleQueue[WriteJob] = SimpleQueue()
        self._entrance = threading.Lock()
        self._users, self._ended, self._broken = 1, False, False
        threading.Thread(target=self._run, name="sulq-ledger", daemon=True).start()

    @property
    def usable(self) -> bool:
        return not (self._ended or self._broken)

    def submit(self, work: Callable[[], T]) -> T:
        """Do `work` in turn; return when what it did is durable."""
        job = WriteJob(work)
        with self._entrance:
            if self._ended:
                raise closed()
            self._queue.put(job)
        outcome: T = job.future.result()
        return outcome

    def later(self, work: Callable[[], None]) -> None:
        """Do `work` in turn, unless everybody has left by then. Takes no lock."""
        self._queue.put(WriteJob(work))

    def enter(self) -> bool:
        """One user more; False if it is too late."""
        with self._entrance:
            self._users += self.usable
            return self.usable

    def leave(self, *, wait: bool) -> None:
        """One user less. Without `wait` it takes no lock, so a finalizer may call it anywhere."""
        job = WriteJob(None)
        if not wait:
            self._queue.put(job)
            return
        with self._entrance:
            if self._ended:
                return  # nobody would answer
            self._queue.put(job)
        job.future.exception()  # wait; a broken writer is left all the same

    def stop(self) -> None:
        """Every user leaves."""
        with self._entrance:
            if self._ended:
                return
            self._users = 1
        self.leave(wait=True)

    def _run(self) -> None:
        while self._do(self._next_batch()):
            pass  # no job is held while waiting: it would keep its caller's objects alive

    def _next_batch(self) -> list[WriteJob]:
        try:
            return [self._queue.get(timeout=self._pause)]
        except Empty:
            return []

    def _waiting(self, most: int) -> list[WriteJob]:
        found: list[WriteJob] = []
        with suppress(Empty):
            while len(found) < most:
                found.append(self._queue.get_nowait())
        return found

    def _do(self, batch: list[WriteJob]) -> bool:
        """Run a batch and answer its callers; False if the last user left."""
        with self._lock:
            outcomes = self._outcomes(batch)
            going = self._let_go(sum(job.work is None for job in batch))
        for job, outcome in zip(batch, outcomes, strict=True):
            job.finish(outcome)
        return going

    def _outcomes(self, batch: list[WriteJob]) -> list[Any]:
        """Run a batch, and the jobs that came while it waited to begin, which are added to it.
        Return each job's result or error, once `commit` has returned."""
        told: Callable[[], Refused] = closed if self._broken else unknown
        try:
            if self._broken:
                raise closed()
            try:
                self._begin()
            except Refused as reason:
                told = partial(Refused, *reason.args)
                raise
            finally:
                batch += self._waiting(BATCH - len(batch))
            outcomes = [self._outcome(job) for job in batch]
            self._commit()
        except Interrupted as pause:
            return [Interrupted(charged=pause.charged_unknown) for _ in batch]
        except BaseException:  # noqa: BLE001 - whatever it was, the outcome is unknown
            if not self._broken:
                self._broken = True
                self._finish(False)
            return [told() for _ in batch]
        return outcomes

    def _outcome(self, job: WriteJob) -> Any:
        """Run one job. Raise only an error that came after the job had changed something."""
        before = self._changes()
        try:
            return job.work and job.work()
        except SulqError as refusal:
            return refusal
        except Exception as problem:
            if self._changes() != before:
                raise
            return problem

    def _let_go(self, leaving: int) -> bool:
        with self._entrance:
            self._users -= leaving
            self._ended = self._users <= 0
        if self._ended:
            while not self._queue.empty():
                self._queue.get().finish(closed())
            if not self._broken:
                self._finish(True)
        return not self._ended


def closed() -> Refused:
    return Refused(
        "the ledger is closed: it was closed, or a write failed before; reopen it and ask again "
        "with the same key"
    )


def unknown() -> Refused:
    """A write failed whose outcome only the next opening tells."""
    refusal = Refused(
        "a write failed and the ledger is closed: the charge may stand; reopen and ask again with "
        "the same key"
    )
    refusal.charged_unknown = True
    return refusal
