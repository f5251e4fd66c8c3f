"""Functions of one number, worked out for every place of its lattice: LN, SQRT, ROUND, x % 10.

Values are exact fractions; what is irrational is computed to fifty digits and rounded to a power of
two that fits its range. A table of constants is all that reaches the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

from sqlglot import exp

from sulq.errors import Reason
from sulq.kernel.query.expressions import Expression, col
from sulq.kernel.schema.columns import Number, Schema
from sulq.sql.parse.grammar import Node, spoken, wrong
from sulq.sql.parse.step_functions import MOST_STEPS, StepFunction

MOST_DIGITS = 30
"""Digits that ROUND and TRUNC may keep, and the decimal exponent of a constant."""
LARGEST_VALUE = 2**512
"""Of numerator and denominator of a value on the way: more would take time without end."""
DIGITS = 50
BITS = 20
"""Irrational values are rounded to 2^-20 of the largest power of two in their range."""

Within = Callable[[Expression], tuple[Fraction, Fraction, bool]]


def _bare(node: Node) -> Node:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def lattice_function(node: Node, schema: Schema, within: Within | None) -> StepFunction:
    """A function of one number column as its values at each place of the lattice."""
    names = {column.name for column in node.find_all(exp.Column)}
    column = schema[next(iter(names))] if len(names) == 1 and names <= set(_names(schema)) else None
    if not isinstance(column, Number) or column.kind != "number":
        raise wrong(
            node, Reason.NOT_IN_LANGUAGE, f"{spoken(node)} takes one number column and constants"
        )
    of = col(column.name)
    low, high = (Fraction(end) for end in column.range)
    nullable = True
    if within is not None:
        low, high, nullable = within(of)
    step = column.lattice
    if step is None:
        return _floors(node, column, of, low, high)
    first, last = math.ceil(low / step), math.floor(high / step)
    if last - first + 1 > MOST_STEPS:
        found = _floors(node, column, of, low, high, exact=False)
        if found is not None:
            return found
        raise wrong(
            node,
            Reason.TOO_LARGE,
            f"{column.name} has {last - first + 1:,} places, at most {MOST_STEPS:,} can be worked"
            f" out; write CLAMP in WHERE, or group by FLOOR({column.name} / 100) * 100",
        )
    places = [step * at for at in range(first, last + 1)]
    values = rounded([evaluated(node, place) for place in places])
    edges = (*places, step * (last + 1))
    return StepFunction(of, tuple(map(_tidy, edges)), tuple(values), nullable).merged()


def _names(schema: Schema) -> list[str]:
    return [column.name for column in schema.columns]


def _tidy(number: Fraction) -> object:
    return number.numerator if number.denominator == 1 else number


def _floors(
    node: Node, column: Number, of: Expression, low: Fraction, high: Fraction, exact: bool = True
) -> StepFunction:
    """FLOOR(a x + b) and what is made of it, of any x: it changes where that is whole."""
    floors = list(node.find_all(exp.Floor, exp.IntDiv, exp.Ceil))
    slopes = [_line(_argument(part)) for part in floors]
    if len(floors) != 1 or slopes[0] is None or not slopes[0][0] or type(floors[0]) is exp.Ceil:
        raise wrong(
            node,
            Reason.NEEDS_BOUNDS,
            f"{spoken(node)} of {column.name}, which has no declared step or too many values for a"
            f" table; write FLOOR({column.name} / 10) * 10, or ask the owner to declare a step",
        )
    a, b = slopes[0]
    ends = sorted((a * low + b, a * high + b))
    wholes = range(math.floor(ends[0]), math.floor(ends[1]) + 2)
    if len(wholes) > MOST_STEPS:
        raise wrong(node, Reason.TOO_LARGE, f"{len(wholes):,} steps, at most {MOST_STEPS:,}")
    if a < 0:
        raise wrong(
            node, Reason.NEEDS_BOUNDS, "FLOOR of a falling value; write -FLOOR of a rising one"
        )
    edges = [(Fraction(at) - b) / a for at in wholes]
    middles = [(x + y) / 2 for x, y in pairwise(edges)]
    values = rounded([evaluated(node, place) for place in middles])
    return StepFunction(of, tuple(map(_tidy, edges)), tuple(values))


def _argument(part: Node) -> Node:
    if isinstance(part, exp.IntDiv):
        return exp.Div(this=part.this.copy(), expression=part.expression.copy())
    return part.this  # type: ignore[no-any-return]


def _line(node: Node) -> tuple[Fraction, Fraction] | None:
    """(a, b) of a x + b; None of anything else."""
    node = _bare(node)
    match node:
        case exp.Column():
            return Fraction(1), Fraction(0)
        case exp.Literal() if not node.is_string:
            return Fraction(0), constant_of(node)
        case exp.Neg():
            inner = _line(node.this)
            return None if inner is None else (-inner[0], -inner[1])
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
            left, right = _line(node.this), _line(node.expression)
            if left is None or right is None:
                return None
            match node:
                case exp.Add():
                    return left[0] + right[0], left[1] + right[1]
                case exp.Sub():
                    return left[0] - right[0], left[1] - right[1]
                case exp.Mul() if not left[0] or not right[0]:
                    return left[0] * right[1] + right[0] * left[1], left[1] * right[1]
                case exp.Div() if not right[0] and right[1]:
                    return left[0] / right[1], left[1] / right[1]
    return None


def rounded(values: list[Fraction | None]) -> list[object]:
    """Irrational values on one grid of a power of two; NULL stays NULL."""
    known = [value for value in values if value is not None]
    if all(value.denominator <= 10**6 for value in known):
        return [None if value is None else _tidy(value) for value in values]
    grid = _grid(known)
    return [
        None if value is None else _tidy(Fraction(math.floor(value * grid + Fraction(1, 2))) / grid)
        for value in values
    ]


def _grid(known: list[Fraction]) -> Fraction:
    """Steps of a table's values in one unit."""
    largest = max((abs(value) for value in known), default=Fraction(1)) or Fraction(1)
    shift = BITS - math.ceil(math.log2(largest)) if largest >= 1 else BITS
    return Fraction(2) ** shift


