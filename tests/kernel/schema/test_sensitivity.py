"""The claimed sensitivity against every pair of rows there is, and against known values (V.3)."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import pytest
from tests.kernel.query.meaning import holds, value
from tests.kernel.query.random_questions import Questioner

from sulq.answers.statistics import cdf, count, histogram, mean, total, variance
from sulq.errors import InvalidQuery
from sulq.kernel.query import canonical
from sulq.kernel.query.expressions import Column, Operation, col, lit
from sulq.kernel.query.sum_query import Statistic, SumQuery, as_statistic, group
from sulq.kernel.schema.bind import BoundQuery, bind
from sulq.kernel.schema.columns import Category, Flag, Number, Schema, accounts
from sulq.kernel.schema.sensitivity import Sensitivity

SCHEMA = Schema(
    Number("a", 0, 2, step=1),
    Number("b", -1, 1, step=1),
    Flag("f"),
    Category("c", ["x", "y"]),
    Number("z", 0, 2, step=1, public=True),
    Category("g", ["p", "q"], public=True),
    Flag("h", public=True),
)
DOMAIN: dict[str, list[Any]] = {
    "a": [0, 1, 2, None],
    "b": [-1, 0, 1, None],
    "f": [True, False, None],
    "c": ["x", "y", "w", None],
    "z": [0, 1, 2, None],
    "g": ["p", "q", "w", None],
    "h": [True, False, None],
}
PUBLIC = ("z", "g", "h")


def names_in(*expressions: object) -> set[str]:
    found: set[str] = set()
    for expression in expressions:
        if isinstance(expression, Column):
            found.add(expression.name)
        elif isinstance(expression, Operation):
            found |= names_in(*expression.operands)
    return found


def contribution(question: SumQuery, bound: BoundQuery, row: dict[str, Any]) -> tuple[Any, ...]:
    """What a row adds to every coordinate, in units, straight from the language's meaning."""
    if not holds(question.rows, row, SCHEMA):
        return ()
    cell = []
    for axis in question.groups:
        known = value(axis.of, row, SCHEMA)
        keys = next(g for g in bound.groups if g.name == axis.of.name).keys  # type: ignore[attr-defined]
        if axis.edges is None:
            place = keys.index(known) if known is not None and known in keys else None
        else:
            place = _bin(known, [edge.value for edge in axis.edges])
        if place is None:
            if not axis.other:
                return ()
            place = len(keys) - 1
        cell.append(place)
    parts = []
    for number, (term, proved) in enumerate(zip(question.terms, bound.terms, strict=True)):
        known = value(term, row, SCHEMA)
        if known is not None and known != 0 and proved.unit:
            parts.append(((*cell, number), Fraction(known) / (proved.unit * proved.step)))
    return tuple(parts)


def _bin(known: Any, edges: list[Any]) -> int | None:
    if known is None:
        return None
    for place in range(len(edges) - 1):
        last = place == len(edges) - 2
        if edges[place] <= known and (known < edges[place + 1] or (last and known == edges[-1])):
            return place
    return None


def distances(one: tuple[Any, ...], two: tuple[Any, ...]) -> tuple[Fraction, Fraction]:
    change: dict[Any, Fraction] = {}
    for place, amount in one:
        change[place] = change.get(place, Fraction(0)) + amount
    for place, amount in two:
        change[place] = change.get(place, Fraction(0)) - amount
    return (
        sum(map(abs, change.values()), Fraction(0)),
        sum((x * x for x in change.values()), Fraction(0)),
    )


def account_of(profile: dict[str, Any]) -> int:
    g = {"p": 0, "q": 1}.get(profile["g"], 2)
    h = {False: 0, True: 1, None: 2}[profile["h"]]
    return 3 * g + h


