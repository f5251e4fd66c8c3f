"""The question builder: only what the schema lets be answered is offered. No row is read."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response

from sulq.database import Analyst, Database
from sulq.errors import SulqError
from sulq.kernel.schema.columns import Category, Flag, Number, Schema
from sulq.kernel.schema.columns import Column as Declared
from sulq.server.console.examples import band_width, count_sql, name, relations
from sulq.server.console.framework import fragment
from sulq.server.console.labels import words_of
from sulq.server.errors import not_found
from sulq.server.executor import Asker
from sulq.server.service.session import TableSession

router = APIRouter(include_in_schema=False)
MEASURES = {
    "AVG": "the average (of yes or no: the share)",
    "SUM": "the total",
    "MEDIAN": "the median",
    "STDDEV": "the spread (standard deviation)",
}


@dataclass(frozen=True, slots=True)
class BuildColumn:
    name: str
    said: str
    fits: str
    """Measures that may be taken of it."""
    kind: str
    """How it is filtered; empty where it cannot be."""
    groups: bool
    width: str


@dataclass(frozen=True, slots=True)
class BuildView:
    count: str
    measures: tuple[tuple[str, str], ...]
    columns: tuple[BuildColumn, ...]


@dataclass(frozen=True, slots=True)
class FilterView:
    at: int
    name: str
    said: str
    kind: str
    values: tuple[tuple[str, str], ...] = ()
    """A value as SQL spells it, and as people read it."""
    low: str = ""
    high: str = ""
    step: str = "any"


def build_view(oracle: Database | Analyst, table: str) -> BuildView:
    """What may be asked by clicking: measures that this promise answers, columns by their kind."""
    schema, asked = oracle.schema, relations(oracle.schema, table)[0].name
    numbers = [c for c in schema.columns if isinstance(c, Number) and c.kind == "number"]
    answered = [measure for measure in MEASURES if _answered(oracle, asked, measure, numbers)]
    flagged = [c for c in schema.columns if isinstance(c, Flag)]
    if "AVG" not in answered and _answered(oracle, asked, "AVG", flagged[:1]):
        answered.insert(0, "AVG")
    listed = [("COUNT", f"how many {schema.who}"), *((m, MEASURES[m]) for m in answered)]
    return BuildView(
        count_sql(schema),
        tuple(listed),
        tuple(_column(column, answered) for column in schema.columns),
    )


def _answered(
    oracle: Database | Analyst, asked: str, measure: str, columns: list[Number] | list[Flag]
) -> bool:
    if not columns:
        return False
    try:
        oracle.quote_sql(
            f"SELECT {measure}({name(columns[0].name)}) FROM {name(asked)}",  # noqa: S608 - our own language
            table=asked,
        )
    except SulqError:
        return False
    return True


def _column(column: Declared, answered: list[str]) -> BuildColumn:
    kind = kind_of(column)
    fits = answered if kind == "number" else [m for m in answered if m == "AVG" and kind == "flag"]
    width = band_width(column) if isinstance(column, Number) and kind == "number" else ""
    groups = kind in ("number", "category", "flag")
    return BuildColumn(column.name, words_of(column), " ".join(fits), kind, groups, width)


def kind_of(column: Declared) -> str:
    """How a column is filtered by clicking; empty where it is not."""
    if isinstance(column, Flag):
        return "flag"
    if isinstance(column, Category):
        return "" if column.values is None else "category"
    return {"number": "number", "date": "date"}.get(column.kind, "")


def filter_view(session: TableSession, column: str) -> FilterView:
    """The filter of one column; of one that is hidden, as if it were not there."""
    schema: Schema = session.oracle().schema
    declared = next((each for each in schema.columns if each.name == column), None)
    kind = "" if declared is None else kind_of(declared)
    if declared is None or not kind:
        raise not_found("there is no column of this name that can be filtered by")
    at = schema.columns.index(declared)
    if isinstance(declared, Category):
        values = tuple((literal(value), declared.said(value)) for value in declared.values or ())
        return FilterView(at, column, words_of(declared), kind, values)
    if isinstance(declared, Number):
        low, high = declared.low, declared.high
        ends = (f"{low:g}", f"{high:g}") if kind == "number" else (str(low), str(high))
        step = "1" if declared.step == 1 or kind == "date" else "any"
        unit = declared.measured_in
        said = f"{words_of(declared)}, {unit}" if unit else words_of(declared)
        return FilterView(at, column, said, kind, (), *ends, step)
    return FilterView(at, column, words_of(declared), kind)


def literal(value: object) -> str:
    """A declared value as SQL takes it."""
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


@router.get("/console/{table}/filter")
async def filter_of(request: Request, session: Asker, column: str) -> Response:
    return await fragment(request, "build.html#filter", filter_view, session, column)
