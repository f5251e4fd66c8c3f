"""KMeans: noise off it is Lloyd's algorithm; noise on it spends what it may, and says so."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as some
from sklearn.base import clone
from sklearn.cluster import KMeans as PlainKMeans
from tests.learn.exact_oracle import ExactOracle

import sulq.kernel.release.release as flow
from sulq import Category, Database, Flag, Number, Promise, Schema, col
from sulq.errors import InvalidQuery, TooNoisy
from sulq.kernel.query.sum_query import outer
from sulq.kernel.query.vectors import columns, concat, from_nearest, nearest, ones, project, scaled
from sulq.learn.cluster.kmeans import (
    CountWeight,
    DistanceProfile,
    KMeans,
    Marginal,
    RoundSums,
    WeightedPoints,
    _finer,
    _pooled,
    cell_count,
    update_centres,
)
from sulq.learn.estimator import NoisyResult

ADD = "add-remove"


def blobs(rows: int, width: int, count: int, seed: int = 3, wide: float = 3.0) -> pd.DataFrame:
    """Unequal groups of unequal spread, well inside bounds of +-wide."""
    random = np.random.default_rng(seed)
    centres = random.uniform(-1, 1, (count, width))
    which = random.choice(count, rows, p=random.dirichlet(np.full(count, 4.0)))
    spread = random.uniform(0.05, 0.15, count)[which, None]
    found = centres[which] + spread * random.standard_normal((rows, width))
    return pd.DataFrame(np.clip(found, -wide, wide), columns=[f"x{i}" for i in range(width)])


def opened(frame: pd.DataFrame, wide: float = 3.0, **promise: Any) -> Database:
    given = {"epsilon": 1, "delta": "1e-6", "neighbours": ADD, **promise}
    schema = Schema(*(Number(name, -wide, wide) for name in frame.columns))
    return Database.open(frame, schema, Promise(**given), ":memory:")


def charged(receipt: Any) -> Fraction:
    """What a receipt says the worst account lost, in credits."""
    return max(Fraction(int(loss[0]), 2**64) for loss in receipt.body["charges"])


def inertia(points: Any, centres: Any) -> float:
    return float(np.square(points[:, None] - centres[None]).sum(axis=2).min(axis=1).sum())


def plain_rounds(points: Any, centres: Any, rounds: int, clip: float = math.inf) -> Any:
    """Lloyd's algorithm in NumPy: residuals from the nearest centre, at most `clip` long."""
    for _ in range(rounds):
        near = np.square(points[:, None] - centres[None]).sum(axis=2).argmin(axis=1)
        residual = points - centres[near]
        length = np.linalg.norm(residual, axis=1, keepdims=True)
        residual *= np.minimum(1.0, clip / np.maximum(length, 1e-300))
        centres = np.array(
            [
                c + residual[near == j].mean(axis=0) if (near == j).any() else c
                for j, c in enumerate(centres)
            ]
        )
    return centres


# --- noise off ----------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [2, 12])
@pytest.mark.parametrize("rounds", [1, 4])
def test_without_noise_the_rounds_are_lloyds(width: int, rounds: int) -> None:
    frame = blobs(600, width, 3)
    start = frame.to_numpy()[[0, 100, 200]]
    model = KMeans(3, init=start, rounds=rounds).fit(
        ExactOracle(opened(frame)), list(frame.columns)
    )
    wanted = plain_rounds(frame.to_numpy(), start, rounds)
    assert np.allclose(model.cluster_centers_, wanted, atol=1e-4)


@pytest.mark.parametrize("width", [2, 12])
def test_without_noise_inertia_is_scikit_learns(width: int) -> None:
    frame = blobs(900, width, 4)
    points = frame.to_numpy() / 6 + 0.5
    start = frame.to_numpy()[:4]
    model = KMeans(4, init=start).fit(ExactOracle(opened(frame)), list(frame.columns))
    plain = PlainKMeans(4, init=start / 6 + 0.5, n_init=1, tol=0).fit(points)
    found = inertia(points, model.cluster_centers_ / 6 + 0.5)
    assert found <= plain.inertia_ * 1.001
    assert model.n_iter_ < 60  # it stops where nothing moves
    assert model.inertia_ == pytest.approx(found, rel=1e-3)
    assert model.inertia_error_ == 0
    sizes = np.bincount(model.predict(frame), minlength=4)
    assert np.allclose(model.sizes_, sizes, atol=0.1)
    assert model.shares_.sum() == pytest.approx(1)


