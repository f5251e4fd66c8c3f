"""A filter for every person: questions that do not touch somebody do not spend theirs. V.2

Who takes part in a question is a function of the rows and of the ledger's charges, in their order,
up to it. So the ledger's charge is the durable record of every balance: nothing is written
anew, a crash loses nothing, and a retry finds the same people. Balances are kept in memory and, so
that opening is quick, copied into the state directory. They are an exact function of the rows.
Proof: docs/proofs/individual.md.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sulq.accounting.calibration import Calibration
from sulq.accounting.individual import (
    Balances,
    charged,
    least,
    per_person,
    rates,
    steps_per_credit,
    summed,
)
from sulq.accounting.losses import Loss
from sulq.accounting.pricing import Price, fine_bits, laws_of
from sulq.derivation.estimates import sources_of
from sulq.engines.numbered import NumberedRows
from sulq.engines.row_values import RowValues
from sulq.errors import BudgetSpent, EngineFailed, Refused, SulqError
from sulq.ledger.entries import Entry
from sulq.ledger.journal import Journal
from sulq.ledger.state import named, private_path, read_private, write_private
from sulq.noise.distributions import DiscreteGaussian
from sulq.oracle import credits_text
from sulq.query.sum_query import SumQuery
from sulq.schema.binding import BoundQuery, bind
from sulq.schema.bound import RowSums
from sulq.schema.columns import Schema
from sulq.schema.trees import TreeSums

T = TypeVar("T")
ONLY_SUMS = (
    "a table with individual accounting answers counts, totals, means, histograms and"
    " distributions; {} is not covered by its proof, ask it of a table without"
)
KEPT = 100
"""Questions after which the balances are copied to the state directory."""
WAITING = 64
"""Sums that are held for charges whose answer is still to come."""


@dataclass(slots=True)
class Past:
    """The balances after every charge up to `seq`, and a hash of those charges."""

    balances: Balances
    seq: int = 0
    asked: str = ""

    def note(self, entry: Entry) -> None:
        text = json.dumps([self.asked, entry.seq, entry.digest, entry.noise])
        self.asked, self.seq = hashlib.sha256(text.encode()).hexdigest(), entry.seq


class Individual:
    """An engine that adds up only those whose balance allows it; and nothing without a charge."""

    def __init__(self, rows: NumberedRows, schema: Schema, calibration: Calibration) -> None:
        """`schema` is to be set to the one on the table's grid: `reading.pinned` does that."""
        self._engine, self._rows, self.schema = rows.engine, rows, schema
        self._calibration = calibration
        self._steps = steps_per_credit(calibration.credits, schema.max_rows)
        self._lock = threading.Lock()
        self._past: Past | None = None
        self._place: Path | None = None
        self._waiting: dict[int, list[int]] = {}
        self._unkept = 0

    # --- what asks ------------------------------------------------------------------------------

    def reader(self, bound: BoundQuery, ledger: Journal) -> Callable[[Entry], list[int]]:
        """What will read the rows for a charged entry; this step may refuse and reads none."""
        self._rows.prepare(_program(bound))
        if ledger.recovered:
            raise Refused(
                "events of this ledger were lost, and with them what people have spent: a table"
                " with individual accounting stays closed then"
            )
        return lambda entry: _guarded(lambda: self._sums(ledger, entry))

    def warm(self, ledger: Journal) -> None:
        """Take in every charge there is, so that no question has to wait for it."""

        def work() -> None:
            with self._lock:
                if self._past is None:
                    self._follow(ledger, self._known(ledger), ledger.head)

        _guarded(work)

    def charges(self, cost: Price, accounts: dict[str, Loss]) -> dict[str, Loss]:
        """What the accounts pay: the sampler's slack (TB.8); credits are the people's own."""
        worst = cost.worst.credits_fraction
        if worst > self._calibration.credits:
            raise BudgetSpent(
                f"this costs {credits_text(worst)}, and nobody has more than"
                f" {self._calibration.credits} in all; ask a cheaper question"
            )
        return {name: Loss(0, loss.delta) for name, loss in accounts.items()}

    def _sums(self, ledger: Journal, entry: Entry) -> list[int]:
        origin = ledger._table.by_seq[entry.seq].seq  # a repeat stands for the first charge
        with self._lock:
            past = self._known(ledger)
            found = self._waiting.pop(origin, None)
            if found is None and origin > past.seq:
                found = self._follow(ledger, past, origin)
            if found is None:  # others came later meanwhile: from the start, on balances of its own
                found = self._follow(ledger, self._start(), origin)
            if found is None:
                raise Refused(f"entry {entry.seq} is not a charge of this table")
            return found

    def _follow(self, ledger: Journal, past: Past, until: int) -> list[int] | None:
        """Take in every charge up to `until`; its sums, if it is one."""
        last = None
        for entry in self._origins(ledger, past.seq, until):
            last = self._step(past, entry)
            if past is self._past and entry.seq != until and not entry.answered:
                while len(self._waiting) >= WAITING:
                    self._waiting.pop(next(iter(self._waiting)))
                self._waiting[entry.seq] = last
        if past is self._past and self._unkept >= KEPT:
            self._keep()
        return last if past.seq == until else None

    @staticmethod
    def _origins(ledger: Journal, after: int, until: int) -> Iterator[Entry]:
        """The charges that read rows, in the order in which they became durable."""
        for entry in ledger.entries(after=after):
            if entry.seq > until:
                return
            record = ledger._table.by_seq[entry.seq]
            if record.release or record.lost or record.old:
                raise Refused("this ledger has charges that individual accounting cannot follow")
            if record.seq == entry.seq and sources_of(entry.noise) is None:
                yield entry

    def _step(self, past: Past, entry: Entry) -> list[int]:
        """One charge: who takes part, what they pay, what they add. All of it or nothing. V.2"""
        bound = bind(
            SumQuery.from_json(json.loads(entry.question)),
            self.schema,
            self._calibration.promise.neighbours,
            fine=fine_bits(self._calibration),
        )
        if bound.text != entry.question:
            raise Refused(f"entry {entry.seq} cannot be read as it was asked")
        program, rate = _program(bound), self._rates(bound, entry.noise)
        values = self._rows.prepare(program)()
        balances = past.balances
        price = np.zeros(len(values.rows), np.int64)
        for term, own, largest in zip(values.terms, rate, values.largest, strict=True):
            price = least(price + charged(term, own, largest, balances.most), balances.most)
        takes = price > 0  # who adds nothing pays nothing
        who, due = values.rows[takes], price[takes]
        owners = self._rows.owners(who)
        if owners is None:
            fits = balances.admitted(who, due)
            takes[takes] = fits
        else:
            who, due = per_person(owners, due, self._rows.persons, balances.most)
            fits = balances.admitted(who, due)
            allowed = np.zeros(self._rows.persons, np.bool_)
            allowed[who] = fits
            takes[takes] = allowed[owners]
        found = _added(bound, values, rate, takes)
        balances.charge(who[fits], due[fits])
        past.note(entry)
        self._unkept += past is self._past
        return found

    def _rates(self, bound: BoundQuery, noise: str) -> list[Fraction]:
        variances = [
            law.sigma_squared if isinstance(law, DiscreteGaussian) else None
            for law in laws_of(noise)
        ]
        scale = bound.tree.scale if bound.tree is not None else 1
        lifts = [term.lift * scale for term in bound.terms]
        found = rates(variances, lifts, self._calibration.unit_variance, self._steps)
        # of a tree: a row counts once in every level
        return found if bound.tree is None else [sum(found, Fraction(0))]

    # --- balances -------------------------------------------------------------------------------

    def histogram(self, ledger: Journal, bars: int = 10) -> list[int]:
        """How many people have spent up to 1/bars, 2/bars, ... of their balance, of all charges.

        For the owner alone: an exact function of the rows, with no noise.
        """

        def work() -> list[int]:
            with self._lock:
                past = self._known(ledger)
                self._follow(ledger, past, ledger.head)
                spent, cap = past.balances.spent, past.balances.cap
                ends = [cap * bar // bars for bar in range(1, bars + 1)]
                below = [int(np.count_nonzero(spent <= end)) for end in ends]
                return [b - a for a, b in zip([0, *below], below, strict=False)]

        return _guarded(work)

    def _start(self) -> Past:
        cap = self._calibration.credits * self._steps
        return Past(Balances(np.zeros(self._rows.persons, np.int64), cap))

    def _known(self, ledger: Journal) -> Past:
        """The balances in memory; at first those of the state directory, if they still are."""
        if self._past is None:
            file = ledger._book.file
            if file is not None:
                table = f"balances-{named(ledger.header.name)}"
                self._place = private_path("ledgers", ledger._book.history.ledger, table)
            self._past = self._kept(ledger) or self._start()
        return self._past

    def _keep(self) -> None:
        """Copy the balances; a copy that cannot be written is only missed at the next opening."""
        if self._place is None or self._past is None or not self._unkept:
            return
        spent = self._past.balances.spent.tobytes()
        facts = [self._past.seq, self._past.asked, *self._pinned(), _hash(spent)]
        with suppress(Refused):
            write_private(self._place, json.dumps(facts).encode() + b"\n" + spent, replace=True)
        self._unkept = 0

    def _kept(self, ledger: Journal) -> Past | None:
        """The copy, if it is whole, of these rows in this order, and of these very charges."""
        content = None if self._place is None else read_private(self._place)
        if content is None:
            return None
        head, _, spent = content.partition(b"\n")
        try:
            seq, asked, *pinned = json.loads(head)
        except (ValueError, TypeError):
            return None
        if pinned != [*self._pinned(), _hash(spent)]:
            return None
        found = self._start()
        for entry in self._origins(ledger, 0, seq):
            found.note(entry)
        if (found.seq, found.asked) != (seq, asked):
            return None
        found.balances.spent = np.frombuffer(spent, np.int64).copy()
        return found

    def _pinned(self) -> list[str | int]:
        return [self._rows.order(), self._rows.persons, self._steps, self._calibration.credits]

    # --- an engine, closed but for that ---------------------------------------------------------

    def prepare(self, program: object) -> Callable[[], list[int]]:
        raise Refused(ONLY_SUMS.format("this"))

    def exact_sums(self, program: object) -> list[int]:
        raise Refused(ONLY_SUMS.format("this"))

    def prepare_keys(self, program: object) -> Callable[[], Iterator[list[tuple[str, int]]]]:
        raise Refused(ONLY_SUMS.format("a question by keys that nobody declared"))

    def fingerprint(self) -> str:
        return self._engine.fingerprint()

    def size(self) -> int:
        return self._engine.size()

    def unchanged(self) -> bool:
        return self._engine.unchanged()

    def close(self) -> None:
        with self._lock, suppress(EngineFailed):
            self._keep()
        self._engine.close()


def _program(bound: BoundQuery) -> RowSums:
    """What is added up per row, of the kinds of question that are covered."""
    match bound.sums:
        case RowSums() as program:
            return program
        case TreeSums(cells=cells):
            return cells
    raise Refused(ONLY_SUMS.format("a sum of products of vectors, or one clipped per person,"))


def _added(
    bound: BoundQuery, values: RowValues, rate: list[Fraction], takes: NDArray[np.bool_]
) -> list[int]:
    """The sums over those who take part; a term without noise is a public 0."""
    cells = values.cells[takes]
    sums = [
        summed(term[takes], cells, values.count) if own else [0] * values.count
        for term, own in zip(values.terms, rate, strict=True)
    ]
    flat = [sum_of for cell in zip(*sums, strict=True) for sum_of in cell]
    return flat if bound.tree is None else bound.tree.counts(flat)


def _guarded(work: Callable[[], T]) -> T:
    """No words but our own: those of others may quote rows."""
    found: list[T] = []
    try:
        found.append(work())
    except SulqError:
        raise
    except Exception:  # noqa: BLE001 - as in the engine
        found = []
    if not found:
        raise EngineFailed()
    return found[0]


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
