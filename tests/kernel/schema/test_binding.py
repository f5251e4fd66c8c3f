"""Binding: the integer program means what was asked, stays in its bounds, or is refused."""

from __future__ import annotations

import datetime
from fractions import Fraction
from itertools import product
from random import Random

import pytest
from tests.kernel.engines import reference
from tests.kernel.query.meaning import holds, value
from tests.kernel.query.random_questions import Questioner

from sulq.answers.statistics import count, histogram, mean, total
from sulq.errors import InvalidQuery
from sulq.kernel.query import canonical
from sulq.kernel.query.expressions import Expression, col, hashed, lit, when
from sulq.kernel.query.sum_query import SumQuery
from sulq.kernel.schema.bind import bind
from sulq.kernel.schema.bind_rows import RowBinder
from sulq.kernel.schema.columns import Category, Flag, Number, Schema
from sulq.kernel.schema.ranges import World, range_of, truth_of

LATTICE = Schema(
    Number("a", 0, 2, step=1),
    Number("b", -1, 1, step=1),
    Number("m", -2, 2, step=0.5),
    Flag("f"),
    Category("c", ["x", "y"]),
)
ROWS = [
    dict(zip("abmfc", cells, strict=True))
    for cells in product(
        [0, 1, 2, None], [-1, 0, 1, None], [-2, 0.5, 1, None], [True, False, None], ["x", "w", None]
    )
]
MESSY = Schema(
    Number("x", -7.3, 91.1),
    Number("y", 1e-6, 2e-6),
    Number("z", -1e12, 1e12),
    Number("k", 0, 120, step=1),
    Flag("f"),
    Category("c", ["x", "y"]),
)
MESSY_VALUES = {
    "x": [None, float("nan"), -7.3, 91.1, -1e308, 1e308, 5e-324, -0.0, 0.1, 45.67, float("inf")],
    "y": [None, 1e-6, 2e-6, 1.5e-6, 0.0, float("-inf"), 1.9999999e-6],
    "z": [None, -1e12, 1e12, 0.0, 1.0, -3.7e11, 123456789.123],
    "k": [None, 0, 1, 65, 119, 120, 500, -3],
    "f": [None, True, False],
    "c": [None, "x", "y", "w"],
}


def test_on_a_lattice_the_program_is_exactly_the_question() -> None:
    random = Random(11)
    asker = Questioner(LATTICE, random)
    rows, exact = random.sample(ROWS, 30), 0
    binder = RowBinder(LATTICE)
    for _ in range(2_000):
        expression = asker.number(3)
        steps = binder.number(canonical.value(expression))
        if not steps.exact:
            continue
        exact += 1
        for row in rows:
            wanted = value(expression, row, LATTICE)
            got = reference.integer(steps.node, row)
            assert (None if got is None else got * steps.step) == wanted
    assert exact > 1_500
    for _ in range(1_000):
        condition = asker.condition(3)
        node = binder.condition(canonical.truth(condition))
        for row in rows:
            assert reference.holds(node, row) == holds(condition, row, LATTICE)


@pytest.mark.sample(1)
@pytest.mark.parametrize("schema", [LATTICE, MESSY], ids=["lattice", "messy"])
def test_every_value_lies_in_its_proved_range(schema: Schema) -> None:
    """Bounds, NULLs, and the truth of conditions, on awkward values; division included."""
    random = Random(12)
    asker = Questioner(schema, random, divide=True)
    binder = RowBinder(schema)
    world, refused = World(frozenset()), 0
    for _ in range(1_500):
        expression = asker.number(3)
        try:
            steps = binder.number(canonical.value(expression))
        except InvalidQuery as error:  # a divisor too small for its grid
            assert "can be 0" in str(error)
            refused += 1
            continue
        proved = range_of(steps.node, world)
        assert (
            (proved.low, proved.high) == (steps.low, steps.high)
            or proved.low > proved.high
            or (steps.low <= proved.low and proved.high <= steps.high)
        )
        assert max(abs(steps.low), abs(steps.high)) <= 2**40
        try:
            condition = binder.condition(canonical.truth(asker.condition(2)))
        except InvalidQuery:
            continue
        truth = truth_of(condition, world)
        for _ in range(20):
            row = _row(schema, random)
            got = reference.integer(steps.node, row)
            if got is not None:
                assert proved.low <= got <= proved.high
            elif proved.needs is not None:
                assert any(_absent(row[name]) for name in proved.needs)
            true = reference.holds(condition, row)
            assert not (true and truth.verdict == "never")
            assert true or truth.verdict != "always"
            if true:
                assert not any(_absent(row[name]) for name in truth.present)
    assert refused < 150


def _row(schema: Schema, random: Random) -> dict[str, object]:
    if schema is LATTICE:
        return random.choice(ROWS)
    return {name: random.choice(values) for name, values in MESSY_VALUES.items()}


def _absent(cell: object) -> bool:
    return cell is None or cell != cell


