"""Group commit: one thread does all the work in order and makes a whole batch durable at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from sulq.errors import Refused, SulqError

BATCH = 256
T = TypeVar("T")


class Job:
    """Work, and a lock that opens when its outcome is known."""

    __slots__ = ("done", "outcome", "work")

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.outcome: Any = None
        self.done = threading.Lock()
        self.done.acquire()


class Writer:
    """Runs jobs one after the other; nobody is answered before `commit` has returned.

    A job's own refusal goes to its caller alone. Any other failure leaves the outcome unknown: the
    whole batch is told so and the writer is broken for good.
    """

    def __init__(
        self, commit: Callable[[], None], finish: Callable[[bool], None], lock: threading.Lock
    ) -> None:
        """`finish(tidy)` is called once, on the writer's thread, when it ends or breaks."""
        self._commit, self._finish, self._lock = commit, finish, lock
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._entrance = threading.Lock()  # nothing is queued behind the end
        self._ended = False
        self.broken = False
        self._thread = threading.Thread(target=self._run, name="sulq-ledger", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[], T]) -> T:
        """Do `work` in turn; return when what it did is durable."""
        job = Job(work)
        with self._entrance:
            if self._ended:
                raise closed()
            self._queue.put(job)
        job.done.acquire()
        if isinstance(job.outcome, SulqError):
            raise job.outcome
        outcome: T = job.outcome
        return outcome

    def end(self) -> None:
        """Finish what is queued, then stop; waits for it unless called on the writer's thread."""
        with self._entrance:
            if not self._ended:
                self._ended = True
                self._queue.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    @property
    def ended(self) -> bool:
        return self._ended or self.broken

    def _run(self) -> None:
        going = True
        while going:
            batch = self._next_batch()
            going = batch[-1] is not None
            self._do([job for job in batch if job is not None])
        if not self.broken:
            self._finish(True)

    def _next_batch(self) -> list[Job | None]:
        batch = [self._queue.get()]
        while batch[-1] is not None and len(batch) < BATCH:
            try:
                batch.append(self._queue.get_nowait())
            except Empty:
                break
        return batch

    def _do(self, jobs: list[Job]) -> None:
        with self._lock:
            try:
                if self.broken:
                    raise closed()
                for job in jobs:
                    try:
                        job.outcome = job.work()
                    except SulqError as refusal:
                        job.outcome = refusal
                self._commit()
            except BaseException:  # noqa: BLE001 - whatever it was, the outcome is unknown
                if not self.broken:
                    self.broken = True
                    self._finish(False)
                for job in jobs:
                    job.outcome = closed()
        for job in jobs:
            job.done.release()


def closed() -> Refused:
    return Refused(
        "the ledger is closed: it was closed, or a write failed and its outcome is "
        "unknown; reopen it and ask again with the same key"
    )
