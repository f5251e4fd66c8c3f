"""The Publish page: six steps from a file to a promise, with the policy always in sight."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import Field

from sulq.accounting.calibration import calibrate
from sulq.accounting.confidence import USUAL_PRIOR, belief_up, moved, worst
from sulq.errors import SulqError
from sulq.policy import read_policy
from sulq.policy.survey import WHEN
from sulq.server import routes_drafts
from sulq.server.access import Caller
from sulq.server.console.beliefs_view import becomes, beliefs
from sulq.server.console.pages import Owner, filled, fragment, page
from sulq.server.console.publish_advice import AdviceView, advice_view
from sulq.server.console.publish_form import Fields, redraws, taken
from sulq.server.console.publish_notes import CHIPS, SideView, side_view
from sulq.server.console.risk_page import ATTACKS, AttacksView, attacks_view
from sulq.server.drafts import (
    WEAK,
    Draft,
    DraftColumn,
    draft_text,
    faults,
    published_files,
    sources,
    state_of,
)
from sulq.server.routes_drafts import DRAFTS, file_of, grid, home_of
from sulq.server.running import in_thread, service_of
from sulq.server.service import Service
from sulq.shown import bar_text, spelled

router = APIRouter(include_in_schema=False)
STEPS = (("source", "Source"), ("who", "Who is protected"), ("columns", "Columns"),
         ("promise", "Promise"), ("rehearse", "Rehearse"), ("publish", "Publish"))  # fmt: skip
LEADS = {
    "source": "Nothing is visible to anyone until the last step.",
    "who": "Nothing is visible to anyone until the last step.",
    "columns": "Nothing is visible to anyone until the last step. Undeclared columns stay hidden.",
    "promise": "The promise is made once. It can be tightened later, or the table closed; it can"
    " never be loosened quietly.",
    "rehearse": "Made-up rows under your schema and promise: numbers mean nothing, 0 credits.",
    "publish": "This cannot be undone. Read it once more.",
    "published": "It stands in the list of tables, and analysts may ask what you grant them.",
}
KINDS = (("number", "Number"), ("category", "Category"), ("flag", "Yes / no"),
         ("text", "Open text"), ("hidden", "Hidden"))  # fmt: skip
PROTECTION = {"1/2": "Stricter", "1": "Standard", "2": "Looser", "4": "Weak"}


@dataclass(frozen=True, slots=True)
class ColumnRow:
    at: int
    name: str
    type: str
    kind: str
    kinds: tuple[tuple[str, str], ...]
    low: str
    high: str
    values: str
    public: bool
    confirmed: bool
    state: str
    state_kind: str
    said: str
    fixed: str
    date: bool


@dataclass(frozen=True, slots=True)
class Cell:
    epsilon: str
    queries: int
    bar: str
    kind: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class SizeRow:
    name: str
    epsilon: str
    belief: str
    cells: tuple[Cell, ...]
    chosen: bool


@dataclass(frozen=True, slots=True)
class PublishView:
    table: str
    id: str
    step: str
    lead: str
    steps: tuple[tuple[str, str, str, int], ...]
    sources: tuple[str, ...]
    drafts: tuple[tuple[str, str, str], ...]
    waiting: tuple[str, ...]
    """Tables of the policy that are not published."""
    can: bool
    draft: Draft
    columns: tuple[ColumnRow, ...]
    askable: str
    sizes: tuple[SizeRow, ...]
    heads: tuple[tuple[str, bool], ...]
    promise: tuple[str, str, str, str]
    technical: str
    weak: bool
    side: SideView | None
    back: str
    next: str
    next_said: str
    missing: str
    """The field that Next leads to instead, while a column is not ready."""
    attacks: AttacksView | None
    faults: tuple[str, ...]
    advice: AdviceView | None
    """On the last step, once everything is declared."""
    csv: bool
    gone: bool
    published: PublishedView | None = None


@dataclass(frozen=True, slots=True)
class SavedView:
    """What a change of the draft changes on the page."""

    page: PublishView
    redrawn: bool
    rows: tuple[ColumnRow, ...]


@dataclass(frozen=True, slots=True)
class PublishedView:
    """What a draft has become."""

    draft: str
    table: str
    print: str
    written: bool
    text: str
    rehearsed: bool


_published: dict[str, PublishedView] = {}
"""By the number of the draft, while the server runs: its address goes on to lead somewhere."""


def publish_view(
    service: Service, caller: Caller, table: str, number: str = "", step: str = "source"
) -> PublishView:
    """One step of a draft; without a draft, where one begins."""
    tables = service.tables
    home = home_of(tables, caller) if number else None
    published = _published.get(number)
    gone = bool(number) and published is None and not DRAFTS.holds(number)
    if gone or published is not None:
        number, home = "", None
    place = None if tables.policy is None else tables.policy.parent
    can = place is not None and tables.publish is not None and caller.tables is None
    draft = DRAFTS.load(number) if number else Draft()
    step = step if number and step in dict(STEPS) else "source"
    order = [name for name, _ in STEPS]
    at = order.index(step)
    missing = tuple(faults(draft, home, tables.taken())) if home is not None else ()
    side = side_view(draft, home, step) if home is not None else None
    return PublishView(
        table=table,
        id=number,
        step=step,
        lead=LEADS["published" if published is not None else step],
        steps=tuple(
            (name, said, "done" if _done(name, place_ < at, draft, published) else "", place_ + 1)
            for place_, (name, said) in enumerate(STEPS)
        ),
        sources=_unpublished(tables.policy) if can else (),
        drafts=tuple((n, d.name, d.source) for n, d in DRAFTS.listed() if can and not number),
        waiting=tables.waiting if can and not number else (),
        can=can,
        draft=draft,
        columns=tuple(_row(i, column) for i, column in enumerate(draft.columns)),
        askable=_askable(draft),
        sizes=_sizes(draft) if step == "promise" else (),
        heads=tuple(
            (spelled(cell.queries, 0), cell.queries == draft.queries)
            for cell in (_sizes(draft)[0].cells if step == "promise" else ())
        ),
        promise=_promised(draft),
        technical=_technical(draft),
        weak=_weak(draft),
        side=side,
        back=order[at - 1] if at and number else "",
        next=order[at + 1] if at + 1 < len(order) else "",
        next_said=dict(STEPS)[order[at + 1]].lower() if at + 1 < len(order) else "",
        missing=_unready(draft) if step == "columns" else "",
        attacks=attacks_view(ATTACKS.of(draft.promise), f"/console/drafts/{number}")
        if step == "rehearse" else None,
        faults=missing,
        advice=advice_view(draft, file_of(tables, caller))
        if step == "publish" and not missing else None,
        csv=not draft.source.endswith(".parquet"),
        gone=gone,
        published=published,
    )  # fmt: skip


def _unpublished(file: Path | None) -> tuple[str, ...]:
    """Files beside the policy whose data is not a published table of it."""
    if file is None:
        return ()
    taken = published_files(read_policy(file, empty=True).values()) if file.exists() else set()
    return tuple(n for n in sources(file.parent) if (file.parent / n).resolve() not in taken)


def _done(name: str, passed: bool, draft: Draft, published: PublishedView | None) -> bool:
    """Whether a step has its tick: not before what it asks for was done."""
    if published is not None:
        return name != "rehearse" or published.rehearsed
    if name == "rehearse":
        return draft.rehearsed
    return passed and not (name == "columns" and _unready(draft))


def _row(at: int, column: DraftColumn) -> ColumnRow:
    found = state_of(column)
    fixed = {"flag": "yes, no, or missing", "text": "any text; asked about by its value",
             "hidden": "not asked about, ever"}.get(column.kind, "")  # fmt: skip
    return ColumnRow(
        at, column.name, column.type, column.kind, KINDS, column.low, column.high, column.values,
        column.public, column.confirmed, found.word, CHIPS[found.word], found.said, fixed,
        column.type.upper() in WHEN,
    )  # fmt: skip


def _unready(draft: Draft) -> str:
    waiting = [
        (at, column.kind, state_of(column).word) for at, column in enumerate(draft.columns)
        if state_of(column).word in ("fix", "todo", "confirm")
    ]  # fmt: skip
    if not waiting:
        return ""
    at, kind, word = waiting[0]
    fields = {"number": "low", "category": "values"}
    return f"{'sure' if word == 'confirm' else fields.get(kind, 'kind')}-{at}"


def _askable(draft: Draft) -> str:
    shown = [column for column in draft.columns if column.kind != "hidden"]
    ready = sum(state_of(column).word == "ready" for column in shown)
    return f"{ready} of {len(shown)} ready to ask about"


def _weak(draft: Draft) -> bool:
    try:
        return draft.promise.epsilon > WEAK
    except SulqError:
        return False


def _sizes(draft: Draft) -> tuple[SizeRow, ...]:
    """Coloured by the smallest group that the owner wants to compare."""
    rows = []
    for line in grid(draft.delta, draft.neighbours):
        epsilon = line["epsilon"]
        chosen = Fraction(draft.epsilon) == Fraction(epsilon)
        cells = tuple(
            Cell(
                epsilon,
                cell["queries"],
                f"± {bar_text(cell['bar'])}",
                size_kind(cell["bar"], draft.smallest),
                chosen and cell["queries"] == draft.queries,
            )
            for cell in line["bars"]
        )
        after = belief_up(moved(USUAL_PRIOR, float(Fraction(epsilon))))
        shown = f"{float(Fraction(epsilon)):g}"
        rows.append(SizeRow(PROTECTION[epsilon], shown, f"40 % → {after} %", cells, chosen))
    return tuple(rows)


def size_kind(bar: float, smallest: int) -> str:
    """ "" under 3 % of the smallest group, "warn" up to 8 %, "bad" above."""
    share = bar / smallest
    return "" if share < 0.03 else "warn" if share <= 0.08 else "bad"


def _promised(draft: Draft) -> tuple[str, str, str, str]:
    try:
        promise = draft.promise
        bar = calibrate(promise).unit_bar
        after = beliefs(promise, Fraction(0)).after()
    except SulqError:
        return ("", "", "", "")
    return (f"{spelled(draft.queries, 0)} credits", f"± {bar_text(bar)}",
            f"{round(100 * USUAL_PRIOR)} %", after)  # fmt: skip


def _technical(draft: Draft) -> str:
    try:
        promise = draft.promise
        sigma = calibrate(promise).unit_standard_deviation
        belief = becomes(worst(promise))
    except SulqError as error:
        return str(error)
    near = "one row replaced" if promise.neighbours == "replace" else "one row more or less"
    return (
        f"In technical terms: (ε = {float(promise.epsilon):g}, δ = {float(promise.delta):g}),"
        f" {near}, {promise.noise} noise with standard deviation {sigma:.4g}; holds for questions"
        f" chosen on the way. {belief}."
    )


Step = Annotated[str, Query(max_length=20)]
Number = Annotated[str, Query(max_length=64)]


@router.get("/console/{table}/publish")
async def publish(
    request: Request, table: str, caller: Owner, draft: Number = "", step: Step = "source"
) -> Response:
    return await fragment(request, "publish.html", publish_view, caller, table, draft, step)


def saved_view(
    service: Service, caller: Caller, table: str, number: str, step: str, fields: Fields
) -> SavedView:
    """Kept also while it is wrong; the page says what is missing."""
    home_of(service.tables, caller)
    before = DRAFTS.load(number)
    after = taken(before, fields)
    DRAFTS.save(number, after)
    shown = publish_view(service, caller, table, number, step)
    rows = tuple(
        row for row in shown.columns if before.columns[row.at] != after.columns[row.at]
    )  # fmt: skip
    return SavedView(shown, redraws(before, after), rows)


Filled = dict[str, Annotated[str, Field(max_length=20_000)]]


@router.post("/console/{table}/drafts")
async def begin(request: Request, table: str, body: Filled, caller: Owner) -> Response:
    made = await routes_drafts.begun(request, filled(routes_drafts.Source, **body), caller)
    return page("go.html", f"/t/{quote(table, safe='')}/publish?draft={made['id']}")


@router.post("/console/{table}/drafts/{number}/save")
async def save(
    request: Request, table: str, number: str, body: Filled, caller: Owner, step: Step = "source"
) -> Response:
    given = (caller, table, number, step, body)
    return await fragment(request, "publish_saved.html", saved_view, *given)


@router.post("/console/{table}/drafts/{number}/remove")
async def remove(request: Request, table: str, number: str, caller: Owner) -> Response:
    await routes_drafts.removed(request, number, caller)
    return page("go.html", f"/t/{quote(table, safe='')}/publish")


@router.post("/console/{table}/drafts/{number}/rehearse")
async def rehearse(request: Request, table: str, number: str, caller: Owner) -> Response:
    done = await routes_drafts.rehearse(request, number, caller)
    return page("rehearsed.html", done["questions"])


@router.post("/console/{table}/drafts/{number}/publish")
async def for_good(
    request: Request, table: str, number: str, body: Filled, caller: Owner
) -> Response:
    ticks = filled(routes_drafts.Ticks, **dict.fromkeys(body, True))
    tables = service_of(request).tables

    def drafted() -> tuple[Draft, str]:
        draft = DRAFTS.load(number)
        return draft, draft_text(draft, home_of(tables, caller))

    draft, text = await in_thread(request, drafted)
    done = await routes_drafts.publish(request, number, ticks, caller)
    _published[number] = PublishedView(
        number,
        done["table"],
        done["fingerprint"][:16],
        done["policy_written"],
        text,
        draft.rehearsed,
    )
    return page("go.html", f"/t/{quote(done['table'], safe='')}/publish?draft={number}")


def attacked(service: Service, caller: Caller, number: str, begin: bool = False) -> AttacksView:
    home_of(service.tables, caller)
    promise = DRAFTS.load(number).promise
    run = ATTACKS.begin(promise) if begin else ATTACKS.of(promise)
    return attacks_view(run, f"/console/drafts/{number}")


@router.post("/console/drafts/{number}/attack")
async def attack(request: Request, number: str, caller: Owner) -> Response:
    return await fragment(request, "attacks.html", attacked, caller, number, True)


@router.get("/console/drafts/{number}/attacks")
async def attacks(request: Request, number: str, caller: Owner) -> Response:
    return await fragment(request, "attacks.html", attacked, caller, number)
