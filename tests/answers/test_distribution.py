"""Whole distributions: one tree of counts, read by least squares, with bars that hold.

Statistical checks state their false-alarm rate: 1e-6 per test, from exact binomial tails.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sulq import Category, Database, Flag, InvalidQuery, Number, Promise, Schema, SumQuery, col, lit
from sulq.answers.distribution import Fit
from sulq.answers.statistics import cdf, distribution, histogram, quantiles, read
from sulq.kernel.accounting.calibration import calibrate
from sulq.kernel.accounting.loss import coupling_factor, coupling_slack
from sulq.kernel.accounting.pricing import price
from sulq.kernel.noise.laws import DiscreteGaussian, NoNoise
from sulq.kernel.noise.sampler import add_fresh_noise
from sulq.kernel.query.sum_query import group, text_of
from sulq.kernel.schema.bind import NoiseGrid, bind
from sulq.kernel.schema.trees import CountTree, TreeSums

SCHEMA = Schema(
    Number("age", 0, 9, step=1),
    Number("income", 0, 1000),
    Flag("ill"),
    Category("city", ["Oslo", "Paris"]),
)


def levels_matrix(tree: CountTree) -> np.ndarray:
    """Nodes x cells: which cells a node adds up."""
    depth = len(tree.sizes)
    blocks = []
    for level, size in enumerate(tree.sizes):
        block = np.zeros((size, tree.leaves))
        for leaf in range(tree.leaves):
            block[leaf >> (depth - 1 - level), leaf] = 1
        blocks.append(block)
    return np.vstack(blocks)


@given(st.integers(1, 40), st.integers(0, 10**6))
@settings(max_examples=24, deadline=None)
def test_two_passes_are_weighted_least_squares(leaves: int, seed: int) -> None:
    tree = CountTree(leaves)
    random = np.random.default_rng(seed)
    variances = random.uniform(0.3, 4, len(tree.sizes)).tolist()
    matrix = levels_matrix(tree)
    weights = 1 / np.repeat(variances, tree.sizes)
    covariance = np.linalg.inv(matrix.T @ (weights[:, None] * matrix))
    nodes = random.normal(size=len(matrix))
    fit = Fit.of(tree.sizes, variances)
    expected = covariance @ matrix.T @ (weights * nodes)
    assert np.allclose(fit.cells(nodes, variances), expected)
    below = np.tri(leaves + 1, leaves, -1)
    joint = below @ covariance @ below.T
    variance, with_total = fit.spreads()
    assert np.allclose(variance, np.diag(joint))
    assert np.allclose(with_total, joint[:, -1])


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40))
def test_counts_of_a_tree_are_sums_of_its_cells(cells: list[int]) -> None:
    tree = CountTree(len(cells))
    found = tree.counts(cells)
    assert found == (levels_matrix(tree) @ cells).astype(int).tolist()
    assert tree.counts(cells * 3) == found * 3


def test_the_shape_is_part_of_the_format() -> None:
    """Stored answers are read by it: these figures never change under format 1."""
    assert CountTree(10).sizes == (2, 3, 5, 10)
    assert CountTree(1024).sizes == (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
    assert CountTree(10).units == (2258946, 2153820, 2053587, 1958018)
    assert CountTree(1).sizes == (1,) and CountTree(2).sizes == (2,)
    assert CountTree(10, even=True).units == (1, 1, 1, 1)


@pytest.mark.parametrize("fine", [30, 0])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("leaves", [1, 2, 3, 5, 8, 13])
def test_every_move_of_a_row_costs_at_most_what_is_charged(
    leaves: int, neighbours: str, fine: int
) -> None:
    """Exhaustive: all pairs of cells (and no cell), in the units of every level. V.3"""
    schema = Schema(Number("x", 0, leaves - 1, step=1) if leaves > 1 else Number("x", 0, 1, step=1))
    bound = bind(distribution("x"), schema, neighbours, grid=NoiseGrid(fine))
    tree = bound.tree
    assert tree is not None
    scale = np.array(tree.along([term.fine_unit for term in bound.terms]), dtype=float)
    lifts = np.array(tree.along([term.lift * tree.scale for term in bound.terms]), dtype=float)
    nodes = [levels_matrix(tree)[:, cell] * lifts / scale for cell in range(tree.leaves)]
    nodes.append(np.zeros(len(scale)))  # NULL, or not there
    pairs = itertools.combinations(nodes, 2)
    if neighbours == "add-remove":
        pairs = ((node, nodes[-1]) for node in nodes[:-1])
    moves = [one - two for one, two in pairs]
    [(charged, _)] = bound.reach
    most = max(float(move @ move) for move in moves)
    assert most <= charged.l2_squared
    levels = 1 if fine else len(tree.sizes)  # noise of one size pays for every level
    assert charged.l2_squared == levels * (1 if neighbours == "add-remove" else 2)
    assert most >= 0.999 * charged.l2_squared or tree.leaves < 3
    assert max(np.abs(move).sum() for move in moves) <= charged.l1 + 1e-9
    assert max(int((move != 0).sum()) for move in moves) <= charged.coordinates


def test_every_node_gets_its_levels_noise_and_pays_for_its_slack() -> None:
    """TB.8 is paid per coordinate, and the levels' laws are those that were priced."""
    calibration = calibrate(Promise(1, 1e-6, queries=100))
    bound = bind(distribution("age", by="city"), SCHEMA)
    cost = price(bound, calibration, Fraction(1))
    tree = bound.tree
    assert tree is not None
    laws = cost.coordinates(bound.cells)
    assert len(laws) == len(bound.lifted(tree.counts([0] * bound.cells))) == 2 * (2 + 3 + 5 + 10)
    assert laws[:2] == [cost.laws[0]] * 2 and laws[2:5] == [cost.laws[1]] * 3
    assert laws[10:20] == [cost.laws[3]] * 10 and laws[20:] == laws[:20]
    sigmas = [law.sigma_squared for law in laws if isinstance(law, DiscreteGaussian)]
    assert len(sigmas) == 40 and len(set(sigmas)) == 4
    slack = coupling_factor(Fraction(1)) * sum(map(coupling_slack, sigmas))
    assert 0 <= cost.worst.delta_fraction - slack <= Fraction(1, 2**100)
    top, finest = (
        float(law.sigma_squared * term.fine_step**2)  # type: ignore[union-attr]
        for law, term in ((cost.laws[0], bound.terms[0]), (cost.laws[3], bound.terms[3]))
    )
    assert top / finest == pytest.approx(1.1**3, rel=1e-5)  # R / w_l
    weight = 1 / sum(1.1**level for level in range(4))
    assert top == pytest.approx(float(calibration.unit_variance) / weight, rel=1e-5)


