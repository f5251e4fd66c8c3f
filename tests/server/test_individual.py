"""A served table whose people have balances of their own: nothing of them shows in any reply."""

from __future__ import annotations

import numpy as np
from tests.server.conftest import SCHEMA, new_key, served, write_people

import sulq.kernel.release.release as flow
from sulq import Database, Promise, col, count
from sulq.server.limits import Settings
from sulq.wire import question_json

PROMISE = Promise(1, "1e-6", 5, neighbours="add-remove")


def test_nothing_is_refused_and_no_reply_tells_of_a_balance(tmp_path, state, monkeypatch):
    monkeypatch.setattr(flow, "draw_noise", lambda laws: [0] * len(laws))
    source = write_people(tmp_path / "own.parquet", 500)
    with (
        Database.open(
            source, SCHEMA, PROMISE, tmp_path / "own.ledger", individual=True, publish=True
        ) as db,
        served(tmp_path, Settings(pacing=False), own=db) as server,
    ):
        web, ages = server.client(), np.arange(500) * 7 % 90

        def ask(least):
            asked = {"question": question_json(count(where=col("age") >= least))}
            headers = {"Idempotency-Key": new_key()}
            return web.post("/v1/tables/own/ask", json=asked, headers=headers)

        db.grant("analyst", 5)
        for least in range(60, 65):
            assert ask(least).json()["value"] == int((ages >= least).sum())
        assert ask(59).status_code == 402  # the analyst's share
        db.grant("analyst", 5)
        reply = ask(59)
        assert reply.json()["value"] == int(((ages >= 59) & (ages < 64)).sum())
        assert "balance" in reply.text  # the warning, the same for every question
        spent = {str(n) for n in db.engine.filters.past.balances.spent.tolist() if n}
        assert len(spent) == 5
        for path in ("statement", "ledger", "schema"):
            shown = web.get(f"/v1/tables/own/{path}")
            assert shown.status_code == 200, shown.text
            assert not any(amount in shown.text for amount in spent)
