"""The pages are made of what is stored, and of nothing else. No times are checked."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.__main__ import FURTHER, PARTS, parsed
from benchmarks.results import FOLDER, load

from benchmarks import page, profiles_page

DOCS = Path(__file__).parents[2] / "docs"
FACTS = {
    "date": "2026-01-01 00:00 UTC",
    "seconds": 60,
    "load_before": 0.1,
    "load_after": 2.0,
    "full": False,
    "machine": {
        "processor": "P",
        "cores": 2,
        "memory_gb": 8,
        "system": "S",
        "versions": {"duckdb": "2.0"},
    },
}


def part(*lines: dict[str, object]) -> dict[str, object]:
    return {**FACTS, "lines": list(lines)}


def asked(kind: str, rows: int, ours: float) -> dict[str, object]:
    return {"kind": kind, "rows": rows, "threads": 2, "ours": ours, "raw": 1.0, "clamped": 2.0}


def peer(name: str, cold: float, error: float, asked: int = 200) -> dict[str, object]:
    one = {"rmse": error, "error": error / 10, "draws": 50}
    return {
        "peer": name,
        "rows": 1_000,
        "cold": cold,
        "memory": 90.0,
        "versions": {"it": "1"},
        "errors": {"count": one, "mean": one, "groups": one, "many": one},
        "failed": {},
        "many": {"asked": asked, "warm": cold / 10, "seconds": cold * 20},
    }


def test_the_committed_pages_are_those_of_the_committed_results() -> None:
    results = load()
    assert (DOCS / "benchmarks.md").read_text("utf-8") == page.document(results)
    assert (DOCS / "profiles.md").read_text("utf-8") == profiles_page.document(results)


def test_what_is_above_the_goal_is_bold_and_has_a_reason() -> None:
    results = {"duckdb": part(asked("filtered count", 10, 1.2), asked("filtered mean", 10, 1.5))}
    text = page.document(results)
    assert "| filtered count | 10 | 2 | 1.2 s | 1.20 | 0.60 |" in text
    assert "| filtered mean | 10 | 2 | 1.5 s | **1.50** | 0.75 |" in text
    assert f"| DuckDB | filtered mean | 1.50 | {page.REASONS['filtered mean']} |" in text
    assert "| DuckDB | filtered count" not in text


def test_flatness_is_the_widest_spread_of_one_kind() -> None:
    lines = [asked("filtered count", rows, ours) for rows, ours in ((10, 1.0), (100, 1.25))]
    assert "over rows by a factor of at most 1.25" in page.document({"duckdb": part(*lines)})


def test_opening_and_what_was_not_asked_are_told() -> None:
    lines = [
        {"kind": "opening", "rows": 1_000, "ours": 2.5},
        asked("filtered count", 1_000, 1.0),
        {"kind": "unasked", "rows": 10_000, "names": ["clipped sum", "filtered mean"]},
    ]
    text = page.document({"spark": part(*lines)})
    assert "Opening a table reads every declared column once: 2.5 s for 1,000 rows." in text
    assert (
        "Not asked at 10,000 rows, which would take too long: clipped sum, filtered mean." in text
    )


@pytest.mark.parametrize(
    ("cold", "said"),
    [
        (1.0, "cold: we lead; next other with 2.0 times ours."),
        (2.05, "cold: level with other."),
        (8.0, "cold: **we do not lead**; ours is more than that of other (4.0 times): publishing"),
    ],
)
def test_the_page_says_where_we_lead_and_where_not(cold: float, said: str) -> None:
    text = page.document({"peers": part(peer("sulq", cold, 1.0), peer("other", 2.0, 5.0))})
    assert said in text


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (0.6, "one mean: we lead; next other with 1.7 times ours."),
        (
            1.2,
            "one mean: level with other, as far as the draws tell.",
        ),  # 1.2 +- 0.12 and 1.0 +- 0.1 may be one law
        (2.0, "one mean: **we do not lead**; ours is more than that of other (2.0 times)"),
    ],
)
def test_errors_differ_only_as_far_as_the_draws_tell(error: float, said: str) -> None:
    text = page.document({"peers": part(peer("sulq", 1.0, error), peer("other", 9.0, 1.0))})
    assert said in text


def test_the_best_of_a_column_is_bold_and_so_is_what_cannot_be_told_from_it() -> None:
    ours, level, far = peer("sulq", 3.0, 1.0), peer("level", 1.0, 1.2), peer("far", 2.0, 9.0, 7)
    text = page.document({"peers": part(ours, level, far)})
    assert "| sulq | 3.0 s | **90 MB** | 300 ms | 60.0 s | **1.00 ± 0.10** |" in text
    assert "| level | **1.0 s** | **90 MB** | **100 ms** | **20.0 s** | **1.20 ± 0.12** |" in text
    assert "| far | 2.0 s | **90 MB** | 200 ms | ~ 40.0 s | 9.00 ± 0.90 |" in text
    assert "We lead, or share the lead, in 5 of 8 columns:" in text


def test_a_task_that_was_stopped_leaves_a_gap_and_a_reason() -> None:
    slow = peer("slow", 1.0, 1.0)
    del slow["errors"]
    slow["failed"] = {"errors": "not done in 150 s"}
    text = page.document({"peers": part(peer("sulq", 2.0, 1.0), slow)})
    assert "- slow, errors: not done in 150 s" in text
    assert "| slow | **1.0 s** | **90 MB** | **100 ms** | **20.0 s** | - | - | - | - |" in text


def test_a_peer_or_an_engine_that_is_not_there_is_named_with_the_reason() -> None:
    gone = {"peer": "other", "rows": 1_000, "missing": "no wheel"}
    text = page.document(
        {"peers": part(peer("sulq", 1, 1), gone), "spark": part({"missing": "no Java"})}
    )
    assert "- other: no wheel" in text
    assert "Not measured: no Java." in text


def test_the_stream_shows_every_k_with_the_goal() -> None:
    times = {"how": "SQL", "question": "mean", "rows": 9, "goal": 0.005, "engine": 0.001}
    lines = [
        {**times, "past": past, "ours": ours, "search": 0.002, "worst": 0.009}
        for past, ours in ((10, 0.004), (1_000, 0.006))
    ]
    text = page.document({"stream": part(*lines, {"past": 10, "rows": 9, "first": 0.1})})
    assert "| question | asked in | k = 10 | k = 1,000 |" in text
    assert "| mean | SQL | 4 ms | **6 ms** | 2 ms | 9 ms | 1 ms |" in text
    assert "Goal: at most 5 ms" in text and "100 ms at 10." in text


def test_a_busy_machine_is_told() -> None:
    quiet, busy = part(), {**part(), "load_before": 5.0}
    assert "other work ran beside it" not in page.document({"duckdb": quiet})
    assert "other work ran beside it" in page.document({"duckdb": busy})


def test_a_trial_never_replaces_results(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(["--small"])
    assert "--into" in capsys.readouterr().err
    assert parsed(["duckdb"]).into == FOLDER
    assert not set(PARTS) & set(FURTHER)


def test_a_vault_is_held_against_its_goals() -> None:
    quick = {"kind": "filtered count", "rows": 10, "ours": 0.5, "raw": 1.0, "direct": 1.1}
    slow = {"kind": "whole ask of a count", "rows": 10, "ours": 1.5, "raw": 1.0, "goal": 1.2}
    made = {
        "kind": "making",
        "rows": 10,
        "making": 2.0,
        "opening": 0.1,
        "bytes": 3e6,
        "source": 2e6,
    }
    text = page.document({"vault": part(made, quick | {"goal": 0.9}, slow)})
    assert "| filtered count | 10 | 500 ms | 0.9 | 0.50 | 1.10 |" in text
    assert "| whole ask of a count | 10 | 1.5 s | 1.2 | **1.50** |  |" in text
    assert "| 10 | 2.0 s | 100 ms | 3 MB | 1.5 |" in text
