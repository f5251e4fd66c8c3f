"""The language: how a text is read, what a statement is built of, and how the rest is refused.

sqlglot reads the words of a dialect, bounded in length and depth. The house dialect is PostgreSQL
that also takes spellings of other engines which mean nothing else in PostgreSQL: names in
backticks or brackets, TOP n, x // y, x == y. What no table below names is refused, named as the
writer would, with the remedy.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, TypeAlias, TypeVar

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import SqlglotError

from sulq.errors import InvalidQuery, Reason
from sulq.kernel.query.expressions import DEEPEST

HOUSE = "postgres"
NAMES: dict[str, str] = {
    "postgres": HOUSE,
    "postgresql": HOUSE,
    "snowflake": "snowflake",
    "bigquery": "bigquery",
    "duckdb": "duckdb",
    "mysql": "mysql",
    "tsql": "tsql",
    "t-sql": "tsql",
    "sqlserver": "tsql",
    "spark": "spark",
    "databricks": "spark",
}
"""What `dialect=` may say, and the dialect meant."""

DIALECTS = tuple(dict.fromkeys(NAMES.values()))


class House(Postgres):
    """PostgreSQL, with spellings of other engines that it gives no meaning of its own."""

    TIME_MAPPING: ClassVar = {  # type: ignore[misc]
        **Postgres.TIME_MAPPING,
        "Mon": "%b",
        "FMMon": "%b",
        "Month": "%B",
        "FMMonth": "%B",
        "Dy": "%a",
        "FMDy": "%a",
        "Day": "%A",
        "FMDay": "%A",
        "FMMM": "%-m",
        "FMDD": "%-d",
        "Q": "%q",
    }

    class Tokenizer(Postgres.Tokenizer):
        IDENTIFIERS: ClassVar = ['"', "`", ("[", "]")]
        KEYWORDS: ClassVar = {
            **Postgres.Tokenizer.KEYWORDS,
            "TOP": TokenType.TOP,
            "//": TokenType.DIV,
            "==": TokenType.EQ,
        }


_READERS: dict[str, Dialect] = {}


def named(dialect: str | None) -> str:
    """The dialect that a caller's word means; PostgreSQL where none is said."""
    if dialect is None:
        return HOUSE
    found = NAMES.get(dialect.casefold()) if isinstance(dialect, str) else None
    if found is None:
        raise InvalidQuery(
            f"no dialect {dialect!r:.40}; there are {', '.join(DIALECTS)}",
            reason=Reason.WRONG_FORM,
        )
    return found


def reader(dialect: str | None) -> Dialect:
    """sqlglot's reader of a dialect."""
    name = named(dialect)
    if name not in _READERS:
        _READERS[name] = House() if name == HOUSE else Dialect.get_or_raise(name)
    return _READERS[name]


def reader_of(text: str, dialect: str | None) -> Dialect:
    """The reader of a text: with ARRAY[...] in it, [ ] are PostgreSQL's and not T-SQL's."""
    if named(dialect) == HOUSE and _ARRAY.search(text):
        return _PLAIN
    return reader(dialect)


_PLAIN = Postgres()
_ARRAY = re.compile(r"\bARRAY\s*\[", re.IGNORECASE)

SUNDAY_IS_ONE = ("bigquery", "mysql", "tsql", "spark")
"""Where DAYOFWEEK and DATEPART(weekday) count from 1 on Sunday; elsewhere from 0."""

WEEKS_FROM_SUNDAY = ("tsql",)
"""Where DATETRUNC(week) starts on Sunday; BigQuery says so itself."""

LONGEST = 10_000

Node: TypeAlias = exp.Expr
T = TypeVar("T")

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_PREFIX = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE}


def syntax_tree(text: str, into: type[Node] = exp.Condition) -> Node:
    """sqlglot's tree of one `into`, or `InvalidQuery`; the tree may still hold anything."""
    return tree_of(tokens_of(text), text, into)


