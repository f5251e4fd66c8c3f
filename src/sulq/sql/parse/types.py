"""What kind of thing an output is, and what makes no sense of it: found out free, before asking."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from sulq.errors import Reason
from sulq.sql.errors import wrong
from sulq.sql.parse.select import (
    Aggregate,
    Calculation,
    ConstantOutput,
    Either,
    Gathered,
    Grouping,
    GroupKey,
    IntervalEnd,
    Mapped,
    Output,
    OverGroups,
    Released,
    Scalar,
    Windowed,
    aggregates_of,
)
from sulq.sql.parse.tokens import Node

FUNCTIONS = ("ln", "exp", "log10", "floor", "ceil", "power")
ARITHMETIC = ("+", "-", "*", "/", "negate", "abs", "round", "sqrt", *FUNCTIONS)
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "in")
MOMENTS = ("date", "datetime")
NAMES = {"text": "a text", "date": "a day", "datetime": "a time", "number": "a number"}
Range = tuple[float, float]


def kind_of(output: Output, groups: Sequence[Grouping]) -> str:
    """number, text, truth, date, datetime; "" of NULL, and of keys of several kinds."""
    if isinstance(output, Released | Mapped | Scalar):
        return output.kind
    match output:
        case ConstantOutput(value=value):
            return kind_of_value(value)
        case GroupKey(place=at, labels=made):
            known = groups[at].labels if made is None else made
            return _common(kind_of_value(label) for label in known)
        case Calculation(operator="case", parts=parts):
            return _common(kind_of(part, groups) for part in branches(parts))
        case Calculation(operator="coalesce", parts=parts) | Either(options=parts):
            return _common(kind_of(part, groups) for part in parts)
        case Aggregate(moment=moment):
            return moment or "number"
        case OverGroups(of=inner) | IntervalEnd(of=inner):
            return kind_of(inner, groups)
        case Windowed(function=function, of=of) | Gathered(function=function, of=of):
            same = function in ("min", "max", "lag", "lead", "first_value", "last_value")
            return kind_of(of, groups) if same and of is not None else "number"
        case Calculation():
            return _calculated(output, groups)


def _calculated(output: Calculation, groups: Sequence[Grouping]) -> str:
    match output:
        case Calculation(operator="-", parts=(_, Calculation(operator="date" | "datetime"))):
            return "number"
        case Calculation(operator="-", parts=(Calculation(operator="date" | "datetime"), _)):
            return "number"
        case Calculation(operator="+" | "-" | "round" as sign, parts=parts):
            moments = [k for k in (kind_of(part, groups) for part in parts) if k in MOMENTS]
            return moments[0] if moments and not (sign == "-" and len(moments) == 2) else "number"
        case Calculation(operator=operator):
            return "number" if operator in (*ARITHMETIC, *MOMENTS) else "truth"


def _common(kinds: Iterable[str]) -> str:
    """The one kind of several values; NULL has none."""
    found = set(kinds) - {""}
    return found.pop() if len(found) == 1 else ""


def branches(parts: tuple[Output, ...]) -> tuple[Output, ...]:
    """The values that a CASE chooses from."""
    return (*parts[1:-1:2], parts[-1])


def kind_of_value(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, str):
        return "text"
    if isinstance(value, datetime.datetime):
        return "datetime"
    return "date" if isinstance(value, datetime.date) else "number"


def checked(
    operator: str, parts: tuple[Output, ...], groups: Sequence[Grouping], node: Node
) -> Calculation:
    """The calculation, or a refusal of what can never have a meaning."""
    kinds = [kind_of(part, groups) for part in parts]
    if operator in ARITHMETIC:
        _check_arithmetic(operator, parts, kinds, groups, node)
    elif operator in COMPARISONS:
        for kind in kinds[1:]:
            _check_compared(kinds[0], kind, node)
    elif operator in ("and", "or", "not") and set(kinds) - {"truth", ""}:
        raise wrong(
            node, Reason.WRONG_FORM, "AND, OR and NOT take tests; write for instance n > 100"
        )
    if operator in COMPARISONS or operator == "-":
        parts = _as_numbers(parts, kinds)
    return Calculation(operator, parts)


def _check_arithmetic(
    operator: str,
    parts: tuple[Output, ...],
    kinds: list[str],
    groups: Sequence[Grouping],
    node: Node,
) -> None:
    moments = [kind in MOMENTS for kind in kinds]
    fits = (  # a noisy day and a number of days, or how many days lie between
        (operator == "-" and moments[0])
        or (operator == "+" and moments.count(True) == 1)
        or operator == "round"
    ) and any(aggregates_of(part) for part in parts)
    if "text" in kinds or (any(moments) and not fits):
        said = "arithmetic on a text or a day; only numbers can be computed"
        raise wrong(node, Reason.WRONG_TYPE, said)
    if operator == "/" and _range(parts[1], groups) == (0, 0):
        raise wrong(node, Reason.NEEDS_BOUNDS, "a division by zero: it has no value in any group")
    if operator == "sqrt":
        low, high = _range(parts[0], groups)
        if high < 0 or (high == 0 and low < 0):
            raise wrong(
                node, Reason.NEEDS_BOUNDS, "the root of what is never above 0: it has no value"
            )


def _check_compared(left: str, right: str, node: Node) -> None:
    if "" in (left, right) or left == right or {left, right} <= set(MOMENTS):
        return
    if {left, right} == {"truth", "number"}:  # TRUE = 1
        return
    pair = (
        f"{NAMES.get(left, 'a truth value')} is compared with {NAMES.get(right, 'a truth value')}"
    )
    remedy = "compare like with like"
    if {left, right} & set(MOMENTS):
        remedy = "a day is written DATE '2024-02-29'"
    elif "text" in (left, right):
        remedy = "texts take quotes, numbers none; COUNT(*) > 5 judges the size of a group"
    raise wrong(node, Reason.WRONG_TYPE, f"{pair}; {remedy}")


def _as_numbers(parts: tuple[Output, ...], kinds: list[str]) -> tuple[Output, ...]:
    """Noisy days are numbers: public days beside them become numbers of the same kind."""
    noisy = [
        kind
        for part, kind in zip(parts, kinds, strict=True)
        if kind in MOMENTS and aggregates_of(part)
    ]
    if not noisy:
        return parts
    return tuple(
        Calculation(noisy[0], (part,)) if kind in MOMENTS and not aggregates_of(part) else part
        for part, kind in zip(parts, kinds, strict=True)
    )


def _range(output: Output, groups: Sequence[Grouping]) -> Range:
    """Where the true value surely lies."""
    match output:
        case ConstantOutput(value=int() | Fraction() as value):
            return float(value), float(value)
        case GroupKey(place=at, labels=made):
            listed = groups[at].labels if made is None else made
            known = [listed[cell] for cell in groups[at].shown]
            numbers = [float(x) for x in known if isinstance(x, int | float | Fraction)]
            return (min(numbers), max(numbers)) if numbers else (-math.inf, math.inf)
        case Aggregate(kind=kind) if kind in ("count", "persons") or kind[:3] in ("var", "std"):
            return 0.0, math.inf
        case Released(of=inner):
            return _range(inner, ()) if isinstance(inner, Aggregate) else (-math.inf, math.inf)
        case OverGroups(of=inner):
            low, high = _range(inner, groups)
            return (0.0 if low >= 0 else -math.inf), (0.0 if high <= 0 else math.inf)
        case Calculation(operator=operator, parts=parts) if operator in ARITHMETIC:
            return _combined(operator, [_range(part, groups) for part in parts])
    return -math.inf, math.inf


def _combined(operator: str, parts: list[Range]) -> Range:
    (low, high), *rest = parts
    match operator:
        case "+":
            return low + rest[0][0], high + rest[0][1]
        case "-":
            return low - rest[0][1], high - rest[0][0]
        case "negate":
            return -high, -low
        case "*":
            ends = [0.0 if 0.0 in (x, y) else x * y for x in (low, high) for y in rest[0]]
            return min(ends), max(ends)
        case "abs" | "sqrt":
            return 0.0, math.inf
        case "/" if rest[0][0] == rest[0][1] != 0:
            return tuple(sorted((low / rest[0][0], high / rest[0][0])))  # type: ignore[return-value]
    return -math.inf, math.inf
