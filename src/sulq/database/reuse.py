"""What stored answers already say to a question, and what is missing: decided before any charge.

Reads the question, the noise of stored answers and who has them; never data. An analyst's share
is judged by that analyst's own answers alone. Proof: docs/proofs/derivation.md.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from sulq.errors import InvalidQuery
from sulq.kernel.accounting.calibration import Calibration
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.accounting.pricing import (
    COARSE,
    Price,
    laws_of,
    noise_grid,
    price,
    sources_of,
    stored_price,
)
from sulq.kernel.engines.engine import Engine
from sulq.kernel.ledger.budget import OWNER
from sulq.kernel.ledger.events import Charge
from sulq.kernel.ledger.ledger import ChargeRow, Ledger, Snapshot
from sulq.kernel.ledger.signing import Receipt
from sulq.kernel.noise.laws import DiscreteGaussian, Law
from sulq.kernel.query.sum_query import SumQuery
from sulq.kernel.release.release import check_read, check_source
from sulq.kernel.reuse.estimate import LinearEstimate, exact_variance
from sulq.kernel.reuse.store import AnswerStore, IntMap, Stored, WeightedLRU
from sulq.kernel.schema.bind import BoundQuery, bind
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.program import RowSums

NOTHING = Loss.zero()
CLOSE = 1 + Fraction(1, 10**9)
"""A variance that is larger by less is as good."""
APART = 1 + Fraction(1, 2**40)
"""Two draws of one question at one size differ in name by so much."""
MOST_SIZES = 65_536
"""Public sums that are remembered."""
MOST_LATELY = 4_096
"""Stored integers that need not be read back: the next question asks what the last one tells."""
SHORT = 256
"""Bits of an exact precision; a longer one is rounded down."""


@dataclass(frozen=True, slots=True, eq=False)
class ReusePlan:
    """How a question is met: told before, derived for nothing, or by a draw at `cost`.

    `share` is what the analyst's share pays either way. With `sources` the draw only adds the
    precision that they lack. `told`: the answer at this noise is stored, and this analyst has it.
    """

    cost: Price
    share: Loss
    derived: LinearEstimate | None = None
    sources: tuple[int, ...] | None = None
    told: bool = False


class OwnPrice(NamedTuple):
    """What a question costs an analyst, given what this analyst was told. A colleague's question
    is not for others to see."""

    due: Price
    repeat: bool  # it costs nothing
    laws: Sequence[Law]  # of the answer that they have or would get


class AnswerReuse:
    """One table's answer store, kept in step with its ledger."""

    def __init__(
        self, schema: Schema, neighbours: str, engine: Engine, ledger: Ledger, terms: Calibration
    ) -> None:
        self.ledger, self.engine, self.calibration = ledger, engine, terms
        self._noise = terms.promise.noise
        sized = neighbours == "replace" and schema.unit == "row"  # G.2.1
        public = {column.name for column in schema.columns if column.public}
        self._store = AnswerStore(
            bind=lambda text: bind(
                SumQuery.from_json(json.loads(text)), schema, neighbours, grid=noise_grid(terms)
            ),
            is_public=public.__contains__ if sized else None,
            read=self._read,
            draws=ledger.numbers_of,
        )
        self._lock = threading.RLock()
        self._seen = 0
        self._open: set[int] = set()  # charged and not yet answered
        self._mine: dict[str, IntMap] = {}  # analyst -> numbers of first charges
        self._sizes: WeightedLRU[RowSums, list[int]] = WeightedLRU(MOST_SIZES)
        self._lately: WeightedLRU[int, Stored] = WeightedLRU(MOST_LATELY)  # by first charge

    # --- the decision ---------------------------------------------------------------------------

    def find(self, bound: BoundQuery, wanted: Price, analyst: str, confidence: float) -> ReusePlan:
        """What the analyst was told, else the cheapest way to an answer at least as exact."""
        with self._lock, self.ledger.at_rest():
            seen = self.ledger.snapshot(analyst, digest=bound.digest)
            if (told := self._told(seen, bound, wanted, confidence)) is not None:
                return told  # whatever was asked since
            if seen.closed is not None:
                self.ledger.check_asker(analyst)
            if not wanted.losses or all(not loss.credits for loss, _ in wanted.losses):
                return ReusePlan(wanted, wanted.share)  # public: exact and free
            self._follow(seen.head)
            if (repeated := self._itself(seen, bound, wanted)) is not None:
                return repeated
            own = self._own(seen, bound, analyst)
            if own is not None and self._enough(own, wanted, confidence):
                return self._free(bound, wanted, own, NOTHING)
            share = self._due(bound, wanted, own).worst
            best = own if analyst == OWNER else _sharper(own, self._best(seen, bound))
            if best is not None and self._enough(best, wanted, confidence):
                return self._free(bound, wanted, best, share)
            waiting = self.stored(seen, bound, wanted)
            if waiting is not None:  # paid for, and not answered
                return ReusePlan(replace(waiting, agreed=share), share)
            if best is None or self._noise != "gaussian":
                return ReusePlan(wanted, share)
            cost = replace(self._fresh(bound, self._lacking(bound, wanted, best)), agreed=share)
            if stored_price(bound, self.calibration, wanted, cost.noise) is not None:
                return ReusePlan(cost, share)  # the draw is the answer: it is as exact as wanted
            return ReusePlan(cost, share, sources=best.sources)

    def quoted(self, bound: BoundQuery, wanted: Price, analyst: str, confidence: float) -> OwnPrice:
        """What this analyst has to pay, and what is already theirs: nobody else's answers show."""
        with self._lock, self.ledger.at_rest():
            seen = self.ledger.snapshot(analyst, digest=bound.digest)
            if (told := self._told(seen, bound, wanted, confidence)) is not None:
                return OwnPrice(wanted, True, _laws(told))
            if seen.closed is not None:
                self.ledger.check_asker(analyst)
            if not wanted.losses:
                return OwnPrice(wanted, False, wanted.laws)
            self._follow(seen.head)
            if (repeated := self._itself(seen, bound, wanted)) is not None:
                return OwnPrice(wanted, True, repeated.cost.laws)
            own = self._own(seen, bound, analyst)
            if own is not None and self._enough(own, wanted, confidence):
                return OwnPrice(wanted, True, own.laws() or own.worst())
            return OwnPrice(self._due(bound, wanted, own), False, wanted.laws)

    def known(self, bound: BoundQuery, analyst: str) -> LinearEstimate | None:
        """The best that this analyst could work out by now, however exact; nothing is written."""
        with self._lock, self.ledger.at_rest():
            seen = self.ledger.snapshot(analyst, digest=bound.digest)
            self._follow(seen.head)
            return self._own(seen, bound, analyst)

    def stored(self, seen: Snapshot, bound: BoundQuery, wanted: Price) -> Price | None:
        """An earlier answer that is at least as exact, first of all the one the key stands for."""
        noises = seen.stored
        if seen.keyed is not None and seen.keyed[0] == bound.digest:
            noises = (seen.keyed[1], *noises)
        for noise in noises:
            if sources_of(noise) is None:
                found = stored_price(bound, self.calibration, wanted, noise)
                if found is not None:
                    return found
        return None

    def _told(
        self, seen: Snapshot, bound: BoundQuery, wanted: Price, confidence: float
    ) -> ReusePlan | None:
        """Return the first answer to this very question that the analyst was told and that is as
        exact as wanted. Answers that are told later come after it, so it stays the answer."""
        for noise in seen.told:
            if sources_of(noise) is not None:
                self._follow(seen.head)
                named = self._named(bound, noise)
                if named is not None and self._enough(named, wanted, confidence):
                    return ReusePlan(wanted, NOTHING, named)
            elif (cost := stored_price(bound, self.calibration, wanted, noise)) is not None:
                return ReusePlan(replace(cost, agreed=NOTHING), NOTHING, told=True)
        return None

    def named(self, bound: BoundQuery, noise: str) -> LinearEstimate | None:
        """The derivation that a name in the ledger stands for."""
        with self._lock:
            self._follow(self.ledger.head)
            return self._named(bound, noise)

    def _named(self, bound: BoundQuery, noise: str) -> LinearEstimate | None:
        sources = sources_of(noise)
        if sources is None:
            return None
        return self._store.derive(bound, frozenset(sources), every=True)

    def after(self, bound: BoundQuery, sources: tuple[int, ...], drawn: int) -> LinearEstimate:
        """The estimate from earlier answers and a new draw."""
        with self._lock:
            self._follow(self.ledger.head)
            found = self._store.derive(bound, frozenset((*sources, drawn)), every=True)
        assert found is not None  # noqa: S101  (the draw alone answers it)
        return found

    def receipt(self, bound: BoundQuery, derived: LinearEstimate, entry: Charge) -> Receipt | None:
        """Of the draw by which this analyst topped the question up, else of what is derived."""
        last = max(derived.sources, default=0)
        if (
            self._is_own(bound, last)
            and self.ledger.stored_answers([last])[0].analyst == entry.analyst
        ):
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

    def _own(self, seen: Snapshot, bound: BoundQuery, analyst: str) -> LinearEstimate | None:
        """The best that this analyst could work out; the owner has every answer."""
        if analyst == OWNER:
            return self._best(seen, bound)
        mine = self._mine.get(analyst)
        if not mine:
            return None
        best = self._settled(bound, self._store.derive(bound, mine))
        for noise in seen.stored:
            if noise in seen.paid:
                best = _sharper(best, self._named(bound, noise))
        return best

    def _best(self, seen: Snapshot, bound: BoundQuery) -> LinearEstimate | None:
        """The best of all answers; what was derived once stays, whatever was asked since."""
        best = self._settled(bound, self._store.derive(bound))
        for noise in seen.stored:
            best = _sharper(best, self._named(bound, noise))
        return best

    def _settled(self, bound: BoundQuery, found: LinearEstimate | None) -> LinearEstimate | None:
        """The derivation that its own sources give: a retry, which knows those alone, finds it."""
        while found is not None:
            again = self._store.derive(bound, frozenset(found.sources), every=True)
            if again is None or again.sources == found.sources:
                return again
            found = again
        return None

    def _itself(self, seen: Snapshot, bound: BoundQuery, wanted: Price) -> ReusePlan | None:
        """For the owner, an analyst's answer of several sums: what others add to it is bounded
        loosely."""
        if sum(term.unit > 0 for term in bound.terms) < 2 or bound.tree is not None:
            return None
        found = self.stored(seen, bound, wanted)
        if found is None or not self._answered(bound, found.noise):
            return None
        if found.noise not in seen.paid:
            return None
        return ReusePlan(replace(found, agreed=NOTHING), NOTHING)

    def _free(
        self, bound: BoundQuery, wanted: Price, found: LinearEstimate, share: Loss
    ) -> ReusePlan:
        record = self.ledger.record_at(found.sources[0]) if found.repeat else None
        if record is not None and self._is_own(bound, record.seq):
            stored = stored_price(bound, self.calibration, wanted, record.noise)
            if stored is not None:
                return ReusePlan(replace(stored, agreed=share), share)
        return ReusePlan(wanted, share, found)

    def _enough(self, found: LinearEstimate, wanted: Price, confidence: float) -> bool:
        """Every sum at least as exact as asked; coarse laws only as they are."""
        if self._noise in COARSE:
            return found.laws() == wanted.laws
        for law, own in zip(wanted.laws, found.variances(), strict=True):
            if max(own) > exact_variance(law) * CLOSE:
                return False
        if self._noise == "laplace":
            return self._narrow(found, wanted, confidence)
        return _rises(found, wanted)

    def _narrow(self, found: LinearEstimate, wanted: Price, confidence: float) -> bool:
        """Sums of Laplace noises have other tails than one."""
        asked = zip(found.bound.terms, wanted.laws, found.places(), strict=True)
        for term, law, places in asked:
            most = float(law.half_width(confidence) * term.fine_step) * (1 + 1e-6)
            if any(found.half_width(place, confidence) > most for place in places):
                return False
        return True

    def _due(self, bound: BoundQuery, wanted: Price, found: LinearEstimate | None) -> Price:
        """The price of what is asked, less what these answers are worth."""
        if found is None or self._noise != "gaussian":
            return wanted
        return price(bound, self.calibration, self._lacking(bound, wanted, found))

    def _lacking(self, bound: BoundQuery, wanted: Price, found: LinearEstimate) -> Fraction:
        """The precision that stored answers lack, in unit prices: 1/R' - 1/V. M.7"""
        units = [self.calibration.unit_variance * term.fine_unit**2 for term in bound.terms]
        whole = next(
            unit / law.sigma_squared
            for unit, law in zip(units, wanted.laws, strict=True)
            if isinstance(law, DiscreteGaussian)
        )
        known = zip(units, found.variances(), strict=True)
        held = _short(min((unit / v for unit, own in known for v in own if v), default=Fraction(0)))
        if not held or held >= whole or not _rises(found, wanted, whole / held):
            return whole  # each sum may be exact enough, but not all together
        return whole - held

    def _fresh(self, bound: BoundQuery, intensity: Fraction) -> Price:
        """A draw of its own: its size, and so its name, differs from that of earlier ones."""
        cost = price(bound, self.calibration, intensity)
        while self._answered(bound, cost.noise):
            intensity *= APART
            cost = price(bound, self.calibration, intensity)
        return cost

    # --- keeping in step ------------------------------------------------------------------------

    def _follow(self, head: int) -> None:
        """Take in what the ledger has stored up to event `head`."""
        if head == self._seen:
            return
        waiting = [
            one for seq in sorted(self._open) for one in self.ledger.charges_between(seq - 1, seq)
        ]
        for one in (*waiting, *self.ledger.charges_between(self._seen, head)):
            if one.record.answer is None:
                self._open.add(one.seq)
            else:
                self._open.discard(one.seq)
                self._take(one)
        self._seen = head

    def _take(self, one: ChargeRow) -> None:
        record = one.record
        if one.analyst != OWNER:  # the owner may read every analyst's answers
            self._mine.setdefault(one.analyst, IntMap()).put(record.seq)
        if record.seq in self._store or sources_of(record.noise) is not None:
            return
        if not record.found:
            return  # lost at a recovery, or it means something else since an amendment
        try:
            laws_of(record.noise)
        except (InvalidQuery, TypeError, ValueError, AttributeError):
            return  # a release under assumptions
        self._store.add(record.seq, one.question, record.digest)

    def keep(self, entry: Charge) -> None:
        """Remember an answer that was stored just now: it need not be read back."""
        assert entry.values is not None  # noqa: S101
        named = (entry.seq, entry.question, entry.digest)
        with self._lock:
            stored = Stored(*named, laws_of(entry.noise), entry.values)
            self._lately.put(entry.seq, stored, 8 + len(entry.values))

    def _read(self, numbers: Sequence[int]) -> list[Stored]:
        """The stored noisy answers of these numbers, from memory or the ledger."""
        lately = {number: self._lately.get(number) for number in numbers}
        found = {number: stored for number, stored in lately.items() if stored is not None}
        for it in self.ledger.stored_answers([one for one in numbers if one not in found]):
            record = it.record
            named = (record.seq, it.question, record.digest)
            found[record.seq] = Stored(*named, laws_of(record.noise), it.values)
        return [found[number] for number in numbers]

    def _answered(self, bound: BoundQuery, noise: str) -> bool:
        """Whether the answer of this name was taken in."""
        found = self.ledger.record_of(bound.digest, noise)
        return found is not None and found.seq in self._store

    def _is_own(self, bound: BoundQuery, number: int) -> bool:
        """Whether a stored answer is one to this very question."""
        found = self.ledger.record_at(number)
        return found is not None and found.digest == bound.digest and number in self._store


def _laws(found: ReusePlan) -> Sequence[Law]:
    """Return the laws of an answer that is there, as a quote states them."""
    if found.derived is None:
        return found.cost.laws
    return found.derived.laws() or found.derived.worst()


def _sharper(one: LinearEstimate | None, other: LinearEstimate | None) -> LinearEstimate | None:
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


def _rises(found: LinearEstimate, wanted: Price, wider: Fraction = Fraction(1)) -> bool:
    """Return True if the sums below each edge, where errors add up, are as exact as those of draws
    with the variance wanted, or so many times wider."""
    if found.alike or found.bound.statistic.kind != "cdf":
        return True
    below = np.tri(len(found.estimates))
    term, law = found.bound.terms[0], wanted.laws[0]
    each = float(wider) * (law.standard_deviation() * float(term.fine_step)) ** 2
    spread = np.einsum("ij,jk,ik->i", below, found.covariance(), below)
    return bool((spread <= each * np.arange(1, len(below) + 1) * (1 + 1e-9)).all())
