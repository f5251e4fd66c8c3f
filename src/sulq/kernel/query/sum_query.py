"""SumQuery: sums over the rows in S, per public cell. The one thing that is ever asked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.query import canonical
from sulq.kernel.query.expressions import (
    Expression,
    Literal,
    as_expression,
    column_or_expression,
    operation,
)

if TYPE_CHECKING:  # outer products load their part of the language when first asked
    from sulq.kernel.query.vectors import Vector

MOST_TERMS = 1_000
MOST_GROUPS = 8
FORMAT = 1


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Cells by a column's declared values, by `edges`, or by so many equal `bins` of its range.

    `other` adds one cell for NULL and whatever lies in no other cell. `tree` asks for all sums of
    neighbouring bins as well, pair by pair up to the halves, for the price of the bins.
    """

    of: Expression
    edges: tuple[Literal, ...] | None = None
    bins: int | None = None
    other: bool = False
    tree: bool = False

    def to_json(self) -> dict[str, Any]:
        edges = None if self.edges is None else [canonical.to_json(edge) for edge in self.edges]
        form = {
            "of": canonical.to_json(self.of),
            "edges": edges,
            "bins": self.bins,
            "other": self.other,
        }
        return {**form, "tree": True} if self.tree else form


@dataclass(frozen=True, slots=True, eq=False)
class SumQuery:
    """Sum `terms` over the rows where `rows` is true, once per cell of `groups`.

    Or `outer`: all products of a coordinate of one vector with one of another. With `clip`, the
    sum is taken per person (and cell) first, cut to (low, high), and then over the persons.
    `uncut`: of all rows that a person has, also of those beyond max_rows: their number alone.
    `table` names the table of a study whose rows are summed; empty: its person table.
    """

    terms: tuple[Expression, ...]
    rows: Expression = canonical.TRUE
    groups: tuple[Group, ...] = ()
    outer: tuple[Vector, Vector] | None = None
    clip: tuple[Literal, Literal] | None = None
    uncut: bool = False
    table: str = ""

    def __post_init__(self) -> None:
        if self.uncut and (self.clip is None or self.groups or self.outer is not None):
            raise InvalidQuery("rows that are not cut are counted per person: clip, and no groups")
        if self.outer is not None:
            if self.terms or self.groups or self.clip:
                raise InvalidQuery("an outer product has neither terms, groups nor a clip")
            return
        if self.clip is not None and len(self.terms) != 1:
            raise InvalidQuery(f"a question per person sums 1 term, got {len(self.terms)}")
        if not 1 <= len(self.terms) <= MOST_TERMS:
            raise InvalidQuery(
                f"a question sums 1 to {MOST_TERMS} terms, got {len(self.terms)}",
                reason=Reason.TOO_LARGE,
            )
        if len(self.groups) > MOST_GROUPS:
            raise InvalidQuery(
                f"at most {MOST_GROUPS} group columns, got {len(self.groups)}",
                reason=Reason.TOO_LARGE,
            )

    def canonical(self) -> SumQuery:
        """The same question in its one spelling."""
        if self.outer is not None:
            from sulq.kernel.query.vectors import canonical_vector

            left, right = (canonical_vector(side) for side in self.outer)
            rows = canonical.truth(self.rows)
            return SumQuery((), rows, (), (left, right), table=self.table)
        groups = tuple(
            group(canonical.value(by.of), by.edges, by.bins, by.other, by.tree)
            for by in self.groups
        )
        terms = tuple(canonical.value(term) for term in self.terms)
        clip = None if self.clip is None else clip_of(self.clip)
        rows, table = canonical.truth(self.rows), self.table
        return SumQuery(terms, rows, groups, clip=clip, uncut=self.uncut, table=table)

    def to_json(self) -> dict[str, Any]:
        if self.outer is not None:
            from sulq.kernel.query.vectors import vector_to_json

            return {
                "sulq": FORMAT,
                **self._about(),
                "rows": canonical.to_json(self.rows),
                "outer": [vector_to_json(side) for side in self.outer],
            }
        form: dict[str, Any] = {
            "sulq": FORMAT,
            **self._about(),
            "rows": canonical.to_json(self.rows),
            "terms": [canonical.to_json(term) for term in self.terms],
            "groups": [group.to_json() for group in self.groups],
        }
        if self.clip is not None:
            form["clip"] = [canonical.to_json(end) for end in self.clip]
        return {**form, "uncut": True} if self.uncut else form

    def _about(self) -> dict[str, Any]:
        return {"table": self.table} if self.table else {}

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> SumQuery:
        """Read `to_json` back; refuses anything else."""
        if isinstance(form, Mapping) and "table" in form:
            table = form["table"]
            if not isinstance(table, str) or not table:
                raise InvalidQuery("a question's table is a name")
            rest = {key: value for key, value in form.items() if key != "table"}
            return replace(cls.from_json(rest), table=table)
        if isinstance(form, Mapping) and "outer" in form:
            return _outer_from_json(form)
        keys = {"sulq", "rows", "terms", "groups"}
        known = isinstance(form, Mapping) and set(form) - {"clip", "uncut"} == keys
        if not known or form["sulq"] != FORMAT or form.get("uncut", True) is not True:
            raise InvalidQuery(f"a question is an object with {sorted(keys)}, format {FORMAT}")
        if not isinstance(form["terms"], list) or not isinstance(form["groups"], list):
            raise InvalidQuery("a question's terms and groups are lists")
        return cls(
            tuple(canonical.from_json(term) for term in form["terms"]),
            canonical.from_json(form["rows"]),
            tuple(_group_from_json(group) for group in form["groups"]),
            clip=_clip_from_json(form["clip"]) if "clip" in form else None,
            uncut="uncut" in form,
        )


