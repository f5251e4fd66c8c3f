"""sqlglot's nodes to row expressions, through a closed table."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.query.canonical import CONDITIONS
from sulq.kernel.query.expressions import (
    Expression,
    Literal,
    Operation,
    as_expression,
    col,
    operation,
)
from sulq.sql.parse.grammar import (
    HARMLESS,
    Node,
    located,
    refused,
    span,
    spoken,
    syntax_tree,
    too_deep,
    wrong,
)
from sulq.sql.parse.normalise import normalised
from sulq.sql.parse.step_functions import Ready

Reader: TypeAlias = Callable[[Node], Expression]

_NUMBER = re.compile(r"(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,2})?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?", re.ASCII)


def is_condition(read: Expression) -> bool:
    return isinstance(read, Operation) and read.name in CONDITIONS


def read_node(node: Node) -> Expression:
    """Our expression for a node of sqlglot's tree; refuses what the table does not name."""
    known = READERS.get(type(node))
    if known is None:
        raise refused(node)
    _check_options(node)
    try:
        return known[0](node)
    except InvalidQuery as error:
        raise located(error, span(node)) from None


def _check_options(node: Node) -> None:
    _, options = READERS[type(node)]
    for name, given in node.args.items():
        if given not in (None, False, [], "") and name not in options and name not in HARMLESS:
            raise refused(node, _optional(node, name))


def _optional(node: Node, name: str) -> str:
    known = type(node) is exp.Column or name == "this"
    return spoken(node) if known else f"{spoken(node)} with {name.replace('_', ' ')}"


def _part(node: Node, name: str = "this") -> Expression:
    inner = node.args.get(name)
    if not isinstance(inner, exp.Expr):
        raise refused(node)
    return read_node(inner)


def _column(node: Node) -> Expression:
    if not isinstance(node.this, exp.Identifier):
        raise refused(node)
    return col(node.this.this)


def _literal(node: Node) -> Expression:
    text = str(node.this)
    if node.args["is_string"]:
        return as_expression(text)
    if not _NUMBER.fullmatch(text) or len(text) > 100:
        raise wrong(
            node,
            Reason.WRONG_FORM,
            f"{text!r:.40} is not a number this language has;"
            " write digits, a point and an exponent of at most two digits",
        )
    exact = Fraction(Decimal(text))
    return as_expression(exact.numerator if exact.denominator == 1 else exact)


def _moment(node: Node) -> Expression:
    """DATE '...' and TIMESTAMP '...'; every other cast is refused."""
    text, kind = node.this, node.args["to"]
    if not isinstance(text, exp.Literal) or not text.is_string or kind.expressions:
        raise refused(node)
    spelled = str(text.this)
    try:
        if kind.this == exp.DType.DATE and _DATE.fullmatch(spelled):
            return Literal(datetime.date.fromisoformat(spelled))
        if kind.this == exp.DType.TIMESTAMP and _TIMESTAMP.fullmatch(spelled):
            return Literal(datetime.datetime.fromisoformat(spelled))
    except ValueError:
        pass
    if kind.this in (exp.DType.DATE, exp.DType.TIMESTAMP):
        raise wrong(
            node,
            Reason.WRONG_TYPE,
            f"{spelled!r:.40} is not a day or time that exists;"
            " write DATE '2024-02-29' or TIMESTAMP '2024-02-29 12:30:00'",
        )
    raise refused(node)


def _chain(node: Node, *kinds: type[Node]) -> Iterator[tuple[type[Node], Expression]]:
    """a - b + c as (start, a), (Sub, b), (Add, c): a long chain is not deep."""
    rest: list[Node] = []
    while type(node) in kinds:
        rest.append(node)
        inner = node.this
        if not isinstance(inner, exp.Expr):
            raise refused(node)
        node = inner
    yield exp.Paren, read_node(node)
    for link in reversed(rest):
        _check_options(link)
        yield type(link), _part(link, "expression")