def worst(question: SumQuery, bound: BoundQuery, neighbours: str) -> dict[int, Sensitivity]:
    """The true sensitivity of each account, by going through all rows."""
    used = names_in(question.rows, *question.terms, *(axis.of for axis in question.groups))
    found: dict[int, tuple[Fraction, Fraction]] = {}
    public = [DOMAIN[name] if name in used or name != "z" else [0] for name in PUBLIC]
    private = [name for name in DOMAIN if name not in PUBLIC and name in used]
    for profile in product(*public):
        shown = dict(zip(PUBLIC, profile, strict=True))
        rows = set()
        for hidden in product(*(DOMAIN[name] for name in private)):
            row = dict.fromkeys(DOMAIN) | shown | dict(zip(private, hidden, strict=True))
            rows.add(contribution(question, bound, row))
        pairs = [(row, ()) for row in rows] if neighbours == "add-remove" else product(rows, rows)
        for one, two in pairs:
            l1, l2 = distances(one, two)
            old = found.get(account_of(shown), (Fraction(0), Fraction(0)))
            found[account_of(shown)] = (max(old[0], l1), max(old[1], l2))
    return {number: Sensitivity(l1, l2, 0) for number, (l1, l2) in found.items()}


def check(question: SumQuery, neighbours: str) -> tuple[bool, BoundQuery]:
    bound = bind(question, SCHEMA, neighbours)
    claimed = {number: s for s, numbers in bound.reach for number in numbers}
    assert set(claimed) == set(range(len(accounts(SCHEMA))))
    tight = True
    for number, true in worst(question, bound, neighbours).items():
        assert true.l1 <= claimed[number].l1, canonical.spelling(question.rows)
        assert true.l2_squared <= claimed[number].l2_squared, canonical.spelling(question.rows)
        tight = tight and true.l2_squared == claimed[number].l2_squared
    return tight, bound


def random_question(random: Random) -> SumQuery:
    asker = Questioner(SCHEMA, random)
    groups = []
    if random.random() < 0.5:
        for name in random.sample(["c", "f", "g", "h"], random.randint(1, 2)):
            groups.append(group(col(name), other=random.random() < 0.5))
        if random.random() < 0.3:
            groups.append(group(col(random.choice("abz")), [0, 1, 2], other=random.random() < 0.5))
    terms = tuple(asker.number(2) for _ in range(random.randint(1, 2)))
    rows = asker.condition(2) if random.random() < 0.8 else lit(True)
    return SumQuery(terms, rows, tuple(groups))


@pytest.mark.sample(14)
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("seed", range(20))
def test_no_pair_of_rows_moves_a_random_question_more_than_claimed(
    neighbours: str, seed: int
) -> None:
    random = Random(seed)
    for _ in range(3):
        check(random_question(random), neighbours)


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_many_random_questions_stay_within_their_sensitivity(neighbours: str) -> None:
    random = Random(99)
    for _ in range(1_500):
        check(random_question(random), neighbours)


KNOWN: list[tuple[Statistic, str, str]] = [
    # question, replace L2^2, add-remove L2^2 of the worst account
    (count(), "0", "1"),
    (count(where=col("a") > 0), "1", "1"),
    (count(where=col("g") == "p"), "0", "1"),
    (count("a"), "1", "1"),
    (total("a"), "1", "1"),
    (total("b"), "1", "1"),
    (total("z"), "0", "1"),
    (mean("a"), "5/4", "2"),
    (mean("a", where=col("f")), "5/4", "2"),
    (histogram("c"), "2", "1"),
    (histogram("c", "f"), "2", "1"),
    (histogram("g"), "0", "1"),
    (histogram("c", "g"), "2", "1"),
    (cdf("a"), "2", "1"),
    (as_statistic(SumQuery((col("a"),), groups=(group("g"),))), "1", "1"),
]