def test_a_person_of_several_rows_moves_the_tree_as_much_more() -> None:
    schema = Schema(Number("x", 0, 9, step=1), unit="person", max_rows=3)
    [(charged, _)] = bind(distribution("x"), schema).reach
    assert charged.l2_squared == 2 * 9  # M.5


def test_it_costs_what_one_histogram_costs_and_reads_the_same_sums() -> None:
    frame = pd.DataFrame({"age": [1, 2, 3] * 100, "income": 5.0, "ill": True, "city": "Oslo"})
    with Database.open(frame, SCHEMA, Promise(1, 1e-6, queries=100), ledger=":memory:") as db:
        assert db.quote(distribution("age")).credits == db.quote(histogram("city")).credits == 2
        answer = db.ask(distribution("age"))
        assert answer.credits == 2
        for other in (quantiles("age", [0.1, 0.9]), cdf("age"), distribution("age")):
            assert db.ask(other).credits == 0  # the same sums, read otherwise
        assert db.ask(distribution("age", resolution=4)).credits == 2


@pytest.mark.parametrize("noise", ["laplace", "binomial"])
def test_other_noise_prices_every_level(noise: str) -> None:
    frame = pd.DataFrame({"age": [1, 2, 3] * 50, "income": 5.0, "ill": True, "city": "Oslo"})
    promise = Promise(4, 0 if noise == "laplace" else 1e-6, queries=40, noise=noise)
    with Database.open(frame, SCHEMA, promise, ledger=":memory:") as db:
        answer = db.ask(distribution("age"))
        if noise == "binomial":
            assert answer.credits == 2 * 4  # one per coordinate: two cells on four levels
        else:
            assert 2 < answer.credits < 2 * 2  # 2 sum sqrt(w) <= 2 sqrt(levels)
        low, high = answer.interval(0.99)
        assert (low <= answer.value).all() and (answer.value <= high).all()


