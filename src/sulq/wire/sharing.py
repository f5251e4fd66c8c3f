"""Shares of joint sums as JSON: what is asked of an owner, and what it sends. V.4

No key of another owner is ever in a request: an owner's partners are in its own configuration.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

from sulq.kernel.noise.laws import law_from_json
from sulq.kernel.schema.bind import BoundQuery
from sulq.shares import Joint, ShareQuote, SumShare
from sulq.wire.bodies import (
    Amount,
    Body,
    Confidence,
    Exact,
    FactsId,
    QuestionBody,
    Rows,
    Within,
)
from sulq.wire.convert import quote_of, quote_reply
from sulq.wire.discovery import MaxCredits, Paid, paper_of, receipt_json
from sulq.wire.replies import LawJson, QuoteReply, ReceiptJson

JointName = Annotated[str, StringConstraints(pattern="^[A-Za-z0-9._~-]{8,128}$")]
Masked = Annotated[str, StringConstraints(pattern="^[0-9]{1,78}$")]


class ShareBody(Body):
    """A question, of which an owner gives its share; the key names the joint sum."""

    question: QuestionBody
    within: Within | None = None
    confidence: Confidence = 0.95
    credits: Amount | None = None
    rows: Rows | None = None
    max_credits: MaxCredits = None
    facts_id: FactsId = None


class ShareQuoteBody(ShareBody):
    """`joint` as the key of the share: so that a repeat is known as one."""

    joint: JointName | None = None


class JointJson(BaseModel):
    """What the owners must agree on: everybody's keys, how many may collude, noise and grid."""

    model_config = ConfigDict(frozen=True)
    owner: str
    owners: list[str]
    colluding: int
    noise: list[LawJson]
    steps: list[tuple[Exact, Exact]]


class ShareQuoteReply(QuoteReply):
    """`noise` is that of the total."""

    joint: JointJson


class ShareReply(Paid):
    """Masked integers, modulo 2^256: of no use without the shares of all owners."""

    values: list[Masked]
    joint: JointJson
    receipt: ReceiptJson | None = None


def share_quote_reply(found: ShareQuote, confidence: float) -> ShareQuoteReply:
    quoted = quote_reply(found.quote, confidence)
    return ShareQuoteReply(**quoted.model_dump(), joint=_joint_json(found.joint))


def share_quote_of(
    reply: ShareQuoteReply, bound: BoundQuery, size: int | None, rows: int | None
) -> ShareQuote:
    return ShareQuote(quote_of(reply, bound, size, rows), _joint_of(reply.joint))


def share_reply(found: SumShare) -> ShareReply:
    return ShareReply(
        credits=float(found.credits),
        credits_exact=found.credits,
        values=[str(value) for value in found.values],
        joint=_joint_json(found.joint),
        receipt=receipt_json(found.receipt),
    )


def share_of(reply: ShareReply) -> SumShare:
    values = tuple(int(value) for value in reply.values)
    receipt = None if reply.receipt is None else paper_of(reply.receipt)
    return SumShare(values, _joint_of(reply.joint), reply.credits_exact, receipt)


def _joint_json(joint: Joint) -> JointJson:
    return JointJson(
        owner=joint.owner,
        owners=list(joint.owners),
        colluding=joint.colluding,
        noise=[law.to_json() for law in joint.laws],
        steps=list(joint.steps),
    )


def _joint_of(form: JointJson) -> Joint:
    laws = tuple(law_from_json(law) for law in form.noise)
    return Joint(form.owner, tuple(form.owners), form.colluding, laws, tuple(form.steps))
