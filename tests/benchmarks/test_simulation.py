"""The simulation goes by measured costs, and names what gives way first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks.results import save

from benchmarks import page, simulation

FACTS = {"date": "-", "seconds": 1, "load_before": 0.0, "load_after": 0.0, "full": False}


def measured(row: float = 50e-9, task: float = 1e-3, file: float = 4e-3) -> dict[str, Any]:
    """Results in which, on two cores, rows, tasks and files cost so much."""
    sums = [
        {"kind": "clipped sum", "rows": n, "threads": 2, "ours": 0.1 + n * row / 2, "raw": 1.0}
        for n in (10**6, 10**7)
    ]
    empty = [{"kind": "empty tasks", "tasks": n, "ours": 0.1 + n * task} for n in (64, 1024)]
    parts = [
        {"kind": "partitions", "tasks": n, "ours": 0.4 + n * (task + file / 2)} for n in (2, 128)
    ]
    alone = {"kind": "ledger alone", "sqlite, 1": 1.0, "sqlite, 64": 1.0}
    alone |= {"postgres, 1": 400.0, "postgres, 64": 3000.0}
    served = {"kind": "replicas", "cpu": 0.015}
    return {"spark": {"lines": sums + empty + parts}, "replicas": {"lines": [alone, served]}}


def test_costs_are_the_slopes_of_what_was_measured() -> None:
    costs = simulation.spark_costs(measured())
    assert costs is not None
    assert costs["row"] == pytest.approx(50e-9)
    assert costs["task"] == pytest.approx(1e-3)
    assert costs["file"] == pytest.approx(4e-3)
    assert simulation.spark_costs({}) is None


@pytest.mark.parametrize(
    ("task", "cores", "first"),
    [
        (1e-6, 1_000, "cores that read rows"),  # 50 ns x 10^12 rows / 1,000 cores: 50 s
        (2e-3, 1_000, "the driver that starts tasks"),  # 10^5 tasks x 2 ms: 200 s
        (
            1e-6,
            100_000,
            "the slowest tasks",
        ),  # a task a core, one of 100 three times as long
    ],
)
def test_the_first_bottleneck_of_a_query(task: float, cores: int, first: str) -> None:
    costs = simulation.spark_costs(measured(task=task))
    assert costs is not None
    assert simulation._query(costs, cores)["bottleneck"] == first


def test_gaussian_noise_of_a_count() -> None:
    """Balle and Wang 2018, at (1, 1e-6)."""
    assert simulation.deviation(1.0, 1e-6) == pytest.approx(4.2247, abs=1e-4)


def test_the_page_names_the_bottlenecks_with_their_figures(tmp_path: Path) -> None:
    for part, one in measured().items():
        save(tmp_path, part, one["lines"], FACTS)
    lines = simulation.measure(tmp_path, False, results=tmp_path)
    text = page._simulation({"lines": lines})
    assert "a row costs a core 50.0 ns" in text
    assert "a further file a core 4 ms, a further task the driver 1 ms" in text
    assert (
        "mean 5.0 s of a core for a question, 13,900 cores in the busiest second against 42" in text
    )
    assert "**The first bottleneck is reading rows, every question a pass**" in text
    assert "of which 284 are asked for; it is full at" in text
    assert "a count has a standard error of 115,000, 0.12 % of a table of 100,000,000 rows" in text
    slow = [line if line["kind"] != "ledger" else line | {"keeps_up": False} for line in lines]
    assert "it cannot keep up" in page._simulation({"lines": slow})
