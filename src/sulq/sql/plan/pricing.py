"""What each question of a statement gets: its plain price, a part of credits, or what WITHIN takes.

Nothing here reads data: sizes come from what the asker states or has been answered before.
"""

from __future__ import annotations

import datetime
import itertools
import math
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fractions import Fraction
from itertools import islice
from typing import Any

from sqlglot import exp

from sulq.answers.oracle import Oracle, check_confidence
from sulq.answers.statistics import forecast
from sulq.errors import InvalidQuery, Reason
from sulq.formatting import credits_text
from sulq.kernel.accounting.calibration import SET_ASIDE, calibrate
from sulq.kernel.accounting.gaussian import gaussian_mu
from sulq.kernel.accounting.loss import CREDIT
from sulq.kernel.accounting.pricing import (
    COARSE,
    finer,
    least_intensity,
    noise_grid,
    positive,
    price,
    unit_cost,
)
from sulq.kernel.schema.bind import BoundQuery, bind
from sulq.kernel.schema.columns import Number, Schema
from sulq.kernel.schema.promise import Promise
from sulq.sql.parse.constants import Params
from sulq.sql.parse.grammar import Node, located, named, opened, span
from sulq.sql.parse.locate import blamed_aggregates, closed
from sulq.sql.parse.select import Aggregate, Select, aggregates_of
from sulq.sql.parse.statement import SubqueryValues, read_statement, utc_day
from sulq.sql.plan.forecast import Forecasts
from sulq.sql.plan.plan import Quantile, Question, StatementPlan, plan_of
from sulq.sql.plan.precision import wished
from sulq.sql.plan.rewrites import rewritten
from sulq.sql.plan.typos import respelled

SIGNIFICANT = 32


def bound_by(question: Question, oracle: Oracle) -> BoundQuery:
    """A question as the oracle will bind it."""
    grid = noise_grid(calibrate(oracle.promise))
    return bind(question, oracle.schema, oracle.promise.neighbours, grid=grid)


def unit_price(question: Question, oracle: Oracle) -> Fraction:
    """What a question costs at unit noise."""
    return unit_cost(bound_by(question, oracle), calibrate(oracle.promise))


def unit_prices(plan: StatementPlan, oracle: Oracle) -> list[Fraction]:
    """What each question costs at unit noise."""
    return [unit_price(question, oracle) for question in plan.questions]


def shared_out(credits: Fraction, units: list[Fraction]) -> list[Fraction | None]:
    """Credits in proportion to unit prices: all noise is scaled alike. None: public and free."""
    total = sum(units, Fraction(0))
    return [short(credits * unit / total) if unit else None for unit in units]


def short(amount: Fraction, up: bool = False) -> Fraction:
    """To 32 bits of steps of the ledger: as a plan shares credits out, so that both agree."""
    steps = math.ceil(amount * CREDIT) if up else math.floor(amount * CREDIT)
    spare = max(0, steps.bit_length() - SIGNIFICANT)
    return Fraction((steps + ((1 << spare) - 1 if up else 0)) >> spare << spare, CREDIT)


# --- OPTIONS(...) -------------------------------------------------------------------------------


def most_credits(
    options: Mapping[str, Fraction | str], promise: Promise, unit: str, max_rows: int
) -> Fraction | None:
    """What OPTIONS(...) allows a statement to spend; refuses what would loosen the promise."""
    _check_unit(options, unit, max_rows)
    delta = options.get("delta")
    if isinstance(delta, Fraction) and delta > promise.delta:
        raise InvalidQuery(
            f"delta={float(delta):g} would loosen the promise, whose delta is"
            f" {float(promise.delta):g}; leave it out or give less",
            reason=Reason.LOOSER_PROMISE,
        )
    epsilon = options.get("epsilon")
    if not isinstance(epsilon, Fraction):
        return None
    if not 0 < epsilon <= promise.epsilon:
        raise InvalidQuery(
            f"epsilon={float(epsilon):g} must be above 0 and at most the promise's"
            f" {float(promise.epsilon):g}: options may only tighten",
            reason=Reason.LOOSER_PROMISE,
        )
    calibration = calibrate(promise)
    if promise.noise in COARSE:
        raise InvalidQuery(
            f"{promise.noise} noise has one size; leave out epsilon", reason=Reason.LOOSER_PROMISE
        )
    if promise.noise == "laplace":
        return epsilon * calibration.credits / promise.epsilon  # S4.13
    allowed = delta if isinstance(delta, Fraction) else promise.delta
    if allowed <= 0:
        raise InvalidQuery(
            "delta must be above 0 under gaussian noise; leave it out", reason=Reason.LOOSER_PROMISE
        )
    mu = gaussian_mu(epsilon, allowed * (1 - SET_ASIDE))  # TB.1
    return mu**2 * calibration.unit_variance


