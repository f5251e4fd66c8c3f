"""DB-API 2.0 (PEP 249): a table behind a server for pandas, polars and whatever takes a connection.

    connection = sulq.dbapi.connect("https://host/people", credits=20, purpose="dashboard")
    pandas.read_sql("SELECT city, COUNT(*) AS n FROM people GROUP BY city", connection)

A connection spends nothing unless credits and a purpose are given; then the server keeps what the
purpose has spent, and no new connection fills it up again. What was answered before is free.
"""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn, TypeVar

from sulq import client
from sulq.errors import InvalidQuery, SulqError
from sulq.wire import reply_columns

apilevel = "2.0"
threadsafety = 2  # threads may share connections
paramstyle = "qmark"

Row = tuple[Any, ...]
T = TypeVar("T")


class Warning(UserWarning):
    """Something to know that stopped nothing."""


class Error(Exception):
    """The root of the tree. `credits_spent`: what was charged before it; None: not known."""

    credits_spent: Fraction | None = Fraction(0)


class InterfaceError(Error):
    """The connection or cursor was used in a way that it does not have."""


class DatabaseError(Error):
    """Everything that the server says."""


class DataError(DatabaseError):
    """A parameter cannot be sent."""


class OperationalError(DatabaseError):
    """The statement is sound, but is not answered: by its price, by the rules, or for now."""


class IntegrityError(DatabaseError):
    """Never raised: nothing is written."""


class InternalError(DatabaseError):
    """Never raised."""


class ProgrammingError(DatabaseError):
    """The statement cannot be understood, or cannot be proved safe."""


class NotSupportedError(DatabaseError):
    """PEP 249 has this, sulq has not."""


class TypeObject(frozenset[str]):
    """A kind of column, equal to each of its type codes."""

    def __eq__(self, other: object) -> bool:
        return other in self if isinstance(other, str) else super().__eq__(other)

    __hash__ = frozenset.__hash__


STRING = TypeObject({"string"})
NUMBER = TypeObject({"int", "float"})
DATETIME = TypeObject({"date", "datetime"})
BINARY = TypeObject()
ROWID = TypeObject()

Date, Time, Timestamp, Binary = datetime.date, datetime.time, datetime.datetime, bytes
DateFromTicks = datetime.date.fromtimestamp
TimestampFromTicks = datetime.datetime.fromtimestamp


def TimeFromTicks(ticks: float) -> datetime.time:  # noqa: N802
    return datetime.datetime.fromtimestamp(ticks).time()


def connect(
    url: str,
    *,
    token: str | None = None,
    credits: Fraction | int | float = 0,
    purpose: str | None = None,
    intervals: bool = False,
    confidence: float = 0.95,
    **options: Any,
) -> Connection:
    """Connect to the table at `https://host/people`, in the token's name (else SULQ_TOKEN's).

    `credits` is the most that `purpose` may ever spend, whatever connects in its name. With
    `intervals` an aggregate `n` comes with the columns n_low and n_high, at this confidence.
    `options` are those of `sulq.connect`: timeout, retries, verify, insecure.
    """
    if bool(credits) != (purpose is not None):
        raise InterfaceError(
            f"credits={credits!r:.40} and purpose={purpose!r:.40}: want both or neither; a"
            " connection spends only under a name, as in credits=20, purpose='dashboard'"
        )
    terms: dict[str, Any] = {"confidence": confidence, "max_credits": 0}
    if purpose is not None:
        terms |= {"max_credits": None, "purpose": purpose, "purpose_credits": credits}
    found = _raising(lambda: client.connect(url, token=token, **options))
    return Connection(found, terms, intervals)


