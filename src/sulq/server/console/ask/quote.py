"""The quote bar: price, error and what is left, next to the button that spends. No row is read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from markupsafe import Markup

from sulq.database import Analyst, Database
from sulq.errors import InvalidQuery
from sulq.formatting import bar_text, credits_word, left_text, price_text, spelled
from sulq.kernel.noise.intervals import z_of
from sulq.kernel.schema.columns import Number
from sulq.server.console.ask.request import STOPS, AskRequest, PricedStatement, plain_price
from sulq.server.console.charts import gauge
from sulq.server.console.framework import Balance
from sulq.server.console.labels import (
    Figure,
    Shape,
    capital,
    group_word,
    groups_word,
    number_word,
    one,
    plural,
)
from sulq.sql.api import SqlQuote

LITTLE = "This will tell you little."


@dataclass(frozen=True, slots=True)
class Hint:
    first: str
    more: str
    soft: str
    button: str
    sql: str


def warning_of(found: PricedStatement) -> tuple[str, str] | None:
    """Warn, before it is asked, that the noise is larger than what is asked for."""
    oracle = found.oracle
    halves = dict(found.quote.half_widths)
    for figure in found.shape.figures:
        half = halves.get(figure.name)
        if not half:
            continue
        span, who = _span(figure, oracle), oracle.schema.who
        error = f"± {bar_text(half)}"
        if figure.counts and found.wish.rows is not None and found.wish.rows <= 2 * half:
            size = spelled(found.wish.rows, 0)
            return LITTLE, f"You say the group has about {size} {who}; the error is {error}."
        if figure.kind == "avg" and span and half >= span / 4:
            return LITTLE, (
                f"{figure.column} ranges over {spelled(span, None)}; the error would be {error}."
                f" Ask about more {who} at once, or spend more."
            )
    return None


def _span(figure: Figure, oracle: Database | Analyst) -> float:
    if figure.column not in oracle.schema:
        return 0.0
    column = oracle.schema[figure.column]
    if not isinstance(column, Number) or column.kind != "number":
        return 0.0
    low, high = column.range
    return float(high - low)


def hint_of(found: PricedStatement) -> Hint | None:
    """Propose a change that at least halves the error: values over the middle count as it."""
    oracle = found.oracle
    halves = dict(found.quote.half_widths)
    for figure in found.shape.figures:
        before = halves.get(figure.name)
        if figure.kind not in ("avg", "sum") or not _span(figure, oracle) or not figure.span:
            continue
        if not before or not found.quote.credits or found.wish.within is not None:
            continue
        column = oracle.schema[figure.column]
        assert isinstance(column, Number)  # noqa: S101
        middle = float(sum(column.range) / 2)
        cap = spelled(middle, None)
        call = f"{figure.kind.upper()}(LEAST({figure.column}, {middle:g}))"
        text = found.wish.text
        start, end = closed(text, *figure.span)
        changed = text[:start] + call + text[end:]
        try:
            quote = found.price(changed, found.credits)
        except InvalidQuery:
            return None
        after = next((half for _, half in quote.half_widths if half), None)
        if after is None or after > 0.52 * before or quote.credits > found.quote.credits:
            return None
        return Hint(
            "Half the error, for another question.",
            f"Count {figure.column} over {cap} as {cap}: ± {bar_text(after)} for the same"
            f" {credits_word(quote.credits)}.",
            f"You would then measure the {figure.noun} of {figure.column} capped at {cap}.",
            f"Cap at {cap}",
            changed,
        )
    return None


def closed(text: str, start: int, end: int) -> tuple[int, int]:
    """A call's span to its last bracket: names are noted by the parser, brackets are not."""
    while end < len(text) and text.count("(", start, end) > text.count(")", start, end):
        end += 1
    return start, end


def what_you_will_see(found: PricedStatement) -> tuple[str, str]:
    """What comes back, and which size the error assumes."""
    shape, halves = found.shape, dict(found.quote.half_widths)
    if not shape.figures:
        return "A list of public facts.", ""
    figure = shape.figures[0]
    many = len(shape.figures) > 1
    nouns = "numbers" if many else plural(figure.noun, shape.cells if shape.groups else 1)
    if not shape.groups:
        count = len(shape.figures)
        what = "numbers, each" if count > 1 else "number"
        see = f"{capital(number_word(count))} {what} with its range."
    else:
        total = shape.cells * len(shape.figures)
        rest = ", and one more row for what is other or missing" if shape.other else ""
        see = f"{capital(number_word(total))} {nouns}, each with its range{rest}."
        half, pairs = halves.get(figure.name), shape.cells * (shape.cells - 1) // 2
        if half and pairs and shape.cells <= 12:
            apart = half * math.sqrt(2) * z_of(1 - 0.05 / pairs) / z_of(0.95)
            unit = f" {figure.unit}" if figure.unit else ""
            see += (
                f" {capital(groups_word(shape.groups))} whose {plural(figure.noun)} lie closer than"
                f" about {bar_text(apart)}{unit} will be called “not distinguishable”."
            )
    return see, _size_sentence(found)


