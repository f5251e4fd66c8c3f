"""The quote bar: price, error and what is left, next to the button that spends. No row is read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from markupsafe import Markup

from sulq.database import Analyst, Database
from sulq.server.access import Caller
from sulq.server.console.advice import (
    Hint,
    assumed_size,
    hint_of,
    see_count,
    warning_of,
    what_you_will_see,
)
from sulq.server.console.charts import gauge
from sulq.server.console.shell import Purse, purse_of
from sulq.server.console.wishes import STOPS, Priced, Wish, plain_price, priced
from sulq.server.console.words import Shape, group_word, one, plural
from sulq.server.service import Service
from sulq.shown import bar_text, credits_word, left_text, price_text
from sulq.sql.run import SqlQuote

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
class QuoteView:
    state: str
    price_label: str
    price: str
    price_word: str
    get_label: str
    get: str
    get_unit: str
    left_label: str
    own: str
    own_whole: str
    shared: bool
    table: str
    table_whole: str
    gauge: Markup
    button: str
    confirm: tuple[str, str, str] | None
    stops: tuple[Stop, ...]
    within: str
    advice: str
    warning: tuple[str, str] | None
    hint: Hint | None
    see: str
    see_small: str
    see_count: str
    size: str
    size_word: str
    say: str
    most: str
    assumes: str = ""
    """Which size stands behind the bar."""
    notes: tuple[str, ...] = ()


def quote_view(service: Service, caller: Caller, table: str, wish: Wish) -> QuoteView:
    """Everything the quote bar says, ready."""
    oracle = service.oracle(caller, table)
    found = priced(oracle, table, wish)
    quote, shape = found.quote, found.shape
    purse = purse_of(service, caller, table)
    price, state = quote.credits, "ready"
    if not price:
        state = "free"
    elif price > purse.own_left:
        state = "dear"
    elif price > LARGE * purse.own_left:
        state = "large"
    going = Fraction(0) if state == "dear" else price
    bar, unit = gets(shape, quote)
    stops = stops_of(oracle, table, found, purse.own_left)
    see, small = what_you_will_see(found, oracle)
    word = "credit" if 0 < price <= 1 else "credits"
    button = {"free": "Show answer, free", "dear": "Costs more than you have"}.get(
        state, f"Ask for {credits_word(price)}"
    )
    confirm = None
    if state == "large":
        confirm = ("Yes, spend", f"{price_text(price)} of my {left_text(purse.own_left)}",
                   "credits. They do not come back.")  # fmt: skip
    return QuoteView(
        state=state,
        price_label="Price",
        price=price_text(price),
        price_word=word,
        get_label="You will get, 95 %",
        get=bar,
        get_unit=unit,
        left_label="You have" if state == "dear" else "Left after asking",
        own=left_text(max(Fraction(0), purse.own_left - going)),
        own_whole=left_text(purse.own_whole),
        shared=purse.shared,
        table=left_text(max(Fraction(0), purse.left - going)),
        table_whole=left_text(purse.whole),
        gauge=going_gauge(purse, going),
        button=button,
        confirm=confirm,
        stops=stops,
        within="" if wish.within is None else f"{wish.within:g}",
        advice="Half the error, four times the price." if stops else "",
        warning=warning_of(found, oracle),
        hint=hint_of(oracle, table, found),
        see=see,
        see_small=small,
        see_count=see_count(shape),
        size="" if found.rows is None else str(found.rows),
        size_word=f"{plural(one(oracle.schema))} "
        f"{'per ' + group_word(shape.groups) if shape.groups else 'that match'}",
        say=spoken(price, bar, unit, purse),
        most=str(price),
        assumes=assumed_size(found, oracle),
        notes=tuple(note for note in quote.notes if not note.startswith("assumes ")),  # said above
    )


def going_gauge(purse: Purse, price: Fraction) -> Markup:
    left, whole = (purse.own_left, purse.own_whole) if purse.shared else (purse.left, purse.whole)
    after = left_text(max(Fraction(0), left - price))
    return gauge(left, whole, f"{after} of {left_text(whole)} credits left after asking",
                 going=price)  # fmt: skip


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


def stops_of(
    oracle: Database | Analyst, table: str, found: Priced, left: Fraction
) -> tuple[Stop, ...]:
    """Half, plain and double precision, each with its price; `dear` beyond what is left."""
    quote, wish = found.quote, found.wish
    if quote.plan.select.target is not None and wish.within is None:
        return ()
    text = wish.untargeted
    plain = quote if wish.stop == "plain" and wish.within is None else None
    if plain is None:
        plain = oracle.quote_sql(text, table=table, rows=found.rows)
    base = plain_price(oracle, plain)
    if not base:
        return ()
    made = []
    for name, factor in STOPS:
        chosen = wish.within is None and wish.stop == name
        one_ = plain if factor == 1 else quote if chosen else None
        if one_ is None:
            one_ = oracle.quote_sql(text, table=table, rows=found.rows, credits=base * factor)
        halves = [half for _, half in one_.half_widths if half]
        bar = f"± {bar_text(halves[0])}" if halves else "±"
        price = credits_word(one_.credits) if one_.credits else "free"
        if name == "coarse" and not plain.credits:
            continue  # the stored answer is free and sharper
        made.append(Stop(name, bar, price, chosen, one_.credits > left))
    return tuple(made)


def spoken(price: Fraction, bar: str, unit: str, purse: Purse) -> str:
    """The quote in one breath, for a screen reader."""
    left, whole = (purse.own_left, purse.own_whole) if purse.shared else (purse.left, purse.whole)
    mine = "your " if purse.shared else ""
    after = left_text(max(Fraction(0), left - price))
    said = bar.replace("±", "plus or minus")
    return (
        f"{credits_word(price)}, {said} {unit}, {after} of {mine}{left_text(whole)} left"
        " after asking."
    )
