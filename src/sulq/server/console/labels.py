"""Words for what is asked and answered: from templates only, no free prose."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from sulq.errors import InvalidQuery
from sulq.formatting import spelled
from sulq.kernel.query.expressions import Column, Expression, Literal, Operation
from sulq.kernel.query.sql_text import PERSONS, sql_text
from sulq.kernel.query.sum_query import Group, SumQuery
from sulq.kernel.schema.columns import Category, Flag, Number, Schema, meaning_of, plural
from sulq.kernel.schema.columns import Column as Declared
from sulq.sql.parse.select import (
    Aggregate,
    Grouping,
    GroupKey,
    Item,
    Released,
    Select,
    aggregates_of,
)

NUMBERS = "no one two three four five six seven eight nine ten eleven twelve"
NOUNS = {
    "count": "count",
    "persons": "count",
    "sum": "total",
    "avg": "average",
    "quantile": "percentile",
    "min": "lowest value",
    "max": "highest value",
    "corr": "correlation",
    "covar_pop": "covariance",
    "covar_samp": "covariance",
    "var_pop": "variance",
    "var_samp": "variance",
    "stddev_pop": "standard deviation",
    "stddev_samp": "standard deviation",
}
SIZED = ("count", "sum", "persons")
"""Statistics whose bar does not depend on how many rows match."""
MOST_VALUES = 6
OTHER = "other or missing"


@dataclass(frozen=True, slots=True)
class Figure:
    """One aggregate column of a statement."""

    name: str
    noun: str
    unit: str
    counts: bool
    sized: bool
    column: str
    span: tuple[int, int] | None
    kind: str
    grain: str = ""
    """To what its values are known at best: "the day", "the whole number"."""
    said: str = ""
    """What an axis says of it: "average stay, days"."""
    meant: bool = False
    """True if its owner says what the column is: then it is called so everywhere."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a statement gives: so many cells of these figures, by these groups."""

    figures: tuple[Figure, ...]
    groups: tuple[str, ...]
    cells: int
    ordered: bool
    """True if the statement says how its rows are sorted."""
    other: bool = False
    """True if a row for what is other or missing comes on top."""
    labels: tuple[Category | None, ...] = ()
    """Of each group the column whose values have labels, if they do."""


def shape_of(select: Select, schema: Schema) -> Shape:
    """Read off the statement and the schema; no row is looked at."""
    ordered = bool(select.order)
    while isinstance(select.source, Select):  # around another: what that gives
        select = replace(select.source, items=_unfolded(select.items))
    names = {item.of.place: item.name for item in select.items if isinstance(item.of, GroupKey)}
    of = [grouped_by(grouping, schema) for grouping in select.groups]
    groups = tuple(
        names.get(place, "group") if column is None or not short_about(column) else words_of(column)
        for place, column in enumerate(of)
    )
    labels = tuple(
        column if isinstance(column, Category) and column.labels else None for column in of
    )
    cells = 1
    for grouping in select.groups:
        cells *= max(1, sum(grouping.labels[at] is not None for at in grouping.shown))
    figures = tuple(
        _figure(item.name, item.of, aggregates_of(item.of), schema)
        for item in select.items
        if aggregates_of(item.of)
    )
    other = any(grouping.labels[at] is None for grouping in select.groups for at in grouping.shown)
    return Shape(
        figures=figures, groups=groups, cells=cells, ordered=ordered, other=other, labels=labels
    )


def grouped_by(grouping: Grouping, schema: Schema) -> Declared | None:
    """The column whose values are the groups; None where they are made of it."""
    group = grouping.group
    of = group.of
    plain = isinstance(of, Column) and of.name in schema
    if not plain or group.edges is not None or group.bins is not None:
        return None
    return schema[of.name] if isinstance(of, Column) else None


LONGEST_ABOUT = 48


def short_about(column: Declared) -> str:
    """What a column is, short enough for a sentence; empty where its owner says nothing short."""
    said = re.split(r"[,;:(.]", column.about)[0].strip()
    return said if len(said) <= LONGEST_ABOUT else ""


def words_of(column: Declared) -> str:
    """A column in the middle of a sentence: what it is, else its name."""
    said = short_about(column)
    plain = len(said) > 1 and said[1].islower()
    return (said[:1].lower() + said[1:] if plain else said) or column.name


def _unfolded(items: Sequence[Item]) -> tuple[Item, ...]:
    """Columns of an inner SELECT that stand by themselves, as what they are there."""
    return tuple(
        replace(item, of=item.of.of) if isinstance(item.of, Released) else item for item in items
    )


