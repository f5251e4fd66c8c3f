"""SQL text to sqlglot's syntax tree: one statement, no comments, bounded in length and depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from sulq.errors import InvalidQuery
from sulq.query.expressions import DEEPEST

LONGEST = 10_000

Node: TypeAlias = exp.Expr
T = TypeVar("T")

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_PREFIX = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE}


def syntax_tree(text: str, into: type[Node] = exp.Condition) -> Node:
    """sqlglot's tree of one `into`, or `InvalidQuery`; the tree may still hold anything."""
    return tree_of(tokens_of(text), text, into)


def tokens_of(text: str) -> list[Token]:
    """The words of a text of bearable length."""
    if not isinstance(text, str):
        raise InvalidQuery(f"want SQL as a text, got {type(text).__name__}")
    if len(text) > LONGEST:
        raise InvalidQuery(f"SQL may have {LONGEST:,} characters, got {len(text):,}: shorten it")
    if "\x00" in text:
        nul = text.index("\x00")
        raise InvalidQuery("SQL must not hold NUL characters", start=nul, end=nul + 1)
    return _guarded(text, lambda: Dialect.get_or_raise(None).tokenize(text))


def tree_of(tokens: list[Token], text: str, into: type[Node]) -> Node:
    """sqlglot's tree of words that `text` holds."""
    _check_tokens(tokens)
    dialect = Dialect.get_or_raise(None)
    trees = _guarded(text, lambda: dialect.parser().parse_into(into, tokens, text))
    if len(trees) != 1 or trees[0] is None:
        raise InvalidQuery("the SQL text is empty; write for instance age >= 65 AND smoker")
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
        raise InvalidQuery(f"{text!r:.80} cannot be read as SQL") from None


def _check_tokens(tokens: list[Token]) -> None:
    """One statement, no comments, and no deeper than a parser's stack can go."""
    depth = run = 0
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            raise InvalidQuery(
                f"a semicolon at character {token.start + 1}: write one statement, without `;`",
                start=token.start,
                end=token.end + 1,
            )
        if token.comments:
            raise InvalidQuery(
                "a comment in the SQL text: leave comments out",
                start=token.start,
                end=token.end + 1,
            )
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        run = run + 1 if token.token_type in _PREFIX else 0
        if max(depth, run) > DEEPEST:
            raise too_deep()


def too_deep() -> InvalidQuery:
    return InvalidQuery(f"the SQL text is nested more than {DEEPEST} levels deep: flatten it")


def _malformed(error: SqlglotError, text: str) -> InvalidQuery:
    found = (getattr(error, "errors", None) or [{}])[0]
    near = str(found.get("highlight") or "")
    if not near:
        quotes = [place for place, sign in enumerate(text) if sign in "'\""]
        return InvalidQuery(
            "the SQL text cannot be read: a text, a name or a bracket is not closed",
            start=quotes[-1] if quotes else None,
            end=len(text) if quotes else None,
        )
    missing = "missing" in str(found.get("description"))
    line, column = int(found.get("line") or 1), int(found.get("col") or 0)
    end = sum(len(each) + 1 for each in text.split("\n")[: line - 1]) + column
    known = text[end - len(near) : end] == near
    return InvalidQuery(
        f"the SQL text cannot be read at {near!r:.40} (line {line}, column"
        f" {column}): {'something is missing' if missing else 'not expected here'}",
        start=end - len(near) if known else None,
        end=end if known else None,
    )
