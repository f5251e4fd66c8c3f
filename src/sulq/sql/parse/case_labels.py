"""CASE expressions whose values are public labels: group keys, and comparisons with texts.

Also what a tree of row expressions means, and when two mean the same.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from sulq.errors import Reason
from sulq.kernel.query.expressions import Expression
from sulq.kernel.schema.bind_rows import like
from sulq.kernel.schema.columns import Schema
from sulq.sql.errors import wrong
from sulq.sql.parse.declared import core
from sulq.sql.parse.lookups import constant
from sulq.sql.parse.row_expr import read_node
from sulq.sql.parse.tokens import Node

COMPARISONS = (exp.EQ, exp.NEQ, exp.In, exp.Like, exp.Is)


def bare(node: Node) -> Node:
    """The node without brackets around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def is_chosen(node: Node) -> bool:
    """CASE, or COALESCE of one."""
    node = bare(node)
    if isinstance(node, exp.Coalesce):
        return isinstance(node.this, exp.Expr) and is_chosen(node.this)
    return isinstance(node, exp.Case) and node.args.get("this") is None


def leaves(node: Node) -> list[Node]:
    """What a CASE can give."""
    node = bare(node)
    if isinstance(node, exp.Coalesce) and is_chosen(node):
        there = [leaf for leaf in leaves(node.this) if not isinstance(leaf, exp.Null)]
        return there + [bare(instead) for instead in node.expressions]
    if not is_chosen(node):
        return [node]
    found = [leaf for branch in node.args["ifs"] for leaf in leaves(branch.args["true"])]
    default = node.args.get("default")
    return found + ([exp.Null()] if default is None else leaves(default))


def mapped(node: Node, change: Callable[[Node], Node]) -> Node:
    """The same CASE with every leaf changed."""
    node = bare(node)
    if isinstance(node, exp.Coalesce) and is_chosen(node):
        instead = bare(node.expressions[0]) if len(node.expressions) == 1 else None
        if instead is None or not is_constant(instead):
            raise wrong(node, Reason.WRONG_FORM, "COALESCE of a CASE wants one constant")
        return mapped(node.this, lambda leaf: change(instead if _is_null(leaf) else leaf))
    if not is_chosen(node):
        return change(node)
    branches = [
        exp.If(this=branch.this.copy(), true=mapped(branch.args["true"], change))
        for branch in node.args["ifs"]
    ]
    default = node.args.get("default")
    last = change(exp.Null()) if default is None else mapped(default, change)
    return exp.Case(ifs=branches, default=last)


def _is_null(node: Node) -> bool:
    return isinstance(node, exp.Null)


def is_constant(node: Node) -> bool:
    node = bare(node)
    if isinstance(node, exp.Neg):
        node = bare(node.this)
    return isinstance(node, exp.Literal | exp.Null | exp.Boolean)


def value_of(node: Node) -> object:
    """The value of a constant: a text, a number, a truth value or None."""
    node = bare(node)
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    read = read_node(node)
    return getattr(read, "value", None)


def coded(node: Node) -> tuple[Node, tuple[object, ...], bool] | None:
    """A CASE of constants as numbers 0, 1, ..., their labels, and whether NULL can come out.

    None where a leaf is not a constant.
    """
    found = leaves(node)
    if not all(is_constant(leaf) for leaf in found):
        return None
    labels = list(dict.fromkeys((type(v), v) for v in map(value_of, found) if v is not None))
    if all(isinstance(value, int | Fraction) for _, value in labels):
        labels.sort(key=lambda pair: Fraction(pair[1]))  # type: ignore[call-overload]
    codes = {pair: place for place, pair in enumerate(labels)}

    def code(leaf: Node) -> Node:
        value = value_of(leaf)
        return exp.Null() if value is None else constant(codes[type(value), value])

    nullable = any(value_of(leaf) is None for leaf in found)
    return mapped(node, code), tuple(value for _, value in labels), nullable


def without_texts(node: Node) -> Node:
    """Comparisons of a CASE of texts with constants, as comparisons of a CASE of 0 and 1."""
    if next(node.find_all(exp.Case), None) is None:
        return node
    for found in reversed(list(node.find_all(*COMPARISONS))):
        changed = _without_texts(found)
        if changed is found:
            continue
        if found is node:
            node = changed
        else:
            found.replace(changed)
    return node


