"""A ledger whose disk is full under a running server: one refusal, then on again."""

from __future__ import annotations

import os

import apsw
import pytest
from tests.faults.disk import Disk
from tests.server.conftest import served

from sulq import col, count
from sulq.kernel.ledger.stores import sqlite
from sulq.server.limits import Settings
from sulq.server.service import catalog
from sulq.wire import question_json

QUICK = {("full", 1), ("full", 4), ("sync", 2)}


def asking(number):
    return {"question": question_json(count(where=col("income") > number))}


@pytest.mark.parametrize(
    ("kind", "at"),
    [
        pytest.param(kind, at, marks=() if (kind, at) in QUICK else pytest.mark.slow)
        for kind in ("full", "sync")
        for at in range(1, 9)
    ],
)
def test_the_books_are_opened_again_when_there_is_room(tmp_path, state, monkeypatch, kind, at):
    disk = Disk(kind, at, sticky=True)
    monkeypatch.setattr(
        sqlite, "open_connection", lambda name: apsw.Connection(name, vfs=disk.name)
    )
    monkeypatch.setattr(catalog, "PAUSE", 0.0)
    with served(tmp_path, Settings(pacing=False)) as server:
        told = {0: server.post("ask", asking(0), key="question-0")}
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", disk.pwrite)
            patch.setattr(os, "fdatasync", disk.fdatasync)
            disk.armed = True
            replies = [server.post("ask", asking(n), key=f"question-{n}") for n in range(1, 6)]
            disk.armed = False
        refused = [reply for reply in replies if reply.status_code != 200]
        assert disk.fired and refused
        assert {reply.status_code for reply in refused} == {503}
        assert len({reply.content for reply in refused}) == 1  # whatever failed, and when
        assert refused[0].json()["credits_spent"] is None  # only the next opening tells
        for number in range(6):
            reply = server.post("ask", asking(number), key=f"question-{number}")
            assert reply.status_code == 200, reply.text
            told.setdefault(number, reply)
        for number, reply in enumerate(replies, 1):
            if reply.status_code == 200:
                assert reply.content == told[number].content
        assert server.database.left_for("analyst") == 40 - 6
        assert server.get("statement").json()["answered"] == 6
