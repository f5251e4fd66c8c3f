"""The steps of an alert: armed once, paid in full, compared for nothing until it has fired. M.2

The noisy threshold is secret for as long as the alert lives. It is held in memory alone, unless the
alert is kept (`keeping`): else it ends with its process, and what it cost stays charged.
Proof: docs/proofs/alerts.md.
"""

from __future__ import annotations

import json
import math
import os
import threading
from contextlib import nullcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

from sulq.accounting.losses import Loss
from sulq.accounting.pricing import positive
from sulq.accounting.pure import MOST_FIRINGS, above_threshold, epsilon_for, pure_losses
from sulq.database.holding import hold
from sulq.database.keeping import Keeper, keeper_for, kept
from sulq.engines.engine import check_read, check_source
from sulq.errors import InvalidQuery, Refused
from sulq.finds import alert_margin
from sulq.ledger.budgets import OWNER
from sulq.noise.distributions import DiscreteLaplace, law_from_json
from sulq.noise.entropy import OsBits
from sulq.noise.samplers import perturb
from sulq.oracle import credits_text
from sulq.query.spelling import question_text
from sulq.query.sum_query import FORMAT, SumQuery, digest_of
from sulq.schema.binding import BoundQuery
from sulq.schema.columns import as_number
from sulq.schema.strata import accounts

if TYPE_CHECKING:
    from sulq.database.database import Database

MOST_CHECKS = 100_000
"""Different questions that one alert compares: each is remembered."""
KEPT_CHECKS = 10_000
"""Of a kept alert: all of them are written at each check."""
Credits = Fraction | int | float


class Alert:
    """Says whether a count or total has reached a level, so many times; never the value.

    `check()` compares the question it was armed with, `check(question)` another one that no row
    can move further. A question found below is remembered: asked again, it is not compared anew.
    """

    __slots__ = (
        "_asked", "_below", "_database", "_first", "_fresh", "_home", "_keeper", "_left", "_level",
        "_lock", "_widths", "above", "credits", "firings", "receipt", "step", "terms",
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
        level: int,
        keeper: Keeper | None = None,
    ) -> None:
        self._database, self._asked = database, asked
        self._first, self._fresh = laws
        self._widths = _widths(asked)
        self._left, self._below, self._lock = firings, set[str](), threading.Lock()
        self._home = os.getpid()
        self.above, self.firings, self.credits, self.receipt = above, firings, credits, receipt
        self.step = asked.terms[0].fine_step
        self.terms = database._exactly.said().get("terms", "")
        self._level, self._keeper = level, keeper
        self._recall()

    @property
    def number(self) -> int:
        """Of its receipt: what a kept alert is called."""
        return int(self.receipt.seq)

    @property
    def asked(self) -> BoundQuery:
        """What it was armed on."""
        return self._asked

    @property
    def laws(self) -> tuple[DiscreteLaplace, DiscreteLaplace]:
        """The noise of the level, and of each check."""
        return self._first, self._fresh

    @property
    def question(self) -> str:
        """What it was armed on, in SQL spelling."""
        return question_text(self._asked.text)

    @property
    def left(self) -> int:
        """Firings left; 0: spent."""
        return self._left

    def _recall(self) -> None:
        """What is kept of it counts, in whatever process it came about."""
        if self._keeper is not None:
            self._left = self.firings - self._keeper.fired()
            self._below = set(self._keeper.form["below"])

    def check(self, question: object = None, *, key: str | None = None) -> bool:
        """Whether it fires: the sum, with fresh noise, reaches the noisy level. Free.

        Of a kept alert `key` stands for this check: asked again it has the same verdict.
        """
        bound = self._asked if question is None else self._comparable(question)
        with self._lock, nullcontext() if self._keeper is None else self._keeper.alone():
            if os.getpid() != self._home:
                raise Refused("this alert belongs to the process that armed it; arm a new one")
            self._recall()
            if self._keeper is not None and self._keeper.fired_under(key):
                return True
            if not self._left:
                raise Refused("this alert has fired as often as was paid for; arm it again")
            if bound.digest in self._below:
                return False
            most = MOST_CHECKS if self._keeper is None else KEPT_CHECKS
            if len(self._below) >= most:
                raise Refused(f"this alert compares {most} questions at most; arm a new one")
            self._database.ledger.check_asker(self.receipt.body["analyst"])
            check_source(self._database.engine)
            total = self._database.engine.prepare(bound.sums)()[0]
            check_read(self._database.engine)
            fine = total * int(bound.terms[0].step / self.step)
            fired = perturb([fine], [self._fresh])[0] >= self._level
            hold()  # others see the ledger
            if self._keeper is not None and fired:
                self._keeper.fire(self.firings - self._left + 1, key)
            elif self._keeper is not None:
                self._keeper.below(bound.digest)
            if fired:
                self._left -= 1
            else:
                self._below.add(bound.digest)
            return fired

    def _comparable(self, question: object) -> BoundQuery:
        """A question that no row can move further than the one paid for, on the same grid."""
        bound = _one_sum(self._database.bind(question, fine=True))
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
        return alert_margin(self.laws, self.step, confidence, checks)

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
    keep: bool = False,
    key: str | None = None,
) -> Alert:
    """Arm an alert on one count or total. The whole price of its firings is charged now.

    `keep`: it outlives this process. Then `key` stands for this arming: again, it is not charged.
    """
    bound = _one_sum(database.bind(question, fine=True))  # may refuse, free
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
    text, noise, keeper = _text(bound, level, firings), _noise_text(*laws), None
    noisy = perturb([math.ceil(level / bound.terms[0].fine_step)], [laws[0]])[0]  # drawn once
    if keep:
        keeper, form = _kept_form(database, bound, text, noise, noisy, analyst, key)
        text, noisy = form["text"], int(form["level"])
    elif key is not None:
        raise InvalidQuery("a key is for an alert that is kept: say keep=True too")
    with nullcontext() if keeper is None else keeper.unless_refused():
        entry = database.ledger.charge(  # durable before any row is touched
            question=text,
            digest=digest_of(text),
            noise=noise,
            charges={names[number]: loss for loss, numbers in losses for number in numbers},
            share=Loss.of(spend),
            analyst=analyst,
            key=key,
        )
    if not entry.answered:
        entry = database.ledger.settle(entry, ())  # nothing is left open that could be drawn again
    assert entry.receipt is not None  # noqa: S101
    paid = entry.share_charged.credits_fraction
    if keeper is not None:
        keeper.write({**keeper.form, "seq": entry.receipt.seq})
    return Alert(database, bound, level, firings, laws, entry.receipt, paid, noisy, keeper)


