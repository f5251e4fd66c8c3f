"""The quote bar: price, error and what is left, next to the button that spends. No row is read."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from markupsafe import Markup

from sulq.answers.sizes import FEWER
from sulq.database import Analyst, Database
from sulq.errors import InvalidQuery, SulqError
from sulq.formatting import bar_text, credits_word, left_text, price_text, spelled
from sulq.kernel.noise.intervals import z_of
from sulq.kernel.schema.columns import Number, plural
from sulq.server.console.ask.request import (
    STOPS,
    AskRequest,
    PricedStatement,
    count_first,
    ends_of,
    first_ends,
    plain_price,
    price_statement,
    span_bar,
)
from sulq.server.console.ask.typo_repairs import Respelling, value_repairs
from sulq.server.console.charts import gauge
from sulq.server.console.framework import Balance
from sulq.server.console.labels import (
    Figure,
    Shape,
    capital,
    counted,
    group_word,
    groups_word,
    number_word,
)
from sulq.sql.api import SqlQuote

LITTLE = "This will tell you little."


@dataclass(frozen=True, slots=True)
class CountFirst:
    """The count of the rows that a question is about, with its price."""

    sql: str
    stop: str
    button: str
    price: str


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
    for figure in found.shape.figures:
        half = (ends_of(found.quote, figure.name) or (0.0, 0.0))[0]
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
    for figure in found.shape.figures:
        ends = ends_of(found.quote, figure.name)
        before = None if ends is None else ends[0]
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
        after = first_ends(quote)
        if after is None or after[0] > 0.52 * before or quote.credits > found.quote.credits:
            return None
        return Hint(
            "Half the error, for another question.",
            f"Count {figure.column} over {cap} as {cap}: ± {span_bar(*after)} for the same"
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
    shape = found.shape
    if not shape.figures:
        return "A list of public facts.", ""
    figure = shape.figures[0]
    many = len(shape.figures) > 1
    nouns = "numbers" if many else counted(figure.noun, shape.cells if shape.groups else 1)
    if not shape.groups:
        count = len(shape.figures)
        what = "numbers, each" if count > 1 else "number"
        see = f"{capital(number_word(count))} {what} with its range."
    else:
        total = shape.cells * len(shape.figures)
        rest = ", and one more row for what is other or missing" if shape.other else ""
        see = f"{capital(number_word(total))} {nouns}, each with its range{rest}."
        ends, pairs = ends_of(found.quote, figure.name), shape.cells * (shape.cells - 1) // 2
        if ends and ends[1] and pairs and shape.cells <= 12:
            widened = math.sqrt(2) * z_of(1 - 0.05 / pairs) / z_of(0.95)
            apart = span_bar(*ends, widened)
            unit = f" {figure.unit}" if figure.unit else ""
            see += (
                f" {capital(groups_word(shape.groups))} whose {plural(figure.noun)} lie closer than"
                f" about {apart}{unit} will be called “not distinguishable”."
            )
    return see, _size_sentence(found)


def _size_sentence(found: PricedStatement) -> str:
    """Which size the error is for, who says so, and what it is if nobody does."""
    oracle, shape, sizes = found.oracle, found.shape, found.quote.sizes
    who = oracle.schema.who
    per = f" per {group_word(shape.groups)}" if shape.groups else ""
    if found.wish.rows is not None:
        return f"The error assumes about {spelled(found.wish.rows, 0)} {who}{per}, as you said."
    if sizes is None:
        unsized = all(figure.sized for figure in shape.figures) or oracle.size is not None
        return "" if unsized else f"The error hangs on how many {who} match: type a size to see it."
    if sizes.known:
        return f"The error is for {sizes.text(who, per)}."
    everybody = f"all {spelled(oracle.size or 0, 0)} {who}"
    if sizes.most == sizes.least:
        return f"The error assumes that {everybody} match. Fewer make it larger."
    even = ", spread evenly" if shape.groups else ""
    return (
        f"The smaller error is for {everybody} matching{even}, the larger one for one in"
        f" {number_word(FEWER)}. Nobody has told you how many do."
    )


def assumed_size(found: PricedStatement) -> str:
    """The size that stands behind the bar, in few words next to it; empty where it has no say."""
    sizes, who = found.quote.sizes, found.oracle.schema.who
    per = f" per {group_word(found.shape.groups)}" if found.shape.groups else ""
    if found.wish.rows is not None and not all(figure.sized for figure in found.shape.figures):
        return f"if {spelled(found.wish.rows, 0)} {who}{per or ' match'}"
    if sizes is None:
        unsized = all(figure.sized for figure in found.shape.figures)
        return "" if unsized or found.oracle.size is not None else "type a size to see it"
    if sizes.known:
        return sizes.text(who, per)
    if sizes.most == sizes.least:
        return f"if {spelled(sizes.most, 0)} {who} match"
    return f"everybody matches … one in {number_word(FEWER)}"


def count_button(found: PricedStatement) -> CountFirst | None:
    """The count that would tell how large the error is, where nobody was told; at a quarter of the
    price where that is sharp enough."""
    sizes = found.quote.sizes
    if sizes is None or sizes.known or sizes.most == sizes.least or found.wish.rows is not None:
        return None
    wish = count_first(found)
    if wish is None:
        return None
    try:
        one_ = price_statement(found.oracle, found.table, wish)
        ends = first_ends(one_.quote)
        if one_.quote.credits and ends is not None and 20 * ends[0] <= sizes.least:
            wish = replace(wish, stop="coarse")
            one_ = price_statement(found.oracle, found.table, wish)
            ends = first_ends(one_.quote)
    except SulqError:
        return None
    price = credits_word(one_.quote.credits) if one_.quote.credits else "nothing"
    bar = "" if ends is None else f", ± {span_bar(*ends)}"
    button = f"Count first, {price if one_.quote.credits else 'free'}"
    return CountFirst(wish.sql, wish.stop, button, f"{price}{bar}")


def see_count(shape: Shape) -> str:
    if not shape.figures:
        return ""
    total = shape.cells * len(shape.figures)
    noun = shape.figures[0].noun if len(shape.figures) == 1 else "number"
    return f"{total} {counted(noun, total)}{' and the rest' if shape.other else ''}"


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
    count: CountFirst | None = None
    repairs: tuple[Respelling, ...] = ()
    """Values that were perhaps meant."""


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
        count_button(found),
        value_repairs(found) if quote.notes else (),
    )


def _within(wish: AskRequest) -> str:
    return "" if wish.within is None else f"{wish.within:g}"


def _size(found: PricedStatement) -> tuple[str, str]:
    """The size in its field, and the words after it."""
    groups = found.shape.groups
    per = f"per {group_word(groups)}" if groups else "that match"
    sizes = found.quote.sizes
    rows = found.wish.rows if found.wish.rows is not None else sizes.rows if sizes else ""
    return str(rows), f"{found.oracle.schema.who} {per}"


def going_gauge(purse: Balance, price: Fraction) -> Markup:
    left, whole = (purse.own_left, purse.own_whole) if purse.shared else (purse.left, purse.whole)
    after = left_text(max(Fraction(0), left - price))
    said = f"{after} of {left_text(whole)} credits left after asking"
    return gauge(left, whole, said, going=price)


def gets(shape: Shape, quote: SqlQuote) -> tuple[str, str]:
    """The error bars to come, as a number and its words."""
    said = [_bar_words(figure, quote) for figure in shape.figures]
    if not said:
        return "no noise", ""
    first, unit = said[0]
    per = f" per {group_word(shape.groups)}" if shape.groups else ""
    rest = [f"{bar} {unit}".strip() for bar, unit in said[1:MOST_FIGURES]]
    more = len(said) - MOST_FIGURES
    tail = "".join(f", {text}" for text in rest) + (f" and {more} more" if more > 0 else "")
    return first, f"{unit}{tail}{per}".strip()


def _bar_words(figure: Figure, quote: SqlQuote) -> tuple[str, str]:
    """The bar of one figure: in its units, else in per cent of the ranks, else in rows."""
    ends, rank = ends_of(quote, figure.name), dict(quote.ranks).get(figure.name)
    if ends is not None and ends[1] == 0:
        return "exact", f"{figure.unit or figure.name}, public"
    if ends is not None:
        return f"± {span_bar(*ends)}", figure.unit
    if rank is None or quote.sizes is None:
        return "±", f"by its size, {figure.unit or figure.name}"
    if figure.kind != "quantile":
        return f"{bar_text(rank)}", f"rows from the end, {figure.column or figure.name}"
    shares = (100 * rank / size for size in (quote.sizes.most, quote.sizes.least))
    return f"± {span_bar(*shares)}", f"per cent of rank, {figure.column or figure.name}"


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
        bar = _bar_words(found.shape.figures[0], one_)[0] if found.shape.figures else "±"
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