def coarseness(values: list[Fraction]) -> Fraction:
    """How far `rounded` moves a value at most."""
    fine = any(value.denominator > 10**6 for value in values)
    return 1 / (2 * _grid(values)) if fine else Fraction(0)


def evaluated(node: Node, at: Fraction) -> Fraction | None:
    """The function at one place; None where it has no value there."""
    node = _bare(node)
    if isinstance(node, exp.Column):
        return at
    if isinstance(node, exp.Literal) and not node.is_string:
        return constant_of(node)
    if isinstance(node, exp.Cast):
        return evaluated(node.this, at)
    work = WORK.get(type(node))
    if work is None:
        raise wrong(node, Reason.NOT_IN_LANGUAGE, f"{spoken(node)} is not one of one number")
    names, function = work
    given: list[Fraction] = []
    for name in names:
        inner = node.args.get(name)
        if inner is None:
            continue
        found = evaluated(inner, at)
        if found is None:
            return None
        given.append(found)
    return applied(node, function, given)


def applied(
    node: Node, function: Callable[..., Fraction | None], given: list[Fraction]
) -> Fraction | None:
    """A function at the values of its arguments; None where it has no value there."""
    if isinstance(node, exp.Round | exp.Trunc) and any(abs(n) > MOST_DIGITS for n in given[1:]):
        raise wrong(node, Reason.TOO_LARGE, f"{spoken(node)} keeps at most {MOST_DIGITS} digits")
    try:
        with localcontext(Context(prec=DIGITS, Emax=999, Emin=-999)):
            made = function(*given)
    except (ArithmeticError, ValueError):
        return None
    if made is not None and max(abs(made.numerator), made.denominator) > LARGEST_VALUE:
        raise wrong(
            node, Reason.TOO_LARGE, f"a value of {spoken(node)} is too large to be worked out"
        )
    return made