def outer(left: Vector, right: Vector, rows: Expression | None = None) -> SumQuery:
    """The matrix of sums, over the rows in S, of left (x) right.

    `outer(v, v)` is a Gram matrix, `outer(one_hot(a), one_hot(b))` a contingency table,
    `outer(nearest(v, centres), concat(ones(), v))` a k-means step.
    """
    from sulq.kernel.query.vectors import Vector

    for side in (left, right):
        if not isinstance(side, Vector):
            raise InvalidQuery(f"outer takes two vectors, got {type(side).__name__}")
    return SumQuery((), canonical.TRUE if rows is None else as_expression(rows), (), (left, right))


def _outer_from_json(form: Mapping[str, Any]) -> SumQuery:
    from sulq.kernel.query.vectors import vector_from_json

    keys = {"sulq", "rows", "outer"}
    sides = form["outer"]
    if set(form) != keys or form["sulq"] != FORMAT or not isinstance(sides, list):
        raise InvalidQuery(f"an outer product is an object with {sorted(keys)}, format {FORMAT}")
    if len(sides) != 2:
        raise InvalidQuery(f"an outer product has two sides, got {len(sides)}")
    left, right = (vector_from_json(side) for side in sides)
    return outer(left, right, canonical.from_json(form["rows"]))


def rows_where(where: object, *conditions: Expression) -> Expression:
    """Return the condition that `where`, unless it is None, and all `conditions` are true."""
    parts = [*([] if where is None else [as_expression(where)]), *conditions]
    if not parts:
        return canonical.TRUE
    return parts[0] if len(parts) == 1 else operation("and", *parts)


def clip_of(ends: object) -> tuple[Literal, Literal]:
    """(low, high) of a clip, checked."""
    read = [as_expression(end) for end in ends] if isinstance(ends, tuple | list) else []
    numbers = [canonical.number_of(end) for end in read]
    match numbers:
        case [Fraction() as low, Fraction() as high] if low <= high:
            return Literal(low), Literal(high)
    raise InvalidQuery(f"a clip is (low, high), two numbers with low <= high, got {ends!r:.60}")


def _clip_from_json(form: object) -> tuple[Literal, Literal]:
    if not isinstance(form, list):
        raise InvalidQuery("a question's clip is a list of two numbers")
    return clip_of([canonical.from_json(end) for end in form])


def text_of(query: SumQuery) -> str:
    """The question as text; of a canonical query, its one spelling."""
    return json.dumps(query.to_json(), ensure_ascii=False, separators=(",", ":"))


def digest_of(text: str) -> str:
    """The name of a question: SHA-256 of its canonical text."""
    return hashlib.sha256(text.encode()).hexdigest()


