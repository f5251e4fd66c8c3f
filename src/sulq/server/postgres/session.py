"""One connection of the PostgreSQL door, from its first byte to its last.

It is a client of the server's question path: a SELECT over a table is a `SqlBody`, prepared and
answered by the functions that answer POST /sql, so that roles, clock, ledger and purposes are the
same. Only Execute asks; Parse and Describe look at prices and types, which reads no row. What a
client does while it waits (cancel, leave, fetch a part) changes neither the charge nor the moment
at which the reply leaves.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

from pydantic import ValidationError

from sulq.errors import Reason, SulqError
from sulq.formatting import OUTWARDS, moment_of
from sulq.kernel.schema.columns import Column, Schema
from sulq.kernel.schema.study import Study
from sulq.server.auth.rate_limit import too_often
from sulq.server.auth.tokens import Caller, Role
from sulq.server.errors import HttpProblem, internal, problem_of
from sulq.server.executor import Workers, charged, name_of
from sulq.server.postgres import protocol, statements
from sulq.server.postgres.catalogue import (
    DEFAULTS,
    REPORTED,
    Catalogue,
    CatalogueProcess,
    Rewriting,
)
from sulq.server.postgres.protocol import (
    ConnectionEnded,
    Field,
    MessageBody,
    MessageReader,
    ProtocolViolation,
    WireError,
)
from sulq.server.postgres.types import (
    DATE,
    FLOAT8,
    INT8,
    OF_RESULTS,
    TEXT,
    TIMESTAMP,
    binary_of,
    fitted,
    read_parameter,
    text_of,
    type_of,
)
from sulq.server.service import questions
from sulq.server.service.session import Service, TableSession
from sulq.wire import SqlBody, SqlReply, reply_columns

T = TypeVar("T")
IDLE = 3_600.0
"""Seconds that a connection may be silent between two messages."""
LAST_WRITE = 60.0
"""Seconds in which a client must take what is sent to it."""
MOST_NAMED = 200
"""Prepared statements, and portals, of one connection."""
MOST_TEXT = 200_000
"""Characters of all prepared statements of one connection: each keeps its tree."""
MOST_HELD = 500_000
"""Cells of answers that portals of one connection hold back, before another one is asked."""
TOLD_ROWS = 5
"""ResultSet whose intervals a NOTICE tells."""
STANDS = "charges stand: an answer that was given cannot be taken back"
ASKERS = (Role.OWNER, Role.ANALYST)

SPEND_LIKE_THIS = (
    "to let this connection spend, name a purpose and the most that it may ever spend:"
    " options='-c sulq.credits=20 -c sulq.purpose=dashboard', or SET sulq.credits = 20; SET"
    " sulq.purpose = 'dashboard'"
)


@dataclass(slots=True)
class ResultSet:
    """What a statement gives: columns and rows, or only the tag of a control word."""

    fields: list[Field] = field(default_factory=list)
    rows: list[Sequence[Any]] = field(default_factory=list)
    tag: str = ""
    notices: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Prepared:
    """A statement that Parse has named."""

    statement: statements.Statement
    oids: list[int]
    columns: list[Column | None]
    fields: list[Field] | None = None
    """Its columns, once they were described."""
    described: tuple[bool, ...] | None = None
    """The settings that its columns were described under."""
    size: int = 0
    """Characters of its text."""
    counted: bool = False
    """True if reading or describing it has counted as a request and it was not executed since."""


@dataclass(slots=True)
class Portal:
    """A statement with its parameters; its rows once it was executed, and how many have left."""

    prepared: Prepared
    params: list[Any]
    formats: list[int]
    result: ResultSet | None = None
    sent: int = 0


class SessionSettings:
    """What a session has set; sulq's own settings are checked."""

    def __init__(self) -> None:
        self.said: dict[str, str] = {}
        self.credits, self.purpose = Fraction(0), ""
        self.intervals = self.declared = False
        self.confidence = 0.95

    def set(self, name: str, value: str) -> None:
        """Take a setting; an unknown one is kept and has no effect."""
        known = {each.casefold(): each for each in DEFAULTS}
        name = known.get(name.casefold(), name.casefold())
        try:
            self._apply(name, value)
        except (ValueError, ArithmeticError):
            raise WireError(
                "22023", f"{name} = {value[:60]!r} is not understood", LIKE[name]
            ) from None
        if name.startswith("sulq.") and name not in OWN:
            raise WireError(
                "42704",
                f'unrecognized configuration parameter "{name[:60]}"',
                f"there are {', '.join(OWN)}",
            )
        if len(self.said) > MOST_NAMED:
            raise WireError("54000", f"a session has at most {MOST_NAMED} settings")
        self.said[name] = value

    def _apply(self, name: str, value: str) -> None:
        match name:
            case "sulq.credits":
                self.credits = _credits(value)
            case "sulq.purpose":
                self.purpose = value
            case "sulq.intervals":
                self.intervals = {"on": True, "off": False}.get(value.lower(), value == "true")
                if value.lower() not in ("on", "off", "true", "false"):
                    raise ValueError(value)
            case "sulq.filters":
                if value not in ("declared", "asked"):
                    raise ValueError(value)
                self.declared = value == "declared"
            case "sulq.confidence":
                self.confidence = float(value)
                if not 0 < self.confidence < 1:
                    raise ValueError(value)
            case "client_encoding":
                if value.upper().replace("-", "").strip("'") not in (
                    "UTF8",
                    "UNICODE",
                    "SQL_ASCII",
                ):
                    raise ValueError(value)

    def reset(self, name: str = "") -> None:
        """Forget one setting; without a name all but sulq's own, which a pool must not lose."""
        if name:
            lower = name.casefold()
            if lower in OWN:
                self._apply(lower, OWN[lower])
            self.said = {each: v for each, v in self.said.items() if each.casefold() != lower}
            return
        self.said = {each: v for each, v in self.said.items() if each in OWN}

    def show(self, name: str) -> str:
        known = {each.casefold(): value for each, value in self.all().items()}
        if name.casefold() not in known:
            raise WireError("42704", f'unrecognized configuration parameter "{name[:60]}"')
        return known[name.casefold()]

    def all(self) -> dict[str, str]:
        """Return every setting with its value."""
        return {**DEFAULTS, **OWN, **self.said}

    def terms(self) -> dict[str, Any]:
        """Return how a question is paid: 0 credits unless a purpose is named."""
        terms: dict[str, Any] = {"confidence": self.confidence, "dialect": "postgres"}
        if bool(self.credits) != bool(self.purpose):
            raise WireError(
                "22023", "sulq.credits and sulq.purpose: want both or neither", SPEND_LIKE_THIS
            )
        if not self.purpose:
            return terms | {"max_credits": Fraction(0)}
        return terms | {"purpose": self.purpose, "purpose_credits": self.credits}


