"""The Budget page: a lifetime, what it bought, how fast it goes, and who holds it."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean, pstdev

from fastapi import APIRouter, Request
from fastapi.responses import Response
from markupsafe import Markup

from sulq.beliefs.confidence import USUAL_PRIOR
from sulq.database import Database
from sulq.formatting import bar_text, left_text, ordinal, price_text
from sulq.kernel.ledger.budget import OWNER
from sulq.server.auth import grants
from sulq.server.auth.tokens import Role
from sulq.server.console.charts import LOW, gauge
from sulq.server.console.examples import count_prices
from sulq.server.console.framework import Balance, balance_of, fragment
from sulq.server.console.history import (
    CHANGES,
    DAY,
    Event,
    bought,
    change_text,
    day_text,
    history,
    when_text,
)
from sulq.server.console.plots import Plot
from sulq.server.console.related_releases import RelatedRelease, beliefs, standing
from sulq.server.executor import Anybody
from sulq.server.service.session import TableSession

WINDOW = 30
LEAST_DAYS = 7
HORIZON = 3_650
"""Days that are looked ahead; what lasts longer has no date."""
Z_BAND = 1.2816
"""Four of five lie within so many deviations."""
NEAR = 1e-9


@dataclass(frozen=True, slots=True)
class BudgetForecast:
    """Days from now until nothing is left: early, middle, late; None: beyond the horizon."""

    early: float | None
    middle: float | None
    late: float | None
    pace: float


def daily(times: Sequence[int], amounts: Sequence[float], opened: int, now: float) -> list[float]:
    """What each of the last days cost, the latest first; as many as there were, at most 30."""
    days = min(WINDOW, int((now - opened) // 86_400))
    spent = [0.0] * days
    for at, amount in zip(times, amounts, strict=True):
        place = int((now - at) // 86_400)
        if 0 <= place < days:
            spent[place] += amount
    return spent


def forecast(spent: Sequence[float], left: float) -> BudgetForecast | None:
    """Days until `left` is gone if past days come again at random, 80 % of them between early and
    late; None: too early. The sum of n such days is near normal: n m + z s sqrt(n) = left."""
    if len(spent) < LEAST_DAYS or left <= 0:
        return None
    mean, spread = fmean(spent), pstdev(spent)
    if mean <= 0:
        return BudgetForecast(None, None, None, 0.0)
    least = math.ceil(left / max(spent) - NEAR)
    found: list[float | None] = []
    for z in (Z_BAND, 0.0, -Z_BAND):
        root = (math.hypot(z * spread, 2 * math.sqrt(mean * left)) - z * spread) / (2 * mean)
        days = max(least, math.ceil(root**2 - NEAR))
        found.append(None if days > HORIZON else float(days))
    return BudgetForecast(found[0], found[1], found[2], mean)


# When credits run out at the pace of late: past days come again, with a band.


router = APIRouter(include_in_schema=False)
MOST_CHANGES = 8
SHARPER = 4


@dataclass(frozen=True, slots=True)
class AccountRow:
    name: str
    role: str
    left: str
    of: str
    gauge: Markup
    rate: str
    last: str
    chip: str
    chip_kind: str


@dataclass(frozen=True, slots=True)
class BudgetView:
    table: str
    whose: str
    left: str
    whole: str
    enough: tuple[tuple[str, str], ...]
    belief: tuple[str, str, str]
    epsilons: str
    gauge: Markup
    legend: tuple[tuple[str, str], ...]
    table_line: str
    pace: str
    chart: Markup | None
    outlook: str
    accounts: tuple[AccountRow, ...]
    free: str
    bought: tuple[tuple[str, str, Markup], ...]
    changes: tuple[tuple[str, str, str, str], ...]
    report: bool
    closed: str
    standing: RelatedRelease


def budget_view(session: TableSession, now: float | None = None) -> BudgetView:
    """Prices and public facts; an analyst sees the own account and the table's total."""
    moment = time.time() if now is None else now
    database = session.database
    events, _ = history(database)
    purse = balance_of(session)
    mine = session.caller.name if purse.shared else None
    own = [event for event in events if mine is None or event.analyst == mine]
    statement = database.statement().statement
    held = beliefs(database.promise, statement.spent.credits_fraction)
    left, whole = (purse.own_left, purse.own_whole) if mine else (purse.left, purse.whole)
    reserved = Fraction(0) if mine else min(statement.reserved.credits_fraction, left)
    spent = max(whole - left, Fraction(0))
    line = _path(own, whole, left, mine is not None)
    found = _forecast(own, left, line[0][0] if line else 0, moment, mine is not None)
    so_far, at_end = held.epsilons()
    ended = statement.closed
    return BudgetView(
        table=session.table,
        whose="Left of your share" if mine else "Left in this table",
        left=left_text(left),
        whole=left_text(whole),
        enough=NOTHING if ended is not None else enough(database, session.table, left),
        belief=(f"{round(100 * USUAL_PRIOR)} %", held.now(), held.after()),
        epsilons=f"(ε {so_far} of {at_end})",
        gauge=gauge(
            left,
            whole,
            f"{left_text(left)} of {left_text(whole)} credits left",
            going=reserved,
            tall=True,
        ),
        legend=_legend(left, reserved, spent),
        table_line=_table_line(purse),
        pace=f"last 30 days: {bar_text(found.pace)} credits a day" if found else "",
        chart=_chart(line, whole, left, found, moment) if _lasted(line, moment) else None,
        outlook=outlook(found, moment, left) + _granted(purse, statement.granted_left),
        accounts=_accounts(session, events) if session.caller.role == Role.OWNER else (),
        free=left_text(database.remaining),
        bought=_bought(own, mine is not None),
        changes=_changes(events, session),
        report=session.caller.role != Role.ANALYST,
        closed=ended.reason or "no reason given" if ended is not None else "",
        standing=standing(session),
    )


