"""ask_sql, quote_sql, explain_sql: a SELECT over any Oracle. Priced first, all or nothing."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sulq.answers.display import percent
from sulq.answers.error_bars import Forecast
from sulq.answers.oracle import Answer, Oracle, Quote
from sulq.answers.selections import KeysQuote
from sulq.answers.sizes import GroupSizes, hangs_on, sizes_of
from sulq.answers.statistics import everybody
from sulq.answers.study_table import StudyTable
from sulq.errors import BudgetSpent, InvalidQuery, Reason
from sulq.formatting import credits_left, credits_text
from sulq.kernel.query.sql_text import question_text
from sulq.kernel.query.sum_query import Statistic, text_of
from sulq.kernel.schema.columns import EPOCH
from sulq.kernel.schema.study import Study
from sulq.sql.evaluate.evaluation import Evaluation
from sulq.sql.evaluate.linear_forms import Estimate, as_estimate
from sulq.sql.evaluate.open_keys import (
    finder,
    forecast_of,
    found_plan,
    keys_answer,
    line_of,
    notes_of,
    quote_notes,
    where_of,
)
from sulq.sql.evaluate.result import Result, ResultColumn
from sulq.sql.parse.released import most_rows
from sulq.sql.parse.select import (
    MOMENTS,
    Aggregate,
    Calculation,
    ConstantOutput,
    GroupKey,
    Inner,
    Item,
    Mapped,
    Output,
    Released,
    Select,
    aggregates_of,
    kind_of,
    kind_of_value,
)
from sulq.sql.parse.study import table_of_rows
from sulq.sql.parse.subqueries import STANDS
from sulq.sql.plan.forecast import Forecasts, cells_of, is_sized, size_question
from sulq.sql.plan.plan import StatementPlan
from sulq.sql.plan.precision import verdict
from sulq.sql.plan.pricing import (
    PricedPlan,
    Writing,
    explained,
    priced_statement,
    shared_out,
    unit_prices,
)

Credits = Fraction | int | float
BarSpan = tuple[str, float, float]
"""A figure, its half-width at the most rows that it may have, and at the fewest."""
PLAN = ResultColumn("plan", is_key=True, type="text")
"""The one column of an EXPLAIN."""
TRIED = (1, 7, 1000)
"""What is put for constants that are not known yet, to see that the statement can be read."""
BAR_UNITS = {"date": " days", "datetime": " seconds"}


@dataclass(frozen=True, slots=True, eq=False)
class SqlQuote:
    """What a statement would cost, question by question, and how exact it would be."""

    plan: StatementPlan
    quotes: tuple[Quote, ...]
    amounts: tuple[Fraction | None, ...]
    confidence: float
    half_widths: tuple[tuple[str, float | None], ...]
    left_before: Fraction
    notes: tuple[str, ...] = ()
    ranks: tuple[tuple[str, float], ...] = ()
    """How far off the rank of each quantile may be, in rows."""
    keys: KeysQuote | None = None
    """Of a statement by an open text column: what looking for its keys costs."""
    assumes: str = ""
    """The one of `notes` that says which size is assumed, where nobody stated `rows`."""
    sizes: GroupSizes | None = None
    """How many rows the figures have whose bars hang on it, where nobody stated `rows`."""
    spans: tuple[BarSpan, ...] = ()
    """Half-widths of those figures at `sizes.most` and at `sizes.least` rows."""
    first: tuple[SqlQuote, ...] = ()
    """Of the SELECTs in conditions of rows, which are asked before."""
    due: Fraction | None = None
    """Of such a SELECT: the credits that it is asked with; None: its plain price."""

    @property
    def own_credits(self) -> Fraction:
        """Without the SELECTs that are asked first."""
        looked = Fraction(0) if self.keys is None else self.keys.credits
        return sum((quote.credits for quote in self.quotes), looked)

    @property
    def credits(self) -> Fraction:
        return sum((quote.credits for quote in self.first), self.own_credits)

    @property
    def left_after(self) -> Fraction:
        return self.left_before - self.credits

    @property
    def repeat(self) -> bool:
        """Whether all of it is stored already."""
        known = [quote.repeat for quote in self.quotes]
        known += [] if self.keys is None else [self.keys.repeat]
        return bool(known) and all(known) and all(inner.repeat for inner in self.first)

    @property
    def affordable(self) -> bool:
        return self.left_after >= 0 and (self.keys is None or self.keys.affordable)

    @property
    def note(self) -> str:
        return "; ".join(self.notes)

    def steps(self) -> list[str]:
        """The questions behind the statement with their prices, a line each."""
        said = [f"first: {line}" for inner in self.first for line in inner.steps()]
        said += [] if self.keys is None else [line_of(self.plan, self.keys)]
        for number, (question, quote) in enumerate(
            zip(self.plan.questions, self.quotes, strict=True), 1
        ):
            stored = ", stored already" if quote.repeat else ""
            sums = question.query if isinstance(question, Statistic) else question
            asked = question_text(text_of(sums.canonical()))
            said.append(f"question {number}: {asked[:300]} ({credits_text(quote.credits)}{stored})")
        return said

    def explain(self) -> str:
        """In words: the questions behind the statement, their prices, and the error bars."""
        said = self.steps()
        ranks = dict(self.ranks)
        units = {
            item.name: BAR_UNITS.get(kind_of(item.of, self.plan.select.groups), "")
            for item in self.plan.select.items
        }
        spans = {name: (narrow, wide) for name, narrow, wide in self.spans}
        for name, half in self.half_widths:
            bar = "depends on the rows" if half is None else f"+-{half:,.4g}{units[name]}"
            if name in spans:
                bar = span_text(*spans[name]) + units[name]
            if name in ranks:
                bar += f", its rank +-{ranks[name]:,.4g} rows"
            said.append(f"{name}: {bar} at {100 * self.confidence:g} %")
        said.append(f"cost: {credits_text(self.credits)}, asked together or not at all")
        said += [f"note: {note}" for note in self.notes]
        return "\n".join(said)

    def __repr__(self) -> str:
        asked = len(self.quotes) + (self.keys is not None)
        what = "1 question" if asked == 1 else f"{asked} questions"
        return f"<SqlQuote {credits_text(self.credits)}, {what}>"


def quote_sql(
    oracle: Oracle,
    text: str,
    *,
    credits: Credits | None = None,
    confidence: float = 0.95,
    rows: int | None = None,
    **written: Any,
) -> SqlQuote:
    """Price and error bars of a statement; free, and no row is read. `written` as in `ask_sql`."""
    oracle, writing = _about_one_table(oracle, text, Writing(**written))
    terms = _Terms(text, credits, confidence, rows)
    try:
        return _quoted_whole(oracle, terms, writing)
    except InvalidQuery as error:
        raise explained(error, oracle, text, rows, writing) from None


def explain_sql(oracle: Oracle, text: str, **terms: Any) -> str:
    """The questions behind a statement, in words; free."""
    return quote_sql(oracle, text, **terms).explain()


def ask_sql(
    oracle: Oracle,
    text: str,
    *,
    credits: Credits | None = None,
    confidence: float = 0.95,
    rows: int | None = None,
    key: str | None = None,
    **written: Any,
) -> Result:
    """Answer a SELECT with noise.

    `credits` is for the whole statement. `rows` is how many rows you expect to match. Of how it is
    written (`Writing`): `table` is what FROM has to say, `lookups` are public tables to join, by
    name, `dialect` says whose words it takes, `params` are the values of its ?, %s, :name or $1.
    EXPLAIN SELECT is free and gives the plan.
    """
    oracle, writing = _about_one_table(oracle, text, Writing(**written))
    try:
        return _asked_whole(oracle, _Terms(text, credits, confidence, rows), key, writing)
    except InvalidQuery as error:
        raise explained(error, oracle, text, rows, writing) from None


def _about_one_table(oracle: Oracle, text: str, writing: Writing) -> tuple[Oracle, Writing]:
    """The table of a study whose rows a statement sums; one table alone is itself."""
    study = oracle.schema
    if not isinstance(study, Study):
        return oracle, writing
    table = table_of_rows(text, study, writing.dialect)
    asked = StudyTable(oracle, table) if table else oracle
    return asked, replace(writing, table=table or study.name)


# --- SELECTs in conditions of rows, which are asked first ----------------------------------------


@dataclass(frozen=True, slots=True)
class _Terms:
    """A statement and how it is asked."""

    text: str
    credits: Credits | None
    confidence: float
    rows: int | None

    def priced(self, oracle: Oracle, writing: Writing) -> PricedPlan:
        return priced_statement(
            oracle, self.text, self.credits, self.confidence, self.rows, writing
        )


def _quoted_whole(oracle: Oracle, terms: _Terms, writing: Writing) -> SqlQuote:
    """The price of a statement with the SELECTs that are asked first; the most it can be."""
    priced = terms.priced(oracle, writing)
    names = priced.plan.select.first
    if not names or writing.known.values is not None:
        return _quoted(oracle, priced, terms.rows, terms.credits)
    plain = replace(terms, credits=None)
    inner = [_quoted_whole(oracle, plain, _part(writing, at)) for at in range(len(names))]
    outer = _dearest(oracle, plain, writing)
    if terms.credits is not None:
        share = _shares(terms.credits, [*(quote.credits for quote in inner), outer.own_credits])
        inner = [
            replace(
                _quoted_whole(oracle, replace(terms, credits=amount), _part(writing, at)),
                due=amount,
            )
            for at, amount in enumerate(share[:-1])
        ]
        outer = _dearest(oracle, replace(terms, credits=share[-1]), writing)
    for each, quote in zip(names, inner, strict=True):
        _check_inner(each, quote.plan.select)
    _check_outer(oracle, plain, writing, inner)
    said = [
        f"asked first: {each.name} ({credits_text(quote.credits)}); what is released of it stands"
        f" as a constant; the rest costs at most {credits_text(outer.own_credits)}, whatever it is"
        for each, quote in zip(names, inner, strict=True)
    ]
    return replace(outer, first=tuple(inner), notes=(*said, *outer.notes))


def _part(writing: Writing, at: int) -> Writing:
    known = writing.known
    return replace(writing, known=replace(known, part=(*known.part, at), values=None))


def _dearest(oracle: Oracle, terms: _Terms, writing: Writing) -> SqlQuote:
    """The outer statement at the constant that makes it cost most, as if nothing were stored: the
    constant that comes makes it another question."""
    found = []
    for stand in STANDS:
        at = replace(writing, known=replace(writing.known, stand=stand))
        priced = terms.priced(oracle, at)
        quote = _quoted(oracle, priced, terms.rows, terms.credits)
        units = unit_prices(priced.plan, oracle)
        anew = tuple(
            replace(each, credits=max(each.credits, unit if amount is None else amount))
            for each, amount, unit in zip(quote.quotes, priced.amounts, units, strict=False)
        )
        found.append(replace(quote, quotes=anew))
    return max(found, key=lambda quote: quote.own_credits)


def _check_outer(
    oracle: Oracle, terms: _Terms, writing: Writing, inner: Sequence[SqlQuote]
) -> None:
    """Refuse, before anything is charged, a statement that no constant of a few can stand in."""
    problem: InvalidQuery | None = None
    for number in TRIED:
        values = tuple(_like(quote.plan.select, number) for quote in inner)
        try:
            terms.priced(oracle, replace(writing, known=replace(writing.known, values=values)))
        except InvalidQuery as error:
            problem = problem or error
        else:
            return
    if problem is not None:
        raise problem


def _like(select: Select, number: int) -> Any:
    """A constant, or a list of one, such as this SELECT may give: figures but counts have parts."""
    item = select.items[0]
    if not aggregates_of(item.of):
        group = select.groups[item.of.place] if isinstance(item.of, GroupKey) else None
        return [label for label in (group.labels if group else ()) if label is not None][:1]
    counts = isinstance(item.of, Aggregate) and item.of.kind == "count"
    return _as_kind(number if counts else number + 1 / 3, kind_of(item.of, select.groups))


def _shares(credits: Credits, prices: list[Fraction]) -> list[Fraction | None]:
    """Credits in proportion to plain prices; what is stored already gets none."""
    total = sum(prices, Fraction(0))
    whole = Fraction(credits)
    return [whole * price / total if price else None for price in prices]


def _asked_whole(oracle: Oracle, terms: _Terms, key: str | None, writing: Writing) -> Result:
    priced = terms.priced(oracle, writing)
    names = priced.plan.select.first
    if not names or writing.known.values is not None:
        return _answered(oracle, priced, terms.rows, key, terms.credits)
    quoted = _quoted_whole(oracle, terms, writing)
    if priced.plan.select.explain:
        lines = tuple((line,) for line in quoted.explain().split("\n"))
        return Result((ResultColumn("plan", is_key=True),), lines, confidence=quoted.confidence)
    if not quoted.affordable:
        raise _too_dear(quoted)
    with _set_aside(oracle, quoted.credits) as purse:
        values: list[Any] = []
        inner: list[Result] = []
        for at, quote in enumerate(quoted.first):
            own = None if key is None else f"{key}/first{at + 1}"
            asked = replace(terms, credits=quote.due)
            inner.append(_asked_whole(purse, asked, own, _part(writing, at)))
            values.append(_released(inner[-1], names[at].listed))
        said = tuple(
            _constant_note(each.name, value) for each, value in zip(names, values, strict=True)
        )
        if any(value is None for value in values):
            outer = _nothing(priced, oracle)
        else:
            amount = None if terms.credits is None else quoted.own_credits or None
            whole = replace(writing, known=replace(writing.known, values=tuple(values)))
            due = replace(terms, credits=amount)
            try:
                due = _within(purse, due, whole, quoted.own_credits)
            except InvalidQuery as error:  # what was released is paid for: no refusal any more
                outer = _nothing(priced, oracle)
                said = (
                    *said,
                    f"nothing else was asked, for this constant makes it a refusal: {error}",
                )
            else:
                outer = _asked_whole(purse, due, key, whole)
    return replace(
        outer,
        credits=sum((each.credits for each in inner), outer.credits),
        receipts=(*(seq for each in inner for seq in each.receipts), *outer.receipts),
        notes=(*said, *outer.notes),
    )


def _within(oracle: Oracle, terms: _Terms, whole: Writing, most: Fraction) -> _Terms:
    """How the outer statement is asked for at most so many credits, now that its constants are
    known. `InvalidQuery` if it cannot be."""
    price = _quoted_whole(oracle, terms, whole).credits
    if price <= most:
        return terms
    if not most:
        raise InvalidQuery(f"the rest costs {credits_text(price)}, and was quoted as free")
    less = replace(terms, credits=most)
    _quoted_whole(oracle, less, whole)
    return less


def _set_aside(oracle: Oracle, credits: Fraction) -> AbstractContextManager[Oracle]:
    """An oracle that spends credits which nobody else can take; itself where it has no such."""
    reserve = getattr(oracle, "reserve", None)
    if reserve is None or not credits or getattr(oracle, "reserved", False):
        return nullcontext(oracle)
    made: AbstractContextManager[Oracle] = reserve(credits)
    return made


def _check_inner(inner: Inner, select: Select) -> None:
    """Refuse, before anything is charged, what is not one value, or for IN a list of keys."""
    fits = len(select.items) == 1 and (inner.listed or select.limit == 1 or most_rows(select) == 1)
    noisy = fits and bool(aggregates_of(select.items[0].of))
    if not fits or noisy is inner.listed:
        wanted = "a list of keys" if inner.listed else "one aggregate"
        raise InvalidQuery(
            f"({inner.name:.120}) in a condition gives {wanted}, in one column",
            reason=Reason.WRONG_FORM,
        )


def _released(found: Result, listed: bool) -> Any:
    """The one value of a statement, or the list of its keys; None where it is not known."""
    column = found.columns[0]
    if listed:
        return [row[0] for row in found.rows if row[0] is not None]
    cell = found.rows[0][0] if found.rows else None
    if not isinstance(cell, Estimate) or cell.unread(found.confidence):
        return None
    return _as_kind(cell.value, column.kind)


def _as_kind(value: Any, kind: str) -> Any:
    """A figure as the constant that SQL would take it for; None for a day beyond the calendar."""
    if kind not in MOMENTS:
        return int(value) if value == int(value) else value
    try:
        at = EPOCH + datetime.timedelta(seconds=round(value * (86_400 if kind == "date" else 1)))
    except OverflowError:
        return None
    return at if kind == "datetime" else at.date()


def _constant_note(name: str, value: Any) -> str:
    if value is None:
        return f"({name:.200}) is not known, so nothing else was asked"
    shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return (
        f"({name:.200}) was asked first and stands as the constant {shown:.200}; the error bars"
        " do not cover its noise"
    )


def _nothing(priced: PricedPlan, oracle: Oracle) -> Result:
    """The outer statement where a constant of it is not known: NULL, and free."""
    plan = priced.plan
    columns = tuple(_column(item, plan) for item in plan.select.items)
    unknown = tuple(None if column.is_key else as_estimate(math.nan) for column in columns)
    rows = () if plan.select.groups else (unknown,)
    return Result(columns, rows, confidence=priced.confidence, held=oracle.schema.held)


def _too_dear(quoted: SqlQuote, hint: str = "") -> BudgetSpent:
    return BudgetSpent(
        f"this statement costs {credits_text(quoted.credits)},"
        f" {credits_left(quoted.left_before)} are left; nothing was asked;"
        f" ask for less, or ask the owner for a larger grant{hint}"
    )


# --- one statement -------------------------------------------------------------------------------


def _answered(
    oracle: Oracle, priced: PricedPlan, rows: int | None, key: str | None, credits: Credits | None
) -> Result:
    if priced.plan.undeclared and not priced.plan.select.explain:
        return _found(oracle, priced, key, credits)
    if len(priced.plan.questions) == 1 and not priced.plan.select.explain:
        return _asked(oracle, priced, rows, key)  # the oracle itself refuses it as a whole
    quoted = _quoted(oracle, priced, rows, credits)
    if quoted.plan.select.explain:
        lines = tuple((line,) for line in quoted.explain().split("\n"))
        return Result((PLAN,), lines, confidence=quoted.confidence)
    if not quoted.affordable:
        raise _too_dear(quoted, _buys(oracle, quoted, rows))
    return _asked(oracle, priced, rows, key)


def _buys(oracle: Oracle, quoted: SqlQuote, rows: int | None) -> str:
    """What the credits left would buy: the bar of each figure; nothing where none can be said."""
    left, units = quoted.left_before, unit_prices(quoted.plan, oracle)
    if left <= 0 or not any(units):
        return ""
    less = PricedPlan(quoted.plan, tuple(shared_out(left, units)), quoted.confidence, ())
    try:
        found = _quoted(oracle, less, rows, None)
    except InvalidQuery:  # less than the least that can be asked
        return ""
    ends = {name: (half, half) for name, half in found.half_widths if half is not None}
    ends |= {name: (narrow, wide) for name, narrow, wide in found.spans}
    bars = [f"{name} {span_text(*both)}" for name, both in ends.items()]
    if not bars:
        return ""
    return f". What is left would buy {', '.join(bars)} at {percent(found.confidence)}"


def _quoted(
    oracle: Oracle, priced: PricedPlan, rows: int | None, credits: Credits | None
) -> SqlQuote:
    if priced.plan.undeclared:
        return _quoted_keys(oracle, priced, credits)
    plan, amounts, confidence = priced.plan, priced.amounts, priced.confidence
    notes = list(priced.notes)
    quotes = tuple(
        oracle.quote(question, credits=amount, confidence=confidence, rows=rows)
        for question, amount in zip(plan.questions, amounts, strict=True)
    )
    for quote in quotes:
        notes += [note for note in quote.notes if note not in notes]
    new = [quote for quote in quotes if not quote.repeat]
    left = min((quote.left_after + quote.credits for quote in new), default=oracle.remaining)
    matching = rows if rows is not None else (None if plan.is_grouped else oracle.size)
    forecasts = tuple(quote.forecast for quote in quotes)
    items = [item for item in plan.select.items if aggregates_of(item.of)]
    sizes = None if rows is not None else _sizes(oracle, plan, items, confidence)
    bars = Forecasts(plan, forecasts, confidence, matching)
    sized = [] if sizes is None else [item for item in items if is_sized(plan, forecasts, item.of)]
    if sizes is not None and sizes.known:
        bars = Forecasts(plan, forecasts, confidence, sizes.least)
    halves = tuple((item.name, _half_width(oracle, bars, item)) for item in items)
    spans: tuple[BarSpan, ...] = ()
    assumes = ""
    if sizes is not None and sized:
        spans = tuple(_span(plan, forecasts, confidence, item, sizes) for item in sized)
        assumes = _assumes(oracle, plan, sizes, spans[0])
        notes.append(assumes)
    known = ((item.name, bars.rank(item.of)) for item in items)
    ranks = tuple((name, rank) for name, rank in known if rank is not None)
    return SqlQuote(
        plan,
        quotes,
        amounts,
        confidence,
        halves,
        left,
        tuple(notes),
        ranks,
        assumes=assumes,
        sizes=sizes if sized or ranks else None,
        spans=spans,
    )


def _span(
    plan: StatementPlan,
    forecasts: tuple[Forecast, ...],
    confidence: float,
    item: Item,
    sizes: GroupSizes,
) -> BarSpan:
    """The half-width of a figure at the most and at the fewest rows; without end where so few rows
    would tell nothing."""
    ends = (Forecasts(plan, forecasts, confidence, rows) for rows in (sizes.most, sizes.least))
    narrow, wide = (end.half_width(item.of) for end in ends)
    return item.name, math.inf if narrow is None else narrow, math.inf if wide is None else wide


def _half_width(oracle: Oracle, bars: Forecasts, item: Item) -> float | None:
    """The bar of an output; of a quantile, in its units, where the asker was told a distribution of
    the same rows: how far its values lie apart over the rank's own bar."""
    half, recipe, rank = bars.half_width(item.of), bars.plan.quantile(item.of), bars.rank(item.of)
    known = getattr(oracle, "known", None)
    if half is not None or recipe is None or recipe.share is None or not rank or known is None:
        return half
    answer = known(bars.plan.questions[recipe.question])
    found = None if answer is None else answer.reading.distributions
    share, reach = recipe.share, 0.0
    for one in [] if found is None else found.flat:
        if one.total <= rank:
            return None
        low, middle, high = (
            one.quantile(min(1.0, max(0.0, share + way * rank / one.total))) for way in (-1, 0, 1)
        )
        step = float(one.edges[1] - one.edges[0]) if one.steps else 0.0
        reach = max(reach, middle - low, high - middle, step)
    return reach or None