class Connection:
    """One table, asked in the name of one token and at most one purpose."""

    Warning, Error, InterfaceError = Warning, Error, InterfaceError
    DatabaseError, DataError, OperationalError = DatabaseError, DataError, OperationalError
    IntegrityError, InternalError = IntegrityError, InternalError
    ProgrammingError, NotSupportedError = ProgrammingError, NotSupportedError

    def __init__(self, remote: client.Remote, terms: Mapping[str, Any], intervals: bool) -> None:
        self.remote, self.intervals = remote, intervals
        self._terms, self._open = dict(terms), True
        self.spent = Fraction(0)
        """Credits that statements of this connection have cost since the last commit."""

    def cursor(self) -> Cursor:
        self.check_open()
        return Cursor(self)

    def select(self, text: str, params: Any) -> Any:
        """Return the server's reply to a statement, or raise what PEP 249 calls its refusal."""
        self.check_open()
        reply = _raising(lambda: self.remote.select(text, params=params, **self._terms))
        self.spent += reply.credits_exact
        return reply

    def commit(self) -> None:
        """Do nothing: an answer is charged for good when it is given."""
        self.check_open()
        self.spent = Fraction(0)

    def rollback(self) -> None:
        """Warn that charges stand, if there were some: what was told cannot be untold."""
        self.check_open()
        if self.spent:
            warnings.warn(
                f"nothing is rolled back: {float(self.spent):g} credits were charged for answers"
                " that were given, and stand",
                Warning,
                stacklevel=2,
            )
        self.spent = Fraction(0)

    def check_open(self) -> None:
        if not self._open:
            raise InterfaceError("this connection is closed; connect again")

    def close(self) -> None:
        """Close the connection; what its purpose has spent stays spent."""
        if self._open:
            self._open = False
            self.remote.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Cursor:
    """One statement at a time, and its rows."""

    arraysize = 1
    lastrowid = None

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.description: list[tuple[Any, ...]] | None = None
        self.rowcount = -1
        self.credits = Fraction(0)
        """What the last statement cost."""
        self.notes: tuple[str, ...] = ()
        """What the server said about the last answer."""
        self._rows: list[Row] | None = None
        self._next, self._open = 0, True

    def execute(self, operation: str, parameters: Any = None) -> Cursor:
        """Ask a SELECT. `parameters` are the values of its ?, %s or $1, or a dict for :name."""
        self._check_open()
        self.description, self._rows, self.rowcount = None, None, -1
        reply = self.connection.select(operation, _sendable(parameters))
        columns = reply_columns(reply, self.connection.intervals)
        codes = _type_codes(reply, self.connection.intervals)
        cells = [
            [_moment(cell, code) for cell in column]
            for column, code in zip(columns.values(), codes, strict=True)
        ]
        self._rows, self._next = list(zip(*cells, strict=True)), 0
        self.description = [
            (name, code, None, None, None, None, True)
            for name, code in zip(columns, codes, strict=True)
        ]
        self.rowcount, self.credits = len(self._rows), reply.credits_exact
        self.notes = tuple(reply.notes)
        return self

    def executemany(self, operation: str, rows: Sequence[Any]) -> NoReturn:
        """Refuse: each row of parameters would be a question of its own, with its own price."""
        raise NotSupportedError(
            "executemany: each row of parameters is a question with a price of its own; call"
            " execute for each, or ask all of it in one SELECT with GROUP BY"
        )

    def fetchone(self) -> Row | None:
        found = self.fetchmany(1)
        return found[0] if found else None

    def fetchmany(self, size: int | None = None) -> list[Row]:
        rows, start = self._fetched(), self._next
        self._next = min(len(rows), start + (self.arraysize if size is None else size))
        return rows[start : self._next]

    def fetchall(self) -> list[Row]:
        return self.fetchmany(len(self._fetched()))

    def _fetched(self) -> list[Row]:
        self._check_open()
        if self._rows is None:
            raise InterfaceError("there are no rows to fetch; execute a SELECT first")
        return self._rows

    def _check_open(self) -> None:
        self.connection.check_open()
        if not self._open:
            raise InterfaceError("this cursor is closed; make another one")

    def __iter__(self) -> Iterator[Row]:
        return iter(self.fetchone, None)

    def setinputsizes(self, sizes: object) -> None:
        """Do nothing, as PEP 249 allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing, as PEP 249 allows."""

    def close(self) -> None:
        self._open, self._rows = False, None

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _raising(work: Callable[[], T]) -> T:
    """Return what the work returns; raise what it raises as PEP 249 names it."""
    try:
        return work()
    except SulqError as error:
        text = str(error)
        if getattr(error, "code", "") == "price_changed":  # of max_credits = 0: see `connect`
            price = error.about.get("credits", "")
            text = (
                f"this costs {float(Fraction(price or 1)):g} credits, and this connection spends"
                " none: only public facts and what you were told before are free; connect with"
                " credits= and purpose= to let it spend"
            )
        kind = OperationalError
        if isinstance(error, InvalidQuery):
            kind = ProgrammingError  # type: ignore[assignment]
        raised = kind(text)
        raised.credits_spent = error.credits_spent
        raise raised from error


def _sendable(parameters: Any) -> Any:
    """Return parameters as JSON has them: days and times as text."""
    if parameters is None:
        return None
    if isinstance(parameters, Mapping):
        return {str(name): _plain(value) for name, value in parameters.items()} or None
    if isinstance(parameters, str) or not isinstance(parameters, Sequence):
        raise ProgrammingError(
            f"parameters: want a list, a tuple or a dict, got {type(parameters).__name__}"
        )
    return [_plain(value) for value in parameters] or None


def _plain(value: Any) -> Any:
    if hasattr(value, "item") and callable(value.item):  # a scalar of NumPy
        value = value.item()
    match value:
        case None | bool() | int() | float() | str():
            return value
        case datetime.datetime() | datetime.date():
            return value.isoformat()
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
    raise DataError(
        f"a parameter of type {type(value).__name__} cannot be sent; want a text, a number, a"
        " condition, a day, a time or None"
    )


def _moment(cell: Any, code: str) -> Any:
    """Return a cell; a day or a time, which travels as text, as such."""
    if not isinstance(cell, str) or code not in ("date", "datetime"):
        return cell
    moment = datetime.datetime.fromisoformat(cell)
    return moment.date() if code == "date" else moment


TYPE_CODES = {
    "integer": "int",
    "number": "float",
    "text": "string",
    "truth": "bool",
    "date": "date",
    "datetime": "datetime",
}
"""What PEP 249's type codes are here, by the type of a column of the reply."""


def _type_codes(reply: Any, intervals: bool) -> list[str]:
    """Return the type code of each column; of its statement and the schema, never of an answer."""
    codes: list[str] = []
    for column in reply.columns:
        code = TYPE_CODES[column.type]
        codes.append(code)
        if intervals and not column.is_key:
            codes += [code if code in ("date", "datetime") else "float"] * 2
    return codes