NOTHING = (("nothing", "more: this table is closed for good"),)


def enough(database: Database, table: str, left: Fraction) -> tuple[tuple[str, str], ...]:
    """What is left, in three currencies: counts, histograms, sharp counts."""
    whom, _ = count_prices(database, table)
    laplace = database.promise.noise == "laplace"
    each = database.schema.max_rows  # groups that one of them may be in
    histogram = each * 2 if database.promise.neighbours == "replace" else each
    sharp = SHARPER if laplace else SHARPER**2  # S4.13, S4.1
    plain, sharper = (database.calibration.count_bar(Fraction(of)) for of in (1, sharp))
    lines = [
        (int(left / whom), f"counts at ±\u00a0{bar_text(plain)}"),
        (int(left / histogram / whom), "histograms"),
        (int(left / sharp / whom), f"counts at ±\u00a0{bar_text(sharper)}"),
    ]
    if database.calibration.unit_law is not None:  # noise of one size: none is sharper
        lines = lines[:2]
    told = tuple((left_text(Fraction(many)), what) for many, what in lines if many)
    return told or (("no", "whole question at the plain price"),)


def _legend(left: Fraction, reserved: Fraction, spent: Fraction) -> tuple[tuple[str, str], ...]:
    lines = [("", f"{left_text(left - reserved)} free")]
    if reserved:
        lines.append(("two", f"{price_text(reserved)} reserved by running work"))
    return (*lines, ("none", f"{price_text(spent)} spent for good"))


def _table_line(purse: Balance) -> str:
    if not purse.shared:
        return ""
    return f"The table has {left_text(purse.left)} of {left_text(purse.whole)} credits left."


def _granted(purse: Balance, granted: object) -> str:
    if purse.shared or not purse.left:
        return ""
    kept: Fraction = granted.credits_fraction  # type: ignore[attr-defined]
    free = max(purse.left - kept, Fraction(0))
    return (
        f" Of the {left_text(purse.left)} left, {price_text(kept)} are in granted shares and"
        f" {left_text(free)} are not granted."
    )