def _check_unit(options: Mapping[str, Fraction | str], unit: str, max_rows: int) -> None:
    column = options.get("privacy_unit_column")
    if isinstance(column, str) and column.casefold() != unit.casefold():
        protects = "rows" if unit == "row" else f"persons, by {unit!r:.60}"
        raise InvalidQuery(
            f"privacy_unit_column={column:.60}: this table protects {protects};"
            " its owner decides that; leave the option out",
            reason=Reason.LOOSER_PROMISE,
        )
    most = options.get("max_groups_contributed")
    if isinstance(most, Fraction) and (most.denominator != 1 or most < 1):
        raise InvalidQuery(
            "max_groups_contributed must be a whole number above 0", reason=Reason.LOOSER_PROMISE
        )
    if isinstance(most, Fraction) and most < max_rows:
        raise InvalidQuery(
            f"max_groups_contributed={most}: up to {max_rows} rows of a person count here, as its"
            f" owner declared, each in a group of its own; leave it out or give {max_rows}",
            reason=Reason.LOOSER_PROMISE,
        )


# --- WITHIN ... ---------------------------------------------------------------------------------


def intensity_for(
    plan: StatementPlan,
    oracle: Oracle,
    wanted: Mapping[str, float],
    confidence: float,
    rows: int | None,
) -> list[Fraction | None]:
    """Credits that bring every named output down to its half-width."""
    calibration = calibrate(oracle.promise)
    bound = [bound_by(question, oracle) for question in plan.questions]
    units = [unit_cost(each, calibration) for each in bound]
    matching = rows if rows is not None else (None if plan.is_grouped else oracle.size)
    power = 1.0 if oracle.promise.noise == "laplace" else 2.0

    def missed(intensity: Fraction) -> float:
        bars = tuple(
            forecast(each, price(each, calibration, intensity).laws, rows, oracle.size)
            for each in bound
        )
        return _missed(Forecasts(plan, bars, confidence, matching), wanted)

    intensity, tried = Fraction(1), (0.0, 0.0)
    if noise_grid(calibration).whole:
        intensity = least_intensity(lambda tried: missed(tried) <= 1)
        return [short(unit * intensity, up=True) if unit else None for unit in units]
    for _ in range(20):  # bars fall as a power of the intensity; of roots and ratios nearly
        ratio = missed(intensity)
        if ratio == 0 or (0.99 <= ratio <= 1 and intensity != 1):
            break
        spread = math.log(intensity) - tried[0]
        fall = (tried[1] - math.log(ratio)) / spread if tried[1] and spread else 0.0
        power = 1 / fall if 0.05 < fall < 5 else power
        tried = math.log(intensity), math.log(ratio)
        intensity = finer(intensity * Fraction(ratio**power * (1 + 1e-9)))
    return [short(unit * intensity, up=True) if unit else None for unit in units]


def _missed(forecasts: Forecasts, wanted: Mapping[str, float]) -> float:
    """How many times too wide the widest bar is."""
    ratio = 0.0
    for item in forecasts.plan.select.items:
        if item.name not in wanted:
            continue
        rank = forecasts.rank(item.of)
        half = forecasts.half_width(item.of) if rank is None else rank
        if half is None or not math.isfinite(half):
            raise InvalidQuery(
                _unpromised(item.name, forecasts, aggregates_of(item.of)),
                reason=Reason.WITHIN_UNKNOWN,
            )
        ratio = max(ratio, half / wanted[item.name])
    return ratio


def _unpromised(name: str, forecasts: Forecasts, inside: list[Aggregate]) -> str:
    said = f"no error bar can be promised for {name:.60}"
    if any(isinstance(forecasts.plan.recipes[id(one)], Quantile) for one in inside):
        return (
            f"{said}: how far off a quantile is depends on how dense the rows lie there; put WITHIN"
            " ... PERCENT (of the rows) on a quantile by itself, ask without WITHIN (its interval"
            " says how exact it is), with `credits`, or for AVG"
        )
    if forecasts.matching is None:
        return f"{said}: it depends on how many rows match; state `rows`, or give `credits`"
    return (
        f"{said}; put WITHIN on counts, sums, averages, deviations and ratios to a count of the"
        " rows, state more `rows`, or give `credits`"
    )


def over(cap: Fraction, due: Fraction) -> InvalidQuery:
    return InvalidQuery(
        f"OPTIONS(epsilon=...) allows {credits_text(cap)}, this costs {credits_text(due)};"
        " raise epsilon up to the promise's, or ask for less",
        reason=Reason.LOOSER_PROMISE,
    )


