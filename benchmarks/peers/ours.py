"""This package: every answer charged to a ledger on disk, synced."""

import os
import tempfile
from pathlib import Path

from sulq import Category, Database, Number, Promise, Schema, col, count, histogram, mean

SCHEMA = Schema(
    Number("age", 0, 120),
    Number("income", 0, 500_000),
    Category("region", [f"region {i}" for i in range(50)]),
)


class Peer:
    def __init__(self, path):
        self.path, self.home, self.number = path, Path(tempfile.mkdtemp()), 0
        self.kept = {}

    def _open(self, epsilon, delta, queries=None):
        self.number += 1
        os.environ["SULQ_STATE"] = str(self.home / f"state{self.number}")
        promise = Promise(epsilon, delta, queries, neighbours="add-remove")
        return Database.open(
            self.path, SCHEMA, promise, self.home / f"ledger{self.number}", publish=True
        )

    def _whole(self, question, epsilon):
        """Asked with the whole promise; a promise without delta is the stronger one."""
        with self._open(epsilon, 0) as db:
            return db.ask(question, credits=db.remaining)

    def count(self, at, epsilon, delta):
        return self._whole(count(where=col("age") >= at), epsilon).value

    def mean(self, at, epsilon, delta):
        return self._whole(mean("income", where=col("age") >= at), epsilon).value

    def groups(self, at, epsilon, delta):
        return self._whole(histogram("region", where=col("age") >= at), epsilon).value

    def many(self, ats, epsilon, delta):
        with self._open(epsilon, delta, len(ats)) as db:
            for at in ats:
                yield db.ask(count(where=col("age") >= at)).value
