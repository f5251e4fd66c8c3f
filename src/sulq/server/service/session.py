"""What all requests share, and one caller at one table during one request."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import date
from fractions import Fraction
from functools import cached_property
from importlib.metadata import version
from typing import Any

from sulq.database import Analyst, Database
from sulq.errors import SulqError
from sulq.kernel.ledger.budget import OWNER
from sulq.kernel.schema.bind import BoundQuery
from sulq.server.auth.tokens import Access, Caller, Role
from sulq.server.boards import Boards
from sulq.server.errors import not_for_this_role, not_found
from sulq.server.idempotency import Replies
from sulq.server.limits import Settings, check_width
from sulq.server.pacing import Pace, Wide, check_lasting, pace_of, public_rows, today
from sulq.server.purposes import Purpose, Purposes
from sulq.server.saved_answers import AnswerShelf, SavedAnswers
from sulq.server.service.catalog import (
    LedgerRecovery,
    SandboxTables,
    Tables,
    check_facts,
    id_of,
)
from sulq.server.service.reservations import Reservations
from sulq.wire import MonitorLine, MonitorReply, fraction_text


class Service:
    """What all requests share: tables, tokens, stored replies, clocks, reserved credits."""

    def __init__(
        self, tables: Tables, access: Access, replies: Replies, settings: Settings
    ) -> None:
        self.tables, self.access, self.replies, self.settings = tables, access, replies, settings
        self.reservations = Reservations(settings.reservation_idle)
        self.purposes = Purposes.open()
        self.saved = SavedAnswers.open()
        self.boards = Boards(self.saved)
        self.recovery = LedgerRecovery()
        self.sandbox = SandboxTables()
        self._clocks: dict[str, Pace] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        self.reservations.close()
        self.replies.close()
        self.purposes.close()
        self.saved.close()
        self.sandbox.close()

    def session(self, caller: Caller, table: str) -> TableSession:
        """Return the session of a caller at a table, in the role that the token has there."""
        found = self.tables.find(table)
        return TableSession(self, caller if found is None else caller.at(id_of(found)), table)

    def clock(self, table: str) -> Pace:
        """Return the clock that replies about a table leave by."""
        with self._lock:
            if table not in self._clocks:
                self._clocks[table] = pace_of(self.tables[table], self.settings)
            return self._clocks[table]

    @property
    def clocks(self) -> Mapping[str, Pace]:
        return {name: self.clock(name) for name in self.tables.names()}

    def listed(self, caller: Caller) -> list[dict[str, Any]]:
        """List the tables that the caller may see."""
        reached = caller.tables
        return [
            self._line(caller, name)
            for name in self.tables.names()
            if reached is None or id_of(self.tables[name]) in reached
        ]

    def watched(self) -> MonitorReply:
        """Return what a monitor is told: of every table its credits, and of days that are over how
        many replies missed their tick. The count of a day that goes on could be polled, and would
        tell when rows are read."""
        day = today()
        return MonitorReply(
            sulq=version("sulq"), tables=[self._watched(name, day) for name in self.tables.names()]
        )

    def _watched(self, name: str, day: date) -> MonitorLine:
        database, missed = self.tables[name], self.clock(name).missed
        days = {str(then): missed[then] for then in sorted(missed) if then < day}
        credits = float(database.promise.credits)
        try:
            left, is_closed = database.statement().left, closed(database)
        except SulqError:
            return MonitorLine(name=name, state="out of order", credits=credits, missed_ticks=days)
        return MonitorLine(
            name=name,
            state="closed" if is_closed else "open",
            credits=credits,
            left=float(left),
            left_exact=left,
            missed_ticks=days,
        )

    def _line(self, caller: Caller, name: str) -> dict[str, Any]:
        session = self.session(caller, name)
        database, left = session.database, session.left
        return {
            "name": name,
            "role": str(session.caller.role),
            "state": "closed" if closed(database) else "open",
            "size": database.size,
            "credits": float(database.promise.credits),
            "left": float(left),
            "left_exact": fraction_text(left),
        }


class TableSession:
    """One caller at one table, for one request. Raises SulqError or HttpProblem.

    Made before anything is checked. Whether the token reaches the table is looked up when
    `reached` is first read; idle reservations are given back and a broken ledger is opened again
    when `database` is first read, which may block.
    """

    def __init__(self, service: Service, caller: Caller, table: str) -> None:
        self.service, self.caller, self.table = service, caller, table

    @property
    def is_reached(self) -> bool:
        """True if the table is there and the token reaches it."""
        found, tables = self.service.tables.find(self.table), self.caller.tables
        return found is not None and (tables is None or id_of(found) in tables)

    @cached_property
    def reached(self) -> Database:
        """The table, if this token reaches it; else as if it were not there."""
        if not self.is_reached:
            raise not_found("there is no table of this name here, or it is not for this token")
        return self.service.tables[self.table]

    @cached_property
    def database(self) -> Database:
        """The table, ready to be asked."""
        found = self.reached
        self.service.reservations.sweep()
        self.service.recovery.restore(found)
        return found

    def oracle(
        self, reservation: str | None = None, facts_id: str | None = None
    ) -> Database | Analyst:
        """Return what the caller asks through: the table itself for the owner, else an account.

        Refuse what was made for other facts than the table has now.
        """
        database = self.database
        if self.caller.role == Role.AUDITOR:
            raise not_for_this_role(str(self.caller.role))
        check_facts(database, facts_id)
        if reservation is not None:
            return self.service.reservations.get(reservation, self.table, self.account)
        if self.caller.role == Role.OWNER:
            return database
        return database.as_analyst(self.caller.name)

    @property
    def sandbox(self) -> Database:
        """Made-up rows under the same schema and promise; its answers are free and say nothing."""
        return self.service.sandbox.of(self.table, self.database)

    @property
    def clock(self) -> Pace:
        return self.service.clock(self.table)

    @property
    def account(self) -> str:
        """The name that the ledger knows the caller by."""
        return OWNER if self.caller.role == Role.OWNER else self.caller.name

    @property
    def reader(self) -> str | None:
        """Whose entries the caller may read in full; None: everybody's."""
        return self.caller.name if self.caller.role == Role.ANALYST else None

    @property
    def left(self) -> Fraction:
        """Credits left: of an analyst's own share, else of the table."""
        if self.caller.role == Role.ANALYST:
            return self.database.left_for(self.caller.name)
        return self.database.remaining

    def shelf(self, account: str | None = None) -> AnswerShelf:
        """Return where an account's statements, names and notes are kept; by default one's own."""
        return AnswerShelf(id_of(self.database), account or self.account)

    @property
    def shares(self) -> bool:
        """True if the owner's policy lets answers of this table be shared."""
        return self.table in self.service.tables.sharing

    def purpose(self, name: str) -> Purpose:
        """Return what the caller calls so; it stays the same when the table is amended or grows."""
        return Purpose(id_of(self.database), self.account, name)

    def bind(self, question: object) -> BoundQuery:
        """Check a question against the schema, and that its answer is not too wide to send."""
        bound = self.database.bind(question)
        check_width(bound, self.service.settings)
        return bound

    def bind_wide(self, question: object, each: int = 1) -> Wide:
        """Bind a question that handles so many numbers for each row that there may be; refuse it
        where its reply would be held too long."""
        wide = Wide(self.database.bind(question), each * public_rows(self.database))
        check_lasting(self.clock, wide, self.service.settings)
        return wide


def closed(database: Database) -> bool:
    """True if nothing new can be asked: closed for good, or all is spent."""
    found = database.statement()
    return found.statement.closed is not None or found.left <= 0