def _path(
    events: list[Event], whole: Fraction, left: Fraction, shared: bool
) -> list[tuple[float, float]]:
    """(time, credits left) after each charge, drawn so that it ends at what is left."""
    start = next((e.at for e in events if e.kind == ("grant" if shared else "table")), 0)
    if not start:
        return []
    charged = [e for e in events if e.asked and (e.share if shared else e.credits)]
    total = sum((e.share if shared else e.credits for e in charged), Fraction(0))
    scale = float((whole - left) / total) if total else 0.0  # accounts beside each other: less
    line, now = [(float(start), float(whole))], float(whole)
    for event in charged:
        now -= scale * float(event.share if shared else event.credits)
        line.append((float(max(event.at, start)), max(now, 0.0)))
    return line


def _lasted(line: list[tuple[float, float]], now: float) -> bool:
    """From the second day on there is something to draw."""
    return bool(line) and now - line[0][0] >= DAY


def _forecast(
    events: list[Event], left: Fraction, start: float, now: float, shared: bool
) -> BudgetForecast | None:
    asked = [e for e in events if e.asked]
    spent = [float(e.share if shared else e.credits) for e in asked]
    days = daily([e.at for e in asked], spent, int(start), now)
    return forecast(days, float(left))


def outlook(found: BudgetForecast | None, now: float, left: Fraction) -> str:
    """One sentence about the end."""
    if left <= 0:
        return "All is spent: no new question is answered, ever."
    if found is None:
        return f"Too early to tell. A forecast needs {LEAST_DAYS} days of questions."
    if found.middle is None:
        return "At the pace of the last 30 days it lasts longer than ten years."
    said = f"At the pace of the last 30 days it ends about {day_text(now + DAY * found.middle)}"
    if found.early is None or found.late is None:
        return f"{said}, or much later."
    early, late = (day_text(now + DAY * days) for days in (found.early, found.late))
    return f"{said}, likely between {early} and {late}."


def _chart(
    line: list[tuple[float, float]],
    whole: Fraction,
    left: Fraction,
    found: BudgetForecast | None,
    now: float,
) -> Markup:
    start = line[0][0]
    ends = [now, *(now + DAY * d for d in ((found.late, found.middle) if found else ()) if d)]
    last = start + (max(ends) - start) * (1.12 if len(ends) > 1 else 1.25)
    last = max(last, start + 3_600)
    top = float(whole)
    plot = Plot(
        x0=start, x1=last, y0=0, y1=top, height=236, gutter=58, top=24
    )  # room for the label
    plot.up([(top * k / 4, _short(top * k / 4)) for k in range(5)])
    marks = [(start, when_text(int(start), clock=False)), (now, "today")]
    if found and found.middle:
        marks += _months(now, last)
    plot.across(_apart(marks, plot), grid=False)
    sharp = [*line, (now, float(left))]
    if found and found.middle is not None:
        early = now + DAY * (found.early or found.middle)
        late = min(now + DAY * (found.late or 2 * found.middle), last)
        plot.area([(now, float(left)), (late, 0), (early, 0)])
        plot.line([(now, float(left)), (now + DAY * found.middle, 0)], "line dashed")
        end = now + DAY * found.middle
        side = plot.x(end) > 55
        high = top * (0.5 if side else 0.36)
        plot.upright(end, 0, high)
        plot.dot(end, 0, "point open")
        plot.text(
            f"ends about {day_text(end)}",
            end,
            high,
            "key mid" if side else "key",
            dx=0 if side else 8,
            dy=-6 if side else 4,
        )
    plot.line(_thinned(sharp))
    plot.dot(now, float(left))
    end_side = plot.x(now) > 62
    plot.text(
        f"{left_text(left)} left today",
        now,
        float(left),
        "key end" if end_side else "key",
        dx=-10 if end_side else 10,
        dy=-10,
    )
    said = f"{left_text(whole)} at first, {left_text(left)} today"
    return plot.drawn(f"Credits left over time: {said}", "burn")


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def _months(now: float, last: float) -> list[tuple[float, str]]:
    """Three round days ahead."""
    step = (last - now) / 3.4
    return [(now + step * k, when_text(int(now + step * k), clock=False)) for k in (1, 2, 3)]


