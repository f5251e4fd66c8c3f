"""The protocol itself, message by message, and what a hostile or unlucky client cannot do."""

from __future__ import annotations

import random
import socket
import ssl
import struct
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.server.postgres.conftest import BROWSED, CHARTS, Door, opened
from tests.waiting import LONGEST, come

from sulq.server.auth.rate_limit import Rate
from sulq.server.auth.tokens import Role
from sulq.server.postgres import listener, session
from sulq.server.service.catalog import id_of


class Raw:
    """A client that sends what it is told to."""

    def __init__(self, door: Door) -> None:
        self.socket = socket.create_connection(("127.0.0.1", door.port), timeout=20)
        self.held = b""

    def send(self, letter: str, body: bytes = b"") -> None:
        self.socket.sendall(letter.encode() + struct.pack("!i", len(body) + 4) + body)

    def start(self, token: str, **options: str) -> list[tuple[str, bytes]]:
        given = {"user": "ann", "database": "people", **options}
        fields = b"".join(f"{name}\0{value}\0".encode() for name, value in given.items()) + b"\0"
        self.socket.sendall(struct.pack("!ii", len(fields) + 8, 3 << 16) + fields)
        found = [self.message()]
        if found[0][0] == "R":
            self.send("p", token.encode() + b"\0")
            found += self.until("ZE")
        return found

    def message(self) -> tuple[str, bytes]:
        head = self.take(5)
        return chr(head[0]), self.take(struct.unpack("!i", head[1:])[0] - 4)

    def take(self, number: int) -> bytes:
        while len(self.held) < number:
            came = self.socket.recv(65_536)
            if not came:
                raise EOFError
            self.held += came
        found, self.held = self.held[:number], self.held[number:]
        return found

    def until(self, letters: str) -> list[tuple[str, bytes]]:
        found = [self.message()]
        while found[-1][0] not in letters:
            found.append(self.message())
        return found

    def query(self, text: str) -> list[tuple[str, bytes]]:
        self.send("Q", text.encode() + b"\0")
        return self.until("Z")

    def letters(self, text: str) -> str:
        return "".join(letter for letter, _ in self.query(text))


def fields(body: bytes) -> dict[str, str]:
    """The fields of an error or a notice."""
    parts = body.rstrip(b"\0").split(b"\0")
    return {part[:1].decode(): part[1:].decode() for part in parts if part}


@pytest.fixture
def raw(door: Door) -> Any:
    found = Raw(door)
    yield found
    found.socket.close()


def parse(client: Raw, text: str, name: str = "") -> None:
    client.send("P", f"{name}\0{text}\0".encode() + struct.pack("!h", 0))


def bind(client: Raw, *values: str, formats: tuple[int, ...] = ()) -> None:
    sent = b"".join(struct.pack("!i", len(v.encode())) + v.encode() for v in values)
    wanted = struct.pack(f"!h{len(formats)}h", len(formats), *formats)
    client.send("B", b"\0\0" + struct.pack("!hh", 0, len(values)) + sent + wanted)


def test_describe_never_charges_and_execute_charges_once(door: Door, raw: Raw) -> None:
    raw.start(door.tokens["analyst"], options=door.options("describe"))
    before = door.left
    parse(raw, "SELECT blood, COUNT(*) AS n FROM people WHERE age > $1 GROUP BY blood")
    raw.send("D", b"S\0")
    bind(raw, "37", formats=(1,))
    raw.send("D", b"P\0")
    raw.send("S")
    said = raw.until("Z")
    assert "".join(letter for letter, _ in said) == "1tT2TZ" and door.left == before
    assert struct.unpack("!hI", said[1][1]) == (1, 20)  # $1 is compared with a whole number
    assert said[2][1].count(b"\0\0\x00\x19") == 1  # blood is text
    parse(raw, "SELECT blood, COUNT(*) AS n FROM people WHERE age > $1 GROUP BY blood")
    bind(raw, "37", formats=(1,))
    for _ in range(2):  # a portal with a limit: asked once, its rows in two parts
        raw.send("E", b"\0" + struct.pack("!i", 2))
    raw.send("S")
    said = raw.until("Z")
    letters = "".join(letter for letter, _ in said).replace("N", "")
    assert letters == "12DDsDDCZ"
    assert door.left == before - 2


