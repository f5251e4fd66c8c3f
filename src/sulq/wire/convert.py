"""Answers and quotes as replies, and back.

A reply carries noisy integers and the laws of their noise; who has the public facts reads from
them the very answer that the server read. Post-processing only.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from sulq.answers.error_bars import Mixture, Reading
from sulq.answers.oracle import Answer, Quote
from sulq.answers.sizes import GroupSizes, sized_forecast
from sulq.answers.statistics import forecast, read_apart, read_derived
from sulq.errors import InvalidQuery, Reason
from sulq.formatting import OUTWARDS, moment_of
from sulq.kernel.accounting.calibration import calibrate
from sulq.kernel.accounting.pricing import noise_grid
from sulq.kernel.noise.laws import Law, law_from_json
from sulq.kernel.query.expressions import Expression
from sulq.kernel.query.sql_text import question_text
from sulq.kernel.query.sum_query import Statistic, SumQuery, as_statistic, check_kind, text_of
from sulq.kernel.reuse.estimate import LinearEstimate, StoredDraws
from sulq.kernel.schema.bind import BoundQuery, NoiseGrid, bind
from sulq.kernel.schema.columns import Schema
from sulq.kernel.schema.keys import BoundKeys, bind_keys
from sulq.kernel.schema.promise import Promise
from sulq.wire.bodies import fraction_text, read_fraction
from sulq.wire.replies import (
    AnswerReply,
    ExactQuoteReply,
    LawJson,
    MixtureJson,
    Nested,
    PlanLineJson,
    PlanReply,
    QuoteColumn,
    QuoteQuestion,
    QuoteReply,
    ReceiptJson,
    SizesJson,
    SqlCell,
    SqlColumn,
    SqlReply,
)


def question_json(question: object) -> dict[str, Any]:
    """{"kind": "count", "query": {...}, "shares": [...]}."""
    asked = as_statistic(question)
    kind = "outer" if asked.query.outer is not None else asked.kind
    return {"kind": kind, "query": asked.query.to_json(), "shares": list(asked.shares)}


def question_of(form: Mapping[str, Any]) -> Statistic:
    """Read `question_json` back; refuses sums that cannot be read as what they are called."""
    if not isinstance(form, Mapping) or set(form) - {"shares"} != {"kind", "query"}:
        raise InvalidQuery("a question is an object with kind, query and perhaps shares")
    kind, shares = form["kind"], form.get("shares") or ()
    try:
        query = SumQuery.from_json(form["query"])
    except RecursionError:
        raise InvalidQuery(
            "the question is nested too deeply; flatten or shorten it", reason=Reason.TOO_LARGE
        ) from None
    read = Statistic(kind, query, shares)
    check_kind(read)
    shares = tuple(float(share) for share in shares)
    return Statistic("sums" if kind == "outer" else kind, query, shares)


# A question as JSON and back. What comes from outside must have the shape of its kind.


@dataclass(frozen=True, slots=True)
class ReceiptDocument:
    """A receipt as it came: the same text, verified with the ledger's public key."""

    body: dict[str, Any]
    signature: str

    @property
    def seq(self) -> int:
        return int(self.body["seq"])

    def to_json(self) -> str:
        """The text that was signed, and its signature."""
        form = {"receipt": self.body, "signature": self.signature}
        return json.dumps(form, sort_keys=True, separators=(",", ":"), allow_nan=False)


# --- answers ------------------------------------------------------------------------------------


def answer_reply(answer: Answer, confidence: float = 0.95, *, figures: bool = True) -> AnswerReply:
    """Everything a client needs to rebuild the answer; `figures`: the numbers in user units too."""
    bound = answer.bound
    if bound is None:
        raise InvalidQuery("only an answer that a table gave can be sent")
    shown: dict[str, Any] = {}
    if figures:
        low, high = answer.interval(confidence)
        shown = {
            "value": nested(answer.value),
            "standard_error": nested(answer.standard_error),
            "low": nested(low),
            "high": nested(high),
            "keys": [plain_key(key) for key in answer.keys],
        }
    receipt = answer.receipt
    return AnswerReply(
        kind=answer.kind,
        confidence=confidence,
        axes=list(answer.axes),
        credits=float(answer.credits),
        credits_exact=answer.credits,
        receipt=None
        if receipt is None
        else ReceiptJson(receipt=dict(receipt.body), signature=receipt.signature),
        note=answer.note,
        question=answer.question,
        noise=[law.to_json() for law in answer.laws],
        values=[str(value) for value in answer.values],
        sources=list(answer.sources),
        guarantee=answer.guarantee,
        terms=answer.terms,
        promised=answer.promise is not None,
        whole=_whole(bound),
        mixture=None if answer.reading.mixture is None else _mixture_json(answer.reading.mixture),
        **shown,
    )