def span_text(narrow: float, wide: float) -> str:
    """Two half-widths: +-1 to 5."""
    low, high = f"{narrow:,.4g}", f"{wide:,.4g}"
    return f"+-{high}" if low == high else f"+-{low} to {high}"


def _sizes(
    oracle: Oracle, plan: StatementPlan, items: list[Item], confidence: float
) -> GroupSizes | None:
    """How many rows the figures have whose bars hang on it; None where none does."""
    counted = size_question(plan, [item.of for item in items])
    if counted is None:
        return None
    return sizes_of(oracle, counted, cells=cells_of(plan.bottom), confidence=confidence)


def _assumes(
    oracle: Oracle,
    plan: StatementPlan,
    sizes: GroupSizes,
    span: BarSpan,
) -> str:
    """Which sizes stand behind the bars, and what to do where nobody knows them."""
    who, per = oracle.schema.who, " per group" if plan.is_grouped else ""
    if sizes.known:
        return f"the bar is for {sizes.text(who, per)}"
    if sizes.most == sizes.least:
        return everybody(oracle.schema, sizes.most)
    _, narrow, wide = span
    return hangs_on(who, oracle.size or 0, narrow, wide, grouped=plan.is_grouped)


def _quoted_keys(oracle: Oracle, priced: PricedPlan, credits: Credits | None) -> SqlQuote:
    """Of a statement by an open text column."""
    plan, level = priced.plan, priced.confidence
    where = where_of(plan)
    asked = finder(oracle).quote_keys
    quoted = asked(_key(plan), *plan.figures, where=where, credits=credits)
    bars = Forecasts(plan, (forecast_of(quoted, plan),), level, None)
    counted = [item for item in plan.select.items if aggregates_of(item.of)]
    halves = tuple((item.name, bars.half_width(item.of)) for item in counted)
    notes = (*priced.notes, *quote_notes(quoted, plan))
    left = quoted.left_after + quoted.credits
    return SqlQuote(plan, (), (), level, halves, left, notes, keys=quoted)


