"""What stored answers already say to a question, and what is missing: decided before any charge.

Reads the question, the noise of stored answers and who has them; never data. An analyst's share
is judged by that analyst's own answers alone. Proof: docs/proofs/derivation.md.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from sulq.accounting.calibration import Calibration
from sulq.accounting.losses import Loss
from sulq.accounting.pricing import COARSE, Price, laws_of, noise_grid, price, stored_price
from sulq.database.shelf import Shelf
from sulq.derivation.estimates import Derivation, exact_variance, sources_of
from sulq.derivation.numbers import Numbered
from sulq.derivation.recent import Recent
from sulq.derivation.store import AnswerStore
from sulq.engines.engine import Engine, check_read, check_source
from sulq.errors import InvalidQuery
from sulq.ledger.budgets import OWNER
from sulq.ledger.drawn import Handed, drawn, handed, record_at, record_of
from sulq.ledger.entries import Entry
from sulq.ledger.journal import Journal
from sulq.ledger.receipts import Receipt
from sulq.noise.distributions import DiscreteGaussian
from sulq.query.sum_query import SumQuery
from sulq.schema.binding import BoundQuery, bind
from sulq.schema.bound import RowSums
from sulq.schema.columns import Schema

NOTHING = Loss.zero()
CLOSE = 1 + Fraction(1, 10**9)
"""A variance that is larger by less is as good."""
APART = 1 + Fraction(1, 2**40)
"""Two draws of one question at one size differ in name by so much."""
MOST_SIZES = 65_536
"""Public sums that are remembered."""
SHORT = 256
"""Bits of an exact precision; a longer one is rounded down."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """How a question is met: derived for nothing, or by a draw at `cost`.

    `share` is what the analyst's share pays either way. With `sources` the draw only adds the
    precision that they lack.
    """

    cost: Price
    share: Loss
    derived: Derivation | None = None
    sources: tuple[int, ...] | None = None


class Recall:
    """One table's answer store, kept in step with its ledger."""

    def __init__(
        self, schema: Schema, neighbours: str, engine: Engine, ledger: Journal, terms: Calibration
    ) -> None:
        self.ledger, self.engine, self.calibration = ledger, engine, terms
        self._noise = terms.promise.noise
        sized = neighbours == "replace" and schema.unit == "row"  # G.2.1
        self._store = AnswerStore(
            bind=lambda text: bind(
                SumQuery.from_json(json.loads(text)), schema, neighbours, grid=noise_grid(terms)
            ),
            is_public=(lambda name: schema[name].public) if sized else None,
            shelf=Shelf(ledger),
        )
        self._lock = threading.RLock()
        self._seen = 0
        self._open: set[int] = set()  # charged and not yet answered
        self._mine: dict[str, Numbered] = {}  # analyst -> numbers of first charges
        self._sizes: Recent[RowSums, list[int]] = Recent(MOST_SIZES)

    # --- the decision ---------------------------------------------------------------------------

    def find(self, bound: BoundQuery, wanted: Price, analyst: str, confidence: float) -> Found:
        """The cheapest way to an answer at least as exact as wanted."""
        if not wanted.losses or all(not loss.credits for loss, _ in wanted.losses):
            return Found(wanted, wanted.share)  # public: exact and free
        with self._lock, self.ledger._book.at_rest():
            self._follow()
            if self.ledger.closed is not None:
                return self._kept(bound, wanted, analyst, confidence)
            if (repeated := self._itself(bound, wanted, analyst)) is not None:
                return repeated
            own = self._own(bound, wanted, analyst, confidence)
            if own is not None and self._enough(own, wanted, confidence):
                return self._free(bound, wanted, own, NOTHING)
            share = self._due(bound, wanted, own).worst
            best = own if analyst == OWNER else _sharper(own, self._best(bound))
            if best is not None and self._enough(best, wanted, confidence):
                return self._free(bound, wanted, best, share)
            waiting = self.stored(bound, wanted, analyst)
            if waiting is not None:  # paid for, and not answered
                return Found(replace(waiting, agreed=share), share)
            if best is None or self._noise != "gaussian":
                return Found(wanted, share)
            cost = self._fresh(bound, self._lacking(bound, wanted, best))
            return Found(replace(cost, agreed=share), share, sources=best.sources)

    def quoted(
        self, bound: BoundQuery, wanted: Price, analyst: str, confidence: float
    ) -> tuple[Price, Derivation | None]:
        """What this analyst has to pay, and what is already theirs: nobody else's answers show."""
        if not wanted.losses:
            return wanted, None
        with self._lock, self.ledger._book.at_rest():
            self._follow()
            if self.ledger.closed is not None:
                return wanted, self._kept(bound, wanted, analyst, confidence).derived
            own = self._own(bound, wanted, analyst, confidence)
            if own is not None and self._enough(own, wanted, confidence):
                return wanted, own
            return self._due(bound, wanted, own), None

    def stored(
        self, bound: BoundQuery, wanted: Price, analyst: str, key: str | None = None
    ) -> Price | None:
        """An earlier answer that is at least as exact, first of all the one the key stands for."""
        keyed = self.ledger.keyed(analyst, key)
        noises = self.ledger.stored(bound.digest)
        if keyed is not None and keyed[0] == bound.digest:
            noises = (keyed[1], *noises)
        for noise in noises:
            if sources_of(noise) is None:
                found = stored_price(bound, self.calibration, wanted, noise)
                if found is not None:
                    return found
        return None

    def told(self, bound: BoundQuery, wanted: Price, analyst: str) -> Price | None:
        """An answer that this analyst was given. What is paid for and not yet answered is none:
        whoever takes it for one and asks has the rows read."""
        with self._lock:
            self._follow()
            found = self.stored(bound, wanted, analyst)
            if found is None or not self._answered(bound, found.noise):
                return None
            return found if self.ledger.paid(analyst, bound.digest, found.noise) else None

    def named(self, bound: BoundQuery, noise: str) -> Derivation | None:
        """The derivation that a name in the ledger stands for."""
        sources = sources_of(noise)
        if sources is None:
            return None
        with self._lock:
            self._follow()
            return self._store.derive(bound, frozenset(sources), every=True)

    def after(self, bound: BoundQuery, sources: tuple[int, ...], drawn: int) -> Derivation:
        """The estimate from earlier answers and a new draw."""
        with self._lock:
            self._follow()
            found = self._store.derive(bound, frozenset((*sources, drawn)), every=True)
        assert found is not None  # noqa: S101  (the draw alone answers it)
        return found

    def receipt(self, bound: BoundQuery, derived: Derivation, entry: Entry) -> Receipt | None:
        """Of the draw by which this analyst topped the question up, else of what is derived."""
        last = max(derived.sources, default=0)
        if self._is_own(bound, last) and drawn(self.ledger, [last])[0].analyst == entry.analyst:
            return self.ledger.receipt(last)
        return entry.receipt

    def public_sums(self, program: RowSums | None) -> list[int]:
        """Sums of public columns, the same for ever. G.2.1"""
        if program is None:
            return []
        with self._lock:
            known = self._sizes.get(program)
        if known is None:
            check_source(self.engine)
            known = self.engine.exact_sums(program)
            check_read(self.engine)
            with self._lock:
                self._sizes.put(program, known, len(known))
        return known

    def _own(
        self, bound: BoundQuery, wanted: Price, analyst: str, confidence: float
    ) -> Derivation | None:
        """The best that this analyst could work out; of the owner's, everything."""
        if analyst == OWNER:
            return self._best(bound)
        mine = self._mine.get(analyst)
        if not mine:
            return None
        best = self._settled(bound, self._store.derive(bound, mine))
        for noise in self.ledger.stored(bound.digest):
            if sources_of(noise) is not None and self.ledger.paid(analyst, bound.digest, noise):
                best = _sharper(best, self.named(bound, noise))
        return best

    def _best(self, bound: BoundQuery) -> Derivation | None:
        """The best of all answers; what was derived once stays, whatever was asked since."""
        best = self._settled(bound, self._store.derive(bound))
        for noise in self.ledger.stored(bound.digest):
            if sources_of(noise) is not None:
                best = _sharper(best, self.named(bound, noise))
        return best

    def _settled(self, bound: BoundQuery, found: Derivation | None) -> Derivation | None:
        """The derivation that its own sources give: a retry, which knows those alone, finds it."""
        while found is not None:
            again = self._store.derive(bound, frozenset(found.sources), every=True)
            if again is None or again.sources == found.sources:
                return again
            found = again
        return None

    def _kept(self, bound: BoundQuery, wanted: Price, analyst: str, confidence: float) -> Found:
        """Of a closed table: an answer that this analyst was given, as it was; else `Refused`."""
        for noise in self.ledger.stored(bound.digest):
            if not self.ledger.paid(analyst, bound.digest, noise):
                continue
            if sources_of(noise) is None:
                cost = stored_price(bound, self.calibration, wanted, noise)
                if cost is not None:
                    return Found(replace(cost, agreed=NOTHING), NOTHING)
            elif (named := self.named(bound, noise)) and self._enough(named, wanted, confidence):
                return Found(wanted, NOTHING, named)
        self.ledger.check_asker(analyst)
        return Found(wanted, wanted.share)

    def _itself(self, bound: BoundQuery, wanted: Price, analyst: str) -> Found | None:
        """A stored answer of several sums stays the answer: what others add is bounded loosely."""
        if sum(term.unit > 0 for term in bound.terms) < 2 or bound.tree is not None:
            return None
        told = self.told(bound, wanted, analyst)
        return None if told is None else Found(replace(told, agreed=NOTHING), NOTHING)

    def _free(self, bound: BoundQuery, wanted: Price, found: Derivation, share: Loss) -> Found:
        record = record_at(self.ledger, found.sources[0]) if found.repeat else None
        if record is not None and self._is_own(bound, record.seq):
            stored = stored_price(bound, self.calibration, wanted, record.noise)
            if stored is not None:
                return Found(replace(stored, agreed=share), share)
        return Found(wanted, share, found)

    def _enough(self, found: Derivation, wanted: Price, confidence: float) -> bool:
        """Every sum at least as exact as asked; coarse laws only as they are."""
        if self._noise in COARSE:
            return found.laws() == wanted.laws
        for law, own in zip(wanted.laws, found.variances(), strict=True):
            if max(own) > exact_variance(law) * CLOSE:
                return False
        if self._noise == "laplace":
            return self._narrow(found, wanted, confidence)
        return found.alike or found.bound.statistic.kind != "cdf" or _rises(found, wanted)

    def _narrow(self, found: Derivation, wanted: Price, confidence: float) -> bool:
        """Sums of Laplace noises have other tails than one."""
        asked = zip(found.bound.terms, wanted.laws, found.places(), strict=True)
        for term, law, places in asked:
            most = float(law.half_width(confidence) * term.fine_step) * (1 + 1e-6)
            if any(found.half_width(place, confidence) > most for place in places):
                return False
        return True

    def _due(self, bound: BoundQuery, wanted: Price, found: Derivation | None) -> Price:
        """The price of what is asked, less what these answers are worth."""
        if found is None or self._noise != "gaussian":
            return wanted
        return price(bound, self.calibration, self._lacking(bound, wanted, found))

    def _lacking(self, bound: BoundQuery, wanted: Price, found: Derivation) -> Fraction:
        """The precision that stored answers lack, in unit prices: 1/R' - 1/V. M.7"""
        units = [self.calibration.unit_variance * term.fine_unit**2 for term in bound.terms]
        whole = next(
            unit / law.sigma_squared
            for unit, law in zip(units, wanted.laws, strict=True)
            if isinstance(law, DiscreteGaussian)
        )
        known = zip(units, found.variances(), strict=True)
        held = min((unit / v for unit, own in known for v in own if v), default=Fraction(0))
        rest = whole - _short(held)
        return rest if rest > 0 else whole  # each sum is exact enough, but not all together

    def _fresh(self, bound: BoundQuery, intensity: Fraction) -> Price:
        """A draw of its own: its size, and so its name, differs from that of earlier ones."""
        cost = price(bound, self.calibration, intensity)
        while self._answered(bound, cost.noise):
            intensity *= APART
            cost = price(bound, self.calibration, intensity)
        return cost

    # --- keeping in step ------------------------------------------------------------------------

    def _follow(self) -> None:
        """Take in what the ledger has stored since."""
        head = self.ledger.head
        if head == self._seen:
            return
        waiting = [one for seq in sorted(self._open) for one in handed(self.ledger, seq - 1, seq)]
        for one in (*waiting, *handed(self.ledger, self._seen, head)):
            if one.record.answer is None:
                self._open.add(one.seq)
            else:
                self._open.discard(one.seq)
                self._take(one)
        self._seen = head

    def _take(self, one: Handed) -> None:
        record = one.record
        if one.analyst != OWNER:  # whose all are
            self._mine.setdefault(one.analyst, Numbered()).put(record.seq)
        if record.seq in self._store or sources_of(record.noise) is not None:
            return
        if not self.ledger.stands(one.seq):
            return  # lost at a recovery, or it means something else since an amendment
        try:
            laws_of(record.noise)
        except (InvalidQuery, TypeError, ValueError, AttributeError):
            return  # a release under assumptions
        self._store.add(record.seq, one.question, record.digest)

    def _answered(self, bound: BoundQuery, noise: str) -> bool:
        """Whether the answer of this name was taken in."""
        found = record_of(self.ledger, bound.digest, noise)
        return found is not None and found.seq in self._store

    def _is_own(self, bound: BoundQuery, number: int) -> bool:
        """Whether a stored answer is one to this very question."""
        found = record_at(self.ledger, number)
        return found is not None and found.digest == bound.digest and number in self._store


def _sharper(one: Derivation | None, other: Derivation | None) -> Derivation | None:
    """Whichever tells more; the first if they tell the same."""
    if one is None or other is None:
        return one or other
    return other if other.spread < one.spread else one


def _short(precision: Fraction) -> Fraction:
    """Rounded down where its spelling is long."""
    if precision.denominator.bit_length() <= SHORT:
        return precision
    scale = Fraction(2) ** (
        48 - precision.numerator.bit_length() + precision.denominator.bit_length()
    )
    return Fraction((precision * scale).__floor__()) / scale


def _rises(found: Derivation, wanted: Price) -> bool:
    """The sums below each edge too, where errors add up."""
    below = np.tri(len(found.estimates))
    term, law = found.bound.terms[0], wanted.laws[0]
    each = (law.standard_deviation() * float(term.fine_step)) ** 2
    spread = np.einsum("ij,jk,ik->i", below, found.covariance(), below)
    return bool((spread <= each * np.arange(1, len(below) + 1) * (1 + 1e-9)).all())
