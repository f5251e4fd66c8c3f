"""Expressions and questions back in SQL spelling, for people who read the books."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import takewhile
from typing import Any

from sulq.errors import InvalidQuery
from sulq.kernel.query.canonical import from_json
from sulq.kernel.query.expressions import Column, Expression, Literal, Operation
from sulq.kernel.query.person_values import PersonValue, is_person_value, read_person_value
from sulq.kernel.query.sum_query import Group, SumQuery

INFIX = {"add": " + ", "multiply": " * ", "divide": " / "}
JOINED = {"and": " AND ", "or": " OR "}
ORDER = {"lt": ("<", ">"), "le": ("<=", ">="), "eq": ("=", "="), "ne": ("<>", "<>")}
CALLS = {"abs": "ABS", "least": "LEAST", "greatest": "GREATEST", "clip": "CLAMP"}
CALLS |= {"coalesce": "COALESCE", "centred": "CENTRED", "hashed": "HASHED"}
PERSONS = "COUNT(DISTINCT PERSON)"
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_RESERVED = {
    *("and", "or", "not", "in", "is", "like", "between", "null", "true", "false"),
    *("case", "when", "then", "else", "end", "cast", "date", "timestamp", "interval"),
    *("select", "from", "where", "group", "order", "by", "as", "exists", "any", "all", "distinct"),
}


def sql_text(expression: Expression) -> str:
    """What `parse_condition` or `parse_value` reads as an expression of the same meaning.

    A value of a person is its subquery, without the words that say that it is over rows of that
    person: for people to read.
    """
    match expression:
        case Column(name) if is_person_value(name):
            return _person_value(read_person_value(name))
        case Column(name):
            return _name(name)
        case Literal(value):
            return _literal(value)
        case Operation(name="among" | "not_among" as name, operands=(subject, *listed)):
            return _member(name == "among", subject, listed)
        case Operation(name="choose", operands=(condition, then, otherwise)):
            parts = (sql_text(condition), sql_text(then), sql_text(otherwise))
            return "CASE WHEN {} THEN {} ELSE {} END".format(*parts)
        case Operation(name="is_null" | "not_null" as name, operands=(subject,)):
            return f"{_inner(subject)} IS {'' if name == 'is_null' else 'NOT '}NULL"
        case Operation(name="like" | "not_like" as name, operands=(subject, pattern)):
            return f"{_inner(subject)} {name.replace('_', ' ').upper()} {sql_text(pattern)}"
        case Operation(name="not", operands=(subject,)):
            return f"NOT {_inner(subject)}"
        case Operation(name="negate", operands=(subject,)):
            return f"-{_inner(subject)}"
        case Operation(name=name, operands=(left, right)) if name in ORDER:
            if isinstance(left, Literal):  # 65 <= age reads age >= 65
                return f"{_inner(right)} {ORDER[name][1]} {_inner(left)}"
            return f"{_inner(left)} {ORDER[name][0]} {_inner(right)}"
        case Operation(name=name, operands=parts) if name in JOINED:
            return JOINED[name].join(_clause(part) for part in parts)
        case Operation(name=name, operands=parts) if name in INFIX:
            return INFIX[name].join(_inner(part) for part in parts)
        case Operation(name=name, operands=parts) if name in CALLS:
            return f"{CALLS[name]}({', '.join(sql_text(part) for part in parts)})"
    raise InvalidQuery(f"no SQL spelling for {type(expression).__name__}")


def _person_value(asked: PersonValue) -> str:
    """A value of a person as the subquery that it is, over rows of the same person."""
    rows = sql_text(asked.rows)
    where = "" if rows == "TRUE" else f" WHERE {rows}"
    of = f"FROM {_name(asked.table)}{where}"
    if asked.value is None:
        return f"EXISTS (SELECT 1 {of})" if asked.kind == "exists" else f"(SELECT COUNT(*) {of})"
    value = sql_text(asked.value)
    if asked.by is not None:
        way = "" if asked.kind == "first" else " DESC"
        return f"(SELECT {value} {of} ORDER BY {_name(asked.by)}{way} LIMIT 1)"
    if asked.limit is not None:
        signs = {"latest": ("<=", "<"), "earliest": (">=", ">")}[asked.kind]
        near = f"{_inner(asked.value)} {signs[asked.strict]} {_inner(asked.limit)}"
        which = "MAX" if asked.kind == "latest" else "MIN"
        return f"(SELECT {which}({value}) {of}{' AND' if where else ' WHERE'} {near})"
    called = "AVG" if asked.kind == "mean" else asked.kind.upper()
    found = f"(SELECT {called}({value}) {of})"
    if asked.clip is None:
        return found
    return f"CLAMP({found}, {', '.join(sql_text(end) for end in asked.clip)})"


def _inner(expression: Expression) -> str:
    """In brackets where another operation could reach in."""
    text = sql_text(expression)
    match expression:
        case Column():
            closed = True
        case Literal():
            closed = "/" not in text and not text.startswith("-")
        case Operation(name=name):
            closed = name in CALLS or name == "choose"
        case _:
            closed = False
    return text if closed else f"({text})"


def _clause(expression: Expression) -> str:
    """A part of AND or OR: only these two could mix."""
    text = sql_text(expression)
    mixes = isinstance(expression, Operation) and expression.name in JOINED
    return f"({text})" if mixes else text


def _name(name: str) -> str:
    if _PLAIN.fullmatch(name) and name not in _RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'


def _literal(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case Fraction():
            with localcontext(prec=40):
                short = Decimal(value.numerator) / Decimal(value.denominator)
            exact = Fraction(short) == value
            return f"{short:f}" if exact else f"{value.numerator} / {value.denominator}"
        case datetime.datetime():
            return f"TIMESTAMP '{value.isoformat(' ')}'"
        case datetime.date():
            return f"DATE '{value.isoformat()}'"
    return "'" + str(value).replace("'", "''") + "'"


def _member(positive: bool, subject: Expression, listed: list[Expression]) -> str:
    if len(listed) == 1:
        only = listed[0]
        if isinstance(only, Literal) and isinstance(only.value, bool):
            return _inner(subject) if only.value is positive else f"NOT {_inner(subject)}"
        return f"{_inner(subject)} {'=' if positive else '<>'} {_inner(only)}"
    values = ", ".join(sql_text(item) for item in listed)
    return f"{_inner(subject)} {'IN' if positive else 'NOT IN'} ({values})"


def question_text(stored: str) -> str:
    """A stored question as a line of SQL, or near it; a learner's sums stay as they are stored."""
    try:
        form = json.loads(stored)
        match form:
            case {"alert": inner, "above": str(least)}:
                return f"ALERT ABOVE {_literal(Fraction(least))}: {_inner_text(inner)}"
            case {"share": inner, "owners": list(owners)}:
                return f"SHARE OF {len(owners)} OWNERS: {_inner_text(inner)}"
            case {"top": int(many), "of": inner}:
                return f"TOP {many}: {_inner_text(inner)}"
            case {"keys": str(column), "rows": rows}:
                held, known = sql_text(from_json(rows)), f"{_name(column)} IS NOT NULL"
                return f"KEYS: {_name(column)}" + ("" if held == known else f" WHERE {held}")
            case {"keys": list(columns), "rows": rows, "sums": list(terms)}:
                return _figures_text(columns, rows, terms, "of" in form)
        query = SumQuery.from_json(form)
        if not query.terms:
            return stored
        sums = ", ".join(_term(term) for term in query.terms)
        groups = ", ".join(_group(group) for group in query.groups)
        if query.clip is not None:
            low, high = (sql_text(end) for end in query.clip)
            once = (sums, low, high) == ("COUNT(*)", "0", "1")
            what = f"ALL {sums}" if query.uncut else sums
            once = once and not query.uncut
            sums = PERSONS if once else f"SUM(CLAMP({what} PER PERSON, {low}, {high}))"
        rows = "" if _literal(True) == (rows := sql_text(query.rows)) else f" WHERE {rows}"
        rows = f" FROM {_name(query.table)}{rows}" if query.table else rows
    except (InvalidQuery, ValueError):
        return stored
    return f"{sums}{rows}{f' GROUP BY {groups}' if groups else ''}"