def exact(question: object, cells: list[int]):
    bound = bind(question, SCHEMA)
    assert bound.tree is not None
    laws = (NoNoise(),) * len(bound.terms)
    return read(bound, bound.lifted(bound.tree.counts(cells)), laws, sum(cells))


def test_without_noise_everything_is_what_numpy_says() -> None:
    ages = np.repeat(np.arange(10), [5, 0, 3, 9, 9, 1, 0, 30, 2, 4])
    cells = np.bincount(ages, minlength=10).tolist()
    found = exact(distribution("age"), cells).distributions.item()
    assert found.below.tolist() == [0, *np.cumsum(cells)]
    assert found.histogram().tolist() == cells
    shares = [0.01, 0.25, 0.5, 0.75, 0.9, 1.0]
    assert [found.quantile(s) for s in shares] == np.quantile(
        ages, shares, method="inverted_cdf"
    ).tolist()
    assert found.minimum() == (0, 0, 0) and found.maximum() == (9, 9, 9)
    assert found.total == len(ages)


def test_groups_have_a_distribution_each() -> None:
    bound = bind(distribution("age", by="city"), SCHEMA)
    assert bound.shape == (2, 10)
    one, two = [1] * 10, [0] * 9 + [50]
    reading = exact(distribution("age", by="city"), one + two)
    assert reading.value.shape == (2, 11)
    assert [found.median for found in reading.distributions] == [4, 9]
    assert reading.keys == (("Oslo", "Paris"), tuple(range(11)))
    three = bind(distribution("age", by=["city", "ill"]), SCHEMA)
    assert three.shape == (2, 2, 10)