OWN = {
    "sulq.credits": "0",
    "sulq.purpose": "",
    "sulq.intervals": "off",
    "sulq.confidence": "0.95",
    "sulq.filters": "asked",
}
"""Our own settings, as a connection begins."""
LIKE = {
    "sulq.credits": "want a number, such as 20 or 1/2",
    "sulq.intervals": "want on or off",
    "sulq.filters": "want declared or asked",
    "sulq.confidence": "want a number between 0 and 1, such as 0.95",
    "client_encoding": "want UTF8",
}


def _credits(value: str) -> Fraction:
    if len(value) > 50 or "e" in value.lower():
        raise ValueError(value)
    found = Fraction(value)
    if found < 0:
        raise ValueError(value)
    return found


class WireSession:
    """The state of one connection and what it does with each message."""

    def __init__(
        self,
        service: Service,
        workers: Workers,
        catalogue: CatalogueProcess,
        reader: MessageReader,
        writer: asyncio.StreamWriter,
        unforeseen: Callable[[Exception], None],
    ) -> None:
        """`unforeseen` is told of what goes wrong without being a refusal, for the log."""
        self.service, self.workers, self._catalogue = service, workers, catalogue
        self._reader, self._writer, self._unforeseen = reader, writer, unforeseen
        self.settings = SessionSettings()
        self.caller: Caller | None = None
        self._token, self._database, self._user = "", "", ""
        self._prepared: dict[str, Prepared] = {}
        self._portals: dict[str, Portal] = {}
        self._transaction = "I"
        self._spent = Fraction(0)
        self._skipping = False
        self.busy = False

    # --- connecting -----------------------------------------------------------------------------

    def authenticate(self, token: str) -> Caller:
        """Return who holds a token, if it may ask a table here."""
        caller = self.service.access.caller(token)
        if caller is None:
            raise WireError(
                "28P01",
                "no token that is good here was given as the password; ask the owner for a new one"
                " (`sulq grant`)",
                "the password is the token, sulq_...",
            )
        self._token, self.caller = token, caller
        if not self.tables():
            raise WireError(
                "42501", f"this is not for the role {caller.role}", "use an analyst's token"
            )
        return caller

    def welcome(self, options: Mapping[str, str]) -> None:
        """Begin, with the settings of the startup message."""
        assert self.caller is not None  # noqa: S101
        self._user = self.caller.name
        self._database = options.get("database") or options.get("user", "sulq")
        for name, value in _given_options(options):
            self.settings.set(name, value)
        self.settings.terms()
        self.send(protocol.AUTHENTICATED)
        said = {name: self.settings.show(name) for name in REPORTED}
        said["session_authorization"] = self._user
        for name, value in said.items():
            self.send(protocol.parameter_status(name, value))
        self.send(protocol.backend_key(secrets.randbits(31), secrets.randbits(32)))
        self.send(protocol.ready(self._transaction))

    def check_token(self, prepared: Prepared | None = None) -> Caller:
        """Return who asks, if the token is still good and has not asked too often.

        Reading a statement is work, so it counts as a request. Describing it and executing it for
        the first time belong to the same request; each execution after that is another.
        """
        access = self.service.access
        caller = access.caller(self._token)
        if caller is None:
            raise FatalError(
                WireError("28P01", "the token of this connection is not good any more")
            )
        self.caller = caller
        if prepared is not None and prepared.counted:
            return caller
        if (wait := access.allow(caller)) and caller.rate is not None:
            raise wire_error(too_often(wait, caller.rate))
        return caller

    def tables(self) -> dict[str, Schema]:
        """Return the tables that the token may ask, by name, with their public schemas."""
        return {name: schema for name, (_, schema) in self._relations().items()}

    def _relations(self) -> dict[str, tuple[str, Schema]]:
        """Return by name the relations that the token may ask: what is published under which name,
        and its public schema. A study is its tables; a name that is taken is not given again."""
        assert self.caller is not None  # noqa: S101
        found: dict[str, tuple[str, Schema]] = {}
        of_studies: dict[str, tuple[str, Schema]] = {}
        for name in self.service.tables.names():
            session = self.service.session(self.caller, name)
            if not session.is_reached or session.caller.role not in ASKERS:
                continue
            schema = session.reached.schema
            if not isinstance(schema, Study):
                found[name] = (name, schema)
                continue
            for table in schema.names:
                of_studies.setdefault(table, (name, schema.relation(table)))
        return of_studies | found

    def _session_of(self, caller: Caller, relation: str) -> TableSession:
        """Return what is published with a relation, for somebody who asks about it."""
        return self.service.session(caller, self._relations()[relation][0])

    def send(self, message: bytes) -> None:
        self._writer.write(message)

    async def flush(self) -> None:
        try:
            async with asyncio.timeout(LAST_WRITE):
                await self._writer.drain()
        except (TimeoutError, OSError):
            raise ConnectionEnded from None

    # --- messages -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve messages until the client leaves."""
        while True:
            letter, body = await self._reader.message(IDLE)
            if letter == "X":
                return
            self.busy = True
            try:
                await self._message(letter, MessageBody(body))
            finally:
                self.busy = False
            await self.flush()

    async def _message(self, letter: str, body: MessageBody) -> None:
        if self._skipping and letter != "S":
            return
        try:
            handler = getattr(self, HANDLERS.get(letter, ""), None)
            if handler is None:
                raise ProtocolViolation("this is no message of the protocol, version 3")
            await handler(body)
        except (ProtocolViolation, FatalError, ConnectionEnded):
            raise
        except Exception as error:  # noqa: BLE001 - one constant sentence for all that is unforeseen
            self._failed(error)
            if letter == "Q":
                self.send(protocol.ready(self._transaction))
            else:
                self._skipping = True

    def _failed(self, error: Exception) -> None:
        if not isinstance(error, (WireError, SulqError, HttpProblem)):
            self._unforeseen(error)
        self.send(protocol.error_response(wire_error(error)))
        if self._transaction == "T":
            self._transaction = "E"

    async def _sync(self, body: MessageBody) -> None:
        """End a sequence of the extended protocol, with or without an error."""
        self._skipping = False
        self.send(protocol.ready(self._transaction))

    async def _nothing(self, body: MessageBody) -> None:
        """Flush, which each message does; and parts of a COPY that was refused."""

    async def _call(self, body: MessageBody) -> None:
        raise WireError("0A000", "function calls are refused; write a SELECT")

    async def _query(self, body: MessageBody) -> None:
        """The simple protocol: all statements of a text, one after the other."""
        text = body.text()
        body.end()
        self.check_token()
        found = await self._free(statements.split, text)
        if not found:
            self.send(protocol.EMPTY)
        for number, (start, each) in enumerate(found):
            if number:
                self.check_token()
            try:
                await self._one_of_many(each)
            except (WireError, SulqError, HttpProblem) as error:
                raise _moved_on(error, start) from None
            await self.flush()  # many answers do not wait in memory for a client that takes none
        self.send(protocol.ready(self._transaction))

    async def _one_of_many(self, text: str) -> None:
        portal = Portal(await self._read(text, []), [], [])
        portal.prepared.counted = True
        result = await self._run(portal)
        if result.fields:
            self.send(protocol.row_description(result.fields, [0] * len(result.fields)))
        self._send_rows(portal, result, 0)

    async def _parse(self, body: MessageBody) -> None:
        name, text, oids = body.text(), body.text(), body.int32s()
        body.end()
        if name and (name in self._prepared or len(self._prepared) >= MOST_NAMED):
            raise WireError("42P05", "this name is taken, or too many statements are prepared")
        self.check_token()
        found = await self._free(statements.split, text)
        if len(found) > 1:
            raise WireError("42601", "a prepared statement is one statement, without `;` inside")
        held = sum(each.size for key, each in self._prepared.items() if key != name)
        if held + len(text) > MOST_TEXT:
            raise WireError(
                "53200",
                f"prepared statements of a connection have at most {MOST_TEXT:,} characters",
                "close some (DEALLOCATE ALL)",
            )
        prepared = await self._read(found[0][1] if found else "", oids)
        prepared.size = len(text)
        prepared.counted = True
        self._prepared[name] = prepared
        self.send(protocol.PARSED)

    async def _read(self, text: str, oids: list[int]) -> Prepared:
        tables = self.tables()
        statement = await self._free(statements.read, text, tables)
        tree = getattr(statement, "tree", None)
        if isinstance(statement, statements.DeclaredBounds):
            tree = statement.question.tree
        schema = tables.get(getattr(statement, "table", ""))
        known, columns = list(oids), list[Column | None]()
        found = statements.parameters_of(tree)
        for number in range(1, max([len(oids), *found], default=0) + 1):
            guess = statements.inferred(found[number], schema) if number in found else (TEXT, None)
            if number > len(known):
                known.append(0)
            known[number - 1] = known[number - 1] or guess[0]
            columns.append(guess[1])
        return Prepared(statement, known, columns)

    async def _bind(self, body: MessageBody) -> None:
        name, source = body.text(), body.text()
        formats = body.int16s()
        values = [body.value() for _ in range(body.count())]
        wanted = body.int16s()
        body.end()
        prepared = self._prepared.get(source)
        if prepared is None:
            raise WireError("26000", f'prepared statement "{source[:60]}" does not exist')
        if len(values) != len(prepared.oids):
            raise WireError(
                "08P01", f"got {len(values)} parameters, the statement has {len(prepared.oids)}"
            )
        if name and len(self._portals) >= MOST_NAMED:
            raise WireError("54000", f"a connection has at most {MOST_NAMED} portals")
        binary = [_format(formats, place) == 1 for place in range(len(values))]
        params = [
            read_parameter(value, oid, is_binary)
            for value, oid, is_binary in zip(values, prepared.oids, binary, strict=True)
        ]
        self._portals[name] = Portal(prepared, params, wanted)
        self.send(protocol.BOUND)

    async def _describe(self, body: MessageBody) -> None:
        """Tell types and names: of a question by its plan, which costs nothing."""
        kind, name = body.take(1), body.text()
        body.end()
        if kind == b"S":
            prepared = self._prepared.get(name)
            if prepared is None:
                raise WireError("26000", f'prepared statement "{name[:60]}" does not exist')
            self.send(protocol.parameter_description(prepared.oids))
            params = [
                statements.sample(oid, column)
                for oid, column in zip(prepared.oids, prepared.columns, strict=True)
            ]
            fields, formats = await self._fields(prepared, params), list[int]()
        else:
            portal = self._portal(name)
            done = portal.result
            formats = portal.formats
            fields = (
                await self._fields(portal.prepared, portal.params) if done is None else done.fields
            )
        if not fields:
            self.send(protocol.NO_DATA)
            return
        chosen = [_format(formats, place) for place in range(len(fields))]
        self.send(protocol.row_description(fields, chosen))

    async def _execute(self, body: MessageBody) -> None:
        name, most = body.text(), body.int32()
        body.end()
        portal = self._portal(name)
        if isinstance(portal.prepared.statement, statements.Nothing):
            self.send(protocol.EMPTY)
            return
        result = portal.result
        if result is None:
            result = portal.result = await self._run(portal)
        self._send_rows(portal, result, max(0, most))

    def _check_room(self) -> None:
        """Refuse to ask while portals hold back too much: what is asked must be kept until sent."""
        results = [portal.result for portal in self._portals.values() if portal.result is not None]
        if sum(len(each.rows) * len(each.fields) for each in results) > MOST_HELD:
            raise WireError(
                "53200",
                f"cursors and portals of a connection hold back more than {MOST_HELD:,} cells",
                "fetch what is left, or close some (CLOSE ALL); nothing was charged",
            )

    def _portal(self, name: str) -> Portal:
        found = self._portals.get(name)
        if found is None:
            raise WireError("34000", f'portal "{name[:60]}" does not exist')
        return found

    async def _close(self, body: MessageBody) -> None:
        kind, name = body.take(1), body.text()
        body.end()
        held: dict[str, Any] = self._prepared if kind == b"S" else self._portals
        held.pop(name, None)
        self.send(protocol.CLOSED)

    def _send_rows(self, portal: Portal, result: ResultSet, most: int) -> None:
        """Send the next rows of a portal, all where `most` is 0, and what has happened."""
        for notice in result.notices:
            self.send(protocol.notice_response(notice))
        result.notices = []
        start = portal.sent
        end = min(len(result.rows), start + most) if most else len(result.rows)
        makers: list[Callable[[Any, int], bytes]] = [
            binary_of if _format(portal.formats, place) == 1 else text_of
            for place in range(len(result.fields))
        ]
        for row in result.rows[start:end]:
            self.send(
                protocol.data_row(
                    None if cell is None else make(cell, each.oid)
                    for cell, each, make in zip(row, result.fields, makers, strict=True)
                )
            )
        portal.sent = end
        if end < len(result.rows):
            self.send(protocol.SUSPENDED)
        else:
            self.send(protocol.complete(result.tag or f"SELECT {end - start}"))
            result.rows, portal.sent = [], 0

    # --- statements -----------------------------------------------------------------------------

    async def _free(self, work: Callable[..., T], *given: Any) -> T:
        """Blocking work that reads no row, off the event loop."""
        assert self.caller is not None  # noqa: S101
        return await self.workers.pages.run(name_of(self.caller), work, *given)

    async def _fields(self, prepared: Prepared, params: list[Any]) -> list[Field]:
        """Return the columns that a statement will have, without asking it."""
        if isinstance(prepared.statement, statements.Control):
            return await self._described(prepared.statement, params)
        shown = self._shown(prepared.statement)
        if prepared.fields is None or prepared.described != shown:
            self.check_token(prepared)  # a look at prices counts as over HTTP
            prepared.counted = False  # who looks again after a refusal is counted again
            prepared.fields = await self._described(prepared.statement, params)
            prepared.described, prepared.counted = shown, True
        return prepared.fields

    def _shown(self, statement: statements.Statement) -> tuple[bool, ...]:
        """Return the settings that decide which columns a statement has."""
        match statement:
            case statements.Question():
                return (self.settings.intervals,)
            case statements.DeclaredBounds():
                return self.settings.intervals, self.settings.declared
        return ()

    async def _described(self, statement: statements.Statement, params: list[Any]) -> list[Field]:
        match statement:
            case statements.Question():
                return await self._question_fields(statement, params)
            case statements.DeclaredBounds(question=question) if not self.settings.declared:
                return await self._question_fields(question, params)
            case statements.Control(word="SHOW", words=words):
                return self._show(words).fields
            case statements.Control(word="FETCH", words=words):
                return await self._fields_of_cursor(words)
            case statements.Control() | statements.Nothing():
                return []
        return (await self._looked_up(statement, params)).fields

    async def _fields_of_cursor(self, words: Sequence[str]) -> list[Field]:
        portal = self._portal(_cursor(words)[0])
        return await self._fields(portal.prepared, portal.params)

    async def _question_fields(
        self, question: statements.Question, params: list[Any]
    ) -> list[Field]:
        assert self.caller is not None  # noqa: S101
        session = self._session_of(self.caller, question.table)
        body = self._body(question, params)
        columns = await self._free(questions.sql_columns, session, body)
        made: list[Field] = []
        for column in columns:
            oid = OF_RESULTS[column.type]
            made.append(Field(column.name, oid))
            if self.settings.intervals and not column.is_key:
                ends = oid if oid in (DATE, TIMESTAMP) else FLOAT8
                made += [Field(f"{column.name}_{end}", ends) for end in ("low", "high")]
        return made

    async def _run(self, portal: Portal) -> ResultSet:
        """Execute a statement."""
        statement = portal.prepared.statement
        caller = self.check_token(portal.prepared)
        portal.prepared.counted = False
        self._check_description(portal.prepared)
        self._check_room()
        if self._transaction == "E" and not _ends(statement):
            raise WireError(
                "25P02",
                "current transaction is aborted, commands ignored until end of transaction block",
            )
        match statement:
            case statements.Control():
                return await self._control(statement)
            case statements.Question():
                return await self._ask(caller, statement, portal.params)
            case statements.DeclaredBounds(question=question) if not self.settings.declared:
                return await self._ask(caller, question, portal.params)
        return await self._looked_up(statement, portal.params)

    def _check_description(self, prepared: Prepared) -> None:
        """Refuse a statement whose columns are not those that the client was told."""
        if prepared.described not in (None, self._shown(prepared.statement)):
            raise WireError(
                "0A000",
                "cached plan must not change result type: sulq.intervals or sulq.filters was set"
                " after the statement was described",
                "prepare it again; nothing was charged",
            )

    async def _looked_up(self, statement: statements.Statement, params: list[Any]) -> ResultSet:
        """Answer from the public schema: the catalogue, columns, declared bounds."""
        match statement:
            case statements.CatalogueQuery(tree=tree):
                return await self._free(self._from_catalogue, tree, params, False)
            case statements.RowProbe(tree=tree):
                found = await self._free(self._from_catalogue, tree, params, True)
                note = (
                    "rows are never shown: this has none; ask for COUNT(*), SUM, AVG, ... of them"
                )
                return ResultSet(found.fields, [], notices=[note])
            case statements.DeclaredBounds(question=question, items=items):
                return _bounds(self.tables()[question.table], items)
        return ResultSet()

    def _from_catalogue(self, tree: Any, params: list[Any], rows: bool) -> ResultSet:
        catalogue = Catalogue(self.tables(), self._database, self._user)
        made = Rewriting(catalogue, self.settings.said, rows).sql(statements.filled(tree, params))
        fields, found = self._catalogue.run(catalogue, made)
        return ResultSet(
            fields,
            [
                [fitted(cell, each.oid) for cell, each in zip(row, fields, strict=True)]
                for row in found
            ],
        )

    def _body(self, question: statements.Question, params: list[Any]) -> SqlBody:
        try:
            return SqlBody(sql=question.text, params=params or None, **self.settings.terms())
        except ValidationError:
            raise WireError(
                "22023", "the statement, a parameter or the name of the purpose is out of range"
            ) from None

    async def _ask(
        self, caller: Caller, question: statements.Question, params: list[Any]
    ) -> ResultSet:
        """Ask as POST /sql does: charged once, answered on the table's clock."""
        body = self._body(question, params)
        session = self._session_of(caller, question.table)
        key = f"pg-{secrets.token_hex(16)}"
        digest = hashlib.sha256(body.model_dump_json().encode()).digest()
        prepare = partial(questions.prepare_sql, session, body, key)
        content = await charged(self.workers, session, key, digest, prepare)
        reply = SqlReply.model_validate_json(content)
        self._spent += reply.credits_exact
        return _answered(reply, self.settings.intervals)

    # --- control words --------------------------------------------------------------------------

    async def _control(self, statement: statements.Control) -> ResultSet:
        words = statement.words
        match statement.word:
            case "BEGIN" | "START":
                self._transaction, self._spent = "T", Fraction(0)
                return ResultSet(tag="BEGIN")
            case "COMMIT" | "END" | "ROLLBACK" | "ABORT":
                return self._end_transaction(statement)
            case "SHOW":
                return self._show(words)
            case "SET":
                self._set(words)
                return ResultSet(tag="SET")
            case "RESET" | "DISCARD":
                return self._forget(statement.word, words)
            case "DEALLOCATE":
                name = words[-1] if words else ""
                held = list(self._prepared) if name.upper() == "ALL" else [name]
                for each in held:
                    self._prepared.pop(each, None)
                return ResultSet(tag="DEALLOCATE")
            case "DECLARE":
                return await self._declare(words[0], statement.inner)
            case "FETCH" | "MOVE":
                return await self._fetch(statement.word, words)
            case "CLOSE":
                name = words[-1] if words else ""
                for each in list(self._portals) if name.upper() == "ALL" else [name]:
                    self._portals.pop(each, None)
                return ResultSet(tag="CLOSE CURSOR")
        return ResultSet(tag=statement.word)  # SAVEPOINT, RELEASE, LISTEN, UNLISTEN, NOTIFY

    def _forget(self, word: str, words: Sequence[str]) -> ResultSet:
        """Forget what the session has set or named; what its purpose has spent is the server's."""
        name = _setting_name(words)
        everything = name.casefold() == "all"
        if word == "RESET":
            self.settings.reset("" if everything else name)
            return ResultSet(tag=word)
        if everything:
            self.settings.reset()
            self._prepared.clear()
            self._portals.clear()
        return ResultSet(tag=f"DISCARD {name[:60].upper()}")

    def _end_transaction(self, statement: statements.Control) -> ResultSet:
        word = {"END": "COMMIT", "ABORT": "ROLLBACK"}.get(statement.word, statement.word)
        if "TO" in [each.upper() for each in statement.words]:  # ROLLBACK TO SAVEPOINT
            self._transaction = "T"
            return ResultSet(tag="ROLLBACK", notices=self._stands())
        notices = self._stands() if word == "ROLLBACK" or self._transaction == "E" else []
        if self._transaction == "E":
            word = "ROLLBACK"
        self._transaction, self._spent = "I", Fraction(0)
        return ResultSet(tag=word, notices=notices)

    def _stands(self) -> list[str]:
        """Return what a rollback says, where something was charged since BEGIN."""
        return [f"{STANDS}; {float(self._spent):g} credits were charged"] if self._spent else []

    def _set(self, words: Sequence[str]) -> None:
        name, value = _setting(words)
        if name:
            self.settings.set(name, value)
            shown = {each.casefold(): each for each in REPORTED}.get(name.casefold())
            if shown is not None:
                self.send(protocol.parameter_status(shown, value))

    def _show(self, words: Sequence[str]) -> ResultSet:
        name = _setting_name(words)
        if name.casefold() == "all":
            rows: list[Sequence[Any]] = [
                [each, value, ""] for each, value in self.settings.all().items()
            ]
            fields = [Field(each, TEXT) for each in ("name", "setting", "description")]
            return ResultSet(fields, rows, "SHOW")
        return ResultSet([Field(name, TEXT)], [[self.settings.show(name)]], "SHOW")

    async def _declare(self, name: str, text: str) -> ResultSet:
        """Name a portal; it is asked, once, by the first FETCH."""
        if len(self._portals) >= MOST_NAMED:
            raise WireError("54000", f"a connection has at most {MOST_NAMED} portals")
        prepared = await self._read(text, [])
        if isinstance(prepared.statement, statements.Control | statements.Nothing):
            raise WireError("42601", "a cursor is of a SELECT")
        prepared.counted = True  # by DECLARE; each FETCH counts for itself
        self._portals[name] = Portal(prepared, [], [])
        return ResultSet(tag="DECLARE CURSOR")

    async def _fetch(self, word: str, words: Sequence[str]) -> ResultSet:
        name, most = _cursor(words)
        portal = self._portal(name)
        if portal.result is None:
            portal.result = await self._run(portal)
        whole = portal.result
        end = len(whole.rows) if most is None else min(len(whole.rows), portal.sent + most)
        rows = whole.rows[portal.sent : end]
        portal.sent = end
        if end == len(whole.rows):
            whole.rows, portal.sent = [], 0
        notices, whole.notices = whole.notices, []
        if word == "MOVE":
            return ResultSet(tag=f"MOVE {len(rows)}", notices=notices)
        return ResultSet(whole.fields, list(rows), f"FETCH {len(rows)}", notices)