def _size_sentence(found: PricedStatement) -> str:
    oracle, shape = found.oracle, found.shape
    who = oracle.schema.who
    per = f" per {group_word(shape.groups)}" if shape.groups else ""
    if found.wish.rows is not None:
        return f"The error assumes about {spelled(found.wish.rows, 0)} {who}{per}, as you said."
    if not found.assumed:
        return ""
    if found.rows is not None:
        return (
            f"The error assumes about {spelled(found.rows, 0)} {who}{per}: all"
            f" {spelled(oracle.size or 0, 0)}, spread evenly. Fewer make it larger."
        )
    if oracle.size is not None:
        size = spelled(oracle.size, 0)
        return f"The error assumes that all {size} {who} match. Fewer make it larger."
    return f"The error depends on how many {who} match: type a size to see it."


def assumed_size(found: PricedStatement) -> str:
    """The size that stands behind the bar, in few words next to it; empty where it has no say."""
    if all(figure.sized for figure in found.shape.figures):
        return ""
    per = f" per {group_word(found.shape.groups)}" if found.shape.groups else ""
    rows = found.rows if found.rows is not None else found.oracle.size
    if rows is None:
        return "type a size to see it"
    return f"if {spelled(rows, 0)} {found.oracle.schema.who}{per or ' match'}"


def see_count(shape: Shape) -> str:
    if not shape.figures:
        return ""
    total = shape.cells * len(shape.figures)
    noun = shape.figures[0].noun if len(shape.figures) == 1 else "number"
    return f"{total} {plural(noun, total)}{' and the rest' if shape.other else ''}"


# What is said before spending: hints, warnings, and what will come back. No row is read.


LARGE = Fraction(1, 10)
"""Above this share of what is left, spending takes a second, deliberate step."""
MOST_FIGURES = 2


@dataclass(frozen=True, slots=True)
class Stop:
    name: str
    bar: str
    price: str
    chosen: bool
    dear: bool = False


@dataclass(frozen=True, slots=True)
class PriceView:
    """The price, and the button that spends it."""

    label: str
    amount: str
    word: str
    most: str
    """The exact price that was shown, which the button sends back."""
    button: str
    confirm: tuple[str, str, str] | None = None
    """What has to be ticked before a large part of what is left is spent."""


@dataclass(frozen=True, slots=True)
class ErrorView:
    """The error bar to come, and how to choose another one."""

    label: str
    bar: str
    unit: str
    assumes: str = ""
    """Which size stands behind the bar."""
    stops: tuple[Stop, ...] = ()
    within: str = ""
    size: str = ""
    size_word: str = ""


@dataclass(frozen=True, slots=True)
class BalanceView:
    """What is left: of the caller's share, and of the table."""

    label: str
    own: str
    own_whole: str
    shared: bool
    table: str
    table_whole: str
    gauge: Markup


@dataclass(frozen=True, slots=True)
class QuoteAdvice:
    """What is said before spending: a warning, notes, a proposal, what will come back."""

    warning: tuple[str, str] | None = None
    notes: tuple[str, ...] = ()
    hint: Hint | None = None
    see: str = ""
    see_small: str = ""
    see_count: str = ""


@dataclass(frozen=True, slots=True)
class QuoteView:
    state: str
    price: PriceView
    error: ErrorView
    balance: BalanceView
    advice: QuoteAdvice
    say: str
    """The quote in one breath, for a screen reader."""


def quote_view(found: PricedStatement, purse: Balance) -> QuoteView:
    """Everything the quote bar says before a question is asked."""
    price, left = found.quote.credits, purse.own_left
    state = "ready"
    if not price:
        state = "free"
    elif price > left:
        state = "dear"
    elif price > LARGE * left:
        state = "large"
    bar, unit = gets(found.shape, found.quote)
    button = {"free": "Show answer, free", "dear": "Costs more than you have"}.get(
        state, f"Ask for {credits_word(price)}"
    )
    confirm = None
    if state == "large":
        part = f"{price_text(price)} of my {left_text(left)}"
        confirm = ("Yes, spend", part, "credits. They do not come back.")
    return QuoteView(
        state,
        price_view("Price", price, button, confirm),
        ErrorView(
            "You will get, 95 %",
            bar,
            unit,
            assumed_size(found),
            stops_of(found, left),
            _within(found.wish),
            *_size(found),
        ),
        balance_view(
            "You have" if state == "dear" else "Left after asking",
            purse,
            Fraction(0) if state == "dear" else price,
        ),
        advice_view(found),
        spoken(price, bar, unit, purse),
    )


