"""One PostgreSQL for all engine tests of a worker, or the reason why there is none."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest
from tests.postgres_server import MISSING, NO_DRIVER, PostgresServer, programs, running


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    if programs() is None:
        pytest.skip(MISSING)
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip(NO_DRIVER)
    with running() as server:
        yield server
