"""What every test gets: its own state directory, plain output, settled random examples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from sulq.noise import samplers

FAULTS = Path(__file__).parent / "faults"

# The gate draws the same examples each time: when it turns red, the change did it, not the draw.
# `make test-all` looks for new ones, and more of them. Machines are shared: no deadlines, and no
# verdict about how long the drawing of an example took.
SLOW = [HealthCheck.too_slow]
settings.register_profile("gate", derandomize=True, deadline=None, suppress_health_check=SLOW)
settings.register_profile(
    "explore", max_examples=500, deadline=None, print_blob=True, suppress_health_check=SLOW
)
settings.load_profile("gate")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if FAULTS in item.path.parents:
            item.add_marker(pytest.mark.faults)


@pytest.fixture(autouse=True)
def state_directory(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Keys, anchors and data versions of one test; never those of the person who runs it."""
    directory = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("SULQ_STATE", str(directory))
    monkeypatch.setenv("NO_COLOR", "1")
    yield directory


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every draw is 0: for tests that are not about noise, but whose verdict could hang on it."""
    monkeypatch.setattr(samplers, "draw", lambda law, count: [0] * count)
    monkeypatch.setattr(samplers, "draw_one_sided", lambda law, count: [0] * count)