@pytest.mark.slow
def test_without_noise_the_search_finds_all_groups() -> None:
    frame = blobs(3_000, 4, 6)
    model = KMeans(6, random_state=0).fit(ExactOracle(opened(frame)), list(frame.columns))
    best = PlainKMeans(6, n_init=10, random_state=0).fit(frame.to_numpy()).inertia_
    assert inertia(frame.to_numpy(), model.cluster_centers_) <= 1.001 * best


def test_the_papers_rounds_without_noise() -> None:
    frame = blobs(500, 3, 2)
    start = frame.to_numpy()[[1, 2]]
    oracle = ExactOracle(opened(frame))
    model = KMeans(2, init=start, rounds=3, method="paper").fit(oracle, list(frame.columns))
    assert np.allclose(model.cluster_centers_, plain_rounds(frame.to_numpy(), start, 3), atol=1e-4)
    assert model.method_ == "paper"
    assert len(oracle.asked) == 3 + 1  # one question a round, all clusters together, and the rows


def test_missing_values_take_the_learned_centre() -> None:
    frame = blobs(800, 2, 2)
    frame.loc[::7, "x0"] = np.nan
    start = np.array([[-0.5, 0.0], [0.5, 0.5]])
    model = KMeans(2, init=start).fit(ExactOracle(opened(frame)), ["x0", "x1"])
    filled = frame.fillna(0.0).to_numpy()  # without a search: the public middle
    assert np.allclose(model.cluster_centers_, plain_rounds(filled, start, 50), atol=1e-3)
    assert (model.predict(frame) == model.predict(filled)).all()


@pytest.mark.slow
def test_conditions_categories_and_flags() -> None:
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"kind": random.choice(["a", "b"], 400), "on": random.random(400) < 0.3})
    schema = Schema(Category("kind", ["a", "b"]), Flag("on"))
    database = Database.open(frame, schema, Promise(1, "1e-6", neighbours=ADD), ":memory:")
    model = KMeans(4, random_state=1).fit(ExactOracle(database), ["kind", "on"])
    counts = sorted(frame.groupby(["kind", "on"]).size())
    assert np.allclose(sorted(model.sizes_), counts, atol=0.1)
    half = KMeans(2, random_state=1).fit(ExactOracle(database), ["kind", "on"], where=col("on"))
    assert half.sizes_.sum() == pytest.approx(frame["on"].sum(), abs=0.1)


@pytest.mark.slow
def test_a_released_projection_serves_as_features() -> None:
    frame = blobs(700, 3, 2)
    plane = project(columns(list(frame.columns), 0.5), [[1, 0, 0], [0, 1, 0]])
    model = KMeans(2, random_state=0).fit(ExactOracle(opened(frame)), plane)
    assert model.cluster_centers_.shape == (2, 2)
    points = frame.to_numpy()[:, :2] / 6
    best = PlainKMeans(2, n_init=5, random_state=0).fit(points).inertia_
    assert inertia(points, model.cluster_centers_) <= 1.001 * best
    assert len(model.predict(frame)) == 700


# --- noise on -----------------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "promise",
    [
        {},
        {"neighbours": "replace"},
        pytest.param({"epsilon": 10, "delta": 0}, marks=pytest.mark.slow),
        {"epsilon": 10, "delta": 0, "neighbours": "replace"},
    ],
    ids=["add-remove", "replace", "laplace", "laplace-replace"],
)
def test_groups_are_found_under_every_promise(promise: dict[str, Any]) -> None:
    frame = blobs(30_000, 3, 3)
    model = KMeans(3, random_state=0).fit(opened(frame, **promise), list(frame.columns))
    best = PlainKMeans(3, n_init=5, random_state=0).fit(frame.to_numpy()).inertia_
    assert inertia(frame.to_numpy(), model.cluster_centers_) < 1.1 * best
    sizes = np.bincount(model.predict(frame), minlength=3)
    # Laplace: exp(-10 sqrt 2) = 7e-7 a cluster, Gaussian far less
    assert (abs(model.sizes_ - sizes) < 10 * model.sizes_error_).all()
    assert (model.sizes_error_ > 0).all() and (model.centers_error_ > 0).all()
    assert model.centers_error_.shape == model.cluster_centers_.shape
    assert abs(model.inertia_ - inertia(frame.to_numpy() / 6, model.cluster_centers_ / 6)) < (
        10 * model.inertia_error_ + 1
    )


