"""Rows that live with several owners: sums add, and each owner adds noise of its own.

A question is charged to every owner's ledger. A person whose rows one owner holds loses only there;
who is held by several loses the sum. Proof: docs/proofs/federation.md, section 1.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

from sulq.answers.error_bars import Draw
from sulq.answers.oracle import Answer, Oracle, Quote, is_durable
from sulq.answers.statistics import forecast, read_derived
from sulq.errors import BudgetSpent, InvalidQuery, Refused, SulqError
from sulq.formatting import credits_left, credits_text
from sulq.kernel.noise.laws import DiscreteGaussian, DiscreteLaplace, Law, NoNoise
from sulq.kernel.reuse.estimate import LinearEstimate, StoredDraws
from sulq.kernel.schema.bind import BoundQuery
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.promise import Promise
from sulq.sql.api import ask_sql, quote_sql
from sulq.wire.convert import bind_public

Asked = TypeVar("Asked")
Found = TypeVar("Found")
OWN = -1
"""The number of an answer whose noise is its own; stored ones count from 0."""


@dataclass(frozen=True, slots=True)
class Receipts:
    """One receipt from each owner, in their order."""

    each: tuple[Any, ...]

    @property
    def seq(self) -> tuple[int, ...]:
        return tuple(receipt.seq for receipt in self.each)

    def to_json(self) -> str:
        """One a line: what `sulq verify` reads."""
        return "\n".join(receipt.to_json() for receipt in self.each)


class RowSplit:
    """An Oracle. `credits` are what each owner's ledger is charged, not their sum."""

    def __init__(self, owners: Sequence[Oracle]) -> None:
        if len(owners) < 2:
            raise InvalidQuery(f"rows are split over 2 owners or more, got {len(owners)}")
        self.owners = tuple(owners)
        first = owners[0]
        for place, owner in enumerate(owners[1:], 2):
            if owner.promise != first.promise:
                raise InvalidQuery(
                    f"owner {place} promises {owner.promise}, the first {first.promise}: a credit"
                    " must mean the same everywhere; agree on one promise"
                )
            if _facts(owner.schema) != _facts(first.schema):
                raise InvalidQuery(
                    f"owner {place} declares other columns, bounds or values than the first;"
                    " declare the same in the same order"
                )
        # the finest grid has room for what is read on the others
        self.schema: Schema = max((o.schema for o in owners), key=lambda schema: schema.bits)
        self.promise: Promise = first.promise

    @property
    def size(self) -> int | None:
        """Rows of all owners together; None under add-remove."""
        sizes = [owner.size for owner in self.owners]
        return None if None in sizes else sum(size or 0 for size in sizes)

    @property
    def durable(self) -> bool:
        """Whether any owner's ledger keeps what is spent."""
        return any(is_durable(owner) for owner in self.owners)

    @property
    def remaining(self) -> Fraction:
        """What the owner with least left would still answer."""
        return min(owner.remaining for owner in self.owners)

    def quote(self, query: object, *, rows: int | None = None, **terms: Any) -> Quote:
        """What each owner charges, and the bar of the sum; free."""
        given = at_once(lambda owner: owner.quote(query, rows=rows, **terms), self.owners)
        return self._quoted(query, given, rows)

    def _quoted(self, query: object, given: Sequence[Quote], rows: int | None) -> Quote:
        bound = self._bound(query)
        for place, (owner, quote) in enumerate(zip(self.owners, given, strict=True), 1):
            _scales(bind_public(query, owner.schema, self.promise), bound)  # else not asked
            if len(quote.forecast.laws) != len(bound.terms):
                raise Refused(f"owner {place} quoted another question; nothing was asked")
        laws = [_added(laws) for laws in zip(*(q.forecast.laws for q in given), strict=True)]
        return Quote(
            credits=max(quote.credits for quote in given),
            left_after=min(quote.left_after for quote in given),
            forecast=forecast(bound, laws, rows, self.size),
            repeat=all(quote.repeat for quote in given),
            notes=given[0].notes,
        )

    def ask(self, query: object, *, key: str | None = None, **terms: Any) -> Answer:
        """Ask every owner and add up. Priced everywhere first: a share too small spends nothing."""
        given = at_once(lambda owner: owner.quote(query, **terms), self.owners)
        quote = self._quoted(query, given, terms.get("rows"))
        again = key or secrets.token_hex(16)
        answers = self._charged(
            quote, given, lambda owner: owner.ask(query, key=again, **terms), again, key is not None
        )
        for place, owner in enumerate(self.owners):
            _check_fits(answers[place], bind_public(query, owner.schema, self.promise), place + 1)
        return self._together(query, answers)

    def _charged(
        self,
        quote: Quote,
        given: Sequence[Quote],
        verb: Callable[[Any], Found],
        key: str,
        known: bool,
    ) -> list[Found]:
        """What every owner says, in their order; an error names the key under which to go on.

        `known`: the key may stand for what is paid, so that a share too small may do.
        """
        short = [place for place, each in enumerate(given) if not each.affordable]
        if short and not known:
            raise BudgetSpent(
                f"this costs {credits_text(quote.credits)} with each owner, and one has"
                f" {credits_left(quote.left_after + quote.credits)} left; nothing was asked"
            )
        found: dict[int, Found] = {}

        def asked(place: int) -> None:
            found[place] = verb(self.owners[place])

        try:
            for place in short:  # under a known key it is paid; else refused before others pay
                asked(place)
            at_once(asked, [place for place in range(len(given)) if place not in short])
        except SulqError as error:
            error.credits_spent = None if found else error.credits_spent  # the ledgers know
            error.add_note(
                f"{len(found)} of {len(self.owners)} owners have answered and charged; ask again"
                f" with key={key!r}: they repeat their answer for free"
            )
            raise
        return [found[place] for place in range(len(given))]

    def sql(self, text: str, **terms: Any) -> Any:
        """A SELECT over all owners' rows: `Database.sql`."""
        return ask_sql(self, text, **terms)

    def quote_sql(self, text: str, **terms: Any) -> Any:
        return quote_sql(self, text, **terms)

    def __repr__(self) -> str:
        return f"<RowSplit of {len(self.owners)} owners, {self.promise}>"

    # --- adding up ------------------------------------------------------------------------------

    def _bound(self, query: object) -> BoundQuery:
        return bind_public(query, self.schema, self.promise)

    def _together(self, query: object, answers: Sequence[Answer]) -> Answer:
        bound = self._bound(query)
        size = self.size
        most = None if size is None else size * self.schema.max_rows
        scales = [_scales(answer.bound, bound) for answer in answers]
        each = [
            [value * scale[place % len(scale)] for place, value in enumerate(answer.values)]
            for answer, scale in zip(answers, scales, strict=True)
        ]
        values = [
            int((sum(found, Fraction(0)) + Fraction(1, 2)) // 1)
            for found in zip(*each, strict=True)
        ]
        derived = None if bound.tree else _derivation(bound, answers, scales)
        laws = _tree_laws(answers, scales) if derived is None else derived.laws()
        shared = derived is not None and laws is None
        return Answer.of(
            bound,
            values,
            laws or (derived.worst() if derived is not None else ()),
            most=most,
            credits=max(answer.credits for answer in answers),
            receipt=Receipts(tuple(answer.receipt for answer in answers)),
            promise=self.promise,
            reading=read_derived(derived, values, most) if shared and derived else None,
        )


def _check_fits(answer: object, asked: BoundQuery, place: int) -> None:
    """Raise if an owner's reply is not an answer to this question: sums that do not belong
    together must not be added. A false value of the right shape cannot be noticed."""
    fits = False
    if isinstance(answer, Answer) and answer.bound is not None:
        mixture = answer.reading.mixture
        made_of = len(asked.terms) if mixture is None else asked.width
        fits = (
            answer.bound.digest == asked.digest
            and len(answer.values) == asked.width
            and all(type(value) is int for value in answer.values)
            and len(answer.laws if mixture is None else mixture.sums) == made_of
        )
    if not fits:
        raise SulqError(
            f"owner {place} sent what is no answer to this question, so nothing is added up; what"
            " the owners charged stands: tell that owner, then ask again with the same key"
        )


def at_once(verb: Callable[[Asked], Found], asked: Sequence[Asked]) -> list[Found]:
    """Owners may be far away."""
    with ThreadPoolExecutor(max(1, len(asked))) as pool:
        return list(pool.map(verb, asked))


def _derivation(
    bound: BoundQuery, answers: Sequence[Answer], scales: Sequence[Sequence[Fraction]]
) -> LinearEstimate:
    """What the noise of each sum is made of, over all owners."""
    estimates: list[list[StoredDraws]] = [[] for _ in answers[0].values]
    for owner, (answer, scale) in enumerate(zip(answers, scales, strict=True)):
        for place, draws in enumerate(_draws(answer)):
            estimates[place] += [
                StoredDraws(
                    seq=len(answers) * seq + owner,
                    place=at,
                    weight=weight * scale[place % len(scale)],
                    value=0,
                    law=law,
                )
                for seq, at, weight, law in draws
            ]
    none: list[dict[int, Fraction]] = [{} for _ in estimates]
    return LinearEstimate(bound=bound, estimates=estimates, constants=none, public=None, exact=True)


def _tree_laws(answers: Sequence[Answer], scales: Sequence[Sequence[Fraction]]) -> tuple[Law, ...]:
    """Of a whole distribution: a law for each level, and the levels are on one grid."""
    if any(answer.reading.mixture is not None for answer in answers):
        raise InvalidQuery("an owner derived this distribution; ask for it more finely")
    return tuple(
        _added([_scaled(law, scale[0]) for law, scale in zip(laws, scales, strict=True)])
        for laws in zip(*(answer.laws for answer in answers), strict=True)
    )


def _scaled(law: Law, by: Fraction) -> Law:
    match law:
        case DiscreteGaussian(sigma_squared=size):
            return DiscreteGaussian(size * by**2)
        case DiscreteLaplace(scale=scale):
            return DiscreteLaplace(scale * by)
    return law


def _facts(schema: Schema) -> dict[str, Any]:
    """What owners must agree on: all but the grid and the bound on rows."""
    return {k: v for k, v in schema.to_json().items() if k not in ("bits", "at_most")}


def _scales(own: BoundQuery | None, bound: BoundQuery) -> list[Fraction]:
    """One step of an owner's grid in steps of the common one, by term."""
    assert own is not None  # noqa: S101
    pairs = list(zip(own.terms, bound.terms, strict=True))
    if any(mine.middle != common.middle for mine, common in pairs):
        raise InvalidQuery(
            "the owners' grids have different middles for this question: declare bounds whose"
            " middle is a step, or a step"
        )
    return [mine.fine_step / common.fine_step for mine, common in pairs]


def _draws(answer: Answer) -> list[tuple[Draw, ...]]:
    """The noise of each sum: drawn for it alone, or shared with other sums of this owner."""
    if answer.reading.mixture is not None:
        return list(answer.reading.mixture.sums)
    laws = answer.laws
    return [
        ((OWN, place, Fraction(1), laws[place % len(laws)]),)
        if not isinstance(laws[place % len(laws)], NoNoise)
        else ()
        for place in range(len(answer.values))
    ]


def _added(laws: Sequence[Law]) -> Law:
    """For a forecast: the law of the sum; of Laplace draws a wider one of the same variance."""
    noisy = [law for law in laws if not isinstance(law, NoNoise)]
    if not noisy:
        return NoNoise()
    if all(isinstance(law, DiscreteGaussian) for law in noisy):
        return DiscreteGaussian(
            sum(
                (law.sigma_squared for law in noisy if isinstance(law, DiscreteGaussian)),
                Fraction(0),
            )
        )
    if all(isinstance(law, DiscreteLaplace) for law in noisy):
        variance = math.fsum(law.variance() for law in noisy)
        return DiscreteLaplace(1 / Fraction(2 * math.asinh(1 / math.sqrt(2 * variance))))  # S2.6
    raise InvalidQuery("owners' noise adds up for gaussian and laplace promises only")
