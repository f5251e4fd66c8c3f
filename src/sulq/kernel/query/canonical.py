"""One spelling for every question: the form that is hashed, priced, stored and evaluated.

Commuting, re-nesting, flipped comparisons, double negation, `between` and `isin` spelled out and
constants worked out by hand all lead to the same tree. Because evaluation also starts from this
tree, two spellings with one hash have the same integer sum, rounding included.

Conditions come out in negation normal form: NULL and false both mean "not true", so `not` is
pushed into the leaves with SQL's three-valued logic and disappears.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.query.expressions import (
    ARITY,
    Column,
    Expression,
    Literal,
    Operation,
    Plain,
    as_expression,
    operation,
)

_NUMBER = re.compile(r"-?\d{1,200}(/\d{1,200})?")

TRUE = Literal(True)
FALSE = Literal(False)
NULL = Literal(None)

NEGATED = {"among": "not_among", "like": "not_like", "is_null": "not_null"}
NEGATED |= {negative: positive for positive, negative in NEGATED.items()}
CONDITIONS = frozenset(["lt", "le", "eq", "ne", "and", "or", "not", *NEGATED])


def to_json(expression: Expression) -> list[Any]:
    """The tree as JSON-ready lists."""
    match expression:
        case Column(name):
            return ["col", name]
        case Literal(value):
            return _literal_json(value)
        case Operation(name, operands):
            return [name, *(to_json(operand) for operand in operands)]
    raise InvalidQuery(f"not an expression: {type(expression).__name__}")


def _literal_json(value: Plain) -> list[Any]:
    match value:
        case None:
            return ["null"]
        case bool():
            return ["bool", value]
        case int() | Fraction():
            return ["num", str(Fraction(value))]
        case str():
            return ["text", value]
        case datetime.datetime():
            return ["datetime", value.isoformat()]
        case datetime.date():
            return ["date", value.isoformat()]


def from_json(form: Any, depth: int = 0) -> Expression:
    """Read `to_json` back; refuses everything outside the language."""
    if not isinstance(form, list) or not form or not isinstance(form[0], str) or depth > 200:
        raise InvalidQuery("an expression is a list that starts with an operation's name")
    name, *rest = form
    if name in ARITY:
        return operation(name, *(from_json(part, depth + 1) for part in rest))
    try:
        match name, rest:
            case "col", [str(column)]:
                return Column(column)
            case "null", []:
                return NULL
            case "bool", [bool(value)]:
                return Literal(value)
            case "num", [str(value)] if _NUMBER.fullmatch(value):
                number = Fraction(value)  # beyond 64 bits it was given as a fraction or a float
                return as_expression(_tidy(number) if abs(number) < 2**63 else number)
            case "text", [str(value)]:
                return as_expression(value)
            case "datetime", [str(value)]:
                return Literal(datetime.datetime.fromisoformat(value))
            case "date", [str(value)]:
                return Literal(datetime.date.fromisoformat(value))
    except (ValueError, ZeroDivisionError) as error:
        raise InvalidQuery(f"not a {name} literal: {error}") from None
    raise InvalidQuery(f"unknown operation {name!r:.40}; there are {sorted(ARITY)}")


def spelling(expression: Expression) -> str:
    """The tree as text: equal texts, equal trees."""
    return json.dumps(to_json(expression), ensure_ascii=False, separators=(",", ":"))


def _tidy(number: Fraction) -> Plain:
    return number.numerator if number.denominator == 1 else number


def number_of(expression: Expression) -> Fraction | None:
    """The exact value of a numeric literal."""
    if isinstance(expression, Literal):
        value = expression.value
        if isinstance(value, int | Fraction) and not isinstance(value, bool):
            return Fraction(value)
    return None


def _constant(number: Fraction) -> Literal:
    return Literal(_tidy(number))


def _sorted(parts: Sequence[Expression]) -> list[Expression]:
    return sorted(parts, key=spelling)


def _is_null(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.value is None


# --- values -------------------------------------------------------------------------------------


def value(expression: Expression) -> Expression:
    """The canonical form of a value."""
    if not isinstance(expression, Operation):
        return expression
    name = expression.name
    if name in CONDITIONS:
        raise InvalidQuery(
            "a condition stands where a number is wanted: write when(condition).then(1)"
            ".otherwise(0), or where=condition to choose rows",
            reason=Reason.WRONG_TYPE,
        )
    if name == "choose":
        condition = truth(expression.operands[0])
        then, otherwise = (value(part) for part in expression.operands[1:])
        if condition is TRUE:
            return then
        return otherwise if condition is FALSE else operation(name, condition, then, otherwise)
    if name == "hashed":
        return operation(name, value(expression.operands[0]), expression.operands[1])
    parts = [value(part) for part in expression.operands]
    if name == "coalesce":
        return _coalesce(*parts)
    if any(_is_null(part) for part in parts):
        return NULL
    match name:
        case "negate":
            return _times(Fraction(-1), parts[0])
        case "add":
            return _sum(parts)
        case "multiply":
            return _product(parts)
        case "divide":
            return _quotient(*parts)
        case "least" | "greatest":
            return _extreme(name, parts)
        case "clip":
            return _clip(*parts)
    numbers = [number_of(part) for part in parts]
    if name == "abs" and numbers[0] is not None:
        return _constant(abs(numbers[0]))
    return operation(name, *parts)


def _coalesce(first: Expression, instead: Expression) -> Expression:
    if _is_null(first):
        return instead
    if isinstance(first, Literal) or _is_null(instead):
        return first
    return operation("coalesce", first, instead)


def _times(factor: Fraction, expression: Expression) -> Expression:
    """factor * expression, with the factor pulled through sums and products."""
    known = number_of(expression)
    if known is not None:
        return _constant(factor * known)
    if isinstance(expression, Operation) and expression.name == "add":
        return _sum([_times(factor, part) for part in expression.operands])
    if isinstance(expression, Operation) and expression.name == "multiply":
        head = number_of(expression.operands[0])
        if head is not None:
            factor, rest = factor * head, list(expression.operands[1:])
        else:
            rest = list(expression.operands)
        if factor != 1:
            return operation("multiply", _constant(factor), *rest)
        return rest[0] if len(rest) == 1 else operation("multiply", *rest)
    return expression if factor == 1 else operation("multiply", _constant(factor), expression)


def _sum(parts: Sequence[Expression]) -> Expression:
    constant, rest = Fraction(0), []
    for part in _flattened("add", parts):
        known = number_of(part)
        if known is None:
            rest.append(part)
        else:
            constant += known
    if not rest:
        return _constant(constant)
    listed = _sorted(rest) + ([_constant(constant)] if constant else [])
    return listed[0] if len(listed) == 1 else operation("add", *listed)


def _product(parts: Sequence[Expression]) -> Expression:
    factor, rest = Fraction(1), []
    for part in _flattened("multiply", parts):
        known = number_of(part)
        if known is None:
            rest.append(part)
        else:
            factor *= known
    if not rest:
        return _constant(factor)
    listed = _sorted(rest)
    core = listed[0] if len(listed) == 1 else operation("multiply", *listed)
    return _times(factor, core)


def _quotient(over: Expression, under: Expression) -> Expression:
    divisor = number_of(under)
    if divisor is not None:
        if divisor == 0:
            raise InvalidQuery(
                "division by zero; divide by something that cannot be 0", reason=Reason.NEEDS_BOUNDS
            )
        return _times(1 / divisor, over)
    factor = Fraction(1)
    if isinstance(under, Operation) and under.name == "multiply":
        head = number_of(under.operands[0])
        if head:
            factor, under = 1 / head, _times(1 / head, under)
    if isinstance(over, Operation) and over.name == "multiply":
        head = number_of(over.operands[0])
        if head:
            factor, over = factor * head, _times(1 / head, over)
    return _times(factor, operation("divide", over, under))


def _extreme(name: str, parts: Sequence[Expression]) -> Expression:
    pick = min if name == "least" else max
    known: Fraction | None = None
    rest: dict[str, Expression] = {}
    for part in _flattened(name, parts):
        number = number_of(part)
        if number is None:
            rest[spelling(part)] = part
        else:
            known = number if known is None else pick(known, number)
    listed = [rest[key] for key in sorted(rest)]
    if known is not None:
        listed.append(_constant(known))
    return listed[0] if len(listed) == 1 else operation(name, *listed)


def _clip(inner: Expression, low: Expression, high: Expression) -> Expression:
    bottom, top, known = number_of(low), number_of(high), number_of(inner)
    if bottom is not None and top is not None:
        if bottom > top:
            raise InvalidQuery(f"clip needs low <= high, got {bottom} and {top}")
        if known is not None:
            return _constant(min(max(known, bottom), top))
    return operation("clip", inner, low, high)


def _flattened(name: str, parts: Sequence[Expression]) -> list[Expression]:
    flat: list[Expression] = []
    for part in parts:
        inner = isinstance(part, Operation) and part.name == name
        flat.extend(part.operands if inner and isinstance(part, Operation) else [part])
    return flat


# --- conditions ---------------------------------------------------------------------------------


def truth(expression: Expression, positive: bool = True) -> Expression:
    """The canonical form of "expression is true" (or of "its negation is true")."""
    match expression:
        case Literal(value=bool(known)):
            return TRUE if known is positive else FALSE
        case Literal(value=None):
            return FALSE
        case Column():
            return operation("among", expression, positive)
        case Operation(name="not", operands=(inner,)):
            return truth(inner, not positive)
        case Operation(name="and" | "or" as name, operands=parts):
            joined = name if positive else {"and": "or", "or": "and"}[name]
            return _joined(joined, [truth(part, positive) for part in parts])
        case Operation(name="lt" | "le" as name, operands=(left, right)):
            if positive:
                return _ordered(name, value(left), value(right))
            return _ordered("le" if name == "lt" else "lt", value(right), value(left))
        case Operation(name="eq" | "ne" as name, operands=(left, right)):
            return _equal((name == "eq") is positive, left, right)
        case Operation(name="among" | "not_among" as name, operands=(subject, *listed)):
            return _member((name == "among") is positive, value(subject), listed)
        case Operation(name="like" | "not_like" as name, operands=(subject, pattern)):
            return operation(name if positive else NEGATED[name], value(subject), pattern)
        case Operation(name="is_null" | "not_null" as name, operands=(subject,)):
            wanted = name if positive else NEGATED[name]
            inner = value(subject)
            if isinstance(inner, Literal):
                return TRUE if _is_null(inner) is (wanted == "is_null") else FALSE
            return operation(wanted, inner)
        case Operation(name="hashed"):
            return operation("among", value(expression), 1 if positive else 0)
    if isinstance(expression, Literal) and isinstance(expression.value, str):
        raise InvalidQuery(
            f'the text {expression.value!r:.120} is not a condition; write col("age") > 3',
            reason=Reason.WRONG_TYPE,
        )
    raise InvalidQuery(
        f"{spelling(expression):.120} is not a condition; compare it with something",
        reason=Reason.WRONG_TYPE,
    )


def _joined(name: str, parts: Sequence[Expression]) -> Expression:
    stop, skip = (FALSE, TRUE) if name == "and" else (TRUE, FALSE)
    kept: dict[str, Expression] = {}
    for part in _flattened(name, parts):
        if part is stop:
            return stop
        if part is not skip:
            kept[spelling(part)] = part
    merged = _merged_members(name, list(kept.values()))
    if not merged:
        return skip
    spelled = {id(part): text for text, part in kept.items()}
    listed = sorted(merged, key=lambda part: spelled.get(id(part)) or spelling(part))
    return listed[0] if len(listed) == 1 else operation(name, *listed)


def _merged_members(name: str, parts: Sequence[Expression]) -> list[Expression]:
    """x = a or x = b is x in (a, b); x <> a and x <> b is x not in (a, b)."""
    mergeable = "among" if name == "or" else "not_among"
    lists: dict[str, tuple[Expression, list[Expression]]] = {}
    rest: list[Expression] = []
    for part in parts:
        if isinstance(part, Operation) and part.name == mergeable:
            subject = part.operands[0]
            lists.setdefault(spelling(subject), (subject, []))[1].extend(part.operands[1:])
        else:
            rest.append(part)
    members = [_member(name == "or", subject, listed) for subject, listed in lists.values()]
    return rest + members


def _ordered(name: str, left: Expression, right: Expression) -> Expression:
    low, high = number_of(left), number_of(right)
    if low is not None and high is not None:
        return TRUE if (low < high or (name == "le" and low == high)) else FALSE
    if _is_null(left) or _is_null(right):
        return FALSE
    return operation(name, left, right)


def _equal(positive: bool, left: Expression, right: Expression) -> Expression:
    for literal, subject in ((left, right), (right, left)):
        if isinstance(literal, Literal) and isinstance(literal.value, bool):
            return truth(subject, literal.value is positive)
    left, right = value(left), value(right)
    if isinstance(left, Literal):
        left, right = right, left
    if isinstance(right, Literal):
        return _member(positive, left, [right])
    first, second = _sorted([left, right])
    return operation("eq" if positive else "ne", first, second)


def _member(positive: bool, subject: Expression, listed: Sequence[Expression]) -> Expression:
    values: dict[str, Expression] = {}
    for item in listed:
        read = value(item)
        if not isinstance(read, Literal):
            raise InvalidQuery(
                "a list of values holds literals only; spell out the comparisons",
                reason=Reason.WRONG_TYPE,
            )
        if _is_null(read):
            if not positive:
                return FALSE  # x not in (..., NULL) is never true
            continue
        values[spelling(read)] = read
    if not values:
        return FALSE
    if isinstance(subject, Literal):
        if _is_null(subject):
            return FALSE
        return TRUE if (spelling(subject) in values) is positive else FALSE
    name = "among" if positive else "not_among"
    return operation(name, subject, *(values[key] for key in sorted(values)))
