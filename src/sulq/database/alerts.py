"""The steps of an alert: armed once, paid in full, compared for nothing until it has fired. M.2

The noisy threshold is secret for as long as the alert lives. It is held in memory alone: an alert
does not outlive its process, and what it cost stays charged. Proof: docs/proofs/alerts.md.
"""

from __future__ import annotations

import json
import math
import os
import threading
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

from sulq.accounting.losses import Loss
from sulq.accounting.pricing import positive
from sulq.accounting.pure import MOST_FIRINGS, above_threshold, epsilon_for, pure_losses
from sulq.engines.engine import check_read, check_source
from sulq.errors import InvalidQuery, Refused
from sulq.ledger.budgets import OWNER
from sulq.noise.distributions import DiscreteLaplace
from sulq.noise.entropy import OsBits
from sulq.noise.samplers import perturb
from sulq.oracle import check_confidence, credits_text
from sulq.query.sum_query import FORMAT, digest_of
from sulq.schema.binding import BoundQuery
from sulq.schema.columns import as_number
from sulq.schema.strata import accounts

if TYPE_CHECKING:
    from sulq.database.database import Database

MOST_CHECKS = 100_000
"""Different questions that one alert compares: each is remembered."""
Credits = Fraction | int | float


class Alert:
    """Says whether a count or total has reached a level, so many times; never the value.

    `check()` compares the question it was armed with, `check(question)` another one that no row
    can move further. A question found below is remembered: asked again, it is not compared anew.
    """

    __slots__ = (
        "_asked", "_below", "_database", "_first", "_fresh", "_home", "_left", "_level", "_lock",
        "_widths", "above", "credits", "firings", "receipt", "step", "terms",
    )  # fmt: skip

    def __init__(
        self,
        database: Database,
        asked: BoundQuery,
        above: Fraction,
        firings: int,
        laws: tuple[DiscreteLaplace, DiscreteLaplace],
        receipt: Any,
        credits: Fraction,
    ) -> None:
        self._database, self._asked = database, asked
        self._first, self._fresh = laws
        self._widths = _widths(asked)
        self._left, self._below, self._lock = firings, set[str](), threading.Lock()
        self._home = os.getpid()
        self.above, self.firings, self.credits, self.receipt = above, firings, credits, receipt
        self.step = asked.terms[0].fine_step
        self.terms = database._exactly.said().get("terms", "")
        self._level = perturb([math.ceil(above / self.step)], [self._first])[0]  # drawn once

    @property
    def left(self) -> int:
        """Firings left; 0: spent."""
        return self._left

    def check(self, question: object = None) -> bool:
        """Whether it fires: the sum, with fresh noise, reaches the noisy level. Free."""
        bound = self._asked if question is None else self._comparable(question)
        with self._lock:
            if os.getpid() != self._home:
                raise Refused("this alert belongs to the process that armed it; arm a new one")
            if not self._left:
                raise Refused("this alert has fired as often as was paid for; arm it again")
            if bound.digest in self._below:
                return False
            if len(self._below) >= MOST_CHECKS:
                raise Refused(f"an alert compares {MOST_CHECKS} questions at most; arm a new one")
            self._database.ledger.check_asker(self.receipt.body["analyst"])
            check_source(self._database.engine)
            total = self._database.engine.prepare(bound.sums)()[0]
            check_read(self._database.engine)
            fine = total * int(bound.terms[0].step / self.step)
            fired = perturb([fine], [self._fresh])[0] >= self._level
            if fired:
                self._left -= 1
            else:
                self._below.add(bound.digest)
            return fired

    def _comparable(self, question: object) -> BoundQuery:
        """A question that no row can move further than the one paid for, on the same grid."""
        bound = _one_sum(self._database.bind(question))
        if (bound.terms[0].step / self.step).denominator != 1:
            raise InvalidQuery("this question is in other units than the one the alert is armed on")
        for number, width in _widths(bound).items():
            if width > self._widths.get(number, 0):
                raise InvalidQuery(
                    "one row can move this question further than the one the alert is armed on,"
                    " which is what was paid for; arm an alert on this one"
                )
        return bound

    def margin(self, confidence: float = 0.95, checks: int = 1) -> float:
        """With this confidence so many checks are right about sums this far from the level."""
        check_confidence(confidence)
        if isinstance(checks, bool) or not isinstance(checks, int) or checks < 1:
            raise InvalidQuery(f"checks must be a whole number above 0, got {checks!r:.40}")
        wrong = (1 - confidence) / 2
        first = self._first.half_width(1 - wrong)
        return (first + self._fresh.half_width(1 - wrong / checks)) * float(self.step)

    def __repr__(self) -> str:
        state = f"{self._left} of {self.firings} firings left"
        return f"<Alert above {float(self.above):,.6g}, {state}, {credits_text(self.credits)}>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("an alert cannot be copied: its firings would be counted twice")


