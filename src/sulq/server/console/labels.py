"""Words for what is asked and answered: from templates only, no free prose."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sulq.formatting import spelled
from sulq.kernel.query.expressions import Column
from sulq.kernel.query.sql_text import PERSONS
from sulq.kernel.schema.columns import Category, Flag, Number, Schema
from sulq.kernel.schema.columns import Column as Declared
from sulq.sql.parse.select import Aggregate, GroupKey, Item, Released, Select, aggregates_of

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


def shape_of(select: Select, schema: Schema) -> Shape:
    """Read off the statement and the schema; no row is looked at."""
    ordered = bool(select.order)
    while isinstance(select.source, Select):  # around another: what that gives
        select = replace(select.source, items=_unfolded(select.items))
    names = {item.of.place: item.name for item in select.items if isinstance(item.of, GroupKey)}
    groups = tuple(names.get(place, "group") for place in range(len(select.groups)))
    cells = 1
    for grouping in select.groups:
        cells *= max(1, sum(grouping.labels[at] is not None for at in grouping.shown))
    figures = tuple(
        _figure(item.name, item.of, aggregates_of(item.of), schema)
        for item in select.items
        if aggregates_of(item.of)
    )
    other = any(grouping.labels[at] is None for grouping in select.groups for at in grouping.shown)
    return Shape(figures=figures, groups=groups, cells=cells, ordered=ordered, other=other)


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
    unit = {"count": "rows", "persons": "persons"}.get(kind, _measure(column, schema))
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
    )


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
    return column


def number_word(count: int) -> str:
    words = NUMBERS.split()
    return words[count] if 0 <= count < len(words) else spelled(count, 0)


def plural(word: str, count: int = 2) -> str:
    if count == 1:
        return word
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return word[:-1] + "ies"
    if word.endswith(("x", "ch", "sh")):
        return word + "es"
    return word if word.endswith("s") else word + "s"


def groups_word(groups: Sequence[str]) -> str:
    """ "regions", or "groups" where there are several or an expression."""
    plain = len(groups) == 1 and re.fullmatch(r"[a-z]+", groups[0]) is not None
    return plural(groups[0]) if plain else "groups"


def group_word(groups: Sequence[str]) -> str:
    plain = len(groups) == 1 and re.fullmatch(r"[a-z_]+", groups[0]) is not None
    return groups[0] if plain else "group"


def listed(names: Sequence[str]) -> str:
    """ "A", "A and B", "A, B and C"."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def one(schema: Schema) -> str:
    """Who is protected, in the singular."""
    return "row" if schema.unit == "row" else "person"


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
            return "any text"
        shown = ", ".join(str(value) for value in column.values[:MOST_VALUES])
        more = len(column.values) - MOST_VALUES
        return f"{shown} and {more} more" if more > 0 else shown
    return f"{bound_text(column, column.low)} to {bound_text(column, column.high)}"


def short_values(column: Declared) -> str:
    """The same for a narrow rail."""
    if isinstance(column, Category) and column.values is not None and len(column.values) > 3:
        return f"{len(column.values)} values"
    return "yes / no" if isinstance(column, Flag) else values_text(column)


def kind_text(column: Declared) -> str:
    if isinstance(column, Flag):
        return "yes or no"
    if isinstance(column, Category):
        return "category" if column.values is not None else "open text"
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


SAID = {"AVG": "Average", "SUM": "Total", "MEDIAN": "Median", "MIN": "Lowest", "MAX": "Highest"}
CALL = re.compile(r"\b(AVG|SUM|MEDIAN|MIN|MAX)\(\s*([\w\"]+)\s*\)", re.IGNORECASE)


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


def bound_text(column: Number, end: object) -> str:
    return spelled(float(end), None) if isinstance(end, int | float) else str(end)