def tokens_of(text: str, dialect: str | None = None) -> list[Token]:
    """The words of a text of bearable length."""
    if not isinstance(text, str):
        raise InvalidQuery(f"want SQL as a text, got {type(text).__name__}")
    if len(text) > LONGEST:
        raise InvalidQuery(
            f"SQL may have {LONGEST:,} characters, got {len(text):,}: shorten it",
            reason=Reason.TOO_LARGE,
        )
    if "\x00" in text:
        nul = text.index("\x00")
        raise InvalidQuery(
            "SQL must not hold NUL characters", start=nul, end=nul + 1, reason=Reason.UNREADABLE
        )
    return _guarded(text, lambda: reader_of(text, dialect).tokenize(text))


def tree_of(tokens: list[Token], text: str, into: type[Node], dialect: str | None = None) -> Node:
    """sqlglot's tree of words that `text` holds."""
    _check_tokens(tokens)
    parser = reader_of(text, dialect).parser()
    first = tokens[0].token_type if tokens else None
    if into is exp.Select and first in (TokenType.L_PAREN, TokenType.PIVOT):  # (SELECT ...) UNION
        trees = _guarded(text, lambda: parser.parse(tokens, text))
    else:
        trees = _guarded(text, lambda: parser.parse_into(into, tokens, text))
    if len(trees) != 1 or trees[0] is None:
        raise InvalidQuery(
            "the SQL text is empty; write for instance age >= 65 AND smoker", reason=Reason.EMPTY
        )
    return trees[0]


def _guarded(text: str, step: Callable[[], list[T]]) -> list[T]:
    """A step of sqlglot's; whatever it makes of odd text, the refusal is ours."""
    try:
        return step()
    except RecursionError:
        raise too_deep() from None
    except SqlglotError as error:
        raise _malformed(error, text) from None
    except (AttributeError, LookupError, TypeError, ValueError):  # what odd text does to a parser
        raise InvalidQuery(
            f"{text!r:.80} cannot be read as SQL", reason=Reason.UNREADABLE
        ) from None


def _check_tokens(tokens: list[Token]) -> None:
    """One statement, and no deeper than a parser's stack can go."""
    depth = run = 0
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            raise InvalidQuery(
                "a semicolon: write one statement, without `;`",
                start=token.start,
                end=token.end + 1,
                reason=Reason.SEMICOLON,
            )
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        run = run + 1 if token.token_type in _PREFIX else 0
        if max(depth, run) > DEEPEST:
            raise too_deep()


def too_deep() -> InvalidQuery:
    return InvalidQuery(
        f"the SQL text is nested more than {DEEPEST} levels deep: flatten it",
        reason=Reason.TOO_LARGE,
    )


def _malformed(error: SqlglotError, text: str) -> InvalidQuery:
    found = (getattr(error, "errors", None) or [{}])[0]
    near = str(found.get("highlight") or "")
    if not near:
        quotes = [place for place, sign in enumerate(text) if sign in "'\""]
        return InvalidQuery(
            "the SQL text cannot be read: a text, a name or a bracket is not closed",
            start=quotes[-1] if quotes else None,
            end=len(text) if quotes else None,
            reason=Reason.UNREADABLE,
        )
    line, column = int(found.get("line") or 1), int(found.get("col") or 0)
    end = sum(len(each) + 1 for each in text.split("\n")[: line - 1]) + column
    known = text[end - len(near) : end] == near
    return InvalidQuery(
        f"the SQL text cannot be read at {near!r:.40}: it is not expected here, or something is"
        " missing before it",
        start=end - len(near) if known else None,
        end=end if known else None,
        reason=Reason.UNREADABLE,
        about={"line": str(line), "column": str(column)},
    )


# What stands around a SELECT: EXPLAIN, WITH DIFFERENTIAL_PRIVACY OPTIONS(...), WITHIN ..., `;`.


