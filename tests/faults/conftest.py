from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kernel.ledger.publishing import publish

from sulq.kernel.ledger.ledger import Ledger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people.ledger"


@pytest.fixture(params=["file", "memory"])
def journal(request: pytest.FixtureRequest, path: Path) -> Iterator[Ledger]:
    """The same rules hold in a file and in memory."""
    opened = publish(path if request.param == "file" else ":memory:")
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "state"
    monkeypatch.setenv("SULQ_STATE", str(directory))
    return directory
