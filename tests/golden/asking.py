"""Records of questions: text, digest, noise, price, bar, answer, events and emitted SQL."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tests.golden import inside
from tests.golden.questions import ASKED, SQL
from tests.golden.records import Records, masked, plain
from tests.golden.world import LOOKUPS, PERSONS, PROMISES, SCHEMA, many, table

from sulq import (
    Database,
    Flag,
    Promise,
    Schema,
    SulqError,
    col,
    count,
    histogram,
    mean,
    parse_sql,
    total,
)
from sulq.exact import Assumptions

ASSUMPTIONS = Assumptions(1, "1e-6", 100, {"ill": 0.1, "smoker": 0.1})
HIDDEN = frozenset({"at", "salt", "version", "ledger", "public_key", "data"})
"""Of an event: when, random numbers, and what follows from them."""


def opened(promise: str, **more: Any) -> Database:
    schema, promised = PROMISES[promise]
    return Database.open(table(), schema, promised, ":memory:", name="people", **more)


def kind_of(error: SulqError) -> str:
    """The documented class of an error."""
    public = {
        "InvalidQuery",
        "BudgetSpent",
        "UnsafeExactly",
        "NotPublished",
        "Refused",
        "EngineFailed",
        "SulqError",
    }
    return next(cls.__name__ for cls in type(error).__mro__ if cls.__name__ in public)


def _try(work: Callable[..., Any], *given: Any) -> Any:
    try:
        return work(*given)
    except SulqError as error:
        return {"refused": kind_of(error)}


# --- prices and answers -------------------------------------------------------------------------


def questions() -> tuple[Records, Records]:
    """Every question under every promise: what it is and costs, and the events it leaves."""
    told: Records = {name: {"texts": {}, "under": {}} for name in (*ASKED, *SQL, *ACTS)}
    events: Records = {}
    for promise in PROMISES:
        db = opened(promise)
        quoted = {name: _try(_quoted, db, q) for name, q in ASKED.items()}
        quoted |= {name: _try(_quoted_sql, db, text) for name, text in SQL.items()}
        first = inside.event_bodies(db)
        events[f"{promise} / published"] = plain(masked(first, HIDDEN))
        seen = len(first)
        for name, work in _works(db).items():
            found = dict(quoted.get(name, {}))
            told[name]["texts"] |= found.pop("texts", {})
            before = db.remaining
            if "refused" not in found:
                found |= _try(work)
            told[name]["under"][promise] = found | {"paid": plain(before - db.remaining)}
            bodies = inside.event_bodies(db, seen)
            seen += len(bodies)
            for body in bodies:
                without_chance(body)
                if (text := body.pop("question", None)) is not None:
                    told[name]["texts"][body["digest"]] = text
            if bodies:
                events[f"{promise} / {name}"] = plain(masked(bodies, HIDDEN))
        db.close()
    return told, events


def without_chance(body: dict[str, Any]) -> None:
    """An alert is told apart from all others by random bits in its text."""
    if "arming" in body.get("question", ""):
        body["question"] = re.sub(r'"arming":"\w+"', '"arming":"*"', body["question"])
        body["digest"] = "*"


def _works(db: Database) -> dict[str, Callable[[], Any]]:
    found: dict[str, Callable[[], Any]] = {}
    for name, question in ASKED.items():
        found[name] = lambda q=question: _asked(db, q)
    for name, text in SQL.items():
        found[name] = lambda t=text: _selected(db, t)
    for name, act in ACTS.items():
        found[name] = lambda a=act: a(db)
    return found


def _quoted(db: Database, question: Any) -> dict[str, Any]:
    facts = inside.bound_facts(db, question)
    quote = db.quote(question)
    return {
        "texts": {facts["digest"]: facts["text"]},
        "digest": facts["digest"],
        "noise": facts["noise"],
        "price": plain(quote.credits),
        "bar": plain(quote.interval(0.95)[1]),
        "shown": repr(quote),
    }


def _asked(db: Database, question: Any) -> dict[str, Any]:
    answer = db.ask(question)
    return {
        "kind": answer.kind,
        "value": plain(answer.value),
        "error": plain(answer.standard_error),
        "credits": plain(answer.credits),
        "derived": bool(answer.sources),
    }


def _quoted_sql(db: Database, text: str) -> dict[str, Any]:
    quote = db.quote_sql(text, lookups=LOOKUPS)
    asked = [inside.bound_facts(db, question) for question in _parsed(text, db)]
    return {
        "texts": {facts["digest"]: facts["text"] for facts in asked},
        "price": plain(quote.credits),
        "questions": [facts["digest"] for facts in asked],
        "noise": [facts["noise"] for facts in asked],
    }


def _selected(db: Database, text: str) -> dict[str, Any]:
    found = db.sql(text, lookups=LOOKUPS)
    return {
        "columns": [column.name for column in found.columns],
        "rows": plain([list(map(plain, row.values())) for row in found.records()]),
        "credits": plain(found.credits),
    }


def _parsed(text: str, db: Database) -> list[Any]:
    return [] if "regions" in text else list(parse_sql(text, db.schema))


# --- plans, keys, choices, alerts, shares ---------------------------------------------------------


def _plan(db: Database) -> dict[str, Any]:
    plan = db.plan([count(where=col("age") < 40), mean("score"), histogram("grade")], credits=8)
    answers = plan.ask(key="golden-plan")
    return {
        "price": plain(plan.credits),
        "lines": [plain(line.credits) for line in plan.lines],
        "values": [plain(answer.value) for answer in answers],
    }


def _keys(db: Database) -> dict[str, Any]:
    quote = db.quote_keys("note", credits=50)
    found = db.keys("note", credits=50)
    return {
        "price": plain(quote.credits),
        "delta": plain(quote.delta),
        "threshold": plain(quote.threshold),
        "keys": list(found.keys),
        "counts": plain(found.counts),
        "held back": plain(found.held_back),
    }


def _top(db: Database) -> dict[str, Any]:
    found = db.top("blood", by=total("visits", where=col("age") > 20), k=2, credits=4)
    return {"keys": plain(found.keys), "credits": plain(found.credits)}


def _alert(db: Database) -> dict[str, Any]:
    alert = db.alert(count(where=col("ill")), above=5, firings=2, credits=3)
    return {"fired": alert.check(), "left": alert.left}


def _grant(db: Database) -> dict[str, Any]:
    db.grant("ann", 30)
    ann = db.as_analyst("ann")
    quote = ann.quote(count(where=col("age") >= 65))
    answer = ann.ask(count(where=col("age") >= 65), key="golden-key")
    again = ann.ask(count(where=col("age") >= 65), key="golden-key")
    return {
        "price": plain(quote.credits),
        "credits": [plain(answer.credits), plain(again.credits)],
        "left": plain(ann.remaining),
    }


def _reserve(db: Database) -> dict[str, Any]:
    with db.reserve(20) as reserved:
        answer = reserved.ask(count(where=col("visits") == 2))
        left = plain(reserved.remaining)
    return {"credits": plain(answer.credits), "left": left}


def _within(db: Database) -> dict[str, Any]:
    quote = db.quote(total("visits", where=col("ill")), within=500, confidence=0.9)
    return {"price": plain(quote.credits), "bar": plain(quote.interval(0.9)[1])}


def _credits(db: Database) -> dict[str, Any]:
    asked = count(where=col("grade") == 2)
    facts = inside.bound_facts(db, asked, Fraction(5, 2))
    answer = db.ask(asked, credits=Fraction(5, 2))
    return {"noise": facts["noise"], "credits": plain(answer.credits)}


def _outside(db: Database) -> dict[str, Any]:
    db.charge_outside(credits=7, reason="a table in print")
    return {"left": plain(db.remaining)}


def _statement(db: Database) -> dict[str, Any]:
    account = db.statement()
    return {
        "spent": plain(account.spent),
        "left": plain(account.left),
        "meaning": plain(vars_of(account.meaning)),
    }


def vars_of(value: Any) -> dict[str, Any]:
    names = getattr(value, "__dataclass_fields__", None) or vars(value)
    return {name: getattr(value, name) for name in names}


ACTS: dict[str, Callable[[Database], dict[str, Any]]] = {
    "act plan": _plan,
    "act keys": _keys,
    "act top": _top,
    "act alert": _alert,
    "act grant": _grant,
    "act reserve": _reserve,
    "act within": _within,
    "act credits": _credits,
    "act outside": _outside,
    "act statement": _statement,
}


# --- emitted SQL --------------------------------------------------------------------------------

KINDS = {
    "id": "whole",
    "age": "whole",
    "income": "real",
    "score": "real",
    "visits": "whole",
    "born": "day",
    "seen": "time",
    "smoker": "flag",
    "ill": "flag",
    "city": "text",
    "blood": "text",
    "grade": "whole",
    "note": "text",
}


def statements() -> Records:
    """The SQL of every question in every dialect; the promises that it is the same for."""
    told: Records = {}
    for promise in PROMISES:
        db = opened(promise)
        for dialect in inside.DIALECTS:
            for name, question in (*ASKED.items(), *_from_sql(db)):
                if isinstance(found := _try(inside.emitted, db, question, dialect), list):
                    _note(told, f"{name} / {dialect}", found, promise)
            for rows in (240, 3_000_000):
                found = inside.emitted_keys(db, "note", dialect, rows)
                _note(told, f"keys of {rows} rows / {dialect}", found, promise)
        if promise == "person":
            for dialect in inside.DIALECTS:
                told[f"rows that count / {dialect}"] = inside.kept_rows(db, PERSONS, dialect)
        db.close()
    told["columns"] = inside.column_readings(SCHEMA, KINDS)
    return told


def _from_sql(db: Database) -> list[tuple[str, Any]]:
    return [
        (f"{name} {number}", question)
        for name, text in SQL.items()
        for number, question in enumerate(_parsed(text, db))
    ]


def _note(told: Records, name: str, found: list[str], promise: str) -> None:
    for held in told.setdefault(name, []):
        if held["sql"] == found:
            held["under"].append(promise)
            return
    told[name].append({"sql": found, "under": [promise]})


# --- tables of other kinds ----------------------------------------------------------------------


def specials() -> Records:
    """Other noise, keys that are shown, sums without noise, a balance for every person."""
    told: Records = {}
    for noise in ("binomial", "huber"):
        promise = Promise(epsilon=1, delta="1e-6", credits=20, noise=noise)
        with Database.open(table(), SCHEMA, promise, ":memory:", name="people") as db:
            for name in ("count where", "histogram category", "cdf edges", "mean"):
                asked = ASKED[name]
                told[f"{noise} / {name}"] = _try(
                    lambda db=db, asked=asked: _quoted(db, asked) | _asked(db, asked)
                )
    promise = Promise(epsilon=4, delta="1e-4", credits=4)
    with Database.open(table(), SCHEMA, promise, ":memory:", name="people") as db:
        found = db.keys("note", credits=3)
        told["keys shown"] = {
            "keys": list(found.keys),
            "counts": plain(found.counts),
            "threshold": plain(found.threshold),
            "left": plain(db.remaining),
        }
    schema, promise = Schema(Flag("ill"), Flag("smoker")), Promise(1, "1e-6", credits=100)
    with Database.open(many(), schema, promise, ":memory:", name="many", exactly=ASSUMPTIONS) as db:
        batch = [count(where=col("ill")), count(where=col("ill") & col("smoker"))]
        quote = db.quote_exactly(batch)
        first = len(inside.event_bodies(db))
        answer = db.ask_exactly(batch)[0]
        told["exact"] = {
            "value": plain(answer.value),
            "credits": plain(answer.credits),
            "guarantee": answer.guarantee,
            "quoted": sorted(vars_of(quote)),
            "events": plain(masked(inside.event_bodies(db, first), HIDDEN)),
            "declared": plain(db.declaration),
        }
    with opened("add-remove", individual=True) as db:
        first = len(inside.event_bodies(db))
        answer = db.ask(count(where=col("smoker")))
        told["individual"] = {
            "value": plain(answer.value),
            "credits": plain(answer.credits),
            "left": plain(db.remaining),
            "events": plain(masked(inside.event_bodies(db, first), HIDDEN)),
        }
    return told
