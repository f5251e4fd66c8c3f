"""Constants of a statement: parameters, today's day, and arithmetic of days with intervals.

A parameter is a value, never text: it takes the place of its mark after the words are told apart.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sqlglot import Token, TokenType, exp

from sulq.errors import InvalidQuery, Reason
from sulq.sql.parse.calendar import BY_BORDERS, INSIDE, truncated
from sulq.sql.parse.grammar import Node, wrong
from sulq.sql.parse.normalise import unit_of
from sulq.sql.parse.scope import constant

Params = Sequence[Any] | Mapping[str, Any]
MARK = "\ufdd0"
"""Begins the name that stands for a parameter while the words are read; no text may hold it."""

_NAMED = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER)


# --- parameters ---------------------------------------------------------------------------------


def marked(tokens: list[Token], params: Params | None) -> list[Token]:
    """The words with every mark of a parameter (?, %s, :name, $1, @name) as one odd name."""
    if params is None:
        return tokens
    found: list[Token] = []
    place = counted = 0
    while place < len(tokens):
        size, name = _mark(tokens, place)
        if not size:
            found.append(tokens[place])
            place += 1
            continue
        if name == "":
            name, counted = str(counted + 1), counted + 1
        first, last = tokens[place], tokens[place + size - 1]
        found.append(
            Token(TokenType.IDENTIFIER, MARK + name, first.line, first.col, first.start, last.end)
        )
        place += size
    return found


def _mark(tokens: list[Token], place: int) -> tuple[int, str]:
    """How many words a parameter takes here, 0 for none, and its name; "" goes by order."""
    token, rest = tokens[place], tokens[place + 1 : place + 5]
    joined = [
        word
        for before, word in zip([token, *rest], rest, strict=False)
        if before.end + 1 == word.start
    ]
    words = (
        [word.text for word in joined[: len(rest)]] if len(joined) == len(rest) or joined else []
    )
    kind = token.token_type
    if kind == TokenType.PLACEHOLDER and token.text == "?":
        return 1, ""
    if kind == TokenType.MOD or token.text == "%":
        if words[:1] == ["s"]:
            return 2, ""
        if len(words) >= 4 and words[0] == "(" and words[2:4] == [")", "s"]:
            return 5, words[1]
    if kind in (TokenType.COLON, TokenType.PARAMETER) or token.text in (":", "$", "@"):
        return (2, words[0]) if words and rest[0].token_type in _NAMED else (0, "")
    if kind == TokenType.VAR and token.text[:1] == "$" and token.text[1:]:
        return 1, token.text[1:]
    return 0, ""


def filled(tree: Node, params: Params | None) -> Node:
    """The tree with the values of its parameters as constants."""
    if params is None:
        return tree
    values = _by_name(params)
    used: set[str] = set()
    for column in list(tree.find_all(exp.Column)):
        name = column.name
        if not name.startswith(MARK):
            continue
        wanted = name[1:]
        if wanted not in values:
            said = ", ".join(sorted(values)) or "none"
            raise wrong(
                column,
                Reason.WRONG_FORM,
                f"no value for the parameter {wanted!r:.40}; given: {said}",
            )
        used.add(wanted)
        _put(column, values[wanted])
    spare = sorted(set(values) - used)
    if spare:
        raise InvalidQuery(
            f"{len(values)} values were given, the statement has no place for"
            f" {', '.join(spare)[:80]}",
            reason=Reason.WRONG_FORM,
        )
    return tree


def _by_name(params: Params) -> dict[str, Any]:
    if isinstance(params, Mapping):
        return {str(name): value for name, value in params.items()}
    if isinstance(params, str) or not isinstance(params, Sequence):
        raise InvalidQuery(
            f"params are a list of values or values by name, got {type(params).__name__}",
            reason=Reason.WRONG_FORM,
        )
    return {str(at): value for at, value in enumerate(params, 1)}


def _put(column: Node, value: Any) -> None:
    around = column.parent
    if isinstance(value, list | tuple | set | frozenset):
        if not isinstance(around, exp.In) or column.arg_key != "expressions" or not value:
            raise wrong(column, Reason.WRONG_FORM, "a list of values goes into IN (?)")
        listed = [_value(each, column) for each in value]
        kept = [each for each in around.expressions if each is not column]
        around.set("expressions", kept + listed)
        return
    column.replace(_value(value, column))


def _value(value: Any, place: Node) -> Node:
    """A plain value as a constant of the statement."""
    if isinstance(value, datetime.datetime):
        return moment(value)
    if isinstance(value, datetime.date):
        return moment(value)
    if hasattr(value, "item") and not hasattr(value, "__len__"):
        value = value.item()  # a NumPy scalar
    if isinstance(value, float | Decimal):
        if not math.isfinite(value):
            raise wrong(place, Reason.WRONG_FORM, f"a parameter must be finite, got {value}")
        value = Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
    if isinstance(value, Fraction):
        return decimal(value)
    if value is None or isinstance(value, bool | int | str):
        if isinstance(value, str) and ("\x00" in value or MARK in value):
            raise wrong(place, Reason.WRONG_FORM, "a text parameter holds a sign that no text has")
        return constant(value)
    raise wrong(
        place,
        Reason.WRONG_TYPE,
        f"a parameter is a text, a number, a truth value, a day, a time or None,"
        f" got {type(value).__name__}",
    )


def decimal(value: Fraction) -> Node:
    """A fraction as a number with digits after the point where it has them all, else as a ratio."""
    for digits in range(40):
        scaled = abs(value) * 10**digits
        if scaled.denominator == 1:
            spelled = f"{scaled.numerator:0{digits + 1}}"
            text = f"{spelled[:-digits]}.{spelled[-digits:]}" if digits else spelled
            found: Node = exp.Literal(this=text, is_string=False)
            return exp.Neg(this=found) if value < 0 else found
    return exp.Paren(this=constant(value))


# --- days ---------------------------------------------------------------------------------------


def moment(at: datetime.date) -> Node:
    """A day or a time as a constant."""
    timed = isinstance(at, datetime.datetime)
    kind = exp.DType.TIMESTAMP if timed else exp.DType.DATE
    spelled = at.isoformat(sep=" ") if isinstance(at, datetime.datetime) else at.isoformat()
    text = exp.Literal(this=spelled, is_string=True)
    return exp.Cast(this=text, to=exp.DataType(this=kind))


def known_moment(node: Node) -> datetime.datetime | None:
    """The day or time that a constant is; None of anything else."""
    while isinstance(node, exp.Paren):
        node = node.this
    if not isinstance(node, exp.Cast) or not isinstance(node.this, exp.Literal):
        return None
    if node.args["to"].this not in (exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.DATETIME):
        return None
    try:
        return datetime.datetime.fromisoformat(str(node.this.this))
    except ValueError:
        return None


def folded(tree: Node, today: datetime.date) -> tuple[Node, bool]:
    """The tree with today's day for CURRENT_DATE and NOW(), and sums of constant days worked out.

    And whether today was asked for.
    """
    asked = False
    found = [node for node in tree.walk() if isinstance(node, _FOLDED)]
    for node in reversed(found):
        if isinstance(node, _TODAY):
            asked = True
        made = moment(today) if isinstance(node, _TODAY) else _worked_out(node)
        if made is None:
            continue
        if node is tree:
            tree = made
        else:
            node.replace(made)
    return tree, asked


_TODAY = (exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentDatetime, exp.Localtimestamp)
_FOLDED = (*_TODAY, exp.Add, exp.Sub, exp.DateTrunc, exp.Extract, exp.Cast)


def _worked_out(node: Node) -> Node | None:
    match node:
        case exp.Add() | exp.Sub():
            start = known_moment(node.this)
            return None if start is None else _moved(start, node)
        case exp.DateTrunc():
            start = known_moment(node.this)
            if start is not None:
                return moment(truncated(start, str(node.args["unit"].name).casefold()).date())
        case exp.Extract():
            start, unit = known_moment(node.expression), str(node.this.name)
            if start is not None and unit in BY_BORDERS:
                return constant(BY_BORDERS[unit][1](start))
            if start is not None and unit in INSIDE:
                return constant(INSIDE[unit][2](start))
        case exp.Cast() if node.args["to"].this == exp.DType.DATE:
            start = known_moment(node.this)
            if start is not None:
                return moment(start.date())
    return None


def _moved(start: datetime.datetime, node: Node) -> Node | None:
    """A constant day plus or minus days or an INTERVAL."""
    by = node.expression
    while isinstance(by, exp.Paren):
        by = by.this
    sign = 1 if isinstance(node, exp.Add) else -1
    if isinstance(by, exp.Literal) and not by.is_string and str(by.this).isdigit():
        return _shifted(start, sign * int(str(by.this)), "day", node)
    if isinstance(by, exp.Interval):
        count, unit = interval_of(by)
        return _shifted(start, sign * count, unit, node)
    return None


def _shifted(start: datetime.datetime, count: int, unit: str, node: Node) -> Node:
    at = after(start, count, unit, node)
    return moment(at if at.time() != datetime.time() else at.date())


def after(start: datetime.datetime, count: int, unit: str, node: Node) -> datetime.datetime:
    """The moment so many units later; from the end of a month to that of a shorter one."""
    months = {"year": 12, "quarter": 3, "month": 1}.get(unit)
    seconds = {"week": 604_800, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1}.get(unit)
    try:
        if months is not None:
            month = start.year * 12 + start.month - 1 + count * months
            year, month = divmod(month, 12)
            day = start.day
            while True:
                try:
                    at = start.replace(year=year, month=month + 1, day=day)
                    break
                except ValueError:
                    if day <= 28:
                        raise
                    day -= 1
        elif seconds is not None:
            at = start + datetime.timedelta(seconds=count * seconds)
        else:
            raise wrong(
                node, Reason.WRONG_FORM, f"the unit {unit!r:.40} of an INTERVAL is not known"
            )
    except (ValueError, OverflowError):
        raise wrong(node, Reason.WRONG_TYPE, "this day is outside the calendar") from None
    return at


def interval_of(node: Node) -> tuple[int, str]:
    """How many of which unit; refuses what is not a whole constant number of one unit."""
    amount, unit = node.this, node.args.get("unit")
    sign = 1
    while isinstance(amount, exp.Neg | exp.Paren | exp.Mul):
        if isinstance(amount, exp.Mul):  # how sqlglot writes a negative number of days
            by = amount.expression.name or str(amount.expression).lstrip("-")
            if not by.isdigit() or len(by) > 3:
                raise wrong(
                    node, Reason.WRONG_FORM, "an INTERVAL is a whole number: INTERVAL '30 days'"
                )
            sign *= -int(by) if isinstance(amount.expression, exp.Neg) else int(by)
        sign *= -1 if isinstance(amount, exp.Neg) else 1
        amount = amount.this
    spelled = str(amount.this) if isinstance(amount, exp.Literal) else ""
    words = spelled.split()
    if len(words) == 2 and unit is None:  # INTERVAL '30 days'
        spelled, unit = words[0], exp.Var(this=words[1])
    if unit is None or not spelled.lstrip("-").isdigit() or len(spelled) > 6:
        raise wrong(
            node, Reason.WRONG_FORM, "an INTERVAL is a whole number of one unit: INTERVAL '30 days'"
        )
    return sign * int(spelled), unit_of(unit, "")