def _sum(node: Node) -> Expression:
    parts = [
        operation("negate", part) if kind is exp.Sub else part
        for kind, part in _chain(node, exp.Add, exp.Sub)
    ]
    return operation("add", *parts)


def _product(node: Node) -> Expression:
    factors: list[Expression] = []
    for kind, part in _chain(node, exp.Mul, exp.Div):
        if kind is exp.Div:
            factors = [operation("divide", _multiplied(factors), part)]
        else:
            factors.append(part)
    return _multiplied(factors)


def _multiplied(factors: list[Expression]) -> Expression:
    return factors[0] if len(factors) == 1 else operation("multiply", *factors)


def _connected(name: str, kind: type[Node]) -> Reader:
    return lambda node: operation(name, *(part for _, part in _chain(node, kind)))


def _negated(node: Node) -> Expression:
    inner = node.this
    if isinstance(inner, exp.Literal) and not inner.is_string:  # -5 is a number, not a sum
        number = read_node(inner)
        assert isinstance(number, Literal)  # noqa: S101
        assert isinstance(number.value, int | Fraction)  # noqa: S101
        return as_expression(-number.value)
    return operation("negate", _part(node))


def _unary(name: str) -> Reader:
    return lambda node: operation(name, _part(node))


def _compared(name: str, flipped: bool = False) -> Reader:
    def reader(node: Node) -> Expression:
        left, right = _part(node), _part(node, "expression")
        if is_condition(left) and name in ("lt", "le"):
            raise wrong(
                node, Reason.WRONG_FORM, "a comparison of a comparison; write low < x AND x < high"
            )
        return operation(name, right, left) if flipped else operation(name, left, right)

    return reader


def _between(node: Node) -> Expression:
    return _part(node).between(_part(node, "low"), _part(node, "high"))


def _among(node: Node) -> Expression:
    listed = [read_node(item) for item in node.args.get("expressions") or ()]
    if not listed or not all(isinstance(item, Literal) for item in listed):
        raise wrong(node, Reason.WRONG_FORM, "IN wants a list of constants: x IN (1, 2, 3)")
    return _part(node).isin(listed)


def _like(node: Node) -> Expression:
    pattern = _part(node, "expression")
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        raise wrong(node, Reason.WRONG_FORM, "LIKE wants a text: name LIKE 'A%'")
    found = _part(node).like(pattern.value)
    return ~found if node.args.get("negate") else found


def _is(node: Node) -> Expression:
    if not isinstance(node.args.get("expression"), exp.Null):
        raise wrong(
            node,
            Reason.WRONG_FORM,
            "IS knows only NULL; write x IS NULL, x IS NOT NULL, or x = TRUE",
        )
    return _part(node).is_null()


def _case(node: Node) -> Expression:
    default = node.args.get("default")
    chosen = as_expression(None) if default is None else read_node(default)
    for branch in reversed(node.args["ifs"]):
        if set(branch.args) - {"this", "true"}:
            raise refused(branch)
        chosen = operation("choose", _part(branch), _part(branch, "true"), chosen)
    return chosen


def _listed(node: Node) -> list[Expression]:
    first = [] if node.args.get("this") is None else [_part(node)]
    return first + [read_node(item) for item in node.args.get("expressions") or ()]


def _coalesce(node: Node) -> Expression:
    *parts, found = _wanted(node, _listed(node), 2, "COALESCE(x, instead)")
    for part in reversed(parts):
        found = operation("coalesce", part, found)
    return found


def _extreme(name: str) -> Reader:
    spelled = f"{name.upper()}(x, y)"
    return lambda node: operation(name, *_wanted(node, _listed(node), 2, spelled))


def _function(node: Node) -> Expression:
    """Functions that sqlglot does not know by name."""
    if str(node.this).upper() != "CLAMP":
        raise refused(node)
    parts = [read_node(item) for item in node.expressions]
    if len(parts) != 3:
        raise wrong(node, Reason.WRONG_FORM, "CLAMP wants three values: CLAMP(x, low, high)")
    return operation("clip", *parts)


