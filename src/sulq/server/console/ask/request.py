"""A statement, how exactly it should be answered, and what that costs. No row is read."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction

from sulq.database import Analyst, Database
from sulq.server.console.labels import Shape, shape_of
from sulq.sql.api import SqlQuote
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
    """How many rows each figure is assumed to have."""
    assumed: bool
    """True if nobody stated the size that the error bars depend on."""

    def price(self, text: str, credits: Fraction | None = None) -> SqlQuote:
        """Return the price of another text, or of other credits, under the same size."""
        return self.oracle.quote_sql(text, table=self.table, rows=self.rows, credits=credits)

    def priced_again(self) -> PricedStatement:
        """Return the same statement with its price as it is now."""
        return replace(self, quote=self.price(self.wish.text, self.credits))

    @property
    def plain_price(self) -> Fraction:
        return plain_price(self.oracle, self.quote)


def price_statement(oracle: Database | Analyst, table: str, wish: AskRequest) -> PricedStatement:
    """Price a statement; free. Bars that depend on sizes assume public ones, and say so."""
    quote = oracle.quote_sql(wish.text, table=table, rows=wish.rows)
    shape = shape_of(quote.plan.select, oracle.schema)
    found = PricedStatement(wish, oracle, table, quote, shape, None, wish.rows, assumed=False)
    if wish.rows is None and not all(figure.sized for figure in shape.figures):
        found = replace(found, assumed=True)
        if shape.groups and oracle.size is not None:
            rows = max(1, oracle.size // max(1, shape.cells))
            found = replace(found, rows=rows).priced_again()
    factor = dict(STOPS).get(wish.stop, Fraction(1))
    if factor != 1 and wish.within is None and quote.plan.select.target is None and quote.quotes:
        found = replace(found, credits=found.plain_price * factor).priced_again()
    return found


def plain_price(oracle: Database | Analyst, quote: SqlQuote) -> Fraction:
    """Return what the statement costs at the plain error, also where an answer is stored."""
    return sum(unit_prices(quote.plan, oracle), Fraction(0))
