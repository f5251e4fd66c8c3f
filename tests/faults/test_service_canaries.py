"""Marked rows, and everything going wrong at once: the marks appear nowhere but in the table."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import duckdb
import httpx
import pytest
from tests.faults.canaries import BUG, ENGINE, MEMORY, SLOW
from tests.faults.serving import CREDITS, Process, published, running
from tests.waiting import LONGEST

PROGRAM = Path(__file__).with_name("canaries.py")
TEXT, NUMBER, PERSON = "canary-5d1c9e", "7391827", "8826401937"
MARKS = [mark.encode() for mark in (TEXT, NUMBER, PERSON)]


def marked(path: Path, rows: int) -> None:
    """Marks in a declared category, a declared number, an undeclared text and an id."""
    duckdb.sql(
        f"SELECT {PERSON}::BIGINT + i AS person_id, i % 90 AS age,"
        f" CASE WHEN i % 3 = 0 THEN {NUMBER}.25 ELSE i % 90000 END AS income,"
        " i % 4 = 0 AS smoker,"
        f" CASE WHEN i % 5 = 0 THEN '{TEXT}-region' ELSE 'North' END AS region,"
        f" '{TEXT}-' || i AS note FROM range({rows}) AS t(i)"
    ).write_parquet(str(path))


def found_in(home: Path) -> list[str]:
    """Files other than the table that hold a mark."""
    return [
        str(path)
        for path in home.rglob("*")
        if path.is_file() and path.name != "people.parquet"
        if any(mark in path.read_bytes() for mark in MARKS)
    ]


def everything(server: Process) -> list[httpx.Response]:
    """Requests that are answered, refused and broken, of every kind."""
    told = [server.ask(number, f"question-{number}") for number in (1, 2, ENGINE, MEMORY, BUG)]
    told += [server.ask(number, f"question-{number}") for number in (ENGINE, MEMORY, BUG, 3)]
    told.append(server.ask(4, "question-1"))  # a key used twice
    for number, sql in enumerate(
        [
            "SELECT region, COUNT(*), AVG(income) FROM people GROUP BY region",
            "SELECT MAX(income) FROM people",
            "SELECT note FROM people",
            "SELECT COUNT(*) FROM people WHERE region = 'nowhere'",
            "SELECT COUNT(*) FROM read_csv('people.parquet')",
            "SELECT",
            "SELECT COUNT(*) FROM people WHERE age / 0 > 1",
        ]
    ):
        told.append(server.post("sql", {"sql": sql}, f"statement-{number}"))
        told.append(server.post("quote", {"sql": sql}, f"statement-{number}"))
    told.append(server.post("exact", {"questions": []}, "exactly-1"))
    told.append(server.post("ask", {"question": {"kind": "count", "query": {}}}, "malformed-1"))
    for path in ("tables", "tables/people/schema", "tables/people/dummy", "tables/none/schema"):
        told.append(server.get(f"/v1/{path}"))
    for path in ("ledger", "answers", "statement", "receipts/999", "grants", "report"):
        told.append(server.get(f"/v1/tables/people/{path}"))
    told += [server.get(path) for path in ("/metrics", "/openapi.json", "/docs", "/", "/none")]
    url = f"{server.url}/v1/tables/people/ask"
    told.append(httpx.post(url, content=b"{" * 2_000_000, timeout=LONGEST))
    told.append(httpx.post(url, content=b"\xff\x00", timeout=LONGEST))
    told.append(httpx.request("TRACE", url, timeout=LONGEST))
    told += [server.ask(10 + number, f"last-one-{number}") for number in range(CREDITS)]
    return told


@pytest.mark.slow
def test_marks_of_rows_appear_nowhere(tmp_path):
    home = published(tmp_path / "home", 500, marked)
    temporary = home / "tmp"
    temporary.mkdir()
    more = {"PYTHONFAULTHANDLER": "1", "TMPDIR": str(temporary)}
    with running(home, program=(str(PROGRAM),), **more) as server:
        cut: list[str] = []

        def cut_off() -> None:
            try:
                server.ask(SLOW, "question-slow")
            except httpx.TransportError as error:
                cut.append(type(error).__name__)

        waiting = threading.Thread(target=cut_off)  # holds rows to the end, and stores no answer
        waiting.start()
        told = everything(server)
        assert {reply.status_code for reply in told} >= {
            200,
            401,
            402,
            404,
            409,
            413,
            422,
            500,
            503,
        }
        limits = Path(f"/proc/{server.pid}/limits").read_text()
        assert "core file size 0 0" in " ".join(limits.split())
        server.process.send_signal(signal.SIGABRT)
        assert server.process.wait(60) == -signal.SIGABRT
        waiting.join()
    assert cut
    said = (home / "log").read_text()
    assert "Fatal Python error: Aborted" in said and "canaries.py" in said  # it was dumped
    assert "RuntimeError" in said  # the bug was met
    texts = b"".join(reply.content + repr(reply.headers.raw).encode() for reply in told)
    assert not any(mark in texts for mark in MARKS)
    assert found_in(home) == []

    (temporary / "left").write_text(f"a row: {TEXT}")  # the search would have found it
    assert found_in(home) == [str(temporary / "left")]
