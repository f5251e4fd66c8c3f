"""Statements with a slip of the pen, as they were perhaps meant: nothing here is tried or priced.

Words that are not of the language are replaced by the nearest that are, values that were not
declared by the nearest that were. Who offers a repair has seen first that it would be answered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from sulq.kernel.schema.columns import Category, Schema

WORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP", "BY", "ORDER", "HAVING", "LIMIT", "DISTINCT", "AS"),
    *("BETWEEN", "LIKE", "CASE", "WHEN", "THEN", "ELSE", "END", "AND", "OR", "NOT", "IN", "IS"),
    *("NULL", "ASC", "DESC", "WITHIN", "PERCENT", "TRUE", "FALSE", "DATE", "COUNT", "SUM", "AVG"),
    *("MEDIAN", "MIN", "MAX", "STDDEV", "VARIANCE", "CORR", "FLOOR", "CEIL", "ROUND", "LEAST"),
    *("GREATEST", "COALESCE", "ABS"),
)
OTHERS = (
    *("all", "any", "any_value", "at", "cast", "cross", "cube", "current_date", "except", "filter"),
    *("exists", "first", "full", "group_concat", "ilike", "inner", "intersect", "interval", "join"),
    *("last", "left", "listagg", "mode", "natural", "nulls", "offset", "on", "outer", "over"),
    *("partition", "qualify", "recursive", "regexp", "right", "rlike", "rollup", "row_number"),
    *("similar", "string_agg", "to", "top", "union", "using", "values", "window", "with"),
)
"""Words of SQL that are meant as they stand, answered or not."""
TOKEN = re.compile(
    r"(?P<text>'(?:[^']|'')*')|(?P<skip>\"[^\"]*\"|--[^\n]*|\d[\w.]*)|(?P<word>[A-Za-z_]\w*)"
)
NEAR = 0.65
LONGEST = 2_000
"""Letters of a text that is looked through."""
MOST_UNKNOWN = 4
"""A text with more unknown words is no statement with a slip."""


def respelled(text: str, schema: Schema, table: str = "") -> Iterator[str]:
    """The text with every unknown word replaced by the nearest known one, then one by one."""
    names = {column.name for column in schema.columns} | {table, schema.unit}
    names |= {each.name for each in getattr(schema, "tables", ())}
    known = {name.casefold(): name for name in (*WORDS, *names) if name}
    found: list[tuple[int, int, str]] = []
    named = False
    for hit in TOKEN.finditer(text[:LONGEST]):
        word = hit["word"]
        if word is None:
            continue
        if not named and word.casefold() not in known and word.casefold() not in OTHERS:
            near = get_close_matches(word.casefold(), list(known), 1, NEAR)
            if near:
                found.append((*hit.span(), known[near[0]]))
        named = word.casefold() == "as"
    if not found or len(found) > MOST_UNKNOWN:
        return
    yield _replaced(text, found)
    if len(found) > 1:
        yield from (_replaced(text, [one]) for one in found)


def revalued(text: str, schema: Schema) -> Iterator[tuple[str, str]]:
    """Values that were not declared: the nearest one that was, and the text with it."""
    columns = [c for c in schema.columns if isinstance(c, Category) and c.values]
    used = [c for c in columns if re.search(rf"\b{re.escape(c.name)}\b", text, re.IGNORECASE)]
    values = {str(value) for column in used for value in column.values or ()}
    folded = {value.casefold(): value for value in values}
    for hit in TOKEN.finditer(text[:LONGEST]):
        said = (hit["text"] or "''")[1:-1].replace("''", "'")
        if not said or said in values:
            continue
        near = get_close_matches(said.casefold(), list(folded), 1, NEAR)
        if near:
            meant = folded[near[0]]
            quoted = "'" + meant.replace("'", "''") + "'"
            yield meant, _replaced(text, [(*hit.span(), quoted)])


def _replaced(text: str, places: list[tuple[int, int, str]]) -> str:
    for start, end, word in reversed(places):
        text = text[:start] + word + text[end:]
    return text
