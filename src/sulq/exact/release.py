"""What to release of a declared menu, and what then follows by arithmetic. S1.14, S1.15

Nothing here reads a private value: the menu, the schema and public sizes decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from sulq.errors import InvalidQuery, UnsafeExactly
from sulq.exact.certificate import Certificate, certify
from sulq.exact.domain import (
    MOST_ROWS,
    UNDECLARED,
    Additions,
    Assumptions,
    Domain,
    columns_of,
    everything_in,
    values_of,
)
from sulq.exact.terms import ExactTerms
from sulq.exact.topup import TopUp, top_up
from sulq.kernel.query.sql_text import question_text
from sulq.kernel.query.sum_query import digest_of
from sulq.kernel.schema import program as b
from sulq.kernel.schema.bind import BoundQuery
from sulq.kernel.schema.columns import Category, Schema
from sulq.kernel.schema.program import RowSums, cell_count
from sulq.kernel.schema.promise import Promise


@dataclass(frozen=True, slots=True)
class MenuCertificate:
    """A certificate for every path, each with its share of delta."""

    epsilon: Fraction
    delta: Fraction
    paths: tuple[Certificate, ...]

    @property
    def factor(self) -> int:
        """r of whichever path is taken, at most. S1.12"""
        return max(path.factor for path in self.paths)

    @property
    def reached(self) -> float:
        return min(1.0, sum(path.reached for path in self.paths))

    @property
    def guarantee(self) -> str:
        return "noiseless, under assumptions"


def certify_menu(
    paths: Sequence[Domain], sizes: Sequence[Sequence[int]], assumptions: Assumptions
) -> MenuCertificate:
    """Certify every path at delta / M, or refuse the whole menu.

    `paths`: each all that is released along it. `sizes`: the classes' public sizes, per path.
    """
    if not paths or len(paths) != len(sizes):
        raise InvalidQuery(
            f"a menu needs paths and class sizes for each, got {len(paths)} and {len(sizes)}"
        )
    share = Assumptions(
        assumptions.epsilon,
        assumptions.delta / len(paths),
        assumptions.known_rows,
        assumptions.least,
    )
    found = []
    for number, (domain, rows) in enumerate(zip(paths, sizes, strict=True), 1):
        try:
            found.append(certify(domain, rows, share))
        except UnsafeExactly as why:
            raise UnsafeExactly(f"path {number} of {len(paths)} of the menu: {why}") from None
    return MenuCertificate(assumptions.epsilon, assumptions.delta, tuple(found))


# What released sums and public class sizes already say: no further release. S1.15 (1)
#
# A sum is a consequence if, as a function of one row over the whole domain, it is a rational
# combination of released ones and of constants per public class. Decided on the integer functions
# themselves, never by comparing data. Proofs: docs/proofs/exact.md.


Weights = dict[int, Fraction]
Constants = tuple[Fraction, ...]


def public_columns(programs: Sequence[RowSums], schema: Schema) -> tuple[str, ...]:
    """The public columns a batch reads, in the order in which `Domain` has them."""
    read = dict.fromkeys(name for program in programs for name in columns_of(program))
    return tuple(name for name in read if schema[name].public)


def consequence(
    released: Sequence[RowSums], asked: Sequence[RowSums], schema: Schema
) -> list[tuple[Weights, Constants]] | None:
    """For each sum asked: weights of released sums, and a constant for each public class.

    Classes are those of `Domain.of([*released, *asked], ...)`, in that order. None if some sum
    asked is no consequence, or if the domain is too large to tell.
    """
    programs = [*released, *asked]
    try:
        table = _table(programs, schema)
    except UnsafeExactly:
        return None
    if table is None:
        return None
    known, width = sum(map(_sums, released)), sum(map(_sums, programs))
    origins = [rows[0] for rows in table]
    # within a class the constant drops out of differences
    apart = {
        tuple(x - o for x, o in zip(row, origin, strict=True))
        for rows, origin in zip(table, origins, strict=True)
        for row in rows[1:]
    }
    solved = _solve(apart, known, width)
    if solved is None:
        return None
    return [
        (
            {i: w for i, w in enumerate(weights) if w},
            tuple(
                origin[j] - sum((w * x for w, x in zip(weights, origin, strict=False)), Fraction(0))
                for origin in origins
            ),
        )
        for j, weights in zip(range(known, width), solved, strict=True)
    ]


def evaluate(
    weights: Weights, constants: Constants, sums: Sequence[int], sizes: Sequence[int]
) -> int:
    """The sum asked, from the released sums and the public sizes of the classes."""
    value = sum((w * sums[i] for i, w in weights.items()), Fraction(0))
    value += sum((c * n for c, n in zip(constants, sizes, strict=True)), Fraction(0))
    assert value.denominator == 1  # noqa: S101  (it is the engine's integer sum)
    return value.numerator


def _sums(program: RowSums) -> int:
    return len(program.terms) * math.prod(map(cell_count, program.groups))


def _table(programs: Sequence[RowSums], schema: Schema) -> list[list[tuple[int, ...]]] | None:
    """For each public class, what each possible row adds; every different row once."""
    public = public_columns(programs, schema)
    read = dict.fromkeys(name for program in programs for name in columns_of(program))
    private = [name for name in read if name not in public]
    spans = [everything_in(schema[name]) for name in (*public, *private)]
    if math.prod(map(len, spans)) > MOST_ROWS:
        return None
    added = Additions(programs)
    found = []
    for given in product(*spans[: len(public)]):
        row = dict(zip(public, given, strict=True))
        rows: dict[tuple[int, ...], None] = {}
        for values in product(*spans[len(public) :]):
            row.update(zip(private, values, strict=True))
            rows[added(row)] = None
        found.append(list(rows))
    return found


def _solve(rows: set[tuple[int, ...]], known: int, width: int) -> list[tuple[Fraction, ...]] | None:
    """Weights of the first `known` columns that give each later one in every row."""
    echelon: dict[int, tuple[int, ...]] = {}
    for row in rows:
        left = row
        while (pivot := next((i for i, x in enumerate(left) if x), None)) is not None:
            if pivot >= known:
                return None  # the released sums do not move, one that is asked does
            if pivot not in echelon:
                echelon[pivot] = left
                break
            head = echelon[pivot]
            left = _primitive(
                tuple(head[pivot] * x - left[pivot] * y for x, y in zip(left, head, strict=True))
            )
    found = []
    for j in range(known, width):
        weights = [Fraction(0)] * known
        for pivot in sorted(echelon, reverse=True):  # back substitution; free weights are 0
            head = echelon[pivot]
            rest = sum((head[i] * weights[i] for i in range(pivot + 1, known)), Fraction(0))
            weights[pivot] = (head[j] - rest) / head[pivot]
        found.append(tuple(weights))
    return found


def _primitive(row: tuple[int, ...]) -> tuple[int, ...]:
    common = math.gcd(*row)
    return tuple(x // common for x in row) if common > 1 else row


# How many rows each public class has: a public constant under replace. G.2.1


MOST_CLASSES = 1024


def counting(domain: Domain) -> b.RowSums:
    """One sum for each of `domain.classes()`, in order: the rows that belong to it."""
    profiles = []
    for given in domain.classes():
        profiles.append(given)
        if len(profiles) > MOST_CLASSES:
            raise UnsafeExactly(
                f"the batch tells more than {MOST_CLASSES} public classes apart; use fewer public"
                " columns"
            )
    ones: list[b.Integer] = [
        b.BoundChoice(_belongs(given, domain.schema), b.Fixed(1), b.Fixed(0)) for given in profiles
    ]
    return b.RowSums(b.Always(), tuple(ones), ())


def _belongs(given: Mapping[str, object], schema: Schema) -> b.Condition:
    parts = tuple(_holds(name, value, schema) for name, value in given.items())
    return b.AllOf(parts) if parts else b.Always()


def _holds(name: str, value: object, schema: Schema) -> b.Condition:
    column = schema[name]
    if not isinstance(column, Category):
        if value is None:
            return b.Missing(b.FlagBit(name), negated=False)
        return b.FlagIs(name, value is True)
    if value is None:
        return b.Missing(b.Text(name), negated=False)
    if value == UNDECLARED:
        return b.Among(name, tuple(values_of(column)), negated=True)  # type: ignore[arg-type]
    return b.Among(name, (value,), negated=False)  # type: ignore[arg-type]


# Several transcripts declared beforehand, of which the answers pick one. S1.14 (ii)
#
# An adversary's event splits by the path that was taken, so the deltas of the paths add up: each
# path, as one batch with everything released along it, must do with delta / M. Its whole delta:
# dividing only the tail of the coins is not enough. Proofs: docs/proofs/exact.md.


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
    terms: ExactTerms

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
            return cls(held, ExactTerms(given, filled.factor, filled.reached, filled.sigma_squared))
        return cls(held, ExactTerms(given, found.factor, found.reached, batches=len(held)))

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
class ReleasePlan:
    """Which declared questions to release, and how what was asked follows."""

    needed: tuple[BoundQuery, ...]
    answers: tuple[Derived, ...]


def planned(
    menu: Menu,
    released: Collection[str],
    asked: Sequence[BoundQuery],
    schema: Schema,
    count: Count,
) -> ReleasePlan:
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
        return ReleasePlan(tuple(bound for bound in path if bound.text in sources), answers)
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
