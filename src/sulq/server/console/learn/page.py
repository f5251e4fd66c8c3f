"""The Learn page: models from noisy sums only, run here over the caller's own seam.

Learners ask through an oracle that charges the caller, lets each answer wait for the table's clock,
tells how far it is, and stops between two answers when its reader goes away: what was bought is
stored, and free when it is learned again.
"""

from __future__ import annotations

import asyncio
import json
import threading
import warnings
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse
from markupsafe import Markup
from pydantic import BeforeValidator, Field

from sulq import learn as learners
from sulq.database import Analyst, Database
from sulq.errors import InvalidQuery, SulqError, TooNoisy
from sulq.formatting import credits_word, left_text, price_text
from sulq.kernel.release.release import held
from sulq.kernel.schema.columns import Category, Flag
from sulq.server.address import base_of
from sulq.server.console.charts import gauge
from sulq.server.console.framework import Form, balance_of, fragment, note_of, rendered
from sulq.server.console.learn.view import learned_view, python_text, spent_text
from sulq.server.errors import HttpProblem, problem_of
from sulq.server.executor import Asker, name_of, run_reading, too_many
from sulq.server.scheduling import Scheduler
from sulq.server.service.session import TableSession
from sulq.wire.bodies import Amount

router = APIRouter(include_in_schema=False)
T = TypeVar("T")
METHODS = (("pca", "PCA"), ("kmeans", "k-means"), ("tree", "Decision tree"))
KINDS = {"pca": "PCA", "kmeans": "KMeans", "tree": "DecisionTree"}
GETS = {
    "pca": "two directions with their wedges",
    "kmeans": "centres with their bars",
    "tree": "as many leaves as the noise allows",
}
LARGE = Fraction(1, 10)
MOST_USUAL = Fraction(4)
MISSING = "Learning needs scikit-learn: pip install 'sulq[learn]', then start the server again."


def _listed(given: object) -> object:
    """One ticked box of a form is a text, several are a list."""
    return [given] if isinstance(given, str) else given


def _spent(given: object) -> object:
    """An empty or senseless field is no amount: the usual one is taken, and the button says so."""
    if not isinstance(given, str):
        return given or None
    try:
        return given if float(given) > 0 else None
    except ValueError:
        return None


def usual(left: Fraction) -> Fraction:
    """What is spent unless another amount is typed: 4 credits, at most a tenth of what is left."""
    return min(MOST_USUAL, LARGE * left) if left > 0 else MOST_USUAL


class LearnBody(Form):
    """What is learned from what, for at most how much."""

    method: Literal["pca", "kmeans", "tree"] = "pca"
    columns: Annotated[
        list[Annotated[str, Field(max_length=200)]], Field(max_length=200), BeforeValidator(_listed)
    ] = Field(default_factory=list)
    label: Annotated[str, Field(max_length=200)] = ""
    groups: Annotated[int, Field(ge=2, le=20)] = 3
    credits: Annotated[Amount | None, BeforeValidator(_spent)] = None


@dataclass(frozen=True, slots=True)
class LearnView:
    table: str
    methods: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, bool], ...]
    labels: tuple[str, ...]
    credits: str
    missing: str
    closed: bool


@dataclass(frozen=True, slots=True)
class LearnQuote:
    state: str
    price: str
    get: str
    more: str
    own: str
    own_whole: str
    shared: bool
    gauge: Markup | None
    button: str
    confirm: str
    said: str


class FitStopped(Exception):
    """The reader went away, or pressed Stop."""


class PacedOracle:
    """The caller's oracle during a fit: charges as ever, answers on the table's clock, tells how
    far it is, and can be stopped."""

    def __init__(self, run: FitRun, oracle: Database | Analyst) -> None:
        self._run, self._oracle = run, oracle

    def __getattr__(self, name: str) -> Any:
        return getattr(self._oracle, name)

    def ask(self, query: object, **terms: Any) -> Any:
        run, clock = self._run, self._run.session.clock
        if run.stop.is_set():
            raise FitStopped
        bound = run.session.bind(query)
        ticks = clock.ticks(bound)
        begun = clock.start(run.turn(clock.load(bound)))
        try:
            with (
                clock.execution(frozenset([bound.digest])),
                held(lambda: clock.hold(begun, ticks)),
            ):
                answer = self._oracle.ask(query, **terms)
        finally:
            run.wait(clock.leave(begun, ticks))
        run.paid(answer.credits)
        return answer


