"""A question as it is typed: a statistic, a value in SQL spelling, and options."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from sulq.errors import InvalidQuery
from sulq.query import statistics
from sulq.query.statistics import Statistic
from sulq.schema.columns import Schema
from sulq.sql import parse_condition, parse_value

FORMS = {
    "count": "count, or count VALUE (rows where it is there)",
    "total": "total VALUE",
    "mean": "mean VALUE",
    "variance": "variance VALUE",
    "histogram": "histogram COLUMN[,COLUMN...] [--edges 0,18,65,120] [--other]",
    "cdf": "cdf VALUE [--edges ...]",
    "quantiles": "quantiles VALUE --shares 0.25,0.5,0.75",
}


def question(
    words: Sequence[str],
    where: str | None,
    edges: Sequence[str],
    shares: str | None,
    other: bool,
    schema: Schema,
) -> Statistic:
    """The statistic that the words spell."""
    if not words:
        raise InvalidQuery(f"say which statistic: {', '.join(FORMS)}")
    kind, rest = words[0], list(words[1:])
    if kind not in FORMS:
        raise InvalidQuery(f"no statistic {kind!r:.40}; there are {', '.join(FORMS)}")
    if len(rest) > 1 or (not rest and kind != "count"):
        got = f"{len(rest)} values" if rest else "no value"
        raise InvalidQuery(f"want {FORMS[kind]}, got {got}; quote a value that has spaces")
    _check_options(kind, edges, shares, other)
    rows = None if where is None else parse_condition(where)
    match kind:
        case "count":
            return statistics.count(parse_value(rest[0]) if rest else None, where=rows)
        case "total":
            return statistics.total(parse_value(rest[0]), where=rows)
        case "mean":
            return statistics.mean(parse_value(rest[0]), where=rows)
        case "variance":
            return statistics.variance(parse_value(rest[0]), where=rows)
        case "histogram":
            columns = _columns(rest[0], schema)
            cut = {name: _edges(text) for name, text in _by_column(edges, columns).items()}
            return statistics.histogram(*columns, where=rows, edges=cut or None, other=other)
        case "cdf":
            ends = _edges(edges[0]) if edges else None
            return statistics.cdf(parse_value(rest[0]), ends, where=rows)
    if shares is None:
        raise InvalidQuery(f"want {FORMS[kind]}, got no --shares")
    wanted = [_number(share, "a share") for share in shares.split(",")]
    return statistics.quantiles(parse_value(rest[0]), [float(x) for x in wanted], where=rows)


def _check_options(kind: str, edges: Sequence[str], shares: str | None, other: bool) -> None:
    takes = {"histogram": ("--edges", "--other"), "cdf": ("--edges",), "quantiles": ("--shares",)}
    given = {"--edges": bool(edges), "--shares": shares is not None, "--other": other}
    for name, is_given in given.items():
        if is_given and name not in takes.get(kind, ()):
            raise InvalidQuery(f"{kind} takes no {name}; it is {FORMS[kind]}")


def _columns(text: str, schema: Schema) -> list[str]:
    if text in schema:
        return [text]
    return [name.strip().strip('"') for name in text.split(",")]


def _by_column(edges: Sequence[str], columns: Sequence[str]) -> dict[str, str]:
    """`--edges 0,18,65` for one column; `--edges age=0,18,65` where there are several."""
    found: dict[str, str] = {}
    for text in edges:
        name, equals, cut = text.partition("=")
        if not equals:
            if len(columns) > 1:
                raise InvalidQuery(f"with several columns write --edges {columns[0]}=0,1,2")
            name, cut = columns[0], text
        if name not in columns:
            raise InvalidQuery(f"--edges for {name!r}, which is not among {list(columns)}")
        found[name] = cut
    return found


def _edges(text: str) -> list[int | Fraction | datetime.date]:
    return [_edge(edge.strip()) for edge in text.split(",")]


def _edge(text: str) -> int | Fraction | datetime.date:
    for read in (datetime.date.fromisoformat, datetime.datetime.fromisoformat):
        if "-" in text[1:]:
            try:
                return read(text)
            except ValueError:
                continue
    number = _number(text, "an edge")
    return number.numerator if number.denominator == 1 else number


def _number(text: str, what: str) -> Fraction:
    """Exactly the number that is typed."""
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        raise InvalidQuery(f"{what} must be a number, got {text!r:.40}") from None
    if not number.is_finite() or abs(number.adjusted()) > 99:
        raise InvalidQuery(f"{what} must be a finite number, got {text!r:.40}")
    return Fraction(number)


def credits_of(text: str | None) -> Fraction | None:
    """`--credits 2.5`, exactly."""
    return None if text is None else _number(text, "--credits")