def constant_of(node: Node) -> Fraction:
    """A number as typed; one of more than 30 places is refused before it is written out."""
    typed = Decimal(str(node.this))
    if typed and abs(typed.adjusted()) > MOST_DIGITS:
        raise wrong(
            node,
            Reason.TOO_LARGE,
            f"a constant here lies between 1e-{MOST_DIGITS} and 1e{MOST_DIGITS}",
        )
    return Fraction(typed)


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _log(x: Fraction, base: Fraction | None = None) -> Fraction | None:
    """LOG(x) is of base 10; LOG(b, x) of base b, as PostgreSQL and DuckDB count."""
    if base is not None:
        x, base = base, x
    if x <= 0 or (base is not None and (base <= 0 or base == 1)):
        return None
    if base is None:
        return Fraction(_decimal(x).log10())
    return Fraction(_decimal(x).ln() / _decimal(base).ln())


def _power(x: Fraction, exponent: Fraction) -> Fraction | None:
    if exponent.denominator == 1 and abs(exponent) <= 8:
        return None if x == 0 and exponent < 0 else x ** int(exponent)
    if x < 0:
        return None
    return Fraction(_decimal(x) ** _decimal(exponent))


def half_away(x: Fraction, digits: Fraction = Fraction(0)) -> Fraction:
    unit = Fraction(10) ** int(digits)
    size = Fraction(math.floor(abs(x) * unit + Fraction(1, 2))) / unit
    return size if x >= 0 else -size


def _truncated(x: Fraction, digits: Fraction = Fraction(0)) -> Fraction:
    unit = Fraction(10) ** int(digits)
    return Fraction(math.trunc(x * unit)) / unit


def _remainder(x: Fraction, y: Fraction) -> Fraction | None:
    """With the sign of x, as engines count."""
    return None if y == 0 else x - y * math.trunc(x / y)


_ONE, _TWO = ("this",), ("this", "expression")
WORK: dict[type[Node], tuple[tuple[str, ...], Callable[..., Fraction | None]]] = {
    exp.Floor: (_ONE, lambda x: Fraction(math.floor(x))),
    exp.Ceil: (_ONE, lambda x: Fraction(math.ceil(x))),
    exp.Round: (("this", "decimals"), half_away),
    exp.Trunc: (("this", "decimals"), _truncated),
    exp.Mod: (_TWO, _remainder),
    exp.IntDiv: (_TWO, lambda x, y: None if y == 0 else Fraction(math.trunc(x / y))),
    exp.Sqrt: (_ONE, lambda x: None if x < 0 else Fraction(_decimal(x).sqrt())),
    exp.Cbrt: (
        _ONE,
        lambda x: (1 if x >= 0 else -1) * Fraction(abs(_decimal(x)) ** (Decimal(1) / 3)),
    ),
    exp.Ln: (_ONE, lambda x: None if x <= 0 else Fraction(_decimal(x).ln())),
    exp.Log: (_TWO, _log),
    exp.Exp: (_ONE, lambda x: Fraction(_decimal(x).exp())),
    exp.Pow: (_TWO, _power),
    exp.Sign: (_ONE, lambda x: Fraction((x > 0) - (x < 0))),
    exp.Abs: (_ONE, abs),
    exp.Neg: (_ONE, lambda x: -x),
    exp.Add: (_TWO, lambda x, y: x + y),
    exp.Sub: (_TWO, lambda x, y: x - y),
    exp.Mul: (_TWO, lambda x, y: x * y),
    exp.Div: (_TWO, lambda x, y: None if y == 0 else x / y),
}
MATHS = (
    exp.Floor,
    exp.Ceil,
    exp.Round,
    exp.Trunc,
    exp.Mod,
    exp.IntDiv,
    exp.Sqrt,
    exp.Ln,
    exp.Log,
    exp.Exp,
    exp.Pow,
    exp.Sign,
    exp.Cbrt,
)
"""What is worked out on the lattice; + - * / and ABS are the kernel's own."""
