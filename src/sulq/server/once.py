"""Exactly once: a key is paid for once and answered with the same bytes each time."""

from __future__ import annotations

from collections.abc import Callable, Collection
from fractions import Fraction

from sulq.database import Database
from sulq.database.deriving import paid_by
from sulq.database.reopening import broken
from sulq.errors import EngineFailed, SulqError
from sulq.server.problems import Problem, out_of_order, problem_of
from sulq.server.replies import Kept, Name, Replies
from sulq.wire import AnswerReply, AnswersReply, SqlReply
from sulq.wire.finding import Paid

Charged = AnswerReply | AnswersReply | SqlReply | Paid


def once(
    replies: Replies,
    database: Database,
    analyst: str,
    name: Name,
    digest: bytes,
    questions: Collection[str],
    work: Callable[[], Charged],
) -> bytes:
    """The reply's bytes: kept ones, or made, kept and handed out in this order.

    `questions` are the digests that the work may charge for. What was charged by an attempt that
    a crash cut short is found in the ledger, under the same key: it is not charged again.
    """
    kept = replies.begin(name, digest, database.ledger.head)
    if kept.body is not None:
        return kept.body
    try:
        reply = work()
    except (SulqError, Problem) as error:
        raise _refusal(error, replies, database, analyst, name, kept, questions) from None
    if kept.again:
        paid = paid_under(database, analyst, name.key, kept.head, questions)
        reply = reply.model_copy(update={"credits": float(paid), "credits_exact": paid})
    body = reply.model_dump_json().encode()
    replies.finish(name, body)
    return body


def _refusal(
    error: SulqError | Problem,
    replies: Replies,
    database: Database,
    analyst: str,
    name: Name,
    kept: Kept,
    questions: Collection[str],
) -> Problem:
    """The key stands for nothing, unless something was charged under it."""
    if broken(database):
        return out_of_order()  # only the next opening tells whether the charge stands
    paid, unknown = Fraction(0), isinstance(error, EngineFailed) or _unknown(error)
    if kept.again or unknown or database.ledger.head != kept.head:
        paid = paid_under(database, analyst, name.key, kept.head, questions)
    if not paid and not unknown:
        replies.forget(name)
    return error if isinstance(error, Problem) else problem_of(error, paid)


def _unknown(error: Exception) -> bool:
    """True of a refusal that came after a charge, or may have."""
    return bool(vars(error).get("charged_unknown"))


def paid_under(
    database: Database, analyst: str, key: str, head: int, questions: Collection[str]
) -> Fraction:
    """What the ledger has charged under a key since `head`.

    The parts of a statement have keys of their own (key/2, ...). A plan's charges and the draw that
    is added to earlier answers have none: of these it is the question that tells.
    """
    parts = f"{key}/"  # no key of a caller has a slash
    return sum(
        (
            paid_by(entry)
            for entry in database.ledger.entries(analyst, after=head)
            if entry.key == key
            or (entry.key or "").startswith(parts)
            or (entry.key is None and entry.digest in questions)
        ),
        Fraction(0),
    )