# Plans of statements read before: a dashboard's text is read once, then looked up.
#
# A plan follows from the text, the schema, the promise and the public size; no row has a part in
# it, so neither what is kept nor how long a look-up takes says anything about one. Each asker has
# entries of its own: the time a statement takes tells nobody what a colleague asked.


MOST = 128
LONGEST = 4_000
"""Longer statements are read anew: what is kept stays small."""

Key = tuple[str, str, str, str | None, int | None, object]
_plans: OrderedDict[Key, tuple[Schema, Promise, StatementPlan]] = OrderedDict()
_lock = threading.Lock()


def kept(
    oracle: Oracle, text: str, table: str | None, read: object, make: Callable[[], StatementPlan]
) -> StatementPlan:
    """The plan of this text for this asker: as it was made before, if nothing has changed since."""
    if not isinstance(text, str) or len(text) > LONGEST:
        return make()
    asker = str(getattr(oracle, "name", ""))
    key = (type(oracle).__qualname__, asker, text, table, oracle.size, read)
    schema, promise = oracle.schema, oracle.promise
    with _lock:
        found = _plans.get(key)
        if found is not None and found[0] is schema and found[1] == promise:
            _plans.move_to_end(key)
            return found[2]
    plan = make()
    with _lock:
        _plans[key] = (schema, promise, plan)
        while len(_plans) > MOST:
            _plans.popitem(last=False)
    return plan


# Prices: what a statement's questions get, from credits, OPTIONS(epsilon=...) or WITHIN ...
#
# Nothing here reads data: unit prices come from the promise and the schema, error bars from
# quotes, sizes from what the asker states or has been answered before.


Lookups = Mapping[str, Mapping[str, Sequence[Any]]]


@dataclass(frozen=True, slots=True, eq=False)
class Writing:
    """How a statement is written: the name of the table, public tables, dialect and parameters."""

    table: str | None = None
    lookups: Lookups | None = None
    dialect: str | None = None
    params: Params | None = None
    today: datetime.date = field(default_factory=utc_day)
    known: SubqueryValues = field(default_factory=SubqueryValues)

    def read(self, text: str, schema: Schema) -> Select:
        return read_statement(
            text,
            schema,
            self.table,
            self.lookups,
            self.dialect,
            self.params,
            self.today,
            self.known,
        )

    @property
    def whole(self) -> object:
        """All that decides what a text means, beside its table; None where it is read anew."""
        if self.lookups or self.params is not None:
            return None
        if self.known.values is not None:
            return None
        return (named(self.dialect), self.today, self.known)


@dataclass(frozen=True, slots=True, eq=False)
class PricedPlan:
    """What to ask, and the credits for each question (None: the plain price)."""

    plan: StatementPlan
    amounts: tuple[Fraction | None, ...]
    confidence: float
    notes: tuple[str, ...]


def priced_statement(
    oracle: Oracle,
    text: str,
    credits: Fraction | int | float | None,
    confidence: float,
    rows: int | None,
    writing: Writing,
) -> PricedPlan:
    check_confidence(confidence)
    schema = oracle.schema

    def made() -> StatementPlan:
        read = writing.read(text, schema)
        return plan_of(read, schema, oracle.size, lambda question: unit_price(question, oracle))

    whole = writing.whole
    plan = made() if whole is None else kept(oracle, text, writing.table, whole, made)
    select = plan.select
    try:
        cap = most_credits(select.options, oracle.promise, schema.unit, schema.max_rows)
    except InvalidQuery as error:
        raise located(error, select.spans.get("options")) from None
    try:
        return _amounts(oracle, plan, cap, credits, confidence, rows)
    except InvalidQuery as error:
        raise located(error, select.spans.get("target")) from None


def _amounts(
    oracle: Oracle,
    plan: StatementPlan,
    cap: Fraction | None,
    credits: Fraction | int | float | None,
    confidence: float,
    rows: int | None,
) -> PricedPlan:
    notes = list(plan.notes)
    target = plan.select.target
    if target is not None and target.confidence is not None:
        confidence = target.confidence
    amounts: list[Fraction | None] = [None] * len(plan.questions)
    if target is not None:
        if credits is not None:
            raise InvalidQuery("give WITHIN or credits, not both")
        wanted = wished(oracle, plan, target, confidence, rows)
        notes += wanted.notes
        if not wanted.met:
            amounts = intensity_for(plan, oracle, wanted.halves, confidence, rows)
    elif credits is not None and plan.questions:
        amounts = shared_out(positive(credits, "credits"), unit_prices(plan, oracle))
    if cap is not None and plan.questions:
        units = unit_prices(plan, oracle)
        due = sum(
            (a if a is not None else u for a, u in zip(amounts, units, strict=True)), Fraction(0)
        )
        if due > cap and (target is not None or credits is not None):
            raise over(cap, due)
        if due > cap:
            amounts = shared_out(cap, units)
            notes.append(
                f"epsilon allows {credits_text(cap)} of {credits_text(due)}: more noise than usual"
            )
    return PricedPlan(plan, tuple(amounts), confidence, tuple(notes))