KNOWN_OPTIONS = (
    "epsilon",
    "delta",
    "max_groups_contributed",
    "privacy_unit_column",
    "group_selection_strategy",
)
_EXPLAIN = re.compile(r"\s*EXPLAIN(?=\s)", re.IGNORECASE | re.ASCII)
_DP_OPENING = ("SELECT", "WITH", "DIFFERENTIAL_PRIVACY")
LIKE_THIS = "write WITHIN 50 CONFIDENCE 95, or WITHIN 2 PERCENT CONFIDENCE 95, at the end"
OPTIONS_LIKE_THIS = "write SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.1) COUNT(*) FROM ..."


@dataclass(frozen=True, slots=True)
class PrecisionTarget:
    """WITHIN amount [PERCENT] CONFIDENCE confidence."""

    amount: Fraction
    percent: bool
    confidence: float | None


@dataclass(frozen=True, slots=True)
class Envelope:
    """A statement taken out of its envelope."""

    tree: Node
    explain: bool = False
    options: dict[str, Fraction | str] = field(default_factory=dict)
    target: PrecisionTarget | None = None
    nulls: bool = False  # ORDER BY says where NULLs go; unless it does, last
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)  # of OPTIONS and of WITHIN


def explains(text: str) -> bool:
    """True if a statement asks for its plan and price, not for an answer."""
    return _EXPLAIN.match(text) is not None


def opened(
    text: str,
    dialect: str | None = None,
    marking: Callable[[list[Token]], list[Token]] | None = None,
) -> Envelope:
    """Read the envelope of one statement and parse what is in it."""
    explain = isinstance(text, str) and _EXPLAIN.match(text)
    if explain:  # the parser would take all that follows for one word
        text = " " * explain.end() + text[explain.end() :]
    tokens = tokens_of(text, dialect)
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens = tokens[:-1]
    if marking is not None:
        tokens = marking(tokens)
    spans: dict[str, tuple[int, int]] = {}
    tokens, options = _without_options(tokens, spans)
    tokens, target = _without_target(clamped(tokens), spans)
    if not tokens:
        raise InvalidQuery(
            "the SQL text is empty; write for instance SELECT COUNT(*) FROM people",
            reason=Reason.EMPTY,
        )
    nulls = any(_is(token, "NULLS") for token in tokens)
    tree = tree_of(tokens, text, exp.Select, dialect)
    return Envelope(tree, bool(explain), options, target, nulls, spans)


def _is(token: Token, word: str) -> bool:
    return token.token_type != TokenType.IDENTIFIER and token.text.upper() == word


def _wrong(token: Token, reason: Reason, text: str) -> InvalidQuery:
    return InvalidQuery(text, reason=reason, start=token.start, end=token.end + 1)


def _reach(tokens: list[Token]) -> tuple[int, int]:
    return tokens[0].start, tokens[-1].end + 1


def _without_options(
    tokens: list[Token], spans: dict[str, tuple[int, int]]
) -> tuple[list[Token], dict[str, Fraction | str]]:
    for place in range(len(tokens) - 2):
        words = zip(tokens[place : place + 3], _DP_OPENING, strict=True)
        if all(_is(token, word) for token, word in words):
            break
    else:
        return tokens, {}
    if sum(
        (t.token_type == TokenType.L_PAREN) - (t.token_type == TokenType.R_PAREN)
        for t in tokens[:place]
    ):
        raise _wrong(
            tokens[place + 1],
            Reason.WRONG_FORM,
            "WITH DIFFERENTIAL_PRIVACY inside brackets; it belongs to the outer SELECT",
        )
    end = place + 3
    options: dict[str, Fraction | str] = {}
    if end < len(tokens) and _is(tokens[end], "OPTIONS"):
        options, end = _options(tokens, end + 1)
        spans["options"] = _reach(tokens[place + 1 : end])
    return tokens[: place + 1] + tokens[end:], options


