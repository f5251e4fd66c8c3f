"""What the language lacks, named as the writer would, with the remedy."""

from __future__ import annotations

import re

from sqlglot import exp

from sulq.errors import InvalidQuery, Reason
from sulq.sql.parse.tokens import Node

KNOWN = (
    "columns, constants, + - * /, comparisons, AND, OR, NOT, BETWEEN, IN, LIKE, IS NULL,"
    " CASE WHEN, COALESCE, ABS, LEAST, GREATEST and CLAMP(x, low, high)"
)

DIFFERENCES = (exp.DateDiff, exp.DatetimeDiff, exp.TimestampDiff, exp.TimeDiff)
_REMEDIES: dict[type[Node], str] = {
    exp.Query: "a row expression sees one row at a time; ask the inner SELECT first",
    exp.AggFunc: "the statistic is named before the expression: sulq ask people mean income",
    exp.Column: "name the column alone, without its table",
    exp.ILike: "list the declared values that match, x IN ('a', 'A'); LIKE minds capitals",
    exp.Cast: "columns have the types the owner declared; only DATE '...' and TIMESTAMP '...'",
    exp.Case: "write CASE WHEN x = 1 THEN ... ELSE ... END",
    exp.In: "write a list of constants: x IN (1, 2, 3)",
    exp.Tuple: "write one expression, or x IN (1, 2, 3)",
    exp.If: "write CASE WHEN ... THEN ... ELSE ... END",
    exp.Escape: "LIKE has no escape character here",
    exp.Coalesce: "write COALESCE(x, instead)",
    **dict.fromkeys(
        DIFFERENCES,
        "subtract, as in discharged - admitted: days between two days, seconds between times",
    ),
}
_NAMES: dict[type[Node], str] = {
    exp.DPipe: "||",
    exp.Mod: "%",
    exp.Dot: "a name with points",
    exp.Column: "a column with its table",
    exp.Placeholder: "a parameter",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
    exp.Star: "*",
    exp.Bracket: "[...]",
    exp.Subquery: "a SELECT",
}


def refused(node: Node, what: str | None = None, remedy: str | None = None) -> InvalidQuery:
    """The refusal of something that the language lacks."""
    found = (remedy for kind, remedy in _REMEDIES.items() if isinstance(node, kind))
    remedy = remedy or next(found, f"there are {KNOWN}")
    said = f"{what or spoken(node)} is not in the language; {remedy}"
    return wrong(node, Reason.NOT_IN_LANGUAGE, said)


def spoken(node: Node) -> str:
    """What the writer would call it."""
    if type(node) in _NAMES:
        return _NAMES[type(node)]
    if isinstance(node, exp.Anonymous):
        return f"the function {str(node.this).upper():.40}"
    if isinstance(node, exp.Func) and not isinstance(node, exp.Cast | exp.Case | exp.If):
        return f"the function {node.sql_name()}"
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()


def span(node: Node) -> tuple[int, int] | None:
    """The first character of a node and the one after its last, as far as the parser noted them."""
    marks = [part.meta for part in node.walk() if "start" in part.meta]
    if not marks:
        return None
    return min(mark["start"] for mark in marks), max(mark["end"] for mark in marks) + 1


def wrong(node: Node, reason: Reason, text: str, **about: str) -> InvalidQuery:
    """The refusal of a node."""
    return located(InvalidQuery(text, reason=reason, about=about), span(node))


def located(error: InvalidQuery, where: tuple[int, int] | None) -> InvalidQuery:
    """The same refusal, which says where; who knew it before knew better."""
    if error.start is None and where is not None:
        error.start, error.end = where
    return error
