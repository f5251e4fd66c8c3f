"""What a client sends. Unknown fields, infinite numbers and endless texts are refused."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from sulq.answers.statistics import MOST_SHARES, STATISTICS

VERSION = 1
MOST_LETTERS = 100_000
"""Of a statement in SQL."""
MOST_QUESTIONS = 1_000
MOST_ROWS = 2**53
MOST_BITS = 1000
"""Of the whole part of a number: it must be a float too, for people."""

_RATIO = re.compile(r"-?[0-9]{1,400}(/[0-9]{1,400})?")


def fraction_text(number: Fraction | int) -> str:
    """ "3/2"; whole numbers without a denominator."""
    return str(Fraction(number))


def read_fraction(given: object) -> Fraction:
    """A ratio as text, or a finite JSON number as it is spelled."""
    if isinstance(given, Fraction):
        return given
    if isinstance(given, str) and _RATIO.fullmatch(given):
        over, _, under = given.partition("/")
        if under and not int(under):
            raise ValueError("the denominator is 0")
        found = Fraction(int(over), int(under or 1))
        if abs(found) >= 1 << MOST_BITS:
            raise ValueError("the number is too large")
        return found
    if isinstance(given, int) and given.bit_length() > MOST_BITS:  # else it is no float either
        raise ValueError("the number is too large")
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise ValueError("want a finite number, or a ratio as text such as '3/2'")
    return Fraction(repr(given))


def _above_zero(number: Fraction) -> Fraction:
    if number <= 0:
        raise ValueError("want a number above 0")
    return number


Exact = Annotated[
    Fraction,
    BeforeValidator(read_fraction),
    PlainSerializer(fraction_text, return_type=str),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number"},
                {"type": "string", "pattern": "^-?[0-9]{1,400}(/[0-9]{1,400})?$"},
            ]
        }
    ),
]
"""A number sent without rounding: '3/2', 1.5 or 2."""
Amount = Annotated[Exact, AfterValidator(_above_zero)]
"""Credits or a weight: above 0."""
Confidence = Annotated[float, Field(gt=0, lt=1)]
Rows = Annotated[int, Field(ge=1, le=MOST_ROWS)]
Within = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Statement = Annotated[str, StringConstraints(min_length=1, max_length=MOST_LETTERS)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Plain = str | int | float | bool | None
Lookup = dict[Name, Annotated[list[Plain], Field(max_length=10_000)]]
Lookups = Annotated[dict[Name, Annotated[Lookup, Field(max_length=100)]], Field(max_length=20)]


Params = Annotated[
    Annotated[list[Plain], Field(max_length=1_000)]
    | Annotated[dict[Name, Plain], Field(max_length=1_000)],
    Field(description="the values of ?, %s and $1 in order, or of :name by name"),
]
Spelling = Annotated[
    Name, Field(description="how it is written: postgres, snowflake, bigquery, duckdb, ...")
]


FactsId = Annotated[
    Name | None, Field(description="of GET schema: refuse, free, if the table was amended since")
]


class Body(BaseModel):
    """Everything sent states its version; version 1 is all there is."""

    model_config = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, frozen=True, populate_by_name=True
    )
    version: Literal[1] = 1


def _known(kind: str) -> str:
    if kind not in STATISTICS:
        raise ValueError(f"want one of {', '.join(STATISTICS)}")
    return kind


Kind = Annotated[
    str, AfterValidator(_known), WithJsonSchema({"type": "string", "enum": list(STATISTICS)})
]
"""A statistic by its name."""


class QuestionBody(BaseModel):
    """A statistic: its kind, its sums as `SumQuery.to_json` writes them; shares of quantiles."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)
    kind: Kind
    query: dict[str, Any]
    shares: Annotated[list[Share], Field(max_length=MOST_SHARES)] = []


class PriceTerms(Body):
    """How exactly to answer, and who pays: of every question."""

    confidence: Confidence = 0.95
    rows: Annotated[Rows | None, Field(validation_alias=AliasChoices("rows", "size"))] = None
    reservation: Annotated[Name | None, Field(description="pays from credits set aside")] = None
    facts_id: FactsId = None


PurposeName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")]


class SpendingTerms(PriceTerms):
    """How much a request may spend: of every question that a tool may send by itself."""

    max_credits: Annotated[Exact | None, Field(description="refuse, free, if it costs more")] = None
    purpose: Annotated[
        PurposeName | None, Field(description="what the credits are for: a dashboard, a report")
    ] = None
    purpose_credits: Annotated[
        Exact | None, Field(description="the most that this purpose may ever spend")
    ] = None

    @model_validator(mode="after")
    def purpose_with_credits(self) -> Self:
        if (self.purpose is None) != (self.purpose_credits is None):
            raise ValueError("give purpose and purpose_credits, or neither of them")
        return self


class QuoteBody(PriceTerms):
    """Price and error bar of a question or of a statement."""

    question: QuestionBody | None = None
    sql: Statement | None = None
    within: Within | None = None
    credits: Amount | None = None
    lookups: Lookups | None = None
    dialect: Spelling | None = None
    params: Params | None = None

    @model_validator(mode="after")
    def one_of_both(self) -> QuoteBody:
        if (self.question is None) == (self.sql is None):
            raise ValueError("give question or sql, one of both")
        return self


class AskBody(SpendingTerms):
    """`figures` false leaves out what can be worked out from `values` and `noise`."""

    question: QuestionBody
    within: Within | None = None
    credits: Amount | None = None
    figures: bool = True


class SqlBody(SpendingTerms):
    sql: Statement
    credits: Amount | None = None
    lookups: Lookups | None = None
    dialect: Spelling | None = None
    params: Params | None = None
    dummy: Annotated[bool, Field(description="answer from made-up rows, free")] = False


class PlanBody(SpendingTerms):
    """Several questions, charged together or not at all; `within` for all or for each."""

    questions: Annotated[list[QuestionBody], Field(min_length=1, max_length=MOST_QUESTIONS)]
    within: Within | Annotated[list[Within | None], Field(max_length=MOST_QUESTIONS)] | None = None
    credits: Amount | None = None
    weights: Annotated[list[Amount], Field(max_length=MOST_QUESTIONS)] | None = None
    figures: bool = True


class ReserveBody(Body):
    credits: Amount


class ExactBody(Body):
    questions: Annotated[list[QuestionBody], Field(min_length=1, max_length=MOST_QUESTIONS)]
    figures: bool = True
    facts_id: FactsId = None
