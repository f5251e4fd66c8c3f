"""A filter for every person: questions that do not touch somebody do not spend theirs. V.2

Who takes part in a question is a function of the rows and of the ledger's charges, in their order,
up to it. So the ledger's charge is the durable record of every balance: nothing is written
anew, a crash loses nothing, and a retry finds the same people. `filters` keeps the order, here is
one table's part in it. Proof: docs/proofs/individual.md.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from sulq.errors import BudgetSpent, EngineFailed, Refused, SulqError
from sulq.formatting import credits_text
from sulq.kernel.accounting.calibration import Calibration
from sulq.kernel.accounting.individual import (
    Balances,
    Whole,
    charged,
    check_individual,
    least,
    per_person,
    rates,
    steps_per_credit,
    summed,
)
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.accounting.pricing import Price, laws_of, noise_grid, sources_of
from sulq.kernel.engines.proved import silenced
from sulq.kernel.ledger.events import Charge
from sulq.kernel.ledger.ledger import Ledger
from sulq.kernel.ledger.state_dir import (
    is_shared,
    named,
    passing_key,
    private_path,
    read_private,
    write_private,
)
from sulq.kernel.noise.laws import DiscreteGaussian
from sulq.kernel.query.sum_query import SumQuery
from sulq.kernel.release.release import Mechanism, NoisySums, Pass
from sulq.kernel.schema.bind import BoundQuery, bind
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.program import RowSums
from sulq.kernel.schema.promise import MOST_ROWS
from sulq.kernel.schema.sensitivity import PersonSums
from sulq.kernel.schema.trees import TreeSums

if TYPE_CHECKING:
    from sulq.kernel.engines.rows import Identities, NumberedRows, RowValues
    from sulq.kernel.engines.sql.compile import KeyRow
    from sulq.kernel.schema.vector_program import BlockSums

T = TypeVar("T")
KEPT = 100
"""Questions after which the balances are copied to the state directory."""
WAITING = 64
"""Sums that are held for charges whose answer is still to come."""
LOST = (
    "events of this ledger were lost, and with them what people have spent: a table with individual"
    " accounting stays closed then"
)


@dataclass(slots=True)
class Past:
    """The balances after every charge up to `seq`, and a hash of those charges."""

    balances: Balances
    seq: int = 0
    asked: str = ""

    def note(self, entry: Charge) -> None:
        text = json.dumps([self.asked, entry.seq, entry.digest, entry.noise])
        self.asked, self.seq = hashlib.sha256(text.encode()).hexdigest(), entry.seq


class Filters:
    """Who takes part in what, over the tables whose people pay from the same balances."""

    def __init__(self) -> None:
        self.past: Past | None = None
        self.key = passing_key()
        self._lock = threading.Lock()
        self._members: weakref.WeakValueDictionary[str, IndividualFilter] = (
            weakref.WeakValueDictionary()
        )
        self._people = np.empty(0, "S16")
        self._place: Path | None = None
        self._waiting: dict[int, list[int]] = {}
        self._unkept = 0

    # --- who ------------------------------------------------------------------------------------

    def enter(self, member: IndividualFilter, ledger: Ledger) -> None:
        """A table's people, with the balances they have by the other tables."""
        name = ledger.header.name
        if self._members.get(name) is member:  # a quote waits for nobody who reads rows
            return
        with self._lock:
            self._members[name] = member
            if not member.shares_people:
                return
            everybody = [self._people, *(m.people(self.key) for m in self._members.values())]
            people = np.unique(np.concatenate(everybody))
            for each in self._members.values():
                each.numbers = np.searchsorted(people, each.people(self.key))
            if self.past is not None:
                spent = np.zeros(len(people), np.int64)
                spent[np.searchsorted(people, self._people)] = self.past.balances.spent
                self.past.balances.spent = spent
            self._people = people

    def check(self, ledger: Ledger) -> None:
        """`Refused` unless every charge that counts can be followed. Reads no row."""

        tables = ledger.joint_tables()
        if any(table.recovered for table in tables):
            raise Refused(LOST)
        absent = [it.name for it in tables if it.charged and it.name not in self._members]
        if absent:
            raise Refused(
                f"the same people have paid for questions on {', '.join(absent)}, whose rows are"
                " not open in this process: open it too, or serve all tables of the population"
                " together (`sulq serve`)"
            )

    # --- in order -------------------------------------------------------------------------------

    def sums(self, ledger: Ledger, entry: Charge) -> list[int]:
        """The sums of a charged entry over those whose balance allowed it."""
        origin = ledger.origin(entry.seq)  # a repeat stands for the first charge
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

    def warm(self, ledger: Ledger) -> None:
        """Take in every charge there is, so that no question has to wait for it."""

        def work() -> None:
            with self._lock:
                if self.past is None:
                    self._follow(ledger, self._known(ledger), ledger.head)

        guarded(work)

    def spent(self, ledger: Ledger) -> tuple[Whole, int]:
        """What everybody has spent, and of how much. Secret."""
        with self._lock:
            past = self._known(ledger)
            self._follow(ledger, past, ledger.head)
            return past.balances.spent.copy(), past.balances.cap

    def _follow(self, ledger: Ledger, past: Past, until: int) -> list[int] | None:
        """Take in every charge up to `until`; its sums, if it is one."""
        last = None
        self.check(ledger)
        for entry, answered in _charges(ledger, past.seq, until):
            last = self._members[entry.table].step(past, entry)
            past.note(entry)
            self._unkept += past is self.past
            if past is self.past and entry.seq != until and not answered:
                while len(self._waiting) >= WAITING:
                    self._waiting.pop(next(iter(self._waiting)))
                self._waiting[entry.seq] = last
        if past is self.past and self._unkept >= KEPT:
            self._keep()
        return last if past.seq == until else None

    def _start(self) -> Past:
        member = next(iter(self._members.values()))
        size = len(self._people) if member.shares_people else member.persons
        return Past(Balances(np.zeros(size, np.int64), member.cap))

    # --- the copy -------------------------------------------------------------------------------

    def _known(self, ledger: Ledger) -> Past:
        """The balances in memory; at first those of the state directory, if they still are."""
        if self.past is None:
            if ledger.durable and ledger.header.member is None:
                table = f"balances-{named(ledger.header.name)}"
                self._place = private_path("ledgers", ledger.ledger_id, table)
            self.past = self._kept(ledger) or self._start()
        return self.past

    def _keep(self) -> None:
        """Copy the balances; a copy that cannot be written is only missed at the next opening."""
        if self._place is None or self.past is None or not self._unkept:
            return
        spent = self.past.balances.spent.tobytes()
        facts = [self.past.seq, self.past.asked, *self._pinned(), _hash(spent)]
        with suppress(Refused):
            write_private(self._place, json.dumps(facts).encode() + b"\n" + spent, replace=True)
        self._unkept = 0

    def _kept(self, ledger: Ledger) -> Past | None:
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
        for entry, _ in _charges(ledger, 0, seq):
            found.note(entry)
        if (found.seq, found.asked) != (seq, asked):
            return None
        found.balances.spent = np.frombuffer(spent, np.int64).copy()
        return found

    def _pinned(self) -> list[str | int]:
        return next(iter(self._members.values())).pinned()

    def leave(self, member: IndividualFilter) -> None:
        """Of a table that is closed: keep what saves time at the next opening."""
        with self._lock, suppress(EngineFailed):
            self._keep()
            for name in [name for name, found in self._members.items() if found is member]:
                del self._members[name]


