"""Row expressions in SQL spelling: `age >= 65 AND smoker`.

sqlglot only parses (`syntax`). Its tree is read through a closed table onto our own expressions
(`rows`); a node, or an option of a node, that the table does not name is refused.
"""

from __future__ import annotations

from sulq.errors import InvalidQuery
from sulq.query.expressions import Expression, Literal, Operation
from sulq.sql.rows import is_condition, read_node
from sulq.sql.syntax import syntax_tree, too_deep


def parse_condition(text: str) -> Expression:
    """The condition that `text` spells, such as `age >= 65 AND smoker`."""
    read = _parsed(text)
    if _is_value(read):
        raise InvalidQuery(
            f"{text!r:.80} is a value, wanted a condition; compare it with something (x > 0)"
        )
    return read


def parse_value(text: str) -> Expression:
    """The value that `text` spells, such as `CLAMP(income, 0, 200000) / 1000`."""
    read = _parsed(text)
    if is_condition(read):
        raise InvalidQuery(
            f"{text!r:.80} is a condition, wanted a value;"
            " write CASE WHEN ... THEN 1 ELSE 0 END, or count it with a where-clause"
        )
    return read


def _parsed(text: str) -> Expression:
    try:
        return read_node(syntax_tree(text))
    except RecursionError:
        raise too_deep() from None


def _is_value(read: Expression) -> bool:
    if isinstance(read, Literal):
        return read.value is not None and not isinstance(read.value, bool)
    return isinstance(read, Operation) and not is_condition(read)
