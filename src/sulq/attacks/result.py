"""What an attack reached, beside the best that anyone could reach under the promise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sulq.kernel.accounting.calibration import answer_loss, calibrate
from sulq.kernel.schema.promise import Promise

ALARM = 3.0
"""Standard errors above the bound that count as broken."""
GIVEN_AWAY = 0.9
"""A promise that lets so many bits be guessed protects nobody, also when it is kept."""


@dataclass(frozen=True, slots=True)
class AttackResult:
    """One figure of one attack: what was reached, what is possible, and how sure that is.

    `error` is the standard error of `reached`; 0 where the figure is itself a confidence bound
    or is exact. `trials` is how many secrets, draws or attempts stand behind it. `known_limit`:
    the documents say that nothing defends here yet.
    """

    attack: str
    measure: str
    reached: float
    bound: float
    error: float
    trials: int
    credits: Fraction = Fraction(0)
    note: str = ""
    known_limit: bool = False

    @property
    def broken(self) -> bool:
        """More than the promise allows, beyond chance."""
        return self.reached > self.bound + ALARM * self.error

    @property
    def light(self) -> str:
        """red: broken; amber: a known limit shows, or the promise itself gives the secrets away."""
        if self.broken:
            return "amber" if self.known_limit else "red"
        return "amber" if self.measure == SHARE and self.bound > GIVEN_AWAY else "green"

    def to_json(self) -> dict[str, Any]:
        return {
            "attack": self.attack,
            "measure": self.measure,
            "reached": self.reached,
            "bound": self.bound,
            "standard_error": self.error,
            "trials": self.trials,
            "credits": float(self.credits),
            "light": self.light,
            "note": self.note,
        }

    def __str__(self) -> str:
        around = f" (+-{self.error:.3f})" if self.error else ""
        return (
            f"{self.attack}: {self.measure} {self.reached:.3f}{around}, at most {self.bound:.3f}"
            f" is possible: {'BROKEN' if self.broken else 'holds'}"
        )


SHARE = "share of bits guessed"


def guessed(
    attack: str, right: int, trials: int, bound: float, credits: Fraction, note: str = ""
) -> AttackResult:
    """The finding of an attack that guessed `right` of `trials` fair secret bits."""
    if not trials:
        return AttackResult(attack, SHARE, 0.5, bound, 0.0, 0, credits, "nothing could be asked")
    spread = math.sqrt(max(bound * (1 - bound), 1 / trials) / trials)
    return AttackResult(attack, SHARE, right / trials, bound, spread, trials, credits, note)


def best_guess(promise: Promise, credits: Fraction | int | float, databases: int = 1) -> float:
    """The chance that the best attacker guesses one fair bit, all others known, for so much loss.

    (1 + total variation) / 2: Gaussian Phi(mu/2) and its slack (TB.1, TB.8); pure
    e^eps / (1 + e^eps); the coarse laws by their exact privacy loss, not the Gaussian limit (S0.5).
    Where so many databases hold the same person, each with a promise of its own, losses add up.
    """
    calibration = calibrate(promise)
    paid = min(float(credits), float(calibration.credits))
    share = databases * paid / calibration.credits
    if calibration.mu_squared is not None:
        mu = math.sqrt(float(calibration.mu_squared) * share)  # TB.1
        slack = databases * float(calibration.slack_cap)
        return min(1.0, 0.5 * math.erfc(-mu / math.sqrt(8)) + slack)
    if calibration.unit_law is None:
        return 1 / (1 + math.exp(-float(promise.epsilon) * share))  # S4.13
    questions = databases * math.ceil(paid)
    if not questions:
        return 0.5
    varied = answer_loss(calibration.unit_law, questions).delta(0.0, questions)
    return min(1.0, (1 + varied) / 2)