def _without_texts(node: Node) -> Node:
    subject, other = bare(node.this), node.args.get("expression")
    if isinstance(node, exp.EQ | exp.NEQ) and isinstance(other, exp.Expr) and is_chosen(other):
        subject, other = bare(other), node.this
    if not is_chosen(subject) or not any(_is_text(leaf) for leaf in leaves(subject)):
        return node

    def compared(leaf: Node) -> Node:
        if not is_constant(leaf):
            same = _rebuilt(node, leaf, other)
            no = exp.If(this=exp.Not(this=exp.Paren(this=same.copy())), true=constant(0))
            return exp.Case(ifs=[exp.If(this=same, true=constant(1)), no])
        truth = _truth(node, value_of(leaf), other)
        return exp.Null() if truth is None else constant(int(truth))

    return exp.Paren(this=exp.EQ(this=mapped(subject, compared), expression=constant(1)))


def _is_text(leaf: Node) -> bool:
    return isinstance(leaf, exp.Literal) and bool(leaf.is_string)


def _rebuilt(node: Node, leaf: Node, other: object) -> Node:
    same = node.copy()
    same.set("this", exp.Paren(this=leaf.copy()))
    if isinstance(other, exp.Expr):
        same.set("expression", other.copy())
    return same


def _truth(node: Node, value: object, other: object) -> bool | None:
    """`value = other` and the like, with SQL's three values."""
    if isinstance(node, exp.Is):
        if not isinstance(other, exp.Null):
            raise wrong(node, Reason.WRONG_FORM, "IS knows only NULL; write x IS NULL")
        return value is None
    listed = [value_of(item) for item in _constants(node, other)]
    if value is None:
        return None
    if isinstance(node, exp.Like):
        if not isinstance(listed[0], str):
            raise wrong(node, Reason.WRONG_FORM, "LIKE wants a text: name LIKE 'A%'")
        return like(listed[0], str(value)) is not bool(node.args.get("negate"))
    for one in listed:
        if one is not None and isinstance(one, str) is not isinstance(value, str):
            raise wrong(
                node, Reason.WRONG_TYPE, "a text is compared with a number; quote texts: 'a'"
            )
    if value in [one for one in listed if one is not None]:
        return not isinstance(node, exp.NEQ)
    if None in listed:
        return None
    return isinstance(node, exp.NEQ)


def _constants(node: Node, other: object) -> list[Node]:
    listed = node.expressions if isinstance(node, exp.In) else [other]
    if not listed or not all(isinstance(x, exp.Expr) and is_constant(x) for x in listed):
        raise wrong(node, Reason.WRONG_TYPE, "a CASE of texts compares with constants only")
    return list(listed)


def shape(node: Node) -> object:
    """The tree as nested tuples, without brackets and positions: equal shapes, equal meaning."""
    node = bare(node)
    parts: list[object] = [type(node).__name__]
    for name, given in sorted(node.args.items()):
        if given in (None, False, [], "") or name in ("quoted", "typed", "safe"):
            continue
        listed = given if isinstance(given, list) else [given]
        parts.append((name, *(shape(x) if isinstance(x, exp.Expr) else x for x in listed)))
    return tuple(parts)


def is_there(leaf: Node) -> Node:
    """1 where a value is there, else NULL."""
    if is_constant(leaf):
        return exp.Null() if value_of(leaf) is None else constant(1)
    there = exp.Not(this=exp.Paren(this=exp.Is(this=leaf.copy(), expression=exp.Null())))
    return exp.Case(ifs=[exp.If(this=there, true=constant(1))])


def plain_row(node: Node, schema: Schema) -> Expression:
    """A node over declared columns as our expression."""
    found = without_texts(core(node, schema))
    if is_chosen(found) and any(
        isinstance(leaf, exp.Literal) and leaf.is_string for leaf in leaves(found)
    ):
        raise wrong(
            node,
            Reason.WRONG_TYPE,
            "a CASE of texts stands where a number or condition is wanted;"
            " group by it or compare it",
        )
    return read_node(found)