def test_transactions_report_their_status_and_charges_stand(door: Door, raw: Raw) -> None:
    raw.start(door.tokens["analyst"], options=door.options("transaction"))
    assert raw.query("BEGIN")[-1] == ("Z", b"T")
    before = door.left
    raw.query("SELECT COUNT(*) FROM people WHERE age > 71")
    assert door.left < before
    after = door.left
    said = raw.query("ROLLBACK")
    assert "charges stand" in fields(said[0][1])["M"] and said[-1] == ("Z", b"I")
    assert door.left == after
    raw.query("BEGIN")
    assert raw.query("SELECT nope FROM people")[-1] == ("Z", b"E")
    assert fields(raw.query("SELECT 1")[0][1])["C"] == "25P02"
    assert raw.query("COMMIT")[0] == ("C", b"ROLLBACK\0")


def test_words_that_ask_nothing(door: Door, raw: Raw) -> None:
    raw.start(door.tokens["analyst"])
    assert raw.letters("") == "IZ" and raw.letters(" ; ;") == "IZ"
    assert raw.letters("SET nobody.knows = 'this'; SHOW nobody.knows") == "CTDCZ"
    assert raw.letters("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY") == "CZ"
    assert raw.letters("SET application_name TO 'x'") == "SCZ"
    assert raw.letters("DISCARD ALL") == "CZ"
    for text, state in {
        "COPY people TO STDOUT": "0A000",
        "INSERT INTO people VALUES (1)": "25006",
        "DROP TABLE people": "25006",
        "SHOW nothing_of_this_name": "42704",
        "SET client_encoding = 'LATIN1'": "22023",
        "SET sulq.credits = 'many'": "22023",
        "FETCH 1 FROM nowhere": "34000",
        "SELECT * FROM elsewhere": "42P01",
        "SELECT nope FROM people": "42703",
        "SELECT COUNT(*) FROM people WHERE nope = 1": "42703",
        "SELECT COUNT(*) FROM people WHERE age > 83": "53400",
        "SELECT 'not closed": "42601",
        "SELECT pg_sleep(9)": "0A000",
        "SELECT COUNT(*) FROM people, pg_class": "42",
    }.items():
        said = raw.query(text)
        assert said[0][0] == "E" and fields(said[0][1])["C"].startswith(state), text
        assert said[-1] == ("Z", b"I")


@pytest.mark.parametrize("intervals", ["off", "on"])
def test_what_is_described_is_what_comes(door: Door, raw: Raw, intervals: str) -> None:
    """Types follow from the statement and the schema, never from an answer."""
    raw.start(door.tokens["analyst"], options=door.options("types", intervals=intervals))
    for text in (*CHARTS, *BROWSED):
        parse(raw, text)
        raw.send("D", b"S\0")
        raw.send("S")
        told = next(body for letter, body in raw.until("Z") if letter == "T")
        said = raw.query(text)
        assert told == next(body for letter, body in said if letter == "T"), text


def test_our_settings_are_shown_reset_and_never_misspelled(door: Door, raw: Raw) -> None:
    raw.start(door.tokens["analyst"], options="-c sulq.credits=3 -c sulq.purpose=shown")

    def shown(name: str) -> str:
        row = next(body for letter, body in raw.query(f"SHOW {name}") if letter == "D")
        return row[6:].decode()

    assert (shown("sulq.credits"), shown("sulq.intervals")) == ("3", "off")
    said = fields(raw.query("SET sulq.credit = 9")[0][1])
    assert said["C"] == "42704" and "sulq.credits, sulq.purpose" in said["H"]
    raw.query("SET sulq.intervals = on; SET search_path = elsewhere")
    parse(raw, "SELECT 1", "kept")
    raw.query("DISCARD ALL")  # as pools do: names and settings go, the purpose stays
    assert (shown("sulq.credits"), shown("sulq.intervals")) == ("3", "on")
    assert shown("search_path") == '"$user", public'
    raw.send("B", b"\0kept\0" + struct.pack("!hhh", 0, 0, 0))
    raw.send("S")
    assert fields(next(b for letter, b in raw.until("Z") if letter == "E"))["C"] == "26000"
    raw.query("RESET sulq.intervals; RESET sulq.purpose; RESET sulq.credits")
    assert (shown("sulq.credits"), shown("sulq.intervals")) == ("0", "off")
    assert "this connection spends none" in str(raw.query("SELECT AVG(income) FROM people"))


