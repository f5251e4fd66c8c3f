"""Slopes from noisy moments: shrunk, made positive, refined, with their noise carried along."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sulq.learn.features import Array
from sulq.learn.moments import Gram

FIRST_RIDGE = 0.75
"""Of the noise's spectral edge, for the first solution."""
SMALLEST = 1e-9
"""Eigenvalues below this part of the largest are rounding: collinear or constant columns."""


def shrunk_gram(gram: Gram) -> Array:
    """A noisy Gram matrix drawn towards a multiple of the identity (Ledoit and Wolf).

    The share kept is 1 - |noise|^2 / |G - m I|^2; the noise is known, so nothing is guessed.
    """
    width = len(gram.value)
    mean = max(float(np.trace(gram.value)) / width, gram.error)
    apart = gram.value - mean * np.eye(width)
    noise = gram.error**2 * (width + width * (width - 1) / 2)
    size = float((apart**2).sum())
    kept = max(0.0, 1.0 - noise / size) if size > 0 else 0.0
    return np.asarray(mean * np.eye(width) + kept * apart)


def positive(matrix: Array) -> Array:
    """The nearest matrix without negative eigenvalues."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


@dataclass
class Slopes:
    """Coefficients, their noise covariance, and the step that improves them."""

    value: Array
    noise: Array
    gram: Array
    step: Array
    penalty: Array

    @classmethod
    def first(cls, gram: Gram, cross: Array, error: float, penalty: Array) -> Slopes:
        """Ridge on the shrunk Gram matrix, as strong as the noise's spectral edge."""
        width = len(cross)
        shrunk = positive(shrunk_gram(gram))
        edge = gram.error * math.sqrt(width)
        inverse = _inverse(shrunk, FIRST_RIDGE * edge, penalty)
        value = inverse @ cross
        loud = error**2 + gram.error**2 * float(value @ value) / 2
        step = _inverse(positive(gram.value), gram.error * math.sqrt(width + 1), penalty)
        return cls(value, loud * inverse @ inverse, shrunk, step, penalty)

    def refined(self, slope: Array, error: float) -> Slopes:
        """One Newton step along the noisy sum of row times residual."""
        value = self.value + self.step @ (slope - self.penalty * self.value)
        left = np.eye(len(value)) - self.step @ (self.gram + np.diag(self.penalty))
        noise = left @ self.noise @ left.T + error**2 * self.step @ self.step
        return Slopes(value, noise, self.gram, self.step, self.penalty)

    def explained(self, rows: float) -> float:
        """The variance that the prediction explains, less what its noise spoils."""
        signal = float(self.value @ self.gram @ self.value)
        return (signal - 2 * float(np.trace(self.gram @ self.noise))) / rows


def _inverse(gram: Array, ridge: float, penalty: Array) -> Array:
    """The inverse with a ridge; 0 in directions no row moves along, as least squares has it."""
    whole = gram + ridge * np.eye(len(gram)) + np.diag(penalty)
    return np.asarray(np.linalg.pinv(whole, rcond=SMALLEST, hermitian=True))


def above_noise(gram: Gram, cross: Array, error: float) -> float:
    """By how many deviations the cross-moment passes its noise, in the metric of the rows."""
    if error <= 0:
        return math.inf
    width = len(cross)
    inverse = _inverse(
        positive(shrunk_gram(gram)), gram.error * math.sqrt(width) / 2, np.zeros(width)
    )
    expected = float(np.trace(inverse))
    deviation = math.sqrt(2 * float((inverse**2).sum()))
    return (float(cross @ inverse @ cross) / error**2 - expected) / deviation