def explained(
    error: InvalidQuery,
    oracle: Oracle,
    text: str,
    rows: int | None,
    writing: Writing,
) -> InvalidQuery:
    """A refusal with its place in the text, and with rewrites that would be answered. Free."""
    if not isinstance(text, str):
        return error

    def answered(near: str) -> bool:
        try:
            return _is_answered(oracle, near, rows, writing)
        except InvalidQuery:
            return False

    if error.start is None:
        error = _blamed(error, oracle, text, writing)
    error = closed(error, text)
    schema, dialect = oracle.schema, writing.dialect
    error.alternatives = error.alternatives or offered(error, text, schema, answered, dialect)
    return error


def _is_answered(oracle: Oracle, text: str, rows: int | None, writing: Writing) -> bool:
    """True where a statement has a price, with the SELECTs that are asked first; else refused."""
    found = priced_statement(oracle, text, None, 0.95, rows, writing)
    unit_prices(found.plan, oracle)
    known = writing.known
    parts = [replace(known, part=(*known.part, at)) for at in range(len(found.plan.select.first))]
    return all(_is_answered(oracle, text, rows, replace(writing, known=each)) for each in parts)


def _blamed(error: InvalidQuery, oracle: Oracle, text: str, writing: Writing) -> InvalidQuery:
    try:
        select = writing.read(text, oracle.schema)
    except InvalidQuery:
        return error
    return blamed_aggregates(error, select, oracle.schema)


MOST_OFFERED = 3
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_MODE = re.compile(
    r"""SELECT\s+MODE\((?P<of>\s*(?:"[^"]+"|\w+)\s*)\)\s+FROM\s+(?P<source>"[^"]+"|\w+)"""
    r"""(?:\s+WHERE\s+(?P<where>(?:(?!\b(?:GROUP|ORDER|HAVING|LIMIT|WITHIN|OFFSET)\b).)+))?""",
    re.IGNORECASE | re.DOTALL,
)
_SPELLED: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?<!FLOOR\()\b([A-Za-z_]\w*)\s*/\s*(\d+)\b", re.IGNORECASE), r"FLOOR(\1 / \2)"),
)


def offered(
    error: InvalidQuery,
    text: str,
    schema: Schema,
    answered: Callable[[str], bool],
    dialect: str | None = None,
) -> tuple[str, ...]:
    """Up to three rewrites that would be answered."""
    listed = itertools.chain(rewritten(text, dialect, schema), _candidates(error, text, schema))
    found = dict.fromkeys(each for each in listed if each != text)
    return tuple(islice(filter(answered, found), MOST_OFFERED))


SLIPS = (Reason.UNREADABLE, Reason.NOT_IN_LANGUAGE, Reason.WRONG_FORM, Reason.NO_COLUMN)
"""Refusals that a slip of the pen may be the cause of."""


def _candidates(error: InvalidQuery, text: str, schema: Schema) -> Iterator[str]:
    if error.start is not None and error.end is not None:
        yield from _at_the_place(error, text, error.start, error.end, schema)
    if error.reason in (Reason.ROWS_SHOWN, Reason.PERSON_COLUMN, Reason.DISTINCT):
        yield from _counted(text, schema)
    yield from _most_frequent(text)
    if error.reason in SLIPS:
        yield from respelled(text, schema)
    for pattern, instead in _SPELLED if error.reason is Reason.NO_GROUPS else ():
        if pattern.search(text):
            yield pattern.sub(instead, text)