@pytest.mark.parametrize(("question", "replace", "add_remove"), KNOWN)
def test_known_joint_sensitivities(question: Statistic, replace: str, add_remove: str) -> None:
    """V.3, G.2 and the design's rules, each the best possible where the terms are as asked."""
    for neighbours, wanted in (("replace", replace), ("add-remove", add_remove)):
        bound = bind(question, SCHEMA, neighbours)
        assert max(s.l2_squared for s, _ in bound.reach) == Fraction(wanted)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize(
    "question",
    [
        count(where=col("a") > 0),
        count(where=(col("g") == "p") & col("f")),
        total("a"),
        total("b"),
        total("a", where=col("a") <= 1),
        histogram("c"),
        histogram("c", "f", where=col("h")),
        histogram("c", other=True),
    ],
)
def test_claimed_sensitivity_is_reached(question: Statistic, neighbours: str) -> None:
    tight, _ = check(question.query, neighbours)
    assert tight


def test_mean_and_variance_are_charged_as_vectors() -> None:
    wide = Schema(Number("x", 0, 1000))
    assert _worst(mean("x"), wide) == Fraction(5, 4)
    assert _worst(variance("x"), wide) < Fraction(201, 100)
    assert _worst(mean(col("x").coalesce(0)), wide) == 1  # nobody can leave: the count is public


def _worst(question: Statistic, schema: Schema) -> Fraction:
    return max(s.l2_squared for s, _ in bind(question, schema).reach)


def test_a_narrow_selection_narrows_the_unit() -> None:
    schema = Schema(Number("x", 0, 1000, step=1))
    whole = bind(total("x"), schema).terms[0].unit
    part = bind(total("x", where=col("x") < 100), schema).terms[0].unit
    assert (whole, part) == (1000, 99)


def test_strata_charge_only_whom_a_question_can_touch() -> None:
    bound = bind(count(where=(col("g") == "p") & col("f")), SCHEMA)
    names = accounts(SCHEMA)
    touched = {names[i] for s, numbers in bound.reach if s.l1 for i in numbers}
    assert touched == {"g=p, h=False", "g=p, h=True", "g=p, h=*"}


def test_a_public_number_cuts_the_rows_but_charges_every_account() -> None:
    bound = bind(count(where=(col("z") > 1) & col("f")), SCHEMA)
    assert all(s.l1 == 1 for s, _ in bound.reach)
    assert all(s.l1 == 0 for s, _ in bind(count(where=col("z") > 1), SCHEMA).reach)


def test_person_units_pay_for_all_their_rows_and_have_one_account() -> None:
    schema = Schema(Number("a", 0, 2, step=1), Flag("h", public=True), unit="person", max_rows=3)
    assert accounts(schema) == ("everyone",)
    for neighbours in ("replace", "add-remove"):
        (only,) = bind(count(), schema, neighbours).reach
        assert (only[0].l1, only[0].l2_squared) == (3, 9)  # M.5: n of rows is not public
        (by_flag,) = bind(histogram("h"), schema, neighbours).reach
        assert by_flag[0].l2_squared == (18 if neighbours == "replace" else 9)


def test_account_names_never_collide() -> None:
    awkward = Schema(
        Category("c", ["*", '"*"', "a, d=b", "a"], public=True), Flag("d", public=True)
    )
    names = accounts(awkward)
    assert len(set(names)) == len(names) == 15


def test_too_many_strata_must_be_named() -> None:
    wide = [Category(f"c{i}", [str(v) for v in range(20)], public=True) for i in range(3)]
    with pytest.raises(InvalidQuery, match="strata"):
        Schema(*wide)
    assert len(accounts(Schema(*wide, strata=["c0", "c2"]))) == 441


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_only_what_holds_on_every_row_of_s_narrows_the_unit(neighbours: str) -> None:
    """a <= 1 narrows a where it must hold, not where something else may hold instead."""
    either = SumQuery((col("a"),), (col("a") <= 1) | col("f"))
    check(either, neighbours)
    assert bind(either, SCHEMA, neighbours).terms[0].unit == 2
    both = SumQuery((col("a"),), (col("a") <= 1) & col("f"))
    check(both, neighbours)
    assert bind(both, SCHEMA, neighbours).terms[0].unit == 1
