"""FactorAnalysis: a few hidden factors and each coordinate's own variance, from the covariance."""

from __future__ import annotations

from typing import Any

import numpy as np

from sulq.learn.checks import number, whole
from sulq.learn.components import QUIET, Subspace
from sulq.learn.features import Array
from sulq.learn.spending import Plan, Purse
from sulq.learn.spread import (
    Spread,
    find_spread,
    literal_plan,
    literal_spread,
    settled_spectrum,
    spread_plan,
)
from sulq.learn.table import Table

SMALLEST = 1e-12


class FactorAnalysis(Subspace):
    """Covariance = loadings' loadings + diagonal, by maximum likelihood on a released covariance.

    Learned: `components_` (loadings, in coordinates scaled by the public bounds),
    `noise_variance_` (each coordinate's own), `mean_` (user units), `loglike_` per row, `n_iter_`.
    Nothing below the noise of a variance is said of `noise_variance_`.
    """

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        max_iter: int = 1000,
        tol: float = 1e-8,
        credits: Any = None,
        method: str = "auto",
        random_state: int | None = None,
        on_noise: str = "raise",
        progress: bool | None = None,
    ) -> None:
        super().__init__(
            n_components,
            credits=credits,
            method=method,
            random_state=random_state,
            on_noise=on_noise,
            progress=progress,
        )
        self.max_iter = max_iter
        self.tol = tol

    def _plan(self, table: Table) -> Plan:
        self._check_components(table, centred=self.method != "paper")
        whole("max_iter", self.max_iter)
        number("tol", self.tol, 0, 1, ends="[)")
        if self.method == "paper":
            return literal_plan(table, means=True)
        return spread_plan(table, "gram")

    def _learn(self, table: Table, purse: Purse) -> None:
        loud = self._loudness(table, purse)
        if self.method == "paper":
            found = literal_spread(table, purse, centred=True)
        else:
            found = find_spread(table, purse, loud, self._suffices)
        self._set_spectrum(table, found)
        self.mean_ = table.features.to_user(found.mean)
        floor = max(found.error, SMALLEST)
        self._factor(_settled(found), floor)
        scaled = self.components_ / self.noise_variance_
        inner = np.eye(self.n_components_) + scaled @ self.components_.T
        self._weights = np.asarray(np.linalg.solve(inner, scaled), dtype=np.float64)
        self._say_unspent(purse)

    def _suffices(self, seen: Spread) -> bool:
        """Every coordinate's own variance counts, too."""
        least = float(np.diag(seen.covariance).min())
        return super()._suffices(seen) and seen.error <= QUIET * max(least, 0.0)

    def _factor(self, covariance: Array, floor: float) -> None:
        """scikit-learn's iteration, on a covariance: whiten, keep what exceeds 1, own the rest."""
        width, count = len(covariance), self.n_components_
        variances = np.maximum(np.diag(covariance), floor)
        own = np.ones(width)
        before = -np.inf
        for step in range(1, self.max_iter + 1):
            self.n_iter_ = step
            root = np.sqrt(own) + SMALLEST
            values, vectors = np.linalg.eigh(covariance / np.outer(root, root))
            values = np.maximum(values[::-1], SMALLEST)
            top = vectors[:, ::-1][:, :count].T
            loadings = np.sqrt(np.maximum(values[:count] - 1, 0.0))[:, None] * top * root
            likely = float(np.log(values[:count]).sum() + values[count:].sum())
            likely = -(width * np.log(2 * np.pi) + count + likely + np.log(own).sum()) / 2
            own = np.maximum(variances - (loadings**2).sum(axis=0), floor)
            if abs(likely - before) <= self.tol * max(1.0, abs(likely)):
                break
            before = likely
        signs = np.sign(loadings[np.arange(count), np.abs(loadings).argmax(axis=1)])
        self.components_ = np.where(signs == 0, 1.0, signs)[:, None] * loadings
        self.noise_variance_ = own
        self.loglike_ = likely

    def get_covariance(self) -> Array:
        """The covariance that the factors stand for, in scaled coordinates."""
        self._check_fitted()
        return np.asarray(self.components_.T @ self.components_ + np.diag(self.noise_variance_))

    def score_samples(self, rows: Any) -> Array:
        """The log-likelihood of public rows."""
        self._check_fitted()
        moved = self._coordinates(rows, self._origin) - self._middle()
        covariance = self.get_covariance()
        _, size = np.linalg.slogdet(covariance)
        lengths = (moved * np.linalg.solve(covariance, moved.T).T).sum(axis=1)
        return np.asarray(-(moved.shape[1] * np.log(2 * np.pi) + size + lengths) / 2)

    def score(self, rows: Any) -> float:
        """The mean log-likelihood of public rows."""
        return float(self.score_samples(rows).mean())


def _settled(found: Spread) -> Array:
    """The covariance without what noise pushed its eigenvalues apart; none below 0."""
    values, vectors = found.spectrum()
    held = np.maximum(settled_spectrum(values, found.error), 0.0)
    settled: Array = (vectors.T * held) @ vectors
    return settled