def _options(tokens: list[Token], place: int) -> tuple[dict[str, Fraction | str], int]:
    """`(name = value, ...)`, and where it ends."""
    found: dict[str, Fraction | str] = {}
    separator, named = TokenType.L_PAREN, False
    while place < len(tokens) and tokens[place].token_type == separator:
        part = tokens[place + 1 : place + 4]
        if len(part) == 3 and part[2].token_type == TokenType.DOT:  # epsilon = .5
            part, place = [*part[:2], _fraction(tokens[place + 3 : place + 5])], place + 1
        if len(part) < 3 or part[1].token_type != TokenType.EQ:
            break
        name = part[0].text.casefold()
        if name not in KNOWN_OPTIONS:
            raise _wrong(
                part[0],
                Reason.WRONG_FORM,
                f"no option {name!r:.40}; there are {', '.join(KNOWN_OPTIONS)}",
            )
        if name in found:
            raise _wrong(part[0], Reason.WRONG_FORM, f"the option {name} stands twice; say it once")
        if part[2].token_type != TokenType.NULL:  # NULL is what is usual
            found[name] = _value(name, part[2])
        named = True
        place, separator = place + 4, TokenType.COMMA
    if place >= len(tokens) or tokens[place].token_type != TokenType.R_PAREN or not named:
        near = tokens[min(place, len(tokens) - 1)]
        raise _wrong(near, Reason.UNREADABLE, f"OPTIONS cannot be read; {OPTIONS_LIKE_THIS}")
    return found, place + 1


def _fraction(words: list[Token]) -> Token:
    """.5, which is read as a point and a number."""
    first, last = words[0], words[-1]
    return Token(TokenType.NUMBER, "0." + last.text, first.line, first.col, first.start, last.end)


def clamped(tokens: list[Token]) -> list[Token]:
    """SUM(x, contribution_bounds_per_row => (0, 10)) as SUM(CLAMP(x, 0, 10))."""
    for place, token in enumerate(tokens):
        if not token.text.casefold().startswith("contribution_bounds_per_"):
            continue
        if token.text.casefold() != "contribution_bounds_per_row":
            raise _wrong(
                token,
                Reason.WRONG_FORM,
                "bounds per group are the owner's to declare; of rows write SUM(CLAMP(x, 0, 10))",
            )
        depth, start = 0, place
        while start > 0 and depth >= 0:
            start -= 1
            kind = tokens[start].token_type
            depth += (kind == TokenType.R_PAREN) - (kind == TokenType.L_PAREN)
        bounds = [t for t in tokens[place + 1 :] if t.token_type == TokenType.L_PAREN][:1]
        if not bounds or tokens[place - 1].token_type != TokenType.COMMA:
            raise _wrong(token, Reason.UNREADABLE, "write contribution_bounds_per_row => (0, 10)")
        opening, at = tokens[start], tokens.index(bounds[0])
        name = Token(TokenType.VAR, "CLAMP", opening.line, opening.col, token.start, token.end)
        inside = [*tokens[: start + 1], name, opening, *tokens[start + 1 : place]]
        return clamped([*inside, *tokens[at + 1 :]])
    return tokens


def _value(name: str, token: Token) -> Fraction | str:
    if name == "privacy_unit_column":
        return token.text
    if name == "group_selection_strategy":
        if token.text.upper() != "PUBLIC_GROUPS":
            raise _wrong(
                token,
                Reason.WRONG_FORM,
                "groups are those of declared values, PUBLIC_GROUPS; of open text, keys are found"
                " by GROUP BY the column alone with COUNT(*)",
            )
        return token.text
    return _number(token, name)


def _number(token: Token, what: str) -> Fraction:
    text = token.text
    if token.token_type != TokenType.NUMBER or len(text) > 40 or not _plain(text):
        raise _wrong(token, Reason.WRONG_FORM, f"{what} wants a number, got {text!r:.40}")
    return Fraction(Decimal(text))