def test_a_place_is_counted_in_the_whole_text(door: Door, raw: Raw) -> None:
    raw.start(door.tokens["analyst"])
    text = "SELECT 1; SELECT COUNT(*) FROM people WHERE nope = 1"
    said = next(fields(body) for letter, body in raw.query(text) if letter == "E")
    assert text[int(said["P"]) - 1 :].startswith("nope") and "\\d" in said["H"]


def test_a_purpose_is_kept_over_connections(door: Door) -> None:
    options = door.options("kept", credits=2)
    for age in (61, 62):
        with psycopg.connect(**door.given(options=options)) as connection:
            connection.execute(f"SELECT COUNT(*) FROM people WHERE age > {age}")
    with psycopg.connect(**door.given(options=options)) as connection:
        with pytest.raises(psycopg.Error, match="has spent 2 of its 2"):
            connection.execute("SELECT COUNT(*) FROM people WHERE age > 63")
        connection.rollback()
        connection.execute("SELECT COUNT(*) FROM people WHERE age > 61")  # told before
    with pytest.raises(psycopg.OperationalError, match="want both or neither"):
        psycopg.connect(**door.given(options="-c sulq.credits=3"))


def test_filters_and_intervals(door: Door) -> None:
    with psycopg.connect(**door.given(options=door.options(filters="declared"))) as connection:
        before = door.left
        bounds = connection.execute("SELECT MIN(age), MAX(age), MAX(day) FROM people").fetchone()
        assert bounds is not None and bounds[:2] == (0, 120) and str(bounds[2]) == "2024-12-31"
        values = connection.execute("SELECT DISTINCT blood FROM people").fetchall()
        assert {row[0] for row in values} - {None} == {"A", "B", "0"} and door.left == before
    with (
        psycopg.connect(**door.given()) as connection,
        pytest.raises(psycopg.Error, match="this connection spends none"),
    ):
        connection.execute("SELECT MIN(income), MAX(income) FROM people")
    options = door.options("bars", intervals="on")
    with psycopg.connect(**door.given(options=options)) as connection:
        cursor = connection.execute("SELECT COUNT(*) AS n FROM people WHERE age > 51")
        assert [column.name for column in cursor.description or ()] == ["n", "n_low", "n_high"]
        n, low, high = cursor.fetchall()[0]
        assert low <= n <= high


def test_who_is_let_in(door: Door) -> None:
    for token, state in {
        "wrong": "28P01",
        "": "28P01",
        "x" * 5_000: "28P01",
        door.tokens["auditor"]: "42501",
        door.tokens["monitor"]: "42501",
    }.items():
        client = Raw(door)
        said = client.start(token)
        assert said[-1][0] == "E" and fields(said[-1][1])["C"] == state
        assert fields(said[-1][1])["S"] == "FATAL"
        client.socket.close()
    with psycopg.connect(**door.given("owner")) as connection:
        assert connection.execute("SELECT current_user").fetchone() == ("owner",)


def test_a_token_is_looked_at_before_each_statement(door: Door) -> None:
    tables = {id_of(door.database): "people"}
    token = door.access.issue("brief", Role.ANALYST, tables, rate=Rate(3, "day"))
    door.tokens["brief"] = token
    connection = psycopg.connect(**door.given("brief"), autocommit=True)
    for _ in range(3):
        connection.execute("SELECT 1")
    with pytest.raises(psycopg.Error, match="may send 3 requests per day"):
        connection.execute("SELECT 1")
    door.access.revoke("brief")
    with pytest.raises(psycopg.OperationalError, match="not good any more"):
        connection.execute("SELECT 1")
    connection.close()
    with pytest.raises(psycopg.OperationalError, match="no token that is good"):
        psycopg.connect(**door.given("brief"))


