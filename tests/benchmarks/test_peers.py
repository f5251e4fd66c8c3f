"""How peers are run: in time, at one guarantee, and never for ever."""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from benchmarks.peers import run, worker
from tests.waiting import come

TOLD = {
    "path": "",
    "ats": list(range(200)),
    "epsilon": 1.0,
    "delta": 1e-6,
    "repeats": 4,
    "seconds": 0.02,
    "truth": {"count": [7] * 200, "mean": [7] * 200, "groups": [[7, 7]] * 200},
}


class Slow:
    """Answers 3 too many, and 20 too many when the guarantee is shared; by a clock of its own."""

    now: ClassVar[list[float]] = [0.0]
    shares: ClassVar[list[int]] = []

    def __init__(self, path: str) -> None: ...

    def count(self, at: int, epsilon: float, delta: float) -> float:
        return 10.0

    mean = count

    def groups(self, at: int, epsilon: float, delta: float) -> list[float]:
        return [4.0, 10.0]

    def many(self, ats: list[int], epsilon: float, delta: float) -> Iterator[float]:
        self.shares.append(len(ats))
        for _ in ats:
            self.now[0] += 1 / 64
            yield 27.0


def test_a_slow_peer_is_stopped_early_and_its_guarantee_is_still_divided_by_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "time", SimpleNamespace(perf_counter=lambda: Slow.now[0]))
    module, Slow.shares[:] = SimpleNamespace(Peer=Slow), []
    timed = worker.many(module, TOLD)
    assert timed["asked"] == 5 and timed["warm"] == 1 / 64  # the first, and those of 0.06 s
    assert timed["seconds"] == 200 / 64  # those left unasked too
    found = worker.errors(module, TOLD)
    assert Slow.shares == [200, 200]
    assert (found["count"]["rmse"], found["count"]["draws"]) == (3.0, 4)
    assert (found["groups"]["rmse"], found["groups"]["draws"]) == (3.0, 8)
    assert found["many"]["rmse"] == 20.0
    assert found["many"]["draws"] == 3


def test_the_standard_error_of_a_root_mean_square_is_that_of_laplace_noise() -> None:
    found = worker.size([1.0, -3.0] * 10)
    assert found["rmse"] == pytest.approx(5**0.5)
    assert found["error"] == pytest.approx(5**0.5 * (1.25 / 20) ** 0.5)
    chance = random.Random(1)  # roots of 4,000 times 100 draws: their spread is known within 4 %
    roots = [
        worker.size([chance.expovariate(1.0) for _ in range(100)])["rmse"] for _ in range(4_000)
    ]
    assert statistics.stdev(roots) == pytest.approx(2**0.5 * (1.25 / 100) ** 0.5, rel=0.15)


def test_what_does_not_end_in_time_is_stopped_with_all_it_started(tmp_path: Path) -> None:
    """With more time, should the machine be too busy to start anything in so little."""
    script, child = tmp_path / "hangs", tmp_path / "child"
    script.write_text(
        f"#!/bin/sh\nsleep 600 &\necho $! > {child}.new\nmv {child}.new {child}\nwait\n"
    )
    script.chmod(0o755)
    for limit in (0.3, 3.0, 30.0):
        with pytest.raises(subprocess.TimeoutExpired) as stopped:
            run._run(str(script), "any", "cold", {}, limit=limit)
        assert run._reason(stopped.value) == f"not done in {limit:.0f} s"
        if child.exists():
            break
    come(lambda: gone(int(child.read_text())), "what it started is still there")


def gone(pid: int) -> bool:
    """Whether no such process runs; one that nobody has waited for yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_peer_that_fails_says_why_and_its_other_tasks_are_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answered(python: str, module: str, task: str, told: Any, limit: float) -> Any:
        if task == "many":
            raise subprocess.CalledProcessError(1, module, "", "Traceback\nValueError: no such")
        return {"count": 1}, 2.0, 3.0

    monkeypatch.setattr(run, "_run", answered)
    found = run._measured("sulq", {}, {}, time.monotonic() + 60, 1)
    assert found["failed"] == {"many": "ValueError: no such"}
    assert (found["cold"], found["memory"], found["errors"]) == (2.0, 3.0, {"count": 1})
    late = run._measured("sulq", {}, {}, time.monotonic() - 1, 1)
    assert set(late["failed"].values()) == {"no time was left"}


def test_a_worker_that_cannot_import_tells_the_error() -> None:
    with pytest.raises(subprocess.CalledProcessError) as failed:
        run._run(sys.executable, "no_such_peer", "cold", {}, limit=60)
    assert run._reason(failed.value) == "ModuleNotFoundError: No module named 'no_such_peer'"
