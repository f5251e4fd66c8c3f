"""Statements near a refused one: the slips that have an obvious remedy, spelled out.

From the text and the schema alone. What is offered has been read and priced before (`run`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from itertools import islice

from sqlglot import exp

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.schema.columns import Number, Schema
from sulq.sql.errors import span
from sulq.sql.parse.tokens import Node, opened

MOST = 3
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_MODE = re.compile(
    r"""SELECT\s+MODE\((?P<of>\s*(?:"[^"]+"|\w+)\s*)\)\s+FROM\s+(?P<source>"[^"]+"|\w+)"""
    r"""(?:\s+WHERE\s+(?P<where>(?:(?!\b(?:GROUP|ORDER|HAVING|LIMIT|WITHIN|OFFSET)\b).)+))?""",
    re.IGNORECASE | re.DOTALL,
)
_SPELLED: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?<!FLOOR\()\b([A-Za-z_]\w*)\s*/\s*(\d+)\b", re.IGNORECASE), r"FLOOR(\1 / \2)"),
)


def offered(
    error: InvalidQuery, text: str, schema: Schema, answered: Callable[[str], bool]
) -> tuple[str, ...]:
    """Up to three rewrites that would be answered."""
    found = dict.fromkeys(each for each in _candidates(error, text, schema) if each != text)
    return tuple(islice(filter(answered, found), MOST))


def _candidates(error: InvalidQuery, text: str, schema: Schema) -> Iterator[str]:
    if error.start is not None and error.end is not None:
        yield from _at_the_place(error, text, error.start, error.end, schema)
    if error.reason in (Reason.ROWS_SHOWN, Reason.PERSON_COLUMN, Reason.DISTINCT):
        yield from _counted(text, schema)
    yield from _most_frequent(text)
    for pattern, instead in _SPELLED if error.reason is Reason.NO_GROUPS else ():
        if pattern.search(text):
            yield pattern.sub(instead, text)


def _at_the_place(
    error: InvalidQuery, text: str, start: int, end: int, schema: Schema
) -> Iterator[str]:
    before, meant, after = text[:start], text[start:end], text[end:]
    match error.reason:
        case Reason.NO_COLUMN | Reason.ALIAS:
            yield from _near_names(text, start, end, schema)
        case Reason.NO_TABLE:
            yield before + _quoted(error.about["table"]) + after
        case Reason.UNGROUPED:
            yield from _grouped(text, meant, end)
            yield from (f"{before}{name}({meant}){after}" for name in ("AVG", "MEDIAN", "COUNT"))
        case Reason.NO_STEP:
            if (width := _width(meant, schema)) is not None:
                bucket = f"FLOOR({meant} / {width}) * {width}"
                yield re.sub(rf"\b{re.escape(meant)}\b", bucket, text)
        case Reason.WITHIN_RANK:
            yield before + re.sub(r"[\d.]+", r"\g<0> PERCENT", meant, count=1) + after
            yield before.strip()
        case Reason.SEMICOLON | Reason.WITHIN_UNKNOWN | Reason.WITHIN_SIZE:
            yield before.strip()


def _near_names(text: str, start: int, end: int, schema: Schema) -> Iterator[str]:
    """Declared columns in place of an unknown name."""
    before, meant, after = text[:start], text[start:end], text[end:]
    for name in (column.name for column in schema.columns):
        if not _PLAIN.fullmatch(name) and f'"{name}"' not in text:  # hours-per-week
            quoted = _quoted(name).replace("\\", r"\\")
            yield re.sub(re.escape(name), quoted, text, flags=re.IGNORECASE)
    if meant.startswith('"'):  # a text in the quotes of names
        yield before + "'" + meant[1:-1].replace("'", "''") + "'" + after
    for name in _near(meant.split(".")[-1].strip('"'), schema):
        yield before + name + after


def _near(name: str, schema: Schema) -> list[str]:
    known = {column.name.casefold(): column.name for column in schema.columns}
    return [
        _quoted(known[each])
        for each in get_close_matches(name.casefold(), list(known), n=MOST, cutoff=0.6)
    ]


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def _width(name: str, schema: Schema) -> int | None:
    """A round width that makes some ten groups."""
    column = next((c for c in schema.columns if c.name.casefold() == name.casefold()), None)
    if not isinstance(column, Number) or column.kind != "number":
        return None
    low, high = column.range
    width = 1
    while (high - low) / width > 20:
        width *= 10
    return width


def _tree(text: str) -> Node | None:
    try:
        return opened(text).tree
    except InvalidQuery:
        return None


def _grouped(text: str, meant: str, end: int) -> Iterator[str]:
    """GROUP BY the column too; where nothing is counted yet, count."""
    tree = _tree(text)
    if tree is None:
        return
    group = tree.args.get("group")
    reach = None if group is None else span(group)
    if reach is not None:
        yield f"{text[: reach[1]]}, {meant}{text[reach[1] :]}"
    elif _is_short(tree):
        counted = next(tree.find_all(exp.AggFunc), None) is None
        listed = text if not counted else f"{text[:end]}, COUNT(*){text[end:]}"
        yield f"{listed.rstrip().rstrip(';')} GROUP BY {meant}"


def _counted(text: str, schema: Schema) -> Iterator[str]:
    """A count of the same rows or persons, and of each group where columns are named."""
    tree = _tree(text)
    reaches = [] if tree is None else [span(item) for item in tree.expressions]
    if tree is None or not _is_short(tree) or not reaches or None in reaches:
        return
    first = re.match(r"\s*SELECT\b", text, re.IGNORECASE)
    last = re.search(r"\bFROM\b", text, re.IGNORECASE)
    if first is None or last is None or tree.args.get("group") is not None:
        return
    rest = text[last.start() :].rstrip().rstrip(";")
    named = [column.name for item in tree.expressions for column in item.find_all(exp.Column)]
    counted = "COUNT(*)" if schema.unit == "row" else f"COUNT(DISTINCT {_quoted(schema.unit)})"
    shown = [name for name in named if name not in ("*", schema.unit)]
    keys = ", ".join(dict.fromkeys(_quoted(name) for name in shown))
    if keys:
        yield f"SELECT {keys}, {counted} {rest} GROUP BY {keys}"
    yield f"SELECT {counted} {rest}"


def _most_frequent(text: str) -> Iterator[str]:
    """MODE(x), alone: the group of x with the most rows."""
    found = _MODE.fullmatch(text.strip().rstrip(";"))
    if found is None:
        return
    of, source, where = found["of"].strip(), found["source"], found["where"]
    there = f"({where}) AND {of} IS NOT NULL" if where else f"{of} IS NOT NULL"
    grouped = f"GROUP BY {of} ORDER BY n DESC LIMIT 1"
    yield f"SELECT {of}, COUNT(*) AS n FROM {source} WHERE {there} {grouped}"  # noqa: S608


def _is_short(tree: Node) -> bool:
    """Ends after WHERE, so that GROUP BY can be added to the text."""
    return not any(tree.args.get(name) for name in ("group", "having", "order", "limit", "offset"))