def _key(plan: StatementPlan) -> object:
    """The column, or the pair."""
    names = plan.undeclared
    return names if len(names) > 1 else names[0]


def _found(oracle: Oracle, priced: PricedPlan, key: str | None, credits: Credits | None) -> Result:
    """Keys that nobody declared, with their counts as the statement wants them."""
    where = where_of(priced.plan)
    asked = priced.plan
    keys = finder(oracle).keys
    found = keys(_key(asked), *asked.figures, where=where, credits=credits, key=key)
    plan = found_plan(asked, found)
    most = math.inf if oracle.size is None else oracle.size * oracle.schema.max_rows
    return Result(
        tuple(_column(item, plan) for item in plan.select.items),
        tuple(Evaluation(plan, [keys_answer(found, plan)], priced.confidence, most).rows()),
        found.credits,
        (found.receipt,),
        (*priced.notes, *notes_of(found)),
        priced.confidence,
        oracle.schema.held,
    )


def _asked(oracle: Oracle, priced: PricedPlan, rows: int | None, key: str | None) -> Result:
    plan = priced.plan
    answers = _answers(oracle, priced, rows, key)
    most = math.inf if oracle.size is None else oracle.size * oracle.schema.max_rows
    persons = math.inf if oracle.size is None else oracle.size
    reading = Evaluation(plan, answers, priced.confidence, most, persons)
    found = reading.rows()
    select = plan.select
    notes = list(dict.fromkeys([*_told(answers), *priced.notes]))
    if select.target is not None:
        met, said = verdict(select.items, found, select.target, priced.confidence)
        bars = Forecasts(plan, (), priced.confidence, None)
        if (
            rows is None
            and not met
            and any(
                bars.weights(item.of) is None for item in select.items if aggregates_of(item.of)
            )
        ):
            said += "; where fewer rows match than assumed, state how many, `rows`"
        notes.append(said)
    if reading.weak:
        notes.append(_last(len(reading.weak), priced.confidence))
    return Result(
        tuple(_column(item, plan) for item in select.items),
        tuple(found),
        sum((answer.credits for answer in answers), Fraction(0)),
        tuple(answer.receipt for answer in answers),
        tuple(notes),
        priced.confidence,
        oracle.schema.held,
    )


