"""Every verb of the service, once: for the routes of /v1 and for the pages of the console."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np

from sulq.database import Analyst, Database
from sulq.errors import InvalidQuery
from sulq.oracle import Answer
from sulq.query.statistics import Statistic
from sulq.query.sum_query import SumQuery
from sulq.server.access import Access, Caller, Role
from sulq.server.bodies import AskBody, QuestionBody, QuoteBody, SqlBody
from sulq.server.problems import Problem, not_for_this_role, not_found
from sulq.server.tables import Tables
from sulq.sql.estimates import Estimate
from sulq.sql.result import Result


class Service:
    """What a caller may do with the tables. Sync; raises SulqError or Problem."""

    def __init__(self, tables: Tables, access: Access) -> None:
        self.tables, self.access = tables, access

    def database(self, caller: Caller, table: str) -> Database:
        """The table, if this token reaches it; else as if it were not there."""
        if caller.tables is not None and table not in caller.tables:
            raise not_found("there is no table of this name here, or it is not for this token")
        return self.tables[table]

    def oracle(self, caller: Caller, table: str) -> Database | Analyst:
        """What the caller asks through: the owner, or an analyst in the own name."""
        database = self.database(caller, table)
        if caller.role == Role.OWNER:
            return database
        if caller.role == Role.ANALYST:
            return database.as_analyst(caller.name)
        raise not_for_this_role(str(caller.role))

    def quote(self, caller: Caller, table: str, body: QuoteBody) -> dict[str, Any]:
        oracle = self.oracle(caller, table)
        terms: dict[str, Any] = {
            "confidence": body.confidence,
            "rows": body.rows,
            "credits": exact(body.credits),
        }
        if (body.question is None) == (body.sql is None):
            raise InvalidQuery("a quote is for a question or for sql: give one of them")
        if body.sql is not None:
            found = oracle.quote_sql(body.sql, table=table, lookups=body.lookups, **terms)
            bars = [{"name": name, "half_width": half} for name, half in found.half_widths]
            more: dict[str, Any] = {"columns": bars, "questions": len(found.quotes)}
            repeat = all(quote.repeat for quote in found.quotes)
            left, note = found.left_after, found.note
            price = found.credits
        else:
            assert body.question is not None  # noqa: S101
            quote = oracle.quote(question_of(body.question), within=body.within, **terms)
            price, left, note, repeat = quote.credits, quote.left_after, quote.note, quote.repeat
            half = quote.interval(body.confidence)[1]
            more = {"half_width": plain(half), "standard_error": plain(quote.standard_error)}
        return {
            **both("credits", price),
            **both("left_after", left),
            "affordable": left >= 0,
            "repeat": repeat,
            "confidence": body.confidence,
            "note": note,
            **more,
        }

    def ask(self, caller: Caller, table: str, body: AskBody, key: str) -> dict[str, Any]:
        oracle = self.oracle(caller, table)
        question = question_of(body.question)
        terms: dict[str, Any] = {
            "within": body.within,
            "confidence": body.confidence,
            "credits": exact(body.credits),
            "rows": body.rows,
        }
        if body.max_credits is not None:
            check_price(oracle.quote(question, **terms).credits, body.max_credits)
        return answer_json(oracle.ask(question, key=key, **terms), body.confidence)

    def sql(self, caller: Caller, table: str, body: SqlBody, key: str) -> dict[str, Any]:
        oracle = self.oracle(caller, table)
        terms: dict[str, Any] = {
            "confidence": body.confidence,
            "credits": exact(body.credits),
            "rows": body.rows,
            "lookups": body.lookups,
            "table": table,
        }
        if body.max_credits is not None:
            check_price(oracle.quote_sql(body.sql, **terms).credits, body.max_credits)
        return result_json(oracle.sql(body.sql, key=key, **terms))

    def schema(self, caller: Caller, table: str) -> dict[str, Any]:
        database = self.database(caller, table)
        left = database.remaining
        if caller.role == Role.ANALYST:
            left = database.left_for(caller.name)
        return {
            "table": table,
            "schema": database.schema.to_json(),
            "promise": database.promise.to_json(),
            "size": database.size,
            "who": database.schema.who,
            "neighbours": database.promise.neighbours,
            "remaining": float(left),
            "remaining_exact": str(left),
        }

    def listed(self, caller: Caller) -> list[dict[str, Any]]:
        names = [n for n in self.tables.names() if caller.tables is None or n in caller.tables]
        return [self._line(caller, name) for name in names]

    def _line(self, caller: Caller, name: str) -> dict[str, Any]:
        database = self.tables[name]
        analyst = caller.role == Role.ANALYST
        left = database.left_for(caller.name) if analyst else database.remaining
        return {
            "name": name,
            "state": "open",
            "size": database.size,
            **both("credits", Fraction(database.promise.credits)),
            **both("left", left),
        }

    def statement(self, caller: Caller, table: str) -> dict[str, Any]:
        database = self.database(caller, table)
        found = database.statement()
        return {
            "table": table,
            **both("spent", found.spent),
            **both("left", found.left),
            "guarantee": found.guarantee,
            "text": str(found),
        }


def exact(credits: float | str | None) -> Fraction | None:
    """Credits as sent: a number, or "3/2" as text."""
    if credits is None:
        return None
    try:
        return Fraction(credits)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise InvalidQuery('credits are a number, or a fraction as text: "3/2"') from None


def both(name: str, credits: Fraction) -> dict[str, Any]:
    """An exact number for programs, and a plain one for people."""
    return {name: float(credits), f"{name}_exact": str(credits)}


def check_price(price: Fraction, most: float | str) -> None:
    allowed = exact(most)
    if allowed is not None and price > allowed:
        raise Problem(
            409,
            "price_changed",
            f"this costs {float(price):g} credits now, more than max_credits = {float(allowed):g}",
            "look at the price again: POST quote; nothing was charged",
        )


def question_of(body: QuestionBody) -> Statistic | SumQuery:
    query = SumQuery.from_json(body.query)
    return Statistic(body.kind, query, tuple(body.shares))


def plain(value: Any) -> Any:
    """Arrays as nested lists."""
    if value is None:
        return None
    return np.asarray(value).tolist()


def answer_json(answer: Answer, confidence: float) -> dict[str, Any]:
    low, high = answer.interval(confidence)
    return {
        "kind": answer.kind,
        "value": plain(answer.value),
        "standard_error": plain(answer.standard_error),
        "low": plain(low),
        "high": plain(high),
        "keys": json.loads(json.dumps(answer.keys, default=str)),
        "axes": list(answer.axes),
        **both("credits", answer.credits),
        "receipt": None if answer.receipt is None else json.loads(answer.receipt.to_json()),
        "note": answer.note,
        "question": answer.question,
        "guarantee": answer.guarantee,
        "terms": answer.terms,
        "sources": list(answer.sources),
    }


def result_json(result: Result) -> dict[str, Any]:
    def cell(value: Any) -> Any:
        if not isinstance(value, Estimate):
            return str(value) if isinstance(value, tuple) else value
        low, high = value.interval(result.confidence)
        return {"value": value.value, "low": low, "high": high}

    return {
        "columns": [{"name": c.name, "is_key": c.is_key, "unit": c.unit} for c in result.columns],
        "rows": [[cell(value) for value in row] for row in result.rows],
        **both("credits", result.credits),
        "receipts": [receipt.seq for receipt in result.receipts if receipt is not None],
        "notes": list(result.notes),
        "confidence": result.confidence,
    }
