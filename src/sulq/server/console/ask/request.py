"""A statement, how exactly it should be answered, and what that costs. No row is read."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction

from sulq.database import Analyst, Database
from sulq.formatting import bar_text
from sulq.server.console.labels import Shape, shape_of
from sulq.sql.api import SqlQuote
from sulq.sql.parse.select import GroupKey
from sulq.sql.plan.pricing import unit_prices

TARGET = re.compile(
    r"\s+WITHIN\s+[\d.]+(\s+PERCENT)?(\s+CONFIDENCE\s+[\d.]+(\s+PERCENT)?)?$", re.IGNORECASE
)
"""A bar that the text itself asks for; the field beside Precision replaces it."""
STOPS = (("coarse", Fraction(1, 4)), ("plain", Fraction(1)), ("fine", Fraction(4)))
"""Stops of precision, by their price: half, plain and double."""


@dataclass(frozen=True, slots=True)
class AskRequest:
    """A statement and how exactly it should be answered."""

    sql: str
    stop: str = "plain"
    within: float | None = None
    rows: int | None = None

    @property
    def text(self) -> str:
        """The statement that is priced and asked."""
        plain = self.sql.rstrip().rstrip(";").rstrip()
        return plain if self.within is None else f"{self.untargeted}\nWITHIN {self.within:g}"

    @property
    def untargeted(self) -> str:
        """The statement without a bar of its own."""
        return TARGET.sub("", self.sql.rstrip().rstrip(";").rstrip())


@dataclass(frozen=True, slots=True)
class PricedStatement:
    """A statement with its price, made once per request and handed to all that speaks of it."""

    wish: AskRequest
    oracle: Database | Analyst
    table: str
    quote: SqlQuote
    shape: Shape
    credits: Fraction | None
    """What to pass on when it is asked; None for the plain price."""
    rows: int | None
    """How many rows each figure is counted on to have: as stated, or for a wished bar as known."""

    def price(self, text: str, credits: Fraction | None = None) -> SqlQuote:
        """Return the price of another text, or of other credits, under the same size."""
        rows = self.wish.rows
        return self.oracle.quote_sql(text, table=self.table, rows=rows, credits=credits)

    def priced_again(self) -> PricedStatement:
        """Return the same statement with its price as it is now."""
        return price_statement(self.oracle, self.table, self.wish)

    @property
    def plain_price(self) -> Fraction:
        return plain_price(self.oracle, self.quote)


def price_statement(oracle: Database | Analyst, table: str, wish: AskRequest) -> PricedStatement:
    """Price a statement; free. Bars that hang on sizes take those that the asker was told."""
    rows, sizes = wish.rows, None
    if wish.within is not None and rows is None:  # a wished bar is priced for a size
        sizes = oracle.quote_sql(wish.untargeted, table=table).sizes
        rows = None if sizes is None else sizes.rows
    quote = oracle.quote_sql(wish.text, table=table, rows=rows)
    shape = shape_of(quote.plan.select, oracle.schema)
    if sizes is not None and quote.credits:  # its bars, at the sizes that it may have
        bars = oracle.quote_sql(wish.untargeted, table=table, credits=quote.credits)
        quote = replace(quote, sizes=sizes, spans=bars.spans)
    found = PricedStatement(wish, oracle, table, quote, shape, None, rows)
    factor = dict(STOPS).get(wish.stop, Fraction(1))
    if factor != 1 and wish.within is None and quote.plan.select.target is None and quote.quotes:
        credits = found.plain_price * factor
        found = replace(found, credits=credits, quote=found.price(wish.text, credits))
    return found


def plain_price(oracle: Database | Analyst, quote: SqlQuote) -> Fraction:
    """Return what the statement costs at the plain error, also where an answer is stored."""
    return sum(unit_prices(quote.plan, oracle), Fraction(0))


# Error bars to come: a number, or a span where nobody knows how many rows match.


def ends_of(quote: SqlQuote, name: str) -> tuple[float, float] | None:
    """The half-width of a figure at the most and at the fewest rows that it may have; None where
    it cannot be told before it is asked."""
    for figure, narrow, wide in quote.spans:
        if figure == name:
            return narrow, wide
    half = dict(quote.half_widths).get(name)
    return None if half is None or not math.isfinite(half) else (half, half)


def first_ends(quote: SqlQuote) -> tuple[float, float] | None:
    """Of the first figure that has a bar."""
    found = (ends_of(quote, name) for name, _ in quote.half_widths)
    return next((ends for ends in found if ends is not None and ends[1]), None)


def span_bar(narrow: float, wide: float, scale: float = 1.0) -> str:
    """ "1.2", or "1.2 to 5.9"."""
    low = bar_text(scale * narrow)
    if not math.isfinite(wide):
        return f"{low} or more"
    high = bar_text(scale * wide)
    return high if low == high else f"{low} to {high}"


CLAUSE = re.compile(
    r"(?P<skip>'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*)|(?P<open>\()|(?P<close>\))|(?P<comma>,)"
    r"|\b(?P<word>SELECT|FROM|HAVING|QUALIFY|ORDER|LIMIT|OFFSET|WITHIN|OPTIONS)\b",
    re.IGNORECASE,
)


def count_first(found: PricedStatement) -> AskRequest | None:
    """Return the count, by the same groups, of the rows that a statement is about; None where its
    text does not fit."""
    text, select = found.wish.untargeted, found.quote.plan.select
    if select.source is not None:
        return None
    depth, starts = 0, -1
    ends: dict[str, int] = {}
    commas: list[int] = []
    for hit in CLAUSE.finditer(text):
        depth += bool(hit["open"]) - bool(hit["close"])
        if depth:
            continue
        if hit["comma"] and "FROM" not in ends:
            commas.append(hit.start())
        elif hit["word"] and hit["word"].upper() == "SELECT":
            starts = hit.end()
        elif hit["word"]:
            ends.setdefault(hit["word"].upper(), hit.start())
    if starts < 0 or "FROM" not in ends:
        return None
    cuts = [starts, *(at + 1 for at in commas), ends["FROM"] + 1]
    items = [text[low : high - 1].strip() for low, high in itertools.pairwise(cuts)]
    if len(items) != len(select.items):
        return None
    keys = [
        item
        for item, read in zip(items, select.items, strict=True)
        if isinstance(read.of, GroupKey)
    ]
    last = min((at for word, at in ends.items() if at > ends["FROM"]), default=len(text))
    listed = ", ".join([*keys, "COUNT(*) AS n"])
    return AskRequest(f"SELECT {listed}\n{text[ends['FROM'] : last].strip()}")
