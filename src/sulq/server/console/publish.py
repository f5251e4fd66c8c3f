"""The Publish page: six steps from a file to a promise, with the policy always in sight."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response
from pydantic import Field

from sulq.beliefs.confidence import USUAL_PRIOR, belief_up, moved, worst
from sulq.errors import SulqError
from sulq.formatting import bar_text, spelled
from sulq.kernel.accounting.calibration import calibrate
from sulq.kernel.schema.promise import Promise
from sulq.policy import read_policy
from sulq.policy.advice import Advice, ColumnAdvice
from sulq.policy.identifiers import id_named
from sulq.policy.survey import WHEN
from sulq.server.auth.tokens import Caller, Role, require
from sulq.server.console.framework import filled, fragment, go_to, page
from sulq.server.console.related_releases import becomes, beliefs
from sulq.server.console.risk import ATTACKS, AttacksView, attacks_view, rebuilding_limit
from sulq.server.drafts import (
    WEAK,
    Draft,
    DraftColumn,
    State,
    advised,
    draft_text,
    faults,
    published_files,
    rows_of,
    sources,
    state_of,
)
from sulq.server.executor import Owner, run_free, service_of
from sulq.server.routes import drafts as routes_drafts
from sulq.server.routes.drafts import DRAFTS, file_of, grid, home_of
from sulq.server.service.session import Service, TableSession

TEXTS = ("name", "neighbours", "epsilon", "delta", "reason")
WHOLE = ("max_rows", "queries", "smallest")
TYPED = {"name", "reason", "low", "high", "values"}
"""A change of these redraws no field: only what is said of them."""
SAID = ("identifier_ok", "partial", "known")
"""What an owner says of a column on the last step, having read the advice."""
Fields = Mapping[str, str]


def taken(draft: Draft, fields: Fields) -> Draft:
    """The draft with a step's fields in it; fields of other steps stay as they are."""
    new = draft.model_dump()
    new |= {name: fields[name] for name in TEXTS if name in fields}
    new |= {name: _whole(fields[name]) for name in WHOLE if name in fields}
    kept = f"{draft.epsilon}|{draft.queries}"
    if (cell := fields.get("cell", kept)) != kept:  # picked in the grid: it goes before the fields
        epsilon, _, queries = cell.partition("|")
        new |= {"epsilon": epsilon, "queries": _whole(queries)}
    if "advised" in fields:
        new["apart"] = "apart" in fields
    if "unit" in fields:
        new["unit"] = _unit(draft, fields)
    new["columns"] = [_column(at, column, fields) for at, column in enumerate(draft.columns)]
    return filled(Draft, **new)


def redraws(before: Draft, after: Draft) -> bool:
    """Whether the step looks different, beyond what is being typed into it."""

    def choices(draft: Draft) -> dict[str, Any]:
        columns = [column.model_dump(exclude=TYPED) for column in draft.columns]
        return {**draft.model_dump(exclude=TYPED), "columns": columns}

    return choices(before) != choices(after)


def _column(at: int, column: DraftColumn, fields: Fields) -> dict[str, Any]:
    new = column.model_dump()
    for name in ("kind", "low", "high", "values"):
        new[name] = fields.get(f"{name}-{at}", new[name])
    if any(new[name] != getattr(column, name) for name in ("kind", "low", "high", "values")):
        new["known"] = new["partial"] = False  # said of other bounds or values
    if "advised" in fields and column.kind != "hidden":
        new |= {name: f"{name}-{at}" in fields for name in SAID}
    if f"public-{at}" in fields:
        new["public"] = fields[f"public-{at}"] == "yes"
        new["confirmed"] = column.public and new["public"] and f"confirmed-{at}" in fields
    return new


def _unit(draft: Draft, fields: Fields) -> str:
    """A row, or the column that tells people apart: at first the one that looks like it."""
    names = [column.name for column in draft.columns]
    if fields["unit"] == "row" or not names:
        return "row"
    keys = [name for name in names if id_named(name)]
    return fields.get("unit_column", (keys or names)[0])


