from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kernel.ledger.publishing import publish
from tests.kernel.ledger.replicas import Replica
from tests.kernel.ledger.stores import Place, new_place
from tests.postgres_server import MISSING, NO_DRIVER, PostgresServer, programs, running

from sulq.kernel.ledger.ledger import Ledger


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    pytest.importorskip("psycopg", reason=NO_DRIVER)
    if programs() is None:
        pytest.skip(MISSING)
    with running() as server:
        yield server


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people.ledger"


@pytest.fixture
def address(postgres: PostgresServer) -> str:
    """Of a shared ledger that is not there yet."""
    return new_place(postgres)


@pytest.fixture(params=["file", "shared"])
def place(request: pytest.FixtureRequest, path: Path) -> Place:
    """The same contract, whatever the store."""
    if request.param == "file":
        return path
    found: str = request.getfixturevalue("address")
    return found


@pytest.fixture(params=["file", "memory", "shared"])
def journal(request: pytest.FixtureRequest, path: Path) -> Iterator[Ledger]:
    """The same rules hold in a file, in memory and on a server."""
    places = {"file": path, "memory": ":memory:"}
    opened = publish(places.get(request.param) or request.getfixturevalue("address"))
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "state"
    monkeypatch.setenv("SULQ_STATE", str(directory))
    return directory


@pytest.fixture
def replicas(address: str, tmp_path: Path) -> tuple[Replica, Replica]:
    """Two of them; the first made the ledger."""
    one, two = (Replica(address, tmp_path / name) for name in ("one", "two"))
    one.open().close()
    return one, two.join(one)


@pytest.fixture
def both(replicas: tuple[Replica, Replica]) -> Iterator[tuple[Ledger, Ledger]]:
    one, two = (replica.open() for replica in replicas)
    yield one, two
    one.close()
    two.close()
