"""To internet scale, by simulation from what was measured: `python -m benchmarks simulation`.

Nothing here is a measurement of a large installation. Costs of one task, one question and one
charge are taken from the parts `spark`, `duckdb` and `replicas`; what is assumed beyond them is in
ASSUMED, and shown on the page. Two models:

- a query over 10^12 rows on Spark: tasks are started by one driver, one after the other, and run on
  so many cores, each taking its rows' time, drawn out at random, a few much longer;
- 10^6 analysts on ledgers in shards: questions arrive at random, tables are asked unevenly, a
  table's ledger commits what waits in one turn, and the next turn begins when it is done.
"""

from __future__ import annotations

import heapq
import math
import random
from pathlib import Path
from typing import Any

from benchmarks.results import load

ROWS = 10**12
PARTITION = 10**7
CORES = (100, 1_000, 10_000, 100_000)
ANALYSTS = 10**6
ASSUMED = {
    "rows of a partition": PARTITION,
    "task time, log-normal spread": 0.15,
    "share of tasks that take three times as long": 0.01,
    "questions of an analyst a day": 20,
    "the busiest second over the mean one": 5.0,
    "tables": 10_000,
    "popularity of the table of rank k": "1 / k",
    "most charges in one turn of a ledger": 256,
    "hours of a day in which analysts work": 10,
}
Line = dict[str, Any]


def measure(folder: Path, full: bool, results: Path) -> list[Line]:
    known = load(results)
    lines: list[Line] = [{"kind": "assumed", **ASSUMED}]
    costs = spark_costs(known)
    if costs is not None:
        lines.append({"kind": "spark costs", **costs})
        lines += [{"kind": "spark", **_query(costs, cores)} for cores in CORES]
    ledger = ledger_costs(known)
    if ledger is not None and costs is not None:
        lines.append({"kind": "ledger costs", **ledger})
        lines += _ledgers(ledger)
        lines.append({"kind": "demand", **_demand(ledger, costs)})
    return lines


# --- one query over 10^12 rows ---


def spark_costs(known: dict[str, Any]) -> dict[str, float] | None:
    """Seconds of a core for a row (clipped sum, ours) and for a file, of the driver for a task."""
    lines = [one for one in known.get("spark", {}).get("lines", []) if "missing" not in one]
    sums = [one for one in lines if one.get("kind") == "clipped sum"]
    parts = [one for one in lines if one.get("kind") == "partitions"]
    empty = [one for one in lines if one.get("kind") == "empty tasks"]
    if len(parts) < 2 or len(empty) < 2 or not sums:
        return None
    largest = max(sums, key=lambda one: one["rows"])
    smallest = min(sums, key=lambda one: one["rows"])
    if largest is smallest:
        row = largest["ours"] / largest["rows"]
    else:
        row = (largest["ours"] - smallest["ours"]) / (largest["rows"] - smallest["rows"])
    task, cores = max(_slope(empty), 1e-5), largest["threads"]
    return {
        "row": max(row, 1e-12) * cores,
        "file": max(_slope(parts) - task, 0.0) * cores,
        "task": task,
        "start": min(one["ours"] for one in sums),
        "ratio": largest["ours"] / largest["raw"],
    }


def _slope(lines: list[Line]) -> float:
    """Seconds for one more task."""
    few, most = (pick(lines, key=lambda one: one["tasks"]) for pick in (min, max))
    return float((most["ours"] - few["ours"]) / (most["tasks"] - few["tasks"]))


def _query(costs: dict[str, float], cores: int) -> Line:
    """List scheduling: a core that is free takes the next task that the driver has started."""
    chance = random.Random(1)
    tasks = ROWS // PARTITION
    mean = costs["row"] * PARTITION + costs["file"]
    free = [0.0] * cores
    end = begun = busy = 0.0
    for _ in range(tasks):
        begun += costs["task"]
        takes = mean * math.exp(chance.gauss(0, 0.15)) * (3 if chance.random() < 0.01 else 1)
        done = max(heapq.heappop(free), begun) + takes
        heapq.heappush(free, done)
        end, busy = max(end, done), busy + takes
    seconds = end + costs["start"]
    driver, scan = tasks * costs["task"], busy / cores
    last = seconds - max(driver, scan)  # after the mean core is done, or the last task begun
    return {
        "cores": cores,
        "tasks": tasks,
        "seconds": seconds,
        "busy": busy / (cores * seconds),
        "driver": driver,
        "bottleneck": max(
            (scan, "cores that read rows"),
            (driver, "the driver that starts tasks"),
            (last, "the slowest tasks"),
        )[1],
    }