def learn_view(session: TableSession) -> LearnView:
    schema = session.oracle().schema
    purse = balance_of(session)
    askable = [c for c in schema.columns if not isinstance(c, Category) or c.values is not None]
    picked = [c.name for c in askable if not isinstance(c, Category)][:5]
    labels = [c.name for c in askable if isinstance(c, Flag | Category)]
    return LearnView(
        table=session.table,
        methods=METHODS,
        columns=tuple((c.name, c.name in picked) for c in askable),
        labels=tuple(labels),
        credits=left_text(usual(purse.own_left)).replace("½", "0.5"),
        missing=missing(),
        closed=purse.left <= 0,
    )


def missing() -> str:
    """Empty if learners can be loaded; learning is an optional extra."""
    try:
        learners.__getattr__("Learner")
    except ImportError:
        return MISSING
    return ""


def learner_of(body: LearnBody, credits: Fraction) -> Any:
    """The learner that was asked for."""
    if absent := missing():
        raise InvalidQuery(absent)
    terms: dict[str, Any] = {"credits": credits, "progress": False, "random_state": 0}
    if body.method == "pca":
        return learners.PCA(2, **terms)
    if body.method == "kmeans":
        return learners.KMeans(body.groups, **terms)
    return learners.DecisionTree(**terms)


def _asked(body: LearnBody) -> tuple[list[str], str | None]:
    if body.method != "tree":
        return body.columns, None
    if not body.label:
        raise InvalidQuery("a tree needs a column to predict")
    return [name for name in body.columns if name != body.label], body.label


def quote_view(session: TableSession, body: LearnBody) -> LearnQuote:
    """Price and plan of a fit; free, and reads no data."""
    purse = balance_of(session)
    left = purse.own_left
    own, whole = left_text(left), left_text(purse.own_whole)
    price = body.credits or usual(left)
    empty = LearnQuote(
        state="empty",
        price="",
        get="",
        more="",
        own=own,
        own_whole=whole,
        shared=purse.shared,
        gauge=None,
        button="Learn",
        confirm="",
        said="",
    )
    if not body.columns:
        said = (
            "Pick columns to see what learning would cost. Nothing is spent until you press Learn."
        )
        return _with(empty, said=said)
    try:
        columns, label = _asked(body)
        found = learner_of(body, price).quote(session.oracle(), columns, label)
    except SulqError as error:
        text = str(error)
        return _with(empty, state="refused", said=text[:1].upper() + text[1:] + ".")
    rounds = found.plan.rounds
    confirm = ""
    if price > LARGE * left:
        confirm = f"Yes, spend up to {price_text(price)} of my {left_text(left)} credits."
    return LearnQuote(
        state="large" if confirm else "ready",
        price=price_text(price),
        get=GETS[body.method],
        more=f"{rounds} {'question' if rounds == 1 else 'questions'}",
        own=left_text(max(left - price, Fraction(0))),
        own_whole=whole,
        shared=purse.shared,
        gauge=gauge(left, purse.own_whole, f"{own} of {whole} credits left", going=price),
        button=f"Learn for {credits_word(price)}",
        confirm=confirm,
        said="",
    )


def _with(quote: LearnQuote, **changes: str) -> LearnQuote:
    fields = {name: getattr(quote, name) for name in LearnQuote.__slots__}
    return LearnQuote(**{**fields, **changes})


# --- fitting ---

_running: set[tuple[str, str]] = set()
"""Tables and callers with a fit under way: one each."""


