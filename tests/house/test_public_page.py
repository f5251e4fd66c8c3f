"""The public page: what `from sulq import ...` offers, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import sulq

NAMES = """
    Answer BudgetSpent Category Database EngineFailed Flag InvalidQuery Number Oracle Promise Quote
    Refused Schema SulqError SumQuery UnsafeExactly cdf col connect correlation count covariance
    distribution histogram lit mean outer parse_sql quantiles total variance when
"""
PAGE = NAMES.split()


def test_the_page_is_what_it_was() -> None:
    assert sulq.__all__ == PAGE
    assert len(PAGE) <= 32
    assert dir(sulq) == sorted(PAGE)


@pytest.mark.parametrize("name", PAGE)
def test_every_name_is_there_and_explained_on_the_page(name: str) -> None:
    assert getattr(sulq, name) is not None
    assert name in (sulq.__doc__ or "")


def test_unknown_names_are_unknown() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        sulq.nonsense  # noqa: B018
    with pytest.raises(ImportError):
        from sulq import nonsense  # noqa: F401


@pytest.mark.parametrize(
    ("line", "heavy"),
    [
        ("import sulq", ["duckdb", "numpy", "fastapi", "uvicorn", "httpx", "sqlglot", "pandas"]),
        (
            "from sulq import *",
            ["httpx", "pydantic", "rich", "sqlglot", "sulq.kernel.engines.blocks"],
        ),
    ],
)
def test_what_is_heavy_is_loaded_when_it_is_needed(line: str, heavy: list[str]) -> None:
    code = f"{line}\nimport sys; print([m for m in {heavy} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_no_module_takes_a_name_of_the_page() -> None:
    """Importing it would put the module where the name is."""
    modules = {path.stem for path in Path(sulq.__file__ or "").parent.iterdir()}
    assert not modules & set(PAGE)
