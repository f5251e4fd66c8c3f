"""What to release of a declared menu, and what then follows by arithmetic. S1.14, S1.15

Nothing here reads a private value: the menu, the schema and public sizes decide.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sulq.errors import InvalidQuery, UnsafeExactly
from sulq.exact.classes import counting
from sulq.exact.consequences import consequence
from sulq.exact.domain import Assumptions, Domain
from sulq.exact.menu import certify_menu
from sulq.exact.terms import Terms
from sulq.exact.topup import TopUp, top_up
from sulq.query.spelling import question_text
from sulq.query.sum_query import digest_of
from sulq.schema.binding import BoundQuery
from sulq.schema.bound import RowSums
from sulq.schema.columns import Schema
from sulq.schema.promise import Promise

Count = Callable[[RowSums], list[int]]
"""Sums of a program that reads public columns only: public sizes."""
MOST_SUMS = 64


def check_assumptions(given: object, schema: Schema, promise: Promise) -> Assumptions:
    """Exact release needs replace, rows, and noise whose price scales. M.9"""
    if not isinstance(given, Assumptions):
        raise InvalidQuery(f"exactly takes Assumptions, got {type(given).__name__}")
    if promise.neighbours != "replace" or schema.unit != "row":
        raise InvalidQuery(
            'exact release works where one row is replaced: neighbours="replace" and unit "row"'
        )
    if promise.noise not in ("gaussian", "laplace"):
        raise InvalidQuery(
            f"exact release goes with gaussian or laplace noise, not {promise.noise}"
        )
    Domain.of((), schema, given.least)
    return given


def released_digest(text: str) -> str:
    """An exact answer is another thing than the noisy answer to the same question."""
    return digest_of(f"exactly {text}")


def batch(questions: Sequence[BoundQuery]) -> list[RowSums]:
    """The programs of questions that can stand in a batch."""
    if not questions:
        raise InvalidQuery("a batch needs at least one question")
    programs = []
    for bound in questions:
        if not isinstance(bound.sums, RowSums):
            raise InvalidQuery("a batch holds counts, totals, means, variances and histograms")
        programs.append(bound.sums)
    if sum(map(_width, questions)) > MOST_SUMS:
        raise UnsafeExactly(f"a batch holds at most {MOST_SUMS} sums; declare fewer")
    return programs


def _width(bound: BoundQuery) -> int:
    return len(bound.terms) * bound.cells


@dataclass(frozen=True, slots=True)
class Menu:
    """Batches, of which one may be released, and on what terms."""

    batches: tuple[tuple[BoundQuery, ...], ...]
    terms: Terms

    @classmethod
    def certified(
        cls,
        batches: Sequence[Sequence[BoundQuery]],
        schema: Schema,
        count: Count,
        given: Assumptions,
    ) -> Menu:
        """The menu with its terms, or `UnsafeExactly`."""
        held = tuple(tuple(path) for path in batches)
        domains = [Domain.of(batch(path), schema, given.least) for path in held]
        sizes = [count(counting(domain)) for domain in domains]
        try:
            found = certify_menu(domains, sizes, given)
        except UnsafeExactly as short:
            filled = _filled(domains[0], sizes[0], given) if len(held) == 1 else None
            if filled is None:
                raise short from None
            return cls(held, Terms(given, filled.factor, filled.reached, filled.sigma_squared))
        return cls(held, Terms(given, found.factor, found.reached, batches=len(held)))

    @property
    def texts(self) -> list[list[str]]:
        return [[bound.text for bound in path] for path in self.batches]

    def divisor(self, promise: Promise) -> int:
        """What every cap is divided by: r^2 of Gaussian, r of Laplace noise. S1.12, M.9"""
        return self.terms.factor ** (2 if promise.noise == "gaussian" else 1)


def _filled(domain: Domain, sizes: Sequence[int], given: Assumptions) -> TopUp | None:
    try:
        return top_up(domain, sizes, given)
    except UnsafeExactly:
        return None  # why the batch fell short says more


@dataclass(frozen=True, slots=True)
class Derived:
    """One asked question: each of its sums as weights of released ones, and a public constant."""

    bound: BoundQuery
    weights: tuple[Mapping[tuple[str, int], Fraction], ...]
    constants: tuple[Fraction, ...]

    @property
    def sources(self) -> set[str]:
        """The declared questions that it rests on."""
        return {text for weights in self.weights for text, _ in weights}

    @property
    def declared(self) -> bool:
        """True if it is a declared question itself, as it stands."""
        own = self.bound.text
        return not any(self.constants) and all(
            weights == {(own, at): 1} for at, weights in enumerate(self.weights)
        )

    def values(self, released: Mapping[str, Sequence[int]]) -> list[int]:
        """Its sums, from the released ones."""
        found = []
        for weights, constant in zip(self.weights, self.constants, strict=True):
            value = constant + sum(w * released[text][at] for (text, at), w in weights.items())
            assert value.denominator == 1  # noqa: S101 - it is the sum of whole numbers
            found.append(value.numerator)
        return found


@dataclass(frozen=True, slots=True)
class Plan:
    """Which declared questions to release, and how what was asked follows."""

    needed: tuple[BoundQuery, ...]
    answers: tuple[Derived, ...]


def planned(
    menu: Menu,
    released: Collection[str],
    asked: Sequence[BoundQuery],
    schema: Schema,
    count: Count,
) -> Plan:
    """The first batch that holds what was released and implies what is asked. S1.15 (1)"""
    for path in menu.batches:
        if not set(released) <= {bound.text for bound in path}:
            continue
        derived = [_derived(path, bound, schema, count) for bound in asked]
        if None in derived:
            continue
        answers = tuple(answer for answer in derived if answer is not None)
        if menu.terms.top_up and not all(a.declared or not a.sources for a in answers):
            raise UnsafeExactly(
                "refused: a little noise was needed here, so only the declared questions"
                " themselves are answered; combine their answers yourself"
            )
        sources = set().union(*(answer.sources for answer in answers))
        return Plan(tuple(bound for bound in path if bound.text in sources), answers)
    declared = "; or ".join(
        ", ".join(question_text(bound.text) for bound in path) for path in menu.batches
    )
    raise UnsafeExactly(
        f"refused: this does not follow from what was declared ({declared:.400})"
        + (", together with what was released of it" if released else "")
        + "; rows with a missing value count too, and exact questions chosen after seeing answers"
        " are not covered; ask with noise instead"
    )


def _derived(
    path: Sequence[BoundQuery], asked: BoundQuery, schema: Schema, count: Count
) -> Derived | None:
    own = next((bound for bound in path if bound.text == asked.text), None)
    if own is not None:
        unit = tuple({(own.text, at): Fraction(1)} for at in range(_width(own)))
        return Derived(asked, unit, (Fraction(0),) * len(unit))
    programs = [*batch(path), *batch([asked])]
    found = consequence(programs[:-1], programs[-1:], schema)
    if found is None:
        return None
    domain = Domain.of(programs, schema, {})
    sizes = count(counting(domain)) if any(any(constants) for _, constants in found) else []
    places = [(bound.text, at) for bound in path for at in range(_width(bound))]
    weights = tuple({places[i]: w for i, w in row.items()} for row, _ in found)
    constants = tuple(
        sum((c * n for c, n in zip(row, sizes, strict=bool(sizes))), Fraction(0))
        for _, row in found
    )
    return Derived(asked, weights, constants)
