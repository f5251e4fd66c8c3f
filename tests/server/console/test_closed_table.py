"""A table whose budget is spent: no new question, ever; what was answered stays readable."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from sulq import Database, Flag, Promise, Schema
from sulq.errors import Refused
from sulq.report import audit_report
from sulq.server.app import create_app
from sulq.server.auth.tokens import Access, Caller, Role
from sulq.server.console.ask.page import ask_view, quoted_view
from sulq.server.console.ask.request import AskRequest
from sulq.server.console.framework import head_view, rendered
from sulq.server.console.table import table_view
from sulq.server.limits import Settings
from sulq.server.service.catalog import Tables

OWNER = Caller("office", Role.OWNER, None, "t")


def test_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SULQ_STATE", str(tmp_path / "state"))
    rows = pd.DataFrame({"a": [True, False] * 50, "b": [True, True, False, False] * 25})
    access = Access.open(tmp_path / "access.sqlite")
    schema, promise = Schema(Flag("a"), Flag("b")), Promise(1, "1e-6", queries=1)
    with Database.open(
        rows, schema, promise, tmp_path / "ledger", name="t", publish=True
    ) as database:
        app = create_app(Tables({"t": database}), access, settings=Settings(pacing=False))
        service = app.state.service
        assert head_view(service, OWNER, "t", "ask").state == "Open"
        database.sql("SELECT COUNT(*) FROM t WHERE a", table="t")
        assert head_view(service, OWNER, "t", "ask").state == "Closed"
        assert ask_view(service.session(OWNER, "t")).closed
        assert "answers no new question, ever" in rendered(
            "table.html", table_view(service.session(OWNER, "t"))
        )
        view, card = quoted_view(
            service.session(OWNER, "t"), AskRequest("SELECT COUNT(*) FROM t WHERE b")
        )
        assert (view.state, card) == ("closed", None)
        assert " disabled>Closed</button>" in rendered("quote.html#quote", (view, card))
        stored, _ = quoted_view(
            service.session(OWNER, "t"), AskRequest("SELECT COUNT(*) FROM t WHERE a")
        )
        assert (stored.state, stored.price.button) == ("free", "Show answer, free")
        service.close()
    access.close()


def test_closed_by_the_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SULQ_STATE", str(tmp_path / "state"))
    rows = pd.DataFrame({"a": [True, False] * 50})
    access = Access.open(tmp_path / "access.sqlite")
    schema, promise = Schema(Flag("a")), Promise(1, "1e-6", queries=10)
    with Database.open(
        rows, schema, promise, tmp_path / "ledger", name="t", publish=True
    ) as database:
        app = create_app(Tables({"t": database}), access, settings=Settings(pacing=False))
        service = app.state.service
        assert "Ask a question" in rendered("table.html", table_view(service.session(OWNER, "t")))
        database.close_for_good("study over")
        page = rendered("table.html", table_view(service.session(OWNER, "t")))
        assert "10 of 10 credits were never spent. Reason: study over." in page
        assert "Ask a question" not in page and "<h2>Start with" not in page
        assert ask_view(service.session(OWNER, "t")).closed
        with pytest.raises(Refused, match="closed for good"):
            quoted_view(service.session(OWNER, "t"), AskRequest("SELECT COUNT(*) FROM t WHERE a"))
        report = audit_report(database.statement(), [], public=True)
        assert "closed for good; 10 of 10 credits were never spent" in report
        service.close()
    access.close()
