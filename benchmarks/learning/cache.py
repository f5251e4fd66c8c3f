"""Results on disk, a JSON line each: a stopped run loses nothing, a rerun continues."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from benchmarks.learning.jobs import Job

HOME = Path(__file__).parents[2] / ".bench-learning"


@dataclass(frozen=True, slots=True)
class Record:
    """What came of a job: a score, or why there is none. `version` is of the code and table."""

    job: Job
    version: str
    score: float | None
    seconds: float = 0.0
    refused: bool = False
    error: str = ""

    def line(self) -> str:
        rest = {name: getattr(self, name) for name in ("version", "score", "seconds", "refused")}
        return json.dumps({**self.job.to_json(), **rest, "error": self.error})

    @classmethod
    def of(cls, line: str) -> Record:
        data = json.loads(line)
        rest = {name: data[name] for name in ("version", "score", "seconds", "refused", "error")}
        return cls(Job.from_json(data), **rest)


class Cache:
    """An append-only file; of two lines for one job and version the later holds."""

    def __init__(self, folder: Path = HOME) -> None:
        folder.mkdir(exist_ok=True)
        (folder / ".gitignore").write_text("*\n")
        self.path = folder / "results.jsonl"
        self.records: dict[tuple[Job, str], Record] = {}
        for line in self.path.read_text("utf-8").splitlines() if self.path.exists() else []:
            try:
                record = Record.of(line)
            except (ValueError, KeyError):
                continue  # the last line of a run that was cut off
            self.records[record.job, record.version] = record

    def has(self, job: Job, version: str) -> bool:
        """A failed fit is tried again, unless it took too long."""
        found = self.records.get((job, version))
        return found is not None and (not found.error or found.error.startswith("TimeoutError"))

    def add(self, record: Record) -> None:
        self.records[record.job, record.version] = record
        with self.path.open("a", encoding="utf-8") as file:
            if file.tell() and not self._ends_with_newline():
                file.write("\n")
            file.write(record.line() + "\n")

    def _ends_with_newline(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(-1, 2)
            return file.read(1) == b"\n"
