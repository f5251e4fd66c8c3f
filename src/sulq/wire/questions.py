"""A question as JSON and back. What comes from outside must have the shape of its kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sulq.errors import InvalidQuery
from sulq.query.statistics import Statistic, as_statistic, check_kind
from sulq.query.sum_query import SumQuery


def question_json(question: object) -> dict[str, Any]:
    """{"kind": "count", "query": {...}, "shares": [...]}."""
    asked = as_statistic(question)
    kind = "outer" if asked.query.outer is not None else asked.kind
    return {"kind": kind, "query": asked.query.to_json(), "shares": list(asked.shares)}


def question_of(form: Mapping[str, Any]) -> Statistic:
    """Read `question_json` back; refuses sums that cannot be read as what they are called."""
    if not isinstance(form, Mapping) or set(form) - {"shares"} != {"kind", "query"}:
        raise InvalidQuery("a question is an object with kind, query and perhaps shares")
    kind, shares = form["kind"], form.get("shares") or ()
    try:
        query = SumQuery.from_json(form["query"])
    except RecursionError:
        raise InvalidQuery("the question is nested too deeply; flatten or shorten it") from None
    read = Statistic(kind, query, shares)
    check_kind(read)
    shares = tuple(float(share) for share in shares)
    return Statistic("sums" if kind == "outer" else kind, query, shares)
