"""A refusal as a card: why, that the data had no say, and what to ask instead, already priced."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from sulq.database import Analyst, Database
from sulq.errors import Reason, SulqError
from sulq.formatting import bar_text, bar_up, credits_word, left_text
from sulq.server.console.ask.quote import gets
from sulq.server.console.ask.request import (
    AskRequest,
    PricedStatement,
    first_ends,
    price_statement,
)
from sulq.server.console.ask.typo_repairs import Respelling, repair_of
from sulq.server.console.examples import brief, count_sql, name, relations, starters
from sulq.server.console.framework import Balance
from sulq.server.console.labels import capital
from sulq.server.errors import HttpProblem
from sulq.sql.plan.pricing import SLIPS

MOST = 3
NO_SAY = (
    "No. We refused from your text and the public column list alone, before any row was read."
    " The same text is refused on any data."
)
TITLES: dict[Reason, str] = {
    **dict.fromkeys((Reason.ROWS_SHOWN, Reason.UNGROUPED), "rows are never shown"),
    **dict.fromkeys(
        (
            Reason.NO_TABLE,
            Reason.NO_COLUMN,
            Reason.ALIAS,
            Reason.AMBIGUOUS,
            Reason.PERSON_COLUMN,
        ),
        "a name is hidden or unknown",
    ),
    Reason.NEEDS_BOUNDS: "it needs bounds",
    Reason.TOO_LARGE: "it is too large to price",
    **dict.fromkeys(
        (
            Reason.UNREADABLE,
            Reason.SEMICOLON,
            Reason.NOT_IN_LANGUAGE,
            Reason.WRONG_FORM,
            Reason.JOIN,
        ),
        "it is not in the language",
    ),
    **dict.fromkeys((Reason.AGGREGATE, Reason.DISTINCT, Reason.WRONG_TYPE), "it is not a sum"),
}
"""What a card is headed by; other reasons are told by the text alone."""


CONDITION = re.compile(
    r"\bWHERE\b(.+?)(?=\bGROUP\b|\bORDER\b|\bLIMIT\b|\bHAVING\b|;|$)", re.IGNORECASE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Alternative:
    sql: str
    short: str
    price: str
    bar: str
    little: bool


@dataclass(frozen=True, slots=True)
class Cheaper:
    within: str
    text: str


@dataclass(frozen=True, slots=True)
class RefusalView:
    state: str
    title: str
    spent: str
    why: str
    say: str
    spent_kind: str = "ok"
    no_say: str = ""
    alternatives: tuple[Alternative, ...] = ()
    warning: str = ""
    cheaper: tuple[Cheaper, ...] = ()
    start: str = ""
    end: str = ""
    line: str = ""
    snippet: str = ""
    repair: Respelling | None = None


def refusal_view(
    oracle: Database | Analyst, table: str, sql: str, problem: HttpProblem
) -> RefusalView:
    """Of a statement that is not understood or not allowed."""
    reason = "it cannot be asked as it stands"
    if problem.reason is not None:
        reason = TITLES.get(problem.reason, reason)
    start, end = problem.more.get("start"), problem.more.get("end")
    offered = list(problem.more.get("alternatives", ()))
    shown = tuple(alternatives_of(oracle, table, sql, offered))
    snippet = sql[start:end].strip()[:60] if isinstance(start, int) and isinstance(end, int) else ""
    line = f"Line {sql[:start].count(chr(10)) + 1}" if isinstance(start, int) else "Question"
    spent = problem.credits_spent
    little = shown[0] if shown and shown[0].little else None
    warning = f"A count with {little.bar} cannot tell 5 from 50." if little is not None else ""
    return RefusalView(
        state="refused",
        title=f"Not answered: {reason}",
        spent=_spent(spent),
        spent_kind="ok" if spent == 0 else "warn",
        why=capital(problem.detail.strip().rstrip(".")) + ".",
        no_say="" if spent else NO_SAY,
        alternatives=shown,
        warning=warning,
        start="" if start is None else str(start),
        end="" if end is None else str(end),
        line=line,
        snippet=snippet or reason,
        repair=repair_of(sql, str(offered[0])) if problem.reason in SLIPS and offered else None,
        say=f"Not answered: {reason}. {_spent(spent)}.",
    )


def _spent(credits: Fraction | None) -> str:
    if credits is None:
        return "perhaps charged, once"
    return f"{credits_word(credits) if credits else '0 credits'} spent"


def dear_view(found: PricedStatement, purse: Balance) -> RefusalView:
    """Of a question that costs more than is left: the same with less precision."""
    price, left = found.quote.credits, purse.own_left
    whole = left_text(purse.own_whole)
    bar, unit = gets(found.shape, found.quote)
    owner = (
        " Ask for less precision, or ask the owner to raise your share; that is recorded in the"
        " ledger and does not raise the table’s limit."
        if purse.shared
        else " Ask for less precision: what is spent does not come back."
    )
    why = (
        f"This, with {bar} {unit}, costs {credits_word(price)}; you have {left_text(left)} of"
        f" {whole}.{owner}"
    )
    return RefusalView(
        state="dear",
        title="Not answered: this costs more than you have left",
        spent="0 credits spent",
        why=why,
        cheaper=tuple(cheaper_of(found, left)),
        say="Not answered: this costs more than you have left. 0 credits spent.",
    )


def cheaper_of(found: PricedStatement, left: Fraction) -> list[Cheaper]:
    """Two coarser bars that are affordable, each with its price."""
    ends = first_ends(found.quote)
    if ends is None or left <= 0:
        return []
    made: dict[str, Cheaper] = {}
    for share in (0.2, 0.85):
        half = ends[0] * (float(found.quote.credits) / (float(left) * share)) ** 0.5
        within, _ = bar_up(_two_digits(half))
        try:
            wish = AskRequest(found.wish.sql, within=within, rows=found.wish.rows)
            one = price_statement(found.oracle, found.table, wish)
        except SulqError:
            continue
        if one.quote.credits <= left:
            text = f"± {bar_text(within)} for {credits_word(one.quote.credits)}"
            made.setdefault(f"{within:g}", Cheaper(f"{within:g}", text))
    return list(made.values())


def _two_digits(half: float) -> float:
    """A bar that people say: 1, 1.5, 2, 2.5, 3, 4, 5, 7.5 times a power of ten, rounded up."""
    power = 10.0 ** (len(str(int(half))) - 1) if half >= 1 else 10.0**-3
    powers = (power * 10**times for times in range(4))
    steps = (each * k for each in powers for k in (1, 1.5, 2, 2.5, 3, 4, 5, 7.5))
    return next((step for step in steps if step >= half), half)


def alternatives_of(
    oracle: Database | Analyst, table: str, sql: str, offered: object
) -> list[Alternative]:
    """At most three statements near the text that would be answered, each priced."""
    asked = relations(oracle.schema, table)[0].name
    tried = [str(text) for text in offered] if isinstance(offered, list | tuple) else []
    tried += [
        *_kept_condition(asked, sql, count_sql(oracle.schema)),
        *(each.sql for each in starters(oracle.schema, table)),
    ]
    found: list[Alternative] = []
    for text in dict.fromkeys(tried):
        if len(found) == MOST:
            break
        try:
            one = price_statement(oracle, table, AskRequest(text))
        except SulqError:
            continue
        bar = brief(one, oracle.schema)
        price = credits_word(one.quote.credits) if one.quote.credits else "free"
        counted = bool(one.shape.figures) and one.shape.figures[0].counts
        little = counted and not one.shape.groups and "WHERE" in text and bar.startswith("±")
        found.append(Alternative(text, _short(text, asked), price, bar, little))
    return found


def _kept_condition(table: str, sql: str, counted: str) -> list[str]:
    """A count of those that the text's own condition selects."""
    where = CONDITION.search(sql)
    if where is None:
        return []
    return [f"SELECT {counted}\nFROM {name(table)}\nWHERE {where[1].strip()}"]


def _short(sql: str, table: str) -> str:
    flat = " ".join(sql.split())
    return flat.replace(f" FROM {name(table)}", " …", 1)