def _apart(marks: list[tuple[float, str]], plot: Plot) -> list[tuple[float, str]]:
    """Without those that would overlap the one before; today stays."""
    kept: list[tuple[float, str]] = []
    for mark in marks:
        if kept and plot.x(mark[0]) - plot.x(kept[-1][0]) < 18:
            if mark[1] != "today":
                continue
            kept.pop()
        kept.append(mark)
    return kept


def _thinned(line: list[tuple[float, float]], most: int = 240) -> list[tuple[float, float]]:
    step = max(1, math.ceil(len(line) / most))
    return [*line[:-1:step], line[-1]]


def _accounts(session: TableSession, events: list[Event]) -> tuple[AccountRow, ...]:
    last = {e.analyst: e.at for e in events if e.asked}
    rates = {
        str(found["name"]): token["rate"]
        for found in grants.lines(session.database, session.table, session.service.access)
        for token in found["tokens"]
        if token["state"] == "good"
    }
    lines = []
    for share in session.database.statement().statement.analysts:
        if share.granted is None or share.name == OWNER:
            continue
        granted = share.granted.credits_fraction
        left = max(granted - share.spent.credits_fraction, Fraction(0))
        ended = share.revoked is not None
        chip = "revoked" if ended else "used up" if not left else ""
        chip = chip or (f"{left_text(left)} left" if left < LOW * granted else "")
        rate, last_at = rates.get(share.name), when_text(last.get(share.name, 0))
        held = Fraction(0) if ended else left
        said = f"{left_text(held)} of {left_text(granted)}"
        lines.append(
            AccountRow(
                name=share.name,
                role="analyst",
                left=left_text(held),
                of=left_text(granted),
                gauge=gauge(held, granted, said),
                rate=str(rate or "no limit"),
                last=last_at or "never",
                chip=chip,
                chip_kind="" if ended else "warn",
            )
        )
    return tuple(lines)


def _bought(events: list[Event], shared: bool) -> tuple[tuple[str, str, Markup], ...]:
    spent: dict[str, Fraction] = {}
    for event in events:
        if event.asked and event.title:
            paid = event.share if shared else event.credits
            spent[bought(event)] = spent.get(bought(event), Fraction(0)) + paid
    found = sorted(((v, k) for k, v in spent.items() if v), reverse=True)
    top = found[0][0] if found else Fraction(1)
    return tuple(
        (
            kind,
            price_text(paid),
            gauge(paid, top * Fraction(10, 9), f"{price_text(paid)} credits", plain=True),
        )
        for paid, kind in found
    )


def _changes(events: list[Event], session: TableSession) -> tuple[tuple[str, str, str, str], ...]:
    """(what, reason, when, number), the last ones first; of others' shares an analyst sees none."""
    found = []
    for event in reversed(events):
        if event.kind not in CHANGES:
            continue
        theirs = event.kind in ("grant", "revoke") and event.analyst != session.account
        if session.caller.role == Role.ANALYST and theirs:
            continue
        who = "you" if event.analyst == session.caller.name else event.analyst
        found.append(
            (
                change_text(event, who),
                event.reason,
                when_text(event.at, clock=False),
                ordinal(event.seq),
            )
        )
    return tuple(found[:MOST_CHANGES])


@router.get("/console/{table}/budget")
async def budget(request: Request, session: Anybody) -> Response:
    return await fragment(request, "budget.html", budget_view, session)