_shared: weakref.WeakValueDictionary[tuple[str, str], Filters] = weakref.WeakValueDictionary()
_guard = threading.Lock()


def filters_of(ledger: Ledger) -> Filters:
    """Those of the table's population, which its tables in this process share; else new ones."""
    member = ledger.header.member
    if member is None:
        return Filters()
    with _guard:
        name = (ledger.ledger_id, member.name)
        found = _shared.get(name)
        if found is None:
            found = _shared[name] = Filters()
        return found


def _charges(ledger: Ledger, after: int, until: int) -> Iterator[tuple[Charge, bool]]:
    """The charges that read rows, in the order in which they became durable; if answered."""
    for entry, record in ledger.joint_charges(after, until):
        if record.release or record.lost or record.old:
            raise Refused("this ledger has charges that individual accounting cannot follow")
        if record.seq == entry.seq and sources_of(entry.noise) is None:
            yield entry, record.answer is not None


def guarded(work: Callable[[], T]) -> T:
    """No words but our own: those of others may quote rows."""
    return silenced(work, lambda error: error if isinstance(error, SulqError) else EngineFailed())


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# The balances that questions meet: of one table's people, or of those of all tables of a
# population. They follow from the ledger's charges, in their order. docs/proofs/individual.md
#
# A population's people are known by a keyed hash of their person's id, whose key is made anew in
# each process and kept nowhere.


BY_ROW = (RowSums, TreeSums, PersonSums)
"""Programs that are no matrix of products."""
ONLY_SUMS = (
    "a table with individual accounting answers counts, totals, means, histograms, distributions"
    " and matrices of products; {} is not covered by its proof, ask it of a table without"
)


