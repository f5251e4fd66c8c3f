"""The steps of an alert: armed once, paid in full, compared for nothing until it has fired. M.2

The noisy threshold is secret for as long as the alert lives. It is held in memory alone, unless the
alert is kept (`keeping`): else it ends with its process, and what it cost stays charged.
Proof: docs/proofs/alerts.md.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from sulq.answers.selections import alert_margin
from sulq.database.table import Table
from sulq.errors import EngineFailed, InvalidQuery, Refused, SulqError
from sulq.formatting import credits_text
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.accounting.mechanisms import (
    MOST_FIRINGS,
    above_threshold,
    epsilon_for,
    pure_losses,
)
from sulq.kernel.accounting.pricing import positive
from sulq.kernel.ledger.accounts import check_text
from sulq.kernel.ledger.budget import OWNER
from sulq.kernel.ledger.events import Charge, PricedRequest
from sulq.kernel.ledger.receipts_journal import file_identity
from sulq.kernel.ledger.state_dir import (
    named,
    private_directory,
    private_path,
    read_private,
    write_private,
)
from sulq.kernel.noise.entropy import OsBits
from sulq.kernel.noise.laws import DiscreteLaplace, law_from_json
from sulq.kernel.noise.sampler import add_fresh_noise
from sulq.kernel.query.sql_text import question_text
from sulq.kernel.query.sum_query import FORMAT, SumQuery, digest_of
from sulq.kernel.release.release import AboveThreshold, check_source, release
from sulq.kernel.schema.bind import BoundQuery
from sulq.kernel.schema.columns import accounts, as_number

WRITTEN = {"analyst", "below", "firings", "key", "level", "noise", "question", "seq", "text"}
BOOT = Path("/proc/sys/kernel/random/boot_id")
"""A name that the kernel makes up each time the machine is started."""
MOST_KEPT = 200
"""Alerts of one analyst; who arms one more loses those that have fired."""


@dataclass(frozen=True, slots=True)
class AlertFile:
    """The file of one alert, and the ledger that counts its firings."""

    database: Table
    path: Path

    @property
    def form(self) -> dict[str, Any]:
        found = read_private(self.path)
        if found is None:
            raise Refused("there is no such alert here; arm a new one")
        try:
            form: dict[str, Any] = json.loads(found)
        except ValueError:
            form = {}
        if not isinstance(form, dict) or not form.keys() >= WRITTEN:
            raise Refused("the file of this alert is damaged; arm a new one")
        return form

    @property
    def owner(self) -> str | None:
        """Who armed it; nobody, of a damaged file: the others are not to suffer from it."""
        with suppress(Refused):
            return str(self.form["analyst"])
        return None

    @property
    def over(self) -> bool:
        """Whether its firings cannot be counted any more: the ledger was recovered since it was
        armed, the machine was started anew, or this is a copy. A clone may have fired elsewhere."""
        form = self.form
        if form.get("home") != home_of(self.path.parent):
            return True
        return form["seq"] is not None and self.database.ledger.recovered_since(form["seq"])

    def write(self, form: dict[str, Any]) -> None:
        write_private(self.path, json.dumps(form).encode(), replace=True)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One comparison at a time, in whatever process of this machine."""
        lock = self.path.with_suffix(".lock")
        lock.touch(0o600)
        with lock.open("rb") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    @contextmanager
    def unless_refused(self) -> Iterator[None]:
        """Around the charge of a new alert: refused, it leaves no file behind."""
        try:
            yield
        except SulqError as error:
            if self.form["seq"] is None and not error.charged_unknown:
                self.path.unlink(missing_ok=True)
            raise

    def fired(self) -> int:
        """How often it has fired, by the ledger; as often as it may, if that cannot be known."""
        form = self.form
        if self.over:
            return int(form["firings"])
        paid, analyst, noise = self.database.ledger.paid, form["analyst"], form["noise"]
        times = range(1, form["firings"] + 1)  # written in this order, so without gaps
        written = next(
            (t - 1 for t in times if not paid(analyst, digest_of(_firing(form, t)), noise)),
            form["firings"],
        )
        return max(written, int(form.get("comparing", 0)))

    def check_key(self, key: str | None) -> None:
        """Raise an error unless a firing can be written under this key. Free: no row is read."""
        if key is None:
            return
        check_text("key", key)
        analyst = self.form["analyst"]
        ledger = self.database.ledger
        if ledger.keyed(analyst, key) is not None or ledger.planned(analyst, key) is not None:
            raise Refused("this key stands for another question already; take a new one")

    def begin(self, time: int) -> None:
        """Note, before a row is read, that a comparison may fire for this time.

        A comparison that ends in an error may have told its verdict by that: it counts as fired.
        """
        form = self.form
        if form.get("comparing"):  # an earlier one ended so: count it for good
            self.fire(int(form["comparing"]), None)
        self.write({**form, "comparing": time})

    def fired_under(self, key: str | None) -> bool:
        """Whether it has fired for this very request, whose verdict may have been lost."""
        form = self.form
        known = self.database.ledger.keyed(form["analyst"], key)
        times = range(1, form["firings"] + 1)
        return known is not None and known[0] in {digest_of(_firing(form, t)) for t in times}

    def fire(self, time: int, key: str | None) -> None:
        """Durable before the verdict is told; it costs nothing, the arming has paid."""
        form = self.form
        text = _firing(form, time)
        ledger = self.database.ledger
        entry = ledger.charge(
            question=text,
            digest=digest_of(text),
            noise=form["noise"],
            charges={},
            share=Loss.zero(),
            analyst=form["analyst"],
            key=key,
        )
        ledger.settle(entry, ())
        self.write({**form, "comparing": 0})

    def forget(self) -> None:
        """The comparison that was begun came to no verdict."""
        self.write({**self.form, "comparing": 0})

    def below(self, digest: str) -> None:
        form = self.form
        self.write({**form, "below": [*form["below"], digest], "comparing": 0})


