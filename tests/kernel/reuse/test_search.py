"""The quick search finds what the plain one finds, with the same sources and variances."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernel.reuse.dense_search import DenseStore
from tests.kernel.reuse.test_store import DOMAIN, bound, put, questions, store_of

from sulq import SumQuery, col, count, histogram, mean, total
from sulq.kernel.noise.laws import DiscreteGaussian, NoNoise
from sulq.kernel.query.sum_query import group
from sulq.kernel.reuse import solve
from sulq.kernel.reuse import store as answer_store
from sulq.kernel.reuse.estimate import LinearEstimate
from sulq.kernel.reuse.store import AnswerStore
from sulq.kernel.schema.bind import BoundQuery


def twin(store: AnswerStore) -> DenseStore:
    """A store of the same answers that searches plainly."""
    public = store._is_public if store._sizes_public else None
    found = DenseStore(store._bind, public, store._read, store._numbers)
    for number, stored in store._read.__self__.items():  # type: ignore[attr-defined]
        found.add(number, stored.question, stored.digest)
    return found


def check(quick: LinearEstimate | None, plain: LinearEstimate | None) -> None:
    assert (quick is None) == (plain is None)
    if quick is None or plain is None:
        return
    assert quick.sources == plain.sources
    assert (quick.exact, quick.alike, quick.public) == (plain.exact, plain.alike, plain.public)
    assert len(quick.estimates) == len(plain.estimates)
    for place in range(len(quick.estimates)):
        assert float(quick.variance(place)) == pytest.approx(float(plain.variance(place)), rel=1e-9)
    sizes = [1_000] * (0 if quick.public is None else len(quick.public.terms))
    assert quick.values(sizes) == pytest.approx(plain.values(sizes), rel=1e-9, abs=2**10)


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.lists(questions, min_size=1, max_size=30),
    st.lists(questions, min_size=1, max_size=4),
    st.sampled_from(["replace", "add-remove"]),
)
def test_both_searches_find_the_same(asked: list[Any], later: list[Any], neighbours: str) -> None:
    rows = [DOMAIN[i] for i in np.random.default_rng(len(asked)).integers(0, len(DOMAIN), 20)]
    quick = store_of([bound(question, neighbours) for question in asked], rows, neighbours)
    plain = twin(quick)
    for question in later:
        wanted = bound(question, neighbours)
        check(quick.derive(wanted), plain.derive(wanted))
        half = frozenset(range(1, len(asked) // 2 + 1))
        check(quick.derive(wanted, half), plain.derive(wanted, half))


def plain_cancelling(told: Any, sums: Any) -> list[int]:
    """Leave out, again and again, single sums with a feature that no other question has."""
    left = list(range(len(sums)))
    while True:
        times = [sum(min(sums[i], 2) for i in left if told[i][j]) for j in range(len(told[0]))]
        alone = [
            i for i in left if sums[i] == 1 and 1 in [times[j] for j in np.flatnonzero(told[i])]
        ]
        if not alone:
            return left
        left = [i for i in left if i not in alone]


@given(st.integers(1, 12), st.integers(1, 12), st.randoms(use_true_random=False))
def test_single_sums_that_nothing_cancels_are_left_out(many: int, wide: int, random: Any) -> None:
    told = [[random.random() < 0.3 for _ in range(wide)] for _ in range(many)]
    sums = np.array([random.choice([1, 1, 1, 4]) for _ in range(many)])
    pairs = np.nonzero(np.array(told))
    assert answer_store._cancelling(*pairs, sums).tolist() == plain_cancelling(told, sums)


def some_question(random: np.random.Generator) -> Any:
    """Counts, totals, means, histograms and averages by group, under up to two conditions."""
    listed = [
        col("age") >= int(random.integers(1, 5)),
        col("job") == str(random.choice(["a", "b"])),
        col("ill") if random.random() < 0.5 else ~col("ill"),
        col("city") == str(random.choice(["O", "P"])),
    ]
    chosen = [listed[i] for i in random.choice(4, int(random.integers(0, 3)), replace=False)]
    where = chosen[0] if chosen else None
    for each in chosen[1:]:
        where = where & each
    by = str(random.choice(["job", "ill", "city"]))
    match int(random.integers(0, 6)):
        case 0 | 1:
            return count(where=where)
        case 2:
            return total("age", where=where)
        case 3:
            return mean("age", where=where)
        case 4:
            return histogram(by, where=where)
    rows = {} if where is None else {"rows": where}
    return SumQuery((col("age"), col("ill")), groups=(group(by),), **rows)


def store_one(stores: tuple[AnswerStore, ...], number: int, asked: BoundQuery, size: int) -> None:
    laws = tuple(
        DiscreteGaussian(Fraction(size * term.fine_unit**2)) if term.unit else NoNoise()
        for term in asked.terms
    )
    values = tuple(1_000 * (place + number) for place in range(asked.width))
    for store in stores:
        put(store, number, asked, laws, values)


@pytest.mark.sample(1)
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_both_searches_agree_along_a_stream_of_mixed_questions(neighbours: str) -> None:
    random = np.random.default_rng(7)
    stored = [bound(some_question(random), neighbours)]
    quick = store_of(stored, DOMAIN[:3], neighbours)
    plain = twin(quick)
    mine, helped = {1}, 0
    for number in range(2, 90):
        asked = bound(some_question(random), neighbours)
        found = quick.derive(asked)
        check(found, plain.derive(asked))
        check(quick.derive(asked, mine), plain.derive(asked, mine))
        if found is not None:
            helped += 1
            few = frozenset(found.sources)
            check(quick.derive(asked, few, every=True), plain.derive(asked, few, every=True))
        store_one((quick, plain), number, asked, int(random.integers(1, 5)))
        if random.random() < 0.5:
            mine.add(number)
    assert helped > 30  # or there was little to compare


def test_what_takes_too_much_work_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit counts rows and pieces, which follow from the questions."""
    parts = [
        bound(count(where=(col("age") >= 2) & col("ill"))),
        bound(count(where=col("age") >= 2)),
    ]
    store = store_of(parts, DOMAIN[:9])
    rest = bound(count(where=(col("age") >= 2) & (~col("ill") | col("ill").is_null())))
    assert store.derive(rest) is not None
    store._found.clear()
    monkeypatch.setattr(solve, "MOST_WORK", 0)
    assert store.derive(rest) is None