def _last(groups: int, confidence: float) -> str:
    """What ORDER BY did with groups that noise alone may have made."""
    many = "1 group comes" if groups == 1 else f"{groups:,} groups come"
    return (
        f"ORDER BY: {many} last, for what is sorted by cannot be told from 0 at"
        f" {percent(confidence)}; HAVING leaves such groups out"
    )


def _told(answers: list[Answer]) -> list[str]:
    """What the answers say, each thing once: of their questions, then of themselves."""
    found: list[str] = []
    for answer in answers:
        own = () if answer.bound is None else answer.bound.notes
        found += own
        found.append(answer.note.removeprefix("; ".join(own)).removeprefix("; "))
    return [note for note in found if note]


def _answers(oracle: Oracle, priced: PricedPlan, rows: int | None, key: str | None) -> list[Answer]:
    """All of them: in one transaction where the oracle has plans, else one after the other."""
    questions = priced.plan.questions
    terms: dict[str, Any] = {"confidence": priced.confidence, "rows": rows}
    batch = getattr(oracle, "plan", None)
    if batch is not None and len(questions) > 1:
        paid = [amount for amount in priced.amounts if amount is not None]
        if paid:  # by weight each question gets its own amount, also next to a repeat
            weights = [amount or Fraction(1) for amount in priced.amounts]
            terms |= {"credits": sum(paid, Fraction(0)), "weights": weights}
        found: list[Answer] = batch(list(questions), **terms).ask(key)
        return found
    keys = [key if key is None or not at else f"{key}/{at + 1}" for at in range(len(questions))]
    return [
        oracle.ask(question, credits=amount, key=each, **terms)
        for question, amount, each in zip(questions, priced.amounts, keys, strict=True)
    ]


