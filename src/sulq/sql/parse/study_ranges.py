"""Rows of one person in two tables: conditions that say in which range one lies of the other.

`v.day BETWEEN d.given AND d.given + 30` says that `d.given` is at most `v.day` and at least
`v.day - 30`. Only such conditions are read: whether a row is in a range is known from the nearest
one, so no row has to meet each other row of its person.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sqlglot import exp

from sulq.errors import Reason
from sulq.kernel.schema.columns import Number
from sulq.kernel.schema.study import Study
from sulq.sql.parse.declared import bare
from sulq.sql.parse.grammar import Node, wrong

ACROSS = (
    "and rows of two tables are compared by a range alone, in EXISTS: one column of the row inside"
    " from and up to a value of the row outside, such as v.day BETWEEN d.given AND d.given + 30;"
    " conditions of one row, and values of the person such as (SELECT MIN(...) ...), may stand"
    " beside it"
)
SIGNS: dict[type[Node], str] = {exp.LTE: "<=", exp.LT: "<", exp.GTE: ">=", exp.GT: ">", exp.EQ: "="}
FLIPPED = {"<=": ">=", "<": ">", ">=": "<=", ">": "<", "=": "="}


class Names(Protocol):
    """What the names of a SELECT stand for."""

    @property
    def study(self) -> Study: ...

    @property
    def relation(self) -> str: ...

    def table_of(self, column: Any) -> tuple[str, Any] | None: ...


@dataclass(frozen=True, slots=True)
class RangeEnd:
    """What a column is at most, or at least: a value of the row outside."""

    node: Node
    upper: bool
    strict: bool


def ranged(parts: Sequence[Node], names: Names) -> tuple[Node, list[RangeEnd]]:
    """The column that the conditions are about, and its ends."""
    column: Node | None = None
    ends: list[RangeEnd] = []
    for part in parts:
        for sign, left, right in _comparisons(part):
            mine, sign, rest = _solved(part, sign, left, right, names)
            if column is not None and mine != column:
                raise wrong(part, Reason.JOIN, f"two columns compared, {ACROSS}")
            column = mine
            if sign in ("<=", "<", "="):
                ends.append(RangeEnd(rest, True, sign == "<"))
            if sign in (">=", ">", "="):
                ends.append(RangeEnd(rest.copy(), False, sign == ">"))
    assert column is not None  # noqa: S101
    return column, ends


def _comparisons(part: Node) -> Iterator[tuple[str, Node, Node]]:
    part = bare(part)
    if isinstance(part, exp.Between):
        yield "<=", part.args["low"], part.this
        yield "<=", part.this, part.args["high"]
    elif type(part) in SIGNS:
        yield SIGNS[type(part)], part.this, part.expression
    else:
        raise wrong(part, Reason.JOIN, f"a condition that is no range, {ACROSS}")


def _solved(part: Node, sign: str, left: Node, right: Node, names: Names) -> tuple[Node, str, Node]:
    """The column of the row inside, compared with the rest."""
    terms = [*_terms(left, 1, names), *_terms(right, -1, names)]
    inside = [(weight, node) for weight, node in terms if _is_inside(node, names)]
    rest = [(weight, node) for weight, node in terms if not _is_inside(node, names)]
    if len(inside) != 1 or not rest:
        raise wrong(part, Reason.JOIN, f"a condition that is no range, {ACROSS}")
    [(weight, mine)] = inside
    if not isinstance(mine, exp.Column):
        raise wrong(part, Reason.JOIN, f"a computed value of the row inside, {ACROSS}")
    if weight < 0:
        sign = FLIPPED[sign]
    return mine, sign, _added([(-w * weight, node) for w, node in rest])


def _terms(node: Node, weight: int, names: Names) -> list[tuple[int, Node]]:
    """What is added and subtracted."""
    node = bare(node)
    match node:
        case exp.Add():
            return [*_terms(node.this, weight, names), *_terms(node.expression, weight, names)]
        case exp.Sub():
            return [*_terms(node.this, weight, names), *_terms(node.expression, -weight, names)]
        case exp.Neg():
            return _terms(node.this, -weight, names)
        case exp.DateDiff() if _of_days(node, names):
            return [(weight, bare(node.this)), (-weight, bare(node.expression))]
    return [(weight, node)]


def _of_days(node: Node, names: Names) -> bool:
    """Whether a DATEDIFF is the difference of two dates in days."""
    unit = node.args.get("unit")
    if unit is not None and unit.name.upper() not in ("DAY", "DAYS", "D"):
        return False
    return all(_is_date(bare(side), names) for side in (node.this, node.expression))


def _is_date(node: Node, names: Names) -> bool:
    found = names.table_of(node) if isinstance(node, exp.Column) else None
    if found is None:
        return False
    study, name = names.study, node.name.casefold()
    listed = study if found[0] == study.name else study.table(found[0])
    return any(
        isinstance(one, Number) and one.kind == "date" and one.name.casefold() == name
        for one in listed.columns
    )


def _is_inside(node: Node, names: Names) -> bool:
    """Whether a term reads the row inside."""
    for column in node.find_all(exp.Column):
        found = names.table_of(column)
        if found is not None and found[1] is names and found[0] == names.relation:
            return True
    return False


def _added(terms: Sequence[tuple[int, Node]]) -> Node:
    """The sum, what is added first: dates come before what is taken from them."""
    ordered = sorted(terms, key=lambda term: (-term[0], term[1].find(exp.Column) is None))
    made: Node | None = None
    for weight, node in ordered:
        term = exp.paren(node.copy()) if isinstance(node, exp.Binary) else node.copy()
        if made is None:
            made = term if weight > 0 else exp.Neg(this=term)
        else:
            made = (exp.Add if weight > 0 else exp.Sub)(this=made, expression=term)
    assert made is not None  # noqa: S101
    return made
