"""A network that goes silent hangs nobody: what is not heard of in time is given up, and safe."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.kernel.engines.postgres_tables import fill, psycopg
from tests.people import frame, publish
from tests.postgres_server import PostgresServer
from tests.silent_proxy import silent_proxy

from sulq import Category, Database, EngineFailed, Number, Promise, Refused, Schema, col, count
from sulq.kernel.engines.postgres import engine as engine_file
from sulq.kernel.engines.postgres import session
from sulq.kernel.ledger.stores import postgres as ledger_file
from sulq.kernel.postgresql import LIMITS, connect

PROMISE = Promise(1, "1e-6", 100)
HUNG = 60.0
"""Seconds after which a test says that its caller hangs."""
SHORT = 0.25
"""Seconds of silence after which the code under test gives up."""


def outcome(work: Callable[[], Any]) -> Any:
    """What `work` returns or raises; it must come to an end."""
    found: list[Any] = []

    def caught() -> None:
        try:
            found.append(work())
        except Exception as error:  # noqa: BLE001
            found.append(error)

    thread = threading.Thread(target=caught, daemon=True)
    thread.start()
    thread.join(HUNG)
    assert found, "it hangs"
    return found[0]


@pytest.mark.parametrize("mark", [b"COMMIT", b"BEGIN ISOLATION"])
def test_a_silent_ledger_is_given_up_and_the_charge_found_again(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: bytes
) -> None:
    """Impatient only while the network is silent: a busy server is not one that is gone."""
    with silent_proxy(postgres) as proxy:
        place = f"{proxy.url()}&ledger=silent_{mark[:3].decode().lower()}"
        with publish(frame(200), promise=PROMISE, ledger=place, name="people") as db:
            proxy.mute_at(mark, always=True)
            question = count(where=col("smoker"))
            with monkeypatch.context() as impatient:
                impatient.setattr(ledger_file, "SILENCE", SHORT)
                impatient.setattr(ledger_file, "PATIENCE", SHORT)
                db.ledger._shared._server._connection.silence = SHORT
                error = outcome(lambda: db.ask(question, key="k"))
            assert isinstance(error, Refused) and "ask again with the same key" in str(error)
            assert proxy.muted
            proxy.heal()
            answer = outcome(lambda: db.ask(question, key="k"))
            assert answer.credits == 1 and db.remaining == 99
            assert outcome(lambda: db.ask(question, key="k")).value == answer.value


def test_a_ledger_that_is_silent_while_it_is_opened(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_file, "SILENCE", SHORT)
    monkeypatch.setattr(ledger_file, "PATIENCE", 1.0)  # of a connection: whole seconds
    with silent_proxy(postgres) as proxy:
        place = f"{proxy.url()}&ledger=silent_open"
        for mark in (b"search_path", b"user"):  # after, and before the server let us in
            proxy.mute_at(mark, always=True)
            error = outcome(lambda: publish(frame(50), promise=PROMISE, ledger=place))
            assert isinstance(error, Refused) and "cannot be reached" in str(error), mark


@pytest.mark.slow
def test_a_silent_table_is_given_up(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the charge it is refused; after it, the one constant error. Then it works again.

    Impatient only while the network is silent.
    """
    monkeypatch.setattr(engine_file, "FRESH", -1.0)
    schema = Schema(Number("age", 0, 120), Category("city", ["a", "b"]), at_most=1_000)
    rows = [{"age": float(i % 90), "city": "ab"[i % 2]} for i in range(300)]
    fill(postgres, "quiet", {"age": "float8", "city": "text"}, rows)
    with silent_proxy(postgres) as proxy:
        url = proxy.url(table="quiet")
        with Database.open(url, schema, PROMISE, ":memory:", name="quiet") as db:
            patient = (
                (session, "GRACE_SECONDS"),
                (session, "LOCK_SECONDS"),
                (engine_file, "LEAST_SECONDS"),
            )
            for owner, name in patient:
                monkeypatch.setattr(owner, name, 1)
            proxy.mute_at(b"LOCK TABLE", always=True)
            error = outcome(lambda: db.ask(count(where=col("age") > 20), key="k"))
            assert isinstance(error, Refused) and "cannot be reached" in str(error)
            assert db.remaining == 100
            proxy.mute_at(b"WITH rows_read")
            monkeypatch.setattr(engine_file, "FRESH", 10.0**9)  # nothing is looked at before
            db.engine._proved_at = 10.0**12  # type: ignore[attr-defined]
            error = outcome(lambda: db.ask(count(where=col("age") > 20), key="k"))
            assert isinstance(error, EngineFailed) and db.remaining == 99
            monkeypatch.undo()
            monkeypatch.setattr(engine_file, "FRESH", -1.0)
            proxy.heal()
            assert outcome(lambda: db.ask(count(where=col("age") > 20), key="k")).values
            assert db.remaining == 99


def test_only_the_time_between_two_words_counts(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reply that keeps coming may take long; a second without a word ends a patience of one."""
    line = connect(postgres.url(), seconds=60, silence=1.0, name="slow", needed_by="this")
    with pytest.raises(psycopg.OperationalError, match="gone silent"):
        line.execute("SELECT pg_sleep(60)")
    line.close()
    now = [0.0]
    monkeypatch.setattr("sulq.kernel.postgresql.time.monotonic", lambda: now[0])

    def words() -> Any:
        found = []
        while len(found) < 5:
            found.append((yield "R"))
        return found

    def heard(gaps: list[tuple[float, int]]) -> Any:
        exchange = line._heard(words())
        next(exchange)
        try:
            for gap, ready in gaps:
                now[0] += gap
                exchange.send(ready)
        except StopIteration as done:
            return done.value
        return None

    assert heard([(0.9, 1)] * 5) == [1] * 5
    assert heard([(0.5, 0), (0.4, 1)] * 3) == [0, 1, 0, 1, 0]
    with pytest.raises(psycopg.OperationalError):
        heard([(0.9, 1), (0.5, 0), (0.6, 0)])


def test_what_an_address_says_of_limits_is_kept(postgres: PostgresServer) -> None:
    def settings(url: str) -> dict[str, Any]:
        line = connect(url, seconds=7, silence=9, name="x", needed_by="this")
        found = line.info.get_parameters()
        line.close()
        return dict(found)

    usual = settings(postgres.url())
    assert {key: usual[key] for key in LIMITS} == {key: str(v) for key, v in LIMITS.items()}
    assert usual["connect_timeout"] == "7"
    own = settings(f"{postgres.url()}&tcp_user_timeout=1234&connect_timeout=3")
    assert (own["tcp_user_timeout"], own["connect_timeout"]) == ("1234", "3")