def _firing(form: dict[str, Any], time: int) -> str:
    """An event's text: the alert's own, and which of its firings it is."""
    known = {**json.loads(form["text"]), "fired": time}
    return json.dumps(known, ensure_ascii=False, separators=(",", ":"))


def home_of(directory: Path) -> str:
    """Where alerts are at home: this start of this machine, and this very directory.

    A copy has another mark in it, by its number and time of birth; an image of the whole disk has
    the same, and is started anew. docs/decisions/0010-clones-end-alerts.md
    """
    mark = directory / ".home"
    write_private(mark, b"", replace=False)
    boot = read_private(BOOT) or b""
    return f"{boot.decode('ascii').strip()}/{file_identity(mark)}"


def facts_of(database: Table) -> str:
    """The rows and the facts that an alert was armed on: with others it is over."""
    return f"{database.ledger.header.version}.{database.ledger.generation}"


def keeper_for(database: Table, arming: str, analyst: str) -> AlertFile:
    """Return a place for a new alert."""
    if not database.ledger.durable:
        raise InvalidQuery(
            "a ledger in memory ends with its process, and its alerts with it; leave keep out"
        )
    if len(kept(database, analyst)) >= MOST_KEPT:
        for spent in [one for one in kept(database, analyst) if one.fired() >= one.form["firings"]]:
            spent.path.unlink(missing_ok=True)
        if len(kept(database, analyst)) >= MOST_KEPT:
            raise Refused(f"{MOST_KEPT} alerts of yours are armed; let some fire first")
    return AlertFile(database, private_directory("alerts", named(facts_of(database))) / arming)


def kept(database: Table, analyst: str) -> list[AlertFile]:
    """What this analyst has armed on this table here, in order; also what was never paid for."""
    directory = private_path("alerts", named(facts_of(database)))
    files = directory.iterdir() if directory.is_dir() else ()
    found = [AlertFile(database, path) for path in sorted(files) if "." not in path.name]
    mine = [keeper for keeper in found if keeper.owner == analyst]
    return sorted(mine, key=lambda keeper: keeper.form["seq"] or 0)