def test_messy_values_are_near_what_was_asked() -> None:
    """Rounding is fine: a sum of two columns is within two steps of the real-number sum."""
    binder = RowBinder(MESSY)
    steps = binder.number(canonical.value(col("x") * 2 + col("k")))
    for x, k in [(45.67, 65), (-7.3, 0), (91.1, 120), (0.1, 1)]:
        got = reference.integer(steps.node, {"x": x, "k": k})
        assert got is not None
        assert abs(float(got * steps.step) - (2 * x + k)) <= 2 * steps.step


def test_a_row_that_holds_the_constant_equals_it() -> None:
    """x = c, x >= c and x <= c hold for x = c also where c lies between two steps."""
    schema = Schema(Number("bmi", 10, 60), Number("price", 0, 1000, step=0.01))
    binder = RowBinder(schema)
    for name in ("bmi", "price"):
        for c in (22.3, 10.1, 59.99, 33.33):
            row = {name: c}
            for same in (col(name) == c, col(name) >= c, col(name) <= c, ~(col(name) != c)):
                assert reference.holds(binder.condition(canonical.truth(same)), row)
            for other in (col(name) > c, col(name) < c, col(name) != c):
                assert not reference.holds(binder.condition(canonical.truth(other)), row)


def test_thresholds_between_lattice_points_are_exact() -> None:
    binder = RowBinder(LATTICE)
    for bound, wanted in [(0.5, [False, True, True]), (1, [False, True, True])]:
        node = binder.condition(canonical.truth(col("a") >= bound))
        assert [reference.holds(node, {"a": a}) for a in (0, 1, 2)] == wanted
    never = binder.condition(canonical.truth(col("a") == 0.5))
    assert not any(reference.holds(never, {"a": a}) for a in (0, 1, 2, None))


def test_dates_count_days_and_datetimes_seconds() -> None:
    schema = Schema(
        Number("born", datetime.date(1900, 1, 1), datetime.date(2030, 1, 1)),
        Number("seen", datetime.datetime(2020, 1, 1), datetime.datetime(2030, 1, 1)),
    )
    binder = RowBinder(schema)
    after = binder.condition(canonical.truth(col("born") >= datetime.date(1990, 1, 1)))
    assert reference.holds(after, {"born": 7305})
    assert not reference.holds(after, {"born": 7304})
    noon = binder.condition(canonical.truth(col("seen") > datetime.date(2025, 6, 1)))
    midnight = datetime.datetime(2025, 6, 1, tzinfo=datetime.UTC).timestamp()
    assert not reference.holds(noon, {"seen": midnight - 3600})
    assert reference.holds(noon, {"seen": midnight + 3600})


def test_hashed_is_a_fair_public_coin() -> None:
    schema = Schema(Number("id", 0, 10**9, step=1, public=True), Flag("f"))
    binder = RowBinder(schema)
    bits = []
    for seed in range(40):
        node = binder.number(canonical.value(hashed("id", seed))).node
        bits.append([reference.integer(node, {"id": i}) for i in range(500)])
    ones = sum(map(sum, bits))  # type: ignore[arg-type]
    # 20,000 4-wise independent fair bits: 6 standard deviations, false alarm about 2e-9
    assert abs(ones - 10_000) < 6 * (20_000 / 4) ** 0.5
    assert bits[0] != bits[1]
    assert max(s.l1 for s, _ in bind(count(where=hashed("id", 1)), schema).reach) == 0


WIDE = Schema(
    Number("age", 0, 120, step=1),
    Number("income", 0, 500_000),
    Number("born", datetime.date(1900, 1, 1), datetime.date(2030, 1, 1)),
    Flag("smoker"),
    Category("city", ["Oslo", "Paris"], public=True),
    Category("note"),
    Category("code", [1, 2, 3]),
)
age, income, city = col("age"), col("income"), col("city")

REFUSED: list[tuple[Expression, str]] = [
    (col("salary") > 1, "no column 'salary'"),
    (city + 1 > 2, "Category"),
    (city > "Oslo", "Category"),
    (age == "old", "number"),
    (city == 3, "texts"),
    (col("code") == "one", "whole numbers"),
    (age / (age - 5) > 1, "can be 0"),
    (income / age > 1, "can be 0"),
    (age > datetime.date(2000, 1, 1), "date"),
    (col("smoker") == "yes", "Flag"),
    (age & col("smoker"), "Number"),
    (age.like("4%"), "like"),
    (age.clip(income, 5) > 1, "constant bounds"),
    (age.clip(5, 1) > 1, "low <= high"),
    (hashed("age", 1), "public"),
    (age * 1e300 * 1e300 > 1, "too large"),
    (when(age > 1).then("x").otherwise(1) > 0, "number is wanted"),
    (lit("Oslo") > 1, "number"),
]


@pytest.mark.parametrize(("condition", "says"), REFUSED, ids=lambda x: str(x)[:30])
def test_what_cannot_be_proved_is_refused_with_the_reason(condition: Expression, says: str) -> None:
    with pytest.raises(InvalidQuery, match=says):
        bind(count(where=condition), WIDE)


