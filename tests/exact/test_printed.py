"""The printed checks on tables: moments are exact, checks agree with plain linear algebra."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sulq import Category, Flag, InvalidQuery, Number, Schema, col, count, mean, total
from sulq.answers.statistics import histogram
from sulq.exact.printed import checks as papers
from sulq.exact.printed.auditor import MOST_EXACT, offline, online, simulated, theorem_6
from sulq.exact.printed.counterexamples import counterexample
from sulq.exact.printed.laws import (
    belief_in_a_head,
    binomial_delta,
    posterior_ratio,
    shifted_delta,
    sum_law,
)
from sulq.exact.printed.moments import Moments, moments_program, read_moments
from sulq.kernel.engines.engine import open_engine
from sulq.kernel.schema.bind import NoiseGrid, bind

SCHEMA = Schema(
    Flag("ill"),
    Number("visits", 0, 4, step=1),
    Number("income", 0, 100),
    Category("city", ["Oslo", "Paris"], public=True),
)


def bits(share, rows=2000):
    return [Fraction(i % round(1 / share) == 0) for i in range(rows)]


# --- moments ------------------------------------------------------------------------------------


def test_moments_of_a_table_are_those_of_its_rows(tmp_path):
    rows = [(i % 3 == 0, i % 5, 1.5 * (i % 40), "Oslo" if i % 2 else "Paris") for i in range(200)]
    rows[7] = (None, None, None, None)
    path = tmp_path / "people.csv"
    lines = ["ill,visits,income,city"]
    lines += [",".join("" if cell is None else str(cell) for cell in row) for row in rows]
    path.write_text("\n".join(lines), "utf-8")
    questions = [
        count(where=col("ill")),
        total(col("visits"), where=col("city") == "Oslo"),
        count(where=col("visits") >= 2),
        total(col("income")),
    ]
    bound = [bind(question, SCHEMA, grid=NoiseGrid(0)) for question in questions]
    engine = open_engine(path, SCHEMA)
    found = read_moments(bound, engine.size(), engine.exact_sums(moments_program(bound)))
    engine.close()
    expected = np.array(
        [
            [float(ill is True) for ill, *_ in rows],
            [(visits or 0) / 4 if city == "Oslo" else 0.0 for _, visits, _, city in rows],
            [float(visits is not None and visits >= 2) for _, visits, _, _ in rows],
            [(income or 0) / 100 for *_, income, _ in rows],
        ]
    )
    centred = expected - expected.mean(axis=1, keepdims=True)
    assert found.covariance[:3, :3] == pytest.approx((centred @ centred.T)[:3, :3])
    assert found.covariance == pytest.approx(centred @ centred.T, abs=1e-3)  # income's grid
    assert found.share(0) == pytest.approx(expected[0].mean())
    assert found.share(1) is None
    assert found.only([2, 0]).covariance == pytest.approx(found.covariance[[2, 0]][:, [2, 0]])


def test_a_mean_is_two_sums_and_a_histogram_is_refused():
    two = bind(mean(col("visits")), SCHEMA, grid=NoiseGrid(0))
    assert len(moments_program([two]).terms) == len(two.terms) + len(two.terms) * 3 // 2
    with pytest.raises(InvalidQuery, match="each group by itself"):
        moments_program([bind(histogram("city"), SCHEMA, grid=NoiseGrid(0))])


# --- checks -------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(data=st.lists(st.lists(st.integers(0, 4), min_size=12, max_size=12), min_size=2, max_size=4))
def test_theorem_5_is_the_least_squares_residual(data):
    x = np.array(data, dtype=float)
    x -= x.mean(axis=1, keepdims=True)
    gram = x @ x.T
    check = papers.theorem_5(gram, 1, 1e-6)
    fit, *_ = np.linalg.lstsq(x[:-1].T, x[-1], rcond=1e-9)
    residual = np.linalg.norm(x[-1] - x[:-1].T @ fit)
    assert check.corrected == pytest.approx(residual, abs=1e-5)
    printed = np.linalg.norm(x[-1] - x[:-1].T @ (x[:-1] @ x[-1]))
    assert check.printed == pytest.approx(printed, abs=1e-5)
    smallest = math.sqrt(papers.smallest_eigenvalue(gram))
    assert smallest <= check.corrected + 1e-5 <= np.linalg.norm(x[-1]) + 2e-5


def test_many_questions_are_bounded_without_trying_every_sign():
    draw = np.random.default_rng(3)
    root = draw.normal(size=(11, 40))
    covariance = root @ root.T
    bound = papers.effective_variance(covariance)
    signs = draw.choice([-1.0, 1.0], size=(500, 11))
    reached = np.einsum("ki,ij,kj->k", signs, np.linalg.inv(covariance), signs)
    assert bound <= 1 / reached.max()


def test_dependent_questions_have_no_variance_of_their_own():
    ill = bits(0.5)
    twice = Moments.of_values([ill, ill]).covariance
    assert papers.effective_variance(twice) == 0
    assert not papers.theorem_2(twice, 1, 1e-6).passes
    assert papers.averaging(twice, [1, 1]).corrected == pytest.approx(500)  # one question, again
    assert papers.averaging(twice, [1, -1]).corrected == 0  # the difference is read off
    assert papers.averaging(np.zeros((1, 1))).corrected == 0


def test_every_check_says_why_and_why_not():
    gram = Moments.of_values([bits(0.5), bits(0.2)])
    checks = [
        papers.lemma_2(30, 1, 1e-6),
        papers.lemma_2_coins(1000, 1, 1e-6),
        papers.lemma_2_laplace(2, 1),
        papers.lemma_3(30, 2, 1, 1e-6),
        papers.theorem_2(gram.covariance, 1, 1e-6),
        papers.theorem_4(gram.covariance, 1, 1e-6, 2000),
        papers.theorem_5(gram.covariance, 1, 1e-6),
        papers.averaging(gram.covariance),
        papers.berry_esseen(2000, 1, 1e-6),
        offline(gram, 1, 1e-6),
        theorem_6(2000, 0.5),
    ]
    assert all(check.why and check.not_safe and check.claim.startswith("S1.") for check in checks)
    with pytest.raises(FrozenInstanceError):
        checks[0].printed = 1.0
    assert papers.lemma_2(30, 1, 1e-6).passes
    assert not papers.lemma_2(29, 1, 1e-6).passes
    assert papers.lemma_2(29, 1, 1e-6).corrected_passes  # 17.85 is enough


# --- the auditor --------------------------------------------------------------------------------


def test_as_printed_nothing_is_answered_before_the_last_question():
    three = Moments.of_values([bits(0.5, 4000), bits(1 / 3, 4000), bits(0.05, 4000)])
    audit = online(three, 1, 1e-6, questions=4)
    assert [step.statistic for step in audit.printed] == [0, 0, 0]
    assert not any(step.answered for step in audit.printed)
    assert [step.answered for step in audit.corrected] == [True, True, False]
    with pytest.raises(InvalidQuery, match="announced"):
        online(three, 1, 1e-6, questions=2)


def test_a_rejected_question_does_not_lock_out_the_next():
    rare = [Fraction(i == 0) for i in range(2000)]
    audit = online(Moments.of_values([rare, bits(0.5)]), 1, 1e-6)
    assert [step.answered for step in audit.printed] == [False, False]
    assert [step.answered for step in audit.corrected] == [False, True]


def test_offline_looks_at_what_was_answered():
    rare = [Fraction(i == 0) for i in range(2000)]
    moments = Moments.of_values([rare, bits(0.5), bits(0.2)])
    assert not offline(moments, 1, 1e-6).passes
    assert offline(moments, 1, 1e-6, [1, 2]).passes
    with pytest.raises(InvalidQuery, match="nothing to check"):
        offline(moments, 1, 1e-6, [])


def test_the_simulator_on_drawn_tables():
    """30 tables of 500 rows at p = .2: the statistic stays .3 wide."""
    draw = np.random.default_rng(4)
    tables = [
        Moments.of_values([[Fraction(int(bit)) for bit in draw.random(500) < 0.2]])
        for _ in range(31)
    ]
    found = simulated(tables[0], tables[1:], 0.1, 1, 1e-6)
    assert 0.15 < np.std(found.drawn) < 0.6
    assert found.close < 0.7
    assert found.same_decision == 1  # far above the threshold all decide alike
    near = simulated(tables[0], tables[1:], 0.1, 5.39 / np.mean(found.drawn), 1e-6)
    assert near.same_decision < 1  # at the threshold they do not
    with pytest.raises(InvalidQuery, match="at least one"):
        simulated(tables[0], [], 0.1, 1, 1e-6)


def test_theorem_6_beyond_a_million_rows_is_its_limit():
    exact, limit = theorem_6(MOST_EXACT, 0.3), theorem_6(MOST_EXACT + 1, 0.3)
    assert exact.corrected == pytest.approx(limit.corrected, abs=0.002)
    assert theorem_6(MOST_EXACT + 1, 0.5).corrected == 1.0


# --- laws ---------------------------------------------------------------------------------------


@settings(max_examples=16, deadline=None)
@given(n=st.integers(1, 40), p=st.floats(0.05, 0.95), epsilon=st.sampled_from([0.2, 1.0]))
def test_two_ways_to_one_delta(n, p, epsilon):
    law = sum_law([[1 - p, p]] * n)
    assert shifted_delta(law, 1, epsilon) == pytest.approx(binomial_delta(n, p, epsilon), rel=1e-9)
    assert shifted_delta(law, -1, epsilon) == shifted_delta(law, 1, epsilon)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: binomial_delta(0, 0.5, 1),
        lambda: binomial_delta(10, 1.0, 1),
        lambda: belief_in_a_head(3, 2),
        lambda: posterior_ratio(1, {0: 1.0}, 9, 0, 1),
        lambda: papers.distance_to_gaussian(0),
        lambda: counterexample("none"),
    ],
)
def test_senseless_arguments_are_refused(wrong):
    with pytest.raises(InvalidQuery):
        wrong()
