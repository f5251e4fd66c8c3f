"""What requests carry."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class QuestionBody(Body):
    kind: str = Field(max_length=40)
    query: dict[str, Any]
    shares: list[float] = []


class QuoteBody(Body):
    question: QuestionBody | None = None
    sql: str | None = Field(None, max_length=100_000)
    within: float | None = None
    confidence: float = 0.95
    credits: float | str | None = None
    rows: int | None = None
    lookups: dict[str, dict[str, list[Any]]] | None = None


class AskBody(Body):
    question: QuestionBody
    within: float | None = None
    confidence: float = 0.95
    credits: float | str | None = None
    rows: int | None = None
    max_credits: float | str | None = None
    reservation: str | None = None


class SqlBody(Body):
    sql: str = Field(max_length=100_000)
    confidence: float = 0.95
    credits: float | str | None = None
    rows: int | None = None
    lookups: dict[str, dict[str, list[Any]]] | None = None
    max_credits: float | str | None = None
    dummy: bool = False
