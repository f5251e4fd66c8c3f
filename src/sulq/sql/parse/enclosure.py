"""Where the values of a function lie over an interval of its column: bounds that surely hold.

A function of a column without a step is taken to be constant on cells. How far off that is follows
from these bounds, whether or not the function rises, falls, turns or jumps inside a cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from sqlglot import exp

from sulq.sql.parse import maths
from sulq.sql.parse.grammar import Node


@dataclass(frozen=True, slots=True)
class Span:
    """All values lie from `low` to `high`, and none is NULL."""

    low: Fraction
    high: Fraction


Enclosure: TypeAlias = "Span | frozenset[Any] | None"
"""A span of numbers; the few values there may be (NULL, truths, texts); None of what is unknown."""
NULL: frozenset[Any] = frozenset([None])


def enclosed(node: Node, low: Fraction, high: Fraction) -> Enclosure:
    """What a function of one column can be where the column is from `low` to `high`."""

    def part(inner: object) -> Enclosure:
        return enclosed(inner, low, high) if isinstance(inner, exp.Expr) else None

    match node:
        case exp.Paren():
            return part(node.this)
        case exp.Column():
            return Span(low, high)
        case exp.Literal():
            if node.is_string:
                return frozenset([str(node.this)])
            value = maths.constant_of(node)
            return Span(value, value)
        case exp.Null():
            return NULL
        case exp.Boolean():
            return frozenset([bool(node.this)])
    known = RULES.get(type(node))
    return None if known is None else known(node, part)


Part: TypeAlias = Callable[[object], Enclosure]
Rule: TypeAlias = Callable[[Node, Part], Enclosure]


def _hull(found: Iterable[Enclosure]) -> Enclosure:
    """What lies in one or another of these."""
    listed = list(found)
    if all(isinstance(each, Span) for each in listed):
        spans = [each for each in listed if isinstance(each, Span)]
        return Span(min(each.low for each in spans), max(each.high for each in spans))
    if all(isinstance(each, frozenset) for each in listed):
        return frozenset().union(*(each for each in listed if isinstance(each, frozenset)))
    return None


def _rising(node: Node, part: Part) -> Enclosure:
    """LN, SQRT, FLOOR, ROUND(x, 2), ...: never falls where it has a value."""
    names, work = maths.WORK[type(node)]
    of, *others = [part(node.args.get(name)) for name in names if node.args.get(name) is not None]
    fixed: list[Fraction] = []
    for other in others:
        if not isinstance(other, Span) or other.low != other.high:
            return None
        fixed.append(other.low)
    if of == NULL:
        return NULL
    if not isinstance(of, Span):
        return None
    first, last = (maths.applied(node, work, [end, *fixed]) for end in (of.low, of.high))
    if first is None or last is None:
        return NULL if last is None else None
    return Span(min(first, last), max(first, last))


def _log(node: Node, part: Part) -> Enclosure:
    if node.args.get("expression") is None:
        return _rising(node, part)
    base, of = part(node.this), part(node.expression)
    if not isinstance(base, Span) or not isinstance(of, Span) or base.low != base.high:
        return None
    if base.low <= 1:
        return None
    _, work = maths.WORK[exp.Log]
    first, last = (maths.applied(node, work, [base.low, end]) for end in (of.low, of.high))
    if first is None or last is None:
        return NULL if last is None else None
    return Span(first, last)


def _power(node: Node, part: Part) -> Enclosure:
    of, by = part(node.this), part(node.expression)
    if not isinstance(of, Span) or not isinstance(by, Span):
        return None
    _, work = maths.WORK[exp.Pow]
    if of.low == of.high and of.low > 0:  # a constant to a power that changes
        ends = [maths.applied(node, work, [of.low, end]) for end in (by.low, by.high)]
    elif by.low == by.high and (of.low > 0 or (of.low == 0 and by.low > 0)):
        ends = [maths.applied(node, work, [end, by.low]) for end in (of.low, of.high)]
    elif by.low == by.high and by.low.denominator == 1 and by.low > 0:
        ends = [maths.applied(node, work, [end, by.low]) for end in (of.low, of.high)]
        if by.low % 2 == 0 and of.low < 0 < of.high:
            ends.append(Fraction(0))
    else:
        return None
    if any(end is None for end in ends):
        return None
    numbers = [end for end in ends if end is not None]
    return Span(min(numbers), max(numbers))


def _sum(sign: int) -> Rule:
    def rule(node: Node, part: Part) -> Enclosure:
        left, right = part(node.this), part(node.expression)
        if NULL in (left, right):
            return NULL
        if not isinstance(left, Span) or not isinstance(right, Span):
            return None
        ends = (right.low, right.high) if sign > 0 else (-right.high, -right.low)
        return Span(left.low + ends[0], left.high + ends[1])

    return rule


def _product(node: Node, part: Part) -> Enclosure:
    left, right = part(node.this), part(node.expression)
    if NULL in (left, right):
        return NULL
    if not isinstance(left, Span) or not isinstance(right, Span):
        return None
    if isinstance(node, exp.Div):
        if right.low <= 0 <= right.high:
            return None
        right = Span(1 / right.high, 1 / right.low)
    ends = [x * y for x in (left.low, left.high) for y in (right.low, right.high)]
    return Span(min(ends), max(ends))


def _negated(node: Node, part: Part) -> Enclosure:
    of = part(node.this)
    return Span(-of.high, -of.low) if isinstance(of, Span) else NULL if of == NULL else None


def _size(node: Node, part: Part) -> Enclosure:
    of = part(node.this)
    if not isinstance(of, Span):
        return NULL if of == NULL else None
    ends = [abs(of.low), abs(of.high)]
    return Span(Fraction(0) if of.low <= 0 <= of.high else min(ends), max(ends))


def _remainder(node: Node, part: Part) -> Enclosure:
    of, by = part(node.this), part(node.expression)
    if not isinstance(of, Span) or not isinstance(by, Span) or by.low != by.high or not by.low:
        return None
    size = abs(by.low)
    parts = [int(end / size) for end in (of.low, of.high)]
    if parts[0] == parts[1] and (of.low >= 0 or of.high <= 0):
        return Span(of.low - size * parts[0], of.high - size * parts[0])
    return Span(Fraction(0) if of.low >= 0 else -size, Fraction(0) if of.high <= 0 else size)


def _chosen(node: Node, part: Part) -> Enclosure:
    found: list[Enclosure] = []
    for branch in node.args["ifs"]:
        test = part(branch.this)
        if not isinstance(test, frozenset):
            return None
        if True in test:
            found.append(part(branch.args["true"]))
        if test == {True}:
            return _hull(found)
    default = node.args.get("default")
    found.append(NULL if default is None else part(default))
    return _hull(found)


def _coalesced(node: Node, part: Part) -> Enclosure:
    for each in (node.this, *node.expressions):
        found = part(each)
        if found != NULL:
            return found if isinstance(found, Span) or None not in (found or NULL) else None
    return NULL


def _extreme(pick: Callable[..., Fraction]) -> Rule:
    def rule(node: Node, part: Part) -> Enclosure:
        found = [part(each) for each in (node.this, *node.expressions)]
        spans = [each for each in found if isinstance(each, Span)]
        if len(spans) != len(found):
            return None
        return Span(pick(each.low for each in spans), pick(each.high for each in spans))

    return rule


def _compared(surely: Callable[[Span, Span], bool], never: Callable[[Span, Span], bool]) -> Rule:
    def rule(node: Node, part: Part) -> Enclosure:
        left, right = part(node.this), part(node.expression)
        if NULL in (left, right):
            return NULL
        if not isinstance(left, Span) or not isinstance(right, Span):
            return None
        return _truth(surely(left, right), never(left, right))

    return rule


def _truth(surely: bool, never: bool) -> frozenset[Any]:
    return frozenset([True] if surely else [False] if never else [True, False])


def _between(node: Node, part: Part) -> Enclosure:
    of, low, high = (part(node.args[name]) for name in ("this", "low", "high"))
    if NULL in (of, low, high):
        return NULL
    if not (isinstance(of, Span) and isinstance(low, Span) and isinstance(high, Span)):
        return None
    surely = low.high <= of.low and of.high <= high.low
    return _truth(surely, of.high < low.low or high.high < of.low)


def _both(node: Node, part: Part) -> Enclosure:
    left, right = part(node.this), part(node.expression)
    if not isinstance(left, frozenset) or not isinstance(right, frozenset):
        return None
    decisive = isinstance(node, exp.Or)
    found: set[Any] = set()
    for one in left:
        for two in right:
            if decisive in (one, two):
                found.add(decisive)
            else:
                found.add(None if None in (one, two) else not decisive)
    return frozenset(found)


def _not(node: Node, part: Part) -> Enclosure:
    of = part(node.this)
    if not isinstance(of, frozenset):
        return None
    return frozenset(None if each is None else not each for each in of)


def _missing(node: Node, part: Part) -> Enclosure:
    of = part(node.this)
    if isinstance(of, Span):
        return frozenset([False])
    return None if of is None else frozenset(each is None for each in of)


RULES: dict[type[Node], Rule] = {
    **dict.fromkeys(
        (
            exp.Ln, exp.Exp, exp.Sqrt, exp.Cbrt, exp.Floor, exp.Ceil, exp.Round, exp.Trunc,
            exp.Sign, exp.IntDiv,
        ),
        _rising,
    ),
    exp.Log: _log,
    exp.Pow: _power,
    exp.Add: _sum(1),
    exp.Sub: _sum(-1),
    exp.Mul: _product,
    exp.Div: _product,
    exp.Neg: _negated,
    exp.Abs: _size,
    exp.Mod: _remainder,
    exp.Case: _chosen,
    exp.Coalesce: _coalesced,
    exp.Least: _extreme(min),
    exp.Greatest: _extreme(max),
    exp.LT: _compared(lambda a, b: a.high < b.low, lambda a, b: a.low >= b.high),
    exp.LTE: _compared(lambda a, b: a.high <= b.low, lambda a, b: a.low > b.high),
    exp.GT: _compared(lambda a, b: a.low > b.high, lambda a, b: a.high <= b.low),
    exp.GTE: _compared(lambda a, b: a.low >= b.high, lambda a, b: a.high < b.low),
    exp.EQ: _compared(
        lambda a, b: a.low == a.high == b.low == b.high,
        lambda a, b: a.high < b.low or b.high < a.low,
    ),
    exp.NEQ: _compared(
        lambda a, b: a.high < b.low or b.high < a.low,
        lambda a, b: a.low == a.high == b.low == b.high,
    ),
    exp.Between: _between,
    exp.And: _both,
    exp.Or: _both,
    exp.Not: _not,
    exp.Is: _missing,
}  # fmt: skip
"""Every function whose values over an interval are known."""