def _whole(text: str) -> int:
    try:
        return max(1, round(float(text)))
    except (ValueError, OverflowError):
        return 1


# What stands beside the Publish wizard: warnings, what analysts will get, the policy.


FEW_ROWS = 10_000
CHIPS = {"ready": "ok", "confirm": "warn", "fix": "bad", "todo": "warn", "hidden": ""}


class Note(NamedTuple):
    """A remark beside a step of publishing: how grave it is, a bold sentence, and the rest."""

    kind: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class SideView:
    notes: tuple[Note, ...]
    gets: tuple[tuple[str, str, bool], ...]
    text: str


def side_view(draft: Draft, home: Path, step: str) -> SideView:
    """What stands on the right: warnings, what analysts will get, the policy."""
    notes: list[Note] = []
    if step == "columns":
        notes = column_notes([(column.name, state_of(column)) for column in draft.columns])
    elif step in ("promise", "publish"):
        notes = promise_notes(draft, home)
    gets = _gets(draft) if step == "promise" else ()
    return SideView(tuple(notes), gets, draft_text(draft, home))


def column_notes(states: list[tuple[str, State]]) -> list[Note]:
    notes = [
        Note(
            "warn",
            f"Is {name} really public?",
            "“Public” means: anyone may already know it for everyone in the table. Its sizes are"
            " then given exactly and free of charge. If it is a secret, choose private.",
        )
        for name, state in states
        if state.word == "confirm"
    ]
    wrong = [name for name, state in states if state.word in ("fix", "todo")]
    if wrong:
        things = f"{len(wrong)} thing{'s' if len(wrong) > 1 else ''} to fix"
        notes.append(Note("bad", things, f"before you can go on: {', '.join(wrong[:8])}."))
    notes.append(
        Note(
            "info",
            "Do not read bounds off the data.",
            "A maximum is one person's value."
            " Take what everybody knows; what lies beyond counts as the bound.",
        )
    )
    return notes


