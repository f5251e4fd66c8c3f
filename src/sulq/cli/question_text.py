"""A question as it is typed: a statistic, a value in SQL spelling, and options."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from sulq.answers import statistics
from sulq.errors import InvalidQuery, Reason
from sulq.kernel.query.sum_query import Statistic
from sulq.kernel.schema.columns import Number, Schema, as_number
from sulq.sql import parse_condition, parse_value

PERSONS = {"persons": "persons (of a table of persons, those who have such a row)"}
FORMS = {kind: own.typed for kind, own in statistics.STATISTICS.items() if own.typed} | PERSONS
SYNONYMS = {
    "sum": "total VALUE",
    "avg": "mean VALUE",
    "average": "mean VALUE",
    "median": "quantiles VALUE --shares 0.5",
    "percentile": FORMS["quantiles"],
    "quantile": FORMS["quantiles"],
    "var": "variance VALUE",
}
_WHERE = re.compile(r"(?:--|\b)where\b", re.IGNORECASE)
_STATED_SHARES = re.compile(r"(.*\S)\s+--shares[\s=]+(.+)")
_SHARES = re.compile(r"(.*?\S)((?:[\s,]+(?:0?\.\d+|[01](?:\.0*)?))+)")


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
    if kind.casefold() in SYNONYMS:
        raise InvalidQuery(
            f"no statistic {kind!r}: write {SYNONYMS[kind.casefold()]};"
            f" there are {', '.join(FORMS)}"
        )
    if kind not in FORMS:
        raise InvalidQuery(f"no statistic {kind!r:.40}; there are {', '.join(FORMS)}")
    if kind == "count":
        fits = len(rest) <= 1
    else:
        fits = len(rest) == (0 if kind == "persons" else statistics.STATISTICS[kind].values)
    if not fits:
        got = f"{len(rest)} values" if rest else "no value"
        raise InvalidQuery(f"want {FORMS[kind]}, got {got}; quote a value that has spaces")
    _check_options(kind, edges, shares, other)
    rows = None if where is None else parse_condition(where)
    match kind:
        case "count":
            return statistics.count(parse_value(rest[0]) if rest else None, where=rows)
        case "persons":
            return statistics.count_persons(rows)
        case "histogram":
            columns = _columns(rest[0], schema)
            cut = {name: _edges(text) for name, text in _by_column(edges, columns).items()}
            return statistics.histogram(*columns, where=rows, edges=cut or None, other=other)
        case "cdf":
            ends = _edges(edges[0]) if edges else None
            return statistics.cdf(parse_value(rest[0]), ends, where=rows)
        case "quantiles":
            return statistics.quantiles(parse_value(rest[0]), _listed_shares(shares), where=rows)
    asked: Statistic = getattr(statistics, kind)(*map(parse_value, rest), where=rows)
    return asked


def _listed_shares(shares: str | None) -> list[float]:
    if shares is None:
        raise InvalidQuery(f"want {FORMS['quantiles']}, got no --shares")
    wanted = [_number(share, "a share") for share in shares.split(",")]
    return [float(x) for x in wanted]


def spelled(text: str, schema: Schema) -> Statistic:
    """A question in one line: `count`, `mean age where smoker`, `quantiles age 0.5`."""
    said, *rest = _WHERE.split(text, maxsplit=1)
    where = rest[0].strip() if rest else None
    if where and where[0] in "\"'" and where.find(where[0], 1) == len(where) - 1:
        where = where[1:-1]  # quoted for a shell
    words = [word.strip() for word in said.split(maxsplit=1)]
    shares = None
    if len(words) == 2 and words[0] == "quantiles":
        words[1], shares = _shares(words[1])
    known = statistics.STATISTICS.get(words[0]) if len(words) == 2 else None
    if known is not None and known.values > 1:
        words[1:] = re.split(r"\s*,\s*|\s+", words[1])
    with hinted(where, *words):
        return question(words, where, (), shares, False, schema)


def _shares(text: str) -> tuple[str, str | None]:
    """`age 0.25 0.5 0.75`, `age 0.25,0.5` or `age --shares 0.25,0.5`: the value, and its shares."""
    found = _STATED_SHARES.fullmatch(text) or _SHARES.fullmatch(text)
    if found is None:
        return text, None
    return found[1], ",".join(filter(None, re.split(r"[\s,]+", found[2])))


@contextmanager
def hinted(*texts: str | None) -> Iterator[None]:
    """Add a hint to "no such column" where the name stands in double quotes."""
    try:
        yield
    except InvalidQuery as error:
        name = error.about.get("column", "")
        quoted = any(f'"{name}"' in text for text in texts if text)
        if error.reason is Reason.NO_COLUMN and name and quoted:
            hint = f"double quotes name a column, a text takes single quotes: '{name}'"
            error.args = (f"{error.text}; {hint}",)
        raise


def edges_note(words: Sequence[str], edges: Sequence[str], other: bool, schema: Schema) -> str:
    """What is left out where edges do not reach the declared bounds."""
    if not edges or other:
        return ""
    columns = [words[1]] if words[0] == "cdf" else _columns(words[1], schema)
    for name, text in _by_column(edges, columns).items():
        if name not in schema:  # a row expression
            continue
        column = schema[name]
        if not isinstance(column, Number):
            continue
        cut = [as_number(edge, "an edge") for edge in _edges(text)]
        if min(cut) > column.range[0] or max(cut) < column.range[1]:
            reach = f"the edges of {name} do not reach its bounds {column.low} to {column.high}"
            if words[0] == "cdf":
                return f"{reach}: rows outside the edges are not counted"
            return f"{reach}: rows outside the edges are in no cell; add --other"
    return ""


def unit_of_value(words: Sequence[str], schema: Schema) -> str:
    """ "date" or "datetime" where the answer is one, else "number"."""
    if words[0] not in ("mean", "quantiles") or words[1] not in schema:
        return "number"
    column = schema[words[1]]
    return column.kind if isinstance(column, Number) else "number"


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


def check_terms(
    within: float | None, confidence: float, credits: str | None, rows: int | None
) -> None:
    """What is wrong with the options alone is found before a table is opened, or published."""
    spent = credits_of(credits)
    if within is not None and spent is not None:
        raise InvalidQuery("give --within or --credits, not both")
    if within is not None and not 0 < within < float("inf"):
        raise InvalidQuery(f"--within must be a number above 0, got {within:g}")
    if spent is not None and spent <= 0:
        raise InvalidQuery(f"--credits must be above 0, got {credits}")
    if not 0 < confidence < 1:
        raise InvalidQuery(f"--confidence must lie between 0 and 1, got {confidence:g}")
    if rows is not None and rows < 1:
        raise InvalidQuery(f"--rows must be a whole number above 0, got {rows}")


def credits_of(text: str | None, what: str = "--credits") -> Fraction | None:
    """`--credits 2.5`, exactly."""
    return None if text is None else _number(text, what)