def _at_the_place(
    error: InvalidQuery, text: str, start: int, end: int, schema: Schema
) -> Iterator[str]:
    before, meant, after = text[:start], text[start:end], text[end:]
    match error.reason:
        case Reason.NO_COLUMN | Reason.ALIAS:
            yield from _near_names(text, start, end, schema)
        case Reason.NO_TABLE:
            yield before + _quoted(error.about["table"]) + after
        case Reason.UNGROUPED:
            yield from _grouped(text, meant, end)
            yield from (f"{before}{name}({meant}){after}" for name in ("AVG", "MEDIAN", "COUNT"))
        case Reason.NO_STEP:
            if (width := _width(meant, schema)) is not None:
                bucket = f"FLOOR({meant} / {width}) * {width}"
                yield re.sub(rf"\b{re.escape(meant)}\b", bucket, text)
        case Reason.WITHIN_RANK:
            yield before + re.sub(r"[\d.]+", r"\g<0> PERCENT", meant, count=1) + after
            yield before.strip()
        case Reason.SEMICOLON | Reason.WITHIN_UNKNOWN | Reason.WITHIN_SIZE:
            yield before.strip()


def _near_names(text: str, start: int, end: int, schema: Schema) -> Iterator[str]:
    """Declared columns in place of an unknown name."""
    before, meant, after = text[:start], text[start:end], text[end:]
    for name in (column.name for column in schema.columns):
        if not _PLAIN.fullmatch(name) and f'"{name}"' not in text:  # hours-per-week
            quoted = _quoted(name).replace("\\", r"\\")
            yield re.sub(re.escape(name), quoted, text, flags=re.IGNORECASE)
    if meant.startswith('"'):  # a text in the quotes of names
        yield before + "'" + meant[1:-1].replace("'", "''") + "'" + after
    for name in _near(meant.split(".")[-1].strip('"'), schema):
        yield before + name + after


def _near(name: str, schema: Schema) -> list[str]:
    known = {column.name.casefold(): column.name for column in schema.columns}
    return [
        _quoted(known[each])
        for each in get_close_matches(name.casefold(), list(known), n=MOST_OFFERED, cutoff=0.6)
    ]


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def _width(name: str, schema: Schema) -> int | None:
    """A round width that makes some ten groups."""
    column = next((c for c in schema.columns if c.name.casefold() == name.casefold()), None)
    if not isinstance(column, Number) or column.kind != "number":
        return None
    low, high = column.range
    width = 1
    while (high - low) / width > 20:
        width *= 10
    return width


def _tree(text: str) -> Node | None:
    try:
        return opened(text).tree
    except InvalidQuery:
        return None


def _grouped(text: str, meant: str, end: int) -> Iterator[str]:
    """GROUP BY the column too; where nothing is counted yet, count."""
    tree = _tree(text)
    if tree is None:
        return
    group = tree.args.get("group")
    reach = None if group is None else span(group)
    if reach is not None:
        yield f"{text[: reach[1]]}, {meant}{text[reach[1] :]}"
    elif _is_short(tree):
        counted = next(tree.find_all(exp.AggFunc), None) is None
        listed = text if not counted else f"{text[:end]}, COUNT(*){text[end:]}"
        yield f"{listed.rstrip().rstrip(';')} GROUP BY {meant}"


def _counted(text: str, schema: Schema) -> Iterator[str]:
    """A count of the same rows or persons, and of each group where columns are named."""
    tree = _tree(text)
    reaches = [] if tree is None else [span(item) for item in tree.expressions]
    if tree is None or not _is_short(tree) or not reaches or None in reaches:
        return
    first = re.match(r"\s*SELECT\b", text, re.IGNORECASE)
    last = re.search(r"\bFROM\b", text, re.IGNORECASE)
    if first is None or last is None or tree.args.get("group") is not None:
        return
    rest = text[last.start() :].rstrip().rstrip(";")
    named = [column.name for item in tree.expressions for column in item.find_all(exp.Column)]
    counted = "COUNT(*)" if schema.unit == "row" else f"COUNT(DISTINCT {_quoted(schema.unit)})"
    shown = [name for name in named if name not in ("*", schema.unit)]
    keys = ", ".join(dict.fromkeys(_quoted(name) for name in shown))
    if keys:
        yield f"SELECT {keys}, {counted} {rest} GROUP BY {keys}"
    yield f"SELECT {counted} {rest}"


def _most_frequent(text: str) -> Iterator[str]:
    """MODE(x), alone: the group of x with the most rows."""
    found = _MODE.fullmatch(text.strip().rstrip(";"))
    if found is None:
        return
    of, source, where = found["of"].strip(), found["source"], found["where"]
    there = f"({where}) AND {of} IS NOT NULL" if where else f"{of} IS NOT NULL"
    grouped = f"GROUP BY {of} ORDER BY n DESC LIMIT 1"
    yield f"SELECT {of}, COUNT(*) AS n FROM {source} WHERE {there} {grouped}"  # noqa: S608


def _is_short(tree: Node) -> bool:
    """Ends after WHERE, so that GROUP BY can be added to the text."""
    return not any(tree.args.get(name) for name in ("group", "having", "order", "limit", "offset"))
