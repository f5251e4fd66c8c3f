"""Where in the text a refusal points: found after the fact, so that reading stays quick."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from sulq.errors import InvalidQuery
from sulq.kernel.query import canonical
from sulq.kernel.schema.bind_rows import RowBinder
from sulq.kernel.schema.columns import Schema
from sulq.sql.parse.declared import bare, plain_row
from sulq.sql.parse.grammar import Node, located, span
from sulq.sql.parse.select import Select, asked_of


def _fails(step: Callable[[], object]) -> bool:
    try:
        step()
    except InvalidQuery:
        return True
    return False


def blamed_rows(error: InvalidQuery, nodes: Sequence[Node], schema: Schema) -> InvalidQuery:
    """The smallest part of WHERE that is refused by itself."""
    binder = RowBinder(schema)

    def fails(node: Node) -> bool:
        return _fails(lambda: binder.condition(canonical.truth(plain_row(node, schema))))

    for node in nodes:
        if fails(node):
            found = bare(node)
            while inner := [part for part in _conditions(found) if fails(part)]:
                found = bare(inner[0])
            return located(error, span(found))
    return error


def _conditions(node: Node) -> list[Node]:
    if isinstance(node, exp.And | exp.Or):
        return [node.this, node.expression]
    return [node.this] if isinstance(node, exp.Not) else []


def blamed_aggregates(error: InvalidQuery, select: Select, schema: Schema) -> InvalidQuery:
    """The first aggregate that is refused by itself."""
    binder = RowBinder(schema)
    for aggregate in asked_of(select):
        values = [value for value in (aggregate.of, aggregate.other) if value is not None]
        where = aggregate.where
        if any(_fails(lambda of=of: binder.number(canonical.value(of))) for of in values) or (  # type: ignore[misc]
            where is not None
            and _fails(lambda where=where: binder.condition(canonical.truth(where)))  # type: ignore[misc]
        ):
            return located(error, aggregate.span)
    return error


def closed(error: InvalidQuery, text: str) -> InvalidQuery:
    """A span that opens brackets goes on until they close: the parser notes names only."""
    if error.start is None or error.end is None:
        return error
    depth, quote = 0, ""
    for sign in text[error.start : error.end]:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        else:
            depth += (sign == "(") - (sign == ")")
    end = error.end
    while depth > 0:
        rest = text[end:]
        gap = len(rest) - len(rest.lstrip())
        if rest[gap : gap + 1] != ")":
            break
        end, depth = end + gap + 1, depth - 1
    error.end = end
    return error
