"""Questions to start with, made from the schema: sensible on any table, priced like all others."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from sulq.database import Analyst, Database
from sulq.errors import SulqError
from sulq.formatting import credits_word
from sulq.kernel.schema.columns import Category, Flag, Number, Schema
from sulq.kernel.schema.columns import Column as Declared
from sulq.kernel.schema.study import Study
from sulq.server.console.ask.request import (
    AskRequest,
    PricedStatement,
    ends_of,
    plain_price,
    price_statement,
    span_bar,
)
from sulq.server.console.labels import bound_text, capital, words_of

FEW = 12
"""Groups that still fit into one picture."""


@dataclass(frozen=True, slots=True)
class Starter:
    title: str
    sql: str
    price: str = ""
    bar: str = ""


@dataclass(frozen=True, slots=True)
class Relation:
    """What a FROM may say, and the columns that are its own. A study has several."""

    name: str
    schema: Schema
    columns: tuple[Declared, ...]
    said: str = ""


def relations(schema: Schema, table: str) -> tuple[Relation, ...]:
    """Return what may be asked under the name of a table; of a study the person table first."""
    if not isinstance(schema, Study):
        return (Relation(table, schema, schema.columns),)
    said = f"one row for each person, joined by {schema.unit}"
    events = (
        Relation(
            event.name,
            schema.relation(event.name),
            event.columns,
            f"any number of rows for each person, {event.max_rows} of them count in sums over rows",
        )
        for event in schema.tables
    )
    return (Relation(schema.name, schema, schema.columns, said), *events)


def starters(schema: Schema, table: str) -> list[Starter]:
    """Return up to four example questions: a count, a figure by group, a histogram, a share. Of a
    study one asks who has a row in another table, and one is about such rows."""
    if not isinstance(schema, Study):
        return _starters(schema, table)
    own, (events, *_) = _starters(schema, schema.name)[:2], schema.tables
    whose = f"e.{name(events.person or schema.unit)} = p.{name(schema.unit)}"
    having = Starter(
        f"How many {schema.who} have {events.name}?",
        f"SELECT COUNT(*) AS {schema.who}\nFROM {name(schema.name)} p\n"  # noqa: S608 - ours
        f"WHERE EXISTS (SELECT 1 FROM {name(events.name)} e WHERE {whose})",
    )
    table_rows = Schema(*events.columns)
    return [*own, having, *_starters(table_rows, events.name)[1:2]]


def _starters(schema: Schema, table: str) -> list[Starter]:
    numbers = [c for c in schema.columns if isinstance(c, Number) and c.kind == "number"]
    flags = [c for c in schema.columns if isinstance(c, Flag)]
    groups = [
        c for c in schema.columns if isinstance(c, Category) and 1 < len(c.values or ()) <= FEW
    ]
    groups.sort(key=lambda column: not column.public)
    found = [
        _counted(schema, table, numbers, flags),
        _by_group(schema, table, numbers, groups),
        _bands(schema, table, numbers[0]) if numbers else None,
        _share(table, flags) if flags else None,
    ]
    return [starter for starter in found if starter]


def _counted(
    schema: Schema, table: str, numbers: list[Number], flags: list[Flag]
) -> Starter | None:
    """Return a count of the rows or people that meet one condition."""
    asked = f"SELECT {count_sql(schema)} AS {name(schema.who)}\nFROM {name(table)}\nWHERE"
    if numbers:
        first = numbers[0]
        middle = _round(sum(first.range, Fraction(0)) / 2, first)
        title = f"How many {schema.who} have {words_of(first)} of {middle} or more?"
        return Starter(title, f"{asked} {name(first.name)} >= {middle}")
    if flags and schema.unit != "row":
        title = f"How many {schema.who} have {words_of(flags[0])}?"
        return Starter(title, f"{asked} {name(flags[0].name)}")
    return None


def _by_group(
    schema: Schema, table: str, numbers: list[Number], groups: list[Category]
) -> Starter | None:
    """Return an average by group, or a count by group where the table has no numbers."""
    if not groups:
        return None
    by = name(groups[0].name)
    if numbers:
        measured = numbers[1] if len(numbers) > 1 else numbers[0]
        title = f"Average {words_of(measured)} by {words_of(groups[0])}"
        figure = f"AVG({name(measured.name)}) AS average"
    else:
        title = f"{schema.who.capitalize()} by {words_of(groups[0])}"
        figure = f"{count_sql(schema)} AS {name(schema.who)}"
    return Starter(title, f"SELECT {by}, {figure}\nFROM {name(table)}\nGROUP BY {by}")


def _bands(schema: Schema, table: str, column: Number) -> Starter:
    """Return a histogram of one number, in bands of equal width."""
    named, width = name(column.name), band_width(column)
    return Starter(
        f"{capital(words_of(column)) if column.about else column.name} in bands of {width}",
        f"SELECT FLOOR({named} / {width}) * {width} AS {named}_from,"
        f" {count_sql(schema)} AS {name(schema.who)}\nFROM {name(table)}\nGROUP BY 1",
    )


def _share(table: str, flags: list[Flag]) -> Starter:
    """Return the share of one flag, among the rows of another flag where there are two."""
    asked = f"SELECT AVG({name(flags[-1].name)}) AS share\nFROM {name(table)}"
    if len(flags) == 1:
        return Starter(f"Share of {words_of(flags[0])}", asked)
    title = f"Share of {words_of(flags[-1])} among {words_of(flags[0])}"
    return Starter(title, f"{asked}\nWHERE {name(flags[0].name)}")


def count_sql(schema: Schema) -> str:
    """How whom a table protects is counted: one person moves a count of persons by one."""
    return "COUNT(*)" if schema.unit == "row" else f"COUNT(DISTINCT {name(schema.unit)})"


def count_prices(oracle: Database | Analyst, table: str) -> tuple[Fraction, Fraction]:
    """Plain prices of one count of whom the table protects and of one of rows; no row is read."""
    private = [column for column in oracle.schema.columns if not column.public]
    if not private:
        return Fraction(1), Fraction(1)
    asked = relations(oracle.schema, table)[0].name
    some = f"FROM {name(asked)} WHERE {name(private[0].name)} IS NOT NULL"
    texts = (f"SELECT {counted} AS n {some}" for counted in (count_sql(oracle.schema), "COUNT(*)"))
    whom, rows = (plain_price(oracle, oracle.quote_sql(text, table=table)) for text in texts)
    return whom, rows


def priced_starters(oracle: Database | Analyst, table: str) -> list[Starter]:
    """The same with prices and bars; what cannot be priced is left out."""
    found = []
    for starter in starters(oracle.schema, table):
        try:
            one = price_statement(oracle, table, AskRequest(starter.sql))
        except SulqError:
            continue
        price = credits_word(one.quote.credits) if one.quote.credits else "free"
        found.append(Starter(starter.title, starter.sql, price, brief(one, oracle.schema)))
    return found


def brief(one: PricedStatement, schema: Schema) -> str:
    """The first bar in few letters: "± 262 each", "± 0.45 points"."""
    if not one.shape.figures:
        return ""
    figure = one.shape.figures[0]
    ends = ends_of(one.quote, figure.name)
    if ends is None:
        return "± by its size"
    if ends[1] == 0:
        return "exact"
    share = figure.kind == "avg" and figure.column in schema
    if share and isinstance(schema[figure.column], Flag):
        return f"± {span_bar(*ends, 100)} points"
    unit = "each" if one.shape.groups else figure.unit if len(figure.unit) <= 10 else ""
    return f"± {span_bar(*ends)} {unit}".strip()


def everyone(oracle: Database | Analyst, table: str, column: Declared) -> tuple[str, str]:
    """The statement that a column's line in the list of columns is the price of, and its kind."""
    named = name(column.name)
    if isinstance(column, Category):
        counted = f"SELECT {named}, COUNT(*) AS n FROM {name(table)} GROUP BY {named}"  # noqa: S608
        return counted, "group"
    return f"SELECT AVG({named}) AS n FROM {name(table)}", "mean"  # noqa: S608 - our own language


def name(text: str) -> str:
    """A name as SQL takes it."""
    return text if re.fullmatch(r"[a-z_][a-z0-9_]*", text) else '"' + text.replace('"', '""') + '"'


def _round(value: Fraction, column: Number) -> str:
    whole = round(float(value) / 5) * 5 if float(value) >= 20 else round(float(value), 2)
    return bound_text(column, whole).replace(",", "")


def band_width(column: Number) -> str:
    """A round width that gives about ten bands."""
    low, high = (float(end) for end in column.range)
    raw = (high - low) / 10
    power = 10.0 ** len(str(int(raw))) / 10 if raw >= 1 else 0.1
    best = min((power * k for k in (1, 2, 5, 10)), key=lambda width: abs((high - low) / width - 10))
    return f"{best:g}"
