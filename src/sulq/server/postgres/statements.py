"""What a statement is for: a question, a look at columns or declared values, the catalogue, or one
of the words that move a session (BEGIN, SET, SHOW, DECLARE, FETCH). sqlglot reads all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import SqlglotError

from sulq.kernel.schema.columns import Category, Column, Flag, Schema
from sulq.server.postgres.catalogue import type_of_column
from sulq.server.postgres.protocol import WireError
from sulq.server.postgres.types import (
    BOOL,
    DATE,
    FLOAT8,
    INT4,
    INT8,
    OID,
    TEXT,
    TIMESTAMP,
    type_of,
)

LONGEST = 20_000
DEEPEST = 100


class _Words(Postgres):
    """PostgreSQL in which no word swallows the rest of its statement."""

    class Tokenizer(Postgres.Tokenizer):
        COMMANDS: ClassVar = set()


@dataclass(frozen=True, slots=True)
class Question:
    """A SELECT over a table: asked as POST /sql asks it."""

    text: str
    table: str
    tree: exp.Expr | None = None


@dataclass(frozen=True, slots=True)
class RowProbe:
    """A SELECT of rows: no row is ever shown, so it has none, with the types of its columns."""

    tree: exp.Expr
    table: str


@dataclass(frozen=True, slots=True)
class DeclaredBounds:
    """MIN and MAX of whole columns: under sulq.filters = declared, the bounds that are public."""

    question: Question
    items: tuple[tuple[str, str, bool], ...]
    """Name of the output, column, True for MAX."""


@dataclass(frozen=True, slots=True)
class CatalogueQuery:
    """A SELECT over pg_catalog or information_schema, or over no relation."""

    tree: exp.Expr


@dataclass(frozen=True, slots=True)
class Control:
    """A statement that asks nothing: its first word and the others."""

    word: str
    words: tuple[str, ...] = ()
    inner: str = ""
    """The statement that DECLARE names."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """An empty statement."""


Statement = Question | RowProbe | DeclaredBounds | CatalogueQuery | Control | Nothing

_CONTROLS = """
    BEGIN START COMMIT END ROLLBACK ABORT SAVEPOINT RELEASE SET RESET SHOW DISCARD DEALLOCATE
    DECLARE FETCH MOVE CLOSE LISTEN UNLISTEN NOTIFY
"""
CONTROLS = frozenset(_CONTROLS.split())
SELECTS = frozenset({"SELECT", "WITH", "VALUES", "EXPLAIN", "("})


def split(text: str) -> list[tuple[int, str]]:
    """Return the statements of a text that `;` separates, and where each starts."""
    if len(text) > LONGEST:
        raise WireError("54001", f"a statement has at most {LONGEST:,} characters")
    try:
        tokens = _Words().tokenize(text)
    except (SqlglotError, ValueError, LookupError):
        return [(0, text)]  # whoever reads it says why not
    if not tokens:
        return []
    found: list[tuple[int, str]] = []
    start, end = 0, 0
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            found.append((start, text[start:end]))
            start = end = token.end + 1
        else:
            end = token.end + 1
    return [each for each in (*found, (start, text[start:end])) if each[1].strip()]


def read(text: str, tables: Mapping[str, Schema]) -> Statement:
    """Return what a statement is for; `tables` are those that the token reaches."""
    tokens = _tokens(text)
    if not tokens:
        return Nothing()
    first = tokens[0].text.upper()
    if first in CONTROLS:
        return _control(text, tokens)
    if first == "COPY":
        raise WireError(
            "0A000", "COPY is refused: rows are never shown", "ask for COUNT(*), SUM, AVG, ..."
        )
    if first not in SELECTS:
        raise WireError(
            "25006",
            f"cannot execute {first[:30]}: tables are asked here, and nothing is written",
            "write a SELECT",
        )
    known = {name.casefold(): name for name in tables}
    tree = None if first == "EXPLAIN" else _parsed(_quoted_labels(text, tokens))
    named = _named(tokens, known) if tree is None else _own_tables(tree, known)
    if tree is None:  # words of our own, such as WITHIN 50 CONFIDENCE 95: the question's parser
        if not named:
            raise WireError("42601", "the statement cannot be read, or names no table")
        return Question(text, named[0])
    if not named:
        return CatalogueQuery(tree)
    return _asked(text, tree, named[0], tables[named[0]])


def _tokens(text: str) -> list[Token]:
    try:
        tokens = list(_Words().tokenize(text))
    except (SqlglotError, ValueError, LookupError):
        raise WireError("42601", "a text, a name or a comment is not closed") from None
    depth = 0
    for token in tokens:
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth > DEEPEST:
            raise WireError("54001", f"the statement is nested more than {DEEPEST} levels deep")
    return tokens


def _quoted_labels(text: str, tokens: Sequence[Token]) -> str:
    """Return a statement whose columns may be named `AS table` or `AS select`, as PostgreSQL's."""
    ends = [*tokens[2:], None]
    for before, label, after in reversed(list(zip(tokens, tokens[1:], ends, strict=False))):
        last = after is None or after.token_type in (TokenType.COMMA, TokenType.FROM)
        if before.token_type != TokenType.ALIAS or not last or not label.text.isidentifier():
            continue
        if label.token_type not in (TokenType.IDENTIFIER, TokenType.STRING, TokenType.VAR):
            text = f'{text[: label.start]}"{label.text}"{text[label.end + 1 :]}'
    return text