# Alerts that outlive their process: the level in the state directory, firings in the ledger. M.2
#
# A firing is an event of the ledger before its verdict is told, so that neither a crash nor an old
# copy of the state directory brings one back. Proof: docs/proofs/alerts.md, section 4.


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
        "_asked",
        "_below",
        "_database",
        "_first",
        "_fresh",
        "_home",
        "_keeper",
        "_left",
        "_level",
        "_lock",
        "_widths",
        "above",
        "credits",
        "firings",
        "receipt",
        "step",
        "terms",
    )

    def __init__(
        self,
        database: Table,
        asked: BoundQuery,
        above: Fraction,
        firings: int,
        laws: tuple[DiscreteLaplace, DiscreteLaplace],
        receipt: Any,
        credits: Fraction,
        level: int,
        keeper: AlertFile | None = None,
    ) -> None:
        self._database, self._asked = database, asked
        self._first, self._fresh = laws
        self._widths = _widths(asked)
        self._left, self._below, self._lock = firings, set[str](), threading.Lock()
        self._home = os.getpid()
        self.above, self.firings, self.credits, self.receipt = above, firings, credits, receipt
        self.step = asked.terms[0].fine_step
        self.terms = database.guarantee().get("terms", "")
        self._level, self._keeper = level, keeper
        self._recall()

    @property
    def number(self) -> int:
        """Of its receipt: what a kept alert is called."""
        return int(self.receipt.seq)

    @property
    def asked(self) -> BoundQuery:
        """The question that the alert was armed on."""
        return self._asked

    @property
    def laws(self) -> tuple[DiscreteLaplace, DiscreteLaplace]:
        """The laws of the noise of the level, and of each check."""
        return self._first, self._fresh

    @property
    def question(self) -> str:
        """The question that the alert was armed on, in SQL spelling."""
        return question_text(self._asked.text)

    @property
    def left(self) -> int:
        """How many firings are left; 0 if the alert is spent."""
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
            if self._keeper is not None:
                self._keeper.check_key(key)
            paid = self._paid(bound)
            due = PricedRequest(paid.question, paid.digest, paid.noise, {}, Loss.zero())
            compared = AboveThreshold(bound, self.step, self._level, self._fresh, due)
            begin, tell = partial(self._begin, paid), partial(self._tell, key)
            try:
                told = release([compared], self._database.reader, begin, tell)
            except EngineFailed:  # before anything was compared: it says nothing of the verdict
                if self._keeper is not None:
                    self._keeper.forget()
                raise
            return told[bound.digest].values == (1,)

    def _begin(self, paid: Charge, _: object) -> list[Charge]:
        """Note durably, before a row is read, that this comparison may fire."""
        if self._keeper is not None:
            self._keeper.begin(self.firings - self._left + 1)
        return [paid]

    def _paid(self, bound: BoundQuery) -> Charge:
        """The arming has paid for every comparison: nothing is charged."""
        body = self.receipt.body
        named = (body["ledger"], self.number, body["table"], body["analyst"], None)
        noise = _noise_text(*self.laws)
        return Charge(*named, bound.text, bound.digest, noise, {}, Loss.zero())

    def _tell(self, key: str | None, noisy: Sequence[tuple[Charge, Sequence[int]]]) -> list[Charge]:
        """Write a verdict down: that it fired into the ledger, if the alert is kept."""
        ((entry, verdict),) = noisy
        fired = bool(verdict[0])
        if self._keeper is not None and fired:
            self._keeper.fire(self.firings - self._left + 1, key)
        elif self._keeper is not None:
            self._keeper.below(entry.digest)
        if fired:
            self._left -= 1
        else:
            self._below.add(entry.digest)
        return [replace(entry, answered=True, values=tuple(verdict))]

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


def arm_alert(
    database: Table,
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
    noisy = add_fresh_noise([math.ceil(level / bound.terms[0].fine_step)], [laws[0]])[
        0
    ]  # drawn once
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
    database: Table,
    bound: BoundQuery,
    text: str,
    noise: str,
    level: int,
    analyst: str,
    key: str | None,
) -> tuple[AlertFile, dict[str, Any]]:
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
        "home": home_of(keeper.path.parent),
        "seq": None,
    }
    keeper.write(form)
    return keeper, form


def kept_alerts(database: Table, analyst: str) -> list[Alert]:
    """Return the alerts that this analyst has armed here to be kept, and paid for."""
    return [alert for keeper in kept(database, analyst) if (alert := _again(keeper)) is not None]


def _again(keeper: AlertFile) -> Alert | None:
    form, database = keeper.form, keeper.database
    if form["seq"] is None:
        return None  # a crash came before the charge, or before its number was noted
    if keeper.over:
        return None  # nobody knows how often it has fired
    asked = SumQuery.from_json(form["question"])
    bound = _one_sum(database.bind(asked, fine=True, asked_before=True))
    noise = json.loads(form["noise"])
    laws = [law_from_json(noise[name]) for name in ("level", "each")]
    assert isinstance(laws[0], DiscreteLaplace) and isinstance(laws[1], DiscreteLaplace)  # noqa: S101
    receipt = database.ledger.receipt(form["seq"])
    level = Fraction(json.loads(form["text"])["above"])
    return Alert(
        database,
        bound,
        level,
        form["firings"],
        (laws[0], laws[1]),
        receipt,
        Fraction(0),
        int(form["level"]),
        keeper,
    )


def kept_alert(database: Table, number: int, analyst: str) -> Alert:
    """Return the kept alert with this number."""
    for keeper in kept(database, analyst):
        if keeper.form["seq"] == number and (alert := _again(keeper)) is not None:
            return alert
    raise Refused(
        f"no alert {number} of yours is kept here, for the rows and facts that the table has now,"
        " since this machine was started; arm a new one"
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
    """Return how far one person of each account can move the sum, in user units."""
    unit = bound.terms[0].unit * bound.terms[0].step
    return {number: s.l1 * unit for s, numbers in bound.reach for number in numbers}
