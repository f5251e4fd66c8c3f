"""Tumult Analytics: pure epsilon for one question, zCDP for many."""

import math
import os
import sys

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

from pyspark.sql import SparkSession
from tmlt.analytics import AddOneRow, KeySet, PureDPBudget, QueryBuilder, RhoZCDPBudget, Session

REGIONS = [f"region {i}" for i in range(50)]


def rho_of(epsilon, delta):
    """The best conversion (Canonne, Kamath, Steinke 2020): for each rho the best order."""

    def log_delta(rho):
        def at(order):
            return (
                (order - 1) * (order * rho - epsilon)
                + (order - 1) * math.log(1 - 1 / order)
                - math.log(order)
            )

        return min(at(1 + step / 50) for step in range(1, 20_000))

    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if log_delta(middle) <= math.log(delta) else (low, middle)
    return low


class Peer:
    def __init__(self, path):
        spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.memory", "4g")
            .config("spark.sql.shuffle.partitions", "2")
            .getOrCreate()
        )
        self.data = spark.read.parquet(path).cache()
        self.keys = KeySet.from_dict({"region": REGIONS})

    def _session(self, budget):
        return Session.from_dataframe(budget, "people", self.data, protected_change=AddOneRow())

    def _asked(self, question, epsilon):
        budget = PureDPBudget(epsilon)
        return self._session(budget).evaluate(question, budget).collect()

    def _rows(self, at):
        return QueryBuilder("people").filter(f"age >= {at}")

    def count(self, at, epsilon, delta):
        return self._asked(self._rows(at).count(name="n"), epsilon)[0]["n"]

    def mean(self, at, epsilon, delta):
        question = self._rows(at).average("income", 0.0, 500_000.0, name="m")
        return self._asked(question, epsilon)[0]["m"]

    def groups(self, at, epsilon, delta):
        found = self._asked(self._rows(at).groupby(self.keys).count(name="n"), epsilon)
        counts = {row["region"]: row["n"] for row in found}
        return [counts[name] for name in REGIONS]

    def many(self, ats, epsilon, delta):
        rho = rho_of(epsilon, delta)
        session = self._session(RhoZCDPBudget(rho))
        each = RhoZCDPBudget(rho / len(ats) * (1 - 1e-9))
        for at in ats:
            yield session.evaluate(self._rows(at).count(name="n"), each).collect()[0]["n"]