def promise_notes(draft: Draft, home: Path) -> list[Note]:
    notes: list[Note] = []
    try:
        promise = draft.promise
        bar = calibrate(promise).unit_bar
        limit = rebuilding_limit(promise, calibrate(promise).unit_standard_deviation)
    except SulqError as error:
        return [Note("bad", "This promise cannot be kept.", str(error))]
    if bar > 0.03 * draft.smallest:
        fewer = Promise(
            draft.epsilon, draft.delta, max(1, draft.queries // 10), neighbours=draft.neighbours
        )
        sharper = bar_text(calibrate(fewer).unit_bar)
        notes.append(
            Note(
                "warn",
                "Small groups will not be answerable.",
                f"Below about {spelled(_two(10 * bar), 0)} a count is more than 10 % off. If you"
                f" need those, choose {spelled(max(1, draft.queries // 10), 0)} credits"
                f" (± {sharper}) rather than weaker protection.",
            )
        )
    if promise.epsilon > WEAK:
        after = belief_up(moved(USUAL_PRIOR, float(promise.epsilon)))
        notes.append(
            Note(
                "bad",
                f"Weak: 40 % can become {after} %.",
                "Write down why; it stands in the policy for everyone to read.",
            )
        )
    rows = rows_of(home, draft)
    if rows is not None and rows < FEW_ROWS:
        notes.append(
            Note(
                "warn",
                "A small table.",
                f"Below {spelled(FEW_ROWS, 0)} rows the noise is large beside most answers.",
            )
        )
    notes.append(
        Note(
            "info",
            "Are these people in another table here?",
            "Then the promises add up: publish both on one ledger, with sulq init and one policy.",
        )
    )
    share = f"{belief_up(limit) if limit > 0.9 else round(100 * limit + 0.05, 1)} %"
    notes.append(Note("ok", "Checked.", f"Rebuilding attack: at most {share} right (coin: 50 %)."))
    return notes


def _two(value: float) -> float:
    """Two digits, rounded up."""
    place = 10.0 ** max(0, len(str(int(value))) - 2)
    return math.ceil(value / place) * place


def _gets(draft: Draft) -> tuple[tuple[str, str, bool], ...]:
    """(question, bar, unusable) for a few questions, from bounds alone."""
    try:
        bar = calibrate(draft.promise).unit_bar
    except SulqError:
        return ()
    return (
        ("A count of anybody", f"± {bar_text(bar)}", False),
        *(
            (f"The same, in a group of {spelled(size, 0)}", *_relative(bar / size))
            for size in sorted({draft.smallest, 100_000, 500}, reverse=True)
        ),
    )


def _relative(share: float) -> tuple[str, bool]:
    return ("unusable", True) if share > 0.25 else (f"± {math.ceil(1000 * share) / 10:g} %", False)


# The adviser on the wizard's last step: what `sulq check` says, with a tick for each verdict that
# the owner may overrule. It reads rows, for the owner of all tables and files not yet published.


OVERRULED = {
    "identifier": ("identifier_ok", "Everybody may ask about single values of it."),
    "proposed": ("known", "Everybody may know these bounds or values."),
    "unreadable": ("partial", "The others may count as missing."),
    "undeclared": ("partial", "The others may count as missing."),
    "outside": ("partial", "The others may be moved to the bounds."),
}
"""By mark: the field that overrules it, and what its owner says by a tick."""
Tick = tuple[str, str, bool]
"""Name of the field, label, whether it is ticked."""


@dataclass(frozen=True, slots=True)
class AdviceRow:
    name: str
    declared: str
    readable: str
    bands: tuple[tuple[str, str], ...]
    """(kind of chip, band) of what is readable, and of what is inside or declared."""
    faults: tuple[str, ...]
    ticks: tuple[Tick, ...]


@dataclass(frozen=True, slots=True)
class AdviceView:
    refused: str
    """Why the rows cannot be read as declared; empty if they can."""
    ready: bool = False
    sentence: str = ""
    lines: tuple[tuple[str, tuple[str, ...]], ...] = ()
    rows: tuple[AdviceRow, ...] = ()
    said: tuple[AdviceRow, ...] = ()
    """Rows with something to mend, or to overrule."""
    warnings: tuple[str, ...] = ()
    shared: str = ""
    apart: Tick | None = None


def advice_view(draft: Draft, file: Path) -> AdviceView:
    try:
        found = advised(draft, file)
    except SulqError as error:
        return AdviceView(str(error))
    places = {column.name: (at, column) for at, column in enumerate(draft.columns)}
    rows = tuple(_advice_row(column, *places[column.name]) for column in found.columns)
    return AdviceView(
        refused="",
        ready=found.ready,
        sentence=found.sentence,
        lines=_lines(found),
        rows=rows,
        said=tuple(row for row in rows if row.faults or row.ticks),
        warnings=tuple(_sentence(warning) for warning in found.warnings),
        shared="" if found.shared is None else _sentence(found.shared.why),
        apart=("apart", "Nobody is in two of them.", draft.apart)
        if draft.apart or found.shared is not None
        else None,
    )


def _lines(found: Advice) -> tuple[tuple[str, tuple[str, ...]], ...]:
    count = f"off by up to ± {bar_text(found.bar)} in 95 of 100 cases"
    price = "" if found.price == 1 else f", for {spelled(found.price, 0)} credits each"
    lines = [
        ("Who is protected", (found.protected, *(_proposal(name) for name in found.repeats))),
        ("Public, exact and free for everybody", found.public or ("nothing",)),
        ("Hidden", (", ".join(found.hidden) or "nothing",)),
        ("A count", (f"{count}; the budget buys {spelled(found.counts, 0)}{price}",)),
    ]
    kept = found.kept
    if kept is not None:
        own = found.policy.max_rows
        shares = ", ".join(
            f"{most}{' (yours)' if most == own else ''}: {100 * share:.1f} %"
            for most, share in kept.shares.items()
        )
        people = f"{spelled(kept.persons, 0)}, with {kept.rows_per_person:.3g} rows each on average"
        lines.append(("Persons", (people, f"rows that count, by most rows for a person: {shares}")))
    return tuple(lines)


def _proposal(name: str) -> str:
    return f"{name} repeats: if it tells people apart, choose it under Who is protected"


def _advice_row(column: ColumnAdvice, at: int, typed: DraftColumn) -> AdviceRow:
    ticks: dict[str, Tick] = {}
    for mark, (name, label) in OVERRULED.items():
        if mark in column.marks or (getattr(typed, name) and name not in ticks):
            ticks[name] = (f"{name}-{at}", label, getattr(typed, name))
    readable = ""
    if column.readable is not None and column.there is not None:
        readable = f"{spelled(column.readable, 0)} of {spelled(column.there, 0)}"
    return AdviceRow(
        name=column.name,
        declared=column.declared,
        readable=readable,
        bands=tuple(
            (BAND_KINDS.get(band, ""), band)
            for band in (column.readable_band, column.within_band)
            if band is not None
        ),
        faults=tuple(f"{fault.why}." for fault in column.faults),
        ticks=tuple(ticks.values()),
    )


BAND_KINDS = {"at least 99 %": "ok", "90 to 99 %": "warn", "below 90 %": "bad"}


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


# What an owner fills in on a step of the Publish wizard, written into the draft.


router = APIRouter(include_in_schema=False)
STEPS = (
    ("source", "Source"),
    ("who", "Who is protected"),
    ("columns", "Columns"),
    ("promise", "Promise"),
    ("rehearse", "Rehearse"),
    ("publish", "Publish"),
)
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
KINDS = (
    ("number", "Number"),
    ("category", "Category"),
    ("flag", "Yes / no"),
    ("text", "Open text"),
    ("whole", "Open whole numbers"),
    ("hidden", "Hidden"),
)
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
class ColumnCell:
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
    cells: tuple[ColumnCell, ...]
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


def publish_view(session: TableSession, number: str = "", step: str = "source") -> PublishView:
    """One step of a draft; without a draft, where one begins."""
    tables, caller = session.service.tables, session.caller
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
        table=session.table,
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
        if step == "rehearse"
        else None,
        faults=missing,
        advice=advice_view(draft, file_of(tables, caller))
        if step == "publish" and not missing
        else None,
        csv=not draft.source.endswith(".parquet"),
        gone=gone,
        published=published,
    )


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
    fixed = {
        "flag": "yes, no, or missing",
        "text": "any text; asked about by its value",
        "whole": "any whole number; asked about by its value",
        "hidden": "not asked about, ever",
    }.get(column.kind, "")
    return ColumnRow(
        at=at,
        name=column.name,
        type=column.type,
        kind=column.kind,
        kinds=KINDS,
        low=column.low,
        high=column.high,
        values=column.values,
        public=column.public,
        confirmed=column.confirmed,
        state=found.word,
        state_kind=CHIPS[found.word],
        said=found.said,
        fixed=fixed,
        date=column.type.upper() in WHEN,
    )


