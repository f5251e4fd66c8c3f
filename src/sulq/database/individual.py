"""A filter for every person: questions that do not touch somebody do not spend theirs. V.2

Who takes part in a question is a function of the rows and of the ledger's charges, in their order,
up to it. So the ledger's charge is the durable record of every balance: nothing is written
anew, a crash loses nothing, and a retry finds the same people. `filters` keeps the order, here is
one table's part in it. Proof: docs/proofs/individual.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sulq.accounting.calibration import Calibration
from sulq.accounting.individual import (
    Whole,
    charged,
    least,
    per_person,
    rates,
    steps_per_credit,
    summed,
)
from sulq.accounting.losses import Loss
from sulq.accounting.pricing import Price, laws_of, noise_grid
from sulq.database.filters import Filters, Past, filters_of, guarded
from sulq.errors import BudgetSpent, Refused
from sulq.ledger.entries import Entry
from sulq.ledger.journal import Journal
from sulq.noise.distributions import DiscreteGaussian
from sulq.oracle import credits_text
from sulq.query.sum_query import SumQuery
from sulq.schema.binding import BoundQuery, bind
from sulq.schema.bound import RowSums
from sulq.schema.columns import Schema
from sulq.schema.persons import PersonSums
from sulq.schema.population import MOST_ROWS
from sulq.schema.trees import TreeSums

if TYPE_CHECKING:  # loaded with a table that has individual accounting
    from sulq.engines.numbered import Identities, NumberedRows
    from sulq.engines.row_values import RowValues
    from sulq.schema.vectors import BlockSums

BY_ROW = (RowSums, TreeSums, PersonSums)
"""Programs that are no matrix of products."""
ONLY_SUMS = (
    "a table with individual accounting answers counts, totals, means, histograms, distributions"
    " and matrices of products; {} is not covered by its proof, ask it of a table without"
)


class Individual:
    """An engine that adds up only those whose balance allows it; and nothing without a charge."""

    def __init__(
        self, rows: NumberedRows, schema: Schema, calibration: Calibration, shares_people: bool
    ) -> None:
        """`schema` is to be set to the one on the table's grid: `reading.pinned` does that.

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

    def join(self, ledger: Journal) -> Filters:
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

    def reader(self, bound: BoundQuery, ledger: Journal) -> Callable[[Entry], list[int]]:
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

    def step(self, past: Past, entry: Entry) -> list[int]:
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
            marked = np.zeros(self._engine._rows, np.bool_)
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

    def histogram(self, ledger: Journal, bars: int = 10) -> list[int]:
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

    def prepare_keys(self, program: object) -> Callable[[], Iterator[list[tuple[str, int]]]]:
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