@pytest.mark.slow
def test_many_columns_with_noise() -> None:
    frame = blobs(20_000, 15, 4)
    model = KMeans(4, random_state=0).fit(opened(frame), list(frame.columns))
    best = PlainKMeans(4, n_init=5, random_state=0).fit(frame.to_numpy()).inertia_
    assert inertia(frame.to_numpy(), model.cluster_centers_) < 1.3 * best


def test_persons() -> None:
    frame = blobs(6_000, 2, 2).assign(who=lambda f: np.arange(len(f)) // 2)
    schema = Schema(Number("x0", -3, 3), Number("x1", -3, 3), unit="who", max_rows=2)
    database = Database.open(frame, schema, Promise(2, "1e-6", neighbours=ADD), ":memory:")
    model = KMeans(2, random_state=0).fit(database, ["x0", "x1"])
    best = PlainKMeans(2, n_init=5, random_state=0).fit(frame[["x0", "x1"]].to_numpy()).inertia_
    assert inertia(frame[["x0", "x1"]].to_numpy(), model.cluster_centers_) < 1.2 * best


@pytest.mark.slow
@settings(max_examples=12, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(
    count=some.integers(1, 5),
    width=some.sampled_from([1, 2, 9]),
    credits=some.sampled_from([None, 1, 10, Fraction(1, 3)]),
    method=some.sampled_from(["auto", "paper"]),
    neighbours=some.sampled_from([ADD, "replace"]),
    laplace=some.booleans(),
    rows=some.sampled_from([1, 40, 600]),
)
def test_credits_are_the_receipts_and_within_the_cap(
    count: int,
    width: int,
    credits: Any,
    method: str,
    neighbours: str,
    laplace: bool,
    rows: int,
) -> None:
    frame = blobs(rows, width, 2)
    database = opened(frame, delta=0 if laplace else "1e-6", neighbours=neighbours)
    model = KMeans(count, credits=credits, method=method, random_state=0, on_noise="warn")
    before = database.remaining
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoisyResult)
        model.fit(database, list(frame.columns))
    paid = sum(map(charged, model.receipts_), Fraction(0))
    assert model.credits_ == paid == before - database.remaining
    assert paid <= (before if credits is None else credits)
    assert np.isfinite(model.cluster_centers_).all()
    assert (abs(model.cluster_centers_) <= 3 + 1e-9).all()
    assert model.predict(frame).max() < count


def test_hopeless_fits_raise_before_they_spend() -> None:
    frame = blobs(60, 3, 3)
    database = opened(frame, epsilon="0.1", neighbours="replace")
    before = database.remaining
    with pytest.raises(TooNoisy, match=r"rows or epsilon"):
        KMeans(3, random_state=0).fit(database, list(frame.columns))
    assert database.remaining == before  # rows are public here: nothing was asked


@pytest.mark.slow
def test_noise_that_swamps_the_groups_raises() -> None:
    random = np.random.default_rng(1)
    frame = pd.DataFrame(random.uniform(-0.2, 0.2, (300, 40)), columns=[f"x{i}" for i in range(40)])
    with pytest.raises(TooNoisy, match="one centre at the mean"):
        KMeans(2, random_state=0).fit(opened(frame, epsilon="0.5"), list(frame.columns))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = KMeans(2, random_state=0, on_noise="warn")
        model.fit(opened(frame, epsilon="0.5"), list(frame.columns))
    assert any("one centre at the mean" in str(one.message) for one in said)
    assert model.cluster_centers_.shape == (2, 40)


def test_a_cluster_without_rows_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        flow, "draw_noise", lambda laws: [0] * len(laws)
    )  # by chance it may seem to
    frame = blobs(5_000, 2, 2)
    start = np.vstack([PlainKMeans(2, n_init=3).fit(frame).cluster_centers_, [[3.0, -3.0]]])
    for method in ("auto", "paper"):
        model = KMeans(3, init=start, method=method, on_noise="warn")
        with pytest.warns(NoisyResult, match="cluster 2 holds fewer rows"):
            model.fit(opened(frame), list(frame.columns))
        assert np.allclose(model.cluster_centers_[2], [3, -3])  # S4.8: its update was skipped
        assert any("cluster 2" in note for note in model.notes_)