def _unready(draft: Draft) -> str:
    waiting = [
        (at, column.kind, state_of(column).word)
        for at, column in enumerate(draft.columns)
        if state_of(column).word in ("fix", "todo", "confirm")
    ]
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
            ColumnCell(
                epsilon=epsilon,
                queries=cell["queries"],
                bar=f"± {bar_text(cell['bar'])}",
                kind=size_kind(cell["bar"], draft.smallest),
                chosen=chosen and cell["queries"] == draft.queries,
            )
            for cell in line["bars"]
        )
        after = belief_up(moved(USUAL_PRIOR, float(Fraction(epsilon))))
        shown = f"{float(Fraction(epsilon)):g}"
        rows.append(
            SizeRow(
                name=PROTECTION[epsilon],
                epsilon=shown,
                belief=f"40 % → {after} %",
                cells=cells,
                chosen=chosen,
            )
        )
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
    return (
        f"{spelled(draft.queries, 0)} credits",
        f"± {bar_text(bar)}",
        f"{round(100 * USUAL_PRIOR)} %",
        after,
    )


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


AnOwner = Annotated[Caller, Depends(require(Role.OWNER))]
Step = Annotated[str, Query(max_length=20)]
Number = Annotated[str, Query(max_length=64)]


@router.get("/console/{table}/publish")
async def publish(
    request: Request, session: Owner, draft: Number = "", step: Step = "source"
) -> Response:
    return await fragment(request, "publish.html", publish_view, session, draft, step)