def _plain(text: str) -> bool:
    """Digits, a point, and an exponent of at most two digits."""
    head, mark, tail = text.lower().partition("e")
    digits = head.replace(".", "", 1)
    shift = tail.lstrip("+-")
    return (
        digits.isascii() and digits.isdigit() and (not mark or (shift.isdigit() and len(shift) < 3))
    )


def _without_target(
    tokens: list[Token], spans: dict[str, tuple[int, int]]
) -> tuple[list[Token], PrecisionTarget | None]:
    depth = 0
    for place, token in enumerate(tokens):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        after = tokens[place + 1] if place + 1 < len(tokens) else None
        if depth == 0 and _is(token, "WITHIN") and not (after and _is(after, "GROUP")):
            spans["target"] = _reach(tokens[place:])
            return tokens[:place], _target(tokens[place:])
    return tokens, None


def _target(tokens: list[Token]) -> PrecisionTarget:
    rest = list(tokens[1:])
    if not rest:
        raise _wrong(tokens[0], Reason.WRONG_FORM, f"WITHIN what? {LIKE_THIS}")
    amount = _number(rest.pop(0), "WITHIN")
    percent = bool(rest) and (_is(rest[0], "PERCENT") or rest[0].text == "%")
    rest = rest[percent:]
    confidence = None
    if rest and _is(rest[0], "CONFIDENCE"):
        if len(rest) < 2:
            raise _wrong(rest[0], Reason.WRONG_FORM, f"CONFIDENCE wants a number; {LIKE_THIS}")
        confidence = _confidence(rest[1])
        rest = rest[2:]
        if rest and (_is(rest[0], "PERCENT") or rest[0].text == "%"):
            rest = rest[1:]
    if rest:
        raise _wrong(rest[0], Reason.WRONG_FORM, f"{rest[0].text!r:.40} after WITHIN; {LIKE_THIS}")
    if amount <= 0:
        raise _wrong(tokens[1], Reason.WRONG_FORM, f"WITHIN wants a number above 0, got {amount}")
    return PrecisionTarget(amount, percent, confidence)


def _confidence(token: Token) -> float:
    number = _number(token, "CONFIDENCE")
    if 0 < number < 1:
        return float(number)
    if not 1 < number < 100:
        raise _wrong(
            token, Reason.WRONG_FORM, f"CONFIDENCE wants a number like 95, got {token.text}"
        )
    return float(number / 100)


KNOWN = (
    "columns, constants, + - * /, comparisons, AND, OR, NOT, BETWEEN, IN, LIKE, IS NULL,"
    " CASE WHEN, COALESCE, ABS, LEAST, GREATEST and CLAMP(x, low, high)"
)

DIFFERENCES = (exp.DateDiff, exp.DatetimeDiff, exp.TimestampDiff, exp.TimeDiff)
_REMEDIES: dict[type[Node], str] = {
    exp.Query: "a row expression sees one row at a time; ask the inner SELECT first",
    exp.AggFunc: "the statistic is named before the expression: sulq ask people mean income",
    exp.Column: "name the column alone, without its table",
    exp.ILike: "list the declared values that match, x IN ('a', 'A'); LIKE minds capitals",
    exp.Cast: "columns have the types the owner declared; only DATE '...' and TIMESTAMP '...'",
    exp.Case: "write CASE WHEN x = 1 THEN ... ELSE ... END",
    exp.In: "write a list of constants: x IN (1, 2, 3)",
    exp.Tuple: "write one expression, or x IN (1, 2, 3)",
    exp.If: "write CASE WHEN ... THEN ... ELSE ... END",
    exp.Escape: "LIKE has no escape character here",
    exp.Coalesce: "write COALESCE(x, instead)",
    **dict.fromkeys(
        DIFFERENCES,
        "subtract, as in discharged - admitted: days between two days, seconds between times",
    ),
}
_NAMES: dict[type[Node], str] = {
    exp.DateDiff: "DATEDIFF",
    exp.TimestampDiff: "TIMESTAMPDIFF",
    exp.DPipe: "||",
    exp.Mod: "%",
    exp.Dot: "a name with points",
    exp.Column: "a column with its table",
    exp.Placeholder: "a parameter",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
    exp.Star: "*",
    exp.Bracket: "[...]",
    exp.Subquery: "a SELECT",
}