def columns_of(quote: SqlQuote) -> tuple[ResultColumn, ...]:
    """Return the columns that the answer of a quoted statement will have, without asking it."""
    if quote.plan.select.explain:
        return (PLAN,)
    return tuple(_column(item, quote.plan) for item in quote.plan.select.items)


def _column(item: Item, plan: StatementPlan) -> ResultColumn:
    kind = kind_of(item.of, plan.select.groups)
    noisy = bool(aggregates_of(item.of)) and kind not in ("text", "truth")
    if noisy:
        kind = kind if kind in MOMENTS else "number"
        counts = isinstance(item.of, Aggregate) and item.of.kind == "count"
        return ResultColumn(item.name, kind=kind, type="integer" if counts else kind)
    return ResultColumn(item.name, is_key=True, type=_key_type(item.of, plan.select))


def _key_type(output: Output, select: Select) -> str:
    """Return the type of a key by its labels; of several types, and of bins, it is text."""
    if isinstance(output, Released) and isinstance(select.source, Select):
        return _key_type(output.of, select.source)
    if isinstance(output, GroupKey) and select.groups[output.place].undeclared:
        return "integer" if select.groups[output.place].kind == "number" else "text"
    if isinstance(output, GroupKey):
        known = select.groups[output.place].labels if output.labels is None else output.labels
        types = {type_of_value(label) for label in known if label is not None}
        if types == {"integer", "number"}:
            return "number"
        return types.pop() if len(types) == 1 else "text"
    kind = kind_of(output, select.groups)
    return kind if kind and isinstance(output, ConstantOutput | Mapped | Calculation) else "text"


def type_of_value(value: object) -> str:
    """Return the type of a label: a bin is shown as text."""
    if isinstance(value, tuple):
        return "text"
    if isinstance(value, int) and not isinstance(value, bool):
        return "integer"
    return kind_of_value(value)
