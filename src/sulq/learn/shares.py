"""The statistical-query oracle: shares of rows within a tolerance, and their price. S0.10, S4.11"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sulq.errors import InvalidQuery, TooNoisy
from sulq.learn.checks import number, whole
from sulq.oracle import Oracle, Quote, decimal_text
from sulq.query.expressions import Expression, as_expression
from sulq.query.statistics import Statistic, count


@dataclass(frozen=True, slots=True)
class Stat:
    """The share of rows with a property: within `tau` of the table's, with this confidence."""

    value: float
    tau: float
    confidence: float
    credits: Fraction
    receipts: tuple[Any, ...]

    def __float__(self) -> float:
        return self.value


def stat(
    oracle: Oracle,
    predicate: Expression,
    tau: float,
    *,
    confidence: float = 0.99,
    queries: int = 1,
    rows: int | None = None,
) -> Stat:
    """The share of rows where `predicate` is true, within tau. One question, not many. S4.11

    `queries` such shares hold together with this confidence. Under add-remove (or a person unit)
    the number of rows is private: state a public lower bound, `rows`; it is counted too.
    """
    questions, half, each = _questions(oracle, predicate, tau, confidence, queries, rows)
    quotes = stat_quote(oracle, predicate, tau, **_terms(confidence, queries, rows))
    _affordable(oracle, questions, quotes, half, each)
    answers = [oracle.ask(question, within=half, confidence=each) for question in questions]
    total = float(answers[1]) if len(answers) > 1 else float(oracle.size or 1)
    value = min(max(float(answers[0]) / max(total, 1.0), 0.0), 1.0)
    paid = sum((answer.credits for answer in answers), Fraction(0))
    held = tau
    if rows is not None and len(answers) > 1 and total < rows:  # fewer than stated: say how much
        held = min(2 * half / max(total - half, half), 1.0)
    return Stat(value, held, confidence, paid, tuple(answer.receipt for answer in answers))


def _terms(confidence: float, queries: int, rows: int | None) -> dict[str, Any]:
    return {"confidence": confidence, "queries": queries, "rows": rows}


def _affordable(
    oracle: Oracle,
    questions: Sequence[Statistic],
    quotes: Sequence[Quote],
    half: float,
    confidence: float,
) -> None:
    """Raise TooNoisy before anything is charged if these quotes cost more than is left.

    What would do is read off the half-width that the credits left would buy.
    """
    due, left = sum((quote.credits for quote in quotes), Fraction(0)), oracle.remaining
    if due <= left:
        return
    factor = math.inf
    if left > 0:
        each = left / len(questions)
        bars = (oracle.quote(one, credits=each).interval(confidence) for one in questions)
        factor = max(float(high) for _, high in bars) / half
    raise TooNoisy(
        f"this tolerance costs {decimal_text(due)} credits, {decimal_text(left)} are left:"
        f" {factor:.3g} times the rows, the epsilon or the tau would do"
    )


def stat_quote(
    oracle: Oracle,
    predicate: Expression,
    tau: float,
    *,
    confidence: float = 0.99,
    queries: int = 1,
    rows: int | None = None,
) -> list[Quote]:
    """What `stat` would ask, priced; free."""
    questions, half, each = _questions(oracle, predicate, tau, confidence, queries, rows)
    return [oracle.quote(question, within=half, confidence=each) for question in questions]


def _questions(
    oracle: Oracle,
    predicate: Expression,
    tau: float,
    confidence: float,
    queries: int,
    rows: int | None,
) -> tuple[list[Any], float, float]:
    """The questions, the half-width each may be off by, and with what confidence."""
    number("tau", tau, 0, 1)
    number("confidence", confidence, 0, 1)
    whole("queries", queries)
    if rows is not None:
        whole("rows", rows)
    failure = (1 - confidence) / queries
    asked = count(where=as_expression(predicate))
    if oracle.size is not None and oracle.schema.unit == "row":
        return [asked], tau * oracle.size, 1 - failure
    if rows is None:
        raise InvalidQuery("the number of rows is private here; state a lower bound with rows=")
    # |(S+a)/(n+b) - S/n| <= (|a|+|b|)/(n+b) <= tau for |a|, |b| <= tau n / (2 + tau)
    return [asked, count()], tau * rows / (2 + tau), 1 - failure / 2


def repetitions(variance: float, tau: float, rows: int, queries: int, failure: float) -> int:
    """How often to ask at this variance so that all shares are within tau. S4.11, corrected"""
    return math.ceil(2 * variance * math.log(2 * queries / failure) / (tau * rows) ** 2)


def least_rows(epsilon: float, delta: float, taus: Sequence[float], failure: float) -> float:
    """The rows that suffice for all these tolerances, with T >= 2 q and the papers' noise. S4.12"""
    total = math.fsum(tau**-2 for tau in taus)
    logs = math.log(1 / delta) * math.log(2 * len(taus) / failure)
    return math.sqrt(8 * logs * total) / epsilon