def _figure(name: str, of: object, inside: Sequence[Aggregate], schema: Schema) -> Figure:
    plain = isinstance(of, Aggregate)
    kind = inside[0].kind if plain else ""
    counts = kind in ("count", "persons")
    column = inside[0].of.name if plain and isinstance(inside[0].of, Column) else ""
    median = kind == "quantile" and inside[0].share is not None and inside[0].share * 2 == 1
    noun = "median" if median else NOUNS.get(kind, "number")
    people = schema.who if schema.unit == "row" or kind == "persons" else "rows"
    unit = people if counts else _measure(column, schema)
    sized = all(aggregate.kind in SIZED for aggregate in inside) and plain
    place = inside[0].span if plain else None
    grain = _grain(kind, column, schema) if plain else ""
    return Figure(
        name=name,
        noun=noun,
        unit=unit,
        counts=counts,
        sized=sized,
        column=column,
        span=place,
        kind=kind,
        grain=grain,
        said=_said(noun, column, schema, people if counts else ""),
        meant=column in schema and bool(meaning_of(schema[column])),
    )


def _said(noun: str, column: str, schema: Schema, people: str) -> str:
    """What a figure is, as an axis says it: "average length of stay, days"."""
    if people:
        return f"number of {people}"
    if noun == "number" or column not in schema:
        return ""
    declared = schema[column]
    unit = declared.measured_in if isinstance(declared, Number) else ""
    share = noun == "average" and isinstance(declared, Flag)
    what = "share of" if share else noun if noun in ("average", "total", "median") else f"{noun} of"
    return f"{what} {words_of(declared)}{unit and f', {unit}'}"


def _grain(kind: str, column: str, schema: Schema) -> str:
    """The step of what is shown: counts are whole, quantiles are points of a declared lattice."""
    if kind in ("count", "persons"):
        return "the whole number"
    if kind not in ("quantile", "min", "max") or column not in schema:
        return ""
    declared = schema[column]
    if not isinstance(declared, Number):
        return ""
    if declared.kind != "number":
        return "the day" if declared.kind == "date" else "the second"
    step = declared.lattice
    return "" if step is None else "the whole number" if step == 1 else f"its step of {step}"


def _measure(column: str, schema: Schema) -> str:
    """What a bar is in: days or seconds of a date, else the column's own units."""
    if column not in schema:
        return column
    declared = schema[column]
    if isinstance(declared, Number) and declared.kind != "number":
        return "days" if declared.kind == "date" else "seconds"
    return (declared.measured_in if isinstance(declared, Number) else "") or column


def number_word(count: int) -> str:
    words = NUMBERS.split()
    return words[count] if 0 <= count < len(words) else spelled(count, 0)


def counted(word: str, count: int) -> str:
    """A word after a number: "one count", "two counts"."""
    return word if count == 1 else plural(word)


def groups_word(groups: Sequence[str]) -> str:
    """ "regions", or "groups" where there are several or an expression."""
    plain = len(groups) == 1 and re.fullmatch(r"[a-z][a-z ]*", groups[0]) is not None
    return plural(groups[0]) if plain else "groups"


def group_word(groups: Sequence[str]) -> str:
    plain = len(groups) == 1 and re.fullmatch(r"[a-z_][a-z_ ]*", groups[0]) is not None
    return groups[0] if plain else "group"


