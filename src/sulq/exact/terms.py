"""On what terms a menu was declared for exact release, as the ledger keeps them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sulq.exact.domain import Assumptions
from sulq.kernel.noise.laws import DiscreteGaussian, Law, NoNoise
from sulq.kernel.schema.promise import Promise

EXACT = "noiseless, under assumptions"
TOPPED_UP = "a little noise, under assumptions"
MAYBE_RELEASED = (
    "events of this table were lost, and sums may have been released under assumptions: no"
    " worst-case promise is left"
)
UNTIL_RELEASED = (
    "exact release is on for this table: with the first exact answer this promise ends, and what"
    " holds from then on rests on the owner's assumptions"
)


@dataclass(frozen=True, slots=True)
class ExactTerms:
    """What the owner vouches for, and what was certified on it.

    `factor` is r of S1.12: what one row may change goes along with so many other rows at most.
    `top_up` is the variance of the noise that fills a deficit, in whole steps; 0 for exact sums.
    `batches` is how many were declared, of which one may be released.
    """

    assumptions: Assumptions
    factor: int
    reached: float
    top_up: Fraction = Fraction(0)
    batches: int = 1

    @property
    def guarantee(self) -> str:
        return TOPPED_UP if self.top_up else EXACT

    @property
    def law(self) -> Law:
        return DiscreteGaussian(self.top_up) if self.top_up else NoNoise()

    @property
    def noise(self) -> str:
        """How entries and receipts name what stands in place of the usual noise."""
        form = {"guarantee": self.guarantee, "factor": self.factor, "law": self.law.to_json()}
        return _text(form | assumptions_json(self.assumptions))

    def to_text(self) -> str:
        return _text(
            {
                "assumptions": assumptions_json(self.assumptions),
                "factor": self.factor,
                "reached": self.reached,
                "top_up": str(self.top_up),
                "batches": self.batches,
            }
        )

    @classmethod
    def from_text(cls, text: str) -> ExactTerms:
        form = json.loads(text)
        return cls(
            Assumptions(**form["assumptions"]),
            form["factor"],
            form["reached"],
            Fraction(form["top_up"]),
            form["batches"],
        )

    def __str__(self) -> str:
        given = self.assumptions
        least = ", ".join(f"{name} {float(share):g}" for name, share in given.least.items())
        rows = given.known_rows
        return (
            f"{self.guarantee}: one row's values change the probability of no event by more than a"
            f" factor e^{float(given.epsilon):g} and {float(given.delta):g}, provided rows are"
            " independent given the public columns, every value keeps at least this probability"
            f" whatever else is known of its row ({least}), and at most {rows:,} other rows are"
            " known, and nothing else is released about these rows"
        )


def promised(promise: Promise, terms: ExactTerms) -> str:
    """What holds for every row once sums were released on such terms.

    The event splits by the batch that the answers led to: noisy answers count once for each.
    """
    epsilon = float(promise.epsilon + terms.assumptions.epsilon)
    delta = float(terms.batches * promise.delta + terms.assumptions.delta)
    return (
        "sums were released under assumptions, so no worst-case promise is left.\n"
        f"{terms}.\n"
        f"with all noisy answers, on the same assumptions: e^{epsilon:g} and {delta:.3g}"
    )


def assumptions_json(assumptions: Assumptions) -> dict[str, Any]:
    """As `Assumptions(**...)` reads it back."""
    return {
        "epsilon": str(assumptions.epsilon),
        "delta": str(assumptions.delta),
        "known_rows": assumptions.known_rows,
        "least": {name: str(share) for name, share in sorted(assumptions.least.items())},
    }


def _text(form: dict[str, Any]) -> str:
    return json.dumps(form, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