class IndividualFilter:
    """An engine that adds up only those whose balance allows it; and nothing without a charge."""

    def __init__(
        self, rows: NumberedRows, schema: Schema, calibration: Calibration, shares_people: bool
    ) -> None:
        """`schema` is to be set to the one on the table's grid: `IndividualReader.begin` does that.

        `shares_people`: with other tables of a population, in the same steps of a credit.
        """
        self._engine, self._rows, self.schema = rows.engine, rows, schema
        self._calibration, self.shares_people = calibration, shares_people
        most_rows = MOST_ROWS if shares_people else schema.max_rows
        self._steps = steps_per_credit(calibration.credits, most_rows)
        self.persons, self.cap = rows.persons, calibration.credits * self._steps
        self.filters: Filters | None = None
        self.numbers: Whole | None = None  # of its persons among those of the population
        self._people: Identities | None = None

    # --- what asks ------------------------------------------------------------------------------

    def join(self, ledger: Ledger) -> Filters:
        """The balances that this table's questions are paid from."""
        if self.filters is None:
            self.filters = filters_of(ledger)
        self.filters.enter(self, ledger)
        return self.filters

    def people(self, key: str) -> Identities:
        """Its persons, by a hash under the key of these balances."""
        if self._people is None:
            self._people = self._rows.identities(key)
        return self._people

    def reader(self, bound: BoundQuery, ledger: Ledger) -> Callable[[Charge], list[int]]:
        """What will read the rows for a charged entry; this step may refuse and reads none."""
        if isinstance(bound.sums, BY_ROW):
            self._rows.prepare(_program(bound))
        else:
            self._rows.prepare_outer(bound.sums)
        filters = self.join(ledger)
        filters.check(ledger)
        return lambda entry: guarded(lambda: filters.sums(ledger, entry))

    def charges(self, cost: Price, accounts: dict[str, Loss]) -> dict[str, Loss]:
        """What the accounts pay: the sampler's slack (TB.8); credits are the people's own."""
        worst = cost.worst.credits_fraction
        if worst > self._calibration.credits:
            raise BudgetSpent(
                f"this costs {credits_text(worst)}, and nobody has more than"
                f" {self._calibration.credits} in all; ask a cheaper question"
            )
        return {name: Loss(0, loss.delta) for name, loss in accounts.items()}

    def step(self, past: Past, entry: Charge) -> list[int]:
        """One charge: who takes part, what they pay, what they add. All of it or nothing. V.2"""
        bound = bind(
            SumQuery.from_json(json.loads(entry.question)),
            self.schema,
            self._calibration.promise.neighbours,
            grid=noise_grid(self._calibration),
            asked_before=True,
        )
        if bound.text != entry.question:
            raise Refused(f"entry {entry.seq} cannot be read as it was asked")
        rate, balances = self._rates(bound, entry.noise), past.balances
        if isinstance(bound.sums, BY_ROW):
            rows, price, add = self._values(bound, rate, balances.most)
        else:
            rows, price, add = self._products(bound, bound.sums, rate[0], balances.most)
        takes = price > 0  # who adds nothing pays nothing
        who, due = rows[takes], price[takes]
        owners = self._rows.owners(who)
        if owners is None:
            fits = balances.admitted(who, due)
            takes[takes] = fits
        else:
            persons, due = per_person(owners, due, self._rows.persons, balances.most)
            who = persons if self.numbers is None else self.numbers[persons]
            fits = balances.admitted(who, due)
            allowed = np.zeros(self._rows.persons, np.bool_)
            allowed[persons] = fits
            takes[takes] = allowed[owners]
        found = add(takes)
        balances.charge(who[fits], due[fits])
        return found

    def _values(self, bound: BoundQuery, rate: list[Fraction], most: int) -> Parts:
        """The rows of S, what each would pay, and what adds up those who take part."""
        values = self._rows.prepare(_program(bound))()
        price = np.zeros(len(values.rows), np.int64)
        for term, own, largest in zip(values.terms, rate, values.largest, strict=True):
            price = least(price + charged(term, own, largest, most), most)
        return values.rows, price, lambda takes: _added(bound, values, rate, takes)

    def _products(self, bound: BoundQuery, program: BlockSums, rate: Fraction, most: int) -> Parts:
        """As `_values`, for a matrix: |left|^2 |right|^2 for each row, at most what is proved."""
        matrix = self._rows.prepare_outer(program)
        rows, sizes = matrix.sizes()
        unit, times = bound.terms[0].unit, self.schema.max_rows
        proved = max(moved.l2_squared for moved, _ in bound.reach) * unit**2 / times**2
        largest = math.isqrt(proved.numerator // proved.denominator) + 1
        price = charged(least(sizes, largest), rate, largest, most)
        price = least(price, min(most, -(-proved * rate // 1)))

        def add(takes: NDArray[np.bool_]) -> list[int]:
            marked = np.zeros(self._rows.count, np.bool_)
            marked[rows[takes]] = True
            return matrix.of(marked)

        return rows, price, add

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

    def histogram(self, ledger: Ledger, bars: int = 10) -> list[int]:
        """How many of its people have spent up to 1/bars, 2/bars, ... of their balance, of all
        charges; of a population's, by all its tables.

        For the owner alone: an exact function of the rows, with no noise.
        """

        def work() -> list[int]:
            spent, cap = self.join(ledger).spent(ledger)
            own = spent if self.numbers is None else spent[self.numbers]
            ends = [cap * bar // bars for bar in range(1, bars + 1)]
            below = [int(np.count_nonzero(own <= end)) for end in ends]
            return [b - a for a, b in zip([0, *below], below, strict=False)]

        return guarded(work)

    def pinned(self) -> list[str | int]:
        """What a copy of the balances belongs to."""
        return [self._rows.order(), self.persons, self._steps, self._calibration.credits]

    # --- an engine, closed but for that ---------------------------------------------------------

    def prepare(self, program: object) -> Callable[[], list[int]]:
        raise Refused(ONLY_SUMS.format("this"))

    def exact_sums(self, program: object) -> list[int]:
        raise Refused(ONLY_SUMS.format("this"))

    def prepare_keys(self, program: object) -> Callable[[], Iterator[list[KeyRow]]]:
        raise Refused(ONLY_SUMS.format("a question by keys that nobody declared"))

    def fingerprint(self) -> str:
        return self._engine.fingerprint()

    def size(self) -> int:
        return self._engine.size()

    def unchanged(self) -> bool:
        return self._engine.unchanged()

    def close(self) -> None:
        if self.filters is not None:
            self.filters.leave(self)
        self._engine.close()


Parts = tuple[Whole, Whole, Callable[[NDArray[np.bool_]], list[int]]]


def _program(bound: BoundQuery) -> RowSums:
    """What is added up per row, of the kinds of question that are covered."""
    match bound.sums:
        case RowSums() as program:
            return program
        case TreeSums(cells=cells):
            return cells
    raise Refused(ONLY_SUMS.format("a sum that is clipped per person"))


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


# Who reads the rows for a question: the engine, or these filters. Everything that differs between
# the two for the rest of the flow is here.


BIAS = (
    "individual accounting: whoever has spent their own balance adds nothing, so a sum may be too"
    " small by more than its bar"
)


def open_individual(
    source: Any, schema: Schema, terms: Calibration, ledger: str | Path, shares_people: bool
) -> IndividualFilter:
    """Hold the rows here, with the filters of their people; or say why that cannot be."""
    check_individual(terms)
    if is_shared(ledger):
        raise Refused("individual accounting needs a ledger of its own: give a file")
    from sulq.kernel.engines.rows import open_numbered  # loaded when it is needed

    return IndividualFilter(open_numbered(source, schema), schema, terms, shares_people)


@dataclass(frozen=True)
class IndividualReader:
    """The filters read, each question on the balances that its own charge finds. V.2"""

    notes: ClassVar[tuple[str, ...]] = (BIAS,)
    has_balances: ClassVar[bool] = True
    engine: IndividualFilter
    ledger: Ledger

    def begin(self, schema: Schema) -> None:
        self.engine.schema = schema
        filters = self.engine.join(self.ledger)
        with suppress(SulqError):  # a question will say what is wrong; the ledger can be read
            filters.warm(self.ledger)

    def passes(self, mechanisms: Sequence[Mechanism]) -> list[Pass]:
        return [Pass([one], self._prepared(one)) for one in mechanisms]

    def _prepared(self, one: Mechanism) -> Callable[[Mapping[str, Charge]], list[list[int]]]:
        if not isinstance(one, NoisySums):
            one.prepare(self.engine)  # which refuses
            raise Refused(ONLY_SUMS.format("this"))
        read = self.engine.reader(one.bound, self.ledger)
        return lambda paid: [read(paid[one.priced.digest])]

    def charges(self, cost: Price, accounts: dict[str, Loss]) -> dict[str, Loss]:
        return self.engine.charges(cost, accounts)

    def check(self, bound: BoundQuery) -> None:
        self.engine.reader(bound, self.ledger)

    def histogram(self) -> list[int]:
        return self.engine.histogram(self.ledger)

    def check_covered(self, what: str) -> None:
        raise Refused(f"{what} is not covered by individual accounting; publish a table without it")
