"""Where the rows are and how far they reach: exact without noise, sensible with it."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.learn.exact_oracle import ExactOracle

from sulq import Category, Database, Number, Promise, Schema
from sulq.learn.budget import FitBudget, FitPlan, FitStep, budget_of
from sulq.learn.covariance import (
    Covariance,
    Gram,
    Lengths,
    ask_gram,
    clip_share,
    corrected,
    covariance_plan,
    estimate_covariance,
    find_centre,
    find_lengths,
    find_radius,
    mixed_rows,
    noise_ratio,
    settled_spectrum,
    shrink,
    surely,
    unclipped_share,
)
from sulq.learn.dataset import FitData

RELATIONS = ["replace", "add-remove"]
NAMES = ["a", "b", "c"]


def rows_of(count: int = 3_000, scale: float = 1.0) -> pd.DataFrame:
    random = np.random.default_rng(3)
    x = 0.4 + scale * random.normal(size=(count, 3)) * [0.08, 0.04, 0.02]
    return pd.DataFrame(np.clip(x, 0, 1), columns=NAMES)


SCHEMA = Schema(*(Number(name, 0, 1) for name in NAMES))


def opened(frame=None, schema=SCHEMA, features=NAMES, exact=True, plan=None, **promise):
    """(table, purse) of a fit that has counted its rows."""
    wanted = Promise(**{"epsilon": 1, "delta": "1e-6", **promise})
    data = rows_of() if frame is None else frame
    db = Database.open(data, schema, wanted, ":memory:")
    oracle = ExactOracle(db) if exact else db
    table = FitData.of(oracle, features, None, "none", None, budget_of(oracle, None))
    purse = FitBudget(oracle, table.cap, "test")
    purse.follow(FitPlan("count", ()))
    table = table.counted(purse)
    purse.follow(
        plan
        or FitPlan("test", (FitStep("centre", 0.3), FitStep("clip", 0.2), FitStep("gram", 0.4)))
    )
    return table, purse


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_centre_is_the_mean_without_noise(neighbours):
    table, purse = opened(neighbours=neighbours)
    found = find_centre(table, purse)
    assert found.mean == pytest.approx(rows_of().mean().to_numpy(), abs=1e-5)
    assert found.rows == 3_000
    assert found.error == 0


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_centre_states_its_error(neighbours):
    """6 draws x 3 coordinates beyond 6 errors: false alarm 4e-8. Shrinking moves it by less."""
    true = rows_of().mean().to_numpy()
    far = []
    for _ in range(6):
        found = find_centre(*opened(exact=False, neighbours=neighbours))
        far.append(np.abs(found.mean - true).max() / found.error)
    assert max(far) < 6
    assert max(far) > 0.2


def test_lengths_hold_every_row_and_reach_the_farthest():
    table, purse = opened()
    centre = rows_of().mean().to_numpy()
    found = find_lengths(table, purse, centre)
    far = np.linalg.norm(rows_of().to_numpy() - centre, axis=1)
    assert found.counts.sum() == 3_000
    assert far.max() <= found.quantile(1.0) <= 1.2 * far.max()
    for share in (0.2, 0.5, 0.9):
        assert found.quantile(share) == pytest.approx(np.quantile(far, share), rel=0.1)
    assert found.mean_square() == pytest.approx((far**2).mean(), rel=0.1)
    cut = np.quantile(far, 0.5)
    assert found.mean_square(cut) == pytest.approx((np.minimum(far, cut) ** 2).mean(), rel=0.1)


def test_rows_a_hundred_times_nearer_than_the_bounds_are_still_told_apart():
    near = rows_of(scale=0.1)
    table, purse = opened(near)
    centre = near.mean().to_numpy()
    far = np.linalg.norm(near.to_numpy() - centre, axis=1)
    assert find_radius(table, purse, centre, share=0.5) == pytest.approx(np.median(far), rel=0.15)


def test_clips_open_as_noise_vanishes():
    table, purse = opened()
    assert clip_share(table) == 1.0
    assert unclipped_share(noise_ratio(table, purse, 1.0)) == 1.0
    noisy, purse = opened(exact=False)
    assert 0.5 <= clip_share(noisy) < 1
    assert 0 < unclipped_share(noise_ratio(noisy, purse, 1.0)) < 1
    assert unclipped_share(0.5) < unclipped_share(0.1) < unclipped_share(0.001) < 1


LENGTHS = st.builds(
    lambda counts, error: Lengths(
        np.array(counts), np.concatenate([[0], 2.0 ** np.arange(1 - len(counts), 1)]), error
    ),
    st.lists(st.floats(-50, 500), min_size=2, max_size=12),
    st.floats(0, 40),
)


@given(LENGTHS, st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_never_has_a_smaller_radius(lengths, one, two):
    low, high = sorted((one, two))
    assert 0 < lengths.quantile(low) <= lengths.quantile(high) * (1 + 1e-9)
    assert lengths.quantile(high) <= lengths.edges[-1]
    assert 0 < lengths.mean_square(0.1) <= lengths.mean_square()


def test_where_nothing_stands_out_the_outer_half_is_assumed():
    lengths = Lengths(np.zeros(8), np.linspace(0, 1, 9), 10.0)
    assert 0.5 <= lengths.quantile(0.0) <= lengths.quantile(1.0) == 1.0


def test_shrink_is_james_and_stein():
    vector = np.array([3.0, 4.0, 0.0, 0.0])
    assert shrink(vector, 1.0) == pytest.approx(vector * (1 - 2 / 25))
    assert shrink(vector, 0.0) == pytest.approx(vector)
    assert shrink(vector, 100.0) == pytest.approx(np.zeros(4))
    assert surely(vector, 1.0) == pytest.approx(vector * (1 - (4 + 2 * math.sqrt(8)) / 25))
    assert surely(vector, 0.0) == pytest.approx(vector)


def test_two_counts_are_weighed_by_their_precision():
    table, _ = opened(exact=False, neighbours="add-remove")
    error = table.rows_error
    assert mixed_rows(table, table.rows + 100, error) == pytest.approx(table.rows + 50)
    assert mixed_rows(table, table.rows + 100, 1e9) == pytest.approx(table.rows)


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_gram_is_exact_without_noise_and_its_edge_is_the_semicircle(neighbours):
    table, purse = opened(neighbours=neighbours)
    found = ask_gram(table, purse, table.features.as_vector())
    x = rows_of().to_numpy()
    assert found.value == pytest.approx(x.T @ x, rel=1e-4)
    assert Gram(np.eye(8), 3.0).edge == pytest.approx(4 * 3)


# --- the spread ---------------------------------------------------------------------------------


def spread(frame=None, enough=False, exact=True, schema=SCHEMA, features=NAMES, **promise):
    table, purse = opened(frame, schema, features, exact, **promise)
    purse.follow(covariance_plan(table, "gram"))
    return estimate_covariance(
        table, purse, noise_ratio(table, purse, purse.left), lambda _: enough
    ), purse


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("enough", [True, False])
def test_spread_is_the_covariance_without_noise(neighbours, enough):
    """From afar, and from near by with every clip open."""
    found, _ = spread(enough=enough, neighbours=neighbours)
    x = rows_of().to_numpy()
    assert found.covariance == pytest.approx(np.cov(x.T), abs=1e-7)
    assert found.mean == pytest.approx(x.mean(axis=0), abs=1e-5)
    assert found.lengthened == 1
    assert (found.clip is None) == enough


def test_from_near_by_the_noise_is_smaller():
    """Rows in a hundredth of their bounds: clipping around them pays many times over."""
    near = rows_of(scale=0.1)
    afar, _ = spread(near, enough=True, exact=False)
    close, purse = spread(near, exact=False)
    assert close.error < afar.error / 20
    assert purse.left < 1e-6
    assert close.clip < 0.1


def test_a_missing_category_is_no_direction_of_its_own():
    random = np.random.default_rng(5)
    frame = rows_of().assign(kind=random.choice(["u", "v", "w", None], 3_000))
    schema = Schema(*SCHEMA.columns, Category("kind", ["u", "v", "w"]))
    found, _ = spread(frame, exact=False, schema=schema, features=[*NAMES, "kind"])
    assert found.covariance @ [0, 0, 0, 1, 1, 1] == pytest.approx(np.zeros(6), abs=1e-12)
    assert len(found.spectrum()[0]) == 5


def noise(random, width, error):
    draw = random.normal(size=(width, width)) * error
    return (draw + draw.T) / 2


def test_settled_spectrum_is_what_lies_along_the_noisy_directions():
    """The raw eigenvalues say 60 % too much here; the settled ones are right within 3 %."""
    random = np.random.default_rng(11)
    true = np.diag(np.concatenate([[4.0, 3.0, 2.0], np.full(37, 0.1)]))
    error = 0.25
    raw, settled, along = [], [], []
    for _ in range(100):
        values, vectors = np.linalg.eigh(true + noise(random, 40, error))
        raw.append(values[-3:].sum())
        settled.append(settled_spectrum(values, error)[-3:].sum())
        along.append(np.trace(vectors[:, -3:].T @ true @ vectors[:, -3:]))
    assert np.mean(settled) == pytest.approx(np.mean(along), rel=0.03)
    assert np.mean(raw) > 1.2 * np.mean(along)
    assert settled_spectrum(values, error).sum() == pytest.approx(values.sum())
    assert settled_spectrum(values, 0.0) == pytest.approx(values)


@pytest.mark.parametrize("width", [1, 3, 30])
def test_noise_alone_seldom_passes_the_edge(width):
    """1 of 100 by design; 20 of 1,000 would be beyond 1e-3, 60 beyond 1e-6 even at 3 %."""
    random = np.random.default_rng(width)
    edges = Covariance(np.zeros(width), 0.0, np.eye(width), np.eye(width), 1.0, 1.0, 1.0).edge
    tops = [np.linalg.eigvalsh(noise(random, width, 1.0)).max() for _ in range(1_000)]
    assert sum(top > edges for top in tops) <= 60
    assert np.quantile(tops, 0.9) > edges / 3


def test_correction_returns_a_symmetric_matrix():
    assert corrected(np.eye(2), np.array([0.5, 0.0]), 0.25) == pytest.approx(np.diag([1.0, 1.25]))