class FitRun:
    """One run: its events are read by the stream, its thread stops between two answers."""

    def __init__(self, session: TableSession, scheduler: Scheduler, body: LearnBody) -> None:
        self.session, self.scheduler, self.body = session, scheduler, body
        self.loop = asyncio.get_running_loop()
        self.events: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self.stop = threading.Event()
        self.spent, self.done, self.rounds = Fraction(0), 0, 0
        self.credits = body.credits or usual(session.left)

    def tell(self, event: dict[str, Any] | None) -> None:
        self.loop.call_soon_threadsafe(self.events.put_nowait, event)

    def work(self, base: str) -> None:
        """In a thread: learn, draw, tell. Whatever happens, the last event ends the stream."""
        try:
            self.tell({"html": self._learned(base), "state": "done"})
        except FitStopped:
            kept = f"{spent_text(self.spent)} spent; what was bought is kept, and free next time."
            self.tell({"html": note_of("info", "Stopped.", kept), "state": "stopped"})
        except TooNoisy as error:
            said = f"{str(error)[:1].upper()}{str(error)[1:]}. {spent_text(self.spent)} spent."
            note = ("warn", "The noise hides it.", said)
            self.tell({"html": note_of(*note), "state": "noisy"})
        except (SulqError, HttpProblem) as error:
            found = error if isinstance(error, HttpProblem) else problem_of(error, self.spent)
            said = f"{found.detail[:1].upper()}{found.detail[1:]}."
            note = ("warn", said, f"{spent_text(self.spent)} spent.")
            self.tell({"html": note_of(*note), "state": "refused"})
        finally:
            self.tell(None)

    def _learned(self, base: str) -> str:
        body, session = self.body, self.session
        oracle = session.oracle()
        columns, label = _asked(body)
        learner = learner_of(body, self.credits)
        warnings.filterwarnings("ignore", category=learners.NoisyResult)  # its notes say the same
        self.rounds = learner.quote(oracle, columns, label).plan.rounds
        learner.fit(PacedOracle(self, oracle), columns, label)
        given = (
            f"{body.groups}, " if body.method == "kmeans" else "2, " if body.method == "pca" else ""
        )
        given += f"credits={float(self.credits):g}"
        kind = KINDS[body.method]
        python = python_text(base, session.table, kind, given, columns, label or "")
        view = learned_view(learner, session.database.schema, label or "", python)
        return rendered("learn_parts.html#learned", view)

    def turn(self, load: Any) -> float:
        """Wait until the scheduler lets a question begin; return when that is."""
        arrived = self.scheduler.now()
        return self.wait(self.scheduler.turn(name_of(self.session.caller), arrived, load))

    def wait(self, waiting: Coroutine[Any, Any, T]) -> T:
        """Wait, in this thread, for what the event loop does."""
        return asyncio.run_coroutine_threadsafe(waiting, self.loop).result()

    def paid(self, credits: Fraction) -> None:
        self.spent += credits
        self.done += 1
        rounds = max(self.rounds, self.done)
        said = (
            f"Question {self.done} of about {rounds}, {price_text(self.spent)} of"
            f" {price_text(self.credits)} credits"
        )
        self.tell({"said": said, "share": self.done / rounds})


@router.get("/console/{table}/learn")
async def page(request: Request, session: Asker) -> Response:
    return await fragment(request, "learn.html", learn_view, session)


@router.post("/console/{table}/learn/quote")
async def quote(request: Request, session: Asker, body: LearnBody) -> Response:
    return await fragment(request, "learn_parts.html#quote", quote_view, session, body)


@router.post("/console/{table}/learn/fit")
async def fit(request: Request, session: Asker, body: LearnBody) -> Response:
    """Server-sent events: progress, then the picture. Closing the connection stops the fit."""
    session.oracle()
    name = (session.table, session.account)
    if name in _running:
        raise too_many(5)
    run = FitRun(session, request.app.state.workers.scheduler, body)
    base = base_of(request)

    async def stream() -> AsyncIterator[bytes]:
        _running.add(name)
        work = asyncio.ensure_future(run_reading(request, run.work, base))
        try:
            while (event := await run.events.get()) is not None:
                yield f"data: {json.dumps(event)}\n\n".encode()
        finally:
            run.stop.set()
            work.add_done_callback(lambda _: _running.discard(name))

    return StreamingResponse(stream(), media_type="text/event-stream")