def _inner_text(form: object) -> str:
    return question_text(json.dumps(form))


def told_apart(questions: Sequence[str], widest: int = 60) -> list[str]:
    """Each in few letters, no word cut in two. Different ones stay different: what they have in
    common is cut out, and where that does not help they stand in full."""

    def cut(asked: str, start: int) -> str:
        if len(asked) <= widest:
            return asked
        head = _words(asked, widest // 3) + " ... " if start else ""
        rest = asked[start:]
        room = widest - len(head)
        return head + (rest if len(rest) <= room else _words(rest, room - 4) + " ...")

    short = {asked: cut(asked, 0) for asked in questions}
    for alike in _alike(short):
        first, last = min(alike), max(alike)  # what these two share, all of them do
        shared = [
            a for a, b in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
        ]
        before = " ".join("".join(shared).split(" ")[-3:])  # the last words say of what it is
        start = max(widest // 3, len(shared) - len(before))
        short |= {asked: cut(asked, start) for asked in alike}
    for alike in _alike(short):
        short |= {asked: asked for asked in alike}
    return [short[asked] for asked in questions]


def _words(text: str, most: int) -> str:
    """As many whole words as fit."""
    return text[: most + 1].rpartition(" ")[0].rstrip()


def _alike(short: Mapping[str, str]) -> list[list[str]]:
    """Different questions whose short text is the same."""
    found: dict[str, list[str]] = {}
    for asked, said in short.items():
        found.setdefault(said, []).append(asked)
    return [alike for alike in found.values() if len(alike) > 1]


def _figures_text(columns: list[str], rows: Any, terms: list[Any], persons: bool) -> str:
    """Keys with figures."""
    figures = ["COUNT(persons)" if persons else "COUNT(*)"]
    figures += [_term(from_json(term)) for term in terms]
    named = ", ".join(map(_name, columns))
    return f"KEYS: {named} WITH {', '.join(figures)} WHERE {sql_text(from_json(rows))}"


def _term(term: Expression) -> str:
    text = sql_text(term)
    return "COUNT(*)" if text == "1" else f"SUM({text})"


def _group(group: Group) -> str:
    text = sql_text(group.of)
    if group.edges is not None:
        text += f" CUT AT ({', '.join(sql_text(edge) for edge in group.edges)})"
    elif group.bins is not None:
        text += f" IN {group.bins} BINS"
    return text + (" WITH OTHER" if group.other else "") + (" AND ALL PAIRS" if group.tree else "")


# What sort of answer a charge bought: read off the canonical text that the ledger keeps.


DERIVED = '{"derived":'
KEYED = (
    ("keys", "Keys that nobody declared"),
    ("top", "Largest cells, names only"),
    ("alert", "Alerts"),
    ("share", "Shares of sums over several owners"),
    ("outer", "Learning: matrices of sums"),
)
LEARNING = KEYED[-1][1]


def kind_of(question: str, noise: str = "") -> str:
    """The kind of a stored question; the report and the pages count by it."""
    if noise.startswith(DERIVED):
        return "Free: followed from earlier answers"
    if '"guarantee"' in noise:
        return "Released under assumptions"
    form = json.loads(question)
    for key, kind in KEYED:
        if key in form:
            return kind
    terms, groups = form.get("terms") or [], form.get("groups") or []
    if any(isinstance(group, Mapping) and group.get("tree") for group in groups):
        return "Distributions and quantiles"
    if not all(map(_counts, terms)):
        return "Averages and spreads" if len(terms) > 1 else "Totals"
    return "Histograms" if groups else "Counts" if terms else "Totals"


def _counts(term: Any) -> bool:
    """True for 1, and for 1 or 0 by a condition."""
    if term[0] == "choose":
        return all(map(_counts, term[2:]))
    return bool(term[0] == "num")