def _kept_form(
    database: Database,
    bound: BoundQuery,
    text: str,
    noise: str,
    level: int,
    analyst: str,
    key: str | None,
) -> tuple[Keeper, dict[str, Any]]:
    """The file of an alert before it is paid for: unpaid it compares nothing. Under a known key
    the one there is, if it is for the same."""
    wanted = json.loads(text)
    for known in kept(database, analyst) if key is not None else ():
        form = known.form
        if form["key"] == key:
            if (form["noise"], {**json.loads(form["text"]), "arming": ""}) != (
                noise,
                {**wanted, "arming": ""},
            ):
                raise Refused(f"the key {key!r:.60} was used for another alert; use a new key")
            return known, form
    keeper = keeper_for(database, wanted["arming"], analyst)
    form = {
        "analyst": analyst,
        "key": key,
        "text": text,
        "noise": noise,
        "question": bound.query.to_json(),
        "firings": wanted["firings"],
        "level": str(level),
        "below": [],
        "seq": None,
    }
    keeper.write(form)
    return keeper, form


def kept_alerts(database: Database, analyst: str) -> list[Alert]:
    """The alerts that this analyst has armed here to be kept, and paid for."""
    return [alert for keeper in kept(database, analyst) if (alert := _again(keeper)) is not None]


def _again(keeper: Keeper) -> Alert | None:
    form, database = keeper.form, keeper.database
    if form["seq"] is None:
        return None  # a crash came before the charge, or before its number was noted
    if database.ledger.recovered_since(form["seq"]):
        return None  # nobody knows how often it has fired
    asked = SumQuery.from_json(form["question"])
    bound = _one_sum(database.bind(asked, fine=True, asked_before=True))
    noise = json.loads(form["noise"])
    laws = [law_from_json(noise[name]) for name in ("level", "each")]
    assert isinstance(laws[0], DiscreteLaplace) and isinstance(laws[1], DiscreteLaplace)  # noqa: S101
    receipt = database.ledger.receipt(form["seq"])
    level = Fraction(json.loads(form["text"])["above"])
    return Alert(
        database, bound, level, form["firings"], (laws[0], laws[1]), receipt, Fraction(0),
        int(form["level"]), keeper,
    )  # fmt: skip


def kept_alert(database: Database, number: int, analyst: str) -> Alert:
    """The one with this number."""
    for keeper in kept(database, analyst):
        if keeper.form["seq"] == number and (alert := _again(keeper)) is not None:
            return alert
    raise Refused(
        f"no alert {number} of yours is kept here, for the rows and facts that the table has now;"
        " arm a new one"
    )


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