# --- 10^6 analysts ---


def ledger_costs(known: dict[str, Any]) -> dict[str, float] | None:
    """Of a shared ledger: seconds of a turn with one charge, of a charge in a full turn; CPU."""
    lines = known.get("replicas", {}).get("lines", [])
    alone = next((one for one in lines if one.get("kind") == "ledger alone"), None)
    served = [one for one in lines if one.get("kind") == "replicas"]
    if alone is None or not served:
        return None
    turn, many = 1 / alone["postgres, 1"], 1 / alone["postgres, 64"]
    return {
        "turn": turn,
        "charge": max(many - turn / 64, 1e-6),
        "cpu": min(one["cpu"] for one in served),
        "bytes": alone.get("bytes", 1_000.0),
    }


def _rate() -> float:
    """Questions a second of all analysts in the busiest second."""
    day = ANALYSTS * float(str(ASSUMED["questions of an analyst a day"]))
    hours = float(str(ASSUMED["hours of a day in which analysts work"]))
    return day / (3600 * hours) * float(str(ASSUMED["the busiest second over the mean one"]))


def _ledgers(costs: dict[str, float]) -> list[Line]:
    """The table that is asked most, and a middle one: what a charge waits for its turn."""
    tables = int(str(ASSUMED["tables"]))
    harmonic = sum(1 / rank for rank in range(1, tables + 1))
    lines = []
    for rank in (1, 2, 5, 10, 100, 1_000):
        offered = _rate() / harmonic / rank
        waits, lost = _turns(offered, costs)
        lines.append(
            {
                "kind": "ledger",
                "rank": rank,
                "offered": offered,
                "p50": waits[0],
                "p99": waits[1],
                "keeps_up": not lost,
            }
        )
    return lines


def _turns(
    offered: float, costs: dict[str, float], seconds: float = 60.0
) -> tuple[list[float], bool]:
    """A minute of Poisson arrivals served in turns of at most 256 charges."""
    chance, now, clock = random.Random(2), 0.0, 0.0
    arrivals = []
    while now < seconds and len(arrivals) < 400_000:
        now += chance.expovariate(offered)
        arrivals.append(now)
    waits: list[float] = []
    at, most = 0, int(str(ASSUMED["most charges in one turn of a ledger"]))
    while at < len(arrivals):
        clock = max(clock, arrivals[at])
        end = at
        while end < len(arrivals) and end - at < most and arrivals[end] <= clock:
            end += 1
        clock += costs["turn"] + (end - at - 1) * costs["charge"]
        waits += [clock - arrival for arrival in arrivals[at:end]]
        at = end
    late = clock > arrivals[-1] + 1.0
    waits.sort()
    return [waits[len(waits) // 2], waits[len(waits) * 99 // 100]], late


def _demand(ledger: dict[str, float], spark: dict[str, float]) -> Line:
    """What the busiest second needs of everything, in machines' terms; and the promise."""
    rate = _rate()
    tables = int(str(ASSUMED["tables"]))
    scan = spark["row"] * ROWS / tables  # all rows together are 10^12
    most = int(str(ASSUMED["most charges in one turn of a ledger"]))
    hours = float(str(ASSUMED["hours of a day in which analysts work"]))
    busiest = float(str(ASSUMED["the busiest second over the mean one"]))
    day = rate / busiest * 3600 * hours
    first = 1 / sum(1 / rank for rank in range(1, tables + 1))  # the share of the table asked most
    year = 365 * day * first
    needs = {
        "cores for HTTP, prices, noise": rate * ledger["cpu"],
        "cores for reading rows, every question a pass": rate * scan,
        "cores for reading rows, 99 of 100 answered from stored answers": rate * scan / 100,
    }
    return {
        "rate": rate,
        "scan": scan,
        "gigabytes": day * ledger["bytes"] / 1e9,
        "capacity": most / (ledger["turn"] + (most - 1) * ledger["charge"]),
        "offered": rate * first,
        "year": year,
        "error": deviation(1.0, 1e-6) * math.sqrt(year),
        "rows": ROWS / tables,
        **needs,
    }


def deviation(epsilon: float, delta: float) -> float:
    """The Gaussian noise of one count at (epsilon, delta): that of n together is sqrt(n) times."""

    def spent(sigma: float) -> float:
        at = 1 / (2 * sigma)
        above, below = (math.erfc((epsilon * sigma + s * at) / math.sqrt(2)) / 2 for s in (-1, 1))
        return above - math.exp(epsilon) * below

    low, high = 1e-3, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if spent(middle) <= delta else (middle, high)
    return high
