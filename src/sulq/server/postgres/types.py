"""PostgreSQL's types: which OID a column has, and its values as text and in binary."""

from __future__ import annotations

import datetime
import math
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from sulq.kernel.schema.columns import Category, Column, Flag, Number
from sulq.server.postgres.protocol import WireError

BOOL, CHAR, NAME, INT8, INT2, INT4, TEXT, OID = 16, 18, 19, 20, 21, 23, 25, 26
FLOAT4, FLOAT8, UNKNOWN, BPCHAR, VARCHAR, DATE = 700, 701, 705, 1042, 1043, 1082
TIME, TIMESTAMP, TIMESTAMPTZ, NUMERIC, VOID = 1083, 1114, 1184, 1700, 2278
ARRAYS = {TEXT: 1009, INT2: 1005, INT4: 1007, INT8: 1016, OID: 1028, BOOL: 1000, FLOAT8: 1022}
MEMBERS = {array: member for member, array in ARRAYS.items()}
OF_RESULTS = {
    "integer": INT8,
    "number": FLOAT8,
    "text": TEXT,
    "truth": BOOL,
    "date": DATE,
    "datetime": TIMESTAMP,
}
"""The type of each kind of result column."""

EPOCH = datetime.datetime(2000, 1, 1)
SECOND = 1_000_000


def type_of(column: Column) -> int:
    """Return the OID of a declared column."""
    match column:
        case Flag():
            return BOOL
        case Category(integers=whole):
            return INT8 if whole else TEXT
        case Number(kind="date"):
            return DATE
        case Number(kind="datetime"):
            return TIMESTAMP
    whole = column.lattice is not None and column.lattice.denominator == 1
    return INT8 if whole else FLOAT8


# --- values that leave ----------------------------------------------------------------------------


def fitted(value: Any, oid: int) -> Any:
    """Return a cell of a reply as the Python value of its type: whole counts, days from text."""
    if value is None:
        return None
    if oid == INT8:
        return round(value)
    if oid == FLOAT8:
        return float(value)
    if oid in (DATE, TIMESTAMP) and isinstance(value, str):
        moment = datetime.datetime.fromisoformat(value)
        return moment.date() if oid == DATE else moment.replace(tzinfo=None)
    return value


def text_of(value: Any, oid: int) -> bytes:
    """Return a value as PostgreSQL writes it."""
    if oid in MEMBERS:
        return _array_text(value, MEMBERS[oid]).encode()
    if oid == BOOL:
        return b"t" if value else b"f"
    if oid in (FLOAT4, FLOAT8):
        return _float_text(float(value)).encode()
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ").encode()
    return str(value).encode("utf-8", "replace")