def refused(node: Node, what: str | None = None, remedy: str | None = None) -> InvalidQuery:
    """The refusal of something that the language lacks."""
    found = (remedy for kind, remedy in _REMEDIES.items() if isinstance(node, kind))
    remedy = remedy or next(found, f"there are {KNOWN}")
    said = f"{what or spoken(node)} is not in the language; {remedy}"
    return wrong(node, Reason.NOT_IN_LANGUAGE, said)


def spoken(node: Node) -> str:
    """What the writer would call it."""
    if type(node) in _NAMES:
        return _NAMES[type(node)]
    if isinstance(node, exp.Anonymous):
        return f"the function {str(node.this).upper():.40}"
    if isinstance(node, exp.Func) and not isinstance(node, exp.Cast | exp.Case | exp.If):
        return f"the function {node.sql_name()}"
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()


def span(node: Node) -> tuple[int, int] | None:
    """The first character of a node and the one after its last, as far as the parser noted them."""
    marks = [part.meta for part in node.walk() if "start" in part.meta]
    if not marks:
        return None
    return min(mark["start"] for mark in marks), max(mark["end"] for mark in marks) + 1


def wrong(node: Node, reason: Reason, text: str, **about: str) -> InvalidQuery:
    """The refusal of a node."""
    return located(InvalidQuery(text, reason=reason, about=about), span(node))


def located(error: InvalidQuery, where: tuple[int, int] | None) -> InvalidQuery:
    """The same refusal, which says where; who knew it before knew better."""
    if error.start is None and where is not None:
        error.start, error.end = where
    return error


class DaysBetween(exp.Expression, exp.Func):
    """DATEDIFF(day, a, b): days from one moment to another, b less a where both are days.

    `whole` says that it is 24 hours that are counted, and not midnights.
    """

    arg_types: ClassVar = {"this": True, "expression": True, "whole": False}


STRUCTURE: dict[type[Node], tuple[str, ...]] = {
    exp.Select: (
        "expressions",
        "from_",
        "where",
        "group",
        "having",
        "order",
        "limit",
        "offset",
        "with_",
        "joins",
        "qualify",
    ),
    exp.From: ("this",),
    exp.Table: ("this", "alias"),
    exp.TableAlias: ("this",),
    exp.Subquery: ("this", "alias"),
    exp.With: ("expressions",),
    exp.CTE: ("this", "alias"),
    exp.Join: ("this", "on", "using", "side", "kind"),
    exp.Where: ("this",),
    exp.Union: ("this", "expression", "distinct", "order", "limit", "offset", "with_"),
    exp.Group: ("expressions", "all", "rollup", "cube", "grouping_sets"),
    exp.Having: ("this",),
    exp.Qualify: ("this",),
    exp.Order: ("expressions",),
    exp.Ordered: ("this", "desc", "nulls_first"),
    exp.Limit: ("expression",),
    exp.Offset: ("expression",),
    exp.Alias: ("this", "alias"),
    exp.Star: ("except_",),
    exp.Column: ("this", "table"),
}

