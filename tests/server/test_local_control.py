"""Where a server is, told to the command line of its machine and to nobody else."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from tests.people import frame, publish

from sulq.errors import InvalidQuery, Refused
from sulq.server.auth.tokens import Access, Role
from sulq.server.local_control import announced, serving
from sulq.server.service.catalog import Tables


@pytest.fixture
def access(tmp_path):
    found = Access.open(tmp_path / "access.sqlite")
    yield found
    found.close()


def files() -> list[Path]:
    return sorted((Path(os.environ["SULQ_STATE"]) / "serving").glob("*"))


def test_told_while_it_runs_and_of_tables_that_come_later(tmp_path, access):
    with (
        publish(ledger=tmp_path / "a.ledger", name="first") as first,
        publish(frame(300, seed=9), ledger=tmp_path / "b.ledger", name="later") as later,
    ):
        tables = Tables({"one": first})
        with announced(tables, access, "http://127.0.0.1:9"):
            (path,) = files()
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            said = json.loads(path.read_text())
            assert said["tables"] == {"first": "one"} and said["process"] == os.getpid()
            assert access.caller(said["token"]).role == Role.OWNER
            tables.add("two", later)
            assert len(files()) == 2
        assert files() == []


def test_another_servers_file_is_not_removed(tmp_path, access):
    with publish(ledger=tmp_path / "a.ledger", name="first") as first:
        with announced(Tables({"one": first}), access, "http://127.0.0.1:9"):
            (path,) = files()
            path.write_text("of somebody else")
        assert path.read_text() == "of somebody else"


def test_it_is_found_by_the_ledgers_path_and_says_what_is_wrong(server, tmp_path):
    ledger = tmp_path / "people.ledger"
    (tmp_path / "same.ledger").symlink_to(ledger)
    assert serving(ledger) is None
    tables = server.app.state.service.tables
    with announced(tables, server.access, server.url):
        for path in (ledger, tmp_path / "same.ledger"):
            found = serving(path)
            assert found is not None and found.path("people") == "/v1/tables/people"
        with pytest.raises(Refused, match=r"does not serve 'others'.*or stop it"):
            found.path("others")
        with pytest.raises(InvalidQuery, match="got the name"):
            found.request("POST", "/v1/tables/people/grants", {"name": "a/b", "credits": 1})
        with pytest.raises(Refused, match="no table"):
            found.request("GET", "/v1/tables/none/grants")
    assert serving(ledger) is None