@pytest.mark.parametrize("method", ["auto", "paper"])
def test_a_cluster_below_the_size_bound_is_an_exception(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dwork 2005, 4.2: below the threshold the output is an exception. S0.9"""
    monkeypatch.setattr(flow, "draw_noise", lambda laws: [0] * len(laws))
    frame = blobs(5_000, 2, 2)
    start = np.vstack([PlainKMeans(2, n_init=3).fit(frame).cluster_centers_, [[3.0, -3.0]]])
    database = opened(frame)
    before = database.remaining
    model = KMeans(3, init=start, method=method, credits=before / 2)
    with pytest.raises(TooNoisy, match="cluster 2 holds fewer rows"):
        model.fit(database, list(frame.columns))
    if method == "paper":  # raised in the first round: the others are not paid for
        assert before - database.remaining < before / 4


def test_the_smaller_of_two_clusters_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where what is left is one cluster, so that the centres say nothing together. S0.9"""
    monkeypatch.setattr(flow, "draw_noise", lambda laws: [0] * len(laws))
    random = np.random.default_rng(0)
    many, few = random.normal(-1, 0.2, (20_000, 2)), random.normal(2.5, 0.05, (5, 2))
    frame = pd.DataFrame(np.vstack([many, few]).clip(-3, 3), columns=["x0", "x1"])
    terms: dict[str, Any] = {"init": np.array([[-1.0, -1.0], [2.5, 2.5]]), "rounds": 2}
    with pytest.raises(TooNoisy, match=r"^cluster 1 holds fewer rows .* closer together"):
        KMeans(2, **terms).fit(opened(frame), ["x0", "x1"])
    model = KMeans(2, on_noise="warn", **terms)
    with pytest.warns(NoisyResult, match="cluster 1 holds fewer rows") as said:
        model.fit(opened(frame), ["x0", "x1"])
    assert not any("on_noise" in str(one.message) for one in said)  # that is what was taken


# --- conventions --------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sulq.learn.estimator.NoisyResult")
def test_scikit_learns_conventions() -> None:
    model = KMeans(3, credits=5, random_state=7)
    assert clone(model).get_params() == model.get_params()
    frame = blobs(4_000, 2, 3)
    model.set_params(credits=None).fit(opened(frame), ["x0", "x1"])
    assert list(model.feature_names_in_) == ["x0", "x1"] and model.n_features_in_ == 2
    distances = model.transform(frame)
    assert distances.shape == (4_000, 3)
    assert (distances.argmin(axis=1) == model.predict(frame.to_numpy())).all()
    assert model.score(frame) == pytest.approx(-np.square(distances.min(axis=1)).sum())
    scaled = inertia(frame.to_numpy() / 6, model.cluster_centers_ / 6)
    assert model.score(frame) == pytest.approx(-scaled, rel=1e-6)


def test_a_quote_is_free_and_names_the_steps() -> None:
    database = opened(blobs(3_000, 2, 2))
    before = database.remaining
    found = KMeans(2).quote(database, ["x0", "x1"], rows=3_000)
    assert database.remaining == before
    assert {"axes", "cells", "reach", "rounds", "sizes"} == {row["step"] for row in found.rows()}
    assert sum(row["credits"] for row in found.rows()) <= float(before)


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_clusters": 0},
        {"n_clusters": 2.5},
        {"rounds": 0},
        {"init": [[0, 0]]},
        {"init": "k-means++"},
        {"init": [[0, 0], [math.nan, 0]]},
        {"method": "elkan"},
    ],
)
def test_wrong_parameters_are_named(wrong: dict[str, Any]) -> None:
    model = KMeans(**{"n_clusters": 2, **wrong})
    with pytest.raises(InvalidQuery, match=next(iter(wrong))):
        model.fit(ExactOracle(opened(blobs(50, 2, 2))), ["x0", "x1"])