def saved_view(session: TableSession, number: str, step: str, fields: Fields) -> SavedView:
    """Kept also while it is wrong; the page says what is missing."""
    home_of(session.service.tables, session.caller)
    before = DRAFTS.load(number)
    after = taken(before, fields)
    DRAFTS.save(number, after)
    shown = publish_view(session, number, step)
    rows = tuple(row for row in shown.columns if before.columns[row.at] != after.columns[row.at])
    return SavedView(shown, redraws(before, after), rows)


Filled = dict[str, Annotated[str, Field(max_length=20_000)]]


@router.post("/console/{table}/drafts")
async def begin(request: Request, session: Owner, body: Filled) -> Response:
    made = await routes_drafts.begun(
        request, filled(routes_drafts.DraftSource, **body), session.caller
    )
    return go_to(f"/t/{quote(session.table, safe='')}/publish?draft={made['id']}")


@router.post("/console/{table}/drafts/{number}/save")
async def save(
    request: Request, session: Owner, number: str, body: Filled, step: Step = "source"
) -> Response:
    given = (session, number, step, body)
    return await fragment(request, "publish_parts.html#saved", saved_view, *given)


@router.post("/console/{table}/drafts/{number}/remove")
async def remove(request: Request, session: Owner, number: str) -> Response:
    await routes_drafts.removed(request, number, session.caller)
    return go_to(f"/t/{quote(session.table, safe='')}/publish")


@router.post("/console/{table}/drafts/{number}/rehearse")
async def rehearse(request: Request, session: Owner, number: str) -> Response:
    done = await routes_drafts.rehearse(request, number, session.caller)
    return page("publish_parts.html#rehearsed", done["questions"])


@router.post("/console/{table}/drafts/{number}/publish")
async def for_good(request: Request, session: Owner, number: str, body: Filled) -> Response:
    ticks = filled(routes_drafts.Ticks, **dict.fromkeys(body, True))
    tables, caller = session.service.tables, session.caller

    def drafted() -> tuple[Draft, str]:
        draft = DRAFTS.load(number)
        return draft, draft_text(draft, home_of(tables, caller))

    draft, text = await run_free(request, drafted)
    done = await routes_drafts.publish(request, number, ticks, caller)
    _published[number] = PublishedView(
        draft=number,
        table=done["table"],
        print=done["fingerprint"][:16],
        written=done["policy_written"],
        text=text,
        rehearsed=draft.rehearsed,
    )
    return go_to(f"/t/{quote(done['table'], safe='')}/publish?draft={number}")


def attacked(service: Service, caller: Caller, number: str, begin: bool = False) -> AttacksView:
    home_of(service.tables, caller)
    promise = DRAFTS.load(number).promise
    run = ATTACKS.begin(promise) if begin else ATTACKS.of(promise)
    return attacks_view(run, f"/console/drafts/{number}")


@router.post("/console/drafts/{number}/attack")
async def attack(request: Request, number: str, caller: AnOwner) -> Response:
    return await fragment(
        request, "attacks.html#attacks", attacked, service_of(request), caller, number, True
    )


@router.get("/console/drafts/{number}/attacks")
async def attacks(request: Request, number: str, caller: AnOwner) -> Response:
    return await fragment(
        request, "attacks.html#attacks", attacked, service_of(request), caller, number
    )