def listed(names: Sequence[str]) -> str:
    """ "A", "A and B", "A, B and C"."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def key_text(key: object) -> str:
    """The label of a group."""
    if key is None:
        return OTHER
    if isinstance(key, bool):
        return "yes" if key else "no"
    if isinstance(key, tuple) and len(key) == 2:
        return f"{key_text(key[0])} to {key_text(key[1])}"
    return spelled(key, None) if isinstance(key, float) else str(key)


def values_text(column: Declared) -> str:
    """What a column may hold, in few words."""
    if isinstance(column, Flag):
        return "yes, no"
    if isinstance(column, Category):
        if column.values is None:
            return "any whole number" if column.whole else "any text"
        shown = ", ".join(column.said(value) for value in column.values[:MOST_VALUES])
        more = len(column.values) - MOST_VALUES
        return f"{shown} and {more} more" if more > 0 else shown
    ends = f"{bound_text(column, column.low)} to {bound_text(column, column.high)}"
    return f"{ends} {column.measured_in}".strip()


def short_values(column: Declared) -> str:
    """The same for a narrow rail."""
    if isinstance(column, Category) and column.values is not None and len(column.values) > 3:
        return f"{len(column.values)} values"
    return "yes / no" if isinstance(column, Flag) else values_text(column)


def kind_text(column: Declared) -> str:
    if isinstance(column, Flag):
        return "yes or no"
    if isinstance(column, Category):
        if column.values is not None:
            return "category"
        return "open whole number" if column.whole else "open text"
    if column.kind != "number":
        return "date" if column.kind == "date" else "date and time"
    return "whole number" if column.step == 1 else "number"


SIGNS = ((">=", "≥"), ("<=", "≤"), ("<>", "≠"))
CUT = re.compile(r"(?:[\d./]+ \* )?(\w+) CUT AT \(([^)]*)\)")
AVERAGE = re.compile(r"^COUNT\(\*\), SUM\((?:CENTRED\()?([^()]+?)\)?\)(?=$| WHERE| GROUP)")


FOUND = re.compile(r"(ALERT ABOVE [^:]*|TOP \d+|KEYS): ")


def question_title(text: str, most: int = 64) -> str:
    """A question of the ledger as people say it: "Average stay_days, age ≥ 65, by region"."""
    if found := FOUND.match(text):
        head = found[0].capitalize()
        return head + question_title(text[found.end() :], most - len(head))
    plain = text.replace(" WITH OTHER", "").replace(" AND ALL PAIRS", "")
    average = AVERAGE.match(plain)
    if average is not None:
        plain = f"Average {average[1]}{plain[average.end() :]}"
        plain = re.sub(rf"(?: WHERE| AND) {re.escape(average[1])} IS NOT NULL", "", plain)
    plain = plain.replace(PERSONS, "Persons", 1)
    plain = re.sub(r"^COUNT\(\*\)", "Count", plain)
    plain = re.sub(r"^SUM\(([^()]+)\)", r"Total \1", plain)
    plain = CUT.sub(lambda cut: f"{cut[1]} in {cut[2].count(',') + 1} bands", plain)
    plain = plain.replace(" WHERE ", ", ").replace(" GROUP BY ", ", by ").replace(" AND ", ", ")
    for sign, shown in SIGNS:
        plain = plain.replace(sign, shown)
    return plain if len(plain) <= most else plain[: most - 2] + " …"


SAID = {
    "AVG": "Average",
    "SUM": "Total",
    "MEDIAN": "Median",
    "MIN": "Lowest",
    "MAX": "Highest",
    "STDDEV": "Spread of",
    "CORR": "Correlation of",
}
CALL = re.compile(rf"\b({'|'.join(SAID)})\(\s*([\w\", ]+?)\s*\)", re.IGNORECASE)


def statement_title(sql: str, most: int = 90) -> str:
    """A statement as people say it: "Average stay_days, age ≥ 65, by region"."""
    flat = " ".join(sql.split())
    found = re.match(
        r"SELECT (?P<list>.+?) FROM \S+(?: WHERE (?P<where>.+?))?(?: GROUP BY (?P<by>.+?))?"
        r"(?: (?:HAVING|ORDER BY|LIMIT|WITHIN)\b.*)?$",
        flat,
        re.IGNORECASE,
    )
    if found is None or " FROM " in found["list"].upper():
        return flat if len(flat) <= most else flat[: most - 2] + " …"
    items = re.split(r",\s*(?![^()]*\))", found["list"])
    named = [re.split(r"\s+AS\s+", one, flags=re.IGNORECASE)[-1] for one in items]
    by = [key.strip() for key in (found["by"] or "").split(",") if key.strip()]
    numbered = [int(key) - 1 for key in by if key.isdigit() and 0 < int(key) <= len(items)]
    keys = ", ".join(
        named[int(key) - 1] if key.isdigit() and int(key) - 1 in numbered else key for key in by
    )
    figures = [
        re.sub(r"\s+AS\s+\S+$", "", one, flags=re.IGNORECASE)
        for at, one in enumerate(items)
        if "(" in one and at not in numbered
    ]
    said = [CALL.sub(lambda call: f"{SAID[call[1].upper()]} {call[2]}", one) for one in figures]
    said = [re.sub(r"COUNT\(\*\)", "Count", one, flags=re.IGNORECASE) for one in said]
    text = ", ".join(said) or found["list"]
    text += f", {found['where'].replace(' AND ', ', ')}" if found["where"] else ""
    text += f", by {keys}" if keys else ""
    for sign, shown in SIGNS:
        text = text.replace(sign, shown)
    return text if len(text) <= most else text[: most - 2] + " …"


@lru_cache(maxsize=50_000)
def restated(question: str, table: str) -> str:
    """A statement that asks the sums of a stored question, read as what they are sums for: a count
    and a centred total are an average. Empty where there is none.

    Who shows an answer by it compares the digests of its questions first: it may say another one.
    """
    try:
        query = SumQuery.from_json(json.loads(question))
        if query.clip is not None or query.outer is not None or not query.terms:
            return ""
        keys, median = _keys(query.groups)
        figures = [f"MEDIAN({median}) AS median"] if median else _figures(query.terms)
        rows = _without_presence(query)
    except (InvalidQuery, ValueError, LookupError):
        return ""
    if keys is None or not figures:
        return ""
    listed_ = ", ".join([key for key, _ in keys] + figures)
    by = f" GROUP BY {', '.join(name for _, name in keys)}" if keys else ""
    return f"SELECT {listed_} FROM {column_name(table)}{rows}{by}"  # noqa: S608 - parsed, not run


def column_name(name: str) -> str:
    return sql_text(Column(name))


def _keys(groups: Sequence[Group]) -> tuple[list[tuple[str, str]] | None, str]:
    """What is selected and grouped by; and the column of a median, if the last group is its."""
    median = sql_text(groups[-1].of) if groups and groups[-1].tree else ""
    found = []
    for at, group in enumerate(groups[: len(groups) - bool(median)]):
        if not group.edges and group.bins is None:
            text = sql_text(group.of)
            found.append((text, text))
            continue
        band = _band(group)
        if not band:
            return None, ""
        found.append((f"{band[0]} AS {band[1]}", str(at + 1)))
    return found, median


def _band(group: Group) -> tuple[str, str] | None:
    """Bands of equal width, as SQL makes them: FLOOR(age / 10) * 10."""
    match group.of:
        case Operation(name="multiply", operands=(Literal(value), Column(name))):
            width = 1 / Fraction(str(value))
        case Column(name):
            width = Fraction(1)
        case _:
            return None
    edges = [Fraction(str(edge.value)) for edge in group.edges or ()]
    steps = {high - low for low, high in pairwise(edges)}
    if steps != {Fraction(1)} or width.denominator != 1:
        return None
    spelled_ = column_name(name)
    return f"FLOOR({spelled_} / {width}) * {width}", column_name(f"{name}_from")


def _figures(terms: Sequence[Expression]) -> list[str]:
    """Aggregates that are read from these sums."""
    spelled_ = [sql_text(term) for term in terms]
    inner = [text[8:-1] if text.startswith("CENTRED(") else "" for text in spelled_]
    products = [text for text in inner if text.startswith("CENTRED(")]
    columns = [text for text in inner if text and text not in products]
    if len(products) == 3 and len(columns) == 2:
        return [f"CORR({columns[0]}, {columns[1]}) AS correlation"]
    if products:
        only = len(products) == 1 and len(columns) == 1
        return [f"STDDEV({columns[0]}) AS spread"] if only else []
    averages = [f"AVG({x}) AS average_{at}" for at, x in enumerate(columns, 1)]
    if len(averages) == 1:
        averages = [f"AVG({columns[0]}) AS average"]
    if spelled_[0] == "1" and len(terms) == 2 and columns:
        return averages
    present = {f"CASE WHEN {x} IS NOT NULL THEN 1 ELSE 0 END": x for x in columns}
    added = [
        text
        for text, centred in zip(spelled_, inner, strict=True)
        if text != "1" and not centred and text not in present
    ]
    totals = [f"SUM({text}) AS total_{at}" for at, text in enumerate(added, 1)]
    if len(added) == 1:
        totals = [f"SUM({added[0]}) AS total"]
    made = dict(zip([*columns, *added], [*averages, *totals], strict=True)) | {"1": "COUNT(*) AS n"}
    of = [present.get(text, centred or text) for text, centred in zip(spelled_, inner, strict=True)]
    return [made[one] for one in dict.fromkeys(of)]  # in the order of the sums


def _without_presence(query: SumQuery) -> str:
    """WHERE without the clauses that an aggregate adds by itself: `x IS NOT NULL`."""
    rows = query.rows
    parts = rows.operands if isinstance(rows, Operation) and rows.name == "and" else (rows,)
    centred = {sql_text(term)[8:-1] for term in query.terms}
    kept = [part for part in parts if sql_text(part).removesuffix(" IS NOT NULL") not in centred]
    texts = [
        f"({sql_text(part)})"
        if isinstance(part, Operation) and part.name == "or" and len(kept) > 1
        else sql_text(part)
        for part in kept
    ]
    said = " AND ".join(texts)
    return "" if said in ("", "TRUE") else f" WHERE {said}"


def bound_text(column: Number, end: object) -> str:
    return spelled(float(end), None) if isinstance(end, int | float) else str(end)
