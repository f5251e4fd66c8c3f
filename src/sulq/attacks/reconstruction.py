"""Reconstruction (Dinur-Nissim 2003): many random sums, then the table that fits them best.

With noise below sqrt(n) nearly every bit comes out; under the promise none beyond Phi(mu/2) (TB.1).

The same through covariances (Huth et al. 2023): where a system lets analysts make columns whose
values they know, and gives covariances with a private one, as many of them as rows give it away.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sulq.answers.oracle import Oracle
from sulq.attacks.asking import Floats, most_parts, part_of, right_bits, signed, signs
from sulq.attacks.audit import all_credits
from sulq.attacks.result import AttackResult, best_guess, guessed
from sulq.attacks.target import ROW, SECRET, Target
from sulq.errors import InvalidQuery, Refused
from sulq.kernel.accounting.calibration import calibrate
from sulq.kernel.query.expressions import col, hashed
from sulq.kernel.query.sum_query import MOST_TERMS, SumQuery, outer
from sulq.kernel.query.vectors import cells, columns, concat

SQUARES, LINEAR, MEAN = "least squares", "linear program", "posterior mean"
SIGMAS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 166.0)
PEOPLE, QUESTIONS = 1000, 4000


def reconstruction(
    target: Target,
    method: str = SQUARES,
    questions: int | None = None,
    people: int | None = None,
    both_halves: bool = False,
    seed: int = 0,
) -> AttackResult:
    """The bits of the first rows from random subsets of them, for the whole promise.

    Subsets of about half by `hashed`, as many terms of few questions. `both_halves` adds the other
    half with a minus: the same price, twice the information.
    """
    people = min(target.rows, people or PEOPLE)
    wanted = questions or min(target.promise.credits, QUESTIONS)
    secrets = target.secrets(seed)
    oracle = target.publish(secrets)
    matrix, sums, sigma, paid = _asked(target, oracle, wanted, people, both_halves)
    bound = best_guess(target.promise, paid)
    name = f"reconstruction, {method}" + (", signs" if both_halves else "")
    if not len(sums):
        return guessed(name, 0, 0, bound, paid)
    bits = fitted(matrix, sums, method, sigma)
    note = f"{len(sums)} sums with noise {sigma:.3g}; sqrt(n) is {math.sqrt(people):.3g}"
    return guessed(name, right_bits(bits, secrets), people, bound, paid, note)


def _asked(
    target: Target, oracle: Oracle, wanted: int, people: int, both_halves: bool
) -> tuple[Floats, Floats, float, Fraction]:
    wanted = most_parts(target.promise, wanted)
    each = part_of(target.promise, wanted)
    where = col(SECRET) if people == target.rows else col(SECRET) & (col(ROW) < people)
    heard: list[Floats] = []
    paid, sigma = Fraction(0), 0.0
    for start in range(0, wanted, MOST_TERMS):
        seeds = range(start, min(wanted, start + MOST_TERMS))
        terms = tuple(signed(s) if both_halves else hashed(ROW, s) for s in seeds)
        price = None if each is None else each * len(seeds)
        try:
            answer = oracle.ask(SumQuery(terms, where), credits=price)
        except Refused:
            break
        heard.append(np.ravel(np.asarray(answer.value, dtype=np.float64)))
        paid += answer.credits
        sigma = float(np.max(answer.standard_error))
    sums = np.concatenate(heard) if heard else np.empty(0)
    matrix = signs(oracle, range(len(sums)), people).astype(np.float64)
    return matrix if both_halves else (matrix + 1) / 2, sums, sigma, paid


def covariances(target: Target, people: int = 200, seed: int = 0) -> AttackResult:
    """The bits of the first rows from their covariances with columns that the attacker knows.

    `outer` of as many hashed bits of the public row number as there are rows, and of the secret.
    """
    people = min(target.rows, people)
    secrets = target.secrets(seed)
    oracle = target.publish(secrets)
    known = concat(*(cells(hashed(ROW, seed) == 1) for seed in range(people)))
    question = outer(known, columns([SECRET]), col(ROW) < people)
    name = "covariances with known columns"
    try:
        answer = oracle.ask(question, credits=all_credits(oracle))
    except (InvalidQuery, Refused):  # coarse laws answer counts only
        return guessed(name, 0, 0, best_guess(target.promise, 0), Fraction(0))
    sums = np.ravel(np.asarray(answer.value, dtype=np.float64))
    sigma = float(np.max(answer.standard_error))
    matrix = (signs(oracle, range(people), people).astype(np.float64) + 1) / 2
    right = right_bits(fitted(matrix, sums, MEAN, sigma), secrets)
    note = f"{people} covariances with noise {sigma:.3g}"
    bound = best_guess(target.promise, answer.credits)
    return guessed(name, right, people, bound, answer.credits, note)


def fitted(matrix: Floats, sums: Floats, method: str = SQUARES, sigma: float = 1.0) -> Floats:
    """Numbers in [0, 1] whose subset sums come near the noisy ones."""
    if method == SQUARES:
        return _least_squares(matrix, sums)
    if method == LINEAR:
        return _linear_program(matrix, sums)
    if method == MEAN:
        return _posterior_mean(matrix, sums, sigma)
    raise InvalidQuery(f"method must be {SQUARES!r}, {LINEAR!r} or {MEAN!r}, got {method!r:.40}")


def _least_squares(matrix: Floats, sums: Floats) -> Floats:
    """min |Ax - y|^2 over the box [0, 1]^n."""

    def loss(x: Floats) -> tuple[float, Floats]:
        gap = matrix @ x - sums
        return 0.5 * float(gap @ gap), matrix.T @ gap

    people = matrix.shape[1]
    options = {"maxiter": 3000, "maxfun": 10_000}
    start, box = np.full(people, 0.5), [(0.0, 1.0)] * people
    found = _optimize().minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=box, options=options
    )
    return np.asarray(found.x, dtype=np.float64)


def _linear_program(matrix: Floats, sums: Floats) -> Floats:
    """min sum |Ax - y| over the box: few answers, however wrong, do not mislead it."""
    questions, people = matrix.shape
    eye = np.eye(questions)
    found = _optimize().linprog(
        np.concatenate([np.zeros(people), np.ones(2 * questions)]),
        A_eq=np.hstack([matrix, eye, -eye]),
        b_eq=sums,
        bounds=[(0, 1)] * people + [(0, None)] * (2 * questions),
        method="highs",
    )
    return np.asarray(found.x[:people], dtype=np.float64)


def _posterior_mean(matrix: Floats, sums: Floats, sigma: float) -> Floats:
    """The best linear guess from fair bits and Gaussian noise: near the optimum where it is low."""
    questions = len(sums)
    spread = matrix @ matrix.T / 4 + max(sigma, 1e-6) ** 2 * np.eye(questions)
    middle = sums - matrix.sum(axis=1) / 2
    return np.asarray(0.5 + matrix.T @ np.linalg.solve(spread, middle) / 4, dtype=np.float64)


def _optimize() -> Any:
    try:
        from scipy import optimize
    except ImportError as missing:
        raise ImportError("reconstruction needs SciPy: pip install 'sulq[learn]'") from missing
    return optimize


# --- the chart ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Point:
    """What is recovered at one size of noise, and the most that could be."""

    sigma: float
    recovered: float
    error: float
    optimum: float


@dataclass(frozen=True, slots=True)
class Sweep:
    """Recovered share against noise; `threshold` is sqrt(n), `stands` the promise's own noise."""

    rows: int
    questions: int
    method: str
    points: tuple[Point, ...]
    threshold: float
    stands: float

    def to_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "questions": self.questions,
            "method": self.method,
            "sqrt_n": self.threshold,
            "stands": self.stands,
            "points": [
                {
                    "sigma": point.sigma,
                    "recovered": point.recovered,
                    "standard_error": point.error,
                    "optimum": point.optimum,
                }
                for point in self.points
            ],
        }


