"""The stated figures: a search among many answers, and what a dashboard saves."""

from __future__ import annotations

import statistics

import pytest
from benchmarks.derivation import dashboard, dashboard_credits, search_times


@pytest.mark.slow
def test_a_search_among_ten_thousand_answers_takes_less_than_five_milliseconds() -> None:
    _, times = search_times(10_000, 60)
    assert statistics.median(times) < 5


@pytest.mark.slow
def test_a_dashboard_costs_half() -> None:
    """228 credits one by one, 112 with the answer store: prices do not depend on draws."""
    apart, together, free = dashboard_credits()
    assert (len(dashboard()), apart) == (200, 228)
    assert together < 115 and free >= 60
