"""Messages of the PostgreSQL protocol, version 3: reading them from a socket and writing them.

Nothing here knows tables or questions. A message is a letter, a length and a body; the first
message of a connection has no letter. https://www.postgresql.org/docs/current/protocol.html
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

VERSION_3 = 3 << 16
SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102
MOST_STARTUP = 10_000
CHUNK = 65_536


class WireError(Exception):
    """An error that the client is told: an SQLSTATE, what is wrong, and what to do."""

    def __init__(self, state: str, text: str, hint: str = "", *, place: int | None = None) -> None:
        super().__init__(text)
        self.state, self.text, self.hint, self.place = state, text, hint, place


class ProtocolViolation(WireError):
    """Bytes that are no message: the connection is closed."""

    def __init__(self, text: str) -> None:
        super().__init__("08P01", text)


class ConnectionEnded(Exception):
    """The client has gone, or was silent for too long."""


class MessageReader:
    """Whole messages of a stream, of bounded length.

    It keeps its own buffer, so that nothing that came before TLS began is read as if it came after.
    """

    def __init__(self, stream: asyncio.StreamReader, longest: int, seconds: float) -> None:
        """`seconds`: within which a message that has begun must have come."""
        self._stream, self._longest, self._seconds = stream, longest, seconds
        self._held = bytearray()

    @property
    def is_empty(self) -> bool:
        """True if nothing has come that was not read."""
        return not self._held

    async def startup(self) -> tuple[int, bytes]:
        """Return the code and the body of a connection's first message."""
        length, code = struct.unpack("!ii", await self._take(8))
        if not 8 <= length <= MOST_STARTUP:
            raise ProtocolViolation("the length of the startup message is out of range")
        return code, await self._take(length - 8)

    async def message(self, idle: float | None) -> tuple[str, bytes]:
        """Return the letter and the body of the next message; wait `idle` seconds for it."""
        letter = await self._within(idle, 1)
        length = struct.unpack("!i", await self._within(self._seconds, 4))[0]
        if length < 4:
            raise ProtocolViolation("the length of a message is out of range")
        if length > self._longest:
            raise ProtocolViolation(f"a message has more than {self._longest:,} bytes")
        return letter.decode("latin-1"), await self._within(self._seconds, length - 4)

    async def _within(self, seconds: float | None, number: int) -> bytes:
        try:
            async with asyncio.timeout(seconds):
                return await self._take(number)
        except TimeoutError:
            raise ConnectionEnded from None

    async def _take(self, number: int) -> bytes:
        while len(self._held) < number:
            try:
                came = await self._stream.read(CHUNK)
            except (OSError, EOFError):
                raise ConnectionEnded from None
            if not came:
                raise ConnectionEnded
            self._held += came
        found = bytes(self._held[:number])
        del self._held[:number]
        return found


class MessageBody:
    """The fields of a message's body, in order."""

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    def take(self, number: int) -> bytes:
        if number < 0 or self._at + number > len(self._body):
            raise ProtocolViolation("a message is shorter than it says")
        found = self._body[self._at : self._at + number]
        self._at += number
        return found

    def int16(self) -> int:
        found: int = struct.unpack("!h", self.take(2))[0]
        return found

    def int32(self) -> int:
        found: int = struct.unpack("!i", self.take(4))[0]
        return found

    def count(self) -> int:
        """Return a number of things that follow."""
        found = self.int16() & 0xFFFF
        if found > len(self._body):
            raise ProtocolViolation("a message is shorter than it says")
        return found

    def text(self) -> str:
        """Return a text that ends with a zero byte."""
        end = self._body.find(b"\x00", self._at)
        if end < 0:
            raise ProtocolViolation("a text in a message does not end")
        found = self._body[self._at : end]
        self._at = end + 1
        try:
            return found.decode()
        except UnicodeDecodeError:
            raise WireError("22021", "a text is not UTF-8; set client_encoding to UTF8") from None

    def value(self) -> bytes | None:
        """Return the bytes of a parameter; None for NULL."""
        length = self.int32()
        return None if length == -1 else self.take(length)

    def int16s(self) -> list[int]:
        return [self.int16() for _ in range(self.count())]

    def int32s(self) -> list[int]:
        return [self.int32() & 0xFFFFFFFF for _ in range(self.count())]

    def end(self) -> None:
        if self._at != len(self._body):
            raise ProtocolViolation("a message is longer than its fields")


def startup_options(body: bytes) -> dict[str, str]:
    """Return the names and values of a startup message."""
    fields, found = MessageBody(body), dict[str, str]()
    while name := fields.text():
        found[name] = fields.text()
    fields.end()
    return found


# --- messages to the client -----------------------------------------------------------------------


def message(letter: str, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return letter.encode() + struct.pack("!i", len(body) + 4) + body


def zero_ended(text: str) -> bytes:
    return text.replace("\x00", "").encode("utf-8", "replace") + b"\x00"


PASSWORD_WANTED = message("R", struct.pack("!i", 3))
AUTHENTICATED = message("R", struct.pack("!i", 0))
PARSED, BOUND, CLOSED, NO_DATA = message("1"), message("2"), message("3"), message("n")
EMPTY, SUSPENDED = message("I"), message("s")


def parameter_status(name: str, value: str) -> bytes:
    return message("S", zero_ended(name), zero_ended(value))


def backend_key(process: int, secret: int) -> bytes:
    return message("K", struct.pack("!II", process, secret))


def ready(status: str) -> bytes:
    return message("Z", status.encode())


def complete(tag: str) -> bytes:
    return message("C", zero_ended(tag))


def parameter_description(oids: Sequence[int]) -> bytes:
    return message("t", struct.pack("!H", len(oids)), *(struct.pack("!I", oid) for oid in oids))


SIZES = {16: 1, 21: 2, 23: 4, 20: 8, 26: 4, 700: 4, 701: 8, 1082: 4, 1114: 8}
"""Bytes of a value by the OID of its type; -1 where they vary."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a result: its name and the OID of its type."""

    name: str
    oid: int


def row_description(fields: Sequence[Field], formats: Sequence[int]) -> bytes:
    parts = [struct.pack("!H", len(fields))]
    for field, form in zip(fields, formats, strict=True):
        facts = struct.pack("!IhIhih", 0, 0, field.oid, SIZES.get(field.oid, -1), -1, form)
        parts += [zero_ended(field.name), facts]
    return message("T", *parts)


def data_row(cells: Iterable[bytes | None]) -> bytes:
    parts, number = [b""], 0
    for cell in cells:
        number += 1
        parts.append(struct.pack("!i", -1) if cell is None else struct.pack("!i", len(cell)) + cell)
    parts[0] = struct.pack("!H", number)
    return message("D", *parts)


def error_response(error: WireError, severity: str = "ERROR") -> bytes:
    return _response("E", severity, error)


def notice_response(text: str) -> bytes:
    return _response("N", "NOTICE", WireError("00000", text))


def _response(letter: str, severity: str, error: WireError) -> bytes:
    fields = {"S": severity, "V": severity, "C": error.state, "M": error.text}
    if error.hint:
        fields["H"] = error.hint
    if error.place is not None:
        fields["P"] = str(error.place + 1)
    said = [code.encode() + zero_ended(text) for code, text in fields.items()]
    return message(letter, *said, b"\x00")
