"""The Publish page: six steps from a file to a promise, with the policy always in sight."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from sulq.accounting.calibration import calibrate
from sulq.accounting.confidence import USUAL_PRIOR, belief_up, moved, worst
from sulq.errors import SulqError
from sulq.policy.survey import WHEN
from sulq.server.access import Caller
from sulq.server.console.beliefs_view import becomes, beliefs
from sulq.server.console.pages import Owner, fragment
from sulq.server.console.publish_notes import CHIPS, SideView, side_view
from sulq.server.console.risk_page import ATTACKS, AttacksView, attacks_view
from sulq.server.drafts import WEAK, Draft, DraftColumn, faults, sources, state_of
from sulq.server.routes_drafts import DRAFTS, grid, home_of
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
    can: bool
    draft: Draft
    raw: str
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
    attacks: AttacksView | None
    faults: tuple[str, ...]
    csv: bool


def publish_view(
    service: Service, caller: Caller, table: str, number: str = "", step: str = "source"
) -> PublishView:
    """One step of a draft; without a draft, where one begins."""
    tables = service.tables
    home = home_of(tables, caller) if number else None
    place = None if tables.policy is None else tables.policy.parent
    draft = DRAFTS.load(number) if number else Draft()
    step = step if number and step in dict(STEPS) else "source"
    order = [name for name, _ in STEPS]
    at = order.index(step)
    missing = tuple(faults(draft, home, tables.names())) if home is not None else ()
    side = side_view(draft, home, missing, step) if home is not None else None
    return PublishView(
        table=table,
        id=number,
        step=step,
        lead=LEADS[step],
        steps=tuple(
            (name, said, "done" if number and place_ < at else "", place_ + 1)
            for place_, (name, said) in enumerate(STEPS)
        ),
        sources=tuple(sources(place)),
        drafts=tuple((n, d.name, d.source) for n, d in DRAFTS.listed()) if not number else (),
        can=place is not None and tables.publish is not None and caller.tables is None,
        draft=draft,
        raw=draft.model_dump_json(),
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
        attacks=attacks_view(ATTACKS.of(draft.promise), table) if step == "rehearse" else None,
        faults=missing,
        csv=".csv" in draft.source,
    )  # fmt: skip


def _row(at: int, column: DraftColumn) -> ColumnRow:
    found = state_of(column)
    fixed = {"flag": "yes, no, or missing", "text": "any text; asked about by its value",
             "hidden": "not asked about, ever"}.get(column.kind, "")  # fmt: skip
    return ColumnRow(
        at, column.name, column.type, column.kind, KINDS, column.low, column.high, column.values,
        column.public, column.confirmed, found.word, CHIPS[found.word], found.said, fixed,
        column.type.upper() in WHEN,
    )  # fmt: skip


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
        bar = 1.96 * calibrate(promise).unit_standard_deviation
        after = beliefs(promise, Fraction(0)).after()
    except SulqError:
        return ("", "", "", "")
    return (f"{spelled(draft.queries, 0)} questions", f"± {bar_text(bar)}",
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


def side(service: Service, caller: Caller, number: str, step: str) -> SideView:
    home = home_of(service.tables, caller)
    draft = DRAFTS.load(number)
    return side_view(draft, home, tuple(faults(draft, home, service.tables.names())), step)


@router.get("/console/drafts/{number}/side")
async def beside(request: Request, number: str, caller: Owner, step: Step = "columns") -> Response:
    return await fragment(request, "publish_side.html", side, caller, number, step)


@router.post("/console/drafts/{number}/attack")
async def attack(request: Request, number: str, caller: Owner) -> Response:
    def begin(service: Service, caller: Caller) -> AttacksView:
        home_of(service.tables, caller)
        return attacks_view(ATTACKS.begin(DRAFTS.load(number).promise), "")

    return await fragment(request, "attacks.html", begin, caller)


@router.get("/console/drafts/{number}/attacks")
async def attacks(request: Request, number: str, caller: Owner) -> Response:
    def state(service: Service, caller: Caller) -> AttacksView:
        home_of(service.tables, caller)
        return attacks_view(ATTACKS.of(DRAFTS.load(number).promise), "")

    return await fragment(request, "attacks.html", state, caller)
