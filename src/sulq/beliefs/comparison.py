"""One promise, every published amount of noise, side by side: for `sulq explain-noise`.

Figures for people, not for the ledger: floats, good to about 1e-4, never below what is needed
where the row says "valid". Proofs: docs/proofs/accounting.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

from sulq.errors import InvalidQuery
from sulq.kernel.accounting.calibration import answer_loss, binomial_coins, huber_law
from sulq.kernel.accounting.gaussian import (
    CONTEXT,
    Exact,
    decimal,
    gaussian_mu,
    rounded_up,
    tail_delta,
    tail_mu,
)
from sulq.kernel.accounting.loss import composed_delta
from sulq.kernel.noise.laws import DiscreteLaplace
from sulq.kernel.schema.promise import Numeric, Promise

_SHRINK = (math.sqrt(5) - 1) / 2


def simple_zcdp_epsilon(rho: Exact, delta: Exact) -> float:
    """rho + 2 sqrt(rho ln(1/delta)), rounded up. TB.3"""
    with localcontext(CONTEXT):
        spent = decimal(rho)
        return rounded_up(spent + 2 * (spent * -decimal(delta).ln()).sqrt())


def zcdp_delta(rho: Exact, epsilon: Exact) -> float:
    """inf over a > 1 of e^{(a-1)(a rho - eps)} (1 - 1/a)^a / (a - 1), rounded up. TB.3"""
    r, e = float(rho), float(epsilon)
    order = _best_order(
        lambda a: (a - 1) * (a * r - e) + a * math.log1p(-1 / a) - math.log(a - 1), r
    )
    with localcontext(CONTEXT):
        spent, loss, a = decimal(rho), decimal(epsilon), decimal(order)
        power = (a - 1) * (a * spent - loss) + a * (1 - 1 / a).ln()
        return min(1.0, rounded_up(power.exp() / (a - 1)))


def zcdp_epsilon(rho: Exact, delta: Exact) -> float:
    """The epsilon of `zcdp_delta` at delta, for the best order, rounded up. TB.3"""
    r = float(rho)
    with localcontext(CONTEXT):
        log_delta = decimal(delta).ln()
    l = float(-log_delta)  # noqa: E741  (the sheet's name)
    order = _best_order(
        lambda a: a * r + (l + a * math.log1p(-1 / a) - math.log(a - 1)) / (a - 1), r
    )
    with localcontext(CONTEXT):
        spent, a = decimal(rho), decimal(order)
        loss = a * spent + (a * (1 - 1 / a).ln() - (a - 1).ln() - log_delta) / (a - 1)
        return rounded_up(max(loss, Decimal(0)))


def zcdp_rho(epsilon: Exact, delta: Exact) -> float:
    """The largest rho with zcdp_epsilon(rho, delta) <= epsilon, rounded down (report only)."""
    low, high = 0.0, 1.0
    while zcdp_epsilon(high, delta) <= epsilon:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if zcdp_epsilon(middle, delta) <= epsilon else (low, middle)
    return low


def _best_order(objective: Callable[[float], float], rho: float) -> float:
    """Golden-section search for the order a > 1, on a logarithmic scale of a - 1."""
    low, high = math.log(1e-6), math.log(1e6 / min(1.0, rho))
    inner, outer = high - _SHRINK * (high - low), low + _SHRINK * (high - low)
    at_inner, at_outer = objective(1 + math.exp(inner)), objective(1 + math.exp(outer))
    while high - low > 1e-9:
        if at_inner <= at_outer:
            high, outer, at_outer = outer, inner, at_inner
            inner = high - _SHRINK * (high - low)
            at_inner = objective(1 + math.exp(inner))
        else:
            low, inner, at_inner = inner, outer, at_outer
            outer = low + _SHRINK * (high - low)
            at_outer = objective(1 + math.exp(outer))
    return 1 + math.exp((low + high) / 2)


# Zero-concentrated privacy: rho = mu^2 / 2, and what it means as (epsilon, delta).
#
# The search for the best order is in floats; any order is valid, and the value at the order found
# is computed in decimals and rounded up. Proofs: docs/proofs/accounting.md.


FINE_LAPLACE = 8
"""Grid steps per unit at which the discrete Laplace stands for the continuous one."""


@dataclass(frozen=True, slots=True)
class NoiseRow:
    """One way to choose the noise: its variance per unit question, and whether to believe it."""

    name: str
    variance: float
    guarantees: str
    verdict: str

    @property
    def standard_deviation(self) -> float:
        return math.sqrt(self.variance)


def explain_noise(
    epsilon: Numeric, delta: Numeric, queries: int, rows: int = 1_000_000
) -> list[NoiseRow]:
    """Every formula for `queries` unit questions at a total of (epsilon, delta)."""
    noise = "gaussian" if Promise(1, delta).delta > 0 else "laplace"
    promise = Promise(epsilon, delta, queries, noise)
    pure = _pure(promise.epsilon, queries)
    if noise == "laplace":
        return [pure]
    exact = promise.epsilon, promise.delta, queries
    return [*published(*exact, rows), *_gaussian(*exact), pure, *_exact_accounts(*exact)]


def published(epsilon: Fraction, delta: Fraction, queries: int, rows: int) -> Iterator[NoiseRow]:
    """What the papers print, and the repair."""
    e, log = float(epsilon), -_log(delta)
    printed = 2 * queries * log / e**2 if e <= 2 * log else 2 * queries / e  # S4.1
    tail = tail_delta(math.sqrt(queries / printed), epsilon)
    yield NoiseRow(
        "Blum et al. 2005, Theorem 1, as printed",
        printed,
        "Pr[confidence gain > epsilon] <= delta",
        f"invalid here: the tail is {tail:.3g}"
        if tail > delta
        else "holds here for two-point beliefs, though its proof does not give it",
    )
    repaired = queries * (math.sqrt(log + e) + math.sqrt(log)) ** 2 / (2 * e**2)  # S4.1
    yield NoiseRow(
        "Theorem 1, repaired by its own proof",
        repaired,
        "Pr[confidence gain > epsilon] <= delta, any beliefs",
        "valid" if e <= 3 * log else "not proved for epsilon > 3 ln(1/delta)",
    )
    yield NoiseRow(
        f"Dwork's ln^6 n coins, n = {rows}",
        queries / e**2 * math.log(rows) ** 6 / 4,  # S0.3, variance R/4 by S0.4
        "confidence changes by at most epsilon, up to a negligible chance",
        "asymptotic: valid for large n, far more than needed",
    )


def _gaussian(epsilon: Fraction, delta: Fraction, queries: int) -> Iterator[NoiseRow]:
    e, log = float(epsilon), -_log(delta)
    private = "(epsilon, delta)-privacy"
    simple = queries * (math.sqrt(log + e) + math.sqrt(log)) ** 2 / (2 * e**2)  # TB.3
    yield NoiseRow("zCDP, simple conversion", simple, private, "valid")
    tight = queries / (2 * zcdp_rho(epsilon, delta))  # TB.3
    yield NoiseRow("zCDP, tight conversion", tight, private, "valid, also for vectors (TB.4)")
    tail = float(queries / tail_mu(epsilon, delta) ** 2)  # TB.2
    yield NoiseRow(
        "Gaussian, exact tail", tail, "Pr[confidence gain > epsilon] <= delta", "valid, two-point"
    )
    analytic = float(queries / gaussian_mu(epsilon, delta) ** 2)  # TB.1
    yield NoiseRow("analytic Gaussian", analytic, private, "valid on a fine grid; used")


def _pure(epsilon: Fraction, queries: int) -> NoiseRow:
    variance = 2 * float(queries / epsilon) ** 2  # S4.13
    return NoiseRow("Laplace, pure", variance, "(epsilon, 0)-privacy, always", "valid; used")


def _exact_accounts(epsilon: Fraction, delta: Fraction, queries: int) -> Iterator[NoiseRow]:
    """Laws that need an exact T-fold account; coins too many to sum are left out."""
    private = f"(epsilon, delta)-privacy for exactly {queries} questions"
    scale = laplace_scale(queries, epsilon, delta)
    yield NoiseRow("Laplace, exact account", 2 * scale**2, private, "valid")
    try:
        coins = binomial_coins(queries, epsilon, delta)
        yield NoiseRow(f"binomial, {coins} coins", coins / 4, private, "valid for counts; used")
        law = huber_law(queries, epsilon, delta)
        cap = float(queries * law.knee / law.spread**2)
        yield NoiseRow(
            "Gaussian stitched to Laplace",
            law.variance(),
            f"{private}; confidence never rises by more than {cap:.4g}",
            "valid for counts; used",
        )
    except InvalidQuery:
        return


def laplace_scale(queries: int, epsilon: Fraction, delta: Fraction) -> float:
    """The least scale (to 1e-4, rounded up) that keeps (epsilon, delta) by exact account. S4.15"""

    def kept(scale: float) -> bool:
        law = DiscreteLaplace(Fraction(scale) * FINE_LAPLACE)
        loss = answer_loss(law, queries, FINE_LAPLACE)
        return loss.delta(float(epsilon), queries) <= delta

    # Randomised response is the worst pure mechanism: its scale is enough, and not far off.
    low, high = 0.0, float(queries / epsilon)
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        if composed_delta(queries, 1 / middle, epsilon) <= delta:
            high = middle
        else:
            low = middle
    low = high * 0.9
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if kept(middle) else (middle, high)
    return high


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)
