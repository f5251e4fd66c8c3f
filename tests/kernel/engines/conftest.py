"""One PostgreSQL and one Spark for all engine tests of a worker, or why there is none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.postgres_server import MISSING, PostgresServer, programs, running
from tests.spark_session import spark_session, why_not


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    if programs() is None:
        pytest.skip(MISSING)
    with running() as server:
        yield server


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    session = spark_session(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()