def arm(
    database: Database,
    question: object,
    *,
    above: object,
    firings: int = 1,
    credits: Credits = 1,
    analyst: str = OWNER,
) -> Alert:
    """Arm an alert on one count or total. The whole price of its firings is charged now."""
    bound = _one_sum(database.bind(question))  # may refuse, free
    level = as_number(above, "above")
    if isinstance(firings, bool) or not isinstance(firings, int):
        raise InvalidQuery(f"firings must be a whole number, got {firings!r:.40}")
    if not 1 <= firings <= MOST_FIRINGS:
        raise InvalidQuery(f"firings must be from 1 to {MOST_FIRINGS}, got {firings}")
    spend = positive(credits, "credits")
    reach = [(sensitivity.l1, numbers) for sensitivity, numbers in bound.reach]
    if not any(width for width, _ in reach):
        raise InvalidQuery("this is public: ask it, which is exact and free")
    losses = pure_losses(reach, spend, 1, database.calibration)  # no data
    width = max(width for width, _ in reach) * bound.terms[0].fine_unit
    laws = above_threshold(width, epsilon_for(spend, database.calibration), firings)
    check_source(database.engine)
    database.engine.prepare(bound.sums)  # may refuse, free
    names = accounts(database.schema)
    text = _text(bound, level, firings)
    entry = database.ledger.charge(  # durable before any row is touched
        question=text,
        digest=digest_of(text),
        noise=_noise_text(*laws),
        charges={names[number]: loss for loss, numbers in losses for number in numbers},
        share=Loss.of(spend),
        analyst=analyst,
    )
    entry = database.ledger.settle(entry, ())  # nothing is left open that could be drawn again
    paid = entry.share_charged.credits_fraction
    return Alert(database, bound, level, firings, laws, entry.receipt, paid)


def _text(bound: BoundQuery, level: Fraction, firings: int) -> str:
    """Every arming is a charge of its own: a number in it makes its text like no other."""
    form = {
        "sulq": FORMAT,
        "alert": json.loads(bound.text),
        "above": str(level),
        "firings": firings,
        "arming": f"{OsBits().bits(128):032x}",
    }
    return json.dumps(form, ensure_ascii=False, separators=(",", ":"))


def _noise_text(level: DiscreteLaplace, each: DiscreteLaplace) -> str:
    """Unlike the noise of an answer: no stored value goes with it."""
    form = {"level": level.to_json(), "each": each.to_json()}
    return json.dumps(form, sort_keys=True, separators=(",", ":"))


def _one_sum(bound: BoundQuery) -> BoundQuery:
    if bound.statistic.kind not in ("count", "total", "sums") or bound.groups or bound.outer:
        raise InvalidQuery(f"an alert compares one count or total, got {bound.statistic.kind}")
    if len(bound.terms) != 1 or bound.terms[0].middle:
        raise InvalidQuery("an alert compares one plain sum; ask for one count or total")
    return bound


def _widths(bound: BoundQuery) -> dict[int, Fraction]:
    """How far one person of each account can move the sum, in user units."""
    unit = bound.terms[0].unit * bound.terms[0].step
    return {number: s.l1 * unit for s, numbers in bound.reach for number in numbers}