def _float_text(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return repr(number).removesuffix(".0")


def _array_text(values: list[Any], member: int) -> str:
    def one(value: Any) -> str:
        if value is None:
            return "NULL"
        text = text_of(value, member).decode()
        if member != TEXT:
            return text
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    return "{" + ",".join(one(value) for value in values) + "}"


def _packed(form: str) -> Callable[[Any], bytes]:
    return lambda value: struct.pack(form, value)


def _days(day: datetime.date) -> bytes:
    return struct.pack("!i", (day - EPOCH.date()).days)


def _microseconds(moment: datetime.datetime) -> bytes:
    since = moment.replace(tzinfo=None) - EPOCH
    return struct.pack("!q", since // datetime.timedelta(microseconds=1))


_BINARY: dict[int, Callable[[Any], bytes]] = {
    BOOL: lambda value: b"\x01" if value else b"\x00",
    INT2: _packed("!h"),
    INT4: _packed("!i"),
    INT8: _packed("!q"),
    OID: _packed("!I"),
    FLOAT4: _packed("!f"),
    FLOAT8: _packed("!d"),
    DATE: _days,
    TIMESTAMP: _microseconds,
}


def binary_of(value: Any, oid: int) -> bytes:
    """Return a value in the binary format of its type; text is the same in both."""
    if oid in MEMBERS:
        return _array_binary(value, MEMBERS[oid])
    make = _BINARY.get(oid)
    return text_of(value, oid) if make is None else make(value)


def _array_binary(values: list[Any], member: int) -> bytes:
    nulls = any(value is None for value in values)
    if not values:
        return struct.pack("!iiI", 0, 0, member)
    parts = [struct.pack("!iiIii", 1, int(nulls), member, len(values), 1)]
    for value in values:
        if value is None:
            parts.append(struct.pack("!i", -1))
        else:
            made = binary_of(value, member)
            parts.append(struct.pack("!i", len(made)) + made)
    return b"".join(parts)


# --- parameters that come -------------------------------------------------------------------------

WHOLE = (INT2, INT4, INT8, OID)


def read_parameter(given: bytes | None, oid: int, binary: bool) -> Any:
    """Return a parameter as a number, a truth or a text; refuse what is no value of its type."""
    if given is None:
        return None
    try:
        return _read_binary(given, oid) if binary else _read_text(given.decode(), oid)
    except (ValueError, OverflowError, struct.error, ArithmeticError):
        raise WireError("22P02", f"a parameter is no value of its type (OID {oid})") from None


def _read_text(text: str, oid: int) -> Any:
    if oid == BOOL:
        spelled = text.strip().lower()
        if spelled in ("t", "true", "1", "on", "yes", "y"):
            return True
        if spelled in ("f", "false", "0", "off", "no", "n"):
            return False
        raise ValueError(oid)
    if oid in WHOLE:
        return int(text)
    if oid in (FLOAT4, FLOAT8, NUMERIC):
        return _finite(Decimal(text))
    if oid == DATE:
        return datetime.date.fromisoformat(text.strip()[:10]).isoformat()  # JDBC adds a time zone
    if oid in (TIMESTAMP, TIMESTAMPTZ):
        moment = datetime.datetime.fromisoformat(text.strip())
        aware = moment if moment.tzinfo is None else moment.astimezone(datetime.UTC)
        return aware.replace(tzinfo=None).isoformat(" ")
    return text


def _read_binary(given: bytes, oid: int) -> Any:
    match oid:
        case 16:
            return struct.unpack("!?", given)[0]
        case 21 | 23 | 20 | 26:
            form = {INT2: "!h", INT4: "!i", INT8: "!q", OID: "!I"}[oid]
            return struct.unpack(form, given)[0]
        case 700 | 701:
            return _finite(Decimal(struct.unpack("!f" if oid == FLOAT4 else "!d", given)[0]))
        case 1082:
            days = struct.unpack("!i", given)[0]
            return (EPOCH + datetime.timedelta(days=days)).date().isoformat()
        case 1114 | 1184:
            passed = struct.unpack("!q", given)[0]
            return (EPOCH + datetime.timedelta(microseconds=passed)).isoformat(" ")
        case 1700:
            return _finite(_numeric(given))
        case 25 | 1043 | 1042 | 19 | 18 | 705 | 0:
            return given.decode()
    raise WireError(
        "0A000", f"a parameter of type OID {oid} in binary is not understood; send it as text"
    )


def _numeric(given: bytes) -> Decimal:
    """Read PostgreSQL's binary numeric: digits to the base 10,000."""
    digits, weight, sign, _ = struct.unpack("!hhHh", given[:8])
    if sign not in (0, 0x4000):
        raise ValueError("not a number")
    found = Decimal(0)
    for place, digit in enumerate(struct.unpack(f"!{digits}h", given[8 : 8 + 2 * digits])):
        found += Decimal(digit).scaleb(4 * (weight - place))
    return -found if sign else found


def _finite(number: Decimal) -> int | float:
    if not number.is_finite():
        raise ValueError("not finite")
    whole = number == number.to_integral_value() and abs(number) < 2**63
    return int(number) if whole else float(number)
