"""One PostgreSQL for all engine tests of a worker, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.postgres_server import MISSING, PostgresServer, programs, running


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    if programs() is None:
        pytest.skip(MISSING)
    with running() as server:
        yield server