def test_reading_describing_and_executing_are_one_request(door: Door, raw: Raw) -> None:
    """Parse is work, so that it counts; what belongs to it is not counted again."""
    tables = {id_of(door.database): "people"}
    raw.start(door.access.issue("reader", Role.ANALYST, tables, rate=Rate(6, "day")))

    def states() -> list[str]:
        raw.send("S")
        return [fields(body)["C"] for letter, body in raw.until("Z") if letter == "E"]

    parse(raw, "SELECT 1")
    raw.send("D", b"S\0")
    bind(raw)
    raw.send("E", b"\0" + struct.pack("!i", 0))
    assert states() == []  # 1
    bind(raw)
    raw.send("E", b"\0" + struct.pack("!i", 0))
    assert states() == []  # 2: a second execution
    parse(raw, "SELECT COUNT(*) FROM people WHERE age > 'x'")  # 3
    for _ in range(2):
        raw.send("D", b"S\0")
        assert states() == ["42804"]  # 3, and 4: a second look after the refusal
    assert raw.letters("DECLARE c CURSOR FOR SELECT 1") == "CZ"  # 5
    assert raw.letters("FETCH 1 FROM c") == "TDCZ"  # 6
    parse(raw, "SELECT 1")
    assert states() == ["53300"]


def test_columns_are_those_that_were_described(door: Door, raw: Raw) -> None:
    raw.start(door.tokens["analyst"], options=door.options("columns"))
    parse(raw, "SELECT COUNT(*) AS n FROM people WHERE age > 19", "kept")
    raw.send("D", b"Skept\0")
    raw.send("S")
    raw.until("Z")
    raw.query("SET sulq.intervals = on")
    before = door.left
    raw.send("B", b"\0kept\0" + struct.pack("!hhh", 0, 0, 0))
    raw.send("E", b"\0" + struct.pack("!i", 0))
    raw.send("S")
    said = [body for letter, body in raw.until("Z") if letter == "E"]
    assert "cached plan must not change result type" in fields(said[0])["M"]
    assert door.left == before
    raw.send("D", b"Skept\0")
    raw.send("S")
    told = next(body for letter, body in raw.until("Z") if letter == "T")
    assert struct.unpack("!h", told[:2]) == (3,)  # n, n_low, n_high
    parse(raw, "SHOW ALL")
    raw.send("D", b"S\0")
    raw.send("S")
    told = next(body for letter, body in raw.until("Z") if letter == "T")
    assert struct.unpack("!h", told[:2]) == (3,)  # as many as its rows have


def test_cancel_and_leaving_change_neither_charge_nor_answer(door: Door) -> None:
    text = "SELECT COUNT(*) AS n FROM people WHERE age > 77"
    before = door.left
    client = Raw(door)
    client.start(door.tokens["analyst"], options=door.options("leaver"))
    client.send("Q", text.encode() + b"\0")
    cancel = socket.create_connection(("127.0.0.1", door.port))
    cancel.sendall(struct.pack("!iiII", 16, 80877102, 1, 1))
    client.socket.shutdown(socket.SHUT_RDWR)
    client.socket.close()
    cancel.close()
    come(lambda: door.left == before - 1, "the statement was not asked")
    come(lambda: all(entry.answered for entry in door.database.ledger.entries()), "not stored")
    with psycopg.connect(**door.given()) as connection:  # stored, and free
        found = connection.execute(text).fetchone()
        assert found is not None and isinstance(found[0], int)
    assert door.left == before - 1


