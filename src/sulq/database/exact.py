"""Exact release: sums without noise, on assumptions. Duan 2009, as corrected in S1.15."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sulq.answers.oracle import Answer
from sulq.errors import InvalidQuery, Refused, UnsafeExactly
from sulq.exact.domain import Assumptions
from sulq.exact.release import Derived, Menu, planned, released_digest
from sulq.exact.terms import MAYBE_RELEASED, UNTIL_RELEASED, ExactTerms, promised
from sulq.formatting import decimal_left
from sulq.kernel.accounting.calibration import Calibration
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.accounting.pricing import Price, unit_cost
from sulq.kernel.engines.engine import Engine
from sulq.kernel.ledger.budget import OWNER
from sulq.kernel.ledger.events import Charge, PricedRequest
from sulq.kernel.ledger.ledger import Ledger, Snapshot
from sulq.kernel.noise.laws import NoNoise
from sulq.kernel.query.sum_query import SumQuery
from sulq.kernel.release.release import EngineReader, NoisySums, check_source, release
from sulq.kernel.schema.bind import BoundQuery, NoiseGrid, bind
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.program import RowSums
from sulq.kernel.schema.promise import Promise

Plainly = Callable[[object], Answer]
OFF = (
    "exact release is off for this table; its owner turns it on when publishing, with"
    " exactly=Assumptions(...), or exact.* in the policy"
)
AFTERWARDS = "calibrated noise, under assumptions"
"""What is said of noisy answers once something was released under assumptions."""


@dataclass(frozen=True, slots=True)
class ExactQuote:
    """What an exact answer would be, and what it does to noisy ones: their caps are divided."""

    guarantee: str
    terms: str
    divisor: int
    left: Fraction
    left_after: Fraction

    def __str__(self) -> str:
        if self.divisor == 1:
            return f"{self.guarantee}; credits left: {decimal_left(self.left)}, as before"
        return (
            f"{self.guarantee}; with it no worst-case promise is left, every cap is divided by"
            f" {self.divisor}, and of {decimal_left(self.left)} credits"
            f" {decimal_left(max(Fraction(0), self.left_after))} stay"
        )


@dataclass(frozen=True, slots=True)
class ExactRelease:
    """One table's exact side. Decisions read no private value, so refusals tell nothing."""

    schema: Schema
    promise: Promise
    engine: Engine
    ledger: Ledger
    calibration: Calibration
    assumptions: Assumptions | None

    def ask(self, batch: object, analyst: str, plainly: Plainly) -> list[Answer]:
        """Answer a batch without noise, or refuse; what is public is asked `plainly`."""
        asked = self._bound(batch)  # question and schema only; may refuse, free
        private = [bound for bound in asked if unit_cost(bound, self.calibration)]
        if not private:  # public: exact and free, and no release
            return [plainly(bound.statistic) for bound in asked]
        declared = self._menu()
        menu = declared or self._undeclared(private, analyst)  # may refuse, free
        plan = planned(menu, self.ledger.released, asked, self.schema, self._sizes)
        if declared is None:
            self._record(menu)  # durable before a row is read
        entries = {bound.text: self._release(bound, menu.terms, analyst) for bound in plan.needed}
        return [self._derive(found, entries, menu.terms, plainly) for found in plan.answers]

    def quote(self, batch: object, analyst: str) -> ExactQuote:
        """What `ask` would do; nothing is declared or released.

        Only the owner's reads public sizes before something was declared: a table that nobody asked
        anything of may still be withdrawn (ledger.md, section 18).
        """
        asked = self._bound(batch)
        private = [bound for bound in asked if unit_cost(bound, self.calibration)]
        left = self.ledger.remaining(OWNER).credits_fraction
        if not private:
            return ExactQuote("public: exact and free", "", 1, left, left)
        menu = self._menu() or self._undeclared(private, analyst)
        released = self.ledger.released
        planned(menu, released, asked, self.schema, self._sizes)
        divisor = 1 if released else menu.divisor(self.promise)
        spent = self.promise.credits - left
        after = left if released else Fraction(self.promise.credits, divisor) - spent
        return ExactQuote(menu.terms.guarantee, str(menu.terms), divisor, left, after)

    def _release(self, bound: BoundQuery, terms: ExactTerms, analyst: str) -> Charge:
        """One declared question: admitted and durable before a row is read; stored once."""
        digest, free = released_digest(bound.text), Price((terms.law,) * len(bound.terms), ())
        due = PricedRequest(bound.text, digest, terms.noise, {}, Loss.zero())

        def charge(_: Sequence[PricedRequest]) -> list[Charge]:
            named = {"question": bound.text, "digest": digest, "noise": terms.noise}
            return [self.ledger.release(**named, analyst=analyst)]

        noisy = NoisySums(bound, free, due)
        return release([noisy], EngineReader(self.engine), charge, self.ledger.settle_all)[digest]

    def _derive(
        self, derived: Derived, entries: Mapping[str, Charge], terms: ExactTerms, plainly: Plainly
    ) -> Answer:
        """Arithmetic on stored sums and public sizes."""
        bound = derived.bound
        if not derived.sources and not unit_cost(bound, self.calibration):
            return plainly(bound.statistic)  # public: exact and free
        sources = [entry for text, entry in entries.items() if text in derived.sources]
        answer = Answer.of(
            bound,
            derived.values({text: entry.values or () for text, entry in entries.items()}),
            [terms.law if sources else NoNoise()] * len(bound.terms),
            most=self.engine.size(),
            credits=Fraction(0),
            receipt=sources[0].receipt if sources else None,
            guarantee=terms.guarantee,
            terms=str(terms),
        )
        if derived.declared:
            return answer
        seen = ", ".join(str(entry.seq) for entry in sources)
        whence = f"what receipts {seen} released" if sources else "public sizes alone"
        note = "; ".join(filter(None, (answer.note, f"follows from {whence}")))
        return replace(answer, note=note)

    # --- what may be asked ----------------------------------------------------------------------

    def declare(self, menu: Sequence[Sequence[BoundQuery]]) -> Menu:
        """Certify a menu and fix it in the ledger; a refusal declares nothing."""
        found = self._certified(menu)
        self._record(found)
        return found

    def _record(self, menu: Menu) -> None:
        try:
            self.ledger.declare(menu.texts, menu.divisor(self.promise), menu.terms.to_text())
        except Refused as late:
            raise UnsafeExactly(str(late)) from None

    def _certified(self, menu: Sequence[Sequence[BoundQuery]]) -> Menu:
        if self.assumptions is None:
            raise UnsafeExactly(OFF)
        check_source(self.engine)
        return Menu.certified(menu, self.schema, self._sizes, self.assumptions)

    def _undeclared(self, asked: Sequence[BoundQuery], analyst: str) -> Menu:
        """Nothing was declared: the owner's first batch on an untouched table declares itself."""
        if analyst != OWNER and self.assumptions is not None:
            raise UnsafeExactly("the owner has declared nothing for exact release on this table")
        return self._certified([asked])

    def menu_of(self, batches: Sequence[object]) -> list[list[BoundQuery]]:
        """Batches, each a question or a list of them; also as one list of lists."""
        if len(batches) == 1 and isinstance(batches[0], list) and batches[0]:
            inner = batches[0]
            batches = inner if all(isinstance(batch, list) for batch in inner) else batches
        if not batches:
            raise InvalidQuery("declare at least one batch of questions")
        return [self._bound(batch) for batch in batches]

    def _menu(self) -> Menu | None:
        """What was declared, read back from the ledger."""
        declared = self.ledger.declaration
        if declared is None:
            return None
        batches = [
            tuple(
                self.bind(SumQuery.from_json(json.loads(text)), asked_before=True) for text in path
            )
            for path in declared.menu
        ]
        return Menu(tuple(batches), ExactTerms.from_text(declared.terms))

    def _bound(self, batch: object) -> list[BoundQuery]:
        listed = batch if isinstance(batch, list | tuple) else [batch]
        if not listed:
            raise InvalidQuery("a batch needs at least one question")
        return [self.bind(query) for query in listed]

    def bind(self, query: object, asked_before: bool = False) -> BoundQuery:
        """On the columns' own lattices: there is no noise to be finer than."""
        neighbours, grid = self.promise.neighbours, NoiseGrid(0)
        return bind(query, self.schema, neighbours, grid=grid, asked_before=asked_before)

    def _sizes(self, program: RowSums) -> list[int]:
        """How many rows the public classes have. G.2.1"""
        return self.engine.exact_sums(program)

    # --- what is said ---------------------------------------------------------------------------

    def released_terms(self) -> ExactTerms | None:
        """On what terms something was released; None if nothing was."""
        return _released_terms(self.ledger.snapshot())

    def guarantee_with(self, seen: Snapshot) -> dict[str, Any]:
        """Return what a noisy answer says where something was, or may be, released exactly."""
        terms = _released_terms(seen)
        if terms is not None:
            return {"guarantee": AFTERWARDS, "terms": promised(self.promise, terms)}
        if seen.recovered:
            return {"guarantee": AFTERWARDS, "terms": MAYBE_RELEASED}
        return {"promise": self.promise, "terms": f"{self.promise}; {UNTIL_RELEASED}"}


def _released_terms(seen: Snapshot) -> ExactTerms | None:
    if seen.declaration is None or not seen.released:
        return None
    return ExactTerms.from_text(seen.declaration.terms)
