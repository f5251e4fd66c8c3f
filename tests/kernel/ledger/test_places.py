"""Where a ledger and its state may lie, and who may read them."""

from __future__ import annotations

import os

import pytest
from tests.kernel.ledger.publishing import ask, publish

from sulq.errors import Refused
from sulq.kernel.ledger.state_dir import write_private


def test_the_ledger_is_private_whatever_the_umask(path):
    before = os.umask(0)
    try:
        ask(publish(path), "q")
        files = {found.name: found.stat().st_mode & 0o777 for found in path.parent.glob("people*")}
    finally:
        os.umask(before)
    assert set(files.values()) == {0o600}
    assert "people.ledger-wal" in files


def test_a_state_directory_that_others_may_write_is_refused(path, state):
    state.mkdir()
    state.chmod(0o777)
    with pytest.raises(Refused, match=r"others may write.*chmod"):
        publish(path)
    assert not path.exists()


@pytest.mark.parametrize("variable", ["SULQ_STATE", "XDG_STATE_HOME"])
def test_a_relative_state_directory_is_refused(path, monkeypatch, variable):
    monkeypatch.delenv("SULQ_STATE")
    monkeypatch.setenv(variable, "state")
    with pytest.raises(Refused, match="relative"):
        publish(path)


@pytest.mark.parametrize("bad", ["a\0b", "x" * 300, "no/such/place"])
def test_a_path_that_cannot_be_is_refused(tmp_path, bad):
    with pytest.raises(Refused):
        publish(f"{tmp_path}/{bad}")
    with pytest.raises(Refused):
        publish(tmp_path)


def test_a_short_write_leaves_no_half_a_file(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:10]))
    with pytest.raises(Refused, match="cannot be written"):
        write_private(tmp_path / "key", bytes(32), replace=False)
    assert list(tmp_path.iterdir()) == []