def test_it_has_the_answers_of_http(door: Door) -> None:
    import httpx

    text = "SELECT blood, COUNT(*) AS n, AVG(age) AS a FROM people WHERE smoker GROUP BY blood"
    with psycopg.connect(**door.given(options=door.options("same"))) as connection:
        wire = connection.execute(text).fetchall()
    reply = httpx.post(
        f"{door.url}/v1/tables/people/sql",
        headers={
            "Authorization": f"Bearer {door.tokens['analyst']}",
            "Idempotency-Key": "same-as-wire",
        },
        json={"sql": text, "max_credits": 0, "dialect": "postgres"},
        timeout=LONGEST,
    ).json()
    assert Fraction(reply["credits_exact"]) == 0
    assert wire == [(row[0], row[1]["value"], row[2]["value"]) for row in reply["rows"]]


# --- bytes that are no messages -------------------------------------------------------------------


def is_alive(door: Door) -> bool:
    with psycopg.connect(**door.given()) as connection:
        return connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("seed", range(3))
def test_fuzzed_messages_end_one_connection_at_most(door: Door, seed: int) -> None:
    """Whatever comes, nothing unforeseen happens, nothing is charged and others are served."""
    dice = random.Random(seed)
    before, letters = door.left, "QPBDECSHFdcfpXZ\0\xff"
    for _ in range(40):
        client = Raw(door)
        try:
            if dice.random() < 0.3:
                client.socket.sendall(dice.randbytes(dice.randrange(1, 400)))
            else:
                client.start(door.tokens["analyst"])
                for _ in range(dice.randrange(1, 8)):
                    letter, body = dice.choice(letters), dice.randbytes(dice.randrange(0, 60))
                    if dice.random() < 0.5:
                        body = b"\0".join([b"", b"SELECT $1", body, struct.pack("!hi", 1, 9)])
                    length = len(body) + 4 if dice.random() < 0.9 else dice.randrange(-9, 2**31 - 1)
                    client.socket.sendall(
                        letter.encode("latin-1") + struct.pack("!i", length) + body
                    )
            client.socket.shutdown(socket.SHUT_WR)
            while client.socket.recv(65_536):
                pass
        except (OSError, EOFError):
            pass
        finally:
            client.socket.close()
    assert is_alive(door) and door.left == before
    assert '"error"' not in door.log.getvalue()


def test_a_message_that_is_too_long_is_not_waited_for(door: Door, raw: Raw) -> None:
    raw.start(door.tokens["analyst"])
    raw.socket.sendall(b"Q" + struct.pack("!i", 2**30))
    said = raw.message()
    assert said[0] == "E" and fields(said[1])["C"] == "08P01"
    with pytest.raises(EOFError):
        raw.message()


def test_half_open_connections_are_closed(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "FIRST", 0.2)
    for begun in (b"", b"\0\0", struct.pack("!ii", 50, 3 << 16)):
        client = socket.create_connection(("127.0.0.1", door.port), timeout=20)
        client.sendall(begun)
        while client.recv(1_000):
            pass
        client.close()
    assert is_alive(door)


def test_strangers_who_say_nothing_keep_nobody_out(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "MOST", 8)
    held = [socket.create_connection(("127.0.0.1", door.port), timeout=20) for _ in range(20)]
    assert is_alive(door)
    closed = sum(each.recv(1) == b"" for each in held[:17])
    assert closed == 17  # those that have waited longest
    for each in held:
        each.close()


