"""What may be written: checked before the writer's thread sees it, so that nobody's input stops it.

Every text must come back from the ledger as it went in, every amount as a short decimal number.
"""

from __future__ import annotations

from sulq.accounting.losses import Loss
from sulq.errors import InvalidQuery

NAME = 4096  # characters of an analyst, key, digest, table or account
TEXT = 2**24  # of a question, a noise law or a fact
AMOUNT = 2**256  # steps; far above every cap


def check_text(what: str, value: object, most: int = NAME) -> None:
    """`InvalidQuery` unless `value` is text that can be stored."""
    if type(value) is not str:
        raise InvalidQuery(f"the {what} must be text, got {type(value).__name__}")
    if len(value) > most:
        raise InvalidQuery(f"the {what} has {len(value)} characters, the most is {most}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidQuery(f"the {what} holds half a character (a lone surrogate)") from None


def check_loss(what: str, value: object) -> None:
    """`InvalidQuery` unless `value` is a loss that can be stored."""
    if not isinstance(value, Loss):
        raise InvalidQuery(f"the {what} must be a Loss, got {type(value).__name__}")
    if max(value.credits, value.delta) >= AMOUNT:
        raise InvalidQuery(f"the {what} is larger than any budget; ask for less")


def check_texts(question: str, digest: str, noise: str, analyst: str, key: str | None) -> None:
    """`InvalidQuery` unless all that a question is stored with is text that can be."""
    for what, text, most in (
        ("question", question, TEXT),
        ("digest", digest, NAME),
        ("noise", noise, TEXT),
        ("analyst's name", analyst, NAME),
        ("key", "" if key is None else key, NAME),
    ):
        check_text(what, text, most)