# --- parts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("laplace", [False, True])
@pytest.mark.parametrize("rows", [0.6, 1.0, 2.0])
def test_weighing_is_what_the_oracle_charges(replace: bool, laplace: bool, rows: float) -> None:
    """The planned error of a round is the quoted one (the plan must not promise too much)."""
    frame = blobs(200, 4, 2)
    database = opened(
        frame, delta=0 if laplace else "1e-6", neighbours="replace" if replace else ADD
    )
    vector, clip = columns(list(frame.columns), 0.5), 0.25
    points = [[-0.1, 0.0, 0.0, 0.0], [0.1, 0.0, 0.0, 0.0]]
    right = concat(scaled(ones(), rows * clip), from_nearest(vector, points, clip))
    quoted = database.quote(outer(nearest(vector, points), right), credits=10)
    one = database.quote(outer(ones(), scaled(nearest(vector, points), 1)), credits=10)
    unit = float(np.max(one.standard_error)) / ((2 if laplace else math.sqrt(2)) if replace else 1)
    planned = unit * CountWeight(replace, rows).reach(not laplace, 4) * clip
    assert float(np.max(quoted.standard_error)) == pytest.approx(planned, rel=0.02)


def test_steps_shrink_by_their_noise() -> None:
    centres = np.zeros((2, 6))
    moves = np.vstack([np.full(6, 0.5), np.full(6, 400.0)])
    found = RoundSums(np.array([100.0, 100.0]), 1.0, moves, 1.0)
    new = update_centres(centres, found)
    assert np.allclose(new[0], 0)  # shorter than its noise
    assert np.allclose(new[1], 4.0, rtol=1e-3)
    few = RoundSums(np.array([1.0, 100.0]), 1.0, moves, 1.0)
    assert np.allclose(update_centres(centres, few)[0], 0)


def test_the_clip_weighs_bias_against_noise() -> None:
    reach = DistanceProfile(np.array([0.0, 1.0, 10.0]), np.array([990.0, 10.0]))
    assert reach.clip(0.0) == 10.0
    clips = [reach.clip(noise) for noise in (1e-4, 1e-2, 1.0)]
    assert clips == sorted(clips, reverse=True) and clips[0] > 5 and clips[-1] < 1


def test_bins_below_the_noise_are_pooled() -> None:
    counts = np.array([5.0, 3.0, 500.0, -6.0, 4.0])
    assert np.allclose(_pooled(counts, 4.0, strict=False), [4, 4, 500, 0, 0])
    assert np.allclose(_pooled(counts, 4.0, strict=True), [0, 0, 500, 0, 0])
    edges = _finer(Marginal(np.arange(6.0), np.array([0.0, 0.0, 8.0, 0.0, 0.0])), 4)
    assert np.allclose(edges, [0, 2, 2.25, 2.5, 2.75, 3, 5])


def test_clouds_cluster_and_cells_follow_the_signal() -> None:
    cloud = WeightedPoints(np.array([[0.0], [0.1], [5.0], [5.1]]), np.array([3.0, 1.0, 1.0, 1.0]))
    found = np.sort(cloud.start(2, np.random.default_rng(0)).ravel())
    assert np.allclose(found, [0.025, 5.05])
    assert cloud.start(6, np.random.default_rng(0)).shape == (6, 1)
    places = np.arange(6.0).repeat(20)[:, None] * 1_000 + np.linspace(0, 1, 120)[:, None]
    far = WeightedPoints(places, np.ones(120)).clustered(6, np.random.default_rng(0), 1, 1)
    assert np.allclose(np.sort(far.ravel()).round(-3), np.arange(6) * 1_000)  # k-means++
    assert cell_count(1_000, 50.0, 5) == 0 and cell_count(8_000, 50.0, 5) == 20