AGGREGATES: dict[type[Node], tuple[str, ...]] = {
    exp.Count: ("this", "big_int"),
    exp.CountIf: ("this",),
    exp.Sum: ("this",),
    exp.Avg: ("this",),
    exp.Variance: ("this",),
    exp.VariancePop: ("this",),
    exp.Stddev: ("this",),
    exp.StddevSamp: ("this",),
    exp.StddevPop: ("this",),
    exp.Corr: ("this", "expression"),
    exp.CovarSamp: ("this", "expression"),
    exp.CovarPop: ("this", "expression"),
    exp.Median: ("this",),
    exp.Quantile: ("this", "quantile"),
    exp.PercentileCont: ("this", "expression"),
    exp.WithinGroup: ("this", "expression"),
    exp.Min: ("this",),
    exp.Max: ("this",),
    exp.Filter: ("this", "expression"),
    exp.Distinct: ("expressions",),
}

CALCULATIONS: dict[type[Node], tuple[str, ...]] = {
    exp.Window: ("this", "over", "partition_by", "order", "spec"),
    exp.Round: ("this", "decimals"),
    exp.Trunc: ("this", "decimals"),
    exp.Abs: ("this",),
    exp.Sqrt: ("this",),
    exp.Ln: ("this",),
    exp.Exp: ("this",),
    exp.Log: ("this",),
    exp.Floor: ("this",),
    exp.Ceil: ("this",),
    exp.Pow: ("this", "expression"),
    exp.Case: ("ifs", "default"),
    exp.Nullif: ("this", "expression"),
    exp.SafeDivide: ("this", "expression"),
    exp.Coalesce: ("this", "expressions"),
    exp.Cast: ("this", "to"),
    exp.Anonymous: ("this", "expressions"),
    exp.Subquery: ("this",),
    exp.Grouping: ("expressions",),
    exp.GroupingId: ("expressions",),
    exp.Paren: ("this",),
    exp.Neg: ("this",),
    exp.Literal: ("this", "is_string"),
    exp.Boolean: ("this",),
    exp.Null: (),
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div), ("this", "expression")),
    DaysBetween: ("this", "expression", "whole"),
}

TESTS: dict[type[Node], tuple[str, ...]] = {
    **dict.fromkeys(
        (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.And, exp.Or, exp.Is),
        ("this", "expression"),
    ),
    exp.Not: ("this",),
    exp.Between: ("this", "low", "high"),
    exp.In: ("this", "expressions"),
}

BUCKETS: dict[type[Node], tuple[str, ...]] = {
    exp.Floor: ("this",),
    exp.WidthBucket: ("this", "min_value", "max_value", "num_buckets"),
}

HARMLESS = {
    "typed",
    "safe",
    "casts_non_integer_decimals",
    "null_on_zero_variance",
    "big_int",
    "date_part_boundary",
    "ensure_string",
}
"""Marks that sqlglot sets by itself, and that change nothing here."""


STATEMENT = (
    "a statement is SELECT ... FROM table [JOIN lookup] [WHERE] [GROUP BY] [HAVING] [ORDER BY]"
    " [LIMIT]"
)
REMEDIES = {
    "distinct": "GROUP BY gives each value once",
    "recursive": "a CTE may only filter and compute rows",
    "columns": "name columns where they are made: SELECT age / 10 AS decade",
    "sample": "noise protects rows already; ask the whole table",
    "expressions": "COUNT takes one value",
    "with_ties": "LIMIT takes a number",
}


def outside(node: Node, what: str | None = None, remedy: str = STATEMENT) -> InvalidQuery:
    """The refusal of something that no statement holds."""
    return refused(node, what, remedy)


def check_options(node: Node, table: dict[type[Node], tuple[str, ...]] = STRUCTURE) -> None:
    """Refuse a part, or an option of a part, that the table does not name."""
    options = table.get(type(node))
    if options is None:
        raise outside(node)
    for name, given in node.args.items():
        if given not in (None, False, [], "") and name not in options and name not in HARMLESS:
            said = name.rstrip("_").replace("_", " ")
            remedy = REMEDIES.get(name, STATEMENT)
            error = outside(node, f"{spoken(node)} with {said}", remedy)
            error.reason = Reason.DISTINCT if name == "distinct" else error.reason
            raise error
