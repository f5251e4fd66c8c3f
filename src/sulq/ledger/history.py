"""What a whole chain adds up to, and the only way it grows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sulq.errors import InvalidQuery, Refused
from sulq.ledger import answers
from sulq.ledger.anchor import Mark, is_sealed
from sulq.ledger.catalogue import spacious
from sulq.ledger.chain import START, canonical, link
from sulq.ledger.changes import Ended
from sulq.ledger.header import TableHeader
from sulq.ledger.population import Pool
from sulq.ledger.store import FORMAT, Row
from sulq.ledger.table import LOST, Table

_LEDGER = re.compile(r"[0-9a-f]{32}")


class History:
    """Ledger id, public keys and tables after the events so far; numbers start at 1."""

    def __init__(self) -> None:
        self.mark = Mark(0, START)
        self.ledger = ""
        self.publics: list[str] = []  # the last one signs
        self.tables: dict[str, Table] = {}
        self.populations: dict[str, Pool] = {}
        self.gaps: list[range] = []  # numbers lost and counted at a recovery
        self.told: dict[int, str] = {}  # what receipts said of such numbers, where not all burnt
        self.burnt: list[range] = []  # gaps for which everything was counted as spent
        self.begun = 0  # events that `add` began to apply
        self.seal: bytes | None = None  # of the last row read

    @property
    def public(self) -> str:
        return self.publics[-1]

    def take(self, rows: Iterable[Row]) -> None:
        """Replay stored rows, checking each; `Refused` at the first that does not verify."""
        with spacious():
            self._take(rows)
        accounts: list[Table | Pool] = [*self.tables.values(), *self.populations.values()]
        if not self.gaps and any(account.overdrawn() for account in accounts):
            raise unverified(self.mark.seq)

    def _take(self, rows: Iterable[Row]) -> None:
        for row in rows:
            try:
                if row.hash != link(self.mark.hash, row.body):
                    raise ValueError("broken chain")
                body = json.loads(row.body)
                if not self._follows(row.seq, body):
                    raise ValueError("missing events")
                self._check_answer(body, row.noisy)
                self._apply(row.seq, body)
            except (
                ArithmeticError,
                AttributeError,
                InvalidQuery,
                LookupError,
                RecursionError,
                TypeError,
                ValueError,
            ):
                raise unverified(row.seq) from None
            self.mark, self.seal = Mark(row.seq, row.hash), row.seal

    def sealed_by(self, publics: Sequence[str]) -> bool:
        """True if one of `publics` signed the last row, and with it the whole chain."""
        return is_sealed(self.seal, self.ledger, self.mark, publics)

    def add(self, body: Mapping[str, Any], noisy: str | None = None, seq: int | None = None) -> Row:
        """The next row of the chain, applied; the caller makes it durable."""
        text = canonical(body)
        row = Row(seq or self.mark.seq + 1, link(self.mark.hash, text), text, noisy)
        written = json.loads(text)  # what a reader will see, nothing else
        self.begun += 1
        self._apply(row.seq, written)
        self.mark = Mark(row.seq, row.hash)
        return row

    def _follows(self, seq: int, body: Mapping[str, Any]) -> bool:
        """Numbers run on, except that a recovery jumps over those that were lost."""
        return seq == self.mark.seq + 1 or (body["kind"] == "recover" and seq > self.mark.seq)

    @staticmethod
    def _check_answer(body: Mapping[str, Any], noisy: str | None) -> None:
        kept = None if noisy is None else answers.fingerprint(noisy)
        if kept != (body["values"] if body["kind"] == "answer" else None):
            raise ValueError("an answer that is not the one charged for")

    def _apply(self, seq: int, body: Mapping[str, Any]) -> None:
        kind = body["kind"]
        if (kind == "ledger") != (seq == 1):
            raise ValueError("a ledger starts once")
        if kind == "ledger":
            if body["format"] > FORMAT:
                raise Refused(
                    f"the ledger has format {body['format']}, this sulq reads {FORMAT}; "
                    "use a newer sulq"
                )
            if not _LEDGER.fullmatch(body["ledger"]):  # it names a directory
                raise ValueError("not a ledger's id")
            self.ledger = body["ledger"]
            self.publics.append(body["public_key"])
        elif kind == "table":
            known = self.tables.get(body["table"])
            if known is not None and (known.withdrawn is None or known.recovered):
                raise ValueError("published twice")
            header = TableHeader.from_body(body)
            earlier = 0 if known is None else known.generation + 1
            self.tables[header.name] = Table(
                header, pool=self._pool(header), stamp=body.get("stamp"), earlier=earlier
            )
        elif kind in ("repair", "withdraw"):
            self._undo(seq, body)
        elif kind == "recover":
            self._recover(seq, body)
        else:
            self.tables[body["table"]].apply(seq, body)

    def _undo(self, seq: int, body: Mapping[str, Any]) -> None:
        """Repair or withdraw a table that was never used: ledger.md, section 18."""
        table = self.tables[body["table"]]
        if not table.unused:
            raise ValueError("repaired or withdrawn after it was used")
        if table.pool is not None:
            table.pool.tables.remove(table.header.name)  # nothing was charged to it by this table
        if body["kind"] == "withdraw":
            table.withdrawn = Ended.from_body(body)
            return
        header = TableHeader.from_body({**body, "version": table.header.version})
        table.repair(seq, body, header, self._pool(header))

    def _pool(self, header: TableHeader) -> Pool | None:
        """The account of a table's population; the first table that names one makes it."""
        if (member := header.member) is None:
            return None
        pool = self.populations.get(member.name)
        if pool is None or pool.vacant:
            pool = self.populations[member.name] = Pool.of(member)
        if not pool.agrees(member):
            raise ValueError("a population with two promises")
        pool.tables.append(header.name)
        return pool

    def _recover(self, seq: int, body: Mapping[str, Any]) -> None:
        if body["public_key"] != self.public:
            for table in self.tables.values():
                table.stamp = LOST  # nobody can compare it any more
        if not body["genuine"]:
            self.publics.clear()  # whoever wrote that chain may have named keys of their own
        self.publics.append(body["public_key"])
        self.gaps.append(range(self.mark.seq + 1, seq))
        self.told |= {int(number): claim for number, claim in body["told"].items()}
        if body["burn"]:
            self.burnt.append(self.gaps[-1])
        for table in self.tables.values():
            table.budgets.void()  # nobody is left to spend from one
        for lost in body["lost"]:
            self.tables[lost["table"]].restore(lost)
        for pool in self.populations.values() if body["burn"] else ():
            pool.burn()
        for table in self.tables.values():
            table.forget(answered=not body["genuine"])
            table.recovered = True
            if body["burn"]:
                table.budgets.burn()
                table.burnt = True


def unverified(seq: int) -> Refused:
    return Refused(
        f"the ledger does not verify at event {seq}: it was damaged or changed; restore "
        "it from a backup, then run `sulq recover`"
    )