def answer_of(reply: AnswerReply, bound: BoundQuery, promise: Promise, size: int | None) -> Answer:
    """The answer that the server sent: the same values, bars, notes and words.

    `bound` is `bind_public` of the question, `whole` as the reply says.
    """
    values = [int(value) for value in reply.values]
    laws = tuple(law_from_json(law) for law in reply.noise)
    rows_each = 1 if bound.schema is None else bound.schema.max_rows
    most = None if size is None else size * rows_each
    receipt = reply.receipt
    answer = Answer.of(
        bound,
        values,
        laws,
        most=most,
        credits=reply.credits_exact,
        receipt=None if receipt is None else ReceiptDocument(receipt.receipt, receipt.signature),
        promise=promise if reply.promised else None,
        guarantee=reply.guarantee,
        terms=reply.terms,
        reading=None
        if reply.mixture is None
        else _derived_reading(reply.mixture, bound, values, laws, most),
        sources=tuple(reply.sources),
    )
    return replace(answer, note=reply.note)


@lru_cache(maxsize=16)
def _grid(promise: Promise) -> NoiseGrid:
    return noise_grid(calibrate(promise))


def bind_public(
    question: object, schema: Schema, promise: Promise, *, whole: bool = False
) -> BoundQuery:
    """As the server binds it: the question and the public facts decide."""
    grid = NoiseGrid(0) if whole else _grid(promise)
    return bind(question, schema, promise.neighbours, grid=grid)


def bind_public_keys(
    columns: object,
    where: Expression | None,
    most: int,
    schema: Schema,
    promise: Promise,
    figures: Sequence[object],
) -> BoundKeys:
    """As the server binds a question for keys."""
    return bind_keys(columns, where, most, schema, promise.neighbours, _grid(promise), figures)


def _whole(bound: BoundQuery) -> bool:
    """Whether the sums are as a binding without finer steps leaves them."""
    if bound.tree is not None:
        return bound.tree.even
    return all(term.lift == 1 for term in bound.terms)


def _mixture_json(mixture: Mixture) -> MixtureJson:
    laws: dict[Law, int] = {}
    sums = [
        [
            (seq, place, fraction_text(weight), laws.setdefault(law, len(laws)))
            for seq, place, weight, law in draws
        ]
        for draws in mixture.sums
    ]
    named = [law.to_json() for law in laws]
    return MixtureJson(laws=named, sums=sums, exact=mixture.exact, apart=mixture.apart)


def _derived_reading(
    form: MixtureJson,
    bound: BoundQuery,
    values: Sequence[int],
    laws: Sequence[Law],
    most: int | None,
) -> Reading:
    """Only weights and laws make the bars: the stored integers themselves stay where they are."""
    told = [law_from_json(law) for law in form.laws]
    estimates = [
        [StoredDraws(seq, place, read_fraction(w), 0, told[law]) for seq, place, w, law in draws]
        for draws in form.sums
    ]
    none: list[dict[int, Fraction]] = [{} for _ in estimates]
    found = LinearEstimate(bound, estimates, none, None, form.exact)
    if form.apart:
        return read_apart(found, values, laws, most)
    return read_derived(found, values, most)


# --- quotes and plans ---------------------------------------------------------------------------


def quote_reply(quote: Quote, confidence: float = 0.95) -> QuoteReply:
    return QuoteReply(
        credits=float(quote.credits),
        credits_exact=quote.credits,
        left_after=float(quote.left_after),
        left_after_exact=quote.left_after,
        affordable=quote.affordable,
        repeat=quote.repeat,
        half_width=nested(quote.interval(confidence)[1]),
        standard_error=nested(quote.standard_error),
        confidence=confidence,
        note=quote.note,
        notes=list(quote.notes),
        noise=_laws_json(quote.forecast.laws),
        sizes=_sizes_json(quote.sizes),
    )


def _sizes_json(sizes: GroupSizes | None) -> SizesJson | None:
    if sizes is None:
        return None
    return SizesJson(most=sizes.most, least=sizes.least, receipts=list(sizes.receipts))


def quote_of(reply: QuoteReply, bound: BoundQuery, size: int | None, rows: int | None) -> Quote:
    """The quote that the server made."""
    laws = [law_from_json(law) for law in reply.noise]
    bar, widest, sizes, told = forecast(bound, laws, rows, size), None, None, reply.sizes
    if told is not None and rows is None:
        sizes = GroupSizes(told.most, told.least, tuple(told.receipts))
        bar, widest = sized_forecast(bound, laws, size, sizes)
    return Quote(
        reply.credits_exact,
        reply.left_after_exact,
        bar,
        reply.repeat,
        tuple(reply.notes),
        sizes,
        widest,
    )


def sql_quote_reply(quote: Any) -> QuoteReply:
    """Of a `SqlQuote`: the statement as a whole, its columns, and the questions behind it."""
    asked = zip(quote.plan.questions, quote.quotes, strict=True)
    ranks = dict(quote.ranks)
    spans = {name: ends for name, *ends in quote.spans}
    return QuoteReply(
        credits=float(quote.credits),
        credits_exact=quote.credits,
        left_after=float(quote.left_after),
        left_after_exact=quote.left_after,
        affordable=quote.affordable,
        repeat=quote.repeat,
        confidence=quote.confidence,
        note=quote.note,
        notes=list(quote.notes),
        columns=[
            QuoteColumn(
                name=name,
                half_width=_number(half),
                rank=ranks.get(name),
                span=spans.get(name),
            )
            for name, half in quote.half_widths
        ],
        sizes=_sizes_json(quote.sizes),
        questions=[_sql_question(question, one) for question, one in asked],
    )


