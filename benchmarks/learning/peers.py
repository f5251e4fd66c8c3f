"""diffprivlib, in a process of its own interpreter."""

from __future__ import annotations

import json
import math
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.learning.jobs import Job
from benchmarks.learning.tasks import Problem
from sulq import Category, Number

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-peers" / "diffprivlib" / "bin" / "python"
WORKER = Path(__file__).with_name("peer_worker.py")
VERSION = "diffprivlib 0.6.6, scikit-learn 1.5.2, worker 2"
SECONDS = 10
"""Of CPU. A fit that takes longer is given up; not tried again at this epsilon or above."""


def public_reach(given: Problem) -> tuple[Any, float]:
    """The public centre of the encoded rows, and how far from it a row can be.

    Numbers are centred at the middle of their bounds; a category is one coordinate at 1.
    """
    centre: list[float] = []
    square = 0.0
    for name in given.features:
        column = given.table.column(name)
        if isinstance(column, Number):
            centre.append(0.5)
            square += 0.25
        else:
            assert column.values is not None
            centre += [0.0] * len(column.values)
            square += 1.0
    return np.array(centre), square**0.5


class Peer:
    """The process, started at the first fit; the arrays of a problem are handed over as a file."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.folder = tempfile.TemporaryDirectory()
        self.given: Problem | None = None
        self.slow: dict[tuple[Any, ...], float] = {}

    def start(self) -> subprocess.Popen[str]:
        if self.process is None or self.process.poll() is not None:
            environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
            environment.pop("PYTHONPATH", None)
            self.process = subprocess.Popen(
                [str(PYTHON), str(WORKER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
            )
        return self.process

    def path(self, given: Problem, repeat: int) -> Path:
        path = Path(self.folder.name) / f"{given.task.name}-{repeat}.npz"
        if given is not self.given:
            for old in Path(self.folder.name).glob("*.npz"):
                old.unlink()
            supervised = given.task.label is not None
            centre, norm = public_reach(given)
            np.savez(
                path,
                x=given.x,
                y=given.codes(given.train) if supervised else np.zeros(0),
                x_test=given.encoded_test() if supervised else np.zeros(0),
                centre=centre,
                norm=norm,
            )
            self.given = given
        return path

    def learn(self, given: Problem, job: Job) -> Any:
        """Codes, numbers, centres or components; raises what the peer raised, as text."""
        kind = (job.task, job.model, job.setting)
        if float(job.eps) >= self.slow.get(kind, math.inf):
            raise TimeoutError(f"no fit within {SECONDS} s")
        label = given.label if given.task.label else None
        told = {
            "path": str(self.path(given, job.repeat)),
            "model": job.model,
            "setting": dict(job.setting),
            "eps": float(job.eps),
            "size": given.task.size,
            "classes": len(label.values or ()) if isinstance(label, Category) else 0,
            "ends": [float(end) for end in label.range] if isinstance(label, Number) else None,
            "seconds": SECONDS,
        }
        process = self.start()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(told) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise RuntimeError("the peer's process ended")
        reply = json.loads(line)
        if "error" in reply:
            if reply["error"].startswith("TimeoutError"):
                self.slow[kind] = float(job.eps)
                raise TimeoutError(f"no fit within {SECONDS} s")
            raise RuntimeError(reply["error"])
        return reply["result"]
