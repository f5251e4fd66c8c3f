"""What stands around a SELECT: EXPLAIN, WITH DIFFERENTIAL_PRIVACY OPTIONS(...), WITHIN ..., `;`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from sqlglot import Token, TokenType, exp

from sulq.errors import InvalidQuery
from sulq.sql.select import Target
from sulq.sql.syntax import Node, tokens_of, tree_of

KNOWN_OPTIONS = ("epsilon", "delta", "max_groups_contributed", "privacy_unit_column")
_EXPLAIN = re.compile(r"\s*EXPLAIN(?=\s)", re.IGNORECASE | re.ASCII)
_OPENING = ("SELECT", "WITH", "DIFFERENTIAL_PRIVACY")
LIKE_THIS = "write WITHIN 50 CONFIDENCE 95, or WITHIN 2 PERCENT CONFIDENCE 95, at the end"
OPTIONS_LIKE_THIS = "write SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.1) COUNT(*) FROM ..."


@dataclass(frozen=True, slots=True)
class Envelope:
    """A statement taken out of its envelope."""

    tree: Node
    explain: bool = False
    options: dict[str, Fraction | str] = field(default_factory=dict)
    target: Target | None = None
    nulls: bool = False  # ORDER BY says where NULLs go; unless it does, last
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)  # of OPTIONS and of WITHIN


def explains(text: str) -> bool:
    """True if a statement asks for its plan and price, not for an answer."""
    return _EXPLAIN.match(text) is not None


def opened(text: str) -> Envelope:
    """Read the envelope of one statement and parse what is in it."""
    explain = isinstance(text, str) and _EXPLAIN.match(text)
    if explain:  # the parser would take all that follows for one word
        text = " " * explain.end() + text[explain.end() :]
    tokens = tokens_of(text)
    if tokens and tokens[-1].token_type == TokenType.SEMICOLON and not tokens[-1].comments:
        tokens = tokens[:-1]
    spans: dict[str, tuple[int, int]] = {}
    tokens, options = _without_options(tokens, spans)
    tokens, target = _without_target(tokens, spans)
    if not tokens:
        raise InvalidQuery("the SQL text is empty; write for instance SELECT COUNT(*) FROM people")
    nulls = any(_is(token, "NULLS") for token in tokens)
    tree = tree_of(tokens, text, exp.Select)
    return Envelope(tree, bool(explain), options, target, nulls, spans)


def _is(token: Token, word: str) -> bool:
    return token.token_type != TokenType.IDENTIFIER and token.text.upper() == word


def _at(token: Token) -> str:
    return f" (near character {token.start + 1})"


def _wrong(token: Token, said: str) -> InvalidQuery:
    return InvalidQuery(said, start=token.start, end=token.end + 1)


def _reach(tokens: list[Token]) -> tuple[int, int]:
    return tokens[0].start, tokens[-1].end + 1


def _without_options(
    tokens: list[Token], spans: dict[str, tuple[int, int]]
) -> tuple[list[Token], dict[str, Fraction | str]]:
    for place in range(len(tokens) - 2):
        words = zip(tokens[place : place + 3], _OPENING, strict=True)
        if all(_is(token, word) for token, word in words):
            break
    else:
        return tokens, {}
    if sum((t.token_type == TokenType.L_PAREN) - (t.token_type == TokenType.R_PAREN)
           for t in tokens[:place]):  # fmt: skip
        raise _wrong(
            tokens[place + 1],
            f"WITH DIFFERENTIAL_PRIVACY inside brackets{_at(tokens[place + 1])};"
            " it belongs to the outer SELECT",
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
    separator = TokenType.L_PAREN
    while place < len(tokens) and tokens[place].token_type == separator:
        part = tokens[place + 1 : place + 4]
        if len(part) < 3 or part[1].token_type != TokenType.EQ:
            break
        name = part[0].text.casefold()
        if name not in KNOWN_OPTIONS:
            raise _wrong(
                part[0],
                f"no option {name!r:.40}{_at(part[0])}; there are {', '.join(KNOWN_OPTIONS)}",
            )
        if name in found:
            raise _wrong(part[0], f"the option {name} stands twice{_at(part[0])}; say it once")
        found[name] = _value(name, part[2])
        place, separator = place + 4, TokenType.COMMA
    if place >= len(tokens) or tokens[place].token_type != TokenType.R_PAREN or not found:
        near = tokens[min(place, len(tokens) - 1)]
        raise _wrong(near, f"OPTIONS cannot be read{_at(near)}; {OPTIONS_LIKE_THIS}")
    return found, place + 1


def _value(name: str, token: Token) -> Fraction | str:
    if name == "privacy_unit_column":
        return token.text
    return _number(token, name)


def _number(token: Token, what: str) -> Fraction:
    text = token.text
    if token.token_type != TokenType.NUMBER or len(text) > 40 or not _plain(text):
        raise _wrong(token, f"{what} wants a number{_at(token)}, got {text!r:.40}")
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
) -> tuple[list[Token], Target | None]:
    depth = 0
    for place, token in enumerate(tokens):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        after = tokens[place + 1] if place + 1 < len(tokens) else None
        if depth == 0 and _is(token, "WITHIN") and not (after and _is(after, "GROUP")):
            spans["target"] = _reach(tokens[place:])
            return tokens[:place], _target(tokens[place:])
    return tokens, None


def _target(tokens: list[Token]) -> Target:
    rest = list(tokens[1:])
    if not rest:
        raise _wrong(tokens[0], f"WITHIN what?{_at(tokens[0])} {LIKE_THIS}")
    amount = _number(rest.pop(0), "WITHIN")
    percent = bool(rest) and (_is(rest[0], "PERCENT") or rest[0].text == "%")
    rest = rest[percent:]
    confidence = None
    if rest and _is(rest[0], "CONFIDENCE"):
        if len(rest) < 2:
            raise _wrong(rest[0], f"CONFIDENCE wants a number{_at(rest[0])}; {LIKE_THIS}")
        confidence = _confidence(rest[1])
        rest = rest[2:]
        if rest and (_is(rest[0], "PERCENT") or rest[0].text == "%"):
            rest = rest[1:]
    if rest:
        raise _wrong(rest[0], f"{rest[0].text!r:.40} after WITHIN{_at(rest[0])}; {LIKE_THIS}")
    if amount <= 0:
        raise _wrong(tokens[1], f"WITHIN wants a number above 0{_at(tokens[1])}, got {amount}")
    return Target(amount, percent, confidence)


def _confidence(token: Token) -> float:
    number = _number(token, "CONFIDENCE")
    if 0 < number < 1:
        return float(number)
    if not 1 < number < 100:
        raise _wrong(token, f"CONFIDENCE wants a number like 95{_at(token)}, got {token.text}")
    return float(number / 100)