def drawn(question: object, cells: list[int], sd: float, times: int):
    """Readings of the same counts under fresh noise of the database's own law."""
    bound = bind(question, SCHEMA)
    assert bound.tree is not None
    variance = Fraction(sd) ** 2
    laws = tuple(DiscreteGaussian(variance * term.fine_unit**2) for term in bound.terms)
    lifted = bound.lifted(bound.tree.counts(cells))
    flat = add_fresh_noise(
        lifted * times, bound.tree.along(laws) * (times * len(cells) // bound.cells)
    )
    width = len(lifted)
    for place in range(times):
        yield read(bound, flat[place * width : (place + 1) * width], laws, sum(cells))


def least_hits(times: int, share: float) -> int:
    """The largest h with P(Binomial(times, share) < h) <= 1e-6."""
    total, hits = 0.0, 0
    while True:
        total += math.exp(
            math.lgamma(times + 1)
            - math.lgamma(hits + 1)
            - math.lgamma(times - hits + 1)
            + hits * math.log(share)
            + (times - hits) * math.log1p(-share)
        )
        if total > 1e-6:
            return hits
        hits += 1


def in_rank(found, value: float, below: np.ndarray, share: float, far: float) -> bool:
    """Whether a cell that touches the value has the wished rank, up to `far` rows."""
    wanted = share * below[-1]
    places = {int(np.searchsorted(found.edges, value, side)) - 1 for side in ("left", "right")}
    places = {min(max(place, 0), len(below) - 2) for place in places}
    return any(below[p] <= wanted + far and below[p + 1] >= wanted - far for p in places)


SHAPES = {
    "many": np.clip(np.random.default_rng(5).lognormal(5, 0.6, 40_000), 0, 1000),
    "few": np.clip(np.random.default_rng(5).lognormal(5, 0.6, 400), 0, 1000),
    "three in each cell": np.linspace(0, 999, 192),
    "just out of the median's reach": np.repeat([90.0, 940.0], [240, 160]),
}


@pytest.mark.sample(1)
@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize(
    "shape",
    [
        "few",
        "just out of the median's reach",
        pytest.param("many", marks=pytest.mark.slow),
        pytest.param("three in each cell", marks=pytest.mark.slow),
    ],
)
def test_bars_hold_as_often_as_they_say(shape: str) -> None:
    """2,000 answers: counts below, quantiles and their ranks (also at small counts), ends, band."""
    values = SHAPES[shape]
    question = distribution("income", resolution=64)
    cells = np.histogram(values, np.linspace(0, 1000, 65))[0].tolist()
    below = np.concatenate([[0], np.cumsum(cells)])
    shares = (0.05, 0.25, 0.5, 0.9)
    truth = np.quantile(values, shares, method="inverted_cdf")
    hits: Counter[str] = Counter()
    times = 2_000
    for reading in drawn(question, cells, 8.0, times):
        found = reading.distributions.item()
        low, high = found.cdf()
        hits["below 20"] += low[20] <= below[20] <= high[20]
        low, high = found.cdf(simultaneous=True)
        hits["band"] += bool((low <= below).all() and (below <= high).all())
        for share, true in zip(shares, truth, strict=True):
            low, high = found.quantile_interval(share)
            hits[f"quantile {share}"] += low <= true <= high
            far = found.rank_error(share) * found.total
            hits[f"rank {share}"] += in_rank(found, found.quantile(share), below, share, far)
        end = found.rank_error(None) * found.total
        value, low, high = found.minimum()
        hits["min"] += low <= values.min() <= high
        hits["rank of min"] += in_rank(found, value, below, 0.0, end)
        value, low, high = found.maximum()
        hits["max"] += low <= values.max() <= high
        hits["rank of max"] += in_rank(found, value, below, 1.0, end)
    assert len(hits) == 14
    assert min(hits.values()) >= least_hits(times, 0.95), hits
    if shape in ("many", "few"):  # nor much too wide; where no rows are, steadying the counts helps
        assert hits["below 20"] <= times - least_hits(times, 0.05 * 0.7)


@pytest.mark.slow
@pytest.mark.usefixtures("settled")
def test_the_tree_beats_a_flat_histogram_and_meets_its_forecast() -> None:
    """The standard error that is quoted is the one that is seen, and half a histogram's."""
    cells = [100] * 64
    truth = np.arange(65) * 100
    gaps = np.array(
        [
            reading.distributions.item().raw - truth
            for reading in drawn(distribution("income", resolution=64), cells, 10.0, 1_500)
        ]
    )
    gap = gaps - 0.5 * gaps[:, -1:]
    seen = np.sqrt((gap**2).mean(axis=0))
    bound = bind(distribution("income", resolution=64), SCHEMA)
    tree = bound.tree
    assert tree is not None
    fit = Fit.of(tree.sizes, [100 * float(Fraction(u, tree.scale)) ** 2 for u in tree.units])
    variance, with_total = fit.spreads()
    said = np.sqrt(variance - with_total + variance[-1] / 4)
    # the same draws each time; fresh ones would miss with 1e-5 (5.2/sqrt(3,000) of 1, 65 times)
    assert (np.abs(seen / said - 1) < 0.1).all()
    assert said.max() < 0.63 * 10 * math.sqrt(64) / 2


def test_json_keeps_the_tree_and_old_questions_their_text() -> None:
    query = distribution("age", by="city").query.canonical()
    text = text_of(query)
    assert text_of(SumQuery.from_json(json.loads(text))) == text
    assert '"tree":true' in text
    assert "tree" not in text_of(histogram("city").query.canonical())


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: distribution("age", resolution=1),
        lambda: distribution("age", resolution=True),
        lambda: distribution("age", resolution=10**6),
        lambda: bind(distribution("city"), SCHEMA),
        lambda: bind(distribution("age", by="income"), SCHEMA),
        lambda: bind(
            SumQuery((lit(1),), groups=(group("age", bins=4, tree=True), group("city"))), SCHEMA
        ),
        lambda: bind(SumQuery((col("age"),), groups=(group("age", bins=4, tree=True),)), SCHEMA),
        lambda: bind(SumQuery((lit(1), lit(1)), groups=(group("age", bins=4, tree=True),)), SCHEMA),
        lambda: group("age", edges=[0, 1], tree=True),
        lambda: group("age", tree=True),
        lambda: group("age", bins=3, other=True, tree=True),
    ],
)
def test_what_makes_no_tree_is_refused(wrong) -> None:
    with pytest.raises(InvalidQuery):
        wrong()


def test_a_tree_is_never_taken_for_plain_sums() -> None:
    """Whoever knows only rows and cells must not read its values as cells."""
    assert isinstance(bind(distribution("age"), SCHEMA).sums, TreeSums)