def _sql_question(question: object, quote: Quote) -> QuoteQuestion:
    form = question_json(question)
    sums = as_statistic(question).query
    return QuoteQuestion(
        question=question_text(text_of(sums.canonical())),
        credits=float(quote.credits),
        credits_exact=quote.credits,
        repeat=quote.repeat,
        question_json=form,
    )


def plan_reply(plan: Any) -> PlanReply:
    """Of a `Plan`: its lines and what they cost together."""
    return PlanReply(
        credits=float(plan.credits),
        credits_exact=plan.credits,
        left_after=float(plan.left_after),
        left_after_exact=plan.left_after,
        affordable=plan.affordable,
        confidence=plan.confidence,
        lines=[
            PlanLineJson(
                question=line.question,
                credits=float(line.credits),
                credits_exact=line.credits,
                repeat=line.repeat,
                half_width=nested(line.half_width(plan.confidence)),
                note=record["note"],
                noise=_laws_json(line.forecast.laws),
            )
            for line, record in zip(plan.lines, plan.rows(), strict=True)
        ],
    )


def exact_quote_reply(quote: Any) -> ExactQuoteReply:
    return ExactQuoteReply(
        guarantee=quote.guarantee,
        terms=quote.terms,
        divisor=quote.divisor,
        left=float(quote.left),
        left_exact=quote.left,
        left_after=float(quote.left_after),
        left_after_exact=quote.left_after,
    )


def sql_reply(result: Any) -> SqlReply:
    """Of a `Result`: keys as they are, aggregates with their intervals."""
    return SqlReply(
        columns=[
            SqlColumn(name=c.name, is_key=c.is_key, unit=c.unit, type=c.type)
            for c in result.columns
        ],
        rows=[[_cell(cell, result.confidence) for cell in row] for row in result.rows],
        credits=float(result.credits),
        credits_exact=result.credits,
        receipts=[receipt.seq for receipt in result.receipts if receipt is not None],
        notes=list(result.notes),
        confidence=result.confidence,
    )


def _cell(cell: Any, confidence: float) -> Any:
    if not hasattr(cell, "interval"):
        return plain_key(cell)
    low, high = cell.interval(confidence)
    value = None if cell.unread(confidence) else _number(cell.value)
    return SqlCell(value=value, low=_number(low), high=_number(high), public=cell.public)


def reply_columns(reply: SqlReply, intervals: bool) -> dict[str, list[Any]]:
    """Return the cells of a reply by column: keys as they are, a bin [low, high) as text, days and
    times as such.

    With `intervals` an aggregate `n` also has the columns n_low and n_high.
    """
    names = [column.name for column in reply.columns]
    found: dict[str, list[Any]] = {}
    for place, column in enumerate(reply.columns):
        cells = [row[place] for row in reply.rows]
        name = _free(column.name, found)
        if column.is_key:
            found[name] = [
                f"[{cell[0]}, {cell[1]})" if isinstance(cell, list) else cell for cell in cells
            ]
            continue
        found[name] = [_moment(cell["value"], column.type) for cell in cells]
        for end, outwards in zip(("low", "high"), OUTWARDS, strict=True) if intervals else ():
            beside = _free(f"{column.name}_{end}", [*found, *names])
            found[beside] = [_moment(cell[end], column.type, outwards) for cell in cells]
    return found


def _moment(number: float | None, kind: str, whole: Callable[[float], int] = round) -> Any:
    return None if number is None else moment_of(number, kind, whole)


def _free(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name


# --- numbers and keys ---------------------------------------------------------------------------


def _laws_json(laws: Sequence[Law]) -> list[LawJson]:
    return [law.to_json() for law in laws]


def _number(value: Any) -> Any:
    """JSON has no infinity: None where it is not finite."""
    if value is None or isinstance(value, bool | int):
        return value
    number = float(value)
    return number if math.isfinite(number) else None


def nested(value: Any) -> Nested:
    """A number, or an array as nested lists."""
    if not isinstance(value, np.ndarray):
        found: Nested = _number(value)
        return found
    if np.isfinite(value).all():
        listed: list[Any] = value.tolist()
        return listed
    return [nested(part) if isinstance(part, np.ndarray) else _number(part) for part in value]


def plain_key(key: object) -> Any:
    """A key of a cell as JSON: dates as ISO text, bins as [low, high]."""
    match key:
        case tuple():
            return [plain_key(part) for part in key]
        case datetime.date():
            return key.isoformat()
        case Fraction():
            return key.numerator if key.denominator == 1 else float(key)
        case np.generic():
            return key.item()
    return key
