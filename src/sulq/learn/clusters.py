"""KMeans: Lloyd's rounds over noisy sums, started from a noisy cloud. S0.9, S4.8, V.3"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sulq.errors import InvalidQuery
from sulq.learn.checks import whole
from sulq.learn.estimator import Learner
from sulq.learn.features import Array, published
from sulq.learn.lloyd import (
    Found,
    Reach,
    ask_paper_round,
    ask_reach,
    ask_round,
    ask_sizes,
    for_cells,
    for_centres,
    moved,
    round_error,
)
from sulq.learn.moments import clip_share, find_centre
from sulq.learn.spending import Plan, Purse, Step
from sulq.learn.starts import (
    Cloud,
    Space,
    ask_axes,
    ask_moments,
    cell_count,
    gaussian_cloud,
    refined,
)
from sulq.learn.table import Table
from sulq.query.vectors import project

MOST_ROUNDS = 100
PAPER_ROUNDS = 5
MOST_AXES = 8
"""With more coordinates the start is looked for among the principal directions."""
PASSES = 2
"""Over the cells of the cloud."""
PAPER_SMALL = 2 * math.sqrt(2 * math.log(4 / 0.01))
"""A cluster under 2 z errors keeps its centre, z = sqrt(2 ln(4/beta)), beta = 1 %. S4.8"""
STILL = 1e-5
"""Centres that move less than their grid are done."""
LEAST_ERRORS = 2.0
LEAST_SIGNAL = 1.5
"""Below these a fit says nothing that one centre at the mean would not."""


@dataclass(frozen=True)
class Frame:
    """Where rounds run: y = basis (x - centre), and the first cloud there."""

    centre: Array
    basis: Array
    space: Space
    cloud: Cloud | None
    farthest: float
    lost: float = 0.0
    """What the centre's noise adds to a row's squared distance where no round corrects it."""

    def to_coordinates(self, points: Array) -> Array:
        return np.asarray(self.centre + points @ self.basis)


class KMeans(Learner):
    """Clusters of the rows: centres, sizes, and what is within them.

    `init` (centres in user units, k x features) replaces the search for a start; `rounds` the
    number of rounds. Learned: `cluster_centers_` and `centers_error_` in user units, `sizes_`,
    `shares_` (of the rows) and `inertia_` (in coordinates scaled by the bounds), each with its
    `..._error_`; `n_iter_`.
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = None,
        rounds: int | None = None,
        credits: Any = None,
        method: str = "auto",
        random_state: Any = None,
        on_noise: str = "raise",
        progress: bool | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.rounds = rounds
        self.credits = credits
        self.method = method
        self.random_state = random_state
        self.on_noise = on_noise
        self.progress = progress

    # --- plan -----------------------------------------------------------------------------------

    def _plan(self, table: Table) -> Plan:
        whole("n_clusters", self.n_clusters)
        if self.rounds is not None:
            whole("rounds", self.rounds)
        if self.init is not None:
            self._given(table)
        rounds = self._round_count(table)
        if self.method == "paper":
            return Plan("paper", (Step("rounds", table.share, rounds),))
        shares = {"reach": 0.02, "sizes": 0.03}
        wide = table.width > MOST_AXES
        if wide:
            shares |= {"centre": 0.12, "clip": 0.03, "gram": 0.4}
        if self.init is None:
            cells = 0.2 if wide else 0.36
            if self._cell_count(table, cells * table.share / PASSES):
                shares |= {"cells": cells}
            if not wide:
                shares |= {"axes": 0.18 if "cells" in shares else 0.35}
        many = {"axes": 2, "cells": PASSES}
        steps = [Step(n, s * table.share, many.get(n, 1)) for n, s in shares.items()]
        left = table.share * (1 - sum(shares.values()))
        return Plan("lloyd", (*steps, Step("rounds", left, rounds)))

    def _cell_count(self, table: Table, share: float) -> int:
        weighing = for_cells(table)
        error = round_error(table, share, weighing) / weighing.rows
        return cell_count(table.rows, error, self.n_clusters)

    def _round_count(self, table: Table) -> int:
        """More rounds as rows stand out of the noise: each halving of it is worth one."""
        if self.rounds is not None:
            return self.rounds
        if self.method == "paper":
            return PAPER_ROUNDS
        each = table.signal / self.n_clusters
        if not math.isfinite(each):
            return MOST_ROUNDS
        return int(min(MOST_ROUNDS, max(2, 1 + math.log2(1 + each / 40))))

    # --- learning -------------------------------------------------------------------------------

    def _learn(self, table: Table, purse: Purse) -> None:
        random = np.random.default_rng(self.random_state)
        if self.method == "paper":
            self._learn_as_the_paper(table, purse, random)
            return
        self._hopeless(table, purse.plan)
        wide = table.width > MOST_AXES
        frame = self._wide(table, purse, random) if wide else self._narrow(table, purse, random)
        if self.init is None:
            centres = self._start(table, purse, frame, random)
        else:
            centres = (self._given(table) - frame.centre) @ frame.basis.T
        self._centre = frame.centre
        self.start_ = frame.to_coordinates(centres)
        reach = self._reach(table, purse, frame, centres)
        weighing = for_centres(table)
        noise = round_error(table, purse.plan.share("rounds"), weighing)
        clip = reach.clip(noise * math.sqrt(frame.space.width) * self.n_clusters / table.rows)
        for done in range(purse.plan.steps[-1].rounds):
            found = ask_round(table, purse, frame.space.vector, centres, clip, weighing)
            before, centres = centres, moved(centres, found)
            self.n_iter_ = done + 1
            if np.abs(centres - before).max() < STILL:
                break
        self._judge(table, centres, found, frame.lost)
        self._conclude(table, purse, frame, centres, found, reach.all)

    def _reach(self, table: Table, purse: Purse, frame: Frame, centres: Array) -> Reach:
        """How far rows are from the start: asked, or by the cloud where the answer is too noisy."""
        shown = ask_reach(table, purse, frame.space.vector, centres, frame.farthest)
        if shown.shown >= table.rows / 2 or frame.cloud is None:
            return shown
        return Reach.of(frame.cloud.distances(centres))

    def _start(
        self, table: Table, purse: Purse, frame: Frame, random: np.random.Generator
    ) -> Array:
        assert frame.cloud is not None  # noqa: S101
        cloud = frame.cloud
        if "cells" in {step.name for step in purse.plan.steps}:
            cells = self._cell_count(table, purse.plan.share("cells"))
            for _ in range(PASSES):
                cloud = refined(table, purse, frame.space, cloud, cells, random)
        return cloud.start(self.n_clusters, random)

    def _given(self, table: Table) -> Array:
        """The start that was given, in coordinates."""
        offset, width = table.features.units
        try:
            found = (np.asarray(self.init, dtype=np.float64) - offset) / width
        except (TypeError, ValueError):
            found = np.empty(0)
        if found.shape != (self.n_clusters, table.width) or not np.isfinite(found).all():
            raise InvalidQuery(
                f"init must hold {self.n_clusters} centres of {table.width} finite numbers"
            )
        return np.clip(found, table.features.low, table.features.high)

    def _narrow(self, table: Table, purse: Purse, random: np.random.Generator) -> Frame:
        """All coordinates as they are."""
        features = table.features
        centre, basis = features.middle, np.eye(table.width)
        space = Space(features.as_vector(centre), features.low - centre, features.high - centre)
        cloud = None
        if self.init is None:
            strict = "cells" not in {step.name for step in purse.plan.steps}
            cloud = ask_axes(table, purse, space, random, strict)
            mean = cloud.mean
            centre, cloud = centre + mean, cloud.moved(-mean)
            space = Space(features.as_vector(centre), space.low - mean, space.high - mean)
        return Frame(centre, basis, space, cloud, 2 * features.radius(centre))

    def _wide(self, table: Table, purse: Purse, random: np.random.Generator) -> Frame:
        """The principal directions that stand out of the noise; all of them as it vanishes."""
        features, width = table.features, table.width
        centre = find_centre(table, purse).mean
        farthest = features.radius(centre)
        vector = features.as_vector(centre)
        reach = ask_reach(table, purse, vector, np.zeros((1, width)), farthest, "clip")
        radius = min(reach.quantile(clip_share(table)), farthest)
        gram, shift, error = ask_moments(table, purse, features.as_vector(centre, radius), radius)
        centre = np.clip(centre + shift, features.low, features.high)
        vector = features.as_vector(centre)
        spectrum, directions = np.linalg.eigh(gram.value / table.rows)
        spectrum, basis = spectrum[::-1], directions[:, ::-1].T
        edge = gram.edge / table.rows
        count = max(1, int((spectrum > 0.85 * edge).sum())) if edge else width
        # an eigenvalue of signal + noise is l + edge^2/(4 l); the rest of the floor comes off too
        seen = np.maximum(spectrum[:count], edge)
        plain = (seen + np.sqrt(np.maximum(seen**2 - edge**2, 0.0))) / 2
        spread = np.sqrt(np.maximum(plain - 0.3 * edge, 1e-9))
        cloud = gaussian_cloud(spread, table.rows, random)
        if count == width:
            cloud, basis = Cloud(cloud.points @ basis, cloud.rows), np.eye(width)
        else:
            basis = basis[:count]
            vector = project(vector, published(basis))
        ends = np.full(count, farthest)
        lost = (width - count) * error**2
        return Frame(centre, basis, Space(vector, -ends, ends), cloud, 2 * farthest, lost)

    def _learn_as_the_paper(self, table: Table, purse: Purse, random: np.random.Generator) -> None:
        """T rounds from random points of the public box, by the public bounds alone. S4.8"""
        features = table.features
        low, high = features.low, features.high
        vector = features.as_vector()
        if self.init is None:
            centres = low + random.random((self.n_clusters, table.width)) * (high - low)
        else:
            centres = self._given(table)
        self._centre, self.start_ = features.middle, centres
        for done in range(purse.plan.steps[-1].rounds):
            found = ask_paper_round(table, purse, vector, centres)
            small = found.small(PAPER_SMALL)
            if self.on_noise == "raise":  # Dwork: "output an exception", S0.9
                self._check_sizes(small, found.rows_error)
            means = found.moves / np.maximum(found.rows, 1.0)[:, None]
            centres = np.where(small[:, None], centres, np.clip(means, low, high))
            self.n_iter_ = done + 1
        self._set_centres(table, centres, np.repeat(found.errors()[:, None], table.width, axis=1))
        self._set_sizes(table, found.rows, found.rows_error)
        self.inertia_ = self.inertia_error_ = math.nan
        self._check_sizes(small, found.rows_error)

    # --- what was learned -----------------------------------------------------------------------

    def _conclude(
        self, table: Table, purse: Purse, frame: Frame, centres: Array, found: Found, reach: float
    ) -> None:
        noise = np.sqrt(np.square(frame.basis).sum(axis=0))
        self._set_centres(
            table, frame.to_coordinates(centres), found.errors()[:, None] * noise[None, :]
        )
        vector = table.features.as_vector(frame.centre)
        points = self._coordinate_centers - frame.centre
        sizes = ask_sizes(table, purse, vector, points, reach)
        self._set_sizes(table, sizes.rows, sizes.rows_error)
        self.inertia_ = float(max(sizes.inertia.sum(), 0.0))
        self.inertia_error_ = float(sizes.inertia_error * math.sqrt(len(sizes.inertia)))
        self._check_sizes(sizes.small(), sizes.rows_error)

    def _set_centres(self, table: Table, centres: Array, errors: Array) -> None:
        features = table.features
        self._coordinate_centers = np.clip(centres, features.low, features.high)
        self.cluster_centers_ = features.to_user(self._coordinate_centers)
        self.centers_error_ = errors * features.units[1]

    def _set_sizes(self, table: Table, rows: Array, error: float) -> None:
        self.sizes_ = np.maximum(rows, 0.0)
        self.sizes_error_ = np.full(self.n_clusters, error)
        total = max(float(self.sizes_.sum()), 1.0)
        self.shares_ = self.sizes_ / total
        self.shares_error_ = self.sizes_error_ / total

    def _check_sizes(self, small: NDArray[np.bool_], error: float) -> None:
        """Raise TooNoisy, or warn, if a cluster is below the size bound. Noisy sizes only. S0.9"""
        if small.any():
            remedy = "ask for fewer clusters or spend more"
            if self.on_noise == "raise":
                remedy = 'ask for fewer clusters, spend more, or take on_noise="warn"'
            self._too_noisy(f"{_named(small, error)}: its centre is a guess; {remedy}")

    def _hopeless(self, table: Table, plan: Plan) -> None:
        """Public facts alone: clusters that must be smaller than three errors of their rows."""
        weighing = for_centres(table)
        error = round_error(table, plan.share("rounds"), weighing) / weighing.rows
        each = table.rows / self.n_clusters
        if self.n_clusters > 1 and each < LEAST_ERRORS * error:
            self._too_noisy(
                f"{table.rows:,.0f} rows in {self.n_clusters} clusters are about {each:,.0f} each,"
                f" +-{error:,.0f} by the noise: worse than one centre at the mean."
                + _wanted(table, LEAST_ERRORS * error / each)
            )

    def _judge(self, table: Table, centres: Array, found: Found, lost: float) -> None:
        """Centres whose noise outweighs their distances say less than one centre at the mean."""
        if self.n_clusters == 1:
            return
        small = found.small(LEAST_ERRORS)
        rows = np.where(small, 0.0, found.rows)
        mean = rows @ centres / max(float(rows.sum()), 1.0)
        between = float(rows @ np.square(centres - mean).sum(axis=1))
        noise = float(rows @ np.square(found.errors())) * centres.shape[1] + lost * table.rows
        if between < LEAST_SIGNAL * noise:
            short = math.sqrt(LEAST_SIGNAL * noise / between) if between > 0 else 4.0
            which = f"{_named(small, found.rows_error)}, and " if small.any() else ""
            self._too_noisy(
                f"{which}the centres are closer together than their noise: worse than one centre at"
                " the mean." + _wanted(table, min(max(short, 1.5), 20.0))
            )

    # --- public rows ----------------------------------------------------------------------------

    def transform(self, rows: Any) -> Array:
        """Distances of public rows from every centre, in coordinates scaled by the bounds."""
        points = self._coordinates(rows, getattr(self, "_centre", None))
        apart = points[:, None, :] - self._coordinate_centers[None, :, :]
        return np.asarray(np.sqrt(np.square(apart).sum(axis=2)))

    def predict(self, rows: Any) -> NDArray[np.int64]:
        """The nearest centre of each public row."""
        return np.asarray(self.transform(rows).argmin(axis=1))

    def score(self, rows: Any, y: Any = None) -> float:
        """Minus the squared distances of public rows from their nearest centres, added up."""
        return -float(np.square(self.transform(rows).min(axis=1)).sum())


def _named(small: NDArray[np.bool_], error: float) -> str:
    """Which clusters are below the size bound. S0.9"""
    names = ", ".join(str(place) for place in np.flatnonzero(small))
    return f"cluster {names} holds fewer rows than its noise shows (+-{error:,.0f})"


def _wanted(table: Table, times: float) -> str:
    epsilon = float(table.oracle.promise.epsilon)
    return (
        f" About {times * table.rows:,.0f} rows or epsilon {times * epsilon:.2g} would be needed;"
        " or ask for fewer clusters or columns, or spend more credits"
    )
