"""What is derived is implied, with the right value and variance; nothing else is derived."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq import (
    Category,
    Flag,
    Number,
    Schema,
    SumQuery,
    col,
    count,
    histogram,
    lit,
    mean,
    total,
    when,
)
from sulq.exact.domain import adds
from sulq.exact.release import consequence
from sulq.kernel.noise.laws import DiscreteGaussian, DiscreteLaplace, NoNoise
from sulq.kernel.reuse.estimate import LinearEstimate
from sulq.kernel.reuse.store import AnswerStore, Stored
from sulq.kernel.schema.bind import BoundQuery, bind

SCHEMA = Schema(
    Number("age", 0, 4, step=1),
    Flag("ill"),
    Category("city", ["O", "P"], public=True),
    Category("job", ["a", "b"]),
)
DOMAIN = [
    {"age": age, "ill": ill, "city": city, "job": job}
    for age, ill, city, job in product(
        [0, 1, 2, 3, 4, None], [True, False, None], ["O", "P", "X", None], ["a", "b", "X", None]
    )
]

HERE = when(col("city") == "O").then(0).otherwise(when(col("city") == "P").then(1).otherwise(None))
SORT = (
    when(col("job").isin(["a", "b"]))
    .then(1)
    .otherwise(when(col("age") >= 2).then(0).otherwise(None))
)
"""Lookups and CASE by label: codes of declared values, of a number, and NULL."""

leaves = st.one_of(
    st.builds(lambda k: col("age") >= k, st.integers(0, 4)),
    st.builds(lambda k: col("age") == k, st.integers(0, 4)),
    st.sampled_from([col("ill"), ~col("ill"), col("ill").is_null(), col("age").is_null()]),
    st.builds(lambda v: col("city") == v, st.sampled_from(["O", "P"])),
    st.builds(lambda v: col("job") == v, st.sampled_from(["a", "b"])),
    st.sampled_from([col("job").isin(["a", "b"]), col("age") + 1 > 3]),
    st.sampled_from([HERE == 1, SORT == 1, SORT < 1, HERE != SORT, SORT.is_null()]),
)
conditions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda a, b: a & b, inner, inner),
        st.builds(lambda a, b: a | b, inner, inner),
        st.builds(lambda a: ~a, inner),
    ),
    max_leaves=3,
)
terms = st.sampled_from(
    [
        lit(1),
        col("age"),
        col("age") - 2,
        2 * col("age") + 1,
        when(col("ill")).then(col("age")).otherwise(1),
        col("ill"),
    ]
)
questions = st.one_of(
    st.builds(lambda x, where: total(x, where=where), terms, conditions),
    st.builds(lambda where: count(where=where), conditions),
    st.builds(
        lambda names, where: histogram(*names, where=where),
        st.sampled_from([("job",), ("ill",), ("job", "ill"), ("city",)]),
        conditions,
    ),
    st.sampled_from([mean("age"), count(), histogram("age", edges=[0, 2, 4])]),
    st.builds(
        lambda codes, where, other: histogram(codes, edges=[0, 1, 2], where=where, other=other),
        st.sampled_from([HERE, SORT]),
        conditions,
        st.booleans(),
    ),
)


def bound(question: Any, neighbours: str = "replace") -> BoundQuery:
    return bind(question, SCHEMA, neighbours)


def store_of(
    stored: list[BoundQuery],
    rows: list[dict[str, Any]],
    neighbours: str = "replace",
    noise: Any = None,
) -> AnswerStore:
    """Answers without noise in the values, and with it in the laws: the noise-free oracle."""
    public = (lambda name: SCHEMA[name].public) if neighbours == "replace" else None
    read = lambda text: bind(SumQuery.from_json(json.loads(text)), SCHEMA, neighbours)  # noqa: E731
    shelf = Shelf()
    store = AnswerStore(read, public, shelf.read, shelf.draws)
    for number, asked in enumerate(stored, start=1):
        laws = tuple(
            DiscreteGaussian(Fraction(term.fine_unit**2)) if term.unit else NoNoise()
            for term in asked.terms
        )
        values = asked.lifted(sums(asked, rows))
        if noise is not None:
            values = [value + noise(laws[i % len(laws)]) for i, value in enumerate(values)]
        put(store, number, asked, laws, tuple(values))
    return store


class Shelf(dict[int, Stored]):
    """In place of a ledger."""

    def read(self, numbers: Sequence[int]) -> list[Stored]:
        return [self[number] for number in numbers]

    def draws(self, digest: str) -> list[int]:
        return [number for number, stored in self.items() if stored.digest == digest]


def put(store: AnswerStore, number: int, asked: BoundQuery, laws: Any, values: Any) -> None:
    shelf = store._read.__self__  # type: ignore[attr-defined]
    assert isinstance(shelf, Shelf)
    shelf[number] = Stored(number, asked.text, asked.digest, laws, values)
    store.add(number, asked.text, asked.digest)


def sums(asked: BoundQuery, rows: list[dict[str, Any]]) -> list[int]:
    width = len(adds([asked.sums], DOMAIN[0]))
    return [sum(each) for each in zip(*(adds([asked.sums], row) for row in rows), strict=True)] or (
        [0] * width
    )


def is_implied(found: LinearEstimate, stored: list[BoundQuery], rows: list[dict[str, Any]]) -> bool:
    """On every row of the whole domain the weights give what the asked question adds."""
    for row in DOMAIN:
        for place, wanted in enumerate(found.bound.lifted(list(adds([found.bound.sums], row)))):
            got = Fraction(0)
            for source in found.estimates[place]:
                asked = stored[source.seq - 1]
                got += source.weight * asked.lifted(list(adds([asked.sums], row)))[source.place]
            if found.public is not None:
                own = adds([found.public], row)
                got += sum((k * own[i] for i, k in found.constants[place].items()), Fraction(0))
            if abs(got - wanted) > 1e-9 * max(1, abs(wanted), 2**30):
                return False
    return True


@given(
    st.lists(questions, min_size=1, max_size=6),
    questions,
    st.sampled_from(["replace", "add-remove"]),
)
def test_what_is_derived_is_implied_and_equals_the_truth(
    asked: list[Any], wanted: Any, neighbours: str
) -> None:
    stored = [bound(question, neighbours) for question in asked]
    rows = [DOMAIN[i] for i in np.random.default_rng(len(asked)).integers(0, len(DOMAIN), 60)]
    store = store_of(stored, rows, neighbours)
    found = store.derive(bound(wanted, neighbours))
    if found is None:
        return
    assert is_implied(found, stored, rows)
    sizes = (
        []
        if found.public is None
        else [sum(x) for x in zip(*(adds([found.public], r) for r in rows), strict=True)]
    )
    truth = found.bound.lifted(sums(found.bound, rows))
    assert found.values(sizes) == pytest.approx(truth, abs=2**10)  # of 2^30 steps in a unit


@given(st.lists(questions, min_size=1, max_size=5), questions)
def test_whatever_follows_by_enumeration_is_found(asked: list[Any], wanted: Any) -> None:
    """`consequence` compares whole functions of a row; arithmetic conditions stay opaque."""
    listed = [bound(question) for question in [*asked, wanted]]
    if any('"add"' in b.text.partition('"terms"')[0] for b in listed):
        return
    stored, target = listed[:-1], listed[-1]
    known = consequence([b.sums for b in stored], [target.sums], SCHEMA)
    found = store_of(stored, DOMAIN[:5]).derive(target)
    assert (found is not None) == (known is not None)


def test_the_usual_ones_follow() -> None:
    rows = DOMAIN[::3]
    old, here = col("age") >= 3, col("city") == "O"
    cases: list[tuple[list[Any], Any, int]] = [
        ([count(where=old)], count(where=(col("age") < 3) | col("age").is_null()), 1),
        ([count(where=old), count(where=old & col("ill"))], count(where=old & ~col("ill")), 0),
        ([count(where=col("age") == k) for k in (1, 2)], count(where=(col("age") > 0) & ~old), 2),
        ([histogram("job", "ill")], histogram("job", where=col("ill").is_not_null()), 4),
        ([histogram("age", edges=[0, 1, 2, 3, 4, 4.5])], total("age"), 4),
        ([mean("age")], total("age"), 2),
        ([total(2 * col("age"))], total("age"), 1),
        ([count(where=old & here)], count(where=(~old | col("age").is_null()) & here), 1),
    ]
    for asked, wanted, sources in cases:
        stored = [bound(question) for question in asked]
        found = store_of(stored, rows).derive(bound(wanted))
        if sources == 0:
            assert found is None  # ill may be missing
            continue
        assert found is not None and is_implied(found, stored, rows)
        assert len({(s.seq, s.place) for each in found.estimates for s in each}) == sources


def test_labels_stand_for_the_sets_they_are_made_of() -> None:
    """A CASE or a lookup, grouped by or compared, and IN lists: whichever was paid for first."""
    first, codes = col("job") == "a", when(col("job") == "a").then(0).otherwise(1)
    listed = histogram(codes, edges=[0, 1, 2])
    for stored, asked in (
        (listed, count(where=first)),
        (listed, count(where=codes == 1)),
        (listed, count(where=(col("job") != "a") | col("job").is_null())),
        (count(where=codes == 0), count(where=first)),
        (count(where=first), count(where=codes == 0)),
        (histogram("job", other=True), listed),
        (histogram(SORT, edges=[0, 1, 2], other=True), count(where=col("job").isin(["b", "a"]))),
        (histogram("job", where=HERE == 1), histogram("job", where=col("city") == "P")),
        (count(where=codes == SORT), count(where=(codes != SORT) | SORT.is_null())),
    ):
        found = store_of([bound(stored)], DOMAIN[::3]).derive(bound(asked))
        assert found is not None and is_implied(found, [bound(stored)], DOMAIN[::3])


def test_values_that_no_question_tells_apart_are_one_piece() -> None:
    """A long list is one set: what a search looks at does not grow with it."""
    names = [f"c{i:04}" for i in range(1_500)]
    wide = Schema(Category("code", names), Flag("ill"))
    north = col("code").isin(names[:1_400])  # times NULL, no and yes: above MOST_PIECES
    region = when(north).then(when(col("code") == "c0000").then(0).otherwise(1)).otherwise(2)
    read = lambda text: bind(SumQuery.from_json(json.loads(text)), wide)  # noqa: E731
    shelf = Shelf()
    store = AnswerStore(read, None, shelf.read, shelf.draws)
    asked = bind(histogram(region, edges=[0, 1, 2, 3], where=col("ill")), wide)
    law = DiscreteGaussian(Fraction(asked.terms[0].fine_unit ** 2))
    put(store, 1, asked, (law,), (1, 2, 3))
    found = store.derive(bind(count(where=north & col("ill")), wide))
    assert found is not None and {s.place for s in found.estimates[0]} == {0, 1}


@pytest.mark.parametrize(
    "where",
    [col("age") + 1 > 3, col("age") + 1 >= 3, col("age") * col("age") > 3, col("age") + 1 < 3],
)
def test_a_threshold_on_arithmetic_has_two_sides(where: Any) -> None:
    """What is open above is not empty: nothing is known of it, then its two sides make a whole."""
    asked = bound(count(where=where))
    assert store_of([bound(mean("age"))], DOMAIN).derive(asked) is None
    stored = [asked, bound(count(where=~where))]
    found = store_of(stored, DOMAIN).derive(bound(count("age")))
    assert found is not None and is_implied(found, stored, DOMAIN)


def test_those_who_are_missing_are_somebody() -> None:
    stored = [bound(count(where=condition)) for condition in (col("job") == "a", col("age") < 2)]
    store = store_of(stored, DOMAIN)
    for condition in (~(col("job") == "a"), ~(col("age") < 2)):
        assert store.derive(bound(count(where=condition))) is None
    rest = bound(count(where=~(col("job") == "a") | col("job").is_null()))
    assert store.derive(rest) is not None


def test_sizes_are_no_facts_under_add_remove() -> None:
    stored = [bound(count(where=col("ill")), "add-remove")]
    rest = bound(count(where=~col("ill") | col("ill").is_null()), "add-remove")
    assert store_of(stored, DOMAIN, "add-remove").derive(rest) is None


def test_overlapping_answers_shrink_the_variance_to_that_of_least_squares() -> None:
    """Two halves and the whole, equal noise: the whole has variance 2/3, a half has 2/3."""
    whole, half = count(where=col("ill").is_not_null()), count(where=col("ill"))
    stored = [bound(q) for q in (whole, half, count(where=~col("ill")))]
    store = store_of(stored, DOMAIN)
    unit = stored[0].terms[0].fine_unit ** 2
    for question in (whole, half):
        found = store.derive(bound(question))
        assert found is not None and float(found.variance(0) / unit) == pytest.approx(2 / 3)
        assert len(found.sources) == 3


def test_equal_questions_are_averaged_by_precision_exactly() -> None:
    asked = bound(count(where=col("ill")))
    store = store_of([asked], DOMAIN)
    size = Fraction(asked.terms[0].fine_unit ** 2)
    put(store, 2, asked, (DiscreteGaussian(size / 3),), (0,))
    found = store.derive(asked)
    assert found is not None and found.exact
    assert found.variance(0) == size / 4  # 1 / (1 + 3)
    assert {s.seq: s.weight for s in found.estimates[0]} == {1: Fraction(1, 4), 2: Fraction(3, 4)}


def test_only_answers_that_are_allowed_are_used() -> None:
    one, two = bound(count(where=col("ill"))), bound(count(where=~col("ill")))
    store = store_of([one, two], DOMAIN)
    both = bound(count(where=col("ill").is_not_null()))
    assert store.derive(both, {1}) is None
    assert store.derive(both, {1, 2}) is not None
    assert store.derive(one, {2}) is None


def test_the_stated_variance_is_that_of_simulated_answers() -> None:
    """2,000 draws: the sample variance of each derived sum within 6 standard errors (1e-6)."""
    random = np.random.default_rng(17)
    stored = [
        bound(q)
        for q in (
            histogram("job", "ill"),
            count(where=col("ill")),
            histogram("job"),
            count(where=(col("job") == "a") & col("ill")),
            mean("age"),
            total("age", where=col("ill")),
        )
    ]
    asked = [
        bound(q)
        for q in (
            histogram("job", where=col("ill")),
            count(where=(col("job") == "b") & ~col("ill")),
            total("age"),
        )
    ]
    rows, times = DOMAIN[::2], 2_000
    seen: list[list[list[float]]] = [[] for _ in asked]
    first: list[LinearEstimate] = []
    for _ in range(times):
        noise = lambda law: round(random.normal(0, float(law.sigma_squared) ** 0.5))  # noqa: E731
        store = store_of(stored, rows, noise=noise) if not first else None
        if store is not None:
            first = [d for d in map(store.derive, asked) if d is not None]
            assert len(first) == len(asked)
        for place, found in enumerate(first):
            draws = {(s.seq, s.place): noise(s.law) for e in found.estimates for s in e}
            seen[place].append(
                [float(sum(s.weight * draws[s.seq, s.place] for s in e)) for e in found.estimates]
            )
    for found, draws in zip(first, seen, strict=True):
        stated = np.array([float(v) for own in found.variances() for v in own])
        measured = np.array(draws).var(axis=0)
        assert np.all(np.abs(measured / stated - 1) < 6 * np.sqrt(2 / times))


def test_the_covariance_is_that_of_shared_sources() -> None:
    whole, part = count(where=col("ill").is_not_null()), count(where=col("ill"))
    stored = [bound(whole), bound(part)]
    asked = bound(SumQuery((lit(1),), col("ill").is_not_null(), histogram("ill").query.groups))
    found = store_of(stored, DOMAIN).derive(asked)  # no, whole - no
    assert found is not None and found.laws() is None
    unit = float(stored[0].terms[0].fine_step * stored[0].terms[0].fine_unit) ** 2
    assert found.covariance() / unit == pytest.approx(np.array([[2, -1], [-1, 1]]))


def test_laplace_sums_keep_their_own_tails() -> None:
    """Half-widths of one and of two Laplace noises: coverage of 200,000 simulated sums."""
    stored = [bound(count(where=col("job") == "a")), bound(count(where=col("job") == "b"))]
    store = store_of([], DOMAIN)
    scale = Fraction(stored[0].terms[0].fine_unit)
    for number, asked in enumerate(stored, start=1):
        law = DiscreteLaplace(scale * number)
        put(store, number, asked, (law,), (0,))
    found = store.derive(bound(count(where=col("job").isin(["a", "b"]))))
    assert found is not None and found.laws() is None
    random = np.random.default_rng(5)
    drawn = np.abs(random.laplace(0, 1, 200_000) + random.laplace(0, 2, 200_000))
    for confidence in (0.5, 0.9, 0.95, 0.999):
        inside = float((drawn <= found.half_width(0, confidence)).mean())
        assert abs(inside - confidence) < 5 * np.sqrt(confidence * (1 - confidence) / 200_000)
    assert found.half_width(0, 1 - 1e-12) > found.half_width(0, 0.999)


def test_a_threshold_that_tells_nothing_apart_does_not_hide_what_follows() -> None:
    """Nobody asked at 2, but whoever is past 3 is past 2."""
    old = col("age") >= 3
    stored = [bound(count(where=old))]
    found = store_of(stored, DOMAIN[::3]).derive(bound(count(where=old & (col("age") >= 2))))
    assert found is not None and is_implied(found, stored, DOMAIN[::3])
    assert store_of(stored, DOMAIN[::3]).derive(bound(count(where=col("age") >= 2))) is None


def test_a_total_of_one_value_is_a_count() -> None:
    """Nobody asked at 4, but of 3 and 4 a total and a count tell how many are 4."""
    old = col("age") >= 3
    stored = [bound(mean("age", where=old))]
    found = store_of(stored, DOMAIN[::3]).derive(bound(count(where=col("age") >= 4)))
    assert found is not None and is_implied(found, stored, DOMAIN[::3])


def test_answers_that_are_named_are_looked_at_whatever_columns_they_have() -> None:
    """After a restart nothing has been bound yet; before it, another question had done so."""
    odd = col("ill") | (col("job") == "a") | (col("city") == "O")
    sides = [when(odd).then(1).otherwise(0), when(odd).then(0).otherwise(1)]
    stored = [bound(total(side, where=col("age") >= 4)) for side in sides]
    store, wanted = store_of(stored, DOMAIN[::3]), bound(count(where=col("age") >= 4))
    found = store.derive(wanted, frozenset({1, 2}), every=True)
    assert found is not None and is_implied(found, stored, DOMAIN[::3])
    assert store.derive(wanted, frozenset({1}), every=True) is None
