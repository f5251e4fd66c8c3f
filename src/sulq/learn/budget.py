"""How a fit spends: a plan made of public facts, and a budget that keeps to it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Rational
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from sulq.answers.oracle import Answer, Oracle, is_durable
from sulq.errors import BudgetSpent
from sulq.formatting import decimal_left, decimal_text

DEFAULT_PART = Fraction(1, 10)
"""Of what the caller has left, for a fit without `credits=` where what is spent is spent for good.
"""
FINEST = 2**40
"""Credits of one question are multiples of this part of a credit, rounded down."""


@dataclass(frozen=True, slots=True)
class FitStep:
    """One kind of question: its share of the credits, over all its rounds together."""

    name: str
    share: float
    rounds: int = 1


@dataclass(frozen=True, slots=True)
class FitPlan:
    """What a fit will ask. Shares add up to at most 1; what is left stays unspent."""

    method: str
    steps: tuple[FitStep, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        total = sum(step.share for step in self.steps)
        if total > 1 + 1e-9:
            raise ValueError(f"the shares of a plan add up to {total}, above 1")

    @property
    def rounds(self) -> int:
        return sum(step.rounds for step in self.steps)

    def share(self, name: str) -> float:
        """Of one round of a step."""
        step = next(step for step in self.steps if step.name == name)
        return step.share / step.rounds

    def with_notes(self, notes: Sequence[str]) -> FitPlan:
        return FitPlan(self.method, self.steps, (*self.notes, *notes))


@dataclass(frozen=True, slots=True)
class FitQuote:
    """What a fit would cost at most: free, and reads no data."""

    credits: Fraction
    left_after: Fraction
    plan: FitPlan

    @property
    def method(self) -> str:
        return self.plan.method

    @property
    def note(self) -> str:
        return "; ".join(self.plan.notes)

    def rows(self) -> list[dict[str, Any]]:
        """One record a step: name, rounds, credits."""
        return [
            {
                "step": step.name,
                "rounds": step.rounds,
                "credits": float(self.credits) * step.share,
            }
            for step in self.plan.steps
        ]

    def __str__(self) -> str:
        head = f"{self.method}: at most {decimal_text(self.credits)} credits"
        lines = [f"{r['step']:<12} {r['rounds']:>3} x  {r['credits']:.4g}" for r in self.rows()]
        return "\n".join([head, *lines, *self.plan.notes])


@dataclass
class FitBudget(AbstractContextManager["FitBudget"]):
    """Asks an oracle within a cap, and remembers what it paid for."""

    oracle: Oracle
    cap: Fraction
    title: str
    show: bool | None = None
    spent: Fraction = Fraction(0)
    receipts: list[Any] = field(default_factory=list)
    reused: list[Any] = field(default_factory=list)
    _plan: FitPlan | None = None
    _bar: Progress | None = None
    _task: TaskID | None = None

    @property
    def plan(self) -> FitPlan:
        assert self._plan is not None  # noqa: S101
        return self._plan

    def follow(self, plan: FitPlan) -> None:
        """Keep to this plan from here on; its shares are of the whole cap."""
        self._plan = plan
        wanted = self.show if self.show is not None else sys.stderr.isatty()
        if wanted and plan.rounds > 2:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed}/{task.total} rounds, {task.fields[paid]} credits"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
            )
            self._bar.start()
            self._task = self._bar.add_task(self.title, total=plan.rounds, paid="0")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def credits(self, share: float) -> Fraction:
        """A share of the cap as credits, never more than is left of it."""
        left = self.cap - self.spent
        asked = min(Fraction(float(share)) * self.cap, left)
        return Fraction(int(asked * FINEST), FINEST)

    @property
    def left(self) -> float:
        """The share of the cap that is not spent."""
        return float((self.cap - self.spent) / self.cap) if self.cap else 0.0

    def ask(self, step: str, query: object, share: float | None = None) -> Answer:
        """Ask one round of a step; `share` replaces the planned one."""
        credits = self.credits(self.plan.share(step) if share is None else share)
        if credits <= 0:
            raise BudgetSpent(f"no credits are left for the step {step!r}; raise credits=")
        answer = self.oracle.ask(query, credits=credits)
        self.spent += answer.credits
        (self.receipts if answer.credits else self.reused).append(answer.receipt)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, advance=1, paid=decimal_text(self.spent))
        return answer

    def sums(
        self, step: str, query: object, share: float | None = None
    ) -> tuple[NDArray[np.float64], float]:
        """The noisy matrix of an `outer` question and the largest standard error in it."""
        answer = self.ask(step, query, share)
        return np.asarray(answer.value, dtype=np.float64), float(np.max(answer.standard_error))

    def error(self, query: object, share: float) -> float:
        """The largest standard error a question would have at this share; free."""
        return quoted_error(self.oracle, query, self.credits(share))


def quoted_error(oracle: Oracle, query: object, credits: Fraction) -> float:
    """The largest standard error of a question for these credits; 0 where it is public."""
    found = oracle.quote(query, credits=credits).standard_error
    return float(np.max(found))


def budget_of(oracle: Oracle, credits: Any) -> Fraction:
    """What a fit may spend: `credits`, at most what is left, less a trace for rounding up.

    Without `credits`: a tenth of what is left; all of it of a ledger in memory.
    """
    left = oracle.remaining
    if credits is None:
        wanted = left * DEFAULT_PART if is_durable(oracle) else left
    else:
        wanted = Fraction(credits if isinstance(credits, Rational) else float(credits))
        if wanted > left:
            raise BudgetSpent(
                f"the fit may spend {decimal_left(wanted)} credits, {decimal_text(left)} are left;"
                " lower credits="
            )
    if wanted <= 0:
        raise BudgetSpent("no credits are left to learn from this table")
    return wanted * (1 - Fraction(1, 2**30))


def default_notes(oracle: Oracle, credits: object) -> tuple[str, ...]:
    """That a fit without `credits=` takes a part, where it does; to be said before it has spent."""
    if credits is not None or not is_durable(oracle):
        return ()
    return (
        f"no `credits` were given: this fit takes at most a tenth of the"
        f" {decimal_left(oracle.remaining)} credits left; `credits` sets another amount",
    )
