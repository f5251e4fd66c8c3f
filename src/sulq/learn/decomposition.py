"""PCA, SVD and FactorAnalysis, from one noisy Gram matrix. S4.6, S4.7, S0.8."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from sulq.errors import InvalidQuery
from sulq.kernel.query.vectors import Vector, project
from sulq.learn.budget import FitBudget, FitPlan, FitStep
from sulq.learn.covariance import (
    CLIP,
    Covariance,
    ask_gram,
    covariance_plan,
    estimate_covariance,
    find_lengths,
    literal_covariance,
    literal_loudness,
    literal_plan,
    noise_ratio,
    settled_spectrum,
    split_covariance,
    split_plan,
    unclipped_share,
)
from sulq.learn.dataset import FitData
from sulq.learn.estimator import Learner
from sulq.learn.features import Array, published
from sulq.learn.parameters import NONE, Constraints, Interval, Whole
from sulq.learn.summaries import Directions, Summary, loading_errors

CLEAR = 1.25
"""Edges of the noise from which a direction is worth showing, with a warning."""
QUIET = 0.01
"""Noise below this part of the last component wanted: nothing is gained by asking more."""


class Subspace(Learner):
    """What PCA and SVD share: how many directions, their signs, and what is done with them."""

    components_: Array
    """One direction a row, in coordinates scaled by the public bounds."""
    _weights: Array
    """What a row is multiplied with to lie in the subspace."""
    _parameter_constraints: ClassVar[Constraints] = {
        "n_components": [Whole(), Interval(0, 1), NONE],
    }

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

    # --- using what was released ------------------------------------------------------------------

    def as_vector(self) -> Vector:
        """The released coordinates of a row, for a further question or learner.

        Rows farther out than any that was seen are drawn in, so that sums stay cheap.
        """
        self._check_fitted()
        return project(
            self._features.as_vector(self._origin, self._reach), published(self._weights)
        )

    def transform(self, rows: Any) -> Array:
        """Public rows in the released subspace."""
        self._check_fitted()
        moved = self._coordinates(rows, self._origin) - self._middle()
        return np.asarray(moved @ self._weights.T)

    def inverse_transform(self, points: Any) -> Array:
        """Points of the subspace as coordinates in user units (a category: shares)."""
        self._check_fitted()
        found = np.asarray(points, dtype=np.float64)
        if found.ndim != 2 or found.shape[1] != self.n_components_:
            raise InvalidQuery(
                f"points must be an array with {self.n_components_} columns, got {found.shape}"
            )
        return self._features.to_user(found @ self.components_ + self._middle())

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        self._check_fitted()
        name = type(self).__name__.lower()
        return np.array([f"{name}{place}" for place in range(self.n_components_)], dtype=object)

    def _directions(self, sizes: Array, **more: Any) -> Directions:
        return Directions(
            name=type(self).__name__,
            keys=tuple(self._features.keys),
            components=self.components_,
            sizes=np.asarray(sizes),
            **more,
        )

    def _turned(self) -> Array:
        return loading_errors(self.components_error_, self._features.width)

    def _middle(self) -> Array:
        return np.zeros(self._features.width) if self._origin is None else self._origin

    # --- learning ---------------------------------------------------------------------------------

    def _check_components(self, table: FitData, centred: bool) -> None:
        width = table.features.free.shape[1] if centred else table.width
        if width == 0:
            raise InvalidQuery("categories of one value never differ: nothing to learn from")
        wanted = self.n_components
        if wanted is None:
            return
        if wanted <= width:
            return
        raise InvalidQuery(
            f"n_components must be 1 to {width} (the coordinates; a category has one less than"
            " values), a share between 0 and 1, or None for all above the noise;"
            f" got {wanted!r:.40}"
        )

    def _count(self, variances: Array, total: float, above: int) -> int:
        """How many components were asked for."""
        wanted = self.n_components
        if wanted is None:
            return max(above, 1)
        if isinstance(wanted, float):
            reached = np.cumsum(np.maximum(variances, 0)) / max(total, 1e-300)
            needed = int(np.searchsorted(reached, wanted - 1e-12)) + 1
            return max(1, min(needed, above))
        return int(wanted)

    def _loudness(self, table: FitData, budget: FitBudget) -> float:
        """Rows all along one line would not show: raise before anything is spent on them."""
        literal = self.method == "paper"
        loud = (
            literal_loudness(table, budget) if literal else noise_ratio(table, budget, budget.left)
        )
        if loud > 1:
            self._too_noisy(
                f"{table.rows:,.0f} rows cannot show a direction among {table.width} coordinates at"
                f" this budget; {_remedy(table, loud)} are the least that could"
            )
        return loud

    def _set_spectrum(self, table: FitData, found: Covariance) -> Array:
        """Eigenvectors, what lies along them, and what of it is noise."""
        values, vectors = found.spectrum()
        literal = self.method_ == "paper"
        variances = np.maximum(values, 0) if literal else settled_spectrum(values, found.error)
        turned = _turned(variances, found.error)
        sure = values - found.feigned(vectors) > found.edge if found.error else values < np.inf
        above = int(sure.sum())
        order = np.concatenate([np.flatnonzero(sure), np.flatnonzero(~sure)])
        values, vectors, variances = values[order], vectors[order], variances[order]
        total = max(float(np.trace(found.covariance)), 0.0)
        count = self._count(variances, total, above)
        signs = np.sign(vectors[np.arange(len(vectors)), np.abs(vectors).argmax(axis=1)])
        self.components_ = self._weights = (vectors * signs[:, None])[:count]
        self.n_components_ = count
        self.noise_edge_ = found.edge
        self.components_error_ = turned[order][:count]
        self._origin: Array | None = found.mean
        self._reach = None if found.clip is None else found.reach
        self._judge(table, found, values, above)
        return np.asarray(np.maximum(variances[:count], 0.0))

    def _judge(self, table: FitData, found: Covariance, values: Array, above: int) -> None:
        seen = f"noise alone reaches a variance of {found.edge:.3g}"
        if above == 0:
            least = found.length_squared / len(values)
            need = _remedy(table, found.edge / least) if least > 0 else "far more rows"
            said = f"the largest variance seen is {values[0]:.3g}, {seen}; {need} would surely do"
            if values[0] > CLEAR * found.edge:  # the centre's error may be what is seen: a doubt
                self._doubt(f"no direction is sure: {said}")
            else:
                self._too_noisy(f"no direction stands out: {said}")
        elif above < self.n_components_:
            which = f"components {above + 1} to {self.n_components_}"
            if above + 1 == self.n_components_:
                which = f"component {above + 1}"
            self._doubt(f"{which} cannot be told from noise ({seen}); n_components={above} can")

    def _suffices(self, seen: Covariance) -> bool:
        """The noise of the look is far below the last component wanted."""
        if seen.error == 0:
            return True
        values, _ = seen.spectrum()
        wanted = self._count(values, float(values.sum()), len(values))
        return seen.edge < QUIET * float(values[wanted - 1])

    def _say_unspent(self, budget: FitBudget) -> None:
        if budget.left > 0.2 and self.method_ != "paper":
            self._note(f"the first look sufficed: {budget.left:.0%} of the credits were not spent")


class PCA(Subspace):
    """Principal component analysis: the directions along which the rows vary most.

    Parameters
    ----------
    n_components : int, float or None
        How many components; a share of the variance between 0 and 1; or None for all that stand
        above the noise.
    credits, method, random_state, on_noise, progress
        As for every learner; see `Learner`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, coordinates)
        One direction a row, in coordinates scaled by the public bounds.
    components_error_ : ndarray
        The sine of the angle by which noise may have turned each direction.
    explained_variance_, explained_variance_ratio_ : ndarray
        The variance of the rows along each direction, without the noise, and its share of all.
    explained_variance_error_ : ndarray
        The standard error of the variances.
    singular_values_ : ndarray
        The singular values of the centred table.
    mean_, mean_error_ : ndarray
        The mean of each coordinate in user units, and its standard error.
    noise_edge_ : float
        The largest variance that noise alone would show.
    n_components_ : int
        The number of components.

    Notes
    -----
    One noisy Gram matrix is asked, around a noisy mean and clipped to a noisy radius
    (S0.8, S4.7). A missing value counts as the middle of its bounds, later as the mean.

    Examples
    --------
    >>> from sulq.learn import PCA
    >>> model = PCA(n_components=1, credits=50).fit(db, ["age", "income"])
    >>> model.transform({"age": [40, 70], "income": [30_000, 90_000]}).shape    # public rows
    (2, 1)
    """

    def _plan(self, table: FitData) -> FitPlan:
        self._check_components(table, centred=self.method != "paper")
        if self.method == "paper":
            return literal_plan(table, means=True)
        return covariance_plan(table, "gram") if table.joint_rows else split_plan(table)

    def _learn(self, table: FitData, budget: FitBudget) -> None:
        loud = self._loudness(table, budget) if table.joint_rows else 0.0
        if self.method == "paper":
            found = literal_covariance(table, budget, centred=True)
        elif not table.joint_rows:
            found = split_covariance(table, budget)
        else:
            found = estimate_covariance(table, budget, loud, self._suffices)
        variances = self._set_spectrum(table, found)
        count = self.n_components_
        total = max(float(np.trace(found.covariance)), float(variances.sum()), 1e-300)
        self.mean_ = table.features.to_user(found.mean)
        self.mean_error_ = found.mean_error * table.features.units[1]
        self.explained_variance_ = variances
        self.explained_variance_error_ = np.full(count, found.error)
        self.explained_variance_ratio_ = variances / total
        self.singular_values_ = np.sqrt(variances * max(found.rows - 1, 1.0))
        self._say_unspent(budget)

    def _summary(self) -> Summary:
        return self._directions(
            self.explained_variance_,
            errors=self._turned(),
            sizes_error=self.explained_variance_error_,
            noise_edge=float(self.noise_edge_),
            ratios=self.explained_variance_ratio_,
            facts={
                "explained_variance_ratio": [float(x) for x in self.explained_variance_ratio_],
                "noise_edge": float(self.noise_edge_),
            },
        )


class SVD(Subspace):
    """The leading right singular vectors of the table of scaled coordinates, not centred.

    Parameters
    ----------
    n_components : int, float or None
        How many directions; a share of the sum of squares between 0 and 1; or None for all that
        stand above the noise.
    credits, method, random_state, on_noise, progress
        As for every learner; see `Learner`.

    Attributes
    ----------
    components_, components_error_ : ndarray
        One direction a row, and the sine of the angle by which noise may have turned it.
    singular_values_, singular_values_error_ : ndarray
        Singular values without the noise, and their standard errors.
    noise_edge_ : float
        The largest mean square that noise alone would show.
    n_components_ : int
        The number of directions.

    Notes
    -----
    One noisy Gram matrix of rows that are clipped to a noisy radius (S4.6).

    Examples
    --------
    >>> from sulq.learn import SVD
    >>> SVD(n_components=2, credits=50).fit(db, ["age", "income"]).singular_values_.shape
    (2,)
    """

    def _plan(self, table: FitData) -> FitPlan:
        self._check_components(table, centred=False)
        if self.method == "paper":
            return literal_plan(table, means=False)
        base = table.share
        return FitPlan("gram", (FitStep("clip", CLIP * base), FitStep("gram", (1 - CLIP) * base)))

    def _learn(self, table: FitData, budget: FitBudget) -> None:
        loud = self._loudness(table, budget)
        if self.method == "paper":
            found = literal_covariance(table, budget, centred=False)
        else:
            found = self._second_moments(table, budget, unclipped_share(loud))
        squares = self._set_spectrum(table, found)
        self._origin = None
        self.singular_values_ = np.sqrt(squares * found.rows)
        slopes = np.maximum(2 * self.singular_values_, 1e-300)
        errors = found.error * found.rows / slopes
        self.singular_values_error_ = np.minimum(errors, math.sqrt(found.error * found.rows))

    def _summary(self) -> Summary:
        return self._directions(
            self.singular_values_,
            errors=self._turned(),
            sizes_error=self.singular_values_error_,
            size_name="singular value",
            facts={"singular_values": [float(x) for x in self.singular_values_]},
        )

    def _second_moments(self, table: FitData, budget: FitBudget, share: float) -> Covariance:
        lengths = find_lengths(table, budget, None)
        radius = lengths.quantile(share)
        gram = ask_gram(table, budget, table.features.as_vector(None, radius))
        lengthened = lengths.mean_square() / lengths.mean_square(radius)
        scale = lengthened / table.rows
        return Covariance(
            np.zeros(table.width),
            0.0,
            gram.value * scale,
            np.eye(table.width),
            gram.error * scale,
            table.rows,
            lengths.quantile(1.0),
            radius,
            lengthened,
            lengths.mean_square(),
        )


def _turned(variances: Array, error: float) -> Array:
    """The sine of the angle to the true direction, to first order: s / gap, over all gaps."""
    if error <= 0:
        return np.zeros(len(variances))
    gaps = variances[:, None] - variances[None, :]
    np.fill_diagonal(gaps, math.inf)
    squares = (error**2 / 2 / np.maximum(gaps**2, 1e-300)).sum(axis=1)
    turned: Array = np.minimum(1.0, np.sqrt(squares))
    return turned


def _remedy(table: FitData, factor: float) -> str:
    """What would make the noise smaller by a factor."""
    epsilon = float(table.oracle.promise.epsilon)
    return f"{table.rows * factor:,.0f} rows, or epsilon {epsilon * factor:.3g},"


# FactorAnalysis: a few hidden factors and each coordinate's own variance, from the covariance.


SMALLEST = 1e-12


class FactorAnalysis(Subspace):
    """Factor analysis: a few hidden factors, and a variance of its own for each coordinate.

    Parameters
    ----------
    n_components : int, float or None
        How many factors; a share of the variance; or None for all that stand above the noise.
    max_iter : int
        The most iterations of the maximum-likelihood search. They ask nothing.
    tol : float
        Stop when the log-likelihood of a row grows by less.
    credits, method, random_state, on_noise, progress
        As for every learner; see `Learner`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, coordinates)
        Loadings in coordinates scaled by the public bounds.
    n_components_ : int
        The number of factors.
    components_error_, noise_edge_ : ndarray and float
        Of the principal directions that the search starts from: the sine of the angle by which
        noise may have turned each, and the largest variance that noise alone would show.
    noise_variance_ : ndarray
        The variance of each coordinate that no factor explains, where noise lets it be told.
    mean_ : ndarray
        The mean of each coordinate in user units.
    loglike_ : float
        The log-likelihood of a row.
    n_iter_ : int
        The number of iterations.

    Notes
    -----
    Maximum likelihood on a covariance that was released once.

    Examples
    --------
    >>> from sulq.learn import FactorAnalysis
    >>> FactorAnalysis(n_components=1, credits=50).fit(db, ["age", "income", "blood"]).mean_.shape
    (5,)
    """

    _parameter_constraints: ClassVar[Constraints] = {
        "max_iter": [Whole()],
        "tol": [Interval(0, 1, "[)")],
    }

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

    def _plan(self, table: FitData) -> FitPlan:
        self._check_components(table, centred=self.method != "paper")
        if self.method == "paper":
            return literal_plan(table, means=True)
        return covariance_plan(table, "gram")

    def _summary(self) -> Summary:
        sizes = (np.asarray(self.components_) ** 2).sum(axis=1)
        edge = float(self.noise_edge_)
        return self._directions(sizes, errors=None, noise_edge=edge, word="factor")

    def _learn(self, table: FitData, budget: FitBudget) -> None:
        loud = self._loudness(table, budget)
        if self.method == "paper":
            found = literal_covariance(table, budget, centred=True)
        else:
            found = estimate_covariance(table, budget, loud, self._suffices)
        self._set_spectrum(table, found)
        self.mean_ = table.features.to_user(found.mean)
        floor = max(found.error, SMALLEST)
        self._factor(_settled(found), floor)
        scaled = self.components_ / self.noise_variance_
        inner = np.eye(self.n_components_) + scaled @ self.components_.T
        self._weights = np.asarray(np.linalg.solve(inner, scaled), dtype=np.float64)
        self._say_unspent(budget)

    def _suffices(self, seen: Covariance) -> bool:
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


def _settled(found: Covariance) -> Array:
    """The covariance without what noise pushed its eigenvalues apart; none below 0."""
    values, vectors = found.spectrum()
    held = np.maximum(settled_spectrum(values, found.error), 0.0)
    settled: Array = (vectors.T * held) @ vectors
    return settled
