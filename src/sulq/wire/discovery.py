"""Keys that nobody declared, the largest cells, alerts, and what may be asked exactly: as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Any

from pydantic import Field, model_validator

from sulq.answers.selections import KeyFigures, Keys, KeysQuote, Top
from sulq.answers.selections import keys_of as keys_of_integers
from sulq.errors import InvalidQuery
from sulq.kernel.accounting.loss import Loss
from sulq.kernel.accounting.mechanisms import KeysPrice
from sulq.kernel.noise.laws import DiscreteGaussian, law_from_json
from sulq.kernel.query.expressions import Expression
from sulq.kernel.query.sum_query import Group, Statistic, SumQuery, as_statistic
from sulq.kernel.schema.bind import BoundQuery
from sulq.kernel.schema.keys import MOST_COLUMNS, MOST_SUMS, BoundKeys, unpacked_keys
from sulq.wire.bodies import (
    MOST_QUESTIONS,
    Amount,
    Body,
    Exact,
    FactsId,
    Name,
    QuestionBody,
    Statement,
)
from sulq.wire.convert import ReceiptDocument, plain_key
from sulq.wire.replies import LawJson, ReceiptJson, Reply

MOST_KEYS = 10_000
MOST_FIRINGS = 1_000
Reservation = Annotated[Name | None, Field(description="pays from credits set aside")]
MaxCredits = Annotated[Exact | None, Field(description="refuse, free, if it costs more")]


# --- what is sent -------------------------------------------------------------------------------


class KeysBody(Body):
    """Counts by an open column, or by a pair of them, with `figures` such as a mean: of all rows,
    of a `question`'s, or of `where` in SQL."""

    column: Name | Annotated[list[Name], Field(min_length=1, max_length=MOST_COLUMNS)]
    figures: list[QuestionBody] = Field(default_factory=list, max_length=MOST_SUMS)
    where: Statement | None = None
    question: QuestionBody | None = None
    credits: Amount | None = None
    delta: Amount | None = None
    most: Annotated[int, Field(ge=1, le=MOST_KEYS)] = 1_000
    max_credits: MaxCredits = None
    reservation: Reservation = None
    facts_id: FactsId = None

    @model_validator(mode="after")
    def one_at_most(self) -> KeysBody:
        if self.where is not None and self.question is not None:
            raise ValueError("give where or question, one of both")
        return self


class TopBody(Body):
    """One sum by one group: which of its cells are largest."""

    question: QuestionBody
    k: Annotated[int, Field(ge=1, le=MOST_KEYS)] = 1
    credits: Amount | None = None
    max_credits: MaxCredits = None
    reservation: Reservation = None
    facts_id: FactsId = None


class AlertBody(Body):
    """An alert on one count or total; all its firings are paid for now."""

    question: QuestionBody
    above: Exact
    firings: Annotated[int, Field(ge=1, le=MOST_FIRINGS)] = 1
    credits: Amount = Fraction(1)
    reservation: Reservation = None
    facts_id: FactsId = None


class CheckBody(Body):
    """What to compare; without a question, what the alert was armed on."""

    question: QuestionBody | None = None
    facts_id: FactsId = None


Batch = Annotated[list[QuestionBody], Field(min_length=1, max_length=MOST_QUESTIONS)]


class DeclareBody(Body):
    """Batches, of which one may be asked exactly."""

    menu: Annotated[list[Batch], Field(min_length=1, max_length=100)]
    facts_id: FactsId = None


# --- what is replied ----------------------------------------------------------------------------


class Paid(Reply):
    credits: float = 0.0
    credits_exact: Exact = Fraction(0)


class KeysQuoteReply(Paid):
    """A key is shown if its noisy count reaches `threshold` rows.

    `affordable`: who asks can pay both, credits and delta; `note` says what to do otherwise.
    """

    delta: Exact
    threshold: float
    standard_error: float
    left_after: float
    left_after_exact: Exact
    affordable: bool
    repeat: bool = False
    note: str = ""
    figures: list[float | None] = Field(
        default_factory=list,
        description="standard errors; null where it hangs on the rows of a key",
    )


class KeyFigureJson(Reply):
    """One figure of every key, in their order, with its interval at 95 %."""

    name: str
    kind: str
    values: list[float | None]
    low: list[float | None]
    high: list[float | None]


class KeysReply(Paid):
    """Keys by falling noisy count; what is held back is `total` less the counts, with its noise.

    Of a pair of columns a key is a list of two. `values` are the noisy integers as they are stored.
    """

    column: str
    columns: list[str] = Field(default_factory=list)
    keys: list[Any]
    figures: list[KeyFigureJson] = Field(default_factory=list)
    counted: Annotated[str, Field(description="rows or persons")] = "rows"
    values: list[str] = Field(default_factory=list)
    total_noise: LawJson | None = None
    sum_noise: list[LawJson] = Field(default_factory=list)
    counts: list[float]
    total: float
    held_back: float
    held_back_error: float
    threshold: float
    delta: Exact
    noise: LawJson
    unit: Annotated[int, Field(description="steps of the noise in one row")]
    receipt: ReceiptJson
    note: str = ""


class TopReply(Paid):
    """The largest cells, the largest first; `places` are theirs among the declared ones."""

    column: str
    keys: list[Any]
    places: list[int]
    slack: float
    receipt: ReceiptJson
    note: str = ""
    terms: str = ""


