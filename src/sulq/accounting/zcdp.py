"""Zero-concentrated privacy: rho = mu^2 / 2, and what it means as (epsilon, delta).

The search for the best order is in floats; any order is valid, and the value at the order found
is computed in decimals and rounded up. Proofs: docs/proofs/accounting.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext

from sulq.accounting.gaussian import CONTEXT, Exact, decimal, rounded_up

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