@pytest.mark.parametrize(
    ("question", "says"),
    [
        (histogram("note"), "open text"),
        (histogram("age"), "edges"),
        (histogram("city", edges=[1, 2]), "leave edges out"),
        (histogram("age", edges=[5, 5]), "increase"),
        (histogram("age", edges=[5, 1]), "increase"),
        (histogram("age", edges=["a", "b"]), "number or a date"),
        (total("city"), "Category"),
        (mean("note"), "Category"),
        (total(lit(None)), None),
        (SumQuery((income * 1e-300,)), "too"),
        ("SELECT 1", "question"),
        (3, "question"),
    ],
)
def test_questions_that_make_no_sense_are_refused(question: object, says: str | None) -> None:
    if says is None:
        bind(question, WIDE)  # a NULL adds nothing, to everybody: a public constant
        return
    with pytest.raises(InvalidQuery, match=says):
        bind(question, WIDE)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Schema(),
        lambda: Schema(Flag("a"), Flag("a")),
        lambda: Schema(Flag("a"), Flag("A")),
        lambda: Schema("age"),  # type: ignore[arg-type]
        lambda: Number("a", 5, 5),
        lambda: Number("a", 5, 1),
        lambda: Number("a", 0, float("nan")),
        lambda: Number("a", 0, float("inf")),
        lambda: Number("a", 0, 2**60),
        lambda: Number("a", 0, 5, step=0),
        lambda: Number("a", "0", "5"),  # type: ignore[arg-type]
        lambda: Number("a", datetime.date(2000, 1, 1), 5),
        lambda: Number("", 0, 5),
        lambda: Number(3, 0, 5),  # type: ignore[arg-type]
        lambda: Category("c", []),
        lambda: Category("c", ["a", "a"]),
        lambda: Category("c", ["a", 1]),  # type: ignore[list-item]
        lambda: Category("c", "abc"),
        lambda: Category("c", ["a\x00"]),
        lambda: Category("c", [2**70]),
        lambda: Category("c", public=True),
        lambda: Schema(Flag("a"), unit="row", max_rows=3),
        lambda: Schema(Flag("a"), unit="a", max_rows=3),
        lambda: Schema(Flag("a"), unit="p", max_rows=0),
        lambda: Schema(Flag("a"), at_most=0),
        lambda: Schema(Flag("a"), strata=["a"]),
        lambda: Schema(Flag("a", public=True), strata="a"),
    ],
)
def test_schemas_that_make_no_sense_are_refused(build: object) -> None:
    with pytest.raises(InvalidQuery):
        build()  # type: ignore[operator]


def test_a_schema_reads_back_from_its_json() -> None:
    for schema in (WIDE, LATTICE, MESSY, Schema(Flag("a"), unit="p", max_rows=3, at_most=50)):
        again = Schema.from_json(schema.to_json())
        assert again.to_json() == schema.to_json()


def test_binding_a_question_twice_gives_the_same_program() -> None:
    one, two = (
        bind(mean("income", where=city == "Oslo"), WIDE),
        bind(mean("income", where=~(city != "Oslo")), WIDE),
    )
    assert (one.digest, one.sums, one.terms) == (two.digest, two.sums, two.terms)


def test_units_are_lifted_to_a_fine_grid() -> None:
    for question in (count(where=age > 3), total("income"), total("age"), mean("income")):
        for term in bind(question, WIDE).terms:
            assert term.fine_unit >= 2**30
            assert term.fine_unit * term.fine_step == term.unit * term.step


def test_fractions_of_a_step_survive_constant_factors() -> None:
    bound = bind(total(age * Fraction(1, 3)), WIDE)
    assert bound.terms[0].step == Fraction(1, 3)
    assert bound.terms[0].unit == 120


def test_programs_too_deep_for_an_engine_are_refused() -> None:
    deep: Expression = age
    for number in range(12):
        for place in range(20):
            deep = deep.min(income + 20 * number + place)
        deep = abs(deep + 1)
    assert deep.depth < 50
    with pytest.raises(InvalidQuery, match="deep"):
        bind(total(deep), WIDE)


def test_ranges_too_narrow_for_binary64_are_refused() -> None:
    with pytest.raises(InvalidQuery, match="narrow"):
        Number("x", 0, 1e-310)


def test_the_last_bin_ends_at_its_edge() -> None:
    """[0, 1.5] on whole numbers holds 0 and 1, not 2; a lattice edge itself is inside."""
    for edges, cells in [
        ([0, 1.5], [0, 0, None]),
        ([0, 1, 2], [0, 1, 1]),
        ([0.5, 1.5], [None, 0, None]),
    ]:
        (group,) = bind(histogram("a", edges=edges), LATTICE).groups
        assert group.cells is not None
        assert [reference.cell(group.cells, {"a": x}) for x in (0, 1, 2)] == cells


def test_a_square_is_never_below_its_smallest_value() -> None:
    squared = RowBinder(LATTICE).number(canonical.value(col("a").clip(1, 2) * col("a").clip(1, 2)))
    assert (squared.low, squared.high) == (1, 4)
    straddling = RowBinder(LATTICE).number(canonical.value(col("b") * col("b")))
    assert (straddling.low, straddling.high) == (0, 1)
