"""A question as JSON and back. What comes from outside must have the shape of its kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sulq.errors import InvalidQuery
from sulq.query import canonical
from sulq.query.expressions import Expression, Operation
from sulq.query.statistics import MOST_SHARES, Statistic, as_statistic, mean, variance
from sulq.query.sum_query import SumQuery

KINDS = (
    *("sums", "outer", "count", "total", "mean", "variance"),
    *("histogram", "cdf", "quantiles", "distribution"),
)
RATIOS = {"mean": mean, "variance": variance}
ONE = '["num","1"]'


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
    if kind not in KINDS:
        raise InvalidQuery(f"no question of kind {kind!r:.40}; there are {', '.join(KINDS)}")
    try:
        query = SumQuery.from_json(form["query"])
    except RecursionError:
        raise InvalidQuery("the question is nested too deeply; flatten or shorten it") from None
    if not _fits(kind, query) or bool(shares) != (kind == "quantiles"):
        raise InvalidQuery(f"the sums of this question are not those of a {kind}")
    return Statistic("sums" if kind == "outer" else kind, query, _shares(shares))


def _shares(given: Any) -> tuple[float, ...]:
    numbers = isinstance(given, list | tuple) and all(
        isinstance(share, int | float) and not isinstance(share, bool) and 0 <= share <= 1
        for share in given
    )
    if not numbers or len(given) > MOST_SHARES:
        raise InvalidQuery(f"shares are at most {MOST_SHARES} numbers in [0, 1]")
    return tuple(float(share) for share in given)


def _fits(kind: str, query: SumQuery) -> bool:
    """Whether the reading of this kind can read these sums."""
    if kind == "outer" or query.outer is not None:
        return kind in ("outer", "sums") and query.outer is not None
    terms, trees = query.terms, [group.tree for group in query.groups]
    one = len(terms) == 1 and canonical.spelling(terms[0]) == ONE
    match kind:
        case "sums":
            return not any(trees)
        case "count":
            return one and not trees
        case "total":
            return len(terms) == 1 and not trees
        case "mean" | "variance":
            return not trees and query.clip is None and _is_ratio(kind, terms)
        case "histogram":
            return one and bool(trees) and not any(trees)
    if not one or not trees or query.clip is not None:
        return False
    if kind == "distribution":
        return trees[-1] and not any(trees[:-1])
    first = query.groups[0]
    listed = kind == "cdf" and first.edges is not None and not first.other
    return len(trees) == 1 and (first.tree or listed)


def _is_ratio(kind: str, terms: tuple[Expression, ...]) -> bool:
    """The terms are those that `mean` or `variance` asks of some x."""
    if len(terms) < 2 or not isinstance(terms[1], Operation) or terms[1].name != "centred":
        return False
    wanted = RATIOS[kind](terms[1].operands[0]).query.terms
    return [canonical.spelling(term) for term in terms] == [canonical.spelling(t) for t in wanted]