def _parsed(text: str) -> exp.Expr | None:
    """Return the tree of one statement; None where it is not PostgreSQL's SQL."""
    try:
        tree = sqlglot.parse_one(text, read="postgres")
    except (SqlglotError, RecursionError, ValueError, LookupError, AttributeError, TypeError):
        return None
    return None if isinstance(tree, exp.Command) else tree


def _own_tables(tree: exp.Expr, known: Mapping[str, str]) -> list[str]:
    ctes = {cte.alias_or_name.casefold() for cte in tree.find_all(exp.CTE)}
    found = []
    for table in tree.find_all(exp.Table):
        name, schema = table.name.casefold(), table.db.casefold()
        if name in known and schema in ("", "public") and (schema or name not in ctes):
            found.append(known[name])
    return found


def _named(tokens: Sequence[Token], known: Mapping[str, str]) -> list[str]:
    """Return the tables that a statement names, where it cannot be parsed here."""
    return [known[each.text.casefold()] for each in tokens if each.text.casefold() in known]


# --- looking at a table ---------------------------------------------------------------------------


def _asked(text: str, tree: exp.Expr, table: str, schema: Schema) -> Statement:
    if is_row_level(tree):
        _check_columns(tree, schema)
        return RowProbe(tree, table)
    question = Question(text, table, tree)
    if not isinstance(tree, exp.Select) or not _is_flat(tree):
        return question
    if tree.args.get("distinct") is not None and not tree.args.get("group"):
        return _grouped(tree, table) or question
    items = tuple(_bound_item(item, schema) for item in tree.expressions)
    if items and all(items) and not any(tree.args.get(key) for key in ("where", "group", "having")):
        return DeclaredBounds(question, tuple(item for item in items if item is not None))
    return question


def _is_flat(tree: exp.Select) -> bool:
    """True of a SELECT from one table, without joins, CTEs or windows."""
    start = tree.args.get("from_")
    return (
        start is not None
        and isinstance(start.this, exp.Table)
        and not tree.args.get("joins")
        and not tree.args.get("with_")
        and tree.find(exp.Window) is None
    )


def is_row_level(tree: exp.Expr | None) -> bool:
    """True of a SELECT whose rows are rows of the table, or a part of them: it gathers nothing.

    Over a table without rows such a statement has no rows, whatever its conditions are.
    """
    if isinstance(tree, exp.Subquery):
        return is_row_level(tree.this)
    if not isinstance(tree, exp.Select):
        return False
    if any(
        tree.args.get(key) for key in ("group", "having", "distinct", "joins", "with_", "laterals")
    ):
        return False
    start = tree.args.get("from_")
    inner = None if start is None else start.this
    if isinstance(inner, exp.Subquery):
        if not is_row_level(inner):
            return False
    elif not isinstance(inner, exp.Table) or isinstance(inner.this, exp.Func):
        return False
    gathers = (exp.AggFunc, exp.Window, exp.WithinGroup, exp.Anonymous, exp.Query, exp.Explode)
    parts = [*tree.expressions, tree.args.get("where"), tree.args.get("order")]
    return not any(part is not None and part.find(*gathers) for part in parts)


def _check_columns(tree: exp.Expr, schema: Schema) -> None:
    """Refuse names that are neither columns nor names that the statement gives."""
    known = {column.name.casefold() for column in schema.columns}
    known |= {alias.alias.casefold() for alias in tree.find_all(exp.Alias)}
    for column in tree.find_all(exp.Column):
        if not isinstance(column.this, exp.Star) and column.name.casefold() not in known:
            raise WireError(
                "42703",
                f'column "{column.name[:60]}" does not exist',
                f"there are {', '.join(each.name for each in schema.columns)}"[:1_000],
            )