def group(
    of: Expression | str,
    edges: Iterable[object] | None = None,
    bins: int | None = None,
    other: bool = False,
    tree: bool = False,
) -> Group:
    """A group column, checked as far as it can be without a schema."""
    if bins is not None and (isinstance(bins, bool) or not isinstance(bins, int) or bins < 1):
        raise InvalidQuery(f"bins must be a whole number above 0, got {bins!r}")
    if tree and (bins is None or edges is not None or other):
        raise InvalidQuery("a tree is over equal bins, without other: say bins=...")
    if edges is None:
        return Group(column_or_expression(of), None, bins, bool(other), bool(tree))
    if isinstance(edges, str) or not isinstance(edges, Iterable):
        raise InvalidQuery(f"edges must be a list of numbers, got {type(edges).__name__}")
    read = [as_expression(edge) for edge in edges]
    literals = tuple(edge for edge in read if isinstance(edge, Literal))
    if len(literals) != len(read) or len(read) < 2:
        raise InvalidQuery("edges must be at least two numbers or dates")
    return Group(column_or_expression(of), literals, None, bool(other))


def _group_from_json(form: Any) -> Group:
    keys = {"of", "edges", "bins", "other"}
    tree = isinstance(form, Mapping) and form.get("tree") is True
    if not isinstance(form, Mapping) or set(form) != (keys | {"tree"} if tree else keys):
        raise InvalidQuery("a group is an object with of, edges, bins and other")
    edges = form["edges"]
    if edges is not None:
        if not isinstance(edges, list):
            raise InvalidQuery("a group's edges are a list")
        edges = [canonical.from_json(edge) for edge in edges]
    of = canonical.from_json(form["of"])
    return group(of, edges, form["bins"], form["other"] is True, tree)


# What is asked of sums: they are summed here, and read where answers are made.


@dataclass(frozen=True, slots=True, eq=False)
class Statistic:
    """A question: the sums it asks, and the kind of answer that is read from them.

    `sulq.answers.statistics` has a class for every kind. `shares` are those of quantiles.
    """

    kind: str
    query: SumQuery
    shares: tuple[float, ...] = ()


def about_table(question: object, table: str) -> Statistic | SumQuery:
    """Return the question, asked of the rows of one table of a study."""
    if isinstance(question, SumQuery):
        return replace(question, table=table)
    asked = as_statistic(question)
    return replace(asked, query=replace(asked.query, table=table))


def counts_rows(query: SumQuery) -> bool:
    """Return whether the only term is 1."""
    return len(query.terms) == 1 and canonical.number_of(query.terms[0]) == 1


def is_tree(query: SumQuery) -> bool:
    """Return whether rows are counted in a tree over the last group, and over no other."""
    trees = [group.tree for group in query.groups]
    return counts_rows(query) and query.clip is None and trees[-1:] == [True] and sum(trees) == 1


Check = Callable[[Statistic], None]
_CHECKS: dict[str, Check] = {}


def register_kind(kind: str, check: Check) -> None:
    """Accept questions of this kind; `check` refuses one whose sums cannot be read so."""
    _CHECKS[kind] = check


def as_statistic(question: object) -> Statistic:
    """Return a statistic as it is, and a `SumQuery` as its sums, or as a distribution if it has a
    tree."""
    if isinstance(question, Statistic):
        return question
    if isinstance(question, SumQuery):
        if not any(group.tree for group in question.groups):
            return Statistic("sums", question)
        if not is_tree(question):
            raise InvalidQuery("a tree is over the last group, and its only term is 1: a count")
        return Statistic("distribution", question)
    raise InvalidQuery(
        f"want a question such as count(...), mean(...) or a SumQuery,"
        f" got {type(question).__name__}"
    )


def check_kind(statistic: Statistic) -> None:
    """Refuse a statistic whose sums cannot be read as its kind.

    Answers are read after the charge, so whatever reading relies on is checked here, before it.
    """
    check = _CHECKS.get(statistic.kind) if isinstance(statistic.kind, str) else None
    if check is None:
        known = ", ".join(_CHECKS)
        raise InvalidQuery(f"no question of kind {statistic.kind!r:.40}; there are {known}")
    check(statistic)