def asked_view(found: PricedStatement, purse: Balance, bars: str, unit: str) -> QuoteView:
    """The quote bar beneath an answer: what it would cost now, and the bars that came."""
    price = found.quote.credits
    return QuoteView(
        "asked",
        price_view("Price to ask again", price, "Show again, free"),
        ErrorView("Error, 95 %", bars, unit),
        balance_view("Left", purse, price if price <= purse.own_left else Fraction(0)),
        QuoteAdvice(),
        spoken(price, *gets(found.shape, found.quote), purse),
    )


def price_view(
    label: str, price: Fraction, button: str, confirm: tuple[str, str, str] | None = None
) -> PriceView:
    word = "credit" if 0 < price <= 1 else "credits"
    return PriceView(label, price_text(price), word, str(price), button, confirm)


def balance_view(label: str, purse: Balance, going: Fraction) -> BalanceView:
    return BalanceView(
        label,
        left_text(max(Fraction(0), purse.own_left - going)),
        left_text(purse.own_whole),
        purse.shared,
        left_text(max(Fraction(0), purse.left - going)),
        left_text(purse.whole),
        going_gauge(purse, going),
    )


def advice_view(found: PricedStatement) -> QuoteAdvice:
    quote = found.quote
    return QuoteAdvice(
        warning_of(found),
        tuple(note for note in quote.notes if note != quote.assumes),
        hint_of(found),
        *what_you_will_see(found),
        see_count(found.shape),
    )


def _within(wish: AskRequest) -> str:
    return "" if wish.within is None else f"{wish.within:g}"


def _size(found: PricedStatement) -> tuple[str, str]:
    """The size in its field, and the words after it."""
    groups = found.shape.groups
    per = f"per {group_word(groups)}" if groups else "that match"
    rows = "" if found.rows is None else str(found.rows)
    return rows, f"{plural(one(found.oracle.schema))} {per}"


def going_gauge(purse: Balance, price: Fraction) -> Markup:
    left, whole = (purse.own_left, purse.own_whole) if purse.shared else (purse.left, purse.whole)
    after = left_text(max(Fraction(0), left - price))
    said = f"{after} of {left_text(whole)} credits left after asking"
    return gauge(left, whole, said, going=price)


def gets(shape: Shape, quote: SqlQuote) -> tuple[str, str]:
    """The error bars to come, as a number and its words."""
    halves = dict(quote.half_widths)
    said = []
    for figure in shape.figures:
        half = halves.get(figure.name)
        if half is None or not math.isfinite(half):
            said.append(("±", f"by its size, {figure.unit or figure.name}"))
        elif half == 0:
            said.append(("exact", f"{figure.unit or figure.name}, public"))
        else:
            said.append((f"± {bar_text(half)}", figure.unit))
    if not said:
        return "no noise", ""
    first, unit = said[0]
    per = f" per {group_word(shape.groups)}" if shape.groups else ""
    rest = [f"{bar} {unit}".strip() for bar, unit in said[1:MOST_FIGURES]]
    more = len(said) - MOST_FIGURES
    tail = "".join(f", {text}" for text in rest) + (f" and {more} more" if more > 0 else "")
    return first, f"{unit}{tail}{per}".strip()


def stops_of(found: PricedStatement, left: Fraction) -> tuple[Stop, ...]:
    """Half, plain and double precision, each with its price; `dear` beyond what is left."""
    quote, wish = found.quote, found.wish
    if quote.plan.select.target is not None and wish.within is None:
        return ()
    text = wish.untargeted
    plain = quote if wish.stop == "plain" and wish.within is None else found.price(text)
    base = plain_price(found.oracle, plain)
    if not base:
        return ()
    made = []
    for name, factor in STOPS:
        if name == "coarse" and not plain.credits:
            continue  # the stored answer is free and sharper
        chosen = wish.within is None and wish.stop == name
        one_ = plain if factor == 1 else quote if chosen else found.price(text, base * factor)
        halves = [half for _, half in one_.half_widths if half]
        bar = f"± {bar_text(halves[0])}" if halves else "±"
        price = credits_word(one_.credits) if one_.credits else "free"
        made.append(Stop(name, bar, price, chosen, one_.credits > left))
    return tuple(made)


def spoken(price: Fraction, bar: str, unit: str, purse: Balance) -> str:
    """The quote in one breath, for a screen reader."""
    left, whole = (purse.own_left, purse.own_whole) if purse.shared else (purse.left, purse.whole)
    mine = "your " if purse.shared else ""
    after = left_text(max(Fraction(0), left - price))
    said = bar.replace("±", "plus or minus")
    return (
        f"{credits_word(price)}, {said} {unit}, {after} of {mine}{left_text(whole)} left"
        " after asking."
    )
