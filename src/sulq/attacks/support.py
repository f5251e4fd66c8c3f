"""Which floats can occur? One person's bit from answers that its other value could not give.

Noise computed as scale * log(U), U a multiple of 2^-53, reaches few of the floats
there are (Mironov 2012), and a sum of floats rounds where its exponent says (Haney et al. 2022).
Each such trace sorts answers into a few cells; the cells are read on one half of the draws and
guessed from on the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sulq.attacks.audit import Values, all_credits, bits_question, lowest_bits, values_of
from sulq.attacks.finding import Finding, best_guess, guessed
from sulq.attacks.target import Target

DRAWS = 8_000
NEARBY = 8
"""How far from its estimate a generator's whole number may lie, by rounding."""
EIGHTHS = {  # which k mod 8 occur in log(k / 2^53), for noise below 0 and above 0
    "every k": (range(8), range(8)),
    "even k": (range(0, 8, 2), range(0, 8, 2)),
    "numpy's k": (range(0, 8, 2), (0, 1, 4, 7)),  # U + U below; 2.0 - U - U above, as it rounds
}
Cells = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Trace:
    """Answers sorted into cells, 0 up, by something that noise alone should decide."""

    name: str
    cells: Cells


def support(target: Target, *, rows: int = DRAWS, seed: int = 3) -> Finding:
    """Every bit from its own noisy answer, by size and by which floats are possible."""
    secrets = target.secrets(seed, rows)
    oracle = target.publish(secrets)
    answer = oracle.ask(bits_question(rows), credits=all_credits(oracle))
    values = values_of(answer)
    spread = float(np.max(answer.standard_error)) / math.sqrt(2)
    scales = {float(spread)}
    if answer.credits:
        scales.add(float(target.promise.credits / target.promise.epsilon / answer.credits))
    traces = [Trace("size", np.zeros(rows, dtype=np.int64)), by_lowest_bit(values)]
    traces += [by_logarithm(values, scale, kind) for scale in scales for kind in EIGHTHS]
    large = (values > 0.5).astype(np.int64)
    training = np.arange(rows) % 2 == 0
    best = max(
        ((*_guesses(2 * trace.cells + large, secrets, training), trace) for trace in traces),
        key=lambda found: found[0],
    )
    right = int((best[1] == secrets)[~training].sum())
    lowest = lowest_bits(values)
    note = (
        f"by {best[2].name}; lowest binary digits from 2^{lowest[secrets].min()} with the secret,"
        f" from 2^{lowest[~secrets].min()} without"
    )
    bound = best_guess(target.promise, answer.credits)
    tested = int((~training).sum())
    return guessed("float support", right, tested, bound, answer.credits, note)


def by_lowest_bit(values: Values) -> Trace:
    """How many binary digits an answer has below its first: a sum's rounding shows there."""
    exponents = np.frexp(values)[1]
    digits = np.clip(exponents - lowest_bits(values), 0, 63)
    return Trace("binary digits", (digits + 64 * np.clip(exponents + 8, 0, 31)).astype(np.int64))


def by_logarithm(values: Values, scale: float, kind: str) -> Trace:
    """For how many k an answer is 0, or 1, plus scale * log(k / 2^53), up to sign.

    Every k being as likely, the larger number is the better guess: no trace of this noise
    tells more.
    """
    from_zero = _logarithms(values, 0.0, scale, kind)
    from_one = _logarithms(values, 1.0, scale, kind)
    name = f"the floats that {scale:.6g} log(k/2^53) can be, {kind}"
    return Trace(name, 1 + np.sign(from_one - from_zero))


def _logarithms(values: Values, truth: float, scale: float, kind: str) -> Cells:
    found = np.zeros(len(values), dtype=np.int64)
    for place, value in enumerate(values.tolist()):
        gap = value - truth
        middle = round(math.exp(-abs(gap) / scale) * 2**53)
        for k in range(max(1, middle - NEARBY), min(2**53, middle + NEARBY) + 1):
            noise = scale * math.log(k / 2**53)  # the C library's, as samplers call it
            signed = noise if gap < 0 else -noise
            if truth + signed == value and k % 8 in EIGHTHS[kind][gap >= 0]:
                found[place] += 1
    return found


def _guesses(
    cells: Cells, secrets: NDArray[np.bool_], training: NDArray[np.bool_]
) -> tuple[float, NDArray[np.bool_]]:
    """The commoner bit of each cell on the training half; how often it is right there."""
    width = int(cells.max()) + 1
    ones = np.bincount(cells[training & secrets], minlength=width)
    zeros = np.bincount(cells[training & ~secrets], minlength=width)
    seen = ones != zeros
    table = np.where(seen, ones > zeros, np.arange(width) % 2 == 1)  # else by size alone
    guesses = table[cells]
    return float((guesses == secrets)[training].mean()), guesses