def _grouped(tree: exp.Select, table: str) -> Question | None:
    """Return SELECT DISTINCT of columns as GROUP BY, which gives the declared values."""
    if tree.args["distinct"].args.get("on") is not None:
        return None
    columns = [item.unalias() for item in tree.expressions]
    if not all(isinstance(column, exp.Column) for column in columns):
        return None
    made = tree.copy()
    made.set("distinct", None)
    made.set("group", exp.Group(expressions=[column.copy() for column in columns]))
    return Question(made.sql("postgres"), table, made)


def _bound_item(item: exp.Expr, schema: Schema) -> tuple[str, str, bool] | None:
    inner = item.unalias()
    if not isinstance(inner, exp.Min | exp.Max) or not isinstance(inner.this, exp.Column):
        return None
    columns = {column.name.casefold(): column for column in schema.columns}
    column = columns.get(inner.this.name.casefold())
    if column is None or isinstance(column, Category | Flag):
        return None
    largest = isinstance(inner, exp.Max)
    return str(item.alias) or ("max" if largest else "min"), column.name, largest


# --- control words --------------------------------------------------------------------------------


def _control(text: str, tokens: Sequence[Token]) -> Control:
    words = tuple(token.text for token in tokens)
    if words[0].upper() != "DECLARE":
        return Control(words[0].upper(), words[1:])
    uppers = [word.upper() for word in words]
    if "FOR" not in uppers or "CURSOR" not in uppers or len(words) < 4:
        raise WireError("42601", "write DECLARE name CURSOR FOR SELECT ...")
    inner = text[tokens[uppers.index("FOR")].end + 1 :].strip()
    return Control("DECLARE", words[1:2], inner)


# --- parameters -----------------------------------------------------------------------------------

_CASTS = {
    exp.DType.INT: INT4, exp.DType.BIGINT: INT8, exp.DType.SMALLINT: INT4,
    exp.DType.DOUBLE: FLOAT8, exp.DType.FLOAT: FLOAT8, exp.DType.DECIMAL: FLOAT8,
    exp.DType.BOOLEAN: BOOL, exp.DType.DATE: DATE, exp.DType.TIMESTAMP: TIMESTAMP,
}  # fmt: skip


def parameters_of(tree: exp.Expr | None) -> dict[int, exp.Expr]:
    """Return $1, $2, ... of a statement by their numbers."""
    found: dict[int, exp.Expr] = {}
    for node in () if tree is None else tree.find_all(exp.Parameter):
        if node.name.isdigit() and 0 < int(node.name) <= 1_000:
            found.setdefault(int(node.name), node)
    return found


def inferred(node: exp.Expr, schema: Schema | None) -> tuple[int, Column | None]:
    """Return the type that a parameter has where it stands, and the column beside it."""
    parent = node.parent
    if isinstance(parent, exp.Cast):
        return _CASTS.get(parent.to.this, TEXT), None
    if isinstance(parent, exp.Limit | exp.Offset):
        return INT8, None
    while isinstance(parent, exp.Paren | exp.Tuple | exp.Neg):
        parent = parent.parent
    beside = None
    if isinstance(parent, exp.Binary | exp.In | exp.Between):
        beside = parent.find(exp.Column)
    if beside is None:
        return TEXT, None
    if schema is None:
        return type_of_column(beside.name.casefold()), None
    columns = {column.name.casefold(): column for column in schema.columns}
    column = columns.get(beside.name.casefold())
    if column is None:
        return TEXT, None
    computed = isinstance(parent, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod)
    return type_of(column), None if computed else column


def sample(oid: int, column: Column | None) -> Any:
    """Return a value that a parameter could have, to find out the columns of a result."""
    if isinstance(column, Category):
        return column.values[0] if column.values else 0 if column.whole else "x"
    if column is not None and not isinstance(column, Flag):
        low: Any = column.low
        return low.isoformat() if hasattr(low, "isoformat") else low
    day = "2000-01-01"
    made = {BOOL: True, INT4: 1, INT8: 1, OID: 1, FLOAT8: 1.0, DATE: day, TIMESTAMP: day}
    return made.get(oid, "x")


def filled(tree: exp.Expr, params: Sequence[Any]) -> exp.Expr:
    """Return a statement with the values of its parameters in their places."""

    def value(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Parameter):
            return node
        if not node.name.isdigit() or not 0 < int(node.name) <= len(params):
            raise WireError("42P02", f"there is no parameter ${node.name[:20]}")
        return exp.convert(params[int(node.name) - 1])

    return tree.copy().transform(value)