def _wanted(node: Node, parts: list[Expression], least: int, spelled: str) -> list[Expression]:
    if len(parts) < least:
        raise wrong(node, Reason.WRONG_FORM, f"{spelled} wants at least {least} values")
    return parts


_BINARY = ("this", "expression")
READERS: dict[type[Node], tuple[Reader, tuple[str, ...]]] = {
    exp.Column: (_column, ("this",)),
    exp.Literal: (_literal, ("this", "is_string")),
    exp.Boolean: (lambda node: Literal(bool(node.this)), ("this",)),
    exp.Null: (lambda node: Literal(None), ()),
    exp.Cast: (_moment, ("this", "to")),
    exp.Paren: (_part, ("this",)),
    exp.Add: (_sum, _BINARY),
    exp.Sub: (_sum, _BINARY),
    exp.Mul: (_product, _BINARY),
    exp.Div: (_product, _BINARY),
    exp.Neg: (_negated, ("this",)),
    exp.EQ: (_compared("eq"), _BINARY),
    exp.NEQ: (_compared("ne"), _BINARY),
    exp.LT: (_compared("lt"), _BINARY),
    exp.LTE: (_compared("le"), _BINARY),
    exp.GT: (_compared("lt", flipped=True), _BINARY),
    exp.GTE: (_compared("le", flipped=True), _BINARY),
    exp.And: (_connected("and", exp.And), _BINARY),
    exp.Or: (_connected("or", exp.Or), _BINARY),
    exp.Not: (_unary("not"), ("this",)),
    exp.Between: (_between, ("this", "low", "high")),
    exp.In: (_among, ("this", "expressions")),
    exp.Like: (_like, (*_BINARY, "negate")),
    exp.Is: (_is, _BINARY),
    exp.Case: (_case, ("ifs", "default")),
    exp.Coalesce: (_coalesce, ("this", "expressions")),
    exp.Abs: (_unary("abs"), ("this",)),
    exp.Least: (_extreme("least"), ("this", "expressions", "ignore_nulls")),
    exp.Greatest: (_extreme("greatest"), ("this", "expressions", "ignore_nulls")),
    exp.Anonymous: (_function, ("this", "expressions")),
    Ready: (lambda node: node.args["read"].of, ("read",)),
}
"""Every node there is, how it is read, and the options it may carry."""

# Row expressions in SQL spelling: `age >= 65 AND smoker`.
#
# sqlglot only parses (`syntax`). Its tree is read through a closed table onto our own expressions
# (`rows`); a node, or an option of a node, that the table does not name is refused.


def parse_condition(text: str) -> Expression:
    """The condition that `text` spells, such as `age >= 65 AND smoker`."""
    read = _parsed(text)
    if _is_value(read):
        raise InvalidQuery(
            f"{text!r:.80} is a value, wanted a condition; compare it with something (x > 0)",
            reason=Reason.WRONG_TYPE,
        )
    return read


def parse_value(text: str) -> Expression:
    """The value that `text` spells, such as `CLAMP(income, 0, 200000) / 1000`."""
    read = _parsed(text)
    if is_condition(read):
        raise InvalidQuery(
            f"{text!r:.80} is a condition, wanted a value;"
            " write CASE WHEN ... THEN 1 ELSE 0 END, or count it with a where-clause",
            reason=Reason.WRONG_TYPE,
        )
    return read


def _parsed(text: str) -> Expression:
    try:
        return read_node(normalised(syntax_tree(text)))
    except RecursionError:
        raise too_deep() from None


def _is_value(read: Expression) -> bool:
    if isinstance(read, Literal):
        return read.value is not None and not isinstance(read.value, bool)
    return isinstance(read, Operation) and not is_condition(read)
