"""What a learner makes of noise is judged on the same noise each time."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _same_noise(settled: None) -> None:
    """Noise of its true law and size: what is learned hangs on the code, not on luck."""
