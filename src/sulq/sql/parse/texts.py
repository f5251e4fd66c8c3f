"""Functions of declared texts: LOWER, SUBSTRING, LIKE, regular expressions, as public tables.

Each is worked out once per question, for the values that the owner declared; no row is looked at.
Patterns are matched in time linear in the text. What was not declared has no place in the table.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from sqlglot import exp

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.schema.bind_rows import like
from sulq.kernel.schema.columns import Category, Schema
from sulq.sql.parse.grammar import Node, wrong
from sulq.sql.parse.scope import keys_in, label_tree

_lock = threading.Lock()


@lru_cache(maxsize=1)
def _connection() -> Any:
    import duckdb

    return duckdb.connect(":memory:", config={"threads": 1, "enable_external_access": False})


def matched(
    pattern: str, texts: Sequence[str | None], ignore_case: bool = False, whole: bool = False
) -> list[bool | None]:
    """Whether each text holds (or, with `whole`, is) what the pattern describes; None of None."""
    function = "regexp_full_match" if whole else "regexp_matches"
    options = "i" if ignore_case else "c"
    asked = f"SELECT [{function}(x, $1, '{options}') FOR x IN $2]"
    return list(_asked(asked, [pattern, list(texts)]))


def first_match(pattern: str, text: str, group: int = 0) -> str | None:
    """The first part of a text that matches, or a group of it; None where nothing does."""
    if not matched(pattern, [text])[0]:
        return None
    return str(_asked(f"SELECT regexp_extract($2, $1, {int(group)})", [pattern, text]))


def _asked(asked: str, given: list[Any]) -> Any:
    import duckdb

    with _lock:
        try:
            found = _connection().execute(asked, given).fetchone()
        except duckdb.Error:
            raise InvalidQuery(
                "the regular expression cannot be read; write for instance '^O.*o$'",
                reason=Reason.WRONG_FORM,
            ) from None
    return found[0]


LONGEST_PATTERN = 200
Value = object
TEXT_TYPES = {
    exp.DType.TEXT,
    exp.DType.VARCHAR,
    exp.DType.CHAR,
    exp.DType.NVARCHAR,
    exp.DType.NCHAR,
}


def _bare(node: Node) -> Node:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def declared_texts(node: Node, schema: Schema) -> Category | None:
    """The one column of declared values that a function of texts is of; None of anything else."""
    columns = {column.name for column in node.find_all(exp.Column)}
    if len(columns) != 1:
        return None
    column = next((each for each in schema.columns if each.name in columns), None)
    return column if isinstance(column, Category) and column.values is not None else None


def is_text_function(node: Node) -> bool:
    """Whether a node is made by a function of texts, constants and columns apart."""
    node = _bare(node)
    return type(node) in FUNCTIONS


def table_of(node: Node, column: Category) -> list[tuple[Value, Value]]:
    """Each declared value with what the function makes of it."""
    return [(value, computed(node, value)) for value in column.values or ()]


def as_labels(node: Node, column: Category) -> Node:
    """The function as a CASE over the column."""
    name = next(iter(node.find_all(exp.Column)))
    return label_tree(name, table_of(node, column), total=False)


def as_condition(node: Node, column: Category) -> Node:
    """A test of texts as a list of the declared values for which it is true."""
    name = next(iter(node.find_all(exp.Column)))
    truths = _matched(node, column) if type(node) in REGULAR else table_of(node, column)
    if any(truth is None for _, truth in truths):
        codes = [(value, None if t is None else int(bool(t))) for value, t in truths]
        one = exp.Literal(this="1", is_string=False)
        return exp.EQ(this=label_tree(name, codes, total=False), expression=one)
    found = [value for value, truth in truths if truth]
    if not found:
        there = exp.Not(this=exp.Is(this=name.copy(), expression=exp.Null()))
        no = exp.Case(ifs=[exp.If(this=there, true=exp.Literal(this="0", is_string=False))])
        return exp.EQ(this=no, expression=exp.Literal(this="1", is_string=False))
    return keys_in(name, found)


def computed(node: Node, value: Value) -> Value:
    """A function of texts at one declared value; None is NULL."""
    node = _bare(node)
    if isinstance(node, exp.Column):
        return value
    if isinstance(node, exp.Literal):
        return str(node.this) if node.is_string else _number(node)
    if isinstance(node, exp.RawString):
        return str(node.this)
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Cast) and node.args["to"].this in TEXT_TYPES:
        found = computed(node.this, value)
        return None if found is None else str(found)
    if isinstance(node, exp.Neg):
        found = computed(node.this, value)
        return None if found is None else -int(str(found))
    if isinstance(node, REGULAR):
        return _matches(node, value)
    known = FUNCTIONS.get(type(node)) or TESTS.get(type(node))
    if known is None:
        raise wrong(
            node,
            Reason.NOT_IN_LANGUAGE,
            "this is no function of declared texts that is known here; there are LOWER, UPPER,"
            " TRIM, SUBSTRING, LEFT, RIGHT, CONCAT, REPLACE, LENGTH, LIKE, ILIKE and REGEXP",
        )
    names, work = known
    given: list[Any] = []
    for name in names:
        inner = node.args.get(name)
        if isinstance(inner, list):
            given.append([computed(each, value) for each in inner])
        else:
            given.append(computed(inner, value) if isinstance(inner, exp.Expr) else None)
    return bearable(node, work(node, *given))


def bearable(node: Node, made: Value) -> Value:
    """What a function of texts made, unless it is too long to go on with."""
    if isinstance(made, str) and len(made) > LONGEST_TEXT:
        raise wrong(
            node, Reason.TOO_LARGE, f"a function makes texts of at most {LONGEST_TEXT:,} characters"
        )
    return made


def _number(node: Node) -> Value:
    spelled = str(node.this)
    return int(spelled) if spelled.isdigit() else float(spelled)


def _strict(work: Callable[..., Value]) -> Callable[..., Value]:
    """NULL in, NULL out."""
    return lambda node, *given: None if given[0] is None else work(node, *given)


def _substring(node: Node, of: Value, start: Value, length: Value) -> Value:
    spelled, first = str(of), int(str(start if start is not None else 1))
    if first < 0:
        first = max(len(spelled) + first + 1, 1)
    last = len(spelled) + 1 if length is None else first + int(str(length))
    return spelled[max(first, 1) - 1 : max(last - 1, 0)]


def _trim(node: Node, of: Value, signs: Value) -> Value:
    place = str(node.args.get("position") or "").upper()
    spelled, taken = str(of), None if signs is None else str(signs)
    if place == "LEADING":
        return spelled.lstrip(taken or " ")
    return spelled.rstrip(taken or " ") if place == "TRAILING" else spelled.strip(taken or " ")


def _concat(node: Node, parts: list[Value]) -> Value:
    skips = bool(node.args.get("coalesce"))
    if not skips and any(part is None for part in parts):
        return None
    return "".join("" if part is None else str(part) for part in parts)


def _joined(parts: list[Value]) -> Value:
    """CONCAT_WS: NULLs are left out."""
    sign, *rest = parts
    return None if sign is None else str(sign).join(str(p) for p in rest if p is not None)


def _split(of: str, sign: str, at: int) -> str:
    """SPLIT_PART counts from 1, from the end below 0."""
    parts = of.split(sign) if sign else [of]
    place = at - 1 if at > 0 else len(parts) + at
    return parts[place] if 0 <= place < len(parts) else ""


def _first_parts(of: str, sign: str, count: int) -> str:
    parts = of.split(sign) if sign else [of]
    return sign.join(parts[:count] if count >= 0 else parts[count:])


def _signs(old: str, new: str) -> dict[int, str | None]:
    found: dict[int, str | None] = {}
    for at, sign in enumerate(old):
        found.setdefault(ord(sign), new[at] if at < len(new) else None)
    return found


LONGEST_TEXT = 1_000
"""Of a text that a function makes."""


def _padded(node: Node, of: Value, size: Value, fill: Value) -> Value:
    spelled, length = str(of), min(max(int(str(size)), 0), LONGEST_TEXT)
    sign = " " if fill is None else str(fill)
    spare = (sign * length)[: max(length - len(spelled), 0)]
    return (spare + spelled if node.args.get("is_left") else spelled + spare)[:length]


def _extracted(node: Node, of: Value, pattern: Value) -> Value:
    """REGEXP_EXTRACT(x, pattern): the part that matches; '' in DuckDB, else NULL, of none."""
    if node.args.get("position") or node.args.get("occurrence"):
        raise wrong(node, Reason.NOT_IN_LANGUAGE, "REGEXP_EXTRACT takes a text and a pattern")
    group = node.args.get("group")
    found = first_match(pattern_of(node, pattern), str(of), 0 if group is None else int(group.name))
    return "" if found is None and node.args.get("null_if_pos_overflow") else found


def _coalesce(node: Node, first: Value, rest: list[Value]) -> Value:
    return next((each for each in (first, *rest) if each is not None), None)


def pattern_of(node: Node, pattern: Value) -> str:
    if not isinstance(pattern, str):
        raise wrong(node, Reason.WRONG_FORM, "a pattern is a text: city LIKE 'O%'")
    if len(pattern) > LONGEST_PATTERN:
        raise wrong(node, Reason.TOO_LARGE, f"a pattern has at most {LONGEST_PATTERN} characters")
    return pattern


def _like(node: Node, of: Value, pattern: Value) -> Value:
    found = like(pattern_of(node, pattern), str(of))
    return found is not bool(node.args.get("negate"))


def _ilike(node: Node, of: Value, pattern: Value) -> Value:
    found = like(pattern_of(node, pattern).lower(), str(of).lower())
    return found is not bool(node.args.get("negate"))


def _matches(node: Node, value: Value) -> Value:
    """A regular expression against one value."""
    of = computed(node.this, value)
    pattern = pattern_of(node, computed(node.expression, None))
    whole, either_case = bool(node.args.get("full_match")), isinstance(node, exp.RegexpILike)
    return matches(pattern, of, either_case, whole)


def matches(pattern: str, of: Value, either_case: bool, whole: bool) -> Value:
    """Whether a text matches; NULL of NULL."""
    return matched(pattern, [None if of is None else str(of)], either_case, whole)[0]


def _matched(node: Node, column: Category) -> list[tuple[Value, Value]]:
    """A regular expression against all declared values at once."""
    pattern = pattern_of(node, computed(node.expression, None))
    values = list(column.values or ())
    texts = [computed(node.this, value) for value in values]
    spelled = [None if each is None else str(each) for each in texts]
    whole, either_case = bool(node.args.get("full_match")), isinstance(node, exp.RegexpILike)
    try:
        return list(zip(values, matched(pattern, spelled, either_case, whole), strict=True))
    except InvalidQuery as error:
        raise wrong(node, Reason.WRONG_FORM, str(error)) from None


def _compared(sign: Callable[[str, str], bool]) -> Callable[..., Value]:
    def work(node: Node, left: Value, right: Value) -> Value:
        if left is None or right is None:
            return None
        if isinstance(left, str) is not isinstance(right, str):
            raise wrong(
                node, Reason.WRONG_TYPE, "a text is compared with a number; quote texts: 'a'"
            )
        return sign(left, right)  # type: ignore[arg-type]

    return work


def _among(node: Node, of: Value, listed: list[Value]) -> Value:
    if of is None:
        return None
    if of in [each for each in listed if each is not None]:
        return True
    return None if None in listed else False


def _between(node: Node, of: Value, low: Value, high: Value) -> Value:
    if of is None or low is None or high is None:
        return None
    if len({isinstance(each, str) for each in (of, low, high)}) > 1:
        raise wrong(node, Reason.WRONG_TYPE, "a text is compared with a number; quote texts: 'a'")
    return low <= of <= high  # type: ignore[operator]


Work = tuple[tuple[str, ...], Callable[..., Value]]
_PAIR = ("this", "expression")
FUNCTIONS: dict[type[Node], Work] = {
    exp.Lower: (("this",), _strict(lambda _, of: str(of).lower())),
    exp.Upper: (("this",), _strict(lambda _, of: str(of).upper())),
    exp.Initcap: (("this",), _strict(lambda _, of: str(of).title())),
    exp.Trim: (_PAIR, _strict(_trim)),
    exp.Substring: (("this", "start", "length"), _strict(_substring)),
    exp.Left: (_PAIR, _strict(lambda _, of, n: str(of)[: int(str(n))])),
    exp.Right: (_PAIR, _strict(lambda _, of, n: str(of)[-int(str(n)) :] if int(str(n)) else "")),
    exp.Length: (("this",), _strict(lambda _, of: len(str(of)))),
    exp.Concat: (("expressions",), _concat),
    exp.DPipe: (_PAIR, _strict(lambda _, a, b: None if b is None else f"{a}{b}")),
    exp.Replace: (
        ("this", "expression", "replacement"),
        _strict(lambda _, of, old, new: str(of).replace(str(old), str(new or ""))),
    ),
    exp.ConcatWs: (("expressions",), lambda _, parts: _joined(parts)),
    exp.SplitPart: (
        ("this", "delimiter", "part_index"),
        _strict(lambda _, of, sign, at: _split(str(of), str(sign), int(at))),
    ),
    exp.SubstringIndex: (
        ("this", "delimiter", "count"),
        _strict(lambda _, of, sign, count: _first_parts(str(of), str(sign), int(count))),
    ),
    exp.Translate: (
        ("this", "from_", "to"),
        _strict(lambda _, of, old, new: str(of).translate(_signs(str(old), str(new)))),
    ),
    exp.Pad: (("this", "expression", "fill_pattern"), _strict(lambda *given: _padded(*given))),
    exp.RegexpExtract: (_PAIR, _strict(lambda *given: _extracted(*given))),
    exp.Repeat: (
        ("this", "times"),
        _strict(lambda _, of, n: (str(of) * min(int(n), 100))[:LONGEST_TEXT]),
    ),
    exp.Reverse: (("this",), _strict(lambda _, of: str(of)[::-1])),
    exp.StrPosition: (("this", "substr"), _strict(lambda _, of, s: str(of).find(str(s)) + 1)),
}
"""Texts of texts, and numbers of texts."""

TESTS: dict[type[Node], Work] = {
    exp.ILike: (_PAIR, _strict(_ilike)),
    exp.StartsWith: (_PAIR, _strict(lambda _, of, s: str(of).startswith(str(s)))),
    exp.EndsWith: (_PAIR, _strict(lambda _, of, s: str(of).endswith(str(s)))),
    exp.Contains: (_PAIR, _strict(lambda _, of, s: str(s) in str(of))),
    exp.Like: (_PAIR, _strict(_like)),
    exp.EQ: (_PAIR, _compared(lambda a, b: a == b)),
    exp.NEQ: (_PAIR, _compared(lambda a, b: a != b)),
    exp.LT: (_PAIR, _compared(lambda a, b: a < b)),
    exp.LTE: (_PAIR, _compared(lambda a, b: a <= b)),
    exp.GT: (_PAIR, _compared(lambda a, b: a > b)),
    exp.GTE: (_PAIR, _compared(lambda a, b: a >= b)),
    exp.In: (("this", "expressions"), _among),
    exp.Between: (("this", "low", "high"), _between),
    exp.Coalesce: (("this", "expressions"), _coalesce),
}
"""Tests of texts; COALESCE of them."""

REGULAR = (exp.RegexpLike, exp.RegexpILike)
ALWAYS_A_TEST = (exp.ILike, *REGULAR, exp.StartsWith, exp.EndsWith, exp.Contains)
ORDERED = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)
