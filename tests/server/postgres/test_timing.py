"""When replies leave the PostgreSQL port: on the table's clock, whatever a row, a client or the
load does; and what is free waits for no row."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from tests.server.dial import Dial
from tests.server.postgres.conftest import opened
from tests.server.postgres.test_protocol import Raw, bind, fields, parse
from tests.server.test_pacing_http import TICK, served
from tests.waiting import LONGEST, come

from sulq.kernel.engines.duckdb import engine
from sulq.server.limits import Settings
from sulq.server.postgres.listener import PostgresPort

SPENDING = "-c sulq.credits=900 -c sulq.purpose=timing"


@contextmanager
def paced() -> Iterator[tuple[Dial, Any, str, Any]]:
    """Two tables whose rows differ in one, over which the engine dawdles; on a dial."""
    dial, listening = Dial(), socket.create_server(("127.0.0.1", 0))
    with served(True, dial, postgres=PostgresPort(listening)) as (_, token, app):
        yield dial, SimpleNamespace(port=listening.getsockname()[1]), token, app


def executed(client: Raw, text: str) -> list[tuple[str, bytes]]:
    """The extended protocol: parsed, described, bound, executed."""
    parse(client, text)
    client.send("D", b"S\0")
    bind(client)
    client.send("E", b"\0" + struct.pack("!i", 0))
    client.send("S")
    return client.until("Z")


def test_replies_and_refusals_leave_on_the_tick_whatever_a_row_does() -> None:
    with paced() as (dial, door, token, app):
        client = Raw(door)
        client.start(token, options=SPENDING)
        taken: dict[str, dict[str, float]] = {"table0": {}, "table1": {}}
        for place, moments in taken.items():
            count = f"SELECT COUNT(*) AS n FROM {place} WHERE number"
            for what, text in {
                "new": f"{count} > 3",
                "again": f"{count} > 3",
                "unknown column": f"SELECT COUNT(*) FROM {place} WHERE nobody = 1",
                "too dear": f"SELECT COUNT(*) AS n FROM {place} WHERE number > 4 WITHIN 0.001",
                "cursor": f"BEGIN; DECLARE c CURSOR FOR {count} > 5; FETCH ALL FROM c; COMMIT",
            }.items():
                start = dial.now()
                said = client.query(text)
                moments[what] = round(dial.now() - start, 9)
                refused = "E" in {letter for letter, _ in said}
                assert refused == (what in ("unknown column", "too dear")), (what, said)
            for what, text in {"execute": f"{count} > 6", "execute again": f"{count} > 6"}.items():
                start = dial.now()
                assert "D" in {letter for letter, _ in executed(client, text)}
                moments[what] = round(dial.now() - start, 9)
        client.socket.close()
        assert set(taken["table1"].values()) == {TICK}
        assert taken["table0"] == taken["table1"]
        assert sum(clock.overruns for clock in app.state.service.clocks.values()) == 0


def test_looking_takes_no_tick_and_a_connection_that_may_not_spend_is_told_so_on_one() -> None:
    with paced() as (dial, door, token, _):
        client, start = Raw(door), dial.now()
        client.start(token)
        parse(client, "SELECT COUNT(*) AS n FROM table1 WHERE number > $1")
        client.send("D", b"S\0")
        client.send("S")
        assert [letter for letter, _ in client.until("Z")] == ["1", "t", "T", "Z"]
        client.query("SELECT * FROM table1 LIMIT 5")
        client.query("SELECT relname FROM pg_class")
        assert dial.now() == start
        said = client.query("SELECT COUNT(*) AS n FROM table1 WHERE number > 8")
        assert fields(said[0][1])["C"] == "53400" and dial.now() - start == pytest.approx(TICK)
        client.socket.close()


def test_a_cancel_and_a_reset_connection_move_no_reply() -> None:
    with paced() as (dial, door, token, app):
        spent = app.state.service.tables["table1"].statement
        for place, leaves in enumerate((False, True)):
            client, start = Raw(door), dial.now()
            said = client.start(token, options=SPENDING)
            process, secret = next(struct.unpack("!II", b) for letter, b in said if letter == "K")
            client.send("Q", f"SELECT COUNT(*) FROM table1 WHERE number > {place}\0".encode())
            with socket.create_connection(("127.0.0.1", door.port)) as cancel:
                cancel.sendall(struct.pack("!iiII", 16, 80877102, process, secret))
                assert cancel.recv(10) == b""  # nothing is said
            if leaves:
                reset = struct.pack("ii", 1, 0)
                client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            else:
                assert "D" in {letter for letter, _ in client.until("Z")}
            client.socket.close()
            come(lambda due=place + 1: spent().spent == due, "it was not charged")
            come(lambda since=start: dial.now() - since == pytest.approx(TICK))


def test_what_is_free_waits_for_no_row(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All threads that read rows are held: Parse, Describe and the catalogue are answered, so that
    how long they take is no sensor of what others ask."""
    monkeypatch.setenv("SULQ_STATE", str(tmp_path / "state"))
    gate, reading, sound = threading.Event(), [], engine.DuckDBEngine.prepare

    def held(self: Any, sums: Any) -> Any:
        read = sound(self, sums)

        def work() -> Any:
            reading.append(sums)
            assert gate.wait(LONGEST)
            return read()

        return work

    settings = Settings(pacing=False, threads=4, each=4)
    with opened(tmp_path, settings) as door:
        monkeypatch.setattr(engine.DuckDBEngine, "prepare", held)
        lines = []
        for age in range(5):
            line = Raw(door)
            line.start(door.tokens["analyst"], options=door.options("held"))
            line.send("Q", f"SELECT COUNT(*) FROM people WHERE age > {age}\0".encode())
            lines.append(line)
        come(lambda: reading, "nobody reads rows")
        for who in ("analyst", "owner"):
            client = Raw(door)
            client.start(door.tokens[who])
            parse(client, "SELECT blood, COUNT(*) AS n FROM people WHERE age > 50 GROUP BY blood")
            client.send("D", b"S\0")
            client.send("S")
            assert [letter for letter, _ in client.until("Z")] == ["1", "t", "T", "Z"]
            assert client.letters("SELECT relname FROM pg_class") == "TDCZ"
            assert client.letters("SELECT * FROM people LIMIT 9") == "TNCZ"
            client.socket.close()
        gate.set()
        for line in lines:
            assert "D" in {letter for letter, _ in line.until("Z")}
            line.socket.close()
