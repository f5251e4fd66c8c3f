"""A table whose budget is spent: no new question, ever; what was answered stays readable."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from sulq import Database, Flag, Promise, Schema
from sulq.server.access import Access, Caller, Role
from sulq.server.app import Settings, create_app
from sulq.server.console.ask_page import ask_view, quoted_view
from sulq.server.console.pages import rendered
from sulq.server.console.shell import head_view
from sulq.server.console.table_page import table_view
from sulq.server.console.wishes import Wish
from sulq.server.tables import Tables

OWNER = Caller("office", Role.OWNER, None, "t")


def test_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SULQ_STATE", str(tmp_path / "state"))
    rows = pd.DataFrame({"a": [True, False] * 50, "b": [True, True, False, False] * 25})
    access = Access.open(tmp_path / "access.sqlite")
    schema, promise = Schema(Flag("a"), Flag("b")), Promise(1, "1e-6", queries=1)
    with Database.open(rows, schema, promise, tmp_path / "ledger", name="t") as database:
        app = create_app(Tables({"t": database}), access, settings=Settings(pacing=False))
        service = app.state.service
        assert head_view(service, OWNER, "t", "ask").state == "Open"
        database.sql("SELECT COUNT(*) FROM t WHERE a", table="t")
        assert head_view(service, OWNER, "t", "ask").state == "Closed"
        assert ask_view(service, OWNER, "t").closed
        assert "answers no new question, ever" in rendered(
            "table.html", table_view(service, OWNER, "t")
        )
        view, card = quoted_view(service, OWNER, "t", Wish("SELECT COUNT(*) FROM t WHERE b"))
        assert (view.state, card) == ("closed", None)
        assert " disabled>Closed</button>" in rendered("quote.html", (view, card))
        stored, _ = quoted_view(service, OWNER, "t", Wish("SELECT COUNT(*) FROM t WHERE a"))
        assert (stored.state, stored.button) == ("free", "Show answer, free")
        service.close()
    access.close()
