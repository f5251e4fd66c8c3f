"""The Risk page: what a stranger could come to believe, and whether the table can be rebuilt.

Everything follows from the promise and from what is spent. No call here touches data.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import quote

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import Response
from markupsafe import Markup

from sulq.account import told_too
from sulq.answers.oracle import Oracle
from sulq.attacks.reconstruction import Point, optimum, sweep
from sulq.attacks.result import SHARE, AttackResult, best_guess
from sulq.attacks.suite import FULL, QUICK, run
from sulq.attacks.target import ROW, SECRET, Bits, Target
from sulq.beliefs.confidence import USUAL_PRIOR, moved, worst
from sulq.database import Database
from sulq.errors import InvalidQuery
from sulq.formatting import bar_text, left_text, price_text, spelled
from sulq.kernel.schema.columns import Flag, Number, Schema
from sulq.kernel.schema.promise import Promise
from sulq.server.console.framework import fragment
from sulq.server.console.history import when_text
from sulq.server.console.plots import Plot
from sulq.server.console.related_releases import Beliefs, becomes, beliefs, broken
from sulq.server.executor import Anybody
from sulq.server.service.session import TableSession

ROWS = 1_000
QUESTIONS = 1_000
SIGMAS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 166.0)
WORDS = {
    "differencing": ("Difference", "Ask with and without one person, subtract"),
    "rewordings": ("Repeat", "Ask the same thing in many wordings, average"),
    "reconstruction": ("Rebuild", "Random groups, solve for every row"),
    "analysts": ("Pool", "Many accounts share what they got"),
    "denials": ("Refusals", "Watch what is refused, and what it costs"),
}
IDLE, RUNNING, DONE, FAILED = "idle", "running", "done", "failed"


@dataclass(frozen=True, slots=True)
class RiskLine:
    name: str
    words: str
    finding: AttackResult


@dataclass(frozen=True, slots=True)
class Run:
    """Where a run stands."""

    state: str = IDLE
    lines: tuple[RiskLine, ...] = ()
    points: tuple[Point, ...] = ()
    at: float = 0.0
    done: int = 0


class Attacks:
    """Runs by promise; thread-safe."""

    def __init__(self) -> None:
        self._runs: dict[Promise, Run] = {}
        self._lock, self._one = threading.Lock(), threading.Lock()

    def of(self, promise: Promise) -> Run:
        with self._lock:
            return self._runs.get(promise, Run())

    def begin(self, promise: Promise) -> Run:
        """Start, unless it runs already or another one does."""
        with self._lock:
            now = self._runs.get(promise, Run())
            if now.state == RUNNING or not self._one.acquire(blocking=False):
                return now
            self._runs[promise] = found = Run(RUNNING)
        threading.Thread(target=self._run, args=(promise,), daemon=True).start()
        return found

    def _run(self, promise: Promise) -> None:
        found = Run(FAILED)
        try:
            found = attacked(promise, lambda run: self._note(promise, run))
        finally:
            self._note(promise, found)
            self._one.release()

    def _note(self, promise: Promise, run: Run) -> None:
        with self._lock:
            self._runs[promise] = run


def attacked(promise: Promise, noted: Callable[[Run], None] = lambda _: None) -> Run:
    """Five attacks and the rebuilding at several sizes of noise."""
    target = made_up(promise)
    lines: list[RiskLine] = []
    for name, (title, words) in WORDS.items():
        findings = run(target, [name], FULL if name == "differencing" else QUICK)
        shares = [one for one in findings if one.measure == SHARE and one.trials] or findings
        lines.append(RiskLine(title, words, max(shares, key=lambda one: one.trials)))
        noted(Run(RUNNING, done=len(lines)))
    asked = min(promise.credits, QUESTIONS)
    points = sweep(target, asked, SIGMAS, tables=1).points
    return Run(state=DONE, lines=tuple(lines), points=points, at=time.time(), done=len(lines))


def made_up(promise: Promise) -> Target:
    """A fictional table as often as it is wanted; every ledger is in memory, every row invented."""

    def publish(secrets: Bits) -> Oracle:
        bits = np.asarray(secrets, dtype=np.bool_)
        table = {ROW: np.arange(len(bits)), SECRET: bits}
        high = max(1, len(bits) - 1)
        schema = Schema(Number(ROW, 0, high, step=1, public=True), Flag(SECRET))
        return Database.open(table, schema, promise, ":memory:", name="fiction")

    return Target(promise, ROWS, publish, _shared)


def _shared(oracle: Oracle, number: int) -> Sequence[Oracle]:
    if not isinstance(oracle, Database):
        raise InvalidQuery(f"only a table has analysts, got a {type(oracle).__name__}")
    share = oracle.remaining / number
    names = [f"analyst {place + 1}" for place in range(number)]
    for name in names:
        oracle.grant(name, share)
    return [oracle.as_analyst(name) for name in names]


# Attacks on a made-up copy of a table: same promise, fictional rows, nothing of the owner's.
#
# One run at a time, in a thread of its own, in ledgers that live in memory. Kept by promise.


router = APIRouter(include_in_schema=False)
ATTACKS = Attacks()
HEIGHT, TOP = 290, 8
Z_REBUILT, Z_LEAKING = 1.2816, 0.3853
"""Phi of these is 0.9 and 0.65: from there on a column counts as rebuilt, or as leaking."""
Z_ALL = 2.326
"""Phi of it is 0.99: nearly all."""


@dataclass(frozen=True, slots=True)
class AttackLine:
    name: str
    words: str
    reached: str
    bar: str
    limit: str
    blind: str
    within: bool


@dataclass(frozen=True, slots=True)
class AttacksView:
    path: str
    """Where they are begun and looked at."""
    running: bool
    said: str
    chip: str
    chip_kind: str
    at: str
    lines: tuple[AttackLine, ...]
    button: str


@dataclass(frozen=True, slots=True)
class RiskView:
    table: str
    unit: str
    prior: int
    end: float
    so_far: float
    after: str
    now: str
    whole: str
    spent: str
    epsilons: tuple[str, str]
    curve: Markup
    height: int
    top: int
    rarely: str
    broken: tuple[str, str]
    rebuilt: tuple[str, str, str, str]
    plot: Markup
    aimed: str
    questions: str
    attacks: AttacksView


@dataclass(frozen=True, slots=True)
class AttackedView:
    """What changes on the page while attacks run."""

    attacks: AttacksView
    plot: Markup


def risk_view(session: TableSession) -> RiskView:
    database = session.database
    promise = database.promise
    account = database.statement()
    spent = account.statement.spent.credits_fraction
    held = beliefs(promise, spent)
    unit = database.schema.each
    sigma = database.calibration.unit_standard_deviation
    limit = rebuilding_limit(promise, sigma)
    tried = attacked_view(session)
    return RiskView(
        table=session.table,
        unit=unit,
        prior=round(100 * USUAL_PRIOR),
        end=held.end,
        so_far=held.so_far,
        after=held.after(),
        now=held.now(),
        whole=left_text(account.statement.cap.credits_fraction),
        spent=price_text(spent),
        epsilons=held.epsilons(),
        curve=belief_curve(held),
        height=HEIGHT,
        top=TOP,
        rarely=f"{becomes(told_too(worst(promise), account.statement))}.",
        broken=broken(account),
        rebuilt=_rebuilt(limit, sigma, promise.credits),
        plot=tried.plot,
        aimed=_percent(best_guess(promise, promise.credits)),
        questions=spelled(promise.credits, 0),
        attacks=tried.attacks,
    )


def rebuilding_limit(promise: Promise, sigma: float) -> float:
    """What nobody can pass on a hidden yes/no column: Phi(mu/2), mu = sqrt(T/2)/sigma. TB.1"""
    most = best_guess(promise, promise.credits)
    return min(most, optimum(sigma, promise.credits)) if promise.noise == "gaussian" else most


def _percent(share: float) -> str:
    """One decimal, rounded up."""
    return f"{math.ceil(1000 * share * (1 - 1e-12)) / 10:.1f} %"


def _rebuilt(limit: float, sigma: float, questions: int) -> tuple[str, str, str, str]:
    word = "No." if limit < 0.65 else "In part." if limit < 0.9 else "Yes, nearly."
    all_ = math.sqrt(questions / 2) / (2 * Z_ALL)
    times = sigma / all_
    last = (
        f"With the noise {times:.0f} times smaller it would be nearly all of it."
        if times > 1.5
        else "Choose a stricter promise, or fewer credits."
    )
    return word, spelled(questions, 0), _percent(limit), last


def belief_curve(held: Beliefs) -> Markup:
    """Belief after against belief before: at the end, so far, and what is possible at all."""
    plot = Plot(x0=0, x1=1, y0=0, y1=1, height=HEIGHT, gutter=70, top=TOP)
    marks = [(k / 4, f"{25 * k} %") for k in range(5)]
    plot.up(marks)
    plot.across(marks)
    steps = [k / 60 for k in range(61)]
    end, now = ([(p, moved(p, rise)) for p in steps] for rise in (held.end, held.so_far))
    low_end, low_now = (
        [(p, moved(p, -rise)) for p in reversed(steps)] for rise in (held.end, held.so_far)
    )
    plot.area([*end, *low_end], "band two")
    plot.area([*now, *low_now], "band two")
    plot.line([(0, 0), (1, 1)], "thin")
    plot.line(now, "line dashed")
    plot.line(end)
    prior = USUAL_PRIOR
    plot.upright(prior, 0, moved(prior, held.end), id="r-line")
    plot.dot(prior, prior, "point low", 3.5, id="r-before")
    plot.dot(prior, moved(prior, held.so_far), "point open", 4.5, id="r-now")
    plot.dot(prior, moved(prior, held.end), id="r-end")
    plot.text(
        f"at most {held.after()}",
        prior,
        moved(prior, held.end),
        "key end",
        dx=-10,
        dy=-8,
        id="r-text",
    )
    plot.text("dashed straight line:", 0.98, 0.56, "end", dy=0)
    plot.text("nothing learnt", 0.98, 0.51, "end", dy=0)
    plot.titled("how sure they were before", "how sure they can be after")
    return plot.drawn(
        "How sure someone can be after all answers, against how sure they were"
        f" before: 40 % becomes at most {held.after()}",
        "belief",
    )


def rebuilding_plot(
    sigma: float, questions: int, limit: float, points: tuple[Point, ...], who: str
) -> Markup:
    """The best that any attacker can do against noise, our own attack, and this table."""
    root = math.sqrt(questions / 2)
    last = 10.0 ** max(3, math.ceil(math.log10(2 * sigma)))
    first = min(1.0, 10.0 ** math.floor(math.log10(sigma / 2)))
    plot = Plot(x0=first, x1=last, y0=0.5, y1=1, height=HEIGHT, gutter=62, log=True, top=TOP)
    rebuilt, leaking = root / (2 * Z_REBUILT), root / (2 * Z_LEAKING)
    if rebuilt > first:
        plot.shade(first, min(rebuilt, last), "zone bad")
        plot.text("rebuilt", first, 0.5, "bad", dx=8, dy=-10)
        plot.shade(rebuilt, min(leaking, last), "zone warn")
        plot.text("leaking", rebuilt, 0.5, "warn", dx=6, dy=-10)
    plot.up([(0.5 + k / 10, f"{50 + 10 * k} %") for k in range(6)])
    marks = [m for k in range(-3, 9) for m in (10.0**k, 3 * 10.0**k) if first <= m <= last]
    plot.across([(m, spelled(m, None)) for m in _few(marks)], grid=False)
    curve = [first * (last / first) ** (k / 80) for k in range(81)]
    plot.line([(s, optimum(s, questions)) for s in curve])
    for point in points:
        if first <= point.sigma <= last:
            plot.diamond(point.sigma, max(point.recovered, 0.5))
    plot.text("hidden in the noise", last, 1, "ok end", dx=-4, dy=16)
    plot.upright(sigma, limit, 0.8)
    plot.dot(sigma, limit)
    side = plot.x(sigma) > 70
    plot.text("This table", sigma, 0.8, "key end" if side else "key", dx=-8 if side else 8, dy=4)
    for place, said in enumerate((f"noise {bar_text(sigma)}:", f"at most {_percent(limit)}")):
        plot.text(said, sigma, 0.8, "end" if side else "", dx=-8 if side else 8, dy=21 + 16 * place)
    plot.titled(f"noise on one count ({who}, log scale)")
    label = f"Recovered share against noise: this table, noise {bar_text(sigma)}, {_percent(limit)}"
    return plot.drawn(label, "rebuild")


def _few(marks: list[float]) -> list[float]:
    return marks if len(marks) <= 8 else marks[::2]


def attacks_view(run: Run, path: str) -> AttacksView:
    lines = tuple(_attack(line) for line in run.lines)
    good = sum(line.within for line in lines)
    said, button = {
        RUNNING: (f"Running: {run.done} of {len(WORDS)} attacks done. You may leave.", ""),
        DONE: ("", "Run again"),
        FAILED: (
            "The run did not finish. Rebuilding needs SciPy: pip install 'sulq[learn]'.",
            "Run the attacks",
        ),
    }.get(run.state, ("Not tried yet. Takes about a minute, free.", "Run the attacks"))
    chip = f"{good} of {len(lines)} within the limit" if lines else ""
    kind = "ok" if good == len(lines) else "bad"
    at = when_text(int(run.at)) if run.at else ""
    return AttacksView(
        path=path,
        running=run.state == RUNNING,
        said=said,
        chip=chip,
        chip_kind=kind,
        at=at,
        lines=lines,
        button=button,
    )


def _attack(line: RiskLine) -> AttackLine:
    found = line.finding
    bar = f"{100 * 1.96 * found.error:.1f}" if found.error else ""
    return AttackLine(
        name=line.name,
        words=line.words,
        reached=f"{100 * found.reached:.1f} %",
        bar=bar,
        limit=_percent(found.bound),
        blind="50 %",
        within=not found.broken,
    )


def attacked_view(session: TableSession, begin: bool = False) -> AttackedView:
    """Attacks on made-up rows under the table's promise; reads nothing else of the table."""
    database = session.database
    promise = database.promise
    run = ATTACKS.begin(promise) if begin else ATTACKS.of(promise)
    sigma = database.calibration.unit_standard_deviation
    limit = rebuilding_limit(promise, sigma)
    plot = rebuilding_plot(sigma, promise.credits, limit, run.points, database.schema.who)
    return AttackedView(attacks_view(run, f"/console/{quote(session.table, safe='')}"), plot)


@router.get("/console/{table}/risk")
async def risk(request: Request, session: Anybody) -> Response:
    return await fragment(request, "risk.html", risk_view, session)


@router.get("/console/{table}/attacks")
async def attacks(request: Request, session: Anybody) -> Response:
    return await fragment(request, "attacks.html#attacked", attacked_view, session)


@router.post("/console/{table}/attack")
async def attack(request: Request, session: Anybody) -> Response:
    """Begin, or say that it runs; free."""
    return await fragment(request, "attacks.html#attacked", attacked_view, session, True)