HANDLERS = {
    "Q": "_query",
    "P": "_parse",
    "B": "_bind",
    "D": "_describe",
    "E": "_execute",
    "C": "_close",
    "S": "_sync",
    "H": "_nothing",
    "F": "_call",
    "d": "_nothing",
    "c": "_nothing",
    "f": "_nothing",
}
"""What is done with each message."""


class FatalError(Exception):
    """An error after which the connection is closed."""

    def __init__(self, error: WireError) -> None:
        super().__init__(error.text)
        self.error = error


def _format(formats: Sequence[int], place: int) -> int:
    """Return the format code of a column: none means text, one is for all."""
    if not formats:
        return 0
    return formats[0] if len(formats) == 1 else formats[place] if place < len(formats) else 0


def _moved_on(error: Exception, start: int) -> WireError:
    """Return an error whose place is counted in a text in which its statement starts later."""
    told = wire_error(error)
    if told.place is not None:
        told.place += start
    return told


def _ends(statement: statements.Statement) -> bool:
    words = ("COMMIT", "END", "ROLLBACK", "ABORT")
    return isinstance(statement, statements.Control) and statement.word in words


def _given_options(options: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the settings of a startup message: its own fields and `-c name=value` of options."""
    apart = ("user", "database", "options", "replication")
    found = [(name, value) for name, value in options.items() if name not in apart]
    if options.get("replication", "false").lower() not in ("false", "off", "no", "0"):
        raise WireError("0A000", "there is no replication here")
    try:
        words = shlex.split(options.get("options", ""))
    except ValueError:
        raise WireError("22023", "options cannot be read; write -c name=value") from None
    while words:
        word = words.pop(0)
        if word == "-c" and words:
            word = words.pop(0)
        word = word.removeprefix("--").removeprefix("-c")
        name, equals, value = word.partition("=")
        if not equals:
            raise WireError("22023", "options cannot be read; write -c name=value")
        found.append((name, value))
    return found


def _setting(words: Sequence[str]) -> tuple[str, str]:
    """Return name and value of SET; an empty name where there is nothing to keep."""
    rest = list(words)
    if rest and rest[0].upper() in ("SESSION", "LOCAL"):
        rest = rest[1:]
    uppers = [word.upper() for word in rest]
    if uppers[:1] == ["TRANSACTION"] or "CHARACTERISTICS" in uppers:
        return "", ""
    if uppers[:2] == ["TIME", "ZONE"]:
        return "TimeZone", " ".join(rest[2:])
    if uppers[:1] == ["NAMES"]:
        return "client_encoding", " ".join(rest[1:])
    at = next((place for place, word in enumerate(uppers) if word in ("=", "TO")), None)
    if at is None:
        return "", ""
    return "".join(rest[:at]), "".join(rest[at + 1 :])


def _setting_name(words: Sequence[str]) -> str:
    uppers = [word.upper() for word in words]
    if uppers[:3] == ["TRANSACTION", "ISOLATION", "LEVEL"]:
        return "transaction_isolation"
    if uppers[:2] == ["TIME", "ZONE"]:
        return "TimeZone"
    return "".join(words)


def _cursor(words: Sequence[str]) -> tuple[str, int | None]:
    """Return the cursor that FETCH names, and how many rows it takes; None: all that are left."""
    if not words:
        raise WireError("42601", "write FETCH 100 FROM name")
    most: int | None = 1
    for word in words[:-1]:
        upper = word.upper()
        if word.isdigit():
            most = int(word)
        elif upper == "ALL":
            most = None
        elif upper in ("BACKWARD", "PRIOR", "FIRST", "LAST", "ABSOLUTE", "RELATIVE", "-"):
            raise WireError("55000", "a cursor goes forward only")
    return words[-1], most


def _bounds(schema: Schema, items: Sequence[tuple[str, str, bool]]) -> ResultSet:
    columns = {column.name: column for column in schema.columns}
    fields, row = [], []
    for name, column, largest in items:
        oid = type_of(columns[column])
        bound: Any = columns[column].high if largest else columns[column].low  # type: ignore[union-attr]
        fields.append(Field(name, oid))
        row.append(fitted(bound, oid) if oid in (INT8, FLOAT8) else bound)
    return ResultSet(fields, [row], notices=["these are the declared bounds, not values of rows"])


def _answered(reply: SqlReply, intervals: bool) -> ResultSet:
    """Return a reply as columns and rows of the types that Describe told."""
    columns = reply_columns(reply, intervals)
    oids: list[int] = []
    for column in reply.columns:
        oid = OF_RESULTS[column.type]
        oids.append(oid)
        if intervals and not column.is_key:
            oids += [oid if oid in (DATE, TIMESTAMP) else FLOAT8] * 2
    fields = [Field(name, oid) for name, oid in zip(columns, oids, strict=True)]
    cells = [
        [fitted(cell, oid) for cell in column]
        for column, oid in zip(columns.values(), oids, strict=True)
    ]
    notices = [*reply.notes, *([] if intervals else _bars(reply))]
    cost = f"{float(reply.credits_exact):g} credits were charged"
    return ResultSet(fields, list(zip(*cells, strict=True)), notices=[*notices, cost])


def _bars(reply: SqlReply) -> list[str]:
    """Tell the intervals of the first rows; SET sulq.intervals = on gives all as columns."""
    said = []
    for row in reply.rows[:TOLD_ROWS]:
        for column, cell in zip(reply.columns, row, strict=True):
            if not column.is_key and not cell["public"]:
                low, high = (
                    _end(cell[end], column.type, outwards)
                    for end, outwards in zip(("low", "high"), OUTWARDS, strict=True)
                )
                said.append(f"{column.name} in [{low}, {high}]")
    if not said:
        return []
    more = ", ..." if len(reply.rows) > TOLD_ROWS else ""
    return [
        f"at {100 * reply.confidence:g} %: {', '.join(said)}{more}; SET sulq.intervals = on gives"
        " all intervals as columns"
    ]


def _end(end: float | None, kind: str, outwards: Callable[[float], int]) -> str:
    if end is None:
        return "unbounded"
    if kind in ("date", "datetime"):
        return str(moment_of(end, kind, outwards) or "unbounded")
    return f"{end:,.6g}" if isinstance(end, float) else f"{end:,}"


STATES = {401: "28P01", 403: "42501", 404: "42P01", 409: "55000", 413: "54000", 429: "53300"}
REASONS = {Reason.NO_COLUMN: "42703", Reason.UNREADABLE: "42601", Reason.WRONG_TYPE: "42804"}


def wire_error(error: Exception) -> WireError:
    """Return an error as the wire tells it; what was not foreseen is one constant sentence."""
    if isinstance(error, WireError):
        return error
    if isinstance(error, SulqError):
        error = problem_of(error)
    if not isinstance(error, HttpProblem):
        error = internal()
    text, hint = error.detail, error.hint
    state = STATES.get(error.status, "58000" if error.status >= 500 else "42000")
    if error.reason is not None:
        state = REASONS.get(error.reason, state)
    if error.code == "price_changed":  # of max_credits = 0: see SessionSettings.terms
        price = Fraction(error.more.get("about", {}).get("credits", "1"))
        text = (
            f"this costs {float(price):g} credits, and this connection spends none: only public"
            " facts and what you were told before are free"
        )
        state, hint = "53400", SPEND_LIKE_THIS
    elif error.code == "budget_spent":
        state = "53400"
    if error.credits_spent is None or error.credits_spent:
        spent = error.credits_spent
        hint += "; " + (
            "it may have been charged"
            if spent is None
            else f"{float(spent):g} credits were charged"
        )
    if error.reason == Reason.NO_COLUMN:
        hint = "\\d and a table's name list its columns"
    start = error.more.get("start")
    return WireError(state, text, hint, place=start if isinstance(start, int) else None)