def test_what_a_connection_keeps_is_bounded(
    door: Door, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Repeats are free, so that what they hold must not grow: trees, and answers held back."""
    raw.start(door.tokens["analyst"], options=door.options("kept"))
    text, before = CHARTS[3], door.left
    raw.query(text)
    monkeypatch.setattr(session, "MOST_HELD", 10)
    for name in ("one", "two", "three"):
        raw.send("P", f"\0{text}\0".encode() + struct.pack("!h", 0))
        raw.send("B", f"{name}\0\0".encode() + struct.pack("!hhh", 0, 0, 0))
        raw.send("E", f"{name}\0".encode() + struct.pack("!i", 1))
    raw.send("S")
    said = raw.until("Z")
    assert sum(letter == "s" for letter, _ in said) == 2  # each holds 8 cells
    assert [fields(body)["C"] for letter, body in said if letter == "E"] == ["53200"]
    raw.send("E", b"one\0" + struct.pack("!i", 0))  # the rest of it, which makes room
    raw.send("S")
    assert sum(letter == "D" for letter, _ in raw.until("Z")) == 3
    assert "D" in raw.letters(text)
    monkeypatch.setattr(session, "MOST_TEXT", 30)
    for name in ("a", "b", "c"):
        parse(raw, "SELECT 1 AS one", name)
    raw.send("S")
    assert [fields(b)["C"] for letter, b in raw.until("Z") if letter == "E"] == ["53200"]
    raw.query("DEALLOCATE ALL")
    parse(raw, "SELECT 1 AS one", "c")
    raw.send("S")
    assert raw.until("Z")[0][0] == "1" and before - door.left <= 2


def test_no_token_is_written_to_the_log(door: Door) -> None:
    for token in ("sulq_" + "never" * 9, door.tokens["analyst"]):
        client = Raw(door)
        client.start(token)
        client.socket.close()
        assert is_alive(door)
        assert token not in door.log.getvalue() and token[5:25] not in door.log.getvalue()


def test_what_is_unforeseen_is_one_constant_sentence_and_a_line_of_the_log(
    door: Door, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("of a secret row: 42")

    raw.start(door.tokens["analyst"])
    before = door.log.getvalue()
    monkeypatch.setattr(session.WireSession, "_show", broken)
    said = raw.query("SHOW server_version")
    monkeypatch.undo()
    assert fields(said[0][1])["C"] == "58000" and "42" not in str(said)
    line = door.log.getvalue().removeprefix(before)
    assert "RuntimeError" in line and "secret row" not in line
    door.log.truncate(0)


@pytest.mark.slow
def test_64_connections_at_once(door: Door) -> None:
    options = door.options("many", credits=64)
    before, ready = door.left, threading.Barrier(64)

    def ask(number: int) -> int:
        with psycopg.connect(**door.given(options=options)) as connection:
            ready.wait(60)
            found = connection.execute(
                "SELECT COUNT(*) FROM people WHERE age > %s", (number % 16,)
            ).fetchone()
            assert found is not None
            return int(found[0])

    with ThreadPoolExecutor(64) as pool:
        found = list(pool.map(ask, range(64)))
    assert all(found[place] == found[place + 16] for place in range(48))
    assert before - door.left <= 16  # each question once, whoever asks


def test_more_connections_than_places_are_told_so(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "MOST", 3)
    with psycopg.connect(**door.given()) as held:
        with pytest.raises(psycopg.OperationalError, match="too many connections of this token"):
            psycopg.connect(**door.given())
        with psycopg.connect(**door.given("owner")):
            assert held.execute("SELECT 1").fetchone() == (1,)


# --- TLS ------------------------------------------------------------------------------------------


MAKE_CERTIFICATE = (
    "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    " -keyout key.pem -out cert.pem"
)


def test_no_reply_waits_for_an_acknowledgement(door: Door) -> None:
    """Else each statement took 40 ms, the client's delayed ACK."""
    assert door.listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tls")
    subprocess.run(
        MAKE_CERTIFICATE.split(),
        cwd=path,
        check=True,
        capture_output=True,
    )
    return path


def test_tls(tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SULQ_STATE", str(tmp_path / "state"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    with opened(tmp_path, tls=context) as door:
        with psycopg.connect(**door.given(sslmode="require")) as connection:
            assert connection.pgconn.ssl_in_use
            assert connection.execute("SELECT 1").fetchone() == (1,)
        stuffed = Raw(door)  # bytes before the handshake are not read as if they came after it
        stuffed.socket.sendall(struct.pack("!ii", 8, 80877103) + b"Q")
        assert stuffed.message()[0] == "E"
        stuffed.socket.close()
        monkeypatch.setattr(listener, "_is_loopback", lambda writer: False)
        with pytest.raises(psycopg.OperationalError, match="TLS is required"):
            psycopg.connect(**door.given(sslmode="disable"))
        psycopg.connect(**door.given(sslmode="require")).close()
