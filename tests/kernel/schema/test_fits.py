"""What 64 bits might not hold is refused by `bind`: before a price, whatever the engine."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from tests.kernel.engines import programs, tables

from sulq import Flag, InvalidQuery, Number, Schema, col
from sulq.answers.statistics import count, histogram, mean, total, variance
from sulq.kernel.engines.postgres.dialect import PostgresDialect
from sulq.kernel.engines.spark.dialect import SparkDialect
from sulq.kernel.engines.sql.emitter import Emitter
from sulq.kernel.engines.sql.leaves import ColumnSql
from sulq.kernel.schema import program as b
from sulq.kernel.schema.bind import Fits, bind

SCHEMA = Schema(
    Number("income", 0, 500_000),
    Number("n", -4, 4, step=1),
    Number("mass", 0, Fraction(1, 10**26)),
    Number("wide", -(2**53), 2**53),
    Flag("ill"),
)
income, n, mass, wide = (col(name) for name in ("income", "n", "mass", "wide"))
TINY = Fraction(12, 10**36)


@pytest.mark.parametrize(
    "narrow",
    [
        income.clip(0, TINY),
        income.clip(0, Fraction(1, 10**12)),
        income.clip(-1, Fraction(1, 10**12)),  # what is left of it
        income.clip(Fraction(499_999) + 1 - Fraction(1, 10**20), 10**9),
        income.clip(0, Fraction(1, 2**31)).clip(0, Fraction(1, 2**62)),  # step by step
        n.clip(0, Fraction(39, 10**22)),  # not on its lattice
        (income + n).clip(0, TINY),
        mass.clip(0, Fraction(1, 10**40)),
        wide.clip(5, 5 + Fraction(1, 10**10)),
    ],
)
def test_a_clip_too_narrow_for_its_column_is_refused(narrow: object) -> None:
    for asked in (total(narrow), mean(narrow), variance(narrow), count(where=narrow > 0)):  # type: ignore[operator]
        with pytest.raises(InvalidQuery, match="too narrow"):
            bind(asked, SCHEMA)
    with pytest.raises(InvalidQuery, match="too narrow"):
        bind(histogram(narrow, edges=[0, 1]), SCHEMA)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fitting",
    [
        income.clip(0, Fraction(1, 2**31)),
        income.clip(7, 7),  # a point is a public constant
        income.clip(-5, 0),
        mass.clip(0, Fraction(1, 10**27)),  # of its own range a tenth
        mass * Fraction(10**26),
        wide.clip(0, 100),
        (income * Fraction(1, 10**20)).clip(0, Fraction(1, 10**21)),
        income.clip(-(10**15), 10**15),
    ],
)
def test_other_clips_are_answered(fitting: object) -> None:
    for bits in (8, 24, 31):
        bind(mean(fitting), SCHEMA.on_grid(bits))  # type: ignore[arg-type]


def test_a_last_bin_between_two_steps_is_refused_with_its_edges() -> None:
    with pytest.raises(InvalidQuery, match=r"the last bin, from 1e-20 to 0\.5"):
        bind(histogram("n", edges=[0, 1e-20, 0.5]), SCHEMA)
    bind(histogram("n", edges=[0, 1e-20, 1]), SCHEMA)


def test_the_grid_of_a_clip_stays_within_62_bits() -> None:
    """The narrowest clip, on the finest grid: its factor is 2^62."""
    bound = bind(total(income.clip(0, Fraction(1, 2**31))), SCHEMA.on_grid(31))
    (leaf,) = bound.sums.terms  # type: ignore[union-attr]
    assert isinstance(leaf, b.Quantised) and leaf.per_unit == 2.0**62


def test_a_question_of_an_old_ledger_can_be_worked_out_again() -> None:
    asked = total(income.clip(0, TINY))
    assert bind(asked, SCHEMA, asked_before=True).text


X = b.Quantised("x", -100.0, 100.0, 2.0**20)
HUGE = b.BoundScaled(X, 2**35)


@pytest.mark.parametrize(
    "value",
    [
        b.Fixed(2**62 + 1),
        b.BoundScaled(b.Fixed(0), 2**63),
        b.BoundScaled(X, 2**40),
        b.Multiplied(HUGE, X),
        b.Added((HUGE, HUGE, HUGE)),
        b.Shifted(b.Fixed(5), 63),
        b.Divided(X, b.FlagBit("smoker")),
        b.Quantised("x", -100.0, 100.0, 2.0**60),
        b.BoundChoice(b.Compared("<", X, b.Fixed(-(2**63))), X, X),
    ],
)
def test_what_could_pass_64_bits_on_the_way_is_refused(value: b.Integer) -> None:
    with pytest.raises(InvalidQuery):
        Fits().check(b.Always(), (value,))
    with pytest.raises(InvalidQuery):
        Fits().check(b.Missing(value, negated=True), ())
    with pytest.raises(InvalidQuery):
        Fits().check(b.Always(), (), (b.BinCells(value, (0, 1), False),))


def test_edges_count_too() -> None:
    with pytest.raises(InvalidQuery):
        Fits().check(b.Always(), (), (b.BinCells(X, (0, 2**63), False),))


@pytest.mark.parametrize("dialect", [None, PostgresDialect, SparkDialect])
@pytest.mark.parametrize("kind", ["real", "whole"])
def test_bind_and_the_emitter_prove_the_same(dialect: type | None, kind: str) -> None:
    """Of 300 random programs: the same bounds, whatever a file holds and whoever reads it."""
    rng, refused = random.Random(4), 0
    places = {}
    for number, column in enumerate(tables.SCHEMA.columns):
        held = (
            kind if isinstance(column, Number) else "flag" if isinstance(column, Flag) else "text"
        )
        place = ColumnSql(f"c{number}", held)  # type: ignore[arg-type]
        places[column.name] = (
            place if dialect is None else ColumnSql(place.sql, place.kind, False, dialect)
        )
    for _ in range(300):
        node, _, _ = programs.integer(rng, tables.FACTS, rng.choice([0, 1, 2, 3]))
        found = []
        for prove in (Fits().ends, lambda node: Emitter(places).integer(node)):
            try:
                found.append(prove(node))
            except InvalidQuery:
                found.append(None)
        proved, emitted = found
        refused += proved is None
        if proved is not None:
            assert emitted is not None, node
            assert proved[0] <= emitted.low <= emitted.high <= proved[1], node  # type: ignore[index,union-attr]
    assert refused < 100