class AlertLine(Reply):
    """An alert by the number of its receipt; `noise` is that of its level and of each check."""

    number: int
    question: str
    above: Exact
    firings: int
    left: int
    noise: list[LawJson]
    step: Exact
    receipt: ReceiptJson
    terms: str = ""


class AlertReply(AlertLine, Paid):
    """An alert that was armed, and what that cost."""


class AlertsReply(Reply):
    alerts: list[AlertLine]


class CheckReply(Paid):
    """The verdict, never the value; a check costs nothing."""

    fired: bool
    left: int


class DeclaredReply(Paid):
    """What may be asked exactly: batches of questions by their text, and on what terms."""

    menu: list[list[str]] | None
    terms: str = ""


# --- there and back -----------------------------------------------------------------------------


def receipt_json(receipt: Any) -> ReceiptJson:
    return ReceiptJson(receipt=dict(receipt.body), signature=receipt.signature)


def paper_of(receipt: ReceiptJson) -> ReceiptDocument:
    return ReceiptDocument(receipt.receipt, receipt.signature)


def keys_quote_reply(found: KeysQuote) -> KeysQuoteReply:
    return KeysQuoteReply(
        credits=float(found.credits),
        credits_exact=found.credits,
        delta=found.delta,
        threshold=found.threshold,
        standard_error=found.standard_error,
        left_after=float(found.left_after),
        left_after_exact=found.left_after,
        affordable=found.affordable,
        repeat=found.repeat,
        note=found.note,
        figures=list(found.figures),
    )


def keys_quote_of(reply: KeysQuoteReply) -> KeysQuote:
    return KeysQuote(
        credits=reply.credits_exact,
        delta=reply.delta,
        threshold=reply.threshold,
        standard_error=reply.standard_error,
        left_after=reply.left_after_exact,
        affordable=reply.affordable,
        repeat=reply.repeat,
        note=reply.note,
        figures=tuple(reply.figures),
    )


def keys_reply(found: Keys) -> KeysReply:
    return KeysReply(
        credits=float(found.credits),
        credits_exact=found.credits,
        column=found.column,
        columns=list(found.columns),
        keys=[list(key) if found.columns else key for key in found.keys],
        figures=[_figure_json(figure) for figure in found.figures],
        counted=found.counted,
        values=[str(value) for value in found.values],
        total_noise=None if found.total_law is None else found.total_law.to_json(),
        sum_noise=[law.to_json() for law in found.sums],
        counts=list(found.counts),
        total=found.total,
        held_back=found.held_back,
        held_back_error=found.held_back_error,
        threshold=found.threshold,
        delta=found.delta,
        noise=found.law.to_json(),
        unit=found.unit,
        receipt=receipt_json(found.receipt),
        note=found.note,
    )


def _figure_json(figure: KeyFigures) -> KeyFigureJson:
    ends = figure.intervals()
    return KeyFigureJson(
        name=figure.name,
        kind=figure.kind,
        values=[_finite(value) for value in figure.values],
        low=[_finite(low) for low, _ in ends],
        high=[_finite(high) for _, high in ends],
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def keys_of(reply: KeysReply, bound: BoundKeys, size: int | None) -> Keys:
    """The keys that the server sent, read from their integers; of at most `size` rows."""
    law = law_from_json(reply.noise)
    total = law if reply.total_noise is None else law_from_json(reply.total_noise)
    if not isinstance(law, DiscreteGaussian) or not isinstance(total, DiscreteGaussian):
        raise InvalidQuery("keys come with gaussian noise")
    sums = tuple(law_from_json(each) for each in reply.sum_noise)
    threshold = round(reply.threshold * reply.unit)
    cost = KeysPrice(law, threshold, reply.delta, Loss.zero(), total, sums)
    told, shown = unpacked_keys([int(value) for value in reply.values], bound)
    paid = reply.credits_exact, reply.delta, paper_of(reply.receipt)
    return replace(keys_of_integers(bound, cost, told, shown, size, paid), note=reply.note)


def top_reply(found: Top, bound: BoundQuery) -> TopReply:
    cells = bound.groups[0].keys
    return TopReply(
        credits=float(found.credits),
        credits_exact=found.credits,
        column=found.column,
        keys=[plain_key(key) for key in found.keys],
        places=[cells.index(key) for key in found.keys],
        slack=found.slack,
        receipt=receipt_json(found.receipt),
        note=found.note,
        terms=found.terms,
    )


def top_of(reply: TopReply, bound: BoundQuery) -> Top:
    cells = bound.groups[0].keys
    return Top(
        column=reply.column,
        keys=tuple(cells[place] for place in reply.places),
        slack=reply.slack,
        credits=reply.credits_exact,
        receipt=paper_of(reply.receipt),
        note=reply.note,
        terms=reply.terms,
    )


def ranked(question: object) -> tuple[Group, SumQuery]:
    """A question by one group as `top` wants it: the cells, and the sum that ranks them."""
    query = as_statistic(question).query
    if len(query.groups) != 1 or query.outer is not None or query.groups[0].bins is not None:
        raise InvalidQuery("top wants one sum by one group of declared values or edges")
    return query.groups[0], SumQuery(query.terms, query.rows, table=query.table)


def rows_of(question: Statistic | None) -> Expression | None:
    """The rows that a question is about, if it is only that."""
    if question is not None and question.kind != "count":
        raise InvalidQuery(f"a count says of which rows keys are wanted, got {question.kind}")
    return None if question is None else question.query.rows


def menu_texts(menu: Sequence[Sequence[str]] | None) -> list[list[str]] | None:
    return None if menu is None else [list(batch) for batch in menu]
