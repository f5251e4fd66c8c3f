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
        "processor": "P", "cores": 2, "memory_gb": 8, "system": "S", "versions": {"duckdb": "2.0"}
    },
}  # fmt: skip


def part(*lines: dict[str, object]) -> dict[str, object]:
    return {**FACTS, "lines": list(lines)}


def asked(kind: str, rows: int, ours: float) -> dict[str, object]:
    return {"kind": kind, "rows": rows, "threads": 2, "ours": ours, "raw": 1.0, "clamped": 2.0}


def peer(name: str, cold: float, error: float) -> dict[str, object]:
    one = {"rmse": error, "draws": 9}
    return {
        "peer": name, "rows": 1_000, "cold": cold, "memory": 90.0, "versions": {"it": "1"},
        "single": {"count": one, "mean": one, "groups": one},
        "many": {"asked": 200, "seconds": cold / 10, "rmse": error},
    }  # fmt: skip


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


@pytest.mark.parametrize(
    ("cold", "said"),
    [(1.0, "cold: we lead; next other with 2.0"), (2.1, "cold: level"), (8.0, "**other leads**")],
)
def test_the_page_says_where_we_lead_and_where_not(cold: float, said: str) -> None:
    text = page.document({"peers": part(peer("sulq", cold, 1.0), peer("other", 2.0, 5.0))})
    assert said in text


def test_a_peer_or_an_engine_that_is_not_there_is_named_with_the_reason() -> None:
    gone = {"peer": "other", "rows": 1_000, "missing": "no wheel"}
    text = page.document(
        {"peers": part(peer("sulq", 1, 1), gone), "spark": part({"missing": "no Java"})}
    )
    assert "- other: no wheel" in text
    assert "Not measured: no Java." in text


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