def optimum(sigma: float, questions: int) -> float:
    """Phi(mu/2), mu = sqrt(T/2) / sigma: half of the subsets hold a given row (TB.1)."""
    return 0.5 * math.erfc(-math.sqrt(questions / 2) / sigma / math.sqrt(8))


def sweep(
    target: Target,
    questions: int | None = None,
    sigmas: Sequence[float] = SIGMAS,
    method: str = SQUARES,
    tables: int = 3,
    seed: int = 0,
) -> Sweep:
    """The attack on fictional rows with noise of every size, beside where the promise stands.

    The noise is the sweep's own; nothing is asked. For the chart of `sulq attack`.
    """
    people = min(target.rows, PEOPLE)
    wanted = questions or min(target.promise.credits, QUESTIONS)
    random = np.random.default_rng(seed)
    points = []
    for sigma in sigmas:
        right = 0
        for _ in range(tables):
            matrix: Floats = random.integers(0, 2, (wanted, people)).astype(np.float64)
            secrets: NDArray[np.bool_] = random.integers(0, 2, people).astype(np.bool_)
            sums = matrix @ secrets + random.normal(0, sigma, wanted)
            right += right_bits(fitted(matrix, sums, method, sigma), secrets)
        trials = tables * people
        share = right / trials
        error = math.sqrt(max(share * (1 - share), 1 / trials) / trials)
        points.append(Point(float(sigma), share, error, optimum(sigma, wanted)))
    stands = calibrate(target.promise).count_error(Fraction(target.promise.credits, wanted))
    return Sweep(people, wanted, method, tuple(points), math.sqrt(people), stands)
