"""PCA and SVD: directions of most spread, from one noisy Gram matrix. S4.6, S4.7, S0.8."""

from __future__ import annotations

from typing import Any

import numpy as np

from sulq.errors import InvalidQuery
from sulq.learn.estimator import Learner
from sulq.learn.features import Array, published
from sulq.learn.moments import ask_gram, find_centre, find_radius
from sulq.learn.spending import Plan, Purse, Step
from sulq.learn.table import Table
from sulq.query.vector_values import Vector
from sulq.query.vectors import project


class PCA(Learner):
    """Principal components of the rows, in coordinates scaled by their public bounds."""

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        credits: Any = None,
        method: str = "auto",
        random_state: int | None = None,
        on_noise: str = "raise",
        progress: bool | None = None,
    ) -> None:
        self.n_components = n_components
        self.credits = credits
        self.method = method
        self.random_state = random_state
        self.on_noise = on_noise
        self.progress = progress

    def _plan(self, table: Table) -> Plan:
        rest = table.share
        return Plan(
            "gram",
            (Step("centre", 0.2 * rest), Step("clip", 0.05 * rest), Step("gram", 0.75 * rest)),
        )

    def _learn(self, table: Table, purse: Purse) -> None:
        centre = find_centre(table, purse)
        radius = find_radius(table, purse, centre.mean)
        gram = ask_gram(table, purse, table.features.as_vector(centre.mean, radius))
        values, vectors = np.linalg.eigh(gram.value / centre.rows)
        order = np.argsort(-values)
        count = int(self.n_components or table.width)
        self._centre = centre.mean
        self.mean_ = table.features.to_user(centre.mean)
        self.components_ = vectors.T[order][:count]
        self.explained_variance_ = values[order][:count]
        self.n_components_ = count
        self.noise_edge_ = gram.edge / centre.rows

    def as_vector(self) -> Vector:
        """The released coordinates of a row, for a further question or learner."""
        if not hasattr(self, "components_"):
            raise InvalidQuery("PCA has not learned yet: call fit first")
        return project(self._features.as_vector(self._centre), published(self.components_))

    def transform(self, rows: Any) -> Array:
        """Public rows in the released subspace."""
        moved = self._coordinates(rows, self._centre) - self._centre
        return np.asarray(moved @ self.components_.T)
